// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/msr.c: each rule for the MSRs as a row through vmpt_vcpu_wrmsr(), and the effects of a
 * write. tests/arch/test-pt-regs.c tests the rules one by one, exhaustively.
 */
#include "tests/vmm-lib/bed.h"

static struct bed bed;

static void setup(void)
{
	bed_init(&bed);
}

static void teardown(void)
{
	bed_free(&bed);
}

#define T	BED_CTL		  /* tracing */
#define OFF	(BED_CTL & ~1ULL) /* the same, TraceEn clear */
#define ALL	VMPT_CAPS	  /* nothing is hidden */
#define MTC(n)	((u64)(n) << 14 | 1 << 9)
#define CYC(n)	((u64)(n) << 19 | 1 << 1)
#define PSB(n)	((u64)(n) << 24)
#define BASE	0x560
#define PTRS	0x561
#define CTL	0x570
#define STATUS	0x571
#define MATCH	0x572
#define ADDR(n) (0x580 + (n))

/* A WRMSR on a vCPU whose CTL is @ctl; @after: the result of RDMSR then. */
static const struct {
	const char *rule;
	u8 hidden; /* enum vmpt_pt_cap; for a list of encodings all but 3 */
	u64 ctl;
	u32 msr;
	u64 value;
	u8 why; /* enum vmpt_gp_reason; 0: no fault */
	u64 after;
} writes[] = {
	/* 33.2.8.1, 33.2.8.3: TraceEn = 1 */
	{ "BASE while tracing", ALL, T, BASE, 0x2000, VMPT_GP_TRACING, 0 },
	{ "PTRS while tracing", ALL, T, PTRS, 0xff, VMPT_GP_TRACING, 0x7f },
	{ "STATUS while tracing", ALL, T, STATUS, 0x20, VMPT_GP_TRACING, 4 },
	{ "MATCH while tracing", ALL, T, MATCH, 0x1000, VMPT_GP_TRACING, 0 },
	{ "ADDR0_A while tracing", ALL, T, ADDR(0), 0x1000, VMPT_GP_TRACING, 0 },
	{ "ADDR3_B while tracing", ALL, T, ADDR(7), 0x1000, VMPT_GP_TRACING, 0 },
	{ "its own value, while tracing", ALL, T, BASE, 0, VMPT_GP_TRACING, 0 },
	{ "CTL changes while tracing", ALL, T, CTL, T ^ 4, VMPT_GP_TRACING, T },
	{ "CTL, the same value while tracing", ALL, T, CTL, T, 0, T },
	{ "CTL, TraceEn cleared", ALL, T, CTL, OFF, 0, OFF },
	/* "6.12 only": clears TraceEn and changes other bits */
	{ "CTL, all bits cleared", ALL, T, CTL, 0, 0, 0 },
	{ "CTL, TraceEn cleared, others changed", ALL, T, CTL, OFF ^ 0x408, 0, OFF ^ 0x408 },
	{ "CTL, TraceEn cleared, a reserved bit", ALL, T, CTL, OFF | 1 << 18, VMPT_GP_RESERVED, T },
	{ "CTL, other bits without TraceEn", ALL, 0, CTL, 0x2000, 0, 0x2000 },
	/* Table 33-6: reserved bits */
	{ "CTL[18]", ALL, 0, CTL, 1 << 18, VMPT_GP_RESERVED, 0 },
	{ "CTL[23]", ALL, 0, CTL, 1 << 23, VMPT_GP_RESERVED, 0 },
	{ "CTL[28]", ALL, 0, CTL, 1 << 28, VMPT_GP_RESERVED, 0 },
	{ "CTL[30]", ALL, 0, CTL, 1 << 30, VMPT_GP_RESERVED, 0 },
	{ "CTL[48]", ALL, 0, CTL, 1ULL << 48, VMPT_GP_RESERVED, 0 },
	{ "CTL[54]", ALL, 0, CTL, 1ULL << 54, VMPT_GP_RESERVED, 0 },
	{ "CTL[57]", ALL, 0, CTL, 1ULL << 57, VMPT_GP_RESERVED, 0 },
	{ "CTL[63]", ALL, 0, CTL, 1ULL << 63, VMPT_GP_RESERVED, 0 },
	{ "FabricEn never exists", ALL, 0, CTL, 1 << 6, VMPT_GP_RESERVED, 0 },
	/* Table 33-6, 33-11: bits by capability */
	{ "CYCEn", ALL, 0, CTL, 2, 0, 2 },
	{ "CYCEn without EBX[1]", VMPT_CAP_PSB_CYC, 0, CTL, 2, VMPT_GP_RESERVED, 0 },
	{ "CycThresh without EBX[1]", VMPT_CAP_PSB_CYC, 0, CTL, 1 << 19, VMPT_GP_RESERVED, 0 },
	{ "PSBFreq without EBX[1]", VMPT_CAP_PSB_CYC, 0, CTL, PSB(1), VMPT_GP_RESERVED, 0 },
	{ "PwrEvtEn", ALL, 0, CTL, 0x10, 0, 0x10 },
	{ "PwrEvtEn without EBX[5]", VMPT_CAP_POWER, 0, CTL, 0x10, VMPT_GP_RESERVED, 0 },
	{ "FUPonPTW, PTWEn", ALL, 0, CTL, 0x1020, 0, 0x1020 },
	{ "FUPonPTW without EBX[4]", VMPT_CAP_PTWRITE, 0, CTL, 0x20, VMPT_GP_RESERVED, 0 },
	{ "PTWEn without EBX[4]", VMPT_CAP_PTWRITE, 0, CTL, 0x1000, VMPT_GP_RESERVED, 0 },
	{ "CR3Filter", ALL, 0, CTL, 0x80, 0, 0x80 },
	{ "CR3Filter without EBX[0]", VMPT_CAP_CR3_FILTER, 0, CTL, 0x80, VMPT_GP_RESERVED, 0 },
	{ "MTCEn without EBX[3]", VMPT_CAP_MTC, 0, CTL, 0x200, VMPT_GP_RESERVED, 0 },
	{ "MTCFreq without EBX[3]", VMPT_CAP_MTC, 0, CTL, 3 << 14, VMPT_GP_RESERVED, 0 },
	{ "EventEn", ALL, 0, CTL, 1ULL << 31, 0, 1ULL << 31 },
	{ "EventEn without EBX[7]", VMPT_CAP_EVENT, 0, CTL, 1ULL << 31, VMPT_GP_RESERVED, 0 },
	{ "DisTNT", ALL, 0, CTL, 1ULL << 55, 0, 1ULL << 55 },
	{ "DisTNT without EBX[8]", VMPT_CAP_TNT_DISABLE, 0, CTL, 1ULL << 55, VMPT_GP_RESERVED, 0 },
	{ "Inject", ALL, 0, CTL, 1ULL << 56, 0, 1ULL << 56 },
	{ "Inject without EBX[6]", VMPT_CAP_PRESERVE, 0, CTL, 1ULL << 56, VMPT_GP_RESERVED, 0 },
	/* output schemes */
	{ "ToPA without ECX[0]", VMPT_CAP_TOPA, 0, CTL, 0x100, VMPT_GP_OUTPUT, 0 },
	{ "TraceEn, single range", ALL, 0, CTL, 1, 0, 1 },
	{ "TraceEn, single range without ECX[2]", VMPT_CAP_SINGLE_RANGE, 0, CTL, 1, VMPT_GP_OUTPUT,
	  0 },
	{ "no TraceEn, no ECX[2]", VMPT_CAP_SINGLE_RANGE, 0, CTL, 4, 0, 4 },
	/* encodings; D28: 0 of a feature that is off is not an encoding */
	{ "MTCFreq 9", ALL, 0, CTL, MTC(9), 0, MTC(9) },
	{ "MTCFreq not listed", VMPT_CAP_MTC_PERIODS, 0, CTL, MTC(9), VMPT_GP_ENCODING, 0 },
	{ "CycThresh 9", ALL, 0, CTL, CYC(9), 0, CYC(9) },
	{ "CycThresh not listed", VMPT_CAP_CYC_THRESHOLDS, 0, CTL, CYC(9), VMPT_GP_ENCODING, 0 },
	{ "PSBFreq 9", ALL, 0, CTL, PSB(9), 0, PSB(9) },
	{ "PSBFreq not listed", VMPT_CAP_PSB_FREQS, 0, CTL, PSB(9), VMPT_GP_ENCODING, 0 },
	{ "MTCFreq 0, MTC is off", VMPT_CAP_MTC_PERIODS, 0, CTL, T, 0, T },
	{ "CycThresh 0, CYC is off", VMPT_CAP_CYC_THRESHOLDS, 0, CTL, T, 0, T },
	{ "all 0 without EBX[3]", VMPT_CAP_MTC, 0, CTL, T, 0, T },
	{ "all 0 without EBX[1]", VMPT_CAP_PSB_CYC, 0, CTL, T, 0, T },
	/* ADDRn_CFG */
	{ "ADDR0_CFG 1", ALL, 0, CTL, 1ULL << 32, 0, 1ULL << 32 },
	{ "ADDR3_CFG 2", ALL, 0, CTL, 2ULL << 44, 0, 2ULL << 44 },
	{ "ADDR0_CFG 3", ALL, 0, CTL, 3ULL << 32, VMPT_GP_ENCODING, 0 },
	{ "ADDR2_CFG 15", ALL, 0, CTL, 15ULL << 40, VMPT_GP_ENCODING, 0 },
	{ "ADDR0_CFG without ranges", VMPT_CAP_IP_FILTER, 0, CTL, 1ULL << 32, VMPT_GP_RESERVED, 0 },
	/* STATUS, Table 33-7; D14 */
	{ "read-only bits are ignored", ALL, 0, STATUS, 7, 0, 0 },
	{ "Error, Stopped", ALL, 0, STATUS, 0x30, 0, 0x30 },
	{ "PendPSB, PendTopaPMI", ALL, 0, STATUS, 0xc0, 0, 0xc0 },
	{ "PendPSB without EBX[6]", VMPT_CAP_PRESERVE, 0, STATUS, 0x40, VMPT_GP_RESERVED, 0 },
	{ "PendTopaPMI without EBX[6]", VMPT_CAP_PRESERVE, 0, STATUS, 0x80, VMPT_GP_RESERVED, 0 },
	{ "PacketByteCnt", ALL, 0, STATUS, 0x1ffffULL << 32, 0, 0x1ffffULL << 32 },
	{ "PacketByteCnt without EBX[1]", VMPT_CAP_PSB_CYC, 0, STATUS, 1ULL << 32, VMPT_GP_RESERVED,
	  0 },
	{ "STATUS[3]", ALL, 0, STATUS, 8, VMPT_GP_RESERVED, 0 },
	{ "STATUS[8]", ALL, 0, STATUS, 0x100, VMPT_GP_RESERVED, 0 },
	{ "STATUS[31]", ALL, 0, STATUS, 1ULL << 31, VMPT_GP_RESERVED, 0 },
	{ "STATUS[49]", ALL, 0, STATUS, 1ULL << 49, VMPT_GP_RESERVED, 0 },
	/* OUTPUT_BASE, OUTPUT_MASK_PTRS; D7, D15 */
	{ "BASE[45], MAXPHYADDR 46", ALL, 0, BASE, 1ULL << 45, 0, 1ULL << 45 },
	{ "BASE[46], MAXPHYADDR 46", ALL, 0, BASE, 1ULL << 46, VMPT_GP_RESERVED, 0 },
	{ "BASE[63]", ALL, 0, BASE, 1ULL << 63, VMPT_GP_RESERVED, 0 },
	{ "BASE[7]", ALL, 0, BASE, 0x80, 0, 0x80 },
	{ "BASE[6]", ALL, 0, BASE, 0x40, VMPT_GP_RESERVED, 0 },
	{ "BASE[0]", ALL, 0, BASE, 1, VMPT_GP_RESERVED, 0 },
	{ "LowerMask reads 1", ALL, 0, PTRS, 0, 0, 0x7f },
	{ "PTRS holds the rest", ALL, 0, PTRS, 0xfedcba9876543280ULL, 0, 0xfedcba98765432ffULL },
	/* CR3_MATCH; D6 */
	{ "MATCH[63:5]", ALL, 0, MATCH, ~0x1fULL, 0, ~0x1fULL },
	{ "MATCH[4]", ALL, 0, MATCH, 0x10, VMPT_GP_RESERVED, 0 },
	{ "MATCH[0]", ALL, 0, MATCH, 1, VMPT_GP_RESERVED, 0 },
	{ "MATCH without EBX[0]", VMPT_CAP_CR3_FILTER, 0, MATCH, 0, VMPT_GP_ABSENT, 0 },
	/* ADDRn */
	{ "canonical, low half", ALL, 0, ADDR(0), 0x7fffffffffffULL, 0, 0x7fffffffffffULL },
	{ "canonical, high half", ALL, 0, ADDR(7), ~0x7fffffffffffULL, 0, ~0x7fffffffffffULL },
	{ "not canonical", ALL, 0, ADDR(3), 0x800000000000ULL, VMPT_GP_NOT_CANONICAL, 0 },
	{ "no bits are reserved", ALL, 0, ADDR(5), 1, 0, 1 },
	{ "ADDR0_A without ranges", VMPT_CAP_IP_FILTER, 0, ADDR(0), 0, VMPT_GP_ABSENT, 0 },
};

