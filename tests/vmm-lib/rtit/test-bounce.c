// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/rtit/output.c: a bounce buffer that wraps before it is copied, missing guest memory, and
 * the bound on the work of one call.
 */
#include "tests/vmm-lib/rtit/rig.h"

static struct rig rig;

static void start(enum vmpt_rtit_output output, u32 bounce)
{
	rig_init(&rig, output, bounce);
}

static void teardown(void)
{
	rig_free(&rig);
}

static void load(void)
{
	ck_assert_int_eq(vmpt_rtit_vcpu_load(&rig.v), 0);
}

static void sync(void)
{
	ck_assert_int_eq(vmpt_rtit_vcpu_sync(&rig.v), 0);
}

/* @n TIPs of 3 bytes whose LIP counts up: "b4 LL LL"; they begin at @first. */
static void tips(u32 first, u32 n)
{
	u32 i;

	rig_enter(&rig, 0x8000);
	for (i = first; i < first + n; i++)
		vmpt_rtit_unit_jmp_indirect(&rig.unit, 0x8002, i & 0xffff);
	rig_exit(&rig, 0x8000);
}

/*
 * The longest runs of FFH in a legal trace: in cycle accurate mode FUP.PCCs with LIP
 * FFFF_FFFF_FFFFH and the largest count, 9 such bytes after a header. Each is followed by a TIP
 * that counts up, so that no LIP is compressed; the first tnts have a TNT of one byte before them.
 */
static u32 tnts;

static void wide(u32 first, u32 n)
{
	u32 i;

	rig_enter(&rig, 0x8000);
	for (i = first; i < first + n; i++) {
		if (i < tnts)
			vmpt_rtit_unit_jcc(&rig.unit, true, 0x8002, 0x8010);
		rig_time(&rig, 0x3fffff);
		vmpt_rtit_unit_jmp_indirect(&rig.unit, 0xffffffffffff, i & 0xffff);
	}
	rig_exit(&rig, 0x8000);
}

/* ---- more than the bounce buffer holds ---- */

/* What the guest's memory would hold if the processor had written there itself. */
static void as_direct(u32 bounce, u64 mask, u32 n, void (*run)(u32 first, u32 n), u64 ctl)
{
	static u8 direct[0x10000], copied[0x10000];
	u64 offset;
	int pass;

	for (pass = 0; pass < 2; pass++) {
		if (pass)
			start(VMPT_RTIT_BOUNCE, bounce);
		else
			start(VMPT_RTIT_CONTIGUOUS, 0);
		rig_program(&rig, 0x20000, mask, RIG_ON | ctl);
		rig_wr(&rig, 0x772, 0x123);
		load();
		run(0, 7);
		sync();
		run(7, n);
		sync();
		if (!pass)
			offset = rig_rd(&rig, 0x772);
		else
			ck_assert_uint_eq(rig_rd(&rig, 0x772), offset);
		rig_get(&rig, 0x20000, pass ? copied : direct, mask + 1);
		/* And on after it */
		tips(n, 3);
		sync();
		ck_assert_uint_eq(rig.v.lost, 0);
		rig_free(&rig);
	}
	ck_assert_msg(!memcmp(direct, copied, mask + 1), "%u TIPs", n);
}

/*
 * As large as the guest's buffer: nothing is lost that the guest would have had, wherever the
 * processor stops, including everywhere around the mark.
 */
START_TEST(overrun_large)
{
	u32 n;

	for (n = 60; n < 100; n++) {
		as_direct(256, 0xff, n, tips, 0);
		as_direct(512, 0xff, n + 80, tips, 0);
		as_direct(256, 0x7f, 5 * n, tips, 0);
	}
	as_direct(4096, 0xfff, 1359, tips, 0);
	as_direct(4096, 0xfff, 30000, tips, 0);
	start(VMPT_RTIT_CONTIGUOUS, 0); /* for teardown */
}
END_TEST

/*
 * The mark is longer than any of them: a wrap that writes FFH over it is detected, wherever in it
 * the processor stops and wherever a packet ends.
 */
START_TEST(overrun_of_ones)
{
	u32 n;

	tnts = 7 + (u32)_i;
	for (n = 14; n < 22; n++)
		as_direct(256, 0xff, n, wide, VMPT_RTIT_CTL_CYCLE_ACC);
	start(VMPT_RTIT_CONTIGUOUS, 0); /* for teardown */
}
END_TEST

