// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * RTIT Programming Reference, Table 3: each step by itself, with FilterEn, and the whole trace;
 * the bytes are written out from Figures 3, 5 and 8.
 */
#include "tests/model/rtit/rig.h"

static void walk(u64 next, u64 target)
{
	(void)target;
	vmpt_rtit_unit_step(&rig.unit, next);
}

static const struct {
	void (*op)(u64 next, u64 target);
	u64 next, target;
	const char *bytes, *packets;
	bool in; /* the filter's range, after it */
} step_of[] = {
	/* What enabling makes */
	{ NULL, 0, 0, "c0 00 00 00 00 00 00 00 00", "PSB", false },
	/* "FUP.PacketGenEnable of 102 (BLIP)" */
	{ jmp, 0x023, 0x102, "84 02 01", "FUP.PGE 102", true },
	/* XOR EAX, EAX; CLIP 100H is a slip, the JMP went to 102H */
	{ walk, 0x102, 0, "", "", true },
	/* "FUP.PacketGenDisable of 105 (NLIP)", "TIP of 983 (BLIP)" */
	{ far, 0x105, 0x983, "8c 05 01 b4 83 09", "FUP.PGD 105, TIP 983", false },
	/* "FUP.PacketGenEnabled of 10E (BLIP)" */
	{ far, 0x985, 0x10e, "84 0e 01", "FUP.PGE 10e", true },
	/* A fault: its own address. "FUP.PacketGenDisabled of 10E", "TIP of 345 (BLIP)" */
	{ far, 0x10e, 0x345, "8c 0e 01 b4 45 03", "FUP.PGD 10e, TIP 345", false },
	{ walk, 0x348, 0, "", "", false },
	{ walk, 0x34c, 0, "", "", false },
	{ walk, 0x350, 0, "", "", false },
	{ walk, 0x353, 0, "", "", false },
	/* IRET, "since 113 is outside of range" */
	{ far, 0x357, 0x113, "", "", false },
};

static void instruction(size_t step)
{
	if (step_of[step].op)
		step_of[step].op(step_of[step].next, step_of[step].target);
}

static void enable(void)
{
	range0(0x100, 0x110);
	wr(EVENTS, EVENT(RANGE0, NEVER));
	wr_at(CTL, BOTH | DEST | TRACE_EN, 0x1e);
	wr_at(CTL, BOTH | DEST | TRACE_EN | TRACE_ACTIVE, 0x20);
}

/* All before the step, then it alone: its bytes, and whether the filter is in after it. */
START_TEST(step_alone)
{
	int n;

	enable();
	for (n = 1; n < _i; n++)
		instruction((size_t)n);
	if (_i)
		rig_skip();
	instruction((size_t)_i);
	expect_bytes(step_of[_i].bytes);
	ck_assert_uint_eq(status(), CONTEXT_EN | TRIGGER_EN | (step_of[_i].in ? FILTER_EN : 0));
	expect_tnt(1);
}
END_TEST

START_TEST(table_3_packets)
{
	size_t n;

	enable();
	for (n = 0; n < VMPT_ARRAY_SIZE(step_of); n++) {
		instruction(n);
		expect(step_of[n].packets);
	}
}
END_TEST

START_TEST(table_3_bytes)
{
	size_t n;

	enable();
	for (n = 0; n < VMPT_ARRAY_SIZE(step_of); n++) {
		instruction(n);
		expect_bytes(step_of[n].bytes);
	}
}
END_TEST

RIG_TABLE_SUITE("table3", step_alone, VMPT_ARRAY_SIZE(step_of), table_3_packets, table_3_bytes)
