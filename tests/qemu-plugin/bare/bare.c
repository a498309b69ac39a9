// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The conformance suite of vmm-lib on a processor, without an operating system: vCPU 0 runs the
 * suite and lets vCPU 1 execute its instructions. Resets are resets of the machine, after which the
 * suite continues. Then the plugin's own policies are checked, which the suite does not cover.
 * Results go to the serial port.
 */
#include "bare.h"

#include "arch/pt-packet.h"
#include "arch/text.h"
#include "bare-io.h"
#include "vmm-lib/conformance.h"

#define RAM  0x800000ULL   /* for the suite */
#define HOLE 0x40000000ULL /* no memory */

struct mailbox mailbox;

/* ---- the driven vCPU ---- */

static volatile u32 *const icr = (volatile u32 *)0xfee00300;

/* An interrupt to vCPU 1, whose APIC ID is 1. */
static void send(u32 what)
{
	icr[4] = 1 << 24;
	icr[0] = what;
}

static int command(u32 op)
{
	mailbox.op = op;
	mailbox.fault = 0;
	__atomic_store_n(&mailbox.go, 1, __ATOMIC_SEQ_CST);
	if (!mailbox.awake)
		send(GO_VECTOR);
	for (;;) {
		/* STI blocks interrupts until after the HLT. */
		__asm__ volatile("cli" ::: "memory");
		if (!__atomic_load_n(&mailbox.go, __ATOMIC_ACQUIRE))
			break;
		__asm__ volatile("sti; hlt" ::: "memory");
	}
	return mailbox.fault ? VMPT_GP : 0;
}

int subject_rdmsr(u32 msr, u64 *value)
{
	int ret;

	mailbox.rcx = msr;
	ret = command(OP_RDMSR);
	/* A #GP changes no register. */
	if (ret && (u32)mailbox.rcx != msr)
		return -VMPT_E_STATE;
	if (!ret)
		*value = (u32)mailbox.rax | mailbox.rdx << 32;
	return ret;
}

int subject_wrmsr(u32 msr, u64 value)
{
	u64 rax = 0xabcdef0100000000 | (u32)value, rdx = 0x1234567800000000 | value >> 32;
	int ret;

	/* An interrupt that wakes it would be in the trace: this is the last one for now. */
	if (msr == VMPT_MSR_RTIT_CTL && value & VMPT_CTL_TRACE_EN && !mailbox.awake) {
		mailbox.awake = 1;
		send(GO_VECTOR);
	}
	mailbox.rcx = msr;
	mailbox.rax = rax;
	mailbox.rdx = rdx;
	ret = command(OP_WRMSR);
	if (msr == VMPT_MSR_RTIT_CTL && !(value & VMPT_CTL_TRACE_EN) && !ret)
		mailbox.awake = 0;
	if ((u32)mailbox.rcx != msr || mailbox.rax != rax || mailbox.rdx != rdx)
		return -VMPT_E_STATE;
	return ret;
}

void subject_run(u32 rounds)
{
	mailbox.rcx = rounds;
	(void)command(OP_RUN);
}

u64 subject_tsc(bool p, u32 *aux)
{
	(void)command(p ? OP_RDTSCP : OP_RDTSC);
	*aux = (u32)mailbox.rcx;
	return (u32)mailbox.rax | mailbox.rdx << 32;
}

void subject_times(u32 rounds)
{
	mailbox.rcx = rounds;
	(void)command(OP_TIMES);
}

void subject_count(u32 rounds)
{
	mailbox.rcx = rounds;
	(void)command(OP_COUNT);
}

u64 subject_step(u32 *leaf_14)
{
	mailbox.steps = 0;
	(void)command(OP_STEP);
	*leaf_14 = (u32)mailbox.rcx;
	return mailbox.rax;
}

int subject_ptwrite(u64 rax, u64 rdx)
{
	mailbox.rax = rax;
	mailbox.rdx = rdx;
	return command(OP_PTWRITE);
}

/* INIT, and SIPI to the trampoline. */
static void start_subject(void)
{
	mailbox.alive = 0;
	mailbox.go = 0;
	send(0x4500);
	send(0x4600 | TRAMPOLINE >> 12);
	while (!__atomic_load_n(&mailbox.alive, __ATOMIC_ACQUIRE))
		__builtin_ia32_pause();
}

