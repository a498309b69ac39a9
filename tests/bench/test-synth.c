// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The synthetic stream of the benchmarks is what bench/synth.h promises: whole
 * and legal packets, all kinds, the mix, the PSBs; and libipt reads its variant.
 */
#include <stdlib.h>

#include "bench/synth.h"
#include "tests/bench/libipt-count.h"
#include "tests/support/support.h"

#define SIZE (1u << 20)

struct made {
	u8 *data;
	struct synth_counts counts;
};

static struct made make(u64 seed, bool libipt_kinds)
{
	struct synth_options options = { .seed = seed, .libipt_kinds = libipt_kinds };
	struct made m = { .data = malloc(SIZE) };

	ck_assert_ptr_nonnull(m.data);
	ck_assert_int_eq(synth_generate(m.data, SIZE, &options, &m.counts), 0);
	return m;
}

/* Kinds as vmpt_pt_decode() finds them. */
struct found {
	u64 packets, flagged;
	u64 kind[VMPT_PT_KINDS];
	u64 longest_without_psb;
};

static struct found decode(const u8 *data)
{
	struct found f = { 0 };
	struct vmpt_pt_packet pkt;
	unsigned int block = 0;
	size_t at = 0, psb = 0;

	while (at < SIZE) {
		ck_assert_int_eq(vmpt_pt_decode(&pkt, data + at, SIZE - at, block), 0);
		block = vmpt_pt_block_after(&pkt, block);
		f.packets++;
		f.kind[pkt.kind]++;
		f.flagged += pkt.flags & VMPT_PT_RESERVED;
		if (pkt.kind == VMPT_PT_PSB) {
			if (at - psb > f.longest_without_psb)
				f.longest_without_psb = at - psb;
			psb = at;
		}
		at += pkt.size;
	}
	return f;
}

START_TEST(test_decodes_to_its_counts)
{
	struct made m = make(7, _i);
	struct found f = decode(m.data);
	unsigned int k;

	ck_assert_uint_eq(f.packets, m.counts.packets);
	ck_assert_uint_eq(f.flagged, 0);
	for (k = 0; k < VMPT_PT_KINDS; k++)
		ck_assert_msg(f.kind[k] == m.counts.kind[k], "%s", vmpt_pt_name(k));
	ck_assert_uint_ge(f.longest_without_psb, SYNTH_PSB_DISTANCE);
	ck_assert_uint_lt(f.longest_without_psb, SYNTH_PSB_DISTANCE + SYNTH_EVENT_MAX);
	free(m.data);
}
END_TEST

static bool libipt_knows(unsigned int kind)
{
	return kind != VMPT_PT_CFE && kind != VMPT_PT_EVD && kind != VMPT_PT_BBP &&
	       kind != VMPT_PT_BIP && kind != VMPT_PT_BEP && kind != VMPT_PT_TRIG;
}

START_TEST(test_all_kinds)
{
	struct made m = make(1, _i);
	unsigned int k;

	for (k = 0; k < VMPT_PT_KINDS; k++)
		ck_assert_msg(!m.counts.kind[k] == (_i && !libipt_knows(k)), "%s", vmpt_pt_name(k));
	for (k = 0; k < 8; k++)
		ck_assert_msg(!m.counts.ipbytes[k] == (k == 5 || k == 7), "IPBytes %u", k);
	for (k = 1; k <= VMPT_PT_CYC_MAX; k++)
		ck_assert_msg(!m.counts.cyc_size[k] == (k > 4), "CYC of %u bytes", k);
	ck_assert_uint_gt(m.counts.entries, 0);
	ck_assert_uint_le(m.counts.exits, m.counts.entries);
	ck_assert_uint_le(m.counts.entries, m.counts.exits + 1);
	free(m.data);
}
END_TEST

static double percent(const struct synth_counts *c, unsigned int kind)
{
	return 100.0 * (double)c->kind[kind] / (double)c->packets;
}

START_TEST(test_mix)
{
	struct made m = make(3, false);

	ck_assert_double_ge(percent(&m.counts, VMPT_PT_TNT_8), 48);
	ck_assert_double_le(percent(&m.counts, VMPT_PT_TNT_8), 53);
	ck_assert_double_ge(percent(&m.counts, VMPT_PT_TIP), 13);
	ck_assert_double_le(percent(&m.counts, VMPT_PT_TIP), 17);
	ck_assert_double_ge(percent(&m.counts, VMPT_PT_CYC), 10);
	ck_assert_double_le(percent(&m.counts, VMPT_PT_CYC), 13);
	ck_assert_double_ge(percent(&m.counts, VMPT_PT_BIP), 1.5);
	ck_assert_double_ge(percent(&m.counts, VMPT_PT_PIP), 0.5);
	free(m.data);
}
END_TEST

START_TEST(test_same_seed_same_bytes)
{
	struct made a = make(5, false), b = make(5, false), c = make(6, false);

	ck_assert_int_eq(memcmp(a.data, b.data, SIZE), 0);
	ck_assert_int_ne(memcmp(a.data, c.data, SIZE), 0);
	free(a.data);
	free(b.data);
	free(c.data);
}
END_TEST

START_TEST(test_libipt_reads_it)
{
	struct made m = make(2, true);

	ck_assert_uint_eq(libipt_count(m.data, SIZE), m.counts.packets);
	free(m.data);
}
END_TEST

START_TEST(test_too_small)
{
	struct synth_options options = { .seed = 1 };
	struct synth_counts counts;
	u8 buf[SYNTH_EVENT_MAX];

	ck_assert_int_eq(synth_generate(buf, sizeof(buf) - 1, &options, &counts), -VMPT_E_SPACE);
	ck_assert_int_eq(synth_generate(buf, sizeof(buf), &options, &counts), 0);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("bench/synth");
	TCase *t = tcase_create("stream");

	tcase_add_loop_test(t, test_decodes_to_its_counts, 0, 2);
	tcase_add_loop_test(t, test_all_kinds, 0, 2);
	tcase_add_test(t, test_mix);
	tcase_add_test(t, test_same_seed_same_bytes);
	tcase_add_test(t, test_libipt_reads_it);
	tcase_add_test(t, test_too_small);
	suite_add_tcase(s, t);
	return s;
}
