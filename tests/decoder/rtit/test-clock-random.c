// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * decoder/rtit/clock.c under random sequences of a processor with a known TSC: it is always within
 * the bound.
 */
#include "decoder/vmpt-rtit-clock.h"
#include "tests/support/support.h"

#define NONE (~0ULL)

static struct vmpt_rtit_clock c;

static void feed(unsigned int kind, u64 payload, u8 aux)
{
	struct vmpt_packet pkt = { .kind = (u8)kind, .payload = payload, .aux = aux };

	vmpt_rtit_clock_feed(&c, &pkt);
}

/* Any packets, any payloads: time goes back only when reported, nothing is undefined. */
START_TEST(senseless_sequences)
{
	struct test_rng rng = { (u64)_i + 1 };
	unsigned int i, kind;
	u64 last = 0;

	vmpt_rtit_clock_init(&c, test_random(&rng) % 3 ? (u32)test_random(&rng) % 70 : 0);
	if (_i == 0)
		vmpt_rtit_clock_init(&c, ~0u);
	for (i = 0; i < 20000; i++) {
		kind = VMPT_ITEM_RTIT + (unsigned int)test_random(&rng) % (VMPT_RTIT_KINDS + 2);
		if (kind == VMPT_ITEM_RTIT_RUN)
			kind = VMPT_ITEM_LOSS;
		feed(kind, test_random(&rng) >> test_random(&rng) % 64,
		     test_random(&rng) % 8 ? 0 : VMPT_RTIT_AUX_IGNORE);
		ck_assert(c.went_back || c.tsc >= last);
		ck_assert(c.known || c.error == NONE);
		last = c.tsc;
	}
}
END_TEST

/* ---- a processor with a known TSC ---- */

struct cpu {
	struct test_rng rng;
	u64 tsc, num; /* ticks, and a fraction in 1 / acbr */
	u64 ratio;    /* TSC ticks per bus clock */
	u64 acbr, ecbr;
	u64 range; /* RTIT_CTL.MTC_Range */
	u64 block; /* the 8 bits and those above that the last MTC was for */
	u64 sent;  /* the same for the last MTC or STS that was sent */
	u32 cntp;
	bool cycle_acc, mtc_en, less_pkts, counts_off;
	bool on, overflow, first_mtc;
	bool given; /* the clock is given the ratio */
	bool calm;
	bool offset_known;
	u64 offset; /* of the clock's 64 bits from ours: a multiple of 2^40 */
	u64 last;
	u64 packets, bounded; /* total since the first STS; with a bound */
};

static u64 below(struct cpu *p, u64 n)
{
	return test_random(&p->rng) % n;
}

static void check_truth(struct cpu *p, const char *what)
{
	u64 truth, error;

	ck_assert_msg(c.tsc >= p->last || c.went_back, "%s: back from %llx to %llx", what,
		      (unsigned long long)p->last, (unsigned long long)c.tsc);
	p->last = c.tsc;
	if (!c.known) {
		ck_assert_uint_eq(c.error, NONE);
		return;
	}
	if (!p->offset_known) {
		p->offset = p->tsc & ~((1ULL << 40) - 1);
		p->offset_known = true;
	}
	p->packets++;
	if (c.error == NONE)
		return;
	p->bounded++;
	truth = p->tsc - p->offset;
	error = truth > c.tsc ? truth - c.tsc : c.tsc - truth;
	ck_assert_msg(error <= c.error, "seed %llu: %s at %llx: said %llx +- %llx",
		      (unsigned long long)p->rng.state, what, (unsigned long long)truth,
		      (unsigned long long)c.tsc, (unsigned long long)c.error);
}

static void emit(struct cpu *p, unsigned int kind, u64 payload, u8 aux)
{
	bool cycled = kind < VMPT_RTIT_KINDS && vmpt_rtit_table[kind].classes & VMPT_RTIT_CYCLED;
	u64 contradictions = c.contradictions;

	if (p->overflow)
		return;
	if (kind == VMPT_RTIT_TNT)
		cycled = payload & 0x40;
	feed(VMPT_ITEM_RTIT + kind, payload, aux);
	if (kind == VMPT_RTIT_MTC || kind == VMPT_RTIT_STS)
		p->sent = p->tsc >> (7 + 2 * p->range);
	if (kind == VMPT_RTIT_STS)
		ck_assert_uint_eq(c.error, 0);
	else
		ck_assert(!c.went_back || c.contradictions > contradictions);
	check_truth(p, vmpt_rtit_name(kind));
	if (!p->cycle_acc || !cycled)
		return;
	feed(VMPT_ITEM_RTIT_CYC, p->cntp ? p->cntp - 1 : 0, 0);
	p->cntp = 0;
	check_truth(p, "its CYC");
}

