// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Everything a VMM does to give a guest RTIT, in one file; docs/vmm-lib/rtit.md explains it. The
 * parts that need VMX are stand-ins, each marked so: the processor is an array of MSRs that traces
 * nothing, the guest a list of the instructions that exit.
 */
#include <stdio.h>

#include <vmpt/rtit.h>

#define HPA 0x40000000ULL /* the guest's memory in the host, contiguous */

struct vm {
	u8 ram[1 << 20]; /* guest-physical 0 up */
	u64 msr[0x1000]; /* stand-in: the processor's MSRs */
	bool show;	 /* print what is written to them */
	u64 cr3;	 /* the guest's */
};

/* ---- 1. callbacks: the processor, the guest's memory, the clock ---- */

static int hw_rdmsr(void *opaque, u32 msr, u64 *value) /* stand-in: RDMSR */
{
	*value = ((struct vm *)opaque)->msr[msr];
	return 0;
}

static int hw_wrmsr(void *opaque, u32 msr, u64 value) /* stand-in: WRMSR */
{
	struct vm *vm = opaque;

	if (vm->show && vm->msr[msr] != value)
		printf("  processor: %03Xh = %llx\n", msr, (unsigned long long)value);
	vm->msr[msr] = value;
	return 0;
}

static int guest_write(void *opaque, u64 gpa, const void *buf, size_t len)
{
	struct vm *vm = opaque;

	if (gpa >= sizeof(vm->ram) || len > sizeof(vm->ram) - gpa)
		return VMPT_MEM_UNBACKED;
	memcpy(vm->ram + gpa, buf, len);
	return 0;
}

/* A VMM that swaps or moves pages pins them here, and releases them in guest_release(). */
static int guest_translate(void *opaque, u64 gpa, u64 *hpa, u64 *size)
{
	struct vm *vm = opaque;

	if (gpa >= sizeof(vm->ram))
		return VMPT_MEM_UNBACKED;
	*hpa = HPA + gpa;
	if (*size > sizeof(vm->ram) - gpa)
		*size = sizeof(vm->ram) - gpa;
	return 0;
}

static void read_clock(void *opaque, u64 *tsc, u8 *acbr, u8 *ecbr) /* stand-in: RDTSC */
{
	(void)opaque;
	*tsc = 0x1122334455;
	*acbr = *ecbr = 20;
}

static const struct vmpt_rtit_ops ops = {
	.hw_rdmsr = hw_rdmsr,
	.hw_wrmsr = hw_wrmsr,
	.guest_write = guest_write,
	.guest_translate = guest_translate,
	.clock = read_clock,
};

/* ---- 2. exit handlers ---- */

static void handle_exit(struct vm *vm, struct vmpt_rtit_vcpu *vcpu, char insn, u32 index, u64 value)
{
	/* The guest is at CPL 0, out of SMM: what STATUS.ContextEn shows */
	bool context_en = vmpt_rtit_context_en(&vcpu->regs, 0, vm->cr3);
	struct vmpt_rtit_cr_write write = { value, true, true };
	int ret = 0;

	if (insn == 'R') {
		ret = vmpt_rtit_vcpu_rdmsr(vcpu, index, context_en, &value);
		if (!ret)
			printf("RDMSR %03Xh: %llx\n", index, (unsigned long long)value);
	} else if (insn == 'W') {
		printf("WRMSR %03Xh, %llx\n", index, (unsigned long long)value);
		ret = vmpt_rtit_vcpu_wrmsr(vcpu, index, value);
	} else { /* MOV CR3 */
		vm->cr3 = value;
		ret = vmpt_rtit_vcpu_cr_write(vcpu, &write);
		printf("MOV CR3, %llx: packets appended: %d\n", (unsigned long long)value, ret);
		ret = 0;
	}
	if (ret == VMPT_GP)
		printf("%s %03Xh: inject #GP: %s\n", insn == 'R' ? "RDMSR" : "WRMSR", index,
		       vmpt_gp_reason(vcpu->gp_why));
}

/* ---- 3. one entry and exit ---- */

static int run(struct vm *vm, struct vmpt_rtit_vcpu *vcpu, char insn, u32 index, u64 value)
{
	int ret;

	/*
	 * Only a guest that traces needs its MSRs loaded; they stay until another vCPU needs the
	 * processor.
	 */
	if (!vcpu->loaded && vmpt_rtit_vcpu_wanted(vcpu)) {
		printf("load\n");
		ret = vmpt_rtit_vcpu_load(vcpu);
		if (ret)
			return ret;
	}
	ret = vmpt_rtit_vcpu_quiet(vcpu, false);
	/* stand-in: VMRESUME, and the exit of @insn */
	if (!ret)
		ret = vmpt_rtit_vcpu_quiet(vcpu, true);
	if (!ret)
		handle_exit(vm, vcpu, insn, index, value);
	/* With a bounce buffer: vmpt_rtit_vcpu_sync(vcpu) here. */
	return ret;
}

static void print_trace(const u8 *buf, u64 len)
{
	struct vmpt_rtit_packet packet;
	char text[80];

	while (len && !vmpt_rtit_decode(&packet, buf, len, false)) {
		vmpt_rtit_print(&packet, text, sizeof(text));
		printf("guest's buffer: %s\n", text);
		buf += packet.size;
		len -= packet.size;
	}
}

int main(void)
{
	static const struct {
		char insn;
		u32 index;
		u64 value;
	} guest[] = {
		{ 'R', 0x769, 0 },	{ 'R', 0x768, 0 },    { 'W', 0x770, 0x8000 },
		{ 'W', 0x771, 0xfff },	{ 'W', 0x76c, 0x37 }, { 'W', 0x768, 0x515 },
		{ 'W', 0x768, 0x2515 }, { 'R', 0x769, 0 },    { 'C', 0, 0x1000 },
		{ 'W', 0x77d, 0 },	{ 'R', 0x772, 0 },
	};
	static struct vm vm = { .msr = { [0x770] = 0xfdc00000, [0x771] = 0x7f, [0x77d] = 1 } };
	struct vmpt_rtit_config config = { .ops = &ops, .opaque = &vm };
	struct vmpt_rtit_record record = { .vm = "mini", .cpu = 2, .tsc_offset = 0x1000 };
	struct vmpt_cpuid_regs cpuid = { .eax = 0x806ec };
	const struct vmpt_rtit_signature *signature;
	struct vmpt_rtit_vcpu vcpu;
	unsigned int n;
	char line[256];
	int ret;

	signature = vmpt_rtit_signatures(&n);
	vmpt_rtit_cpuid(&signature[n - 1], 1, 0, &cpuid);
	printf("CPUID 1: eax=%08x\n", cpuid.eax);
	ret = vmpt_rtit_vcpu_init(&vcpu, &config);
	vm.show = true;
	for (size_t i = 0; i < VMPT_ARRAY_SIZE(guest) && !ret; i++)
		ret = run(&vm, &vcpu, guest[i].insn, guest[i].index, guest[i].value);
	vmpt_rtit_record_print(&record, line, sizeof(line));
	printf("side record: %s", line);
	vm.show = false;
	if (!ret)
		ret = vmpt_rtit_vcpu_unload(&vcpu);
	if (ret)
		printf("%s\n", vmpt_strerror(ret));
	print_trace(vm.ram + 0x8000, vcpu.regs.offset);
	return ret != 0;
}
