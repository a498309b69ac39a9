/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Random numbers repeatable by seed (xorshift64*).
 */
#ifndef RANDOM_H
#define RANDOM_H

#include "arch/types.h"

struct random {
	u64 state;
};

static inline u64 random_next(struct random *r)
{
	r->state ^= r->state >> 12;
	r->state ^= r->state << 25;
	r->state ^= r->state >> 27;
	return r->state * 0x2545f4914f6cdd1dull;
}

static inline void random_seed(struct random *r, u64 seed)
{
	u32 i;

	r->state = seed * 0x9e3779b97f4a7c15ull | 1;
	for (i = 0; i < 8; i++)
		random_next(r);
}

/* 0 to n - 1 */
static inline u32 random_below(struct random *r, u32 n)
{
	return (u32)(random_next(r) >> 33) % n;
}

static inline bool random_one_in(struct random *r, u32 n)
{
	return !random_below(r, n);
}

#endif
