// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* decoder/image/: code streams, their versions of pages, their times; damaged files. */
#include <stdlib.h>

#include "decoder/image/code-stream.h"
#include "tests/decoder/image/code-writer.h"

static struct stream s;

static void setup(void)
{
	memset(&s, 0, sizeof(s));
}

/* The stream as a file; @diag: text that it must have, "" for none. */
static struct vmpt_image *open_stream(const char *text)
{
	const struct vmpt_file file = { s.file, s.size };
	struct vmpt_image *image;
	struct vmpt_diag diag;

	ck_assert_int_eq(vmpt_image_open_memory(&image, &file, 1, NULL, &diag), 0);
	ck_assert_msg(*text ? strstr(diag.text, text) != NULL : !diag.text[0], "'%s'", diag.text);
	return image;
}

static struct vmpt_space space_at(u64 cr3, u64 tsc)
{
	return (struct vmpt_space){ .cr3 = cr3, .exec = 64, .tsc = tsc };
}

/* The known bytes from @offset of alternative @nth of a page on as a text; NULL: no such page. */
static const char *code(struct vmpt_image *image, const struct vmpt_space *space, u64 linear,
			unsigned int offset, unsigned int nth)
{
	static char text[64];
	struct vmpt_page page;
	unsigned int n = 0;
	int ret = vmpt_image_page(image, space, linear * VMPT_PAGE, nth, &page);

	ck_assert_int_ge(ret, 0);
	if (!ret)
		return NULL;
	for (; offset < VMPT_PAGE && n < 63 && vmpt_page_knows(&page, offset); offset++)
		text[n++] = (char)page.bytes[offset];
	text[n] = 0;
	return text;
}

static const char *code_at(struct vmpt_image *image, u64 cr3, u64 tsc, u64 linear, unsigned int nth)
{
	const struct vmpt_space space = space_at(cr3, tsc);

	return code(image, &space, linear, 0x10, nth);
}

/* Worked out by hand from docs/qemu-plugin/code-stream.md. */
START_TEST(a_file_byte_by_byte)
{
	static const u8 records[] = {
		0x01, 0x80, 0x08, 0x02, 'v',  'm', /* START at 1024 of "vm" */
		0x02, 0x05, 0xa0, 0x80, 0x08, 0x02, 0x90,
		0xc3, /* BYTES at 10010H: 2 × 65552 = a0 80 08 */
		0x05, 0x01, 0x80, 0x03, 0x80, 0x10, 0x20, /* MAP_64: CR3 192 << 5, 400H, 10H */
		0x02, 0x01, 0x03, 0x01, 0x40,		  /* BYTES two back: 10010H */
		0x07, 0x00, 0x00,			  /* END */
	};
	const struct vmpt_space space = { .cr3 = 192 << 5, .exec = 64 };
	struct vmpt_image *image;
	struct vmpt_page page;

	memcpy(s.records, records, sizeof(records));
	s.used = sizeof(records);
	stream_chunk(&s);
	image = open_stream("");
	ck_assert_int_eq(vmpt_image_page(image, &space, 0x400000, 0, &page), 1);
	ck_assert_uint_eq(page.bytes[0x10], 0x40);
	ck_assert_uint_eq(page.bytes[0x11], 0xc3);
	ck_assert(vmpt_page_knows(&page, 0x10) && vmpt_page_knows(&page, 0x11));
	ck_assert(!vmpt_page_knows(&page, 0x0f) && !vmpt_page_knows(&page, 0x12));
	/* 1024 + 5 + 1 + 1 */
	ck_assert_uint_eq(page.from, 1031);
	ck_assert_uint_eq(page.to, ~0ULL);
	ck_assert_int_eq(vmpt_image_page(image, &space, 0x400000, 1, &page), 1);
	ck_assert_uint_eq(page.bytes[0x10], 0x90);
	ck_assert_uint_eq(page.from, 0);
	ck_assert_uint_eq(page.to, 1031);
	ck_assert_int_eq(vmpt_image_page(image, &space, 0x400000, 2, &page), 0);
	ck_assert_int_eq(vmpt_image_page(image, &space, 0x401000, 0, &page), 0);
	ck_assert_int_eq(vmpt_image_physical(image, 0x10000, &page), 1);
	ck_assert_uint_eq(page.bytes[0x10], 0x40);
	vmpt_image_close(image);
}
END_TEST

