// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Which process of the host runs when, by context switches; and whose page tables a CR3 is. */
#include "decoder/names/host.h"

/* PCID, and the bit by which page table isolation tells its two CR3s apart: SDM 3 4.10.1. */
#define CR3_MASK 0x000fffffffffe000ULL

#define VOTES_MAX (1u << 20)

static int by_cpu(const void *x, const void *y)
{
	const struct host_switch *a = x, *b = y;

	if (a->cpu != b->cpu)
		return a->cpu < b->cpu ? -1 : 1;
	return a->tsc < b->tsc ? -1 : a->tsc > b->tsc;
}

static int by_tid(const void *x, const void *y)
{
	const struct host_thread *a = x, *b = y;

	return a->tid < b->tid ? -1 : a->tid > b->tid;
}

/* The last process that a thread number was of. */
static void one_a_thread(struct vmpt_host *h)
{
	size_t i, n = 0;

	for (i = 0; i < h->threads; i++) {
		if (n && h->thread[n - 1].tid == h->thread[i].tid)
			n--;
		h->thread[n++] = h->thread[i];
	}
	h->threads = n;
}

static int add_thread(struct vmpt_host *h, const struct vmpt_event *e)
{
	if (e->tid <= 0 || e->pid <= 0)
		return 0;
	if (vmpt_grow(&h->thread, h->threads))
		return -VMPT_E_NOMEM;
	h->thread[h->threads++] = (struct host_thread){ e->tid, e->pid };
	return 0;
}

static int add_switch(struct vmpt_host *h, const struct vmpt_event *e)
{
	if (e->cpu < 0 || !e->tsc)
		return 0;
	if (vmpt_grow(&h->run, h->runs))
		return -VMPT_E_NOMEM;
	h->run[h->runs++] = (struct host_switch){ e->tsc, e->cpu,
						  e->kind == VMPT_EVENT_SWITCH_IN ? e->pid : -1 };
	return 0;
}

int vmpt_host_read_switches(struct vmpt_host *h, struct vmpt_trace *trace)
{
	const struct vmpt_event *e;
	size_t i, n;
	int ret = vmpt_trace_events(trace, &e, &n);

	for (i = 0; i < n && !ret; i++) {
		if (e[i].kind == VMPT_EVENT_SWITCH_IN || e[i].kind == VMPT_EVENT_SWITCH_OUT)
			ret = add_switch(h, &e[i]);
		else if (e[i].kind == VMPT_EVENT_COMM || e[i].kind == VMPT_EVENT_FORK)
			ret = add_thread(h, &e[i]);
	}
	if (h->runs)
		qsort(h->run, h->runs, sizeof(*h->run), by_cpu);
	if (h->threads)
		qsort(h->thread, h->threads, sizeof(*h->thread), by_tid);
	one_a_thread(h);
	return ret;
}

/* A process with programs in its memory; a thread of the kernel has none. */
static const struct vmpt_host_process *user(const struct vmpt_host *h, int pid, u64 tsc)
{
	const struct vmpt_host_process *p = vmpt_host_process_at(h, pid, tsc);
	const struct host_process *own = (const void *)p;

	return own && (own->maps || own->inherited) ? p : NULL;
}

const struct vmpt_host_process *vmpt_host_running(const struct vmpt_host *h, int cpu, int tid,
						  u64 tsc)
{
	const struct host_switch *r = h->run;
	size_t i;

	if (cpu < 0) {
		i = vmpt_search(k, 0, h->threads, h->thread[k].tid < tid);
		if (tid <= 0)
			return NULL;
		return user(h, i < h->threads && h->thread[i].tid == tid ? h->thread[i].pid : tid,
			    tsc);
	}
	i = vmpt_search(k, 0, h->runs, r[k].cpu < cpu || (r[k].cpu == cpu && r[k].tsc <= tsc));
	if (i && r[i - 1].cpu == cpu && r[i - 1].pid >= 0)
		return user(h, r[i - 1].pid, tsc);
	/* Between two of them: the next one's page tables are loaded already, or about to be. */
	if (i < h->runs && r[i].cpu == cpu && r[i].pid >= 0)
		return user(h, r[i].pid, r[i].tsc);
	return NULL;
}

