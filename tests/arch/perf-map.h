/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How perf's packet decoder describes what ours decodes. Compiled at test time only, with perf's
 * own header from the package linux-source (see perf-check.sh).
 */
#ifndef VMPT_TESTS_ARCH_PERF_MAP_H
#define VMPT_TESTS_ARCH_PERF_MAP_H

#include "arch/pt-packet.h"
#include "intel-pt-decoder/intel-pt-pkt-decoder.h"

/* A packet as perf has it, and which of its bits matter. */
struct perf_view {
	struct intel_pt_pkt pkt;
	u64 payload_mask;
	int count_mask;
	int size; /* with the following PADs that perf includes */
};

/* What perf should return for @pkt, which we decoded from the @len bytes at @buf. */
void perf_view_of(struct perf_view *view, const struct vmpt_pt_packet *pkt, const u8 *buf,
		  size_t len);

/* Whether @perf is @view; @size is what intel_pt_get_packet() returned. */
bool perf_view_is(const struct perf_view *view, const struct intel_pt_pkt *perf, int size);

/* Our block context for perf's, of BBP type 0, and perf's for ours. */
unsigned int perf_block_of(enum intel_pt_pkt_ctx ctx);
enum intel_pt_pkt_ctx perf_ctx_of(unsigned int block);

#endif
