// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Scenarios of what happens to a guest's trace.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "faults.h"

#define TIMES		    8
#define CR4_VMXE	    0x2000u
#define VMXON_REGION	    0x280000
#define STRAY_PAGE	    0x240000 /* the output of the table at 0 */
#define NOWHERE		    0x20000000
#define SMM_ENTRY	    0x38000
#define SMM_RESULT	    0x6000
#define MSR_FEATURE_CONTROL 0x3a
#define MSR_VMX_BASIC	    0x480
#define MSR_LVTPC	    0x834
#define CYCLES		    60000
#define GP		    (1 + 13)
#define LIVELOCK	    1000 /* exits; normally a few dozen suffice */
#define MSR_X2APIC_ICR	    0x830
#define ICR_INIT	    0x4500 /* asserted, to the APIC whose ID is 0 */
#define RESET_SEGMENT	    0xffff0000
#define RESET_VECTOR	    0xfff0

bool set_parameter(const char *name, const char *value)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/module/kvm/parameters/%s", name);
	file = fopen(path, "we");
	return file && fputs(value, file) >= 0 && !fclose(file);
}

/* How many bytes of a page are not 0. */
static u32 written(struct scene *s, u64 gpa)
{
	const u8 *page = vm_at(&s->vm, gpa, PAGE_SIZE);
	u32 i, n = 0;

	for (i = 0; i < PAGE_SIZE; i++)
		n += page[i] != 0;
	return n;
}

/* KVM_SET_CPUID2 may be repeated until the vCPU runs. */
void fault_d09_late(struct scene *s)
{
	enum scene_end end;
	u32 op;

	scene_open(s, false);
	scene_topa(s, 4, 0);
	if (scene_set_cpuid(s))
		die("KVM refuses the CPUID that it reports as supported");
	if (vcpu_set_msr(&s->vcpu, VMPT_MSR_RTIT_OUTPUT_BASE, TOPA_TABLE) ||
	    vcpu_set_msr(&s->vcpu, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0x7f) ||
	    vcpu_set_msr(&s->vcpu, VMPT_MSR_RTIT_CTL, CTL_TRACE))
		die("KVM_SET_MSRS refuses to start a trace");
	scene_leaf(s, 7, 0)->ebx &= ~(1u << 25);
	if (scene_set_cpuid(s))
		die("CPUID without PT is refused");
	scene_op(s, OP_WORK, 100, 0);
	op = scene_op(s, OP_RDMSR, VMPT_MSR_RTIT_CTL, 0);
	scene_load(s);
	end = scene_run(s);
	if (end == SCENE_DONE && s->ops[op].fault == GP && !written(s, TOPA_PAGES))
		ok("not traced, #GP for RTIT_CTL");
	else
		fault("%s %#llx, RTIT_CTL %#llx, %u bytes of trace", scene_end_name(end),
		      (unsigned long long)s->reason, (unsigned long long)s->ops[op].result,
		      written(s, TOPA_PAGES));
}

static void allow_vmx(struct scene *s)
{
	struct kvm_sregs sregs;

	if (vcpu_set_msr(&s->vcpu, MSR_FEATURE_CONTROL, 5))
		die("the guest has no VMX");
	if (ioctl(s->vcpu.fd, KVM_GET_SREGS, &sregs) < 0)
		die("KVM_GET_SREGS: %s", strerror(errno));
	sregs.cr0 |= 0x20;
	sregs.cr4 |= CR4_VMXE;
	if (ioctl(s->vcpu.fd, KVM_SET_SREGS, &sregs) < 0)
		die("KVM_SET_SREGS: %s", strerror(errno));
}

/*
 * After VMXON KVM treats the guest as not tracing and loads none of its registers: further output
 * goes to the host's OUTPUT_BASE, here 0 as after a boot, as an address of the guest.
 */
