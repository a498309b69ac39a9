// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* ELF files around a guest's memory; see dump-writer.h. */
#include <elf.h>
#include <stdlib.h>

#include "tests/decoder/image/dump-writer.h"
#include "tests/support/support.h"
#include "util/array.h"

static void append(struct dump *d, const void *bytes, size_t n)
{
	ck_assert_int_eq(vmpt_reserve(&d->data, &d->room, d->size + n + 1), 0);
	if (n)
		memcpy(d->data + d->size, bytes, n);
	d->size += n;
}

void dump_note(struct dump *notes, const char *name, u32 type, const void *bytes, size_t n)
{
	const Elf64_Nhdr h = { (u32)strlen(name) + 1, (u32)n, type };
	static const u8 zero[4];

	append(notes, &h, sizeof(h));
	append(notes, name, h.n_namesz);
	append(notes, zero, -h.n_namesz & 3);
	append(notes, bytes, n);
	append(notes, zero, -n & 3);
}

void dump_qemu_note(struct dump *notes, u64 cr0, u64 cr3, u64 cr4)
{
	struct {
		u32 version, size;
		u64 rax_to_r15[16], rip, rflags;
		struct {
			u32 selector, limit, flags, pad;
			u64 base;
		} cs_to_idt[10];
		u64 cr[5];
		u64 kernel_gs_base;
	} state = { .version = 1, .size = sizeof(state), .cr = { cr0, 0, 0, cr3, cr4 } };

	dump_note(notes, "QEMU", 0, &state, sizeof(state));
}

static void append_segment(struct dump *d, bool narrow, u32 type, const struct dump_segment *s,
			   u64 offset)
{
	const Elf32_Phdr small = { type,	 (u32)offset,  (u32)s->linear, (u32)s->physical,
				   (u32)s->size, (u32)s->size, PF_R | PF_X,    0 };
	const Elf64_Phdr p = { type,	    PF_R | PF_X, offset,  s->linear,
			       s->physical, s->size,	 s->size, 0 };

	if (narrow)
		append(d, &small, sizeof(small));
	else
		append(d, &p, sizeof(p));
}

void dump_elf(struct dump *d, u16 type, u16 machine, bool narrow, const struct dump_segment *s,
	      size_t n, const struct dump *notes)
{
	const size_t head = narrow ? sizeof(Elf32_Ehdr) : sizeof(Elf64_Ehdr);
	const size_t entry = narrow ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr);
	const size_t count = n + !!notes;
	const bool many = count >= PN_XNUM;
	u64 at = head + count * entry + (many ? sizeof(Elf64_Shdr) : 0);
	const Elf64_Shdr first = { .sh_info = (u32)count };
	Elf64_Ehdr wide = { .e_type = type,
			    .e_machine = machine,
			    .e_version = EV_CURRENT,
			    .e_phoff = head,
			    .e_shoff = many ? head + count * entry : 0,
			    .e_ehsize = (u16)head,
			    .e_phentsize = (u16)entry,
			    .e_phnum = many ? PN_XNUM : (u16)count,
			    .e_shentsize = sizeof(Elf64_Shdr),
			    .e_shnum = many };
	Elf32_Ehdr small = { .e_type = type,
			     .e_machine = machine,
			     .e_version = EV_CURRENT,
			     .e_phoff = (u32)head,
			     .e_ehsize = (u16)head,
			     .e_phentsize = (u16)entry,
			     .e_phnum = (u16)count };
	size_t i;

	memcpy(wide.e_ident, ELFMAG, SELFMAG);
	wide.e_ident[EI_CLASS] = narrow ? ELFCLASS32 : ELFCLASS64;
	wide.e_ident[EI_DATA] = ELFDATA2LSB;
	wide.e_ident[EI_VERSION] = EV_CURRENT;
	memcpy(small.e_ident, wide.e_ident, sizeof(small.e_ident));
	*d = (struct dump){ 0 };
	append(d, narrow ? (const void *)&small : &wide, head);
	if (notes) {
		append_segment(d, narrow, PT_NOTE, &(struct dump_segment){ .size = notes->size },
			       at);
		at += notes->size;
	}
	for (i = 0; i < n; at += s[i++].size)
		append_segment(d, narrow, PT_LOAD, &s[i], at);
	if (many)
		append(d, &first, sizeof(first));
	if (notes)
		append(d, notes->data, notes->size);
	for (i = 0; i < n; i++)
		append(d, s[i].bytes, s[i].size);
}
