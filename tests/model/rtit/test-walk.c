// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The promise of model/vmpt-rtit.h to callers of the RTIT unit: instructions other than branches
 * need to be reported only while unit->walk is set, and only if next_ip is a base or a limit in
 * use; reporting others does no harm. Two units on random programs: one gets all steps, the other
 * only those.
 */
#include "tests/model/rtit/rig.h"

#define AREA 64 /* addresses, one byte an instruction; ranges are in it */

struct side {
	struct vmpt_rtit_unit unit;
	struct vmpt_rtit_sink sink;
	u8 bytes[1 << 16];
	size_t size;
};

static struct side all, few;

static int take(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	struct side *s = opaque;

	(void)pa;
	if (s->size + len > sizeof(s->bytes))
		ck_abort_msg("more bytes than room");
	memcpy(s->bytes + s->size, bytes, len);
	s->size += len;
	return 0;
}

static void start(struct side *s)
{
	struct vmpt_rtit_unit_config config = { .sink = &s->sink };
	u64 ctl;

	s->size = 0;
	s->sink.write = take;
	s->sink.opaque = s;
	ck_assert_int_eq(vmpt_rtit_unit_init(&s->unit, &config), 0);
	ck_assert_int_eq(vmpt_rtit_unit_rdmsr(&s->unit, CTL, &ctl), 0);
}

static void both_wr(u32 msr, u64 value, u64 next)
{
	if (vmpt_rtit_unit_wrmsr(&all.unit, msr, value, next) ||
	    vmpt_rtit_unit_wrmsr(&few.unit, msr, value, next))
		ck_abort_msg("WRMSR %x", msr);
}

static bool is_edge(u64 ip)
{
	const u64 *lip = few.unit.regs.lip;

	return ip == lip[0] || ip == lip[1] || ip == lip[2] || ip == lip[3];
}

static u64 configure(struct test_rng *rng)
{
	static const u8 ids[] = { RANGE0, RANGE1, RANGES, NEVER, ALWAYS };
	u64 ctl = DEST | TRACE_EN | (test_random(rng) & BOTH), ip = test_random(rng) % AREA;
	u64 a = test_random(rng) % 16, b = 16 + test_random(rng) % 16;

	both_wr(LIP0, a, ip);
	both_wr(LIP2, b, ip);
	both_wr(LIP1, b + test_random(rng) % 8, ip);
	both_wr(LIP3, 40 + test_random(rng) % 16, ip);
	both_wr(EVENTS, EVENT(ids[test_random(rng) % 5], ids[test_random(rng) % 4]), ip);
	both_wr(CTL, ctl, ip);
	both_wr(CTL, ctl | TRACE_ACTIVE, ip);
	return ip;
}

static u64 execute(struct test_rng *rng, u64 ip)
{
	u64 next = ip + 1, to = test_random(rng) % AREA;
	struct vmpt_rtit_far f = { .ip = next, .target = to };
	bool taken = test_random(rng) & 1;

	f.mode.cpl = test_random(rng) & 3;
	switch (test_random(rng) % 40) {
	case 0:
		vmpt_rtit_unit_jcc(&all.unit, taken, next, to);
		vmpt_rtit_unit_jcc(&few.unit, taken, next, to);
		return taken ? to : next;
	case 1:
		vmpt_rtit_unit_jmp(&all.unit, next, to);
		vmpt_rtit_unit_jmp(&few.unit, next, to);
		return to;
	case 2:
		vmpt_rtit_unit_jmp_indirect(&all.unit, next, to);
		vmpt_rtit_unit_jmp_indirect(&few.unit, next, to);
		return to;
	case 3:
		vmpt_rtit_unit_far(&all.unit, &f);
		vmpt_rtit_unit_far(&few.unit, &f);
		return to;
	case 4:
		vmpt_rtit_unit_mov_cr3(&all.unit, next, to << 12);
		vmpt_rtit_unit_mov_cr3(&few.unit, next, to << 12);
		return next;
	case 5: /* after a TraceStop */
		both_wr(CTL, all.unit.regs.ctl | TRACE_ACTIVE, next);
		return next;
	default:
		vmpt_rtit_unit_step(&all.unit, next);
		if (few.unit.walk && is_edge(next))
			vmpt_rtit_unit_step(&few.unit, next);
		return next;
	}
}

START_TEST(edges_are_enough)
{
	u64 seed, ip, total = 0;
	unsigned int n;

	for (seed = 1; seed <= 2000; seed++) {
		struct test_rng rng = { seed };

		start(&all);
		start(&few);
		ip = configure(&rng);
		for (n = 0; n < 500; n++) {
			/* At the end of the area there is nothing to walk into. */
			ip = execute(&rng, ip % AREA);
			/* FilterEn after a TraceStop may differ until the next event. */
			if (all.unit.regs.ctl != few.unit.regs.ctl ||
			    all.unit.packet_en != few.unit.packet_en)
				ck_abort_msg("seed %llu, instruction %u", (unsigned long long)seed,
					     n);
		}
		vmpt_rtit_unit_drain(&all.unit);
		vmpt_rtit_unit_drain(&few.unit);
		ck_assert_uint_eq(all.size, few.size);
		ck_assert_mem_eq(all.bytes, few.bytes, all.size);
		total += all.size;
	}
	ck_assert_uint_ge(total, 2000 * 50);
}
END_TEST

/* It is clear where no range can be walked into or out of. */
START_TEST(not_wanted)
{
	on(BOTH);
	ck_assert(!rig.unit.walk);
	wr(EVENTS, EVENT(RANGE0, NEVER));
	ck_assert(rig.unit.walk);
	wr(EVENTS, EVENT(ALWAYS, RANGE1));
	ck_assert(rig.unit.walk);
	ctl_clear(OS);
	ck_assert(!rig.unit.walk);
	off();
	ck_assert(!rig.unit.walk);
}
END_TEST

RIG_SUITE("walk", edges_are_enough, not_wanted)
