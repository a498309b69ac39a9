// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/handover: the guest's view of the hand-over: its registers, PMI preservation (SDM 3
 * 33.2.7.2), EPT violations of its output, VMXON, a CTL that is not intercepted, and a trace that
 * libipt reads as one.
 */
#include <intel-pt.h>
#include <stdlib.h>

#include "tests/vmm-lib/handover-rig.h"

static const u32 processors[] = { RIG_FULL, RIG_NO_GPA, RIG_LISTS };

#define PROCESSORS ((int)VMPT_ARRAY_SIZE(processors))

static u64 guest_rdmsr(struct rig *rig, u32 msr)
{
	u64 value = 0;

	ck_assert_int_eq(vmpt_vcpu_rdmsr(&rig->v, msr, &value), 0);
	return value;
}

/* ---- registers that the VMM sets ---- */

static int set_cr3(struct rig *rig, u64 cr3)
{
	struct vmpt_cr3_write write = { .old_cr3 = 0x1000,
					.new_cr3 = cr3,
					.cause = VMPT_CR3_RESTORE };

	return vmpt_vcpu_cr3_write(&rig->v, &write);
}

/*
 * With pip_on_restore a PIP is due only if the vCPU has run since its PT state was last
 * written, whether it traced meanwhile or not; a failed entry has not run.
 */
START_TEST(restore_after_run)
{
	bool traces = _i & 1, late = _i & 2;
	struct rig rig;

	rig_init(&rig, processors[_i / 4], RIG_SHOWN);
	rig.v.pip_on_restore = true;
	if (traces)
		rig_guest_on(&rig, 0);
	ck_assert_int_eq(vmpt_vcpu_set_msr(&rig.v, VMPT_MSR_RTIT_CR3_MATCH, 0x5000), 0);
	rig.m.fail_early = !late;
	rig.m.fail_late = late;
	ck_assert_int_eq(rig_round(&rig, 10), 0);
	rig.m.fail_early = false;
	rig.m.fail_late = false;
	if (traces)
		ck_assert_int_eq(set_cr3(&rig, 0x2000), 0);
	ck_assert_int_eq(rig_round(&rig, 10), 0);
	if (!traces)
		rig_guest_on(&rig, 0);
	ck_assert_int_eq(set_cr3(&rig, 0x2000), 1);
	ck_assert_int_eq(set_cr3(&rig, 0x1000), 0); /* the same CR3 */
	/* A failed entry resets nothing. */
	rig.m.fail_early = true;
	ck_assert_int_eq(rig_round(&rig, 10), 0);
	rig.m.fail_early = false;
	ck_assert_int_eq(set_cr3(&rig, 0x2000), 1);
	ck_assert_int_eq(vmpt_vcpu_set_msr(&rig.v, VMPT_MSR_RTIT_CR3_MATCH, 0), 0);
	ck_assert_int_eq(set_cr3(&rig, 0x2000), 0);
	rig_free(&rig);
}
END_TEST

/* XSAVES after an exit, which cleared the processor's TraceEn: as RDMSR of each shows it. */
START_TEST(xsaves_after_run)
{
	static const u32 layout[] = {
		0x570, 0x560, 0x561, 0x571, 0x572, 0x580, 0x581, 0x582, 0x583
	};
	u8 area[VMPT_XSAVE_SIZE];
	u64 shown[9];
	struct rig rig;
	size_t i;

	rig_init(&rig, processors[_i], RIG_SHOWN);
	rig.v.xsave = true;
	rig_guest_on(&rig, 0);
	ck_assert_int_eq(rig_round(&rig, 10), 0);
	for (i = 0; i < 9; i++)
		shown[i] = guest_rdmsr(&rig, layout[i]);
	ck_assert(shown[3] & VMPT_STATUS_TRIGGER_EN);
	ck_assert_int_eq(vmpt_vcpu_xsaves(&rig.v, area), 0);
	ck_assert_mem_eq(area, shown, sizeof(shown));
	ck_assert(!(guest_rdmsr(&rig, 0x571) & VMPT_STATUS_TRIGGER_EN));
	rig_free(&rig);
}
END_TEST

/* ---- PMI preservation ---- */

