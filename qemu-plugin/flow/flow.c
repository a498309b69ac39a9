// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The state machine of a vCPU. When a block begins, it is known how the one before it ended: if its
 * last instruction was a branch, a store before it has set hot.armed, and the address of the new
 * block is where it went. RIP is read only where that is not enough, because it costs more than
 * everything else.
 */
#include "qemu-plugin/flow/flow.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "qemu-plugin/flow/end.h"
#include "qemu-plugin/flow/mode.h"
#include "qemu-plugin/flow/units.h"

/* Blocks between two reads of the clock: a few microseconds. */
#define TICK 512

/* ---- addresses ---- */

/* The linear address of a block that runs now, from RIP; it was translated at @vaddr. */
static u64 read_ip(struct vcpu *vcpu, u64 vaddr)
{
	/* Without paging linear addresses are physical, and QEMU's address is exact. */
	if (!mode_paged(vcpu))
		return vaddr;
	return qemu_read_reg(vcpu->regs, QREG_RIP) + vcpu->cpu.cs_base;
}

/* ---- a block begins ---- */

/*
 * Execution is where no branch or event led: after a reset, INIT, SIPI or SMI, or because of
 * another processor or a debugger. The trace gets an interrupt to there; in the host view the guest
 * exits and is entered again with its new state.
 */
static u64 astray(struct vcpu *vcpu, u64 from, const struct block *block)
{
	u64 to;

	vcpu->astray++;
	if (vcpu->running)
		vcpu->plugin->host_ops->exit(vcpu, from, EXIT_EXTERNAL_INTERRUPT, 0);
	vcpu->tick = 1;
	/* In the old mode RIP might stand for another address. */
	mode_all(vcpu, block->start);
	to = read_ip(vcpu, block->start);
	end_report_far(vcpu, VMPT_FAR_INTERRUPT, from, to);
	return to;
}

/* The general case of block_begins(). Returns the block's address. */
static u64 arrive(struct vcpu *vcpu, const struct block *block)
{
	const struct block *done = vcpu->block;
	bool armed = vcpu->hot->armed;
	u64 ip;

	vcpu->hot->armed = 0;
	if (!done || vcpu->lost) {
		mode_all(vcpu, block->start);
		vcpu->lost = false;
		return read_ip(vcpu, block->start);
	}
	if (vcpu->arrived)
		return vcpu->arrive;
	if (armed)
		end_take_mode(vcpu, done->kind);
	ip = read_ip(vcpu, block->start);
	armed |= end_shown(vcpu, done, ip);
	if (!armed || (ip == done->last + vcpu->delta && !insn_repeats(done->kind))) {
		if (!end_follows(vcpu, done, ip))
			return astray(vcpu, done->end + vcpu->delta, block);
		units_step(vcpu, ip);
		return ip;
	}
	if (!end_leads(vcpu, done, block, ip))
		return astray(vcpu, end_lost(vcpu, done), block);
	end_report(vcpu, done, ip);
	if (done->kind == INSN_CALL || done->kind == INSN_CALL_IND)
		push_ret(vcpu, done->end + vcpu->delta);
	return ip;
}

/*
 * What is not done for every block: VM entries, clocks, and guest_ops.block(). Whoever needs one of
 * them in the next block sets vcpu->tick to 1.
 */
static __attribute__((noinline)) void attend(struct vcpu *vcpu, u64 ip)
{
	struct plugin *plugin = vcpu->plugin;

	vcpu->tick = TICK;
	if (vcpu->asleep)
		rtit_wakes(vcpu);
	if (plugin->host && !vcpu->running)
		plugin->host_ops->enter(vcpu, ip);
	else if (plugin->host)
		plugin->host_ops->tick(vcpu, ip);
	if (plugin->guest)
		plugin->guest_ops->tick(vcpu);
	if (vcpu->watched) {
		vcpu->tick = 1;
		plugin->guest_ops->block(vcpu);
	}
}

static __attribute__((noinline)) u64 arrive_slowly(struct vcpu *vcpu, const struct block *block)
{
	u64 ip = arrive(vcpu, block);

	vcpu->arrived = false;
	vcpu->delta = ip - block->start;
	return ip;
}

/* A RET, if it returns to its CALL. */
static inline bool returned(struct vcpu *vcpu, const struct block *done, u64 ip)
{
	if (ip != pop_ret(vcpu))
		return false;
	units_ret(vcpu, done, ip);
	return true;
}

