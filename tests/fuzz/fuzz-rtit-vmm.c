// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/rtit*.c: a guest, its VMM's calls and a saved state, all made from the input. The model's
 * unit is the processor: each WRMSR keeps the order of 3.3.2, each of its stores is in memory given
 * to it, and a guest's registers have possible values. The first byte chooses the test.
 */
#include "model/vmpt-rtit.h"
#include "vmm-lib/rtit.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define CHECK(what)                       \
	do {                              \
		if (!(what))              \
			__builtin_trap(); \
	} while (0)

#define MEMORY	   0x8000u
#define GUEST_HPA  0x1000000ULL
#define BOUNCE_HPA 0x8000000ULL
#define BOUNCE	   512u
#define TRIGGER	   VMPT_RTIT_CTL_TRIGGER

struct machine {
	struct vmpt_rtit_unit unit;
	struct vmpt_rtit_vcpu vcpu;
	u8 memory[MEMORY], bounce[BOUNCE];
	u8 kind;   /* of the second half of the guest's memory */
	u64 twist; /* bits flipped in each OFFSET read */
};

static struct machine m;

static int store(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	(void)opaque;
	if (pa >= BOUNCE_HPA && pa + len <= BOUNCE_HPA + BOUNCE) {
		memcpy(m.bounce + (pa - BOUNCE_HPA), bytes, len);
		return 0;
	}
	CHECK(pa >= GUEST_HPA && pa + len <= GUEST_HPA + MEMORY);
	CHECK(!m.kind || pa + len <= GUEST_HPA + MEMORY / 2);
	memcpy(m.memory + (pa - GUEST_HPA), bytes, len);
	return 0;
}

static int hw_rdmsr(void *opaque, u32 msr, u64 *value)
{
	int ret = vmpt_rtit_unit_rdmsr(&m.unit, msr, value);

	(void)opaque;
	if (msr == VMPT_RTIT_MSR_OFFSET)
		*value ^= m.twist;
	return ret;
}

static int hw_wrmsr(void *opaque, u32 msr, u64 value)
{
	u64 old = m.unit.regs.ctl;

	(void)opaque;
	if (msr == VMPT_RTIT_MSR_CTL) {
		CHECK(((old ^ value) & TRIGGER) != TRIGGER);
		CHECK((value & TRIGGER) != VMPT_RTIT_CTL_TRACE_ACTIVE);
		CHECK((value & TRIGGER) != TRIGGER || value & VMPT_RTIT_CTL_DEST);
	}
	CHECK((msr != VMPT_RTIT_MSR_BASE_ADDR && msr != VMPT_RTIT_MSR_LIMIT_MASK) ||
	      (old & TRIGGER) != TRIGGER);
	CHECK(!vmpt_rtit_unit_wrmsr(&m.unit, msr, value, 0));
	return 0;
}

static int kind_of(u64 gpa, size_t len)
{
	if (gpa >= MEMORY || len > MEMORY - gpa)
		return VMPT_MEM_UNBACKED;
	return gpa + len > MEMORY / 2 ? m.kind : 0;
}

static int guest_write(void *opaque, u64 gpa, const void *buf, size_t len)
{
	int kind = kind_of(gpa, len);

	(void)opaque;
	CHECK(len && gpa % 4096 + len <= 4096);
	if (!kind)
		memcpy(m.memory + gpa, buf, len);
	return kind;
}

static int guest_translate(void *opaque, u64 gpa, u64 *hpa, u64 *size)
{
	int kind = kind_of(gpa, 1);

	(void)opaque;
	if (kind)
		return kind;
	*hpa = GUEST_HPA + gpa;
	if (*size > MEMORY / 2 - gpa % (MEMORY / 2))
		*size = MEMORY / 2 - gpa % (MEMORY / 2);
	return 0;
}

static void read_clock(void *opaque, u64 *tsc, u8 *acbr, u8 *ecbr)
{
	(void)opaque;
	*tsc = 0x123456789a;
	*acbr = *ecbr = 0xff;
}

static const struct vmpt_rtit_ops ops = {
	.hw_rdmsr = hw_rdmsr,
	.hw_wrmsr = hw_wrmsr,
	.guest_write = guest_write,
	.guest_translate = guest_translate,
	.clock = read_clock,
};

static const struct vmpt_rtit_sink sink = { store, NULL };

