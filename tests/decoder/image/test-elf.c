// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* decoder/image/elf.c: dumps, /proc/kcore and programs give the pages that raw memory gives. */
#include <elf.h>
#include <stdlib.h>

#include "decoder/image/image.h"
#include "tests/decoder/image/dump-writer.h"
#include "tests/decoder/image/guest-memory.h"
#include "tests/support/support.h"

#define PG   (1ULL << 31)
#define PAE  (1ULL << 5)
#define LA57 (1ULL << 12)
/* The low part of memory and the rest, with a part in between that no dump has. */
#define LOW 0xa0000u

static struct guest_memory m;

static void setup(void)
{
	test_dir_make();
	guest_memory_make(&m);
}

static void teardown(void)
{
	guest_memory_free(&m);
	test_dir_remove();
}

/* Through a file, mapped or read. */
static struct vmpt_image *open_dump(const struct dump *d, bool live, struct vmpt_diag *diag)
{
	const struct vmpt_image_options o = { .live = live };
	struct vmpt_image *image;

	ck_assert_int_eq(vmpt_image_open(&image, test_dir_file("dump", d->data, d->size), &o, diag),
			 0);
	return image;
}

static const struct {
	u64 cr4;
	u16 machine;
	bool narrow;
	u8 paging;
} machines[] = {
	{ PAE | LA57, EM_X86_64, false, VMPT_PAGING_5 }, { PAE, EM_X86_64, false, VMPT_PAGING_4 },
	{ PAE, EM_386, true, VMPT_PAGING_PAE },		 { 0x10, EM_386, true, VMPT_PAGING_32 },
	{ PAE, EM_386, false, VMPT_PAGING_PAE },
};

/* The second vCPU says how: the first was not started. */
START_TEST(dump_guest_memory)
{
	const struct dump_segment s[] = { { 0, 0, m.ram, LOW },
					  { LOW, LOW, m.ram + LOW, GUEST_RAM - LOW } };
	struct vmpt_image_info info;
	size_t i;

	for (i = 0; i < 2 * VMPT_ARRAY_SIZE(machines); i++) {
		const u8 paging = machines[i / 2].paging;
		struct dump d, notes = { 0 };
		struct vmpt_image *image;
		struct vmpt_diag diag;

		dump_note(&notes, "CORE", NT_PRSTATUS, m.ram, 336);
		dump_qemu_note(&notes, 0x60000010, 0, 0);
		dump_note(&notes, "CORE", NT_PRSTATUS, m.ram, 336);
		dump_qemu_note(&notes, PG | 0x50033, 0x12345000, machines[i / 2].cr4);
		dump_elf(&d, ET_CORE, machines[i / 2].machine, machines[i / 2].narrow, s, 2,
			 &notes);
		image = open_dump(&d, i % 2, &diag);
		ck_assert_str_eq(diag.text, "");
		vmpt_image_info(image, &info);
		ck_assert_uint_eq(info.paging, paging);
		ck_assert_uint_eq(info.physical, GUEST_RAM);
		ck_assert_uint_eq(info.linear, 0);
		ck_assert_uint_eq(info.cr3_count, 1);
		ck_assert_uint_eq(info.cr3[0], 0x12345000);
		guest_check(&m, image, paging);
		vmpt_image_close(image);
		free(d.data);
		free(notes.data);
	}
}
END_TEST

/* Linux says which mode it uses. */
START_TEST(vmcoreinfo_has_the_paging_mode)
{
	static const char info[] = "OSRELEASE=6.12\nNUMBER(pgtable_l5_enabled)=1\n";
	const struct dump_segment s = { 0, 0, m.ram, GUEST_RAM };
	struct dump d, notes = { 0 };
	struct vmpt_image *image;

	dump_note(&notes, "VMCOREINFO", 0, info, sizeof(info) - 1);
	dump_elf(&d, ET_CORE, EM_X86_64, false, &s, 1, &notes);
	image = open_dump(&d, false, NULL);
	guest_check(&m, image, VMPT_PAGING_5);
	vmpt_image_close(image);
	free(d.data);
	free(notes.data);
}
END_TEST

static const u8 *at(struct vmpt_image *image, u64 cr3, u64 linear)
{
	const struct vmpt_space space = { .cr3 = cr3, .no_cr3 = !cr3, .exec = 64 };
	struct vmpt_page page;
	int ret = vmpt_image_page(image, &space, linear, 0, &page);

	ck_assert_int_ge(ret, 0);
	return ret ? page.bytes : NULL;
}

