// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What the time of a call was spent on. A task is current from where its CPU (of the host's tasks)
 * or its vCPU runs it until that runs another task; that time is split by who had the CPU. Time in
 * which it was not current is what is left.
 */
#include <stdlib.h>

#include "cli/latency/latency.h"
#include "util/array.h"

void latency_part_add(struct latency_part *part, size_t *parts, size_t most, unsigned int kind,
		      u32 key, u64 ticks)
{
	size_t i;

	if (!ticks)
		return;
	for (i = 0; i < *parts; i++)
		if (part[i].kind == kind && part[i].key == key)
			break;
	/* The last place is for all others of the same kind, if there are that many. */
	if (i == *parts && i < most)
		part[(*parts)++] = (struct latency_part){ 0, key, (u8)kind };
	part[i < most ? i : most - 1].ticks += ticks;
}

static void add(struct latency_task *t, unsigned int kind, u32 key, u64 ticks)
{
	size_t i;

	for (i = 0; i < t->opens; i++) {
		struct latency_open *o = &t->open[i];

		latency_part_add(o->part, &o->parts, LATENCY_PARTS_MAX, kind, key, ticks);
	}
}

/* The task of the host that ran last before number @i of the stream's runs. */
static u32 host_before(const struct latency *d, const struct spans_runs *runs, size_t i)
{
	size_t n;

	for (n = 0; i && n < 64; n++, i--)
		if (d->task[runs->run[i - 1].task].host)
			return runs->run[i - 1].task;
	return LATENCY_NONE;
}

static void add_host(struct latency *d, struct latency_task *t, u32 task, u64 ticks)
{
	if (t->handler == LATENCY_NONE)
		t->handler = task;
	if (task == t->handler || task == LATENCY_NONE)
		add(t, LATENCY_EXIT,
		    t->exit && t->exit->source != VMPT_REASON_NONE ? t->exit->reason
								   : VMPT_REASON_UNKNOWN,
		    ticks);
	else
		add(t, LATENCY_TASK, d->task[task].process, ticks);
}

/* The host had the CPU in [@from, @to) while @t's vCPU was out. */
static void split_host(struct latency *d, struct latency_task *t, u64 from, u64 to)
{
	const struct spans_runs *runs = &d->spans.runs[t->stream];
	size_t i = spans_run_after(&d->spans, t->stream, from);
	u32 task = host_before(d, runs, i);

	for (; i < runs->count && runs->run[i].tsc < to; i++) {
		const u32 next = runs->run[i].task;

		if (!d->task[next].host || next == task)
			continue;
		add_host(d, t, task, runs->run[i].tsc - from);
		from = runs->run[i].tsc;
		task = next;
	}
	add_host(d, t, task, to - from);
}

static u32 vm_of(struct latency *d, u64 vmcs)
{
	const struct vmpt_owner owner = { .kind = vmcs ? VMPT_OWNER_VM : VMPT_OWNER_VM_ANY,
					  .vmcs = vmcs };

	return calls_find_vm(&d->source, &owner);
}

/* @span had the CPU in [@from, @to). */
static void split(struct latency *d, struct latency_task *t, const struct spans_span *span,
		  u64 from, u64 to)
{
	const bool guest = span->kind == VMPT_SPAN_GUEST;

	if (span->kind != VMPT_SPAN_HOST && !guest) {
		add(t, LATENCY_UNTRACED, 0, to - from);
	} else if (t->host) {
		add(t, guest ? LATENCY_GUEST : LATENCY_RUN, guest ? vm_of(d, span->vmcs) : 0,
		    to - from);
	} else if (guest && span->vmcs == t->vmcs) {
		add(t, LATENCY_RUN, 0, to - from);
		t->exit = NULL;
		t->handler = LATENCY_NONE;
	} else if (t->exit && t->exit->halted) {
		add(t, LATENCY_HALTED, 0, to - from);
	} else if (guest) {
		add(t, LATENCY_VM, vm_of(d, span->vmcs), to - from);
	} else {
		split_host(d, t, from, to);
	}
}

/* The exit of @t's vCPU before span number @i, if it was shortly before. */
static const struct spans_span *exit_before(const struct spans_stream *of,
					    const struct latency_task *t, size_t i)
{
	size_t n;

	for (n = 0; i && n < 4; n++) {
		const struct spans_span *span = &of->span[--i];

		if (span->kind == VMPT_SPAN_GUEST && span->vmcs == t->vmcs)
			return span->exits ? span : NULL;
	}
	return NULL;
}

/* The last span of @stream that starts at or before @tsc. */
static size_t span_at(const struct spans_stream *of, u64 tsc)
{
	size_t low = 0, high = of->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (of->span[mid].start <= tsc)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? low - 1 : 0;
}

