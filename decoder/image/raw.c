// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Readers of bytes without a header: sets of pages, raw memory, bytes at an address. */
#include <stdlib.h>

#include "decoder/image/image.h"

/* x.dump of x.addr. */
static int add_dump(struct vmpt_image *image, const char *path, struct vmpt_diag *diag)
{
	size_t n = path ? strlen(path) : 0;
	char *dump;
	int ret;

	if (n < 5 || strcmp(path + n - 5, ".addr"))
		return vmpt_diag_fail(diag, VMPT_E_INVAL, 0,
				      "a set of pages is x.addr and x.dump; give x.addr");
	dump = strdup(path);
	if (!dump)
		return vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	memcpy(dump + n - 5, ".dump", 5);
	ret = image_add_file(image, dump, false, diag);
	free(dump);
	return ret;
}

/*
 * x.addr has a little-endian u64 for each page of x.dump: its linear address. A page that is there
 * twice is the first one.
 */
int image_read_pages(struct vmpt_image *image, const char *path, struct vmpt_diag *diag)
{
	const struct image_file *addr, *pages;
	u64 i, n;
	int ret;

	ret = image->file_count < 2 ? add_dump(image, path, diag) : 0;
	if (ret < 0)
		return ret;
	addr = &image->files[0];
	if (addr->fd >= 0)
		return vmpt_diag_fail(diag, VMPT_E_INVAL, 0, "a set of pages is not read live");
	pages = &image->files[1];
	n = addr->size / 8;
	if (addr->size % 8 || pages->size != n * VMPT_PAGE)
		return vmpt_diag_fail(
			diag, VMPT_E_FORMAT, 0,
			"a set of pages of %llu bytes of addresses (8 each) needs as "
			"many pages of 4,096 bytes in its .dump, which has %llu bytes",
			(unsigned long long)addr->size, (unsigned long long)pages->size);
	for (i = 0; i < n; i++) {
		u64 at = vmpt_load64(addr->map.data + 8 * i);

		if (at % VMPT_PAGE)
			return vmpt_diag_fail(diag, VMPT_E_FORMAT, 8 * i,
					      "%#llx is not the address of a page",
					      (unsigned long long)at);
		if (extents_add(&image->linear, at, VMPT_PAGE, 1, i * VMPT_PAGE))
			return vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	}
	return 0;
}

int image_read_ram(struct vmpt_image *image, const struct vmpt_image_options *options,
		   struct vmpt_diag *diag)
{
	const struct vmpt_ram_range *r = options->ranges;
	u64 size = image->files[0].size;
	size_t i;

	if (!options->range_count && extents_add(&image->physical, 0, size, 0, 0))
		return vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	for (i = 0; i < options->range_count; i++, r++) {
		if (r->offset > size || r->size > size - r->offset)
			return vmpt_diag_fail(
				diag, VMPT_E_INVAL, r->offset,
				"the file has %llu bytes; the range at %#llx needs "
				"%llu bytes at offset %llu",
				(unsigned long long)size, (unsigned long long)r->physical,
				(unsigned long long)r->size, (unsigned long long)r->offset);
		if (extents_add(&image->physical, r->physical, r->size, 0, r->offset))
			return vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	}
	return 0;
}

int image_read_bytes(struct vmpt_image *image, const struct vmpt_image_options *options,
		     struct vmpt_diag *diag)
{
	if (extents_add(&image->linear, options->address, image->files[0].size, 0, 0))
		return vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	return 0;
}
