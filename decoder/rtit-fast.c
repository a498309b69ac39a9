// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * RTIT's fast source: the planner cuts regions into chunks at PSBs, some ahead of what is
 * handed out; jobs of several chunks are decoded by lanes and threads; the results are handed
 * out in order, with what only the packets before them tell.
 */
#include <stdlib.h>

#include "decoder/pool.h"
#include "decoder/rtit-fast.h"

#define INDEX_CHUNK   (64u << 10)
#define PACKETS_CHUNK (16u << 10)
/* See struct vmpt_planner. */
#define PSB_WINDOW    (64u << 10)
#define DEFAULT_LANES 4
#define THREADS_MAX   12

struct job {
	struct vmpt_rtit_chunk chunk[VMPT_RTIT_JOB_CHUNKS];
	unsigned int count;
};

struct vmpt_rtit_fast_source {
	const struct vmpt_stream *stream;
	struct vmpt_rtit_fast fast;
	bool items;
	struct vmpt_planner plan;
	struct vmpt_pool *pool;
	struct job *jobs;
	unsigned int slots, workers;
	void **raw; /* by worker */
	/* What is handed out: all before at, by chunk @next of job @job. */
	u64 at;
	struct vmpt_rtit_state state;
	struct job *job;
	unsigned int next;
	bool head_given, used;
	bool refused; /* at @at stands what the plain loop is for */
	struct vmpt_rtit_chunk redo;
	struct vmpt_rtit_scan_out head;
	struct vmpt_rtit_token head_tokens[2];
	struct vmpt_item head_items[2];
};

/* ---- planning ---- */

/* Fill the ring. */
static void plan(struct vmpt_rtit_fast_source *s)
{
	struct job *job;
	int slot;

	while ((slot = vmpt_pool_free_slot(s->pool)) >= 0) {
		job = &s->jobs[slot];
		job->count = 0;
		while (job->count < VMPT_RTIT_JOB_CHUNKS &&
		       vmpt_plan_next(&s->plan, &job->chunk[job->count].span))
			job->count++;
		if (!job->count)
			return;
		vmpt_pool_put(s->pool);
	}
}

/* ---- decoding ---- */

static void decode(struct vmpt_rtit_fast_source *s, struct vmpt_rtit_chunk *chunks,
		   unsigned int count, unsigned int worker)
{
	if (s->items)
		vmpt_rtit_packets_decode(&s->fast, chunks, count, s->raw[worker]);
	else
		vmpt_rtit_index_decode(&s->fast, chunks, count, s->raw[worker]);
}

static void run_job(void *owner, unsigned int slot, unsigned int worker)
{
	struct vmpt_rtit_fast_source *s = owner;

	decode(s, s->jobs[slot].chunk, s->jobs[slot].count, worker);
}

/* ---- handing out ---- */

static void give(struct vmpt_rtit_piece *piece, u64 start, u64 end, u64 region_end,
		 const struct vmpt_rtit_scan_out *sink)
{
	*piece = (struct vmpt_rtit_piece){
		.start = start,
		.end = end,
		.region_end = region_end,
		.tokens = sink->tokens,
		.token_count = sink->token_count,
		.items = sink->items,
		.item_count = sink->item_count,
		.cycles = sink->cycles,
	};
}

/* The losses before a region's first packet, if there are any. */
static bool give_head(struct vmpt_rtit_fast_source *s, struct vmpt_rtit_piece *piece,
		      const struct vmpt_rtit_chunk *c)
{
	s->head = (struct vmpt_rtit_scan_out){ .tokens = s->head_tokens,
					       .items = s->items ? s->head_items : NULL };
	if (c->span.gap)
		vmpt_rtit_put_loss(&s->head, c->span.head, 0, VMPT_E_GAP, c->span.head);
	if (c->span.start > c->span.head)
		vmpt_rtit_put_loss(&s->head, c->span.head, c->span.start - c->span.head,
				   VMPT_E_SYNC, c->span.head);
	give(piece, c->span.head, c->span.start, c->span.region_end, &s->head);
	s->at = c->span.start;
	s->state = (struct vmpt_rtit_state){ 0 };
	s->refused = false;
	return s->head.token_count > 0;
}

