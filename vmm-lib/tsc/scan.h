/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Walking over packets where only TSC and TMA count: what the two loops share, the one
 * for short pieces (tsc-rewrite.c) and the lanes for long ones (tsc-lanes.c).
 *
 * The memory may be the guest's, which changes it meanwhile: no length that is read from
 * it is believed beyond the bounds that these functions name.
 */
#ifndef VMPT_VMM_TSC_SCAN_H
#define VMPT_VMM_TSC_SCAN_H

#include "vmm-lib/tsc.h"

/*
 * How far to go on outside of a block by a packet's first two bytes: bits 4:0 of
 * vmpt_tsc_step[row + second byte], the row from vmpt_tsc_row[first byte]. VMPT_TSC_PACKET for
 * each packet, one or two. 0: two bytes do not tell, or the packet must be looked at (TSC, TMA,
 * BBP), or is none.
 */
#define VMPT_TSC_SIZE	0x1fu
#define VMPT_TSC_PACKET 0x20u

extern const u16 vmpt_tsc_row[256];
extern const u8 vmpt_tsc_step[10 * 256];

/* A step goes on 11 bytes at the most; bytes that must be there for _look() and a step. */
#define VMPT_TSC_LOOK 16

#define VMPT_TSC_ONES 0x0101010101010101ULL

static inline unsigned int vmpt_tsc_next(const u8 *p)
{
	return vmpt_tsc_step[(size_t)vmpt_tsc_row[p[0]] + p[1]];
}

/* Any eight bytes of a PSB that begin with its first or third one (33.4.2.17). */
#define VMPT_TSC_PSB 0x8202820282028202ULL

static inline bool vmpt_tsc_is_psb(const u8 *p)
{
	return vmpt_load64(p) == VMPT_TSC_PSB && vmpt_load64(p + 8) == VMPT_TSC_PSB;
}

/* The size of a CYC of two to nine bytes: the first byte behind the header without EXP ends it. */
static inline unsigned int vmpt_tsc_long_cyc(const u8 *p)
{
	u64 stop = ~vmpt_load64(p + 1) & VMPT_TSC_ONES;

	if ((p[0] & 0x07) != 0x07 || !stop)
		return 0;
	return 2 + (unsigned int)__builtin_ctzll(stop) / 8;
}

/* Where vmpt_tsc_next() is 0 outside of a block: the two that are common, as in the
 * table, or 0. */
static inline unsigned int vmpt_tsc_next_rare(const u8 *p)
{
	unsigned int size = vmpt_tsc_is_psb(p) ? VMPT_PT_SIZE_MAX : vmpt_tsc_long_cyc(p);

	return size ? size | VMPT_TSC_PACKET : 0;
}

/* What vmpt_tsc_look() found besides the size. */
enum vmpt_tsc_found { VMPT_TSC_OTHER, VMPT_TSC_TSC, VMPT_TSC_TMA };

/*
 * The packet at @p, of which VMPT_TSC_LOOK bytes can be read, in block context *block, which
 * is brought up to date. Returns its size, at most VMPT_PT_SIZE_MAX, or the error of
 * vmpt_pt_decode(), never -VMPT_E_TRUNCATED.
 */
int vmpt_tsc_look(const u8 *p, unsigned int *block, enum vmpt_tsc_found *found);

/* Rewrite the packet at @p, of eight or seven bytes. */
void vmpt_tsc_put(struct vmpt_tsc_scan *scan, const struct vmpt_tsc_change *change, u8 *p);
void vmpt_tma_put(const struct vmpt_tsc_change *change, u8 *p);

/* Bytes walked by lanes at a time, at first. Pieces below the least are not worth their lanes. */
#define VMPT_TSC_WINDOW	    131072u
#define VMPT_TSC_WINDOW_MIN 2048u

/* Trace in pages of 1 << shift bytes: byte n of it is in page[n >> shift]. */
struct vmpt_tsc_view {
	u8 *const *page;
	unsigned int shift;
};

/* The shift of a view of one page, however long. */
#define VMPT_TSC_ONE_PAGE 48

/*
 * Rewrite what @view holds from @at on, a packet's start, window by window. Returns how far, at
 * a packet's start too: not to @len, and not beyond a window in which something is that the
 * caller has to deal with. *window is the size of the next one.
 */
size_t vmpt_tsc_lanes(struct vmpt_tsc_scan *scan, const struct vmpt_tsc_change *change,
		      const struct vmpt_tsc_view *view, size_t at, size_t len, size_t *window);

/*
 * The same as the beginning of a vmpt_tsc_rewrite() of all that is in @view from @at to @len.
 * Returns how far it came, maybe not at all: the rest is for vmpt_tsc_rewrite().
 */
size_t vmpt_tsc_rewrite_view(struct vmpt_tsc_scan *scan, const struct vmpt_tsc_change *change,
			     const struct vmpt_tsc_view *view, size_t at, size_t len,
			     size_t *window);

#endif
