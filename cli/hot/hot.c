// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt hot: which functions ran most, by themselves and with what they called. */
#include <stdlib.h>
#include <string.h>

#include "cli/hot/hot.h"

/* Files that are written. */
enum output { FOLDED, SPEEDSCOPE, PPROF, OUTPUTS };

/* A trace, read to its end. */
struct hot_trace {
	struct calls_source source;
	struct hot_tree tree;
	struct vmpt_flow_counts counts;
};

struct hot {
	struct hot_trace trace; /* the first: with options */
	struct hot_show show;
	bool top_given, per_given;
	const char *file[OUTPUTS]; /* NULL: not wanted */
	struct cli_file out[OUTPUTS];
	const char *diff, *diff_vm; /* likewise */
	char *vm[2];		    /* of --diff-vm */
};

static const struct cli_option options[] = {
	TRACED_OPTIONS(struct hot, trace.source.t.o),
	{ "by", 0, CLI_WORD, "WHAT", "what is counted; time where the trace has times",
	  "instructions", "instructions, time", CLI_AT(struct hot, show.by) },
	{ "per", 0, CLI_WORD, "WHAT",
	  "a row for each function of a process, of a VM, or of all the trace; default: process, "
	  "with --diff and --diff-vm: vm",
	  NULL, "process, vm, trace", CLI_AT(struct hot, show.per),
	  CLI_GIVEN(struct hot, per_given) },
	{ "sort", 0, CLI_WORD, "COLUMN", "largest first; of a comparison: what is compared", "self",
	  "self, total, calls, name", CLI_AT(struct hot, show.sort) },
	{ "top", 0, CLI_NUMBER, "N", "the first N rows; 0: all; default: 30, in JSON and CSV all",
	  NULL, CLI_AT(struct hot, show.top), CLI_GIVEN(struct hot, top_given) },
	{ "folded", 0, CLI_OUTPUT, "FILE",
	  "write folded stacks, as FlameGraph reads them, to the standard output or to FILE",
	  CLI_AT(struct hot, file[FOLDED]), .without = "-" },
	{ "speedscope", 0, CLI_OUTPUT, "FILE", "write all stacks to FILE, for speedscope",
	  CLI_AT(struct hot, file[SPEEDSCOPE]) },
	{ "pprof", 0, CLI_OUTPUT, "FILE", "write all stacks to FILE, for pprof",
	  CLI_AT(struct hot, file[PPROF]) },
	{ "diff", 0, CLI_STRING, "TRACE",
	  "compare: another recording or trace, which was before; options are for both",
	  CLI_AT(struct hot, diff) },
	{ "diff-vm", 0, CLI_STRING, "A:B", "compare VM B with VM A, of this trace",
	  CLI_AT(struct hot, diff_vm) },
	{ 0 },
};

static const struct cli_group group = { .option = options };

/* ---- reading ---- */

static int load(struct cli *cli, struct hot_trace *t)
{
	int code = calls_open(cli, &t->source, NULL), ret;

	if (!code)
		code = calls_run(&t->source);
	if (code)
		return code;
	ret = hot_tree_make(&t->source, &t->tree);
	if (ret)
		return calls_failed(&t->source, ret);
	return calls_end(&t->source, &t->counts);
}

static void unload(struct hot_trace *t)
{
	hot_tree_free(&t->tree);
	calls_close(&t->source);
}

/* What the missing names cost. */
static void warn_unnamed(struct cli *cli, const struct hot_tree *t, const struct hot_rows *rows)
{
	u64 unnamed = 0, all = rows->sum.self[HOT_INSTRUCTIONS];
	size_t i;

	for (i = 0; i < rows->count; i++)
		if (rows->row[i].function && !t->function[rows->row[i].function].named)
			unnamed += rows->row[i].self[HOT_INSTRUCTIONS];
	/* calls_end() has said it where there are none at all. */
	if (unnamed < all && unnamed > all / 100)
		cli_warn(cli,
			 "%.1f %% of the instructions are of functions without a name: give "
			 "their programs' files, or a folder of them, by --symbols",
			 100.0 * (double)unnamed / (double)all);
}

/* ---- output ---- */

static int create(struct cli *cli, struct hot *d)
{
	static const char *const mark[] = {
		[SPEEDSCOPE] = HOT_SPEEDSCOPE_MARK, [PPROF] = HOT_PPROF_MARK
	};
	unsigned int i;
	int code = CLI_OK;

	for (i = 0; i < OUTPUTS && !code; i++) {
		if (!d->file[i])
			continue;
		code = i == FOLDED ? cli_file_create_own(cli, d->file[i], hot_is_folded, &d->out[i])
				   : cli_file_create(cli, d->file[i], mark[i], &d->out[i]);
		if (code)
			d->file[i] = NULL;
	}
	return code;
}

