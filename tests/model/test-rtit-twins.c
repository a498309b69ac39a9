// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * RTIT units in pairs: one takes its fast paths, also those of rtit-fast.h, the other never does,
 * as its flag is cleared before each event. The same random events must give the same registers and
 * bytes; the invariants of a unit are checked after each event.
 */
#include "model/rtit-fast.h"
#include "tests/support/support.h"

#define ROUNDS 200
#define EVENTS 6000
#define BYTES  (1u << 18)

struct twin {
	struct vmpt_rtit_unit unit;
	struct vmpt_rtit_sink sink;
	u8 bytes[BYTES];
	size_t size;
	u64 where;
	bool refuse;
};

static struct twin fast, slow;
static struct test_rng rng;
static u64 cycle_acc;

static u64 random_below(u64 n)
{
	return test_random(&rng) % n;
}

static int take(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	struct twin *twin = opaque;

	if (twin->refuse)
		return -VMPT_E_SPACE;
	if (!len || len > VMPT_RTIT_UNIT_BUFFER || twin->size + len > BYTES)
		ck_abort_msg("%zu bytes for the sink", len);
	memcpy(twin->bytes + twin->size, bytes, len);
	twin->size += len;
	twin->where = twin->where * 31 + pa;
	return 0;
}

/* Few different ones, so that calls, ranges and Last LIP match. */
static u64 random_ip(void)
{
	switch (random_below(4)) {
	case 0:
		return 0x400000 + random_below(64);
	case 1:
		return 0x7fff12340000 + random_below(0x30000);
	case 2:
		return test_random(&rng);
	default:
		return random_below(0x200);
	}
}

/* One event, drawn once for both. */
struct draw {
	unsigned int kind;
	u64 ip, target, value;
	bool taken;
	u32 msr;
	struct vmpt_rtit_mode mode;
	struct vmpt_rtit_far far;
	struct vmpt_rtit_clocks clocks;
};

/* Legal more often than not: CTL and EVENTS mostly enable tracing. */
static void draw_msr(struct draw *d)
{
	d->msr = 0x760 + (u32)random_below(0x20);
	d->value = test_random(&rng) >> random_below(64);
	if (!random_below(3))
		d->msr = VMPT_RTIT_MSR_CTL;
	else if (!random_below(5))
		d->msr = VMPT_RTIT_MSR_EVENTS;
	if (d->msr == VMPT_RTIT_MSR_CTL) {
		d->value = VMPT_RTIT_CTL_TRIGGER | (test_random(&rng) & 0xff9c) | cycle_acc;
		if (!random_below(4))
			d->value &= ~VMPT_RTIT_CTL_TRACE_ACTIVE;
		if (random_below(2)) {
			d->value |= VMPT_RTIT_CTL_OS | VMPT_RTIT_CTL_USER;
			d->value &= ~VMPT_RTIT_CTL_CR3_EN;
		}
	}
	if (d->msr == VMPT_RTIT_MSR_EVENTS)
		d->value = random_below(2) ? 0x37 : random_below(0x40);
	if (d->msr == VMPT_RTIT_MSR_LIMIT_MASK)
		d->value |= VMPT_RTIT_LIMIT_ONES;
	if (d->msr <= VMPT_RTIT_MSR_LIP3)
		d->value = random_ip();
}

static void draw_event(struct draw *d)
{
	d->kind = random_below(2) ? 0 : (unsigned int)random_below(36);
	d->ip = random_below(8) ? random_ip() : fast.unit.regs.lip[random_below(4)];
	d->target = random_ip();
	if (!random_below(4))
		d->target = fast.unit.regs.last_call_nlip & VMPT_RTIT_LIP_MASK;
	d->taken = random_below(2);
	d->mode.cr3 = random_below(3) << 5;
	d->mode.cpl = (u8)random_below(4);
	d->mode.paging = random_below(2);
	d->far = (struct vmpt_rtit_far){ .ip = d->ip, .target = d->target, .mode = d->mode };
	if (random_below(2)) {
		d->far.is_insn = true;
		d->far.prefixes = (u8)random_below(6);
		d->far.insn = d->ip - d->far.prefixes - 1;
	}
	if (d->kind == 26 || d->kind == 28) {
		d->clocks.tsc += random_below(1ULL << random_below(24));
		d->clocks.cycles += random_below(1ULL << random_below(24));
	}
	draw_msr(d);
}

