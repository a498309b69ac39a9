/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A program in place of QEMU: it has one vCPU with registers, memory and translated blocks, and
 * runs the plugin's instrumentation. A test says what executes; tests/qemu-plugin/flow/test-flow.c
 * checks the packets.
 */
#ifndef VMPT_TESTS_STAND_IN_H
#define VMPT_TESTS_STAND_IN_H

#include "qemu-plugin/flow/flow.h"

#define STAND_IN_INSNS	16
#define STAND_IN_BLOCKS 64 /* of one test */

/* The plugin's instrumentation of an instruction. */
struct stand_in_insn {
	struct {
		size_t offset;
		u64 value;
	} store[4];
	unsigned int stores;
	qemu_callback callback[4];
	void *user[4];
	unsigned int callbacks;
	qemu_load_callback load;
	void *load_user;
};

/* A block as it is translated. */
struct qemu_block {
	struct qemu_insn insn[STAND_IN_INSNS];
	struct stand_in_insn put[STAND_IN_INSNS];
	size_t n;
	qemu_callback callback;
	void *user;
};

extern struct stand_in {
	struct plugin plugin;
	struct vcpu vcpu;
	u64 reg[QREGS];
	u64 reads; /* of RIP */
	/* memory: two pages at this linear address, the second for an IDT */
	u64 page;
	u8 bytes[8192];
} stand_in;

/* One vCPU in 64-bit mode, flat, paged, CPL 0. */
void stand_in_setup(void);

/*
 * Translate the block at @vaddr whose instructions are the hex bytes of @code, a space between
 * two instructions: "48ffc0 75fb". Lives until the next setup.
 */
struct qemu_block *stand_in_block(u64 vaddr, const char *code);

/* Run it at linear address @ip: the first @n of its instructions start, all if @n is 0. */
void stand_in_run(struct qemu_block *tb, u64 ip, size_t n);
/* The same at the address of its translation. */
void stand_in_run_here(struct qemu_block *tb);
/* Gate @vector of the IDT in the second page leads to @to. */
void stand_in_gate(unsigned int vector, u64 to);

/* An event between blocks, with CS of the handler. */
void stand_in_event(u64 from, u64 to);

#endif
