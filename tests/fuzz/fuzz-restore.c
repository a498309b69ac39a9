// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/state.c: any bytes as the state of a vCPU. A refusal changes nothing and names a field.
 * An accepted state saves to bytes that restore to the same, and the vCPU can be used: MSRs, a PIP,
 * TSC adjustment, reset. The input's first byte chooses the guest's capabilities.
 */
#include "vmm-lib/vmpt.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define CHECK(what)                       \
	do {                              \
		if (!(what))              \
			__builtin_trap(); \
	} while (0)

#define MEMORY 0x20000u

static int read_memory(void *opaque, u64 gpa, void *buf, size_t len)
{
	if (gpa >= MEMORY || len > MEMORY - gpa)
		return VMPT_MEM_UNBACKED;
	memcpy(buf, (u8 *)opaque + gpa, len);
	return 0;
}

static int write_memory(void *opaque, u64 gpa, const void *buf, size_t len)
{
	if (gpa >= MEMORY || len > MEMORY - gpa)
		return VMPT_MEM_UNBACKED;
	memcpy((u8 *)opaque + gpa, buf, len);
	return 0;
}

static void no_pmi(void *opaque)
{
	(void)opaque;
}

static const struct vmpt_ops ops = {
	.guest_read = read_memory,
	.guest_write = write_memory,
	.inject_pmi = no_pmi,
};

/* Bits of @what remove capabilities; 0xff: all of them, and PT. */
static void make(struct vmpt_vcpu *vcpu, u8 what, u8 *memory)
{
	struct vmpt_policy policy = { .hide = (u32)(what & 0xf0) << 1 | (what & 8),
				      .ranges_max = (u8)(4 - (what & 3)),
				      .no_pt = what == 0xff };
	struct vmpt_caps host = { 0 }, guest;
	struct vmpt_vmx_plan plan;
	struct vmpt_config config = { .host = &host,
				      .guest = &guest,
				      .plan = &plan,
				      .ops = &ops,
				      .opaque = memory,
				      .xsave = what & 4 };

	host.cpuid.present = 1;
	host.cpuid.maxphyaddr = 46;
	host.cpuid.linear_bits = 48;
	host.cpuid.leaf14[0] = (struct vmpt_cpuid_regs){ 1, 0x1ff, 0x80000007, 0 };
	host.cpuid.leaf14[1] = (struct vmpt_cpuid_regs){ 0xffff0004, 0xffffffff, 0, 0 };
	host.vmx = 0x1ff;
	CHECK(!vmpt_caps_offer(&host, &policy, &guest, NULL));
	CHECK(!vmpt_vmx_plan(&plan, &host, policy.no_pt ? VMPT_USE_NONE : VMPT_USE_GUEST, NULL));
	CHECK(!vmpt_vcpu_init(vcpu, &config, NULL));
}

/* Not where the search for the position would fail: that takes its whole bound. */
static void adjust(struct vmpt_vcpu *vcpu)
{
	struct vmpt_tsc_change change = { .multiplier = 3ULL << 47, .offset = 5 };

	if (vcpu->scan_set && vcpu->scan_base == vcpu->regs.output_base)
		vmpt_vcpu_tsc_adjust(vcpu, &change, NULL);
}

/* The vCPU continues: whatever its state is, nothing is out of bounds. */
static void use(struct vmpt_vcpu *vcpu)
{
	struct vmpt_cr3_write cr3 = { .old_cr3 = 0x1000, .new_cr3 = 0x2000 };
	u64 value, addr_mask;
	u32 msr;
	int i;

	for (msr = VMPT_MSR_RTIT_OUTPUT_BASE; msr <= VMPT_MSR_RTIT_ADDR3_B; msr++)
		if (!vmpt_vcpu_rdmsr(vcpu, msr, &value))
			CHECK(!vmpt_vcpu_set_msr(vcpu, msr, value));
	addr_mask = ~vmpt_mask64(46);
	CHECK(!(vcpu->regs.output_base & (addr_mask | 0x7f)));
	for (i = 0; i < 4; i++)
		vmpt_vcpu_cr3_write(vcpu, &cr3);
	adjust(vcpu);
	vmpt_vcpu_rsm(vcpu);
	vmpt_vcpu_vmxoff(vcpu);
	vmpt_vcpu_wrmsr(vcpu, VMPT_MSR_RTIT_CTL, vcpu->regs.ctl & ~VMPT_CTL_TRACE_EN);
	vmpt_vcpu_wrmsr(vcpu, VMPT_MSR_RTIT_CTL, vcpu->regs.ctl | VMPT_CTL_TRACE_EN);
	vmpt_vcpu_cr3_write(vcpu, &cr3);
	adjust(vcpu);
	vmpt_vcpu_reset(vcpu, true);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static u8 memory[MEMORY];
	struct vmpt_vcpu vcpu, before, again;
	struct vmpt_refusal why = { 0 };
	u8 one[VMPT_STATE_MAX], two[VMPT_STATE_MAX];
	int n;

	if (!size)
		return 0;
	/* A table of 4-KiB regions with all flags somewhere, and packets in them. */
	memset(memory, 0, sizeof(memory));
	for (n = 0; n < 15; n++)
		memory[0x1001 + 8 * n] = (u8)((n + 2) << 4);
	memory[0x1000 + 8 * 15] = VMPT_TOPA_END;
	memory[0x1001 + 8 * 15] = 0x10;
	memcpy(memory + 0x2000, data, size < 0x1000 ? size : 0x1000);

	make(&vcpu, data[0], memory);
	before = vcpu;
	if (vmpt_vcpu_restore(&vcpu, data + 1, size - 1, &why)) {
		CHECK(why.field && why.rule && !memcmp(&before, &vcpu, sizeof(vcpu)));
		return 0;
	}
	n = vmpt_vcpu_save(&vcpu, one, sizeof(one));
	CHECK(n > 0);
	make(&again, data[0], memory);
	CHECK(!vmpt_vcpu_restore(&again, one, (size_t)n, NULL));
	CHECK(vmpt_vcpu_save(&again, two, sizeof(two)) == n && !memcmp(one, two, (size_t)n));
	use(&vcpu);
	return 0;
}
