// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Whose code was executed and where the flow was lost, as text and JSON; see traced.h. */
#include <string.h>

#include "cli/symbols/traced.h"
#include "util/hash.h"

const char *const traced_reason_text[VMPT_FLOW_REASONS] = {
	[VMPT_FLOW_NO_CODE] = "code missing",	 [VMPT_FLOW_BAD_CODE] = "no instruction",
	[VMPT_FLOW_IMPOSSIBLE] = "code differs", [VMPT_FLOW_ENDLESS] = "endless code",
	[VMPT_FLOW_OVERFLOW] = "overflow",	 [VMPT_FLOW_LOSS] = "loss",
	[VMPT_FLOW_NO_TNT] = "no TNT",
};

const char *const traced_reason_key[VMPT_FLOW_REASONS] = {
	[VMPT_FLOW_NO_CODE] = "no_code",       [VMPT_FLOW_BAD_CODE] = "bad_code",
	[VMPT_FLOW_IMPOSSIBLE] = "impossible", [VMPT_FLOW_ENDLESS] = "endless",
	[VMPT_FLOW_OVERFLOW] = "overflow",     [VMPT_FLOW_LOSS] = "loss",
	[VMPT_FLOW_NO_TNT] = "no_tnt",
};

/* ---- address spaces ---- */

const char *traced_vm(const struct traced *t, const struct vmpt_owner *owner, s64 *vcpu)
{
	const char *vm = NULL;
	s64 n = -1;

	if (owner->kind == VMPT_OWNER_HOST)
		vm = "host";
	else if (owner->kind != VMPT_OWNER_VM ||
		 !cli_clocks_who(&t->clocks, owner->vmcs, VMPT_TIME_NONE - 1, &vm, &n))
		vm = NULL;
	if (vcpu)
		*vcpu = n;
	return vm;
}

const char *traced_who(const struct traced *t, const struct vmpt_owner *owner, char buf[CLI_WHO])
{
	const char *vm;
	s64 vcpu;
	size_t n;

	if (owner->kind != VMPT_OWNER_VM || !(vm = traced_vm(t, owner, &vcpu)))
		return cli_owner_name(owner, buf);
	cli_safe_name(vm, buf);
	n = strlen(buf);
	if (vcpu >= 0)
		snprintf(buf + n, CLI_WHO - n, " vcpu %lld", (long long)vcpu);
	return buf;
}

void traced_names(const struct traced *t, const struct vmpt_space *s, struct names_space *names)
{
	code_names_space(&t->names, traced_vm(t, &s->owner, NULL), !s->no_cr3, s->cr3, names);
	code_names_in(names, s);
}

int traced_compare(const struct vmpt_space *a, const struct vmpt_space *b)
{
	static const u8 rank[] = {
		[VMPT_OWNER_VM] = 0,
		[VMPT_OWNER_VM_ANY] = 1,
		[VMPT_OWNER_HOST] = 2,
		[VMPT_OWNER_UNKNOWN] = 3,
	};

	if (a->owner.kind != b->owner.kind)
		return rank[a->owner.kind] < rank[b->owner.kind] ? -1 : 1;
	if (a->owner.kind == VMPT_OWNER_VM && a->owner.vmcs != b->owner.vmcs)
		return a->owner.vmcs < b->owner.vmcs ? -1 : 1;
	if (a->no_cr3 != b->no_cr3)
		return a->no_cr3 ? 1 : -1;
	if (a->cr3 != b->cr3)
		return a->cr3 < b->cr3 ? -1 : 1;
	return a->exec < b->exec ? -1 : a->exec > b->exec;
}

bool traced_same(const struct vmpt_space *a, const struct vmpt_space *b)
{
	return vmpt_owner_same(&a->owner, &b->owner) && a->no_cr3 == b->no_cr3 &&
	       a->cr3 == b->cr3 && a->exec == b->exec;
}

u64 traced_hash(const struct vmpt_space *space)
{
	return vmpt_mix64(space->cr3 ^ vmpt_mix64(space->owner.vmcs ^ space->exec));
}

/* ---- gaps ---- */

u64 traced_gaps(const struct vmpt_flow_counts *c)
{
	unsigned int i;
	u64 n = 0;

	for (i = 0; i < VMPT_FLOW_REASONS; i++)
		n += c->gaps[i];
	return n;
}

