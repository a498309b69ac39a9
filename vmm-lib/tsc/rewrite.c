// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Rewrite TSC and TMA packets in a piece of trace (SDM 3 33.5.2.3, 33.4.2.11, 33.4.2.13): the
 * values, the state carried from piece to piece, and the loop for short pieces. Long ones go
 * through lanes.c.
 */
#include "vmm-lib/tsc/scan.h"
#include "vmm-lib/tsc/wide.h"

#define TSC_BITS 56

/* ---- values ---- */

static u64 scale(u64 value, u64 multiplier)
{
	struct wide n = wide_mul(value, multiplier);

	return n.high << 16 | n.low >> 48;
}

void vmpt_tsc_put(struct vmpt_tsc_scan *scan, const struct vmpt_tsc_change *change, u8 *p)
{
	u64 tsc = vmpt_load64(p) >> 8, full, new;

	/* 2^55 less than the last: the 56 bits wrapped; time does not go back that far. */
	if (tsc < scan->last && scan->last - tsc > 1ULL << (TSC_BITS - 1))
		scan->wrapped++;
	scan->last = tsc;
	full = tsc | (u64)(u8)(scan->high + scan->wrapped) << TSC_BITS;
	new = scale(full, change->multiplier) + change->offset;
	__builtin_memcpy(p + 1, &new, TSC_BITS / 8);
}

void vmpt_tma_put(const struct vmpt_tsc_change *change, u8 *p)
{
	/* Byte by byte: the header and CTC are not written. */
	u64 fast = p[5] | (p[6] & 1u) << 8;

	/* 9 bits: the product has at most 73, and 25 without the fraction. */
	fast = scale(fast, change->multiplier);
	fast = fast > VMPT_FAST_COUNTER_MAX ? VMPT_FAST_COUNTER_MAX : fast;
	p[5] = (u8)fast;
	p[6] = (u8)((p[6] & ~1u) | (u8)(fast >> 8));
}

/* ---- one packet ---- */

static bool is_kind(const u8 *b, unsigned int kind)
{
	const struct vmpt_pt_desc *d = &vmpt_pt_table[kind];

	return (b[0] & d->mask[0]) == d->header[0] && (b[1] & d->mask[1]) == d->header[1];
}

/* The size of common packets, without a decode; 0: something else. @b is a copy. */
static int decode_common(const u8 *b, unsigned int *block, enum vmpt_tsc_found *found)
{
	unsigned int cyc;

	if (*block &&
	    (b[0] & vmpt_pt_table[VMPT_PT_BIP].mask[0]) == vmpt_pt_table[VMPT_PT_BIP].header[0])
		return 1 + (int)vmpt_pt_block_item_size(*block);
	if (b[0] == vmpt_pt_table[VMPT_PT_TSC].header[0]) {
		*found = VMPT_TSC_TSC;
		return vmpt_pt_table[VMPT_PT_TSC].size;
	}
	if (b[0] != VMPT_PT_ESCAPE) {
		cyc = vmpt_tsc_long_cyc(b);
		return (b[0] & 0x07) == 0x03 ? 1 : (int)cyc;
	}
	if (is_kind(b, VMPT_PT_TMA)) {
		*found = VMPT_TSC_TMA;
		return vmpt_pt_table[VMPT_PT_TMA].size;
	}
	if (is_kind(b, VMPT_PT_BBP)) {
		*block = VMPT_PT_BLOCK(b[2] >> 7, b[2]);
		return vmpt_pt_table[VMPT_PT_BBP].size;
	}
	if (is_kind(b, VMPT_PT_BEP)) {
		*block = 0;
		return vmpt_pt_table[VMPT_PT_BEP].size;
	}
	if (vmpt_tsc_is_psb(b)) {
		*block = 0;
		return VMPT_PT_SIZE_MAX;
	}
	return 0;
}

/* The same for any packet, of which @n bytes are available. */
static int decode_any(const u8 *b, size_t n, unsigned int *block, enum vmpt_tsc_found *found)
{
	struct vmpt_pt_packet pkt;
	int err;

	err = vmpt_pt_decode(&pkt, b, n, *block);
	if (err)
		return err;
	*block = vmpt_pt_block_after(&pkt, *block);
	if (pkt.kind == VMPT_PT_TSC)
		*found = VMPT_TSC_TSC;
	else if (pkt.kind == VMPT_PT_TMA)
		*found = VMPT_TSC_TMA;
	return pkt.size;
}

