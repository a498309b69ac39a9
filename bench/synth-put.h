/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the generators of PT streams share: chance, and packets that are encoded and counted.
 * synth.c and shapes.c say what is written.
 */
#ifndef VMPT_BENCH_SYNTH_PUT_H
#define VMPT_BENCH_SYNTH_PUT_H

#include "bench/synth.h"

/* A stream that is being written. */
struct synth {
	u8 *out;
	size_t at, size, psb_at;
	u64 rng;
	bool libipt_kinds;
	struct synth_counts *counts;
	int err; /* the first error of the encoder */

	u64 last_ip;
	unsigned int block;
	u64 tsc;
	u8 ratio;

	unsigned int now;     /* index of the one that runs */
	unsigned int guest;   /* index of the one whose VMCS is loaded */
	unsigned int process; /* of the one that runs: another CR3 */
};

/* ---- chance ---- */

/* xorshift64*; the seed must not be 0 */
static inline u64 draw(struct synth *s)
{
	s->rng ^= s->rng >> 12;
	s->rng ^= s->rng << 25;
	s->rng ^= s->rng >> 27;
	return s->rng * 0x2545f4914f6cdd1dULL;
}

/* 0 to @n - 1 */
static inline unsigned int below(struct synth *s, unsigned int n)
{
	return (unsigned int)(((draw(s) >> 32) * n) >> 32);
}

static inline bool chance(struct synth *s, unsigned int percent)
{
	return below(s, 100) < percent;
}

/* ---- packets ---- */

static inline void put(struct synth *s, struct vmpt_pt_packet pkt)
{
	int n;

	if (s->err)
		return;
	n = vmpt_pt_encode(&pkt, s->out + s->at, s->size - s->at, s->block);
	if (n < 0) {
		s->err = n;
		return;
	}
	s->block = vmpt_pt_block_after(&pkt, s->block);
	s->at += (size_t)n;
	s->counts->packets++;
	s->counts->kind[pkt.kind]++;
	if (vmpt_pt_table[pkt.kind].classes & VMPT_PT_HAS_IP)
		s->counts->ipbytes[pkt.ip.ipbytes]++;
	if (pkt.kind == VMPT_PT_CYC)
		s->counts->cyc_size[n]++;
}

/* A packet of @kind with up to three values in the order of its fields. */
static inline void put_values(struct synth *s, enum vmpt_pt_kind kind, u64 a, u64 b, u64 c)
{
	put(s, (struct vmpt_pt_packet){ .kind = (u8)kind, .val = { a, b, c } });
}

static inline void put_kind(struct synth *s, enum vmpt_pt_kind kind)
{
	put_values(s, kind, 0, 0, 0);
}

static inline void put_ip(struct synth *s, enum vmpt_pt_kind kind, u64 ip)
{
	unsigned int ipbytes = vmpt_pt_ip_compress(s->last_ip, ip);

	put_values(s, kind, ipbytes, vmpt_pt_ip_payload(ip, ipbytes), 0);
	s->last_ip = ip;
}

/* A CYC of @bits: 5, 12, 19 or 26 are 1 to 4 bytes. */
static inline void put_cycles(struct synth *s, unsigned int bits)
{
	u64 cycles = draw(s) & vmpt_mask64(bits);

	/* The top bit makes the packet as long as intended. */
	if (bits > 5)
		cycles |= 1ULL << (bits - 1);
	put_values(s, VMPT_PT_CYC, cycles, 0, 0);
	s->tsc += cycles;
}

static inline void put_tnt(struct synth *s, enum vmpt_pt_kind kind, unsigned int count)
{
	put_values(s, kind, draw(s) & vmpt_mask64(count), count, 0);
}

#endif
