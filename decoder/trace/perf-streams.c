// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * perf.data: streams of the trace buffers. The buffers of a CPU or thread are
 * concatenated in the order of the file; there is a gap where one does not continue
 * the one before it, and where AUX records report lost data.
 */
#include <stdlib.h>
#include <unistd.h>

#include "decoder/trace/perf.h"
#include "util/array.h"
#include "util/search.h"

#define PAGE 4096

/* A stream under construction. */
struct stream_builder {
	struct vmpt_gap *gaps;
	size_t gap_count;
	struct vmpt_extent *extents;
	size_t extent_count;
	u64 size;
};

/* By CPU and thread, then by order in the file. */
static int by_owner(const void *x, const void *y)
{
	const struct perf_part *a = x, *b = y;

	if (a->cpu != b->cpu)
		return a->cpu < b->cpu ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return a->file_offset < b->file_offset ? -1 : a->file_offset > b->file_offset;
}

static int by_aux_offset(const void *x, const void *y)
{
	const struct perf_part *a = x, *b = y;

	if (a->aux_offset != b->aux_offset)
		return a->aux_offset < b->aux_offset ? -1 : 1;
	return a->file_offset < b->file_offset ? -1 : a->file_offset > b->file_offset;
}

static int by_queue(const void *x, const void *y)
{
	const struct perf_mark *a = x, *b = y;

	return a->queue < b->queue ? -1 : a->queue > b->queue;
}