void subject_to_x2apic(void)
{
	(void)command(OP_TO_X2APIC);
}

void subject_lvt(u32 lvt)
{
	mailbox.lvt = lvt;
	if (mailbox.x2apic) {
		(void)subject_wrmsr(0x834, lvt);
		return;
	}
	/* Its own APIC page, which only it can access. */
	mailbox.rax = lvt;
	(void)command(OP_LVT);
}

void subject_init_itself(void)
{
	mailbox.alive = 0;
	mailbox.op = OP_INIT;
	__atomic_store_n(&mailbox.go, 1, __ATOMIC_SEQ_CST);
	send(GO_VECTOR);
	while (__atomic_load_n(&mailbox.go, __ATOMIC_ACQUIRE))
		__builtin_ia32_pause();
	/* Its APIC will be disabled, and takes no interrupt to wake it. */
	mailbox.awake = 1;
	/* A SIPI that arrives before the INIT is handled is ignored. */
	while (!__atomic_load_n(&mailbox.alive, __ATOMIC_ACQUIRE))
		send(0x4600 | TRAMPOLINE >> 12);
}

/* ---- the suite's callbacks ---- */

static int warm_reset(void *opaque)
{
	(void)opaque;
	machine_reset();
	mailbox.awake = 0;
	mailbox.pmis = 0;
	mailbox.x2apic = 0;
	start_subject();
	subject_lvt(0x400);
	return 0;
}

/* Registers that a warm reset keeps and a cold one clears: here they are written. */
int power_on(void *opaque)
{
	u32 msr;

	(void)warm_reset(opaque);
	for (msr = 0x560; msr <= 0x587; msr++) {
		if (vmpt_pt_is_msr(msr))
			(void)subject_wrmsr(msr, 0);
	}
	return 0;
}

static int init(void *opaque)
{
	(void)opaque;
	start_subject();
	return 0;
}

static int cpuid(void *opaque, u32 leaf, u32 subleaf, struct vmpt_cpuid_regs *regs)
{
	(void)opaque;
	mailbox.rax = leaf;
	mailbox.rcx = subleaf;
	(void)command(OP_CPUID);
	*regs = (struct vmpt_cpuid_regs){ (u32)mailbox.rax, (u32)mailbox.rbx, (u32)mailbox.rcx,
					  (u32)mailbox.rdx };
	return 0;
}

static int rdmsr(void *opaque, u32 msr, u64 *value)
{
	(void)opaque;
	return subject_rdmsr(msr, value);
}

static int wrmsr(void *opaque, u32 msr, u64 value)
{
	(void)opaque;
	return subject_wrmsr(msr, value);
}

static int mem_read(void *opaque, u64 gpa, void *buf, size_t len)
{
	(void)opaque;
	memcpy(buf, (const void *)gpa, len);
	return 0;
}

static int mem_write(void *opaque, u64 gpa, const void *buf, size_t len)
{
	(void)opaque;
	memcpy((void *)gpa, buf, len);
	return 0;
}

static int run(void *opaque, u32 bytes)
{
	(void)opaque;
	subject_run(bytes);
	return 0;
}

static int mov_cr3(void *opaque, u64 cr3)
{
	(void)opaque;
	/* The CR3 filter test's "old" value of 0 has no page tables. */
	mailbox.rax = cr3 ? cr3 : 0x5a5000;
	(void)command(OP_MOV_CR3);
	return 0;
}

static int pmis(void *opaque, u64 *count)
{
	(void)opaque;
	*count = mailbox.pmis;
	return 0;
}

static void report(void *opaque, const struct vmpt_conformance_result *result)
{
	char line[256];

	(void)opaque;
	vmpt_conformance_print(result, line, sizeof(line));
	print("conformance: ");
	print(line);
	print("\n");
}

void driver_main(void)
{
	static const struct vmpt_conformance_ops ops = {
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
		.ram_gpa = RAM,
		.ram_size = 0x20000,
		.hole_gpa = HOLE,
	};
	struct vmpt_conformance_summary sum = { 0 };
	int err;

	make_idt();
	err = vmpt_conformance_run(&ops, NULL, report, &sum);
	print_number("conformance: error ", (u64)(s64)-err);
	print_number("conformance: passed ", sum.passed);
	print_number("conformance: failed ", sum.failed);
	print_number("conformance: skipped ", sum.skipped);
	policies();
	finish_with(0x10);
}
