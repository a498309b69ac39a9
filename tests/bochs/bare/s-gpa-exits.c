// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The VM exits that PT's output causes (SDM 3 26.5.3): at an entry, in the middle, in HLT, together
 * with an SMI, with a VMM that does not map the page or moves the output; dirty flags and their
 * log, the APIC-access page. Nothing is lost unless the VMM causes it.
 */
#include "gpa.h"

#define ALARM	 20000 /* ticks */
#define LVT	 0x320
#define DIVIDE	 0x3e0
#define INITIAL	 0x380
#define ACCESSED 0x100
#define DIRTY	 0x200
#define EPTP_AD	 0x40
#define LOG	 (LISTS + 0x8000)
#define ENTRIES	 512
#define MANY	 64

void traced_jumps(u64 ctl, u64 rounds);
void jump_about(u64 rounds);
extern const char smm_handler[], smm_handler_end[], jumps_on[];

/* Runs and maps pages until an exit of another kind; returns how many exits there were. */
static unsigned int run(struct vm *vm, u32 reason)
{
	unsigned int exits;

	for (exits = 0; exits < MANY; exits++) {
		vm_run(vm);
		if (vm->reason != REASON_EPT_VIOLATION)
			break;
		want("asynchronous", ASYNCHRONOUS, vm->qualification & (ASYNCHRONOUS | 0x180));
		gpa_mend(vm);
	}
	want("exit reason", reason, vm->reason);
	return exits;
}

/* Runs a function of this program in the guest. */
static void call(struct vm *vm, void *function, u64 rdi, u64 rsi)
{
	u64 *stack = (u64 *)(GUEST_STACK - 0x1008);

	*stack = (uintptr_t)guest_call_done;
	vmwrite(F_GUEST_RSP, (u64)stack);
	vmwrite(F_GUEST_RIP, (uintptr_t)function);
	vm->regs.rdi = rdi;
	vm->regs.rsi = rsi;
}

static void tally(struct gpa_tally *t, u64 tips)
{
	gpa_count(t, trace_size());
	want("TIPs", tips, t->tips);
	want("as many ends as beginnings", t->on, t->off);
}

/* ---- the VMM ---- */

/* The page stays missing for @times entries, and the guest does not advance. */
static void stubborn(unsigned int times, bool lost)
{
	struct gpa_tally t;
	struct vm vm;

	gpa_map(0);
	gpa_prepare(&vm, RANGE);
	for (unsigned int i = 0; i < times; i++) {
		vm_run(&vm);
		want("exit reason", REASON_EPT_VIOLATION, vm.reason);
		want("the guest's RIP", (uintptr_t)guest_fill, vmread(F_GUEST_RIP));
		want("nothing is stored", 0x7fULL | 0xffff,
		     msr_read(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS));
	}
	gpa_map(EPT_RWX);
	want("exits when all is there", 0, run(&vm, REASON_VMCALL));
	gpa_count(&t, trace_size());
	want("TIPs", ROUNDS, t.tips);
	if (lost) {
		want("overflows", 1, t.overflows);
		return;
	}
	want("overflows", 0, t.overflows);
	want("TIP.PGEs", times + 1, t.on);
	want("TIP.PGDs", times + 1, t.off);
}

static void unmended(void)
{
	stubborn(4, false);
	/* More than can be pending: OVF reports the loss. */
	stubborn(200, true);
}

/* Pending output is not written to another place. */
static void moved(void)
{
	struct gpa_tally t;
	struct vm vm;

	gpa_map(0);
	gpa_prepare(&vm, RANGE);
	vm_run(&vm);
	want("exit reason", REASON_EPT_VIOLATION, vm.reason);
	gpa_map(EPT_RWX);
	msr_write(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0x1000ULL << 32 | 0xffff);
	run(&vm, REASON_VMCALL);
	want("the page before", 0, *(u64 *)OUT);
	want("CBR, since STATUS requires no PSB", 0x0302, *(u16 *)(OUT + 0x1000));
	memcpy((void *)OUT, (void *)(OUT + 0x1000), OUT_SIZE - 0x1000);
	gpa_count(&t, trace_size() - 0x1000);
	want("TIPs", ROUNDS, t.tips);
	want("TIP.PGEs", 1, t.on);
}

/* The page of the next byte is unmapped when the guest is entered again. */
static void taken(void)
{
	struct gpa_tally t;
	struct vm vm;

	gpa_map(EPT_RWX);
	gpa_prepare(&vm, RANGE);
	vm.regs.rcx = 100;
	want("exits when all is there", 0, run(&vm, REASON_VMCALL));
	ept_page(G_OUT, 0, 0);
	ept_flush();
	vmwrite(F_GUEST_RIP, (uintptr_t)guest_fill);
	vm.regs.rcx = 100;
	vm_run(&vm);
	want("exit reason", REASON_EPT_VIOLATION, vm.reason);
	want("the guest's RIP", (uintptr_t)guest_fill, vmread(F_GUEST_RIP));
	gpa_mend(&vm);
	want("exits when all is there", 0, run(&vm, REASON_VMCALL));
	tally(&t, 200);
	want("TIP.PGEs", 3, t.on);
}

