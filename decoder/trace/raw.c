// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Raw traces: a file has only the PT or RTIT bytes of one CPU. Several files make one
 * trace of several streams, all of PT or all of RTIT.
 */
#include <stdlib.h>

#include "decoder/trace/trace.h"

/*
 * Determine the isa of @map. The first of the trace's files that proves its isa decides; files that
 * do not, for example of an idle CPU, have the isa of the others.
 */
static int settle_isa(struct vmpt_trace *trace, const struct vmpt_map *map, struct vmpt_diag *diag)
{
	static const char *const name[] = { [VMPT_ISA_PT] = "Intel PT", [VMPT_ISA_RTIT] = "RTIT" };
	int isa = trace->isa_given ? -1 : vmpt_isa_detect(map->data, map->size);
	size_t i;

	if (!trace->isa_given && vmpt_perf_is_damaged(map->data, map->size))
		return vmpt_diag_fail(diag, VMPT_E_FORMAT, 0,
				      "a perf.data with a damaged magic: it does not start with "
				      "PERFILE2");
	if (isa < 0)
		return 0;
	if (trace->isa_known && isa != (int)trace->info.isa)
		return vmpt_diag_fail(diag, VMPT_E_INVAL, 0,
				      "its first PSB is of %s, but the files before it are of %s: "
				      "a trace is of one of the two",
				      name[isa], name[trace->info.isa]);
	trace->isa_known = true;
	trace->info.isa = (enum vmpt_isa)isa;
	for (i = 0; i < trace->stream_count; i++)
		trace->streams[i].isa = (u8)isa;
	return 0;
}

int vmpt_raw_read_map(struct vmpt_trace *trace, struct vmpt_map *map, int cpu,
		      struct vmpt_diag *diag)
{
	int ret = settle_isa(trace, map, diag);
	struct vmpt_extent *extent = calloc(1, sizeof(*extent));
	struct vmpt_stream stream = {
		.data = map->data,
		.size = map->size,
		.cpu = cpu < 0 ? -1 : cpu,
		.tid = -1,
		.isa = (u8)trace->info.isa,
		.extents = extent,
		.extent_count = 1,
	};

	if (ret || !extent) {
		vmpt_map_close(map);
		free(extent);
		return ret ? ret : vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	}
	extent->size = map->size;
	ret = vmpt_trace_take_map(trace, map, diag);
	if (ret) {
		free(extent);
		return ret;
	}
	return vmpt_trace_take_stream(trace, &stream, diag);
}

int vmpt_raw_read(struct vmpt_trace *trace, const char *path, int cpu, struct vmpt_diag *diag)
{
	struct vmpt_map map;
	int ret = vmpt_map_open(&map, path, diag);

	return ret ? ret : vmpt_raw_read_map(trace, &map, cpu, diag);
}
