// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * perf.data: its header and the sections that it points to. There are two forms: the
 * file form has sections for attrs, records and features, the pipe form has a short
 * header and everything else as records.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "decoder/trace/perf.h"
#include "util/array.h"

/* struct perf_file_header, field by field */
enum {
	HEADER_SIZE = 8,
	HEADER_ATTR_SIZE = 16,
	HEADER_ATTRS = 24,
	HEADER_DATA = 40,
	HEADER_FLAGS = 72,
	HEADER_END = 104,
	PIPE_HEADER_END = 16,
	SECTION_SIZE = 16,
	ATTR_SIZE_MIN = PERF_ATTR_SIZE_VER0,
};

static const char magic_2[] = "PERFILE2";
static const char magic_1[] = "PERFFILE";

struct section {
	u64 offset, size;
};

int vmpt_perf_stop(struct perf_reader *r, u64 offset, const char *fmt, ...)
{
	va_list args;

	if (!r->info->incomplete && r->diag) {
		r->diag->offset = offset;
		va_start(args, fmt);
		vsnprintf(r->diag->text, sizeof(r->diag->text), fmt, args);
		va_end(args);
	}
	r->info->incomplete = true;
	return 1;
}

int vmpt_perf_no_memory(struct perf_reader *r)
{
	return vmpt_diag_fail(r->diag, VMPT_E_NOMEM, 0, "out of memory");
}

static bool is_swapped(const u8 *data, const char *magic)
{
	u64 v;

	memcpy(&v, magic, 8);
	return vmpt_load64(data) == __builtin_bswap64(v);
}

bool vmpt_perf_is(const u8 *data, u64 size)
{
	return size >= 8 && (!memcmp(data, magic_2, 8) || !memcmp(data, magic_1, 8) ||
			     is_swapped(data, magic_2) || is_swapped(data, magic_1));
}

/* Two records in a row of those that begin the pipe form: HEADER_ATTR, HEADER_FEATURE and others.
 */
static bool has_pipe_records(const u8 *data, u64 size)
{
	u64 at = PIPE_HEADER_END;
	unsigned int i, n;

	for (i = 0; i < 2; i++, at += n) {
		if (size - at < PERF_RECORD_HEADER)
			return false;
		n = vmpt_load16(data + at + 6);
		if (vmpt_load32(data + at) < PERF_USER_HEADER_ATTR ||
		    vmpt_load32(data + at) > UINT8_MAX || n <= PERF_RECORD_HEADER || n > size - at)
			return false;
	}
	return true;
}

/* All of the header but the magic is that of a perf.data. */
static bool has_header(const u8 *data, u64 size)
{
	u64 attr_size, attrs, attrs_size;

	if (size < PIPE_HEADER_END)
		return false;
	if (vmpt_load64(data + HEADER_SIZE) == PIPE_HEADER_END)
		return has_pipe_records(data, size);
	if (size < HEADER_END || vmpt_load64(data + HEADER_SIZE) != HEADER_END)
		return false;
	attr_size = vmpt_load64(data + HEADER_ATTR_SIZE);
	attrs = vmpt_load64(data + HEADER_ATTRS);
	attrs_size = vmpt_load64(data + HEADER_ATTRS + 8);
	return attr_size >= ATTR_SIZE_MIN + SECTION_SIZE && attr_size <= UINT16_MAX &&
	       attrs >= HEADER_END && attrs <= size && attrs_size <= size - attrs && attrs_size &&
	       attrs_size % attr_size == 0 && vmpt_load64(data + HEADER_DATA) <= size;
}

bool vmpt_perf_is_damaged(const u8 *data, u64 size)
{
	unsigned int i, same = 0;

	if (size < 8 || vmpt_perf_is(data, size))
		return false;
	for (i = 0; i < 8; i++)
		same += data[i] == (u8)magic_2[i];
	return same >= 6 || has_header(data, size);
}

static struct section section_at(const struct perf_reader *r, u64 offset)
{
	return (struct section){ vmpt_load64(r->file + offset), vmpt_load64(r->file + offset + 8) };
}

static bool in_file(const struct perf_reader *r, struct section s)
{
	return s.offset <= r->size && s.size <= r->size - s.offset;
}

