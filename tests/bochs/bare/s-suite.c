// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib's conformance suite against the PC's processor: without VMX, in VMX root operation, and
 * in a guest with PT of its own.
 */
#include "arch/text.h"
#include "scenarios.h"
#include "trace.h"
#include "vmm-lib/conformance.h"

static struct vm vm;
static bool in_guest;

static int result(u64 ret)
{
	return !(u32)ret ? 0 : (u32)ret == FAULT_GP ? VMPT_GP : -VMPT_E_STATE;
}

static int op_rdmsr(void *opaque, u32 msr, u64 *value)
{
	int ret;

	(void)opaque;
	if (!in_guest)
		return result((u64)try_rdmsr(msr, value));
	ret = result(vm_execute(&vm, guest_rdmsr, msr, 0, 0));
	if (!ret)
		*value = (u32)vm.regs.rax | vm.regs.rdx << 32;
	return ret;
}

static int op_wrmsr(void *opaque, u32 msr, u64 value)
{
	(void)opaque;
	/*
	 * As a driver does: clear the LVT's mask, which delivery has set, together with the status.
	 */
	if (msr == VMPT_MSR_PERF_GLOBAL_RESET)
		apic_write(APIC_LVTP, LVT_NMI);
	return result(in_guest ? vm_execute(&vm, guest_wrmsr, msr, (u32)value, value >> 32)
			       : (u64)try_wrmsr(msr, value));
}

static int op_cpuid(void *opaque, u32 leaf, u32 subleaf, struct vmpt_cpuid_regs *regs)
{
	struct cpuid r = cpuid(leaf, subleaf);

	(void)opaque;
	*regs = (struct vmpt_cpuid_regs){ r.eax, r.ebx, r.ecx, r.edx };
	return 0;
}

static int op_power_on(void *opaque)
{
	/* Writes the values of a RESET. */
	(void)op_wrmsr(opaque, VMPT_MSR_RTIT_CTL, 0);
	for (u32 msr = 0x560; msr <= 0x587; msr++) {
		if (vmpt_pt_is_msr(msr))
			(void)op_wrmsr(opaque, msr, 0);
	}
	msr_write(VMPT_MSR_PERF_GLOBAL_RESET, VMPT_GLOBAL_TOPA_PMI);
	apic_write(APIC_LVTP, LVT_NMI);
	trap_count[2] = 0;
	return 0;
}

static int op_read(void *opaque, u64 gpa, void *buf, size_t len)
{
	(void)opaque;
	memcpy(buf, (const void *)gpa, len);
	return 0;
}

static int op_write(void *opaque, u64 gpa, const void *buf, size_t len)
{
	(void)opaque;
	memcpy((void *)gpa, buf, len);
	return 0;
}

static int op_run(void *opaque, u32 bytes)
{
	(void)opaque;
	/* more than a byte each */
	if (in_guest)
		(void)vm_execute(&vm, guest_fill, bytes, 0, 0);
	else
		jump_about(bytes);
	return 0;
}

static int op_mov_cr3(void *opaque, u64 cr3)
{
	(void)opaque;
	/* The CR3 filter test's "old" value of 0 has no page tables. */
	cr3 = cr3 ? cr3 : OTHER_CR3;
	*(volatile u64 *)cr3 = *(volatile u64 *)GUEST_CR3;
	return result(vm_execute(&vm, guest_mov_cr3, cr3, 0, 0));
}

static int op_pmis(void *opaque, u64 *count)
{
	(void)opaque;
	*count = trap_count[2];
	return 0;
}

static int op_warm_reset(void *opaque)
{
	(void)opaque;
	machine_reset();
	apic_write(APIC_LVTP, LVT_NMI);
	return 0;
}

static void pulse_init(void)
{
	host_pulse(HOST_INIT);
}

static int op_init(void *opaque)
{
	(void)opaque;
	machine_reset_by(pulse_init);
	apic_write(APIC_LVTP, LVT_NMI);
	return 0;
}

static int op_vmxon(void *opaque)
{
	(void)opaque;
	vmx_on();
	return vmx_is_on() ? 0 : -VMPT_E_STATE;
}

static int op_vmxoff(void *opaque)
{
	(void)opaque;
	vmx_off();
	return 0;
}

static void report(void *opaque, const struct vmpt_conformance_result *r)
{
	char line[256];

	(void)opaque;
	vmpt_conformance_print(r, line, sizeof(line));
	if (r->verdict == VMPT_FAILED)
		wrong("%s", line);
	print("conformance: %s\n", line);
}

static void run(bool resets)
{
	/* 33.2.9.4 is about processors that do not allow PT in VMX operation. */
	bool older = !vmx_is_on() && !(msr_read(MSR_VMX_MISC) & 1 << 14);
	struct vmpt_conformance_ops ops = {
		.power_on = op_power_on,
		.cpuid = op_cpuid,
		.rdmsr = op_rdmsr,
		.wrmsr = op_wrmsr,
		.mem_read = op_read,
		.mem_write = op_write,
		.run = op_run,
		/* Without a guest the suite itself is traced: it makes packets. */
		.mov_cr3 = in_guest ? op_mov_cr3 : NULL,
		.pmis = in_guest ? op_pmis : NULL,
		.warm_reset = resets ? op_warm_reset : NULL,
		.init = resets ? op_init : NULL,
		.vmxon = older ? op_vmxon : NULL,
		.vmxoff = older ? op_vmxoff : NULL,
		.ram_gpa = SUITE_RAM,
		.ram_size = 0x20000,
		.hole_gpa = HOLE,
	};
	struct vmpt_conformance_summary sum = { 0 };
	int err = vmpt_conformance_run(&ops, NULL, report, &sum);

	want("the suite's error", 0, (u64)(s64)-err);
	if (sum.passed < 20)
		wrong("only %u scenarios of the suite passed", sum.passed);
	print("conformance: passed %u, failed %u, skipped %u\n", sum.passed, sum.failed,
	      sum.skipped);
	write_cr3(PAGE_TABLES);
	(void)try_wrmsr(VMPT_MSR_RTIT_CTL, 0);
	apic_write(APIC_LVTP, LVT_MASK);
}

static void suite(void)
{
	in_guest = false;
	run(true);
}

static void suite_root(void)
{
	in_guest = false;
	run(false);
}

static void suite_guest(void)
{
	in_guest = true;
	vm_default(&vm, guest_empty);
	vm.entry |= ENTRY_LOAD_RTIT_CTL | ENTRY_CONCEAL;
	vm.exit |= EXIT_CLEAR_RTIT_CTL | EXIT_CONCEAL;
	vm.secondary |= SECONDARY_CONCEAL;
	vm_load(&vm);
	run(false);
	in_guest = false;
}

const struct scenario suite_scenarios[] = { { "suite", suite, NEEDS_PT },
					    { "suite-root", suite_root, NEEDS_VMX | NEEDS_VPT },
					    { "suite-guest", suite_guest,
					      NEEDS_VMX | NEEDS_VPT | NEEDS_LOAD_CLEAR },
					    { 0 } };