void latency_settle(struct latency *d, struct latency_task *t, u64 now)
{
	const struct spans_stream *of;
	size_t i;

	if (!t->current || !d->timed || now <= t->since)
		return;
	if (!t->opens) {
		t->since = now;
		return;
	}
	of = &d->spans.stream[t->stream];
	for (i = span_at(of, t->since); i < of->count && of->span[i].start < now; i++) {
		const struct spans_span *span = &of->span[i];
		const u64 end = spans_end(&d->spans, t->stream, i);
		const u64 from = span->start > t->since ? span->start : t->since;
		const u64 to = end < now ? end : now;

		if (!t->exit && !t->host)
			t->exit = exit_before(of, t, i);
		if (to > from)
			split(d, t, span, from, to);
		if (span->exits && span->vmcs == t->vmcs && end <= now)
			t->exit = span;
	}
	t->since = now;
}

void latency_rest(const struct latency *d, struct latency_open *o)
{
	u64 sum = 0;
	size_t i;

	if (!d->timed)
		return;
	for (i = 0; i < o->parts; i++)
		sum += o->part[i].ticks;
	if (sum < o->call.ticks) {
		latency_part_add(o->part, &o->parts, LATENCY_PARTS_MAX, LATENCY_SWITCHED, 0,
				 o->call.ticks - sum);
		return;
	}
	/* Times of spans and calls differ by rounding at most. */
	for (i = 0; i < o->parts && sum > o->call.ticks; i++) {
		u64 over = sum - o->call.ticks;

		if (o->part[i].kind != LATENCY_RUN)
			continue;
		over = over < o->part[i].ticks ? over : o->part[i].ticks;
		o->part[i].ticks -= over;
		sum -= over;
	}
}

/* ---- which task is current ---- */

static void stop(struct latency *d, u32 task, u64 now)
{
	if (task == LATENCY_NONE)
		return;
	latency_settle(d, &d->task[task], now);
	d->task[task].current = false;
}

/* The VMCS that runs @item's task from tick @now on. */
static u64 vmcs_at(struct latency *d, const struct vmpt_call_item *item, u64 now)
{
	const struct spans_stream *of = &d->spans.stream[item->stream];
	size_t i = spans_at(&d->spans, item->stream, item->offset), n;
	struct vmpt_call_task task;

	/* The packet before the entry may be of who ran before. */
	for (n = 0; i != SPANS_NONE && n < 4 && i + n < of->count; n++) {
		const struct spans_span *span = &of->span[i + n];

		if (span->kind == VMPT_SPAN_GUEST &&
		    spans_end(&d->spans, item->stream, i + n) > now &&
		    vm_of(d, span->vmcs) == d->task[item->task].vm)
			return span->vmcs;
	}
	vmpt_calls_task(d->source.calls, item->task, &task);
	return task.owner.vmcs;
}

static u32 *vcpu_of(struct latency *d, u64 vmcs)
{
	size_t i;

	for (i = 0; i < d->vcpus; i++)
		if (d->vcpu[i].vmcs == vmcs)
			return &d->vcpu[i].task;
	if (vmpt_grow(&d->vcpu, d->vcpus))
		return NULL;
	d->vcpu[d->vcpus].vmcs = vmcs;
	d->vcpu[d->vcpus].task = LATENCY_NONE;
	return &d->vcpu[d->vcpus++].task;
}

int latency_run(struct latency *d, const struct vmpt_call_item *item, u64 now)
{
	struct latency_task *t = &d->task[item->task];
	const u64 vmcs = t->host ? 0 : vmcs_at(d, item, now);
	u32 *place = t->host ? &d->host_now[item->stream] : vcpu_of(d, vmcs), *old;

	if (!place || spans_ran(&d->spans, item->stream, item->offset, now, item->task))
		return -VMPT_E_NOMEM;
	if (*place != item->task)
		stop(d, *place, now);
	if (t->current && (t->stream != item->stream || t->vmcs != vmcs)) {
		old = t->host ? &d->host_now[t->stream] : vcpu_of(d, t->vmcs);
		if (old && *old == item->task)
			*old = LATENCY_NONE;
		stop(d, item->task, now);
		/* vcpu_of() may have moved them. */
		place = t->host ? &d->host_now[item->stream] : vcpu_of(d, vmcs);
	}
	*place = item->task;
	if (t->current)
		return 0;
	t->current = true;
	t->stream = item->stream;
	t->vmcs = vmcs;
	t->since = now;
	t->exit = NULL;
	t->handler = LATENCY_NONE;
	return 0;
}
