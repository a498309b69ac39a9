// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Time in an RTIT unit: MTC (4.2.12), STS (4.2.13), CNTP (3.3.4). It is what was set last. */
#include "model/rtit-emit.h"

static bool less_pkts(const struct vmpt_rtit_unit *unit)
{
	return unit->regs.ctl & VMPT_RTIT_CTL_LESS_PKTS;
}

/* MTC and STS in Table 17. */
static bool timing_sent(const struct vmpt_rtit_unit *unit)
{
	return less_pkts(unit) ? unit->packet_en : unit->trigger_en;
}

/* ---- STS ---- */

static bool sts_sent(const struct vmpt_rtit_unit *unit)
{
	return unit->regs.ctl & VMPT_RTIT_CTL_STS_EN && timing_sent(unit);
}

void vmpt_model_rtit_sts(struct vmpt_rtit_unit *unit)
{
	struct vmpt_rtit_packet pkt = { .kind = VMPT_RTIT_STS };

	if (!sts_sent(unit))
		return;
	pkt.sts.acbr = unit->acbr & 0x3f;
	pkt.sts.ecbr = unit->ecbr & 0x3f;
	pkt.sts.tsc = unit->now.tsc & vmpt_mask64(40);
	vmpt_model_rtit_put(unit, &pkt);
}

void vmpt_model_rtit_sts_on_cr3(struct vmpt_rtit_unit *unit)
{
	if (unit->regs.ctl & VMPT_RTIT_CTL_STS_ON_CR3 && sts_sent(unit) &&
	    vmpt_model_rtit_send_tnt(unit))
		vmpt_model_rtit_sts(unit);
}

void vmpt_rtit_unit_frequency(struct vmpt_rtit_unit *unit, u8 acbr, u8 ecbr)
{
	unit->acbr = acbr;
	unit->ecbr = ecbr;
	vmpt_model_rtit_sts(unit);
}

/* ---- MTC ---- */

static unsigned int mtc_range(const struct vmpt_rtit_unit *unit)
{
	return (unsigned int)((unit->regs.ctl & VMPT_RTIT_CTL_MTC_RANGE) >>
			      VMPT_RTIT_CTL_MTC_RANGE_SHIFT);
}

/* The counter whose low 8 bits an MTC has. */
static u64 mtc_counter(const struct vmpt_rtit_unit *unit)
{
	return unit->now.tsc >> (7 + 2 * mtc_range(unit));
}

void vmpt_model_rtit_mtc_restart(struct vmpt_rtit_unit *unit)
{
	unit->mtc_at = mtc_counter(unit);
}

static void send_mtc(struct vmpt_rtit_unit *unit, u64 counter)
{
	struct vmpt_rtit_packet pkt = { .kind = VMPT_RTIT_MTC };

	pkt.mtc.rng = mtc_range(unit);
	pkt.mtc.tsc = counter & 0xff;
	vmpt_model_rtit_put(unit, &pkt);
}

/* Limit of changes that are sent one by one: after more the 8 bits are ambiguous. */
#define MTC_MAX 255

static void pass_mtcs(struct vmpt_rtit_unit *unit)
{
	u64 now = mtc_counter(unit);

	if (!(unit->regs.ctl & VMPT_RTIT_CTL_MTC_EN) || !timing_sent(unit)) {
		unit->mtc_at = now;
		return;
	}
	/* E7: the first one comes without a change. */
	if (unit->mtc_first && rtit_erratum(unit, 7))
		send_mtc(unit, unit->mtc_at);
	unit->mtc_first = false;
	if (now - unit->mtc_at > MTC_MAX)
		unit->mtc_at = now - 1;
	while (unit->mtc_at != now)
		send_mtc(unit, ++unit->mtc_at);
}

/* ---- CNTP ---- */

/* By Table 17, with LESS_PKTS it counts in more states than without. */
static bool counts_cycles(const struct vmpt_rtit_unit *unit)
{
	return less_pkts(unit) == unit->config.options.cycle_rows_exchanged
		       ? unit->packet_en
		       : unit->trigger_en && unit->context_en;
}

static void push(struct vmpt_rtit_unit *unit, const struct vmpt_rtit_clocks *now)
{
	u64 cycles = now->cycles - unit->cycles_at;

	unit->now = *now;
	unit->cycles_at = now->cycles;
	if (counts_cycles(unit))
		unit->regs.cntp = (unit->regs.cntp + cycles) & VMPT_RTIT_CNTP_MASK;
	if (rtit_pcc_due(unit))
		unit->plain = false;
}

void vmpt_rtit_unit_time(struct vmpt_rtit_unit *unit, const struct vmpt_rtit_clocks *now)
{
	push(unit, now);
	pass_mtcs(unit);
}

void vmpt_rtit_unit_wake(struct vmpt_rtit_unit *unit, const struct vmpt_rtit_clocks *now)
{
	push(unit, now);
	vmpt_model_rtit_mtc_restart(unit);
	vmpt_model_rtit_sts(unit);
}