/* The most common ends of @done, if @block begins where they lead. Does not read RIP. */
static inline bool follow(struct vcpu *vcpu, const struct block *done, const struct block *block,
			  u64 ip)
{
	switch (done->kind) {
	case INSN_JCC:
		if (block->start != done->target && block->start != done->end)
			return false;
		units_jcc(vcpu, done, ip);
		return true;
	case INSN_JMP:
		if (block->start != done->target)
			return false;
		units_jmp(vcpu, done, ip);
		return true;
	case INSN_CALL:
		if (block->start != done->target)
			return false;
		push_ret(vcpu, done->end + vcpu->delta);
		units_call(vcpu, done, ip);
		return true;
	case INSN_RET:
		return returned(vcpu, done, ip);
	default:
		return false;
	}
}

/* Whether @block follows @done, which ends without a branch or with a string instruction. */
static inline bool next_to(const struct block *done, const struct block *block)
{
	return block->start == done->end || (done->kind == INSN_REP && block->start == done->last);
}

static inline void block_begins(struct vcpu *vcpu, const struct block *block)
{
	const struct block *done = vcpu->block;
	u64 ip = block->start + vcpu->delta;

	if (vcpu->hot->armed || (done && done->shows && !vcpu->arrived && !vcpu->lost)) {
		if (follow(vcpu, done, block, ip))
			vcpu->hot->armed = 0;
		else
			ip = arrive_slowly(vcpu, block);
	} else if (vcpu->arrived || vcpu->lost || !done || !next_to(done, block)) {
		ip = arrive_slowly(vcpu, block);
	} else {
		units_step(vcpu, ip);
	}
	vcpu->block = block;
	vcpu->walked = ip;
	/* A site that sets the PC needs the base of CS. */
	if (block->sites && vcpu->plugin->guest && !mode_paged(vcpu))
		mode_place(vcpu, block->start);
	if (!--vcpu->tick)
		attend(vcpu, ip);
}

void flow_block(unsigned int index, void *user)
{
	struct block *block = user;
	struct vcpu *vcpu = block->plugin->vcpu[index];

	if (!flow_begin(vcpu))
		return;
	block_begins(vcpu, block);
	if (vcpu->code)
		code_runs(vcpu, block, block->start + vcpu->delta);
	flow_done(vcpu);
}

/* The guest's own trace is only a part of the truth file, which needs the state to tell which. */
static bool truth_has_states(const struct vcpu *vcpu)
{
	return vcpu->truth && vcpu->plugin->guest && !vcpu->plugin->host;
}

static struct truth_state state_now(const struct vcpu *vcpu)
{
	const struct vmpt_mode *mode = &vcpu->mode;
	struct truth_state state = { .cr3 = mode->cr3 };

	if (vcpu->plugin->guest)
		vcpu->plugin->guest_ops->state(vcpu, &state);
	state.flags = mode->cpl | (mode_paged(vcpu) ? TRUTH_PAGING : 0) |
		      (mode->pae ? TRUTH_PAE : 0) | (mode_long(vcpu) ? TRUTH_LONG : 0) |
		      (mode->cs_l ? TRUTH_CS_L : 0) | (mode->cs_d ? TRUTH_CS_D : 0);
	return state;
}

void flow_block_truth(unsigned int index, void *user)
{
	struct block *block = user;
	struct vcpu *vcpu = block->plugin->vcpu[index];
	u64 ip, progress = vcpu->hot->progress;
	struct truth_state state;
	struct vmpt_now now;
	bool moved_sp;

	if (!flow_begin(vcpu))
		return;
	vcpu->hot->progress = 0;
	moved_sp = vcpu->plugin->options.truth_sp && (!vcpu->block || vcpu->block->moves_sp);
	block_begins(vcpu, block);
	if (vcpu->code)
		code_runs(vcpu, block, block->start + vcpu->delta);
	progress -= vcpu->undone;
	vcpu->undone = false;
	/* The truth is RIP for every block, not the flow's idea of it. */
	ip = read_ip(vcpu, block->start);
	vcpu->misplaced += ip != block->start + vcpu->delta;
	truth_block(vcpu->truth, block, ip, progress);
	if (moved_sp)
		truth_sp(vcpu->truth, qemu_read_reg(vcpu->regs, QREG_RSP));
	if (truth_has_states(vcpu)) {
		state = state_now(vcpu);
		truth_state(vcpu->truth, &state, ip);
	}
	if (vcpu->code) {
		clock_read(&vcpu->plugin->clock, &now);
		state = state_now(vcpu);
		truth_time(vcpu->truth, &state, now.tsc);
	}
	flow_done(vcpu);
}

