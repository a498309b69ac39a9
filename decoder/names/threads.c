// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Threads that may run guests. Thread ids are reused: each lifetime is a thread of its own. */
#include "decoder/names/threads.h"

#include <stdio.h>
#include <stdlib.h>

#include "decoder/trace/trace.h"
#include "util/array.h"
#include "util/search.h"

/* Lifetimes of one id, of other processes, that are passed over in search of a given thread's. */
#define REUSES_MAX 64

/* An event about a thread. */
struct thread_event {
	int tid;
	size_t event;
};

static int by_tid(const void *x, const void *y)
{
	const struct thread_event *a = x, *b = y;

	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return a->event < b->event ? -1 : a->event > b->event;
}

/* "CPU 3/KVM" as QEMU calls them, "fc_vcpu 3", "crosvm_vcpu3", "vcpu3" as others do. */
static int comm_vcpu(const char *comm)
{
	static const char *const before[] = { "CPU ", "fc_vcpu ", "crosvm_vcpu", "vcpu" };
	size_t i, n;

	for (i = 0; i < VMPT_ARRAY_SIZE(before); i++) {
		const char *digits = comm + strlen(before[i]);

		if (strncmp(comm, before[i], strlen(before[i])))
			continue;
		n = strspn(digits, "0123456789");
		if (n && n < 5 && !strcmp(digits + n, i ? "" : "/KVM"))
			return atoi(digits);
	}
	return -1;
}

static void learn(struct vm_thread *t, const struct vmpt_event *e)
{
	if (e->pid >= 0)
		t->pid = e->pid;
	switch (e->kind) {
	case VMPT_EVENT_COMM:
		t->comm = e->text;
		if (comm_vcpu(e->text) >= 0) {
			t->is_vcpu = true;
			t->vcpu = t->vcpu < 0 ? comm_vcpu(e->text) : t->vcpu;
		}
		break;
	case VMPT_EVENT_KVM_ENTRY:
	case VMPT_EVENT_KVM_EXIT:
		t->is_vcpu = true;
		if (e->vcpu != VMPT_EVENT_NO_VCPU)
			t->vcpu = e->vcpu;
		break;
	case VMPT_EVENT_THREAD_END:
		t->to = e->tsc ? e->tsc : t->to;
		break;
	default:
		break;
	}
}

static struct vm_thread *add_thread(struct vm_threads *n, int tid, u64 from)
{
	struct vm_thread *t;

	if (vmpt_grow(&n->list, n->count))
		return NULL;
	t = &n->list[n->count++];
	*t = (struct vm_thread){ .tid = tid, .pid = -1, .vcpu = -1, .from = from, .to = ~0ULL };
	return t;
}

/* By thread id, then by time: each event belongs to the thread created last. */
static int make_threads(struct vm_threads *n, const struct vmpt_event *events,
			const struct thread_event *places, size_t count)
{
	struct vm_thread *t = NULL;
	size_t i;

	for (i = 0; i < count; i++) {
		const struct vmpt_event *e = &events[places[i].event];
		bool same = t && t->tid == places[i].tid;

		/*
		 * A thread that ends on its own CPU is switched out for the last time after its
		 * end.
		 */
		if (same && t->to != ~0ULL && e->kind == VMPT_EVENT_SWITCH_OUT)
			continue;
		if (!same || t->to != ~0ULL || (e->kind == VMPT_EVENT_FORK && e->tsc))
			t = add_thread(n, places[i].tid, same ? e->tsc : 0);
		if (!t)
			return -VMPT_E_NOMEM;
		learn(t, e);
	}
	return 0;
}

static int find_threads(struct vm_threads *n, const struct vmpt_names_options *o)
{
	struct thread_event *places = calloc(o->event_count ? o->event_count : 1, sizeof(*places));
	size_t i, count = 0;
	int ret;

	if (!places)
		return -VMPT_E_NOMEM;
	for (i = 0; i < o->event_count; i++)
		if (o->events[i].tid > 0 && o->events[i].kind != VMPT_EVENT_LOST_EVENTS)
			places[count++] = (struct thread_event){ o->events[i].tid, i };
	if (count)
		qsort(places, count, sizeof(*places), by_tid);
	ret = make_threads(n, o->events, places, count);
	free(places);
	return ret;
}

