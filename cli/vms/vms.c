// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt vms: who ran, on which CPUs, how often and how much. Slices are added up
 * per owner and stream (count.c), then per owner (here), and shown.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/vms/vms.h"

/* VMs first, by VMCS, then owners without a VMCS; the streams of a VM in order. */
static int compare(const void *a, const void *b)
{
	static const u8 rank[] = {
		[VMPT_OWNER_VM] = 0,   [VMS_OTHERS] = 1,	 [VMPT_OWNER_VM_ANY] = 2,
		[VMPT_OWNER_HOST] = 3, [VMPT_OWNER_UNKNOWN] = 4, [VMS_LOST] = 5,
	};
	const struct vms_row *x = a, *y = b;

	if (x->kind != y->kind)
		return rank[x->kind] < rank[y->kind] ? -1 : 1;
	if (x->vmcs != y->vmcs)
		return x->vmcs < y->vmcs ? -1 : 1;
	return x->stream < y->stream ? -1 : x->stream > y->stream;
}

static void add_row(struct vms_row *to, const struct vms_row *from)
{
	u32 i;

	to->slices += from->slices;
	to->entries += from->entries;
	to->exits += from->exits;
	to->transitions |= from->transitions;
	to->leaves += from->leaves;
	to->returns += from->returns;
	to->bytes += from->bytes;
	to->assumed += from->assumed;
	to->uncertain += from->uncertain;
	to->unproven += from->unproven;
	to->losses += from->losses;
	to->overflows += from->overflows;
	to->failed_entries += from->failed_entries;
	to->concealed |= from->concealed;
	to->enables += from->enables;
	to->disables += from->disables;
	for (i = 0; i <= VMPT_RTIT_ERRATA; i++)
		to->errata[i] += from->errata[i];
	vms_add_tsc(to, from->has_tsc, from->first_tsc, from->last_tsc);
	for (i = 0; i < from->cr3s; i++)
		vms_add_cr3(to, from->cr3[i]);
	to->more_cr3s |= from->more_cr3s;
}

size_t vms_merge(const struct vms_row *row, size_t n, struct vms_row *all)
{
	size_t i;

	*all = row[0];
	for (i = 1; i < n && row[i].kind == all->kind && row[i].vmcs == all->vmcs; i++)
		add_row(all, &row[i]);
	return i;
}

u64 vms_total(const struct cli *cli)
{
	u64 total = 0;
	size_t i;

	for (i = 0; i < cli->streams; i++)
		total += cli->stream[i]->size;
	return total;
}

const char *vms_name(const struct cli *cli, const struct vms_row *row, char buf[CLI_WHO])
{
	struct vmpt_owner owner = { .kind = row->kind, .vmcs = row->vmcs };

	if (row->kind == VMS_OTHERS)
		return "others";
	return row->kind == VMS_LOST ? "lost" : cli_who(cli, &owner, buf);
}

enum cli_paint vms_paint(const struct vms_row *row)
{
	struct vmpt_owner owner = { .kind = row->kind };

	if (row->kind == VMS_OTHERS)
		return CLI_YELLOW;
	return row->kind == VMS_LOST ? CLI_RED : cli_owner_paint(&owner);
}

static const struct vms_ops *vms_ops(const struct cli *cli)
{
	return ((const struct vms *)cli->data)->ops;
}

static bool is_vm(const struct vms_row *row)
{
	return row->kind == VMPT_OWNER_VM || row->kind == VMPT_OWNER_VM_ANY ||
	       row->kind == VMS_OTHERS;
}

/* ---- text ---- */

const char *vms_cpu_list(const struct cli *cli, const struct vms_row *row, size_t n, char *buf,
			 size_t len)
{
	size_t i, used = 0;
	char one[32];

	buf[0] = '\0';
	for (i = 0; i < n; i++) {
		const struct vmpt_stream *s = cli->stream[row[i].stream];
		size_t last = i;

		while (s->tid < 0 && s->cpu >= 0 && last + 1 < n &&
		       cli->stream[row[last + 1].stream]->cpu == s->cpu + (int)(last + 1 - i))
			last++;
		if (used > 12) {
			snprintf(buf + used, len - used, ",…");
			break;
		}
		used += (size_t)snprintf(buf + used, len - used, "%s%s", i ? "," : "",
					 cli_stream_cpu(s, one));
		if (last > i)
			used += (size_t)snprintf(buf + used, len - used, "%s%d",
						 last == i + 1 ? "," : "-",
						 cli->stream[row[last].stream]->cpu);
		i = last;
	}
	return buf;
}

