// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Code that was written at known times: TEXT_POKE and KSYMBOL of a perf.data, a jitdump with TSCs.
 * No machine here has PT: the files are made by the rules of <linux/perf_event.h> and perf's
 * jitdump-specification.txt.
 */
#include <linux/perf_event.h>
#include <unistd.h>

#include "decoder/vmpt-events.h"
#include "decoder/vmpt-image.h"
#include "tests/decoder/perf-writer.h"
#include "tests/support/support.h"

#define KERNEL 0xffffffff81000000ULL

static const struct vmpt_trace_info conv = { .has_time_conv = true,
					     .time_shift = WRITER_SHIFT,
					     .time_mult = WRITER_MULT,
					     .time_zero = WRITER_ZERO };
static struct perf_writer w;

static struct writer_at at_ns(u64 ns)
{
	return (struct writer_at){ 0, 0, 0, WRITER_ZERO + ns };
}

static u64 tsc_of(u64 ns)
{
	return vmpt_perf_time_to_tsc(&conv, WRITER_ZERO + ns);
}

static void poke(u64 ns, u64 addr, const char *old, const char *new)
{
	struct {
		u64 addr;
		u16 old_len, new_len;
		char bytes[32];
	} __attribute__((packed)) r = { addr, (u16)strlen(old), (u16)strlen(new), "" };
	struct writer_at at = at_ns(ns);
	size_t n = 12u + r.old_len + r.new_len;

	memcpy(r.bytes, old, r.old_len);
	memcpy(r.bytes + r.old_len, new, r.new_len);
	writer_kernel_record(&w, PERF_RECORD_TEXT_POKE, 0, &r, (n + 7) & ~7ULL, &at);
}

static void unregister(u64 ns, u64 addr, u32 size, u16 type)
{
	struct {
		u64 addr;
		u32 len;
		u16 type, flags;
		char name[8];
	} r = { addr, size, type, PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER, "tramp" };
	struct writer_at at = at_ns(ns);

	writer_kernel_record(&w, PERF_RECORD_KSYMBOL, 0, &r, sizeof(r), &at);
}

static struct vmpt_image *open_perf(void)
{
	struct vmpt_image *image;
	char path[WRITER_PATH];
	struct vmpt_diag diag;

	writer_finish(&w);
	writer_save(&w, path);
	ck_assert_msg(!vmpt_image_open(&image, path, NULL, &diag), "%s", diag.text);
	unlink(path);
	writer_free(&w);
	return image;
}

/* Version @nth at @tsc has @text at @linear ('.': not known) and is good from @from to @to. */
static void check(struct vmpt_image *image, u64 tsc, unsigned int nth, u64 linear, const char *text,
		  u64 from, u64 to)
{
	const struct vmpt_space space = { .no_cr3 = true, .exec = 64, .tsc = tsc };
	unsigned int i, at = linear % VMPT_PAGE;
	struct vmpt_page page;

	ck_assert_int_eq(vmpt_image_page(image, &space, linear - at, nth, &page), 1);
	for (i = 0; text[i]; i++) {
		ck_assert_int_eq(vmpt_page_knows(&page, at + i), text[i] != '.');
		if (text[i] != '.')
			ck_assert_int_eq(page.bytes[at + i], text[i]);
	}
	ck_assert_uint_eq(page.from, from);
	ck_assert_uint_eq(page.to, to);
}

static void start(void)
{
	w = (struct perf_writer){ 0 };
	writer_start(&w, false);
	writer_info(&w, false, WRITER_PRIVS);
}

START_TEST(text_poke)
{
	const u64 t1 = tsc_of(1000), t2 = tsc_of(5000), t3 = tsc_of(9000);
	struct vmpt_image *image;
	struct vmpt_code *code;
	struct vmpt_page page;
	const struct vmpt_space space = { .no_cr3 = true };

	start();
	/* Not in the order of time; a second one at the same place; another one over its end. */
	poke(5000, KERNEL + 0x10, "JUMP!", "NOPPY");
	poke(1000, KERNEL + 0x10, "nopny", "JUMP!");
	poke(9000, KERNEL + 0x13, "PYab", "xyzw");
	image = open_perf();
	check(image, t1 - 1, 0, KERNEL + 0xf, ".nopnyab.", 0, t1);
	check(image, t1, 0, KERNEL + 0xf, ".JUMP!ab.", t1, t2);
	check(image, t2 - 1, 0, KERNEL + 0xf, ".JUMP!ab.", t1, t2);
	check(image, t2, 0, KERNEL + 0xf, ".NOPPYab.", t2, t3);
	check(image, t3, 0, KERNEL + 0xf, ".NOPxyzw.", t3, ~0ULL);
	check(image, 0, 0, KERNEL + 0xf, ".NOPxyzw.", t3, ~0ULL);
	/* The others: the later one first, then the one before. */
	check(image, t1, 1, KERNEL + 0xf, ".NOPPYab.", t2, t3);
	check(image, t1, 2, KERNEL + 0xf, ".nopnyab.", 0, t1);
	check(image, t1, 3, KERNEL + 0xf, ".NOPxyzw.", t3, ~0ULL);
	ck_assert_int_eq(vmpt_image_page(image, &space, KERNEL, 4, &page), 0);
	ck_assert_int_eq(vmpt_image_page(image, &space, KERNEL + 0x1000, 0, &page), 0);
	ck_assert_int_eq(vmpt_code_new(&code), 0);
	ck_assert_int_eq(vmpt_code_add(code, NULL, NULL, image), 0);
	ck_assert(vmpt_code_changes(code));
	vmpt_code_free(code);
	vmpt_image_close(image);
}
END_TEST

