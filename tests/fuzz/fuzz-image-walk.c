// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Any bytes as the memory of a guest with page tables in it: byte 0 is the paging mode, then come
 * CR3 and eight linear addresses. Translations are those of a second, plain walker, which follows
 * SDM 3 chapter 4 by the letter; a walk reads as many tables as the mode has levels, whatever they
 * refer to.
 */
#include <stdlib.h>

#include "decoder/image/image.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

enum { ADDRESSES = 8, HEAD = 1 + 8 + 8 * ADDRESSES };

static void require(bool holds)
{
	if (!holds)
		abort();
}

/* ---- the second walker ---- */

struct memory {
	const u8 *data;
	u64 size;
};

#define NOT_MAPPED (~0ULL)

static u64 bits(u64 value, unsigned int high, unsigned int low)
{
	return value << (63 - high) >> (63 - high) >> low;
}

/* The entry at @at if its P is 1, else 0. */
static u64 present(const struct memory *m, u64 at, unsigned int size)
{
	u64 entry = 0;

	if (at > m->size || size > m->size - at)
		return 0;
	memcpy(&entry, m->data + at, size);
	return entry & 1 ? entry : 0;
}

/* 4.3 with CR4.PSE: Tables 4-4 to 4-6 for a processor with 40 physical-address bits. */
static u64 walk_32(const struct memory *m, u64 cr3, u64 linear)
{
	u64 pde, pte;

	if (linear >> 32)
		return NOT_MAPPED;
	pde = present(m, bits(cr3, 31, 12) << 12 | bits(linear, 31, 22) << 2, 4);
	if (!pde)
		return NOT_MAPPED;
	if (bits(pde, 7, 7))
		return bits(pde, 21, 21) ? NOT_MAPPED
					 : bits(pde, 20, 13) << 32 | bits(pde, 31, 22) << 22 |
						   bits(linear, 21, 0);
	pte = present(m, bits(pde, 31, 12) << 12 | bits(linear, 21, 12) << 2, 4);
	return pte ? bits(pte, 31, 12) << 12 | bits(linear, 11, 0) : NOT_MAPPED;
}

/* From a page directory on, which PAE and long mode share: Tables 4-9 to 4-11, 4-17 to 4-20. */
static u64 walk_directory(const struct memory *m, u64 table, u64 linear, bool pae)
{
	u64 pde = present(m, table | bits(linear, 29, 21) << 3, 8), pte;

	if (!pde || (pae && bits(pde, 62, 52)))
		return NOT_MAPPED;
	if (bits(pde, 7, 7))
		return bits(pde, 20, 13) ? NOT_MAPPED
					 : bits(pde, 51, 21) << 21 | bits(linear, 20, 0);
	pte = present(m, bits(pde, 51, 12) << 12 | bits(linear, 20, 12) << 3, 8);
	if (!pte || (pae && bits(pte, 62, 52)))
		return NOT_MAPPED;
	return bits(pte, 51, 12) << 12 | bits(linear, 11, 0);
}

/* 4.4.1: Table 4-8. */
static u64 walk_pae(const struct memory *m, u64 cr3, u64 linear)
{
	u64 pdpte;

	if (linear >> 32)
		return NOT_MAPPED;
	pdpte = present(m, bits(cr3, 31, 5) << 5 | bits(linear, 31, 30) << 3, 8);
	if (!pdpte || bits(pdpte, 2, 1) || bits(pdpte, 8, 5) || bits(pdpte, 63, 52))
		return NOT_MAPPED;
	return walk_directory(m, bits(pdpte, 51, 12) << 12, linear, true);
}

/* 4.5.4: Tables 4-14 to 4-16. */
static u64 walk_long(const struct memory *m, u64 cr3, u64 linear, bool five)
{
	u64 table = bits(cr3, 51, 12) << 12, entry;
	u64 sign = bits(linear, 63, five ? 56 : 47);

	if (sign && sign != (five ? 0xff : 0x1ffff))
		return NOT_MAPPED;
	if (five) {
		entry = present(m, table | bits(linear, 56, 48) << 3, 8);
		if (!entry || bits(entry, 7, 7))
			return NOT_MAPPED;
		table = bits(entry, 51, 12) << 12;
	}
	entry = present(m, table | bits(linear, 47, 39) << 3, 8);
	if (!entry || bits(entry, 7, 7))
		return NOT_MAPPED;
	entry = present(m, bits(entry, 51, 12) << 12 | bits(linear, 38, 30) << 3, 8);
	if (!entry)
		return NOT_MAPPED;
	if (bits(entry, 7, 7))
		return bits(entry, 29, 13) ? NOT_MAPPED
					   : bits(entry, 51, 30) << 30 | bits(linear, 29, 0);
	return walk_directory(m, bits(entry, 51, 12) << 12, linear, false);
}

