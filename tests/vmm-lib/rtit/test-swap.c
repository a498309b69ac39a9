// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmm-lib/rtit/hw.c, rtit.c: loading and unloading the MSRs, and the order (3.3.2). */
#include "tests/vmm-lib/rtit/rig.h"

static struct rig rig;

static void setup(void)
{
	rig_init(&rig, VMPT_RTIT_CONTIGUOUS, 0);
}

static void teardown(void)
{
	rig_free(&rig);
}

static void expect_bytes(u64 gpa, const char *hex)
{
	rig_expect(&rig, gpa, hex);
}

#define PSB "c0 00 00 00 00 00 00 00 00"

static void load(void)
{
	ck_assert_int_eq(vmpt_rtit_vcpu_load(&rig.v), 0);
}

static void unload(void)
{
	ck_assert_int_eq(vmpt_rtit_vcpu_unload(&rig.v), 0);
}

/*
 * TraceActive last on, first off; CTL is read before everything else (3.3.1: the unit would fault).
 */
START_TEST(order_of_writes)
{
	u32 i, active = 0;

	rig_program(&rig, 0x10000, 0xffff, RIG_ON);
	rig_forget(&rig);
	load();
	ck_assert(rig.v.loaded && rig.v.path == VMPT_RTIT_PATH_DIRECT);
	for (i = 0; i < rig.logged; i++)
		if (rig.log[i].msr == 0x768 && rig.log[i].value & VMPT_RTIT_CTL_TRACE_ACTIVE)
			active = i;
	ck_assert_uint_eq(active, rig.logged - 1);
	ck_assert_uint_eq(rig.log[active - 1].msr, 0x768);
	ck_assert_uint_eq(rig.log[active - 1].value, RIG_CTL | VMPT_RTIT_CTL_TRACE_EN);
	/* All 15 others, then these two; CTL was 0, so nothing had to be stopped. */
	ck_assert_uint_eq(rig.logged, 17);
	/* The figure in docs/vmm-lib/rtit.md */
	ck_assert_uint_eq(rig.accesses, 34);
	rig_forget(&rig);
	unload();
	ck_assert_uint_eq(rig.accesses, 26);
	ck_assert_uint_eq(rig.log[0].msr, 0x768);
	ck_assert_uint_eq(rig.log[0].value, RIG_CTL | VMPT_RTIT_CTL_TRACE_EN);
	ck_assert_uint_eq(rig.log[1].msr, 0x768);
	ck_assert_uint_eq(rig.log[1].value, RIG_CTL);
	ck_assert_uint_eq(rig.log[rig.logged - 1].msr, 0x768);
	ck_assert_uint_eq(rig.log[rig.logged - 1].value, 0);
	ck_assert_uint_eq(rig.unit.regs.base_addr, VMPT_RTIT_RESET_BASE_ADDR);
}
END_TEST

/* Packets of a guest's first run: the load's PSB, the entry's FUP.PGE, the exit's FUP.PGD. */
START_TEST(first_run)
{
	rig_program(&rig, 0x10000, 0xffff, RIG_ON);
	load();
	rig_enter(&rig, 0x401000);
	vmpt_rtit_unit_jcc(&rig.unit, true, 0x401010, 0x401020);
	rig_exit(&rig, 0x401020);
	ck_assert_uint_eq(rig_rd(&rig, 0x772), 9 + 5 + 1 + 3);
	expect_bytes(0x10000, PSB " 85 00 10 40 00 03 88 20 10");
	unload();
	ck_assert_uint_eq(rig_rd(&rig, 0x772), 18);
	ck_assert_uint_eq(rig_rd(&rig, 0x76e), 0x100000040);
}
END_TEST

/* The last value that was written to @msr in the processor since rig_forget(). */
static u64 written(u32 msr)
{
	u32 i;

	for (i = rig.logged; i; i--)
		if (rig.log[i - 1].msr == msr)
			return rig.log[i - 1].value;
	ck_abort_msg("%x was not written", msr);
	return 0;
}

