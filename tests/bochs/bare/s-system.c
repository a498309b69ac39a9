// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * System-wide tracing (SDM 3 33.5.2.1): host, VM entry, guest, VM exit, host, in one trace, under
 * each combination of the conceal controls and with filters that exclude the guest or the host.
 * expect/system has the packets.
 */
#include "scenarios.h"
#include "trace.h"

extern const char vmexit_off[];

/* Letters of the traces' names: s, x, e for the conceal controls that are 1. */
static void conceal(struct vm *vm, unsigned int flags)
{
	if (flags & 1)
		vm->secondary |= SECONDARY_CONCEAL;
	if (flags & 2)
		vm->exit |= EXIT_CONCEAL;
	if (flags & 4)
		vm->entry |= ENTRY_CONCEAL;
}

static void one(struct vm *vm, u64 ctl, const char *name)
{
	trace_prepare();
	if (ctl & VMPT_CTL_ADDR(0)) {
		msr_write(VMPT_MSR_RTIT_ADDR0_A, (uintptr_t)vmx_enter);
		msr_write(VMPT_MSR_RTIT_ADDR0_A + 1, (uintptr_t)vmexit_off + 1);
	}
	if (ctl & VMPT_CTL_CR3_FILTER)
		msr_write(VMPT_MSR_RTIT_CR3_MATCH, vm->regs.rbx);
	vm_load(vm);
	trace_around(vm, ctl);
	want("exit reason", REASON_VMCALL, vm->reason);
	trace_save(name);
}

static void all(const char *name, void (*guest)(void), enum vm_mode mode, u8 cpl, u64 ctl,
		u64 match)
{
	struct vm vm;

	for (unsigned int flags = 0; flags < 8; flags++) {
		vm_default(&vm, guest);
		vm.mode = (u8)mode;
		vm.cpl = cpl;
		vm.regs.rbx = match;
		conceal(&vm, flags);
		one(&vm, ctl, trace_name(name, "sxe", flags));
	}
}

static void system_kernel(void)
{
	all("system", guest_branches, VM_64, 0, CTL_ON, 0);
}

static void system_32(void)
{
	all("system32", guest_32, VM_32, 0, CTL_ON, 0);
}

static void system_16(void)
{
	all("system16", guest_branches, VM_16, 0, CTL_ON, 0);
}

static void system_cr3(void)
{
	all("movcr3", guest_cr3, VM_64, 0, CTL_ON, 0);
}

/* OS = 1, User = 0, the guest at CPL 3. */
static void system_os(void)
{
	all("os", guest_branches, VM_64, 3, CTL_ON & ~VMPT_CTL_USER, 0);
}

static void system_user(void)
{
	all("user", guest_branches, VM_64, 3, CTL_ON & ~VMPT_CTL_OS, 0);
}

static void match_host(void)
{
	all("matchhost", guest_branches, VM_64, 0, CTL_ON | VMPT_CTL_CR3_FILTER, PAGE_TABLES);
}

static void match_guest(void)
{
	all("matchguest", guest_branches, VM_64, 0, CTL_ON | VMPT_CTL_CR3_FILTER, GUEST_CR3);
}

static void no_branches(void)
{
	all("nobranch", guest_branches, VM_64, 0, CTL_ON & ~VMPT_CTL_BRANCH_EN, 0);
}

static void events(void)
{
	all("event", guest_branches, VM_64, 0, CTL_ON | VMPT_CTL_EVENT_EN, 0);
}

/* The IP filter covers only the host's side: vmx_enter(). */
static void filter(void)
{
	all("filter", guest_branches, VM_64, 0, CTL_ON | 1ULL << VMPT_CTL_ADDR_SHIFT(0), 0);
}

/* PSB+ in the guest: whether it shows the VM depends on the first conceal control (Table 33-52). */
static void psb(void)
{
	struct vm vm;

	for (unsigned int flags = 0; flags < 2; flags++) {
		vm_default(&vm, guest_fill);
		conceal(&vm, flags);
		vm.regs.rcx = 1000;
		one(&vm, CTL_ON, trace_name("psb", "sxe", flags));
	}
}

/* A VM exit by an NMI (Table 33-59, case 13). */
static void nmi_exit(void)
{
	struct vm vm;

	vm_default(&vm, guest_nmi);
	vm.pin = PIN_NMI;
	trace_prepare();
	vm_load(&vm);
	trace_around(&vm, CTL_ON | VMPT_CTL_EVENT_EN);
	want("exit reason", REASON_NMI, vm.reason);
	trace_save("event-nmi");
	nmi_unblock();
	want("NMIs of the host", 0, trap_count[2]);
}

/* Inside a trace: VMPTRLD of another VMCS, VMCLEAR of it, VMXOFF. */
static void pointers(void)
{
	u64 second = VMCS(1), first = VMCS(0);

	vmclear(second);
	vmptrld(first);
	trace_prepare();
	__asm__ volatile("wrmsr\n\t"
			 ".globl pointers_on\npointers_on:\n\t"
			 "vmptrld %2\n\t"
			 "vmptrld %3\n\t"
			 "vmclear %3\n\t"
			 "vmxoff\n\t"
			 ".globl pointers_off\npointers_off:\n\t"
			 "xor %%eax, %%eax\n\t"
			 "mov %%eax, %%eax\n\t"
			 ".globl pointers_end\npointers_end:\n\t"
			 "wrmsr"
			 :
			 : "a"((u32)CTL_ON), "d"(0), "m"(second), "m"(first), "c"(VMPT_MSR_RTIT_CTL)
			 : "memory", "cc");
	vmx_was_off();
	trace_save("pointers");
}

const struct scenario system_scenarios[] = {
	{ "system-64", system_kernel, NEEDS_VMX | NEEDS_VPT },
	{ "system-32", system_32, NEEDS_VMX | NEEDS_VPT },
	{ "system-16", system_16, NEEDS_VMX | NEEDS_VPT },
	{ "system-mov-cr3", system_cr3, NEEDS_VMX | NEEDS_VPT },
	{ "system-os", system_os, NEEDS_VMX | NEEDS_VPT },
	{ "system-user", system_user, NEEDS_VMX | NEEDS_VPT },
	{ "system-match-host", match_host, NEEDS_VMX | NEEDS_VPT },
	{ "system-match-guest", match_guest, NEEDS_VMX | NEEDS_VPT },
	{ "system-no-branches", no_branches, NEEDS_VMX | NEEDS_VPT },
	{ "system-events", events, NEEDS_VMX | NEEDS_VPT },
	{ "system-filter", filter, NEEDS_VMX | NEEDS_VPT },
	{ "system-psb", psb, NEEDS_VMX | NEEDS_VPT },
	{ "system-nmi-exit", nmi_exit, NEEDS_VMX | NEEDS_VPT },
	{ "system-pointers", pointers, NEEDS_VMX | NEEDS_VPT },
	{ 0 }
};
