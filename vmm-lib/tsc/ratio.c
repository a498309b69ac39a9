// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The TSC's rate as a scaled guest must see it (SDM 3 33.5.2.4). The ratio of CPUID.15H is computed
 * by continued fractions in integers: exact if it fits 32 bits, else the nearest fraction that
 * does.
 */
#include "vmm-lib/caps.h"

#define FRACTION_BITS 48
#define LIMIT	      0xffffffffULL

/* One convergent, or the remainder for it. */
struct fraction {
	u64 numerator, denominator;
};

/*
 * *n becomes *n mod d. Returns the quotient; a kernel has no 128-bit division, so bit by
 * bit. d is not 0 and below 2^127.
 */
static unsigned __int128 divide(unsigned __int128 *n, unsigned __int128 d)
{
	unsigned __int128 quotient = 0;
	unsigned int shift = 0;

	while (d <= *n >> 1) {
		d <<= 1;
		shift++;
	}
	do {
		quotient <<= 1;
		if (*n >= d) {
			*n -= d;
			quotient |= 1;
		}
		d >>= 1;
	} while (shift--);
	return quotient;
}

/* How often @last can be added to @before within the limit, at most @times. */
static u64 fitting(unsigned __int128 times, u64 last, u64 before)
{
	u64 fits = last ? (LIMIT - before) / last : LIMIT;

	return times < fits ? (u64)times : fits;
}

/*
 * The nearest fraction to n/d with both parts from 1 to the limit. The two candidates, from below
 * and from above, are the last convergent that fits and the greatest semiconvergent after it,
 * because both parts grow along the sequence.
 */
static struct fraction nearest(unsigned __int128 n, unsigned __int128 d)
{
	struct fraction before = { 0, 1 }, last = { 1, 0 }, next;
	const unsigned __int128 whole = d;

	for (;;) {
		unsigned __int128 rest = n, times = divide(&rest, d);
		u64 fits = fitting(times, last.numerator, before.numerator);

		fits = fitting(fits, last.denominator, before.denominator);
		next.numerator = fits * last.numerator + before.numerator;
		next.denominator = fits * last.denominator + before.denominator;
		if (fits < times)
			break;
		before = last;
		last = next;
		n = d;
		d = rest;
		if (!d)
			return last;
	}
	/*
	 * d is the remainder of last: its distance is d / (last.denominator * whole), and the
	 * two are 1 / (last.denominator * next.denominator) apart. A part that is 0 is no ratio.
	 */
	if (last.numerator && last.denominator && 2 * d * next.denominator <= whole)
		return last;
	return next;
}

int vmpt_tsc_ratio(u32 host_numerator, u32 host_denominator, u64 multiplier, u32 *numerator,
		   u32 *denominator)
{
	unsigned __int128 n = (unsigned __int128)host_numerator * multiplier;
	unsigned __int128 d = (unsigned __int128)host_denominator << FRACTION_BITS;
	struct fraction ratio;

	if (!n || !d || n >> 32 >= d || d >> 32 >= n)
		return -VMPT_E_INVAL;
	ratio = nearest(n, d);
	*numerator = (u32)ratio.numerator;
	*denominator = (u32)ratio.denominator;
	return 0;
}

u64 vmpt_platform_info(u64 host_value, u64 multiplier)
{
	u64 ratio = host_value >> 8 & 0xff;
	unsigned __int128 scaled = (unsigned __int128)ratio * multiplier;

	/* 0: the host does not report it; keep it so. */
	if (!ratio || !multiplier)
		return host_value;
	scaled = (scaled + (1ULL << (FRACTION_BITS - 1))) >> FRACTION_BITS;
	if (scaled > 255)
		scaled = 255;
	ratio = scaled ? (u64)scaled : 1;
	return (host_value & ~0xff00ULL) | ratio << 8;
}