void flow_block_sites(unsigned int index, void *user)
{
	const struct block *block = user;
	struct vcpu *vcpu = block->plugin->vcpu[index];

	if (!flow_begin(vcpu))
		return;
	vcpu->lost = true;
	vcpu->hot->armed = 0;
	mode_all(vcpu, block->start);
	vcpu->delta = read_ip(vcpu, block->start) - block->start;
	vcpu->block = block;
	flow_done(vcpu);
}

/* ---- what comes between blocks ---- */

/* CS at @from, from the frame that the event pushed: [error code,] RIP, CS. */
static bool frame_cs(struct vcpu *vcpu, u64 from, u32 *cs)
{
	u64 frame[3], rsp = qemu_read_reg(vcpu->regs, QREG_RSP);
	u32 narrow[3];

	if (mode_long(vcpu)) {
		if (!qemu_read_linear(vcpu->regs, rsp, frame, sizeof(frame)))
			return false;
	} else {
		/* 32-bit gates, on a flat stack. */
		if (!qemu_read_linear(vcpu->regs, rsp & 0xffffffff, narrow, sizeof(narrow)))
			return false;
		for (unsigned int i = 0; i < 3; i++)
			frame[i] = narrow[i];
	}
	if (frame[0] == from)
		*cs = (u32)frame[1] & 0xffff;
	else if (frame[1] == from)
		*cs = (u32)frame[2] & 0xffff;
	else
		return false;
	return true;
}

/*
 * A far transfer retired and was interrupted before the first block at its target: the mode at
 * @from is only known from the frame that was pushed. Sets vcpu->mode to it.
 */
static void end_before_event(struct vcpu *vcpu, const struct block *done, u64 from)
{
	u32 cs;

	mode_control(vcpu);
	if ((done->kind == INSN_FAR || done->kind == INSN_IRET) && frame_cs(vcpu, from, &cs))
		mode_of_cs(vcpu, cs, &vcpu->mode);
	end_report(vcpu, done, from);
}

/* Reports how the block before the event at @from ended. Returns the kind of far transfer. */
static unsigned int before_event(struct vcpu *vcpu, u64 from)
{
	const struct block *done = vcpu->block;
	bool faults = done->kind != INSN_JCC && done->kind != INSN_JMP;

	if (!vcpu->hot->armed && !end_shown(vcpu, done, from))
		return end_follows(vcpu, done, from) && from != done->end + vcpu->delta
			       ? VMPT_FAR_EXCEPTION
			       : VMPT_FAR_INTERRUPT;
	vcpu->hot->armed = 0;
	if (done->kind == INSN_SOFT_INT)
		return VMPT_FAR_SOFT_INT;
	if (faults && from == done->last + vcpu->delta)
		return VMPT_FAR_EXCEPTION;
	if (done->kind == INSN_CALL || done->kind == INSN_CALL_IND)
		push_ret(vcpu, done->end + vcpu->delta);
	else if (done->kind == INSN_RET)
		pop_ret(vcpu);
	end_before_event(vcpu, done, from);
	return VMPT_FAR_INTERRUPT;
}

/*
 * The vector of the event that went to @to, if a gate leads there. It corrects @kind: an exception
 * may come between blocks, too, if the next instruction cannot be fetched.
 */
static int event_vector(struct vcpu *vcpu, u64 to, unsigned int *kind)
{
	int vector = idt_vector(vcpu, to);
	bool fault = vector < 32 && vector != 2;

	/* In real mode a BIOS uses the first 32 vectors, too. */
	if (vector < 0 || !(vcpu->cpu.cr0 & 1))
		return vector;
	if (fault && *kind == VMPT_FAR_INTERRUPT)
		*kind = VMPT_FAR_EXCEPTION;
	/* When a write to the APIC interrupts at once, QEMU leaves the block after the write. */
	else if (!fault && *kind == VMPT_FAR_EXCEPTION)
		*kind = VMPT_FAR_INTERRUPT;
	return vector;
}

