// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * An RTIT unit whose sink refuses for a while: what stays pending, what is lost, and the order of
 * the rest (4.2.5, and the choices of docs/rtit/model.md).
 */
#include "tests/model/rtit/rig.h"

#define IN 0x401000

static bool overflowed(void)
{
	return status() & BUFFER_OVERFLOW;
}

/* TIPs that cannot be compressed, until the buffer overflows. */
static void fill(void)
{
	unsigned int i;

	rig.refuse = -VMPT_E_IO;
	for (i = 0; i < 1000 && !overflowed(); i++)
		jmp_ind(IN + 2, i & 1 ? 0x111122223333 : 0x555566667777);
	ck_assert(overflowed());
}

static const char *expect_end(const char *tail)
{
	const char *text = rig_text();
	size_t len = strlen(text), n = strlen(tail);

	ck_assert_uint_gt(len, n + 16);
	ck_assert_str_eq(text + len - n, tail);
	return text;
}

/* What was sent ends with @tail, after a TIP that fits. */
static void expect_tail(const char *tail)
{
	ck_assert_int_eq(strncmp(expect_end(tail), "TIP 555566667777", 16), 0);
}

static bool ends_with_tip(void)
{
	const char *last = strrchr(rig_text(), ',');

	return last && !strncmp(last, ", TIP ", 6);
}

static void off_and_on(void)
{
	ctl_clear(TRACE_ACTIVE);
	ctl_set(TRACE_ACTIVE);
}

static void resolve(u64 ip)
{
	vmpt_rtit_unit_overflow_resolve(&rig.unit, ip);
}

/* "until the RTIT buffer has completely drained" */
START_TEST(not_resolved_before_drained)
{
	on(BOTH);
	fill();
	resolve(0x2000);
	ck_assert(overflowed());
	rig.refuse = 0;
	resolve(0x3000);
	ck_assert(!overflowed());
	expect_tail(", FUP.BuffOvf 3000");
}
END_TEST

/* The same where there would be room for the FUP.BuffOvf. */
START_TEST(not_resolved_with_room)
{
	on(BOTH);
	rig.refuse = -VMPT_E_IO;
	jmp_ind(IN + 2, 0x5000);
	wr(STATUS, FILTER_EN | BUFFER_OVERFLOW);
	resolve(0x2000);
	ck_assert(overflowed());
	rig.refuse = 0;
	resolve(0x3000);
	ck_assert(!overflowed());
	expect("TIP 5000, FUP.BuffOvf 3000");
}
END_TEST

/* The PSB of TriggerEn waits for room, and comes before the FUP.BuffOvf. */
START_TEST(psb_held)
{
	on(BOTH);
	fill();
	off_and_on();
	rig.refuse = 0;
	resolve(0x3000);
	expect_tail(", PSB, FUP.BuffOvf 3000");
	jmp_ind(IN + 2, 0x5000);
	expect("TIP 5000");
}
END_TEST

/* Software ends the overflow: no FUP.BuffOvf, but that PSB. */
START_TEST(psb_held_status_cleared)
{
	on(BOTH);
	fill();
	off_and_on();
	rig.refuse = 0;
	wr(STATUS, FILTER_EN);
	expect_tail(", PSB");
}
END_TEST

/* The same with TriggerEn 0: nothing is sent any more, and the next PSB is that of TriggerEn. */
START_TEST(psb_held_trigger_off)
{
	on(BOTH);
	fill();
	off_and_on();
	ctl_clear(TRACE_ACTIVE);
	rig.refuse = 0;
	wr(STATUS, FILTER_EN);
	ck_assert(ends_with_tip());
	ctl_set(TRACE_ACTIVE);
	expect("PSB, FUP.PGE 600000");
}
END_TEST

/* The FUP.PGE of the same write comes after that PSB (4.2.1: it is TriggerEn's). */
START_TEST(psb_held_status_enables)
{
	on(BOTH);
	fill();
	wr(EVENTS, EVENT(RANGE0, NEVER));
	wr(STATUS, BUFFER_OVERFLOW);
	off_and_on();
	rig.refuse = 0;
	wr_at(STATUS, FILTER_EN, 0x9010);
	expect_tail(", PSB, FUP.PGE 9010");
}
END_TEST

