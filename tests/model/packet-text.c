// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Packets as short text, in the manual's terms. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "tests/model/rig.h"

struct line {
	char *text;
	size_t size, used;
};

__attribute__((format(printf, 2, 3))) static void put(struct line *l, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(l->text + l->used, l->size - l->used, fmt, ap);
	va_end(ap);
	if (n < 0 || l->used + (size_t)n >= l->size)
		ck_abort_msg("the packets' text is longer than %zu", l->size);
	l->used += (size_t)n;
}

static void put_tnt(struct line *l, const struct vmpt_pt_packet *p)
{
	u64 i;

	put(l, "TNT(");
	for (i = p->tnt.count; i--;)
		put(l, "%c", p->tnt.bits >> i & 1 ? 'T' : 'N');
	put(l, ")");
}

static void put_ip(struct line *l, struct packet_text *state, const struct vmpt_pt_packet *p)
{
	if (!p->ip.ipbytes) {
		put(l, "%s()", vmpt_pt_name(p->kind));
		return;
	}
	state->last_ip = vmpt_pt_ip_expand(state->last_ip, (unsigned int)p->ip.ipbytes, p->ip.ip);
	put(l, "%s(0x%" PRIx64 ")", vmpt_pt_name(p->kind), state->last_ip);
}

static void put_event(struct line *l, const struct vmpt_pt_packet *p)
{
	const char *name = vmpt_pt_value_name(p, 0);

	if (p->kind == VMPT_PT_EVD)
		put(l, "EVD.%s(0x%" PRIx64 ")", name ? name : "?", p->evd.payload);
	else
		put(l, "CFE.%s(%s%" PRIu64 ")", name ? name : "?", p->cfe.ip ? "IP," : "",
		    p->cfe.vector);
}

static void put_mode(struct line *l, const struct vmpt_pt_packet *p)
{
	if (p->kind == VMPT_PT_MODE_TSX)
		put(l, "MODE.TSX(%s%s)", p->tsx.intx ? "InTX" : "",
		    p->tsx.txabort ? "TXAbort" : "");
	else
		put(l, "MODE.Exec(%s%s)",
		    p->exec.cs_l   ? "64"
		    : p->exec.cs_d ? "32"
				   : "16",
		    p->exec.rflags_if ? ",IF" : "");
}

/* Packets whose fields are numbers. */
static void put_numbers(struct line *l, const struct vmpt_pt_packet *p)
{
	const u64 *v = p->val;

	switch (p->kind) {
	case VMPT_PT_MWAIT:
		put(l, "MWAIT(0x%" PRIx64 ",%" PRIu64 ")", v[0], v[1]);
		break;
	case VMPT_PT_PWRE:
		put(l, "PWRE(%s%" PRIu64 ",%" PRIu64 ")", v[0] ? "HW," : "", v[1], v[2]);
		break;
	case VMPT_PT_PWRX:
		put(l, "PWRX(%" PRIu64 ",%" PRIu64 ",0x%" PRIx64 ")", v[0], v[1], v[2]);
		break;
	case VMPT_PT_TMA:
		put(l, "TMA(0x%" PRIx64 ",%" PRIu64 ")", v[0], v[1]);
		break;
	case VMPT_PT_PTW:
		put(l, "PTW(%s%s,0x%" PRIx64 ")", v[1] ? "IP," : "", v[0] ? "8B" : "4B", v[2]);
		break;
	case VMPT_PT_BBP:
		put(l, "BBP(%s,%" PRIu64 ")", v[0] ? "4B" : "8B", v[1]);
		break;
	case VMPT_PT_BIP:
		put(l, "BIP(%" PRIu64 ",0x%" PRIx64 ")", v[0], v[1]);
		break;
	case VMPT_PT_TSC:
	case VMPT_PT_MNT:
		put(l, "%s(0x%" PRIx64 ")", vmpt_pt_name(p->kind), v[0]);
		break;
	default: /* CBR, MTC, CYC */
		put(l, "%s(%" PRIu64 ")", vmpt_pt_name(p->kind), v[0]);
		break;
	}
}

static void put_packet(struct line *l, struct packet_text *state, const struct vmpt_pt_packet *p)
{
	switch (p->kind) {
	case VMPT_PT_TNT_8:
	case VMPT_PT_TNT_64:
		put_tnt(l, p);
		break;
	case VMPT_PT_TIP:
	case VMPT_PT_TIP_PGE:
	case VMPT_PT_TIP_PGD:
	case VMPT_PT_FUP:
		put_ip(l, state, p);
		break;
	case VMPT_PT_CFE:
	case VMPT_PT_EVD:
		put_event(l, p);
		break;
	case VMPT_PT_MODE_TSX:
	case VMPT_PT_MODE_EXEC:
		put_mode(l, p);
		break;
	case VMPT_PT_PIP:
		put(l, "PIP(0x%" PRIx64 "%s)", p->pip.cr3, p->pip.nr ? ",NR" : "");
		break;
	case VMPT_PT_VMCS:
		if (p->vmcs.pointer == VMPT_PT_VMCS_NONE)
			put(l, "VMCS(none)");
		else
			put(l, "VMCS(0x%" PRIx64 ")", p->vmcs.pointer);
		break;
	case VMPT_PT_EXSTOP:
	case VMPT_PT_BEP:
		put(l, "%s(%s)", vmpt_pt_name(p->kind), p->val[0] ? "IP" : "");
		break;
	case VMPT_PT_PSB:
		state->last_ip = 0;
		put(l, "PSB");
		break;
	case VMPT_PT_PSBEND:
	case VMPT_PT_OVF:
	case VMPT_PT_TRACESTOP:
		put(l, "%s", vmpt_pt_name(p->kind));
		break;
	default:
		put_numbers(l, p);
	}
}

void packet_text(struct packet_text *state, const u8 *bytes, size_t len, char *text, size_t size)
{
	struct line l = { text, size, 0 };
	struct vmpt_pt_packet p;
	size_t at;
	int err;

	text[0] = 0;
	for (at = 0; at < len; at += p.size) {
		err = vmpt_pt_decode(&p, bytes + at, len - at, state->block);
		if (err)
			ck_abort_msg("%s after %s", vmpt_strerror(err), text);
		if (at)
			put(&l, ", ");
		put_packet(&l, state, &p);
		state->block = vmpt_pt_block_after(&p, state->block);
	}
}
