// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <stdio.h>
#include <string.h>

#include "model/truth-format.h"
#include "tests/flow/cursor.h"
#include "tests/rtit/flow-truth.h"

/* This many equal instructions show that the right place in the truth was found. */
#define SURE 10000u

struct check {
	struct cursor cursor;
	const struct rtit_check_options *options;
	struct rtit_check_counts *counts;
	struct rtit_insn last; /* the instruction executed last … */
	u64 last_ip;	       /* … was here; 0: none since packets were enabled */
	u64 target;	       /* a far transfer goes here, if has_target */
	bool has_target;
	bool gap;   /* packets were disabled: the truth may have more */
	bool lost;  /* an overflow */
	u64 unsure; /* instructions that must still be equal after those two */
	u64 decoded[CURSOR_PAST], decodes;
	u64 offset; /* of the last event's packet */
	bool failed;
};

/* ---- a difference ---- */

static void print_ips(const char *what, const u64 *ips, u64 n)
{
	u64 i = n > 10 ? n - 10 : 0;

	fprintf(stderr, "  %s:", what);
	for (; i < n; i++)
		fprintf(stderr, " %llx", (unsigned long long)ips[i % CURSOR_PAST]);
	fprintf(stderr, "\n");
}

static void print_expected(const struct cursor *c)
{
	if (cursor_in_block(c))
		fprintf(stderr, "  the truth has instruction %llx next\n",
			(unsigned long long)c->ip);
	else if (c->item.kind == TRUTH_RUN_EVENT)
		fprintf(stderr, "  the truth has an event from %llx to %llx next\n",
			(unsigned long long)c->item.from, (unsigned long long)c->item.to);
	else if (c->item.kind == TRUTH_END_OF_FILE)
		fprintf(stderr, "  the truth ends\n");
}

/* Print the first difference with its place; returns false. */
static bool differ(struct check *k, const char *what, u64 ip)
{
	if (k->failed)
		return false;
	k->failed = true;
	if (*k->cursor.reader->error) {
		fprintf(stderr, "%s\n", k->cursor.reader->error);
		return false;
	}
	fprintf(stderr, "instruction %llu, after the event at trace offset %#llx: %s %llx\n",
		(unsigned long long)k->decodes, (unsigned long long)k->offset, what,
		(unsigned long long)ip);
	print_expected(&k->cursor);
	print_ips("last executed", k->cursor.past, k->cursor.passed);
	print_ips("last decoded ", k->decoded, k->decodes);
	return false;
}

/* ---- the place in the truth ---- */

/* The filter is RANGE0 and nothing stops the trace: what is in it has packets. */
static bool range_known(const struct check *k)
{
	const struct vmpt_rtit_regs *regs = k->options->flow.regs;

	return regs && (regs->events & 7) == VMPT_RTIT_EVENT_RANGE0;
}

/* The truth's next instruction may be missing in the trace where packets are disabled. */
static bool may_lack(struct check *k)
{
	u64 lip = k->cursor.ip & VMPT_RTIT_LIP_MASK;
	const u64 *range = range_known(k) ? k->options->flow.regs->lip : NULL;

	if (!range || lip < range[0] || lip >= range[2])
		return true;
	return differ(k, "in the range, but not in the trace:", k->cursor.ip);
}

static bool pass_over(struct check *k)
{
	if (k->lost)
		k->counts->lost++;
	else if (!may_lack(k))
		return false;
	else
		k->counts->skipped++;
	cursor_pass(&k->cursor);
	return true;
}

/*
 * To the first place after this one that has @ip next. The right one is never before it: if it is
 * the wrong one, the flows differ soon and the search goes on to the next.
 */
static bool search(struct check *k, u64 ip)
{
	struct cursor *c = &k->cursor;

	while (!cursor_in_block(c) || c->ip != ip) {
		if (cursor_in_block(c) && !pass_over(k))
			return false;
		if (cursor_in_block(c))
			continue;
		if (c->item.kind == TRUTH_END_OF_FILE || !cursor_next(c))
			return differ(k, "the truth does not have again", ip);
	}
	return range_known(k) || k->counts->skipped <= k->options->skip ||
	       differ(k, "packets were disabled for longer than --skip allows, and enabled at", ip);
}

