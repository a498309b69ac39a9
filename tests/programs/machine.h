/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A processor without a trace unit that executes a program: registers and stacks. */
#ifndef VMPT_TESTS_PROGRAMS_MACHINE_H
#define VMPT_TESTS_PROGRAMS_MACHINE_H

#include "tests/programs/code.h"

#define MACHINE_STACK  256u
#define MACHINE_FRAMES 32u

/* Return addresses; the oldest are dropped. */
struct machine_stack {
	u64 ip[MACHINE_STACK];
	unsigned int top, depth;
};

/* Target of IRET. */
struct machine_frame {
	u64 ip;
	u8 cpl;
};

struct machine {
	const struct program *program;
	struct test_rng *rng;
	u64 ip, cr3;
	unsigned int cpl;
	struct machine_stack stack[3]; /* user 64, user 32, kernel */
	struct machine_frame frame[MACHINE_FRAMES];
	unsigned int frames;
};

/* The current region. */
const struct program_region *machine_here(const struct machine *m);
/* A code address in @r for a register; mostly a function's. */
u64 machine_address_in(struct machine *m, const struct program_region *r);
/* An address that a near branch can reach. */
u64 machine_address(struct machine *m);
/* A function of the kernel. */
u64 machine_kernel_entry(struct machine *m);

/* The stack in use. An empty one gives any address. */
void machine_push(struct machine *m, u64 ip);
u64 machine_pop(struct machine *m);

/* Enter the kernel and return: a frame of @back and CPL. */
void machine_push_frame(struct machine *m, u64 back);
/* The newest frame, or a new task. Without @iret: only one of user code. */
struct machine_frame machine_pop_frame(struct machine *m, bool iret);

#endif
