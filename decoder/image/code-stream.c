// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Reads a code stream: chunk by chunk, past what is damaged. Nothing in it is trusted: each chunk
 * has a sum, each record is checked, and memory is at most 30 times the file's size.
 */
#include <inttypes.h>

#include "decoder/image/code-stream.h"
#include "util/code-stream.h"
#include "util/search.h"

/* What is missing. */
struct damage {
	u64 bytes, first; /* that are no chunk, and where the first of them is */
	u64 chunks;	  /* that are not in the file */
	u64 limit;	  /* TSC after which there was no room; 0: none */
	bool has_limit;
};

struct reader {
	struct code_stream *stream;
	const u8 *at, *end; /* records of the chunk */
	u64 time, from;	    /* time: not before .from, that of the chunk before */
	/* that the next distance is from */
	u64 physical, cr3, linear, page;
	u64 wasted; /* bytes of what looked like chunks */
	struct damage damage;
};

/* ---- records ---- */

static bool take(struct reader *r, u64 *v)
{
	return code_take(&r->at, r->end, v);
}

/* Adds a signed distance. */
static bool move(struct reader *r, u64 *v)
{
	u64 distance;

	if (!code_take_signed(&r->at, r->end, &distance))
		return false;
	*v += distance;
	return true;
}

static u32 machine(const struct code_stream *s)
{
	return (u32)s->starts;
}

/* 1: taken, 0: broken, or -VMPT_E_NOMEM. */
static int read_start(struct reader *r)
{
	struct code_stream *s = r->stream;
	u64 n;

	if (!take(r, &n) || n > CODE_NAME_MAX || n > (size_t)(r->end - r->at))
		return 0;
	r->at += n;
	r->from = 0;
	s->complete = false;
	if (vmpt_grow(&s->start, s->starts))
		return -VMPT_E_NOMEM;
	s->start[s->starts++] = r->time;
	return 1;
}

static int read_bytes(struct reader *r)
{
	struct code_stream *s = r->stream;
	u64 n;

	if (!move(r, &r->physical) || !take(r, &n) || !n ||
	    n > CODE_PAGE - r->physical % CODE_PAGE || n > (size_t)(r->end - r->at))
		return 0;
	if (vmpt_grow(&s->bytes, s->bytes_count))
		return -VMPT_E_NOMEM;
	s->bytes[s->bytes_count++] = (struct stream_bytes){ .page = r->physical / CODE_PAGE,
							    .time = r->time,
							    .bytes = r->at,
							    .machine = machine(s),
							    .at = r->physical % CODE_PAGE,
							    .size = (u16)n };
	r->physical += n;
	r->at += n;
	return 1;
}

static int read_map(struct reader *r, u8 mode, const u8 *order)
{
	struct code_stream *s = r->stream;

	if (!move(r, &r->cr3) || !move(r, &r->linear) || !move(r, &r->page) || r->cr3 >> 59 ||
	    r->linear >> 52 || r->page >> 52)
		return 0;
	if (vmpt_grow(&s->map, s->map_count))
		return -VMPT_E_NOMEM;
	s->map[s->map_count++] = (struct stream_map){ .linear = r->linear,
						      .cr3 = r->cr3 << 5,
						      .page = r->page,
						      .time = r->time,
						      .order = order,
						      .machine = machine(s),
						      .mode = mode };
	return 1;
}

static int read_run(struct reader *r)
{
	struct code_stream *s = r->stream;
	u64 vcpu, vmcs, age, length, moved, end;

	if (!take(r, &vcpu) || !take(r, &vmcs) || !take(r, &age) || !take(r, &length) ||
	    !take(r, &moved))
		return 0;
	end = r->time - age;
	if (vmcs >> 52 || age > r->time || length > end || moved > ~0ULL - end)
		return 0;
	if (vmpt_grow(&s->run, s->run_count))
		return -VMPT_E_NOMEM;
	s->run[s->run_count++] = (struct stream_run){ vmcs << 12, end - length, end, moved };
	return 1;
}

