// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What a VMM does to give a guest Intel PT; docs/vmm-guide.md quotes it step by step. The processor
 * is cpu.c. Where the example has nothing to do, a comment says what a VMM does there.
 */
#include <stdio.h>

#include "vmm.h"

/* ---- step 5: callbacks ---- */

static int guest_read(void *opaque, u64 gpa, void *buf, size_t len)
{
	struct vm *vm = opaque;

	if (gpa >= VM_RAM || len > VM_RAM - gpa)
		return VMPT_MEM_UNBACKED;
	memcpy(buf, vm->memory + gpa, len);
	return 0;
}

static int guest_write(void *opaque, u64 gpa, const void *buf, size_t len)
{
	struct vm *vm = opaque;

	if (gpa >= VM_RAM || len > VM_RAM - gpa)
		return VMPT_MEM_UNBACKED;
	memcpy(vm->memory + gpa, buf, len); /* and log the pages as dirty */
	return 0;
}

static int guest_translate(void *opaque, u64 gpa, u64 *hpa, u64 *size)
{
	(void)opaque;
	if (gpa >= VM_RAM)
		return VMPT_MEM_UNBACKED;
	*hpa = gpa;
	*size = VM_RAM - gpa;
	return 0;
}

static void inject_pmi(void *opaque)
{
	struct vm *vm = opaque;

	vm->pmis++; /* through the guest's LVT entry; kept pending while that is masked */
}

static int hw_rdmsr(void *opaque, u32 msr, u64 *value)
{
	struct vm *vm = opaque;

	return cpu_rdmsr(&vm->cpu, msr, value) ? -1 : 0;
}

static int hw_wrmsr(void *opaque, u32 msr, u64 value)
{
	struct vm *vm = opaque;

	return cpu_wrmsr(&vm->cpu, msr, value) ? -1 : 0;
}

static int set_guest_ctl(void *opaque, u64 ctl)
{
	struct vm *vm = opaque;

	vm->vmcs.guest_rtit_ctl = ctl; /* VMWRITE VMPT_VMCS_GUEST_RTIT_CTL */
	vmpt_vmx_lists(&vm->plan, ctl, &vm->vmcs.lists);
	return 0;
}

static const struct vmpt_ops ops = {
	.guest_read = guest_read,
	.guest_write = guest_write,
	.guest_translate = guest_translate,
	.inject_pmi = inject_pmi,
	.hw_rdmsr = hw_rdmsr,
	.hw_wrmsr = hw_wrmsr,
	.set_guest_ctl = set_guest_ctl,
};

/* ---- steps 2 to 6: the host, the guest's capabilities, the controls, the vCPU ---- */

static int host_cpuid(void *opaque, u32 leaf, u32 subleaf, struct vmpt_cpuid_regs *regs)
{
	struct vm *vm = opaque;

	return cpu_cpuid(&vm->cpu, leaf, subleaf, regs); /* CPUID */
}

static int read_host(struct vm *vm)
{
	struct vmpt_cpu_reader reader = { .cpuid = host_cpuid, .rdmsr = hw_rdmsr, .opaque = vm };

	return vmpt_caps_read(&vm->host, &reader);
}

static int choose_caps(struct vm *vm, struct vmpt_refusal *why)
{
	struct vmpt_policy policy = { .hide = 1u << VMPT_CAP_POWER, .ranges_max = 2 };
	const char *note;
	unsigned int i;
	int err;

	for (i = 0; (note = vmpt_policy_note(&vm->host, &policy, i)); i++)
		fprintf(stderr, "policy: %s\n", note);
	err = vmpt_caps_offer(&vm->host, &policy, &vm->guest, why);
	/* Where a user gives the guest's CPUID: fill vm->guest from that, then check it. */
	return err ? err : vmpt_caps_check(&vm->host, &vm->guest, why);
}

static int choose_controls(struct vm *vm, struct vmpt_refusal *why)
{
	int err = -VMPT_E_CONTROLS;

	if (vm->guest.cpuid.present)
		err = vmpt_vmx_plan(&vm->plan, &vm->host, VMPT_USE_GUEST, why);
	if (err == -VMPT_E_CONTROLS) { /* then the guest runs without PT */
		memset(&vm->guest, 0, sizeof(vm->guest));
		err = vmpt_vmx_plan(&vm->plan, &vm->host, VMPT_USE_NONE, why);
	}
	return err;
}

static void merge(u32 *control, const struct vmpt_control *from)
{
	*control = (*control & ~from->mask) | from->value;
}

