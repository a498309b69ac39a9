// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The generator's code and trace against libipt's instruction decoder: it must walk exactly the
 * instructions that the truth lists as executed, one after the other, also where RETs are
 * compressed across VM exits.
 */
#include "tests/support/support.h"
#include "tests/tracegen/flow.h"

/* Not psb-fup: libipt 2.0.5 accepts no TIP.PGE after a PSB+ with a FUP. */
static const char *const scripts[] = {
	"one-owner",	  "nested-calls", "ret-compressed", "host-unbalanced",
	"mode-while-out", "ip-filter",	  "vmptrld-alone",  "group-orders",
	"host-only",	  "guest-only",	  "pgd-then-psb",   "context",
	"cr3-filter",	  "cpus",	  "timing",	    "clocks",
	"concealed",	  "demo",
};

START_TEST(flow)
{
	const struct tracegen_options options = { .insns = true };
	const struct tracegen_stream *s;
	struct tracegen *g;
	char path[4096];
	size_t i;

	snprintf(path, sizeof(path), "%s/%s.trace", test_source("tests/tracegen/scripts"),
		 scripts[_i]);
	g = tracegen_run_file(path, &options);
	ck_assert_ptr_nonnull(g);
	ck_assert_msg(!tracegen_error(g), "%s", tracegen_error(g));
	for (i = 0; i < tracegen_streams(g); i++) {
		s = tracegen_stream(g, i);
		flow_check(scripts[_i], g, s, FLOW_ALL_OWNERS, s->data, s->size);
	}
	tracegen_free(g);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("flow");
	TCase *tc = tcase_create("flow");

	tcase_add_loop_test(tc, flow, 0, (int)VMPT_ARRAY_SIZE(scripts));
	suite_add_tcase(suite, tc);
	return suite;
}
