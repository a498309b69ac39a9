// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt timeline --json: spans as objects, one per line, or the totals. */
#include <stdlib.h>
#include <string.h>

#include "cli/timeline/internal.h"
#include "util/array.h"

/* The last exit of a vCPU, until its next entry shows how long it was out. */
struct json_exit {
	bool open;
	bool timed; /* so is .at */
	u32 stream;
	u64 at; /* ticks from time 0 */
	struct vmpt_time tsc;
	struct vmpt_owner owner;
	struct vmpt_exit exit;
};

struct timeline_json {
	struct cli *cli;
	u64 head, lines;
	bool summary;
	bool any;		/* an object is out */
	struct json_exit *left; /* by vCPU */
	size_t lefts;
};

static const char *edge(unsigned int e)
{
	static const char *const word[] = {
		[VMPT_EDGE_UNKNOWN] = "unknown", [VMPT_EDGE_ENTRY] = "entry",
		[VMPT_EDGE_EXIT] = "exit",	 [VMPT_EDGE_SWITCH] = "switch",
		[VMPT_EDGE_TRACE] = "trace",	 [VMPT_EDGE_CUT] = "cut",
	};

	return word[e];
}

void timeline_json_ticks(struct cli *cli, const struct timeline *t, json_t *o, const char *key,
			 u64 ticks, bool known)
{
	char name[32];

	snprintf(name, sizeof(name), "%s_%s", key, t->hz > 0 ? "ns" : "ticks");
	if (!known)
		cli_json_set(cli, o, name, json_null());
	else if (t->hz > 0)
		cli_json_ns(cli, o, name, timeline_seconds(t, ticks));
	else
		cli_json_number(cli, o, name, ticks);
}

/* The TSC and its bounds; null where nothing is known. */
static void set_tsc(struct cli *cli, json_t *o, const char *key, const struct vmpt_time *time)
{
	json_t *bounds;

	if (time->tsc == VMPT_TIME_NONE) {
		cli_json_set(cli, o, key, json_null());
		return;
	}
	cli_json_hex(cli, o, key, time->tsc);
	bounds = json_array();
	cli_json_add(cli, bounds,
		     time->early == VMPT_TIME_OPEN ? json_null() : json_integer(time->early));
	cli_json_add(cli, bounds,
		     time->late == VMPT_TIME_OPEN ? json_null() : json_integer(time->late));
	cli_json_set(cli, o, !strcmp(key, "tsc") ? "tsc_bounds" : "end_bounds", bounds);
}

static void set_start(struct cli *cli, const struct timeline *t, json_t *o, u64 ticks, bool given)
{
	if (given)
		timeline_json_when(cli, t, o, "start", ticks);
	else
		timeline_json_ticks(cli, t, o, "start", ticks, false);
}

void timeline_json_when(struct cli *cli, const struct timeline *t, json_t *o, const char *key,
			u64 ticks)
{
	char name[32], buf[24];
	s64 ns;

	if (t->times.clock == CLI_WHEN_START ||
	    !cli_when_ns(&t->times, t->times.clock, t->zero + ticks, &ns, NULL)) {
		timeline_json_ticks(cli, t, o, key, ticks, true);
		return;
	}
	snprintf(name, sizeof(name), "%s_ns", key);
	snprintf(buf, sizeof(buf), "%lld", (long long)ns);
	cli_json_set(cli, o, name, ns >> 53 ? json_string(buf) : json_integer(ns));
}

void timeline_json_longest(struct cli *cli, const struct timeline *t, json_t *o,
			   const struct timeline_longest *longest)
{
	json_t *one = json_object();
	const struct timeline_vcpu *v;

	cli_json_set(cli, o, "longest", longest->given ? one : json_null());
	if (!longest->given) {
		json_decref(one);
		return;
	}
	v = &t->vcpu[longest->vcpu];
	timeline_json_when(cli, t, one, "at", longest->at);
	cli_json_hex(cli, one, "tsc", t->zero + longest->at);
	timeline_json_ticks(cli, t, one, "length", longest->ticks, true);
	cli_json_stream(cli, one, t->cli->stream[longest->stream]);
	cli_json_number(cli, one, "offset", longest->offset);
	timeline_json_vm(cli, t, one, &t->vm[v->vm]);
	if (v->number != TIMELINE_NONE)
		cli_json_number(cli, one, "vcpu", v->number);
}

