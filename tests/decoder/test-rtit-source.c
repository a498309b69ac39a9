// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * RTIT's fast source equals the plain one: every packet with owner and marks, every slice, on
 * streams of all kinds, damaged copies and random bytes, with and without cycle counts, for
 * any number of lanes and threads, any chunk size, headless or not, with gaps and runs. All
 * streams end at the end of a page behind which nothing can be read.
 *
 * VMPT_SOAK=seconds runs the random part for so long.
 */
#include <stdlib.h>
#include <time.h>

#include "decoder/vmpt-decode.h"
#include "tests/decoder/rtit-streams.h"
#include "tests/decoder/streams.h"

/* Of the random stream, for a failure's message. */
static u64 random_seed;

struct result {
	struct vmpt_packet *packets;
	struct vmpt_slice *slices;
	size_t packets_n, packets_max, slices_n, slices_max;
};

static void *grown(void *p, size_t n, size_t *max, size_t each)
{
	if (n < *max)
		return p;
	*max = 2 * n + 1024;
	p = realloc(p, *max * each);
	must(p, "no memory");
	return p;
}

static void collect_packets(struct result *r, const struct vmpt_stream *stream,
			    const struct vmpt_options *options)
{
	struct vmpt_cursor at = { 0 };
	struct vmpt_decoder *dec;
	u64 reached = 0;
	int ret;

	must(!vmpt_decoder_open(&dec, stream, options), "cannot open");
	do {
		struct vmpt_packet *p;

		r->packets = grown(r->packets, r->packets_n, &r->packets_max, sizeof(*p));
		p = &r->packets[r->packets_n];
		memset(p, 0, sizeof(*p));
		ret = vmpt_packet_next(dec, &at, p);
		if (ret != 1)
			break;
		must(p->offset == reached, "a packet at 0x%llx, the last ended at 0x%llx",
		     (unsigned long long)p->offset, (unsigned long long)reached);
		reached += p->kind == VMPT_ITEM_LOSS ? p->payload : p->size;
		r->packets_n++;
	} while (true);
	ck_assert_int_eq(ret, 0);
	ck_assert_uint_eq(reached, stream->size);
	vmpt_decoder_close(dec);
}

static void collect_slices(struct result *r, const struct vmpt_stream *stream,
			   const struct vmpt_options *options)
{
	struct vmpt_splitter *split;
	u64 reached = 0;
	int ret;

	must(!vmpt_splitter_open(&split, stream, options), "cannot open");
	do {
		struct vmpt_slice *s;

		r->slices = grown(r->slices, r->slices_n, &r->slices_max, sizeof(*s));
		s = &r->slices[r->slices_n];
		ret = vmpt_split_next(split, s);
		if (ret != 1)
			break;
		must(s->offset == reached, "a slice at 0x%llx, the last ended at 0x%llx",
		     (unsigned long long)s->offset, (unsigned long long)reached);
		reached += s->size;
		r->slices_n++;
	} while (true);
	ck_assert_int_eq(ret, 0);
	ck_assert_uint_eq(reached, stream->size);
	vmpt_splitter_close(split);
}

static void collect(struct result *r, const struct vmpt_stream *stream,
		    const struct vmpt_options *options)
{
	memset(r, 0, sizeof(*r));
	collect_packets(r, stream, options);
	collect_slices(r, stream, options);
}

static void result_free(struct result *r)
{
	free(r->packets);
	free(r->slices);
}

/* Padding is no matter of ours. */
static bool slices_equal(const struct vmpt_slice *a, const struct vmpt_slice *b)
{
	return a->offset == b->offset && a->size == b->size && a->owner.kind == b->owner.kind &&
	       a->owner.vmcs == b->owner.vmcs && a->owner.sure == b->owner.sure &&
	       a->begin == b->begin && a->loss == b->loss && a->has_tsc == b->has_tsc &&
	       a->first_tsc == b->first_tsc && a->last_tsc == b->last_tsc &&
	       !memcmp(a->cr3, b->cr3, sizeof(a->cr3)) && a->cr3_count == b->cr3_count &&
	       a->overflows == b->overflows && a->enables == b->enables &&
	       a->disables == b->disables && !memcmp(a->errata, b->errata, sizeof(a->errata));
}

