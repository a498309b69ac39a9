// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmm-lib/caps.h */
#include "tests/support/support.h"
#include "tests/vmm-lib/guest.h"

START_TEST(policy_all)
{
	ck_assert_uint_eq(vmpt_policy_all.ranges_max, 4);
	ck_assert(!vmpt_policy_all.hide && !vmpt_policy_all.no_pt && !vmpt_policy_all.xsave);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("caps");
	TCase *tcase = tcase_create("caps");

	tcase_add_test(tcase, policy_all);
	suite_add_tcase(suite, tcase);
	return test_main(suite);
}
