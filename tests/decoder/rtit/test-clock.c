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

/* ---- sequences ---- */

/* A packet, its cycle count and the clock after them. */
struct step {
	const char *name; /* Here a sequence starts, with ratio @ratio. */
	u32 ratio;
	u8 kind, aux; /* kind 0: no packet */
	u64 payload;
	bool counted, checked, back, unknown, has_since, no_ratio, no_counts;
	u64 count, tsc, error, since, contradictions;
};

#define START(n, r)	   .name = (n), .ratio = (r)
#define PKT(k)		   .kind = R(k)
#define STS(t, acbr, ecbr) PKT(STS), .payload = (t) | (u64)(acbr) << 40 | (u64)(ecbr) << 46
#define MTC(rng, value)	   PKT(MTC), .payload = (value) | (rng) << 8
#define E7_MTC(value)	   MTC(0, value), .aux = VMPT_RTIT_AUX_IGNORE | 7 << 5
#define CYC(n)		   .counted = true, .count = (n)
#define IS(t, e)	   .checked = true, .tsc = (t), .error = (e)
#define BACK(t, e)	   IS(t, e), .back = true
#define UNKNOWN		   .unknown = true
#define SINCE(n)	   .has_since = true, .since = (n)

static const struct step steps[] = {
	{ START("nothing is known before an STS", 16), IS(0, NONE), UNKNOWN },
	{ PKT(PSB) },
	{ .kind = R(PGE), .payload = 0x1000 },
	{ MTC(0, 0x12), IS(0, NONE), UNKNOWN },
	{ STS(0x123456789a, 16, 16), IS(0x123456789a, 0) },
	/* RNG 0: bits 14:7, steps of 128 ticks. */
	{ START("MTCs step", 0), PKT(PGE) },
	/* Bit 14:7 of 7f85H are FFH. */
	{ STS(0x7f85, 16, 16), IS(0x7f85, 0) },
	/* Whether MTCs come at all is not known yet. */
	{ PKT(TNT), IS(0x7f85, NONE) },
	{ MTC(0, 0x00), IS(0x8000, 127) },
	{ PKT(TIP), IS(0x8000, 127) },
	{ MTC(0, 0x01), IS(0x8080, 127) },
	/* Between the steps an STS is exact; then the rest of the step is possible. */
	{ STS(0x80a0, 16, 16), IS(0x80a0, 0) },
	{ PKT(TNT), IS(0x80a0, 0x5f) },
	{ MTC(0, 0x02), IS(0x8100, 127) },
	/* Steps are 2^7, 2^9, 2^11, 2^13. */
	{ START("MTC range 0", 0), PKT(PGE) },
	{ STS(0x12340000 + 0x19f0, 16, 16) },
	{ MTC(0, 0x35), IS(0x12340000 + 0x1a80, 0x7f) },
	{ START("MTC range 1", 0), PKT(PGE) },
	{ STS(0x12340000 + 0x19f0, 16, 16) },
	{ MTC(1, 0x0d), IS(0x12340000 + 0x1a00, 0x1ff) },
	{ START("MTC range 2", 0), PKT(PGE) },
	{ STS(0x12340000 + 0x19f0, 16, 16) },
	{ MTC(2, 0x84), IS(0x12340000 + 0x2000, 0x7ff) },
	{ START("MTC range 3", 0), PKT(PGE) },
	{ STS(0x12340000 + 0x19f0, 16, 16) },
	{ MTC(3, 0xa1), IS(0x12340000 + 0x2000, 0x1fff) },
	/* An overflow drops MTCs 41H to 13FH: 255 of them. */
	{ START("up to 255 MTCs are lost", 0), PKT(PGE) },
	{ STS(0x1ff0, 16, 16) },
	{ MTC(0, 0x40), IS(0x2000, 127) },
	/* Any time from now up to before MTC 140H */
	{ PKT(BUFF_OVF), IS(0x2000, 256 * 128 - 1) },
	{ MTC(0, 0x40), IS(0x2000 + 256 * 128, 127) },
	{ PKT(TNT) },
	{ PKT(BUFF_OVF) },
	{ MTC(0, 0x43), IS(0x2000 + 259 * 128, 127) },
	/* Without an overflow none is missing: this is another start of the clock. */
	{ MTC(0, 0x45), IS(0x2000 + 261 * 128, NONE) },
	{ MTC(0, 0x46), IS(0x2000 + 262 * 128, NONE) },
	{ STS(0x2000 + 262 * 128 + 7, 16, 16), IS(0x2000 + 262 * 128 + 7, 0) },
	{ MTC(0, 0x47), IS(0x2000 + 263 * 128, 127) },
	{ START("another range is another trace", 0), PKT(PGE) },
	{ STS(0x1ff0, 16, 16) },
	{ MTC(0, 0x40) },
	{ MTC(1, 0x12), IS(0x2400, NONE) },
	{ STS(0x2500, 16, 16), IS(0x2500, 0) },
	{ MTC(1, 0x13), IS(0x2600, 511) },
	/* 40 bits, two wraps; the window of the MTCs wraps, too. */
	{ START("STS wraps", 0), PKT(PGE) },
	{ STS(0xfffffffff0, 16, 16), IS(0xfffffffff0, 0) },
	{ STS(0x10, 16, 16), IS(0x10000000010, 0) },
	{ MTC(0, 1), IS(0x10000000080, 127) },
	{ STS(0x8000000000, 16, 16), IS(0x18000000000, 0) },
	{ STS(0xffffffff90, 16, 16), IS(0x1ffffffff90, 0) },
	{ MTC(0, 0), IS(0x20000000000, 127) },
	{ START("going back is said", 0), STS(0x5000, 16, 16) },
	{ STS(0x4fff, 16, 16), BACK(0x4fff, 0) },
	{ PKT(TNT), IS(0x4fff, NONE) },
	/* Just before a wrap that was followed */
	{ START("going back is said, after a wrap", 0), STS(0xffffffff00, 16, 16) },
	{ STS(0x5, 16, 16) },
	{ STS(0xfffffffffe, 16, 16), BACK(0xfffffffffe, 0) },
	/* 30 s or more back means ahead: the processor slept. */
	{ STS(0xfffffffffe - (1ULL << 36), 16, 16),
	  IS(0x10000000000 + 0xfffffffffe - (1ULL << 36), 0) },
	/*
	 * The bus clock is a core cycle times ACBR, and 16 TSC ticks: at ACBR 8 a cycle is 2 ticks.
	 * Counts are one too low (E6).
	 */
	{ START("cycles lead on", 16), PKT(PGE), CYC(5) },
	{ STS(100000, 8, 8), CYC(7), IS(100000, 0), SINCE(0) }, /* up to the STS */
	/* Before its count: any time */
	{ PKT(TIP), IS(100000, NONE) },
	{ CYC(99), IS(100200, 0), SINCE(100) },
	{ PKT(TIP), CYC(24), IS(100250, 0), SINCE(125) },
	/* 0 cycles, or 1 */
	{ PKT(TIP), CYC(0), IS(100250, 2) },
	{ PKT(TIP), CYC(9), IS(100270, 2) },
	/* Half the speed */
	{ STS(100300, 4, 4), CYC(3) },
	{ PKT(TIP), CYC(9), IS(100340, 0) },
	/* Not a whole number of ticks: 10 * 16 / 12 is between 13 and 14. */
	{ STS(100400, 12, 12), CYC(3) },
	{ PKT(TIP), CYC(9), IS(100413, 1) },
	/* Clock modulation: the core runs at ACBR at times, at ECBR on average. */
	{ START("modulated cycles have no upper bound", 16), PKT(PGE), CYC(5) },
	{ STS(100000, 8, 4), CYC(7) },
	{ PKT(TIP) },
	/* 100 cycles are 400 ticks on average, 200 at least. */
	{ CYC(99), IS(100400, NONE) },
	/* 100480 is 311H * 128: 200 to 479 ticks by what came. */
	{ MTC(0, 0x11), CYC(19), IS(100480, 127) },
	/* In the step of an MTC, cycles narrow it down. */
	{ START("cycles and MTCs", 16), PKT(PGE), CYC(5) },
	{ STS(0x1ff0, 16, 16), CYC(7) },
	{ MTC(0, 0x40), CYC(15), IS(0x2000, 0) },
	{ PKT(TIP), IS(0x2000, 127) },
	{ CYC(63), IS(0x2040, 0) },
	{ PKT(TIP), IS(0x2040, 63) },
	/* The first MTC after TriggerEn is wrong; a later one shows another start. */
	{ START("E7 counts for nothing", 0), PKT(PGE) },
	{ STS(0x1ff0, 16, 16) },
	{ E7_MTC(0x77), IS(0x1ff0, NONE) },
	{ MTC(0, 0x40), IS(0x2000, 127) },
	{ E7_MTC(0x99), IS(0x2000, NONE) },
	{ MTC(0, 0x42), IS(0x2100, NONE) },
	/* An MTC gives its step; cycles that contradict it are dropped, and never "exact". */
	{ START("cycles that go too far", 10), PKT(PGE), CYC(5) },
	{ STS(0x100000, 10, 10), CYC(7) },
	{ MTC(0, 1), CYC(127), IS(0x100080, 0) },
	{ PKT(TIP) },
	/* The next MTC was due after 128. */
	{ CYC(700), IS(0x100080, 127), .contradictions = 1, .no_ratio = true },
	{ MTC(0, 2), CYC(1), IS(0x100100, 127) },
	{ PKT(TIP), CYC(3), IS(0x100100, 127), .contradictions = 1 },
	{ START("cycles that fall short", 10), PKT(PGE), CYC(5) },
	{ STS(0x100000, 10, 10), CYC(7) },
	{ MTC(0, 1), CYC(19), IS(0x100080, 127), .contradictions = 1, .no_counts = true },
	/* Before the first MTC only cycles extend an STS: there may be MTCs after them. */
	{ START("cycles that pass the first MTC", 10), PKT(PGE), CYC(5) },
	{ STS(0xb8cb5b1000, 10, 10), CYC(7) },
	{ PKT(TIP), CYC(0x3f09), IS(0xb8cb5b4f0a, 0) },
	/* bits 20:13 of b8cb5b1000 .. b8cb5b1fff; no round of 256 MTCs has passed */
	{ MTC(3, 0xd8), BACK(0xb8cb5b1000, NONE), .contradictions = 1 },
	{ CYC(0), BACK(0xb8cb5b1000, NONE) },
	{ MTC(3, 0xd9), CYC(8191), IS(0xb8cb5b2000, NONE) },
	{ STS(0xb8cb5b2100, 10, 10), IS(0xb8cb5b2100, 0) },
	{ START("cycles that pass an STS", 10), PKT(PGE), CYC(5) },
	{ STS(0x100000, 10, 10), CYC(7) },
	{ PKT(TIP), CYC(999), IS(0x100000 + 1000, 0) },
	{ STS(0x100000 + 500, 10, 10), BACK(0x100000 + 500, 0), .contradictions = 1 },
	{ CYC(7) },
	{ PKT(TIP), CYC(9), IS(0x100000 + 500, NONE) },
};

