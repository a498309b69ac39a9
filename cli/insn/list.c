// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt insn without --count: what the filters and --branches, --calls, --around choose of a stream,
 * in order; and counts at some times. rows.c prints it.
 */
#include "cli/insn/insn.h"

#define NONE (~0U)

/* One stream's walk. */
struct walk {
	struct cli *cli;
	struct vmpt_flow *flow;
	size_t stream;
	struct insn_rows *rows; /* NULL: nothing is listed */

	struct traced_time time; /* of the last packet at or before the batch */
	u64 offset;		 /* of the batch */

	u32 space; /* the row of which is .row */
	struct insn_row *row;
	bool wanted;

	bool held; /* a branch, which waits for where it goes */
	struct insn_part branch;
	u64 target, next; /* of it */

	/* With --around: the last parts before the place, and how many rows come after it. */
	struct insn_part before[INSN_AROUND];
	size_t parts; /* that there were */
	bool reached;
	u64 left;
};

/* ---- times ---- */

static bool time_wanted(const struct walk *w)
{
	const struct cli_filter *f = cli_filter(w->cli);

	return (!f->from && !f->to) || cli_filter_time(w->cli, w->time.tsc);
}

/* ---- parts of the list ---- */

static u32 rows_of(const struct insn_part *p)
{
	return p->gap || p->branch ? 1 : p->count;
}

static bool is_full(const struct walk *w)
{
	const struct insn *d = w->cli->data;

	return (d->head && d->listed >= d->head) || (w->reached && !w->left);
}

/* The rows of @p from the one with the number @first on. 0 or a negative error. */
static int print_part(struct walk *w, const struct insn_part *p, u32 first)
{
	struct insn *d = w->cli->data;
	u32 rows = rows_of(p) - first;

	if (d->head && rows > d->head - d->listed)
		rows = (u32)(d->head - d->listed);
	if (w->reached && rows > w->left)
		rows = (u32)w->left;
	w->left -= w->reached ? rows : 0;
	d->listed += rows;
	return rows ? insn_rows_print(w->rows, p, first, rows) : 0;
}

/* The last INSN_AROUND rows of the parts before the place. */
static int print_before(struct walk *w)
{
	size_t i = w->parts, rows = 0;
	int ret = 0;

	while (i && w->parts - i < INSN_AROUND && rows < INSN_AROUND)
		rows += rows_of(&w->before[--i % INSN_AROUND]);
	rows = rows > INSN_AROUND ? rows - INSN_AROUND : 0;
	for (; i < w->parts && !ret; i++, rows = 0)
		ret = print_part(w, &w->before[i % INSN_AROUND], (u32)rows);
	return ret;
}

static bool is_place(const struct walk *w, const struct insn_part *p)
{
	const struct insn *d = w->cli->data;

	if (d->around_offset)
		return p->offset >= d->place;
	return p->tsc != VMPT_TIME_NONE && p->tsc >= d->place;
}

static int take_part(struct walk *w, const struct insn_part *p)
{
	const struct insn *d = w->cli->data;
	int ret;

	if (!d->around || w->reached)
		return print_part(w, p, 0);
	if (!is_place(w, p)) {
		w->before[w->parts++ % INSN_AROUND] = *p;
		return 0;
	}
	ret = print_before(w);
	w->reached = true;
	w->left = INSN_AROUND;
	return ret ? ret : print_part(w, p, 0);
}

/* ---- where branches go ---- */

/* The held branch went to @ip; @known: or it is not known where. */
static int let_go(struct walk *w, bool known, u32 space, u64 ip)
{
	struct insn_part *p = &w->branch;

	if (!w->held)
		return 0;
	w->held = false;
	if (!known && (p->end == VMPT_FLOW_JMP || p->end == VMPT_FLOW_CALL)) {
		known = true;
		space = p->space;
		ip = w->target;
	}
	p->went = known;
	p->to = ip;
	p->to_space = space;
	p->taken = INSN_TAKEN_NOT_KNOWN;
	/* Where both ways lead to the same place it is not seen. */
	if (known && p->end == VMPT_FLOW_COND && w->target != w->next)
		p->taken = ip == w->target ? INSN_TAKEN
			   : ip == w->next ? INSN_NOT_TAKEN
					   : INSN_TAKEN_NOT_KNOWN;
	return take_part(w, p);
}

static bool is_chosen(const struct insn *d, u8 end)
{
	if (d->calls)
		return end == VMPT_FLOW_CALL || end == VMPT_FLOW_CALL_IND || end == VMPT_FLOW_RET;
	return end != VMPT_FLOW_NEXT && end != VMPT_FLOW_MOV_CR3;
}

/* The first @n instructions of @block. */
static int list_block(struct walk *w, u32 id, const struct vmpt_flow_block *block, u32 n)
{
	const struct insn *d = w->cli->data;
	struct insn_part p = {
		.tsc = w->time.tsc,
		.offset = w->offset,
		.ip = block->ip,
		.space = block->space,
		.block = id,
		.count = n,
		.end = block->end,
	};

	if (!insn_only_branches(d))
		return take_part(w, &p);
	if (n < block->instructions || !is_chosen(d, block->end))
		return 0;
	p.branch = true;
	w->branch = p;
	w->target = block->target;
	w->next = block->next;
	w->held = true;
	return 0;
}

