// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Opening traces: choosing a file's reader, the memory owned by a trace, and
 * lookups in it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "decoder/trace/trace.h"
#include "util/array.h"
#include "util/search.h"

int vmpt_trace_take_map(struct vmpt_trace *trace, struct vmpt_map *map, struct vmpt_diag *diag)
{
	if (vmpt_grow(&trace->maps, trace->map_count)) {
		vmpt_map_close(map);
		return vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	}
	trace->maps[trace->map_count++] = *map;
	return 0;
}

int vmpt_trace_take_stream(struct vmpt_trace *trace, const struct vmpt_stream *stream,
			   struct vmpt_diag *diag)
{
	if (vmpt_grow(&trace->streams, trace->stream_count)) {
		free((void *)stream->gaps);
		free((void *)stream->extents);
		return vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	}
	trace->streams[trace->stream_count++] = *stream;
	return 0;
}

void vmpt_trace_close(struct vmpt_trace *trace)
{
	size_t i;

	if (!trace)
		return;
	for (i = 0; i < trace->stream_count; i++) {
		free((void *)trace->streams[i].gaps);
		free((void *)trace->streams[i].extents);
	}
	for (i = 0; i < trace->map_count; i++)
		vmpt_map_close(&trace->maps[i]);
	vmpt_perf_events_free(trace->events);
	free(trace->streams);
	free(trace->maps);
	free(trace);
}

static struct vmpt_trace *trace_new(enum vmpt_trace_format format, struct vmpt_diag *diag)
{
	struct vmpt_trace *trace = calloc(1, sizeof(*trace));

	if (diag)
		*diag = (struct vmpt_diag){ 0 };
	if (trace)
		trace->info.format = format;
	else
		vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	return trace;
}

/* End of an open function: the trace, or an error and no trace. */
static int trace_done(struct vmpt_trace **trace, struct vmpt_trace *opened, int ret)
{
	if (ret) {
		vmpt_trace_close(opened);
		opened = NULL;
	}
	*trace = opened;
	return ret;
}

/* Read @map; takes ownership. */
static int open_map(struct vmpt_trace **trace, struct vmpt_map *map, bool perf, int cpu,
		    struct vmpt_diag *diag)
{
	struct vmpt_trace *t = trace_new(perf ? VMPT_TRACE_PERF : VMPT_TRACE_RAW, diag);
	const u8 *data = map->data;
	u64 size = map->size;
	int ret;

	*trace = NULL;
	if (!t) {
		vmpt_map_close(map);
		return -VMPT_E_NOMEM;
	}
	if (!perf)
		return trace_done(trace, t, vmpt_raw_read_map(t, map, cpu, diag));
	t->isa_given = true;
	ret = vmpt_trace_take_map(t, map, diag);
	if (!ret)
		ret = vmpt_perf_read(t, data, size, diag);
	return trace_done(trace, t, ret);
}

/*
 * Map @path, or the file in it if that is a directory: perf record --kcore makes one whose "data"
 * is complete, vmpt record one with a "perf.data", which may be such a directory.
 */
static int map_path(struct vmpt_map *map, const char *path, struct vmpt_diag *diag)
{
	static const char *const name[] = { "data", "perf.data", "perf.data/data" };
	char inner[4096];
	struct stat st;
	size_t i;
	int n;

	if (stat(path, &st) || !S_ISDIR(st.st_mode))
		return vmpt_map_open(map, path, diag);
	for (i = 0; i < VMPT_ARRAY_SIZE(name); i++) {
		n = snprintf(inner, sizeof(inner), "%s/%s", path, name[i]);
		if (n > 0 && (size_t)n < sizeof(inner) && !stat(inner, &st) && S_ISREG(st.st_mode))
			return vmpt_map_open(map, inner, diag);
	}
	return vmpt_map_open(map, path, diag);
}

int vmpt_trace_open_abi(struct vmpt_trace **trace, const char *path, int cpu,
			struct vmpt_diag *diag, u64 abi)
{
	struct vmpt_map map;
	int ret;