static void set_zero(struct cli *cli, const struct timeline *t, json_t *doc)
{
	if (t->timed)
		cli_json_hex(cli, doc, "start_tsc", t->zero);
	else
		cli_json_set(cli, doc, "start_tsc", json_null());
	cli_json_hertz(cli, doc, t->hz);
	cli_json_string(cli, doc, "clock", cli_when_name(t->times.clock));
}

static json_t *exit_object(struct cli *cli, const struct vmpt_exit *e)
{
	json_t *o = json_object();
	char buf[32];

	if (e->source == VMPT_REASON_NONE)
		cli_json_set(cli, o, "reason", json_null());
	else
		cli_json_number(cli, o, "reason", e->reason);
	cli_json_string(cli, o, "name", timeline_reason(e, buf));
	cli_json_string(cli, o, "source", timeline_reason_source(e));
	cli_json_set(cli, o, "guessed", json_boolean(timeline_guessed(e)));
	cli_json_set(cli, o, "halted", json_boolean(e->halted));
	if (e->has_ip)
		cli_json_hex(cli, o, "ip", e->ip);
	if (e->cr3)
		cli_json_hex(cli, o, "cr3", e->cr3);
	if (e->has_qualification)
		cli_json_hex(cli, o, "qualification", e->qualification);
	return o;
}

void timeline_json_vm(struct cli *cli, const struct timeline *t, json_t *o,
		      const struct timeline_vm *vm)
{
	const struct timeline_vcpu *v = &t->vcpu[vm->first];
	json_t *given;

	if (!vm->named && v->is_any) {
		cli_json_string(cli, o, "owner", "vm_any");
	} else if (!vm->named) {
		cli_json_hex(cli, o, "vmcs", v->vmcs);
	} else {
		/* A process's name need not be UTF-8. */
		given = json_string(vm->given);
		cli_json_set(cli, o, "vm", given ? given : json_string(vm->name));
	}
}

static void set_line(struct cli *cli, const struct timeline *t, json_t *o, u32 vcpu)
{
	const struct timeline_vcpu *v = &t->vcpu[vcpu];

	if (t->vm[v->vm].named)
		timeline_json_vm(cli, t, o, &t->vm[v->vm]);
	if (v->number != TIMELINE_NONE)
		cli_json_number(cli, o, "vcpu", v->number);
}

static int json_begin(void *opaque, const struct timeline *t)
{
	struct timeline_json *j = opaque;
	json_t *doc;

	if (j->summary)
		return CLI_OK;
	doc = cli_json_document(t->cli);
	set_zero(t->cli, t, doc);
	cli_json_list_open(t->cli, doc, "spans", stdout);
	return CLI_OK;
}

/* ---- exits: objects of their own, written when the vCPU is back, or at the end ---- */

static void put(struct timeline_json *j, json_t *o)
{
	cli_json_list_add(j->cli, o, !j->any, stdout);
	j->any = true;
}

static void set_owner(struct cli *cli, const struct timeline *t, json_t *o,
		      const struct vmpt_owner *owner, u32 vcpu)
{
	if (owner->kind == VMPT_OWNER_VM)
		cli_json_hex(cli, o, "vmcs", owner->vmcs);
	set_line(cli, t, o, vcpu);
	cli_json_string(cli, o, "sure", cli_sure_name(owner->sure));
}

/* @back: the vCPU's next span; NULL: there is none. */
static void put_exit(struct timeline_json *j, const struct timeline *t, u32 vcpu,
		     const struct timeline_span *back)
{
	struct json_exit *left = &j->left[vcpu];
	bool known = back && back->has_left && back->left_timed;
	struct cli *cli = j->cli;
	json_t *o = json_object();

	left->open = false;
	cli_json_string(cli, o, "kind", "exit");
	cli_json_stream(cli, o, cli->stream[left->stream]);
	set_start(cli, t, o, left->at, left->timed);
	set_tsc(cli, o, "tsc", &left->tsc);
	timeline_json_ticks(cli, t, o, "out", known ? back->start - back->left_at : 0, known);
	if (back && back->unseen)
		timeline_json_ticks(cli, t, o, "unseen", back->start - back->left_at, true);
	set_owner(cli, t, o, &left->owner, vcpu);
	cli_json_set(cli, o, "exit", exit_object(cli, &left->exit));
	put(j, o);
}

