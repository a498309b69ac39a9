// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* decoder/rtit/clock.c: times worked out by hand. Random sequences are in test-clock-random.c. */
#include "decoder/vmpt-rtit-clock.h"
#include "tests/support/support.h"

#define NONE (~0ULL)
#define R(k) (VMPT_ITEM_RTIT + VMPT_RTIT_##k)

static struct vmpt_rtit_clock c;

static void feed(unsigned int kind, u64 payload, u8 aux)
{
	struct vmpt_packet pkt = { .kind = (u8)kind, .payload = payload, .aux = aux };

	vmpt_rtit_clock_feed(&c, &pkt);
}

static void sts(u64 tsc, u64 acbr, u64 ecbr)
{
	feed(R(STS), tsc | acbr << 40 | ecbr << 46, 0);
}

static void mtc(u64 rng, u64 value)
{
	feed(R(MTC), value | rng << 8, 0);
}

static void cyc(u64 sent)
{
	feed(VMPT_ITEM_RTIT_CYC, sent, 0);
}

#define check(t, e)                            \
	do {                                   \
		ck_assert_uint_eq(c.tsc, t);   \
		ck_assert_uint_eq(c.error, e); \
		ck_assert(!c.went_back);       \
	} while (0)

START_TEST(nothing_is_known_before_an_sts)
{
	vmpt_rtit_clock_init(&c, 16);
	ck_assert(!c.known);
	check(0, NONE);
	feed(R(PSB), 0, 0);
	feed(R(PGE), 0x1000, 0);
	mtc(0, 0x12);
	check(0, NONE);
	ck_assert(!c.known);
	sts(0x123456789a, 16, 16);
	check(0x123456789a, 0);
	ck_assert(c.known);
}
END_TEST

/* RNG 0: bits 14:7, steps of 128 ticks. */
START_TEST(mtcs_step)
{
	vmpt_rtit_clock_init(&c, 0);
	feed(R(PGE), 0, 0);
	/* Bit 14:7 of 7f85H are FFH. */
	sts(0x7f85, 16, 16);
	check(0x7f85, 0);
	feed(R(TNT), 0x43, 0);
	/* Whether MTCs come at all is not known yet. */
	check(0x7f85, NONE);
	mtc(0, 0x00);
	check(0x8000, 127);
	feed(R(TIP), 0, 0);
	check(0x8000, 127);
	mtc(0, 0x01);
	check(0x8080, 127);
	/*
	 * Between the steps an STS is exact; up to the next MTC the rest of the step is possible.
	 */
	sts(0x80a0, 16, 16);
	check(0x80a0, 0);
	feed(R(TNT), 0x43, 0);
	check(0x80a0, 0x5f);
	mtc(0, 0x02);
	check(0x8100, 127);
}
END_TEST

/* Steps are 2^7, 2^9, 2^11, 2^13. */
START_TEST(mtc_ranges)
{
	static const struct {
		u64 rng, value, tsc, error;
	} row[] = {
		{ 0, 0x35, 0x12340000 + 0x1a80, 0x7f },
		{ 1, 0x0d, 0x12340000 + 0x1a00, 0x1ff },
		{ 2, 0x84, 0x12340000 + 0x2000, 0x7ff },
		{ 3, 0xa1, 0x12340000 + 0x2000, 0x1fff },
	};
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(row); i++) {
		vmpt_rtit_clock_init(&c, 0);
		feed(R(PGE), 0, 0);
		sts(0x12340000 + 0x19f0, 16, 16);
		mtc(row[i].rng, row[i].value);
		check(row[i].tsc, row[i].error);
	}
}
END_TEST

