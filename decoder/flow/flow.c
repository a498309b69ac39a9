// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The public interface of the flow decoder: segments of the stream are decoded by jobs, whose
 * results are returned one by one, in order. With one thread there is one segment, which is decoded
 * as far as results are wanted.
 */
#include "decoder/flow/flow.h"

#define MEMORY_DEFAULT	  (64u << 20)
#define MEMORY_MIN	  (1u << 20)
#define NO_PACKET_DEFAULT 65536u
#define NO_PACKET_MOST	  (1u << 24)
#define BATCH_BLOCKS	  (8u << 10)
#define THREADS_MAX	  12u

/* Bytes of a segment */
#define SEGMENT	    (256u << 10)
#define SEGMENT_MIN 16u

/* ---- options ---- */

static int options_take(struct vmpt_flow_options *o, const struct vmpt_flow_options *given)
{
	if (given)
		*o = *given;
	if (o->returns > VMPT_FLOW_RETURNS_LIBIPT)
		return -VMPT_E_INVAL;
	if (!o->memory)
		o->memory = MEMORY_DEFAULT;
	if (o->memory < MEMORY_MIN)
		o->memory = MEMORY_MIN;
	if (!o->no_packet_max)
		o->no_packet_max = NO_PACKET_DEFAULT;
	if (o->no_packet_max > NO_PACKET_MOST)
		o->no_packet_max = NO_PACKET_MOST;
	return 0;
}

/* ---- opening ---- */

static unsigned int thread_count(const struct vmpt_options *given)
{
	unsigned int n = given ? given->threads : 1;

	return !n ? 1 : n > THREADS_MAX ? THREADS_MAX : n;
}

/* A short stream is not worth threads, and one with gaps has its owners from the splitter. */
static void open_plan(struct vmpt_flow *f, const struct vmpt_options *given)
{
	u64 size = given && given->chunk ? given->chunk : SEGMENT;

	if (size < SEGMENT_MIN)
		size = SEGMENT_MIN;
	f->plan.data = f->stream->data;
	f->plan.end = f->stream->size;
	f->plan.timed = f->code && vmpt_code_changes(f->code);
	f->workers = f->stream->gap_count ? 1 : thread_count(given);
	if (f->workers > f->stream->size / size + 1)
		f->workers = (unsigned int)(f->stream->size / size) + 1;
	if (f->workers == 1) {
		f->own.book.direct = &f->own.e;
		return;
	}
	f->plan.size = size;
	vmpt_flow_plan_start(&f->plan);
}

static void take_trace(struct vmpt_flow *f, const struct vmpt_options *given)
{
	if (!given)
		return;
	f->trace.threads = given->threads;
	f->trace.headless = given->headless;
	f->trace.guest_only = given->guest_only;
	f->trace.host_only = given->host_only;
	f->own.progress = given->progress;
	f->own.progress_opaque = given->progress_opaque;
}

static int open_parts(struct vmpt_flow *f)
{
	int ret;

	f->h.pow = 1;
	f->names.seed = vmpt_mix64((uintptr_t)f ^ (uintptr_t)&f << 20);
	open_plan(f, f->options.trace);
	take_trace(f, f->options.trace);
	f->options.trace = NULL;
	f->slots = f->workers > 1 ? 2 * f->workers + 2 : 1;
	f->jobs = calloc(f->slots, sizeof(*f->jobs));
	f->makers = calloc(f->workers, sizeof(*f->makers));
	if (!f->jobs || !f->makers)
		return -VMPT_E_NOMEM;
	ret = vmpt_flow_maker_open(&f->own, f->stream, f->code, &f->options, &f->trace);
	return ret ? ret : vmpt_pool_open(&f->pool, f->workers, f->slots, vmpt_flow_run_job, f);
}

int vmpt_flow_open_abi(struct vmpt_flow **flow, const struct vmpt_stream *stream,
		       struct vmpt_code *code, const struct vmpt_flow_options *options, u64 abi)
{
	struct vmpt_flow *f;
	int ret;

	if (abi != VMPT_FLOW_ABI)
		return -VMPT_E_VERSION;
	if (stream->isa != VMPT_ISA_PT)
		return -VMPT_E_UNSUPPORTED;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -VMPT_E_NOMEM;
	f->stream = stream;
	f->code = code;
	ret = options_take(&f->options, options);
	ret = ret ? ret : open_parts(f);
	if (ret) {
		vmpt_flow_close(f);
		return ret;
	}
	*flow = f;
	return 0;
}

void vmpt_flow_close(struct vmpt_flow *flow)
{
	unsigned int i;

	if (!flow)
		return;
	vmpt_pool_close(flow->pool);
	for (i = 0; flow->jobs && i < flow->slots; i++)
		vmpt_flow_job_free(&flow->jobs[i]);
	for (i = 0; flow->makers && i < flow->workers; i++)
		vmpt_flow_maker_close(&flow->makers[i]);
	vmpt_flow_maker_close(&flow->own);
	vmpt_flow_names_free(&flow->names);
	free(flow->jobs);
	free(flow->makers);
	free(flow->blocks.id);
	free(flow->space_gaps);
	free(flow->counts);
	free(flow->left.left);
	vmpt_hash_free(&flow->left.index);
	free(flow);
}

