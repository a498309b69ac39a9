// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * cli/symbols: ELF files whose parts share bytes cost no more than their size. The files are
 * written here, by the ELF specification.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli/cli-run.h"
#include "tests/support/support.h"

#define SYMBOLS	 20000
#define SECTIONS 60000
#define NAMES	 (2 << 20)
#define CODE	 (8 << 20)

static u8 *file;
static size_t size;

static void setup(void)
{
	cli_setup();
	write_mixed("x.pt");
}

static void teardown(void)
{
	free(file);
	file = NULL;
	cli_clean();
}

/* A file of @n bytes with @segments at its start and @sections, both after the header. */
static Elf64_Ehdr *start(size_t n, unsigned int segments, unsigned int sections)
{
	Elf64_Ehdr *h;

	size = n;
	file = calloc(1, n);
	ck_assert_ptr_nonnull(file);
	h = (Elf64_Ehdr *)file;
	memcpy(h->e_ident, ELFMAG, SELFMAG);
	h->e_ident[EI_CLASS] = ELFCLASS64;
	h->e_ident[EI_DATA] = ELFDATA2LSB;
	h->e_ident[EI_VERSION] = h->e_version = EV_CURRENT;
	h->e_type = ET_EXEC;
	h->e_machine = EM_X86_64;
	h->e_ehsize = sizeof(*h);
	h->e_phentsize = sizeof(Elf64_Phdr);
	h->e_shentsize = sizeof(Elf64_Shdr);
	h->e_phnum = (Elf64_Half)segments;
	h->e_shnum = (Elf64_Half)sections;
	h->e_phoff = segments ? sizeof(*h) : 0;
	h->e_shoff = sections ? sizeof(*h) + segments * sizeof(Elf64_Phdr) : 0;
	return h;
}

static long limit(void)
{
	return getenv("VMPT_SANITIZED") ? 8000 : 1000;
}

/* @segments of code, each @each bytes from the start of the file on. */
static const struct run *code(unsigned int segments, size_t each)
{
	Elf64_Ehdr *h = start(CODE, segments, 0);
	Elf64_Phdr *p = (Elf64_Phdr *)(file + h->e_phoff);
	unsigned int i;

	for (i = 0; i < segments; i++)
		p[i] = (Elf64_Phdr){ .p_type = PT_LOAD,
				     .p_flags = PF_R | PF_X,
				     .p_vaddr = (1 + (u64)i) << 32,
				     .p_filesz = each,
				     .p_memsz = each };
	write_file("in.elf", file, size);
	free(file);
	file = NULL;
	return vmpt("exits --image=in.elf x.pt");
}

START_TEST(segments_that_share_bytes)
{
	const struct run *r = code(1, CODE);

	ck_assert_int_eq(r->code, 0);
	r = code(2, CODE);
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "in.elf: truncated: its code is beyond its end");
	r = code(64, CODE / 64);
	ck_assert_int_eq(r->code, 0);
	r = code(65, CODE / 65);
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "in.elf: more than 64 segments of code");
	/* 100 GB */
	r = code(12000, CODE);
	ck_assert_int_eq(r->code, 1);
	if (!getenv("VMPT_SANITIZED"))
		ck_assert_int_lt(r->memory, 100 << 10);
}
END_TEST

/* Symbols that are no functions, in one table that all sections are. */
START_TEST(sections_that_share_a_table)
{
	size_t table = sizeof(Elf64_Ehdr) + SECTIONS * sizeof(Elf64_Shdr);
	size_t names = table + SYMBOLS * sizeof(Elf64_Sym), i;
	Elf64_Ehdr *h = start(names + 16, 0, SECTIONS);
	Elf64_Shdr *s = (Elf64_Shdr *)(file + h->e_shoff);
	Elf64_Sym *symbol = (Elf64_Sym *)(file + table);
	const struct run *r;

	memcpy(file + names, "\0_text", 7);
	s[1] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = names, .sh_size = 16 };
	for (i = 2; i < SECTIONS; i++)
		s[i] = (Elf64_Shdr){ .sh_type = SHT_SYMTAB,
				     .sh_offset = table,
				     .sh_size = SYMBOLS * sizeof(*symbol),
				     .sh_link = 1,
				     .sh_entsize = sizeof(*symbol) };
	for (i = 0; i < SYMBOLS; i++)
		symbol[i] = (Elf64_Sym){ .st_name = 1, .st_info = STT_OBJECT, .st_shndx = 1 };
	write_file("in.elf", file, size);
	r = vmpt("exits --symbols=in.elf x.pt");
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "in.elf: has no symbols");
	ck_assert_msg(r->cpu_ms < limit(), "%ld ms of CPU time", r->cpu_ms);
	symbol[SYMBOLS - 1].st_info = STT_FUNC;
	write_file("in.elf", file, size);
	ck_assert_int_eq(vmpt("exits --symbols=in.elf x.pt")->code, 0);
}
END_TEST

/* The end of each name was searched from the end of all. */
START_TEST(names_without_an_end)
{
	size_t table = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr), i;
	size_t names = table + SYMBOLS * sizeof(Elf64_Sym);
	Elf64_Ehdr *h = start(names + NAMES, 0, 3);
	Elf64_Shdr *s = (Elf64_Shdr *)(file + h->e_shoff);
	Elf64_Sym *symbol = (Elf64_Sym *)(file + table);
	const struct run *r;

	memcpy(file + names, "\0a", 3);
	memset(file + names + 3, 'b', NAMES - 3);
	s[1] = (Elf64_Shdr){ .sh_type = SHT_STRTAB, .sh_offset = names, .sh_size = NAMES };
	s[2] = (Elf64_Shdr){ .sh_type = SHT_SYMTAB,
			     .sh_offset = table,
			     .sh_size = SYMBOLS * sizeof(*symbol),
			     .sh_link = 1,
			     .sh_entsize = sizeof(*symbol) };
	for (i = 0; i < SYMBOLS; i++)
		symbol[i] = (Elf64_Sym){ .st_name = 1, .st_info = STT_FUNC, .st_shndx = 1 };
	write_file("in.elf", file, size);
	r = vmpt("exits --symbols=in.elf x.pt");
	ck_assert_int_eq(r->code, 1);
	ck_assert_msg(r->cpu_ms < limit(), "%ld ms of CPU time", r->cpu_ms);
	file[size - 1] = 0;
	write_file("in.elf", file, size);
	r = vmpt("exits --symbols=in.elf x.pt");
	ck_assert_int_eq(r->code, 0);
	ck_assert_msg(r->cpu_ms < limit(), "%ld ms of CPU time", r->cpu_ms);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("cli/elf");
	TCase *t = tcase_create("elf");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, segments_that_share_bytes);
	tcase_add_test(t, sections_that_share_a_table);
	tcase_add_test(t, names_without_an_end);
	suite_add_tcase(s, t);
	return s;
}
