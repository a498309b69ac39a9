// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt coverage: the summary, and lists of basic blocks, edges and functions. */
#include <stdlib.h>
#include <string.h>

#include "cli/coverage/coverage.h"

#define NAME_WIDTH 40

const char *coverage_vm(const struct coverage_space *s, char buf[CLI_WHO])
{
	if (!s->vm)
		return cli_owner_name(&s->id.owner, buf);
	cli_safe_name(s->vm, buf);
	return buf;
}

const char *coverage_process(struct coverage *d, u32 space, char buf[CLI_WHO + 16])
{
	const struct vmpt_guest_task *t = coverage_names(d, space)->task;
	char comm[CLI_WHO];

	*buf = '\0';
	if (!t)
		return buf;
	cli_safe_name(t->comm, comm);
	snprintf(buf, CLI_WHO + 16, "%u %s", t->tgid, comm);
	return buf;
}

/* ---- names ---- */

/* "kernel function", "libc.so.6:read+0x1a", "app+0x4711", "?" */
static const char *name_of(struct cli *cli, u32 space, u64 ip, char text[2 * CLI_WHO])
{
	struct coverage *d = cli->data;
	char module[CLI_WHO] = "";
	struct names_found f;
	const char *base;

	snprintf(text, 2 * CLI_WHO, "?");
	if (!code_names_find(cli, &d->t.names, coverage_names(d, space), ip, &f))
		return text;
	base = f.module ? strrchr(f.module, '/') : NULL;
	if (f.module)
		cli_safe_name(base ? base + 1 : f.module, module);
	snprintf(text, 2 * CLI_WHO, "%s%s%s+0x%llx", module, f.module && f.name ? ":" : "",
		 f.name ? f.name : "", (unsigned long long)f.offset);
	return text;
}

static void json_space(struct cli *cli, json_t *o, u32 space)
{
	struct coverage *d = cli->data;
	const struct coverage_space *s = &d->space[space];
	const struct vmpt_guest_task *t = coverage_names(d, space)->task;

	cli_json_string(cli, o, "owner", cli_owner_kind(&s->id.owner));
	if (s->id.owner.kind == VMPT_OWNER_VM && s->vm)
		cli_json_string(cli, o, "vm", s->vm);
	else if (s->id.owner.kind == VMPT_OWNER_VM)
		cli_json_hex(cli, o, "vmcs", s->id.owner.vmcs);
	if (s->id.no_cr3)
		cli_json_set(cli, o, "cr3", json_null());
	else
		cli_json_hex(cli, o, "cr3", s->id.cr3);
	cli_json_number(cli, o, "bits", s->id.exec);
	if (t) {
		cli_json_number(cli, o, "tgid", t->tgid);
		cli_json_string(cli, o, "comm", t->comm);
	}
}

/* The file and the function of an address. */
static void json_place(struct cli *cli, json_t *o, u32 space, u64 ip)
{
	struct coverage *d = cli->data;
	const struct coverage_module *m = coverage_module_at(d, space, ip);
	struct names_found f;

	if (m && m->space == COVERAGE_NONE) {
		cli_json_string(cli, o, "module", m->name);
		cli_json_hex(cli, o, "module_offset", ip - m->base);
	}
	if (!code_names_find(cli, &d->t.names, coverage_names(d, space), ip, &f) || !f.name)
		return;
	cli_json_string(cli, o, "function", f.name);
	cli_json_hex(cli, o, "function_offset", f.offset);
}

/* ---- the summary ---- */

static int by_space(const void *x, const void *y, void *spaces)
{
	const struct coverage_space *s = spaces;

	return traced_compare(&s[*(const u32 *)x].id, &s[*(const u32 *)y].id);
}

/* Spaces in the order of tables; NULL: no memory, or there are none. */
static u32 *sorted(struct coverage *d)
{
	u32 *n = malloc((d->spaces + 1) * sizeof(*n));
	size_t i;

	for (i = 0; n && i < d->spaces; i++)
		n[i] = (u32)i;
	if (n)
		qsort_r(n, d->spaces, sizeof(*n), by_space, d->space);
	return n;
}

static struct coverage_space sum(const struct coverage *d)
{
	struct coverage_space all = { 0 };
	size_t i;

	for (i = 0; i < d->spaces; i++) {
		all.blocks += d->space[i].blocks;
		all.instructions += d->space[i].instructions;
		all.bytes += d->space[i].bytes;
		all.executed += d->space[i].executed;
	}
	return all;
}

static void sum_cells(struct cli_table *t, const struct coverage_space *s)
{
	cli_cell_number(t, true, s->blocks);
	cli_cell_number(t, true, s->instructions);
	cli_cell_number(t, true, s->bytes);
	cli_cell_number(t, true, s->executed);
}

