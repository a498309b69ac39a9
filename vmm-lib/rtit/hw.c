// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A guest's RTIT MSRs in the processor: load, unload, and writes of CTL in the only legal order.
 * All of it is done in VMX root operation, where ContextEn is 0 (2.6.2): no branch makes a packet,
 * there is no TraceStop, FilterEn is frozen and CNTP does not count. Possible packets are PSBs of
 * our own writes and, with LESS_PKTS = 0, MTCs and STSs.
 */
#include "vmm-lib/rtit/internal.h"

#define STATUS_FIELDS (VMPT_RTIT_STATUS_FILTER_EN | VMPT_RTIT_STATUS_OVERFLOW)

/* ---- one MSR ---- */

static u64 sane(u32 msr, u64 value)
{
	const struct vmpt_rtit_reg_desc *d = vmpt_rtit_reg_table;

	while (d->msr != msr)
		d++;
	value = (value & (d->fields | d->ignored)) | d->ones;
	return msr == VMPT_RTIT_MSR_TNT_BUFF && !value ? VMPT_RTIT_RESET_TNT_BUFF : value;
}

int vmpt_rtit_hw_read(struct vmpt_rtit_vcpu *vcpu, u32 msr, u64 *value)
{
	u64 got = 0;

	if (vcpu->config.ops->hw_rdmsr(vcpu->config.opaque, msr, &got))
		return -VMPT_E_HARDWARE;
	*value = sane(msr, got);
	if (*value != got)
		vcpu->events |= VMPT_RTIT_EVENT_HARDWARE;
	return 0;
}

int vmpt_rtit_hw_write(struct vmpt_rtit_vcpu *vcpu, u32 msr, u64 value)
{
	return vcpu->config.ops->hw_wrmsr(vcpu->config.opaque, msr, value) ? -VMPT_E_HARDWARE : 0;
}

/* ---- CTL ---- */

static int write_ctl(struct vmpt_rtit_vcpu *vcpu, u64 ctl)
{
	int err = vmpt_rtit_hw_write(vcpu, VMPT_RTIT_MSR_CTL, ctl);

	if (!err)
		vcpu->hw_ctl = ctl;
	return err;
}

int vmpt_rtit_hw_set_ctl(struct vmpt_rtit_vcpu *vcpu, u64 ctl)
{
	u64 active = VMPT_RTIT_CTL_TRACE_ACTIVE, old = vcpu->hw_ctl;
	int err = 0;

	if (old & active && !(ctl & active))
		err = write_ctl(vcpu, old & ~active);
	else if (!(old & active) && ctl & active && old != (ctl & ~active))
		err = write_ctl(vcpu, ctl & ~active);
	else if (old == ctl)
		return write_ctl(vcpu, ctl);
	if (!err && vcpu->hw_ctl != ctl)
		err = write_ctl(vcpu, ctl);
	return err;
}

/* Whether packets are made in root operation (Table 17). */
static bool makes_timing(u64 ctl)
{
	return ctl & (VMPT_RTIT_CTL_MTC_EN | VMPT_RTIT_CTL_STS_EN);
}

u64 vmpt_rtit_hw_ctl(const struct vmpt_rtit_vcpu *vcpu, bool quiet)
{
	u64 ctl = vcpu->regs.ctl | VMPT_RTIT_CTL_DEST;

	/*
	 * TraceActive "should only be modified while Trace_En is set" (3.3.2): otherwise only our
	 * copy has it.
	 */
	if (!vmpt_rtit_trigger_en(&vcpu->regs) || vcpu->path == VMPT_RTIT_PATH_PARKED)
		ctl &= ~VMPT_RTIT_CTL_TRACE_ACTIVE;
	/* Then ContextEn is 0 at any CPL (2.1.2), as in SMM and root operation. */
	if (vcpu->held)
		ctl &= ~(VMPT_RTIT_CTL_OS | VMPT_RTIT_CTL_USER);
	if (quiet && makes_timing(ctl))
		ctl |= VMPT_RTIT_CTL_LESS_PKTS;
	return ctl;
}

