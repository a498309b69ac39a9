// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Decode the trace with the flow decoder and compare it with what was executed; decode again from a
 * PSB in the middle and compare with the first time.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rtit/packets.h"
#include "tests/rtit/programs/program.h"
#include "util/array.h"

/* What the decoder reported with the packet at an offset: an instruction or an event. */
struct report {
	u64 offset, from, to;
	u8 kind; /* enum rtit_flow_event_kind or INSN */
};

#define INSN 0xff

struct list {
	struct report *reports;
	size_t n;
};

struct code {
	const struct program *program;
	struct rtit_insn insn[PROGRAM_REGIONS][PROGRAM_INSNS]; /* len 0: not decoded yet */
};

struct walk {
	struct code *code;
	const struct rtit_execution *done;
	u32 errata;   /* those that are switched on */
	u64 *applied; /* how often each workaround was applied */
	size_t at, event, quiet;
	struct list list;
	char error[200];
};

/* ---- code ---- */

static bool insn_at(struct code *code, u64 ip, struct rtit_insn *insn)
{
	const struct program_region *r = program_region_at(code->program, ip);
	struct rtit_insn *known;
	size_t at;

	if (!r || r->at[ip - r->base] == PROGRAM_NO_INSN)
		return false;
	at = (size_t)(ip - r->base);
	known = &code->insn[r - code->program->region][r->at[at]];
	if (!known->len && !rtit_insn_decode(known, ip, r->code + at, r->size - at, r->mode))
		return false;
	*insn = *known;
	return true;
}

/* ---- the whole trace against the truth ---- */

static void keep(struct list *list, u64 offset, unsigned int kind, u64 from, u64 to)
{
	if (vmpt_grow(&list->reports, list->n))
		ck_abort_msg("no memory");
	list->reports[list->n++] =
		(struct report){ .offset = offset, .from = from, .to = to, .kind = (u8)kind };
}

static bool insn(void *opaque, u64 ip, struct rtit_insn *out)
{
	struct walk *w = opaque;

	return insn_at(w->code, ip, out);
}

/* Packets were disabled before the current item, and the decoder has reported it. */
static bool quiets_reported(struct walk *w)
{
	const struct rtit_truth_quiet *q = w->done->quiet + w->quiet;

	for (; w->quiet < w->done->quiets && q->at <= w->at; q++, w->quiet++) {
		if (q->unsure)
			continue;
		snprintf(w->error, sizeof(w->error), "packets were disabled at %#llx, not decoded",
			 (unsigned long long)q->from);
		return false;
	}
	return true;
}

static bool executed(void *opaque, u64 ip, u64 offset)
{
	struct walk *w = opaque;
	const struct rtit_execution *done = w->done;

	keep(&w->list, offset, INSN, ip, 0);
	if (!quiets_reported(w))
		return false;
	if (w->at < done->insns && done->insn[w->at] == ip) {
		w->at++;
		return true;
	}
	snprintf(w->error, sizeof(w->error), "offset %#llx: decoded %#llx, executed %#llx",
		 (unsigned long long)offset, (unsigned long long)ip,
		 w->at < done->insns ? (unsigned long long)done->insn[w->at] : 0ULL);
	return false;
}

static bool same(const struct rtit_truth_event *t, const struct rtit_flow_event *e, size_t at)
{
	if (t->kind != e->kind || at > t->at || (at < t->sure && !t->passes))
		return false;
	switch (t->kind) {
	case RTIT_FLOW_PAGING:
		return e->cr3 == t->cr3 && e->paging;
	case RTIT_FLOW_STOP:
		return true;
	default:
		return e->to == t->to && t->from - e->from <= t->slack;
	}
}

static const char *const names[] = { "enabled",	 "disabled", "quiet",  "far",  "left",
				     "overflow", "stop",     "paging", "lost", "erratum" };

