/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files of tasks= and symbols=: JSON lines, each with its TSC in the trace, and the kernel's
 * functions. docs/qemu-plugin/tasks.md describes them.
 */
#ifndef VMPT_QEMU_PLUGIN_HOST_TASKS_FILE_H
#define VMPT_QEMU_PLUGIN_HOST_TASKS_FILE_H

#include "arch/types.h"
#include "decoder/vmpt-guest.h"

/* A file that only grows; what does not fit is left out as a whole line. */
struct tasks_file {
	int fd;
	int err; /* errno of the write that failed */
	u64 size;
	const char *path;
};

/* Lines whose TSC is not known yet: a run may be later in the trace than it was executed. */
struct tasks_pending {
	struct tasks_pending_line {
		u64 tsc;
		char *text; /* of the whole line but for its beginning */
	} * line;
	size_t count;
};

/* Opens @path to append, as the file of this plugin. NULL, or why not. */
const char *tasks_file_open(struct tasks_file *f, const char *path, u64 mode);
void tasks_file_close(struct tasks_file *f);
/* Write the pending lines, each @moved later than it was made. */
void tasks_file_flush(struct tasks_file *f, struct tasks_pending *pending, u64 moved);

/* Add a line. -VMPT_E_NOMEM: it is left out. */
int tasks_put_machine(struct tasks_pending *pending, u64 tsc, const char *vm);
int tasks_put_kernel(struct tasks_pending *pending, u64 tsc, const struct vmpt_guest_kernel *k);
int tasks_put_task(struct tasks_pending *pending, u64 tsc, const struct vmpt_guest_task *t);
/* What @t has mapped to execute. */
int tasks_put_maps(struct tasks_pending *pending, u64 tsc, const struct vmpt_guest_task *t,
		   const struct vmpt_guest_map *map, size_t count);

/* The kernel's functions, as /proc/kallsyms has them, in place of what @path had. NULL, or why not.
 */
const char *tasks_symbols_write(const char *path, u64 mode, const struct vmpt_guest *guest);

#endif