/* PendTopaPMI stays visible to the guest, and does not pend a second PMI at each entry. */
START_TEST(pend_pmi_is_held)
{
	struct rig rig;
	u32 i;

	rig_init(&rig, processors[_i], RIG_SHOWN);
	rig_guest_on(&rig, VMPT_CTL_INJECT);
	ck_assert_int_eq(rig_round(&rig, 2 * GUEST_PAGE / 8), 0);
	for (i = 0; i < 20; i++) {
		ck_assert_uint_eq(rig.m.pended[BY_GUEST], 1);
		ck_assert_uint_eq(rig.guest.pmis, 1);
		ck_assert(guest_rdmsr(&rig, VMPT_MSR_RTIT_STATUS) & VMPT_STATUS_PEND_PMI);
		if (i == 10)
			rig_guest_ack(&rig);
		ck_assert_int_eq(rig_round(&rig, 1), 0);
	}
	/* A region that is filled while it is held pends a new PMI. */
	ck_assert_int_eq(rig_round(&rig, 2 * GUEST_PAGE / 8), 0);
	ck_assert_uint_eq(rig.m.pended[BY_GUEST], 2);
	ck_assert_uint_eq(rig.guest.pmis, 2);
	ck_assert(guest_rdmsr(&rig, VMPT_MSR_RTIT_STATUS) & VMPT_STATUS_PEND_PMI);
	/* The guest clears it: it stays clear. */
	rig_guest_ack(&rig);
	rig_guest_off(&rig);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&rig.v, VMPT_MSR_RTIT_STATUS,
					 rig.v.regs.status & ~VMPT_STATUS_PEND_PMI),
			 0);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&rig.v, VMPT_MSR_RTIT_CTL, rig.v.regs.ctl | 1), 0);
	ck_assert_int_eq(rig_round(&rig, 1), 0);
	ck_assert(!(guest_rdmsr(&rig, VMPT_MSR_RTIT_STATUS) & VMPT_STATUS_PEND_PMI));
	ck_assert_uint_eq(rig.guest.pmis, 2);
	rig_check_host(&rig);
	rig_free(&rig);
}
END_TEST

/* PendTopaPMI set without a PMI, because TraceEn was cleared first: the next enable pends it. */
START_TEST(pend_pmi_without_pmi)
{
	struct rig rig;
	u32 i;

	rig_init(&rig, processors[_i], RIG_SHOWN);
	rig_guest_on(&rig, VMPT_CTL_INJECT);
	rig.m.no_pmi = true;
	ck_assert_int_eq(rig_round(&rig, 2 * GUEST_PAGE / 8), 0);
	rig.m.no_pmi = false;
	ck_assert_uint_eq(rig.guest.pmis, 0);
	ck_assert(guest_rdmsr(&rig, VMPT_MSR_RTIT_STATUS) & VMPT_STATUS_PEND_PMI);
	for (i = 0; i < 5; i++)
		ck_assert_int_eq(rig_round(&rig, 1), 0);
	ck_assert_uint_eq(rig.m.pended[BY_GUEST], 1);
	ck_assert_uint_eq(rig.guest.pmis, 1);

	/* The same while an earlier one is held. */
	rig_guest_ack(&rig);
	rig.m.no_pmi = true;
	ck_assert_int_eq(rig_round(&rig, 2 * GUEST_PAGE / 8), 0);
	rig.m.no_pmi = false;
	for (i = 0; i < 5; i++)
		ck_assert_int_eq(rig_round(&rig, 1), 0);
	ck_assert_uint_eq(rig.guest.pmis, 2);
	rig_free(&rig);
}
END_TEST

