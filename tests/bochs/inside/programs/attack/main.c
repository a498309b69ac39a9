// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * attack [CPUIDS [FIRST]]: a hostile VMM. Random CPUIDs, which offer more of PT than exists or are
 * inconsistent, and random writes of PT's registers by KVM_SET_MSRS; a vCPU with those that KVM
 * accepts is entered, and traces if it can. KVM must not accept a CPUID with more PT than it
 * offers; no entry may fail; registers that nobody writes must keep their values; the kernel must
 * print nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "scene.h"

#include "cpuids.h"

#define SHOWN	10
#define CANARY	0x7fed000000000000ull
#define PT_MSRS 13

static const u32 msrs[PT_MSRS] = { 0x560, 0x561, 0x570, 0x571, 0x572, 0x580, 0x581,
				   0x582, 0x583, 0x584, 0x585, 0x586, 0x587 };

static struct {
	u32 cpuids, accepted, too_much, writes, taken, entries, failed, changed, shown;
} counts;

static struct cpuid offered;

static bool show(u64 seed)
{
	if (++counts.shown > SHOWN)
		return false;
	printf("attack: seed %llu: ", (unsigned long long)seed);
	return true;
}

/* ---- registers ---- */

/*
 * The value of each register, as far as KVM allowed it to be set; the guest does not write
 * CR3_MATCH and the address ranges.
 */
struct canaries {
	u64 value[PT_MSRS];
	bool known[PT_MSRS];
};

static u64 random_value(struct random *rng)
{
	switch (random_below(rng, 4)) {
	case 0:
		return random_next(rng);
	case 1:
		return 1ull << random_below(rng, 64);
	case 2:
		return random_next(rng) >> random_below(rng, 64);
	default:
		return random_one_in(rng, 2) ? ~0ull : 0;
	}
}

/* Some random writes, also to nonexistent registers; then the watched registers. */
static void write_msrs(struct scene *s, struct random *rng, struct canaries *c)
{
	u32 i, n = random_below(rng, 12), msr;

	while (n--) {
		msr = random_one_in(rng, 4) ? 0x560 + random_below(rng, 0x40)
					    : msrs[random_below(rng, PT_MSRS)];
		counts.writes++;
		counts.taken += !vcpu_set_msr(&s->vcpu, msr, random_value(rng));
	}
	/* The guest starts its trace with everything off. */
	(void)vcpu_set_msr(&s->vcpu, VMPT_MSR_RTIT_CTL, 0);
	(void)vcpu_set_msr(&s->vcpu, VMPT_MSR_RTIT_STATUS, 0);
	for (i = 4; i < PT_MSRS; i++) {
		c->value[i] = i == 4 ? 0x1234560 : (CANARY >> 17) + i;
		c->known[i] = !vcpu_set_msr(&s->vcpu, msrs[i], c->value[i]);
	}
}

static void check_msrs(struct scene *s, const struct canaries *c, u64 seed)
{
	u64 value;
	u32 i;

	for (i = 4; i < PT_MSRS; i++) {
		if (!c->known[i] ||
		    (!vcpu_get_msr(&s->vcpu, msrs[i], &value) && value == c->value[i]))
			continue;
		counts.changed++;
		if (show(seed))
			printf("MSR %x is %llx, was %llx\n", msrs[i], (unsigned long long)value,
			       (unsigned long long)c->value[i]);
	}
}

/* The guest wrote CTL last: check its value. */
static void check_ctl(struct scene *s, u32 stop, u64 ctl, u64 seed)
{
	u64 value;

	if (s->ops[stop].fault || !s->ops[stop].done ||
	    (!vcpu_get_msr(&s->vcpu, VMPT_MSR_RTIT_CTL, &value) && value == ctl))
		return;
	counts.changed++;
	if (show(seed))
		printf("RTIT_CTL is %llx, the guest wrote %llx\n", (unsigned long long)value,
		       (unsigned long long)ctl);
}

/* ---- a vCPU ---- */

static u64 random_ctl(struct random *rng)
{
	u64 ctl = CTL_TRACE;

	if (random_one_in(rng, 2))
		ctl |= 1ull << random_below(rng, 64);
	if (random_one_in(rng, 4))
		ctl |= (u64)random_below(rng, 3) << (32 + 4 * random_below(rng, 4));
	return ctl;
}