/*
 * With paging: the upper half by p_vaddr in all spaces, the lower one as that of the process that
 * ran only where no page tables say better.
 */
START_TEST(a_dump_with_paging)
{
	const struct dump_segment s[] = {
		{ 0x400000, 0x503000, m.ram + 0x503000, VMPT_PAGE },
		{ 0xffffffff82000000, 0x700000, m.ram + 0x700000, VMPT_PAGE },
		{ 0, 0, m.ram, 0x503000 },
		{ 0, 0x504000, m.ram + 0x504000, 0x700000 - 0x504000 },
		{ 0, 0x701000, m.ram + 0x701000, GUEST_RAM - 0x701000 },
	};
	struct vmpt_image *image;
	struct dump d;

	dump_elf(&d, ET_CORE, EM_X86_64, false, s, VMPT_ARRAY_SIZE(s), NULL);
	image = open_dump(&d, false, NULL);
	guest_check(&m, image, VMPT_PAGING_4);
	ck_assert_mem_eq(at(image, 0, 0x400000), m.ram + 0x503000, VMPT_PAGE);
	ck_assert_mem_eq(at(image, m.list[0].cr3, 0x400000), m.ram + 0x500000, VMPT_PAGE);
	ck_assert_mem_eq(at(image, m.list[0].cr3, 0xffffffff82000000), m.ram + 0x700000, VMPT_PAGE);
	vmpt_image_close(image);
	free(d.data);
}
END_TEST

/* As of Linux 6.12, and as perf copies it; read by descriptor as in /proc, and mapped. */
START_TEST(kcore)
{
	const u64 direct = 0xffff888000000000;
	struct dump_segment s[] = {
		{ 0xffffffff90000000, 0x600000, m.ram + 0x600000, 0x100000 },
		{ 0xffffc90000000000, ~0ULL, m.ram + 0x10000, 0x8000 },
		{ direct + 0x1000, 0x1000, m.ram + 0x1000, GUEST_RAM - 0x1000 },
	};
	size_t i;

	for (i = 0; i < 4; i++) {
		struct vmpt_image_info info;
		struct vmpt_image *image;
		struct dump d;

		if (i == 2)
			s[0].physical = s[1].physical = s[2].physical = 0;
		dump_elf(&d, ET_CORE, EM_X86_64, false, s, VMPT_ARRAY_SIZE(s), NULL);
		image = open_dump(&d, i % 2, NULL);
		vmpt_image_info(image, &info);
		ck_assert_uint_eq(info.linear, 0x108000 + GUEST_RAM - 0x1000);
		/* Of the kernel both have its bytes: those at lower addresses count. */
		ck_assert_uint_eq(info.physical, i < 2 ? GUEST_RAM - 0x1000 : 0);
		ck_assert_mem_eq(at(image, 0, 0xffffffff90001000), m.ram + 0x601000, VMPT_PAGE);
		ck_assert_mem_eq(at(image, 0x7000, 0xffffc90000007000), m.ram + 0x17000, VMPT_PAGE);
		ck_assert_mem_eq(at(image, 0, direct + 0x5000), m.ram + 0x5000, VMPT_PAGE);
		ck_assert_ptr_null(at(image, 0, direct));
		ck_assert_ptr_null(at(image, 0, 0xffffc90000008000));
		if (i < 2)
			ck_assert_mem_eq(at(image, m.list[0].cr3, 0x400000), m.ram + 0x500000,
					 VMPT_PAGE);
		else
			ck_assert_ptr_null(at(image, m.list[0].cr3, 0x400000));
		vmpt_image_close(image);
		free(d.data);
	}
}
END_TEST

