/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Packets written by hand from the manual's tables: bytes, values and text. The tests of
 * arch/pt-packet*.c and of the decoders use this list.
 */
#ifndef VMPT_TESTS_ARCH_PT_CASES_H
#define VMPT_TESTS_ARCH_PT_CASES_H

#include "arch/pt-packet.h"

struct pt_case {
	u8 kind;
	u8 flags;
	u8 block; /* the context it is decoded in */
	u8 size;
	u8 wire[VMPT_PT_SIZE_MAX];
	u64 val[VMPT_PT_VALUES];
	const char *text; /* as printed; NULL: not given here */
};

extern const struct pt_case pt_cases[];
extern const size_t pt_case_count;

/* "PIP 02 43 01 …", for messages. Static memory, overwritten by the next call. */
const char *pt_case_name(const struct pt_case *c);

#endif
