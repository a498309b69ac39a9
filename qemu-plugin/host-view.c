// SPDX-License-Identifier: GPL-2.0-or-later
/* The host view, not written yet. */
#include "qemu-plugin/host-view.h"

#include <stdio.h>

#include "qemu-plugin/plugin.h"

int host_view_open(struct plugin *plugin)
{
	if (!plugin->options.host_view)
		return 0;
	fputs("vmpt: host-view is not there yet\n", stderr);
	return -1;
}

void host_view_close(struct plugin *plugin)
{
	(void)plugin;
}

int host_vcpu_open(struct vcpu *vcpu)
{
	(void)vcpu;
	return 0;
}

void host_enter(struct vcpu *vcpu, u64 ip)
{
	(void)vcpu;
	(void)ip;
}

bool host_running(const struct vcpu *vcpu)
{
	(void)vcpu;
	return false;
}

void host_exit(struct vcpu *vcpu, u64 ip, u32 reason)
{
	(void)vcpu;
	(void)ip;
	(void)reason;
}

void host_tick(struct vcpu *vcpu, u64 ip)
{
	(void)vcpu;
	(void)ip;
}
