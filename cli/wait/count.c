// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Whose runs a vCPU waited for: each run of a guest counts for the vCPUs that exited on that CPU
 * and have not entered since (docs/timeline.md). The host's time and the rest are in the time
 * line's totals.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/wait/wait.h"
#include "util/array.h"

/* The time another vCPU ran. */
struct wait_for {
	u32 whom;
	struct timeline_part_time time;
	u64 host; /* between two of its runs */
};

/* A vCPU out of the guest. */
struct wait_out {
	u32 stream; /* that it is in the list of, or TIMELINE_NONE */
	struct wait_for *of;
	size_t count;
	u64 waited; /* for others in the guest, in all */
	u64 times[TIMELINE_PARTS];
	struct timeline_longest longest[TIMELINE_PARTS];
};

struct wait_cpu {
	u32 out[WAIT_OUT_MAX]; /* vCPUs, the one that exited first is first */
	size_t count;
	/* The last run of a guest on it */
	u32 vcpu;
	u64 end;
	bool host; /* since then it ran the host only */
};

static int grow_outs(struct wait *w, const struct timeline *t)
{
	size_t i;

	if (!w->cpu) {
		w->cpu = calloc(t->cli->streams, sizeof(*w->cpu));
		if (!w->cpu)
			return cli_no_memory(t->cli);
		for (i = 0; i < t->cli->streams; i++)
			w->cpu[i].vcpu = TIMELINE_NONE;
	}
	while (w->outs < t->vcpus) {
		if (vmpt_grow(&w->out, w->outs))
			return cli_no_memory(t->cli);
		w->out[w->outs++] = (struct wait_out){ .stream = TIMELINE_NONE };
	}
	return CLI_OK;
}

/* ---- vCPUs that are out ---- */

static void leave_list(struct wait *w, u32 vcpu)
{
	struct wait_out *o = &w->out[vcpu];
	struct wait_cpu *cpu;
	size_t i;

	if (o->stream == TIMELINE_NONE)
		return;
	cpu = &w->cpu[o->stream];
	for (i = 0; i < cpu->count && cpu->out[i] != vcpu; i++)
		;
	if (i < cpu->count)
		memmove(&cpu->out[i], &cpu->out[i + 1], (--cpu->count - i) * sizeof(cpu->out[0]));
	o->stream = TIMELINE_NONE;
}

static void join_list(struct wait *w, u32 vcpu, u32 stream)
{
	struct wait_cpu *cpu = &w->cpu[stream];

	if (cpu->count == WAIT_OUT_MAX) {
		/* What it waits for is others' then. */
		w->out[cpu->out[0]].count = 0;
		leave_list(w, cpu->out[0]);
	}
	cpu->out[cpu->count++] = vcpu;
	w->out[vcpu].stream = stream;
}

/* Whether the host ran, before the run @s, since the same vCPU ran there, which was not idle. */
static bool is_resumed(const struct wait_cpu *cpu, const struct timeline_span *s)
{
	return cpu->host && cpu->vcpu == s->vcpu && s->has_left && s->left_timed &&
	       !s->left.halted && s->moved_from == TIMELINE_NONE;
}

/* The run @s of another vCPU while @vcpu is out; @resumed: and the host's time before it. */
static int add_run(struct wait *w, const struct timeline *t, u32 vcpu,
		   const struct timeline_span *s, bool resumed)
{
	const struct timeline_part_time time = {
		.ticks = s->end - s->start,
		.early = s->early,
		.late = s->late,
		.open = !s->bounded,
	};
	struct wait_out *o = &w->out[vcpu];
	size_t i;

	for (i = 0; i < o->count && o->of[i].whom != s->vcpu; i++)
		;
	if (i == WAIT_FOR_MAX)
		return CLI_OK;
	if (i == o->count) {
		if (vmpt_grow(&o->of, o->count))
			return cli_no_memory(t->cli);
		o->of[o->count++] = (struct wait_for){ .whom = s->vcpu };
	}
	/* If @vcpu exited after the run before, another would have run in between. */
	if (resumed)
		o->of[i].host += s->start - s->left_at;
	timeline_part_add(&o->of[i].time, &time);
	return CLI_OK;
}

/* ---- the end of a wait ---- */

