// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* perf.data as perf record writes it; see perf.data-file-format.txt of Linux. */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

#include "tests/decoder/perf-writer.h"
#include "util/array.h"

#define ATTR_SIZE (PERF_ATTR_SIZE_VER5)
#define SAMPLE_TYPE                                                              \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | \
	 PERF_SAMPLE_IDENTIFIER)

/* An AUXTRACE record without its data. */
#define AUXTRACE_SIZE 48

/* Also used outside of Check: a failure is an abort. */
static void require(bool holds)
{
	if (!holds)
		abort();
}

void writer_bytes(struct perf_writer *w, const void *bytes, size_t n)
{
	require(!vmpt_reserve(&w->buf, &w->room, w->size + n + 1));
	memcpy(w->buf + w->size, bytes, n);
	w->size += n;
}

static void put64(struct perf_writer *w, u64 v)
{
	writer_bytes(w, &v, sizeof(v));
}

static struct perf_event_attr make_attr(u32 type, u64 config)
{
	return (struct perf_event_attr){
		.type = type,
		.size = ATTR_SIZE,
		.config = config,
		.sample_period = 1,
		.sample_type = SAMPLE_TYPE,
		.read_format = PERF_FORMAT_ID,
		.sample_id_all = 1,
		.disabled = 1,
	};
}

/* The first @n of the attrs. */
static void start_attrs(struct perf_writer *w, bool pipe, u64 config, unsigned int n)
{
	struct perf_event_attr attrs[6] = { make_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY),
					    make_attr(WRITER_PMU_TYPE, config),
					    make_attr(PERF_TYPE_TRACEPOINT, WRITER_ENTRY_ID),
					    make_attr(PERF_TYPE_TRACEPOINT, WRITER_EXIT_ID),
					    make_attr(PERF_TYPE_TRACEPOINT, WRITER_MSR_ID),
					    make_attr(PERF_TYPE_TRACEPOINT, WRITER_FAULT_ID) };
	unsigned int i;

	for (i = 2; i < 6; i++)
		attrs[i].sample_type |= PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW;
	*w = (struct perf_writer){ .pipe = pipe, .kvm = n >= 4 };
	writer_bytes(w, "PERFILE2", 8);
	put64(w, pipe ? 16 : 104);
	for (i = 0; i < n && pipe; i++) {
		u8 payload[ATTR_SIZE + 8];
		u64 id = 100 + i;

		memcpy(payload, &attrs[i], ATTR_SIZE);
		memcpy(payload + ATTR_SIZE, &id, 8);
		writer_record(w, 64, payload, sizeof(payload));
	}
	if (pipe)
		return;
	put64(w, ATTR_SIZE + 16);
	put64(w, 104 + n * 8); /* attrs, after the ids */
	put64(w, n * (ATTR_SIZE + 16));
	w->records = 104 + n * 8 + n * (ATTR_SIZE + 16);
	put64(w, w->records);
	put64(w, 0); /* known at the end */
	for (i = 0; i < 2 + 4; i++)
		put64(w, 0);
	for (i = 0; i < n; i++)
		put64(w, 100 + i);
	for (i = 0; i < n; i++) {
		writer_bytes(w, &attrs[i], ATTR_SIZE);
		put64(w, 104 + 8 * i);
		put64(w, 8);
	}
	require(w->size == w->records);
}

void writer_start(struct perf_writer *w, bool pipe)
{
	writer_start_config(w, pipe, WRITER_CONFIG);
}

void writer_start_config(struct perf_writer *w, bool pipe, u64 config)
{
	start_attrs(w, pipe, config, 2);
}

void writer_start_kvm(struct perf_writer *w, bool pipe)
{
	start_attrs(w, pipe, WRITER_CONFIG, 4);
	if (pipe)
		writer_tracing_record(w);
}

void writer_start_kvm_more(struct perf_writer *w, bool pipe)
{
	start_attrs(w, pipe, WRITER_CONFIG, 6);
	if (pipe)
		writer_tracing_record(w);
}

void writer_record(struct perf_writer *w, u32 type, const void *payload, size_t n)
{
	struct perf_event_header h = { .type = type, .size = (u16)(8 + n) };

	require(8 + n <= UINT16_MAX);
	if (w->zstd) {
		require(!vmpt_reserve(&w->plain, &w->plain_room, w->plain_size + 8 + n));
		memcpy(w->plain + w->plain_size, &h, 8);
		memcpy(w->plain + w->plain_size + 8, payload, n);
		w->plain_size += 8 + n;
		return;
	}
	writer_bytes(w, &h, 8);
	writer_bytes(w, payload, n);
}

void writer_info(struct perf_writer *w, bool snapshot, unsigned int privs)
{
	u64 info[1 + WRITER_PRIVS] = {
		1, /* type intel_pt */
		WRITER_PMU_TYPE,
		WRITER_SHIFT,
		WRITER_MULT,
		WRITER_ZERO,
		1,     /* cap_user_time_zero */
		0x400, /* tsc bit */
		0x800, /* noretcomp bit */
		3,     /* have_sched_switch */
		snapshot,
		1,	 /* per-cpu mmaps */
		0x200,	 /* mtc bit */
		0x3c000, /* mtc freq bits */
		266,
		2,
		2,  /* cyc bit */
		32, /* max non-turbo ratio */
		0,  /* filter string length */
	};

	writer_record(w, 70, info, 8 * (1 + (size_t)privs));
}