static bool differ(struct walk *w, const struct rtit_flow_event *e,
		   const struct rtit_truth_event *t)
{
	int n = snprintf(w->error, sizeof(w->error), "offset %#llx: decoded %s %#llx %#llx",
			 (unsigned long long)e->offset, names[e->kind], (unsigned long long)e->from,
			 (unsigned long long)e->to);

	if (t)
		snprintf(w->error + n, sizeof(w->error) - (size_t)n,
			 ", executed %s %#llx %#llx after instruction %zu to %zu", names[t->kind],
			 (unsigned long long)t->from, (unsigned long long)t->to, t->sure, t->at);
	return false;
}

static bool quiet(struct walk *w, const struct rtit_flow_event *e)
{
	const struct rtit_truth_quiet *q = w->done->quiet + w->quiet;

	for (; w->quiet < w->done->quiets && q->at < w->at && q->unsure; q++)
		w->quiet++;
	for (; w->quiet < w->done->quiets; q++) {
		w->quiet++;
		if (q->unsure ? w->at <= q->at : w->at == q->at && e->from == q->from)
			return true;
		if (!q->unsure)
			break;
	}
	return differ(w, e, NULL);
}

/*
 * A workaround for an erratum that this processor does not have must not apply. With E7 a right
 * MTC cannot be distinguished from a wrong one: it is always left out.
 */
static bool erratum(u32 errata, unsigned int number)
{
	return number == 7 || errata & VMPT_RTIT_ERRATUM(number);
}

static bool event(void *opaque, const struct rtit_flow_event *e)
{
	struct walk *w = opaque;
	const struct rtit_truth_event *t = NULL;

	if (e->kind == RTIT_FLOW_ERRATUM) {
		w->applied[e->number]++;
		if (erratum(w->errata, e->number))
			return true;
		snprintf(w->error, sizeof(w->error), "offset %#llx: a workaround of E%u",
			 (unsigned long long)e->offset, e->number);
		return false;
	}
	if (e->kind == RTIT_FLOW_QUIET)
		return quiet(w, e);
	keep(&w->list, e->offset, e->kind, e->from ^ e->cr3, e->to);
	while (w->event < w->done->events) {
		t = &w->done->event[w->event];
		if (same(t, e, w->at)) {
			if (!t->passes)
				w->at = t->at;
			w->event++;
			/* It shows nothing about the time before it. */
			if (t->kind == RTIT_FLOW_OVERFLOW && w->quiet < t->quiets)
				w->quiet = t->quiets;
			return true;
		}
		if (!t->optional)
			break;
		w->event++;
	}
	return differ(w, e, t);
}

static void finish(struct walk *w, const char *what, const struct rtit_flow_result *result)
{
	const struct rtit_execution *done = w->done;

	while (w->event < done->events && done->event[w->event].optional)
		w->event++;
	if (!*result->error && !*w->error && w->event == done->events && w->at >= done->sure)
		return;
	ck_abort_msg("%s: %s%s; instruction %zu of %zu to %zu, event %zu of %zu", what,
		     result->error, w->error, w->at, done->sure, done->insns, w->event,
		     done->events);
}

/* ---- from the middle ---- */

/*
 * After a PSB, LIPs may still be compressed against one before it, for as many packets as the
 * settings say, and one more for E3.
 */
#define NO_LIP_MORE 1u

struct middle {
	struct code *code;
	struct list list;
	u64 base; /* of its offsets in the whole stream */
	struct rtit_flow_result result;
	u64 may_lose; /* a LIP, within this many packets of the flow */
	bool lost;    /* a LIP, later than that */
	u32 errata;
	bool wrong; /* a workaround of an erratum that is off */
};

static bool middle_insn(void *opaque, u64 ip, struct rtit_insn *out)
{
	struct middle *m = opaque;

	return insn_at(m->code, ip, out);
}

static bool middle_executed(void *opaque, u64 ip, u64 offset)
{
	struct middle *m = opaque;

	keep(&m->list, m->base + offset, INSN, ip, 0);
	return true;
}

