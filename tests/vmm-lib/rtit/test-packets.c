// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/rtit/packets.c: the PIP and STS of a CR3 or CR0.PG that the VMM wrote (4.2.10) and the
 * STS of a wakeup, by hand and against the model's unit, which itself executes the same MOV and
 * wakes.
 */
#include "tests/vmm-lib/rtit/rig.h"

static struct rig rig;

#define BASE 0x10000u
#define STS  (VMPT_RTIT_CTL_STS_EN | VMPT_RTIT_CTL_STS_ON_CR3)

static void setup(void)
{
	rig_init(&rig, VMPT_RTIT_CONTIGUOUS, 0);
}

static void teardown(void)
{
	rig_free(&rig);
}

static void expect_bytes(u64 gpa, const char *hex)
{
	rig_expect(&rig, gpa, hex);
}

static const struct vmpt_rtit_cr_write to_cr3 = {
	.new_cr3 = 0xabcdef12345678,
	.new_paging = true,
	.was_mov_cr3 = true,
};

static void write_cr3(int ret)
{
	ck_assert_int_eq(vmpt_rtit_vcpu_cr_write(&rig.v, &to_cr3), ret);
}

/* CR3[39:0] after 110000 1 PG */
#define PIP "c3 78 56 34 12 ef"

START_TEST(pip)
{
	rig_program(&rig, BASE, 0xffff, RIG_ON);
	write_cr3(1);
	expect_bytes(BASE, PIP);
	ck_assert_uint_eq(rig_rd(&rig, 0x772), 6);
	ck_assert_uint_eq(rig_rd(&rig, 0x77c), 0x20006);
}
END_TEST

/* MOV CR0: PG as it is now, no STS. */
START_TEST(cr0)
{
	struct vmpt_rtit_cr_write w = { .new_cr3 = 0x1000 };

	rig_program(&rig, BASE, 0xffff, RIG_ON | STS);
	ck_assert_int_eq(vmpt_rtit_vcpu_cr_write(&rig.v, &w), 1);
	expect_bytes(BASE, "c2 00 10 00 00 00 00");
	ck_assert_uint_eq(rig_rd(&rig, 0x772), 6);
}
END_TEST

/* "when ContextEn and TriggerEn are both 1 and CR3En is 0"; none in an overflow (4.2.5). */
START_TEST(not_due)
{
	static const u64 off[] = {
		RIG_CTL,
		RIG_CTL | VMPT_RTIT_CTL_TRACE_EN,
		RIG_CTL | VMPT_RTIT_CTL_TRACE_ACTIVE,
		RIG_ON & ~VMPT_RTIT_CTL_OS,
		RIG_ON | VMPT_RTIT_CTL_CR3_EN,
		RIG_ON | VMPT_RTIT_CTL_CR3_EN | VMPT_RTIT_CTL_STS_EN,
		RIG_ON | VMPT_RTIT_CTL_CR3_EN | VMPT_RTIT_CTL_STS_ON_CR3,
	};
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(off); i++) {
		rig_program(&rig, BASE, 0xffff, off[i]);
		write_cr3(0);
	}
	rig_program(&rig, BASE, 0xffff, RIG_ON | STS);
	rig_wr(&rig, 0x769, 9);
	write_cr3(0);
	ck_assert_uint_eq(rig_rd(&rig, 0x772), 0);
	ck_assert_uint_eq(rig_rd(&rig, 0x77c), 0x20000);
	rig_wr(&rig, 0x769, 0);
	write_cr3(1);
}
END_TEST

/* STS_on_CR3, even if no PIP is due; with LESS_PKTS in PacketEn only. */
START_TEST(sts)
{
	u64 cr3en = RIG_ON | STS | VMPT_RTIT_CTL_CR3_EN;

	rig.sts_tsc = 0x123456789abcdef;
	rig_program(&rig, BASE, 0xffff, RIG_ON | STS);
	write_cr3(1);
	/* 1101, ACBR 12H[5:2]; ACBR[1:0], ECBR 0FH; TSC[39:0] */
	expect_bytes(BASE, PIP " d4 8f ef cd ab 89 67");
	rig_program(&rig, BASE, 0xffff, cr3en);
	write_cr3(1);
	expect_bytes(BASE, "d4 8f ef cd ab 89 67");
	/* ContextEn after the write: CR3_MATCH has 35:5 */
	rig_program(&rig, BASE, 0xffff, cr3en | VMPT_RTIT_CTL_LESS_PKTS);
	rig_wr(&rig, 0x769, 1);
	rig_wr(&rig, 0x777, 0xf12345660);
	write_cr3(1);
	expect_bytes(BASE, "d4 8f ef cd ab 89 67");
	rig_wr(&rig, 0x777, 0xf12345640);
	write_cr3(0);
	rig_wr(&rig, 0x777, 0xf12345660);
	rig_wr(&rig, 0x769, 0);
	write_cr3(0);
	/* Without a clock none can be made. */
	rig.ops.clock = NULL;
	rig_program(&rig, BASE, 0xffff, RIG_ON | STS);
	write_cr3(1);
	ck_assert_uint_eq(rig_rd(&rig, 0x772), 6);
}
END_TEST