/* Smaller: the rest begins with a PSB, or there is none and all is dropped; it is reported. */
START_TEST(overrun_small)
{
	u8 buf[16];
	u64 offset;

	start(VMPT_RTIT_BOUNCE, 4096);
	rig_program(&rig, 0x20000, 0xffff, RIG_ON);
	rig_wr(&rig, 0x77c, 0); /* a PSB every 2 KiB */
	load();
	sync();
	offset = rig_rd(&rig, 0x772);
	tips(0, 3000);
	sync();
	ck_assert_uint_eq(rig.v.events, VMPT_RTIT_EVENT_LOST);
	ck_assert_uint_gt(rig.v.lost, 0);
	rig_get(&rig, 0x20000 + offset, buf, 12);
	ck_assert(buf[0] == 0xc0 && !buf[1] && !buf[8] && buf[9] == 0xb4);
	ck_assert_uint_gt(rig.v.regs.offset, offset + 1000);
	ck_assert_uint_le(rig.v.regs.offset, offset + 4096);
	/* No PSB in it */
	rig_wr(&rig, 0x77c, 0x30000);
	offset = rig.v.regs.offset;
	rig.v.lost = 0;
	tips(0, 2000);
	sync();
	ck_assert_uint_eq(rig.v.lost, 3 + 6000 + 3);
	ck_assert_uint_eq(rig.v.regs.offset, offset);
	/* And on: packets from now on are whole. */
	tips(0x77, 1);
	sync();
	rig_get(&rig, 0x20000 + offset, buf, 9);
	ck_assert(!memcmp(buf, "\x84\x00\x80\xb4\x77\x00\x8c\x00\x80", 9));
}
END_TEST

/* ---- missing guest memory ---- */

START_TEST(dropped)
{
	u8 buf[4];

	start(VMPT_RTIT_BOUNCE, 4096);
	guest_set_kind(&rig.guest, 0x11, 1, VMPT_MEM_UNBACKED);
	rig_program(&rig, 0x10000, 0x3fff, RIG_ON);
	rig_wr(&rig, 0x772, 0x1000 - 10);
	load();
	tips(0x55, 400);
	sync();
	/* 10 bytes before it, a missing page, no more than that */
	ck_assert_uint_eq(rig_rd(&rig, 0x772), 0xff6 + 9 + 3 + 1200 + 3);
	ck_assert_uint_eq(rig.v.lost, 9 + 3 + 1200 + 3 - 10);
	ck_assert_uint_eq(rig.v.events, VMPT_RTIT_EVENT_LOST);
	rig_get(&rig, 0x10ff6, buf, 1);
	ck_assert_uint_eq(buf[0], 0xc0);
}
END_TEST

START_TEST(retried)
{
	struct vmpt_rtit_cr_write w = { 0x1000, true, true };
	u64 value;
	u8 buf[3];

	start(VMPT_RTIT_BOUNCE, 4096);
	rig.config.on_unbacked = VMPT_ON_MEM_RETRY;
	rig_again(&rig);
	guest_set_kind(&rig.guest, 0x11, 1, VMPT_MEM_UNBACKED);
	rig_program(&rig, 0x10000, 0x3fff, RIG_ON);
	rig_wr(&rig, 0x772, 0x1000 - 10);
	load();
	tips(0x55, 400);
	ck_assert_int_eq(vmpt_rtit_vcpu_sync(&rig.v), -VMPT_E_RETRY);
	ck_assert_uint_eq(rig.v.regs.offset, 0x1000); /* as far as it went */
	ck_assert_int_eq(vmpt_rtit_vcpu_rdmsr(&rig.v, 0x772, false, &value), -VMPT_E_RETRY);
	ck_assert_int_eq(vmpt_rtit_vcpu_wrmsr(&rig.v, 0x772, 0), -VMPT_E_RETRY);
	ck_assert_int_eq(vmpt_rtit_vcpu_wrmsr(&rig.v, 0x768, RIG_CTL), -VMPT_E_RETRY);
	ck_assert_int_eq(vmpt_rtit_vcpu_cr_write(&rig.v, &w), -VMPT_E_RETRY);
	ck_assert_uint_eq(rig.v.regs.ctl, RIG_ON);
	/* Unloaded all the same; not loaded again before it is copied. */
	ck_assert_int_eq(vmpt_rtit_vcpu_unload(&rig.v), -VMPT_E_RETRY);
	ck_assert(!rig.v.loaded);
	ck_assert_int_eq(vmpt_rtit_vcpu_load(&rig.v), -VMPT_E_RETRY);
	ck_assert_int_eq(vmpt_rtit_vcpu_wrmsr(&rig.v, 0x770, 0), -VMPT_E_RETRY);
	ck_assert_int_eq(vmpt_rtit_vcpu_cr_write(&rig.v, &w), -VMPT_E_RETRY);
	guest_set_kind(&rig.guest, 0x11, 1, VMPT_MEM_OK);
	sync();
	ck_assert_uint_eq(rig_rd(&rig, 0x772), 0xff6 + 9 + 3 + 1200 + 3);
	rig_get(&rig, 0x11000 - 10 + 12 + 3 * 399, buf, 3);
	ck_assert(buf[0] == 0xb4 && buf[1] == (u8)(0x55 + 399) && buf[2] == (0x55 + 399) >> 8);
	ck_assert_uint_eq(rig.v.lost, 0);
	load();
}
END_TEST

