// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * decoder/clock/timed.c: the times of batches are those of the clock, item by item, with any number
 * of threads and lanes; for RTIT those of the RTIT clock. With streams of random packets, which no
 * processor would send, nothing crashes, and times go back only where reported.
 */
#include <stdlib.h>

#include "decoder/clock/clock.h"
#include "decoder/pt/source.h"
#include "decoder/vmpt-rtit-clock.h"
#include "tests/decoder/streams.h"

#define SIZE (96u << 10)

static struct builder mix;
static struct vmpt_stream stream;
static const struct vmpt_gap gaps[] = { { .offset = 30000, .flags = VMPT_GAP_LOST },
					{ .offset = 61111, .flags = VMPT_GAP_TRUNCATED } };

static struct vmpt_clocks *open_clocks(void)
{
	static const struct vmpt_stream *streams[1] = { &stream };
	static const struct vmpt_given given = { .vmcs = 0x1000,
						 .map = { VMPT_TSC_UNSCALED, -12345ULL },
						 .source = VMPT_MAP_USER };
	struct vmpt_clocks_options options = {
		.rates = { .tsc_num = 176,
			   .tsc_den = 2,
			   .nominal = 24,
			   .mtc_freq = 3,
			   .has_mtc_freq = true },
		.given = &given,
		.given_count = 1,
	};
	struct vmpt_clocks *clocks;

	ck_assert_int_eq(vmpt_clocks_open(&clocks, streams, 1, &options), 0);
	return clocks;
}

struct timed_item {
	u64 offset;
	struct vmpt_time time;
	u8 kind;
};

/* All items with times, by the decoder's @options; freed by the caller. */
static struct timed_item *all_times(const struct vmpt_clocks *clocks,
				    const struct vmpt_options *options, size_t *count)
{
	struct timed_item *item = calloc(SIZE, sizeof(*item));
	struct vmpt_timed_batch b;
	struct vmpt_timed *timed;
	size_t n = 0, i;
	u64 last = 0;

	must(item, "no memory");
	ck_assert_int_eq(vmpt_timed_open(&timed, clocks, 0, options), 0);
	while (vmpt_timed_next(timed, &b) > 0) {
		for (i = 0; i < b.batch.count; i++) {
			const struct vmpt_item *at = &b.batch.items[i];
			struct vmpt_time t = b.time[i];

			must(n < SIZE, "more items than bytes");
			item[n++] = (struct timed_item){ b.batch.base + at->offset, t, at->kind };
			if (t.tsc == VMPT_TIME_NONE)
				continue;
			must(t.tsc >= last || (b.back && i >= b.back_item),
			     "at %llx: back without a reason",
			     (unsigned long long)(b.batch.base + at->offset));
			last = t.tsc;
		}
	}
	vmpt_timed_close(timed);
	*count = n;
	return item;
}

static void make(int seed)
{
	struct test_rng rng = { .state = (u64)seed * 977 + 5 };
	size_t i;

	memset(&mix, 0, sizeof(mix));
	build_mix(&mix, &rng, SIZE / 2, 3000);
	/* Some bytes that are none */
	for (i = 0; seed & 1 && i < 20; i++)
		mix.buf[test_random(&rng) % mix.size] = (u8)test_random(&rng);
	stream = (struct vmpt_stream){
		.data = mix.buf, .size = mix.size, .cpu = 0, .tid = -1, .gaps = gaps
	};
	stream.gap_count = seed & 2 ? 2 : 0;
	if (mix.size <= gaps[1].offset && stream.gap_count)
		stream.gap_count = mix.size > gaps[0].offset;
}

static bool same(const struct vmpt_time *a, const struct vmpt_time *b)
{
	return a->tsc == b->tsc && a->early == b->early && a->late == b->late;
}

