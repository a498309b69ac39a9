/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whose code on the host: what a perf.data says of its kernel and processes. Records of perf name
 * the files that each process mapped to execute and when (MMAP2, COMM, FORK), which thread ran on
 * which CPU (SWITCH), and code that the kernel made (KSYMBOL). They are not to be trusted: names
 * are any bytes up to a 0, and what is read is bounded by the size of the file.
 *
 * One thread at a time uses a vmpt_host. What its functions return is the host's own, valid until
 * it is closed.
 */
#ifndef VMPT_HOST_H
#define VMPT_HOST_H

#include "decoder/vmpt-events.h"
#include "decoder/vmpt-guest.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* A process from its start, or from an exec, to the next or its end: it has one set of page
 * tables. */
struct vmpt_host_process {
	struct vmpt_guest_task task; /* .tgid, .pid, .parent, .comm; the rest is not known */
	u64 from, to;		     /* host TSC, [from, to); 0: from the start, ~0: to the end */
};

/* The kernel. */
struct vmpt_host_kernel {
	u64 text;	    /* where _text is; 0: not known */
	const u8 *build_id; /* NULL: not known */
	size_t build_id_size;
	u32 processes; /* vmpt_host_process() */
	u32 symbols;   /* KSYMBOL records */
};

struct vmpt_host;

/* The interface of this header: see VMPT_ABI_VERSION. */
#define VMPT_HOST_ABI                                                                 \
	VMPT_ABI_ADD4(VMPT_ABI4(struct vmpt_host_process, struct vmpt_host_kernel,    \
				struct vmpt_guest_task, struct vmpt_guest_map),       \
		      struct vmpt_guest_symbol, struct vmpt_event, struct vmpt_batch, \
		      struct vmpt_time)

/*
 * Read the records of @trace, which must outlive the host. 0 with *@host: of a raw trace it has
 * nothing; or -VMPT_E_NOMEM, -VMPT_E_VERSION.
 */
int vmpt_host_open_abi(struct vmpt_host **host, struct vmpt_trace *trace, u64 abi);
#define vmpt_host_open(host, trace) vmpt_host_open_abi(host, trace, VMPT_HOST_ABI)
/* @host may be NULL. */
void vmpt_host_close(struct vmpt_host *host);

/* @kernel: what is known of it; the build id is the host's. */
void vmpt_host_kernel(const struct vmpt_host *host, struct vmpt_host_kernel *kernel);

/* Process number @n < .processes, by pid, then by time; NULL: there is none. */
const struct vmpt_host_process *vmpt_host_process(const struct vmpt_host *host, u32 n);
/* The process @pid at host TSC @tsc, ~0: its last program; NULL: not known. */
const struct vmpt_host_process *vmpt_host_process_at(const struct vmpt_host *host, int pid,
						     u64 tsc);
/*
 * That which ran on @cpu at @tsc by its context switches; or if @cpu is -1 that of thread @tid.
 * NULL: not known, or the kernel's own threads.
 */
const struct vmpt_host_process *vmpt_host_running(const struct vmpt_host *host, int cpu, int tid,
						  u64 tsc);

/*
 * Learn whose page tables are at which CR3 from stream @stream of @clocks, an index into those
 * given to vmpt_clocks_open(), which is of @cpu or of thread @tid (-1: not known): by the threads
 * that ran when each PIP of the host came. For a long stream it costs as much as vmpt_timed_next().
 * 0 or a negative error.
 */
int vmpt_host_stream(struct vmpt_host *host, const struct vmpt_clocks *clocks, size_t stream,
		     int cpu, int tid, const struct vmpt_options *options);
/*
 * The process whose page tables are at @cr3: that which ran at all PIPs to it, but for one in
 * sixteen. NULL: not known, or several had it one after the other.
 */
const struct vmpt_host_process *vmpt_host_cr3(const struct vmpt_host *host, u64 cr3);

/*
 * What @process has mapped to execute, by address; with NULL the kernel's modules, named as perf
 * does ("[kvm]" or a path). Of two maps of one place the later one is there. 0 or -VMPT_E_NOMEM.
 */
int vmpt_host_maps(struct vmpt_host *host, const struct vmpt_host_process *process,
		   const struct vmpt_guest_map **maps, size_t *count);

/*
 * What the kernel made at @address, an eBPF program or a trampoline, and had at host TSC @tsc; ~0:
 * the last one. .module is "bpf" or NULL. False: nothing is known there.
 */
bool vmpt_host_symbol_at(const struct vmpt_host *host, u64 address, u64 tsc,
			 struct vmpt_guest_symbol *symbol);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