static int sequences(void)
{
	size_t i;
	int n = 0;

	for (i = 0; i < VMPT_ARRAY_SIZE(steps); i++)
		n += steps[i].name != NULL;
	return n;
}

static const struct step *sequence(int n)
{
	const struct step *at = steps;

	while (!at->name || n--)
		at++;
	return at;
}

START_TEST(by_hand)
{
	const struct step *first = sequence(_i), *s = first;

	vmpt_rtit_clock_init(&c, s->ratio);
	do {
		if (s->kind)
			feed(s->kind, s->payload, s->aux);
		if (s->counted)
			cyc(s->count);
		if (!s->checked)
			continue;
		ck_assert_msg(c.tsc == s->tsc && c.error == s->error && c.went_back == s->back,
			      "%s, step %td: %llx +- %llx%s", first->name, s - first,
			      (unsigned long long)c.tsc, (unsigned long long)c.error,
			      c.went_back ? ", back" : "");
		ck_assert_msg(
			c.known == !s->unknown && (!s->has_since || c.since == s->since) &&
				(!s->contradictions || c.contradictions == s->contradictions) &&
				!(s->no_ratio && c.bus_ratio) && !(s->no_counts && c.whole_counts),
			"%s, step %td: known %d, since %llu, %llu contradictions, ratio %u, "
			"whole counts %d",
			first->name, s - first, c.known, (unsigned long long)c.since,
			(unsigned long long)c.contradictions, c.bus_ratio, c.whole_counts);
	} while (++s < steps + VMPT_ARRAY_SIZE(steps) && !s->name);
}
END_TEST

