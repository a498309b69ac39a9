// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* One stream: its flow, read ahead as far as wanted, the times of its packets, and its blocks. */
#include <Zydis/Zydis.h>

#include "decoder/calls/engine.h"

/* ---- opening ---- */

int vmpt_calls_feed_open(struct vmpt_calls *e, struct feed *f, const struct vmpt_stream *stream,
			 struct vmpt_code *code)
{
	struct vmpt_options trace = e->trace;
	int ret;

	ret = vmpt_flow_open(&f->flow, stream, code, &e->flow);
	if (ret || !e->clocks)
		return ret;
	trace.threads = 1;
	trace.progress = NULL;
	return vmpt_timed_open(&f->timed, e->clocks, f->index, &trace);
}

void vmpt_calls_feed_close(struct feed *f)
{
	vmpt_flow_close(f->flow);
	vmpt_timed_close(f->timed);
	free(f->block);
	free(f->place);
	free(f->space);
	free(f->part);
	free(f->ids);
}

/* ---- parts ---- */

/* What was taken is dropped, so that the lists stay as long as what is read ahead. */
static void shift(struct feed *f)
{
	u32 first = f->part_at < f->parts ? f->part[f->part_at].first : (u32)f->id_count;
	size_t i;

	if (f->part_at < f->parts && (f->part_at < 64 || first < f->id_count / 2))
		return;
	memmove(f->part, f->part + f->part_at, (f->parts - f->part_at) * sizeof(*f->part));
	if (f->id_count > first)
		memmove(f->ids, f->ids + first, (f->id_count - first) * sizeof(*f->ids));
	f->parts -= f->part_at;
	f->part_at = 0;
	f->id_count -= first;
	for (i = 0; i < f->parts; i++)
		f->part[i].first -= first;
}

/* Take one more batch of the flow. 1, 0 at the end, or a negative error. */
static int pull(struct feed *f)
{
	struct vmpt_flow_batch b;
	int ret;

	if (f->ended)
		return 0;
	ret = vmpt_flow_next(f->flow, &b);
	if (ret <= 0) {
		f->ended = true;
		return ret;
	}
	if (f->part_at)
		shift(f);
	if (f->id_count + b.count > NONE || vmpt_grow(&f->part, f->parts) ||
	    vmpt_reserve(&f->ids, &f->id_room, f->id_count + b.count))
		return -VMPT_E_NOMEM;
	if (b.count)
		memcpy(f->ids + f->id_count, b.blocks, b.count * sizeof(*b.blocks));
	f->part[f->parts++] = (struct part){
		.offset = b.offset,
		.end = b.end,
		.ip = b.ip,
		.first = (u32)f->id_count,
		.count = (u32)b.count,
		.last = b.last,
		.space = b.space,
		.kind = b.kind,
	};
	f->id_count += b.count;
	return 1;
}

int vmpt_calls_feed_ahead(struct feed *f, size_t n)
{
	while (f->parts - f->part_at <= n) {
		int ret = pull(f);

		if (ret <= 0)
			return ret;
	}
	return 1;
}

void vmpt_calls_feed_done(struct feed *f)
{
	f->part_at++;
	f->ready = false;
}

/* ---- times ---- */

/* The time of the last packet at or before @offset, which never goes back. */
static int follow(struct feed *f, u64 offset)
{
	while (!f->timed_ended) {
		const struct vmpt_batch *b = &f->batch.batch;
		int ret;

		if (f->item < b->count) {
			if (b->base + b->items[f->item].offset > offset)
				return 0;
			f->now = f->batch.time[f->item++];
			continue;
		}
		ret = vmpt_timed_next(f->timed, &f->batch);
		if (ret < 0)
			return ret;
		f->timed_ended = !ret;
		f->item = 0;
	}
	return 0;
}

