// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Conformance: RESET, INIT, SMI and RSM, VMXON, XSAVE, migration (33.2.8.1, 33.2.9, 33.3.4). */
#include "vmm-lib/conformance/run.h"

/* A state that differs from reset in every existing register. */
static int fill(struct conformance *c, u64 *ctl)
{
	unsigned int n;

	CHECK(vmpt_conformance_buffer(c, ctl));
	if (c->rules.cr3_filter)
		CHECK(vmpt_conformance_set(c, VMPT_MSR_RTIT_CR3_MATCH, 0x123000));
	for (n = 0; n < 2u * c->rules.ranges; n++)
		CHECK(vmpt_conformance_set(c, VMPT_MSR_RTIT_ADDR0_A + n, 0x400000 + 0x1000 * n));
	*ctl |= VMPT_CTL_DIS_RETC;
	return DONE;
}

static int event(struct conformance *c, int (*call)(void *opaque))
{
	int ret = call(c->opaque);

	return ret ? vmpt_conformance_broken(c, ret < 0 ? ret : -VMPT_E_STATE) : DONE;
}

static int cold_reset(struct conformance *c)
{
	u64 ctl;

	CHECK(fill(c, &ctl));
	CHECK(vmpt_conformance_set(c, VMPT_MSR_RTIT_CTL, ctl | VMPT_CTL_TRACE_EN));
	CHECK(vmpt_conformance_power_on(c));
	return vmpt_conformance_compare(c);
}

static int warm_reset(struct conformance *c)
{
	u64 ctl;

	if (!c->ops->warm_reset)
		return vmpt_conformance_skip(c, "the VMM provides no warm_reset");
	CHECK(fill(c, &ctl));
	CHECK(vmpt_conformance_set(c, VMPT_MSR_RTIT_CTL, ctl | VMPT_CTL_TRACE_EN));
	CHECK(event(c, c->ops->warm_reset));
	vmpt_pt_reset_warm(&c->rules, &c->regs);
	if (c->rules.kept_over_warm_reset)
		CHECK(vmpt_conformance_stopped(c));
	return vmpt_conformance_compare(c);
}

/* INIT changes nothing, tracing continues (33.2.8.1 names RESET only). */
static int init(struct conformance *c)
{
	u64 ctl;

	if (!c->ops->init)
		return vmpt_conformance_skip(c, "the VMM provides no init");
	CHECK(fill(c, &ctl));
	CHECK(vmpt_conformance_set(c, VMPT_MSR_RTIT_CTL, ctl | VMPT_CTL_TRACE_EN));
	CHECK(event(c, c->ops->init));
	return vmpt_conformance_compare(c);
}

/* SMI saves and clears TraceEn, RSM restores it (33.2.9.3). */
static int smi_rsm(struct conformance *c)
{
	struct vmpt_pt_regs before;
	u64 ctl;

	if (!c->ops->smi || !c->ops->rsm)
		return vmpt_conformance_skip(c, "the VMM provides no smi and rsm");
	CHECK(fill(c, &ctl));
	CHECK(vmpt_conformance_set(c, VMPT_MSR_RTIT_CTL, ctl | VMPT_CTL_TRACE_EN));
	before = c->regs;
	CHECK(event(c, c->ops->smi));
	vmpt_pt_clear_trace_en(&c->regs);
	CHECK(vmpt_conformance_stopped(c));
	CHECK(vmpt_conformance_compare(c));
	CHECK(event(c, c->ops->rsm));
	c->regs = before;
	CHECK(vmpt_conformance_compare(c));
	/* And if it was off, it stays off. */
	CHECK(vmpt_conformance_set(c, VMPT_MSR_RTIT_CTL, ctl));
	CHECK(event(c, c->ops->smi));
	CHECK(event(c, c->ops->rsm));
	return vmpt_conformance_compare(c);
}

static int rsm_tracing(struct conformance *c)
{
	u64 ctl;
	int ret;

	if (!c->ops->smi || !c->ops->rsm)
		return vmpt_conformance_skip(c, "the VMM provides no smi and rsm");
	CHECK(fill(c, &ctl));
	CHECK(event(c, c->ops->smi));
	CHECK(vmpt_conformance_set(c, VMPT_MSR_RTIT_CTL, ctl | VMPT_CTL_TRACE_EN));
	ret = c->ops->rsm(c->opaque);
	if (ret < 0)
		return vmpt_conformance_broken(c, ret);
	return ret ? DONE
		   : vmpt_conformance_wrong(c, "RSM with TraceEn = 1 must be a shutdown", NULL, 0);
}

/* A guest whose IA32_VMX_MISC[14] is 0 (33.2.9.4). */
static int vmxon(struct conformance *c)
{
	u64 ctl;

	if (!c->ops->vmxon || !c->ops->vmxoff)
		return vmpt_conformance_skip(c, "the VMM provides no vmxon and vmxoff");
	CHECK(fill(c, &ctl));
	CHECK(vmpt_conformance_set(c, VMPT_MSR_RTIT_CTL, ctl | VMPT_CTL_TRACE_EN));
	CHECK(event(c, c->ops->vmxon));
	vmpt_pt_clear_trace_en(&c->regs);
	CHECK(vmpt_conformance_stopped(c));
	c->rules.no_ctl_writes = 1;
	CHECK(vmpt_conformance_write(c, VMPT_MSR_RTIT_CTL, ctl));
	CHECK(vmpt_conformance_write(c, VMPT_MSR_RTIT_CTL, 0));
	CHECK(vmpt_conformance_write(c, VMPT_MSR_RTIT_STATUS, 0));
	CHECK(event(c, c->ops->vmxoff));
	c->rules.no_ctl_writes = 0;
	return vmpt_conformance_write(c, VMPT_MSR_RTIT_CTL, ctl);
}