static int set_controls(struct vm *vm, struct vmpt_refusal *why)
{
	struct vmcs *vmcs = &vm->vmcs;

	vmcs->secondary = VMPT_SECONDARY_EPT; /* what the VMM itself needs */
	merge(&vmcs->secondary, &vm->plan.secondary);
	merge(&vmcs->exit, &vm->plan.exit);
	merge(&vmcs->entry, &vm->plan.entry);
	return vmpt_vmx_check(&vm->plan, &vm->host, vmcs->secondary, vmcs->exit, vmcs->entry, why);
}

/* Pages for a shadow ToPA, which no guest reaches. */
static void make_shadow(struct vm *vm)
{
	u32 i;

	vm->shadow.origin = vm->origin;
	vm->shadow.pages = SHADOW_PAGES;
	for (i = 0; i < SHADOW_PAGES; i++) {
		vm->shadow.page_hpa[i] = VM_RAM + 4096 * i;
		vm->shadow.page[i] = (u64 *)(vm->memory + VM_RAM + 4096 * i);
	}
}

static int make_vcpu(struct vm *vm, struct vmpt_refusal *why)
{
	vm->config = (struct vmpt_config){
		.host = &vm->host,
		.guest = &vm->guest,
		.plan = &vm->plan,
		.ops = &ops,
		.opaque = vm,
		.shadow = &vm->shadow,
		.on_unbacked = VMPT_ON_MEM_ERROR,
		.on_mmio = VMPT_ON_MEM_DROP,
		.xsave = true, /* this VMM emulates XSAVES and XRSTORS of component 8 */
	};
	return vmpt_vcpu_init(&vm->vcpu, &vm->config, why);
}

int vm_init(struct vm *vm)
{
	struct vmpt_refusal why = { .field = "the host", .rule = "cannot be read" };
	int err = read_host(vm);

	if (!err)
		err = choose_caps(vm, &why);
	if (!err)
		err = choose_controls(vm, &why);
	if (!err)
		err = set_controls(vm, &why);
	make_shadow(vm);
	if (!err)
		err = make_vcpu(vm, &why);
	if (err)
		fprintf(stderr, "%s: %s: %s\n", vmpt_strerror(err), why.field, why.rule);
	return err;
}

/* ---- steps 8, 10 and 11: pass-through, CR3, TSC ---- */

static void set_bit_to(u8 *bitmap, u32 bit, bool value)
{
	bitmap[bit / 8] = (u8)((bitmap[bit / 8] & ~(1u << bit % 8)) | (u32)value << bit % 8);
}

static void update_bitmaps(struct vm *vm)
{
	u32 msr;

	for (msr = VMPT_MSR_RTIT_OUTPUT_BASE; msr <= VMPT_MSR_RTIT_ADDR3_B; msr++) {
		unsigned int exits = vmpt_vcpu_intercepts(&vm->vcpu, msr);

		set_bit_to(vm->vmcs.read_exits, msr - 0x560, exits & VMPT_INTERCEPT_READ);
		set_bit_to(vm->vmcs.write_exits, msr - 0x560, exits & VMPT_INTERCEPT_WRITE);
	}
}

int vm_mov_cr3(struct vm *vm, u64 cr3)
{
	struct vmpt_cr3_write write = { .old_cr3 = vm->cr3, .new_cr3 = cr3, .cause = VMPT_CR3_MOV };
	int ret = vmpt_vcpu_cr3_write(&vm->vcpu, &write);

	if (ret < 0) /* -VMPT_E_RETRY: provide the memory, then the same call again */
		return ret;
	vm->cr3 = cr3;
	return 0;
}

static int adjust_tsc(struct vm *vm)
{
	int ret;

	do /* VMPT_MORE: other work of the host may run in between */
		ret = vmpt_vcpu_tsc_adjust(&vm->vcpu, &vm->tsc, NULL);
	while (ret == VMPT_MORE);
	if (ret != -VMPT_E_LIMIT)
		return ret;
	/*
	 * The guest changed its tables, and some of its trace shows the host's time. A VMM that
	 * must not show it stops the VM here.
	 */
	fprintf(stderr, "TSC packets: %s\n", vmpt_strerror(ret));
	return 0;
}

/* ---- step 9: entry and exit ---- */

/* PT's output found no memory at @gpa. This VMM has none to provide. */
static int output_fault(struct vm *vm, u64 qualification, u64 gpa)
{
	switch (vmpt_vcpu_ept_violation(&vm->vcpu, qualification, gpa, false)) {
	case VMPT_EPT_NOT_PT:
		return -VMPT_E_GUEST_MEM; /* the instruction's own: emulate or map, as always */
	case VMPT_EPT_RETRY:
	case VMPT_EPT_ERROR:
		break;
	}
	return 0;
}

