/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where code is in a guest's memory, from ELF files by libelf: perf needs this for the kernel
 * and for programs to follow a trace of them.
 */
#ifndef VMPT_CLI_PERF_CODE_H
#define VMPT_CLI_PERF_CODE_H

#include "cli/base/base.h"

/* A file's bytes from @offset are at [@start, @start + @size) in the guest. */
struct perf_map {
	u64 start, size; /* whole pages unless .kernel */
	u64 offset;	 /* of the kernel: where _text is */
	char *file;	 /* absolute; NULL for the kernel, which perf gets by -k */
	bool kernel;
};

struct perf_code {
	struct perf_map *map;
	size_t count;
};

/*
 * Add what "FILE[@ADDR]" names: a kernel, with ADDR where its _text is if it was moved; or
 * the executable segments of a program or library, with ADDR where its first page is if it
 * is position independent. 0, or the exit code after a message.
 */
int perf_code_kernel(struct cli *cli, struct perf_code *code, const char *arg);
int perf_code_image(struct cli *cli, struct perf_code *code, const char *arg);
void perf_code_free(struct perf_code *code);

#endif