/* With rewriting it has the guest's TSC, like those of the processor after the copying. */
START_TEST(sts_rewritten)
{
	rig_free(&rig);
	rig_init(&rig, VMPT_RTIT_BOUNCE, 4096);
	rig.config.rewrite_clock = true;
	rig_again(&rig);
	rig.sts_tsc = 0xffffffffff;
	ck_assert_int_eq(vmpt_rtit_vcpu_clock(&rig.v, 0x100, 3), 0);
	rig_program(&rig, BASE, 0xffff, RIG_ON | STS | VMPT_RTIT_CTL_CR3_EN);
	write_cr3(1);
	expect_bytes(BASE, "d4 8f 02 01 00 00 00");
}
END_TEST

/* The partial TNT goes before; CNTP follows the first packet that has a count. */
START_TEST(tnt_and_cycles)
{
	rig_program(&rig, BASE, 0xffff, RIG_ON | STS | VMPT_RTIT_CTL_CYCLE_ACC);
	rig_wr(&rig, 0x77d, 0x0d);
	rig_wr(&rig, 0x76b, 0x41);
	write_cr3(1);
	/* No count after a partial TNT; 41H is 2 bytes; then 0 */
	expect_bytes(BASE, "0d " PIP " 06 01 d4 8f 00 00 00 00 00 01");
	ck_assert_uint_eq(rig_rd(&rig, 0x77d), 1);
	ck_assert_uint_eq(rig_rd(&rig, 0x76b), 0);
	/* A full TNT has it. */
	rig_wr(&rig, 0x772, 0);
	rig_wr(&rig, 0x77d, 0x55);
	rig_wr(&rig, 0x76b, 0x3fffff);
	write_cr3(1);
	expect_bytes(BASE, "55 ff ff ff " PIP " 01");
	/* Before an STS alone too (Table 19, row 40). */
	rig_program(&rig, BASE, 0xffff, RIG_ON | STS | VMPT_RTIT_CTL_CR3_EN);
	rig_wr(&rig, 0x77d, 0x0d);
	write_cr3(1);
	ck_assert_uint_eq(rig_rd(&rig, 0x77d), 1);
	expect_bytes(BASE, "0d d4 8f");
	/* Without either it is kept. */
	rig_program(&rig, BASE, 0xffff, RIG_ON | VMPT_RTIT_CTL_CR3_EN);
	rig_wr(&rig, 0x77d, 0x0d);
	write_cr3(0);
	ck_assert_uint_eq(rig_rd(&rig, 0x77d), 0x0d);
}
END_TEST

/* 3.3.9's example: the PSB comes between the packets and has its own 9 bytes in Pkt_Cnt. */
START_TEST(pkt_mask)
{
	rig_program(&rig, BASE, 0xffff, RIG_ON | STS);
	rig_wr(&rig, 0x76e, 0x100000001);
	rig_wr(&rig, 0x76f, 0x1000000001000);
	rig_wr(&rig, 0x77c, 0x10ffc);
	write_cr3(1);
	expect_bytes(BASE, PIP " c0 00 00 00 00 00 00 00 00 d4 8f");
	ck_assert_uint_eq(rig_rd(&rig, 0x77c), 0x10010);
	ck_assert_uint_eq(rig_rd(&rig, 0x76e), 0);
	ck_assert_uint_eq(rig_rd(&rig, 0x76f), 0);
}
END_TEST