int vmpt_tsc_decode(const u8 *p, unsigned int *block, enum vmpt_tsc_found *found)
{
	u8 b[VMPT_TSC_READABLE];
	int size;

	/* A copy: what is checked is what is used, even if the guest writes to the memory. */
	__builtin_memcpy(b, p, sizeof(b));
	*found = VMPT_TSC_OTHER;
	size = decode_common(b, block, found);
	return size ? size : decode_any(b, sizeof(b), block, found);
}

static void put(struct vmpt_tsc_scan *scan, const struct vmpt_tsc_change *change, u8 *p,
		enum vmpt_tsc_found found)
{
	if (found == VMPT_TSC_TSC) {
		vmpt_tsc_put(scan, change, p);
		scan->tscs++;
	} else if (found == VMPT_TSC_TMA) {
		vmpt_tma_put(change, p);
		scan->tmas++;
	}
	scan->packets++;
}

/* ---- losses ---- */

/* Bytes of a PSB seen after @byte; the PSB is 02H, 82H eight times. */
static unsigned int psb_match(unsigned int seen, u8 byte)
{
	if (byte == (seen & 1 ? 0x82 : 0x02))
		return seen + 1;
	return byte == 0x02;
}

static void lose(struct vmpt_tsc_scan *scan)
{
	scan->errors++;
	scan->lost = 1;
	scan->cut_size = 0;
	scan->block = 0;
}

/* Overwrite @n bytes at @p: the host's TSC may be in them. */
static void blank(struct vmpt_tsc_scan *scan, u8 *p, size_t n)
{
	if (!n)
		return;
	memset(p, 0, n); /* PAD */
	if (scan->lost == 1) {
		*p = VMPT_TSC_LOST_MARK;
		scan->lost = 2;
	}
	scan->lost_bytes += n;
}

/* The same for the last @n bytes before this piece. */
static void blank_before(struct vmpt_tsc_scan *scan, unsigned int n)
{
	if (!scan->patched)
		scan->patched = (u8)n;
	blank(scan, scan->patch + scan->patched - n, n);
}

/*
 * Search for a PSB from @at and overwrite what is before it; bytes at the end that may belong to
 * one are left. Returns the position after it, or @len.
 */
static size_t find_psb(struct vmpt_tsc_scan *scan, u8 *buf, size_t at, size_t len)
{
	unsigned int seen = scan->cut_size, before = seen, next;
	size_t from = at; /* of the bytes that may belong to a PSB: @before in earlier pieces */

	while (at < len && seen < VMPT_PT_SIZE_MAX) {
		next = psb_match(seen, buf[at++]);
		if (next <= seen) {
			blank_before(scan, before);
			before = 0;
			blank(scan, buf + from, at - next - from);
			from = at - next;
		}
		seen = next;
	}
	if (seen == VMPT_PT_SIZE_MAX) {
		scan->lost = 0;
		scan->packets++;
		seen = 0;
	}
	scan->cut_size = (u8)seen;
	return at;
}

/* ---- pieces ---- */

/* The packet at @at, of any kind. Returns the position after it, or @len for a cut one. */
static size_t one(struct vmpt_tsc_scan *scan, const struct vmpt_tsc_change *change, u8 *buf,
		  size_t at, size_t len)
{
	enum vmpt_tsc_found found = VMPT_TSC_OTHER;
	size_t n = len - at < sizeof(scan->cut) ? len - at : sizeof(scan->cut);
	unsigned int block = scan->block;
	int size;

	if (n == VMPT_TSC_READABLE) {
		size = vmpt_tsc_decode(buf + at, &block, &found);
	} else {
		memcpy(scan->cut, buf + at, n);
		size = decode_any(scan->cut, n, &block, &found);
		if (size == -VMPT_E_TRUNCATED) {
			scan->cut_size = (u8)n;
			return len;
		}
	}
	if (size < 0) {
		lose(scan);
		blank(scan, buf + at, 1);
		return at + 1;
	}
	scan->block = (u8)block;
	put(scan, change, buf + at, found);
	return at + (size_t)size;
}

