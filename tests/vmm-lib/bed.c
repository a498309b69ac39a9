// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A vCPU with everything it needs, for tests. */
#include <stdlib.h>

#include "tests/vmm-lib/bed.h"

void bed_init(struct bed *bed)
{
	u32 i;

	memset(bed, 0, sizeof(*bed));
	guest_init(&bed->guest, BED_PAGES);
	guest_full_caps(&bed->host);
	bed->shown = bed->host;
	bed->shown.vmx = 0;
	bed->plan = (struct vmpt_vmx_plan){ .use = VMPT_USE_GUEST, .guest_pt = true };
	bed->ops = guest_memory_ops;
	bed->tables = aligned_alloc(4096, BED_SHADOW_PAGES * sizeof(*bed->tables));
	bed->origin = calloc(BED_SHADOW_PAGES * VMPT_SHADOW_PER_PAGE, sizeof(*bed->origin));
	ck_assert(bed->tables && bed->origin);
	bed->shadow.pages = BED_SHADOW_PAGES;
	bed->shadow.origin = bed->origin;
	for (i = 0; i < BED_SHADOW_PAGES; i++) {
		bed->shadow.page[i] = bed->tables[i];
		bed->shadow.page_hpa[i] = BED_TABLES_HPA + 4096ULL * i;
	}
	bed->config = (struct vmpt_config){
		.host = &bed->host,
		.guest = &bed->shown,
		.plan = &bed->plan,
		.ops = &bed->ops,
		.opaque = &bed->guest,
	};
}

void bed_hide(struct bed *bed, enum vmpt_pt_cap cap)
{
	unsigned int i;

	vmpt_pt_cap_set(&bed->shown.cpuid, cap, 0);
	for (i = 0; i < VMPT_CAPS; i++)
		if (i != cap && vmpt_pt_cap_table[i].needs == cap &&
		    vmpt_pt_cap(&bed->shown.cpuid, (enum vmpt_pt_cap)i))
			bed_hide(bed, (enum vmpt_pt_cap)i);
}

void bed_shadow(struct bed *bed)
{
	bed->host.vmx &= ~(u32)VMPT_VMX_USE_GPA;
	bed->plan.shadow = true;
	bed->config.shadow = &bed->shadow;
}

void bed_no_pt(struct bed *bed, enum vmpt_use use)
{
	memset(&bed->shown.cpuid.leaf14, 0, sizeof(bed->shown.cpuid.leaf14));
	bed->shown.cpuid.present = 0;
	bed->plan = (struct vmpt_vmx_plan){ .use = (u8)use };
}

void bed_start(struct bed *bed)
{
	int err = vmpt_vcpu_init(&bed->v, &bed->config, &bed->why);

	if (err)
		ck_abort_msg("init: %s: %s: %s", vmpt_strerror(err), bed->why.field, bed->why.rule);
}

void bed_free(struct bed *bed)
{
	guest_free(&bed->guest);
	free(bed->tables);
	free(bed->origin);
}

void bed_wrmsr(struct bed *bed, u32 msr, u64 value)
{
	int ret = vmpt_vcpu_wrmsr(&bed->v, msr, value);

	if (ret)
		ck_abort_msg("WRMSR %xH = %llx: %d, %s", msr, (unsigned long long)value, ret,
			     vmpt_gp_reason(bed->v.gp_why));
}

u64 bed_rdmsr(struct bed *bed, u32 msr)
{
	u64 value = 0;
	int ret = vmpt_vcpu_rdmsr(&bed->v, msr, &value);

	if (ret)
		ck_abort_msg("RDMSR %xH: %d", msr, ret);
	return value;
}

void bed_set(struct bed *bed, u32 msr, u64 value)
{
	int ret = vmpt_vcpu_set_msr(&bed->v, msr, value);

	if (ret)
		ck_abort_msg("set %xH = %llx: %d, %s", msr, (unsigned long long)value, ret,
			     vmpt_gp_reason(bed->v.gp_why));
}

void bed_table(struct bed *bed, u32 regions, u64 flags)
{
	u32 i;

	ck_assert(regions <= BED_PAGES - 16);
	for (i = 0; i < regions; i++)
		guest_put64(&bed->guest, BED_TABLE + 8ULL * i, (BED_OUTPUT + 4096ULL * i) | flags);
	guest_put64(&bed->guest, BED_TABLE + 8ULL * regions, BED_TABLE | VMPT_TOPA_END);
}

void bed_trace(struct bed *bed, u64 ctl)
{
	bed_table(bed, 4, VMPT_TOPA_INT);
	bed_wrmsr(bed, VMPT_MSR_RTIT_OUTPUT_BASE, BED_TABLE);
	bed_wrmsr(bed, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, VMPT_LOWER_MASK);
	bed_wrmsr(bed, VMPT_MSR_RTIT_CTL, ctl);
}
