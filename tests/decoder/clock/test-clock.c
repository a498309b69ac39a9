// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * decoder/clock/clock.c: times worked out by hand from SDM 3 33.8.3. The crystal clock has 88 ticks
 * of the TSC (176 / 2), MTCs are 8 of it apart: 704 ticks. Random programs are in
 * test-clock-model.c.
 */
#include "decoder/clock/clock.h"
#include "tests/support/support.h"

#define OPEN VMPT_TIME_OPEN

static struct vmpt_clock c;
static struct vmpt_clock_options how;
static struct vmpt_owner owner;
static u64 offset;
static struct vmpt_tsc_pair pair;
static unsigned int pairs;
static struct vmpt_epoch epoch;

static void on_pair(void *opaque, const struct vmpt_tsc_pair *p)
{
	(void)opaque;
	pair = *p;
	pairs++;
}

static const struct vmpt_epoch *find_map(void *opaque, u64 vmcs, u64 near)
{
	(void)opaque;
	(void)near;
	return vmcs == 0x1000 ? &epoch : NULL;
}

static void setup(void)
{
	how = (struct vmpt_clock_options){
		.rates = { .tsc_num = 176,
			   .tsc_den = 2,
			   .nominal = 24,
			   .mtc_freq = 3,
			   .has_mtc_freq = true },
		.pair = on_pair,
	};
	owner = (struct vmpt_owner){ .kind = VMPT_OWNER_HOST };
	offset = pairs = 0;
	vmpt_clock_init(&c, &how);
}

static void feed(u8 kind, u64 payload)
{
	const struct vmpt_item item = { .kind = kind, .payload = payload, .size = 1 };

	vmpt_clock_feed(&c, &item, offset++, &owner);
}

static void tma(u64 ctc, u64 fast)
{
	feed(VMPT_PT_TMA, ctc | fast << 24);
}

static void guest(void)
{
	owner = (struct vmpt_owner){ .kind = VMPT_OWNER_VM, .vmcs = 0x1000 };
}

static void host(void)
{
	owner = (struct vmpt_owner){ .kind = VMPT_OWNER_HOST };
}

/* The bound of the packet fed last is [lo, hi]. */
#define between(lo, hi)                                         \
	do {                                                    \
		ck_assert_uint_eq(c.now.tsc - c.now.early, lo); \
		ck_assert_uint_eq(c.now.tsc + c.now.late, hi);  \
	} while (0)
/* The same, up to the fractions of ticks and cycles that are not known. */
#define about(lo, hi)                                                 \
	do {                                                          \
		ck_assert_uint_le(c.now.tsc - c.now.early, lo);       \
		ck_assert_uint_ge(c.now.tsc - c.now.early, (lo)-3);   \
		ck_assert_uint_ge(c.now.tsc + c.now.late, hi);        \
		ck_assert_uint_le(c.now.tsc + c.now.late, (hi) + 22); \
	} while (0)

START_TEST(nothing_is_known_before_a_tsc)
{
	feed(VMPT_PT_MTC, 0x12);
	feed(VMPT_PT_CYC, 1000);
	ck_assert_uint_eq(c.now.tsc, VMPT_TIME_NONE);
	feed(VMPT_PT_TSC, 5000000);
	between(5000000, 5000000);
}
END_TEST

/*
 * CTC was 1234H 50 ticks before the TSC: at 999950. The next MTC is at CTC 1238H, 4 * 88 later, and
 * has 47H; the one after it is 704 ticks later.
 */
START_TEST(tma_and_mtc)
{
	feed(VMPT_PT_TSC, 1000000);
	tma(0x1234, 50);
	between(1000000, 1000000);
	feed(VMPT_PT_TIP, 0);
	about(1000000, 999950 + 352);
	feed(VMPT_PT_MTC, 0x47);
	about(999950 + 352, 999950 + 352 + 704);
	feed(VMPT_PT_MTC, 0x48);
	about(999950 + 352 + 704, 999950 + 352 + 1408);
	/* The same MTC again gives nothing; three are lost. */
	feed(VMPT_PT_MTC, 0x48);
	about(999950 + 352 + 704, 999950 + 352 + 1408);
	feed(VMPT_PT_MTC, 0x4c);
	about(999950 + 352 + 5 * 704, 999950 + 352 + 6 * 704);
	ck_assert_uint_eq(c.counts.mtcs_lost, 3);
}
END_TEST

