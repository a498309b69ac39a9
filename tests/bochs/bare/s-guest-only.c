// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Tracing the guest alone (SDM 3 33.5.2.2, Table 33-56 cases 11 and 12), by the controls and by MSR
 * lists, and the host alone. expect/guest-only has the packets.
 */
#include "scenarios.h"
#include "trace.h"

static struct vm_list lists[4];

/* Checks the exit, which must leave @msr in IA32_RTIT_CTL. */
static void check_after(struct vm *vm, u64 msr)
{
	want("exit reason", REASON_VMCALL, vm->reason);
	want("IA32_RTIT_CTL after the exit", msr, msr_read(VMPT_MSR_RTIT_CTL));
}

static void controls(void)
{
	struct vm vm;

	for (unsigned int flags = 0; flags < 8; flags += 7) {
		vm_default(&vm, guest_branches);
		vm.entry |= ENTRY_LOAD_RTIT_CTL | (flags ? ENTRY_CONCEAL : 0);
		vm.exit |= EXIT_CLEAR_RTIT_CTL | (flags ? EXIT_CONCEAL : 0);
		vm.secondary |= flags ? SECONDARY_CONCEAL : 0;
		vm.rtit_ctl = CTL_ON;
		trace_prepare();
		vm_load(&vm);
		vm_run(&vm);
		check_after(&vm, 0);
		want("the guest's CTL was saved", CTL_ON, vmread(F_GUEST_RTIT_CTL));
		trace_save(trace_name("guest", "sxe", flags));
	}
}

/* The second entry: no PSB+, tracing continues where the exit ended it. */
static void again(void)
{
	struct vm vm;

	vm_default(&vm, guest_empty);
	vm.entry |= ENTRY_LOAD_RTIT_CTL;
	vm.exit |= EXIT_CLEAR_RTIT_CTL;
	vm.rtit_ctl = CTL_ON;
	trace_prepare();
	vm_load(&vm);
	vm_run(&vm);
	check_after(&vm, 0);
	vm_skip();
	vm_run(&vm);
	check_after(&vm, 0);
	trace_save("guest-again");
}

static void set_list(unsigned int n, u64 value)
{
	lists[n] = (struct vm_list){ VMPT_MSR_RTIT_CTL, 0, value };
}

static void by_lists(void)
{
	struct vm vm;

	vm_default(&vm, guest_branches);
	set_list(0, CTL_ON);
	set_list(1, 0);
	set_list(2, 0);
	vm.entry_load = &lists[0];
	vm.exit_store = &lists[1];
	vm.exit_load = &lists[2];
	vm.entry_loads = vm.exit_stores = vm.exit_loads = 1;
	trace_prepare();
	vm_load(&vm);
	vm_run(&vm);
	check_after(&vm, 0);
	want("the guest's CTL was stored", CTL_ON, lists[1].value);
	trace_save("guest-lists");
}

static void host_only(void)
{
	struct vm vm;

	vm_default(&vm, guest_branches);
	set_list(0, CTL_BASE);
	set_list(1, CTL_ON);
	vm.entry_load = &lists[0];
	vm.exit_load = &lists[1];
	vm.entry_loads = vm.exit_loads = 1;
	trace_prepare();
	vm_load(&vm);
	trace_around(&vm, CTL_ON);
	check_after(&vm, 0);
	trace_save("host-lists");
}

const struct scenario guest_only_scenarios[] = {
	{ "guest-controls", controls, NEEDS_VMX | NEEDS_VPT | NEEDS_LOAD_CLEAR },
	{ "guest-again", again, NEEDS_VMX | NEEDS_VPT | NEEDS_LOAD_CLEAR },
	{ "guest-lists", by_lists, NEEDS_VMX | NEEDS_VPT },
	{ "host-lists", host_only, NEEDS_VMX | NEEDS_VPT },
	{ 0 }
};
