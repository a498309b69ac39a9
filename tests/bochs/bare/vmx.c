// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* VMXON, VMCSs from struct vm, running guests. Only the processor checks the controls. */
#include "vmx.h"

#define CR4_VMXE    (1u << 13)
#define MSR_FEATURE 0x3a
#define MSR_EFER    0xc0000080
#define MSR_NEUTRAL 0x174 /* SYSENTER_CS: writing it does nothing here */

static bool on;

bool vmx_is_on(void)
{
	return on;
}

void vmclear(u64 vmcs)
{
	__asm__ volatile("vmclear %0" : : "m"(vmcs) : "cc", "memory");
}

void vmptrld(u64 vmcs)
{
	__asm__ volatile("vmptrld %0" : : "m"(vmcs) : "cc", "memory");
}

void vmx_on(void)
{
	u64 region = VMX_PAGES, feature = msr_read(MSR_FEATURE);
	int ret;

	if (!(feature & 1))
		msr_write(MSR_FEATURE, feature | 5);
	/* CR0.NE and other bits that must be 1 in VMX operation. */
	write_cr0((read_cr0() | msr_read(0x486)) & msr_read(0x487));
	write_cr4((read_cr4() | CR4_VMXE | msr_read(0x488)) & msr_read(0x489));
	memset((void *)VMX_PAGES, 0, 0x5000);
	for (u64 i = 0; i < 3; i++)
		*(u32 *)(VMX_PAGES + 0x1000 * i) = (u32)msr_read(MSR_VMX_BASIC) & 0x7fffffff;
	ret = try_vmxon(&region);
	if (ret)
		wrong("VMXON: %x", (u64)ret);
	on = !ret;
}

void vmx_off(void)
{
	__asm__ volatile("vmxoff" : : : "cc");
	vmx_was_off();
}

void vmx_was_off(void)
{
	write_cr4(read_cr4() & ~(u64)CR4_VMXE);
	on = false;
}

/* Adds the bits that must be 1 by the capability MSR. */
static u32 adjust(u32 msr, u32 wanted)
{
	return wanted | (u32)msr_read(msr);
}

bool vmx_allows(u32 true_msr, u32 bits)
{
	return (msr_read(true_msr) >> 32 & bits) == bits;
}

bool vmx_allows_secondary(u32 bits)
{
	return vmx_allows(MSR_VMX_SECONDARY, bits);
}

void vm_default(struct vm *vm, void (*rip)(void))
{
	memset(vm, 0, sizeof(*vm));
	vm->primary = PRIMARY_SECONDARY | PRIMARY_MSR_BITMAP;
	vm->secondary = SECONDARY_EPT | SECONDARY_UNRESTRICTED;
	vm->exit = EXIT_HOST_64 | EXIT_SAVE_EFER | EXIT_LOAD_EFER;
	vm->entry = ENTRY_GUEST_64 | ENTRY_LOAD_EFER;
	vm->rip = (uintptr_t)rip;
	vm->rsp = GUEST_STACK;
	vm->cr3 = GUEST_CR3;
	vm->regs.in_msr = MSR_NEUTRAL;
	vm->regs.out_msr = MSR_NEUTRAL;
}

static void load_controls(const struct vm *vm)
{
	u32 entry = vm->entry;

	if (vm->mode != VM_64)
		entry &= ~ENTRY_GUEST_64;
	vmwrite(F_PIN, adjust(MSR_VMX_TRUE, vm->pin));
	vmwrite(F_PRIMARY, adjust(MSR_VMX_TRUE + 1, vm->primary));
	vmwrite(F_EXIT, adjust(MSR_VMX_TRUE + 2, vm->exit));
	vmwrite(F_ENTRY, adjust(MSR_VMX_TRUE + 3, entry));
	vmwrite(F_SECONDARY, adjust(MSR_VMX_SECONDARY, vm->secondary));
	vmwrite(F_MSR_BITMAP, MSR_BITMAP);
	vmwrite(F_EPTP, eptp());
	vmwrite(F_ENTRY_LOAD_LIST, (u64)vm->entry_load);
	vmwrite(F_EXIT_STORE_LIST, (u64)vm->exit_store);
	vmwrite(F_EXIT_LOAD_LIST, (u64)vm->exit_load);
	vmwrite(F_ENTRY_LOADS, vm->entry_loads);
	vmwrite(F_EXIT_STORES, vm->exit_stores);
	vmwrite(F_EXIT_LOADS, vm->exit_loads);
	vmwrite(F_ENTRY_EVENT, 0);
	vmwrite(F_EXCEPTIONS, 0);
	vmwrite(F_CR0_MASK, 0);
	vmwrite(F_CR4_MASK, 0);
	/* Fields of controls that a processor may lack: VMWRITE fails then, without harm. */
	vmwrite(F_TSC_OFFSET, vm->tsc_offset);
	vmwrite(F_TSC_MULTIPLIER, vm->tsc_multiplier);
}

