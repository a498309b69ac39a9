// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Streams of RTIT; see rtit-streams.h. */
#include <stdlib.h>

#include "tests/decoder/rtit-streams.h"
#include "tests/decoder/streams.h"
#include "util/array.h"

void rtit_bytes(struct rtit_builder *b, const void *bytes, size_t n)
{
	must(!vmpt_reserve(&b->buf, &b->max, b->size + n), "no memory");
	if (n)
		memcpy(b->buf + b->size, bytes, n);
	b->size += n;
}

void rtit_build(struct rtit_builder *b, struct vmpt_rtit_packet *pkt)
{
	bool cycled = pkt->kind == VMPT_RTIT_TNT
			      ? pkt->tnt.count == VMPT_RTIT_TNT_FULL
			      : vmpt_rtit_table[pkt->kind].classes & VMPT_RTIT_CYCLED;
	u8 bytes[VMPT_RTIT_SIZE_MAX];
	int n;

	pkt->flags = b->cycle_acc && cycled ? VMPT_RTIT_CYCLES : 0;
	n = vmpt_rtit_encode(pkt, bytes, sizeof(bytes));
	must(n > 0, "cannot encode a packet of kind %u: %d", pkt->kind, n);
	rtit_bytes(b, bytes, (size_t)n);
}

void rtit_stream_lip(struct rtit_builder *b, unsigned int kind, u64 lip, u32 cycles)
{
	struct vmpt_rtit_packet pkt = { .kind = (u8)kind, .cycles = cycles };

	if (kind == VMPT_RTIT_BUFF_OVF)
		b->last.valid = false;
	vmpt_rtit_lip_compress(&b->last, lip, &pkt);
	rtit_build(b, &pkt);
}

void rtit_stream_psb(struct rtit_builder *b)
{
	struct vmpt_rtit_packet pkt = { .kind = VMPT_RTIT_PSB };

	rtit_build(b, &pkt);
}

static u32 random_cycles(struct test_rng *rng)
{
	static const u8 bits[] = { 0, 3, 6, 7, 14, 15, 22 };

	return (u32)(test_random(rng) & vmpt_mask64(bits[test_random(rng) % 7]));
}

/* Near the last, far, or with zeros above. */
static u64 random_lip(struct rtit_builder *b, struct test_rng *rng)
{
	u64 r = test_random(rng);

	switch (test_random(rng) % 8) {
	case 0:
		b->lip = r & vmpt_mask64(48);
		break;
	case 1:
		b->lip = r & vmpt_mask64(32);
		break;
	case 2:
		b->lip = r & vmpt_mask64(16);
		break;
	case 3:
		b->lip = (b->lip & ~vmpt_mask64(32)) | (r & vmpt_mask64(32));
		break;
	default:
		b->lip = (b->lip & ~vmpt_mask64(16)) | (r & vmpt_mask64(16));
	}
	return b->lip;
}

void rtit_random(struct rtit_builder *b, struct test_rng *rng, unsigned int kind)
{
	struct vmpt_rtit_packet pkt = { .kind = (u8)kind, .cycles = random_cycles(rng) };
	unsigned int i;

	if (vmpt_rtit_table[kind].classes & VMPT_RTIT_HAS_LIP) {
		rtit_stream_lip(b, kind, random_lip(b, rng), pkt.cycles);
		return;
	}
	for (i = 0; i < vmpt_rtit_table[kind].fields; i++)
		pkt.val[i] = test_random(rng) & vmpt_mask64(vmpt_rtit_table[kind].field[i].width);
	if (kind == VMPT_RTIT_TNT) {
		pkt.tnt.count = 1 + test_random(rng) % VMPT_RTIT_TNT_FULL;
		pkt.tnt.bits &= vmpt_mask64((unsigned int)pkt.tnt.count);
	}
	rtit_build(b, &pkt);
}

void rtit_mix(struct rtit_builder *b, struct test_rng *rng, size_t size, size_t psb)
{
	size_t start = b->size, next = b->size;
	unsigned int kind;

	while (b->size - start < size) {
		if (psb && b->size >= next) {
			rtit_stream_psb(b);
			/* Up to 4 packets later (3.3.9). */
			if (test_random(rng) & 1)
				b->last.valid = false;
			next = b->size + psb / 2 + test_random(rng) % (psb + 1);
		}
		kind = VMPT_RTIT_TNT;
		if (!(test_random(rng) & 1))
			kind = VMPT_RTIT_TIP;
		if (!(test_random(rng) % 12))
			kind = (unsigned int)(test_random(rng) % VMPT_RTIT_KINDS);
		if (kind != VMPT_RTIT_PSB)
			rtit_random(b, rng, kind);
	}
}
