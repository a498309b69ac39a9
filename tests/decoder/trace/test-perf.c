// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* decoder/trace/perf*.c: the streams, gaps and facts of perf.data files written here. */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoder/trace/trace.h"
#include "tests/decoder/perf-writer.h"
#include "tests/support/support.h"

static struct perf_writer w;
static struct vmpt_trace *trace;
static struct vmpt_diag diag;
static u8 bytes[4096]; /* the trace data */

static void setup(void)
{
	struct test_rng rng = { 7 };
	size_t i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (u8)test_random(&rng) | 1; /* no zeros: no byte is padding */
}

static void teardown(void)
{
	vmpt_trace_close(trace);
	trace = NULL;
	writer_free(&w);
}

static void begin(bool pipe, bool snapshot)
{
	writer_start(&w, pipe);
	writer_info(&w, snapshot, WRITER_PRIVS);
}

static void open_written(void)
{
	writer_finish(&w);
	ck_assert_int_eq(vmpt_trace_open_perf_memory(&trace, w.buf, w.size, &diag), 0);
	ck_assert_str_eq(diag.text, "");
	ck_assert(!vmpt_trace_info(trace)->incomplete);
}

static const struct vmpt_stream *stream(size_t i)
{
	const struct vmpt_stream *s = vmpt_trace_stream(trace, i);

	ck_assert_ptr_nonnull(s);
	return s;
}

static void check_owner(size_t i, int cpu, int tid)
{
	ck_assert_int_eq(stream(i)->cpu, cpu);
	ck_assert_int_eq(stream(i)->tid, tid);
}

static void check_data(size_t i, const u8 *data, size_t n)
{
	ck_assert_uint_eq(stream(i)->size, n);
	ck_assert_mem_eq(stream(i)->data, data, n);
}

static void check_gap(size_t i, size_t gap, u64 offset, u32 flags)
{
	ck_assert_uint_lt(gap, stream(i)->gap_count);
	ck_assert_uint_eq(stream(i)->gaps[gap].offset, offset);
	ck_assert_uint_eq(stream(i)->gaps[gap].flags, flags);
}

/* Extents cover the stream in order, and the file has the same bytes there. */
static void check_places(size_t i)
{
	const struct vmpt_stream *s = stream(i);
	u64 at = 0;
	size_t e;

	for (e = 0; e < s->extent_count; e++) {
		const struct vmpt_extent *x = &s->extents[e];

		ck_assert_uint_eq(x->offset, at);
		ck_assert_mem_eq(s->data + at, w.buf + x->file_offset, x->size);
		ck_assert_uint_eq(vmpt_stream_file_offset(s, at), x->file_offset);
		ck_assert_uint_eq(vmpt_stream_file_offset(s, at + x->size - 1),
				  x->file_offset + x->size - 1);
		at += x->size;
	}
	ck_assert_uint_eq(at, s->size);
}

static void check_two_cpus(void)
{
	ck_assert_uint_eq(vmpt_trace_streams(trace), 2);
	check_owner(0, 0, -1);
	check_data(0, bytes + 1000, 128);
	check_places(0);
	ck_assert_uint_eq(stream(0)->gap_count, 1);
	check_gap(0, 0, 80, VMPT_GAP_TRUNCATED);
	check_owner(1, 1, -1);
	check_data(1, bytes, 136);
	check_places(1);
	ck_assert_uint_eq(stream(1)->gap_count, 0);
	ck_assert_uint_eq(vmpt_trace_info(trace)->truncated_buffers, 1);
}

/* ---- streams ---- */

START_TEST(buffers_of_a_cpu_are_one_stream)
{
	writer_two_cpus(&w, bytes, _i & 1, _i & 2 ? 11 : 0);
	open_written();
	check_two_cpus();
	ck_assert(vmpt_trace_info(trace)->pipe == !!(_i & 1));
	ck_assert(vmpt_trace_info(trace)->compressed == !!(_i & 2));
}
END_TEST

START_TEST(one_buffer_is_not_copied)
{
	size_t at;

	begin(false, false);
	at = writer_auxtrace(&w, 3, 9, 0, bytes, 64);
	open_written();
	ck_assert_ptr_eq(stream(0)->data, w.buf + at);
	ck_assert_uint_eq(vmpt_stream_file_offset(stream(0), 7), at + 7);
}
END_TEST

