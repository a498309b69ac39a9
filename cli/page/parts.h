/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The parts of the HTML page of vmpt timeline (docs/page.md): shares of time by bucket, some
 * individual spans, exits by reason, exiting IPs. Memory is bounded for any trace; there is one
 * file per part.
 */
#ifndef VMPT_CLI_PAGE_PARTS_H
#define VMPT_CLI_PAGE_PARTS_H

#include <jansson.h>
#include <stdio.h>

#include "cli/page/page.h"
#include "cli/page/span.h"
#include "util/hash.h"

/* ---- bytes to be packed ---- */

struct page_bytes {
	u8 *data;
	size_t size, room;
	bool failed; /* no memory: what was added since is lost */
};

void page_put_u8(struct page_bytes *bytes, u8 value);
/* Seven bits per byte, the lowest first; bit 7: more follow. */
void page_put(struct page_bytes *bytes, u64 value);
/* The same of 2 * |difference|, + 1 if it is below 0. */
void page_put_step(struct page_bytes *bytes, u64 from, u64 to);
void page_put_raw64(struct page_bytes *bytes, u64 value);

/* ---- grid.c: shares of time by bucket ---- */

/*
 * The state of a lane, for a share of time. From 5: in a CPU's lane a vCPU; in a vCPU's lane a
 * reason while the host runs after such an exit, and from PAGE_WAITS a VM that has the CPU
 * meanwhile.
 */
enum page_state {
	PAGE_RUNS, /* the host on a CPU, the guest of a vCPU */
	PAGE_UNKNOWN,
	PAGE_LOST,
	PAGE_OFF,
	PAGE_OTHER, /* too many states in this bucket */
	PAGE_STATES,
};

#define PAGE_REASONS 250 /* the last one is "other" */
#define PAGE_WAITS   (PAGE_STATES + PAGE_REASONS)

#define PAGE_CELLS 16

struct page_cell {
	u16 state;
	u32 count; /* spans that began there */
	u64 ticks;
};

struct page_bucket {
	u16 cells;
	struct page_cell *cell;
};

struct page_lane {
	struct page_bucket *bucket; /* grid.count of them, or NULL: nothing yet */
};

/* All lanes have the same buckets. They get twice as wide when the time or the lanes grow. */
struct page_grid {
	u64 width; /* ticks, a power of 2 */
	u32 count, max;
	struct page_lane *lane;
	size_t lanes, used;
};

int page_grid_add(struct page_grid *grid, size_t lane, u16 state, u64 start, u64 end);
struct page_run;
/* @run is a part of what was added as @from: up to .ticks of it are @to instead. 0, or -1. */
int page_grid_move(struct page_grid *grid, size_t lane, u16 from, u16 to,
		   const struct page_run *run);
/* Half as many buckets, each twice as wide; with @halve_count not of more time. */
void page_grid_widen(struct page_grid *grid, bool halve_count);
void page_grid_put(const struct page_grid *grid, size_t lanes, struct page_bytes *bytes);
void page_grid_free(struct page_grid *grid);

/* ---- exits.c: exits by vCPU and reason, exiting IPs by VM ---- */

/* Bins of a duration: eight per octave, up to 8 ticks one each. */
#define PAGE_BINS 496

struct page_reason {
	u16 reason;
	u8 source;
	bool halted;
};

struct page_hist {
	u64 count;	/* exits */
	u64 timed;	/* of which the host time is known */
	u64 ticks, max; /* that the host ran; of halts all */
	u64 waited;	/* that another vCPU had the CPU */
	u32 bin[PAGE_BINS];
};

struct page_ip {
	u64 ip, count, ticks;
	u32 votes;
	u8 reason; /* the most frequent, if one has more than half */
};

/* The IPs with the most exits: a count is too low by at most .missed. */
struct page_ips {
	struct page_ip *entry;
	struct vmpt_hash hash; /* by IP */
	u32 used;
	u64 missed, total;
};

