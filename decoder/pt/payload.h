/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Payloads of packets that are known to be complete, without the packet table: for code
 * that reads every PIP, VMCS and TSC of a trace. A test compares them with
 * vmpt_pt_decode().
 */
#ifndef VMPT_DECODER_PAYLOAD_H
#define VMPT_DECODER_PAYLOAD_H

#include "arch/types.h"

/* PIP, Table 33-24; 8 bytes are read. */
static inline bool vmpt_pip_nr(const u8 *p)
{
	return p[2] & 1;
}

static inline u64 vmpt_pip_cr3(const u8 *p)
{
	return vmpt_load64(p) >> 17 << 5;
}

/* VMCS, Table 33-34; 7 bytes are read. */
static inline u64 vmpt_vmcs_pointer(const u8 *p)
{
	return ((u64)vmpt_load32(p + 2) | (u64)p[6] << 32) << 12;
}

/* TSC, Table 33-30; 8 bytes are read. */
static inline u64 vmpt_tsc_value(const u8 *p)
{
	return vmpt_load64(p) >> 8;
}

/* The first and the last TSC of a stretch. */
struct vmpt_tscs {
	u64 first, last;
	bool any;
};

static inline void vmpt_tscs_add(struct vmpt_tscs *t, u64 tsc)
{
	if (!t->any)
		t->first = tsc;
	t->last = tsc;
	t->any = true;
}

#endif
