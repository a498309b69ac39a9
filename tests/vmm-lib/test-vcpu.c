// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmm-lib/vcpu.c: what init refuses, RESET, SMI and RSM, VMXON. */
#include "tests/vmm-lib/bed.h"

static struct bed bed;

static void setup(void)
{
	bed_init(&bed);
}

static void teardown(void)
{
	bed_free(&bed);
}

/* ---- init ---- */

static void ok(void)
{
}

static void no_host(void)
{
	bed.config.host = NULL;
}

static void no_guest(void)
{
	bed.config.guest = NULL;
}

static void no_plan(void)
{
	bed.config.plan = NULL;
}

static void no_ops(void)
{
	bed.config.ops = NULL;
}

static void no_read(void)
{
	bed.ops.guest_read = NULL;
}

static void no_write(void)
{
	bed.ops.guest_write = NULL;
}

static void no_pmi(void)
{
	bed.ops.inject_pmi = NULL;
}

static int hw_rdmsr(void *opaque, u32 msr, u64 *value)
{
	(void)opaque, (void)msr;
	*value = 0;
	return 0;
}

static int hw_wrmsr(void *opaque, u32 msr, u64 value)
{
	(void)opaque, (void)msr, (void)value;
	return 0;
}

static int set_ctl(void *opaque, u64 ctl)
{
	(void)opaque, (void)ctl;
	return 0;
}

static void all_hw(void)
{
	bed.ops.hw_rdmsr = hw_rdmsr;
	bed.ops.hw_wrmsr = hw_wrmsr;
	bed.ops.set_guest_ctl = set_ctl;
}

static void hw_no_rdmsr(void)
{
	all_hw();
	bed.ops.hw_rdmsr = NULL;
}

static void hw_no_wrmsr(void)
{
	all_hw();
	bed.ops.hw_wrmsr = NULL;
}

static void hw_no_ctl(void)
{
	all_hw();
	bed.ops.set_guest_ctl = NULL;
}

static void host_only_hw(void)
{
	bed_no_pt(&bed, VMPT_USE_HOST);
	all_hw();
	bed.ops.set_guest_ctl = NULL;
}

static void shadow_good(void)
{
	bed_shadow(&bed);
}

static void shadow_none(void)
{
	bed_shadow(&bed);
	bed.config.shadow = NULL;
}

static void shadow_no_pages(void)
{
	bed_shadow(&bed);
	bed.shadow.pages = 0;
}

static void shadow_many_pages(void)
{
	bed_shadow(&bed);
	bed.shadow.pages = VMPT_SHADOW_PAGES_MAX + 1;
}

static void shadow_no_page(void)
{
	bed_shadow(&bed);
	bed.shadow.page[BED_SHADOW_PAGES - 1] = NULL;
}

static void shadow_unaligned(void)
{
	bed_shadow(&bed);
	bed.shadow.page_hpa[1] += 8;
}

static void shadow_no_origin(void)
{
	bed_shadow(&bed);
	bed.shadow.origin = NULL;
}

static void shadow_no_translate(void)
{
	bed_shadow(&bed);
	bed.ops.guest_translate = NULL;
}

static void none(void)
{
	bed_no_pt(&bed, VMPT_USE_NONE);
}

static void system_wide(void)
{
	bed_no_pt(&bed, VMPT_USE_SYSTEM);
}

static void no_pt_no_callbacks(void)
{
	bed_no_pt(&bed, VMPT_USE_SYSTEM);
	memset(&bed.ops, 0, sizeof(bed.ops));
}

static void system_with_pt(void)
{
	bed.plan = (struct vmpt_vmx_plan){ .use = VMPT_USE_SYSTEM };
}

static void host_with_pt(void)
{
	bed.plan = (struct vmpt_vmx_plan){ .use = VMPT_USE_HOST };
}

static void guest_without_pt(void)
{
	bed_no_pt(&bed, VMPT_USE_NONE);
	bed.plan = (struct vmpt_vmx_plan){ .use = VMPT_USE_GUEST, .guest_pt = true };
}

static void use_unknown(void)
{
	bed.plan.use = VMPT_USES;
}

static void plan_by_hand(void)
{
	bed.plan.guest_pt = false;
}

static void bad_unbacked(void)
{
	bed.config.on_unbacked = 3;
}

static void bad_mmio(void)
{
	bed.config.on_mmio = 3;
}

static void bad_apic(void)
{
	bed.config.on_apic = 3;
}

