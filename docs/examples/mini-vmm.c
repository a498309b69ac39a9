// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Everything a VMM does to give a guest Intel PT, in one file; docs/vmm-guide.md explains it. The
 * parts that need VMX are stand-ins, each marked so: the processor is an array of MSRs, the guest a
 * list of the instructions that exit.
 */
#include <stdio.h>

#include <vmpt/arch/pt-packet.h>
#include <vmpt/vmpt.h>

struct vm {
	u8 ram[1 << 20];   /* guest-physical 0 up */
	u64 msr[0x1000];   /* stand-in: the processor's MSRs */
	u64 vmcs_rtit_ctl; /* stand-in: VMCS field 2814H */
	u64 cr3;	   /* the guest's */
};

/* ---- 1. callbacks: guest memory, the PMI, the processor ---- */

static int guest_read(void *opaque, u64 gpa, void *buf, size_t len)
{
	struct vm *vm = opaque;

	if (gpa >= sizeof(vm->ram) || len > sizeof(vm->ram) - gpa)
		return VMPT_MEM_UNBACKED;
	memcpy(buf, vm->ram + gpa, len);
	return 0;
}

static int guest_write(void *opaque, u64 gpa, const void *buf, size_t len)
{
	struct vm *vm = opaque;

	if (gpa >= sizeof(vm->ram) || len > sizeof(vm->ram) - gpa)
		return VMPT_MEM_UNBACKED;
	memcpy(vm->ram + gpa, buf, len);
	return 0;
}

static void inject_pmi(void *opaque)
{
	printf("PMI for the guest with CR3 %llx\n", (unsigned long long)((struct vm *)opaque)->cr3);
}

static int hw_rdmsr(void *opaque, u32 msr, u64 *value) /* stand-in: RDMSR */
{
	*value = ((struct vm *)opaque)->msr[msr];
	return 0;
}

static int hw_wrmsr(void *opaque, u32 msr, u64 value) /* stand-in: WRMSR */
{
	((struct vm *)opaque)->msr[msr] = value;
	return 0;
}

static int set_guest_ctl(void *opaque, u64 ctl) /* stand-in: VMWRITE 2814H */
{
	((struct vm *)opaque)->vmcs_rtit_ctl = ctl;
	return 0;
}

static const struct vmpt_ops ops = { .guest_read = guest_read,
				     .guest_write = guest_write,
				     .inject_pmi = inject_pmi,
				     .hw_rdmsr = hw_rdmsr,
				     .hw_wrmsr = hw_wrmsr,
				     .set_guest_ctl = set_guest_ctl };

static int host_cpuid(void *opaque, u32 leaf, u32 subleaf, struct vmpt_cpuid_regs *regs)
{
	static const struct { /* stand-in: CPUID of a processor with PT */
		u32 leaf, subleaf;
		struct vmpt_cpuid_regs regs;
	} row[] = { { 0, 0, { .eax = 0x15 } },
		    { 1, 0, { .eax = 0x606a0, .ecx = 1 << 5 } },
		    { 7, 0, { .ebx = 1 << 25 } },
		    { 0x14, 0, { 1, 0xf, 7, 0 } },
		    { 0x15, 0, { 2, 168, 24000000, 0 } },
		    { 0x14, 1, { 0x02490002, 0x3f3fff, 0, 0 } },
		    { 0x80000000, 0, { .eax = 0x80000008 } },
		    { 0x80000008, 0, { .eax = 48 << 8 | 46 } } };

	(void)opaque;
	memset(regs, 0, sizeof(*regs));
	for (size_t i = 0; i < VMPT_ARRAY_SIZE(row); i++) {
		if (row[i].leaf == leaf && row[i].subleaf == subleaf)
			*regs = row[i].regs;
	}
	return 0;
}

/* ---- 2. exit handlers ---- */

