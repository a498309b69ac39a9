// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The side record of vmpt record, JSON lines. Lines of an unknown kind are ignored: a newer vmpt
 * may have written them. Its line of the host is that of versions before recording.json.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "cli/base/base.h"
#include "cli/sideinfo/recording-head.h"
#include "util/array.h"
#include "util/hash.h"
#include "util/search.h"

#define VCPUS_MAX  65536
#define NUMBER_MAX INT32_MAX
/* Every VMCS that a thread runs has all the maps of the thread: more of them are left out */
#define GIVEN_MAX      (1u << 20)
#define LOOKS_COMPARED (1u << 28)

struct rec_reader {
	struct cli *cli;
	struct json_line line;
	size_t used; /* lines */
	struct cli_recording *rec;
	struct vmpt_hash by_id; /* of rec->vcpu: names and thread */
	u64 seed;
};

/* A number up to @max; @has false: it is missing, or null. */
static int take_u64(struct rec_reader *r, const json_t *o, const char *key, u64 max, u64 *value,
		    bool *has)
{
	return recording_u64(&r->line, o, key, max, value, has);
}

/* ---- a vCPU ---- */

/* The multiplier has 48 fraction bits here (SDM 3 26.6.5); KVM gives the number of its ratio's. */
static int take_map(struct rec_reader *r, json_t *o, struct cli_recording_look *look)
{
	bool has_offset = false, has_ratio = false, has_bits = false;
	u64 ratio = 0, bits = 0;
	int err = take_u64(r, o, "tsc_offset", ~0ULL, &look->map.offset, &has_offset);

	if (!err)
		err = take_u64(r, o, "tsc_scaling_ratio", ~0ULL, &ratio, &has_ratio);
	if (!err)
		err = take_u64(r, o, "tsc_scaling_ratio_frac_bits", 63, &bits, &has_bits);
	if (err || !has_offset || has_ratio != has_bits || json_is_false(json_object_get(o, "ran")))
		return err;
	look->map.multiplier = VMPT_TSC_UNSCALED;
	if (has_ratio && !bits && ratio <= 1)
		/* The processor cannot scale */
		ratio = 0;
	else if (has_ratio && bits > 48)
		look->map.multiplier = ratio >> (bits - 48);
	else if (has_ratio && ratio <= ~0ULL >> (48 - bits))
		look->map.multiplier = ratio << (48 - bits);
	else if (has_ratio)
		return json_line_bad(&r->line, "\"tsc_scaling_ratio\" has more than 64 bits");
	if (!look->map.multiplier)
		return json_line_bad(&r->line, "\"tsc_scaling_ratio\" is 0");
	look->has_map = true;
	return CLI_OK;
}

static int take_place(struct rec_reader *r, json_t *o, struct cli_recording_vcpu *v,
		      struct cli_recording_look *look)
{
	u64 pid, tid, vcpu;
	bool has, has_tid;
	int err = take_u64(r, o, "pid", NUMBER_MAX, &pid, &has);

	if (!err && !has)
		err = json_line_bad(&r->line, "a vCPU without \"pid\"");
	if (!err)
		err = take_u64(r, o, "tid", NUMBER_MAX, &tid, &has_tid);
	if (!err)
		err = take_u64(r, o, "vcpu", NUMBER_MAX, &vcpu, &has);
	if (!err && !has)
		err = json_line_bad(&r->line, "a vCPU without \"vcpu\"");
	if (!err)
		err = take_u64(r, o, "tsc_before", ~0ULL, &look->before, &has);
	if (!err)
		err = take_u64(r, o, "tsc_after", ~0ULL, &look->after, &has);
	if (!err && look->after < look->before)
		err = json_line_bad(&r->line, "\"tsc_after\" is before \"tsc_before\"");
	if (err)
		return err;
	v->pid = (int)pid;
	v->tid = has_tid ? (int)tid : -1;
	v->vcpu = (int)vcpu;
	return CLI_OK;
}

/* ---- which vCPU ---- */

/* FNV-1a from a seed, and mixed. */
static u64 hash_of(const struct rec_reader *r, const struct cli_recording_vcpu *v, int tid)
{
	u64 h = r->seed ^ vmpt_mix64((u64)(u32)v->pid << 32 | (u32)v->vcpu) ^ (u32)tid;
	const char *vm;

	for (vm = v->vm; *vm; vm++)
		h = (h ^ (u8)*vm) * 0x100000001b3ULL;
	return vmpt_mix64(h);
}

