/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside vmpt timeline and vmpt exits: from the trace's files to spans with lines (run.c, count.c,
 * names.c) for the sinks.
 */
#ifndef VMPT_CLI_TIMELINE_OWN_H
#define VMPT_CLI_TIMELINE_OWN_H

#include "cli/sideinfo/sideinfo.h"
#include "cli/timeline/timeline.h"
#include "util/hash.h"

/* ---- names.c: the owner of a VMCS ---- */

struct timeline_name {
	u64 vmcs;
	u64 from, to; /* host TSC, both inclusive */
	char *vm;     /* the VM's name as given */
	char *shown;  /* the same, safe for a terminal */
	u32 vcpu;     /* or TIMELINE_NONE */
	bool seen;    /* in the trace */
};

struct timeline_names {
	struct timeline_name *name; /* by VMCS, then time */
	size_t count;
	size_t from_record; /* the number from the side record */
};

/* All 0 to start. By the side record; @found: by events, or NULL. 0, or an exit code. */
int timeline_names_make(struct cli *cli, struct timeline_names *names,
			const struct cli_clocks *clocks, const struct vmpt_names *found);
void timeline_names_close(struct timeline_names *names);
/*
 * Who has @vmcs at @tsc; NULL: unknown. The answer is the same from *@from to *@to.
 */
const struct timeline_name *timeline_names_find(struct timeline_names *names, u64 vmcs, u64 tsc,
						u64 *from, u64 *to);
/* Warn of names that do not fit the trace; @part: only a part of it was examined. */
void timeline_names_tell(const struct cli *cli, const struct timeline_names *names, bool part);

/* ---- missing.c: CPUs that were recorded and have no trace ---- */

/* A thread was on such a CPU. */
struct timeline_seen {
	u64 tsc; /* of the host */
	int tid;
};

struct timeline_missing {
	struct timeline_seen *seen; /* by thread, then time */
	size_t seens;
	const struct vmpt_names *names; /* the threads of VMCSs; NULL: unknown */
};

/*
 * Warn of them. @clocks and the trace's @count events at @event must outlive it. 0, or an exit
 * code.
 */
int timeline_missing_open(struct cli *cli, struct timeline_missing *missing,
			  const struct cli_clocks *clocks, const struct vmpt_event *event,
			  size_t count);
void timeline_missing_close(struct timeline_missing *missing);
/* Whether the vCPU of @vmcs was on such a CPU between two host TSCs. */
bool timeline_missing_ran(const struct timeline_missing *missing, u64 vmcs, u64 from, u64 to);

/* ---- away.c: what a CPU did while a vCPU was out ---- */

/* Add @span, of ticks [@start, @end). */
void timeline_sums_add(struct timeline_sums *sums, const struct vmpt_span *span, u64 start,
		       u64 end);
/*
 * Set @s->out. @from: the sums when it exited; @to: now, on the same CPU, whose last span so far is
 * @last, of ticks [@start, @end): it may end after @s starts.
 */
void timeline_away(struct timeline_span *s, const struct timeline_sums *from,
		   const struct timeline_sums *to, const struct vmpt_span *last, u64 start,
		   u64 end);
/* The same where an exit or an entry between was not seen: all of it is not traced. */
void timeline_away_unknown(struct timeline_span *s);
/* The parts but the halted one. */
struct timeline_part_time timeline_exited(const struct timeline_span *s);

/* ---- count.c ---- */

struct timeline_cpu {
	struct timeline_sums sums;
	struct vmpt_span last; /* of the CPU, and its ticks */
	u64 last_start, last_end;
	u64 lost_until; /* ticks: an entry or an exit may be hidden up to here */
	u32 last_vcpu;	/* that ran, losses aside; TIMELINE_NONE: another owner */
	bool after_loss;
};

struct timeline_count {
	struct timeline_cpu *cpu; /* by stream */
	struct vmpt_hash lines;	  /* found by line_key */
	struct vmpt_hash vms;	  /* those with names, by name */
	u64 seed;		  /* against traces made to collide */
	u64 from;		  /* ticks: --from, or 0 */
	u32 any, others;	  /* lines of VMs without a VMCS, and of those beyond the limit */
	/* The last answer */
	u32 last;
	u64 last_vmcs, last_from, last_to;
};

int timeline_count_open(struct timeline_count *c, struct timeline *t);
void timeline_count_close(struct timeline_count *c, struct timeline *t);
/* The next span, by start. 0, or an exit code after a message. */
int timeline_count_span(struct timeline_count *c, struct timeline *t, const struct vmpt_span *span,
			struct timeline_span *s);
/* The same of one before --from: only who is out of the guest from then on. */
int timeline_count_before(struct timeline_count *c, struct timeline *t,
			  const struct vmpt_span *span, struct timeline_span *s);
/*
 * The walk has come to --to, at @to ticks. Mark as .awaited the vCPUs that are out then, and return
 * their number.
 */
size_t timeline_count_await(struct timeline *t, u64 to);
/* A span after --to. True: it is the first one of a vCPU that is .awaited; now it is .back. */
int timeline_count_after(struct timeline_count *c, struct timeline *t, const struct vmpt_span *span,
			 bool *back);
/* The time out of such a vCPU up to @to, host TSC. @span is filled, and must outlive @s. */
void timeline_count_out(struct timeline_count *c, struct timeline *t, u32 vcpu, u64 to,
			struct vmpt_span *span, struct timeline_span *s);
u64 timeline_seed(void);

/* ---- outputs ---- */

struct timeline_table;	/* table.c */
struct timeline_json;	/* json.c */
struct timeline_chrome; /* chrome.c */
struct timeline_page;	/* html.c */

/* The table of spans, at most @head lines (0: all). */
int timeline_table_open(struct cli *cli, u64 head, struct timeline_table **table,
			struct timeline_sink *sink);
void timeline_table_close(struct timeline_table *table);
/* Totals instead: only .end. */
void timeline_summary_sink(struct timeline_sink *sink);
int timeline_json_open(struct cli *cli, bool summary, u64 head, struct timeline_json **json,
		       struct timeline_sink *sink);
void timeline_json_close(struct timeline_json *json);
int timeline_chrome_open(struct cli *cli, const char *path, struct timeline_chrome **chrome,
			 struct timeline_sink *sink);
void timeline_chrome_close(struct timeline_chrome *chrome);

/* "name+0x10" of the IP of a guest of the VM called @vm into @buf; false: there is none. */
typedef bool timeline_page_symbol(void *opaque, const char *vm, u64 ip, char *buf, size_t size);

struct timeline_flames;

/* The HTML page. @flames: its spans are passed on; NULL: none. */
int timeline_page_open(struct cli *cli, const char *path, struct timeline_flames *flames,
		       struct timeline_page **page, struct timeline_sink *sink);
/* After all spans, and with flames after their calls: write it. 0, or an exit code. */
int timeline_page_write(struct timeline_page *page);
/* Host TSC of its time 0. */
u64 timeline_page_zero(const struct timeline_page *page);
void timeline_page_close(struct timeline_page *page);
/* Source of names for the IPs of exits; set before the page is written. */
void timeline_page_symbols(struct timeline_page *page, timeline_page_symbol *symbol, void *opaque);

#endif
