/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A synthetic trace for the benchmarks: the stream of one processor with a host and three VMs,
 * every kind of packet and every IPBytes in it, at proportions that a busy machine with all of PT
 * switched on could have. Same options, same bytes, on every machine.
 *
 * Owners: a 64-bit host, a 64-bit VM, a VM with five-level paging (linear addresses of 57 bits:
 * IPBytes 100b and 110b) and a 32-bit VM. Each jumps within its program, library, kernel and
 * module; Last IP compression decides IPBytes from that; some TIP.PGD and a few TIPs have no IP.
 *
 * Contents, in percent of packets (256 MiB, seed 1; 2.25 bytes per packet):
 *   TNT-8 52 in runs of 1 to 9, some broken by CYC; TNT-64 0.7
 *   TIP 14.3, FUP 1.5, TIP.PGE and TIP.PGD 1 each: branches, interrupts, IP filters
 *   CYC 12 of 1, 2, 3 and 4 bytes as 60 : 28 : 9 : 3; MTC 2.2; TSC and TMA 0.2 each,
 *     CBR 0.4
 *   PAD 6.9 in runs of 1 to 7
 *   PIP 0.9, MODE.Exec 0.6, VMCS 0.1: switches, MOV CR3 and PSB+
 *   BIP 2.6 with BBP and BEP: a PEBS record as two packet blocks, 5 to 21 items of
 *     8 or 4 bytes, every 1.2 KiB
 *   CFE 0.6, EVD 0.2: an interrupt or page fault every 1.5 KiB, VM entries and exits
 *   PTW 0.8 of 4 and 8 bytes, MODE.TSX 0.5
 *   EXSTOP, MWAIT, PWRE, PWRX, TraceStop, PSB, PSBEND 0.05 to 0.15 each
 *   MNT, OVF, TRIG 0.02 each
 * Every 4 KiB a PSB+ of 61 to 65 bytes in silicon's order: PSB, TSC, TMA, MODE.Exec, MODE.TSX, PIP,
 * VMCS, CBR, FUP, PSBEND. A VM entry and a VM exit every 1.5 KiB: VMCS (VMPTRLD, when another vCPU
 * is next), CFE.VMENTRY, MODE.Exec, PIP with NR=1, TIP; then EVD, CFE.VMEXIT, FUP, MODE.Exec, PIP
 * with NR=0, TIP.
 */
#ifndef VMPT_BENCH_SYNTH_H
#define VMPT_BENCH_SYNTH_H

#include "arch/pt-packet.h"

struct synth_options {
	u64 seed;
	/*
	 * Leave out kinds that libipt 2.0.5 does not know: CFE, EVD, BBP, BIP, BEP, TRIG. Events
	 * that have them lose these packets, everything else keeps its proportions.
	 */
	bool libipt_kinds;
};

/* Counts of what was written, which decoders must match. */
struct synth_counts {
	u64 packets;
	u64 kind[VMPT_PT_KINDS];
	u64 ipbytes[8];
	u64 cyc_size[VMPT_PT_CYC_MAX + 1];
	u64 entries, exits; /* VM entries and exits: NR toggles */
};

/* Bytes between two PSBs, give or take the length of one event. */
#define SYNTH_PSB_DISTANCE 4096
/* Maximum bytes of an event, and minimum size of a buffer. */
#define SYNTH_EVENT_MAX 1024

/*
 * Fill @buf of @size bytes, at least SYNTH_EVENT_MAX. Starts with a PSB and ends with a whole
 * packet. Returns 0, or a negative error if a packet could not be encoded, which is a bug of the
 * generator.
 */
int synth_generate(u8 *buf, size_t size, const struct synth_options *options,
		   struct synth_counts *counts);

#endif
