// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * decoder/trace/perf*.c: a real perf.data; and where the perf tool is installed, it must read the
 * same in that and in files written here.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "decoder/pt/source.h"
#include "decoder/trace/trace.h"
#include "tests/decoder/perf-writer.h"
#include "tests/support/support.h"

static struct perf_writer w;
static struct vmpt_trace *trace;
static struct vmpt_diag diag;

static void teardown(void)
{
	vmpt_trace_close(trace);
	trace = NULL;
	writer_free(&w);
}

static const struct vmpt_stream *stream(size_t i)
{
	const struct vmpt_stream *s = vmpt_trace_stream(trace, i);

	ck_assert_ptr_nonnull(s);
	return s;
}

/* ---- a real file ---- */

static void count_packets(const struct vmpt_stream *s, u64 *counts)
{
	struct vmpt_source *src;
	struct vmpt_piece piece;
	size_t i;

	ck_assert_int_eq(vmpt_source_open(&src, s, &(struct vmpt_options){ .scalar = true }, true),
			 0);
	while (vmpt_source_next(src, &piece) == 1)
		for (i = 0; i < piece.item_count; i++)
			counts[piece.items[i].kind]++;
	vmpt_source_close(src);
}

START_TEST(loopy_is_read_whole)
{
	u64 counts[VMPT_ITEM_LOSS + 1] = { 0 };
	const char *path = test_data("host-loopy.perf.data");
	const struct vmpt_trace_info *info;

	if (!path)
		return;
	ck_assert_int_eq(vmpt_trace_open(&trace, path, -1, &diag), 0);
	info = vmpt_trace_info(trace);
	ck_assert(!info->incomplete && !info->pipe && !info->compressed && !info->snapshot);
	ck_assert_int_eq(info->format, VMPT_TRACE_PERF);
	ck_assert_uint_eq(vmpt_trace_streams(trace), 1);
	ck_assert_uint_eq(stream(0)->gap_count, 0);
	ck_assert_int_eq(stream(0)->cpu, 2);
	ck_assert_int_eq(stream(0)->tid, -1);
	count_packets(stream(0), counts);
	ck_assert_uint_eq(counts[VMPT_PT_TSC], 10);
	ck_assert_uint_eq(counts[VMPT_PT_TMA], 10);
	ck_assert_uint_eq(counts[VMPT_PT_MTC], 454);
	ck_assert_uint_eq(counts[VMPT_ITEM_LOSS], 0);
}
END_TEST

/*
 * The AUXTRACE record's reference is the TSC at which perf read the buffer: just
 * after the last AUX record, whose time is 969350.059433729 (perf script -D).
 */
START_TEST(loopys_clock_is_that_of_its_records)
{
	const char *path = test_data("host-loopy.perf.data");
	u64 ns;

	if (!path)
		return;
	ck_assert_int_eq(vmpt_trace_open(&trace, path, -1, &diag), 0);
	ck_assert(vmpt_trace_info(trace)->has_time_conv);
	ns = vmpt_tsc_to_perf_time(vmpt_trace_info(trace), 0xafe29e3ab9540);
	ck_assert_uint_gt(ns, 969350059433729);
	ck_assert_uint_lt(ns, 969350059433729 + 100000000);
}
END_TEST

/* ---- the perf tool ---- */

static bool have_perf(void)
{
	if (!system("perf version >/dev/null 2>&1"))
		return true;
	test_skip("no perf tool");
	return false;
}

/* Output of "perf script -D" for a file: its AUXTRACE buffers and the values of INFO. */
struct oracle {
	size_t buffers;
	u64 size[8], offset[8];
	int cpu[8];
	u64 shift, mult, zero, numerator, denominator, ratio, snapshot;
	size_t aux_records;
};

