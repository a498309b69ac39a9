// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * decoder/vmpt-flow.h on any packets and any code: results add up, and every way to decode gives
 * the same. The input's first byte chooses options, the second how much of the rest is code, at
 * 0x400000 in every address space; what remains is the stream.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "decoder/vmpt-flow.h"
#include "util/hash.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define CHECK(what)                       \
	do {                              \
		if (!(what))              \
			__builtin_trap(); \
	} while (0)

#define CODE_AT 0x400000ULL

static struct vmpt_image *image_of(const u8 *code, size_t size)
{
	struct vmpt_image_options options = {
		.kind = VMPT_IMAGE_BYTES,
		.has_address = true,
		.address = CODE_AT,
	};
	char path[] = "/tmp/fuzz-flow-XXXXXX";
	struct vmpt_image *image;
	int fd = mkstemp(path);

	CHECK(fd >= 0 && write(fd, code, size) == (ssize_t)size);
	CHECK(!vmpt_image_open(&image, path, &options, NULL));
	close(fd);
	unlink(path);
	return image;
}

struct sum {
	struct vmpt_flow_counts counts;
	u64 hash, gaps;
};

static void run(struct sum *sum, const struct vmpt_stream *stream, struct vmpt_code *code,
		const struct vmpt_flow_options *options)
{
	struct vmpt_flow_batch batch;
	struct vmpt_flow_block block;
	struct vmpt_flow *flow;
	u64 instructions = 0;
	size_t i;
	int ret;

	memset(sum, 0, sizeof(*sum));
	CHECK(!vmpt_flow_open(&flow, stream, code, options));
	while ((ret = vmpt_flow_next(flow, &batch)) > 0) {
		if (batch.kind == VMPT_FLOW_GAP)
			sum->gaps =
				vmpt_mix64(sum->gaps ^ batch.offset ^ batch.ip << 1) + batch.reason;
		for (i = 0; i < batch.count; i++) {
			vmpt_flow_block(flow, batch.blocks[i], &block);
			instructions += i + 1 == batch.count ? batch.last : block.instructions;
		}
	}
	CHECK(!ret);
	vmpt_flow_total(flow, &sum->counts, &sum->hash);
	CHECK(!options->blocks || instructions == sum->counts.instructions);
	vmpt_flow_close(flow);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	const u8 none = VMPT_FLOW_NO_MEMO | VMPT_FLOW_NO_RAW_MEMO | VMPT_FLOW_NO_PSB_MEMO;
	struct vmpt_options trace = { 0 };
	struct vmpt_flow_options plain = {
		.trace = &trace, .off = none, .hash = true, .blocks = true
	};
	struct vmpt_flow_options other = { .trace = &trace, .hash = true, .no_packet_max = 1000 };
	struct vmpt_stream stream = { .cpu = -1, .tid = -1 };
	struct vmpt_code *code;
	struct vmpt_image *image;
	struct sum a, b;
	size_t n;

	if (size < 4)
		return 0;
	n = 1 + (size - 3) * data[1] / 256;
	trace.headless = data[0] & 1;
	other.blocks = data[0] & 2;
	plain.returns = data[0] & 4 ? VMPT_FLOW_RETURNS_LIBIPT : VMPT_FLOW_RETURNS_FOLLOW;
	other.returns = data[0] & 4 ? VMPT_FLOW_RETURNS_LIBIPT : VMPT_FLOW_RETURNS_AUTO;
	plain.no_tnt = other.no_tnt = data[0] & 8;
	plain.no_packet_max = other.no_packet_max;
	image = image_of(data + 2, n);
	stream.data = data + 2 + n;
	stream.size = size - 2 - n;
	CHECK(!vmpt_code_new(&code) && !vmpt_code_add(code, NULL, NULL, image));
	run(&a, &stream, code, &plain);
	run(&b, &stream, code, &other);
	CHECK(!memcmp(&a, &b, sizeof(a)));
	vmpt_code_free(code);
	vmpt_image_close(image);
	return 0;
}
