/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Running the built vmpt from a test: its exit code, stdout and stderr; and
 * small traces whose owners are known because they are written by hand.
 */
#ifndef VMPT_TESTS_CLI_RUN_H
#define VMPT_TESTS_CLI_RUN_H

#include <check.h>
#include <jansson.h>

#include "arch/types.h"

struct run {
	int code;
	char *out, *err; /* NUL-terminated */
	size_t out_size;
	long memory; /* KiB at most */
	long cpu_ms;
};

/* A new directory for this test's files, which the tests also work in; removed by cli_clean(). */
void cli_setup(void);
void cli_clean(void);

/* Run vmpt with the words of @args, split at blanks; a tab is a blank within a word. The last run's
 * memory is reused. */
const struct run *vmpt(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The file that vmpt reads as its standard input: /dev/null unless set. */
extern const char *vmpt_stdin;
/* The same with stdout on @fd, which is closed. */
const struct run *vmpt_to(int fd, const char *args);
/* The same with stdout and stderr on a terminal; .out holds both. */
const struct run *vmpt_terminal(const char *args);
/* Only stderr is on a terminal, and in .out; stdout is thrown away. */
const struct run *vmpt_terminal_err(const char *args);

/* stdout as one JSON document; the test fails if it is none. */
json_t *run_json(const struct run *r);
/* stdout of dump --json: the packets, without the first line and the last, which are checked. */
json_t *run_packets(const struct run *r);
/*
 * The document of timeline --json without its exits; the times of each exit ("out_…") are added to
 * the span that it ended.
 */
json_t *run_spans(const struct run *r);
/* The index of a split in @dir, as vmpt index prints it. */
json_t *split_index(const char *dir);
/* The name of a VM, or its VMCS without "0x". */
const char *json_vm(json_t *o);
/* A member by its path, "total/kinds/PAD/bytes", "owners/0/vmcs"; the test fails without it. */
json_t *json_at(json_t *doc, const char *path);
u64 json_u64(json_t *doc, const char *path);
const char *json_text(json_t *doc, const char *path);
/* The number @key of @o. */
double json_number(json_t *o, const char *key);
/* Members and their values, "path=1|path='text'|path=true"; @what is for a failure's message. */
void check_members(const char *what, json_t *doc, const char *members);

void write_file(const char *name, const void *bytes, size_t n);

/* What the file of write_mixed() holds, counted by hand. */
#define MIXED_SIZE 99
#define MIXED_A	   "0xa000"
#define MIXED_B	   "0xb000"

/*
 * offset  size  owner  what
 *      0    33  host   PSB, PIP 1000 NR=0, VMCS a000, PSBEND
 *     33     3  host   TNT-8 ×3
 *     36    15  a000   PIP 2000 NR=1, TIP 401000: a VM entry
 *     51     2  a000   TNT-8 ×2
 *     53     7  a000   FUP 401010
 *     60    15  host   PIP 1000 NR=0, TIP ffffffff81000000: a VM exit
 *     75     7  host   VMCS b000
 *     82     1  host   TNT-8
 *     83    15  b000   PIP 3000 NR=1, TIP 402000: a VM entry
 *     98     1  b000   TNT-8
 */
void write_mixed(const char *name);
/* The same bytes, @n times, and @pads PADs after each. */
void write_mixed_times(const char *name, unsigned int n, unsigned int pads);

#endif
