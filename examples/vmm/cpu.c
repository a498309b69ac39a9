// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The example's processor: cpu.h. */
#include "cpu.h"

#define MSR_VMX_FIRST 0x480
#define MSR_VMX_LAST  0x490

/* ---- its output: EPT, as far as there is one, maps the guest's RAM and nothing else ---- */

static u8 *at(struct cpu *cpu, u64 pa, size_t len)
{
	size_t size = cpu->nonroot_gpa ? cpu->ram : cpu->all;

	if (pa < size && len <= size - pa)
		return cpu->memory + pa;
	cpu->fault = cpu->nonroot_gpa;
	cpu->gpa = pa;
	return NULL;
}

static int read_entry(void *opaque, u64 pa, u64 *entry)
{
	struct cpu *cpu = opaque;
	const u8 *p = at(cpu, pa, sizeof(*entry));

	if (!p)
		return cpu->fault ? -VMPT_E_RETRY : VMPT_OUTPUT_FAULT;
	*entry = vmpt_load64(p);
	return 0;
}

static int write_output(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	struct cpu *cpu = opaque;
	u8 *p = at(cpu, pa, len);

	if (!p)
		return cpu->fault ? -VMPT_E_RETRY : VMPT_OUTPUT_DROPPED;
	memcpy(p, bytes, len);
	return 0;
}

static void pmi(void *opaque)
{
	struct cpu *cpu = opaque;

	cpu->global_status |= VMPT_GLOBAL_TOPA_PMI;
	cpu->nmi(cpu->opaque);
}

/* ---- CPUID and MSRs ---- */

int cpu_cpuid(void *opaque, u32 leaf, u32 subleaf, struct vmpt_cpuid_regs *regs)
{
	const struct cpu *cpu = opaque;
	static const struct {
		u32 leaf, subleaf;
		struct vmpt_cpuid_regs regs;
	} row[] = { { 0x0, 0, { .eax = 0x15 } },
		    { 0x1, 0, { .eax = 0x606a0, .ecx = 1 << 5 } },
		    { 0x7, 0, { .ebx = 1 << 25 } },
		    { 0x14, 0, { 1, 0x1ff, 7, 0 } },
		    { 0x14, 1, { 0x02490002, 0x3f3fff, 0, 0 } },
		    { 0x15, 0, { 2, 168, 24000000, 0 } },
		    { 0x80000000, 0, { .eax = 0x80000008 } },
		    { 0x80000008, 0, { .eax = 48 << 8 | 46 } } };

	memset(regs, 0, sizeof(*regs));
	for (size_t i = 0; i < VMPT_ARRAY_SIZE(row); i++) {
		if (row[i].leaf == leaf && row[i].subleaf == subleaf)
			*regs = row[i].regs;
	}
	if (cpu->lacks & CPU_NO_PT && (leaf == 0x7 || leaf == 0x14))
		memset(regs, 0, sizeof(*regs));
	return 0;
}

/* Each control may be 1: bits 63:32. */
static u64 vmx_capability(const struct cpu *cpu, u32 msr)
{
	u64 may = 0xffffffff;

	switch (msr) {
	case 0x480: /* IA32_VMX_BASIC: there are "true" controls */
		return 1ULL << 55;
	case 0x485: /* IA32_VMX_MISC */
		return 1 << 14;
	case 0x48b:
		may &= ~(u64)(cpu->lacks & CPU_NO_GPA ? VMPT_SECONDARY_PT_USE_GPA : 0);
		break;
	case 0x48f:
		may &= ~(u64)(cpu->lacks & CPU_NO_LOAD ? VMPT_EXIT_CLEAR_RTIT_CTL : 0);
		break;
	case 0x490:
		may &= ~(u64)(cpu->lacks & CPU_NO_LOAD ? VMPT_ENTRY_LOAD_RTIT_CTL : 0);
		break;
	}
	return may << 32;
}

