// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The public interface of the flow decoder: slices with their owners from the splitter go through
 * an engine, and its results are returned one by one.
 */
#include "decoder/flow/engine.h"

#define MEMORY_DEFAULT	  (64u << 20)
#define MEMORY_MIN	  (1u << 20)
#define NO_PACKET_DEFAULT 65536u
#define NO_PACKET_MOST	  (1u << 24)
#define LOG_UNITS	  (64u << 10)
#define BATCH_BLOCKS	  (64u << 10)

struct vmpt_flow {
	struct engine engine;
	struct vmpt_splitter *splitter;
	u64 slice_end;
	u64 lost_end; /* bytes up to here are lost, but for packets that are found in them */
	bool done;
	bool counted; /* counts of blocks and .counts are of all that was decoded */
	struct vmpt_flow_counts *counts; /* by space */
	size_t counts_room;
	/* What is being returned. */
	size_t result;
	u32 unit;
	u32 *blocks;
	size_t block_count, block_room;
};

/* ---- opening ---- */

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
	e->stack = e->options.returns == VMPT_FLOW_RETURNS_FOLLOW ||
		   e->options.returns == VMPT_FLOW_RETURNS_LIBIPT;
	/* Code and trace must not choose keys that collide. */
	e->seed = vmpt_mix64((uintptr_t)e ^ (uintptr_t)&e << 20);
	e->owner.kind = VMPT_OWNER_UNKNOWN;
	e->results = calloc(VMPT_FLOW_RESULTS, sizeof(*e->results));
	if (e->blocks) {
		e->log_room = LOG_UNITS;
		e->log = calloc(e->log_room, sizeof(*e->log));
	}
	if (!e->results || (e->blocks && !e->log))
		return -VMPT_E_NOMEM;
	e->timed = code && vmpt_code_changes(code);
	if (vmpt_grow(&e->epochs, e->epoch_count))
		return -VMPT_E_NOMEM;
	e->epochs[e->epoch_count++] = (struct epoch){ 0 };
	vmpt_flow_cut(e, 0, 0, false);
	return vmpt_flow_tables_init(e);
}

static void engine_close(struct engine *e)
{
	vmpt_flow_tables_free(e);
	free(e->results);
	free(e->log);
	free(e->owners);
	free(e->block);
	free(e->space);
	free(e->page);
	free(e->epochs);
	vmpt_hash_free(&e->block_index);
	vmpt_hash_free(&e->space_index);
	vmpt_hash_free(&e->page_index);
}

static int open_parts(struct vmpt_flow *f, const struct vmpt_stream *stream, struct vmpt_code *code)
{
	struct vmpt_options trace = { 0 };
	const struct vmpt_options *given = f->engine.options.trace;
	int ret;

	if (given) {
		trace.threads = given->threads;
		trace.headless = given->headless;
		trace.guest_only = given->guest_only;
		trace.host_only = given->host_only;
	}
	f->engine.options.trace = NULL;
	ret = vmpt_splitter_open(&f->splitter, stream, &trace);
	return ret ? ret : engine_open(&f->engine, stream, code);
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
	ret = options_take(&f->engine.options, options);
	ret = ret ? ret : open_parts(f, stream, code);
	if (ret) {
		vmpt_flow_close(f);
		return ret;
	}
	*flow = f;
	return 0;
}

void vmpt_flow_close(struct vmpt_flow *flow)
{
	if (!flow)
		return;
	if (flow->splitter)
		vmpt_splitter_close(flow->splitter);
	engine_close(&flow->engine);
	free(flow->blocks);
	free(flow->counts);
	free(flow);
}

/* ---- decoding ---- */

/* Results were returned: only what is held back stays in the log. */
static int results_drop(struct vmpt_flow *f)
{
	struct engine *e = &f->engine;
	u32 from = e->result_count ? e->results[e->result_count - 1].log : 0;

	e->log_count -= from;
	if (from)
		memmove(e->log, e->log + from, e->log_count * sizeof(*e->log));
	e->result_count = 0;
	f->result = 0;
	f->unit = 0;
	return e->full ? vmpt_flow_flush(e) : 0;
}

/*
 * At damage, or where the flow of packets found after it ends: the next packets before the end of
 * what is lost become a slice of the same owner.
 */
