// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * decoder/timeline/: traces of machines whose CPUs run in parallel, with known runs and exit
 * reasons.
 */
#include <stdlib.h>

#include "tests/decoder/timeline-machine.h"

#define SPANS_MAX 200000

static struct tl_machine *m;
static struct vmpt_clocks *clocks;
static const struct vmpt_stream *stream[TL_CPUS];
static struct vmpt_span span[SPANS_MAX];
static size_t spans;

static void close_all(void)
{
	vmpt_clocks_close(clocks);
	clocks = NULL;
	tl_free(m);
	m = NULL;
}

/* All spans of the machine's streams into span[]. */
static void read_spans(unsigned int cpus, const struct vmpt_timeline_options *options)
{
	struct vmpt_clocks_options co = { .rates = tl_rates() };
	struct vmpt_timeline *t;
	int ret;

	ck_assert_int_eq(vmpt_clocks_open(&clocks, stream, cpus, &co), 0);
	ck_assert_int_eq(vmpt_timeline_open(&t, clocks, stream, cpus, options), 0);
	for (spans = 0; (ret = vmpt_timeline_next(t, &span[spans])) > 0; spans++)
		ck_assert_uint_lt(spans, SPANS_MAX - 1);
	ck_assert_int_eq(ret, 0);
	vmpt_timeline_close(t);
}

static void make(const struct tl_options *o, const struct vmpt_timeline_options *options)
{
	unsigned int i;

	m = tl_new(o);
	tl_go(m);
	for (i = 0; i < o->cpus; i++)
		stream[i] = tl_stream(m, i);
	read_spans(o->cpus, options);
}

/* ---- invariants of all spans ---- */

/* Spans of one stream are contiguous, each where and when the one before ended; all by start. */
static void check_sequence(unsigned int cpus)
{
	const struct vmpt_span *last[TL_CPUS] = { 0 };
	u64 before = 0;
	unsigned int k;
	size_t i;

	for (i = 0; i < spans; i++) {
		const struct vmpt_span *s = &span[i], *l = last[s->stream];

		ck_assert_uint_lt(s->stream, cpus);
		ck_assert_uint_eq(s->offset, l ? l->offset + l->size : 0);
		if (l) {
			ck_assert_uint_eq(s->start.tsc, l->end.tsc);
			ck_assert_uint_eq(s->start.early, l->end.early);
			ck_assert_uint_eq(s->start.late, l->end.late);
		}
		ck_assert_uint_ge(s->end.tsc, s->start.tsc);
		ck_assert_uint_ge(s->start.tsc, before);
		before = s->start.tsc;
		last[s->stream] = s;
	}
	for (k = 0; k < cpus; k++) {
		ck_assert_ptr_nonnull(last[k]);
		ck_assert_uint_eq(last[k]->offset + last[k]->size, stream[k]->size);
	}
}

static void check_time(const struct vmpt_time *t, u64 truth)
{
	ck_assert_msg(t->tsc != VMPT_TIME_NONE && truth + t->early >= t->tsc &&
			      truth <= t->tsc + (u64)t->late,
		      "%llx -%x +%x for %llx", (unsigned long long)t->tsc, t->early, t->late,
		      (unsigned long long)truth);
}

static void check_run(const struct vmpt_span *s, const struct tl_run *run)
{
	ck_assert_ptr_nonnull(run);
	ck_assert_int_eq(s->owner.kind, VMPT_OWNER_VM);
	ck_assert_uint_eq(s->owner.vmcs, tl_vmcs(run->guest));
	ck_assert_int_eq(s->began, VMPT_EDGE_ENTRY);
	ck_assert_int_eq(s->ended, VMPT_EDGE_EXIT);
	check_time(&s->start, run->entry);
	check_time(&s->end, run->exit);
	ck_assert(s->exit.has_ip);
	ck_assert_uint_eq(s->exit.ip, run->ip);
	ck_assert_uint_eq(s->exit.cr3, 0x100000 + 0x1000 * run->guest);
}

/* The true run of each guest span, by their order on the CPU: sets run[] of each span. */
static const struct tl_run *run_of[SPANS_MAX];