/* The PMI that the enable pends is also the guest's in a shadow's window without an INT in it. */
START_TEST(pend_pmi_in_window)
{
	struct rig rig;
	u32 i;

	rig_init(&rig, RIG_NO_GPA, RIG_SHOWN);
	rig_guest_on(&rig, VMPT_CTL_INJECT);
	rig_guest_off(&rig);
	/* More entries than the shadow has room for. */
	for (i = 0; i < 1000; i++)
		guest_put64(&rig.guest, RIG_TABLE + 8 * i, RIG_REGIONS + i % 64 * GUEST_PAGE);
	guest_put64(&rig.guest, RIG_TABLE + 8 * i, RIG_TABLE | VMPT_TOPA_END);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&rig.v, VMPT_MSR_RTIT_CTL, rig.v.regs.ctl | 1), 0);
	rig.v.regs.status |= VMPT_STATUS_PEND_PMI;
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(rig_round(&rig, 10), 0);
	ck_assert_uint_eq(rig.v.shadow.end, VMPT_SHADOW_WINDOW);
	ck_assert_uint_eq(rig.m.pended[BY_GUEST], 1);
	ck_assert_uint_eq(rig.guest.pmis, 1);
	ck_assert(guest_rdmsr(&rig, VMPT_MSR_RTIT_STATUS) & VMPT_STATUS_PEND_PMI);
	rig_free(&rig);
}
END_TEST

/* ---- D19 ---- */

#define ASYNC (1ULL << 16)

/* The page is brought in: no byte is lost. */
START_TEST(ept_retry)
{
	static const u32 pages[] = { RIG_REGIONS / GUEST_PAGE, RIG_REGIONS / GUEST_PAGE + 1,
				     RIG_TABLE / GUEST_PAGE };
	u32 page = pages[_i], i, violations = 0;
	struct rig rig;

	rig_init(&rig, RIG_FULL, RIG_SHOWN);
	rig_guest_on(&rig, 0);
	for (i = 0; i < 20; i++) {
		if (i % 7 == 0)
			guest_set_kind(&rig.guest, page, 1, VMPT_MEM_UNBACKED);
		ck_assert_int_eq(rig_round(&rig, 200), 0);
		rig_guest_ack(&rig);
		if (!rig.m.violation)
			continue;
		violations++;
		ck_assert_uint_eq(rig.m.violation_gpa / GUEST_PAGE, page);
		ck_assert_int_eq(
			vmpt_vcpu_ept_violation(&rig.v, 2 | ASYNC, rig.m.violation_gpa, true),
			VMPT_EPT_RETRY);
		guest_set_kind(&rig.guest, page, 1, VMPT_MEM_OK);
	}
	ck_assert_uint_ge(violations, 2);
	ck_assert(!(rig.v.regs.status & VMPT_STATUS_ERROR));
	guest_set_kind(&rig.guest, page, 1, VMPT_MEM_OK);
	ck_assert_int_eq(rig_round(&rig, 1), 0);
	ck_assert_uint_eq(rig.m.queued, 0);
	rig_check_streams(&rig);
	rig_free(&rig);
}
END_TEST

/* There is no memory: STATUS.Error, and the guest continues without trace. */
START_TEST(ept_error)
{
	static const struct {
		u32 page;
		u8 why;
	} rows[] = {
		{ RIG_REGIONS / GUEST_PAGE + 1, VMPT_OUTPUT_MEMORY },
		{ RIG_TABLE / GUEST_PAGE, VMPT_OUTPUT_TABLE_MEMORY },
	};
	struct rig rig;
	size_t logged;

	rig_init(&rig, RIG_FULL, RIG_SHOWN);
	rig_guest_on(&rig, 0);
	guest_set_kind(&rig.guest, rows[_i].page, 1, VMPT_MEM_MMIO);
	ck_assert_int_eq(rig_round(&rig, 1000), 0);
	ck_assert(rig.m.violation);
	ck_assert_int_eq(vmpt_vcpu_ept_violation(&rig.v, 2 | ASYNC, rig.m.violation_gpa, false),
			 VMPT_EPT_ERROR);
	ck_assert(rig.v.regs.status & VMPT_STATUS_ERROR);
	ck_assert(!(rig.v.regs.status & VMPT_STATUS_TRIGGER_EN));
	/* What the processor had buffered has nowhere to go. */
	ck_assert_uint_eq(rig.v.events & (VMPT_EVENT_ERROR | VMPT_EVENT_LOST),
			  VMPT_EVENT_ERROR | VMPT_EVENT_LOST);
	ck_assert_uint_eq(rig.v.output_why, rows[_i].why);
	logged = rig.m.logged;
	ck_assert_int_eq(rig_round(&rig, 10), 0);
	ck_assert_uint_eq(rig.m.logged, logged);
	ck_assert(!rig.m.violation);
	ck_assert(guest_rdmsr(&rig, VMPT_MSR_RTIT_STATUS) & VMPT_STATUS_ERROR);
	rig_check_host(&rig);
	rig_free(&rig);
}
END_TEST