/* More than 16 bits count: PN_XNUM. */
START_TEST(many_segments)
{
	enum { N = 70000, SIZE = 16 };
	struct dump_segment *s = calloc(N, sizeof(*s));
	struct vmpt_space space = { .exec = 16 };
	struct vmpt_image *image;
	struct vmpt_page page;
	struct dump d;
	size_t i;

	ck_assert_ptr_nonnull(s);
	/* Backwards, with gaps of their own size. */
	for (i = 0; i < N; i++)
		s[i] = (struct dump_segment){ 0, (N - i) * 2 * SIZE, m.ram + i * SIZE, SIZE };
	dump_elf(&d, ET_CORE, EM_X86_64, false, s, N, NULL);
	image = open_dump(&d, false, NULL);
	for (i = 0; i < N; i++) {
		u64 physical = s[i].physical;

		ck_assert_int_eq(
			vmpt_image_page(image, &space, physical & ~(VMPT_PAGE - 1ULL), 0, &page),
			1);
		ck_assert(vmpt_page_knows(&page, physical % VMPT_PAGE));
		ck_assert(!vmpt_page_knows(&page, physical % VMPT_PAGE + SIZE));
		ck_assert_mem_eq(page.bytes + physical % VMPT_PAGE, s[i].bytes, SIZE);
	}
	vmpt_image_close(image);
	free(d.data);
	free(s);
}
END_TEST

START_TEST(half_a_dump)
{
	const struct dump_segment s = { 0, 0, m.ram, GUEST_RAM };
	const struct vmpt_space space = { .exec = 16 };
	struct vmpt_image *image;
	struct vmpt_diag diag;
	struct vmpt_page page;
	struct dump d;
	size_t head;

	dump_elf(&d, ET_CORE, EM_X86_64, false, &s, 1, NULL);
	head = d.size - GUEST_RAM;
	d.size = head + 0x2800;
	image = open_dump(&d, false, &diag);
	ck_assert_ptr_nonnull(strstr(diag.text, "8378368 bytes"));
	ck_assert_int_eq(vmpt_image_page(image, &space, 0x1000, 0, &page), 1);
	ck_assert_int_eq(vmpt_image_page(image, &space, 0x2000, 0, &page), 1);
	ck_assert(vmpt_page_knows(&page, 0x7ff) && !vmpt_page_knows(&page, 0x800));
	ck_assert_int_eq(vmpt_image_page(image, &space, 0x3000, 0, &page), 0);
	vmpt_image_close(image);
	d.size = head + 1;
	vmpt_image_close(open_dump(&d, false, &diag));
	d.size = head;
	ck_assert_int_eq(
		vmpt_image_open(&image, test_dir_file("none", d.data, d.size), NULL, &diag),
		-VMPT_E_FORMAT);
	d.size = head - 1;
	ck_assert_int_eq(vmpt_image_open(&image, test_dir_file("cut", d.data, d.size), NULL, &diag),
			 -VMPT_E_FORMAT);
	ck_assert_ptr_nonnull(strstr(diag.text, "program headers"));
	free(d.data);
}
END_TEST

START_TEST(a_program_at_an_address)
{
	const struct dump_segment s[] = { { 0x1000, 0, m.ram, 0x1234 },
					  { 0x4000, 0, m.ram + 0x5000, 0x1000 } };
	const struct vmpt_image_options moved = { .has_address = true, .address = 0x7f0000000000 };
	struct vmpt_image *image;
	struct vmpt_page page;
	const char *path;
	struct dump d;

	dump_elf(&d, ET_DYN, EM_X86_64, false, s, 2, NULL);
	path = test_dir_file("program", d.data, d.size);
	ck_assert_int_eq(vmpt_image_open(&image, path, NULL, NULL), 0);
	ck_assert_mem_eq(at(image, 0x5000, 0x1000), m.ram, VMPT_PAGE);
	ck_assert_mem_eq(at(image, 0, 0x4000), m.ram + 0x5000, VMPT_PAGE);
	vmpt_image_close(image);
	ck_assert_int_eq(vmpt_image_open(&image, path, &moved, NULL), 0);
	ck_assert_ptr_null(at(image, 0, 0x1000));
	ck_assert_mem_eq(at(image, 0, 0x7f0000003000), m.ram + 0x5000, VMPT_PAGE);
	ck_assert_int_eq(vmpt_image_page(image, &(struct vmpt_space){ .no_cr3 = true },
					 0x7f0000001000, 0, &page),
			 1);
	ck_assert(vmpt_page_knows(&page, 0x233) && !vmpt_page_knows(&page, 0x234));
	ck_assert_mem_eq(page.bytes, m.ram + 0x1000, 0x234);
	vmpt_image_close(image);
	free(d.data);
}
END_TEST

