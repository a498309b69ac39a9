/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parsing of the plugin's options and their help text, from one table.
 */
#ifndef VMPT_QEMU_PLUGIN_OPTIONS_H
#define VMPT_QEMU_PLUGIN_OPTIONS_H

#include "qemu-plugin/flow/flow.h"

/* 0, or -1: printed which option is wrong and why. */
int options_parse(struct options *options, int argc, char **argv);
void options_print_help(void);

#endif