static int by_offset(const void *x, const void *y)
{
	const struct vmpt_gap *a = x, *b = y;

	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static bool same_owner(const struct perf_part *a, const struct perf_part *b)
{
	return a->cpu == b->cpu && a->tid == b->tid;
}

static int add_gap(struct perf_reader *r, struct stream_builder *s, u64 offset, u32 flags)
{
	if (vmpt_grow(&s->gaps, s->gap_count))
		return vmpt_perf_no_memory(r);
	s->gaps[s->gap_count++] = (struct vmpt_gap){ .offset = offset, .flags = flags };
	return 0;
}

static int add_extent(struct perf_reader *r, struct stream_builder *s, const struct perf_part *p)
{
	if (vmpt_grow(&s->extents, s->extent_count))
		return vmpt_perf_no_memory(r);
	s->extents[s->extent_count++] = (struct vmpt_extent){
		.offset = s->size, .size = p->used, .file_offset = p->file_offset + p->skip
	};
	s->size += p->used;
	return 0;
}

/* Remove padding from the end of the stream, which is the end of @p. */
static void trim(struct stream_builder *s, struct perf_part *p, u64 bytes)
{
	if (!bytes || p->used < bytes || !s->extent_count)
		return;
	p->used -= bytes;
	s->size -= bytes;
	s->extents[s->extent_count - 1].size -= bytes;
	if (!p->used)
		s->extent_count--;
}

/* Whether the last @n bytes of @p are padding: zeros, fewer than 8. */
static bool is_padding(const struct perf_reader *r, const struct perf_part *p, u64 n)
{
	const u8 *end = r->file + p->file_offset + p->size;
	u64 i;

	if (n > PERF_PADDING_MAX || n > p->size)
		return false;
	for (i = 1; i <= n; i++)
		if (end[-(s64)i])
			return false;
	return true;
}

/* Join @p to @last: leave bytes out of both where needed; returns the flags of the gap between. */
static u32 join(const struct perf_reader *r, struct stream_builder *s, struct perf_part *last,
		struct perf_part *p)
{
	u64 last_end = last->aux_offset + last->size;
	/* Bytes of @last after the start of @p; beyond 2^63 @p is ahead */
	u64 over = last_end - p->aux_offset;
	struct vmpt_overlap o;

	if (last->damage != p->damage)
		return VMPT_GAP_LOST;
	if (r->info->snapshot) {
		if (!vmpt_snapshot_overlap(r->file + last->file_offset, last->size,
					   r->file + p->file_offset, p->size, over, &o))
			return VMPT_GAP_SNAPSHOT;
		trim(s, last, o.trim);
		p->skip = o.drop;
		p->used = p->size - o.drop;
		return 0;
	}
	if (!over)
		return 0;
	if (!is_padding(r, last, over))
		return VMPT_GAP_LOST;
	trim(s, last, over);
	return 0;
}

static int put_parts(struct perf_reader *r, struct stream_builder *s, struct perf_part *parts,
		     size_t n)
{
	u32 flags;
	size_t i;
	int ret;

	for (i = 0; i < n; i++) {
		struct perf_part *p = &parts[i];

		p->used = p->size;
		flags = i ? join(r, s, &parts[i - 1], p) : 0;
		p->stream_offset = s->size;
		ret = flags ? add_gap(r, s, s->size, flags) : 0;
		if (!ret && p->used)
			ret = add_extent(r, s, p);
		if (ret)
			return ret;
	}
	return 0;
}

/* The stream offset of byte @aux_offset of the AUX area, or of the next byte that exists. */
static u64 stream_offset(const struct perf_part *parts, size_t n, u64 aux_offset)
{
	const struct perf_part *p;
	u64 in;

	/* The last part that starts at or before it; parts are by AUX offset here */
	n = vmpt_search(i, 0, n, parts[i].aux_offset <= aux_offset);
	if (!n)
		return parts[0].stream_offset;
	p = &parts[n - 1];
	in = aux_offset - p->aux_offset;
	if (in > p->skip + p->used)
		in = p->skip + p->used;
	/* Bytes left out repeat the end of the stream before them. */
	return p->stream_offset + in < p->skip ? 0 : p->stream_offset + in - p->skip;
}

/* Sort gaps by offset, merge those at the same one, and drop those at the stream's ends. */
static void tidy_gaps(struct stream_builder *s)
{
	size_t i, n = 0;

	if (s->gap_count)
		qsort(s->gaps, s->gap_count, sizeof(*s->gaps), by_offset);
	for (i = 0; i < s->gap_count; i++) {
		struct vmpt_gap gap = s->gaps[i];

		if (!gap.offset || gap.offset >= s->size)
			continue;
		if (n && s->gaps[n - 1].offset == gap.offset)
			s->gaps[n - 1].flags |= gap.flags;
		else
			s->gaps[n++] = gap;
	}
	s->gap_count = n;
}

/* The stream of @n parts of one owner; @marks are those of the same. */
static int make_stream(struct perf_reader *r, struct perf_part *parts, size_t n,
		       const struct perf_mark *marks, size_t mark_count)
{
	int cpu = parts[0].cpu, tid = parts[0].tid;
	struct stream_builder s = { 0 };
	struct vmpt_stream stream;
	size_t i;
	int ret = put_parts(r, &s, parts, n);

	if (mark_count)
		qsort(parts, n, sizeof(*parts), by_aux_offset);
	for (i = 0; !ret && i < mark_count; i++)
		ret = add_gap(r, &s, stream_offset(parts, n, marks[i].aux_offset), marks[i].flags);
	if (ret) {
		free(s.gaps);
		free(s.extents);
		return ret;
	}
	tidy_gaps(&s);
	stream = (struct vmpt_stream){
		.data = r->file + (s.extent_count ? s.extents[0].file_offset : 0),
		.size = s.size,
		.cpu = cpu,
		.tid = tid,
		.gaps = s.gaps,
		.gap_count = s.gap_count,
		.extents = s.extents,
		.extent_count = s.extent_count,
	};
	return vmpt_trace_take_stream(r->trace, &stream, r->diag);
}

/* ---- owners of marks ---- */

/* The first parts of the queues, sorted by owner. */
struct queues {
	size_t *first;
	size_t count;
};

static bool find_queue(const struct perf_reader *r, const struct queues *q, int cpu, int tid,
		       size_t *found)
{
	struct perf_part key = { .cpu = cpu, .tid = tid };
	size_t n = vmpt_search(i, 0, q->count, by_owner(&r->parts[q->first[i]], &key) < 0);

	if (n == q->count || !same_owner(&r->parts[q->first[n]], &key))
		return false;
	*found = n;
	return true;
}

/* Give each mark its queue; those without one go last. */
static void place_marks(struct perf_reader *r, const struct queues *q)
{
	size_t i;

	for (i = 0; i < r->mark_count; i++) {
		struct perf_mark *m = &r->marks[i];

		if (m->cpu >= 0 && find_queue(r, q, m->cpu, -1, &m->queue))
			continue;
		if (m->tid >= 0 && find_queue(r, q, -1, m->tid, &m->queue))
			continue;
		m->queue = q->count;
		if (m->cpu >= 0 || m->tid >= 0)
			continue;
		if (q->count == 1)
			m->queue = 0;
		else
			vmpt_perf_stop(r, 0, "an AUX record does not say whose data is lost");
	}
	if (r->mark_count)
		qsort(r->marks, r->mark_count, sizeof(*r->marks), by_queue);
}

/* ---- streams of several parts ---- */

static bool is_in_file(const struct vmpt_stream *stream)
{
	return stream->extent_count == 1;
}

static int copy_stream(struct perf_reader *r, const struct vmpt_stream *stream, int fd)
{
	static const u8 zeros[PAGE];
	size_t i;
	int ret = 0;

	for (i = 0; !ret && i < stream->extent_count; i++)
		ret = vmpt_temp_write(fd, r->file + stream->extents[i].file_offset,
				      stream->extents[i].size, r->diag);
	/* The next stream starts a page. */
	if (!ret && stream->size % PAGE)
		ret = vmpt_temp_write(fd, zeros, PAGE - stream->size % PAGE, r->diag);
	return ret;
}

/* Concatenate the parts of such streams in one temporary file. */
static int join_streams(struct perf_reader *r)
{
	struct vmpt_trace *t = r->trace;
	struct vmpt_map map;
	u64 size = 0;
	size_t i;
	int fd = -1, ret = 0;

	for (i = 0; !ret && i < t->stream_count; i++) {
		const struct vmpt_stream *stream = &t->streams[i];

		if (is_in_file(stream))
			continue;
		if (fd < 0)
			fd = vmpt_temp_create(r->diag);
		ret = fd < 0 ? fd : copy_stream(r, stream, fd);
		size += (stream->size + PAGE - 1) / PAGE * PAGE;
	}
	if (!size)
		return 0;
	if (!ret)
		ret = vmpt_temp_map(&map, fd, size, r->diag);
	if (fd >= 0)
		close(fd);
	if (!ret)
		ret = vmpt_trace_take_map(t, &map, r->diag);
	for (i = 0, size = 0; !ret && i < t->stream_count; i++) {
		struct vmpt_stream *stream = &t->streams[i];

		if (is_in_file(stream))
			continue;
		stream->data = map.data + size;
		size += (stream->size + PAGE - 1) / PAGE * PAGE;
	}
	return ret;
}

static int find_queues(struct perf_reader *r, struct queues *q)
{
	size_t i;

	for (i = 0; i < r->part_count; i++) {
		if (i && same_owner(&r->parts[i - 1], &r->parts[i]))
			continue;
		if (vmpt_grow(&q->first, q->count))
			return vmpt_perf_no_memory(r);
		q->first[q->count++] = i;
	}
	return 0;
}

int vmpt_perf_make_streams(struct perf_reader *r)
{
	struct queues q = { 0 };
	size_t i, mark = 0;
	int ret;

	if (!r->part_count)
		return 0;
	qsort(r->parts, r->part_count, sizeof(*r->parts), by_owner);
	ret = find_queues(r, &q);
	if (!ret && q.count > VMPT_PERF_STREAMS) {
		vmpt_perf_stop(r, r->parts[q.first[VMPT_PERF_STREAMS]].file_offset,
			       "it has traces of %zu CPUs and threads: only %u of them are read",
			       q.count, VMPT_PERF_STREAMS);
		q.count = VMPT_PERF_STREAMS;
		r->part_count = q.first[q.count];
	}
	if (!ret)
		place_marks(r, &q);
	for (i = 0; !ret && i < q.count; i++) {
		size_t end = i + 1 < q.count ? q.first[i + 1] : r->part_count;
		size_t marks = mark;

		while (mark < r->mark_count && r->marks[mark].queue == i)
			mark++;
		ret = make_stream(r, &r->parts[q.first[i]], end - q.first[i],
				  mark > marks ? &r->marks[marks] : NULL, mark - marks);
	}
	free(q.first);
	return ret ? ret : join_streams(r);
}
