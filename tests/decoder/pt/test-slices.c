// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What a slice says of itself beside its owner: how it began, how sure its owner is, its times,
 * CR3s and doubts, and a loss's cause. Owners are as in test-tracker.c.
 */
#include "tests/decoder/notation.h"
#include "tests/support/support.h"

#define HOST_PSB "psb exec:64 pip:1000 vmcs:a000 cbr:8 psbend "
#define A_PSB	 "psb exec:64 pip:2000:nr vmcs:a000 cbr:8 psbend "
#define B_PSB	 "psb exec:64 pip:3000:nr vmcs:b000 cbr:8 psbend "

/* The first slice of @text whose owner is of @kind. */
static struct vmpt_slice slice_of(const char *text, unsigned int nth)
{
	static struct notation n;
	struct vmpt_splitter *split;
	struct vmpt_slice slice;
	unsigned int i;

	notation_read(&n, text);
	ck_assert_int_eq(vmpt_splitter_open(&split, &n.stream, NULL), 0);
	for (i = 0; i <= nth; i++)
		ck_assert_int_eq(vmpt_split_next(split, &slice), 1);
	vmpt_splitter_close(split);
	return slice;
}

START_TEST(entries_and_exits_are_given_by_nr)
{
	const char *t = HOST_PSB "pge:f000 pip:2000:nr tip:8000 fup:8004 pip:1000 tip:f000";

	ck_assert_uint_eq(slice_of(t, 0).begin, VMPT_BEGIN_PSB);
	ck_assert_uint_eq(slice_of(t, 1).begin, VMPT_BEGIN_ENTRY);
	ck_assert(slice_of(t, 1).by_group);
	ck_assert_uint_eq(slice_of(t, 2).begin, VMPT_BEGIN_EXIT);
}
END_TEST

/* A transition in a pause without doubt is an entry or an exit; a possible MOV CR3 is none. */
START_TEST(entries_and_exits_in_doubt)
{
	const char *pause =
		HOST_PSB "pge:f000 pgd:- pge:f100 pip:2000:nr tip:8000 pgd:- pge:8100 "
			 "fup:8200 pip:1000 tip:f000 pip:2000:nr pgd:- pip:1000 pge:f000";
	const char *lost = HOST_PSB "pge:f000 ovf fup:8000 pip:2000:nr tip:8000";
	const char *damage = HOST_PSB "raw:05 psb cbr:8 psbend pge:8100 pip:2000:nr tip:8000";

	ck_assert_uint_eq(slice_of(pause, 1).begin, VMPT_BEGIN_ENTRY);
	ck_assert_uint_eq(slice_of(pause, 2).begin, VMPT_BEGIN_EXIT);
	ck_assert_uint_eq(slice_of(pause, 3).begin, VMPT_BEGIN_ENTRY);
	ck_assert_uint_eq(slice_of(pause, 4).begin, VMPT_BEGIN_EXIT);
	ck_assert_uint_eq(slice_of(lost, 2).begin, VMPT_BEGIN_SWITCH);
	ck_assert_uint_eq(slice_of(damage, 3).begin, VMPT_BEGIN_SWITCH);
}
END_TEST

START_TEST(failed_entries_are_reported)
{
	ck_assert_uint_eq(
		slice_of(HOST_PSB "pge:f000 pip:2000:nr pip:1000 tip:f300", 0).failed_entries, 1);
	ck_assert_uint_eq(slice_of(HOST_PSB "pge:f000 pip:5000 tip:f300", 0).failed_entries, 0);
}
END_TEST

START_TEST(psb_with_pip_and_no_vmcs_is_flagged)
{
	ck_assert(slice_of("psb pip:2000 psbend tnt:T", 0).owner.concealed);
	ck_assert(!slice_of(HOST_PSB "tnt:T", 0).owner.concealed);
}
END_TEST

START_TEST(assumed_vmcs_makes_an_assumed_owner)
{
	ck_assert_uint_eq(
		slice_of(A_PSB "pge:8000 fup:8008 pgd:- pip:2000:nr pge:8008 tnt:T", 0).owner.sure,
		VMPT_ASSUMED);
	ck_assert_uint_eq(slice_of(A_PSB "pge:8000 tnt:T", 0).owner.sure, VMPT_KNOWN);
}
END_TEST

START_TEST(guest_only_can_be_said)
{
	/* A host PIP was seen: not guest-only, the VMCS stays known over TIP.PGD(). */
	const char *t = HOST_PSB "pge:f000 pip:2000:nr tip:8000 pgd:- pip:2000:nr pge:8000";
	struct vmpt_options yes = { .guest_only = VMPT_GUEST_ONLY_YES };
	struct vmpt_splitter *split;
	struct vmpt_slice s;
	static struct notation n;

	ck_assert_uint_eq(slice_of(t, 1).owner.sure, VMPT_KNOWN);
	notation_read(&n, t);
	ck_assert_int_eq(vmpt_splitter_open(&split, &n.stream, &yes), 0);
	ck_assert_int_eq(vmpt_split_next(split, &s), 1);
	ck_assert_int_eq(vmpt_split_next(split, &s), 1);
	ck_assert_uint_eq(s.owner.sure, VMPT_ASSUMED);
	vmpt_splitter_close(split);
}
END_TEST

