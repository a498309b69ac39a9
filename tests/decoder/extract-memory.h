/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* vmpt_extract() into memory, for tests. */
#ifndef VMPT_TESTS_EXTRACT_MEMORY_H
#define VMPT_TESTS_EXTRACT_MEMORY_H

#include "decoder/vmpt-extract.h"

struct extracted_stream {
	struct vmpt_owner owner;
	u8 *bytes;
	size_t size, max;
};

struct extracted {
	struct extracted_stream *streams;
	int count;
	struct vmpt_extracted *slices;
	size_t slice_count;
};

/* The test fails on an error. extracted_free() it. */
void extract_to_memory(struct extracted *e, const struct vmpt_stream *stream,
		       const struct vmpt_extract_options *options);
void extracted_free(struct extracted *e);

/* The stream of a VM by its VMCS, or of the host for @vmcs 0; NULL if there is none. */
const struct extracted_stream *extracted_find(const struct extracted *e, u64 vmcs);

#endif
