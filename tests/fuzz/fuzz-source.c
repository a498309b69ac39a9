// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * decoder/pt/source.h on any bytes: the fast source's tokens and items equal the scalar one's. The
 * input's first three bytes choose lanes, chunk, the stream's start and a gap; the rest is the
 * stream.
 */
#include <stdlib.h>

#include "decoder/pt/source.h"
#include "util/array.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define CHECK(what)                       \
	do {                              \
		if (!(what))              \
			__builtin_trap(); \
	} while (0)

/* An item with its place in the stream; runs are split into single bytes. */
struct one {
	u64 offset, payload;
	u32 size;
	u8 kind, aux;
};

struct all {
	u64 *tokens;
	struct one *items;
	size_t token_count, item_count;
};

static void add_item(struct all *all, const struct vmpt_item *item, u64 base)
{
	struct one one = { base + item->offset, item->payload, item->size, item->kind, item->aux };
	u32 n = 1;

	if (item->kind == VMPT_ITEM_RUN) {
		n = one.size;
		one = (struct one){ .offset = one.offset, .size = 1, .kind = one.kind };
	}
	while (n--) {
		CHECK(!vmpt_grow(&all->items, all->item_count));
		all->items[all->item_count++] = one;
		one.offset++;
	}
}

static void collect(struct all *all, const struct vmpt_stream *stream,
		    const struct vmpt_options *options)
{
	struct vmpt_source *source;
	struct vmpt_piece piece;
	u64 reached = 0;
	size_t i;
	int ret;

	CHECK(!vmpt_source_open(&source, stream, options, true));
	while ((ret = vmpt_source_next(source, &piece)) == 1) {
		CHECK(piece.start == reached && piece.end >= piece.start &&
		      piece.end <= piece.region_end && piece.region_end <= stream->size);
		for (i = 0; i < piece.token_count; i++) {
			CHECK(!vmpt_grow(&all->tokens, all->token_count));
			all->tokens[all->token_count++] = piece.tokens[i];
		}
		for (i = 0; i < piece.item_count; i++)
			add_item(all, &piece.items[i], piece.start);
		reached = piece.end;
	}
	CHECK(!ret && reached == stream->size);
	vmpt_source_close(source);
}

static void check_same(const struct all *a, const struct all *b)
{
	size_t i;

	CHECK(a->token_count == b->token_count && a->item_count == b->item_count);
	for (i = 0; i < a->token_count; i++)
		CHECK(a->tokens[i] == b->tokens[i]);
	for (i = 0; i < a->item_count; i++) {
		const struct one *x = &a->items[i], *y = &b->items[i];

		CHECK(x->offset == y->offset && x->payload == y->payload && x->size == y->size &&
		      x->kind == y->kind && x->aux == y->aux);
	}
}

/* Nothing is missing: items, including losses, are contiguous to the end. */
static void check_whole(const struct all *all, u64 size)
{
	u64 at = 0;
	size_t i;

	for (i = 0; i < all->item_count; i++) {
		const struct one *x = &all->items[i];

		CHECK(x->offset == at);
		at += x->kind == VMPT_ITEM_LOSS ? x->payload : x->size;
	}
	CHECK(at == size);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct vmpt_stream stream = { .cpu = -1, .tid = -1 };
	struct vmpt_options scalar = { .scalar = true }, fast = { 0 };
	struct all a = { 0 }, b = { 0 };
	struct vmpt_gap gap = { .flags = VMPT_GAP_LOST };

	if (size < 3)
		return 0;
	stream.data = data + 3;
	stream.size = size - 3;
	fast.lanes = data[0] & 7 ? data[0] & 7 : 8;
	if (data[0] & 0x10)
		fast.chunk = 64u << (data[0] >> 5);
	fast.headless = scalar.headless = data[0] & 8;
	if (data[1] | data[2]) {
		gap.offset = vmpt_load16(data + 1);
		stream.gaps = &gap;
		stream.gap_count = gap.offset < stream.size;
	}
	collect(&a, &stream, &scalar);
	collect(&b, &stream, &fast);
	check_whole(&a, stream.size);
	check_same(&a, &b);
	free(a.tokens);
	free(a.items);
	free(b.tokens);
	free(b.items);
	return 0;
}
