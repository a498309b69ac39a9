// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Timing packets: TSC, TMA, CBR, MTC, CYC (SDM 3 33.3.6, 33.4.2.10 to 33.4.2.14, 33.8.3).
 * Time is what the caller set last.
 */
#include "model/emit.h"

/* The TSC as RDTSC returns it now: with offset and scaling in non-root operation (33.8.3.3). */
static u64 tsc_now(const struct vmpt_unit *unit)
{
	u64 tsc = unit->now.tsc;

	if (!unit->vmx.nonroot)
		return tsc;
	if (unit->vmx.tsc_multiplier)
		tsc = (u64)((unsigned __int128)tsc * unit->vmx.tsc_multiplier >> 48);
	return tsc + unit->vmx.tsc_offset;
}

void vmpt_model_emit_time(struct vmpt_unit *unit)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_TSC };

	if (!(unit->regs.ctl & VMPT_CTL_TSC_EN))
		return;
	pkt.tsc.tsc = tsc_now(unit) & vmpt_mask64(56);
	vmpt_model_emit(unit, &pkt);
	if (!(unit->regs.ctl & VMPT_CTL_MTC_EN))
		return;
	memset(&pkt, 0, sizeof(pkt));
	pkt.kind = VMPT_PT_TMA;
	pkt.tma.ctc = unit->now.art & 0xffff;
	pkt.tma.fast_counter = unit->now.fast > 0x1ff ? 0x1ff : unit->now.fast;
	vmpt_model_emit(unit, &pkt);
}

void vmpt_model_emit_cbr(struct vmpt_unit *unit)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_CBR };

	pkt.cbr.ratio = unit->now.cbr;
	vmpt_model_emit(unit, &pkt);
}

/* Cycles that must pass between two CYCs (33.3.6.3). */
static u64 threshold(const struct vmpt_unit *unit)
{
	unsigned int t = (unsigned int)(unit->regs.ctl >> VMPT_CTL_CYC_THRESH_SHIFT) & 0xf;

	return t ? 1ULL << (t - 1) : 0;
}

static void send_cyc(struct vmpt_unit *unit, u64 cycles)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_CYC };

	pkt.cyc.cycles = cycles;
	unit->cyc_at = unit->now.cycles;
	vmpt_model_emit(unit, &pkt);
}

void vmpt_model_cyc(struct vmpt_unit *unit)
{
	u64 cycles = unit->now.cycles - unit->cyc_at;

	/* At most one per cycle, none before the threshold, none in an overflow (33.3.8.2). */
	if (!unit->in_overflow && cycles && cycles >= threshold(unit))
		send_cyc(unit, cycles);
}

void vmpt_unit_cyc(struct vmpt_unit *unit)
{
	u64 cycles = unit->now.cycles - unit->cyc_at;

	if (unit->trigger_en && !unit->in_overflow && unit->regs.ctl & VMPT_CTL_CYC_EN && cycles) {
		vmpt_model_flush_tnt(unit);
		send_cyc(unit, cycles);
	}
}

/* Limit of missed MTCs: a longer gap is bridged by TSC and TMA. */
#define MTC_MAX 255

static void send_mtcs(struct vmpt_unit *unit)
{
	unsigned int freq = (unsigned int)(unit->regs.ctl >> VMPT_CTL_MTC_FREQ_SHIFT) & 0xf;
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_MTC };
	u64 now = unit->now.art >> freq;

	if (now - unit->mtc_at > MTC_MAX) {
		unit->mtc_at = now;
		vmpt_model_emit_time(unit);
		return;
	}
	while (unit->mtc_at != now && unit->trigger_en) {
		pkt.mtc.ctc = ++unit->mtc_at & 0xff;
		vmpt_model_emit(unit, &pkt);
	}
}

void vmpt_model_pass_time(struct vmpt_unit *unit, const struct vmpt_now *now)
{
	unit->now = *now;
	if (unit->trigger_en && unit->regs.ctl & VMPT_CTL_MTC_EN)
		send_mtcs(unit);
}

void vmpt_unit_time(struct vmpt_unit *unit, const struct vmpt_now *now)
{
	vmpt_model_pass_time(unit, now);
	if (unit->trigger_en)
		unit_after_no_ip(unit);
}

void vmpt_unit_frequency(struct vmpt_unit *unit, u8 cbr)
{
	unit->now.cbr = cbr;
	if (unit->trigger_en)
		vmpt_model_emit_cbr(unit);
}

void vmpt_unit_clock_resumed(struct vmpt_unit *unit)
{
	unsigned int freq = (unsigned int)(unit->regs.ctl >> VMPT_CTL_MTC_FREQ_SHIFT) & 0xf;

	if (!unit->trigger_en)
		return;
	unit->mtc_at = unit->now.art >> freq;
	vmpt_model_emit_time(unit);
	vmpt_model_emit_cbr(unit);
}
