/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside an image: code that was written at known times, by linear address. A page has a version
 * for each time at which some of it was written; known are the bytes that were written, and those
 * that a writer says were there before.
 */
#ifndef VMPT_DECODER_IMAGE_PATCHES_H
#define VMPT_DECODER_IMAGE_PATCHES_H

#include "decoder/image/image.h"

/* At .time the .size bytes at .at became .bytes; before, they were .before. In one page. */
struct patch {
	u64 at, time;	      /* TSC */
	size_t bytes, before; /* in patches.pool, ~0: not known */
	u32 order, size;
};

struct patch_version {
	u64 from;
	struct made_page *made;
};

struct patch_page {
	u64 at;
	size_t first, count; /* patches */
	struct patch_version *version;
	size_t versions; /* 0: not made yet */
};

struct patches {
	struct patch *list; /* by page, time, order once finished */
	size_t count;
	u8 *pool;
	size_t pool_size, pool_room;
	struct patch_page *page;
	size_t page_count;
	size_t made;
};

/*
 * Note that at TSC @time the @size bytes at @at became those at @bytes, or were not known any more
 * (NULL); before, they were @before, or not known. 0 or -VMPT_E_NOMEM.
 */
int vmpt_patches_add(struct patches **patches, u64 time, u64 at, u64 size, const u8 *bytes,
		     const u8 *before);
int vmpt_patches_finish(struct patches *patches);
void vmpt_patches_close(struct patches *patches);
/*
 * Version @nth of the page at @at for @tsc (0: the end), as vmpt_image_page(), by the lock's owner.
 * 1, 0: there is none, or -VMPT_E_NOMEM. *@versions: how many there are.
 */
int vmpt_patches_find(struct patches *patches, u64 tsc, u64 at, unsigned int nth,
		      struct vmpt_page *page, size_t *versions);

#endif