int cpu_rdmsr(struct cpu *cpu, u32 msr, u64 *value)
{
	*value = 0;
	if (msr >= MSR_VMX_FIRST && msr <= MSR_VMX_LAST)
		*value = vmx_capability(cpu, msr);
	else if (msr == VMPT_MSR_PERF_GLOBAL_STATUS)
		*value = cpu->global_status;
	else
		return vmpt_unit_rdmsr(&cpu->unit, msr, value);
	return 0;
}

int cpu_wrmsr(struct cpu *cpu, u32 msr, u64 value)
{
	if (msr != VMPT_MSR_PERF_GLOBAL_RESET)
		return vmpt_unit_wrmsr(&cpu->unit, msr, value, 0xffff8000, 0xffff8002);
	cpu->global_status &= ~value;
	return 0;
}

/* ---- running ---- */

/* Indirect jumps to and fro: a TIP each. Returns the IP of the next one. */
static u64 jumps(struct cpu *cpu, u64 ip, u32 bytes)
{
	u64 end = cpu->unit.bytes + cpu->unit.used + bytes;

	for (; cpu->unit.trigger_en && !cpu->fault && cpu->unit.bytes + cpu->unit.used < end;
	     ip ^= 0x10040)
		vmpt_unit_jmp_indirect(&cpu->unit, ip ^ 0x10040);
	return ip;
}

void cpu_run(struct cpu *cpu, struct vmcs *vmcs, u64 cr3, u32 bytes)
{
	bool lists = vmcs->lists.entry_loads;
	struct vmpt_unit_entry entry = {
		.vmx = { .vmcs = 0x1000,
			 .conceal_exec = vmcs->secondary & VMPT_SECONDARY_CONCEAL,
			 .conceal_exit = vmcs->exit & VMPT_EXIT_CONCEAL,
			 .conceal_entry = vmcs->entry & VMPT_ENTRY_CONCEAL },
		.load_ctl = lists || vmcs->entry & VMPT_ENTRY_LOAD_RTIT_CTL,
		.ctl = lists ? vmcs->lists.entry_load[0].value : vmcs->guest_rtit_ctl,
		.ip = 0xffff8000,
		.target = 0x401000,
		.mode = { .cr3 = cr3, .cs_l = true },
	};
	struct vmpt_unit_exit exit = {
		.clear_ctl = vmcs->exit & VMPT_EXIT_CLEAR_RTIT_CTL,
		.load_ctl = lists,
		.ctl = vmcs->lists.exit_load[0].value,
		.target = 0xffff8100,
		.mode = { .cr3 = 0x7000, .cs_l = true },
	};

	cpu->fault = false;
	cpu->nonroot_gpa = vmcs->secondary & VMPT_SECONDARY_PT_USE_GPA;
	vmpt_unit_vmentry(&cpu->unit, &entry);
	exit.ip = jumps(cpu, entry.target, bytes);
	vmcs->guest_rtit_ctl = cpu->unit.regs.ctl;
	vmpt_unit_vmexit(&cpu->unit, &exit);
	cpu->nonroot_gpa = false;
}

void cpu_run_host(struct cpu *cpu, u32 bytes)
{
	cpu->fault = false;
	jumps(cpu, 0xffff9000, bytes);
}

void cpu_init(struct cpu *cpu)
{
	struct vmpt_unit_config config = { .memory = &cpu->output, .pmi = pmi, .opaque = cpu };
	struct vmpt_cpu_reader reader = { .cpuid = cpu_cpuid, .opaque = cpu };
	struct vmpt_caps caps;

	cpu->output = (struct vmpt_output_memory){ read_entry, write_output, cpu };
	vmpt_caps_read(&caps, &reader);
	config.cpuid = caps.cpuid;
	vmpt_unit_init(&cpu->unit, &config);
	vmpt_unit_time(&cpu->unit, &(struct vmpt_now){ .tsc = 0x1000000, .cbr = 42 });
}
