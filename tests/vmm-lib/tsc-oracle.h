/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * For the tests and the fuzz target of TSC rewriting: random streams made packet by packet
 * with arch's encoder, and the rewrite of a whole stream by arch's decoder, packet by
 * packet, with arithmetic of its own.
 */
#ifndef VMPT_TESTS_TSC_ORACLE_H
#define VMPT_TESTS_TSC_ORACLE_H

#include "vmm-lib/tsc.h"

/* What the oracle saw. */
struct tsc_oracle {
	u64 packets, tscs, tmas, errors;
};

/*
 * The stream @in of @len bytes, from a packet's start outside of a block: @out, a copy of it,
 * gets the packets that end behind @from rewritten. Only those are counted, but for errors.
 */
void tsc_oracle(struct tsc_oracle *sum, const struct vmpt_tsc_change *change, const u8 *in, u8 *out,
		size_t from, size_t len);

/* What a stream holds, in steps of a thousandth of its packets. */
struct tsc_mix {
	unsigned int psb, tsc, block, error;
	bool tsc_bytes; /* payloads full of 19H, 02H and other headers */
};

/*
 * Fill @buf with random packets of all kinds; the last one may be cut. Random numbers by
 * xorshift from *@rng, not 0.
 */
void tsc_stream(u8 *buf, size_t len, const struct tsc_mix *mix, u64 *rng);

/*
 * Rewrite @buf as vmpt_tsc_rewrite() does, but laid out in pages that lie anywhere, some side
 * by side, through vmpt_tsc_rewrite_view() and vmpt_tsc_rewrite() in turn. Returns the bytes that
 * the former did.
 */
size_t tsc_in_pages(struct vmpt_tsc_scan *scan, const struct vmpt_tsc_change *change, u8 *buf,
		    size_t len, u64 *rng);

#endif
