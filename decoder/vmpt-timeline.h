/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What ran when (docs/timeline.md): all CPUs' streams on one time line, as spans by time. A span is
 * a stretch of one CPU with one owner; a guest's span ends with an exit and its reason, as far as
 * the trace shows it. Spans are read one by one: only open ones are kept here.
 */
#ifndef VMPT_TIMELINE_H
#define VMPT_TIMELINE_H

#include "decoder/vmpt-clock.h"
#include "decoder/vmpt-events.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Who ran. */
enum vmpt_span_kind {
	VMPT_SPAN_HOST,
	VMPT_SPAN_GUEST,   /* .vmcs if .owner.kind is VMPT_OWNER_VM */
	VMPT_SPAN_UNKNOWN, /* packets of an unknown owner */
	VMPT_SPAN_LOST,	   /* bytes that are lost or no packets */
	VMPT_SPAN_OFF,	   /* tracing was off: TraceEn = 0, or the CPU's packets ended for a time */
};

/* How a guest's span began or ended. */
enum vmpt_edge {
	VMPT_EDGE_UNKNOWN, /* at or in a loss, or at the trace's start or end */
	VMPT_EDGE_ENTRY,   /* a VM entry */
	VMPT_EDGE_EXIT,	   /* a VM exit */
	VMPT_EDGE_SWITCH,  /* another VMCS, no exit seen between */
	VMPT_EDGE_TRACE,   /* tracing began or ended there */
	VMPT_EDGE_CUT,	   /* cut there for display: never by vmpt_timeline_next() */
};

/* Where a reason comes from. */
enum vmpt_reason_source {
	VMPT_REASON_NONE,
	VMPT_REASON_EVD,     /* EVD.VMXR, from the processor */
	VMPT_REASON_EVENT,   /* perf's kvm:kvm_exit on that CPU at that time */
	VMPT_REASON_CODE,    /* guessed: the instruction at the exit's IP causes it */
	VMPT_REASON_PATTERN, /* guessed from the packets around it */
};

/* No reason is known. */
#define VMPT_REASON_UNKNOWN 0xffff

/* A VM exit, as far as the trace and KVM's events show it. */
struct vmpt_exit {
	u16 reason;  /* basic exit reason (SDM 3, Appendix C), or VMPT_REASON_UNKNOWN */
	u8 source;   /* enum vmpt_reason_source; CODE and PATTERN are guesses */
	bool has_ip; /* .ip: the guest's IP at the exit (FUP), in .cr3 if that is not 0 */
	bool has_qualification;
	bool halted;  /* the vCPU was idle: HLT, MWAIT, UMWAIT, TPAUSE, according to .source */
	bool no_halt; /* it was not, whatever the reason: the code at .ip has another instruction */
	u64 ip, cr3, qualification;
	/* From KVM's events, which follow the exit's own: RDMSR and WRMSR; EPT violations */
	bool has_msr, has_gpa;
	u32 msr;
	u64 gpa;
};

/* A stretch of one CPU with one owner. */
struct vmpt_span {
	u32 stream; /* the stream's index */
	u8 kind;    /* enum vmpt_span_kind */
	u8 began, ended;
	u8 back;    /* enum vmpt_back: the time of this stream went back in it */
	u8 loss;    /* VMPT_SPAN_LOST: enum vmpt_error of the first */
	u32 losses; /* VMPT_SPAN_LOST: those that adjoin are one span */
	struct vmpt_owner owner;
	struct vmpt_time start, end;
	u64 offset, size; /* bytes of the stream */
	u64 loss_size;	  /* VMPT_SPAN_LOST: bytes of the first */
	/*
	 * Bytes without a proven owner (vmpt_slice_unproven()) that begin here, or 0. Time with
	 * tracing off is cut out of them, so the span may be shorter, and of kind VMPT_SPAN_OFF.
	 */
	u64 unproven;
	struct vmpt_exit exit; /* of a guest's span that ended with VMPT_EDGE_EXIT */
	u32 overflows, failed_entries;
};

struct vmpt_timeline;

/* What is known about an exit of unknown reason. */
struct vmpt_exit_place {
	struct vmpt_owner owner;
	u64 cr3; /* 0: not known */
	u64 ip;	 /* the guest's IP at the exit */
	bool has_next;
	u64 next;  /* where the vCPU resumed, if on the same CPU */
	bool idle; /* before that, the CPU slept or ran something else (struct vmpt_exit) */
};

/* All 0 is the default. */
struct vmpt_timeline_options {
	/* .threads: streams decoded in parallel; with a single stream, threads of its decoder.
	 * .progress: bytes of all streams. */
	struct vmpt_options decode;
	/* All events of the trace by time, or NULL; owned by the caller. */
	const struct vmpt_event *events;
	size_t event_count;
	/*
	 * Guess a basic exit reason from the guest's code, or VMPT_REASON_UNKNOWN; *@no_halt, false
	 * before, is for struct vmpt_exit. May be NULL.
	 * Called by several threads concurrently if .decode.threads is over 1.
	 */
	u16 (*guess)(void *opaque, const struct vmpt_exit_place *place, bool *no_halt);
	void *guess_opaque;
};

/* The number that the call below compares with the library's: see VMPT_ABI_VERSION. */
#define VMPT_TIMELINE_ABI                                                           \
	VMPT_ABI4(struct vmpt_timeline_options, struct vmpt_span, struct vmpt_exit, \
		  struct vmpt_exit_place)

/*
 * @streams as given to vmpt_clocks_open(), all of them; they, @clocks and what @options points to
 * must outlive the timeline. 0 with *@timeline, which vmpt_timeline_close() frees; -VMPT_E_NOMEM,
 * -VMPT_E_INVAL, -VMPT_E_VERSION, or -VMPT_E_UNSUPPORTED for RTIT, which does not show VM exits.
 */
int vmpt_timeline_open_abi(struct vmpt_timeline **timeline, const struct vmpt_clocks *clocks,
			   const struct vmpt_stream *const *streams, size_t count,
			   const struct vmpt_timeline_options *options, u64 abi);
#define vmpt_timeline_open(timeline, clocks, streams, count, options) \
	vmpt_timeline_open_abi(timeline, clocks, streams, count, options, VMPT_TIMELINE_ABI)
/* Free the timeline; NULL is allowed. */
void vmpt_timeline_close(struct vmpt_timeline *timeline);

/*
 * The next span of all streams, by start. Spans of one stream are contiguous: each starts where and
 * when the one before it ended, unless its .back says why not. A stream's spans before its first
 * known time have VMPT_TIME_NONE and come first.
 * 1, 0 at the end, or a negative error.
 */
int vmpt_timeline_next(struct vmpt_timeline *timeline, struct vmpt_span *span);

/* The name of a basic exit reason (SDM 3, Appendix C), for example "EPT violation"; NULL for a
 * number that is not in the manual. Static memory. */
const char *vmpt_exit_reason_name(unsigned int reason);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
