// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * perf's own packet vectors, from the test in the package linux-source: the file
 * is compiled in here at test time, so that its table data[] can be walked.
 */
#include <stdio.h>

#include "tests/arch/perf-map.h"
#include "tests/arch/perf-tests.h"
#include "tests/support/support.h"

/* The few things that perf's file takes from perf's headers. */
#define pr_debug(...)  ((void)0)
#define __maybe_unused __attribute__((unused))
#define TEST_OK	       0
#define TEST_FAIL      (-1)
struct test_suite;
int test__intel_pt_pkt_decoder(struct test_suite *test, int subtest);

/* The file has a function of that name; Check has a macro. */
#undef fail
#include "perf-pkt-decoder-test.c"

START_TEST(perf_passes_its_own_vectors)
{
	ck_assert_int_eq(test__intel_pt_pkt_decoder(NULL, 0), TEST_OK);
}
END_TEST

START_TEST(we_pass_perfs_vectors)
{
	const struct test_data *d;
	struct vmpt_pt_packet p;
	struct perf_view view;
	unsigned int block;
	int n = 0;

	for (d = data; d->len; d++, n++) {
		block = perf_block_of(d->ctx);
		ck_assert_msg(!vmpt_pt_decode(&p, d->bytes, (size_t)d->len, block), "vector %d", n);
		perf_view_of(&view, &p, d->bytes, (size_t)d->len);
		ck_assert_msg(perf_view_is(&view, &d->packet, d->len),
			      "vector %d (%02x %02x): %s is type %d count %d payload %llx size %d",
			      n, d->bytes[0], d->bytes[1], vmpt_pt_name(p.kind), view.pkt.type,
			      view.pkt.count, (unsigned long long)view.pkt.payload, view.size);
		ck_assert_msg(perf_ctx_of(vmpt_pt_block_after(&p, block)) == d->new_ctx,
			      "vector %d: context", n);
		if (!d->ctx_unchanged)
			continue;
		for (block = VMPT_PT_BLOCK(0, 0); block <= VMPT_PT_BLOCK(1, 31); block++)
			ck_assert_uint_eq(vmpt_pt_block_after(&p, block), block);
	}
	printf("%d vectors\n", n);
	ck_assert_int_ge(n, 120);
}
END_TEST

TCase *perf_vectors_case(void)
{
	TCase *t = tcase_create("vectors");

	tcase_add_test(t, perf_passes_its_own_vectors);
	tcase_add_test(t, we_pass_perfs_vectors);
	return t;
}
