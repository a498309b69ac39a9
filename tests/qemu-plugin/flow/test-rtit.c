// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The flow's events for RTIT: addresses after instructions, steps at bases and limits, and time
 * across HLT. As in test-flow.c, code is hex bytes; addresses are worked out in comments.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "qemu-plugin/flow/flow.h"
#include "tests/model/rtit/rig.h"
#include "tests/qemu-plugin/stand-in.h"

#define JMP_RAX "ffe0"
#define NOPS	"90 90"

/* The vCPU is at 400000H, and nothing is traced yet. */
static void begin(void)
{
	stand_in_setup();
	stand_in.plugin.rtit = true;
	rig_setup();
	flow_rtit(&stand_in.vcpu, &rig.unit, true);
	stand_in_run_here(stand_in_block(0x400000, "eb00"));
}

static void begin_traced(u64 ctl)
{
	begin();
	on(ctl);
}

static void jump(u64 at, u64 to)
{
	stand_in_run_here(stand_in_block(at, JMP_RAX));
	stand_in_run_here(stand_in_block(to, NOPS));
}

START_TEST(near_branches)
{
	begin_traced(BOTH | CMPRS_RET);
	/* jz +10H, taken and not; call +0; call *rax; ret to the caller */
	stand_in_run_here(stand_in_block(0x400002, "7410"));
	stand_in_run_here(stand_in_block(0x400014, "74ea"));
	stand_in_run_here(stand_in_block(0x400016, "e8e5ffffff")); /* to 400000 */
	stand_in_run_here(stand_in_block(0x400000, "c3"));
	stand_in_run_here(stand_in_block(0x40001b, "ffd0"));
	stand_in_run_here(stand_in_block(0x500000, "c3"));
	stand_in_run_here(stand_in_block(0x40001d, "c3"));
	stand_in_run_here(stand_in_block(0x7000, NOPS));
	jump(0x7002, 0x500000);
	expect("TNT TNT, TIP 500000, TNT T, TIP 7000, TIP 500000");
}
END_TEST

/* Table 1: a far transfer instruction's FUP is NLIP, INT n's too; a fault's its own address. */
START_TEST(far_transfers)
{
	begin_traced(BOTH);
	stand_in_run_here(stand_in_block(0x400002, "90 cd80")); /* int 80h */
	stand_in_event(0x400003, 0x800000);
	expect("FUP.Far 400005, TIP 800000");
	stand_in_run_here(stand_in_block(0x800000, "48cf"));	/* iretq */
	stand_in_run_here(stand_in_block(0x400005, "8b00 90")); /* mov (%rax),%eax */
	expect("FUP.Far 800002, TIP 400005");
	stand_in_event(0x400005, 0x800000); /* #PF */
	expect("FUP.Far 400005, TIP 800000");
	stand_in_run_here(stand_in_block(0x800000, "48cf"));
	stand_in_run_here(stand_in_block(0x400005, "8b00 90"));
	stand_in_event(0x400008, 0x800000); /* an interrupt after the block */
	expect("FUP.Far 800002, TIP 400005, FUP.Far 400008, TIP 800000");
	/* two at once */
	stand_in_event(0x800000, 0x900000);
	expect("FUP.Far 800000, TIP 900000");
}
END_TEST

START_TEST(privilege)
{
	begin_traced(USER);
	expect_nothing;
	stand_in_run_here(stand_in_block(0x400002, "480f07")); /* sysret */
	stand_in.reg[QREG_CS] = 0x1b;
	stand_in_run_here(stand_in_block(0x403000, "0f05")); /* syscall */
	expect("FUP.PGE 403000");
	stand_in.reg[QREG_CS] = 8;
	stand_in_run_here(stand_in_block(0x800000, NOPS));
	expect("FUP.PGD 403002");
}
END_TEST