static struct wait_row *find_pair(struct wait *w, const struct timeline *t, u32 vcpu, u32 whom)
{
	u64 hash = vmpt_mix64((u64)vcpu << 32 | whom);
	u32 i = vmpt_hash_find(&w->pairs, hash, k,
			       w->row[k].vcpu == vcpu && w->row[k].whom == whom);

	if (i != VMPT_HASH_NONE)
		return &w->row[i];
	if (w->rows >= WAIT_PAIRS_MAX)
		return NULL;
	if (vmpt_grow(&w->row, w->rows) || vmpt_hash_add(&w->pairs, hash, (u32)w->rows)) {
		cli_no_memory(t->cli);
		t->cli->out_of_memory = true;
		return NULL;
	}
	w->row[w->rows++] = (struct wait_row){ .vcpu = vcpu, .whom = whom, .kind = WAIT_VCPU };
	return &w->row[w->rows - 1];
}

/* The same doubt as the whole WAIT part has, see timeline_away(). */
static void set_doubt(const struct timeline_span *s, struct timeline_part_time *time)
{
	if (!s->in_doubt)
		return;
	time->guessed = true;
	if (!s->left.halted) {
		time->early = time->ticks;
		return;
	}
	time->late += time->ticks;
	time->ticks = time->early = 0;
}

static void add_pair(struct wait *w, const struct timeline *t, const struct timeline_span *s,
		     struct wait_for *f)
{
	struct wait_row *row = find_pair(w, t, s->vcpu, f->whom);

	if (!row)
		return;
	if (f->time.early > f->time.ticks)
		f->time.early = f->time.ticks;
	set_doubt(s, &f->time);
	timeline_part_add(&row->time, &f->time);
	row->host += f->time.ticks ? f->host : 0;
	row->times += f->time.ticks > 0;
	timeline_longest_take(&row->longest, s, f->time.ticks);
}

/* The other vCPU still ran when @s began on another CPU: that is no more waiting. */
static void cut_last(const struct wait *w, const struct timeline_span *s)
{
	struct wait_out *o = &w->out[s->vcpu];
	const struct wait_cpu *cpu;
	u64 over;
	size_t i;

	if (o->stream == TIMELINE_NONE)
		return;
	cpu = &w->cpu[o->stream];
	if (cpu->end <= s->start)
		return;
	over = cpu->end - s->start;
	for (i = 0; i < o->count; i++) {
		struct timeline_part_time *time = &o->of[i].time;

		if (o->of[i].whom != cpu->vcpu)
			continue;
		time->ticks -= over < time->ticks ? over : time->ticks;
		/* The entry is the edge now. */
		time->early += s->out_early;
		time->late += s->out_late;
		time->open |= !s->out_bounded;
	}
}

/* @s ends the time out of its vCPU. */
static void end_wait(struct wait *w, const struct timeline *t, const struct timeline_span *s)
{
	struct wait_out *o = &w->out[s->vcpu];
	bool proved_halt = s->left.halted && !s->in_doubt;
	unsigned int p;
	size_t i;

	cut_last(w, s);
	for (i = 0; s->has_left && s->left_timed && !proved_halt && i < o->count; i++)
		add_pair(w, t, s, &o->of[i]);
	for (p = 0; s->left_timed && p < TIMELINE_PARTS; p++) {
		o->times[p] += s->out[p].ticks > 0;
		timeline_longest_take(&o->longest[p], s, s->out[p].ticks);
	}
	o->count = 0;
}

int wait_span(struct wait *w, const struct timeline *t, const struct timeline_span *s)
{
	bool inside = s->where == TIMELINE_INSIDE;
	struct wait_cpu *cpu;
	bool resumed;
	size_t i;

	if (grow_outs(w, t))
		return CLI_FAILED;
	cpu = &w->cpu[s->span->stream];
	if (s->vcpu == TIMELINE_NONE) {
		cpu->host &= s->span->kind == VMPT_SPAN_HOST;
		return CLI_OK;
	}
	end_wait(w, t, s);
	leave_list(w, s->vcpu);
	if (s->where == TIMELINE_AFTER)
		return t->cli->out_of_memory ? CLI_FAILED : CLI_OK;
	resumed = is_resumed(cpu, s);
	for (i = 0; inside && i < cpu->count; i++)
		if (add_run(w, t, cpu->out[i], s, resumed))
			return CLI_FAILED;
	cpu->host = true;
	cpu->vcpu = s->vcpu;
	cpu->end = s->end;
	if (s->span->ended == VMPT_EDGE_EXIT)
		join_list(w, s->vcpu, s->span->stream);
	return t->cli->out_of_memory ? CLI_FAILED : CLI_OK;
}