/*
 * Whether it was a page of a table or of a region, with tables of several pages: the entries that
 * may be read from here.
 */
static const struct {
	const char *what;
	u64 base;
	u32 index;
	u64 gpa;
	bool single, table;
} ept_places[] = {
	{ "the only page", 0x5000, 3, 0x5018, false, true },
	{ "the current entry's page", 0x5000, 700, 0x6000, false, true },
	{ "the first page, as END leads back", 0x5000, 700, 0x5000, false, true },
	{ "the page of the next entry", 0x5000, 511, 0x6000, false, true },
	{ "a page that comes later", 0x5000, 510, 0x6000, false, false },
	{ "a page that was before", 0x5000, 1024, 0x6000, false, false },
	{ "after the last entry comes the first", 0x5000, (1 << 25) - 1, 0x5000, false, true },
	{ "and not what is after the table", 0x5000, (1 << 25) - 1, 0x10005000, false, false },
	{ "the table's last page", 0x5000, (1 << 25) - 1, 0x10004ff8, false, true },
	{ "a region", 0x5000, 0, 0x9000, false, false },
	{ "a single range", 0x5000, 0, 0x5000, true, false },
};

START_TEST(ept_table_or_region)
{
	struct rig rig;

	rig_init(&rig, RIG_FULL, RIG_SHOWN);
	rig_guest_on(&rig, 0);
	if (ept_places[_i].single)
		rig.v.regs.ctl &= ~VMPT_CTL_TOPA;
	rig.v.regs.output_base = ept_places[_i].base;
	rig.v.regs.output_mask_ptrs = vmpt_pt_mask_ptrs(ept_places[_i].index, 4096);
	ck_assert_int_eq(vmpt_vcpu_ept_violation(&rig.v, ASYNC, ept_places[_i].gpa, true),
			 VMPT_EPT_RETRY);
	ck_assert_uint_eq(rig.v.events, 0);
	ck_assert_int_eq(vmpt_vcpu_ept_violation(&rig.v, ASYNC, ept_places[_i].gpa, false),
			 VMPT_EPT_ERROR);
	ck_assert_msg(rig.v.output_why == (ept_places[_i].table ? VMPT_OUTPUT_TABLE_MEMORY
								: VMPT_OUTPUT_MEMORY),
		      "%s: %s", ept_places[_i].what, vmpt_output_error(rig.v.output_why));
	rig_free(&rig);
}
END_TEST

START_TEST(ept_not_pt)
{
	struct vmpt_pt_regs before;
	struct rig rig;

	rig_init(&rig, RIG_FULL, RIG_SHOWN);
	rig_guest_on(&rig, 0);
	before = rig.v.regs;
	ck_assert_int_eq(vmpt_vcpu_ept_violation(&rig.v, ~ASYNC, 0x1000, false), VMPT_EPT_NOT_PT);
	ck_assert_int_eq(vmpt_vcpu_ept_violation(&rig.v, ~ASYNC, 0x1000, true), VMPT_EPT_NOT_PT);
	/* Before vmpt_vcpu_exit() it can only be retried. */
	rig.v.entered = true;
	ck_assert_int_eq(vmpt_vcpu_ept_violation(&rig.v, ASYNC, 0x1000, false), VMPT_EPT_RETRY);
	ck_assert_int_eq(memcmp(&before, &rig.v.regs, sizeof(before)), 0);
	ck_assert_uint_eq(rig.v.events, 0);
	rig_free(&rig);

	rig_init(&rig, RIG_FULL, VMPT_USE_SYSTEM);
	before = rig.v.regs;
	ck_assert_int_eq(vmpt_vcpu_ept_violation(&rig.v, ASYNC, 0x1000, false), VMPT_EPT_ERROR);
	ck_assert_int_eq(memcmp(&before, &rig.v.regs, sizeof(before)), 0);
	ck_assert_uint_eq(rig.v.events, 0);
	rig_free(&rig);
}
END_TEST

