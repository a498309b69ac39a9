// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A job: a segment through an engine, slice by slice. A segment that ends at a cut goes up to the
 * end of the PSB+ there, which says how far its last node was executed; the node that the PSB+
 * leads to is the next segment's.
 */
#include "decoder/flow/flow.h"

#define LOG_UNITS (64u << 10)

/* A job rests when it has this many results or units for its user. */
#define REST_RESULTS (64u << 10)
#define REST_UNITS   (4u << 20)

/* ---- engines ---- */

static int engine_open(struct engine *e, const struct vmpt_stream *stream, struct vmpt_code *code)
{
	e->stream = stream;
	e->code = code;
	e->data = stream->data;
	e->limit = stream->size;
	e->weight = 1;
	e->h.pow = 1;
	e->hash = e->options.hash;
	e->blocks = e->options.blocks;
	e->times = e->options.times && e->blocks;
	e->stack = e->options.returns == VMPT_FLOW_RETURNS_FOLLOW ||
		   e->options.returns == VMPT_FLOW_RETURNS_LIBIPT;
	/* Code and trace must not choose keys that collide. */
	e->seed = vmpt_mix64((uintptr_t)e ^ (uintptr_t)&e << 20);
	e->owner.kind = VMPT_OWNER_UNKNOWN;
	e->results = malloc(VMPT_FLOW_RESULTS * sizeof(*e->results));
	if (e->blocks) {
		e->log_room = LOG_UNITS;
		e->log = malloc(e->log_room * sizeof(*e->log));
	}
	if (!e->results || (e->blocks && !e->log))
		return -VMPT_E_NOMEM;
	e->timed = code && vmpt_code_changes(code);
	e->versions = code && vmpt_code_has_versions(code);
	e->good_to = ~0ULL;
	vmpt_flow_cut(e, 0, 0, false);
	return vmpt_flow_tables_init(e);
}

int vmpt_flow_maker_open(struct maker *m, const struct vmpt_stream *stream, struct vmpt_code *code,
			 const struct vmpt_flow_options *options, const struct vmpt_options *trace)
{
	int ret;

	m->opened = true;
	m->e.options = *options;
	m->book.flats_max = options->memory / 4 / sizeof(*m->book.flats);
	if (options->blocks)
		m->e.options.memory -= options->memory / 4;
	ret = vmpt_follow_open(&m->e.follow, stream, trace);
	return ret ? ret : engine_open(&m->e, stream, code);
}

void vmpt_flow_maker_close(struct maker *m)
{
	struct engine *e = &m->e;
	size_t i;

	if (!m->opened)
		return;
	vmpt_follow_close(e->follow);
	vmpt_flow_tables_free(e);
	for (i = 0; i < e->page_count; i++)
		free(e->page[i].other);
	free(e->results);
	free(e->log);
	free(e->owners);
	free(e->block);
	free(e->space);
	free(e->page);
	free(e->bytes);
	free(e->left.left);
	vmpt_hash_free(&e->left.index);
	free(e->ending);
	free(e->renewed);
	free(e->block_life);
	vmpt_hash_free(&e->block_index);
	vmpt_hash_free(&e->space_index);
	vmpt_hash_free(&e->page_index);
	vmpt_flow_book_free(&m->book);
}

/* ---- states ---- */

static void state_take(struct state *s, const struct engine *e)
{
	s->c = e->c;
	s->c.handle = s->c.space = 0;
	s->ip = e->nodes[e->c.handle >> HANDLE_SHIFT].ip;
	s->owner = e->owner;
	s->follow = *e->follow;
	s->followed = e->followed;
}

bool vmpt_flow_state_same(const struct state *a, const struct state *b)
{
	const struct cursor *x = &a->c, *y = &b->c;

	return x->place != LOST && !x->choices && !y->choices && x->psb_at == y->psb_at &&
	       x->at == y->at && a->ip == b->ip && x->last_ip == y->last_ip &&
	       x->place == y->place && x->no_cr3 == y->no_cr3 && x->cr3 == y->cr3 &&
	       x->exec == y->exec && x->pending == y->pending && x->block == y->block &&
	       x->tsc == y->tsc && vmpt_owner_same(&a->owner, &b->owner) && a->followed &&
	       b->followed && vmpt_follow_same(&a->follow, &b->follow, x->at);
}

