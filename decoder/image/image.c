// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Images: pages from extents and of programs, and closing; see vmpt-image.h. */
#include "decoder/image/code-stream.h"
#include "decoder/image/image.h"
#include "decoder/image/patches.h"

void vmpt_image_set_paging(struct vmpt_image *image, u8 paging)
{
	image->paging_guessed = image->paging == VMPT_PAGING_AUTO && paging == VMPT_PAGING_AUTO;
	if (image->paging == VMPT_PAGING_AUTO)
		image->paging = paging != VMPT_PAGING_AUTO ? paging : VMPT_PAGING_4;
}

int vmpt_image_make_abi(struct vmpt_image **out, const struct vmpt_image_source *source,
			const struct vmpt_image_options *options, u64 abi)
{
	u8 paging = options ? options->paging : VMPT_PAGING_AUTO;
	struct vmpt_image *image;

	if (abi != VMPT_IMAGE_ABI)
		return -VMPT_E_VERSION;
	if (!source->physical == !source->memory || source->paging > VMPT_PAGING_5 ||
	    paging > VMPT_PAGING_5)
		return -VMPT_E_INVAL;
	image = calloc(1, sizeof(*image));
	if (!image)
		return -VMPT_E_NOMEM;
	pthread_mutex_init(&image->lock, NULL);
	image->source = *source;
	image->paging = source->paging;
	vmpt_image_set_paging(image, paging);
	*out = image;
	return 0;
}

void vmpt_image_close(struct vmpt_image *image)
{
	if (!image)
		return;
	if (image->source.close)
		image->source.close(image->source.opaque);
	while (image->file_count)
		vmpt_image_file_close(&image->files[--image->file_count]);
	while (image->made_count)
		free(image->made[--image->made_count]);
	vmpt_code_stream_close(image->code);
	vmpt_patches_close(image->patches);
	free(image->files);
	free(image->cr3);
	free(image->made);
	vmpt_hash_free(&image->made_hash);
	free(image->linear.list);
	free(image->physical.list);
	pthread_mutex_destroy(&image->lock);
	free(image);
}

/* ---- pages ---- */

/* The bytes of the extents from @i on that lie in the page at @at. */
static void fill(const struct vmpt_image *image, const struct extents *e, size_t i, u64 at,
		 struct made_page *made)
{
	size_t n, known = 0;

	for (; i < e->count && (e->list[i].at < at || e->list[i].at - at < VMPT_PAGE); i++) {
		const struct extent *x = &e->list[i];
		u64 skip = at > x->at ? at - x->at : 0;
		size_t to = x->at > at ? x->at - at : 0;
		u64 size = x->size - skip;

		if (size > VMPT_PAGE - to)
			size = VMPT_PAGE - to;
		size = vmpt_image_file_read(&image->files[x->file], x->offset + skip,
					    made->bytes + to, size);
		for (n = to; n < to + size; n++)
			made->valid[n / 64] |= 1ULL << n % 64;
		known += size;
	}
	made->whole = known == VMPT_PAGE;
}

static struct made_page *find_made(const struct vmpt_image *image, u64 key, u64 hash)
{
	u32 n = vmpt_hash_find(&image->made_hash, hash, k, image->made[k]->key == key);

	return n == VMPT_HASH_NONE ? NULL : image->made[n];
}

/* Fill @made: 1, 0, or a negative error. */
static int make_page(struct vmpt_image *image, enum page_of of, u64 at, struct made_page *made)
{
	const struct extents *e = of == PAGE_LINEAR ? &image->linear : &image->physical;

	made->whole = true;
	if (image->source.physical)
		return image->source.physical(image->source.opaque, at, made->bytes);
	fill(image, e, vmpt_extents_find(e, at), at, made);
	return 1;
}

/* A page that is no page of a map. */
static int made_page(struct vmpt_image *image, enum page_of of, u64 at, struct vmpt_page *page)
{
	u64 key = at | of, hash = vmpt_mix64(key);
	struct made_page *made = find_made(image, key, hash);
	int ret;

	if (!made) {
		made = calloc(1, sizeof(*made));
		ret = made ? make_page(image, of, at, made) : -VMPT_E_NOMEM;
		if (ret <= 0) {
			free(made);
			return ret;
		}
		made->key = key;
		if (vmpt_grow(&image->made, image->made_count) ||
		    vmpt_hash_add(&image->made_hash, hash, (u32)image->made_count)) {
			free(made);
			return -VMPT_E_NOMEM;
		}
		image->made[image->made_count++] = made;
	}
	page->bytes = made->bytes;
	page->valid = made->whole ? NULL : made->valid;
	return 1;
}

static bool has_physical(const struct vmpt_image *image)
{
	return image->physical.count || image->source.physical || image->source.memory;
}

