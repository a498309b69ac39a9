/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * For tests of vmpt split --perf: demo.trace of the trace generator, the code of its VMs in ELF
 * files that gcc links, and what the generator says was executed.
 */
#ifndef TESTS_CLI_PERF_DEMO_H
#define TESTS_CLI_PERF_DEMO_H

#include "tests/cli/cli-run.h"
#include "tests/support/support.h"

#define WEB   "vmcs-12f7a4000"
#define DB    "vmcs-13b2c9000"
#define DB_IP "0xffffffffa0000000"

/* A shell command that must not fail. */
void perf_run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* d.cpu0.pt and d.cpu1.pt of demo.trace with @loops and by sed's @edit, truth d.json, the code. */
void make_traces(unsigned int loops, const char *edit);
/* ELF file @name of the page @page, for address @ip; @options are gcc's. */
void make_elf(const char *name, const char *page, const char *ip, const char *options);
/* ELF files web and db. */
void make_code(void);

/* Instructions, and FNV-1a of their addresses. */
struct count {
	u64 instructions, hash;
};

extern const struct count count_none;
void count_one(struct count *count, u64 ip);
/* The contents of truth d.json for @owner on @cpu. */
struct count truth_of(const char *owner, int cpu);
void ck_same_count(const char *what, const struct count *got, const struct count *want);

#endif
