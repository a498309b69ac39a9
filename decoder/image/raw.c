// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Readers of bytes without a header: sets of pages, raw memory, bytes at an address. */
#include <stdio.h>
#include <stdlib.h>

#include "decoder/image/image.h"

/* Add x.TO for @path, which is x.FROM; both ends have as many characters. */
static int add_other(struct vmpt_image *image, const char *path, const char *from, const char *to,
		     struct vmpt_diag *diag)
{
	size_t n = path ? strlen(path) : 0, end = strlen(from);
	char *other;
	int ret;

	if (n < end || strcmp(path + n - end, from) != 0)
		return vmpt_diag_fail(diag, VMPT_E_INVAL, 0, "it is x%s and x%s: give x%s", from,
				      to, from);
	if (asprintf(&other, "%.*s%s", (int)(n - end), path, to) < 0)
		return vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	ret = vmpt_image_add_file(image, other, false, diag);
	if (ret < 0 && diag)
		snprintf(diag->text + strlen(diag->text), sizeof(diag->text) - strlen(diag->text),
			 ": its x%s", to);
	free(other);
	return ret;
}

/*
 * x.addr has a little-endian u64 for each page of x.dump: its linear address. A page that is there
 * twice is the first one.
 */
int vmpt_image_read_pages(struct vmpt_image *image, const char *path, struct vmpt_diag *diag)
{
	const struct image_file *addr, *pages;
	u64 i, n;
	int ret;

	ret = image->file_count < 2 ? add_other(image, path, ".addr", ".dump", diag) : 0;
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
		if (vmpt_extents_add(&image->linear, at, VMPT_PAGE, 1, i * VMPT_PAGE))
			return vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	}
	return 0;
}

static int add_range(struct vmpt_image *image, const struct vmpt_ram_range *r, u32 file,
		     struct vmpt_diag *diag)
{
	u64 size = image->files[file].size;

	if (r->offset > size || r->size > size - r->offset)
		return vmpt_diag_fail(
			diag, VMPT_E_INVAL, r->offset,
			"the file has %llu bytes; the range at %#llx needs %llu bytes "
			"at offset %llu",
			(unsigned long long)size, (unsigned long long)r->physical,
			(unsigned long long)r->size, (unsigned long long)r->offset);
	if (vmpt_extents_add(&image->physical, r->physical, r->size, file, r->offset))
		return vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	return 0;
}

static int check_empty(const struct vmpt_image *image, struct vmpt_diag *diag)
{
	return image->files[0].size ? 0 : vmpt_diag_fail(diag, VMPT_E_FORMAT, 0, "is empty");
}

int vmpt_image_read_ram(struct vmpt_image *image, const struct vmpt_image_options *options,
			struct vmpt_diag *diag)
{
	const struct vmpt_ram_range all = { .size = image->files[0].size };
	size_t i;
	int ret = check_empty(image, diag);

	if (!ret && !options->range_count)
		return add_range(image, &all, 0, diag);
	for (i = 0; i < options->range_count && !ret; i++)
		ret = add_range(image, &options->ranges[i], 0, diag);
	return ret;
}

/* "PHYSICAL SIZE OFFSET", numbers of C; 1, 0: nothing but a comment, -1: neither. */
static int parse_range(const char *line, struct vmpt_ram_range *r)
{
	u64 *const number[] = { &r->physical, &r->size, &r->offset };
	size_t i;
	char *end;

	line += strspn(line, " \t\r");
	if (!*line || *line == '#')
		return 0;
	for (i = 0; i < VMPT_ARRAY_SIZE(number); i++, line = end) {
		line += strspn(line, " \t");
		*number[i] = strtoull(line, &end, 0);
		if (end == line || *line == '-')
			return -1;
	}
	line += strspn(line, " \t\r");
	return *line && *line != '#' ? -1 : 1;
}

/* x.ranges has a line for each range of x.ram. */
int vmpt_image_read_ranges(struct vmpt_image *image, const char *path, struct vmpt_diag *diag)
{
	const u8 *at, *end, *stop;
	struct vmpt_ram_range r;
	char line[128];
	int ret = image->file_count < 2 ? add_other(image, path, ".ranges", ".ram", diag) : 0;

	if (ret < 0)
		return ret;
	at = image->files[0].map.data;
	end = at + image->files[0].map.size;
	for (; at < end; at = stop + 1) {
		size_t n;

		stop = memchr(at, '\n', (size_t)(end - at));
		stop = stop ? stop : end;
		n = (size_t)(stop - at);
		ret = -1;
		if (n < sizeof(line)) {
			memcpy(line, at, n);
			line[n] = '\0';
			ret = parse_range(line, &r);
		}
		if (ret < 0)
			return vmpt_diag_fail(diag, VMPT_E_FORMAT,
					      (u64)(at - image->files[0].map.data),
					      "a line of a list of ranges is PHYSICAL SIZE OFFSET");
		ret = ret ? add_range(image, &r, 1, diag) : 0;
		if (ret)
			return ret;
	}
	return 0;
}

int vmpt_image_read_bytes(struct vmpt_image *image, const struct vmpt_image_options *options,
			  struct vmpt_diag *diag)
{
	int ret = check_empty(image, diag);

	if (ret)
		return ret;
	if (vmpt_extents_add(&image->linear, options->address, image->files[0].size, 0, 0))
		return vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	return 0;
}