/* Still no room: the PSB begins another overflow and waits in it. */
START_TEST(psb_held_still_no_room)
{
	on(BOTH);
	fill();
	off_and_on();
	wr(STATUS, FILTER_EN);
	ck_assert(overflowed());
	jmp_ind(IN + 2, 0x5000);
	rig.refuse = 0;
	resolve(0x3000);
	expect_tail(", PSB, FUP.BuffOvf 3000");
}
END_TEST

/* No room and no overflow: that PSB begins one (4.2.5), it is not lost (3.3.2). */
START_TEST(psb_no_room)
{
	unsigned int i;

	wr(EVENTS, EVENT(RANGE0, NEVER));
	range0(0x9000, 0x9100);
	on(BOTH | MTC_EN);
	jmp(IN + 2, 0x9000);
	rig_skip();
	rig.refuse = -VMPT_E_IO;
	/* The FUP.PGD, 3 bytes too, is the last that fits. */
	for (i = 0; rig.unit.used + VMPT_RTIT_SIZE_MAX + 3 <= VMPT_RTIT_UNIT_BUFFER; i++)
		jmp_ind(0x9002, i & 1 ? 0x9010 : 0x9020);
	jmp(0x9002, 0x2000);
	ctl_clear(TRACE_ACTIVE);
	wr(STATUS, 0);
	ck_assert(!overflowed());
	ctl_set(TRACE_ACTIVE);
	ck_assert(overflowed());
	rig.refuse = 0;
	tsc(0x80); /* MTCs are lost in it, not sent before the PSB */
	resolve(0x3000);
	tsc(0x100);
	jmp(0x3002, 0x9030);
	expect_end(", FUP.PGD 9002, PSB, FUP.BuffOvf 3000, MTC 0:02, FUP.PGE 9030");
}
END_TEST

/* E4's TraceSTOP needs room too. */
START_TEST(e4_no_room)
{
	rig_erratum(4);
	wr(EVENTS, EVENT(ALWAYS, RANGE1));
	range1(0x9000, 0x9100);
	on(BOTH);
	fill();
	jmp(IN + 2, 0x9000);
	rig.refuse = 0;
	resolve(0x3000);
	expect_tail(", FUP.BuffOvf 3000");
	ck_assert_uint_ne(rd(CTL) & TRACE_ACTIVE, 0);
}
END_TEST

/* ---- a sink that refuses in the middle ---- */

static int (*rig_write)(void *opaque, u64 pa, const u8 *bytes, size_t len);
static unsigned int calls;

static int first_only(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	return calls++ ? -VMPT_E_IO : rig_write(opaque, pa, bytes, len);
}

START_TEST(refused_after_the_wrap)
{
	unsigned int i;

	wr(LIMIT_MASK, 0x7f);
	on(BOTH);
	rig_write = rig.sink.write;
	rig.sink.write = first_only;
	for (i = 0; i < 20; i++) /* 7 bytes each */
		jmp_ind(IN + 2, i & 1 ? 0x111122223333 : 0x555566667777);
	ck_assert_int_eq(vmpt_rtit_unit_drain(&rig.unit), -VMPT_E_IO);
	ck_assert_uint_eq(calls, 2);
	ck_assert_uint_eq(rd(OFFSET), 0);
	rig.sink.write = rig_write;
	jmp_ind(IN + 2, 0x8000);
	expect("TIP 555566667777, TIP 111122223333, TIP 555566667777, TIP 111122223333, "
	       "TIP 555566667777, TIP 111122223333, TIP 555566667777, TIP 111122223333, "
	       "TIP 555566667777, TIP 111122223333, TIP 555566667777, TIP 111122223333, "
	       "TIP 555566667777, TIP 111122223333, TIP 555566667777, TIP 111122223333, "
	       "TIP 555566667777, TIP 111122223333, TIP 555566667777, TIP 111122223333, "
	       "TIP 8000");
}
END_TEST

RIG_SUITE("no-room", not_resolved_before_drained, not_resolved_with_room, psb_held,
	  psb_held_status_cleared, psb_held_trigger_off, psb_held_status_enables,
	  psb_held_still_no_room, psb_no_room, e4_no_room, refused_after_the_wrap)
