/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Internal to the model: how packets leave a unit, and functions shared by its files. */
#ifndef VMPT_MODEL_EMIT_H
#define VMPT_MODEL_EMIT_H

#include "model/vmpt-model.h"

/* ---- emit.c: packets into the buffer, the buffer to the output ---- */

/* One packet, with the CYC before it if it is eligible. Pending TNTs go first. */
void unit_emit(struct vmpt_unit *unit, struct vmpt_pt_packet *pkt);
void unit_emit_kind(struct vmpt_unit *unit, unsigned int kind);
/* TIP, TIP.PGE, TIP.PGD, FUP with @ip, or without (IPBytes 000b). */
void unit_emit_ip(struct vmpt_unit *unit, unsigned int kind, u64 ip);
void unit_emit_no_ip(struct vmpt_unit *unit, unsigned int kind);
/* A TNT bit; a TIP that may be deferred. */
void unit_tnt(struct vmpt_unit *unit, bool taken);
void unit_tip(struct vmpt_unit *unit, u64 target, bool deferrable);
/* Send pending TNT bits and TIPs. */
void unit_flush_tnt(struct vmpt_unit *unit);

/* ---- psb.c ---- */

/* The PSB+ that is due, after an event; @ip: where execution goes on. */
void unit_psb(struct vmpt_unit *unit, u64 ip);

static inline void unit_after(struct vmpt_unit *unit, u64 ip)
{
	if (unit->psb_due)
		unit_psb(unit, ip);
}

/* The same where the next IP is unknown: only a PSB+ without FUP can be sent. */
static inline void unit_after_no_ip(struct vmpt_unit *unit)
{
	if (unit->psb_due && !unit->packet_en)
		unit_psb(unit, 0);
}

void unit_emit_vmcs(struct vmpt_unit *unit);

/* ---- other.c ---- */

/* End an overflow: OVF. False: there is still no room for it. */
bool unit_end_overflow(struct vmpt_unit *unit);

/* ---- clock.c ---- */

/* The CYC before an eligible packet (33.3.6). */
void unit_cyc(struct vmpt_unit *unit);
/* Time passes inside an event: MTCs that are due, but no PSB+. */
void unit_pass_time(struct vmpt_unit *unit, const struct vmpt_now *now);
/* TSC and TMA, as enabled in CTL. */
void unit_emit_time(struct vmpt_unit *unit);
void unit_emit_cbr(struct vmpt_unit *unit);

/* ---- enable.c: 33.2.6 ---- */

/* FilterEn for @ip (33.2.5.3), and whether it is in a TraceStop range. */
bool unit_filter(const struct vmpt_unit *unit, u64 ip);
bool unit_in_stop(const struct vmpt_unit *unit, u64 ip);
bool unit_context(const struct vmpt_unit *unit, const struct vmpt_mode *mode);
/* PacketEn from its parts. */
void unit_update(struct vmpt_unit *unit);
/* TraceEn 0 to 1 and 1 to 0, whatever the cause. */
void unit_enable(struct vmpt_unit *unit, u64 ip, bool mode_exec);
void unit_disable(struct vmpt_unit *unit);
/* TraceStop; FilterEn is 0 and the TIP.PGD is sent. Ends an overflow. */
void unit_trace_stop(struct vmpt_unit *unit);

/* ---- far.c ---- */

void unit_emit_pip(struct vmpt_unit *unit, u64 cr3, bool pae, bool nr);
void unit_emit_exec(struct vmpt_unit *unit);
/*
 * MODE.Exec if it differs from the last one sent, in IF only before a TIP.PGE or with EventEn;
 * before a TIP.PGE also where optional (33.4.2.8).
 */
void unit_sync_exec(struct vmpt_unit *unit, bool pge);
/* The end of a transfer to @target: TIP, TIP.PGD or TIP.PGE, and MODE.Exec before it. */
void unit_emit_target(struct vmpt_unit *unit, bool before, u64 target);
/* The same without MODE.Exec. */
void unit_emit_end(struct vmpt_unit *unit, bool before, u64 target);
void unit_emit_cfe(struct vmpt_unit *unit, unsigned int type, unsigned int vector, bool ip);
void unit_emit_evd(struct vmpt_unit *unit, unsigned int type, u64 payload);

#endif
