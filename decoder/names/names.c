// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Names of VMCSs on a kernel that does not report them: a guest's run is matched with the thread
 * that was on its CPU then, a vCPU thread of a VMM. Each run is a vote; a VMCS page is freed and
 * reused, so votes are counted by time, and a small minority is considered wrong.
 */
#include <stdlib.h>

#include "decoder/trace/trace.h"
#include "decoder/names/threads.h"
#include "util/array.h"
#include "util/search.h"

#define CPU_MAX	     65535
#define NOBODY	     (-1) /* of a mark: the running thread is not known from here on */
#define MINORITY     4	  /* between two that agree: at most 1/MINORITY of their runs is wrong */
#define EDGE_FEW     3	  /* at either end: fewer runs than this ... */
#define EDGE_RATIO   10	  /* ... next to this many times more are wrong */
#define TSC_PKT_BITS 56

/* From here on, up to @until, @tid runs on @cpu. */
struct mark {
	int cpu, tid;
	u64 tsc, until;
	size_t order;
};

/* Consecutive runs of one VMCS with one thread. */
struct vmcs_segment {
	u64 vmcs, from, to;
	size_t thread;
	u32 runs, against;
};

struct vmpt_names {
	struct mark *marks;
	size_t mark_count;
	struct vm_threads threads;
	struct vmcs_segment *segments;
	size_t segment_count;
	size_t *last; /* by CPU: 1 + the segment of its last run; up to the last CPU with a mark */
	struct vmpt_vm_name *names;
	size_t name_count;
	u64 base; /* a TSC of the events */
	bool done;
};

