/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The bare program's replacement for a C library and a kernel: text, the host port, caught faults,
 * counted interrupts, the local APIC.
 */
#ifndef VMPT_TESTS_BARE_LIB_H
#define VMPT_TESTS_BARE_LIB_H

#include <string.h>

#include "arch/types.h"
#include "layout.h"

/* ---- ports, processor ---- */

static inline void out8(u16 port, u8 value)
{
	__asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static inline void out32(u16 port, u32 value)
{
	__asm__ volatile("outl %0, %1" : : "a"(value), "Nd"(port));
}

static inline u8 in8(u16 port)
{
	u8 value;

	__asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
	return value;
}

static inline u64 read_cr0(void)
{
	u64 v;

	__asm__ volatile("mov %%cr0, %0" : "=r"(v));
	return v;
}

static inline u64 read_cr3(void)
{
	u64 v;

	__asm__ volatile("mov %%cr3, %0" : "=r"(v));
	return v;
}

static inline u64 read_cr4(void)
{
	u64 v;

	__asm__ volatile("mov %%cr4, %0" : "=r"(v));
	return v;
}

static inline void write_cr0(u64 v)
{
	__asm__ volatile("mov %0, %%cr0" : : "r"(v) : "memory");
}

static inline void write_cr3(u64 v)
{
	__asm__ volatile("mov %0, %%cr3" : : "r"(v) : "memory");
}

static inline void write_cr4(u64 v)
{
	__asm__ volatile("mov %0, %%cr4" : : "r"(v) : "memory");
}

static inline u64 rdtsc(void)
{
	u32 low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return low | (u64)high << 32;
}

struct cpuid {
	u32 eax, ebx, ecx, edx;
};

static inline struct cpuid cpuid(u32 leaf, u32 subleaf)
{
	struct cpuid r;

	__asm__ volatile("cpuid"
			 : "=a"(r.eax), "=b"(r.ebx), "=c"(r.ecx), "=d"(r.edx)
			 : "a"(leaf), "c"(subleaf));
	return r;
}

/* ---- entry.S ---- */

void machine_reset(void);
void machine_reset_by(void (*how)(void));
/* 0, or FAULT + the vector */
#define FAULT	 0x100
#define FAULT_UD (FAULT + 6)
#define FAULT_GP (FAULT + 13)
int try_rdmsr(u32 msr, u64 *value);
int try_wrmsr(u32 msr, u64 value);
int try_ptwrite(u64 value);
int try_vmxon(u64 *region);
void jump_about(u64 rounds);

/* ---- lib.c ---- */

void text_init(void);
/* %s, %u (unsigned int), %x (u64), %% */
void print(const char *format, ...);
/* Writes a file of the run through the host port; does nothing without a port. */
void host_file(const char *name, const void *bytes, size_t size);
void host_mark(u32 what);
/* At the next instruction boundary: HOST_NMI, HOST_SMI, HOST_INIT. */
#define HOST_NMI  1
#define HOST_SMI  2
#define HOST_INIT 3
void host_pulse(u32 what);
void power_off(u8 status) __attribute__((noreturn));

/* Copies code between two labels to where it runs. */
static inline void copy_code(u64 to, const char *from, const char *end)
{
	memcpy((void *)to, from, (uintptr_t)end - (uintptr_t)from);
}

/* RDMSR and WRMSR that must not fault: a fault stops the program. */
u64 msr_read(u32 msr);
void msr_write(u32 msr, u64 value);

/* ---- trap.c ---- */

struct gate {
	u16 low, selector, type, middle;
	u32 high, zero;
};

extern struct gate idt[256];
extern u64 gdt[], tss[]; /* entry.S */

struct trap_frame {
	u64 rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15;
	u64 vector, error, rip, cs, rflags, rsp, ss;
};

void trap(struct trap_frame *frame);
void traps_init(void);
/* A VM exit by an NMI blocks NMIs; this unblocks them by IRET. */
void nmi_unblock(void);
/* Counts of interrupts and NMIs by vector, and the RIP of the last one. */
extern volatile u32 trap_count[256];
extern volatile u64 trap_rip;

#define APIC_EOI  0x0b0
#define APIC_ICR  0x300
#define APIC_ICR2 0x310
#define APIC_LVTP 0x340
#define LVT_NMI	  0x400
#define LVT_MASK  0x10000
u32 apic_read(u32 reg);
void apic_write(u32 reg, u32 value);

/* ---- results of scenarios (main.c) ---- */

/* Reports why the scenario failed; only the first report counts. */
void wrong(const char *format, ...);
/* The scenario cannot run on this PC. */
void skip(const char *why);
bool is_wrong(void);
extern const char *scenario_name;
static inline bool want(const char *what, u64 want, u64 got)
{
	if (want == got)
		return true;
	wrong("%s: want %x, got %x", what, want, got);
	return false;
}

struct scenario {
	const char *name;
	void (*run)(void);
	u32 needs;
};
#define NEEDS_VMX	 1 /* VMX operation on */
#define NEEDS_PT	 2 /* PT in CPUID leaf 7 */
#define NEEDS_VPT	 4 /* IA32_VMX_MISC[14] */
#define NEEDS_LOAD_CLEAR 8
#define NEEDS_GPA	 16
#define NEEDS_NAME	 32 /* runs only if named */

#endif
