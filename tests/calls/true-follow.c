// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Follows the truths of all vCPUs: what each block's end did to the stack of its task.
 */
#include <stdio.h>

#include <Zydis/Zydis.h>

#include "tests/calls/true-follow.h"
#include "util/array.h"

#define NO_REGION  (~0u)
#define TASK_SHIFT 14 /* a kernel stack: 16 KiB, aligned */
/* What __switch_to_asm has on the stack at most where its code loads RSP, and one call more. */
#define SWITCH_FRAME 128u

/* What a block of the truth is; by serial. */
struct true_block {
	bool known, loads;
	u8 how;	 /* of the last instruction */
	u8 last; /* its length */
	const struct symbol *function;
};

/* ---- blocks ---- */

static bool loads_sp(const ZydisDecodedInstruction *i, const ZydisDecodedOperand *op)
{
	bool sp = op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		  (op[0].reg.value == ZYDIS_REGISTER_RSP || op[0].reg.value == ZYDIS_REGISTER_ESP);

	switch (i->mnemonic) {
	case ZYDIS_MNEMONIC_LEAVE:
		return true;
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_LEA:
	case ZYDIS_MNEMONIC_XCHG:
		return sp;
	default:
		return false;
	}
}

static u8 how_of(const ZydisDecodedInstruction *i)
{
	switch (i->mnemonic) {
	case ZYDIS_MNEMONIC_CALL:
		return TRUE_CALL;
	case ZYDIS_MNEMONIC_RET:
		return TRUE_RET;
	case ZYDIS_MNEMONIC_SYSCALL:
	case ZYDIS_MNEMONIC_SYSENTER:
		return TRUE_ENTRY;
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_SYSEXIT:
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
		return TRUE_EXIT;
	case ZYDIS_MNEMONIC_INT:
	case ZYDIS_MNEMONIC_INT1:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_INTO:
		return TRUE_INT;
	default:
		return i->meta.category == ZYDIS_CATEGORY_UNCOND_BR ? TRUE_JUMP : TRUE_NEXT;
	}
}

static void look_at(struct true_stacks *t, struct true_block *b, const struct truth_item *item)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	const struct truth_block *code = item->block;
	ZydisDecodedInstruction i;
	ZydisDecoder decoder;
	size_t at = 0;

	*b = (struct true_block){ .known = true, .function = symbols_find(t->symbols, code->ip) };
	if (item->flags & TRUTH_CS_L)
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	else if (item->flags & TRUTH_CS_D)
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32);
	else
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LEGACY_16, ZYDIS_STACK_WIDTH_16);
	for (u32 n = 0; n < code->insns; at += code->lengths[n++]) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code->code + at,
							 code->lengths[n], &i, operands)))
			continue;
		b->loads |= loads_sp(&i, operands);
		b->last = code->lengths[n];
		b->how = n + 1 == code->insns ? how_of(&i) : TRUE_NEXT;
		if (b->how == TRUE_CALL && i.raw.imm[0].is_relative && !i.raw.imm[0].value.s)
			b->how = TRUE_NEXT; /* for its own address */
	}
}

static const struct true_block *block_of(struct true_stacks *t, struct true_cpu *c)
{
	const struct truth_item *item = &c->cursor.item;
	struct true_block **blocks = &t->blocks[c->index];
	u64 serial = item->block->serial;

	if (vmpt_reserve_zeroed(blocks, &t->block_room[c->index], serial + 1)) {
		t->error = true;
		return NULL;
	}
	if (!(*blocks)[serial].known)
		look_at(t, &(*blocks)[serial], item);
	return &(*blocks)[serial];
}

/* ---- states ---- */

static void say(struct true_stacks *t, struct true_cpu *c)
{
	struct true_state s = {
		.pos = c->pos, .tsc = c->tsc, .task = c->task->id, .node = true_top(c->task)->node
	};
	struct true_state *last = c->states > c->head ? &c->state[c->states - 1] : NULL;

	if (last && last->task == s.task && last->node == s.node)
		return;
	if (last && last->pos == s.pos) {
		*last = s;
		return;
	}
	if (c->head > 4096 && c->head > c->states / 2) {
		memmove(c->state, c->state + c->head, (c->states - c->head) * sizeof(*c->state));
		c->states -= c->head;
		c->head = 0;
	}
	if (vmpt_reserve(&c->state, &c->room, c->states + 1)) {
		t->error = true;
		return;
	}
	c->state[c->states++] = s;
}