static int read_end(struct reader *r)
{
	u64 why;

	if (!take(r, &why) || why >= CODE_ENDS)
		return 0;
	r->stream->complete = true;
	if (why == CODE_END_LIMIT) {
		r->damage.has_limit = true;
		r->damage.limit = r->time;
	}
	return 1;
}

static int read_record(struct reader *r)
{
	const u8 *order = r->at;
	u8 kind = *r->at++;
	u64 distance;

	if (!take(r, &distance))
		return 0;
	r->time += distance;
	/* Time does not go back, but from one machine to the next. */
	if (kind != CODE_START && r->time < r->from)
		r->time = r->from;
	r->from = r->time;
	switch (kind) {
	case CODE_START:
		return read_start(r);
	case CODE_BYTES:
		return read_bytes(r);
	case CODE_MAP_16:
		return read_map(r, 16, order);
	case CODE_MAP_32:
		return read_map(r, 32, order);
	case CODE_MAP_64:
		return read_map(r, 64, order);
	case CODE_RUN:
		return read_run(r);
	case CODE_END:
		return read_end(r);
	default:
		return 0;
	}
}

/* ---- chunks ---- */

/* The head of the chunk at @at, if there is one. */
static bool is_chunk(struct reader *r, const u8 *at, u64 size, struct code_head *head)
{
	if (size < sizeof(*head) || memcmp(at, CODE_MAGIC, CODE_MAGIC_SIZE) != 0)
		return false;
	memcpy(head, at, sizeof(*head));
	if (!head->size || head->size > CODE_CHUNK || head->size > size - sizeof(*head))
		return false;
	if (head->sum == code_sum(head, at + sizeof(*head), head->size))
		return true;
	r->wasted += head->size;
	return false;
}

static void damaged(struct reader *r, u64 offset, u64 bytes)
{
	if (!r->damage.bytes)
		r->damage.first = offset;
	r->damage.bytes += bytes;
}

/* The records of a chunk at @at of @data; those after a broken one are lost. */
static int read_chunk(struct reader *r, const u8 *data, u64 at, const struct code_head *head)
{
	int ret = 1;

	r->at = data + at + sizeof(*head);
	r->end = r->at + head->size;
	r->time = r->physical = r->cr3 = r->linear = r->page = 0;
	while (r->at < r->end && ret > 0) {
		u64 offset = (u64)(r->at - data);

		ret = read_record(r);
		if (!ret)
			damaged(r, offset, (u64)(r->end - data) - offset);
	}
	return ret < 0 ? ret : 0;
}

static int read_chunks(struct reader *r, const u8 *data, u64 size)
{
	struct code_head head;
	u32 number = 0;
	u64 at = 0, from;
	int ret = 0;

	while (at < size && !ret) {
		for (from = at; at < size && !is_chunk(r, data + at, size - at, &head);) {
			const u8 *next =
				memmem(data + at + 1, size - at - 1, CODE_MAGIC, CODE_MAGIC_SIZE);

			at = next && r->wasted / 16 <= size + CODE_CHUNK ? (u64)(next - data)
									 : size;
		}
		if (at > from)
			damaged(r, from, at - from);
		if (at == size)
			break;
		/* 0: of the next machine. */
		if (head.number > number)
			r->damage.chunks += head.number - number;
		number = head.number + 1;
		ret = read_chunk(r, data, at, &head);
		at += sizeof(head) + head.size;
	}
	return ret;
}

/* ---- the lists ---- */

#define BY(a, b)                                   \
	do {                                       \
		if ((a) != (b))                    \
			return (a) < (b) ? -1 : 1; \
	} while (0)

static int by_page(const void *a, const void *b)
{
	const struct stream_bytes *x = a, *y = b;

	BY(x->machine, y->machine);
	BY(x->page, y->page);
	BY(x->bytes, y->bytes);
	return 0;
}

static int by_linear(const void *a, const void *b)
{
	const struct stream_map *x = a, *y = b;

	BY(x->linear, y->linear);
	BY(x->mode, y->mode);
	BY(x->cr3, y->cr3);
	BY(x->order, y->order);
	return 0;
}

