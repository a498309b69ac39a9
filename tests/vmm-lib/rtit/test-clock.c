// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Clocks of a guest's RTIT trace (4.2.12, 4.2.13): the result of vmpt_rtit_clock_rewrite() for a
 * buffer, and for one that wraps, compared with packets of a processor with the other TSC.
 */
#include "tests/vmm-lib/rtit/rig.h"

#define OFFSET 0x12345678000ULL /* a multiple of each MTC's step */

START_TEST(sts)
{
	/* ACBR, ECBR, then 40 bits of TSC: the lowest byte first */
	u8 buf[] = { 0xd4, 0x8f, 0xff, 0xff, 0xff, 0xff, 0xff };
	static const u8 want[] = { 0xd4, 0x8f, 0x01, 0x00, 0x00, 0x00, 0x00 };
	struct vmpt_rtit_rewrite state = { 0 };

	ck_assert_uint_eq(vmpt_rtit_clock_rewrite(&state, buf, 7, false, 2), 7);
	ck_assert(!memcmp(buf, want, 7) && !state.lost);
	ck_assert_uint_eq(vmpt_rtit_clock_rewrite(&state, buf, 7, false, 0xff00000000fffffe), 7);
	ck_assert(buf[2] == 0xff && buf[3] == 0xff && buf[4] == 0xff && !buf[5] && !buf[6]);
}
END_TEST

/* An MTC of range n has TSC[14 + 2n:7 + 2n]; a multiple of 2^(7 + 2n) changes it by an integer. */
START_TEST(mtc)
{
	unsigned int range;

	for (range = 0; range < 4; range++) {
		u64 step = 128ULL << 2 * range, offset;
		struct vmpt_rtit_rewrite state = { 0 };

		for (offset = 0; offset < 4 * step; offset += step / 2) {
			u8 buf[] = { (u8)(0xc4 | range), 0xfe };
			bool fits = offset % step == 0;

			ck_assert(vmpt_rtit_mtc_fits(offset, range) == fits);
			vmpt_rtit_clock_rewrite(&state, buf, 2, false, offset);
			ck_assert_uint_eq(buf[1], (u8)(0xfe + (fits ? offset / step : 0)));
			ck_assert_uint_eq(buf[0], 0xc4 | range);
		}
	}
	ck_assert(vmpt_rtit_mtc_fits(8192, 0) && vmpt_rtit_mtc_fits(8192, 3));
	ck_assert(!vmpt_rtit_mtc_fits(4096, 3));
}
END_TEST

/* Cut at each byte: only whole packets are processed, and the rest continues with more bytes. */
START_TEST(cut)
{
	static const u8 stream[] = {
		0xc0, 0,    0,	  0, 0, 0, 0,	 0,    0,	   /* PSB */
		0x82, 1,    2,	  3, 4, 5, 6,	 0x0f, 0x22, 0x33, /* FUP.PGE, 3 bytes of cycles */
		0x2a,						   /* TNT of 5 */
		0xd1, 0x42, 5,	  6, 7, 8, 9,	 0x05,		   /* STS, 1 */
		0x6a, 0x0e, 0x44,				   /* TNT of 6, 2 */
		0xc6, 0x7f, 0x01,				   /* MTC, 1 */
		0xc3, 1,    2,	  3, 4, 5, 0x01,		   /* PIP, 1 */
	};
	u8 whole[sizeof(stream)], parts[sizeof(stream)];
	struct vmpt_rtit_rewrite state = { 0 };
	size_t n, at;

	memcpy(whole, stream, sizeof(stream));
	ck_assert_uint_eq(vmpt_rtit_clock_rewrite(&state, whole, sizeof(whole), true, OFFSET),
			  sizeof(whole));
	ck_assert(whole[22] == 5 && whole[23] == (u8)(6 + 0x80) && whole[24] == (u8)(7 + 0x67));
	ck_assert_uint_eq(whole[32], (u8)(0x7f + (OFFSET >> 11)));
	for (n = 1; n < sizeof(stream); n++) {
		memcpy(parts, stream, sizeof(stream));
		at = vmpt_rtit_clock_rewrite(&state, parts, n, true, OFFSET);
		ck_assert(at <= n && n - at < VMPT_RTIT_SIZE_MAX);
		at += vmpt_rtit_clock_rewrite(&state, parts + at, sizeof(parts) - at, true, OFFSET);
		ck_assert_uint_eq(at, sizeof(parts));
		ck_assert_msg(!memcmp(parts, whole, sizeof(whole)), "cut at %zu", n);
	}
}
END_TEST

