/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The clock's loop over many items. The next item's kind is unpredictable, so branches on it are
 * avoided: first find the items that matter for time, then take the most frequent ones (CYCs, and
 * TIP.PGEs and TIP.PGDs, which do not matter) up to the first other one, with the clock's state in
 * registers.
 */
#ifndef VMPT_DECODER_CLOCK_QUICK_H
#define VMPT_DECODER_CLOCK_QUICK_H

#include "decoder/clock/walk.h"

/* Items scanned at once. */
#define CLOCK_BLOCK 512

/*
 * Indices of those of @items in [@from, @to), at most CLOCK_BLOCK, whose kind is 1 in @wanted.
 * Returns their number; @at has room for one more.
 */
static inline size_t clock_find(const struct vmpt_item *items, size_t from, size_t to,
				const u8 *wanted, u32 *at)
{
	size_t i = from, n = 0;

	for (; i + 4 <= to; i += 4) {
		at[n] = (u32)i;
		n += wanted[items[i].kind];
		at[n] = (u32)i + 1;
		n += wanted[items[i + 1].kind];
		at[n] = (u32)i + 2;
		n += wanted[items[i + 2].kind];
		at[n] = (u32)i + 3;
		n += wanted[items[i + 3].kind];
	}
	for (; i < to; i++) {
		at[n] = (u32)i;
		n += wanted[items[i].kind];
	}
	return n;
}

/* ---- many times at once ---- */

/* A time that is written as one, as a value and where it lies in memory. */
typedef u64 clock_word __attribute__((vector_size(16)));
typedef u64 clock_place __attribute__((vector_size(16), aligned(8), may_alias));

static inline __attribute__((always_inline)) clock_word clock_word_of(const struct vmpt_time *t)
{
	_Static_assert(sizeof(*t) == sizeof(clock_word), "a time is 16 bytes");
	u64 bounds;

	memcpy(&bounds, &t->early, sizeof(bounds));
	return (clock_word){ t->tsc, bounds };
}

/* Number of times written at once: mostly there are few other items between two time items. */
#define CLOCK_PUTS 8

/* The times of items [@from, @to). */
static inline void clock_put_some(struct vmpt_time *times, size_t from, size_t to, clock_word time)
{
	clock_place *at = (clock_place *)&times[from], *end = (clock_place *)&times[to];

	for (; end - at >= 4; at += 4) {
		at[0] = time;
		at[1] = time;
		at[2] = time;
		at[3] = time;
	}
	for (; at < end; at++)
		*at = time;
}

/*
 * Write the times of items [@i, @to), and of the one before if @and_before. Up to CLOCK_PUTS times
 * from there on may be overwritten, to be corrected later.
 */
static inline __attribute__((always_inline)) void
clock_put(struct vmpt_time *times, size_t i, size_t and_before, size_t to, clock_word time)
{
	clock_place *at = (clock_place *)&times[i - and_before];

	at[0] = time;
	at[1] = time;
	at[2] = time;
	at[3] = time;
	at[4] = time;
	at[5] = time;
	at[6] = time;
	at[7] = time;
	if (__builtin_expect(to - i >= CLOCK_PUTS, 0))
		clock_put_some(times, i + CLOCK_PUTS - 1, to, time);
}

/* ---- the most frequent items ---- */

/* No item has this number. */
#define CLOCK_NO_CYC (~(size_t)0)

static inline bool clock_is_most(unsigned int kind)
{
	const u64 most = 1ULL << VMPT_PT_CYC | 1ULL << VMPT_PT_TIP_PGD | 1ULL << VMPT_PT_TIP_PGE;

	return most >> (kind & 63) & 1;
}

/*
 * Maximum ticks per cycle and cycles of a CYC (less where there is no late bound): within them
 * nothing overflows in a block, and every bound fits into a struct vmpt_time.
 */
#define CLOCK_RATIO_MAX	      (8ULL << CLOCK_RATIO_BITS)
#define CLOCK_CYCLES_MAX      (1ULL << 26)
#define CLOCK_CYCLES_MAX_OPEN (1ULL << 19)
#define CLOCK_SPAN_MAX	      (1ULL << 31)

/* Whether these limits hold. */
static inline bool clock_is_narrow(const struct vmpt_clock *c)
{
	_Static_assert(CLOCK_RATIO_MAX * CLOCK_CYCLES_MAX <= ~0ULL / (2 * CLOCK_BLOCK), "part");
	_Static_assert(8 * CLOCK_CYCLES_MAX_OPEN * CLOCK_BLOCK <= CLOCK_SPAN_MAX, "bounds");
	return c->ratio < CLOCK_RATIO_MAX && c->est < c->hi &&
	       (c->hi == CLOCK_OPEN ? c->est : c->hi) - c->lo < CLOCK_SPAN_MAX;
}

/*
 * Whether they hold, and .next is the result of a CYC of no cycles: then a packet that is no time
 * item is the same. This is so after clock_take_mtc().
 */
