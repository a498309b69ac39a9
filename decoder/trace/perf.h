/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside the perf.data reader: the file's header (perf.c), its records
 * (perf-records.c, perf-inflate.c), and the streams made of the trace buffers
 * found there (perf-streams.c). The format is described in Linux's
 * tools/perf/Documentation/perf.data-file-format.txt.
 */
#ifndef VMPT_DECODER_READER_PERF_H
#define VMPT_DECODER_READER_PERF_H

#include <linux/perf_event.h>

#include "decoder/trace/trace.h"

/* Records that the perf tool adds to the kernel's. */
enum {
	PERF_USER_HEADER_ATTR = 64,
	PERF_USER_TRACING_DATA = 66,
	PERF_USER_BUILD_ID = 67,
	PERF_USER_ID_INDEX = 69,
	PERF_USER_AUXTRACE_INFO = 70,
	PERF_USER_AUXTRACE = 71,
	PERF_USER_TIME_CONV = 79,
	PERF_USER_HEADER_FEATURE = 80,
	PERF_USER_COMPRESSED = 81,
	PERF_USER_COMPRESSED2 = 83,
};

/* Features: bits of the file header, ids of HEADER_FEATURE records. */
enum {
	PERF_FEATURE_TRACING_DATA = 1,
	PERF_FEATURE_BUILD_ID = 2,
	PERF_FEATURE_AUXTRACE = 18,
	PERF_FEATURE_DIR_FORMAT = 24,
	PERF_FEATURE_COMPRESSED = 27,
	PERF_FEATURES = 256,
};

#define PERF_AUXTRACE_INTEL_PT 1  /* AUXTRACE_INFO.type */
#define PERF_COMPRESS_ZSTD     1  /* HEADER_COMPRESSED.type */
#define PERF_INDEX_ENTRY       16 /* bytes: u64 file_offset, size */
#define PERF_RECORD_HEADER     8  /* bytes of struct perf_event_header */
#define PERF_PADDING_MAX       7  /* an AUXTRACE buffer is padded to 8 bytes */

/* The fields of struct perf_event_attr that the reader uses. */
struct perf_attr {
	u32 type;
	bool sample_id_all;
	u64 config;
	u64 sample_type;
	u64 read_format;
};

struct perf_events;

/* One AUXTRACE buffer. */
struct perf_part {
	int cpu, tid; /* tid is -1 where cpu is known */
	u32 damage;   /* number of times that records were lost before it */
	u64 aux_offset;
	u64 size;
	u64 file_offset;
	/* Set when the streams are made: bytes left out at its head, bytes kept, and their place */
	u64 skip, used, stream_offset;
};

/* A place in an AUX area that an AUX record flags. */
struct perf_mark {
	int cpu, tid; /* -1: the record does not say */
	u32 flags;    /* VMPT_GAP_* */
	u64 aux_offset;
	size_t queue;
};

struct perf_inflate;

struct perf_reader {
	struct vmpt_trace *trace;
	struct vmpt_trace_info *info; /* the trace's */
	struct vmpt_diag *diag;
	const u8 *file;
	u64 size;
	u64 records, records_end; /* the records' range in the file */

	struct perf_attr *attrs;
	size_t attr_count;
	size_t pt_attr; /* the intel_pt event's; attr_count or more: not known */

	unsigned int infos;	    /* AUXTRACE_INFO records so far */
	bool has_info, has_pt_info; /* one of them was seen, one of intel_pt */
	bool inflate_broken;	    /* further compressed records cannot be read */
	u32 aux_type;		    /* of the last AUXTRACE_INFO */
	u32 pmu_type;		    /* attr.type of intel_pt events */

	struct perf_part *parts;
	size_t part_count;
	struct perf_mark *marks;
	size_t mark_count;
	struct perf_inflate *inflate;

	/* Places of the AUXTRACE records, from the feature: reading resumes there after damage */
	const u8 *index; /* u64 file_offset, size */
	u64 index_count, index_next;
	u32 damage; /* number of times that this was needed */

