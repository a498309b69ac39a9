// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A guest's memory by linear address, through the page tables in its image. */
#include "decoder/names/guest.h"

#define TEXT_CHUNK (64u << 10)

/* The page at @at; .bytes NULL: it is not in the image. */
static const struct vmpt_page *find_page(struct vmpt_guest *g, u64 cr3, u64 at)
{
	struct guest_page *p = &g->cache[vmpt_mix64(at ^ vmpt_mix64(cr3)) & (GUEST_CACHE - 1)];
	const struct vmpt_space space = { .cr3 = cr3, .exec = 64 };

	if (p->at == at && p->cr3 == cr3)
		return &p->page;
	p->at = at;
	p->cr3 = cr3;
	if (vmpt_image_page(g->image, &space, at, 0, &p->page) <= 0)
		p->page.bytes = NULL;
	return &p->page;
}

void vmpt_guest_forget(struct vmpt_guest *g)
{
	size_t i;

	for (i = 0; i < GUEST_CACHE; i++)
		g->cache[i].at = ~0ULL;
}

static bool knows(const struct vmpt_page *page, unsigned int from, size_t n)
{
	if (!page->bytes)
		return false;
	for (; page->valid && n; from++, n--)
		if (!vmpt_page_knows(page, from))
			return false;
	return true;
}

bool vmpt_guest_load(struct vmpt_guest *g, u64 cr3, u64 at, void *to, size_t size)
{
	u8 *bytes = to;

	if (size && at + size - 1 < at)
		return false;
	while (size) {
		unsigned int from = at % VMPT_PAGE;
		size_t n = size < VMPT_PAGE - from ? size : VMPT_PAGE - from;
		const struct vmpt_page *page = find_page(g, cr3, at - from);

		if (!knows(page, from, n))
			return false;
		memcpy(bytes, page->bytes + from, n);
		bytes += n;
		at += n;
		size -= n;
	}
	return true;
}

bool vmpt_guest_read(struct vmpt_guest *g, u64 cr3, u64 at, void *to, size_t size)
{
	return vmpt_guest_load(g, cr3 ? cr3 : g->kernel.cr3, at, to, size);
}

bool vmpt_guest_u64(struct vmpt_guest *g, u64 at, u64 *value)
{
	u8 bytes[8];

	*value = 0;
	if (!vmpt_guest_load(g, g->kernel.cr3, at, bytes, sizeof(bytes)))
		return false;
	*value = vmpt_load64(bytes);
	return true;
}

bool vmpt_guest_u32(struct vmpt_guest *g, u64 at, u32 *value)
{
	u8 bytes[4];

	*value = 0;
	if (!vmpt_guest_load(g, g->kernel.cr3, at, bytes, sizeof(bytes)))
		return false;
	*value = vmpt_load32(bytes);
	return true;
}

bool vmpt_guest_field64(struct vmpt_guest *g, u64 at, enum guest_field field, u64 *value)
{
	*value = 0;
	return at && guest_has(g, field) && vmpt_guest_u64(g, at + g->field[field], value);
}

bool vmpt_guest_field32(struct vmpt_guest *g, u64 at, enum guest_field field, u32 *value)
{
	*value = 0;
	return at && guest_has(g, field) && vmpt_guest_u32(g, at + g->field[field], value);
}

bool vmpt_guest_string(struct vmpt_guest *g, u64 at, char *to, size_t room)
{
	size_t n = 0;

	while (n < room - 1) {
		size_t more = VMPT_PAGE - (at + n) % VMPT_PAGE, length;

		if (more > room - 1 - n)
			more = room - 1 - n;
		/* A name may end before bytes that are not known. */
		while (more && !vmpt_guest_load(g, g->kernel.cr3, at + n, to + n, more))
			more = more > 16 ? 16 : more - 1;
		if (!more)
			break;
		length = strnlen(to + n, more);
		n += length;
		if (length < more) {
			to[n] = '\0';
			return true;
		}
	}
	to[n] = '\0';
	return n == room - 1;
}

/* ---- what stays ---- */

const void *vmpt_guest_keep(struct guest_text *t, const void *bytes, size_t size)
{
	char *to;

	if (size > TEXT_CHUNK)
		return NULL;
	if (!t->chunks || TEXT_CHUNK - t->used < size) {
		if (vmpt_grow(&t->chunk, t->chunks))
			return NULL;
		t->chunk[t->chunks] = malloc(TEXT_CHUNK);
		if (!t->chunk[t->chunks])
			return NULL;
		t->chunks++;
		t->used = 0;
	}
	to = t->chunk[t->chunks - 1] + t->used;
	memcpy(to, bytes, size);
	t->used += size;
	return to;
}

const char *vmpt_guest_keep_string(struct guest_text *t, const char *s)
{
	return vmpt_guest_keep(t, s, strlen(s) + 1);
}

void vmpt_guest_text_free(struct guest_text *t)
{
	while (t->chunks)
		free(t->chunk[--t->chunks]);
	free(t->chunk);
	*t = (struct guest_text){ 0 };
}

/* ---- addresses that were seen ---- */

int vmpt_guest_see(struct guest_seen *seen, u64 at)
{
	u64 hash = vmpt_mix64(at);

	if (vmpt_hash_find(&seen->hash, hash, i, seen->at[i] == at) != VMPT_HASH_NONE)
		return 0;
	if (vmpt_grow(&seen->at, seen->count) || vmpt_hash_add(&seen->hash, hash, (u32)seen->count))
		return -VMPT_E_NOMEM;
	seen->at[seen->count++] = at;
	return 1;
}

void vmpt_guest_seen_free(struct guest_seen *seen)
{
	vmpt_hash_free(&seen->hash);
	free(seen->at);
}
