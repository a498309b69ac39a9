// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Assign spans to lines: which vCPU ran, from which exit it returned and whether it moved, and add
 * up the totals of vCPUs, VMs and CPUs. Memory is limited by the number of lines.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/timeline/internal.h"
#include "util/array.h"

/* vCPUs beyond these are one line, "others". */
#define VCPUS_MAX 32768

/* ---- lines ---- */

/* The key of a line: a name with its number, or a VMCS. */
struct line_key {
	const char *vm; /* as given; NULL: .number is a VMCS */
	const char *shown;
	u64 number;
};

static u64 hash_of(const struct timeline_count *c, const struct line_key *key)
{
	u64 h = vmpt_mix64(key->number ^ c->seed);
	const char *vm;

	for (vm = key->vm; vm && *vm; vm++)
		h = vmpt_mix64(h ^ (unsigned char)*vm);
	return h;
}

static bool is_line(const struct timeline *t, u32 i, const struct line_key *key)
{
	const struct timeline_vcpu *v = &t->vcpu[i];
	const struct timeline_vm *vm = &t->vm[v->vm];

	if (!vm->named)
		return !key->vm && v->vmcs == key->number;
	return key->vm && v->number == key->number && !strcmp(vm->given, key->vm);
}

static int add_vm(struct timeline *t, const char *given, const char *name, bool named)
{
	struct timeline_vm *vm;

	if (vmpt_grow(&t->vm, t->vms))
		return cli_no_memory(t->cli);
	vm = &t->vm[t->vms];
	memset(vm, 0, sizeof(*vm));
	vm->name = strdup(name);
	vm->given = strdup(given);
	vm->named = named;
	t->vms++;
	if (!vm->name || !vm->given)
		return cli_no_memory(t->cli);
	return CLI_OK;
}

/* A new line called @name, of VM number @of; TIMELINE_NONE: of a new one. */
static int add_vcpu(struct timeline *t, const struct line_key *key, const char *name, u32 of)
{
	struct timeline_vcpu *v;

	if (of == TIMELINE_NONE) {
		if (add_vm(t, key->vm ? key->vm : name, key->vm ? key->shown : name, key->vm))
			return CLI_FAILED;
		of = (u32)t->vms - 1;
	}
	if (vmpt_grow(&t->vcpu, t->vcpus))
		return cli_no_memory(t->cli);
	v = &t->vcpu[t->vcpus];
	memset(v, 0, sizeof(*v));
	v->vm = of;
	v->number = TIMELINE_NONE;
	v->name = strdup(name);
	if (!v->name)
		return cli_no_memory(t->cli);
	v->next_of_vm = TIMELINE_NONE;
	if (t->vm[of].vcpus++)
		t->vcpu[t->vm[of].last].next_of_vm = (u32)t->vcpus;
	else
		t->vm[of].first = (u32)t->vcpus;
	t->vm[of].last = (u32)t->vcpus;
	t->vcpus++;
	return CLI_OK;
}

/* A line without a VMCS: "vm?", "others". */
static int special(struct timeline *t, u32 *index, const char *name)
{
	static const struct line_key nobody;

	if (*index == TIMELINE_NONE) {
		if (add_vcpu(t, &nobody, name, TIMELINE_NONE))
			return CLI_FAILED;
		*index = (u32)t->vcpus - 1;
		t->vcpu[*index].is_any = true;
	}
	return CLI_OK;
}

/* A new line called @name, of @key's VM (added if new), or of a VM of its own. */
static int add_line(struct timeline_count *c, struct timeline *t, const struct line_key *key,
		    const char *name)
{
	const struct line_key vm = { .vm = key->vm };
	u64 hash = hash_of(c, &vm);
	u32 of = TIMELINE_NONE;

	if (!key->vm)
		return add_vcpu(t, key, name, of);
	of = vmpt_hash_find(&c->vms, hash, i, !strcmp(t->vm[i].given, key->vm));
	if (of == VMPT_HASH_NONE && vmpt_hash_add(&c->vms, hash, (u32)t->vms))
		return cli_no_memory(t->cli);
	return add_vcpu(t, key, name, of == VMPT_HASH_NONE ? TIMELINE_NONE : of);
}

