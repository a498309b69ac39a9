// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "arch/pt-regs.h"
#include "model/truth-format.h"
#include "tests/flow/truth-reader.h"
#include "util/array.h"

#define IDS	  0xf0000000u
#define INSNS_MAX 65536u
#define SIZE_MAX_ (INSNS_MAX * 15)

static bool fail(struct truth_reader *r, const char *what)
{
	if (!*r->error)
		snprintf(r->error, sizeof(r->error), "truth: at byte %llu: %s",
			 (unsigned long long)r->offset + 4 * r->at, what);
	return false;
}

/* ---- words ---- */

/* At least one word more, or false: the end, or an error. */
static bool fill(struct truth_reader *r)
{
	u8 *to = (u8 *)r->words;
	ssize_t n;

	if (r->bytes)
		memmove(to, r->words + r->end, r->bytes);
	r->offset += 4 * r->end;
	r->at = 0;
	do {
		n = read(r->fd, to + r->bytes, 4 * TRUTH_BUFFER - r->bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		r->bytes += (size_t)n;
	} while (r->bytes < 4);
	r->end = r->bytes / 4;
	r->bytes %= 4;
	if (r->end)
		return true;
	if (n < 0)
		return fail(r, strerror(errno));
	return r->bytes ? fail(r, "ends within a word") : false;
}

static inline bool word(struct truth_reader *r, u32 *w)
{
	if (r->at == r->end && !fill(r))
		return false;
	*w = r->words[r->at++];
	return true;
}

static bool word64(struct truth_reader *r, u64 *v)
{
	u32 lo, hi;

	if (!word(r, &lo) || !word(r, &hi))
		return fail(r, "ends within a record");
	*v = (u64)hi << 32 | lo;
	return true;
}

/* ---- blocks ---- */

static bool grow(struct truth_reader *r, u32 id)
{
	if (vmpt_reserve_zeroed(&r->table, &r->table_size, id + 1ULL))
		return fail(r, "no memory");
	return true;
}

/* The current item, and the one before it, may still point to it. */
static void retire(struct truth_reader *r, struct truth_block *block)
{
	block->retired_at = r->items;
	block->retired = r->retired;
	r->retired = block;
}

static void free_retired(struct truth_reader *r, u64 age)
{
	struct truth_block **at = &r->retired, *block;

	while ((block = *at)) {
		if (r->items - block->retired_at < age) {
			at = &block->retired;
			continue;
		}
		*at = block->retired;
		free(block);
	}
}

static bool check_lengths(const struct truth_block *block)
{
	u32 i, sum = 0;

	for (i = 0; i < block->insns; i++) {
		if (!block->lengths[i] || block->lengths[i] > 15)
			return false;
		sum += block->lengths[i];
	}
	return sum == block->size;
}

static bool define(struct truth_reader *r)
{
	struct truth_block *block;
	u32 id, insns, size, n, i, w;
	u64 ip;

	if (!word(r, &id) || !word64(r, &ip) || !word(r, &insns) || !word(r, &size))
		return fail(r, "ends within a record");
	if (id >= IDS || insns > INSNS_MAX || size > SIZE_MAX_)
		return fail(r, "an impossible block");
	if (id >= r->table_size && !grow(r, id))
		return false;
	n = (insns + size + 3) / 4;
	block = malloc(sizeof(*block) + 4 * n);
	if (!block)
		return fail(r, "no memory");
	*block = (struct truth_block){ .ip = ip, .insns = insns, .size = size };
	block->code = block->lengths + insns;
	for (i = 0; i < n; i++) {
		if (!word(r, &w)) {
			free(block);
			return fail(r, "ends within a block's code");
		}
		memcpy(block->lengths + 4 * i, &w, 4);
	}
	if (!check_lengths(block)) {
		free(block);
		return fail(r, "a block whose lengths do not match its code");
	}
	if (r->table[id])
		retire(r, r->table[id]);
	r->table[id] = block;
	block->serial = ++r->blocks;
	return true;
}

/* ---- items ---- */

static bool run_block(struct truth_reader *r, struct truth_item *item, u32 id)
{
	if (id >= r->table_size || !r->table[id])
		return fail(r, "a block that is not defined");
	item->kind = TRUTH_RUN_BLOCK;
	item->block = r->table[id];
	r->table[id]->runs++;
	item->insns = item->block->insns;
	item->flags = r->now.flags;
	item->cr3 = r->now.cr3;
	return true;
}

static bool part(struct truth_reader *r, struct truth_item *item)
{
	u32 id, n;

	if (!word(r, &id) || !word(r, &n))
		return fail(r, "ends within a record");
	if (!run_block(r, item, id))
		return false;
	if (n > item->insns)
		return fail(r, "a part that is longer than its block");
	item->insns = n;
	return true;
}

static bool state(struct truth_reader *r)
{
	struct truth_now *now = &r->now;

	if (!word(r, &now->flags))
		return fail(r, "ends within a record");
	return word64(r, &now->ip) && word64(r, &now->ctl) && word64(r, &now->cr3) &&
	       word64(r, &now->eptp);
}

static bool time_is(struct truth_reader *r)
{
	struct truth_now *now = &r->now;

	if (!word(r, &now->flags))
		return fail(r, "ends within a record");
	return word64(r, &now->tsc) && word64(r, &now->cr3);
}

static bool sp_is(struct truth_reader *r)
{
	r->now.has_sp = true;
	return word64(r, &r->now.sp);
}

static bool range(struct truth_reader *r)
{
	u32 n;

	if (!word(r, &n))
		return fail(r, "ends within a record");
	if (n >= TRUTH_RANGES)
		return fail(r, "no such address range");
	return word64(r, &r->range[n][0]) && word64(r, &r->range[n][1]);
}

/* Everything except a whole block. */
static bool record(struct truth_reader *r, struct truth_item *item, u32 w)
{
	switch (w) {
	case TRUTH_PART:
		return part(r, item);
	case TRUTH_EVENT:
		item->kind = TRUTH_RUN_EVENT;
		return word64(r, &item->from) && word64(r, &item->to);
	case TRUTH_BEGIN:
		item->kind = TRUTH_RUN_BEGIN;
		return word64(r, &item->from);
	case TRUTH_END:
		item->kind = TRUTH_RUN_END;
		return word64(r, &item->from);
	case TRUTH_STATE:
		item->kind = TRUTH_RUN_STATE;
		return state(r);
	case TRUTH_RANGE:
		item->kind = TRUTH_RUN_RANGE;
		return range(r);
	case TRUTH_TIME:
		item->kind = TRUTH_RUN_TIME;
		return time_is(r);
	case TRUTH_SP:
		item->kind = TRUTH_RUN_SP;
		return sp_is(r);
	default:
		return fail(r, "an unknown word");
	}
}

/* With STATE. */
static bool next(struct truth_reader *r, struct truth_item *item)
{
	u32 w;

	do {
		if (!word(r, &w)) {
			item->kind = TRUTH_END_OF_FILE;
			return !*r->error;
		}
		if (w < IDS)
			return run_block(r, item, w);
	} while (w == TRUTH_DEFINE && define(r));
	return w != TRUTH_DEFINE && record(r, item, w);
}

static bool traced(const struct truth_reader *r)
{
	const struct truth_now *now = &r->now;
	u64 level = now->flags & TRUTH_CPL ? VMPT_CTL_USER : VMPT_CTL_OS;
	u64 trace_en = r->trace_en ? r->trace_en : VMPT_CTL_TRACE_EN;

	if (r->cr3_match && now->ctl & VMPT_CTL_CR3_FILTER && now->cr3 >> 5 != r->cr3_match >> 5)
		return false;
	return (now->ctl & trace_en) == trace_en && now->ctl & level;
}

/* ---- what of it is traced ---- */

/* Whether @ip is in a range that has @cfg in CTL (SDM 3 33.2.5.3). *any: one has it. */
static bool in_range(const struct truth_reader *r, unsigned int cfg, u64 ip, bool *any)
{
	bool in = false;

	*any = false;
	if (r->trace_en)
		return false; /* RTIT has no ranges */
	for (unsigned int n = 0; n < TRUTH_RANGES; n++) {
		if ((r->now.ctl >> VMPT_CTL_ADDR_SHIFT(n) & 0xf) != cfg)
			continue;
		*any = true;
		in |= ip >= r->range[n][0] && ip <= r->range[n][1];
	}
	return in;
}

/* A branch or an event went to @ip, or there the context or TraceEn changed (33.2.5.3, 33.2.6.5).
 */
static void arrive(struct truth_reader *r, u64 ip)
{
	bool any;

	if (!traced(r))
		return;
	r->stopped |= in_range(r, VMPT_ADDR_TRACESTOP, ip, &any);
	r->filtered = !in_range(r, VMPT_ADDR_FILTER, ip, &any) && any;
}

static void hold(struct truth_reader *r, const struct truth_item *item)
{
	r->held[r->holds++] = *item;
}

/* The event that led here is not traced as such if the trace ends with it. */
static void flush_event(struct truth_reader *r, bool traced)
{
	if (r->has_event && traced)
		hold(r, &r->event);
	r->has_event = false;
}

/*
 * Begin or end the traced part of a run at @ip. An event that leads out of the traced part ends it
 * where it came from: its handler is not known from the trace.
 */
static void settle(struct truth_reader *r, u64 ip)
{
	bool on = traced(r) && !r->stopped && !r->filtered;
	struct truth_item item = { .kind = on ? TRUTH_RUN_BEGIN : TRUTH_RUN_END, .from = ip };

	if (on == r->is_traced)
		return;
	if (!on && r->has_event && !r->trace_en) {
		item.from = r->event.from;
		flush_event(r, false);
	}
	flush_event(r, true);
	r->is_traced = on;
	if (r->is_run)
		hold(r, &item);
}

static void take_state(struct truth_reader *r)
{
	u64 trace_en = r->now.ctl & VMPT_CTL_TRACE_EN;

	/* Stopped is cleared before TraceEn is set (33.2.5.3). */
	if (trace_en != r->was_enabled) {
		r->stopped = false;
		r->filtered = false;
	}
	r->was_enabled = trace_en;
	/* With the same context only branches matter, and their targets come with the block. */
	if (!r->is_traced || !traced(r))
		arrive(r, r->now.ip);
	settle(r, r->now.ip);
}

static void take_block(struct truth_reader *r, const struct truth_item *item)
{
	u64 ip = item->block->ip;

	if (ip != r->follows) {
		arrive(r, ip);
		settle(r, ip);
	}
	flush_event(r, r->is_traced);
	r->block_ip = ip;
	r->follows = ip;
	for (u32 i = 0; i < item->insns; i++)
		r->follows += item->block->lengths[i];
	if (r->is_traced)
		hold(r, item);
}

/* An event came before the first block where the last branch or event led: its source is there. */
static void take_source(struct truth_reader *r, u64 ip)
{
	if (r->follows && ip >= r->block_ip && ip <= r->follows)
		return;
	arrive(r, ip);
	settle(r, ip);
}

/* Puts into r->held what @item means if only the traced part is wanted: nothing up to three items.
 */
static void cut(struct truth_reader *r, struct truth_item *item)
{
	switch (item->kind) {
	case TRUTH_RUN_STATE:
		take_state(r);
		return;
	case TRUTH_RUN_RANGE:
	case TRUTH_RUN_TIME:
	case TRUTH_RUN_SP:
		return;
	case TRUTH_RUN_BLOCK:
		take_block(r, item);
		return;
	case TRUTH_RUN_EVENT:
		take_source(r, item->from);
		flush_event(r, r->is_traced);
		r->has_event = r->is_traced;
		r->event = *item;
		r->follows = 0;
		return;
	case TRUTH_RUN_BEGIN:
	case TRUTH_RUN_END:
		r->is_run = item->kind == TRUTH_RUN_BEGIN;
		break;
	default:
		break;
	}
	flush_event(r, r->is_traced);
	if (r->is_traced || item->kind == TRUTH_END_OF_FILE)
		hold(r, item);
}

static bool next_traced(struct truth_reader *r, struct truth_item *item)
{
	while (!r->holds) {
		if (!next(r, item))
			return false;
		cut(r, item);
	}
	*item = r->held[0];
	memmove(r->held, r->held + 1, --r->holds * sizeof(*item));
	return true;
}

bool truth_reader_next(struct truth_reader *r, struct truth_item *item)
{
	r->items++;
	if (r->retired)
		free_retired(r, 2 + TRUTH_HELD);
	if (r->traced_only)
		return next_traced(r, item);
	do {
		if (!next(r, item))
			return false;
	} while (item->kind >= TRUTH_RUN_STATE && item->kind <= TRUTH_RUN_SP);
	item->sp = r->now.sp;
	item->has_sp = r->now.has_sp;
	/* Begins and ends of runs may come before their block. */
	if (item->kind == TRUTH_RUN_BLOCK || item->kind == TRUTH_RUN_EVENT)
		r->now.has_sp = false;
	return true;
}

bool truth_reader_open(struct truth_reader *r, const char *path)
{
	u32 magic[2];

	*r = (struct truth_reader){ .fd = STDIN_FILENO };
	r->words = malloc(4 * TRUTH_BUFFER);
	if (!r->words)
		return fail(r, "no memory");
	if (strcmp(path, "-") != 0)
		r->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (r->fd < 0)
		return fail(r, strerror(errno));
	if (!word(r, &magic[0]) || !word(r, &magic[1]) || memcmp(magic, TRUTH_MAGIC, 8) != 0)
		return fail(r, "is not a truth file");
	return true;
}

void truth_reader_close(struct truth_reader *r)
{
	u32 i;

	free_retired(r, 0);
	for (i = 0; i < r->table_size; i++)
		free(r->table[i]);
	free(r->table);
	free(r->words);
	if (r->fd > STDIN_FILENO)
		close(r->fd);
}
