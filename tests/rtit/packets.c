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

int rtit_packets_open(struct rtit_packets *p, const u8 *trace, size_t size, size_t from,
		      bool cycle_acc)
{
	struct vmpt_options options = { .cycle_acc = cycle_acc ? VMPT_CYCLE_ACC_YES
							       : VMPT_CYCLE_ACC_NO };

	memset(p, 0, sizeof(*p));
	p->from = from;
	p->stream = (struct vmpt_stream){ .data = trace + from,
					  .size = size - from,
					  .cpu = -1,
					  .tid = -1,
					  .isa = VMPT_ISA_RTIT };
	return vmpt_decoder_open(&p->decoder, &p->stream, &options);
}

int rtit_packets_next(struct rtit_packets *p, struct vmpt_packet *pkt)
{
	struct vmpt_packet next;
	int ret;

	do {
		ret = vmpt_packet_next(p->decoder, &p->cursor, &next);
		if (ret <= 0)
			return ret;
	} while (next.kind == VMPT_ITEM_RTIT_CYC);
	*pkt = next;
	pkt->offset += p->from;
	return 1;
}

void rtit_packets_close(struct rtit_packets *p)
{
	vmpt_decoder_close(p->decoder);
}
