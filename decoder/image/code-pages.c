// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Pages from a code stream: versions and alternatives; see code-stream.h. */
#include "decoder/image/code-stream.h"
#include "util/search.h"

/* Of all pages: 1.2 GB. */
#define MADE_MAX (1U << 18)

/* ---- versions of a page ---- */

static bool knows(const struct made_page *m, unsigned int n)
{
	return m->valid[n / 64] >> n % 64 & 1;
}

/* Adds @b to a page. True: a byte of it was known, and another one. */
static bool add(struct made_page *m, const struct stream_bytes *b)
{
	bool changed = false;
	unsigned int i, n;

	for (i = 0, n = b->at; i < b->size; i++, n++) {
		changed |= knows(m, n) && m->bytes[n] != b->bytes[i];
		m->bytes[n] = b->bytes[i];
		m->valid[n / 64] |= 1ULL << n % 64;
	}
	return changed;
}

static int add_version(struct stream_page *p, u64 time, size_t first)
{
	if (vmpt_grow(&p->version, p->versions))
		return -VMPT_E_NOMEM;
	p->version[p->versions++] = (struct stream_version){ .time = time, .first = first };
	return 0;
}

/* Once for each page. The first version holds from the beginning: nothing else ran before. */
static int count_versions(const struct code_stream *s, struct stream_page *p)
{
	struct made_page *m;
	size_t i;
	int ret;

	if (p->versions)
		return 0;
	m = calloc(1, sizeof(*m));
	ret = m ? add_version(p, 0, p->first) : -VMPT_E_NOMEM;
	for (i = p->first; i < p->first + p->count && !ret; i++)
		if (add(m, &s->bytes[i]))
			ret = add_version(p, s->bytes[i].time, i);
	free(m);
	if (ret) {
		free(p->version);
		p->version = NULL;
		p->versions = 0;
	}
	return ret;
}

/*
 * Version @v of @p: what was known before the next one began. Made of the one before if that is
 * made, so that a walk through all of them takes no longer than one of their records.
 */
static int make_version(struct code_stream *s, struct stream_page *p, size_t v)
{
	struct stream_version *version = &p->version[v];
	size_t i, end = v + 1 < p->versions ? version[1].first : p->first + p->count;
	struct made_page *m;

	if (version->made)
		return 1;
	if (s->made == MADE_MAX)
		return 0;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -VMPT_E_NOMEM;
	for (i = v; i && !p->version[i - 1].made; i--)
		;
	if (i)
		*m = *p->version[i - 1].made;
	for (i = p->version[i].first; i < end; i++)
		add(m, &s->bytes[i]);
	version->made = m;
	s->made++;
	return 1;
}

static struct stream_page *find_page(const struct code_stream *s, u32 machine, u64 number)
{
	size_t i = vmpt_search(k, 0, s->page_count,
			       s->page[k].machine < machine || (s->page[k].machine == machine &&
								s->page[k].number < number));

	if (i == s->page_count || s->page[i].machine != machine || s->page[i].number != number)
		return NULL;
	return &s->page[i];
}

/* ---- times ---- */

/* The runs of a VMCS: [*first, end). */
static size_t find_runs(const struct code_stream *s, const struct vmpt_owner *owner, size_t *first)
{
	*first = 0;
	if (owner->kind != VMPT_OWNER_VM)
		return 0;
	*first = vmpt_search(i, 0, s->run_count, s->run[i].vmcs < owner->vmcs);
	return vmpt_search(i, *first, s->run_count, s->run[i].vmcs <= owner->vmcs);
}

/*
 * When what the trace has at TSC @tsc was executed. Between two runs that are noted there was
 * nothing new: all is known that was at the end of the first.
 */
static u64 to_executed(const struct code_stream *s, const struct vmpt_owner *owner, u64 tsc)
{
	size_t first, end = find_runs(s, owner, &first), i;
	const struct stream_run *run;

	if (first == end)
		return tsc;
	i = vmpt_search(k, first, end, s->run[k].end + s->run[k].moved < tsc);
	run = &s->run[i];
	if (i < end && tsc >= run->begin + run->moved)
		return tsc - run->moved;
	if (i > first && (i < end || s->complete))
		return run[-1].end;
	return i < end ? run->begin : ~0ULL;
}