START_TEST(control_registers)
{
	begin_traced(BOTH);
	stand_in_run_here(stand_in_block(0x400002, "0f22d8"));
	stand_in.reg[QREG_CR3] = 0x5000;
	stand_in_run_here(stand_in_block(0x400005, "0f22c0"));
	expect("PIP 5000 PG");
	/* CR0 unchanged, then without PG */
	stand_in_run_here(stand_in_block(0x400008, "0f22c0"));
	expect_nothing;
	stand_in.reg[QREG_CR0] = 1;
	stand_in.reg[QREG_EFER] = 0;
	stand_in_run(stand_in_block(0x40000b, NOPS), 0x40000b, 0);
	expect("PIP 5000");
}
END_TEST

/* Execution enters and leaves the range in one block: base and limit are ends of instructions. */
START_TEST(walks)
{
	begin();
	range0(0x400004, 0x400006);
	wr(EVENTS, EVENT(RANGE0, NEVER));
	on(BOTH);
	/* 400002 to 400008: 90 90 90 90 90 90 */
	stand_in_run_here(stand_in_block(0x400002, "90 90 90 90 90 90"));
	expect_nothing;
	stand_in_run_here(stand_in_block(0x400008, NOPS));
	expect("FUP.PGE 400004, FUP.PGD 400006");
	/* once more, by a jump to the base: not entered by sequential execution */
	jump(0x40000a, 0x400004);
	expect("FUP.PGE 400004");
	/* a block that was cut at the limit */
	stand_in_run_here(stand_in_block(0x400006, NOPS));
	expect("FUP.PGD 400006");
}
END_TEST

/* A base or limit inside an instruction never matches. */
START_TEST(walks_over_no_instruction)
{
	begin();
	range0(0x400003, 0x400004);
	wr(EVENTS, EVENT(RANGE0, NEVER));
	on(BOTH);
	stand_in_run_here(stand_in_block(0x400002, "48ffc0 90 90"));
	jump(0x400007, 0x500000);
	expect_nothing;
}
END_TEST

/* Instructions that have not executed do not count; those that have count once. */
START_TEST(walks_until_a_fault)
{
	struct qemu_block *block;

	begin();
	range0(0x400003, 0x400005);
	wr(EVENTS, EVENT(RANGE0, NEVER));
	on(BOTH);
	block = stand_in_block(0x400002, "90 90 8b00 90");
	stand_in_run(block, 0x400002, 3);
	stand_in_event(0x400004, 0x800000);
	expect("FUP.PGE 400003, FUP.PGD 400004, TIP 800000");
	/* back, but after the base: not in the range until a branch or the base */
	stand_in_run_here(stand_in_block(0x800000, "48cf"));
	stand_in_run_here(stand_in_block(0x400004, "8b00 90"));
	expect("FUP.PGE 400004");
	stand_in_run_here(stand_in_block(0x400007, NOPS));
	expect("");
	jump(0x400009, 0x500000);
	expect("TIP 500000, FUP.PGD 40000b");
}
END_TEST

/* Range events within a block come before the branch that ends it. */
START_TEST(walks_before_a_branch)
{
	begin();
	range0(0x400003, 0x400010);
	wr(EVENTS, EVENT(RANGE0, NEVER));
	on(BOTH);
	/* 400002: nop; 400003: nop; 400004: jz +10H, taken: out of it */
	stand_in_run_here(stand_in_block(0x400002, "90 90 7410"));
	stand_in_run_here(stand_in_block(0x400016, NOPS));
	expect("FUP.PGE 400003, TNT T, FUP.PGD 400006");
}
END_TEST

/* The same code at another address: bases are run-time addresses. */
START_TEST(walks_where_a_block_is_shared)
{
	struct qemu_block *block;

	begin();
	range0(0x700003, 0x700004);
	wr(EVENTS, EVENT(RANGE0, NEVER));
	on(BOTH);
	block = stand_in_block(0x400002, "90 90 ffe0");
	stand_in_run_here(block);
	stand_in_run(block, 0x700002, 0);
	expect("");
	stand_in_run(stand_in_block(0x500000, NOPS), 0x500000, 0);
	expect("FUP.PGE 700003, FUP.PGD 700004");
}
END_TEST

