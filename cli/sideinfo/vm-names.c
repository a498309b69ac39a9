// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Names of VMCSs for tables of whole traces; see vm-names.h. */
#include <stdlib.h>
#include <string.h>

#include "cli/sideinfo/vm-names.h"
#include "util/array.h"
#include "util/search.h"

bool cli_vm_names_given(const struct cli *cli)
{
	return !cli_is_rtit(cli) && cli_side(cli)->file;
}

bool cli_vm_names_any(struct cli *cli)
{
	return cli_vm_names_given(cli) || cli_recording_near_tsc(cli);
}

/* ---- all names ---- */

static bool same(const struct cli_vm_name *a, const struct cli_vm_name *b)
{
	return a->vmcs == b->vmcs && a->vcpu == b->vcpu && !strcmp(a->vm, b->vm);
}

/* In order. Consecutive equal names, as in a record with a line for each new TSC offset, are one.
 */
static int add(struct cli *cli, struct cli_vm_names *names, const struct cli_vm_name *name)
{
	if (names->count && same(&names->name[names->count - 1], name)) {
		names->name[names->count - 1].to = name->to;
		return CLI_OK;
	}
	if (vmpt_grow(&names->name, names->count))
		return cli_no_memory(cli);
	names->name[names->count++] = *name;
	return CLI_OK;
}

/* A name is valid until the next one of its VMCS; of two with the same start the last is used. */
static int add_record(struct cli *cli, struct cli_vm_names *names, const struct cli_clocks *c)
{
	int code = CLI_OK;
	size_t i;

	for (i = 0; !code && i < c->vcpus; i++) {
		const struct cli_clock_vcpu *v = &c->vcpu[i], *next = v + 1;
		bool more = i + 1 < c->vcpus && next->vmcs == v->vmcs;
		struct cli_vm_name name = {
			.vmcs = v->vmcs,
			.from = v->since,
			.to = more ? next->since : ~0ULL,
			.vm = v->vm,
			.vcpu = v->vcpu,
		};

		if (name.from < name.to)
			code = add(cli, names, &name);
	}
	return code;
}

/* Those of @vmcs, @n of them; NULL: none. */
static struct cli_vm_name *find(const struct cli_vm_names *names, u64 vmcs, size_t *n)
{
	size_t first = vmpt_search(i, 0, names->count, names->name[i].vmcs < vmcs);

	*n = vmpt_search(i, first, names->count, names->name[i].vmcs <= vmcs) - first;
	return *n ? &names->name[first] : NULL;
}

