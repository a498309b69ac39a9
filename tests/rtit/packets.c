// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <string.h>

#include "tests/rtit/packets.h"

size_t rtit_psb_find(const u8 *trace, size_t size, size_t from)
{
	static const u8 psb[VMPT_RTIT_PSB_SIZE] = { 0xc0 };
	const u8 *at;

	if (from > size)
		return size;
	at = memmem(trace + from, size - from, psb, sizeof(psb));
	return at ? (size_t)(at - trace) : size;
}

void rtit_packets_open(struct rtit_packets *p, const u8 *trace, size_t size, size_t from,
		       bool cycle_acc)
{
	*p = (struct rtit_packets){
		.trace = trace, .size = size, .at = from, .cycle_acc = cycle_acc
	};
}

static void fill_lip(struct rtit_packets *p, const struct vmpt_rtit_packet *rtit,
		     struct vmpt_packet *pkt)
{
	pkt->aux = (u8)(rtit->ip.cnt | rtit->ip.zext << 2);
	if (!vmpt_rtit_lip_expand(&p->last_lip, rtit, &pkt->payload))
		pkt->aux |= VMPT_RTIT_AUX_NO_LIP;
}

static void errata(struct rtit_packets *p, struct vmpt_packet *pkt, unsigned int kind)
{
	if (kind == VMPT_RTIT_PGD && p->disabled)
		pkt->aux |= VMPT_RTIT_AUX_IGNORE | 2 << 5;
	if (kind == VMPT_RTIT_TIP && p->ovf && pkt->payload == p->ovf_lip)
		pkt->aux |= VMPT_RTIT_AUX_IGNORE | 5 << 5;
	if (kind == VMPT_RTIT_PGD || kind == VMPT_RTIT_PGE || kind == VMPT_RTIT_BUFF_OVF)
		p->disabled = kind == VMPT_RTIT_PGD;
	p->ovf = kind == VMPT_RTIT_BUFF_OVF;
	p->ovf_lip = pkt->payload;
}

int rtit_packets_next(struct rtit_packets *p, struct vmpt_packet *pkt)
{
	struct vmpt_rtit_packet rtit;
	int ret;

	if (p->at == p->size)
		return 0;
	ret = vmpt_rtit_decode(&rtit, p->trace + p->at, p->size - p->at, p->cycle_acc);
	if (ret < 0)
		return ret;
	*pkt = (struct vmpt_packet){ .offset = p->at, .size = rtit.size };
	pkt->kind = (u8)(VMPT_ITEM_RTIT + rtit.kind);
	if (rtit.kind == VMPT_RTIT_BUFF_OVF)
		p->last_lip.valid = false;
	if (rtit.kind == VMPT_RTIT_TNT)
		pkt->payload = p->trace[p->at];
	else if (rtit.kind == VMPT_RTIT_PIP)
		pkt->payload = rtit.pip.cr3 | rtit.pip.pg << 40;
	else if (vmpt_rtit_table[rtit.kind].classes & VMPT_RTIT_HAS_LIP)
		fill_lip(p, &rtit, pkt);
	errata(p, pkt, rtit.kind);
	p->at += rtit.size;
	return 1;
}

void rtit_packets_close(struct rtit_packets *p)
{
	(void)p;
}
