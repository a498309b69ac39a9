// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/pip.c: when a PIP is due, its contents, PacketByteCnt, and CR3_MATCH for a CR3 that the
 * VMM runs the guest on (SDM 3 33.2.5.2, Table 33-24, Table 33-7, 33.5.2.3).
 */
#include <stdio.h>

#include "tests/vmm-lib/pip-bed.h"

#define CR3 0x123456789000ULL

/* A buffer's first 16 bytes; no PIP: zeros. */
static void check_output(struct pip_bed *bed, const char *what, bool wanted, u64 cr3, bool nr)
{
	u8 got[16], want[16] = { 0 };

	if (wanted)
		pip_bytes(want, cr3, nr);
	guest_get(&bed->guest, OUTPUT, got, sizeof(got));
	if (memcmp(got, want, sizeof(got)))
		ck_abort_msg("%s: %02x %02x %02x %02x %02x %02x %02x %02x", what, got[0], got[1],
			     got[2], got[3], got[4], got[5], got[6], got[7]);
	if (vmpt_pt_output_offset(&bed->v.regs) != (wanted ? PIP_SIZE : 0))
		ck_abort_msg("%s: OutputOffset %u", what, vmpt_pt_output_offset(&bed->v.regs));
	if (bed->v.events || bed->guest.pmis)
		ck_abort_msg("%s: events %x", what, bed->v.events);
}

/* ---- each condition by itself ---- */

enum tweak { NOTHING, ENTERED, LOST, NO_GUEST_PT, CONCEAL, RAN, ON_RESTORE, RAN_ON_RESTORE };

struct row {
	const char *what;
	u64 ctl_set, ctl_clear, status;
	struct vmpt_cr3_write w;
	u64 cr3_match;
	enum tweak tweak;
	int ret;
	u64 cr3; /* in the PIP, with ret = 1 */
};

#define MOV(from, to)	  .w = { .old_cr3 = (from), .new_cr3 = (to) }
#define BY(why, from, to) .w = { .cause = VMPT_CR3_##why, .old_cr3 = (from), .new_cr3 = (to) }

