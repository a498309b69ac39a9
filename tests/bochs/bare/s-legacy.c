// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Outside of long mode: CR3[11:5] of PAE paging in PIP, paging that MOV CR0 or MOV CR4 turns into
 * PAE paging in the middle of a trace, a task switch. expect/legacy has the packets.
 */
#include "scenarios.h"
#include "trace.h"

#define CR0_PG	 0x80000000u
#define CR4_PSE	 0x10
#define CR4_PAE	 0x20
#define LARGE	 0x83 /* a present, writable page of 4 MiB */
#define TSS_SIZE 26   /* words */

void traced_legacy(u32 ctl, u32 cr4, u32 cr0);
extern u64 legacy_gdt[6];
extern const char legacy_task[];

static u32 tasks[2][TSS_SIZE];

static u64 tss_descriptor(const u32 *task)
{
	u64 base = (uintptr_t)task;

	return 0x67 | (base & 0xffffff) << 16 | 0x89ULL << 40 | (base >> 24) << 56;
}

static void set_pdpt(u64 at)
{
	for (u64 i = 0; i < 4; i++)
		((u64 *)at)[i] = (PAGE_TABLES + 0x2000 + 0x1000 * i) | 1;
}

static void one(const char *name, u32 cr4, u32 cr0)
{
	u32 *pd = (u32 *)(LEGACY_CR3 & ~0xfff), *next = tasks[1];

	for (u32 i = 0; i < 512; i++)
		pd[i] = i << 22 | LARGE;
	/* In the directory's last entries, whose addresses are not used. */
	set_pdpt(LEGACY_CR3);
	set_pdpt(LEGACY_CR3_2);
	set_pdpt(LEGACY_CR3_3);
	memset(tasks, 0, sizeof(tasks));
	next[7] = LEGACY_CR3_3;
	next[8] = (u32)(uintptr_t)legacy_task;
	next[9] = 2; /* EFLAGS */
	next[14] = GUEST_STACK;
	for (unsigned int i = 18; i < 24; i++)
		next[i] = i == 19 ? SEL_CODE32 : SEL_DATA;
	memcpy(legacy_gdt, gdt, 32);
	legacy_gdt[4] = tss_descriptor(tasks[0]);
	legacy_gdt[5] = tss_descriptor(tasks[1]);
	trace_prepare();
	traced_legacy((u32)CTL_ON, cr4, cr0);
	trace_save(name);
}

static void by_cr0(void)
{
	one("legacy-cr0", CR4_PAE, 0);
}

static void by_cr4(void)
{
	one("legacy-cr4", CR4_PSE, CR0_PG);
}

const struct scenario legacy_scenarios[] = { { "legacy-cr0", by_cr0, NEEDS_PT },
					     { "legacy-cr4", by_cr4, NEEDS_PT },
					     { 0 } };
