// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * No host view: a unit of a test's own stands for its.
 */
#include "qemu-plugin/host/view.h"
#include "qemu-plugin/flow/vcpu.h"
#include "tests/support/support.h"

void host_enter(struct vcpu *vcpu, u64 ip)
{
	(void)vcpu;
	ck_abort_msg("VM entry at %#llx", (unsigned long long)ip);
}

void host_exit(struct vcpu *vcpu, u64 ip, u32 reason)
{
	(void)vcpu;
	ck_abort_msg("VM exit at %#llx, reason %u", (unsigned long long)ip, reason);
}

void host_exit_io(struct vcpu *vcpu, u64 ip, u64 qualification)
{
	(void)vcpu;
	ck_abort_msg("I/O at %#llx, %#llx", (unsigned long long)ip,
		     (unsigned long long)qualification);
}

bool host_running(const struct vcpu *vcpu)
{
	(void)vcpu;
	return true;
}

void host_tick(struct vcpu *vcpu, u64 ip)
{
	(void)vcpu;
	(void)ip;
}
