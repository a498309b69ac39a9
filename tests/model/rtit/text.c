// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* RTIT packets as short text. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "tests/model/rtit/rig.h"

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

/* Table 18 in reverse: parts that were not sent are 0, or those of Last LIP. */
static u64 whole_lip(struct rtit_text *state, const struct vmpt_rtit_packet *p)
{
	u64 sent = p->ip.cnt == 0 ? 0xffff : p->ip.cnt == 1 ? 0xffffffff : 0xffffffffffff;
	u64 lip = p->ip.lip;

	ck_assert_uint_eq(p->ip.lip & ~sent, 0);
	if (!p->ip.zext && p->ip.cnt < 2) {
		if (!state->valid)
			ck_abort_msg("%s: compressed against a Last LIP that is not valid",
				     vmpt_rtit_name(p->kind));
		lip |= state->last_lip & ~sent;
	}
	state->last_lip = lip;
	/* 4.2.5: "the valid bits … are cleared": nothing is compressed against a FUP.BuffOvf. */
	state->valid = p->kind != VMPT_RTIT_BUFF_OVF;
	return lip;
}

static void put_packet(struct line *l, struct rtit_text *state, const struct vmpt_rtit_packet *p)
{
	u64 i;

	switch (p->kind) {
	case VMPT_RTIT_TNT:
		put(l, "TNT ");
		for (i = p->tnt.count; i--;)
			put(l, "%c", p->tnt.bits >> i & 1 ? 'T' : 'N');
		break;
	case VMPT_RTIT_PSB:
		if (!state->keep)
			state->valid = false;
		put(l, "PSB");
		break;
	case VMPT_RTIT_TRACESTOP:
		put(l, "TraceSTOP");
		break;
	case VMPT_RTIT_PIP:
		put(l, "PIP %" PRIx64 "%s", p->pip.cr3, p->pip.pg ? " PG" : "");
		break;
	case VMPT_RTIT_MTC:
		put(l, "MTC %" PRIu64 ":%02" PRIx64, p->mtc.rng, p->mtc.tsc);
		break;
	case VMPT_RTIT_STS:
		put(l, "STS %" PRIu64 "/%" PRIu64 " %" PRIx64, p->sts.acbr, p->sts.ecbr,
		    p->sts.tsc);
		break;
	default:
		put(l, "%s %" PRIx64, vmpt_rtit_name(p->kind), whole_lip(state, p));
	}
	if (p->flags & VMPT_RTIT_CYCLES)
		put(l, " +%u", p->cycles);
}

void rtit_text(struct rtit_text *state, const u8 *bytes, size_t len, bool cycle_acc, char *text,
	       size_t size)
{
	struct line l = { text, size, strlen(text) };
	struct vmpt_rtit_packet p;
	size_t at;
	int err;

	for (at = 0; at < len; at += p.size) {
		err = vmpt_rtit_decode(&p, bytes + at, len - at, cycle_acc);
		if (err)
			ck_abort_msg("%s after %s", vmpt_strerror(err), text);
		if (l.used)
			put(&l, ", ");
		put_packet(&l, state, &p);
	}
}
