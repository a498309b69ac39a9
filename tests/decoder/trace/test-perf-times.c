// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Times of a real trace of TSC and MTC packets equal those that perf script prints, to the
 * nanosecond, and never go back. perf decodes without the code (--itrace=q): it has an event for
 * each TIP.PGE and TIP.PGD.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/vmpt-clock.h"
#include "tests/support/support.h"

#define EVENTS_MAX 1000

struct event {
	u64 ns, ip;
};

static struct vmpt_trace *trace;
static const struct vmpt_stream *stream; /* clocks need it while they are open */
static struct vmpt_clocks *clocks;

static void open_trace(const char *path)
{
	struct vmpt_clocks_options options = { 0 };

	ck_assert_int_eq(vmpt_trace_open_perf(&trace, path, NULL), 0);
	ck_assert_uint_eq(vmpt_trace_streams(trace), 1);
	stream = vmpt_trace_stream(trace, 0);
	vmpt_rates_from_info(&options.rates, vmpt_trace_info(trace));
	ck_assert_int_eq(vmpt_clocks_open(&clocks, &stream, 1, &options), 0);
	ck_assert_int_eq(vmpt_clocks_base(clocks), VMPT_BASE_HOST);
}

static void close_trace(void)
{
	vmpt_clocks_close(clocks);
	vmpt_trace_close(trace);
}

/* perf's events of @kind: "tr strt", begins of the trace, or "tr end", ends that have an IP. */
static size_t by_perf(const char *path, const char *kind, struct event *events)
{
	unsigned long long seconds, ns, from, to;
	char command[512], line[512];
	size_t n = 0;
	FILE *perf;

	snprintf(command, sizeof(command),
		 "perf script -i '%s' --itrace=bq --ns -F time,flags,ip,addr 2>/dev/null", path);
	perf = popen(command, "r");
	ck_assert_ptr_nonnull(perf);
	while (fgets(line, sizeof(line), perf) && n < EVENTS_MAX) {
		const char *flags = strstr(line, kind), *ips = strstr(line, "=>");

		if (!flags || !ips || sscanf(line, " %llu.%9llu:", &seconds, &ns) != 2)
			continue;
		while (ips > line && ips[-1] == ' ')
			ips--;
		while (ips > line && ips[-1] != ' ')
			ips--;
		ck_assert_int_eq(sscanf(ips, "%llx => %llx", &from, &to), 2);
		events[n].ns = seconds * 1000000000 + ns;
		events[n++].ip = from ? from : to;
	}
	pclose(perf);
	return n;
}

/* TIP.PGEs; all times grow. */
static size_t by_us(struct event *begins)
{
	struct vmpt_options options = { 0 };
	struct vmpt_timed_batch b;
	struct vmpt_timed *timed;
	u64 last = 0;
	size_t n = 0;
	int ret;

	ck_assert_int_eq(vmpt_timed_open(&timed, clocks, 0, &options), 0);
	while ((ret = vmpt_timed_next(timed, &b)) > 0) {
		ck_assert_uint_eq(b.back, VMPT_BACK_NOT);
		for (size_t i = 0; i < b.batch.count; i++) {
			if (b.time[i].tsc == VMPT_TIME_NONE)
				continue;
			ck_assert_uint_ge(b.time[i].tsc, last);
			last = b.time[i].tsc;
			if (b.batch.items[i].kind != VMPT_PT_TIP_PGE || n == EVENTS_MAX)
				continue;
			begins[n].ip = b.batch.items[i].payload;
			begins[n++].ns = vmpt_tsc_to_perf_time(vmpt_trace_info(trace), last);
		}
	}
	ck_assert_int_eq(ret, 0);
	vmpt_timed_close(timed);
	return n;
}

START_TEST(times_are_perfs)
{
	static struct event theirs[EVENTS_MAX], ours[EVENTS_MAX];
	const char *path = test_data("host-loopy.perf.data");
	size_t n;

	if (!path)
		return;
	if (system("perf version >/dev/null 2>&1")) {
		test_skip("no perf tool");
		return;
	}
	open_trace(path);
	n = by_us(ours);
	/* The trace begins eight times. */
	ck_assert_uint_eq(n, 8);
	ck_assert_uint_eq(by_perf(path, "tr strt", theirs), n);
	for (size_t i = 0; i < n; i++) {
		ck_assert_uint_eq(ours[i].ip, theirs[i].ip);
		ck_assert_uint_eq(ours[i].ns, theirs[i].ns);
	}
	close_trace();
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("decoder/perf-times");
	TCase *tc = tcase_create("real");

	tcase_add_test(tc, times_are_perfs);
	suite_add_tcase(suite, tc);
	return suite;
}
