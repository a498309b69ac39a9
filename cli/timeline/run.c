// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The walk of vmpt timeline and vmpt exits: clocks, then spans by time, each with its line, passed
 * to the outputs. Warns of what the trace lacks for it.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/sideinfo/sideinfo.h"
#include "cli/timeline/internal.h"

/* At most this many spans wait for the first known time. */
#define EARLY_MAX 4096

struct run {
	struct cli *cli;
	const struct timeline_wants *wants;
	const struct timeline_sink *sink;
	size_t sinks;

	struct timeline t;
	struct timeline_names names;
	struct timeline_missing missing;
	struct timeline_count count;
	struct cli_clocks clocks;
	struct vmpt_timeline *line;

	struct vmpt_span early[EARLY_MAX];
	size_t earlies;
	bool has_zero;
	const struct cli_filter *filter;
	struct cli_filter_walk **walk; /* by stream, with --cr3; NULL: without */
	bool past;
	bool any;	/* a span is in the window */
	bool outs;	/* a sink has .outs */
	bool looks_on;	/* --to is reached, and .awaited is known */
	size_t awaited; /* vCPUs that are out at --to and were not seen again */
	u64 end;	/* host TSC: the last one that was seen */
};

/* ---- what the trace is ---- */

static bool tells_times(const struct timeline *t)
{
	const struct vmpt_clock_counts *counts;
	size_t i;

	if (vmpt_clocks_base(t->clocks) != VMPT_BASE_NONE)
		return true;
	for (i = 0; i < t->cli->streams; i++) {
		counts = vmpt_clocks_counts(t->clocks, i);
		if (counts && (counts->tscs || counts->mtcs || counts->cycs))
			return true;
	}
	return false;
}

static void tell_overlaps(const struct run *r)
{
	size_t i;

	for (i = 0; i < r->t.vcpus; i++) {
		const struct timeline_vcpu *v = &r->t.vcpu[i];

		if (!v->overlaps)
			continue;
		cli_warn(
			r->cli, "%s: ran on two CPUs at once %llu times: %s", v->name,
			(unsigned long long)v->overlaps,
			r->t.vm[v->vm].named
				? "the name belongs to more than one vCPU; the trace is used as it is"
				: "the clocks of the CPUs disagree");
		return;
	}
}

/* The plugin's clock, where VMs share a CPU. */
static void tell_speed(const struct run *r)
{
	const struct cli_recording *rec = r->clocks.rec;
	const struct cli_clock_pair *a, *b;
	double speed;

	if (!rec || rec->pairs < 2 || !(r->t.hz > 0))
		return;
	a = rec->pair;
	b = a + rec->pairs - 1;
	if (b->mono_raw_ns - a->mono_raw_ns < 1000000000)
		return;
	speed = (double)(b->tsc - a->tsc) * 1e9 / (double)(b->mono_raw_ns - a->mono_raw_ns) /
		r->t.hz;
	if (speed > 0.99 && speed < 1.01)
		return;
	cli_warn(r->cli,
		 "the trace's clock ran %.*f times as fast as the host's: lengths are the trace's, "
		 "not those of the wall clock",
		 speed < 1.1 ? 2 : 1, speed);
}

static void tell_unseen(const struct run *r)
{
	char number[32], length[TIMELINE_TIME];
	u64 times = 0, sum = 0;
	size_t i;

	for (i = 0; i < r->t.vms; i++) {
		times += r->t.vm[i].totals.unseens;
		sum += r->t.vm[i].totals.unseen;
	}
	if (times)
		cli_warn(
			r->cli,
			"%s time%s a vCPU ran on a CPU that is not in the trace: %s between exit and entry are "
			"unknown, and not counted as out of the guest",
			cli_number(times, number), times == 1 ? "" : "s",
			timeline_short(&r->t, sum, length));
}

/* ---- spans ---- */

/* Whether the span is wanted; cut to the window. */
static bool in_window(struct run *r, struct vmpt_span *s)
{
	u64 from = r->filter->from_tsc;

	if (s->start.tsc == VMPT_TIME_NONE || s->end.tsc == VMPT_TIME_NONE)
		return !r->filter->from;
	if (s->start.tsc >= r->filter->to_tsc) {
		r->past = true;
		return false;
	}
	if (s->end.tsc < from || (s->end.tsc == from && s->start.tsc < from))
		return false;
	if (s->start.tsc < from) {
		s->start = (struct vmpt_time){ .tsc = from };
		s->began = VMPT_EDGE_CUT;
	}
	if (s->end.tsc > r->filter->to_tsc) {
		s->end = (struct vmpt_time){ .tsc = r->filter->to_tsc };
		s->ended = VMPT_EDGE_CUT;
	}
	return true;
}

