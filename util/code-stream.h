/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A code stream: the bytes of the code that a virtual machine executed, as it executed them
 * (docs/qemu-plugin/code-stream.md has the layout). The QEMU plugin writes it, decoder/image/ reads
 * it. A file is chunks, each of which can be read without the others; a chunk is a head and
 * records. Numbers in heads are little-endian, those in records have 7 bits a byte, the lowest
 * first, bit 7 set in all but the last; of signed ones bit 0 is the sign.
 */
#ifndef VMPT_UTIL_CODE_STREAM_H
#define VMPT_UTIL_CODE_STREAM_H

#include "arch/types.h"
#include "util/hash.h"

/* Each chunk begins with it, so a file does; the last character is the version. */
#define CODE_MAGIC	"VMPTCOD1"
#define CODE_MAGIC_SIZE 8u

struct code_head {
	char magic[CODE_MAGIC_SIZE];
	u32 size;   /* of the records that follow, 1 to CODE_CHUNK */
	u32 number; /* of chunks of this recording before it, modulo 2^32 */
	u64 sum;    /* code_sum() */
};

#define CODE_CHUNK 65536u
/* The largest record: START with a name, or CODE with a page. */
#define CODE_RECORD   4200u
#define CODE_NAME_MAX 255u
#define CODE_PAGE     4096u

/*
 * The first byte of a record. Next comes its time, as the distance to that of the record before, in
 * the first record of a chunk to 0; what else is a distance is so, too.
 */
enum code_record {
	CODE_START = 1, /* a machine starts: size of its name, name */
	CODE_BYTES,	/* signed distance of the physical address to the end of the bytes before,
			   size, bytes; all are in one page */
	CODE_MAP_16,	/* code of this mode begins at a linear page that was not mapped so: signed
			   distances of CR3[63:5], linear page, physical page */
	CODE_MAP_32,
	CODE_MAP_64,
	CODE_RUN, /* a run ended: vCPU, VMCS >> 12, length in ticks, ticks by which it was moved */
	CODE_END, /* nothing follows: enum code_end */
	CODE_RECORDS
};

enum code_end {
	CODE_END_EXIT,	/* the machine ended */
	CODE_END_LIMIT, /* the file has its largest size: what was executed later is missing */
	CODE_ENDS
};

/* Of a head, up to .sum, and its records. */
static inline u64 code_sum(const struct code_head *head, const u8 *records, size_t size)
{
	return vmpt_fnv1a(vmpt_fnv1a(VMPT_FNV1A, head, offsetof(struct code_head, sum)), records,
			  size);
}

/* At most 10 bytes; returns where they end. */
static inline u8 *code_put(u8 *at, u64 v)
{
	for (; v >> 7; v >>= 7)
		*at++ = (u8)(v | 0x80);
	*at++ = (u8)v;
	return at;
}

static inline u8 *code_put_signed(u8 *at, u64 distance)
{
	return code_put(at, distance << 1 ^ (distance >> 63 ? ~0ULL : 0));
}

/* Moves *@at on. False: no number there before @end. */
static inline bool code_take(const u8 **at, const u8 *end, u64 *v)
{
	unsigned int shift = 0;
	u8 byte;

	*v = 0;
	do {
		if (*at == end || shift > 63)
			return false;
		byte = *(*at)++;
		*v |= (u64)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return shift < 70 || byte < 2;
}

static inline bool code_take_signed(const u8 **at, const u8 *end, u64 *distance)
{
	u64 v;

	if (!code_take(at, end, &v))
		return false;
	*distance = v >> 1 ^ (v & 1 ? ~0ULL : 0);
	return true;
}

#endif
