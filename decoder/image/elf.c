// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * ELF files: programs and kernels, memory dumps (QEMU's dump-guest-memory, "virsh dump
 * --memory-only", /proc/vmcore) and /proc/kcore. Only program headers and notes are read, by the
 * structures of <elf.h>: libelf would be a library more for every user of this one, and wants all
 * of a file, which /proc/kcore cannot give.
 */
#include <elf.h>

#include "decoder/image/image.h"

/* A file's header as that of 64 bits. */
struct elf {
	const u8 *data;
	u64 size; /* of what is in memory */
	bool wide;
	Elf64_Ehdr header;
	u64 segments;
};

static bool inside(const struct elf *elf, u64 offset, u64 size)
{
	return offset <= elf->size && size <= elf->size - offset;
}

#define COPY(to, from, field) ((to).field = (from).field)

static void read_header(struct elf *elf)
{
	Elf32_Ehdr h;

	if (elf->wide) {
		memcpy(&elf->header, elf->data, sizeof(elf->header));
		return;
	}
	memcpy(&h, elf->data, sizeof(h));
	COPY(elf->header, h, e_type);
	COPY(elf->header, h, e_machine);
	COPY(elf->header, h, e_phoff);
	COPY(elf->header, h, e_shoff);
	COPY(elf->header, h, e_phentsize);
	COPY(elf->header, h, e_phnum);
	COPY(elf->header, h, e_shentsize);
	COPY(elf->header, h, e_shnum);
}

static void read_segment(const struct elf *elf, u64 i, Elf64_Phdr *segment)
{
	const u8 *at = elf->data + elf->header.e_phoff + i * elf->header.e_phentsize;
	Elf32_Phdr p;

	if (elf->wide) {
		memcpy(segment, at, sizeof(*segment));
		return;
	}
	memcpy(&p, at, sizeof(p));
	COPY(*segment, p, p_type);
	COPY(*segment, p, p_flags);
	COPY(*segment, p, p_offset);
	COPY(*segment, p, p_vaddr);
	COPY(*segment, p, p_paddr);
	COPY(*segment, p, p_filesz);
	COPY(*segment, p, p_memsz);
}

static void read_section(const struct elf *elf, u64 i, Elf64_Shdr *section)
{
	const u8 *at = elf->data + elf->header.e_shoff + i * elf->header.e_shentsize;
	Elf32_Shdr s;

	if (elf->wide) {
		memcpy(section, at, sizeof(*section));
		return;
	}
	memcpy(&s, at, sizeof(s));
	COPY(*section, s, sh_type);
	COPY(*section, s, sh_flags);
	COPY(*section, s, sh_size);
	COPY(*section, s, sh_info);
}

static bool has_sections(const struct elf *elf, u64 n)
{
	return elf->header.e_shoff &&
	       elf->header.e_shentsize >= (elf->wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr)) &&
	       inside(elf, elf->header.e_shoff, n * elf->header.e_shentsize);
}

static int open_elf(struct elf *elf, const struct vmpt_map *map, struct vmpt_diag *diag)
{
	Elf64_Shdr first;

	*elf = (struct elf){ .data = map->data, .size = map->size };
	if (map->size < sizeof(Elf32_Ehdr) || memcmp(map->data, ELFMAG, SELFMAG))
		return vmpt_diag_fail(diag, VMPT_E_FORMAT, 0, "not an ELF file");
	elf->wide = map->data[EI_CLASS] == ELFCLASS64;
	if (elf->wide && map->size < sizeof(Elf64_Ehdr))
		return vmpt_diag_fail(diag, VMPT_E_FORMAT, 0,
				      "an ELF file that ends in its header");
	read_header(elf);
	if (map->data[EI_DATA] != ELFDATA2LSB ||
	    (elf->header.e_machine != EM_X86_64 && elf->header.e_machine != EM_386))
		return vmpt_diag_fail(diag, VMPT_E_UNSUPPORTED, EI_DATA,
				      "an ELF file of another processor: not x86");
	/* Many segments: their number is in the first section header. */
	elf->segments = elf->header.e_phnum;
	if (elf->segments == PN_XNUM && has_sections(elf, 1)) {
		read_section(elf, 0, &first);
		elf->segments = first.sh_info;
	}
	if (elf->header.e_phentsize < (elf->wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)) ||
	    !inside(elf, elf->header.e_phoff, elf->segments * elf->header.e_phentsize))
		return vmpt_diag_fail(diag, VMPT_E_FORMAT, elf->header.e_phoff,
				      "the program headers of the ELF file lie outside of it");
	return 0;
}

/* ---- notes of a dump ---- */

#define CR0_PG	 (1ULL << 31)
#define CR4_PAE	 (1ULL << 5)
#define CR4_LA57 (1ULL << 12)