void fault_d05(struct scene *s)
{
	u32 vmxon, read, bytes;
	u64 revision = 0, *table;
	enum scene_end end;

	scene_open(s, false);
	scene_topa(s, 4, 0);
	table = vm_at(&s->vm, 0, 16);
	table[0] = STRAY_PAGE;
	table[1] = 1;
	if (scene_set_cpuid(s) || vcpu_get_msr(&s->vcpu, MSR_VMX_BASIC, &revision) || !revision) {
		skip("KVM offers guests no VMX");
		return;
	}
	memcpy(vm_at(&s->vm, VMXON_REGION, 4), &revision, 4);
	scene_op_start(s, CTL_TRACE);
	scene_op(s, OP_WORK, 10, 0);
	vmxon = scene_op(s, OP_VMXON, 0, VMXON_REGION);
	read = scene_op(s, OP_RDMSR, VMPT_MSR_RTIT_CTL, 0);
	scene_op(s, OP_WORK, 1000, 0);
	scene_op(s, OP_OUT, 0, 0);
	scene_load(s);
	allow_vmx(s);
	end = scene_run(s);
	bytes = written(s, STRAY_PAGE);
	if (s->ops[vmxon].fault || (u32)s->ops[vmxon].result || !s->ops[vmxon].done) {
		skip("VMXON in the guest: vector %d, result %u", (int)s->ops[vmxon].fault - 1,
		     (u32)s->ops[vmxon].result);
		return;
	}
	if (bytes || end != SCENE_DONE)
		fault("RTIT_CTL reads %#llx, yet %u bytes came after VMXON, to where the host's "
		      "registers lead; %s %#llx",
		      (unsigned long long)s->ops[read].result, bytes, scene_end_name(end),
		      (unsigned long long)s->reason);
	else
		ok("RTIT_CTL reads %#llx, nothing came", (unsigned long long)s->ops[read].result);
}

void fault_d16(struct scene *s)
{
	enum scene_end end;
	u32 irqs, status;

	scene_open(s, true);
	scene_topa(s, 8, 1);
	/*
	 * Touch all that delivery reads and writes: on an EPT violation there, Bochs reports vector
	 * 0 in the IDT-vectoring information of a virtual interrupt.
	 */
	scene_op(s, OP_READ, 0, GUEST_TABLES);
	scene_op(s, OP_READ, 0, GUEST_TABLES + PAGE_SIZE);
	scene_op(s, OP_CPUID, 0, 0);
	scene_op(s, OP_WRMSR, MSR_LVTPC, GUEST_VECTOR_IRQ);
	scene_op_start(s, CTL_TRACE);
	irqs = scene_op(s, OP_AWAIT, CYCLES, 0);
	scene_op_stop(s, CTL_TRACE);
	status = scene_op(s, OP_RDMSR, VMPT_MSR_PERF_GLOBAL_STATUS, 0);
	scene_load(s);
	end = scene_run(s);
	if (end != SCENE_DONE)
		die("%s %#llx", scene_end_name(end), (unsigned long long)s->reason);
	if (s->ops[irqs].result)
		ok("%llu interrupts", (unsigned long long)s->ops[irqs].result);
	else
		fault("no interrupt, global status %#llx, %u bytes in the first page; %s",
		      (unsigned long long)s->ops[status].result, written(s, TOPA_PAGES),
		      scene_said(s, "NMI received") ? s->line : "no kernel message");
}

/*
 * Each VM entry sets TraceEn, which makes the PMI of PendTopaPMI pending again until the guest
 * clears it: the guest must get it once, and make progress.
 */
void fault_d14_pmi(struct scene *s)
{
	const u64 ctl = CTL_TRACE | VMPT_CTL_INJECT;
	u32 start, irqs, status;
	enum scene_end end;
	u64 exits;

	scene_open(s, true);
	scene_topa(s, 8, 1);
	scene_op(s, OP_READ, 0, GUEST_TABLES);
	scene_op(s, OP_READ, 0, GUEST_TABLES + PAGE_SIZE);
	scene_op(s, OP_CPUID, 0, 0);
	scene_op(s, OP_WRMSR, MSR_LVTPC, GUEST_VECTOR_IRQ);
	start = scene_op_start(s, ctl);
	scene_op(s, OP_AWAIT, CYCLES, 0);
	scene_op(s, OP_EXITS, TIMES, 0);
	irqs = scene_op(s, OP_IRQS, 0, 0);
	scene_op_stop(s, ctl);
	status = scene_op(s, OP_RDMSR, VMPT_MSR_RTIT_STATUS, 0);
	scene_load(s);
	alarm(3);
	end = scene_run(s);
	exits = vcpu_stat(&s->vcpu, "exits");
	if (s->ops[start].fault)
		fault("#GP for RTIT_CTL %#llx", (unsigned long long)ctl);
	else if (end == SCENE_DONE && s->ops[irqs].result == 1 && exits < LIVELOCK &&
		 s->ops[status].result & VMPT_STATUS_PEND_PMI)
		ok("1 interrupt, RTIT_STATUS %#llx", (unsigned long long)s->ops[status].result);
	else
		fault("%s %#llx after %llu exits, %llu interrupts, RTIT_STATUS %#llx",
		      scene_end_name(end), (unsigned long long)s->reason, (unsigned long long)exits,
		      (unsigned long long)s->ops[irqs].result,
		      (unsigned long long)s->ops[status].result);
}