/* ---- returning ---- */

static u32 instructions_of(const struct vmpt_flow *f, u32 id)
{
	return vmpt_flow_direct(f) ? f->own.e.block[id].insns : f->names.block[id].insns;
}

/* Blocks of the result that is being returned; 0 if there are none left. */
static int blocks_next(struct vmpt_flow *f, const struct result *r, struct vmpt_flow_batch *batch)
{
	struct book *book = &f->job->maker->book;
	struct blocks *out = &f->blocks;
	bool last;
	int ret;

	out->count = 0;
	ret = vmpt_flow_expand(book, f->job->log + f->unit, r->log - f->unit, BATCH_BLOCKS, out);
	if (ret < 0)
		return ret;
	f->unit += (u32)ret;
	last = ret && f->unit == r->log;
	if (last && r->node != NONE)
		out->count -= vmpt_flow_node_count(book, r->node) - r->keep;
	if (!out->count)
		return 0;
	batch->offset = r->offset;
	batch->end = r->end;
	batch->blocks = out->id;
	batch->count = out->count;
	batch->last = last && r->node != NONE && r->last
			      ? r->last
			      : instructions_of(f, out->id[out->count - 1]);
	return 1;
}

static int count_gap(struct vmpt_flow *f, unsigned int reason, u32 space)
{
	f->gaps[reason]++;
	if (space == NONE)
		return 0;
	if (vmpt_reserve_zeroed(&f->space_gaps, &f->space_gaps_room, space + (size_t)1))
		return -VMPT_E_NOMEM;
	f->space_gaps[space].count[reason]++;
	return 0;
}

static int result_next(struct vmpt_flow *f, struct vmpt_flow_batch *batch)
{
	const struct result *r = &f->job->results[f->result];
	int ret;

	memset(batch, 0, sizeof(*batch));
	batch->kind = r->kind;
	if (r->kind == VMPT_FLOW_BLOCKS) {
		ret = blocks_next(f, r, batch);
		if (f->unit == r->log)
			f->result++;
		return ret;
	}
	f->result++;
	if (r->kind == VMPT_FLOW_GAP)
		batch->reason = r->reason;
	else
		batch->off = r->reason;
	batch->offset = r->offset;
	batch->end = r->end;
	batch->space = r->space == NONE || vmpt_flow_direct(f)
			       ? r->space
			       : f->job->maker->book.space[r->space];
	batch->ip = r->ip;
	ret = r->kind == VMPT_FLOW_GAP ? count_gap(f, r->reason, batch->space) : 0;
	return ret ? ret : 1;
}

int vmpt_flow_next(struct vmpt_flow *f, struct vmpt_flow_batch *batch)
{
	int ret = f->error;

	while (!ret) {
		while (f->job && f->result < f->job->result_count && !ret) {
			ret = vmpt_flow_take_news(f, false);
			ret = ret ? ret : result_next(f, batch);
		}
		if (ret > 0)
			return ret;
		if (!ret && f->done)
			return 0;
		ret = ret ? ret : vmpt_flow_more(f);
		f->done = !ret;
		ret = ret < 0 ? ret : 0;
	}
	f->error = ret;
	return ret;
}

/* ---- what was found ---- */

static const struct block *block_of(const struct vmpt_flow *f, u32 id)
{
	return vmpt_flow_direct(f) ? &f->own.e.block[id] : &f->names.block[id];
}

void vmpt_flow_block(const struct vmpt_flow *flow, u32 id, struct vmpt_flow_block *block)
{
	const struct block *b = block_of(flow, id);

	*block = (struct vmpt_flow_block){
		.ip = b->ip,
		.end_ip = b->end_ip,
		.next = b->next,
		.target = b->target,
		.space = b->space,
		.instructions = b->insns,
		.end = b->class, /* the same numbers */
	};
}

int vmpt_flow_code(struct vmpt_flow *flow, u32 id, u8 *bytes, size_t size)
{
	const struct block *b = block_of(flow, id);
	const u8 *code = vmpt_flow_direct(flow) ? flow->own.e.bytes : flow->names.code;
	unsigned int at = b->ip % VMPT_PAGE;
	struct vmpt_space space;
	struct vmpt_page page;
	int ret;

	if (size > b->size)
		size = b->size;
	if (b->code != NONE) {
		memcpy(bytes, code + b->code, size);
		return (int)size;
	}
	vmpt_flow_space(flow, b->space, &space, NULL);
	ret = vmpt_code_page(flow->code, &space, b->ip - at, 0, &page);
	if (ret <= 0)
		return ret;
	memcpy(bytes, page.bytes + at, size);
	return (int)size;
}

