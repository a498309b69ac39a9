// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* RTIT Programming Reference, Table 19, rows 27 to 44, one test each, and its footnotes. */
#include "tests/model/rtit/rig.h"

#define IN    RIG_IN /* the filter's range */
#define LIMIT RIG_LIMIT
#define OUT   RIG_OUT

/* ---- 27 to 35: far transfers ---- */

START_TEST(row_27)
{
	rig_inside(BOTH);
	far(IN + 0x84, IN + 0x200);
	expect("FUP.Far 401084, TIP 401200");
	/* A change to another traced CPL makes no packet. */
	far_cpl(IN + 0x204, IN + 0x300, 3);
	expect("FUP.Far 401204, TIP 401300");
}
END_TEST

START_TEST(row_28)
{
	rig_inside(BOTH);
	jccs("TNN");
	far(IN + 0x84, IN + 0x200);
	expect("TNT TNN, FUP.Far 401084, TIP 401200");
	expect_tnt(1);
}
END_TEST

START_TEST(row_29)
{
	rig_outside(BOTH);
	far(OUT + 2, OUT + 0x200);
	far_cpl(OUT + 0x202, OUT + 0x300, 3);
	expect_nothing;
}
END_TEST

/* The same with ContextEn 0 before and after. */
START_TEST(row_29_context)
{
	rig_outside(USER);
	far(IN + 2, IN + 0x200);
	far_cpl(IN + 2, OUT + 0x200, 3);
	expect_nothing;
}
END_TEST

START_TEST(row_30)
{
	rig_inside(BOTH);
	far(IN + 0x84, OUT);
	expect("FUP.PGD 401084, TIP 300000");
	ck_assert_uint_eq(status(), CONTEXT_EN | TRIGGER_EN);
}
END_TEST

START_TEST(row_31)
{
	rig_inside(BOTH);
	jccs("T");
	far(IN + 0x84, OUT);
	expect("TNT T, FUP.PGD 401084, TIP 300000");
	expect_tnt(1);
}
END_TEST

/* CPL 3 is traced; in the kernel there is neither TIP nor FUP.FAR (2.4.1). */
static void user(void)
{
	rig_outside(USER);
	far_cpl(OUT + 2, IN + 0x80, 3);
	rig_skip();
	ck_assert(rig.unit.packet_en);
}

START_TEST(row_32)
{
	user();
	far_cpl(IN + 0x84, IN + 0x800, 0);
	expect("FUP.PGD 401084");
	ck_assert_uint_eq(status() & CONTEXT_EN, 0);
	/* Out of the range at once: the same. */
	far_cpl(IN + 0x802, IN + 0x80, 3);
	rig_skip();
	far_cpl(IN + 0x84, OUT, 0);
	expect("FUP.PGD 401084");
}
END_TEST

START_TEST(row_33)
{
	user();
	jccs("TT");
	far_cpl(IN + 0x84, IN + 0x800, 0);
	expect("TNT TT, FUP.PGD 401084");
	expect_tnt(1);
}
END_TEST

START_TEST(row_34)
{
	rig_outside(USER);
	far_cpl(OUT + 2, IN + 0x84, 3);
	expect("FUP.PGE 401084");
	expect_tnt(1);
}
END_TEST

START_TEST(row_35)
{
	rig_outside(BOTH);
	ck_assert_uint_eq(status(), CONTEXT_EN | TRIGGER_EN);
	far(OUT + 2, IN + 0x84);
	expect("FUP.PGE 401084");
	expect_tnt(1);
}
END_TEST

/* ---- 36 to 38: SMI, VM exit; RSM, VM entry ---- */

static void guest(void)
{
	const struct vmpt_rtit_mode mode = { .cr3 = 0x5000, .paging = true };

	rig_inside(BOTH);
	vmpt_rtit_unit_vmxon(&rig.unit, IN + 0x90);
	vmpt_rtit_unit_vmentry(&rig.unit, IN + 0x100, &mode);
	rig_skip();
	ck_assert(rig.unit.packet_en);
}

START_TEST(row_36)
{
	rig_inside(BOTH);
	vmpt_rtit_unit_smi(&rig.unit, IN + 0x88);
	expect("FUP.PGD 401088");
	ck_assert(!rig.unit.packet_en);
}
END_TEST

START_TEST(row_36_vm_exit)
{
	guest();
	vmpt_rtit_unit_vmexit(&rig.unit, IN + 0x108, &rig.unit.mode);
	expect("FUP.PGD 401108");
	ck_assert(!rig.unit.packet_en);
}
END_TEST

START_TEST(row_37)
{
	rig_inside(BOTH);
	jccs("NTN");
	vmpt_rtit_unit_smi(&rig.unit, IN + 0x88);
	expect("TNT NTN, FUP.PGD 401088");
	expect_tnt(1);
}
END_TEST