static void check_runs(unsigned int cpus)
{
	const struct tl_run *list[TL_CPUS][20000];
	size_t count[TL_CPUS] = { 0 }, at[TL_CPUS] = { 0 }, n, i;
	const struct tl_run *run = tl_runs(m, &n);
	unsigned int k;

	for (i = 0; i < n; i++)
		list[run[i].cpu][count[run[i].cpu]++] = &run[i];
	for (i = 0; i < spans; i++) {
		run_of[i] = NULL;
		if (span[i].kind != VMPT_SPAN_GUEST)
			continue;
		k = span[i].stream;
		ck_assert_uint_lt(at[k], count[k]);
		run_of[i] = list[k][at[k]++];
		check_run(&span[i], run_of[i]);
	}
	for (k = 0; k < cpus; k++)
		ck_assert_uint_eq(at[k], count[k]);
}

/* ---- order ---- */

struct transition {
	struct vmpt_time time;
	u64 truth;
};

static int by_time(const void *a, const void *b)
{
	const struct transition *x = a, *y = b;

	return x->time.tsc < y->time.tsc ? -1 : x->time.tsc > y->time.tsc;
}

/* In the timeline's order the true times never fall by more than the bounds allow. */
static void check_order(u64 limit)
{
	static struct transition list[2 * SPANS_MAX];
	size_t i, n = 0;
	u64 high = 0;

	for (i = 0; i < spans; i++) {
		if (!run_of[i])
			continue;
		list[n++] = (struct transition){ span[i].start, run_of[i]->entry };
		list[n++] = (struct transition){ span[i].end, run_of[i]->exit };
	}
	qsort(list, n, sizeof(*list), by_time);
	for (i = 0; i < n; i++) {
		ck_assert_msg(list[i].truth + limit >= high, "out of order by %llu",
			      (unsigned long long)(high - list[i].truth));
		if (list[i].truth > high)
			high = list[i].truth;
	}
}

static const struct {
	bool cyc, evd;
	unsigned int threads;
} ways[] = {
	{ false, false, 1 },
	{ true, false, 1 },
	{ false, true, 3 },
	{ true, true, 2 },
};

START_TEST(all_transitions)
{
	struct tl_options o = { .cpus = 3, .guests = 5, .runs = 3000, .seed = 77 + (u64)_i };
	struct vmpt_timeline_options options = { .decode = { .threads = ways[_i].threads } };
	size_t i;

	o.cyc = ways[_i].cyc;
	o.evd = ways[_i].evd;
	make(&o, &options);
	check_sequence(o.cpus);
	check_runs(o.cpus);
	/* An MTC's period, or exact to the precision of cycles. */
	check_order(o.cyc ? 1 : (u64)TL_P << TL_FREQ);
	for (i = 0; i < spans; i++) {
		const struct vmpt_exit *e = &span[i].exit;

		ck_assert(span[i].kind == VMPT_SPAN_GUEST || span[i].kind == VMPT_SPAN_HOST);
		if (!run_of[i])
			continue;
		ck_assert_int_eq(e->source, o.evd ? VMPT_REASON_EVD : VMPT_REASON_NONE);
		ck_assert_uint_eq(e->reason, o.evd ? run_of[i]->reason : VMPT_REASON_UNKNOWN);
		ck_assert_int_eq(e->has_qualification, o.evd);
		if (o.evd)
			ck_assert_uint_eq(e->qualification, 0x40 + run_of[i]->guest);
	}
	close_all();
}
END_TEST

/* The result does not depend on the number of threads. */
START_TEST(threads_find_the_same)
{
	struct tl_options o = { .cpus = 4, .guests = 6, .runs = 2000, .seed = 5, .halts = true };
	struct vmpt_timeline_options options = { .decode = { .threads = 1 } };
	struct vmpt_span *one;
	size_t n, i;

	make(&o, &options);
	n = spans;
	one = malloc(n * sizeof(*one));
	ck_assert_ptr_nonnull(one);
	memcpy(one, span, n * sizeof(*one));
	for (options.decode.threads = 2; options.decode.threads < 7; options.decode.threads++) {
		vmpt_clocks_close(clocks);
		memset(span, 0, sizeof(span));
		read_spans(o.cpus, &options);
		ck_assert_uint_eq(spans, n);
		for (i = 0; i < n; i++)
			ck_assert_mem_eq(&span[i], &one[i], sizeof(*one));
	}
	free(one);
	close_all();
}
END_TEST

