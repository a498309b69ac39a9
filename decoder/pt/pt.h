/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * PT for the other rooms of the decoder: PSBs, heads and payloads of packets, units that begin at a
 * packet (PSB+, groups), the kinds of time packets, and owners for a reader of its own.
 */
#ifndef VMPT_DECODER_PT_H
#define VMPT_DECODER_PT_H

#include "decoder/isa.h"
#include "decoder/pt/follow.h"
#include "decoder/pt/heads.h"
#include "decoder/pt/payload.h"
#include "decoder/pt/units.h"

/* ---- slices along with items (decoder.c) ---- */

/*
 * Whether @dec, which is PT's, is to make slices of the packets that it decodes; call before the
 * first batch. They are those of vmpt_split_next(), without TSCs and CR3s. 0 or -VMPT_E_NOMEM.
 */
int vmpt_pt_decoder_slices(struct vmpt_decoder *dec, bool wanted);
/*
 * The next slice, as far as the packets decoded so far show it. *@whole: it is complete, and is not
 * returned again; else more packets will change only its size and totals, .sure and .concealed, and
 * .size is what is certainly its own, not 0. False: nothing is known of it yet; after the last
 * batch, there is none.
 */
bool vmpt_pt_decoder_slice(struct vmpt_decoder *dec, struct vmpt_slice *slice, bool *whole);

#endif