static void play_near(struct vmpt_rtit_unit *unit, const struct draw *d, bool inline_path)
{
	switch (d->kind) {
	case 8:
		(inline_path ? vmpt_rtit_unit_jmp_fast : vmpt_rtit_unit_jmp)(unit, d->ip,
									     d->target);
		break;
	case 9:
		vmpt_rtit_unit_call(unit, d->ip, d->target);
		break;
	case 10:
		vmpt_rtit_unit_call_indirect(unit, d->ip, d->target);
		break;
	case 11:
		vmpt_rtit_unit_jmp_indirect(unit, d->ip, d->target);
		break;
	case 12:
	case 13:
		vmpt_rtit_unit_ret(unit, d->ip, d->target);
		break;
	case 14:
		vmpt_rtit_unit_step(unit, d->ip);
		break;
	default:
		(inline_path ? vmpt_rtit_unit_jcc_fast : vmpt_rtit_unit_jcc)(unit, d->taken, d->ip,
									     d->target);
	}
}

static void play_far(struct vmpt_rtit_unit *unit, const struct draw *d)
{
	switch (d->kind) {
	case 15:
	case 16:
		vmpt_rtit_unit_far(unit, &d->far);
		break;
	case 17:
		vmpt_rtit_unit_mov_cr3(unit, d->ip, d->mode.cr3);
		break;
	case 18:
		vmpt_rtit_unit_mov_cr0(unit, d->ip, d->mode.paging);
		break;
	case 19:
		if (d->taken)
			vmpt_rtit_unit_smi(unit, d->ip);
		break;
	case 20:
	case 21:
		vmpt_rtit_unit_rsm(unit, d->target, &d->mode);
		break;
	case 22:
		if (d->taken)
			vmpt_rtit_unit_vmxon(unit, d->ip);
		break;
	case 23:
		vmpt_rtit_unit_vmxoff(unit, d->ip);
		break;
	case 24:
		vmpt_rtit_unit_vmentry(unit, d->target, &d->mode);
		break;
	default:
		if (d->taken)
			vmpt_rtit_unit_vmexit(unit, d->ip, &d->mode);
	}
}

static int play(struct twin *twin, const struct draw *d, bool inline_path)
{
	struct vmpt_rtit_unit *unit = &twin->unit;

	if (d->kind < 15)
		play_near(unit, d, inline_path);
	else if (d->kind < 26)
		play_far(unit, d);
	else if (d->kind == 26)
		vmpt_rtit_unit_time(unit, &d->clocks);
	else if (d->kind == 27)
		vmpt_rtit_unit_frequency(unit, (u8)d->ip, (u8)d->value);
	else if (d->kind == 28)
		vmpt_rtit_unit_wake(unit, &d->clocks);
	else if (d->kind == 29 && d->taken)
		vmpt_rtit_unit_overflow(unit);
	else if (d->kind < 32)
		vmpt_rtit_unit_overflow_resolve(unit, d->ip);
	else if (d->kind == 32)
		twin->refuse = d->taken && !(d->ip & 6);
	else
		return vmpt_rtit_unit_wrmsr(unit, d->msr, d->value, d->ip);
	return 0;
}

/* No register holds what its own WRMSR would refuse. */
static bool legal(const struct vmpt_rtit_unit *unit)
{
	struct vmpt_rtit_regs copy = unit->regs;
	unsigned int i;

	for (i = 0; i < VMPT_RTIT_MSRS; i++) {
		u32 msr = vmpt_rtit_reg_table[i].msr;

		if (vmpt_rtit_restore_msr(&unit->config.options.rules, &copy, msr,
					  *vmpt_rtit_reg(&copy, msr), NULL))
			return false;
	}
	return true;
}

