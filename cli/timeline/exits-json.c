// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt exits --json: rows as objects, one per line; before them those of all VMs. */
#include "cli/timeline/exits.h"

static void set_times(struct cli *cli, const struct timeline *t, json_t *o,
		      const struct exits_time *time)
{
	const struct histogram *h = &time->each;

	timeline_json_ticks(cli, t, o, "total", h->sum, true);
	timeline_json_ticks(cli, t, o, "total_error", timeline_part_error(&time->sum),
			    !time->sum.open);
	timeline_json_ticks(cli, t, o, "one_error", time->one_error, !time->sum.open);
	timeline_json_ticks(cli, t, o, "min", h->min, true);
	timeline_json_ticks(cli, t, o, "mean", histogram_mean(h), true);
	timeline_json_ticks(cli, t, o, "p50", histogram_at(h, 500), true);
	timeline_json_ticks(cli, t, o, "p95", histogram_at(h, 950), true);
	timeline_json_ticks(cli, t, o, "p99", histogram_at(h, 990), true);
	timeline_json_ticks(cli, t, o, "max", h->max, true);
	timeline_json_longest(cli, t, o, &time->longest);
}

/* What the time of the row's exits consists of. */
static json_t *parts(struct cli *cli, const struct timeline *t, const struct exits_row *row)
{
	json_t *o = json_object(), *part;
	unsigned int p;

	for (p = 0; p < TIMELINE_PARTS; p++) {
		part = json_object();
		cli_json_set(cli, part, "guessed", json_boolean(row->time[p].sum.guessed));
		set_times(cli, t, part, &row->time[p]);
		cli_json_set(cli, o, timeline_part_name(p), part);
	}
	return o;
}

static json_t *row_ips(struct cli *cli, const struct timeline *t, const struct exits *x, size_t i)
{
	const struct exits_ip *ip;
	json_t *ips = json_array();
	char name[CLI_WHO + 32];
	size_t n, k;

	ip = exits_ips(x, i, &n);
	for (k = 0; k < n && k < x->top; k++) {
		const char *s = x->symbol(x->opaque, t, &x->row[i], ip[k].ip, name, sizeof(name));
		json_t *o = json_object();

		cli_json_hex(cli, o, "ip", ip[k].ip);
		cli_json_number(cli, o, "count", ip[k].count);
		if (*s)
			cli_json_string(cli, o, "symbol", s);
		timeline_json_longest(cli, t, o, &ip[k].longest);
		cli_json_add(cli, ips, o);
	}
	return ips;
}

static void set_reason(struct cli *cli, json_t *o, const struct exits_row *row)
{
	struct vmpt_exit e = exits_row_exit(row);
	bool others = row->kind == EXITS_OTHERS;
	char buf[32];

	cli_json_string(cli, o, "name", others ? "others" : timeline_reason(&e, buf));
	if (others || row->key.reason == VMPT_REASON_UNKNOWN)
		cli_json_set(cli, o, "reason", json_null());
	else
		cli_json_number(cli, o, "reason", row->key.reason);
	cli_json_set(cli, o, "guessed", json_boolean(row->key.guessed));
	cli_json_set(cli, o, "halted", json_boolean(row->key.halted));
}

/* The key of --by; null: not known. */
static void set_key(struct cli *cli, const struct timeline *t, const struct exits *x, json_t *o,
		    const struct exits_row *row)
{
	const char *key = exits_by_name(x->by), *symbol;
	char buf[CLI_WHO + 32];
	const struct timeline_vcpu *v;

	if (x->by == EXITS_BY_PORT && row->key.known)
		cli_json_string(cli, o, "direction", row->key.in ? "in" : "out");
	if (!row->key.known) {
		cli_json_set(cli, o, key, json_null());
		return;
	}
	switch (x->by) {
	case EXITS_BY_VCPU:
		v = &t->vcpu[row->key.value];
		if (!v->is_any)
			cli_json_hex(cli, o, "vmcs", v->vmcs);
		if (v->number == TIMELINE_NONE)
			cli_json_set(cli, o, key, json_null());
		else
			cli_json_number(cli, o, key, v->number);
		break;
	case EXITS_BY_CPU:
		cli_json_stream(cli, o, t->cli->stream[row->key.value]);
		break;
	case EXITS_BY_IP:
		symbol = x->symbol(x->opaque, t, row, row->key.value, buf, sizeof(buf));
		cli_json_hex(cli, o, key, row->key.value);
		if (*symbol)
			cli_json_string(cli, o, "symbol", symbol);
		break;
	default:
		cli_json_hex(cli, o, key, row->key.value);
	}
}

static json_t *row_object(struct cli *cli, const struct timeline *t, const struct exits *x,
			  const struct exits_row *row)
{
	json_t *o = json_object();

	if (row->kind == EXITS_OF_VM)
		timeline_json_vm(cli, t, o, &t->vm[row->vm]);
	cli_json_set(cli, o, "others", json_boolean(row->kind == EXITS_OTHERS));
	if (row->kind != EXITS_TOTAL && (x->by == EXITS_BY_REASON || x->by >= EXITS_BY_PORT) &&
	    x->by != EXITS_BY_CR3)
		set_reason(cli, o, row);
	if (row->kind != EXITS_TOTAL && row->kind != EXITS_OTHERS && x->by != EXITS_BY_REASON)
		set_key(cli, t, x, o, row);
	cli_json_number(cli, o, "count", row->exits);
	cli_json_number(cli, o, "unsure", row->unsure);
	if (row->time[EXITS_OUT].each.count) {
		set_times(cli, t, o, &row->time[EXITS_OUT]);
		cli_json_set(cli, o, "parts", parts(cli, t, row));
	}
	return o;
}

static json_t *all_rows(struct cli *cli, const struct timeline *t, const struct exits *x)
{
	json_t *list = json_array();
	size_t i;

	for (i = x->vm_rows; i + 1 < x->rows; i++)
		if (!x->row[i].hidden)
			cli_json_add(cli, list, row_object(cli, t, x, &x->row[i]));
	return list;
}

void exits_json(const struct timeline *t, const struct exits *x)
{
	struct cli *cli = t->cli;
	json_t *doc = cli_json_document(cli), *o;
	bool any = false;
	size_t i;

	if (t->timed)
		cli_json_hex(cli, doc, "start_tsc", t->zero);
	else
		cli_json_set(cli, doc, "start_tsc", json_null());
	cli_json_hertz(cli, doc, t->hz);
	cli_json_string(cli, doc, "clock", cli_when_name(t->times.clock));
	cli_json_number(cli, doc, "ips_left_out", x->ips_left_out);
	cli_json_string(cli, doc, "by", exits_by_name(x->by));
	cli_json_number(cli, doc, "left_out", x->left_out);
	cli_json_number(cli, doc, "rows_left_out", x->rows_hidden);
	if (x->rows)
		cli_json_set(cli, doc, "total", row_object(cli, t, x, &x->row[x->rows - 1]));
	cli_json_set(cli, doc, "all_vms", all_rows(cli, t, x));
	cli_json_list_open(cli, doc, "exits", stdout);
	for (i = 0; i < x->vm_rows && !cli_output_failed(cli); i++) {
		if (x->row[i].hidden)
			continue;
		o = row_object(cli, t, x, &x->row[i]);
		cli_json_set(cli, o, "ips", row_ips(cli, t, x, i));
		cli_json_list_add(cli, o, !any, stdout);
		any = true;
	}
	cli_json_list_close(cli, stdout);
}
