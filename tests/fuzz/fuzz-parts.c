// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * <vmpt/parts.h> on any bytes: however a trace is cut, its packets and owners are those of the
 * whole one. The first byte chooses the options and how often batches are taken, the next four the
 * parts' sizes; the rest is the trace.
 */
#include <stdlib.h>

#include "decoder/vmpt-parts.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

enum { SIZES = 4, HEAD = 1 + SIZES };

struct walk {
	struct vmpt_decoder *whole, *parts;
	struct vmpt_cursor whole_at, parts_at;
};

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void take(struct walk *w)
{
	struct vmpt_packet got, want;
	int ret;

	while ((ret = vmpt_packet_next(w->parts, &w->parts_at, &got)) == 1) {
		require(vmpt_packet_next(w->whole, &w->whole_at, &want) == 1);
		require(want.offset == got.offset && want.kind == got.kind &&
			want.size == got.size && want.payload == got.payload &&
			want.aux == got.aux);
		require(vmpt_owner_same(&want.owner, &got.owner) &&
			want.owner.sure == got.owner.sure &&
			want.owner.concealed == got.owner.concealed);
	}
	require(!ret);
}

/* A part is a copy of its own, so that the sanitizers see who reads past it or later. */
static void add(struct walk *w, const u8 *data, size_t n)
{
	u8 *copy = malloc(n ? n : 1);

	require(copy);
	memcpy(copy, data, n);
	require(!vmpt_decoder_add(w->parts, copy, n));
	free(copy);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct vmpt_options options = { 0 };
	struct vmpt_stream stream = { .cpu = -1, .tid = -1 };
	struct vmpt_packet pkt;
	struct walk w = { 0 };
	unsigned int every, i;
	u64 at = 0;
	size_t n;

	if (size < HEAD)
		return 0;
	stream.data = data + HEAD;
	stream.size = size - HEAD;
	options.headless = data[0] & 1;
	options.host_only = data[0] & 2;
	options.guest_only = (data[0] >> 2 & 3) % 3;
	every = 1 + (data[0] >> 4);
	if (vmpt_decoder_open_parts(&w.parts, &options))
		return 0;
	options.scalar = true;
	require(!vmpt_decoder_open(&w.whole, &stream, &options));
	for (i = 0; at < stream.size; at += n) {
		n = data[1 + i % SIZES]; /* 0: a part without bytes */
		if (!n && i % SIZES == 0)
			n = 1;
		if (n > stream.size - at)
			n = stream.size - at;
		add(&w, stream.data + at, n);
		if (++i % every == 0)
			take(&w);
	}
	require(!vmpt_decoder_end(w.parts));
	take(&w);
	require(!vmpt_packet_next(w.whole, &w.whole_at, &pkt));
	vmpt_decoder_close(w.whole);
	vmpt_decoder_close(w.parts);
	return 0;
}