static void bad_restricted(void)
{
	bed.config.on_restricted = 3;
}

static void maxphyaddr_over(void)
{
	bed.shown.cpuid.maxphyaddr = 47;
}

static void seven_ranges(void)
{
	vmpt_pt_cap_set(&bed.shown.cpuid, VMPT_CAP_RANGES, 7);
}

static void fabric(void)
{
	vmpt_pt_cap_set(&bed.host.cpuid, VMPT_CAP_FABRIC, 1);
	vmpt_pt_cap_set(&bed.shown.cpuid, VMPT_CAP_FABRIC, 1);
}

static void pt_for_nested(void)
{
	bed.shown.vmx = VMPT_VMX_PT;
}

static void no_pt_nested(void)
{
	bed_no_pt(&bed, VMPT_USE_NONE);
	bed.shown.vmx = VMPT_VMX_PT;
}

static const struct {
	const char *name;
	void (*change)(void);
	int err;
	const char *field; /* NULL: not looked at, caps-check's */
} inits[] = {
	{ "as it is", ok, 0, NULL },
	{ "all callbacks of hardware", all_hw, 0, NULL },
	{ "a good shadow", shadow_good, 0, NULL },
	{ "no PT, nobody traces", none, 0, NULL },
	{ "no PT, system-wide", system_wide, 0, NULL },
	{ "no PT needs no callbacks", no_pt_no_callbacks, 0, NULL },
	{ "host-only sets no guest CTL", host_only_hw, 0, NULL },
	{ "no PT, and none for L1's guests", no_pt_nested, 0, NULL },
	{ "no host", no_host, -VMPT_E_INVAL, "host" },
	{ "no guest", no_guest, -VMPT_E_INVAL, "guest" },
	{ "no plan", no_plan, -VMPT_E_INVAL, "plan" },
	{ "no ops", no_ops, -VMPT_E_INVAL, "ops" },
	{ "no guest_read", no_read, -VMPT_E_INVAL, "ops.guest_read" },
	{ "no guest_write", no_write, -VMPT_E_INVAL, "ops.guest_write" },
	{ "no inject_pmi", no_pmi, -VMPT_E_INVAL, "ops.inject_pmi" },
	{ "no hw_rdmsr beside others", hw_no_rdmsr, -VMPT_E_INVAL, "ops.hw_rdmsr" },
	{ "no hw_wrmsr beside others", hw_no_wrmsr, -VMPT_E_INVAL, "ops.hw_wrmsr" },
	{ "no set_guest_ctl beside others", hw_no_ctl, -VMPT_E_INVAL, "ops.set_guest_ctl" },
	{ "shadow without memory", shadow_none, -VMPT_E_INVAL, "shadow" },
	{ "shadow of 0 pages", shadow_no_pages, -VMPT_E_INVAL, "shadow.pages" },
	{ "shadow of 17 pages", shadow_many_pages, -VMPT_E_INVAL, "shadow.pages" },
	{ "a page of the shadow missing", shadow_no_page, -VMPT_E_INVAL, "shadow.page" },
	{ "a page of the shadow unaligned", shadow_unaligned, -VMPT_E_INVAL, "shadow.page_hpa" },
	{ "shadow without origins", shadow_no_origin, -VMPT_E_INVAL, "shadow.origin" },
	{ "shadow, no guest_translate", shadow_no_translate, -VMPT_E_INVAL, "ops.guest_translate" },
	{ "PT shown under system-wide use", system_with_pt, -VMPT_E_CONTROLS,
	  "CPUID.7.0:EBX[25] Intel PT" },
	{ "PT shown under host-only use", host_with_pt, -VMPT_E_CONTROLS,
	  "CPUID.7.0:EBX[25] Intel PT" },
	{ "PT planned and not shown", guest_without_pt, -VMPT_E_CONTROLS,
	  "CPUID.7.0:EBX[25] Intel PT" },
	{ "no such use", use_unknown, -VMPT_E_CONTROLS, "plan.use" },
	{ "a plan that contradicts itself", plan_by_hand, -VMPT_E_CONTROLS, "plan.use" },
	{ "policy of unbacked memory", bad_unbacked, -VMPT_E_INVAL, "on_unbacked" },
	{ "policy of MMIO", bad_mmio, -VMPT_E_INVAL, "on_mmio" },
	{ "policy of the APIC's page", bad_apic, -VMPT_E_INVAL, "on_apic" },
	{ "policy of SMRR memory", bad_restricted, -VMPT_E_INVAL, "on_restricted" },
	{ "MAXPHYADDR over the host's", maxphyaddr_over, -VMPT_E_CAPS, NULL },
	{ "RANGECNT 7", seven_ranges, -VMPT_E_CAPS, NULL },
	{ "FabricEn", fabric, -VMPT_E_CAPS, NULL },
	{ "PT shown to L1's guests", pt_for_nested, -VMPT_E_CAPS, NULL },
};

