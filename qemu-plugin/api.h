/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QEMU's TCG plugin interface, version 7 (QEMU 11.1), as far as it is used here. Debian ships
 * no header for it and QEMU changes it with each release, so these are declarations of our own
 * of the ABI as measured on the binary; nothing else of the plugin knows the version.
 */
#ifndef VMPT_QEMU_PLUGIN_API_H
#define VMPT_QEMU_PLUGIN_API_H

#include <stdbool.h>
#include <stdint.h>

#define VMPT_QEMU_PLUGIN_API 7

/* What QEMU finds in a plugin by name. */
#define VMPT_QEMU_EXPORT __attribute__((visibility("default")))

struct qemu_plugin_tb;

/* What QEMU tells about itself at install. */
struct vmpt_qemu_info {
	const char *target_name; /* "x86_64" */
	struct {
		int min; /* oldest version of this interface that QEMU serves */
		int cur; /* newest */
	} version;
	bool system_emulation; /* not for a single user program */
	struct {
		int smp_vcpus; /* vCPUs at the start */
		int max_vcpus; /* with those that can be plugged in */
	} system;
};

/*
 * The plugin's side. QEMU reads the version before it calls anything; an install that does
 * not return 0 ends QEMU. @id names the plugin in the calls below; @argv has "name=value".
 */
extern VMPT_QEMU_EXPORT int qemu_plugin_version;
VMPT_QEMU_EXPORT int qemu_plugin_install(uint64_t id, const struct vmpt_qemu_info *info, int argc,
					 char **argv);

/* A block was translated. With several vCPUs, on several threads at once. */
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
					   void (*cb)(struct qemu_plugin_tb *tb, void *user),
					   void *user);

/* QEMU ends; registers can no longer be read. */
void qemu_plugin_register_atexit_cb(uint64_t id, void (*cb)(void *user), void *user);

#endif
