// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Durations in bounded memory: an octave has 128 buckets of equal width, so a bucket is
 * narrower than 1 % of its values; values below 128 have a bucket each.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/timeline/exits.h"

#define SUB_BITS 7

/* Octave 0 has the values below 128, octave n those from 2^(n + 6) on. */
static unsigned int octave_of(u64 value)
{
	return value < HISTOGRAM_SUB ? 0 : 63 - (unsigned int)__builtin_clzll(value) - SUB_BITS + 1;
}

static unsigned int bucket_of(u64 value, unsigned int octave)
{
	return octave ? (unsigned int)(value >> (octave - 1)) - HISTOGRAM_SUB : (unsigned int)value;
}

/* The largest value of a bucket. */
static u64 bucket_end(unsigned int octave, unsigned int bucket)
{
	if (!octave)
		return bucket;
	return (((u64)HISTOGRAM_SUB + bucket + 1) << (octave - 1)) - 1;
}

bool histogram_add(struct histogram *h, u64 value)
{
	unsigned int octave = octave_of(value);

	if (!h->octave[octave]) {
		h->octave[octave] = calloc(HISTOGRAM_SUB, sizeof(*h->octave[octave]));
		if (!h->octave[octave])
			return false;
	}
	h->octave[octave][bucket_of(value, octave)]++;
	h->count++;
	h->sum += value;
	if (value > h->max)
		h->max = value;
	if (h->count == 1 || value < h->min)
		h->min = value;
	return true;
}

u64 histogram_at(const struct histogram *h, unsigned int permille)
{
	/* The nearest rank: the smallest value with that many at or below it. */
	u64 rank = (u64)(((unsigned __int128)h->count * permille + 999) / 1000), seen = 0, end;
	unsigned int i, k;

	for (i = 0; i < VMPT_ARRAY_SIZE(h->octave); i++) {
		for (k = 0; h->octave[i] && k < HISTOGRAM_SUB; k++) {
			seen += h->octave[i][k];
			if (!h->octave[i][k] || seen < rank)
				continue;
			end = bucket_end(i, k);
			return end < h->max ? end : h->max;
		}
	}
	return h->max;
}

u64 histogram_mean(const struct histogram *h)
{
	return h->count ? h->sum / h->count : 0;
}

void histogram_free(struct histogram *h)
{
	unsigned int i;

	for (i = 0; i < VMPT_ARRAY_SIZE(h->octave); i++)
		free(h->octave[i]);
	memset(h, 0, sizeof(*h));
}
