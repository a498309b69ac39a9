/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside the decoder: the source of a trace that comes in parts (vmpt-parts.h). It is the plain
 * loop, which stops where the bytes to come could change what a piece means.
 */
#ifndef VMPT_DECODER_PT_PARTS_H
#define VMPT_DECODER_PT_PARTS_H

#include "decoder/pt/source.h"
#include "decoder/vmpt-parts.h"

struct vmpt_parts;

int vmpt_parts_open(struct vmpt_parts **parts, const struct vmpt_options *options);
void vmpt_parts_close(struct vmpt_parts *parts);
/* The stream so far. Of its data only what is kept can be read; it moves with each add. */
const struct vmpt_stream *vmpt_parts_stream(const struct vmpt_parts *parts);
int vmpt_parts_add(struct vmpt_parts *parts, const u8 *bytes, size_t size);
int vmpt_parts_end(struct vmpt_parts *parts);
/* As vmpt_source_next(); 0: more bytes are needed, or it is the end. */
int vmpt_parts_next(struct vmpt_parts *parts, struct vmpt_piece *piece);
/* The bytes from @offset on must be kept, too; ~0: none. False: they are too many. */
bool vmpt_parts_keep(struct vmpt_parts *parts, u64 offset);
/* From now on the pieces of @src are those of @parts, which it owns. (source.c) */
void vmpt_source_take_parts(struct vmpt_source *src, struct vmpt_parts *parts);

#endif
