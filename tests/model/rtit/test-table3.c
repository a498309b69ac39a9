// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * RTIT Programming Reference, Table 3: each step by itself, with FilterEn, and the whole trace;
 * the bytes are written out from Figures 3, 5 and 8.
 */
#include "tests/model/rtit/rig.h"

static void instruction(unsigned int step)
{
	struct vmpt_rtit_unit *u = &rig.unit;

	switch (step) {
	case 1:
		vmpt_rtit_unit_jmp(u, 0x023, 0x102);
		break;
	case 2: /* XOR EAX, EAX; CLIP 100H is a misprint, the JMP went to 102H */
		vmpt_rtit_unit_step(u, 0x102);
		break;
	case 3:
		far(0x105, 0x983);
		break;
	case 4:
		far(0x985, 0x10e);
		break;
	case 5: /* a fault: its own address */
		far(0x10e, 0x345);
		break;
	case 6:
		vmpt_rtit_unit_step(u, 0x348);
		break;
	case 7:
		vmpt_rtit_unit_step(u, 0x34c);
		break;
	case 8:
		vmpt_rtit_unit_step(u, 0x350);
		break;
	case 9:
		vmpt_rtit_unit_step(u, 0x353);
		break;
	case 10: /* IRET */
		far(0x357, 0x113);
		break;
	}
}

static void enable(void)
{
	range0(0x100, 0x110);
	wr(EVENTS, EVENT(RANGE0, NEVER));
	wr_at(CTL, BOTH | DEST | TRACE_EN, 0x1e);
	wr_at(CTL, BOTH | DEST | TRACE_EN | TRACE_ACTIVE, 0x20);
}

/* Execute all before @step, then check @step's bytes, and FilterEn after it. */
static void check(unsigned int step, const char *bytes, bool in)
{
	unsigned int n;

	enable();
	for (n = 1; n < step; n++)
		instruction(n);
	rig_skip();
	instruction(step);
	expect_bytes(bytes);
	ck_assert_uint_eq(status(), CONTEXT_EN | TRIGGER_EN | (in ? FILTER_EN : 0));
	expect_tnt(1);
}

/* "FUP.PacketGenEnable of 102 (BLIP)" */
START_TEST(step_1)
{
	check(1, "84 02 01", true);
}
END_TEST

START_TEST(step_2)
{
	check(2, "", true);
}
END_TEST

/* "FUP.PacketGenDisable of 105 (NLIP)", "TIP of 983 (BLIP)" */
START_TEST(step_3)
{
	check(3, "8c 05 01 b4 83 09", false);
}
END_TEST

/* "FUP.PacketGenEnabled of 10E (BLIP)" */
START_TEST(step_4)
{
	check(4, "84 0e 01", true);
}
END_TEST

/* "FUP.PacketGenDisabled of 10E", "TIP of 345 (BLIP)" */
START_TEST(step_5)
{
	check(5, "8c 0e 01 b4 45 03", false);
}
END_TEST

START_TEST(step_6)
{
	check(6, "", false);
}
END_TEST

START_TEST(step_7)
{
	check(7, "", false);
}
END_TEST

START_TEST(step_8)
{
	check(8, "", false);
}
END_TEST

START_TEST(step_9)
{
	check(9, "", false);
}
END_TEST

/* "since 113 is outside of range" */
START_TEST(step_10)
{
	check(10, "", false);
}
END_TEST

/* The packets of enabling, then of each step. */
static void table_3(const char *const *want, bool raw)
{
	unsigned int n;

	enable();
	for (n = 0; n <= 10; n++) {
		instruction(n);
		if (raw)
			expect_bytes(want[n]);
		else
			expect(want[n]);
	}
}

START_TEST(table_3_packets)
{
	const char *const want[] = { "PSB",
				     "FUP.PGE 102",
				     "",
				     "FUP.PGD 105, TIP 983",
				     "FUP.PGE 10e",
				     "FUP.PGD 10e, TIP 345",
				     "",
				     "",
				     "",
				     "",
				     "" };

	table_3(want, false);
}
END_TEST

START_TEST(table_3_bytes)
{
	const char *const want[] = { "c0 00 00 00 00 00 00 00 00",
				     "84 02 01",
				     "",
				     "8c 05 01 b4 83 09",
				     "84 0e 01",
				     "8c 0e 01 b4 45 03",
				     "",
				     "",
				     "",
				     "",
				     "" };

	table_3(want, true);
}
END_TEST

RIG_SUITE("table3", step_1, step_2, step_3, step_4, step_5, step_6, step_7, step_8, step_9, step_10,
	  table_3_packets, table_3_bytes)