START_TEST(buffers_without_a_cpu_are_a_threads)
{
	begin(false, false);
	writer_auxtrace(&w, -1, 70, 0, bytes, 16);
	writer_auxtrace(&w, -1, 60, 0, bytes + 100, 16);
	writer_auxtrace(&w, -1, 70, 16, bytes + 16, 16);
	writer_aux(&w, 2, 70, 0, 16, PERF_AUX_FLAG_TRUNCATED);
	open_written();
	ck_assert_uint_eq(vmpt_trace_streams(trace), 2);
	check_owner(0, -1, 60);
	check_data(0, bytes + 100, 16);
	check_owner(1, -1, 70);
	check_data(1, bytes, 32);
	ck_assert_uint_eq(stream(0)->gap_count, 0);
	check_gap(1, 0, 16, VMPT_GAP_TRUNCATED);
}
END_TEST

START_TEST(padding_between_buffers_is_left_out)
{
	size_t n;

	for (n = 9; n <= 16; n++) {
		begin(false, false);
		writer_auxtrace(&w, 0, 1, 1000, bytes, n);
		writer_auxtrace(&w, 0, 1, 1000 + n, bytes + n, 64 - n);
		open_written();
		ck_assert_uint_eq(stream(0)->gap_count, 0);
		check_places(0);
		/* The last one's is not known to be padding. */
		ck_assert_uint_eq(stream(0)->size, 64 + (-(64 - n) & 7));
		ck_assert_mem_eq(stream(0)->data, bytes, 64);
		teardown();
	}
}
END_TEST

/* ---- gaps ---- */

START_TEST(offsets_that_do_not_follow_are_a_gap)
{
	begin(false, false);
	writer_auxtrace(&w, 0, 1, 0, bytes, 64);
	writer_auxtrace(&w, 0, 1, 72, bytes + 64, 64);	/* 8 bytes are missing */
	writer_auxtrace(&w, 0, 1, 40, bytes + 128, 64); /* back */
	writer_auxtrace(&w, 0, 1, 100, bytes + 192, 8); /* back by 4, not padding */
	open_written();
	check_data(0, bytes, 200);
	ck_assert_uint_eq(stream(0)->gap_count, 3);
	check_gap(0, 0, 64, VMPT_GAP_LOST);
	check_gap(0, 1, 128, VMPT_GAP_LOST);
	check_gap(0, 2, 192, VMPT_GAP_LOST);
}
END_TEST

START_TEST(aux_flags_are_gaps)
{
	begin(false, false);
	writer_auxtrace(&w, 0, 1, 100, bytes, 200);
	writer_auxtrace(&w, 0, 1, 300, bytes + 200, 200);
	writer_auxtrace(&w, 1, 1, 100, bytes, 200);
	writer_aux(&w, 0, 1, 100, 50, PERF_AUX_FLAG_TRUNCATED);
	writer_aux(&w, 0, 1, 180, 40, PERF_AUX_FLAG_PARTIAL);
	writer_aux(&w, 0, 1, 280, 20, PERF_AUX_FLAG_COLLISION | PERF_AUX_FLAG_TRUNCATED);
	writer_aux(&w, 0, 1, 300, 30, 0);
	writer_aux(&w, 0, 1, 400, 60, PERF_AUX_FLAG_OVERWRITE);
	writer_aux(&w, 0, 1, 410, 60, PERF_AUX_FLAG_OVERWRITE | PERF_AUX_FLAG_PARTIAL);
	writer_aux(&w, 0, 1, 450, 50, PERF_AUX_FLAG_TRUNCATED); /* its end is the stream's */
	writer_aux(&w, 0, 1, 700, 50, PERF_AUX_FLAG_TRUNCATED); /* of no buffer */
	writer_aux(&w, 0, 1, 0, 20, PERF_AUX_FLAG_TRUNCATED);	/* of no buffer */
	writer_aux(&w, 7, 1, 100, 20, PERF_AUX_FLAG_TRUNCATED); /* of no stream */
	open_written();
	ck_assert_uint_eq(stream(0)->gap_count, 6);
	check_gap(0, 0, 50, VMPT_GAP_TRUNCATED);
	check_gap(0, 1, 80, VMPT_GAP_PARTIAL);
	check_gap(0, 2, 120, VMPT_GAP_PARTIAL);
	check_gap(0, 3, 180, VMPT_GAP_COLLISION);
	check_gap(0, 4, 200, VMPT_GAP_COLLISION | VMPT_GAP_TRUNCATED);
	check_gap(0, 5, 310, VMPT_GAP_PARTIAL);
	ck_assert_uint_eq(stream(1)->gap_count, 0);
	ck_assert_uint_eq(vmpt_trace_info(trace)->truncated_buffers, 6);
}
END_TEST