static void load_host(void)
{
	vmwrite(F_HOST_CR0, read_cr0());
	vmwrite(F_HOST_CR3, read_cr3());
	vmwrite(F_HOST_CR4, read_cr4());
	for (u64 i = 0; i < 6; i++)
		vmwrite(F_HOST_ES + 2 * i, i == 1 ? SEL_CODE64 : SEL_DATA);
	vmwrite(F_HOST_TR, SEL_TSS);
	for (u64 i = 0; i < 2; i++)
		vmwrite(0x6c06 + 2 * i, 0); /* FS and GS base */
	vmwrite(F_HOST_TR_BASE, (uintptr_t)tss);
	vmwrite(F_HOST_GDTR_BASE, (uintptr_t)gdt);
	vmwrite(F_HOST_IDTR_BASE, (uintptr_t)idt);
	vmwrite(F_HOST_RIP, (uintptr_t)vmexit_at);
	vmwrite(F_HOST_EFER, msr_read(MSR_EFER));
	vmwrite(F_HOST_PAT, msr_read(0x277));
}

struct segment {
	u32 selector, limit, rights;
	u64 base;
};

static void load_segments(const struct vm *vm)
{
	u32 dpl = vm->cpl, code = vm->mode == VM_64 ? 0xa09b : 0xc09b;
	struct segment flat = { SEL_DATA | dpl, 0xffffffff, 0xc093 | dpl << 5, 0 }, s;

	if (vm->mode == VM_16)
		flat = (struct segment){ 0, 0xffff, 0x93, 0 };
	for (u64 i = 0; i < 8; i++) {
		s = flat;
		if (i == 1 && vm->mode == VM_16)
			s = (struct segment){ REAL_CODE >> 4, 0xffff, 0x9b, REAL_CODE };
		else if (i == 1)
			s = (struct segment){ (vm->mode == VM_64 ? SEL_CODE64 : SEL_CODE32) | dpl,
					      0xffffffff, code | dpl << 5, 0 };
		else if (i == 6)
			s = (struct segment){ 0, 0, 0x10000, 0 };
		else if (i == 7)
			s = (struct segment){ SEL_TSS, 0x67, 0x8b, (uintptr_t)tss };
		vmwrite(F_GUEST_ES + 2 * i, s.selector);
		vmwrite(F_GUEST_ES_LIMIT + 2 * i, s.limit);
		vmwrite(F_GUEST_ES_RIGHTS + 2 * i, s.rights);
		vmwrite(F_GUEST_ES_BASE + 2 * i, s.base);
	}
}

static void load_guest(const struct vm *vm)
{
	bool is_64 = vm->mode == VM_64;

	load_segments(vm);
	/* PE, NE, PG; 32-bit guests run without paging, 16-bit ones in real mode. */
	vmwrite(F_GUEST_CR0, 0x20 | (vm->mode != VM_16) | (is_64 ? 0x80010000 : 0));
	vmwrite(F_GUEST_CR4, (is_64 ? 0x20 : 0) | msr_read(0x488));
	vmwrite(F_GUEST_CR3, is_64 ? vm->cr3 : 0);
	vmwrite(F_GUEST_EFER, is_64 ? 0x500 : 0);
	vmwrite(F_GUEST_PAT, msr_read(0x277));
	vmwrite(F_GUEST_DR7, 0x400);
	vmwrite(F_GUEST_DEBUGCTL, 0);
	vmwrite(F_GUEST_GDTR_BASE, (uintptr_t)gdt);
	vmwrite(F_GUEST_GDTR_LIMIT, 47);
	vmwrite(F_GUEST_IDTR_BASE, (uintptr_t)idt);
	vmwrite(F_GUEST_IDTR_LIMIT, 256 * 16 - 1);
	vmwrite(F_GUEST_RIP, vm->mode == VM_16 ? 0 : vm->rip);
	vmwrite(F_GUEST_RSP, vm->rsp);
	vmwrite(F_GUEST_RFLAGS, 2);
	vmwrite(F_GUEST_PENDING_DEBUG, 0);
	vmwrite(F_INTERRUPTIBILITY, 0);
	vmwrite(F_ACTIVITY, 0);
	vmwrite(F_LINK, ~0ULL);
	vmwrite(F_GUEST_RTIT_CTL, vm->rtit_ctl);
}

