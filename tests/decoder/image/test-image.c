// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* decoder/image/: sets of pages, raw memory, bytes at an address, and what a trace's code is. */
#include <stdio.h>
#include <stdlib.h>

#include "decoder/image/image.h"
#include "tests/decoder/image/guest-memory.h"
#include "tests/support/support.h"

static const struct vmpt_space any = { .exec = 64, .no_cr3 = true };

/* Sizes that tell which page is which. */
static u8 bytes[4 * VMPT_PAGE];

static void setup(void)
{
	size_t i;

	test_dir_make();
	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (u8)(i * 7 + i / VMPT_PAGE);
}

static void teardown(void)
{
	test_dir_remove();
}

static int open_memory(struct vmpt_image **image, const void *data, size_t size,
		       const struct vmpt_image_options *options, struct vmpt_diag *diag)
{
	const struct vmpt_file file = { data, size };

	return vmpt_image_open_memory(image, &file, 1, options, diag);
}

static bool has(struct vmpt_image *image, u64 linear, const u8 *want)
{
	struct vmpt_page page;
	int ret = vmpt_image_page(image, &any, linear, 0, &page);

	ck_assert_int_eq(ret, want != NULL);
	return !ret || (!page.valid && !memcmp(page.bytes, want, VMPT_PAGE));
}

START_TEST(pages_are_where_their_addresses_say)
{
	const u64 addr[] = { 0x7000, 0xffffffff81000000, 0x5000, 0x6000 };
	struct vmpt_image *image;
	struct vmpt_diag diag;
	const char *path;

	test_dir_file("x.dump", bytes, sizeof(bytes));
	path = test_dir_file("x.addr", addr, sizeof(addr));
	ck_assert_int_eq(vmpt_image_open(&image, path, NULL, &diag), 0);
	ck_assert(has(image, 0x4000, NULL));
	ck_assert(has(image, 0x5000, bytes + 2 * VMPT_PAGE));
	ck_assert(has(image, 0x6000, bytes + 3 * VMPT_PAGE));
	ck_assert(has(image, 0x7000, bytes));
	ck_assert(has(image, 0x8000, NULL));
	ck_assert(has(image, 0xffffffff81000000, bytes + VMPT_PAGE));
	vmpt_image_close(image);
}
END_TEST

START_TEST(sets_of_pages_of_real_traces)
{
	static const char *const names[] = { "guest-mruby", "guest-two-vmcs", "guest-unzip" };
	struct vmpt_diag diag;
	size_t i, n, size, k;

	for (i = 0; i < VMPT_ARRAY_SIZE(names); i++) {
		char name[64];
		const char *path;
		struct vmpt_image *image;
		u8 *addr, *dump;

		snprintf(name, sizeof(name), "%s.addr", names[i]);
		path = test_data(name);
		if (!path)
			return;
		ck_assert_int_eq(vmpt_image_open(&image, path, NULL, &diag), 0);
		addr = test_read_file(path, &n);
		snprintf(name, sizeof(name), "%s.dump", names[i]);
		dump = test_read_file(test_data(name), &size);
		ck_assert_uint_eq(size, n / 8 * VMPT_PAGE);
		for (k = 0; k < n / 8; k++)
			ck_assert(has(image, vmpt_load64(addr + 8 * k), dump + k * VMPT_PAGE));
		free(addr);
		free(dump);
		vmpt_image_close(image);
	}
}
END_TEST

