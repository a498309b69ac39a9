// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <check.h>
#include <stdlib.h>

#include "tests/decoder/check-streams.h"
#include "util/array.h"
#include "util/search.h"

struct packets {
	struct vmpt_packet *p;
	size_t count;
};

/* All packets of @stream, by the plain loop. */
static void read_packets(struct packets *out, const struct vmpt_stream *stream, bool headless)
{
	struct vmpt_options options = { .scalar = true, .headless = headless };
	struct vmpt_cursor at = { 0 };
	struct vmpt_decoder *d;
	struct vmpt_packet p;
	int ret;

	memset(out, 0, sizeof(*out));
	ck_assert_int_eq(vmpt_decoder_open(&d, stream, &options), 0);
	while ((ret = vmpt_packet_next(d, &at, &p)) > 0) {
		if (vmpt_grow(&out->p, out->count))
			ck_abort_msg("no memory");
		out->p[out->count++] = p;
	}
	ck_assert_int_eq(ret, 0);
	vmpt_decoder_close(d);
}

static bool is_timing(const struct vmpt_packet *p)
{
	return p->kind < VMPT_PT_KINDS && vmpt_pt_table[p->kind].classes & VMPT_PT_TIMING;
}

static size_t first_at(const struct packets *p, u64 offset)
{
	return vmpt_search(i, 0, p->count, p->p[i].offset < offset);
}

/* A place in the source's slice, and one in the stream's bytes for it. */
struct pair {
	const struct vmpt_packet *s, *s_end, *o, *o_end;
	const struct vmpt_extracted *slice;
};

static void expect_kind(struct pair *c, unsigned int kind)
{
	ck_assert_msg(c->o < c->o_end, "%s is missing at the end of the slice at %#llx",
		      vmpt_pt_name(kind), (unsigned long long)c->slice->slice.offset);
	ck_assert_msg(c->o->kind == kind, "slice at %#llx: %s instead of %s",
		      (unsigned long long)c->slice->slice.offset, vmpt_pt_name(c->o->kind),
		      vmpt_pt_name(kind));
	c->o++;
}

static bool next_is(const struct pair *c, unsigned int kind)
{
	return c->o < c->o_end && c->o->kind == kind;
}

static void check_head(struct pair *c)
{
	expect_kind(c, VMPT_PT_PSB);
	if (next_is(c, VMPT_PT_PIP))
		c->o++;
	if (c->slice->slice.owner.kind == VMPT_OWNER_VM) {
		ck_assert_uint_eq(c->o->payload, c->slice->slice.owner.vmcs);
		expect_kind(c, VMPT_PT_VMCS);
	}
	if (next_is(c, VMPT_PT_CBR))
		c->o++;
	expect_kind(c, VMPT_PT_PSBEND);
}

/* Same packet; a suppressed IP has no value to compare (Table 33-18). */
static bool same(const struct vmpt_packet *a, const struct vmpt_packet *b)
{
	bool has_ip = a->kind < VMPT_PT_KINDS && vmpt_pt_table[a->kind].classes & VMPT_PT_HAS_IP;

	if (a->kind != b->kind)
		return false;
	if (has_ip && (!a->aux || !b->aux))
		return !a->aux && !b->aux;
	return a->payload == b->payload;
}

static void check_same(struct pair *c)
{
	/* A check that passes costs a system call: not for every packet. */
	if (c->o == c->o_end)
		ck_abort_msg("%s at %#llx is missing", vmpt_pt_name(c->s->kind),
			     (unsigned long long)c->s->offset);
	if (!same(c->o, c->s))
		ck_abort_msg("%s %#llx at %#llx became %s %#llx", vmpt_pt_name(c->s->kind),
			     (unsigned long long)c->s->payload, (unsigned long long)c->s->offset,
			     vmpt_pt_name(c->o->kind), (unsigned long long)c->o->payload);
	c->s++;
	c->o++;
}

/* The group's timing stays; PIP … and TIP.PGE replace the rest. */
static void check_return(struct pair *c)
{
	u64 ip = 0;

	for (; c->s < c->s_end; c->s++) {
		while (c->s < c->s_end && (is_timing(c->s) || c->s->kind == VMPT_PT_PAD))
			check_same(c);
		if (c->s == c->s_end)
			break;
		if (c->s->kind == VMPT_PT_TIP || c->s->kind == VMPT_PT_TIP_PGE ||
		    c->s->kind == VMPT_PT_TIP_PGD) {
			ip = c->s->payload;
			c->s++;
			break;
		}
	}
	if (c->slice->returned_pip)
		expect_kind(c, VMPT_PT_PIP);
	if (c->slice->returned_cbr)
		expect_kind(c, VMPT_PT_CBR);
	if (!c->slice->enabled)
		return;
	if (next_is(c, VMPT_PT_MODE_EXEC))
		c->o++;
	if (next_is(c, VMPT_PT_MODE_TSX))
		c->o++;
	expect_kind(c, VMPT_PT_TIP_PGE);
	ck_assert_uint_eq(c->o[-1].payload, ip);
}

