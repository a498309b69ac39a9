/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The HTML page of vmpt timeline: spans in, one file out (docs/page.md). This is the page without
 * the command.
 */
#ifndef VMPT_CLI_PAGE_H
#define VMPT_CLI_PAGE_H

#include <jansson.h>
#include <stdio.h>

#include "cli/page/span.h"

/* vCPUs, or VMs, beyond this number have no lane: their spans show on the CPUs, as "other". */
#define PAGE_LINES 2048

/* 0: the default. */
struct page_options {
	size_t max_bytes; /* of the file: 5,000,000 */
	u32 max_spans;	  /* kept singly: at least 160,000 if there are, at most twice as many */
	u32 max_buckets;  /* of a lane, at first: 16384; a power of 2 */
	size_t streams;	  /* of the trace; all spans' .stream is below */
	/* As timeline_reason(); NULL: reasons are numbers. */
	const char *(*reason_name)(const struct vmpt_exit *exit, char buf[32]);
	/* "name+0x10" of a guest's IP into @buf; false: there is none. May be NULL. */
	bool (*symbol)(void *opaque, u32 vm, u64 ip, char *buf, size_t size);
	void *opaque;
};

struct page;

/* NULL: no memory. page_free() it. */
struct page *page_new(const struct page_options *options);
void page_free(struct page *page);

/*
 * The next span, by start. @vm: index of the VM of its vCPU, if it has one. 0, or -1: no memory.
 * Memory does not grow with the number of spans.
 */
int page_add(struct page *page, const struct timeline_span *span, u32 vm);

/* ---- flame charts and graphs (flames.c) ---- */

#define PAGE_WINDOWS 20
#define PAGE_FRAMES  4000 /* of a window */
#define PAGE_GRAPHS  24
#define PAGE_NODES   2000 /* of a graph */

/* Whose code a frame is. */
enum page_frame_kind { PAGE_FRAME_GUEST, PAGE_FRAME_HOST, PAGE_FRAME_ROOT };

struct page_frame {
	u64 start, end; /* ticks, within its window */
	u32 name;	/* below .names */
	u16 depth;	/* 0: a process */
	u8 kind;	/* enum page_frame_kind */
};

/* What a CPU executed from .start to .end, shown below the lane of a vCPU. */
struct page_window {
	u32 line, stream;
	u64 start, end;		  /* ticks, as those of spans */
	struct page_frame *frame; /* by start, then depth */
	size_t frames;
	u64 left_out; /* too short to be seen, or too many */
};

/* Of a VM or the host. Node 0 is all of it, its children are processes. */
struct page_graph {
	char *name;
	struct page_graph_node {
		u32 parent; /* below its own number */
		u32 name;
		u64 total; /* with what it called: ticks, or instructions */
	} * node;
	size_t nodes;
};

struct page_flames {
	char **name;
	size_t names;
	struct page_window window[PAGE_WINDOWS];
	size_t windows;
	struct page_graph graph[PAGE_GRAPHS];
	size_t graphs;
	bool timed; /* .total are ticks */
};

/* For page_write(); @flames must stay until then. */
void page_set_flames(struct page *page, const struct page_flames *flames);

/* @text as JSON, escaped as in cli/base/safe-text.h, for a browser to show unchanged. */
json_t *page_string(const char *text);

/*
 * Write the page. @meta: the facts on the trace, an object owned by the caller to which the page's
 * own facts are added:
 *	"title", "more", "command"	strings: file, " and 2 more", the command for less time
 *	"zero"				host TSC of time 0, "0x..."
 *	"unit"				of the times if hz is 0: "ticks" or "bytes"
 *	"hz"				ticks per second, 0: not known
 *	"base"				a sentence on the clock
 *	"notes"				array of {"level": "warning" or "note", "text"}
 *	"streams"			array of {"name"}, as many as in the options
 *	"vms"				array of {"name"}
 *	"lines"				array of {"name", "vm", "vmcs"}: the vCPUs
 *	"clock"				whose time is shown, if not the trace's, from 0: {"name":
 *					"perf" or "wall", "zero": its ns at time 0, as a string,
 *					"utc": seconds east of it}
 *	"totals"			object: "exits", "losses", ...: numbers to show
 * 0, or -1: no memory. Failed writes show in ferror().
 */
int page_write(struct page *page, json_t *meta, FILE *out);

#endif