START_TEST(a_bad_set_of_pages_is_refused)
{
	const u64 odd[] = { 0x1000, 0x2008 };
	const struct vmpt_file wrong[] = { { (const u8 *)odd, 16 }, { bytes, 2 * VMPT_PAGE } };
	const struct vmpt_file few[] = { { (const u8 *)odd, 8 }, { bytes, 2 * VMPT_PAGE } };
	struct vmpt_image_options pages = { .kind = VMPT_IMAGE_PAGES };
	struct vmpt_image *image;
	struct vmpt_diag diag;

	ck_assert_int_eq(vmpt_image_open_memory(&image, wrong, 2, &pages, &diag), -VMPT_E_FORMAT);
	ck_assert_uint_eq(diag.offset, 8);
	ck_assert_ptr_nonnull(strstr(diag.text, "0x2008"));
	ck_assert_int_eq(vmpt_image_open_memory(&image, few, 2, &pages, &diag), -VMPT_E_FORMAT);
	ck_assert_int_eq(vmpt_image_open(&image, test_dir_file("y.addr", odd, 8), NULL, &diag),
			 -VMPT_E_IO);
	ck_assert_int_eq(vmpt_image_open(&image, test_dir_file("y", odd, 8), &pages, &diag),
			 -VMPT_E_INVAL);
	pages.has_address = true;
	ck_assert_int_eq(vmpt_image_open_memory(&image, wrong, 2, &pages, &diag), -VMPT_E_INVAL);
	ck_assert_ptr_nonnull(strstr(diag.text, "its own addresses"));
	ck_assert_int_eq(vmpt_image_open(&image, "/", NULL, &diag), -VMPT_E_IO);
	ck_assert_ptr_nonnull(strstr(diag.text, "not a memory image"));
	ck_assert_int_eq(vmpt_image_open(&image, "/dev/null", NULL, &diag), -VMPT_E_FORMAT);
	ck_assert_ptr_nonnull(strstr(diag.text, "is empty"));
}
END_TEST

START_TEST(raw_memory_by_each_mode_of_paging)
{
	struct guest_memory m;
	unsigned int mode;

	guest_memory_make(&m);
	for (mode = VMPT_PAGING_32; mode <= VMPT_PAGING_5; mode++) {
		const u8 p = (u8)mode;
		const struct vmpt_image_options o = { .paging = p };
		struct vmpt_image *image;

		ck_assert_int_eq(open_memory(&image, m.ram, GUEST_RAM, &o, NULL), 0);
		guest_check(&m, image, p);
		vmpt_image_close(image);
	}
	guest_memory_free(&m);
}
END_TEST

/* What a walk of the page at 0x400000 finds once @entry was written at level @level. */
static void check_entry(struct guest_memory *m, u8 paging, int level, u64 entry,
			const struct vmpt_image_counts *want)
{
	const u64 root = guest_root(m, paging), physical = 0x500000;
	const struct vmpt_space space = { .cr3 = root, .exec = 64 };
	const struct vmpt_image_options o = { .paging = paging };
	struct vmpt_image_counts counts;
	struct vmpt_image *image;
	struct vmpt_page page;
	u64 at, value;

	guest_map(m, paging, root, 0x400000, physical, VMPT_PAGE, true);
	at = guest_entry(m, paging, root, 0x400000, level);
	value = vmpt_load64(m->ram + at) ^ entry;
	memcpy(m->ram + at, &value, 8);
	ck_assert_int_eq(open_memory(&image, m->ram, GUEST_RAM, &o, NULL), 0);
	ck_assert_int_eq(vmpt_image_page(image, &space, 0x400000, 0, &page), want->found);
	vmpt_image_counts(image, &counts);
	ck_assert_mem_eq(&counts, want, sizeof(counts));
	vmpt_image_close(image);
	m->count--;
}