/* MTCs and STSs (Table 17) */
static bool timing_is_sent(const struct cpu *p)
{
	return !p->less_pkts || p->on;
}

static void put_sts(struct cpu *p)
{
	if (timing_is_sent(p))
		emit(p, VMPT_RTIT_STS,
		     (p->tsc & ((1ULL << 40) - 1)) | p->acbr << 40 | p->ecbr << 46, 0);
}

static void put_mtc(struct cpu *p)
{
	u64 block = p->tsc >> (7 + 2 * p->range), value = block & 0xff;
	bool first = p->first_mtc;

	if (block == p->block)
		return;
	p->block = block;
	if (!p->mtc_en || !timing_is_sent(p))
		return;
	p->first_mtc = p->first_mtc && p->overflow;
	/* E7: the value is of another time. */
	if (first)
		emit(p, VMPT_RTIT_MTC, below(p, 256) | p->range << 8,
		     VMPT_RTIT_AUX_IGNORE | 7 << 5);
	else
		emit(p, VMPT_RTIT_MTC, value | p->range << 8, 0);
}

static void run(struct cpu *p, u64 cycles)
{
	while (cycles--) {
		if (p->ecbr < p->acbr && below(p, 4) == 0)
			p->tsc += p->ratio;
		for (p->num += p->ratio; p->num >= p->acbr; p->num -= p->acbr)
			p->tsc++;
		if (p->cntp < VMPT_RTIT_CYCLE_MAX && (p->on || p->counts_off))
			p->cntp++;
		put_mtc(p);
	}
}

static void set_speed(struct cpu *p)
{
	p->acbr = 4 + below(p, 28);
	p->ecbr = below(p, 4) ? p->acbr : 1 + below(p, p->acbr);
	p->num = 0;
	put_sts(p);
}

/* The counter stops, MTCs do not come. */
static void doze(struct cpu *p)
{
	p->tsc += below(p, 1ULL << below(p, 36));
	put_sts(p);
}

static void enable(struct cpu *p)
{
	p->on = true;
	emit(p, VMPT_RTIT_PGE, 0, 0);
}

static void disable(struct cpu *p)
{
	emit(p, VMPT_RTIT_PGD, 0, 0);
	p->on = false;
}

/* Fewer than 255 MTCs are lost in a row, speed and PacketEn may change. */
static void overflow(struct cpu *p)
{
	u64 end = (p->tsc >> (7 + 2 * p->range)) + below(p, below(p, 4) ? 4 : 250);
	unsigned int i;

	if (p->mtc_en && end > p->sent + 250)
		end = p->sent + 250;
	p->overflow = true;
	for (i = 0; i < 3000 && p->tsc >> (7 + 2 * p->range) < end; i++) {
		run(p, 1 + below(p, 20));
		if (below(p, 500) == 0)
			set_speed(p);
	}
	p->on = below(p, 4);
	p->overflow = false;
	emit(p, VMPT_RTIT_BUFF_OVF, 0, 0);
}

/* TriggerEn 0, time passes, RTIT_CTL may change. */
static void stop_and_start(struct cpu *p)
{
	bool was_on = p->on;

	switch (below(p, 3)) {
	case 0:
		emit(p, VMPT_RTIT_TRACESTOP, 0, 0);
		was_on = false;
		break;
	case 1:
		if (p->on)
			disable(p);
		was_on = false;
	}
	p->on = false;
	p->tsc += below(p, 1ULL << below(p, 40));
	p->cntp = (u32)below(p, 1000);
	if (below(p, 2)) {
		p->range = below(p, 4);
		p->less_pkts = below(p, 2);
		p->mtc_en = below(p, 3);
	}
	p->acbr = p->ecbr = 4 + below(p, 28);
	p->num = 0;
	p->block = p->tsc >> (7 + 2 * p->range);
	p->first_mtc = true;
	emit(p, VMPT_RTIT_PSB, 0, 0);
	/* Without a FUP.PGD only another FUP.PGE shows that it was off. */
	if (was_on)
		enable(p);
	put_sts(p);
}