START_TEST(spaces_and_modes)
{
	struct vmpt_space space = space_at(0x2000, 0);
	struct vmpt_image *image;
	u64 physical;

	put_start(&s, 100, "");
	put_bytes(&s, 100, 0x50010, "one");
	put_bytes(&s, 100, 0x51010, "two");
	put_map(&s, 100, 64, 0x1000, 0x400, 0x50);
	put_map(&s, 100, 64, 0x2000, 0x400, 0x51);
	put_map(&s, 100, 64, 0x2000, 0x401, 0x50);
	put_map(&s, 100, 32, 0x2000, 0x402, 0x50);
	put_end(&s, 100, 0);
	image = open_stream("");
	ck_assert_str_eq(code_at(image, 0x1000, 0, 0x400, 0), "one");
	ck_assert_str_eq(code_at(image, 0x2000, 0, 0x400, 0), "two");
	/* The bits of CR3 that PIP does not have. */
	ck_assert_str_eq(code_at(image, 0x2018, 0, 0x400, 0), "two");
	ck_assert_str_eq(code_at(image, 0x2000, 0, 0x401, 0), "one");
	ck_assert_ptr_null(code_at(image, 0x1000, 0, 0x401, 0));
	ck_assert_ptr_null(code_at(image, 0x3000, 0, 0x400, 0));
	ck_assert_ptr_null(code_at(image, 0x2000, 0, 0x402, 0));
	ck_assert_int_eq(vmpt_image_translate(image, &space, 0x401234, &physical), 1);
	ck_assert_uint_eq(physical, 0x50234);
	space.exec = 32;
	ck_assert_str_eq(code(image, &space, 0x402, 0x10, 0), "one");
	/* Without a CR3 one space after the other. */
	space = (struct vmpt_space){ .exec = 64, .no_cr3 = true };
	ck_assert_str_eq(code(image, &space, 0x400, 0x10, 0), "one");
	ck_assert_str_eq(code(image, &space, 0x400, 0x10, 1), "two");
	ck_assert_ptr_null(code(image, &space, 0x400, 0x10, 2));
	ck_assert_str_eq(code(image, &space, 0x401, 0x10, 0), "one");
	vmpt_image_close(image);
}
END_TEST

/* The version of the time first, the next later one, the one before, and so on. */
START_TEST(versions_by_time)
{
	static const struct {
		u64 tsc;
		const char *order[5];
	} want[] = {
		{ 1, { "a", "b", "c", "d", "e" } },   { 199, { "a", "b", "c", "d", "e" } },
		{ 200, { "b", "c", "a", "d", "e" } }, { 300, { "c", "d", "b", "e", "a" } },
		{ 499, { "d", "e", "c", "b", "a" } }, { 500, { "e", "d", "c", "b", "a" } },
		{ 0, { "e", "d", "c", "b", "a" } },
	};
	static const char text[5][2] = { "a", "b", "c", "d", "e" };
	const struct vmpt_space at = space_at(0x1000, 300);
	struct vmpt_image *image;
	struct vmpt_page page;
	unsigned int i, k;

	put_start(&s, 100, "vm");
	put_map(&s, 100, 64, 0x1000, 0x400, 0x50);
	for (i = 0; i < 5; i++)
		put_bytes(&s, 100 + 100 * i, 0x50010, text[i]);
	put_end(&s, 1000, 0);
	image = open_stream("");
	for (i = 0; i < VMPT_ARRAY_SIZE(want); i++) {
		for (k = 0; k < 5; k++)
			ck_assert_str_eq(code_at(image, 0x1000, want[i].tsc, 0x400, k),
					 want[i].order[k]);
		ck_assert_ptr_null(code_at(image, 0x1000, want[i].tsc, 0x400, 5));
	}
	ck_assert_int_eq(vmpt_image_page(image, &at, 0x400000, 0, &page), 1);
	ck_assert_uint_eq(page.from, 300);
	ck_assert_uint_eq(page.to, 400);
	vmpt_image_close(image);
}
END_TEST

/* Only a byte that was known makes a version, and a version has all that was known before the next.
 */
