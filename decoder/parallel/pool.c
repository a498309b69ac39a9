// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Threads that run the jobs of a ring in order; see parallel.h. */
#include <pthread.h>
#include <stdlib.h>

#include "decoder/parallel/parallel.h"

struct vmpt_pool {
	vmpt_pool_run *run;
	void *owner;
	unsigned int slots, threads;
	/* Jobs by number, slot = number % slots: [first, next) started, [next, last) not. */
	u64 first, next, last;
	bool *done; /* by slot */
	bool stop;
	pthread_mutex_t lock;
	pthread_cond_t work, finished;
	struct worker {
		struct vmpt_pool *pool;
		pthread_t thread;
		unsigned int id;
	} worker[];
};

/* Run the oldest job not yet started. Called with the lock held; it is released meanwhile. */
static void run_next(struct vmpt_pool *p, unsigned int worker)
{
	unsigned int slot = (unsigned int)(p->next++ % p->slots);

	pthread_mutex_unlock(&p->lock);
	p->run(p->owner, slot, worker);
	pthread_mutex_lock(&p->lock);
	p->done[slot] = true;
	pthread_cond_signal(&p->finished);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct vmpt_pool *p = w->pool;

	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		if (p->next < p->last)
			run_next(p, w->id);
		else
			pthread_cond_wait(&p->work, &p->lock);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

int vmpt_pool_open(struct vmpt_pool **pool, unsigned int workers, unsigned int slots,
		   vmpt_pool_run *run, void *owner)
{
	struct vmpt_pool *p = calloc(1, sizeof(*p) + workers * sizeof(p->worker[0]));
	struct worker *w;

	if (!p)
		return -VMPT_E_NOMEM;
	p->done = calloc(slots, sizeof(*p->done));
	if (!p->done) {
		free(p);
		return -VMPT_E_NOMEM;
	}
	p->run = run;
	p->owner = owner;
	p->slots = slots;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->work, NULL);
	pthread_cond_init(&p->finished, NULL);
	/* Worker 0 is the caller. */
	while (p->threads + 1 < workers) {
		w = &p->worker[p->threads];
		w->pool = p;
		w->id = p->threads + 1;
		if (pthread_create(&w->thread, NULL, worker_main, w))
			break;
		p->threads++;
	}
	*pool = p;
	return 0;
}

void vmpt_pool_close(struct vmpt_pool *p)
{
	unsigned int i;

	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_broadcast(&p->work);
	pthread_mutex_unlock(&p->lock);
	for (i = 0; i < p->threads; i++)
		pthread_join(p->worker[i].thread, NULL);
	pthread_cond_destroy(&p->finished);
	pthread_cond_destroy(&p->work);
	pthread_mutex_destroy(&p->lock);
	free(p->done);
	free(p);
}

/* Only the owner writes first and last: it needs no lock to read them. */
int vmpt_pool_free_slot(const struct vmpt_pool *p)
{
	return p->last - p->first < p->slots ? (int)(p->last % p->slots) : -1;
}

void vmpt_pool_put(struct vmpt_pool *p)
{
	pthread_mutex_lock(&p->lock);
	p->done[p->last % p->slots] = false;
	p->last++;
	if (p->threads)
		pthread_cond_signal(&p->work);
	pthread_mutex_unlock(&p->lock);
}

/* Finish the job in @slot; called with the lock held. */
static void wait_for(struct vmpt_pool *p, unsigned int slot)
{
	/* While another thread runs it, run one more job instead of sleeping. */
	while (!p->done[slot]) {
		if (p->next < p->last)
			run_next(p, 0);
		else
			pthread_cond_wait(&p->finished, &p->lock);
	}
}

void vmpt_pool_wait(struct vmpt_pool *p)
{
	u64 i;

	pthread_mutex_lock(&p->lock);
	for (i = p->first; i < p->last; i++)
		wait_for(p, (unsigned int)(i % p->slots));
	pthread_mutex_unlock(&p->lock);
}

int vmpt_pool_take(struct vmpt_pool *p)
{
	unsigned int slot = (unsigned int)(p->first % p->slots);

	if (p->first == p->last)
		return -1;
	pthread_mutex_lock(&p->lock);
	wait_for(p, slot);
	pthread_mutex_unlock(&p->lock);
	return (int)slot;
}

void vmpt_pool_drop(struct vmpt_pool *p)
{
	p->first++;
}
