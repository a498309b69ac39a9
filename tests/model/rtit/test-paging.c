// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* RTIT Programming Reference: 4.2.10, Paging Information Packets, and STS_on_CR3. */
#include "tests/model/rtit/rig.h"

static void mov_cr0(u64 next, bool paging)
{
	vmpt_rtit_unit_mov_cr0(&rig.unit, next, paging);
}

/* Figure 9 */
START_TEST(bytes)
{
	on(BOTH);
	mov_cr3(0x401003, 0x1234567000);
	expect_bytes("c3 00 70 56 34 12");
	mov_cr0(0x401006, false);
	expect_bytes("c2 00 70 56 34 12");
	/* Bits above 39 are not in it. */
	mov_cr3(0x401009, 0x8001fedcba98765b);
	expect_bytes("c2 5b 76 98 ba dc");
	mov_cr0(0x40100c, true);
	expect_bytes("c3 5b 76 98 ba dc");
	ck_assert_uint_eq(rig.unit.mode.cr3, 0x8001fedcba98765b);
	ck_assert(rig.unit.mode.paging);
}
END_TEST

/* "MOV CR0 that changes the CR0.PG value" */
START_TEST(mov_cr0_without_a_change)
{
	on(BOTH);
	mov_cr0(0x401003, true);
	expect_nothing;
	mov_cr0(0x401003, false);
	expect("PIP 1000");
	mov_cr0(0x401003, false);
	expect_nothing;
}
END_TEST

/* Writing the same CR3 again makes a PIP, too. */
START_TEST(mov_cr3_without_a_change)
{
	on(BOTH);
	mov_cr3(0x401003, 0x1000);
	expect("PIP 1000 PG");
}
END_TEST

/* "when ContextEn and TriggerEn are both 1 and RTIT_CTL[CR3En] is 0" */
START_TEST(when)
{
	bool trigger = _i & 1, context = _i & 2, cr3_en = _i & 4, filter = _i & 8;
	u64 ctl = DEST | TRACE_EN | (context ? OS : USER) | (cr3_en ? CR3_EN : 0);
	bool want = trigger && context && !cr3_en;

	wr(CR3_MATCH, 0x2000);
	rig.unit.mode.cr3 = 0x2000;
	wr(EVENTS, EVENT(filter ? ALWAYS : NEVER, NEVER));
	wr(CTL, ctl);
	if (trigger)
		wr(CTL, ctl | TRACE_ACTIVE);
	rig_skip();
	mov_cr0(0x401003, false);
	expect(want ? "PIP 2000" : "");
	mov_cr0(0x401003, true);
	expect(want ? "PIP 2000 PG" : "");
	mov_cr3(0x401003, 0x2000);
	expect(want ? "PIP 2000 PG" : "");
}
END_TEST

/* "When a non-paging mode is entered … This will not affect the current CR3 filtering" (2.4.2) */
START_TEST(mov_cr0_and_filtering)
{
	wr(CR3_MATCH, 0x1000);
	on(BOTH | CR3_EN);
	mov_cr0(0x401003, false);
	expect_nothing;
	ck_assert_uint_eq(status() & CONTEXT_EN, CONTEXT_EN);
	jmp_ind(0x401005, 0x5000);
	expect("TIP 5000");
}
END_TEST

/* "There are ways that the CR3 or CR0.PG can be changed without …, like task switches or INIT" */
START_TEST(others_send_none)
{
	struct vmpt_rtit_mode mode = { .cr3 = 0x9000 };
	struct vmpt_rtit_far task = { .ip = 0x401002, .target = 0x5000, .mode = mode };

	on(BOTH | STS_EN | STS_ON_CR3);
	vmpt_rtit_unit_far(&rig.unit, &task);
	expect("FUP.Far 401002, TIP 5000");
	ck_assert_uint_eq(rig.unit.mode.cr3, 0x9000);
	vmpt_rtit_unit_smi(&rig.unit, 0x5004);
	mode.cr3 = 0xa000;
	vmpt_rtit_unit_rsm(&rig.unit, 0x5004, &mode);
	expect("FUP.PGD 5004, FUP.PGE 5004");
	vmpt_rtit_unit_vmxon(&rig.unit, 0x5008);
	mode.cr3 = 0xb000;
	vmpt_rtit_unit_vmentry(&rig.unit, 0x6000, &mode);
	mode.cr3 = 0xc000;
	vmpt_rtit_unit_vmexit(&rig.unit, 0x6004, &mode);
	expect("FUP.PGD 5008, FUP.PGE 6000, FUP.PGD 6004");
}
END_TEST

/* STS_on_CR3: on MOV CR3 only, after the PIP, and also if no PIP is sent */
START_TEST(sts_on_cr3)
{
	wr(CR3_MATCH, 0x1000);
	on(BOTH | STS_EN | STS_ON_CR3);
	tsc(0x77);
	mov_cr3(0x401003, 0x1000);
	expect("PIP 1000 PG, STS 20/10 77");
	mov_cr0(0x401003, false);
	expect("PIP 1000");
	ctl_set(CR3_EN);
	mov_cr3(0x401003, 0x1000);
	expect("STS 20/10 77");
	mov_cr3(0x401003, 0x2000);
	expect("STS 20/10 77, FUP.PGD 401003");
	mov_cr3(0x401003, 0x3000);
	expect("STS 20/10 77");
	ctl_set(LESS_PKTS);
	mov_cr3(0x401003, 0x4000);
	expect_nothing;
	mov_cr3(0x401003, 0x1000);
	expect("STS 20/10 77, FUP.PGE 401003");
}
END_TEST

/* In cycle accurate mode */
START_TEST(cycle_counts)
{
	on(BOTH | CYCLE_ACC);
	cycles(65);
	mov_cr3(0x401003, 0x2000);
	expect_bytes("c3 00 20 00 00 00 06 01");
}
END_TEST

/* A guest's kernel starts: paging on with a CR3, a process switch */
START_TEST(boot)
{
	rig.unit.mode.paging = false;
	rig.unit.mode.cr3 = 0;
	on(BOTH);
	mov_cr3(0x100003, 0x9000);
	mov_cr0(0x100006, true);
	far(0x10000b, 0x200000);
	jccs("T");
	mov_cr3(0x200003, 0x345000);
	expect("PIP 9000, PIP 9000 PG, FUP.Far 10000b, TIP 200000, TNT T, PIP 345000 PG");
}
END_TEST

TEST_SUITE()
{
	const TTest *const once[] = { bytes,
				      mov_cr0_without_a_change,
				      mov_cr3_without_a_change,
				      mov_cr0_and_filtering,
				      others_send_none,
				      sts_on_cr3,
				      cycle_counts,
				      boot };
	Suite *suite = suite_create("paging");
	TCase *tc = tcase_create("paging");
	size_t i;

	tcase_add_checked_fixture(tc, rig_setup, NULL);
	tcase_add_loop_test(tc, when, 0, 16);
	for (i = 0; i < VMPT_ARRAY_SIZE(once); i++)
		tcase_add_test(tc, once[i]);
	suite_add_tcase(suite, tc);
	return suite;
}
