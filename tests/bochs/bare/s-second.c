// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * INIT and SIPI of a second processor that is traced (SDM 3 Table 33-55, cases 23 and 24). Run
 * where it is named, on a PC with two processors. expect/pcs/second has the packets.
 */
#include "scenarios.h"
#include "trace.h"

extern const char trampoline[], trampoline_end[], sipi_code[], sipi_code_end[];

static volatile struct {
	u32 stage, size;
} *const second = (void *)SECOND_BOX;

static void send(u32 what)
{
	apic_write(APIC_ICR2, 1 << 24);
	apic_write(APIC_ICR, what);
}

/* INIT, SIPI to @start; until the processor says @stage. */
static bool start(u32 at, u32 stage)
{
	send(0x4500);
	for (unsigned int i = 0; i < 1000; i++)
		__builtin_ia32_pause();
	send(0x4600 | at >> 12);
	for (unsigned int i = 0; i < 1000000; i++) {
		if (second->stage == stage)
			return true;
		__builtin_ia32_pause();
	}
	wrong("the second processor is at stage %u, not %u", second->stage, stage);
	return false;
}

static void init_sipi(void)
{
	trace_prepare();
	copy_code(TRAMPOLINE, trampoline, trampoline_end);
	copy_code(SIPI_CODE, sipi_code, sipi_code_end);
	second->stage = 0;
	if (start(TRAMPOLINE, 1) && start(SIPI_CODE, 2))
		host_file("sipi.pt", (const void *)OUT, second->size);
}

const struct scenario second_scenarios[] = {
	{ "second-init-sipi", init_sipi, NEEDS_PT | NEEDS_NAME }, { 0 }
};
