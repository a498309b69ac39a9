// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Scenarios in which the host's perf traces while KVM runs a guest.
 */
#include <stdio.h>

#include "faults.h"

#define EXITS	  20000
#define D02_EXITS 100000 /* seen so far after 557 to 19,201 */
#define SMALL_AUX 4
#define STILL	  300 /* exits, more than fill that */
#define LARGE_AUX 16
#define ATTEMPTS  20
#define MORE	  200 /* where entries fail */
#define D04_EXITS 4000
#define TOPA_PMI  (1ull << 55)

static struct host_pt pt;
static bool host_on;
static u64 most; /* most bytes in one of perf's records */
static u64 total;
static u32 attempt; /* each takes another course */
static u32 exits = EXITS, stuck, stopped, status;

static bool open_host(size_t pages)
{
	int error = host_pt_open(&pt, pages);

	if (error)
		skip("no PT event on the host: %s", strerror(error));
	return !error;
}

/* Something to trace, in user space: conditional branches that differ. */
static void __attribute__((noinline)) burn(u32 n)
{
	volatile u32 sink = 0;
	u32 i;

	for (i = 0; i < n; i++) {
		if (i * 2654435761u >> 30 & 1)
			sink = sink + i;
	}
}

void fault_d01(struct scene *s)
{
	enum scene_end end;

	scene_open(s, false);
	if (!open_host(LARGE_AUX))
		return;
	scene_op(s, OP_WORK, 10, 0);
	scene_load(s);
	host_pt_enable(&pt, true);
	end = scene_run(s);
	host_pt_enable(&pt, false);
	if (end == SCENE_DONE && host_pt_head(&pt))
		ok("the guest ran, %llu bytes of the host's trace",
		   (unsigned long long)host_pt_head(&pt));
	else
		fault("%s %#llx; %s", scene_end_name(end), (unsigned long long)s->reason,
		      scene_said(s, "VM") ? s->line : "no kernel message");
}

/*
 * The host's trace is on from the guest's first exit to its last: before and after them the guest
 * does not trace, which would show D01. The work between two exits varies.
 */
static void busy(struct scene *s)
{
	bool on = s->outs < exits && !stuck;

	if (on != host_on)
		host_pt_enable(&pt, on);
	host_on = on;
	if (on)
		burn(10 + ((s->outs + attempt * D04_EXITS) * 2654435761u >> 26));
}

static void keep_tracing(struct scene *s, u32 word)
{
	u64 n;

	(void)word;
	busy(s);
	n = host_pt_drain(&pt);
	total += n;
	if (n > most)
		most = n;
}

/* A guest that traces (INT in every n-th page) exits often while the host traces too. */
static enum scene_end trace_both(struct scene *s, u32 int_every,
				 void (*on_out)(struct scene *s, u32 word))
{
	enum scene_end end;

	scene_topa(s, 8, int_every);
	scene_op_start(s, CTL_TRACE);
	scene_op(s, OP_EXITS, exits, 0);
	scene_op_stop(s, CTL_TRACE);
	status = scene_op(s, OP_RDMSR, VMPT_MSR_PERF_GLOBAL_STATUS, 0);
	s->on_out = on_out;
	scene_load(s);
	end = scene_run(s);
	if (host_on)
		host_pt_enable(&pt, false);
	host_on = false;
	return end;
}

void fault_d02(struct scene *s)
{
	enum scene_end end;

	scene_open(s, false);
	if (!open_host(SMALL_AUX))
		return;
	exits = D02_EXITS;
	end = trace_both(s, 0, keep_tracing);
	if (scene_said(s, "unchecked MSR access"))
		fault("after %u exits: %s %#llx; %s", s->outs, scene_end_name(end),
		      (unsigned long long)s->reason, s->line);
	else if (end != SCENE_DONE)
		fault("after %u exits: %s %#llx", s->outs, scene_end_name(end),
		      (unsigned long long)s->reason);
	else if (!total)
		fault("after %u exits: no byte of the host's trace", s->outs);
	else
		ok("not seen in %u exits, %llu bytes of the host's trace", s->outs,
		   (unsigned long long)total);
}

/* Was the fault seen? A failed entry is D02, which may come first: then try again. */
static bool seen_d04(struct scene *s)
{
	return most > pt.aux_size || scene_said(s, "BUG") || scene_said(s, "WARNING");
}

void fault_d04(struct scene *s)
{
	u32 failed = 0, all = 0;
	enum scene_end end;
	u64 pmis = 0;

	exits = D04_EXITS;
	for (attempt = 0; attempt < (failed ? MORE : ATTEMPTS); attempt++) {
		if (attempt) {
			if (seen_d04(s))
				break;
			host_pt_close(&pt);
			vcpu_close(&s->vcpu);
			vm_close(&s->vm);
		}
		scene_open(s, true);
		if (!open_host(LARGE_AUX))
			return;
		end = trace_both(s, 1, keep_tracing);
		all += s->outs;
		failed += end != SCENE_DONE;
		pmis += !!(s->ops[status].result & TOPA_PMI);
	}
	if (most > pt.aux_size)
		fault("after %u exits: perf says %llu bytes came into a buffer of %zu", all,
		      (unsigned long long)most, pt.aux_size);
	else if (seen_d04(s))
		fault("after %u exits: %s", all, s->line);
	else if (failed)
		fault("after %u exits: %u guests of %u did not end", all, failed, attempt);
	else if (!total || pmis != attempt)
		fault("after %u exits: %llu bytes of the host's trace, PMIs in %llu guests of %u",
		      all, (unsigned long long)total, (unsigned long long)pmis, attempt);
	else
		ok("not seen in %u exits, %llu bytes of the host's trace, PMIs in each of %u guests",
		   all, (unsigned long long)total, attempt);
}

/*
 * Let the host's buffer fill until perf has stopped the trace, check that the processor no longer
 * traces, and make room for the next time. A PMI that KVM took for the guest's leaves perf waiting
 * forever: then restart it, too.
 */
static void let_it_fill(struct scene *s, u32 word)
{
	static u64 before;
	static u32 still;
	u64 ctl = 0;

	(void)word;
	busy(s);
	if (!host_on)
		return;
	still = host_pt_head(&pt) == before ? still + 1 : 0;
	before = host_pt_head(&pt);
	if (host_pt_full(&pt)) {
		stopped++;
		if (!host_rdmsr(VMPT_MSR_RTIT_CTL, &ctl) && ctl & VMPT_CTL_TRACE_EN)
			stuck = s->outs;
	} else if (still < STILL) {
		return;
	}
	still = 0;
	host_pt_enable(&pt, false);
	host_pt_drain(&pt);
	host_pt_enable(&pt, true);
}

void fault_d18(struct scene *s)
{
	enum scene_end end;

	scene_open(s, false);
	if (!open_host(SMALL_AUX))
		return;
	end = trace_both(s, 0, let_it_fill);
	host_pt_close(&pt);
	if (stuck)
		fault("after %u exits RTIT_CTL.TraceEn is 1 with perf's buffer full and its event stopped",
		      stuck);
	else if (end != SCENE_DONE)
		fault("after %u exits: %s %#llx", s->outs, scene_end_name(end),
		      (unsigned long long)s->reason);
	else if (!stopped)
		fault("after %u exits: perf's buffer was never full", s->outs);
	else
		ok("not seen in %u exits, perf's buffer was full %u times", s->outs, stopped);
}