static void report_event(struct vcpu *vcpu, unsigned int kind, int vector, u64 from, u64 to)
{
	struct vmpt_far far = { .kind = (u8)kind, .ip = from, .target = to, .mode = vcpu->mode };

	far.cr3_written = vcpu->cpu.switched;
	vcpu->cpu.switched = false;
	if (vector >= 0)
		far.vector = (u8)vector;
	if (vector == 14 && kind == VMPT_FAR_EXCEPTION && vcpu->plugin->events) {
		far.page_fault = true;
		far.pf_address = qemu_read_reg(vcpu->regs, QREG_CR2);
	}
	units_far(vcpu, &far);
}

/* RSP before the event at @from, from the frame that it pushed, which is that of 64-bit mode. */
static bool frame_sp(struct vcpu *vcpu, u64 from, u64 *sp)
{
	u64 frame[5], rsp = qemu_read_reg(vcpu->regs, QREG_RSP);
	/* What INT n pushes is the address after it. */
	const unsigned int size = 15;

	if (!mode_long(vcpu) || !qemu_read_linear(vcpu->regs, rsp, frame, sizeof(frame)))
		return false;
	*sp = frame[frame[1] == from ? 4 : 3];
	return frame[1] == from || frame[0] - from <= size;
}

static void event(struct vcpu *vcpu, u64 from, u64 to)
{
	bool has_state = truth_has_states(vcpu) && !vcpu->plugin->rtit;
	unsigned int kind = VMPT_FAR_INTERRUPT;
	struct truth_state state;
	int vector;
	u64 sp;

	if (vcpu->asleep)
		rtit_wakes(vcpu);
	/* With two events in a row, the first one's target is the second one's source. */
	if (vcpu->block && !vcpu->arrived && !vcpu->lost)
		kind = before_event(vcpu, from);
	vector = event_vector(vcpu, to, &kind);
	/* A VMM delivers an interrupt at a VM entry, so the guest exits first. */
	if (kind == VMPT_FAR_INTERRUPT && vcpu->running)
		vcpu->plugin->host_ops->exit(
			vcpu, from, vector == 2 ? EXIT_EXCEPTION_OR_NMI : EXIT_EXTERNAL_INTERRUPT,
			0);
	if (vcpu->plugin->host && !vcpu->running)
		vcpu->plugin->host_ops->enter(vcpu, from);
	if (has_state)
		state = state_now(vcpu);
	mode_far(vcpu);
	report_event(vcpu, kind, vector, from, to);
	vcpu->arrive = to;
	vcpu->arrived = true;
	if (vcpu->truth)
		truth_stop_at(vcpu->truth, vcpu->hot->progress, from);
	if (vcpu->plugin->options.truth_sp && frame_sp(vcpu, from, &sp))
		truth_sp(vcpu->truth, sp);
	if (vcpu->truth)
		truth_event(vcpu->truth, has_state ? &state : NULL, from, to);
	if (vcpu->plugin->options.truth_sp)
		truth_sp(vcpu->truth, qemu_read_reg(vcpu->regs, QREG_RSP));
	vcpu->hot->armed = 0;
	vcpu->hot->progress = 0;
}

void flow_if(struct vcpu *vcpu, const struct site *site)
{
	u64 eflags = qemu_read_reg(vcpu->regs, QREG_EFLAGS), popped;
	u8 opcode = site->bytes[site->size - 1];
	bool set = opcode == 0xfb;

	/* #GP, or POPF leaves IF as it is (SDM 2, STI, CLI, POPF). */
	if (vcpu->mode.cpl > (eflags >> 12 & 3))
		return;
	if (opcode == 0x9d) {
		/* In other modes the base of SS is not known. */
		if (!vcpu->cpu.cs_l ||
		    !qemu_read_linear(vcpu->regs, qemu_read_reg(vcpu->regs, QREG_RSP), &popped, 8))
			return;
		set = popped & 0x200;
	}
	if (set == vcpu->mode.rflags_if)
		return;
	vcpu->mode.rflags_if = set;
	FOR_UNITS (vcpu, u)
		vmpt_unit_set_if(vcpu->unit[u], site_ip(vcpu, site), set);
}