int vmpt_rtit_hw_refresh(struct vmpt_rtit_vcpu *vcpu)
{
	u64 ctl;

	if (vmpt_rtit_hw_read(vcpu, VMPT_RTIT_MSR_CTL, &ctl))
		return -VMPT_E_HARDWARE;
	if (vcpu->hw_ctl & ~ctl & VMPT_RTIT_CTL_TRACE_ACTIVE) {
		vcpu->hw_ctl &= ~VMPT_RTIT_CTL_TRACE_ACTIVE;
		vcpu->regs.ctl &= ~VMPT_RTIT_CTL_TRACE_ACTIVE;
	}
	return 0;
}

int vmpt_rtit_freeze(struct vmpt_rtit_vcpu *vcpu)
{
	int err = vmpt_rtit_hw_refresh(vcpu);

	return err ? err : vmpt_rtit_hw_set_ctl(vcpu, vmpt_rtit_hw_ctl(vcpu, true));
}

int vmpt_rtit_thaw(struct vmpt_rtit_vcpu *vcpu)
{
	u64 ctl = vmpt_rtit_hw_ctl(vcpu, vcpu->quiet);

	return ctl == vcpu->hw_ctl ? 0 : vmpt_rtit_hw_set_ctl(vcpu, ctl);
}

int vmpt_rtit_vcpu_quiet(struct vmpt_rtit_vcpu *vcpu, bool quiet)
{
	int err;

	vcpu->quiet = quiet;
	if (!vcpu->loaded || !makes_timing(vcpu->regs.ctl))
		return 0;
	err = vmpt_rtit_hw_refresh(vcpu);
	return err ? err : vmpt_rtit_thaw(vcpu);
}

int vmpt_rtit_vcpu_hold(struct vmpt_rtit_vcpu *vcpu, bool held)
{
	int err;

	vcpu->held = held;
	if (!vcpu->loaded)
		return 0;
	err = vmpt_rtit_hw_refresh(vcpu);
	return err ? err : vmpt_rtit_thaw(vcpu);
}

/* ---- all of them ---- */

/* MSRs that packets change. */
static const u32 live[] = {
	VMPT_RTIT_MSR_STATUS,	      VMPT_RTIT_MSR_CNTP,    VMPT_RTIT_MSR_LAST_LIP,
	VMPT_RTIT_MSR_LAST_CALL_NLIP, VMPT_RTIT_MSR_PKT_CNT, VMPT_RTIT_MSR_TNT_BUFF,
};

bool vmpt_rtit_is_live(u32 msr)
{
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(live); i++)
		if (live[i] == msr)
			return true;
	return false;
}

int vmpt_rtit_hw_fetch(struct vmpt_rtit_vcpu *vcpu)
{
	int err = 0;
	size_t i;
	u64 value;

	for (i = 0; i < VMPT_ARRAY_SIZE(live); i++) {
		if (vmpt_rtit_hw_read(vcpu, live[i], &value))
			err = -VMPT_E_HARDWARE;
		else
			*vmpt_rtit_reg(&vcpu->regs, live[i]) = value;
	}
	return err;
}

/*
 * The reserved event IDs are "always off" to a guest; what they do in a processor is undocumented.
 */
static u64 events_without_reserved(u64 events)
{
	unsigned int shift;

	for (shift = 0; shift <= VMPT_RTIT_EVENTS_STOP_SHIFT; shift += 3) {
		u64 id = events >> shift & 7;

		if (id > VMPT_RTIT_EVENT_RANGES && id < VMPT_RTIT_EVENT_OFF)
			events = (events & ~(7ULL << shift)) | (u64)VMPT_RTIT_EVENT_OFF << shift;
	}
	return events;
}

u64 vmpt_rtit_hw_value(const struct vmpt_rtit_regs *regs, u32 msr)
{
	u64 value = *vmpt_rtit_reg((struct vmpt_rtit_regs *)regs, msr);

	if (msr == VMPT_RTIT_MSR_STATUS)
		return value & STATUS_FIELDS;
	if (msr == VMPT_RTIT_MSR_EVENTS)
		return events_without_reserved(value);
	return sane(msr, value);
}

/*
 * The PSB that TraceActive makes clears LAST_LIP and LAST_CALL_NLIP (3.3.7, 3.3.14), though 4.2.1
 * says so of Pkt_Mask's PSBs only: if they are 0, the packets after it are right in either case,
 * because a decoder forgets both there.
 */
