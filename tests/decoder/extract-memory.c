// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <check.h>
#include <stdlib.h>

#include "tests/decoder/extract-memory.h"
#include "util/array.h"

static int new_stream(void *opaque, int stream, const struct vmpt_owner *owner)
{
	struct extracted *e = opaque;

	ck_assert_int_eq(stream, e->count);
	if (vmpt_grow(&e->streams, (size_t)stream))
		ck_abort_msg("no memory");
	e->streams[stream] = (struct extracted_stream){ .owner = *owner };
	e->count++;
	return 0;
}

static int write_bytes(void *opaque, int stream, const u8 *bytes, size_t n)
{
	struct extracted *e = opaque;
	struct extracted_stream *s = &e->streams[stream];

	if (stream >= e->count)
		ck_abort_msg("no stream %d", stream);
	if (vmpt_reserve(&s->bytes, &s->max, s->size + n))
		ck_abort_msg("no memory");
	memcpy(s->bytes + s->size, bytes, n);
	s->size += n;
	return 0;
}

static int add_slice(void *opaque, const struct vmpt_extracted *slice)
{
	struct extracted *e = opaque;

	if (vmpt_grow(&e->slices, e->slice_count))
		ck_abort_msg("no memory");
	e->slices[e->slice_count++] = *slice;
	return 0;
}

void extract_to_memory(struct extracted *e, const struct vmpt_stream *stream,
		       const struct vmpt_extract_options *options)
{
	static const struct vmpt_extract_ops ops = { new_stream, write_bytes, add_slice };

	memset(e, 0, sizeof(*e));
	ck_assert_int_eq(vmpt_extract(stream, options, &ops, e), 0);
}

void extracted_free(struct extracted *e)
{
	int i;

	for (i = 0; i < e->count; i++)
		free(e->streams[i].bytes);
	free(e->streams);
	free(e->slices);
	memset(e, 0, sizeof(*e));
}

const struct extracted_stream *extracted_find(const struct extracted *e, u64 vmcs)
{
	int i;

	for (i = 0; i < e->count; i++)
		if (vmcs ? e->streams[i].owner.kind == VMPT_OWNER_VM &&
				    e->streams[i].owner.vmcs == vmcs
			 : e->streams[i].owner.kind == VMPT_OWNER_HOST)
			return &e->streams[i];
	return NULL;
}
