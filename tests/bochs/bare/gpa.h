/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* "PT uses guest physical addresses": what the scenarios of s-gpa.c and s-gpa-exits.c share. */
#ifndef VMPT_TESTS_BARE_GPA_H
#define VMPT_TESTS_BARE_GPA_H

#include "scenarios.h"
#include "trace.h"

/* Where the guest has the ToPA table in OUT_TABLE and the output in OUT. */
#define G_TABLE	     0x3000000ULL
#define G_OUT	     0x3200000ULL
#define PAGES	     16
#define ROUNDS	     8000 /* of guest_fill */
#define ASYNCHRONOUS (1ULL << 16)

#define GPA_NEEDS (NEEDS_VMX | NEEDS_VPT | NEEDS_LOAD_CLEAR | NEEDS_GPA)

enum gpa_output { TOPA, RANGE };

struct gpa_tally {
	u64 tips, tnt_bits, overflows, on, off, pwre, pwrx;
};

/* What is in @size bytes at OUT. */
void gpa_count(struct gpa_tally *tally, size_t size);
/* All guest-physical pages of output and table, with @rights each. */
void gpa_map(u64 rights);
/* A guest whose own tracing, of guest_fill, goes there. */
void gpa_prepare(struct vm *vm, enum gpa_output output);
/* The page of the exit is there. */
void gpa_mend(const struct vm *vm);

#endif