static int write_all(struct cli *cli, struct hot *d)
{
	const struct hot_tree *t = &d->trace.tree;
	const unsigned int by = d->show.by;
	int ret = 0, code = CLI_OK;
	unsigned int i;

	if (d->file[FOLDED])
		ret = hot_folded(t, by, d->out[FOLDED].f);
	if (d->file[SPEEDSCOPE])
		hot_speedscope(cli, t, by, d->out[SPEEDSCOPE].f);
	if (d->file[PPROF] && !ret)
		ret = hot_pprof(t, by, d->out[PPROF].f);
	if (ret || cli->out_of_memory)
		return cli_no_memory(cli);
	for (i = 0; i < OUTPUTS && !code; i++)
		if (d->file[i])
			code = cli_file_commit(cli, &d->out[i]);
	return code;
}

static json_t *stacks_object(struct cli *cli, const struct hot_trace *t)
{
	struct vmpt_calls_counts c;
	json_t *o = json_object();

	vmpt_calls_total(t->source.calls, &c);
	cli_json_number(cli, o, "switches", c.switches);
	cli_json_number(cli, o, "resumed", c.resumed);
	cli_json_number(cli, o, "ambiguous", c.ambiguous);
	cli_json_number(cli, o, "unmatched", c.unmatched);
	cli_json_number(cli, o, "folded", c.folded);
	return o;
}

/* The document, or the rows of it as CSV. */
static int print_json(struct cli *cli, const struct hot *d, const struct hot_rows *rows,
		      const struct hot_diff *diff)
{
	json_t *doc = cli_json_document(cli);

	cli_json_set(cli, doc, "images", traced_json_images(cli, &d->trace.source.t));
	if (diff)
		hot_json_diff(cli, doc, diff, &d->show);
	else
		hot_json(cli, doc, &d->trace.tree, rows, &d->show);
	traced_json_gaps(cli, doc, &d->trace.counts);
	cli_json_set(cli, doc, "stacks", stacks_object(cli, &d->trace));
	cli_json_end(cli, doc);
	return cli_json_print(cli, doc, stdout, false);
}

static int show_rows(struct cli *cli, const struct hot *d)
{
	const struct hot_tree *t = &d->trace.tree;
	struct hot_rows rows;
	int code = CLI_OK;

	if (hot_rows_make(t, d->show.per, &rows)) {
		code = cli_no_memory(cli);
	} else {
		hot_rows_sort(t, &rows, d->show.sort, d->show.by);
		warn_unnamed(cli, t, &rows);
		if (cli->json) {
			code = print_json(cli, d, &rows, NULL);
		} else {
			hot_print(cli, t, &rows, &d->show);
			traced_print_gaps(cli, &d->trace.source.t, &d->trace.counts);
		}
	}
	hot_rows_free(&rows);
	return code;
}

/* ---- comparison ---- */

static int show_diff(struct cli *cli, const struct hot *d, const struct hot_tree *const tree[2])
{
	const bool vms = d->diff_vm != NULL;
	struct hot_rows rows[2] = { 0 };
	const struct hot_rows *const both[] = { &rows[0], &rows[1] };
	struct hot_diff diff = { 0 };
	int ret = 0, code = CLI_OK, i;

	for (i = 0; i < 2 && !ret; i++) {
		ret = hot_rows_make(tree[i], d->show.per, &rows[i]);
		if (!ret && vms)
			hot_rows_keep_vm(tree[i], &rows[i], d->vm[i]);
	}
	if (!ret)
		ret = hot_diff_make(tree, both, d->show.per, vms, &diff);
	if (!ret) {
		hot_diff_sort(&diff, d->show.per, d->show.sort, d->show.by);
		if (cli->json)
			code = print_json(cli, d, NULL, &diff);
		else
			hot_print_diff(cli, &diff, &d->show);
	}
	hot_diff_free(&diff);
	hot_rows_free(&rows[0]);
	hot_rows_free(&rows[1]);
	return ret ? cli_no_memory(cli) : code;
}

static bool has_vm(const struct hot_tree *t, const char *name)
{
	u32 i;

	for (i = t->first[0]; i; i = t->next[i])
		if (!strcmp(t->process[t->node[i].what].vm, name))
			return true;
	return false;
}

/* Names may have colons: the first one that leaves two VMs counts. */
static int split_vms(struct cli *cli, struct hot *d)
{
	const struct hot_tree *t = &d->trace.tree;
	const char *colon;
	char name[CLI_WHO];

	for (colon = strchr(d->diff_vm, ':'); colon; colon = strchr(colon + 1, ':')) {
		free(d->vm[0]);
		d->vm[0] = strndup(d->diff_vm, (size_t)(colon - d->diff_vm));
		if (!d->vm[0])
			return cli_no_memory(cli);
		if (has_vm(t, d->vm[0]) && has_vm(t, colon + 1)) {
			d->vm[1] = strdup(colon + 1);
			return d->vm[1] ? CLI_OK : cli_no_memory(cli);
		}
	}
	cli_safe_name(d->diff_vm, name);
	cli_error(cli,
		  "--diff-vm=%s: not two VMs of the trace: give their names as the table has "
		  "them, A:B",
		  name);
	return CLI_FAILED;
}

