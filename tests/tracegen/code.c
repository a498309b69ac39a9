// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Code that is made during execution: an event puts its instruction at the current IP if there is
 * none. Only a loop returns to it, with the same events; so code and trace always match. Code is in
 * chunks; a chunk's last instruction is a direct jump to the next.
 */
#include <stdlib.h>

#include "tests/tracegen/internal.h"

/* Space to keep free at a chunk's end: the longest instruction and a link. */
#define ROOM 16u

static unsigned int mode_index(unsigned int mode)
{
	return mode == 64 ? 0 : mode == 32 ? 1 : 2;
}

/* A region that begins with the page of @ip, the first IP executed in it; 0: @base. */
static struct tg_region *region_new(struct tracegen *g, struct tg_ctx *c, unsigned int mode,
				    u64 base, u64 ip)
{
	struct tg_region *r = calloc(1, sizeof(*r));

	if (!r) {
		tg_fail(g, "out of memory");
		return NULL;
	}
	r->base = base;
	r->limit = TG_REGION_SIZE;
	if (mode == 16)
		r->limit = r->base < 0x10000 ? 0x10000 - r->base : 0;
	if (ip)
		r->next = ((ip - r->base) / TG_CHUNK + 1) * TG_CHUNK;
	c->region[mode_index(mode)] = r;
	return r;
}

struct tg_region *tg_region_of(struct tracegen *g, struct tg_ctx *c, unsigned int mode)
{
	/* Base of code in a mode in which the context did not start. */
	static const u64 base[] = { 0x7f0000400000, 0x40000000, 0x1000 };
	unsigned int i = mode_index(mode);

	if (c->region[i])
		return c->region[i];
	/* The context's first region begins where it starts to execute. */
	if (!c->region[0] && !c->region[1] && !c->region[2] && mode == c->mode)
		return region_new(g, c, mode, c->ip & ~(u64)(TG_PAGE - 1), c->ip);
	return region_new(g, c, mode, base[i], 0);
}

void tg_region_at(struct tracegen *g, struct tg_ctx *c, unsigned int mode, u64 ip)
{
	u64 base = ip & ~(u64)(TG_PAGE - 1);
	size_t i;

	if (c->region[mode_index(mode)])
		return;
	for (i = 0; i < 3; i++)
		if (c->region[i] &&
		    base - c->region[i]->base + TG_REGION_SIZE < 2 * (u64)TG_REGION_SIZE) {
			tg_fail(g, "%s: 0x%llx is among its code in another mode", c->name,
				(unsigned long long)ip);
			return;
		}
	region_new(g, c, mode, base, ip);
}

void tg_code_free(struct tg_ctx *c)
{
	size_t i, j;

	for (i = 0; i < 3; i++) {
		if (!c->region[i])
			continue;
		for (j = 0; j < VMPT_ARRAY_SIZE(c->region[i]->pages); j++)
			free(c->region[i]->pages[j]);
		free(c->region[i]);
	}
	free(c->targets);
	vmpt_hash_free(&c->by_ip);
	free(c->calls);
	free(c->frames);
}

static struct tg_page *page_of(struct tracegen *g, struct tg_ctx *c, u64 ip, unsigned int *at)
{
	struct tg_region *r = tg_region_of(g, c, c->mode);
	struct tg_page **page;

	if (!r)
		return NULL;
	if (ip < r->base || ip - r->base >= r->limit) {
		tg_fail(g, "%s: no code can be at 0x%llx in %u-bit mode", c->name,
			(unsigned long long)ip, c->mode);
		return NULL;
	}
	page = &r->pages[(ip - r->base) / TG_PAGE];
	if (!*page) {
		*page = calloc(1, sizeof(**page));
		if (!*page) {
			tg_fail(g, "out of memory");
			return NULL;
		}
		memset((*page)->bytes, 0xcc, TG_PAGE);
	}
	*at = (unsigned int)(ip & (TG_PAGE - 1));
	return *page;
}

u64 tg_chunk(struct tracegen *g, struct tg_ctx *c, unsigned int mode)
{
	struct tg_region *r = tg_region_of(g, c, mode);
	u64 ip;

	if (!r)
		return 0;
	if (r->next + TG_CHUNK > r->limit) {
		tg_fail(g,
			"%s: its code in %u-bit mode outgrew %llu bytes: use loop instead of repeat",
			c->name, mode, (unsigned long long)r->limit);
		return r->base;
	}
	ip = r->base + r->next;
	r->next += TG_CHUNK;
	return ip;
}

u64 tg_target(struct tracegen *g, struct tg_ctx *c, u64 ip, u32 sort, unsigned int mode)
{
	u64 hash = vmpt_mix64(ip ^ (u64)sort << 56);
	u32 found = vmpt_hash_find(&c->by_ip, hash, i,
				   c->targets[i].ip == ip && c->targets[i].sort == sort);

	if (found != VMPT_HASH_NONE)
		return c->targets[found].target;
	if (!tg_grow(g, &c->targets, c->target_count) ||
	    !tg_room(g, vmpt_hash_add(&c->by_ip, hash, (u32)c->target_count)))
		return 0;
	c->targets[c->target_count] =
		(struct tg_target){ .ip = ip, .sort = sort, .target = tg_chunk(g, c, mode) };
	return c->targets[c->target_count++].target;
}