/*
 * Bytes that are no packet, and all up to the next PSB: overwritten with a reserved header (Figure
 * 2), and counted. Cut at each byte the result is the same.
 */
START_TEST(a2_rtit_unknown_byte)
{
	static const u8 stream[] = {
		0xd0, 0,    1, 0, 0, 0, 0,	    /* STS */
		0xa0,				    /* reserved */
		0xd0, 0,    1, 0, 0, 0, 0,	    /* looks like one */
		0xc0, 0,    0, 0, 0, 0, 0, 0, 1,    /* not a PSB */
		0xc0, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, /* PSB, after what could begin one */
		0xd0, 0,    1, 0, 0, 0, 0,	    /* STS */
	};
	u8 buf[sizeof(stream)], want[sizeof(stream)];
	size_t n, at;

	memcpy(want, stream, sizeof(want));
	want[2] = 6;
	memset(want + 7, 0xfd, 18);
	want[36] = 6;
	for (n = 0; n <= sizeof(buf); n++) {
		struct vmpt_rtit_rewrite state = { 0 };

		memcpy(buf, stream, sizeof(buf));
		at = vmpt_rtit_clock_rewrite(&state, buf, n, false, 5);
		ck_assert(at <= n && n - at < 9);
		at += vmpt_rtit_clock_rewrite(&state, buf + at, sizeof(buf) - at, false, 5);
		ck_assert_uint_eq(at, sizeof(buf));
		ck_assert_msg(!memcmp(buf, want, sizeof(buf)), "cut at %zu", n);
		ck_assert(!state.lost && state.bytes == 18);
	}
}
END_TEST

/* Lost at the start, and again at the end, where only the possible head of a PSB is left. */
START_TEST(a2_rtit_lost_at_the_ends)
{
	struct vmpt_rtit_rewrite state = { .lost = true, .bytes = 100 };
	u8 buf[] = { 0xd0, 0, 1, 0, 0, 0, 0, 0xc0, 0, 0 };

	ck_assert_uint_eq(vmpt_rtit_clock_rewrite(&state, buf, 10, false, 5), 7);
	ck_assert(state.lost && state.bytes == 107);
	ck_assert(buf[0] == 0xfd && buf[6] == 0xfd && buf[7] == 0xc0 && !buf[9]);
	buf[9] = 1;
	ck_assert_uint_eq(vmpt_rtit_clock_rewrite(&state, buf + 7, 3, false, 5), 3);
	ck_assert(state.lost && state.bytes == 110 && buf[7] == 0xfd && buf[9] == 0xfd);
}
END_TEST

/* ---- a guest's trace through the bounce buffer ---- */

static u64 bytes_of_run(struct rig *r, struct test_rng *rng, u64 ctl, u8 *to)
{
	u64 got = 0, offset = 0, now;
	int i;

	rig_program(r, 0x100000, 0x3fff, ctl);
	ck_assert_int_eq(vmpt_rtit_vcpu_load(&r->v), 0);
	for (i = 0; i < 400; i++) {
		u64 a = test_random(rng), b = test_random(rng), j;

		rig_enter(r, a);
		for (j = 0; j < a % 20; j++) {
			rig_time(r, b % 1500);
			vmpt_rtit_unit_jcc(&r->unit, b & 1, a, a);
			b = test_random(rng);
			vmpt_rtit_unit_jmp_indirect(&r->unit, b, a + b);
			if (!(b % 7))
				vmpt_rtit_unit_wake(&r->unit, &r->unit.now);
		}
		rig_exit(r, b);
		ck_assert_int_eq(vmpt_rtit_vcpu_sync(&r->v), 0);
		for (now = r->v.regs.offset; offset != now; offset = (offset + 1) & 0x3fff)
			rig_get(r, 0x100000 + offset, to + got++, 1);
	}
	return got;
}

/*
 * Two processors whose TSCs are OFFSET apart, the same guest: the rewritten trace of one is that of
 * the other, byte for byte. The small buffer wraps at every position in a packet.
 */