static bool middle_event(void *opaque, const struct rtit_flow_event *e)
{
	struct middle *m = opaque;

	m->lost |= e->kind == RTIT_FLOW_LOST && e->no_lip && m->result.flows > m->may_lose;
	/* The PSB it begins with may be an enable's: then a FUP.PGD after it would be E2's. */
	if (e->kind == RTIT_FLOW_ERRATUM && (e->number != 2 || m->result.flows))
		m->wrong |= !erratum(m->errata, e->number);
	if (e->kind != RTIT_FLOW_ERRATUM && e->kind != RTIT_FLOW_QUIET)
		keep(&m->list, m->base + e->offset, e->kind, e->from ^ e->cr3, e->to);
	return true;
}

/* Items reported with the packet at @offset, from @at on. */
static size_t group(const struct list *list, size_t at, u64 offset)
{
	size_t n = 0;

	while (at + n < list->n && list->reports[at + n].offset == offset)
		n++;
	return n;
}

static bool equal(const struct report *a, const struct report *b, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (a[i].kind != b[i].kind || a[i].from != b[i].from || a[i].to != b[i].to)
			return false;
	return true;
}

/* A PIP and a TraceStop do not show where the flow is. */
static bool shows_place(const struct report *report)
{
	return report->kind != RTIT_FLOW_PAGING && report->kind != RTIT_FLOW_STOP;
}

/*
 * Where the flow becomes known: what @part then reports was reported the first time too, right
 * before the end of this group, perhaps with an earlier packet: a PIP does not show the MOV CR3 if
 * it is unknown whether packets are enabled.
 */
static bool equal_back(const struct list *whole, size_t a, const struct report *part, size_t n)
{
	while (n) {
		while (n && !shows_place(&part[n - 1]))
			n--;
		while (a && !shows_place(&whole->reports[a - 1]))
			a--;
		if (n && (!a || !equal(&whole->reports[--a], &part[--n], 1)))
			return false;
	}
	return true;
}

/* The group in which the flow is lost: its beginning must match, the rest may be missing. */
static bool equal_to_loss(const struct report *whole, size_t na, const struct report *part,
			  size_t nb, bool known)
{
	return !known || (nb - 1 <= na && equal(whole, part, nb - 1));
}

/* Packet by packet: once the flow is known all must be as the first time, until it is lost. */
static size_t compare_lists(const struct list *whole, const struct list *part, u64 from)
{
	size_t a = 0, b = 0, na, nb, compared = 0;
	bool known = false, ok;

	if (!part->n || !whole->n)
		return part->n ? ~(size_t)0 : 0;
	while (a < whole->n && whole->reports[a].offset < from)
		a++;
	for (; a < whole->n || b < part->n; a += na, b += nb, compared += nb) {
		const struct report *p = part->reports + b;
		u64 offset = b < part->n ? p->offset : ~0ULL;

		if (a < whole->n && whole->reports[a].offset < offset)
			offset = whole->reports[a].offset;
		na = group(whole, a, offset);
		nb = group(part, b, offset);
		if (nb && p[nb - 1].kind == RTIT_FLOW_LOST) {
			ok = equal_to_loss(whole->reports + a, na, p, nb, known);
			known = false;
		} else if (known) {
			ok = na == nb && equal(whole->reports + a, p, nb);
		} else {
			ok = equal_back(whole, a + na, p, nb);
			known = nb && shows_place(&p[nb - 1]);
		}
		if (!ok)
			return ~(size_t)0;
	}
	return compared;
}

/* @bytes are what is left of the stream from @base on. */
static void check_middle(struct walk *w, const struct rtit_flow_options *options, u64 base,
			 const u8 *bytes, size_t size, unsigned int late, const char *what,
			 struct rtit_sums *sums)
{
	struct middle m = {
		.code = w->code, .base = base, .may_lose = late + NO_LIP_MORE, .errata = w->errata
	};
	struct rtit_flow_ops ops = { .insn = middle_insn,
				     .executed = middle_executed,
				     .event = middle_event,
				     .opaque = &m };
	struct rtit_flow_options middle = *options;
	struct rtit_flow_tnt *tnt = calloc(options->tnts + 1, sizeof(*tnt));
	size_t n;

