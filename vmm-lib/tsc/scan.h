/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Walking over packets where only TSC and TMA count: shared by the two loops, the one for short
 * pieces (rewrite.c) and the lanes for long ones (lanes.c).
 *
 * The memory may be the guest's, which may change it meanwhile: no length read from it is trusted
 * beyond the bounds that these functions state.
 */
#ifndef VMPT_VMM_TSC_SCAN_H
#define VMPT_VMM_TSC_SCAN_H

#include "vmm-lib/tsc.h"

/*
 * How far to advance outside a block, by a packet's first two bytes: bits 4:0 of vmpt_tsc_step[row
 * + second byte], the row from vmpt_tsc_row[first byte]. VMPT_TSC_PACKET for each packet, one or
 * two. 0: two bytes do not determine it, or the packet must be decoded (TSC, TMA, BBP), or is
 * invalid.
 */
#define VMPT_TSC_SIZE	0x1fu
#define VMPT_TSC_PACKET 0x20u

extern const u16 vmpt_tsc_row[256];
extern const u8 vmpt_tsc_step[11 * 256];

/* A step is at most 11 bytes; bytes that must be readable for vmpt_tsc_decode() and a step. */
#define VMPT_TSC_READABLE 16

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

/* The size of a CYC of two to nine bytes: the first byte after the header without EXP ends it. */
static inline unsigned int vmpt_tsc_long_cyc(const u8 *p)
{
	u64 stop = ~vmpt_load64(p + 1) & VMPT_TSC_ONES;

	if ((p[0] & 0x07) != 0x07 || !stop)
		return 0;
	return 2 + (unsigned int)__builtin_ctzll(stop) / 8;
}

/* If vmpt_tsc_next() is 0 outside a block: the two common cases, as in the table, or 0. */
static inline unsigned int vmpt_tsc_next_rare(const u8 *p)
{
	unsigned int size = vmpt_tsc_is_psb(p) ? VMPT_PT_SIZE_MAX : vmpt_tsc_long_cyc(p);

	return size ? size | VMPT_TSC_PACKET : 0;
}

/* What vmpt_tsc_decode() found besides the size. */
enum vmpt_tsc_found { VMPT_TSC_OTHER, VMPT_TSC_TSC, VMPT_TSC_TMA };

/*
 * The packet at @p, of which VMPT_TSC_READABLE bytes can be read, in block context *block, which is
 * updated. Returns its size, at most VMPT_PT_SIZE_MAX, or the error of vmpt_pt_decode(), never
 * -VMPT_E_TRUNCATED.
 */
int vmpt_tsc_decode(const u8 *p, unsigned int *block, enum vmpt_tsc_found *found);

/* Rewrite the packet at @p, of eight or seven bytes. */
void vmpt_tsc_put(struct vmpt_tsc_scan *scan, const struct vmpt_tsc_change *change, u8 *p);
void vmpt_tma_put(const struct vmpt_tsc_change *change, u8 *p);

/* Bytes walked by lanes at a time, initially. Lanes do not pay off for pieces below the minimum. */
#define VMPT_TSC_WINDOW	    131072u
#define VMPT_TSC_WINDOW_MIN 2048u

/* Trace in pages of 1 << shift bytes: byte n of it is in page[n >> shift]. */
struct vmpt_tsc_view {
	u8 *const *page;
	unsigned int shift;
};

/* The shift of a view of a single page of any length. */
#define VMPT_TSC_ONE_PAGE 48

/*
 * Rewrite what @view holds from @at, a packet's start, window by window. Returns how far it got,
 * which is also a packet's start: not as far as @len, and not beyond a window that needs handling
 * by the caller. *window is the size of the next one.
 */
size_t vmpt_tsc_lanes(struct vmpt_tsc_scan *scan, const struct vmpt_tsc_change *change,
		      const struct vmpt_tsc_view *view, size_t at, size_t len, size_t *window);

/*
 * Do the beginning of a vmpt_tsc_rewrite() of all that is in @view from @at to @len. Returns how
 * far it got, possibly @at: the rest is for vmpt_tsc_rewrite().
 */
size_t vmpt_tsc_rewrite_view(struct vmpt_tsc_scan *scan, const struct vmpt_tsc_change *change,
			     const struct vmpt_tsc_view *view, size_t at, size_t len,
			     size_t *window);

#endif
