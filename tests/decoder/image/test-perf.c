// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* decoder/image/perf.c: the files that a perf.data names, at the places where they were mapped. */
#include <elf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoder/image/image.h"
#include "tests/decoder/image/dump-writer.h"
#include "tests/decoder/perf-writer.h"
#include "tests/support/support.h"

#define MISC_BUILD_ID (1u << 14)

static const struct writer_at when = { 7, 7, 0, 1000 };
static u8 code[3 * VMPT_PAGE];
static struct perf_writer w;
/* Two programs, and where a segment's bytes begin in them. */
static char one[256], two[256];
static size_t head;

static void make_program(const char *name, char path[256], u8 fill)
{
	const struct dump_segment s = { 0x1000, 0, code, sizeof(code) };
	struct dump notes = { 0 }, d;
	u8 id[20];
	size_t i;

	for (i = 0; i < sizeof(code); i++)
		code[i] = (u8)(i / 16 * fill);
	memset(id, fill, sizeof(id));
	dump_note(&notes, "GNU", NT_GNU_BUILD_ID, id, sizeof(id));
	dump_elf(&d, ET_EXEC, EM_X86_64, false, &s, 1, &notes);
	head = d.size - sizeof(code);
	strcpy(path, test_dir_file(name, d.data, d.size));
	free(d.data);
	free(notes.data);
}

static void setup(void)
{
	test_dir_make();
	make_program("one", one, 1);
	make_program("two", two, 3);
	w = (struct perf_writer){ 0 };
	writer_start(&w, false);
}

static void teardown(void)
{
	writer_free(&w);
	test_dir_remove();
}

static void map(u32 pid, u64 addr, u64 size, u64 offset, u32 prot, const char *path,
		const u8 *build_id)
{
	struct {
		u32 pid, tid;
		u64 addr, size, offset;
		u8 id[24];
		u32 prot, flags;
		char path[128];
	} r = { pid, pid, addr, size, offset, { 0 }, prot, 2, "" };

	if (build_id) {
		r.id[0] = 20;
		memcpy(r.id + 4, build_id, 20);
	}
	strcpy(r.path, path);
	writer_kernel_record(&w, PERF_RECORD_MMAP2, build_id ? MISC_BUILD_ID : 0, &r, sizeof(r),
			     &when);
}

static int open_image(struct vmpt_image **image, u64 pid, struct vmpt_diag *diag)
{
	const struct vmpt_image_options o = { .has_address = pid, .address = pid };
	char path[WRITER_PATH];
	int ret;

	writer_finish(&w);
	writer_save(&w, path);
	ret = vmpt_image_open(image, path, &o, diag);
	unlink(path);
	return ret;
}

/* The byte at @linear, or -1. */
static int at(struct vmpt_image *image, u64 linear)
{
	const struct vmpt_space space = { .no_cr3 = true };
	struct vmpt_page page;

	if (vmpt_image_page(image, &space, linear & ~(VMPT_PAGE - 1ULL), 0, &page) != 1 ||
	    !vmpt_page_knows(&page, linear % VMPT_PAGE))
		return -1;
	return page.bytes[linear % VMPT_PAGE];
}

static u8 byte_of(size_t i, u8 fill)
{
	return (u8)(i / 16 * fill);
}

START_TEST(files_at_their_places)
{
	struct vmpt_image *image;
	struct vmpt_diag diag;

	map(7, 0x400000, 0x2000, head + 0x1000, 5, one, NULL);
	map(7, 0x500000, 0x2000, 0, 3, one, NULL); /* data */
	map(7, 0x600000, 0x2000, head, 5, "//anon", NULL);
	map(7, 0x7fff0000, 0x1000, 0, 5, "[vdso]", NULL);
	map(8, 0x700000, 0x100, head, 5, two, NULL);
	map(~0u, 0xffffffff81000000, 0x1000, head, 5, one, NULL);
	ck_assert_int_eq(open_image(&image, 0, &diag), 0);
	ck_assert_str_eq(diag.text, "");
	ck_assert_int_eq(at(image, 0x400010), byte_of(0x1010, 1));
	ck_assert_int_eq(at(image, 0x401ff0), byte_of(0x2ff0, 1));
	ck_assert_int_eq(at(image, 0x402000), -1);
	ck_assert_int_eq(at(image, 0x500000), -1);
	ck_assert_int_eq(at(image, 0x600000), -1);
	ck_assert_int_eq(at(image, 0x7000f0), byte_of(0xf0, 3));
	ck_assert_int_eq(at(image, 0x700100), -1);
	ck_assert_int_eq(at(image, 0xffffffff81000000), -1);
	vmpt_image_close(image);
}
END_TEST