static const struct row rows[] = {
	{ "MOV CR3", MOV(0, CR3), .ret = 1, .cr3 = CR3 },
	{ "MOV CR3 of the same value", MOV(CR3, CR3), .ret = 1, .cr3 = CR3 },
	{ "concealed: NR = 0", MOV(0, CR3), .tweak = CONCEAL, .ret = 1, .cr3 = CR3 },
	{ "PCID is not sent", MOV(0, CR3 | 0xfff), .ret = 1, .cr3 = CR3 },
	{ "PAE: CR3[11:5] is sent, 4:0 is not",
	  .w = { .new_cr3 = 0x12345fff, .pae_before = true, .pae_after = true }, .ret = 1,
	  .cr3 = 0x12345fe0 },
	{ "into PAE paging", .w = { .new_cr3 = 0x12345fff, .pae_after = true }, .ret = 1,
	  .cr3 = 0x12345fe0 },
	{ "out of PAE paging", .w = { .new_cr3 = 0x12345fff, .pae_before = true }, .ret = 1,
	  .cr3 = 0x12345000 },
	{ "highest address", MOV(0, 0xffffffffff000), .ret = 1, .cr3 = 0xffffffffff000 },
	{ "bits 63:52 have no place (no flush, LAM)", MOV(0, CR3 | 0xfff0000000000000), .ret = 1,
	  .cr3 = CR3 },
	/* TriggerEn */
	{ "TraceEn = 0", .ctl_clear = VMPT_CTL_TRACE_EN, MOV(0, CR3) },
	{ "Stopped", .status = VMPT_STATUS_STOPPED, MOV(0, CR3) },
	{ "Error", .status = VMPT_STATUS_ERROR, MOV(0, CR3) },
	/* OS and ContextEn */
	{ "OS = 0", .ctl_clear = VMPT_CTL_OS, MOV(0, CR3) },
	{ "OS = 0, at CPL 3 after", .ctl_clear = VMPT_CTL_OS,
	  .w = { .new_cr3 = CR3, .cpl_after = 3 } },
	{ "User = 0, at CPL 0", .ctl_clear = VMPT_CTL_USER, MOV(0, CR3), .ret = 1, .cr3 = CR3 },
	{ "User = 0, from CPL 3 to 0 (task switch)", .ctl_clear = VMPT_CTL_USER,
	  .w = { .cause = VMPT_CR3_TASK_SWITCH, .new_cr3 = CR3, .cpl_before = 3 }, .ret = 1,
	  .cr3 = CR3 },
	{ "User = 0, at CPL 3 before and after", .ctl_clear = VMPT_CTL_USER,
	  .w = { .cause = VMPT_CR3_TASK_SWITCH, .new_cr3 = CR3, .cpl_before = 3, .cpl_after = 3 } },
	{ "BranchEn = 0 does not matter", .ctl_clear = VMPT_CTL_BRANCH_EN, MOV(0, CR3), .ret = 1,
	  .cr3 = CR3 },
	/* CR3 filtering */
	{ "filter: neither", .ctl_set = VMPT_CTL_CR3_FILTER, MOV(0x5000, CR3),
	  .cr3_match = 0x7000 },
	{ "filter: into the process", .ctl_set = VMPT_CTL_CR3_FILTER, MOV(0x5000, CR3),
	  .cr3_match = CR3, .ret = 1, .cr3 = CR3 },
	{ "filter: out of the process", .ctl_set = VMPT_CTL_CR3_FILTER, MOV(0x5000, CR3),
	  .cr3_match = 0x5000, .ret = 1, .cr3 = CR3 },
	{ "filter: PCID does not count", .ctl_set = VMPT_CTL_CR3_FILTER, MOV(0x9000, CR3 | 0x123),
	  .cr3_match = CR3 | 0xfe0, .ret = 1, .cr3 = CR3 },
	{ "filter: no flush does not count", .ctl_set = VMPT_CTL_CR3_FILTER,
	  MOV(0x9000, CR3 | 1ULL << 63), .cr3_match = CR3, .ret = 1, .cr3 = CR3 },
	{ "filter: PAE, CR3[11:5] counts", .ctl_set = VMPT_CTL_CR3_FILTER,
	  .w = { .old_cr3 = 0x5000, .new_cr3 = 0x6020, .pae_before = true, .pae_after = true },
	  .cr3_match = 0x6040 },
	{ "filter: PAE, 4:0 does not", .ctl_set = VMPT_CTL_CR3_FILTER,
	  .w = { .old_cr3 = 0x5000, .new_cr3 = 0x605f, .pae_before = true, .pae_after = true },
	  .cr3_match = 0x6040, .ret = 1, .cr3 = 0x6040 },
	/* causes */
	{ "task switch", BY(TASK_SWITCH, 0x5000, CR3), .ret = 1, .cr3 = CR3 },
	{ "task switch, CR3 stays", BY(TASK_SWITCH, CR3, CR3) },
	{ "nested", BY(NESTED, 0x5000, CR3), .ret = 1, .cr3 = CR3 },
	{ "nested, the same CR3", BY(NESTED, CR3, CR3), .ret = 1, .cr3 = CR3 },
	{ "INIT", BY(INIT, CR3, 0), .ret = 1, .cr3 = 0 },
	{ "SMI and RSM", BY(SMM, 0x5000, CR3) },
	{ "restore", BY(RESTORE, 0x5000, CR3) },
	{ "restore, has run", BY(RESTORE, 0x5000, CR3), .tweak = RAN },
	{ "restore, on, has not run", BY(RESTORE, 0x5000, CR3), .tweak = ON_RESTORE },
	{ "restore, on, has run", BY(RESTORE, 0x5000, CR3), .tweak = RAN_ON_RESTORE, .ret = 1,
	  .cr3 = CR3 },
	{ "restore, on, has run, CR3 stays", BY(RESTORE, CR3, CR3), .tweak = RAN_ON_RESTORE },
	{ "no such cause", .w = { .cause = VMPT_CR3_SMM + 1, .new_cr3 = CR3 },
	  .ret = -VMPT_E_INVAL },
	/* the vCPU */
	{ "entered", MOV(0, CR3), .tweak = ENTERED, .ret = -VMPT_E_STATE },
	{ "after a VMX abort", MOV(0, CR3), .tweak = LOST, .ret = -VMPT_E_STATE },
	{ "the guest has no PT", MOV(0, CR3), .tweak = NO_GUEST_PT },
};

