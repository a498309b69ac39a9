/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Generated x86-64 programs for the model: generate.c makes the code, execute.c is a tiny
 * processor that executes it and tells the model, decode.c has libipt turn the trace back
 * into instructions and compares them with those that were executed.
 */
#ifndef VMPT_MODEL_PROGRAM_H
#define VMPT_MODEL_PROGRAM_H

#include "model/vmpt-model.h"
#include "tests/support/support.h"
#include "tests/tracegen/internal.h"

/* ---- code ---- */

#define PROGRAM_INSNS	  400u
#define PROGRAM_FUNCTIONS 24u
#define PROGRAM_NO_INSN	  0xffffu

struct program_insn {
	u64 ip, target; /* target: of a direct branch */
	u8 kind;	/* enum tg_insn_kind */
	u8 len;
};

/* Code that lies together. Direct branches stay in it. */
struct program_region {
	u64 base;
	unsigned int size;	       /* bytes of code */
	unsigned int mode;	       /* 32 or 64 */
	unsigned int insns, functions; /* counts */
	struct program_insn insn[PROGRAM_INSNS];
	u16 entry[PROGRAM_FUNCTIONS]; /* first instructions of functions */
	u8 code[8 * PROGRAM_INSNS];
	u16 at[8 * PROGRAM_INSNS]; /* byte to instruction, PROGRAM_NO_INSN: none begins there */
};

enum { PROGRAM_MAIN, PROGRAM_LIBRARY, PROGRAM_OLD, PROGRAM_KERNEL, PROGRAM_REGIONS };

struct program {
	struct program_region region[PROGRAM_REGIONS];
};

/*
 * Every cycle in the code makes a packet: a decoder could not tell how often an event's IP
 * was passed in a cycle without one.
 */
void program_generate(struct program *program, struct test_rng *rng);

/* The region that holds @ip, or NULL. */
const struct program_region *program_region_at(const struct program *program, u64 ip);

/* A number below @n. */
static inline u64 below(struct test_rng *rng, u64 n)
{
	return test_random(rng) % n;
}

static inline bool once_in(struct test_rng *rng, u64 n)
{
	return n && !below(rng, n);
}

/* ---- how a program is executed and traced ---- */

enum program_output { OUTPUT_SINK, OUTPUT_SINGLE, OUTPUT_TOPA };

struct program_settings {
	unsigned int steps;
	u64 ctl; /* with TraceEn */
	u64 cr3_match;
	u64 addr[2 * VMPT_PT_RANGES_MAX];
	struct vmpt_unit_options options;
	unsigned int output; /* enum program_output */
	/* One in so many instructions, 0: never. */
	unsigned int interrupts, overflows;
	unsigned int refusals; /* the sink takes nothing for a while, one in so many writes */
};

void program_settings(struct program_settings *settings, const struct program *program,
		      struct test_rng *rng);

/* ---- what was executed ---- */

/* An instruction that retired with PacketEn = 1. */
struct executed {
	u64 ip;
	u64 cr3;      /* 0: a decoder may not know it */
	u32 branches; /* that made a packet, before it */
};

/* What an overflow took: instructions [from, to) of the list, at the least. */
struct overflow {
	size_t from, to;
	u32 branches; /* before @from */
	bool traced;  /* PacketEn was 1 when it began */
	bool is_64;   /* the mode of where it was resolved */
};

struct execution {
	struct executed *insn;
	size_t insns, insns_max;
	struct overflow *overflow;
	size_t overflows, overflows_max;
	u8 *trace;
	size_t size, max;
};

void program_execute(struct execution *done, const struct program *program,
		     const struct program_settings *settings, struct test_rng *rng);
void execution_free(struct execution *done);

/* Decode the trace. Where it differs from what was executed, the test fails with @what. */
void program_check(const struct program *program, const struct execution *done, const char *what);

#endif
