// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt stat of RTIT: packets and bytes per kind, and what they tell of how it was recorded: cycle
 * counts, MTC ranges, how far PSBs are apart, errata, CR3s.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/stat.h"
#include "cli/sts.h"

#define CR3S	   64
#define CR3S_SHOWN 6

struct tally {
	u64 count, bytes;
};

struct counts {
	struct tally kind[VMPT_RTIT_KINDS];
	struct tally cycles; /* counts behind packets, which are no packets themselves */
	struct tally loss[VMPT_E_NR];
	u64 size;
	/* Between PSBs that no loss parts */
	u64 psbs, psb_sum, psb_min, psb_max;
	u64 errata[VMPT_RTIT_ERRATA + 1];
	u32 mtc_ranges; /* bits */
	/* Of a stream: STSs, and what MTCs tell, where none of them is lost. */
	bool has_tsc;
	u64 first_tsc, last_tsc, mtc_ticks;
	u64 cr3[CR3S];
	u32 cr3s;
	bool more_cr3s;
	enum vmpt_cycle_acc found; /* by the bytes; AUTO: nothing tells */
	bool is_total;		   /* of streams with cycle counts and without, perhaps */
};

/* Of the stream at work. */
struct walk {
	struct cli *cli;
	const struct vmpt_stream *stream;
	struct counts *c;
	u64 psb;
	bool psb_known;
	u64 mtc; /* the last one's payload */
	bool mtc_known;
};

static void add_cr3(struct counts *c, u64 cr3)
{
	u32 i;

	for (i = 0; i < c->cr3s; i++)
		if (c->cr3[i] == cr3)
			return;
	if (c->cr3s < CR3S)
		c->cr3[c->cr3s++] = cr3;
	else
		c->more_cr3s = true;
}

static void add_distance(struct counts *c, u64 sum, u64 n, u64 min, u64 max)
{
	if (!n)
		return;
	if (!c->psbs || min < c->psb_min)
		c->psb_min = min;
	if (max > c->psb_max)
		c->psb_max = max;
	c->psbs += n;
	c->psb_sum += sum;
}

static void count_loss(struct walk *w, u64 at, const struct vmpt_item *item)
{
	unsigned int err = item->aux < VMPT_E_NR ? item->aux : VMPT_E_SYNC;

	w->c->loss[err].count++;
	w->c->loss[err].bytes += item->payload;
	w->psb_known = w->mtc_known = false;
	cli_lose(w->cli, CLI_LOST, w->stream, at, item->payload, (int)err);
}

static void count_sts(struct counts *c, u64 tsc)
{
	cli_follow_sts(&c->last_tsc, tsc);
	if (!c->has_tsc)
		c->first_tsc = c->last_tsc;
	c->has_tsc = true;
}

/* 8 bits of the TSC: how far it went since the last one, less whole rounds. */
static void count_mtc(struct walk *w, const struct vmpt_item *item)
{
	unsigned int rng = item->payload >> 8 & 3;

	w->c->mtc_ranges |= 1u << rng;
	if (w->mtc_known && w->mtc >> 8 == item->payload >> 8)
		w->c->mtc_ticks += ((item->payload - w->mtc) & 0xff) << (7 + 2 * rng);
	w->mtc = item->payload;
	/* The first behind an enable comes at any time (E7). */
	w->mtc_known = !(item->aux & VMPT_RTIT_AUX_IGNORE);
}

static void count_packet(struct walk *w, u64 at, const struct vmpt_item *item)
{
	unsigned int kind = item->kind - (unsigned int)VMPT_ITEM_RTIT;
	struct counts *c = w->c;

	c->kind[kind].count++;
	c->kind[kind].bytes += item->size;
	c->errata[VMPT_RTIT_AUX_ERRATUM(item->aux)]++;
	switch (kind) {
	case VMPT_RTIT_PSB:
		if (w->psb_known)
			add_distance(c, at - w->psb, 1, at - w->psb, at - w->psb);
		w->psb = at;
		w->psb_known = true;
		break;
	case VMPT_RTIT_MTC:
		count_mtc(w, item);
		break;
	case VMPT_RTIT_STS:
		count_sts(c, item->payload & 0xffffffffff);
		break;
	case VMPT_RTIT_PIP:
		if (item->payload >> 40 & 1)
			add_cr3(c, item->payload & 0xffffffffff);
	}
}

static void count_batch(struct walk *w, const struct vmpt_batch *b)
{
	struct counts *c = w->c;
	size_t i;

	for (i = 0; i < b->count; i++) {
		const struct vmpt_item *item = &b->items[i];

		if (item->kind == VMPT_ITEM_RTIT_RUN) {
			c->kind[VMPT_RTIT_TNT].count += item->size;
			c->kind[VMPT_RTIT_TNT].bytes += item->size;
		} else if (item->kind == VMPT_ITEM_RTIT_CYC) {
			c->cycles.count++;
			c->cycles.bytes += item->size;
			c->errata[VMPT_RTIT_AUX_ERRATUM(item->aux)]++;
		} else if (item->kind == VMPT_ITEM_LOSS) {
			count_loss(w, b->base + item->offset, item);
		} else {
			count_packet(w, b->base + item->offset, item);
		}
	}
}

