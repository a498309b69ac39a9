// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt_vcpu_tsc_adjust: random traces in random ToPA tables and single ranges, in steps, with and
 * without guest_map, with callbacks that fail in between; missing memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/support/support.h"
#include "tests/vmm-lib/tsc-oracle.h"
#include "tests/vmm-lib/tsc-rig.h"

#define ONE (1ULL << 48)

/* ---- random traces ---- */

static u64 draw(struct test_rng *rng, u64 n)
{
	return test_random(rng) % n;
}

static void random_layout(struct tsc_rig *r, struct test_rng *rng)
{
	u8 sizes[TSC_REGIONS];
	unsigned int i, n = 1 + (unsigned int)draw(rng, TSC_REGIONS);

	for (i = 0; i < n; i++)
		sizes[i] = (u8)(draw(rng, 3) ? 0 : draw(rng, 3));
	if (draw(rng, 3))
		tsc_rig_topa(r, sizes, n, 1 + (unsigned int)draw(rng, 5));
	else
		tsc_rig_range(r, 128u << draw(rng, 10));
}

/* One call, repeated while callbacks fail or work is left. */
static void adjust(struct tsc_rig *r, struct test_rng *rng, const struct vmpt_tsc_change *change,
		   const struct vmpt_position *to, u64 seed)
{
	int err;

	do {
		r->fail_in = draw(rng, 3) ? 0 : 1 + draw(rng, 30);
		err = vmpt_vcpu_tsc_adjust(&r->v, change, to);
	} while (err == -VMPT_E_IO || err == VMPT_MORE);
	r->fail_in = 0;
	if (err)
		ck_abort_msg("seed %llu: %d", (unsigned long long)seed, err);
}

/* A trace of several times the ring, adjusted in steps of less than a ring. */
static void random_round(u64 seed)
{
	static const struct tsc_mix mix = { .psb = 5, .tsc = 80, .block = 10, .tsc_bytes = true };
	static const struct tsc_mix bad = { .psb = 9, .tsc = 40, .block = 10, .error = 2 };
	struct test_rng rng = { seed };
	struct vmpt_tsc_change change = { .high = (u8)test_random(&rng) };
	struct tsc_oracle sum = { 0 };
	struct tsc_rig r;
	u64 at = 0, len, n, middle, stream_rng = test_random(&rng) | 1;
	struct vmpt_position to;
	u8 *in, *want;

	tsc_rig_init(&r, draw(&rng, 2));
	r.v.adjust_budget = draw(&rng, 3) ? 0 : draw(&rng, 20000);
	random_layout(&r, &rng);
	guest_shuffle(&r.guest, seed);
	tsc_rig_start(&r);
	len = draw(&rng, 3 * r.ring < 60000 ? 3 * r.ring : 60000) + 1;
	in = malloc(len);
	want = malloc(len);
	ck_assert(in && want);
	tsc_stream(in, len, draw(&rng, 4) ? &mix : &bad, &stream_rng);
	memcpy(want, in, len);
	while (at < len) {
		/* A cut packet before it must not be overwritten. */
		n = draw(&rng, draw(&rng, 2) ? 20 : r.ring - VMPT_PT_SIZE_MAX);
		n = n < len - at ? n : len - at;
		tsc_rig_put(&r, at, in + at, n);
		tsc_rig_go(&r, at + n);
		/* The clock may change in between: the caller says where. */
		middle = draw(&rng, n + 1);
		to = tsc_rig_position(&r, at + middle);
		change.multiplier = test_random(&rng) >> 14;
		change.offset = test_random(&rng);
		adjust(&r, &rng, &change, &to, seed);
		tsc_oracle(&sum, &change, in, want, at, at + middle);
		change.offset += 1000;
		adjust(&r, &rng, &change, NULL, seed);
		tsc_oracle(&sum, &change, in, want, at + middle, at + n);
		at += n;
		tsc_rig_check(&r, want, at, seed);
		if (draw(&rng, 8) == 0)
			at = at + n < len ? at : len; /* enough of this one */
	}
	free(in);
	free(want);
	guest_free(&r.guest);
}

START_TEST(random_traces)
{
	const char *soak = getenv("VMPT_SOAK");
	time_t end = time(NULL) + (soak ? atoi(soak) : 0);
	u64 seed;

	for (seed = 0; seed < 60 || time(NULL) < end; seed++)
		random_round(seed);
}
END_TEST

/* ---- by hand ---- */

static const u8 tsc[8] = { 0x19, 0x10 };
static const u8 psb[16] = {
	2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82
};
static const struct vmpt_tsc_change plus_one = { .multiplier = ONE, .offset = 1 };