/*
 * The PSB of a load clears the compression in the processor; so the guest's LIPs after it are whole
 * or zero extended, whatever it had in LAST_LIP before.
 */
START_TEST(compression_after_a_load)
{
	u64 kernel = 0xffffffff81000000;

	rig_program(&rig, 0x10000, 0xffff, RIG_ON | VMPT_RTIT_CTL_CMPRS_RET);
	load();
	rig_enter(&rig, kernel);
	vmpt_rtit_unit_call(&rig.unit, kernel + 0x15, kernel + 0x100);
	rig_exit(&rig, kernel + 0x100);
	unload();
	/* PSB, FUP.PGE of 6 bytes, FUP.PGD of 2 */
	ck_assert_uint_eq(rig.v.regs.offset, 9 + 7 + 3);
	ck_assert_uint_eq(rig.v.regs.last_lip, 0x1ffff8100);
	ck_assert_uint_eq(rig.v.regs.last_call_nlip, 0x1ffff81000015);
	rig_forget(&rig);
	load();
	/* Also for a processor whose PSB here clears nothing (4.2.1) */
	ck_assert_uint_eq(written(0x76e), 0);
	ck_assert_uint_eq(written(0x76f), 0);
	rig_enter(&rig, kernel + 0x100);
	vmpt_rtit_unit_ret(&rig.unit, kernel + 0x101, kernel + 0x15);
	rig_exit(&rig, kernel + 0x15);
	unload();
	/* PSB, FUP.PGE, TIP: the RET is not compressed, FUP.PGD */
	expect_bytes(0x10000 + 19, PSB " 82 00 01 00 81 ff ff b0 15 00 88 15 00");
}
END_TEST

/* The same where a guest's output moves while it traces. */
START_TEST(compression_after_a_move)
{
	rig_program(&rig, 0x10000, 0xffff, RIG_ON);
	load();
	rig_enter(&rig, 0xffff81000000);
	rig_exit(&rig, 0xffff81000000);
	rig_forget(&rig);
	rig_wr(&rig, 0x770, 0x20000);
	ck_assert_uint_eq(written(0x76e), 0);
	ck_assert_uint_eq(written(0x76f), 0);
	expect_bytes(0x20000 + 9 + 7 + 3, PSB);
}
END_TEST

/* With TriggerEn = 0 there is no PSB, and the two are as the guest left them. */
START_TEST(no_psb_without_trigger)
{
	rig_program(&rig, 0x10000, 0xffff, RIG_CTL | VMPT_RTIT_CTL_TRACE_EN);
	rig_wr(&rig, 0x76e, 0x112345678);
	rig_wr(&rig, 0x76f, 0x1000000401005);
	load();
	ck_assert_uint_eq(rig.unit.regs.last_lip, 0x112345678);
	ck_assert_uint_eq(rig_rd(&rig, 0x76f), 0x1000000401005);
	ck_assert_uint_eq(rig.v.path, VMPT_RTIT_PATH_NONE);
	ck_assert_uint_eq(rig.unit.bytes, 0);
	unload();
	ck_assert_uint_eq(rig_rd(&rig, 0x76e), 0x112345678);
}
END_TEST

