/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The judge of RTIT's decoding: what the packets of a stream are by Figure 2, 4.2.15 and Table 18,
 * in the fewest lines and with nothing of arch/ or decoder/ that takes bytes apart.
 */
#ifndef VMPT_TESTS_RTIT_WALK_H
#define VMPT_TESTS_RTIT_WALK_H

#include "decoder/vmpt-decode.h"

/*
 * Compare decoder and splitter with the judge, packet by packet. Who owns a packet and which have
 * an erratum's mark is not judged: decoder and splitter have to say the same. NULL, or what is
 * wrong at *where.
 */
const char *rtit_walk(const struct vmpt_stream *stream, const struct vmpt_options *options,
		      u64 *where);

#endif
