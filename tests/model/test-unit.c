// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* model/unit.c: the unit's MSRs, XSAVES and XRSTORS, RESET, and that it is deterministic. */
#include "tests/model/rig.h"

#define PSB_ON "PSB, CBR(20), PIP(0x1000), MODE.TSX(), PSBEND, MODE.Exec(64), TIP.PGE(0x401000)"

START_TEST(init)
{
	struct vmpt_unit_config config = rig.config;

	config.memory = &rig.memory;
	ck_assert_int_eq(vmpt_unit_init(&rig.unit, &config), -VMPT_E_INVAL);
	config.sink = NULL;
	config.memory = NULL;
	ck_assert_int_eq(vmpt_unit_init(&rig.unit, &config), -VMPT_E_INVAL);
	config.memory = &rig.memory;
	ck_assert_int_eq(vmpt_unit_init(&rig.unit, &config), 0);
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS), VMPT_LOWER_MASK);
}
END_TEST

/* 33.2.8.1, 33.2.8.3: what may be written while TraceEn = 1. */
START_TEST(writes_while_tracing)
{
	static const u32 msrs[] = { VMPT_MSR_RTIT_OUTPUT_BASE, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS,
				    VMPT_MSR_RTIT_STATUS,      VMPT_MSR_RTIT_CR3_MATCH,
				    VMPT_MSR_RTIT_ADDR0_A,     VMPT_MSR_RTIT_ADDR3_B };
	struct vmpt_unit *u = &rig.unit;
	u64 on = CTL | VMPT_CTL_TRACE_EN;
	size_t i;

	rig_on(CTL);
	for (i = 0; i < VMPT_ARRAY_SIZE(msrs); i++)
		ck_assert_int_eq(vmpt_unit_wrmsr(u, msrs[i], 0, 1, 2), VMPT_GP);
	ck_assert_int_eq(vmpt_unit_wrmsr(u, VMPT_MSR_RTIT_CTL, on | VMPT_CTL_TSC_EN, 1, 2),
			 VMPT_GP);
	ck_assert_int_eq(vmpt_unit_wrmsr(u, VMPT_MSR_RTIT_CTL, on, 1, 2), 0);
	expect("");
	/* others may change with the write that clears TraceEn */
	ck_assert_int_eq(vmpt_unit_wrmsr(u, VMPT_MSR_RTIT_CTL, VMPT_CTL_TSC_EN, 0x402000, 2), 0);
	expect("FUP(0x402000), TIP.PGD()");
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_CTL), VMPT_CTL_TSC_EN);
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_STATUS) & VMPT_STATUS_TRIGGER_EN, 0);
	ck_assert_int_eq(vmpt_unit_wrmsr(u, 0x10, 0, 1, 2), -VMPT_E_INVAL);
}
END_TEST

START_TEST(xsaves_and_xrstors)
{
	struct vmpt_pt_regs saved, other;
	struct vmpt_unit *u = &rig.unit;

	rig_wrmsr(VMPT_MSR_RTIT_CR3_MATCH, 0x1000);
	rig_wrmsr(VMPT_MSR_RTIT_ADDR0_A, 0x400000);
	rig_wrmsr(VMPT_MSR_RTIT_ADDR0_A + 1, 0x4fffff);
	rig_on(CTL | 1ULL << VMPT_CTL_ADDR_SHIFT(0));
	ck_assert_int_eq(vmpt_unit_xrstors(u, &u->regs, 1, 2), VMPT_GP);
	vmpt_unit_xsaves(u, &saved, 0x402000);
	expect("FUP(0x402000), TIP.PGD()");
	/* TraceEn is saved as it was, and cleared (33.3.5.2) */
	ck_assert_uint_eq(saved.ctl, CTL | VMPT_CTL_TRACE_EN | 1ULL << VMPT_CTL_ADDR_SHIFT(0));
	ck_assert_uint_eq(u->regs.ctl, saved.ctl & ~VMPT_CTL_TRACE_EN);
	ck_assert_uint_eq(saved.cr3_match, 0x1000);
	ck_assert_uint_eq(saved.addr[1], 0x4fffff);
	/* another context */
	vmpt_pt_reset_cold(&other);
	ck_assert_int_eq(vmpt_unit_xrstors(u, &other, 0x402000, 0x402004), 0);
	expect("");
	ck_assert_uint_eq(u->regs.addr[1], 0);
	ck_assert_uint_eq(u->regs.ctl, 0);
	vmpt_unit_xsaves(u, &other, 0x402000);
	ck_assert_uint_eq(other.ctl, 0);
	/* and back; Table 33-56, case 2 */
	ck_assert_int_eq(vmpt_unit_xrstors(u, &saved, 0x402000, 0x402004), 0);
	expect("CBR(20), MODE.Exec(64), TIP.PGE(0x402004)");
	ck_assert_uint_eq(u->regs.ctl, saved.ctl);
}
END_TEST

START_TEST(xrstors_of_what_is_illegal_changes_nothing)
{
	struct vmpt_pt_regs regs;

	vmpt_pt_reset_cold(&regs);
	regs.cr3_match = 0x5000;
	regs.ctl = 1ULL << 63;
	ck_assert_int_eq(vmpt_unit_xrstors(&rig.unit, &regs, 1, 2), VMPT_GP);
	regs.ctl = 0;
	regs.status = 1ULL << 63;
	ck_assert_int_eq(vmpt_unit_xrstors(&rig.unit, &regs, 1, 2), VMPT_GP);
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_CR3_MATCH), 0);
	/* MSRs that do not exist are left alone */
	vmpt_pt_cap_set(&rig.config.cpuid, VMPT_CAP_RANGES, 1);
	rig_init();
	regs.status = 0;
	regs.addr[7] = 0x123;
	ck_assert_int_eq(vmpt_unit_xrstors(&rig.unit, &regs, 1, 2), 0);
	ck_assert_uint_eq(rig.unit.regs.addr[7], 0);
	ck_assert_uint_eq(rig.unit.regs.cr3_match, 0x5000);
}
END_TEST

