// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Any bytes as the memory of a guest with page tables in it: byte 0 is the paging mode, then come
 * CR3 and eight linear addresses. A translation has its bits below the page size from the linear
 * address, and a page is one of the file or absent, for one of the reasons.
 */
#include <stdlib.h>

#include "decoder/image/image.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

enum { ADDRESSES = 8, HEAD = 1 + 8 + 8 * ADDRESSES };

static void require(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct vmpt_image_options options = { .kind = VMPT_IMAGE_RAM };
	struct vmpt_space space = { 0 };
	struct vmpt_image_counts c;
	struct vmpt_image *image;
	struct vmpt_file file;
	unsigned int i;

	if (size < HEAD)
		return 0;
	options.paging = data[0] % (VMPT_PAGING_5 + 1);
	space.exec = (u8)(16 << (data[0] >> 4) % 3);
	space.no_cr3 = data[0] >> 7;
	space.cr3 = vmpt_load64(data + 1);
	file = (struct vmpt_file){ data + HEAD, size - HEAD };
	require(!vmpt_image_open_memory(&image, &file, 1, &options, NULL));
	for (i = 0; i < ADDRESSES; i++) {
		u64 linear = vmpt_load64(data + 9 + 8 * i), physical, again;
		int ret = vmpt_image_translate(image, &space, linear, &physical);
		struct vmpt_page page;

		require(ret == 0 || ret == 1);
		require(!ret || (physical - linear) % VMPT_PAGE == 0);
		linear &= ~(VMPT_PAGE - 1ULL);
		require(vmpt_image_translate(image, &space, linear, &again) == ret);
		require(!ret || physical - again < VMPT_PAGE);
		if (vmpt_image_page(image, &space, linear, 0, &page) == 1)
			require(ret && page.bytes &&
				(page.valid || (page.bytes >= file.data &&
						page.bytes + VMPT_PAGE <= file.data + file.size)));
		else
			require(!ret || again >= file.size);
	}
	vmpt_image_counts(image, &c);
	require(c.found + c.absent + c.not_present + c.no_table + c.reserved + c.no_memory ==
		ADDRESSES);
	vmpt_image_close(image);
	return 0;
}
