// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Splitter and stream writer on any bytes: slices follow each other without
 * holes, every byte that an owner gets is announced, and each stream decodes
 * again without a loss. The input's first byte chooses options and a gap.
 */
#include <stdlib.h>

#include "decoder/extract.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define CHECK(what)                       \
	do {                              \
		if (!(what))              \
			__builtin_trap(); \
	} while (0)

/* More streams than this are counted, not kept. */
#define KEPT 8

struct out {
	u8 *bytes[KEPT];
	size_t size[KEPT], told[KEPT];
	int streams;
	u64 at;
};

static int new_stream(void *opaque, int stream, const struct vmpt_owner *owner)
{
	struct out *o = opaque;

	CHECK(stream == o->streams && owner->kind != VMPT_OWNER_UNKNOWN);
	o->streams++;
	return 0;
}

static int write_bytes(void *opaque, int stream, const u8 *bytes, size_t n)
{
	struct out *o = opaque;

	CHECK(stream < o->streams);
	if (stream >= KEPT)
		return 0;
	o->bytes[stream] = realloc(o->bytes[stream], o->size[stream] + n + 1);
	CHECK(o->bytes[stream]);
	memcpy(o->bytes[stream] + o->size[stream], bytes, n);
	o->size[stream] += n;
	return 0;
}

static int end_slice(void *opaque, const struct vmpt_extracted *x)
{
	struct out *o = opaque;

	CHECK(x->slice.offset == o->at);
	o->at += x->slice.size;
	CHECK((x->stream < 0) ||
	      (x->stream < o->streams && x->slice.owner.kind != VMPT_OWNER_UNKNOWN));
	if (x->stream >= 0 && x->stream < KEPT) {
		CHECK(x->out_offset >= o->told[x->stream]);
		o->told[x->stream] = x->out_offset + x->out_size;
		CHECK(o->told[x->stream] <= o->size[x->stream]);
	}
	return 0;
}

/* Its first byte is a packet's: a stream begins with PSB. */
static void decodes(const u8 *bytes, size_t size)
{
	struct vmpt_options options = { .scalar = true, .headless = true };
	struct vmpt_stream stream = { .data = bytes, .size = size, .tid = -1 };
	struct vmpt_cursor at = { 0 };
	struct vmpt_decoder *d;
	struct vmpt_packet p;

	CHECK(!vmpt_decoder_open(&d, &stream, &options));
	while (vmpt_packet_next(d, &at, &p) > 0)
		CHECK(p.kind != VMPT_ITEM_LOSS);
	vmpt_decoder_close(d);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static const struct vmpt_extract_ops ops = { new_stream, write_bytes, end_slice };
	struct vmpt_extract_options options = { 0 };
	struct vmpt_stream stream = { .cpu = 0, .tid = -1 };
	struct vmpt_gap gap = { .flags = VMPT_GAP_LOST };
	struct out o = { 0 };
	int i;

	if (size < 1)
		return 0;
	options.conceal = data[0] & 1;
	options.decode.headless = data[0] & 2;
	options.decode.scalar = data[0] & 4;
	options.decode.guest_only = (data[0] >> 3 & 3) % 3;
	stream.data = data + 1;
	stream.size = size - 1;
	gap.offset = stream.size / 2;
	if (data[0] & 0x20 && gap.offset) {
		stream.gaps = &gap;
		stream.gap_count = 1;
	}
	CHECK(!vmpt_extract(&stream, &options, &ops, &o));
	CHECK(o.at == stream.size);
	for (i = 0; i < KEPT; i++) {
		decodes(o.bytes[i], o.size[i]);
		free(o.bytes[i]);
	}
	return 0;
}
