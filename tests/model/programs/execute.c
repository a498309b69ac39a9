// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A tiny processor: executes a program, reports each event to the model, and lists what was
 * executed while PacketEn was 1 by its own reading of SDM 3 33.2.5 and 33.2.6. Conditions
 * and register values are random.
 */
#include <check.h>
#include <stdlib.h>

#include "model/fast.h"
#include "tests/model/programs/memory.h"
#include "tests/model/programs/program.h"
#include "util/array.h"

struct cpu {
	struct machine m;
	const struct program_settings *set;
	struct execution *done;
	struct program_memory memory;
	struct vmpt_unit unit;
	struct vmpt_now clocks;

	u64 cr3_sent; /* by the last PIP */

	/* The enables, determined without the model. */
	bool trace_en, stopped, context, filter, overflow;
	u32 branches;
	u64 ovfs; /* OVFs that are known */
};

/* ---- what should be traced ---- */

static bool hit(const struct cpu *cpu, unsigned int cfg, u64 ip, bool *any)
{
	unsigned int n;

	*any = false;
	for (n = 0; n < VMPT_PT_RANGES_MAX; n++) {
		if ((cpu->set->ctl >> VMPT_CTL_ADDR_SHIFT(n) & 0xf) != cfg)
			continue;
		*any = true;
		if (ip >= cpu->set->addr[2 * n] && ip <= cpu->set->addr[2 * n + 1])
			return true;
	}
	return false;
}

static bool in_filter(const struct cpu *cpu, u64 ip)
{
	bool any, in = hit(cpu, VMPT_ADDR_FILTER, ip, &any);

	return in || !any;
}

static bool in_stop(const struct cpu *cpu, u64 ip)
{
	bool any;

	return hit(cpu, VMPT_ADDR_TRACESTOP, ip, &any);
}

static bool context_now(const struct cpu *cpu)
{
	u64 ctl = cpu->set->ctl;

	if (!(ctl & (cpu->m.cpl ? VMPT_CTL_USER : VMPT_CTL_OS)))
		return false;
	/* CR3[63:12] with four-level paging (33.2.5.2) */
	return !(ctl & VMPT_CTL_CR3_FILTER) || cpu->m.cr3 >> 12 == cpu->set->cr3_match >> 12;
}

static bool packet_en(const struct cpu *cpu)
{
	return cpu->trace_en && !cpu->stopped && cpu->context && cpu->filter;
}

/* A taken branch or event has landed at @ip. */
static void landed(struct cpu *cpu, u64 ip)
{
	cpu->context = context_now(cpu);
	if (!cpu->trace_en || cpu->stopped || !cpu->context)
		return;
	cpu->filter = in_filter(cpu, ip);
	cpu->stopped = in_stop(cpu, ip);
}

static void retired(struct cpu *cpu, const struct program_insn *insn)
{
	struct execution *done = cpu->done;

	if (!packet_en(cpu))
		return;
	if (vmpt_grow(&done->insn, done->insns))
		ck_abort_msg("no memory");
	done->insn[done->insns++] =
		(struct executed){ .ip = insn->ip,
				   .branches = cpu->branches,
				   .cr3 = cpu->m.cr3 == cpu->cr3_sent ? cpu->m.cr3 : 0 };
}

/* ---- near branches ---- */

static void jump(struct cpu *cpu, u64 target, bool packet)
{
	cpu->branches += packet;
	landed(cpu, target);
	cpu->m.ip = target;
}

static void conditional(struct cpu *cpu, const struct program_insn *insn, bool taken)
{
	u64 next = insn->ip + insn->len;

	/* Half of the programs use the inline function. */
	if (cpu->set->steps % 2)
		vmpt_unit_jcc_fast(&cpu->unit, taken, taken ? insn->target : next);
	else
		vmpt_unit_jcc(&cpu->unit, taken, taken ? insn->target : next);
	if (taken) {
		jump(cpu, insn->target, true);
	} else {
		cpu->branches++;
		cpu->m.ip = next;
	}
}