/* ---- CTL ---- */

/* D5: VMXON of a guest whose VMX_MISC[14] is 0; the VM entry loads no TraceEn. */
START_TEST(vmxon)
{
	struct rig rig;
	size_t logged;

	rig_init(&rig, processors[_i], RIG_SHOWN);
	rig_guest_on(&rig, 0);
	ck_assert_int_eq(rig_round(&rig, 10), 0);
	ck_assert(rig.set_ctl & VMPT_CTL_TRACE_EN);
	logged = rig.m.logged;
	vmpt_vcpu_vmxon(&rig.v);
	ck_assert_int_eq(rig_round(&rig, 10), 0);
	ck_assert(!(rig.set_ctl & VMPT_CTL_TRACE_EN));
	ck_assert(!(rig.m.guest_ctl & VMPT_CTL_TRACE_EN));
	ck_assert_uint_eq(rig.m.logged, logged);
	rig_free(&rig);
}
END_TEST

/* In shadow mode too: the value of CTL that the processor stored. */
static int get_ctl(void *opaque, u64 *ctl)
{
	struct rig *rig = opaque;

	*ctl = rig->stored_ctl;
	return rig->fail_set_ctl ? -1 : 0;
}

/* The guest, in which CTL is not intercepted, clears TraceEn and writes other MSRs. */
START_TEST(ctl_not_intercepted)
{
	struct rig rig;
	u64 ctl;

	rig_init(&rig, processors[_i], RIG_SHOWN);
	rig.ops.get_guest_ctl = get_ctl;
	rig_guest_on(&rig, 0);
	ctl = rig.v.regs.ctl;
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), 0);
	ck_assert_int_eq(machine_enter(&rig.m), VMPT_EXIT_NORMAL);
	machine_run(&rig.m, 2);
	ck_assert_int_eq(machine_wrmsr(&rig.m, 0x570, ctl & ~VMPT_CTL_TRACE_EN), 0);
	ck_assert_int_eq(machine_wrmsr(&rig.m, 0x572, 0x4444000), 0);
	ck_assert_int_eq(machine_wrmsr(&rig.m, 0x583, 0x555000), 0);
	rig.stored_ctl = rig.m.regs.ctl;
	machine_exit(&rig.m);
	ck_assert_int_eq(vmpt_vcpu_exit(&rig.v, VMPT_EXIT_NORMAL), 0);
	ck_assert_uint_eq(rig.v.regs.ctl, ctl & ~VMPT_CTL_TRACE_EN);
	ck_assert_uint_eq(rig.v.regs.cr3_match, 0x4444000);
	ck_assert_uint_eq(rig.v.regs.addr[3], 0x555000);
	rig_check_host(&rig);
	/* If it does not trace, nothing is switched, so nothing is read. */
	rig.stored_ctl = ~0ULL;
	ck_assert_int_eq(rig_round(&rig, 2), 0);
	ck_assert_uint_eq(rig.v.regs.ctl, ctl & ~VMPT_CTL_TRACE_EN);
	rig_check_streams(&rig);
	rig_free(&rig);
}
END_TEST

/* The ToPA bit that the shadow needs is not the guest's. */
START_TEST(ctl_of_shadow)
{
	struct rig rig;

	rig_init(&rig, RIG_NO_GPA, RIG_SHOWN);
	rig.ops.get_guest_ctl = get_ctl;
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&rig.v, VMPT_MSR_RTIT_OUTPUT_BASE, 0x10000), 0);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&rig.v, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0x1fff), 0);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&rig.v, VMPT_MSR_RTIT_CTL, 0x2005), 0);
	rig.stored_ctl = 0x2105;
	rig.unchecked = true; /* its other MSRs are 0 */
	ck_assert_int_eq(rig_round(&rig, 2), 0);
	ck_assert_uint_eq(rig.set_ctl, 0x2105);
	ck_assert_uint_eq(rig.v.regs.ctl, 0x2005);
	rig.stored_ctl = 0x2104;
	ck_assert_int_eq(rig_round(&rig, 2), 0);
	ck_assert_uint_eq(rig.v.regs.ctl, 0x2004);
	rig_free(&rig);
}
END_TEST

