// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/rtit/hw.c: a guest in an SMM that the VMM emulates, or in the root operation of its own
 * VMX (2.6): by hand from rows 36 to 38 of Table 19, and against a unit that itself executes SMI
 * and RSM.
 */
#include "tests/vmm-lib/rtit/rig.h"

#define BASE	0x10000u
#define HANDLER 0x38000u
#define PSB	"c0 00 00 00 00 00 00 00 00"
#define LESS	VMPT_RTIT_CTL_LESS_PKTS
#define MTC	VMPT_RTIT_CTL_MTC_EN

static struct rig rig;

static void setup(void)
{
	rig_init(&rig, VMPT_RTIT_CONTIGUOUS, 0);
}

static void teardown(void)
{
	rig_free(&rig);
}

static void load(void)
{
	ck_assert_int_eq(vmpt_rtit_vcpu_load(&rig.v), 0);
}

static void hold(bool held)
{
	ck_assert_int_eq(vmpt_rtit_vcpu_hold(&rig.v, held), 0);
}

static void sync(void)
{
	ck_assert_int_eq(vmpt_rtit_vcpu_sync(&rig.v), 0);
}

static const struct vmpt_rtit_mode handler_mode = { .cr3 = 0x1000, .paging = false };

/* What runs before, during and after it; in the handler both CPLs, a CR3 and time. */
static void guest_before(struct vmpt_rtit_unit *unit)
{
	vmpt_rtit_unit_jmp_indirect(unit, 0x1002, 0x1100);
	vmpt_rtit_unit_jcc(unit, true, 0x1102, 0x1110);
}

static void guest_handler(struct vmpt_rtit_unit *unit)
{
	struct vmpt_rtit_far iret = {
		.ip = HANDLER + 0x22,
		.target = 0x39000,
		.mode = { .cpl = 3, .cr3 = 0x1000, .paging = true },
		.is_insn = true,
	};
	struct vmpt_rtit_clocks now = unit->now;

	vmpt_rtit_unit_jmp_indirect(unit, HANDLER + 2, HANDLER + 0x20);
	vmpt_rtit_unit_far(unit, &iret);
	vmpt_rtit_unit_call(unit, 0x39005, 0x39100);
	now.tsc += 0x200;
	now.cycles += 0x200;
	vmpt_rtit_unit_time(unit, &now);
	vmpt_rtit_unit_ret(unit, 0x39101, 0x39005);
}

static void guest_after(struct vmpt_rtit_unit *unit)
{
	struct vmpt_rtit_clocks now = unit->now;

	now.cycles += 7;
	vmpt_rtit_unit_time(unit, &now);
	vmpt_rtit_unit_jmp_indirect(unit, 0x1112, 0x1200);
}

/* The SMI causes an exit, and so does the RSM. */
static void smm_run(void)
{
	struct vmpt_rtit_mode mode = rig.in;

	rig_enter(&rig, 0x1000);
	guest_before(&rig.unit);
	rig_exit(&rig, 0x1110);
	mode = rig.in;
	hold(true);
	rig.in = handler_mode;
	rig_enter(&rig, HANDLER);
	guest_handler(&rig.unit);
	rig_exit(&rig, 0x39005);
	rig.in = mode;
	hold(false);
	rig_enter(&rig, 0x1110);
	guest_after(&rig.unit);
	rig_exit(&rig, 0x1200);
	sync();
}

START_TEST(smm)
{
	rig_program(&rig, BASE, 0xffff, RIG_ON);
	load();
	smm_run();
	ck_assert_uint_eq(rig_rd(&rig, 0x772), 9 + 3 + 3 + 1 + 3 + 3 + 3 + 3);
	rig_expect(&rig, BASE, PSB " 84 00 10 b4 00 11 03 8c 10 11 84 10 11 b4 00 12 8c 00 12");
}
END_TEST

/* ---- like a processor's own SMI and RSM ---- */

static u8 native_bytes[0x10000];

static int native_store(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	(void)opaque;
	ck_assert(pa >= BASE && pa + len <= BASE + sizeof(native_bytes));
	memcpy(native_bytes + (pa - BASE), bytes, len);
	return 0;
}

static const struct vmpt_rtit_sink native_sink = { native_store, NULL };

