// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * image-compare RAM DUMP [MODULE]: whether the dump has the pages of the raw memory RAM, and those
 * that its page tables lead to. MODULE: that for kdump-compressed ones. Prints what it knows of the
 * dump.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "decoder/kdump/kdump.h"

/* Where paging.S maps its page, and in which address space. */
#define LINEAR 0x40000000ULL
#define CR3    0x1000ULL

static int open_dump(struct vmpt_image **image, const char *path, const char *module,
		     struct vmpt_diag *diag)
{
	struct vmpt_image_source source;
	vmpt_kdump_open_fn *open_kdump;
	void *handle;
	int ret;

	if (!module)
		return vmpt_image_open(image, path, NULL, diag);
	handle = dlopen(module, RTLD_NOW);
	if (!handle) {
		snprintf(diag->text, sizeof(diag->text), "%s", dlerror());
		return -VMPT_E_IO;
	}
	*(void **)&open_kdump = dlsym(handle, VMPT_KDUMP_OPEN);
	ret = open_kdump(path, &source, diag);
	return ret ? ret : vmpt_image_make(image, &source, NULL);
}

static u64 compare(struct vmpt_image *ram, struct vmpt_image *dump, u64 size)
{
	u64 at, differ = 0;

	for (at = 0; at < size; at += VMPT_PAGE) {
		struct vmpt_page a, b;

		if (vmpt_image_physical(ram, at, &a) != 1 ||
		    vmpt_image_physical(dump, at, &b) != 1 || b.valid ||
		    memcmp(a.bytes, b.bytes, VMPT_PAGE) != 0)
			differ++;
	}
	return differ;
}

int main(int argc, char **argv)
{
	struct vmpt_space space = { .cr3 = CR3, .exec = 64 };
	struct vmpt_image *ram, *dump;
	struct vmpt_image_info info;
	struct vmpt_diag diag = { 0 };
	struct vmpt_page page;
	struct stat st;
	size_t i;

	if (argc < 3 || stat(argv[1], &st) || vmpt_image_open(&ram, argv[1], NULL, &diag) ||
	    open_dump(&dump, argv[2], argc > 3 ? argv[3] : NULL, &diag)) {
		fprintf(stderr, "image-compare: %s\n", diag.text);
		return 1;
	}
	vmpt_image_info(dump, &info);
	printf("differ %llu paging %u", (unsigned long long)compare(ram, dump, (u64)st.st_size),
	       info.paging);
	for (i = 0; i < info.cr3_count; i++)
		printf(" cr3 %llx", (unsigned long long)info.cr3[i]);
	if (vmpt_image_page(dump, &space, LINEAR, 0, &page) == 1)
		printf(" text %.4s%c", (const char *)page.bytes, page.bytes[VMPT_PAGE - 4]);
	printf("\n");
	vmpt_image_close(ram);
	vmpt_image_close(dump);
	return 0;
}
