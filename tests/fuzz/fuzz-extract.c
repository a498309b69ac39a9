// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Splitter and stream writer on any bytes: slices are contiguous, every byte that an owner gets is
 * announced, and each stream decodes again without a loss. The input's first byte chooses options,
 * a gap, and a clock, for which vmpt_clocks first walks the bytes.
 */
#include <stdlib.h>

#include "decoder/vmpt-extract.h"
#include "util/array.h"

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
	size_t size[KEPT], room[KEPT], given[KEPT];
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
	CHECK(!vmpt_reserve(&o->bytes[stream], &o->room[stream], o->size[stream] + n + 1));
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
		CHECK(x->out_offset >= o->given[x->stream]);
		o->given[x->stream] = x->out_offset + x->out_size;
		CHECK(o->given[x->stream] <= o->size[x->stream]);
	}
	return 0;
}

/* Its first byte is a packet's: a stream begins with a PSB. */
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

/* Epochs are in order, and lookups find one of them. */
static void check_epochs(const struct vmpt_clocks *clocks)
{
	const struct vmpt_epoch *e;
	size_t i, k, n;

	for (i = 0; i < vmpt_clocks_vmcs_count(clocks); i++) {
		e = vmpt_clocks_epochs(clocks, i, &n);
		for (k = 0; k < n; k++) {
			CHECK(e[k].from <= e[k].to);
			CHECK(!k || e[k].from >= e[k - 1].from);
			CHECK(e[k].source == VMPT_MAP_NONE || e[k].map.multiplier);
		}
		e = vmpt_clocks_at(clocks, vmpt_clocks_vmcs(clocks, i), 1ULL << 40);
		CHECK(!e || e->source != VMPT_MAP_NONE);
	}
}

static struct vmpt_clocks *open_clocks(const struct vmpt_stream *const *streams,
				       const struct vmpt_options *decode)
{
	static const struct vmpt_given given = { .vmcs = 0xa000,
						 .map = { VMPT_TSC_UNSCALED, 1000 },
						 .source = VMPT_MAP_USER };
	struct vmpt_clocks_options options = {
		.decode = *decode,
		.rates = { .tsc_num = 84, .tsc_den = 1, .mtc_freq = 3, .has_mtc_freq = true },
		.given = &given,
		.given_count = 1,
	};
	struct vmpt_clocks *clocks;

	/* Half of them without rates and given maps. */
	if (streams[0]->size & 1)
		options = (struct vmpt_clocks_options){ .decode = *decode };
	CHECK(!vmpt_clocks_open(&clocks, streams, 1, &options));
	check_epochs(clocks);
	return clocks;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static const struct vmpt_extract_ops ops = { new_stream, write_bytes, end_slice };
	struct vmpt_extract_options options = { 0 };
	struct vmpt_stream stream = { .cpu = 0, .tid = -1 };
	struct vmpt_gap gap = { .flags = VMPT_GAP_LOST };
	const struct vmpt_stream *whole = &stream;
	struct vmpt_clocks *clocks = NULL;
	struct vmpt_vms_found found;
	struct out o = { 0 };
	int i;

	if (size < 1)
		return 0;
	options.conceal = data[0] & 1;
	options.decode.headless = data[0] & 2;
	options.decode.scalar = data[0] & 4;
	options.decode.guest_only = (data[0] >> 3 & 3) % 3;
	options.decode.host_only = (data[0] >> 3 & 3) == 3;
	stream.data = data + 1;
	stream.size = size - 1;
	gap.offset = stream.size / 2;
	if (data[0] & 0x20 && gap.offset) {
		stream.gaps = &gap;
		stream.gap_count = 1;
	}
	options.clock = (data[0] >> 6) % 3;
	if (options.clock)
		options.clocks = clocks = open_clocks(&whole, &options.decode);
	CHECK(!vmpt_vms_find(&whole, 1, &options.decode, &found));
	CHECK(found.vms != VMPT_VMS_SEEN || found.offset < stream.size);
	CHECK(!vmpt_extract(&stream, &options, &ops, &o));
	vmpt_clocks_close(clocks);
	CHECK(o.at == stream.size);
	for (i = 0; i < KEPT; i++) {
		decodes(o.bytes[i], o.size[i]);
		free(o.bytes[i]);
	}
	return 0;
}