/*
 * QEMU's note for each vCPU, target/i386/arch_dump.c: version and size, 18 registers, 10 segments
 * of 24 bytes, CR0 to CR4. IA32_EFER is not in it: QEMU calls the machine x86-64 if LMA is set.
 */
enum { QEMU_CR0 = 8 + 18 * 8 + 10 * 24, QEMU_CR3 = QEMU_CR0 + 24, QEMU_CR4 = QEMU_CR0 + 32 };

static int read_qemu_note(struct vmpt_image *image, const struct elf *elf, const u8 *note, u64 size)
{
	u64 cr0, cr4;

	if (size < QEMU_CR4 + 8)
		return 0;
	cr0 = vmpt_load64(note + QEMU_CR0);
	cr4 = vmpt_load64(note + QEMU_CR4);
	/* A vCPU that was not started yet says nothing. */
	if (!(cr0 & CR0_PG))
		return 0;
	if (image->paging == VMPT_PAGING_AUTO)
		image->paging = elf->header.e_machine == EM_X86_64
					? (cr4 & CR4_LA57 ? VMPT_PAGING_5 : VMPT_PAGING_4)
					: (cr4 & CR4_PAE ? VMPT_PAGING_PAE : VMPT_PAGING_32);
	if (vmpt_grow(&image->cr3, image->cr3_count))
		return -VMPT_E_NOMEM;
	image->cr3[image->cr3_count++] = vmpt_load64(note + QEMU_CR3);
	return 0;
}

/* Linux's: lines of text, NUMBER(pgtable_l5_enabled)=1. */
static void read_vmcoreinfo(struct vmpt_image *image, const u8 *note, u64 size)
{
	static const char l5[] = "NUMBER(pgtable_l5_enabled)=";
	const u8 *at = memmem(note, size, l5, sizeof(l5) - 1);

	if (at && at + sizeof(l5) - 1 < note + size && image->paging == VMPT_PAGING_AUTO)
		image->paging = at[sizeof(l5) - 1] == '1' ? VMPT_PAGING_5 : VMPT_PAGING_4;
}

/*
 * The note at *@offset of a segment's *@left bytes, both of which move after it: its name and
 * descriptor, padded to 4 bytes each. False: there are no more.
 */
static bool next_note(const struct elf *elf, u64 *offset, u64 *left, Elf64_Nhdr *note,
		      const u8 **name, const u8 **desc)
{
	u64 n;

	if (!inside(elf, *offset, sizeof(*note)) || *left < sizeof(*note))
		return false;
	if (*left > elf->size - *offset)
		*left = elf->size - *offset;
	memcpy(note, elf->data + *offset, sizeof(*note));
	*name = elf->data + *offset + sizeof(*note);
	n = (note->n_namesz + 3ULL) & ~3ULL;
	*desc = *name + n;
	n += sizeof(*note) + ((note->n_descsz + 3ULL) & ~3ULL);
	if (n > *left)
		return false;
	*offset += n;
	*left -= n;
	return true;
}

static bool is_named(const Elf64_Nhdr *note, const u8 *name, const char *want)
{
	size_t n = strlen(want);

	return note->n_namesz >= n && note->n_namesz <= n + 1 && !memcmp(name, want, n);
}

static int read_notes(struct vmpt_image *image, const struct elf *elf, u64 offset, u64 size)
{
	const u8 *name, *desc;
	Elf64_Nhdr note;
	int ret = 0;

	while (!ret && next_note(elf, &offset, &size, &note, &name, &desc)) {
		if (is_named(&note, name, "QEMU"))
			ret = read_qemu_note(image, elf, desc, note.n_descsz);
		else if (is_named(&note, name, "VMCOREINFO"))
			read_vmcoreinfo(image, desc, note.n_descsz);
	}
	return ret;
}

/* ---- segments ---- */

/* What of @segment is in the file; what is not is counted. */
static u64 in_file(const struct vmpt_image *image, const Elf64_Phdr *segment, u64 *missing)
{
	u64 end = image->files[0].size, size = segment->p_filesz;

	if (segment->p_offset > end || size > end - segment->p_offset)
		size = segment->p_offset > end ? 0 : end - segment->p_offset;
	*missing += segment->p_filesz - size;
	return size;
}

static void report_missing(struct vmpt_diag *diag, u64 missing, u64 size)
{
	if (missing)
		vmpt_diag_fail(diag, VMPT_E_TRUNCATED, size,
			       "the file ends early: %llu bytes of its segments are not in it, and "
			       "not known",
			       (unsigned long long)missing);
}

/*
 * A dump. Bytes are at p_paddr, and at p_vaddr where that is given: dump-guest-memory without
 * paging gives 0, or p_paddr again. /proc/kcore gives ~0 as p_paddr of what is not the direct map
 * or the kernel, and older ones, and perf's copies, 0 for all.
 */
