// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The counts of vmpt exits: by VM and reason (or another key), how often and how long until the
 * vCPU resumed, and what happened meanwhile; the same of all VMs; and by the guest's IP. An exit
 * whose return was not seen is counted, but has no length.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/timeline/exits.h"
#include "util/array.h"
#include "util/search.h"

/* ---- keys ---- */

/* Basic exit reasons, SDM 3, Table C-1 */
enum {
	REASON_IO = 30,
	REASON_RDMSR = 31,
	REASON_WRMSR = 32,
	REASON_EPT_VIOLATION = 48,
	REASON_EPT_MISCONFIG = 49,
	REASON_RDMSR_IMM = 84,
	REASON_WRMSRNS_IMM = 85,
};

/* Exit qualification of an I/O instruction: SDM 3, Table 28-5. */
#define IO_IS_IN(q) ((q) >> 3 & 1)
#define IO_PORT(q)  ((q) >> 16 & 0xffff)

/* The MSR is in RCX, except with an immediate operand: then it is the exit qualification. */
static bool key_of_msr(const struct vmpt_exit *e, struct exits_key *key)
{
	key->known = e->has_msr;
	key->value = e->has_msr ? e->msr : 0;
	if (e->reason == REASON_RDMSR_IMM || e->reason == REASON_WRMSRNS_IMM) {
		key->known = e->has_qualification;
		key->value = e->has_qualification ? e->qualification : 0;
		return true;
	}
	return e->reason == REASON_RDMSR || e->reason == REASON_WRMSR;
}

static bool key_of_port(const struct vmpt_exit *e, struct exits_key *key)
{
	if (e->reason != REASON_IO)
		return false;
	key->known = e->has_qualification;
	if (key->known) {
		key->in = IO_IS_IN(e->qualification);
		key->value = IO_PORT(e->qualification);
	}
	return true;
}

static bool key_of_gpa(const struct vmpt_exit *e, struct exits_key *key)
{
	key->known = e->has_gpa;
	key->value = e->has_gpa ? e->gpa : 0;
	return e->reason == REASON_EPT_VIOLATION || e->reason == REASON_EPT_MISCONFIG;
}

static struct exits_key key_of_reason(const struct vmpt_exit *e)
{
	return (struct exits_key){
		.reason = e->source == VMPT_REASON_NONE ? VMPT_REASON_UNKNOWN : e->reason,
		.halted = e->halted,
		.guessed = timeline_guessed(e),
		.known = true,
	};
}

/* The key of an exit of @vcpu on @stream. False: it has none, it is not counted. */
static bool key_of(unsigned int by, const struct vmpt_exit *e, u32 vcpu, u32 stream,
		   struct exits_key *key)
{
	bool known = true;
	u64 value = 0;

	*key = key_of_reason(e);
	switch (by) {
	case EXITS_BY_REASON:
		return true;
	case EXITS_BY_PORT:
		return key_of_port(e, key);
	case EXITS_BY_MSR:
		return key_of_msr(e, key);
	case EXITS_BY_GPA:
		return key_of_gpa(e, key);
	case EXITS_BY_IP:
		known = e->has_ip;
		value = known ? e->ip : 0;
		break;
	case EXITS_BY_VCPU:
		value = vcpu;
		break;
	case EXITS_BY_CPU:
		value = stream;
		break;
	case EXITS_BY_CR3:
		known = e->cr3;
		value = e->cr3;
		break;
	}
	*key = (struct exits_key){ .known = known, .value = value };
	return true;
}

/* ---- rows ---- */

static bool is_row(const struct exits_row *row, u32 vm, unsigned int kind,
		   const struct exits_key *key)
{
	const struct exits_key *k = &row->key;

	return row->vm == vm && row->kind == kind && k->reason == key->reason &&
	       k->halted == key->halted && k->guessed == key->guessed && k->known == key->known &&
	       k->in == key->in && k->value == key->value;
}

static u64 hash_of(const struct exits *x, u32 vm, unsigned int kind, const struct exits_key *key)
{
	u64 h = vmpt_mix64(x->seed ^ vm ^ (u64)kind << 32);

	h = vmpt_mix64(h ^ key->reason ^ (u64)key->halted << 16 ^ (u64)key->guessed << 17 ^
		       (u64)key->known << 18 ^ (u64)key->in << 19);
	return vmpt_mix64(h ^ key->value);
}