/* The next page is requested while the current one has room for all that may be pending. */
static void ahead(void)
{
	struct gpa_tally t;
	struct vm vm;
	u64 room;

	gpa_map(0);
	gpa_prepare(&vm, RANGE);
	for (u64 page = 0; page < 9; page++) {
		vm_run(&vm);
		want("exit reason", REASON_EPT_VIOLATION, vm.reason);
		want("page", G_OUT + 0x1000 * page, vm.physical & ~0xfffULL);
		room = 0x1000 * page - (msr_read(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS) >> 32);
		if (page && (room < 0x800 || room > 0x1000))
			wrong("page %x: room before it is %x", page, room);
		gpa_mend(&vm);
	}
	want("exits", 0, run(&vm, REASON_VMCALL));
	tally(&t, ROUNDS);
}

/* ---- the guest ---- */

/* The page is unmapped while the guest runs, as if by another processor. */
static void vanish(bool away, u64 rounds)
{
	ept_page(G_OUT, OUT, away ? 0 : EPT_RWX);
	jump_about(rounds);
}

static void vanishing(void)
{
	struct gpa_tally with, without;
	struct vm vm;

	for (unsigned int away = 0; away < 2; away++) {
		gpa_map(EPT_RWX);
		gpa_prepare(&vm, TOPA);
		call(&vm, vanish, away, 500);
		want("exits", away, run(&vm, REASON_VMCALL));
		gpa_count(away ? &with : &without, trace_size());
	}
	want("TIPs", without.tips, with.tips);
	want("overflows", 0, with.overflows);
	want("TIP.PGEs", 2, with.on);
	want("TIP.PGDs", 2, with.off);
}

/* WRMSR sets TraceEn, and clears it while bytes are pending. */
static void by_wrmsr(void)
{
	struct gpa_tally t;
	struct vm vm;

	gpa_map(0);
	gpa_prepare(&vm, TOPA);
	vmwrite(F_GUEST_RTIT_CTL, CTL_BASE);
	call(&vm, traced_jumps, CTL_ON, 1000);
	vm_run(&vm);
	want("exit reason", REASON_EPT_VIOLATION, vm.reason);
	want("the table", G_TABLE, vm.physical & ~0xfffULL);
	want("a read", 1, vm.qualification & 7);
	want("after WRMSR", (uintptr_t)jumps_on, vmread(F_GUEST_RIP));
	gpa_mend(&vm);
	run(&vm, REASON_VMCALL);
	tally(&t, 1000);
	want("overflows", 0, t.overflows);
	/* The same with a single range and a trace of one round. */
	gpa_map(0);
	gpa_prepare(&vm, RANGE);
	vmwrite(F_GUEST_RTIT_CTL, CTL_BASE & ~(u64)VMPT_CTL_TOPA);
	call(&vm, traced_jumps, CTL_ON & ~(u64)VMPT_CTL_TOPA, 1);
	vm_run(&vm);
	want("after WRMSR", (uintptr_t)jumps_on, vmread(F_GUEST_RIP));
	gpa_mend(&vm);
	want("exits when the page is there", 0, run(&vm, REASON_VMCALL));
	tally(&t, 1);
}

static void alarm(void)
{
	apic_write(DIVIDE, 0xb);
	apic_write(LVT, IPI_VECTOR);
	apic_write(INITIAL, ALARM);
}

/* A sleeping guest stays asleep. */
static void asleep(void)
{
	struct gpa_tally t;
	struct vm vm;

	gpa_map(0);
	gpa_prepare(&vm, RANGE);
	vmwrite(F_PIN, vmread(F_PIN) | PIN_INTERRUPTS);
	vmwrite(F_EXIT, vmread(F_EXIT) | EXIT_ACK_INTERRUPT);
	vmwrite(F_ACTIVITY, 1);
	vmwrite(F_GUEST_RTIT_CTL, vm.rtit_ctl | VMPT_CTL_PWR_EVT_EN);
	vm_run(&vm);
	want("exit reason", REASON_EPT_VIOLATION, vm.reason);
	want("activity state", 1, vmread(F_ACTIVITY));
	gpa_mend(&vm);
	alarm();
	want("exits when the page is there", 0, run(&vm, REASON_INTERRUPT));
	apic_write(APIC_EOI, 0);
	want("the guest's RIP", (uintptr_t)guest_fill, vmread(F_GUEST_RIP));
	tally(&t, 0);
	want("PWREs", 2, t.pwre);
	want("PWRXs", 2, t.pwrx);
}

/*
 * SMI while bytes are pending: SMM's own trace goes elsewhere, and the bytes are still pending
 * after RSM.
 */
static void interrupted(bool away)
{
	ept_page(G_OUT, OUT, away ? 0 : EPT_RWX);
	host_pulse(HOST_SMI);
	jump_about(10);
}

