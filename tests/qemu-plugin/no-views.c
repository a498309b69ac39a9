// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * No views: a unit of a test's own stands for theirs.
 */
#include "qemu-plugin/guest-view.h"
#include "qemu-plugin/host-view.h"
#include "qemu-plugin/plugin.h"
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

bool guest_hooks(const struct plugin *plugin, unsigned int hook)
{
	(void)plugin;
	(void)hook;
	return false;
}

void guest_translates(struct plugin *plugin, u64 vaddr, const void *haddr)
{
	(void)plugin;
	(void)vaddr;
	(void)haddr;
}

void guest_site(struct vcpu *vcpu, const struct site *site)
{
	(void)vcpu;
	(void)site;
}

void guest_event(struct vcpu *vcpu, u64 from, u64 to)
{
	(void)vcpu;
	(void)from;
	(void)to;
}

void guest_block(struct vcpu *vcpu, u64 ip)
{
	(void)vcpu;
	(void)ip;
}

u64 guest_ctl(const struct vcpu *vcpu)
{
	(void)vcpu;
	return 0;
}

void guest_tick(struct vcpu *vcpu, u64 ip)
{
	(void)vcpu;
	(void)ip;
}