/* TNT_BUFF, CNTP, PKT_CNT, STATUS move with the guest, and are restored. */
START_TEST(state_goes_along)
{
	static const struct {
		u32 msr;
		u64 value;
	} rows[] = {
		{ 0x760, 0x1000 },  { 0x761, 0x3000 },
		{ 0x762, 0x2000 },  { 0x763, 0xffffffffffff },
		{ 0x769, 0x9 },	    { 0x76b, 0x2abcde },
		{ 0x76c, 0x3e },    { 0x777, 0xfffffffe0 },
		{ 0x77c, 0x31234 }, { 0x77d, 0x5 },
	};
	size_t i;

	rig_program(&rig, 0x10000, 0xffff, RIG_CTL);
	for (i = 0; i < VMPT_ARRAY_SIZE(rows); i++)
		rig_wr(&rig, rows[i].msr, rows[i].value);
	load();
	for (i = 0; i < VMPT_ARRAY_SIZE(rows); i++) {
		u64 value;

		ck_assert_int_eq(vmpt_rtit_unit_rdmsr(&rig.unit, rows[i].msr, &value), 0);
		if (rows[i].msr == 0x769) /* ContextEn, in root operation */
			ck_assert(!(value & VMPT_RTIT_STATUS_CONTEXT_EN));
		ck_assert_uint_eq(value, rows[i].value);
		ck_assert_uint_eq(rig_rd(&rig, rows[i].msr), rows[i].value);
	}
	rig.unit.regs.cntp = 7;
	rig.unit.regs.tnt_buff = 0x15;
	rig.unit.regs.pkt_cnt = 0x30007;
	rig.unit.regs.status = 0;
	unload();
	ck_assert_uint_eq(rig_rd(&rig, 0x76b), 7);
	ck_assert_uint_eq(rig_rd(&rig, 0x77d), 0x15);
	ck_assert_uint_eq(rig_rd(&rig, 0x77c), 0x30007);
	ck_assert_uint_eq(rig_rd(&rig, 0x769), 0);
	/* The processor's own again */
	ck_assert_uint_eq(rig.unit.regs.tnt_buff, 1);
	ck_assert_uint_eq(rig.unit.regs.pkt_cnt, 0x20000);
	ck_assert_uint_eq(rig.unit.regs.lip[3], 0);
}
END_TEST

/* The host's own tracing is stopped for the guest and resumes after it, with a PSB of its own. */
START_TEST(host_traces)
{
	struct vmpt_rtit_regs before;
	u8 zero[4096] = { 0 };

	rig_host_on(&rig, RIG_ON | VMPT_RTIT_CTL_CMPRS_RET);
	rig.unit.regs.last_lip = 0x1deadbeef;
	before = rig.unit.regs;
	ck_assert_uint_eq(before.offset, 9);
	rig_program(&rig, 0x10000, 0xffff, RIG_ON);
	load();
	rig_enter(&rig, 0x5000);
	vmpt_rtit_unit_jmp_indirect(&rig.unit, 0x5002, 0x6000);
	rig_exit(&rig, 0x6000);
	unload();
	ck_assert_uint_eq(rig.unit.regs.ctl, before.ctl);
	ck_assert_uint_eq(rig.unit.regs.offset, 18);
	ck_assert_uint_eq(rig.unit.regs.base_addr, RIG_HOST_HPA);
	ck_assert_uint_eq(rig.unit.regs.limit_mask, RIG_HOST_SIZE - 1);
	ck_assert_uint_eq(rig.unit.regs.last_lip, 0);
	ck_assert_uint_eq(rig.unit.regs.events, 0x37);
	ck_assert(!memcmp(rig.host + 9, rig.host, 9) && !memcmp(rig.host + 18, zero, 4096));
	/* What it traces now is its own. */
	rig_enter(&rig, 0x7000);
	rig_exit(&rig, 0x7000);
	vmpt_rtit_unit_drain(&rig.unit);
	ck_assert_uint_eq(rig.unit.regs.offset, 18 + 3 + 3);
}
END_TEST

/*
 * An NMI handler of the host that sets Trace_En again: do not enter, and the host continues to
 * trace.
 */
