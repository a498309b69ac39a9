/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The plugin as install.c starts it.
 */
#ifndef VMPT_QEMU_PLUGIN_PLUGIN_H
#define VMPT_QEMU_PLUGIN_PLUGIN_H

#include "qemu-plugin/qemu/qemu.h"

/* QEMU is one that we know. 0, or -1: printed why, QEMU ends. */
int plugin_install(u64 id, const struct qemu_machine *machine, int argc, char **argv);

#endif
