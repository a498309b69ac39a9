// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RTIT's trace units in the flow. Nothing here is called while none is attached.
 */
#include "qemu-plugin/flow/rtit.h"

#include "model/rtit-fast.h"
#include "qemu-plugin/flow/mode.h"
#include "qemu-plugin/flow/vcpu.h"

/* NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define FOR_RTITS(vcpu, u) for (unsigned int u = 0; u < (vcpu)->rtits; u++)

struct vmpt_rtit_mode rtit_mode(const struct vcpu *vcpu)
{
	return (struct vmpt_rtit_mode){ .cr3 = vcpu->mode.cr3,
					.cpl = vcpu->mode.cpl,
					.paging = mode_paged(vcpu) };
}

/* ---- time ---- */

/*
 * The clock is read every few microseconds. If this many ticks pass between two reads, the vCPU did
 * not execute, because its thread waited for a host CPU or nothing was traced: as if it slept.
 */
#define STALL (1U << 20)

void rtit_clocks(struct vcpu *vcpu, struct vmpt_rtit_clocks *now)
{
	struct vmpt_now clocks;

	/* The hardware's TSC, without a VMCS's offset and TSC_ADJUST (4.2.12, 4.2.13). */
	clock_read(&vcpu->plugin->clock, &clocks);
	if (!vcpu->asleep && clocks.tsc - vcpu->last_clock > STALL)
		vcpu->slept += clocks.tsc - vcpu->last_clock;
	vcpu->last_clock = clocks.tsc;
	now->tsc = clocks.tsc;
	now->cycles = clocks.tsc - vcpu->slept;
}

void rtit_time(struct vmpt_rtit_unit *unit, const struct vmpt_rtit_clocks *now)
{
	u64 period = 1ULL << rtit_mtc_shift(unit->regs.ctl);
	struct vmpt_rtit_clocks at = unit->now;
	u64 ticks = now->tsc - at.tsc;

	if (ticks != now->cycles - at.cycles) {
		vmpt_rtit_unit_wake(unit, now);
		return;
	}
	if (unit->trigger_en && unit->regs.ctl & VMPT_RTIT_CTL_MTC_EN) {
		for (ticks = period - at.tsc % period; at.tsc + ticks < now->tsc; ticks = period) {
			at.tsc += ticks;
			at.cycles += ticks;
			vmpt_rtit_unit_time(unit, &at);
		}
	}
	vmpt_rtit_unit_time(unit, now);
}

/* Returns the TSC. */
static u64 push_time(struct vcpu *vcpu)
{
	struct vmpt_rtit_clocks now;

	rtit_clocks(vcpu, &now);
	FOR_RTITS (vcpu, u)
		rtit_time(vcpu->rtit[u], &now);
	return now.tsc;
}

/* ---- steps ---- */

/* Whether @lip, 48 bits of a register, is in (@from, @to]. */
static bool between(u64 lip, u64 from, u64 to)
{
	return ((lip - from - 1) & VMPT_RTIT_LIP_MASK) < to - from;
}

static bool any_between(const struct vmpt_rtit_unit *unit, u64 from, u64 to)
{
	bool any = false;

	for (unsigned int i = 0; i < VMPT_ARRAY_SIZE(unit->regs.lip); i++)
		any |= between(unit->regs.lip[i], from, to);
	return any;
}

/* Report to @unit the ends of instructions that are a base or a limit of a range. */
static void walk(const struct vcpu *vcpu, struct vmpt_rtit_unit *unit, u64 from, u64 to)
{
	const struct block_code *code = vcpu->block->code;
	u64 at = vcpu->block->start + vcpu->delta;

	for (u32 i = 0; i < code->count && at < to; i++) {
		at += code->lengths[i];
		if (at > from && at <= to && any_between(unit, at - 1, at))
			vmpt_rtit_unit_step(unit, at);
	}
}

void rtit_steps(struct vcpu *vcpu, u64 ip)
{
	const struct block *block = vcpu->block;
	u64 start, from = vcpu->walked;

	if (!block || !block->code)
		return;
	start = block->start + vcpu->delta;
	/* Outside the block: the event in between has reported the rest. */
	if (from == RTIT_WALKED || ip - start > block->end - block->start || ip <= from)
		return;
	vcpu->walked = ip;
	FOR_RTITS (vcpu, u) {
		if (vcpu->rtit[u]->walk && any_between(vcpu->rtit[u], from, ip))
			walk(vcpu, vcpu->rtit[u], from, ip);
	}
}

