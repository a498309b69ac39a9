// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Whether cycle counts follow the packets of a stream (RTIT_CTL.Cycle_Acc). The stream does not
 * say: both readings are tried from PSB to PSB, and the wrong one fails or misses the PSB. A cycle
 * count of up to 31, read as a packet, is a TNT, so more short TNTs than the processor would send
 * are a sign, too: a TNT of less than six branches is only sent right before another packet,
 * because of it (4.2.15).
 */
#include "decoder/rtit/rtit.h"

/* Bytes to search, and by how many stretches a reading must lead. */
#define WINDOW	(1u << 20)
#define STRETCH (64u << 10)
#define ENOUGH	3

/* How well a reading fits a stretch. */
struct fit {
	u64 reached;
	u64 odd; /* TNTs with fewer than six branches right before another TNT */
};

/* [@at, @end) of @data; @open: the last packet need not end at @end. */
static struct fit try(const u8 *data, u64 at, u64 end, bool open, bool cycles)
{
	struct vmpt_rtit_packet pkt;
	bool partial = false, tnt;
	struct fit f = { .reached = at };
	int err;

	while (f.reached < end) {
		err = vmpt_rtit_decode(&pkt, data + f.reached, end - f.reached, cycles);
		if (err == -VMPT_E_TRUNCATED && open)
			f.reached = end;
		if (err)
			return f;
		tnt = pkt.kind == VMPT_RTIT_TNT;
		f.odd += tnt && partial;
		partial = tnt && pkt.tnt.count < VMPT_RTIT_TNT_FULL;
		f.reached += pkt.size;
	}
	return f;
}

/* 1: with cycle counts, -1: without, 0: undecided by this stretch. */
static int stretch_favors(const u8 *data, u64 at, u64 end, bool open)
{
	struct fit without = try(data, at, end, open, false);
	struct fit with = try(data, at, end, open, true);

	if (with.reached != without.reached)
		return with.reached > without.reached ? 1 : -1;
	return (with.odd < without.odd) - (with.odd > without.odd);
}

/* The end of the region that @at lies in. */
static u64 region_end(const struct vmpt_stream *t, u64 at)
{
	size_t i;

	for (i = 0; i < t->gap_count; i++)
		if (t->gaps[i].offset > at && t->gaps[i].offset < t->size)
			return t->gaps[i].offset;
	return t->size;
}

enum vmpt_cycle_acc vmpt_rtit_cycles_guess(const struct vmpt_stream *t, bool headless)
{
	u64 at = headless ? 0 : vmpt_rtit_psb_find(t->data, 0, t->size);
	u64 stop = t->size - at > WINDOW ? at + WINDOW : t->size;
	u64 due, end;
	int votes = 0;

	while (at < stop && votes < ENOUGH && votes > -ENOUGH) {
		due = region_end(t, at);
		if (due - at > STRETCH)
			due = at + STRETCH;
		end = vmpt_rtit_psb_find(t->data, at + 1, due);
		votes += stretch_favors(t->data, at, end, end == due);
		at = vmpt_rtit_psb_find(t->data, end, stop);
	}
	if (!votes)
		return VMPT_CYCLE_ACC_AUTO;
	return votes > 0 ? VMPT_CYCLE_ACC_YES : VMPT_CYCLE_ACC_NO;
}
