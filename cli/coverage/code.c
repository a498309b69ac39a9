// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * From blocks of the flow to basic blocks. Blocks of the flow overlap where code was entered in the
 * middle, end where a page does, and are left early by events. Here each instruction gets its exact
 * count: each run of a block begins at one instruction and either runs up to the end or is left at
 * another. A basic block is then what ran in a row, without the marks that events leave.
 */
#include <Zydis/Zydis.h>
#include <stdlib.h>
#include <string.h>

#include "cli/coverage/coverage.h"
#include "util/array.h"
#include "util/search.h"

/* A block of the flow is of one page, but for its last instruction. */
#define BLOCK_BYTES (VMPT_PAGE + 16)

/* ---- address spaces ---- */

static bool same_space(const struct coverage_space *a, const struct vmpt_space *b, const char *vm)
{
	if (a->id.exec != b->exec || a->id.no_cr3 != b->no_cr3 || a->id.cr3 != b->cr3)
		return false;
	return vm && a->vm ? !strcmp(a->vm, vm) : vmpt_owner_same(&a->id.owner, &b->owner);
}

u32 coverage_space(struct coverage *d, const struct vmpt_space *space)
{
	const char *vm = traced_vm(&d->t, &space->owner, NULL);
	u64 hash = vmpt_mix64(space->cr3 ^ space->exec ^ d->seed);
	u32 n = vmpt_hash_find(&d->space_of, hash, i, same_space(&d->space[i], space, vm));

	if (n != VMPT_HASH_NONE)
		return n;
	n = (u32)d->spaces;
	if (vmpt_grow(&d->space, d->spaces) || vmpt_hash_add(&d->space_of, hash, n))
		return COVERAGE_NONE;
	d->space[d->spaces++] = (struct coverage_space){ .id = *space, .vm = vm };
	return n;
}

/* ---- instructions ---- */

static u64 insn_hash(const struct coverage *d, u32 space, u64 ip)
{
	return vmpt_mix64(ip ^ (u64)space << 48 ^ space >> 16 ^ d->seed);
}

static u32 insn_find(const struct coverage *d, u32 space, u64 ip, u32 tail)
{
	return vmpt_hash_find(&d->insn_of, insn_hash(d, space, ip), i,
			      d->insn[i].ip == ip && d->insn[i].space == space &&
				      d->insn[i].tail == tail);
}

static u32 insn_new(struct coverage *d, u32 space, u64 ip, u32 tail, u8 size)
{
	u32 n = (u32)d->insns;

	if (n >= VMPT_HASH_ENTRIES || vmpt_grow(&d->insn, d->insns) ||
	    vmpt_hash_add(&d->insn_of, insn_hash(d, space, ip), n))
		return COVERAGE_NONE;
	d->insn[d->insns++] = (struct coverage_insn){
		.ip = ip,
		.space = space,
		.tail = tail,
		.next = COVERAGE_NONE,
		.size = size,
	};
	return n;
}

static ZyanU8 size_at(u8 exec, const u8 *bytes, size_t n)
{
	ZydisDecodedInstruction insn;
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder,
			 exec == 64   ? ZYDIS_MACHINE_MODE_LONG_64
			 : exec == 32 ? ZYDIS_MACHINE_MODE_LONG_COMPAT_32
				      : ZYDIS_MACHINE_MODE_LONG_COMPAT_16,
			 exec == 64   ? ZYDIS_STACK_WIDTH_64
			 : exec == 32 ? ZYDIS_STACK_WIDTH_32
				      : ZYDIS_STACK_WIDTH_16);
	ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, n, &insn)))
		return 0;
	return insn.length;
}

/*
 * The chain of the @size bytes of code at @ip: instructions that are there already, with the same
 * code up to the end, end it. Its first one, or COVERAGE_NONE: no memory.
 */
