/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Decoding parts of a stream in parallel, for any isa: the planner (plan.c) splits a stream into
 * spans, the pool (pool.c) runs jobs in threads and returns them in order.
 */
#ifndef VMPT_DECODER_PARALLEL_H
#define VMPT_DECODER_PARALLEL_H

#include "decoder/vmpt-decode.h"

/*
 * ---- the planner (plan.c) ----
 *
 * It cuts a stream's regions, which lie between gaps, into spans that begin at PSBs. Where no PSB
 * is near, a span ends at any packet: the next one begins where that packet ends, which its
 * decoder has to report.
 */

#define VMPT_SPAN_MIN 16u
#define VMPT_SPAN_MAX (1u << 20)

/* A stretch of a region. */
struct vmpt_stretch {
	u64 start, end, region_end;
	bool first; /* the first of its region */
	bool gap;   /* first, and the region begins after a gap */
	bool carry; /* it begins where the one before it ended, not at a PSB */
	u64 head;   /* first: where the region begins */
};

struct vmpt_planner {
	/* Set by the user before vmpt_plan_start() */
	const struct vmpt_stream *stream;
	u64 (*psb_find)(const u8 *data, u64 from, u64 end);
	size_t size;	/* approximate, of a span; adjusted */
	u64 psb_window; /* with no PSB in this many bytes after a due end, the span ends there */
	bool headless;
	/* Where the next span begins. */
	size_t gap; /* index of the next gap */
	u64 at, region_end;
	u64 no_psb; /* no PSB begins in [at, no_psb) that a search has not returned */
	bool at_head;
	bool open;  /* @at is not known until everything before it is decoded */
	bool carry; /* for the next span */
};

void vmpt_plan_start(struct vmpt_planner *p);
/* False if there is no further span, or none yet. */
bool vmpt_plan_next(struct vmpt_planner *p, struct vmpt_stretch *span);
/* All that was planned is decoded, up to @at. False if that is nothing new. */
bool vmpt_plan_go_on(struct vmpt_planner *p, u64 at);

/*
 * ---- the pool (pool.c) ----
 *
 * A ring of jobs that some threads run while their owner puts new ones in at one end and takes
 * finished ones out, in order, at the other. With no threads the owner runs each job when it asks
 * for it.
 */

struct vmpt_pool;

/* Runs a job; called by several threads concurrently, each with its own @worker, from 0 on. */
typedef void vmpt_pool_run(void *owner, unsigned int slot, unsigned int worker);

/*
 * @workers: threads that run jobs, the caller's included; fewer if they cannot be
 * created. @slots: of the ring. Returns 0 or -VMPT_E_NOMEM.
 */
int vmpt_pool_open(struct vmpt_pool **pool, unsigned int workers, unsigned int slots,
		   vmpt_pool_run *run, void *owner);
/* Running jobs are finished, the others never run. @pool may be NULL. */
void vmpt_pool_close(struct vmpt_pool *pool);

/* The slot to prepare the next job in, or -1: all are in use. Then vmpt_pool_put(). */
int vmpt_pool_free_slot(const struct vmpt_pool *pool);
void vmpt_pool_put(struct vmpt_pool *pool);

/* Until all jobs that were put in are finished. */
void vmpt_pool_wait(struct vmpt_pool *pool);

/* The slot of the oldest job, when finished, or -1: there is none. Then vmpt_pool_drop(). */
int vmpt_pool_take(struct vmpt_pool *pool);
void vmpt_pool_drop(struct vmpt_pool *pool);

#endif
