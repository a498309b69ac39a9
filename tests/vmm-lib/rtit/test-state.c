// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmm-lib/rtit/state.c: a vCPU as bytes, and hostile bytes. */
#include "tests/vmm-lib/rtit/rig.h"

static struct rig rig;
static u8 buf[VMPT_RTIT_STATE_MAX + 64];
static int size;

/* Each register with a different value, by the table of 3.3. */
static const struct {
	u32 msr;
	u64 value;
} set[] = {
	{ 0x760, 0x111111111111 },
	{ 0x761, 0x222222222222 },
	{ 0x762, 0x333333333333 },
	{ 0x763, 0x444444444444 },
	{ 0x769, 0x9 },
	{ 0x76b, 0x123456 },
	{ 0x76c, 0x2a },
	{ 0x76e, 0x1fedcba98 },
	{ 0x76f, 0x1555566667777 },
	{ 0x770, 0xabcdef000 },
	{ 0x771, 0xffff },
	{ 0x772, 0x321 },
	{ 0x777, 0x987654320 },
	{ 0x77c, 0x31234 },
	{ 0x77d, 0x2b },
	{ 0x768, 0xfd8d },
};

static void setup(void)
{
	size_t i;

	rig_init(&rig, VMPT_RTIT_CONTIGUOUS, 0);
	for (i = 0; i < VMPT_ARRAY_SIZE(set); i++)
		rig_wr(&rig, set[i].msr, set[i].value);
	rig.v.events = VMPT_RTIT_EVENT_LOST;
	rig.v.lost = 0x1122334455;
	size = vmpt_rtit_vcpu_save(&rig.v, buf, sizeof(buf));
	ck_assert_int_gt(size, 0);
	ck_assert_int_le(size, VMPT_RTIT_STATE_MAX);
	ck_assert_int_eq(vmpt_rtit_vcpu_reset(&rig.v), 0);
}

static void teardown(void)
{
	rig_free(&rig);
}

/* Header 12; MSRs 4 + 16 * 12; flags 4 + 1; events 4 + 12 */
#define MSRS   (12 + 4)
#define FLAGS  (12 + 196)
#define EVENTS (FLAGS + 5)
#define TOTAL  (EVENTS + 16)

START_TEST(layout)
{
	static const u8 head[] = { 'V',	 'M',  'R',  'T',  1,	 0,    0,    0, TOTAL, 0,
				   0,	 0,    1,    0x80, 192,	 0,    0x60, 7, 0,     0,
				   0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0,    0 };

	ck_assert_int_eq(size, TOTAL);
	ck_assert(!memcmp(buf, head, sizeof(head)));
	ck_assert(!memcmp(buf + FLAGS,
			  "\x02\x80\x01\x00\x01\x03\x00\x0c\x00\x01\x00\x00\x00"
			  "\x55\x44\x33\x22\x11\x00\x00\x00",
			  21));
}
END_TEST

START_TEST(round_trip)
{
	u8 again[sizeof(buf)];
	u64 value;
	size_t i;

	/* RESET must be undone too: CTL was read. */
	ck_assert_int_eq(vmpt_rtit_vcpu_rdmsr(&rig.v, 0x760, false, &value), VMPT_GP);
	ck_assert_int_eq(vmpt_rtit_vcpu_restore(&rig.v, buf, (size_t)size, NULL), 0);
	for (i = 0; i < VMPT_ARRAY_SIZE(set); i++)
		ck_assert_msg(rig_rd(&rig, set[i].msr) ==
				      (set[i].msr == 0x769 ? 0xd : set[i].value),
			      "%x", set[i].msr);
	ck_assert_uint_eq(rig.v.events, VMPT_RTIT_EVENT_LOST);
	ck_assert_uint_eq(rig.v.lost, 0x1122334455);
	memset(again, 0, sizeof(again));
	ck_assert_int_eq(vmpt_rtit_vcpu_save(&rig.v, again, sizeof(again)), size);
	ck_assert(!memcmp(again, buf, (size_t)size));
}
END_TEST

/* A guest that never read CTL must still do so on the target. */
START_TEST(unread)
{
	u64 value;

	size = vmpt_rtit_vcpu_save(&rig.v, buf, sizeof(buf));
	rig_again(&rig);
	ck_assert_int_eq(vmpt_rtit_vcpu_restore(&rig.v, buf, (size_t)size, NULL), 0);
	ck_assert_int_eq(vmpt_rtit_vcpu_rdmsr(&rig.v, 0x760, false, &value), VMPT_GP);
	ck_assert_uint_eq(rig_rd(&rig, 0x768), 0);
}
END_TEST

START_TEST(space)
{
	int n;

	ck_assert_int_eq(vmpt_rtit_vcpu_restore(&rig.v, buf, (size_t)size, NULL), 0);
	for (n = 0; n < size; n++) {
		memset(buf, 0xee, sizeof(buf));
		ck_assert_int_eq(vmpt_rtit_vcpu_save(&rig.v, buf, (size_t)n), -VMPT_E_SPACE);
		ck_assert_uint_eq(buf[n], 0xee);
	}
}
END_TEST