START_TEST(wrap)
{
	rig_program(&rig, BASE, 0x7f, RIG_ON);
	rig_wr(&rig, 0x772, 0x7d);
	write_cr3(1);
	expect_bytes(BASE + 0x7d, "c3 78 56");
	expect_bytes(BASE, "34 12 ef");
	ck_assert_uint_eq(rig_rd(&rig, 0x772), 3);
}
END_TEST

/* Loaded: in the processor's place, with the other packets around it. */
static void loaded(enum vmpt_rtit_output output)
{
	rig_free(&rig);
	rig_init(&rig, output, 4096);
	rig_program(&rig, BASE, 0xffff, RIG_ON | STS | VMPT_RTIT_CTL_MTC_EN);
	ck_assert_int_eq(vmpt_rtit_vcpu_load(&rig.v), 0);
	rig_enter(&rig, 0x1000);
	vmpt_rtit_unit_jcc(&rig.unit, true, 0x1002, 0x1010);
	rig_time(&rig, 0x100); /* two MTCs */
	rig_exit(&rig, 0x1010);
	rig_time(&rig, 0x100); /* LESS_PKTS = 0: two more */
	rig_forget(&rig);
	write_cr3(1);
	rig.in.cr3 = to_cr3.new_cr3;
	rig_enter(&rig, 0x1013);
	vmpt_rtit_unit_jmp_indirect(&rig.unit, 0x1015, 0x2000);
	rig_exit(&rig, 0x2000);
	ck_assert_int_eq(vmpt_rtit_vcpu_sync(&rig.v), 0);
	expect_bytes(BASE + 9, "84 00 10 c4 01 c4 02 03 8c 10 10 c4 03 c4 04 " PIP
			       " d4 8f 00 02 00 00 00 84 13 10 b4 00 20 8c 00 20");
	ck_assert_uint_eq(rig.unit.regs.ctl, RIG_ON | STS | VMPT_RTIT_CTL_MTC_EN);
}

START_TEST(in_the_processor)
{
	loaded(VMPT_RTIT_CONTIGUOUS);
	ck_assert_uint_eq(rig.v.path, VMPT_RTIT_PATH_DIRECT);
	loaded(VMPT_RTIT_BOUNCE);
}
END_TEST

/* A TraceStop came before: TriggerEn is 0. */
START_TEST(stopped)
{
	rig_program(&rig, BASE, 0xffff, RIG_ON);
	rig_wr(&rig, 0x762, 0x1000);
	rig_wr(&rig, 0x76c, 0x07);
	ck_assert_int_eq(vmpt_rtit_vcpu_load(&rig.v), 0);
	rig_enter(&rig, 0x2000);
	vmpt_rtit_unit_jmp(&rig.unit, 0x2002, 0x10);
	rig_exit(&rig, 0x10);
	write_cr3(0);
}
END_TEST

/* No place for output: none for these either, not even where the guest pointed. */
START_TEST(parked)
{
	rig.guest.frame[0x10] = 0x21;
	rig.guest.frame[0x21] = 0x10;
	rig_program(&rig, BASE, 0x1fff, RIG_ON | STS);
	ck_assert_int_eq(vmpt_rtit_vcpu_load(&rig.v), 0);
	ck_assert_uint_eq(rig.v.path, VMPT_RTIT_PATH_PARKED);
	rig.v.events = 0;
	rig_forget(&rig);
	write_cr3(0);
	ck_assert_uint_eq(rig.v.events, VMPT_RTIT_EVENT_LOST);
	ck_assert_int_eq(vmpt_rtit_vcpu_wake(&rig.v, true), 0);
	ck_assert_uint_eq(rig.accesses, 0);
	ck_assert_uint_eq(rig.v.regs.offset, 0);
	expect_bytes(BASE, "00 00 00 00 00 00 00");
}
END_TEST

/* ---- a sleep that the VMM emulated (4.2.13, Appendix B 4.1) ---- */

static void wake(bool context_en, int ret)
{
	ck_assert_int_eq(vmpt_rtit_vcpu_wake(&rig.v, context_en), ret);
}