void fault_d19(struct scene *s)
{
	u64 *table;
	enum scene_end end;
	u32 op;
	u64 emulated;

	scene_open(s, false);
	scene_topa(s, 4, 0);
	table = vm_at(&s->vm, TOPA_TABLE, 8);
	*table = NOWHERE;
	scene_op_start(s, CTL_TRACE);
	scene_op(s, OP_WORK, 1000, 0);
	scene_op_stop(s, CTL_TRACE);
	op = scene_op(s, OP_RDMSR, VMPT_MSR_RTIT_STATUS, 0);
	scene_load(s);
	alarm(20);
	end = scene_run(s);
	emulated = vcpu_stat(&s->vcpu, "insn_emulation");
	if (!emulated && end == SCENE_DONE && s->ops[op].result & VMPT_STATUS_ERROR)
		ok("RTIT_STATUS %#llx, no instruction is emulated",
		   (unsigned long long)s->ops[op].result);
	else if (!emulated && end == SCENE_OTHER && s->reason != KVM_EXIT_MMIO)
		ok("exit %llu to user space, no instruction is emulated",
		   (unsigned long long)s->reason);
	else
		fault("%s %#llx; KVM emulated %llu instructions of the guest, RTIT_STATUS %#llx",
		      scene_end_name(end), (unsigned long long)s->reason,
		      (unsigned long long)emulated, (unsigned long long)s->ops[op].result);
}

/* How many of the output's PIPs have this CR3. */
static u32 pips_with(struct scene *s, u64 size, u64 cr3)
{
	const u8 *bytes = vm_at(&s->vm, TOPA_PAGES, size);
	struct vmpt_pt_packet packet;
	unsigned int block = 0;
	u32 n = 0;
	u64 at = 0;

	while (at < size && !vmpt_pt_decode(&packet, bytes + at, size - at, block)) {
		n += packet.kind == VMPT_PT_PIP && packet.pip.cr3 == cr3;
		block = vmpt_pt_block_after(&packet, block);
		at += packet.size;
	}
	return n;
}

