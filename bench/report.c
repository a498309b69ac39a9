// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The figures, as a table for people and as JSON for comparing runs. */
#include <jansson.h>
#include <stdio.h>

#include "bench/bench.h"

/* If the best round's wall time exceeds its CPU time by this factor, the machine was busy. */
#define BUSY 1.05

static const struct bench_bytes *bytes_of(const struct bench_result *r, unsigned int id)
{
	return id == BENCH_LIBIPT ? &r->input.ipt : &r->input.vmpt;
}

/* Packets in the input of contestant @id, whether it counts them or not. */
static u64 packets_of(const struct bench_result *r, unsigned int id)
{
	return r->time[id == BENCH_LIBIPT ? BENCH_LIBIPT : BENCH_BATCH].count.packets;
}

static double mb_per_s(const struct bench_result *r, unsigned int id)
{
	return (double)bytes_of(r, id)->size / bench_seconds(r, id) / 1e6;
}

static bool is_decoder(unsigned int id)
{
	return id != BENCH_MEMMEM && id != BENCH_READ;
}

static void print_contest(const struct bench_result *r, unsigned int id)
{
	const struct bench_time *t = &r->time[id];
	double mb;

	if (!bench_contest_applies(r, id))
		return;
	if (!t->runs) {
		printf("  %-32s  not run: one core\n", bench_contests[id].title);
		return;
	}
	mb = mb_per_s(r, id);
	printf("  %-32s %9.0f", bench_contests[id].title, mb);
	if (is_decoder(id))
		printf(" %12.0f", (double)packets_of(r, id) / bench_seconds(r, id) / 1e6);
	else
		printf(" %12s", "-");
	if (r->time[BENCH_LIBIPT].runs)
		printf(" %10.2f", mb / mb_per_s(r, BENCH_LIBIPT));
	if (bench_contests[id].threads == 1 && t->wall > t->cpu * BUSY)
		printf("  (busy machine: %.0f MB/s by the wall clock)", mb * t->cpu / t->wall);
	printf("\n");
}

static void print_goal(const struct bench_result *r, unsigned int i)
{
	const struct bench_goal *g = &bench_goals[i];
	double v = bench_goal_value(r, i);

	printf("  goal: %-29s %s %-4g ", g->name,
	       g->measure == BENCH_MEMORY ? "<=" : ">=", bench_goal_want(r, i));
	if (v < 0)
		printf("not measured: one core\n");
	else
		printf("%8.2f  %s\n", v, bench_goal_met(r, i) ? "met" : "MISSED");
}

void bench_report_input(const struct bench_result *r)
{
	const struct bench_bytes *b = &r->input.vmpt;
	unsigned int i;

	printf("%s: %s\n", r->input.name, r->input.about);
	printf("  %zu bytes, %llu packets, %llu items, %llu slices, %llu losses\n", b->size,
	       (unsigned long long)r->time[BENCH_BATCH].count.packets,
	       (unsigned long long)r->time[BENCH_BATCH].count.items,
	       (unsigned long long)r->time[BENCH_SPLIT].count.items,
	       (unsigned long long)r->time[BENCH_BATCH].count.losses);
	printf("  %-32s %9s %12s %10s\n", "", "MB/s", "M packets/s",
	       r->time[BENCH_LIBIPT].runs ? "x libipt" : "");
	for (i = 0; i < BENCH_CONTESTS; i++)
		print_contest(r, i);
	for (i = 0; i < BENCH_GOALS; i++)
		if (bench_goal_applies(r, i))
			print_goal(r, i);
	if (r->time[BENCH_LIBIPT].runs)
		printf("  packets: libipt's count equals vmpt's over the same bytes (%llu)\n",
		       (unsigned long long)r->common_packets);
	printf("\n");
	fflush(stdout);
}