int vmpt_perf_take_attr(struct perf_reader *r, const u8 *bytes, u64 size, const u8 *ids,
			u64 id_size)
{
	struct perf_event_attr attr = { 0 };

	if (vmpt_grow(&r->attrs, r->attr_count))
		return vmpt_perf_no_memory(r);
	/* A newer attr is longer, an older one shorter; all have the fields used here. */
	memcpy(&attr, bytes, size < sizeof(attr) ? size : sizeof(attr));
	r->attrs[r->attr_count++] = (struct perf_attr){
		.type = attr.type,
		.sample_id_all = attr.sample_id_all,
		.config = attr.config,
		.sample_type = attr.sample_type,
		.read_format = attr.read_format,
	};
	return r->events ? vmpt_perf_events_ids(r, ids, id_size) : 0;
}

int vmpt_perf_take_feature(struct perf_reader *r, u64 id, const u8 *data, u64 size, u64 offset)
{
	if (id == PERF_FEATURE_DIR_FORMAT)
		return vmpt_diag_fail(r->diag, VMPT_E_UNSUPPORTED, offset,
				      "perf.data in directory format (perf record --threads) "
				      "is not supported");
	if (id == PERF_FEATURE_TRACING_DATA && r->events)
		vmpt_perf_events_formats(r, data, size);
	if (id == PERF_FEATURE_BUILD_ID && r->record)
		return vmpt_perf_build_ids(r, data, size);
	if (id == PERF_FEATURE_AUXTRACE && size >= 8 && !r->info->pipe) {
		/* u64 count, then the places */
		r->index = data + 8;
		r->index_count = vmpt_load64(data);
		if (r->index_count > (size - 8) / PERF_INDEX_ENTRY)
			r->index_count = (size - 8) / PERF_INDEX_ENTRY;
	}
	if (id != PERF_FEATURE_COMPRESSED)
		return 0;
	/* u32 version, type, level, ratio, mmap_len */
	r->info->compressed = true;
	if (size < 20) {
		vmpt_perf_stop(r, offset, "feature COMPRESSED of %" PRIu64 " bytes", size);
		return 0;
	}
	if (vmpt_load32(data + 4) != PERF_COMPRESS_ZSTD)
		return vmpt_diag_fail(r->diag, VMPT_E_UNSUPPORTED, offset,
				      "records compressed by method %u, not zstd",
				      vmpt_load32(data + 4));
	return 0;
}

/* At @at, after the records, there is a section for each feature whose bit is set. */
static int read_features(struct perf_reader *r, u64 at)
{
	unsigned int bit;
	int ret = 0;

	for (bit = 0; !ret && bit < PERF_FEATURES; bit++) {
		struct section s = { 0 };

		if (!(r->file[HEADER_FLAGS + bit / 8] >> bit % 8 & 1))
			continue;
		if (in_file(r, (struct section){ at, SECTION_SIZE }))
			s = section_at(r, at);
		else
			vmpt_perf_stop(r, r->size, "the file ends before its features");
		if (!in_file(r, s)) {
			vmpt_perf_stop(r, at, "feature %u lies past the end of the file", bit);
			s = (struct section){ 0 };
		}
		ret = vmpt_perf_take_feature(r, bit, r->file + s.offset, s.size, at);
		at += SECTION_SIZE;
	}
	return ret;
}

static int read_attrs(struct perf_reader *r)
{
	u64 attr_size = vmpt_load64(r->file + HEADER_ATTR_SIZE);
	struct section attrs = section_at(r, HEADER_ATTRS);
	u64 at;
	int ret = 0;

	/* Each is a struct perf_event_attr and the section of its ids. */
	if (attr_size < ATTR_SIZE_MIN + SECTION_SIZE || attr_size > UINT16_MAX)
		return vmpt_diag_fail(r->diag, VMPT_E_FORMAT, HEADER_ATTR_SIZE,
				      "attributes of %" PRIu64 " bytes each", attr_size);
	if (!in_file(r, attrs))
		return vmpt_diag_fail(r->diag, VMPT_E_FORMAT, HEADER_ATTRS,
				      "the attributes (%" PRIu64 " bytes at %" PRIu64
				      ") lie past the end of the file at %" PRIu64,
				      attrs.size, attrs.offset, r->size);
	for (at = 0; !ret && attrs.size - at >= attr_size; at += attr_size) {
		struct section ids = section_at(r, attrs.offset + at + attr_size - SECTION_SIZE);

		if (!in_file(r, ids))
			ids = (struct section){ 0 };
		ret = vmpt_perf_take_attr(r, r->file + attrs.offset + at, attr_size - SECTION_SIZE,
					  r->file + ids.offset, ids.size);
	}
	return ret;
}