static void lose_bytes(struct cpu *p)
{
	p->overflow = true;
	run(p, below(p, 5000));
	doze(p);
	p->on = below(p, 2);
	p->overflow = false;
	feed(VMPT_ITEM_LOSS, 100, VMPT_E_OPCODE);
	check_truth(p, "loss");
	emit(p, VMPT_RTIT_PSB, 0, 0);
}

static void any_packet(struct cpu *p)
{
	static const u8 flow[] = { VMPT_RTIT_TNT, VMPT_RTIT_TNT, VMPT_RTIT_TIP, VMPT_RTIT_FAR,
				   VMPT_RTIT_PIP };
	unsigned int kind = flow[below(p, VMPT_ARRAY_SIZE(flow))];

	if (p->on || kind == VMPT_RTIT_PIP)
		emit(p, kind, kind == VMPT_RTIT_TNT ? 2 + below(p, 126) : below(p, 1u << 30), 0);
}

static void event(struct cpu *p)
{
	u64 what = below(p, 2000);

	run(p, 1 + below(p, 1ULL << below(p, 10)));
	if (what < 1800 || (what >= 1960 && p->calm))
		any_packet(p);
	else if (what < 1900)
		p->on ? disable(p) : enable(p);
	else if (what < 1940)
		put_sts(p);
	else if (what < 1960)
		set_speed(p);
	else if (what < 1970)
		doze(p);
	else if (what < 1980)
		overflow(p);
	else if (what < 1985)
		stop_and_start(p);
	else if (what < 1990)
		lose_bytes(p);
	else if (p->on)
		emit(p, VMPT_RTIT_PSB, 0, 0);
}

static void run_cpu(struct cpu *p, int seed)
{
	unsigned int i;

	p->rng.state = (u64)seed * 1000003 + 17;
	p->ratio = 5 + below(p, 25);
	p->given = seed % 3;
	p->acbr = p->ecbr = 4 + below(p, 28);
	p->tsc = below(p, 1ULL << 40);
	p->cycle_acc = seed & 1;
	p->mtc_en = seed % 8 < 6;
	p->less_pkts = seed % 16 >= 8;
	p->counts_off = below(p, 2);
	p->range = below(p, 4);
	p->block = p->tsc >> (7 + 2 * p->range);
	vmpt_rtit_clock_init(&c, p->given ? (u32)p->ratio : 0);
	emit(p, VMPT_RTIT_PSB, 0, 0);
	enable(p);
	for (i = 0; i < 5000; i++)
		event(p);
	ck_assert(c.known);
	ck_assert(!c.bus_ratio || c.bus_ratio == p->ratio);
	/* Measurements may be wrong for a while, because of an invisible stop (4.2.8). */
	ck_assert(!p->given || !c.contradictions);
}

START_TEST(the_truth_is_within_the_bound)
{
	struct cpu p = { 0 };

	run_cpu(&p, _i);
}
END_TEST

/* No overflows, stops or losses: a clock that never has a bound would never be wrong, either. */
START_TEST(there_is_a_bound_where_there_can_be_one)
{
	struct cpu p = { .calm = true };

	run_cpu(&p, _i);
	if (p.mtc_en && !p.less_pkts)
		ck_assert_msg(p.bounded * 10 > p.packets * 9, "of %llu packets %llu bounded",
			      (unsigned long long)p.packets, (unsigned long long)p.bounded);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/rtit-clock-random");
	TCase *t = test_random_case(s);

	tcase_add_loop_test(t, senseless_sequences, 0, test_rounds(8, 2));
	tcase_add_loop_test(t, the_truth_is_within_the_bound, 0, test_rounds(48, 12));
	tcase_add_loop_test(t, there_is_a_bound_where_there_can_be_one, 100,
			    100 + test_rounds(48, 12));
	return s;
}
