// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Conformance: what the guest's RDMSR and WRMSR of the PT MSRs do (33.2.8). */
#include "vmm-lib/conformance/run.h"

/* Reads and writes of each MSR: #GP if and only if it does not exist. */
static int existence(struct conformance *c)
{
	u32 msr;

	for (msr = 0x560; msr <= 0x587; msr++) {
		bool there = vmpt_pt_msr_exists(&c->rules, msr);
		u64 value = 0;
		int ret;

		if (!vmpt_pt_is_msr(msr))
			continue;
		ret = c->ops->rdmsr(c->opaque, msr, &value);
		if (ret < 0)
			return vmpt_conformance_broken(c, ret);
		if (ret != (there ? 0 : VMPT_GP))
			return vmpt_conformance_wrong(
				c,
				there ? "this MSR exists: a read must not be #GP"
				      : "this MSR does not exist: a read must be #GP",
				"MSR", msr);
		ret = c->ops->wrmsr(c->opaque, msr, 0);
		if (ret < 0)
			return vmpt_conformance_broken(c, ret);
		if (ret != (there ? 0 : VMPT_GP))
			return vmpt_conformance_wrong(
				c,
				there ? "this MSR exists: writing 0 must not be #GP"
				      : "this MSR does not exist: a write must be #GP",
				"MSR", msr);
	}
	return DONE;
}

static int reset_values(struct conformance *c)
{
	return vmpt_conformance_compare(c);
}

/* Each bit of CTL except TraceEn, alone. */
static int ctl_bits(struct conformance *c)
{
	unsigned int bit;

	for (bit = 1; bit < 64; bit++)
		CHECK(vmpt_conformance_write(c, VMPT_MSR_RTIT_CTL, 1ULL << bit));
	return DONE;
}

/* Each encoding of MTCFreq, CycThresh, PSBFreq and ADDRn_CFG, with its enable bit if it has one. */
static int ctl_encodings(struct conformance *c)
{
	static const struct {
		unsigned int shift;
		u64 enable;
	} field[] = {
		{ VMPT_CTL_MTC_FREQ_SHIFT, VMPT_CTL_MTC_EN },
		{ VMPT_CTL_CYC_THRESH_SHIFT, VMPT_CTL_CYC_EN },
		{ VMPT_CTL_PSB_FREQ_SHIFT, 0 },
		{ VMPT_CTL_ADDR_SHIFT(0), 0 },
		{ VMPT_CTL_ADDR_SHIFT(1), 0 },
		{ VMPT_CTL_ADDR_SHIFT(2), 0 },
		{ VMPT_CTL_ADDR_SHIFT(3), 0 },
	};
	size_t i;
	u64 v;

	for (i = 0; i < VMPT_ARRAY_SIZE(field); i++) {
		for (v = 0; v < 16; v++)
			CHECK(vmpt_conformance_write(c, VMPT_MSR_RTIT_CTL,
						     v << field[i].shift | field[i].enable));
	}
	return DONE;
}

/* Each bit of a register alone, then all and none; the rules decide which are legal. */
static int each_bit(struct conformance *c, u32 msr)
{
	unsigned int bit;

	if (!vmpt_pt_msr_exists(&c->rules, msr))
		return DONE;
	for (bit = 0; bit < 64; bit++)
		CHECK(vmpt_conformance_write(c, msr, 1ULL << bit));
	CHECK(vmpt_conformance_write(c, msr, ~0ULL));
	return vmpt_conformance_write(c, msr, 0);
}

static int status(struct conformance *c)
{
	return each_bit(c, VMPT_MSR_RTIT_STATUS);
}

static int cr3_match(struct conformance *c)
{
	if (!c->rules.cr3_filter)
		return vmpt_conformance_skip(c, "the guest has no CR3 filter");
	return each_bit(c, VMPT_MSR_RTIT_CR3_MATCH);
}

static int output(struct conformance *c)
{
	CHECK(each_bit(c, VMPT_MSR_RTIT_OUTPUT_BASE));
	return each_bit(c, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS);
}

static int addresses(struct conformance *c)
{
	unsigned int lin = c->rules.linear_bits, n;

	if (!c->rules.ranges)
		return vmpt_conformance_skip(c, "the guest has no IP filter");
	for (n = 0; n < 2u * c->rules.ranges; n++) {
		u32 msr = VMPT_MSR_RTIT_ADDR0_A + n;

		CHECK(each_bit(c, msr));
		/* The limits of the two canonical halves and the addresses just outside them. */
		CHECK(vmpt_conformance_write(c, msr, (1ULL << (lin - 1)) - 1));
		CHECK(vmpt_conformance_write(c, msr, 1ULL << (lin - 1)));
		CHECK(vmpt_conformance_write(c, msr, ~0ULL << (lin - 1)));
		CHECK(vmpt_conformance_write(c, msr, (~0ULL << (lin - 1)) - 1));
	}
	return DONE;
}