static void check_write(const char *how, int (*write)(struct vmpt_vcpu *, u32, u64), int i)
{
	u32 msr = writes[i].msr;
	struct vmpt_pt_regs before = bed.v.regs;
	int ret = write(&bed.v, msr, writes[i].value);
	u64 after;

	ck_assert_msg(ret == (writes[i].why ? VMPT_GP : 0), "%s, %s: %d, %s", how, writes[i].rule,
		      ret, vmpt_gp_reason(bed.v.gp_why));
	ck_assert_msg(bed.v.gp_why == writes[i].why, "%s, %s: %s", how, writes[i].rule,
		      vmpt_gp_reason(bed.v.gp_why));
	if (ret)
		ck_assert_mem_eq(&before, &bed.v.regs, sizeof(before));
	if (writes[i].why == VMPT_GP_ABSENT)
		return;
	after = bed_rdmsr(&bed, msr);
	ck_assert_msg(after == writes[i].after, "%s, %s: reads %llx", how, writes[i].rule,
		      (unsigned long long)after);
}

static void start(int i)
{
	switch (writes[i].hidden) {
	case ALL:
		break;
	case VMPT_CAP_MTC_PERIODS:
	case VMPT_CAP_CYC_THRESHOLDS:
	case VMPT_CAP_PSB_FREQS: /* only encoding 3 */
		vmpt_pt_cap_set(&bed.shown.cpuid, (enum vmpt_pt_cap)writes[i].hidden, 1 << 3);
		break;
	default:
		bed_hide(&bed, (enum vmpt_pt_cap)writes[i].hidden);
	}
	bed_start(&bed);
	if (writes[i].ctl)
		bed_wrmsr(&bed, CTL, writes[i].ctl);
}

