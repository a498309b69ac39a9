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
