// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The conformance suite: the run, helpers for scenarios, and how a result is printed. */
#include "arch/text.h"
#include "vmm-lib/conformance/run.h"

int vmpt_conformance_wrong(struct conformance *c, const char *wrong, const char *at_name, u64 at)
{
	c->result->wrong = wrong;
	c->result->at_name = at_name;
	c->result->at = at;
	c->result->values = false;
	return WRONG;
}

int vmpt_conformance_differs(struct conformance *c, const char *wrong, const char *at_name, u64 at,
			     u64 want, u64 got)
{
	vmpt_conformance_wrong(c, wrong, at_name, at);
	c->result->values = true;
	c->result->want = want;
	c->result->got = got;
	return WRONG;
}

int vmpt_conformance_skip(struct conformance *c, const char *why)
{
	c->result->wrong = why;
	return SKIP;
}

int vmpt_conformance_broken(struct conformance *c, int err)
{
	c->error = err;
	c->result->wrong = "the VMM's callback failed";
	return BROKEN;
}

int vmpt_conformance_power_on(struct conformance *c)
{
	int ret = c->ops->power_on(c->opaque);

	if (ret)
		return vmpt_conformance_broken(c, ret < 0 ? ret : -VMPT_E_STATE);
	vmpt_pt_reset_cold(&c->regs);
	return DONE;
}

int vmpt_conformance_read(struct conformance *c, u32 msr, u64 *value)
{
	int ret = c->ops->rdmsr(c->opaque, msr, value);

	if (ret < 0)
		return vmpt_conformance_broken(c, ret);
	if (ret)
		return vmpt_conformance_wrong(c, "a read is #GP", "MSR", msr);
	return DONE;
}

/* Bits that a processor changes itself while TraceEn = 1, or that depend on the code it runs. */
static u64 unsteady(const struct conformance *c, u32 msr)
{
	bool tracing = c->regs.ctl & VMPT_CTL_TRACE_EN;

	if (msr == VMPT_MSR_RTIT_STATUS)
		return VMPT_STATUS_READ_ONLY |
		       (tracing ? VMPT_STATUS_BYTES | VMPT_STATUS_PEND_PSB : 0);
	if (msr == VMPT_MSR_RTIT_OUTPUT_BASE || msr == VMPT_MSR_RTIT_OUTPUT_MASK_PTRS)
		return tracing ? ~0ULL : 0;
	return 0;
}

int vmpt_conformance_compare(struct conformance *c)
{
	static const u32 msrs[] = { 0x560, 0x561, 0x570, 0x571, 0x572, 0x580, 0x581,
				    0x582, 0x583, 0x584, 0x585, 0x586, 0x587 };
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(msrs); i++) {
		u64 ignore = unsteady(c, msrs[i]), want, got = 0;

		if (!vmpt_pt_msr_exists(&c->rules, msrs[i]))
			continue;
		CHECK(vmpt_conformance_read(c, msrs[i], &got));
		want = *vmpt_pt_reg(&c->regs, msrs[i]);
		if ((want ^ got) & ~ignore)
			return vmpt_conformance_differs(c, "a register holds another value", "MSR",
							msrs[i], want, got);
	}
	return DONE;
}

int vmpt_conformance_stopped(struct conformance *c)
{
	static const u32 moved[] = { VMPT_MSR_RTIT_OUTPUT_BASE, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS };
	u64 status = 0;
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(moved); i++) {
		if (vmpt_pt_msr_exists(&c->rules, moved[i]))
			CHECK(vmpt_conformance_read(c, moved[i], vmpt_pt_reg(&c->regs, moved[i])));
	}
	CHECK(vmpt_conformance_read(c, VMPT_MSR_RTIT_STATUS, &status));
	c->regs.status = (c->regs.status & ~(VMPT_STATUS_BYTES | VMPT_STATUS_PEND_PSB)) |
			 (status & (VMPT_STATUS_BYTES | VMPT_STATUS_PEND_PSB));
	return DONE;
}

int vmpt_conformance_write(struct conformance *c, u32 msr, u64 value)
{
	bool tracing = c->regs.ctl & VMPT_CTL_TRACE_EN;
	int want, got;

	want = vmpt_pt_wrmsr(&c->rules, &c->regs, msr, value, NULL);
	got = c->ops->wrmsr(c->opaque, msr, value);
	if (got < 0)
		return vmpt_conformance_broken(c, got);
	if (want && !got)
		return vmpt_conformance_differs(c, "this write must be #GP", "MSR", msr, VMPT_GP,
						value);
	if (!want && got)
		return vmpt_conformance_differs(c, "this write must not be #GP", "MSR", msr, 0,
						value);
	if (tracing && !(c->regs.ctl & VMPT_CTL_TRACE_EN))
		CHECK(vmpt_conformance_stopped(c));
	return vmpt_conformance_compare(c);
}

int vmpt_conformance_set(struct conformance *c, u32 msr, u64 value)
{
	bool tracing = c->regs.ctl & VMPT_CTL_TRACE_EN;
	int ret;

	if (vmpt_pt_wrmsr(&c->rules, &c->regs, msr, value, NULL))
		return vmpt_conformance_skip(c, "the guest's PT lacks what this scenario needs");
	ret = c->ops->wrmsr(c->opaque, msr, value);
	if (ret < 0)
		return vmpt_conformance_broken(c, ret);
	if (ret)
		return vmpt_conformance_differs(c, "this write must not be #GP", "MSR", msr, 0,
						value);
	return tracing && !(c->regs.ctl & VMPT_CTL_TRACE_EN) ? vmpt_conformance_stopped(c) : DONE;
}

