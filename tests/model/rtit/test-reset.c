// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * RESET in any state makes a unit like a new one (3.3, reset values), in its memory and in its
 * packets.
 */
#include "tests/model/rtit/rig.h"

#define STOP 0x500000

/* ---- states, each with a check that it is reached ---- */

static bool s_tracing(void)
{
	on(BOTH | CYCLE_ACC | MTC_EN | CMPRS_RET);
	jccs("TNT");
	cycles(1000);
	call(0x401005, 0x402000);
	return rig.unit.plain && rig.unit.filter_en && rig.unit.regs.tnt_buff != 1;
}

static bool s_mode(void)
{
	on(BOTH);
	far_cpl(0x401002, 0x5000, 3);
	mov_cr3(0x5003, 0x9000);
	return rig.unit.mode.cpl == 3 && rig.unit.mode.cr3 == 0x9000;
}

static bool s_ranges(void)
{
	range0(0x401000, 0x402000);
	range1(STOP, STOP + 0x1000);
	wr(EVENTS, EVENT(RANGE0, RANGE1));
	on(BOTH);
	jmp(0x300005, 0x401000);
	return rig.unit.walk && rig.unit.filter_en;
}

static bool s_smm(void)
{
	on(BOTH);
	vmpt_rtit_unit_smi(&rig.unit, 0x401002);
	return rig.unit.smm;
}

static bool s_vmx_root(void)
{
	on(BOTH);
	vmpt_rtit_unit_vmxon(&rig.unit, 0x401002);
	return rig.unit.vmx_root;
}

/* Bytes that the sink still refuses at RESET are lost. */
static bool s_waiting(void)
{
	on(BOTH);
	rig.refuse = -VMPT_E_IO;
	jmp_ind(0x401002, 0x5000);
	return rig.unit.used == 3;
}

static bool s_overflow(void)
{
	on(BOTH);
	vmpt_rtit_unit_overflow(&rig.unit);
	return rig.unit.regs.status & BUFFER_OVERFLOW;
}

static bool s_stop_pending(void)
{
	range1(STOP, STOP + 0x1000);
	wr(EVENTS, EVENT(ALWAYS, RANGE1));
	on(BOTH);
	vmpt_rtit_unit_overflow(&rig.unit);
	jmp(0x401005, STOP);
	return rig.unit.stop_pending;
}

static void fill(void)
{
	unsigned int i;

	rig.refuse = -VMPT_E_IO;
	for (i = 0; i < 200; i++)
		jmp_ind(0x401002, i & 1 ? 0x111122223333 : 0x555566667777);
}

static bool s_psb_held(void)
{
	on(BOTH);
	fill();
	wr(CTL, rig.unit.regs.ctl & ~(u64)TRACE_ACTIVE);
	wr(CTL, rig.unit.regs.ctl | TRACE_ACTIVE);
	return rig.unit.psb_held;
}

static bool s_psb_late(void)
{
	rig_erratum(3);
	on(BOTH);
	wr(PKT_CNT, 0x7fd);
	jmp_ind(0x401002, 0x5000);
	return rig.unit.psb_late;
}

static bool s_late(void)
{
	rig.config.options.psb_clears_late = 4;
	rig_init();
	on(BOTH);
	wr(PKT_CNT, 0x7fd);
	jmp_ind(0x401002, 0x5000);
	return rig.unit.late == 4;
}

static bool s_mtc_first(void)
{
	rig_erratum(7);
	on(BOTH | MTC_EN);
	return rig.unit.mtc_first;
}

static bool s_overflow_branch(void)
{
	rig_erratum(5);
	on(BOTH);
	vmpt_rtit_unit_overflow(&rig.unit);
	jmp_ind(0x401002, 0x5000);
	return rig.unit.overflow_branch;
}

static bool (*const states[])(void) = {
	s_tracing,   s_mode,	 s_ranges,	    s_smm,	    s_vmx_root,
	s_waiting,   s_overflow, s_psb_held,	    s_stop_pending, s_psb_late,
	s_mtc_first, s_late,	 s_overflow_branch,
};

/* ---- the state after a RESET ---- */