/* The other way: where the trace is at @time. */
static u64 to_trace(const struct code_stream *s, const struct vmpt_owner *owner, u64 time)
{
	size_t first, end = find_runs(s, owner, &first), i;
	const struct stream_run *run;

	if (first == end || !time || time == ~0ULL)
		return time;
	/* By the trace's time, and so by their own, as runs keep their order. */
	i = vmpt_search(k, first, end, s->run[k].end < time);
	run = &s->run[i];
	if (i == end)
		return run[-1].end + run[-1].moved;
	return (time > run->begin ? time : run->begin) + run->moved;
}

/* ---- alternatives of a linear page ---- */

struct alternative {
	struct stream_page *page;
	size_t version;
	u64 from; /* time */
};

/* Walks the mappings in [at, end), and the versions of each. */
struct walk {
	struct code_stream *stream;
	size_t at, end, version;
	int err;
};

/* When map @i ceased: the next one of its linear page, or the end of its machine. */
static u64 map_end(const struct walk *w, size_t i)
{
	const struct code_stream *s = w->stream;
	const struct stream_map *m = &s->map[i];
	u64 end = m->machine < s->starts ? s->start[m->machine] : ~0ULL;

	if (i + 1 < w->end && m[1].machine == m->machine)
		end = m[1].time;
	return end;
}

/* The next one. A version that ended before its mapping began is none of its alternatives. */
static bool next(struct walk *w, struct alternative *a)
{
	for (; w->at < w->end; w->at++, w->version = 0) {
		const struct stream_map *m = &w->stream->map[w->at];
		struct stream_page *p = find_page(w->stream, m->machine, m->page);
		u64 end = map_end(w, w->at);

		if (!p)
			continue;
		w->err = count_versions(w->stream, p);
		if (w->err)
			return false;
		if (!w->version)
			w->version =
				vmpt_search(v, 1, p->versions, p->version[v].time <= m->time) - 1;
		if (w->version < p->versions &&
		    (p->version[w->version].time < end || p->version[w->version].time <= m->time)) {
			a->page = p;
			a->version = w->version++;
			a->from = p->version[a->version].time;
			a->from = a->from > m->time ? a->from : m->time;
			return true;
		}
	}
	return false;
}

bool vmpt_image_nth(size_t count, size_t at, size_t nth, size_t *index)
{
	size_t after = count - 1 - at, both = after < at ? after : at;

	if (nth >= count)
		return false;
	if (nth <= 2 * both)
		*index = nth % 2 ? at + (nth + 1) / 2 : at - nth / 2;
	else
		*index = after > at ? nth : count - 1 - nth;
	return true;
}

/* The mappings of a page in one mode, all CR3s: [*at, end). */
static size_t find_maps(const struct code_stream *s, u64 linear, u8 mode, size_t *at)
{
	*at = vmpt_search(i, 0, s->map_count,
			  s->map[i].linear < linear ||
				  (s->map[i].linear == linear && s->map[i].mode < mode));
	return vmpt_search(i, *at, s->map_count,
			   s->map[i].linear == linear && s->map[i].mode == mode);
}

/* Alternative @nth of the mappings [@at, @end), and when the next one in time begins. */
static int find_nth(struct code_stream *s, size_t at, size_t end, u64 time, size_t nth,
		    struct alternative *a, u64 *to, size_t *count)
{
	struct walk w = { .stream = s, .at = at, .end = end };
	struct alternative after;
	size_t n, best = 0, index;

	for (n = 0; next(&w, a); n++)
		if (a->from <= time)
			best = n;
	*count = n;
	*to = ~0ULL;
	if (w.err || !n || !vmpt_image_nth(n, best, nth, &index))
		return w.err;
	w = (struct walk){ .stream = s, .at = at, .end = end };
	for (n = 0; n <= index && next(&w, a); n++)
		;
	if (next(&w, &after))
		*to = after.from;
	if (!index)
		a->from = 0;
	return 1;
}

/*
 * The same for @nth 0 by searches, where the times of the mappings are in order. 0: they are not,
 * or a mapping leads to no page.
 */
