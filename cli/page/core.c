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

/* A vCPU: its last span, and the sums. */
struct page_line {
	bool waits; /* for its next one: all up to .next are valid */
	u8 reason;  /* of its exit, if it ended with one */
	u32 vm;
	u64 end;
	struct page_kept kept;
	struct vmpt_exit exit;
	u64 next; /* run of the CPU that it left */
	u64 ran, host, waited, halted, unknown;
	bool guessed; /* parts depend on reasons that are guesses, or unknown */
	u64 *on;      /* of .waited, by who had the CPU; NULL: never */
};

struct page {
	struct page_options options;
	struct page_grid cpus, vcpus;
	struct page_exits exits;
	struct page_spans spans;
	struct page_cpu *cpu; /* by stream */
	struct page_line *line;
	size_t lines, seen; /* capacity, and the number up to the last one seen */
	u64 untold;	    /* spans of vCPUs without a lane */
	bool begun;
	u64 begin, last; /* ticks from time 0: the page's times count from the first */
	const struct page_flames *flames;
};

struct page *page_new(const struct page_options *options)
{
	struct page *page = calloc(1, sizeof(*page));

	if (!page)
		return NULL;
	page->options = *options;
	page->cpu = calloc(options->streams + 1, sizeof(*page->cpu));
	if (!page->cpu) {
		free(page);
		return NULL;
	}
	if (!page->options.max_bytes)
		page->options.max_bytes = 5000000;
	page->cpus.max = options->max_buckets ? options->max_buckets : 16384;
	page->vcpus.max = page->cpus.max;
	page->spans.max = options->max_spans ? options->max_spans : 160000;
	return page;
}

void page_free(struct page *page)
{
	size_t i;

	if (!page)
		return;
	for (i = 0; i < page->options.streams; i++)
		free(page->cpu[i].run);
	free(page->cpu);
	for (i = 0; i < page->lines; i++)
		free(page->line[i].on);
	page_grid_free(&page->cpus);
	page_grid_free(&page->vcpus);
	page_exits_free(&page->exits);
	free(page->spans.kept);
	free(page->line);
	free(page);
}

static struct page_line *line_of(struct page *page, u32 line)
{
	if (vmpt_reserve_zeroed(&page->line, &page->lines, line + 1ULL))
		return NULL;
	if (line >= page->seen)
		page->seen = line + 1;
	return &page->line[line];
}

/* @run, on the CPU that @line had left, is a part of the time out that counts as @state so far. */
static int add_run(struct page *page, struct page_line *line, u16 state, const struct page_run *run)
{
	u32 vm = run->who < page->seen ? page->line[run->who].vm : PAGE_LINES;
	u16 to = (u16)(PAGE_WAITS + vm);

	if (run->who >= PAGE_WHO_STATE)
		to = (u16)(run->who - PAGE_WHO_STATE);
	else
		line->on[run->who] += run->ticks;
	return page_grid_move(&page->vcpus, line->kept.line, state, to, run);
}

/*
 * Who had the CPU while the vCPU was out, and when. How much in all is given; the last @rest is of
 * runs that are no longer known, or of time that no span covers.
 */
static int split_out(struct page *page, struct page_line *line, const struct timeline_span *next)
{
	const struct page_cpu *cpu = &page->cpu[line->kept.stream];
	const u16 state = (u16)(PAGE_STATES + line->reason);
	u64 wait = next->out[TIMELINE_WAIT].ticks, unknown = next->out[TIMELINE_UNTRACED].ticks;
	const u64 gap = line->kept.gap;
	struct page_run run;
	int ret = 0;

	if (!line->on && wait)
		line->on = calloc(PAGE_LINES + 1, sizeof(*line->on));
	if (!line->on && wait)
		return -1;
	line->kept.waited = wait = wait < gap ? wait : gap;
	line->kept.unknown = unknown = unknown < gap - wait ? unknown : gap - wait;
	while ((wait || unknown) && page_cpu_next(cpu, &line->next, next->start, &run)) {
		u64 *left = run.who < PAGE_WHO_STATE ? &wait : &unknown;

		if (run.ticks > *left)
			run.ticks = *left;
		*left -= run.ticks;
		if (run.ticks)
			ret |= add_run(page, line, state, &run);
	}
	run = (struct page_run){ line->end, next->start, wait, PAGE_WHO_OTHER };
	if (wait)
		ret |= add_run(page, line, state, &run);
	run = (struct page_run){ line->end, next->start, unknown, PAGE_WHO_STATE + PAGE_OFF };
	if (unknown)
		ret |= add_run(page, line, state, &run);
	return ret;
}

/* The time out before @next, by what happened meanwhile. */
static int add_out(struct page *page, struct page_line *line, const struct timeline_span *next)
{
	u64 out = line->kept.gap, host;

	if (split_out(page, line, next))
		return -1;
	line->guessed |= next->out[TIMELINE_WAIT].guessed || next->out[TIMELINE_HOST].guessed ||
			 next->out[TIMELINE_HALTED].guessed;
	host = out - line->kept.waited - line->kept.unknown;
	line->waited += line->kept.waited;
	line->unknown += line->kept.unknown;
	*(line->exit.halted ? &line->halted : &line->host) += host;
	return 0;
}