START_TEST(entries_that_are_none)
{
	const struct vmpt_image_counts fine = { .found = 1 }, reserved = { .reserved = 1 },
				       absent = { .not_present = 1 }, no_table = { .no_table = 1 },
				       no_memory = { .no_memory = 1 };
	struct guest_memory m;
	int level;

	guest_memory_make(&m);
	for (level = 1; level <= 5; level++) {
		check_entry(&m, VMPT_PAGING_5, level, 0, &fine);
		check_entry(&m, VMPT_PAGING_5, level, 1, &absent);
		/* Bit 62, ignored or part of a key (Tables 4-14 to 4-20); U/S. */
		check_entry(&m, VMPT_PAGING_5, level, 1ULL << 62 | 4, &fine);
		check_entry(&m, VMPT_PAGING_5, level, 1ULL << 50,
			    level == 1 ? &no_memory : &no_table);
	}
	/* PS is reserved in a PML4E and a PML5E; bit 7 of a PTE is PAT. */
	check_entry(&m, VMPT_PAGING_5, 5, 0x80, &reserved);
	check_entry(&m, VMPT_PAGING_5, 4, 0x80, &reserved);
	check_entry(&m, VMPT_PAGING_5, 1, 0x80, &fine);
	check_entry(&m, VMPT_PAGING_PAE, 3, 2, &reserved);
	check_entry(&m, VMPT_PAGING_PAE, 3, 0x80, &reserved);
	check_entry(&m, VMPT_PAGING_PAE, 2, 1ULL << 62, &reserved);
	check_entry(&m, VMPT_PAGING_PAE, 2, 1ULL << 63, &fine);
	guest_memory_free(&m);
}
END_TEST

START_TEST(a_table_that_is_its_own)
{
	struct guest_memory m;
	const struct vmpt_image_options o = { .paging = VMPT_PAGING_5 };
	struct vmpt_space space = { .exec = 64 };
	struct vmpt_image *image;
	struct vmpt_page page;
	u64 i, root, entry;

	guest_memory_make(&m);
	space.cr3 = root = guest_root(&m, VMPT_PAGING_5);
	entry = root | 0x27;
	for (i = 0; i < 512; i++)
		memcpy(m.ram + root + 8 * i, &entry, 8);
	ck_assert_int_eq(open_memory(&image, m.ram, GUEST_RAM, &o, NULL), 0);
	ck_assert_int_eq(vmpt_image_page(image, &space, 0x123456789000, 0, &page), 1);
	ck_assert_mem_eq(page.bytes, m.ram + root, VMPT_PAGE);
	vmpt_image_close(image);
	guest_memory_free(&m);
}
END_TEST

START_TEST(without_paging_linear_is_physical)
{
	const struct vmpt_image_options none = { .paging = VMPT_PAGING_NONE };
	struct vmpt_space space = { .no_cr3 = true };
	struct vmpt_image *image;
	struct vmpt_page page;
	u64 physical;

	ck_assert_int_eq(open_memory(&image, bytes, sizeof(bytes), NULL, NULL), 0);
	for (space.exec = 16; space.exec <= 64; space.exec = (u8)(2 * space.exec)) {
		int ret = vmpt_image_page(image, &space, 0x1000, 0, &page);

		/* Long mode has paging. */
		ck_assert_int_eq(ret, space.exec != 64);
		ck_assert(!ret || page.bytes == bytes + 0x1000);
	}
	vmpt_image_close(image);
	ck_assert_int_eq(open_memory(&image, bytes, sizeof(bytes), &none, NULL), 0);
	ck_assert(has(image, 0x3000, bytes + 0x3000));
	ck_assert(has(image, 0x4000, NULL));
	ck_assert_int_eq(vmpt_image_translate(image, &any, 0x2345, &physical), 1);
	ck_assert_uint_eq(physical, 0x2345);
	vmpt_image_close(image);
}
END_TEST

