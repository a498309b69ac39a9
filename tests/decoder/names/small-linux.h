/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The memory of a Linux guest that was never run: a kernel with a few symbols, types, tasks,
 * modules and processes with maps, written as the kernel's sources have them, with members at
 * places of its own.
 */
#ifndef VMPT_TESTS_SMALL_LINUX_H
#define VMPT_TESTS_SMALL_LINUX_H

#include "decoder/vmpt-guest.h"
#include "tests/decoder/image/guest-memory.h"

#define SMALL_KERNEL   0xffffffff81000000ULL /* linear, of its first byte */
#define SMALL_PHYSICAL 0x400000ULL
#define SMALL_SIZE     0x400000ULL
#define SMALL_USER     0x400000ULL /* where programs are mapped */
#define SMALL_TASKS    5	   /* threads: 3 processes, one with 3 threads, and a kernel's */
#define SMALL_MAPS     20	   /* of each process */

enum small_form { SMALL_ABSOLUTE, SMALL_RELATIVE, SMALL_PERCPU, SMALL_PLACE, SMALL_FORMS };

struct small_options {
	enum small_form form;
	bool note;  /* VMCOREINFO as an ELF note */
	bool list;  /* areas in a list, as before 6.1 */
	bool parts; /* modules as from 6.4 on */
	bool no_types, no_symbols, five;
};

struct small_linux {
	struct guest_memory m;
	struct small_options o;
	u64 cr3, free;					 /* linear, of what is not used yet */
	u64 init_task, task[SMALL_TASKS], mm[2], pgd[2]; /* linear */
	u64 text;					 /* physical, of VMCOREINFO's */
};

void small_make(struct small_linux *s, const struct small_options *o);
void small_free(struct small_linux *s);
/* Where the linear address @at is in .m.ram. */
u8 *small_at(const struct small_linux *s, u64 at);
void small_put64(const struct small_linux *s, u64 at, u64 value);
/* The place of a member in this kernel. */
u32 small_member(const char *type, const char *member);
/* Symbol number @i, by address; NULL: there are no more. */
const char *small_symbol(const struct small_linux *s, size_t i, u64 *address);

#endif