static bool is_wanted(struct run *r, const struct timeline_span *s)
{
	const struct timeline *t = &r->t;
	struct vmpt_owner owner = s->span->owner;
	const struct timeline_vcpu *v;
	const struct timeline_vm *vm;

	if (!cli_filter_owners(r->cli))
		return true;
	if (s->span->kind == VMPT_SPAN_LOST || s->span->kind == VMPT_SPAN_OFF)
		return false;
	if (s->vcpu == TIMELINE_NONE) {
		owner.kind = s->span->kind == VMPT_SPAN_HOST ? VMPT_OWNER_HOST : VMPT_OWNER_UNKNOWN;
		return cli_filter_who(r->cli, &owner, NULL, -1);
	}
	v = &t->vcpu[s->vcpu];
	vm = &t->vm[v->vm];
	return cli_filter_who(r->cli, &owner, vm->named ? vm->given : NULL,
			      v->number == TIMELINE_NONE ? -1 : (s64)v->number);
}

static bool takes(const struct timeline_sink *sink, const struct timeline_span *s, bool wanted)
{
	if (!sink->span || (s->where != TIMELINE_INSIDE && !sink->outs))
		return false;
	return wanted || sink->all;
}

static int pass(struct run *r, const struct timeline_span *s, bool wanted)
{
	struct timeline_span inside = *s;
	int code = CLI_OK;
	size_t i;

	if (s->left_cut)
		inside.has_left = inside.left_timed = inside.unseen = false;
	if (s->where != TIMELINE_BEFORE)
		cli_filter(r->cli)->seen |= wanted;
	for (i = 0; i < r->sinks && !code; i++)
		if (takes(&r->sink[i], s, wanted))
			code = r->sink[i].span(r->sink[i].opaque, &r->t,
					       r->sink[i].outs ? s : &inside);
	return code;
}

/* With --cr3: the parts of a span while CR3 was one of those. */
static int pass_parts(struct run *r, const struct timeline_span *s)
{
	struct cli_filter_walk *walk = r->walk[s->span->stream];
	u64 at = s->span->offset, end = at + s->span->size;
	const struct cli_filter_part *p;
	int code = CLI_OK, err;

	while (!code && at < end && (p = cli_filter_part(walk, at, &err)) != NULL &&
	       p->slice.offset < end) {
		struct vmpt_span span = *s->span;
		struct timeline_span part = *s;

		if (p->slice.offset > span.offset) {
			span.offset = p->slice.offset;
			span.began = VMPT_EDGE_CUT;
			if (p->start != VMPT_TIME_NONE && p->start > span.start.tsc) {
				span.start = (struct vmpt_time){ .tsc = p->start };
				part.start = p->start - r->t.zero;
			}
		}
		at = p->slice.offset + p->slice.size;
		if (at < end) {
			span.ended = VMPT_EDGE_CUT;
			span.exit = (struct vmpt_exit){ 0 };
			if (p->end != VMPT_TIME_NONE && p->end < span.end.tsc) {
				span.end = (struct vmpt_time){ .tsc = p->end };
				part.end = p->end - r->t.zero;
			}
		}
		span.size = (at < end ? at : end) - span.offset;
		if (part.end < part.start)
			part.end = part.start;
		part.span = &span;
		code = pass(r, &part, true);
	}
	return code;
}

/* Its vCPU is in the window. */
static bool note_inside(struct run *r, const struct timeline_span *s)
{
	bool wanted = is_wanted(r, s);
	struct timeline_vcpu *v;
	struct timeline_vm *vm;

	if (s->vcpu == TIMELINE_NONE)
		return wanted;
	v = &r->t.vcpu[s->vcpu];
	vm = &r->t.vm[v->vm];
	vm->inside += !v->inside;
	vm->wanted += wanted && !v->wanted;
	v->inside = true;
	v->wanted |= wanted;
	return wanted;
}

/* A span outside of the window. */
static int pass_by(struct run *r, const struct vmpt_span *span)
{
	struct timeline_span s;
	int code;

	if (!r->outs || r->past)
		return CLI_OK;
	code = timeline_count_before(&r->count, &r->t, span, &s);
	return code ? code : pass(r, &s, is_wanted(r, &s));
}

