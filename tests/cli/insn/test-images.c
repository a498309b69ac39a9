// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt insn with images that are missing, of something else, or no images. */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "decoder/vmpt-image.h"
#include "tests/cli/cli-run.h"
#include "tests/cli/insn/insn-run.h"
#include "tests/decoder/image/dump-writer.h"
#include "tests/support/support.h"

START_TEST(without_images)
{
	const struct run *r;
	json_t *doc;

	write_mixed("m.pt");
	r = vmpt("insn --count --json m.pt");
	ck_assert_int_eq(r->code, 0);
	ck_assert_ptr_nonnull(strstr(r->err, "no code is known"));
	doc = run_json(r);
	ck_assert_uint_eq(json_u64(doc, "total/instructions"), 0);
	ck_assert_uint_gt(json_u64(doc, "total/gaps/no_code"), 0);
	ck_assert_ptr_null(json_object_get(json_at(doc, "total"), "hash"));
	json_decref(doc);
}
END_TEST

/* Another program's pages: it is said, with the first place. */
START_TEST(the_wrong_image)
{
	const struct run *r;
	const char *path;
	char dump[64];

	if (!link_real(&reals[2]))
		return;
	path = test_data("guest-mruby.addr");
	ck_assert_ptr_nonnull(path);
	ck_assert_int_eq(symlink(path, "y.addr"), 0);
	snprintf(dump, sizeof(dump), "%s", "guest-mruby.dump");
	ck_assert_int_eq(symlink(test_data(dump), "y.dump"), 0);
	r = vmpt("insn --count --code=y.addr x.pt");
	ck_assert_int_eq(r->code, 0);
	ck_assert_ptr_nonnull(strstr(r->err, "the code does not fit the trace (gaps: "));
	ck_assert_ptr_nonnull(strstr(r->err, "another VM or another time"));
	ck_assert_ptr_nonnull(strstr(r->out, "code differs"));
}
END_TEST

/* Zeros decode to ADDs without end: many instructions, no branch, and nothing but endless gaps. */
START_TEST(code_without_branches)
{
	const struct run *r;

	if (!link_real(&reals[2]))
		return;
	write_file("z.bin", "", 0);
	ck_assert_int_eq(truncate("z.bin", 1 << 20), 0);
	r = vmpt("insn --count --code=z.bin@0x400000 x.pt");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "endless code");
	ck_lacks(r->out, "code differs");
	ck_has(r->err, "the code does not fit the trace (gaps: ");
}
END_TEST

/* The first half of the pages: the flow goes on after what is missing. */
START_TEST(half_an_image)
{
	u8 *addr, *dump;
	json_t *doc;
	size_t n, size;

	if (!link_real(&reals[2]))
		return;
	addr = test_read_file("x.addr", &n);
	dump = test_read_file("x.dump", &size);
	write_file("h.addr", addr, n / 16 * 8);
	write_file("h.dump", dump, n / 16 * VMPT_PAGE);
	doc = run_json(vmpt("insn --count --json --code=h.addr x.pt"));
	ck_assert_uint_gt(json_u64(doc, "total/gaps/no_code"), 0);
	ck_assert_uint_gt(json_u64(doc, "total/instructions"), 0);
	ck_assert_uint_lt(json_u64(doc, "total/instructions"), reals[2].instructions);
	ck_assert_ptr_nonnull(strstr(json_text(doc, "warnings/0"), "the code is missing"));
	json_decref(doc);
	/* The other half as a second image: complete. */
	write_file("k.addr", addr + n / 16 * 8, n - n / 16 * 8);
	write_file("k.dump", dump + n / 16 * VMPT_PAGE, size - n / 16 * VMPT_PAGE);
	check_total(&reals[2], "--code=h.addr --code=k.addr");
	free(addr);
	free(dump);
}
END_TEST

/* A dump of another guest: no table at the trace's CR3. */
START_TEST(a_dump_without_the_tables)
{
	static u8 memory[16 * VMPT_PAGE];
	const struct run *r;

	if (!link_real(&reals[2]))
		return;
	write_file("o.ram", memory, sizeof(memory));
	r = vmpt("insn --count --code=o.ram x.pt");
	ck_assert_int_eq(r->code, 0);
	ck_assert_ptr_nonnull(strstr(r->err, "o.ram: no page tables at any CR3 of the trace"));
}
END_TEST

