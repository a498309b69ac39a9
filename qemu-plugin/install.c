// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What QEMU looks up in the plugin by name: the version of the interface that it was built for,
 * and the function that QEMU calls once at its start.
 */
#include <stdio.h>
#include <string.h>

#include "qemu-plugin/plugin.h"
#include "qemu-plugin/qemu/api.h"

int qemu_plugin_version = VMPT_QEMU_PLUGIN_API;

static int check_qemu(const struct vmpt_qemu_info *info)
{
	int min = info->version.min, cur = info->version.cur;

	if (min > VMPT_QEMU_PLUGIN_API || cur < VMPT_QEMU_PLUGIN_API) {
		fprintf(stderr,
			"vmpt: this QEMU has plugin API %d to %d, but %d is needed (QEMU 11.1)\n",
			min, cur, VMPT_QEMU_PLUGIN_API);
		return -1;
	}
	if (!info->system_emulation || strcmp(info->target_name, "x86_64")) {
		fprintf(stderr, "vmpt: this QEMU is not qemu-system-x86_64 (target %s)\n",
			info->target_name);
		return -1;
	}
	return 0;
}

int qemu_plugin_install(uint64_t id, const struct vmpt_qemu_info *info, int argc, char **argv)
{
	struct qemu_machine machine;

	if (check_qemu(info))
		return -1;
	machine.vcpus = (unsigned int)info->system.smp_vcpus;
	machine.max_vcpus = (unsigned int)info->system.max_vcpus;
	return plugin_install(id, &machine, argc, argv);
}