START_TEST(a_hole_in_memory)
{
	const struct vmpt_ram_range pc[] = { { 0, 0x2000, 0 }, { 1ULL << 32, 0x2000, 0x2000 } };
	const struct vmpt_ram_range odd[] = { { 0x800, 0x1000, 0x10 } };
	const struct vmpt_ram_range far[] = { { 0, 0x1000, 0x3001 } };
	struct vmpt_image_options o = { .ranges = pc, .range_count = 2 };
	struct vmpt_image *image;
	struct vmpt_diag diag;
	struct vmpt_page page;
	unsigned int n;

	ck_assert_int_eq(open_memory(&image, bytes, sizeof(bytes), &o, NULL), 0);
	ck_assert_int_eq(vmpt_image_physical(image, 0x1000, &page), 1);
	ck_assert_ptr_eq(page.bytes, bytes + 0x1000);
	ck_assert_int_eq(vmpt_image_physical(image, 0x2000, &page), 0);
	ck_assert_int_eq(vmpt_image_physical(image, (1ULL << 32) + 0x1000, &page), 1);
	ck_assert_ptr_eq(page.bytes, bytes + 0x3000);
	ck_assert_int_eq(vmpt_image_physical(image, 0x1800, &page), -VMPT_E_INVAL);
	vmpt_image_close(image);

	/* Bytes are known one by one. */
	o.ranges = odd;
	o.range_count = 1;
	ck_assert_int_eq(open_memory(&image, bytes, sizeof(bytes), &o, NULL), 0);
	ck_assert_int_eq(vmpt_image_physical(image, 0x1000, &page), 1);
	for (n = 0; n < VMPT_PAGE; n++) {
		ck_assert_int_eq(vmpt_page_knows(&page, n), n < 0x800);
		ck_assert(n >= 0x800 || page.bytes[n] == bytes[0x810 + n]);
	}
	vmpt_image_close(image);

	o.ranges = far;
	ck_assert_int_eq(open_memory(&image, bytes, sizeof(bytes), &o, &diag), -VMPT_E_INVAL);
	ck_assert_ptr_nonnull(strstr(diag.text, "16384 bytes"));
}
END_TEST

/* The same hole by a list; and lists that are none. */
START_TEST(ranges_in_a_file)
{
	static const char good[] = "# a PC\n0 0x2000 0\n\n  0x100000000 8192 0x2000 # above\r\n";
	static const char *const bad[] = { "0 0x1000", "0 0x1000 0 0", "0 -1 0", "zero",
					   "0 0x1000 x" };
	struct vmpt_image *image;
	struct vmpt_diag diag;
	struct vmpt_page page;
	const char *path;
	size_t i;

	test_dir_file("x.ram", bytes, sizeof(bytes));
	path = test_dir_file("x.ranges", good, sizeof(good) - 1);
	ck_assert_int_eq(vmpt_image_open(&image, path, NULL, NULL), 0);
	ck_assert_int_eq(vmpt_image_physical(image, 0x1000, &page), 1);
	ck_assert_mem_eq(page.bytes, bytes + 0x1000, VMPT_PAGE);
	ck_assert_int_eq(vmpt_image_physical(image, 0x2000, &page), 0);
	ck_assert_int_eq(vmpt_image_physical(image, (1ULL << 32) + 0x1000, &page), 1);
	ck_assert_mem_eq(page.bytes, bytes + 0x3000, VMPT_PAGE);
	vmpt_image_close(image);
	for (i = 0; i < VMPT_ARRAY_SIZE(bad); i++) {
		path = test_dir_file("x.ranges", bad[i], strlen(bad[i]));
		ck_assert_int_eq(vmpt_image_open(&image, path, NULL, &diag), -VMPT_E_FORMAT);
	}
	path = test_dir_file("x.ranges", "0 0x4001 0", 10);
	ck_assert_int_eq(vmpt_image_open(&image, path, NULL, &diag), -VMPT_E_INVAL);
	ck_assert_int_eq(vmpt_image_open(&image, test_dir_file("y.ranges", "", 0), NULL, &diag),
			 -VMPT_E_IO);
	ck_assert_ptr_nonnull(strstr(diag.text, "its x.ram"));
}
END_TEST

static size_t add_load(u8 *file, size_t at, u64 addr, const u8 *code, u64 size)
{
	const struct {
		u32 id, size;
		u64 time;
		u32 pid, tid;
		u64 vma, addr, code_size, index;
		char name[8];
	} load = { 0, (u32)(64 + size), 1, 7, 7, addr, addr, size, 1, "jitted." };

	memcpy(file + at, &load, sizeof(load));
	memcpy(file + at + 64, code, size);
	return at + 64 + size;
}

