// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * IA32_RTIT_CTL after a VM entry that fails late: the value loaded by then, changed by "clear
 * IA32_RTIT_CTL" and the exit's MSR list, as at a VM exit (SDM 3 26.8). expect/fail-late has the
 * packets.
 */
#include "scenarios.h"
#include "trace.h"

#define NONE ~0ULL

static struct vm_list load[3], load_exit[2];

struct late {
	const char *name;
	u64 before;	/* the host's CTL */
	u64 entry_list; /* CTL in the entry's list before a wrong MSR; NONE: bad guest state */
	bool clear;
	u64 exit_list;
	bool other; /* another MSR of PT in the exit's list, before CTL */
	u64 after;
};

static void set_lists(struct vm *vm, const struct late *late)
{
	unsigned int n = 0;

	if (late->entry_list != NONE) {
		load[0] = (struct vm_list){ VMPT_MSR_RTIT_CTL, 0, late->entry_list };
		load[1] = (struct vm_list){ 0xc0000100, 0, 0 }; /* FS base: not allowed in lists */
		vm->entry_load = load;
		vm->entry_loads = 2;
	}
	if (late->other)
		load_exit[n++] = (struct vm_list){ VMPT_MSR_RTIT_CR3_MATCH, 0, 0 };
	if (late->exit_list != NONE)
		load_exit[n++] = (struct vm_list){ VMPT_MSR_RTIT_CTL, 0, late->exit_list };
	vm->exit_load = load_exit;
	vm->exit_loads = n;
}

static void fail(const struct late *late, bool look)
{
	struct vm vm;
	u64 ctl;

	vm_default(&vm, guest_branches);
	set_lists(&vm, late);
	if (late->clear)
		vm.exit |= EXIT_CLEAR_RTIT_CTL;
	trace_prepare();
	vm_load(&vm);
	if (late->entry_list == NONE)
		vmwrite(F_GUEST_RFLAGS, 0);
	vm.regs.in_msr = VMPT_MSR_RTIT_CTL;
	vm.regs.in_value = late->before;
	/* Read CTL, or write it after the failure so that the trace ends there. */
	if (!look)
		vm.regs.out_msr = VMPT_MSR_RTIT_CTL;
	vm_run(&vm);
	ctl = msr_read(VMPT_MSR_RTIT_CTL);
	(void)try_wrmsr(VMPT_MSR_RTIT_CTL, 0);
	want("VMfail", 0, vm_failed(&vm));
	want("exit reason",
	     REASON_ENTRY_FAILED | (late->entry_list == NONE ? REASON_BAD_STATE : REASON_BAD_LIST),
	     vm.reason);
	if (look && ctl != late->after)
		wrong("%s: IA32_RTIT_CTL: want %x, got %x", late->name, late->after, ctl);
	if (!look)
		trace_save(late->name);
}

static void all(const struct late *late)
{
	for (; late->name; late++) {
		fail(late, true);
		fail(late, false);
	}
}

static void by_lists(void)
{
	static const struct late lists[] = {
		{ "fail-late-begins", CTL_BASE, NONE, false, CTL_ON, false, CTL_ON },
		{ "fail-late-begins-2", CTL_BASE, NONE, false, CTL_ON, true, CTL_ON },
		{ "fail-late-entry", CTL_ON, CTL_BASE, false, NONE, false, CTL_BASE },
		{ "fail-late-entry-2", CTL_ON, CTL_BASE, false, NONE, true, CTL_BASE },
		{ "fail-late-exit", CTL_ON, NONE, false, CTL_BASE, false, CTL_BASE },
		{ "fail-late-vmm", CTL_ON, CTL_BASE, false, CTL_ON, false, CTL_ON },
		{ 0 }
	};

	all(lists);
}

static void by_control(void)
{
	static const struct late clear[] = {
		{ "fail-late-clear", CTL_ON, NONE, true, NONE, false, 0 },
		{ "fail-late-clear-2", CTL_ON, NONE, true, NONE, true, 0 },
		{ "fail-late-again", CTL_ON, NONE, true, CTL_ON, false, CTL_ON },
		{ "fail-late-again-2", CTL_ON, NONE, true, CTL_ON, true, CTL_ON },
		{ "fail-late-0", CTL_BASE, NONE, true, NONE, false, 0 },
		{ 0 }
	};

	all(clear);
}

const struct scenario fail_late_scenarios[] = {
	{ "fail-late-lists", by_lists, NEEDS_VMX | NEEDS_VPT },
	{ "fail-late-control", by_control, NEEDS_VMX | NEEDS_VPT | NEEDS_LOAD_CLEAR },
	{ 0 }
};
