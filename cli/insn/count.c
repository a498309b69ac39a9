// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt insn --count: instructions, branches, calls and gaps of each address space. */
#include <stdlib.h>

#include "cli/insn/insn.h"
#include "util/array.h"

const char *const insn_reason_text[VMPT_FLOW_REASONS] = {
	[VMPT_FLOW_NO_CODE] = "code missing",	 [VMPT_FLOW_BAD_CODE] = "no instruction",
	[VMPT_FLOW_IMPOSSIBLE] = "code differs", [VMPT_FLOW_ENDLESS] = "endless code",
	[VMPT_FLOW_OVERFLOW] = "overflow",	 [VMPT_FLOW_LOSS] = "loss",
	[VMPT_FLOW_NO_TNT] = "no TNT",
};

const char *const insn_reason_key[VMPT_FLOW_REASONS] = {
	[VMPT_FLOW_NO_CODE] = "no_code",       [VMPT_FLOW_BAD_CODE] = "bad_code",
	[VMPT_FLOW_IMPOSSIBLE] = "impossible", [VMPT_FLOW_ENDLESS] = "endless",
	[VMPT_FLOW_OVERFLOW] = "overflow",     [VMPT_FLOW_LOSS] = "loss",
	[VMPT_FLOW_NO_TNT] = "no_tnt",
};

bool insn_wanted(struct cli *cli, const struct vmpt_space *space)
{
	const bool wanted = cli_filter_vmcs(cli, &space->owner) &&
			    cli_filter_cr3(cli, !space->no_cr3, space->cr3);

	cli_filter(cli)->seen |= wanted;
	return wanted;
}

void insn_add_counts(struct vmpt_flow_counts *to, const struct vmpt_flow_counts *from)
{
	unsigned int i;

	to->instructions += from->instructions;
	to->branches += from->branches;
	to->calls += from->calls;
	for (i = 0; i < VMPT_FLOW_REASONS; i++)
		to->gaps[i] += from->gaps[i];
}

#define HASH_P 0x9e3779b97f4a7c15ULL

u64 insn_hash_append(u64 hash, u64 hash2, u64 n)
{
	u64 p = HASH_P;

	for (; n; n >>= 1, p *= p)
		if (n & 1)
			hash *= p;
	return hash + hash2;
}

static bool same(const struct vmpt_space *a, const struct vmpt_space *b)
{
	return vmpt_owner_same(&a->owner, &b->owner) && a->no_cr3 == b->no_cr3 &&
	       a->cr3 == b->cr3 && a->exec == b->exec;
}

struct insn_row *insn_row(struct insn *d, const struct vmpt_space *space)
{
	u64 hash = vmpt_mix64(space->cr3 ^ vmpt_mix64(space->owner.vmcs ^ space->exec));
	u32 i = vmpt_hash_find(&d->row_of, hash, k, same(&d->row[k].space, space));

	if (i != VMPT_HASH_NONE)
		return &d->row[i];
	if (vmpt_grow(&d->row, d->rows) || vmpt_hash_add(&d->row_of, hash, (u32)d->rows))
		return NULL;
	d->row[d->rows] = (struct insn_row){ .space = *space };
	return &d->row[d->rows++];
}

int insn_count(struct cli *cli, struct vmpt_flow *flow, size_t i)
{
	struct insn *d = cli->data;
	struct insn_stream *s = &d->stream[i];
	struct vmpt_flow_counts all;
	u32 k, n = vmpt_flow_spaces(flow);

	/* Gaps outside of all spaces are in the sum of all only. */
	vmpt_flow_total(flow, &all, d->hash ? &s->hash : NULL);
	if (!cli_filter_any(cli))
		s->counts = all;
	for (k = 0; k < n; k++) {
		struct vmpt_flow_counts counts;
		struct vmpt_space space;
		struct insn_row *row;

		vmpt_flow_space(flow, k, &space, &counts);
		if (!insn_wanted(cli, &space))
			continue;
		row = insn_row(d, &space);
		if (!row)
			return -VMPT_E_NOMEM;
		insn_add_counts(&row->counts, &counts);
		if (cli_filter_any(cli))
			insn_add_counts(&s->counts, &counts);
	}
	return 0;
}

