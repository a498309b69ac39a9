// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * SMI and RSM, NMI, INIT, RESET; PTWRITE, power events, Event Trace, TNT disable. expect/modes has
 * the packets.
 */
#include "scenarios.h"
#include "trace.h"

extern const char smm_handler[], smm_handler_end[], pulse_next[];
void traced_pulse(u64 ctl, u32 what);
void traced_ptwrite(u64 ctl, u64 value);
void traced_hlt(u64 ctl);
void traced_mwait(u64 ctl, u64 hints);
void traced_jumps(u64 ctl, u64 rounds);

static volatile struct {
	u64 ctl;
	u32 count;
} *const smm = (void *)SMM_BOX;

static void install_smm(void)
{
	copy_code(SMM_HANDLER, smm_handler, smm_handler_end);
	smm->ctl = ~0ULL;
	smm->count = 0;
}

/* 33.2.9.3: SMI saves and clears TraceEn, and nothing else; RSM restores it. */
static void smi(void)
{
	install_smm();
	trace_prepare();
	traced_pulse(CTL_ON, HOST_SMI);
	want("SMIs", 1, smm->count);
	want("IA32_RTIT_CTL in SMM", CTL_BASE, smm->ctl);
	want("IA32_RTIT_CTL after it", CTL_BASE, msr_read(VMPT_MSR_RTIT_CTL));
	trace_save("smi");
	trace_prepare();
	traced_pulse(CTL_ON | VMPT_CTL_EVENT_EN, HOST_SMI);
	trace_save("smi-event");
	/* And without a trace RSM starts none. */
	trace_prepare();
	traced_pulse(CTL_BASE, HOST_SMI);
	want("IA32_RTIT_CTL in SMM, no trace", CTL_BASE, smm->ctl);
	want("bytes without a trace", 0, trace_size());
}

/* In a guest: RSM returns to VMX non-root operation. */
static void smi_guest(void)
{
	struct vm vm;

	install_smm();
	vm_default(&vm, guest_empty);
	vm_load(&vm);
	trace_prepare();
	vm_call(&vm, traced_pulse, CTL_ON, HOST_SMI);
	want("SMIs", 1, smm->count);
	want("IA32_RTIT_CTL in SMM", CTL_BASE, smm->ctl);
	trace_save("smi-guest");
}

static void nmi(void)
{
	trace_prepare();
	traced_pulse(CTL_ON, HOST_NMI);
	want("NMIs", 1, trap_count[2]);
	want("where", (uintptr_t)pulse_next, trap_rip);
	trace_save("nmi");
	trace_prepare();
	traced_pulse(CTL_ON | VMPT_CTL_EVENT_EN, HOST_NMI);
	trace_save("nmi-event");
}

static void pulse_init(void)
{
	traced_pulse(CTL_ON, HOST_INIT);
}

/* INIT changes no PT MSR, and tracing goes on (33.2.8.1). */
static void init(void)
{
	trace_prepare();
	msr_write(VMPT_MSR_RTIT_ADDR0_A, 0x1000);
	machine_reset_by(pulse_init);
	want("IA32_RTIT_CTL after INIT", CTL_ON, msr_read(VMPT_MSR_RTIT_CTL));
	want("ADDR0_A after INIT", 0x1000, msr_read(VMPT_MSR_RTIT_ADDR0_A));
	msr_write(VMPT_MSR_RTIT_CTL, CTL_BASE);
	trace_save("init");
	msr_write(VMPT_MSR_RTIT_ADDR0_A, 0);
}

static void reset(void)
{
	trace_prepare();
	msr_write(VMPT_MSR_RTIT_CTL, CTL_ON);
	machine_reset();
	want("TraceEn after RESET", 0, msr_read(VMPT_MSR_RTIT_CTL) & VMPT_CTL_TRACE_EN);
}

static void ptwrite(void)
{
	trace_prepare();
	if (!want("PTWRITE's fault", 0, (u64)try_ptwrite(0)))
		return;
	traced_ptwrite(CTL_ON | VMPT_CTL_PTW_EN, 0x1122334455667788);
	trace_save("ptwrite");
	trace_prepare();
	traced_ptwrite(CTL_ON | VMPT_CTL_PTW_EN | VMPT_CTL_FUP_ON_PTW, 0x1122334455667788);
	trace_save("ptwrite-fup");
}

/* An interrupt of the APIC's timer, in a while. */
static void alarm(void)
{
	apic_write(0x3e0, 0xb);
	apic_write(0x320, IPI_VECTOR);
	apic_write(0x380, 20000);
}

static void power(void)
{
	trace_prepare();
	alarm();
	traced_hlt(CTL_ON | VMPT_CTL_PWR_EVT_EN);
	want("interrupts", 1, trap_count[IPI_VECTOR]);
	trace_save("hlt");
	trace_prepare();
	alarm();
	traced_mwait(CTL_ON | VMPT_CTL_PWR_EVT_EN, 0);
	want("interrupts", 2, trap_count[IPI_VECTOR]);
	trace_save("mwait");
}

static void tnt(void)
{
	trace_prepare();
	traced_jumps(CTL_ON, 3);
	trace_save("tnt");
	trace_prepare();
	traced_jumps(CTL_ON | VMPT_CTL_DIS_TNT, 3);
	trace_save("no-tnt");
}

const struct scenario modes_scenarios[] = { { "smi", smi, NEEDS_PT },
					    { "smi-guest", smi_guest, NEEDS_VMX | NEEDS_VPT },
					    { "nmi", nmi, NEEDS_PT },
					    { "init", init, NEEDS_PT },
					    { "reset", reset, NEEDS_PT },
					    { "ptwrite", ptwrite, NEEDS_PT },
					    { "power", power, NEEDS_PT },
					    { "tnt", tnt, NEEDS_PT },
					    { 0 } };
