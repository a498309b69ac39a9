// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A guest's memory with page tables; see guest-memory.h. */
#include <stdlib.h>

#include "tests/decoder/image/guest-memory.h"
#include "tests/support/support.h"

#define PRESENT 1u
#define PS	0x80u

static u64 new_table(struct guest_memory *m, u64 size)
{
	u64 at = m->free;

	m->free += size < VMPT_PAGE ? VMPT_PAGE : size;
	ck_assert_uint_le(m->free, GUEST_RAM / 2);
	memset(m->ram + at, 0, VMPT_PAGE);
	return at;
}

u64 guest_root(struct guest_memory *m, u8 paging)
{
	u64 at = new_table(m, VMPT_PAGE);

	/* A PAE guest's 32 bytes may be anywhere in a page: 4.4.1. */
	return paging == VMPT_PAGING_PAE ? at + 0x7e0 : at;
}

static unsigned int shift_of(u8 paging, int level)
{
	return paging == VMPT_PAGING_32 ? (level == 2 ? 22 : 12)
					: 12 + 9 * (unsigned int)(level - 1);
}

static int top_of(u8 paging)
{
	switch (paging) {
	case VMPT_PAGING_32:
		return 2;
	case VMPT_PAGING_PAE:
		return 3;
	case VMPT_PAGING_4:
		return 4;
	default:
		return 5;
	}
}

static unsigned int entry_size(u8 paging)
{
	return paging == VMPT_PAGING_32 ? 4 : 8;
}

static u64 entry_at(u8 paging, u64 table, u64 linear, int level)
{
	u64 mask = paging == VMPT_PAGING_32 ? 1023 : 511;

	return table + (linear >> shift_of(paging, level) & mask) * entry_size(paging);
}

static u64 read_at(const struct guest_memory *m, u64 at, unsigned int size)
{
	u64 v = 0;

	memcpy(&v, m->ram + at, size);
	return v;
}

u64 guest_entry(struct guest_memory *m, u8 paging, u64 cr3, u64 linear, int level)
{
	unsigned int size = entry_size(paging);
	u64 table = cr3 & ~(paging == VMPT_PAGING_PAE ? 0x1fULL : 0xfffULL);
	int now;

	for (now = top_of(paging); now > level; now--) {
		u64 at = entry_at(paging, table, linear, now);

		if (!(read_at(m, at, size) & PRESENT)) {
			/* A PDPTE of PAE has no rights; elsewhere user, write, present, accessed.
			 */
			u64 entry = new_table(m, VMPT_PAGE) |
				    (paging == VMPT_PAGING_PAE && now == 3 ? 1u : 0x27u);

			memcpy(m->ram + at, &entry, size);
		}
		table = read_at(m, at, size) & 0x000ffffffffff000ULL;
	}
	return entry_at(paging, table, linear, level);
}

void guest_map(struct guest_memory *m, u8 paging, u64 cr3, u64 linear, u64 physical, u64 size,
	       bool present)
{
	int level = size == VMPT_PAGE ? 1 : size == 1u << 30 ? 3 : 2;
	u64 at = guest_entry(m, paging, cr3, linear, level);
	u64 entry = physical | 0x66 | (present ? PRESENT : 0) | (level > 1 ? PS : 0);

	/* XD, a protection key: bits that a processor uses and a walk ignores. */
	if (paging >= VMPT_PAGING_4)
		entry |= 0xabULL << 56;
	else if (paging == VMPT_PAGING_32 && level == 2) /* PSE-36: Table 4-4 */
		entry = (entry & 0xffc00fff) | (physical >> 32) << 13;
	memcpy(m->ram + at, &entry, entry_size(paging));
	m->list[m->count++] =
		(struct guest_mapping){ cr3, linear, physical, size, paging, present };
	ck_assert_uint_lt(m->count, VMPT_ARRAY_SIZE(m->list));
}

/* Mappings of an upper and a lower half, in each mode. */
void guest_memory_make(struct guest_memory *m)
{
	struct test_rng rng = { 1 };
	unsigned int mode;
	u64 root;
	size_t i;

	*m = (struct guest_memory){ .ram = malloc(GUEST_RAM), .free = VMPT_PAGE };
	ck_assert_ptr_nonnull(m->ram);
	for (i = 0; i < GUEST_RAM; i += 8) {
		u64 v = test_random(&rng);

		memcpy(m->ram + i, &v, 8);
	}
	for (mode = VMPT_PAGING_4; mode <= VMPT_PAGING_5; mode++) {
		const u8 p = (u8)mode;
		u64 high = p == VMPT_PAGING_4 ? 0xffff800000000000ULL : 0xff00000000000000ULL;

		/* Two processes; the second has its PCID in bits 11:0, of which PIP has 11:5. */
		root = guest_root(m, p);
		guest_map(m, p, root, 0x400000, 0x500000, VMPT_PAGE, true);
		guest_map(m, p, root, 0x401000, 0x7ff000, VMPT_PAGE, true);
		guest_map(m, p, root, 0x402000, 0x501000, VMPT_PAGE, false);
		guest_map(m, p, root, 0xffffffff81000000, 0x600000, 2 << 20, true);
		guest_map(m, p, root, high, 0x0, 1 << 30, true);
		guest_map(m, p, root, high | 1 << 30, 1ULL << 51, VMPT_PAGE, true);
		root = guest_root(m, p) | 0x5a0;
		guest_map(m, p, root, 0x400000, 0x502000, VMPT_PAGE, true);
		guest_map(m, p, root, 0xffffffff81000000, 0x600000, 2 << 20, true);
	}
	root = guest_root(m, VMPT_PAGING_PAE);
	guest_map(m, VMPT_PAGING_PAE, root, 0x8048000, 0x503000, VMPT_PAGE, true);
	guest_map(m, VMPT_PAGING_PAE, root, 0x8049000, 0x503000, VMPT_PAGE, false);
	guest_map(m, VMPT_PAGING_PAE, root, 0xc0000000, 0x600000, 2 << 20, true);
	root = guest_root(m, VMPT_PAGING_32);
	guest_map(m, VMPT_PAGING_32, root, 0x8048000, 0x504000, VMPT_PAGE, true);
	guest_map(m, VMPT_PAGING_32, root, 0xc0000000, 0x400000, 4 << 20, true);
	guest_map(m, VMPT_PAGING_32, root, 0xd0000000, 0xab00400000ULL, 4 << 20, true);
}

void guest_memory_free(struct guest_memory *m)
{
	free(m->ram);
}

void guest_check(const struct guest_memory *m, struct vmpt_image *image, u8 paging)
{
	size_t i, checked = 0;

	for (i = 0; i < m->count; i++) {
		const struct guest_mapping *x = &m->list[i];
		struct vmpt_space space = { .cr3 = x->cr3,
					    .exec = paging >= VMPT_PAGING_4 ? 64 : 32 };
		u64 at;

		if (x->paging != paging)
			continue;
		for (at = 0; at < x->size; at += at < GUEST_RAM + VMPT_PAGE ? VMPT_PAGE : 1 << 26) {
			bool here = x->present && x->physical + at < GUEST_RAM;
			struct vmpt_page page;

			ck_assert_int_eq(vmpt_image_page(image, &space, x->linear + at, 0, &page),
					 here);
			if (!here)
				continue;
			ck_assert_ptr_null(page.valid);
			ck_assert_mem_eq(page.bytes, m->ram + x->physical + at, VMPT_PAGE);
			checked++;
		}
	}
	ck_assert_uint_gt(checked, 0);
}
