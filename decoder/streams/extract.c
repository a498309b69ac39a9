// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt_extract(): chooses PT or RTIT by the stream. */
#include "decoder/streams/streams.h"

int vmpt_extract_abi(const struct vmpt_stream *stream, const struct vmpt_extract_options *options,
		     const struct vmpt_extract_ops *ops, void *opaque, u64 abi)
{
	static const struct vmpt_extract_options defaults;
	static vmpt_extract_fn *const extract[] = {
		[VMPT_ISA_PT] = vmpt_pt_extract,
		[VMPT_ISA_RTIT] = vmpt_rtit_extract,
	};

	if (abi != VMPT_EXTRACT_ABI)
		return -VMPT_E_VERSION;
	return extract[stream->isa](stream, options ? options : &defaults, ops, opaque);
}
