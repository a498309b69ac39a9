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
 * Kind of the packet at @data + @at outside a packet block, its size in @size;
 * -1 if there is none before @end, or a broken one. Only two bytes of a PSB are checked:
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
			return vmpt_head_kind[key];
		}
	}
	if (vmpt_pt_decode(&pkt, data + at, end - at, 0))
		return -1;
	*size = pkt.size;
	return pkt.kind;
}

#endif
