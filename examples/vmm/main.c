// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A guest of vmm.c traces itself and its packets are printed; then the conformance suite drives the
 * VMM. "./vmm no-gpa", "no-load" and "no-pt" take a processor that lacks VMX controls or PT.
 */
#include <stdio.h>

#include <vmpt/arch/pt-packet.h>
#include <vmpt/conformance.h>
#include "vmm.h"

/* ---- the guest ---- */

#define TABLE 0x4000
#define TRACE 0x8000

static int guest(struct vm *vm)
{
	static const u64 topa[] = { TRACE, TABLE | VMPT_TOPA_END };
	const u64 ctl = VMPT_CTL_OS | VMPT_CTL_TOPA | VMPT_CTL_TSC_EN | VMPT_CTL_BRANCH_EN;
	struct vmpt_pt_packet packet;
	u64 end, at;
	char text[80];

	memcpy(vm->memory + TABLE, topa, sizeof(topa));
	if (vm_wrmsr(vm, VMPT_MSR_RTIT_OUTPUT_BASE, TABLE) ||
	    vm_wrmsr(vm, VMPT_MSR_RTIT_CTL, ctl | VMPT_CTL_TRACE_EN) || vm_run(vm, 1))
		return -1;
	vm_memory_moves(vm, TRACE, 4096);
	if (vm_mov_cr3(vm, 0x5000) || vm_run(vm, 1) || vm_wrmsr(vm, VMPT_MSR_RTIT_CTL, 0) ||
	    vm_rdmsr(vm, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, &end))
		return -1;
	for (at = TRACE, end = TRACE + (end >> VMPT_OFFSET_SHIFT); at < end; at += packet.size) {
		if (vmpt_pt_decode(&packet, vm->memory + at, (size_t)(end - at), 0))
			return -1;
		vmpt_pt_print(&packet, text, sizeof(text));
		printf("%llx: %s\n", (unsigned long long)at, text);
	}
	return 0;
}

/* ---- step 16: what the conformance suite calls ---- */

static int power_on(void *opaque)
{
	struct vm *vm = opaque;

	vmpt_vcpu_reset(&vm->vcpu, false);
	vm->cr3 = 0;
	vm->pmis = 0;
	return 0;
}

static int cpuid(void *opaque, u32 leaf, u32 subleaf, struct vmpt_cpuid_regs *regs)
{
	return vm_cpuid(opaque, leaf, subleaf, regs);
}

static int rdmsr(void *opaque, u32 msr, u64 *value)
{
	return vm_rdmsr(opaque, msr, value);
}

static int wrmsr(void *opaque, u32 msr, u64 value)
{
	return vm_wrmsr(opaque, msr, value);
}

static int mem_read(void *opaque, u64 gpa, void *buf, size_t len)
{
	const struct vm *vm = opaque;

	return vm->config.ops->guest_read(opaque, gpa, buf, len) ? -VMPT_E_GUEST_MEM : 0;
}

static int mem_write(void *opaque, u64 gpa, const void *buf, size_t len)
{
	const struct vm *vm = opaque;

	return vm->config.ops->guest_write(opaque, gpa, buf, len) ? -VMPT_E_GUEST_MEM : 0;
}

/* Until @bytes have left the processor, or STOP or an error has ended tracing. */
static int run(void *opaque, u32 bytes)
{
	struct vm *vm = opaque;
	u64 end = vm->cpu.unit.bytes + bytes;
	int err = 0;

	while (!err && vm->cpu.unit.bytes < end &&
	       !(vm->vcpu.regs.status & (VMPT_STATUS_STOPPED | VMPT_STATUS_ERROR)))
		err = vm_run(vm, (u32)(end - vm->cpu.unit.bytes));
	return err;
}

static int mov_cr3(void *opaque, u64 cr3)
{
	return vm_mov_cr3(opaque, cr3);
}

static int pmis(void *opaque, u64 *count)
{
	*count = ((struct vm *)opaque)->pmis;
	return 0;
}

static int warm_reset(void *opaque)
{
	vmpt_vcpu_reset(&((struct vm *)opaque)->vcpu, true);
	return 0;
}

static int init(void *opaque)
{
	(void)opaque; /* PT state is kept */
	return 0;
}

static int smi(void *opaque)
{
	return vmpt_vcpu_smi(&((struct vm *)opaque)->vcpu);
}

static int rsm(void *opaque)
{
	return vmpt_vcpu_rsm(&((struct vm *)opaque)->vcpu);
}