/* A vCPU's last span: @next is its next one, NULL at the end. */
static int settle(struct page *page, struct page_line *line, const struct timeline_span *next)
{
	struct page_kept *kept = &line->kept;
	bool exited = kept->flags & PAGE_KEPT_EXITED, timed = exited && next && next->has_left;
	u64 until = next && next->start > line->end ? next->start : line->end;
	int ret = 0;

	line->waits = false;
	kept->gap = until - line->end;
	if (timed)
		kept->flags |= PAGE_KEPT_TIMED;
	/* If its return was not seen, the time out of the guest is unknown. */
	if (next && (exited || kept->gap))
		ret |= page_grid_add(&page->vcpus, kept->line,
				     timed ? (u16)(PAGE_STATES + line->reason) : PAGE_UNKNOWN,
				     line->end, until);
	if (timed && !ret)
		ret |= add_out(page, line, next);
	if (exited)
		ret |= page_exit_add(&page->exits, kept->line, line->vm, &line->exit, line->reason,
				     timed, kept->gap - kept->waited - kept->unknown, kept->waited);
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

static int add_guest(struct page *page, const struct timeline_span *span, u32 number, u32 vm)
{
	struct page_line *line = line_of(page, number);
	struct page_cpu *cpu = &page->cpu[span->span->stream];
	const struct vmpt_exit *exit = &span->span->exit;

	if (!line || (line->waits && settle(page, line, span)) ||
	    page_cpu_add(cpu, page->vcpus.width, number, span->start, span->end))
		return -1;
	line->waits = true;
	line->vm = vm;
	line->end = span->end;
	line->kept = kept_of(span, number);
	line->exit = *exit;
	line->next = cpu->first + cpu->runs;
	line->ran += span->end - span->start;
	if (span->span->ended == VMPT_EDGE_EXIT) {
		line->reason = page_exit_reason(&page->exits, exit);
		line->kept.reason = line->reason;
		line->kept.flags |= PAGE_KEPT_EXITED | (exit->has_ip ? PAGE_KEPT_IP : 0) |
				    (exit->has_qualification ? PAGE_KEPT_QUAL : 0);
		line->kept.ip = exit->ip;
		line->kept.cr3 = exit->cr3;
		line->kept.qualification = exit->qualification;
	}
	return page_grid_add(&page->vcpus, number, PAGE_RUNS, span->start, span->end);
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
	if (of->kind != VMPT_SPAN_HOST &&
	    page_cpu_add(&page->cpu[of->stream], page->vcpus.width,
			 of->kind == VMPT_SPAN_GUEST
				 ? PAGE_WHO_OTHER
				 : PAGE_WHO_STATE + (u32)cpu_state(of->kind, line),
			 span.start, span.end))
		return -1;
	kept = kept_of(&span, line);
	return page_spans_add(&page->spans, &kept, of->kind != VMPT_SPAN_HOST || of->back);
}

#define WAITS_SHOWN 8

/* The sums of a vCPU, and for whom it waited longest, [vCPU, ticks] each; PAGE_LINES: others. */
static int line_json(struct page_line *line, json_t *o)
{
	json_t *on = json_array(),
	       *sums = json_pack("{s:I, s:I, s:I, s:I, s:I, s:b, s:o}", "run",
				 (json_int_t)line->ran, "wait", (json_int_t)line->waited, "host",
				 (json_int_t)line->host, "halt", (json_int_t)line->halted,
				 "unknown", (json_int_t)line->unknown, "guessed", line->guessed,
				 "on", on);
	int ret = sums ? json_object_update(o, sums) : -1;
	u32 k, i, best;

	for (k = 0; line->on && k < WAITS_SHOWN; k++) {
		for (i = best = 0; i <= PAGE_LINES; i++)
			if (line->on[i] > line->on[best])
				best = i;
		if (!line->on[best])
			break;
		ret |= json_array_append_new(
			on, json_pack("[i, I]", (int)best, (json_int_t)line->on[best]));
		line->on[best] = 0;
	}
	json_decref(sums);
	return ret;
}

void page_set_flames(struct page *page, const struct page_flames *flames)
{
	page->flames = flames;
}

int page_write(struct page *page, json_t *meta, FILE *out)
{
	struct page_parts parts = {
		&page->cpus,  &page->vcpus, page->options.streams, page->seen,
		&page->exits, &page->spans, &page->options,	   page->flames
	};
	json_t *lines = json_object_get(meta, "lines");
	size_t i;
	int ret = 0;

	for (i = 0; i < page->lines; i++)
		if (page->line[i].waits && settle(page, &page->line[i], NULL))
			return -1;
	for (i = 0; i < page->lines && i < json_array_size(lines); i++)
		ret |= line_json(&page->line[i], json_array_get(lines, i));
	ret |= json_object_set_new(meta, "untold", json_integer((json_int_t)page->untold));
	ret |= json_object_set_new(meta, "begin", json_integer((json_int_t)page->begin));
	ret |= json_object_set_new(meta, "duration", json_integer((json_int_t)page->last));
	if (page->flames)
		ret |= page_flames_json(page->flames, page->begin, meta);
	return ret ? -1 : page_parts_write(&parts, meta, out);
}