static void two_processors(u64 ctl, u32 bounce)
{
	static u8 one[1 << 20], two[1 << 20];
	struct vmpt_rtit_clocks now = { 0 };
	struct test_rng a = { 3 }, b = { 3 };
	struct rig r;
	u64 n;

	rig_init(&r, VMPT_RTIT_BOUNCE, bounce);
	r.config.rewrite_clock = true;
	rig_again(&r);
	now.tsc = 0x3333;
	vmpt_rtit_unit_time(&r.unit, &now);
	ck_assert_int_eq(vmpt_rtit_vcpu_clock(&r.v, OFFSET - 0x2000, 0x2000), 0);
	n = bytes_of_run(&r, &a, ctl, one);
	ck_assert_uint_eq(r.v.lost, 0);
	rig_free(&r);

	rig_init(&r, VMPT_RTIT_BOUNCE, RIG_BOUNCE_MAX);
	now.tsc = 0x3333 + OFFSET;
	vmpt_rtit_unit_time(&r.unit, &now);
	ck_assert_uint_eq(bytes_of_run(&r, &b, ctl, two), n);
	rig_free(&r);
	ck_assert(n > 20000 && !memcmp(one, two, n));
}

#define CLOCKS (RIG_ON | VMPT_RTIT_CTL_MTC_EN | VMPT_RTIT_CTL_STS_EN)

START_TEST(through_the_buffer)
{
	two_processors(CLOCKS | (u64)_i << VMPT_RTIT_CTL_MTC_RANGE_SHIFT, 1024);
	two_processors(CLOCKS | (u64)_i << VMPT_RTIT_CTL_MTC_RANGE_SHIFT | VMPT_RTIT_CTL_CYCLE_ACC |
			       VMPT_RTIT_CTL_LESS_PKTS,
		       2048);
}
END_TEST

/* Another offset in the middle: earlier output has the old one. */
START_TEST(new_offset)
{
	struct rig r;
	u8 buf[64];

	rig_init(&r, VMPT_RTIT_BOUNCE, 1024);
	r.config.rewrite_clock = true;
	rig_again(&r);
	rig_program(&r, 0x10000, 0xfff, CLOCKS);
	ck_assert_int_eq(vmpt_rtit_vcpu_load(&r.v), 0);
	vmpt_rtit_unit_wake(&r.unit, &r.unit.now);
	ck_assert_int_eq(vmpt_rtit_vcpu_clock(&r.v, 0x11, 0), 0);
	vmpt_rtit_unit_wake(&r.unit, &r.unit.now);
	ck_assert_int_eq(vmpt_rtit_vcpu_sync(&r.v), 0);
	rig_get(&r, 0x10000, buf, 23);
	ck_assert(buf[9] == 0xd4 && buf[11] == 0 && buf[16] == 0xd4 && buf[18] == 0x11);
	rig_free(&r);
}
END_TEST

/* Memory comes late: waiting bytes are rewritten once. */
START_TEST(once)
{
	struct rig r;
	u8 buf[64];
	int i;

	rig_init(&r, VMPT_RTIT_BOUNCE, 1024);
	r.config.rewrite_clock = true;
	r.config.on_unbacked = VMPT_ON_MEM_RETRY;
	rig_again(&r);
	ck_assert_int_eq(vmpt_rtit_vcpu_clock(&r.v, 0x11, 0), 0);
	guest_set_kind(&r.guest, 0x10, 1, VMPT_MEM_UNBACKED);
	rig_program(&r, 0x10000, 0xfff, CLOCKS);
	ck_assert_int_eq(vmpt_rtit_vcpu_load(&r.v), 0);
	for (i = 0; i < 3; i++) {
		vmpt_rtit_unit_wake(&r.unit, &r.unit.now);
		ck_assert_int_eq(vmpt_rtit_vcpu_sync(&r.v), -VMPT_E_RETRY);
	}
	guest_set_kind(&r.guest, 0x10, 1, VMPT_MEM_OK);
	ck_assert_int_eq(vmpt_rtit_vcpu_sync(&r.v), 0);
	rig_get(&r, 0x10000, buf, 30);
	for (i = 0; i < 3; i++)
		ck_assert(buf[9 + 7 * i] == 0xd4 && buf[11 + 7 * i] == 0x11);
	rig_free(&r);
}
END_TEST

/*
 * A processor whose drain ends inside a packet: its head waits for the rest, also across the end of
 * the buffer; at the unload, after which no rest comes, it is overwritten.
 */