/* The line of a key, added if it is new. */
static int find_line(struct timeline_count *c, struct timeline *t, const struct line_key *key,
		     u64 vmcs, u32 *index)
{
	char name[CLI_WHO + 16]; /* with the vCPU's number */
	u64 hash = hash_of(c, key);

	*index = vmpt_hash_find(&c->lines, hash, i, is_line(t, i, key));
	if (*index != VMPT_HASH_NONE)
		return CLI_OK;
	if (t->vcpus >= VCPUS_MAX) {
		*index = c->others;
		if (special(t, &c->others, "others"))
			return CLI_FAILED;
		*index = c->others;
		return CLI_OK;
	}
	if (key->vm && key->number == TIMELINE_NONE)
		snprintf(name, sizeof(name), "%s", key->shown);
	else if (key->vm)
		snprintf(name, sizeof(name), "%s vcpu %llu", key->shown,
			 (unsigned long long)key->number);
	else
		snprintf(name, sizeof(name), "%llx", (unsigned long long)vmcs);
	if (add_line(c, t, key, name))
		return CLI_FAILED;
	*index = (u32)t->vcpus - 1;
	t->vcpu[*index].number = key->vm ? (u32)key->number : TIMELINE_NONE;
	t->vcpu[*index].vmcs = vmcs;
	if (vmpt_hash_add(&c->lines, hash, *index))
		return cli_no_memory(t->cli);
	return CLI_OK;
}

static int resolve(struct timeline_count *c, struct timeline *t, const struct vmpt_span *s,
		   u32 *index)
{
	struct line_key key = { .number = s->owner.vmcs };
	const struct timeline_name *name;

	if (s->owner.kind != VMPT_OWNER_VM) {
		if (special(t, &c->any, "vm?"))
			return CLI_FAILED;
		*index = c->any;
		return CLI_OK;
	}
	/* One VMCS runs many times in a row. */
	if (c->last != TIMELINE_NONE && c->last_vmcs == s->owner.vmcs &&
	    s->start.tsc >= c->last_from && s->start.tsc <= c->last_to) {
		*index = c->last;
		return CLI_OK;
	}
	name = timeline_names_find(t->names, s->owner.vmcs, s->start.tsc, &c->last_from,
				   &c->last_to);
	if (name) {
		key.vm = name->vm;
		key.shown = name->shown;
		key.number = name->vcpu;
	}
	c->last = TIMELINE_NONE;
	if (find_line(c, t, &key, s->owner.vmcs, index))
		return CLI_FAILED;
	c->last = *index;
	c->last_vmcs = s->owner.vmcs;
	return CLI_OK;
}

/* ---- totals ---- */

static void each_total(struct timeline *t, const struct timeline_span *s,
		       struct timeline_totals *totals[3])
{
	totals[0] = &t->cpu[s->span->stream];
	totals[1] = s->vcpu == TIMELINE_NONE ? NULL : &t->vcpu[s->vcpu].totals;
	totals[2] = s->vcpu == TIMELINE_NONE ? NULL : &t->vm[t->vcpu[s->vcpu].vm].totals;
}

static void add_bounds(struct timeline_bounds *sum, u64 early, u64 late, bool bounded)
{
	sum->early += early;
	sum->late += late;
	sum->open |= !bounded;
}

static void add_span(struct timeline_totals *n, const struct timeline_span *s)
{
	const struct vmpt_span *span = s->span;

	n->spans++;
	n->timed += s->timed;
	n->bytes += span->size;
	n->overflows += span->overflows;
	n->failed_entries += span->failed_entries;
	if (span->kind == VMPT_SPAN_LOST) {
		n->losses += span->losses;
		n->lost += s->end - s->start;
	}
	if (span->kind != VMPT_SPAN_GUEST)
		return;
	n->running += s->end - s->start;
	add_bounds(&n->running_bounds, s->early, s->late, s->bounded);
	n->entries += span->began == VMPT_EDGE_ENTRY;
	n->unsure += span->began == VMPT_EDGE_UNKNOWN || span->ended == VMPT_EDGE_UNKNOWN ||
		     span->overflows;
	n->moves += s->moved_from != TIMELINE_NONE;
	if (span->ended == VMPT_EDGE_EXIT) {
		n->exits++;
		n->halts += span->exit.halted;
		n->guessed += timeline_guessed(&span->exit);
	}
}

