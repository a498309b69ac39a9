/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside the decoder: from the tracker's marks to slices (splitter.c). It is fed all marks of a
 * stream in order, by the splitter or by a decoder that makes slices along with its items.
 */
#ifndef VMPT_DECODER_SLICER_H
#define VMPT_DECODER_SLICER_H

#include "decoder/pt/tracker.h"

/* Slices that one token can finish: before the doubt, the doubt, a loss. */
#define VMPT_SLICER_READY 32

struct vmpt_slicer {
	const struct vmpt_stream *stream;
	bool doubting;
	bool given;		 /* vmpt_tracker.given at the last mark */
	struct vmpt_slice slice; /* size is not set yet */
	struct vmpt_slice doubt; /* from its offset on, if .doubting */
	struct vmpt_slice ready[VMPT_SLICER_READY];
	unsigned int ready_first, ready_count;
};

/* @owner: the tracker's at the stream's start. */
void vmpt_slicer_init(struct vmpt_slicer *s, const struct vmpt_stream *stream,
		      const struct vmpt_owner *owner);
/* The next mark; @given: vmpt_tracker.given after its token. Not while slices are ready, but for
 * those of the same token. */
void vmpt_slicer_take(struct vmpt_slicer *s, const struct vmpt_mark *mark, bool given);
/* The stream's end: all slices are ready. @given as above. */
void vmpt_slicer_finish(struct vmpt_slicer *s, bool given);
/* The next slice that is ready; false: none is. */
bool vmpt_slicer_next(struct vmpt_slicer *s, struct vmpt_slice *slice);

#endif
