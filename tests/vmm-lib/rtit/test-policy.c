// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmm-lib/rtit/policy.c, and the side record of vmm-lib/record.c. */
#include <jansson.h>
#include <string.h>

#include "tests/support/support.h"
#include "vmm-lib/rtit.h"

/* 1.2, copied from the manual's list */
static const char *const listed[] = {
	"0x6/0x37/0x8", "0x6/0x5d/0x0", "0x6/0x5d/0x1", "0x6/0x4a/0x8",
	"0x6/0x4d/0x8", "0x6/0x5a/0x0", "0x6/0x4c/0x3",
};

START_TEST(signatures)
{
	unsigned int n, i;
	const struct vmpt_rtit_signature *s = vmpt_rtit_signatures(&n);
	char text[32];

	ck_assert_uint_eq(n, VMPT_ARRAY_SIZE(listed));
	for (i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "0x%x/0x%x/0x%x", s[i].family, s[i].model,
			 s[i].stepping);
		ck_assert_str_eq(text, listed[i]);
	}
}
END_TEST

/* Leaf 1: what processors of these signatures show (0x30678, 0x406c3), and families where the
 * extended fields count otherwise. Bits 31:28 and 15:12 are not the signature's. */
START_TEST(leaf_1)
{
	static const struct {
		struct vmpt_rtit_signature s;
		u32 eax;
	} rows[] = {
		{ { 0x6, 0x37, 0x8 }, 0x00030678 },  { { 0x6, 0x4c, 0x3 }, 0x000406c3 },
		{ { 0x6, 0x5d, 0x1 }, 0x000506d1 },  { { 0xf, 0x12, 0x4 }, 0x00010f24 },
		{ { 0x17, 0x71, 0x0 }, 0x00870f10 }, { { 0x5, 0x09, 0x0 }, 0x00000590 },
	};
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(rows); i++) {
		struct vmpt_cpuid_regs regs = { ~0u, 1, 2, 3 };

		vmpt_rtit_cpuid(&rows[i].s, 1, 0, &regs);
		ck_assert_uint_eq(regs.eax, 0xf000f000 | rows[i].eax);
		ck_assert(regs.ebx == 1 && regs.ecx == 2 && regs.edx == 3);
		regs.eax = 0;
		vmpt_rtit_cpuid(&rows[i].s, 1, 7, &regs);
		ck_assert_uint_eq(regs.eax, rows[i].eax);
	}
}
END_TEST

/* Intel PT and its XSAVE component are hidden; all else is the VMM's. */
START_TEST(no_pt)
{
	unsigned int n;
	const struct vmpt_rtit_signature *s = vmpt_rtit_signatures(&n);
	const struct vmpt_cpuid_regs all = { ~0u, ~0u, ~0u, ~0u }, none = { 0 };
	u32 leaf, subleaf;

	for (leaf = 0; leaf < 0x20; leaf++) {
		for (subleaf = 0; subleaf < 10; subleaf++) {
			struct vmpt_cpuid_regs regs = all, want = all;

			if (leaf == 1)
				continue;
			if (leaf == 7 && !subleaf)
				want.ebx = ~(1u << 25);
			if (leaf == 0xd && subleaf == 1)
				want.ecx = ~(1u << 8);
			if (leaf == 0x14 || (leaf == 0xd && subleaf == 8))
				want = none;
			vmpt_rtit_cpuid(s, leaf, subleaf, &regs);
			ck_assert_msg(!memcmp(&regs, &want, sizeof(regs)), "%x.%u", leaf, subleaf);
		}
	}
}
END_TEST

static const struct vmpt_rtit_record record = {
	.vm = "web-1",
	.vcpu = 2,
	.cpu = 3,
	.offset = 0x1234,
	.tsc = 0x99,
	.tsc_offset = 0xffffffff80000000,
	.core_offset = 0x10,
};

START_TEST(record_golden)
{
	struct vmpt_rtit_record r = record;
	char buf[256];

	vmpt_rtit_record_print(&r, buf, sizeof(buf));
	ck_assert_str_eq(buf, "{\"rtit\":1,\"vm\":\"web-1\",\"vcpu\":2,\"cpu\":3,"
			      "\"offset\":\"0x1234\",\"tsc_offset\":\"0xffffffff80000000\","
			      "\"core_offset\":\"0x10\"}\n");
	r.by_tsc = true;
	r.vm = NULL;
	vmpt_rtit_record_print(&r, buf, sizeof(buf));
	ck_assert_str_eq(buf, "{\"rtit\":1,\"vm\":null,\"vcpu\":2,\"cpu\":3,\"tsc\":\"0x99\","
			      "\"tsc_offset\":\"0xffffffff80000000\",\"core_offset\":\"0x10\"}\n");
}
END_TEST

START_TEST(record_cut)
{
	char whole[256], buf[258];
	size_t need = vmpt_rtit_record_print(&record, whole, sizeof(whole)), len;

	ck_assert_uint_eq(need, strlen(whole));
	ck_assert_uint_eq(vmpt_rtit_record_print(&record, NULL, 0), need);
	for (len = 1; len < sizeof(whole); len++) {
		size_t fits = need < len ? need : len - 1;

		memset(buf, '~', sizeof(buf));
		ck_assert_uint_eq(vmpt_rtit_record_print(&record, buf, len), need);
		ck_assert(strlen(buf) == fits && !memcmp(buf, whole, fits) && buf[len] == '~');
	}
}
END_TEST

/* Names that are not UTF-8 or need an escape: always JSON. */
START_TEST(record_names)
{
	static const char *const names[][2] = {
		{ "", "" },
		{ "a\"b\\c\n", "a\"b\\c\n" },
		{ "\xc3\xa4\xf0\x9f\x90\xa7", "\xc3\xa4\xf0\x9f\x90\xa7" },
		{ "\xff\xc0x", "\xef\xbf\xbd\xef\xbf\xbdx" },
	};
	struct vmpt_rtit_record r = record;
	char buf[512];
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(names); i++) {
		json_error_t error;
		json_t *line;

		r.vm = names[i][0];
		vmpt_rtit_record_print(&r, buf, sizeof(buf));
		line = json_loads(buf, JSON_REJECT_DUPLICATES, &error);
		ck_assert_msg(line != NULL, "%s: %s", error.text, buf);
		ck_assert_str_eq(json_string_value(json_object_get(line, "vm")), names[i][1]);
		ck_assert_uint_eq(json_object_size(line), 7);
		json_decref(line);
	}
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("rtit-policy");
	TCase *tc = tcase_create("policy");

	tcase_add_test(tc, signatures);
	tcase_add_test(tc, leaf_1);
	tcase_add_test(tc, no_pt);
	tcase_add_test(tc, record_golden);
	tcase_add_test(tc, record_cut);
	tcase_add_test(tc, record_names);
	suite_add_tcase(suite, tc);
	return suite;
}
