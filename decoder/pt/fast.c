// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The fast source: the planner splits regions into chunks at PSBs, some ahead of the
 * consumer; jobs of several chunks are decoded by lanes and threads; the results are
 * handed out in order, and those that do not continue the one before are decoded again.
 */
#include <stdlib.h>

#include "decoder/pt/fast.h"
#include "decoder/parallel/parallel.h"

#define INDEX_CHUNK   (64u << 10)
#define PACKETS_CHUNK (16u << 10)
/* See struct vmpt_planner. */
#define PSB_WINDOW    (1u << 20)
#define DEFAULT_LANES 8
/* With items a job holds at most 3.6 MB: 64 MiB in total. */
#define THREADS_MAX 12

struct job {
	struct vmpt_chunk chunk[VMPT_JOB_CHUNKS];
	unsigned int count;
};

struct vmpt_fast_source {
	struct vmpt_fast fast;
	bool items;
	struct vmpt_planner plan;
	struct vmpt_pool *pool;
	struct job *jobs;
	unsigned int slots, workers;
	u64 **raw; /* by worker */
	/* Handed out so far: all before at; next is chunk @next of job @job. */
	u64 at;
	struct vmpt_scan_state state;
	struct job *job;
	unsigned int next;
	bool head_given, used;
	struct vmpt_chunk redo;
	u64 head_tokens[4];
	u32 head_token_items[4];
	struct vmpt_item head_items[2];
};

/* ---- planning ---- */

static bool plan_chunk(struct vmpt_fast_source *s, struct vmpt_chunk *c)
{
	if (!vmpt_plan_next(&s->plan, &c->span))
		return false;
	c->state = c->span.carry ? s->state : (struct vmpt_scan_state){ 0 };
	return true;
}

static void plan_job(struct vmpt_fast_source *s, struct job *job)
{
	job->count = 0;
	while (job->count < VMPT_JOB_CHUNKS && plan_chunk(s, &job->chunk[job->count]))
		job->count++;
}

/* Fill the ring. */
static void plan(struct vmpt_fast_source *s)
{
	int slot;

	while ((slot = vmpt_pool_free_slot(s->pool)) >= 0) {
		plan_job(s, &s->jobs[slot]);
		if (!s->jobs[slot].count)
			return;
		vmpt_pool_put(s->pool);
	}
}

/* ---- decoding ---- */

static void decode(struct vmpt_fast_source *s, struct vmpt_chunk *chunks, unsigned int count,
		   unsigned int worker)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		chunks[i].sink.token_count = 0;
		chunks[i].sink.item_count = 0;
	}
	if (s->items)
		vmpt_packets_decode(&s->fast, chunks, count, s->raw[worker]);
	else
		vmpt_index_decode(&s->fast, chunks, count);
}

static void run_job(void *owner, unsigned int slot, unsigned int worker)
{
	struct vmpt_fast_source *s = owner;

	decode(s, s->jobs[slot].chunk, s->jobs[slot].count, worker);
}

/* ---- handing out ---- */

static void give(struct vmpt_piece *piece, const struct vmpt_chunk *c)
{
	*piece = (struct vmpt_piece){
		.start = c->span.start,
		.end = c->at,
		.region_end = c->span.region_end,
		.tokens = c->sink.tokens,
		.token_items = c->sink.token_items,
		.token_count = c->sink.token_count,
		.items = c->sink.items,
		.item_count = c->sink.item_count,
	};
}

static void put_loss(struct vmpt_fast_source *s, struct vmpt_piece *piece, u64 at, u64 size,
		     unsigned int err)
{
	u64 *token = s->head_tokens + piece->token_count;
	u32 *token_item = s->head_token_items + piece->token_count;

	token[0] = VMPT_TOKEN(at, VMPT_TOKEN_LOSS);
	token[1] = size << 6 | err;
	token_item[0] = token_item[1] = (u32)piece->item_count;
	piece->token_count += 2;
	s->head_items[piece->item_count++] =
		(struct vmpt_item){ .kind = VMPT_ITEM_LOSS, .aux = (u8)err, .payload = size };
}

/* The losses before a region's first packet, if there are any. */
static bool give_head(struct vmpt_fast_source *s, struct vmpt_piece *piece,
		      const struct vmpt_chunk *c)
{
	*piece = (struct vmpt_piece){ .start = c->span.head,
				      .end = c->span.start,
				      .region_end = c->span.region_end,
				      .tokens = s->head_tokens,
				      .token_items = s->head_token_items };
	if (c->span.gap)
		put_loss(s, piece, c->span.head, 0, VMPT_E_GAP);
	if (c->span.start > c->span.head)
		put_loss(s, piece, c->span.head, c->span.start - c->span.head, VMPT_E_SYNC);
	if (s->items)
		piece->items = s->head_items;
	else
		piece->item_count = 0;
	s->at = c->span.start;
	s->state = c->state;
	return piece->token_count > 0;
}

/* The chunk to hand out next, or NULL at the end. */
static struct vmpt_chunk *next_chunk(struct vmpt_fast_source *s)
{
	int slot;

	if (s->job && s->next == s->job->count) {
		s->job = NULL;
		vmpt_pool_drop(s->pool);
	}
	if (!s->job) {
		plan(s);
		slot = vmpt_pool_take(s->pool);
		/* All is handed out: the end that the planner left open is now known. */
		if (slot < 0 && vmpt_plan_go_on(&s->plan, s->at)) {
			plan(s);
			slot = vmpt_pool_take(s->pool);
		}
		if (slot < 0)
			return NULL;
		s->job = &s->jobs[slot];
		s->next = 0;
	}
	return &s->job->chunk[s->next];
}