START_TEST(wakeup)
{
	u64 sts = RIG_ON | VMPT_RTIT_CTL_STS_EN;

	rig.sts_tsc = 0x123456789abcdef;
	rig_program(&rig, BASE, 0xffff, RIG_ON | VMPT_RTIT_CTL_STS_ON_CR3);
	wake(true, 0);
	rig_program(&rig, BASE, 0xffff, sts & ~VMPT_RTIT_CTL_TRACE_ACTIVE);
	wake(true, 0);
	/* STS_on_CR3 does not affect it, and neither does the TNT buffer. */
	rig_program(&rig, BASE, 0xffff, sts);
	rig_wr(&rig, 0x77d, 0x0d);
	wake(false, 1);
	expect_bytes(BASE, "d4 8f ef cd ab 89 67 00");
	ck_assert_uint_eq(rig_rd(&rig, 0x77d), 0x0d);
	ck_assert_uint_eq(rig_rd(&rig, 0x77c), 0x20007);
	/* LESS_PKTS: PacketEn */
	rig_program(&rig, BASE, 0xffff, sts | VMPT_RTIT_CTL_LESS_PKTS);
	wake(true, 0);
	rig_wr(&rig, 0x769, 1);
	wake(false, 0);
	ck_assert_int_eq(vmpt_rtit_vcpu_hold(&rig.v, true), 0);
	wake(true, 0);
	ck_assert_int_eq(vmpt_rtit_vcpu_hold(&rig.v, false), 0);
	wake(true, 1);
	rig_wr(&rig, 0x769, 9);
	wake(true, 0);
	rig_wr(&rig, 0x769, 1);
	rig.ops.clock = NULL;
	wake(true, 0);
	ck_assert_uint_eq(rig_rd(&rig, 0x772), 7);
}
END_TEST

/* Between the exit's and the entry's packets, and no MTC is from the sleep. */
START_TEST(sleep_in_the_processor)
{
	u64 ctl = RIG_ON | VMPT_RTIT_CTL_STS_EN | VMPT_RTIT_CTL_MTC_EN;

	rig_free(&rig);
	rig_init(&rig, _i ? VMPT_RTIT_BOUNCE : VMPT_RTIT_CONTIGUOUS, 4096);
	rig_program(&rig, BASE, 0xffff, ctl);
	ck_assert_int_eq(vmpt_rtit_vcpu_load(&rig.v), 0);
	rig_enter(&rig, 0x1000);
	vmpt_rtit_unit_jcc(&rig.unit, true, 0x1002, 0x1010);
	rig_exit(&rig, 0x1010);
	ck_assert_int_eq(vmpt_rtit_vcpu_quiet(&rig.v, true), 0);
	rig_time(&rig, 0x12345);
	wake(true, 1);
	ck_assert_uint_eq(rig.unit.regs.ctl, ctl | VMPT_RTIT_CTL_LESS_PKTS);
	ck_assert_int_eq(vmpt_rtit_vcpu_quiet(&rig.v, false), 0);
	rig_enter(&rig, 0x1011);
	rig_exit(&rig, 0x1011);
	ck_assert_int_eq(vmpt_rtit_vcpu_sync(&rig.v), 0);
	expect_bytes(BASE + 9, "84 00 10 03 8c 10 10 d4 8f 45 23 01 00 00 84 11 10 8c 11 10 00");
	ck_assert_uint_eq(rig.unit.regs.ctl, ctl);
}
END_TEST

/* All or nothing while memory is not available yet. */
START_TEST(retry)
{
	struct vmpt_rtit_regs before;

	rig.config.on_unbacked = VMPT_ON_MEM_RETRY;
	rig_again(&rig);
	rig_program(&rig, BASE, 0xffff, RIG_ON | VMPT_RTIT_CTL_CYCLE_ACC);
	rig_wr(&rig, 0x772, 0xffe);
	rig_wr(&rig, 0x77d, 0x0d);
	rig_wr(&rig, 0x76b, 5);
	guest_set_kind(&rig.guest, 0x11, 1, VMPT_MEM_UNBACKED);
	before = rig.v.regs;
	write_cr3(-VMPT_E_RETRY);
	ck_assert(rig_same(&before, &rig.v.regs, sizeof(before)));
	guest_set_kind(&rig.guest, 0x11, 1, VMPT_MEM_OK);
	write_cr3(1);
	expect_bytes(BASE + 0xffe, "0d " PIP " 15");
	/* DROP: dropped, counted, OFFSET advances */
	rig.config.on_unbacked = VMPT_ON_MEM_DROP;
	rig_again(&rig);
	guest_set_kind(&rig.guest, 0x11, 1, VMPT_MEM_UNBACKED);
	rig_program(&rig, BASE, 0xffff, RIG_ON);
	rig_wr(&rig, 0x772, 0xffe);
	write_cr3(1);
	ck_assert_uint_eq(rig_rd(&rig, 0x772), 0x1004);
	ck_assert_uint_eq(rig.v.lost, 4);
	ck_assert_uint_eq(rig.v.events, VMPT_RTIT_EVENT_LOST);
}
END_TEST