int vmpt_image_page_at(struct vmpt_image *image, enum page_of of, u64 at, struct vmpt_page *page)
{
	const struct extents *e = of == PAGE_LINEAR ? &image->linear : &image->physical;
	size_t i = vmpt_extents_find(e, at);
	const struct image_file *f;
	const struct extent *x;

	*page = (struct vmpt_page){ .to = ~0ULL };
	if (of == PAGE_PHYSICAL && image->source.memory) {
		page->bytes = image->source.memory(image->source.opaque, at);
		return page->bytes != NULL;
	}
	if (of == PAGE_PHYSICAL && image->source.physical)
		return made_page(image, of, at, page);
	if (i == e->count)
		return 0;
	x = &e->list[i];
	if (x->at > at && x->at - at >= VMPT_PAGE)
		return 0;
	f = &image->files[x->file];
	if (f->fd >= 0 || x->at > at || x->size - (at - x->at) < VMPT_PAGE)
		return made_page(image, of, at, page);
	page->bytes = f->map.data + x->offset + (at - x->at);
	return 1;
}

/*
 * What an image of both kinds of memory has by linear address is a kernel's view (/proc/kcore), or
 * that of the process that ran on a vCPU (dump-guest-memory with paging): the upper half is good in
 * every space, the lower half is used only where no page tables can be walked.
 */
static int find_page(struct vmpt_image *image, const struct vmpt_space *space, u64 linear,
		     struct vmpt_page *page)
{
	u64 physical;
	int ret = 0;

	if (!has_physical(image) || space->no_cr3 || linear >> 63)
		ret = vmpt_image_page_at(image, PAGE_LINEAR, linear, page);
	if (ret || !has_physical(image)) {
		image->counts.absent += !ret;
		return ret;
	}
	if (!vmpt_image_walk(image, space, linear, &physical))
		return 0;
	ret = vmpt_image_page_at(image, PAGE_PHYSICAL, physical, page);
	image->counts.no_memory += !ret;
	return ret;
}

/* What was written at a known time is first; then what the image has else. */
static int find_version(struct vmpt_image *image, const struct vmpt_space *space, u64 linear,
			unsigned int nth, struct vmpt_page *page)
{
	size_t versions;
	int ret;

	if (!image->patches)
		return find_page(image, space, linear, page);
	ret = vmpt_patches_find(image->patches, space->tsc, linear, nth, page, &versions);
	if (ret || nth != versions)
		return ret;
	return find_page(image, space, linear, page);
}

int vmpt_image_page(struct vmpt_image *image, const struct vmpt_space *space, u64 linear,
		    unsigned int nth, struct vmpt_page *page)
{
	int ret;

	*page = (struct vmpt_page){ .to = ~0ULL };
	if (linear % VMPT_PAGE)
		return -VMPT_E_INVAL;
	if (nth && !image->code && !image->patches)
		return 0;
	pthread_mutex_lock(&image->lock);
	if (image->code)
		ret = vmpt_code_stream_find(image->code, space, linear, nth, page);
	else
		ret = find_version(image, space, linear, nth, page);
	image->counts.found += ret > 0;
	image->counts.absent += image->code && !ret && !nth;
	pthread_mutex_unlock(&image->lock);
	return ret;
}

int vmpt_image_physical(struct vmpt_image *image, u64 physical, struct vmpt_page *page)
{
	int ret;

	if (physical % VMPT_PAGE)
		return -VMPT_E_INVAL;
	pthread_mutex_lock(&image->lock);
	ret = image->code ? vmpt_code_stream_physical(image->code, physical, page)
			  : vmpt_image_page_at(image, PAGE_PHYSICAL, physical, page);
	image->counts.found += ret > 0;
	image->counts.absent += !ret;
	pthread_mutex_unlock(&image->lock);
	return ret;
}

int vmpt_image_translate(struct vmpt_image *image, const struct vmpt_space *space, u64 linear,
			 u64 *physical)
{
	struct vmpt_image_counts counts;
	int ret = 0;

	if (!has_physical(image) && !image->code)
		return 0;
	pthread_mutex_lock(&image->lock);
	counts = image->counts;
	ret = image->code ? vmpt_code_stream_translate(image->code, space, linear, physical)
			  : vmpt_image_walk(image, space, linear, physical);
	image->counts = counts;
	pthread_mutex_unlock(&image->lock);
	return ret;
}

void vmpt_image_info(const struct vmpt_image *image, struct vmpt_image_info *info)
{
	size_t i;

	*info = (struct vmpt_image_info){ .paging = image->paging,
					  .cr3 = image->cr3,
					  .cr3_count = image->cr3_count };
	for (i = 0; i < image->linear.count; i++)
		info->linear += image->linear.list[i].size;
	for (i = 0; i < image->physical.count; i++)
		info->physical += image->physical.list[i].size;
}

void vmpt_image_counts(struct vmpt_image *image, struct vmpt_image_counts *counts)
{
	pthread_mutex_lock(&image->lock);
	*counts = image->counts;
	pthread_mutex_unlock(&image->lock);
}