static void strange(struct true_stacks *t, const struct true_cpu *c, const char *what, u64 ip)
{
	/* A BIOS may switch stacks, too. */
	if (!t->user_tsc && !(ip >> 63))
		return;
	t->strange++;
	if (!t->show)
		return;
	t->show--;
	printf("vCPU %u: %s: %s at instruction %llu, RSP %llx, from %llx in %s, task %u, top %s "
	       "ret %llx sp %llx\n",
	       c->index, what, symbols_name(t->symbols, ip), (unsigned long long)c->pos,
	       (unsigned long long)c->last_sp, (unsigned long long)c->from,
	       c->function ? c->function->name : "-", c->task->id,
	       symbols_name(t->symbols, true_top(c->task)->start),
	       (unsigned long long)true_top(c->task)->ret,
	       (unsigned long long)true_top(c->task)->sp);
}

/* ---- switches ---- */

static bool step(struct true_stacks *t, struct true_cpu *c);

static u64 key_of(u64 sp)
{
	return (sp - 1) >> TASK_SHIFT;
}

static struct true_task *task_at(struct true_stacks *t, u64 sp)
{
	for (size_t i = t->tasks; i-- > 0;) {
		struct true_task *task = t->task[i];

		if (!task->dead && task->key == key_of(sp))
			return task;
	}
	return NULL;
}

/* RSP was loaded with @sp, that of another task. */
static bool switch_to(struct true_stacks *t, struct true_cpu *c, u64 sp)
{
	struct true_task *next;
	u64 saved;

	c->task->cpu = -1;
	c->task->key = key_of(c->last_sp);
	say(t, c);
	t->switches++;
	next = task_at(t, sp);
	while (next && next->cpu >= 0 && !t->cpu[next->cpu].ended) {
		t->waits++;
		if (!step(t, &t->cpu[next->cpu]))
			return false;
		next = task_at(t, sp);
	}
	saved = next ? true_top(next)->sp - sp : 0;
	/* The stack of one that has ended. */
	if (next && saved > SWITCH_FRAME) {
		next->dead = true;
		next = NULL;
	}
	if (!next) {
		t->fresh++;
		next = true_task_new(t);
		if (!next)
			return false;
		true_base(t, next, true, 0);
		next->key = key_of(sp);
		/* If it is left before a call. */
		next->frame[0].sp = sp;
	}
	next->cpu = (int)c->index;
	c->task = next;
	return true;
}

/* ---- what a block's end did ---- */

static void push_call(struct true_stacks *t, struct true_cpu *c, u64 ip, u64 sp,
		      const struct symbol *fn)
{
	const struct true_frame *top = true_top(c->task);
	struct true_frame f = { .sp = sp,
				.ret = c->from,
				.start = fn ? fn->start : ip,
				.now = fn ? fn->start : 0,
				.kind = VMPT_CALL_CALL,
				.kernel = ip >> 63,
				.region = true_region(c->task, sp) };

	/* They only fill the processor's stack of return addresses. */
	if (fn && fn->role == VMPT_ROLE_SWITCH && fn->start == top->now && ip != fn->start)
		return;
	t->calls++;
	f.thunk = fn && fn->role == VMPT_ROLE_THUNK;
	f.optional = fn && fn->start == top->now && ip != fn->start;
	true_push(t, c->task, &f);
}

static void returned(struct true_stacks *t, struct true_cpu *c, u64 ip, u64 sp)
{
	struct true_frame last = { 0 };
	unsigned int n = true_pop(c->task, sp, &last);

	t->returns++;
	if (n && last.ret == ip) {
		t->fit++;
		t->several += n > 1;
	} else if (!n && c->task->frames > 1 && true_top(c->task)->ret == ip) {
		/* error_entry() takes its return address along to another stack. */
		c->task->frames--;
		t->fit++;
	} else if (n && (last.optional || last.thunk)) {
		t->jumps++; /* a retpoline */
	} else if (!n && c->task->frames == 1) {
		t->bottom++;
	} else if (!n && true_top(c->task)->kind == VMPT_CALL_SIGNAL) {
		t->fit++;
	} else {
		t->elsewhere++;
		strange(t, c, n ? "a RET to elsewhere" : "a RET without a frame", ip);
	}
}