/* Decode the part that the chunk's result does not have, from s->at on. */
static void redo(struct vmpt_fast_source *s, const struct vmpt_chunk *c)
{
	s->redo.span = c->span;
	s->redo.span.start = s->at;
	s->redo.state = s->state;
	decode(s, &s->redo, 1, 0);
}

int vmpt_fast_next(struct vmpt_fast_source *s, struct vmpt_piece *piece)
{
	struct vmpt_chunk *c;

	while ((c = next_chunk(s))) {
		if (c->span.first && !s->head_given) {
			s->head_given = true;
			if (give_head(s, piece, c))
				return 1;
		}
		if (s->at >= c->span.end) {
			s->next++;
			s->head_given = s->used = false;
			continue;
		}
		/* A chunk is right only if it starts where the last packet ended. */
		if (s->at != c->span.start || s->used) {
			redo(s, c);
			c = &s->redo;
		}
		s->used = true;
		s->at = c->at;
		s->state = c->state;
		give(piece, c);
		return 1;
	}
	return 0;
}

/* ---- open and close ---- */

static bool alloc_sink(const struct vmpt_fast_source *s, struct vmpt_scan_out *sink)
{
	size_t raws = s->items ? VMPT_PACKETS_RAW : VMPT_INDEX_RAW;

	/* The region's last bytes may be one token each. */
	sink->token_max = raws + VMPT_RAW_SLACK + VMPT_FAST_GUARD;
	sink->tokens = malloc(sink->token_max * sizeof(*sink->tokens));
	if (!s->items)
		return sink->tokens;
	/* A run before each packet, and after the last. */
	sink->item_max = 2 * sink->token_max;
	sink->items = malloc(sink->item_max * sizeof(*sink->items));
	sink->token_items = malloc(sink->token_max * sizeof(*sink->token_items));
	return sink->tokens && sink->items && sink->token_items;
}

static bool alloc_all(struct vmpt_fast_source *s)
{
	size_t raws = VMPT_LANES_MAX * (VMPT_PACKETS_RAW + VMPT_RAW_SLACK);
	unsigned int i, j;

	s->jobs = calloc(s->slots, sizeof(*s->jobs));
	s->raw = calloc(s->workers, sizeof(*s->raw));
	if (!s->jobs || !s->raw || !alloc_sink(s, &s->redo.sink))
		return false;
	for (i = 0; i < s->slots; i++)
		for (j = 0; j < VMPT_JOB_CHUNKS; j++)
			if (!alloc_sink(s, &s->jobs[i].chunk[j].sink))
				return false;
	for (i = 0; s->items && i < s->workers; i++) {
		s->raw[i] = malloc(raws * sizeof(**s->raw));
		if (!s->raw[i])
			return false;
	}
	return true;
}

int vmpt_fast_open(struct vmpt_fast_source **src, const struct vmpt_stream *stream,
		   const struct vmpt_options *options, bool items)
{
	static const struct vmpt_options defaults;
	struct vmpt_fast_source *s = calloc(1, sizeof(*s));
	const struct vmpt_options *o = options ? options : &defaults;
	size_t size = items ? PACKETS_CHUNK : INDEX_CHUNK;

	if (!s)
		return -VMPT_E_NOMEM;
	s->items = items;
	s->plan = (struct vmpt_planner){
		.stream = stream,
		.psb_find = vmpt_psb_find,
		.size = o->chunk ? o->chunk : size,
		.psb_window = PSB_WINDOW,
		.headless = o->headless,
	};
	vmpt_plan_start(&s->plan);
	s->workers = o->threads > THREADS_MAX ? THREADS_MAX : o->threads ? o->threads : 1;
	/* One job is being handed out, one runs in each thread, two wait. */
	s->slots = s->workers > 1 ? s->workers + 3 : 1;
	s->fast.data = stream->data;
	s->fast.steps = vmpt_packet_table.step;
	s->fast.lanes = o->lanes ? o->lanes : DEFAULT_LANES;
	if (s->fast.lanes > VMPT_LANES_MAX)
		s->fast.lanes = VMPT_LANES_MAX;
	if (!alloc_all(s) || vmpt_pool_open(&s->pool, s->workers, s->slots, run_job, s)) {
		vmpt_fast_close(s);
		return -VMPT_E_NOMEM;
	}
	*src = s;
	return 0;
}

void vmpt_fast_time_only(struct vmpt_fast_source *s)
{
	s->fast.steps = vmpt_time_steps;
}

static void free_sink(struct vmpt_scan_out *sink)
{
	free(sink->tokens);
	free(sink->token_items);
	free(sink->items);
}

void vmpt_fast_close(struct vmpt_fast_source *s)
{
	unsigned int i, j;

	if (!s)
		return;
	vmpt_pool_close(s->pool);
	for (i = 0; s->jobs && i < s->slots; i++)
		for (j = 0; j < VMPT_JOB_CHUNKS; j++)
			free_sink(&s->jobs[i].chunk[j].sink);
	for (i = 0; s->raw && i < s->workers; i++)
		free(s->raw[i]);
	free_sink(&s->redo.sink);
	free(s->raw);
	free(s->jobs);
	free(s);
}