/* While it waits the processor wraps: that is detected when there is memory again. */
START_TEST(retried_too_late)
{
	start(VMPT_RTIT_BOUNCE, 1024);
	rig.config.on_unbacked = VMPT_ON_MEM_RETRY;
	rig_again(&rig);
	rig_program(&rig, 0x10000, 0x3fff, RIG_ON);
	load();
	sync();
	guest_set_kind(&rig.guest, 0x10, 4, VMPT_MEM_UNBACKED);
	tips(0, 200);
	ck_assert_int_eq(vmpt_rtit_vcpu_sync(&rig.v), -VMPT_E_RETRY);
	tips(0, 100);
	ck_assert_int_eq(vmpt_rtit_vcpu_sync(&rig.v), -VMPT_E_RETRY);
	ck_assert_uint_eq(rig.v.lost, 0);
	tips(0, 100);
	/* No PSB is left: all is dropped, and nothing waits. */
	ck_assert_int_eq(vmpt_rtit_vcpu_sync(&rig.v), 0);
	ck_assert_uint_eq(rig.v.lost, (3 + 600 + 3) + 2 * (3 + 300 + 3));
	guest_set_kind(&rig.guest, 0x10, 4, VMPT_MEM_OK);
	tips(0, 1);
	sync();
	ck_assert_uint_eq(rig_rd(&rig, 0x772), 9 + 9);
}
END_TEST

/* Wrapped, and no memory yet: the rest waits unchanged, and is counted once. */
START_TEST(wrapped_and_retried)
{
	u8 want[256], got[256];
	u64 lost;
	int i, mask;

	for (mask = 0xff; mask <= 0xfff; mask += 0xf00) {
		start(VMPT_RTIT_BOUNCE, 256);
		rig.config.on_unbacked = VMPT_ON_MEM_RETRY;
		rig_again(&rig);
		rig_program(&rig, 0x10000, (u64)mask, RIG_ON);
		load();
		sync();
		guest_set_kind(&rig.guest, 0x10, 1, VMPT_MEM_UNBACKED);
		tips(0, 300);
		/* A PSB among the newest */
		rig_wr(&rig, 0x77c, 0x7ff);
		tips(0, 20);
		lost = 0;
		for (i = 0; i < 4; i++) {
			ck_assert_int_eq(vmpt_rtit_vcpu_sync(&rig.v), -VMPT_E_RETRY);
			ck_assert(!i || rig.v.lost == lost);
			lost = rig.v.lost;
			memcpy(want, rig.bounce, sizeof(want));
		}
		ck_assert(mask == 0xff ? !lost : lost > 100);
		guest_set_kind(&rig.guest, 0x10, 1, VMPT_MEM_OK);
		sync();
		rig_get(&rig, 0x10000, got, sizeof(got));
		if (mask == 0xff)
			ck_assert(rig_rd(&rig, 0x772) == (rig.unit.bytes & 0xff) &&
				  !memcmp(got, want, sizeof(got)));
		else
			ck_assert(got[9] == 0xc0 && got[18] == 0xb4);
		rig_free(&rig);
	}
	start(VMPT_RTIT_BOUNCE, 256); /* for teardown */
}
END_TEST

/* A new place while it traces: earlier output is at the old one. */
START_TEST(moved)
{
	u8 buf[9];

	start(VMPT_RTIT_BOUNCE, 1024);
	rig_program(&rig, 0x10000, 0xfff, RIG_ON);
	load();
	tips(0x11, 1);
	rig_wr(&rig, 0x770, 0x20000);
	ck_assert_uint_eq(rig_rd(&rig, 0x772), 18);
	rig_wr(&rig, 0x772, 0);
	tips(0x22, 1);
	sync();
	rig_get(&rig, 0x10000 + 9, buf, 9);
	ck_assert(!memcmp(buf, "\x84\x00\x80\xb4\x11\x00\x8c\x00\x80", 9));
	rig_get(&rig, 0x20000, buf, 9);
	ck_assert(!memcmp(buf, "\x84\x00\x80\xb4\x22\x00\x8c\x00\x80", 9));
}
END_TEST