static void near_branch(struct cpu *cpu, const struct program_insn *insn)
{
	u64 next = insn->ip + insn->len, to;

	switch (insn->kind) {
	case TG_JCC:
	case TG_LOOP:
		conditional(cpu, insn, below(cpu->m.rng, 256) < ((insn->ip * 37) & 0xff));
		return;
	case TG_JMP:
		if (cpu->set->steps % 2)
			vmpt_unit_jmp_fast(&cpu->unit, insn->target);
		else
			vmpt_unit_jmp(&cpu->unit, insn->target);
		jump(cpu, insn->target, false);
		return;
	case TG_CALL:
		machine_push(&cpu->m, next);
		vmpt_unit_call(&cpu->unit, next, insn->target);
		jump(cpu, insn->target, false);
		return;
	case TG_ICALL:
		to = once_in(cpu->m.rng, 8) ? next : machine_address(&cpu->m);
		machine_push(&cpu->m, next);
		vmpt_unit_call_indirect(&cpu->unit, next, to);
		jump(cpu, to, true);
		return;
	case TG_IJMP:
		to = machine_address(&cpu->m);
		vmpt_unit_jmp_indirect(&cpu->unit, to);
		jump(cpu, to, true);
		return;
	default: /* TG_RET */
		to = machine_pop(&cpu->m);
		vmpt_unit_ret(&cpu->unit, to);
		jump(cpu, to, true);
	}
}

/* ---- far transfers ---- */

static struct vmpt_mode mode_at(const struct cpu *cpu, u64 ip, unsigned int cpl)
{
	bool is_64 = program_region_at(cpu->m.program, ip)->mode == 64;

	return (struct vmpt_mode){ .cr3 = cpu->m.cr3,
				   .cpl = (u8)cpl,
				   .cs_l = is_64,
				   .cs_d = !is_64,
				   .rflags_if = cpl > 0 };
}

static void far_transfer(struct cpu *cpu, unsigned int kind, u64 source, u64 target,
			 unsigned int cpl)
{
	struct vmpt_far far = { .kind = (u8)kind, .vector = 32, .ip = source, .target = target };

	far.mode = mode_at(cpu, target, cpl);
	vmpt_unit_far(&cpu->unit, &far);
	cpu->m.cpl = cpl;
	jump(cpu, target, true);
}

/* Enter the kernel by interrupt, exception or software; @back: where IRET goes. */
static void enter_kernel(struct cpu *cpu, unsigned int kind, u64 source, u64 back)
{
	machine_push_frame(&cpu->m, back);
	far_transfer(cpu, kind, source, machine_kernel_entry(&cpu->m), 0);
}

/* Return by the youngest frame, or to a new task. */
static void leave_kernel(struct cpu *cpu, const struct program_insn *insn)
{
	unsigned int kind = insn->kind == TG_IRET ? VMPT_FAR_IRET : VMPT_FAR_BRANCH;
	struct machine_frame f = machine_pop_frame(&cpu->m, insn->kind == TG_IRET);

	far_transfer(cpu, kind, insn->ip, f.ip, f.cpl);
}

static void far_branch(struct cpu *cpu, const struct program_insn *insn)
{
	u64 next = insn->ip + insn->len;

	switch (insn->kind) {
	case TG_SYSCALL:
		enter_kernel(cpu, VMPT_FAR_BRANCH, insn->ip, next);
		return;
	case TG_FAR:
		far_transfer(cpu, VMPT_FAR_BRANCH, insn->ip, machine_address(&cpu->m), 0);
		return;
	default:
		leave_kernel(cpu, insn);
	}
}

/* ---- what the kernel does ---- */

static void mov_cr3(struct cpu *cpu, u64 next)
{
	struct vmpt_mode mode;
	bool was = cpu->context;

	cpu->m.cr3 = 0x1000 * (1 + below(cpu->m.rng, 3)) | below(cpu->m.rng, 2) << 3;
	mode = mode_at(cpu, cpu->m.ip, 0);
	vmpt_unit_mov_cr3(&cpu->unit, next, &mode);
	cpu->context = context_now(cpu);
	if (!cpu->trace_en || cpu->stopped)
		return;
	if (was || cpu->context)
		cpu->cr3_sent = cpu->m.cr3;
	if (!was && cpu->context)
		cpu->filter = in_filter(cpu, next);
}

static void wrmsr(struct cpu *cpu, u32 msr, u64 value, u64 ip, u64 next)
{
	int ret = vmpt_unit_wrmsr(&cpu->unit, msr, value, ip, next);

	if (ret)
		ck_abort_msg("WRMSR of %#x, %#llx: %d", msr, (unsigned long long)value, ret);
}

static void trace_off(struct cpu *cpu, u64 ip, u64 next)
{
	wrmsr(cpu, VMPT_MSR_RTIT_CTL, cpu->set->ctl & ~VMPT_CTL_TRACE_EN, ip, next);
	cpu->trace_en = false;
}