START_TEST(init)
{
	int err;

	inits[_i].change();
	memset(&bed.v, 0xa5, sizeof(bed.v));
	err = vmpt_vcpu_init(&bed.v, &bed.config, &bed.why);
	ck_assert_msg(err == inits[_i].err, "%s: %d", inits[_i].name, err);
	if (!err) {
		/* a vCPU after a cold reset, whatever its memory held */
		ck_assert_uint_eq(bed.v.regs.ctl | bed.v.regs.status | bed.v.events, 0);
		ck_assert_uint_eq(bed.v.regs.output_mask_ptrs, 0x7f);
		ck_assert_uint_eq(bed.v.owner, VMPT_OWNER_HOST);
		ck_assert_uint_eq(bed.v.guest.vmx, 0);
		return;
	}
	ck_assert(bed.why.field && bed.why.rule);
	if (inits[_i].field)
		ck_assert_str_eq(bed.why.field, inits[_i].field);
	ck_assert_int_eq(vmpt_vcpu_init(&bed.v, &bed.config, NULL), err);
}
END_TEST

START_TEST(init_null)
{
	ck_assert_int_eq(vmpt_vcpu_init(NULL, &bed.config, &bed.why), -VMPT_E_INVAL);
	ck_assert_int_eq(vmpt_vcpu_init(&bed.v, NULL, NULL), -VMPT_E_INVAL);
}
END_TEST

START_TEST(init_keeps)
{
	bed.config.on_unbacked = VMPT_ON_MEM_RETRY;
	bed.config.on_mmio = VMPT_ON_MEM_DROP;
	bed.config.on_restricted = VMPT_ON_MEM_DROP;
	bed.config.xsave = true;
	bed.config.pip_on_restore = true;
	bed.config.tsc_multiplier = 1ULL << 47;
	bed_start(&bed);
	ck_assert_uint_eq(bed.v.on_mem[VMPT_MEM_UNBACKED], VMPT_ON_MEM_RETRY);
	ck_assert_uint_eq(bed.v.on_mem[VMPT_MEM_MMIO], VMPT_ON_MEM_DROP);
	ck_assert_uint_eq(bed.v.on_mem[VMPT_MEM_APIC], VMPT_ON_MEM_ERROR);
	ck_assert_uint_eq(bed.v.on_mem[VMPT_MEM_RESTRICTED], VMPT_ON_MEM_DROP);
	ck_assert(bed.v.xsave && bed.v.pip_on_restore);
	ck_assert_uint_eq(bed.v.tsc_multiplier, 1ULL << 47);
	ck_assert_uint_eq(bed.v.guest.vmx, 0);
	ck_assert_ptr_null(bed.v.shadow.memory);
	/* component 8 means nothing where there is no PT */
	bed_no_pt(&bed, VMPT_USE_NONE);
	bed_start(&bed);
	ck_assert(!bed.v.xsave);
}
END_TEST

/* D8: what the processor lacks is known, so that nobody switches it. */
START_TEST(host_rules)
{
	vmpt_pt_cap_set(&bed.host.cpuid, VMPT_CAP_CR3_FILTER, 0);
	vmpt_pt_cap_set(&bed.host.cpuid, VMPT_CAP_RANGES, 1);
	bed_hide(&bed, VMPT_CAP_CR3_FILTER);
	vmpt_pt_cap_set(&bed.shown.cpuid, VMPT_CAP_RANGES, 1);
	bed_start(&bed);
	ck_assert(!vmpt_pt_msr_exists(&bed.v.host_rules, VMPT_MSR_RTIT_CR3_MATCH));
	ck_assert(vmpt_pt_msr_exists(&bed.v.host_rules, 0x581));
	ck_assert(!vmpt_pt_msr_exists(&bed.v.host_rules, 0x582));
	ck_assert(vmpt_pt_msr_exists(&bed.v.host_rules, VMPT_MSR_RTIT_OUTPUT_BASE));
	/* nor does the guest get at it */
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&bed.v, VMPT_MSR_RTIT_CR3_MATCH, 0), VMPT_GP);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&bed.v, 0x582, 0), VMPT_GP);
	/* a guest cannot be shown more than that */
	vmpt_pt_cap_set(&bed.shown.cpuid, VMPT_CAP_CR3_FILTER, 1);
	ck_assert_int_eq(vmpt_vcpu_init(&bed.v, &bed.config, NULL), -VMPT_E_CAPS);
}
END_TEST