START_TEST(bytes_that_come_later_are_no_change)
{
	struct vmpt_image *image;

	put_start(&s, 100, "vm");
	put_map(&s, 100, 64, 0x1000, 0x400, 0x50);
	put_bytes(&s, 100, 0x50010, "ab");
	put_bytes(&s, 200, 0x50012, "cd");
	put_bytes(&s, 300, 0x50011, "bcde");
	put_bytes(&s, 400, 0x50013, "X");
	put_bytes(&s, 500, 0x50015, "f");
	put_end(&s, 1000, 0);
	image = open_stream("");
	ck_assert_str_eq(code_at(image, 0x1000, 100, 0x400, 0), "abcde");
	ck_assert_str_eq(code_at(image, 0x1000, 400, 0x400, 0), "abcXef");
	ck_assert_ptr_null(code_at(image, 0x1000, 100, 0x400, 2));
	vmpt_image_close(image);
}
END_TEST

/* A linear page is mapped to another page, and that page changes while it is not mapped. */
START_TEST(mappings_by_time)
{
	struct vmpt_image *image;

	put_start(&s, 100, "vm");
	put_bytes(&s, 100, 0x50010, "old");
	put_map(&s, 100, 64, 0x1000, 0x400, 0x50);
	put_bytes(&s, 200, 0x51010, "other");
	put_map(&s, 200, 64, 0x1000, 0x400, 0x51);
	/* By another space. */
	put_bytes(&s, 300, 0x50010, "between");
	put_bytes(&s, 400, 0x50010, "now");
	put_map(&s, 410, 64, 0x1000, 0x400, 0x50);
	put_end(&s, 1000, 0);
	image = open_stream("");
	ck_assert_str_eq(code_at(image, 0x1000, 150, 0x400, 0), "old");
	ck_assert_str_eq(code_at(image, 0x1000, 350, 0x400, 0), "other");
	ck_assert_str_eq(code_at(image, 0x1000, 450, 0x400, 0), "nowween");
	ck_assert_str_eq(code_at(image, 0x1000, 450, 0x400, 1), "other");
	ck_assert_str_eq(code_at(image, 0x1000, 450, 0x400, 2), "old");
	ck_assert_ptr_null(code_at(image, 0x1000, 450, 0x400, 3));
	vmpt_image_close(image);
}
END_TEST

/* Another QEMU wrote to the same file: its memory is another one. */
START_TEST(machines)
{
	struct vmpt_image *image;

	put_start(&s, 100, "vm");
	put_bytes(&s, 100, 0x50010, "first");
	put_map(&s, 100, 64, 0x1000, 0x400, 0x50);
	put_map(&s, 100, 64, 0x1000, 0x401, 0x51);
	put_end(&s, 200, 0);
	put_start(&s, 300, "vm");
	put_bytes(&s, 300, 0x50012, "x");
	put_map(&s, 300, 64, 0x1000, 0x400, 0x50);
	put_end(&s, 400, 0);
	image = open_stream("");
	ck_assert_str_eq(code_at(image, 0x1000, 150, 0x400, 0), "first");
	ck_assert_str_eq(code_at(image, 0x1000, 350, 0x400, 0), "");
	ck_assert_str_eq(code_at(image, 0x1000, 350, 0x400, 1), "first");
	/* A page of which no byte is known is none. */
	ck_assert_ptr_null(code_at(image, 0x1000, 150, 0x401, 0));
	vmpt_image_close(image);
}
END_TEST

/*
 * VM 7000: runs at 100 to 190, at 300 to 390, in the trace 1000 later, and at 500 to 590, there
 * 3000 later. The code changes at 150, 350 and 550, and by another VM's vCPU at 450.
 */