START_TEST(row_37_vm_exit)
{
	guest();
	jccs("NTN");
	vmpt_rtit_unit_vmexit(&rig.unit, IN + 0x108, &rig.unit.mode);
	expect("TNT NTN, FUP.PGD 401108");
	expect_tnt(1);
}
END_TEST

START_TEST(row_38)
{
	rig_inside(BOTH);
	vmpt_rtit_unit_smi(&rig.unit, IN + 0x88);
	rig_skip();
	vmpt_rtit_unit_rsm(&rig.unit, IN + 0x88, &rig.unit.mode);
	expect("FUP.PGE 401088");
	expect_tnt(1);
}
END_TEST

START_TEST(row_38_vm_entry)
{
	const struct vmpt_rtit_mode mode = { .cr3 = 0x5000, .paging = true };

	guest();
	vmpt_rtit_unit_vmexit(&rig.unit, IN + 0x108, &rig.unit.mode);
	rig_skip();
	vmpt_rtit_unit_vmentry(&rig.unit, IN + 0x10a, &mode);
	expect("FUP.PGE 40110a");
	expect_tnt(1);
}
END_TEST

/* ---- 39 to 44: MOV to CR3 ---- */

#define STS (STS_EN | STS_ON_CR3)

/* PIP and STS, each "when enabled": CR3En = 0; STS_En and STS_on_CR3. */
START_TEST(row_39)
{
	rig_inside(BOTH | STS);
	tsc(0x123);
	mov_cr3(IN + 0x83, 0x2000);
	expect("PIP 2000 PG, STS 20/10 123");
	ctl_clear(STS_ON_CR3);
	mov_cr3(IN + 0x83, 0x3000);
	expect("PIP 3000 PG");
	ctl_set(STS_ON_CR3);
	ctl_clear(STS_EN);
	mov_cr3(IN + 0x83, 0x4000);
	expect("PIP 4000 PG");
}
END_TEST

/* With CR3 filtering there is no PIP; the new CR3 matches, too (Table 10: bits 35:5). */
START_TEST(row_39_cr3_en)
{
	wr(CR3_MATCH, 0x1000);
	rig_inside(BOTH | STS | CR3_EN);
	tsc(0x123);
	mov_cr3(IN + 0x83, 0x1018);
	expect("STS 20/10 123");
	ctl_clear(STS_EN);
	mov_cr3(IN + 0x83, 0x1000);
	expect_nothing;
}
END_TEST

START_TEST(row_40)
{
	rig_inside(BOTH | STS);
	tsc(0x123);
	jccs("TN");
	mov_cr3(IN + 0x83, 0x2000);
	expect("TNT TN, PIP 2000 PG, STS 20/10 123");
	expect_tnt(1);
	ctl_clear(STS_EN);
	jccs("N");
	mov_cr3(IN + 0x83, 0x3000);
	expect("TNT N, PIP 3000 PG");
}
END_TEST

/* PacketEn 0 because of FilterEn: a PIP needs ContextEn and TriggerEn only. */
START_TEST(row_41)
{
	rig_outside(BOTH | STS);
	tsc(0x123);
	mov_cr3(OUT + 3, 0x2000);
	expect("PIP 2000 PG, STS 20/10 123");
	ctl_set(LESS_PKTS);
	mov_cr3(OUT + 3, 0x3000);
	expect("PIP 3000 PG");
}
END_TEST

/* PacketEn 0 because of ContextEn */
START_TEST(row_41_context)
{
	rig_outside(USER | STS);
	tsc(0x123);
	mov_cr3(OUT + 3, 0x2000);
	expect("STS 20/10 123");
	ctl_set(LESS_PKTS);
	mov_cr3(OUT + 3, 0x3000);
	expect_nothing;
}
END_TEST

/* The MOV before the base of the range */
START_TEST(row_42)
{
	rig_outside(BOTH | STS);
	tsc(0x123);
	mov_cr3(IN, 0x2000);
	expect("PIP 2000 PG, STS 20/10 123, FUP.PGE 401000");
}
END_TEST

/* CR3 becomes the filter's, already in the range (4.2.7 c) */
static void cr3_comes(u64 ctl)
{
	wr(CR3_MATCH, 0x2000);
	wr(CTL, BOTH | DEST);
	rig_inside(BOTH); /* FilterEn is 1, */
	wr_at(CTL, rd(CTL) | CR3_EN | ctl, IN + 0x90);
	rig_skip(); /* and is frozen now. */
	ck_assert_uint_eq(status(), FILTER_EN | TRIGGER_EN);
	tsc(0x123);
	mov_cr3(IN + 0x93, 0x2000);
}

START_TEST(row_42_cr3_en)
{
	cr3_comes(0);
	expect("FUP.PGE 401093");
}
END_TEST

START_TEST(row_42_cr3_en_sts)
{
	cr3_comes(STS);
	expect("STS 20/10 123, FUP.PGE 401093");
}
END_TEST

