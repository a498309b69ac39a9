// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt guest, for people. */
#include "cli/guest/guest.h"

#define TEXT 1024

static const char *safe(const char *text, char buf[TEXT])
{
	cli_safe_text(text ? text : "", buf, TEXT, TEXT);
	return buf;
}

static void print_kernel(const struct guest_one *one)
{
	const struct vmpt_guest_kernel *k = &one->kernel;
	char buf[TEXT], id[2 * 64 + 1];

	printf("kernel    %s\n", safe(k->banner ? k->banner : k->release, buf));
	guest_hex(k->build_id, k->build_id_size, id);
	if (*id)
		printf("build id  %s\n", id);
	if (k->end)
		printf("memory    %llx-%llx\n", (unsigned long long)k->start,
		       (unsigned long long)k->end);
	printf("KASLR     %llx\nCR3       %llx\n", (unsigned long long)k->offset,
	       (unsigned long long)k->cr3);
	printf("has       ");
	printf("%s symbols, ", cli_number(k->symbols, buf));
	printf("%s modules, ", cli_number(k->modules, buf));
	printf("%s threads\n", cli_number(k->tasks, buf));
}

/* ---- processes ---- */

/* How many threads follow @first, with it. */
static u32 threads_of(const struct vmpt_guest *g, u32 first)
{
	const struct vmpt_guest_task *t = vmpt_guest_task(g, first), *next;
	u32 n = 1;

	while ((next = vmpt_guest_task(g, first + n)) != NULL && next->tgid == t->tgid)
		n++;
	return n;
}

static void task_cells(struct cli_table *table, const struct vmpt_guest_task *t, bool threads,
		       u32 n)
{
	char buf[TEXT];

	if (threads)
		cli_cell(table, CLI_PLAIN, "%u", t->pid);
	cli_cell(table, CLI_PLAIN, "%u", t->tgid);
	cli_cell(table, CLI_PLAIN, "%u", t->parent);
	if (t->cr3)
		cli_cell(table, CLI_PLAIN, "%llx", (unsigned long long)t->cr3);
	else
		cli_cell(table, CLI_DIM, "–");
	cli_cell(table, CLI_PLAIN, "%llu.%06llu", (unsigned long long)(t->start / 1000000000),
		 (unsigned long long)(t->start / 1000 % 1000000));
	if (!threads)
		cli_cell(table, CLI_PLAIN, "%u", n);
	cli_cell(table, t->kernel ? CLI_DIM : CLI_PLAIN, "%s", safe(t->comm, buf));
	cli_cell(table, CLI_PLAIN, "%s", safe(t->program, buf));
}

static void print_tasks(struct cli *cli, const struct guest_one *one)
{
	static const struct cli_column by_process[] = {
		{ "PID", true },     { "PARENT", true }, { "CR3", true },      { "START", true },
		{ "THREADS", true }, { "COMM", false },	 { "PROGRAM", false },
	};
	static const struct cli_column by_thread[] = {
		{ "TID", true },   { "PID", true },   { "PARENT", true },   { "CR3", true },
		{ "START", true }, { "COMM", false }, { "PROGRAM", false },
	};
	const struct guest_options *o = &((const struct guest *)cli->data)->o;
	struct cli_table *table = cli_table_new(cli, o->threads ? by_thread : by_process,
						VMPT_ARRAY_SIZE(by_process));
	const struct vmpt_guest_task *t;
	u32 i, n;

	for (i = 0; (t = vmpt_guest_task(one->guest, i)) != NULL; i += n) {
		n = o->threads ? 1 : threads_of(one->guest, i);
		if (guest_wanted(o, t))
			task_cells(table, t, o->threads, n);
	}
	printf("\n");
	cli_table_print(table, "");
}

/* ---- maps ---- */

static void print_map(const struct vmpt_guest_map *m)
{
	char buf[TEXT], id[2 * 64 + 1];

	guest_hex(m->build_id, m->build_id_size, id);
	printf("%08llx-%08llx %c%c%c%c %08llx %s%s%s\n", (unsigned long long)m->start,
	       (unsigned long long)m->end, m->read ? 'r' : '-', m->write ? 'w' : '-',
	       m->exec ? 'x' : '-', m->shared ? 's' : 'p', (unsigned long long)m->offset,
	       safe(m->file, buf), *id ? " " : "", id);
}

static int print_maps(struct cli *cli, const struct guest_one *one)
{
	const struct guest_options *o = &((const struct guest *)cli->data)->o;
	const struct vmpt_guest_task *t;
	char buf[TEXT];
	u32 i;

	for (i = 0; (t = vmpt_guest_task(one->guest, i)) != NULL; i += threads_of(one->guest, i)) {
		const struct vmpt_guest_map *map;
		size_t n, k;
		bool cut;

		if (!t->mm || !guest_wanted(o, t))
			continue;
		if (vmpt_guest_maps(one->guest, t, &map, &n, &cut))
			return cli_no_memory(cli);
		printf("\nprocess %u %s\n", t->tgid, safe(t->comm, buf));
		for (k = 0; k < n; k++)
			print_map(&map[k]);
		if (cut)
			cli_warn(cli,
				 "%s: what process %u has mapped leads out of the image: some is "
				 "missing",
				 one->given->path, t->tgid);
	}
	return CLI_OK;
}

/* ---- modules, symbols ---- */

static void print_modules(struct cli *cli, const struct guest_one *one)
{
	static const struct cli_column column[] = {
		{ "MODULE", false },
		{ "TEXT", true },
		{ "SIZE", true },
		{ "BUILD ID", false },
	};
	struct cli_table *table = cli_table_new(cli, column, VMPT_ARRAY_SIZE(column));
	const struct vmpt_guest_module *m;
	char buf[TEXT], id[2 * 64 + 1];
	u32 i;

	for (i = 0; (m = vmpt_guest_module(one->guest, i)) != NULL; i++) {
		cli_cell(table, CLI_PLAIN, "%s", safe(m->name, buf));
		cli_cell(table, CLI_PLAIN, "%llx", (unsigned long long)m->text);
		cli_cell_number(table, m->size != 0, m->size);
		guest_hex(m->build_id, m->build_id_size, id);
		cli_cell(table, CLI_PLAIN, "%s", id);
	}
	printf("\n");
	cli_table_print(table, "");
}

static void print_symbols(struct cli *cli, const struct guest_one *one)
{
	struct vmpt_guest_symbol s;
	char name[TEXT], module[TEXT];
	u32 i;

	for (i = 0; vmpt_guest_symbol(one->guest, i, &s) && !cli_output_failed(cli); i++)
		printf("%016llx %c %s%s%s%s\n", (unsigned long long)s.address,
		       s.type > ' ' && s.type < 0x7f ? s.type : '?', safe(s.name, name),
		       s.module ? "\t[" : "", s.module ? safe(s.module, module) : "",
		       s.module ? "]" : "");
}

int guest_print(struct cli *cli, const struct guest_one *one)
{
	const struct guest_options *o = &((const struct guest *)cli->data)->o;

	if (o->symbols) {
		print_symbols(cli, one);
		return CLI_OK;
	}
	print_kernel(one);
	if (one->kernel.tasks)
		print_tasks(cli, one);
	if (o->modules)
		print_modules(cli, one);
	return o->maps ? print_maps(cli, one) : CLI_OK;
}
