/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * For the tests and the fuzz target of TSC rewriting: random streams made packet by packet
 * with arch's encoder, and the rewrite of a whole stream by arch's decoder, packet by
 * packet, with arithmetic of its own.
 */
#ifndef VMPT_TESTS_TSC_ORACLE_H
#define VMPT_TESTS_TSC_ORACLE_H

#include "vmm-lib/tsc.h"

/* What the oracle counted. */
struct tsc_oracle {
	u64 packets, tscs, tmas, errors, lost_bytes;
};

/*
 * Rewrite the stream @in of @len bytes, which starts at a packet outside a block: in @out, a copy
 * of it, the packets that end after @from are rewritten. Only those are counted, except for errors.
 * What is no packet is overwritten up to the next PSB, but for bytes at the end that may begin one.
 */
void tsc_oracle(struct tsc_oracle *sum, const struct vmpt_tsc_change *change, const u8 *in, u8 *out,
		size_t from, size_t len);

/* Contents of a stream, in thousandths of its packets. */
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
 * Rewrite @buf as vmpt_tsc_rewrite() does, but laid out in scattered pages, some adjacent, through
 * vmpt_tsc_rewrite_view() and vmpt_tsc_rewrite() in turn. Returns the number of bytes rewritten by
 * the former.
 */
size_t tsc_in_pages(struct vmpt_tsc_scan *scan, const struct vmpt_tsc_change *change, u8 *buf,
		    size_t len, u64 *rng);

#endif