/* The one that was added last with @v's names and thread @tid; VMPT_HASH_NONE: none. */
static u32 find_thread(const struct rec_reader *r, const struct cli_recording_vcpu *v, int tid)
{
	const struct cli_recording_vcpu *n = r->rec->vcpu;

	return vmpt_hash_find(&r->by_id, hash_of(r, v, tid), i,
			      n[i].tid == tid && !n[i].replaced && n[i].pid == v->pid &&
				      n[i].vcpu == v->vcpu && !strcmp(n[i].vm, v->vm));
}

/* A vCPU whose thread was not known until now has @v's. */
static int set_thread(struct rec_reader *r, const struct cli_recording_vcpu *v, u32 index,
		      u32 older)
{
	if (vmpt_hash_add(&r->by_id, hash_of(r, v, v->tid), index))
		return cli_no_memory(r->cli);
	if (older != VMPT_HASH_NONE)
		r->rec->vcpu[older].replaced = true;
	r->rec->vcpu[index].tid = v->tid;
	return CLI_OK;
}

static int add_vcpu(struct rec_reader *r, json_t *o, const struct cli_recording_vcpu *v)
{
	const char *uuid = json_string_value(json_object_get(o, "uuid"));
	struct cli_recording *rec = r->rec;
	struct cli_recording_vcpu *n;

	if (rec->vcpus == VCPUS_MAX)
		return json_line_bad(&r->line, "more than %d vCPUs", VCPUS_MAX);
	if (vmpt_grow(&rec->vcpu, rec->vcpus))
		return cli_no_memory(r->cli);
	n = &rec->vcpu[rec->vcpus];
	*n = *v;
	n->vm = strdup(v->vm);
	n->uuid = uuid ? strdup(uuid) : NULL;
	if (!n->vm || (uuid && !n->uuid) ||
	    vmpt_hash_add(&r->by_id, hash_of(r, v, v->tid), (u32)rec->vcpus)) {
		free(n->vm);
		free(n->uuid);
		return cli_no_memory(r->cli);
	}
	rec->vcpus++;
	return CLI_OK;
}

/*
 * The vCPU that @v is, or a new one, whose names are taken from @o. Of several with its names and
 * thread, or whose thread is not known yet, it is the last: that one still exists.
 */
static int find_vcpu(struct rec_reader *r, json_t *o, struct cli_recording_vcpu *v, size_t *index)
{
	u32 with, without;
	int err = CLI_OK;

	v->vm = (char *)json_string_value(json_object_get(o, "vm"));
	if (!v->vm || !*v->vm)
		return json_line_bad(&r->line, "a vCPU without the name of its \"vm\"");
	with = find_thread(r, v, v->tid);
	without = v->tid < 0 ? VMPT_HASH_NONE : find_thread(r, v, -1);
	if (without != VMPT_HASH_NONE && (with == VMPT_HASH_NONE || with < without)) {
		err = set_thread(r, v, without, with);
		with = without;
	}
	*index = with == VMPT_HASH_NONE ? r->rec->vcpus : with;
	return with == VMPT_HASH_NONE ? add_vcpu(r, o, v) : err;
}

static int take_vcpu(struct rec_reader *r, json_t *o)
{
	struct cli_recording *rec = r->rec;
	struct cli_recording_vcpu v = { 0 }, *known;
	struct cli_recording_look look = { 0 };
	int err = take_place(r, o, &v, &look);

	v.from = look.before;
	v.to = look.after;
	if (!err)
		err = take_map(r, o, &look);
	if (!err)
		err = find_vcpu(r, o, &v, &look.vcpu);
	if (err)
		return err;
	known = &rec->vcpu[look.vcpu];
	if (look.before < known->from)
		known->from = look.before;
	if (look.after > known->to)
		known->to = look.after;
	if (vmpt_grow(&rec->look, rec->looks))
		return cli_no_memory(r->cli);
	rec->look[rec->looks++] = look;
	return CLI_OK;
}

/* ---- the file ---- */

static int take_line(struct rec_reader *r, const char *line, size_t n)
{
	json_t *o = json_line_parse(&r->line, line, n);
	const char *kind = json_string_value(json_object_get(o, "kind"));
	int err = CLI_OK;

	if (!o)
		return JSON_LINE_SKIPPED;
	if (!kind)
		err = json_line_bad(&r->line, "no object with a \"kind\"");
	else if (!strcmp(kind, "host"))
		err = recording_host(&r->line, o, r->rec);
	else if (!strcmp(kind, "vcpu") || !strcmp(kind, "vcpu-gone"))
		err = take_vcpu(r, o);
	json_decref(o);
	r->used += !err;
	return err;
}

