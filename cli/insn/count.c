// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt insn --count: instructions, branches, calls and gaps of each address space. */
#include <stdlib.h>

#include "cli/insn/insn.h"
#include "util/array.h"

#define HASH_P 0x9e3779b97f4a7c15ULL

u64 insn_hash_append(u64 hash, u64 hash2, u64 n)
{
	u64 p = HASH_P;

	for (; n; n >>= 1, p *= p)
		if (n & 1)
			hash *= p;
	return hash + hash2;
}

struct insn_row *insn_row(struct insn *d, const struct vmpt_space *space)
{
	u64 hash = traced_hash(space);
	u32 i = vmpt_hash_find(&d->row_of, hash, k, traced_same(&d->row[k].space, space));

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
		if (!traced_wanted(cli, &space))
			continue;
		row = insn_row(d, &space);
		if (!row)
			return -VMPT_E_NOMEM;
		traced_add_counts(&row->counts, &counts);
		if (cli_filter_any(cli))
			traced_add_counts(&s->counts, &counts);
	}
	return 0;
}

/* ---- output ---- */

static int by_space(const void *x, const void *y)
{
	return traced_compare(&((const struct insn_row *)x)->space,
			      &((const struct insn_row *)y)->space);
}

static void sort_rows(const struct insn *d)
{
	if (d->rows)
		qsort(d->row, d->rows, sizeof(*d->row), by_space);
}

static void count_cells(struct cli_table *t, const struct vmpt_flow_counts *c)
{
	cli_cell_number(t, true, c->instructions);
	cli_cell_number(t, true, c->branches);
	cli_cell_number(t, true, c->calls);
	cli_cell_number(t, true, traced_gaps(c));
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

		cli_cell(t, cli_owner_paint(&s->owner), "%s", traced_who(&d->t, &s->owner, buf));
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

void insn_print(struct cli *cli)
{
	const struct insn *d = cli->data;

	sort_rows(d);
	print_spaces(cli);
	traced_print_gaps(cli, &d->t, &d->total.counts);
	if (d->hash)
		printf("\nhash: %016llx\n", (unsigned long long)d->total.hash);
}

/* ---- JSON ---- */

static void json_counts(struct cli *cli, json_t *o, const struct vmpt_flow_counts *c)
{
	cli_json_number(cli, o, "instructions", c->instructions);
	cli_json_number(cli, o, "branches", c->branches);
	cli_json_number(cli, o, "calls", c->calls);
	traced_json_gaps(cli, o, c);
}

static void json_hash(struct cli *cli, json_t *o, u64 hash)
{
	char buf[20];

	if (!((const struct insn *)cli->data)->hash)
		return;
	snprintf(buf, sizeof(buf), "%016llx", (unsigned long long)hash);
	cli_json_string(cli, o, "hash", buf);
}

static json_t *json_spaces(struct cli *cli)
{
	const struct insn *d = cli->data;
	json_t *spaces = json_array();
	size_t i;

	for (i = 0; i < d->rows; i++) {
		json_t *o = json_object();

		traced_json_space(cli, &d->t, o, &d->row[i].space);
		json_counts(cli, o, &d->row[i].counts);
		cli_json_add(cli, spaces, o);
	}
	return spaces;
}

void insn_json(struct cli *cli)
{
	json_t *doc = cli_json_document(cli), *streams = json_array(), *total = json_object();
	const struct insn *d = cli->data;
	size_t i;

	sort_rows(d);
	cli_json_set(cli, doc, "images", traced_json_images(cli, &d->t));
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
