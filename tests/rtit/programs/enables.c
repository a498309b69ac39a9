// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* PacketEn, written from the manual independently of the unit. */
#include "tests/rtit/programs/program.h"

#define LIP(ip) ((ip)&0xffffffffffffULL)

bool rtit_enables_context(const struct rtit_settings *s, const struct rtit_context *now)
{
	if (now->smm || now->root)
		return false;
	if (!(s->ctl & (now->cpl ? VMPT_RTIT_CTL_USER : VMPT_RTIT_CTL_OS)))
		return false;
	/* CR3_MATCH has bits 35:5 (Table 10) */
	return !(s->ctl & VMPT_RTIT_CTL_CR3_EN) ||
	       ((now->cr3 ^ s->cr3_match) & 0xfffffffe0ULL) == 0;
}

/* Table 7 */
static bool in_event(const struct rtit_settings *s, u64 id, u64 ip)
{
	bool range0 = LIP(ip) >= LIP(s->lip[0]) && LIP(ip) < LIP(s->lip[2]);
	bool range1 = LIP(ip) >= LIP(s->lip[1]) && LIP(ip) < LIP(s->lip[3]);

	return id == 0 ? range0 : id == 1 ? range1 : id == 2 ? range0 || range1 : id == 7;
}

static bool edge(const struct rtit_settings *s, u64 id, u64 ip)
{
	bool edge0 = LIP(ip) == LIP(s->lip[0]) || LIP(ip) == LIP(s->lip[2]);
	bool edge1 = LIP(ip) == LIP(s->lip[1]) || LIP(ip) == LIP(s->lip[3]);

	return id == 0 ? edge0 : id == 1 ? edge1 : id == 2 ? edge0 || edge1 : true;
}

bool rtit_enables_edge(const struct rtit_settings *s, u64 ip)
{
	u64 filter = s->events & 7, stop = s->events >> 3 & 7;

	return (filter < 3 && edge(s, filter, ip)) || (stop < 3 && edge(s, stop, ip));
}

bool rtit_enables_decide(struct rtit_enables *e, const struct rtit_settings *s,
			 const struct rtit_context *now, bool taken, u64 ip)
{
	u64 filter = s->events & 7, stop = s->events >> 3 & 7;

	e->context = rtit_enables_context(s, now);
	/* "frozen when either Trace_En or ContextEn are 0" (2.1.3) */
	if (!e->trace_en || !e->context)
		return false;
	if (taken || edge(s, filter, ip))
		e->filter = in_event(s, filter, ip);
	return e->active && (taken || edge(s, stop, ip)) && in_event(s, stop, ip);
}