/* The row of a key, added if it is new. */
static int find_row(struct exits *x, const struct cli *cli, u32 vm, unsigned int kind,
		    const struct exits_key *key, size_t *at)
{
	struct exits_row row = { .vm = vm, .kind = (u8)kind, .key = *key };
	u64 hash = hash_of(x, vm, kind, key);
	u32 found = vmpt_hash_find(&x->by_key, hash, i, is_row(&x->row[i], vm, kind, key));

	*at = found;
	if (found != VMPT_HASH_NONE)
		return CLI_OK;
	*at = x->rows;
	if (x->rows >= EXITS_ROWS_MAX && kind != EXITS_TOTAL) {
		if (x->row_others) {
			*at = x->row_others;
			return CLI_OK;
		}
		row = (struct exits_row){ .kind = EXITS_OTHERS, .vm = TIMELINE_NONE };
		x->row_others = x->rows;
	} else if (vmpt_hash_add(&x->by_key, hash, (u32)x->rows)) {
		return cli_no_memory(cli);
	}
	if (vmpt_grow(&x->row, x->rows))
		return cli_no_memory(cli);
	x->row[x->rows++] = row;
	return CLI_OK;
}

/* The rows that an exit counts in: its VM's, that of all VMs, and the total. */
static int find_rows(struct exits *x, const struct timeline *t, u32 vcpu,
		     const struct exits_key *key, size_t at[3])
{
	static const struct exits_key none;

	if (find_row(x, t->cli, TIMELINE_NONE, EXITS_TOTAL, &none, &at[2]) ||
	    find_row(x, t->cli, t->vcpu[vcpu].vm, EXITS_OF_VM, key, &at[0]))
		return CLI_FAILED;
	at[1] = at[0];
	/* The others are of one VM each. */
	if (x->by != EXITS_BY_REASON && x->by != EXITS_BY_CPU && x->by != EXITS_BY_PORT &&
	    x->by != EXITS_BY_MSR)
		return CLI_OK;
	return find_row(x, t->cli, TIMELINE_NONE, EXITS_OF_ALL, key, &at[1]);
}

/* ---- IPs ---- */

static u64 hash_of_ip(const struct exits *x, u32 row, u64 ip)
{
	return vmpt_mix64(ip ^ vmpt_mix64(row ^ x->seed));
}

static u32 find_ip(const struct exits *x, u32 row, u64 ip)
{
	return vmpt_hash_find(&x->by_ip, hash_of_ip(x, row, ip), i,
			      x->ip[i].row == row && x->ip[i].ip == ip);
}