static void start(u8 what)
{
	struct vmpt_rtit_unit_config unit = { .sink = &sink };
	struct vmpt_rtit_config config = {
		.ops = &ops,
		.output = what & 1,
		.bounce = { what & 3 ? m.bounce : NULL, BOUNCE_HPA, BOUNCE },
		.rewrite_clock = what & 1 && what & 4,
		.on_unbacked = what & 8 ? VMPT_ON_MEM_RETRY : VMPT_ON_MEM_DROP,
	};
	u64 ctl;

	memset(&m, 0, sizeof(m));
	m.kind = what & 16 ? VMPT_MEM_MMIO : VMPT_MEM_OK;
	CHECK(!vmpt_rtit_unit_init(&m.unit, &unit));
	vmpt_rtit_unit_vmxon(&m.unit, 0);
	CHECK(!vmpt_rtit_vcpu_init(&m.vcpu, &config));
	CHECK(!vmpt_rtit_vcpu_rdmsr(&m.vcpu, VMPT_RTIT_MSR_CTL, false, &ctl));
}

static void check_regs(void)
{
	unsigned int i;

	for (i = 0; i < VMPT_RTIT_MSRS; i++) {
		const struct vmpt_rtit_reg_desc *d = &vmpt_rtit_reg_table[i];
		u64 value = *vmpt_rtit_reg(&m.vcpu.regs, d->msr);

		CHECK(!(value & ~(d->fields | d->ones | d->ignored)));
		CHECK((value & d->ones) == d->ones);
	}
	CHECK(m.vcpu.regs.tnt_buff && m.vcpu.used <= BOUNCE && m.vcpu.unseen <= m.vcpu.used);
}

static void run(u64 a)
{
	static const struct vmpt_rtit_mode mode = { .cr3 = 0x1000, .paging = true };
	u64 n = a % 300;

	vmpt_rtit_unit_vmentry(&m.unit, a, &mode);
	while (n--) {
		if (a >> (n & 31) & 1)
			vmpt_rtit_unit_jcc(&m.unit, n & 2, a, a + n);
		else
			vmpt_rtit_unit_jmp_indirect(&m.unit, a, a << (n & 31));
	}
	if (a >> 40 & 1)
		vmpt_rtit_unit_overflow(&m.unit);
	if (a >> 41 & 1)
		vmpt_rtit_unit_overflow_resolve(&m.unit, a);
	vmpt_rtit_unit_vmexit(&m.unit, a, &mode);
}

static void migrate(void)
{
	u8 state[VMPT_RTIT_STATE_MAX], again[VMPT_RTIT_STATE_MAX];
	int n = vmpt_rtit_vcpu_save(&m.vcpu, state, sizeof(state));

	if (n < 0)
		return;
	CHECK(!vmpt_rtit_vcpu_restore(&m.vcpu, state, (size_t)n, NULL));
	CHECK(vmpt_rtit_vcpu_save(&m.vcpu, again, sizeof(again)) == n);
	CHECK(!memcmp(state, again, (size_t)n));
}

/* One call by the VMM: @op, and a value from the input. */
static void call(u8 op, u64 value)
{
	struct vmpt_rtit_cr_write w = { value, value >> 1 & 1, value & 1 };
	struct vmpt_rtit_clocks now = m.unit.now;
	u64 got;

	switch (op >> 4) {
	case 0:
		vmpt_rtit_vcpu_load(&m.vcpu);
		break;
	case 1:
		vmpt_rtit_vcpu_unload(&m.vcpu);
		break;
	case 2:
		vmpt_rtit_vcpu_sync(&m.vcpu);
		break;
	case 3:
		if (value & 2)
			vmpt_rtit_vcpu_hold(&m.vcpu, value & 1);
		else
			vmpt_rtit_vcpu_quiet(&m.vcpu, value & 1);
		break;
	case 4:
		if (value & 4)
			vmpt_rtit_vcpu_wake(&m.vcpu, value & 1);
		else
			vmpt_rtit_vcpu_cr_write(&m.vcpu, &w);
		break;
	case 5:
		vmpt_rtit_vcpu_clock(&m.vcpu, value, 7);
		break;
	case 6:
		migrate();
		break;
	case 7:
		now.tsc += value & 0xffff;
		now.cycles += value >> 16 & 0xffff;
		vmpt_rtit_unit_time(&m.unit, &now);
		m.twist = value >> 32 & 0xfff;
		break;
	case 8:
		run(value);
		break;
	case 9:
		vmpt_rtit_vcpu_rdmsr(&m.vcpu, vmpt_rtit_reg_table[op & 15].msr, value & 1, &got);
		break;
	default:
		vmpt_rtit_vcpu_wrmsr(&m.vcpu, vmpt_rtit_reg_table[op & 15].msr, value);
		break;
	}
}