static u32 chain(struct coverage *d, u32 space, u64 ip, const u8 *bytes, size_t size)
{
	const u8 exec = d->space[space].id.exec;
	const u64 mask = exec == 64 ? ~0ULL : 0xffffffff;
	u32 tail[BLOCK_BYTES + 1], first = COVERAGE_NONE, before = COVERAGE_NONE, n;
	size_t at;

	tail[size] = 0x811c9dc5;
	for (at = size; at--;)
		tail[at] = (tail[at + 1] ^ bytes[at]) * 0x01000193 + 1;
	for (at = 0; at < size; at += d->insn[n].size) {
		bool known;

		n = insn_find(d, space, (ip + at) & mask, tail[at]);
		known = n != VMPT_HASH_NONE;
		if (!known) {
			u8 length = size_at(exec, bytes + at, size - at);

			if (!length || length > size - at)
				length = (u8)(size - at < 15 ? size - at : 15);
			n = insn_new(d, space, (ip + at) & mask, tail[at], length);
			if (n == COVERAGE_NONE)
				return n;
		}
		if (before == COVERAGE_NONE)
			first = n;
		else {
			d->insn[before].next = n;
			d->insn[n].led = true;
		}
		before = n;
		if (known)
			break;
	}
	return first;
}

static void set_page_end(struct coverage *d, u32 first)
{
	while (d->insn[first].next != COVERAGE_NONE)
		first = d->insn[first].next;
	d->insn[first].page_end = true;
}

/* @count runs from @first were left after @n instructions. */
static void leave(struct coverage *d, u32 first, u32 n, u64 count)
{
	d->insn[first].starts += count;
	for (; n && first != COVERAGE_NONE; n--)
		first = d->insn[first].next;
	if (first != COVERAGE_NONE)
		d->insn[first].stops += count;
}

int coverage_add(struct coverage *d, struct vmpt_flow *flow, u32 id,
		 const struct vmpt_flow_block *block, u32 space, const struct coverage_runs *runs)
{
	u8 bytes[BLOCK_BYTES];
	int size = vmpt_flow_code(flow, id, bytes, sizeof(bytes));
	bool direct = block->end == VMPT_FLOW_COND || block->end == VMPT_FLOW_JMP ||
		      block->end == VMPT_FLOW_CALL;
	size_t i;
	u32 first;

	if (size <= 0)
		return size;
	first = chain(d, space, block->ip, bytes, (size_t)size);
	if (first == COVERAGE_NONE)
		return -VMPT_E_NOMEM;
	d->insn[first].starts += runs->whole;
	for (i = 0; i < runs->lefts; i++)
		leave(d, first, runs->left[i].instructions, runs->left[i].count);
	if (block->end == VMPT_FLOW_NEXT)
		set_page_end(d, first);
	if (!direct || !runs->whole)
		return 0;
	if (vmpt_grow(&d->target, d->targets))
		return -VMPT_E_NOMEM;
	d->target[d->targets][0] = space;
	d->target[d->targets++][1] = block->target;
	return 0;
}

/* ---- edges ---- */

int coverage_add_edge(struct coverage *d, const struct coverage_edge *edge)
{
	u64 hash = vmpt_mix64(vmpt_mix64(edge->from ^ d->seed) ^ edge->to ^ (u64)edge->space << 32);
	u32 n = vmpt_hash_find(&d->edge_of, hash, i,
			       d->edge[i].from == edge->from && d->edge[i].to == edge->to &&
				       d->edge[i].space == edge->space);

	if (n != VMPT_HASH_NONE) {
		d->edge[n].count += edge->count;
		return 0;
	}
	n = (u32)d->edge_count;
	if (n >= VMPT_HASH_ENTRIES || vmpt_grow(&d->edge, d->edge_count) ||
	    vmpt_hash_add(&d->edge_of, hash, n))
		return -VMPT_E_NOMEM;
	d->edge[d->edge_count++] = *edge;
	return 0;
}

/* In the order of the spaces as they are shown: .space is an index into them. */
static int by_from(const void *x, const void *y)
{
	const struct coverage_edge *a = x, *b = y;

	if (a->space != b->space)
		return a->space < b->space ? -1 : 1;
	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return a->to < b->to ? -1 : a->to > b->to;
}

/* ---- basic blocks ---- */

static int by_ip(const void *x, const void *y, void *insns)
{
	const struct coverage_insn *a = (const struct coverage_insn *)insns + *(const u32 *)x;
	const struct coverage_insn *b = (const struct coverage_insn *)insns + *(const u32 *)y;

	if (a->space != b->space)
		return a->space < b->space ? -1 : 1;
	if (a->ip != b->ip)
		return a->ip < b->ip ? -1 : 1;
	return a->tail < b->tail ? -1 : a->tail > b->tail;
}

/* Where in @order the instructions at @ip begin. */
static size_t place(const struct coverage *d, u32 space, u64 ip)
{
	return vmpt_search(
		i, 0, d->insns,
		d->insn[d->order[i]].space < space ||
			(d->insn[d->order[i]].space == space && d->insn[d->order[i]].ip < ip));
}

