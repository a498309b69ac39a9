/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A CPU of a machine made of trace units (model/): the unit, its output, and its time. The TSC is
 * the truth; crystal clock and cycles (one per tick) follow from it.
 */
#ifndef VMPT_TESTS_UNIT_CPU_H
#define VMPT_TESTS_UNIT_CPU_H

#include "decoder/vmpt-decode.h"
#include "model/vmpt-model.h"

#define UNIT_CPU_P	 100 /* TSC ticks per crystal tick */
#define UNIT_CPU_NOMINAL 20  /* maximum non-turbo ratio, and the current one */

struct unit_cpu {
	struct vmpt_unit unit;
	struct vmpt_sink sink;
	u8 *bytes;
	size_t size, room;
	u64 vmcs; /* the current VMCS */
	struct vmpt_stream stream;
};

/* In the host with @cr3, in root operation, with all capabilities; TraceEn is 0, time is @tsc. */
void unit_cpu_init(struct unit_cpu *c, u64 cr3, u64 tsc);
void unit_cpu_free(struct unit_cpu *c);

/* Its time: host ticks. */
u64 unit_cpu_now(const struct unit_cpu *c);
/* Time advances to @tsc, in steps that skip no MTC of @mtc_freq; or in one step. */
void unit_cpu_pass(struct unit_cpu *c, u64 tsc, unsigned int mtc_freq);
void unit_cpu_skip(struct unit_cpu *c, u64 tsc);

/* VMPTRLD, if another VMCS is current. Returns whether it was. */
bool unit_cpu_load(struct unit_cpu *c, u64 vmcs);

/* The stream so far, of CPU @number; valid until the next call. */
const struct vmpt_stream *unit_cpu_stream(struct unit_cpu *c, unsigned int number);

#endif