static void add_out(struct timeline_totals *n, const struct timeline_span *s)
{
	struct timeline_part_time exited;
	unsigned int p;

	for (p = 0; p < TIMELINE_PARTS; p++)
		timeline_part_add(&n->out[p], &s->out[p]);
	if (!s->has_left)
		return;
	exited = timeline_exited(s);
	timeline_part_add(&n->exited, &exited);
}

/* ---- a span ---- */

static u64 bound(const struct vmpt_time *time, u32 side)
{
	return time->tsc == VMPT_TIME_NONE || side == VMPT_TIME_OPEN ? 0 : side;
}

static void set_times(const struct timeline *t, struct timeline_span *s)
{
	const struct vmpt_time *a = &s->span->start, *b = &s->span->end;
	u64 start = a->tsc, end = b->tsc;

	if (start == VMPT_TIME_NONE)
		start = end;
	if (end == VMPT_TIME_NONE)
		end = start;
	if (start == VMPT_TIME_NONE)
		start = end = t->zero;
	s->start = start > t->zero ? start - t->zero : 0;
	s->end = end > t->zero ? end - t->zero : 0;
	if (s->end < s->start)
		s->end = s->start;
	s->begins = a->tsc != VMPT_TIME_NONE;
	s->timed = s->begins && b->tsc != VMPT_TIME_NONE;
	s->bounded = a->tsc != VMPT_TIME_NONE && b->tsc != VMPT_TIME_NONE &&
		     a->early != VMPT_TIME_OPEN && a->late != VMPT_TIME_OPEN &&
		     b->early != VMPT_TIME_OPEN && b->late != VMPT_TIME_OPEN;
	s->early = bound(b, b->early) + bound(a, a->late);
	s->late = bound(b, b->late) + bound(a, a->early);
	if (s->early > s->end - s->start)
		s->early = s->end - s->start;
}

/* How long the vCPU was out. */
static void set_out(const struct timeline_count *c, const struct timeline_vcpu *v,
		    struct timeline_span *s)
{
	const struct vmpt_time *start = &s->span->start;

	s->left_timed = v->last_timed && s->begins;
	s->no_exit = !v->open;
	s->left_cut = v->last_end < c->from;
	s->left_at = s->left_cut ? c->from : v->last_end;
	if (s->left_at > s->start)
		s->left_at = s->start;
	s->left_offset = v->last_offset;
	s->left_stream = v->last_stream;
	/* Its ends are two edges, as a span's are. */
	s->out_early = (s->left_cut ? 0 : v->last_late) + bound(start, start->early);
	s->out_late = (s->left_cut ? 0 : v->last_early) + bound(start, start->late);
	s->out_bounded = (s->left_cut || !v->last_open) && start->early != VMPT_TIME_OPEN &&
			 start->late != VMPT_TIME_OPEN;
	if (s->out_early > s->start - s->left_at)
		s->out_early = s->start - s->left_at;
}

/* The exit that this entry ends, if nothing on its CPUs can have hidden another. */
static void join_left(struct timeline_count *c, const struct timeline *t,
		      const struct timeline_vcpu *v, struct timeline_span *s)
{
	const struct timeline_cpu *cpu = &c->cpu[v->last_stream];

	if (!v->open || (s->span->began != VMPT_EDGE_ENTRY && s->where != TIMELINE_AFTER) ||
	    c->cpu[s->span->stream].lost_until > v->last_end || cpu->lost_until > v->last_end)
		return;
	s->unseen = s->left_timed && s->span->owner.kind == VMPT_OWNER_VM &&
		    timeline_missing_ran(t->missing, s->span->owner.vmcs, v->last_end + t->zero,
					 s->span->start.tsc);
	s->has_left = !s->unseen;
	s->left = v->left;
	if (s->has_left && s->left_timed)
		timeline_away(s, &v->sums, &cpu->sums, &cpu->last, cpu->last_start, cpu->last_end);
}

