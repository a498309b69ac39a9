// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Far transfers and events, MOV CR3 and CR0, SMM and VMX in an RTIT unit (2.2.6, 2.6, 4.2.9,
 * 4.2.10; Table 19, rows 27 to 44).
 */
#include "model/rtit-emit.h"

/* ---- far transfers ---- */

static void far_packets(struct vmpt_rtit_unit *unit, const struct rtit_change *c,
			const struct vmpt_rtit_far *far)
{
	u64 lip = far->ip;

	/* With ContextEn 0 after it, there would have been no TIP. */
	if (unit->context_en)
		vmpt_model_rtit_lost_tip(unit, far->target);
	/* FUP.PGD replaces FUP.FAR (4.2.9); for a TraceStop's see 4.2.8. */
	if (!c->after && rtit_makes_pgd(unit, c)) {
		vmpt_model_rtit_lip(unit, VMPT_RTIT_PGD, lip);
		if (!unit->context_en)
			return;
	} else {
		/* E1: a byte between the instruction's first and last one; it has at least 5. */
		if (rtit_erratum(unit, 1) && far->is_insn && far->prefixes > 3)
			lip = far->insn + 3;
		vmpt_model_rtit_lip(unit, VMPT_RTIT_FAR, lip);
	}
	vmpt_model_rtit_lip(unit, VMPT_RTIT_TIP, far->target);
}

void vmpt_rtit_unit_far(struct vmpt_rtit_unit *unit, const struct vmpt_rtit_far *far)
{
	struct rtit_change c;

	/* An interrupt or exception is no instruction: a FUP.PCC waits for the handler's first. */
	if (far->is_insn)
		rtit_pcc(unit, far->ip);
	vmpt_model_rtit_begin(unit, &c);
	unit->mode = far->mode;
	vmpt_model_rtit_decide(unit, &c, true, far->target);
	if (c.packet)
		far_packets(unit, &c, far);
	vmpt_model_rtit_finish_rest(unit, &c, far->ip, far->target);
}

/* ---- paging ---- */

/* 4.2.10 */
static void pip(struct vmpt_rtit_unit *unit)
{
	struct vmpt_rtit_packet pkt = { .kind = VMPT_RTIT_PIP };

	if (!unit->trigger_en || !unit->context_en || unit->regs.ctl & VMPT_RTIT_CTL_CR3_EN)
		return;
	pkt.pip.pg = unit->mode.paging;
	pkt.pip.cr3 = unit->mode.cr3 & vmpt_mask64(40);
	vmpt_model_rtit_put(unit, &pkt);
}

void vmpt_rtit_unit_mov_cr3(struct vmpt_rtit_unit *unit, u64 next_ip, u64 cr3)
{
	struct rtit_change c;

	rtit_pcc(unit, next_ip);
	vmpt_model_rtit_begin(unit, &c);
	unit->mode.cr3 = cr3;
	vmpt_model_rtit_decide(unit, &c, false, next_ip);
	pip(unit);
	vmpt_model_rtit_sts_on_cr3(unit);
	vmpt_model_rtit_finish(unit, &c, next_ip, next_ip);
}

void vmpt_rtit_unit_mov_cr0(struct vmpt_rtit_unit *unit, u64 next_ip, bool paging)
{
	bool changed = unit->mode.paging != paging;
	struct rtit_change c;

	rtit_pcc(unit, next_ip);
	vmpt_model_rtit_begin(unit, &c);
	unit->mode.paging = paging;
	vmpt_model_rtit_decide(unit, &c, false, next_ip);
	if (changed)
		pip(unit);
	vmpt_model_rtit_finish(unit, &c, next_ip, next_ip);
}

/* ---- SMM and VMX: FUP.PGD on the way in, FUP.PGE on the way out ---- */

/* ContextEn becomes 0: the filter is frozen. */
static void leave(struct vmpt_rtit_unit *unit, u64 ip)
{
	struct rtit_change c;

	vmpt_model_rtit_begin(unit, &c);
	vmpt_model_rtit_decide_no_filter(unit, &c);
	vmpt_model_rtit_finish(unit, &c, ip, ip);
}

static void enter(struct vmpt_rtit_unit *unit, bool taken, u64 ip)
{
	struct rtit_change c;

	vmpt_model_rtit_begin(unit, &c);
	vmpt_model_rtit_decide(unit, &c, taken, ip);
	vmpt_model_rtit_finish(unit, &c, ip, ip);
}

void vmpt_rtit_unit_smi(struct vmpt_rtit_unit *unit, u64 ip)
{
	unit->smm = true;
	leave(unit, ip);
}

void vmpt_rtit_unit_rsm(struct vmpt_rtit_unit *unit, u64 target, const struct vmpt_rtit_mode *mode)
{
	unit->smm = false;
	unit->mode = *mode;
	enter(unit, true, target);
}

void vmpt_rtit_unit_vmxon(struct vmpt_rtit_unit *unit, u64 next_ip)
{
	rtit_pcc(unit, next_ip);
	unit->vmx_root = true;
	leave(unit, next_ip);
}

void vmpt_rtit_unit_vmxoff(struct vmpt_rtit_unit *unit, u64 next_ip)
{
	unit->vmx_root = false;
	enter(unit, false, next_ip);
}

void vmpt_rtit_unit_vmentry(struct vmpt_rtit_unit *unit, u64 target,
			    const struct vmpt_rtit_mode *mode)
{
	unit->vmx_root = false;
	unit->mode = *mode;
	enter(unit, true, target);
}

void vmpt_rtit_unit_vmexit(struct vmpt_rtit_unit *unit, u64 ip, const struct vmpt_rtit_mode *mode)
{
	unit->vmx_root = true;
	unit->mode = *mode;
	leave(unit, ip);
}