/* To the next block. Events in between were taken when the trace reported them. */
static bool advance(struct check *k, u64 ip)
{
	struct cursor *c = &k->cursor;

	while (!cursor_in_block(c)) {
		if (c->item.kind == TRUTH_END_OF_FILE)
			return differ(k, "after the truth's end, the trace has", ip);
		if (!cursor_next(c))
			return differ(k, "", ip);
		if (c->item.kind == TRUTH_RUN_EVENT && !k->unsure && !k->gap)
			return differ(k, "no such event in the trace, which continues at", ip);
	}
	return true;
}

/* ---- instructions ---- */

static unsigned int bits_now(const struct check *k)
{
	u32 flags = k->cursor.reader->now.flags;

	if (k->options->bits)
		return k->options->bits;
	if (!flags)
		return 0;
	if (flags & TRUTH_LONG && flags & TRUTH_CS_L)
		return 64;
	return flags & TRUTH_CS_D ? 32 : 16;
}

static bool decode(const struct check *k, struct rtit_insn *insn)
{
	const struct cursor *c = &k->cursor;
	unsigned int bits = bits_now(k);
	u8 length = cursor_length(c);

	if (bits)
		return rtit_insn_decode(insn, c->ip, cursor_code(c), length, bits) &&
		       insn->len == length;
	for (bits = 64; bits >= 16; bits /= 2)
		if (rtit_insn_decode(insn, c->ip, cursor_code(c), length, bits) &&
		    insn->len == length)
			return true;
	return false;
}

static bool insn(void *opaque, u64 ip, struct rtit_insn *insn)
{
	struct check *k = opaque;
	struct cursor *c = &k->cursor;

	if (!advance(k, ip))
		return false;
	if (k->has_target && ip != k->target)
		return differ(k, "a far transfer did not lead to", ip);
	k->has_target = false;
	if (c->ip != ip) {
		if (!k->gap && !k->unsure)
			return differ(k, "the trace has", ip);
		if (!k->gap)
			k->counts->searches++;
		/* If nothing in the range is skipped this is the right place. */
		k->unsure = range_known(k) && !k->lost ? 0 : SURE;
		if (!search(k, ip))
			return false;
	}
	k->gap = false;
	/* After an undecodable instruction the next one follows. */
	if (!decode(k, insn))
		*insn = (struct rtit_insn){ .kind = RTIT_INSN_OTHER, .len = cursor_length(c) };
	k->last = *insn;
	return true;
}

static bool executed(void *opaque, u64 ip, u64 offset)
{
	struct check *k = opaque;

	(void)offset;
	k->last_ip = ip;
	k->decoded[k->decodes++ % CURSOR_PAST] = ip;
	if (k->unsure && !--k->unsure)
		k->lost = false;
	cursor_pass(&k->cursor);
	return true;
}

/* ---- events ---- */

/* What the truth lists before an event at @from, and the trace does not. */
static bool unlisted(struct check *k, u64 from)
{
	struct cursor *c = &k->cursor;

	if (c->ip != from || c->at + 1 != c->insns)
		return false;
	if (cursor_is_soft_int(cursor_code(c), cursor_length(c)))
		k->counts->soft_ints++;
	else if (cursor_is_self_jump(cursor_code(c), cursor_length(c)))
		k->counts->repeated++;
	else
		return false;
	cursor_pass(c);
	return true;
}

/* The truth's next item, if it is an event, else NULL. */
static const struct truth_item *next_event(struct check *k, u64 from)
{
	struct cursor *c = &k->cursor;
	const struct truth_item *item;

	for (;;) {
		if (cursor_in_block(c) && !unlisted(k, from))
			return NULL;
		if (cursor_in_block(c))
			continue;
		item = cursor_peek(c);
		if (!item || item->kind == TRUTH_END_OF_FILE)
			return NULL;
		if (item->kind == TRUTH_RUN_EVENT)
			return item;
		if (item->kind == TRUTH_RUN_BLOCK && item->block->ip != from)
			return NULL;
		if (!cursor_next(c))
			return NULL;
	}
}

