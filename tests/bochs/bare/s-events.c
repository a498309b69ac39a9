// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Events one by one: INT n, #PF, changes of RFLAGS.IF, the end of a sleep by a VM exit, real mode
 * with an odd CS, the status of a ToPA PMI at RESET. expect/events has the packets.
 */
#include "arch/pt-packet.h"
#include "scenarios.h"
#include "trace.h"

#define NOTHING	     0x123456789abcULL /* no page */
#define TOPA_PMI     (1ULL << 55)
#define WAKE_TIMER   2 /* Table 33-44 */
#define STATUS_SET   0x391
#define STATUS_RESET 0x390

void traced_int(u64 ctl);
void traced_if(u64 ctl);
void traced_psb_if(u64 ctl);
void traced_fault(u64 ctl, u64 nothing);

/* Calls @take for each packet of @kind in the trace. */
static unsigned int each(u8 kind, void (*take)(const struct vmpt_pt_packet *packet))
{
	struct vmpt_pt_packet packet;
	unsigned int n = 0;

	for (u64 i = 0, size = trace_size(); i < size; i += packet.size) {
		if (vmpt_pt_decode(&packet, (const u8 *)OUT + i, size - i, 0)) {
			wrong("no packet at %x", i);
			return n;
		}
		if (packet.kind != kind)
			continue;
		take(&packet);
		n++;
	}
	return n;
}

/* Table 33-55, case 13: INT n's source IP is its own address. */
static void soft_int(void)
{
	trace_prepare();
	traced_int(CTL_ON);
	want("how often", 1, trap_count[2]);
	trace_save("int");
	trace_prepare();
	traced_int(CTL_ON | VMPT_CTL_EVENT_EN);
	trace_save("int-event");
}

static void page_fault(void)
{
	trace_prepare();
	traced_fault(CTL_ON, NOTHING);
	trace_save("fault");
	trace_prepare();
	traced_fault(CTL_ON | VMPT_CTL_EVENT_EN, NOTHING);
	trace_save("fault-event");
}

/* Appends a bit for each MODE.Exec that differs from the one before. */
static u64 flags;

static void take_flag(const struct vmpt_pt_packet *packet)
{
	if ((flags & 1) != packet->exec.rflags_if)
		flags = flags << 1 | packet->exec.rflags_if;
}

static void interrupt_flag(void)
{
	trace_prepare();
	traced_if(CTL_ON | VMPT_CTL_EVENT_EN);
	flags = 2;
	each(VMPT_PT_MODE_EXEC, take_flag);
	want("RFLAGS.IF in MODE.Exec", 0x2a, flags); /* 0 1 0 1 0 after the first 1 */
	trace_save("if");
	/* Without EventEn a change of it makes no packet … */
	trace_prepare();
	traced_if(CTL_ON);
	flags = 2;
	each(VMPT_PT_MODE_EXEC, take_flag);
	want("RFLAGS.IF where PacketEn became 1", 2, flags);
	trace_save("if-0");
	/* … but all MODE.Execs have it, here that of the PSB+ (Table 33-26). */
	trace_prepare();
	traced_psb_if(CTL_ON);
	msr_write(VMPT_MSR_RTIT_STATUS, 2040ULL << 32); /* due after the enabling's 13 bytes */
	traced_psb_if(CTL_ON);
	flags = 2;
	each(VMPT_PT_MODE_EXEC, take_flag);
	want("RFLAGS.IF in the PSB+", 5, flags);
	trace_save("if-psb");
}

static void take_timer(const struct vmpt_pt_packet *packet)
{
	want("PWRX's reason", WAKE_TIMER, packet->pwrx.wake_reason);
}

/* The preemption timer ends a sleeping guest. */
static void sleep_exit(void)
{
	struct vm vm;

	vm_default(&vm, guest_hlt);
	vm.pin = PIN_PREEMPTION_TIMER;
	trace_prepare();
	vm_load(&vm);
	vmwrite(F_PREEMPTION_TIMER, 1000);
	trace_around(&vm, CTL_ON | VMPT_CTL_PWR_EVT_EN);
	want("exit reason", REASON_PREEMPTION, vm.reason);
	want("PWRXs", 1, each(VMPT_PT_PWRX, take_timer));
	trace_save("sleep-timer");
}

/* In real mode CPL is 0, whatever CS's selector has in bits 1:0. */
static void real_mode(void)
{
	struct vm vm;

	vm_default(&vm, guest_branches);
	vm.mode = VM_16;
	trace_prepare();
	vm_load(&vm);
	vmwrite(F_GUEST_ES + 2, REAL_CODE >> 4 | 3);
	trace_around(&vm, CTL_ON & ~VMPT_CTL_USER);
	want("exit reason", REASON_VMCALL, vm.reason);
	trace_save("real-mode");
}

static void status(void)
{
	msr_write(STATUS_SET, TOPA_PMI);
	want("IA32_PERF_GLOBAL_STATUS", TOPA_PMI, msr_read(VMPT_MSR_PERF_GLOBAL_STATUS) & TOPA_PMI);
	machine_reset();
	want("after RESET", 0, msr_read(VMPT_MSR_PERF_GLOBAL_STATUS));
	msr_write(STATUS_RESET, TOPA_PMI);
}

const struct scenario event_scenarios[] = { { "event-int", soft_int, NEEDS_PT },
					    { "event-fault", page_fault, NEEDS_PT },
					    { "event-if", interrupt_flag, NEEDS_PT },
					    { "event-sleep", sleep_exit, NEEDS_VMX | NEEDS_VPT },
					    { "event-real-mode", real_mode, NEEDS_VMX | NEEDS_VPT },
					    { "event-status", status, NEEDS_PT },
					    { 0 } };
