// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Random code: functions with jumps, loops and calls of each other, and kernel instructions. */
#include <check.h>

#include "tests/programs/code.h"

#define PREFIXES 5u
#define CS	 0x2e /* no effect without a memory operand; in 64-bit code never */

/* The frequency of a kind, relative to the sum of all. */
struct weight {
	u8 kind;
	unsigned int user, kernel, spread; /* spread: up to this much more in some programs */
};

static const struct weight weights[] = {
	{ TG_NOP, 30, 30, 30 }, { TG_JCC, 12, 12, 20 },	  { TG_LOOP, 8, 8, 10 },
	{ TG_JMP, 3, 3, 5 },	{ TG_CALL, 5, 5, 15 },	  { TG_ICALL, 3, 3, 8 },
	{ TG_IJMP, 2, 2, 6 },	{ TG_RET, 5, 5, 12 },	  { TG_PUSH, 1, 1, 4 },
	{ TG_POP, 1, 1, 4 },	{ TG_SYSCALL, 1, 0, 2 },  { TG_INT, 1, 1, 2 },
	{ TG_IRET, 0, 2, 2 },	{ TG_SYSRET, 0, 2, 2 },	  { TG_MOV_CR3, 0, 1, 2 },
	{ TG_WRMSR, 0, 1, 1 },	{ TG_PTWRITE4, 1, 1, 2 }, { TG_PTWRITE8, 1, 1, 2 },
	{ TG_FAR, 0, 1, 2 },
};

struct mix {
	unsigned int weight[VMPT_ARRAY_SIZE(weights)], sum;
};

static void mix_make(struct mix *mix, struct test_rng *rng, bool kernel, bool long_mode)
{
	size_t i;

	mix->sum = 0;
	for (i = 0; i < VMPT_ARRAY_SIZE(weights); i++) {
		const struct weight *w = &weights[i];
		unsigned int n = kernel ? w->kernel : w->user;

		if (n && once_in(rng, 3))
			n += (unsigned int)below(rng, w->spread + 1);
		if (!long_mode && (w->kind == TG_SYSCALL || w->kind == TG_PTWRITE8))
			n = 0;
		mix->weight[i] = n;
		mix->sum += n;
	}
}

static u8 mix_draw(const struct mix *mix, struct test_rng *rng)
{
	u64 n = below(rng, mix->sum);
	size_t i;

	for (i = 0; n >= mix->weight[i]; i++)
		n -= mix->weight[i];
	return weights[i].kind;
}

/*
 * Start and end of a function: see program_generate(); execution never passes its end.
 * A conditional branch follows MOV CR3: libipt attributes a TIP.PGD after a PIP to the MOV CR3,
 * whatever caused it.
 */
static u8 kind_at(const struct mix *mix, struct test_rng *rng, unsigned int i, unsigned int n,
		  u8 before)
{
	static const u8 last[] = { TG_RET, TG_RET, TG_RET, TG_IJMP };

	u8 kind;

	if (!i || before == TG_MOV_CR3)
		return TG_LOOP;
	if (i == n - 1)
		return last[below(rng, VMPT_ARRAY_SIZE(last))];
	kind = mix_draw(mix, rng);
	return kind == TG_MOV_CR3 && i == n - 2 ? TG_NOP : kind;
}

static u8 prefixes_for(unsigned int kind, struct test_rng *rng)
{
	bool far = kind == TG_SYSCALL || kind == TG_SYSRET || kind == TG_INT || kind == TG_IRET ||
		   kind == TG_FAR;

	return far && once_in(rng, 2) ? (u8)below(rng, PREFIXES + 1) : 0;
}