void flow_event(unsigned int index, u64 from, u64 to, void *user)
{
	struct plugin *plugin = user;
	struct vcpu *vcpu = plugin->vcpu[index];

	if (!vcpu || !flow_begin(vcpu))
		return;
	if (plugin->guest)
		from = plugin->guest_ops->event(vcpu, from);
	if (vcpu->hot->on)
		event(vcpu, from, to);
	else
		vcpu->lost = true;
	flow_done(vcpu);
}

void flow_idle(unsigned int index, void *user)
{
	struct plugin *plugin = user;
	struct vcpu *vcpu = plugin->vcpu[index];

	if (!vcpu || !flow_begin(vcpu))
		return;
	/* A paused machine is idle, too: its address is not known, and the run continues. */
	if (vcpu->running && vcpu->block && vcpu->block->halts) {
		vcpu->reached = vcpu->block->end + vcpu->delta;
		vcpu->reached_in = vcpu->block;
		units_step(vcpu, vcpu->reached);
		plugin->host_ops->exit(vcpu, vcpu->reached, EXIT_HLT, 0);
		vcpu->tick = 1;
	}
	/* In the host view the unit is detached by now. */
	if (rtit_listens(vcpu) && vcpu->block && vcpu->block->halts) {
		rtit_sleeps(vcpu);
		vcpu->tick = 1;
	}
	flow_done(vcpu);
}

void flow_keep_block(struct vcpu *vcpu)
{
	if (!vcpu->block || vcpu->block == &vcpu->kept)
		return;
	vcpu->kept = *vcpu->block;
	vcpu->reached_in = vcpu->reached_in == vcpu->block ? &vcpu->kept : NULL;
	vcpu->block = &vcpu->kept;
}

void flow_stop(struct plugin *plugin)
{
	__atomic_store_n(&plugin->ending, true, __ATOMIC_SEQ_CST);
	/* A barrier on every thread, between its write of "busy" and its read of "ending". */
	syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	for (unsigned int i = 0; i < VCPUS; i++) {
		struct vcpu *vcpu = plugin->vcpu[i];

		while (vcpu && __atomic_load_n(&vcpu->busy, __ATOMIC_ACQUIRE))
			sched_yield();
	}
}

/* ---- for the views ---- */

/* Whether block callbacks are wanted may have changed. */
static void listen(struct vcpu *vcpu)
{
	bool on = vcpu->units || vcpu->rtits || vcpu->watched || vcpu->plugin->always;

	/* What happened in the meantime is not known. */
	if (on && !vcpu->hot->on) {
		vcpu->lost = true;
		vcpu->hot->armed = 0;
	}
	vcpu->hot->on = on;
}

void flow_unit(struct vcpu *vcpu, struct vmpt_unit *unit, bool on)
{
	unsigned int i;

	for (i = 0; i < vcpu->units && vcpu->unit[i] != unit; i++)
		;
	if (on && i == vcpu->units && i < VCPU_UNITS) {
		vcpu->unit[vcpu->units++] = unit;
	} else if (!on && i < vcpu->units) {
		vcpu->unit[i] = vcpu->unit[--vcpu->units];
	}
	listen(vcpu);
}

void flow_rtit(struct vcpu *vcpu, struct vmpt_rtit_unit *unit, bool on)
{
	unsigned int i;

	for (i = 0; i < vcpu->rtits && vcpu->rtit[i] != unit; i++)
		;
	if (on && i == vcpu->rtits && i < VCPU_UNITS) {
		if (!vcpu->rtits)
			vcpu->walked = RTIT_WALKED;
		vcpu->rtit[vcpu->rtits++] = unit;
	} else if (!on && i < vcpu->rtits) {
		vcpu->rtit[i] = vcpu->rtit[--vcpu->rtits];
	}
	listen(vcpu);
}

void flow_watch(struct vcpu *vcpu, bool on)
{
	vcpu->watched = on;
	vcpu->tick = 1;
	listen(vcpu);
}

void flow_go_to(struct vcpu *vcpu, u64 ip)
{
	u64 rip = linear_to_rip(vcpu, ip);

	units_step(vcpu, ip);
	vcpu->hot->armed = 0;
	vcpu->arrive = ip;
	vcpu->arrived = vcpu->hot->on;
	flow_done(vcpu);
	qemu_go_to(rip);
}
