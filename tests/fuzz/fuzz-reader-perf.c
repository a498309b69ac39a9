// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Any bytes as a perf.data: an error or a trace with consistent streams. */
#include <stdlib.h>

#include "decoder/trace/trace.h"
#include "decoder/vmpt-events.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void check_stream(const struct vmpt_stream *s, const u8 *file, size_t file_size)
{
	u64 at = 0;
	size_t i;

	for (i = 0; i < s->extent_count; i++) {
		const struct vmpt_extent *x = &s->extents[i];

		require(x->offset == at && x->file_offset <= file_size &&
			x->size <= file_size - x->file_offset);
		require(!memcmp(s->data + at, file + x->file_offset, x->size));
		at += x->size;
	}
	require(at == s->size);
	for (i = 0; i < s->gap_count; i++)
		require(s->gaps[i].flags && s->gaps[i].offset < s->size &&
			s->gaps[i].offset > (i ? s->gaps[i - 1].offset : 0));
}

/* A run at each event, of a VMCS chosen by its thread id: names by time, without overlap. */
static void check_names(const struct vmpt_event *events, size_t n)
{
	const struct vmpt_given_thread given = { 7, 8, 0, "given", 0, ~0ULL };
	const struct vmpt_names_options options = { events, n, &given, 1 };
	const struct vmpt_vm_name *list;
	struct vmpt_names *names;
	size_t i, count;

	if (vmpt_names_open(&names, &options))
		return;
	for (i = 0; i < n; i++) {
		struct vmpt_time start = { events[i].tsc + 1, 1, 1 }, end = start;

		end.tsc += (u64)i % 7;
		require(!vmpt_names_run(names, (u64)(events[i].tid & 3) << 12, events[i].cpu,
					&start, &end));
	}
	require(!vmpt_names_finish(names));
	list = vmpt_names_list(names, &count);
	for (i = 0; i < count; i++) {
		require(list[i].vm && list[i].runs && list[i].from < list[i].to);
		require(!i || list[i - 1].vmcs < list[i].vmcs ||
			(list[i - 1].vmcs == list[i].vmcs && list[i - 1].to == list[i].from));
	}
	vmpt_names_close(names);
}

static void check_events(struct vmpt_trace *trace)
{
	const struct vmpt_event *events;
	u64 time = 0;
	size_t i, n;

	if (vmpt_trace_events(trace, &events, &n))
		return;
	for (i = 0; i < n; i++) {
		require(events[i].kind <= VMPT_EVENT_RECORDED);
		require(!events[i].text == (events[i].kind != VMPT_EVENT_COMM));
		require(!events[i].text || strlen(events[i].text) < 64);
		require(!events[i].time || events[i].time >= time);
		time = events[i].time ? events[i].time : time;
	}
	check_names(events, n);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct vmpt_trace *trace;
	struct vmpt_diag diag = { 0 };
	int ret = vmpt_trace_open_perf_memory(&trace, data, size, &diag);
	size_t i;

	if (ret) {
		require(!trace && diag.text[0]);
		return 0;
	}
	require(vmpt_trace_info(trace)->incomplete == !!diag.text[0]);
	for (i = 0; i < vmpt_trace_streams(trace); i++)
		check_stream(vmpt_trace_stream(trace, i), data, size);
	check_events(trace);
	vmpt_trace_close(trace);
	return 0;
}