static void print_summary(struct cli *cli)
{
	static const struct cli_column column[] = {
		{ "VM", CLI_NAMES }, { "PROCESS", CLI_NAMES }, { "CR3", true },
		{ "BITS", true },    { "BLOCKS", true },       { "INSTRUCTIONS", true },
		{ "BYTES", true },   { "EXECUTED", true },
	};
	struct coverage *d = cli->data;
	struct coverage_space all = sum(d);
	struct cli_table *t = cli_table_new(cli, column, VMPT_ARRAY_SIZE(column));
	u32 *order = sorted(d);
	size_t i;

	for (i = 0; order && i < d->spaces; i++) {
		const struct coverage_space *s = &d->space[order[i]];
		char buf[CLI_WHO + 16];

		cli_cell(t, cli_owner_paint(&s->id.owner), "%s", coverage_vm(s, buf));
		coverage_process(d, order[i], buf);
		cli_cell(t, *buf ? CLI_PLAIN : CLI_DIM, "%s", *buf ? buf : "–");
		if (s->id.no_cr3)
			cli_cell(t, CLI_DIM, "–");
		else
			cli_cell(t, CLI_PLAIN, "%llx", (unsigned long long)s->id.cr3);
		cli_cell(t, CLI_PLAIN, "%u", s->id.exec);
		sum_cells(t, s);
	}
	cli_cell(t, CLI_BOLD, "total");
	cli_cell(t, CLI_PLAIN, "%s", "");
	cli_cell(t, CLI_PLAIN, "%s", "");
	cli_cell(t, CLI_PLAIN, "%s", "");
	sum_cells(t, &all);
	cli_table_print(t, "");
	free(order);
	traced_print_gaps(cli, &d->t, &d->total);
}

static void json_sums(struct cli *cli, json_t *o, const struct coverage_space *s)
{
	cli_json_number(cli, o, "blocks", s->blocks);
	cli_json_number(cli, o, "instructions", s->instructions);
	cli_json_number(cli, o, "bytes", s->bytes);
	cli_json_number(cli, o, "executed", s->executed);
}

static void json_summary(struct cli *cli)
{
	json_t *doc = cli_json_document(cli), *list = json_array(), *total = json_object();
	struct coverage *d = cli->data;
	struct coverage_space all = sum(d);
	u32 *order = sorted(d);
	size_t i;

	for (i = 0; order && i < d->spaces; i++) {
		json_t *o = json_object();

		json_space(cli, o, order[i]);
		json_sums(cli, o, &d->space[order[i]]);
		cli_json_add(cli, list, o);
	}
	free(order);
	cli_json_set(cli, doc, "images", traced_json_images(cli, &d->t));
	cli_json_set(cli, doc, "spaces", list);
	json_sums(cli, total, &all);
	traced_json_gaps(cli, total, &d->total);
	cli_json_set(cli, doc, "total", total);
	cli_json_end(cli, doc);
	cli_json_print(cli, doc, stdout, false);
}

/* ---- lists ---- */

/* A row: a line of JSON, or of CSV. */
static void put(struct cli *cli, json_t *o)
{
	struct coverage *d = cli->data;

	if (!cli->csv) {
		cli_json_print(cli, o, stdout, true);
		return;
	}
	cli_csv_rows(&cli->cmd->csv[d->list], o, false, stdout);
	json_decref(o);
}

static void print_vm(struct coverage *d, u32 space)
{
	const struct coverage_space *s = &d->space[space];
	char who[CLI_WHO], process[CLI_WHO + 16], cr3[32] = "–";

	if (!s->id.no_cr3)
		snprintf(cr3, sizeof(cr3), "%llx", (unsigned long long)s->id.cr3);
	printf("%-12s  %12s  ", coverage_vm(s, who), cr3);
	if (code_names_any(&d->t.names))
		printf("%-20s  ", coverage_process(d, space, process));
}

static void title(const struct coverage *d, const char *rest)
{
	printf("%-12s  %12s  ", "VM", "CR3");
	if (code_names_any(&d->t.names))
		printf("%-20s  ", "PROCESS");
	printf("%s\n", rest);
}

static void list_blocks(struct cli *cli)
{
	struct coverage *d = cli->data;
	size_t i;

	if (!cli->json)
		title(d, "              IP   SIZE  INSTRUCTIONS          COUNT  FUNCTION");
	for (i = 0; i < d->block_count && !cli_output_failed(cli); i++) {
		const struct coverage_block *b = &d->block[i];
		char name[2 * CLI_WHO];
		json_t *o;

		if (!cli->json) {
			print_vm(d, b->space);
			printf("%16llx  %5u  %12u  %13llu  %s\n", (unsigned long long)b->ip,
			       b->size, b->instructions, (unsigned long long)b->count,
			       name_of(cli, b->space, b->ip, name));
			continue;
		}
		o = json_object();
		json_space(cli, o, b->space);
		cli_json_hex(cli, o, "ip", b->ip);
		cli_json_number(cli, o, "size", b->size);
		cli_json_number(cli, o, "instructions", b->instructions);
		cli_json_number(cli, o, "count", b->count);
		cli_json_number(cli, o, "executed", b->executed);
		json_place(cli, o, b->space, b->ip);
		put(cli, o);
	}
}

