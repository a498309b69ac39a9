/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where code is in a guest's memory, from ELF files by libelf: perf needs this for the kernel
 * and for programs to follow a trace of them.
 */
#ifndef VMPT_CLI_PERF_CODE_H
#define VMPT_CLI_PERF_CODE_H

#include "cli/symbols/symbols.h"

/* A file's bytes from @offset are at [@start, @start + @size) in the guest. */
struct perf_map {
	u64 start, size; /* whole pages unless .kernel */
	u64 offset;	 /* of the kernel: where _text is */
	char *file;	 /* absolute; NULL for the kernel, which perf gets by -k */
	bool kernel;
	const struct code_given *given;
};

struct perf_code {
	struct perf_map *map;
	size_t count;
	bool by_vm; /* some are of one VM only */
};

/*
 * Add a kernel, or the executable segments of a program or library, which must outlive it. Names
 * and a recording's raw bytes are left out. 0, or the exit code after a message.
 */
int perf_code_add(struct cli *cli, struct perf_code *code, const struct code_given *given);
void perf_code_free(struct perf_code *code);

#endif