/* How the line ends. */
static void leave(const struct timeline_count *c, struct timeline *t, const struct timeline_span *s)
{
	struct timeline_vcpu *v = &t->vcpu[s->vcpu];

	v->ran = true;
	v->open = s->span->ended == VMPT_EDGE_EXIT;
	v->left = s->span->exit;
	v->last_end = s->end;
	v->last_timed = s->span->end.tsc != VMPT_TIME_NONE;
	v->last_late = (u32)bound(&s->span->end, s->span->end.late);
	v->last_early = (u32)bound(&s->span->end, s->span->end.early);
	v->last_open = s->span->end.early == VMPT_TIME_OPEN || s->span->end.late == VMPT_TIME_OPEN;
	v->last_stream = s->span->stream;
	v->last_offset = s->span->offset + s->span->size;
	v->sums = c->cpu[s->span->stream].sums;
}

static void add_to_sums(struct timeline_cpu *cpu, const struct timeline_span *s)
{
	timeline_sums_add(&cpu->sums, s->span, s->start, s->end);
	cpu->last = *s->span;
	cpu->last_start = s->start;
	cpu->last_end = s->end;
}

/* A loss counts for the vCPU before it and for another one after it, in the chosen part. */
static void count_losses(struct timeline_count *c, struct timeline *t,
			 const struct timeline_span *s)
{
	struct timeline_cpu *cpu = &c->cpu[s->span->stream];
	u32 whom = TIMELINE_NONE;

	if (s->span->kind == VMPT_SPAN_LOST) {
		whom = cpu->last_vcpu;
		cpu->after_loss = true;
	} else if (cpu->after_loss) {
		whom = s->vcpu == cpu->last_vcpu ? TIMELINE_NONE : s->vcpu;
		cpu->after_loss = false;
	}
	if (whom != TIMELINE_NONE && s->where == TIMELINE_INSIDE) {
		t->vcpu[whom].totals.losses++;
		t->vm[t->vcpu[whom].vm].totals.losses++;
	}
	if (s->span->kind != VMPT_SPAN_LOST)
		cpu->last_vcpu = s->vcpu;
	if (s->span->kind == VMPT_SPAN_LOST || s->span->kind == VMPT_SPAN_UNKNOWN ||
	    s->span->overflows)
		cpu->lost_until = s->end + 1;
}

/* The time out of @v before @s. */
static void take_out(struct timeline_count *c, const struct timeline *t,
		     const struct timeline_vcpu *v, struct timeline_span *s)
{
	set_out(c, v, s);
	join_left(c, t, v, s);
	if (s->left_timed && !s->has_left && !v->is_any)
		timeline_away_unknown(s);
}

/* The owner of the run, its previous CPU, and the exit it returns from. */
static int take_run(struct timeline_count *c, struct timeline *t, struct timeline_span *s)
{
	const struct vmpt_time *start = &s->span->start;
	struct timeline_vcpu *v;

	if (resolve(c, t, s->span, &s->vcpu))
		return CLI_FAILED;
	v = &t->vcpu[s->vcpu];
	/* At --from it is in the guest. */
	if (s->span->began == VMPT_EDGE_CUT)
		return CLI_OK;
	if (v->ran)
		take_out(c, t, v, s);
	if (!v->ran || v->last_stream == s->span->stream || v->is_any)
		return CLI_OK;
	s->moved_from = v->last_stream;
	/* A vCPU cannot run on two CPUs at once. */
	if (start->late != VMPT_TIME_OPEN && s->start + start->late + v->last_early < v->last_end)
		v->overlaps++;
	return CLI_OK;
}

static void add_outs(struct timeline_totals *const totals[3], const struct timeline_span *s)
{
	int i;

	for (i = 0; i < 3 && totals[i]; i++) {
		if (s->left_timed)
			add_out(totals[i], s);
		totals[i]->unseens += s->unseen;
		totals[i]->unseen += s->unseen ? s->start - s->left_at : 0;
	}
}

static void start_span(const struct timeline *t, const struct vmpt_span *span, u8 where,
		       struct timeline_span *s)
{
	memset(s, 0, sizeof(*s));
	s->span = span;
	s->where = where;
	s->vcpu = s->moved_from = TIMELINE_NONE;
	set_times(t, s);
}