START_TEST(by_batches_and_one_by_one)
{
	struct vmpt_options options = { .scalar = true };
	struct vmpt_clock_options how;
	struct vmpt_clocks *clocks;
	struct timed_item *item;
	struct vmpt_decoder *dec;
	struct vmpt_batch b;
	struct vmpt_clock clock;
	struct vmpt_time time;
	size_t count, n = 0, i, known = 0;

	make(_i);
	clocks = open_clocks();
	item = all_times(clocks, &options, &count);
	vmpt_clocks_clock_options(clocks, 0, &how);
	vmpt_clock_init(&clock, &how);
	ck_assert_int_eq(vmpt_decoder_open(&dec, &stream, &options), 0);
	while (vmpt_batch_next(dec, &b) > 0) {
		for (i = 0; i < b.count; i++, n++) {
			struct vmpt_batch one = b;

			one.items = &b.items[i];
			one.count = 1;
			vmpt_clock_batch(&clock, &stream, &one, &time, NULL);
			must(n < count && item[n].offset == b.base + b.items[i].offset, "item");
			/* A CYC has the time of the packet after it. */
			must(b.items[i].kind == VMPT_PT_CYC || same(&time, &item[n].time),
			     "at %llx: %llx and %llx", (unsigned long long)item[n].offset,
			     (unsigned long long)time.tsc, (unsigned long long)item[n].time.tsc);
			known += time.tsc != VMPT_TIME_NONE;
		}
	}
	ck_assert_uint_eq(n, count);
	ck_assert_uint_gt(known, 0);
	vmpt_decoder_close(dec);
	vmpt_clocks_close(clocks);
	free(item);
	free(mix.buf);
}
END_TEST

static size_t next_timing(const struct timed_item *item, size_t count, size_t i)
{
	while (i < count && item[i].kind != VMPT_PT_MTC && item[i].kind != VMPT_PT_TSC &&
	       item[i].kind != VMPT_PT_OVF && item[i].kind != VMPT_PT_TIP)
		i++;
	return i;
}

/* Runs are cut as the decoder likes; the packets between them have the same times. */
START_TEST(threads_and_lanes)
{
	static const struct vmpt_options way[] = {
		{ .lanes = 1, .chunk = 4096 },
		{ .lanes = 4, .chunk = 4096 },
		{ .threads = 3, .chunk = 4096 },
		{ 0 },
	};
	struct vmpt_options plain = { .scalar = true };
	struct timed_item *want, *got;
	struct vmpt_clocks *clocks;
	size_t wants, gots, w, i, j;

	make(_i);
	clocks = open_clocks();
	want = all_times(clocks, &plain, &wants);
	for (j = 0; j < VMPT_ARRAY_SIZE(way); j++) {
		got = all_times(clocks, &way[j], &gots);
		w = next_timing(want, wants, 0);
		i = next_timing(got, gots, 0);
		while (w < wants && i < gots) {
			must(want[w].offset == got[i].offset && same(&want[w].time, &got[i].time),
			     "way %zu at %llx: %llx and %llx", j,
			     (unsigned long long)want[w].offset,
			     (unsigned long long)want[w].time.tsc,
			     (unsigned long long)got[i].time.tsc);
			w = next_timing(want, wants, w + 1);
			i = next_timing(got, gots, i + 1);
		}
		ck_assert(w == wants && i == gots);
		free(got);
	}
	vmpt_clocks_close(clocks);
	free(want);
	free(mix.buf);
}
END_TEST

/* ---- many packets of time, as a processor sends them and now and then not ---- */

#define MTC_FREQ 3
#define STEP	 ((176ULL << MTC_FREQ) / 2)

static void build_tsc(struct test_rng *rng, u64 ctc)
{
	struct vmpt_pt_packet tma = { .kind = VMPT_PT_TMA }, tsc = { .kind = VMPT_PT_TSC };

	tma.tma.ctc = ctc & 0xffff;
	tma.tma.fast_counter = test_random(rng) % 88;
	tsc.tsc.tsc = 5000 + ctc * 176 / 2 + tma.tma.fast_counter;
	/* Some go back. */
	if (!(test_random(rng) % 40))
		tsc.tsc.tsc -= STEP * (test_random(rng) % 100);
	build(&mix, &tsc);
	build(&mix, &tma);
}