static int by_vmcs(const void *a, const void *b)
{
	const struct cli_vm_name *x = a, *y = b;

	if (x->vmcs != y->vmcs)
		return x->vmcs < y->vmcs ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

/* They come from runs, so each ran. The record takes precedence for its VMCSs. */
static int add_found(struct cli *cli, struct cli_vm_names *names, const struct vmpt_names *found)
{
	struct cli_vm_names record = *names;
	size_t n, i, of;
	const struct vmpt_vm_name *list = vmpt_names_list(found, &n);
	int code = CLI_OK;

	for (i = 0; !code && i < n; i++) {
		struct cli_vm_name name = {
			.vmcs = list[i].vmcs,
			.from = list[i].from,
			.to = list[i].to,
			.vm = list[i].vm,
			.vcpu = list[i].vcpu,
			.ran = true,
		};

		/* The array may have moved; the contents of its first part have not. */
		record.name = names->name;
		if (name.vm && !find(&record, name.vmcs, &of))
			code = add(cli, names, &name);
	}
	if (names->count)
		qsort(names->name, names->count, sizeof(*names->name), by_vmcs);
	return code;
}

/* ---- which of them ran ---- */

/* The last one that begins at or before @at; the first one also applies before that. */
static void mark(struct cli_vm_name *name, size_t n, u64 at)
{
	size_t next;

	if (at == VMPT_TIME_NONE)
		return;
	next = vmpt_search(i, 0, n, name[i].from <= at);
	name[next ? next - 1 : 0].ran = true;
}

static int walk(struct cli *cli, const struct cli_clocks *c, struct cli_vm_names *names, size_t i)
{
	struct vmpt_options options = cli_stream_options(cli, i);
	struct vmpt_timed_batch timed;
	struct vmpt_timed *decoder;
	int ret;

	options.progress = NULL;
	ret = vmpt_timed_open(&decoder, c->clocks, i, &options);
	if (ret)
		return ret;
	while ((ret = vmpt_timed_next(decoder, &timed)) > 0) {
		const struct vmpt_batch *b = &timed.batch;
		struct cli_vm_name *name;
		size_t n = 0;

		if (!b->count || b->owner.kind != VMPT_OWNER_VM)
			continue;
		name = find(names, b->owner.vmcs, &n);
		if (n < 2)
			continue;
		mark(name, n, timed.time[0].tsc);
		mark(name, n, timed.time[b->count - 1].tsc);
	}
	vmpt_timed_close(decoder);
	return ret;
}

/* Of a VMCS with several names keep those that ran; all of them if no time is known. */
static void drop_others(struct cli_vm_names *names)
{
	size_t i, k, n, kept = 0;

	for (i = 0; i < names->count; i += n) {
		bool any = false;

		for (n = 0; i + n < names->count && names->name[i + n].vmcs == names->name[i].vmcs;
		     n++)
			any |= names->name[i + n].ran;
		for (k = i; k < i + n; k++) {
			if (any && !names->name[k].ran)
				continue;
			if (kept && same(&names->name[kept - 1], &names->name[k]))
				names->name[kept - 1].to = names->name[k].to;
			else
				names->name[kept++] = names->name[k];
		}
	}
	names->count = kept;
}

static int keep_ran(struct cli *cli, const struct cli_clocks *c, struct cli_vm_names *names)
{
	bool several = false;
	size_t i;
	int ret = 0;

	for (i = 1; i < names->count; i++)
		several |= names->name[i].vmcs == names->name[i - 1].vmcs;
	if (!several)
		return CLI_OK;
	for (i = 0; !ret && i < cli->streams; i++)
		ret = walk(cli, c, names, i);
	if (ret) {
		cli_error(cli, "%s: %s", cli->file[0], vmpt_strerror(ret));
		return CLI_FAILED;
	}
	drop_others(names);
	return CLI_OK;
}

int cli_vm_names_open(struct cli *cli, const struct cli_clocks *clocks, struct cli_vm_names *names)
{
	int code;

	*names = (struct cli_vm_names){ 0 };
	code = add_record(cli, names, clocks);
	if (!code)
		code = keep_ran(cli, clocks, names);
	if (!code && clocks->names)
		code = add_found(cli, names, clocks->names);
	return code;
}

void cli_vm_names_close(struct cli_vm_names *names)
{
	free(names->name);
	*names = (struct cli_vm_names){ 0 };
}

/* ---- showing them ---- */

void cli_vm_names_cell(struct cli_vm_names *names, struct cli_table *t, u64 vmcs)
{
	char name[CLI_WHO], vcpu[32] = "", more[40] = "", number[32];
	const struct cli_vm_name *of;
	size_t n;

	of = find(names, vmcs, &n);
	if (!of) {
		cli_cell(t, CLI_DIM, "–");
		return;
	}
	names->seen = true;
	cli_safe_name(of->vm, name);
	if (of->vcpu >= 0)
		snprintf(vcpu, sizeof(vcpu), " vcpu %lld", (long long)of->vcpu);
	if (n > 1)
		snprintf(more, sizeof(more), ", +%s more", cli_number(n - 1, number));
	cli_cell(t, CLI_PLAIN, "%s%s%s", name, vcpu, more);
}

static void json_name(struct cli *cli, json_t *o, const struct cli_vm_name *name)
{
	cli_json_string(cli, o, "vm", name->vm);
	cli_json_set(cli, o, "vcpu", name->vcpu < 0 ? json_null() : json_integer(name->vcpu));
}

void cli_vm_names_json(struct cli *cli, struct cli_vm_names *names, json_t *o, u64 vmcs)
{
	const struct cli_vm_name *of;
	json_t *list;
	size_t n, i;

	of = find(names, vmcs, &n);
	names->seen |= n;
	if (n == 1)
		json_name(cli, o, of);
	if (n < 2)
		return;
	list = json_array();
	for (i = 0; i < n; i++) {
		json_t *one = json_object();

		json_name(cli, one, &of[i]);
		cli_json_hex(cli, one, "from_tsc", of[i].from);
		if (of[i].to != ~0ULL)
			cli_json_hex(cli, one, "to_tsc", of[i].to);
		else
			cli_json_set(cli, one, "to_tsc", json_null());
		cli_json_add(cli, list, one);
	}
	cli_json_set(cli, o, "names", list);
}

void cli_vm_names_tell(const struct cli *cli, const struct cli_vm_names *names)
{
	if (cli_side(cli)->file && names->count && !names->seen)
		cli_warn(cli,
			 "%s: none of its VMCSs ran in this trace: is it from the same recording?",
			 cli_side(cli)->file);
}
