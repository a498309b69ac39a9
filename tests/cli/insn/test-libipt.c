// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt insn --hash against libipt's instruction decoder, run here on the same bytes and pages. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/cli/cli-run.h"
#include "tests/decoder/ipt-flow.h"
#include "tests/support/support.h"

static void compare(const char *name)
{
	const struct pt_version version = pt_library_version();
	char file[64], dump[512], pt[512];
	struct ipt_flow flow;
	struct pt_image *image;
	u8 *addr, *bytes;
	const char *path;
	json_t *doc;
	size_t n, size;

	snprintf(file, sizeof(file), "%s.dump", name);
	path = test_data(file);
	if (!path)
		return;
	snprintf(dump, sizeof(dump), "%s", path);
	snprintf(file, sizeof(file), "%s.pt", name);
	snprintf(pt, sizeof(pt), "%s", test_data(file));
	snprintf(file, sizeof(file), "%s.addr", name);
	addr = test_read_file(test_data(file), &n);
	bytes = test_read_file(pt, &size);
	image = ipt_image_pages(dump, addr, n);
	ipt_flow_run(&flow, bytes, size, image);
	doc = run_json(vmpt("insn --hash --json -q --code=%s %s", test_data(file), pt));
	/* From 2.1 on it refuses a PSB+ with a FUP while PacketEn = 0, of which these have some. */
	if (flow.errors && (version.major > 2 || version.minor > 0)) {
		test_skip("libipt %u.%u: %llu errors in %s", version.major, version.minor,
			  (unsigned long long)flow.errors, name);
	} else {
		char hash[20];

		snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)flow.ordered);
		ck_assert_uint_eq(json_u64(doc, "total/instructions"), flow.instructions);
		ck_assert_str_eq(json_text(doc, "total/hash"), hash);
	}
	json_decref(doc);
	pt_image_free(image);
	free(addr);
	free(bytes);
}

START_TEST(two_vmcs)
{
	compare("guest-two-vmcs");
}
END_TEST

START_TEST(mruby)
{
	compare("guest-mruby");
}
END_TEST

START_TEST(unzip)
{
	compare("guest-unzip");
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("cli/insn-libipt");
	TCase *c = tcase_create("libipt");

	tcase_add_checked_fixture(c, cli_setup, cli_clean);
	tcase_set_timeout(c, 120);
	tcase_add_test(c, two_vmcs);
	tcase_add_test(c, mruby);
	tcase_add_test(c, unzip);
	suite_add_tcase(suite, c);
	return suite;
}