START_TEST(trace_stop_is_walked_into)
{
	begin();
	range1(0x400004, 0x400006);
	wr(EVENTS, EVENT(ALWAYS, RANGE1));
	on(BOTH);
	stand_in_run_here(stand_in_block(0x400002, "90 90 90 90"));
	stand_in_run_here(stand_in_block(0x400006, NOPS));
	expect("TraceSTOP");
	ck_assert(!rig.unit.trigger_en);
}
END_TEST

/* During sleep there are no MTCs and no cycles; an STS follows it (Appendix B, 4.1.1). */
START_TEST(sleep)
{
	const struct timespec two_ms = { .tv_nsec = 2000000 };
	struct vmpt_rtit_clocks was, now;
	const char *text;

	begin_traced(BOTH | MTC_EN | STS_EN);
	stand_in_run_here(stand_in_block(0x400002, "90 f4")); /* nop; hlt */
	flow_idle(0, &stand_in.plugin);
	rig_skip();
	was = rig.unit.now;
	nanosleep(&two_ms, NULL);
	stand_in_event(0x400004, 0x800000);
	text = rig_text();
	ck_assert_msg(!strncmp(text, "STS ", 4), "%s", text);
	text = strchr(text, ',');
	ck_assert_str_eq(text ? text : "", ", FUP.Far 400004, TIP 800000");
	ck_assert_uint_eq(rig.unit.now.cycles, was.cycles);
	/* and never again */
	rtit_clocks(&stand_in.vcpu, &now);
	ck_assert_uint_ge(now.tsc - now.cycles - (was.tsc - was.cycles), 2000000);
}
END_TEST

/* An MTC's cycles are those up to its own tick, however late the clock is read. */
START_TEST(mtcs_come_one_by_one)
{
	struct vmpt_rtit_clocks at = { .tsc = 0x12340, .cycles = 0x5000 };
	const char *text;
	unsigned int i;
	char one[32];

	begin_traced(BOTH | CYCLE_ACC | MTC_EN);
	vmpt_rtit_unit_wake(&rig.unit, &at);
	wr(CNTP, 0);
	at.tsc += 0x150;
	at.cycles += 0x150;
	rtit_time(&rig.unit, &at);
	expect("MTC 0:47 +64, MTC 0:48 +128, MTC 0:49 +128");
	/* 10H are left; another 70H are exactly one more MTC. */
	at.tsc += 0x70;
	at.cycles += 0x70;
	rtit_time(&rig.unit, &at);
	expect("MTC 0:4a +128");
	/* more than 8 bits of MTCs: all of them */
	at.tsc += 0x80 * 300;
	at.cycles += 0x80 * 300;
	rtit_time(&rig.unit, &at);
	text = rig_text();
	for (i = 1; i <= 300; i++) {
		snprintf(one, sizeof(one), "MTC 0:%02x +128%s", (0x4a + i) & 0xff,
			 i < 300 ? ", " : "");
		ck_assert_msg(!strncmp(text, one, strlen(one)), "%u: %.40s", i, text);
		text += strlen(one);
	}
	ck_assert_str_eq(text, "");
}
END_TEST

/* Ticks without cycles make no MTC. */
START_TEST(what_was_slept_through_has_no_mtc)
{
	struct vmpt_rtit_clocks at = { .tsc = 0x12340, .cycles = 0x5000 };

	begin_traced(BOTH | CYCLE_ACC | MTC_EN | STS_EN);
	rtit_time(&rig.unit, &at);
	wr(CNTP, 0);
	rig_skip();
	at.tsc += 0x10000;
	at.cycles += 0x20;
	rtit_time(&rig.unit, &at);
	expect("STS 20/10 22340 +32");
	at.tsc += 0x40;
	at.cycles += 0x40;
	rtit_time(&rig.unit, &at);
	expect("MTC 0:47 +64");
}
END_TEST

