// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Opening files as images: what kind each is, and its reader. */
#include "decoder/image/code-stream.h"
#include "decoder/image/image.h"
#include "decoder/image/patches.h"

static bool ends_with(const char *path, const char *end)
{
	size_t n = path ? strlen(path) : 0, m = strlen(end);

	return n >= m && !strcmp(path + n - m, end);
}

static u8 find_kind(const struct vmpt_image *image, const char *path,
		    const struct vmpt_image_options *o)
{
	if (ends_with(path, ".addr"))
		return VMPT_IMAGE_PAGES;
	if (vmpt_code_stream_is(image->files[0].map.data, image->files[0].map.size))
		return VMPT_IMAGE_CODE;
	if (ends_with(path, ".ranges"))
		return VMPT_IMAGE_RANGES;
	if (vmpt_image_is_elf(&image->files[0].map))
		return VMPT_IMAGE_ELF;
	if (vmpt_perf_is(image->files[0].map.data, image->files[0].map.size))
		return VMPT_IMAGE_PERF;
	if (vmpt_image_is_jitdump(&image->files[0].map))
		return VMPT_IMAGE_JITDUMP;
	return o->has_address ? VMPT_IMAGE_BYTES : VMPT_IMAGE_RAM;
}

int vmpt_image_no_address(const struct vmpt_image_options *o, struct vmpt_diag *diag)
{
	if (!o->has_address)
		return 0;
	return vmpt_diag_fail(diag, VMPT_E_INVAL, 0,
			      "it has its own addresses: only raw bytes and ELF programs take an "
			      "address, and a perf.data a process id");
}

static int read_image(struct vmpt_image *image, const char *path,
		      const struct vmpt_image_options *o, struct vmpt_diag *diag)
{
	u8 kind = o->kind;

	if (kind == VMPT_IMAGE_AUTO)
		kind = find_kind(image, path, o);
	if (kind != VMPT_IMAGE_BYTES && kind != VMPT_IMAGE_ELF && kind != VMPT_IMAGE_PERF &&
	    vmpt_image_no_address(o, diag))
		return -VMPT_E_INVAL;
	switch (kind) {
	case VMPT_IMAGE_PAGES:
		return vmpt_image_read_pages(image, path, diag);
	case VMPT_IMAGE_ELF:
		return vmpt_image_read_elf(image, o, diag);
	case VMPT_IMAGE_PERF:
		return vmpt_image_read_perf(image, o, diag);
	case VMPT_IMAGE_RAM:
		return vmpt_image_read_ram(image, o, diag);
	case VMPT_IMAGE_JITDUMP:
		return vmpt_image_read_jitdump(image, diag);
	case VMPT_IMAGE_RANGES:
		return vmpt_image_read_ranges(image, path, diag);
	case VMPT_IMAGE_CODE:
		return vmpt_code_stream_open(&image->code, image->files[0].map.data,
					     image->files[0].map.size, diag);
	case VMPT_IMAGE_BYTES:
		return vmpt_image_read_bytes(image, o, diag);
	default:
		return vmpt_diag_fail(diag, VMPT_E_INVAL, 0, "no kind of image: %u", kind);
	}
}

/* The lists are sorted once they are complete. */
static int finish(struct vmpt_image *image, const struct vmpt_image_options *o,
		  struct vmpt_diag *diag)
{
	if (vmpt_extents_finish(&image->linear) || vmpt_extents_finish(&image->physical) ||
	    vmpt_patches_finish(image->patches))
		return vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	vmpt_image_set_paging(image, o->paging);
	return 0;
}

/* Of the file at @path, or of those in memory. */
static int open_image(struct vmpt_image **out, const char *path, const struct vmpt_file *files,
		      size_t count, const struct vmpt_image_options *options,
		      struct vmpt_diag *diag)
{
	static const struct vmpt_image_options none;
	struct vmpt_image *image;
	int ret = 0;
	size_t i;

	if (diag)
		*diag = (struct vmpt_diag){ 0 };
	if (!options)
		options = &none;
	if (options->paging > VMPT_PAGING_5)
		return vmpt_diag_fail(diag, VMPT_E_INVAL, 0, "no paging mode: %u", options->paging);
	image = calloc(1, sizeof(*image));
	if (!image)
		return vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	pthread_mutex_init(&image->lock, NULL);
	if (path)
		ret = vmpt_image_add_file(image, path, options->live, diag);
	for (i = 0; i < count && ret >= 0; i++) {
		struct image_file f = { .map = { .data = files[i].data, .size = files[i].size },
					.fd = -1,
					.size = files[i].size };

		ret = vmpt_image_take_file(image, &f, diag);
	}
	if (ret >= 0)
		ret = read_image(image, path, options, diag);
	if (!ret)
		ret = finish(image, options, diag);
	if (ret)
		vmpt_image_close(image);
	else
		*out = image;
	return ret;
}

int vmpt_image_open_abi(struct vmpt_image **image, const char *path,
			const struct vmpt_image_options *options, struct vmpt_diag *diag, u64 abi)
{
	if (abi != VMPT_IMAGE_ABI)
		return -VMPT_E_VERSION;
	return open_image(image, path, NULL, 0, options, diag);
}

int vmpt_image_open_memory(struct vmpt_image **image, const struct vmpt_file *files, size_t count,
			   const struct vmpt_image_options *options, struct vmpt_diag *diag)
{
	return open_image(image, NULL, files, count, options, diag);
}