/* An overflow drops MTCs 41H to 13FH: 255 of them. */
START_TEST(up_to_255_mtcs_are_lost)
{
	vmpt_rtit_clock_init(&c, 0);
	feed(R(PGE), 0, 0);
	sts(0x1ff0, 16, 16);
	mtc(0, 0x40);
	check(0x2000, 127);
	feed(R(BUFF_OVF), 0, 0);
	/* Any time from now up to before MTC 140H */
	check(0x2000, 256 * 128 - 1);
	mtc(0, 0x40);
	check(0x2000 + 256 * 128, 127);
	feed(R(TNT), 0x43, 0);
	feed(R(BUFF_OVF), 0, 0);
	mtc(0, 0x43);
	check(0x2000 + 259 * 128, 127);
	/* Without an overflow none is missing: this is another start of the clock. */
	mtc(0, 0x45);
	check(0x2000 + 261 * 128, NONE);
	mtc(0, 0x46);
	check(0x2000 + 262 * 128, NONE);
	sts(0x2000 + 262 * 128 + 7, 16, 16);
	check(0x2000 + 262 * 128 + 7, 0);
	mtc(0, 0x47);
	check(0x2000 + 263 * 128, 127);
}
END_TEST

START_TEST(another_range_is_another_trace)
{
	vmpt_rtit_clock_init(&c, 0);
	feed(R(PGE), 0, 0);
	sts(0x1ff0, 16, 16);
	mtc(0, 0x40);
	mtc(1, 0x12);
	check(0x2400, NONE);
	sts(0x2500, 16, 16);
	check(0x2500, 0);
	mtc(1, 0x13);
	check(0x2600, 511);
}
END_TEST

/* 40 bits, two wraps; the window of the MTCs wraps, too. */
START_TEST(sts_wraps)
{
	vmpt_rtit_clock_init(&c, 0);
	feed(R(PGE), 0, 0);
	sts(0xfffffffff0, 16, 16);
	check(0xfffffffff0, 0);
	sts(0x10, 16, 16);
	check(0x10000000010, 0);
	mtc(0, 1);
	check(0x10000000080, 127);
	sts(0x8000000000, 16, 16);
	check(0x18000000000, 0);
	sts(0xffffffff90, 16, 16);
	check(0x1ffffffff90, 0);
	mtc(0, 0);
	check(0x20000000000, 127);
}
END_TEST

START_TEST(going_back_is_said)
{
	vmpt_rtit_clock_init(&c, 0);
	sts(0x5000, 16, 16);
	sts(0x4fff, 16, 16);
	ck_assert(c.went_back);
	ck_assert_uint_eq(c.tsc, 0x4fff);
	ck_assert_uint_eq(c.error, 0);
	feed(R(TNT), 0x43, 0);
	ck_assert(!c.went_back);
	/* Just before a wrap that was followed */
	vmpt_rtit_clock_init(&c, 0);
	sts(0xffffffff00, 16, 16);
	sts(0x5, 16, 16);
	sts(0xfffffffffe, 16, 16);
	ck_assert(c.went_back);
	ck_assert_uint_eq(c.tsc, 0xfffffffffe);
	/* 30 s or more back means ahead: the processor slept. */
	sts(0xfffffffffe - (1ULL << 36), 16, 16);
	ck_assert(!c.went_back);
	ck_assert_uint_eq(c.tsc, 0x10000000000 + 0xfffffffffe - (1ULL << 36));
}
END_TEST

/*
 * The bus clock is a core cycle times ACBR, and 16 TSC ticks: at ACBR 8 a cycle is 2 ticks. Counts
 * are one too low (E6).
 */
START_TEST(cycles_lead_on)
{
	vmpt_rtit_clock_init(&c, 16);
	feed(R(PGE), 0, 0);
	cyc(5);
	sts(100000, 8, 8);
	cyc(7); /* up to the STS */
	check(100000, 0);
	ck_assert_uint_eq(c.since, 0);
	feed(R(TIP), 0, 0);
	/* Before its count: any time */
	check(100000, NONE);
	cyc(99);
	check(100200, 0);
	ck_assert_uint_eq(c.since, 100);
	feed(R(TIP), 0, 0);
	cyc(24);
	check(100250, 0);
	ck_assert_uint_eq(c.since, 125);
	/* 0 cycles, or 1 */
	feed(R(TIP), 0, 0);
	cyc(0);
	check(100250, 2);
	feed(R(TIP), 0, 0);
	cyc(9);
	check(100270, 2);
	/* Half the speed */
	sts(100300, 4, 4);
	cyc(3);
	feed(R(TIP), 0, 0);
	cyc(9);
	check(100340, 0);
	/* Not a whole number of ticks: 10 * 16 / 12 is between 13 and 14. */
	sts(100400, 12, 12);
	cyc(3);
	feed(R(TIP), 0, 0);
	cyc(9);
	check(100413, 1);
}
END_TEST

