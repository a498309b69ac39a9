/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The integer types of the project, from <linux/types.h> in a kernel and from
 * <stdint.h> elsewhere, and the few byte helpers that both worlds need.
 */
#ifndef VMPT_ARCH_TYPES_H
#define VMPT_ARCH_TYPES_H

#ifdef __KERNEL__
#include <linux/string.h>
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#if __STDC_HOSTED__ || defined(__has_include) && __has_include(<string.h>)
#include <string.h>
#else
#include "arch/mem.h"
#endif

/*
 * A program that has u8 to u64 and s8 to s64 of its own (typedef __u64 u64) defines
 * VMPT_NO_TYPES before the first header of vmpt. They must be of the same sizes; of what
 * type an u64 is does not matter to the library that is linked.
 */
#ifndef VMPT_NO_TYPES
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
#endif
#endif

/*
 * The interface that a header describes, as one number: a version and the sizes of its structs. The
 * calls that begin something are macros that add it, as zlib's deflateInit() does:
 * vmpt_vcpu_init(...) is vmpt_vcpu_init_abi(..., VMPT_VCPU_ABI). The library returns
 * -VMPT_E_VERSION where its own number differs, and touches nothing.
 */
#define VMPT_ABI_VERSION	1
#define VMPT_ABI_ADD(abi, type) ((abi)*0x100000001b3ULL ^ sizeof(type))
#define VMPT_ABI2(a, b)		VMPT_ABI_ADD(VMPT_ABI_ADD(VMPT_ABI_VERSION, a), b)
#define VMPT_ABI4(a, b, c, d)	VMPT_ABI_ADD4(VMPT_ABI_VERSION, a, b, c, d)
#define VMPT_ABI_ADD4(abi, a, b, c, d) \
	VMPT_ABI_ADD(VMPT_ABI_ADD(VMPT_ABI_ADD(VMPT_ABI_ADD(abi, a), b), c), d)

/* Elements of an array. */
#define VMPT_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/*
 * Little-endian loads of packet bytes: one instruction each, also where -ffreestanding
 * makes a plain memcpy() a call. A trace is little-endian (SDM 3 33.4.2)
 * and so are all processors with Intel PT and all builds of this project: the
 * decoder's loads are plain ones.
 */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "vmpt builds on little-endian machines only"
#endif

/* Little-endian loads, @p need not be aligned. */
static inline u16 vmpt_load16(const u8 *p)
{
	u16 v;

	__builtin_memcpy(&v, p, sizeof(v));
	return v;
}

/* The same, 32 bits. */
static inline u32 vmpt_load32(const u8 *p)
{
	u32 v;

	__builtin_memcpy(&v, p, sizeof(v));
	return v;
}

/* The same, 64 bits. */
static inline u64 vmpt_load64(const u8 *p)
{
	u64 v;

	__builtin_memcpy(&v, p, sizeof(v));
	return v;
}

/* The low @bits bits set; @bits is 0 to 64. */
static inline u64 vmpt_mask64(unsigned int bits)
{
	return bits >= 64 ? ~0ULL : (1ULL << bits) - 1;
}

#endif