/* The guest's own MSRs in a unit of its own, except for CTL; it is entered as by a VMM. */
static void native_init(struct vmpt_rtit_unit *unit)
{
	static const u32 msrs[] = { 0x760, 0x762, 0x76c, 0x770, 0x771, 0x772, 0x777 };
	struct vmpt_rtit_unit_config config = { .sink = &native_sink };
	u64 ctl = rig.v.regs.ctl, value;
	size_t i;

	memset(native_bytes, 0, sizeof(native_bytes));
	ck_assert_int_eq(vmpt_rtit_unit_init(unit, &config), 0);
	vmpt_rtit_unit_vmxon(unit, 0);
	vmpt_rtit_unit_time(unit, &rig.unit.now);
	ck_assert_int_eq(vmpt_rtit_unit_rdmsr(unit, 0x768, &value), 0);
	for (i = 0; i < VMPT_ARRAY_SIZE(msrs); i++)
		ck_assert_int_eq(vmpt_rtit_unit_wrmsr(unit, msrs[i],
						      *vmpt_rtit_reg(&rig.v.regs, msrs[i]), 0),
				 0);
	vmpt_rtit_unit_wrmsr(unit, 0x768, ctl & ~VMPT_RTIT_CTL_TRACE_ACTIVE, 0);
	vmpt_rtit_unit_wrmsr(unit, 0x768, ctl, 0);
}

static void native_run(struct vmpt_rtit_unit *unit)
{
	static const struct vmpt_rtit_mode host;
	struct vmpt_rtit_mode mode;

	vmpt_rtit_unit_vmentry(unit, 0x1000, &rig.in);
	guest_before(unit);
	mode = unit->mode;
	vmpt_rtit_unit_smi(unit, 0x1110);
	unit->mode = handler_mode;
	guest_handler(unit);
	vmpt_rtit_unit_rsm(unit, 0x1110, &mode);
	guest_after(unit);
	vmpt_rtit_unit_vmexit(unit, 0x1200, &host);
	vmpt_rtit_unit_drain(unit);
}

START_TEST(as_an_smi)
{
	static const struct {
		u64 ctl, events, cpl;
		bool packets;
	} rows[] = {
		{ RIG_ON, 0x37, 0, true },
		{ RIG_ON | MTC, 0x37, 0, true },
		{ RIG_ON | MTC | LESS, 0x37, 0, true },
		{ RIG_ON | VMPT_RTIT_CTL_CYCLE_ACC, 0x37, 0, true },
		{ RIG_ON | VMPT_RTIT_CTL_CYCLE_ACC | LESS, 0x37, 3, true },
		{ RIG_ON | VMPT_RTIT_CTL_CR3_EN, 0x37, 0, true },
		{ RIG_ON & ~VMPT_RTIT_CTL_OS, 0x37, 3, true },
		{ RIG_ON & ~VMPT_RTIT_CTL_OS, 0x37, 0, false },
		{ RIG_ON & ~VMPT_RTIT_CTL_USER, 0x37, 0, true },
		/* The guest is in range 0, the handler is not. */
		{ RIG_ON | MTC | LESS, 0x30, 0, true },
		/* A TraceStop in the handler: none, because ContextEn is 0. */
		{ RIG_ON, 0x07, 0, true },
	};
	static u8 bytes[0x10000];
	struct vmpt_rtit_unit native;

	rig_program(&rig, BASE, 0xffff, RIG_CTL);
	rig_wr(&rig, 0x76c, rows[_i].events);
	rig_wr(&rig, 0x760, rows[_i].events == 0x07 ? HANDLER : 0x1000);
	rig_wr(&rig, 0x762, rows[_i].events == 0x07 ? HANDLER + 0xfff : 0x1fff);
	rig_wr(&rig, 0x777, 0x1000);
	rig_wr(&rig, 0x768, rows[_i].ctl);
	rig.in.cpl = (u8)rows[_i].cpl;
	native_init(&native);
	native_run(&native);
	load();
	rig.in.cpl = (u8)rows[_i].cpl;
	smm_run();
	rig_get(&rig, BASE, bytes, sizeof(bytes));
	ck_assert(!memcmp(bytes, native_bytes, sizeof(bytes)));
	ck_assert_uint_eq(rig_rd(&rig, 0x772), native.regs.offset);
	ck_assert(rows[_i].packets == (native.regs.offset > 9 + 4));
	ck_assert_uint_eq(rig_rd(&rig, 0x768), rows[_i].ctl);
	ck_assert_uint_eq(rig_rd(&rig, 0x76b), native.regs.cntp);
}
END_TEST

/* ---- what the guest sees ---- */

static u64 status(void)
{
	u64 value = 0;

	ck_assert_int_eq(vmpt_rtit_vcpu_rdmsr(&rig.v, 0x769, true, &value), 0);
	return value;
}