/* The kernel was left for a program. */
static void to_program(struct true_stacks *t, struct true_cpu *c, u64 ip, u64 sp)
{
	struct true_task *task = c->task;
	const u64 space = c->space;
	struct true_frame entry = { 0 }, last;
	size_t signals = 0;

	if (!t->user_tsc)
		t->user_tsc = c->tsc;
	while (task->frames > 1 && true_top(task)->kernel) {
		entry = *true_top(task);
		task->frames--;
	}
	task->regions = 0;
	if (task->frame[0].kernel || task->space != space) {
		t->execs++;
		task->space = space;
		true_base(t, task, false, 0);
		task->frame[0].start = ip;
		return;
	}
	while (task->frames > 1 && true_top(task)->sp < sp) {
		last = *true_top(task);
		signals += last.kind == VMPT_CALL_SIGNAL;
		task->frames--;
	}
	if (ip == entry.ret)
		return;
	if (signals) {
		t->sigreturns++;
	} else if (entry.ret + 2 - ip <= 4) { /* and SYSENTER's landing pad in the vdso */
		t->restarts++;
	} else if (sp < task->user_sp) {
		t->signals++;
		/* It lasts until the kernel is asked to end it: the handler's RET leads to code
		 * that does so. */
		true_push(t, task,
			  &(struct true_frame){ .sp = sp + 8,
						.ret = entry.ret,
						.start = ip,
						.kind = VMPT_CALL_SIGNAL,
						.region = NO_REGION });
	} else {
		strange(t, c, "a program goes on elsewhere", ip);
	}
}

static void exited(struct true_stacks *t, struct true_cpu *c, u64 ip, u64 sp)
{
	struct true_frame last = { 0 };

	if (c->kernel && !(ip >> 63)) {
		to_program(t, c, ip, sp);
	} else if (c->kernel) {
		/* Without an event it is a jump that makes the processor see changed code. */
		if (true_pop(c->task, sp, &last) && last.ret != ip)
			strange(t, c, "an IRET to elsewhere", ip);
	}
}

static void entered(struct true_stacks *t, struct true_cpu *c, u64 ip, u64 sp, u8 kind,
		    const struct symbol *fn)
{
	const bool kernel = ip >> 63, from_program = kernel && !c->kernel;
	struct true_frame f = { .sp = sp,
				.ret = c->from,
				.start = fn ? fn->start : ip,
				.now = fn ? fn->start : 0,
				.kind = kind,
				.kernel = kernel };

	f.region = from_program ? NO_REGION : true_region(c->task, sp);
	true_push(t, c->task, &f);
}

/* Execution is at @ip, with RSP @sp if that is known. */
static bool arrive(struct true_stacks *t, struct true_cpu *c, u64 ip, const struct truth_item *item,
		   const struct symbol *fn)
{
	const bool has_sp = item->has_sp;
	u64 sp = has_sp ? item->sp : c->last_sp;
	struct true_frame last;

	if (c->function && c->function->role == VMPT_ROLE_SWITCH && c->loads && has_sp &&
	    !switch_to(t, c, sp))
		return false;
	switch (c->how) {
	case TRUE_CALL:
		if (has_sp)
			true_pop(c->task, sp + 1, &last);
		push_call(t, c, ip, sp, fn);
		break;
	case TRUE_RET:
		returned(t, c, ip, sp);
		break;
	case TRUE_ENTRY:
		c->task->user_sp = sp;
		entered(t, c, ip, sp, VMPT_CALL_SYSTEM, fn);
		break;
	case TRUE_EXIT:
		exited(t, c, ip, sp);
		break;
	case TRUE_START:
		true_base(t, c->task, ip >> 63, fn ? fn->start : 0);
		break;
	default:
		if (has_sp)
			true_pop(c->task, sp, &last);
		break;
	}
	true_now(t, c->task, fn, ip);
	c->last_sp = sp;
	c->kernel = ip >> 63;
	c->loads = false;
	return !t->error;
}

/* ---- items ---- */

