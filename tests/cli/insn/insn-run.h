/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Tests of vmpt insn: real traces with their code, and the code of generated ones. */
#ifndef VMPT_TESTS_CLI_INSN_RUN_H
#define VMPT_TESTS_CLI_INSN_RUN_H

#include <stddef.h>

#include "arch/types.h"

struct real {
	const char *name, *hash;
	u64 instructions, vmcs, cr3;
};

#define REALS 3
/* By libipt 2.0.5's instruction decoder, when it was tried first: with another program than that of
 * test-libipt.c. */
extern const struct real reals[REALS];

/* The files of a real trace under plain names in the test's folder; false: they are missing. */
bool link_real(const struct real *r);
/* With these options for the code, x.pt has what @r says. */
void check_total(const struct real *r, const char *code);
/* Options for the code of all owners in code/, each page for its owner. */
void read_index(char *code, size_t room);
/* Lines of a list after its title, and how many have @word. */
size_t lines_with(const char *text, const char *word, size_t *lines);

#endif
