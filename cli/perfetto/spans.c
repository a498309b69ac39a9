// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt perfetto: the spans of vmpt timeline as slices. A CPU's track has who ran, if not the host;
 * a vCPU's has the time out of the guest, with the exit's reason.
 */
#include <stdlib.h>

#include "cli/perfetto/command.h"
#include "util/array.h"

/* "exits/s: EPT violation" of a VM. */
static void count_exit(struct perfetto *d, const struct timeline *t, u32 vm,
		       const struct vmpt_exit *exit, u64 time)
{
	const u32 hz = t->hz > 0;
	char name[96], why[TIMELINE_WHOLE + 16];
	size_t i;

	for (i = 0; i < d->reasons; i++)
		if (d->reason[i].vm == vm && d->reason[i].reason == exit->reason)
			break;
	if (i == d->reasons) {
		if (i == PERFETTO_RATES)
			return;
		timeline_why(exit, why, sizeof(why), TIMELINE_WHOLE);
		snprintf(name, sizeof(name), "exits%s: %s", hz ? "/s" : " a tick",
			 exit->reason == VMPT_REASON_UNKNOWN ? "unknown" : why);
		d->reason[i].vm = vm;
		d->reason[i].reason = exit->reason;
		d->reason[i].rate =
			perfetto_rate(&d->rates, &d->log, d->vm[vm], name, hz ? t->hz : 1);
		d->reasons++;
	}
	perfetto_rate_add(&d->rates, d->reason[i].rate, time, 1);
}

/* Tracks of new VMs and vCPUs. 0, or -1: no memory. */
static int add_tracks(struct perfetto *d, const struct timeline *t)
{
	u32 vm;

	if (d->vms == t->vms && d->vcpus == t->vcpus)
		return 0;
	if (vmpt_reserve(&d->vm, &d->vm_room, t->vms) ||
	    vmpt_reserve(&d->vcpu, &d->vcpu_room, t->vcpus))
		return -1;
	for (; d->vms < t->vms; d->vms++) {
		d->vm[d->vms] = perfetto_process(&d->log, t->vm[d->vms].name);
		if (d->vm[d->vms] == PERFETTO_NONE)
			return -1;
	}
	for (; d->vcpus < t->vcpus; d->vcpus++) {
		vm = t->vcpu[d->vcpus].vm;
		d->vcpu[d->vcpus] =
			perfetto_track(&d->log, PERFETTO_THREAD, d->vm[vm], t->vcpu[d->vcpus].name);
		if (d->vcpu[d->vcpus] == PERFETTO_NONE)
			return -1;
	}
	return 0;
}

/* For the calls; as many as there may be slices. */
static void note_edge(struct perfetto *d, u32 stream, u64 offset, u64 time, u32 flow)
{
	const struct calls_edge edge = { offset, time, flow };

	if (d->follows && d->edges < 2 * d->slices && !calls_spread_edge(&d->spread, stream, &edge))
		d->edges++;
}

static int begin_exit(struct perfetto *d, const struct timeline *t, const struct timeline_span *s)
{
	const struct vmpt_exit *exit = &s->span->exit;
	const u32 flow = d->log.flows < d->slices ? ++d->log.flows : 0;
	struct perfetto_slice *slice;
	char why[TIMELINE_WHOLE + 16];
	u32 name;
	int err;

	note_edge(d, s->span->stream, s->span->offset + s->span->size, s->end, flow);
	timeline_why(exit, why, sizeof(why), TIMELINE_WHOLE);
	name = perfetto_name(&d->log, exit->source == VMPT_REASON_NONE ? "exit" : why);
	if (name == PERFETTO_NONE)
		return -1;
	slice = perfetto_begin(&d->log, d->vcpu[s->vcpu], s->end, name,
			       exit->halted ? PERFETTO_HALT : PERFETTO_EXIT, &err);
	if (slice) {
		slice->flow = flow;
		slice->has_value = exit->has_ip;
		slice->value = exit->ip;
	}
	count_exit(d, t, t->vcpu[s->vcpu].vm, exit, s->end);
	return err;
}

