/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What pt_core.c and its KUnit suites need from a kernel, for a user-space program. As in the
 * kernel, BIT() is as wide as a long: SHIM_32 makes it that of a 32-bit kernel.
 */
#ifndef VMPT_SHIM_H
#define VMPT_SHIM_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long long u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef long long s64;

#ifdef SHIM_32
#define BIT(n) (1u << (n))
#else
#define BIT(n) (1ul << (n))
#endif
#define BIT_ULL(n)	  (1ull << (n))
#define GENMASK_ULL(h, l) (~0ull >> (63 - (h)) & ~0ull << (l))
#define ARRAY_SIZE(a)	  (sizeof(a) / sizeof((a)[0]))
#define min(a, b)	  ((a) < (b) ? (a) : (b))
#define ALIGN_DOWN(x, a)  ((x) & ~((u64)(a)-1))
#define IS_ALIGNED(x, a)  (!((x) & ((u64)(a)-1)))

/* The first byte that is not @c, or NULL. */
static inline const void *memchr_inv(const void *start, int c, size_t len)
{
	const u8 *p = start;

	for (; len; p++, len--)
		if (*p != (u8)c)
			return p;
	return NULL;
}

#endif