size_t writer_auxtrace(struct perf_writer *w, int cpu, int tid, u64 aux_offset, const u8 *data,
		       size_t n)
{
	static const u8 zeros[8];
	size_t padding = -n & 7, at;
	struct {
		u64 size, offset, reference;
		u32 idx, tid, cpu, reserved;
	} payload = {
		n + padding, aux_offset, 0x1000, cpu < 0 ? 0 : (u32)cpu, (u32)tid, (u32)cpu, 0
	};

	require(!w->zstd && sizeof(payload) + 8 == AUXTRACE_SIZE);
	if (w->index_count < VMPT_ARRAY_SIZE(w->index))
		w->index[w->index_count++] = w->size;
	writer_record(w, 71, &payload, sizeof(payload));
	at = w->size;
	writer_bytes(w, data, n);
	writer_bytes(w, zeros, padding);
	return at;
}

void writer_aux(struct perf_writer *w, int cpu, int tid, u64 aux_offset, u64 n, u64 flags)
{
	struct {
		u64 offset, size, flags;
		u32 pid, tid;
		u64 time;
		u32 cpu, reserved;
		u64 identifier;
	} payload = { aux_offset, n, flags, (u32)tid + 1000, (u32)tid, 1000, (u32)cpu, 0, 101 };

	writer_record(w, PERF_RECORD_AUX, &payload, sizeof(payload));
}

void writer_lost(struct perf_writer *w, u64 lost)
{
	u64 payload[7] = { 101, lost, 0, 1000, 0, 101 };

	writer_record(w, PERF_RECORD_LOST, payload, 8 * 6);
}

/* version, type zstd, level, ratio, mmap_len */
static const u32 compressed_feature[5] = { 1, 1, 1, 3, 528384 };

void writer_pack(struct perf_writer *w)
{
	u8 feature[32] = { 27 };

	memcpy(feature + 8, compressed_feature, sizeof(compressed_feature));
	if (w->pipe)
		writer_record(w, 80, feature, sizeof(feature));
	w->zstd = ZSTD_createCCtx();
	require(w->zstd);
	w->compressed = true;
}

void writer_flush(struct perf_writer *w, size_t piece, bool type2)
{
	size_t room = ZSTD_compressBound(w->plain_size) + 64, at, n;
	u8 *packed = malloc(room);
	ZSTD_inBuffer in = { w->plain, w->plain_size, 0 };
	ZSTD_outBuffer out = { packed, room, 0 };

	require(packed);
	/* perf flushes and never ends the frame */
	require(!ZSTD_compressStream2(w->zstd, &out, &in, ZSTD_e_flush));
	ZSTD_freeCCtx(w->zstd);
	w->zstd = NULL;
	for (at = 0; at < out.pos; at += n) {
		u8 record[UINT16_MAX];
		u64 size;

		n = out.pos - at < piece ? out.pos - at : piece;
		size = n;
		memset(record, 0, sizeof(record));
		memcpy(record, &size, 8);
		memcpy(record + (type2 ? 8 : 0), packed + at, n);
		writer_record(w, type2 ? 83 : 81, record, type2 ? 8 + (n + 7) / 8 * 8 : n);
	}
	free(packed);
	free(w->plain);
	w->plain = NULL;
	w->plain_room = 0;
	w->plain_size = 0;
}

void writer_finish(struct perf_writer *w)
{
	u64 data_size = w->size - w->records, at, features = 1ULL << 18;
	size_t i;

	if (w->pipe)
		return;
	if (w->compressed)
		features |= 1ULL << 27;
	if (w->kvm)
		features |= 1ULL << 1;
	memcpy(w->buf + 48, &data_size, 8);
	memcpy(w->buf + 72, &features, 8);
	at = w->size + (w->compressed ? 32 : 16);
	if (w->kvm) {
		at += 16;
		put64(w, at);
		put64(w, writer_tracing(NULL));
		at += writer_tracing(NULL);
	}
	put64(w, at);
	put64(w, 8 + 16 * w->index_count);
	if (w->compressed) {
		put64(w, at + 8 + 16 * w->index_count);
		put64(w, 20);
	}
	if (w->kvm)
		writer_tracing(w);
	put64(w, w->index_count);
	for (i = 0; i < w->index_count; i++) {
		put64(w, w->index[i]);
		put64(w, AUXTRACE_SIZE);
	}
	if (w->compressed)
		writer_bytes(w, compressed_feature, sizeof(compressed_feature));
}

void writer_two_cpus(struct perf_writer *w, const u8 *bytes, bool pipe, size_t compressed)
{
	writer_start(w, pipe);
	writer_info(w, false, WRITER_PRIVS);
	if (compressed)
		writer_pack(w);
	writer_aux(w, 1, 5, 0, 104, 0);
	writer_aux(w, 0, 5, 0, 80, PERF_AUX_FLAG_TRUNCATED);
	if (compressed)
		writer_flush(w, compressed, false);
	writer_auxtrace(w, 1, 5, 0, bytes, 104);
	writer_auxtrace(w, 0, 5, 0, bytes + 1000, 80);
	writer_auxtrace(w, 1, 5, 104, bytes + 104, 32);
	writer_auxtrace(w, 0, 5, 80, bytes + 1080, 48);
}

void writer_free(struct perf_writer *w)
{
	free(w->buf);
	free(w->plain);
	ZSTD_freeCCtx(w->zstd);
	*w = (struct perf_writer){ 0 };
}

void writer_save(const struct perf_writer *w, char *path)
{
	const char *dir = getenv("TMPDIR");
	int fd;

	snprintf(path, WRITER_PATH, "%s/vmpt-test-XXXXXX", dir && *dir ? dir : "/tmp");
	fd = mkstemp(path);
	require(fd >= 0);
	require(write(fd, w->buf, w->size) == (ssize_t)w->size);
	close(fd);
}