/* ---- what is shown ---- */

/* The parts of @vcpu that are no pairs: of WAIT @rest, what is in no pair. */
static int add_parts(struct wait *w, const struct timeline *t, u32 vcpu,
		     const struct timeline_part_time *rest)
{
	const struct timeline_totals *n = &t->vcpu[vcpu].totals;
	const struct wait_out *o = &w->out[vcpu];
	unsigned int p;

	for (p = 0; p < WAIT_KINDS; p++) {
		struct wait_row row = { .vcpu = vcpu, .whom = TIMELINE_NONE, .kind = (u8)p };

		if (p == WAIT_VCPU)
			continue;
		row.time = p == WAIT_OTHERS ? *rest : n->out[p];
		row.times = p == WAIT_OTHERS ? 0 : o->times[p];
		if (p != WAIT_OTHERS)
			row.longest = o->longest[p];
		if (!row.time.ticks)
			continue;
		if (vmpt_grow(&w->row, w->rows))
			return cli_no_memory(t->cli);
		w->row[w->rows++] = row;
	}
	return CLI_OK;
}

static int compare(u64 x, u64 y)
{
	return x < y ? -1 : x > y;
}

/* The vCPU that waited longest for others' runs first; its rows by time, its idle time last. */
static int by_wait(const void *a, const void *b, void *opaque)
{
	const struct wait_row *x = a, *y = b;
	const struct wait *w = opaque;
	int c;

	if (x->vcpu != y->vcpu) {
		c = compare(w->out[y->vcpu].waited, w->out[x->vcpu].waited);
		return c ? c : compare(x->vcpu, y->vcpu);
	}
	c = compare(x->kind == WAIT_HALTED, y->kind == WAIT_HALTED);
	c = c ? c : compare(y->time.ticks, x->time.ticks);
	c = c ? c : compare(x->kind, y->kind);
	return c ? c : compare(x->whom, y->whom);
}

static void take_off(struct timeline_part_time *part, u64 ticks)
{
	part->ticks -= ticks < part->ticks ? ticks : part->ticks;
	if (!part->ticks)
		*part = (struct timeline_part_time){ 0 };
}

int wait_finish(struct wait *w, const struct timeline *t)
{
	size_t pairs = w->rows, i, n = 0;
	struct timeline_part_time *rest = calloc(t->vcpus + 1, sizeof(*rest));

	if (!rest || grow_outs(w, t)) {
		free(rest);
		return rest ? CLI_FAILED : cli_no_memory(t->cli);
	}
	for (i = 0; i < t->vcpus; i++)
		rest[i] = t->vcpu[i].totals.out[TIMELINE_WAIT];
	for (i = 0; i < pairs; i++) {
		const struct wait_row *row = &w->row[i];

		take_off(&rest[row->vcpu], row->time.ticks);
		w->out[row->vcpu].waited += row->time.ticks;
	}
	for (i = 0; i < t->vcpus; i++)
		if (add_parts(w, t, (u32)i, &rest[i]))
			break;
	free(rest);
	if (i < t->vcpus)
		return CLI_FAILED;
	/* Only those of --owner; what a guess alone makes possible is in the bounds. */
	for (i = 0; i < w->rows; i++)
		if (t->vcpu[w->row[i].vcpu].wanted && w->row[i].time.ticks)
			w->row[n++] = w->row[i];
	w->rows = n;
	if (n)
		qsort_r(w->row, n, sizeof(*w->row), by_wait, w);
	return CLI_OK;
}

const char *wait_whom(const struct timeline *t, const struct wait_row *row)
{
	static const char *const word[] = {
		[WAIT_HOST] = "host",
		[WAIT_HALTED] = "halted",
		[WAIT_UNTRACED] = "not traced",
		[WAIT_OTHERS] = "others",
	};

	return row->kind == WAIT_VCPU ? t->vcpu[row->whom].name : word[row->kind];
}

void wait_free(struct wait *w)
{
	size_t i;

	for (i = 0; i < w->outs; i++)
		free(w->out[i].of);
	free(w->out);
	free(w->row);
	free(w->cpu);
	vmpt_hash_free(&w->pairs);
}
