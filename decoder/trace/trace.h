/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside a trace: shared by the readers. A reader maps files, makes streams
 * that point into the mappings and hands both over to the trace, which owns
 * them from then on.
 */
#ifndef VMPT_DECODER_TRACE_H
#define VMPT_DECODER_TRACE_H

#include "decoder/vmpt-decode.h"

/* The bytes of a file. */
struct vmpt_map {
	const u8 *data; /* never NULL */
	u64 size;
	void *addr; /* NULL: nothing to unmap */
};

struct vmpt_trace {
	struct vmpt_trace_info info;
	bool isa_known; /* from a PSB, or given by the caller */
	bool isa_given; /* by the caller: files are not checked */
	struct vmpt_stream *streams;
	size_t stream_count;
	struct vmpt_map *maps;
	size_t map_count;	    /* the first of a perf.data is the file */
	u32 pmu_type;		    /* of a perf.data: attr.type of intel_pt; 0: not known */
	struct perf_events *events; /* NULL: not requested yet */
};

/* Fill @diag (may be NULL) and return -@err. */
int vmpt_diag_fail(struct vmpt_diag *diag, enum vmpt_error err, u64 offset, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* ---- files (file-map.c) ---- */

/*
 * Map the file at @path; "-" is standard input. Anything but a regular file is
 * copied to an unlinked temporary file first. An empty file has size 0.
 * Returns 0, -VMPT_E_IO (directories too) or -VMPT_E_NOMEM with @diag filled.
 */
int vmpt_map_open(struct vmpt_map *map, const char *path, struct vmpt_diag *diag);
void vmpt_map_close(struct vmpt_map *map);

/* A new unlinked file in $TMPDIR, else /var/tmp or /tmp: its descriptor, or -VMPT_E_IO. */
int vmpt_temp_create(struct vmpt_diag *diag);
/* Append to it. */
int vmpt_temp_write(int fd, const u8 *data, u64 size, struct vmpt_diag *diag);
/* Map its first @size bytes. The caller closes @fd. */
int vmpt_temp_map(struct vmpt_map *map, int fd, u64 size, struct vmpt_diag *diag);

/* ---- memory of a trace (trace.c) ---- */

/* Hand over @map. If memory runs out it is closed. */
int vmpt_trace_take_map(struct vmpt_trace *trace, struct vmpt_map *map, struct vmpt_diag *diag);
/* Hand over @stream with its gaps and extents. If memory runs out these are freed. */
int vmpt_trace_take_stream(struct vmpt_trace *trace, const struct vmpt_stream *stream,
			   struct vmpt_diag *diag);

/* Open a perf.data in memory, which must outlive the trace. For tests. */
int vmpt_trace_open_perf_memory(struct vmpt_trace **trace, const u8 *data, u64 size,
				struct vmpt_diag *diag);

/* ---- readers ---- */

/* Add a stream from the raw file at @path. */
int vmpt_raw_read(struct vmpt_trace *trace, const char *path, int cpu, struct vmpt_diag *diag);
/* The same from @map; takes ownership. */
int vmpt_raw_read_map(struct vmpt_trace *trace, struct vmpt_map *map, int cpu,
		      struct vmpt_diag *diag);

/* The isa of the raw trace at @data: an enum vmpt_isa, or -1 if its head proves to be of neither.
 */
int vmpt_isa_detect(const u8 *data, u64 size);

/* Whether these bytes start a perf.data, of any version and byte order. */
bool vmpt_perf_is(const u8 *data, u64 size);
/* Whether they are a perf.data whose magic is damaged: then no reader is right for it. */
bool vmpt_perf_is_damaged(const u8 *data, u64 size);
/* Read all streams of the perf.data at @file, whose bytes the trace owns already. */
int vmpt_perf_read(struct vmpt_trace *trace, const u8 *file, u64 size, struct vmpt_diag *diag);

/* A record of the kernel's, valid during the call. */
struct vmpt_perf_record {
	const u8 *rec;
	u32 size; /* without its sample_id */
	u64 time; /* of the sample_id, in ns of perf's clock; 0: it has none */
	/* Not the kernel's: a build id: header, s32 pid, u8 id[20], size, 3 bytes, the file's name
	 */
	bool build_id;
};

/*
 * Give each record of the kernel's in the perf.data at @file to @record, until it returns a
 * negative error. 0 with @info filled, and with @diag's text if part of the file cannot be read, or
 * an error.
 */
int vmpt_perf_read_kernel(const u8 *file, u64 size,
			  int (*record)(void *opaque, const struct vmpt_perf_record *record),
			  void *opaque, struct vmpt_trace_info *info, struct vmpt_diag *diag);

/* Free the memory of vmpt_trace_events(); @events may be NULL. */
void vmpt_perf_events_free(struct perf_events *events);

/* ---- snapshots (snapshot.c) ---- */

/* The overlap of a snapshot with the one before it. */
struct vmpt_overlap {
	u64 drop; /* bytes at its head that repeat the other's end */
	u64 trim; /* padding bytes to remove from the other's end, 0 to 7 */
};

/*
 * Whether snapshot @b repeats the end of @a, the one before it. @hint is the size
 * of the overlap according to the offsets of both, or 0; it is used only if the
 * bytes agree. Returns false if there is no overlap.
 */
bool vmpt_snapshot_overlap(const u8 *a, u64 a_size, const u8 *b, u64 b_size, u64 hint,
			   struct vmpt_overlap *overlap);

#endif
