/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A short run of a vCPU, for programs that only have to show that libvmpt links completely. */
#ifndef VMPT_TESTS_VCPU_RUN_H
#define VMPT_TESTS_VCPU_RUN_H

struct vmpt_vcpu;

/*
 * Plan, offer, make a vCPU, let the guest start tracing, and insert a PIP. Returns 0 or the number
 * of the failing step. @vcpu: memory for one, with any content.
 */
int vcpu_run(struct vmpt_vcpu *vcpu);

#endif
