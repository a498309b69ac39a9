/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Synthetic traces of the shapes that decoders are slow on, one processor and one process each, in
 * kinds that libipt 2.0.5 knows. Same seed, same bytes, on every machine.
 */
#ifndef VMPT_BENCH_SHAPES_H
#define VMPT_BENCH_SHAPES_H

#include "bench/synth.h"

enum shape {
	SHAPE_PERF_DEFAULT,
	SHAPE_DENSE_PSB,
	SHAPE_PTWRITE,
	SHAPE_SYSTEM_WIDE,
	SHAPE_CYC,
	SHAPE_PAUSES,
	SHAPE_TIGHT,
	SHAPE_CYC_3,
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