/* A trampoline over a page's end comes and goes, and another one comes there. */
START_TEST(trampoline)
{
	const u64 t1 = tsc_of(1000), t2 = tsc_of(5000), t3 = tsc_of(9000);
	struct vmpt_image *image;
	struct vmpt_page page;
	struct vmpt_space space = { .no_cr3 = true, .tsc = 1 };
	const u64 at = KERNEL + 0xffe;

	start();
	poke(1000, at, "", "abcd");
	unregister(3000, at, 4, PERF_RECORD_KSYMBOL_TYPE_BPF); /* its code is not known */
	unregister(5000, at, 4, PERF_RECORD_KSYMBOL_TYPE_OOL);
	poke(9000, at, "", "xy");
	poke(9500, at, "xy", ""); /* what kprobes do */
	image = open_perf();
	check(image, t1 - 1, 0, at, "..", 0, t1);
	check(image, t1, 0, at, "ab", t1, t2);
	check(image, t1, 0, at + 2, "cd", t1, t2);
	check(image, t2, 0, at, "..", t2, t3);
	check(image, t2, 0, at + 2, "..", t2, ~0ULL);
	check(image, t3, 0, at, "xy", t3, tsc_of(9500));
	check(image, 0, 0, at, "..", tsc_of(9500), ~0ULL);
	ck_assert_int_eq(vmpt_image_page(image, &space, KERNEL + 0x2000, 0, &page), 0);
	vmpt_image_close(image);
}
END_TEST

/* Broken records are left out. */
START_TEST(broken)
{
	const u8 lengths[] = {
		0, 0, 0, 0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 'x', 0, 0, 0
	};
	struct writer_at at = at_ns(1);
	struct vmpt_image *image;

	start();
	writer_kernel_record(&w, PERF_RECORD_TEXT_POKE, 0, lengths, sizeof(lengths), &at);
	writer_kernel_record(&w, PERF_RECORD_TEXT_POKE, 0, lengths, 8, &at);
	writer_kernel_record(&w, PERF_RECORD_KSYMBOL, 0, lengths, 8, &at);
	poke(1, ~0ULL - 3, "abcd", "abcd");
	poke(1, ~0ULL, "abcd", "abcd");
	unregister(2, ~0ULL - 2, 100, PERF_RECORD_KSYMBOL_TYPE_OOL);
	unregister(2, KERNEL, ~0u, PERF_RECORD_KSYMBOL_TYPE_OOL);
	poke(1, KERNEL, "a", "b");
	image = open_perf();
	check(image, 0, 0, KERNEL, "b.", tsc_of(1), ~0ULL);
	vmpt_image_close(image);
}
END_TEST

/* ---- jitdump ---- */

static u8 dump[1024];
static size_t dump_size;

static void put(u64 v, size_t n)
{
	memcpy(dump + dump_size, &v, n);
	dump_size += n;
}

static void dump_start(u64 flags)
{
	dump_size = 0;
	put(0x4a695444, 4);
	put(1, 4);
	put(40, 4);
	put(62, 4);
	put(0, 4);
	put(7, 4);
	put(0, 8);
	put(flags, 8);
}

static void dump_load(u64 time, u64 addr, const char *code, u64 index)
{
	size_t n = strlen(code);

	put(0, 4);
	put(56 + 2 + n, 4);
	put(time, 8);
	put(7, 4);
	put(7, 4);
	put(addr, 8);
	put(addr, 8);
	put(n, 8);
	put(index, 8);
	put('f', 2);
	while (*code)
		put((u8)*code++, 1);
}

static void dump_move(u64 time, u64 from, u64 to, u64 size, u64 index)
{
	put(1, 4);
	put(64, 4);
	put(time, 8);
	put(7, 4);
	put(7, 4);
	put(to, 8);
	put(from, 8);
	put(to, 8);
	put(size, 8);
	put(index, 8);
}

static struct vmpt_image *open_dump(void)
{
	struct vmpt_image *image;
	struct vmpt_diag diag;

	ck_assert_msg(
		!vmpt_image_open(&image, test_dir_file("jit.dump", dump, dump_size), NULL, &diag),
		"%s", diag.text);
	return image;
}

START_TEST(jitdump)
{
	struct vmpt_image *image;

	test_dir_make();
	dump_start(1);
	dump_load(100, 0x7000, "first", 1);
	dump_load(200, 0x7003, "second", 2);
	dump_move(300, 0x7003, 0x8000, 6, 2);
	dump_move(350, 0x9000, 0xa000, ~0ULL, 9); /* of nothing */
	dump_load(400, 0x8000, "third", 3);
	image = open_dump();
	check(image, 99, 0, 0x7000, ".....", 0, 100);
	check(image, 100, 0, 0x7000, "first....", 100, 200);
	check(image, 250, 0, 0x7000, "firsecond", 200, 300);
	check(image, 300, 0, 0x7000, "fir......", 300, ~0ULL);
	check(image, 299, 0, 0x8000, "......", 0, 300);
	check(image, 300, 0, 0x8000, "second", 300, 400);
	check(image, 0, 0, 0x8000, "thirdd", 400, ~0ULL);
	vmpt_image_close(image);
	/* Times of another clock: the last one of each place, at any time. */
	dump_start(0);
	dump_load(100, 0x7000, "first", 1);
	dump_load(200, 0x7000, "again", 2);
	image = open_dump();
	check(image, 1, 0, 0x7000, "again", 0, ~0ULL);
	vmpt_image_close(image);
	test_dir_remove();
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("decoder/image-patches");
	TCase *c = tcase_create("patches");

	tcase_add_test(c, text_poke);
	tcase_add_test(c, trampoline);
	tcase_add_test(c, broken);
	tcase_add_test(c, jitdump);
	suite_add_tcase(suite, c);
	return suite;
}