/* The slice's reported changes to its packets, counted here. */
struct seen {
	u32 fups, bips, flow, tips;
	bool psb;
};

/* A TIP that became a TIP.PGE, with the modes before it. */
static bool check_enabling(struct pair *c)
{
	const struct vmpt_packet *o = c->o;

	if (c->s->kind != VMPT_PT_TIP || !c->s->aux)
		return false;
	while (o < c->o_end && (o->kind == VMPT_PT_MODE_EXEC || o->kind == VMPT_PT_MODE_TSX))
		o++;
	if (o == c->o_end || o->kind != VMPT_PT_TIP_PGE || o->payload != c->s->payload)
		return false;
	c->o = o + 1;
	c->s++;
	return true;
}

static bool is_flow(const struct vmpt_packet *p)
{
	return p->kind == VMPT_PT_TNT_8 || p->kind == VMPT_PT_TNT_64 || p->kind == VMPT_PT_TIP ||
	       p->kind == VMPT_PT_TIP_PGD || p->kind == VMPT_PT_FUP;
}

static void check_packet(struct pair *c, struct seen *n)
{
	bool stays = c->o < c->o_end && same(c->o, c->s);

	if (c->s->kind == VMPT_PT_PSB)
		n->psb = true;
	else if (c->s->kind == VMPT_PT_PSBEND)
		n->psb = false;
	if (stays) {
		check_same(c);
		return;
	}
	if (n->psb && c->s->kind == VMPT_PT_FUP && n->fups < c->slice->fups_dropped) {
		n->fups++;
	} else if (c->s->kind == VMPT_PT_BIP) {
		n->bips++;
	} else if (n->tips < c->slice->tips_enabling && check_enabling(c)) {
		n->tips++;
		return;
	} else if (n->flow < c->slice->flow_dropped && is_flow(c->s)) {
		n->flow++;
	} else if (!c->slice->flow_dropped || c->s->kind != VMPT_PT_PAD) {
		check_same(c); /* says what is wrong; PADs go with the TNTs between them */
		return;
	}
	c->s++;
}

static void check_slice(struct pair *c)
{
	struct seen n = { 0 };

	if (c->slice->head)
		check_head(c);
	if (c->slice->others_cycles) {
		ck_assert_uint_eq(c->o->payload, c->slice->others_cycles);
		expect_kind(c, VMPT_PT_CYC);
	}
	if (c->slice->returned)
		check_return(c);
	while (c->s < c->s_end)
		check_packet(c, &n);
	if (n.fups != c->slice->fups_dropped || n.bips != c->slice->dropped ||
	    n.flow != c->slice->flow_dropped || n.tips != c->slice->tips_enabling)
		ck_abort_msg(
			"slice at %#llx: %u FUPs, %u BIPs, %u of flow dropped, %u TIPs enabling",
			(unsigned long long)c->slice->slice.offset, n.fups, n.bips, n.flow, n.tips);
	if (next_is(c, VMPT_PT_BEP))
		c->o++;
	if (c->slice->left) {
		ck_assert_uint_eq(c->o->aux, 0);
		expect_kind(c, VMPT_PT_TIP_PGD);
	}
	if (c->o != c->o_end)
		ck_abort_msg("slice at %#llx: too much: %s",
			     (unsigned long long)c->slice->slice.offset, vmpt_pt_name(c->o->kind));
}

void check_streams(const struct vmpt_stream *stream, const struct extracted *e)
{
	struct packets source, *out = calloc((size_t)e->count + 1, sizeof(*out));
	u64 at = 0;
	size_t i, j;
	int s;

	ck_assert_ptr_nonnull(out);
	read_packets(&source, stream, false);
	for (s = 0; s < e->count; s++) {
		struct vmpt_stream os = { .data = e->streams[s].bytes, .size = e->streams[s].size };

		read_packets(&out[s], &os, true);
		for (i = 0; i < out[s].count; i++)
			if (out[s].p[i].kind == VMPT_ITEM_LOSS)
				ck_abort_msg("stream %d does not decode at %#llx", s,
					     (unsigned long long)out[s].p[i].offset);
	}
	for (i = 0; i < e->slice_count; i++) {
		const struct vmpt_extracted *x = &e->slices[i];
		struct pair c = { .slice = x };

		if (x->slice.offset != at)
			ck_abort_msg("a hole before %#llx", (unsigned long long)x->slice.offset);
		at += x->slice.size;
		if (x->stream < 0)
			continue;
		j = first_at(&source, x->slice.offset);
		/* A gap's loss of size 0 comes before the first packet. */
		while (j < source.count && source.p[j].kind == VMPT_ITEM_LOSS)
			j++;
		c.s = source.p + j;
		c.s_end = source.p + first_at(&source, at);
		c.o = out[x->stream].p + first_at(&out[x->stream], x->out_offset);
		c.o_end = out[x->stream].p + first_at(&out[x->stream], x->out_offset + x->out_size);
		check_slice(&c);
	}
	ck_assert_uint_eq(at, stream->size);
	for (s = 0; s < e->count; s++)
		free(out[s].p);
	free(out);
	free(source.p);
}