/* With a second column for names, if there are any. */
static struct cli_table *who_table(struct cli *cli, bool named)
{
	static const struct cli_column column[] = {
		{ "VM", CLI_NAMES }, { "CPUS", false }, { "SLICES", true },
		{ "ENTRIES", true }, { "EXITS", true }, { "LEAVES", true },
		{ "RETURNS", true }, { "BYTES", true }, { "SHARE", true },
	};
	struct cli_column shown[VMPT_ARRAY_SIZE(column) + 1] = { { "VMCS", false } };
	size_t skip = named ? 0 : 1, n = VMPT_ARRAY_SIZE(column) - skip;

	memcpy(shown + 1, column + skip, n * sizeof(*column));
	return cli_table_new(cli, shown, n + 1);
}

static void print_who(struct cli *cli, const struct vms_row *row, size_t rows)
{
	struct cli_vm_names *names = &((struct vms *)cli->data)->names;
	struct cli_table *t = who_table(cli, names->count);
	u64 total = vms_total(cli);
	size_t i, n;

	for (i = 0; i < rows; i += n) {
		struct vms_row all;
		char buf[CLI_WHO];

		n = vms_merge(row + i, rows - i, &all);
		cli_cell(t, vms_paint(&all), "%s", vms_name(cli, &all, buf));
		if (names->count && all.kind == VMPT_OWNER_VM)
			cli_vm_names_cell(names, t, all.vmcs);
		else if (names->count)
			cli_cell(t, CLI_DIM, "–");
		cli_cell(t, CLI_PLAIN, "%s", vms_cpu_list(cli, row + i, n, buf, sizeof(buf)));
		cli_cell_number(t, true, all.slices);
		cli_cell_number(t, is_vm(&all) && all.transitions, all.entries);
		cli_cell_number(t, is_vm(&all) && all.transitions, all.exits);
		cli_cell_number(t, all.kind != VMS_LOST, all.leaves);
		cli_cell_number(t, all.kind != VMS_LOST && all.kind != VMS_OTHERS, all.returns);
		cli_cell_number(t, true, all.bytes);
		cli_cell(t, CLI_PLAIN, "%.1f %%",
			 total ? 100.0 * (double)all.bytes / (double)total : 0.0);
	}
	cli_table_print(t, "");
}

/* As many CR3s as fit a line, and the number of the others. */
static void cell_cr3s(struct cli_table *t, const struct vms_row *row)
{
	char buf[128] = "";
	size_t used = 0;
	u32 i;

	for (i = 0; i < row->cr3s && i < VMS_SHOWN_CR3S; i++)
		used += (size_t)snprintf(buf + used, sizeof(buf) - used, "%s%llx", i ? " " : "",
					 (unsigned long long)row->cr3[i]);
	if (row->cr3s > VMS_SHOWN_CR3S || row->more_cr3s)
		snprintf(buf + used, sizeof(buf) - used, " +%u%s", row->cr3s - i,
			 row->more_cr3s ? " or more" : "");
	if (row->cr3s)
		cli_cell(t, CLI_PLAIN, "%s", buf);
	else
		cli_cell(t, CLI_DIM, "–");
}

static void cell_tsc(struct cli_table *t, const struct vms_row *row, u64 tsc)
{
	if (row->has_tsc)
		cli_cell(t, CLI_PLAIN, "%llx", (unsigned long long)tsc);
	else
		cli_cell(t, CLI_DIM, "–");
}

/*
 * Whether the row's TSC is the one that perf's times are derived from: a guest's has an
 * offset that the trace does not contain. The rows are sorted, VMs first.
 */
static bool has_time(const struct cli *cli, const struct vms_row *first, const struct vms_row *row)
{
	if (!vms_ops(cli)->perf_time || !row->has_tsc ||
	    !vmpt_trace_info(cli->trace)->has_time_conv)
		return false;
	return row->kind == VMPT_OWNER_HOST || (row->kind == VMPT_OWNER_UNKNOWN && !is_vm(first));
}

