/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * vmpt timeline: spans with the names of their VMs and vCPUs, passed to one or several outputs
 * (tables, JSON, Chrome's trace events, the HTML page). An output is a sink: it takes spans in
 * order of time, and writes at the end or as it goes.
 */
#ifndef VMPT_CLI_TIMELINE_H
#define VMPT_CLI_TIMELINE_H

#include "cli/base/base.h"
#include "cli/page/page.h"
#include "cli/sideinfo/sideinfo.h"
#include "cli/timeline/options.h"

/* The longest of several times out of the guest, the first of those of one length. */
struct timeline_longest {
	u64 ticks;  /* how long */
	u64 at;	    /* ticks of the exit from time 0 */
	u64 offset; /* where the stream goes on after it */
	u32 stream, vcpu;
	bool given; /* there is one, longer than 0 */
};

/* The totals of a vCPU, a VM or a CPU. Times are ticks of the host's TSC. */
struct timeline_totals {
	u64 running; /* in non-root operation */
	/*
	 * From a VM exit to the next entry, by part; .exited is all but the halted part. The early
	 * and late sides are the sums of all bounds.
	 */
	struct timeline_part_time out[TIMELINE_PARTS], exited;
	u64 unseen; /* from a VM exit to the next entry that was seen: between, it ran on a CPU
		       that is not in the trace */
	u64 lost;   /* in losses: of a CPU only */
	/* Each may be less by at most .early or more by at most .late: the sums of all bounds. */
	struct timeline_bounds {
		u64 early, late;
		bool open; /* a part has no bound, so the sum has none */
	} running_bounds;
	u64 entries, exits, halts, moves, losses, unseens;
	u64 unsure;  /* runs with one unknown end */
	u64 guessed; /* of the exits those with a guessed reason */
	u64 spans, bytes, overflows, failed_entries;
	u64 timed; /* spans that have times; without any, the sums mean nothing */
};

/*
 * Sums over the spans of one CPU, by part, TIMELINE_HALTED aside: the difference of two is what the
 * CPU did between. A span's start and end are two edges, each with its error.
 */
struct timeline_sums {
	struct {
		u64 ticks, early, late, opens;
	} part[TIMELINE_PARTS];
};

/* A line of the time line: one vCPU, on whatever CPU it runs. */
struct timeline_vcpu {
	char *name;	/* "web vcpu 0", or its VMCS as "3b56ee000"; safe for a terminal */
	u32 vm;		/* index of its VM */
	u32 next_of_vm; /* or TIMELINE_NONE */
	u32 number;	/* of the vCPU in its VM, or TIMELINE_NONE */
	u64 vmcs;	/* the first one it was seen with */
	bool is_any;	/* a VM's, but the VMCS is not known: "vm?" */
	bool inside;	/* it ran, or was out, in the part that --from and --to choose */
	bool awaited;	/* out at --to, and not seen again so far */
	bool back;	/* it was, and came back after that */
	bool wanted;	/* --owner names it, or is not given: totals show only these */
	struct timeline_totals totals;

	/* For the totals: */
	bool ran;	 /* .last_* are valid */
	bool last_timed; /* so is .last_end */
	bool open;	 /* it has exited; .left says how */
	u32 last_stream;
	u64 last_offset; /* after its bytes there */
	u64 last_end;	 /* ticks from time 0 */
	u32 last_early, last_late;
	bool last_open; /* .last_end has no bounds */
	u64 overlaps;	/* runs that began while it ran on another CPU: its name is wrong */
	struct vmpt_exit left;
	struct timeline_sums sums; /* of .last_stream at .last_end */
};

struct timeline_vm {
	char *name;	 /* as the vCPU's, without its number */
	char *given;	 /* the name as given, which identifies the VM */
	bool named;	 /* else it is an unnamed VMCS */
	u32 vcpus;	 /* their number */
	u32 first, last; /* of them: indices; the others by .next_of_vm */
	u32 inside;	 /* how many of them are */
	u32 wanted;	 /* how many of these are; if not all, totals show only these */
	struct timeline_totals totals;
};

/* The whole; VMs and vCPUs are added as found, so all are known only at the end. */
struct timeline {
	struct cli *cli;
	const struct vmpt_clocks *clocks;
	struct timeline_vm *vm;
	size_t vms;
	struct timeline_vcpu *vcpu;
	size_t vcpus;
	struct timeline_totals *cpu; /* by index in cli->stream; running: of guests on it */
	bool timed; /* packets have times: else .zero, .last and all ticks are 0 and mean nothing */
	u64 zero;   /* host TSC of time 0: the first one of the trace that is known */
	u64 last;   /* the last one so far */
	double hz;  /* ticks per second; 0: not known, times are shown in ticks */
	struct cli_times times; /* how times are printed; .zero is .zero */
	struct timeline_names *names;
	struct timeline_missing *missing;
};

/* An output. All return 0, or an exit code after a message. */
struct timeline_sink {
	int (*begin)(void *opaque, const struct timeline *timeline);
	int (*span)(void *opaque, const struct timeline *timeline,
		    const struct timeline_span *span);
	/* All spans were passed: totals and names are complete. */
	int (*end)(void *opaque, const struct timeline *timeline);
	void *opaque;
	bool all; /* --owner limits the totals that are shown, not the spans that it gets */
	/*
	 * It shows times out of the guest: those that --from and --to cut, too. With .all it gets
	 * all spans, TIMELINE_BEFORE and TIMELINE_AFTER. Others get no time out that is cut.
	 */
	bool outs;
};

/* Walk the trace and pass spans to all @count @sinks. 0, or an exit code after a message. */
int timeline_run(struct cli *cli, const struct timeline_wants *wants,
		 const struct timeline_sink *sinks, size_t count);

/* ---- words, the same in all outputs ---- */

/* "host", the vCPU's name, "unknown", "lost", "off". */
const char *timeline_who(const struct timeline *timeline, const struct timeline_span *span);
/* "host", "guest", "unknown", "lost", "off": in JSON. */
const char *timeline_kind(const struct vmpt_span *span);
/* "EPT violation", "reason 77", "unknown"; without the mark of a guess. */
const char *timeline_reason(const struct vmpt_exit *exit, char buf[32]);
/* "evd", "event", "code", "pattern", "none". */
const char *timeline_reason_source(const struct vmpt_exit *exit);
/* @o's "vm", the VM's name as given; without one "vmcs", or "owner" if that is not known. */
void timeline_json_vm(struct cli *cli, const struct timeline *timeline, json_t *o,
		      const struct timeline_vm *vm);
/* KEY_ns, or KEY_ticks where the TSC's frequency is not known; @known false: null. */
void timeline_json_ticks(struct cli *cli, const struct timeline *timeline, json_t *o,
			 const char *key, u64 ticks, bool known);
/* "KEY_ns" of a time on the clock of --time, a string beyond 2^53; or "KEY_ticks" from time 0. */
void timeline_json_when(struct cli *cli, const struct timeline *timeline, json_t *o,
			const char *key, u64 ticks);
/* "longest": when, how long, CPU, offset and vCPU; null if none was longer than 0. */
void timeline_json_longest(struct cli *cli, const struct timeline *timeline, json_t *o,
			   const struct timeline_longest *longest);
/* Note @ticks of the time out before @span, if that is the longest one. */
void timeline_longest_take(struct timeline_longest *longest, const struct timeline_span *span,
			   u64 ticks);
/* When its exit was, as --from takes it. */
const char *timeline_longest_at(const struct timeline *timeline,
				const struct timeline_longest *longest, char buf[CLI_WHEN]);
/* Whether the reason is a guess: shown with a '?' after it. */
bool timeline_guessed(const struct vmpt_exit *exit);
/* The larger side. */
u64 timeline_error(const struct timeline_bounds *bounds);
u64 timeline_part_error(const struct timeline_part_time *part);
void timeline_part_add(struct timeline_part_time *sum, const struct timeline_part_time *part);
/* "host", "wait", "halted", "untraced": enum timeline_part. */
const char *timeline_part_name(unsigned int part);
/* Whether the trace, and no guess, gives the reason. */
bool timeline_proved(const struct vmpt_exit *exit);
/* Seconds, or ticks as they are where the frequency is not known. */
double timeline_seconds(const struct timeline *timeline, u64 ticks);

#define TIMELINE_TIME CLI_LENGTH

/* Ticks of the part of the trace that --from and --to choose. */
u64 timeline_lasts(const struct timeline *t);
/* "12.3 us", "4,711" ticks. */
const char *timeline_length(const struct timeline *t, u64 ticks, char buf[TIMELINE_TIME]);
/* The same, "12.3 M" of many ticks: for tables of totals. */
const char *timeline_short(const struct timeline *t, u64 ticks, char buf[TIMELINE_TIME]);
/* Shown in tables where the time is unknown. */
#define TIMELINE_UNTOLD "–"
/* Warn that times are in ticks, if there are times. */
void timeline_tell_ticks(const struct timeline *t);
/* Columns of any reason: nothing is cut. */
#define TIMELINE_WHOLE 64
/* The reason with its mark: "HLT?"; cut to @columns. */
const char *timeline_why(const struct vmpt_exit *exit, char *buf, size_t len, size_t columns);
/* @text cut to @columns of a terminal, with "…" where it was cut. Not for names of VMs. */
const char *timeline_cut(const char *name, size_t columns, char *buf, size_t len);

#endif
