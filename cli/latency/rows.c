// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt latency: the calls of each function by length, and what their time was spent on. */
#include <stdlib.h>

#include "cli/latency/latency.h"
#include "util/array.h"

static int compare(u64 a, u64 b)
{
	return a < b ? -1 : a > b;
}

static int by_length(const void *a, const void *b)
{
	const struct latency_call *x = a, *y = b;
	int c = compare(x->row, y->row);

	c = c ? c : compare(x->ticks, y->ticks);
	return c ? c : compare(x->tsc, y->tsc);
}

/* The most time first; what ran before what waited. */
static int by_time(const void *a, const void *b)
{
	const struct latency_sum *x = a, *y = b;
	int c = compare(x->part.kind != LATENCY_RUN, y->part.kind != LATENCY_RUN);

	c = c ? c : compare(y->part.ticks, x->part.ticks);
	c = c ? c : compare(x->part.kind, y->part.kind);
	return c ? c : compare(x->part.key, y->part.key);
}

/* The nearest rank: the smallest length with that many at or below it. */
u64 latency_at(const struct latency *d, const struct latency_row *row, unsigned int permille)
{
	const u64 kept = row->count - row->left_out;
	const u64 rank = (u64)(((unsigned __int128)kept * permille + 999) / 1000);

	return kept ? d->call[row->first + (rank ? rank - 1 : 0)].ticks : 0;
}

static struct latency_sum *find_sum(struct latency_row *row, const struct latency_part *part)
{
	size_t i;

	for (i = 0; i < row->parts; i++)
		if (row->part[i].part.kind == part->kind && row->part[i].part.key == part->key)
			return &row->part[i];
	if (vmpt_grow(&row->part, row->parts))
		return NULL;
	row->part[row->parts] = (struct latency_sum){ .part = { 0, part->key, part->kind } };
	return &row->part[row->parts++];
}

static int add_call(struct latency *d, const struct latency_call *call)
{
	struct latency_row *row = &d->row[call->row];
	const bool slow = call->ticks >= row->slow;
	u32 i;

	row->slow_calls += slow;
	row->slow_sum += slow ? call->ticks : 0;
	for (i = 0; i < call->parts; i++) {
		const struct latency_part *part = &d->part[call->part + i];
		struct latency_sum *sum = find_sum(row, part);

		if (!sum)
			return -VMPT_E_NOMEM;
		sum->part.ticks += part->ticks;
		sum->calls++;
		sum->slow_calls += slow;
		sum->slow_ticks += slow ? part->ticks : 0;
	}
	return 0;
}

int latency_sum(struct cli *cli)
{
	struct latency *d = cli->data;
	size_t i;

	if (d->calls)
		qsort(d->call, d->calls, sizeof(*d->call), by_length);
	for (i = d->calls; i; i--)
		d->row[d->call[i - 1].row].first = i - 1;
	for (i = 0; i < d->rows; i++)
		d->row[i].slow = latency_at(d, &d->row[i], 990);
	for (i = 0; i < d->calls; i++)
		if (add_call(d, &d->call[i]))
			return cli_no_memory(cli);
	for (i = 0; i < d->rows; i++)
		if (d->row[i].parts)
			qsort(d->row[i].part, d->row[i].parts, sizeof(*d->row[i].part), by_time);
	return CLI_OK;
}

/* Octaves: a bar has lengths below twice its lowest. */
bool latency_bar(const struct latency *d, const struct latency_row *row, size_t *i, u64 *low,
		 u64 *high, u64 *count)
{
	const size_t kept = row->count - row->left_out;
	const struct latency_call *call = &d->call[row->first];

	if (*i >= kept)
		return false;
	*low = call[*i].ticks ? 1ULL << (63 - __builtin_clzll(call[*i].ticks)) : 0;
	*high = *low ? 2 * *low : 1;
	for (*count = 0; *i < kept && (call[*i].ticks < *high || *high < *low); (*i)++)
		(*count)++;
	return true;
}

const struct latency_inside *latency_heaviest(struct latency *d, const struct latency_long *l,
					      u32 parent)
{
	const struct latency_inside *most = NULL;
	struct vmpt_call_node node;
	size_t i;

	for (i = 0; i < l->insides; i++) {
		vmpt_calls_node(d->source.calls, l->inside[i].node, &node);
		if (node.parent == parent && (!most || l->inside[i].ticks > most->ticks))
			most = &l->inside[i];
	}
	return most;
}