/*
 * @from is NLIP of the far transfer instruction that was executed last, or in it (E1). An event may
 * strike right after it: then the truth has that event.
 */
static bool is_far(const struct check *k, u64 from)
{
	u64 at = from - k->last_ip;

	return k->last_ip && k->last.kind == RTIT_INSN_FAR && at && at <= k->last.len;
}

/* A far transfer or, where @to_known is false, packets that it disabled. */
static bool far_transfer(struct check *k, u64 from, u64 to, bool to_known)
{
	const struct truth_item *item;

	/* An event may strike where another far transfer led, before anything has executed there.
	 */
	if (k->has_target && from == k->target)
		k->has_target = false;
	if (k->unsure)
		return true;
	item = next_event(k, from);
	if (item && (item->from == from || (is_far(k, from) && item->from == k->last_ip))) {
		if (to_known && item->to != to)
			return differ(k, "the trace has an event, but to", to);
		k->counts->events++;
		return cursor_next(&k->cursor);
	}
	if (!to_known)
		return true;
	if (!is_far(k, from))
		k->counts->astray++; /* the truth has no SMI, INIT and such */
	k->has_target = true;
	k->target = to;
	return true;
}

static bool disabled(struct check *k, u64 from)
{
	/* The far transfer before it may have led to where packets were disabled at once. */
	if (k->has_target && from != k->target)
		return differ(k, "a far transfer did not lead to", from);
	k->has_target = false;
	k->gap = true;
	k->lost = false;
	return far_transfer(k, from, 0, false);
}

static bool overflow(struct check *k, u64 to)
{
	if (!k->options->allow_overflow)
		return differ(k, "an overflow, the trace resumes at", to);
	k->has_target = false;
	k->lost = true;
	k->gap = true;
	return true;
}

static bool event(void *opaque, const struct rtit_flow_event *e)
{
	struct check *k = opaque;

	k->offset = e->offset;
	switch (e->kind) {
	case RTIT_FLOW_ENABLED:
		k->gap = true;
		k->last_ip = 0;
		return true;
	case RTIT_FLOW_FAR:
		return far_transfer(k, e->from, e->to, true);
	case RTIT_FLOW_DISABLED:
		return disabled(k, e->from);
	case RTIT_FLOW_QUIET:
	case RTIT_FLOW_STOP:
		k->gap = true;
		return true;
	case RTIT_FLOW_OVERFLOW:
		return overflow(k, e->to);
	case RTIT_FLOW_LOST:
		return differ(k, "the flow is lost at", e->from);
	default:
		return true;
	}
}

/* ---- the whole trace ---- */

static bool end(struct check *k)
{
	struct cursor *c = &k->cursor;

	do {
		while (cursor_in_block(c)) {
			if (!k->lost && !may_lack(k))
				return false;
			cursor_pass(c);
			k->counts->tail++;
		}
		if (!cursor_next(c))
			return differ(k, "", 0);
	} while (c->item.kind != TRUTH_END_OF_FILE);
	if (range_known(k) || k->counts->tail <= k->options->tail)
		return true;
	fprintf(stderr, "the trace ends after instruction %llu, the truth has %llu more\n",
		(unsigned long long)k->decodes, (unsigned long long)k->counts->tail);
	return false;
}

bool rtit_flow_check(struct truth_reader *reader, const u8 *trace, size_t size,
		     const struct rtit_check_options *options, struct rtit_check_counts *counts)
{
	struct check k = { .options = options, .counts = counts };
	struct rtit_flow_ops ops = {
		.insn = insn, .executed = executed, .event = event, .opaque = &k
	};
	struct rtit_flow_options flow = options->flow;
	bool equal;

	memset(counts, 0, sizeof(*counts));
	cursor_init(&k.cursor, reader);
	flow.in_order = true;
	equal = rtit_flow_run(trace, size, &flow, &ops, &counts->flow);
	if (!equal && !k.failed)
		differ(&k, counts->flow.error, k.cursor.ip);
	equal = equal && end(&k);
	counts->blocks = k.cursor.blocks;
	counts->merged = k.cursor.merged;
	counts->emulated = k.cursor.emulated;
	return equal;
}
