// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The contest: all run in turn, round after round, so that disturbances affect all; the best round
 * of each counts. Every round's counts must agree with each other, with libipt's and with the
 * generator's.
 */
#include <stdio.h>
#include <time.h>

#include "bench/bench.h"

const struct bench_goal bench_goals[BENCH_GOALS] = {
	{ "index + split / libipt", 10, BENCH_FIRST, BENCH_RATIO, BENCH_SPLIT, BENCH_LIBIPT },
	{ "index + split / libipt", 8, BENCH_COMMON | BENCH_CYCLES, BENCH_RATIO, BENCH_SPLIT,
	  BENCH_LIBIPT },
	{ "index + split / libipt", 5, BENCH_HARD, BENCH_RATIO, BENCH_SPLIT, BENCH_LIBIPT },
	{ "full iteration / libipt", 4, BENCH_FIRST, BENCH_RATIO, BENCH_BATCH, BENCH_LIBIPT },
	{ "full iteration / libipt", 3, BENCH_COMMON, BENCH_RATIO, BENCH_BATCH, BENCH_LIBIPT },
	{ "full iteration / libipt", 2.5, BENCH_CYCLES, BENCH_RATIO, BENCH_BATCH, BENCH_LIBIPT },
	{ "full iteration / libipt", 1.5, BENCH_HARD, BENCH_RATIO, BENCH_BATCH, BENCH_LIBIPT },
	{ "index + split, MB/s", 100, BENCH_RTIT, BENCH_SPEED, BENCH_SPLIT, 0 },
	{ "full iteration, MB/s", 100, BENCH_RTIT, BENCH_SPEED, BENCH_BATCH, 0 },
	{ "streams by owner, MB/s", 100, BENCH_RTIT, BENCH_SPEED, BENCH_EXTRACT, 0 },
	{ "index + split, 2 threads / 1", 1.7, BENCH_FIRST, BENCH_GAIN, BENCH_SPLIT_2,
	  BENCH_SPLIT },
	{ "full iteration, 2 threads / 1", 1.7, BENCH_FIRST, BENCH_GAIN, BENCH_BATCH_2,
	  BENCH_BATCH },
	{ "iteration with times / without", 0.5, BENCH_FIRST, BENCH_RATIO, BENCH_TIMED,
	  BENCH_BATCH },
	{ "timeline / iteration", 0.2, BENCH_FIRST, BENCH_RATIO, BENCH_TIMELINE, BENCH_BATCH },
	{ "memory beyond the input, MiB", 64, BENCH_ANY, BENCH_MEMORY, 0, 0 },
};

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double bench_seconds(const struct bench_result *r, unsigned int id)
{
	return bench_contests[id].threads > 1 ? r->time[id].wall : r->time[id].cpu;
}

static double rate(const struct bench_result *r, enum bench_contest_id id)
{
	size_t bytes = id == BENCH_LIBIPT ? r->input.ipt.size : r->input.vmpt.size;

	return r->time[id].runs ? (double)bytes / bench_seconds(r, id) : 0;
}

static double ratio(const struct bench_result *r, enum bench_contest_id a, enum bench_contest_id b)
{
	return rate(r, a) > 0 && rate(r, b) > 0 ? rate(r, a) / rate(r, b) : -1;
}

/* Speedup of two threads over one, by wall time. */
static double gain(const struct bench_result *r, enum bench_contest_id two,
		   enum bench_contest_id one)
{
	return r->time[two].runs ? r->time[one].wall / r->time[two].wall : -1;
}

bool bench_contest_applies(const struct bench_result *r, unsigned int id)
{
	return r->input.isa == VMPT_ISA_PT || bench_contests[id].rtit;
}

bool bench_goal_applies(const struct bench_result *r, unsigned int i)
{
	return r->input.class & bench_goals[i].inputs;
}

double bench_goal_want(const struct bench_result *r, unsigned int i)
{
	double part = r->goals / 100.0;

	return bench_goals[i].measure == BENCH_MEMORY ? bench_goals[i].want / part
						      : bench_goals[i].want * part;
}

double bench_goal_value(const struct bench_result *r, unsigned int i)
{
	const struct bench_goal *g = &bench_goals[i];

	if (!bench_goal_applies(r, i))
		return -1;
	switch (g->measure) {
	case BENCH_RATIO:
		return ratio(r, g->of, g->to);
	case BENCH_GAIN:
		return gain(r, g->of, g->to);
	case BENCH_SPEED:
		return rate(r, g->of) / 1e6;
	default:
		return (double)r->rss / (1 << 20);
	}
}

bool bench_goal_met(const struct bench_result *r, unsigned int i)
{
	double v = bench_goal_value(r, i), want = bench_goal_want(r, i);

	return bench_goals[i].measure == BENCH_MEMORY ? v <= want : v >= want;
}

/* Between rounds. With threads the places where runs are split may depend on timing. */
static bool same_count(const struct bench_count *a, const struct bench_count *b,
		       unsigned int threads)
{
	return a->packets == b->packets && a->losses == b->losses &&
	       (threads > 1 || (a->items == b->items && a->sum == b->sum));
}

static void keep_least(double *best, double v, unsigned int runs)
{
	if (!runs || v < *best)
		*best = v;
}

