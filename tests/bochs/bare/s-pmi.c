// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The PMI of a ToPA region with INT, delivered by the LVT as NMI and as vector, in the host and in
 * guests; IA32_PERF_GLOBAL_STATUS[55]; STOP; the TSC in a guest's packets.
 */
#include "arch/pt-packet.h"
#include "scenarios.h"
#include "trace.h"

#define ROUNDS 3000 /* of four bytes: more than one page */

/* A page with @flags, followed by enough room. */
static void prepare(u64 flags)
{
	u64 *table = (u64 *)OUT_TABLE;

	trace_prepare();
	table[0] = OUT | flags;
	table[1] = (OUT + 0x100000) | 8ULL << VMPT_TOPA_SIZE_SHIFT;
	table[2] = OUT_TABLE | VMPT_TOPA_END;
	msr_write(VMPT_MSR_PERF_GLOBAL_RESET, VMPT_GLOBAL_TOPA_PMI);
	want("GLOBAL_STATUS[55] after its reset", 0,
	     msr_read(VMPT_MSR_PERF_GLOBAL_STATUS) & VMPT_GLOBAL_TOPA_PMI);
}

static void fill(void)
{
	msr_write(VMPT_MSR_RTIT_CTL, CTL_ON);
	jump_about(ROUNDS);
	msr_write(VMPT_MSR_RTIT_CTL, CTL_BASE);
}

static void check_status(void)
{
	want("GLOBAL_STATUS[55]", VMPT_GLOBAL_TOPA_PMI,
	     msr_read(VMPT_MSR_PERF_GLOBAL_STATUS) & VMPT_GLOBAL_TOPA_PMI);
}

static void as_nmi(void)
{
	apic_write(APIC_LVTP, LVT_NMI);
	prepare(VMPT_TOPA_INT);
	fill();
	want("NMIs", 1, trap_count[2]);
	check_status();
	/* Delivery sets the mask (SDM 3, local vector table). */
	want("LVT", LVT_NMI | LVT_MASK, apic_read(APIC_LVTP));
	prepare(VMPT_TOPA_INT);
	fill();
	want("NMIs while it is masked", 1, trap_count[2]);
	check_status();
	apic_write(APIC_LVTP, LVT_MASK);
}

static void as_vector(void)
{
	apic_write(APIC_LVTP, PMI_VECTOR);
	prepare(VMPT_TOPA_INT);
	__asm__ volatile("sti");
	fill();
	__asm__ volatile("cli");
	want("interrupts", 1, trap_count[PMI_VECTOR]);
	check_status();
	want("LVT", PMI_VECTOR | LVT_MASK, apic_read(APIC_LVTP));
	apic_write(APIC_LVTP, LVT_MASK);
	/* Without INT there is no PMI. */
	apic_write(APIC_LVTP, LVT_NMI);
	prepare(0);
	fill();
	want("NMIs of a region without INT", 0, trap_count[2]);
	want("GLOBAL_STATUS[55]", 0, msr_read(VMPT_MSR_PERF_GLOBAL_STATUS) & VMPT_GLOBAL_TOPA_PMI);
	apic_write(APIC_LVTP, LVT_MASK);
}

static void stop(void)
{
	apic_write(APIC_LVTP, LVT_NMI);
	prepare(VMPT_TOPA_STOP | VMPT_TOPA_INT);
	fill();
	want("NMIs", 1, trap_count[2]);
	want("STATUS.Stopped", VMPT_STATUS_STOPPED,
	     msr_read(VMPT_MSR_RTIT_STATUS) & (VMPT_STATUS_STOPPED | VMPT_STATUS_ERROR));
	want("nothing after the region", 0, *(u64 *)(OUT + 0x100000));
	apic_write(APIC_LVTP, LVT_MASK);
}

/* In a guest: delivered to it, or a VM exit. */
static void guest(u32 lvt, u32 pin, u32 reason)
{
	struct vm vm;

	apic_write(APIC_LVTP, lvt);
	prepare(VMPT_TOPA_INT);
	vm_default(&vm, guest_fill);
	vm.pin = pin;
	if (pin & PIN_INTERRUPTS)
		vm.exit |= EXIT_ACK_INTERRUPT;
	vm.entry |= ENTRY_LOAD_RTIT_CTL;
	vm.exit |= EXIT_CLEAR_RTIT_CTL;
	vm.rtit_ctl = CTL_ON;
	vm.regs.rcx = ROUNDS;
	vm_load(&vm);
	vm_run(&vm);
	want("exit reason", reason, vm.reason);
	check_status();
	if (pin & PIN_NMI)
		want("what exited", 0x80000202, vm.event);
	if (pin & PIN_INTERRUPTS) {
		want("what exited", 0x80000000 | PMI_VECTOR, vm.event);
		apic_write(APIC_EOI, 0);
	}
	apic_write(APIC_LVTP, LVT_MASK);
}

static void in_guest(void)
{
	guest(LVT_NMI, PIN_NMI, REASON_NMI);
	nmi_unblock();
	want("NMIs of the host", 0, trap_count[2]);
	guest(LVT_NMI, 0, REASON_VMCALL);
	want("NMIs in the guest", 1, trap_count[2]);
	guest(PMI_VECTOR, PIN_INTERRUPTS, REASON_INTERRUPT);
}

/* ---- time ---- */