START_TEST(wrmsr)
{
	start(_i);
	check_write("WRMSR", vmpt_vcpu_wrmsr, _i);
}
END_TEST

/*
 * D7, D9, D13: the VMM's own write has the same rules, except that TraceEn = 1 forbids nothing,
 * STATUS is written as a whole and a missing MSR accepts 0.
 */
START_TEST(set_msr)
{
	u64 value = 1;

	start(_i);
	if (writes[_i].why == VMPT_GP_TRACING) {
		bed_set(&bed, writes[_i].msr, writes[_i].value);
		return;
	}
	if (writes[_i].why == VMPT_GP_ABSENT) {
		bed_set(&bed, writes[_i].msr, 0);
		ck_assert_int_eq(vmpt_vcpu_get_msr(&bed.v, writes[_i].msr, &value), 0);
		ck_assert_uint_eq(value, 0);
		ck_assert_int_eq(vmpt_vcpu_set_msr(&bed.v, writes[_i].msr, 0x1000), VMPT_GP);
		return;
	}
	if (writes[_i].msr == STATUS && writes[_i].value == 7) {
		bed_set(&bed, STATUS, 3);
		ck_assert_uint_eq(bed_rdmsr(&bed, STATUS), 3);
		return;
	}
	check_write("set_msr", vmpt_vcpu_set_msr, _i);
}
END_TEST