static int state_set(struct engine *e, const struct state *s)
{
	vmpt_flow_cursor_set(e, &s->c);
	e->c.space = NONE;
	e->owner = s->owner;
	e->followed = s->followed;
	vmpt_follow_set(e->follow, &s->follow);
	vmpt_flow_slice_end(e, s->follow.end);
	if (!e->error && s->c.place == RUNNING)
		vmpt_flow_enter(e, s->ip);
	return e->error;
}

/* ---- beginning ---- */

/* In the middle of the stream. */
static int start_at_cut(struct job *j)
{
	struct engine *e = &j->maker->e;
	const struct segment *s = &j->segment;

	if (j->resume)
		return state_set(e, j->resume);
	j->entered = false;
	e->until = s->entry;
	vmpt_follow_part(e->follow, s->at, &j->habit);
	vmpt_flow_slice_end(e, s->at);
	/* The time is that of before up to the PSB+'s. */
	e->c = (struct cursor){
		.at = s->at, .space = NONE, .no_cr3 = true, .exec = j->exec, .tsc = e->c.tsc
	};
	vmpt_flow_choices_clear(e);
	return 0;
}

/* After its PSB+. */
static void enter(struct job *j)
{
	struct engine *e = &j->maker->e;

	state_take(&j->entry, e);
	j->entered = true;
	e->until = j->segment.end;
	vmpt_flow_slice_end(e, e->slice_end);
	e->batch_from = e->c.at;
}

void vmpt_flow_job_start(struct job *j, struct maker *m)
{
	struct engine *e = &m->e;

	j->maker = m;
	j->done = j->stuck = false;
	j->error = 0;
	j->lost_end = 0;
	j->entered = true;
	e->until = j->segment.end;
	e->h = (struct hashes){ 0, 1 };
	e->weight = j->weight;
	e->result_count = 0;
	e->log_count = 0;
	vmpt_flow_stack_clear(&e->s);
	if (j->segment.at) {
		j->error = start_at_cut(j);
		e->batch_from = e->c.at;
		vmpt_flow_stack_from(e);
	}
}

/* ---- ending ---- */

/* The node that the cut's PSB+ leads to is the next job's. */
static void end_at_cut(struct job *j)
{
	struct engine *e = &j->maker->e;

	state_take(&j->exit, e);
	if (e->c.handle)
		vmpt_flow_leave_undone(e);
	if (e->blocks)
		vmpt_flow_close_batch(e, 0, 0, false);
	j->done = true;
}

/* ---- slices ---- */

/*
 * At damage, or where the flow of packets found after it ends: the next packets before the end of
 * what is lost become a slice of the same owner.
 */
static void lost_next(struct job *j, u64 at)
{
	struct engine *e = &j->maker->e;
	struct cursor before = e->c;
	u64 end = vmpt_flow_recover(e, &at, j->lost_end);

	vmpt_flow_slice_end(e, end ? end : j->lost_end);
	e->followed = false;
	vmpt_flow_cut(e, before.at, end ? at : j->lost_end, true);
	if (!end)
		return;
	e->c.last_ip = before.last_ip;
	e->c.cr3 = before.cr3;
	e->c.no_cr3 = before.no_cr3;
	e->c.exec = before.exec;
	vmpt_flow_stack_from(e);
}

/* Whether packets may be found in a loss: bytes are there, and packets were known before them. */
static bool may_recover(const struct vmpt_slice *loss)
{
	return loss->size && loss->loss != VMPT_E_SYNC && loss->loss != VMPT_E_GAP;
}

static void begin_slice(struct job *j, const struct vmpt_slice *slice)
{
	struct engine *e = &j->maker->e;

	vmpt_flow_slice_end(e, slice->offset + slice->size);
	if (slice->begin == VMPT_BEGIN_LOSS && may_recover(slice)) {
		j->lost_end = e->slice_end;
		e->c.at = slice->offset;
		lost_next(j, slice->offset);
	} else if (slice->begin == VMPT_BEGIN_LOSS) {
		vmpt_flow_cut(e, slice->offset, e->slice_end, true);
	} else {
		e->c.at = slice->offset;
		e->followed = true;
		vmpt_flow_owner(e, &slice->owner);
	}
}

static int next_slice(struct job *j)
{
	struct engine *e = &j->maker->e;
	struct vmpt_slice slice;
	int ret;

	if (e->slice_end < j->lost_end && e->c.at >= e->slice_end) {
		lost_next(j, e->slice_end);
		return e->error;
	}
	if (vmpt_follow_stuck(e->follow)) {
		j->done = j->stuck = true;
		return 0;
	}
	ret = vmpt_follow_next(e->follow, e->c.at, &slice);
	if (ret < 0)
		return ret;
	if (ret) {
		begin_slice(j, &slice);
	} else {
		vmpt_flow_cut(e, e->limit, e->limit, false);
		j->done = true;
	}
	return e->error;
}