START_TEST(facts_of_a_slice)
{
	const char *t = HOST_PSB "tsc:100 pge:f000 pip:5000 tnt:T tsc:200 pip:1000 tnt:T ovf "
				 "fup:f100 tsc:300 pip:6000 tnt:T";
	struct vmpt_slice s = slice_of(t, 0);

	ck_assert(s.has_tsc);
	ck_assert_uint_eq(s.first_tsc, 0x100);
	ck_assert_uint_eq(s.last_tsc, 0x300);
	ck_assert_uint_eq(s.cr3_count, 3);
	ck_assert_uint_eq(s.cr3[0], 0x1000);
	ck_assert_uint_eq(s.cr3[1], 0x5000);
	ck_assert_uint_eq(s.cr3[2], 0x6000);
	ck_assert_uint_eq(s.overflows, 1);
	ck_assert_uint_eq(s.doubts, 1);
}
END_TEST

/* CR3s are marked until the slice has no room for more, and again in the next slice. */
START_TEST(many_cr3s)
{
	const char *t = A_PSB A_PSB "pge:8000 pip:11000:nr tip:8000 pip:12000:nr tip:8000 "
				    "pip:13000:nr tip:8000 pip:12000:nr tip:8000 pip:14000:nr "
				    "tip:8000 pip:15000:nr tip:8000 pip:16000:nr tip:8000 "
				    "pip:17000:nr tip:8000 tnt:T " B_PSB B_PSB
				    "pge:8000 pip:18000:nr tip:8000 tnt:T pad*80";
	struct vmpt_slice a = slice_of(t, 0), b = slice_of(t, 1);

	ck_assert_uint_eq(a.cr3_count, VMPT_SLICE_CR3S + 1);
	ck_assert_uint_eq(a.cr3[0], 0x2000);
	ck_assert_uint_eq(a.cr3[3], 0x13000);
	ck_assert_uint_eq(a.cr3[4], 0x14000);
	ck_assert_uint_eq(a.cr3[5], 0x15000);
	ck_assert_uint_eq(b.cr3_count, 2);
	ck_assert_uint_eq(b.cr3[0], 0x3000);
	ck_assert_uint_eq(b.cr3[1], 0x18000);
}
END_TEST

/* Only Event Trace: the guest's TSC is right after the entry's FUP. */
START_TEST(clocks_part_at_a_cfe)
{
	const char *t = "psb pip:1000 vmcs:a000 psbend tsc:1000 cfe:VMENTRY:ip fup:f004 tsc:900000 "
			"mtc:1 evd:VMXR:1 cfe:VMEXIT:ip fup:8004 tsc:2000 mtc:2";
	struct vmpt_slice host = slice_of(t, 0), vm = slice_of(t, 1), back = slice_of(t, 2);

	ck_assert_uint_eq(host.last_tsc, 0x1000);
	ck_assert_uint_eq(vm.first_tsc, 0x900000);
	ck_assert_uint_eq(vm.last_tsc, 0x900000);
	ck_assert_uint_eq(back.first_tsc, 0x2000);
}
END_TEST

START_TEST(losses_name_their_cause)
{
	struct vmpt_slice s = slice_of("tnt:T " HOST_PSB, 0);

	ck_assert_uint_eq(s.begin, VMPT_BEGIN_LOSS);
	ck_assert_uint_eq(s.loss, VMPT_E_SYNC);
	ck_assert_uint_eq(s.size, 1);
	s = slice_of(HOST_PSB "raw:05 tnt:T", 1);
	ck_assert_uint_eq(s.loss, VMPT_E_OPCODE);
	ck_assert_uint_eq(s.size, 2);
	s = slice_of(HOST_PSB "raw:ad tnt:T", 1);
	ck_assert_uint_eq(s.loss, VMPT_E_IPBYTES);
	s = slice_of(HOST_PSB "raw:19", 1);
	ck_assert_uint_eq(s.loss, VMPT_E_TRUNCATED);
}
END_TEST

START_TEST(a_gap_makes_all_unknown)
{
	static struct vmpt_gap g;
	static struct notation n;
	struct vmpt_splitter *split;
	struct vmpt_slice s;

	notation_read(&n, HOST_PSB "pge:f000 tnt:T |vm:a000 " A_PSB "tnt:T");
	g.offset = n.slices[0].offset;
	n.stream.gaps = &g;
	n.stream.gap_count = 1;
	ck_assert_int_eq(vmpt_splitter_open(&split, &n.stream, NULL), 0);
	ck_assert_int_eq(vmpt_split_next(split, &s), 1);
	ck_assert_uint_eq(s.owner.kind, VMPT_OWNER_HOST);
	ck_assert_uint_eq(s.size, g.offset);
	ck_assert_int_eq(vmpt_split_next(split, &s), 1);
	ck_assert_uint_eq(s.begin, VMPT_BEGIN_LOSS);
	ck_assert_uint_eq(s.loss, VMPT_E_GAP);
	ck_assert_uint_eq(s.size, 0);
	ck_assert_int_eq(vmpt_split_next(split, &s), 1);
	ck_assert_uint_eq(s.owner.vmcs, 0xa000);
	ck_assert_int_eq(vmpt_split_next(split, &s), 0);
	vmpt_splitter_close(split);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/slices");
	TCase *t = tcase_create("slices");

	tcase_add_test(t, entries_and_exits_are_given_by_nr);
	tcase_add_test(t, entries_and_exits_in_doubt);
	tcase_add_test(t, failed_entries_are_reported);
	tcase_add_test(t, psb_with_pip_and_no_vmcs_is_flagged);
	tcase_add_test(t, assumed_vmcs_makes_an_assumed_owner);
	tcase_add_test(t, guest_only_can_be_said);
	tcase_add_test(t, facts_of_a_slice);
	tcase_add_test(t, many_cr3s);
	tcase_add_test(t, clocks_part_at_a_cfe);
	tcase_add_test(t, losses_name_their_cause);
	tcase_add_test(t, a_gap_makes_all_unknown);
	suite_add_tcase(s, t);
	return s;
}
