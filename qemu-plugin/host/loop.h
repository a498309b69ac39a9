/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host=synthetic: what a host's processor executes between two runs, a loop around VMRESUME at a
 * fixed address. Its code is written to a file, so that decoders can follow it.
 */
#ifndef VMPT_QEMU_PLUGIN_HOST_LOOP_H
#define VMPT_QEMU_PLUGIN_HOST_LOOP_H

#include "model/vmpt-model.h"

#define HOST_LOOP_BASE 0xffffffffa0000000ULL
#define HOST_LOOP_CR3  0x1230000ULL

/* The host's mode: 64-bit, CPL 0. */
struct vmpt_mode host_loop_mode(void);

struct options;

/* Where VM exits go, and where VMRESUME is. */
u64 host_loop_exit_ip(void);
u64 host_loop_entry_ip(void);
/* Where tracing begins. */
u64 host_loop_begin_ip(void);

/* Execute from a VM exit with @reason on. Returns where the host is afterwards. */
u64 host_loop_after_exit(struct vmpt_unit *unit, u32 reason);
/* Execute from there to VMRESUME, with VMPTRLD of @vmcs if it is not the current one. */
void host_loop_to_entry(struct vmpt_unit *unit, u64 vmcs);

/* Write the code to DIR/host.bin. 0 or -1: printed why. */
int host_loop_save(const struct options *options);

#endif
