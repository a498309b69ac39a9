// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Jobs in the order of the stream. Threads begin segments with what their PSB+ says. Here each is
 * compared with how the one before ended, and where that is different it is decoded again.
 */
#include "decoder/flow/flow.h"

/* A segment of this many times the usual size has no cut in it: its results are many. */
#define SEGMENT_LONG 8u

/* With more wrong segments, if they are a quarter of all, the rest is decoded in turn. */
#define MISSES 8u

/* A worker that still has a job which rests leaves others to the thread that returns results. */
void vmpt_flow_run_job(void *owner, unsigned int slot, unsigned int worker)
{
	struct vmpt_flow *f = owner;
	struct job *j = &f->jobs[slot];
	struct maker *m = &f->makers[worker];

	if (j->in_turn || atomic_load(&m->held))
		return;
	if (!m->opened) {
		j->error = vmpt_flow_maker_open(m, f->stream, f->code, &f->options, &f->trace);
		if (j->error) {
			atomic_store(&m->held, true);
			return;
		}
	}
	vmpt_flow_job_start(j, m);
	vmpt_flow_job_run(j, true);
	j->rests = !j->done;
	if (j->rests)
		atomic_store(&m->held, true);
}

static void prepare(struct vmpt_flow *f, struct job *j)
{
	j->in_turn = !f->plan.size || j->segment.end - j->segment.at > SEGMENT_LONG * f->plan.size;
	j->resume = NULL;
	j->habit = f->habit;
	j->exec = f->exec;
	j->weight = 1;
	j->maker = NULL;
	j->done = j->stuck = j->rests = false;
	j->error = 0;
}

/* Fill the ring. */
static void plan_jobs(struct vmpt_flow *f)
{
	int slot;

	while (!f->first_only && (slot = vmpt_pool_free_slot(f->pool)) >= 0 &&
	       vmpt_flow_plan_next(&f->plan, &f->jobs[slot].segment)) {
		prepare(f, &f->jobs[slot]);
		f->first_only = !f->jobs[slot].segment.at;
		vmpt_pool_put(f->pool);
	}
}

/* What is new for the results up to @result, or for all. */
int vmpt_flow_take_news(struct vmpt_flow *f, bool all)
{
	struct job *j = f->job;
	int ret = 0;

	while (!ret && f->news < j->news_count &&
	       (all || !f->news || f->result >= j->news[f->news - 1].results))
		ret = vmpt_flow_news_take(&j->maker->book, &f->names, &j->news[f->news++]);
	return ret;
}

static int drop_results(struct vmpt_flow *f)
{
	int ret = vmpt_flow_take_news(f, true);

	vmpt_flow_job_drop(f->job);
	f->result = f->news = 0;
	f->unit = 0;
	return ret;
}

/* Its worker may use the engine again. */
static void release(struct job *j)
{
	if (j->rests)
		atomic_store(&j->maker->held, false);
	j->rests = false;
}

static int run_to_end(struct vmpt_flow *f)
{
	struct job *j = f->job;
	int ret = 0;

	for (;;) {
		ret = drop_results(f);
		if (ret || j->error || j->done)
			break;
		vmpt_flow_job_run(j, true);
	}
	release(j);
	return ret ? ret : j->error;
}

static int own_start(struct vmpt_flow *f)
{
	vmpt_flow_job_start(f->job, &f->own);
	return f->job->error;
}

/* What the segment counted is taken back by decoding it the same way again; then it begins as it
 * should. */
static int begin_again(struct vmpt_flow *f)
{
	struct job *j = f->job;
	int ret = run_to_end(f);

	if (ret)
		return ret;
	f->misses++;
	j->weight = 0 - 1ULL;
	ret = own_start(f);
	ret = ret ? ret : run_to_end(f);
	j->weight = 1;
	j->resume = &f->exit;
	return ret ? ret : own_start(f);
}

/* The segment began otherwise than the one before ended, or it needs what only that can have. */
static bool is_miss(const struct vmpt_flow *f)
{
	const struct job *j = f->job;

	return j->stuck || (j->segment.at && !vmpt_flow_state_same(&f->exit, &j->entry));
}

/* The next job in order. 1, 0 at the end, or a negative error. */
static int next_job(struct vmpt_flow *f)
{
	struct job *j;
	int slot, ret = 0;

	plan_jobs(f);
	slot = vmpt_pool_take(f->pool);
	if (slot < 0)
		return 0;
	j = f->job = &f->jobs[slot];
	f->result = f->news = 0;
	f->unit = 0;
	if (j->error)
		return j->error;
	if (!j->maker) {
		j->resume = j->segment.at ? &f->exit : NULL;
		ret = own_start(f);
	} else if (is_miss(f)) {
		ret = begin_again(f);
	}
	return ret ? ret : 1;
}

/* All of the current job was returned. */
static void end_job(struct vmpt_flow *f)
{
	struct job *j = f->job;

	if (j->segment.cut) {
		f->exit = j->exit;
		vmpt_follow_habit(&j->exit.follow, &f->habit);
		f->exec = j->exit.c.exec;
	}
	/* Threads only get in the way: the rest is decoded in turn. */
	if (++f->jobs_done / 4 < f->misses && f->misses > MISSES)
		f->plan.size = 0;
	f->first_only = false;
	f->h.hash = f->h.hash * j->h.pow + j->h.hash;
	f->h.pow *= j->h.pow;
	if (f->own.progress)
		f->own.progress(f->own.progress_opaque, j->segment.end);
	release(j);
	vmpt_pool_drop(f->pool);
	f->job = NULL;
}

int vmpt_flow_more(struct vmpt_flow *f)
{
	int ret = 0;

	f->counted = false;
	if (f->job)
		ret = drop_results(f);
	while (!ret) {
		if (f->job && f->job->done)
			end_job(f);
		if (!f->job) {
			ret = next_job(f);
			if (ret <= 0)
				return ret;
			ret = 0;
		} else {
			vmpt_flow_job_run(f->job, false);
		}
		ret = f->job->error;
		if (f->job->result_count)
			return ret ? ret : 1;
		ret = ret ? ret : drop_results(f);
	}
	return ret;
}
