// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The counts of vmpt exits: by VM and reason, how often and how long until the vCPU resumed; and
 * by the guest's IP. An exit whose return was not seen is counted, but has no length.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/timeline/exits.h"
#include "util/array.h"
#include "util/search.h"

/* ---- rows ---- */

static bool is_row(const struct exits_row *row, u32 vm, const struct vmpt_exit *e)
{
	return row->vm == vm && !row->others && row->reason == e->reason &&
	       row->guessed == timeline_guessed(e) && row->halted == e->halted;
}

static int add_row(struct exits *x, const struct cli *cli, const struct exits_row *row)
{
	if (vmpt_grow(&x->row, x->rows))
		return cli_no_memory(cli);
	x->row[x->rows++] = *row;
	return CLI_OK;
}

/* The row of an exit, added if it is new: rows are few, the last one found is the likeliest. */
static int find_row(struct exits *x, const struct timeline *t, u32 vm, const struct vmpt_exit *e,
		    size_t *at)
{
	struct exits_row row = {
		.vm = vm,
		.reason = e->reason,
		.guessed = timeline_guessed(e),
		.halted = e->halted,
	};
	size_t i;

	if (e->source == VMPT_REASON_NONE)
		row.reason = VMPT_REASON_UNKNOWN;
	for (i = 0; i < x->rows; i++) {
		if (!is_row(&x->row[i], vm, e) && !(x->row[i].others && i >= EXITS_ROWS_MAX))
			continue;
		*at = i;
		return CLI_OK;
	}
	*at = x->rows;
	if (x->rows >= EXITS_ROWS_MAX)
		row = (struct exits_row){ .others = true, .vm = TIMELINE_NONE };
	return add_row(x, t->cli, &row);
}

/* ---- IPs ---- */

static int count_ip(struct exits *x, const struct cli *cli, u32 row, u64 ip)
{
	u64 hash = vmpt_mix64(ip ^ vmpt_mix64(row ^ x->seed));
	u32 found = vmpt_hash_find(&x->by_ip, hash, i, x->ip[i].row == row && x->ip[i].ip == ip);

	if (found != VMPT_HASH_NONE) {
		x->ip[found].count++;
		return CLI_OK;
	}
	if (x->ips == EXITS_IPS_MAX) {
		x->ips_left_out++;
		return CLI_OK;
	}
	if (vmpt_grow(&x->ip, x->ips) || vmpt_hash_add(&x->by_ip, hash, (u32)x->ips))
		return cli_no_memory(cli);
	x->ip[x->ips++] = (struct exits_ip){ .ip = ip, .count = 1, .row = row };
	return CLI_OK;
}

/* ---- spans ---- */

/* An exit that is over. False: no memory. */
static bool add_out(struct exits_row *row, const struct timeline_span *s)
{
	u64 error = s->out_early > s->out_late ? s->out_early : s->out_late;

	row->bounds.early += s->out_early;
	row->bounds.late += s->out_late;
	row->bounds.open |= !s->out_bounded;
	if (error > row->one_error)
		row->one_error = error;
	return histogram_add(&row->out, s->start - s->left_at);
}

int exits_span(struct exits *x, const struct timeline *t, const struct timeline_span *s)
{
	const struct vmpt_exit *e = &s->span->exit;
	size_t at;

	if (s->vcpu == TIMELINE_NONE)
		return CLI_OK;
	if (!x->seed)
		x->seed = timeline_seed() | 1;
	if (s->has_left && s->left_timed) {
		if (find_row(x, t, t->vcpu[s->vcpu].vm, &s->left, &at))
			return CLI_FAILED;
		if (!add_out(&x->row[at], s))
			return cli_no_memory(t->cli);
	}
	if (s->span->ended != VMPT_EDGE_EXIT)
		return CLI_OK;
	if (find_row(x, t, t->vcpu[s->vcpu].vm, e, &at))
		return CLI_FAILED;
	x->row[at].exits++;
	return e->has_ip ? count_ip(x, t->cli, (u32)at, e->ip) : CLI_OK;
}

/* ---- what is shown ---- */

/* By VM; halts after the others; the longest total first. */
static int compare_rows(const void *a, const void *b)
{
	const struct exits_row *x = a, *y = b;

	if (x->vm != y->vm)
		return x->vm < y->vm ? -1 : 1;
	if (x->halted != y->halted)
		return x->halted ? 1 : -1;
	if (x->out.sum != y->out.sum)
		return x->out.sum > y->out.sum ? -1 : 1;
	if (x->exits != y->exits)
		return x->exits > y->exits ? -1 : 1;
	return x->reason < y->reason ? -1 : x->reason > y->reason;
}

static int compare_ips(const void *a, const void *b)
{
	const struct exits_ip *x = a, *y = b;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->ip < y->ip ? -1 : x->ip > y->ip;
}

void exits_sort(struct exits *x)
{
	u32 *place;
	size_t i;

	/* Keep the rows of the IPs: .unsure temporarily holds the old index of a row.
	 */
	for (i = 0; i < x->rows; i++)
		x->row[i].unsure = i;
	if (x->rows)
		qsort(x->row, x->rows, sizeof(*x->row), compare_rows);
	place = calloc(x->rows + 1, sizeof(*place));
	for (i = 0; i < x->rows; i++) {
		if (place)
			place[x->row[i].unsure] = (u32)i;
		x->row[i].unsure = x->row[i].exits - x->row[i].out.count;
	}
	for (i = 0; place && i < x->ips; i++)
		x->ip[i].row = place[x->ip[i].row];
	if (!place)
		x->ips = 0;
	free(place);
	if (x->ips)
		qsort(x->ip, x->ips, sizeof(*x->ip), compare_ips);
}

const struct exits_ip *exits_ips(const struct exits *x, size_t row, size_t *count)
{
	size_t first = vmpt_search(i, 0, x->ips, x->ip[i].row < row), end;

	for (end = first; end < x->ips && x->ip[end].row == row; end++)
		;
	*count = end - first;
	return x->ip + first;
}

void exits_free(struct exits *x)
{
	size_t i;

	for (i = 0; i < x->rows; i++)
		histogram_free(&x->row[i].out);
	free(x->row);
	free(x->ip);
	vmpt_hash_free(&x->by_ip);
}
