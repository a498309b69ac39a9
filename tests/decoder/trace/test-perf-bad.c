// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* decoder/trace/perf*.c: files that are cut, damaged, hostile or of another kind. */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "decoder/trace/trace.h"
#include "decoder/vmpt-events.h"
#include "tests/decoder/perf-writer.h"
#include "tests/support/support.h"

static struct perf_writer w;
static struct vmpt_trace *trace;
static struct vmpt_diag diag;
static u8 bytes[4096];
static size_t buffer[3]; /* place of the trace data of write_file() */

static void teardown(void)
{
	vmpt_trace_close(trace);
	trace = NULL;
	writer_free(&w);
}

/* Some of everything */
static void write_file(bool pipe, bool compressed)
{
	struct test_rng rng = { 7 };
	size_t i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (u8)test_random(&rng) | 1;
	writer_start(&w, pipe);
	writer_info(&w, false, WRITER_PRIVS);
	buffer[0] = writer_auxtrace(&w, 0, 1, 0, bytes, 40);
	if (compressed)
		writer_pack(&w);
	writer_aux(&w, 0, 1, 0, 40, 1);
	writer_lost(&w, 3);
	if (compressed)
		writer_flush(&w, 20, false);
	buffer[1] = writer_auxtrace(&w, 1, 1, 0, bytes + 500, 64);
	buffer[2] = writer_auxtrace(&w, 0, 1, 40, bytes + 40, 48);
	writer_finish(&w);
}

static int open_bytes(const u8 *data, size_t size)
{
	vmpt_trace_close(trace);
	return vmpt_trace_open_perf_memory(&trace, data, size, &diag);
}

/* Streams are consistent whatever the file was: all their bytes are where they should be. */
static void check_sound(const u8 *file, size_t file_size)
{
	size_t i, e;

	for (i = 0; i < vmpt_trace_streams(trace); i++) {
		const struct vmpt_stream *s = vmpt_trace_stream(trace, i);
		u64 at = 0;

		for (e = 0; e < s->extent_count; e++) {
			ck_assert_uint_eq(s->extents[e].offset, at);
			ck_assert_uint_le(s->extents[e].file_offset + s->extents[e].size,
					  file_size);
			ck_assert_mem_eq(s->data + at, file + s->extents[e].file_offset,
					 s->extents[e].size);
			at += s->extents[e].size;
		}
		ck_assert_uint_eq(at, s->size);
		for (e = 0; e < s->gap_count; e++) {
			ck_assert_uint_lt(e ? s->gaps[e - 1].offset : 0, s->gaps[e].offset);
			ck_assert_uint_lt(s->gaps[e].offset, s->size);
			ck_assert_uint_ne(s->gaps[e].flags, 0);
		}
	}
}

static void check_diag(void)
{
	ck_assert_msg(diag.text[0], "nothing is said of what is wrong");
	ck_assert_uint_lt(strlen(diag.text), sizeof(diag.text));
}

/* ---- cut files ---- */

/* A stream of a file cut at @cut: the bytes of the buffers before it. */
static void check_cut_stream(int cpu, const u8 *data, size_t n)
{
	size_t i;

	for (i = 0; i < vmpt_trace_streams(trace); i++) {
		const struct vmpt_stream *s = vmpt_trace_stream(trace, i);

		if (s->cpu != cpu)
			continue;
		ck_assert_uint_eq(s->size, n);
		ck_assert_mem_eq(s->data, data, n);
		return;
	}
	ck_assert_msg(!n, "no stream of CPU %d", cpu);
}

static size_t before(size_t cut, size_t start, size_t size)
{
	return cut < start ? 0 : cut - start < size ? cut - start : size;
}