static int find_best(struct code_stream *s, size_t at, size_t end, u64 time, struct alternative *a,
		     u64 *to)
{
	struct walk w = { .stream = s, .end = end };
	size_t i = vmpt_search(k, at, end, s->map[k].time <= time), first;
	const struct stream_map *m;
	u64 last;

	i -= i > at;
	m = &s->map[i];
	a->page = s->map_order ? find_page(s, m->machine, m->page) : NULL;
	if (!a->page || (i + 1 < end && !find_page(s, m[1].machine, m[1].page)))
		return 0;
	w.err = count_versions(s, a->page);
	if (w.err)
		return w.err;
	last = map_end(&w, i);
	*to = i + 1 < end ? m[1].time : ~0ULL;
	first = vmpt_search(v, 1, a->page->versions, a->page->version[v].time <= m->time) - 1;
	a->version =
		vmpt_search(v, first + 1, a->page->versions,
			    a->page->version[v].time <= time && a->page->version[v].time < last) -
		1;
	if (a->version + 1 < a->page->versions && a->page->version[a->version + 1].time < last)
		*to = a->page->version[a->version + 1].time;
	a->from = a->page->version[a->version].time;
	a->from = a->from > m->time ? a->from : m->time;
	if (i == at && a->version == first)
		a->from = 0;
	return 1;
}

static u64 time_of(const struct code_stream *s, const struct vmpt_space *space)
{
	return space->tsc ? to_executed(s, &space->owner, space->tsc) : ~0ULL;
}

/* Without a CR3 the spaces are asked one after the other. */
static int find(struct code_stream *s, const struct vmpt_space *space, u64 linear, size_t nth,
		struct alternative *a, u64 *to)
{
	size_t at, end = find_maps(s, linear / VMPT_PAGE, space->exec, &at), next, count;
	u64 time = time_of(s, space);
	int ret = 0;

	for (; at < end && !ret; at = next) {
		u64 cr3 = space->no_cr3 ? s->map[at].cr3 : space->cr3 & ~0x1fULL;

		at = vmpt_search(i, at, end, s->map[i].cr3 < cr3);
		next = vmpt_search(i, at, end, s->map[i].cr3 <= cr3);
		count = 0;
		if (!nth && at < next)
			ret = find_best(s, at, next, time, a, to);
		if (!ret)
			ret = find_nth(s, at, next, time, nth, a, to, &count);
		nth -= count;
		if (!space->no_cr3)
			break;
	}
	return ret;
}

static int fill(struct code_stream *s, const struct alternative *a, struct vmpt_page *page)
{
	const struct made_page *m;
	int ret = make_version(s, a->page, a->version);

	if (ret <= 0)
		return ret;
	m = a->page->version[a->version].made;
	page->bytes = m->bytes;
	page->valid = m->valid;
	return 1;
}

int vmpt_code_stream_find(struct code_stream *s, const struct vmpt_space *space, u64 linear,
			  unsigned int nth, struct vmpt_page *page)
{
	struct alternative a;
	u64 to;
	int ret = find(s, space, linear, nth, &a, &to);

	if (ret <= 0)
		return ret;
	*page = (struct vmpt_page){ .from = to_trace(s, &space->owner, a.from),
				    .to = to_trace(s, &space->owner, to) };
	return fill(s, &a, page);
}

/* The last version, of the last machine that has the page. */
int vmpt_code_stream_physical(struct code_stream *s, u64 physical, struct vmpt_page *page)
{
	struct alternative a = { 0 };
	size_t i;
	int ret;

	for (i = s->starts + 1; i && !a.page; i--)
		a.page = find_page(s, (u32)(i - 1), physical / VMPT_PAGE);
	if (!a.page)
		return 0;
	ret = count_versions(s, a.page);
	if (ret)
		return ret;
	a.version = a.page->versions - 1;
	*page = (struct vmpt_page){ .from = a.page->version[a.version].time, .to = ~0ULL };
	return fill(s, &a, page);
}

int vmpt_code_stream_translate(struct code_stream *s, const struct vmpt_space *space, u64 linear,
			       u64 *physical)
{
	struct alternative a;
	u64 to;
	int ret = find(s, space, linear, 0, &a, &to);

	if (ret > 0)
		*physical = a.page->number * VMPT_PAGE + linear % VMPT_PAGE;
	return ret;
}
