// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The stage of a fault scenario: see scene.h.
 */
#include <stdio.h>

#include "scene.h"

#define TOPA_END 1ull
#define TOPA_INT 4ull

void scene_open(struct scene *s, bool irqchip)
{
	memset(s, 0, sizeof(*s));
	s->mode = GUEST_LONG64;
	host_pt_reset();
	kmsg_open(&s->kmsg);
	vm_open(&s->vm, irqchip);
	vcpu_open(&s->vcpu, &s->vm, 0);
	cpuid_supported(&s->vm, &s->cpuid);
}

struct kvm_cpuid_entry2 *scene_leaf(struct scene *s, u32 function, u32 index)
{
	struct kvm_cpuid_entry2 *leaf = cpuid_find(&s->cpuid, function, index);

	if (!leaf) {
		leaf = &s->cpuid.entries[s->cpuid.head.nent++];
		leaf->function = function;
		leaf->index = index;
		leaf->flags = KVM_CPUID_FLAG_SIGNIFCANT_INDEX;
	}
	return leaf;
}

int scene_set_cpuid(struct scene *s)
{
	s->cpuid_set = true;
	return vcpu_set_cpuid(&s->vcpu, &s->cpuid);
}

u32 scene_op(struct scene *s, enum guest_opcode code, u32 arg, u64 value)
{
	if (s->n == MAX_OPS)
		die("too many operations");
	s->ops[s->n] = (struct guest_op){ .code = code, .arg = arg, .value = value };
	return s->n++;
}

u32 scene_op_start(struct scene *s, u64 ctl)
{
	scene_op(s, OP_WRMSR, VMPT_MSR_RTIT_OUTPUT_BASE, TOPA_TABLE);
	scene_op(s, OP_WRMSR, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0x7f);
	scene_op(s, OP_WRMSR, VMPT_MSR_RTIT_STATUS, 0);
	return scene_op(s, OP_WRMSR, VMPT_MSR_RTIT_CTL, ctl);
}

u32 scene_op_stop(struct scene *s, u64 ctl)
{
	return scene_op(s, OP_WRMSR, VMPT_MSR_RTIT_CTL, ctl & ~VMPT_CTL_TRACE_EN);
}

void scene_topa(struct scene *s, u32 pages, u32 int_every)
{
	u64 *table = vm_at(&s->vm, TOPA_TABLE, (pages + 1) * sizeof(*table));
	u32 i;

	for (i = 0; i < pages; i++) {
		table[i] = TOPA_PAGES + i * PAGE_SIZE;
		if (int_every && i % int_every == int_every - 1)
			table[i] |= TOPA_INT;
	}
	table[pages] = TOPA_TABLE | TOPA_END;
	memset(vm_at(&s->vm, TOPA_PAGES, pages * PAGE_SIZE), 0, pages * PAGE_SIZE);
}

void scene_load(struct scene *s)
{
	u32 n = s->n;

	if (!s->cpuid_set && scene_set_cpuid(s))
		die("KVM refuses the CPUID that it reports as supported");
	scene_op(s, OP_END, 0, 0);
	guest_load_script(&s->vm, s->mode, s->ops, s->n);
	s->n = n;
	guest_start(&s->vcpu, s->mode);
}

static enum scene_end end(struct scene *s, enum scene_end how, u64 reason)
{
	memcpy(s->ops, vm_at(&s->vm, GUEST_OPS, s->n * sizeof(s->ops[0])),
	       s->n * sizeof(s->ops[0]));
	s->reason = reason;
	return how;
}

enum scene_end scene_run(struct scene *s)
{
	struct kvm_run *run = s->vcpu.run;
	u32 word = 0;
	int error;

	for (;;) {
		error = vcpu_run(&s->vcpu);
		if (error)
			return end(s, SCENE_ERROR, (u64)error);
		switch (run->exit_reason) {
		case KVM_EXIT_INTR:
			continue;
		case KVM_EXIT_IO:
			if (run->io.port == GUEST_PORT_DONE)
				return end(s, SCENE_DONE, 0);
			memcpy(&word, (u8 *)run + run->io.data_offset, run->io.size);
			s->outs++;
			if (s->on_out)
				s->on_out(s, word);
			continue;
		case KVM_EXIT_FAIL_ENTRY:
			return end(s, SCENE_ENTRY_FAILED,
				   run->fail_entry.hardware_entry_failure_reason);
		case KVM_EXIT_INTERNAL_ERROR:
			return end(s, SCENE_INTERNAL, run->internal.suberror);
		default:
			return end(s, SCENE_OTHER, run->exit_reason);
		}
	}
}

const char *scene_end_name(enum scene_end how)
{
	static const char *const names[] = {
		[SCENE_DONE] = "done",
		[SCENE_ENTRY_FAILED] = "VM entry failed, reason",
		[SCENE_INTERNAL] = "KVM internal error",
		[SCENE_OTHER] = "exit to user space",
		[SCENE_ERROR] = "KVM_RUN's errno",
	};

	return names[how];
}

u64 scene_output(struct scene *s)
{
	u64 mask = 0;

	if (vcpu_get_msr(&s->vcpu, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, &mask))
		return 0;
	return ((u32)mask >> 7) * (u64)PAGE_SIZE + (mask >> 32);
}

u32 scene_packets(struct scene *s, u64 size, enum vmpt_pt_kind kind)
{
	const u8 *bytes = vm_at(&s->vm, TOPA_PAGES, size);
	struct vmpt_pt_packet packet;
	unsigned int block = 0;
	u32 count = 0;
	u64 at = 0;

	while (at < size && !vmpt_pt_decode(&packet, bytes + at, size - at, block)) {
		count += packet.kind == kind;
		block = vmpt_pt_block_after(&packet, block);
		at += packet.size;
	}
	if (at < size)
		die("the guest's output is malformed at byte %llu of %llu", (unsigned long long)at,
		    (unsigned long long)size);
	return count;
}

bool scene_said(struct scene *s, const char *text)
{
	return kmsg_find(&s->kmsg, text, s->line, sizeof(s->line));
}