static bool plain_walk(const struct memory *m, u8 paging, const struct vmpt_space *space,
		       u64 linear, u64 *physical)
{
	if (paging == VMPT_PAGING_NONE || (space->exec == 16 && linear <= 0x10ffff) ||
	    (space->exec <= 32 && !space->cr3)) {
		*physical = linear;
		return true;
	}
	if (space->no_cr3)
		return false;
	if (paging == VMPT_PAGING_32)
		*physical = walk_32(m, space->cr3, linear);
	else if (paging == VMPT_PAGING_PAE)
		*physical = walk_pae(m, space->cr3, linear);
	else
		*physical = walk_long(m, space->cr3, linear, paging == VMPT_PAGING_5);
	return *physical != NOT_MAPPED;
}

/* The translation of @linear by both: whether there is one. */
static bool translate(struct vmpt_image *image, const struct memory *m, u8 paging,
		      const struct vmpt_space *space, u64 linear, u64 *physical)
{
	int ret = vmpt_image_translate(image, space, linear, physical);
	u64 want;

	require(ret == plain_walk(m, paging, space, linear, &want));
	require(!ret || *physical == want);
	return ret;
}

/* ---- images of the memory ---- */

/* A file: a page is one of it or absent, for one of the reasons. */
static void check_file(const struct memory *m, u8 paging, const struct vmpt_space *space,
		       const u8 *linears)
{
	const struct vmpt_image_options options = { .kind = VMPT_IMAGE_RAM, .paging = paging };
	const struct vmpt_file file = { m->data, m->size };
	struct vmpt_image_counts c;
	struct vmpt_image *image;
	unsigned int i;

	require(!vmpt_image_open_memory(&image, &file, 1, &options, NULL));
	for (i = 0; i < ADDRESSES; i++) {
		u64 linear = vmpt_load64(linears + 8 * i), physical, again;
		bool ret = translate(image, m, paging, space, linear, &physical);
		struct vmpt_page page;

		linear &= ~(VMPT_PAGE - 1ULL);
		require(translate(image, m, paging, space, linear, &again) == ret);
		require(!ret || physical - again < VMPT_PAGE);
		if (vmpt_image_page(image, space, linear, 0, &page) == 1)
			require(ret && page.bytes &&
				(page.valid || (page.bytes >= file.data &&
						page.bytes + VMPT_PAGE <= file.data + file.size)));
		else
			require(!ret || again >= file.size);
	}
	vmpt_image_counts(image, &c);
	require(c.found + c.absent + c.not_present + c.no_table + c.reserved + c.no_memory ==
		ADDRESSES);
	vmpt_image_close(image);
}

struct counted {
	struct memory m;
	unsigned int calls;
};

static int give_page(void *opaque, u64 physical, u8 bytes[VMPT_PAGE])
{
	struct counted *c = opaque;

	c->calls++;
	if (physical >= c->m.size || c->m.size - physical < VMPT_PAGE)
		return 0;
	memcpy(bytes, c->m.data + physical, VMPT_PAGE);
	return 1;
}

/* Pages by a function: no walk asks for more of them than there are levels. */
static void check_source(const struct memory *m, u8 paging, const struct vmpt_space *space,
			 const u8 *linears)
{
	static const u8 levels[] = { 4, 0, 2, 3, 4, 5 };
	struct counted c = { .m = { m->data, m->size - m->size % VMPT_PAGE } };
	const struct vmpt_image_source source = { .physical = give_page, .opaque = &c };
	const struct vmpt_image_options options = { .paging = paging };
	struct vmpt_image *image;
	unsigned int i;

	require(!vmpt_image_make(&image, &source, &options));
	for (i = 0; i < ADDRESSES; i++) {
		u64 physical;

		c.calls = 0;
		translate(image, &c.m, paging, space, vmpt_load64(linears + 8 * i), &physical);
		require(c.calls <= levels[paging]);
	}
	vmpt_image_close(image);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct vmpt_space space = { 0 };
	struct memory m;
	u8 paging;

	/* An image without any memory translates nothing. */
	if (size <= HEAD)
		return 0;
	paging = data[0] % (VMPT_PAGING_5 + 1);
	space.exec = (u8)(16 << (data[0] >> 4) % 3);
	space.no_cr3 = data[0] >> 7;
	space.cr3 = vmpt_load64(data + 1);
	m = (struct memory){ data + HEAD, size - HEAD };
	check_file(&m, paging, &space, data + 9);
	check_source(&m, paging, &space, data + 9);
	return 0;
}