START_TEST(gaps_in_lost_data_stand_at_the_hole)
{
	begin(false, false);
	writer_auxtrace(&w, 0, 1, 0, bytes, 64);
	writer_auxtrace(&w, 0, 1, 128, bytes + 64, 64);
	writer_aux(&w, 0, 1, 80, 16, PERF_AUX_FLAG_TRUNCATED);
	open_written();
	ck_assert_uint_eq(stream(0)->gap_count, 1);
	check_gap(0, 0, 64, VMPT_GAP_LOST | VMPT_GAP_TRUNCATED);
}
END_TEST

/* Without a sample_id: with one stream the owner is certain. */
START_TEST(an_aux_record_may_lack_its_owner)
{
	u64 payload[3] = { 0, 16, PERF_AUX_FLAG_TRUNCATED };
	bool two = _i;

	begin(false, false);
	writer_auxtrace(&w, 0, 1, 0, bytes, 64);
	if (two)
		writer_auxtrace(&w, 1, 1, 0, bytes, 64);
	writer_record(&w, PERF_RECORD_AUX, payload, sizeof(payload));
	writer_finish(&w);
	ck_assert_int_eq(vmpt_trace_open_perf_memory(&trace, w.buf, w.size, &diag), 0);
	ck_assert(vmpt_trace_info(trace)->incomplete == two);
	ck_assert(!!diag.text[0] == two);
	ck_assert_uint_eq(stream(0)->gap_count, two ? 0 : 1);
}
END_TEST

/* ---- snapshots ---- */

START_TEST(snapshots_overlap_by_their_offsets)
{
	begin(false, true);
	writer_auxtrace(&w, 0, 1, 1000, bytes, 512);
	writer_auxtrace(&w, 0, 1, 1400, bytes + 400, 512);
	open_written();
	ck_assert(vmpt_trace_info(trace)->snapshot);
	check_data(0, bytes, 912);
	check_places(0);
	ck_assert_uint_eq(stream(0)->gap_count, 0);
}
END_TEST

START_TEST(snapshots_without_overlap_are_a_gap)
{
	begin(false, true);
	writer_auxtrace(&w, 0, 1, 1000, bytes, 512);
	writer_auxtrace(&w, 0, 1, 1400, bytes + 600, 512); /* the offsets only */
	writer_auxtrace(&w, 0, 1, 9000, bytes + 2000, 512);
	open_written();
	ck_assert_uint_eq(stream(0)->size, 3 * 512);
	ck_assert_uint_eq(stream(0)->gap_count, 2);
	check_gap(0, 0, 512, VMPT_GAP_SNAPSHOT);
	check_gap(0, 1, 1024, VMPT_GAP_SNAPSHOT);
}
END_TEST

/* Flags of the repeated part apply to the first. */
START_TEST(gaps_in_snapshots_count_what_is_left_out)
{
	begin(false, true);
	writer_auxtrace(&w, 0, 1, 1000, bytes, 512);
	writer_auxtrace(&w, 0, 1, 1400, bytes + 400, 512);
	writer_aux(&w, 0, 1, 1700, 0, PERF_AUX_FLAG_OVERWRITE | PERF_AUX_FLAG_TRUNCATED);
	writer_aux(&w, 0, 1, 1450, 0, PERF_AUX_FLAG_OVERWRITE | PERF_AUX_FLAG_TRUNCATED);
	open_written();
	check_data(0, bytes, 912);
	ck_assert_uint_eq(stream(0)->gap_count, 2);
	check_gap(0, 0, 450, VMPT_GAP_TRUNCATED);
	check_gap(0, 1, 700, VMPT_GAP_TRUNCATED);
}
END_TEST

/* ---- facts ---- */