/* Clock modulation: the core runs at ACBR at times, at ECBR on average. */
START_TEST(modulated_cycles_have_no_upper_bound)
{
	vmpt_rtit_clock_init(&c, 16);
	feed(R(PGE), 0, 0);
	cyc(5);
	sts(100000, 8, 4);
	cyc(7);
	feed(R(TIP), 0, 0);
	cyc(99);
	/* 100 cycles are 400 ticks on average, 200 at least. */
	check(100400, NONE);
	/* 100480 is 311H * 128: 200 to 479 ticks by what came. */
	mtc(0, 0x11);
	cyc(19);
	check(100480, 127);
}
END_TEST

/* In the step of an MTC, cycles narrow it down. */
START_TEST(cycles_and_mtcs)
{
	vmpt_rtit_clock_init(&c, 16);
	feed(R(PGE), 0, 0);
	cyc(5);
	sts(0x1ff0, 16, 16);
	cyc(7);
	mtc(0, 0x40);
	cyc(15);
	check(0x2000, 0);
	feed(R(TIP), 0, 0);
	check(0x2000, 127);
	cyc(63);
	check(0x2040, 0);
	feed(R(TIP), 0, 0);
	check(0x2040, 63);
}
END_TEST

/* While PacketEn is 0 the counter may stop; LESS_PKTS holds back MTCs and STSs, too. */
START_TEST(nobody_counts_while_packets_are_off)
{
	vmpt_rtit_clock_init(&c, 16);
	feed(R(PGE), 0, 0);
	cyc(5);
	sts(0x1ff0, 16, 16);
	cyc(7);
	mtc(0, 0x40);
	cyc(15);
	feed(R(PGD), 0, 0);
	cyc(9);
	check(0x200a, 0);
	feed(R(PGE), 0, 0);
	cyc(9);
	/* 10 cycles of 16 / 63 ticks at least: 2 ticks. And no end. */
	check(0x200a + 10, NONE);
	feed(R(PGD), 0, 0);
	cyc(9);
	/* An MTC now: LESS_PKTS is 0, so none was held back. */
	mtc(0, 0x41);
	cyc(9);
	check(0x2080, 127);
	feed(R(PGE), 0, 0);
	cyc(9);
	ck_assert_uint_ne(c.error, NONE);
	ck_assert_uint_ge(c.tsc, 0x2080);
	ck_assert_uint_le(c.tsc + c.error, 0x2080 + 127 + 127);
}
END_TEST

START_TEST(another_start_of_the_trace_is_seen)
{
	static const struct {
		u8 kind[3];
	} way[] = {
		{ { R(TRACESTOP), R(PSB), R(PGE) } },	{ { R(PGD), R(PSB), R(PGE) } },
		{ { R(TNT), R(PSB), R(PGE) } },	     /* no FUP.PGD (4.2.8) */
		{ { R(PSB), R(BUFF_OVF), R(TNT) } }, /* in an overflow (4.2.5) */
		{ { R(TNT), VMPT_ITEM_LOSS, R(PSB) } },
	};
	size_t i, k;

	for (i = 0; i < VMPT_ARRAY_SIZE(way); i++) {
		vmpt_rtit_clock_init(&c, 0);
		feed(R(PGE), 0, 0);
		sts(0x1ff0, 16, 16);
		mtc(0, 0x40);
		check(0x2000, 127);
		for (k = 0; k < 3; k++)
			feed(way[i].kind[k], 0, 0);
		ck_assert_msg(c.error == NONE, "way %zu: a bound", i);
		mtc(0, 0x41);
		ck_assert_uint_eq(c.error, NONE);
		sts(0x9000, 16, 16);
		ck_assert_uint_eq(c.error, 0);
	}
}
END_TEST