static const char *kind_of(u8 end)
{
	static const char *const word[] = {
		[VMPT_FLOW_COND] = "cond",	   [VMPT_FLOW_JMP] = "jmp",
		[VMPT_FLOW_CALL] = "call",	   [VMPT_FLOW_JMP_IND] = "jmp_ind",
		[VMPT_FLOW_CALL_IND] = "call_ind", [VMPT_FLOW_RET] = "ret",
		[VMPT_FLOW_FAR] = "far",
	};

	return end < VMPT_ARRAY_SIZE(word) && word[end] ? word[end] : "?";
}

static void list_edges(struct cli *cli)
{
	struct coverage *d = cli->data;
	size_t i;

	if (!cli->json)
		title(d, "            FROM                TO  KIND              COUNT  FUNCTION");
	for (i = 0; i < d->edge_count && !cli_output_failed(cli); i++) {
		const struct coverage_edge *e = &d->edge[i];
		char name[2 * CLI_WHO];
		json_t *o;

		if (!cli->json) {
			print_vm(d, e->space);
			printf("%16llx  %16llx  %-8s  %13llu  %s\n", (unsigned long long)e->from,
			       (unsigned long long)e->to, kind_of(e->end),
			       (unsigned long long)e->count, name_of(cli, e->space, e->from, name));
			continue;
		}
		o = json_object();
		json_space(cli, o, e->space);
		cli_json_hex(cli, o, "from", e->from);
		cli_json_hex(cli, o, "to", e->to);
		cli_json_string(cli, o, "kind", kind_of(e->end));
		cli_json_number(cli, o, "count", e->count);
		json_place(cli, o, e->space, e->from);
		put(cli, o);
	}
}

/* Blocks of a function are in a row. */
struct function {
	u32 space;
	u64 ip; /* of the first block */
	struct coverage_space sums;
	char name[2 * CLI_WHO]; /* without the offset */
	json_t *place;
};

static void put_function(struct cli *cli, struct function *f)
{
	struct coverage *d = cli->data;
	json_t *o;

	if (!f->sums.blocks)
		return;
	if (!cli->json) {
		print_vm(d, f->space);
		printf("%6llu  %12llu  %6llu  %15llu  %s\n", (unsigned long long)f->sums.blocks,
		       (unsigned long long)f->sums.instructions, (unsigned long long)f->sums.bytes,
		       (unsigned long long)f->sums.executed, f->name);
		return;
	}
	o = json_object();
	json_space(cli, o, f->space);
	json_place(cli, o, f->space, f->ip);
	json_object_del(o, "module_offset");
	json_object_del(o, "function_offset");
	json_sums(cli, o, &f->sums);
	put(cli, o);
}

static void list_functions(struct cli *cli)
{
	struct coverage *d = cli->data;
	struct function *f = calloc(1, sizeof(*f));
	char name[2 * CLI_WHO];
	size_t i;

	if (!f) {
		cli_no_memory(cli);
		return;
	}
	if (!cli->json)
		title(d, "BLOCKS  INSTRUCTIONS   BYTES         EXECUTED  FUNCTION");
	for (i = 0; i < d->block_count && !cli_output_failed(cli); i++) {
		const struct coverage_block *b = &d->block[i];
		char *plus;

		name_of(cli, b->space, b->ip, name);
		plus = strrchr(name, '+');
		if (plus)
			*plus = '\0';
		if (b->space != f->space || strcmp(name, f->name) != 0) {
			put_function(cli, f);
			memset(&f->sums, 0, sizeof(f->sums));
			f->space = b->space;
			f->ip = b->ip;
			memcpy(f->name, name, sizeof(name));
		}
		f->sums.blocks++;
		f->sums.instructions += b->instructions;
		f->sums.bytes += b->size;
		f->sums.executed += b->executed;
	}
	put_function(cli, f);
	free(f);
}

void coverage_show(struct cli *cli)
{
	struct coverage *d = cli->data;

	if (d->list == COVERAGE_SUMMARY) {
		if (cli->json)
			json_summary(cli);
		else
			print_summary(cli);
		return;
	}
	if (cli->csv)
		cli_csv_header(&cli->cmd->csv[d->list], false, stdout);
	else if (cli->json)
		cli_json_print(cli, cli_json_document(cli), stdout, true);
	if (d->list == COVERAGE_BLOCKS)
		list_blocks(cli);
	else if (d->list == COVERAGE_EDGES)
		list_edges(cli);
	else
		list_functions(cli);
	if (cli->json && !cli->csv) {
		json_t *end = json_object();

		cli_json_end(cli, end);
		cli_json_print(cli, end, stdout, true);
	}
}
