/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside an image: extents, which say where in its files the bytes of an address lie, by linear and
 * by physical address. A reader opens files and fills both lists; everything else is the same for
 * all sources. Later rooms use vmpt-image.h only.
 */
#ifndef VMPT_DECODER_IMAGE_H
#define VMPT_DECODER_IMAGE_H

#include <pthread.h>

#include "decoder/trace/trace.h"
#include "decoder/vmpt-image.h"
#include "util/array.h"
#include "util/hash.h"

/* @size bytes at address @at are those at @offset of a file. */
struct extent {
	u64 at, size, offset;
	u32 file; /* index */
};

/* By address, disjoint once vmpt_extents_finish() was called. */
struct extents {
	struct extent *list;
	size_t count;
};

struct image_file {
	struct vmpt_map map; /* all of it, or if it is not mapped its head */
	u64 size;
	u8 *head;
	int fd; /* >= 0: pages are read when they are asked for */
};

/* A page that is no page of a map: of several extents, partly known, or read by a descriptor. */
struct made_page {
	u64 key; /* address | enum page_of */
	bool whole;
	u64 valid[VMPT_PAGE / 64];
	u8 bytes[VMPT_PAGE];
};

/* Which list a page is of. */
enum page_of { PAGE_LINEAR, PAGE_PHYSICAL };

struct vmpt_image {
	struct image_file *files;
	size_t file_count;
	struct extents linear, physical;
	u8 paging;	     /* enum vmpt_paging, never AUTO once it is open */
	bool paging_guessed; /* neither the image nor its user said it */
	u64 *cr3;	     /* of the vCPUs, as a dump has them */
	size_t cr3_count;
	struct vmpt_image_source source; /* .physical and .memory NULL: none */
	pthread_mutex_t lock;
	struct code_stream *code; /* all of it, if it is one: code-stream.h */
	struct patches *patches;  /* linear memory that was written: patches.h */
	/* From here on: under the lock. */
	struct made_page **made;
	size_t made_count;
	struct vmpt_hash made_hash;
	struct vmpt_image_counts counts;
};

/* ---- extents.c ---- */

/* Add an extent; one that continues the last is joined with it. -VMPT_E_NOMEM. */
int vmpt_extents_add(struct extents *e, u64 at, u64 size, u32 file, u64 offset);
/* Sort them; where two overlap, the one that begins first has the bytes, of these the first added.
 */
int vmpt_extents_finish(struct extents *e);
/* The first extent that ends after @at: an index, or .count. */
size_t vmpt_extents_find(const struct extents *e, u64 at);

/* ---- file.c ---- */

/*
 * Open the file at @path: its index, or a negative error with @diag filled. @live, or if it is in
 * /proc, where files cannot be mapped: pages are read when they are asked for.
 */
int vmpt_image_add_file(struct vmpt_image *image, const char *path, bool live,
			struct vmpt_diag *diag);
/* Hand over @f; the same. */
int vmpt_image_take_file(struct vmpt_image *image, struct image_file *f, struct vmpt_diag *diag);
void vmpt_image_file_close(struct image_file *f);
/* @n bytes at @offset, which lie in the file: how many could be read. */
size_t vmpt_image_file_read(const struct image_file *f, u64 offset, u8 *to, size_t n);

/* ---- open.c, image.c ---- */

/* Of an image that does not say it: as its user says, @paging, else a guess. */
void vmpt_image_set_paging(struct vmpt_image *image, u8 paging);
/* For kinds without .address: 0, or with one -VMPT_E_INVAL with @diag filled. */
int vmpt_image_no_address(const struct vmpt_image_options *options, struct vmpt_diag *diag);

/*
 * The page at @at of a list, by the lock's owner. 1, 0 or -VMPT_E_NOMEM. The memory of pages that
 * are made is at most two for each extent, or of a live file the pages that were asked for.
 */
int vmpt_image_page_at(struct vmpt_image *image, enum page_of of, u64 at, struct vmpt_page *page);

/* Which version is the @nth of @count if @at is the best: the later one, the earlier, and so on. */
bool vmpt_image_nth(size_t count, size_t at, size_t nth, size_t *index);

/* ---- scan.c ---- */

/* Nonzero ends the scan. @page is valid during the call. */
typedef int vmpt_image_scan_fn(void *opaque, u64 physical, const struct vmpt_page *page);
/*
 * Call @take for each whole page of physical memory, by address, with the image's lock held. 0, or
 * a negative error: -VMPT_E_UNSUPPORTED if it has none, or pages are only read when asked for.
 */
int vmpt_image_scan(struct vmpt_image *image, vmpt_image_scan_fn *take, void *opaque);

/* ---- walk.c ---- */

/* Translate by the page tables. 1, or 0 with the reason counted; by the lock's owner. */
int vmpt_image_walk(struct vmpt_image *image, const struct vmpt_space *space, u64 linear,
		    u64 *physical);

/* ---- readers: add files and extents to a new image ---- */

/* files[0] is the image's file, @path its name; NULL: in memory. */
int vmpt_image_read_pages(struct vmpt_image *image, const char *path, struct vmpt_diag *diag);
int vmpt_image_read_ram(struct vmpt_image *image, const struct vmpt_image_options *options,
			struct vmpt_diag *diag);
bool vmpt_image_is_jitdump(const struct vmpt_map *map);
int vmpt_image_read_jitdump(struct vmpt_image *image, struct vmpt_diag *diag);
int vmpt_image_read_ranges(struct vmpt_image *image, const char *path, struct vmpt_diag *diag);
int vmpt_image_read_bytes(struct vmpt_image *image, const struct vmpt_image_options *options,
			  struct vmpt_diag *diag);

int vmpt_image_read_elf(struct vmpt_image *image, const struct vmpt_image_options *options,
			struct vmpt_diag *diag);
bool vmpt_image_is_elf(const struct vmpt_map *map);
/* The GNU build id of an ELF file in memory: its size, 0: it has none. */
size_t vmpt_image_build_id(const struct vmpt_map *map, const u8 **id);
int vmpt_image_read_perf(struct vmpt_image *image, const struct vmpt_image_options *options,
			 struct vmpt_diag *diag);

/* Open an image in memory, which must outlive it; a set of pages is two files. For tests. */
struct vmpt_file {
	const u8 *data; /* not NULL */
	u64 size;
};
int vmpt_image_open_memory(struct vmpt_image **image, const struct vmpt_file *files, size_t count,
			   const struct vmpt_image_options *options, struct vmpt_diag *diag);

#endif
