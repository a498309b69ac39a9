// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* All pages of an image's physical memory, none of which is kept. */
#include "decoder/image/image.h"

/* A source does not say where its memory ends: no PC has a larger hole in it. */
#define HOLE_MAX (1ULL << 32)
#define END	 (1ULL << 52)

static int scan_source(struct vmpt_image *image, vmpt_image_scan_fn *take, void *opaque)
{
	u8 bytes[VMPT_PAGE];
	struct vmpt_page page = { .bytes = bytes, .to = ~0ULL };
	u64 at, last = 0;
	int ret = 0;

	for (at = 0; at < END && at - last <= HOLE_MAX && ret >= 0; at += VMPT_PAGE) {
		if (image->source.memory)
			ret = (page.bytes = image->source.memory(image->source.opaque, at)) != NULL;
		else
			ret = image->source.physical(image->source.opaque, at, bytes);
		if (ret <= 0)
			continue;
		last = at;
		if (take(opaque, at, &page))
			return 0;
	}
	return ret < 0 ? ret : 0;
}

static int scan_extents(struct vmpt_image *image, vmpt_image_scan_fn *take, void *opaque)
{
	size_t i;

	for (i = 0; i < image->physical.count; i++) {
		const struct extent *x = &image->physical.list[i];
		const struct image_file *f = &image->files[x->file];
		u64 skip = -x->at % VMPT_PAGE;

		if (f->fd >= 0)
			return -VMPT_E_UNSUPPORTED;
		for (; skip < x->size && x->size - skip >= VMPT_PAGE; skip += VMPT_PAGE) {
			const struct vmpt_page page = { .bytes = f->map.data + x->offset + skip,
							.to = ~0ULL };

			if (take(opaque, x->at + skip, &page))
				return 0;
		}
	}
	return 0;
}

int vmpt_image_scan(struct vmpt_image *image, vmpt_image_scan_fn *take, void *opaque)
{
	bool source = image->source.physical || image->source.memory;
	int ret;

	if (image->code || (!source && !image->physical.count))
		return -VMPT_E_UNSUPPORTED;
	pthread_mutex_lock(&image->lock);
	ret = source ? scan_source(image, take, opaque) : scan_extents(image, take, opaque);
	pthread_mutex_unlock(&image->lock);
	return ret;
}