/* The engine has come to where it was to stop. */
static int go_on(struct job *j)
{
	struct engine *e = &j->maker->e;

	if (e->c.at < e->until || (j->entered && !j->segment.cut))
		return next_slice(j);
	if (!j->entered)
		enter(j);
	else
		end_at_cut(j);
	return e->error;
}

/* ---- decoding ---- */

/* Until there are results, no room, or it is done. */
static int decode(struct job *j)
{
	struct engine *e = &j->maker->e;
	int ret = 0;

	while (!ret && !e->result_count && !j->done && !e->full) {
		if (e->c.at >= e->stop) {
			ret = go_on(j);
			continue;
		}
		ret = vmpt_flow_packets(e);
		if (j->maker->progress && j->weight == 1)
			j->maker->progress(j->maker->progress_opaque, e->c.at);
		/* It stopped for want of room. */
		if (!ret && e->c.at < e->stop && e->blocks && !e->full)
			vmpt_flow_close_batch(e, 0, 0, true);
	}
	/* Before the tables are thrown away. */
	if (!ret && e->full && e->blocks)
		vmpt_flow_close_batch(e, 0, 0, true);
	return ret;
}

/* From the engine to the job. Only what is held back stays in the engine's log. */
static int take_results(struct job *j)
{
	struct engine *e = &j->maker->e;
	u32 units = e->result_count ? e->results[e->result_count - 1].log : 0;
	size_t i;

	if (vmpt_reserve(&j->results, &j->result_room, j->result_count + e->result_count) ||
	    vmpt_reserve(&j->log, &j->log_room, j->log_count + units))
		return -VMPT_E_NOMEM;
	for (i = 0; i < e->result_count; i++) {
		j->results[j->result_count + i] = e->results[i];
		j->results[j->result_count + i].log += (u32)j->log_count;
	}
	j->result_count += e->result_count;
	e->result_count = 0;
	if (!units)
		return 0;
	memcpy(j->log + j->log_count, e->log, units * sizeof(*e->log));
	j->log_count += units;
	e->log_count -= units;
	memmove(e->log, e->log + units, e->log_count * sizeof(*e->log));
	return 0;
}

/* What is new in the engine's tables is for another thread. */
static int send_news(struct job *j)
{
	if (j->maker->book.direct)
		return 0;
	if (vmpt_grow(&j->news, j->news_count))
		return -VMPT_E_NOMEM;
	j->news[j->news_count] = (struct news){ 0 };
	return vmpt_flow_news_add(j->maker, &j->news[j->news_count++], j->result_count);
}

static int flush(struct job *j)
{
	struct maker *m = j->maker;
	int ret = send_news(j);

	ret = ret ? ret : vmpt_flow_flush(&m->e);
	m->reset = true;
	m->sent.nodes = m->sent.paths = m->sent.lists = 0;
	if (m->book.direct)
		vmpt_flow_book_reset(&m->book);
	return ret;
}

/* Units that no result has closed yet need the tables, but for the current node. */
static bool only_held(const struct engine *e)
{
	return !e->log_count || (e->log_count == 1 && e->log[0] == e->c.handle >> HANDLE_SHIFT);
}

void vmpt_flow_job_run(struct job *j, bool all)
{
	struct engine *e = &j->maker->e;
	int ret = j->error;

	while (!ret && !j->done) {
		/* Units in the log of a job are those of the tables as they are. */
		if (e->full && only_held(e) && (!j->result_count || !j->maker->book.direct))
			ret = flush(j);
		ret = ret ? ret : decode(j);
		ret = ret ? ret : take_results(j);
		if (j->result_count &&
		    (!all || j->result_count > REST_RESULTS || j->log_count > REST_UNITS))
			break;
	}
	if (!ret)
		ret = send_news(j);
	j->error = ret;
	if (j->done)
		j->h = e->h;
}

void vmpt_flow_job_drop(struct job *j)
{
	while (j->news_count)
		vmpt_flow_news_free(&j->news[--j->news_count]);
	j->result_count = 0;
	j->log_count = 0;
}

void vmpt_flow_job_free(struct job *j)
{
	vmpt_flow_job_drop(j);
	free(j->news);
	free(j->results);
	free(j->log);
}
