// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * No guest view, and nothing that the flow would tell it.
 */
#include "qemu-plugin/guest/view.h"
#include "qemu-plugin/flow/vcpu.h"

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
