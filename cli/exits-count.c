// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The counts of vmpt exits: by VM and reason, how often and how long until the vCPU went on; and
 * by the guest's IP. An exit whose return was not seen is counted, but has no length.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/exits.h"

/* ---- rows ---- */

static bool is_row(const struct exits_row *row, u32 vm, const struct vmpt_exit *e)
{
	return row->vm == vm && !row->others && row->reason == e->reason &&
	       row->guessed == timeline_guessed(e) && row->halted == e->halted;
}

static int add_row(struct exits *x, const struct cli *cli, const struct exits_row *row)
{
	size_t room = x->row_room ? 2 * x->row_room : 32;
	struct exits_row *more;

	if (x->rows == x->row_room) {
		more = realloc(x->row, room * sizeof(*more));
		if (!more)
			return cli_no_memory(cli);
		x->row = more;
		x->row_room = room;
	}
	x->row[x->rows++] = *row;
	return CLI_OK;
}

/* The row of an exit, made if it is new: rows are few, the last found is the likeliest. */
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

/* The mixing is that of splitmix64. */
static u64 hash(u64 h)
{
	h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9ULL;
	h = (h ^ h >> 27) * 0x94d049bb133111ebULL;
	return h ^ h >> 31;
}

static u64 ip_hash(const struct exits *x, u32 row, u64 ip)
{
	return hash(ip ^ hash(row ^ x->seed));
}

static int grow_ips(struct exits *x, const struct cli *cli)
{
	size_t room = x->ip_room ? 2 * x->ip_room : 256, i;
	struct exits_ip *more = realloc(x->ip, room * sizeof(*more));
	u32 *slot;
	u64 h;

	if (!more)
		return cli_no_memory(cli);
	x->ip = more;
	x->ip_room = room;
	slot = calloc(2 * room, sizeof(*slot));
	if (!slot)
		return cli_no_memory(cli);
	free(x->slot);
	x->slot = slot;
	x->slots = 2 * room;
	for (i = 0; i < x->ips; i++) {
		for (h = ip_hash(x, x->ip[i].row, x->ip[i].ip); slot[h & (x->slots - 1)]; h++)
			;
		slot[h & (x->slots - 1)] = (u32)i + 1;
	}
	return CLI_OK;
}

static int count_ip(struct exits *x, const struct cli *cli, u32 row, u64 ip)
{
	u64 h;

	if (x->ips == x->ip_room && x->ips < EXITS_IPS_MAX && grow_ips(x, cli))
		return CLI_FAILED;
	for (h = ip_hash(x, row, ip); x->slot[h & (x->slots - 1)]; h++) {
		struct exits_ip *at = &x->ip[x->slot[h & (x->slots - 1)] - 1];

		if (at->row != row || at->ip != ip)
			continue;
		at->count++;
		return CLI_OK;
	}
	if (x->ips == EXITS_IPS_MAX) {
		x->ips_left_out++;
		return CLI_OK;
	}
	x->ip[x->ips] = (struct exits_ip){ .ip = ip, .count = 1, .row = row };
	x->slot[h & (x->slots - 1)] = (u32)++x->ips;
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

/* By VM; halts behind the others; who took most of the time first. */
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

	/* IPs keep the rows that they are of: a row's old place is noted in .unsure for a moment.
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
	size_t low = 0, high = x->ips, end;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (x->ip[mid].row < row)
			low = mid + 1;
		else
			high = mid;
	}
	for (end = low; end < x->ips && x->ip[end].row == row; end++)
		;
	*count = end - low;
	return x->ip + low;
}

void exits_free(struct exits *x)
{
	size_t i;

	for (i = 0; i < x->rows; i++)
		histogram_free(&x->row[i].out);
	free(x->row);
	free(x->ip);
	free(x->slot);
}
