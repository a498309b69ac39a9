// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt stat: packets and bytes per kind, per CPU and in all. */
#include <stdlib.h>

#include "cli/sideinfo/sideinfo.h"
#include "cli/stat/stat.h"

/* The command's own. */
struct stat_own {
	const struct stat_ops *ops;
	struct cli_clocks clocks; /* of filters */
};

static void count_run(struct stat_counts *c, const u8 *bytes, size_t size)
{
	size_t i, pads = 0;

	for (i = 0; i < size; i++)
		pads += !bytes[i];
	c->kind[VMPT_PT_PAD].count += pads;
	c->kind[VMPT_PT_PAD].bytes += pads;
	c->kind[VMPT_PT_TNT_8].count += size - pads;
	c->kind[VMPT_PT_TNT_8].bytes += size - pads;
}

void stat_count_loss(const struct stat_walk *w, u64 at, const struct vmpt_item *item)
{
	unsigned int err = item->aux < VMPT_E_NR ? item->aux : VMPT_E_SYNC;

	w->c->loss[err].count++;
	w->c->loss[err].bytes += item->payload;
	cli_lose(w->cli, CLI_LOST, w->stream, at, item->payload, (int)err);
}

/* The wanted ones of a run's packets. */
static void count_wanted_run(struct stat_walk *w, const struct vmpt_batch *b,
			     const struct vmpt_item *item)
{
	u64 at = b->base + item->offset, end = at + item->size, to;

	for (; at < end && w->err >= 0; at = to) {
		w->err = cli_filter_at(w->walk, at, &to);
		to = to < end ? to : end;
		if (w->err > 0)
			count_run(w->c, b->data + (at - b->base), to - at);
	}
}

static void count_batch(struct stat_walk *w, const struct vmpt_batch *b)
{
	struct stat_counts *c = w->c;
	size_t i;
	u64 end;

	for (i = 0; i < b->count && w->err >= 0; i++) {
		const struct vmpt_item *item = &b->items[i];

		if (w->walk && item->kind == VMPT_ITEM_RUN) {
			count_wanted_run(w, b, item);
			continue;
		}
		w->err = cli_filter_at(w->walk, b->base + item->offset, &end);
		if (!w->err && item->kind == VMPT_ITEM_LOSS)
			cli_lose(w->cli, CLI_LOST, w->stream, b->base + item->offset, item->payload,
				 item->aux);
		if (w->err <= 0)
			continue;
		if (item->kind < VMPT_PT_KINDS) {
			c->kind[item->kind].count++;
			c->kind[item->kind].bytes += item->size;
		} else if (item->kind == VMPT_ITEM_RUN) {
			count_run(c, b->data + item->offset, item->size);
		} else {
			stat_count_loss(w, b->base + item->offset, item);
		}
	}
}

static const struct stat_ops pt_ops = { .kind_name = vmpt_pt_name, .count = count_batch };

static const struct stat_ops *stat_ops(const struct cli *cli)
{
	return ((const struct stat_own *)cli->data)->ops;
}

static void add_tally(struct stat_tally *to, const struct stat_tally *from, size_t n)
{
	for (; n; n--, to++, from++) {
		to->count += from->count;
		to->bytes += from->bytes;
	}
}

static struct stat_tally sum(const struct stat_tally *t, size_t n)
{
	struct stat_tally all = { 0 };

	for (; n; n--, t++)
		add_tally(&all, t, 1);
	return all;
}

static int count_stream(struct cli *cli, size_t i, struct stat_counts *c)
{
	const struct stat_ops *ops = stat_ops(cli);
	struct stat_walk w = { .cli = cli, .stream = cli->stream[i], .c = c };
	struct vmpt_options options = cli_stream_options(cli, i);
	struct vmpt_decoder *dec;
	struct vmpt_batch batch;
	int ret = vmpt_decoder_open(&dec, w.stream, &options);

	if (ret)
		return ret;
	if (!cli_is_rtit(cli))
		ret = cli_filter_walk_open(cli, i, true, &w.walk);
	c->size = w.stream->size;
	if (!ret && ops->start)
		ops->start(&w);
	while (!ret && (ret = vmpt_batch_next(dec, &batch)) > 0) {
		if (!cli_is_rtit(cli) || cli_filter_owner(cli, &batch.owner, VMPT_TIME_NONE))
			ops->count(&w, &batch);
		ret = w.err < 0 ? w.err : 0;
	}
	if (cli_filter_any(cli))
		c->size = sum(c->kind, STAT_KINDS).bytes + c->rtit.cycles.bytes +
			  sum(c->loss, VMPT_E_NR).bytes;
	cli_filter_walk_close(w.walk);
	vmpt_decoder_close(dec);
	return ret;
}

static void add_counts(struct stat_counts *to, const struct stat_counts *from)
{
	add_tally(to->kind, from->kind, STAT_KINDS);
	add_tally(to->loss, from->loss, VMPT_E_NR);
	to->size += from->size;
	stat_rtit_add(&to->rtit, &from->rtit);
}

/* ---- text ---- */

static void print_row(struct cli_table *t, enum cli_paint paint, const char *prefix,
		      const char *name, const struct stat_tally *n, u64 size)
{
	cli_cell(t, paint, "%s%s", prefix, name);
	cli_cell_number(t, true, n->count);
	cli_cell_number(t, true, n->bytes);
	if (size)
		cli_cell(t, CLI_PLAIN, "%.2f %%", 100.0 * (double)n->bytes / (double)size);
	cli_row_end(t);
}

