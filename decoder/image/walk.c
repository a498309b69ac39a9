// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The page walk, SDM 3 chapter 4: one table of the paging modes, one loop. An entry is read for
 * each level, five at most, so tables that refer to themselves (Windows' do) end like all others.
 * Each table has to be in the image's memory. Bits that are reserved whatever MAXPHYADDR is have to
 * be 0 (4.7); larger addresses lead out of the image. Rights, A, D, and XD do not matter: the
 * processor did execute there.
 */
#include "decoder/image/image.h"

/* One level of a mode. */
struct level {
	u8 shift, bits;	   /* of the linear address: the index of the entry */
	bool may_map;	   /* PS (bit 7) maps a page; else it has to be 0 */
	bool maps;	   /* the last level: no PS */
	u64 reserved;	   /* of an entry that refers to a table */
	u64 page_reserved; /* of one with PS */
};

#define TABLE_ADDRESS 0x000ffffffffff000ULL /* bits 51:12 */
#define PS	      (1u << 7)
#define PRESENT	      1u

/* 4.5.5: Table 4-14 to 4-20. In PML4 and PML5 entries PS is reserved. */
#define LOWER_LEVELS                                                                \
	{ 30, 9, true, false, 0, 0x3fffe000 }, { 21, 9, true, false, 0, 0x1fe000 }, \
	{                                                                           \
		12, 9, false, true, 0, 0                                            \
	}

static const struct level five[] = {
	{ 48, 9, false, false, PS, 0 },
	{ 39, 9, false, false, PS, 0 },
	LOWER_LEVELS,
};

/* 4.4: Tables 4-8 to 4-11. A PDPTE's bits 2:1 and 8:5 are reserved; 62:52 are in all entries. */
static const struct level pae[] = {
	{ 30, 2, false, false, 0x1e6 | 0xfffULL << 52, 0 },
	{ 21, 9, true, false, 0x7ffULL << 52, 0x7ffULL << 52 | 0x1fe000 },
	{ 12, 9, false, true, 0x7ffULL << 52, 0 },
};

/* 4.3: Tables 4-4 to 4-6. A 4 MiB page has bits 39:32 of its address in 20:13 (PSE-36). */
static const struct level two[] = {
	{ 22, 10, true, false, 0, 1u << 21 },
	{ 12, 10, false, true, 0, 0 },
};

struct mode {
	const struct level *level;
	u8 levels, entry; /* bytes */
	u8 linear_bits;
	u64 root; /* bits of CR3: Tables 4-3, 4-7, 4-12 */
};

static const struct mode modes[] = {
	[VMPT_PAGING_32] = { two, 2, 4, 32, 0xfffff000 },
	[VMPT_PAGING_PAE] = { pae, 3, 8, 32, 0xffffffe0 },
	[VMPT_PAGING_4] = { five + 1, 4, 8, 48, TABLE_ADDRESS },
	[VMPT_PAGING_5] = { five, 5, 8, 57, TABLE_ADDRESS },
};

static bool read_entry(struct vmpt_image *image, u64 at, unsigned int size, u64 *entry)
{
	unsigned int n = at % VMPT_PAGE;
	struct vmpt_page page;

	if (vmpt_image_page_at(image, PAGE_PHYSICAL, at - n, &page) <= 0 ||
	    !vmpt_page_knows(&page, n) || !vmpt_page_knows(&page, n + size - 1))
		return false;
	*entry = size == 4 ? vmpt_load32(page.bytes + n) : vmpt_load64(page.bytes + n);
	return true;
}

static bool canonical(u64 linear, unsigned int bits)
{
	/* 32-bit modes: addresses have no more bits. */
	return bits == 32 ? !(linear >> 32)
			  : (u64)((s64)(linear << (64 - bits)) >> (64 - bits)) == linear;
}

static u64 page_address(const struct mode *mode, const struct level *level, u64 entry)
{
	u64 page = entry & TABLE_ADDRESS & ~vmpt_mask64(level->shift);

	if (mode->entry == 4 && !level->maps)
		page |= (entry >> 13 & 0xff) << 32;
	return page;
}

static int walk(struct vmpt_image *image, const struct mode *mode, u64 cr3, u64 linear,
		u64 *physical)
{
	u64 table = cr3 & mode->root, entry = 0;
	unsigned int i;

	for (i = 0; i < mode->levels; i++) {
		const struct level *l = &mode->level[i];
		bool maps;

		if (!read_entry(image,
				table + (linear >> l->shift & vmpt_mask64(l->bits)) * mode->entry,
				mode->entry, &entry)) {
			image->counts.no_table++;
			return 0;
		}
		if (!(entry & PRESENT)) {
			image->counts.not_present++;
			return 0;
		}
		maps = l->maps || (l->may_map && entry & PS);
		if (entry & (maps && !l->maps ? l->page_reserved : l->reserved)) {
			image->counts.reserved++;
			return 0;
		}
		if (maps) {
			*physical = page_address(mode, l, entry) | (linear & vmpt_mask64(l->shift));
			return 1;
		}
		table = entry & TABLE_ADDRESS;
	}
	return 0;
}

int vmpt_image_walk(struct vmpt_image *image, const struct vmpt_space *space, u64 linear,
		    u64 *physical)
{
	const struct mode *mode = &modes[image->paging];

	/*
	 * Before a system turns paging on, CR3 is 0 from the reset on (SDM 3 10.1.1). Real mode has
	 * no paging, and no addresses from 110000H on. Virtual-8086 mode is taken for it.
	 */
	if (image->paging == VMPT_PAGING_NONE || (space->exec != 64 && !space->cr3) ||
	    (space->exec == 16 && linear < 0x110000)) {
		*physical = linear;
		return 1;
	}
	if (space->no_cr3 || !canonical(linear, mode->linear_bits)) {
		image->counts.absent++;
		return 0;
	}
	return walk(image, mode, space->cr3, linear, physical);
}
