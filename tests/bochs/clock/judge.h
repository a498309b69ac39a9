/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * clock-check's parts. Each judges one property of a trace by the truth of its times, prints
 * figures, and counts failures.
 */
#ifndef JUDGE_H
#define JUDGE_H

#include "decoder/vmpt-clock.h"
#include "times.h"

#define JUDGE_CPUS 8

/* A VM entry or exit found by the decoder. */
struct found_move {
	u64 at, vmcs; /* of the guest */
	bool entry;
	struct vmpt_time time;
};

struct judge_stream {
	const struct vmpt_stream *stream;
	struct times times;
	struct found_move *found;
	size_t found_count;
	u64 *mtcs; /* when MTCs were made, by the truth */
	size_t mtc_count;
	struct {
		u64 vmcs, tsc;
	} * guest_tscs; /* TSC packets of guests, by the truth */
	size_t guest_tsc_count;
};

struct judge {
	struct vmpt_trace *trace;
	const struct vmpt_stream *streams[JUDGE_CPUS];
	struct judge_stream cpus[JUDGE_CPUS];
	size_t n;
	struct vmpt_clocks *clocks;
	u64 period; /* ticks from MTC to MTC; 0: there are none */
	bool cyc;
	bool verbose;
	u64 spoil; /* ticks added to each time: must be detected */
	unsigned int failures;
};

void judge_fails(struct judge *judge, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * The trace belongs to the truth: each TSC and MTC packet agrees with the truth's time. Fills .mtcs
 * and .guest_tscs.
 */
void judge_align(struct judge *judge);
/* The time of each packet, and its error. */
void judge_packets(struct judge *judge);
/* VM entries and exits, their order on each processor and across processors. */
void judge_moves(struct judge *judge);
/* Offsets and multipliers, where they change, and given values of them. */
void judge_maps(struct judge *judge);
void judge_given(struct judge *judge);

int judge_clocks(struct judge *judge, const struct vmpt_given *given, size_t count,
		 struct vmpt_clocks **clocks);

#endif
