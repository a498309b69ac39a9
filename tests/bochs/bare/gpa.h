/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* "PT uses guest physical addresses": what the scenarios of s-gpa.c and s-gpa-exits.c share. */
#ifndef VMPT_TESTS_BARE_GPA_H
#define VMPT_TESTS_BARE_GPA_H

#include "scenarios.h"
#include "trace.h"

/* The guest-physical addresses of the ToPA table in OUT_TABLE and of the output in OUT. */
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

/* Reads the packets of @size bytes at OUT. */
void gpa_count(struct gpa_tally *tally, size_t size);
/* Maps all guest-physical pages of output and table with @rights. */
void gpa_map(u64 rights);
/* Prepares a guest that traces guest_fill to there. */
void gpa_prepare(struct vm *vm, enum gpa_output output);
/* Maps the page that the exit was for. */
void gpa_mend(const struct vm *vm);

#endif
