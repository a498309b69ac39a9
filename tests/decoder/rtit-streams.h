/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Streams of RTIT for tests of the decoder, packet by packet, as streams.h for PT. */
#ifndef VMPT_TESTS_RTIT_STREAMS_H
#define VMPT_TESTS_RTIT_STREAMS_H

#include "arch/rtit-packet.h"
#include "tests/support/support.h"

/* A growing buffer that packets are encoded into. All 0 to start; free(buf). */
struct rtit_builder {
	u8 *buf;
	size_t size, max;
	bool cycle_acc;
	struct vmpt_rtit_last_lip last;
	u64 lip;
};

void rtit_bytes(struct rtit_builder *b, const void *bytes, size_t n);
/* Encode @pkt, with its cycles if the mode has them. */
void rtit_build(struct rtit_builder *b, struct vmpt_rtit_packet *pkt);
/* A packet of @kind, with random values; LIPs vary and are compressed (Table 18). */
void rtit_random(struct rtit_builder *b, struct test_rng *rng, unsigned int kind);
/* TIP or FUP.* of @kind to @lip, compressed against the last, +@cycles. */
void rtit_stream_lip(struct rtit_builder *b, unsigned int kind, u64 lip, u32 cycles);
void rtit_stream_psb(struct rtit_builder *b);
/* At least @size bytes, mostly TNTs, with a PSB after every @psb bytes; 0: none. */
void rtit_mix(struct rtit_builder *b, struct test_rng *rng, size_t size, size_t psb);

#endif