static bool is_forgotten(u32 msr)
{
	return msr == VMPT_RTIT_MSR_LAST_LIP || msr == VMPT_RTIT_MSR_LAST_CALL_NLIP;
}

int vmpt_rtit_hw_forget(struct vmpt_rtit_vcpu *vcpu)
{
	int err = vmpt_rtit_hw_write(vcpu, VMPT_RTIT_MSR_LAST_LIP, 0);

	return err ? err : vmpt_rtit_hw_write(vcpu, VMPT_RTIT_MSR_LAST_CALL_NLIP, 0);
}

static bool is_output(u32 msr)
{
	return msr == VMPT_RTIT_MSR_BASE_ADDR || msr == VMPT_RTIT_MSR_LIMIT_MASK ||
	       msr == VMPT_RTIT_MSR_OFFSET;
}

/* All MSRs but CTL and, unless @output, those of the output; TriggerEn is 0. */
static int write_regs(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_regs *regs, bool active,
		      bool output)
{
	unsigned int i;
	int err = 0;
	u64 value;

	for (i = 0; i < VMPT_RTIT_MSRS; i++) {
		u32 msr = vmpt_rtit_reg_table[i].msr;

		if (msr == VMPT_RTIT_MSR_CTL || (!output && is_output(msr)))
			continue;
		value = active && is_forgotten(msr) ? 0 : vmpt_rtit_hw_value(regs, msr);
		if (vmpt_rtit_hw_write(vcpu, msr, value))
			err = -VMPT_E_HARDWARE;
	}
	return err;
}

/* TraceActive off, Trace_En off; this drains too. */
static int stop(struct vmpt_rtit_vcpu *vcpu)
{
	u64 ctl = vcpu->hw_ctl & ~VMPT_RTIT_CTL_TRIGGER;

	return ctl == vcpu->hw_ctl ? 0 : vmpt_rtit_hw_set_ctl(vcpu, ctl);
}

/* ---- load ---- */

static int save_host(struct vmpt_rtit_vcpu *vcpu)
{
	unsigned int i;
	u64 ctl;

	if (stop(vcpu) || vmpt_rtit_hw_read(vcpu, VMPT_RTIT_MSR_CTL, &ctl))
		return -VMPT_E_HARDWARE;
	if (ctl & VMPT_RTIT_CTL_TRACE_EN) {
		/* If TraceActive was set again, leave it alone. */
		if (ctl & VMPT_RTIT_CTL_TRACE_ACTIVE)
			ctl = vcpu->host_regs.ctl;
		if (vcpu->hw_ctl != vcpu->host_regs.ctl)
			vcpu->hw_ctl = ctl;
		return -VMPT_E_HOST_TRACING;
	}
	for (i = 0; i < VMPT_RTIT_MSRS; i++) {
		u32 msr = vmpt_rtit_reg_table[i].msr;

		if (msr != VMPT_RTIT_MSR_CTL &&
		    vmpt_rtit_hw_read(vcpu, msr, vmpt_rtit_reg(&vcpu->host_regs, msr)))
			return -VMPT_E_HARDWARE;
	}
	return 0;
}

/*
 * Restore CTL, of which stop() may have cleared bits; nothing else has changed. This makes a PSB,
 * as in give_back().
 */
static void untake(struct vmpt_rtit_vcpu *vcpu)
{
	const struct vmpt_rtit_regs *host = &vcpu->host_regs;

	if (vcpu->hw_ctl == host->ctl)
		return;
	if (!vmpt_rtit_trigger_en(host) || !vmpt_rtit_hw_forget(vcpu))
		vmpt_rtit_hw_set_ctl(vcpu, host->ctl);
}

/* CTL comes first: nothing else may be accessed until it has been read (3.3.1). */
static int take_processor(struct vmpt_rtit_vcpu *vcpu)
{
	struct vmpt_rtit_regs *host = &vcpu->host_regs;
	int err;

	if (vmpt_rtit_hw_read(vcpu, VMPT_RTIT_MSR_CTL, &host->ctl))
		return -VMPT_E_HARDWARE;
	vcpu->hw_ctl = host->ctl;
	err = save_host(vcpu);
	if (err)
		untake(vcpu);
	return err;
}