START_TEST(host_does_not_stop)
{
	rig_host_on(&rig, RIG_ON | VMPT_RTIT_CTL_CMPRS_RET);
	rig.unit.regs.last_lip = 0x1deadbeef;
	rig.unit.regs.last_call_nlip = 0x1000000401005;
	rig_program(&rig, 0x10000, 0xffff, RIG_ON);
	rig.host_again = true;
	rig_forget(&rig);
	ck_assert_int_eq(vmpt_rtit_vcpu_load(&rig.v), -VMPT_E_HOST_TRACING);
	ck_assert(!rig.v.loaded && !rig.pins[0x10]);
	ck_assert_uint_eq(rig.unit.regs.ctl, RIG_ON | VMPT_RTIT_CTL_CMPRS_RET);
	ck_assert_uint_eq(rig.unit.regs.base_addr, RIG_HOST_HPA);
	/* Before its PSB, also for a processor whose PSB here clears nothing (4.2.1) */
	ck_assert_uint_eq(written(0x76e), 0);
	ck_assert_uint_eq(written(0x76f), 0);
	rig_enter(&rig, 0x7000);
	rig_exit(&rig, 0x7000);
	vmpt_rtit_unit_drain(&rig.unit);
	ck_assert_uint_eq(rig.unit.regs.offset, 9 + 9 + 3 + 3);
}
END_TEST

/*
 * It sets both bits, or Trace_En though the host did not trace: that is its own decision, and
 * stands.
 */
START_TEST(host_starts_anew)
{
	u64 own = _i ? VMPT_RTIT_CTL_TRIGGER | VMPT_RTIT_CTL_CMPRS_RET : VMPT_RTIT_CTL_TRACE_EN;

	if (_i)
		rig_host_on(&rig, RIG_ON);
	rig_program(&rig, 0x10000, 0xffff, RIG_ON);
	rig_forget(&rig);
	rig.fake_msr = 0x768;
	rig.fake_value = RIG_CTL | own;
	rig.fake_from = 2;
	ck_assert_int_eq(vmpt_rtit_vcpu_load(&rig.v), -VMPT_E_HOST_TRACING);
	ck_assert_uint_eq(rig.logged, _i ? 2 : 0); /* those of the stop */
}
END_TEST

/* The processor fails while the host's MSRs are saved: the host continues to trace as well. */
START_TEST(host_cannot_be_saved)
{
	rig_host_on(&rig, RIG_ON);
	rig.unit.regs.last_lip = 0x1deadbeef;
	rig_program(&rig, 0x10000, 0xffff, RIG_ON);
	rig_forget(&rig);
	rig.fail_at = 10;
	ck_assert_int_eq(vmpt_rtit_vcpu_load(&rig.v), -VMPT_E_HARDWARE);
	ck_assert_uint_eq(rig.unit.regs.ctl, RIG_ON);
	ck_assert_uint_eq(written(0x76e), 0);
	ck_assert_uint_eq(written(0x76f), 0);
	ck_assert_uint_eq(rig.logged, 2 + 2 + 2);
}
END_TEST

START_TEST(wrong_calls)
{
	u8 buf[VMPT_RTIT_STATE_MAX];

	ck_assert_int_eq(vmpt_rtit_vcpu_unload(&rig.v), -VMPT_E_STATE);
	load();
	ck_assert_int_eq(vmpt_rtit_vcpu_load(&rig.v), -VMPT_E_STATE);
	ck_assert_int_eq(vmpt_rtit_vcpu_reset(&rig.v), -VMPT_E_STATE);
	ck_assert_int_eq(vmpt_rtit_vcpu_save(&rig.v, buf, sizeof(buf)), -VMPT_E_STATE);
	ck_assert_int_eq(vmpt_rtit_vcpu_restore(&rig.v, buf, 0, NULL), -VMPT_E_STATE);
	unload();
	rig.ops.hw_rdmsr = NULL;
	rig.ops.hw_wrmsr = NULL;
	rig_again(&rig);
	ck_assert_int_eq(vmpt_rtit_vcpu_load(&rig.v), -VMPT_E_INVAL);
}
END_TEST

/* ---- the guest's MSRs while they are loaded ---- */

/* Both bits in one write, and TraceActive alone: "undefined behavior may result", never for the
 * processor. */
