/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A synthetic stream of RTIT for the benchmarks, as synth.h for PT: one processor that runs a host
 * and two VMs, all packets enabled. Same seed and mode, same bytes, on every machine.
 *
 * Contents: TNTs (one of fewer than six branches before most TIPs and FUPs, full ones in loops),
 * TIPs of RETs and indirect calls within a program, a library and a kernel, interrupts and system
 * calls (FUP.Far and TIP), MOV CR3 (PIP and STS), MTCs every 30 packets, FUP.PGD and FUP.PGE of VM
 * exits and entries every 1.5 KiB, now and then a FUP.BuffOvf; with cycle counts FUP.PCC too. A PSB
 * every 4 KiB, as with Pkt_Mask 1. 1.7 bytes per packet; with cycle counts, which are items of
 * their own, 1.5 bytes per item.
 */
#ifndef VMPT_BENCH_RTIT_SYNTH_H
#define VMPT_BENCH_RTIT_SYNTH_H

#include "arch/rtit-packet.h"

struct rtit_synth_counts {
	u64 items; /* packets and cycle counts */
	u64 kind[VMPT_RTIT_KINDS];
	u64 entries; /* FUP.PGEs */
};

/* Maximum distance of FUP.PGEs in bytes, except for the first. */
#define RTIT_SYNTH_VM_BYTES 1536

/*
 * Fill @buf of @size bytes, 1024 at least. Starts with a PSB, ends with a whole packet. @entries:
 * the offset of each FUP.PGE, room for size / RTIT_SYNTH_VM_BYTES + 1 of them, or NULL.
 */
int rtit_synth_generate(u8 *buf, size_t size, u64 seed, bool cycle_acc, u64 *entries,
			struct rtit_synth_counts *counts);

#endif