int timeline_count_span(struct timeline_count *c, struct timeline *t, const struct vmpt_span *span,
			struct timeline_span *s)
{
	struct timeline_totals *totals[3];
	int i;

	start_span(t, span, TIMELINE_INSIDE, s);
	if (s->end > t->last)
		t->last = s->end;
	if (span->kind == VMPT_SPAN_GUEST && take_run(c, t, s))
		return CLI_FAILED;
	count_losses(c, t, s);
	each_total(t, s, totals);
	for (i = 0; i < 3 && totals[i]; i++)
		add_span(totals[i], s);
	add_outs(totals, s);
	add_to_sums(&c->cpu[span->stream], s);
	if (s->vcpu != TIMELINE_NONE)
		leave(c, t, s);
	return CLI_OK;
}

/* The sums of CPUs begin at --from, so a vCPU that exited before it has none. */
int timeline_count_before(struct timeline_count *c, struct timeline *t,
			  const struct vmpt_span *span, struct timeline_span *s)
{
	start_span(t, span, TIMELINE_BEFORE, s);
	if (span->kind == VMPT_SPAN_GUEST && resolve(c, t, span, &s->vcpu))
		return CLI_FAILED;
	count_losses(c, t, s);
	if (s->vcpu != TIMELINE_NONE)
		leave(c, t, s);
	return CLI_OK;
}

size_t timeline_count_await(struct timeline *t, u64 to)
{
	size_t i, n = 0;

	for (i = 0; i < t->vcpus; i++) {
		struct timeline_vcpu *v = &t->vcpu[i];

		v->awaited = v->ran && v->last_timed && v->last_end < to && !v->is_any;
		n += v->awaited;
	}
	return n;
}

int timeline_count_after(struct timeline_count *c, struct timeline *t, const struct vmpt_span *span,
			 bool *back)
{
	u32 vcpu;

	*back = false;
	if (span->kind != VMPT_SPAN_GUEST)
		return CLI_OK;
	if (resolve(c, t, span, &vcpu))
		return CLI_FAILED;
	*back = t->vcpu[vcpu].awaited;
	t->vcpu[vcpu].awaited = false;
	t->vcpu[vcpu].back |= *back;
	return CLI_OK;
}

void timeline_count_out(struct timeline_count *c, struct timeline *t, u32 vcpu, u64 to,
			struct vmpt_span *span, struct timeline_span *s)
{
	struct timeline_vcpu *v = &t->vcpu[vcpu];
	struct timeline_totals *totals[3];

	*span = (struct vmpt_span){
		.stream = v->last_stream,
		.kind = VMPT_SPAN_GUEST,
		.began = VMPT_EDGE_CUT,
		.ended = VMPT_EDGE_CUT,
		.owner = { .kind = VMPT_OWNER_VM, .vmcs = v->vmcs },
		.start = { .tsc = to },
		.end = { .tsc = to },
		.offset = v->last_offset,
	};
	start_span(t, span, TIMELINE_AFTER, s);
	s->vcpu = vcpu;
	take_out(c, t, v, s);
	each_total(t, s, totals);
	add_outs(totals, s);
}

int timeline_count_open(struct timeline_count *c, struct timeline *t)
{
	size_t i;

	memset(c, 0, sizeof(*c));
	c->seed = timeline_seed();
	c->last = c->any = c->others = TIMELINE_NONE;
	t->cpu = calloc(t->cli->streams, sizeof(*t->cpu));
	c->cpu = calloc(t->cli->streams, sizeof(*c->cpu));
	if (!t->cpu || !c->cpu)
		return cli_no_memory(t->cli);
	for (i = 0; i < t->cli->streams; i++)
		c->cpu[i].last_vcpu = TIMELINE_NONE;
	return CLI_OK;
}

void timeline_count_close(struct timeline_count *c, struct timeline *t)
{
	size_t i;

	for (i = 0; i < t->vcpus; i++)
		free(t->vcpu[i].name);
	for (i = 0; i < t->vms; i++) {
		free(t->vm[i].name);
		free(t->vm[i].given);
	}
	free(t->vcpu);
	free(t->vm);
	free(t->cpu);
	free(c->cpu);
	vmpt_hash_free(&c->lines);
	vmpt_hash_free(&c->vms);
}