static int compare_vms(struct cli *cli, struct hot *d)
{
	const struct hot_tree *const tree[] = { &d->trace.tree, &d->trace.tree };
	int code = split_vms(cli, d);

	return code ? code : show_diff(cli, d, tree);
}

static int compare_traces(struct cli *cli, struct hot *d)
{
	struct cli other;
	struct hot *before = NULL;
	int code = cli_other_open(cli, d->diff, &other);

	if (!code) {
		before = other.data;
		code = load(&other, &before->trace);
	}
	if (!code) {
		const struct hot_tree *const tree[] = { &before->trace.tree, &d->trace.tree };

		if (tree[0]->timed != tree[1]->timed && d->show.by == HOT_TIME) {
			cli_error(cli, "--by=time: %s has no times", d->diff);
			code = CLI_FAILED;
		} else {
			code = show_diff(cli, d, tree);
		}
	}
	if (before)
		unload(&before->trace);
	return cli_other_close(&other, code);
}

/* ---- */

static int check(struct cli *cli, struct hot *d)
{
	const bool files = d->file[FOLDED] || d->file[SPEEDSCOPE] || d->file[PPROF];

	if (d->diff && d->diff_vm)
		return cli_usage(cli, "--diff and --diff-vm exclude each other");
	if ((d->diff || d->diff_vm) && files)
		return cli_usage(cli, "--diff and --diff-vm compare functions: not with --folded, "
				      "--speedscope or --pprof");
	if (cli->json && d->file[FOLDED] && !strcmp(d->file[FOLDED], "-"))
		return cli_usage(cli, "--json and --folded both are for the standard output: give "
				      "--folded=FILE");
	if (!d->top_given)
		d->show.top = cli->json ? 0 : 30;
	if (!d->per_given && (d->diff || d->diff_vm))
		d->show.per = HOT_PER_VM;
	if (d->diff_vm && d->show.per == HOT_PER_TRACE)
		return cli_usage(cli, "--per=trace: --diff-vm compares VMs");
	return CLI_OK;
}

static int run(struct cli *cli)
{
	struct hot *d = cli->data;
	int code = check(cli, d), i;
	bool files = false;

	if (!code)
		code = create(cli, d);
	for (i = 0; i < OUTPUTS; i++)
		files |= d->file[i] != NULL;
	if (!code)
		code = load(cli, &d->trace);
	if (!code && d->show.by == HOT_TIME && !d->trace.tree.timed) {
		cli_error(cli, "--by=time: the trace has no times");
		code = CLI_FAILED;
	}
	if (!code && files)
		code = write_all(cli, d);
	if (!code && d->diff)
		code = compare_traces(cli, d);
	else if (!code && d->diff_vm)
		code = compare_vms(cli, d);
	else if (!code && (!files || cli->json))
		code = show_rows(cli, d);
	for (i = 0; i < OUTPUTS; i++)
		if (d->file[i])
			cli_file_drop(&d->out[i]);
	free(d->vm[0]);
	free(d->vm[1]);
	unload(&d->trace);
	return code;
}

static const char *const csv_functions[] = {
	"vm",	  "process",	       "tgid",
	"comm",	  "function",	       "module",
	"calls",  "self_instructions", "total_instructions",
	"self_*", "total_*",	       NULL,
};

static const char *const csv_changes[] = {
	"vm",
	"comm",
	"function",
	"module",
	"before/calls",
	"after/calls",
	"before/self_instructions",
	"after/self_instructions",
	"before/total_instructions",
	"after/total_instructions",
	"before/self_*",
	"after/self_*",
	"before/total_*",
	"after/total_*",
	NULL,
};

static const struct cli_csv csv[] = {
	{ "functions", NULL, csv_functions },
	{ "changes", NULL, csv_changes },
	{ 0 },
};

const struct cli_command cli_hot = {
	.name = "hot",
	.title = "show which functions ran most, by stacks for flame graphs, too",
	.about = "Follow the trace through images of the code and count instructions and time of\n"
		 "each function: by itself (SELF), and with what it called (TOTAL). Of functions\n"
		 "that call themselves, the outermost call counts in TOTAL. Callers from before\n"
		 "the trace, or lost, are [unknown]. Stacks are written for FlameGraph,\n"
		 "speedscope and pprof; two traces or VMs are compared.",
	.examples =
		"  vmpt hot trace                          the hottest functions of a recording\n"
		"  vmpt hot --vm=web --sort=total trace    of one VM, with what they called\n"
		"  vmpt hot --folded trace | flamegraph.pl > x.svg\n"
		"  vmpt hot --speedscope=x.json trace      https://www.speedscope.app\n"
		"  vmpt hot --pprof=x.pb.gz trace          go tool pprof -http=: x.pb.gz\n"
		"  vmpt hot --diff=before after            what became slower\n",
	.group = { &group, &cli_mode_group, &cli_filter_group, &cli_when_group, &cli_clock_group,
		   &cli_input_group, &cli_side_group, &cli_output_group },
	.csv = csv,
	.data_size = sizeof(struct hot),
	.run = run,
};