/* ---- batches ---- */

static int enter_space(struct walk *w, u32 space)
{
	struct insn *d = w->cli->data;
	struct vmpt_space in;

	if (w->row && w->space == space)
		return 0;
	vmpt_flow_space(w->flow, space, &in, NULL);
	w->space = space;
	w->wanted = traced_wanted(w->cli, &in);
	w->row = insn_row(d, &in);
	return w->row ? 0 : -VMPT_E_NOMEM;
}

static void count_block(struct vmpt_flow_counts *c, const struct vmpt_flow_block *block, u32 n)
{
	bool whole = n == block->instructions;

	c->instructions += n;
	c->branches += whole && block->end != VMPT_FLOW_NEXT && block->end != VMPT_FLOW_MOV_CR3;
	c->calls += whole && (block->end == VMPT_FLOW_CALL || block->end == VMPT_FLOW_CALL_IND);
}

static int take_blocks(struct walk *w, const struct vmpt_flow_batch *b)
{
	struct insn *d = w->cli->data;
	struct insn_stream *s = &d->stream[w->stream];
	bool wanted = time_wanted(w);
	size_t i;
	int ret = 0;

	for (i = 0; i < b->count && !ret && !is_full(w); i++) {
		struct vmpt_flow_block block;
		u32 n;

		vmpt_flow_block(w->flow, b->blocks[i], &block);
		n = i + 1 == b->count ? b->last : block.instructions;
		ret = let_go(w, true, block.space, block.ip);
		if (!wanted)
			break;
		ret = ret ? ret : enter_space(w, block.space);
		if (ret || !w->wanted)
			continue;
		count_block(&w->row->counts, &block, n);
		count_block(&s->counts, &block, n);
		if (w->rows)
			ret = list_block(w, b->blocks[i], &block, n);
	}
	return ret;
}

static int take_gap(struct walk *w, const struct vmpt_flow_batch *b)
{
	const bool space = b->space < vmpt_flow_spaces(w->flow);
	struct insn *d = w->cli->data;
	struct insn_part p = {
		.tsc = w->time.tsc,
		.offset = b->offset,
		.ip = b->ip,
		.space = space ? b->space : NONE,
		.gap = true,
		.reason = b->reason,
	};
	int ret;

	if (!time_wanted(w))
		return 0;
	if (space) {
		ret = enter_space(w, b->space);
		if (ret)
			return ret;
		if (!w->wanted)
			return 0;
		w->row->counts.gaps[b->reason]++;
	} else if (cli_filter_owners(w->cli) || cli_filter(w->cli)->cr3s) {
		return 0;
	} else {
		cli_filter(w->cli)->seen = true;
	}
	d->stream[w->stream].counts.gaps[b->reason]++;
	traced_note_gap(&d->t, w->flow, b, w->stream);
	return w->rows && !is_full(w) ? take_part(w, &p) : 0;
}

static int take_batch(struct walk *w, const struct vmpt_flow_batch *b)
{
	int ret = 0;

	switch (b->kind) {
	case VMPT_FLOW_BLOCKS:
		return take_blocks(w, b);
	case VMPT_FLOW_GAP:
		/* Nothing ran since: the gap is where it went. */
		ret = let_go(w, b->ip && b->reason != VMPT_FLOW_ENDLESS, b->space, b->ip);
		return ret ? ret : take_gap(w, b);
	case VMPT_FLOW_EVENT:
		/* It came before the first instruction there. */
		return let_go(w, true, b->space, b->ip);
	case VMPT_FLOW_OFF:
		return let_go(w, b->ip, b->space, b->ip);
	default:
		return let_go(w, false, 0, 0);
	}
}

int insn_walk(struct cli *cli, size_t i, struct vmpt_flow *flow, bool print)
{
	struct insn *d = cli->data;
	struct walk w = { .cli = cli, .flow = flow, .stream = i };
	struct vmpt_flow_batch batch;
	int ret = traced_time_open(cli, &d->t, i, &w.time);

	if (print && !ret) {
		w.rows = insn_rows_open(cli, i, flow);
		ret = w.rows ? 0 : -VMPT_E_NOMEM;
	}
	if (print && !cli->json)
		insn_rows_title(cli);
	while (!ret && (ret = vmpt_flow_next(flow, &batch)) > 0) {
		w.offset = batch.offset;
		ret = traced_time_to(&w.time, batch.offset);
		ret = ret ? ret : take_batch(&w, &batch);
		if (print && (is_full(&w) || cli_output_failed(cli)))
			break;
	}
	if (!ret)
		ret = let_go(&w, false, 0, 0);
	/* The place is after the end. */
	if (!ret && d->around && !w.reached)
		ret = print_before(&w);
	insn_rows_close(w.rows);
	traced_time_close(&w.time);
	return ret;
}