static bool packets_equal(const struct vmpt_packet *a, const struct vmpt_packet *b)
{
	return a->offset == b->offset && a->payload == b->payload && a->size == b->size &&
	       a->kind == b->kind && a->aux == b->aux && a->owner.kind == b->owner.kind &&
	       a->owner.vmcs == b->owner.vmcs && a->owner.sure == b->owner.sure;
}

static void compare(const struct result *want, const struct vmpt_stream *stream,
		    const struct vmpt_options *o)
{
	const struct vmpt_packet *a, *b;
	struct result got;
	size_t i;

	collect(&got, stream, o);
	for (i = 0; i < want->packets_n && i < got.packets_n; i++) {
		a = &want->packets[i];
		b = &got.packets[i];
		must(packets_equal(a, b),
		     "packet %zu: kind %u at 0x%llx size %u payload 0x%llx aux 0x%x owner %u, want "
		     "kind %u at 0x%llx size %u payload 0x%llx aux 0x%x owner %u (lanes %u chunk "
		     "%zu threads %u cycles %d headless %d of %llu bytes, seed %llu)",
		     i, b->kind, (unsigned long long)b->offset, b->size,
		     (unsigned long long)b->payload, b->aux, b->owner.kind, a->kind,
		     (unsigned long long)a->offset, a->size, (unsigned long long)a->payload, a->aux,
		     a->owner.kind, o->lanes, o->chunk, o->threads, o->cycle_acc, o->headless,
		     (unsigned long long)stream->size, (unsigned long long)random_seed);
	}
	must(got.packets_n == want->packets_n, "%zu packets, want %zu (seed %llu)", got.packets_n,
	     want->packets_n, (unsigned long long)random_seed);
	for (i = 0; i < want->slices_n && i < got.slices_n; i++)
		must(slices_equal(&want->slices[i], &got.slices[i]),
		     "slice %zu at 0x%llx differs (lanes %u chunk %zu threads %u cycles %d, "
		     "seed %llu)",
		     i, (unsigned long long)got.slices[i].offset, o->lanes, o->chunk, o->threads,
		     o->cycle_acc, (unsigned long long)random_seed);
	must(got.slices_n == want->slices_n, "%zu slices, want %zu (seed %llu)", got.slices_n,
	     want->slices_n, (unsigned long long)random_seed);
	result_free(&got);
}

/* The two sources agree on @stream, under @n random options beside those of @base. */
static void agree(const struct vmpt_stream *stream, struct test_rng *rng,
		  const struct vmpt_options *base, unsigned int n)
{
	static const size_t chunks[] = { 0, 16, 64, 100, 700, 4096, 30000, 1 << 20 };
	struct vmpt_options o = *base;
	struct result want;

	o.scalar = true;
	collect(&want, stream, &o);
	o.scalar = false;
	while (n--) {
		o.lanes = (unsigned int)(test_random(rng) % 9);
		o.chunk = chunks[test_random(rng) % VMPT_ARRAY_SIZE(chunks)];
		o.threads = (unsigned int)(test_random(rng) % 4);
		compare(&want, stream, &o);
	}
	result_free(&want);
}

/* In all modes. */
static void agree_bytes(const u8 *bytes, size_t size, struct test_rng *rng, unsigned int n)
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
		agree(&stream, rng, &o, n);
	}
	room_close(&room);
}

START_TEST(nothing_at_all)
{
	static const u8 end[] = { 0x02, 0xb0, 0x01, 0x02, 0x05, 0xc1 };
	struct test_rng rng = { 3 };
	struct rtit_builder b = { 0 };
	size_t n;

	agree_bytes(NULL, 0, &rng, 2);
	rtit_psb(&b);
	rtit_bytes(&b, end, sizeof(end));
	rtit_psb(&b);
	for (n = 1; n <= b.size; n++)
		agree_bytes(b.buf, n, &rng, 1);
	free(b.buf);
}
END_TEST