START_TEST(one_process_and_the_last_map)
{
	struct vmpt_image *image;
	struct vmpt_diag diag;

	map(7, 0x400000, 0x1000, head, 5, one, NULL);
	map(7, 0x400000, 0x1000, head, 5, two, NULL);
	map(8, 0x400000, 0x1000, head, 5, one, NULL);
	map(8, 0x500000, 0x1000, head, 5, one, NULL);
	ck_assert_int_eq(open_image(&image, 7, &diag), 0);
	ck_assert_int_eq(at(image, 0x400230), byte_of(0x230, 3));
	ck_assert_int_eq(at(image, 0x500000), -1);
	vmpt_image_close(image);
}
END_TEST

START_TEST(other_files_are_left_out)
{
	struct vmpt_image *image;
	struct vmpt_diag diag;
	char fifo[300];
	u8 id[20];

	memset(id, 1, sizeof(id));
	snprintf(fifo, sizeof(fifo), "%s.fifo", one);
	ck_assert_int_eq(mkfifo(fifo, 0600), 0);
	map(7, 0x400000, 0x1000, head, 5, one, id);
	map(7, 0x500000, 0x1000, head, 5, two, id);
	map(7, 0x600000, 0x1000, head, 5, "/nonexistent", NULL);
	map(7, 0x700000, 0x1000, 0, 5, fifo, NULL);
	map(7, 0x800000, 0x1000, 0, 5, test_dir_file("text", "text", 4), NULL);
	/* Past the end of its file. */
	map(7, 0x900000, 0x1000, 1 << 20, 5, one, id);
	map(7, 0xa00000, ~0ULL, head + 0x2800, 5, one, id);
	ck_assert_int_eq(open_image(&image, 0, &diag), 0);
	ck_assert_ptr_nonnull(strstr(diag.text, "of the 5 files that were executed 4 are not"));
	ck_assert_int_eq(at(image, 0x400230), byte_of(0x230, 1));
	ck_assert_int_eq(at(image, 0x500000), -1);
	ck_assert_int_eq(at(image, 0x800000), -1);
	ck_assert_int_eq(at(image, 0x900000), -1);
	ck_assert_int_eq(at(image, 0xa007ff), byte_of(0x2fff, 1));
	ck_assert_int_eq(at(image, 0xa00800), -1);
	vmpt_image_close(image);
}
END_TEST

START_TEST(nothing_to_map)
{
	struct vmpt_image *image;
	struct vmpt_diag diag;

	map(7, 0x400000, 0x1000, 0, 5, "/nonexistent", NULL);
	ck_assert_int_eq(open_image(&image, 8, &diag), -VMPT_E_FORMAT);
	ck_assert_ptr_nonnull(strstr(diag.text, "this process"));
	writer_free(&w);
	w = (struct perf_writer){ 0 };
	writer_start(&w, true);
	map(7, 0x400000, 0x1000, 0, 5, "/nonexistent", NULL);
	ck_assert_int_eq(open_image(&image, 0, &diag), -VMPT_E_FORMAT);
	ck_assert_ptr_nonnull(strstr(diag.text, "first /nonexistent"));
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("decoder/image-perf");
	TCase *c = tcase_create("perf");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, files_at_their_places);
	tcase_add_test(c, one_process_and_the_last_map);
	tcase_add_test(c, other_files_are_left_out);
	tcase_add_test(c, nothing_to_map);
	suite_add_tcase(suite, c);
	return suite;
}
