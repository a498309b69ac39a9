/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The packets of an RTIT stream as libvmpt-decode gives them, one by one, from a PSB on. */
#ifndef VMPT_TESTS_RTIT_PACKETS_H
#define VMPT_TESTS_RTIT_PACKETS_H

#include "decoder/vmpt-decode.h"

struct rtit_packets {
	const u8 *trace;
	size_t size, at;
	bool cycle_acc;
	/* Errata whose workarounds take what was before into account. */
	struct vmpt_rtit_last_lip last_lip;
	bool disabled; /* E2: a FUP.PGD, and no FUP.PGE since */
	bool ovf;      /* E5: the packet before was a FUP.BuffOvf … */
	u64 ovf_lip;   /* … with this LIP */
};

/* Where a PSB begins at or behind @from, or @size. */
size_t rtit_psb_find(const u8 *trace, size_t size, size_t from);

/* From the PSB at @from on. */
void rtit_packets_open(struct rtit_packets *p, const u8 *trace, size_t size, size_t from,
		       bool cycle_acc);
/* The next packet, cycle counts left out. 1, 0 at the end, or a negative error. */
int rtit_packets_next(struct rtit_packets *p, struct vmpt_packet *pkt);
void rtit_packets_close(struct rtit_packets *p);

#endif