void traced_print_gaps(struct cli *cli, const struct traced *t, const struct vmpt_flow_counts *c)
{
	static const struct cli_column column[] = {
		{ "GAPS", false },  { "COUNT", true }, { "FIRST AT", false },
		{ "OFFSET", true }, { "IP", true },    { "VM", CLI_NAMES },
	};
	struct cli_table *table;
	unsigned int i, columns = 2;

	if (!traced_gaps(c))
		return;
	/* Where they are only counted, their places are not known. */
	for (i = 0; i < VMPT_FLOW_REASONS; i++)
		if (t->gap[i].seen)
			columns = VMPT_ARRAY_SIZE(column);
	table = cli_table_new(cli, column, columns);
	for (i = 0; i < VMPT_FLOW_REASONS; i++) {
		const struct traced_gap *g = &t->gap[i];
		char buf[CLI_WHO], stream[32];

		if (!c->gaps[i])
			continue;
		cli_cell(table, CLI_YELLOW, "%s", traced_reason_text[i]);
		cli_cell_number(table, true, c->gaps[i]);
		if (g->seen) {
			cli_cell(table, CLI_PLAIN, "%s",
				 cli_stream_name(cli->stream[g->stream], stream));
			cli_cell(table, CLI_PLAIN, "0x%llx", (unsigned long long)g->offset);
			cli_cell(table, CLI_PLAIN, "%llx", (unsigned long long)g->ip);
			cli_cell(table, CLI_PLAIN, "%s", traced_who(t, &g->space.owner, buf));
		}
		cli_row_end(table);
	}
	printf("\n");
	cli_table_print(table, "");
}

/* ---- JSON ---- */

void traced_json_gaps(struct cli *cli, json_t *o, const struct vmpt_flow_counts *c)
{
	json_t *by_reason = json_object();
	unsigned int i;

	for (i = 0; i < VMPT_FLOW_REASONS; i++)
		cli_json_number(cli, by_reason, traced_reason_key[i], c->gaps[i]);
	cli_json_set(cli, o, "gaps", by_reason);
}

static void json_owner(struct cli *cli, const struct traced *t, json_t *o,
		       const struct vmpt_owner *owner)
{
	const char *vm;
	s64 vcpu;

	cli_json_string(cli, o, "owner", cli_owner_kind(owner));
	if (owner->kind != VMPT_OWNER_VM)
		return;
	cli_json_hex(cli, o, "vmcs", owner->vmcs);
	if (!cli_clocks_who(&t->clocks, owner->vmcs, VMPT_TIME_NONE - 1, &vm, &vcpu))
		return;
	if (vm)
		cli_json_string(cli, o, "vm", vm);
	cli_json_set(cli, o, "vcpu", vcpu < 0 ? json_null() : json_integer(vcpu));
}

void traced_json_space(struct cli *cli, const struct traced *t, json_t *o,
		       const struct vmpt_space *s)
{
	json_owner(cli, t, o, &s->owner);
	if (s->no_cr3)
		cli_json_set(cli, o, "cr3", json_null());
	else
		cli_json_hex(cli, o, "cr3", s->cr3);
	cli_json_number(cli, o, "bits", s->exec);
}

json_t *traced_json_images(struct cli *cli, const struct traced *t)
{
	json_t *images = json_array();
	size_t i;

	for (i = 0; i < t->images; i++) {
		const struct traced_image *im = &t->image[i];
		struct vmpt_image_counts c;
		json_t *o = json_object();

		vmpt_image_counts(im->image, &c);
		cli_json_string(cli, o, "file", im->given->path);
		if (im->given->vm)
			cli_json_string(cli, o, "vm", im->given->vm);
		if (im->given->has_address)
			cli_json_hex(cli, o, "address", im->given->address);
		cli_json_set(cli, o, "used", json_boolean(im->used));
		cli_json_number(cli, o, "found", c.found);
		cli_json_number(cli, o, "absent", c.absent);
		cli_json_number(cli, o, "not_present", c.not_present);
		cli_json_number(cli, o, "no_table", c.no_table);
		cli_json_number(cli, o, "reserved", c.reserved);
		cli_json_number(cli, o, "no_memory", c.no_memory);
		cli_json_add(cli, images, o);
	}
	return images;
}
