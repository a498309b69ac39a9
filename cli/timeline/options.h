/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The options shared by vmpt timeline and vmpt exits: the guests' code and the names of their
 * functions.
 */
#ifndef VMPT_CLI_TIMELINE_OPTIONS_H
#define VMPT_CLI_TIMELINE_OPTIONS_H

#include "cli/symbols/symbols.h"
#include "cli/timeline/code.h"

/* The first member of the command's own struct. All 0 to start. */
struct timeline_given {
	struct timeline_wants wants;
	struct timeline_code_wants code;
	struct cli_strings symbol; /* as given */
	const char *symbol_file[CLI_STRINGS];
	char *symbol_vm[CLI_STRINGS]; /* of each file; NULL: of all VMs */
	/* open */
	struct elf_symbols symbols;
	struct timeline_code *opened;
};

/* The guests' code. The values are the command's. */
extern const struct cli_group timeline_code_group;

/* Read the given files. 0, or the exit code after a message; close in either case. */
int timeline_given_open(struct cli *cli, struct timeline_given *given);
void timeline_given_close(struct timeline_given *given);

/*
 * Whether both paths (NULL: not wanted) can be written without harm. @prints: something else goes
 * to the standard output. 0, or an exit code after a message.
 */
int timeline_out_check(const struct cli *cli, const char *chrome, const char *html, bool prints);

/* "do_idle+0x1f" of @ip in VM @vm, its name, into @buf; false: there is none. */
bool timeline_symbol(const struct timeline_given *given, const char *vm, u64 ip, char *buf,
		     size_t len);

#endif