static int note_exit(struct timeline_json *j, const struct timeline *t,
		     const struct timeline_span *s)
{
	const struct vmpt_span *span = s->span;

	if (vmpt_reserve_zeroed(&j->left, &j->lefts, t->vcpus))
		return cli_no_memory(j->cli);
	if (j->left[s->vcpu].open)
		put_exit(j, t, s->vcpu, s);
	if (span->kind == VMPT_SPAN_GUEST && span->ended == VMPT_EDGE_EXIT)
		j->left[s->vcpu] = (struct json_exit){
			.open = true,
			.timed = s->timed,
			.stream = span->stream,
			.at = s->end,
			.tsc = span->end,
			.owner = span->owner,
			.exit = span->exit,
		};
	return CLI_OK;
}

static int json_span(void *opaque, const struct timeline *t, const struct timeline_span *s)
{
	struct timeline_json *j = opaque;
	const struct vmpt_span *span = s->span;
	struct cli *cli = t->cli;
	json_t *o;

	if (j->summary || (j->head && j->lines == j->head))
		return CLI_OK;
	if (s->vcpu != TIMELINE_NONE && note_exit(j, t, s))
		return CLI_FAILED;
	j->lines++;
	o = json_object();
	cli_json_string(cli, o, "kind", timeline_kind(span));
	cli_json_stream(cli, o, cli->stream[span->stream]);
	set_start(cli, t, o, s->start, s->begins);
	timeline_json_ticks(cli, t, o, "length", s->end - s->start, s->timed);
	set_tsc(cli, o, "tsc", &span->start);
	set_tsc(cli, o, "end_tsc", &span->end);
	cli_json_number(cli, o, "offset", span->offset);
	cli_json_number(cli, o, "bytes", span->size);
	cli_json_string(cli, o, "began", edge(span->began));
	cli_json_string(cli, o, "ended", edge(span->ended));
	if (s->vcpu != TIMELINE_NONE)
		set_owner(cli, t, o, &span->owner, s->vcpu);
	if (s->moved_from != TIMELINE_NONE)
		cli_json_number(cli, o, "moved_from_cpu", (u64)cli->stream[s->moved_from]->cpu);
	if (span->kind == VMPT_SPAN_GUEST && span->ended == VMPT_EDGE_EXIT)
		cli_json_set(cli, o, "exit", exit_object(cli, &span->exit));
	if (span->overflows)
		cli_json_number(cli, o, "overflows", span->overflows);
	if (span->failed_entries)
		cli_json_number(cli, o, "failed_entries", span->failed_entries);
	cli_json_back(cli, o, span->back);
	put(j, o);
	return CLI_OK;
}

/* "KEY_ns", "KEY_error_ns", and "KEY_guessed" if guesses are why the error is large. */
static void set_part(struct cli *cli, const struct timeline *t, json_t *o, const char *key,
		     const struct timeline_part_time *part, bool given)
{
	char name[32];

	timeline_json_ticks(cli, t, o, key, part->ticks, given);
	snprintf(name, sizeof(name), "%s_error", key);
	timeline_json_ticks(cli, t, o, name, timeline_part_error(part), given && !part->open);
	snprintf(name, sizeof(name), "%s_guessed", key);
	cli_json_set(cli, o, name, json_boolean(part->guessed));
}