int cli_recording_read(struct cli *cli, const char *side, struct cli_recording **rec)
{
	struct rec_reader r = { .cli = cli,
				.line = { .cli = cli, .file = side, .left_out = true } };
	FILE *f = fopen(side, "re");
	char *line = malloc(JSON_LINE_ROOM);
	int err = CLI_OK;
	size_t n;

	*rec = NULL;
	if (!f) {
		cli_error(cli, "%s: %s", side, strerror(errno));
		free(line);
		return CLI_FAILED;
	}
	/* Also correct without a seed, but names could be chosen to collide. */
	if (getrandom(&r.seed, sizeof(r.seed), GRND_NONBLOCK) < 0)
		r.seed = 0;
	r.rec = calloc(1, sizeof(*r.rec));
	if (!r.rec || !line)
		err = cli_no_memory(cli);
	while (!err && (n = cli_getline(line, JSON_LINE_ROOM, f)) > 0) {
		r.line.number++;
		if (n > JSON_LINE_BYTES)
			err = json_line_bad(&r.line, "longer than %d bytes", JSON_LINE_BYTES);
		/* A recording that was killed may end within a line. */
		else if (line[n - 1] != '\n')
			cli_warn(cli, "%s: line %zu is truncated", side, r.line.number);
		else if (strspn(line, " \t\n") < n)
			err = take_line(&r, line, n);
		if (err == JSON_LINE_SKIPPED)
			err = CLI_OK;
	}
	cli_warn_lines(cli, side, r.line.skipped);
	if (!err && r.line.skipped && !r.used) {
		cli_error(cli, "%s: no record in it can be read", side);
		err = CLI_FAILED;
	}
	if (!err && ferror(f)) {
		cli_error(cli, "%s: %s", side, strerror(errno));
		err = CLI_FAILED;
	}
	free(line);
	vmpt_hash_free(&r.by_id);
	fclose(f);
	if (err)
		cli_recording_free(r.rec);
	else
		*rec = r.rec;
	return err;
}

void cli_recording_free(struct cli_recording *rec)
{
	size_t i;

	if (!rec)
		return;
	for (i = 0; i < rec->vcpus; i++) {
		free(rec->vcpu[i].vm);
		free(rec->vcpu[i].uuid);
	}
	free(rec->vcpu);
	free(rec->look);
	free(rec->pair);
	free(rec);
}

/* ---- use ---- */

void cli_recording_rates(const struct cli_recording *rec, struct vmpt_rates *rates)
{
	/* SKZ84 (Skylake server, before Cascade Lake): TMAs of guests with another TSC are corrupt.
	 */
	bool skz84 = rec->family == 6 && rec->model == 85 && rec->stepping && rec->stepping <= 4;

	if (!rates->tsc_num && rec->tsc_num && rec->tsc_den) {
		rates->tsc_num = rec->tsc_num;
		rates->tsc_den = rec->tsc_den;
	}
	if (!rates->nominal)
		rates->nominal = rec->nominal;
	if (!rates->has_mtc_freq && rec->has_mtc_freq) {
		rates->mtc_freq = (u8)rec->mtc_freq;
		rates->has_mtc_freq = true;
	}
	if (rates->skz84 == VMPT_SKZ84_AUTO && skz84)
		rates->skz84 = VMPT_SKZ84_YES;
}

int cli_recording_threads(const struct cli *cli, const struct cli_recording *rec,
			  struct vmpt_given_thread **threads, size_t *count)
{
	struct vmpt_given_thread *t = calloc(rec->vcpus ? rec->vcpus : 1, sizeof(*t));
	size_t i;

	*threads = t;
	*count = 0;
	if (!t)
		return cli_no_memory(cli);
	for (i = 0; i < rec->vcpus; i++) {
		const struct cli_recording_vcpu *v = &rec->vcpu[i];

		if (v->tid < 0)
			continue;
		t[(*count)++] = (struct vmpt_given_thread){ .pid = v->pid,
							    .tid = v->tid,
							    .vcpu = v->vcpu,
							    .vm = v->vm,
							    .from = v->from,
							    .to = v->to };
	}
	return CLI_OK;
}

/* The looks of one thread, or of one vCPU whose thread is not known, are together, by time. */
struct look_place {
	int pid, tid, vcpu; /* vcpu: -1 where tid is known */
	size_t look;
};

