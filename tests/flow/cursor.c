// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "tests/flow/cursor.h"

void cursor_init(struct cursor *c, struct truth_reader *reader)
{
	*c = (struct cursor){ .reader = reader };
}

const struct truth_item *cursor_peek(struct cursor *c)
{
	if (!c->peeked && !truth_reader_next(c->reader, &c->next))
		return NULL;
	c->peeked = true;
	return &c->next;
}

bool cursor_is_soft_int(const u8 *code, u8 length)
{
	return (length == 2 && code[0] == 0xcd) ||
	       (length == 1 && (code[0] == 0xcc || code[0] == 0xce || code[0] == 0xf1));
}

bool cursor_is_vmentry(const u8 *code, u8 length)
{
	return length == 3 && code[0] == 0x0f && code[1] == 0x01 &&
	       (code[2] == 0xc2 || code[2] == 0xc3);
}

bool cursor_is_wrmsr(const u8 *code, u8 length)
{
	return length == 2 && code[0] == 0x0f && code[1] == 0x30;
}

bool cursor_is_self_jump(const u8 *code, u8 length)
{
	static const u8 near32[] = { 0xe9, 0xfb, 0xff, 0xff, 0xff };

	return (length == 2 && code[0] == 0xeb && code[1] == 0xfe) ||
	       (length == 5 && memcmp(code, near32, 5) == 0);
}

/* Operand and address size, segments. */
static bool is_prefix(u8 byte)
{
	return (byte >= 0x64 && byte <= 0x67) || (byte & 0xe7) == 0x26;
}

/*
 * INS, OUTS, MOVS, CMPS, STOS, LODS, SCAS. The mode is not known: if the bytes before the last can
 * only be prefixes, the length shows that they are.
 */
bool cursor_is_rep(const u8 *code, u8 length)
{
	u8 op = code[length - 1];
	bool rep = false;
	u8 i;

	if (!((op >= 0x6c && op <= 0x6f) || (op >= 0xa4 && op <= 0xa7) ||
	      (op >= 0xaa && op <= 0xaf)))
		return false;
	for (i = 0; i < length - 1; i++) {
		bool rex = i == length - 2 && (code[i] & 0xf0) == 0x40;

		if (code[i] == 0xf2 || code[i] == 0xf3)
			rep = true;
		else if (!rex && !is_prefix(code[i]))
			return false;
	}
	return rep;
}

/* The last instruction of the part that retired. */
static const u8 *last_of(const struct cursor *c, u64 *ip, u8 *length)
{
	const struct truth_block *b = c->item.block;
	u32 n = c->insns, at = b->size, i;

	for (i = b->insns; i-- >= n;)
		at -= b->lengths[i];
	*ip = b->ip + at;
	*length = b->lengths[n - 1];
	return b->code + at;
}

/* An iteration that continues at the same IP, or is interrupted there, comes again later. */
static bool merge_rep(struct cursor *c)
{
	const struct truth_item *next;
	const u8 *code;
	u8 length;
	u64 ip;

	if (!c->insns)
		return true;
	code = last_of(c, &ip, &length);
	if (!cursor_is_rep(code, length))
		return true;
	next = cursor_peek(c);
	if (!next)
		return false;
	if ((next->kind == TRUTH_RUN_BLOCK && next->block->ip == ip) ||
	    ((next->kind == TRUTH_RUN_EVENT || next->kind == TRUTH_RUN_END) && next->from == ip)) {
		c->insns--;
		c->merged++;
	}
	return true;
}

/* ---- runs ---- */

bool cursor_take_run(struct cursor *c, struct cursor_run *run)
{
	if (!c->runs)
		return false;
	*run = c->run[c->first_run];
	c->first_run = (c->first_run + 1) % CURSOR_RUNS;
	c->runs--;
	return true;
}

/* Drop the oldest: begins and ends that are not taken need not be kept. */
static void note_run(struct cursor *c)
{
	struct cursor_run run = { .kind = c->item.kind, .ip = c->item.from }, old;

	if (c->runs == CURSOR_RUNS)
		cursor_take_run(c, &old);
	c->run[(c->first_run + c->runs++) % CURSOR_RUNS] = run;
	if (run.kind == TRUTH_RUN_END) {
		c->ended = run.ip;
		return;
	}
	c->begun++;
	/* Not where the last run ended: the next block's instructions in between were emulated. */
	if (c->ended && run.ip != c->ended && c->skips < CURSOR_RUNS) {
		c->skip[c->skips].ip = c->ended;
		c->skip[c->skips++].next = run.ip;
	}
	c->ended = 0;
}

void cursor_skip(struct cursor *c)
{
	while (cursor_in_block(c) && c->skipped < c->skips && c->skip[c->skipped].ip == c->ip) {
		u8 length = cursor_length(c);

		c->emulated += c->skip[c->skipped++].next == c->ip + length;
		c->at++;
		c->code += length;
		c->ip += length;
	}
}

/* ---- items ---- */

bool cursor_next(struct cursor *c)
{
	const struct truth_item *next = cursor_peek(c);

	if (!next)
		return false;
	if (c->item.kind == TRUTH_RUN_BLOCK)
		c->skips = 0;
	c->item = *next;
	c->peeked = false;
	c->at = 0;
	c->insns = 0;
	if (c->item.kind == TRUTH_RUN_BEGIN || c->item.kind == TRUTH_RUN_END)
		note_run(c);
	if (c->item.kind != TRUTH_RUN_BLOCK)
		return true;
	c->blocks++;
	c->insns = c->item.insns;
	c->ip = c->item.block->ip;
	c->code = 0;
	c->skipped = 0;
	if (!merge_rep(c))
		return false;
	if (c->skips)
		cursor_skip(c);
	return true;
}
