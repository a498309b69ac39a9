// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/truth-format.h"
#include "tests/bochs/image.h"

#define ADDRESS	    0x000ffffffffff000ull
#define PRESENT	    1u
#define EPT_ALLOWED 7u /* any of read, write, execute */
#define LARGE	    (1u << 7)

bool image_open(struct image *image, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *bytes;

	if (fd < 0 || fstat(fd, &st) < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return false;
	}
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (bytes == MAP_FAILED) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return false;
	}
	image->bytes = bytes;
	image->size = (u64)st.st_size;
	return true;
}

void image_close(struct image *image)
{
	munmap((void *)image->bytes, image->size);
}

static bool read_entry(const struct image *image, u64 pa, unsigned int size, u64 *entry)
{
	*entry = 0;
	if (pa > image->size || image->size - pa < size)
		return false;
	memcpy(entry, image->bytes + pa, size);
	return true;
}

/*
 * A walk of @levels tables of 512 entries, the topmost at @table. @present: an entry with any of
 * these bits is present.
 */
static bool walk(const struct image *image, const struct truth_now *now, u64 table,
		 unsigned int levels, u32 present, u64 address, u64 *pa);

/* A guest-physical address, or a physical one. */
static bool translate_gpa(const struct image *image, const struct truth_now *now, u64 gpa, u64 *pa)
{
	*pa = gpa;
	return !now->eptp || walk(image, NULL, now->eptp & ADDRESS, 4, EPT_ALLOWED, gpa, pa);
}

static bool walk(const struct image *image, const struct truth_now *now, u64 table,
		 unsigned int levels, u32 present, u64 address, u64 *pa)
{
	u64 entry, at, mask;
	unsigned int shift;

	for (; levels--; table = entry & ADDRESS) {
		shift = 12 + 9 * levels;
		at = table + (address >> shift & 511) * 8;
		if ((now && !translate_gpa(image, now, at, &at)) ||
		    !read_entry(image, at, 8, &entry) || !(entry & present))
			return false;
		/* The topmost level cannot map pages. */
		if (levels && (levels > 2 || !(entry & LARGE)))
			continue;
		mask = (1ull << shift) - 1;
		*pa = (entry & ADDRESS & ~mask) | (address & mask);
		return true;
	}
	return false;
}

/* Two levels of 1024 entries; pages of 4 MB. */
static bool walk32(const struct image *image, const struct truth_now *now, u64 address, u64 *pa)
{
	u64 at = (now->cr3 & 0xfffff000) + (address >> 22 & 1023) * 4, entry;

	if (!translate_gpa(image, now, at, &at) || !read_entry(image, at, 4, &entry) ||
	    !(entry & PRESENT))
		return false;
	if (entry & LARGE) {
		*pa = (entry & 0xffc00000) | (entry & 0x1fe000) << 19 | (address & 0x3fffff);
		return true;
	}
	at = (entry & 0xfffff000) + (address >> 12 & 1023) * 4;
	if (!translate_gpa(image, now, at, &at) || !read_entry(image, at, 4, &entry) ||
	    !(entry & PRESENT))
		return false;
	*pa = (entry & 0xfffff000) | (address & 0xfff);
	return true;
}

static bool translate(const struct image *image, const struct truth_now *now, u64 ip, u64 *pa)
{
	u64 gpa = ip, table = now->cr3 & ADDRESS;

	if (now->flags & TRUTH_LA57)
		return false;
	if (now->flags & TRUTH_LONG) {
		if (!walk(image, now, table, 4, PRESENT, ip, &gpa))
			return false;
	} else if (now->flags & TRUTH_PAGING && now->flags & TRUTH_PAE) {
		/* Four entries for 4 GB, at a multiple of 32. */
		if (!walk(image, now, now->cr3 & 0xffffffe0, 3, PRESENT, ip & 0xffffffff, &gpa))
			return false;
	} else if (now->flags & TRUTH_PAGING) {
		if (!walk32(image, now, ip, &gpa))
			return false;
	}
	return translate_gpa(image, now, gpa, pa);
}

bool image_read(const struct image *image, const struct truth_now *now, u64 ip, u8 *bytes, size_t n)
{
	u64 pa, room;

	for (; n; bytes += room, ip += room, n -= room) {
		room = 4096 - (ip & 4095);
		if (room > n)
			room = n;
		if (!translate(image, now, ip, &pa) || pa > image->size || image->size - pa < room)
			return false;
		memcpy(bytes, image->bytes + pa, room);
	}
	return true;
}