static bool is_at(const struct coverage *d, size_t i, u32 space, u64 ip)
{
	return i < d->insns && d->insn[d->order[i]].space == space && d->insn[d->order[i]].ip == ip;
}

static void mark_targets(struct coverage *d)
{
	size_t i, k;

	for (i = 0; i < d->targets; i++) {
		u32 space = (u32)d->target[i][0];
		u64 ip = d->target[i][1];

		for (k = place(d, space, ip); is_at(d, k, space, ip); k++)
			d->insn[d->order[k]].target = true;
	}
}

/* A chain leads to higher addresses only. */
static void count_insns(struct coverage *d)
{
	size_t i;

	for (i = 0; i < d->insns; i++) {
		struct coverage_insn *n = &d->insn[d->order[i]];

		n->count += n->starts - n->stops;
		if (n->next != COVERAGE_NONE)
			d->insn[n->next].count += n->count;
	}
}

/*
 * What comes after @n in its basic block. Runs that were left here went on here later: more begin
 * here only where code is entered otherwise, too.
 */
static u32 goes_on(const struct coverage *d, const struct coverage_insn *n)
{
	u64 ip = n->ip + n->size, through = 0;
	u32 next = n->next;
	size_t i;

	if (n->page_end && next == COVERAGE_NONE) {
		i = place(d, n->space, ip);
		if (!is_at(d, i, n->space, ip) || is_at(d, i + 1, n->space, ip))
			return COVERAGE_NONE;
		next = d->order[i];
		through = n->count;
		if (d->insn[next].led)
			return COVERAGE_NONE;
	}
	if (next == COVERAGE_NONE || d->insn[next].taken || !d->insn[next].count ||
	    d->insn[next].target || d->insn[next].starts > d->insn[next].stops + through)
		return COVERAGE_NONE;
	return next;
}

static int add_block(struct coverage *d, u32 first)
{
	const struct coverage_insn *n = &d->insn[first];
	struct coverage_space *s = &d->space[n->space];
	struct coverage_block *b;
	u32 i;

	if (vmpt_grow(&d->block, d->block_count))
		return -VMPT_E_NOMEM;
	b = &d->block[d->block_count++];
	*b = (struct coverage_block){ .ip = n->ip, .count = n->count, .space = n->space };
	for (i = first; i != COVERAGE_NONE; i = goes_on(d, &d->insn[i])) {
		d->insn[i].taken = true;
		b->size += d->insn[i].size;
		b->instructions++;
		b->executed += d->insn[i].count;
	}
	s->blocks++;
	s->bytes += b->size;
	s->instructions += b->instructions;
	s->executed += b->executed;
	return 0;
}

int coverage_finish(struct coverage *d)
{
	size_t i;
	int ret = 0;

	if (d->edge_count)
		qsort(d->edge, d->edge_count, sizeof(*d->edge), by_from);
	d->order = malloc((d->insns + 1) * sizeof(*d->order));
	if (!d->order)
		return -VMPT_E_NOMEM;
	for (i = 0; i < d->insns; i++)
		d->order[i] = (u32)i;
	qsort_r(d->order, d->insns, sizeof(*d->order), by_ip, d->insn);
	count_insns(d);
	mark_targets(d);
	for (i = 0; i < d->insns && !ret; i++)
		if (!d->insn[d->order[i]].taken && d->insn[d->order[i]].count)
			ret = add_block(d, d->order[i]);
	return ret;
}

const struct coverage_block *coverage_block_at(const struct coverage *d, u32 space, u64 ip)
{
	size_t n = vmpt_search(i, 0, d->block_count,
			       d->block[i].space < space ||
				       (d->block[i].space == space && d->block[i].ip <= ip));
	const struct coverage_block *b = n ? &d->block[n - 1] : NULL;

	return b && b->space == space && ip - b->ip < b->size ? b : NULL;
}

u64 coverage_count(const struct coverage *d, u32 space, u64 start, u64 end)
{
	size_t i = place(d, space, start);
	u64 most = 0;

	for (; i < d->insns && d->insn[d->order[i]].space == space && d->insn[d->order[i]].ip < end;
	     i++)
		if (d->insn[d->order[i]].count > most)
			most = d->insn[d->order[i]].count;
	return most;
}