static int by_thread(const struct look_place *a, const struct look_place *b)
{
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return a->vcpu < b->vcpu ? -1 : a->vcpu > b->vcpu;
}

static int by_place(const void *x, const void *y)
{
	const struct look_place *a = x, *b = y;
	int order = by_thread(a, b);

	return order ? order : a->look < b->look ? -1 : a->look > b->look;
}

/* All looks with a map. NULL: no memory. */
static struct look_place *place_looks(const struct cli_recording *rec, size_t *count)
{
	struct look_place *place = calloc(rec->looks + 1, sizeof(*place));
	size_t i;

	*count = 0;
	for (i = 0; place && i < rec->looks; i++) {
		const struct cli_recording_vcpu *v = &rec->vcpu[rec->look[i].vcpu];

		if (rec->look[i].has_map)
			place[(*count)++] =
				(struct look_place){ v->pid, v->tid, v->tid < 0 ? v->vcpu : -1, i };
	}
	if (*count)
		qsort(place, *count, sizeof(*place), by_place);
	return place;
}

struct given_maker {
	const struct cli *cli;
	const struct cli_recording *rec;
	struct look_place *place;
	size_t places;
	struct vmpt_given *given;
	size_t count;
	u64 budget; /* of looks compared with names */
};

/* Looks of a name's thread, and those of its vCPU whose thread is not known: from @at to @end. */
struct look_range {
	size_t at, end;
};

static struct look_range looks_of(const struct given_maker *g, int pid, int tid, int vcpu)
{
	const struct look_place key = { pid, tid, vcpu, 0 }, *p = g->place;
	size_t first = vmpt_search(i, 0, g->places, by_thread(&p[i], &key) < 0);
	size_t end = vmpt_search(i, first, g->places, by_thread(&p[i], &key) <= 0);

	return (struct look_range){ first, end };
}

/* The next of both, in the order of the file. */
static const struct cli_recording_look *next_look(struct given_maker *g, struct look_range *a,
						  struct look_range *b)
{
	struct look_range *r = a;

	if (a->at == a->end || (b->at < b->end && g->place[b->at].look < g->place[a->at].look))
		r = b;
	if (r->at == r->end || !g->budget)
		return NULL;
	g->budget--;
	return &g->rec->look[g->place[r->at++].look];
}

/* The maps of the VMCS's vCPU while it has the name. */
static int given_of(struct given_maker *g, const struct vmpt_vm_name *name)
{
	struct look_range known = looks_of(g, name->pid, name->tid, -1);
	struct look_range other = looks_of(g, name->pid, -1, name->vcpu);
	const struct cli_recording_look *look;
	struct vmpt_tsc_map map = { 0 };
	bool first = true;

	while ((look = next_look(g, &known, &other)) != NULL) {
		if (look->before >= name->to || look->after < name->from)
			continue;
		if (!first && look->map.offset == map.offset &&
		    look->map.multiplier == map.multiplier)
			continue;
		if (g->count == GIVEN_MAX) {
			g->budget = 0;
			break;
		}
		if (vmpt_grow(&g->given, g->count))
			return cli_no_memory(g->cli);
		map = look->map;
		/* The first one also applies to the name's time before it. */
		g->given[g->count++] =
			(struct vmpt_given){ .vmcs = name->vmcs,
					     .map = map,
					     .from = first ? name->from : look->before,
					     .source = VMPT_MAP_KVM };
		first = false;
	}
	return CLI_OK;
}

int cli_recording_given(const struct cli *cli, const struct cli_recording *rec,
			const struct vmpt_names *names, struct vmpt_given **given, size_t *count)
{
	struct given_maker g = { .cli = cli, .rec = rec, .budget = LOOKS_COMPARED };
	const struct vmpt_vm_name *list;
	char number[32];
	int code = CLI_OK;
	size_t n, i;

	*given = NULL;
	*count = 0;
	list = vmpt_names_list(names, &n);
	g.place = place_looks(rec, &g.places);
	if (!g.place)
		return cli_no_memory(cli);
	for (i = 0; i < n && !code; i++)
		code = given_of(&g, &list[i]);
	free(g.place);
	if (!g.budget)
		cli_warn(cli,
			 "%s: too many TSC offsets for the VMCSs of their threads: the first %s of "
			 "them are used",
			 cli->file[0], cli_number(g.count, number));
	if (code) {
		free(g.given);
		return code;
	}
	*given = g.given;
	*count = g.count;
	return CLI_OK;
}
