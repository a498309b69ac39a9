/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside the decoder: a ring of jobs that some threads run while their owner puts new
 * ones in at one end and takes finished ones out, in order, at the other. With no
 * threads the owner runs each job when it asks for it.
 */
#ifndef VMPT_DECODER_POOL_H
#define VMPT_DECODER_POOL_H

#include "arch/error.h"
#include "arch/types.h"

struct vmpt_pool;

/* Runs a job; called by several threads at once, @worker tells them apart from 0 on. */
typedef void vmpt_pool_run(void *owner, unsigned int slot, unsigned int worker);

/*
 * @workers: threads that run jobs, the caller's included; fewer if they cannot be
 * created. @slots: of the ring. Returns 0 or -VMPT_E_NOMEM.
 */
int vmpt_pool_open(struct vmpt_pool **pool, unsigned int workers, unsigned int slots,
		   vmpt_pool_run *run, void *owner);
/* Jobs that run are finished first, the others never run. NULL is fine. */
void vmpt_pool_close(struct vmpt_pool *pool);

/* The slot to prepare the next job in, or -1: all are in use. Then vmpt_pool_put(). */
int vmpt_pool_free_slot(const struct vmpt_pool *pool);
void vmpt_pool_put(struct vmpt_pool *pool);

/* The slot of the oldest job, run to its end, or -1: there is none. Then vmpt_pool_drop(). */
int vmpt_pool_take(struct vmpt_pool *pool);
void vmpt_pool_drop(struct vmpt_pool *pool);

#endif
