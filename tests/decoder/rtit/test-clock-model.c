// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * decoder/rtit/clock.c over streams of the trace unit in model/, with known packet times: with
 * correct processors, and with deviating ones (bursts of MTCs, late ones, no E6) or with a wrong
 * TSC ratio given.
 */
#include "decoder/vmpt-rtit-clock.h"
#include "model/vmpt-rtit.h"
#include "tests/support/support.h"

#define BYTES  (1u << 18)
#define EVENTS 3000
#define STEPS  (1u << 15)
#define CTL                                                                                       \
	(VMPT_RTIT_CTL_CYCLE_ACC | VMPT_RTIT_CTL_OS | VMPT_RTIT_CTL_USER | VMPT_RTIT_CTL_MTC_EN | \
	 VMPT_RTIT_CTL_STS_EN)

enum breach { NONE, BURSTS, LATE, NO_E6, WRONG_RATIO, BREACHES };

/* Bytes up to @end were made at tick @tsc. */
struct step {
	size_t end;
	u64 tsc;
};

static struct cpu {
	struct test_rng rng;
	struct vmpt_rtit_unit unit;
	struct vmpt_rtit_sink sink;
	struct vmpt_rtit_clocks now; /* true */
	u64 pushed;		     /* TSC that the unit knows */
	u64 part;		     /* fraction of a tick, in 1 / acbr */
	u64 ratio, acbr;
	enum breach breach;
	size_t size, steps;
	u8 bytes[BYTES];
	struct step step[STEPS];
} cpu;

