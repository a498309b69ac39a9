// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmm-lib/record.c: lines of JSON, read back by jansson. */
#include <jansson.h>
#include <stdlib.h>
#include <time.h>

#include "tests/support/support.h"
#include "vmm-lib/tsc.h"

static const struct vmpt_record plain = {
	.vm = "web-1",
	.vcpu = 3,
	.vmcs = 0x12f7a4000,
	.tsc_offset = 0xffffffff80000000,
	.tsc_multiplier = 1ULL << 48,
	.since = 0,
};

START_TEST(golden)
{
	char buf[256];
	static const char line[] =
		"{\"vm\":\"web-1\",\"vcpu\":3,\"vmcs\":\"0x12f7a4000\","
		"\"tsc_offset\":\"0xffffffff80000000\",\"tsc_multiplier\":\"0x1000000000000\","
		"\"since\":\"0x0\"}\n";
	size_t need = vmpt_record_print(&plain, buf, sizeof(buf));

	ck_assert_str_eq(buf, line);
	ck_assert_uint_eq(need, sizeof(line) - 1);
}
END_TEST

/* Truncated at every length: the beginning of the whole, NUL-terminated, nothing after it. */
START_TEST(cut)
{
	char whole[256], buf[258];
	size_t need = vmpt_record_print(&plain, whole, sizeof(whole)), len;

	ck_assert_uint_eq(vmpt_record_print(&plain, NULL, 0), need);
	for (len = 1; len < sizeof(whole); len++) {
		size_t fits = need < len ? need : len - 1;

		memset(buf, '~', sizeof(buf));
		ck_assert_uint_eq(vmpt_record_print(&plain, buf, len), need);
		ck_assert_uint_eq(strlen(buf), fits);
		ck_assert(!memcmp(buf, whole, fits) && buf[len] == '~');
	}
}
END_TEST

static u64 hex(const json_t *line, const char *name)
{
	const char *s = json_string_value(json_object_get(line, name));

	ck_assert_msg(s && s[0] == '0' && s[1] == 'x', "%s", name);
	return strtoull(s, NULL, 16);
}

/* @bytes: the name that a reader of JSON gets. */
static void read_back(const struct vmpt_record *record, const char *bytes, size_t len)
{
	char buf[4096];
	json_error_t error;
	size_t need = vmpt_record_print(record, buf, sizeof(buf));
	json_t *line, *vm;

	ck_assert(need < sizeof(buf) && buf[need - 1] == '\n' && strlen(buf) == need);
	ck_assert_ptr_eq(strchr(buf, '\n'), buf + need - 1);
	line = json_loads(buf, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	ck_assert_msg(line != NULL, "%s: %s", error.text, buf);
	ck_assert_uint_eq(json_object_size(line), 6);
	vm = json_object_get(line, "vm");
	ck_assert_msg(json_string_length(vm) == len && !memcmp(json_string_value(vm), bytes, len),
		      "%s", buf);
	ck_assert_int_eq(json_integer_value(json_object_get(line, "vcpu")), record->vcpu);
	ck_assert_uint_eq(hex(line, "vmcs"), record->vmcs);
	ck_assert_uint_eq(hex(line, "tsc_offset"), record->tsc_offset);
	ck_assert_uint_eq(hex(line, "tsc_multiplier"), record->tsc_multiplier);
	ck_assert_uint_eq(hex(line, "since"), record->since);
	json_decref(line);
}

#define BAD "\xef\xbf\xbd" /* U+FFFD */

static const struct {
	const char *name, *read;
} names[] = {
	{ "", "" },
	{ "a \"quoted\" name", "a \"quoted\" name" },
	{ "back\\slash\\", "back\\slash\\" },
	{ "/slash", "/slash" },
	{ "\x01\x02\x08\t\n\x0b\x0c\r\x1f\x7f", "\x01\x02\x08\t\n\x0b\x0c\r\x1f\x7f" },
	{ "\",\"vcpu\":9,\"x\":\"", "\",\"vcpu\":9,\"x\":\"" },
	/* UTF-8 of two, three, four bytes, and the first and last of each */
	{ "Gr\xc3\xbc\xc3\x9f", "Gr\xc3\xbc\xc3\x9f" },
	{ "\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf",
	  "\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf" },
	{ "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf" },
	{ "\xf1\x80\x80\x80\xf3\xbf\xbf\xbf", "\xf1\x80\x80\x80\xf3\xbf\xbf\xbf" },
	/* not UTF-8: replaced byte by byte */
	{ "\x80", BAD },
	{ "a\xff\xfe z", "a" BAD BAD " z" },
	{ "\xc0\xaf", BAD BAD }, /* longer than needed */
	{ "\xc1\xbf", BAD BAD },
	{ "\xe0\x9f\xbf", BAD BAD BAD },
	{ "\xf0\x8f\xbf\xbf", BAD BAD BAD BAD },
	{ "\xed\xa0\x80", BAD BAD BAD },	 /* a surrogate */
	{ "\xf4\x90\x80\x80", BAD BAD BAD BAD }, /* above U+10FFFF */
	{ "\xf5\x80\x80\x80", BAD BAD BAD BAD },
	{ "\xc3", BAD }, /* cut by the end */
	{ "\xe2\x82", BAD BAD },
	{ "\xf0\x9f\x98", BAD BAD BAD },
	{ "\xc3(", BAD "(" },
	{ "\xe2\x28\xa1", BAD "(" BAD },
};

START_TEST(name)
{
	struct vmpt_record record = plain;

	record.vm = names[_i].name;
	read_back(&record, names[_i].read, strlen(names[_i].read));
}
END_TEST

START_TEST(extremes)
{
	struct vmpt_record record = { NULL, ~0u, ~0ULL, ~0ULL, ~0ULL, ~0ULL };

	read_back(&record, "", 0);
}
END_TEST

/* Any bytes give a line that is JSON; ASCII ones are read back unchanged. */
START_TEST(random_names)
{
	const char *soak = getenv("VMPT_SOAK");
	time_t end = time(NULL) + (soak ? atoi(soak) : 0);
	struct test_rng rng = { 1 };
	char vm[64], buf[1024];
	json_error_t error;
	json_t *line;
	u32 i, n, at;

	for (i = 0; i < 20000 || (soak && time(NULL) < end); i++) {
		struct vmpt_record record = plain;

		n = (u32)(test_random(&rng) % sizeof(vm));
		for (at = 0; at < n; at++)
			vm[at] = (char)(1 + test_random(&rng) % 255);
		vm[n] = '\0';
		record.vm = vm;
		vmpt_record_print(&record, buf, sizeof(buf));
		line = json_loads(buf, 0, &error);
		if (!line)
			ck_abort_msg("seed 1, name %u: %s: %s", i, error.text, buf);
		json_decref(line);
	}
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("record");
	TCase *tcase = tcase_create("record");

	tcase_add_test(tcase, golden);
	tcase_add_test(tcase, cut);
	tcase_add_loop_test(tcase, name, 0, VMPT_ARRAY_SIZE(names));
	tcase_add_test(tcase, extremes);
	tcase_add_test(test_random_case(suite), random_names);
	suite_add_tcase(suite, tcase);
	return suite;
}