static void print_table(struct cli *cli, const struct stat_counts *c)
{
	static const struct cli_column column[] = {
		{ "PACKET", false }, { "COUNT", true }, { "BYTES", true }, { "SHARE", true }
	};
	struct cli_table *t = cli_table_new(cli, column, VMPT_ARRAY_SIZE(column));
	unsigned int i;

	for (i = 0; i < STAT_KINDS; i++)
		if (c->kind[i].count)
			print_row(t, CLI_PLAIN, "", stat_ops(cli)->kind_name(i), &c->kind[i],
				  c->size);
	if (c->rtit.cycles.count)
		print_row(t, CLI_PLAIN, "", "cycle counts", &c->rtit.cycles, c->size);
	for (i = 0; i < VMPT_E_NR; i++)
		if (c->loss[i].count)
			print_row(t, CLI_RED, "lost: ", vmpt_strerror((int)i), &c->loss[i],
				  c->size);
	cli_table_print(t, "  ");
}

static void print_counts(struct cli *cli, const char *name, const struct stat_counts *c)
{
	struct stat_tally packets = sum(c->kind, STAT_KINDS), lost = sum(c->loss, VMPT_E_NR);
	char buf[32];

	printf("%s%s%s: %s bytes", cli_paint(cli, CLI_BOLD), name, cli_paint(cli, CLI_PLAIN),
	       cli_number(c->size, buf));
	printf(", %s packets", cli_number(packets.count, buf));
	if (lost.count) {
		printf(", %s%s loss%s", cli_paint(cli, CLI_RED), cli_number(lost.count, buf),
		       lost.count == 1 ? "" : "es");
		printf(" of %s bytes%s", cli_number(lost.bytes, buf), cli_paint(cli, CLI_PLAIN));
	}
	printf("\n");
	print_table(cli, c);
	if (stat_ops(cli)->print)
		stat_ops(cli)->print(cli, &c->rtit);
}

static void print_text(struct cli *cli, const struct stat_counts *c,
		       const struct stat_counts *total)
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

json_t *stat_json_tally(struct cli *cli, const char *what, const struct stat_tally *n)
{
	json_t *o = json_object();

	cli_json_number(cli, o, what, n->count);
	cli_json_number(cli, o, "bytes", n->bytes);
	return o;
}

static void json_counts(struct cli *cli, json_t *o, const struct stat_counts *c)
{
	json_t *kinds = json_object(), *losses = json_object();
	struct stat_tally all = sum(c->kind, STAT_KINDS), lost = sum(c->loss, VMPT_E_NR);
	unsigned int i;

	for (i = 0; i < STAT_KINDS; i++)
		if (c->kind[i].count)
			cli_json_set(cli, kinds, stat_ops(cli)->kind_name(i),
				     stat_json_tally(cli, "packets", &c->kind[i]));
	for (i = 0; i < VMPT_E_NR; i++)
		if (c->loss[i].count)
			cli_json_set(cli, losses, vmpt_strerror((int)i),
				     stat_json_tally(cli, "count", &c->loss[i]));
	cli_json_number(cli, o, "bytes", c->size);
	cli_json_number(cli, o, "packets", all.count);
	cli_json_number(cli, o, "loss_count", lost.count);
	cli_json_number(cli, o, "lost_bytes", lost.bytes);
	cli_json_set(cli, o, "kinds", kinds);
	cli_json_set(cli, o, "loss_causes", losses);
	if (stat_ops(cli)->json)
		stat_ops(cli)->json(cli, o, &c->rtit);
}

static void print_json(struct cli *cli, const struct stat_counts *c,
		       const struct stat_counts *total)
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
	cli_json_end(cli, doc);
	cli_json_print(cli, doc, stdout, false);
}

static int run(struct cli *cli)
{
	struct stat_counts total = { .rtit.is_total = true }, *c;
	struct stat_own *s = cli->data;
	int ret = cli_filter_check(cli, 0, NULL);
	size_t i;

	if (!ret && !cli_filter_any(cli))
		ret = cli_side_rtit_only(cli);
	if (ret)
		return ret;
	s->ops = cli_is_rtit(cli) ? &stat_rtit_ops : &pt_ops;
	ret = cli_filter_open_clocks(cli, &s->clocks);
	c = calloc(cli->streams, sizeof(*c));
	if (!c)
		ret = cli_no_memory(cli);
	if (ret) {
		cli_clocks_close(&s->clocks);
		free(c);
		return ret;
	}
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
	if (!ret)
		cli_filter_warn(cli);
	cli_clocks_close(&s->clocks);
	free(c);
	return ret ? CLI_FAILED : CLI_OK;
}

static const char *const csv_kinds[] = {
	"cpu", "tid", "key", "packets", "bytes", NULL,
};

static const struct cli_csv csv[] = {
	{ "streams", "kinds", csv_kinds },
	{ 0 },
};

const struct cli_command cli_stat = {
	.name = "stat",
	.title = "count packets and bytes per kind and CPU",
	.about =
		"Count the packets of each kind and their bytes, per CPU and in all, and what was\n"
		"lost between them. For RTIT also cycle counts, PSB distance, MTC ranges, errata\n"
		"and CR3s.",
	.examples = "  vmpt stat trace.pt              one CPU's raw trace\n"
		    "  vmpt stat -j 4 perf.data        all CPUs, four threads\n"
		    "  vmpt stat --cpu 0-3 perf.data   four of them\n"
		    "  vmpt stat --vm web --from 1s --to 1.1s perf.data\n"
		    "  vmpt stat --json a.pt b.pt | jq .total.kinds\n",
	.group = { &cli_filter_group, &cli_clock_group, &cli_input_group, &cli_side_group,
		   &cli_output_group },
	.csv = csv,
	.data_size = sizeof(struct stat_own),
	.run = run,
};
