// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Any bytes as a memory image of any kind: an error with a reason, or an image whose pages are of
 * the file. Byte 0: the kind, or that the file's own form decides; byte 1: the paging mode, and for
 * sets of pages how many pages of addresses there are.
 */
#include <stdlib.h>

#include "decoder/image/image.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void check_page(const struct vmpt_page *page)
{
	u8 sum = 0;
	unsigned int i;

	for (i = 0; i < VMPT_PAGE; i++)
		sum = (u8)(sum + (vmpt_page_knows(page, i) ? page->bytes[i] : 0));
	require(sum <= 0xff);
}

/* The pages where extents begin and end, and those next to them. */
static void ask(struct vmpt_image *image, const struct extents *e, const struct vmpt_space *space)
{
	const u64 mask = ~(VMPT_PAGE - 1ULL);
	size_t i, k;

	for (i = 0; i < e->count && i < 64; i++) {
		const struct extent *x = &e->list[i];
		const u64 at[] = { x->at & mask, (x->at + x->size) & mask,
				   (x->at & mask) - VMPT_PAGE, (x->at + x->size / 2) & mask };

		require(!i || e->list[i - 1].at + e->list[i - 1].size <= x->at);
		require(x->offset <= image->files[x->file].size &&
			x->size <= image->files[x->file].size - x->offset);
		for (k = 0; k < VMPT_ARRAY_SIZE(at); k++) {
			struct vmpt_page page;

			if (vmpt_image_page(image, space, at[k], 0, &page) == 1)
				check_page(&page);
			if (vmpt_image_physical(image, at[k], &page) == 1)
				check_page(&page);
		}
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct vmpt_image_options options = { 0 };
	struct vmpt_space space = { .exec = 64 };
	struct vmpt_file file[2];
	struct vmpt_image *image;
	struct vmpt_diag diag = { 0 };
	struct vmpt_code *code;
	struct vmpt_page page;
	size_t count = 1;

	if (size < 10)
		return 0;
	options.kind = data[0] % (VMPT_IMAGE_KINDS + 1);
	options.paging = data[1] % (VMPT_PAGING_5 + 2);
	space.cr3 = options.address = vmpt_load64(data + 2);
	options.has_address = data[1] >> 7;
	file[0] = (struct vmpt_file){ data + 10, size - 10 };
	if (options.kind == VMPT_IMAGE_PAGES || options.kind == VMPT_IMAGE_RANGES) {
		file[0].size = 8 * (size_t)(data[1] >> 3);
		if (file[0].size > size - 10)
			file[0].size = size - 10;
		file[1] = (struct vmpt_file){ data + 10 + file[0].size, size - 10 - file[0].size };
		count = 2;
	}
	if (vmpt_image_open_memory(&image, file, count, &options, &diag)) {
		require(diag.text[0]);
		return 0;
	}
	ask(image, &image->linear, &space);
	ask(image, &image->physical, &space);
	space.no_cr3 = true;
	ask(image, &image->linear, &space);
	require(!vmpt_code_new(&code) && !vmpt_code_add(code, NULL, NULL, image));
	vmpt_code_page(code, &space, 0, 1, &page);
	vmpt_code_free(code);
	vmpt_image_close(image);
	return 0;
}