void insn_note_gap(struct insn *d, struct vmpt_flow *flow, const struct vmpt_flow_batch *b,
		   size_t i)
{
	struct insn_gap *g = &d->gap[b->reason];

	if (g->seen)
		return;
	*g = (struct insn_gap){ .seen = true, .stream = i, .offset = b->offset, .ip = b->ip };
	if (b->space < vmpt_flow_spaces(flow))
		vmpt_flow_space(flow, b->space, &g->space, NULL);
}

/* ---- output ---- */

const char *insn_who(struct cli *cli, const struct vmpt_owner *owner, char buf[CLI_WHO])
{
	const struct insn *d = cli->data;
	const char *vm;
	s64 vcpu;
	size_t n;

	if (owner->kind != VMPT_OWNER_VM ||
	    !cli_clocks_who(&d->clocks, owner->vmcs, VMPT_TIME_NONE - 1, &vm, &vcpu) || !vm)
		return cli_owner_name(owner, buf);
	cli_safe_name(vm, buf);
	n = strlen(buf);
	if (vcpu >= 0)
		snprintf(buf + n, CLI_WHO - n, " vcpu %lld", (long long)vcpu);
	return buf;
}

/* VMs first, as vmpt vms has them. */
static int by_space(const void *x, const void *y)
{
	static const u8 rank[] = {
		[VMPT_OWNER_VM] = 0,
		[VMPT_OWNER_VM_ANY] = 1,
		[VMPT_OWNER_HOST] = 2,
		[VMPT_OWNER_UNKNOWN] = 3,
	};
	const struct vmpt_space *a = &((const struct insn_row *)x)->space;
	const struct vmpt_space *b = &((const struct insn_row *)y)->space;

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

static void sort_rows(const struct insn *d)
{
	if (d->rows)
		qsort(d->row, d->rows, sizeof(*d->row), by_space);
}

static u64 gaps(const struct vmpt_flow_counts *c)
{
	unsigned int i;
	u64 n = 0;

	for (i = 0; i < VMPT_FLOW_REASONS; i++)
		n += c->gaps[i];
	return n;
}

static void count_cells(struct cli_table *t, const struct vmpt_flow_counts *c)
{
	cli_cell_number(t, true, c->instructions);
	cli_cell_number(t, true, c->branches);
	cli_cell_number(t, true, c->calls);
	cli_cell_number(t, true, gaps(c));
}

static void print_spaces(struct cli *cli)
{
	static const struct cli_column column[] = {
		{ "VM", CLI_NAMES },  { "CR3", true },	 { "BITS", true }, { "INSTRUCTIONS", true },
		{ "BRANCHES", true }, { "CALLS", true }, { "GAPS", true },
	};
	struct cli_table *t = cli_table_new(cli, column, VMPT_ARRAY_SIZE(column));
	const struct insn *d = cli->data;
	char buf[CLI_WHO];
	size_t i;

	for (i = 0; i < d->rows; i++) {
		const struct vmpt_space *s = &d->row[i].space;

		cli_cell(t, cli_owner_paint(&s->owner), "%s", insn_who(cli, &s->owner, buf));
		if (s->no_cr3)
			cli_cell(t, CLI_DIM, "–");
		else
			cli_cell(t, CLI_PLAIN, "%llx", (unsigned long long)s->cr3);
		cli_cell(t, CLI_PLAIN, "%u", s->exec);
		count_cells(t, &d->row[i].counts);
	}
	cli_cell(t, CLI_BOLD, "total");
	cli_cell(t, CLI_PLAIN, "%s", "");
	cli_cell(t, CLI_PLAIN, "%s", "");
	count_cells(t, &d->total.counts);
	cli_table_print(t, "");
}

static void print_gaps(struct cli *cli)
{
	static const struct cli_column column[] = {
		{ "GAPS", false },  { "COUNT", true }, { "FIRST AT", false },
		{ "OFFSET", true }, { "IP", true },    { "VM", CLI_NAMES },
	};
	const struct insn *d = cli->data;
	struct cli_table *t;
	unsigned int i;

	if (!gaps(&d->total.counts))
		return;
	t = cli_table_new(cli, column, VMPT_ARRAY_SIZE(column));
	for (i = 0; i < VMPT_FLOW_REASONS; i++) {
		const struct insn_gap *g = &d->gap[i];
		char buf[CLI_WHO], stream[32];

		if (!d->total.counts.gaps[i])
			continue;
		cli_cell(t, CLI_YELLOW, "%s", insn_reason_text[i]);
		cli_cell_number(t, true, d->total.counts.gaps[i]);
		if (g->seen) {
			cli_cell(t, CLI_PLAIN, "%s",
				 cli_stream_name(cli->stream[g->stream], stream));
			cli_cell(t, CLI_PLAIN, "0x%llx", (unsigned long long)g->offset);
			cli_cell(t, CLI_PLAIN, "%llx", (unsigned long long)g->ip);
			cli_cell(t, CLI_PLAIN, "%s", insn_who(cli, &g->space.owner, buf));
		}
		cli_row_end(t);
	}
	printf("\n");
	cli_table_print(t, "");
}

void insn_print(struct cli *cli)
{
	const struct insn *d = cli->data;

	sort_rows(d);
	print_spaces(cli);
	print_gaps(cli);
	if (d->hash)
		printf("\nhash: %016llx\n", (unsigned long long)d->total.hash);
}

/* ---- JSON ---- */

static void json_counts(struct cli *cli, json_t *o, const struct vmpt_flow_counts *c)
{
	json_t *by_reason = json_object();
	unsigned int i;

	cli_json_number(cli, o, "instructions", c->instructions);
	cli_json_number(cli, o, "branches", c->branches);
	cli_json_number(cli, o, "calls", c->calls);
	for (i = 0; i < VMPT_FLOW_REASONS; i++)
		cli_json_number(cli, by_reason, insn_reason_key[i], c->gaps[i]);
	cli_json_set(cli, o, "gaps", by_reason);
}

static void json_hash(struct cli *cli, json_t *o, u64 hash)
{
	char buf[20];

	if (!((const struct insn *)cli->data)->hash)
		return;
	snprintf(buf, sizeof(buf), "%016llx", (unsigned long long)hash);
	cli_json_string(cli, o, "hash", buf);
}

static void json_owner(struct cli *cli, json_t *o, const struct vmpt_owner *owner)
{
	const struct insn *d = cli->data;
	const char *vm;
	s64 vcpu;

	cli_json_string(cli, o, "owner", cli_owner_kind(owner));
	if (owner->kind != VMPT_OWNER_VM)
		return;
	cli_json_hex(cli, o, "vmcs", owner->vmcs);
	if (!cli_clocks_who(&d->clocks, owner->vmcs, VMPT_TIME_NONE - 1, &vm, &vcpu))
		return;
	if (vm)
		cli_json_string(cli, o, "vm", vm);
	cli_json_set(cli, o, "vcpu", vcpu < 0 ? json_null() : json_integer(vcpu));
}

void insn_json_space(struct cli *cli, json_t *o, const struct vmpt_space *s)
{
	json_owner(cli, o, &s->owner);
	if (s->no_cr3)
		cli_json_set(cli, o, "cr3", json_null());
	else
		cli_json_hex(cli, o, "cr3", s->cr3);
	cli_json_number(cli, o, "bits", s->exec);
}

static json_t *json_spaces(struct cli *cli)
{
	const struct insn *d = cli->data;
	json_t *spaces = json_array();
	size_t i;

	for (i = 0; i < d->rows; i++) {
		json_t *o = json_object();

		insn_json_space(cli, o, &d->row[i].space);
		json_counts(cli, o, &d->row[i].counts);
		cli_json_add(cli, spaces, o);
	}
	return spaces;
}

static json_t *json_images(struct cli *cli)
{
	const struct insn *d = cli->data;
	json_t *images = json_array();
	size_t i;

	for (i = 0; i < d->code.count; i++) {
		const struct insn_image *im = &d->code.image[i];
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

void insn_json(struct cli *cli)
{
	json_t *doc = cli_json_document(cli), *streams = json_array(), *total = json_object();
	const struct insn *d = cli->data;
	size_t i;

	sort_rows(d);
	cli_json_set(cli, doc, "images", json_images(cli));
	cli_json_set(cli, doc, "spaces", json_spaces(cli));
	for (i = 0; i < cli->streams; i++) {
		json_t *o = json_object();

		cli_json_stream(cli, o, cli->stream[i]);
		json_counts(cli, o, &d->stream[i].counts);
		json_hash(cli, o, d->stream[i].hash);
		cli_json_add(cli, streams, o);
	}
	cli_json_set(cli, doc, "streams", streams);
	json_counts(cli, total, &d->total.counts);
	json_hash(cli, total, d->total.hash);
	cli_json_set(cli, doc, "total", total);
	cli_json_end(cli, doc);
	cli_json_print(cli, doc, stdout, false);
}
