/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Guess why a guest exited, by the instruction at the exit's IP: the code comes from ELF files
 * given by the user.
 */
#ifndef VMPT_CLI_TIMELINE_CODE_H
#define VMPT_CLI_TIMELINE_CODE_H

#include "cli/timeline/internal.h"

struct code_files;

/* Read the code of @files, if any has some, for @to to guess by. 0, or an exit code. */
int timeline_code_open(struct cli *cli, const struct code_files *files, struct timeline_code **code,
		       struct timeline_wants *to);
void timeline_code_close(struct timeline_code *code);

/*
 * The guess for the instruction of @n bytes at @place->ip; VMPT_REASON_UNKNOWN: none. *@no_halt: it
 * is known, and does not halt.
 */
u16 timeline_guess(const struct vmpt_exit_place *place, const u8 *bytes, size_t n, bool *no_halt);

#endif