/* A payload that ends as a PSB begins, and eight zeros, which are no packets. */
START_TEST(psb_inside_payloads)
{
	struct test_rng rng = { 4 };
	struct rtit_builder b = { 0 };
	u8 zeros[12] = { 0 };
	int i;

	rtit_psb(&b);
	for (i = 0; i < 600; i++) {
		rtit_mix(&b, &rng, test_random(&rng) % 200, 0);
		rtit_lip(&b, VMPT_RTIT_TIP, 0xc00012345678, 0);
		if (i & 1)
			rtit_bytes(&b, zeros, 8 + (size_t)(i % 4));
		else
			rtit_bytes(&b, "\xc0\x00\x00", 3);
		if (i & 8)
			rtit_psb(&b);
	}
	agree_bytes(b.buf, b.size, &rng, 6);
	free(b.buf);
}
END_TEST

/* Chunks have no PSB to be cut at; runs longer than an item can say. */
START_TEST(megabytes_without_psb)
{
	static u8 tnts[200000];
	struct test_rng rng = { 6 };
	struct rtit_builder b = { .cycle_acc = _i };

	memset(tnts, 0x2a, sizeof(tnts));
	rtit_psb(&b);
	rtit_mix(&b, &rng, 600000, 0);
	rtit_bytes(&b, tnts, sizeof(tnts));
	rtit_mix(&b, &rng, 300000, 0);
	rtit_psb(&b);
	rtit_mix(&b, &rng, 20000, 4096);
	rtit_psb(&b);
	rtit_bytes(&b, tnts, sizeof(tnts));
	rtit_psb(&b);
	/* A loss, behind which no PSB stands for long. */
	rtit_bytes(&b, "\x00", 1);
	rtit_mix(&b, &rng, 500000, 0);
	rtit_psb(&b);
	rtit_mix(&b, &rng, 20000, 0);
	agree_bytes(b.buf, b.size, &rng, 1);
	free(b.buf);
}
END_TEST

/* More tokens and losses than a chunk has room for; LIPs that lean on others for ever. */
START_TEST(no_room)
{
	static const u8 leaning[] = { 0xb0, 0x11, 0x22, 0x81, 0x33, 0x44, 0x55, 0x66 };
	struct test_rng rng = { 7 };
	struct rtit_builder b = { 0 };
	int i;

	rtit_psb(&b);
	for (i = 0; i < 100000; i++)
		rtit_bytes(&b, test_random(&rng) & 3 ? "\xc1" : "\xc4\x05", 1 + (size_t)(i & 1));
	for (i = 0; i < 5000; i++) {
		rtit_psb(&b);
		rtit_bytes(&b, "\xff", (size_t)(i & 1));
	}
	for (i = 0; i < 20000; i++) {
		if (!(i % 1000))
			rtit_psb(&b);
		rtit_bytes(&b, leaning, sizeof(leaning));
		if (i % 9000 == 8000)
			rtit_bytes(&b, "\x90\x01\x02", 3);
	}
	agree_bytes(b.buf, b.size, &rng, 3);
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
		agree_bytes(b.buf, b.size, &rng, 2);
		free(b.buf);
	}
}
END_TEST

/* Every number of lanes and of threads. */
START_TEST(lanes_and_threads)
{
	struct vmpt_stream stream = { .isa = VMPT_ISA_RTIT };
	struct vmpt_options o = { .scalar = true,
				  .cycle_acc = _i ? VMPT_CYCLE_ACC_YES : VMPT_CYCLE_ACC_NO };
	struct rtit_builder b = { .cycle_acc = _i };
	struct test_rng rng = { 9 };
	struct result want;
	struct room room;

	rtit_mix(&b, &rng, 400000, 1000);
	room_copy(&room, b.buf, b.size);
	stream.data = room.data;
	stream.size = room.size;
	collect(&want, &stream, &o);
	o.scalar = false;
	o.chunk = 3000;
	for (o.lanes = 1; o.lanes <= 8; o.lanes++)
		for (o.threads = 1; o.threads <= 3; o.threads++)
			compare(&want, &stream, &o);
	result_free(&want);
	room_close(&room);
	free(b.buf);
}
END_TEST