/* A TSC at each border between the trace's regions, cut after 1 to 7 bytes. */
START_TEST(across_regions)
{
	static const u8 sizes[3] = { 0, 1, 0 };
	unsigned int map, first, cut;
	struct tsc_rig r;

	for (map = 0; map < 2; map++) {
		for (first = 1; first < 8; first++) {
			tsc_rig_init(&r, map);
			tsc_rig_topa(&r, sizes, 3, 1);
			tsc_rig_start(&r);
			for (cut = 0; cut < 2; cut++)
				tsc_rig_put(&r, (cut ? 12288 : 4096) - first, tsc, 8);
			/* One call that ends inside the second TSC, one for the rest. */
			tsc_rig_go(&r, 12288 + 2);
			ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
			ck_assert_uint_eq(tsc_rig_byte(&r, 4096 - first + 1), 0x11);
			ck_assert_uint_eq(tsc_rig_byte(&r, 12288 - first + 1),
					  first > 5 ? 0x11 : 0x10);
			tsc_rig_go(&r, 12288 + 20);
			ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
			ck_assert_uint_eq(tsc_rig_byte(&r, 12288 - first + 1), 0x11);
			ck_assert_uint_eq(r.v.scan.tscs, 2);
			guest_free(&r.guest);
		}
	}
}
END_TEST

/* After STOP OutputOffset is the region's size; an END entry may be current too. */
START_TEST(places)
{
	static const u8 sizes[2] = { 0, 0 };
	struct tsc_rig r;

	tsc_rig_init(&r, true);
	tsc_rig_topa(&r, sizes, 2, 2);
	tsc_rig_start(&r);
	tsc_rig_put(&r, 100, tsc, 8);
	tsc_rig_put(&r, 4096 + 100, tsc, 8);
	r.v.regs.output_mask_ptrs = 4096ULL << 32 | 0x7f;
	r.v.traced = 4096;
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
	ck_assert_uint_eq(tsc_rig_byte(&r, 101), 0x11);
	/* From the end of the first region to the END entry, which is index 2. */
	r.v.regs.output_mask_ptrs = 2 << 7 | 0x7f;
	r.v.traced = 4096;
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
	ck_assert_uint_eq(tsc_rig_byte(&r, 4096 + 101), 0x11);
	/* And on from there, across the ring's end. */
	tsc_rig_put(&r, 50, tsc, 8);
	tsc_rig_go(&r, 60);
	r.v.scan.lost = 0;
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
	ck_assert_uint_eq(tsc_rig_byte(&r, 51), 0x11);
	ck_assert_uint_eq(tsc_rig_byte(&r, 101), 0x11);
	guest_free(&r.guest);
}
END_TEST

START_TEST(arguments)
{
	static const u8 sizes[2] = { 0, 0 };
	struct tsc_rig r;

	tsc_rig_init(&r, true);
	tsc_rig_topa(&r, sizes, 2, 2);
	/* Never enabled here: start now. */
	tsc_rig_go(&r, 50);
	tsc_rig_put(&r, 40, tsc, 8);
	tsc_rig_put(&r, 50, tsc, 8);
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
	ck_assert(r.v.scan_set);
	tsc_rig_go(&r, 60);
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
	ck_assert_uint_eq(tsc_rig_byte(&r, 41), 0x10);
	ck_assert_uint_eq(tsc_rig_byte(&r, 51), 0x11);
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, NULL, NULL), -VMPT_E_INVAL);
	r.v.entered = true;
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), -VMPT_E_STATE);
	guest_free(&r.guest);
}
END_TEST

/* A PIP that the VMM appended is one packet among the others. */
START_TEST(after_pip)
{
	static const u8 sizes[2] = { 0, 0 };
	struct vmpt_cr3_write write = { .old_cr3 = 0x1000,
					.new_cr3 = 0x1900,
					.cause = VMPT_CR3_MOV };
	struct tsc_rig r;

	tsc_rig_init(&r, true);
	tsc_rig_topa(&r, sizes, 2, 2);
	r.v.plan.guest_pt = true;
	r.v.regs.ctl |= VMPT_CTL_OS | VMPT_CTL_USER | VMPT_CTL_BRANCH_EN;
	r.v.regs.status = VMPT_STATUS_TRIGGER_EN | VMPT_STATUS_CONTEXT_EN;
	tsc_rig_start(&r);
	/* A TSC, the PIP across the regions' border, a TSC. */
	tsc_rig_go(&r, 4092);
	tsc_rig_put(&r, 4084, tsc, 8);
	ck_assert_int_eq(vmpt_vcpu_cr3_write(&r.v, &write), 1);
	tsc_rig_put(&r, 4100, tsc, 8);
	tsc_rig_go(&r, 4108);
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
	ck_assert_uint_eq(tsc_rig_byte(&r, 4085), 0x11);
	ck_assert_uint_eq(tsc_rig_byte(&r, 4092), 0x02);
	ck_assert_uint_eq(tsc_rig_byte(&r, 4093), 0x43);
	ck_assert_uint_eq(tsc_rig_byte(&r, 4101), 0x11);
	/* 4084 PADs before them */
	ck_assert_uint_eq(r.v.scan.packets, 4084 + 3);
	guest_free(&r.guest);
}
END_TEST