START_TEST(a_file_cut_anywhere_gives_what_is_whole)
{
	size_t cut, whole;
	int ret;
	u8 *copy;

	write_file(_i & 1, _i & 2);
	for (cut = 0; cut < w.size; cut++) {
		/* In its own memory, so that reads after the cut are detected */
		copy = malloc(cut + !cut);
		memcpy(copy, w.buf, cut);
		ret = open_bytes(copy, cut);
		if (cut >= buffer[0])
			ck_assert_msg(!ret, "cut at %zu: %s", cut, diag.text);
		if (ret) {
			check_diag();
			ck_assert_ptr_null(trace);
			ck_assert_uint_le(diag.offset, cut);
			free(copy);
			continue;
		}
		check_sound(copy, cut);
		/* The pipe form has no end of its own: it may end after any record. */
		if (!(_i & 1)) {
			ck_assert(vmpt_trace_info(trace)->incomplete);
			check_diag();
		}
		whole = before(cut, buffer[0], 40) + before(cut, buffer[2], 48);
		check_cut_stream(0, bytes, whole);
		check_cut_stream(1, bytes + 500, before(cut, buffer[1], 64));
		vmpt_trace_close(trace);
		trace = NULL;
		free(copy);
	}
	ck_assert_int_eq(open_bytes(w.buf, w.size), 0);
	ck_assert(!vmpt_trace_info(trace)->incomplete);
}
END_TEST

START_TEST(a_file_that_perf_did_not_finish_is_read)
{
	write_file(false, false);
	memset(w.buf + 48, 0, 8);
	memset(w.buf + 72, 0, 8);
	ck_assert_int_eq(open_bytes(w.buf, buffer[2] + 48), 0);
	ck_assert(vmpt_trace_info(trace)->incomplete);
	check_diag();
	check_cut_stream(0, bytes, 88);
}
END_TEST

/* ---- damage ---- */

START_TEST(any_byte_may_be_wrong)
{
	static const u8 wrong[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };
	size_t at, i;

	write_file(_i & 1, _i & 2);
	for (at = 0; at < w.size; at++) {
		for (i = 0; i < (size_t)test_rounds(sizeof(wrong), 2); i++) {
			u8 old = w.buf[at];

			/* Of two others at the next byte. */
			w.buf[at] = wrong[(2 * at + i) % sizeof(wrong)];
			if (open_bytes(w.buf, w.size))
				check_diag();
			else
				check_sound(w.buf, w.size);
			w.buf[at] = old;
		}
	}
}
END_TEST

START_TEST(random_damage)
{
	struct test_rng rng = { 99 };
	u8 *good;
	int i, j;

	write_file(_i & 1, _i & 2);
	good = malloc(w.size);
	memcpy(good, w.buf, w.size);
	for (i = 0; i < 1000; i++) {
		for (j = (int)(test_random(&rng) % 8); j >= 0; j--)
			w.buf[test_random(&rng) % w.size] = (u8)test_random(&rng);
		if (open_bytes(w.buf, w.size))
			check_diag();
		else
			check_sound(w.buf, w.size);
		memcpy(w.buf, good, w.size);
	}
	free(good);
}
END_TEST

/* After a broken record reading resumes by the index of the trace buffers. */
START_TEST(reading_goes_on_after_damage)
{
	const struct vmpt_stream *s;

	write_file(false, false);
	memset(w.buf + buffer[0] + 40, 0, 8); /* the AUX record: 0 bytes */
	ck_assert_int_eq(open_bytes(w.buf, w.size), 0);
	ck_assert(vmpt_trace_info(trace)->incomplete);
	ck_assert_uint_eq(diag.offset, buffer[0] + 40);
	check_cut_stream(0, bytes, 88);
	check_cut_stream(1, bytes + 500, 64);
	/* The flags of the data between are not known. */
	s = vmpt_trace_stream(trace, 0);
	ck_assert_uint_eq(s->gap_count, 1);
	ck_assert_uint_eq(s->gaps[0].offset, 40);
	ck_assert_uint_eq(s->gaps[0].flags, VMPT_GAP_LOST);
}
END_TEST

START_TEST(broken_compression_loses_only_itself)
{
	write_file(false, true);
	memset(w.buf + buffer[0] + 40 + 8, 0x55, 12);
	ck_assert_int_eq(open_bytes(w.buf, w.size), 0);
	ck_assert(vmpt_trace_info(trace)->incomplete);
	ck_assert_ptr_nonnull(strstr(diag.text, "compress"));
	check_cut_stream(0, bytes, 88);
	check_cut_stream(1, bytes + 500, 64);
}
END_TEST

/* ---- wrong lengths and offsets ---- */

static void poke(size_t at, u64 v)
{
	memcpy(w.buf + at, &v, 8);
}

