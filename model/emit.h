/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Internal to the model: how packets leave a unit, and functions shared by its files. */
#ifndef VMPT_MODEL_EMIT_H
#define VMPT_MODEL_EMIT_H

#include "model/vmpt-model.h"

/* ---- emit.c: packets into the buffer, the buffer to the output ---- */

/* One packet, with the CYC before it if it is eligible. Pending TNTs go first. */
void vmpt_model_emit(struct vmpt_unit *unit, struct vmpt_pt_packet *pkt);
void vmpt_model_emit_kind(struct vmpt_unit *unit, unsigned int kind);
/* TIP, TIP.PGE, TIP.PGD, FUP with @ip, or without (IPBytes 000b). */
void vmpt_model_emit_ip(struct vmpt_unit *unit, unsigned int kind, u64 ip);
void vmpt_model_emit_no_ip(struct vmpt_unit *unit, unsigned int kind);
/* A TNT bit; a TIP that may be deferred. */
void vmpt_model_tnt(struct vmpt_unit *unit, bool taken);
void vmpt_model_tip(struct vmpt_unit *unit, u64 target, bool deferrable);
/* Send pending TNT bits and TIPs. */
void vmpt_model_flush_tnt(struct vmpt_unit *unit);

/* ---- psb.c ---- */

/* The PSB+ that is due, after an event; @ip: where execution goes on. */
void vmpt_model_psb(struct vmpt_unit *unit, u64 ip);

static inline void unit_after(struct vmpt_unit *unit, u64 ip)
{
	if (unit->psb_due)
		vmpt_model_psb(unit, ip);
}

/* The same where the next IP is unknown: only a PSB+ without FUP can be sent. */
static inline void unit_after_no_ip(struct vmpt_unit *unit)
{
	if (unit->psb_due && !unit->packet_en)
		vmpt_model_psb(unit, 0);
}

void vmpt_model_emit_vmcs(struct vmpt_unit *unit);

/* ---- other.c ---- */

/* End an overflow: OVF. False: there is still no room for it. */
bool vmpt_model_end_overflow(struct vmpt_unit *unit);

/* ---- clock.c ---- */

/* The CYC before an eligible packet (33.3.6). */
void vmpt_model_cyc(struct vmpt_unit *unit);
/* Time passes inside an event: MTCs that are due, but no PSB+. */
void vmpt_model_pass_time(struct vmpt_unit *unit, const struct vmpt_now *now);
/* TSC and TMA, as enabled in CTL. */
void vmpt_model_emit_time(struct vmpt_unit *unit);
void vmpt_model_emit_cbr(struct vmpt_unit *unit);

/* ---- enable.c: 33.2.6 ---- */

/* FilterEn for @ip (33.2.5.3), and whether it is in a TraceStop range. */
bool vmpt_model_filter(const struct vmpt_unit *unit, u64 ip);
bool vmpt_model_in_stop(const struct vmpt_unit *unit, u64 ip);
bool vmpt_model_context(const struct vmpt_unit *unit, const struct vmpt_mode *mode);
/* PacketEn from its parts. */
void vmpt_model_update(struct vmpt_unit *unit);
/* TraceEn 0 to 1 and 1 to 0, whatever the cause. */
void vmpt_model_enable(struct vmpt_unit *unit, u64 ip, bool mode_exec);
void vmpt_model_disable(struct vmpt_unit *unit);
/* TraceStop; FilterEn is 0 and the TIP.PGD is sent. Ends an overflow. */
void vmpt_model_trace_stop(struct vmpt_unit *unit);

/* ---- far.c ---- */

void vmpt_model_emit_pip(struct vmpt_unit *unit, u64 cr3, bool pae, bool nr);
void vmpt_model_emit_exec(struct vmpt_unit *unit);
/*
 * MODE.Exec if it differs from the last one sent, in IF only before a TIP.PGE or with EventEn;
 * before a TIP.PGE also where optional (33.4.2.8).
 */
void vmpt_model_sync_exec(struct vmpt_unit *unit, bool pge);
/* The end of a transfer to @target: TIP, TIP.PGD or TIP.PGE, and MODE.Exec before it. */
void vmpt_model_emit_target(struct vmpt_unit *unit, bool before, u64 target);
/* The same without MODE.Exec. */
void vmpt_model_emit_end(struct vmpt_unit *unit, bool before, u64 target);
void vmpt_model_emit_cfe(struct vmpt_unit *unit, unsigned int type, unsigned int vector, bool ip);
void vmpt_model_emit_evd(struct vmpt_unit *unit, unsigned int type, u64 payload);

#endif