/* The second table: losses, first and last TSC, CR3s. */
static void print_when(struct cli *cli, const struct vms_row *row, size_t rows)
{
	const struct cli_column column[] = {
		{ vms_ops(cli)->title, false }, { "LOSSES", true }, { "FIRST TSC", true },
		{ "LAST TSC", true },		{ "CR3S", false },
	};
	struct cli_table *t;
	size_t i;

	/* Losses are sorted last: if the first row is lost, so are all. */
	if (!rows || row[0].kind == VMS_LOST)
		return;
	printf("\n");
	t = cli_table_new(cli, column, VMPT_ARRAY_SIZE(column));

	for (i = 0; i < rows;) {
		struct vms_row all;
		char buf[CLI_WHO];

		i += vms_merge(row + i, rows - i, &all);
		if (all.kind == VMS_LOST)
			continue;
		cli_cell(t, vms_paint(&all), "%s", vms_name(cli, &all, buf));
		cli_cell_number(t, true, all.losses);
		cell_tsc(t, &all, all.first_tsc);
		cell_tsc(t, &all, all.last_tsc);
		cell_cr3s(t, &all);
	}
	cli_table_print(t, "");
}

static const char *perf_time(const struct vmpt_trace_info *info, u64 tsc, char buf[32])
{
	u64 ns = vmpt_tsc_to_perf_time(info, tsc);

	snprintf(buf, 32, "%llu.%09llu", (unsigned long long)(ns / 1000000000),
		 (unsigned long long)(ns % 1000000000));
	return buf;
}

/* Lines below the tables. */
static void print_notes(const struct cli *cli, const struct vms_row *row, size_t rows)
{
	const struct vmpt_trace_info *info = vmpt_trace_info(cli->trace);
	struct vms_row all;
	char room[CLI_WHO], buf[32], to[32];
	const char *name;
	size_t i;

	for (i = 0; i < rows;) {
		i += vms_merge(row + i, rows - i, &all);
		name = vms_name(cli, &all, room);
		if (has_time(cli, row, &all))
			cli_print("%s: perf time %s to %s\n", name,
				  perf_time(info, all.first_tsc, buf),
				  perf_time(info, all.last_tsc, to));
		if (all.concealed)
			cli_print("%s: a PSB+ had no VMCS: part of it may be a concealed guest\n",
				  name);
		if (all.assumed)
			cli_print("%s: %s bytes assumed\n", name, cli_number(all.assumed, buf));
		if (all.uncertain)
			cli_print("%s: %s bytes uncertain\n", name, cli_number(all.uncertain, buf));
		if (all.unproven)
			cli_print("%s: %s bytes have no proven owner\n", name,
				  cli_number(all.unproven, buf));
		if (all.overflows)
			cli_print("%s: %s overflow%s of the processor\n", name,
				  cli_number(all.overflows, buf), all.overflows == 1 ? "" : "s");
		if (all.failed_entries)
			cli_print("%s: %s failed VM entr%s\n", name,
				  cli_number(all.failed_entries, buf),
				  all.failed_entries == 1 ? "y" : "ies");
	}
}

static void print_text(struct cli *cli, const struct vms_row *row, size_t rows)
{
	vms_ops(cli)->print_who(cli, row, rows);
	print_when(cli, row, rows);
	vms_ops(cli)->print_notes(cli, row, rows);
}

/* ---- JSON ---- */

static void json_row(struct cli *cli, json_t *o, const struct vms_row *row)
{
	bool times = is_vm(row) && row->transitions;
	u64 n;

	cli_json_number(cli, o, "slices", row->slices);
	n = row->entries;
	cli_json_set(cli, o, "entries", times ? json_integer((json_int_t)n) : json_null());
	n = row->exits;
	cli_json_set(cli, o, "exits", times ? json_integer((json_int_t)n) : json_null());
	cli_json_number(cli, o, "leaves", row->leaves);
	n = row->returns;
	cli_json_set(cli, o, "returns",
		     row->kind == VMS_OTHERS ? json_null() : json_integer((json_int_t)n));
	cli_json_number(cli, o, "bytes", row->bytes);
	cli_json_number(cli, o, "assumed_bytes", row->assumed);
	cli_json_number(cli, o, "uncertain_bytes", row->uncertain);
	cli_json_number(cli, o, "unproven_bytes", row->unproven);
	cli_json_number(cli, o, "loss_count", row->losses);
	cli_json_number(cli, o, "overflows", row->overflows);
	cli_json_number(cli, o, "failed_entries", row->failed_entries);
	cli_json_set(cli, o, "concealed", json_boolean(row->concealed));
	if (row->has_tsc) {
		cli_json_hex(cli, o, "first_tsc", row->first_tsc);
		cli_json_hex(cli, o, "last_tsc", row->last_tsc);
	}
}

