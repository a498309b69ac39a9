/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Inside tasks.c and tasks-read.c: what a list of tasks says. */
#ifndef VMPT_CLI_SYMBOLS_TASKS_READ_H
#define VMPT_CLI_SYMBOLS_TASKS_READ_H

#include "cli/symbols/tasks-symbols.h"
#include "util/hash.h"
#include "util/search.h"

#define TASKS_CR3 0x000ffffffffff000ULL /* bits 51:12 */

struct tasks_maps {
	struct vmpt_guest_map *map;
	size_t count;
};

/* From .tsc on, up to the next one of the same .cr3. */
struct tasks_state {
	u64 cr3, tsc;
	size_t order; /* in the file */
	struct vmpt_guest_task task;
	size_t process;
};

struct tasks_machine {
	char *vm;
	struct tasks_state *state; /* by .cr3, then time */
	size_t states;
	struct tasks_maps *process;
	size_t processes;
	u64 *reset; /* when a kernel was found, by time */
	size_t resets;
	char **text; /* all names */
	size_t texts;
	struct vmpt_hash by_text;
	u8 **id; /* build ids */
	size_t ids;
	struct tasks_symbols symbols;
};

/* Read the lines of @f. 0, or an exit code after a message. */
int tasks_read(struct cli *cli, struct tasks_machine *m, const char *path, FILE *f);

/* The last time up to @tsc at which a kernel was found. */
u64 tasks_reset_before(const struct tasks_machine *m, u64 tsc);
/* The last state of @cr3 up to @tsc, an index + 1; 0: none. */
size_t tasks_state_at(const struct tasks_machine *m, u64 cr3, u64 tsc);

#endif