/*
 * Rounding errors do not add up: 3 MTCs of 250/3 * 8 = 666 2/3 ticks are 2000, and 3000000 are
 * exact, too.
 */
START_TEST(parts_of_ticks_do_not_add_up)
{
	unsigned int i;

	how.rates.tsc_num = 250;
	how.rates.tsc_den = 3;
	vmpt_clock_init(&c, &how);
	feed(VMPT_PT_TSC, 1000000);
	tma(0, 0);
	for (i = 1; i <= 3000000; i++)
		feed(VMPT_PT_MTC, i & 0xff);
	about(1000000 + 2000000000ULL, 1000000 + 2000000000ULL + 667);
}
END_TEST

/* 100 cycles at CBR 12 of P1 24 are 200 ticks; never beyond the next MTC. */
START_TEST(cycles)
{
	feed(VMPT_PT_TSC, 1000000);
	tma(0x1000, 0);
	feed(VMPT_PT_CBR, 12);
	feed(VMPT_PT_CYC, 100);
	ck_assert_uint_eq(c.now.tsc, 1000200);
	feed(VMPT_PT_CYC, 100);
	ck_assert_uint_eq(c.now.tsc, 1000400);
	feed(VMPT_PT_CYC, 1000);
	ck_assert_uint_ge(c.now.tsc, 1000700);
	ck_assert_uint_le(c.now.tsc, 1000722);
	/* And not back if the MTC shows that it was less. */
	feed(VMPT_PT_MTC, 1);
	ck_assert_uint_le(c.now.tsc, 1000722);
	about(1000704, 1001408);
	ck_assert_uint_eq(c.counts.backs, 0);
}
END_TEST

/* The frequency is not exactly CBR's: between MTCs it is measured. */
START_TEST(measured_ratio)
{
	unsigned int i;

	feed(VMPT_PT_TSC, 1000000);
	tma(0x1000, 0);
	feed(VMPT_PT_CBR, 12);
	for (i = 1; i <= 40; i++) {
		feed(VMPT_PT_CYC, 330); /* 704 / 330: 2.133, not 2 */
		feed(VMPT_PT_MTC, i & 0xff);
	}
	feed(VMPT_PT_CYC, 165);
	ck_assert_uint_ge(c.now.tsc, 1000000 + 40 * 704 + 349);
	ck_assert_uint_le(c.now.tsc, 1000000 + 40 * 704 + 355);
}
END_TEST

/* CTC 1010H in the guest: 16 ticks of 88 after the host's, and 7. */
START_TEST(tma_of_an_unmapped_guest)
{
	feed(VMPT_PT_TSC, 1000000);
	tma(0x1000, 0);
	feed(VMPT_PT_MTC, 1);
	feed(VMPT_PT_MTC, 2);
	guest();
	feed(VMPT_PT_PSB, 0);
	feed(VMPT_PT_TSC, 77);
	tma(0x1010, 7);
	about(1000000 + 16 * 88 + 7, 1000000 + 16 * 88 + 7);
	ck_assert_uint_eq(pairs, 1);
	ck_assert_uint_eq(pair.guest, 77);
	ck_assert_uint_eq(pair.vmcs, 0x1000);
	ck_assert_uint_le(pair.host.early + pair.host.late, 8);
	ck_assert_uint_eq(c.counts.unmapped, 1);
}
END_TEST

/* Outside a PSB+ CTC may have wrapped; the host's TSC ends that. */
START_TEST(a_guest_sleeps)
{
	feed(VMPT_PT_TSC, 1000000);
	tma(0x1000, 0);
	guest();
	feed(VMPT_PT_TSC, 77);
	tma(0x1010, 7);
	ck_assert_uint_eq(c.now.late, OPEN);
	/* The pair has no late bound, either. */
	ck_assert_uint_eq(pairs, 1);
	ck_assert_uint_eq(pair.host.late, OPEN);
	feed(VMPT_PT_MTC, 3);
	ck_assert_uint_eq(c.now.late, OPEN);
	host();
	/* 65536 * 88 + 24 * 88 later than the first */
	feed(VMPT_PT_TSC, 1000000 + 65560 * 88);
	tma(0x1018, 0);
	feed(VMPT_PT_MTC, 4);
	about(1000000 + 65568 * 88, 1000000 + 65576 * 88);
	ck_assert_uint_eq(c.counts.contradictions, 0);
}
END_TEST

