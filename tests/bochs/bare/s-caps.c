// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The capability MSRs' bits for PT, on this PC and on PCs configured with fewer features: the
 * latter run only if named.
 */
#include "scenarios.h"
#include "trace.h"

#define BAD_CONTROL 7

/* A control that may not be 1 is refused. */
static void refused(u32 secondary, u32 exit, u32 entry)
{
	struct vm vm;

	vm_default(&vm, guest_empty);
	vm.secondary |= secondary;
	vm.exit |= exit;
	vm.entry |= entry;
	vm_load(&vm);
	vm_run(&vm);
	want("VMfailValid", 2, vm_failed(&vm));
	want("VM-instruction error", BAD_CONTROL, vm.error);
}

static void check(bool misc, bool conceal, bool load_clear, bool gpa)
{
	want("IA32_VMX_MISC[14]", misc, msr_read(MSR_VMX_MISC) >> 14 & 1);
	want("secondary 19", conceal, vmx_allows_secondary(SECONDARY_CONCEAL));
	want("exit 24", conceal, vmx_allows(MSR_VMX_TRUE + 2, EXIT_CONCEAL));
	want("entry 17", conceal, vmx_allows(MSR_VMX_TRUE + 3, ENTRY_CONCEAL));
	want("exit 25", load_clear, vmx_allows(MSR_VMX_TRUE + 2, EXIT_CLEAR_RTIT_CTL));
	want("entry 18", load_clear, vmx_allows(MSR_VMX_TRUE + 3, ENTRY_LOAD_RTIT_CTL));
	want("secondary 24", gpa, vmx_allows_secondary(SECONDARY_PT_USES_GPA));
	/* The older MSRs of exit and entry controls must agree. */
	want("exit 24, 25 in 483H", (u64)conceal | (u64)load_clear << 1,
	     msr_read(0x483) >> (32 + 24) & 3);
	want("entry 17, 18 in 484H", (u64)conceal | (u64)load_clear << 1,
	     msr_read(0x484) >> (32 + 17) & 3);
	if (!conceal) {
		refused(SECONDARY_CONCEAL, 0, 0);
		refused(0, EXIT_CONCEAL, 0);
		refused(0, 0, ENTRY_CONCEAL);
	}
	if (!load_clear) {
		refused(0, EXIT_CLEAR_RTIT_CTL, 0);
		refused(0, 0, ENTRY_LOAD_RTIT_CTL);
	}
	if (!gpa)
		refused(SECONDARY_PT_USES_GPA, 0, 0);
}

static void all(void)
{
	check(true, true, true, true);
}

static void no_load_clear(void)
{
	struct vm vm;

	check(true, true, false, false);
	vm_default(&vm, guest_empty);
	vm_load(&vm);
	want("VMREAD of the guest's CTL", ~0ULL, vmread_or(F_GUEST_RTIT_CTL, ~0ULL));
}

static void no_gpa(void)
{
	check(true, true, true, false);
}

/* 33.2.9.4: VMXON clears TraceEn, and CTL cannot be written until VMXOFF. */
static void no_vmx_pt(void)
{
	u64 region = VMX_PAGES, ctl = CTL_ON;

	check(false, false, false, false);
	want("WRMSR of CTL in VMX operation", FAULT_GP,
	     (u64)try_wrmsr(VMPT_MSR_RTIT_CTL, CTL_BASE));
	want("WRMSR of another", 0, (u64)try_wrmsr(VMPT_MSR_RTIT_STATUS, 0));
	vmx_off();
	trace_prepare();
	write_cr4(read_cr4() | 1 << 13);
	__asm__ volatile("wrmsr\n\t"
			 ".globl vmxon_on, vmxon_at\nvmxon_on:\n\t"
			 "mov %%eax, %%eax\n"
			 "vmxon_at:\n\t"
			 "vmxon %2"
			 :
			 : "a"((u32)ctl), "d"(0), "m"(region), "c"(VMPT_MSR_RTIT_CTL)
			 : "memory", "cc");
	want("CTL after VMXON", CTL_BASE, msr_read(VMPT_MSR_RTIT_CTL));
	want("TraceEn cannot be set", FAULT_GP, (u64)try_wrmsr(VMPT_MSR_RTIT_CTL, CTL_ON));
	__asm__ volatile("vmxoff" : : : "cc");
	want("after VMXOFF it can", 0, (u64)try_wrmsr(VMPT_MSR_RTIT_CTL, CTL_BASE));
	trace_save("vmxon");
}

/* Nor by a list of MSRs (33.2.8.1). */
static void no_vmx_pt_list(void)
{
	static struct vm_list load = { VMPT_MSR_RTIT_CTL, 0, CTL_BASE };
	struct vm vm;

	vm_default(&vm, guest_empty);
	vm.entry_load = &load;
	vm.entry_loads = 1;
	vm_load(&vm);
	vm_run(&vm);
	want("exit reason: CTL in the list", REASON_BAD_LIST | REASON_ENTRY_FAILED, vm.reason);
	want("which entry", 1, vm.qualification);
	/* Another PT MSR is allowed. */
	load.msr = VMPT_MSR_RTIT_CR3_MATCH;
	load.value = 0x5000;
	vm_run(&vm);
	want("exit reason: CR3_MATCH in the list", REASON_VMCALL, vm.reason);
}

const struct scenario caps_scenarios[] = {
	{ "caps-all", all, NEEDS_VMX | NEEDS_PT | NEEDS_NAME },
	{ "caps-no-load-clear", no_load_clear, NEEDS_VMX | NEEDS_PT | NEEDS_NAME },
	{ "caps-no-gpa", no_gpa, NEEDS_VMX | NEEDS_PT | NEEDS_NAME },
	{ "caps-no-vmx-pt", no_vmx_pt, NEEDS_VMX | NEEDS_PT | NEEDS_NAME },
	{ "caps-no-vmx-pt-list", no_vmx_pt_list, NEEDS_VMX | NEEDS_PT | NEEDS_NAME },
	{ 0 }
};