static int give(struct run *r, struct vmpt_span *span)
{
	struct timeline_span s;
	bool wanted;
	int code;

	/* Losses are reported even outside the window: the exit code is for the whole trace. */
	if (span->kind == VMPT_SPAN_LOST)
		cli_lose_all(r->cli, CLI_LOST, r->cli->stream[span->stream],
			     &(struct vmpt_losses){ .count = span->losses,
						    .bytes = span->size,
						    .offset = span->offset,
						    .size = span->loss_size,
						    .err = span->loss });
	if (span->unproven)
		cli_lose(r->cli, CLI_UNPROVEN, r->cli->stream[span->stream], span->offset,
			 span->unproven, 0);
	if (span->end.tsc != VMPT_TIME_NONE && span->end.tsc > r->end)
		r->end = span->end.tsc;
	if (!in_window(r, span))
		return pass_by(r, span);
	r->any = true;
	code = timeline_count_span(&r->count, &r->t, span, &s);
	if (code)
		return code;
	wanted = note_inside(r, &s);
	return r->walk && wanted ? pass_parts(r, &s) : pass(r, &s, wanted);
}

/* Time 0 is known: start the sinks and pass on the waiting spans. */
static int begin(struct run *r)
{
	size_t i;
	int code;

	r->has_zero = true;
	if (r->t.times.zero < r->t.zero)
		r->t.zero = r->t.times.zero;
	r->t.times.zero = r->t.zero;
	code = cli_filter_open(r->cli, &r->clocks, &r->t.times);
	if (r->filter->from && r->filter->from_tsc > r->t.zero)
		r->count.from = r->filter->from_tsc - r->t.zero;
	for (i = 0; r->walk && i < r->cli->streams && !code; i++) {
		code = cli_filter_walk_open(r->cli, i, false, &r->walk[i]);
		if (code)
			cli_error(r->cli, "%s: %s", r->cli->file[0], vmpt_strerror(code));
		code = code ? CLI_FAILED : CLI_OK;
	}
	for (i = 0; i < r->sinks && !code; i++)
		if (r->sink[i].begin)
			code = r->sink[i].begin(r->sink[i].opaque, &r->t);
	for (i = 0; i < r->earlies && !code; i++)
		code = give(r, &r->early[i]);
	return code;
}

static void note_time(struct run *r, const struct vmpt_time *time)
{
	if (time->tsc != VMPT_TIME_NONE && time->tsc < r->t.zero)
		r->t.zero = time->tsc;
}

/* Spans whose start is not known come first: they wait until one is. */
static int take_span(struct run *r, struct vmpt_span *span)
{
	int code;

	if (r->has_zero)
		return give(r, span);
	note_time(r, &span->start);
	note_time(r, &span->end);
	if (span->start.tsc == VMPT_TIME_NONE && r->earlies < EARLY_MAX) {
		r->early[r->earlies++] = *span;
		return CLI_OK;
	}
	if (r->t.zero == VMPT_TIME_NONE)
		r->t.zero = 0;
	code = begin(r);
	return code ? code : give(r, span);
}

static int finish(struct run *r)
{
	char buf[CLI_WHEN];
	size_t i;
	int code = CLI_OK;

	if (!r->has_zero) {
		if (r->t.zero == VMPT_TIME_NONE)
			r->t.zero = 0;
		code = begin(r);
	}
	if (code)
		return code;
	/* Before the sinks end: some of them write the warnings. */
	tell_overlaps(r);
	tell_unseen(r);
	if (r->filter->from && !r->any && !r->past)
		cli_warn(r->cli, "--from: the trace ends before that, at %s%s",
			 cli_when_whole(&r->t.times, r->end > r->t.zero ? r->end : r->t.zero, buf),
			 r->t.times.clock != CLI_WHEN_START ? ""
			 : r->t.hz > 0			    ? " s"
							    : " ticks");
	else
		cli_filter_warn(r->cli);
	/* In a part of the trace without a span none can have run. */
	if (r->any || (!r->filter->from && !r->filter->to))
		timeline_names_tell(r->cli, &r->names, r->filter->from || r->filter->to);
	if (r->wants->tell)
		r->wants->tell(r->wants->tell_opaque, &r->t);
	for (i = 0; i < r->sinks && !code; i++)
		if (r->sink[i].end)
			code = r->sink[i].end(r->sink[i].opaque, &r->t);
	return code;
}

/*
 * --to is reached: those out of the guest then were out up to it, if they come back at all. One
 * that is shut down does not, and waits for nothing.
 */
static int look_on(struct run *r, const struct vmpt_span *span)
{
	bool back;
	int code;

	if (!r->looks_on) {
		r->looks_on = true;
		r->awaited = timeline_count_await(&r->t, r->filter->to_tsc - r->t.zero);
	}
	code = timeline_count_after(&r->count, &r->t, span, &back);
	r->awaited -= back;
	return code;
}