static bool take_event(struct true_stacks *t, struct true_cpu *c)
{
	const struct truth_item *item = &c->cursor.item;
	const struct symbol *fn = symbols_find(t->symbols, item->to);
	const bool software = c->how == TRUE_INT;
	const struct truth_item *next;

	if (!software) {
		if (!arrive(t, c, item->from, item, symbols_find(t->symbols, item->from)))
			return false;
		c->from = item->from;
	}
	if (!c->kernel)
		c->task->user_sp = c->last_sp;
	next = cursor_peek(&c->cursor);
	if (!next)
		return false;
	entered(t, c, item->to, next->has_sp ? next->sp : c->last_sp,
		software ? VMPT_CALL_SYSTEM : VMPT_CALL_INTERRUPT, fn);
	c->how = TRUE_NEXT;
	c->kernel = item->to >> 63;
	c->function = NULL;
	say(t, c);
	return true;
}

/* Instructions that a trace has: neither INT n, nor a JMP to itself. */
static void count(struct true_cpu *c)
{
	struct cursor *at = &c->cursor;

	for (; cursor_in_block(at); cursor_pass(at))
		c->pos += !cursor_is_soft_int(cursor_code(at), cursor_length(at)) &&
			  !cursor_is_self_jump(cursor_code(at), cursor_length(at));
}

static bool take_block(struct true_stacks *t, struct true_cpu *c)
{
	const struct truth_item *item = &c->cursor.item;
	const struct true_block *b = block_of(t, c);

	if (!b)
		return false;
	c->space = item->cr3 >> 13;
	if ((c->how || item->has_sp || b->function != c->function) &&
	    !arrive(t, c, item->block->ip, item, b->function))
		return false;
	say(t, c);
	c->how = item->insns == item->block->insns ? b->how : (u8)TRUE_NEXT;
	c->loads |= b->loads;
	c->function = b->function;
	c->from = item->block->ip + item->block->size;
	count(c);
	return true;
}

/* One item of @c. */
static bool step(struct true_stacks *t, struct true_cpu *c)
{
	if (!cursor_next(&c->cursor)) {
		fprintf(stderr, "vCPU %u: %s\n", c->index, c->reader.error);
		return false;
	}
	c->tsc = c->reader.now.tsc;
	switch (c->cursor.item.kind) {
	case TRUTH_END_OF_FILE:
		c->ended = true;
		return true;
	case TRUTH_RUN_BLOCK:
		return take_block(t, c) && !t->error;
	case TRUTH_RUN_EVENT:
		return take_event(t, c) && !t->error;
	default:
		return true;
	}
}

bool true_until(struct true_stacks *t, unsigned int cpu, u64 pos)
{
	struct true_cpu *c = &t->cpu[cpu];

	while (!c->ended && c->pos <= pos) {
		struct true_cpu *first = c;

		for (unsigned int i = 0; i < t->cpus; i++)
			if (!t->cpu[i].ended && t->cpu[i].tsc < first->tsc)
				first = &t->cpu[i];
		if (!step(t, first))
			return false;
	}
	return true;
}

bool true_open(struct true_stacks *t, const struct symbols *symbols, char **paths,
	       unsigned int count)
{
	*t = (struct true_stacks){ .symbols = symbols, .cpus = count };
	/* Node 0. */
	if (count > TRUE_CPUS || vmpt_grow(&t->node, t->nodes))
		return false;
	t->node[t->nodes++] = (struct true_node){ .kind = VMPT_CALL_ROOT };
	for (unsigned int i = 0; i < count; i++) {
		struct true_cpu *c = &t->cpu[i];

		c->index = i;
		if (!truth_reader_open(&c->reader, paths[i])) {
			fprintf(stderr, "%s: %s\n", paths[i], c->reader.error);
			return false;
		}
		cursor_init(&c->cursor, &c->reader);
		c->task = true_task_new(t);
		if (!c->task)
			return false;
		c->task->cpu = (int)i;
		c->how = TRUE_START;
	}
	return true;
}

void true_close(struct true_stacks *t)
{
	for (unsigned int i = 0; i < t->cpus; i++) {
		truth_reader_close(&t->cpu[i].reader);
		free(t->cpu[i].state);
		free(t->blocks[i]);
	}
	for (size_t i = 0; i < t->tasks; i++) {
		free(t->task[i]->frame);
		free(t->task[i]);
	}
	free(t->task);
	free(t->node);
	vmpt_hash_free(&t->node_of);
}
