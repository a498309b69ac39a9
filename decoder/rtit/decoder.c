// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* RTIT's packets with their owners: the items of a source, split where the owner changes. */
#include <stdlib.h>

#include "decoder/rtit/rtit.h"

struct rtit_decoder {
	struct vmpt_decoder base;
	struct vmpt_rtit_source *source;
	const struct vmpt_stream *stream;
	struct vmpt_rtit_piece piece;
	size_t token, item;
	struct vmpt_owner owner; /* of the next items */
	/* Owners that begin at an item; a loss has two: none, and the owner after it. */
	struct {
		size_t item;
		struct vmpt_owner owner;
	} change[2];
	unsigned int change_count;
	struct vmpt_rtit_tracker tracker;
};

static int open_decoder(struct vmpt_decoder **dec, const struct vmpt_stream *stream,
			const struct vmpt_options *options)
{
	struct rtit_decoder *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -VMPT_E_NOMEM;
	err = vmpt_rtit_source_open(&d->source, stream, options, true);
	if (err) {
		free(d);
		return err;
	}
	d->stream = stream;
	vmpt_rtit_tracker_init(&d->tracker, stream->data, vmpt_rtit_source_cycles(d->source),
			       options);
	d->owner = d->tracker.owner;
	*dec = &d->base;
	return 0;
}

static void close_decoder(struct vmpt_decoder *dec)
{
	struct rtit_decoder *d = (struct rtit_decoder *)dec;

	vmpt_rtit_source_close(d->source);
	free(d);
}

static void put_change(struct rtit_decoder *d, size_t item, const struct vmpt_owner *owner)
{
	d->change[d->change_count].item = item;
	d->change[d->change_count++].owner = *owner;
}

static void take_token(struct rtit_decoder *d)
{
	const struct vmpt_rtit_token *token = &d->piece.tokens[d->token++];
	static const struct vmpt_owner nobody = { .sure = VMPT_UNKNOWN };
	bool changed = vmpt_rtit_tracker_take(&d->tracker, &d->piece, token);

	if (token->kind == VMPT_RTIT_TOKEN_LOSS) {
		put_change(d, token->item, &nobody);
		put_change(d, token->item + 1, &d->tracker.owner);
	} else if (changed) {
		put_change(d, token->item, &d->tracker.owner);
	}
}

static void fill(struct rtit_decoder *d, struct vmpt_batch *b, size_t end)
{
	b->base = d->piece.start;
	b->data = d->stream->data + d->piece.start;
	b->owner = d->owner;
	b->items = d->piece.items + d->item;
	b->count = end - d->item;
	d->item = end;
}

/* Items up to the next change of owner. False if there are none. */
static bool next_of_piece(struct rtit_decoder *d, struct vmpt_batch *b)
{
	for (;;) {
		if (d->change_count) {
			if (d->change[0].item > d->item) {
				fill(d, b, d->change[0].item);
				return true;
			}
			d->owner = d->change[0].owner;
			d->change[0] = d->change[1];
			d->change_count--;
		} else if (d->token < d->piece.token_count) {
			take_token(d);
		} else {
			break;
		}
	}
	if (d->item == d->piece.item_count)
		return false;
	fill(d, b, d->piece.item_count);
	return true;
}

static int next_batch(struct vmpt_decoder *dec, struct vmpt_batch *batch)
{
	struct rtit_decoder *d = (struct rtit_decoder *)dec;
	int ret;

	while (!next_of_piece(d, batch)) {
		vmpt_rtit_tracker_end(&d->tracker, &d->piece);
		ret = vmpt_rtit_source_next(d->source, &d->piece);
		d->token = d->item = 0;
		if (ret <= 0) {
			d->piece.token_count = d->piece.item_count = 0;
			return ret;
		}
		vmpt_rtit_tracker_piece(&d->tracker, &d->piece);
	}
	return 1;
}

const struct vmpt_decoder_ops vmpt_rtit_decoder_ops = {
	.open = open_decoder,
	.next = next_batch,
	.close = close_decoder,
};
