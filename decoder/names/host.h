/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside a host (vmpt-host.h): its records (host.c), what is mapped in the end (host-maps.c), and
 * who runs when (host-run.c).
 */
#ifndef VMPT_DECODER_HOST_H
#define VMPT_DECODER_HOST_H

#include "decoder/vmpt-host.h"
#include "util/array.h"
#include "util/hash.h"
#include "util/search.h"

#define HOST_NONE (~0U)

/* A file that was mapped. */
struct host_file {
	char *path;
	u8 build_id[20];
	u8 build_id_size; /* 0: not known */
};

/* A record of a map. */
struct host_map {
	u64 start, end, offset;
	u32 file; /* index */
};

struct host_process {
	struct vmpt_host_process process;
	struct host_map *map; /* as recorded: later ones lie over earlier ones */
	size_t maps;
	/* What it inherited: the first .inherited maps of a process of a higher level; HOST_NONE.
	 */
	u32 base;
	size_t inherited;
	bool settled;
	struct vmpt_guest_map *final;
	size_t finals;
};

/* What the kernel made. */
struct host_symbol {
	u64 start, end, from, to;
	char *name;
	bool bpf;
};

/* From .tsc on @pid runs on the CPU; -1: nobody is known to. */
struct host_switch {
	u64 tsc;
	int cpu, pid;
};

/* The threads of processes. */
struct host_thread {
	int tid, pid;
};

/* How often a process ran when its CR3 was loaded. */
struct host_vote {
	u64 cr3;
	u32 process, count;
};

/* A CR3, and who has most of its votes. */
struct host_cr3 {
	u64 cr3, votes;
	u32 best; /* vote */
};

struct vmpt_host {
	struct host_process *process; /* by pid, then by time, once all are read */
	size_t processes;
	struct host_process kernel; /* modules */
	u64 text;
	u8 build_id[20], build_id_size;
	struct host_file *file;
	size_t files;
	struct vmpt_hash file_of;
	struct host_symbol *symbol; /* by address, then by time */
	size_t symbols;
	struct host_switch *run; /* by CPU, then by time */
	size_t runs;
	struct host_thread *thread; /* by tid */
	size_t threads;
	struct host_vote *vote; /* as vmpt_host_stream() adds them */
	size_t votes;
	struct vmpt_hash vote_of;
	struct host_cr3 *cr3;
	size_t cr3s;
	struct vmpt_hash cr3_of;
};

/* ---- host-maps.c ---- */

int vmpt_host_settle(struct vmpt_host *h, struct host_process *p);

/* ---- host-run.c ---- */

/* Read the context switches. 0 or -VMPT_E_NOMEM. */
int vmpt_host_read_switches(struct vmpt_host *h, struct vmpt_trace *trace);

#endif