START_TEST(runs_that_were_moved)
{
	static const struct {
		u64 tsc;
		const char *code;
	} want[] = { { 100, "a" },  { 149, "a" },  { 150, "b" },  { 190, "b" },	 { 1299, "b" },
		     { 1349, "b" }, { 1350, "c" }, { 1390, "c" }, { 1460, "c" }, { 3499, "c" },
		     { 3500, "d" }, { 3549, "d" }, { 3550, "e" }, { 9999, "e" } };
	struct vmpt_space space = space_at(0x1000, 0);
	struct vmpt_image *image;
	struct vmpt_page page;
	unsigned int i;

	put_start(&s, 90, "vm");
	put_map(&s, 90, 64, 0x1000, 0x400, 0x50);
	put_bytes(&s, 100, 0x50010, "a");
	put_bytes(&s, 150, 0x50010, "b");
	put_run(&s, 195, 0x7000, 100, 190, 0);
	put_bytes(&s, 350, 0x50010, "c");
	put_run(&s, 390, 0x7000, 300, 390, 1000);
	put_run(&s, 390, 0x6000, 0, 390, 5);
	put_bytes(&s, 450, 0x50010, "d");
	put_bytes(&s, 550, 0x50010, "e");
	put_run(&s, 600, 0x7000, 500, 590, 3000);
	put_end(&s, 1000, 0);
	image = open_stream("");
	space.owner = (struct vmpt_owner){ .kind = VMPT_OWNER_VM, .vmcs = 0x7000 };
	for (i = 0; i < VMPT_ARRAY_SIZE(want); i++) {
		space.tsc = want[i].tsc;
		ck_assert_msg(!strcmp(code(image, &space, 0x400, 0x10, 0), want[i].code),
			      "TSC %llu: not %s", (unsigned long long)want[i].tsc, want[i].code);
	}
	/* The times of a page are those of the trace: "c" from 350 to 450, "d" from there to 550.
	 */
	space.tsc = 1360;
	ck_assert_int_eq(vmpt_image_page(image, &space, 0x400000, 0, &page), 1);
	ck_assert_uint_eq(page.from, 1350);
	ck_assert_uint_eq(page.to, 3500);
	ck_assert_int_eq(vmpt_image_page(image, &space, 0x400000, 1, &page), 1);
	ck_assert_uint_eq(page.from, 3500);
	ck_assert_uint_eq(page.to, 3550);
	/* A VMCS without runs, a host: times are as they are. */
	space.owner.vmcs = 0x8000;
	space.tsc = 460;
	ck_assert_str_eq(code(image, &space, 0x400, 0x10, 0), "d");
	vmpt_image_close(image);
}
END_TEST

/* A file with several chunks and records of each kind. */
static void make_example(void)
{
	put_start(&s, 100, "example");
	s.open = true;
	put_bytes(&s, 110, 0x50010, "some bytes");
	put_map(&s, 120, 64, 0x1000, 0x400, 0x50);
	put_map(&s, 130, 32, 0x1000, 0x401, 0x50);
	put_map(&s, 140, 16, 0x1000, 0x402, 0x50);
	stream_chunk(&s);
	put_bytes(&s, 200, 0x50011, "other");
	put_map(&s, 210, 64, 0x2000, 0x400, 0x50);
	stream_chunk(&s);
	s.open = false;
	put_run(&s, 300, 0x7000, 100, 290, 10);
	put_end(&s, 400, 0);
}

/* Opens it, and asks for all its pages. 0, or the error with its reason. */
static int ask_all(const u8 *bytes, size_t size, bool *complains)
{
	const struct vmpt_image_options options = { .kind = VMPT_IMAGE_CODE };
	const struct vmpt_file file = { bytes, size };
	struct vmpt_image *image;
	struct vmpt_diag diag;
	struct vmpt_page page;
	unsigned int i, nth;
	int ret = vmpt_image_open_memory(&image, &file, 1, &options, &diag);

	*complains = diag.text[0];
	if (ret)
		return ret;
	for (i = 0; i < 12; i++) {
		struct vmpt_space space = { .cr3 = i & 1 ? 0x1000 : 0x2000,
					    .exec = 64,
					    .tsc = i * 50 };

		for (nth = 0;
		     vmpt_image_page(image, &space, 0x400000 + i / 4 * VMPT_PAGE, nth, &page) > 0;
		     nth++)
			ck_assert_ptr_nonnull(page.bytes);
	}
	vmpt_image_close(image);
	return 0;
}

/* Each chunk has a sum: no changed byte is taken for good. */
START_TEST(each_byte_damaged)
{
	bool complains;
	size_t i;
	u8 bit;

	make_example();
	ck_assert_int_eq(ask_all(s.file, s.size, &complains), 0);
	ck_assert(!complains);
	for (i = 0; i < s.size; i++) {
		for (bit = 1; bit; bit = (u8)(bit << 1)) {
			s.file[i] ^= bit;
			ck_assert_int_eq(ask_all(s.file, s.size, &complains), 0);
			ck_assert(complains);
			s.file[i] ^= bit;
		}
	}
}
END_TEST

/* QEMU was killed at any time: what is there is read. */
START_TEST(each_length)
{
	bool complains;
	size_t i;

	make_example();
	for (i = 0; i < s.size; i++) {
		u8 *copy = malloc(i + 1);
		int ret;

		memcpy(copy, s.file, i);
		ret = ask_all(copy, i, &complains);
		/* The first chunk: 24 + 1 + 1 + 1 + 7 bytes. */
		ck_assert_int_eq(ret, i < 34 ? -VMPT_E_FORMAT : 0);
		ck_assert(complains);
		free(copy);
	}
}
END_TEST

