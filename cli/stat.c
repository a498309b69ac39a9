// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt stat: packets and bytes per kind, per CPU and in all. */
#include <stdlib.h>

#include "cli/stat.h"

struct tally {
	u64 packets, bytes;
};

struct counts {
	struct tally kind[VMPT_PT_KINDS];
	struct tally loss[VMPT_E_NR]; /* by cause; packets: how many losses */
	u64 size;		      /* of the stream(s) */
};

static void count_run(struct counts *c, const u8 *bytes, size_t size)
{
	size_t i, pads = 0;

	for (i = 0; i < size; i++)
		pads += !bytes[i];
	c->kind[VMPT_PT_PAD].packets += pads;
	c->kind[VMPT_PT_PAD].bytes += pads;
	c->kind[VMPT_PT_TNT_8].packets += size - pads;
	c->kind[VMPT_PT_TNT_8].bytes += size - pads;
}

static void count_loss(struct cli *cli, const struct vmpt_stream *stream, struct counts *c,
		       u64 offset, const struct vmpt_item *item)
{
	unsigned int err = item->aux < VMPT_E_NR ? item->aux : VMPT_E_SYNC;

	c->loss[err].packets++;
	c->loss[err].bytes += item->payload;
	cli_lose(cli, CLI_LOST, stream, offset, item->payload, (int)err);
}

static void count_batch(struct cli *cli, const struct vmpt_stream *stream, struct counts *c,
			const struct vmpt_batch *b)
{
	size_t i;

	for (i = 0; i < b->count; i++) {
		const struct vmpt_item *item = &b->items[i];

		if (item->kind < VMPT_PT_KINDS) {
			c->kind[item->kind].packets++;
			c->kind[item->kind].bytes += item->size;
		} else if (item->kind == VMPT_ITEM_RUN) {
			count_run(c, b->data + item->offset, item->size);
		} else {
			count_loss(cli, stream, c, b->base + item->offset, item);
		}
	}
}

static int count_stream(struct cli *cli, size_t i, struct counts *c)
{
	const struct vmpt_stream *stream = cli->stream[i];
	struct vmpt_decoder *dec;
	struct vmpt_options options = cli_stream_options(cli, i);
	struct vmpt_batch batch;
	int ret = vmpt_decoder_open(&dec, stream, &options);

	if (ret)
		return ret;
	c->size = stream->size;
	while ((ret = vmpt_batch_next(dec, &batch)) > 0)
		count_batch(cli, stream, c, &batch);
	vmpt_decoder_close(dec);
	return ret;
}

static void add_tally(struct tally *to, const struct tally *from, size_t n)
{
	for (; n; n--, to++, from++) {
		to->packets += from->packets;
		to->bytes += from->bytes;
	}
}

static void add_counts(struct counts *to, const struct counts *from)
{
	add_tally(to->kind, from->kind, VMPT_PT_KINDS);
	add_tally(to->loss, from->loss, VMPT_E_NR);
	to->size += from->size;
}

static struct tally sum(const struct tally *t, size_t n)
{
	struct tally all = { 0 };

	for (; n; n--, t++)
		add_tally(&all, t, 1);
	return all;
}

/* ---- text ---- */

static void print_row(struct cli_table *t, enum cli_paint paint, const char *prefix,
		      const char *name, const struct tally *n, u64 size)
{
	cli_cell(t, paint, "%s%s", prefix, name);
	cli_cell_number(t, true, n->packets);
	cli_cell_number(t, true, n->bytes);
	if (size)
		cli_cell(t, CLI_PLAIN, "%.2f %%", 100.0 * (double)n->bytes / (double)size);
	cli_row_end(t);
}

static void print_counts(struct cli *cli, const char *name, const struct counts *c)
{
	static const struct cli_column column[] = {
		{ "PACKET", false }, { "COUNT", true }, { "BYTES", true }, { "SHARE", true }
	};
	struct cli_table *t = cli_table_new(cli, column, VMPT_ARRAY_SIZE(column));
	struct tally packets = sum(c->kind, VMPT_PT_KINDS), lost = sum(c->loss, VMPT_E_NR);
	char buf[32];
	size_t i;

	printf("%s%s%s: %s bytes", cli_paint(cli, CLI_BOLD), name, cli_paint(cli, CLI_PLAIN),
	       cli_number(c->size, buf));
	printf(", %s packets", cli_number(packets.packets, buf));
	if (lost.packets) {
		printf(", %s%s loss%s", cli_paint(cli, CLI_RED), cli_number(lost.packets, buf),
		       lost.packets == 1 ? "" : "es");
		printf(" of %s bytes%s", cli_number(lost.bytes, buf), cli_paint(cli, CLI_PLAIN));
	}
	printf("\n");
	for (i = 0; i < VMPT_PT_KINDS; i++)
		if (c->kind[i].packets)
			print_row(t, CLI_PLAIN, "", vmpt_pt_name((unsigned int)i), &c->kind[i],
				  c->size);
	for (i = 0; i < VMPT_E_NR; i++)
		if (c->loss[i].packets)
			print_row(t, CLI_RED, "lost: ", vmpt_strerror((int)i), &c->loss[i],
				  c->size);
	cli_table_print(t, "  ");
}