static void tweak(struct vmpt_vcpu *v, enum tweak t)
{
	v->entered = t == ENTERED;
	v->lost = t == LOST;
	v->plan.guest_pt = t != NO_GUEST_PT;
	v->plan.conceal = t == CONCEAL;
	v->ran = t == RAN || t == RAN_ON_RESTORE;
	v->pip_on_restore = t == ON_RESTORE || t == RAN_ON_RESTORE;
}

START_TEST(a_condition)
{
	const struct row *r = &rows[_i];
	struct pip_bed bed;
	struct vmpt_pt_regs *regs = &bed.v.regs;
	int ret;

	pip_bed_init(&bed);
	regs->ctl = (regs->ctl | r->ctl_set) & ~r->ctl_clear;
	regs->status |= r->status;
	regs->cr3_match = r->cr3_match;
	tweak(&bed.v, r->tweak);
	ret = vmpt_vcpu_cr3_write(&bed.v, &r->w);
	ck_assert_msg(ret == r->ret, "%s: %d", r->what, ret);
	check_output(&bed, r->what, ret == 1, r->cr3, r->tweak != CONCEAL);
	ck_assert_msg(vmpt_pt_packet_bytes(regs) == (ret == 1 ? 108 : 100), "%s: PacketByteCnt %u",
		      r->what, vmpt_pt_packet_bytes(regs));
	pip_bed_free(&bed);
}
END_TEST

/* ---- all combined: a second implementation of Table 33-24 and 33.2.6.3 ---- */

static bool oracle_context(u32 bits, bool user_level, bool matches)
{
	bool os = bits & 0x8, user = bits & 0x10, filter = bits & 0x20;

	return !((!os && !user_level) || (!user && user_level) || (filter && !matches));
}

START_TEST(all_conditions)
{
	struct pip_bed bed;
	u32 bits;

	pip_bed_init(&bed);
	for (bits = 0; bits < 1u << 11; bits++) {
		bool trace = bits & 1, error = bits & 2, stopped = bits & 4;
		bool user_before = bits & 0x40, user_after = bits & 0x80;
		bool match_before = bits & 0x100, match_after = bits & 0x200;
		struct vmpt_cr3_write w = { .old_cr3 = match_before ? CR3 : 0x5000,
					    .new_cr3 = match_after ? CR3 : 0x6000,
					    .cpl_before = user_before ? 3 : 0,
					    .cpl_after = user_after ? 3 : 0 };
		bool due = trace && !error && !stopped && bits & 0x8 &&
			   (oracle_context(bits, user_before, match_before) ||
			    oracle_context(bits, user_after, match_after));
		u64 zero[2] = { 0, 0 };
		char what[32];

		snprintf(what, sizeof(what), "bits %#x", bits);
		guest_put(&bed.guest, OUTPUT, zero, sizeof(zero));
		pip_bed_at(&bed, TABLE, 0, 0);
		bed.v.regs.cr3_match = CR3;
		bed.v.regs.ctl = VMPT_CTL_TOPA | (trace ? VMPT_CTL_TRACE_EN : 0) |
				 (bits & 0x8 ? VMPT_CTL_OS : 0) |
				 (bits & 0x10 ? VMPT_CTL_USER : 0) |
				 (bits & 0x20 ? VMPT_CTL_CR3_FILTER : 0);
		bed.v.regs.status =
			(error ? VMPT_STATUS_ERROR : 0) | (stopped ? VMPT_STATUS_STOPPED : 0);
		bed.v.plan.conceal = bits & 0x400;
		if (vmpt_vcpu_cr3_write(&bed.v, &w) != due)
			ck_abort_msg("%s: wanted %d", what, due);
		check_output(&bed, what, due, w.new_cr3, !(bits & 0x400));
	}
	pip_bed_free(&bed);
}
END_TEST