/* The times out up to --to. */
static int end_outs(struct run *r)
{
	struct vmpt_span span;
	struct timeline_span s;
	int code = CLI_OK;
	u32 i;

	for (i = 0; i < r->t.vcpus && !code; i++) {
		if (!r->t.vcpu[i].back)
			continue;
		timeline_count_out(&r->count, &r->t, i, r->filter->to_tsc, &span, &s);
		code = pass(r, &s, note_inside(r, &s));
	}
	return code;
}

static bool is_over(const struct run *r)
{
	return r->past && (!r->outs || (r->looks_on && !r->awaited));
}

static int walk(struct run *r)
{
	struct vmpt_span span;
	int ret, code = CLI_OK;

	while (!code && !is_over(r) && !cli_output_failed(r->cli)) {
		ret = vmpt_timeline_next(r->line, &span);
		if (ret < 0) {
			cli_error(r->cli, "%s: %s", r->cli->file[0], vmpt_strerror(ret));
			return CLI_FAILED;
		}
		if (!ret)
			break;
		if (!r->past)
			code = take_span(r, &span);
		if (r->past && r->outs && !code)
			code = look_on(r, &span);
	}
	if (!code && r->outs && r->past)
		code = end_outs(r);
	return code ? code : finish(r);
}

/* Clocks, and names by the trace's events and the record of vmpt record. */
static int open_clocks(struct run *r)
{
	int code = cli_clocks_open(r->cli, &r->clocks);

	if (!code)
		code = timeline_names_make(r->cli, &r->names, &r->clocks, r->clocks.names);
	return code;
}

static int open_all(struct run *r)
{
	struct cli *cli = r->cli;
	struct vmpt_timeline_options line = {
		.decode = cli->options,
		.guess = r->wants->guess,
		.guess_opaque = r->wants->guess_opaque,
	};
	int ret = open_clocks(r);

	if (ret)
		return ret;
	r->t.clocks = r->clocks.clocks;
	if (r->wants->guess_clocks)
		r->wants->guess_clocks(r->wants->guess_opaque, &r->clocks);
	r->t.timed = tells_times(&r->t);
	if (!r->t.timed && (r->filter->from || r->filter->to))
		return cli_usage(cli, "--from and --to: %s has no times", cli->file[0]);
	ret = cli_when_open(cli, &r->clocks, r->wants->clock, &r->t.times);
	if (ret)
		return ret;
	r->t.hz = r->t.times.hz;
	tell_speed(r);
	cli_clock_doubts(cli, r->t.clocks);
	ret = vmpt_trace_events(cli->trace, &line.events, &line.event_count);
	if (!ret &&
	    timeline_missing_open(cli, &r->missing, &r->clocks, line.events, line.event_count))
		return CLI_FAILED;
	if (!ret)
		ret = vmpt_timeline_open(&r->line, r->t.clocks, cli->stream, cli->streams, &line);
	if (!ret)
		return CLI_OK;
	cli_error(cli, "%s: %s", cli->file[0], vmpt_strerror(ret));
	return CLI_FAILED;
}

int timeline_run(struct cli *cli, const struct timeline_wants *wants,
		 const struct timeline_sink *sinks, size_t count)
{
	struct run *r;
	size_t i;
	int code;

	if (cli_is_rtit(cli)) {
		cli_error(cli, "%s: is an RTIT trace, which has no VM entries and exits",
			  cli->file[0]);
		fprintf(stderr, "  vmpt vms shows who ran, by --side-record\n");
		return CLI_FAILED;
	}
	r = calloc(1, sizeof(*r));
	if (!r)
		return cli_no_memory(cli);
	r->cli = r->t.cli = cli;
	r->wants = wants;
	r->sink = sinks;
	r->sinks = count;
	for (i = 0; i < count; i++)
		r->outs |= sinks[i].outs;
	r->t.zero = VMPT_TIME_NONE;
	r->t.names = &r->names;
	r->t.missing = &r->missing;
	r->filter = cli_filter(cli);
	if (r->filter->cr3s) {
		r->walk = calloc(cli->streams, sizeof(*r->walk));
		if (!r->walk) {
			free(r);
			return cli_no_memory(cli);
		}
	}
	cli_progress_start(cli, 1);
	code = timeline_count_open(&r->count, &r->t);
	if (!code)
		code = open_all(r);
	if (!code)
		code = walk(r);
	cli_progress_end(cli);
	vmpt_timeline_close(r->line);
	for (i = 0; r->walk && i < cli->streams; i++)
		cli_filter_walk_close(r->walk[i]);
	free(r->walk);
	cli_when_close(&r->t.times);
	cli_clocks_close(&r->clocks);
	timeline_count_close(&r->count, &r->t);
	timeline_names_close(&r->names);
	timeline_missing_close(&r->missing);
	free(r);
	return code;
}