size_t vmpt_vm_threads_at(const struct vm_threads *n, int tid, u64 tsc)
{
	const struct vm_thread *t = n->list;
	size_t next = vmpt_search(i, 0, n->count,
				  t[i].tid < tid || (t[i].tid == tid && t[i].from <= tsc));

	return next && t[next - 1].tid == tid ? next - 1 : VM_THREAD_NONE;
}

/* ---- given threads ---- */

/* Ticks between the given time and the thread's lifetime. */
static u64 apart(const struct vmpt_given_thread *given, const struct vm_thread *t)
{
	if (given->to < t->from)
		return t->from - given->to;
	return given->from > t->to ? given->from - t->to : 0;
}

static void hear(struct vm_threads *n, const struct vmpt_names_options *o)
{
	size_t i, k, steps;

	for (i = 0; i < o->given_count; i++) {
		const struct vmpt_given_thread *given = &o->given[i];

		/* A reused id: take the thread alive then, or the nearest */
		k = vmpt_vm_threads_at(n, given->tid, given->to);
		if (k == VM_THREAD_NONE && given->tid > 0)
			k = vmpt_vm_threads_at(n, given->tid, ~0ULL);
		for (steps = 0; k != VM_THREAD_NONE && steps < REUSES_MAX;
		     steps++, k = k && n->list[k - 1].tid == given->tid ? k - 1 : VM_THREAD_NONE) {
			struct vm_thread *t = &n->list[k];

			if (t->pid >= 0 && given->pid >= 0 && t->pid != given->pid)
				continue;
			if (!t->given || apart(given, t) <= apart(t->given, t))
				t->given = given;
			break;
		}
	}
}

/* "COMM/PID": of the process's first thread, else the thread's own. */
static int process_name(struct vm_threads *n, struct vm_thread *t)
{
	size_t first = t->pid > 0 ? vmpt_vm_threads_at(n, t->pid, t->to) : VM_THREAD_NONE;
	const char *comm = first != VM_THREAD_NONE ? n->list[first].comm : NULL;
	char name[96];

	comm = comm ? comm : t->comm;
	snprintf(name, sizeof(name), "%s/%d", comm ? comm : "pid", t->pid >= 0 ? t->pid : t->tid);
	t->vm = strdup(name);
	return t->vm ? 0 : -VMPT_E_NOMEM;
}

/* Determine all that is known of each thread that may run guests. */
static int settle_threads(struct vm_threads *n, const struct vmpt_names_options *o)
{
	size_t i;
	int ret = 0;

	hear(n, o);
	for (i = 0; i < n->count; i++) {
		struct vm_thread *t = &n->list[i];

		n->strict |= t->is_vcpu || t->given;
		t->is_vcpu |= t->given != NULL;
	}
	for (i = 0; !ret && i < n->count; i++) {
		struct vm_thread *t = &n->list[i];

		if (n->strict && !t->is_vcpu)
			continue;
		if (t->given && t->given->vcpu >= 0)
			t->vcpu = t->given->vcpu;
		if (t->given && t->pid < 0)
			t->pid = t->given->pid;
		if (t->given && t->given->vm) {
			t->vm = strdup(t->given->vm);
			ret = t->vm ? 0 : -VMPT_E_NOMEM;
		} else {
			ret = process_name(n, t);
		}
		t->given = NULL;
	}
	return ret;
}

int vmpt_vm_threads_open(struct vm_threads *threads, const struct vmpt_names_options *options)
{
	int ret = find_threads(threads, options);

	return ret ? ret : settle_threads(threads, options);
}

void vmpt_vm_threads_close(struct vm_threads *threads)
{
	for (size_t i = 0; i < threads->count; i++)
		free(threads->list[i].vm);
	free(threads->list);
}
