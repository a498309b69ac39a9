/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Which processes a guest had, and when, and its kernel's functions, as the recording has them
 * (docs/qemu-plugin/tasks.md).
 */
#ifndef VMPT_CLI_SYMBOLS_TASKS_H
#define VMPT_CLI_SYMBOLS_TASKS_H

#include "cli/base/base.h"
#include "decoder/vmpt-guest.h"

/* The lists of all VMs of a recording. */
struct code_tasks;

/* What is known of an address space from one time to another. */
struct code_tasks_found {
	const struct vmpt_guest_task *task; /* NULL: not known */
	const struct vmpt_guest_map *map;   /* that its process executes, by address */
	size_t maps;
	u64 from, to; /* TSC: the answer is the same in [from, to) */
};

/*
 * Read what recording.json lists. What cannot be used is left out, with a warning. *@tasks is NULL
 * if there is nothing. 0, or an exit code after a message.
 */
int code_tasks_open(struct cli *cli, struct code_tasks **tasks);
void code_tasks_close(struct code_tasks *tasks);
/* Whose @cr3 is at @tsc (~0: at the end), with any PCID; false: the VM has no list. */
bool code_tasks_find(const struct code_tasks *tasks, const char *vm, u64 cr3, u64 tsc,
		     struct code_tasks_found *found);
/*
 * The kernel's function at @ip. Its name and module are not safe for a terminal. False: none is
 * known.
 */
bool code_tasks_symbol(const struct code_tasks *tasks, const char *vm, u64 ip,
		       struct vmpt_guest_symbol *symbol);

#endif
