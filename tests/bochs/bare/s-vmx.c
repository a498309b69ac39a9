// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* VMX without PT: checks what the other scenarios build on, this program and the PC's VMX. */
#include "scenarios.h"
#include "vmx.h"

extern const char guest_branches_end[], guest_32_end[], real_16_to[];

static void run_to(struct vm *vm, u64 rip)
{
	vm_load(vm);
	if (!vm_run_to_call(vm))
		return;
	want("the guest's RIP", rip, vmread(F_GUEST_RIP));
	want("the guest's RAX", rip - (vm->mode == VM_16 ? 0 : 1), vm->regs.rax);
}

static void guest_64_bit(void)
{
	struct vm vm;

	vm_default(&vm, guest_branches);
	run_to(&vm, (uintptr_t)guest_branches_end);
	vm.cpl = 3;
	run_to(&vm, (uintptr_t)guest_branches_end);
}

static void guest_32_bit(void)
{
	struct vm vm;

	vm_default(&vm, guest_32);
	vm.mode = VM_32;
	run_to(&vm, (uintptr_t)guest_32_end);
}

static void guest_16_bit(void)
{
	struct vm vm;

	vm_default(&vm, NULL);
	vm.mode = VM_16;
	vm_load(&vm);
	if (!vm_run_to_call(&vm))
		return;
	want("the guest's RAX", (uintptr_t)real_16_to - REAL_CODE, vm.regs.rax);
	want("the guest's RIP", (uintptr_t)real_16_to + 1 - REAL_CODE, vmread(F_GUEST_RIP));
}

static void resume(void)
{
	struct vm vm;

	vm_default(&vm, guest_empty);
	vm_load(&vm);
	for (unsigned int i = 0; i < 2; i++) {
		if (!vm_run_to_call(&vm))
			return;
		want("the guest's RIP", (uintptr_t)guest_empty + 3 * i, vmread(F_GUEST_RIP));
		vm_skip();
	}
}

static void calls(void)
{
	u64 value = 0;
	struct vm vm;

	vm_default(&vm, guest_empty);
	vm_load(&vm);
	want("RDMSR in the guest", 0, vm_call(&vm, try_rdmsr, 0x277, (u64)&value));
	want("what it read", msr_read(0x277), value);
	want("a bad WRMSR in the guest", FAULT_GP, vm_call(&vm, try_wrmsr, 0x480, 0));
	want("a bad WRMSR in the host", FAULT_GP, (u64)try_wrmsr(0x480, 0));
}

static void ept(void)
{
	u64 page = SUITE_RAM;
	struct vm vm;

	ept_page(page, page, 0);
	vm_default(&vm, guest_empty);
	vm_load(&vm);
	vmwrite(F_GUEST_RIP, page);
	*(u32 *)page = 0x00c1010f; /* VMCALL */
	vm_run(&vm);
	want("exit reason", REASON_EPT_VIOLATION, vm.reason);
	want("guest-physical address", page, vm.physical);
	want("qualification: a fetch, nothing is allowed", 4, vm.qualification & 0x3f);
	ept_page(page, page, EPT_RWX);
	ept_flush();
	vm_run(&vm);
	want("exit reason with the page", REASON_VMCALL, vm.reason);
}

static void fails_early(void)
{
	struct vm vm;

	vm_default(&vm, guest_empty);
	vm_load(&vm);
	vmwrite(F_HOST_CR4, 0);
	vm_run(&vm);
	want("VMfailValid", 2, vm_failed(&vm));
	want("its error: host state", 8, vm.error);
	vm_load(&vm);
	vmwrite(F_ENTRY, ~0u);
	vm_run(&vm);
	want("its error: controls", 7, vm.error);
}

static void fails_late(void)
{
	static struct vm_list bad = { 0xc0000100, 0, 0 };
	struct vm vm;

	vm_default(&vm, guest_empty);
	vm_load(&vm);
	vmwrite(F_GUEST_RFLAGS, 0);
	vm_run(&vm);
	want("exit reason", REASON_BAD_STATE | REASON_ENTRY_FAILED, vm.reason);
	vm.entry_load = &bad;
	vm.entry_loads = 1;
	vm_load(&vm);
	vm_run(&vm);
	want("exit reason: FS base in the list", REASON_BAD_LIST | REASON_ENTRY_FAILED, vm.reason);
	want("which entry", 1, vm.qualification);
}

static void interrupts(void)
{
	struct vm vm;

	apic_write(APIC_ICR2, 0);
	apic_write(APIC_ICR, 0x4400);
	want("NMIs of the host", 1, trap_count[2]);
	/*
	 * "External-interrupt exiting" ignores RFLAGS.IF: an interrupt held back in root operation
	 * makes a guest exit even if its IF is 0. Without the control the guest runs to its end.
	 */
	vm_default(&vm, guest_fill);
	vm.regs.rcx = 1000000;
	vm.pin = PIN_INTERRUPTS;
	vm.exit |= EXIT_ACK_INTERRUPT;
	vm_load(&vm);
	apic_write(APIC_ICR, 0x40000 | IPI_VECTOR);
	vm_run(&vm);
	want("exit reason", REASON_INTERRUPT, vm.reason);
	want("the interrupt", 0x80000000 | IPI_VECTOR, vm.event);
	apic_write(APIC_EOI, 0);
}

const struct scenario vmx_scenarios[] = { { "vmx-64", guest_64_bit, NEEDS_VMX },
					  { "vmx-32", guest_32_bit, NEEDS_VMX },
					  { "vmx-16", guest_16_bit, NEEDS_VMX },
					  { "vmx-resume", resume, NEEDS_VMX },
					  { "vmx-calls", calls, NEEDS_VMX },
					  { "vmx-ept", ept, NEEDS_VMX },
					  { "vmx-fails-early", fails_early, NEEDS_VMX },
					  { "vmx-fails-late", fails_late, NEEDS_VMX },
					  { "vmx-interrupts", interrupts, NEEDS_VMX },
					  { 0 } };