/* The guest sends INIT to itself. CR3 becomes 0: a processor sends a PIP (Table 33-24). */
void fault_d20(struct scene *s)
{
	/* out of %al to GUEST_PORT_RESULT, then to GUEST_PORT_DONE, in 16 bits */
	static const u8 reset[] = { 0xe6, GUEST_PORT_RESULT, 0xe6, GUEST_PORT_DONE, 0xeb, 0xfe };
	u8 *rom = mmap(NULL, 0x10000, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	enum scene_end end;
	u64 ctl = 0, size;
	u32 all, given;

	if (rom == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	memcpy(rom + RESET_VECTOR, reset, sizeof(reset));
	scene_open(s, true);
	scene_topa(s, 4, 0);
	vm_map(&s->vm, 2, RESET_SEGMENT, 0x10000, rom);
	scene_op_start(s, CTL_TRACE);
	scene_op(s, OP_WORK, 10, 0);
	scene_op(s, OP_WRMSR, MSR_X2APIC_ICR, ICR_INIT);
	scene_op_stop(s, CTL_TRACE);
	scene_load(s);
	end = scene_run(s);
	size = scene_output(s);
	all = scene_packets(s, size, VMPT_PT_PIP);
	given = pips_with(s, size, 0);
	if (vcpu_get_msr(&s->vcpu, VMPT_MSR_RTIT_CTL, &ctl))
		die("RTIT_CTL cannot be read");
	if (s->outs != 1 || end != SCENE_DONE)
		skip("INIT did not lead to the reset vector: %s %#llx", scene_end_name(end),
		     (unsigned long long)s->reason);
	else if (!(ctl & VMPT_CTL_TRACE_EN))
		fault("RTIT_CTL is %#llx after INIT", (unsigned long long)ctl);
	else if (!given)
		fault("RTIT_CTL stays %#llx, PIP packets %u, none of them with the new CR3",
		      (unsigned long long)ctl, all);
	else
		ok("RTIT_CTL stays %#llx, PIP packets %u, with the new CR3 %u",
		   (unsigned long long)ctl, all, given);
}

static void raise_smi(struct scene *s, u32 word)
{
	(void)word;
	if (ioctl(s->vcpu.fd, KVM_SMI, 0) < 0)
		die("KVM_SMI: %s", strerror(errno));
}

void fault_d21(struct scene *s)
{
	/* mov $0x570,%ecx; rdmsr; mov %eax,SMM_RESULT; movl $1,SMM_RESULT+4; rsm, in 16 bits */
	static const u8 handler[] = { 0x66, 0xb9, 0x70, 0x05, 0,    0,	  0x0f, 0x32,
				      0x66, 0xa3, 0x00, 0x60, 0x66, 0xc7, 0x06, 0x04,
				      0x60, 1,	  0,	0,    0,    0x0f, 0xaa };
	enum scene_end end;
	u32 *result, after;

	scene_open(s, true);
	scene_topa(s, 4, 0);
	/* SMM has an address space of its own. */
	vm_map(&s->vm, 1u << 16, 0, GUEST_LOW, s->vm.memory);
	vm_map(&s->vm, 1u << 16 | 1, GUEST_HIGH, GUEST_SIZE - GUEST_HIGH,
	       s->vm.memory + GUEST_HIGH);
	memcpy(vm_at(&s->vm, SMM_ENTRY, sizeof(handler)), handler, sizeof(handler));
	scene_op_start(s, CTL_TRACE);
	scene_op(s, OP_WORK, 10, 0);
	scene_op(s, OP_OUT, 0, 0);
	scene_op(s, OP_WORK, 10, 0);
	after = scene_op(s, OP_RDMSR, VMPT_MSR_RTIT_CTL, 0);
	scene_op_stop(s, CTL_TRACE);
	s->on_out = raise_smi;
	scene_load(s);
	end = scene_run(s);
	result = vm_at(&s->vm, SMM_RESULT, 8);
	if (!result[1])
		skip("the SMI handler did not run: %s %#llx", scene_end_name(end),
		     (unsigned long long)s->reason);
	else if (result[0] & VMPT_CTL_TRACE_EN)
		fault("RTIT_CTL reads %#x in SMM", result[0]);
	else if (s->ops[after].result != CTL_TRACE)
		fault("RTIT_CTL reads %#x in SMM, but %#llx after RSM", result[0],
		      (unsigned long long)s->ops[after].result);
	else
		ok("RTIT_CTL reads %#x in SMM, %#llx after RSM", result[0],
		   (unsigned long long)s->ops[after].result);
}

/* Run an operation TIMES times while tracing; returns how many packets of a kind that made. */
static int count(struct scene *s, enum guest_mode mode, enum guest_opcode code, u32 arg,
		 enum vmpt_pt_kind kind)
{
	u32 i, first = 0;
	enum scene_end end;
	int n = -1;

	scene_open(s, false);
	s->mode = mode;
	scene_topa(s, 4, 0);
	scene_op_start(s, CTL_TRACE);
	for (i = 0; i < TIMES; i++)
		first = scene_op(s, code, arg, GUEST_PAGING + (i & 1) * GUEST_PAGING_SIZE);
	scene_op_stop(s, CTL_TRACE);
	scene_load(s);
	end = scene_run(s);
	if (end != SCENE_DONE)
		die("%s %#llx", scene_end_name(end), (unsigned long long)s->reason);
	if (!s->ops[first].fault)
		n = (int)scene_packets(s, scene_output(s), kind);
	vcpu_close(&s->vcpu);
	vm_close(&s->vm);
	return n;
}

static void compare(struct scene *s, enum guest_opcode code, enum vmpt_pt_kind kind)
{
	int native, emulated;

	if (!set_parameter("force_emulation_prefix", "1\n")) {
		skip("kvm.force_emulation_prefix cannot be set");
		return;
	}
	native = count(s, GUEST_LONG64, code, 0, kind);
	emulated = count(s, GUEST_LONG64, code, 1, kind);
	if (native < TIMES || emulated < 0)
		skip("%d packets of the processor, %d of the emulator", native, emulated);
	else if (emulated < native)
		fault("%d %s packets where the processor makes %d", emulated, vmpt_pt_name(kind),
		      native);
	else
		ok("%d %s packets, the processor makes %d", emulated, vmpt_pt_name(kind), native);
}

void fault_d22(struct scene *s)
{
	compare(s, OP_CR3, VMPT_PT_PIP);
}

void fault_d23(struct scene *s)
{
	compare(s, OP_JUMP, VMPT_PT_TIP);
}

void fault_d22_exit(struct scene *s)
{
	int pips, none;

	if (strcmp(kvm_parameter("kvm_intel", "unrestricted_guest"), "N")) {
		skip("unrestricted_guest is on");
		return;
	}
	none = count(s, GUEST_PROT32, OP_WORK, 1, VMPT_PT_PIP);
	pips = count(s, GUEST_PROT32, OP_CR3, 0, VMPT_PT_PIP);
	if (pips < none + TIMES)
		fault("%d PIP packets for %d MOV CR3 (%d without)", pips, TIMES, none);
	else
		ok("%d PIP packets for %d MOV CR3 (%d without)", pips, TIMES, none);
}
