/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * vmpt domain trace: the folder that the plugin writes to, and what is shown of
 * it at the end.
 */
#ifndef VMPT_CLI_DOMAIN_TRACE_H
#define VMPT_CLI_DOMAIN_TRACE_H

#include "cli/domain/domain.h"

#define TRACE_CPUS   256
#define TRACE_RECORD CLI_FOLDER_SIDE
/* Of domain 0, 1, ... */
#define TRACE_CODE    "vm%zu.code"
#define TRACE_TASKS   "vm%zu.tasks"
#define TRACE_SYMBOLS "vm%zu.symbols"

/* One vCPU, by name of its VM; as assigned by us. */
struct trace_vcpu {
	const char *vm; /* of struct domain */
	size_t domain;
	unsigned int vcpu, cpu;
	u64 vmcs; /* of the side record, 0: not given */
};

struct trace {
	char *dir;	   /* absolute */
	int dir_fd;	   /* of it, locked */
	const char *given; /* as the user says it */
	bool prepared;	   /* trace_folder_settle() has something to do */
	unsigned int cpu[TRACE_CPUS];
	size_t cpus;
	struct trace_vcpu *vcpu;
	size_t vcpus;
	struct cli_recorder recorder;
	bool shows;	       /* progress */
	int state[TRACE_CPUS]; /* of each .cpu: its state's file, or -1 */
};

/* "0,2-5" as numbers, at most TRACE_CPUS. 0, or -1 after a message. */
int domain_parse_cpus(struct cli *cli, const char *list, unsigned int *cpu, size_t *cpus);
/*
 * Make the folder, which belongs to QEMU's user, or see that it is empty; with --force set an
 * earlier trace aside. 0, or an exit code after a message.
 */
int trace_folder(const struct cli *cli, const struct domain_link *link, struct trace *trace);
/* The domains run: remove the earlier trace; else restore it, and remove the new one. */
void trace_folder_settle(const struct cli *cli, struct trace *trace, bool ran);
/* ---- trace-record.c ---- */

/* Whether the guests' processes are kept: nothing reads them with RTIT. */
bool trace_has_tasks(const struct domain_options *options);
/* Begin recording.json. 0, or an exit code after a message; then trace_record_end() in either case.
 */
int trace_record(struct cli *cli, const struct domain_run *run, struct trace *trace);
int trace_record_end(struct trace *trace, bool stopped);

/* ---- */

/* The bytes of trace so far. */
u64 trace_bytes(const struct trace *trace);
/* Open the regular file @file of the folder @dir to read; links are not followed. -1 by errno. */
int trace_open_file(int dir, const char *file);
/* The number of "cpu3.pt", or -1; @suffix: ".pt", or what QEMUs share beside it, ".state". */
int trace_cpu_of(const char *file, const char *suffix);
/* The same of a stream, of Intel PT or RTIT ("cpu3.rtit"). */
int trace_stream_of(const char *file);
/* Show the result: the VMCS and host CPUs of each vCPU, how it ended, and the files. */
int trace_show(struct cli *cli, const struct domain_run *run, struct trace *trace);

#endif