START_TEST(code_of_a_compiler)
{
	const u32 head[10] = { 0x4a695444, 1, 40, 62 }, other[4] = { 3, 16 };
	static u8 file[4 * VMPT_PAGE];
	struct vmpt_image *image;
	struct vmpt_diag diag;
	struct vmpt_page page;
	size_t n = sizeof(head), i;

	memcpy(file, head, sizeof(head));
	n = add_load(file, n, 0x7f0000000100, bytes, 100);
	memcpy(file + n, other, sizeof(other));
	n = add_load(file, n + 16, 0x7f0000000f80, bytes + 500, 256);
	/* The first is replaced by a longer one. */
	n = add_load(file, n, 0x7f0000000100, bytes + 1000, 200);
	ck_assert_int_eq(open_memory(&image, file, n, NULL, &diag), 0);
	ck_assert_str_eq(diag.text, "");
	ck_assert_int_eq(vmpt_image_page(image, &any, 0x7f0000000000, 0, &page), 1);
	for (i = 0; i < VMPT_PAGE; i++) {
		bool first = i >= 0x100 && i < 0x100 + 200, second = i >= 0xf80;

		ck_assert_int_eq(vmpt_page_knows(&page, (unsigned int)i), first || second);
		if (first)
			ck_assert_uint_eq(page.bytes[i], bytes[1000 + i - 0x100]);
		if (second)
			ck_assert_uint_eq(page.bytes[i], bytes[500 + i - 0xf80]);
	}
	ck_assert_int_eq(vmpt_image_page(image, &any, 0x7f0000001000, 0, &page), 1);
	ck_assert(vmpt_page_knows(&page, 127) && !vmpt_page_knows(&page, 128));
	vmpt_image_close(image);
	/* Without its end the last is missing; without any there is no image. */
	ck_assert_int_eq(open_memory(&image, file, n - 1, NULL, &diag), 0);
	ck_assert_ptr_nonnull(strstr(diag.text, "was cut"));
	ck_assert_int_eq(vmpt_image_page(image, &any, 0x7f0000000000, 0, &page), 1);
	ck_assert_uint_eq(page.bytes[0x100], bytes[0]);
	ck_assert(!vmpt_page_knows(&page, 0x100 + 100));
	vmpt_image_close(image);
	ck_assert_int_eq(open_memory(&image, file, 60, NULL, &diag), -VMPT_E_FORMAT);
}
END_TEST

/* Pages from several extents; where they overlap, the one that begins first has the bytes. */
START_TEST(extents_that_overlap)
{
	struct test_rng rng = { 5 };
	int round;

	for (round = 0; round < 200; round++) {
		struct extents e = { 0 };
		struct extent x[6];
		size_t i, k;
		u64 at;

		for (i = 0; i < VMPT_ARRAY_SIZE(x); i++) {
			x[i] = (struct extent){ test_random(&rng) % 40, test_random(&rng) % 20,
						1000 * i, 0 };
			ck_assert_int_eq(vmpt_extents_add(&e, x[i].at, x[i].size, 0, x[i].offset),
					 0);
		}
		ck_assert_int_eq(vmpt_extents_finish(&e), 0);
		for (at = 0; at < 70; at++) {
			bool known = false;

			for (k = 0; k < VMPT_ARRAY_SIZE(x); k++)
				known |= at >= x[k].at && at - x[k].at < x[k].size;
			i = vmpt_extents_find(&e, at);
			ck_assert_int_eq(i < e.count && e.list[i].at <= at, known);
			if (!known)
				continue;
			k = e.list[i].offset / 1000;
			ck_assert_uint_eq(e.list[i].offset - 1000 * k + (at - e.list[i].at),
					  at - x[k].at);
		}
		free(e.list);
	}
}
END_TEST

