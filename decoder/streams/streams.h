/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* vmpt_extract() for each isa, as in vmpt-extract.h; @options is never NULL. */
#ifndef VMPT_DECODER_STREAMS_H
#define VMPT_DECODER_STREAMS_H

#include "decoder/vmpt-extract.h"

typedef int vmpt_extract_fn(const struct vmpt_stream *stream,
			    const struct vmpt_extract_options *options,
			    const struct vmpt_extract_ops *ops, void *opaque);

vmpt_extract_fn vmpt_pt_extract, vmpt_rtit_extract;

#endif
