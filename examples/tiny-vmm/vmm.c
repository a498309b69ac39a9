// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The least that a VMM does to give a guest Intel PT, on a processor that has all VMX controls for
 * it and whose host does not trace. It takes the place of ../vmm/vmm.c, which handles all that may
 * come: link it with ../vmm/cpu.c (the processor, from libvmpt-model) and ../vmm/main.c (a guest,
 * and the conformance suite, which passes here without a skipped scenario).
 */
#include "vmm.h"

static void *ram(struct vm *vm, u64 gpa, size_t len)
{
	return gpa < VM_RAM && len <= VM_RAM - gpa ? vm->memory + gpa : NULL;
}

static int guest_read(void *opaque, u64 gpa, void *buf, size_t len)
{
	const void *p = ram(opaque, gpa, len);

	return p ? memcpy(buf, p, len), VMPT_MEM_OK : VMPT_MEM_UNBACKED;
}

static int guest_write(void *opaque, u64 gpa, const void *buf, size_t len)
{
	void *p = ram(opaque, gpa, len);

	return p ? memcpy(p, buf, len), VMPT_MEM_OK : VMPT_MEM_UNBACKED;
}

static void inject_pmi(void *opaque)
{
	((struct vm *)opaque)->pmis++;
}

static int hw_rdmsr(void *opaque, u32 msr, u64 *value)
{
	return cpu_rdmsr(&((struct vm *)opaque)->cpu, msr, value) ? -1 : 0;
}

static int hw_wrmsr(void *opaque, u32 msr, u64 value)
{
	return cpu_wrmsr(&((struct vm *)opaque)->cpu, msr, value) ? -1 : 0;
}

static int set_guest_ctl(void *opaque, u64 ctl)
{
	((struct vm *)opaque)->vmcs.guest_rtit_ctl = ctl;
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
	return cpu_cpuid(&((struct vm *)opaque)->cpu, leaf, subleaf, regs);
}

int vm_init(struct vm *vm)
{
	struct vmpt_cpu_reader reader = { host_cpuid, hw_rdmsr, vm };
	int err = vmpt_caps_read(&vm->host, &reader);

	if (!err)
		err = vmpt_caps_offer(&vm->host, &vmpt_policy_all, &vm->guest, NULL);
	if (!err)
		err = vmpt_vmx_plan(&vm->plan, &vm->host, VMPT_USE_GUEST, NULL);
	vm->vmcs.secondary = VMPT_SECONDARY_EPT | vm->plan.secondary.value;
	vm->vmcs.exit = vm->plan.exit.value;
	vm->vmcs.entry = vm->plan.entry.value;
	vm->config = (struct vmpt_config){ .host = &vm->host,
					   .guest = &vm->guest,
					   .plan = &vm->plan,
					   .ops = &ops,
					   .opaque = vm,
					   .xsave = true };
	return err ? err : vmpt_vcpu_init(&vm->vcpu, &vm->config, NULL);
}

int vm_run(struct vm *vm, u32 bytes)
{
	int err = vmpt_vcpu_enter(&vm->vcpu);

	if (err)
		return err;
	cpu_run(&vm->cpu, &vm->vmcs, vm->cr3, bytes); /* VMRESUME, up to the VM exit */
	err = vmpt_vcpu_exit(&vm->vcpu, VMPT_EXIT_NORMAL);
	if (vm->cpu.fault) /* an EPT violation of PT's output */
		vmpt_vcpu_ept_violation(&vm->vcpu, 1 << 16, vm->cpu.gpa, false);
	return err;
}

int vm_cpuid(struct vm *vm, u32 leaf, u32 subleaf, struct vmpt_cpuid_regs *regs)
{
	cpu_cpuid(&vm->cpu, leaf, subleaf, regs);
	vmpt_vcpu_cpuid(&vm->vcpu, leaf, subleaf, regs);
	return 0;
}

int vm_rdmsr(struct vm *vm, u32 msr, u64 *value)
{
	int ret;

	*value = msr == VMPT_MSR_PLATFORM_INFO ? 42 << 8 : 0; /* the VMM's own part */
	ret = vmpt_vcpu_rdmsr(&vm->vcpu, msr, value);
	return ret == -VMPT_E_INVAL ? VMPT_GP : ret; /* this VMM has no other MSRs */
}

int vm_wrmsr(struct vm *vm, u32 msr, u64 value)
{
	int ret = vmpt_vcpu_wrmsr(&vm->vcpu, msr, value);

	return ret == -VMPT_E_INVAL ? VMPT_GP : ret;
}

int vm_mov_cr3(struct vm *vm, u64 cr3)
{
	struct vmpt_cr3_write write = { .old_cr3 = vm->cr3, .new_cr3 = cr3, .cause = VMPT_CR3_MOV };
	int ret = vmpt_vcpu_cr3_write(&vm->vcpu, &write);

	vm->cr3 = cr3;
	return ret < 0 ? ret : 0;
}

int vm_migrate(struct vm *vm)
{
	u8 state[VMPT_STATE_MAX];
	int len = vmpt_vcpu_save(&vm->vcpu, state, sizeof(state));
	int err = len < 0 ? len : vmpt_vcpu_init(&vm->vcpu, &vm->config, NULL);

	return err ? err : vmpt_vcpu_restore(&vm->vcpu, state, (size_t)len, NULL);
}

bool vm_nmi(struct vm *vm)
{
	return vmpt_vcpu_pmi_owner(&vm->vcpu) == VMPT_OWNED_BY_HOST;
}

void vm_memory_moves(struct vm *vm, u64 gpa, u64 size)
{
	(void)vm, (void)gpa, (void)size; /* the processor uses EPT: nothing of PT's to change */
}
