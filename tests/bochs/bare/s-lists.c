// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Other MSRs of PT in the MSR lists of VM entries and exits: like WRMSR, they are allowed if
 * TraceEn is 0 by then, by "clear IA32_RTIT_CTL" or by CTL before them in the list (SDM 3 33.2.8.1,
 * 33.5.2.2). And a VMCS that is no longer current. expect/lists has the packets.
 */
#include "scenarios.h"
#include "trace.h"

#define MATCH_GUEST 0x5000
#define MATCH_HOST  0x6000
#define ELSEWHERE   (OUT + 0x100000)

void traced_jumps(u64 ctl, u64 rounds);

static struct vm_list entry[2], stored[1], loaded[4];

static struct vm_list in_list(u32 msr, u64 value)
{
	return (struct vm_list){ msr, 0, value };
}

/* The bytes in OUT from before the output was redirected. They end with TIP.PGD, which is not 0. */
static void save(const char *name)
{
	size_t size = 0x1000;

	while (size && !((u8 *)OUT)[size - 1])
		size--;
	host_file(name, (const void *)OUT, size);
	want("nothing elsewhere", 0, *(u64 *)ELSEWHERE);
}

/* From loaded[@n] on: redirect the host's output. */
static u32 host_output(u32 n)
{
	loaded[n++] = in_list(VMPT_MSR_RTIT_STATUS, 0);
	loaded[n++] = in_list(VMPT_MSR_RTIT_OUTPUT_BASE, ELSEWHERE);
	loaded[n++] = in_list(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0x80ULL << 32 | 0xfff);
	return n;
}

static void check(const struct vm *vm)
{
	want("exit reason", REASON_VMCALL, vm->reason);
	want("IA32_RTIT_CTL", 0, msr_read(VMPT_MSR_RTIT_CTL));
	want("OUTPUT_BASE", ELSEWHERE, msr_read(VMPT_MSR_RTIT_OUTPUT_BASE));
	want("OUTPUT_MASK_PTRS", 0x80ULL << 32 | 0xfff, msr_read(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS));
}

static void behind_clear(void)
{
	struct vm vm;

	vm_default(&vm, guest_branches);
	vm.entry |= ENTRY_LOAD_RTIT_CTL;
	vm.exit |= EXIT_CLEAR_RTIT_CTL;
	vm.rtit_ctl = CTL_ON;
	vm.exit_load = loaded;
	vm.exit_loads = host_output(0);
	trace_prepare();
	vm_load(&vm);
	vm_run(&vm);
	check(&vm);
	want("the guest's CTL was saved", CTL_ON, vmread(F_GUEST_RTIT_CTL));
	save("list-clear.pt");
}

static void behind_ctl(void)
{
	struct vm vm;

	vm_default(&vm, guest_branches);
	entry[0] = in_list(VMPT_MSR_RTIT_CTL, CTL_ON);
	vm.entry_load = entry;
	vm.entry_loads = 1;
	loaded[0] = in_list(VMPT_MSR_RTIT_CTL, 0);
	vm.exit_load = loaded;
	vm.exit_loads = host_output(1);
	trace_prepare();
	vm_load(&vm);
	vm_run(&vm);
	check(&vm);
	save("list-ctl.pt");
}

/* The host's trace ends by the entry's list, and a filter is loaded; the exit undoes both. */
static void at_entry(void)
{
	struct vm vm;

	vm_default(&vm, guest_branches);
	entry[0] = in_list(VMPT_MSR_RTIT_CTL, CTL_BASE);
	entry[1] = in_list(VMPT_MSR_RTIT_CR3_MATCH, MATCH_GUEST);
	stored[0] = in_list(VMPT_MSR_RTIT_CR3_MATCH, 0);
	loaded[0] = in_list(VMPT_MSR_RTIT_CR3_MATCH, MATCH_HOST);
	loaded[1] = in_list(VMPT_MSR_RTIT_CTL, CTL_ON);
	vm.entry_load = entry;
	vm.exit_store = stored;
	vm.exit_load = loaded;
	vm.entry_loads = vm.exit_loads = 2;
	vm.exit_stores = 1;
	trace_prepare();
	vm_load(&vm);
	trace_around(&vm, CTL_ON);
	want("exit reason", REASON_VMCALL, vm.reason);
	want("CR3_MATCH that the exit stored", MATCH_GUEST, stored[0].value);
	want("CR3_MATCH", MATCH_HOST, msr_read(VMPT_MSR_RTIT_CR3_MATCH));
	trace_save("list-entry");
}

/* Before CTL in the list TraceEn is still 1: fails like WRMSR with #GP. */
static void in_front(void)
{
	struct vm vm;

	vm_default(&vm, guest_branches);
	entry[0] = in_list(VMPT_MSR_RTIT_CR3_MATCH, MATCH_GUEST);
	entry[1] = in_list(VMPT_MSR_RTIT_CTL, CTL_BASE);
	vm.entry_load = entry;
	vm.entry_loads = 2;
	trace_prepare();
	vm_load(&vm);
	trace_around(&vm, CTL_ON);
	want("exit reason", REASON_BAD_LIST | REASON_ENTRY_FAILED, vm.reason);
	want("which entry", 1, vm.qualification);
	want("CR3_MATCH", 0, msr_read(VMPT_MSR_RTIT_CR3_MATCH));
}

/* VMCLEAR of the current VMCS: none is current then, and a PSB+ names none. */
static void cleared(void)
{
	struct vm vm;

	vm_default(&vm, guest_empty);
	vm_load(&vm);
	trace_prepare();
	traced_jumps(CTL_ON, 1);
	trace_save("list-current");
	vmclear(VMCS(0));
	trace_prepare();
	traced_jumps(CTL_ON, 1);
	trace_save("list-cleared");
}

const struct scenario list_scenarios[] = { { "list-clear", behind_clear,
					     NEEDS_VMX | NEEDS_VPT | NEEDS_LOAD_CLEAR },
					   { "list-ctl", behind_ctl, NEEDS_VMX | NEEDS_VPT },
					   { "list-entry", at_entry, NEEDS_VMX | NEEDS_VPT },
					   { "list-in-front", in_front, NEEDS_VMX | NEEDS_VPT },
					   { "list-cleared", cleared, NEEDS_VMX | NEEDS_VPT },
					   { 0 } };
