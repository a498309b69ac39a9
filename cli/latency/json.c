// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt latency --json: an object for each function. */
#include "cli/latency/latency.h"

static const char *const kind_key[LATENCY_KINDS] = {
	[LATENCY_RUN] = "run",		 [LATENCY_EXIT] = "exit",
	[LATENCY_HALTED] = "halted",	 [LATENCY_VM] = "vm",
	[LATENCY_TASK] = "task",	 [LATENCY_GUEST] = "guest",
	[LATENCY_SWITCHED] = "switched", [LATENCY_UNTRACED] = "untraced",
};

/* KEY_ns, KEY_ticks, or of instructions KEY_instructions. */
static void set_length(struct cli *cli, json_t *o, const char *key, u64 ticks)
{
	const struct latency *d = cli->data;
	const double hz = d->source.t.when.hz;
	char name[48];

	snprintf(name, sizeof(name), "%s_%s", key,
		 !d->timed ? "instructions"
		 : hz > 0  ? "ns"
			   : "ticks");
	if (d->timed && hz > 0)
		cli_json_ns(cli, o, name, (double)ticks / hz);
	else
		cli_json_number(cli, o, name, ticks);
}

static void set_vm(struct cli *cli, json_t *o, u32 vm)
{
	const struct latency *d = cli->data;
	const struct calls_vm *v = &d->source.vm[vm];

	cli_json_string(cli, o, "owner", cli_owner_kind(&v->owner));
	if (v->vm)
		cli_json_string(cli, o, "vm", v->vm);
	else if (v->owner.kind == VMPT_OWNER_VM)
		cli_json_hex(cli, o, "vmcs", v->owner.vmcs);
}

static void set_function(struct cli *cli, json_t *o, u32 function)
{
	const struct latency *d = cli->data;

	if (*d->source.function[function].module)
		cli_json_string(cli, o, "module", d->source.function[function].module);
	cli_json_string(cli, o, "function", d->source.function[function].name);
}

static void set_node(struct cli *cli, json_t *o, u32 number)
{
	struct latency *d = cli->data;
	struct vmpt_call_node node;
	u32 function;

	vmpt_calls_node(d->source.calls, number, &node);
	function = calls_function(&d->source, &node);
	if (function < d->source.functions)
		set_function(cli, o, function);
}

/* What kind a part is, and of whom. */
static json_t *part_object(struct cli *cli, const struct latency_part *part)
{
	const struct latency *d = cli->data;
	const struct spans_span exit = { .source = VMPT_REASON_EVD, .reason = (u16)part->key };
	const struct calls_process *p;
	json_t *o = json_object();
	char reason[40];

	cli_json_string(cli, o, "kind", kind_key[part->kind]);
	if (part->kind == LATENCY_EXIT) {
		cli_json_string(cli, o, "reason", spans_reason(&exit, reason));
	} else if (part->kind == LATENCY_VM || part->kind == LATENCY_GUEST) {
		cli_json_string(cli, o, "for_vm", d->source.vm[part->key].name);
	} else if (part->kind == LATENCY_TASK) {
		p = &d->source.process[part->key];
		if (p->task)
			cli_json_number(cli, o, "for_tgid", p->task->tgid);
		cli_json_string(cli, o, "for_comm", p->task ? p->task->comm : p->name);
	}
	return o;
}

static json_t *row_parts(struct cli *cli, const struct latency_row *row)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < row->parts; i++) {
		const struct latency_sum *sum = &row->part[i];
		json_t *o = part_object(cli, &sum->part);

		cli_json_number(cli, o, "calls", sum->calls);
		set_length(cli, o, "time", sum->part.ticks);
		cli_json_number(cli, o, "slow_calls", sum->slow_calls);
		set_length(cli, o, "slow_time", sum->slow_ticks);
		cli_json_add(cli, list, o);
	}
	return list;
}

static json_t *bars(struct cli *cli, const struct latency_row *row)
{
	const struct latency *d = cli->data;
	json_t *list = json_array();
	u64 low, high, count;
	size_t i = 0;

	while (latency_bar(d, row, &i, &low, &high, &count)) {
		json_t *o = json_object();

		set_length(cli, o, "from", low);
		set_length(cli, o, "below", high);
		cli_json_number(cli, o, "count", count);
		cli_json_add(cli, list, o);
	}
	return list;
}