/* 4.2.10: "depends on LESS_PKTS; ContextEn evaluated after CR3 value change" */
START_TEST(row_42_cr3_en_sts_less_pkts)
{
	cr3_comes(STS | LESS_PKTS);
	expect("STS 20/10 123, FUP.PGE 401093");
}
END_TEST

START_TEST(row_43)
{
	rig_inside(BOTH | STS);
	tsc(0x123);
	mov_cr3(LIMIT, 0x2000);
	expect("PIP 2000 PG, STS 20/10 123, FUP.PGD 402000");
}
END_TEST

START_TEST(row_43_cr3_en)
{
	wr(CR3_MATCH, 0x1000);
	rig_inside(BOTH | CR3_EN | STS);
	tsc(0x123);
	mov_cr3(IN + 0x83, 0x2000);
	expect("STS 20/10 123, FUP.PGD 401083");
	ck_assert_uint_eq(status() & CONTEXT_EN, 0);
}
END_TEST

START_TEST(row_43_cr3_en_less_pkts)
{
	wr(CR3_MATCH, 0x1000);
	rig_inside(BOTH | CR3_EN | STS | LESS_PKTS);
	tsc(0x123);
	mov_cr3(IN + 0x83, 0x2000);
	expect("FUP.PGD 401083");
}
END_TEST

START_TEST(row_44)
{
	rig_inside(BOTH | STS);
	tsc(0x123);
	jccs("TNTNT");
	mov_cr3(LIMIT, 0x2000);
	expect("TNT TNTNT, PIP 2000 PG, STS 20/10 123, FUP.PGD 402000");
	expect_tnt(1);
}
END_TEST

START_TEST(row_44_cr3_en)
{
	wr(CR3_MATCH, 0x1000);
	rig_inside(BOTH | CR3_EN);
	jccs("TNTNT");
	mov_cr3(IN + 0x83, 0x2000);
	expect("TNT TNTNT, FUP.PGD 401083");
	expect_tnt(1);
}
END_TEST

/* Footnote 1: "The order of the packets will be that specified in the list." */
START_TEST(row_40_cr3_en)
{
	wr(CR3_MATCH, 0x1000);
	rig_inside(BOTH | CR3_EN | STS);
	tsc(0x123);
	jccs("TNT");
	mov_cr3(IN + 0x83, 0x1000);
	expect("TNT TNT, STS 20/10 123");
	expect_tnt(1);
}
END_TEST

/* No other packet, no TNT (4.2.15: one is "always immediately followed by another packet"). */
START_TEST(row_40_cr3_en_nothing)
{
	wr(CR3_MATCH, 0x1000);
	rig_inside(BOTH | CR3_EN | STS_ON_CR3);
	jccs("TNT");
	mov_cr3(IN + 0x83, 0x1000);
	expect_nothing;
	expect_tnt(0xd);
}
END_TEST

START_TEST(row_44_cr3_en_sts)
{
	wr(CR3_MATCH, 0x1000);
	rig_inside(BOTH | CR3_EN | STS);
	tsc(0x123);
	jccs("TNTNT");
	mov_cr3(IN + 0x83, 0x2000);
	expect("TNT TNTNT, STS 20/10 123, FUP.PGD 401083");
	expect_tnt(1);
}
END_TEST

/* ---- footnotes ---- */

/* 2: an exception has its own address; its TNT bits come first */
START_TEST(footnote_2)
{
	rig_inside(BOTH);
	jcc(true, IN + 0x82, IN + 0x90);
	far(IN + 0x90, IN + 0x300);
	expect("TNT T, FUP.Far 401090, TIP 401300");
}
END_TEST

START_TEST(footnote_3)
{
	rig_inside(BOTH | CYCLE_ACC | STS);
	tsc(0x123);
	jccs("T");
	cycles(100);
	far(IN + 0x84, IN + 0x200);
	expect("TNT T, FUP.Far 401084 +100, TIP 401200 +0");
	cycles(5);
	mov_cr3(LIMIT, 0x2000);
	expect("PIP 2000 PG +5, STS 20/10 123 +0, FUP.PGD 402000 +0");
}
END_TEST

RIG_SUITE("rows-far", row_27, row_28, row_29, row_29_context, row_30, row_31, row_32, row_33,
	  row_34, row_35, row_36, row_36_vm_exit, row_37, row_37_vm_exit, row_38, row_38_vm_entry,
	  row_39, row_39_cr3_en, row_40, row_41, row_41_context, row_42, row_42_cr3_en,
	  row_42_cr3_en_sts, row_42_cr3_en_sts_less_pkts, row_43, row_43_cr3_en,
	  row_43_cr3_en_less_pkts, row_44, row_44_cr3_en, row_40_cr3_en, row_40_cr3_en_nothing,
	  row_44_cr3_en_sts, footnote_2, footnote_3)