static void json_vm(struct cli *cli, json_t *o, const struct vms_row *row)
{
	if (row->kind != VMPT_OWNER_VM)
		return;
	cli_json_hex(cli, o, "vmcs", row->vmcs);
	cli_vm_names_json(cli, &((struct vms *)cli->data)->names, o, row->vmcs);
}

static void json_cr3s(struct cli *cli, json_t *o, const struct vms_row *row)
{
	json_t *cr3s = json_array();
	u32 i;

	for (i = 0; i < row->cr3s; i++) {
		char buf[24];

		snprintf(buf, sizeof(buf), "0x%llx", (unsigned long long)row->cr3[i]);
		cli_json_add(cli, cr3s, json_string(buf));
	}
	cli_json_set(cli, o, "cr3s", cr3s);
	cli_json_set(cli, o, "cr3s_complete", json_boolean(!row->more_cr3s));
}

static void json_owner(struct cli *cli, json_t *o, const struct vms_row *row, bool times)
{
	const struct vmpt_trace_info *info = vmpt_trace_info(cli->trace);
	struct vmpt_owner owner = { .kind = row->kind };

	cli_json_string(cli, o, "owner",
			row->kind == VMS_LOST	  ? "lost"
			: row->kind == VMS_OTHERS ? "others"
						  : cli_owner_kind(&owner));
	vms_ops(cli)->json_vm(cli, o, row);
	vms_ops(cli)->json_row(cli, o, row);
	if (times) {
		cli_json_number(cli, o, "first_perf_ns",
				vmpt_tsc_to_perf_time(info, row->first_tsc));
		cli_json_number(cli, o, "last_perf_ns", vmpt_tsc_to_perf_time(info, row->last_tsc));
	}
	json_cr3s(cli, o, row);
}

/* The owner of @n rows; one object per line: there may be many. */
static json_t *json_rows(struct cli *cli, const struct vms_row *row, size_t n, u64 total,
			 bool times)
{
	json_t *o = json_object(), *streams = json_array();
	struct vms_row all;
	size_t k;

	vms_merge(row, n, &all);
	json_owner(cli, o, &all, times);
	for (k = 0; k < n; k++) {
		json_t *one = json_object();

		cli_json_stream(cli, one, cli->stream[row[k].stream]);
		vms_ops(cli)->json_row(cli, one, &row[k]);
		cli_json_add(cli, streams, one);
	}
	cli_json_set(cli, o, "share", json_real(total ? (double)all.bytes / (double)total : 0.0));
	cli_json_set(cli, o, "streams", streams);
	return o;
}

/* All but the end, which has the warnings. */
static void print_json(struct cli *cli, const struct vms_row *row, size_t rows)
{
	json_t *doc = cli_json_document(cli);
	u64 total = vms_total(cli);
	size_t i, n;

	cli_json_number(cli, doc, "bytes", total);
	cli_json_list_open(cli, doc, "owners", stdout);
	for (i = 0; i < rows && !cli->out_of_memory && !cli_output_failed(cli); i += n) {
		struct vms_row all;

		n = vms_merge(row + i, rows - i, &all);
		cli_json_list_add(cli, json_rows(cli, row + i, n, total, has_time(cli, row, &all)),
				  !i, stdout);
	}
}

static void warn_others(const struct cli *cli, const struct vms_row *row, size_t rows)
{
	char buf[32], slices[32];
	struct vms_row all;
	size_t i;

	for (i = 0; i < rows && row[i].kind != VMS_OTHERS; i++)
		;
	if (i == rows)
		return;
	vms_merge(row + i, rows - i, &all);
	cli_warn(cli, "%s: too many VMCSs: %s slices, %s bytes are in one row, \"others\"",
		 cli->file[0], cli_number(all.slices, slices), cli_number(all.bytes, buf));
	if (!cli->quiet)
		fprintf(stderr,
			"  the first %s VMCSs, each counted once per CPU, have their own;"
			" --cpu shows fewer\n",
			cli_number(VMS_ROWS_MAX, buf));
}

/*
 * Names need extra walks: only where a record is given or there is a VM to name. 0, or an
 * exit code.
 */