START_TEST(guest_order)
{
	rig_program(&rig, 0x10000, 0xffff, RIG_CTL);
	load();
	rig_wr(&rig, 0x768, RIG_ON);
	ck_assert_uint_eq(rig.unit.regs.ctl, RIG_ON);
	ck_assert_uint_eq(rig_rd(&rig, 0x769) & VMPT_RTIT_STATUS_TRIGGER_EN,
			  VMPT_RTIT_STATUS_TRIGGER_EN);
	/* The write has drained: the guest sees its PSB. */
	expect_bytes(0x10000, PSB);
	ck_assert_uint_eq(rig_rd(&rig, 0x772), 9);
	rig_wr(&rig, 0x768, RIG_CTL);
	ck_assert_uint_eq(rig.unit.regs.ctl, RIG_CTL);
	rig_wr(&rig, 0x768, RIG_CTL | VMPT_RTIT_CTL_TRACE_ACTIVE);
	ck_assert_uint_eq(rig.unit.regs.ctl, RIG_CTL);
	ck_assert_uint_eq(rig_rd(&rig, 0x768), RIG_CTL | VMPT_RTIT_CTL_TRACE_ACTIVE);
	ck_assert(!vmpt_rtit_vcpu_wanted(&rig.v));
	rig_wr(&rig, 0x768, RIG_ON);
	ck_assert_uint_eq(rig_rd(&rig, 0x772), 18);
	/* Other bits, while it continues: one write, no PSB. */
	rig_forget(&rig);
	rig_wr(&rig, 0x768, RIG_ON & ~VMPT_RTIT_CTL_OS);
	ck_assert_uint_eq(rig_rd(&rig, 0x772), 18);
	ck_assert_uint_eq(rig.unit.regs.ctl, RIG_ON & ~VMPT_RTIT_CTL_OS);
}
END_TEST

/* A TraceStop clears TraceActive in the processor; later writes do not set it again. */
START_TEST(trace_stop)
{
	rig_program(&rig, 0x10000, 0xffff, RIG_ON);
	rig_wr(&rig, 0x760, 0x9000);
	rig_wr(&rig, 0x762, 0x9100);
	rig_wr(&rig, 0x76c, 0x07);
	load();
	rig_enter(&rig, 0x8000);
	vmpt_rtit_unit_jcc(&rig.unit, true, 0x8002, 0x8010);
	vmpt_rtit_unit_jmp(&rig.unit, 0x8015, 0x9000);
	ck_assert(!rig.unit.trigger_en);
	rig_exit(&rig, 0x9000);
	ck_assert_int_eq(vmpt_rtit_vcpu_quiet(&rig.v, true), 0);
	ck_assert_int_eq(vmpt_rtit_vcpu_sync(&rig.v), 0);
	ck_assert_int_eq(vmpt_rtit_vcpu_quiet(&rig.v, false), 0);
	rig_wr(&rig, 0x76b, 5);
	rig_wr(&rig, 0x772, 0x100);
	ck_assert_uint_eq(rig_rd(&rig, 0x768), RIG_CTL | VMPT_RTIT_CTL_TRACE_EN);
	ck_assert_uint_eq(rig_rd(&rig, 0x769), 0);
	ck_assert_uint_eq(rig_rd(&rig, 0x77d), 3); /* "not drained on a TraceStop" */
	ck_assert_uint_eq(rig.unit.bytes, 9 + 3 + 1);
	unload();
	ck_assert_uint_eq(rig_rd(&rig, 0x768), RIG_CTL | VMPT_RTIT_CTL_TRACE_EN);
	ck_assert_uint_eq(rig_rd(&rig, 0x77d), 3);
	load();
	ck_assert_uint_eq(rig.unit.bytes, 13);
	expect_bytes(0x10009, "84 00 80 c1");
}
END_TEST

