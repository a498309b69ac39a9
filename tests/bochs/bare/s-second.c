// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * INIT and SIPI of a second processor that is traced (SDM 3 Table 33-55, cases 23 and 24);
 * expect/pcs/second has the packets. MONITOR and MWAIT of a second processor. They run only if
 * named, on a PC with two processors.
 */
#include "scenarios.h"
#include "trace.h"

extern const char trampoline[], trampoline_end[], sipi_code[], sipi_code_end[];

static volatile struct {
	u32 stage, size, task;
} *const second = (void *)SECOND_BOX;

static void send(u32 what)
{
	apic_write(APIC_ICR2, 1 << 24);
	apic_write(APIC_ICR, what);
}

static bool reaches(u32 stage)
{
	for (unsigned int i = 0; i < 1000000 && second->stage != stage; i++)
		__builtin_ia32_pause();
	return second->stage == stage;
}

/* INIT and SIPI to @start; waits until the processor reports @stage. */
static bool start(u32 at, u32 stage)
{
	send(0x4500);
	for (unsigned int i = 0; i < 1000; i++)
		__builtin_ia32_pause();
	send(0x4600 | at >> 12);
	if (reaches(stage))
		return true;
	wrong("the second processor is at stage %u, not %u", second->stage, stage);
	return false;
}

/*
 * The second processor sleeps until the page is written to. This one has written to it before, at
 * another linear address, which is in its TLB (patch 16 of Bochs).
 */
static void monitor(void)
{
	volatile u64 *directory = (void *)(PAGE_TABLES + 0x2000);
	volatile u32 *alias = (void *)ALIAS;

	directory[ALIAS >> 21] = OUT | 0x83; /* present, writable, 2 MiB */
	copy_code(TRAMPOLINE, trampoline, trampoline_end);
	second->stage = 0;
	second->task = TASK_MONITOR;
	*alias = 1;
	want("the same page", 1, *(volatile u32 *)OUT);
	if (!start(TRAMPOLINE, 1))
		return;
	for (unsigned int i = 0; i < 10000; i++)
		__builtin_ia32_pause();
	want("stage of one that sleeps", 1, second->stage);
	*alias = 2;
	if (!reaches(2))
		wrong("the second processor sleeps on");
}

static void init_sipi(void)
{
	trace_prepare();
	copy_code(TRAMPOLINE, trampoline, trampoline_end);
	copy_code(SIPI_CODE, sipi_code, sipi_code_end);
	second->stage = 0;
	second->task = TASK_TRACE;
	if (start(TRAMPOLINE, 1) && start(SIPI_CODE, 2))
		host_file("sipi.pt", (const void *)OUT, second->size);
}

const struct scenario second_scenarios[] = { { "second-init-sipi", init_sipi,
					       NEEDS_PT | NEEDS_NAME },
					     { "second-monitor", monitor, NEEDS_NAME },
					     { 0 } };
