// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * qemu-plugin/flow/code.c: what blocks leave in a code stream, read back by decoder/image/. The
 * stand-in's physical addresses are the low 40 bits of those at which blocks are translated.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "decoder/image/code-stream.h"
#include "qemu-plugin/flow/code.h"
#include "tests/qemu-plugin/stand-in.h"
#include "tests/support/support.h"

static char path[256];

static unsigned int changes;

static void code_changed(struct vcpu *vcpu, u64 ip)
{
	ck_assert_uint_eq(ip, vcpu->block->start + vcpu->delta);
	changes++;
}

static void setup(void)
{
	static const struct host_ops ops = { .code_changed = code_changed };

	stand_in_setup();
	stand_in.plugin.host_ops = &ops;
	changes = 0;
	snprintf(path, sizeof(path), "%s/vm.code", test_dir_make());
	stand_in.plugin.options.code = path;
	stand_in.plugin.options.code_limit = 1;
	stand_in.plugin.options.mode = 0600;
	stand_in.plugin.code = code_open(&stand_in.plugin, "vm");
	ck_assert_ptr_nonnull(stand_in.plugin.code);
	ck_assert_int_eq(code_vcpu_open(&stand_in.vcpu), 0);
}

static void teardown(void)
{
	test_dir_remove();
}

static size_t size_now(void)
{
	struct stat st;

	code_flush(stand_in.plugin.code);
	ck_assert_int_eq(stat(path, &st), 0);
	return (size_t)st.st_size;
}

/* Nothing more is executed: the stream as an image. */
static struct vmpt_image *read_back(void)
{
	struct vmpt_image *image;
	struct vmpt_diag diag;

	code_close(stand_in.plugin.code);
	ck_assert_int_eq(vmpt_image_open(&image, path, NULL, &diag), 0);
	ck_assert_str_eq(diag.text, "");
	return image;
}

/* Whether alternative @nth has these bytes, in hex, at @linear, and does not know the next one. */
static bool has(struct vmpt_image *image, u64 cr3, u64 linear, unsigned int nth, const char *hex)
{
	const struct vmpt_space space = { .cr3 = cr3, .exec = 64 };
	unsigned int at = linear % VMPT_PAGE;
	struct vmpt_page page;
	char text[3];

	if (vmpt_image_page(image, &space, linear - at, nth, &page) != 1)
		return false;
	for (; *hex; hex += 2, at++) {
		snprintf(text, sizeof(text), "%02x", page.bytes[at]);
		if (!vmpt_page_knows(&page, at) || strncmp(hex, text, 2) != 0)
			return false;
	}
	return !vmpt_page_knows(&page, at);
}

static void set_cr3(u64 cr3)
{
	stand_in.reg[QREG_CR3] = cr3;
	stand_in.vcpu.mode.cr3 = cr3;
	stand_in.vcpu.lost = true;
}

#define JMP "ffe0" /* jmp *%rax: the next block is where RIP is */

START_TEST(a_block_is_written_when_it_executes)
{
	struct qemu_block *block = stand_in_block(0x401000, "90 " JMP);
	struct vmpt_image *image;

	stand_in_block(0x402000, "90 " JMP);
	stand_in_run_here(block);
	image = read_back();
	ck_assert(has(image, 0x1000, 0x401000, 0, "90" JMP));
	ck_assert(!has(image, 0x1000, 0x402000, 0, "90" JMP));
	ck_assert(!has(image, 0x2000, 0x401000, 0, "90" JMP));
	vmpt_image_close(image);
}
END_TEST

/* QEMU translates once, and runs the block wherever its page is mapped. */
START_TEST(a_block_at_other_addresses)
{
	struct qemu_block *block = stand_in_block(0x401000, "90 " JMP);
	struct vmpt_image *image;
	size_t size;

	stand_in_run_here(block);
	set_cr3(0x2000);
	stand_in_run(block, 0x7f0000005000, 0);
	set_cr3(0x1000);
	size = size_now();
	stand_in_run_here(block);
	set_cr3(0x2000);
	stand_in_run(block, 0x7f0000005000, 0);
	ck_assert_uint_eq(size_now(), size);
	image = read_back();
	ck_assert(has(image, 0x1000, 0x401000, 0, "90" JMP));
	ck_assert(has(image, 0x2000, 0x7f0000005000, 0, "90" JMP));
	ck_assert(!has(image, 0x2000, 0x401000, 0, "90" JMP));
	ck_assert_uint_eq(image->code->bytes_count, 1);
	ck_assert_uint_eq(image->code->map_count, 2);
	vmpt_image_close(image);
}
END_TEST

/* QEMU drops all blocks, and translates the same code again. */
START_TEST(the_same_again_is_not_written)
{
	struct qemu_block *block = stand_in_block(0x401000, "90 " JMP);
	size_t size;

	stand_in_run_here(block);
	size = size_now();
	stand_in_run_here(block);
	flow_keep_block(&stand_in.vcpu);
	translate_free(&stand_in.plugin);
	stand_in_run_here(stand_in_block(0x401000, "90 " JMP));
	/* A part of it */
	stand_in_run_here(stand_in_block(0x401001, JMP));
	ck_assert_uint_eq(size_now(), size);
	/* One byte more */
	stand_in_run_here(stand_in_block(0x400fff, "90 90 " JMP));
	ck_assert_uint_gt(size_now(), size);
	code_close(stand_in.plugin.code);
}
END_TEST

