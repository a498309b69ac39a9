/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* vmpt_extract() for streams of RTIT: what extract.h says, by rtit-extract.c. */
#ifndef VMPT_DECODER_RTIT_EXTRACT_H
#define VMPT_DECODER_RTIT_EXTRACT_H

#include "decoder/vmpt-extract.h"

int vmpt_rtit_extract(const struct vmpt_stream *stream, const struct vmpt_extract_options *options,
		      const struct vmpt_extract_ops *ops, void *opaque);

#endif
