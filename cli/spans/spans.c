// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Who had each CPU: the spans of the whole trace in arrays. */
#include <stdlib.h>

#include "cli/sideinfo/sideinfo.h"
#include "cli/spans/spans.h"
#include "util/array.h"

static int add(struct cli *cli, struct spans *s, const struct vmpt_span *span)
{
	struct spans_stream *to = &s->stream[span->stream];

	if (s->all == SPANS_MAX) {
		if (!s->full)
			cli_warn(cli,
				 "more than %u spans: later exits have no reason; choose a "
				 "part with --from and --to",
				 SPANS_MAX);
		s->full = true;
		return CLI_OK;
	}
	if (vmpt_grow(&to->span, to->count))
		return cli_no_memory(cli);
	to->span[to->count++] = (struct spans_span){
		.offset = span->offset,
		.start = span->start.tsc == VMPT_TIME_NONE ? 0 : span->start.tsc,
		.error =
			span->start.early > span->start.late ? span->start.early : span->start.late,
		.vmcs = span->owner.kind == VMPT_OWNER_VM ? span->owner.vmcs : 0,
		.reason = span->exit.reason,
		.source = span->exit.source,
		.kind = span->kind,
		.exits = span->kind == VMPT_SPAN_GUEST && span->ended == VMPT_EDGE_EXIT,
		.halted = span->exit.halted,
	};
	to->end = span->end.tsc;
	s->all++;
	return CLI_OK;
}

static int walk(struct cli *cli, struct spans *s, struct vmpt_timeline *line)
{
	const u64 to = cli_filter(cli)->to_tsc;
	struct vmpt_span span;
	int ret, code = CLI_OK;

	while (!code && !s->full && (ret = vmpt_timeline_next(line, &span)) != 0) {
		if (ret < 0) {
			cli_error(cli, "%s: %s", cli->file[0], vmpt_strerror(ret));
			return CLI_FAILED;
		}
		/* Spans come by time: nothing after --to is asked for. */
		if (span.start.tsc != VMPT_TIME_NONE && to && span.start.tsc >= to)
			break;
		code = add(cli, s, &span);
	}
	return code;
}

int spans_open(struct cli *cli, const struct vmpt_clocks *clocks, struct spans *s)
{
	struct vmpt_timeline_options options = { .decode = cli->options };
	struct vmpt_timeline *line = NULL;
	int ret, code;

	s->streams = cli->streams;
	s->stream = calloc(s->streams, sizeof(*s->stream));
	s->runs = calloc(s->streams, sizeof(*s->runs));
	if (!s->stream || !s->runs)
		return cli_no_memory(cli);
	ret = vmpt_trace_events(cli->trace, &options.events, &options.event_count);
	if (!ret)
		ret = vmpt_timeline_open(&line, clocks, cli->stream, cli->streams, &options);
	if (ret) {
		cli_error(cli, "%s: %s", cli->file[0], vmpt_strerror(ret));
		return CLI_FAILED;
	}
	code = walk(cli, s, line);
	vmpt_timeline_close(line);
	return code;
}

void spans_close(struct spans *s)
{
	size_t i;

	for (i = 0; s->stream && i < s->streams; i++)
		free(s->stream[i].span);
	for (i = 0; s->runs && i < s->streams; i++)
		free(s->runs[i].run);
	free(s->stream);
	free(s->runs);
	*s = (struct spans){ 0 };
}

int spans_ran(struct spans *s, u32 stream, u64 offset, u64 tsc, u32 task)
{
	struct spans_runs *of;

	if (!s->runs || stream >= s->streams || s->ran == SPANS_MAX)
		return 0;
	of = &s->runs[stream];
	if (vmpt_grow(&of->run, of->count))
		return -VMPT_E_NOMEM;
	of->run[of->count++] = (struct spans_run){ tsc, offset, task };
	s->ran++;
	return 0;
}

size_t spans_run_after(const struct spans *s, u32 stream, u64 tsc)
{
	const struct spans_runs *of = &s->runs[stream];
	size_t low = 0, high = of->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (of->run[mid].tsc <= tsc)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

size_t spans_at(const struct spans *s, u32 stream, u64 offset)
{
	const struct spans_stream *of;
	size_t low = 0, high;

	if (!s->stream || stream >= s->streams)
		return SPANS_NONE;
	of = &s->stream[stream];
	high = of->count;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (of->span[mid].offset <= offset)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? low - 1 : SPANS_NONE;
}

/* The packet that shows the exit may be the last one of the guest's span or the first one of the
 * host's, and the host's first place that is known much later. */
#define NEAR 4

const struct spans_span *spans_exit(const struct spans *s, u32 stream, u64 offset, u64 tsc)
{
	size_t i = spans_at(s, stream, offset), n;

	for (n = 0; i != SPANS_NONE && n < NEAR; n++, i--) {
		const struct spans_span *span = &s->stream[stream].span[i];

		if (span->exits && i + 1 < s->stream[stream].count && span[1].start <= tsc)
			return span;
		if (!i)
			break;
	}
	return NULL;
}

u64 spans_end(const struct spans *s, u32 stream, size_t i)
{
	const struct spans_stream *of = &s->stream[stream];

	return i + 1 < of->count ? of->span[i + 1].start : of->end;
}

const char *spans_reason(const struct spans_span *span, char buf[40])
{
	const bool guess = span->source == VMPT_REASON_CODE || span->source == VMPT_REASON_PATTERN;
	const char *name = vmpt_exit_reason_name(span->reason);

	if (span->source == VMPT_REASON_NONE || span->reason == VMPT_REASON_UNKNOWN)
		snprintf(buf, 40, "unknown");
	else if (name)
		snprintf(buf, 40, "%s%s", name, guess ? "?" : "");
	else
		snprintf(buf, 40, "reason %u", span->reason);
	return buf;
}
