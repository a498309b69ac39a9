// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What a trace's code is: images of owners and address spaces, in order; see vmpt-image.h. */
#include "decoder/image/image.h"

struct entry {
	struct vmpt_image *image;
	struct vmpt_owner owner;
	u64 cr3;
	bool any_owner, any_space;
};

struct vmpt_code {
	struct entry *entries;
	size_t count;
};

int vmpt_code_new_abi(struct vmpt_code **code, u64 abi)
{
	if (abi != VMPT_IMAGE_ABI)
		return -VMPT_E_VERSION;
	*code = calloc(1, sizeof(**code));
	return *code ? 0 : -VMPT_E_NOMEM;
}

void vmpt_code_free(struct vmpt_code *code)
{
	if (!code)
		return;
	free(code->entries);
	free(code);
}

int vmpt_code_add(struct vmpt_code *code, const struct vmpt_owner *owner, const u64 *cr3,
		  struct vmpt_image *image)
{
	struct entry e = { .image = image, .any_owner = !owner, .any_space = !cr3 };

	if (owner)
		e.owner = *owner;
	if (cr3)
		e.cr3 = *cr3;
	if (vmpt_grow(&code->entries, code->count))
		return -VMPT_E_NOMEM;
	code->entries[code->count++] = e;
	return 0;
}

bool vmpt_code_changes(const struct vmpt_code *code)
{
	size_t i;

	for (i = 0; i < code->count; i++)
		if (code->entries[i].image->code || code->entries[i].image->patches)
			return true;
	return false;
}

bool vmpt_code_has_versions(const struct vmpt_code *code)
{
	return code->count > 1 || vmpt_code_changes(code);
}

static bool is_for(const struct entry *e, const struct vmpt_space *space)
{
	return (e->any_owner || vmpt_owner_same(&e->owner, &space->owner)) &&
	       (e->any_space || (!space->no_cr3 && e->cr3 == space->cr3));
}

static bool same(const struct vmpt_page *a, const struct vmpt_page *b)
{
	return (a->bytes == b->bytes || !memcmp(a->bytes, b->bytes, VMPT_PAGE)) &&
	       (a->valid == b->valid ||
		(a->valid && b->valid && !memcmp(a->valid, b->valid, VMPT_PAGE / 8)));
}

/* An image had @page, or none, at @now: for how long. */
static void narrow(struct vmpt_page *good, const struct vmpt_page *page, u64 now)
{
	if (page->from > now || page->to <= now)
		return;
	good->from = page->from > good->from ? page->from : good->from;
	good->to = page->to < good->to ? page->to : good->to;
}

int vmpt_code_page(struct vmpt_code *code, const struct vmpt_space *space, u64 linear,
		   unsigned int nth, struct vmpt_page *page)
{
	struct vmpt_page seen[VMPT_CODE_VERSIONS];
	u64 now = space->tsc ? space->tsc : ~0ULL - 1;
	unsigned int n = 0, version, k;
	size_t i;

	*page = (struct vmpt_page){ .to = ~0ULL };
	if (nth >= VMPT_CODE_VERSIONS)
		return 0;
	for (i = 0; i < code->count; i++) {
		if (!is_for(&code->entries[i], space))
			continue;
		for (version = 0;; version++) {
			int ret = vmpt_image_page(code->entries[i].image, space, linear, version,
						  &seen[n]);

			if (ret < 0)
				return ret;
			narrow(page, &seen[n], now);
			if (!ret)
				break;
			for (k = 0; k < n && !same(&seen[k], &seen[n]); k++)
				;
			if (k < n)
				continue;
			if (n++ == nth) {
				narrow(&seen[nth], page, now);
				*page = seen[nth];
				return 1;
			}
		}
	}
	return 0;
}