/* With MTCs, where being quiet is a write of CTL; or the guest reads STATUS first. */
START_TEST(trace_stop_seen_first)
{
	u64 bytes, value;

	rig_program(&rig, 0x10000, 0xffff, RIG_ON | VMPT_RTIT_CTL_MTC_EN);
	rig_wr(&rig, 0x762, 0x9100);
	rig_wr(&rig, 0x76c, 0x07);
	load();
	rig_enter(&rig, 0xa000);
	vmpt_rtit_unit_jmp(&rig.unit, 0xa005, 0x9000);
	rig_exit(&rig, 0x9000);
	ck_assert(!rig.unit.trigger_en);
	vmpt_rtit_unit_drain(&rig.unit);
	bytes = rig.unit.bytes;
	if (_i)
		ck_assert_int_eq(vmpt_rtit_vcpu_quiet(&rig.v, true), 0);
	ck_assert_int_eq(vmpt_rtit_vcpu_rdmsr(&rig.v, 0x769, true, &value), 0);
	ck_assert_uint_eq(value & VMPT_RTIT_STATUS_TRIGGER_EN, 0);
	ck_assert_int_eq(vmpt_rtit_vcpu_quiet(&rig.v, false), 0);
	ck_assert(!rig.unit.trigger_en);
	ck_assert_uint_eq(rig.unit.bytes, bytes);
}
END_TEST

/* The same, detected only at the unload. */
START_TEST(trace_stop_at_unload)
{
	rig_program(&rig, 0x10000, 0xffff, RIG_ON);
	rig_wr(&rig, 0x762, 0x9100);
	rig_wr(&rig, 0x76c, 0x07);
	load();
	rig_enter(&rig, 0xa000);
	vmpt_rtit_unit_jmp(&rig.unit, 0xa005, 0x9000);
	rig_exit(&rig, 0x9000);
	unload();
	ck_assert_uint_eq(rig_rd(&rig, 0x768), RIG_CTL | VMPT_RTIT_CTL_TRACE_EN);
}
END_TEST

/* The guest's next exit is a WRMSR of something else. */
START_TEST(trace_stop_then_write)
{
	static const struct {
		u32 msr;
		u64 value;
	} rows[] = { { 0x770, 0x20000 }, { 0x771, 0xfff }, { 0x772, 0 }, { 0x76b, 1 } };

	rig_program(&rig, 0x10000, 0xffff, RIG_ON);
	rig_wr(&rig, 0x762, 0x9100);
	rig_wr(&rig, 0x76c, 0x07);
	load();
	rig_enter(&rig, 0xa000);
	vmpt_rtit_unit_jmp(&rig.unit, 0xa005, 0x9000);
	rig_exit(&rig, 0x9000);
	rig_wr(&rig, rows[_i].msr, rows[_i].value);
	ck_assert_uint_eq(rig_rd(&rig, 0x768), RIG_CTL | VMPT_RTIT_CTL_TRACE_EN);
	ck_assert(!rig.unit.trigger_en);
}
END_TEST

/* Reserved event IDs are stored for the guest, and are "always off" in the processor. */
START_TEST(reserved_events)
{
	u64 id;

	load();
	for (id = 0; id < 64; id++) {
		u64 filter = id & 7, stop = id >> 3;

		rig_wr(&rig, 0x76c, id);
		ck_assert_uint_eq(rig_rd(&rig, 0x76c), id);
		filter = filter >= 3 && filter <= 5 ? 6 : filter;
		stop = stop >= 3 && stop <= 5 ? 6 : stop;
		ck_assert_uint_eq(rig.unit.regs.events, stop << 3 | filter);
	}
}
END_TEST

/* An overflow that waits moves with the guest and ends where one of its instructions begins. */
START_TEST(overflow)
{
	rig_program(&rig, 0x10000, 0xffff, RIG_ON);
	load();
	rig_enter(&rig, 0x1000);
	vmpt_rtit_unit_jcc(&rig.unit, false, 0x1002, 0x1010);
	vmpt_rtit_unit_overflow(&rig.unit);
	vmpt_rtit_unit_jmp_indirect(&rig.unit, 0x1004, 0x2000);
	rig_exit(&rig, 0x2000);
	unload();
	ck_assert_uint_eq(rig_rd(&rig, 0x769) & 8, 8);
	ck_assert(!(rig.unit.regs.status & 8));
	load();
	rig_enter(&rig, 0x2000);
	vmpt_rtit_unit_overflow_resolve(&rig.unit, 0x2002);
	rig_exit(&rig, 0x2002);
	ck_assert_uint_eq(rig_rd(&rig, 0x769) & 8, 0);
	/*
	 * PSB, FUP.PGE; then the load's, the TNT, FUP.BuffOvf, FUP.PGD. As without a swap, except
	 * for the second PSB.
	 */
	ck_assert_int_eq(vmpt_rtit_vcpu_sync(&rig.v), 0);
	expect_bytes(0x10000, PSB " 84 00 10");
	ck_assert_uint_eq(rig_rd(&rig, 0x772), 12 + 9 + 1 + 3 + 3);
}
END_TEST

