/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The options shared by vmpt timeline and vmpt exits: the guests' code and the names of their
 * functions.
 */
#ifndef VMPT_CLI_TIMELINE_OPTIONS_H
#define VMPT_CLI_TIMELINE_OPTIONS_H

#include "cli/symbols/symbols.h"
#include "decoder/vmpt-timeline.h"

struct cli_clocks;
struct timeline;
struct timeline_code;

/* Which spans, and how their reasons are guessed. */
struct timeline_wants {
	u8 clock; /* enum cli_when_clocks, of the times that are printed */
	u16 (*guess)(void *opaque, const struct vmpt_exit_place *place, bool *no_halt);
	void *guess_opaque;
	/* The clocks of the trace, before the first guess. */
	void (*guess_clocks)(void *opaque, const struct cli_clocks *clocks);
	/* All spans were passed: warn of given values that do not fit. May be NULL. */
	void (*tell)(void *opaque, const struct timeline *timeline);
	void *tell_opaque;
};

/* The first member of the command's own struct. All 0 to start. */
struct timeline_given {
	struct timeline_wants wants;
	struct code_options code;
	/* open */
	struct code_files files;
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