START_TEST(cut_by_the_processor)
{
	struct rig r;
	u8 buf[64], left;
	u32 i;

	rig_init(&r, VMPT_RTIT_BOUNCE, 128);
	r.config.rewrite_clock = true;
	rig_again(&r);
	ck_assert_int_eq(vmpt_rtit_vcpu_clock(&r.v, 0x11, 0), 0);
	rig_program(&r, 0x10000, 0xfff, CLOCKS);
	ck_assert_int_eq(vmpt_rtit_vcpu_load(&r.v), 0);
	for (i = 0; i < 100; i++) {
		u64 end = 9 + 7 * i;

		vmpt_rtit_unit_wake(&r.unit, &r.unit.now);
		vmpt_rtit_unit_drain(&r.unit);
		left = (u8)(i % 6 + 1);
		r.fake_msr = 0x772;
		r.fake_value = (r.unit.regs.offset - left) & 0x7f;
		ck_assert_int_eq(vmpt_rtit_vcpu_sync(&r.v), 0);
		ck_assert_uint_eq(r.v.regs.offset, end);
		r.fake_msr = 0;
		ck_assert_int_eq(vmpt_rtit_vcpu_sync(&r.v), 0);
		ck_assert_uint_eq(r.v.regs.offset, end + 7);
		rig_get(&r, 0x10000 + end, buf, 7);
		ck_assert(buf[0] == 0xd4 && buf[2] == 0x11 && !buf[3]);
	}
	vmpt_rtit_unit_wake(&r.unit, &r.unit.now);
	vmpt_rtit_unit_drain(&r.unit);
	r.fake_msr = 0x772;
	r.fake_value = (r.unit.regs.offset - 3) & 0x7f;
	ck_assert_int_eq(vmpt_rtit_vcpu_unload(&r.v), 0);
	r.fake_msr = 0;
	ck_assert_uint_eq(r.v.regs.offset, 9 + 700 + 4);
	rig_get(&r, 0x10000 + 709, buf, 4);
	ck_assert(!memcmp(buf, "\xfd\xfd\xfd\xfd", 4));
	ck_assert(r.v.lost == 4 && r.v.events & VMPT_RTIT_EVENT_LOST);
	rig_free(&r);
}
END_TEST

/*
 * A processor that sends what the library does not know, with a TSC after it: it never reaches the
 * guest, the loss is reported, and STSs after the next PSB are right.
 */
START_TEST(a2_rtit_unknown_byte_of_the_processor)
{
	struct rig r;
	u8 buf[96];
	u32 i;

	rig_init(&r, VMPT_RTIT_BOUNCE, 1024);
	r.config.rewrite_clock = true;
	rig_again(&r);
	ck_assert_int_eq(vmpt_rtit_vcpu_clock(&r.v, 0x11, 0), 0);
	rig_program(&r, 0x10000, 0xfff, CLOCKS);
	ck_assert_int_eq(vmpt_rtit_vcpu_load(&r.v), 0);
	for (i = 0; i < 3; i++)
		vmpt_rtit_unit_wake(&r.unit, &r.unit.now);
	vmpt_rtit_unit_drain(&r.unit);
	ck_assert_uint_eq(r.bounce[16], 0xd4);
	r.bounce[16] = 0xe4;
	ck_assert_int_eq(vmpt_rtit_vcpu_sync(&r.v), 0);
	ck_assert(r.v.lost == 14 && r.v.events & VMPT_RTIT_EVENT_LOST);
	vmpt_rtit_unit_wake(&r.unit, &r.unit.now);
	ck_assert_int_eq(vmpt_rtit_vcpu_sync(&r.v), 0);
	ck_assert_uint_eq(r.v.lost, 21);
	/* A new start has a PSB. */
	rig_wr(&r, 0x768, RIG_CTL);
	rig_wr(&r, 0x768, CLOCKS);
	vmpt_rtit_unit_wake(&r.unit, &r.unit.now);
	ck_assert_int_eq(vmpt_rtit_vcpu_sync(&r.v), 0);
	ck_assert_uint_eq(r.v.lost, 21);
	rig_get(&r, 0x10000, buf, sizeof(buf));
	ck_assert(buf[9] == 0xd4 && buf[11] == 0x11);
	for (i = 16; i < 37; i++)
		ck_assert_uint_eq(buf[i], 0xfd);
	while (buf[i] != 0xc0)
		i++;
	ck_assert(buf[i + 9] == 0xd4 && buf[i + 11] == 0x11);
	rig_free(&r);
}
END_TEST

/* The number of bytes @value in the guest's buffer of 256 bytes. */
static u32 count_bytes(struct rig *r, u8 value)
{
	u8 buf[256];
	u32 i, n = 0;

	rig_get(r, 0x10000, buf, sizeof(buf));
	for (i = 0; i < sizeof(buf); i++)
		n += buf[i] == value;
	return n;
}

