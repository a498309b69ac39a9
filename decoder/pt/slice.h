/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Inside the decoder: what both splitters note in a slice. */
#ifndef VMPT_DECODER_SLICE_H
#define VMPT_DECODER_SLICE_H

#include "decoder/vmpt-decode.h"

static inline void slice_add_cr3(struct vmpt_slice *slice, u64 cr3)
{
	u32 i;

	for (i = 0; i < slice->cr3_count && i < VMPT_SLICE_CR3S; i++)
		if (slice->cr3[i] == cr3)
			return;
	if (slice->cr3_count < VMPT_SLICE_CR3S)
		slice->cr3[slice->cr3_count++] = cr3;
	else
		slice->cr3_count = VMPT_SLICE_CR3S + 1;
}

static inline void slice_add_tsc(struct vmpt_slice *slice, u64 tsc)
{
	if (!slice->has_tsc)
		slice->first_tsc = tsc;
	slice->last_tsc = tsc;
	slice->has_tsc = true;
}

#endif