static int count_ip(struct exits *x, const struct cli *cli, u32 row, u64 ip)
{
	u64 hash = hash_of_ip(x, row, ip);
	u32 found = find_ip(x, row, ip);

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

/* False: no memory. */
static bool add_time(struct exits_time *time, const struct timeline_span *s,
		     const struct timeline_part_time *part)
{
	u64 error = timeline_part_error(part);

	timeline_longest_take(&time->longest, s, part->ticks);
	timeline_part_add(&time->sum, part);
	if (!part->open && error > time->one_error)
		time->one_error = error;
	return histogram_add(&time->each, part->ticks);
}

/* An exit that is over. False: no memory. */
static bool add_out(struct exits_row *row, const struct timeline_span *s)
{
	const struct timeline_part_time out = {
		.ticks = s->start - s->left_at,
		.early = s->out_early,
		.late = s->out_late,
		.open = !s->out_bounded,
	};
	unsigned int p;

	for (p = 0; p < TIMELINE_PARTS; p++)
		if (!add_time(&row->time[p], s, &s->out[p]))
			return false;
	return add_time(&row->time[EXITS_OUT], s, &out);
}

static int count_out(struct exits *x, const struct timeline *t, const struct timeline_span *s)
{
	u32 stream = s->moved_from == TIMELINE_NONE ? s->span->stream : s->moved_from;
	struct exits_key key;
	size_t at[3], i;

	if (!key_of(x->by, &s->left, s->vcpu, stream, &key))
		return CLI_OK;
	if (find_rows(x, t, s->vcpu, &key, at))
		return CLI_FAILED;
	for (i = 0; i < 3; i++)
		if ((!i || at[i] != at[i - 1]) && !add_out(&x->row[at[i]], s))
			return cli_no_memory(t->cli);
	if (s->left.has_ip && x->by != EXITS_BY_IP) {
		u32 ip = find_ip(x, (u32)at[0], s->left.ip);

		if (ip != VMPT_HASH_NONE)
			timeline_longest_take(&x->ip[ip].longest, s, s->start - s->left_at);
	}
	return CLI_OK;
}

int exits_span(struct exits *x, const struct timeline *t, const struct timeline_span *s)
{
	const struct vmpt_exit *e = &s->span->exit;
	struct exits_key key;
	size_t at[3], i;

	if (s->vcpu == TIMELINE_NONE)
		return CLI_OK;
	if (!x->seed)
		x->seed = timeline_seed() | 1;
	if (s->has_left && s->left_timed && count_out(x, t, s))
		return CLI_FAILED;
	x->no_exits += s->left_timed && s->no_exit && s->out[TIMELINE_UNTRACED].ticks;
	if (s->span->ended != VMPT_EDGE_EXIT)
		return CLI_OK;
	if (!key_of(x->by, e, s->vcpu, s->span->stream, &key)) {
		x->left_out++;
		return CLI_OK;
	}
	if (find_rows(x, t, s->vcpu, &key, at))
		return CLI_FAILED;
	for (i = 0; i < 3; i++)
		if (!i || at[i] != at[i - 1])
			x->row[at[i]].exits++;
	return e->has_ip && x->by != EXITS_BY_IP ? count_ip(x, t->cli, (u32)at[0], e->ip) : CLI_OK;
}

/* ---- what is shown ---- */

static int compare(u64 x, u64 y)
{
	return x < y ? -1 : x > y;
}

/* VMs by number and "others", then those of all, then the total. */
static int compare_groups(const struct exits *e, const struct exits_row *x,
			  const struct exits_row *y)
{
	bool x_all = x->kind >= EXITS_OF_ALL, y_all = y->kind >= EXITS_OF_ALL;

	if (x_all || y_all)
		return compare(x_all ? x->kind : 0, y_all ? y->kind : 0);
	return e->sorted ? 0 : compare(x->vm, y->vm);
}

static int compare_keys(const struct exits_row *x, const struct exits_row *y)
{
	int c = compare(!x->key.known, !y->key.known);

	c = c ? c : compare(x->key.value, y->key.value);
	c = c ? c : compare(x->key.reason, y->key.reason);
	c = c ? c : compare(x->key.guessed, y->key.guessed);
	c = c ? c : compare(x->key.in, y->key.in);
	return c ? c : compare(x->vm, y->vm);
}

/* Halts after the others, unless an order is given; then the largest first. */
static int compare_rows(const void *a, const void *b, void *opaque)
{
	const struct exits_row *x = a, *y = b;
	const struct exits *e = opaque;
	int c = compare_groups(e, x, y);

	if (c || e->sort == EXITS_SORT_KEY)
		return c ? c : compare_keys(x, y);
	if (!e->sorted && x->key.halted != y->key.halted)
		return x->key.halted ? 1 : -1;
	c = compare(exits_sort_value(e, y), exits_sort_value(e, x));
	c = c ? c : compare(y->exits, x->exits);
	return c ? c : compare_keys(x, y);
}

static int compare_ips(const void *a, const void *b)
{
	const struct exits_ip *x = a, *y = b;
	int c = compare(x->row, y->row);

	c = c ? c : compare(y->count, x->count);
	return c ? c : compare(x->ip, y->ip);
}

/* By IP there may be thousands of rows: of each VM, and of all, the first ones are shown. */
static void hide_rows(struct exits *x)
{
	size_t i, k;
	u64 n;

	for (i = 0; x->by == EXITS_BY_IP && i < x->rows; i++) {
		struct exits_row *row = &x->row[i];

		if (row->kind == EXITS_OTHERS || row->kind == EXITS_TOTAL)
			continue;
		for (n = k = 0; k < i && n < x->top; k++)
			n += x->row[k].kind == row->kind && x->row[k].vm == row->vm;
		row->hidden = n == x->top;
		x->rows_hidden += row->hidden && row->kind == EXITS_OF_VM;
	}
}

void exits_sort(struct exits *x)
{
	u32 *place = calloc(x->rows + 1, sizeof(*place));
	size_t i;

	/* Keep the rows of the IPs: .unsure temporarily holds the old index of a row. */
	for (i = 0; i < x->rows; i++)
		x->row[i].unsure = i;
	if (x->rows)
		qsort_r(x->row, x->rows, sizeof(*x->row), compare_rows, x);
	for (i = 0; i < x->rows; i++) {
		if (place)
			place[x->row[i].unsure] = (u32)i;
		x->row[i].unsure = x->row[i].exits - x->row[i].time[EXITS_OUT].each.count;
		x->vm_rows += x->row[i].kind < EXITS_OF_ALL;
	}
	for (i = 0; place && i < x->ips; i++)
		x->ip[i].row = place[x->ip[i].row];
	hide_rows(x);
	if (!place)
		x->ips = 0;
	free(place);
	if (x->ips)
		qsort(x->ip, x->ips, sizeof(*x->ip), compare_ips);
}

u64 exits_of(const struct exits *x, const struct exits_row *row)
{
	u64 sum = 0;
	size_t i;

	if (row->kind != EXITS_OF_VM)
		return x->rows ? x->row[x->rows - 1].exits : 0;
	for (i = 0; i < x->vm_rows; i++)
		sum += x->row[i].vm == row->vm ? x->row[i].exits : 0;
	return sum;
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
	size_t i, k;

	for (i = 0; i < x->rows; i++)
		for (k = 0; k < EXITS_TIMES; k++)
			histogram_free(&x->row[i].time[k].each);
	free(x->row);
	free(x->ip);
	vmpt_hash_free(&x->by_key);
	vmpt_hash_free(&x->by_ip);
}
