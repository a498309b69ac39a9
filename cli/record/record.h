/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside vmpt record (docs/record.md): one recording of a host, its checks, perf, and the side
 * file. All of the system's files are read below $VMPT_RECORD_ROOT, which is for tests.
 */
#ifndef VMPT_CLI_REC_H
#define VMPT_CLI_REC_H

#include <sys/types.h>

#include "cli/sideinfo/sideinfo.h"
#include "cli/symbols/symbols.h"

#define REC_PATH    512
#define REC_DEBUGFS "/sys/kernel/debug/kvm"
/* Symbols of the host, not of a guest; and guests' whole memories, which are no code by address. */
#define REC_HOST   CLI_FOLDER_SYMBOLS "/host"
#define REC_MEMORY CODE_MEMORY
#define REC_PMU	   "/sys/bus/event_source/devices/intel_pt"

/* --guest-memory-at */
enum { REC_AT_END, REC_AT_START, REC_AT_BOTH };

struct rec_options {
	const char *out;
	struct cli_strings domain; /* --guest-memory */
	u8 memory_at;		   /* REC_AT_* */
	u64 aux_size;		   /* bytes per CPU */
	u64 every;		   /* ms between two scans of the VMs */
	u64 psb_period, mtc_period;
	bool has_psb_period, has_mtc_period;
	bool check, dry_run, kcore, no_cyc, noretcomp, no_events;
};

/* A vCPU that was seen. */
struct rec_vcpu {
	char folder[32]; /* PID-FD in debugfs; "" without debugfs */
	int pid, tid, vcpu;
	bool has_offset, has_ratio, has_bits;
	u64 offset, ratio, bits;
	u64 before, after;    /* host TSC of the last scan */
	bool ran;	      /* or KVM does not say whether */
	bool seen, unwritten; /* in this scan; the last one is not in the file */
};

struct recorder {
	struct cli *cli;
	const struct rec_options *o;
	const char *root;
	struct cli_recorder recorder;
	json_t *end; /* how it ended */
	FILE *side;
	int side_errno; /* why it could not be written; 0: it was */
	struct rec_vcpu *vcpu;
	size_t vcpus;
	/* What the checks found */
	unsigned int fatal, lacking;
	bool stopped; /* a signal ended what rec_run() ran */
	bool has_tracepoints, has_mtc, has_cyc;
	unsigned int cpus;
};

/* ---- host.c ---- */

/* "ROOT" and the formatted path in static-size @path; false: too long. */
bool rec_path(const struct recorder *r, char path[REC_PATH], const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * The first line of a file of the system, without its end, in @text of @size bytes. False: it
 * cannot be read, errno says why.
 */
bool rec_line(const struct recorder *r, char *text, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
bool rec_exists(const struct recorder *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A number that is all of such a file. */
bool rec_u64(const struct recorder *r, u64 *value, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The value after "NAME\t: " in /proc/cpuinfo, of its first processor. False: none. */
bool rec_cpuinfo(const struct recorder *r, const char *name, char *value, size_t size);
u64 rec_tsc(void);
/* The head of recording.json; sets the recorder up to read the host's TSC. */
json_t *rec_host(struct recorder *r);

/* ---- check.c ---- */

/* Say what is missing, and what to do. Counts it in @r. */
void rec_check(struct recorder *r);

/* ---- kvm.c ---- */

/* Scan all vCPUs, write changes to the side file. */
void rec_look(struct recorder *r);
/* The last scan: all are written. */
void rec_look_last(struct recorder *r);
/* All vCPUs whose clock is the host's. */
size_t rec_not_offset(const struct recorder *r);

/* ---- save.c ---- */

/* Take @line: write it to the side file. */
void rec_write(struct recorder *r, json_t *line);
/* Copy kallsyms, modules, and the VMMs' command lines. */
void rec_save(struct recorder *r);
void rec_save_cmdline(struct recorder *r, int pid);

/* ---- memory.c ---- */

/* Whether the domains of --guest-memory can be dumped into @folder; counts what is missing. */
void rec_check_memory(struct recorder *r, const char *folder);
/* Dumps of their memory, if they are wanted then. The number of those that failed. */
unsigned int rec_save_memory(struct recorder *r, bool start);

/* ---- perf.c ---- */

#define REC_ARGS 48

/* perf's command line. */
struct rec_perf {
	char *arg[REC_ARGS + 1];
	int args;
	char text[2048]; /* of those that are made here */
	char trace[REC_PATH];
};

/* 0, or an exit code: the command has too many words. */
int rec_perf_args(struct recorder *r, struct rec_perf *p);
/* The full path of @program in $PATH. */
bool rec_find_program(const char *program, char path[REC_PATH]);
/*
 * Run @arg to its end. Its wait status, or -1. Up to @size - 1 bytes of its output go to @text, if
 * that is not NULL. A signal that would end this process ends @arg, and sets .stopped.
 */
int rec_run(struct recorder *r, char *const *arg, char *text, size_t size);
/*
 * Run perf until it ends, or a signal ends it, and scan the VMs meanwhile. 0, or an exit code
 * after a message.
 */
int rec_perf_run(struct recorder *r, struct rec_perf *p);

#endif
