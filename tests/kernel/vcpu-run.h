/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A vCPU's short life, for programs that only have to show that libvmpt is linked whole. */
#ifndef VMPT_TESTS_VCPU_RUN_H
#define VMPT_TESTS_VCPU_RUN_H

struct vmpt_vcpu;

/*
 * Plan, offer, make a vCPU, let the guest start tracing, and insert a PIP. 0, or the number
 * of the step that went wrong. @vcpu: memory for one, its contents do not matter.
 */
int vcpu_run(struct vmpt_vcpu *vcpu);

#endif