START_TEST(reset_cold)
{
	rig_wrmsr(VMPT_MSR_RTIT_CR3_MATCH, 0x1000);
	rig_on(CTL);
	vmpt_unit_reset(&rig.unit, false);
	expect("");
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_CTL), 0);
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_STATUS), 0);
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_CR3_MATCH), 0);
	vmpt_unit_jmp_indirect(&rig.unit, 0x402000);
	expect("");
}
END_TEST

/* 33.3.4: only TraceEn is cleared. */
START_TEST(reset_warm)
{
	rig_wrmsr(VMPT_MSR_RTIT_CR3_MATCH, 0x1000);
	rig_on(CTL);
	vmpt_unit_vmxon(&rig.unit, true, 0);
	vmpt_unit_vmptrld(&rig.unit, 0x5000);
	vmpt_unit_tx_begin(&rig.unit, 0x402000);
	rig.unit.smm_trace_en = true;
	vmpt_unit_reset(&rig.unit, true);
	ck_assert_uint_eq(rig.unit.vmx.vmcs, VMPT_PT_VMCS_NONE);
	ck_assert(!rig.unit.in_tx);
	ck_assert(!rig.unit.smm_trace_en);
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_CTL), CTL);
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_CR3_MATCH), 0x1000);
	ck_assert_uint_eq(rig_rdmsr(VMPT_MSR_RTIT_STATUS) & VMPT_STATUS_READ_ONLY, 0);
	ck_assert(!rig.unit.vmx.on);
}
END_TEST

START_TEST(first_packets)
{
	rig_on_shown(CTL);
	expect(PSB_ON);
}
END_TEST

/* ---- same events, same bytes ---- */

static void random_event(struct test_rng *rng)
{
	struct vmpt_unit *u = &rig.unit;
	u64 r = test_random(rng), ip = 0x400000 + (r >> 40 & 0xffffff);
	struct vmpt_mode mode = mode64(r >> 8 & 3, (r >> 10 & 3) << 12);
	struct vmpt_unit_entry e = { .ip = ip, .target = ip + 64, .mode = mode };
	struct vmpt_unit_exit x = { .ip = ip, .target = ip + 64, .mode = mode };
	struct vmpt_far far = {
		.kind = (u8)((r >> 16) % VMPT_FAR_KINDS), .ip = ip, .target = ip + 32, .mode = mode
	};

	switch (r % 20) {
	case 0:
		rig_time(u->now.cycles + (r >> 20 & 0xff), r, u->now.art + (r >> 28 & 3));
		break;
	case 1:
		rig_far(&far);
		break;
	case 2:
		vmpt_unit_mov_cr3(u, ip, &mode);
		break;
	case 3:
		if (u->regs.ctl & VMPT_CTL_TRACE_EN)
			rig_off(ip);
		else
			vmpt_unit_wrmsr(u, VMPT_MSR_RTIT_CTL,
					((r & 0xffff) | VMPT_CTL_TRACE_EN) & u->rules.ctl_mask, ip,
					ip + 2);
		break;
	case 4:
		vmpt_unit_ret(u, ip);
		break;
	case 5:
		vmpt_unit_call(u, ip, ip + 16);
		break;
	case 6:
		e.vmx.conceal_exit = r >> 30 & 1;
		if (!u->vmx.nonroot)
			vmpt_unit_vmentry(u, &e);
		else
			vmpt_unit_vmexit(u, &x);
		break;
	case 7:
		vmpt_unit_overflow(u);
		vmpt_unit_overflow_resolve(u, ip);
		break;
	case 8:
	case 9:
		vmpt_unit_jmp_indirect(u, ip);
		break;
	default:
		vmpt_unit_jcc(u, r >> 20 & 1, ip);
		break;
	}
}

/* The hash of all bytes that @events random events make; they must decode. */
static u64 run(u64 seed, unsigned int events)
{
	struct test_rng rng = { seed };
	u64 hash = 14695981039346656037ULL;
	unsigned int i;
	size_t n;

	rig_setup();
	rig.config.options.deferred_tips = seed & 1;
	rig.config.options.long_tnt = seed & 2;
	rig_init();
	for (i = 0; i < events; i++) {
		random_event(&rng);
		if (rig.size > sizeof(rig.bytes) / 4)
			break;
	}
	rig_text();
	for (n = 0; n < rig.size; n++)
		hash = (hash ^ rig.bytes[n]) * 1099511628211ULL;
	return hash;
}

START_TEST(same_events_same_bytes)
{
	u64 seed;

	for (seed = 1; seed < 60; seed++) {
		u64 first = run(seed, 3000);

		if (run(seed, 3000) != first)
			ck_abort_msg("seed %llu", (unsigned long long)seed);
	}
}
END_TEST

RIG_SUITE("unit", init, writes_while_tracing, xsaves_and_xrstors,
	  xrstors_of_what_is_illegal_changes_nothing, reset_cold, reset_warm, first_packets,
	  same_events_same_bytes)
