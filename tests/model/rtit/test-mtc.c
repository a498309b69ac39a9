// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * When MTC counting restarts, and how many MTCs one step of the time makes: 4.2.12 with the choices
 * of docs/rtit/model.md. For an MTC's content see test-time.c.
 */
#include <stdio.h>

#include "tests/model/rtit/rig.h"

#define IN    0x401000
#define LIMIT 0x402000
#define OUT   0x300000

static const struct {
	u64 steps; /* changes of TSC[14:7] from 80H on */
	unsigned int packets;
} pushes[] = {
	{ 2, 2 },
	{ 255, 255 }, /* one less than a round */
	{ 256, 1 },   /* a round, as after a sleep: one MTC has all that 8 bits can hold */
	{ 256000 + 77, 1 },
};

/* Advancing the time sends this many MTCs, the last one with the last value. */
START_TEST(push)
{
	const u64 steps = pushes[_i].steps;
	const unsigned int packets = pushes[_i].packets;
	char want[40];
	const char *text, *last;
	unsigned int n = 0;

	tsc(0x80);
	on(BOTH | MTC_EN);
	tsc(0x80 + steps * 0x80);
	text = rig_text();
	for (last = text; last; last = strstr(last + 1, "MTC"))
		n++;
	ck_assert_uint_eq(n, packets);
	last = strrchr(text, ',');
	snprintf(want, sizeof(want), "MTC 0:%02x", (unsigned int)(1 + steps) & 0xff);
	ck_assert_str_eq(last ? last + 2 : text, want);
	snprintf(want, sizeof(want), "MTC 0:%02x",
		 packets == 1 ? (unsigned int)(1 + steps) & 0xff : 2);
	ck_assert_int_eq(strncmp(text, want, strlen(want)), 0);
}
END_TEST

/* Nothing changed: the new range is another counter. */
START_TEST(another_range)
{
	tsc(0x1234);
	on(BOTH | MTC_EN);
	tsc(0x1280);
	expect("MTC 0:25");
	ctl_set(MTC_RANGE(1));
	tsc(0x13ff);
	expect_nothing;
	tsc(0x1400);
	expect("MTC 1:0a");
	ctl_clear(MTC_RANGE(3));
	tsc(0x147f);
	expect_nothing;
	tsc(0x1480);
	expect("MTC 0:29");
}
END_TEST

/* While MTCs are off, none are kept for later. */
START_TEST(off_and_on)
{
	tsc(0x1234);
	on(BOTH | MTC_EN);
	tsc(0x1280);
	expect("MTC 0:25");
	ctl_clear(MTC_EN);
	tsc(0x1410);
	expect_nothing;
	ctl_set(MTC_EN);
	tsc(0x147f);
	expect_nothing;
	tsc(0x1480);
	expect("MTC 0:29");
}
END_TEST

START_TEST(filtered)
{
	range0(IN, LIMIT);
	wr(EVENTS, EVENT(RANGE0, NEVER));
	tsc(0x1234);
	wr_at(CTL, BOTH | DEST | TRACE_EN | MTC_EN | LESS_PKTS, OUT);
	wr_at(CTL, BOTH | DEST | TRACE_EN | MTC_EN | LESS_PKTS | TRACE_ACTIVE, OUT);
	jmp(OUT + 5, IN);
	tsc(0x1280);
	expect("PSB, FUP.PGE 401000, MTC 0:25");
	jmp(IN + 5, OUT);
	tsc(0x1410);
	jmp(OUT + 5, IN);
	tsc(0x147f);
	expect("FUP.PGD 401005, FUP.PGE 401000");
	tsc(0x1480);
	expect("MTC 0:29");
}
END_TEST

/* TriggerEn restarts it, too. */
START_TEST(disabled)
{
	tsc(0x1234);
	on(BOTH | MTC_EN);
	tsc(0x1280);
	expect("MTC 0:25");
	ctl_clear(TRACE_ACTIVE);
	tsc(0x1410);
	ctl_set(TRACE_ACTIVE);
	expect("PSB, FUP.PGE 600000");
	tsc(0x147f);
	expect_nothing;
	tsc(0x1480);
	expect("MTC 0:29");
}
END_TEST

RIG_TABLE_SUITE("mtc", push, VMPT_ARRAY_SIZE(pushes), another_range, off_and_on, filtered, disabled)