/* Code of whole chunks around a damaged one stays; a missing chunk is noticed. */
START_TEST(what_is_left_of_a_damaged_file)
{
	struct vmpt_image *image;
	size_t second, third;

	put_start(&s, 100, "vm");
	put_map(&s, 100, 64, 0x1000, 0x400, 0x50);
	put_bytes(&s, 100, 0x50010, "a");
	second = s.size;
	put_bytes(&s, 100, 0x50011, "b");
	third = s.size;
	put_bytes(&s, 100, 0x50012, "c");
	put_end(&s, 200, 0);
	s.file[second + 30]++;
	image = open_stream("31 bytes of the code stream are damaged, 1 chunks are missing");
	ck_assert_str_eq(code_at(image, 0x1000, 0, 0x400, 0), "a");
	vmpt_image_close(image);
	memmove(s.file + second, s.file + third, s.size - third);
	s.size -= third - second;
	image = open_stream("0 bytes of the code stream are damaged, 1 chunks are missing");
	vmpt_image_close(image);
}
END_TEST

/* Whole chunks with broken records, as a hostile file may have them. */
START_TEST(broken_records)
{
	static const struct {
		u8 size, bytes[24];
	} records[] = {
		{ 1, { 2 } },				    /* no time */
		{ 2, { 0, 0 } },			    /* no such kind */
		{ 2, { 8, 0 } },			    /* the same */
		{ 3, { 2, 0, 0x20 } },			    /* no size */
		{ 4, { 2, 0, 0x20, 0 } },		    /* of nothing */
		{ 5, { 2, 0, 0x20, 2, 0x90 } },		    /* longer than the chunk */
		{ 7, { 2, 0, 0xfe, 0x3f, 2, 0x90, 0x90 } }, /* fff, 2 bytes: over the page's end */
		{ 4, { 1, 0, 200, 1 } },		    /* a name that is not there */
		{ 3, { 5, 0, 0 } },			    /* ends in the mapping */
		{ 6, { 5, 0, 1, 0, 0, 0 } },		    /* CR3 -1 */
		{ 6, { 5, 0, 0, 1, 0, 0 } },		    /* linear page -1 */
		{ 12,
		  { 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0 } }, /* 2^64 */
		{ 7, { 6, 0, 0, 0, 1, 0, 0 } }, /* ended before the TSC was 0 */
		{ 3, { 7, 0, 2 } },		/* no such reason */
	};
	struct vmpt_image *image;
	unsigned int i;

	for (i = 0; i < VMPT_ARRAY_SIZE(records); i++) {
		setup();
		put_start(&s, 0, "");
		memcpy(s.records, records[i].bytes, records[i].size);
		s.used = records[i].size;
		stream_chunk(&s);
		put_end(&s, 0, 0);
		image = open_stream("damaged, 0 chunks");
		ck_assert_uint_eq(image->code->bytes_count + image->code->map_count, 0);
		ck_assert_uint_eq(image->code->run_count, 0);
		vmpt_image_close(image);
	}
}
END_TEST

START_TEST(the_limit_and_no_end_are_reported)
{
	put_start(&s, 100, "vm");
	vmpt_image_close(open_stream("no end: QEMU was killed"));
	put_end(&s, 0x1234, 1);
	vmpt_image_close(open_stream("its largest size at TSC 0x1234:"));
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("decoder/code-stream");
	TCase *c = tcase_create("code-stream");

	tcase_add_checked_fixture(c, setup, NULL);
	tcase_add_test(c, a_file_byte_by_byte);
	tcase_add_test(c, spaces_and_modes);
	tcase_add_test(c, versions_by_time);
	tcase_add_test(c, bytes_that_come_later_are_no_change);
	tcase_add_test(c, mappings_by_time);
	tcase_add_test(c, machines);
	tcase_add_test(c, runs_that_were_moved);
	tcase_add_test(c, each_byte_damaged);
	tcase_add_test(c, each_length);
	tcase_add_test(c, what_is_left_of_a_damaged_file);
	tcase_add_test(c, broken_records);
	tcase_add_test(c, the_limit_and_no_end_are_reported);
	suite_add_tcase(suite, c);
	return suite;
}
