// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Bytes of files in the page cache: an xarray of pages (Documentation/core-api/xarray.rst), and of
 * a page its place, by the array of all struct page (vmemmap). With it the build ids of programs,
 * whose headers no process has to have in its page tables.
 */
#include <elf.h>

#include "decoder/names/guest.h"

#define LEVELS_MAX   11 /* of 6 bits each */
#define SEGMENTS_MAX 64
#define NOTES_MAX    4096

/* Bits 1:0 of what an xarray holds: a pointer, a value, or its own: a node, a sibling. */
static bool is_node(u64 entry)
{
	return (entry & 3) == 2 && entry > 4096;
}

static bool is_sibling(u64 entry)
{
	return (entry & 3) == 2 && entry < 64 << 2;
}

/* The page or the first page of the folio that has page @index of the file; 0: none. */
static u64 find_entry(struct vmpt_guest *g, u64 entry, u64 index)
{
	unsigned int i;

	for (i = 0; i < LEVELS_MAX && is_node(entry); i++) {
		u64 node = entry - 2, slot;
		u8 shift;

		if (!vmpt_guest_load(g, g->kernel.cr3, node + g->field[NODE_SHIFT], &shift, 1) ||
		    shift > 60 || (!i && index >> shift >> 6))
			return 0;
		slot = index >> shift & 63;
		if (!vmpt_guest_u64(g, node + g->field[NODE_SLOTS] + 8 * slot, &entry))
			return 0;
		if (is_sibling(entry) &&
		    !vmpt_guest_u64(g, node + g->field[NODE_SLOTS] + 8 * (entry >> 2), &entry))
			return 0;
	}
	return entry & 3 || (!i && index) ? 0 : entry;
}

static bool find_page(struct vmpt_guest *g, u64 file, u64 index, struct vmpt_page *page)
{
	u64 mapping, pages, entry, first, number;

	if (!g->page_map || !guest_has(g, MAPPING_PAGES) || !guest_has(g, PAGES_HEAD) ||
	    !guest_has(g, NODE_SHIFT) || !guest_has(g, NODE_SLOTS) || !g->info.page_size ||
	    !vmpt_guest_field64(g, file, FILE_MAPPING, &mapping) || !mapping)
		return false;
	pages = mapping + g->field[MAPPING_PAGES];
	if (!vmpt_guest_u64(g, pages + g->field[PAGES_HEAD], &entry))
		return false;
	entry = find_entry(g, entry, index);
	if (entry < g->page_map || !entry)
		return false;
	number = (entry - g->page_map) / g->info.page_size;
	if (vmpt_guest_field64(g, entry, PAGE_INDEX, &first) && first <= index)
		number += index - first;
	return !(number >> 40) && vmpt_image_physical(g->image, number * VMPT_PAGE, page) > 0 &&
	       !page->valid;
}

bool vmpt_guest_file_read(struct vmpt_guest *g, u64 file, u64 offset, void *to, size_t size)
{
	unsigned int from = offset % VMPT_PAGE;
	struct vmpt_page page;

	if (size > VMPT_PAGE - from || !find_page(g, file, offset / VMPT_PAGE, &page))
		return false;
	memcpy(to, page.bytes + from, size);
	return true;
}

/* ---- build ids ---- */

/* NT_GNU_BUILD_ID among the notes of @size bytes. */
static size_t find_id(const u8 *notes, size_t size, u8 id[64])
{
	size_t at = 0;

	while (size - at >= sizeof(Elf64_Nhdr)) {
		size_t name, desc;
		Elf64_Nhdr n;

		memcpy(&n, notes + at, sizeof(n));
		at += sizeof(n);
		name = (n.n_namesz + 3ULL) & ~3ULL;
		desc = (n.n_descsz + 3ULL) & ~3ULL;
		if (name > size - at || desc > size - at - name)
			return 0;
		if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 &&
		    !memcmp(notes + at, "GNU", 4) && n.n_descsz <= 64) {
			memcpy(id, notes + at + name, n.n_descsz);
			return n.n_descsz;
		}
		at += name + desc;
	}
	return 0;
}

/* Segment @i's place and size in the file if it has notes. */
static bool is_notes(guest_read_fn *read, void *opaque, const Elf64_Ehdr *h, unsigned int i,
		     u64 *offset, u64 *size)
{
	u8 bytes[sizeof(Elf64_Phdr)];
	Elf64_Phdr p;
	Elf32_Phdr q;

	if (h->e_ident[EI_CLASS] == ELFCLASS64) {
		if (!read(opaque, h->e_phoff + i * sizeof(p), bytes, sizeof(p)))
			return false;
		memcpy(&p, bytes, sizeof(p));
		*offset = p.p_offset;
		*size = p.p_filesz;
		return p.p_type == PT_NOTE;
	}
	if (!read(opaque, h->e_phoff + i * sizeof(q), bytes, sizeof(q)))
		return false;
	memcpy(&q, bytes, sizeof(q));
	*offset = q.p_offset;
	*size = q.p_filesz;
	return q.p_type == PT_NOTE;
}

size_t vmpt_guest_build_id(guest_read_fn *read, void *opaque, u8 id[64])
{
	u8 notes[NOTES_MAX];
	Elf32_Ehdr narrow;
	Elf64_Ehdr h;
	unsigned int i;

	if (!read(opaque, 0, &h, sizeof(h)) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0)
		return 0;
	if (h.e_ident[EI_CLASS] != ELFCLASS64) {
		memcpy(&narrow, &h, sizeof(narrow));
		h.e_phoff = narrow.e_phoff;
		h.e_phnum = narrow.e_phnum;
	}
	for (i = 0; i < h.e_phnum && i < SEGMENTS_MAX; i++) {
		u64 offset, size;
		size_t n;

		if (!is_notes(read, opaque, &h, i, &offset, &size) || size > sizeof(notes) ||
		    !read(opaque, offset, notes, size))
			continue;
		n = find_id(notes, size, id);
		if (n)
			return n;
	}
	return 0;
}