static int count_stream(struct cli *cli, size_t i, struct counts *c)
{
	struct walk w = { .cli = cli, .stream = cli->stream[i], .c = c };
	struct vmpt_options options = cli_stream_options(cli, i);
	struct vmpt_decoder *dec;
	struct vmpt_batch batch;
	int ret = vmpt_decoder_open(&dec, w.stream, &options);

	if (ret)
		return ret;
	c->size = w.stream->size;
	c->found = vmpt_rtit_cycles_guess(w.stream, options.headless);
	while ((ret = vmpt_batch_next(dec, &batch)) > 0)
		count_batch(&w, &batch);
	vmpt_decoder_close(dec);
	return ret;
}

static void add_tally(struct tally *to, const struct tally *from, size_t n)
{
	for (; n; n--, to++, from++) {
		to->count += from->count;
		to->bytes += from->bytes;
	}
}

static void add_counts(struct counts *to, const struct counts *from)
{
	unsigned int i;

	add_tally(to->kind, from->kind, VMPT_RTIT_KINDS);
	add_tally(&to->cycles, &from->cycles, 1);
	add_tally(to->loss, from->loss, VMPT_E_NR);
	to->size += from->size;
	add_distance(to, from->psb_sum, from->psbs, from->psb_min, from->psb_max);
	for (i = 0; i <= VMPT_RTIT_ERRATA; i++)
		to->errata[i] += from->errata[i];
	to->mtc_ranges |= from->mtc_ranges;
	for (i = 0; i < from->cr3s; i++)
		add_cr3(to, from->cr3[i]);
	to->more_cr3s |= from->more_cr3s;
}

static struct tally sum(const struct tally *t, size_t n)
{
	struct tally all = { 0 };

	for (; n; n--, t++)
		add_tally(&all, t, 1);
	return all;
}

/* Whether there are cycle counts: as given, or as the decoder found. */
static bool is_cycle_acc(const struct cli *cli, const struct counts *c)
{
	if (cli->options.cycle_acc != VMPT_CYCLE_ACC_AUTO)
		return cli->options.cycle_acc == VMPT_CYCLE_ACC_YES;
	return c->cycles.count;
}

static bool is_given(const struct cli *cli)
{
	return cli->options.cycle_acc != VMPT_CYCLE_ACC_AUTO;
}

static bool is_sure(const struct cli *cli, const struct counts *c)
{
	return is_given(cli) || c->found != VMPT_CYCLE_ACC_AUTO;
}

/* ---- text ---- */

static void print_row(struct cli_table *t, enum cli_paint paint, const char *prefix,
		      const char *name, const struct tally *n, u64 size)
{
	cli_cell(t, paint, "%s%s", prefix, name);
	cli_cell_number(t, true, n->count);
	cli_cell_number(t, true, n->bytes);
	if (size)
		cli_cell(t, CLI_PLAIN, "%.2f %%", 100.0 * (double)n->bytes / (double)size);
	cli_row_end(t);
}

static void print_table(struct cli *cli, const struct counts *c)
{
	static const struct cli_column column[] = {
		{ "PACKET", false }, { "COUNT", true }, { "BYTES", true }, { "SHARE", true }
	};
	struct cli_table *t = cli_table_new(cli, column, VMPT_ARRAY_SIZE(column));
	unsigned int i;

	for (i = 0; i < VMPT_RTIT_KINDS; i++)
		if (c->kind[i].count)
			print_row(t, CLI_PLAIN, "", vmpt_rtit_name(i), &c->kind[i], c->size);
	if (c->cycles.count)
		print_row(t, CLI_PLAIN, "", "cycle counts", &c->cycles, c->size);
	for (i = 0; i < VMPT_E_NR; i++)
		if (c->loss[i].count)
			print_row(t, CLI_RED, "lost: ", vmpt_strerror((int)i), &c->loss[i],
				  c->size);
	cli_table_print(t, "  ");
}

static void print_time(const struct counts *c)
{
	char buf[32];

	if (c->has_tsc)
		printf("  time: STSs from %llx to %llx, %s ticks of the TSC\n",
		       (unsigned long long)c->first_tsc, (unsigned long long)c->last_tsc,
		       cli_number(c->last_tsc - c->first_tsc, buf));
	else if (c->mtc_ticks)
		printf("  time: no STS; MTCs tell %s ticks of the TSC, or more\n",
		       cli_number(c->mtc_ticks, buf));
}

