// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Distributes the spans of the page: each adds to the shares of its CPU and its vCPU, to the exits
 * by reason, and may be kept individually. A vCPU is out of its guest from an exit to its next
 * entry, so the last span of each vCPU waits here until then.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/page/parts.h"
#include "cli/page/page.h"
#include "util/array.h"

/* The largest time: four centuries at 300 MHz. */
#define MAX_TIME (1ULL << 62)

/* A vCPU's last span. */
struct waiting_span {
	bool is;
	u8 reason; /* of its exit, if it ended with one */
	u32 vm;
	u64 end;
	struct page_kept kept;
	struct vmpt_exit exit;
};

struct page {
	struct page_options options;
	struct page_grid cpus, vcpus;
	struct page_exits exits;
	struct page_spans spans;
	struct waiting_span *line;
	size_t lines, seen; /* capacity, and the number up to the last one seen */
	u64 untold;	    /* spans of vCPUs without a lane */
	bool begun;
	u64 begin, last; /* ticks from time 0: the page's times count from the first */
};

struct page *page_new(const struct page_options *options)
{
	struct page *page = calloc(1, sizeof(*page));

	if (!page)
		return NULL;
	page->options = *options;
	if (!page->options.max_bytes)
		page->options.max_bytes = 5000000;
	page->cpus.max = options->max_buckets ? options->max_buckets : 16384;
	page->vcpus.max = page->cpus.max;
	page->spans.max = options->max_spans ? options->max_spans : 160000;
	return page;
}

void page_free(struct page *page)
{
	if (!page)
		return;
	page_grid_free(&page->cpus);
	page_grid_free(&page->vcpus);
	page_exits_free(&page->exits);
	free(page->spans.kept);
	free(page->line);
	free(page);
}

static struct waiting_span *waiting_of(struct page *page, u32 line)
{
	if (vmpt_reserve_zeroed(&page->line, &page->lines, line + 1ULL))
		return NULL;
	if (line >= page->seen)
		page->seen = line + 1;
	return &page->line[line];
}

/* The waiting span of a vCPU: @next is its next one, NULL at the end. */
static int settle(struct page *page, struct waiting_span *waiting, const struct timeline_span *next)
{
	struct page_kept *kept = &waiting->kept;
	bool exited = kept->flags & PAGE_KEPT_EXITED, timed = exited && next && next->has_left;
	u64 until = next && next->start > waiting->end ? next->start : waiting->end;
	int ret = 0;

	waiting->is = false;
	kept->gap = next ? until - waiting->end : 0;
	if (timed)
		kept->flags |= PAGE_KEPT_TIMED;
	if (exited)
		ret |= page_exit_add(&page->exits, kept->line, waiting->vm, &waiting->exit,
				     waiting->reason, timed, kept->gap);
	/* If its return was not seen, the time out of the guest is unknown. */
	if (next && (exited || kept->gap))
		ret |= page_grid_add(&page->vcpus, kept->line,
				     timed ? (u16)(PAGE_STATES + waiting->reason) : PAGE_UNKNOWN,
				     waiting->end, until);
	ret |= page_spans_add(&page->spans, kept,
			      kept->flags & PAGE_KEPT_MOVED || kept->back || kept->failed_entries ||
				      kept->overflows);
	return ret ? -1 : 0;
}

static struct page_kept kept_of(const struct timeline_span *span, u32 line)
{
	const struct vmpt_span *of = span->span;
	struct page_kept kept = {
		.start = span->start,
		.length = span->end - span->start,
		.offset = of->offset,
		.size = of->size,
		.bound = { of->start.early, of->start.late, of->end.early, of->end.late },
		.line = line,
		.stream = of->stream,
		.moved_from = span->moved_from,
		.overflows = of->overflows,
		.failed_entries = of->failed_entries,
		.kind = of->kind,
		.sure = of->owner.sure,
		.began = of->began,
		.ended = of->ended,
		.back = of->back,
		.flags = span->moved_from != TIMELINE_NONE ? PAGE_KEPT_MOVED : 0,
	};

