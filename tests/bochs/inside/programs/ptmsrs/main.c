// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * ptmsrs [PROGRAMS [FIRST]]: random programs of RDMSR and WRMSR of PT's registers, each in a guest
 * of its own with a random subset of the PT that KVM offers. The result of each access, a value or
 * #GP, must be what the manual says for a processor with that CPUID: the rules are those of
 * tests/arch/regs-oracle.h, written from the manual's tables independently of other code. After
 * each program KVM_GET_MSRS must agree. A program is determined by its seed.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/arch/regs-oracle.h"

#include "programs.h"

#define SHOWN 20

static struct {
	u32 programs, accesses, faults, enabled, without, refused, differ;
} counts;

static void __attribute__((format(printf, 3, 4)))
differ(const struct program *p, u32 step, const char *format, ...)
{
	va_list args;

	if (++counts.differ > SHOWN)
		return;
	printf("ptmsrs: seed %llu step %u: ", (unsigned long long)p->seed, step);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("; 14H EBX %x ECX %x, 1: EAX %x EBX %x\n", p->cpuid.leaf14[0].ebx,
	       p->cpuid.leaf14[0].ecx, p->cpuid.leaf14[1].eax, p->cpuid.leaf14[1].ebx);
}

/* MSRs that the processor itself changes while it traces. */
static bool changes(u32 msr)
{
	return msr == VMPT_MSR_RTIT_STATUS || msr == VMPT_MSR_RTIT_OUTPUT_MASK_PTRS;
}

/* Bits of @msr that can be compared. TriggerEn and the two below it are the processor's. */
static u64 known(const struct oracle *o, u32 msr, bool traced)
{
	if (changes(msr) && (traced || o->value[oracle_index(VMPT_MSR_RTIT_CTL)] & 1))
		return 0;
	return msr == VMPT_MSR_RTIT_STATUS ? ~7ull : ~0ull;
}

/*
 * Compares an access of the guest with the oracle, which then continues from the processor's state.
 * *traced: it has traced since the registers that it changes were written.
 */
static void judge_access(const struct program *p, struct oracle *o, u32 step,
			 const struct guest_op *op, bool *traced)
{
	u32 msr = op->arg;
	u64 value = 0, mask;
	char what[64];
	bool right, ctl;

	snprintf(what, sizeof(what), "%s %x %llx", op->code == OP_RDMSR ? "RDMSR" : "WRMSR", msr,
		 (unsigned long long)op->value);
	ctl = o->value[oracle_index(VMPT_MSR_RTIT_CTL)] & 1;
	right = op->code == OP_RDMSR ? oracle_read(o, msr, &value)
				     : oracle_write(o, msr, op->value);
	counts.accesses++;
	counts.faults += !right;
	if (right != !op->fault) {
		differ(p, step, "%s: #GP %d, should be %d", what, op->fault != 0, !right);
		return;
	}
	if (!right)
		return;
	if (op->code == OP_WRMSR) {
		if (msr == VMPT_MSR_RTIT_CTL && !ctl && op->value & 1) {
			counts.enabled++;
			*traced = true;
		}
		return;
	}
	mask = known(o, msr, *traced);
	if ((op->result ^ value) & mask)
		differ(p, step, "%s: %llx, should be %llx", what, (unsigned long long)op->result,
		       (unsigned long long)value);
	if (changes(msr))
		o->value[oracle_index(msr)] = op->result;
}

/* Compares the guest's registers as its VMM sees them. */
static void judge_state(const struct program *p, struct scene *s, const struct oracle *o,
			bool traced)
{
	u64 value, right;
	u32 i, msr;

	for (i = 0; i < ORACLE_MSRS; i++) {
		msr = oracle_msrs[i];
		if (!oracle_read(o, msr, &right))
			continue;
		if (vcpu_get_msr(&s->vcpu, msr, &value))
			differ(p, p->n, "KVM_GET_MSRS %x: refused", msr);
		else if ((value ^ right) & known(o, msr, traced))
			differ(p, p->n, "KVM_GET_MSRS %x: %llx, should be %llx", msr,
			       (unsigned long long)value, (unsigned long long)right);
	}
}

static void judge(const struct program *p, struct scene *s, enum scene_end end)
{
	struct oracle o;
	bool traced = false;
	u32 i;

	oracle_init(&o, &p->cpuid);
	if (end != SCENE_DONE) {
		differ(p, p->n, "%s %llx", scene_end_name(end), (unsigned long long)s->reason);
		return;
	}
	for (i = 0; i < p->n; i++) {
		/* After the first difference everything may differ. */
		u32 before = counts.differ;

		if (s->ops[i].code != OP_WORK)
			judge_access(p, &o, i, &s->ops[i], &traced);
		if (counts.differ != before)
			return;
	}
	judge_state(p, s, &o, traced);
}

/* scene_open() without the parts that exist once. */
static void open_scene(struct scene *s)
{
	s->n = s->outs = 0;
	s->cpuid_set = false;
	vm_open(&s->vm, false);
	vcpu_open(&s->vcpu, &s->vm, 0);
	cpuid_supported(&s->vm, &s->cpuid);
}

static void run(struct scene *s, u64 seed)
{
	static struct program p;
	u32 i;

	open_scene(s);
	program_make(&p, seed, s);
	if (scene_set_cpuid(s)) {
		counts.refused++;
	} else {
		counts.programs++;
		counts.without += !p.cpuid.present;
		scene_topa(s, 4, 0);
		for (i = 0; i < p.n; i++)
			scene_op(s, p.ops[i].code, p.ops[i].arg, p.ops[i].value);
		scene_load(s);
		judge(&p, s, scene_run(s));
	}
	vcpu_close(&s->vcpu);
	vm_close(&s->vm);
}

int main(int argc, char **argv)
{
	static struct scene scene;
	u64 n = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
	u64 first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, seed;
	u32 said;

	scene.mode = GUEST_LONG64;
	kmsg_open(&scene.kmsg);
	/* Until that many ran; KVM may refuse some CPUIDs, but not all. */
	for (seed = first; counts.programs < n && seed < first + 4 * n; seed++)
		run(&scene, seed);
	said = scene_said(&scene, "unchecked MSR") || scene_said(&scene, "WARNING") ||
	       scene_said(&scene, "BUG");
	if (said)
		printf("ptmsrs: the kernel said: %s\n", scene.line);
	printf("ptmsrs: %u programs, %u without PT, %u CPUIDs refused; %u accesses, %u #GP, "
	       "%u times TraceEn; %u differ\n",
	       counts.programs, counts.without, counts.refused, counts.accesses, counts.faults,
	       counts.enabled, counts.differ);
	return counts.differ || said;
}
