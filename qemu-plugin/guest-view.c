// SPDX-License-Identifier: GPL-2.0-or-later
/* The guest view, not written yet. */
#include "qemu-plugin/guest-view.h"

#include <stdio.h>

#include "qemu-plugin/plugin.h"

int guest_view_open(struct plugin *plugin)
{
	if (!plugin->options.guest_view)
		return 0;
	fputs("vmpt: guest-view is not there yet\n", stderr);
	return -1;
}

void guest_view_close(struct plugin *plugin)
{
	(void)plugin;
}

int guest_vcpu_open(struct vcpu *vcpu)
{
	(void)vcpu;
	return 0;
}

bool guest_hooks(const struct plugin *plugin, unsigned int hook)
{
	(void)plugin;
	(void)hook;
	return false;
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

void guest_tick(struct vcpu *vcpu, u64 ip)
{
	(void)vcpu;
	(void)ip;
}
