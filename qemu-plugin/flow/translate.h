/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is put into translated code: stores and callbacks, per block and per instruction.
 */
#ifndef VMPT_QEMU_PLUGIN_FLOW_TRANSLATE_H
#define VMPT_QEMU_PLUGIN_FLOW_TRANSLATE_H

struct hot;
struct plugin;
struct qemu_block;

/* 0, or -1: printed why. */
int translate_open(struct plugin *plugin);
/* QEMU's callback; @user: struct plugin. */
void translate_block(struct qemu_block *qemu, void *user);
/* The numbers of vCPU @index, where they are now. */
struct hot *translate_hot(struct plugin *plugin, unsigned int index);
/* QEMU has dropped all blocks: free ours. */
void translate_free(struct plugin *plugin);

#endif
