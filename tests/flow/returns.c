// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "tests/flow/returns.h"

/* A jump reaches nearly 2 GB. */
#define REACH 0x7fff0000

/* ---- stacks ---- */

static void push(struct returns_stack *s, u64 ip)
{
	s->top = (s->top + 1) % RETURNS_DEPTH;
	s->ip[s->top] = ip;
	s->depth += s->depth < RETURNS_DEPTH;
}

static bool pop(struct returns_stack *s, u64 *ip)
{
	if (!s->depth)
		return false;
	*ip = s->ip[s->top];
	s->top = (s->top + RETURNS_DEPTH - 1) % RETURNS_DEPTH;
	s->depth--;
	return true;
}

void returns_init(struct returns *r)
{
	*r = (struct returns){ 0 };
}

void returns_forget(struct returns *r)
{
	r->manual.depth = 0;
	r->n_taken = 0;
}

/* ---- CALL and RET ---- */

static bool is_prefix(const struct pt_insn *insn, u8 byte)
{
	if (insn->mode == ptem_64bit && (byte & 0xf0) == 0x40)
		return true;
	return (byte >= 0x64 && byte <= 0x67) || (byte & 0xe7) == 0x26 || byte == 0xf2 ||
	       byte == 0xf3;
}

/* A direct CALL to the next instruction: it has no RET. */
static bool is_zero_length(const struct pt_insn *insn)
{
	unsigned int i = 0;

	while (i < insn->size && is_prefix(insn, insn->raw[i]))
		i++;
	if (i == insn->size || insn->raw[i] != 0xe8)
		return false;
	while (++i < insn->size)
		if (insn->raw[i])
			return false;
	return true;
}

void returns_call(struct returns *r, const struct pt_insn *insn)
{
	if (is_zero_length(insn))
		return;
	push(&r->manual, insn->ip + insn->size);
	push(&r->libipt, insn->ip + insn->size);
}

/* Drop the oldest. */
static void note_taken(struct returns *r)
{
	if (r->n_taken == RETURNS_TAKEN)
		memmove(r->taken, r->taken + 1, --r->n_taken * sizeof(r->taken[0]));
	r->taken[r->n_taken].ip = r->to;
	r->taken[r->n_taken++].level = r->manual.depth;
}

bool returns_ret(struct returns *r, const struct pt_insn *insn, bool compressed)
{
	r->called = pop(&r->manual, &r->to);
	if (!compressed) {
		if (r->called)
			note_taken(r);
		return true;
	}
	/* libipt has at least as many addresses: it pops none that is not popped here. */
	r->leads = pop(&r->libipt, &r->at) && r->called && r->at != r->to;
	/* In 16-bit mode with an operand-size prefix. */
	r->jump = insn->mode == ptem_16bit ? 6 : 5;
	return r->called;
}

/* ---- other owners' CALLs and RETs ---- */

/* Others' RETs popped the addresses above @to. */
static bool drop_to(struct returns *r, u64 to)
{
	struct returns_stack s = r->manual;
	u64 ip;

	while (pop(&s, &ip)) {
		if (ip != to)
			continue;
		r->manual = s;
		return true;
	}
	return false;
}

/* RETs returned to addresses of others' CALLs: @to and those below it were popped wrongly. */
static bool put_back(struct returns *r, u64 to)
{
	unsigned int n = r->n_taken, level = r->manual.depth + r->called;

	/* Those popped one after the other, down to here. */
	while (n && r->taken[n - 1].level == level) {
		if (r->taken[--n].ip == to)
			break;
		level++;
	}
	if (n == r->n_taken || r->taken[n].ip != to)
		return false;
	if (r->called)
		push(&r->manual, r->to);
	while (r->n_taken - 1 > n)
		push(&r->manual, r->taken[--r->n_taken].ip);
	r->n_taken = n;
	return true;
}

bool returns_shared(struct returns *r, u64 to)
{
	if (!drop_to(r, to) && !put_back(r, to))
		return false;
	r->to = to;
	r->leads = r->at != to;
	return true;
}

/* ---- the path of jumps ---- */

static s32 distance(const struct returns *r)
{
	s64 d = (s64)(r->to - r->at - r->jump);

	if (d > REACH)
		return REACH;
	return d < -REACH ? -REACH : (s32)d;
}

int returns_code(const struct returns *r, u64 ip, u8 *buf, size_t size)
{
	u8 jump[6] = { 0x66, 0xe9 };
	s32 d = distance(r);

	if (!r->leads || ip != r->at || size < r->jump)
		return 0;
	memcpy(jump + 2, &d, 4);
	memcpy(buf, jump + sizeof(jump) - r->jump, r->jump);
	return r->jump;
}

bool returns_step(struct returns *r, const struct pt_insn *insn)
{
	if (!r->leads || insn->ip != r->at)
		return false;
	r->at += (u64)(s64)(r->jump + distance(r));
	r->leads = r->at != r->to;
	return true;
}