/* A timeline closed before its end leaves no thread running. */
START_TEST(threads_stop_early)
{
	struct tl_options o = { .cpus = 3, .guests = 3, .runs = 6000, .seed = 6 };
	struct vmpt_timeline_options options = { .decode = { .threads = 3 } };
	struct vmpt_clocks_options co = { .rates = tl_rates() };
	struct vmpt_timeline *t;
	unsigned int i;

	m = tl_new(&o);
	tl_go(m);
	for (i = 0; i < o.cpus; i++)
		stream[i] = tl_stream(m, i);
	ck_assert_int_eq(vmpt_clocks_open(&clocks, stream, o.cpus, &co), 0);
	for (i = 0; i < 20; i++) {
		unsigned int k;

		ck_assert_int_eq(vmpt_timeline_open(&t, clocks, stream, o.cpus, &options), 0);
		for (k = 0; k < 37 * i; k++)
			ck_assert_int_eq(vmpt_timeline_next(t, &span[0]), 1);
		vmpt_timeline_close(t);
	}
	close_all();
}
END_TEST

/* ---- reasons ---- */

static struct vmpt_event event[20000];

/* KVM's tracepoint comes some time after each exit; every @leave_out-th is lost. */
static size_t make_events(size_t leave_out)
{
	size_t n, i, k = 0;
	const struct tl_run *run = tl_runs(m, &n);

	for (i = 0; i < n; i++) {
		if (leave_out && i % leave_out == 0)
			continue;
		event[k++] = (struct vmpt_event){
			.tsc = run[i].exit + 150,
			.time = 1,
			.cpu = (int)run[i].cpu,
			.ip = run[i].ip,
			.reason = run[i].reason,
			.kind = VMPT_EVENT_KVM_EXIT,
		};
	}
	return k;
}

static int by_tsc(const void *a, const void *b)
{
	const struct vmpt_event *x = a, *y = b;

	return x->tsc < y->tsc ? -1 : x->tsc > y->tsc;
}

/* Reasons by KVM's events; an exit whose event is lost does not get another's. */
START_TEST(events_tell_reasons)
{
	struct tl_options o = { .cpus = 2, .guests = 4, .runs = 2000, .seed = 9 };
	struct vmpt_timeline_options options = { .events = event };
	size_t i, left_out = _i ? 7 : 0, given = 0;
	unsigned int k;

	o.cyc = _i == 2;
	m = tl_new(&o);
	tl_go(m);
	options.event_count = make_events(left_out);
	qsort(event, options.event_count, sizeof(*event), by_tsc);
	for (k = 0; k < o.cpus; k++)
		stream[k] = tl_stream(m, k);
	read_spans(o.cpus, &options);
	check_runs(o.cpus);
	for (i = 0; i < spans; i++) {
		if (!run_of[i] || span[i].exit.source == VMPT_REASON_NONE)
			continue;
		ck_assert_int_eq(span[i].exit.source, VMPT_REASON_EVENT);
		ck_assert_uint_eq(span[i].exit.reason, run_of[i]->reason);
		given++;
	}
	ck_assert_uint_eq(given, options.event_count);
	close_all();
}
END_TEST

/* HLT by the following packets: another process, then the next byte. Nothing else counts as HLT. */
START_TEST(halts_by_pattern)
{
	struct tl_options o = { .cpus = 1, .guests = 1, .runs = 900, .seed = 3, .halts = true };
	size_t i, halts = 0, found = 0;

	make(&o, NULL);
	check_runs(o.cpus);
	for (i = 0; i < spans; i++) {
		if (!run_of[i])
			continue;
		halts += run_of[i]->reason == 12;
		if (span[i].exit.source == VMPT_REASON_NONE)
			continue;
		found++;
		ck_assert_int_eq(span[i].exit.source, VMPT_REASON_PATTERN);
		ck_assert_uint_eq(span[i].exit.reason, 12);
		ck_assert_uint_eq(run_of[i]->reason, 12);
		ck_assert(span[i].exit.halted);
	}
	/* The last one may be the trace's last. */
	ck_assert_uint_ge(halts, 200);
	ck_assert_uint_ge(found + 1, halts);
	close_all();
}
END_TEST

struct asked {
	size_t count, next, idle;
};

static u16 guess(void *opaque, const struct vmpt_exit_place *place, bool *no_halt)
{
	struct asked *asked = opaque;

	*no_halt = false;
	asked->count++;
	asked->next += place->has_next;
	asked->idle += place->idle;
	ck_assert_int_eq(place->owner.kind, VMPT_OWNER_VM);
	ck_assert_uint_eq(place->cr3, 0x100000 + (place->owner.vmcs & 0xfffff));
	/* As if the code were known: an instruction of two bytes was emulated for the guest. */
	return place->has_next && place->next == place->ip + 2 ? 10 : VMPT_REASON_UNKNOWN;
}

