/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the guest's RAM is, in its physical addresses and in QEMU. */
#ifndef VMPT_QEMU_PLUGIN_FLOW_RAM_H
#define VMPT_QEMU_PLUGIN_FLOW_RAM_H

#include <stdbool.h>
#include <stddef.h>

#include "arch/types.h"

struct plugin;
struct vcpu;

/* Guest-physical RAM: from 0 to @low but for the hole for VGA and ROMs; from 4 GiB to @high. */
struct ram {
	u8 *host;   /* atomic: where address 0 is in QEMU; NULL: not known yet */
	u64 proven; /* the address of RAM from which it was derived */
	u32 tries;  /* to find low and high */
	bool known; /* atomic: low and high are known, and do not change any more */
	u64 low, high;
};

/* While translating: the block at @linear has its code at @host in QEMU, NULL: not in RAM. */
void ram_translates(struct plugin *plugin, u64 linear, const void *host);
/* Find out where RAM is, unless it is known. Works early in the guest's life only. */
void ram_find(struct vcpu *vcpu);
/* Whether the @len bytes at @physical are known to be RAM. */
bool ram_has(const struct plugin *plugin, u64 physical, size_t len);
/* The page of RAM at @physical, which the guest may write at any time; NULL: it is none. */
const u8 *ram_page(const struct plugin *plugin, u64 physical);

#endif