static void trace_on(struct cpu *cpu, u64 ip, u64 next)
{
	if (cpu->stopped)
		wrmsr(cpu, VMPT_MSR_RTIT_STATUS, 0, ip, next);
	wrmsr(cpu, VMPT_MSR_RTIT_CTL, cpu->set->ctl, ip, next);
	cpu->trace_en = true;
	cpu->context = context_now(cpu);
	cpu->filter = in_filter(cpu, next);
	cpu->stopped = cpu->context && in_stop(cpu, next); /* 33.4.2.9 */
	/* Table 33-56 has no PIP here; a PSB+ has one, if it is sent. */
	if (cpu->cr3_sent != cpu->m.cr3)
		cpu->cr3_sent = 0;
}

/*
 * Now and then a WRMSR switches tracing on, or off if PacketEn is 1. Off: FUP(CLIP), so the WRMSR
 * is not shown.
 */
static void write_msr(struct cpu *cpu, const struct program_insn *insn)
{
	u64 next = insn->ip + insn->len;

	if ((cpu->overflow && cpu->trace_en) ||
	    (!cpu->stopped && cpu->trace_en && (!packet_en(cpu) || !once_in(cpu->m.rng, 4)))) {
		retired(cpu, insn);
		return;
	}
	if (cpu->trace_en)
		trace_off(cpu, insn->ip, next);
	if (cpu->stopped || !once_in(cpu->m.rng, 2))
		trace_on(cpu, insn->ip, next);
}

/* ---- overflows ---- */

static void overflow_open(struct cpu *cpu, const struct overflow *o)
{
	struct execution *done = cpu->done;

	if (vmpt_grow(&done->overflow, done->overflows))
		ck_abort_msg("no memory");
	done->overflow[done->overflows++] = *o;
	cpu->overflow = true;
}

static void overflow_close(struct cpu *cpu)
{
	struct overflow *o = &cpu->done->overflow[cpu->done->overflows - 1];

	cpu->overflow = false;
	o->to = cpu->done->insns;
	o->is_64 = machine_here(&cpu->m)->mode == 64;
}

/*
 * Record overflows that began or ended since state @before, including those of a refusing sink and
 * those that the model ends itself.
 */
static void watch(struct cpu *cpu, const struct overflow *before)
{
	for (; cpu->ovfs != cpu->unit.overflows; cpu->ovfs++) {
		if (!cpu->overflow)
			overflow_open(cpu, before);
		overflow_close(cpu);
	}
	if (cpu->unit.in_overflow && !cpu->overflow)
		overflow_open(cpu, before);
}

static struct overflow as_is(const struct cpu *cpu)
{
	return (struct overflow){ .from = cpu->done->insns,
				  .branches = cpu->branches,
				  .traced = packet_en(cpu) };
}

static void overflows(struct cpu *cpu)
{
	if (cpu->overflow && once_in(cpu->m.rng, 30))
		vmpt_unit_overflow_resolve(&cpu->unit, cpu->m.ip);
	else if (!cpu->overflow && cpu->trace_en && !cpu->stopped &&
		 once_in(cpu->m.rng, cpu->set->overflows))
		vmpt_unit_overflow(&cpu->unit);
}

/* ---- a step ---- */

static void tick(struct cpu *cpu, u64 ticks)
{
	cpu->clocks.tsc += ticks;
	cpu->clocks.art = cpu->clocks.tsc / 48;
	cpu->clocks.fast = (u32)(cpu->clocks.tsc % 48);
}

static void pass_time(struct cpu *cpu)
{
	u64 ticks = below(cpu->m.rng, 8);

	if (once_in(cpu->m.rng, 500))
		ticks += below(cpu->m.rng, 5000);
	cpu->clocks.cycles += ticks;
	tick(cpu, ticks);
	vmpt_unit_time(&cpu->unit, &cpu->clocks);
}

/* A P-state change for which the core's clock stops. */
static void change_p_state(struct cpu *cpu)
{
	tick(cpu, below(cpu->m.rng, 5000));
	cpu->clocks.cbr = (u8)(8 + below(cpu->m.rng, 40));
	vmpt_unit_clock_stop(&cpu->unit, cpu->m.ip, &cpu->clocks);
}

