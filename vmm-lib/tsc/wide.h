/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Numbers of 128 bits, for compilers and processors without them. Without division: ratio.c. */
#ifndef VMPT_VMM_TSC_WIDE_H
#define VMPT_VMM_TSC_WIDE_H

#include "arch/types.h"

struct wide {
	u64 high, low;
};

static inline struct wide wide_mul(u64 a, u64 b)
{
#ifdef __SIZEOF_INT128__
	unsigned __int128 n = (unsigned __int128)a * b;

	return (struct wide){ (u64)(n >> 64), (u64)n };
#else
	u64 low = (u64)(u32)a * (u32)b, middle = (a >> 32) * (u32)b + (low >> 32);
	u64 other = (u64)(u32)a * (b >> 32) + (u32)middle;

	return (struct wide){ (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32),
			      other << 32 | (u32)low };
#endif
}

/* @bits: 1 to 63 */
static inline struct wide wide_left(struct wide n, unsigned int bits)
{
	return (struct wide){ n.high << bits | n.low >> (64 - bits), n.low << bits };
}

static inline struct wide wide_right(struct wide n, unsigned int bits)
{
	return (struct wide){ n.high >> bits, n.low >> bits | n.high << (64 - bits) };
}

static inline struct wide wide_sub(struct wide a, struct wide b)
{
	return (struct wide){ a.high - b.high - (a.low < b.low), a.low - b.low };
}

static inline bool wide_below(struct wide a, struct wide b)
{
	return a.high != b.high ? a.high < b.high : a.low < b.low;
}

#endif
