// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Reads truth of times. Malformed input is an error; nothing after it is used. */
#include "times.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/pt-regs.h"
#include "model/times-format.h"
#include "util/array.h"

struct reader {
	FILE *file;
	struct times *times;
	const char *wrong;
	u64 tsc, ctl;
	struct move last; /* entry */
	unsigned int cpu;
};

static u64 number(struct reader *r)
{
	u64 v = 0;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		int byte = getc(r->file);

		if (byte == EOF)
			break;
		v |= (u64)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	r->wrong = "a number is truncated";
	return 0;
}

static void made(struct reader *r, u64 bytes)
{
	struct times *t = r->times;
	struct made *last = t->made_count ? &t->made[t->made_count - 1] : NULL;

	t->size += bytes;
	if (last && last->tsc == r->tsc) {
		last->end = t->size;
		return;
	}
	if (vmpt_grow(&t->made, t->made_count))
		abort();
	t->made[t->made_count++] = (struct made){ t->size, r->tsc };
}

static void lost(struct reader *r, u64 bytes)
{
	struct times *t = r->times;

	if (bytes > t->size) {
		r->wrong = "more bytes are lost than were made";
		return;
	}
	t->size -= bytes;
	while (t->made_count > 1 && t->made[t->made_count - 2].end >= t->size)
		t->made_count--;
	if (t->made_count)
		t->made[t->made_count - 1].end = t->size;
}

static void move(struct reader *r, bool entry)
{
	struct times *t = r->times;
	struct move *move;

	if (vmpt_grow(&t->moves, t->move_count))
		abort();
	move = &t->moves[t->move_count++];
	*move = (struct move){ .at = t->size,
			       .tsc = r->tsc,
			       .entry = entry,
			       .cpu = r->cpu,
			       .traced = r->ctl & VMPT_CTL_TRACE_EN };
	move->vmcs = number(r);
	if (entry) {
		move->offset = number(r);
		move->multiplier = number(r);
		r->last = *move;
		return;
	}
	move->reason = (u32)number(r);
	if (r->last.vmcs == move->vmcs) {
		move->offset = r->last.offset;
		move->multiplier = r->last.multiplier;
	}
}

static void record(struct reader *r, int kind)
{
	u64 v;

	switch (kind) {
	case TIMES_AT:
		v = number(r);
		r->tsc = v ? r->tsc - number(r) : r->tsc + number(r);
		break;
	case TIMES_MADE:
		made(r, number(r));
		break;
	case TIMES_LOST:
		lost(r, number(r));
		break;
	case TIMES_ENTRY:
	case TIMES_EXIT:
		move(r, kind == TIMES_ENTRY);
		break;
	case TIMES_CTL:
		r->ctl = number(r);
		if (r->ctl & VMPT_CTL_TRACE_EN)
			r->times->ctl = r->ctl;
		break;
	default:
		r->wrong = "unknown kind of record";
	}
}

const char *times_read(struct times *times, const char *path, unsigned int cpu)
{
	struct reader r = { .times = times, .cpu = cpu };
	char magic[8];
	int kind;

	memset(times, 0, sizeof(*times));
	r.file = fopen(path, "rbe");
	if (!r.file)
		return "it cannot be opened";
	if (fread(magic, 1, 8, r.file) != 8 || memcmp(magic, TIMES_MAGIC, 8))
		r.wrong = "it is not a truth of times";
	while (!r.wrong && (kind = getc(r.file)) != EOF)
		record(&r, kind);
	fclose(r.file);
	return r.wrong;
}

void times_free(struct times *times)
{
	free(times->made);
	free(times->moves);
	memset(times, 0, sizeof(*times));
}

u64 times_at(const struct times *times, u64 position, size_t *hint)
{
	size_t i = *hint < times->made_count ? *hint : 0;

	if (!times->made_count)
		return 0;
	while (i && times->made[i - 1].end > position)
		i--;
	while (i + 1 < times->made_count && times->made[i].end <= position)
		i++;
	*hint = i;
	return times->made[i].tsc;
}