	/* Not NULL: only collect events, from a file that was read before */
	struct perf_events *events;
	/* Not NULL: only give it the kernel's records; not 0 ends reading */
	int (*record)(void *opaque, const struct vmpt_perf_record *record);
	void *opaque;
};

/* Note that part of the file cannot be read; the first reason is kept. Returns 1. */
int vmpt_perf_stop(struct perf_reader *r, u64 offset, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int vmpt_perf_no_memory(struct perf_reader *r);

/* Note an attr of @size bytes, and the @id_size bytes of its events' ids. 0 or an error. */
int vmpt_perf_take_attr(struct perf_reader *r, const u8 *attr, u64 size, const u8 *ids,
			u64 id_size);
/* Feature @id with @size bytes of data at @data; @offset is for diags. 0 or an error. */
int vmpt_perf_take_feature(struct perf_reader *r, u64 id, const u8 *data, u64 size, u64 offset);

/* All records. 0 or an error; broken ones are noted and left out. */
int vmpt_perf_read_records(struct perf_reader *r);
/*
 * One complete record of @size bytes; @offset is its place in the file, or that of the
 * compressed record it comes from. 0, 1 after vmpt_perf_stop(), or an error.
 */
int vmpt_perf_take_record(struct perf_reader *r, const u8 *rec, u32 size, u64 offset);

/*
 * Inflate @size bytes and take the records they complete. 0, 1 after vmpt_perf_stop(),
 * or an error.
 */
int vmpt_perf_inflate_records(struct perf_reader *r, const u8 *src, u64 size, u64 offset);
/* Number of bytes of an incomplete last record. */
size_t vmpt_perf_inflate_rest(const struct perf_reader *r);
void vmpt_perf_inflate_free(struct perf_reader *r);

/* Make the streams of all parts and marks. 0 or an error. */
int vmpt_perf_make_streams(struct perf_reader *r);

/* Read the whole file: header, then records. 0 or an error. */
int vmpt_perf_read_file(struct perf_reader *r);

/* ---- events (perf-events.c) ---- */

/* The ids of the attr that was taken last. 0 or an error. */
int vmpt_perf_events_ids(struct perf_reader *r, const u8 *ids, u64 size);
/* Give a record of the kernel's to perf_reader.record. */
int vmpt_perf_kernel_record(struct perf_reader *r, const u8 *rec, u32 size);
/* The same with perf's records of build ids, of which @data, the feature BUILD_ID, has a list. */
int vmpt_perf_build_ids(struct perf_reader *r, const u8 *data, u64 size);
/* A record of the kernel's. 0 or an error; malformed parts are left out. */
int vmpt_perf_events_record(struct perf_reader *r, const u8 *rec, u32 size);
/* ID_INDEX: the CPUs of the intel_pt event. 0 or an error; malformed parts are left out. */
int vmpt_perf_events_id_index(struct perf_reader *r, const u8 *rec, u32 size);
/* TRACING_DATA: the formats of the tracepoints. Malformed parts are left out. */
void vmpt_perf_events_formats(struct perf_reader *r, const u8 *data, u64 size);

/* ---- formats of tracepoints (perf-formats.c) ---- */

/* Place of a field in a tracepoint's raw data; size 0: it has no such field. */
struct perf_field {
	u32 offset, size;
};

enum perf_tracepoint_kind {
	PERF_TP_KVM_ENTRY,
	PERF_TP_KVM_EXIT,
	PERF_TP_KVM_MSR,
	PERF_TP_KVM_PAGE_FAULT,
	PERF_TP_KVM_MMIO,
	PERF_TP_KVM_FAST_MMIO,
	PERF_TPS
};

/* One of KVM's; .info1 is the MSR, or the guest-physical address, of those that have one. */
struct perf_tracepoint {
	bool known;
	u64 id; /* attr.config of its events */
	struct perf_field vcpu_id, rip, exit_reason, isa, info1, info2;
};

/* Read the formats that @data, TRACING_DATA of the perf tool, has. */
void vmpt_perf_formats_read(struct perf_tracepoint tps[PERF_TPS], const u8 *data, u64 size);

#endif