static json_t *callers(struct cli *cli, u32 number)
{
	const struct latency *d = cli->data;
	json_t *list = json_array();
	struct vmpt_call_node node;

	vmpt_calls_node(d->source.calls, number, &node);
	while (node.parent) {
		const u32 parent = node.parent;
		json_t *o;

		vmpt_calls_node(d->source.calls, parent, &node);
		if (node.kind == VMPT_CALL_ROOT)
			break;
		o = json_object();
		set_node(cli, o, parent);
		cli_json_add(cli, list, o);
	}
	return list;
}

/* Of each level the call that took most. */
static json_t *inside(struct cli *cli, const struct latency_long *l)
{
	const struct latency_inside *in;
	json_t *list = json_array();
	u32 parent = l->call.node;

	while ((in = latency_heaviest(cli->data, l, parent)) != NULL) {
		json_t *o = json_object();

		set_node(cli, o, in->node);
		set_length(cli, o, "time", in->ticks);
		cli_json_add(cli, list, o);
		parent = in->node;
	}
	return list;
}

static json_t *long_object(struct cli *cli, const struct latency_long *l)
{
	const struct latency *d = cli->data;
	const struct calls_process *p = &d->source.process[l->call.process];
	json_t *o = json_object(), *list = json_array();
	u32 i;

	set_length(cli, o, "time", l->call.ticks);
	set_length(cli, o, "time_error", l->call.error);
	if (d->timed)
		cli_json_hex(cli, o, "host_tsc", l->call.tsc);
	cli_json_stream(cli, o, cli->stream[l->call.stream]);
	cli_json_number(cli, o, "offset", l->call.offset);
	if (p->task) {
		cli_json_number(cli, o, "tgid", p->task->tgid);
		cli_json_string(cli, o, "comm", p->task->comm);
	}
	cli_json_set(cli, o, "callers", callers(cli, l->call.node));
	cli_json_set(cli, o, "inside", inside(cli, l));
	for (i = 0; i < l->call.parts; i++) {
		const struct latency_part *part = &d->part[l->call.part + i];
		json_t *one = part_object(cli, part);

		set_length(cli, one, "time", part->ticks);
		cli_json_add(cli, list, one);
	}
	cli_json_set(cli, o, "parts", list);
	return o;
}

static json_t *row_object(struct cli *cli, const struct latency_row *row)
{
	const struct latency *d = cli->data;
	json_t *o = json_object(), *list = json_array();
	size_t i;

	set_vm(cli, o, row->vm);
	set_function(cli, o, row->function);
	cli_json_number(cli, o, "count", row->count);
	cli_json_number(cli, o, "recursed", row->recursed);
	cli_json_number(cli, o, "incomplete", row->incomplete);
	if (row->count) {
		set_length(cli, o, "min", latency_at(d, row, 0));
		set_length(cli, o, "p50", latency_at(d, row, 500));
		set_length(cli, o, "p90", latency_at(d, row, 900));
		set_length(cli, o, "p99", latency_at(d, row, 990));
		set_length(cli, o, "max", latency_at(d, row, 1000));
		set_length(cli, o, "error", row->error);
	}
	set_length(cli, o, "sum", row->sum);
	cli_json_set(cli, o, "histogram", bars(cli, row));
	cli_json_set(cli, o, "parts", row_parts(cli, row));
	for (i = 0; i < row->longs; i++)
		cli_json_add(cli, list, long_object(cli, &row->longest[i]));
	cli_json_set(cli, o, "longest", list);
	return o;
}

void latency_json(struct cli *cli)
{
	const struct latency *d = cli->data;
	json_t *doc = cli_json_document(cli);
	size_t i;

	cli_json_hertz(cli, doc, d->source.t.when.hz);
	cli_json_list_open(cli, doc, "functions", stdout);
	for (i = 0; i < d->rows && !cli_output_failed(cli); i++)
		cli_json_list_add(cli, row_object(cli, &d->row[i]), !i, stdout);
	cli_json_list_close(cli, stdout);
}
