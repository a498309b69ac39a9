// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* RTIT Programming Reference, Table 19, rows 27 to 44, a check each, and its footnotes. */
#include "tests/model/rtit/rig.h"

#define IN    RIG_IN /* the filter's range */
#define LIMIT RIG_LIMIT
#define OUT   RIG_OUT

#define STS (STS_EN | STS_ON_CR3)

/* ---- instructions ---- */

static void far_kernel(u64 ip, u64 target)
{
	far_cpl(ip, target, 0);
}

static void far_user(u64 ip, u64 target)
{
	far_cpl(ip, target, 3);
}

static const struct vmpt_rtit_mode guest = { .cr3 = 0x5000, .paging = true };

/* VMXON, then a VM entry */
static void launch(u64 next, u64 target)
{
	vmpt_rtit_unit_vmxon(&rig.unit, next);
	vmpt_rtit_unit_vmentry(&rig.unit, target, &guest);
}

static void vm_entry(u64 next, u64 target)
{
	(void)next;
	vmpt_rtit_unit_vmentry(&rig.unit, target, &guest);
}

static void vm_exit(u64 next, u64 target)
{
	(void)target;
	vmpt_rtit_unit_vmexit(&rig.unit, next, &rig.unit.mode);
}

static void smi(u64 next, u64 target)
{
	(void)target;
	vmpt_rtit_unit_smi(&rig.unit, next);
}

static void rsm(u64 next, u64 target)
{
	(void)next;
	vmpt_rtit_unit_rsm(&rig.unit, target, &rig.unit.mode);
}

/* At TSC 123H, for STSs. */
static void inside(u64 ctl)
{
	rig_inside(ctl);
	tsc(0x123);
}

static void outside(u64 ctl)
{
	rig_outside(ctl);
	tsc(0x123);
}

/* The CR3 that is filtered for, in the range already (4.2.7, c) */
static void cr3_comes(u64 ctl)
{
	wr(CR3_MATCH, 0x2000);
	wr(CTL, BOTH | DEST);
	rig_inside(BOTH); /* FilterEn is 1, */
	wr_at(CTL, rd(CTL) | CR3_EN | ctl, IN + 0x90);
	rig_skip(); /* and is frozen now. */
	ck_assert_uint_eq(status(), FILTER_EN | TRIGGER_EN);
	tsc(0x123);
}

#define INSIDE(row, bits)  .name = (row), .start = inside, .ctl = (bits)
#define OUTSIDE(row, bits) .name = (row), .start = outside, .ctl = (bits)
#define STATUS_IS(bits)	   .on = (bits), .off = ~(u64)(bits)
/* CPL 3 is traced; in the kernel there is neither TIP nor FUP.FAR (2.4.1). */
#define IN_USER(row) \
	RIG_OUTSIDE(row, USER), RIG_OP(far_user, OUT + 2, IN + 0x80), .packet_en = RIG_ON
#define IN_GUEST(row) \
	RIG_INSIDE(row, BOTH), RIG_OP(launch, IN + 0x90, IN + 0x100), .packet_en = RIG_ON
#define MOV_CR3(next, to) RIG_OP(mov_cr3, next, to)

/* ---- the table ---- */