/* A decoder is closed while its threads still decode. */
START_TEST(close_in_the_middle)
{
	struct vmpt_stream stream = { .isa = VMPT_ISA_RTIT };
	struct vmpt_options o = { .threads = 3, .chunk = 2000 };
	struct test_rng rng = { 10 };
	struct rtit_builder b = { 0 };
	struct vmpt_decoder *dec;
	struct vmpt_batch batch;
	int i, n;

	rtit_mix(&b, &rng, 300000, 500);
	stream.data = b.buf;
	stream.size = b.size;
	for (i = 0; i < 40; i++) {
		must(!vmpt_decoder_open(&dec, &stream, &o), "cannot open");
		for (n = i / 2; n; n--)
			must(vmpt_batch_next(dec, &batch) == 1, "no batch %d", n);
		vmpt_decoder_close(dec);
	}
	free(b.buf);
}
END_TEST

/* ---- random streams ---- */

/* Overwrite, move and fill some bytes. */
static void damage(u8 *bytes, size_t size, struct test_rng *rng)
{
	u64 n = 1 + test_random(rng) % 24;
	size_t at, from, len;

	while (n--) {
		at = test_random(rng) % size;
		len = 1 + test_random(rng) % (test_random(rng) & 3 ? 2 : 300);
		if (len > size - at)
			len = size - at;
		from = test_random(rng) % (size - len + 1);
		switch (test_random(rng) % 3) {
		case 0:
			bytes[at] = (u8)test_random(rng);
			break;
		case 1:
			memmove(bytes + at, bytes + from, len);
			break;
		default:
			memset(bytes + at, (u8)test_random(rng), len);
		}
	}
}

static int by_offset(const void *a, const void *b)
{
	const struct vmpt_gap *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

static int by_at(const void *a, const void *b)
{
	const struct vmpt_run *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/* Random bytes with many PSBs, and many bytes that packets begin with. */
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
			rtit_psb(b);
		else
			rtit_bytes(b, &byte, 1);
	}
}

#define RUNS 12
#define GAPS 6

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
	size_t size = 1 + test_random(rng) % (test_random(rng) & 7 ? 4000 : 60000), i;
	struct vmpt_gap gaps[GAPS] = { 0 };
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
		damage(b.buf, b.size, rng);
	stream.gap_count = test_random(rng) & 1 ? test_random(rng) % GAPS : 0;
	for (i = 0; i < stream.gap_count; i++)
		gaps[i].offset = test_random(rng) % b.size;
	qsort(gaps, stream.gap_count, sizeof(*gaps), by_offset);
	random_runs(runs, rng, b.size);
	o.runs = test_random(rng) & 1 ? runs : NULL;
	o.run_count = RUNS;
	/* Mostly the right mode, sometimes the wrong one, sometimes what the bytes say. */
	o.cycle_acc =
		b.cycle_acc == !!(test_random(rng) & 3) ? VMPT_CYCLE_ACC_YES : VMPT_CYCLE_ACC_NO;
	if (!(test_random(rng) & 7))
		o.cycle_acc = VMPT_CYCLE_ACC_AUTO;
	room_copy(&room, b.buf, b.size);
	stream.data = room.data;
	stream.size = room.size;
	agree(&stream, rng, &o, 3);
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
	const char *soak = getenv("VMPT_SOAK");
	Suite *s = suite_create("decoder/rtit-source");
	TCase *t = tcase_create("streams"), *threads = tcase_create("threads");

	tcase_set_timeout(t, soak ? atoi(soak) + 300 : 250);
	tcase_set_timeout(threads, 250);
	tcase_add_test(t, nothing_at_all);
	tcase_add_test(t, psb_inside_payloads);
	tcase_add_loop_test(t, megabytes_without_psb, 0, 2);
	tcase_add_test(t, no_room);
	tcase_add_loop_test(t, every_kind, 0, 2);
	tcase_add_test(test_random_case(s), random_streams);
	tcase_add_loop_test(threads, lanes_and_threads, 0, 2);
	tcase_add_test(threads, close_in_the_middle);
	suite_add_tcase(s, t);
	suite_add_tcase(s, threads);
	return s;
}