START_TEST(the_end_of_the_address_space)
{
	const struct vmpt_image_options o = { .has_address = true, .address = ~0ULL - 0x17ff };
	const struct vmpt_image_options last = { .has_address = true, .address = ~0ULL };
	struct vmpt_image *image;
	struct vmpt_page page;

	ck_assert_int_eq(open_memory(&image, bytes, sizeof(bytes), &o, NULL), 0);
	ck_assert_int_eq(vmpt_image_page(image, &any, ~0ULL - 0xfff, 0, &page), 1);
	ck_assert(vmpt_page_knows(&page, 0) && vmpt_page_knows(&page, 0xffe));
	ck_assert_uint_eq(page.bytes[0], bytes[0x800]);
	vmpt_image_close(image);
	ck_assert_int_eq(open_memory(&image, bytes, sizeof(bytes), &last, NULL), 0);
	ck_assert_int_eq(vmpt_image_page(image, &any, ~0ULL - 0xfff, 0, &page), 0);
	vmpt_image_close(image);
}
END_TEST

START_TEST(images_by_owner_space_and_order)
{
	const struct vmpt_image_options o = { .has_address = true, .address = 0x1000 };
	const struct vmpt_owner vm = { .kind = VMPT_OWNER_VM, .vmcs = 0x5000 };
	struct vmpt_space space = { .owner = vm, .cr3 = 0x9000, .exec = 64 };
	const u64 cr3 = 0x9000;
	struct vmpt_image *image[4];
	struct vmpt_code *code;
	struct vmpt_page page;
	size_t i;

	for (i = 0; i < 4; i++)
		ck_assert_int_eq(open_memory(&image[i], bytes + (i == 3 ? 1 : i) * VMPT_PAGE,
					     VMPT_PAGE, &o, NULL),
				 0);
	ck_assert_int_eq(vmpt_code_new(&code), 0);
	ck_assert_int_eq(vmpt_code_page(code, &space, 0x1000, 0, &page), 0);
	ck_assert_int_eq(vmpt_code_add(code, &vm, &cr3, image[0]), 0);
	ck_assert_int_eq(vmpt_code_add(code, &vm, NULL, image[1]), 0);
	ck_assert_int_eq(vmpt_code_add(code, NULL, NULL, image[3]), 0);
	ck_assert_int_eq(vmpt_code_add(code, NULL, NULL, image[2]), 0);
	/* The third is the second's equal. */
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(vmpt_code_page(code, &space, 0x1000, (unsigned int)i, &page), 1);
		ck_assert_ptr_eq(page.bytes, bytes + i * VMPT_PAGE);
	}
	ck_assert_int_eq(vmpt_code_page(code, &space, 0x1000, 3, &page), 0);
	ck_assert_int_eq(vmpt_code_page(code, &space, 0x2000, 0, &page), 0);
	space.cr3 = 0;
	ck_assert_int_eq(vmpt_code_page(code, &space, 0x1000, 0, &page), 1);
	ck_assert_ptr_eq(page.bytes, bytes + VMPT_PAGE);
	space.owner.vmcs = 0x6000;
	ck_assert_int_eq(vmpt_code_page(code, &space, 0x1000, 1, &page), 1);
	ck_assert_ptr_eq(page.bytes, bytes + 2 * VMPT_PAGE);
	vmpt_code_free(code);
	for (i = 0; i < 4; i++)
		vmpt_image_close(image[i]);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("decoder/image");
	TCase *c = tcase_create("image");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, pages_are_where_their_addresses_say);
	tcase_add_test(c, sets_of_pages_of_real_traces);
	tcase_add_test(c, a_bad_set_of_pages_is_refused);
	tcase_add_test(c, raw_memory_by_each_mode_of_paging);
	tcase_add_test(c, entries_that_are_none);
	tcase_add_test(c, a_table_that_is_its_own);
	tcase_add_test(c, without_paging_linear_is_physical);
	tcase_add_test(c, a_hole_in_memory);
	tcase_add_test(c, ranges_in_a_file);
	tcase_add_test(c, code_of_a_compiler);
	tcase_add_test(c, extents_that_overlap);
	tcase_add_test(c, the_end_of_the_address_space);
	tcase_add_test(c, images_by_owner_space_and_order);
	suite_add_tcase(suite, c);
	return suite;
}