START_TEST(failing)
{
	u32 n;
	int ret = -1;

	rig_program(&rig, BASE, 0xffff, RIG_ON | VMPT_RTIT_CTL_CYCLE_ACC | VMPT_RTIT_CTL_MTC_EN);
	ck_assert_int_eq(vmpt_rtit_vcpu_load(&rig.v), 0);
	rig_wr(&rig, 0x77d, 0x0d);
	rig_wr(&rig, 0x76b, 5);
	for (n = 1; ret < 0; n++) {
		rig_forget(&rig);
		rig.fail_at = n;
		ret = vmpt_rtit_vcpu_cr_write(&rig.v, &to_cr3);
		rig.fail_at = 0;
		ck_assert(ret == 1 || ret == -VMPT_E_HARDWARE);
		ck_assert_int_eq(vmpt_rtit_vcpu_sync(&rig.v), 0);
	}
	ck_assert_uint_gt(n, 10);
}
END_TEST

/* ---- against the unit ---- */

static u8 model_bytes[0x10000];

static int model_store(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	(void)opaque;
	ck_assert(pa >= BASE && pa + len <= BASE + sizeof(model_bytes));
	memcpy(model_bytes + (pa - BASE), bytes, len);
	return 0;
}

static const struct vmpt_rtit_sink model_sink = { model_store, NULL };

/* The unit with the vCPU's registers; FilterEn is kept: nothing but PIP and STS. */
static void unit_for(struct vmpt_rtit_unit *unit, const struct vmpt_rtit_regs *regs, u64 cr3)
{
	struct vmpt_rtit_unit_config config = { .sink = &model_sink };
	struct vmpt_rtit_clocks now = { .tsc = 0x7654321fedcba };

	ck_assert_int_eq(vmpt_rtit_unit_init(unit, &config), 0);
	unit->mode = (struct vmpt_rtit_mode){ .cr3 = cr3, .paging = true };
	unit->acbr = 0x12;
	unit->ecbr = 0x0f;
	vmpt_rtit_unit_time(unit, &now);
	unit->regs = *regs;
	unit->filter_en = regs->status & VMPT_RTIT_STATUS_FILTER_EN;
	unit->trigger_en = vmpt_rtit_trigger_en(regs);
	unit->context_en = vmpt_rtit_context_en(regs, 0, cr3);
	unit->packet_en = unit->trigger_en && unit->context_en && unit->filter_en;
}

/* Both write to BASE; the memory there is the same too. */
static void same_bytes(void)
{
	static u8 buf[0x10000];
	size_t i;

	rig_get(&rig, BASE, buf, sizeof(buf));
	for (i = 0; memcmp(buf, model_bytes, sizeof(buf)) && i < sizeof(buf); i++)
		ck_assert_msg(buf[i] == model_bytes[i], "byte %zx: %02x, the unit's %02x", i,
			      buf[i], model_bytes[i]);
}

static u64 pick(struct test_rng *rng, u64 a, u64 b)
{
	return test_random(rng) & 1 ? a : b;
}

static void random_state(struct test_rng *rng, bool cr3_en)
{
	static const u64 masks[] = { 0x3f, 0x7f, 0x1ff, 0xffff, 0xf03f, 0xf7ff };
	u64 bits = test_random(rng), ctl = RIG_ON;

	ctl |= bits & (VMPT_RTIT_CTL_CYCLE_ACC | VMPT_RTIT_CTL_STS_ON_CR3 | VMPT_RTIT_CTL_STS_EN |
		       VMPT_RTIT_CTL_LESS_PKTS | VMPT_RTIT_CTL_MTC_EN);
	if (cr3_en)
		ctl |= VMPT_RTIT_CTL_CR3_EN;
	if (!(bits >> 20 & 7))
		ctl &= ~VMPT_RTIT_CTL_OS;
	rig_program(&rig, BASE, masks[bits >> 24 & 7 ? (bits >> 24 & 7) % 6 : 3], ctl);
	rig_wr(&rig, 0x772, test_random(rng) & 0xffff);
	rig_wr(&rig, 0x769, bits >> 30 & 15 ? 0 : 8);
	/* The event IDs agree with FilterEn: the unit evaluates them again. */
	rig_wr(&rig, 0x76c, VMPT_RTIT_EVENT_OFF << 3 | VMPT_RTIT_EVENT_OFF);
	rig_wr(&rig, 0x77c,
	       (test_random(rng) & 3) << 16 |
		       ((pick(rng, 0x800, 0x3ffc) - test_random(rng) % 24) & 0x3fff));
	rig_wr(&rig, 0x77d, test_random(rng) % 127 + 1);
	rig_wr(&rig, 0x76b, test_random(rng) & vmpt_mask64((unsigned int)(bits >> 40) % 21));
	rig_wr(&rig, 0x76e, test_random(rng) & 0x1ffffffff);
	rig_wr(&rig, 0x76f, test_random(rng) & 0x1ffffffffffff);
	rig_wr(&rig, 0x777, pick(rng, 0x1000, 0x2000));
}

