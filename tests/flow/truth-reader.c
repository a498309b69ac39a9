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
	r->blocks++;
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

/* STATE: an item of its own if it begins or ends the traced part of a run. */
static bool take_state(struct truth_reader *r, struct truth_item *item)
{
	bool was = r->is_traced;

	r->is_traced = traced(r);
	item->kind = r->is_traced ? TRUTH_RUN_BEGIN : TRUTH_RUN_END;
	item->from = r->now.ip;
	return r->is_run && r->is_traced != was;
}

/* Whether @item is wanted. */
static bool wanted(struct truth_reader *r, struct truth_item *item)
{
	switch (item->kind) {
	case TRUTH_RUN_STATE:
		return r->traced_only && take_state(r, item);
	case TRUTH_RUN_BEGIN:
	case TRUTH_RUN_END:
		r->is_run = item->kind == TRUTH_RUN_BEGIN;
		break;
	case TRUTH_END_OF_FILE:
		return true;
	default:
		break;
	}
	return !r->traced_only || r->is_traced;
}

bool truth_reader_next(struct truth_reader *r, struct truth_item *item)
{
	r->items++;
	if (r->retired)
		free_retired(r, 2);
	do {
		if (!next(r, item))
			return false;
	} while (!wanted(r, item));
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
