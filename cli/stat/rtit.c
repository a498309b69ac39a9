// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt stat of RTIT: how the trace was recorded, as far as its packets show: cycle counts, MTC
 * ranges, PSB distance, errata, CR3s.
 */
#include "cli/stat/stat.h"
#include "cli/base/base.h"

#define CR3S_SHOWN 6

static void add_cr3(struct stat_rtit *c, u64 cr3)
{
	u32 i;

	for (i = 0; i < c->cr3s; i++)
		if (c->cr3[i] == cr3)
			return;
	if (c->cr3s < STAT_CR3S)
		c->cr3[c->cr3s++] = cr3;
	else
		c->more_cr3s = true;
}

static void add_distance(struct stat_rtit *c, u64 sum, u64 n, u64 min, u64 max)
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

static void count_loss(struct stat_walk *w, u64 at, const struct vmpt_item *item)
{
	w->psb_known = w->mtc_known = false;
	stat_count_loss(w, at, item);
}

static void count_sts(struct stat_rtit *c, u64 tsc)
{
	cli_follow_sts(&c->last_tsc, tsc);
	if (!c->has_tsc)
		c->first_tsc = c->last_tsc;
	c->has_tsc = true;
}

/* 8 bits of the TSC: the ticks since the last one, modulo a full wrap. */
static void count_mtc(struct stat_walk *w, const struct vmpt_item *item)
{
	unsigned int rng = item->payload >> 8 & 3;

	w->c->rtit.mtc_ranges |= 1u << rng;
	if (w->mtc_known && w->mtc >> 8 == item->payload >> 8)
		w->c->rtit.mtc_ticks += ((item->payload - w->mtc) & 0xff) << (7 + 2 * rng);
	w->mtc = item->payload;
	/* The first after an enable comes at any time (E7). */
	w->mtc_known = !(item->aux & VMPT_RTIT_AUX_IGNORE);
}

static void count_packet(struct stat_walk *w, u64 at, const struct vmpt_item *item)
{
	unsigned int kind = item->kind - (unsigned int)VMPT_ITEM_RTIT;
	struct stat_rtit *c = &w->c->rtit;

	w->c->kind[kind].count++;
	w->c->kind[kind].bytes += item->size;
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

static void start(struct stat_walk *w)
{
	w->c->rtit.found = vmpt_rtit_cycles_guess(w->stream, w->cli->options.headless);
}

static void count_batch(struct stat_walk *w, const struct vmpt_batch *b)
{
	struct stat_tally *tnt = &w->c->kind[VMPT_RTIT_TNT];
	struct stat_rtit *c = &w->c->rtit;
	size_t i;

	for (i = 0; i < b->count; i++) {
		const struct vmpt_item *item = &b->items[i];

		if (item->kind == VMPT_ITEM_RTIT_RUN) {
			tnt->count += item->size;
			tnt->bytes += item->size;
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

void stat_rtit_add(struct stat_rtit *to, const struct stat_rtit *from)
{
	unsigned int i;

	to->cycles.count += from->cycles.count;
	to->cycles.bytes += from->cycles.bytes;
	add_distance(to, from->psb_sum, from->psbs, from->psb_min, from->psb_max);
	for (i = 0; i <= VMPT_RTIT_ERRATA; i++)
		to->errata[i] += from->errata[i];
	to->mtc_ranges |= from->mtc_ranges;
	for (i = 0; i < from->cr3s; i++)
		add_cr3(to, from->cr3[i]);
	to->more_cr3s |= from->more_cr3s;
}

/* Whether there are cycle counts: as given, or as the decoder found. */
static bool is_cycle_acc(const struct cli *cli, const struct stat_rtit *c)
{
	if (cli->options.cycle_acc != VMPT_CYCLE_ACC_AUTO)
		return cli->options.cycle_acc == VMPT_CYCLE_ACC_YES;
	return c->cycles.count;
}

static bool is_given(const struct cli *cli)
{
	return cli->options.cycle_acc != VMPT_CYCLE_ACC_AUTO;
}

static bool is_sure(const struct cli *cli, const struct stat_rtit *c)
{
	return is_given(cli) || c->found != VMPT_CYCLE_ACC_AUTO;
}

/* ---- text ---- */

static void print_time(const struct stat_rtit *c)
{
	char buf[32];

	if (c->has_tsc)
		printf("  time: STSs from %llx to %llx, %s ticks of the TSC\n",
		       (unsigned long long)c->first_tsc, (unsigned long long)c->last_tsc,
		       cli_number(c->last_tsc - c->first_tsc, buf));
	else if (c->mtc_ticks)
		printf("  time: no STS; by MTCs at least %s ticks of the TSC\n",
		       cli_number(c->mtc_ticks, buf));
}

static void print(const struct cli *cli, const struct stat_rtit *c)
{
	char buf[32], to[32], mean[32];
	const char *sep = "  errata: ";
	u32 i;

	if (!c->is_total)
		printf("  cycle counts: %s, %s\n", is_cycle_acc(cli, c) ? "yes" : "no",
		       is_given(cli)	 ? "as given"
		       : is_sure(cli, c) ? "as found"
					 : "assumed: only --cycle-acc can give it");
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

/* ---- JSON ---- */

static void json(struct cli *cli, json_t *o, const struct stat_rtit *c)
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
	cli_json_set(cli, o, "cycle_counts", stat_json_tally(cli, "count", &c->cycles));
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

const struct stat_ops stat_rtit_ops = {
	.kind_name = vmpt_rtit_name,
	.count = count_batch,
	.start = start,
	.print = print,
	.json = json,
};
