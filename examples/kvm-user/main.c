// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A guest's PT is chosen, saved, and restored on other hosts: an equal one, and one that has less.
 * "./kvm-user" uses models of three hosts; "./kvm-user /dev/kvm" this host, as both source and
 * destination (on real KVM: not tested).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "model.h"

/* A host with one vCPU. */
struct host {
	struct kvm kvm, vcpu;
	struct vmpt_caps caps;
	int kvm_fd, vcpu_fd;
	struct model model;
};

static int real_ioctl(void *opaque, unsigned long request, void *arg)
{
	return ioctl(*(int *)opaque, request, arg);
}

static int open_kvm(struct host *h, const char *path)
{
	int vm;

	h->kvm = (struct kvm){ real_ioctl, &h->kvm_fd };
	h->vcpu = (struct kvm){ real_ioctl, &h->vcpu_fd };
	h->kvm_fd = open(path, O_RDWR | O_CLOEXEC);
	vm = h->kvm_fd < 0 ? -1 : ioctl(h->kvm_fd, KVM_CREATE_VM, 0);
	h->vcpu_fd = vm < 0 ? -1 : ioctl(vm, KVM_CREATE_VCPU, 0);
	if (h->vcpu_fd < 0)
		perror(path);
	return h->vcpu_fd < 0 ? -1 : 0;
}

/* CR3 filter, PSB and CYC, MTC, PTWRITE; ToPA and single range; @ranges address ranges. */
static int open_model(struct host *h, u32 ranges)
{
	h->model.host =
		(struct vmpt_pt_cpuid){ .present = 1,
					.maxphyaddr = 46,
					.linear_bits = 48,
					.leaf14 = { { 1, 0x1f, 7, 0 },
						    { 0x02490000 | ranges, 0x3f3fff, 0, 0 } } };
	h->kvm = h->vcpu = (struct kvm){ model_ioctl, &h->model };
	return 0;
}

/* The guest's CPUID: @guest, or everything that this host can offer. */
static int start(struct host *h, struct vmpt_caps *guest, bool choose)
{
	struct kvm_cpuid2 *cpuid =
		calloc(1, sizeof(*cpuid) + PT_CPUID_ENTRIES * sizeof(cpuid->entries[0]));
	struct vmpt_refusal why;
	int err;

	if (!cpuid)
		return -1;
	err = pt_host(&h->kvm, cpuid, &h->caps);
	if (!err && choose && vmpt_caps_offer(&h->caps, &vmpt_policy_all, guest, &why)) {
		printf("no PT for guests: %s: %s\n", why.field, why.rule);
		err = 1;
	}
	if (!err && choose && !guest->cpuid.present) {
		printf("this KVM offers no PT to guests\n");
		err = 1;
	}
	if (!err)
		err = pt_set_cpuid(cpuid, guest);
	if (!err)
		err = h->vcpu.ioctl(h->vcpu.opaque, KVM_SET_CPUID2, cpuid);
	free(cpuid);
	if (err < 0)
		fprintf(stderr, "the guest's CPUID cannot be chosen or set\n");
	return err;
}

static int set_msr(const struct host *h, u32 index, u64 value)
{
	struct kvm_msrs *one = calloc(1, sizeof(*one) + sizeof(one->entries[0]));
	int set = 0;

	if (one) {
		one->nmsrs = 1;
		one->entries[0] = (struct kvm_msr_entry){ .index = index, .data = value };
		set = h->vcpu.ioctl(h->vcpu.opaque, KVM_SET_MSRS, one);
	}
	free(one);
	return set == 1 ? 0 : -1;
}

/* In place of a guest that runs: it traces to a ToPA table, with a filter. */
static int trace(const struct host *h)
{
	return set_msr(h, VMPT_MSR_RTIT_OUTPUT_BASE, 0x4000) ||
	       set_msr(h, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, vmpt_pt_mask_ptrs(2, 0x123)) ||
	       set_msr(h, VMPT_MSR_RTIT_ADDR0_A, 0x401000) ||
	       set_msr(h, VMPT_MSR_RTIT_ADDR0_A + 1, 0x402000) ||
	       set_msr(h, VMPT_MSR_RTIT_CTL,
		       VMPT_CTL_TRACE_EN | VMPT_CTL_OS | VMPT_CTL_TOPA | VMPT_CTL_BRANCH_EN |
			       1ULL << VMPT_CTL_ADDR_SHIFT(0));
}

static void move(const char *to, struct host *h, struct pt_state *state)
{
	struct pt_state now;
	char why[200];

	if (start(h, &state->guest, false))
		printf("%s: cannot start\n", to);
	else if (pt_restore(&h->vcpu, &h->caps, state, why))
		printf("%s: refused: %s\n", to, why);
	else if (pt_save(&h->kvm, &h->vcpu, &state->guest, &now) ||
		 memcmp(&now, state, sizeof(now)))
		printf("%s: another state\n", to);
	else
		printf("%s: %u MSRs restored\n", to, now.count);
}

int main(int argc, char **argv)
{
	static struct host source, equal, other, less;
	const char *path = argc > 1 ? argv[1] : NULL;
	struct vmpt_caps guest;
	struct pt_state state, damaged;

	if (path ? open_kvm(&source, path) : open_model(&source, 2))
		return 1;
	if (path ? open_kvm(&equal, path) : open_model(&equal, 2))
		return 1;
	if (path ? open_kvm(&other, path) : open_model(&other, 2))
		return 1;
	if (start(&source, &guest, true))
		return 1;
	if (trace(&source) || pt_save(&source.kvm, &source.vcpu, &guest, &state)) {
		fprintf(stderr, "the guest's MSRs cannot be set or saved\n");
		return 1;
	}
	printf("source: %u MSRs saved, the last is %x: %llx\n", state.count,
	       state.msr[state.count - 1].index,
	       (unsigned long long)state.msr[state.count - 1].data);
	move("an equal host", &equal, &state);
	move("the same again, while it traces", &equal, &state);
	if (!path && !open_model(&less, 1))
		move("a host with one address range", &less, &state);
	damaged = state;
	damaged.msr[state.count - 1].data |= 1ULL << 60; /* reserved */
	move("a damaged state", &equal, &damaged);
	/* What a VMM must not do: IA32_RTIT_CTL before the others. */
	damaged = state;
	damaged.msr[0] = state.msr[state.count - 1];
	damaged.msr[state.count - 1] = state.msr[0];
	move("CTL first", &other, &damaged);
	return 0;
}