START_TEST(the_attr_and_the_info_are_found)
{
	const struct vmpt_trace_info *info;

	begin(_i, false);
	writer_lost(&w, 5);
	writer_record(&w, PERF_RECORD_LOST_SAMPLES, &(u64){ 7 }, 8);
	writer_auxtrace(&w, 0, 1, 0, bytes, 16);
	open_written();
	info = vmpt_trace_info(trace);
	ck_assert(info->has_config);
	ck_assert_uint_eq(info->config, WRITER_CONFIG);
	ck_assert_uint_eq(info->lost_events, 12);
	ck_assert_uint_eq(info->mtc_freq_bits_shift, 14);
	ck_assert_uint_eq(info->tsc_ctc_numerator, 266);
	ck_assert_uint_eq(info->tsc_ctc_denominator, 2);
	ck_assert_uint_eq(info->max_nonturbo_ratio, 32);
	ck_assert_uint_eq(info->time_shift, WRITER_SHIFT);
	ck_assert_uint_eq(info->time_mult, WRITER_MULT);
	ck_assert_uint_eq(info->time_zero, WRITER_ZERO);
}
END_TEST

START_TEST(an_older_info_has_fewer_fields)
{
	u64 conv[3] = { 10, 1 << 10, 77 };
	const struct vmpt_trace_info *info;

	writer_start(&w, false);
	writer_info(&w, false, _i ? 10 : 4); /* to per-cpu mmaps; without the clock's flag */
	writer_record(&w, 79, conv, sizeof(conv));
	writer_auxtrace(&w, 0, 1, 0, bytes, 16);
	open_written();
	info = vmpt_trace_info(trace);
	ck_assert(info->has_time_conv);
	ck_assert_uint_eq(info->time_zero, _i ? WRITER_ZERO : 77);
	ck_assert_uint_eq(info->max_nonturbo_ratio, 0);
	ck_assert_uint_eq(info->tsc_ctc_denominator, 0);
	ck_assert_uint_eq(vmpt_trace_streams(trace), 1);
}
END_TEST

/* Thousands of records, so that they cross from one compressed record to the next */
START_TEST(compressed_records_continue_in_the_next)
{
	const size_t piece[] = { 1, 100, 40000 };
	u64 i;

	begin(_i & 1, false);
	writer_pack(&w);
	for (i = 0; i < 5000; i++)
		writer_lost(&w, i);
	writer_flush(&w, piece[_i / 2 % 3], _i >= 6);
	writer_auxtrace(&w, 0, 1, 0, bytes, 16);
	open_written();
	ck_assert(vmpt_trace_info(trace)->compressed);
	ck_assert_uint_eq(vmpt_trace_info(trace)->lost_events, 5000 * 4999 / 2);
}
END_TEST

/* ---- opening by path ---- */

START_TEST(a_kcore_directory_holds_its_data_file)
{
	char file[WRITER_PATH], dir[WRITER_PATH + 16], data[WRITER_PATH + 32];

	begin(false, false);
	writer_auxtrace(&w, 0, 1, 0, bytes, 16);
	writer_finish(&w);
	writer_save(&w, file);
	snprintf(dir, sizeof(dir), "%s.dir", file);
	snprintf(data, sizeof(data), "%s/data", dir);
	ck_assert_int_eq(mkdir(dir, 0700), 0);
	ck_assert_int_eq(rename(file, data), 0);
	ck_assert_int_eq(vmpt_trace_open(&trace, dir, -1, &diag), 0);
	check_data(0, bytes, 16);
	vmpt_trace_close(trace);
	ck_assert_int_eq(vmpt_trace_open_perf(&trace, dir, &diag), 0);
	unlink(data);
	rmdir(dir);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/reader-perf");
	TCase *t = tcase_create("perf");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, buffers_of_a_cpu_are_one_stream, 0, 4);
	tcase_add_test(t, one_buffer_is_not_copied);
	tcase_add_test(t, buffers_without_a_cpu_are_a_threads);
	tcase_add_test(t, padding_between_buffers_is_left_out);
	tcase_add_test(t, offsets_that_do_not_follow_are_a_gap);
	tcase_add_test(t, aux_flags_are_gaps);
	tcase_add_test(t, gaps_in_lost_data_stand_at_the_hole);
	tcase_add_loop_test(t, an_aux_record_may_lack_its_owner, 0, 2);
	tcase_add_test(t, snapshots_overlap_by_their_offsets);
	tcase_add_test(t, snapshots_without_overlap_are_a_gap);
	tcase_add_test(t, gaps_in_snapshots_count_what_is_left_out);
	tcase_add_loop_test(t, the_attr_and_the_info_are_found, 0, 2);
	tcase_add_loop_test(t, an_older_info_has_fewer_fields, 0, 2);
	tcase_add_loop_test(t, compressed_records_continue_in_the_next, 0, 12);
	tcase_add_test(t, a_kcore_directory_holds_its_data_file);
	suite_add_tcase(s, t);
	return s;
}