static void build_clock(struct test_rng *rng, size_t size)
{
	static const u8 others[] = { VMPT_PT_TIP_PGE, VMPT_PT_TIP_PGD, VMPT_PT_TIP, VMPT_PT_PAD,
				     VMPT_PT_FUP,     VMPT_PT_CBR,     VMPT_PT_OVF, VMPT_PT_PSBEND,
				     VMPT_PT_TIP,     VMPT_PT_EXSTOP };
	unsigned int cycles = 3 + test_random(rng) % 30, dense = test_random(rng) % 60;
	struct vmpt_pt_packet pkt;
	u64 ctc = 1 << 20;

	build_kind(&mix, VMPT_PT_PSB);
	build_tsc(rng, ctc);
	while (mix.size < size) {
		unsigned int what = test_random(rng) % (100 + dense);

		memset(&pkt, 0, sizeof(pkt));
		if (what >= 70) {
			pkt.kind = VMPT_PT_CYC;
			pkt.cyc.cycles = test_random(rng) & vmpt_mask64(cycles);
			build(&mix, &pkt);
		} else if (what >= 55) {
			ctc += (test_random(rng) % 16 ? 1ULL : test_random(rng) % 300) << MTC_FREQ;
			pkt.kind = VMPT_PT_MTC;
			pkt.mtc.ctc = ctc >> MTC_FREQ & 0xff;
			build(&mix, &pkt);
		} else if (what >= 50) {
			build_kind(&mix, VMPT_PT_FUP);
			build_tsc(rng, ctc);
		} else if (what >= 10) {
			build_kind(&mix, others[what % 4]);
		} else if (what == 0) {
			build_kind(&mix, VMPT_PT_PSB);
		} else if (test_random(rng) % 4) {
			build_random(&mix, rng, others[what]);
		}
	}
	stream = (struct vmpt_stream){ .data = mix.buf, .size = mix.size, .cpu = 0, .tid = -1 };
}

static bool is_padding(const struct vmpt_batch *b, const struct vmpt_item *item)
{
	size_t i;

	for (i = 0; i < item->size; i++)
		if (b->data[item->offset + i])
			return false;
	return item->kind == VMPT_ITEM_RUN || item->kind == VMPT_PT_PAD;
}

static bool same_counts(const struct vmpt_clock_counts *a, const struct vmpt_clock_counts *b)
{
	return a->tscs == b->tscs && a->guest_tscs == b->guest_tscs && a->unmapped == b->unmapped &&
	       a->tmas == b->tmas && a->tmas_bad == b->tmas_bad && a->mtcs == b->mtcs &&
	       a->mtcs_lost == b->mtcs_lost && a->cycs == b->cycs && a->cbrs == b->cbrs &&
	       a->ovfs == b->ovfs && a->backs == b->backs && a->contradictions == b->contradictions;
}

/*
 * What a batch's items get is what the clock says that is fed with one after the other, but for
 * CYCs: they have the time of the packet right after them. Returns how many have a late bound;
 * frees the stream.
 */
static size_t check_one_by_one(int seed)
{
	static const struct vmpt_clock_options how = {
		.rates = { .tsc_num = 176,
			   .tsc_den = 2,
			   .nominal = 24,
			   .mtc_freq = MTC_FREQ,
			   .has_mtc_freq = true },
	};
	struct vmpt_time *got, *want;
	struct vmpt_clock one, all;
	struct vmpt_decoder *dec;
	size_t i, known = 0;
	struct vmpt_batch b;

	vmpt_clock_init(&one, &how);
	vmpt_clock_init(&all, &how);
	ck_assert_int_eq(vmpt_decoder_open(&dec, &stream, NULL), 0);
	while (vmpt_batch_next(dec, &b) > 0) {
		got = calloc(b.count, sizeof(*got));
		want = calloc(b.count, sizeof(*want));
		must(got && want, "no memory");
		for (i = 0; i < b.count; i++) {
			const struct vmpt_item *item = &b.items[i];

			if (!is_padding(&b, item))
				vmpt_clock_feed(&one, item, b.base + item->offset, &b.owner);
			want[i] = is_padding(&b, item) ? one.next : one.now;
			if (i && item[-1].kind == VMPT_PT_CYC)
				want[i - 1] = want[i];
		}
		if (b.items[i - 1].kind == VMPT_PT_CYC)
			want[i - 1].late = VMPT_TIME_OPEN;
		vmpt_clock_batch(&all, &stream, &b, got, NULL);
		for (i = 0; i < b.count; i++) {
			must(same(&got[i], &want[i]),
			     "seed %d at %llx: %llx -%x +%x, not %llx -%x +%x", seed,
			     (unsigned long long)(b.base + b.items[i].offset),
			     (unsigned long long)got[i].tsc, got[i].early, got[i].late,
			     (unsigned long long)want[i].tsc, want[i].early, want[i].late);
			known += got[i].late != VMPT_TIME_OPEN;
		}
		free(got);
		free(want);
	}
	must(same_counts(&one.counts, &all.counts), "seed %d: counts", seed);
	vmpt_decoder_close(dec);
	free(mix.buf);
	return known;
}