/* D9: no PT in CPUID, no MSRs; under each use that shows none. */
START_TEST(no_pt)
{
	static const u8 uses[] = { VMPT_USE_NONE, VMPT_USE_SYSTEM, VMPT_USE_HOST };
	u64 value = 5;
	u32 msr;

	bed_no_pt(&bed, (enum vmpt_use)uses[_i]);
	bed_start(&bed);
	for (msr = 0x560; msr <= 0x587; msr++) {
		if (!vmpt_pt_is_msr(msr))
			continue;
		ck_assert_int_eq(vmpt_vcpu_rdmsr(&bed.v, msr, &value), VMPT_GP);
		ck_assert_uint_eq(bed.v.gp_why, VMPT_GP_NO_PT);
		ck_assert_int_eq(vmpt_vcpu_wrmsr(&bed.v, msr, 0), VMPT_GP);
		ck_assert_int_eq(vmpt_vcpu_wrmsr(&bed.v, msr, 1), VMPT_GP);
		ck_assert_int_eq(vmpt_vcpu_set_msr(&bed.v, msr, 0x1000), VMPT_GP);
		/* one list of MSRs serves guests with and without PT */
		ck_assert_int_eq(vmpt_vcpu_set_msr(&bed.v, msr, 0), 0);
		ck_assert_int_eq(vmpt_vcpu_get_msr(&bed.v, msr, &value), 0);
		ck_assert_uint_eq(value, 0);
	}
	ck_assert_uint_eq(bed.v.regs.ctl, 0);
	ck_assert_uint_eq(vmpt_vcpu_msr_list(&bed.v, 0), 0);
	/* D27: nor the ToPA bit of the PMU */
	value = 7 | VMPT_GLOBAL_TOPA_PMI;
	ck_assert_int_eq(vmpt_vcpu_rdmsr(&bed.v, 0x38e, &value), 0);
	ck_assert_uint_eq(value, 7);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&bed.v, 0x390, VMPT_GLOBAL_TOPA_PMI), VMPT_GP);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&bed.v, 0x390, 7), 0);
	/* TSC scaling does not concern PT then */
	bed.v.tsc_multiplier = 1ULL << 47;
	value = 0x1500;
	ck_assert_int_eq(vmpt_vcpu_rdmsr(&bed.v, 0xce, &value), 0);
	ck_assert_uint_eq(value, 0x1500);
}
END_TEST