/* A B A, where the first block comes again without being translated, as with several vCPUs. */
START_TEST(code_that_changes)
{
	struct qemu_block *a = stand_in_block(0x401000, "90 " JMP);
	struct qemu_block *b = stand_in_block(0x401000, "f8 " JMP);
	struct vmpt_image *image;

	stand_in_run_here(a);
	stand_in_run_here(b);
	stand_in_run_here(a);
	stand_in_run_here(a);
	image = read_back();
	ck_assert(has(image, 0x1000, 0x401000, 0, "90" JMP));
	ck_assert(has(image, 0x1000, 0x401000, 1, "f8" JMP));
	ck_assert(has(image, 0x1000, 0x401000, 2, "90" JMP));
	/* The trace gets the time of each. */
	ck_assert_uint_eq(changes, 2);
	/* Only the byte that changed */
	ck_assert_uint_eq(image->code->bytes_count, 3);
	ck_assert_uint_eq(image->code->bytes[1].size, 1);
	vmpt_image_close(image);
}
END_TEST

/* A CR3 is used again, for other pages at the same addresses; and again for the first ones. */
START_TEST(mappings_that_change)
{
	struct qemu_block *a = stand_in_block(0x401000, "90 " JMP);
	struct qemu_block *b = stand_in_block(0x501000, "f8 " JMP);
	struct vmpt_image *image;

	stand_in_run(a, 0x601000, 0);
	stand_in_run(b, 0x601000, 0);
	stand_in_run(a, 0x601000, 0);
	image = read_back();
	ck_assert(has(image, 0x1000, 0x601000, 0, "90" JMP));
	ck_assert(has(image, 0x1000, 0x601000, 1, "f8" JMP));
	ck_assert(has(image, 0x1000, 0x601000, 2, "90" JMP));
	ck_assert_uint_eq(image->code->map_count, 3);
	ck_assert_uint_eq(changes, 2);
	vmpt_image_close(image);
}
END_TEST

START_TEST(a_block_over_a_page_end)
{
	struct vmpt_image *image;

	stand_in_run_here(stand_in_block(0x401ffe, "90 b801020304 " JMP));
	image = read_back();
	ck_assert(has(image, 0x1000, 0x402000, 0, "01020304" JMP));
	vmpt_image_close(image);
}
END_TEST

/* Five pages that would be in the same place of the table: the oldest makes room, and comes again.
 */
START_TEST(memory_is_bounded)
{
	struct qemu_block *block[5], *changed;
	struct vmpt_image *image;
	u64 page = 0x1000, first = vmpt_mix64(page) % 8192;
	unsigned int i;

	for (i = 0; i < 5; page++)
		if (vmpt_mix64(page) % 8192 == first)
			block[i++] = stand_in_block(page << 12, "90 " JMP);
	for (i = 0; i < 5; i++)
		stand_in_run_here(block[i]);
	/* Which of them is not known any more does not show. */
	changed = stand_in_block(0x1000000, "f8 " JMP);
	stand_in_run_here(changed);
	for (i = 0; i < 5; i++)
		stand_in_run_here(block[i]);
	stand_in_run_here(changed);
	image = read_back();
	ck_assert(has(image, 0x1000, 0x1000000, 0, "f8" JMP));
	ck_assert(has(image, 0x1000, 0x1000000, 1, "90" JMP));
	for (i = 1; i < 5; i++)
		ck_assert(has(image, 0x1000, block[i]->insn[0].vaddr, 0, "90" JMP));
	vmpt_image_close(image);
}
END_TEST

static void run_ends(u64 begin, u64 end, u64 moved)
{
	const struct code_run run = { .vmcs = 0x7000, .begin = begin, .end = end, .moved = moved };

	code_run(&stand_in.vcpu, &run);
}

START_TEST(runs_are_noted_if_there_is_something_new)
{
	struct vmpt_image *image;

	stand_in_run_here(stand_in_block(0x401000, "90 " JMP));
	run_ends(1000, 2000, 5);
	run_ends(3000, 4000, 6);
	stand_in_run_here(stand_in_block(0x402000, "90 " JMP));
	run_ends(5000, 6000, 7);
	image = read_back();
	ck_assert_uint_eq(image->code->run_count, 2);
	ck_assert_uint_eq(image->code->run[0].begin, 1000);
	ck_assert_uint_eq(image->code->run[0].end, 2000);
	ck_assert_uint_eq(image->code->run[0].moved, 5);
	ck_assert_uint_eq(image->code->run[1].end, 6000);
	ck_assert_uint_eq(image->code->run[1].vmcs, 0x7000);
	vmpt_image_close(image);
}
END_TEST

/* The file ends with a chunk that says so, at its limit. */
START_TEST(a_full_file)
{
	struct qemu_block *a = stand_in_block(0x401000, "90 " JMP);
	struct qemu_block *b = stand_in_block(0x401000, "f8 " JMP);
	struct vmpt_image *image;
	struct vmpt_diag diag;
	struct stat st;
	unsigned int i;

	for (i = 0; i < 400000; i++)
		stand_in_run_here(i % 2 ? a : b);
	code_close(stand_in.plugin.code);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_le(st.st_size, 1 << 20);
	ck_assert_int_gt(st.st_size, 900000);
	ck_assert_int_eq(vmpt_image_open(&image, path, NULL, &diag), 0);
	ck_has(diag.text, "had its largest size");
	vmpt_image_close(image);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("qemu-plugin/code");
	TCase *c = tcase_create("code");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, a_block_is_written_when_it_executes);
	tcase_add_test(c, a_block_at_other_addresses);
	tcase_add_test(c, the_same_again_is_not_written);
	tcase_add_test(c, code_that_changes);
	tcase_add_test(c, mappings_that_change);
	tcase_add_test(c, a_block_over_a_page_end);
	tcase_add_test(c, memory_is_bounded);
	tcase_add_test(c, runs_are_noted_if_there_is_something_new);
	tcase_add_test(c, a_full_file);
	suite_add_tcase(suite, c);
	return suite;
}
