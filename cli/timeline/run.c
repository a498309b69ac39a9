// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The walk of vmpt timeline and vmpt exits: clocks, then spans by time, each with its line, passed
 * to the outputs. Warns of what the trace lacks for it.
 */
#include <errno.h>
#include <math.h>
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
	u64 from, to; /* host TSC */
	bool has_vmcs;
	u64 vmcs; /* of --owner, if it is a number */
	bool vm_seen, past;
	bool any; /* a span is in the window */
	u64 end;  /* host TSC: the last one that was seen */
};

/* ---- options ---- */

/* Seconds of --from and --to; ticks where the frequency is not known. */
static int parse_time(struct run *r, const char *what, const char *arg, u64 *tsc)
{
	double hz = r->t.hz > 0 ? r->t.hz : 1, value, ticks;
	char *end;

	errno = 0;
	value = strtod(arg, &end);
	ticks = value * hz;
	if (errno || end == arg || *end || !isfinite(value) || value < 0)
		return cli_usage(r->cli, "%s: '%s' is not a time, like 0.25", what, arg);
	if (ticks > 1e18)
		return cli_usage(r->cli, "%s: %s is too far away", what, arg);
	*tsc = r->t.zero + (u64)ticks;
	return CLI_OK;
}

static int parse_window(struct run *r)
{
	int code = CLI_OK;

	r->to = VMPT_TIME_NONE;
	if (r->wants->from)
		code = parse_time(r, "--from", r->wants->from, &r->from);
	if (!code && r->wants->to)
		code = parse_time(r, "--to", r->wants->to, &r->to);
	if (!code && r->wants->from && r->wants->to && r->to <= r->from)
		code = cli_usage(r->cli, "--to must be after --from");
	return code;
}

static void parse_vm(struct run *r)
{
	const char *vm = r->wants->vm;
	char *end;

	if (!vm)
		return;
	errno = 0;
	r->vmcs = strtoull(vm, &end, 16);
	r->has_vmcs = !errno && end != vm && !*end && vm[0] != '-' && vm[0] != '+';
}

/* ---- what the trace is ---- */

static void set_frequency(struct run *r)
{
	r->t.hz = r->wants->tsc_khz ? (double)r->wants->tsc_khz * 1000
				    : cli_clocks_hertz(r->cli, r->clocks.rec);
}

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
	if (s->start.tsc == VMPT_TIME_NONE || s->end.tsc == VMPT_TIME_NONE)
		return !r->wants->from;
	if (s->start.tsc >= r->to) {
		r->past = true;
		return false;
	}
	if (s->end.tsc < r->from || (s->end.tsc == r->from && s->start.tsc < r->from))
		return false;
	if (s->start.tsc < r->from) {
		s->start = (struct vmpt_time){ .tsc = r->from };
		s->began = VMPT_EDGE_CUT;
	}
	if (s->end.tsc > r->to) {
		s->end = (struct vmpt_time){ .tsc = r->to };
		s->ended = VMPT_EDGE_CUT;
	}
	return true;
}

static bool is_wanted_vm(const struct run *r, const struct timeline_span *s)
{
	const struct timeline *t = &r->t;
	const struct timeline_vcpu *v;

	if (!r->wants->vm)
		return true;
	/* The words of vmpt dump's --owner. */
	if (s->vcpu == TIMELINE_NONE)
		return s->span->kind != VMPT_SPAN_LOST && s->span->kind != VMPT_SPAN_OFF &&
		       !strcmp(r->wants->vm, timeline_kind(s->span));
	v = &t->vcpu[s->vcpu];
	return !strcmp(r->wants->vm, "vm") || !strcmp(t->vm[v->vm].name, r->wants->vm) ||
	       !strcmp(t->vm[v->vm].given, r->wants->vm) || !strcmp(v->name, r->wants->vm) ||
	       (r->has_vmcs && s->span->owner.kind == VMPT_OWNER_VM &&
		s->span->owner.vmcs == r->vmcs);
}

static int give(struct run *r, struct vmpt_span *span)
{
	struct timeline_span s;
	bool wanted;
	size_t i;
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
		return CLI_OK;
	r->any = true;
	code = timeline_count_span(&r->count, &r->t, span, &s);
	if (code)
		return code;
	wanted = is_wanted_vm(r, &s);
	r->vm_seen |= wanted;
	if (wanted && s.vcpu != TIMELINE_NONE && !r->t.vcpu[s.vcpu].wanted) {
		r->t.vcpu[s.vcpu].wanted = true;
		r->t.vm[r->t.vcpu[s.vcpu].vm].wanted++;
	}
	for (i = 0; i < r->sinks && !code; i++)
		if (r->sink[i].span && (wanted || r->sink[i].all))
			code = r->sink[i].span(r->sink[i].opaque, &r->t, &s);
	return code;
}

/* Time 0 is known: start the sinks and pass on the waiting spans. */
static int begin(struct run *r)
{
	size_t i;
	int code;

	r->has_zero = true;
	code = parse_window(r);
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
	char buf[TIMELINE_TIME];
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
	if (r->wants->from && !r->any)
		cli_warn(r->cli, "--from: the trace ends before that, at %s%s",
			 timeline_at(&r->t, r->end > r->t.zero ? r->end - r->t.zero : 0, buf),
			 r->t.hz > 0 ? " s" : " ticks");
	timeline_names_tell(r->cli, &r->names, r->wants->from || r->wants->to);
	if (r->wants->tell)
		r->wants->tell(r->wants->tell_opaque, &r->t);
	if (r->wants->vm && !r->vm_seen)
		cli_warn(r->cli, "--owner: no '%s' in the trace%s", r->wants->vm,
			 r->wants->from || r->wants->to ? " at that time" : "");
	for (i = 0; i < r->sinks && !code; i++)
		if (r->sink[i].end)
			code = r->sink[i].end(r->sink[i].opaque, &r->t);
	return code;
}

static int walk(struct run *r)
{
	struct vmpt_span span;
	int ret, code = CLI_OK;

	while (!code && !r->past && !cli_output_failed(r->cli)) {
		ret = vmpt_timeline_next(r->line, &span);
		if (ret < 0) {
			cli_error(r->cli, "%s: %s", r->cli->file[0], vmpt_strerror(ret));
			return CLI_FAILED;
		}
		if (!ret)
			break;
		code = take_span(r, &span);
	}
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
	if (!r->t.timed && (r->wants->from || r->wants->to))
		return cli_usage(cli, "--from and --to: %s has no times", cli->file[0]);
	set_frequency(r);
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
	r->t.zero = VMPT_TIME_NONE;
	r->t.names = &r->names;
	r->t.missing = &r->missing;
	parse_vm(r);
	cli_progress_start(cli, 1);
	code = timeline_count_open(&r->count, &r->t);
	if (!code)
		code = open_all(r);
	if (!code)
		code = walk(r);
	cli_progress_end(cli);
	vmpt_timeline_close(r->line);
	cli_clocks_close(&r->clocks);
	timeline_count_close(&r->count, &r->t);
	timeline_names_close(&r->names);
	timeline_missing_close(&r->missing);
	free(r);
	return code;
}