/* A byte with the size, then the value's bytes. */
static void calls(const u8 *data, size_t size)
{
	size_t i, n;

	while (size >= 2) {
		u8 op = data[0];
		u64 value = 0;

		n = data[1] & 7;
		data += 2;
		size -= 2;
		for (i = 0; i < n && i < size; i++)
			value |= (u64)data[i] << 8 * i;
		data += i;
		size -= i;
		call(op, value);
		check_regs();
	}
	vmpt_rtit_vcpu_unload(&m.vcpu);
}

static void restore(const u8 *data, size_t size)
{
	struct vmpt_rtit_vcpu before = m.vcpu;
	struct vmpt_refusal why = { 0 };

	if (vmpt_rtit_vcpu_restore(&m.vcpu, data, size, &why)) {
		CHECK(why.field && why.rule && !memcmp(&before, &m.vcpu, sizeof(before)));
		return;
	}
	check_regs();
	migrate();
	vmpt_rtit_vcpu_load(&m.vcpu);
	run(12345);
	call(0x40, 1);
	vmpt_rtit_vcpu_unload(&m.vcpu);
	check_regs();
}

/*
 * Each byte of @out is that of @in in a packet, but for clocks, or was overwritten. @n: bytes
 * processed.
 */
static void check_rewritten(const u8 *in, const u8 *out, size_t n, bool cycle_acc, u64 offset)
{
	struct vmpt_rtit_packet a, b;
	bool lost = false;
	size_t at = 0;

	while (at < n) {
		if (out[at] == VMPT_RTIT_LOST_MARK) {
			lost = true;
			at++;
			continue;
		}
		CHECK(!vmpt_rtit_decode(&b, out + at, n - at, cycle_acc));
		CHECK(!vmpt_rtit_decode(&a, in + at, n - at, cycle_acc));
		CHECK(a.kind == b.kind && a.size == b.size);
		CHECK(!lost || b.kind == VMPT_RTIT_PSB);
		lost = false;
		if (a.kind == VMPT_RTIT_STS)
			CHECK(b.sts.tsc == ((a.sts.tsc + offset) & vmpt_mask64(40)));
		else if (a.kind == VMPT_RTIT_MTC)
			CHECK(out[at] == in[at]);
		else
			CHECK(!memcmp(in + at, out + at, a.size));
		at += a.size;
	}
}

/* In one piece, in two, and there and back, which gives the same: clocks keep their places. */
static void rewrite(const u8 *data, size_t size)
{
	static u8 buf[4096], cut[sizeof(buf)];
	struct vmpt_rtit_rewrite state = { 0 }, pieces = { 0 }, again = { 0 };
	const u64 offset = 0x12345678000;
	bool cycle_acc = size & 1;
	size_t n, k;

	if (size > sizeof(buf))
		size = sizeof(buf);
	memcpy(buf, data, size);
	memcpy(cut, data, size);
	n = vmpt_rtit_clock_rewrite(&state, buf, size, cycle_acc, offset);
	CHECK(n <= size && size - n < VMPT_RTIT_SIZE_MAX && !memcmp(buf + n, data + n, size - n));
	check_rewritten(data, buf, n, cycle_acc, offset);
	k = vmpt_rtit_clock_rewrite(&pieces, cut, size / 2, cycle_acc, offset);
	k += vmpt_rtit_clock_rewrite(&pieces, cut + k, size - k, cycle_acc, offset);
	CHECK(k == n && state.lost == pieces.lost && state.bytes == pieces.bytes);
	CHECK(!memcmp(buf, cut, size));
	k = vmpt_rtit_clock_rewrite(&again, buf, size, cycle_acc, 0 - offset);
	CHECK(k == n && state.lost == again.lost && state.bytes == again.bytes);
	CHECK(state.bytes || !memcmp(buf, data, size));
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	if (!size)
		return 0;
	start(data[0]);
	switch (data[0] >> 6) {
	case 0:
		restore(data + 1, size - 1);
		break;
	case 1:
		rewrite(data + 1, size - 1);
		break;
	default:
		calls(data + 1, size - 1);
		break;
	}
	return 0;
}