START_TEST(names_with_colons_and_ats)
{
	const struct run *r;

	if (!link_real(&reals[2]))
		return;
	ck_assert_int_eq(symlink("x.addr", "a:b@c.addr"), 0);
	ck_assert_int_eq(symlink("x.dump", "a:b@c.dump"), 0);
	check_total(&reals[2], "--code=a:b@c.addr");
	check_total(&reals[2], "--code=./a:b@c.addr");
	check_total(&reals[2], "--code=20ce5b000:x.addr");
	r = vmpt("insn --count --code=web:x.addr x.pt");
	ck_assert_int_eq(r->code, 0);
	ck_assert_ptr_nonnull(strstr(r->err, "x.addr: no VM of the trace has the name web"));
	r = vmpt("insn --count --code=host:x.addr x.pt");
	ck_has(r->err, "x.addr: the trace has no host: it is not used");
	r = vmpt("insn --count --code=12345000:x.addr x.pt");
	ck_has(r->err, "x.addr: the trace has no VM 12345000: it is not used");
	r = vmpt("insn --count --code=x.addr --code=20ce5b000:x.addr --cr3=0x2000 x.pt");
	ck_has(r->err, "x.addr: it was not needed");
	ck_lacks(r->err, "the trace has no");
	r = vmpt("insn --count --code=none.addr x.pt");
	ck_assert_int_eq(r->code, 1);
	ck_assert_ptr_nonnull(strstr(r->err, "none.addr: cannot open"));
	/* One page of it. */
	ck_assert_int_eq(system("head -c 5000 x.dump >b.bin"), 0);
	r = vmpt("insn --count --code=b.bin@0x40zz x.pt");
	ck_assert_int_eq(r->code, 2);
}
END_TEST

/* What is no image, or could not be where its ADDR says. */
START_TEST(wrong_images)
{
	static const struct {
		const char *code, *err;
	} wrong[] = {
		{ "/", "/: is a directory, not a memory image" },
		{ "/dev/null", "/dev/null: is empty" },
		{ "none.bin@0x1000", "none.bin: is empty" },
		{ "x.addr@0x1000", "x.addr: it has its own addresses: only raw bytes and ELF "
				   "programs take an address" },
		{ "x.core@0x1000", "x.core: it has its own addresses" },
		{ "x.ranges@0x1000", "x.ranges: it has its own addresses" },
	};
	static const u8 page[VMPT_PAGE];
	const struct dump_segment s = { 0, 0, page, sizeof(page) };
	struct dump core;
	size_t i;

	if (!link_real(&reals[2]))
		return;
	dump_elf(&core, ET_CORE, EM_X86_64, false, &s, 1, NULL);
	write_file("x.core", core.data, core.size);
	free(core.data);
	write_file("x.ram", page, sizeof(page));
	write_file("x.ranges", "0 4096 0\n", 9);
	write_file("none.bin", "", 0);
	for (i = 0; i < VMPT_ARRAY_SIZE(wrong); i++) {
		const struct run *r = vmpt("insn --count --code=%s x.pt", wrong[i].code);

		ck_assert_int_eq(r->code, 1);
		ck_has(r->err, wrong[i].err);
	}
	ck_assert_int_eq(vmpt("insn --count --code=x.ranges x.pt")->code, 0);
	/* The first page of this one is that of an ELF program. */
	ck_has(vmpt("insn --count --code=x.dump x.pt")->err,
	       "x.dump: is it a set of pages? There is a list of their addresses: give x.addr");
	ck_lacks(vmpt("insn --count --code=x.addr x.pt")->err, "set of pages");
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("cli/insn-images");
	TCase *c = tcase_create("images");

	tcase_add_checked_fixture(c, cli_setup, cli_clean);
	tcase_set_timeout(c, 60);
	tcase_add_test(c, without_images);
	tcase_add_test(c, the_wrong_image);
	tcase_add_test(c, code_without_branches);
	tcase_add_test(c, half_an_image);
	tcase_add_test(c, a_dump_without_the_tables);
	tcase_add_test(c, names_with_colons_and_ats);
	tcase_add_test(c, wrong_images);
	suite_add_tcase(suite, c);
	return suite;
}
