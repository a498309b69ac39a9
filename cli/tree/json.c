// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt calls --json: an object for each line. */
#include "cli/tree/tree.h"

static const char *const what_key[] = {
	[TREE_CALL] = "enter", [TREE_LEAF] = "call", [TREE_END] = "leave", [TREE_MORE] = "more",
	[TREE_OUT] = "out",    [TREE_RUN] = "run",   [TREE_GAP] = "gap",
};

static const char *const kind_key[VMPT_CALL_KINDS] = {
	[VMPT_CALL_ROOT] = "root",	     [VMPT_CALL_UNKNOWN] = "unknown",
	[VMPT_CALL_CALL] = "call",	     [VMPT_CALL_SYSTEM] = "system",
	[VMPT_CALL_INTERRUPT] = "interrupt", [VMPT_CALL_SIGNAL] = "signal",
};

/* "KEY_ns", or "KEY_ticks" where the TSC's frequency is not known. */
static void set_ticks(struct cli *cli, json_t *o, const char *key, u64 ticks, bool known)
{
	const struct tree *d = cli->data;
	const double hz = d->source.t.when.hz;
	char name[32];

	snprintf(name, sizeof(name), "%s_%s", key, hz > 0 ? "ns" : "ticks");
	if (!known)
		cli_json_set(cli, o, name, json_null());
	else if (hz > 0)
		cli_json_ns(cli, o, name, (double)ticks / hz);
	else
		cli_json_number(cli, o, name, ticks);
}

static void set_process(struct cli *cli, json_t *o, u32 process)
{
	const struct tree *d = cli->data;
	const struct calls_process *p = &d->source.process[process];
	const struct calls_vm *vm = &d->source.vm[p->vm];

	traced_json_space(cli, &d->source.t, o, &p->space);
	if (vm->vm && !json_object_get(o, "vm"))
		cli_json_string(cli, o, "vm", vm->vm);
	if (!p->task)
		return;
	cli_json_number(cli, o, "tgid", p->task->tgid);
	cli_json_string(cli, o, "comm", p->task->comm);
}

static void set_when(struct cli *cli, json_t *o, u64 tsc)
{
	const struct tree *d = cli->data;

	if (!d->timed)
		return;
	if (tsc == VMPT_TIME_NONE)
		cli_json_set(cli, o, "host_tsc", json_null());
	else
		cli_json_hex(cli, o, "host_tsc", tsc);
}

static void set_lengths(struct cli *cli, json_t *o, const struct tree_line *line)
{
	const struct tree *d = cli->data;

	if (line->what != TREE_OUT)
		cli_json_number(cli, o, "instructions", line->instructions);
	if (!d->timed)
		return;
	set_ticks(cli, o, "time", line->length.ticks, line->length.known);
	set_ticks(cli, o, "time_error", line->length.error, line->length.known);
	if (line->count < 2 && line->what != TREE_MORE)
		return;
	set_ticks(cli, o, "min", line->min, line->length.known);
	set_ticks(cli, o, "max", line->max, line->length.known);
}

/* The VM exit, and who ran meanwhile. */
static void set_out(struct cli *cli, json_t *o, const struct tree_line *line)
{
	json_t *others = json_array();
	char reason[40];
	unsigned int i;

	if (line->exit)
		cli_json_string(cli, o, "exit", spans_reason(line->exit, reason));
	for (i = 0; i < line->outs; i++) {
		json_t *other = json_object();

		set_process(cli, other, line->out[i]);
		cli_json_add(cli, others, other);
	}
	if (line->what == TREE_OUT)
		cli_json_set(cli, o, "meanwhile", others);
	else
		json_decref(others);
}

void tree_json(struct cli *cli, const struct tree_line *line)
{
	struct tree *d = cli->data;
	const bool call = line->what <= TREE_MORE;
	json_t *o = json_object();

	cli_json_string(cli, o, "what", what_key[line->what]);
	cli_json_stream(cli, o, cli->stream[line->stream]);
	cli_json_number(cli, o, "offset", line->offset);
	set_when(cli, o, line->tsc);
	cli_json_number(cli, o, "task", line->task);
	if (line->what == TREE_RUN)
		set_process(cli, o, d->task[line->task].process);
	else
		cli_json_number(cli, o, "depth", line->depth);
	if (call) {
		const struct calls_function *f = &d->source.function[line->function];

		if (*f->module)
			cli_json_string(cli, o, "module", f->module);
		cli_json_string(cli, o, "function", f->name);
		cli_json_string(cli, o, "kind", kind_key[line->kind]);
		cli_json_set(cli, o, "assumed", json_boolean(line->assumed));
	}
	if (line->what != TREE_CALL && line->what != TREE_RUN) {
		cli_json_number(cli, o, "count", line->count);
		if (line->what != TREE_GAP)
			set_lengths(cli, o, line);
	}
	set_out(cli, o, line);
	cli_json_list_add(cli, o, !d->titled, stdout);
	d->titled = true;
}