	middle.middle = true;
	middle.tnt = tnt;
	middle.tnts = 0;
	for (n = 0; n < options->tnts; n++)
		if (options->tnt[n].offset > base) {
			tnt[middle.tnts] = options->tnt[n];
			tnt[middle.tnts++].offset -= base;
		}
	if (!rtit_flow_run(bytes, size, &middle, &ops, &m.result))
		ck_abort_msg("%s: from the middle, %#llx: %s", what, (unsigned long long)base,
			     m.result.error);
	if (m.lost)
		ck_abort_msg("%s: from the middle, %#llx: a LIP is compressed too late", what,
			     (unsigned long long)base);
	if (m.wrong)
		ck_abort_msg("%s: from the middle, %#llx: a workaround of an erratum that is off",
			     what, (unsigned long long)base);
	n = compare_lists(&w->list, &m.list, base);
	if (n == ~(size_t)0)
		ck_abort_msg(
			"%s: from the middle, %#llx: differs from the decode from the beginning",
			what, (unsigned long long)base);
	sums->middle += n;
	free(tnt);
	free(m.list.reports);
}

/* From some PSBs, and from what the circular buffer has left. */
static void check_parts(struct walk *w, const struct rtit_settings *s,
			const struct rtit_flow_options *options, const char *what,
			struct rtit_sums *sums)
{
	const struct rtit_execution *done = w->done;
	size_t ring = (size_t)s->limit_mask + 1, from, i;
	unsigned int late = s->options.psb_clears_late;
	u8 *left;

	for (i = 1; i < 4; i++) {
		from = rtit_psb_find(done->trace, done->size, done->size * i / 4);
		if (from < done->size)
			check_middle(w, options, from, done->trace + from, done->size - from, late,
				     what, sums);
	}
	if (done->size <= ring)
		return;
	left = malloc(ring);
	ck_assert_ptr_nonnull(left);
	from = done->size - ring;
	for (i = 0; i < ring; i++)
		left[i] = done->memory[(from + i) & s->limit_mask];
	ck_assert_msg(memcmp(left, done->trace + from, ring) == 0, "%s: the circular buffer", what);
	check_middle(w, options, from, left, ring, late, what, sums);
	sums->wrapped++;
	free(left);
}

void rtit_compare(const struct program *program, const struct rtit_settings *settings,
		  const struct rtit_execution *done, const char *what, struct rtit_sums *sums)
{
	struct walk w = { .done = done,
			  .errata = settings->options.errata,
			  .applied = sums->errata,
			  .code = calloc(1, sizeof(struct code)) };
	struct rtit_flow_ops ops = {
		.insn = insn, .executed = executed, .event = event, .opaque = &w
	};
	struct vmpt_rtit_regs regs = { .events = settings->events };
	struct rtit_flow_options options = { .cycle_acc = settings->ctl & VMPT_RTIT_CTL_CYCLE_ACC,
					     .overflow_nlip = settings->overflow_nlip,
					     .regs = &regs,
					     .tnt = done->tnt,
					     .tnts = done->tnts };
	struct rtit_flow_result result;
	unsigned int i;

	ck_assert_ptr_nonnull(w.code);
	w.code->program = program;
	for (i = 0; i < 4; i++)
		regs.lip[i] = settings->lip[i] & VMPT_RTIT_LIP_MASK;
	rtit_flow_run(done->trace, done->size, &options, &ops, &result);
	finish(&w, what, &result);
	check_parts(&w, settings, &options, what, sums);
	sums->insns += result.insns;
	sums->bytes += done->size;
	sums->overflows += done->overflows;
	sums->stops += done->stops;
	for (i = 0; i <= RTIT_FLOW_ERRATUM; i++)
		sums->events[i] += result.events[i];
	free(w.list.reports);
	free(w.code);
}