/* Kinds and addresses of instructions; their targets are set later. */
static void lay_out(struct program_region *r, struct test_rng *rng, bool kernel, bool prefixes)
{
	unsigned int f, i, n;
	struct mix mix;
	u8 buf[16];

	mix_make(&mix, rng, kernel, r->mode == 64);
	memset(r->at, 0xff, sizeof(r->at));
	r->functions = 2 + (unsigned int)below(rng, PROGRAM_FUNCTIONS - 1);
	r->insns = 0;
	r->size = 0;
	for (f = 0; f < r->functions; f++) {
		n = 3 + (unsigned int)below(rng, PROGRAM_INSNS / r->functions - 3);
		r->entry[f] = (u16)r->insns;
		for (i = 0; i < n; i++) {
			struct program_insn *insn = &r->insn[r->insns];

			insn->kind = kind_at(&mix, rng, i, n, i ? insn[-1].kind : 0);
			insn->ip = r->base + r->size;
			insn->prefixes = prefixes ? prefixes_for(insn->kind, rng) : 0;
			insn->len = insn->prefixes;
			insn->len +=
				(u8)tg_x86_encode(buf, insn->kind, r->mode, insn->ip, insn->ip);
			r->at[r->size] = (u16)r->insns++;
			r->size += insn->len;
		}
	}
}

static unsigned int function_of(const struct program_region *r, unsigned int i)
{
	unsigned int f = r->functions;

	while (r->entry[--f] > i)
		;
	return f;
}

static u64 target_for(const struct program_region *r, struct test_rng *rng, unsigned int i)
{
	const struct program_insn *insn = &r->insn[i];
	unsigned int f = function_of(r, i), first = r->entry[f],
		     end = f + 1 < r->functions ? r->entry[f + 1] : r->insns, to;
	u64 next = insn->ip + insn->len;

	switch (insn->kind) {
	case TG_JCC: /* forward, a byte's displacement */
		to = i + 1 + (unsigned int)below(rng, 8);
		to = to < end ? to : end - 1;
		return r->insn[to].ip;
	case TG_LOOP:
		return r->insn[first + below(rng, end - first)].ip;
	case TG_JMP: /* forward, to another function's entry only */
		if (f + 1 < r->functions && once_in(rng, 3))
			return r->insn[r->entry[f + 1 + below(rng, r->functions - f - 1)]].ip;
		return r->insn[i + 1 + below(rng, end - i - 1)].ip;
	case TG_CALL:
		if (once_in(rng, 8))
			return next;
		return r->insn[r->entry[below(rng, r->functions)]].ip;
	default:
		return next;
	}
}

static void encode(struct program_region *r, struct test_rng *rng)
{
	unsigned int i;

	for (i = 0; i < r->insns; i++) {
		struct program_insn *insn = &r->insn[i];
		u8 *code = r->code + (insn->ip - r->base);

		insn->target = target_for(r, rng, i);
		memset(code, CS, insn->prefixes);
		tg_x86_encode(code + insn->prefixes, insn->kind, r->mode, insn->ip + insn->prefixes,
			      insn->target);
	}
}

void program_generate(struct program *program, struct test_rng *rng)
{
	static const u64 base[PROGRAM_REGIONS] = {
		[PROGRAM_MAIN] = 0x555555000000,
		[PROGRAM_LIBRARY] = 0x7f0000000000,
		[PROGRAM_OLD] = 0x400000,
		[PROGRAM_KERNEL] = 0xffffffff81000000,
	};
	unsigned int i;

	for (i = 0; i < PROGRAM_REGIONS; i++) {
		struct program_region *r = &program->region[i];

		/* Some straddle a 64-KiB or 4-GiB boundary, where compression changes. */
		r->base = base[i] +
			  (once_in(rng, 3) ? 0xffff0 - below(rng, 512) : below(rng, 0x100000));
		r->mode = i == PROGRAM_OLD ? 32 : 64;
		lay_out(r, rng, i == PROGRAM_KERNEL, program->prefixes);
		encode(r, rng);
	}
}

const struct program_region *program_region_at(const struct program *program, u64 ip)
{
	unsigned int i;

	for (i = 0; i < PROGRAM_REGIONS; i++)
		if (ip - program->region[i].base < program->region[i].size)
			return &program->region[i];
	return NULL;
}