/* ---- RESET, INIT ---- */

/* A state in which nothing is as after a reset. */
static void make_dirty(void)
{
	u32 msr;

	bed_start(&bed);
	bed_wrmsr(&bed, VMPT_MSR_RTIT_OUTPUT_BASE, BED_TABLE);
	bed_wrmsr(&bed, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0x1230000017fULL);
	bed_wrmsr(&bed, VMPT_MSR_RTIT_CR3_MATCH, 0x5000);
	for (msr = VMPT_MSR_RTIT_ADDR0_A; msr <= VMPT_MSR_RTIT_ADDR3_B; msr++)
		bed_wrmsr(&bed, msr, 0x400000 + msr);
	/* PacketByteCnt 64, PendTopaPMI, PendPSB, Stopped */
	bed_wrmsr(&bed, VMPT_MSR_RTIT_STATUS, 0x40000000e0ULL);
	bed_wrmsr(&bed, VMPT_MSR_RTIT_CTL, BED_CTL | VMPT_CTL_INJECT);
	ck_assert_uint_eq(bed.guest.pmis, 1);
	bed_rdmsr(&bed, VMPT_MSR_PERF_GLOBAL_STATUS);
	vmpt_vcpu_pmi(&bed.v);
	ck_assert(bed.v.pmi_again && bed.v.held_pend_pmi && bed.v.force_psb);
	bed.v.lost = true;
	bed.v.ran = true;
	bed.v.scan.lost = 1;
	bed.v.cut_len[1] = 2;
	ck_assert_int_eq(vmpt_vcpu_smi(&bed.v), 0);
	vmpt_vcpu_vmxon(&bed.v);
}

/* Everything beside the MSRs is as after init. */
static void check_reset(void)
{
	const struct vmpt_vcpu *v = &bed.v;

	ck_assert(!v->global_status && !v->pmi_seen && !v->pmi_again && !v->held_pend_pmi);
	ck_assert(!v->in_smm && !v->smm_trace_en && !v->vmx_operation && !v->rules.no_ctl_writes);
	ck_assert(!v->force_psb && !v->lost && !v->ran && !v->scan_set && !v->scan.lost);
	ck_assert(!v->cut_len[0] && !v->cut_len[1]);
	ck_assert_int_eq(vmpt_vcpu_rsm(&bed.v), -VMPT_E_STATE);
}

START_TEST(reset_cold)
{
	u32 msr;

	make_dirty();
	vmpt_vcpu_reset(&bed.v, false);
	for (msr = 0x560; msr <= 0x587; msr++)
		if (vmpt_pt_is_msr(msr))
			ck_assert_uint_eq(bed_rdmsr(&bed, msr), msr == 0x561 ? 0x7f : 0);
	ck_assert_uint_eq(bed_rdmsr(&bed, VMPT_MSR_PERF_GLOBAL_STATUS), 0);
	check_reset();
}
END_TEST

/* 33.2.8.1, 33.3.4: EBX[2] = 1: only TraceEn is cleared. */
START_TEST(reset_warm_kept)
{
	u32 msr;

	make_dirty();
	/* as if it traced: SMI and VMXON have cleared TraceEn */
	bed.v.regs.ctl |= VMPT_CTL_TRACE_EN;
	vmpt_vcpu_reset(&bed.v, true);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), (BED_CTL | VMPT_CTL_INJECT) & ~1ULL);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x571), 0x40000000e0ULL);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x560), BED_TABLE);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x561), 0x1230000017fULL);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x572), 0x5000);
	for (msr = VMPT_MSR_RTIT_ADDR0_A; msr <= VMPT_MSR_RTIT_ADDR3_B; msr++)
		ck_assert_uint_eq(bed_rdmsr(&bed, msr), 0x400000 + msr);
	check_reset();
}
END_TEST

/* 33.2.8.1: EBX[2] = 0: all of them. */
START_TEST(reset_warm_cleared)
{
	bed_hide(&bed, VMPT_CAP_IP_FILTER);
	bed_start(&bed);
	bed_wrmsr(&bed, VMPT_MSR_RTIT_CR3_MATCH, 0x5000);
	bed_trace(&bed, BED_CTL);
	vmpt_vcpu_reset(&bed.v, true);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), 0);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x560), 0);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x572), 0);
	check_reset();
}
END_TEST

