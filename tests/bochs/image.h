/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Reads code in an image of the PC's memory (bochs/instrument/image.cc) by linear address, through
 * the page tables of host or guest and those of EPT, which are in the image too.
 */
#ifndef VMPT_TESTS_BOCHS_IMAGE_H
#define VMPT_TESTS_BOCHS_IMAGE_H

#include "arch/types.h"
#include "tests/flow/truth-reader.h"

struct image {
	const u8 *bytes;
	u64 size;
};

/* Returns false after printing why. */
bool image_open(struct image *image, const char *path);
void image_close(struct image *image);

/*
 * Reads @n bytes at linear address @ip, translated by @now's CR3, EPT pointer and flags. Returns
 * false if some of them are not mapped or not in the image.
 */
bool image_read(const struct image *image, const struct truth_now *now, u64 ip, u8 *bytes,
		size_t n);

#endif