/* D7: a guest with fewer address bits than the host is limited to its own. */
START_TEST(narrow_guest)
{
	bed.shown.cpuid.maxphyaddr = 39;
	bed_start(&bed);
	bed_wrmsr(&bed, BASE, 1ULL << 38);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&bed.v, BASE, 1ULL << 39), VMPT_GP);
	ck_assert_int_eq(vmpt_vcpu_set_msr(&bed.v, BASE, 1ULL << 39), VMPT_GP);
	ck_assert_uint_eq(bed.v.rules.maxphyaddr, 39);
}
END_TEST

START_TEST(not_ours)
{
	static const u32 reads[] = { 0x10, 0x55f, 0x562, 0x56f, 0x573, 0x57f, 0x588, 0x390, 0x391 };
	static const u32 stores[] = { 0x10, 0x562, 0x573, 0x588, 0xce, 0x38e };
	u64 value = 5;
	size_t i;

	bed_start(&bed);
	for (i = 0; i < VMPT_ARRAY_SIZE(reads); i++) {
		ck_assert_int_eq(vmpt_vcpu_rdmsr(&bed.v, reads[i], &value), -VMPT_E_INVAL);
		ck_assert_int_eq(vmpt_vcpu_get_msr(&bed.v, reads[i], &value), -VMPT_E_INVAL);
	}
	ck_assert_uint_eq(value, 5);
	for (i = 0; i < VMPT_ARRAY_SIZE(stores); i++)
		ck_assert_int_eq(vmpt_vcpu_wrmsr(&bed.v, stores[i], 0), -VMPT_E_INVAL);
	for (i = 0; i < VMPT_ARRAY_SIZE(reads); i++)
		ck_assert_int_eq(vmpt_vcpu_set_msr(&bed.v, reads[i], 0), -VMPT_E_INVAL);
}
END_TEST

/* While the guest runs its registers are in the processor. */
START_TEST(while_entered)
{
	u64 value = 5;

	bed_start(&bed);
	bed.v.entered = true;
	ck_assert_int_eq(vmpt_vcpu_rdmsr(&bed.v, CTL, &value), -VMPT_E_STATE);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&bed.v, CTL, 0), -VMPT_E_STATE);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&bed.v, 0x390, 0), -VMPT_E_STATE);
	ck_assert_int_eq(vmpt_vcpu_get_msr(&bed.v, CTL, &value), -VMPT_E_STATE);
	ck_assert_int_eq(vmpt_vcpu_set_msr(&bed.v, CTL, 0), -VMPT_E_STATE);
	ck_assert_uint_eq(value, 5);
}
END_TEST

