/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The reference for RTIT's decoding: a stream's packets by Figure 2, 4.2.15 and Table 18, in as few
 * lines as possible and with no code of arch/ or decoder/ that parses bytes.
 */
#ifndef VMPT_TESTS_RTIT_WALK_H
#define VMPT_TESTS_RTIT_WALK_H

#include "decoder/vmpt-decode.h"

/*
 * Compare decoder and splitter with the reference, packet by packet. Owners and erratum marks of
 * packets are not in the reference: decoder and splitter must agree on them. NULL, or what is wrong
 * at *where.
 */
const char *rtit_walk(const struct vmpt_stream *stream, const struct vmpt_options *options,
		      u64 *where);

#endif
