// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * QEMU's notes in a kdump-compressed dump: how the vCPUs translated addresses. libkdumpfile does
 * not read them. VMCOREINFO, which says it too, is only there if the VM has a device for it.
 */
#include <elf.h>
#include <stdlib.h>
#include <unistd.h>

#include "decoder/kdump/kdump.h"

/*
 * struct disk_dump_header of makedumpfile has the size of a block, the next block begins with
 * kdump_sub_header: those of 64-bit dumps, which QEMU writes on x86-64 whatever the guest's mode.
 */
#define HEAD_BLOCK 428
#define SUB_NOTES  48
#define SUB_SIZE   64
#define NOTES_MAX  (1U << 20)

/* sizeof(struct elf_prstatus) of x86-64: QEMU writes it if IA32_EFER.LMA is set. */
#define PRSTATUS_64 336

#define CR0_PG	 (1ULL << 31)
#define CR4_PAE	 (1ULL << 5)
#define CR4_LA57 (1ULL << 12)

/* As in decoder/image/elf.c. */
enum { QEMU_CR0 = 8 + 18 * 8 + 10 * 24, QEMU_CR4 = QEMU_CR0 + 32, QEMU_SIZE = QEMU_CR4 + 8 };

static u64 load(const u8 *at, size_t size)
{
	u64 v = 0;

	memcpy(&v, at, size);
	return v;
}

static u8 paging_of(u64 cr0, u64 cr4, bool is_64)
{
	if (!(cr0 & CR0_PG))
		return VMPT_PAGING_AUTO;
	if (is_64)
		return cr4 & CR4_LA57 ? VMPT_PAGING_5 : VMPT_PAGING_4;
	return cr4 & CR4_PAE ? VMPT_PAGING_PAE : VMPT_PAGING_32;
}

/* Of the first vCPU with paging. QEMU has the notes CORE of all, then QEMU of all. */
static u8 read_notes(const u8 *at, u64 left)
{
	u8 paging = VMPT_PAGING_AUTO;
	bool is_64 = false;
	Elf64_Nhdr note;

	while (paging == VMPT_PAGING_AUTO && left >= sizeof(note)) {
		const u8 *name = at + sizeof(note), *desc;
		u64 size;

		memcpy(&note, at, sizeof(note));
		size = sizeof(note) + ((note.n_namesz + 3ULL) & ~3ULL) +
		       ((note.n_descsz + 3ULL) & ~3ULL);
		if (size > left)
			break;
		desc = name + ((note.n_namesz + 3ULL) & ~3ULL);
		if (note.n_namesz == 5 && !memcmp(name, "CORE", 5))
			is_64 |= note.n_descsz == PRSTATUS_64;
		if (note.n_namesz == 5 && !memcmp(name, "QEMU", 5) && note.n_descsz >= QEMU_SIZE)
			paging = paging_of(load(desc + QEMU_CR0, 8), load(desc + QEMU_CR4, 8),
					   is_64);
		at += size;
		left -= size;
	}
	return paging;
}

u8 kdump_qemu_paging(int fd)
{
	u8 word[4], sub[SUB_SIZE], paging = VMPT_PAGING_AUTO, *notes;
	u64 offset, size;

	if (pread(fd, word, sizeof(word), HEAD_BLOCK) != sizeof(word) ||
	    pread(fd, sub, sizeof(sub), (off_t)load(word, 4)) != sizeof(sub))
		return paging;
	offset = load(sub + SUB_NOTES, 8);
	size = load(sub + SUB_NOTES + 8, 8);
	if (!size || size > NOTES_MAX || offset > INT64_MAX)
		return paging;
	notes = malloc(size);
	if (notes && pread(fd, notes, size, (off_t)offset) == (ssize_t)size)
		paging = read_notes(notes, size);
	free(notes);
	return paging;
}