START_TEST(registers)
{
	rig_program(&rig, BASE, 0xffff, RIG_ON);
	ck_assert_uint_eq(status() & VMPT_RTIT_STATUS_CONTEXT_EN, VMPT_RTIT_STATUS_CONTEXT_EN);
	hold(true); /* not loaded */
	ck_assert_uint_eq(status() & VMPT_RTIT_STATUS_CONTEXT_EN, 0);
	load();
	ck_assert_uint_eq(status(), VMPT_RTIT_STATUS_TRIGGER_EN);
	ck_assert_uint_eq(rig_rd(&rig, 0x768), RIG_ON);
	ck_assert_uint_eq(rig.unit.regs.ctl, RIG_ON & ~(VMPT_RTIT_CTL_OS | VMPT_RTIT_CTL_USER));
	/* The handler writes CTL and moves the output: it is still not traced. */
	rig_wr(&rig, 0x768, RIG_CTL);
	rig_wr(&rig, 0x768, RIG_ON | VMPT_RTIT_CTL_CMPRS_RET);
	rig_wr(&rig, 0x770, 0x20000);
	sync();
	rig_enter(&rig, HANDLER);
	guest_handler(&rig.unit);
	rig_exit(&rig, HANDLER);
	ck_assert_uint_eq(rig_rd(&rig, 0x772), 9 + 9 + 9); /* PSBs */
	/* It persists across a swap, and no WRMSR is made that changes nothing. */
	ck_assert_int_eq(vmpt_rtit_vcpu_unload(&rig.v), 0);
	load();
	rig_forget(&rig);
	hold(true);
	ck_assert_uint_eq(rig.logged, 0);
	hold(false);
	ck_assert_uint_eq(rig.logged, 1);
	ck_assert_uint_eq(rig.unit.regs.ctl, RIG_ON | VMPT_RTIT_CTL_CMPRS_RET);
	ck_assert_uint_eq(status() & VMPT_RTIT_STATUS_CONTEXT_EN, VMPT_RTIT_STATUS_CONTEXT_EN);
}
END_TEST

/* No PIP (4.2.10: ContextEn), an STS as in Table 17. */
START_TEST(cr3)
{
	static const struct vmpt_rtit_cr_write w = { 0x2000, true, true };
	u64 sts = RIG_ON | VMPT_RTIT_CTL_STS_EN | VMPT_RTIT_CTL_STS_ON_CR3;

	rig_program(&rig, BASE, 0xffff, RIG_ON);
	rig_wr(&rig, 0x769, 1);
	hold(true);
	ck_assert_int_eq(vmpt_rtit_vcpu_cr_write(&rig.v, &w), 0);
	rig_wr(&rig, 0x768, sts | LESS);
	ck_assert_int_eq(vmpt_rtit_vcpu_cr_write(&rig.v, &w), 0);
	rig_wr(&rig, 0x768, sts);
	ck_assert_int_eq(vmpt_rtit_vcpu_cr_write(&rig.v, &w), 1);
	rig_expect(&rig, BASE, "d4 8f 00 00 00 00 00 00");
	hold(false);
	ck_assert_int_eq(vmpt_rtit_vcpu_cr_write(&rig.v, &w), 1);
	rig_expect(&rig, BASE + 7, "c3 00 20 00 00 00 d4 8f");
}
END_TEST

/* A TraceStop before the SMI is not undone. */
START_TEST(stopped_before)
{
	rig_program(&rig, BASE, 0xffff, RIG_ON);
	rig_wr(&rig, 0x762, 0x9100);
	rig_wr(&rig, 0x76c, 0x07);
	load();
	rig_enter(&rig, 0xa000);
	vmpt_rtit_unit_jmp(&rig.unit, 0xa005, 0x9000);
	rig_exit(&rig, 0x9000);
	hold(true);
	hold(false);
	ck_assert(!rig.unit.trigger_en);
	ck_assert_uint_eq(rig_rd(&rig, 0x768), RIG_CTL | VMPT_RTIT_CTL_TRACE_EN);
}
END_TEST

START_TEST(ends)
{
	rig_program(&rig, BASE, 0xffff, RIG_ON);
	load();
	rig.fail_msr = 0x768;
	ck_assert_int_eq(vmpt_rtit_vcpu_hold(&rig.v, true), -VMPT_E_HARDWARE);
	rig.fail_msr = 0;
	hold(true);
	ck_assert_int_eq(vmpt_rtit_vcpu_unload(&rig.v), 0);
	ck_assert_int_eq(vmpt_rtit_vcpu_reset(&rig.v), 0);
	ck_assert(!rig.v.held);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("rtit-hold");
	TCase *tc = tcase_create("hold");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, smm);
	tcase_add_loop_test(tc, as_an_smi, 0, 11);
	tcase_add_test(tc, registers);
	tcase_add_test(tc, cr3);
	tcase_add_test(tc, stopped_before);
	tcase_add_test(tc, ends);
	suite_add_tcase(suite, tc);
	return suite;
}
