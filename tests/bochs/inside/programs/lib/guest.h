/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The guests of ../../guests as the VMM sees them: the words at the start of a blob, the
 * operations of the guest "script", and the modes in which a vCPU can start.
 */
#ifndef GUEST_H
#define GUEST_H

#include "kvm.h"

enum guest_mode {
	GUEST_REAL16,
	GUEST_PROT32,
	GUEST_PAGE32, /* 32-bit paging */
	GUEST_PAE32,
	GUEST_LONG64,
	GUEST_MODES,
};

/* The layout of guest-physical memory. */
#define GUEST_TABLES	  0x1000  /* GDT, IDT */
#define GUEST_PAGING	  0x40000 /* page tables of both address spaces, GUEST_PAGING_SIZE each */
#define GUEST_PAGING_SIZE 0x8000
#define GUEST_BLOB	  0x10000
#define GUEST_OPS	  0x20000
#define GUEST_STACK	  0x90000
#define GUEST_LOW	  0xa0000 /* end of the lower memory; MMIO begins */
#define GUEST_HIGH	  0x100000
#define GUEST_WINDOW	  0x300000 /* 0x301000 in the second address space */
#define GUEST_HOLE	  0x3ff000 /* not mapped */
#define GUEST_SIZE	  0x1000000

/* Ports and flags: guests/guest.inc has the same. */
#define GUEST_PORT_RESULT 0x10
#define GUEST_PORT_DONE	  0x11
#define GUEST_PORT_DATA	  0x14
#define GUEST_PORT_IRQ	  0x15

#define GUEST_X2APIC 1
#define GUEST_SMC    2
#define GUEST_PAGED  4
#define GUEST_QUIET  8

#define GUEST_VECTOR_INT 0x30
#define GUEST_VECTOR_IRQ 0x40
#define GUEST_CPUID_LEAF 0x40000010
#define GUEST_CPUID_WORD 0x13572468
#define GUEST_SEED	 0x2545f491

struct guest_head {
	u32 entry;
	u32 on_int, on_irq, on_ud, on_pf, on_gp, on_bad;
	u32 rounds;
	u32 flags;
	u32 seed; /* of "work"; the stack's top for "script" */
	u32 cr3[2];
	u32 spin;
	u32 bad;
	u32 irqs;
};

enum guest_opcode {
	OP_END,
	OP_RDMSR,
	OP_WRMSR,
	OP_WORK,  /* arg: iterations */
	OP_OUT,	  /* value to GUEST_PORT_RESULT */
	OP_CPUID, /* value: leaf, arg: subleaf; result: EAX, EBX */
	OP_CR3,	  /* arg: not 0 for KVM's emulator to do it */
	OP_READ,
	OP_WRITE, /* arg to address value */
	OP_HALT,
	OP_JUMP,  /* indirect; arg as above */
	OP_VMXON, /* region at value; result: 0 if it went well */
	OP_EXITS, /* arg OUTs with nothing between them */
	OP_IRQS,  /* result: interrupts so far */
	OP_AWAIT, /* at most arg rounds for an interrupt; result as OP_IRQS */
	OP_TRAPS, /* arg CPUIDs, which KVM answers */
	OP_MWAIT, /* as OP_HALT */
};

struct guest_op {
	u32 code;
	u32 arg; /* an MSR's address */
	u64 value;
	u32 fault; /* 1 + vector */
	u32 done;
	u64 result;
};

extern const char *const guest_mode_names[GUEST_MODES];

/* The mode of that name, or GUEST_MODES. */
enum guest_mode guest_mode_find(const char *name);

/* Put the guest "work" or "script" into a VM's memory, with all tables of that mode. */
struct guest_head *guest_load_work(struct vm *vm, enum guest_mode mode);
struct guest_head *guest_load_script(struct vm *vm, enum guest_mode mode,
				     const struct guest_op *ops, size_t n);

/* Set a vCPU's registers to the start of what was loaded. */
void guest_start(struct vcpu *vcpu, enum guest_mode mode);

/* What "work" outputs in round 1 + index of rounds; data() is the VMM's answer. */
u32 guest_work_round(u32 state, u32 round, u32 flags, u32 port, u32 mmio);

/* What the VMM answers in a round. */
u32 guest_port_data(u32 round);
u32 guest_mmio_data(u32 round);

#endif