/* A field of the header, its new value, the error, or 0: opened, but incomplete */
static const struct {
	size_t at;
	u64 value;
	int error;
} lies[] = {
	{ 8, 0, VMPT_E_UNSUPPORTED },
	{ 8, 105, VMPT_E_UNSUPPORTED },
	{ 8, ~0ULL, VMPT_E_UNSUPPORTED },
	{ 16, 0, VMPT_E_FORMAT },
	{ 16, 79, VMPT_E_FORMAT },
	{ 16, ~0ULL, VMPT_E_FORMAT },
	{ 24, ~0ULL, VMPT_E_FORMAT },
	{ 32, ~0ULL, VMPT_E_FORMAT },
	{ 32, 1ULL << 63, VMPT_E_FORMAT },
	{ 40, ~0ULL, VMPT_E_NO_PT },
	{ 40, 1ULL << 63, VMPT_E_NO_PT },
	{ 48, ~0ULL, 0 },
	{ 48, 1ULL << 63, 0 },
	{ 72, ~0ULL & ~(1ULL << 24), 0 },
	{ 72, 1ULL << 24, VMPT_E_UNSUPPORTED },
};

START_TEST(the_header_may_lie)
{
	write_file(false, false);
	poke(lies[_i].at, lies[_i].value);
	ck_assert_int_eq(open_bytes(w.buf, w.size), -lies[_i].error);
	check_diag();
	if (lies[_i].error)
		return;
	ck_assert(vmpt_trace_info(trace)->incomplete);
	check_sound(w.buf, w.size);
	check_cut_stream(0, bytes, 88);
}
END_TEST

START_TEST(a_buffer_may_claim_more_than_there_is)
{
	static const u64 sizes[] = { ~0ULL, 1ULL << 63, 1ULL << 32, ~0ULL - 47 };

	write_file(true, false);
	poke(buffer[2] - 40, sizes[_i]);
	ck_assert_int_eq(open_bytes(w.buf, w.size), 0);
	ck_assert(vmpt_trace_info(trace)->incomplete);
	check_cut_stream(0, bytes, 88);
	check_sound(w.buf, w.size);
}
END_TEST

START_TEST(aux_records_may_lie)
{
	write_file(false, false);
	teardown();
	writer_start(&w, false);
	writer_info(&w, false, WRITER_PRIVS);
	writer_auxtrace(&w, 0, 1, ~0ULL - 15, bytes, 16);
	writer_auxtrace(&w, 0, 1, 0, bytes + 16, 16); /* follows modulo 2^64 */
	writer_aux(&w, 0, 1, ~0ULL, 2, 1);
	writer_aux(&w, 0, 1, ~0ULL, 0, 1);
	writer_aux(&w, 0, 1, 8, ~0ULL, 1);
	writer_finish(&w);
	ck_assert_int_eq(open_bytes(w.buf, w.size), 0);
	ck_assert(vmpt_trace_info(trace)->incomplete);
	check_sound(w.buf, w.size);
	ck_assert_uint_eq(vmpt_trace_stream(trace, 0)->size, 32);
}
END_TEST

START_TEST(short_records_are_left_out)
{
	static const u32 types[] = { 2, 11, 13, 64, 70, 79, 80, 81, 83 };
	static const u8 payload[64];
	size_t i, n;

	write_file(false, false);
	teardown();
	writer_start(&w, false);
	writer_info(&w, false, WRITER_PRIVS);
	for (i = 0; i < VMPT_ARRAY_SIZE(types); i++)
		for (n = 0; n < 24; n++)
			writer_record(&w, types[i], payload, n);
	writer_auxtrace(&w, 0, 1, 0, bytes, 16);
	/* A short AUXTRACE record: the bytes after it are not known */
	writer_record(&w, 71, payload, 8);
	writer_finish(&w);
	ck_assert_int_eq(open_bytes(w.buf, w.size), 0);
	ck_assert(vmpt_trace_info(trace)->incomplete);
	check_cut_stream(0, bytes, 16);
}
END_TEST