/* One step of the unit's, and the same of the VMM's: its result. */
static int step(struct test_rng *rng, struct vmpt_rtit_unit *unit, u64 cr3)
{
	struct vmpt_rtit_cr_write w = { pick(rng, 0x1000, 0x2000), true, true };
	struct vmpt_rtit_clocks now = unit->now;
	unsigned int what = test_random(rng) & 7;

	if (what < 2) {
		w = (struct vmpt_rtit_cr_write){ cr3, test_random(rng) & 1, false };
		unit->mode.paging = !w.new_paging;
		vmpt_rtit_unit_mov_cr0(unit, 0x1234, w.new_paging);
	} else if (what < 6) {
		vmpt_rtit_unit_mov_cr3(unit, 0x1234, w.new_cr3);
	} else {
		bool context = vmpt_rtit_context_en(&rig.v.regs, 0, cr3);

		vmpt_rtit_unit_wake(unit, &now);
		vmpt_rtit_unit_drain(unit);
		return vmpt_rtit_vcpu_wake(&rig.v, context);
	}
	vmpt_rtit_unit_drain(unit);
	return vmpt_rtit_vcpu_cr_write(&rig.v, &w);
}

/* The bits that a PSB checks are above: 3.3.9 checks one bit only, and so do both. */
START_TEST(as_the_unit)
{
	struct test_rng rng = { 11 };
	unsigned int i, made = 0;

	rig.sts_tsc = 0x7654321fedcba;
	for (i = 0; i < 20000; i++) {
		u64 cr3 = pick(&rng, 0x1000, 0x2000);
		struct vmpt_rtit_unit unit;
		int ret;

		random_state(&rng, !(test_random(&rng) & 7));
		unit_for(&unit, &rig.v.regs, cr3);
		ret = step(&rng, &unit, cr3);
		ck_assert_msg(ret == (unit.bytes ? 1 : 0), "%u: %d", i, ret);
		made += ret > 0;
		ck_assert_msg(rig.v.regs.pkt_cnt == unit.regs.pkt_cnt &&
				      rig.v.regs.tnt_buff == unit.regs.tnt_buff &&
				      rig.v.regs.cntp == unit.regs.cntp &&
				      rig.v.regs.last_lip == unit.regs.last_lip &&
				      rig.v.regs.last_call_nlip == unit.regs.last_call_nlip,
			      "%u: registers", i);
		if (ret)
			ck_assert_uint_eq(rig.v.regs.offset, unit.regs.offset);
		if (!(i % 16))
			same_bytes();
	}
	same_bytes();
	ck_assert_uint_gt(made, 5000);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("rtit-packets");
	TCase *tc = tcase_create("packets");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, pip);
	tcase_add_test(tc, cr0);
	tcase_add_test(tc, not_due);
	tcase_add_test(tc, sts);
	tcase_add_test(tc, sts_rewritten);
	tcase_add_test(tc, tnt_and_cycles);
	tcase_add_test(tc, pkt_mask);
	tcase_add_test(tc, wrap);
	tcase_add_test(tc, in_the_processor);
	tcase_add_test(tc, stopped);
	tcase_add_test(tc, parked);
	tcase_add_test(tc, wakeup);
	tcase_add_loop_test(tc, sleep_in_the_processor, 0, 2);
	tcase_add_test(tc, retry);
	tcase_add_test(tc, failing);
	tcase_add_test(tc, as_the_unit);
	suite_add_tcase(suite, tc);
	return suite;
}
