// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* All 65,536 keys of both tables of the fast source against vmpt_pt_decode(). */
#include <stdlib.h>

#include "decoder/pt/fast-table.h"
#include "tests/decoder/streams.h"

/* Complete a packet whose first two bytes are given. */
static void fill(u8 *buf, size_t n, u8 b0, u8 b1, struct test_rng *rng)
{
	size_t i;

	for (i = 0; i < n; i++)
		buf[i] = (u8)test_random(rng);
	buf[0] = b0;
	buf[1] = b1;
	if (b0 != 0x02)
		return;
	if (b1 == 0xc3)
		buf[2] = 0x88;
	for (i = 0; b1 == 0x82 && i < 16; i++)
		buf[i] = i & 1 ? 0x82 : 0x02;
}

START_TEST(every_index_key)
{
	const struct vmpt_index_table *t = &vmpt_index_table;
	struct test_rng rng = { 1 };
	struct vmpt_pt_packet a, b;
	unsigned int key, step, i, size, kind;
	u8 buf[40];
	int err;

	for (key = 0; key < 65536; key++) {
		step = t->step[key];
		for (i = 0; i < 4; i++) {
			fill(buf, sizeof(buf), (u8)key, (u8)(key >> 8), &rng);
			err = vmpt_pt_decode(&a, buf, sizeof(buf), 0);
			if (!step) {
				must(err || a.kind == VMPT_PT_BBP ||
					     (a.kind == VMPT_PT_CYC && a.size > 2),
				     "key %04x", key);
				continue;
			}
			must(!err, "key %04x", key);
			must(!(step & VMPT_STEP_TOKEN) ==
				     !(vmpt_token_wanted(&a) || a.kind == VMPT_PT_MNT),
			     "key %04x", key);
			kind = a.kind;
			if (kind == VMPT_PT_PSB || kind == VMPT_PT_MNT)
				kind |= VMPT_KIND_LONG;
			if (kind == (VMPT_PT_MNT | VMPT_KIND_LONG))
				kind |= VMPT_KIND_SILENT;
			if (step & VMPT_STEP_TOKEN)
				must(t->kind[vmpt_kind_key(buf)] == kind, "key %04x", key);
			size = a.size;
			if (size != (step & VMPT_STEP_SIZE)) {
				must(size == 1, "key %04x", key);
				err = vmpt_pt_decode(&b, buf + 1, sizeof(buf) - 1, 0);
				must(!err && !vmpt_token_wanted(&b), "key %04x", key);
				size += b.size;
			}
			must(size == (step & VMPT_STEP_SIZE), "key %04x", key);
		}
	}
}
END_TEST

START_TEST(every_packet_key)
{
	const struct vmpt_packet_table *t = &vmpt_packet_table;
	struct test_rng rng = { 2 };
	struct vmpt_pt_packet a;
	unsigned int key, step, row, i;
	u8 buf[40];
	int err;

	for (key = 0; key < 65536; key++) {
		step = t->step[key];
		row = step >> 8;
		for (i = 0; i < 4; i++) {
			fill(buf, sizeof(buf), (u8)(key >> 8), (u8)key, &rng);
			must(vmpt_packet_key(buf) == key, "key %04x", key);
			err = vmpt_pt_decode(&a, buf, sizeof(buf), 0);
			if (!(step & VMPT_STEP_SIZE)) {
				must(err || a.kind == VMPT_PT_BBP ||
					     (a.kind == VMPT_PT_CYC && a.size > 2),
				     "key %04x", key);
				must(!(step & VMPT_STEP_TOKEN), "key %04x", key);
				continue;
			}
			must(!err, "key %04x", key);
			must(a.size == (step & VMPT_STEP_SIZE), "key %04x", key);
			if (a.kind == VMPT_PT_TNT_8 || a.kind == VMPT_PT_PAD) {
				must(row == VMPT_ROW_RUN, "key %04x", key);
				must(!(step & VMPT_STEP_TOKEN), "key %04x", key);
				continue;
			}
			must(step & VMPT_STEP_TOKEN, "key %04x", key);
			if (a.kind == VMPT_PT_EVD) {
				must(row == VMPT_ROW_EVD, "key %04x", key);
				continue;
			}
			must(row >= VMPT_ROW_DYNAMIC, "key %04x", key);
			must(row < VMPT_ROWS, "key %04x", key);
			must(t->rows[row].size == a.size, "key %04x", key);
			must((t->rows[row].meta >> 48 & 0xff) == a.kind, "key %04x", key);
		}
	}
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/fast-table");
	TCase *t = tcase_create("fast-table");

	tcase_add_test(t, every_index_key);
	tcase_add_test(t, every_packet_key);
	suite_add_tcase(s, t);
	return s;
}