static void refused(int err, const char *field)
{
	struct vmpt_rtit_vcpu before = rig.v;
	struct vmpt_refusal why = { 0 };

	ck_assert_int_eq(vmpt_rtit_vcpu_restore(&rig.v, buf, (size_t)size, &why), -err);
	ck_assert_str_eq(why.field, field);
	ck_assert(why.rule != NULL);
	ck_assert_int_eq(vmpt_rtit_vcpu_restore(&rig.v, buf, (size_t)size, NULL), -err);
	ck_assert(rig_same(&before, &rig.v, sizeof(before)));
}

START_TEST(header)
{
	buf[0] = 'X';
	refused(VMPT_E_FORMAT, "magic of the state");
	buf[0] = 'V';
	buf[4] = 2;
	refused(VMPT_E_UNSUPPORTED, "version of the state");
	buf[4] = 0;
	refused(VMPT_E_FORMAT, "header of the state");
	buf[4] = 1;
	buf[6] = 1;
	refused(VMPT_E_FORMAT, "header of the state");
	buf[6] = 0;
	buf[8]++;
	refused(VMPT_E_TRUNCATED, "size of the state");
	buf[8] = 11;
	refused(VMPT_E_FORMAT, "header of the state");
	size = 11;
	refused(VMPT_E_TRUNCATED, "header of the state");
}
END_TEST

START_TEST(cut)
{
	int whole = size;

	for (size = 12; size < whole; size++) {
		struct vmpt_refusal why = { 0 };
		int err;

		buf[8] = (u8)size;
		err = vmpt_rtit_vcpu_restore(&rig.v, buf, (size_t)size, &why);
		/* Events may be left out. */
		if (size == EVENTS)
			ck_assert_int_eq(err, 0);
		else
			ck_assert_msg(err == -VMPT_E_FORMAT && why.field, "%d: %d", size, err);
	}
}
END_TEST

/* Each register: values that 3.3 does not allow. */
START_TEST(msr_rules)
{
	static const struct {
		u32 n; /* in the order of the table */
		u64 value;
		const char *field;
	} rows[] = {
		{ 4, 0x20, "RTIT_CTL" },
		{ 4, 0x10000, "RTIT_CTL" },
		{ 5, 0x10, "RTIT_STATUS" },
		{ 6, 0x400000, "RTIT_CNTP" },
		{ 7, 0x40, "RTIT_EVENTS" },
		{ 8, 1ULL << 33, "RTIT_LAST_LIP" },
		{ 9, 1ULL << 49, "RTIT_LAST_CALL_NLIP" },
		{ 10, 0x20, "RTIT_BASE_ADDR" },
		{ 10, 1ULL << 36, "RTIT_BASE_ADDR" },
		{ 11, 0x1f, "RTIT_LIMIT_MASK" },
		{ 11, 0x40003f, "RTIT_LIMIT_MASK" },
		{ 12, 0x400000, "RTIT_OFFSET" },
		{ 13, 1, "RTIT_CR3_MATCH" },
		{ 14, 0x4000, "RTIT_PKT_CNT" },
		{ 15, 0, "RTIT_TNT_BUFF" },
		{ 15, 0x80, "RTIT_TNT_BUFF" },
	};
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(rows); i++) {
		u8 *at = buf + MSRS + 12 * rows[i].n + 4, old[8];

		memcpy(old, at, 8);
		memcpy(at, &rows[i].value, 8);
		refused(VMPT_E_INVAL, rows[i].field);
		memcpy(at, old, 8);
	}
}
END_TEST

START_TEST(fields)
{
	buf[FLAGS + 4] = 2;
	refused(VMPT_E_FORMAT, "field of the state");
	buf[FLAGS + 4] = 0;
	refused(VMPT_E_INVAL, "RTIT_CTL was read");
	buf[FLAGS + 4] = 1;
	buf[EVENTS + 4] = 0x80;
	refused(VMPT_E_INVAL, "events");
	buf[EVENTS + 4] = 0;
	buf[EVENTS] = 9;
	ck_assert_int_eq(vmpt_rtit_vcpu_restore(&rig.v, buf, (size_t)size, NULL), 0);
	buf[EVENTS + 1] = 0x80;
	refused(VMPT_E_UNSUPPORTED, "field of the state");
	buf[EVENTS] = 2;
	refused(VMPT_E_FORMAT, "field of the state");
	buf[EVENTS] = 3;
	buf[EVENTS + 1] = 0;
	/* The first MSR twice, the second missing; one that is not an MSR. */
	buf[MSRS + 12] = 0x60;
	refused(VMPT_E_FORMAT, "field of the state");
	buf[MSRS + 12] = 0x64;
	refused(VMPT_E_FORMAT, "field of the state");
	/* A field that goes beyond the end */
	buf[14] = 0xff;
	refused(VMPT_E_FORMAT, "field of the state");
}
END_TEST