/* A thread that does not get a host CPU. */
START_TEST(waiting_is_sleep)
{
	struct vmpt_rtit_clocks was, now;

	begin_traced(BOTH);
	rtit_clocks(&stand_in.vcpu, &was);
	stand_in.vcpu.last_clock -= 10000000;
	rtit_clocks(&stand_in.vcpu, &now);
	ck_assert_uint_ge(now.tsc - now.cycles - (was.tsc - was.cycles), 10000000);
	was = now;
	rtit_clocks(&stand_in.vcpu, &now);
	ck_assert(now.tsc - now.cycles == was.tsc - was.cycles || now.tsc - was.tsc > 1000000);
}
END_TEST

/* A kick without an event: QEMU reports the wait once more (Appendix B, 4.1.1). */
START_TEST(sleep_goes_on)
{
	const struct timespec two_ms = { .tv_nsec = 2000000 };
	const char *text;
	u64 cycles;

	begin_traced(BOTH | MTC_EN | STS_EN);
	stand_in_run_here(stand_in_block(0x400002, "90 f4"));
	flow_idle(0, &stand_in.plugin);
	rig_skip();
	cycles = rig.unit.now.cycles;
	nanosleep(&two_ms, NULL);
	flow_idle(0, &stand_in.plugin);
	expect_nothing;
	nanosleep(&two_ms, NULL);
	stand_in_event(0x400004, 0x800000);
	text = rig_text();
	ck_assert_msg(!strncmp(text, "STS ", 4), "%s", text);
	text = strchr(text, ',');
	ck_assert_str_eq(text ? text : "", ", FUP.Far 400004, TIP 800000");
	ck_assert_uint_eq(rig.unit.now.cycles, cycles);
	ck_assert_uint_ge(stand_in.vcpu.slept, 4000000);
}
END_TEST

/* The TSC of the last STS. */
static u64 last_sts(void)
{
	const char *at = rig_text(), *last = NULL;

	while ((at = strstr(at, "STS ")))
		last = at += 4;
	ck_assert_ptr_nonnull(last);
	at = strchr(last, ' ');
	ck_assert_ptr_nonnull(at);
	return strtoull(at, NULL, 16);
}

/* The STS of a MOV CR3 has its own time, not that of the last clock read (4.2.13). */
START_TEST(mov_cr3_has_its_own_time)
{
	const struct timespec half_ms = { .tv_nsec = 500000 };
	u64 first;

	begin_traced(BOTH | STS_ON_CR3 | STS_EN);
	stand_in_run_here(stand_in_block(0x400002, "0f22d8"));
	stand_in_run_here(stand_in_block(0x400005, "0f22d8"));
	first = last_sts();
	nanosleep(&half_ms, NULL);
	stand_in_run_here(stand_in_block(0x400008, "90"));
	ck_assert_uint_ge(last_sts() - first, 500000);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("qemu-plugin/flow-rtit");
	TCase *tcase = tcase_create("all");

	tcase_add_test(tcase, near_branches);
	tcase_add_test(tcase, far_transfers);
	tcase_add_test(tcase, privilege);
	tcase_add_test(tcase, control_registers);
	tcase_add_test(tcase, walks);
	tcase_add_test(tcase, walks_over_no_instruction);
	tcase_add_test(tcase, walks_until_a_fault);
	tcase_add_test(tcase, walks_before_a_branch);
	tcase_add_test(tcase, walks_where_a_block_is_shared);
	tcase_add_test(tcase, trace_stop_is_walked_into);
	tcase_add_test(tcase, sleep);
	tcase_add_test(tcase, mtcs_come_one_by_one);
	tcase_add_test(tcase, what_was_slept_through_has_no_mtc);
	tcase_add_test(tcase, waiting_is_sleep);
	tcase_add_test(tcase, sleep_goes_on);
	tcase_add_test(tcase, mov_cr3_has_its_own_time);
	suite_add_tcase(suite, tcase);
	return suite;
}
