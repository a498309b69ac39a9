// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * RTIT's packets and slices by the reference of rtit-walk.h: streams of all kinds, damaged copies
 * and random bytes, with and without cycle counts, headless or not, with gaps and runs. All streams
 * end at the end of a page, and the next page faults.
 *
 * VMPT_SOAK=seconds runs the random part for that time.
 */
#include <stdlib.h>
#include <time.h>

#include "tests/decoder/rtit-streams.h"
#include "tests/decoder/rtit-walk.h"
#include "tests/decoder/streams.h"

/* Of the random stream, for a failure's message. */
static u64 random_seed;

/* A decoder of RTIT ignores @threads, lanes, chunk, scalar. */
static void judge(const struct vmpt_stream *stream, struct vmpt_options o)
{
	const char *wrong;
	u64 where;

	o.threads = (unsigned int)(stream->size & 3);
	o.lanes = (unsigned int)(stream->size & 7);
	o.chunk = stream->size & 0xff;
	o.scalar = stream->size & 1;
	wrong = rtit_walk(stream, &o, &where);
	must(!wrong, "%s at 0x%llx (cycles %d headless %d of %llu bytes, seed %llu)", wrong,
	     (unsigned long long)where, o.cycle_acc, o.headless, (unsigned long long)stream->size,
	     (unsigned long long)random_seed);
}

/* In all modes. */
static void judge_bytes(const u8 *bytes, size_t size)
{
	struct vmpt_stream stream = { .size = size, .cpu = -1, .tid = -1, .isa = VMPT_ISA_RTIT };
	struct vmpt_options o = { 0 };
	struct room room;
	unsigned int i;

	room_copy(&room, bytes, size);
	stream.data = room.data;
	for (i = 0; i < 4; i++) {
		o.headless = i & 1;
		o.cycle_acc = i & 2 ? VMPT_CYCLE_ACC_YES : VMPT_CYCLE_ACC_NO;
		judge(&stream, o);
	}
	room_close(&room);
}

START_TEST(nothing_at_all)
{
	static const u8 end[] = { 0x02, 0xb0, 0x01, 0x02, 0x05, 0xc1 };
	struct rtit_builder b = { 0 };
	size_t n;

	judge_bytes(NULL, 0);
	rtit_stream_psb(&b);
	rtit_bytes(&b, end, sizeof(end));
	rtit_stream_psb(&b);
	for (n = 1; n <= b.size; n++)
		judge_bytes(b.buf, n);
	free(b.buf);
}
END_TEST

/* A payload that ends like the start of a PSB, and eight zeros, which are no packets. */
START_TEST(psb_inside_payloads)
{
	struct test_rng rng = { 4 };
	struct rtit_builder b = { 0 };
	u8 zeros[12] = { 0 };
	int i;

	rtit_stream_psb(&b);
	for (i = 0; i < 600; i++) {
		rtit_mix(&b, &rng, test_random(&rng) % 200, 0);
		rtit_stream_lip(&b, VMPT_RTIT_TIP, 0xc00012345678, 0);
		if (i & 1)
			rtit_bytes(&b, zeros, 8 + (size_t)(i % 4));
		else
			rtit_bytes(&b, "\xc0\x00\x00", 3);
		if (i & 8)
			rtit_stream_psb(&b);
	}
	judge_bytes(b.buf, b.size);
	free(b.buf);
}
END_TEST

/* Runs longer than an item can have; a loss longer than the amount decoded at a time. */
START_TEST(megabytes_without_psb)
{
	static u8 tnts[200000];
	struct test_rng rng = { 6 };
	struct rtit_builder b = { .cycle_acc = _i };

	memset(tnts, 0x2a, sizeof(tnts));
	rtit_stream_psb(&b);
	rtit_mix(&b, &rng, 600000, 0);
	rtit_bytes(&b, tnts, sizeof(tnts));
	rtit_mix(&b, &rng, 300000, 0);
	rtit_stream_psb(&b);
	rtit_mix(&b, &rng, 20000, 4096);
	rtit_stream_psb(&b);
	rtit_bytes(&b, tnts, sizeof(tnts));
	rtit_stream_psb(&b);
	/* A loss with no PSB for a long time after it. */
	rtit_bytes(&b, "\x00", 1);
	rtit_mix(&b, &rng, 1200000, 0);
	rtit_stream_psb(&b);
	rtit_mix(&b, &rng, 20000, 0);
	judge_bytes(b.buf, b.size);
	free(b.buf);
}
END_TEST

/* More tokens and losses than are decoded at a time; LIPs that depend on others without end. */
START_TEST(no_room)
{
	static const u8 leaning[] = { 0xb0, 0x11, 0x22, 0x81, 0x33, 0x44, 0x55, 0x66 };
	struct test_rng rng = { 7 };
	struct rtit_builder b = { 0 };
	int i;

	rtit_stream_psb(&b);
	for (i = 0; i < 100000; i++)
		rtit_bytes(&b, test_random(&rng) & 3 ? "\xc1" : "\xc4\x05", 1 + (size_t)(i & 1));
	for (i = 0; i < 5000; i++) {
		rtit_stream_psb(&b);
		rtit_bytes(&b, "\xff", (size_t)(i & 1));
	}
	for (i = 0; i < 20000; i++) {
		if (!(i % 1000))
			rtit_stream_psb(&b);
		rtit_bytes(&b, leaning, sizeof(leaning));
		if (i % 9000 == 8000)
			rtit_bytes(&b, "\x90\x01\x02", 3);
	}
	judge_bytes(b.buf, b.size);
	free(b.buf);
}
END_TEST