/* ---- time in root operation ---- */

static u64 mtcs_of_root(bool quiet)
{
	u64 before, after;

	before = rig_rd(&rig, 0x772);
	ck_assert_int_eq(vmpt_rtit_vcpu_quiet(&rig.v, quiet), 0);
	rig_time(&rig, 10 * 128);
	ck_assert_int_eq(vmpt_rtit_vcpu_quiet(&rig.v, false), 0);
	after = rig_rd(&rig, 0x772);
	return after - before;
}

START_TEST(quiet)
{
	u64 mtc = RIG_ON | VMPT_RTIT_CTL_MTC_EN;

	rig_program(&rig, 0x10000, 0xffff, mtc);
	load();
	ck_assert_uint_eq(mtcs_of_root(false), 20);
	ck_assert_uint_eq(mtcs_of_root(true), 0);
	ck_assert_uint_eq(rig_rd(&rig, 0x768), mtc);
	ck_assert_uint_eq(rig.unit.regs.ctl, mtc);
	/* It persists across a swap: set in root operation, cleared before the entry. */
	ck_assert_int_eq(vmpt_rtit_vcpu_quiet(&rig.v, true), 0);
	unload();
	load();
	ck_assert_uint_eq(rig.unit.regs.ctl, mtc | VMPT_RTIT_CTL_LESS_PKTS);
	ck_assert_uint_eq(rig_rd(&rig, 0x768), mtc);
	ck_assert_int_eq(vmpt_rtit_vcpu_quiet(&rig.v, false), 0);
	/* No WRMSR if no packet would come. */
	rig_wr(&rig, 0x768, RIG_ON);
	rig_forget(&rig);
	ck_assert_int_eq(vmpt_rtit_vcpu_quiet(&rig.v, true), 0);
	ck_assert_int_eq(vmpt_rtit_vcpu_quiet(&rig.v, false), 0);
	ck_assert_uint_eq(rig.logged, 0);
	rig_wr(&rig, 0x768, mtc | VMPT_RTIT_CTL_LESS_PKTS);
	rig_forget(&rig);
	ck_assert_uint_eq(mtcs_of_root(true), 0);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("rtit-swap");
	TCase *tc = tcase_create("swap");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, order_of_writes);
	tcase_add_test(tc, first_run);
	tcase_add_test(tc, compression_after_a_load);
	tcase_add_test(tc, compression_after_a_move);
	tcase_add_test(tc, no_psb_without_trigger);
	tcase_add_test(tc, state_goes_along);
	tcase_add_test(tc, host_traces);
	tcase_add_test(tc, host_does_not_stop);
	tcase_add_loop_test(tc, host_starts_anew, 0, 2);
	tcase_add_test(tc, host_cannot_be_saved);
	tcase_add_test(tc, wrong_calls);
	tcase_add_test(tc, guest_order);
	tcase_add_test(tc, trace_stop);
	tcase_add_loop_test(tc, trace_stop_seen_first, 0, 2);
	tcase_add_test(tc, trace_stop_at_unload);
	tcase_add_loop_test(tc, trace_stop_then_write, 0, 4);
	tcase_add_test(tc, reserved_events);
	tcase_add_test(tc, overflow);
	tcase_add_test(tc, quiet);
	suite_add_tcase(suite, tc);
	return suite;
}