/* The rule above belongs to this scenario only: undo it however it ends. */
static int vmx_operation(struct conformance *c)
{
	int ret = vmxon(c);

	c->rules.no_ctl_writes = 0;
	return ret;
}

static int migrate(struct conformance *c)
{
	u64 ctl;

	if (!c->ops->migrate)
		return vmpt_conformance_skip(c, "the VMM provides no migrate");
	CHECK(fill(c, &ctl));
	CHECK(event(c, c->ops->migrate));
	CHECK(vmpt_conformance_compare(c));
	CHECK(vmpt_conformance_set(c, VMPT_MSR_RTIT_CTL, ctl | VMPT_CTL_TRACE_EN));
	CHECK(event(c, c->ops->migrate));
	CHECK(vmpt_conformance_compare(c));
	return vmpt_conformance_write(c, VMPT_MSR_RTIT_CTL, ctl);
}

/* Contents of the area of component 8: 33.3.5.2's order; STATUS keeps changing. */
static int area_holds(struct conformance *c, const u8 *area, u64 ctl)
{
	static const u32 order[] = {
		0x570, 0x560, 0x561, 0x571, 0x572, 0x580, 0x581, 0x582, 0x583
	};
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(order); i++) {
		u64 want = i ? *vmpt_pt_reg(&c->regs, order[i]) : ctl;

		if (order[i] == VMPT_MSR_RTIT_STATUS || !vmpt_pt_msr_exists(&c->rules, order[i]))
			continue;
		if (vmpt_load64(area + 8 * i) != want)
			return vmpt_conformance_differs(c, "XSAVES stored another value", "MSR",
							order[i], want, vmpt_load64(area + 8 * i));
	}
	return DONE;
}

/* Component 8: XSAVES stores and clears TraceEn, XRSTORS restores everything (33.3.5.2). */
static int xsave_restore(struct conformance *c)
{
	u8 area[128] = { 0 };
	u64 ctl;
	int ret;

	CHECK(fill(c, &ctl));
	ctl |= VMPT_CTL_TRACE_EN;
	CHECK(vmpt_conformance_set(c, VMPT_MSR_RTIT_CTL, ctl));
	ret = c->ops->xsaves(c->opaque, area);
	if (ret)
		return vmpt_conformance_broken(c, ret < 0 ? ret : -VMPT_E_STATE);
	vmpt_pt_clear_trace_en(&c->regs);
	CHECK(vmpt_conformance_stopped(c));
	CHECK(vmpt_conformance_compare(c));
	CHECK(area_holds(c, area, ctl));
	/* It holds four registers of two ranges; those of other ranges are not restored. */
	if (c->rules.ranges > 2)
		memset(&c->regs.addr[4], 0, sizeof(c->regs.addr) - 4 * sizeof(c->regs.addr[0]));
	c->regs.ctl = ctl;
	ret = c->ops->power_on(c->opaque);
	if (!ret)
		ret = c->ops->xrstors(c->opaque, area);
	if (ret)
		return vmpt_conformance_broken(c, ret < 0 ? ret : -VMPT_E_STATE);
	CHECK(vmpt_conformance_compare(c));
	ret = c->ops->xrstors(c->opaque, area);
	if (ret < 0)
		return vmpt_conformance_broken(c, ret);
	return ret ? DONE
		   : vmpt_conformance_wrong(c, "XRSTORS with TraceEn = 1 must be #GP", NULL, 0);
}

static int xsave(struct conformance *c)
{
	struct vmpt_cpuid_regs list = { 0 };
	int ret;

	if (!c->ops->xsaves || !c->ops->xrstors)
		return vmpt_conformance_skip(c, "the VMM provides no xsaves and xrstors");
	ret = c->ops->cpuid(c->opaque, 0xd, 1, &list);
	if (ret)
		return vmpt_conformance_broken(c, ret < 0 ? ret : -VMPT_E_STATE);
	if (!(list.ecx & 1u << 8))
		return vmpt_conformance_skip(c, "the guest is not shown component 8");
	return xsave_restore(c);
}

const struct conformance_scenario vmpt_conformance_modes[] = {
	{ "cold-reset", "33.2.8.1", cold_reset, false },
	{ "warm-reset", "33.3.4", warm_reset, false },
	{ "init", "33.2.8.1", init, false },
	{ "smi-rsm", "33.2.9.3", smi_rsm, false },
	{ "rsm-while-tracing", "33.2.9.3", rsm_tracing, false },
	{ "vmx-operation", "33.2.9.4", vmx_operation, false },
	{ "xsave", "33.3.5.2", xsave, false },
	{ "migrate", "33.3.5.1", migrate, false },
	{ 0 }
};