	if (abi != VMPT_DECODE_ABI)
		return -VMPT_E_VERSION;
	*trace = NULL;
	ret = map_path(&map, path, diag);
	if (ret)
		return ret;
	return open_map(trace, &map, vmpt_perf_is(map.data, map.size), cpu, diag);
}

int vmpt_trace_set_isa(struct vmpt_trace *trace, enum vmpt_isa isa)
{
	size_t i;

	if (trace->info.format != VMPT_TRACE_RAW)
		return isa == trace->info.isa ? 0 : -VMPT_E_INVAL;
	trace->info.isa = isa;
	trace->isa_given = true;
	for (i = 0; i < trace->stream_count; i++)
		trace->streams[i].isa = (u8)isa;
	return 0;
}

static int open_as(struct vmpt_trace **trace, const char *path, enum vmpt_isa isa, int cpu,
		   struct vmpt_diag *diag)
{
	struct vmpt_trace *t = trace_new(VMPT_TRACE_RAW, diag);

	*trace = NULL;
	if (!t)
		return -VMPT_E_NOMEM;
	vmpt_trace_set_isa(t, isa);
	return trace_done(trace, t, vmpt_raw_read(t, path, cpu, diag));
}

int vmpt_trace_open_raw_abi(struct vmpt_trace **trace, const char *path, int cpu,
			    struct vmpt_diag *diag, u64 abi)
{
	if (abi != VMPT_DECODE_ABI)
		return -VMPT_E_VERSION;
	return open_as(trace, path, VMPT_ISA_PT, cpu, diag);
}

int vmpt_trace_open_rtit_abi(struct vmpt_trace **trace, const char *path, int cpu,
			     struct vmpt_diag *diag, u64 abi)
{
	if (abi != VMPT_DECODE_ABI)
		return -VMPT_E_VERSION;
	return open_as(trace, path, VMPT_ISA_RTIT, cpu, diag);
}

int vmpt_trace_open_perf_abi(struct vmpt_trace **trace, const char *path, struct vmpt_diag *diag,
			     u64 abi)
{
	struct vmpt_map map;
	int ret;

	if (abi != VMPT_DECODE_ABI)
		return -VMPT_E_VERSION;
	*trace = NULL;
	ret = map_path(&map, path, diag);
	if (ret)
		return ret;
	return open_map(trace, &map, true, -1, diag);
}

int vmpt_trace_open_perf_memory(struct vmpt_trace **trace, const u8 *data, u64 size,
				struct vmpt_diag *diag)
{
	struct vmpt_map map = { .data = data, .size = size };

	return open_map(trace, &map, true, -1, diag);
}

int vmpt_trace_add_raw(struct vmpt_trace *trace, const char *path, int cpu, struct vmpt_diag *diag)
{
	if (diag)
		*diag = (struct vmpt_diag){ 0 };
	if (trace->info.format != VMPT_TRACE_RAW)
		return vmpt_diag_fail(diag, VMPT_E_INVAL, 0,
				      "a raw trace cannot be added to a perf.data");
	return vmpt_raw_read(trace, path, cpu, diag);
}

size_t vmpt_trace_streams(const struct vmpt_trace *trace)
{
	return trace->stream_count;
}

const struct vmpt_stream *vmpt_trace_stream(const struct vmpt_trace *trace, size_t i)
{
	return i < trace->stream_count ? &trace->streams[i] : NULL;
}

const struct vmpt_trace_info *vmpt_trace_info(const struct vmpt_trace *trace)
{
	return &trace->info;
}

u64 vmpt_tsc_to_perf_time(const struct vmpt_trace_info *info, u64 tsc)
{
	u64 quotient = tsc >> info->time_shift;
	u64 remainder = tsc & vmpt_mask64(info->time_shift);

	return info->time_zero + quotient * info->time_mult +
	       ((remainder * info->time_mult) >> info->time_shift);
}

u64 vmpt_stream_file_offset(const struct vmpt_stream *stream, u64 offset)
{
	const struct vmpt_extent *e = stream->extents;

	if (!stream->extent_count)
		return offset;
	/* The last extent that starts at or before @offset */
	e += vmpt_search(i, 1, stream->extent_count, e[i].offset <= offset) - 1;
	return e->file_offset + (offset - e->offset);
}