/*
 * Rewritten bytes wait for memory while the processor, in root operation, goes on and wraps: none
 * is rewritten again, and none that it made since is left as it was.
 */
START_TEST(a2_rtit_wrapped_while_waiting)
{
	struct vmpt_rtit_clocks now = { .tsc = 0x40 };
	struct rig r;
	int i;

	rig_init(&r, VMPT_RTIT_BOUNCE, 256);
	r.config.rewrite_clock = true;
	r.config.on_unbacked = VMPT_ON_MEM_RETRY;
	rig_again(&r);
	ck_assert_int_eq(vmpt_rtit_vcpu_clock(&r.v, 0x11, 0), 0);
	vmpt_rtit_unit_time(&r.unit, &now);
	rig_program(&r, 0x10000, 0xff, CLOCKS);
	guest_set_kind(&r.guest, 0x10, 1, VMPT_MEM_UNBACKED);
	ck_assert_int_eq(vmpt_rtit_vcpu_load(&r.v), 0);
	for (i = 0; i < 20; i++)
		vmpt_rtit_unit_wake(&r.unit, &r.unit.now);
	ck_assert_int_eq(vmpt_rtit_vcpu_sync(&r.v), -VMPT_E_RETRY);
	for (i = 0; i < 20; i++)
		vmpt_rtit_unit_wake(&r.unit, &r.unit.now);
	guest_set_kind(&r.guest, 0x10, 1, VMPT_MEM_OK);
	ck_assert_int_eq(vmpt_rtit_vcpu_sync(&r.v), 0);
	ck_assert(r.v.lost && r.v.events & VMPT_RTIT_EVENT_LOST);
	ck_assert_uint_eq(count_bytes(&r, 0x40) + count_bytes(&r, 0x62), 0);
	rig_free(&r);
}
END_TEST

/* After a wrap packet boundaries are unknown: all up to a PSB is overwritten. */
START_TEST(wrapped)
{
	struct rig r;
	u8 buf[256];
	int i, n;

	for (n = 0; n < 7; n++) {
		rig_init(&r, VMPT_RTIT_BOUNCE, 256);
		r.config.rewrite_clock = true;
		rig_again(&r);
		ck_assert_int_eq(vmpt_rtit_vcpu_clock(&r.v, 0x11, 0), 0);
		rig_program(&r, 0x10000, 0xff, CLOCKS);
		ck_assert_int_eq(vmpt_rtit_vcpu_load(&r.v), 0);
		for (i = 0; i < 100; i++)
			vmpt_rtit_unit_wake(&r.unit, &r.unit.now);
		rig_time(&r, 128 * (u64)n); /* n MTCs: what is oldest then is each byte of an STS */
		ck_assert_int_eq(vmpt_rtit_vcpu_sync(&r.v), 0);
		/* It kept no PSB; a decoder cannot begin in it anyway. */
		ck_assert_uint_eq(count_bytes(&r, 0xfd), 256);
		ck_assert_uint_eq(r.v.lost, 0);
		/* A new start has a PSB. */
		rig_wr(&r, 0x768, RIG_CTL);
		rig_wr(&r, 0x772, 0);
		rig_wr(&r, 0x768, CLOCKS);
		vmpt_rtit_unit_wake(&r.unit, &r.unit.now);
		ck_assert_int_eq(vmpt_rtit_vcpu_sync(&r.v), 0);
		rig_get(&r, 0x10000, buf, 16);
		ck_assert(buf[0] == 0xc0 && buf[9] == 0xd4 && (buf[11] & 0x7f) == 0x11);
		rig_free(&r);
	}
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("rtit-clock");
	TCase *tc = tcase_create("clock");

	tcase_add_test(tc, sts);
	tcase_add_test(tc, mtc);
	tcase_add_test(tc, cut);
	tcase_add_test(tc, a2_rtit_unknown_byte);
	tcase_add_test(tc, a2_rtit_lost_at_the_ends);
	tcase_add_test(tc, a2_rtit_unknown_byte_of_the_processor);
	tcase_add_test(tc, a2_rtit_wrapped_while_waiting);
	tcase_add_loop_test(tc, through_the_buffer, 0, 4);
	tcase_add_test(tc, new_offset);
	tcase_add_test(tc, once);
	tcase_add_test(tc, cut_by_the_processor);
	tcase_add_test(tc, wrapped);
	suite_add_tcase(suite, tc);
	return suite;
}
