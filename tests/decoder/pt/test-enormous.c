// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A stream of more than 4 GiB: nothing in the decoder may count bytes in 32 bits. Its
 * middle is padding that takes no memory: pages that are never written.
 */
#include <sys/mman.h>

#include "decoder/pt/tracker.h"
#include "tests/decoder/notation.h"
#include "tests/support/support.h"

#define SIZE   (4608ULL << 20)
#define SECOND (SIZE - 4096) /* place of the second PSB+ */

static u8 *bytes;
static struct vmpt_stream stream;

static void put(u64 at, const char *text)
{
	static struct notation n;

	notation_read(&n, text);
	memcpy(bytes + at, n.bytes, n.size);
}

static void setup(void)
{
	bytes = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (bytes == MAP_FAILED) {
		bytes = NULL;
		return;
	}
	/* Fault every 2 MiB, not every 4 KiB: those took most of the time. */
	madvise(bytes, SIZE, MADV_HUGEPAGE);
	put(0, "psb pip:1000 vmcs:a000 psbend");
	put(SECOND, "psb pip:2000:nr vmcs:a000 psbend pge:8000 tnt:T");
	stream = (struct vmpt_stream){ .data = bytes, .size = SIZE, .tid = -1 };
}

static void teardown(void)
{
	if (bytes)
		munmap(bytes, SIZE);
}

START_TEST(slices_over_4_gib)
{
	struct vmpt_splitter *split;
	struct vmpt_slice s;

	if (!bytes) {
		test_skip("no address space of 4.5 GiB here");
		return;
	}
	ck_assert_int_eq(vmpt_splitter_open(&split, &stream, NULL), 0);
	ck_assert_int_eq(vmpt_split_next(split, &s), 1);
	ck_assert_uint_eq(s.offset, 0);
	ck_assert_uint_eq(s.size, SECOND);
	ck_assert_uint_eq(s.owner.kind, VMPT_OWNER_HOST);
	ck_assert_int_eq(vmpt_split_next(split, &s), 1);
	ck_assert_uint_eq(s.offset, SECOND);
	ck_assert_uint_eq(s.size, SIZE - SECOND);
	ck_assert_uint_eq(s.owner.vmcs, 0xa000);
	ck_assert_int_eq(vmpt_split_next(split, &s), 0);
	vmpt_splitter_close(split);
}
END_TEST

START_TEST(packets_over_4_gib)
{
	struct vmpt_decoder *d;
	struct vmpt_batch b;
	u64 covered = 0, last_psb = 0, losses = 0;
	size_t i;
	int ret;

	if (!bytes) {
		test_skip("no address space of 4.5 GiB here");
		return;
	}
	ck_assert_int_eq(vmpt_decoder_open(&d, &stream, NULL), 0);
	while ((ret = vmpt_batch_next(d, &b)) > 0) {
		for (i = 0; i < b.count; i++) {
			covered += b.items[i].size;
			losses += b.items[i].kind == VMPT_ITEM_LOSS;
			if (b.items[i].kind == VMPT_PT_PSB)
				last_psb = b.base + b.items[i].offset;
		}
	}
	ck_assert_int_eq(ret, 0);
	ck_assert_uint_eq(covered, SIZE);
	ck_assert_uint_eq(losses, 0);
	ck_assert_uint_eq(last_psb, SECOND);
	vmpt_decoder_close(d);
}
END_TEST

/* A5: a pause whose padding is as long as 32 bits can count, and no longer. */
START_TEST(a5_a_pause_of_4_gib)
{
	if (!bytes) {
		test_skip("no address space of 4.5 GiB here");
		return;
	}
	put(4096 + (1ULL << 32), "pge:8000");
	ck_assert(vmpt_pause_scan(bytes, 4096, SIZE));
}
END_TEST

/* No PSB for 4.5 GiB: one loss, and the packets after it. */
START_TEST(a_loss_over_4_gib)
{
	struct vmpt_splitter *split;
	struct vmpt_slice s;

	if (!bytes) {
		test_skip("no address space of 4.5 GiB here");
		return;
	}
	bytes[0] = 0x05;
	ck_assert_int_eq(vmpt_splitter_open(&split, &stream, NULL), 0);
	ck_assert_int_eq(vmpt_split_next(split, &s), 1);
	ck_assert_uint_eq(s.begin, VMPT_BEGIN_LOSS);
	ck_assert_uint_eq(s.size, SECOND);
	ck_assert_int_eq(vmpt_split_next(split, &s), 1);
	ck_assert_uint_eq(s.owner.vmcs, 0xa000);
	vmpt_splitter_close(split);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/enormous");
	TCase *t = tcase_create("over 4 GiB");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, slices_over_4_gib);
	tcase_add_test(t, a5_a_pause_of_4_gib);
	suite_add_tcase(s, t);
	t = test_long_case(s);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, packets_over_4_gib, 0, test_rounds(1, 0));
	tcase_add_loop_test(t, a_loss_over_4_gib, 0, test_rounds(1, 0));
	return s;
}
