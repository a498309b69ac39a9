// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The TSC's rate as a scaled guest must see it (SDM 3 33.5.2.4). The ratio of CPUID.15H is computed
 * by continued fractions in integers: exact if it fits 32 bits, else the nearest fraction that
 * does.
 */
#include "vmm-lib/caps.h"
#include "vmm-lib/tsc/wide.h"

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
static struct wide divide(struct wide *n, struct wide d)
{
	struct wide quotient = { 0, 0 };
	unsigned int shift = 0;

	while (!wide_below(wide_right(*n, 1), d)) {
		d = wide_left(d, 1);
		shift++;
	}
	do {
		quotient = wide_left(quotient, 1);
		if (!wide_below(*n, d)) {
			*n = wide_sub(*n, d);
			quotient.low |= 1;
		}
		d = wide_right(d, 1);
	} while (shift--);
	return quotient;
}

/* How often @last can be added to @before within the limit, at most @times. All are of 32 bits. */
static u64 fitting(u64 times, u64 last, u64 before)
{
	u64 fits = last ? (u32)(LIMIT - before) / (u32)last : LIMIT;

	return times < fits ? times : fits;
}

/*
 * The nearest fraction to n/d with both parts from 1 to the limit. The two candidates, from below
 * and from above, are the last convergent that fits and the greatest semiconvergent after it,
 * because both parts grow along the sequence.
 */
static struct fraction nearest(struct wide n, struct wide d)
{
	struct fraction before = { 0, 1 }, last = { 1, 0 }, next;
	const struct wide whole = d;
	struct wide apart;

	for (;;) {
		struct wide rest = n, quotient = divide(&rest, d);
		u64 times = quotient.high ? ~0ULL : quotient.low;
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
		if (!(d.high | d.low))
			return last;
	}
	/*
	 * d is the remainder of last: its distance is d / (last.denominator * whole), and the
	 * two are 1 / (last.denominator * next.denominator) apart. A part that is 0 is no ratio.
	 */
	apart = wide_mul(d.low, 2 * next.denominator);
	apart.high += d.high * 2 * next.denominator;
	if (last.numerator && last.denominator && !wide_below(whole, apart))
		return last;
	return next;
}

int vmpt_tsc_ratio(u32 host_numerator, u32 host_denominator, u64 multiplier, u32 *numerator,
		   u32 *denominator)
{
	struct wide n = wide_mul(host_numerator, multiplier);
	struct wide d = wide_mul(host_denominator, 1ULL << FRACTION_BITS);
	struct fraction ratio;

	if (!(n.high | n.low) || !host_denominator || !wide_below(wide_right(n, 32), d) ||
	    !wide_below(wide_right(d, 32), n))
		return -VMPT_E_INVAL;
	ratio = nearest(n, d);
	*numerator = (u32)ratio.numerator;
	*denominator = (u32)ratio.denominator;
	return 0;
}

u64 vmpt_platform_info(u64 host_value, u64 multiplier)
{
	u64 ratio = host_value >> 8 & 0xff;
	struct wide scaled = wide_mul(ratio, multiplier);

	/* 0: the host does not report it; keep it so. */
	if (!ratio || !multiplier)
		return host_value;
	/* Rounded; 8 bits times 64 are 72. */
	ratio = (scaled.high << (64 - FRACTION_BITS) | scaled.low >> FRACTION_BITS) +
		(scaled.low >> (FRACTION_BITS - 1) & 1);
	ratio = ratio > 255 ? 255 : ratio ? ratio : 1;
	return (host_value & ~0xff00ULL) | ratio << 8;
}
