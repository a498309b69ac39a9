// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * decoder/vmpt-flow.h on any packets and any code: results add up, and every way to decode gives
 * the same. The input's first two bytes choose options, the third how much of the rest is code, at
 * 0x400000 in every address space; what remains is the stream. The code may be that of two images,
 * so that a page has two versions, or a code stream whose second half is written over the first one
 * once, at TSC 20.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "decoder/vmpt-flow.h"
#include "util/code-stream.h"
#include "util/hash.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define CHECK(what)                       \
	do {                              \
		if (!(what))              \
			__builtin_trap(); \
	} while (0)

#define CODE_AT 0x400000ULL

static struct vmpt_image *open_image(const u8 *code, size_t size, enum vmpt_image_kind kind)
{
	struct vmpt_image_options options = {
		.kind = kind,
		.has_address = kind == VMPT_IMAGE_BYTES,
		.address = kind == VMPT_IMAGE_BYTES ? CODE_AT : 0,
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

/* A chunk: up to here its records are at @at. */
static u8 *end_chunk(u8 *file, u8 *at, u32 number)
{
	struct code_head head = { .size = (u32)(at - file - sizeof(head)), .number = number };

	memcpy(head.magic, CODE_MAGIC, CODE_MAGIC_SIZE);
	head.sum = code_sum(&head, file + sizeof(head), head.size);
	memcpy(file, &head, sizeof(head));
	return at;
}

/* Code at physical 0, written at @tsc. */
static u8 *put_code(u8 *file, const u8 *code, size_t size, u64 tsc, u32 number)
{
	u8 *at = file + sizeof(struct code_head);

	*at++ = CODE_BYTES;
	at = code_put(at, tsc);
	at = code_put(at, 0);
	at = code_put(at, size);
	memcpy(at, code, size);
	return end_chunk(file, at + size, number);
}

/* Of a page at most; the same in two address spaces. */
static struct vmpt_image *open_changes(const u8 *code, size_t size)
{
	size_t half = size / 2 < CODE_PAGE / 2 ? size / 2 : CODE_PAGE / 2;
	static u8 file[2 * CODE_PAGE];
	u8 *at, *chunk = file;
	u32 number = 0;
	u64 cr3;

	at = file + sizeof(struct code_head);
	*at++ = CODE_START;
	at = code_put(at, 1);
	at = code_put(at, 0);
	chunk = end_chunk(chunk, at, number++);
	for (cr3 = 0; cr3 <= 0x1000; cr3 += 0x1000) {
		at = chunk + sizeof(struct code_head);
		*at++ = CODE_MAP_64;
		at = code_put(at, 1);
		at = code_put(at, cr3 >> 5 << 1);
		at = code_put(at, CODE_AT / CODE_PAGE << 1);
		at = code_put(at, 0);
		chunk = end_chunk(chunk, at, number++);
	}
	chunk = put_code(chunk, code, size - half < CODE_PAGE / 2 ? size - half : CODE_PAGE / 2, 1,
			 number++);
	if (half)
		chunk = put_code(chunk, code + size - half, half, 20, number);
	return open_image(file, (size_t)(chunk - file), VMPT_IMAGE_CODE);
}

struct sum {
	struct vmpt_flow_counts counts;
	u64 hash, gaps, marks;
};

static void run(struct sum *sum, const struct vmpt_stream *stream, struct vmpt_code *code,
		const struct vmpt_flow_options *options)
{
	struct vmpt_flow_batch batch;
	struct vmpt_flow_block block;
	struct vmpt_flow *flow;
	u64 instructions = 0, at = 0;
	size_t i;
	int ret;

	memset(sum, 0, sizeof(*sum));
	CHECK(!vmpt_flow_open(&flow, stream, code, options));
	while ((ret = vmpt_flow_next(flow, &batch)) > 0) {
		CHECK(at <= batch.offset && batch.offset <= batch.end);
		at = batch.offset;
		CHECK(batch.kind <= VMPT_FLOW_GAP ||
		      (!batch.count && (options->events || options->switches)));
		if (batch.kind > VMPT_FLOW_GAP)
			sum->marks = vmpt_mix64(sum->marks ^ batch.offset ^ batch.ip << 1) +
				     batch.kind + 8u * batch.off;
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
	struct vmpt_options trace = { 0 }, parts = { .chunk = 16 };
	struct vmpt_flow_options plain = {
		.trace = &trace, .off = none, .hash = true, .blocks = true
	};
	struct vmpt_flow_options other = { .trace = &parts, .hash = true, .no_packet_max = 1000 };
	struct vmpt_stream stream = { .cpu = -1, .tid = -1 };
	struct vmpt_code *code;
	struct vmpt_image *image, *second = NULL;
	struct sum a, b;
	const u8 *bytes;
	size_t n;

	if (size < 6)
		return 0;
	n = 2 + (size - 5) * data[2] / 256;
	bytes = data + 3;
	trace.headless = parts.headless = data[0] & 1;
	parts.threads = 1 + (data[0] >> 6);
	if (data[0] & 32)
		trace.host_only = parts.host_only = true;
	other.blocks = data[0] & 2;
	other.by_packet = data[0] & 16;
	plain.returns = data[0] & 4 ? VMPT_FLOW_RETURNS_LIBIPT : VMPT_FLOW_RETURNS_FOLLOW;
	other.returns = data[0] & 4 ? VMPT_FLOW_RETURNS_LIBIPT : VMPT_FLOW_RETURNS_AUTO;
	plain.no_tnt = other.no_tnt = data[0] & 8;
	plain.no_packet_max = other.no_packet_max;
	other.memory = data[1] & 1;
	plain.events = other.events = data[1] & 16;
	plain.switches = other.switches = data[1] & 32 && data[1] & 16;
	other.times = data[1] & 32;
	if (data[1] & 2)
		other.off = data[1] >> 6;
	stream.data = bytes + n;
	stream.size = size - 3 - n;
	CHECK(!vmpt_code_new(&code));
	if (data[1] & 4) {
		image = open_changes(bytes, n);
	} else if (data[1] & 8) {
		image = open_image(bytes, n / 2, VMPT_IMAGE_BYTES);
		second = open_image(bytes + n / 2, n - n / 2, VMPT_IMAGE_BYTES);
	} else {
		image = open_image(bytes, n, VMPT_IMAGE_BYTES);
	}
	CHECK(!vmpt_code_add(code, NULL, NULL, image));
	CHECK(!second || !vmpt_code_add(code, NULL, NULL, second));
	run(&a, &stream, code, &plain);
	run(&b, &stream, code, &other);
	CHECK(!memcmp(&a, &b, sizeof(a)));
	vmpt_code_free(code);
	vmpt_image_close(image);
	if (second)
		vmpt_image_close(second);
	return 0;
}