int vmpt_calls_feed_times(struct feed *f)
{
	const struct part *p = &f->part[f->part_at];
	struct vmpt_time start;
	int ret;

	if (!f->timed || f->ready)
		return 0;
	f->ready = true;
	ret = follow(f, p->offset);
	/* An event may be before the end of the blocks before it, which is at a later time. */
	start = p->offset < f->followed ? f->before : f->now;
	f->tsc = f->tsc_end = start.tsc;
	if (ret || f->tsc == VMPT_TIME_NONE)
		return ret;
	if (start.late != VMPT_TIME_OPEN)
		f->tsc_end += start.late;
	if (p->end > f->followed) {
		ret = follow(f, p->end - 1);
		f->before = f->now;
		f->followed = p->end;
	}
	if (!ret)
		ret = follow(f, p->end);
	if (f->now.tsc > f->tsc_end && f->now.tsc != VMPT_TIME_NONE)
		f->tsc_end = f->now.tsc;
	return ret;
}

/* ---- address spaces ---- */

static bool same(const struct vmpt_space *a, const struct vmpt_space *b)
{
	return vmpt_owner_same(&a->owner, &b->owner) && a->no_cr3 == b->no_cr3 &&
	       a->cr3 == b->cr3 && a->exec == b->exec;
}

static u32 space_number(struct vmpt_calls *e, const struct vmpt_space *space)
{
	const u64 hash = vmpt_mix64(space->cr3 ^ vmpt_mix64(space->owner.vmcs ^ space->exec));
	u32 id = vmpt_hash_find(&e->space_of, hash, k, same(&e->space[k], space));

	if (id != VMPT_HASH_NONE)
		return id;
	id = (u32)e->spaces;
	if (vmpt_grow(&e->space, e->spaces) || vmpt_hash_add(&e->space_of, hash, id)) {
		e->error = -VMPT_E_NOMEM;
		return NONE;
	}
	e->space[e->spaces++] = *space;
	return id;
}

u32 vmpt_calls_space_of(struct vmpt_calls *e, struct feed *f, u32 space)
{
	struct vmpt_space s;

	if (space == NONE)
		return NONE;
	while (f->spaces <= space) {
		if (vmpt_reserve(&f->space, &f->space_room, f->spaces + 1)) {
			e->error = -VMPT_E_NOMEM;
			return NONE;
		}
		vmpt_flow_space(f->flow, (u32)f->spaces, &s, NULL);
		f->space[f->spaces] = space_number(e, &s);
		if (f->space[f->spaces] == NONE)
			return NONE;
		f->spaces++;
	}
	return f->space[space];
}

/* ---- blocks ---- */

static bool decode_last(struct feed *f, u32 id, const struct vmpt_flow_block *b, u8 exec,
			ZydisDecodedInstruction *insn)
{
	u8 bytes[VMPT_PAGE + ZYDIS_MAX_INSTRUCTION_LENGTH];
	int size = vmpt_flow_code(f->flow, id, bytes, sizeof(bytes));
	u64 at = b->end_ip - b->ip;
	ZydisDecoder decoder;

	if (size < 0 || at >= (u64)size)
		return false;
	ZydisDecoderInit(&decoder,
			 exec == 64   ? ZYDIS_MACHINE_MODE_LONG_64
			 : exec == 32 ? ZYDIS_MACHINE_MODE_LONG_COMPAT_32
				      : ZYDIS_MACHINE_MODE_LONG_COMPAT_16,
			 exec == 64   ? ZYDIS_STACK_WIDTH_64
			 : exec == 32 ? ZYDIS_STACK_WIDTH_32
				      : ZYDIS_STACK_WIDTH_16);
	return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes + at,
							  (ZyanUSize)((u64)size - at), insn));
}

/* What a far branch does to the stack (SDM 3 33.4.2.3, "far transfer"). */
static enum how far_branch(struct feed *f, u32 id, const struct vmpt_flow_block *b, u8 exec)
{
	ZydisDecodedInstruction insn;

	if (!decode_last(f, id, b, exec, &insn))
		return HOW_JMP;
	switch (insn.mnemonic) {
	case ZYDIS_MNEMONIC_SYSCALL:
	case ZYDIS_MNEMONIC_SYSENTER:
	case ZYDIS_MNEMONIC_INT:
	case ZYDIS_MNEMONIC_INT1:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_INTO:
		return HOW_ENTRY;
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_SYSEXIT:
	case ZYDIS_MNEMONIC_UIRET:
	case ZYDIS_MNEMONIC_RSM:
		return HOW_EXIT;
	case ZYDIS_MNEMONIC_CALL:
		return HOW_CALL;
	case ZYDIS_MNEMONIC_RET:
		return HOW_RET;
	case ZYDIS_MNEMONIC_JMP:
		return HOW_JMP;
	default:
		return HOW_VMX;
	}
}