/* The target of a direct branch from its bytes. */
static u64 direct_target(const struct tg_page *page, unsigned int at, u64 ip, unsigned int mode)
{
	unsigned int len = page->len[at], width = mode == 16 ? 2 : 4;
	const u8 *end = page->bytes + at + len;
	u64 next = ip + len;

	if (page->kind[at] == TG_JCC)
		return next + (u64)(s64)(s8)end[-1];
	if (width == 2)
		return (next + (u64)(s64)(s16)vmpt_load16(end - 2)) & 0xffff;
	return next + (u64)(s64)(s32)vmpt_load32(end - 4);
}

static bool is_direct(unsigned int kind)
{
	return kind == TG_CALL || kind == TG_JMP || kind == TG_LINK || kind == TG_LOOP ||
	       kind == TG_XBEGIN || kind == TG_JCC;
}

/* Put an instruction at the free byte @at of @page. */
static void place(struct tracegen *g, struct tg_ctx *c, struct tg_page *page, unsigned int at,
		  unsigned int kind, u64 target)
{
	u8 buf[16];
	unsigned int n;

	if (kind == TG_JCC)
		target = c->ip + 2 + 1 + (c->ip * 0x9e3779b1u >> 13) % 3;
	else if (is_direct(kind) && kind != TG_LOOP)
		target = tg_chunk(g, c, c->mode);
	n = tg_x86_encode(buf, kind, c->mode, c->ip, target);
	memcpy(page->bytes + at, buf, n);
	page->kind[at] = (u8)kind;
	page->len[at] = (u8)n;
	if (kind != TG_JCC)
		return;
	/* Fill what it jumps over, so that no link is put there. */
	for (at += n; at < ((unsigned int)target & (TG_PAGE - 1)); at++) {
		page->bytes[at] = 0x90;
		page->kind[at] = TG_NOP;
		page->len[at] = 1;
	}
}

/* The instruction at IP: the existing one, or @kind put there, or a link to where there is room. */
static struct tg_insn look(struct tracegen *g, struct tg_cpu *p, unsigned int kind, u64 target,
			   unsigned int *found)
{
	struct tg_ctx *c = p->cur;
	struct tg_insn i = { .ip = c->ip };
	unsigned int at = 0;
	struct tg_page *page = page_of(g, c, c->ip, &at);

	*found = TG_NONE;
	if (!page)
		return i;
	if (!page->kind[at]) {
		bool room = (c->ip & (TG_CHUNK - 1)) <= TG_CHUNK - ROOM;

		place(g, c, page, at, room ? kind : TG_LINK, target);
	}
	*found = page->kind[at];
	i.len = page->len[at];
	i.target = is_direct(*found) ? direct_target(page, at, c->ip, c->mode) : c->ip + i.len;
	return i;
}

static struct tg_insn fetch(struct tracegen *g, struct tg_cpu *p, unsigned int kind, u64 target)
{
	struct tg_insn i;
	unsigned int found;

	tg_step(g, p);
	for (;;) {
		i = look(g, p, kind, target, &found);
		if (g->failed || found == kind)
			return i;
		if (found != TG_LINK) {
			tg_fail(g,
				"%s: another instruction is at 0x%llx: the events of a loop "
				"must be the same in each turn",
				p->cur->name, (unsigned long long)i.ip);
			return i;
		}
		tg_retire(g, p, &i, i.target);
	}
}

void tg_settle(struct tracegen *g, struct tg_cpu *p)
{
	struct tg_ctx *c = p->cur;
	unsigned int n;

	for (n = 0; n < c->jump_count && !g->failed; n++) {
		struct tg_insn i = fetch(g, p, TG_LOOP, c->jumps[n].target);

		tg_retire(g, p, &i, c->jumps[n].taken ? i.target : i.ip + i.len);
		tg_tnt(g, p, c->jumps[n].taken);
	}
	c->jump_count = 0;
	for (n = 0; n < g->loop_depth; n++) {
		struct tg_loop_mark *m = &c->marks[n];

		if (m->valid)
			continue;
		*m = (struct tg_loop_mark){ .valid = true,
					    .ip = c->ip,
					    .calls = c->call_count,
					    .frames = c->frame_count,
					    .mode = c->mode };
	}
}

struct tg_insn tg_fetch(struct tracegen *g, struct tg_cpu *p, unsigned int kind)
{
	tg_settle(g, p);
	return fetch(g, p, kind, 0);
}

void tg_retire(struct tracegen *g, struct tg_cpu *p, const struct tg_insn *i, u64 next)
{
	if (tg_packet_en(g, p))
		tg_truth_insn(g, p, i->ip);
	p->cur->ip = next;
}

u64 tg_execute(struct tracegen *g, struct tg_cpu *p, unsigned int kind)
{
	struct tg_insn i = tg_fetch(g, p, kind);

	tg_retire(g, p, &i, i.ip + i.len);
	return i.ip;
}
