// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* See kdump-writer.h. */
#include <stdlib.h>
#include <zlib.h>

#include "tests/decoder/image/kdump-writer.h"
#include "tests/support/support.h"
#include "util/array.h"

#define BLOCK 4096u
#define ZLIB  1u

/* Block 0, of x86-64; version 6 has 64-bit frame numbers in the sub-header, block 1. */
struct head {
	char signature[8];
	u32 version;
	char utsname[6][65];
	char timestamp[22];
	u32 status, block_size, sub_header_blocks, bitmap_blocks, max_mapnr, total_ram_blocks;
	u32 device_blocks, written_blocks, current_cpu, cpus;
} __attribute__((packed));

struct sub_head {
	u64 phys_base;
	u32 dump_level, split;
	u64 start_pfn, end_pfn, vmcoreinfo[2], note[2], eraseinfo[2], start_pfn_64, end_pfn_64,
		max_mapnr_64;
} __attribute__((packed));

struct page_desc {
	u64 offset;
	u32 size, flags;
	u64 page_flags;
} __attribute__((packed));

static void put(struct dump *d, u64 at, const void *bytes, size_t n)
{
	const u64 end = at + n;

	ck_assert_int_eq(vmpt_reserve(&d->data, &d->room, end + 1), 0);
	if (end > d->size) {
		memset(d->data + d->size, 0, end - d->size);
		d->size = end;
	}
	if (n)
		memcpy(d->data + at, bytes, n);
}

static void put_head(struct dump *d, u64 pages, u32 bitmap_blocks)
{
	struct head head = { .signature = "KDUMP   ",
			     .version = 6,
			     .utsname = { "Linux", "guest", "6.12", "#1", "x86_64", "" },
			     .status = ZLIB,
			     .block_size = BLOCK,
			     .sub_header_blocks = 1,
			     .bitmap_blocks = bitmap_blocks,
			     .max_mapnr = (u32)pages,
			     .cpus = 1 };
	const struct sub_head sub = { .dump_level = 1, .max_mapnr_64 = pages };

	memcpy(head.signature, "KDUMP   ", 8);
	put(d, 0, &head, sizeof(head));
	put(d, BLOCK, &sub, sizeof(sub));
}

/* The page's bytes at the end of the file. */
static void put_page(struct dump *d, u64 desc_at, const u8 *page)
{
	u8 small[BLOCK + 64];
	unsigned long size = sizeof(small);
	struct page_desc desc = { .offset = d->size, .size = BLOCK };

	ck_assert_int_eq(compress2(small, &size, page, BLOCK, 1), Z_OK);
	if (size < BLOCK) {
		desc.size = (u32)size;
		desc.flags = ZLIB;
		page = small;
	}
	put(d, desc_at, &desc, sizeof(desc));
	put(d, d->size, page, desc.size);
}

void kdump_write(struct dump *d, const u8 *ram, u64 size, bool (*has)(const void *, u64),
		 const void *opaque)
{
	const u64 pages = size / BLOCK, bitmap = (pages / 8 + BLOCK - 1) / BLOCK;
	const u64 memory = 2 * BLOCK, dumped = memory + bitmap * BLOCK;
	u64 desc = dumped + bitmap * BLOCK, count = 0, i;

	*d = (struct dump){ 0 };
	put_head(d, pages, (u32)(2 * bitmap));
	for (i = 0; i < pages; i++)
		count += has(opaque, i * BLOCK);
	put(d, desc + count * sizeof(struct page_desc), "", 0);
	for (i = 0; i < pages; i++) {
		u8 bit = (u8)(1u << i % 8);

		d->data[memory + i / 8] |= bit;
		if (!has(opaque, i * BLOCK))
			continue;
		d->data[dumped + i / 8] |= bit;
		put_page(d, desc, ram + i * BLOCK);
		desc += sizeof(struct page_desc);
	}
}

static void put_numbers(struct dump *d, u64 at, u64 a, u64 b)
{
	const u64 big[] = { __builtin_bswap64(a), __builtin_bswap64(b) };

	put(d, at, big, sizeof(big));
}

void kdump_flatten(struct dump *d, const struct dump *file, size_t most, u64 seed)
{
	struct test_rng rng = { seed };
	size_t n = (file->size + most - 1) / most, *order = calloc(n, sizeof(*order)), i;

	ck_assert_ptr_nonnull(order);
	*d = (struct dump){ 0 };
	put(d, 0, "makedumpfile", 12);
	put_numbers(d, 16, 1, 1);
	put(d, BLOCK, "", 0);
	for (i = 0; i < n; i++) {
		size_t k = test_random(&rng) % (i + 1);

		order[i] = order[k];
		order[k] = i;
	}
	for (i = 0; i < n; i++) {
		u64 at = order[i] * most, size = file->size - at < most ? file->size - at : most;

		put_numbers(d, d->size, at, size);
		put(d, d->size, file->data + at, size);
	}
	put_numbers(d, d->size, ~0ULL, ~0ULL);
	free(order);
}
