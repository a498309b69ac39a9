// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * RTIT by the fast source and by the plain loop, on any bytes: the same packets with owners and
 * marks, the same slices. The input's first four bytes choose lanes, chunk, mode, a gap and
 * runs; the rest is the stream.
 */
#include <stdlib.h>

#include "decoder/vmpt-decode.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define CHECK(what)                       \
	do {                              \
		if (!(what))              \
			__builtin_trap(); \
	} while (0)

/* Two decoders side by side, packet by packet. */
static void check_packets(const struct vmpt_stream *stream, const struct vmpt_options *plain,
			  const struct vmpt_options *fast)
{
	struct vmpt_cursor at[2] = { 0 };
	struct vmpt_packet p[2] = { 0 };
	struct vmpt_decoder *dec[2];
	u64 reached = 0;
	int ret;

	CHECK(!vmpt_decoder_open(&dec[0], stream, plain));
	CHECK(!vmpt_decoder_open(&dec[1], stream, fast));
	while ((ret = vmpt_packet_next(dec[0], &at[0], &p[0])) == 1) {
		CHECK(vmpt_packet_next(dec[1], &at[1], &p[1]) == 1);
		CHECK(p[0].offset == reached && p[0].offset == p[1].offset &&
		      p[0].payload == p[1].payload && p[0].size == p[1].size &&
		      p[0].kind == p[1].kind && p[0].aux == p[1].aux);
		CHECK(p[0].owner.kind == p[1].owner.kind && p[0].owner.vmcs == p[1].owner.vmcs &&
		      p[0].owner.sure == p[1].owner.sure);
		reached += p[0].kind == VMPT_ITEM_LOSS ? p[0].payload : p[0].size;
	}
	CHECK(!ret && !vmpt_packet_next(dec[1], &at[1], &p[1]) && reached == stream->size);
	vmpt_decoder_close(dec[0]);
	vmpt_decoder_close(dec[1]);
}

static void check_slices(const struct vmpt_stream *stream, const struct vmpt_options *plain,
			 const struct vmpt_options *fast)
{
	struct vmpt_splitter *split[2];
	struct vmpt_slice a, b;
	u64 reached = 0;
	int ret;

	CHECK(!vmpt_splitter_open(&split[0], stream, plain));
	CHECK(!vmpt_splitter_open(&split[1], stream, fast));
	while ((ret = vmpt_split_next(split[0], &a)) == 1) {
		CHECK(vmpt_split_next(split[1], &b) == 1);
		CHECK(a.offset == reached && a.offset == b.offset && a.size == b.size &&
		      a.owner.kind == b.owner.kind && a.owner.vmcs == b.owner.vmcs &&
		      a.owner.sure == b.owner.sure && a.begin == b.begin && a.loss == b.loss);
		CHECK(a.has_tsc == b.has_tsc && a.first_tsc == b.first_tsc &&
		      a.last_tsc == b.last_tsc && a.cr3_count == b.cr3_count &&
		      !memcmp(a.cr3, b.cr3, sizeof(a.cr3)));
		CHECK(a.overflows == b.overflows && a.enables == b.enables &&
		      a.disables == b.disables && !memcmp(a.errata, b.errata, sizeof(a.errata)));
		reached += a.size;
	}
	CHECK(!ret && !vmpt_split_next(split[1], &b) && reached == stream->size);
	vmpt_splitter_close(split[0]);
	vmpt_splitter_close(split[1]);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct vmpt_stream stream = { .cpu = -1, .tid = -1, .isa = VMPT_ISA_RTIT };
	struct vmpt_options plain = { 0 }, fast;
	struct vmpt_gap gap = { .flags = VMPT_GAP_LOST };
	struct vmpt_run runs[2] = { 0 };

	if (size < 4)
		return 0;
	stream.data = data + 4;
	stream.size = size - 4;
	plain.headless = data[0] & 1;
	plain.cycle_acc = (data[0] >> 1) % 3;
	if (data[1]) {
		gap.offset = data[1];
		stream.gaps = &gap;
		stream.gap_count = gap.offset < stream.size;
	}
	if (data[2]) {
		runs[0] = (struct vmpt_run){ .at = data[2] & 15, .by_tsc = data[2] & 16 };
		runs[0].owner = (struct vmpt_owner){ .kind = VMPT_OWNER_VM, .vmcs = 1 };
		runs[1] = (struct vmpt_run){ .at = data[2], .by_tsc = data[2] & 32 };
		plain.runs = runs;
		plain.run_count = 2;
	}
	fast = plain;
	plain.scalar = true;
	fast.lanes = data[3] & 7;
	if (data[3] & 0x80)
		fast.chunk = 16u << (data[3] >> 4 & 7);
	check_packets(&stream, &plain, &fast);
	check_slices(&stream, &plain, &fast);
	return 0;
}