START_TEST(reset_while_entered)
{
	struct vmpt_vcpu before;

	bed_start(&bed);
	bed_trace(&bed, BED_CTL);
	bed.v.entered = true;
	before = bed.v;
	vmpt_vcpu_reset(&bed.v, false);
	ck_assert_mem_eq(&before, &bed.v, sizeof(before));
}
END_TEST

/* ---- SMI, RSM (33.2.9.3) ---- */

START_TEST(smi_rsm_tracing)
{
	u64 status;

	bed_start(&bed);
	bed_trace(&bed, BED_CTL);
	status = bed_rdmsr(&bed, 0x571);
	ck_assert_uint_eq(status, VMPT_STATUS_TRIGGER_EN);
	ck_assert_int_eq(vmpt_vcpu_smi(&bed.v), 0);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), BED_CTL & ~1ULL);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x571), 0);
	ck_assert_int_eq(vmpt_vcpu_smi(&bed.v), -VMPT_E_STATE);
	/* 33.2.9.3: CR3 changes, and no PIP is made */
	ck_assert_int_eq(
		vmpt_vcpu_cr3_write(&bed.v, &(struct vmpt_cr3_write){ .new_cr3 = 0x8000,
								      .cause = VMPT_CR3_SMM }),
		0);
	ck_assert_int_eq(vmpt_vcpu_rsm(&bed.v), 0);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), BED_CTL);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x571), status);
	ck_assert_int_eq(vmpt_vcpu_rsm(&bed.v), -VMPT_E_STATE);
	ck_assert_uint_eq(bed.guest.writes, 5); /* the table: no byte of trace */
}
END_TEST

START_TEST(smi_rsm_not_tracing)
{
	bed_start(&bed);
	bed_wrmsr(&bed, 0x570, BED_CTL & ~1ULL);
	ck_assert_int_eq(vmpt_vcpu_smi(&bed.v), 0);
	ck_assert_int_eq(vmpt_vcpu_rsm(&bed.v), 0);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), BED_CTL & ~1ULL);
}
END_TEST

/* SMM traces itself and forgets to stop: RSM is a shutdown; nothing is changed by it. */
START_TEST(rsm_shutdown)
{
	bed_start(&bed);
	bed_trace(&bed, BED_CTL);
	ck_assert_int_eq(vmpt_vcpu_smi(&bed.v), 0);
	bed_wrmsr(&bed, 0x570, BED_CTL);
	ck_assert_int_eq(vmpt_vcpu_rsm(&bed.v), VMPT_SHUTDOWN);
	ck_assert(bed.v.in_smm);
	/* with TraceEn cleared it goes */
	bed_wrmsr(&bed, 0x570, BED_CTL & ~1ULL);
	ck_assert_int_eq(vmpt_vcpu_rsm(&bed.v), 0);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), BED_CTL);
}
END_TEST

/* What SMM left in CTL does not go with TraceEn. */
START_TEST(rsm_illegal_ctl)
{
	bed_hide(&bed, VMPT_CAP_SINGLE_RANGE);
	bed_start(&bed);
	bed_trace(&bed, BED_CTL);
	ck_assert_int_eq(vmpt_vcpu_smi(&bed.v), 0);
	bed_wrmsr(&bed, 0x570, 0);
	ck_assert_int_eq(vmpt_vcpu_rsm(&bed.v), VMPT_SHUTDOWN);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), 0);
	ck_assert(bed.v.in_smm);
}
END_TEST

START_TEST(smi_while_entered)
{
	bed_start(&bed);
	bed.v.entered = true;
	ck_assert_int_eq(vmpt_vcpu_smi(&bed.v), -VMPT_E_STATE);
	bed.v.entered = false;
	ck_assert_int_eq(vmpt_vcpu_smi(&bed.v), 0);
	bed.v.entered = true;
	ck_assert_int_eq(vmpt_vcpu_rsm(&bed.v), -VMPT_E_STATE);
}
END_TEST

