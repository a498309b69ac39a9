// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/state.c: every way in which the bytes can be invalid. The vCPU is not changed then, and
 * the refusal names the field.
 */
#include <stdlib.h>
#include <time.h>

#include "tests/support/support.h"
#include "tests/vmm-lib/state-rig.h"

START_TEST(truncated)
{
	struct vmpt_vcpu vcpu;
	struct vmpt_caps shown;
	struct vmpt_refusal why;
	u8 buf[SAVED_MAX];
	size_t n, len;

	state_make_full(&vcpu, &shown);
	state_fill(&vcpu);
	n = state_save(&vcpu, buf);
	state_make(&vcpu, &shown);
	for (len = 0; len < n; len++) {
		/* Memory of exactly that length: the sanitizer detects a read beyond it. */
		u8 *cut = malloc(len ? len : 1);

		memcpy(cut, buf, len);
		ck_assert_int_eq(state_try(&vcpu, cut, len, &why), -VMPT_E_TRUNCATED);
		free(cut);
	}
	/* Bytes after the state are not part of it. */
	buf[n] = 0xff;
	ck_assert_int_eq(state_try(&vcpu, buf, n + 1, &why), 0);
}
END_TEST

/* Every bit of every byte inverted. */
START_TEST(corrupted)
{
	struct vmpt_vcpu vcpu, fresh;
	struct vmpt_caps shown;
	struct vmpt_refusal why;
	u8 buf[SAVED_MAX];
	size_t n, bit, taken = 0;

	state_make_full(&fresh, &shown);
	vcpu = fresh;
	state_fill(&vcpu);
	n = state_save(&vcpu, buf);
	for (bit = 0; bit < 8 * n; bit++) {
		buf[bit / 8] ^= (u8)(1u << bit % 8);
		vcpu = fresh;
		if (!state_try(&vcpu, buf, n, &why)) {
			state_check_sane(&vcpu, "bit", bit);
			state_check_stable(&vcpu, &shown, "bit", bit);
			taken++;
		}
		buf[bit / 8] ^= (u8)(1u << bit % 8);
	}
	/* header and capabilities: 52 bytes in which no bit may differ */
	ck_assert_uint_gt(taken, 500);
	ck_assert_uint_lt(taken, 8 * (n - 52));
}
END_TEST

/* ---- one thing wrong a row ---- */