/* Values that the guest may not have are not accepted, and it stops tracing. */
START_TEST(ctl_refused)
{
	struct rig rig;

	rig_init(&rig, processors[_i], RIG_SHOWN);
	rig.ops.get_guest_ctl = get_ctl;
	rig_guest_on(&rig, 0);
	rig.stored_ctl = rig.v.regs.ctl;
	ck_assert_int_eq(rig_round(&rig, 2), 0);
	ck_assert_uint_eq(rig.v.regs.ctl, rig.stored_ctl);
	rig.stored_ctl = rig.v.regs.ctl | VMPT_CTL_FABRIC_EN;
	ck_assert_int_eq(rig_round(&rig, 2), -VMPT_E_CONTROLS);
	ck_assert_uint_eq(rig.v.regs.ctl, RIG_CTL);
	rig_check_host(&rig);
	/* The same if it cannot be read; the next entry writes known values. */
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&rig.v, VMPT_MSR_RTIT_CTL, RIG_CTL | 1), 0);
	ck_assert_int_eq(vmpt_vcpu_enter(&rig.v), 0);
	rig.fail_set_ctl = true;
	ck_assert_int_eq(vmpt_vcpu_exit(&rig.v, VMPT_EXIT_NORMAL), -VMPT_E_HARDWARE);
	rig_check_host(&rig);
	rig_free(&rig);
}
END_TEST

/* If the processor uses a CR3 of the VMM, its CR3_MATCH is not the guest's. */
START_TEST(ctl_with_cr3_given)
{
	struct rig rig;

	rig_init(&rig, RIG_FULL, RIG_SHOWN);
	rig.ops.get_guest_ctl = get_ctl;
	rig_guest_on(&rig, VMPT_CTL_CR3_FILTER);
	vmpt_vcpu_cr3_given(&rig.v, true, 0x2222000, 0x9999000, false);
	rig.stored_ctl = rig.v.regs.ctl & ~VMPT_CTL_TRACE_EN;
	ck_assert_int_eq(rig_round(&rig, 2), 0);
	ck_assert(!(rig.v.regs.ctl & VMPT_CTL_TRACE_EN));
	ck_assert_uint_eq(rig.v.regs.cr3_match, 0x2222000);
	rig_free(&rig);
}
END_TEST

/* ---- events and the trace ---- */

/* STOP at the end of a line of regions. */
START_TEST(stop_is_reported)
{
	struct rig rig;

	rig_init(&rig, processors[_i], RIG_SHOWN);
	rig.line = true;
	rig_guest_on(&rig, 0);
	while (!(rig.v.events & VMPT_EVENT_STOP) && rig.m.entries < 100)
		ck_assert_int_eq(rig_round(&rig, 300), 0);
	ck_assert(rig.v.regs.status & VMPT_STATUS_STOPPED);
	ck_assert_uint_eq(rig.m.logged, 4 * GUEST_PAGE);
	rig.v.events = 0;
	ck_assert_int_eq(rig_round(&rig, 300), 0);
	ck_assert_uint_eq(rig.v.events & VMPT_EVENT_STOP, 0);
	ck_assert_uint_eq(rig.m.logged, 4 * GUEST_PAGE);
	rig_check_streams(&rig);
	rig_free(&rig);
}
END_TEST

/* The processor meets a malformed entry. */
START_TEST(error_is_reported)
{
	struct rig rig;

	rig_init(&rig, processors[_i], RIG_SHOWN);
	rig_guest_on(&rig, 0);
	guest_put64(&rig.guest, RIG_TABLE + 16, 0x3000 | 1 << 1);
	if (rig.plan.shadow)
		ck_assert(vmpt_shadow_invalidate(&rig.v, RIG_TABLE, GUEST_PAGE));
	while (!(rig.v.events & VMPT_EVENT_ERROR) && rig.m.entries < 100)
		ck_assert_int_eq(rig_round(&rig, 300), 0);
	ck_assert(rig.v.regs.status & VMPT_STATUS_ERROR);
	ck_assert_uint_eq(vmpt_pt_topa_index(&rig.v.regs), 2);
	ck_assert_uint_eq(rig.m.logged, 2 * GUEST_PAGE);
	if (rig.plan.shadow)
		ck_assert_uint_eq(rig.v.output_why, VMPT_OUTPUT_RESERVED);
	rig_check_host(&rig);
	rig_free(&rig);
}
END_TEST