static void execute(struct cpu *cpu, const struct program_insn *insn)
{
	u64 next = insn->ip + insn->len;

	/* A software interrupt's FUP has CLIP (Table 33-55): the INT is not shown. */
	if (insn->kind == TG_INT) {
		enter_kernel(cpu, VMPT_FAR_SOFT_INT, insn->ip, next);
		return;
	}
	if (insn->kind == TG_WRMSR) {
		write_msr(cpu, insn);
		cpu->m.ip = next;
		return;
	}
	retired(cpu, insn);
	switch (insn->kind) {
	case TG_SYSCALL:
	case TG_FAR:
	case TG_IRET:
	case TG_SYSRET:
		far_branch(cpu, insn);
		return;
	case TG_MOV_CR3:
		mov_cr3(cpu, next);
		break;
	case TG_PTWRITE4:
	case TG_PTWRITE8:
		vmpt_unit_ptwrite(&cpu->unit, insn->ip, test_random(cpu->m.rng),
				  insn->kind == TG_PTWRITE8 ? 8 : 4);
		break;
	case TG_PUSH:
		machine_push(&cpu->m, machine_address(&cpu->m));
		break;
	case TG_POP:
		machine_pop(&cpu->m);
		break;
	case TG_NOP:
		break;
	default:
		near_branch(cpu, insn);
		return;
	}
	cpu->m.ip = next;
}

static void execute_or_interrupt(struct cpu *cpu)
{
	const struct program_region *r = machine_here(&cpu->m);

	if (once_in(cpu->m.rng, cpu->set->interrupts))
		enter_kernel(cpu, once_in(cpu->m.rng, 2) ? VMPT_FAR_EXCEPTION : VMPT_FAR_INTERRUPT,
			     cpu->m.ip, cpu->m.ip);
	else
		execute(cpu, &r->insn[r->at[cpu->m.ip - r->base]]);
}

static void step(struct cpu *cpu)
{
	struct overflow before = as_is(cpu);

	pass_time(cpu);
	if (once_in(cpu->m.rng, cpu->set->p_states))
		change_p_state(cpu);
	overflows(cpu);
	watch(cpu, &before);
	execute_or_interrupt(cpu);
	watch(cpu, &before);
}

/* Nothing is lost from here on. */
static void finish(struct cpu *cpu)
{
	struct overflow before = as_is(cpu);

	cpu->memory.refuse_every = 0;
	cpu->memory.refuse = 0;
	ck_assert_int_eq(vmpt_unit_flush(&cpu->unit), 0);
	vmpt_unit_overflow_resolve(&cpu->unit, cpu->m.ip);
	watch(cpu, &before);
	/* An OVF that had no room is sent when tracing resumes. */
	if (cpu->overflow && (!cpu->trace_en || cpu->stopped)) {
		if (cpu->trace_en)
			trace_off(cpu, cpu->m.ip, cpu->m.ip);
		trace_on(cpu, cpu->m.ip, cpu->m.ip);
	}
	if (cpu->trace_en)
		trace_off(cpu, cpu->m.ip, cpu->m.ip);
	watch(cpu, &before);
	ck_assert_int_eq(vmpt_unit_flush(&cpu->unit), 0);
	program_memory_collect(&cpu->memory);
}

/* ---- a run ---- */

static void start(struct cpu *cpu)
{
	const struct program_settings *set = cpu->set;
	unsigned int n;

	program_memory_init(&cpu->memory, set, &cpu->unit, cpu->done);
	cpu->m.ip = cpu->m.program->region[PROGRAM_KERNEL].base;
	cpu->m.cr3 = 0x1000;
	cpu->cr3_sent = 0x1000;
	cpu->clocks.tsc = below(cpu->m.rng, 1ULL << 40);
	cpu->clocks.cbr = 24;
	pass_time(cpu);
	cpu->unit.mode = mode_at(cpu, cpu->m.ip, 0);
	program_memory_msrs(&cpu->memory);
	wrmsr(cpu, VMPT_MSR_RTIT_CR3_MATCH, set->cr3_match, 0, 0);
	for (n = 0; n < 2 * VMPT_PT_RANGES_MAX; n++)
		wrmsr(cpu, VMPT_MSR_RTIT_ADDR0_A + n, set->addr[n], 0, 0);
	trace_on(cpu, cpu->m.ip, cpu->m.ip);
}

void program_execute(struct execution *done, const struct program *program,
		     const struct program_settings *settings, struct test_rng *rng)
{
	struct cpu *cpu = calloc(1, sizeof(*cpu));
	unsigned int i;

	ck_assert_ptr_nonnull(cpu);
	memset(done, 0, sizeof(*done));
	cpu->m.program = program;
	cpu->set = settings;
	cpu->m.rng = rng;
	cpu->done = done;
	start(cpu);
	for (i = 0; i < settings->steps && !program_memory_full(&cpu->memory); i++)
		step(cpu);
	finish(cpu);
	free(cpu);
}

void execution_free(struct execution *done)
{
	free(done->insn);
	free(done->overflow);
	free(done->trace);
}
