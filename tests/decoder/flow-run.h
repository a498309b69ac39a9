/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The flow decoder in tests: results as a list of instructions, code of generated traces. */
#ifndef VMPT_TESTS_FLOW_RUN_H
#define VMPT_TESTS_FLOW_RUN_H

#include "decoder/vmpt-flow.h"

/* All that a run of the decoder said. */
struct flow_run {
	struct vmpt_flow_counts total;
	u64 hash;
	/* With .blocks */
	u64 *ips; /* of all instructions in order */
	u32 *spaces;
	size_t count;
	u64 blocks;
	/* Gaps */
	struct flow_gap {
		u64 offset, ip;
		u8 reason;
	} * gaps;
	size_t gap_count;
	/* With .events and .switches, in order */
	struct flow_mark {
		u64 offset, ip, cr3;
		size_t at; /* how many instructions were executed before it; with .blocks */
		u8 kind;   /* enum vmpt_flow_kind */
		bool off;
	} * marks;
	size_t mark_count;
	/* Counts of blocks, as one number: the sum over them of a hash of address space, IP and
	 * count. */
	u64 executed;
	struct vmpt_space *space;
	struct vmpt_flow_counts *space_counts;
	u32 space_count;
};

/* Decode @stream to the end; the test fails where the decoder's results contradict each other. */
void flow_run(struct flow_run *run, const struct vmpt_stream *stream, struct vmpt_code *code,
	      const struct vmpt_flow_options *options);
void flow_run_free(struct flow_run *run);
/* The test fails if @a and @b differ in what was executed, or in gaps. */
void flow_run_same(const struct flow_run *a, const struct flow_run *b, const char *what);

/* Offsets of the packets of @stream that have a time, in order: a list to free. */
struct flow_times {
	u64 *at;
	size_t count;
};
void flow_times(struct flow_times *times, const struct vmpt_stream *stream);
/* How many are at or before the begin of @batch. With .times none is after that and in it. */
size_t flow_times_check(const struct flow_times *times, const struct vmpt_flow_batch *batch,
			bool whole);

/* A real trace with its image, or false after test_skip(). */
struct flow_real {
	u8 *bytes;
	struct vmpt_stream stream;
	struct vmpt_image *image;
	struct vmpt_code *code;
};

bool flow_real_open(struct flow_real *real, const char *name);
void flow_real_close(struct flow_real *real);

/* The code of a generated trace: each owner's pages, in files of test_dir_make(). */
struct tracegen;
/* A script of tests/tracegen/scripts, by its name; tracegen_free() it. */
struct tracegen *flow_script(const char *name);

struct flow_generated {
	struct vmpt_image *image[64];
	size_t count;
	struct vmpt_code *code;
};

void flow_generated_open(struct flow_generated *code, const struct tracegen *gen);
void flow_generated_close(struct flow_generated *code);

#endif