/* 33.5.2.4: half the TSC rate, half the ratio; other bits are the VMM's. */
START_TEST(platform_info)
{
	u64 value = 0x80838f3012a00ULL;

	bed_start(&bed);
	ck_assert_int_eq(vmpt_vcpu_rdmsr(&bed.v, 0xce, &value), 0);
	ck_assert_uint_eq(value, 0x80838f3012a00ULL);
	bed.v.tsc_multiplier = 1ULL << 47;
	ck_assert_int_eq(vmpt_vcpu_rdmsr(&bed.v, 0xce, &value), 0);
	ck_assert_uint_eq(value, 0x80838f3011500ULL);
}
END_TEST

/* ---- what an enable brings about ---- */

START_TEST(enable_starts_scan)
{
	bed_start(&bed);
	ck_assert(!bed.v.scan_set);
	bed_trace(&bed, BED_CTL);
	ck_assert(bed.v.scan_set);
	ck_assert_uint_eq(bed.v.scan_base, BED_TABLE);
	ck_assert_uint_eq(bed.v.scan_mask_ptrs, 0x7f);
	/* an interruption at the same position: the scan continues */
	bed.v.scan.block = 1;
	bed.v.scan.tscs = 9;
	bed_wrmsr(&bed, CTL, 0);
	bed_wrmsr(&bed, CTL, BED_CTL);
	ck_assert_uint_eq(bed.v.scan.block, 1);
	/* at another one it restarts; its counters are kept */
	bed_wrmsr(&bed, CTL, 0);
	bed.v.cut_len[0] = 2;
	bed.v.cut_len[1] = 1;
	bed.v.scan.cut_size = 3;
	bed_wrmsr(&bed, PTRS, 0x800000007fULL);
	bed_wrmsr(&bed, CTL, BED_CTL);
	ck_assert_uint_eq(bed.v.scan.block | bed.v.scan.cut_size, 0);
	ck_assert_uint_eq(bed.v.cut_len[0] | bed.v.cut_len[1], 0);
	ck_assert_uint_eq(bed.v.scan_mask_ptrs, 0x800000007fULL);
	ck_assert_uint_eq(bed.v.scan.tscs, 9);
}
END_TEST

START_TEST(enable_builds_shadow)
{
	u64 reads;

	bed_shadow(&bed);
	bed_start(&bed);
	bed_trace(&bed, BED_CTL);
	ck_assert(!bed.v.shadow.stale && bed.v.shadow.end == VMPT_SHADOW_RING);
	/* writing the same value again is no enable */
	reads = bed.guest.reads;
	bed_wrmsr(&bed, CTL, BED_CTL);
	ck_assert_uint_eq(bed.guest.reads, reads);
	/* what is written while tracing is off takes effect at the next enable */
	bed_wrmsr(&bed, CTL, 0);
	ck_assert(bed.v.shadow.stale);
	bed_wrmsr(&bed, CTL, BED_CTL);
	ck_assert(!bed.v.shadow.stale);
	/* a #GP builds nothing and changes nothing */
	ck_assert_int_eq(vmpt_vcpu_wrmsr(&bed.v, BASE, 0), VMPT_GP);
	ck_assert(!bed.v.shadow.stale);
	/* a restore does not walk either: the next entry does */
	bed_set(&bed, CTL, BED_CTL);
	ck_assert(bed.v.shadow.stale);
}
END_TEST

START_TEST(shadow_that_fails)
{
	bed_shadow(&bed);
	bed_start(&bed);
	bed.v.shadow.memory = NULL;
	bed_trace(&bed, BED_CTL);
	ck_assert(bed.v.shadow.stale);
}
END_TEST

/* Table 33-7: PendPSB takes effect only with InjectPsbPmiOnEnable. */
START_TEST(enable_pend_psb)
{
	bed_start(&bed);
	bed_wrmsr(&bed, STATUS, VMPT_STATUS_PEND_PSB);
	bed_trace(&bed, BED_CTL);
	ck_assert(!bed.v.force_psb);
	bed_wrmsr(&bed, CTL, 0);
	bed_wrmsr(&bed, CTL, BED_CTL | VMPT_CTL_INJECT);
	ck_assert(bed.v.force_psb);
}
END_TEST

/* ---- save and restore by a list of MSRs ---- */

static u32 list[16];
static unsigned int listed;

static void read_list(const struct vmpt_vcpu *v)
{
	for (listed = 0; (list[listed] = vmpt_vcpu_msr_list(v, listed)); listed++)
		ck_assert_uint_lt(listed, 15);
}

