// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt hot --json, and --csv, which is made of it. */
#include "cli/hot/hot.h"

static const char *const by_key[] = { [HOT_INSTRUCTIONS] = "instructions", [HOT_TIME] = "time" };
static const char *const per_key[] = {
	[HOT_PER_PROCESS] = "process", [HOT_PER_VM] = "vm", [HOT_PER_TRACE] = "trace"
};

static void set_process(struct cli *cli, json_t *o, const struct hot_process *p, unsigned int per)
{
	if (per == HOT_PER_TRACE)
		return;
	cli_json_string(cli, o, "vm", p->vm);
	if (per != HOT_PER_PROCESS)
		return;
	cli_json_string(cli, o, "process", p->name);
	if (!p->task)
		return;
	cli_json_number(cli, o, "tgid", p->task->tgid);
	cli_json_string(cli, o, "comm", p->comm);
}

static void set_function(struct cli *cli, json_t *o, const struct calls_function *f)
{
	cli_json_string(cli, o, "function", f->name);
	if (*f->module)
		cli_json_string(cli, o, "module", f->module);
}

/* "self_instructions", "self_ns" or "self_ticks". */
static void set_values(struct cli *cli, json_t *o, const struct hot_tree *t, const char *key,
		       const u64 value[HOT_BYS])
{
	char name[48];

	snprintf(name, sizeof(name), "%s_instructions", key);
	cli_json_number(cli, o, name, value[HOT_INSTRUCTIONS]);
	if (!t->timed)
		return;
	snprintf(name, sizeof(name), "%s_%s", key, t->hertz > 0 ? "ns" : "ticks");
	cli_json_number(cli, o, name, hot_value(t, HOT_TIME, value[HOT_TIME]));
}

static void set_row(struct cli *cli, json_t *o, const struct hot_tree *t, const struct hot_row *row)
{
	cli_json_number(cli, o, "calls", row->calls);
	set_values(cli, o, t, "self", row->self);
	set_values(cli, o, t, "total", row->total);
}

static void set_head(struct cli *cli, json_t *doc, const struct hot_show *show)
{
	cli_json_string(cli, doc, "by", by_key[show->by]);
	cli_json_string(cli, doc, "per", per_key[show->per]);
}

void hot_json(struct cli *cli, json_t *doc, const struct hot_tree *t, const struct hot_rows *rows,
	      const struct hot_show *show)
{
	json_t *functions = json_array(), *sum = json_object();
	size_t i;

	set_head(cli, doc, show);
	cli_json_hertz(cli, doc, t->hertz);
	for (i = 0; i < rows->count && (!show->top || i < show->top); i++) {
		const struct hot_row *row = &rows->row[i];
		json_t *o = json_object();

		set_process(cli, o, &t->process[row->group], show->per);
		set_function(cli, o, &t->function[row->function]);
		set_row(cli, o, t, row);
		cli_json_add(cli, functions, o);
	}
	cli_json_set(cli, doc, "functions", functions);
	cli_json_number(cli, sum, "functions", rows->count);
	set_values(cli, sum, t, "self", rows->sum.self);
	cli_json_set(cli, doc, "total", sum);
}

static json_t *change_object(struct cli *cli, const struct hot_diff *d, const struct hot_change *c,
			     const struct hot_show *show)
{
	static const char *const key[] = { "before", "after" };
	const unsigned int named = c->row[1] ? 1 : 0;
	const struct hot_process *p = &d->tree[named]->process[c->row[named]->group];
	json_t *o = json_object();
	unsigned int side;

	if (show->per != HOT_PER_TRACE && !d->vms)
		cli_json_string(cli, o, "vm", p->vm);
	if (show->per == HOT_PER_PROCESS)
		cli_json_string(cli, o, "comm", p->comm);
	set_function(cli, o, &d->tree[named]->function[c->row[named]->function]);
	for (side = 0; side < 2; side++) {
		static const struct hot_row none;
		json_t *one = json_object();

		set_row(cli, one, d->tree[side], c->row[side] ? c->row[side] : &none);
		cli_json_set(cli, o, key[side], one);
	}
	return o;
}

void hot_json_diff(struct cli *cli, json_t *doc, const struct hot_diff *d,
		   const struct hot_show *show)
{
	static const char *const key[] = { "total_before", "total_after" };
	json_t *changes = json_array();
	unsigned int side;
	size_t i;

	set_head(cli, doc, show);
	cli_json_hertz(cli, doc, d->tree[0]->hertz);
	for (i = 0; i < d->count && (!show->top || i < show->top); i++)
		cli_json_add(cli, changes, change_object(cli, d, &d->change[i], show));
	cli_json_set(cli, doc, "changes", changes);
	for (side = 0; side < 2; side++) {
		json_t *sum = json_object();

		set_values(cli, sum, d->tree[side], "self", d->sum[side]);
		cli_json_set(cli, doc, key[side], sum);
	}
}
