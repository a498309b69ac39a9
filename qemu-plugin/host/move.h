/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Moving a run in time: its vCPU's thread executed it while another run was on the same host CPU,
 * which a processor cannot do. One of the two comes later in the stream.
 */
#ifndef VMPT_QEMU_PLUGIN_HOST_MOVE_H
#define VMPT_QEMU_PLUGIN_HOST_MOVE_H

#include "arch/types.h"

struct host_move {
	u64 ticks; /* of the crystal clock, a multiple of the MTC period */
	u64 tsc;   /* the same in units of the TSC in the packets */
	unsigned int mtc_freq;
};

/* Rewrite TSC, TMA and MTC packets in @bytes, which are whole packets without blocks (BBP). */
void host_move_packets(const struct host_move *move, u8 *bytes, size_t n);

#endif