/* Without a message to Check each time */
#define must(what)                           \
	do {                                 \
		if (!(what))                 \
			ck_abort_msg(#what); \
	} while (0)

static u64 below(u64 n)
{
	return test_random(&cpu.rng) % n;
}

static int take(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	(void)opaque;
	(void)pa;
	must(cpu.size + len <= BYTES);
	memcpy(cpu.bytes + cpu.size, bytes, len);
	cpu.size += len;
	return 0;
}

/* Bytes that the unit has made since were made now. */
static void note(void)
{
	size_t end = cpu.size;

	must(!vmpt_rtit_unit_drain(&cpu.unit));
	if (cpu.size == end)
		return;
	must(cpu.steps < STEPS);
	cpu.step[cpu.steps++] = (struct step){ cpu.size, cpu.now.tsc };
}

static void push(void)
{
	struct vmpt_rtit_clocks now = cpu.now;

	if (cpu.breach == LATE && below(3))
		now.tsc = cpu.pushed;
	cpu.pushed = now.tsc;
	vmpt_rtit_unit_time(&cpu.unit, &now);
	note();
}

static void run(u64 cycles)
{
	while (cycles--) {
		cpu.now.cycles++;
		for (cpu.part += cpu.ratio; cpu.part >= cpu.acbr; cpu.part -= cpu.acbr)
			cpu.now.tsc++;
		if (cpu.breach != BURSTS || !below(200))
			push();
	}
	/* Otherwise it would sometimes be as long as 256 MTCs. */
	push();
}

static void push_true(void)
{
	cpu.pushed = cpu.now.tsc;
	vmpt_rtit_unit_time(&cpu.unit, &cpu.now);
	note();
}

static void frequency(void)
{
	push_true();
	cpu.acbr = 4 + below(28);
	cpu.part = 0;
	vmpt_rtit_unit_frequency(&cpu.unit, (u8)cpu.acbr, (u8)cpu.acbr);
	note();
}

/* Up to some ms without clocks */
static void doze(void)
{
	cpu.now.tsc += below(1ULL << below(24));
	cpu.pushed = cpu.now.tsc;
	vmpt_rtit_unit_wake(&cpu.unit, &cpu.now);
	note();
}

/* MTCs are lost, as many as possible; STSs, too. */
static void overflow(void)
{
	u64 steps = below(below(4) ? 4 : 200), end = cpu.now.tsc + (steps << 7);

	vmpt_rtit_unit_overflow(&cpu.unit);
	while (cpu.now.tsc < end) {
		run(1 + below(20));
		if (!below(500))
			frequency();
	}
	vmpt_rtit_unit_overflow_resolve(&cpu.unit, 0x400000);
	note();
}

static void branch(void)
{
	const struct vmpt_rtit_mode mode = cpu.unit.mode;
	struct vmpt_rtit_far far = { .ip = 0x400100, .target = 0x400200, .mode = mode };

	switch (below(8)) {
	case 0:
		vmpt_rtit_unit_jmp_indirect(&cpu.unit, 0x400010, 0x400000 + below(0x10000));
		break;
	case 1:
		vmpt_rtit_unit_far(&cpu.unit, &far);
		break;
	case 2:
		vmpt_rtit_unit_mov_cr3(&cpu.unit, 0x400000, below(0x100) << 12);
		break;
	default:
		vmpt_rtit_unit_jcc(&cpu.unit, below(2), 0x400002, 0x400000);
	}
	note();
}

static void event(void)
{
	u64 what = below(500);

	run(1 + below(1ULL << below(8)));
	if (what < 490)
		branch();
	else if (what < 494)
		frequency();
	else if (what < 497)
		doze();
	else
		overflow();
}

static void wr(u32 msr, u64 value)
{
	ck_assert_int_eq(vmpt_rtit_unit_wrmsr(&cpu.unit, msr, value, 0x400000), 0);
}

static void begin(int seed, enum breach breach)
{
	struct vmpt_rtit_unit_config config = { .sink = &cpu.sink };
	struct vmpt_rtit_far far = { .ip = 0x400000, .target = 0x400000, .mode.paging = true };
	u64 range = (u64)(seed & 1) << VMPT_RTIT_CTL_MTC_RANGE_SHIFT, ctl;

	memset(&cpu, 0, offsetof(struct cpu, bytes));
	cpu.rng.state = (u64)seed * 1000003 + 29;
	cpu.breach = breach;
	cpu.ratio = 5 + below(25);
	cpu.acbr = 4 + below(28);
	cpu.now = (struct vmpt_rtit_clocks){ .tsc = below(1ULL << 39), .cycles = below(1u << 30) };
	cpu.pushed = cpu.now.tsc;
	cpu.sink.write = take;
	config.options.errata = breach == NO_E6 ? 0 : VMPT_RTIT_ERRATUM(6);
	ck_assert_int_eq(vmpt_rtit_unit_init(&cpu.unit, &config), 0);
	ck_assert_int_eq(vmpt_rtit_unit_rdmsr(&cpu.unit, VMPT_RTIT_MSR_CTL, &ctl), 0);
	wr(VMPT_RTIT_MSR_EVENTS, VMPT_RTIT_EVENT_ON | VMPT_RTIT_EVENT_OFF << 3);
	vmpt_rtit_unit_far(&cpu.unit, &far);
	vmpt_rtit_unit_time(&cpu.unit, &cpu.now);
	wr(VMPT_RTIT_MSR_CTL, CTL | range | VMPT_RTIT_CTL_TRACE_EN);
	wr(VMPT_RTIT_MSR_CTL, CTL | range | VMPT_RTIT_CTL_TRACE_EN | VMPT_RTIT_CTL_TRACE_ACTIVE);
	note();
	frequency();
}

/* ---- the clock's results ---- */

static struct vmpt_rtit_clock c;
/* Bounds since the last STS, before a contradiction */
static struct {
	u64 lo, hi;
	u64 contradictions;
} said[STEPS];
static size_t count;
static u64 bounded, packets, astray;

/*
 * STSs are exact in any case. Wrong cycles and ratios are used until an STS or MTC contradicts
 * them: that may be this one, but few bounds are wrong then.
 */
static void check_between(u64 sts, u64 next)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (said[i].lo <= next && said[i].hi >= sts)
			continue;
		astray++;
		ck_assert_msg(c.contradictions > said[i].contradictions,
			      "%llx to %llx between STSs at %llx and %llx",
			      (unsigned long long)said[i].lo, (unsigned long long)said[i].hi,
			      (unsigned long long)sts, (unsigned long long)next);
	}
	count = 0;
}