/* ---- branches ---- */

static void end_one(struct vmpt_rtit_unit *unit, const struct vcpu *vcpu, unsigned int kind,
		    u64 next, u64 ip)
{
	switch (kind) {
	case INSN_JCC:
		vmpt_rtit_unit_jcc_fast(unit, ip != next, next, ip);
		break;
	case INSN_JMP:
		vmpt_rtit_unit_jmp(unit, next, ip);
		break;
	case INSN_CALL:
		vmpt_rtit_unit_call(unit, next, ip);
		break;
	case INSN_JMP_IND:
		vmpt_rtit_unit_jmp_indirect(unit, next, ip);
		break;
	case INSN_CALL_IND:
		vmpt_rtit_unit_call_indirect(unit, next, ip);
		break;
	case INSN_RET:
		vmpt_rtit_unit_ret(unit, next, ip);
		break;
	case INSN_MOV_CR3:
		vmpt_rtit_unit_mov_cr3(unit, next, vcpu->mode.cr3);
		break;
	case INSN_MODE:
		/* Whichever register it was: a packet is made if CR0.PG has changed. */
		vmpt_rtit_unit_mov_cr0(unit, next, mode_paged(vcpu));
		vmpt_rtit_unit_step(unit, next);
		break;
	default:
		break;
	}
}

void rtit_end(struct vcpu *vcpu, const struct block *done, u64 ip)
{
	u64 next = done->end + vcpu->delta;

	rtit_steps(vcpu, done->last + vcpu->delta);
	/* Its STS has the time (4.2.13). */
	if (done->kind == INSN_MOV_CR3)
		push_time(vcpu);
	FOR_RTITS (vcpu, u)
		end_one(vcpu->rtit[u], vcpu, done->kind, next, ip);
	vcpu->walked = RTIT_WALKED;
}

/* ---- far transfers and events ---- */

static bool is_prefix(u8 byte, bool wide)
{
	static const u8 prefixes[] = { 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65,
				       0x66, 0x67, 0xf0, 0xf2, 0xf3 };

	for (unsigned int i = 0; i < sizeof(prefixes); i++) {
		if (byte == prefixes[i])
			return true;
	}
	return wide && (byte & 0xf0) == 0x40;
}

/* Of the block's last instruction. */
static u8 count_prefixes(const struct block *block, bool wide)
{
	const struct block_code *code = block->code;
	u8 length = code ? code->lengths[code->count - 1] : 0, n = 0;

	while (n < length && is_prefix(code->bytes[code->size - length + n], wide))
		n++;
	return n;
}

void rtit_far(struct vcpu *vcpu, const struct vmpt_far *far)
{
	const struct block *block = vcpu->block;
	struct vmpt_rtit_far what = { .ip = far->ip, .target = far->target };

	what.mode = rtit_mode(vcpu);
	/* far->ip is in the block, unless execution was elsewhere. */
	rtit_steps(vcpu, far->ip);
	switch (far->kind) {
	case VMPT_FAR_BRANCH:
	case VMPT_FAR_IRET:
	case VMPT_FAR_TASK:
	case VMPT_FAR_SOFT_INT:
		/* Table 1: the address after an instruction; for a fault its own address. */
		what.is_insn = true;
		what.insn = block->last + vcpu->delta;
		what.ip = block->end + vcpu->delta;
		what.prefixes = count_prefixes(block, vcpu->cpu.cs_l);
		break;
	default:
		break;
	}
	FOR_RTITS (vcpu, u)
		vmpt_rtit_unit_far(vcpu->rtit[u], &what);
	vcpu->walked = RTIT_WALKED;
}

/* ---- sleep ---- */

void rtit_sleeps(struct vcpu *vcpu)
{
	/* QEMU reports it again after each kick that did not make the vCPU execute. */
	if (vcpu->asleep)
		return;
	vcpu->slept_from = push_time(vcpu);
	vcpu->asleep = true;
}

void rtit_wakes(struct vcpu *vcpu)
{
	struct vmpt_rtit_clocks now;

	rtit_clocks(vcpu, &now);
	vcpu->asleep = false;
	vcpu->slept += now.tsc - vcpu->slept_from;
	now.cycles -= now.tsc - vcpu->slept_from;
	FOR_RTITS (vcpu, u)
		vmpt_rtit_unit_wake(vcpu->rtit[u], &now);
}
