// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt coverage: which code was executed, per VM and process. */
#include <stdlib.h>
#include <string.h>

#include "cli/coverage/coverage.h"

#define BITMAP_MAX (1ULL << 30)

static const struct cli_option options[] = {
	TRACED_OPTIONS(struct coverage, t.o),
	CODE_DEBUGINFOD_OPTION(struct coverage, t.names.ask),
	CODE_MANGLED_OPTION(struct coverage, t.names.mangled),
	{ "blocks", 0, CLI_FLAG, NULL, "list basic blocks and how often each ran",
	  CLI_AT(struct coverage, blocks) },
	{ "edges", 0, CLI_FLAG, NULL, "list branches, where each went and how often",
	  CLI_AT(struct coverage, edges) },
	{ "functions", 0, CLI_FLAG, NULL, "list functions and how much of each ran",
	  CLI_AT(struct coverage, functions) },
	{ "diff", 0, CLI_FILE, "FILE",
	  "list blocks and functions that are new and that are gone since another run, of "
	  "which FILE is the list by --blocks --json",
	  CLI_AT(struct coverage, diff) },
	{ "drcov", 0, CLI_OUTPUT, "FILE",
	  "write modules and blocks as DynamoRIO's drcov does, for Lighthouse and others",
	  CLI_AT(struct coverage, drcov) },
	{ "lcov", 0, CLI_OUTPUT, "FILE",
	  "write lines, functions and branches of source files as lcov and genhtml read them; "
	  "needs files with debugging information in --symbols",
	  CLI_AT(struct coverage, lcov) },
	{ "bitmap", 0, CLI_OUTPUT, "FILE", "write a map of edges as AFL's QEMU mode has it",
	  CLI_AT(struct coverage, bitmap) },
	{ "bitmap-size", 0, CLI_NUMBER, "N", "bytes of it, a power of two", "65536",
	  CLI_AT(struct coverage, bitmap_size), .min = 16, .max = BITMAP_MAX },
	{ 0 },
};

static const struct cli_group group = { .option = options };

static int check(struct cli *cli)
{
	struct coverage *d = cli->data;

	if (d->blocks + d->edges + d->functions + (d->diff != NULL) > 1)
		return cli_usage(cli,
				 "--blocks, --edges, --functions and --diff exclude each other");
	if (d->diff && cli->csv)
		return cli_usage(cli, "--diff has no table for --csv; use --json");
	if (d->bitmap_size & (d->bitmap_size - 1))
		return cli_usage(cli, "--bitmap-size: not a power of two");
	d->list = d->blocks	 ? COVERAGE_BLOCKS
		  : d->edges	 ? COVERAGE_EDGES
		  : d->functions ? COVERAGE_FUNCTIONS
				 : COVERAGE_SUMMARY;
	d->with_edges = d->edges || d->bitmap || d->lcov;
	d->t.o.lines = d->lcov != NULL;
	return CLI_OK;
}

/* What goes to a file, and then to the standard output. */
static int write_all(struct cli *cli)
{
	const struct coverage *d = cli->data;
	const bool dash = (d->drcov && !strcmp(d->drcov, "-")) ||
			  (d->lcov && !strcmp(d->lcov, "-")) ||
			  (d->bitmap && !strcmp(d->bitmap, "-"));
	int code = CLI_OK;

	if (d->drcov)
		code = coverage_drcov(cli);
	if (!code && d->lcov)
		code = coverage_lcov(cli);
	if (!code && d->bitmap)
		code = coverage_bitmap(cli);
	if (code || dash)
		return code;
	traced_warn(cli, &d->t, &d->total);
	if (d->diff)
		return coverage_diff(cli);
	coverage_show(cli);
	return CLI_OK;
}

static void close_all(struct coverage *d)
{
	while (d->modules)
		free(d->module[--d->modules].name);
	free(d->module);
	free(d->space);
	free(d->insn);
	free(d->order);
	free(d->target);
	free(d->block);
	free(d->edge);
	vmpt_hash_free(&d->space_of);
	vmpt_hash_free(&d->insn_of);
	vmpt_hash_free(&d->edge_of);
	traced_close(&d->t);
}

static int run(struct cli *cli)
{
	struct coverage *d = cli->data;
	int code = check(cli);

	if (code)
		return code;
	/* Code must not choose keys that collide. */
	d->seed = vmpt_mix64((uintptr_t)d ^ (uintptr_t)&d << 20);
	d->t.no_times = true;
	code = traced_open(cli, &d->t);
	if (!code)
		code = traced_names_open(cli, &d->t);
	if (!code)
		code = coverage_modules_open(cli);
	if (!code)
		code = coverage_walk(cli);
	if (!code)
		code = write_all(cli);
	if (!code)
		cli_filter_warn(cli);
	close_all(d);
	return code;
}

#define CSV_SPACE "owner", "vm", "vmcs", "cr3", "bits", "tgid", "comm"
#define CSV_PLACE "module", "module_offset", "function", "function_offset"

static const char *const csv_spaces[] = { CSV_SPACE, "blocks",	 "instructions",
					  "bytes",   "executed", NULL };
static const char *const csv_blocks[] = { CSV_SPACE, "ip",	 "size",    "instructions",
					  "count",   "executed", CSV_PLACE, NULL };
static const char *const csv_edges[] = {
	CSV_SPACE, "from", "to", "kind", "count", CSV_PLACE, NULL
};
static const char *const csv_functions[] = { CSV_SPACE,	     "module", "function", "blocks",
					     "instructions", "bytes",  "executed", NULL };

/* By enum coverage_list. */
static const struct cli_csv csv[] = {
	{ "spaces", NULL, csv_spaces },
	{ "blocks", NULL, csv_blocks },
	{ "edges", NULL, csv_edges },
	{ "functions", NULL, csv_functions },
	{ 0 },
};

const struct cli_command cli_coverage = {
	.name = "coverage",
	.title = "show which code ran: blocks, edges, functions; drcov and other files",
	.about =
		"Follow the trace through images of the code, and say which code was executed and\n"
		"how often, per VM and process: a summary, lists of basic blocks, edges or\n"
		"functions, files for other tools, and what is new since another run.",
	.examples =
		"  vmpt coverage --code=web:ram.img perf.data                 a summary\n"
		"  vmpt coverage --code=guest.addr --drcov=run.drcov guest.pt for a disassembler\n"
		"  vmpt coverage --blocks --json --vm=web run1 >run1.jsonl    to compare with\n"
		"  vmpt coverage --diff=run1.jsonl --vm=web run2              what is new, what gone\n",
	.group = { &group, &cli_filter_group, &cli_clock_group, &cli_input_group, &cli_side_group,
		   &cli_output_group },
	.csv = csv,
	.data_size = sizeof(struct coverage),
	.run = run,
};
