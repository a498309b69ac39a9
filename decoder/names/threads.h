/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Threads that may run guests, from a trace's events and the given threads. */
#ifndef VMPT_DECODER_VM_THREADS_H
#define VMPT_DECODER_VM_THREADS_H

#include "decoder/vmpt-events.h"

#define VM_THREAD_NONE SIZE_MAX

/* A thread from its start to its end: ids are reused. */
struct vm_thread {
	int tid, pid, vcpu;
	u64 from, to;
	const char *comm;
	bool is_vcpu;
	const struct vmpt_given_thread *given; /* while the names are opened */
	char *vm;
};

struct vm_threads {
	struct vm_thread *list; /* by number, then by time */
	size_t count;
	bool strict; /* some are known to be vCPU threads: use only those */
};

/*
 * Find all threads in @options' events. 0 or -VMPT_E_NOMEM; @threads, all zeros before, must be
 * closed in any case. Names of threads are owned by the events.
 */
int vmpt_vm_threads_open(struct vm_threads *threads, const struct vmpt_names_options *options);
void vmpt_vm_threads_close(struct vm_threads *threads);

/* Thread with id @tid at @tsc: its index, or VM_THREAD_NONE. */
size_t vmpt_vm_threads_at(const struct vm_threads *threads, int tid, u64 tsc);

#endif
