// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Exceptions and interrupts, of the host and of 64-bit guests, which share tables and stack
 * size: faults of the try_ functions in entry.S are caught, interrupts are counted, anything else
 * ends the program.
 */
#include "lib.h"

struct gate idt[256];
extern const char stubs[], on_nmi[];
extern const struct {
	u64 at, to;
} fixups[], fixups_end[];

volatile u32 trap_count[256];
volatile u64 trap_rip;

void traps_init(void)
{
	for (unsigned int i = 0; i < 256; i++) {
		u64 at = (uintptr_t)(i == 2 ? on_nmi : stubs + 16 * i);

		idt[i] = (struct gate){ (u16)at,	 SEL_CODE64,	  0x8e00,
					(u16)(at >> 16), (u32)(at >> 32), 0 };
	}
}

u32 apic_read(u32 reg)
{
	return *(volatile u32 *)(0xfee00000ULL + reg);
}

void apic_write(u32 reg, u32 value)
{
	*(volatile u32 *)(0xfee00000ULL + reg) = value;
}

static bool fixed(struct trap_frame *frame)
{
	size_t n = ((uintptr_t)fixups_end - (uintptr_t)fixups) / sizeof(fixups[0]);

	for (size_t i = 0; i < n; i++) {
		if (fixups[i].at == frame->rip) {
			frame->rip = fixups[i].to;
			frame->rax = FAULT + frame->vector;
			return true;
		}
	}
	return false;
}

void trap(struct trap_frame *frame)
{
	trap_count[frame->vector]++;
	if (frame->vector >= 32) {
		trap_rip = frame->rip;
		apic_write(APIC_EOI, 0);
		return;
	}
	if (fixed(frame))
		return;
	wrong("exception %x, error %x, at %x", frame->vector, frame->error, frame->rip);
	power_off(2);
}

void nmi_unblock(void)
{
	__asm__ volatile("mov %%rsp, %%rax\n\t"
			 "push %0\n\tpush %%rax\n\tpushfq\n\tpush %1\n\tlea 1f(%%rip), %%rax\n\t"
			 "push %%rax\n\tiretq\n1:"
			 :
			 : "i"(SEL_DATA), "i"(SEL_CODE64)
			 : "rax", "memory", "cc");
}