START_TEST(a_mapped_guest_sleeps)
{
	epoch = (struct vmpt_epoch){ .map = { VMPT_TSC_UNSCALED, (u64)-999923 } };
	how.map = find_map;
	vmpt_clock_init(&c, &how);
	feed(VMPT_PT_TSC, 1000000);
	tma(0x1000, 0);
	guest();
	feed(VMPT_PT_TSC, 77 + 65552 * 88);
	tma(0x1010, 0);
	about(1000000 + 65552 * 88, 1000000 + 65552 * 88);
	/* A map that CTC contradicts is not used. */
	feed(VMPT_PT_MTC, 3);
	feed(VMPT_PT_TSC, 77 + 165552ULL * 88);
	tma(0x1018, 1);
	ck_assert_uint_eq(c.now.late, OPEN);
	ck_assert_uint_eq(c.counts.contradictions, 1);
}
END_TEST

START_TEST(skz84)
{
	unsigned int i;

	feed(VMPT_PT_TSC, 1000000);
	tma(0x1000, 0);
	guest();
	for (i = 1; i <= 10; i++) {
		feed(VMPT_PT_PSB, 0);
		feed(VMPT_PT_TSC, 77);
		tma(0x7000 + 999 * i, 3);
		feed(VMPT_PT_PSBEND, 0);
		feed(VMPT_PT_MTC, i);
		about(1000000 + i * 704, 1000000 + (i + 1) * 704);
	}
	ck_assert_uint_eq(c.counts.tmas_bad, 10);
}
END_TEST

/* An OVF may drop MTCs, but fewer than 256; lost bytes may have any number. */
START_TEST(losses)
{
	feed(VMPT_PT_TSC, 1000000);
	tma(0x1000, 0);
	feed(VMPT_PT_OVF, 0);
	ck_assert_uint_eq(c.now.late, OPEN);
	feed(VMPT_PT_MTC, 9);
	about(1000000 + 9 * 704, 1000000 + 10 * 704);
	feed(VMPT_ITEM_LOSS, 100);
	ck_assert_uint_eq(c.now.late, OPEN);
	feed(VMPT_PT_MTC, 12);
	ck_assert_uint_eq(c.now.late, OPEN);
	ck_assert_uint_le(c.now.tsc - c.now.early, 1000000 + 12 * 704);
	feed(VMPT_PT_TSC, 1500000);
	between(1500000, 1500000);
}
END_TEST

START_TEST(steps_back_say_why)
{
	feed(VMPT_PT_TSC, 1000000000);
	tma(0x1000, 0);
	feed(VMPT_PT_TSC, 5000);
	ck_assert_int_eq(c.back, VMPT_BACK_TSC_RESET);
	between(5000, 5000);
	feed(VMPT_ITEM_LOSS, 100);
	feed(VMPT_PT_TSC, 4000);
	ck_assert_int_eq(c.back, VMPT_BACK_GAP);
	feed(VMPT_PT_TSC, 4000);
	ck_assert_int_eq(c.back, VMPT_BACK_NOT);
	ck_assert_uint_eq(c.counts.backs, 2);
}
END_TEST

START_TEST(tsc_goes_round)
{
	how.near_tsc = (5ULL << 56) - 1000;
	vmpt_clock_init(&c, &how);
	feed(VMPT_PT_TSC, (1ULL << 56) - 500);
	between((5ULL << 56) - 500, (5ULL << 56) - 500);
	feed(VMPT_PT_TSC, 300);
	between((5ULL << 56) + 300, (5ULL << 56) + 300);
}
END_TEST

/* MTCFreq 10: TMA has 6 bits of the MTC's 8; 88 << 10 ticks. */
START_TEST(mtc_freq_beyond_tma)
{
	how.rates.mtc_freq = 10;
	vmpt_clock_init(&c, &how);
	feed(VMPT_PT_TSC, 100000000);
	tma(0x0800, 0);
	feed(VMPT_PT_MTC, 0xc3);
	about(100000000 + 90112, 100000000 + 2 * 90112);
	feed(VMPT_PT_MTC, 0xc5);
	about(100000000 + 3 * 90112, 100000000 + 4 * 90112);
}
END_TEST

/* One TSC with a wrong bit is no wrap: the next one is where it was, and this is reported. */
START_TEST(a_wrong_bit_is_no_wrap)
{
	feed(VMPT_PT_TSC, 1000000);
	feed(VMPT_PT_TSC, 1001000 | 1ULL << 55);
	feed(VMPT_PT_TSC, 1002000);
	between(1002000, 1002000);
	ck_assert_uint_eq(c.back, VMPT_BACK_TSC_RESET);
	ck_assert_uint_eq(c.counts.backs, 1);
}
END_TEST

