/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files that the plugin writes. They hold what a guest executed: only their owner can read
 * them, unless mode= says otherwise. Nothing is changed that the plugin did not write.
 */
#ifndef VMPT_QEMU_PLUGIN_FLOW_FILE_H
#define VMPT_QEMU_PLUGIN_FLOW_FILE_H

#include "arch/types.h"

#define FILE_FOREIGN "exists, and this plugin did not write it; give another name, or remove it"

/*
 * Open @path to read and write. If it is missing it is created with the permissions @mode. Refused
 * are links, what is not a regular file, and a file that does not begin with @mark; of one that
 * was cut within @mark, what is left. NULL: any. -1: @why says so, without the name.
 */
int file_open(const char *path, u64 mode, const char *mark, const char **why);

#endif