static void check_packet(const struct vmpt_packet *pkt, u64 truth, u64 contradictions)
{
	u64 error = truth > c.tsc ? truth - c.tsc : c.tsc - truth;
	bool sts = pkt->kind == VMPT_ITEM_RTIT + VMPT_RTIT_STS;

	packets++;
	if (c.error == ~0ULL)
		return;
	bounded++;
	if (c.contradictions > contradictions && !sts && !c.error)
		ck_abort_msg("%llx: exact by a contradiction", (unsigned long long)pkt->offset);
	/* A TNT's jumps are older than the packet that caused it, perhaps by a sleep. */
	if (pkt->kind == VMPT_ITEM_RTIT + VMPT_RTIT_TNT && truth > c.tsc)
		error = 0;
	if (cpu.breach == NONE && error > c.error)
		ck_abort_msg("%llx, kind %u: at %llx, said %llx +- %llx",
			     (unsigned long long)pkt->offset, pkt->kind, (unsigned long long)truth,
			     (unsigned long long)c.tsc, (unsigned long long)c.error);
	must(count < STEPS);
	said[count].lo = c.tsc - c.error;
	said[count].hi = c.tsc + c.error;
	said[count++].contradictions = contradictions;
}

static void check_stream(u32 ratio)
{
	const struct vmpt_stream stream = {
		.data = cpu.bytes, .size = cpu.size, .cpu = -1, .tid = -1, .isa = VMPT_ISA_RTIT
	};
	struct vmpt_options options = { .cycle_acc = VMPT_CYCLE_ACC_YES };
	struct vmpt_cursor cursor = { 0 };
	struct vmpt_decoder *dec;
	struct vmpt_packet pkt;
	u64 last = 0, before;
	size_t at = 0;

	vmpt_rtit_clock_init(&c, ratio);
	ck_assert_int_eq(vmpt_decoder_open(&dec, &stream, &options), 0);
	while (vmpt_packet_next(dec, &cursor, &pkt) > 0) {
		must(pkt.kind != VMPT_ITEM_LOSS);
		while (cpu.step[at].end <= pkt.offset)
			at++;
		before = c.contradictions;
		vmpt_rtit_clock_feed(&c, &pkt);
		if (pkt.kind == VMPT_ITEM_RTIT + VMPT_RTIT_STS) {
			ck_assert_uint_eq(c.tsc, cpu.step[at].tsc);
			ck_assert_uint_eq(c.error, 0);
			check_between(last, c.tsc);
			last = c.tsc;
		}
		check_packet(&pkt, cpu.step[at].tsc, before);
	}
	vmpt_decoder_close(dec);
}

static u32 ratio_given(int seed)
{
	u32 wrong = (u32)(cpu.ratio / 2 + below(cpu.ratio));

	if (cpu.breach != WRONG_RATIO)
		return seed % 3 ? (u32)cpu.ratio : 0;
	return wrong == cpu.ratio ? wrong + 2 : wrong;
}

static void follow(int seed, enum breach breach)
{
	unsigned int i;

	count = 0;
	bounded = packets = astray = 0;
	begin(seed, breach);
	for (i = 0; i < EVENTS; i++)
		event();
	check_stream(ratio_given(seed));
}

START_TEST(by_the_rules)
{
	follow(_i, NONE);
	ck_assert_uint_eq(c.contradictions, 0);
	ck_assert_msg(bounded * 2 > packets, "of %llu items %llu have a bound",
		      (unsigned long long)packets, (unsigned long long)bounded);
}
END_TEST

START_TEST(breaches)
{
	follow(_i, 1 + _i % (BREACHES - 1));
	ck_assert_uint_le(astray * 100, bounded);
	if (cpu.breach == WRONG_RATIO)
		ck_assert(c.contradictions && (!c.bus_ratio || c.bus_ratio == cpu.ratio));
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/rtit-clock-model");
	TCase *t = test_long_case(s);

	tcase_add_loop_test(t, by_the_rules, 0, test_rounds(150, 30));
	tcase_add_loop_test(t, breaches, 0, test_rounds(300, 60));
	return s;
}
