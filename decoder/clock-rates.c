// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The rates of the clocks: told by a perf.data, or found in a trace's TSC, TMA and MTC packets
 * (SDM 3 33.8.3).
 */
#include "arch/pt-regs.h"
#include "decoder/vmpt-clock.h"

void vmpt_rates_from_info(struct vmpt_rates *rates, const struct vmpt_trace_info *info)
{
	if (info->tsc_ctc_numerator && info->tsc_ctc_denominator) {
		rates->tsc_num = info->tsc_ctc_numerator;
		rates->tsc_den = info->tsc_ctc_denominator;
	}
	if (info->max_nonturbo_ratio && info->max_nonturbo_ratio < 256)
		rates->nominal = info->max_nonturbo_ratio;
	if (info->has_config && info->config & VMPT_CTL_MTC_EN && info->mtc_freq_bits_shift < 61) {
		rates->mtc_freq = info->config >> info->mtc_freq_bits_shift & 0xf;
		rates->has_mtc_freq = true;
	}
}
