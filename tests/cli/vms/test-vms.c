// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt vms of traces that are nearly empty, or much too full. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/cli/cli-run.h"
#include "tests/support/support.h"

#define ROWS   32768u
#define VMCSS  140000u
#define MEMORY 40960 /* KiB */

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

static const u8 psb_plus[] = {
	0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, /* PSB */
	0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
	0x02, 0x43, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, /* PIP 2000 NR */
	0x02, 0xc8, 0x00, 0x00, 0x00, 0x00, 0x00,	/* VMCS 0 */
	0x02, 0x23,					/* PSBEND */
};

/* VMCSs 0, 1000, 2000, …; 8 bytes each, but the first has its PSB+. */
static void write_many(const char *name)
{
	static const u8 vmcs[] = { 0x02, 0xc8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x06 };
	size_t size = sizeof(psb_plus) + (VMCSS - 1) * sizeof(vmcs);
	u8 *bytes = malloc(size), *at = bytes + sizeof(psb_plus);
	unsigned int i;

	memcpy(bytes, psb_plus, sizeof(psb_plus));
	for (i = 1; i < VMCSS; i++, at += sizeof(vmcs)) {
		memcpy(at, vmcs, sizeof(vmcs));
		at[2] = (u8)i;
		at[3] = (u8)(i >> 8);
		at[4] = (u8)(i >> 16);
	}
	write_file(name, bytes, size);
	free(bytes);
}

/* Its own test: what this process used itself counts as the command's too. */
START_TEST(memory_has_a_limit)
{
#ifdef SANITIZED
	test_skip("a sanitizer needs memory of its own");
#else
	static const char *const line[] = { "vms", "vms --json", "vms --json x.pt" };
	size_t i;

	write_many("x.pt");
	for (i = 0; i < VMPT_ARRAY_SIZE(line); i++) {
		const struct run *r = vmpt("%s -q -j 1 x.pt", line[i]);

		ck_assert_int_eq(r->code, 0);
		ck_assert_msg(r->memory < MEMORY, "%s: %ld KiB", line[i], r->memory);
	}
#endif
}
END_TEST

START_TEST(too_many_vmcss_are_others)
{
	const struct run *r;
	json_t *doc, *owner;

	write_many("x.pt");
	r = vmpt("vms --json x.pt");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->err,
	       "too many VMCSs: 107,232 slices, 857,856 bytes are in one row, \"others\"\n");
	doc = run_json(r);
	ck_assert_uint_eq(json_array_size(json_at(doc, "owners")), ROWS + 1);
	ck_assert_str_eq(json_text(doc, "owners/32767/vmcs"), "0x7fff000");
	owner = json_at(doc, "owners/32768");
	ck_assert_str_eq(json_text(owner, "owner"), "others");
	ck_assert_uint_eq(json_u64(owner, "slices"), VMCSS - ROWS);
	ck_assert_uint_eq(json_u64(owner, "bytes"), 8 * (VMCSS - ROWS));
	ck_assert_uint_eq(json_u64(owner, "leaves"), VMCSS - ROWS - 1);
	ck_assert(json_is_null(json_at(owner, "returns")));
	json_decref(doc);
	r = vmpt("vms --quiet x.pt");
	ck_assert_int_eq(r->code, 0);
	ck_assert_str_eq(r->err, "");
	ck_has(r->out, "\nothers ");
	/* On two CPUs together */
	if (getenv("VMPT_SANITIZED"))
		return;
	r = vmpt("vms --json x.pt x.pt");
	doc = run_json(r);
	ck_assert_uint_eq(json_array_size(json_at(doc, "owners")), ROWS + 1);
	ck_assert_uint_eq(json_u64(doc, "owners/32768/streams/1/slices"), VMCSS);
	json_decref(doc);
}
END_TEST

START_TEST(no_table_of_nothing)
{
	static const u8 noise[64] = { 0x02, 0x7f };
	const struct run *r;

	write_file("noise.pt", noise, sizeof(noise));
	r = vmpt("vms noise.pt");
	ck_assert_int_eq(r->code, 3);
	ck_has(r->out, "lost");
	ck_lacks(r->out, "FIRST TSC");
	ck_lacks(r->out, "\n\n");
	write_mixed("x.pt");
	ck_has(vmpt("vms x.pt")->out, "\n\nVMCS  LOSSES  FIRST TSC");
	/* An empty CPU beside another */
	write_file("empty.pt", "", 0);
	r = vmpt("vms --cpu=1 x.pt@0 empty.pt@1");
	ck_assert_int_le(r->code, 1);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("cli vms");
	TCase *tc = tcase_create("vms");

	tcase_add_checked_fixture(tc, cli_setup, cli_clean);
	tcase_add_test(tc, memory_has_a_limit);
	tcase_add_test(tc, too_many_vmcss_are_others);
	tcase_add_test(tc, no_table_of_nothing);
	suite_add_tcase(suite, tc);
	return suite;
}