/* The second half of a compressed record must not nest or carry trace data. */
START_TEST(compressed_records_do_not_nest)
{
	static const u32 types[] = { 66, 71, 81, 83 };
	static const u8 payload[64] = { 8 };

	writer_start(&w, false);
	writer_info(&w, false, WRITER_PRIVS);
	writer_pack(&w);
	writer_record(&w, types[_i], payload, sizeof(payload));
	writer_lost(&w, 4);
	writer_flush(&w, 1000, false);
	writer_finish(&w);
	ck_assert_int_eq(open_bytes(w.buf, w.size), 0);
	ck_assert(vmpt_trace_info(trace)->incomplete);
	ck_assert_ptr_nonnull(strstr(diag.text, "compressed"));
	ck_assert_uint_eq(vmpt_trace_info(trace)->lost_events, 0);
	ck_assert_uint_eq(vmpt_trace_streams(trace), 0);
}
END_TEST

START_TEST(a_compressed_record_may_claim_more_than_it_has)
{
	size_t at;

	writer_start(&w, true);
	writer_info(&w, false, WRITER_PRIVS);
	writer_pack(&w);
	writer_lost(&w, 4);
	at = w.size;
	writer_flush(&w, 1000, true);
	poke(at + 8, w.size - at - 16 + 1);
	ck_assert_int_eq(open_bytes(w.buf, w.size), 0);
	ck_assert(vmpt_trace_info(trace)->incomplete);
	ck_assert_ptr_nonnull(strstr(diag.text, "COMPRESSED2"));
	ck_assert_uint_eq(diag.offset, at);
	ck_assert_uint_eq(vmpt_trace_info(trace)->lost_events, 0);
}
END_TEST

/* ---- G4: more memory or work than the file is worth ---- */

/* 40 MiB of plain records */
static void write_bomb(u32 type, const void *payload, size_t n, bool pipe)
{
	size_t i;

	writer_start(&w, pipe);
	writer_info(&w, false, WRITER_PRIVS);
	writer_auxtrace(&w, 0, 1, 0, bytes, 40);
	writer_pack(&w);
	writer_lost(&w, 3);
	for (i = 0; i < (40 << 20) / (8 + n); i++)
		writer_record(&w, type, payload, n);
	writer_lost(&w, 4);
	writer_flush(&w, 4000, false);
	writer_auxtrace(&w, 1, 1, 0, bytes + 500, 64);
	writer_finish(&w);
}

/* Of AUX records that lost data the marks are kept, of HEADER_ATTR records the attr. */
START_TEST(g4_compressed_records_grow_to_a_limit)
{
	static const u64 aux[3] = { 8, 8, PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_PARTIAL };
	static const u8 attr[64];
	const struct vmpt_event *events;
	const struct vmpt_trace_info *info;
	size_t count;

	if (_i & 1)
		write_bomb(64, attr, sizeof(attr), _i & 2);
	else
		write_bomb(PERF_RECORD_AUX, aux, sizeof(aux), _i & 2);
	ck_assert_uint_lt(w.size, 64 << 10);
	ck_assert_int_eq(open_bytes(w.buf, w.size), 0);
	info = vmpt_trace_info(trace);
	ck_assert(info->incomplete);
	ck_assert_ptr_nonnull(strstr(diag.text, "16 MiB and 64 times their size"));
	/* What came before is kept, and the trace buffers after. */
	ck_assert_uint_eq(info->lost_events, 3);
	ck_assert_uint_le(info->truncated_buffers, ((16 << 20) + 64 * w.size) / (8 + sizeof(aux)));
	if (!(_i & 1))
		ck_assert_uint_gt(info->truncated_buffers, (15 << 20) / (8 + sizeof(aux)));
	ck_assert_uint_eq(vmpt_trace_streams(trace), 2);
	check_cut_stream(0, bytes, 40);
	check_cut_stream(1, bytes + 500, 64);
	ck_assert_int_eq(vmpt_trace_events(trace, &events, &count), 0);
}
END_TEST

/* perf's own: records that differ in time and place only, 7 to 20 times smaller. */
START_TEST(g4_what_perf_writes_is_within_the_limit)
{
	struct test_rng rng = { 11 };
	u64 time = 1000000;
	u32 i;

	writer_start(&w, true);
	writer_info(&w, false, WRITER_PRIVS);
	writer_auxtrace(&w, 0, 1, 0, bytes, 40);
	writer_pack(&w);
	for (i = 0; i < (24 << 20) / 48; i++) {
		struct writer_at at = { 1000, 1001 + i % 4, i % 4, time };

		time += 1000 + test_random(&rng) % 5000;
		writer_switch(&w, i & 4, false, &at);
	}
	writer_lost(&w, 4);
	writer_flush(&w, 4000, false);
	ck_assert_int_eq(open_bytes(w.buf, w.size), 0);
	ck_assert_msg(!vmpt_trace_info(trace)->incomplete, "%s", diag.text);
	ck_assert_uint_eq(vmpt_trace_info(trace)->lost_events, 4);
}
END_TEST