/* The first MTC after TriggerEn is wrong; a later one shows that there was another start. */
START_TEST(e7_counts_for_nothing)
{
	vmpt_rtit_clock_init(&c, 0);
	feed(R(PGE), 0, 0);
	sts(0x1ff0, 16, 16);
	feed(R(MTC), 0x77, VMPT_RTIT_AUX_IGNORE | 7 << 5);
	check(0x1ff0, NONE);
	mtc(0, 0x40);
	check(0x2000, 127);
	feed(R(MTC), 0x99, VMPT_RTIT_AUX_IGNORE | 7 << 5);
	check(0x2000, NONE);
	mtc(0, 0x42);
	check(0x2100, NONE);
}
END_TEST

/* 20 ticks per bus clock, core at 10: two ticks per cycle; measured from MTC 40H on. */
START_TEST(the_ratio_is_measured)
{
	u64 i;

	vmpt_rtit_clock_init(&c, 0);
	feed(R(PGE), 0, 0);
	cyc(5);
	sts(0x2000 - 128, 10, 10);
	cyc(7);
	for (i = 0; i < 200; i++) {
		mtc(0, (0x40 + i) & 0xff);
		cyc(63);
		if (i < 2)
			ck_assert_uint_ne(c.ratio[0], c.ratio[1]);
	}
	ck_assert_uint_eq(c.bus_ratio, 20);
	ck_assert_uint_eq(c.ratio[0], c.ratio[1]);
	feed(R(TIP), 0, 0);
	cyc(9);
	ck_assert_uint_eq(c.tsc, 0x2000 + 199 * 128 + 20);
}
END_TEST

/* An MTC gives its step; cycles that contradict it are dropped, and never "exact". */
START_TEST(cycles_that_go_too_far)
{
	vmpt_rtit_clock_init(&c, 10);
	feed(R(PGE), 0, 0);
	cyc(5);
	sts(0x100000, 10, 10);
	cyc(7);
	mtc(0, 1);
	cyc(127);
	check(0x100080, 0);
	feed(R(TIP), 0, 0);
	/* The next MTC was due after 128. */
	cyc(700);
	check(0x100080, 127);
	ck_assert_uint_eq(c.contradictions, 1);
	ck_assert_uint_eq(c.bus_ratio, 0);
	mtc(0, 2);
	cyc(1);
	check(0x100100, 127);
	feed(R(TIP), 0, 0);
	cyc(3);
	check(0x100100, 127);
	ck_assert_uint_eq(c.contradictions, 1);
}
END_TEST

START_TEST(cycles_that_fall_short)
{
	vmpt_rtit_clock_init(&c, 10);
	feed(R(PGE), 0, 0);
	cyc(5);
	sts(0x100000, 10, 10);
	cyc(7);
	mtc(0, 1);
	cyc(19);
	check(0x100080, 127);
	ck_assert_uint_eq(c.contradictions, 1);
	ck_assert(!c.whole_counts);
}
END_TEST

/* Before the first MTC only cycles extend an STS: there may be MTCs after them. */
START_TEST(cycles_that_pass_the_first_mtc)
{
	vmpt_rtit_clock_init(&c, 10);
	feed(R(PGE), 0, 0);
	cyc(5);
	sts(0xb8cb5b1000, 10, 10);
	cyc(7);
	feed(R(TIP), 0, 0);
	cyc(0x3f09);
	check(0xb8cb5b4f0a, 0);
	/* bits 20:13 of b8cb5b1000 .. b8cb5b1fff; no round of 256 MTCs has passed */
	mtc(3, 0xd8);
	ck_assert(c.went_back);
	ck_assert_uint_eq(c.tsc, 0xb8cb5b1000);
	ck_assert_uint_eq(c.error, NONE);
	ck_assert_uint_eq(c.contradictions, 1);
	cyc(0);
	ck_assert_uint_eq(c.error, NONE);
	mtc(3, 0xd9);
	cyc(8191);
	check(0xb8cb5b2000, NONE);
	sts(0xb8cb5b2100, 10, 10);
	check(0xb8cb5b2100, 0);
}
END_TEST

