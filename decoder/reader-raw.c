// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Raw traces: a file is nothing but the PT bytes of one CPU. Several files make
 * one trace of several streams.
 */
#include <stdlib.h>

#include "decoder/trace.h"

int vmpt_raw_read_map(struct vmpt_trace *trace, struct vmpt_map *map, int cpu,
		      struct vmpt_diag *diag)
{
	struct vmpt_extent *extent = calloc(1, sizeof(*extent));
	struct vmpt_stream stream = {
		.data = map->data,
		.size = map->size,
		.cpu = cpu < 0 ? -1 : cpu,
		.tid = -1,
		.extents = extent,
		.extent_count = 1,
	};
	int ret;

	if (!extent) {
		vmpt_map_close(map);
		return vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
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