/* The chunk to hand out next, or NULL at the end. */
static struct vmpt_rtit_chunk *next_chunk(struct vmpt_rtit_fast_source *s)
{
	int slot;

	if (s->job && s->next == s->job->count) {
		s->job = NULL;
		vmpt_pool_drop(s->pool);
	}
	if (!s->job) {
		plan(s);
		slot = vmpt_pool_take(s->pool);
		/* All is handed out: the end of what the planner left open is now known. */
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

/*
 * Up to the first whole LIP of a chunk its LIPs lean on what came before it. Nothing in the
 * chunk's first packets undoes that: what would (a loss) is not in a fast chunk.
 */
static void lean_lips(struct vmpt_rtit_fast_source *s, struct vmpt_rtit_chunk *c)
{
	struct vmpt_item *item = c->sink.items, *end = item + c->sink.item_count;
	struct vmpt_rtit_last_lip *last = &s->state.last;
	unsigned int kind, cnt;
	u64 sent;

	for (; item < end; item++) {
		kind = item->kind - VMPT_ITEM_RTIT;
		if (kind >= VMPT_RTIT_KINDS || !(vmpt_rtit_table[kind].classes & VMPT_RTIT_HAS_LIP))
			continue;
		cnt = item->aux & VMPT_RTIT_AUX_CNT;
		if (cnt == 2 || item->aux & VMPT_RTIT_AUX_ZEXT) {
			*last = (struct vmpt_rtit_last_lip){ c->last_lip, true };
			return;
		}
		sent = vmpt_mask64(16 + 16 * cnt);
		item->payload &= sent;
		if (last->valid)
			item->payload = last->lip = item->payload | (last->lip & ~sent);
		else
			item->aux |= VMPT_RTIT_AUX_NO_LIP;
	}
}

static void give_chunk(struct vmpt_rtit_fast_source *s, struct vmpt_rtit_piece *piece,
		       struct vmpt_rtit_chunk *c)
{
	struct vmpt_rtit_token *first = c->sink.tokens;

	if (c->sink.token_count && first->at == c->span.start && first->kind == VMPT_RTIT_PSB)
		first->size = s->state.prev_size;
	if (s->items)
		lean_lips(s, c);
	if (c->at > c->span.start)
		s->state.prev_size = c->prev_size;
	give(piece, c->span.start, c->at, c->span.region_end, &c->sink);
	s->at = c->at;
	s->refused = c->refused;
}

/* Decode what the chunk's own result does not hold, from s->at on, by the plain loop. */
static void give_plain(struct vmpt_rtit_fast_source *s, struct vmpt_rtit_piece *piece,
		       const struct vmpt_rtit_chunk *c)
{
	struct vmpt_rtit_scan_out *sink = &s->redo.sink;
	u64 from = s->at;

	sink->token_count = sink->item_count = sink->cycles = 0;
	s->at = vmpt_rtit_scan(s->stream->data, s->fast.cycle_acc, from, c->span.end,
			       c->span.region_end, from, &s->state, sink);
	give(piece, from, s->at, c->span.region_end, sink);
}

/* The chunk's result, if it is right, or what is made anew from s->at on. */
static void give_next(struct vmpt_rtit_fast_source *s, struct vmpt_rtit_piece *piece,
		      struct vmpt_rtit_chunk *c)
{
	bool right = s->at == c->span.start && !s->used;

	s->used = true;
	if (right) {
		give_chunk(s, piece, c);
		return;
	}
	if (s->refused) {
		give_plain(s, piece, c);
		return;
	}
	s->redo.span = c->span;
	s->redo.span.start = s->at;
	decode(s, &s->redo, 1, 0);
	give_chunk(s, piece, &s->redo);
}

int vmpt_rtit_fast_next(struct vmpt_rtit_fast_source *s, struct vmpt_rtit_piece *piece)
{
	struct vmpt_rtit_chunk *c;

	while ((c = next_chunk(s))) {
		if (c->span.first && !s->head_given) {
			s->head_given = true;
			if (give_head(s, piece, c))
				return 1;
		}
		if (s->at >= c->span.end) {
			s->next++;
			s->head_given = s->used = s->refused = false;
			continue;
		}
		give_next(s, piece, c);
		if (piece->end > piece->start)
			return 1;
	}
	return 0;
}

/* ---- open and close ---- */

static bool alloc_sink(const struct vmpt_rtit_fast_source *s, struct vmpt_rtit_scan_out *sink)
{
	size_t raws = s->items ? VMPT_RTIT_PACKETS_RAW : VMPT_RTIT_INDEX_RAW;

	/* A packet has a byte at least. */
	if (raws > s->stream->size)
		raws = (size_t)s->stream->size + 1;
	sink->token_max = raws;
	sink->tokens = malloc(sink->token_max * sizeof(*sink->tokens));
	if (!s->items)
		return sink->tokens;
	/* A run before each packet, or its cycle count behind it; the run behind the last. */
	sink->item_max = 2 * raws + 1 + VMPT_SPAN_MAX / 65535 + 2;
	sink->items = malloc(sink->item_max * sizeof(*sink->items));
	return sink->tokens && sink->items;
}

static bool alloc_all(struct vmpt_rtit_fast_source *s)
{
	size_t raw = s->items ? VMPT_RTIT_PACKETS_RAW * sizeof(u32)
			      : VMPT_RTIT_INDEX_RAW * sizeof(struct vmpt_rtit_index_raw);
	unsigned int i, j;

	s->jobs = calloc(s->slots, sizeof(*s->jobs));
	s->raw = calloc(s->workers, sizeof(*s->raw));
	if (!s->jobs || !s->raw || !alloc_sink(s, &s->redo.sink))
		return false;
	for (i = 0; i < s->slots; i++)
		for (j = 0; j < VMPT_RTIT_JOB_CHUNKS; j++)
			if (!alloc_sink(s, &s->jobs[i].chunk[j].sink))
				return false;
	for (i = 0; i < s->workers; i++) {
		/* A step stores its entry before it is known to be kept: one more. */
		s->raw[i] = malloc((VMPT_RTIT_LANES_MAX + 1) * raw);
		if (!s->raw[i])
			return false;
	}
	return true;
}

int vmpt_rtit_fast_open(struct vmpt_rtit_fast_source **src, const struct vmpt_stream *stream,
			const struct vmpt_options *o, bool cycle_acc, bool items)
{
	struct vmpt_rtit_fast_source *s = calloc(1, sizeof(*s));
	size_t size = items ? PACKETS_CHUNK : INDEX_CHUNK;

	if (!s)
		return -VMPT_E_NOMEM;
	s->stream = stream;
	s->items = items;
	s->plan = (struct vmpt_planner){
		.stream = stream,
		.psb_find = vmpt_rtit_psb_find,
		.size = o->chunk ? o->chunk : size,
		.psb_window = PSB_WINDOW,
		.headless = o->headless,
	};
	vmpt_plan_start(&s->plan);
	s->workers = o->threads > THREADS_MAX ? THREADS_MAX : o->threads ? o->threads : 1;
	/* One job is handed out, one runs in each thread, two wait. */
	s->slots = s->workers > 1 ? s->workers + 3 : 1;
	s->fast.data = stream->data;
	s->fast.cycle_acc = cycle_acc;
	s->fast.lanes = o->lanes ? o->lanes : DEFAULT_LANES;
	if (s->fast.lanes > VMPT_RTIT_LANES_MAX)
		s->fast.lanes = VMPT_RTIT_LANES_MAX;
	vmpt_rtit_fast_tables(&s->fast);
	if (!alloc_all(s) || vmpt_pool_open(&s->pool, s->workers, s->slots, run_job, s)) {
		vmpt_rtit_fast_close(s);
		return -VMPT_E_NOMEM;
	}
	*src = s;
	return 0;
}

static void free_sink(struct vmpt_rtit_scan_out *sink)
{
	free(sink->tokens);
	free(sink->items);
}

void vmpt_rtit_fast_close(struct vmpt_rtit_fast_source *s)
{
	unsigned int i, j;

	if (!s)
		return;
	vmpt_pool_close(s->pool);
	for (i = 0; s->jobs && i < s->slots; i++)
		for (j = 0; j < VMPT_RTIT_JOB_CHUNKS; j++)
			free_sink(&s->jobs[i].chunk[j].sink);
	for (i = 0; s->raw && i < s->workers; i++)
		free(s->raw[i]);
	free_sink(&s->redo.sink);
	free(s->raw);
	free(s->jobs);
	free(s);
}