/* ---- others ---- */

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

static const u8 other_start[][3] = {
	{ R(TRACESTOP), R(PSB), R(PGE) },   { R(PGD), R(PSB), R(PGE) },
	{ R(TNT), R(PSB), R(PGE) },	 /* no FUP.PGD (4.2.8) */
	{ R(PSB), R(BUFF_OVF), R(TNT) }, /* in an overflow (4.2.5) */
	{ R(TNT), VMPT_ITEM_LOSS, R(PSB) },
};

START_TEST(another_start_of_the_trace_is_seen)
{
	size_t k;

	vmpt_rtit_clock_init(&c, 0);
	feed(R(PGE), 0, 0);
	sts(0x1ff0, 16, 16);
	mtc(0, 0x40);
	check(0x2000, 127);
	for (k = 0; k < 3; k++)
		feed(other_start[_i][k], 0, 0);
	ck_assert_uint_eq(c.error, NONE);
	mtc(0, 0x41);
	ck_assert_uint_eq(c.error, NONE);
	sts(0x9000, 16, 16);
	ck_assert_uint_eq(c.error, 0);
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

	tcase_add_loop_test(t, by_hand, 0, sequences());
	tcase_add_test(t, nobody_counts_while_packets_are_off);
	tcase_add_loop_test(t, another_start_of_the_trace_is_seen, 0, VMPT_ARRAY_SIZE(other_start));
	tcase_add_test(t, the_ratio_is_measured);
	tcase_add_loop_test(t, a_wrong_given_ratio_is_dropped, 4, 10);
	tcase_add_loop_test(t, a_wrong_given_ratio_is_dropped, 11, 20);
	suite_add_tcase(s, t);
	return s;
}