static void handle_exit(struct vm *vm, struct vmpt_vcpu *vcpu, char insn, u32 index, u64 value)
{
	struct vmpt_cpuid_regs regs = { 0 }; /* the VMM's own answer to CPUID, before PT */
	struct vmpt_cr3_write write = { .old_cr3 = vm->cr3, .new_cr3 = value };
	int ret = 0;

	if (insn == 'C') {
		vmpt_vcpu_cpuid(vcpu, index, 0, &regs);
		printf("CPUID %02Xh: ebx=%08x ecx=%08x\n", index, regs.ebx, regs.ecx);
	} else if (insn == 'R') {
		ret = vmpt_vcpu_rdmsr(vcpu, index, &value);
		printf("RDMSR %03Xh: %llx\n", index, (unsigned long long)value);
	} else if (insn == 'W') {
		ret = vmpt_vcpu_wrmsr(vcpu, index, value);
		printf("WRMSR %03Xh, %llx\n", index, (unsigned long long)value);
	} else { /* MOV CR3 */
		vm->cr3 = value;
		printf("MOV CR3, %llx: %d PIP\n", (unsigned long long)value,
		       vmpt_vcpu_cr3_write(vcpu, &write));
	}
	if (ret == VMPT_GP)
		printf("  inject #GP: %s\n", vmpt_gp_reason(vcpu->gp_why));
}

/* ---- 3. one entry and exit ---- */

static int run_guest(struct vmpt_vcpu *vcpu)
{
	int err = vmpt_vcpu_enter(vcpu);

	if (err) {
		fprintf(stderr, "not entered: %s\n", vmpt_strerror(err));
		return err;
	}
	/* VMLAUNCH or VMRESUME: the guest runs up to its next exit. */
	err = vmpt_vcpu_exit(vcpu, VMPT_EXIT_NORMAL);
	/* The vCPU is out and the MSRs are the host's; but trace is lost or the VMCS is wrong. */
	if (err)
		fprintf(stderr, "the VM is stopped: %s\n", vmpt_strerror(err));
	return err;
}

int main(void)
{
	static const struct {
		char insn;
		u32 index;
		u64 value;
	} guest[] = { { 'C', 0x7, 0 },	      { 'C', 0x14, 0 },	      { 'W', 0x560, 0x4000 },
		      { 'W', 0x570, 0x2105 },			      /* TraceEn OS ToPA BranchEn */
		      { 'M', 0, 0x1000 },     { 'W', 0x560, 0x5000 }, /* not while TraceEn is 1 */
		      { 'M', 0, 0x2000 },     { 'W', 0x570, 0 },      { 'R', 0x561, 0 } };
	static const u64 topa[] = { 0x8000, 0x4000 | VMPT_TOPA_END }; /* the guest's, at 4000H */
	static struct vm vm;
	struct vmpt_cpu_reader cpu = { host_cpuid, hw_rdmsr, &vm };
	struct vmpt_caps host, caps;
	struct vmpt_vmx_plan plan;
	struct vmpt_refusal why = { .field = "" };
	struct vmpt_vcpu vcpu;
	struct vmpt_config config = {
		.host = &host, .guest = &caps, .plan = &plan, .ops = &ops, .opaque = &vm
	};
	struct vmpt_pt_packet packet;
	char text[80];
	size_t i, at;

	memcpy(vm.ram + 0x4000, topa, sizeof(topa));
	vm.msr[0x480] = 1ULL << 55; /* stand-in: a processor with all VMX controls */
	for (i = 0x48b; i <= 0x490; i++)
		vm.msr[i] = 0xffffffffULL << 32;
	vm.msr[0x485] = 1 << 14;

	/* ---- 4. the host, what the guest gets of it, the VMX controls, the vCPU ---- */
	if (vmpt_caps_read(&host, &cpu) || vmpt_caps_offer(&host, &vmpt_policy_all, &caps, &why) ||
	    vmpt_vmx_plan(&plan, &host, VMPT_USE_GUEST, &why) ||
	    vmpt_vcpu_init(&vcpu, &config, &why)) {
		fprintf(stderr, "this host cannot give its guests PT: %s\n", why.field);
		return 1;
	}
	printf("controls: secondary %08x exit %08x entry %08x\n", plan.secondary.value,
	       plan.exit.value, plan.entry.value);

	/* ---- 5. the run loop ---- */
	for (i = 0; i < VMPT_ARRAY_SIZE(guest); i++) {
		if (run_guest(&vcpu))
			return 1;
		handle_exit(&vm, &vcpu, guest[i].insn, guest[i].index, guest[i].value);
	}
	for (at = 0x8000; !vmpt_pt_decode(&packet, vm.ram + at, 16, 0) && packet.kind;
	     at += packet.size) {
		vmpt_pt_print(&packet, text, sizeof(text));
		printf("guest's buffer at %zx: %s\n", at, text);
	}
	return 0;
}
