// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * VM entries that fail, early and late, in each use of PT (SDM 3 33.5.2.5, Table 33-54).
 * expect/fail has the packets.
 */
#include "scenarios.h"
#include "trace.h"

#define BAD_CONTROL 7
#define BAD_HOST    8

static struct vm_list load[2], load_exit[1];

static void check_early(const struct vm *vm, u32 error)
{
	want("VMfailValid", 2, vm_failed(vm));
	want("VM-instruction error", error, vm->error);
}

static void check_late(const struct vm *vm, u32 reason)
{
	want("VMfail", 0, vm_failed(vm));
	want("exit reason", REASON_ENTRY_FAILED | reason, vm->reason);
}

/* ---- system-wide ---- */

static void system_early(void)
{
	struct vm vm;

	vm_default(&vm, guest_branches);
	trace_prepare();
	vm_load(&vm);
	vmwrite(F_HOST_CR4, 0);
	trace_around(&vm, CTL_ON);
	check_early(&vm, BAD_HOST);
	trace_save("fail-early");
	/* VMRESUME of a VMCS that is not launched: error 5. */
	trace_prepare();
	vm_load(&vm);
	vm.regs.launched = 1;
	trace_around(&vm, CTL_ON);
	check_early(&vm, 5);
	trace_save("fail-resume");
}

static void load_while_tracing(void)
{
	struct vm vm;

	vm_default(&vm, guest_branches);
	vm.entry |= ENTRY_LOAD_RTIT_CTL;
	vm.exit |= EXIT_CLEAR_RTIT_CTL;
	trace_prepare();
	vm_load(&vm);
	trace_around(&vm, CTL_ON);
	check_early(&vm, BAD_CONTROL);
	trace_save("fail-load");
	/* Without the trace the same VMCS is valid. */
	vm.regs.in_value = 0;
	vm_run(&vm);
	want("exit reason", REASON_VMCALL, vm.reason);
}

static void late(const char *name, u64 ctl, bool list)
{
	struct vm vm;

	vm_default(&vm, guest_branches);
	if (list) {
		load[0] = (struct vm_list){ 0xc0000100, 0, 0 }; /* FS base: not allowed in lists */
		vm.entry_load = load;
		vm.entry_loads = 1;
	}
	trace_prepare();
	vm_load(&vm);
	if (!list)
		vmwrite(F_GUEST_RFLAGS, 0);
	trace_around(&vm, ctl);
	check_late(&vm, list ? REASON_BAD_LIST : REASON_BAD_STATE);
	trace_save(name);
}

static void system_late(void)
{
	late("fail-late", CTL_ON, false);
	late("fail-late-list", CTL_ON, true);
	late("fail-late-event", CTL_ON | VMPT_CTL_EVENT_EN, false);
}

/* ---- VMM only ---- */

static void vmm_only(void)
{
	struct vm vm;

	vm_default(&vm, guest_branches);
	load[0] = (struct vm_list){ VMPT_MSR_RTIT_CTL, 0, CTL_BASE };
	load[1] = (struct vm_list){ 0xc0000100, 0, 0 };
	load_exit[0] = (struct vm_list){ VMPT_MSR_RTIT_CTL, 0, CTL_ON };
	vm.entry_load = load;
	vm.entry_loads = 2;
	vm.exit_load = load_exit;
	vm.exit_loads = 1;
	trace_prepare();
	vm_load(&vm);
	trace_around(&vm, CTL_ON);
	check_late(&vm, REASON_BAD_LIST);
	want("which entry", 2, vm.qualification);
	trace_save("fail-vmm-late");
	vmwrite(F_HOST_CR4, 0);
	trace_prepare();
	trace_around(&vm, CTL_ON);
	check_early(&vm, BAD_HOST);
	trace_save("fail-vmm-early");
}

/* ---- VM only ---- */

static void vm_only_one(const char *name, u64 ctl, bool early, u64 rflags)
{
	struct vm vm;

	vm_default(&vm, guest_branches);
	vm.entry |= ENTRY_LOAD_RTIT_CTL;
	vm.exit |= EXIT_CLEAR_RTIT_CTL;
	vm.rtit_ctl = ctl;
	trace_prepare();
	vm_load(&vm);
	vmwrite(F_GUEST_RFLAGS, rflags);
	if (early)
		vmwrite(F_HOST_CR4, 0);
	vm_run(&vm);
	if (early)
		check_early(&vm, BAD_HOST);
	else
		check_late(&vm, REASON_BAD_STATE);
	want("IA32_RTIT_CTL", 0, msr_read(VMPT_MSR_RTIT_CTL));
	want("the guest's CTL is as it was", ctl, vmread(F_GUEST_RTIT_CTL));
	trace_save(name);
}

static void vm_only(void)
{
	vm_only_one("fail-vm-early", CTL_ON, true, 2);
	vm_only_one("fail-vm-late", CTL_ON, false, 0);
	/* Reserved bits of IA32_RTIT_CTL (33.2.7.2): 6, 16, 63 */
	vm_only_one("fail-vm-reserved-6", CTL_ON | 1 << 6, false, 2);
	vm_only_one("fail-vm-reserved-18", CTL_ON | 1 << 18, false, 2);
	vm_only_one("fail-vm-reserved-63", CTL_ON | 1ULL << 63, false, 2);
}

/* "PT uses guest physical addresses" needs EPT, load and clear. */
static void gpa_needs(void)
{
	struct vm vm;

	for (unsigned int lacks = 0; lacks < 4; lacks++) {
		vm_default(&vm, guest_empty);
		vm.secondary |= SECONDARY_PT_USES_GPA;
		vm.entry |= ENTRY_LOAD_RTIT_CTL;
		vm.exit |= EXIT_CLEAR_RTIT_CTL;
		if (lacks == 1)
			vm.secondary &= ~(SECONDARY_EPT | SECONDARY_UNRESTRICTED);
		if (lacks == 2)
			vm.entry &= ~ENTRY_LOAD_RTIT_CTL;
		if (lacks == 3)
			vm.exit &= ~EXIT_CLEAR_RTIT_CTL;
		vm_load(&vm);
		vm_run(&vm);
		if (lacks)
			check_early(&vm, BAD_CONTROL);
		else
			want("exit reason", REASON_VMCALL, vm.reason);
	}
}

const struct scenario fail_scenarios[] = {
	{ "fail-early", system_early, NEEDS_VMX | NEEDS_VPT },
	{ "fail-load", load_while_tracing, NEEDS_VMX | NEEDS_VPT | NEEDS_LOAD_CLEAR },
	{ "fail-late", system_late, NEEDS_VMX | NEEDS_VPT },
	{ "fail-vmm-only", vmm_only, NEEDS_VMX | NEEDS_VPT },
	{ "fail-vm-only", vm_only, NEEDS_VMX | NEEDS_VPT | NEEDS_LOAD_CLEAR },
	{ "fail-gpa-needs", gpa_needs, NEEDS_VMX | NEEDS_VPT | NEEDS_LOAD_CLEAR | NEEDS_GPA },
	{ 0 }
};
