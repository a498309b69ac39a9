// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* PSB+ (SDM 3 33.3.7, 33.4.2.17): the state that a decoder needs; compression starts anew. */
#include "model/emit.h"

static void emit_tsx(struct vmpt_unit *unit)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_MODE_TSX };

	pkt.tsx.intx = unit->in_tx;
	vmpt_model_emit(unit, &pkt);
}

void vmpt_model_emit_vmcs(struct vmpt_unit *unit)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_VMCS };

	pkt.vmcs.pointer = unit->vmx.vmcs;
	vmpt_model_emit(unit, &pkt);
}

void vmpt_model_psb(struct vmpt_unit *unit, u64 ip)
{
	const struct vmpt_unit_vmx *vmx = &unit->vmx;
	bool concealed = vmx->nonroot && vmx->conceal_exec;

	if (!unit->trigger_en)
		return;
	/* It may be that of an enabling. */
	if (unit->in_overflow) {
		unit->psb_due = true;
		return;
	}
	vmpt_model_flush_tnt(unit);
	unit->since_psb = 0;
	unit->regs.status &= ~VMPT_STATUS_BYTES;
	unit->psb_due = false; /* again true if it is lost in an overflow */
	vmpt_model_emit_kind(unit, VMPT_PT_PSB);
	unit->last_ip = 0;
	unit->whole_ip = false;
	unit->ret_depth = 0;
	vmpt_model_emit_time(unit);
	vmpt_model_emit_cbr(unit);
	if (unit->context_en && unit->regs.ctl & VMPT_CTL_OS)
		vmpt_model_emit_pip(unit, unit->mode.cr3, unit->mode.pae,
				    vmx->nonroot && !concealed);
	if (vmx->on && !concealed)
		vmpt_model_emit_vmcs(unit);
	if (unit->context_en && unit->branch_en)
		emit_tsx(unit);
	if (unit->packet_en) {
		vmpt_model_emit_exec(unit);
		vmpt_model_emit_ip(unit, VMPT_PT_FUP, ip);
	} else {
		/* A decoder that begins here has no mode until the TIP.PGE. */
		unit->last_exec = 0xff;
	}
	vmpt_model_emit_kind(unit, VMPT_PT_PSBEND);
	/*
	 * PendPSB is cleared when the PSB+ has been inserted (Table 33-7), all of it; without
	 * InjectPsbPmiOnEnable the bit is ignored (Table 33-6).
	 */
	if (unit->regs.ctl & VMPT_CTL_INJECT && unit->trigger_en && !unit->psb_due)
		unit->regs.status &= ~VMPT_STATUS_PEND_PSB;
}
