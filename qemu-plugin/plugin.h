/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How install.c starts the plugin.
 */
#ifndef VMPT_QEMU_PLUGIN_PLUGIN_H
#define VMPT_QEMU_PLUGIN_PLUGIN_H

#include "qemu-plugin/qemu/qemu.h"

/* Called for a QEMU that is supported. 0, or -1: printed why, QEMU exits. */
int plugin_install(u64 id, const struct qemu_machine *machine, int argc, char **argv);

#endif
