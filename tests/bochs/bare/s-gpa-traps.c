// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The VM exits of PT's output together with other events between two instructions: a single step,
 * the monitor trap flag. And output that is pending for one guest must not go to another.
 */
#include "gpa.h"

#define TF	    0x100
#define DB	    (1u << 1)
#define SINGLE_STEP (1u << 14)

/* The guest is WRMSR that sets TraceEn, then JMP, XOR, VMCALL. */
static void prepare(struct vm *vm, bool there)
{
	gpa_map(there ? EPT_RWX : 0);
	gpa_prepare(vm, RANGE);
	vmwrite(F_GUEST_RTIT_CTL, CTL_BASE & ~(u64)VMPT_CTL_TOPA);
	vmwrite(F_GUEST_RIP, (uintptr_t)guest_wrmsr);
	vm->regs.rcx = VMPT_MSR_RTIT_CTL;
	vm->regs.rax = CTL_ON & ~(u64)VMPT_CTL_TOPA;
	vm->regs.rdx = 0;
}

/* Counts the exits for @reason until the VMCALL; @pending: debug traps pending at the output's. */
static unsigned int count(struct vm *vm, u32 reason, bool there, u64 pending)
{
	unsigned int traps = 0, exits = 0;

	for (unsigned int i = 0; i < 16; i++) {
		vm_run(vm);
		if (vm->reason == REASON_VMCALL)
			break;
		if (vm->reason == REASON_EPT_VIOLATION) {
			exits++;
			want("pending debug traps", pending, vmread(F_GUEST_PENDING_DEBUG));
			gpa_mend(vm);
			continue;
		}
		if (!want("exit reason", reason, vm->reason))
			return 0;
		traps++;
	}
	want("exits of the output", !there, exits);
	return traps;
}

static void single_step(void)
{
	struct vm vm;

	for (unsigned int there = 0; there < 2; there++) {
		prepare(&vm, there);
		vmwrite(F_GUEST_RFLAGS, 2 | TF);
		vmwrite(F_EXCEPTIONS, DB);
		/* After WRMSR, JMP and XOR */
		want("single steps", 3, count(&vm, REASON_NMI, there, SINGLE_STEP));
	}
}

static void monitor_trap(void)
{
	struct vm vm;

	for (unsigned int there = 0; there < 2; there++) {
		prepare(&vm, there);
		vmwrite(F_PRIMARY, vmread(F_PRIMARY) | PRIMARY_MONITOR_TRAP);
		want("monitor trap exits", 3, count(&vm, REASON_MONITOR_TRAP, there, 0));
	}
}

/*
 * A guest is discarded while bytes are pending, and another one has its VMCS in the same page and
 * its output at the same address. Or it is the same guest, as if moved to another processor.
 */
static void successor(bool same)
{
	u64 base = G_OUT, status;
	struct gpa_tally t;
	struct vm vm;

	gpa_map(0);
	gpa_prepare(&vm, RANGE);
	vm_run(&vm);
	want("exit reason", REASON_EPT_VIOLATION, vm.reason);
	status = msr_read(VMPT_MSR_RTIT_STATUS);
	vmclear(VMCS(0));
	gpa_map(EPT_RWX);
	if (same) {
		vmptrld(VMCS(0));
		vm.regs.launched = 0;
	} else {
		memset((void *)(VMCS(0) + 4), 0, 0xffc);
		gpa_prepare(&vm, RANGE);
		status = 0;
	}
	msr_write(VMPT_MSR_RTIT_OUTPUT_BASE, base);
	msr_write(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0xffff);
	msr_write(VMPT_MSR_RTIT_STATUS, status);
	vm_run(&vm);
	want("exit reason", REASON_VMCALL, vm.reason);
	want("PSB at the beginning", 0x8202820282028202, *(u64 *)OUT);
	gpa_count(&t, trace_size());
	want("TIPs", ROUNDS, t.tips);
	want("TIP.PGEs", 1 + same, t.on);
	want("TIP.PGDs", 1 + same, t.off);
}

static void another(void)
{
	successor(false);
	successor(true);
}

const struct scenario gpa_trap_scenarios[] = { { "gpa-single-step", single_step, GPA_NEEDS },
					       { "gpa-monitor-trap", monitor_trap, GPA_NEEDS },
					       { "gpa-another", another, GPA_NEEDS },
					       { 0 } };