/* Enable tracing with a valid buffer. */
static int start(struct conformance *c, u64 *ctl)
{
	CHECK(vmpt_conformance_buffer(c, ctl));
	*ctl |= VMPT_CTL_TRACE_EN;
	return vmpt_conformance_set(c, VMPT_MSR_RTIT_CTL, *ctl);
}

/* TraceEn = 1: every write is #GP except CTL's own value. */
static int locked(struct conformance *c)
{
	u64 ctl, value;
	u32 msr;

	CHECK(start(c, &ctl));
	for (msr = 0x560; msr <= 0x587; msr++) {
		if (!vmpt_pt_is_msr(msr) || !vmpt_pt_msr_exists(&c->rules, msr) ||
		    msr == VMPT_MSR_RTIT_CTL)
			continue;
		CHECK(vmpt_conformance_read(c, msr, &value));
		CHECK(vmpt_conformance_write(c, msr, value));
	}
	CHECK(vmpt_conformance_write(c, VMPT_MSR_RTIT_CTL, ctl));
	CHECK(vmpt_conformance_write(c, VMPT_MSR_RTIT_CTL, ctl ^ VMPT_CTL_USER));
	return vmpt_conformance_write(c, VMPT_MSR_RTIT_CTL, ctl ^ VMPT_CTL_TSC_EN);
}

/* One write may clear TraceEn and change other bits, if they are legal. */
static int stop_and_change(struct conformance *c)
{
	u64 ctl;

	CHECK(start(c, &ctl));
	CHECK(vmpt_conformance_write(c, VMPT_MSR_RTIT_CTL, (1ULL << 18)));
	CHECK(vmpt_conformance_write(c, VMPT_MSR_RTIT_CTL, VMPT_CTL_TSC_EN | VMPT_CTL_DIS_RETC));
	CHECK(vmpt_conformance_power_on(c));
	CHECK(start(c, &ctl));
	return vmpt_conformance_write(c, VMPT_MSR_RTIT_CTL, 0);
}

/* A restore: the user writes all registers of a tracing guest, CTL first. */
static int restore_order(struct conformance *c)
{
	static const u32 order[] = { VMPT_MSR_RTIT_CTL, VMPT_MSR_RTIT_STATUS,
				     VMPT_MSR_RTIT_OUTPUT_BASE, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS };
	struct vmpt_pt_regs saved;
	size_t i;
	u64 ctl;

	if (!c->ops->set_msr)
		return vmpt_conformance_skip(c, "the VMM provides no set_msr");
	CHECK(vmpt_conformance_buffer(c, &ctl));
	CHECK(vmpt_conformance_set(c, VMPT_MSR_RTIT_CTL, ctl));
	saved = c->regs;
	CHECK(vmpt_conformance_power_on(c));
	saved.ctl |= VMPT_CTL_TRACE_EN;
	if (c->rules.psb_cyc)
		saved.status |= 0x123ULL << VMPT_STATUS_BYTES_SHIFT;
	for (i = 0; i < VMPT_ARRAY_SIZE(order); i++) {
		u64 value = *vmpt_pt_reg(&saved, order[i]);
		int ret = c->ops->set_msr(c->opaque, order[i], value);

		if (ret < 0)
			return vmpt_conformance_broken(c, ret);
		if (ret)
			return vmpt_conformance_wrong(c, "a restore is refused", "MSR", order[i]);
	}
	c->regs = saved;
	return vmpt_conformance_compare(c);
}

const struct conformance_scenario vmpt_conformance_msrs[] = {
	{ "msr-existence", "33.2.8.1", existence, true },
	{ "msr-reset", "33.2.8.1", reset_values, false },
	{ "ctl-bits", "33.2.8.2", ctl_bits, false },
	{ "ctl-encodings", "33.2.8.2", ctl_encodings, false },
	{ "status", "33.2.8.4", status, false },
	{ "cr3-match", "33.2.8.6", cr3_match, false },
	{ "output-msrs", "33.2.8.7", output, false },
	{ "addresses", "33.2.8.5", addresses, false },
	{ "locked-while-tracing", "33.2.8.1", locked, false },
	{ "stop-and-change", "33.2.8.3", stop_and_change, false },
	{ "restore-order", "33.3.5.1", restore_order, false },
	{ 0 }
};
