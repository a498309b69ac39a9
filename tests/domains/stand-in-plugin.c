// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In place of the plugin: writes the options that vmpt domain trace passes to DIR/../VM.options,
 * one per line; at QEMU's end it writes what the host view would, with known content: three bytes
 * for each CPU, and a line of the record for each vCPU.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu-plugin/qemu/api.h"

int qemu_plugin_version = VMPT_QEMU_PLUGIN_API;

static char dir[1024], vm[256], cpus[256];

static FILE *open_file(const char *name, const char *suffix, const char *mode)
{
	char path[2048];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s%s", dir, name, suffix);
	file = fopen(path, mode);
	if (!file) {
		perror(path);
		exit(3);
	}
	return file;
}

static void at_end(void *data)
{
	FILE *record = open_file("vms", ".jsonl", "ae"), *trace;
	char *cpu, name[64];
	int vcpu = 0;

	(void)data;
	for (cpu = strtok(cpus, ":"); cpu; cpu = strtok(NULL, ":")) {
		snprintf(name, sizeof(name), "cpu%s", cpu);
		trace = open_file(name, ".state", "we");
		fprintf(trace, "VMPTCP2");
		fclose(trace);
		trace = open_file(name, ".pt", "ae");
		fprintf(trace, "abc");
		fclose(trace);
		fprintf(record, "{\"vm\":\"%s\",\"vcpu\":%d,\"vmcs\":\"0x%s%d000\"}\n", vm, vcpu,
			cpu, vcpu + 1);
		vcpu++;
	}
	fclose(record);
}

static void take(char *to, size_t size, const char *arg, const char *name)
{
	size_t len = strlen(name);

	if (!strncmp(arg, name, len) && arg[len] == '=')
		snprintf(to, size, "%s", arg + len + 1);
}

int qemu_plugin_install(uint64_t id, const struct vmpt_qemu_info *info, int argc, char **argv)
{
	char name[300];
	FILE *options;
	int i;

	(void)info;
	for (i = 0; i < argc; i++) {
		take(dir, sizeof(dir), argv[i], "host-view");
		take(vm, sizeof(vm), argv[i], "vm");
		take(cpus, sizeof(cpus), argv[i], "cpus");
	}
	if (!dir[0])
		return 0;
	snprintf(name, sizeof(name), "../%s", vm);
	options = open_file(name, ".options", "we");
	for (i = 0; i < argc; i++)
		fprintf(options, "%s\n", argv[i]);
	fclose(options);
	qemu_plugin_register_atexit_cb(id, at_end, NULL);
	return 0;
}