static const struct {
	u16 at;
	u8 bytes;
	u64 value;
	int err;
	const char *field;
} wrongs[] = {
	/* header */
	{ 0, 4, 0x54504d57, -VMPT_E_FORMAT, "magic of the state" },
	{ 4, 2, 0, -VMPT_E_FORMAT, "header of the state" },
	{ 4, 2, 2, -VMPT_E_UNSUPPORTED, "version of the state" },
	{ 4, 2, 0xffff, -VMPT_E_UNSUPPORTED, "version of the state" },
	{ 6, 2, 1, -VMPT_E_FORMAT, "header of the state" },
	{ 8, 4, 11, -VMPT_E_FORMAT, "header of the state" },
	{ 8, 4, 0xffffffff, -VMPT_E_TRUNCATED, "size of the state" },
	{ 8, 4, 12, -VMPT_E_FORMAT, "fields of the state" },
	{ 8, 4, 14, -VMPT_E_FORMAT, "field of the state" },
	{ 8, 4, 52, -VMPT_E_FORMAT, "fields of the state" },
	{ 8, 4, 51, -VMPT_E_FORMAT, "field of the state" },
	/* fields: unknown and required, length, duplicate, a flag of 2 */
	{ CAPS_AT, 2, 0x8007, -VMPT_E_UNSUPPORTED, "field of the state" },
	{ CAPS_AT, 2, 0x0001, -VMPT_E_FORMAT, "fields of the state" },
	{ CAPS_AT + 2, 2, 35, -VMPT_E_FORMAT, "field of the state" },
	{ CAPS_AT + 2, 2, 37, -VMPT_E_FORMAT, "field of the state" },
	{ MSRS_AT + 2, 2, 155, -VMPT_E_FORMAT, "field of the state" },
	{ MSRS_AT + 2, 2, 0xffff, -VMPT_E_FORMAT, "field of the state" },
	{ MODES_AT, 2, 0x8003, -VMPT_E_FORMAT, "field of the state" },
	{ EVENTS_AT + 2, 2, 4, -VMPT_E_FORMAT, "field of the state" },
	{ PMI_AT + 4, 1, 2, -VMPT_E_FORMAT, "field of the state" },
	{ MODES_AT + 7, 1, 255, -VMPT_E_FORMAT, "field of the state" },
	{ SCAN_AT + 4 + 34, 1, 2, -VMPT_E_FORMAT, "field of the state" },
	/* MSRs: unknown, duplicate, and each against its rules */
	{ MSRS_AT + 4, 4, 0x573, -VMPT_E_FORMAT, "field of the state" },
	{ MSRS_AT + 4, 4, 0x561, -VMPT_E_FORMAT, "field of the state" },
	{ MSRS_AT + 8, 8, 1ULL << 46, -VMPT_E_INVAL, "IA32_RTIT_OUTPUT_BASE" },
	{ MSRS_AT + 8, 8, 0x40, -VMPT_E_INVAL, "IA32_RTIT_OUTPUT_BASE" },
	{ MSRS_AT + 32, 8, VMPT_CTL_FABRIC_EN, -VMPT_E_INVAL, "IA32_RTIT_CTL" },
	{ MSRS_AT + 32, 8, 3ULL << 32, -VMPT_E_INVAL, "IA32_RTIT_CTL" },
	{ MSRS_AT + 32, 8, 1ULL << 57, -VMPT_E_INVAL, "IA32_RTIT_CTL" },
	{ MSRS_AT + 44, 8, 8, -VMPT_E_INVAL, "IA32_RTIT_STATUS" },
	{ MSRS_AT + 44, 8, 1ULL << 49, -VMPT_E_INVAL, "IA32_RTIT_STATUS" },
	{ MSRS_AT + 56, 8, 0x10, -VMPT_E_INVAL, "IA32_RTIT_CR3_MATCH" },
	{ MSRS_AT + 68, 8, 1ULL << 47, -VMPT_E_INVAL, "IA32_RTIT_ADDR0_A" },
	{ MSRS_AT + 80, 8, 1ULL << 47, -VMPT_E_INVAL, "IA32_RTIT_ADDR0_B" },
	{ MSRS_AT + 92, 8, 1ULL << 47, -VMPT_E_INVAL, "IA32_RTIT_ADDR1_A" },
	{ MSRS_AT + 104, 8, 1ULL << 47, -VMPT_E_INVAL, "IA32_RTIT_ADDR1_B" },
	{ MSRS_AT + 116, 8, 1ULL << 47, -VMPT_E_INVAL, "IA32_RTIT_ADDR2_A" },
	{ MSRS_AT + 128, 8, 1ULL << 47, -VMPT_E_INVAL, "IA32_RTIT_ADDR2_B" },
	{ MSRS_AT + 140, 8, 1ULL << 47, -VMPT_E_INVAL, "IA32_RTIT_ADDR3_A" },
	{ MSRS_AT + 152, 8, 1ULL << 63, -VMPT_E_INVAL, "IA32_RTIT_ADDR3_B" },
	/* PMI: seen and again where the bit is 0 */
	{ PMI_AT + 4, 1, 0, -VMPT_E_INVAL, "IA32_PERF_GLOBAL_STATUS[55]" },
	{ PMI_AT + 4, 4, 0x00010000, -VMPT_E_INVAL, "IA32_PERF_GLOBAL_STATUS[55]" },
	/* modes: TraceEn in VMX operation; one saved by an SMI that did not happen */
	{ MODES_AT + 4, 4, 0x00000001, -VMPT_E_INVAL, "IA32_RTIT_CTL" },
	{ MODES_AT + 4, 4, 0x00010000, -VMPT_E_INVAL, "TraceEn saved by SMI" },
	{ EVENTS_AT + 4, 4, 0x10, -VMPT_E_INVAL, "events" },
	{ EVENTS_AT + 8, 1, VMPT_OUTPUT_ERRORS, -VMPT_E_INVAL, "reason of STATUS.Error" },
	/* TSC adjustment */
	{ SCAN_AT + 4, 8, 0x41, -VMPT_E_INVAL, "position of TSC adjustment" },
	{ SCAN_AT + 4, 8, 1ULL << 46, -VMPT_E_INVAL, "position of TSC adjustment" },
	{ SCAN_AT + 20, 8, 0, -VMPT_E_INVAL, "cut packet of TSC adjustment" },	    /* PAD: whole */
	{ SCAN_AT + 20, 8, 0xff02, -VMPT_E_INVAL, "cut packet of TSC adjustment" }, /* none */
	{ SCAN_AT + 36, 1, 16, -VMPT_E_INVAL, "cut packet of TSC adjustment" },
	{ SCAN_AT + 36, 1, 4, -VMPT_E_INVAL, "cut packet of TSC adjustment" }, /* less than held */
	{ SCAN_AT + 37, 1, 0x3f, -VMPT_E_INVAL, "block of TSC adjustment" },
	{ SCAN_AT + 37, 1, 0x80, -VMPT_E_INVAL, "block of TSC adjustment" },
	{ SCAN_AT + 41, 8, 1ULL << 56, -VMPT_E_INVAL, "TSC of TSC adjustment" },
	{ SCAN_AT + 81, 8, 1ULL << 46, -VMPT_E_INVAL, "cut packet of TSC adjustment" },
	{ SCAN_AT + 89, 1, 255, -VMPT_E_INVAL, "cut packet of TSC adjustment" },
	{ SCAN_AT + 90, 8, ~0ULL, -VMPT_E_INVAL, "cut packet of TSC adjustment" },
	/* valid: another legal value; unknown and optional; fields in another order */
	{ MSRS_AT + 32, 8, VMPT_CTL_USER, 0, NULL },
	{ EVENTS_AT, 2, 0x7f06, 0, NULL },
	{ SCAN_AT, 2, 0x0100, 0, NULL },
	{ SCAN_AT + 4 + 34, 1, 1, 0, NULL },
};