/*
 * Restore the host's MSRs, and its tracing if all else succeeded; the guest's tracing stops in any
 * case.
 */
static int give_back(struct vmpt_rtit_vcpu *vcpu)
{
	const struct vmpt_rtit_regs *host = &vcpu->host_regs;
	int err = write_regs(vcpu, host, vmpt_rtit_trigger_en(host), true);

	return err ? err : vmpt_rtit_hw_set_ctl(vcpu, host->ctl);
}

/* Load a guest's state while TriggerEn = 0; then its CTL. */
static int put_guest(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_plan *plan)
{
	int err = write_regs(vcpu, &vcpu->regs, vmpt_rtit_trigger_en(&vcpu->regs), false);

	if (err)
		vmpt_rtit_plan_drop(vcpu, plan);
	else
		err = vmpt_rtit_plan_apply(vcpu, &vcpu->regs, plan);
	if (!err)
		err = vmpt_rtit_hw_set_ctl(vcpu, vmpt_rtit_hw_ctl(vcpu, vcpu->quiet));
	return err;
}

int vmpt_rtit_vcpu_load(struct vmpt_rtit_vcpu *vcpu)
{
	struct vmpt_rtit_plan plan;
	int err;

	if (vcpu->loaded)
		return -VMPT_E_STATE;
	if (!vcpu->config.ops->hw_wrmsr)
		return -VMPT_E_INVAL;
	err = vmpt_rtit_copy_out(vcpu, true);
	if (!err)
		err = vmpt_rtit_plan_output(vcpu, &vcpu->regs, &plan);
	if (err)
		return err;
	err = take_processor(vcpu);
	if (err) {
		vmpt_rtit_plan_drop(vcpu, &plan);
		return err;
	}
	err = put_guest(vcpu, &plan);
	if (err) {
		/* The processor's values are unknown: it must not keep using a guest's memory. */
		if (!stop(vcpu)) {
			vmpt_rtit_output_end(vcpu);
			give_back(vcpu);
		}
		return err;
	}
	vcpu->loaded = true;
	return 0;
}

/* ---- unload ---- */

int vmpt_rtit_vcpu_unload(struct vmpt_rtit_vcpu *vcpu)
{
	int err, stopped, ret;

	if (!vcpu->loaded)
		return -VMPT_E_STATE;
	err = vmpt_rtit_hw_refresh(vcpu);
	stopped = stop(vcpu);
	vcpu->loaded = false;
	/* The processor may keep writing: the memory stays pinned. */
	if (stopped)
		return stopped;
	if (vmpt_rtit_hw_fetch(vcpu))
		err = -VMPT_E_HARDWARE;
	ret = vmpt_rtit_collect(vcpu);
	vmpt_rtit_output_end(vcpu);
	if (give_back(vcpu))
		err = -VMPT_E_HARDWARE;
	if (!ret)
		ret = vmpt_rtit_copy_out(vcpu, true);
	return err ? err : ret;
}

/* ---- output of the processor ---- */

int vmpt_rtit_vcpu_sync(struct vmpt_rtit_vcpu *vcpu)
{
	int err, ret;

	if (!vcpu->loaded)
		return vmpt_rtit_copy_out(vcpu, true);
	if (vcpu->path == VMPT_RTIT_PATH_NONE || vcpu->path == VMPT_RTIT_PATH_PARKED)
		return 0;
	err = vmpt_rtit_freeze(vcpu);
	if (err)
		return err;
	ret = vmpt_rtit_collect(vcpu);
	err = vmpt_rtit_thaw(vcpu);
	return err ? err : ret;
}

int vmpt_rtit_vcpu_clock(struct vmpt_rtit_vcpu *vcpu, u64 tsc_offset, u64 core_offset)
{
	int err = 0;

	/* Bytes already written were made under the old offsets. */
	if (vcpu->config.rewrite_clock && vcpu->loaded)
		err = vmpt_rtit_vcpu_sync(vcpu);
	if (err)
		return err;
	vcpu->tsc_offset = tsc_offset;
	vcpu->core_offset = core_offset;
	return 0;
}