/* CPU time of reading the file and its events, in ms */
static u64 reading(size_t *count)
{
	const struct vmpt_event *events;
	clock_t start = clock();

	ck_assert_int_eq(open_bytes(w.buf, w.size), 0);
	ck_assert_int_eq(vmpt_trace_events(trace, &events, count), 0);
	return (u64)(clock() - start) * 1000 / CLOCKS_PER_SEC;
}

/* With each attr the ids of all were sorted again. */
START_TEST(g4_attrs_between_events_cost_no_more)
{
	struct writer_at at = { 1000, 1001, 0, 5000 };
	u8 payload[64 + 8] = { 0 };
	u64 i, id, took;
	size_t count;

	writer_start(&w, true);
	writer_info(&w, false, WRITER_PRIVS);
	writer_auxtrace(&w, 0, 1, 0, bytes, 40);
	for (i = 0; i < 30000; i++) {
		id = 0x100000 + (i * 7919) % 30000;
		memcpy(payload + 64, &id, 8);
		writer_record(&w, 64, payload, sizeof(payload));
		writer_switch(&w, false, false, &at);
	}
	took = reading(&count);
	ck_assert_uint_eq(count, 30000);
	ck_assert_msg(took < 1000, "%llu ms of CPU time", (unsigned long long)took);
}
END_TEST

/* After each AUXTRACE_INFO the attr of its type was searched again. */
START_TEST(g4_auxtrace_infos_are_limited)
{
	u8 attr[64] = { 9 };
	u64 i, took;
	size_t count;

	writer_start(&w, true);
	for (i = 0; i < 60000; i++)
		writer_record(&w, 64, attr, sizeof(attr));
	for (i = 0; i < 60000; i++) {
		static const u64 info[2] = { 1, 77 };

		writer_record(&w, 70, info, sizeof(info));
		writer_aux(&w, 0, 1, 40, 0, 1);
	}
	writer_info(&w, false, WRITER_PRIVS);
	writer_auxtrace(&w, 0, 1, 0, bytes, 40);
	took = reading(&count);
	ck_assert_msg(took < 1000, "%llu ms of CPU time", (unsigned long long)took);
	ck_assert(vmpt_trace_info(trace)->incomplete);
	ck_assert_ptr_nonnull(strstr(diag.text, "AUXTRACE_INFO"));
	check_cut_stream(0, bytes, 40);
}
END_TEST

/* Each stream takes memory of its own where all are open at once. */
START_TEST(g4_streams_have_a_limit)
{
	int i;

	writer_start(&w, true);
	writer_info(&w, false, WRITER_PRIVS);
	for (i = 0; i < 8192; i++)
		writer_auxtrace(&w, i, 1, 0, bytes, 8);
	ck_assert_int_eq(open_bytes(w.buf, w.size), 0);
	ck_assert(!vmpt_trace_info(trace)->incomplete);
	ck_assert_uint_eq(vmpt_trace_streams(trace), 8192);
	for (i = 8192; i < 8200; i++)
		writer_auxtrace(&w, i, 1, 0, bytes, 8);
	ck_assert_int_eq(open_bytes(w.buf, w.size), 0);
	ck_assert(vmpt_trace_info(trace)->incomplete);
	ck_assert_ptr_nonnull(strstr(diag.text, "traces of 8200 CPUs and threads: only 8192"));
	ck_assert_uint_eq(vmpt_trace_streams(trace), 8192);
	check_cut_stream(0, bytes, 8);
	check_cut_stream(8191, bytes, 8);
}
END_TEST

/* ---- other formats ---- */

