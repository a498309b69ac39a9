// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt dump of Intel PT: the walk over packets, with times or without. */
#include "cli/sideinfo/sideinfo.h"
#include "cli/dump/dump.h"

static int check(struct cli *cli)
{
	const struct dump *d = cli->data;

	if (!d->time && !cli_filter_clocks(cli) && cli_clock_given(cli))
		return cli_usage(cli, "rates and maps are for times: also give --time");
	return CLI_OK;
}

static bool wanted(const struct cli *cli, const struct vmpt_packet *pkt)
{
	const struct dump *d = cli->data;
	u64 bit = pkt->kind == VMPT_ITEM_LOSS ? DUMP_LOSS_BIT : 1ULL << pkt->kind;

	if (!(d->wanted & bit))
		return false;
	return !(d->no_pad && pkt->kind == VMPT_PT_PAD);
}

static void print(struct cli *cli, const struct dump_line *line)
{
	struct dump *d = cli->data;

	if (d->head && d->lines == d->head)
		return;
	d->lines++;
	if (cli->json)
		dump_json(cli, &d->style, line);
	else
		dump_text(cli, &d->style, line);
}

static void flush_pads(struct cli *cli)
{
	struct dump *d = cli->data;

	if (d->pad.size)
		print(cli, &d->pad);
	d->pad.size = 0;
}

static bool same_owner(const struct vmpt_owner *a, const struct vmpt_owner *b)
{
	return a->kind == b->kind && a->vmcs == b->vmcs && a->sure == b->sure;
}

/* Consecutive PADs make one line. */
static void put_pad(struct cli *cli, const struct dump_line *line)
{
	struct dump *d = cli->data;

	if (d->pad.size && d->pad.offset + d->pad.size == line->offset &&
	    same_owner(&d->pad.owner, &line->owner)) {
		d->pad.size++;
		return;
	}
	flush_pads(cli);
	d->pad = *line;
}

/* @line has the packet's time. */
static void put_packet(struct cli *cli, const struct vmpt_stream *stream,
		       const struct vmpt_packet *pkt, u64 size, struct dump_line *line)
{
	struct dump *d = cli->data;
	unsigned int block = 0;

	line->stream = stream;
	line->offset = pkt->offset;
	line->size = size;
	line->owner = pkt->owner;
	line->kind = pkt->kind;
	line->full_ip = pkt->payload;
	line->bbp_type = d->bbp_type;
	if (pkt->kind == VMPT_ITEM_LOSS) {
		line->loss = pkt->aux;
	} else {
		if (pkt->kind == VMPT_PT_BIP)
			block = VMPT_PT_BLOCK(size == 5, d->bbp_type);
		/* The decoder has already accepted it: this cannot fail. */
		if (vmpt_pt_decode(&line->pkt, stream->data + pkt->offset,
				   stream->size - pkt->offset, block))
			line->pkt = (struct vmpt_pt_packet){ .kind = pkt->kind };
	}
	if (pkt->kind == VMPT_PT_PAD && !d->expand_pad) {
		put_pad(cli, line);
		return;
	}
	flush_pads(cli);
	print(cli, line);
}

/* A BIP's meaning depends on the BBP before it. */
static void note_block(struct dump *d, const struct vmpt_stream *stream,
		       const struct vmpt_packet *pkt)
{
	struct vmpt_pt_packet bbp;

	if (pkt->kind == VMPT_PT_BBP &&
	    !vmpt_pt_decode(&bbp, stream->data + pkt->offset, stream->size - pkt->offset, 0))
		d->bbp_type = (unsigned int)bbp.bbp.type;
}

/* Count bytes without a proven owner when the packet at @offset is the first of them. */
static int note_doubt(struct cli *cli, const struct vmpt_stream *stream,
		      struct vmpt_splitter *split, struct vmpt_slice *slice, u64 offset)
{
	bool next = false;
	int ret = 1;

	while (ret > 0 && offset >= slice->offset + slice->size) {
		ret = vmpt_split_next(split, slice);
		next = true;
	}
	if (ret > 0 && next && vmpt_slice_unproven(slice))
		cli_lose_slice(cli, stream, slice);
	return ret;
}

static int walk(struct cli *cli, size_t i, struct dump_source *source, struct vmpt_splitter *split)
{
	const struct vmpt_stream *stream = cli->stream[i];
	struct dump *d = cli->data;
	struct vmpt_slice slice = { 0 };
	struct vmpt_packet pkt;
	struct dump_line line;
	u64 end;
	int ret;

	while ((ret = dump_next(cli, source, &pkt, &line)) > 0) {
		u64 size = pkt.kind == VMPT_ITEM_LOSS ? pkt.payload : pkt.size;

		if ((d->end && pkt.offset >= d->end) || dump_enough(cli)) {
			ret = 0;
			break;
		}
		note_block(d, stream, &pkt);
		if (dump_too_early(d, pkt.offset, size))
			continue;
		if (pkt.kind == VMPT_ITEM_LOSS)
			cli_lose(cli, CLI_LOST, stream, pkt.offset, size, pkt.aux);
		else if ((ret = note_doubt(cli, stream, split, &slice, pkt.offset)) < 0)
			break;
		ret = cli_filter_at(d->walk, pkt.offset, &end);
		if (ret < 0)
			break;
		if (ret && wanted(cli, &pkt))
			put_packet(cli, stream, &pkt, size, &line);
	}
	flush_pads(cli);
	return ret;
}

static int dump_stream(struct cli *cli, size_t i)
{
	struct dump *d = cli->data;
	/* 8 bytes: few packets are longer. */
	const struct dump_style style = { .bytes_width = 23, .host_time = d->time };
	struct vmpt_options opts = cli_stream_options(cli, i);
	struct dump_source source = { 0 };
	struct vmpt_splitter *split;
	int ret = d->time ? vmpt_timed_open(&source.timed, d->clocks.clocks, i, &opts)
			  : vmpt_decoder_open(&source.dec, cli->stream[i], &opts);

	if (ret)
		return ret;
	/* What comes later proves an owner, so packets do not show which bytes have none. */
	cli->packets_only = true;
	opts.progress = NULL;
	opts.threads = 1;
	ret = cli_filter_walk_open(cli, i, true, &d->walk);
	if (!ret)
		ret = vmpt_splitter_open(&split, cli->stream[i], &opts);
	if (!ret) {
		dump_start(cli, i, &style);
		ret = walk(cli, i, &source, split);
		vmpt_splitter_close(split);
	}
	cli_filter_walk_close(d->walk);
	d->walk = NULL;
	vmpt_timed_close(source.timed);
	vmpt_decoder_close(source.dec);
	return ret;
}

const struct dump_ops dump_pt = {
	.isa = VMPT_ISA_PT,
	.name = "Intel PT",
	.check = check,
	.open = dump_time_open,
	.stream = dump_stream,
};
