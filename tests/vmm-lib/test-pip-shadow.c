// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * PIPs of a guest whose output goes through a shadow ToPA: the library writes to the guest's memory
 * at the guest's position, the processor through the shadow at its own. In the guest's buffer the
 * two make one stream, in whatever order they wrote.
 */
#include <stdlib.h>

#include "tests/support/support.h"
#include "tests/vmm-lib/pip-bed.h"
#include "tests/vmm-lib/shadow-rig.h"

#define GUEST_PAGES 128u
#define REGIONS	    8u

struct stream {
	struct rig rig;
	struct test_rng rng;
	u64 gpa[REGIONS];
	u32 size[REGIONS];
	u32 regions, capacity;
	u8 *want; /* the buffer as it must be, in the guest's order */
	u64 at;	  /* bytes so far; % capacity: position of the next */
	u64 pips;
};

static void expect(struct stream *s, const u8 *bytes, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		s->want[s->at++ % s->capacity] = bytes[i];
}

/* Two tables in a ring; regions of 4 to 32 KiB, INT in some. */
static void make_tables(struct stream *s)
{
	static const u32 pages[REGIONS][2] = { { 16, 0 }, { 24, 3 }, { 18, 1 }, { 17, 0 },
					       { 64, 2 }, { 96, 3 }, { 40, 0 }, { 44, 2 } };
	u32 i;

	for (i = 0; i < REGIONS; i++) {
		u64 flags = i % 3 == 1 ? VMPT_TOPA_INT : 0;

		s->gpa[i] = (u64)pages[i][0] << 12;
		s->size[i] = 4096u << pages[i][1];
		s->capacity += s->size[i];
		rig_entry(&s->rig, i < 4 ? TABLE : TABLE2, i % 4,
			  s->gpa[i] | pages[i][1] << 6 | flags);
	}
	s->regions = REGIONS;
	rig_entry(&s->rig, TABLE, 4, TABLE2 | VMPT_TOPA_END);
	rig_entry(&s->rig, TABLE2, 4, TABLE | VMPT_TOPA_END);
	rig_at(&s->rig, TABLE, 0, 0);
}

static void make_range(struct stream *s)
{
	s->gpa[0] = 0x10000;
	s->size[0] = 0x10000;
	s->capacity = 0x10000;
	s->regions = 1;
	rig_range(&s->rig, 0x10000, 0xffff, 0);
}

static void a_pip(struct stream *s)
{
	struct vmpt_cr3_write w = { .new_cr3 = test_random(&s->rng) & 0xffffffffff000 };
	u8 bytes[PIP_SIZE];
	int ret;

	/* The guest's handler comes in time. */
	s->rig.vcpu.global_status = false;
	ret = vmpt_vcpu_cr3_write(&s->rig.vcpu, &w);
	if (ret != 1)
		ck_abort_msg("PIP %llu: %d", (unsigned long long)s->pips, ret);
	pip_bytes(bytes, w.new_cr3, true);
	expect(s, bytes, sizeof(bytes));
	s->pips++;
}

static void a_run(struct stream *s)
{
	u64 r = test_random(&s->rng);
	u8 bytes[3000];
	size_t n = r % 4 ? (r >> 8) % 64 : (r >> 8) % sizeof(bytes), i;

	for (i = 0; i < n; i++)
		bytes[i] = (u8)test_random(&s->rng);
	ck_assert_int_eq(rig_enter(&s->rig), 0);
	if (rig_trace(&s->rig, bytes, n))
		ck_abort_msg("bytes lost at %llu", (unsigned long long)s->at);
	ck_assert_int_eq(rig_exit(&s->rig), 0);
	expect(s, bytes, n);
}

/* The guest's position is that of byte number at. */
static void check_position(struct stream *s)
{
	const struct vmpt_pt_regs *regs = &s->rig.vcpu.regs;
	u64 offset = s->at % s->capacity, base = s->gpa[0], ptrs;
	u32 i = 0;

	while (offset >= s->size[i])
		offset -= s->size[i++];
	if (regs->ctl & VMPT_CTL_TOPA) {
		base = i < 4 ? TABLE : TABLE2;
		ptrs = offset << 32 | (i % 4) << 7 | 0x7f;
	} else {
		ptrs = offset << 32 | 0xffff;
	}
	if (regs->output_base != base || regs->output_mask_ptrs != ptrs)
		ck_abort_msg("at %llu: position %llx %llx", (unsigned long long)s->at,
			     (unsigned long long)regs->output_base,
			     (unsigned long long)regs->output_mask_ptrs);
}

static void check_buffer(struct stream *s)
{
	u64 size = 0;
	u32 i, j;
	u8 got[4096];

	for (i = 0; i < s->regions; size += s->size[i++]) {
		for (j = 0; j < s->size[i]; j += sizeof(got)) {
			guest_get(&s->rig.guest, s->gpa[i] + j, got, sizeof(got));
			if (memcmp(got, s->want + size + j, sizeof(got)))
				ck_abort_msg("region %u, page %u", i, j / 4096);
		}
	}
}

/* More than three times around the buffer. */
static void one_stream(u64 seed, bool range, u32 shadow_pages)
{
	struct stream *s = calloc(1, sizeof(*s));

	ck_assert_ptr_nonnull(s);
	s->rng.state = seed;
	rig_init(&s->rig, GUEST_PAGES, shadow_pages);
	s->rig.vcpu.regs.ctl |= VMPT_CTL_OS | VMPT_CTL_USER;
	if (range)
		make_range(s);
	else
		make_tables(s);
	guest_shuffle(&s->rig.guest, seed);
	s->want = calloc(1, s->capacity);
	ck_assert_ptr_nonnull(s->want);
	while (s->at < 3ULL * s->capacity + 1000) {
		if (test_random(&s->rng) % 3)
			a_pip(s);
		else
			a_run(s);
		check_position(s);
	}
	check_buffer(s);
	ck_assert_uint_eq(s->rig.strays, 0);
	ck_assert_uint_gt(s->pips, 100);
	free(s->want);
	rig_free(&s->rig);
	free(s);
}

START_TEST(one_stream_of_two)
{
	one_stream(1 + (u64)_i, _i % 3 == 0, _i % 2 ? 1 : 4);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("pip-shadow");
	TCase *tc = tcase_create("shadow");

	tcase_add_loop_test(tc, one_stream_of_two, 0, 12);
	suite_add_tcase(suite, tc);
	return suite;
}