struct page_exits {
	struct page_reason reason[PAGE_REASONS];
	u32 reasons, hists;
	struct page_hist *(*hist)[PAGE_REASONS]; /* by line */
	size_t lines;
	struct page_ips *ips; /* by VM */
	size_t vms;
};

u8 page_exit_reason(struct page_exits *exits, const struct vmpt_exit *exit);
/* @timed: the time up to the entry is known, @ticks the host's part. 0, or -1 without memory. */
int page_exit_add(struct page_exits *exits, u32 line, u32 vm, const struct vmpt_exit *exit,
		  u8 reason, bool timed, u64 ticks, u64 waited);
u32 page_bin(u64 ticks);
void page_exits_put(const struct page_exits *exits, struct page_bytes *bytes);
/* "reasons" and "ips" of the document. */
struct page_options;
int page_exits_json(struct page_exits *exits, const struct page_options *options, json_t *meta);
void page_exits_free(struct page_exits *exits);

/* ---- wait.c: what a CPU did while a vCPU was out ---- */

/* Who ran, if no vCPU with a lane: others, and from here enum page_state. */
#define PAGE_WHO_OTHER (PAGE_LINES)
#define PAGE_WHO_STATE (PAGE_LINES + 1)

struct page_run {
	u64 start, end, ticks; /* .ticks: of one run or several in a bucket */
	u32 who;
};

struct page_cpu {
	struct page_run *run;
	size_t room;
	u32 runs;
	u64 first; /* the number of those that are no longer in .run */
};

/* Anything but the host ran. @width: of the buckets. 0, or -1: no memory. */
int page_cpu_add(struct page_cpu *cpu, u64 width, u32 who, u64 start, u64 end);
/* Run number *@next, or the first that is left, up to @until: its ticks, or 0: no more. */
u64 page_cpu_next(const struct page_cpu *cpu, u64 *next, u64 until, struct page_run *run);

/* ---- spans.c: spans kept singly ---- */

#define PAGE_KEPT_MOVED	  0x01
#define PAGE_KEPT_TIMED	  0x02 /* .gap is the host time of the exit */
#define PAGE_KEPT_IP	  0x04
#define PAGE_KEPT_QUAL	  0x08
#define PAGE_KEPT_EXITED  0x10 /* .reason is valid */
#define PAGE_KEPT_UNBOUND 0x20 /* .early, .late are not known */

struct page_kept {
	u64 key; /* spans with higher keys are preferred */
	u64 start, length, gap;
	u64 waited, unknown; /* parts of .gap: another vCPU had the CPU, not traced */
	u64 offset, size;
	u64 ip, cr3, qualification;
	u32 bound[4]; /* start's early and late, end's; VMPT_TIME_OPEN */
	u32 line, stream, moved_from;
	u32 overflows, failed_entries;
	u8 kind, sure, began, ended, back, reason, flags;
};

struct page_spans {
	struct page_kept *kept;
	size_t count, room, max;
	u64 least; /* the key of those that were dropped */
	u64 total, seed;
};

int page_spans_add(struct page_spans *spans, struct page_kept *kept, bool notable);
/* Keep the @count of the highest keys. */
void page_spans_trim(struct page_spans *spans, size_t count);
/* Sorts by stream and start. */
void page_spans_put(struct page_spans *spans, struct page_bytes *bytes);

/* ---- flames.c ---- */

/* "flames" of the document; times count from @begin. 0, or -1: no memory. */
int page_flames_json(const struct page_flames *flames, u64 begin, json_t *meta);
void page_flames_put(const struct page_flames *flames, struct page_bytes *bytes);

/* ---- write.c ---- */

struct page_parts {
	struct page_grid *cpus, *vcpus;
	size_t streams, lines;
	struct page_exits *exits;
	struct page_spans *spans;
	const struct page_options *options;
	const struct page_flames *flames; /* NULL: none */
};

/* The parts as one document, at most options->max_bytes of it. @meta: see page.h. */
int page_parts_write(const struct page_parts *parts, json_t *meta, FILE *out);

#endif