	return kept;
}

static int add_guest(struct page *page, const struct timeline_span *span, u32 line, u32 vm)
{
	struct waiting_span *waiting = waiting_of(page, line);
	const struct vmpt_exit *exit = &span->span->exit;

	if (!waiting || (waiting->is && settle(page, waiting, span)))
		return -1;
	*waiting = (struct waiting_span){
		.is = true, .vm = vm, .end = span->end, .kept = kept_of(span, line), .exit = *exit
	};
	if (span->span->ended == VMPT_EDGE_EXIT) {
		waiting->reason = page_exit_reason(&page->exits, exit);
		waiting->kept.reason = waiting->reason;
		waiting->kept.flags |= PAGE_KEPT_EXITED | (exit->has_ip ? PAGE_KEPT_IP : 0) |
				       (exit->has_qualification ? PAGE_KEPT_QUAL : 0);
		waiting->kept.ip = exit->ip;
		waiting->kept.cr3 = exit->cr3;
		waiting->kept.qualification = exit->qualification;
	}
	return page_grid_add(&page->vcpus, line, PAGE_RUNS, span->start, span->end);
}

static u16 cpu_state(u8 kind, u32 line)
{
	switch (kind) {
	case VMPT_SPAN_HOST:
		return PAGE_RUNS;
	case VMPT_SPAN_GUEST:
		return line == TIMELINE_NONE ? PAGE_OTHER : (u16)(PAGE_STATES + line);
	case VMPT_SPAN_LOST:
		return PAGE_LOST;
	case VMPT_SPAN_OFF:
		return PAGE_OFF;
	default:
		return PAGE_UNKNOWN;
	}
}

int page_add(struct page *page, const struct timeline_span *given, u32 vm)
{
	struct timeline_span span = *given;
	const struct vmpt_span *of = span.span;
	u32 line = of->kind == VMPT_SPAN_GUEST ? span.vcpu : TIMELINE_NONE;
	struct page_kept kept;

	if (of->stream >= page->options.streams)
		return 0;
	if (!page->begun)
		page->begin = span.start;
	page->begun = true;
	span.start -= span.start < page->begin ? span.start : page->begin;
	span.end -= span.end < page->begin ? span.end : page->begin;
	if (span.end > MAX_TIME)
		span.end = MAX_TIME;
	if (span.start > span.end)
		span.start = span.end;
	if (span.end > page->last)
		page->last = span.end;
	if (line != TIMELINE_NONE && line >= PAGE_LINES) {
		page->untold++;
		line = TIMELINE_NONE;
	}
	if (page_grid_add(&page->cpus, of->stream, cpu_state(of->kind, line), span.start, span.end))
		return -1;
	if (line != TIMELINE_NONE)
		return add_guest(page, &span, line, vm < PAGE_LINES ? vm : PAGE_LINES);
	kept = kept_of(&span, line);
	return page_spans_add(&page->spans, &kept, of->kind != VMPT_SPAN_HOST || of->back);
}

int page_write(struct page *page, json_t *meta, FILE *out)
{
	struct page_parts parts = { &page->cpus,  &page->vcpus, page->options.streams, page->seen,
				    &page->exits, &page->spans, &page->options };
	size_t i;
	int ret = 0;

	for (i = 0; i < page->lines; i++)
		if (page->line[i].is && settle(page, &page->line[i], NULL))
			return -1;
	ret |= json_object_set_new(meta, "untold", json_integer((json_int_t)page->untold));
	ret |= json_object_set_new(meta, "begin", json_integer((json_int_t)page->begin));
	ret |= json_object_set_new(meta, "duration", json_integer((json_int_t)page->last));
	return ret ? -1 : page_parts_write(&parts, meta, out);
}