START_TEST(msr_list)
{
	static const u32 all[] = { 0x571, 0x560, 0x561, 0x572, 0x580, 0x581, 0x582,
				   0x583, 0x584, 0x585, 0x586, 0x587, 0x570 };

	bed_start(&bed);
	read_list(&bed.v);
	ck_assert_uint_eq(listed, 13);
	ck_assert_mem_eq(list, all, sizeof(all));
	ck_assert_uint_eq(vmpt_vcpu_msr_list(&bed.v, 14), 0);
	ck_assert_uint_eq(vmpt_vcpu_msr_list(&bed.v, ~0u), 0);
	bed_hide(&bed, VMPT_CAP_CR3_FILTER);
	vmpt_pt_cap_set(&bed.shown.cpuid, VMPT_CAP_RANGES, 1);
	bed_start(&bed);
	read_list(&bed.v);
	ck_assert_uint_eq(listed, 6);
	ck_assert_uint_eq(list[3], 0x580);
	ck_assert_uint_eq(list[4], 0x581);
	ck_assert_uint_eq(list[5], 0x570);
}
END_TEST

static struct vmpt_vcpu source;
static u64 saved[16];

/* A guest in the middle of tracing, a PMI and a PSB pending. */
static void make_source(void)
{
	unsigned int i;

	bed_start(&bed);
	bed_wrmsr(&bed, MATCH, 0xabc000);
	bed_wrmsr(&bed, ADDR(0), 0x401000);
	bed_wrmsr(&bed, ADDR(1), 0x402000);
	bed_trace(&bed, BED_CTL | VMPT_CTL_INJECT | 1ULL << 32 | VMPT_CTL_CR3_FILTER);
	/* it has run: the processor advanced, filled an INT region, wants a PSB */
	bed.v.regs.output_mask_ptrs = 0x123000000ffULL;
	bed.v.regs.status = VMPT_STATUS_PEND_PMI | VMPT_STATUS_PEND_PSB | VMPT_STATUS_TRIGGER_EN |
			    VMPT_STATUS_CONTEXT_EN | 0x777ULL << 32;
	bed.v.ran = true;
	vmpt_vcpu_pmi(&bed.v);
	ck_assert_uint_eq(bed.guest.pmis, 1);
	source = bed.v;
	read_list(&source);
	for (i = 0; i < listed; i++)
		ck_assert_int_eq(vmpt_vcpu_get_msr(&source, list[i], &saved[i]), 0);
}

static void check_restored(const unsigned int *order)
{
	const struct vmpt_vcpu *v = &bed.v;
	bool ok = !memcmp(&v->regs, &source.regs, sizeof(v->regs)) && !v->ran && v->held_pend_pmi &&
		  v->force_psb && v->scan_set && v->scan_base == source.regs.output_base &&
		  v->scan_mask_ptrs == source.regs.output_mask_ptrs && bed.guest.pmis == 1;

	if (!ok)
		ck_abort_msg("restored %xH %xH %xH %xH …: ctl %llx status %llx base %llx ptrs %llx",
			     list[order[0]], list[order[1]], list[order[2]], list[order[3]],
			     (unsigned long long)v->regs.ctl, (unsigned long long)v->regs.status,
			     (unsigned long long)v->regs.output_base,
			     (unsigned long long)v->regs.output_mask_ptrs);
}

/* @dirty: the target traces already, elsewhere. */
static void restore_in(const unsigned int *order, const struct vmpt_vcpu *fresh)
{
	unsigned int i;

	bed.v = *fresh;
	for (i = 0; i < listed; i++)
		if (vmpt_vcpu_set_msr(&bed.v, list[order[i]], saved[order[i]]))
			ck_abort_msg("restoring %xH: %s", list[order[i]],
				     vmpt_gp_reason(bed.v.gp_why));
	check_restored(order);
}

static void swap(unsigned int *a, unsigned int *b)
{
	unsigned int t = *a;

	*a = *b;
	*b = t;
}

static void permute(unsigned int *order, unsigned int from, const struct vmpt_vcpu *fresh)
{
	unsigned int i;

	if (from == listed) {
		restore_in(order, fresh);
		return;
	}
	for (i = from; i < listed; i++) {
		swap(&order[from], &order[i]);
		permute(order, from + 1, fresh);
		swap(&order[from], &order[i]);
	}
}