/* The first packet of @kind. */
static u64 first(u8 kind)
{
	size_t size = trace_size();
	struct vmpt_pt_packet packet;

	for (size_t i = 0; i < size; i += packet.size) {
		if (vmpt_pt_decode(&packet, (const u8 *)OUT + i, size - i, 0))
			break;
		if (packet.kind == kind)
			return packet.val[0];
	}
	wrong("no packet of kind %x", (u64)kind);
	return 0;
}

static u64 scaled(u64 tsc, const struct vm *vm)
{
	u64 multiplier = vm->tsc_multiplier ? vm->tsc_multiplier : 1ULL << 48;
	u64 at = (u64)((unsigned __int128)tsc * multiplier >> 48) + vm->tsc_offset;

	return at & 0xffffffffffffff;
}

/* TMA's CTC is that of the crystal clock, which is not virtualized (33.5.2.1, 33.8.3). */
static void check_crystal(u64 before, u64 after)
{
	struct cpuid r = cpuid(0x15, 0);
	u64 ctc = first(VMPT_PT_TMA);

	if (!r.eax || !r.ebx) {
		wrong("CPUID.15H has no ratio");
		return;
	}
	before = before * r.eax / r.ebx;
	after = after * r.eax / r.ebx;
	if ((u16)(ctc - before) > after - before)
		wrong("TMA's CTC: want %x to %x, got %x", before & 0xffff, after & 0xffff, ctc);
}

static void one_time(u64 offset, u64 multiplier, u64 cbr)
{
	u64 before, after, tsc;
	struct vm vm;

	vm_default(&vm, guest_branches);
	vm.entry |= ENTRY_LOAD_RTIT_CTL;
	vm.exit |= EXIT_CLEAR_RTIT_CTL;
	vm.rtit_ctl = CTL_ON | VMPT_CTL_TSC_EN | VMPT_CTL_MTC_EN;
	vm.primary |= PRIMARY_TSC_OFFSET;
	if (multiplier)
		vm.secondary |= SECONDARY_TSC_SCALING;
	vm.tsc_offset = offset;
	vm.tsc_multiplier = multiplier;
	trace_prepare();
	vm_load(&vm);
	before = rdtsc();
	vm_run(&vm);
	after = rdtsc();
	want("exit reason", REASON_VMCALL, vm.reason);
	tsc = first(VMPT_PT_TSC);
	if (tsc < scaled(before, &vm) || tsc > scaled(after, &vm))
		wrong("TSC packet: want %x to %x, got %x", scaled(before, &vm), scaled(after, &vm),
		      tsc);
	want("CBR", cbr, first(VMPT_PT_CBR));
	check_crystal(before, after);
}

static void time(void)
{
	u64 before, after, tsc, cbr;

	trace_prepare();
	before = rdtsc();
	msr_write(VMPT_MSR_RTIT_CTL, CTL_ON | VMPT_CTL_TSC_EN);
	msr_write(VMPT_MSR_RTIT_CTL, CTL_BASE);
	after = rdtsc();
	tsc = first(VMPT_PT_TSC);
	cbr = first(VMPT_PT_CBR);
	if (tsc < before || tsc > after)
		wrong("the host's TSC packet: want %x to %x, got %x", before, after, tsc);
	one_time(0, 0, cbr);
	one_time(1ULL << 40, 0, cbr);
	if (!vmx_allows_secondary(SECONDARY_TSC_SCALING)) {
		print("note: the processor has no TSC scaling\n");
		return;
	}
	one_time(0, 2ULL << 48, cbr);
	one_time(12345678, 3ULL << 47, cbr);
}

/* Reserved bits of IA32_PERF_GLOBAL_STATUS_RESET and _SET (SDM 4 table 2-2, CPUID leaf 0AH). */
static void reserved(void)
{
	u64 counters = cpuid(10, 0).eax >> 8 & 0xff, fixed = cpuid(10, 0).edx & 0x1f;

	for (u64 bit = 0; bit < 64; bit++) {
		bool there = bit < counters || (bit >= 32 && bit < 32 + fixed) || bit == 55 ||
			     bit == 58 || bit == 59 || bit == 61 || bit == 62;
		int reset = try_wrmsr(VMPT_MSR_PERF_GLOBAL_RESET, 1ULL << bit);
		int set = try_wrmsr(VMPT_MSR_PERF_GLOBAL_SET, 1ULL << bit);

		/* CondChgd can be reset but not set; ASCI (60) exists with SGX. */
		if (reset != (there || bit == 63 ? 0 : FAULT_GP))
			wrong("RESET, bit %u: %x", (unsigned int)bit, (u64)reset);
		if (set != (there ? 0 : FAULT_GP))
			wrong("SET, bit %u: %x", (unsigned int)bit, (u64)set);
	}
	msr_write(VMPT_MSR_PERF_GLOBAL_RESET, VMPT_GLOBAL_TOPA_PMI);
}

const struct scenario pmi_scenarios[] = {
	{ "pmi-reserved", reserved, NEEDS_PT },
	{ "pmi-nmi", as_nmi, NEEDS_PT },
	{ "pmi-vector", as_vector, NEEDS_PT },
	{ "pmi-stop", stop, NEEDS_PT },
	{ "pmi-guest", in_guest, NEEDS_VMX | NEEDS_VPT | NEEDS_LOAD_CLEAR },
	{ "time", time, NEEDS_VMX | NEEDS_VPT | NEEDS_LOAD_CLEAR },
	{ 0 }
};
