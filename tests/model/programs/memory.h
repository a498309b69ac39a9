/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Where a program's trace goes: a sink, one range of physical memory, or small ToPA regions. */
#ifndef VMPT_MODEL_PROGRAM_MEMORY_H
#define VMPT_MODEL_PROGRAM_MEMORY_H

#include "tests/model/programs/program.h"

#define PROGRAM_MEMORY (1u << 20)

struct program_memory {
	const struct program_settings *set;
	struct vmpt_unit *unit;
	struct execution *done;
	struct vmpt_sink sink;
	struct vmpt_output_memory memory;
	u8 *bytes; /* physical memory from 0 on */
	unsigned int pmis;
	unsigned int refuse, refuse_every; /* writes still to refuse; start once per this many */
	struct test_rng rng;
};

/* Make a new @unit. */
void program_memory_init(struct program_memory *m, const struct program_settings *set,
			 struct vmpt_unit *unit, struct execution *done);
/* Write the tables to memory; set OUTPUT_BASE and OUTPUT_MASK_PTRS. */
void program_memory_msrs(struct program_memory *m);
bool program_memory_full(const struct program_memory *m);
/* Copy the whole trace to done->trace. */
void program_memory_collect(struct program_memory *m);

#endif