static enum how branch_of(struct feed *f, u32 id, const struct vmpt_flow_block *b, u8 exec)
{
	switch (b->end) {
	case VMPT_FLOW_CALL:
	case VMPT_FLOW_CALL_IND:
		return b->end == VMPT_FLOW_CALL && b->target == b->next ? HOW_NEXT : HOW_CALL;
	case VMPT_FLOW_JMP_IND:
		return HOW_JMP;
	case VMPT_FLOW_RET:
		return HOW_RET;
	case VMPT_FLOW_FAR:
		return far_branch(f, id, b, exec);
	default:
		return HOW_NEXT;
	}
}

void vmpt_calls_code_at(struct vmpt_calls *e, u32 space, u64 ip, struct code *code)
{
	struct vmpt_function fn = { 0 };

	*code = (struct code){ .ip = ip, .space = space };
	if (e->options.function &&
	    e->options.function(e->options.opaque, &e->space[space], ip, &fn)) {
		code->function = fn.start;
		code->role = fn.role;
	}
}

u64 vmpt_calls_soft_int(const struct vmpt_calls *e, const struct feed *f, u32 space, u64 ip)
{
	const unsigned int at = ip % VMPT_PAGE;
	struct vmpt_space in;
	struct vmpt_page page;

	if (!e->code || space == NONE)
		return 0;
	in = e->space[space];
	in.tsc = f->tsc == VMPT_TIME_NONE ? 0 : f->tsc;
	if (vmpt_code_page(e->code, &in, ip - at, 0, &page) != 1 || !vmpt_page_knows(&page, at))
		return 0;
	switch (page.bytes[at]) {
	case 0xcd:
		return 2;
	case 0xcc:
	case 0xf1:
		return 1;
	case 0xce:
		return in.exec == 64 ? 0 : 1;
	default:
		return 0;
	}
}

static u32 zone_number(struct vmpt_calls *e, const struct code *code)
{
	const u64 hash = vmpt_mix64(code->function ^ vmpt_mix64(code->space));
	u32 id = vmpt_hash_find(&e->zone_of, hash, k,
				e->zone[k].function == code->function &&
					e->zone[k].space == code->space &&
					e->zone[k].role == code->role);

	if (id != VMPT_HASH_NONE)
		return id;
	if (!e->zones && !vmpt_grow(&e->zone, e->zones))
		e->zone[e->zones++] = (struct zone){ .space = NONE };
	id = (u32)e->zones;
	if (!id || vmpt_grow(&e->zone, e->zones) || vmpt_hash_add(&e->zone_of, hash, id)) {
		e->error = -VMPT_E_NOMEM;
		return 0;
	}
	e->zone[e->zones++] = (struct zone){ code->function, code->space, code->role };
	return id;
}

int vmpt_calls_blocks(struct vmpt_calls *e, struct feed *f)
{
	const size_t n = vmpt_flow_blocks(f->flow);

	if (n <= f->block_room)
		return 0;
	if (vmpt_reserve_zeroed(&f->block, &f->block_room, n) ||
	    vmpt_reserve(&f->place, &f->place_room, n))
		e->error = -VMPT_E_NOMEM;
	return e->error;
}

int vmpt_calls_new_block(struct vmpt_calls *e, struct feed *f, u32 id)
{
	struct vmpt_flow_block b;
	struct code code;
	u32 space;

	vmpt_flow_block(f->flow, id, &b);
	space = vmpt_calls_space_of(e, f, b.space);
	if (space == NONE)
		return e->error;
	vmpt_calls_code_at(e, space, b.ip, &code);
	f->place[id] = (struct place){ b.ip, b.next };
	f->block[id] = (struct block){
		.zone = zone_number(e, &code),
		.insns = b.instructions,
		.how = (u8)branch_of(f, id, &b, e->space[space].exec),
	};
	return e->error;
}
