// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Time is moved by whole MTC periods, so that the number of MTCs does not change. vmm-lib's TSC
 * rewriter leaves MTC and TMA as they are; with it a run could only be moved by multiples of their
 * range, 2.6 ms, and two busy guests with many short runs would soon be minutes ahead of the clock.
 */
#include "qemu-plugin/host/move.h"

#include <string.h>

#include "arch/pt-packet.h"

#define TSC_MASK ((1ULL << 56) - 1)

static void move_tsc(const struct host_move *move, u8 *p)
{
	u64 tsc = 0;

	memcpy(&tsc, p + 1, 7);
	tsc = (tsc + move->tsc) & TSC_MASK;
	memcpy(p + 1, &tsc, 7);
}

static void move_tma(const struct host_move *move, u8 *p)
{
	u16 ctc;

	memcpy(&ctc, p + 2, 2);
	ctc = (u16)(ctc + move->ticks);
	memcpy(p + 2, &ctc, 2);
}

void host_move_packets(const struct host_move *move, u8 *bytes, size_t n)
{
	struct vmpt_pt_packet pkt;
	size_t at = 0;

	while (at < n) {
		u8 *p = bytes + at;

		/* TNT-8, which is most of a trace: an even byte, but not an extended opcode. */
		if (!(*p & 1) && *p != VMPT_PT_ESCAPE) {
			at++;
			continue;
		}
		if (vmpt_pt_decode(&pkt, p, n - at, 0))
			return; /* not made by us */
		if (pkt.kind == VMPT_PT_TSC)
			move_tsc(move, p);
		else if (pkt.kind == VMPT_PT_TMA)
			move_tma(move, p);
		else if (pkt.kind == VMPT_PT_MTC)
			p[1] = (u8)(p[1] + (move->ticks >> move->mtc_freq));
		at += pkt.size;
	}
}