static int read_dump(struct vmpt_image *image, const struct elf *elf, struct vmpt_diag *diag)
{
	bool physical = false, linear = false;
	u64 i, missing = 0;
	Elf64_Phdr p;
	int ret = 0;

	for (i = 0; i < elf->segments; i++) {
		read_segment(elf, i, &p);
		if (p.p_type != PT_LOAD)
			continue;
		linear |= p.p_vaddr && p.p_vaddr != p.p_paddr;
		physical |= p.p_paddr && p.p_paddr != (elf->wide ? ~0ULL : ~0U);
	}
	for (i = 0; i < elf->segments && !ret; i++) {
		u64 size;

		read_segment(elf, i, &p);
		if (p.p_type == PT_NOTE)
			ret = read_notes(image, elf, p.p_offset, p.p_filesz);
		if (p.p_type != PT_LOAD)
			continue;
		size = in_file(image, &p, &missing);
		if (p.p_vaddr && p.p_vaddr != p.p_paddr)
			ret = vmpt_extents_add(&image->linear, p.p_vaddr, size, 0, p.p_offset);
		if (!ret && (physical || !linear) && p.p_paddr != (elf->wide ? ~0ULL : ~0U))
			ret = vmpt_extents_add(&image->physical, p.p_paddr, size, 0, p.p_offset);
	}
	if (ret)
		return vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	if (!image->linear.count && !image->physical.count)
		return vmpt_diag_fail(diag, VMPT_E_FORMAT, 0, "the dump has no memory in it");
	report_missing(diag, missing, image->files[0].size);
	return 0;
}

/* Debugging information alone, as objcopy --only-keep-debug leaves it: code without its bytes. */
static bool lacks_code(const struct elf *elf)
{
	Elf64_Shdr s;
	u64 i;

	if (!has_sections(elf, elf->header.e_shnum))
		return false;
	for (i = 0; i < elf->header.e_shnum; i++) {
		read_section(elf, i, &s);
		if (s.sh_type == SHT_NOBITS && s.sh_flags & SHF_EXECINSTR && s.sh_size)
			return true;
	}
	return false;
}

/* A program, a library or a kernel: @options->address is where its first page is. */
static int read_program(struct vmpt_image *image, const struct elf *elf,
			const struct vmpt_image_options *options, struct vmpt_diag *diag)
{
	u64 i, shift = 0, missing = 0;
	bool first = true;
	Elf64_Phdr p;

	if (lacks_code(elf))
		return vmpt_diag_fail(
			diag, VMPT_E_FORMAT, 0,
			"it has debugging information and no code; give the file that "
			"this was made from");
	for (i = 0; i < elf->segments; i++) {
		u64 size;

		read_segment(elf, i, &p);
		if (p.p_type != PT_LOAD)
			continue;
		if (first && options->has_address)
			shift = options->address - (p.p_vaddr & ~(VMPT_PAGE - 1ULL));
		first = false;
		size = in_file(image, &p, &missing);
		if (vmpt_extents_add(&image->linear, p.p_vaddr + shift, size, 0, p.p_offset))
			return vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	}
	if (!image->linear.count)
		return vmpt_diag_fail(
			diag, VMPT_E_FORMAT, 0,
			"the ELF file has no segments that are loaded: give what runs, "
			"not an object file");
	report_missing(diag, missing, image->files[0].size);
	return 0;
}

size_t vmpt_image_build_id(const struct vmpt_map *map, const u8 **id)
{
	const u8 *name;
	Elf64_Nhdr note;
	struct elf elf;
	Elf64_Phdr p;
	u64 i;

	if (open_elf(&elf, map, NULL))
		return 0;
	for (i = 0; i < elf.segments; i++) {
		read_segment(&elf, i, &p);
		while (p.p_type == PT_NOTE &&
		       next_note(&elf, &p.p_offset, &p.p_filesz, &note, &name, id))
			if (note.n_type == NT_GNU_BUILD_ID && is_named(&note, name, "GNU"))
				return note.n_descsz;
	}
	return 0;
}

bool vmpt_image_is_elf(const struct vmpt_map *map)
{
	return map->size >= SELFMAG && !memcmp(map->data, ELFMAG, SELFMAG);
}

int vmpt_image_read_elf(struct vmpt_image *image, const struct vmpt_image_options *options,
			struct vmpt_diag *diag)
{
	struct elf elf;
	int ret = open_elf(&elf, &image->files[0].map, diag);

	if (ret)
		return ret;
	if (elf.header.e_type != ET_CORE)
		return read_program(image, &elf, options, diag);
	ret = vmpt_image_no_address(options, diag);
	return ret ? ret : read_dump(image, &elf, diag);
}
