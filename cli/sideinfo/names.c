// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Names of the VMCSs of an open trace, by its events and the record of vmpt record. */
#include <stdlib.h>

#include "cli/sideinfo/recording.h"
#include "cli/sideinfo/rtit.h"

int cli_recording_open(struct cli *cli, struct cli_recording **rec)
{
	int code = CLI_OK;

	*rec = NULL;
	if (cli_side(cli)->file && cli_side_is_recording(cli))
		code = cli_recording_read(cli, cli_side(cli)->file, rec);
	return code ? code : cli_recording_head(cli, rec);
}

/* 0, or an exit code after a message. */
static int events_of(struct cli *cli, const struct vmpt_event **events, size_t *count)
{
	int err = vmpt_trace_events(cli->trace, events, count);

	if (!err)
		return CLI_OK;
	cli_error(cli, "%s: its events: %s", cli->file[0], vmpt_strerror(err));
	return CLI_FAILED;
}

u64 cli_recording_near_tsc(struct cli *cli)
{
	const struct vmpt_event *events;
	size_t i, count;

	if (vmpt_trace_events(cli->trace, &events, &count))
		return 0;
	for (i = 0; i < count; i++)
		if (events[i].tsc)
			return events[i].tsc;
	return 0;
}

/* All streams, then the names. */
static int find_names(struct cli *cli, const struct vmpt_clocks *clocks, struct vmpt_names *names)
{
	size_t i;
	int err = 0;

	for (i = 0; !err && i < cli->streams; i++) {
		struct vmpt_options options = cli_stream_options(cli, i);

		if (cli->stream[i]->cpu >= 0)
			err = vmpt_names_stream(names, clocks, i, cli->stream[i]->cpu, &options);
	}
	if (!err)
		err = vmpt_names_finish(names);
	if (!err)
		return CLI_OK;
	cli_error(cli, "%s: names of VMs: %s", cli->file[0], vmpt_strerror(err));
	return CLI_FAILED;
}

int cli_recording_names(struct cli *cli, const struct cli_recording *rec,
			const struct vmpt_clocks *clocks, struct vmpt_names **names)
{
	struct vmpt_names_options options = { 0 };
	struct vmpt_given_thread *threads = NULL;
	int code;

	*names = NULL;
	if (!cli_recording_near_tsc(cli))
		return CLI_OK;
	code = events_of(cli, &options.events, &options.event_count);
	if (!code && rec)
		code = cli_recording_threads(cli, rec, &threads, &options.given_count);
	options.given = threads;
	if (!code && vmpt_names_open(names, &options))
		code = cli_no_memory(cli);
	free(threads);
	if (code)
		return code;
	code = find_names(cli, clocks, *names);
	if (code) {
		vmpt_names_close(*names);
		*names = NULL;
	}
	return code;
}