static void print_facts(const struct cli *cli, const struct counts *c)
{
	char buf[32], to[32], mean[32];
	const char *sep = "  errata: ";
	u32 i;

	if (!c->is_total)
		printf("  cycle counts: %s, %s\n", is_cycle_acc(cli, c) ? "yes" : "no",
		       is_given(cli)	 ? "as given"
		       : is_sure(cli, c) ? "as found"
					 : "by assumption: nothing tells but --cycle-acc");
	if (!c->is_total)
		print_time(c);
	if (c->psbs)
		printf("  PSB distance: %s to %s bytes, %s on average\n",
		       cli_number(c->psb_min, buf), cli_number(c->psb_max, to),
		       cli_number(c->psb_sum / c->psbs, mean));
	for (i = 0; i < 4; i++)
		if (c->mtc_ranges >> i & 1)
			printf("  MTC range: %u, a step is %s ticks of the TSC\n", i,
			       cli_number(1ULL << (7 + 2 * i), buf));
	for (i = 1; i <= VMPT_RTIT_ERRATA; i++) {
		if (!c->errata[i])
			continue;
		printf("%sE%u %s", sep, i, cli_number(c->errata[i], buf));
		sep = ", ";
	}
	if (*sep == ',')
		printf("\n");
	if (!c->cr3s)
		return;
	printf("  CR3s:");
	for (i = 0; i < c->cr3s && i < CR3S_SHOWN; i++)
		printf(" %llx", (unsigned long long)c->cr3[i]);
	if (c->cr3s > CR3S_SHOWN)
		printf(" +%u%s", c->cr3s - CR3S_SHOWN, c->more_cr3s ? " or more" : "");
	printf("\n");
}

static void print_counts(struct cli *cli, const char *name, const struct counts *c)
{
	struct tally packets = sum(c->kind, VMPT_RTIT_KINDS), lost = sum(c->loss, VMPT_E_NR);
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
	print_facts(cli, c);
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

	cli_json_number(cli, o, what, n->count);
	cli_json_number(cli, o, "bytes", n->bytes);
	return o;
}

static void json_facts(struct cli *cli, json_t *o, const struct counts *c)
{
	json_t *psb = json_object(), *ranges = json_array(), *errata = json_object();
	json_t *cr3s = json_array();
	char buf[24];
	u32 i;

	cli_json_set(cli, o, "cycle_acc", json_boolean(is_cycle_acc(cli, c)));
	cli_json_set(cli, o, "cycle_acc_given", json_boolean(is_given(cli)));
	if (!c->is_total) {
		cli_json_set(cli, o, "cycle_acc_sure", json_boolean(is_sure(cli, c)));
		cli_json_number(cli, o, "mtc_ticks", c->mtc_ticks);
	}
	if (c->has_tsc) {
		cli_json_hex(cli, o, "first_tsc", c->first_tsc);
		cli_json_hex(cli, o, "last_tsc", c->last_tsc);
	}
	cli_json_set(cli, o, "cycle_counts", json_tally(cli, "count", &c->cycles));
	if (c->psbs) {
		cli_json_number(cli, psb, "min", c->psb_min);
		cli_json_number(cli, psb, "max", c->psb_max);
		cli_json_number(cli, psb, "mean", c->psb_sum / c->psbs);
	}
	cli_json_set(cli, o, "psb_distance", psb);
	for (i = 0; i < 4; i++)
		if (c->mtc_ranges >> i & 1)
			cli_json_add(cli, ranges, json_integer(i));
	cli_json_set(cli, o, "mtc_ranges", ranges);
	for (i = 1; i <= VMPT_RTIT_ERRATA; i++) {
		snprintf(buf, sizeof(buf), "E%u", i);
		if (c->errata[i])
			cli_json_number(cli, errata, buf, c->errata[i]);
	}
	cli_json_set(cli, o, "errata", errata);
	for (i = 0; i < c->cr3s; i++) {
		snprintf(buf, sizeof(buf), "0x%llx", (unsigned long long)c->cr3[i]);
		cli_json_add(cli, cr3s, json_string(buf));
	}
	cli_json_set(cli, o, "cr3s", cr3s);
	cli_json_set(cli, o, "cr3s_complete", json_boolean(!c->more_cr3s));
}

static void json_counts(struct cli *cli, json_t *o, const struct counts *c)
{
	json_t *kinds = json_object(), *losses = json_object();
	struct tally all = sum(c->kind, VMPT_RTIT_KINDS), lost = sum(c->loss, VMPT_E_NR);
	unsigned int i;

	for (i = 0; i < VMPT_RTIT_KINDS; i++)
		if (c->kind[i].count)
			cli_json_set(cli, kinds, vmpt_rtit_name(i),
				     json_tally(cli, "packets", &c->kind[i]));
	for (i = 0; i < VMPT_E_NR; i++)
		if (c->loss[i].count)
			cli_json_set(cli, losses, vmpt_strerror((int)i),
				     json_tally(cli, "count", &c->loss[i]));
	cli_json_number(cli, o, "bytes", c->size);
	cli_json_number(cli, o, "packets", all.count);
	cli_json_number(cli, o, "losses", lost.count);
	cli_json_number(cli, o, "lost_bytes", lost.bytes);
	cli_json_set(cli, o, "kinds", kinds);
	cli_json_set(cli, o, "loss_causes", losses);
	json_facts(cli, o, c);
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

int stat_rtit(struct cli *cli)
{
	struct counts *c = calloc(cli->streams, sizeof(*c)), total = { .is_total = true };
	int ret = 0;
	size_t i;

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
