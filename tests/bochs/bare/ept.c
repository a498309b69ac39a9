// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * One EPT: identity mapping of all RAM and the APIC's GiB with 2-MiB pages; single pages on
 * request.
 */
#include "vmx.h"

#define TABLE(n) ((u64 *)(EPT_PAGES + 0x1000ULL * (n)))
enum { PML4, PDPT, PD, PD_APIC, FIRST_TABLE };
#define LARGE  0x80
#define WB     (6 << 3)
#define TABLES 16

static unsigned int tables;

void ept_init(void)
{
	memset((void *)EPT_PAGES, 0, 0x1000 * TABLES);
	tables = FIRST_TABLE;
	TABLE(PML4)[0] = (u64)TABLE(PDPT) | EPT_RWX;
	TABLE(PDPT)[0] = (u64)TABLE(PD) | EPT_RWX;
	TABLE(PDPT)[3] = (u64)TABLE(PD_APIC) | EPT_RWX;
	for (u64 i = 0; i < RAM_END >> 21; i++)
		TABLE(PD)[i] = i << 21 | LARGE | WB | EPT_RWX;
	/* The APIC's registers, uncached. */
	TABLE(PD_APIC)[0xfee00000u >> 21 & 511] = 0xfee00000u | LARGE | EPT_RWX;
}

void ept_page(u64 gpa, u64 hpa, u64 rights)
{
	u64 *entry = &TABLE(PD)[gpa >> 21 & 511], *table;

	if (!*entry || *entry & LARGE) {
		if (tables == TABLES) {
			wrong("no EPT table is left");
			return;
		}
		table = TABLE(tables++);
		for (u64 i = 0; i < 512; i++)
			table[i] = *entry ? (*entry & ~(u64)LARGE) + (i << 12) : 0;
		*entry = (u64)table | EPT_RWX;
	}
	table = (u64 *)(*entry & ~0xfffULL);
	table[gpa >> 12 & 511] = rights ? hpa | WB | rights : 0;
}

u64 ept_entry(u64 gpa)
{
	const u64 *table = (const u64 *)(TABLE(PD)[gpa >> 21 & 511] & ~0xfffULL);

	return table[gpa >> 12 & 511];
}

u64 eptp(void)
{
	return EPT_PAGES | 3 << 3 | 6; /* 4 levels, WB */
}

void ept_flush(void)
{
	u64 what[2] = { eptp(), 0 };

	__asm__ volatile("invept %0, %1" : : "m"(what), "r"(1ULL) : "cc", "memory");
}
