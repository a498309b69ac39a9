/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A small machine that executes random code, instruction by instruction as Zydis reads it, in two
 * address spaces; patches it, maps other pages, and writes the packets of a processor and the code
 * stream.
 */
#ifndef VMPT_TESTS_FLOW_MACHINE_H
#define VMPT_TESTS_FLOW_MACHINE_H

#include "decoder/vmpt-image.h"
#include "tests/decoder/image/code-writer.h"
#include "tests/support/support.h"

#define PAGES	 3   /* physical */
#define CELL	 32u /* bytes: a patch site of 5, and branches */
#define CELLS	 (VMPT_PAGE / CELL)
#define SITE	 5
#define FIRST	 0x400000ULL /* two linear pages */
#define TARGETS	 (2 * CELLS)
#define STACK	 64
#define DEFERRED 16 /* TIPs */

#define KEYS	 24 /* of two_dumps */
#define KEY_SIZE 0x40u

struct machine {
	struct test_rng rng;
	u8 memory[PAGES][VMPT_PAGE];
	u8 map[2][2]; /* by space and linear page */
	unsigned int space;
	u64 ip, time;
	u64 stack[STACK];
	unsigned int depth, keys;
	bool compressed; /* RETs that the stack has */
	bool long_tnt;	 /* TNT packets are long */
	bool fixed;	 /* code does not change, and with .long_tnt TIPs are deferred */
	u8 exec;	 /* 64 or 32 */
	u64 bits;
	u8 bit_count;
	u64 deferred[DEFERRED]; /* IPs of TIPs */
	unsigned int deferred_count;
	u64 *truth;
	size_t executed;
	u8 *trace;
	size_t size, room;
	u32 spaces; /* that it ran in */
	size_t psb[64];
	u32 psbs;
	bool no_maps; /* page 2 is not used */
};

/* The one that runs; tests set what it does before flow_machine_run(), and free .truth and .trace.
 */
extern struct machine machine;
extern struct stream machine_code;

u32 flow_machine_below(u32 n);
/* Its memory, without executing. */
void flow_machine_make(u64 seed);
/* A change comes once in @rare steps. */
void flow_machine_run(u64 seed, unsigned int steps, unsigned int rare);
/*
 * Static keys: a NOP, after which an indirect jump comes, or a JMP to conditional ones. Reached by
 * RETs, indirect jumps and calls.
 */
void flow_machine_keys(u8 *page, bool on);
/* Execute those of a page, which change at random. */
void flow_machine_run_keys(u64 seed, unsigned int steps);

#endif
