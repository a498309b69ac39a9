/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Generated x86-64 programs (tests/programs) for the model: execute.c is a tiny processor that
 * executes them and drives the model, decode.c has libipt turn the trace back into instructions
 * and compares them with those that were executed.
 */
#ifndef VMPT_MODEL_PROGRAM_H
#define VMPT_MODEL_PROGRAM_H

#include "model/vmpt-model.h"
#include "tests/programs/machine.h"

/* ---- how a program is executed and traced ---- */

enum program_output { OUTPUT_SINK, OUTPUT_SINGLE, OUTPUT_TOPA };

struct program_settings {
	unsigned int steps;
	u64 ctl; /* with TraceEn */
	u64 cr3_match;
	u64 addr[2 * VMPT_PT_RANGES_MAX];
	struct vmpt_unit_options options;
	unsigned int output; /* enum program_output */
			     /* Once per this many instructions, 0: never. */
	unsigned int interrupts, overflows, p_states;
	unsigned int refusals; /* the sink takes nothing for a while, once per this many writes */
};

void program_settings(struct program_settings *settings, const struct program *program,
		      struct test_rng *rng);

/* ---- what was executed ---- */

/* An instruction that retired with PacketEn = 1. */
struct executed {
	u64 ip;
	u64 cr3;      /* 0: a decoder may not know it */
	u32 branches; /* earlier ones that made a packet */
};

/* What an overflow dropped: at least instructions [from, to) of the list. */
struct overflow {
	size_t from, to;
	u32 branches; /* before @from */
	bool traced;  /* PacketEn was 1 when it began */
	bool is_64;   /* the mode where it was resolved */
};

struct execution {
	struct executed *insn;
	size_t insns;
	struct overflow *overflow;
	size_t overflows;
	u8 *trace;
	size_t size, max;
};

void program_execute(struct execution *done, const struct program *program,
		     const struct program_settings *settings, struct test_rng *rng);
void execution_free(struct execution *done);

/* Decode the trace. Where it differs from what was executed, the test fails with @what. */
void program_check(const struct program *program, const struct execution *done, const char *what);

#endif
