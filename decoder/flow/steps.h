/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside the flow decoder: what its loop does with a packet, by the first byte. Made from the
 * packet table at build time (steps-gen.c).
 */
#ifndef VMPT_DECODER_FLOW_STEPS_H
#define VMPT_DECODER_FLOW_STEPS_H

#include "arch/types.h"

/* Bits 7:4 of a step; bits 3:0 of SKIP are the packet's size. */
#define VMPT_FLOW_SLOW 0x00 /* left to events.c */
#define VMPT_FLOW_SKIP 0x10 /* time: the flow does not need it */
#define VMPT_FLOW_CYC  0x20 /* a CYC of one byte or more */
#define VMPT_FLOW_RUN  0x30 /* TNT-8 */
#define VMPT_FLOW_TIP  0x40
#define VMPT_FLOW_PGE  0x50
#define VMPT_FLOW_PGD  0x60 /* with an IP */
#define VMPT_FLOW_FUP  0x70 /* with an IP */

/* An IP from 8 payload bytes and Last IP, by IPBytes (Table 33-18). */
struct vmpt_flow_ip {
	u64 mask, keep; /* bits of the payload, of Last IP */
	u8 size;	/* of the packet; 0: no IP, or reserved: such packets are SLOW */
	u8 sign;	/* bits to shift out and in, for sign extension */
};

extern const u8 vmpt_flow_steps[256];
extern const struct vmpt_flow_ip vmpt_flow_ips[8];

/* The IP of the packet at @p, which has one. */
static inline u64 vmpt_flow_ip_at(const u8 *p, u64 last_ip)
{
	const struct vmpt_flow_ip *form = &vmpt_flow_ips[*p >> 5];
	u64 ip = (vmpt_load64(p + 1) & form->mask) | (last_ip & form->keep);

	return (u64)((s64)(ip << form->sign) >> form->sign);
}

#endif
