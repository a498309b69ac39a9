/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside an image that is a code stream (docs/qemu-plugin/code-stream.md): its records, sorted.
 *
 * A page is known where it was executed, and has a new version whenever a known byte changes. A
 * mapping leads from a linear page to a physical one from its time on. So a linear page has
 * alternatives, one after the other in time: the versions of the pages that it was mapped to.
 * Times in records are those of execution, which in the trace may be later (CODE_RUN).
 */
#ifndef VMPT_DECODER_CODE_STREAM_H
#define VMPT_DECODER_CODE_STREAM_H

#include "decoder/image/image.h"

/* CODE_BYTES. Those of a page are in the order of the file. */
struct stream_bytes {
	u64 page; /* number of the physical page */
	u64 time;
	const u8 *bytes; /* in the file */
	u32 machine;	 /* whose memory it is: of CODE_STARTs before it */
	u16 at, size;	 /* in the page */
};

/* CODE_MAP. Those of a linear page, mode and CR3 are in the order of the file. */
struct stream_map {
	u64 linear, cr3;
	u64 page;	 /* physical */
	u64 time;	 /* from which it holds */
	const u8 *order; /* in the file */
	u32 machine;
	u8 mode;
};

/* CODE_RUN. By VMCS and time. */
struct stream_run {
	u64 vmcs, begin, end, moved;
};

/* A state of a page, from its first changed byte up to the next version. */
struct stream_version {
	u64 time;
	size_t first; /* its records, up to the next version's */
	struct made_page *made;
};

struct stream_page {
	u64 number;
	u32 machine;
	size_t first, count; /* of .bytes */
	struct stream_version *version;
	size_t versions; /* 0: not counted yet */
};

struct code_stream {
	struct stream_bytes *bytes;
	size_t bytes_count;
	struct stream_map *map;
	size_t map_count;
	struct stream_run *run;
	size_t run_count;
	struct stream_page *page;
	size_t page_count;
	u64 *start; /* of machine 1, 2, …; machine 0 is one whose start is damaged */
	size_t starts;
	size_t made;	/* versions with their bytes */
	bool complete;	/* it ends as a machine does */
	bool map_order; /* the mappings of a linear page, mode and CR3 are in the order of time */
};

/* @diag has what is missing if it returns 0. */
int vmpt_code_stream_open(struct code_stream **stream, const u8 *data, u64 size,
			  struct vmpt_diag *diag);
void vmpt_code_stream_close(struct code_stream *stream);
bool vmpt_code_stream_is(const u8 *data, u64 size);

/* As vmpt_image_page() and so on, by the lock's owner. */
int vmpt_code_stream_find(struct code_stream *stream, const struct vmpt_space *space, u64 linear,
			  unsigned int nth, struct vmpt_page *page);
int vmpt_code_stream_physical(struct code_stream *stream, u64 physical, struct vmpt_page *page);
int vmpt_code_stream_translate(struct code_stream *stream, const struct vmpt_space *space,
			       u64 linear, u64 *physical);

#endif