START_TEST(cycles_that_pass_an_sts)
{
	vmpt_rtit_clock_init(&c, 10);
	feed(R(PGE), 0, 0);
	cyc(5);
	sts(0x100000, 10, 10);
	cyc(7);
	feed(R(TIP), 0, 0);
	cyc(999);
	check(0x100000 + 1000, 0);
	sts(0x100000 + 500, 10, 10);
	ck_assert(c.went_back);
	ck_assert_uint_eq(c.tsc, 0x100000 + 500);
	ck_assert_uint_eq(c.error, 0);
	ck_assert_uint_eq(c.contradictions, 1);
	cyc(7);
	feed(R(TIP), 0, 0);
	cyc(9);
	check(0x100000 + 500, NONE);
}
END_TEST

/* 10 ticks per bus clock; the caller gives @_i. */
START_TEST(a_wrong_given_ratio_is_dropped)
{
	u64 i, k, truth = 0x100000, error;

	vmpt_rtit_clock_init(&c, (u32)_i);
	feed(R(PGE), 0, 0);
	cyc(5);
	sts(truth, 10, 10);
	cyc(7);
	for (i = 0; i < 400; i++) {
		for (k = 0; k < 3; k++) {
			truth += 32;
			feed(R(TIP), 0, 0);
			cyc(31);
			if (!c.contradictions)
				continue;
			error = c.tsc > truth ? c.tsc - truth : truth - c.tsc;
			ck_assert_msg(error <= c.error, "%llx: %llx +- %llx",
				      (unsigned long long)truth, (unsigned long long)c.tsc,
				      (unsigned long long)c.error);
		}
		truth += 32;
		mtc(0, truth >> 7 & 0xff);
		cyc(31);
		/* whatever the ratio, it is in the MTC's step */
		ck_assert_uint_le(c.tsc + c.error, truth + 127);
		ck_assert_uint_ge(c.tsc, truth);
	}
	ck_assert_uint_eq(c.bus_ratio, 10);
	ck_assert_uint_ge(c.contradictions, 1);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/rtit-clock");
	TCase *t = tcase_create("by hand");

	tcase_add_test(t, nothing_is_known_before_an_sts);
	tcase_add_test(t, mtcs_step);
	tcase_add_test(t, mtc_ranges);
	tcase_add_test(t, up_to_255_mtcs_are_lost);
	tcase_add_test(t, another_range_is_another_trace);
	tcase_add_test(t, sts_wraps);
	tcase_add_test(t, going_back_is_said);
	tcase_add_test(t, cycles_lead_on);
	tcase_add_test(t, modulated_cycles_have_no_upper_bound);
	tcase_add_test(t, cycles_and_mtcs);
	tcase_add_test(t, nobody_counts_while_packets_are_off);
	tcase_add_test(t, another_start_of_the_trace_is_seen);
	tcase_add_test(t, e7_counts_for_nothing);
	tcase_add_test(t, the_ratio_is_measured);
	tcase_add_test(t, cycles_that_go_too_far);
	tcase_add_test(t, cycles_that_fall_short);
	tcase_add_test(t, cycles_that_pass_the_first_mtc);
	tcase_add_test(t, cycles_that_pass_an_sts);
	tcase_add_loop_test(t, a_wrong_given_ratio_is_dropped, 4, 10);
	tcase_add_loop_test(t, a_wrong_given_ratio_is_dropped, 11, 20);
	suite_add_tcase(s, t);
	return s;
}