/* RSM sets TraceEn as WRMSR does: a PMI that was preserved is pended. */
START_TEST(rsm_pends_pmi)
{
	bed_start(&bed);
	bed_trace(&bed, BED_CTL | VMPT_CTL_INJECT);
	ck_assert_int_eq(vmpt_vcpu_smi(&bed.v), 0);
	bed_wrmsr(&bed, 0x571, VMPT_STATUS_PEND_PMI);
	ck_assert_uint_eq(bed.guest.pmis, 0);
	ck_assert_int_eq(vmpt_vcpu_rsm(&bed.v), 0);
	ck_assert_uint_eq(bed.guest.pmis, 1);
	ck_assert(bed.v.held_pend_pmi);
}
END_TEST

/* ---- VMXON (33.2.9.4) ---- */

START_TEST(vmxon)
{
	bed_start(&bed);
	bed_trace(&bed, BED_CTL);
	vmpt_vcpu_vmxon(&bed.v);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), BED_CTL & ~1ULL);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x571), 0);
	/* any attempt to write CTL, the same value too; other MSRs as ever */
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&bed.v, 0x570, BED_CTL), VMPT_GP);
	ck_assert_uint_eq(bed.v.gp_why, VMPT_GP_VMX);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&bed.v, 0x570, BED_CTL & ~1ULL), VMPT_GP);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&bed.v, 0x570, 0), VMPT_GP);
	bed_wrmsr(&bed, 0x572, 0x5000);
	vmpt_vcpu_vmxoff(&bed.v);
	/* VMXOFF does not set it again */
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), BED_CTL & ~1ULL);
	bed_wrmsr(&bed, 0x570, BED_CTL);
}
END_TEST

START_TEST(vmxon_in_smm)
{
	bed_start(&bed);
	bed_trace(&bed, BED_CTL);
	ck_assert_int_eq(vmpt_vcpu_smi(&bed.v), 0);
	vmpt_vcpu_vmxon(&bed.v);
	ck_assert_int_eq(vmpt_vcpu_rsm(&bed.v), 0);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), BED_CTL & ~1ULL);
}
END_TEST

/* A VMM restores a vCPU in VMX operation: CTL may be written, but not TraceEn. */
START_TEST(vmxon_restore)
{
	bed_start(&bed);
	vmpt_vcpu_vmxon(&bed.v);
	bed_set(&bed, 0x570, BED_CTL & ~1ULL);
	ck_assert_int_eq(vmpt_vcpu_set_msr(&bed.v, 0x570, BED_CTL), VMPT_GP);
	ck_assert_uint_eq(bed_rdmsr(&bed, 0x570), BED_CTL & ~1ULL);
}
END_TEST

/* A shadow of a guest that stopped tracing is not used again. */
START_TEST(shadow_goes_stale)
{
	bed_shadow(&bed);
	bed_start(&bed);
	ck_assert_ptr_eq(bed.v.shadow.memory, &bed.shadow);
	bed_trace(&bed, BED_CTL);
	ck_assert(!bed.v.shadow.stale);
	ck_assert_int_eq(vmpt_vcpu_smi(&bed.v), 0);
	ck_assert(bed.v.shadow.stale);
	ck_assert_int_eq(vmpt_vcpu_rsm(&bed.v), 0);
	ck_assert(!bed.v.shadow.stale && bed.v.shadow.end == VMPT_SHADOW_RING);
	vmpt_vcpu_vmxon(&bed.v);
	ck_assert(bed.v.shadow.stale);
	vmpt_vcpu_reset(&bed.v, false);
	ck_assert(bed.v.shadow.stale && bed.v.shadow.end == VMPT_SHADOW_NONE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vcpu");
	TCase *tcase = tcase_create("vcpu");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, init, 0, VMPT_ARRAY_SIZE(inits));
	tcase_add_test(tcase, init_null);
	tcase_add_test(tcase, init_keeps);
	tcase_add_test(tcase, host_rules);
	tcase_add_test(tcase, reset_cold);
	tcase_add_test(tcase, reset_warm_kept);
	tcase_add_test(tcase, reset_warm_cleared);
	tcase_add_test(tcase, reset_while_entered);
	tcase_add_test(tcase, smi_rsm_tracing);
	tcase_add_test(tcase, smi_rsm_not_tracing);
	tcase_add_test(tcase, rsm_shutdown);
	tcase_add_test(tcase, rsm_illegal_ctl);
	tcase_add_test(tcase, smi_while_entered);
	tcase_add_test(tcase, rsm_pends_pmi);
	tcase_add_test(tcase, vmxon);
	tcase_add_test(tcase, vmxon_in_smm);
	tcase_add_test(tcase, vmxon_restore);
	tcase_add_test(tcase, shadow_goes_stale);
	suite_add_tcase(suite, tcase);
	return test_main(suite);
}