static int run_one(struct bench_result *r, enum bench_contest_id id)
{
	const struct bench_contest *c = &bench_contests[id];
	struct bench_time *best = &r->time[id];
	struct bench_count count = { 0 };
	double wall, cpu;

	/* If pinning fails, the report says so. */
	if (c->threads > 1)
		bench_unpin();
	else
		bench_pin();
	wall = seconds(CLOCK_MONOTONIC);
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	if (c->run(&r->input, c, &count, NULL))
		return -1;
	wall = seconds(CLOCK_MONOTONIC) - wall;
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	if (best->runs && !same_count(&best->count, &count, c->threads)) {
		fprintf(stderr, "vmpt-bench: counts of %s for %s differ between rounds\n", c->title,
			r->input.name);
		return -1;
	}
	/* A round too short for the clock must not divide by 0. */
	keep_least(&best->wall, wall > 1e-9 ? wall : 1e-9, best->runs);
	keep_least(&best->cpu, cpu > 1e-9 ? cpu : 1e-9, best->runs);
	best->count = count;
	best->runs++;
	return 0;
}

static int check_equal(const struct bench_result *r, const char *what, u64 a, const char *who_a,
		       u64 b, const char *who_b)
{
	if (a == b)
		return 0;
	fprintf(stderr, "vmpt-bench: %s: %llu %s by %s, %llu by %s\n", r->input.name,
		(unsigned long long)a, what, who_a, (unsigned long long)b, who_b);
	return -1;
}

/* vmpt's count in the stream that libipt got. */
static int count_common(struct bench_result *r)
{
	struct bench_input in = r->input;
	struct bench_count count = { 0 };

	if (in.same || in.isa == VMPT_ISA_RTIT) {
		r->common_packets = r->time[BENCH_BATCH].count.packets;
		return 0;
	}
	in.vmpt = in.ipt;
	if (bench_contests[BENCH_BATCH].run(&in, &bench_contests[BENCH_BATCH], &count, NULL))
		return -1;
	r->common_packets = count.packets;
	return 0;
}

static int check_counts(struct bench_result *r)
{
	const struct bench_count *ipt = &r->time[BENCH_LIBIPT].count;
	const struct bench_count *split = &r->time[BENCH_SPLIT].count;
	const struct bench_count *batch = &r->time[BENCH_BATCH].count;
	const struct bench_count *packet = &r->time[BENCH_PACKET].count;
	const struct bench_count *extract = &r->time[BENCH_EXTRACT].count;
	const struct bench_count *split2 = &r->time[BENCH_SPLIT_2].count;
	const struct bench_count *batch2 = &r->time[BENCH_BATCH_2].count;
	int bad = count_common(r);

	if (r->time[BENCH_LIBIPT].runs)
		bad |= check_equal(r, "packets", ipt->packets, "libipt", r->common_packets, "vmpt");
	bad |= check_equal(r, "packets", batch->packets, "batch", packet->packets, "packet");
	bad |= check_equal(r, "losses", batch->losses, "batch", packet->losses, "packet");
	bad |= check_equal(r, "slices", split->items, "split", extract->items, "extract");
	bad |= check_equal(r, "losses", split->losses, "split", extract->losses, "extract");
	if (r->time[BENCH_TIMED].runs)
		bad |= check_equal(r, "packets", batch->packets, "batch",
				   r->time[BENCH_TIMED].count.packets, "timed");
	if (r->input.same)
		bad |= check_equal(r, "losses", ipt->losses, "libipt", batch->losses, "vmpt");
	if (r->input.vmpt.packets)
		bad |= check_equal(r, "packets", r->input.vmpt.packets, "the generator",
				   batch->packets, "vmpt");
	if (r->input.ipt.packets)
		bad |= check_equal(r, "packets", r->input.ipt.packets, "the generator",
				   ipt->packets, "libipt");
	if (r->time[BENCH_SPLIT_2].runs) {
		bad |= check_equal(r, "slices", split->items, "1 thread", split2->items,
				   "2 threads");
		bad |= check_equal(r, "sum over slices", split->sum, "1 thread", split2->sum,
				   "2 threads");
		bad |= check_equal(r, "packets", batch->packets, "1 thread", batch2->packets,
				   "2 threads");
	}
	return bad ? -1 : 0;
}

static int measure_memory(struct bench_result *r)
{
	static const enum bench_contest_id who[] = { BENCH_SPLIT, BENCH_BATCH, BENCH_SPLIT_2,
						     BENCH_BATCH_2 };
	unsigned int i;
	u64 rss;

	for (i = 0; i < VMPT_ARRAY_SIZE(who); i++) {
		if (!bench_contest_applies(r, who[i]))
			continue;
		rss = bench_memory(&r->input, &bench_contests[who[i]]);
		if (!rss)
			return -1;
		if (rss > r->rss)
			r->rss = rss;
	}
	return 0;
}

int bench_rounds(struct bench_result *r, unsigned int rounds, unsigned int cores)
{
	unsigned int i, id;

	for (i = 0; i < rounds; i++)
		for (id = 0; id < BENCH_CONTESTS; id++)
			if (bench_contests[id].threads <= cores && bench_contest_applies(r, id) &&
			    run_one(r, id))
				return -1;
	if (check_counts(r) || measure_memory(r))
		return -1;
	r->done = true;
	return 0;
}