START_TEST(wrong)
{
	u8 buf[sizeof(state_golden)];
	struct vmpt_vcpu vcpu;
	struct vmpt_caps shown;
	struct vmpt_refusal why;
	unsigned int i;
	int err;

	state_make_full(&vcpu, &shown);
	memcpy(buf, state_golden, sizeof(buf));
	for (i = 0; i < wrongs[_i].bytes; i++)
		buf[wrongs[_i].at + i] = (u8)(wrongs[_i].value >> 8 * i);
	err = state_try(&vcpu, buf, sizeof(buf), &why);
	ck_assert_msg(err == wrongs[_i].err, "%d, %s: %s", err, why.field, why.rule);
	if (err)
		ck_assert_str_eq(why.field, wrongs[_i].field);
	ck_assert_int_eq(vmpt_vcpu_restore(&vcpu, buf, sizeof(buf), NULL), err);
}
END_TEST

/* Some bytes of a valid state are changed, or all are. */
static void random_bytes(u64 seed)
{
	struct test_rng rng = { seed };
	struct vmpt_vcpu vcpu;
	struct vmpt_caps shown;
	struct vmpt_refusal why;
	u8 buf[sizeof(state_golden)];
	unsigned int i, n = 1 + (unsigned int)(test_random(&rng) % 4);

	state_make_full(&vcpu, &shown);
	memcpy(buf, state_golden, sizeof(buf));
	for (i = 0; i < n; i++)
		buf[CAPS_AT + test_random(&rng) % (sizeof(buf) - CAPS_AT)] = (u8)test_random(&rng);
	if (test_random(&rng) % 8 == 0)
		for (i = MSRS_AT + 4; i < sizeof(buf); i++)
			buf[i] = test_random(&rng) % 2 ? (u8)test_random(&rng) : buf[i];
	if (!state_try(&vcpu, buf, sizeof(buf), &why)) {
		state_check_sane(&vcpu, "seed", seed);
		state_check_stable(&vcpu, &shown, "seed", seed);
	}
}

START_TEST(random_changes)
{
	const char *soak = getenv("VMPT_SOAK");
	time_t end = time(NULL) + (soak ? atoi(soak) : 0);
	u64 seed;

	for (seed = 1; seed <= 20000 || (soak && time(NULL) < end); seed++)
		random_bytes(seed);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("state-bad");
	TCase *tcase = tcase_create("state-bad");

	tcase_add_test(tcase, truncated);
	tcase_add_test(tcase, corrupted);
	tcase_add_loop_test(tcase, wrong, 0, VMPT_ARRAY_SIZE(wrongs));
	tcase_add_test(test_random_case(suite), random_changes);
	suite_add_tcase(suite, tcase);
	return suite;
}