START_TEST(every_kind)
{
	static const size_t psb[] = { 30, 200, 2048, 16384 };
	struct test_rng rng = { 8 + (u64)_i };
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(psb); i++) {
		struct rtit_builder b = { .cycle_acc = _i };

		rtit_mix(&b, &rng, 150000, psb[i]);
		judge_bytes(b.buf, b.size);
		free(b.buf);
	}
}
END_TEST

/* ---- random streams ---- */

static int by_at(const void *a, const void *b)
{
	const struct vmpt_run *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/* Random bytes with many PSBs, and many first bytes of packets. */
static void noise(struct rtit_builder *b, struct test_rng *rng, size_t size)
{
	static const u8 heads[] = { 0x80, 0x88, 0x90, 0x94, 0x98, 0xb0, 0xb1, 0xb8,
				    0xc0, 0xc1, 0xc2, 0xc4, 0xd3, 0x41, 0x05, 0x00 };
	u8 byte;

	while (b->size < size) {
		byte = (u8)test_random(rng);
		if (test_random(rng) & 1)
			byte = heads[byte & 15];
		if (!(test_random(rng) % 60))
			rtit_stream_psb(b);
		else
			rtit_bytes(b, &byte, 1);
	}
}

#define RUNS 12

static void random_runs(struct vmpt_run *runs, struct test_rng *rng, size_t size)
{
	bool by_tsc = !(test_random(rng) & 3);
	size_t i;

	for (i = 0; i < RUNS; i++) {
		runs[i] = (struct vmpt_run){ .at = test_random(rng) % size, .by_tsc = by_tsc };
		if (by_tsc)
			runs[i].at = test_random(rng) & vmpt_mask64(40);
		runs[i].owner.kind = (u8)(test_random(rng) % 4);
		runs[i].owner.sure = (u8)(test_random(rng) % 2);
		if (runs[i].owner.kind == VMPT_OWNER_VM)
			runs[i].owner.vmcs = test_random(rng) % 2;
	}
	qsort(runs, RUNS, sizeof(*runs), by_at);
}

static void random_stream(struct test_rng *rng)
{
	size_t size = 1 + test_random(rng) % (test_random(rng) & 7 ? 4000 : 60000);
	struct vmpt_gap gaps[GAPS_MAX];
	struct vmpt_run runs[RUNS];
	struct vmpt_stream stream = { .gaps = gaps, .isa = VMPT_ISA_RTIT };
	struct vmpt_options o = { .headless = test_random(rng) & 1 };
	struct rtit_builder b = { .cycle_acc = test_random(rng) & 1 };
	struct room room;

	if (test_random(rng) % 4)
		rtit_mix(&b, rng, size, 1 + test_random(rng) % 4000);
	else
		noise(&b, rng, size);
	if (test_random(rng) & 1)
		damage_bytes(b.buf, b.size, rng);
	stream.gap_count = random_gaps(gaps, b.size, rng);
	random_runs(runs, rng, b.size);
	o.runs = test_random(rng) & 1 ? runs : NULL;
	o.run_count = RUNS;
	/* Mostly the right mode, sometimes the wrong one, sometimes the detected one. */
	o.cycle_acc =
		b.cycle_acc == !!(test_random(rng) & 3) ? VMPT_CYCLE_ACC_YES : VMPT_CYCLE_ACC_NO;
	if (!(test_random(rng) & 7))
		o.cycle_acc = VMPT_CYCLE_ACC_AUTO;
	room_copy(&room, b.buf, b.size);
	stream.data = room.data;
	stream.size = room.size;
	judge(&stream, o);
	room_close(&room);
	free(b.buf);
}

START_TEST(random_streams)
{
	const char *soak = getenv("VMPT_SOAK");
	time_t end = time(NULL) + (soak ? atoi(soak) : 0);
	u64 seed = soak ? (u64)time(NULL) : 1000, n = 0;

	for (; n < 600 || (soak && time(NULL) < end); n++) {
		struct test_rng rng = { seed + n };

		random_seed = seed + n;
		random_stream(&rng);
	}
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/rtit-source");
	TCase *t = tcase_create("streams");

	tcase_add_test(t, nothing_at_all);
	tcase_add_test(t, psb_inside_payloads);
	tcase_add_loop_test(t, megabytes_without_psb, 0, 2);
	tcase_add_test(t, no_room);
	tcase_add_loop_test(t, every_kind, 0, 2);
	tcase_add_test(test_random_case(s), random_streams);
	suite_add_tcase(s, t);
	return s;
}
