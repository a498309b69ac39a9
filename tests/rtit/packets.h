/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The packets of an RTIT stream from libvmpt-decode, one by one, from a PSB on. */
#ifndef VMPT_TESTS_RTIT_PACKETS_H
#define VMPT_TESTS_RTIT_PACKETS_H

#include "decoder/vmpt-decode.h"

struct rtit_packets {
	struct vmpt_stream stream;
	struct vmpt_decoder *decoder;
	struct vmpt_cursor cursor;
	u64 from; /* of the stream in the trace */
};

/* Offset of the first PSB at or after @from, or @size. */
size_t rtit_psb_find(const u8 *trace, size_t size, size_t from);

/* From the PSB at @from on. 0, or a negative error. */
int rtit_packets_open(struct rtit_packets *p, const u8 *trace, size_t size, size_t from,
		      bool cycle_acc);
/* The next packet, cycle counts left out. 1, 0 at the end, or a negative error. */
int rtit_packets_next(struct rtit_packets *p, struct vmpt_packet *pkt);
void rtit_packets_close(struct rtit_packets *p);

#endif