START_TEST(as_fed_one_by_one)
{
	struct test_rng rng = { .state = (u64)_i * 1543 + 9 };

	memset(&mix, 0, sizeof(mix));
	build_clock(&rng, SIZE);
	ck_assert_uint_gt(check_one_by_one(_i), 1000);
}
END_TEST

/* Nothing bounds the time but the first TSC, until it is further away than a bound can tell. */
START_TEST(cycles_without_end)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_TSC, .tsc.tsc = 1ULL << 40 };
	unsigned int i;

	memset(&mix, 0, sizeof(mix));
	build_kind(&mix, VMPT_PT_PSB);
	build(&mix, &pkt);
	pkt = (struct vmpt_pt_packet){ .kind = VMPT_PT_CBR, .cbr.ratio = 12 };
	build(&mix, &pkt);
	build_kind(&mix, VMPT_PT_PSBEND);
	pkt = (struct vmpt_pt_packet){ .kind = VMPT_PT_CYC,
				       .cyc.cycles = (1u << 19) - 1 - (u32)_i };
	for (i = 0; i < 9000; i++)
		build(&mix, &pkt);
	stream = (struct vmpt_stream){ .data = mix.buf, .size = mix.size, .cpu = 0, .tid = -1 };
	check_one_by_one(_i);
}
END_TEST

/* The next packet of time, or false; runs and all others are passed over. */
static bool next_of_time(struct vmpt_decoder *dec, struct vmpt_batch *b, size_t *i)
{
	while (*i < b->count && !vmpt_time_wanted(b->items[*i].kind))
		++*i;
	while (*i == b->count) {
		if (vmpt_batch_next(dec, b) <= 0)
			return false;
		for (*i = 0; *i < b->count && !vmpt_time_wanted(b->items[*i].kind);)
			++*i;
	}
	return true;
}

/* A decoder that is asked for time only gives the same of those, with the same owners. */
START_TEST(time_only)
{
	const struct vmpt_options options = { .chunk = 4096, .threads = _i % 3 };
	struct vmpt_batch a = { 0 }, b = { 0 };
	size_t i = 0, k = 0, items = 0, all = 0;
	struct vmpt_decoder *every, *some;

	make(_i);
	ck_assert_int_eq(vmpt_decoder_open(&every, &stream, &options), 0);
	ck_assert_int_eq(vmpt_decoder_open(&some, &stream, &options), 0);
	vmpt_decoder_time_only(some);
	for (; next_of_time(every, &a, &i); i++, k++, items++) {
		const struct vmpt_item *x = &a.items[i], *y;

		must(next_of_time(some, &b, &k), "%zu items of time", items);
		y = &b.items[k];
		must(a.base + x->offset == b.base + y->offset && x->kind == y->kind &&
			     x->size == y->size,
		     "item %zu at %llx", items, (unsigned long long)(a.base + x->offset));
		/* Last IP is not kept. */
		must(x->kind == VMPT_PT_TIP_PGE || x->kind == VMPT_PT_TIP_PGD ||
			     x->payload == y->payload,
		     "payload at %llx", (unsigned long long)(a.base + x->offset));
		must(a.owner.kind == b.owner.kind && a.owner.sure == b.owner.sure &&
			     a.owner.vmcs == b.owner.vmcs,
		     "owner at %llx", (unsigned long long)(a.base + x->offset));
	}
	must(!next_of_time(some, &b, &k), "more items of time");
	vmpt_decoder_close(every);
	vmpt_decoder_close(some);
	/* And most of the others are not made, but for the plain loop's after an error. */
	ck_assert_int_eq(vmpt_decoder_open(&some, &stream, &options), 0);
	vmpt_decoder_time_only(some);
	while (vmpt_batch_next(some, &b) > 0)
		for (k = 0; k < b.count; k++)
			all += b.items[k].kind == VMPT_PT_TIP || b.items[k].kind == VMPT_PT_PTW;
	ck_assert_uint_gt(items, 1000);
	ck_assert_uint_lt(all, items / 10);
	vmpt_decoder_close(some);
	free(mix.buf);
}
END_TEST