/* ---- an OFFSET that no processor can have ---- */

/* It went back and nothing was overwritten: waiting bytes are dropped at once, and reported. */
START_TEST(offset_back)
{
	u32 waits;
	u8 buf[9];

	start(VMPT_RTIT_BOUNCE, 4096);
	rig.config.rewrite_clock = true;
	rig.config.on_unbacked = VMPT_ON_MEM_RETRY;
	rig_again(&rig);
	guest_set_kind(&rig.guest, 0x10, 1, VMPT_MEM_UNBACKED);
	rig_program(&rig, 0x10000, 0xfff, RIG_ON);
	load();
	tips(0, 50);
	ck_assert_int_eq(vmpt_rtit_vcpu_sync(&rig.v), -VMPT_E_RETRY);
	waits = 9 + 3 + 150 + 3;
	ck_assert_uint_eq(rig.v.used, waits);
	ck_assert_uint_eq(rig.v.events, 0);
	rig.fake_msr = 0x772;
	rig.fake_value = 20;
	sync();
	ck_assert_uint_eq(rig.v.events, VMPT_RTIT_EVENT_HARDWARE | VMPT_RTIT_EVENT_LOST);
	ck_assert_uint_eq(rig.v.lost, waits);
	ck_assert(!rig.v.used && !rig.v.unseen && rig.v.pos == 20);
	/* On from there: whether a packet begins there is unknown, so these are overwritten. */
	rig.fake_msr = 0;
	rig.unit.regs.offset = 20;
	guest_set_kind(&rig.guest, 0x10, 1, VMPT_MEM_OK);
	tips(0x77, 1);
	ck_assert_uint_eq(rig_rd(&rig, 0x772), 9);
	rig_get(&rig, 0x10000, buf, 9);
	ck_assert(!memcmp(buf, "\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd\xfd", 9));
	ck_assert_uint_eq(rig.v.lost, waits + 9);
}
END_TEST

/* It went forward: no byte of the host is leaked. */
START_TEST(offset_forward)
{
	static u8 got[4096];
	u32 i;

	start(VMPT_RTIT_BOUNCE, 4096);
	memset(rig.bounce, 0x5a, RIG_BOUNCE_MAX);
	rig_again(&rig);
	ck_assert(!rig.bounce[0] && !rig.bounce[4095] && rig.bounce[4096] == 0x5a);
	rig_program(&rig, 0x10000, 0xffff, RIG_ON);
	load();
	rig.fake_msr = 0x772;
	rig.fake_value = 4000;
	sync();
	rig_get(&rig, 0x10000, got, sizeof(got));
	for (i = 0; i < sizeof(got); i++)
		ck_assert(got[i] != 0x5a);
}
END_TEST

/* ---- how much work one call may be ---- */

START_TEST(bound)
{
	start(VMPT_RTIT_BOUNCE, RIG_BOUNCE_MAX);
	rig_program(&rig, 0x1fc0, 0x3fffff, RIG_ON);
	load();
	tips(0, 1398000);
	rig.guest.writes = 0;
	sync();
	ck_assert_uint_gt(rig.guest.writes, 1000);
	ck_assert_uint_le(rig.guest.writes, 1026);
	/* A mask that scatters: no more than its run */
	rig_wr(&rig, 0x771, 0x3ff03f);
	tips(0, 100000);
	rig.guest.writes = 0;
	sync();
	ck_assert_uint_le(rig.guest.writes, 3);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("rtit-bounce");
	TCase *tc = tcase_create("bounce");

	tcase_add_checked_fixture(tc, NULL, teardown);
	tcase_add_test(tc, overrun_large);
	tcase_add_loop_test(tc, overrun_of_ones, 0, 16);
	tcase_add_test(tc, overrun_small);
	tcase_add_test(tc, dropped);
	tcase_add_test(tc, retried);
	tcase_add_test(tc, retried_too_late);
	tcase_add_test(tc, wrapped_and_retried);
	tcase_add_test(tc, moved);
	tcase_add_test(tc, offset_back);
	tcase_add_test(tc, offset_forward);
	tcase_add_test(tc, bound);
	suite_add_tcase(suite, tc);
	return suite;
}