static void lost_next(struct vmpt_flow *f, u64 at)
{
	struct engine *e = &f->engine;
	struct cursor before = e->c;
	u64 end = vmpt_flow_recover(e->data, &at, f->lost_end);

	f->slice_end = end ? end : f->lost_end;
	vmpt_flow_cut(e, before.at, end ? at : f->lost_end, true);
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

/* The next slice. 1, 0 at the end, or a negative error. */
static int slice_next(struct vmpt_flow *f)
{
	struct engine *e = &f->engine;
	struct vmpt_slice slice;
	int ret;

	if (f->slice_end < f->lost_end) {
		lost_next(f, f->slice_end);
		return e->error ? e->error : 1;
	}
	ret = vmpt_split_next(f->splitter, &slice);
	if (ret < 0)
		return ret;
	if (!ret) {
		f->done = true;
		vmpt_flow_cut(e, e->limit, e->limit, false);
		return 0;
	}
	f->slice_end = slice.offset + slice.size;
	if (slice.begin == VMPT_BEGIN_LOSS && may_recover(&slice)) {
		f->lost_end = f->slice_end;
		e->c.at = slice.offset;
		lost_next(f, slice.offset);
		return e->error ? e->error : 1;
	}
	if (slice.begin == VMPT_BEGIN_LOSS) {
		vmpt_flow_cut(e, slice.offset, f->slice_end, true);
		return e->error ? e->error : 1;
	}
	e->c.at = slice.offset;
	vmpt_flow_owner(e, &slice.owner);
	return e->error ? e->error : 1;
}

/* Decode until there are results, or to the end. */
static int decode(struct vmpt_flow *f)
{
	struct engine *e = &f->engine;
	int ret;

	f->counted = false;
	while (!e->result_count && !f->done) {
		if (e->c.at >= f->slice_end) {
			ret = slice_next(f);
			if (ret < 0)
				return ret;
			continue;
		}
		e->stop = f->slice_end;
		ret = vmpt_flow_packets(e);
		if (ret < 0)
			return ret;
		/* It stopped for want of room. */
		if (e->c.at < e->stop && e->blocks)
			vmpt_flow_close_batch(e, 0, 0, true);
		if (e->c.at < e->stop && !e->result_count && e->full) {
			ret = vmpt_flow_flush(e);
			if (ret < 0)
				return ret;
		}
	}
	return 0;
}

/* ---- returning ---- */

static int put(struct vmpt_flow *f, const u32 *blocks, size_t count)
{
	if (f->block_count + count > f->block_room &&
	    vmpt_reserve(&f->blocks, &f->block_room, f->block_count + count))
		return -VMPT_E_NOMEM;
	if (count)
		memcpy(f->blocks + f->block_count, blocks, count * sizeof(*blocks));
	f->block_count += count;
	return 0;
}

/* Keep the last @count blocks as those of @p. */
static void keep_flat(struct vmpt_flow *f, struct path *p, size_t count)
{
	struct engine *e = &f->engine;
	size_t room = e->flat_room;

	if (!count || e->flat_count + count > NONE ||
	    vmpt_reserve(&e->flats, &e->flat_room, e->flat_count + count))
		return;
	vmpt_flow_memory(e, room * sizeof(*e->flats), e->flat_room * sizeof(*e->flats));
	memcpy(e->flats + e->flat_count, f->blocks + f->block_count - count,
	       count * sizeof(*e->flats));
	p->flat = (u32)e->flat_count;
	p->flat_count = (u32)count;
	e->flat_count += count;
}

static int put_unit(struct vmpt_flow *f, u32 unit)
{
	const struct engine *e = &f->engine;
	size_t before = f->block_count;
	const struct node *n;
	struct path *p;
	int ret = 0;
	u32 i;

	if (!(unit & UNIT_PATH)) {
		n = &e->nodes[unit];
		return put(f, e->lists + n->list, n->count);
	}
	p = &e->paths[unit & ~UNIT_PATH];
	if (p->flat_count)
		return put(f, e->flats + p->flat, p->flat_count);
	/* Paths in paths are one deep. */
	for (i = 0; i < p->count && !ret; i++)
		ret = put_unit(f, e->lists[p->list + i]);
	if (!ret)
		keep_flat(f, p, f->block_count - before);
	return ret;
}

/* Blocks of the result that is being returned; 0 if there are none left. */
static int blocks_next(struct vmpt_flow *f, const struct result *r, struct vmpt_flow_batch *batch)
{
	const struct engine *e = &f->engine;
	bool last = false;
	int ret = 0;

	f->block_count = 0;
	for (; f->unit < r->log && f->block_count < BATCH_BLOCKS && !ret; f->unit++) {
		ret = put_unit(f, e->log[f->unit]);
		last = f->unit + 1 == r->log;
	}
	if (ret)
		return ret;
	if (last && r->node != NONE)
		f->block_count -= e->nodes[r->node].count - r->keep;
	if (!f->block_count)
		return 0;
	batch->offset = r->offset;
	batch->end = r->end;
	batch->blocks = f->blocks;
	batch->count = f->block_count;
	batch->last = last && r->node != NONE && r->last
			      ? r->last
			      : e->block[f->blocks[f->block_count - 1]].insns;
	return 1;
}

static int result_next(struct vmpt_flow *f, struct vmpt_flow_batch *batch)
{
	const struct result *r = &f->engine.results[f->result];
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
	batch->reason = r->reason;
	batch->offset = r->offset;
	batch->end = r->end;
	batch->space = r->space;
	batch->ip = r->ip;
	return 1;
}

int vmpt_flow_next(struct vmpt_flow *f, struct vmpt_flow_batch *batch)
{
	int ret;

	for (;;) {
		while (f->result < f->engine.result_count) {
			ret = result_next(f, batch);
			if (ret)
				return ret;
		}
		ret = results_drop(f);
		if (!ret && f->done)
			return 0;
		ret = ret ? ret : decode(f);
		if (ret)
			return ret;
	}
}

/* ---- what was found ---- */

void vmpt_flow_block(const struct vmpt_flow *flow, u32 id, struct vmpt_flow_block *block)
{
	const struct block *b = &flow->engine.block[id];

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
	const struct block *b = &flow->engine.block[id];
	u64 bytes_of = b->next - b->ip;

	if (size > bytes_of)
		size = (size_t)bytes_of;
	return (int)vmpt_flow_fetch(&flow->engine, b->space, b->ip, bytes, size);
}

static void count_block(struct vmpt_flow_counts *counts, const struct block *b)
{
	counts->instructions += b->whole * b->insns + b->partial;
	if (b->class != VMPT_INSN_OTHER && b->class != VMPT_INSN_MOV_CR3)
		counts->branches += b->whole;
	if (b->class == VMPT_INSN_CALL || b->class == VMPT_INSN_CALL_IND)
		counts->calls += b->whole;
}

/* The current node counts as executed: what was not is taken back when it is left. */
static void count(struct vmpt_flow *f)
{
	struct engine *e = &f->engine;
	size_t i;

	if (f->counted)
		return;
	vmpt_flow_spread(e);
	if (vmpt_reserve(&f->counts, &f->counts_room, e->space_count))
		return;
	f->counted = true;
	if (e->space_count)
		memset(f->counts, 0, e->space_count * sizeof(*f->counts));
	for (i = 0; i < e->block_count; i++)
		count_block(&f->counts[e->block[i].space], &e->block[i]);
	for (i = 0; i < e->space_count; i++)
		memcpy(f->counts[i].gaps, e->space[i].gaps, sizeof(e->space[i].gaps));
}

void vmpt_flow_total(struct vmpt_flow *flow, struct vmpt_flow_counts *counts, u64 *hash)
{
	struct engine *e = &flow->engine;
	size_t i;

	count(flow);
	memset(counts, 0, sizeof(*counts));
	for (i = 0; i < e->block_count; i++)
		count_block(counts, &e->block[i]);
	memcpy(counts->gaps, e->gaps, sizeof(e->gaps));
	if (hash)
		*hash = e->h.hash;
}

u32 vmpt_flow_spaces(const struct vmpt_flow *flow)
{
	return (u32)flow->engine.space_count;
}

void vmpt_flow_space(struct vmpt_flow *flow, u32 i, struct vmpt_space *space,
		     struct vmpt_flow_counts *counts)
{
	*space = flow->engine.space[i].id;
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
	return (u32)flow->engine.block_count;
}

void vmpt_flow_executed(struct vmpt_flow *flow, u32 id, u64 *whole, u64 *instructions)
{
	count(flow);
	*whole = flow->engine.block[id].whole;
	*instructions = flow->engine.block[id].partial;
}
