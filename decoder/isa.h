/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Shared by PT and RTIT inside the decoder: the operation tables under the public decoder and
 * splitter, and helpers that both splitters fill slices with. Like the public headers, it belongs
 * to no room.
 */
#ifndef VMPT_DECODER_ISA_H
#define VMPT_DECODER_ISA_H

#include "decoder/vmpt-decode.h"

/* Errors, ownership and lifetimes as in vmpt-decode.h; @options is never NULL. */
struct vmpt_decoder_ops {
	int (*open)(struct vmpt_decoder **dec, const struct vmpt_stream *stream,
		    const struct vmpt_options *options);
	int (*next)(struct vmpt_decoder *dec, struct vmpt_batch *batch);
	void (*close)(struct vmpt_decoder *dec);
	void (*time_only)(struct vmpt_decoder *dec); /* vmpt_decoder_time_only(); or NULL */
};

struct vmpt_splitter_ops {
	int (*open)(struct vmpt_splitter **split, const struct vmpt_stream *stream,
		    const struct vmpt_options *options);
	int (*next)(struct vmpt_splitter *split, struct vmpt_slice *slice);
	void (*close)(struct vmpt_splitter *split);
};

extern const struct vmpt_decoder_ops vmpt_pt_decoder_ops, vmpt_rtit_decoder_ops;
extern const struct vmpt_splitter_ops vmpt_pt_splitter_ops, vmpt_rtit_splitter_ops;

/* First member of each implementation's struct. */
struct vmpt_decoder {
	const struct vmpt_decoder_ops *ops;
};

struct vmpt_splitter {
	const struct vmpt_splitter_ops *ops;
};

/*
 * Decode only time packets and those that make a token for a tracker. Other packets may be part of
 * a run, with their bytes unchanged, and Last IP is not kept. Call before the first batch.
 */
void vmpt_decoder_time_only(struct vmpt_decoder *dec);

static inline void slice_add_cr3(struct vmpt_slice *slice, u64 cr3)
{
	u32 i;

	if (slice->cr3_count > VMPT_SLICE_CR3S)
		return;
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
