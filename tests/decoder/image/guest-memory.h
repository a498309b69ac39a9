/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The memory of a guest that was never run: random bytes, page tables in each mode as SDM 3 4.3 to
 * 4.5 draw them, and for each mapping what the processor would find there. It writes entries and
 * does not read them, so that it shares nothing with the walk that it is compared with.
 */
#ifndef VMPT_TESTS_GUEST_MEMORY_H
#define VMPT_TESTS_GUEST_MEMORY_H

#include "decoder/vmpt-image.h"

#define GUEST_RAM (8u << 20)

struct guest_mapping {
	u64 cr3, linear, physical, size;
	u8 paging; /* enum vmpt_paging */
	bool present;
};

struct guest_memory {
	u8 *ram; /* GUEST_RAM bytes */
	u64 free;
	struct guest_mapping list[64];
	size_t count;
};

void guest_memory_make(struct guest_memory *m);
void guest_memory_free(struct guest_memory *m);

/* A new top-level table. */
u64 guest_root(struct guest_memory *m, u8 paging);
/*
 * Map @size bytes (4 KiB, 2 MiB, 1 GiB; 4 MiB in 32-bit mode) at @linear to @physical; @present
 * false: the last entry lacks P.
 */
void guest_map(struct guest_memory *m, u8 paging, u64 cr3, u64 linear, u64 physical, u64 size,
	       bool present);
/* The physical address of the entry of level @level (4: that of a PML4) for @linear. */
u64 guest_entry(struct guest_memory *m, u8 paging, u64 cr3, u64 linear, int level);

/* All that it mapped, asked of @image by the paging mode @paging: equal, page by page. */
void guest_check(const struct guest_memory *m, struct vmpt_image *image, u8 paging);

#endif
