// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The generator of synthetic RTIT streams; see rtit-synth.h. */
#include "bench/rtit-synth.h"

#define PSB_BYTES 4096
#define MODULES	  3

struct gen {
	u8 *buf;
	size_t at, size;
	size_t psb, vm; /* of the last PSB, the last VM entry */
	u64 rng;
	bool cycle_acc;
	struct vmpt_rtit_last_lip last;
	u64 lip[MODULES];
	unsigned int module;
	u64 tsc;
	unsigned int since_mtc;
	u64 *entries;
	struct rtit_synth_counts *counts;
	int err;
};

static u64 rnd(struct gen *g, u64 below)
{
	g->rng ^= g->rng << 13;
	g->rng ^= g->rng >> 7;
	g->rng ^= g->rng << 17;
	return (g->rng >> 20) % below;
}

static void put(struct gen *g, struct vmpt_rtit_packet *pkt)
{
	bool cycled = pkt->kind == VMPT_RTIT_TNT
			      ? pkt->tnt.count == VMPT_RTIT_TNT_FULL
			      : vmpt_rtit_table[pkt->kind].classes & VMPT_RTIT_CYCLED;
	u64 r = rnd(g, 100);
	int n;

	if (g->cycle_acc && cycled) {
		pkt->flags = VMPT_RTIT_CYCLES;
		pkt->cycles = (u32)(r < 10   ? 0
				    : r < 75 ? rnd(g, 64)
				    : r < 97 ? rnd(g, 1 << 14)
					     : rnd(g, 1 << 21));
		g->counts->items++;
	}
	n = vmpt_rtit_encode(pkt, g->buf + g->at, g->size - g->at);
	if (n < 0) {
		g->err = n;
		return;
	}
	g->at += (size_t)n;
	g->counts->items++;
	g->counts->kind[pkt->kind]++;
	g->tsc += 8;
	g->since_mtc++;
}

static void put_lip(struct gen *g, unsigned int kind, u64 lip)
{
	struct vmpt_rtit_packet pkt = { .kind = (u8)kind };

	if (kind == VMPT_RTIT_BUFF_OVF)
		g->last.valid = false;
	vmpt_rtit_lip_compress(&g->last, lip, &pkt);
	put(g, &pkt);
}

/* A nearby address in the module. */
static u64 step(struct gen *g)
{
	u64 *lip = &g->lip[g->module];

	*lip = (*lip & ~0xffffULL) | rnd(g, 0x10000);
	if (!rnd(g, 24))
		*lip = (*lip & ~0xffffffULL) | rnd(g, 0x1000000);
	return *lip;
}

static void put_tnt(struct gen *g, unsigned int count)
{
	struct vmpt_rtit_packet pkt = { .kind = VMPT_RTIT_TNT };

	pkt.tnt.count = count;
	pkt.tnt.bits = rnd(g, 1u << count);
	put(g, &pkt);
}

/* Branches before an event that sends the rest of them. */
static void branches(struct gen *g)
{
	u64 n = rnd(g, 4) ? rnd(g, 2) : rnd(g, 9);

	while (n--)
		put_tnt(g, VMPT_RTIT_TNT_FULL);
	if (rnd(g, 6))
		put_tnt(g, (unsigned int)(1 + rnd(g, 5)));
}

static void put_sts(struct gen *g)
{
	struct vmpt_rtit_packet pkt = { .kind = VMPT_RTIT_STS };

	pkt.sts.acbr = pkt.sts.ecbr = 16;
	pkt.sts.tsc = g->tsc & vmpt_mask64(40);
	put(g, &pkt);
}

static void switch_program(struct gen *g)
{
	struct vmpt_rtit_packet pkt = { .kind = VMPT_RTIT_PIP };

	branches(g);
	pkt.pip.pg = 1;
	pkt.pip.cr3 = 0x1000 * (1 + rnd(g, 40));
	put(g, &pkt);
	put_sts(g);
}

/* An interrupt or a system call, or the return from it. */
static void far(struct gen *g)
{
	branches(g);
	put_lip(g, VMPT_RTIT_FAR, step(g));
	g->module = (unsigned int)rnd(g, MODULES);
	put_lip(g, VMPT_RTIT_TIP, step(g));
}

static void entry(struct gen *g)
{
	if (g->entries)
		g->entries[g->counts->entries] = g->at;
	g->counts->entries++;
	g->vm = g->at;
	g->module = (unsigned int)rnd(g, MODULES);
	put_lip(g, VMPT_RTIT_PGE, step(g));
}

static void exit_and_entry(struct gen *g)
{
	branches(g);
	put_lip(g, VMPT_RTIT_PGD, step(g));
	entry(g);
}

static void timing(struct gen *g)
{
	struct vmpt_rtit_packet pkt = { .kind = VMPT_RTIT_MTC };

	pkt.mtc.rng = 1;
	pkt.mtc.tsc = g->tsc >> 9 & 0xff;
	put(g, &pkt);
	g->since_mtc = 0;
}

static void event(struct gen *g)
{
	u64 r = rnd(g, 10000);

	if (g->at - g->vm >= RTIT_SYNTH_VM_BYTES) {
		exit_and_entry(g);
	} else if (r < 9800) {
		branches(g);
		put_lip(g, VMPT_RTIT_TIP, step(g));
	} else if (r < 9960) {
		far(g);
	} else if (r < 9990) {
		switch_program(g);
	} else if (r < 9992) {
		put_lip(g, VMPT_RTIT_BUFF_OVF, step(g));
	} else if (g->cycle_acc) {
		put_lip(g, VMPT_RTIT_PCC, step(g));
	}
	if (g->since_mtc >= 30)
		timing(g);
}

int rtit_synth_generate(u8 *buf, size_t size, u64 seed, bool cycle_acc, u64 *entries,
			struct rtit_synth_counts *counts)
{
	struct gen g = {
		.buf = buf,
		.size = size,
		.rng = seed * 0x9e3779b97f4a7c15ULL + 1,
		.cycle_acc = cycle_acc,
		.entries = entries,
		.counts = counts,
	};
	struct vmpt_rtit_packet psb = { .kind = VMPT_RTIT_PSB };
	struct vmpt_rtit_packet stop = { .kind = VMPT_RTIT_TRACESTOP };

	g.lip[0] = 0x400000;
	g.lip[1] = 0x7f1234560000;
	g.lip[2] = 0xffff81000000;
	memset(counts, 0, sizeof(*counts));
	put(&g, &psb);
	entry(&g);
	put_sts(&g);
	while (g.size - g.at >= 256 && !g.err) {
		event(&g);
		if (g.at - g.psb >= PSB_BYTES) {
			g.psb = g.at;
			put(&g, &psb);
			g.last.valid = false;
		}
	}
	/* To the last byte. */
	while (g.at < g.size && !g.err)
		put(&g, &stop);
	return g.err;
}