/* Ignore the clocks, ratios and counts that are in no register, and the buffer's old bytes. */
static void cut(struct vmpt_rtit_unit *unit)
{
	memset(&unit->now, 0, sizeof(unit->now));
	memset(unit->buffer, 0, sizeof(unit->buffer));
	unit->acbr = 0;
	unit->ecbr = 0;
	unit->bytes = 0;
	unit->overflows = 0;
	unit->overflow_target = 0;
	unit->cycles_at = 0;
	unit->mtc_at = 0;
}

START_TEST(as_a_new_one)
{
	static struct vmpt_rtit_unit reset, new;
	const u8 *a = (const u8 *)&reset, *b = (const u8 *)&new;
	size_t i;

	ck_assert(states[_i]());
	vmpt_rtit_unit_reset(&rig.unit);
	memcpy(&reset, &rig.unit, sizeof(reset));
	ck_assert_int_eq(vmpt_rtit_unit_init(&new, &rig.config), 0);
	cut(&reset);
	cut(&new);
	for (i = 0; i < sizeof(new); i++)
		if (a[i] != b[i])
			ck_abort_msg("byte %zu of the unit is %02x, of a new one %02x", i, a[i],
				     b[i]);
}
END_TEST

/* Some events that depend on a unit's state, from reading CTL on. */
static const char *life(void)
{
	struct vmpt_rtit_unit *u = &rig.unit;
	struct vmpt_rtit_clocks now = { .tsc = 0x123456780, .cycles = 0x987654 };

	rig.refuse = 0;
	rig.size = rig.shown = 0;
	rig.text[0] = 0;
	rig.base = 0xfdc00000;
	rig.mask = 0x7f;
	rig.offset = 0;
	rig.cycle_acc = false;
	memset(&rig.state, 0, sizeof(rig.state));
	ck_assert_uint_eq(rd(CTL), 0);
	ck_assert_uint_eq(status(), 0);
	vmpt_rtit_unit_time(u, &now);
	vmpt_rtit_unit_frequency(u, 20, 10);
	wr(LIMIT_MASK, 0xfff);
	wr(EVENTS, EVENT(ALWAYS, NEVER));
	wr(CTL, BOTH | DEST | TRACE_EN | CMPRS_RET | MTC_EN | STS_EN);
	wr(CTL, BOTH | DEST | TRACE_EN | CMPRS_RET | MTC_EN | STS_EN | TRACE_ACTIVE);
	ret(0x401001, 0x401005);
	jccs("TNTT");
	tsc(now.tsc + 0x100);
	jmp_ind(0x401002, 0x7fff12345678);
	far(0x7fff1234567a, 0x401000);
	vmpt_rtit_unit_overflow(u);
	vmpt_rtit_unit_overflow_resolve(u, 0x401010);
	jmp_ind(0x401012, 0x401020);
	mov_cr3(0x401023, 0x3000);
	vmpt_rtit_unit_frequency(u, 30, 15);
	ck_assert_uint_eq(rd(CNTP), 0);
	return rig_text();
}

START_TEST(it_sends_the_same)
{
	static char want[4096];
	const char *text;

	ck_assert(states[_i]());
	vmpt_rtit_unit_reset(&rig.unit);
	text = life();
	ck_assert_uint_lt(strlen(text), sizeof(want));
	memcpy(want, text, strlen(text) + 1);
	ck_assert_int_eq(vmpt_rtit_unit_init(&rig.unit, &rig.config), 0);
	ck_assert_str_eq(want, life());
	if (!rig.config.options.errata)
		ck_assert_str_eq(want,
				 "PSB, FUP.PGE 600000, TIP 401005, MTC 0:d0, MTC 0:d1, TNT TNTT, "
				 "TIP 7fff12345678, FUP.Far 7fff1234567a, TIP 401000, "
				 "FUP.BuffOvf 401010, TIP 401020, PIP 3000, STS 30/15 123456880");
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("reset");
	TCase *tc = tcase_create("reset");

	tcase_add_checked_fixture(tc, rig_setup, NULL);
	tcase_add_loop_test(tc, as_a_new_one, 0, VMPT_ARRAY_SIZE(states));
	tcase_add_loop_test(tc, it_sends_the_same, 0, VMPT_ARRAY_SIZE(states));
	suite_add_tcase(suite, tc);
	return suite;
}
