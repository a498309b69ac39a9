// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The plugin's door: is this a QEMU that we know, what do the options ask for, which callbacks
 * serve it. So far it counts the blocks that QEMU translates and says so at the end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu-plugin/api.h"

/* One per -plugin on QEMU's command line: the same file may be loaded twice. */
struct plugin {
	uint64_t blocks; /* atomic: vCPUs translate in parallel */
};

struct option {
	const char *name;
	const char *help;
};

static const struct option options[] = {
	{ "help", "1: print the options and end QEMU" },
};

int qemu_plugin_version = VMPT_QEMU_PLUGIN_API;

static void block_translated(struct qemu_plugin_tb *tb, void *user)
{
	struct plugin *plugin = user;

	(void)tb;
	__atomic_fetch_add(&plugin->blocks, 1, __ATOMIC_RELAXED);
}

/* QEMU's own output of plugins goes to its log, which nobody reads by default. */
static void at_exit(void *user)
{
	struct plugin *plugin = user;

	fprintf(stderr, "vmpt: %llu blocks\n",
		(unsigned long long)__atomic_load_n(&plugin->blocks, __ATOMIC_RELAXED));
}

static void print_help(void)
{
	puts("vmpt-plugin: Processor Trace for TCG guests. Options:");
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		printf("  %s=%s\n", options[i].name, options[i].help);
	fflush(stdout);
}

/* 0: go on; 1: help was asked for; -1: refused, and said why. */
static int parse_options(int argc, char **argv)
{
	int result = 0;

	for (int i = 0; i < argc; i++) {
		if (!strcmp(argv[i], "help=1") || !strcmp(argv[i], "help=on")) {
			result = 1;
		} else {
			fprintf(stderr, "vmpt: option %s is not known; help=1 lists the options\n",
				argv[i]);
			return -1;
		}
	}
	return result;
}

static int check_qemu(const struct vmpt_qemu_info *info)
{
	int min = info->version.min, cur = info->version.cur;

	if (min > VMPT_QEMU_PLUGIN_API || cur < VMPT_QEMU_PLUGIN_API) {
		fprintf(stderr,
			"vmpt: this QEMU has plugin API %d to %d, needed is %d (QEMU 11.1)\n", min,
			cur, VMPT_QEMU_PLUGIN_API);
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
	struct plugin *plugin;
	int wish;

	if (check_qemu(info))
		return -1;
	wish = parse_options(argc, argv);
	if (wish < 0)
		return -1;
	if (wish > 0) {
		print_help();
		/* As "-device help" does; any return ends in a guest that runs or an error. */
		exit(0);
	}
	/* Never freed: callbacks may come until the process ends. */
	plugin = calloc(1, sizeof(*plugin));
	if (!plugin) {
		fputs("vmpt: no memory\n", stderr);
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, block_translated, plugin);
	qemu_plugin_register_atexit_cb(id, at_exit, plugin);
	return 0;
}