int vmpt_conformance_buffer(struct conformance *c, u64 *ctl)
{
	u64 table = c->ops->ram_gpa, region = c->ops->ram_gpa + 64 * 1024, entry[2];
	int ret;

	*ctl = VMPT_CTL_OS | VMPT_CTL_USER | VMPT_CTL_BRANCH_EN;
	if (!c->rules.topa) {
		CHECK(vmpt_conformance_set(c, VMPT_MSR_RTIT_OUTPUT_BASE, region));
		return vmpt_conformance_set(c, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0x7fff);
	}
	*ctl |= VMPT_CTL_TOPA;
	entry[0] = region | 3ULL << VMPT_TOPA_SIZE_SHIFT; /* 32 KiB */
	entry[1] = table | VMPT_TOPA_END;
	ret = c->ops->mem_write(c->opaque, table, entry, sizeof(entry));
	if (ret)
		return vmpt_conformance_broken(c, ret < 0 ? ret : -VMPT_E_GUEST_MEM);
	CHECK(vmpt_conformance_set(c, VMPT_MSR_RTIT_OUTPUT_BASE, table));
	return vmpt_conformance_set(c, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0);
}

/* What the guest is shown, from the VMM's CPUID only. */
static int read_cpuid(struct conformance *c)
{
	struct vmpt_cpu_reader reader = { .cpuid = c->ops->cpuid, .opaque = c->opaque };
	struct vmpt_caps caps;
	int ret;

	ret = vmpt_caps_read(&caps, &reader);
	if (ret)
		return ret < 0 ? ret : -VMPT_E_STATE;
	c->cpuid = caps.cpuid;
	vmpt_pt_rules_init(&c->rules, &c->cpuid);
	return 0;
}

static void run_one(struct conformance *c, const struct conformance_scenario *s)
{
	int ret;

	memset(c->result, 0, sizeof(*c->result));
	c->result->scenario = s->name;
	c->result->section = s->section;
	if (!c->cpuid.present && !s->without_pt)
		ret = vmpt_conformance_skip(c, "the guest is shown no PT");
	else
		ret = vmpt_conformance_power_on(c);
	if (!ret)
		ret = s->run(c);
	c->result->verdict = ret == DONE ? VMPT_PASSED : ret == SKIP ? VMPT_SKIPPED : VMPT_FAILED;
}

int vmpt_conformance_run_abi(const struct vmpt_conformance_ops *ops, void *opaque,
			     vmpt_conformance_report *report,
			     struct vmpt_conformance_summary *summary, u64 abi)
{
	if (abi != VMPT_CONFORMANCE_ABI)
		return -VMPT_E_VERSION;
	static const struct conformance_scenario *const chapters[] = { vmpt_conformance_cpuid,
								       vmpt_conformance_msrs,
								       vmpt_conformance_modes,
								       vmpt_conformance_output };
	struct vmpt_conformance_result result;
	struct vmpt_conformance_summary sum = { 0 };
	struct conformance c = { .ops = ops, .opaque = opaque, .result = &result };
	const struct conformance_scenario *s;
	size_t i;

	if (!ops || !ops->power_on || !ops->cpuid || !ops->rdmsr || !ops->wrmsr || !ops->mem_read ||
	    !ops->mem_write || ops->ram_size < VMPT_CONFORMANCE_RAM || ops->ram_gpa & 0xffff)
		return -VMPT_E_INVAL;
	c.error = ops->power_on(opaque);
	if (!c.error)
		c.error = read_cpuid(&c);
	for (i = 0; !c.error && i < VMPT_ARRAY_SIZE(chapters); i++) {
		for (s = chapters[i]; !c.error && s->name; s++) {
			run_one(&c, s);
			sum.passed += result.verdict == VMPT_PASSED;
			sum.failed += result.verdict == VMPT_FAILED;
			sum.skipped += result.verdict == VMPT_SKIPPED;
			if (report)
				report(opaque, &result);
		}
	}
	if (summary)
		*summary = sum;
	return c.error > 0 ? -VMPT_E_STATE : c.error;
}

/* ---- printing ---- */

static void put_hex(struct text *t, u64 v)
{
	put_str(t, "0x");
	put_number(t, v, 16, 1);
}

size_t vmpt_conformance_print(const struct vmpt_conformance_result *result, char *buf, size_t len)
{
	static const char *const verdict[] = { "passed", "FAILED", "skipped" };
	struct text t = { .buf = buf, .len = len };

	put_str(&t, result->verdict < VMPT_ARRAY_SIZE(verdict) ? verdict[result->verdict] : "?");
	put_str(&t, " ");
	put_str(&t, result->scenario);
	put_str(&t, " (");
	put_str(&t, result->section);
	put_str(&t, ")");
	if (result->wrong) {
		put_str(&t, ": ");
		put_str(&t, result->wrong);
	}
	if (result->at_name) {
		put_str(&t, ", ");
		put_str(&t, result->at_name);
		put_str(&t, " ");
		put_hex(&t, result->at);
	}
	if (result->values) {
		put_str(&t, ", want ");
		put_hex(&t, result->want);
		put_str(&t, ", got ");
		put_hex(&t, result->got);
	}
	return finish(&t);
}
