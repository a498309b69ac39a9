// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Opening the calls of a trace, and its end; see calls.h. */
#include <stdlib.h>

#include "cli/calls/calls.h"

int calls_failed(const struct calls_source *s, int err)
{
	cli_error(s->cli, "%s: %s", s->cli->file[0], vmpt_strerror(err));
	return CLI_FAILED;
}

int calls_open(struct cli *cli, struct calls_source *s, const struct vmpt_calls_options *more)
{
	static const struct vmpt_calls_options none;
	struct vmpt_calls_options options = more ? *more : none;
	struct vmpt_flow_options flow = { 0 };
	struct vmpt_options trace;
	int code, ret;

	s->cli = cli;
	code = traced_open(cli, &s->t);
	if (!code)
		code = traced_names_open(cli, &s->t);
	if (code)
		return code;
	/* Several streams are followed side by side: there is no one offset to show. */
	if (!options.items && cli->streams == 1)
		cli_progress_start(cli, 1);
	trace = cli_stream_options(cli, 0);
	if (options.items || cli->streams > 1)
		trace.progress = NULL;
	flow.trace = &trace;
	options.flow = &flow;
	options.function = code_names_any(&s->t.names) ? calls_find_function : NULL;
	options.vm = calls_find_vm;
	options.opaque = s;
	options.from = cli_filter(cli)->from ? cli_filter(cli)->from_tsc : 0;
	options.to = cli_filter(cli)->to ? cli_filter(cli)->to_tsc : 0;
	ret = vmpt_calls_open(&s->calls, cli->stream, cli->streams,
			      s->t.timed ? s->t.clocks.clocks : NULL, s->t.code, &options);
	return ret ? calls_failed(s, ret) : CLI_OK;
}

int calls_run(struct calls_source *s)
{
	struct vmpt_call_batch batch;
	int ret;

	while ((ret = vmpt_calls_next(s->calls, &batch)) > 0)
		;
	cli_progress_end(s->cli);
	return ret ? calls_failed(s, ret) : CLI_OK;
}

/* Which images' owners are in the trace, as traced_note() does of a flow. */
static void note_images(struct calls_source *s)
{
	const u32 n = vmpt_calls_spaces(s->calls);
	struct vmpt_space space;
	u32 k;

	for (k = 0; k < n; k++) {
		vmpt_calls_space(s->calls, k, &space);
		traced_note_owner(&s->t, &space.owner);
	}
}

int calls_end(struct calls_source *s, struct vmpt_flow_counts *counts)
{
	struct vmpt_flow_counts total = { 0 }, one;
	struct vmpt_calls_counts calls;
	char n[32];
	size_t i;
	int ret = 0;

	for (i = 0; i < s->cli->streams && !ret; i++) {
		vmpt_calls_flow(s->calls, i, &one);
		traced_add_counts(&total, &one);
		if (one.gaps[VMPT_FLOW_LOSS])
			ret = traced_losses(s->cli, i);
	}
	if (ret)
		return calls_failed(s, ret);
	note_images(s);
	traced_warn(s->cli, &s->t, &total);
	vmpt_calls_total(s->calls, &calls);
	if (calls.folded)
		cli_warn(s->cli,
			 "too many different stacks: calls that are counted for their callers: %s",
			 cli_number(calls.folded, n));
	if (!code_names_any(&s->t.names))
		cli_warn(s->cli, "no names of functions are known, addresses are shown: give "
				 "symbols by --symbols, or an image of the guest's memory");
	cli_filter_warn(s->cli);
	if (counts)
		*counts = total;
	return CLI_OK;
}

void calls_close(struct calls_source *s)
{
	vmpt_calls_close(s->calls);
	calls_names_close(s);
	traced_close(&s->t);
}
