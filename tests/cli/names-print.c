// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * names-print FILE: names of the VMCSs of a trace that vmpt record made, and what its side file
 * tells of their TSCs, a line each, for tests that know better:
 *
 *	name VMCS VM PID TID VCPU RUNS AGAINST FROM TO
 *	given VMCS OFFSET MULTIPLIER FROM
 *	found VMCS OFFSET MULTIPLIER ERROR PPM PAIRS	an epoch that the trace alone says
 */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/sideinfo/sideinfo.h"
#include "decoder/vmpt-clock.h"

static void print_names(const struct vmpt_names *names)
{
	const struct vmpt_vm_name *n;
	size_t i, count;

	n = vmpt_names_list(names, &count);
	for (i = 0; i < count; i++, n++)
		printf("name %" PRIx64 " %s %d %d %d %u %u %" PRIu64 " %" PRIu64 "\n", n->vmcs,
		       n->vm, n->pid, n->tid, n->vcpu, n->runs, n->against, n->from, n->to);
}

static void print_found(const struct vmpt_clocks *clocks)
{
	const struct vmpt_epoch *e;
	size_t i, k, count;

	for (i = 0; i < vmpt_clocks_vmcs_count(clocks); i++) {
		e = vmpt_clocks_epochs(clocks, i, &count);
		for (k = 0; k < count; k++, e++)
			if (e->source == VMPT_MAP_INFERRED)
				printf("found %" PRIx64 " %" PRId64 " 0x%" PRIx64 " %" PRIu64
				       " %g %u\n",
				       vmpt_clocks_vmcs(clocks, i), (s64)e->map.offset,
				       e->map.multiplier, e->offset_error, e->multiplier_ppm,
				       e->pairs);
	}
}

static int run(struct cli *cli)
{
	struct vmpt_clocks_options options = { .decode = cli->options };
	struct vmpt_clocks *clocks = NULL;
	struct vmpt_names *names = NULL;
	struct vmpt_given *given = NULL;
	struct cli_recording *rec = NULL;
	size_t i, count = 0;
	int code = cli_recording_open(cli, &rec);

	vmpt_rates_from_info(&options.rates, vmpt_trace_info(cli->trace));
	options.near_tsc = cli_recording_near_tsc(cli);
	if (!code)
		code = vmpt_clocks_open(&clocks, cli->stream, cli->streams, &options) ? CLI_FAILED
										      : CLI_OK;
	if (!code)
		code = cli_recording_names(cli, rec, clocks, &names);
	if (!code && names)
		print_names(names);
	if (!code && names && rec)
		code = cli_recording_given(cli, rec, names, &given, &count);
	for (i = 0; i < count; i++)
		printf("given %" PRIx64 " %" PRId64 " 0x%" PRIx64 " %" PRIu64 "\n", given[i].vmcs,
		       (s64)given[i].map.offset, given[i].map.multiplier, given[i].from);
	if (!code)
		print_found(clocks);
	free(given);
	vmpt_names_close(names);
	vmpt_clocks_close(clocks);
	cli_recording_free(rec);
	return code;
}

int main(int argc, char **argv)
{
	static const struct cli_command command = { .name = "names-print",
						    .group = { &cli_input_group, &cli_side_group },
						    .run = run };

	return cli_run(&command, argc, argv);
}