static int by_cpu(const void *x, const void *y)
{
	const struct mark *a = x, *b = y;

	if (a->cpu != b->cpu)
		return a->cpu < b->cpu ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static int by_vmcs(const void *x, const void *y)
{
	const struct vmcs_segment *a = x, *b = y;

	if (a->vmcs != b->vmcs)
		return a->vmcs < b->vmcs ? -1 : 1;
	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return a->to < b->to ? -1 : a->to > b->to;
}

/* @tsc with the bits above a TSC packet's set to be nearest to the events. */
static u64 near_events(const struct vmpt_names *n, u64 tsc)
{
	u64 ahead = (tsc - n->base) << (64 - TSC_PKT_BITS);

	return n->base + (u64)((s64)ahead >> (64 - TSC_PKT_BITS));
}

/* ---- the thread on a CPU ---- */

/* The thread on the event's CPU; false: not known from @event. */
static bool event_thread(const struct vmpt_event *event, int *tid)
{
	*tid = event->tid;
	switch (event->kind) {
	case VMPT_EVENT_SWITCH_IN:
	case VMPT_EVENT_KVM_ENTRY:
	case VMPT_EVENT_KVM_EXIT:
		return true;
	case VMPT_EVENT_SWITCH_OUT:
	case VMPT_EVENT_LOST_EVENTS:
		*tid = NOBODY;
		return true;
	default:
		return false;
	}
}

static int make_marks(struct vmpt_names *n, const struct vmpt_names_options *o)
{
	size_t i;
	int tid;

	for (i = 0; i < o->event_count; i++) {
		const struct vmpt_event *e = &o->events[i];

		if (!e->tsc || e->cpu < 0 || e->cpu > CPU_MAX || !event_thread(e, &tid))
			continue;
		if (!n->mark_count)
			n->base = e->tsc;
		if (vmpt_grow(&n->marks, n->mark_count))
			return -VMPT_E_NOMEM;
		n->marks[n->mark_count++] =
			(struct mark){ .cpu = e->cpu, .tid = tid, .tsc = e->tsc, .order = i };
	}
	if (!n->mark_count)
		return 0;
	qsort(n->marks, n->mark_count, sizeof(*n->marks), by_cpu);
	n->last = calloc((size_t)n->marks[n->mark_count - 1].cpu + 1, sizeof(*n->last));
	if (!n->last)
		return -VMPT_E_NOMEM;
	for (i = n->mark_count; i-- > 0;) {
		struct mark *m = &n->marks[i];
		bool last = i + 1 == n->mark_count || m[1].cpu != m->cpu;

		m->until = last ? ~0ULL : m[1].tid == m->tid ? m[1].until : m[1].tsc;
	}
	return 0;
}

/* The last mark of @cpu at or before @tsc. */
static const struct mark *mark_at(const struct vmpt_names *n, int cpu, u64 tsc)
{
	const struct mark *m = n->marks;
	size_t next = vmpt_search(i, 0, n->mark_count,
				  m[i].cpu < cpu || (m[i].cpu == cpu && m[i].tsc <= tsc));

	return next && m[next - 1].cpu == cpu ? &m[next - 1] : NULL;
}

int vmpt_names_open_abi(struct vmpt_names **names, const struct vmpt_names_options *options,
			u64 abi)
{
	struct vmpt_names *n;
	int ret;

	if (abi != VMPT_NAMES_ABI)
		return -VMPT_E_VERSION;
	n = calloc(1, sizeof(*n));
	ret = n ? make_marks(n, options) : -VMPT_E_NOMEM;
	if (!ret)
		ret = vmpt_vm_threads_open(&n->threads, options);
	if (ret) {
		vmpt_names_close(n);
		n = NULL;
	}
	*names = n;
	return ret;
}

void vmpt_names_close(struct vmpt_names *names)
{
	if (!names)
		return;
	vmpt_vm_threads_close(&names->threads);
	free(names->marks);
	free(names->last);
	free(names->segments);
	free(names->names);
	free(names);
}

/* ---- votes ---- */

/*
 * The thread that was on @cpu for the whole of a run. [@from, @to] is a part of the run, or
 * contains it: no other thread may have been seen in it.
 */
static size_t thread_of(const struct vmpt_names *n, int cpu, u64 from, u64 to)
{
	const struct mark *m = mark_at(n, cpu, from);
	size_t thread;

	if (!m || m->tid <= 0 || m->until <= to)
		return VM_THREAD_NONE;
	thread = vmpt_vm_threads_at(&n->threads, m->tid, m->tsc);
	if (thread == VM_THREAD_NONE || (n->threads.strict && !n->threads.list[thread].is_vcpu))
		return VM_THREAD_NONE;
	return thread;
}

static int vote(struct vmpt_names *n, u64 vmcs, int cpu, u64 at, size_t thread)
{
	size_t last = n->last[cpu];
	struct vmcs_segment *s = last ? &n->segments[last - 1] : NULL;

	if (s && s->vmcs == vmcs && s->thread == thread && s->to <= at) {
		s->to = at;
		s->runs += s->runs < UINT32_MAX;
		return 0;
	}
	if (vmpt_grow(&n->segments, n->segment_count))
		return -VMPT_E_NOMEM;
	n->segments[n->segment_count++] = (struct vmcs_segment){
		.vmcs = vmcs, .from = at, .to = at, .thread = thread, .runs = 1
	};
	n->last[cpu] = n->segment_count;
	return 0;
}

int vmpt_names_run(struct vmpt_names *names, u64 vmcs, int cpu, const struct vmpt_time *start,
		   const struct vmpt_time *end)
{
	u64 first, last, from, to;
	size_t thread;

	if (names->done)
		return -VMPT_E_INVAL;
	if (cpu < 0 || cpu > CPU_MAX || !names->mark_count || start->tsc == VMPT_TIME_NONE ||
	    end->tsc == VMPT_TIME_NONE || start->late == VMPT_TIME_OPEN)
		return 0;
	first = near_events(names, start->tsc);
	last = near_events(names, end->tsc);
	from = first + start->late;
	to = end->early == VMPT_TIME_OPEN ? 0 : last - end->early;
	if (from > to) {
		/*
		 * Shorter than the error of its times: one thread must cover the range of its
		 * start.
		 */
		if (start->early == VMPT_TIME_OPEN)
			return 0;
		from = first - start->early;
		to = first + start->late;
	}
	thread = thread_of(names, cpu, from, to);
	return thread == VM_THREAD_NONE ? 0 : vote(names, vmcs, cpu, first, thread);
}

/* ---- names ---- */

static u32 sum(u32 a, u32 b)
{
	return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

/* The runs of @from count against @to. */
static void overrule(struct vmcs_segment *to, const struct vmcs_segment *from)
{
	to->against = sum(to->against, sum(from->runs, from->against));
	to->to = from->to > to->to ? from->to : to->to;
}

static void join(struct vmcs_segment *to, const struct vmcs_segment *from)
{
	to->runs = sum(to->runs, from->runs);
	to->against = sum(to->against, from->against);
	to->to = from->to > to->to ? from->to : to->to;
}

/*
 * Segments of one VMCS, by time: adjacent ones of one thread are merged, and a few runs between
 * many that agree are overruled. Returns the number left.
 */
static size_t settle(struct vmcs_segment *s, size_t count)
{
	size_t i, n = 0;

	for (i = 0; i < count; i++) {
		if (n && s[n - 1].thread == s[i].thread)
			join(&s[n - 1], &s[i]);
		else
			s[n++] = s[i];
		while (n >= 3 && s[n - 3].thread == s[n - 1].thread &&
		       (u64)s[n - 2].runs * MINORITY <= (u64)s[n - 3].runs + s[n - 1].runs) {
			overrule(&s[n - 3], &s[n - 2]);
			join(&s[n - 3], &s[n - 1]);
			n -= 2;
		}
	}
	return n;
}

/* Few runs at an end next to many are wrong too, unless the others' thread did not exist then. */
static bool is_stray(const struct vmpt_names *n, const struct vmcs_segment *few,
		     const struct vmcs_segment *many)
{
	const struct vm_thread *t = &n->threads.list[many->thread];

	return few->runs < EDGE_FEW && (u64)few->runs * EDGE_RATIO <= many->runs &&
	       t->from <= few->from && t->to >= few->to;
}

static int add_name(struct vmpt_names *n, const struct vmcs_segment *s, u64 from, u64 to)
{
	const struct vm_thread *t = &n->threads.list[s->thread];

	if (vmpt_grow(&n->names, n->name_count))
		return -VMPT_E_NOMEM;
	n->names[n->name_count++] = (struct vmpt_vm_name){
		.vmcs = s->vmcs,
		.from = from,
		.to = to,
		.vm = t->vm,
		.pid = t->pid,
		.tid = t->tid,
		.vcpu = t->vcpu,
		.runs = s->runs,
		.against = s->against,
	};
	return 0;
}

/* All segments of one VMCS. */
static int name_vmcs(struct vmpt_names *n, struct vmcs_segment *s, size_t count)
{
	size_t i;
	int ret = 0;

	count = settle(s, count);
	if (count > 1 && is_stray(n, &s[0], &s[1])) {
		overrule(&s[1], &s[0]);
		s++;
		count--;
	}
	if (count > 1 && is_stray(n, &s[count - 1], &s[count - 2])) {
		overrule(&s[count - 2], &s[count - 1]);
		count--;
	}
	for (i = 0; !ret && i < count; i++) {
		u64 from = i ? s[i].from : 0, to = i + 1 < count ? s[i + 1].from : ~0ULL;

		/* Two at the same time: one of them is wrong. */
		if (from == to)
			overrule(&s[i + 1], &s[i]);
		else
			ret = add_name(n, &s[i], from, to);
	}
	return ret;
}

int vmpt_names_finish(struct vmpt_names *names)
{
	struct vmcs_segment *s = names->segments;
	size_t i, k, count = names->segment_count;
	int ret = 0;

	if (names->done)
		return -VMPT_E_INVAL;
	names->done = true;
	if (count)
		qsort(s, count, sizeof(*s), by_vmcs);
	for (i = 0; !ret && i < count; i = k) {
		for (k = i; k < count && s[k].vmcs == s[i].vmcs; k++)
			;
		ret = name_vmcs(names, &s[i], k - i);
	}
	free(names->segments);
	names->segments = NULL;
	names->segment_count = 0;
	return ret;
}

const struct vmpt_vm_name *vmpt_names_list(const struct vmpt_names *names, size_t *count)
{
	*count = names->name_count;
	return names->names;
}

const struct vmpt_vm_name *vmpt_names_at(const struct vmpt_names *names, u64 vmcs, u64 tsc)
{
	const struct vmpt_vm_name *name = names->names;
	size_t n;

	tsc = near_events(names, tsc);
	n = vmpt_search(i, 0, names->name_count,
			name[i].vmcs < vmcs || (name[i].vmcs == vmcs && name[i].from <= tsc));
	return n && name[n - 1].vmcs == vmcs ? &name[n - 1] : NULL;
}