/* ---- CR3 ---- */

static u32 find_cr3(const struct vmpt_host *h, u64 cr3)
{
	return vmpt_hash_find(&h->cr3_of, vmpt_mix64(cr3), k, h->cr3[k].cr3 == cr3);
}

/* Vote number @vote was given. */
static int count_vote(struct vmpt_host *h, u32 vote)
{
	const u64 cr3 = h->vote[vote].cr3;
	u32 i = find_cr3(h, cr3);

	if (i == VMPT_HASH_NONE) {
		i = (u32)h->cr3s;
		if (vmpt_grow(&h->cr3, h->cr3s) || vmpt_hash_add(&h->cr3_of, vmpt_mix64(cr3), i))
			return -VMPT_E_NOMEM;
		h->cr3[h->cr3s++] = (struct host_cr3){ .cr3 = cr3, .best = vote };
	}
	h->cr3[i].votes++;
	if (h->vote[vote].count > h->vote[h->cr3[i].best].count)
		h->cr3[i].best = vote;
	return 0;
}

static int add_vote(struct vmpt_host *h, u64 cr3, u32 process)
{
	const u64 hash = vmpt_mix64(cr3 ^ (u64)process << 52);
	u32 i = vmpt_hash_find(&h->vote_of, hash, k,
			       h->vote[k].cr3 == cr3 && h->vote[k].process == process);

	if (i == VMPT_HASH_NONE) {
		i = (u32)h->votes;
		if (h->votes == VOTES_MAX)
			return 0;
		if (vmpt_grow(&h->vote, h->votes) || vmpt_hash_add(&h->vote_of, hash, i))
			return -VMPT_E_NOMEM;
		h->vote[h->votes++] = (struct host_vote){ cr3, process, 0 };
	}
	h->vote[i].count += h->vote[i].count < UINT32_MAX;
	return count_vote(h, i);
}

static int take_batch(struct vmpt_host *h, const struct vmpt_timed_batch *t, int cpu, int tid)
{
	const struct vmpt_batch *b = &t->batch;
	int ret = 0;
	u32 i;

	if (b->owner.kind != VMPT_OWNER_HOST)
		return 0;
	for (i = 0; i < b->count && !ret; i++) {
		const struct vmpt_host_process *p;

		if (b->items[i].kind != VMPT_PT_PIP || b->items[i].payload & 1 ||
		    t->time[i].tsc == VMPT_TIME_NONE)
			continue;
		p = vmpt_host_running(h, cpu, tid, t->time[i].tsc);
		if (p)
			ret = add_vote(
				h, b->items[i].payload & CR3_MASK,
				(u32)((const struct host_process *)(const void *)p - h->process));
	}
	return ret;
}

int vmpt_host_stream(struct vmpt_host *h, const struct vmpt_clocks *clocks, size_t stream, int cpu,
		     int tid, const struct vmpt_options *options)
{
	struct vmpt_timed_batch batch;
	struct vmpt_timed *timed;
	int ret, more = 0;

	if (!h->processes)
		return 0;
	ret = vmpt_timed_open(&timed, clocks, stream, options);
	if (ret)
		return ret;
	while (!ret && (more = vmpt_timed_next(timed, &batch)) > 0)
		ret = take_batch(h, &batch, cpu, tid);
	vmpt_timed_close(timed);
	return ret ? ret : more < 0 ? more : 0;
}

const struct vmpt_host_process *vmpt_host_cr3(const struct vmpt_host *h, u64 cr3)
{
	u32 i = find_cr3(h, cr3 & CR3_MASK);
	const struct host_vote *best;

	if (i == VMPT_HASH_NONE)
		return NULL;
	best = &h->vote[h->cr3[i].best];
	return h->cr3[i].votes - best->count <= h->cr3[i].votes / 16
		       ? &h->process[best->process].process
		       : NULL;
}
