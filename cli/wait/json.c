// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt wait --json: a vCPU with its waits an object, one per line. */
#include "cli/wait/wait.h"

static void set_vcpu(struct cli *cli, const struct timeline *t, json_t *o, u32 vcpu)
{
	const struct timeline_vcpu *v = &t->vcpu[vcpu];

	if (t->vm[v->vm].named)
		timeline_json_vm(cli, t, o, &t->vm[v->vm]);
	if (v->number != TIMELINE_NONE)
		cli_json_number(cli, o, "vcpu", v->number);
	if (v->is_any)
		cli_json_string(cli, o, "owner", "vm_any");
	else
		cli_json_hex(cli, o, "vmcs", v->vmcs);
}

/* The same of the vCPU that ran: "for_vm", "for_vcpu", ... */
static void set_whom(struct cli *cli, const struct timeline *t, json_t *o, u32 vcpu)
{
	json_t *whom = json_object(), *value;
	const char *key;
	char name[32];

	set_vcpu(cli, t, whom, vcpu);
	json_object_foreach(whom, key, value)
	{
		snprintf(name, sizeof(name), "for_%s", key);
		cli_json_set(cli, o, name, json_incref(value));
	}
	json_decref(whom);
}

static json_t *wait_object(struct cli *cli, const struct timeline *t, const struct wait_row *row)
{
	static const char *const kind[] = {
		[WAIT_HOST] = "host",	      [WAIT_VCPU] = "vcpu",	[WAIT_HALTED] = "halted",
		[WAIT_UNTRACED] = "untraced", [WAIT_OTHERS] = "others",
	};
	json_t *o = json_object();

	cli_json_string(cli, o, "kind", kind[row->kind]);
	if (row->kind == WAIT_VCPU)
		set_whom(cli, t, o, row->whom);
	timeline_json_ticks(cli, t, o, "time", row->time.ticks, true);
	timeline_json_ticks(cli, t, o, "time_error", timeline_part_error(&row->time),
			    !row->time.open);
	if (row->kind == WAIT_VCPU)
		timeline_json_ticks(cli, t, o, "host_between", row->host, true);
	cli_json_set(cli, o, "guessed", json_boolean(row->time.guessed));
	if (row->kind == WAIT_OTHERS)
		return o;
	cli_json_number(cli, o, "times", row->times);
	timeline_json_longest(cli, t, o, &row->longest);
	return o;
}

void wait_json(const struct wait *w, const struct timeline *t, u64 top)
{
	struct cli *cli = t->cli;
	json_t *doc = cli_json_document(cli), *o, *list;
	size_t i, n;

	if (t->timed)
		cli_json_hex(cli, doc, "start_tsc", t->zero);
	else
		cli_json_set(cli, doc, "start_tsc", json_null());
	cli_json_hertz(cli, doc, t->hz);
	cli_json_string(cli, doc, "clock", cli_when_name(t->times.clock));
	cli_json_list_open(cli, doc, "vcpus", stdout);
	for (i = 0; i < w->rows && !cli_output_failed(cli); i += n) {
		u32 vcpu = w->row[i].vcpu;

		o = json_object();
		list = json_array();
		set_vcpu(cli, t, o, vcpu);
		for (n = 0; i + n < w->rows && w->row[i + n].vcpu == vcpu; n++)
			if (!top || n < top)
				cli_json_add(cli, list, wait_object(cli, t, &w->row[i + n]));
		cli_json_set(cli, o, "waits", list);
		cli_json_list_add(cli, o, !i, stdout);
	}
	cli_json_list_close(cli, stdout);
}