/* What ran on the CPU, from start to end. */
static int add_run(struct perfetto *d, const struct timeline *t, const struct timeline_span *s)
{
	const u32 track = d->stream[s->span->stream].cpu;
	const u32 name = perfetto_name(&d->log, timeline_who(t, s));
	int err;

	if (name == PERFETTO_NONE)
		return -1;
	perfetto_begin(&d->log, track, s->start, name,
		       s->span->kind == VMPT_SPAN_LOST ? PERFETTO_LOST : PERFETTO_RUN, &err);
	if (!err)
		perfetto_end(&d->log, track, s->end, &err);
	return err;
}

static int take_span(struct perfetto *d, const struct timeline *t, const struct timeline_span *s)
{
	struct perfetto_slice *slice;
	int err = add_tracks(d, t);

	if (!err && s->vcpu != TIMELINE_NONE)
		note_edge(d, s->span->stream, s->span->offset, s->start, 0);
	if (!err && s->vcpu != TIMELINE_NONE && perfetto_depth(&d->log, d->vcpu[s->vcpu])) {
		slice = perfetto_end(&d->log, d->vcpu[s->vcpu], s->start, &err);
		if (slice)
			slice->cut = s->unseen || !s->has_left;
	}
	if (!err && s->span->kind != VMPT_SPAN_HOST)
		err = add_run(d, t, s);
	if (!err && s->vcpu != TIMELINE_NONE && s->span->ended == VMPT_EDGE_EXIT)
		err = begin_exit(d, t, s);
	return err;
}

static int on_span(void *opaque, const struct timeline *t, const struct timeline_span *s)
{
	struct perfetto *d = opaque;

	if (!s->timed)
		d->untimed++;
	else if (take_span(d, t, s))
		return cli_no_memory(t->cli);
	return CLI_OK;
}

static int on_begin(void *opaque, const struct timeline *t)
{
	struct perfetto *d = opaque;
	char name[32];
	s64 ns;
	size_t i;

	if (!t->timed) {
		cli_error(t->cli, "%s: it has no times, which Perfetto needs", t->cli->file[0]);
		return CLI_FAILED;
	}
	d->zero = t->zero;
	d->hz = t->hz;
	if (t->times.clock != CLI_WHEN_START &&
	    cli_when_ns(&t->times, t->times.clock, t->zero, &ns, NULL) && ns > 0)
		d->start_ns = (u64)ns;
	d->host = perfetto_process(&d->log, "host");
	for (i = 0; i < t->cli->streams && d->host != PERFETTO_NONE; i++) {
		d->stream[i].cpu = perfetto_track(&d->log, PERFETTO_THREAD, d->host,
						  cli_stream_name(t->cli->stream[i], name));
		if (d->stream[i].cpu == PERFETTO_NONE)
			return cli_no_memory(t->cli);
	}
	return d->host == PERFETTO_NONE ? cli_no_memory(t->cli) : CLI_OK;
}

static int on_end(void *opaque, const struct timeline *t)
{
	struct perfetto *d = opaque;
	char buf[32];

	d->last = t->last;
	if (d->untimed)
		cli_warn(t->cli, "%s spans without a known time are left out",
			 cli_number(d->untimed, buf));
	return CLI_OK;
}

int perfetto_spans(struct cli *cli, struct perfetto *d)
{
	const struct timeline_wants wants = { .clock = (u8)cli_when_clock(cli) };
	const struct timeline_sink sink = {
		.begin = on_begin, .span = on_span, .end = on_end, .opaque = d
	};
	int code = timeline_run(cli, &wants, &sink, 1);

	/* Its names are gone. */
	cli_filter(cli)->has_last = false;
	return code;
}