/* PSB, STS, MTC RNG 0, TIP, as Appendix A has them. */
START_TEST(rtit)
{
	static u8 bytes[1024];
	struct vmpt_rtit_clock clock;
	struct vmpt_cursor at = { 0 };
	struct vmpt_timed_batch b;
	struct vmpt_options options = { .cycle_acc = VMPT_CYCLE_ACC_NO };
	struct vmpt_clocks *clocks;
	struct vmpt_rtit_packet p;
	struct vmpt_decoder *dec;
	struct vmpt_timed *timed;
	struct vmpt_packet pkt;
	size_t size = 0, i, k, times = 0;
	int n;

	for (k = 0; k < 40; k++) {
		memset(&p, 0, sizeof(p));
		p.kind = k % 20 == 0 ? VMPT_RTIT_PSB : k % 20 == 1 ? VMPT_RTIT_STS : VMPT_RTIT_MTC;
		if (p.kind == VMPT_RTIT_STS)
			p.sts.tsc = 0x123456780 + k * 0x80;
		if (p.kind == VMPT_RTIT_MTC)
			p.mtc.tsc = (0x123456780 + k * 0x80) >> 7 & 0xff;
		n = vmpt_rtit_encode(&p, bytes + size, sizeof(bytes) - size);
		ck_assert_int_gt(n, 0);
		size += (size_t)n;
	}
	stream = (struct vmpt_stream){
		.data = bytes, .size = size, .cpu = 0, .tid = -1, .isa = VMPT_ISA_RTIT
	};
	clocks = open_clocks();
	ck_assert_int_eq(vmpt_timed_open(&timed, clocks, 0, &options), 0);
	ck_assert_int_eq(vmpt_decoder_open(&dec, &stream, &options), 0);
	vmpt_rtit_clock_init(&clock, 24);
	while (vmpt_timed_next(timed, &b) > 0)
		for (i = 0; i < b.batch.count; i++) {
			must(vmpt_packet_next(dec, &at, &pkt) > 0, "packet");
			vmpt_rtit_clock_feed(&clock, &pkt);
			must(pkt.offset == b.batch.base + b.batch.items[i].offset, "offset");
			must(b.time[i].tsc == (clock.known ? clock.tsc : VMPT_TIME_NONE), "time");
			times += clock.known;
		}
	ck_assert_uint_ge(times, 38);
	ck_assert_uint_eq(vmpt_timed_counts(timed)->tscs, 2);
	vmpt_decoder_close(dec);
	vmpt_timed_close(timed);
	vmpt_clocks_close(clocks);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/timed");
	TCase *t = tcase_create("timed");

	tcase_add_loop_test(t, by_batches_and_one_by_one, 0, 24);
	tcase_add_loop_test(t, threads_and_lanes, 0, 12);
	tcase_add_loop_test(t, as_fed_one_by_one, 0, 40);
	tcase_add_loop_test(t, cycles_without_end, 0, 2);
	tcase_add_loop_test(t, time_only, 0, 24);
	tcase_add_test(t, rtit);
	suite_add_tcase(s, t);
	return s;
}