START_TEST(files_of_others_are_refused)
{
	const struct dump_segment s = { 0x1000, 0, m.ram, 0x1000 };
	const struct vmpt_image_options elf = { .kind = VMPT_IMAGE_ELF };
	struct vmpt_image *image;
	struct vmpt_diag diag;
	struct dump d;

	dump_elf(&d, ET_EXEC, EM_AARCH64, false, &s, 1, NULL);
	ck_assert_int_eq(vmpt_image_open(&image, test_dir_file("arm", d.data, d.size), NULL, &diag),
			 -VMPT_E_UNSUPPORTED);
	free(d.data);
	dump_elf(&d, ET_REL, EM_X86_64, false, NULL, 0, NULL);
	ck_assert_int_eq(vmpt_image_open(&image, test_dir_file("o", d.data, d.size), NULL, &diag),
			 -VMPT_E_FORMAT);
	ck_assert_ptr_nonnull(strstr(diag.text, "object file"));
	free(d.data);
	ck_assert_int_eq(vmpt_image_open(&image, test_dir_file("t", "text", 4), &elf, &diag),
			 -VMPT_E_FORMAT);
	ck_assert_int_eq(vmpt_image_open(&image, test_dir_file("h", ELFMAG, 4), NULL, &diag),
			 -VMPT_E_FORMAT);
}
END_TEST

/* What debuggers want: sections of code without bytes. */
START_TEST(debugging_information_is_no_code)
{
	const struct dump_segment s = { 0x1000, 0, m.ram, 0x1000 };
	Elf64_Shdr text = { .sh_type = SHT_NOBITS, .sh_flags = SHF_EXECINSTR, .sh_size = 0x1000 };
	struct vmpt_image *image;
	struct vmpt_diag diag;
	Elf64_Ehdr h;
	struct dump d;
	int i;

	dump_elf(&d, ET_EXEC, EM_X86_64, false, &s, 1, NULL);
	memcpy(&h, d.data, sizeof(h));
	h.e_shoff = d.size - sizeof(text);
	h.e_shnum = 1;
	memcpy(d.data, &h, sizeof(h));
	for (i = 0; i < 2; i++) {
		memcpy(d.data + h.e_shoff, &text, sizeof(text));
		ck_assert_int_eq(vmpt_image_open(&image, test_dir_file("debug", d.data, d.size),
						 NULL, &diag),
				 i ? 0 : -VMPT_E_FORMAT);
		text.sh_type = SHT_PROGBITS;
	}
	vmpt_image_close(image);
	free(d.data);
}
END_TEST

/* Any byte of header and notes: no matter what, nothing outside of the file is read. */
START_TEST(damaged_headers)
{
	const struct dump_segment s[] = { { 0, 0, m.ram, 0x3000 },
					  { 0xffffffff80000000, 0x3000, m.ram, 0x3000 } };
	struct dump d, notes = { 0 };
	struct test_rng rng = { 3 };
	size_t head, i;

	dump_qemu_note(&notes, PG, 0x1000, PAE);
	dump_elf(&d, ET_CORE, EM_X86_64, false, s, 2, &notes);
	head = d.size - 0x6000;
	for (i = 0; i < 8 * head; i++) {
		u8 *copy = malloc(d.size);
		const struct vmpt_file file = { copy, d.size };
		struct vmpt_diag diag;
		struct vmpt_image *image;
		u64 page;

		ck_assert_ptr_nonnull(copy);
		memcpy(copy, d.data, d.size);
		copy[i / 8] = i % 8 ? (u8)test_random(&rng) : 0xff;
		if (!vmpt_image_open_memory(&image, &file, 1, NULL, &diag)) {
			for (page = 0; page < 8; page++) {
				at(image, 0x1000, page * VMPT_PAGE);
				at(image, 0x1000, 0xffffffff80000000 + page * VMPT_PAGE);
			}
			vmpt_image_close(image);
		} else {
			ck_assert_str_ne(diag.text, "");
		}
		free(copy);
	}
	free(d.data);
	free(notes.data);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("decoder/image-elf");
	TCase *c = tcase_create("elf");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, dump_guest_memory);
	tcase_add_test(c, vmcoreinfo_has_the_paging_mode);
	tcase_add_test(c, a_dump_with_paging);
	tcase_add_test(c, kcore);
	tcase_add_test(c, many_segments);
	tcase_add_test(c, half_a_dump);
	tcase_add_test(c, a_program_at_an_address);
	tcase_add_test(c, files_of_others_are_refused);
	tcase_add_test(c, debugging_information_is_no_code);
	tcase_add_test(c, damaged_headers);
	suite_add_tcase(suite, c);
	return suite;
}