/* ---- memory that is not there ---- */

START_TEST(no_memory)
{
	static const u8 sizes[1] = { 2 };
	struct tsc_rig r;
	unsigned int page;

	tsc_rig_init(&r, _i);
	tsc_rig_topa(&r, sizes, 1, 1);
	tsc_rig_start(&r);
	page = (unsigned int)(r.gpa[0] >> 12) + 1;
	tsc_rig_put(&r, 10, tsc, 8);
	tsc_rig_put(&r, 4096 + 10, tsc, 8);
	tsc_rig_put(&r, 8192 + 10, tsc, 8);
	tsc_rig_put(&r, 8192 + 100, psb, 16);
	tsc_rig_put(&r, 8192 + 116, tsc, 8);
	tsc_rig_go(&r, 10000);
	guest_set_kind(&r.guest, page, 1, VMPT_MEM_UNBACKED);
	/* The VMM will provide it: nothing after it is done before. */
	r.v.on_mem[VMPT_MEM_UNBACKED] = VMPT_ON_MEM_RETRY;
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), -VMPT_E_RETRY);
	ck_assert_uint_eq(tsc_rig_byte(&r, 11), 0x11);
	ck_assert_uint_eq(r.v.scan_mask_ptrs >> 32, 4096);
	ck_assert_uint_eq(r.v.scan.errors, 0);
	/* It will not: A2: what follows is overwritten, from the next PSB on it is done. */
	r.v.on_mem[VMPT_MEM_UNBACKED] = VMPT_ON_MEM_DROP;
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
	ck_assert_uint_eq(r.v.scan.errors, 1);
	ck_assert_uint_eq(tsc_rig_byte(&r, 11), 0x11);
	ck_assert_uint_eq(tsc_rig_byte(&r, 8192), VMPT_TSC_LOST_MARK);
	ck_assert_uint_eq(tsc_rig_byte(&r, 8192 + 10), 0);
	ck_assert_uint_eq(tsc_rig_byte(&r, 8192 + 11), 0);
	ck_assert_uint_eq(r.v.events, VMPT_EVENT_LOST);
	ck_assert_uint_eq(tsc_rig_byte(&r, 8192 + 117), 0x11);
	guest_set_kind(&r.guest, page, 1, VMPT_MEM_OK);
	ck_assert_uint_eq(tsc_rig_byte(&r, 4096 + 11), 0x10);
	guest_free(&r.guest);
}
END_TEST

/*
 * A packet that the library does not know, whole or in two calls: the loss is reported, a PSB+ is
 * asked for, and the TSCs before it are gone, whatever pieces they are seen in.
 */
START_TEST(a2_an_unknown_packet_in_guest_memory)
{
	static const u8 sizes[3] = { 0, 1, 0 };
	static const u8 unknown[4] = { 0x02, 0x7f, 0x19, 0x02 };
	unsigned int at, i, first = 4096 - 40 + (unsigned int)_i / 2;
	struct tsc_rig r;
	u8 byte;

	tsc_rig_init(&r, _i & 1);
	tsc_rig_topa(&r, sizes, 3, 1);
	tsc_rig_start(&r);
	tsc_rig_put(&r, 8, tsc, 8);
	tsc_rig_put(&r, first, unknown, sizeof(unknown));
	for (at = first + 4; at < first + 60; at += 8)
		tsc_rig_put(&r, at, tsc, 8);
	tsc_rig_put(&r, at, psb, 16);
	tsc_rig_put(&r, at + 16, tsc, 8);
	/* Calls that end in the unknown packet, in a TSC after it, and in the PSB. */
	for (i = 0; i < 4; i++) {
		tsc_rig_go(&r, i == 0	? first + 1
			       : i == 1 ? first + 33
			       : i == 2 ? at + 7
					: at + 30);
		ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
		ck_assert_uint_eq(!r.v.force_psb, i == 0);
		ck_assert_uint_eq(r.v.events, i ? VMPT_EVENT_LOST : 0);
	}
	ck_assert_uint_eq(r.v.scan.errors, 1);
	ck_assert_uint_eq(r.v.scan.lost_bytes, at - first);
	ck_assert_uint_eq(tsc_rig_byte(&r, 9), 0x11);
	ck_assert_uint_eq(tsc_rig_byte(&r, at + 17), 0x11);
	for (i = first; i < at; i++) {
		byte = tsc_rig_byte(&r, i);
		ck_assert_msg(byte == (i == first ? VMPT_TSC_LOST_MARK : 0), "byte %u: %02x",
			      i - first, byte);
	}
	guest_free(&r.guest);
}
END_TEST

