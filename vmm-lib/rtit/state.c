// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A guest's RTIT as bytes, for snapshots and migration, in the layout of a vCPU's PT state
 * (docs/vmm-lib/state.md). The input may be hostile: it is parsed completely, each value is checked
 * against the rules of 3.3, and only then is the vCPU changed.
 */
#include "vmm-lib/rtit/internal.h"
#include "vmm-lib/state-bytes.h"

enum rtit_tag {
	TAG_MSRS = NEEDED | 1,
	TAG_FLAGS = NEEDED | 2,
	TAG_EVENTS = 3,
};

#define EVENTS (VMPT_RTIT_EVENT_LOST | VMPT_RTIT_EVENT_PARKED | VMPT_RTIT_EVENT_HARDWARE)

static const u8 magic[4] = { 'V', 'M', 'R', 'T' };

/* The parsed state. */
struct rtit_saved {
	u64 msr[VMPT_RTIT_MSRS]; /* as in vmpt_rtit_reg_table */
	u64 lost;
	u32 events;
	u16 has_msr; /* bit n: msr[n] */
	u16 has_tag; /* bit n: the field whose tag is n, without NEEDED */
	u8 ctl_read;
};

/* ---- save ---- */

int vmpt_rtit_vcpu_save(const struct vmpt_rtit_vcpu *vcpu, u8 *buf, size_t len)
{
	struct vmpt_rtit_regs regs = vcpu->regs;
	struct writer w = { buf, len, 0 };
	size_t start, i;

	if (vcpu->loaded || vcpu->used)
		return -VMPT_E_STATE;
	/* They follow from CTL and from the guest's context. */
	regs.status &= ~VMPT_RTIT_STATUS_READ_ONLY;
	put_header(&w, magic, VMPT_RTIT_STATE_VERSION);
	start = begin(&w, TAG_MSRS);
	for (i = 0; i < VMPT_RTIT_MSRS; i++) {
		put(&w, vmpt_rtit_reg_table[i].msr, 4);
		put(&w, *vmpt_rtit_reg(&regs, vmpt_rtit_reg_table[i].msr), 8);
	}
	end(&w, start);
	start = begin(&w, TAG_FLAGS);
	put(&w, regs.ctl_read, 1);
	end(&w, start);
	start = begin(&w, TAG_EVENTS);
	put(&w, vcpu->events, 4);
	put(&w, vcpu->lost, 8);
	end(&w, start);
	return put_size(&w);
}

/* ---- parse ---- */

/* Each MSR once, any order. */
static void get_msrs(struct reader *r, struct rtit_saved *s)
{
	while (r->left) {
		u32 msr = (u32)get(r, 4);
		u64 value = get(r, 8);
		size_t i = 0;

		while (i < VMPT_RTIT_MSRS && vmpt_rtit_reg_table[i].msr != msr)
			i++;
		if (i == VMPT_RTIT_MSRS || s->has_msr >> i & 1) {
			r->bad = true;
			return;
		}
		s->has_msr |= (u16)(1u << i);
		s->msr[i] = value;
	}
}

static int get_field(struct reader *r, u32 tag, struct rtit_saved *s, struct vmpt_refusal *why)
{
	switch (tag) {
	case TAG_MSRS:
		get_msrs(r, s);
		break;
	case TAG_FLAGS:
		s->ctl_read = get_flag(r);
		break;
	case TAG_EVENTS:
		s->events = (u32)get(r, 4);
		s->lost = get(r, 8);
		break;
	default:
		return get_unknown(tag, why);
	}
	return get_field_end(r, tag, &s->has_tag, why);
}

static int parse(struct rtit_saved *s, const u8 *buf, size_t len, struct vmpt_refusal *why)
{
	const u16 all = 1u << (TAG_MSRS & 0xf) | 1u << (TAG_FLAGS & 0xf);
	struct reader r = { buf, len, false }, field;
	u32 tag;
	int err;

	memset(s, 0, sizeof(*s));
	err = get_header(&r, magic, VMPT_RTIT_STATE_VERSION, why);
	while (!err && r.left) {
		err = get_next(&r, &tag, &field, why);
		if (!err)
			err = get_field(&field, tag, s, why);
	}
	return err ? err : check_all(s->has_tag, all, why);
}

/* ---- check ---- */

/* By the rules of 3.3; *@regs becomes what the vCPU will hold. */
static int check(const struct vmpt_rtit_vcpu *vcpu, const struct rtit_saved *s,
		 struct vmpt_rtit_regs *regs, struct vmpt_refusal *why)
{
	bool written = false;
	size_t i;

	vmpt_rtit_reset(regs);
	for (i = 0; i < VMPT_RTIT_MSRS; i++) {
		const struct vmpt_rtit_reg_desc *d = &vmpt_rtit_reg_table[i];
		enum vmpt_gp_reason gp = VMPT_GP_NONE;

		if (!(s->has_msr >> i & 1))
			return invalid(why, d->name, "missing", 0);
		if (vmpt_rtit_restore_msr(&vcpu->config.rules, regs, d->msr, s->msr[i], &gp))
			return invalid(why, d->name, vmpt_gp_reason(gp), s->msr[i]);
		written |= s->msr[i] != d->reset;
	}
	if (written && !s->ctl_read)
		return invalid(why, "RTIT_CTL was read", "0 where an MSR was written", 0);
	if (s->events & ~(u32)EVENTS)
		return invalid(why, "events", "an unknown bit", s->events);
	regs->status &= ~VMPT_RTIT_STATUS_CONTEXT_EN;
	regs->ctl_read = s->ctl_read;
	return 0;
}

int vmpt_rtit_vcpu_restore(struct vmpt_rtit_vcpu *vcpu, const u8 *buf, size_t len,
			   struct vmpt_refusal *why)
{
	struct vmpt_rtit_regs regs;
	struct rtit_saved s;
	int err;

	if (vcpu->loaded)
		return vmpt_refuse(why, VMPT_E_STATE, "vCPU", "it is loaded", 0, 0);
	err = parse(&s, buf, len, why);
	if (!err)
		err = check(vcpu, &s, &regs, why);
	if (err)
		return err;
	vcpu->regs = regs;
	vcpu->events = s.events;
	vcpu->lost = s.lost;
	vcpu->gp_why = VMPT_GP_NONE;
	vcpu->path = VMPT_RTIT_PATH_NONE;
	vcpu->used = vcpu->unseen = 0;
	return 0;
}