/* TSC packets have 56 bits, 2^48 means no scaling: by hand. */
START_TEST(maps)
{
	const struct vmpt_tsc_map plain = { VMPT_TSC_UNSCALED, (u64)-1000 };
	const struct vmpt_tsc_map half = { VMPT_TSC_UNSCALED / 2, 7 };
	const struct vmpt_tsc_map more = { VMPT_TSC_UNSCALED / 2 * 3, 0 };

	ck_assert_uint_eq(vmpt_tsc_to_guest(&plain, 5000), 4000);
	ck_assert_uint_eq(vmpt_tsc_to_host(&plain, 4000, 5), 5000);
	ck_assert_uint_eq(vmpt_tsc_to_guest(&half, 5001), 2507);
	ck_assert_uint_eq(vmpt_tsc_to_host(&half, 2507, 0), 5000);
	ck_assert_uint_eq(vmpt_tsc_to_guest(&more, 5001), 7501);
	ck_assert_uint_eq(vmpt_tsc_to_host(&more, 7501, 4000), 5001);
	ck_assert_uint_eq(vmpt_tsc_to_host(&plain, (1ULL << 56) - 500, 3ULL << 56),
			  (3ULL << 56) + 500);
	ck_assert_uint_eq(vmpt_tsc_to_host(&plain, 4000, (3ULL << 56) - 10), (3ULL << 56) + 5000);
}
END_TEST

/* Whether an item of @kind changes the clock's state, not only the time of that item. */
static bool changes(u8 kind, u64 payload)
{
	const struct vmpt_clock before = c;
	bool changed;

	feed(kind, payload);
	c.now = before.now;
	c.back = before.back;
	c.cyc_last = before.cyc_last;
	c.tsc_last = before.tsc_last;
	changed = memcmp((const u8 *)&c, (const u8 *)&before, sizeof(c));
	c = before;
	return changed;
}

/*
 * A walk of a clock over a batch skips all other kinds: each kind is tried after a TSC, a PSB and a
 * TIP.PGD, with a running clock.
 */
START_TEST(all_that_a_clock_needs_is_wanted)
{
	static const u8 states[] = { VMPT_PT_TSC, VMPT_PT_PSB, VMPT_PT_TIP_PGD };
	struct vmpt_clock running;
	unsigned int kind, i;
	bool changed;

	feed(VMPT_PT_CBR, 20);
	feed(VMPT_PT_TSC, 1000000);
	tma(0x10, 3);
	feed(VMPT_PT_MTC, 3);
	feed(VMPT_PT_CYC, 12);
	feed(VMPT_PT_TIP_PGE, 0);
	ck_assert_uint_ne(c.now.tsc, VMPT_TIME_NONE);
	running = c;
	for (kind = 0; kind < 256; kind++) {
		changed = false;
		for (i = 0; i < VMPT_ARRAY_SIZE(states); i++) {
			c = running;
			feed(states[i], 1000500);
			changed |= changes((u8)kind, 0x21);
		}
		if (changed != vmpt_time_wanted(kind) || changed != vmpt_time_kinds[kind])
			ck_abort_msg("kind %u: changes a clock: %d, wanted: %d, %d", kind, changed,
				     vmpt_time_wanted(kind), vmpt_time_kinds[kind]);
	}
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/clock");
	TCase *t = tcase_create("by hand");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, nothing_is_known_before_a_tsc);
	tcase_add_test(t, a_wrong_bit_is_no_wrap);
	tcase_add_test(t, tma_and_mtc);
	tcase_add_test(t, parts_of_ticks_do_not_add_up);
	tcase_add_test(t, cycles);
	tcase_add_test(t, measured_ratio);
	tcase_add_test(t, tma_of_an_unmapped_guest);
	tcase_add_test(t, a_guest_sleeps);
	tcase_add_test(t, a_mapped_guest_sleeps);
	tcase_add_test(t, skz84);
	tcase_add_test(t, losses);
	tcase_add_test(t, steps_back_say_why);
	tcase_add_test(t, tsc_goes_round);
	tcase_add_test(t, mtc_freq_beyond_tma);
	tcase_add_test(t, maps);
	tcase_add_test(t, all_that_a_clock_needs_is_wanted);
	suite_add_tcase(s, t);
	return s;
}
