/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Synthetic traces of the shapes that decoders are slow on, one processor and one process each, in
 * kinds that libipt 2.0.5 knows. Same seed, same bytes, on every machine.
 *
 * Where there is a real trace (of ../shared/data/real) with stretches of the shape, a test compares
 * the shares of packets with it. The others are made of what their names say; their branches are
 * those of synth.h's kind, their mix is a guess.
 */
#ifndef VMPT_BENCH_SHAPES_H
#define VMPT_BENCH_SHAPES_H

#include "bench/synth.h"

/* Shares in percent of packets (64 MiB, seed 1). A PSB+ every 16 KiB where nothing else is said. */
enum shape {
	/*
	 * perf's default: user space only, MTC, a TIP.PGD without IP every 7 packets. TNT-8 32,
	 * TIP 11, TIP.PGE and TIP.PGD 14 each, MTC 29; 2.17 bytes per packet. Like
	 * host-loopy.perf.data where it does not wait: TIP.PGE and TIP.PGD 22 each, TNT-8 22,
	 * MTC 35; its program has 40 instructions, so that there are fewer branches.
	 */
	SHAPE_PERF_DEFAULT,
	/*
	 * A PSB+ every 80 to 200 bytes, 115 on average. PAD 70, TNT-8 10, TIP 2.9, PIP 3.9; PSB,
	 * PSBEND, MODE.TSX, VMCS and CBR 1.7 each; TIP.PGE and TIP.PGD 1.1 each, FUP and MODE.Exec
	 * 0.8 each; 1.98 bytes per packet. Like those parts of guest-two-vmcs.pt.
	 */
	SHAPE_DENSE_PSB,
	/*
	 * A PTW of 4 or 8 bytes every other branch, half with a FUP. TNT-8 35, TIP 15, PTW 25,
	 * FUP 12, MTC 12; 3.66 bytes per packet. No real trace.
	 */
	SHAPE_PTWRITE,
	/*
	 * User space, kernel, interrupts, processes and a VM, never off. TNT-8 67, TIP 25, MTC 4.5,
	 * FUP 1.4, PIP 1.3, MODE.Exec 0.2, VM entries and exits 0.2; 1.94 bytes per packet. No real
	 * trace.
	 */
	SHAPE_SYSTEM_WIDE,
	/*
	 * A CYC before each TNT and TIP, a quarter of them of 2 bytes. CYC 50, TNT-8 36, TIP 12,
	 * MTC 1.6; 1.49 bytes per packet. No real trace.
	 */
	SHAPE_CYC,
	/*
	 * TIP.PGD, 20 to 400 MTCs, in every other pause each with a CYC of 2 bytes, TIP.PGE. MTC
	 * 62, CYC 31; TSC, TMA and CBR, where the processor woke, 1.9 each; TNT-8 0.9, TIP,
	 * TIP.PGE and TIP.PGD 0.3 each; 2.25 bytes per packet. Like the pauses of
	 * host-loopy.perf.data, which has no CYC.
	 */
	SHAPE_PAUSES,
	/*
	 * TIP.PGE, none to 4 branches, TIP.PGD with IP, a PSB+ every 4 KiB. TIP.PGE and TIP.PGD 25
	 * each, TNT-8 35, TIP 15; 4.42 bytes per packet. Like those parts of guest-unzip.pt, but
	 * for their PAD.
	 */
	SHAPE_TIGHT,
	/*
	 * A CYC of 3 bytes before each TNT and TIP. CYC 50, TNT-8 37, TIP 12; 2.36 bytes per
	 * packet. No real trace.
	 */
	SHAPE_CYC_3,
	/*
	 * kAFL's restarts: TIP.PGD, CBR, MODE.Exec, TIP.PGE, a PSB+ every 64 KiB. TNT-8 35, TIP 23,
	 * TIP.PGE, TIP.PGD, CBR and MODE.Exec 10.5 each; 3.35 bytes per packet. No real trace has
	 * CBR and MODE.Exec there; all else is like the same parts of guest-mruby.pt.
	 */
	SHAPE_RESTARTS,
	SHAPES
};

/* Minimum size of a buffer. */
#define SHAPE_SIZE_MIN 16384

const char *shape_name(enum shape shape);
/* One line: what it is and which real trace it is like. */
const char *shape_about(enum shape shape);

/* As synth_generate(). */
int shape_generate(u8 *buf, size_t size, enum shape shape, u64 seed, struct synth_counts *counts);

#endif