/* A trace of 100,000 bytes in 32 scattered pages. */
static void long_trace(struct tsc_rig *r, u8 *in, u8 *want, size_t len)
{
	static const struct tsc_mix mix = { .psb = 5, .tsc = 5, .block = 5, .tsc_bytes = true };
	static const u8 sizes[1] = { 5 };
	struct tsc_oracle sum = { 0 };
	u64 stream_rng = 1;

	tsc_rig_init(r, true);
	tsc_rig_topa(r, sizes, 1, 1);
	guest_shuffle(&r->guest, 1);
	tsc_rig_start(r);
	tsc_stream(in, len, &mix, &stream_rng);
	memcpy(want, in, len);
	tsc_oracle(&sum, &plus_one, in, want, 0, len);
	tsc_rig_put(r, 0, in, len);
	tsc_rig_go(r, len);
	r->guest.maps = 0;
}

/*
 * Pages are mapped ahead. The n-th callback fails: the call returns that, the next one continues.
 */
START_TEST(map_ahead)
{
	static u8 in[100000], want[100000];
	struct tsc_rig r;
	u64 n, seen = 0;
	int err;

	for (n = 0; n < 60; n++) {
		long_trace(&r, in, want, sizeof(in));
		r.fail_in = n;
		err = vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL);
		ck_assert_int_eq(err, r.failing ? -VMPT_E_IO : 0);
		seen += r.failing;
		if (err)
			ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
		tsc_rig_check(&r, want, sizeof(in), n);
		/* Each page once, and a few again where lanes stopped. */
		if (!n)
			ck_assert_uint_le(r.guest.maps, 60);
		guest_free(&r.guest);
	}
	ck_assert_uint_ge(seen, 25);
}
END_TEST

/* One of the pages mapped ahead has no memory: what is before it is done. */
START_TEST(no_page_ahead)
{
	static u8 in[100000], want[100000];
	struct tsc_rig r;
	u64 page, i;

	for (page = 1; page < 24; page++) {
		long_trace(&r, in, want, sizeof(in));
		guest_set_kind(&r.guest, (unsigned int)((r.gpa[0] >> 12) + page), 1,
			       VMPT_MEM_UNBACKED);
		r.v.on_mem[VMPT_MEM_UNBACKED] = VMPT_ON_MEM_RETRY;
		ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), -VMPT_E_RETRY);
		ck_assert_uint_eq(r.v.scan_mask_ptrs >> 32, page * 4096);
		/* A packet cut by the page's end waits for its rest. */
		for (i = 0; i < page * 4096 - VMPT_PT_SIZE_MAX; i++)
			if (tsc_rig_byte(&r, i) != want[i])
				ck_abort_msg("page %llu: byte %llu", (unsigned long long)page,
					     (unsigned long long)i);
		guest_set_kind(&r.guest, (unsigned int)((r.gpa[0] >> 12) + page), 1, VMPT_MEM_OK);
		ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), 0);
		tsc_rig_check(&r, want, sizeof(in), page);
		guest_free(&r.guest);
	}
}
END_TEST

/* A map that returns nothing would be an endless loop. */
static int map_nothing(void *opaque, u64 gpa, u8 **host, size_t *size)
{
	(void)opaque;
	(void)gpa;
	(void)host;
	*size = 0;
	return 0;
}

START_TEST(nothing_mapped)
{
	struct tsc_rig r;

	tsc_rig_init(&r, true);
	tsc_rig_range(&r, 4096);
	tsc_rig_start(&r);
	r.ops.guest_map = map_nothing;
	tsc_rig_go(&r, 100);
	ck_assert_int_eq(vmpt_vcpu_tsc_adjust(&r.v, &plus_one, NULL), -VMPT_E_GUEST_MEM);
	guest_free(&r.guest);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("tsc-adjust");
	TCase *tc = tcase_create("tsc-adjust");

	tcase_add_test(test_random_case(suite), random_traces);
	tcase_add_test(tc, across_regions);
	tcase_add_test(tc, places);
	tcase_add_test(tc, arguments);
	tcase_add_test(tc, after_pip);
	tcase_add_loop_test(tc, no_memory, 0, 2);
	tcase_add_loop_test(tc, a2_an_unknown_packet_in_guest_memory, 0, 2 * 48);
	tcase_add_test(tc, map_ahead);
	tcase_add_test(tc, no_page_ahead);
	tcase_add_test(tc, nothing_mapped);
	suite_add_tcase(suite, tc);
	return suite;
}