static bool sane(const struct vmpt_rtit_unit *unit)
{
	unsigned int enables = (unsigned int)unit->filter_en | (unsigned int)unit->context_en << 1 |
			       (unsigned int)unit->trigger_en << 2;

	return unit->used <= VMPT_RTIT_UNIT_BUFFER &&
	       unit->trigger_en == vmpt_rtit_trigger_en(&unit->regs) &&
	       unit->packet_en == (enables == 7) &&
	       (unit->regs.status & ~VMPT_RTIT_STATUS_OVERFLOW) == enables && legal(unit);
}

static bool same_regs(struct vmpt_rtit_regs *a, struct vmpt_rtit_regs *b)
{
	unsigned int i;

	for (i = 0; i < VMPT_RTIT_MSRS; i++)
		if (*vmpt_rtit_reg(a, vmpt_rtit_reg_table[i].msr) !=
		    *vmpt_rtit_reg(b, vmpt_rtit_reg_table[i].msr))
			return false;
	return a->ctl_read == b->ctl_read;
}

static bool same(void)
{
	return same_regs(&fast.unit.regs, &slow.unit.regs) && fast.unit.used == slow.unit.used &&
	       !memcmp(fast.unit.buffer, slow.unit.buffer, fast.unit.used);
}

static void begin(struct twin *twin, const struct vmpt_rtit_unit_options *options)
{
	struct vmpt_rtit_unit_config config = { .options = *options, .sink = &twin->sink };
	u64 ctl;

	memset(twin, 0, sizeof(*twin));
	twin->sink = (struct vmpt_rtit_sink){ .write = take, .opaque = twin };
	ck_assert_int_eq(vmpt_rtit_unit_init(&twin->unit, &config), 0);
	ck_assert_int_eq(vmpt_rtit_unit_rdmsr(&twin->unit, VMPT_RTIT_MSR_CTL, &ctl), 0);
}

/* The number of packets; all bytes must be packets. Cycle_Acc never changes. */
static size_t count_packets(const struct twin *twin)
{
	struct vmpt_rtit_packet pkt;
	size_t at = 0, n;

	for (n = 0; at < twin->size; n++, at += pkt.size)
		if (vmpt_rtit_decode(&pkt, twin->bytes + at, twin->size - at, cycle_acc))
			ck_abort_msg("no packet at %zu", at);
	return n;
}

START_TEST(test_fast_paths)
{
	struct vmpt_rtit_unit_options options = { .errata = 0 };
	struct draw d = { .kind = 0 };
	unsigned int i, plain = 0;

	rng.state = (u64)_i;
	cycle_acc = _i & 1 ? VMPT_RTIT_CTL_CYCLE_ACC : 0;
	if (_i % 3 == 0)
		options.errata = (u32)random_below(0x100);
	options.psb_clears_late = (u8)random_below(5);
	options.pgd_at_disable = random_below(2);
	options.pgd_at_stop = random_below(2);
	options.tnt_before_all = random_below(2);
	options.cycle_rows_exchanged = random_below(2);
	begin(&fast, &options);
	begin(&slow, &options);
	for (i = 0; i < EVENTS; i++) {
		draw_event(&d);
		plain += fast.unit.plain;
		slow.unit.plain = false;
		if (play(&fast, &d, true) != play(&slow, &d, false) || !same() || !sane(&fast.unit))
			ck_abort_msg("event %u, of kind %u", i, d.kind);
	}
	fast.refuse = slow.refuse = false;
	vmpt_rtit_unit_drain(&fast.unit);
	vmpt_rtit_unit_drain(&slow.unit);
	ck_assert_uint_eq(fast.size, slow.size);
	ck_assert_int_eq(memcmp(fast.bytes, slow.bytes, fast.size), 0);
	ck_assert_uint_eq(fast.where, slow.where);
	ck_assert_uint_eq(fast.size, fast.unit.bytes);
	/* The run was not empty. */
	ck_assert_uint_gt(count_packets(&fast), 20);
	ck_assert_uint_gt(plain, 0);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("rtit-twins");
	TCase *tc = test_random_case(s);

	tcase_add_loop_test(tc, test_fast_paths, 1, ROUNDS + 1);
	return s;
}