START_TEST(missing)
{
	/* Without LIP0: the field is 12 shorter. */
	memmove(buf + MSRS, buf + MSRS + 12, (size_t)(size - MSRS - 12));
	size -= 12;
	buf[8] = (u8)size;
	buf[14] -= 12;
	refused(VMPT_E_INVAL, "RTIT_LIP0");
	/* Without flags */
	memmove(buf + FLAGS - 12, buf + EVENTS - 12, 16);
	size -= 5;
	buf[8] = (u8)size;
	refused(VMPT_E_FORMAT, "fields of the state");
}
END_TEST

/* Waiting output is not included. */
START_TEST(waiting)
{
	rig_free(&rig);
	rig_init(&rig, VMPT_RTIT_BOUNCE, 4096);
	rig.config.on_unbacked = VMPT_ON_MEM_RETRY;
	rig_again(&rig);
	guest_set_kind(&rig.guest, 0x10, 1, VMPT_MEM_UNBACKED);
	rig_program(&rig, 0x10000, 0xffff, RIG_ON);
	ck_assert_int_eq(vmpt_rtit_vcpu_load(&rig.v), 0);
	ck_assert_int_eq(vmpt_rtit_vcpu_unload(&rig.v), -VMPT_E_RETRY);
	ck_assert(!rig.v.loaded);
	ck_assert_int_eq(vmpt_rtit_vcpu_save(&rig.v, buf, sizeof(buf)), -VMPT_E_STATE);
	guest_set_kind(&rig.guest, 0x10, 1, VMPT_MEM_OK);
	ck_assert_int_eq(vmpt_rtit_vcpu_sync(&rig.v), 0);
	ck_assert_int_eq(vmpt_rtit_vcpu_save(&rig.v, buf, sizeof(buf)), TOTAL);
	ck_assert_uint_eq(rig.v.regs.offset, 9);
}
END_TEST

/*
 * Output of the vCPU that was here before does not belong to the new one: its first sync copies
 * nothing.
 */
START_TEST(waited_before)
{
	rig_free(&rig);
	rig_init(&rig, VMPT_RTIT_BOUNCE, 4096);
	rig.config.on_unbacked = VMPT_ON_MEM_RETRY;
	rig_again(&rig);
	guest_set_kind(&rig.guest, 0x30, 1, VMPT_MEM_UNBACKED);
	rig_program(&rig, 0x30000, 0xfff, RIG_ON);
	ck_assert_int_eq(vmpt_rtit_vcpu_load(&rig.v), 0);
	ck_assert_int_eq(vmpt_rtit_vcpu_unload(&rig.v), -VMPT_E_RETRY);
	ck_assert_uint_eq(rig.v.used, 9);
	ck_assert_int_eq(vmpt_rtit_vcpu_restore(&rig.v, buf, (size_t)size, NULL), 0);
	rig.guest.writes = 0;
	ck_assert_int_eq(vmpt_rtit_vcpu_sync(&rig.v), 0);
	ck_assert_uint_eq(rig.guest.writes, 0);
	ck_assert_uint_eq(rig_rd(&rig, 0x772), 0x321);
	ck_assert_int_eq(vmpt_rtit_vcpu_save(&rig.v, buf, sizeof(buf)), size);
}
END_TEST

/* Any bytes changed: an error or a valid state, never anything else. */
START_TEST(random_bytes)
{
	struct test_rng rng = { 7 };
	u8 good[sizeof(buf)];
	int i, k, taken = 0;

	memcpy(good, buf, sizeof(buf));
	for (i = 0; i < 20000; i++) {
		memcpy(buf, good, sizeof(buf));
		for (k = (int)(test_random(&rng) % 4); k >= 0; k--)
			buf[test_random(&rng) % (u64)size] = (u8)test_random(&rng);
		if (vmpt_rtit_vcpu_restore(&rig.v, buf, (size_t)size, NULL))
			continue;
		taken++;
		ck_assert(rig.v.regs.tnt_buff && (rig.v.regs.limit_mask & 0x3f) == 0x3f);
		ck_assert(!(rig.v.regs.base_addr >> 36) && !(rig.v.regs.offset >> 22));
	}
	ck_assert_int_gt(taken, 100);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("rtit-state");
	TCase *tc = tcase_create("state");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, layout);
	tcase_add_test(tc, round_trip);
	tcase_add_test(tc, unread);
	tcase_add_test(tc, space);
	tcase_add_test(tc, header);
	tcase_add_test(tc, cut);
	tcase_add_test(tc, msr_rules);
	tcase_add_test(tc, fields);
	tcase_add_test(tc, missing);
	tcase_add_test(tc, waiting);
	tcase_add_test(tc, waited_before);
	tcase_add_test(tc, random_bytes);
	suite_add_tcase(suite, tc);
	return suite;
}