/* A target that was just made, or one that traces to another place. */
static void make_target(struct vmpt_vcpu *fresh, bool dirty)
{
	ck_assert_int_eq(vmpt_vcpu_init(fresh, &bed.config, NULL), 0);
	if (!dirty)
		return;
	ck_assert_int_eq(vmpt_vcpu_wrmsr(fresh, BASE, 0x7000), 0);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(fresh, PTRS, 0x33000001ffULL), 0);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(fresh, ADDR(1), 0x33000), 0);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(fresh, STATUS, VMPT_STATUS_STOPPED), 0);
	ck_assert_int_eq(vmpt_vcpu_wrmsr(fresh, CTL, 0xd), 0);
	fresh->ran = true;
}

/* D13, D14: all 7! orders of a guest with one range give the state that was saved. */
START_TEST(restore_all_orders)
{
	unsigned int order[7], i;
	struct vmpt_vcpu fresh;

	vmpt_pt_cap_set(&bed.shown.cpuid, VMPT_CAP_RANGES, 1);
	make_source();
	ck_assert_uint_eq(listed, 7);
	make_target(&fresh, _i);
	for (i = 0; i < 7; i++)
		order[i] = i;
	permute(order, 0, &fresh);
}
END_TEST

/* The same with all 13 MSRs, in random orders and in that of QEMU and KVM, CTL first. */
START_TEST(restore_random_orders)
{
	u64 seed = 0x5eed + (u64)_i;
	struct test_rng rng = { seed };
	unsigned int order[16], i, round;
	struct vmpt_vcpu fresh;

	make_source();
	ck_assert_uint_eq(listed, 13);
	make_target(&fresh, _i);
	for (i = 0; i < listed; i++)
		order[i] = (i + listed - 1) % listed;
	restore_in(order, &fresh);
	for (round = 0; round < 5000; round++) {
		for (i = listed; i > 1; i--)
			swap(&order[i - 1], &order[test_random(&rng) % i]);
		restore_in(order, &fresh);
	}
}
END_TEST

/* The PMI of a restored state was delivered before; that of a later enable is pended. */
START_TEST(restore_then_enable)
{
	bed_start(&bed);
	bed_set(&bed, CTL, BED_CTL | VMPT_CTL_INJECT);
	bed_set(&bed, STATUS, VMPT_STATUS_PEND_PMI);
	ck_assert(bed.v.held_pend_pmi);
	ck_assert_uint_eq(bed.guest.pmis, 0);
	bed_wrmsr(&bed, CTL, 0);
	bed_wrmsr(&bed, CTL, BED_CTL | VMPT_CTL_INJECT);
	ck_assert_uint_eq(bed.guest.pmis, 1);
	ck_assert(bed.v.held_pend_pmi);
	/* a register unrelated to output does not move the TSC adjuster */
	bed.v.scan_mask_ptrs = 0xff;
	bed_set(&bed, MATCH, 0x1000);
	ck_assert_uint_eq(bed.v.scan_mask_ptrs, 0xff);
	bed_set(&bed, PTRS, 0x17f);
	ck_assert_uint_eq(bed.v.scan_mask_ptrs, 0x17f);
	/* restored with TraceEn = 0 nothing is held: its enable pends it */
	bed_set(&bed, CTL, 0);
	ck_assert(!bed.v.held_pend_pmi);
}
END_TEST

static void add_orders(Suite *suite)
{
	TCase *tcase = tcase_create("restore");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, msr_list);
	tcase_add_loop_test(tcase, restore_all_orders, 0, 2);
	tcase_add_loop_test(tcase, restore_random_orders, 0, 2);
	tcase_add_test(tcase, restore_then_enable);
	suite_add_tcase(suite, tcase);
}

TEST_SUITE()
{
	Suite *suite = suite_create("msr");
	TCase *tcase = tcase_create("msr");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, wrmsr, 0, VMPT_ARRAY_SIZE(writes));
	tcase_add_loop_test(tcase, set_msr, 0, VMPT_ARRAY_SIZE(writes));
	tcase_add_loop_test(tcase, no_pt, 0, 3);
	tcase_add_test(tcase, narrow_guest);
	tcase_add_test(tcase, not_ours);
	tcase_add_test(tcase, while_entered);
	tcase_add_test(tcase, platform_info);
	tcase_add_test(tcase, enable_starts_scan);
	tcase_add_test(tcase, enable_builds_shadow);
	tcase_add_test(tcase, shadow_that_fails);
	tcase_add_test(tcase, enable_pend_psb);
	suite_add_tcase(suite, tcase);
	add_orders(suite);
	return suite;
}