static const struct rig_row rows[] = {
	/* 27 to 35: far transfers */
	{ RIG_INSIDE("27", BOTH), RIG_OP(far, IN + 0x84, IN + 0x200),
	  .sent = "FUP.Far 401084, TIP 401200" },
	/* A change to another traced CPL makes no packet. */
	{ RIG_OP(far_user, IN + 0x204, IN + 0x300), .sent = "FUP.Far 401204, TIP 401300" },
	{ RIG_INSIDE("28", BOTH), .jccs = "TNN", RIG_OP(far, IN + 0x84, IN + 0x200),
	  .sent = "TNT TNN, FUP.Far 401084, TIP 401200", .tnt = 1 },
	{ RIG_OUTSIDE("29", BOTH), RIG_OP(far, OUT + 2, OUT + 0x200), .sent = "" },
	{ RIG_OP(far_user, OUT + 0x202, OUT + 0x300), .sent = "" },
	/* The same where ContextEn is what is 0 before and after. */
	{ RIG_OUTSIDE("29, ContextEn", USER), RIG_OP(far, IN + 2, IN + 0x200), .sent = "" },
	{ RIG_OP(far_user, IN + 2, OUT + 0x200), .sent = "" },
	{ RIG_INSIDE("30", BOTH), RIG_OP(far, IN + 0x84, OUT), .sent = "FUP.PGD 401084, TIP 300000",
	  STATUS_IS(CONTEXT_EN | TRIGGER_EN) },
	{ RIG_INSIDE("31", BOTH), .jccs = "T", RIG_OP(far, IN + 0x84, OUT),
	  .sent = "TNT T, FUP.PGD 401084, TIP 300000", .tnt = 1 },
	{ IN_USER("32") },
	{ RIG_OP(far_kernel, IN + 0x84, IN + 0x800), .sent = "FUP.PGD 401084", .off = CONTEXT_EN },
	/* Out of the range at once: the same. */
	{ RIG_OP(far_user, IN + 0x802, IN + 0x80) },
	{ RIG_OP(far_kernel, IN + 0x84, OUT), .sent = "FUP.PGD 401084" },
	{ IN_USER("33") },
	{ .jccs = "TT",
	  RIG_OP(far_kernel, IN + 0x84, IN + 0x800),
	  .sent = "TNT TT, FUP.PGD 401084",
	  .tnt = 1 },
	{ RIG_OUTSIDE("34", USER), RIG_OP(far_user, OUT + 2, IN + 0x84), .sent = "FUP.PGE 401084",
	  .tnt = 1 },
	{ RIG_OUTSIDE("35", BOTH), STATUS_IS(CONTEXT_EN | TRIGGER_EN) },
	{ RIG_OP(far, OUT + 2, IN + 0x84), .sent = "FUP.PGE 401084", .tnt = 1 },
	/* 36 to 38: SMI, VM exit; RSM, VM entry */
	{ RIG_INSIDE("36", BOTH), RIG_OP(smi, IN + 0x88, 0), .sent = "FUP.PGD 401088",
	  .packet_en = RIG_OFF },
	{ IN_GUEST("36, VM exit") },
	{ RIG_OP(vm_exit, IN + 0x108, 0), .sent = "FUP.PGD 401108", .packet_en = RIG_OFF },
	{ RIG_INSIDE("37", BOTH), .jccs = "NTN", RIG_OP(smi, IN + 0x88, 0),
	  .sent = "TNT NTN, FUP.PGD 401088", .tnt = 1 },
	{ IN_GUEST("37, VM exit") },
	{ .jccs = "NTN",
	  RIG_OP(vm_exit, IN + 0x108, 0),
	  .sent = "TNT NTN, FUP.PGD 401108",
	  .tnt = 1 },
	{ RIG_INSIDE("38", BOTH), RIG_OP(smi, IN + 0x88, 0) },
	{ RIG_OP(rsm, 0, IN + 0x88), .sent = "FUP.PGE 401088", .tnt = 1 },
	{ IN_GUEST("38, VM entry") },
	{ RIG_OP(vm_exit, IN + 0x108, 0) },
	{ RIG_OP(vm_entry, 0, IN + 0x10a), .sent = "FUP.PGE 40110a", .tnt = 1 },
	/* 39 to 44: MOV to CR3. PIP and STS, each "when enabled": CR3En = 0; STS_En and STS_on_CR3.
	 */
	{ INSIDE("39", BOTH | STS), MOV_CR3(IN + 0x83, 0x2000),
	  .sent = "PIP 2000 PG, STS 20/10 123" },
	{ .clear = STS_ON_CR3, MOV_CR3(IN + 0x83, 0x3000), .sent = "PIP 3000 PG" },
	{ .set = STS_ON_CR3, .clear = STS_EN, MOV_CR3(IN + 0x83, 0x4000), .sent = "PIP 4000 PG" },
	/* With CR3 filtering there is no PIP; the new CR3 matches, too (Table 10: bits 35:5). */
	{ INSIDE("39, CR3En", BOTH | STS | CR3_EN), .cr3_match = 0x1000, MOV_CR3(IN + 0x83, 0x1018),
	  .sent = "STS 20/10 123" },
	{ .clear = STS_EN, MOV_CR3(IN + 0x83, 0x1000), .sent = "" },
	{ INSIDE("40", BOTH | STS), .jccs = "TN", MOV_CR3(IN + 0x83, 0x2000),
	  .sent = "TNT TN, PIP 2000 PG, STS 20/10 123", .tnt = 1 },
	{ .clear = STS_EN, .jccs = "N", MOV_CR3(IN + 0x83, 0x3000), .sent = "TNT N, PIP 3000 PG" },
	/* Footnote 1: "The order of the packets will be that specified in the list." */
	{ INSIDE("40, CR3En", BOTH | CR3_EN | STS), .cr3_match = 0x1000, .jccs = "TNT",
	  MOV_CR3(IN + 0x83, 0x1000), .sent = "TNT TNT, STS 20/10 123", .tnt = 1 },
	/* No other packet, no TNT (4.2.15: one is "always immediately followed by another packet").
	 */
	{ INSIDE("40, nothing else", BOTH | CR3_EN | STS_ON_CR3), .cr3_match = 0x1000,
	  .jccs = "TNT", MOV_CR3(IN + 0x83, 0x1000), .sent = "", .tnt = 0xd },
	/* PacketEn 0 because of FilterEn: a PIP wants ContextEn and TriggerEn only. */
	{ OUTSIDE("41", BOTH | STS), MOV_CR3(OUT + 3, 0x2000),
	  .sent = "PIP 2000 PG, STS 20/10 123" },
	{ .set = LESS_PKTS, MOV_CR3(OUT + 3, 0x3000), .sent = "PIP 3000 PG" },
	/* PacketEn 0 because of ContextEn */
	{ OUTSIDE("41, ContextEn", USER | STS), MOV_CR3(OUT + 3, 0x2000), .sent = "STS 20/10 123" },
	{ .set = LESS_PKTS, MOV_CR3(OUT + 3, 0x3000), .sent = "" },
	/* The MOV before the base of the range */
	{ OUTSIDE("42", BOTH | STS), MOV_CR3(IN, 0x2000),
	  .sent = "PIP 2000 PG, STS 20/10 123, FUP.PGE 401000" },
	{ .name = "42, CR3En",
	  .start = cr3_comes,
	  MOV_CR3(IN + 0x93, 0x2000),
	  .sent = "FUP.PGE 401093" },
	{ .name = "42, CR3En, STS",
	  .start = cr3_comes,
	  .ctl = STS,
	  MOV_CR3(IN + 0x93, 0x2000),
	  .sent = "STS 20/10 123, FUP.PGE 401093" },
	/* 4.2.10: "depends on LESS_PKTS; ContextEn evaluated after CR3 value change" */
	{ .name = "42, CR3En, STS, LESS_PKTS",
	  .start = cr3_comes,
	  .ctl = STS | LESS_PKTS,
	  MOV_CR3(IN + 0x93, 0x2000),
	  .sent = "STS 20/10 123, FUP.PGE 401093" },
	{ INSIDE("43", BOTH | STS), MOV_CR3(LIMIT, 0x2000),
	  .sent = "PIP 2000 PG, STS 20/10 123, FUP.PGD 402000" },
	{ INSIDE("43, CR3En", BOTH | CR3_EN | STS), .cr3_match = 0x1000, MOV_CR3(IN + 0x83, 0x2000),
	  .sent = "STS 20/10 123, FUP.PGD 401083", .off = CONTEXT_EN },
	{ INSIDE("43, CR3En, LESS_PKTS", BOTH | CR3_EN | STS | LESS_PKTS), .cr3_match = 0x1000,
	  MOV_CR3(IN + 0x83, 0x2000), .sent = "FUP.PGD 401083" },
	{ INSIDE("44", BOTH | STS), .jccs = "TNTNT", MOV_CR3(LIMIT, 0x2000),
	  .sent = "TNT TNTNT, PIP 2000 PG, STS 20/10 123, FUP.PGD 402000", .tnt = 1 },
	{ INSIDE("44, CR3En", BOTH | CR3_EN), .cr3_match = 0x1000, .jccs = "TNTNT",
	  MOV_CR3(IN + 0x83, 0x2000), .sent = "TNT TNTNT, FUP.PGD 401083", .tnt = 1 },
	{ INSIDE("44, CR3En, STS", BOTH | CR3_EN | STS), .cr3_match = 0x1000, .jccs = "TNTNT",
	  MOV_CR3(IN + 0x83, 0x2000), .sent = "TNT TNTNT, STS 20/10 123, FUP.PGD 401083",
	  .tnt = 1 },
};

START_TEST(row)
{
	rig_run(rows, VMPT_ARRAY_SIZE(rows), _i, NULL);
}
END_TEST

/* ---- footnotes ---- */

/* 2: of an exception its own address, whose TNT bits came before */
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

RIG_TABLE_SUITE("rows-far", row, (size_t)rig_rows(rows, VMPT_ARRAY_SIZE(rows)), footnote_2,
		footnote_3)