static int read_file_header(struct perf_reader *r)
{
	u64 header_size = vmpt_load64(r->file + HEADER_SIZE);
	struct section data;
	int ret;

	/* Before Linux 2.6.35 the header ended without the feature bits. */
	if (header_size != HEADER_END && header_size != HEADER_FLAGS)
		return vmpt_diag_fail(r->diag, VMPT_E_UNSUPPORTED, HEADER_SIZE,
				      "a perf.data header of %" PRIu64 " bytes", header_size);
	if (r->size < header_size)
		return vmpt_diag_fail(r->diag, VMPT_E_FORMAT, r->size,
				      "the file ends inside its header");
	ret = read_attrs(r);
	if (ret)
		return ret;
	data = section_at(r, HEADER_DATA);
	r->records = data.offset;
	r->records_end = r->size;
	if (data.offset > r->size) {
		r->records = r->size;
		vmpt_perf_stop(r, HEADER_DATA, "the records start past the end of the file");
	} else if (!data.size) {
		/* perf writes the size last. */
		vmpt_perf_stop(r, HEADER_DATA, "perf did not finish this file");
	} else if (!in_file(r, data)) {
		vmpt_perf_stop(r, r->size,
			       "the file ends inside its records, %" PRIu64 " bytes short",
			       data.size - (r->size - data.offset));
	} else {
		r->records_end = data.offset + data.size;
	}
	return header_size == HEADER_END ? read_features(r, r->records_end) : 0;
}

static int read_header(struct perf_reader *r)
{
	if (r->size < 8 || !vmpt_perf_is(r->file, r->size))
		return vmpt_diag_fail(r->diag, VMPT_E_FORMAT, 0,
				      "no perf.data: it does not start with PERFILE2");
	if (!memcmp(r->file, magic_1, 8) || is_swapped(r->file, magic_1))
		return vmpt_diag_fail(r->diag, VMPT_E_UNSUPPORTED, 0,
				      "perf.data of version 1 (Linux before 2.6.34)");
	if (is_swapped(r->file, magic_2))
		return vmpt_diag_fail(r->diag, VMPT_E_UNSUPPORTED, 0,
				      "perf.data of a big-endian machine");
	if (r->size < PIPE_HEADER_END)
		return vmpt_diag_fail(r->diag, VMPT_E_FORMAT, r->size,
				      "the file ends inside its header");
	if (vmpt_load64(r->file + HEADER_SIZE) != PIPE_HEADER_END)
		return read_file_header(r);
	r->info->pipe = true;
	r->records = PIPE_HEADER_END;
	r->records_end = r->size;
	return 0;
}

/* All records are read: check that there was Intel PT data. */
static int check_pt(struct perf_reader *r)
{
	char why[sizeof(r->diag->text)];
	size_t i;

	if (r->has_pt_info && !r->part_count)
		for (i = 0; i < r->attr_count; i++)
			if (r->attrs[i].sample_type & PERF_SAMPLE_AUX)
				return vmpt_diag_fail(r->diag, VMPT_E_UNSUPPORTED, 0,
						      "the trace lies in samples (perf record "
						      "--aux-sample), which is not supported");
	if (r->has_pt_info)
		return 0;
	if (r->has_info)
		return vmpt_diag_fail(r->diag, VMPT_E_NO_PT, 0,
				      "its AUX trace is of type %u, not Intel PT", r->aux_type);
	if (r->info->incomplete && r->diag) {
		memcpy(why, r->diag->text, sizeof(why));
		return vmpt_diag_fail(r->diag, VMPT_E_NO_PT, r->diag->offset,
				      "no Intel PT trace in what can be read: %.180s", why);
	}
	return vmpt_diag_fail(r->diag, VMPT_E_NO_PT, 0, "this perf.data has no Intel PT trace");
}

int vmpt_perf_read_file(struct perf_reader *r)
{
	int ret = read_header(r);

	return ret ? ret : vmpt_perf_read_records(r);
}

int vmpt_perf_read(struct vmpt_trace *trace, const u8 *file, u64 size, struct vmpt_diag *diag)
{
	struct perf_reader r = {
		.trace = trace,
		.info = &trace->info,
		.diag = diag,
		.file = file,
		.size = size,
		.pt_attr = SIZE_MAX,
	};
	int ret = vmpt_perf_read_file(&r);

	if (!ret)
		ret = check_pt(&r);
	if (!ret)
		ret = vmpt_perf_make_streams(&r);
	vmpt_perf_inflate_free(&r);
	free(r.attrs);
	free(r.parts);
	free(r.marks);
	return ret;
}