/* ---- PacketByteCnt ---- */

struct count_row {
	const char *what;
	u32 freq, count;
	bool inject, none; /* InjectPsbPmiOnEnable; EBX[1] = 0 */
	u32 want;
	bool psb; /* PendPSB */
};

/* Periods: 2K << freq. A count of 0 makes a PSB+ at the next enable. */
static const struct count_row count_rows[] = {
	{ "counts", 0, 100, false, false, 108, false },
	{ "below 2K", 0, 2039, false, false, 2047, false },
	{ "at 2K", 0, 2040, false, false, 0, false },
	{ "over 2K", 0, 2047, false, false, 0, false },
	{ "after 2K", 0, 2048, false, false, 2056, false },
	{ "at the second 2K", 0, 4090, false, false, 0, false },
	{ "inject: at 2K", 0, 2040, true, false, 2048, true },
	{ "inject: over 2K", 0, 2047, true, false, 2055, true },
	{ "inject: below 2K", 0, 2039, true, false, 2047, false },
	{ "a PSB+ is due already", 0, 0, false, false, 0, false },
	{ "inject: a PSB+ is due already", 0, 0, true, false, 0, false },
	{ "64K", 5, 65535, false, false, 0, false },
	{ "64K: below", 5, 65527, false, false, 65535, false },
	{ "128K: at the count's end", 6, 0x1fff8, false, false, 0, false },
	{ "128K: over it", 6, 0x1ffff, false, false, 0, false },
	{ "128K, inject: at the end, not 0", 6, 0x1fff8, true, false, 8, true },
	{ "128K, inject: over the end", 6, 0x1fffc, true, false, 4, true },
	{ "256K: the count wraps, never to 0", 7, 0x1fff8, false, false, 8, false },
	{ "256K: the count wraps", 7, 0x1fffa, false, false, 2, false },
	{ "64M: the count wraps", 15, 0x1ffff, false, false, 7, false },
	{ "64M, inject: the count wraps", 15, 0x1ffff, true, false, 7, false },
	{ "no configurable PSB: reserved", 0, 0, false, true, 0, false },
	{ "no configurable PSB: untouched", 0, 100, false, true, 100, false },
};

START_TEST(packet_byte_count)
{
	const struct count_row *r = &count_rows[_i];
	struct pip_bed bed;
	u64 status;

	pip_bed_init(&bed);
	bed.v.rules.psb_cyc = !r->none;
	bed.v.regs.ctl |= (u64)r->freq << 24 | (r->inject ? VMPT_CTL_INJECT : 0);
	bed.v.regs.status = VMPT_STATUS_TRIGGER_EN | (u64)r->count << 32;
	ck_assert_int_eq(pip_mov(&bed, CR3), 1);
	status = VMPT_STATUS_TRIGGER_EN | (u64)r->want << 32 | (r->psb ? VMPT_STATUS_PEND_PSB : 0);
	ck_assert_msg(bed.v.regs.status == status, "%s: STATUS %llx", r->what,
		      (unsigned long long)bed.v.regs.status);
	check_output(&bed, r->what, true, CR3, true);
	pip_bed_free(&bed);
}
END_TEST

