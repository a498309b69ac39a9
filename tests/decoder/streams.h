/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Streams for tests of the decoder: built packet by packet, of all kinds, and placed so that
 * reading the first byte after them faults.
 */
#ifndef VMPT_TESTS_STREAMS_H
#define VMPT_TESTS_STREAMS_H

#include "arch/pt-packet.h"
#include "decoder/vmpt-decode.h"
#include "tests/support/support.h"

/* Fail if @cond is false. Check's own asserts write a file each time they hold. */
#define must(cond, ...)                            \
	do {                                       \
		if (!(cond))                       \
			ck_abort_msg(__VA_ARGS__); \
	} while (0)

/* Bytes that end at the end of a page, and a page that faults. */
struct room {
	u8 *map, *data;
	size_t map_size, size;
};

void room_copy(struct room *r, const u8 *bytes, size_t size);
void room_close(struct room *r);

/* A growing buffer that packets are encoded into. All 0 to start; free(buf). */
struct builder {
	u8 *buf;
	size_t size, max;
	unsigned int block;
};

void build_bytes(struct builder *b, const void *bytes, size_t n);
void build(struct builder *b, struct vmpt_pt_packet *pkt);
/* A packet of @kind, all values 0. */
void build_kind(struct builder *b, unsigned int kind);
/* A packet of @kind with random values. */
void build_random(struct builder *b, struct test_rng *rng, unsigned int kind);
/* At least @size bytes of all kinds, a PSB every @psb bytes on average; 0: none. */
void build_mix(struct builder *b, struct test_rng *rng, size_t size, size_t psb);

/* Overwrite, move and fill some of the @size bytes, which are at least one. */
void damage_bytes(u8 *bytes, size_t size, struct test_rng *rng);

#define GAPS_MAX 6
/* Gaps in a stream of @size bytes, sorted, some at one offset; returns how many, 0 half of the
 * time. */
size_t random_gaps(struct vmpt_gap gaps[GAPS_MAX], size_t size, struct test_rng *rng);

#endif
