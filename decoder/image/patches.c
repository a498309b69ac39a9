// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Code that was written at known times; see patches.h. */
#include "decoder/image/patches.h"
#include "util/search.h"

/* Of all pages: 1.2 GB. */
#define MADE_MAX (1U << 18)

#define UNKNOWN (~(size_t)0)

static int pool_add(struct patches *p, const u8 *bytes, size_t n, size_t *at)
{
	*at = UNKNOWN;
	if (!bytes)
		return 0;
	if (vmpt_reserve(&p->pool, &p->pool_room, p->pool_size + n))
		return -VMPT_E_NOMEM;
	*at = p->pool_size;
	memcpy(p->pool + p->pool_size, bytes, n);
	p->pool_size += n;
	return 0;
}

int vmpt_patches_add(struct patches **patches, u64 time, u64 at, u64 size, const u8 *bytes,
		     const u8 *before)
{
	struct patches *p = *patches ? *patches : calloc(1, sizeof(*p));
	struct patch new = { .time = time };
	u64 done;

	if (!p)
		return -VMPT_E_NOMEM;
	*patches = p;
	for (done = 0; done < size; done += new.size) {
		new.at = at + done;
		new.size = VMPT_PAGE - new.at % VMPT_PAGE;
		if (new.size > size - done)
			new.size = (u32)(size - done);
		new.order = (u32)p->count;
		if (pool_add(p, bytes ? bytes + done : NULL, new.size, &new.bytes) ||
		    pool_add(p, before ? before + done : NULL, new.size, &new.before) ||
		    vmpt_grow(&p->list, p->count))
			return -VMPT_E_NOMEM;
		p->list[p->count++] = new;
	}
	return 0;
}

static int by_page_and_time(const void *x, const void *y)
{
	const struct patch *a = x, *b = y;

	if (a->at / VMPT_PAGE != b->at / VMPT_PAGE)
		return a->at < b->at ? -1 : 1;
	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

int vmpt_patches_finish(struct patches *p)
{
	size_t i;

	if (!p || !p->count)
		return 0;
	qsort(p->list, p->count, sizeof(*p->list), by_page_and_time);
	for (i = 0; i < p->count; i++) {
		struct patch_page *last = p->page_count ? &p->page[p->page_count - 1] : NULL;
		u64 at = p->list[i].at & ~(VMPT_PAGE - 1ULL);

		if (last && last->at == at) {
			last->count++;
			continue;
		}
		if (vmpt_grow(&p->page, p->page_count))
			return -VMPT_E_NOMEM;
		p->page[p->page_count++] = (struct patch_page){ .at = at, .first = i, .count = 1 };
	}
	return 0;
}

void vmpt_patches_close(struct patches *p)
{
	size_t i, v;

	if (!p)
		return;
	for (i = 0; i < p->page_count; i++) {
		for (v = 0; v < p->page[i].versions; v++)
			free(p->page[i].version[v].made);
		free(p->page[i].version);
	}
	free(p->page);
	free(p->list);
	free(p->pool);
	free(p);
}

/* ---- versions ---- */

/* Once for each page: the first is what was there before all patches. */
static int list_versions(const struct patches *p, struct patch_page *page)
{
	size_t i;
	u64 time = 0;

	if (page->versions)
		return 0;
	for (i = 0; i <= page->count; i++) {
		u64 from = i ? p->list[page->first + i - 1].time : 0;

		if (i && from == time)
			continue;
		if (vmpt_grow(&page->version, page->versions))
			return -VMPT_E_NOMEM;
		page->version[page->versions++] = (struct patch_version){ .from = from };
		time = from;
	}
	return 0;
}

static void put(const struct patches *p, struct made_page *m, const struct patch *patch,
		size_t bytes)
{
	unsigned int at = patch->at % VMPT_PAGE, i;

	for (i = at; i < at + patch->size; i++) {
		m->valid[i / 64] &= ~(1ULL << i % 64);
		if (bytes == UNKNOWN)
			continue;
		m->valid[i / 64] |= 1ULL << i % 64;
		m->bytes[i] = p->pool[bytes + i - at];
	}
}

/* What was there before, by the first patch of each byte, and what was written since. */
static int make_version(struct patches *p, struct patch_page *page, struct patch_version *v)
{
	const struct patch *list = p->list + page->first;
	struct made_page *m;
	size_t i;

	if (v->made)
		return 1;
	if (p->made == MADE_MAX)
		return 0;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -VMPT_E_NOMEM;
	for (i = page->count; i > 0; i--)
		put(p, m, &list[i - 1], list[i - 1].before);
	for (i = 0; i < page->count && list[i].time <= v->from; i++)
		put(p, m, &list[i], list[i].bytes);
	v->made = m;
	p->made++;
	return 1;
}

int vmpt_patches_find(struct patches *p, u64 tsc, u64 at, unsigned int nth, struct vmpt_page *page,
		      size_t *versions)
{
	size_t i = vmpt_search(k, 0, p->page_count, p->page[k].at < at), now, v;
	struct patch_page *in = &p->page[i];
	int ret;

	*page = (struct vmpt_page){ .to = ~0ULL };
	*versions = 0;
	if (i == p->page_count || in->at != at)
		return 0;
	ret = list_versions(p, in);
	if (ret)
		return ret;
	*versions = in->versions;
	now = in->versions - 1;
	if (tsc)
		now = vmpt_search(k, 1, in->versions, in->version[k].from <= tsc) - 1;
	if (!vmpt_image_nth(in->versions, now, nth, &v))
		return 0;
	ret = make_version(p, in, &in->version[v]);
	if (ret <= 0)
		return ret;
	page->bytes = in->version[v].made->bytes;
	page->valid = in->version[v].made->valid;
	page->from = in->version[v].from;
	page->to = v + 1 < in->versions ? in->version[v + 1].from : ~0ULL;
	return 1;
}
