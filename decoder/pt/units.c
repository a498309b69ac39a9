// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Walks over the two units of a trace that are applied as a whole: PSB+
 * (SDM 3 33.3.7) and the group of PIP, VMCS and MODE.Exec before a TIP packet
 * (Table 33-14); and over a pause, from a TIP.PGD() to a TIP.PGE.
 */
#include "decoder/pt/tracker.h"

u64 vmpt_pads_skip(const u8 *data, u64 at, u64 end)
{
	while (end - at >= 8 && !vmpt_load64(data + at))
		at += 8;
	while (at < end && !data[at])
		at++;
	return at;
}

void vmpt_psb_plus_scan(const u8 *data, u64 at, u64 end, struct vmpt_psb_plus *psb)
{
	unsigned int size;
	int kind;

	memset(psb, 0, sizeof(*psb));
	at += vmpt_pt_table[VMPT_PT_PSB].size;
	for (;;) {
		kind = at < end ? vmpt_head_at(data, at, end, &size) : -1;
		if (kind < 0 || !(vmpt_pt_table[kind].classes & VMPT_PT_IN_PSB))
			break;
		switch (kind) {
		case VMPT_PT_MODE_EXEC:
			psb->has_exec = true;
			psb->tokens++;
			break;
		case VMPT_PT_CBR:
			psb->tokens++;
			break;
		case VMPT_PT_PIP:
			psb->tokens++;
			psb->has_pip = true;
			psb->nr = vmpt_pip_nr(data + at);
			psb->cr3 = vmpt_pip_cr3(data + at);
			break;
		case VMPT_PT_VMCS:
			psb->tokens++;
			psb->has_vmcs = true;
			psb->vmcs = vmpt_vmcs_pointer(data + at);
			break;
		case VMPT_PT_TSC:
			psb->tokens++;
			vmpt_tscs_add(&psb->tsc, vmpt_tsc_value(data + at));
			break;
		case VMPT_PT_FUP:
			psb->has_fup = true;
			break;
		case VMPT_PT_PAD:
			at = vmpt_pads_skip(data, at, end);
			continue;
		}
		at += size;
	}
	psb->complete = kind == VMPT_PT_PSBEND;
	if (psb->complete)
		at += size;
	psb->end = at;
}

void vmpt_group_scan(const u8 *data, u64 at, u64 end, struct vmpt_group *g)
{
	unsigned int size = 0;
	int kind;

	memset(g, 0, sizeof(*g));
	for (;; at += size) {
		kind = at < end ? vmpt_head_at(data, at, end, &size) : -1;
		if (kind == VMPT_PT_PAD) {
			at = vmpt_pads_skip(data, at, end);
			size = 0;
			continue;
		}
		if (kind < 0 || !(vmpt_pt_table[kind].classes & (VMPT_PT_GROUP | VMPT_PT_TIMING)))
			break;
		switch (kind) {
		case VMPT_PT_PIP:
			if (!g->pips++)
				g->first_pip = at;
			g->nr = vmpt_pip_nr(data + at);
			g->was_nonroot |= g->nr;
			g->cr3 = vmpt_pip_cr3(data + at);
			break;
		case VMPT_PT_VMCS:
			g->has_vmcs = true;
			g->vmcs = vmpt_vmcs_pointer(data + at);
			break;
		case VMPT_PT_TSC:
			vmpt_tscs_add(&g->tsc, vmpt_tsc_value(data + at));
			break;
		}
	}
	g->end = at;
	g->last = kind;
	g->last_size = kind < 0 ? 0 : size;
	g->bound = kind == VMPT_PT_TIP || kind == VMPT_PT_TIP_PGE || kind == VMPT_PT_TIP_PGD;
}

bool vmpt_pause_scan(const u8 *data, u64 at, u64 end)
{
	struct vmpt_psb_plus psb;
	unsigned int size;

	while (at < end) {
		switch (vmpt_head_at(data, at, end, &size)) {
		case VMPT_PT_TIP_PGE:
			return true;
		case VMPT_PT_PSB:
			vmpt_psb_plus_scan(data, at, end, &psb);
			if (!psb.complete)
				return false;
			at = psb.end;
			break;
		case VMPT_PT_PAD:
			at = vmpt_pads_skip(data, at, end);
			break;
		case VMPT_PT_PIP:
		case VMPT_PT_MODE_EXEC:
		case VMPT_PT_MTC:
		case VMPT_PT_CYC:
		case VMPT_PT_EXSTOP:
		case VMPT_PT_MWAIT:
		case VMPT_PT_PWRE:
		case VMPT_PT_PWRX:
			at += size;
			break;
		default:
			return false;
		}
	}
	return false;
}