/* Many entries and exits, with NMIs and PMIs between: libipt reads one stream without a gap. */
START_TEST(libipt_reads)
{
	struct pt_packet_decoder *ipt;
	struct pt_config config;
	struct pt_packet packet;
	u32 i, pges = 0, tips = 0, pgds = 0, psbs = 0;
	struct rig rig;
	u8 *trace;
	int size;

	rig_init(&rig, processors[_i], RIG_SHOWN);
	rig.line = true;
	rig.regions = 64;
	rig.nmi_steps = ~0u;
	rig_host_on(&rig);
	rig.host_runs = 20;
	rig_guest_on(&rig, 0);
	for (i = 0; i < 900; i++) {
		if (i % 100 == 50)
			vmpt_vcpu_vmptrld(&rig.v);
		ck_assert_int_eq(rig_round(&rig, i % 50), 0);
		rig_guest_ack(&rig);
	}
	ck_assert_uint_lt(rig.m.logged, 64 * GUEST_PAGE);
	ck_assert_uint_gt(rig.m.logged, 32 * GUEST_PAGE);
	rig_check_streams(&rig);
	trace = malloc(rig.m.logged);
	guest_get(&rig.guest, RIG_REGIONS, trace, rig.m.logged);
	pt_config_init(&config);
	config.begin = trace;
	config.end = trace + rig.m.logged;
	ipt = pt_pkt_alloc_decoder(&config);
	ck_assert_int_eq(pt_pkt_sync_set(ipt, 0), 0);
	while ((size = pt_pkt_next(ipt, &packet, sizeof(packet))) > 0) {
		psbs += packet.type == ppt_psb;
		pges += packet.type == ppt_tip_pge;
		pgds += packet.type == ppt_tip_pgd;
		tips += packet.type == ppt_tip;
		if (packet.type == ppt_tip)
			ck_assert_uint_eq(packet.payload.ip.ip, 0x0a9876543210);
	}
	ck_assert_int_eq(size, -pte_eos);
	/* The machine's numbers, and not one packet more. */
	ck_assert_uint_eq(pges, 900);
	ck_assert_uint_eq(pgds, 900);
	ck_assert_uint_eq(psbs, 1 + 9);
	ck_assert_uint_eq(rig.m.logged, 900 * 8 + 10 * 18 + 8 * tips);
	pt_pkt_free_decoder(ipt);
	free(trace);
	rig_free(&rig);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("handover-guest");
	TCase *tc = tcase_create("handover-guest");

	tcase_add_loop_test(tc, pend_pmi_is_held, 0, PROCESSORS);
	tcase_add_loop_test(tc, restore_after_run, 0, 4 * PROCESSORS);
	tcase_add_loop_test(tc, xsaves_after_run, 0, PROCESSORS);
	tcase_add_loop_test(tc, pend_pmi_without_pmi, 0, PROCESSORS);
	tcase_add_test(tc, pend_pmi_in_window);
	tcase_add_loop_test(tc, ept_retry, 0, 3);
	tcase_add_loop_test(tc, ept_error, 0, 2);
	tcase_add_loop_test(tc, ept_table_or_region, 0, VMPT_ARRAY_SIZE(ept_places));
	tcase_add_test(tc, ept_not_pt);
	tcase_add_loop_test(tc, vmxon, 0, PROCESSORS);
	tcase_add_loop_test(tc, ctl_not_intercepted, 0, PROCESSORS);
	tcase_add_loop_test(tc, ctl_refused, 0, PROCESSORS);
	tcase_add_test(tc, ctl_of_shadow);
	tcase_add_test(tc, ctl_with_cr3_given);
	tcase_add_loop_test(tc, stop_is_reported, 0, PROCESSORS);
	tcase_add_loop_test(tc, error_is_reported, 0, PROCESSORS);
	tcase_add_loop_test(tc, libipt_reads, 0, PROCESSORS);
	suite_add_tcase(suite, tc);
	return suite;
}