static void count_block(struct vmpt_flow_counts *counts, const struct block *b)
{
	counts->instructions += b->whole * b->insns + b->partial;
	if (b->class != VMPT_INSN_OTHER && b->class != VMPT_INSN_MOV_CR3)
		counts->branches += b->whole;
	if (b->class == VMPT_INSN_CALL || b->class == VMPT_INSN_CALL_IND)
		counts->calls += b->whole;
}

/* What the engine counted, to the flow's blocks that it has: others are of jobs not returned yet.
 */
static void add_counts(struct vmpt_flow *f, struct maker *m)
{
	size_t i;

	if (!m->opened)
		return;
	vmpt_flow_spread(&m->e);
	for (i = 0; !vmpt_flow_direct(f) && i < m->book.has.blocks; i++) {
		f->names.block[m->book.block[i]].whole += m->e.block[i].whole;
		f->names.block[m->book.block[i]].partial += m->e.block[i].partial;
	}
}

static size_t space_count(const struct vmpt_flow *f)
{
	return vmpt_flow_direct(f) ? f->own.e.space_count : f->names.space_count;
}

static size_t block_count(const struct vmpt_flow *f)
{
	return vmpt_flow_direct(f) ? f->own.e.block_count : f->names.block_count;
}

/* The same of where blocks were left. */
static int add_left(struct vmpt_flow *f, const struct maker *m)
{
	const struct left_list *from = &m->e.left;
	int ret = 0;
	size_t i;

	for (i = 0; i < from->count && !ret; i++) {
		u32 id = from->left[i].block;

		if (!vmpt_flow_direct(f) && id >= m->book.has.blocks)
			continue;
		ret = vmpt_flow_left_add(&f->left, f->names.seed,
					 vmpt_flow_direct(f) ? id : m->book.block[id],
					 from->left[i].instructions, from->left[i].count);
	}
	return ret;
}

static int count_left(struct vmpt_flow *f)
{
	unsigned int i;
	int ret;

	vmpt_hash_clear(&f->left.index);
	f->left.count = 0;
	ret = add_left(f, &f->own);
	for (i = 0; i < f->workers && !ret; i++)
		ret = add_left(f, &f->makers[i]);
	return ret;
}

/* The current node counts as executed: what was not is taken back when it is left. */
static void count(struct vmpt_flow *f)
{
	size_t i, n = space_count(f);

	if (f->counted)
		return;
	vmpt_pool_wait(f->pool);
	for (i = 0; i < f->names.block_count; i++)
		f->names.block[i].whole = f->names.block[i].partial = 0;
	add_counts(f, &f->own);
	for (i = 0; i < f->workers; i++)
		add_counts(f, &f->makers[i]);
	if (vmpt_reserve(&f->counts, &f->counts_room, n) ||
	    vmpt_reserve_zeroed(&f->space_gaps, &f->space_gaps_room, n) || count_left(f))
		return;
	f->counted = true;
	if (n)
		memset(f->counts, 0, n * sizeof(*f->counts));
	for (i = 0; i < block_count(f); i++)
		count_block(&f->counts[block_of(f, (u32)i)->space], block_of(f, (u32)i));
	for (i = 0; i < n; i++)
		memcpy(f->counts[i].gaps, f->space_gaps[i].count, sizeof(f->counts[i].gaps));
}

void vmpt_flow_total(struct vmpt_flow *flow, struct vmpt_flow_counts *counts, u64 *hash)
{
	size_t i;

	count(flow);
	memset(counts, 0, sizeof(*counts));
	for (i = 0; i < block_count(flow); i++)
		count_block(counts, block_of(flow, (u32)i));
	memcpy(counts->gaps, flow->gaps, sizeof(flow->gaps));
	if (hash)
		*hash = vmpt_flow_direct(flow) ? flow->own.e.h.hash : flow->h.hash;
}

u32 vmpt_flow_spaces(const struct vmpt_flow *flow)
{
	return (u32)space_count(flow);
}

void vmpt_flow_space(struct vmpt_flow *flow, u32 i, struct vmpt_space *space,
		     struct vmpt_flow_counts *counts)
{
	*space = vmpt_flow_direct(flow) ? flow->own.e.space[i].id : flow->names.space[i];
	if (!counts)
		return;
	count(flow);
	if (flow->counted)
		*counts = flow->counts[i];
	else
		memset(counts, 0, sizeof(*counts)); /* out of memory */
}

u32 vmpt_flow_blocks(const struct vmpt_flow *flow)
{
	return (u32)block_count(flow);
}

void vmpt_flow_executed(struct vmpt_flow *flow, u32 id, u64 *whole, u64 *instructions)
{
	count(flow);
	*whole = block_of(flow, id)->whole;
	*instructions = block_of(flow, id)->partial;
}

bool vmpt_flow_left(struct vmpt_flow *flow, u32 i, struct vmpt_flow_left *left)
{
	count(flow);
	/* What a segment that began wrongly had counted was taken back. */
	if (i >= flow->left.count)
		return false;
	*left = flow->left.left[i];
	return true;
}