static inline bool clock_is_plain(const struct vmpt_clock *c)
{
	u64 est = c->base < c->hi ? c->base : c->hi - 1, bounds;

	/* No time is known, and none of these items makes one known. */
	if (!c->known)
		return c->ratio < CLOCK_RATIO_MAX && c->next.tsc == VMPT_TIME_NONE;
	memcpy(&bounds, &c->next.early, sizeof(bounds));
	est = clock_estimate(c->lo, c->hi, est, c->est);
	return est == c->est && est == c->next.tsc && est >= c->lo &&
	       bounds == clock_bounds(c->lo, c->hi, est) && clock_is_narrow(c);
}

/*
 * Take items from @at[@k] on while they are of the most frequent kinds and the clock is plain;
 * @at[@n] is after the last one. Returns the first that is not taken. @times of @b's items are
 * filled up to the next time item. @after_cyc: number of the item after the last CYC, or
 * CLOCK_NO_CYC.
 */
static inline __attribute__((always_inline)) size_t
clock_take_most(struct vmpt_clock *c, const struct vmpt_batch *b, const u32 *at, size_t k, size_t n,
		struct vmpt_time *times, size_t *after_cyc)
{
	const bool open = c->hi == CLOCK_OPEN;
	/*
	 * An estimate's bounds are hi - est in the high and est - lo in the low half; either may be
	 * all ones.
	 */
	const u64 bounds =
		!c->known ? ~0ULL : (open ? (u64)VMPT_TIME_OPEN << 32 : c->hi << 32) - c->lo;
	const u64 factor = !c->known ? 0 : open ? 1 : 1 - (1ULL << 32);
	const u64 most = open ? CLOCK_CYCLES_MAX_OPEN : CLOCK_CYCLES_MAX;
	const u64 last = c->hi - 1, base = c->base, part = c->base_part, ratio = c->ratio;
	const struct vmpt_item *items = b->items;
	u64 est = c->known ? c->est : VMPT_TIME_NONE, cycles = 0, cycs = 0, now;
	size_t i = at[k], first = k, other = CLOCK_NO_CYC, was = *after_cyc;

	while (k < n) {
		size_t next = at[k + 1], and_before = i == was;
		unsigned int kind = items[i].kind;
		u64 is_cyc = kind == VMPT_PT_CYC, count = items[i].payload & -is_cyc;

		if (!clock_is_most(kind) || count >= most)
			break;
		cycles += count;
		cycs += is_cyc;
		other = is_cyc ? other : i;
		was = (i + 1) | (is_cyc - 1);
		now = base + ((part + cycles * ratio) >> CLOCK_RATIO_BITS);
		now = now < last ? now : last;
		est = now > est ? now : est;
		/* A CYC right before has the same time. */
		clock_put(times, i, and_before, next, (clock_word){ est, bounds + est * factor });
		i = next;
		k++;
	}
	if (k == first)
		return k;
	now = part + cycles * ratio;
	c->base = base + (now >> CLOCK_RATIO_BITS);
	c->base_part = now & vmpt_mask64(CLOCK_RATIO_BITS);
	c->span_cycles += cycles;
	c->counts.cycs += cycs;
	c->cycs |= cycs != 0;
	c->cyc_last = was != CLOCK_NO_CYC;
	c->tsc_last = false;
	c->back = VMPT_BACK_NOT;
	if (other != CLOCK_NO_CYC)
		c->off = items[other].kind == VMPT_PT_TIP_PGD;
	c->est = c->known ? est : c->est;
	c->next.tsc = c->now.tsc = est;
	now = bounds + est * factor;
	memcpy(&c->next.early, &now, sizeof(now));
	memcpy(&c->now.early, &now, sizeof(now));
	*after_cyc = was;
	return k;
}

/*
 * Without times: take the CYCs from @at[@k] on, which is one. Returns the first item that is none;
 * all of them move the estimate just as the last one does.
 */
static inline size_t clock_take_cycs(struct vmpt_clock *c, const struct vmpt_item *items,
				     const u32 *at, size_t k, size_t n)
{
	u64 base = c->base, part = c->base_part, cycles, all = 0;
	const u64 ratio = c->ratio;
	size_t first = k;

	do {
		cycles = items[at[k]].payload;
		cycles = cycles >> 31 ? 1u << 31 : cycles;
		part += cycles * ratio;
		base += part >> CLOCK_RATIO_BITS;
		part &= vmpt_mask64(CLOCK_RATIO_BITS);
		all += cycles;
	} while (++k < n && items[at[k]].kind == VMPT_PT_CYC);
	c->base = base;
	c->base_part = part;
	c->span_cycles += all;
	c->counts.cycs += k - first;
	c->cycs = c->cyc_last = true;
	c->tsc_last = false;
	c->back = VMPT_BACK_NOT;
	clock_copy(&c->now, &c->next);
	clock_settle(c, base < c->hi ? base : c->hi - 1);
	return k;
}

#endif