static int vmxon(void *opaque)
{
	return vmpt_vcpu_vmxon(&((struct vm *)opaque)->vcpu);
}

static int vmxoff(void *opaque)
{
	return vmpt_vcpu_vmxoff(&((struct vm *)opaque)->vcpu);
}

static int migrate(void *opaque)
{
	return vm_migrate(opaque);
}

static int set_msr(void *opaque, u32 msr, u64 value)
{
	return vmpt_vcpu_set_msr(&((struct vm *)opaque)->vcpu, msr, value);
}

static int xsaves(void *opaque, u8 area[VMPT_XSAVE_SIZE])
{
	return vmpt_vcpu_xsaves(&((struct vm *)opaque)->vcpu, area);
}

static int xrstors(void *opaque, const u8 area[VMPT_XSAVE_SIZE])
{
	return vmpt_vcpu_xrstors(&((struct vm *)opaque)->vcpu, area);
}

/* The host's tracer loads all that it uses: step 9. */
static int host_traces(void *opaque)
{
	struct vm *vm = opaque;
	struct cpu *cpu = &vm->cpu;
	u64 buffer = VM_RAM + 4096 * SHADOW_PAGES;

	if (cpu_wrmsr(cpu, VMPT_MSR_RTIT_OUTPUT_BASE, buffer) ||
	    cpu_wrmsr(cpu, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0xfff) ||
	    cpu_wrmsr(cpu, VMPT_MSR_RTIT_STATUS, 0) ||
	    cpu_wrmsr(cpu, VMPT_MSR_RTIT_CTL, VMPT_CTL_TRACE_EN | VMPT_CTL_OS | VMPT_CTL_BRANCH_EN))
		return -VMPT_E_HARDWARE;
	cpu_run_host(cpu, 6400);
	return cpu_wrmsr(cpu, VMPT_MSR_RTIT_CTL, 0) ? -VMPT_E_HARDWARE : 0;
}

static const struct vmpt_conformance_ops conformance = {
	.power_on = power_on,
	.cpuid = cpuid,
	.rdmsr = rdmsr,
	.wrmsr = wrmsr,
	.mem_read = mem_read,
	.mem_write = mem_write,
	.run = run,
	.mov_cr3 = mov_cr3,
	.pmis = pmis,
	.warm_reset = warm_reset,
	.init = init,
	.smi = smi,
	.rsm = rsm,
	.vmxon = vmxon,
	.vmxoff = vmxoff,
	.migrate = migrate,
	.set_msr = set_msr,
	.xsaves = xsaves,
	.xrstors = xrstors,
	.host_traces = host_traces,
	.ram_gpa = 0x10000,
	.ram_size = 0x40000,
	.hole_gpa = VM_RAM,
};

static void report(void *opaque, const struct vmpt_conformance_result *result)
{
	char line[200];

	(void)opaque;
	vmpt_conformance_print(result, line, sizeof(line));
	if (result->verdict != VMPT_PASSED)
		printf("%s\n", line);
}

static int check_vmm(struct vm *vm)
{
	struct vmpt_conformance_summary sum = { 0 };
	int err = vmpt_conformance_run(&conformance, vm, report, &sum);

	if (err)
		fprintf(stderr, "conformance: %s\n", vmpt_strerror(err));
	printf("conformance: %u passed, %u failed, %u skipped\n", sum.passed, sum.failed,
	       sum.skipped);
	return err || sum.failed;
}

static bool nmi(void *opaque)
{
	return vm_nmi(opaque);
}

int main(int argc, char **argv)
{
	static const char *const lacks[] = { "no-gpa", "no-load", "no-pt" };
	static struct vm vm;
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(lacks); i++)
		if (argc > 1 && !strcmp(argv[1], lacks[i]))
			vm.cpu.lacks = 1u << i;
	vm.cpu.memory = vm.memory;
	vm.cpu.ram = VM_RAM;
	vm.cpu.all = sizeof(vm.memory);
	vm.cpu.nmi = nmi;
	vm.cpu.opaque = &vm;
	cpu_init(&vm.cpu);
	if (vm_init(&vm))
		return 1;
	/* RDTSC exits, and the guest's TSC is 234H ahead of the processor's. */
	vm.tsc = (struct vmpt_tsc_change){ .multiplier = 1ULL << 48, .offset = 0x234 };
	if (vm.guest.cpuid.present && guest(&vm))
		return 1;
	return check_vmm(&vm);
}