static int by_vmcs(const void *a, const void *b)
{
	const struct stream_run *x = a, *y = b;

	BY(x->vmcs, y->vmcs);
	BY(x->end + x->moved, y->end + y->moved);
	BY(x->begin, y->begin);
	return 0;
}

static void sort(void *list, size_t count, size_t size, int (*by)(const void *, const void *))
{
	if (count)
		qsort(list, count, size, by);
}

static int list_pages(struct code_stream *s)
{
	size_t i;

	for (i = 0; i < s->bytes_count; i++) {
		const struct stream_bytes *b = &s->bytes[i];
		struct stream_page *p = s->page_count ? &s->page[s->page_count - 1] : NULL;

		if (p && p->number == b->page && p->machine == b->machine) {
			p->count++;
			continue;
		}
		if (vmpt_grow(&s->page, s->page_count))
			return -VMPT_E_NOMEM;
		s->page[s->page_count++] = (struct stream_page){
			.number = b->page, .machine = b->machine, .first = i, .count = 1
		};
	}
	return 0;
}

static bool maps_in_order(const struct code_stream *s)
{
	const struct stream_map *m;

	for (m = s->map; s->map_count && m + 1 < s->map + s->map_count; m++)
		if (m[0].linear == m[1].linear && m[0].mode == m[1].mode && m[0].cr3 == m[1].cr3 &&
		    m[0].time > m[1].time)
			return false;
	return true;
}

static void report(const struct reader *r, struct vmpt_diag *diag)
{
	const struct damage *d = &r->damage;

	if (d->bytes || d->chunks)
		vmpt_diag_fail(diag, VMPT_E_FORMAT, d->first,
			       "%" PRIu64 " bytes of the code stream are damaged, %" PRIu64
			       " chunks are missing: code is missing",
			       d->bytes, d->chunks);
	else if (d->has_limit)
		vmpt_diag_fail(diag, VMPT_E_TRUNCATED, 0,
			       "the code stream had its largest size at TSC 0x%" PRIx64
			       ": code that was first executed later is missing",
			       d->limit);
	else if (!r->stream->complete)
		vmpt_diag_fail(diag, VMPT_E_TRUNCATED, 0,
			       "the code stream has no end: QEMU was killed, or still runs");
}

bool vmpt_code_stream_is(const u8 *data, u64 size)
{
	return size >= CODE_MAGIC_SIZE && !memcmp(data, CODE_MAGIC, CODE_MAGIC_SIZE);
}

int vmpt_code_stream_open(struct code_stream **stream, const u8 *data, u64 size,
			  struct vmpt_diag *diag)
{
	struct reader r = { .stream = calloc(1, sizeof(*r.stream)) };
	struct code_stream *s = r.stream;
	int ret = s ? read_chunks(&r, data, size) : -VMPT_E_NOMEM;

	if (!ret) {
		sort(s->bytes, s->bytes_count, sizeof(*s->bytes), by_page);
		sort(s->map, s->map_count, sizeof(*s->map), by_linear);
		sort(s->run, s->run_count, sizeof(*s->run), by_vmcs);
		s->map_order = maps_in_order(s);
		ret = list_pages(s);
	}
	if (ret) {
		vmpt_code_stream_close(s);
		return vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	}
	if (!s->starts && !s->bytes_count && !s->map_count) {
		vmpt_code_stream_close(s);
		return vmpt_diag_fail(diag, VMPT_E_FORMAT, 0,
				      "not a code stream, or all of it is "
				      "damaged");
	}
	report(&r, diag);
	*stream = s;
	return 0;
}

void vmpt_code_stream_close(struct code_stream *s)
{
	size_t i, v;

	if (!s)
		return;
	for (i = 0; i < s->page_count; i++) {
		for (v = 0; v < s->page[i].versions; v++)
			free(s->page[i].version[v].made);
		free(s->page[i].version);
	}
	free(s->page);
	free(s->bytes);
	free(s->map);
	free(s->run);
	free(s->start);
	free(s);
}