/*
 * The packet that began in an earlier piece. If those earlier bytes changed, they are returned in
 * scan->patch. Returns the position after the packet.
 */
static size_t finish_cut(struct vmpt_tsc_scan *scan, const struct vmpt_tsc_change *change, u8 *buf,
			 size_t len)
{
	enum vmpt_tsc_found found = VMPT_TSC_OTHER;
	unsigned int block = scan->block, old = scan->cut_size, i;
	size_t n = sizeof(scan->cut) - old < len ? sizeof(scan->cut) - old : len;
	u8 whole[VMPT_PT_SIZE_MAX];
	int size;

	memcpy(whole, scan->cut, old);
	memcpy(whole + old, buf, n);
	size = decode_any(whole, old + n, &block, &found);
	if (size == -VMPT_E_TRUNCATED) {
		memcpy(scan->cut + old, buf, n);
		scan->cut_size = (u8)(old + n);
		return n;
	}
	if (size < 0) {
		lose(scan);
		for (i = 1; i < old; i++)
			scan->cut_size = (u8)psb_match(scan->cut_size, scan->cut[i]);
		memcpy(scan->patch, scan->cut, old);
		scan->patched = (u8)old;
		blank(scan, scan->patch, old - scan->cut_size);
		return 0;
	}
	scan->cut_size = 0;
	scan->block = (u8)block;
	put(scan, change, whole, found);
	if (found != VMPT_TSC_OTHER) {
		memcpy(scan->patch, whole, old);
		scan->patched = memcmp(whole, scan->cut, old) ? (u8)old : 0;
		memcpy(buf, whole + old, (size_t)size - old);
	}
	return (size_t)size - old;
}

static unsigned int next_step(const u8 *p)
{
	unsigned int step = vmpt_tsc_next(p);

	return step ? step : vmpt_tsc_next_rare(p);
}

/* From @at to at least @stop, or to a cut packet or an error. */
static size_t plain(struct vmpt_tsc_scan *scan, const struct vmpt_tsc_change *change, u8 *buf,
		    size_t at, size_t stop, size_t len)
{
	unsigned int step;

	while (at < stop && !scan->lost) {
		step = 0;
		if (!scan->block && len - at >= VMPT_TSC_READABLE)
			step = next_step(buf + at);
		if (!step) {
			at = one(scan, change, buf, at, len);
			continue;
		}
		scan->packets += step / VMPT_TSC_PACKET;
		at += step & VMPT_TSC_SIZE;
	}
	return at;
}

/* A piece begins. */
static void begin(struct vmpt_tsc_scan *scan, const struct vmpt_tsc_change *change)
{
	scan->patched = 0;
	if (change->high != scan->high) {
		scan->high = change->high;
		scan->wrapped = 0;
		scan->last = 0;
	}
}

size_t vmpt_tsc_rewrite_view(struct vmpt_tsc_scan *scan, const struct vmpt_tsc_change *change,
			     const struct vmpt_tsc_view *view, size_t at, size_t len,
			     size_t *window)
{
	begin(scan, change);
	if (scan->cut_size || scan->lost)
		return at;
	return vmpt_tsc_lanes(scan, change, view, at, len, window);
}

void vmpt_tsc_rewrite(struct vmpt_tsc_scan *scan, const struct vmpt_tsc_change *change, u8 *buf,
		      size_t len)
{
	const struct vmpt_tsc_view view = { &buf, VMPT_TSC_ONE_PAGE };
	size_t at = 0, stop, window = VMPT_TSC_WINDOW;

	begin(scan, change);
	if (scan->cut_size && !scan->lost && len)
		at = finish_cut(scan, change, buf, len);
	while (at < len) {
		if (scan->lost) {
			at = find_psb(scan, buf, at, len);
			continue;
		}
		at = vmpt_tsc_lanes(scan, change, &view, at, len, &window);
		stop = len - at > VMPT_TSC_WINDOW_MIN ? at + VMPT_TSC_WINDOW_MIN : len;
		at = plain(scan, change, buf, at, stop, len);
	}
}
