// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * perf.data: compressed records. One zstd stream runs through all of them, and a
 * record may start in one and end in the next. What they may grow to is limited: other records are
 * kept in memory in proportion to the file, these could be a few bytes for millions of them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <zstd.h>

#include "decoder/trace/perf.h"

/* More than the longest record, so that a full buffer always holds a whole one. */
#define INFLATE_ROOM (256u << 10)

struct perf_inflate {
	ZSTD_DCtx *zstd;
	u64 packed, grown; /* bytes so far, before and after */
	size_t fill;
	u8 buf[INFLATE_ROOM];
};

static int inflate_start(struct perf_reader *r)
{
	struct perf_inflate *f = malloc(sizeof(*f));

	if (!f)
		return vmpt_perf_no_memory(r);
	f->packed = f->grown = 0;
	f->fill = 0;
	f->zstd = ZSTD_createDCtx();
	if (!f->zstd) {
		free(f);
		return vmpt_perf_no_memory(r);
	}
	r->inflate = f;
	return 0;
}

/* Take the whole records of the buffer, keep the rest. */
static int take_inflated(struct perf_reader *r, u64 offset)
{
	struct perf_inflate *f = r->inflate;
	size_t at = 0;
	int ret = 0;

	while (!ret && f->fill - at >= PERF_RECORD_HEADER) {
		u32 type = vmpt_load32(f->buf + at);
		u32 size = vmpt_load16(f->buf + at + 6);

		if (size < PERF_RECORD_HEADER)
			return vmpt_perf_stop(r, offset, "record of %u bytes among compressed ones",
					      size);
		if (size > f->fill - at)
			break;
		/* The first two do not nest; the data of the others would have to follow here. */
		if (type == PERF_USER_COMPRESSED || type == PERF_USER_COMPRESSED2 ||
		    type == PERF_USER_AUXTRACE || type == PERF_USER_TRACING_DATA)
			return vmpt_perf_stop(r, offset, "record of type %u among compressed ones",
					      type);
		/* A malformed record is noted and skipped. */
		ret = vmpt_perf_take_record(r, f->buf + at, size, offset);
		ret = ret < 0 ? ret : 0;
		at += size;
	}
	memmove(f->buf, f->buf + at, f->fill - at);
	f->fill -= at;
	return ret;
}

/* Inflate until all of @src is used and the buffer has room left: zstd then has no more. */
static int inflate(struct perf_reader *r, const u8 *src, u64 size, u64 offset)
{
	struct perf_inflate *f = r->inflate;
	ZSTD_inBuffer in = { src, size, 0 };
	bool more = true;
	int ret = 0;

	f->packed += size;
	while (!ret && more) {
		size_t in_before = in.pos, zret;
		ZSTD_outBuffer out = { f->buf, INFLATE_ROOM, f->fill };

		zret = ZSTD_decompressStream(f->zstd, &out, &in);
		if (ZSTD_isError(zret))
			return vmpt_perf_stop(r, offset, "compressed records are broken: %s",
					      ZSTD_getErrorName(zret));
		f->grown += out.pos - f->fill;
		if (f->grown > VMPT_INFLATE_FREE + VMPT_INFLATE_RATIO * f->packed)
			return vmpt_perf_stop(
				r, offset,
				"%" PRIu64 " bytes of compressed records grow to more than "
				"%u MiB and %u times their size: those after this are not read",
				f->packed, VMPT_INFLATE_FREE >> 20, VMPT_INFLATE_RATIO);
		more = (in.pos < in.size || out.pos == out.size) &&
		       (in.pos > in_before || out.pos > f->fill);
		f->fill = out.pos;
		ret = take_inflated(r, offset);
	}
	return ret;
}

int vmpt_perf_inflate_records(struct perf_reader *r, const u8 *src, u64 size, u64 offset)
{
	int ret = 0;

	if (r->inflate_broken)
		return 1;
	if (!r->inflate)
		ret = inflate_start(r);
	if (!ret)
		ret = inflate(r, src, size, offset);
	if (ret == 1) {
		/* It is one stream: the rest cannot be read either. */
		r->inflate_broken = true;
		r->inflate->fill = 0;
	}
	return ret;
}

size_t vmpt_perf_inflate_rest(const struct perf_reader *r)
{
	return r->inflate ? r->inflate->fill : 0;
}

void vmpt_perf_inflate_free(struct perf_reader *r)
{
	if (!r->inflate)
		return;
	ZSTD_freeDCtx(r->inflate->zstd);
	free(r->inflate);
	r->inflate = NULL;
}