void bench_report_machine(const struct bench_machine *m, unsigned int rounds)
{
	printf("%s, %u core%s, Linux %s, %s; libipt %s; best of %u interleaved rounds\n", m->cpu,
	       m->cores, m->cores == 1 ? "" : "s", m->kernel, m->compiler, bench_libipt_version(),
	       rounds);
	if (!m->pinned)
		printf("warning: could not pin to one core\n");
	if (m->sanitized)
		printf("warning: built with sanitizers, the figures are meaningless\n");
	printf("\n");
	fflush(stdout);
}

/* ---- JSON ---- */

static json_t *json_contest(const struct bench_result *r, unsigned int id)
{
	const struct bench_time *t = &r->time[id];
	json_t *j = json_pack("{s:s, s:I, s:I, s:f, s:f, s:f}", "name", bench_contests[id].name,
			      "threads", (json_int_t)bench_contests[id].threads, "bytes",
			      (json_int_t)bytes_of(r, id)->size, "wall_seconds", t->wall,
			      "cpu_seconds", t->cpu, "mb_per_s", mb_per_s(r, id));

	if (j && r->time[BENCH_LIBIPT].runs)
		json_object_set_new(j, "ratio_to_libipt",
				    json_real(mb_per_s(r, id) / mb_per_s(r, BENCH_LIBIPT)));
	if (j && is_decoder(id))
		json_object_set_new(j, "packets_per_s",
				    json_real((double)packets_of(r, id) / bench_seconds(r, id)));
	return j;
}

static json_t *json_goal(const struct bench_result *r, unsigned int i)
{
	const struct bench_goal *g = &bench_goals[i];
	double v = bench_goal_value(r, i);

	return json_pack("{s:s, s:s, s:f, s:o, s:o}", "name", g->name, "rule",
			 g->measure == BENCH_MEMORY ? "at_most" : "at_least", "want",
			 bench_goal_want(r, i), "value", v < 0 ? json_null() : json_real(v), "met",
			 v < 0 ? json_null() : json_boolean(bench_goal_met(r, i)));
}

static json_t *json_input(const struct bench_result *r)
{
	json_t *contests = json_array(), *goals = json_array();
	unsigned int i;

	for (i = 0; i < BENCH_CONTESTS; i++)
		if (r->time[i].runs)
			json_array_append_new(contests, json_contest(r, i));
	for (i = 0; i < BENCH_GOALS; i++)
		if (bench_goal_applies(r, i))
			json_array_append_new(goals, json_goal(r, i));
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "name",
			 r->input.name, "about", r->input.about, "bytes",
			 (json_int_t)r->input.vmpt.size, "packets",
			 (json_int_t)r->time[BENCH_BATCH].count.packets, "items",
			 (json_int_t)r->time[BENCH_BATCH].count.items, "slices",
			 (json_int_t)r->time[BENCH_SPLIT].count.items, "losses",
			 (json_int_t)r->time[BENCH_BATCH].count.losses, "peak_anonymous_bytes",
			 (json_int_t)r->rss, "contests", contests, "goals", goals);
}

int bench_report_json(const char *path, const struct bench_machine *m, unsigned int rounds,
		      const struct bench_result *results, unsigned int n)
{
	json_t *inputs = json_array(), *all;
	unsigned int i;
	int err = -1;

	for (i = 0; i < n; i++)
		if (results[i].done)
			json_array_append_new(inputs, json_input(&results[i]));
	all = json_pack("{s:{s:s, s:I, s:s, s:s, s:b, s:b}, s:s, s:I, s:o}", "machine", "cpu",
			m->cpu, "cores", (json_int_t)m->cores, "kernel", m->kernel, "compiler",
			m->compiler, "pinned", m->pinned, "sanitized", m->sanitized, "libipt",
			bench_libipt_version(), "rounds", (json_int_t)rounds, "inputs", inputs);
	if (all)
		err = json_dump_file(all, path, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	json_decref(all);
	if (err)
		fprintf(stderr, "vmpt-bench: cannot write %s\n", path);
	return err ? -1 : 0;
}
