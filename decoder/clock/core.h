/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Shared by clock.c and anchor.c: the crystal clock in exact arithmetic, and reporting of times
 * that do not go back.
 */
#ifndef VMPT_DECODER_CLOCK_CORE_H
#define VMPT_DECODER_CLOCK_CORE_H

#include <string.h>

#include "decoder/clock/state.h"

#define CLOCK_OPEN	 (~0ULL) /* .hi */
#define CLOCK_RATIO_BITS 24
/* An MTC this far after the TMA before it was only late. */
#define CLOCK_STALE 0xf0

/* The owner of the last TSC. */
enum clock_tsc {
	CLOCK_TSC_NONE,
	CLOCK_TSC_HOST,
	CLOCK_TSC_NOBODY,   /* the owner is not known, nor is the time */
	CLOCK_TSC_UNMAPPED, /* a guest's without a map */
	CLOCK_TSC_MAPPED,
	CLOCK_TSC_JUMP,	 /* a guest's, mapped, later than possible except after a sleep */
	CLOCK_TSC_UNFIT, /* a guest's whose map cannot be right */
};

/* anchor.c */
void vmpt_clock_tsc(struct vmpt_clock *c, u64 payload, u64 offset, const struct vmpt_owner *owner);
void vmpt_clock_tma(struct vmpt_clock *c, u64 payload);
/* A pair whose TMA has not come, or cannot be used. */
void vmpt_clock_pair_flush(struct vmpt_clock *c);

static inline u32 clock_clip(u64 ticks)
{
	return ticks < VMPT_TIME_OPEN ? (u32)ticks : VMPT_TIME_OPEN;
}

/*
 * Both bounds are written at once and copied separately from .tsc: a load wider than the store
 * before it stalls, and times are copied right after they are written.
 */
static inline void clock_copy(struct vmpt_time *to, const struct vmpt_time *from)
{
	u64 bounds;

	memcpy(&bounds, &from->early, sizeof(bounds));
	to->tsc = from->tsc;
	memcpy(&to->early, &bounds, sizeof(bounds));
}

/* The reported time of a packet made in [lo, hi], probably at @est; not before @last. */
static inline u64 clock_estimate(u64 lo, u64 hi, u64 est, u64 last)
{
	if (est > hi)
		est = hi;
	if (est < lo)
		est = lo;
	return est < last ? last : est;
}

/* .early and .late of @est, as laid out in struct vmpt_time. */
static inline u64 clock_bounds(u64 lo, u64 hi, u64 est)
{
	u32 late = hi == CLOCK_OPEN ? VMPT_TIME_OPEN : hi > est ? clock_clip(hi - est) : 0;

	/* All builds are little-endian (arch/types.h). */
	return (u64)late << 32 | clock_clip(est - lo);
}

/* @t: made in [lo, hi], probably at @est; not before the last reported time. */
static inline void clock_report(struct vmpt_clock *c, struct vmpt_time *t, u64 lo, u64 hi, u64 est)
{
	u64 bounds;

	c->est = clock_estimate(lo, hi, est, c->est);
	bounds = clock_bounds(lo, hi, c->est);
	t->tsc = c->est;
	memcpy(&t->early, &bounds, sizeof(bounds));
}

/* The item and those after it are in the window. */
static inline void clock_settle(struct vmpt_clock *c, u64 est)
{
	if (!c->known)
		return;
	clock_report(c, &c->next, c->lo, c->hi, est);
	clock_copy(&c->now, &c->next);
}

static inline void clock_step_back(struct vmpt_clock *c, enum vmpt_back why)
{
	c->back = (u8)why;
	c->counts.backs++;
	c->est = 0;
}

/* The first tick at which the next MTC was certainly due. */
static inline u64 clock_due(const struct vmpt_clock *c)
{
	return c->crystal.edge + c->step + c->cycle + 1 + c->crystal.slack;
}

/* Packets after the last MTC came before this tick. */
static inline u64 clock_window(const struct vmpt_clock *c)
{
	return c->crystal.tied && !c->doubt ? clock_due(c) : CLOCK_OPEN;
}

/* @ticks of the crystal clock in ticks of the TSC; *@rem is the rest, in 1 / den. */
static inline u64 clock_ticks(const struct vmpt_clock *c, u64 ticks, u64 *rem)
{
	unsigned __int128 t = (unsigned __int128)ticks * c->options.rates.tsc_num;

	*rem = (u64)(t % c->options.rates.tsc_den);
	return (u64)(t / c->options.rates.tsc_den);
}

/* @mtcs later. */
static inline void clock_advance(struct vmpt_clock *c, u64 mtcs)
{
	const u64 den = c->options.rates.tsc_den;
	struct vmpt_crystal *x = &c->crystal;
	u64 rem = mtcs * c->step_rem, ticks = mtcs * c->step;

	if (__builtin_expect(mtcs >> 32 != 0, 0)) {
		ticks = clock_ticks(c, mtcs << c->options.rates.mtc_freq, &rem);
	} else if (rem >= den) {
		ticks += rem / den;
		rem %= den;
	}
	x->mtc += mtcs;
	x->edge += ticks;
	x->rem += rem;
	if (x->rem >= den) {
		x->rem -= den;
		x->edge++;
	}
}

/* The crystal clock was @ctc at a tick in [lo, hi]. */
void vmpt_clock_tie(struct vmpt_clock *c, u64 ctc, u64 lo, u64 hi);
/* An MTC with a CYC right before it is due at @edge: measure the cycle if possible. */
void vmpt_clock_measure(struct vmpt_clock *c, u64 edge);

#endif
