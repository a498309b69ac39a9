// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Events of control flow: near branches (33.2.1), interrupts, exceptions and
 * other far transfers (Tables 33-55, 33-56, 33-59), MOV CR3.
 */
#include "tests/tracegen/internal.h"

/* Sorts of tg_target() */
enum { TO_NEAR, TO_FAR, TO_NOWHERE, TO_VECTOR };

static void branch(struct tracegen *g, struct tg_cpu *p, bool taken)
{
	struct tg_insn i = tg_fetch(g, p, TG_JCC);

	tg_retire(g, p, &i, taken ? i.target : i.ip + i.len);
	tg_tnt(g, p, taken);
	while (!taken && p->cur->ip < i.target && !g->failed)
		tg_execute(g, p, TG_NOP);
}

static void run(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	u64 count = tg_next_number(g, n, 1), i;

	for (i = 0; i < count && !g->failed; i++) {
		/* The positions of NOPs depend on the IP alone: a loop must meet the same. */
		u64 ip, nops;

		tg_settle(g, p);
		ip = p->cur->ip;
		for (nops = (ip * 0x9e3779b1u >> 20) & 1; nops && !g->failed; nops--)
			tg_execute(g, p, TG_NOP);
		branch(g, p, tg_random(g) % 3 != 0);
	}
}

static void straight(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	u64 count = tg_next_number(g, n, 1);

	for (; count && !g->failed; count--)
		tg_execute(g, p, TG_NOP);
}

static void cond(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	const char *s = tg_next(n);

	if (!s || s[strspn(s, "TN")]) {
		tg_fail(g, "cond needs a word of T and N");
		return;
	}
	for (; *s && !g->failed; s++)
		branch(g, p, *s == 'T');
}

/* The processor's and the program's stack after a CALL. */
static void push_call(struct tracegen *g, struct tg_cpu *p, const struct tg_insn *i)
{
	struct tg_ctx *c = p->cur;
	u64 ret_ip = i->ip + i->len;

	if (!tg_grow(g, &c->calls, c->call_count))
		return;
	c->calls[c->call_count++] = ret_ip;
	tg_count(p, c->owner)->calls++;
	if (tg_packet_en(g, p)) {
		if (p->stack_count == VMPT_ARRAY_SIZE(p->stack)) {
			memmove(p->stack, p->stack + 1, sizeof(p->stack) - sizeof(p->stack[0]));
			p->stack_count--;
		}
		p->stack[p->stack_count++] = (struct tg_ret_entry){
			.ret_ip = ret_ip,
			.call = p->call_number,
			.ip = i->ip,
			.offset = p->out.size,
			.owner = c->owner,
		};
	}
	p->call_number++;
}

static void call(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	struct tg_insn i = tg_fetch(g, p, TG_CALL);

	(void)n;
	push_call(g, p, &i);
	tg_retire(g, p, &i, i.target);
}

static void indirect(struct tracegen *g, struct tg_cpu *p, unsigned int kind)
{
	struct tg_insn i = tg_fetch(g, p, kind);
	u64 to = tg_target(g, p->cur, i.ip, TO_NEAR, p->cur->mode);

	if (kind == TG_ICALL)
		push_call(g, p, &i);
	tg_retire(g, p, &i, to);
	if (tg_packet_en(g, p))
		tg_emit_ip(g, p, VMPT_PT_TIP, to);
}

static void icall(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	(void)n;
	indirect(g, p, TG_ICALL);
}

static void ijmp(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	(void)n;
	indirect(g, p, TG_IJMP);
}

static void jmp(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	struct tg_insn i = tg_fetch(g, p, TG_JMP);

	(void)n;
	tg_retire(g, p, &i, i.target);
}

static void compressed(struct tracegen *g, struct tg_cpu *p, const struct tg_insn *i, u64 to,
		       const struct tg_ret_entry *e)
{
	struct tracegen_stream *s = &p->out;

	if (!p->overflow && tg_grow(g, &s->rets, s->ret_count)) {
		s->rets[s->ret_count++] = (struct tracegen_ret){
			.ip = i->ip,
			.target = to,
			.owner = p->cur->owner,
			.call = e->call,
			.call_ip = e->ip,
			.call_offset = e->offset,
			.call_owner = e->owner,
			.bit = (u8)p->tnt_count,
		};
		p->tnt_rets++;
		tg_count(p, p->cur->owner)->compressed++;
	}
	tg_tnt(g, p, true);
}