static void enter(struct scene *s, struct random *rng, u64 seed)
{
	u64 ctl = random_ctl(rng);
	struct canaries c = { 0 };
	enum scene_end end;
	u32 stop;

	s->n = 0;
	scene_topa(s, 4, 0);
	scene_op_start(s, ctl);
	scene_op(s, OP_WORK, 10, 0);
	scene_op(s, OP_TRAPS, 3, 0);
	stop = scene_op_stop(s, ctl);
	scene_op(s, OP_END, 0, 0);
	guest_load_script(&s->vm, s->mode, s->ops, s->n);
	write_msrs(s, rng, &c);
	end = scene_run(s);
	counts.entries++;
	/*
	 * With some CPUIDs a guest cannot run, for example if bits of its page tables become
	 * reserved.
	 */
	if (end == SCENE_ENTRY_FAILED || end == SCENE_ERROR) {
		counts.failed++;
		if (show(seed))
			printf("%s %#llx\n", scene_end_name(end), (unsigned long long)s->reason);
		return;
	}
	check_msrs(s, &c, seed);
	if (end == SCENE_DONE)
		check_ctl(s, stop, ctl & ~VMPT_CTL_TRACE_EN, seed);
}

/* Reads back what KVM accepted. */
static void check_taken(struct scene *s, u64 seed)
{
	static struct cpuid now;
	const char *what;

	now.head.nent = KVM_MAX_CPUID;
	if (ioctl(s->vcpu.fd, KVM_GET_CPUID2, &now) < 0)
		die("KVM_GET_CPUID2: %s", strerror(errno));
	if (!cpuid_has_pt(&now) || cpuid_is_part(&now, &offered, &what))
		return;
	counts.too_much++;
	if (show(seed))
		printf("%s is taken with more than KVM offers\n", what);
}

/*
 * Opens a vCPU without a CPUID, since with some CPUIDs its registers could not be set. It is not in
 * long mode, which would need one.
 */
static void begin(struct scene *s)
{
	static const struct guest_op end = { .code = OP_END };

	vm_open(&s->vm, false);
	vcpu_open(&s->vcpu, &s->vm, 0);
	guest_load_script(&s->vm, s->mode, &end, 1);
	guest_start(&s->vcpu, s->mode);
}

static void finish(struct scene *s)
{
	vcpu_close(&s->vcpu);
	vm_close(&s->vm);
}

/* Each vCPU gets CPUIDs until KVM accepts one. */
static void attack(struct scene *s, u64 first, u64 n)
{
	struct random rng;
	u64 seed;

	begin(s);
	cpuid_supported(&s->vm, &offered);
	for (seed = first; seed < first + n; seed++) {
		random_seed(&rng, seed);
		s->cpuid = offered;
		cpuid_spoil(&s->cpuid, &rng);
		counts.cpuids++;
		if (scene_set_cpuid(s))
			continue;
		counts.accepted++;
		check_taken(s, seed);
		enter(s, &rng, seed);
		finish(s);
		begin(s);
	}
	finish(s);
}

int main(int argc, char **argv)
{
	static const char *const bad[] = { "unchecked MSR", "WARNING", "BUG", "KASAN", "Oops" };
	static struct scene scene;
	u64 n = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000;
	bool said = false;
	u32 i;

	scene.mode = GUEST_PROT32;
	kmsg_open(&scene.kmsg);
	attack(&scene, argc > 2 ? strtoull(argv[2], NULL, 10) : 1, n);
	for (i = 0; i < VMPT_ARRAY_SIZE(bad); i++) {
		if (!scene_said(&scene, bad[i]))
			continue;
		printf("attack: the kernel said: %s\n", scene.line);
		said = true;
	}
	printf("attack: %u CPUIDs, %u taken, %u with too much; %u MSR writes, %u taken; "
	       "%u entries, %u failed, %u registers changed\n",
	       counts.cpuids, counts.accepted, counts.too_much, counts.writes, counts.taken,
	       counts.entries, counts.failed, counts.changed);
	return counts.too_much || counts.failed || counts.changed || said;
}
