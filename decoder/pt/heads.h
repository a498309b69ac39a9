/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Kind and size of a packet from its first two bytes, for walks over a few
 * packets (PSB+, groups) that need no payload. The tables are made from the
 * packet table at build time (heads-gen.c), so that opening a decoder is cheap.
 */
#ifndef VMPT_DECODER_HEADS_H
#define VMPT_DECODER_HEADS_H

#include "arch/pt-packet.h"

#define VMPT_HEAD_NONE 0xff

/* By the first two bytes as a number; VMPT_HEAD_NONE: two bytes do not determine it. */
extern const u8 vmpt_head_kind[65536];
extern const u8 vmpt_head_size[65536];

/*
 * Where bytes are missing, the packet before the gap takes its last bytes from what follows it. If
 * that is a PSB, what is left of it is no packet. Given a boundary @at of packets in a region that
 * ends at @end: the offset of the PSB that begins after @from, before @at, and ends after @at; or 0
 * if there is none. The payload of a whole packet may end like the start of a PSB; with a PSB after
 * it the pattern (SDM 3 33.4.2.17) has 16 bytes or more after @at, and nothing is missing. (sync.c)
 */
u64 vmpt_psb_across(const u8 *data, u64 from, u64 at, u64 end);

/* The PSB that begins inside the packet of @size bytes at @at and cuts it, or 0. */
static inline u64 vmpt_psb_inside(const u8 *data, u64 at, unsigned int size, u64 end)
{
	u64 after = at + size;
	u16 next;

	if (end - after < 2)
		return 0;
	next = vmpt_load16(data + after);
	if (__builtin_expect(next != 0x8202 && next != 0x0282, 1))
		return 0;
	return vmpt_psb_across(data, at, after, end);
}

/*
 * Kind of the packet at @data + @at outside a packet block, its size in @size;
 * -1 if there is none before @end, or a broken or cut one. Only two bytes of a PSB are checked:
 * it ends every walk, and so would a broken one.
 */
static inline int vmpt_head_at(const u8 *data, u64 at, u64 end, unsigned int *size)
{
	struct vmpt_pt_packet pkt;
	unsigned int key;

	if (end - at >= VMPT_PT_SIZE_MAX) {
		key = vmpt_load16(data + at);
		if (vmpt_head_kind[key] != VMPT_HEAD_NONE) {
			*size = vmpt_head_size[key];
			return vmpt_psb_inside(data, at, *size, end) ? -1 : vmpt_head_kind[key];
		}
	}
	if (vmpt_pt_decode(&pkt, data + at, end - at, 0))
		return -1;
	*size = pkt.size;
	return vmpt_psb_inside(data, at, *size, end) ? -1 : pkt.kind;
}

#endif