static void ret(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	struct tg_insn i = tg_fetch(g, p, TG_RET);
	struct tg_ctx *c = p->cur;
	const struct tg_ret_entry *top = NULL;
	u64 to;

	(void)n;
	/* A RET to a caller from before the script goes to unused code space. */
	to = c->call_count ? c->calls[--c->call_count] : tg_target(g, c, i.ip, TO_NOWHERE, c->mode);
	tg_count(p, c->owner)->rets++;
	tg_retire(g, p, &i, to);
	if (!tg_packet_en(g, p))
		return;
	if (p->stack_count)
		top = &p->stack[--p->stack_count];
	if (g->set.retcomp && top && top->ret_ip == to)
		compressed(g, p, &i, to, top);
	else
		tg_emit_ip(g, p, VMPT_PT_TIP, to);
}

/* The program drops its return address: its stack and the processor's diverge. */
static void pop(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	(void)n;
	if (!p->cur->call_count) {
		tg_fail(g, "%s has no call to drop", p->cur->name);
		return;
	}
	tg_execute(g, p, TG_POP);
	p->cur->call_count--;
}

/* The program pushes an address; a RET will go there. */
static void push(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	struct tg_ctx *c = p->cur;
	u64 ip = tg_execute(g, p, TG_PUSH);

	(void)n;
	if (tg_grow(g, &c->calls, c->call_count))
		c->calls[c->call_count++] = tg_target(g, c, ip, TO_NEAR, c->mode);
}

/* ---- far transfers ---- */

/* mode=, cpl= and cr3= of an event, as the state after it. */
struct new_state {
	u64 mode, cpl, cr3;
};

static bool new_state(struct tracegen *g, struct tg_node *n, struct new_state *s)
{
	tg_key(g, n, "mode", &s->mode);
	tg_key(g, n, "cpl", &s->cpl);
	tg_key(g, n, "cr3", &s->cr3);
	return tg_mode_valid(g, s->mode, s->cpl);
}

static void transfer(struct tracegen *g, struct tg_cpu *p, struct tg_transfer *x,
		     const struct new_state *s, bool rflags_if, u64 to)
{
	struct tg_ctx *c = p->cur;

	x->context_after = tg_trigger_en(p) && tg_context_en(g, (unsigned int)s->cpl, s->cr3);
	tg_leave(g, p, x);
	c->mode = (u8)s->mode;
	c->cpl = (u8)s->cpl;
	c->cr3 = s->cr3;
	c->rflags_if = rflags_if;
	tg_arrive(g, p, x, to);
}

static bool push_frame(struct tracegen *g, struct tg_ctx *c, u64 ip)
{
	if (!tg_grow(g, &c->frames, c->frame_count))
		return false;
	c->frames[c->frame_count++] = (struct tg_frame){
		.ip = ip, .mode = c->mode, .cpl = c->cpl, .rflags_if = c->rflags_if
	};
	return true;
}

/* Through the IDT. @kind: of the instruction that did it, or TG_NONE. */
static void deliver(struct tracegen *g, struct tg_cpu *p, struct tg_node *n, unsigned int kind)
{
	struct tg_ctx *c = p->cur;
	struct new_state s = { .mode = c->mode, .cr3 = c->cr3 };
	struct tg_transfer x = { .async = true, .cfe_ip = true, .cfe = VMPT_CFE_INTR };
	struct tg_insn i;

	x.vector = tg_next_number(g, n, 0x20);
	if (x.vector > 255)
		tg_fail(g, "a vector is 0 to 255");
	if (x.vector == 14 && kind == TG_NONE) {
		x.evd[0].type = VMPT_EVD_PFA;
		x.evds = tg_key(g, n, "addr", &x.evd[0].payload);
	}
	if (!new_state(g, n, &s))
		return;
	tg_settle(g, p);
	x.fup_ip = c->ip;
	if (kind != TG_NONE) {
		i = tg_fetch(g, p, kind);
		x.fup_ip = i.ip;
		c->ip = i.ip + i.len;
	}
	if (push_frame(g, c, c->ip))
		transfer(
			g, p, &x, &s, false,
			tg_target(g, c, x.fup_ip, TO_VECTOR + (u32)x.vector, (unsigned int)s.mode));
}

