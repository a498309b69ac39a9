/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A bounded text writer for code that cannot use stdio: counts what is needed, writes what fits.
 * For the .c files that print; not part of a public interface.
 */
#ifndef VMPT_ARCH_TEXT_H
#define VMPT_ARCH_TEXT_H

#include "arch/types.h"

struct text {
	char *buf;
	size_t len, used;
};

static inline void put_char(struct text *t, char c)
{
	if (t->used + 1 < t->len)
		t->buf[t->used] = c;
	t->used++;
}

static inline void put_str(struct text *t, const char *s)
{
	while (*s)
		put_char(t, *s++);
}

/* *v / @base, and the remainder. 16 bits at a time: a processor of 32 bits has no division of 64.
 */
static inline unsigned int divide_by(u64 *v, unsigned int base)
{
	u32 rest = 0, part;
	u64 quotient = 0;
	int i;

	for (i = *v >> 32 ? 48 : 16; i >= 0; i -= 16) {
		part = rest << 16 | (u16)(*v >> i);
		quotient |= (u64)(part / base) << i;
		rest = part % base;
	}
	*v = quotient;
	return rest;
}

/* @v in base @base, 2 to 16, with at least @least digits. */
static inline void put_number(struct text *t, u64 v, unsigned int base, unsigned int least)
{
	char digits[64];
	unsigned int n = 0, digit;

	do {
		if (base == 16) {
			digit = v & 15;
			v >>= 4;
		} else {
			digit = divide_by(&v, base);
		}
		digits[n++] = "0123456789abcdef"[digit];
	} while (v || n < least);
	while (n)
		put_char(t, digits[--n]);
}

/* Terminate; returns the length needed without the NUL. */
static inline size_t finish(struct text *t)
{
	if (t->len)
		t->buf[t->used < t->len ? t->used : t->len - 1] = '\0';
	return t->used;
}

#endif