static void by_smi(void)
{
	struct gpa_tally with, without;
	struct vm vm;

	memcpy((void *)SMM_HANDLER, smm_handler, (u64)smm_handler_end - (u64)smm_handler);
	for (unsigned int away = 0; away < 2; away++) {
		gpa_map(EPT_RWX);
		gpa_prepare(&vm, RANGE);
		call(&vm, interrupted, away, 0);
		want("exits", away, run(&vm, REASON_VMCALL));
		gpa_count(away ? &with : &without, trace_size());
	}
	want("TIPs", without.tips, with.tips);
	want("TIP.PGEs without the exit", 2, without.on);
	want("TIP.PGEs", 3, with.on);
	want("TIP.PGDs", 3, with.off);
	want("overflows", 0, with.overflows);
}

/* ---- other features of EPT ---- */

/* Pages of 2 MiB, as for the guest's other memory. */
static void large(void)
{
	struct gpa_tally t;
	struct vm vm;

	gpa_prepare(&vm, RANGE);
	msr_write(VMPT_MSR_RTIT_OUTPUT_BASE, OUT);
	want("exits", 0, run(&vm, REASON_VMCALL));
	tally(&t, ROUNDS);
}

static void dirty(void)
{
	struct vm vm;

	gpa_map(EPT_RWX);
	gpa_prepare(&vm, TOPA);
	vmwrite(F_EPTP, eptp() | EPTP_AD);
	vm.regs.rcx = 100;
	want("exits", 0, run(&vm, REASON_VMCALL));
	want("the table's flags", ACCESSED, ept_entry(G_TABLE) & (ACCESSED | DIRTY));
	want("the first page's", ACCESSED | DIRTY, ept_entry(G_OUT) & (ACCESSED | DIRTY));
	want("the last page's", 0, ept_entry(G_OUT + 0x1000 * (PAGES - 1)) & (ACCESSED | DIRTY));
}

/* How often @page is in the log from entry @from. */
static u64 logged(u64 page, u64 from)
{
	u64 n = 0;

	for (u64 i = from; i < ENTRIES; i++)
		n += ((u64 *)LOG)[i] == page;
	return n;
}

static void pml(void)
{
	struct vm vm;

	if (!vmx_allows_secondary(SECONDARY_PML)) {
		skip("the processor has no page-modification log");
		return;
	}
	memset((void *)LOG, 0, 0x1000);
	gpa_map(EPT_RWX);
	gpa_prepare(&vm, RANGE);
	vmwrite(F_SECONDARY, vmread(F_SECONDARY) | SECONDARY_PML);
	vmwrite(F_EPTP, eptp() | EPTP_AD);
	vmwrite(F_PML_ADDRESS, LOG);
	vmwrite(F_PML_INDEX, 0xffff);
	vm_run(&vm);
	want("exit reason", REASON_PML_FULL, vm.reason);
	want("asynchronous", ASYNCHRONOUS, vm.qualification);
	want("the guest's RIP", (uintptr_t)guest_fill, vmread(F_GUEST_RIP));
	want("not yet dirty", 0, ept_entry(G_OUT) & DIRTY);
	vmwrite(F_PML_INDEX, ENTRIES - 1);
	want("exits", 0, run(&vm, REASON_VMCALL));
	for (u64 i = 0; i < 8; i++)
		want("a page in the log", 1, logged(G_OUT + 0x1000 * i, vmread(F_PML_INDEX) + 1));
	want("a page that was not written", 0, logged(G_OUT + 0x1000 * (PAGES - 1), 0));
}

/* A trace cannot go to the APIC-access page. */
static void apic_access(void)
{
	struct vm vm;

	if (!vmx_allows_secondary(SECONDARY_APIC_ACCESS)) {
		skip("the processor has no APIC-access page");
		return;
	}
	gpa_map(EPT_RWX);
	gpa_prepare(&vm, RANGE);
	vmwrite(F_SECONDARY, vmread(F_SECONDARY) | SECONDARY_APIC_ACCESS);
	vmwrite(F_APIC_ACCESS, OUT);
	vm_run(&vm);
	want("exit reason", REASON_APIC_ACCESS, vm.reason);
	want("a guest-physical address, asynchronous", ASYNCHRONOUS | 15 << 12,
	     vm.qualification & (ASYNCHRONOUS | 15 << 12));
	want("nothing is written", 0, *(u64 *)OUT);
	vmwrite(F_APIC_ACCESS, LOG);
	want("exits when it is elsewhere", 0, run(&vm, REASON_VMCALL));
}

const struct scenario gpa_exit_scenarios[] = { { "gpa-unmended", unmended, GPA_NEEDS },
					       { "gpa-moved", moved, GPA_NEEDS },
					       { "gpa-taken", taken, GPA_NEEDS },
					       { "gpa-ahead", ahead, GPA_NEEDS },
					       { "gpa-vanishing", vanishing, GPA_NEEDS },
					       { "gpa-wrmsr", by_wrmsr, GPA_NEEDS },
					       { "gpa-asleep", asleep, GPA_NEEDS },
					       { "gpa-smi", by_smi, GPA_NEEDS },
					       { "gpa-large", large, GPA_NEEDS },
					       { "gpa-dirty", dirty, GPA_NEEDS },
					       { "gpa-pml", pml, GPA_NEEDS },
					       { "gpa-apic-access", apic_access, GPA_NEEDS },
					       { 0 } };