static void interrupt(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	deliver(g, p, n, TG_NONE);
}

static void swint(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	deliver(g, p, n, TG_INT);
}

/* A far branch that is an instruction, to @to or to a new place. */
static void far_branch(struct tracegen *g, struct tg_cpu *p, unsigned int kind, int cfe,
		       const struct new_state *s, bool rflags_if, u64 to)
{
	struct tg_insn i = tg_fetch(g, p, kind);
	struct tg_transfer x = { .fup_ip = i.ip, .cfe_ip = true, .cfe = cfe };

	if (g->failed)
		return;
	if (!to)
		to = tg_target(g, p->cur, i.ip, TO_FAR, (unsigned int)s->mode);
	if (kind == TG_SYSCALL && !push_frame(g, p->cur, i.ip + i.len))
		return;
	tg_retire(g, p, &i, to);
	transfer(g, p, &x, s, rflags_if, to);
}

static void far_jump(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	struct tg_ctx *c = p->cur;
	struct new_state s = { .mode = c->mode, .cpl = c->cpl, .cr3 = c->cr3 };

	if (new_state(g, n, &s))
		far_branch(g, p, TG_FAR, 0, &s, c->rflags_if, 0);
}

static void mode(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	struct tg_ctx *c = p->cur;
	struct new_state s = { .mode = tg_next_number(g, n, 0), .cpl = c->cpl, .cr3 = c->cr3 };

	if (tg_mode_valid(g, s.mode, s.cpl))
		far_branch(g, p, TG_FAR, 0, &s, c->rflags_if, 0);
}

static void syscall_insn(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	struct tg_ctx *c = p->cur;
	struct new_state s = { .mode = c->mode, .cr3 = c->cr3 };

	(void)n;
	far_branch(g, p, TG_SYSCALL, 0, &s, false, 0);
}

static void return_far(struct tracegen *g, struct tg_cpu *p, unsigned int kind, int cfe)
{
	struct tg_ctx *c = p->cur;
	struct new_state s = { .cr3 = c->cr3 };
	struct tg_frame f;

	if (!c->frame_count) {
		tg_fail(g, "%s has nothing to return to", c->name);
		return;
	}
	f = c->frames[c->frame_count - 1];
	s.mode = f.mode;
	s.cpl = f.cpl;
	/* Before the frame goes: a loop's mark counts frames. */
	tg_settle(g, p);
	c->frame_count--;
	far_branch(g, p, kind, cfe, &s, f.rflags_if, f.ip);
}

static void iret(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	(void)n;
	return_far(g, p, TG_IRET, VMPT_CFE_IRET);
}

static void sysret(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	(void)n;
	return_far(g, p, TG_SYSRET, 0);
}

static void write_cr3(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	struct tg_transfer x = { .straight = true };
	u64 cr3 = tg_next_number(g, n, p->cur->cr3);
	struct tg_insn i = tg_fetch(g, p, TG_MOV_CR3);
	u64 next = i.ip + i.len;

	if (cr3 & ~0xfffffffffffffULL)
		tg_fail(g, "cr3 has 52 bits");
	if (g->failed)
		return;
	tg_retire(g, p, &i, next);
	x.context_after = tg_trigger_en(p) && tg_context_en(g, p->cur->cpl, cr3);
	tg_leave(g, p, &x);
	/* MOV CR3 sends a PIP even when the value is the old one (Table 33-55 case 14). */
	x.cr3_before = ~cr3;
	p->cur->cr3 = cr3;
	tg_arrive(g, p, &x, next);
}

bool tg_event_flow(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	static const struct tg_event table[] = {
		{ "run", run },
		{ "straight", straight },
		{ "cond", cond },
		{ "call", call },
		{ "icall", icall },
		{ "jmp", jmp },
		{ "ijmp", ijmp },
		{ "ret", ret },
		{ "pop", pop },
		{ "push", push },
		{ "interrupt", interrupt },
		{ "exception", interrupt },
		{ "swint", swint },
		{ "iret", iret },
		{ "far", far_jump },
		{ "mode", mode },
		{ "syscall", syscall_insn },
		{ "sysret", sysret },
		{ "write-cr3", write_cr3 },
		{ NULL, NULL },
	};

	return tg_event_run(table, g, p, n);
}