/* Any count and period: it grows by 8, or a PSB+ is requested if a multiple was passed. */
START_TEST(packet_byte_count_of_all)
{
	struct pip_bed bed;
	u32 freq, count;

	pip_bed_init(&bed);
	for (freq = 0; freq < 16; freq++) {
		for (count = 1; count < 0x20000; count += freq == 0 || freq > 5 ? 1 : 7) {
			u64 period = 2048ULL << freq, got;
			bool crossed = count / period != (count + 8) / period;
			u32 want = (count + 8) % 0x20000;

			bed.v.regs.ctl = (bed.v.regs.ctl & ~VMPT_CTL_PSB_FREQ) | (u64)freq << 24;
			bed.v.regs.status = (u64)count << 32;
			pip_bed_at(&bed, TABLE, 0, 0);
			if (pip_mov(&bed, CR3) != 1)
				ck_abort_msg("no PIP");
			got = bed.v.regs.status >> 32;
			if (crossed ? got != 0 : got != (want ? want : 8))
				ck_abort_msg("period %llu, count %#x: %#llx",
					     (unsigned long long)period, count,
					     (unsigned long long)got);
		}
	}
	pip_bed_free(&bed);
}
END_TEST

/* ---- CR3_MATCH if the guest runs on another CR3 ---- */

struct given_row {
	const char *what;
	u64 match, guest, hw;
	bool pae, matches;
};

static const struct given_row given_rows[] = {
	{ "matches", 0x5000, 0x5000, 0x77000, false, true },
	{ "does not", 0x5000, 0x6000, 0x77000, false, false },
	{ "PCIDs differ", 0x5020, 0x5fff, 0x77000, false, true },
	{ "PAE, bits 11:5 differ", 0x5020, 0x5040, 0x77000, true, false },
	{ "PAE, bits 4:0 differ", 0x5040, 0x505f, 0x77020, true, true },
	{ "the VMM's CR3 is what the guest looks for", 0x5000, 0x6000, 0x5000, false, false },
	{ "the same CR3", 0x5000, 0x5000, 0x5000, false, true },
	{ "no flush", 0x5000, 0x5000 | 1ULL << 63, 0x77000 | 1ULL << 63, false, true },
	{ "high bits", 0x8000000000005000, 0x5000, 0x77000, false, false },
};

START_TEST(cr3_given)
{
	const struct given_row *r = &given_rows[_i];
	struct vmpt_vcpu v = { .regs.cr3_match = r->match };
	u64 hw = r->hw & ~(1ULL << 63), match;

	ck_assert_uint_eq(vmpt_vcpu_cr3_match(&v), r->match);
	vmpt_vcpu_cr3_given(&v, true, r->guest, r->hw, r->pae);
	match = vmpt_vcpu_cr3_match(&v);
	ck_assert_msg(!(match & 0x1f), "%s: reserved bits", r->what);
	/* in the processor, with PAE paging or without */
	ck_assert_msg((match >> 12 == hw >> 12) == r->matches, "%s: %llx", r->what,
		      (unsigned long long)match);
	ck_assert_msg((match >> 5 == hw >> 5) == r->matches, "%s: PAE %llx", r->what,
		      (unsigned long long)match);
	ck_assert_uint_eq(v.regs.cr3_match, r->match);
	/* The guest writes CR3_MATCH later: the processor's value follows. */
	v.regs.cr3_match = r->guest & 0x7fffffffffffffe0;
	ck_assert_uint_eq(vmpt_vcpu_cr3_match(&v), hw & ~0x1fULL);
	vmpt_vcpu_cr3_given(&v, false, 0, 0, false);
	ck_assert_uint_eq(vmpt_vcpu_cr3_match(&v), v.regs.cr3_match);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("pip");
	TCase *tc = tcase_create("pip");

	tcase_add_loop_test(tc, a_condition, 0, (int)VMPT_ARRAY_SIZE(rows));
	tcase_add_test(tc, all_conditions);
	tcase_add_loop_test(tc, packet_byte_count, 0, (int)VMPT_ARRAY_SIZE(count_rows));
	tcase_add_test(tc, packet_byte_count_of_all);
	tcase_add_loop_test(tc, cr3_given, 0, (int)VMPT_ARRAY_SIZE(given_rows));
	suite_add_tcase(suite, tc);
	return suite;
}
