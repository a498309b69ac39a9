/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a perf.data has beside Processor Trace: context switches, KVM's entries and exits, names of
 * processes (docs/record.md); and the names of VMCSs that follow from them. A VMCS page is freed
 * and used again, so a name holds for an interval of time.
 */
#ifndef VMPT_EVENTS_H
#define VMPT_EVENTS_H

#include "decoder/vmpt-clock.h"

#ifdef __cplusplus
extern "C" {
#endif

enum vmpt_event_kind {
	VMPT_EVENT_SWITCH_IN,  /* .pid, .tid begin to run on .cpu */
	VMPT_EVENT_SWITCH_OUT, /* stop to; .flag: preempted */
	VMPT_EVENT_KVM_ENTRY,  /* kvm:kvm_entry: .vcpu, .ip */
	VMPT_EVENT_KVM_EXIT,   /* kvm:kvm_exit: .vcpu, .ip, .reason, .info1, .info2; .flag: the
				  entry failed */
	VMPT_EVENT_COMM,       /* .text: a thread's name; .flag: by exec */
	VMPT_EVENT_FORK,       /* .pid, .tid: the child */
	VMPT_EVENT_THREAD_END, /* .pid, .tid */
	VMPT_EVENT_ITRACE_START,
	VMPT_EVENT_LOST,     /* .info1: so many events were lost about here */
	VMPT_EVENT_RECORDED, /* perf opened its intel_pt event on .cpu; without a time */
};

#define VMPT_EVENT_NO_VCPU   0xffff /* the tracepoint of that kernel does not say */
#define VMPT_EVENT_NO_REASON 0xffff /* the same, or the reason is not VMX's */
#define VMPT_EVENT_ISA_VMX   1	    /* kvm_exit's isa */

/* Memory is the trace's. */
struct vmpt_event {
	u64 time; /* perf's, ns; 0: the record has none */
	u64 tsc;  /* the same as host TSC, if the trace has perf's time conversion; else 0 */
	u64 ip, info1, info2;
	const char *text;
	int cpu, pid, tid; /* -1: not known */
	u16 vcpu;	   /* KVM's number */
	u16 reason;	   /* basic exit reason */
	u8 kind;	   /* enum vmpt_event_kind */
	bool flag;
};

/*
 * All of them by time, those without a time where they stand in the file. *@events stays the
 * trace's. 0 or a negative error; a trace without a perf.data has none. Formats of the tracepoints
 * come from the file itself. Read from the file at the first call.
 */
int vmpt_trace_events(struct vmpt_trace *trace, const struct vmpt_event **events, size_t *count);

/* Host TSC of a perf time: the inverse of vmpt_tsc_to_perf_time(). */
u64 vmpt_perf_time_to_tsc(const struct vmpt_trace_info *info, u64 ns);

/* ---- names ---- */

/* Who a VMCS was for a time. */
struct vmpt_vm_name {
	u64 vmcs;
	u64 from, to;	/* host TSC, .to is behind it; 0: from the start, ~0: still */
	const char *vm; /* libvirt's domain, or the VMM's guest name, or its process; owned by the
			   names */
	int pid, tid;	/* of the VMM and its vCPU thread; -1: not known */
	int vcpu;	/* -1: not known */
	u32 runs;	/* guest runs that say so */
	u32 against;	/* that say otherwise */
};

/* A thread that runs a vCPU, as someone told who was not in the trace (vmpt record). */
struct vmpt_given_thread {
	int pid, tid;
	int vcpu;	/* -1: not known */
	const char *vm; /* NULL: not known; copied */
	u64 from, to;	/* host TSC when it was seen to be so; thread ids are used again */
};

struct vmpt_names;

struct vmpt_names_options {
	/* vmpt_trace_events()'s, which must outlive the names. Those without .tsc are not used. */
	const struct vmpt_event *events;
	size_t event_count;
	const struct vmpt_given_thread *given; /* needed by vmpt_names_open() only */
	size_t given_count;
};

/*
 * Join runs of guests with events: while a guest runs on a CPU, the thread there is the one that
 * kvm:kvm_entry was last seen of, or that was switched in last. Without events of either kind on a
 * CPU its runs have no name. 0 or -VMPT_E_NOMEM.
 */
int vmpt_names_open(struct vmpt_names **names, const struct vmpt_names_options *options);
void vmpt_names_close(struct vmpt_names *names);

/*
 * A run of @vmcs on @cpu: non-root operation without a VM exit, between host TSCs @start and @end.
 * In any order. Where the top 8 bits of the times are not known (TSC packets have 56), those of the
 * events are taken. 0 or a negative error: -VMPT_E_INVAL after vmpt_names_finish().
 */
int vmpt_names_run(struct vmpt_names *names, u64 vmcs, int cpu, const struct vmpt_time *start,
		   const struct vmpt_time *end);
/*
 * All runs of a trace's stream, which was given to vmpt_clocks_open() as number @stream and is of
 * @cpu. For many bytes it costs what vmpt_timed_next() does. 0 or a negative error.
 */
int vmpt_names_stream(struct vmpt_names *names, const struct vmpt_clocks *clocks, size_t stream,
		      int cpu, const struct vmpt_options *options);
/* All runs are there: find the names. Once. */
int vmpt_names_finish(struct vmpt_names *names);

/* By VMCS, then by time. After vmpt_names_finish(). */
const struct vmpt_vm_name *vmpt_names_list(const struct vmpt_names *names, size_t *count);
/* NULL: it has none then. */
const struct vmpt_vm_name *vmpt_names_at(const struct vmpt_names *names, u64 vmcs, u64 tsc);

#ifdef __cplusplus
}
#endif

#endif