static json_t *totals_object(struct cli *cli, const struct timeline *t,
			     const struct timeline_totals *n)
{
	json_t *o = json_object();
	bool given = n->timed || !n->spans;
	unsigned int i;

	timeline_json_ticks(cli, t, o, "running", n->running, given);
	timeline_json_ticks(cli, t, o, "running_error", timeline_error(&n->running_bounds),
			    given && !n->running_bounds.open);
	set_part(cli, t, o, "exited", &n->exited, given);
	for (i = 0; i < TIMELINE_PARTS; i++)
		set_part(cli, t, o, timeline_part_name(i), &n->out[i], given);
	timeline_json_ticks(cli, t, o, "unseen", n->unseen, given);
	cli_json_number(cli, o, "unseens", n->unseens);
	cli_json_number(cli, o, "entries", n->entries);
	cli_json_number(cli, o, "exits", n->exits);
	cli_json_number(cli, o, "guessed", n->guessed);
	cli_json_number(cli, o, "halts", n->halts);
	cli_json_number(cli, o, "moves", n->moves);
	cli_json_number(cli, o, "loss_count", n->losses);
	cli_json_number(cli, o, "unsure", n->unsure);
	cli_json_number(cli, o, "overflows", n->overflows);
	cli_json_number(cli, o, "failed_entries", n->failed_entries);
	cli_json_number(cli, o, "spans", n->spans);
	cli_json_number(cli, o, "bytes", n->bytes);
	return o;
}

static void print_summary(struct cli *cli, const struct timeline *t)
{
	json_t *doc = cli_json_document(cli), *cpus = json_array();
	bool first = true;
	size_t i;
	u32 k;

	set_zero(cli, t, doc);
	timeline_json_ticks(cli, t, doc, "length", timeline_lasts(t), t->timed);
	for (i = 0; i < cli->streams; i++) {
		json_t *o = totals_object(cli, t, &t->cpu[i]);

		cli_json_stream(cli, o, cli->stream[i]);
		timeline_json_ticks(cli, t, o, "lost", t->cpu[i].lost,
				    t->cpu[i].timed || !t->cpu[i].spans);
		cli_json_add(cli, cpus, o);
	}
	cli_json_set(cli, doc, "cpus", cpus);
	cli_json_list_open(cli, doc, "vms", stdout);
	for (i = 0; i < t->vms && !cli_output_failed(cli); i++) {
		json_t *o, *vcpus;

		if (!t->vm[i].wanted)
			continue;
		o = t->vm[i].wanted == t->vm[i].inside ? totals_object(cli, t, &t->vm[i].totals)
						       : json_object();
		vcpus = json_array();
		timeline_json_vm(cli, t, o, &t->vm[i]);
		for (k = t->vm[i].first; k != TIMELINE_NONE; k = t->vcpu[k].next_of_vm) {
			json_t *v;

			if (!t->vcpu[k].wanted)
				continue;
			v = totals_object(cli, t, &t->vcpu[k].totals);
			set_line(cli, t, v, k);
			if (!t->vcpu[k].is_any)
				cli_json_hex(cli, v, "vmcs", t->vcpu[k].vmcs);
			cli_json_add(cli, vcpus, v);
		}
		cli_json_set(cli, o, "vcpus", vcpus);
		cli_json_list_add(cli, o, first, stdout);
		first = false;
	}
	cli_json_list_close(cli, stdout);
}

static int json_end(void *opaque, const struct timeline *t)
{
	struct timeline_json *j = opaque;

	u32 i;

	if (j->summary) {
		print_summary(t->cli, t);
		return CLI_OK;
	}
	for (i = 0; i < j->lefts && !(j->head && j->lines == j->head); i++)
		if (j->left[i].open)
			put_exit(j, t, i, NULL);
	cli_json_list_close(t->cli, stdout);
	return CLI_OK;
}

int timeline_json_open(struct cli *cli, bool summary, u64 head, struct timeline_json **json,
		       struct timeline_sink *sink)
{
	struct timeline_json *j = calloc(1, sizeof(*j));

	if (!j)
		return cli_no_memory(cli);
	j->cli = cli;
	j->summary = summary;
	j->head = head;
	*sink = (struct timeline_sink){ json_begin, json_span, json_end, j, .outs = summary };
	*json = j;
	return CLI_OK;
}

void timeline_json_close(struct timeline_json *json)
{
	if (json)
		free(json->left);
	free(json);
}