static int open_names(struct cli *cli, const struct vms_rows *rows)
{
	struct vms *s = cli->data;
	int code;

	if (!cli_vm_names_given(cli) && (!rows->vmcss || !cli_vm_names_any(cli)))
		return CLI_OK;
	code = s->clocks.clocks ? CLI_OK : cli_clocks_open(cli, &s->clocks);
	return code ? code : cli_vm_names_open(cli, &s->clocks, &s->names);
}

static void print_all(struct cli *cli, const struct vms_row *row, size_t rows)
{
	if (cli->json)
		print_json(cli, row, rows);
	else
		print_text(cli, row, rows);
	warn_others(cli, row, rows);
	cli_vm_names_tell(cli, &((const struct vms *)cli->data)->names);
	cli_filter_warn(cli);
	if (cli->json)
		cli_json_list_close(cli, stdout);
}

static int check(const struct cli *cli)
{
	(void)cli;
	return CLI_OK;
}

static const struct vms_ops pt_ops = {
	.title = "VMCS",
	.perf_time = true,
	.check = check,
	.print_who = print_who,
	.print_notes = print_notes,
	.json_vm = json_vm,
	.json_row = json_row,
};

static int run(struct cli *cli)
{
	struct vms *s = cli->data;
	struct vms_rows rows = { 0 };
	int ret = 0, code;
	size_t i;

	s->ops = cli_is_rtit(cli) ? &vms_rtit_ops : &pt_ops;
	code = s->ops->check(cli);
	if (!code)
		code = cli_filter_check(cli, 0, NULL);
	if (!code)
		code = cli_filter_open_clocks(cli, &s->clocks);
	if (code) {
		cli_clocks_close(&s->clocks);
		return code;
	}
	cli_progress_start(cli, 1);
	for (i = 0; i < cli->streams && !ret; i++) {
		cli_progress_stream(cli, i);
		ret = vms_count(cli, i, &rows);
	}
	cli_progress_end(cli);
	if (ret) {
		cli_error(cli, "%s: %s", cli->file[0], vmpt_strerror(ret));
		code = CLI_FAILED;
	} else {
		code = open_names(cli, &rows);
	}
	if (!code && rows.count)
		qsort(rows.row, rows.count, sizeof(*rows.row), compare);
	if (!code)
		print_all(cli, rows.row, rows.count);
	free(rows.row);
	vmpt_hash_free(&rows.by_owner);
	cli_vm_names_close(&s->names);
	cli_clocks_close(&s->clocks);
	return code;
}

static const char *const csv_owners[] = {
	"owner",
	"vmcs",
	"vm",
	"vcpu",
	"slices",
	"entries",
	"exits",
	"leaves",
	"returns",
	"enables",
	"disables",
	"bytes",
	"assumed_bytes",
	"uncertain_bytes",
	"unproven_bytes",
	"loss_count",
	"overflows",
	"failed_entries",
	"concealed",
	"first_tsc",
	"last_tsc",
	"first_perf_ns",
	"last_perf_ns",
	"cr3s",
	"cr3s_complete",
	"share",
	NULL,
};

static const struct cli_csv csv[] = {
	{ "owners", NULL, csv_owners },
	{ 0 },
};

const struct cli_command cli_vms = {
	.name = "vms",
	.title = "show who ran: a table of VMs, by VMCS",
	.about = "Show the owners of the trace: each VM by its VMCS, the host, and bytes whose\n"
		 "owner the trace does not name. Entries and exits are counted where the trace\n"
		 "shows them; a dash means unknown.\n"
		 "Names of VMs come from the recording, --side-record, or the context switches\n"
		 "and KVM events of a perf.data.\n"
		 "RTIT does not name owners: --side-record does. FUP.PGEs and FUP.PGDs, which\n"
		 "come with VM entries and exits among others, are counted for each.",
	.examples = "  vmpt vms perf.data              all CPUs of a host\n"
		    "  vmpt vms cpu0.pt cpu1.pt        raw traces of CPU 0 and CPU 1\n"
		    "  vmpt vms --cpu 2,3 perf.data    two CPUs only\n"
		    "  vmpt vms --side-record vms.jsonl cpu0.rtit cpu1.rtit\n"
		    "  vmpt vms trace                  a recording's folder\n"
		    "  vmpt vms --json trace.pt@5 | jq '.owners[] | {vmcs, share}'\n",
	.group = { &cli_filter_group, &cli_clock_group, &cli_input_group, &cli_side_group,
		   &cli_output_group },
	.csv = csv,
	.data_size = sizeof(struct vms),
	.run = run,
};
