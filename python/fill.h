/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The part of the Python module that is C: it fills arrays, many items at a call, which costs too
 * much in Python. The arrays are the caller's; nothing is allocated here but at open.
 */
#ifndef VMPT_PYTHON_FILL_H
#define VMPT_PYTHON_FILL_H

#include <vmpt/clock.h>
#include <vmpt/flow.h>
#include <vmpt/timeline.h>

struct vmpt_py_reader;

/* Without @clocks times are not known; @stream is then used, else its index @i. 0 or an error. */
int vmpt_py_reader_open(struct vmpt_py_reader **reader, const struct vmpt_stream *stream,
			const struct vmpt_clocks *clocks, size_t i,
			const struct vmpt_options *options);
void vmpt_py_reader_close(struct vmpt_py_reader *reader);

/*
 * Fill up to @n @items, whose offsets are relative to *@base, and, unless they are NULL, the owner,
 * the time and the offset in the stream of each. Stops early where an offset exceeds 32 bits.
 * Returns how many; 0 at the end; or a negative error, once what came before it was returned.
 */
long vmpt_py_items(struct vmpt_py_reader *reader, size_t n, struct vmpt_item *items,
		   struct vmpt_owner *owners, struct vmpt_time *times, u64 *offsets, u64 *base);
/* The same with packets, of which runs consist. */
long vmpt_py_packets(struct vmpt_py_reader *reader, size_t n, struct vmpt_packet *packets,
		     struct vmpt_time *times);
long vmpt_py_slices(struct vmpt_splitter *split, size_t n, struct vmpt_slice *slices);
long vmpt_py_spans(struct vmpt_timeline *timeline, size_t n, struct vmpt_span *spans);

struct vmpt_py_flow;

/* A batch whose blocks are .count ids from .first on of those that were filled together with it. */
struct vmpt_py_batch {
	u64 offset, end, ip;
	u32 first, count, last, space;
	u8 kind, reason;
};

int vmpt_py_flow_open(struct vmpt_py_flow **flow, const struct vmpt_stream *stream,
		      struct vmpt_code *code, const struct vmpt_flow_options *options);
void vmpt_py_flow_close(struct vmpt_py_flow *flow);
struct vmpt_flow *vmpt_py_flow_of(struct vmpt_py_flow *flow);
/* What is left of the current batch, or the next one: 1, 0 at the end, or a negative error. */
int vmpt_py_flow_next(struct vmpt_py_flow *flow, struct vmpt_flow_batch *batch);
/*
 * Fill up to @n batches and @ids_n ids of their blocks. A batch whose ids do not fit is cut: the
 * next call has the rest. Returns how many batches; 0 at the end; or a negative error, once what
 * came before it was returned.
 */
long vmpt_py_flow_fill(struct vmpt_py_flow *flow, size_t n, struct vmpt_py_batch *batches,
		       size_t ids_n, u32 *ids);
/* Blocks @from to @from + @n, which are below vmpt_flow_blocks(), and how often they ran (may be
 * NULL). */
void vmpt_py_flow_blocks(struct vmpt_py_flow *flow, u32 from, u32 n, struct vmpt_flow_block *blocks,
			 u64 *whole, u64 *instructions);

/* The text of a packet as vmpt dump prints it: "TIP.PGE 0x401000 011b". Returns its length. */
size_t vmpt_py_text(const struct vmpt_stream *stream, const struct vmpt_packet *packet, char *buf,
		    size_t len);

/* Whether the library has the interface that this was compiled with: 0 or -VMPT_E_VERSION. */
int vmpt_py_version(void);

#endif
