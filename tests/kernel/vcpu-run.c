// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * One vCPU from its capabilities to its first inserted packet, using only the public header. As
 * freestanding as the library: built into the test's kernel module and, to run it, into a program
 * against the installed library (tests/install).
 */
#ifdef VMPT_INSTALLED
#include <vmpt/vmpt.h>
#else
#include "vmm-lib/vmpt.h"
#endif

#include "vcpu-run.h"

/* 128 bytes of guest memory: the smallest single range. */
#define RAM_GPA	 0x100000u
#define RAM_SIZE 128u

struct ram {
	u8 bytes[RAM_SIZE];
};

static int ram_read(void *opaque, u64 gpa, void *buf, size_t len)
{
	const struct ram *ram = opaque;

	if (gpa < RAM_GPA || gpa >= RAM_GPA + RAM_SIZE || len > RAM_GPA + RAM_SIZE - gpa)
		return VMPT_MEM_UNBACKED;
	memcpy(buf, &ram->bytes[gpa - RAM_GPA], len);
	return 0;
}

static int ram_write(void *opaque, u64 gpa, const void *buf, size_t len)
{
	struct ram *ram = opaque;

	if (gpa < RAM_GPA || gpa >= RAM_GPA + RAM_SIZE || len > RAM_GPA + RAM_SIZE - gpa)
		return VMPT_MEM_UNBACKED;
	memcpy(&ram->bytes[gpa - RAM_GPA], buf, len);
	return 0;
}

static void no_pmi(void *opaque)
{
	(void)opaque;
}

static const struct vmpt_ops ops = {
	.guest_read = ram_read,
	.guest_write = ram_write,
	.inject_pmi = no_pmi,
};

/* A processor with single-range output and all PT features of VMX. */
static void make_host(struct vmpt_caps *host)
{
	memset(host, 0, sizeof(*host));
	host->cpuid.present = 1;
	host->cpuid.maxphyaddr = 46;
	host->cpuid.linear_bits = 48;
	vmpt_pt_cap_set(&host->cpuid, VMPT_CAP_SINGLE_RANGE, 1);
	host->vmx = VMPT_VMX_PT | VMPT_VMX_EPT | VMPT_VMX_CONCEAL_EXEC | VMPT_VMX_CONCEAL_EXIT |
		    VMPT_VMX_CONCEAL_ENTRY | VMPT_VMX_USE_GPA | VMPT_VMX_CLEAR_CTL |
		    VMPT_VMX_LOAD_CTL;
}

int vcpu_run(struct vmpt_vcpu *vcpu)
{
	/* SDM 3 33.4.2.3: CR3[51:5] after NR, which is 0 where VMX is concealed. */
	static const u8 pip[] = { 0x02, 0x43, 0x00, 0x45, 0x23, 0x01, 0x00, 0x00 };
	struct vmpt_cr3_write cr3 = { .new_cr3 = 0x12345000, .cause = VMPT_CR3_MOV };
	struct ram ram = { { 0 } };
	struct vmpt_vmx_plan plan;
	struct vmpt_caps host, guest;
	struct vmpt_config config = {
		.host = &host, .guest = &guest, .plan = &plan, .ops = &ops, .opaque = &ram
	};

	make_host(&host);
	if (vmpt_vmx_plan(&plan, &host, VMPT_USE_GUEST, NULL))
		return 1;
	if (vmpt_caps_offer(&host, &vmpt_policy_all, &guest, NULL))
		return 2;
	if (vmpt_vcpu_init(vcpu, &config, NULL))
		return 3;
	if (vmpt_vcpu_wrmsr(vcpu, VMPT_MSR_RTIT_OUTPUT_BASE, RAM_GPA) ||
	    vmpt_vcpu_wrmsr(vcpu, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, RAM_SIZE - 1) ||
	    vmpt_vcpu_wrmsr(vcpu, VMPT_MSR_RTIT_CTL,
			    VMPT_CTL_TRACE_EN | VMPT_CTL_OS | VMPT_CTL_BRANCH_EN))
		return 4;
	if (vmpt_vcpu_wrmsr(vcpu, VMPT_MSR_RTIT_OUTPUT_BASE, 0) != VMPT_GP)
		return 5; /* not while TraceEn = 1 */
	if (vmpt_vcpu_cr3_write(vcpu, &cr3) != 1)
		return 6;
	return memcmp(ram.bytes, pip, sizeof(pip)) ? 7 : 0;
}