void vm_load(struct vm *vm)
{
	if (vm->mode == VM_16)
		copy_code(REAL_CODE, guest_16, guest_16_end);
	vmclear(VMCS(vm->vmcs));
	vmptrld(VMCS(vm->vmcs));
	load_controls(vm);
	load_host();
	load_guest(vm);
	vm->regs.launched = 0;
}

void vm_run(struct vm *vm)
{
	u64 launched = vm->regs.launched;

	vm->reason = ~0u;
	vm->error = 0;
	vmx_enter(&vm->regs);
	if (vm->regs.flags) {
		if (vm_failed(vm) == 2)
			vm->error = (u32)vmread(F_INSTRUCTION_ERROR);
		return;
	}
	vm->reason = (u32)vmread(F_REASON);
	vm->qualification = vmread(F_QUALIFICATION);
	vm->physical = vmread(F_GUEST_PHYS);
	vm->event = (u32)vmread(F_EXIT_EVENT);
	/* A late failure leaves the VMCS as it was, clear or launched. */
	if (vm->reason & REASON_ENTRY_FAILED)
		vm->regs.launched = launched;
}

unsigned int vm_failed(const struct vm *vm)
{
	return vm->regs.flags & 1 ? 1 : vm->regs.flags & 0x40 ? 2 : 0;
}

void vm_skip(void)
{
	vmwrite(F_GUEST_RIP, vmread(F_GUEST_RIP) + vmread(F_EXIT_LENGTH));
}

static void execute_cpuid(struct vm_regs *regs)
{
	struct cpuid r = cpuid((u32)regs->rax, (u32)regs->rcx);

	regs->rax = r.eax;
	regs->rbx = r.ebx;
	regs->rcx = r.ecx;
	regs->rdx = r.edx;
	vm_skip();
}

bool vm_run_to_call(struct vm *vm)
{
	for (;;) {
		vm_run(vm);
		if (vm_failed(vm)) {
			wrong("VM entry fails early: %u, instruction error %u", vm_failed(vm),
			      vm->error);
			return false;
		}
		if (vm->reason == REASON_VMCALL)
			return true;
		if (vm->reason != REASON_CPUID) {
			wrong("VM exit: reason %x, qualification %x, guest's RIP %x",
			      (u64)vm->reason, vm->qualification, vmread(F_GUEST_RIP));
			return false;
		}
		execute_cpuid(&vm->regs);
	}
}

u64 vm_call(struct vm *vm, void *function, u64 rdi, u64 rsi)
{
	u64 *stack = (u64 *)(GUEST_STACK - 0x1008);

	*stack = (uintptr_t)guest_call_done;
	vmwrite(F_GUEST_RSP, (u64)stack);
	vmwrite(F_GUEST_RIP, (uintptr_t)function);
	vm->regs.rdi = rdi;
	vm->regs.rsi = rsi;
	return vm_run_to_call(vm) ? vm->regs.rax : ~0ULL;
}

u64 vm_execute(struct vm *vm, void (*code)(void), u64 rcx, u64 rax, u64 rdx)
{
	vmwrite(F_GUEST_RSP, GUEST_STACK);
	vmwrite(F_GUEST_RIP, (uintptr_t)code);
	vm->regs.rcx = rcx;
	vm->regs.rax = rax;
	vm->regs.rdx = rdx;
	return vm_run_to_call(vm) ? vm->regs.rdi : ~0ULL;
}