START_TEST(guesses_by_code)
{
	struct tl_options o = { .cpus = 1, .guests = 2, .runs = 600, .seed = 11 };
	struct asked asked = { 0 };
	struct vmpt_timeline_options options = { .guess = guess, .guess_opaque = &asked };
	size_t i, n = 0;

	make(&o, &options);
	check_runs(o.cpus);
	/* Each is passed once; for all but the last of each guest the next IP is known. */
	ck_assert_uint_eq(asked.count, o.runs);
	ck_assert_uint_eq(asked.next, o.runs - o.guests);
	ck_assert_uint_gt(asked.idle, 0);
	for (i = 0; i < spans; i++) {
		u16 reason = run_of[i] ? run_of[i]->reason : 0;
		bool two = reason == 10 || reason == 30 || reason == 31;

		if (!run_of[i] || span[i].exit.source == VMPT_REASON_NONE)
			continue;
		n++;
		ck_assert_int_eq(span[i].exit.source, VMPT_REASON_CODE);
		ck_assert_uint_eq(span[i].exit.reason, 10);
		ck_assert(two && !span[i].exit.halted);
	}
	ck_assert_uint_gt(n, 150);
	close_all();
}
END_TEST

/* ---- missing parts ---- */

static const struct vmpt_span *find_kind(u8 kind, size_t *count)
{
	const struct vmpt_span *found = NULL;
	size_t i;

	for (*count = 0, i = 0; i < spans; i++)
		if (span[i].kind == kind) {
			found = &span[i];
			++*count;
		}
	return found;
}

/* The recorder dropped some bytes: a loss of no bytes that lasts as long as it took. */
START_TEST(a_gap)
{
	struct tl_options o = { .cpus = 1, .guests = 1, .runs = 400, .seed = 21 };
	struct vmpt_gap gap = { .flags = VMPT_GAP_TRUNCATED };
	const struct vmpt_stream *whole;
	const struct vmpt_span *lost;
	struct vmpt_stream cut;
	size_t psb = 0, from, n, i;
	u8 *bytes;

	m = tl_new(&o);
	tl_go(m);
	whole = tl_stream(m, 0);
	/* From somewhere in the first half to the PSB after the middle. */
	from = whole->size / 3;
	for (i = whole->size / 2; !psb && i + 16 < whole->size; i++)
		if (!memcmp(whole->data + i, "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82", 10))
			psb = i;
	ck_assert_uint_gt(psb, from);
	cut = *whole;
	cut.size = whole->size - (psb - from);
	bytes = malloc(cut.size);
	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, whole->data, from);
	memcpy(bytes + from, whole->data + psb, whole->size - psb);
	cut.data = bytes;
	gap.offset = from;
	cut.gaps = &gap;
	cut.gap_count = 1;
	stream[0] = &cut;
	read_spans(1, NULL);
	check_sequence(1);
	lost = find_kind(VMPT_SPAN_LOST, &n);
	ck_assert_uint_eq(n, 1);
	ck_assert_uint_eq(lost->offset + lost->size, from);
	ck_assert_uint_le(lost->size, 16); /* a packet that is cut */
	/* It lasts as long as the missing runs. */
	for (i = 0; i < spans && span[i].start.tsc < lost->end.tsc; i++)
		ck_assert_msg(span[i].end.tsc <= lost->end.tsc, "span %zu of the past", i);
	ck_assert_uint_gt(lost->end.tsc - lost->start.tsc, 100000);
	ck_assert_int_eq(lost[-1].ended, VMPT_EDGE_UNKNOWN);
	ck_assert_int_eq(lost[1].began, VMPT_EDGE_UNKNOWN);
	ck_assert_uint_ne(lost[1].start.late, VMPT_TIME_OPEN);
	free(bytes);
	close_all();
}
END_TEST

/* Tracing was off for a while: that is not the host's time. */
START_TEST(tracing_off)
{
	struct tl_options o = { .cpus = 1, .guests = 2, .runs = 100, .seed = 31 };
	const struct vmpt_span *off;
	u64 from, to;
	size_t n;

	m = tl_new(&o);
	tl_go(m);
	tl_off(m, 0, 5000000, &from, &to);
	tl_go(m);
	stream[0] = tl_stream(m, 0);
	read_spans(1, NULL);
	check_sequence(1);
	check_runs(1);
	off = find_kind(VMPT_SPAN_OFF, &n);
	ck_assert_uint_eq(n, 1);
	check_time(&off->start, from);
	check_time(&off->end, to);
	ck_assert_int_eq(off[-1].kind, VMPT_SPAN_HOST);
	ck_assert_int_eq(off[-1].ended, VMPT_EDGE_TRACE);
	ck_assert_int_eq(off[1].kind, VMPT_SPAN_HOST);
	ck_assert_int_eq(off[1].began, VMPT_EDGE_TRACE);
	close_all();
}
END_TEST