static void print_text(struct cli *cli, const struct counts *c, const struct counts *total)
{
	char name[32];
	size_t i;

	for (i = 0; i < cli->streams; i++) {
		if (i)
			printf("\n");
		print_counts(cli, cli_stream_name(cli->stream[i], name), &c[i]);
	}
	if (cli->streams > 1) {
		printf("\n");
		print_counts(cli, "total", total);
	}
}

/* ---- JSON ---- */

static json_t *json_tally(struct cli *cli, const char *what, const struct tally *n)
{
	json_t *o = json_object();

	cli_json_number(cli, o, what, n->packets);
	cli_json_number(cli, o, "bytes", n->bytes);
	return o;
}

static void json_counts(struct cli *cli, json_t *o, const struct counts *c)
{
	json_t *kinds = json_object(), *losses = json_object();
	struct tally all = sum(c->kind, VMPT_PT_KINDS), lost = sum(c->loss, VMPT_E_NR);
	size_t i;

	for (i = 0; i < VMPT_PT_KINDS; i++)
		if (c->kind[i].packets)
			cli_json_set(cli, kinds, vmpt_pt_name((unsigned int)i),
				     json_tally(cli, "packets", &c->kind[i]));
	for (i = 0; i < VMPT_E_NR; i++)
		if (c->loss[i].packets)
			cli_json_set(cli, losses, vmpt_strerror((int)i),
				     json_tally(cli, "count", &c->loss[i]));
	cli_json_number(cli, o, "bytes", c->size);
	cli_json_number(cli, o, "packets", all.packets);
	cli_json_number(cli, o, "losses", lost.packets);
	cli_json_number(cli, o, "lost_bytes", lost.bytes);
	cli_json_set(cli, o, "kinds", kinds);
	cli_json_set(cli, o, "loss_causes", losses);
}

static void print_json(struct cli *cli, const struct counts *c, const struct counts *total)
{
	json_t *doc = cli_json_document(cli), *streams = json_array(), *all = json_object();
	size_t i;

	for (i = 0; i < cli->streams; i++) {
		json_t *o = json_object();

		cli_json_stream(cli, o, cli->stream[i]);
		json_counts(cli, o, &c[i]);
		cli_json_add(cli, streams, o);
	}
	json_counts(cli, all, total);
	cli_json_set(cli, doc, "streams", streams);
	cli_json_set(cli, doc, "total", all);
	cli_json_print(cli, doc, stdout, false);
}

static int run(struct cli *cli)
{
	struct counts *c, total = { 0 };
	int ret = 0;
	size_t i;

	if (cli_is_rtit(cli))
		return stat_rtit(cli);
	c = calloc(cli->streams, sizeof(*c));
	if (!c)
		return cli_no_memory(cli);
	cli_progress_start(cli, 1);
	for (i = 0; i < cli->streams && !ret; i++) {
		cli_progress_stream(cli, i);
		ret = count_stream(cli, i, &c[i]);
		add_counts(&total, &c[i]);
	}
	cli_progress_end(cli);
	if (ret)
		cli_error(cli, "%s: %s", cli->file[0], vmpt_strerror(ret));
	else if (cli->json)
		print_json(cli, c, &total);
	else
		print_text(cli, c, &total);
	free(c);
	return ret ? CLI_FAILED : CLI_OK;
}

const struct cli_command cli_stat = {
	.name = "stat",
	.title = "count packets and bytes per kind and CPU",
	.about =
		"Count the packets of each kind and their bytes, per CPU and in all, and what was\n"
		"lost between them. Of RTIT also cycle counts, PSB distance, MTC ranges, errata\n"
		"and CR3s.",
	.examples = "  vmpt stat trace.pt              one CPU's raw trace\n"
		    "  vmpt stat -j 4 perf.data        all CPUs, four threads\n"
		    "  vmpt stat --cpu 0-3 perf.data   four of them\n"
		    "  vmpt stat --json a.pt b.pt | jq .total.kinds\n",
	.run = run,
};
