// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The PC's clocks. A tick of Bochs is an instruction and a cycle: TSC and core clock count
 * ticks, the crystal clock one in a hundred (CPUID.15H, see msr.cc): about as
 * many instructions to an MTC as on silicon. The bus runs at 100 MHz.
 */
#include "clock.h"

static u64 ticks(struct pc_cpu *pc)
{
	u64 now = pc->cpu->exact_ticks();

	/* Timers run while a trace's instructions become ticks. */
	if (now < pc->last_ticks)
		now = pc->last_ticks;
	pc->last_ticks = now;
	return now;
}

/* The clocks at tick @t. */
static void clocks_at(struct pc_cpu *pc, u64 t, struct vmpt_now *now)
{
	now->cycles = t - pc->slept;
	now->tsc = t + (u64)pc->cpu->tsc_adjust;
	now->art = t / PC_TSC_PER_CRYSTAL;
	now->fast = (u32)(t % PC_TSC_PER_CRYSTAL);
	now->cbr = (u8)pc_bus_ratio();
}

static void push(struct pc_cpu *pc, u64 t)
{
	struct vmpt_now now;

	clocks_at(pc, t, &now);
	pc_times_note(pc);
	vmpt_unit_time(&pc->unit, &now);
}

/* An MTC is made when its bit of the crystal clock changes, not at the next event. */
static void pass_edges(struct pc_cpu *pc, u64 t)
{
	const struct vmpt_unit *unit = &pc->unit;
	u64 freq = unit->regs.ctl >> VMPT_CTL_MTC_FREQ_SHIFT & 0xf;
	u64 last = t / PC_TSC_PER_CRYSTAL >> freq;

	/* After too long a gap there is a TSC instead (model/clock.c). */
	if (last - unit->mtc_at > 0xff)
		return;
	for (u64 at = unit->mtc_at + 1; at <= last && unit->trigger_en; at++)
		push(pc, (at << freq) * PC_TSC_PER_CRYSTAL);
}

void pc_time_now(struct pc_cpu *pc)
{
	u64 t = ticks(pc);

	if (pc->unit.trigger_en && pc->unit.regs.ctl & VMPT_CTL_MTC_EN)
		pass_edges(pc, t);
	push(pc, t);
}

void pc_time_sleep(struct pc_cpu *pc)
{
	pc->slept_at = ticks(pc);
}

void pc_time_wake(struct pc_cpu *pc)
{
	u64 t = ticks(pc);

	pc->slept += t - pc->slept_at;
	pc_times_note(pc);
	clocks_at(pc, t, &pc->unit.now);
}

void pc_time(struct pc_cpu *pc)
{
	if (pc->unit.regs.ctl & (VMPT_CTL_TSC_EN | VMPT_CTL_MTC_EN | VMPT_CTL_CYC_EN) || pc->times)
		pc_time_now(pc);
}

u64 pc_tsc_hz(void)
{
	return (u64)SIM->get_param_num(BXPN_IPS)->get();
}

u32 pc_bus_ratio(void)
{
	u64 ratio = pc_tsc_hz() / 100000000;

	return ratio < 1 ? 1 : ratio > 255 ? 255 : (u32)ratio;
}
