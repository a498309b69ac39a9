/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Events that a perf.data has in addition to Processor Trace: context switches, KVM's entries and
 * exits, names of processes (docs/record.md); and the names of VMCSs derived from them. A VMCS page
 * is freed and reused, so a name holds for an interval of time.
 */
#ifndef VMPT_EVENTS_H
#define VMPT_EVENTS_H

#include "decoder/vmpt-clock.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Records of a perf.data, and tracepoints in it. */
enum vmpt_event_kind {
	VMPT_EVENT_SWITCH_IN,  /* .pid, .tid start to run on .cpu */
	VMPT_EVENT_SWITCH_OUT, /* they stop; .flag: preempted */
	VMPT_EVENT_KVM_ENTRY,  /* kvm:kvm_entry: .vcpu, .ip */
	VMPT_EVENT_KVM_EXIT,   /* kvm:kvm_exit: .vcpu, .ip, .reason, .info1, .info2; .flag: the
				  entry failed */
	VMPT_EVENT_COMM,       /* .text: a thread's name; .flag: by exec */
	VMPT_EVENT_FORK,       /* .pid, .tid: the child */
	VMPT_EVENT_THREAD_END, /* .pid, .tid */
	VMPT_EVENT_ITRACE_START,
	VMPT_EVENT_LOST_EVENTS, /* .info1: number of events lost about here */
	VMPT_EVENT_RECORDED,	/* perf opened its intel_pt event on .cpu; has no time */
	VMPT_EVENT_KVM_MSR,	/* kvm:kvm_msr: .info1: the MSR that the guest read or wrote */
	VMPT_EVENT_KVM_GPA,	/* kvm:kvm_page_fault, kvm_mmio, kvm_fast_mmio: .info1: the guest's
				   physical address */
};

#define VMPT_EVENT_NO_VCPU   0xffff /* the kernel's tracepoint does not have it */
#define VMPT_EVENT_NO_REASON 0xffff /* the same, or it is not an exit reason of VMX */
#define VMPT_EVENT_ISA_VMX   1	    /* kvm_exit's isa */

/* An event; members that its kind does not name are 0 or -1. Owned by the trace. */
struct vmpt_event {
	u64 time; /* perf's, ns; 0: the record has none */
	u64 tsc;  /* .time as host TSC, if the trace has perf's time conversion; else 0 */
	u64 ip, info1, info2;
	const char *text;
	int cpu, pid, tid; /* -1: not known */
	u16 vcpu;	   /* KVM's number */
	u16 reason;	   /* basic exit reason */
	u8 kind;	   /* enum vmpt_event_kind */
	bool flag;
};

/*
 * All events by time, those without a time by their place in the file. *@events is owned by the
 * trace. 0 or a negative error; a raw trace has none. The tracepoints' formats come from the file
 * itself. The first call reads the file.
 */
int vmpt_trace_events(struct vmpt_trace *trace, const struct vmpt_event **events, size_t *count);

/* Host TSC of a perf time: the inverse of vmpt_tsc_to_perf_time(). */
u64 vmpt_perf_time_to_tsc(const struct vmpt_trace_info *info, u64 ns);

/* ---- names ---- */

/* The VM that a VMCS belonged to during an interval. */
struct vmpt_vm_name {
	u64 vmcs;
	u64 from, to;	/* host TSC, [from, to); 0: from the start, ~0: to the end */
	const char *vm; /* libvirt's domain, or the VMM's guest name, or its process; owned by the
			   names */
	int pid, tid;	/* of the VMM and its vCPU thread; -1: not known */
	int vcpu;	/* -1: not known */
	u32 runs;	/* guest runs that agree */
	u32 against;	/* that do not */
};

/* A thread that runs a vCPU, given from outside the trace (vmpt record). */
struct vmpt_given_thread {
	int pid, tid;
	int vcpu;	/* -1: not known */
	const char *vm; /* NULL: not known; copied */
	u64 from, to;	/* host TSCs between which it was observed; thread ids are reused */
};

struct vmpt_names;

/* What names are derived from. */
struct vmpt_names_options {
	/* From vmpt_trace_events(); must outlive the names. Those without .tsc are not used. */
	const struct vmpt_event *events;
	size_t event_count;
	const struct vmpt_given_thread *given; /* used by vmpt_names_open() only */
	size_t given_count;
};

/* The number that the call below compares with the library's: see VMPT_ABI_VERSION. */
#define VMPT_NAMES_ABI                                                               \
	VMPT_ABI4(struct vmpt_names_options, struct vmpt_vm_name, struct vmpt_event, \
		  struct vmpt_given_thread)

/*
 * Match runs of guests with events: while a guest runs on a CPU, the thread there is that of the
 * last kvm:kvm_entry, or the one switched in last. On a CPU without either event runs have no name.
 * 0 with *@names, which vmpt_names_close() frees; -VMPT_E_NOMEM or -VMPT_E_VERSION.
 */
int vmpt_names_open_abi(struct vmpt_names **names, const struct vmpt_names_options *options,
			u64 abi);
#define vmpt_names_open(names, options) vmpt_names_open_abi(names, options, VMPT_NAMES_ABI)
/* Free the names; NULL is allowed. */
void vmpt_names_close(struct vmpt_names *names);

/*
 * Add a run of @vmcs on @cpu: non-root operation without a VM exit, between host TSCs @start and
 * @end. In any order. If the top 8 bits of the times are not known (TSC packets have 56 bits),
 * those of the events are used. 0 or a negative error: -VMPT_E_INVAL after vmpt_names_finish().
 */
int vmpt_names_run(struct vmpt_names *names, u64 vmcs, int cpu, const struct vmpt_time *start,
		   const struct vmpt_time *end);
/*
 * Add all runs of stream @stream, an index into those given to vmpt_clocks_open(), which is of
 * @cpu. For a long stream it costs as much as vmpt_timed_next(). 0 or a negative error.
 */
int vmpt_names_stream(struct vmpt_names *names, const struct vmpt_clocks *clocks, size_t stream,
		      int cpu, const struct vmpt_options *options);
/* All runs are added: determine the names. Call once. 0 or -VMPT_E_NOMEM. */
int vmpt_names_finish(struct vmpt_names *names);

/* All names by VMCS, then by time, *@count of them. After vmpt_names_finish(). Owned by @names. */
const struct vmpt_vm_name *vmpt_names_list(const struct vmpt_names *names, size_t *count);
/* The name of @vmcs at host TSC @tsc. NULL: it has none at that time. Owned by @names. */
const struct vmpt_vm_name *vmpt_names_at(const struct vmpt_names *names, u64 vmcs, u64 tsc);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