/* perf reads its pipe form from pipes only: from a file it stops after the first buffer. */
static void ask_perf(const char *path, bool pipe, struct oracle *o)
{
	char command[WRITER_PATH + 64], line[1024];
	u64 size, offset;
	int cpu;
	FILE *f;

	*o = (struct oracle){ 0 };
	snprintf(command, sizeof(command),
		 pipe ? "cat '%s' | perf script -D -i - 2>/dev/null"
		      : "perf script -f -D -i '%s' 2>/dev/null",
		 path);
	f = popen(command, "r");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f)) {
		const char *rec = strstr(line, "PERF_RECORD_AUX");

		sscanf(line, " Time Shift %" SCNu64, &o->shift);
		/* as perf wrote it before Linux 7 */
		sscanf(line, " Time Muliplier %" SCNu64, &o->mult);
		sscanf(line, " Time Multiplier %" SCNu64, &o->mult);
		sscanf(line, " Time Zero %" SCNu64, &o->zero);
		sscanf(line, " Snapshot mode %" SCNu64, &o->snapshot);
		sscanf(line, " TSC:CTC numerator %" SCNu64, &o->numerator);
		sscanf(line, " TSC:CTC denominator %" SCNu64, &o->denominator);
		sscanf(line, " Max non-turbo ratio %" SCNu64, &o->ratio);
		if (rec && !strncmp(rec, "PERF_RECORD_AUX ", 16))
			o->aux_records++;
		if (!rec || sscanf(rec,
				   "PERF_RECORD_AUXTRACE size: %" SCNx64 " offset: %" SCNx64
				   " ref: %*x idx: %*d tid: %*d cpu: %d",
				   &size, &offset, &cpu) != 3)
			continue;
		ck_assert_uint_lt(o->buffers, 8);
		o->size[o->buffers] = size;
		o->offset[o->buffers] = offset;
		o->cpu[o->buffers++] = cpu;
	}
	pclose(f);
}

static void check_info(const struct oracle *o)
{
	const struct vmpt_trace_info *info = vmpt_trace_info(trace);

	ck_assert_uint_eq(info->time_shift, o->shift);
	ck_assert_uint_eq(info->time_mult, o->mult);
	ck_assert_uint_eq(info->time_zero, o->zero);
	ck_assert_uint_eq(info->snapshot, o->snapshot);
	ck_assert_uint_eq(info->tsc_ctc_numerator, o->numerator);
	ck_assert_uint_eq(info->tsc_ctc_denominator, o->denominator);
	ck_assert_uint_eq(info->max_nonturbo_ratio, o->ratio);
}

START_TEST(loopy_is_what_perf_says)
{
	const char *path = test_data("host-loopy.perf.data");
	struct oracle o;

	if (!path || !have_perf())
		return;
	ck_assert_int_eq(vmpt_trace_open(&trace, path, -1, &diag), 0);
	ask_perf(path, false, &o);
	ck_assert_uint_eq(o.buffers, 1);
	ck_assert_uint_eq(stream(0)->size, o.size[0]);
	ck_assert_int_eq(stream(0)->cpu, o.cpu[0]);
	ck_assert_uint_eq(o.mult, 672770566); /* perf printed something */
	check_info(&o);
}
END_TEST

START_TEST(written_files_are_what_perf_says)
{
	char path[WRITER_PATH];
	struct test_rng rng = { 7 };
	u8 bytes[2048];
	struct oracle o;
	size_t i;

	if (!have_perf())
		return;
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (u8)test_random(&rng) | 1;
	/* perf expects each compressed record to produce something */
	writer_two_cpus(&w, bytes, _i & 1, _i & 2 ? 1000 : 0);
	writer_finish(&w);
	ck_assert_int_eq(vmpt_trace_open_perf_memory(&trace, w.buf, w.size, &diag), 0);
	writer_save(&w, path);
	ask_perf(path, _i & 1, &o);
	unlink(path);
	ck_assert_uint_eq(o.aux_records, 2);
	ck_assert_uint_eq(o.buffers, 4);
	for (i = 0; i < 4; i++) {
		const struct vmpt_extent *x = &stream((size_t)o.cpu[i])->extents[i / 2];

		ck_assert_uint_eq(x->size, o.size[i]);
		ck_assert_uint_eq(x->offset, o.offset[i]);
	}
	ck_assert_uint_eq(o.zero, WRITER_ZERO);
	check_info(&o);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/reader-perf-tool");
	TCase *t = tcase_create("perf");

	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_test(t, loopy_is_read_whole);
	tcase_add_test(t, loopys_clock_is_that_of_its_records);
	tcase_add_test(t, loopy_is_what_perf_says);
	tcase_add_loop_test(t, written_files_are_what_perf_says, 0, 4);
	suite_add_tcase(s, t);
	return s;
}