/* More stops in one slice than a lane keeps spans. */
START_TEST(off_many_times)
{
	struct tl_options o = { .cpus = 1, .guests = 1, .runs = 1, .seed = 41 };
	size_t n, i;
	u64 from, to;

	m = tl_new(&o);
	for (i = 0; i < 3000; i++)
		tl_off(m, 0, 10000, &from, &to);
	stream[0] = tl_stream(m, 0);
	read_spans(1, NULL);
	check_sequence(1);
	find_kind(VMPT_SPAN_OFF, &n);
	ck_assert_uint_eq(n, 3000);
	close_all();
}
END_TEST

/* No packet at all before a time is known, and bytes that are no trace. */
START_TEST(bad_streams)
{
	static u8 bytes[4096];
	struct vmpt_stream s = { .data = bytes, .size = sizeof(bytes), .cpu = 0, .tid = -1 };
	struct vmpt_timeline *t;
	struct test_rng rng = { .state = 99 + (u64)_i };
	size_t i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (u8)test_random(&rng);
	/* A PSB first. */
	for (i = 0; _i % 2 && i < 16; i++)
		bytes[i] = i % 2 ? 0x82 : 0x02;
	stream[0] = &s;
	read_spans(1, NULL);
	ck_assert_uint_gt(spans, 0);
	ck_assert_uint_eq(span[0].offset, 0);
	for (i = 1; i < spans; i++)
		ck_assert_uint_eq(span[i].offset, span[i - 1].offset + span[i - 1].size);
	ck_assert_uint_eq(span[spans - 1].offset + span[spans - 1].size, s.size);
	ck_assert_int_eq(vmpt_timeline_open(&t, clocks, stream, 0, NULL), -VMPT_E_INVAL);
	s.isa = VMPT_ISA_RTIT;
	ck_assert_int_eq(vmpt_timeline_open(&t, clocks, stream, 1, NULL), -VMPT_E_UNSUPPORTED);
	vmpt_clocks_close(clocks);
	clocks = NULL;
}
END_TEST

/* SDM 3, Appendix C, Table C-1. */
START_TEST(names_of_reasons)
{
	static const unsigned int none[] = { 35, 38, 42, 71, 82, 83, 86, 0xffff };
	size_t i;

	ck_assert_str_eq(vmpt_exit_reason_name(0), "exception or NMI");
	ck_assert_str_eq(vmpt_exit_reason_name(12), "HLT");
	ck_assert_str_eq(vmpt_exit_reason_name(28), "control-register access");
	ck_assert_str_eq(vmpt_exit_reason_name(32), "WRMSR");
	ck_assert_str_eq(vmpt_exit_reason_name(48), "EPT violation");
	ck_assert_str_eq(vmpt_exit_reason_name(52), "preemption timer");
	ck_assert_str_eq(vmpt_exit_reason_name(63), "XSAVES");
	ck_assert_str_eq(vmpt_exit_reason_name(74), "bus lock");
	for (i = 0; i < VMPT_ARRAY_SIZE(none); i++)
		ck_assert_ptr_null(vmpt_exit_reason_name(none[i]));
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("timeline");
	TCase *tc = tcase_create("spans"), *threads = tcase_create("threads");

	tcase_add_loop_test(tc, all_transitions, 0, VMPT_ARRAY_SIZE(ways));
	tcase_add_loop_test(tc, events_tell_reasons, 0, 3);
	tcase_add_test(tc, halts_by_pattern);
	tcase_add_test(tc, guesses_by_code);
	tcase_add_test(tc, a_gap);
	tcase_add_test(tc, tracing_off);
	tcase_add_test(tc, off_many_times);
	tcase_add_loop_test(tc, bad_streams, 0, 40);
	tcase_add_test(tc, names_of_reasons);
	suite_add_tcase(s, tc);
	tcase_add_test(threads, threads_find_the_same);
	tcase_add_test(threads, threads_stop_early);
	suite_add_tcase(s, threads);
	return s;
}
