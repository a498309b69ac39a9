// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Output to non-RAM addresses, ToPA tables in non-RAM (SDM 3 33.2.7.4), and RAM that MONITOR
 * watches. Of the two behaviours that the manual allows for restricted memory, this PC drops output
 * bytes, and reports an error for a table.
 */
#include "scenarios.h"
#include "trace.h"

#define ROUNDS	      400
#define CTL_RANGE     (CTL_ON & ~(u64)VMPT_CTL_TOPA)
#define APIC	      0xfee00000ULL
#define MSR_APIC_BASE 0x1b
#define APIC_TPR      0x80
#define APIC_COUNT    0x380 /* initial count of the timer */
#define IO_APIC	      0xfec00000ULL
#define VIDEO	      0xa0000ULL
#define ROM	      0xffff0000ULL
#define MONITORED     (OUT + 0x800)

void traced_jumps(u64 ctl, u64 rounds);

/* Traces to the page at @at; checks that the pointer advances and wraps. */
static void to(u64 at, u64 offset)
{
	trace_prepare();
	msr_write(VMPT_MSR_RTIT_OUTPUT_BASE, at);
	msr_write(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, offset << 32 | 0xfff);
	traced_jumps(CTL_RANGE, ROUNDS);
	want("STATUS", 0,
	     msr_read(VMPT_MSR_RTIT_STATUS) & (VMPT_STATUS_ERROR | VMPT_STATUS_STOPPED));
	if (msr_read(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS) >> 32 == offset)
		wrong("output to %x does not go on", at);
	msr_write(VMPT_MSR_RTIT_CTL, 0);
}

/* No device or ROM gets packets, nor does an address without memory. */
static void dropped(void)
{
	u64 before;

	apic_write(APIC_TPR, 0);
	apic_write(0x320, LVT_MASK | IPI_VECTOR);
	apic_write(APIC_COUNT, 0);
	to(APIC, APIC_TPR);
	to(APIC, APIC_COUNT);
	want("the APIC's TPR", 0, apic_read(APIC_TPR));
	want("its timer", 0, apic_read(APIC_COUNT));
	*(volatile u32 *)IO_APIC = 0;
	to(IO_APIC, 0);
	want("the I/O APIC's index", 0, *(volatile u32 *)IO_APIC);
	to(VIDEO, 0);
	before = *(volatile u64 *)ROM;
	to(ROM, 0);
	want("the ROM", before, *(volatile u64 *)ROM);
	to(HOLE, 0);
	want("nothing", ~0ULL, *(volatile u64 *)HOLE);
	/* The unit still works: now to RAM. */
	trace_prepare();
	traced_jumps(CTL_ON, 3);
	trace_save("after-dropped");
}

/* A table with a region there, then one in RAM: output continues in the second. */
static void through(void)
{
	u64 *table = (u64 *)OUT_TABLE;

	trace_prepare();
	table[0] = IO_APIC;
	table[1] = OUT | 9ULL << VMPT_TOPA_SIZE_SHIFT;
	table[2] = OUT_TABLE | VMPT_TOPA_END;
	*(volatile u32 *)IO_APIC = 0;
	traced_jumps(CTL_ON, 2000);
	want("the I/O APIC's index", 0, *(volatile u32 *)IO_APIC);
	want("STATUS.Error", 0, msr_read(VMPT_MSR_RTIT_STATUS) & VMPT_STATUS_ERROR);
	want("the entry", 1, (u32)msr_read(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS) >> 7);
	if (!*(u64 *)OUT)
		wrong("nothing is in RAM");
}

static void table_at(u64 at)
{
	trace_prepare();
	msr_write(VMPT_MSR_RTIT_OUTPUT_BASE, at);
	traced_jumps(CTL_ON, ROUNDS);
	want("STATUS", VMPT_STATUS_ERROR,
	     msr_read(VMPT_MSR_RTIT_STATUS) & (VMPT_STATUS_ERROR | VMPT_STATUS_STOPPED));
}

/* The result depends on the device's registers. */
static void tables(void)
{
	/* 0 in the TPR and its neighbours would be an entry: a page at 0. */
	apic_write(APIC_TPR, 0);
	table_at(APIC);
	table_at(IO_APIC);
	table_at(VIDEO);
	table_at(HOLE);
}

/* PT cannot access RAM that is hidden by the APIC's registers. */
static void over_ram(void)
{
	u64 base = msr_read(MSR_APIC_BASE), *page = (u64 *)(OUT + 0x100000);

	page[0] = OUT | 9ULL << VMPT_TOPA_SIZE_SHIFT;
	page[1] = (u64)page | VMPT_TOPA_END;
	msr_write(MSR_APIC_BASE, (u64)page | (base & 0xfff));
	/* trace_prepare() would clear the RAM below it. */
	msr_write(VMPT_MSR_RTIT_STATUS, 0);
	msr_write(VMPT_MSR_RTIT_OUTPUT_BASE, (u64)page);
	msr_write(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0x7f);
	traced_jumps(CTL_ON, ROUNDS);
	want("STATUS.Error", VMPT_STATUS_ERROR, msr_read(VMPT_MSR_RTIT_STATUS) & VMPT_STATUS_ERROR);
	msr_write(VMPT_MSR_RTIT_CTL, 0);
	msr_write(VMPT_MSR_RTIT_STATUS, 0);
	msr_write(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0x100ULL << 32 | 0xfff);
	traced_jumps(CTL_RANGE, ROUNDS);
	msr_write(MSR_APIC_BASE, base);
	want("the RAM", 0, page[0x100 / 8]);
	want("what was there", (u64)page | VMPT_TOPA_END, page[1]);
}

/* Bochs has no direct pointer to such a page. */
static void monitored(void)
{
	trace_prepare();
	__asm__ volatile("monitor" : : "a"(MONITORED), "c"(0), "d"(0) : "memory");
	traced_jumps(CTL_ON, 3);
	trace_save("monitored");
	trace_prepare();
	__asm__ volatile("monitor" : : "a"(OUT_TABLE + 0x800), "c"(0), "d"(0) : "memory");
	traced_jumps(CTL_ON, 3);
	trace_save("monitored-table");
}

const struct scenario memory_scenarios[] = {
	{ "memory-dropped", dropped, NEEDS_PT },     { "memory-through", through, NEEDS_PT },
	{ "memory-tables", tables, NEEDS_PT },	     { "memory-apic", over_ram, NEEDS_PT },
	{ "memory-monitored", monitored, NEEDS_PT }, { 0 }
};