START_TEST(other_formats_are_named)
{
	size_t i;

	write_file(false, false);
	memcpy(w.buf, "2ELIFREP", 8);
	ck_assert_int_eq(open_bytes(w.buf, w.size), -VMPT_E_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(diag.text, "big-endian"));
	memcpy(w.buf, "PERFFILE", 8);
	ck_assert_int_eq(open_bytes(w.buf, w.size), -VMPT_E_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(diag.text, "version 1"));
	memcpy(w.buf, "PERFILE3", 8);
	ck_assert_int_eq(open_bytes(w.buf, w.size), -VMPT_E_FORMAT);
	check_diag();
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(open_bytes((const u8 *)"PERFILE2", i * 3), -VMPT_E_FORMAT);
}
END_TEST

START_TEST(a_file_without_pt_is_named)
{
	u64 info[3] = { 2, 0, 0 }; /* intel_bts */

	writer_start(&w, _i);
	writer_lost(&w, 1);
	writer_finish(&w);
	ck_assert_int_eq(open_bytes(w.buf, w.size), -VMPT_E_NO_PT);
	teardown();
	writer_start(&w, _i);
	writer_record(&w, 70, info, sizeof(info));
	writer_auxtrace(&w, 0, 1, 0, bytes, 16);
	writer_finish(&w);
	ck_assert_int_eq(open_bytes(w.buf, w.size), -VMPT_E_NO_PT);
	ck_assert_ptr_nonnull(strstr(diag.text, "type 2"));
}
END_TEST

START_TEST(a_trace_of_nothing_has_no_streams)
{
	writer_start(&w, _i);
	writer_info(&w, false, WRITER_PRIVS);
	writer_auxtrace(&w, 0, 1, 0, bytes, 0);
	writer_finish(&w);
	ck_assert_int_eq(open_bytes(w.buf, w.size), 0);
	ck_assert_uint_eq(vmpt_trace_streams(trace), 0);
	ck_assert(!vmpt_trace_info(trace)->incomplete);
}
END_TEST

/* A conversion with a shift of 64 or more, or a division by 0, is ignored. */
START_TEST(an_impossible_clock_is_none)
{
	u64 info[11] = { 1, WRITER_PMU_TYPE, 64, 5, 6, 1 };

	if (_i) {
		info[2] = 10;
		info[3] = 1ULL << 32;
	}
	writer_start(&w, false);
	writer_record(&w, 70, info, sizeof(info));
	writer_finish(&w);
	ck_assert_int_eq(open_bytes(w.buf, w.size), 0);
	ck_assert(!vmpt_trace_info(trace)->has_time_conv);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/reader-perf-bad");
	TCase *t = tcase_create("bad");

	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_loop_test(t, a_file_cut_anywhere_gives_what_is_whole, 0, 4);
	tcase_add_test(t, a_file_that_perf_did_not_finish_is_read);
	tcase_add_loop_test(t, random_damage, 0, 4);
	tcase_add_test(t, reading_goes_on_after_damage);
	tcase_add_test(t, broken_compression_loses_only_itself);
	tcase_add_loop_test(t, the_header_may_lie, 0, (int)VMPT_ARRAY_SIZE(lies));
	tcase_add_loop_test(t, a_buffer_may_claim_more_than_there_is, 0, 4);
	tcase_add_test(t, aux_records_may_lie);
	tcase_add_test(t, short_records_are_left_out);
	tcase_add_loop_test(t, compressed_records_do_not_nest, 0, 4);
	tcase_add_test(t, a_compressed_record_may_claim_more_than_it_has);
	tcase_add_loop_test(t, g4_compressed_records_grow_to_a_limit, 0, 4);
	tcase_add_test(t, g4_what_perf_writes_is_within_the_limit);
	tcase_add_test(t, g4_attrs_between_events_cost_no_more);
	tcase_add_test(t, g4_auxtrace_infos_are_limited);
	tcase_add_test(t, g4_streams_have_a_limit);
	tcase_add_test(t, other_formats_are_named);
	tcase_add_loop_test(t, a_file_without_pt_is_named, 0, 2);
	tcase_add_loop_test(t, a_trace_of_nothing_has_no_streams, 0, 2);
	tcase_add_loop_test(t, an_impossible_clock_is_none, 0, 2);
	suite_add_tcase(s, t);
	t = test_long_case(s);
	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_loop_test(t, any_byte_may_be_wrong, 0, 4);
	return s;
}