static int enter(struct vm *vm)
{
	int err = vmpt_vcpu_enter(&vm->vcpu), tries = 3;

	/* Enable preemption, let other code run or provide memory, then try again. */
	while ((err == -VMPT_E_RETRY || err == -VMPT_E_HOST_TRACING) && tries--)
		err = vmpt_vcpu_enter(&vm->vcpu);
	return err;
}

int vm_run(struct vm *vm, u32 bytes)
{
	int err;

	update_bitmaps(vm); /* at least whenever CTL may have changed */
	err = enter(vm);
	if (err) {
		fprintf(stderr, "not entered: %s\n", vmpt_strerror(err));
		return err;
	}
	cpu_run(&vm->cpu, &vm->vmcs, vm->cr3, bytes); /* VMRESUME, up to the VM exit */
	err = vmpt_vcpu_exit(&vm->vcpu, VMPT_EXIT_NORMAL);
	if (err)
		fprintf(stderr, "VM exit: %s\n", vmpt_strerror(err));
	if (err == -VMPT_E_HOST_TRACING) /* only the host's trace has a gap: notify its tracer */
		err = 0;
	if (!err && vm->cpu.fault) /* an EPT violation; bit 16: not by an instruction */
		err = output_fault(vm, 1 << 16, vm->cpu.gpa);
	if (!err && vm->tsc.multiplier)
		err = adjust_tsc(vm);
	if (vm->vcpu.events & VMPT_EVENT_LOST && vm->log)
		fprintf(stderr, "bytes of the guest's trace were lost\n");
	vm->vcpu.events = 0;
	return err;
}

bool vm_nmi(struct vm *vm)
{
	if (vmpt_vcpu_pmi_owner(&vm->vcpu) == VMPT_OWNED_BY_HOST)
		return true; /* the host's handler may read and reset bit 55 */
	/* The hand-over finds the PMI. Leave bit 55 alone, unmask the LVT entry. */
	return false;
}

/* ---- steps 7 and 8: CPUID and MSR exits ---- */

int vm_cpuid(struct vm *vm, u32 leaf, u32 subleaf, struct vmpt_cpuid_regs *regs)
{
	cpu_cpuid(&vm->cpu, leaf, subleaf, regs); /* the VMM's own answer: here the host's */
	vmpt_vcpu_cpuid(&vm->vcpu, leaf, subleaf, regs);
	return 0;
}

/* After an access: what the guest sees, and errors that are the VMM's. */
static int msr_done(struct vm *vm, int ret)
{
	if (ret == -VMPT_E_INVAL) /* not an MSR of the library: the VMM's own; here none */
		return VMPT_GP;
	if (ret == VMPT_GP && vm->log)
		fprintf(stderr, "#GP: %s\n", vmpt_gp_reason(vm->vcpu.gp_why));
	return ret; /* VMPT_GP: inject #GP(0); 0: advance RIP; -VMPT_E_STATE: a bug in this VMM */
}

int vm_rdmsr(struct vm *vm, u32 msr, u64 *value)
{
	/* The VMM's own part: a ratio of 42 (1008 MHz); none of the other bits of 38EH. */
	*value = msr == VMPT_MSR_PLATFORM_INFO ? 42 << 8 : 0;
	return msr_done(vm, vmpt_vcpu_rdmsr(&vm->vcpu, msr, value));
}

int vm_wrmsr(struct vm *vm, u32 msr, u64 value)
{
	int err = 0;

	if (msr == VMPT_MSR_RTIT_CTL && vm->tsc.multiplier)
		err = adjust_tsc(vm);
	return err ? err : msr_done(vm, vmpt_vcpu_wrmsr(&vm->vcpu, msr, value));
}

/* ---- steps 14 and 15: memory that moves, migration ---- */

void vm_memory_moves(struct vm *vm, u64 gpa, u64 size)
{
	if (vmpt_shadow_invalidate(&vm->vcpu, gpa, size)) {
		/* Kick the vCPU out of the guest, and wait, before the page is released. */
	}
}

int vm_migrate(struct vm *vm)
{
	struct vmpt_refusal why = { .field = "", .rule = "" };
	u8 state[VMPT_STATE_MAX];
	int len = vmpt_vcpu_save(&vm->vcpu, state, sizeof(state)), err;

	if (len < 0)
		return len;
	/* On the other host, which passed vmpt_caps_check() before: */
	err = make_vcpu(vm, &why);
	if (!err)
		err = vmpt_vcpu_restore(&vm->vcpu, state, (size_t)len, &why);
	if (err)
		fprintf(stderr, "%s: %s: %s\n", vmpt_strerror(err), why.field, why.rule);
	return err;
}
