// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The side record of an RTIT trace: JSON lines, each checked strictly, because owners depend on
 * them alone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cli/base/base.h"
#include "cli/sideinfo/rtit.h"
#include "util/array.h"

#define CPU_MAX	   65535
#define VCPUS_MAX  65536
#define NAME_BYTES 120 /* bytes of a VM's name in a file's */

/* A parsed line. */
struct run_line {
	struct json_line at_line;
	const char *vm; /* NULL: the host, or no owner */
	u32 vcpu, cpu;
	bool by_tsc;
	u64 at, tsc_offset, core_offset;
};

/* ---- one line ---- */

static int take_vm(struct run_line *l, json_t *o)
{
	json_t *vm = json_object_get(o, "vm");

	l->vm = json_string_value(vm);
	if (!l->vm && !json_is_null(vm))
		return json_line_bad(&l->at_line, "\"vm\" is neither a name nor null (the host)");
	if (l->vm && !l->vm[0])
		return json_line_bad(&l->at_line, "\"vm\" is an empty name");
	return CLI_OK;
}

/* "offset" or "tsc" */
static int take_where(struct run_line *l, json_t *o)
{
	bool offset = json_object_get(o, "offset");

	l->by_tsc = json_object_get(o, "tsc");
	if (offset == l->by_tsc)
		return json_line_bad(&l->at_line, "%s of \"offset\" and \"tsc\"",
				     offset ? "both" : "none");
	return json_line_u64(&l->at_line, o, l->by_tsc ? "tsc" : "offset", ~0ULL, &l->at);
}

static int take_members(struct run_line *l, json_t *o)
{
	json_t *rtit = json_object_get(o, "rtit");
	u64 vcpu = 0, cpu = 0;
	int err;

	if (!rtit)
		return json_line_bad(&l->at_line,
				     "no \"rtit\": not a side record of an RTIT trace");
	if (!json_is_integer(rtit) || json_integer_value(rtit) != 1)
		return json_line_bad(&l->at_line, "\"rtit\" is not 1, the known version");
	err = take_vm(l, o);
	/* Without an owner no number is needed. */
	if (!err && (l->vm || json_object_get(o, "vcpu")))
		err = json_line_u64(&l->at_line, o, "vcpu", 0xffffffff, &vcpu);
	if (!err)
		err = json_line_u64(&l->at_line, o, "cpu", CPU_MAX, &cpu);
	if (!err)
		err = take_where(l, o);
	if (!err && json_object_get(o, "tsc_offset"))
		err = json_line_u64(&l->at_line, o, "tsc_offset", ~0ULL, &l->tsc_offset);
	if (!err && json_object_get(o, "core_offset"))
		err = json_line_u64(&l->at_line, o, "core_offset", ~0ULL, &l->core_offset);
	l->vcpu = (u32)vcpu;
	l->cpu = (u32)cpu;
	return err;
}

/* ---- virtual CPUs ---- */

/*
 * "vm-NAME-vcpuN". A name that is not usable in a file name as it is gets '+' and a unique number;
 * usable names have no '+'.
 */
static char *file_of(const struct run_line *l, size_t number)
{
	static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789._-";
	size_t len = strlen(l->vm), n = len < NAME_BYTES ? len : NAME_BYTES, i;
	bool changed = n < len;
	char name[NAME_BYTES + 1], extra[24] = "", *file;

	for (i = 0; i < n; i++) {
		name[i] = strchr(safe, l->vm[i]) ? l->vm[i] : '_';
		changed |= name[i] != l->vm[i];
	}
	name[n] = '\0';
	if (changed)
		snprintf(extra, sizeof(extra), "+%zu", number);
	return asprintf(&file, "vm-%s%s-vcpu%u", name, extra, l->vcpu) < 0 ? NULL : file;
}

/* The number of the line's owner, added if it is new; 0 after a message. */
static u64 vcpu_number(struct cli *cli, struct run_line *l)
{
	struct cli_side_record *r = cli_side(cli)->record;
	u64 hash = vmpt_mix64(vmpt_fnv1a(r->seed ^ l->vcpu, l->vm, strlen(l->vm)));
	u32 found = vmpt_hash_find(&r->by_name, hash, i,
				   r->vcpu[i].vcpu == l->vcpu && !strcmp(r->vcpu[i].vm, l->vm));
	struct cli_vcpu *v;

	if (found != VMPT_HASH_NONE) {
		v = &r->vcpu[found];
		v->tsc_offset = l->tsc_offset;
		v->core_offset = l->core_offset;
		return found + 1;
	}
	if (r->vcpus == VCPUS_MAX) {
		json_line_bad(&l->at_line, "more than %d virtual CPUs", VCPUS_MAX);
		return 0;
	}
	if (vmpt_grow(&r->vcpu, r->vcpus)) {
		cli_no_memory(cli);
		return 0;
	}
	v = &r->vcpu[r->vcpus++];
	*v = (struct cli_vcpu){ .vcpu = l->vcpu,
				.tsc_offset = l->tsc_offset,
				.core_offset = l->core_offset };
	v->vm = strdup(l->vm);
	v->file = file_of(l, r->vcpus);
	if (!v->vm || !v->file || vmpt_hash_add(&r->by_name, hash, (u32)r->vcpus - 1)) {
		cli_no_memory(cli);
		return 0;
	}
	return r->vcpus;
}

static struct cli_runs *runs_of(struct cli *cli, u32 cpu)
{
	struct cli_side_record *r = cli_side(cli)->record;

	if (r->by_cpu[cpu])
		return &r->runs[r->by_cpu[cpu] - 1];
	if (vmpt_grow(&r->runs, r->cpus))
		return NULL;
	r->runs[r->cpus++] = (struct cli_runs){ .cpu = cpu };
	r->by_cpu[cpu] = (u32)r->cpus;
	return &r->runs[r->cpus - 1];
}

static int add_run(struct cli *cli, struct run_line *l)
{
	struct vmpt_run run = { .at = l->at, .by_tsc = l->by_tsc };
	struct cli_runs *runs = runs_of(cli, l->cpu);
	const struct vmpt_run *last;

	run.owner.kind = l->vm ? VMPT_OWNER_VM : VMPT_OWNER_HOST;
	if (l->vm) {
		run.owner.vmcs = vcpu_number(cli, l);
		if (!run.owner.vmcs)
			return CLI_FAILED;
	}
	if (!runs || vmpt_grow(&runs->run, runs->count) || vmpt_grow(&runs->line, runs->count))
		return cli_no_memory(cli);
	last = runs->count ? &runs->run[runs->count - 1] : NULL;
	if (last && last->by_tsc != l->by_tsc)
		return json_line_bad(&l->at_line, "CPU %u has \"%s\" here, but \"%s\" in line %zu",
				     l->cpu, l->by_tsc ? "tsc" : "offset",
				     last->by_tsc ? "tsc" : "offset", runs->line[runs->count - 1]);
	if (last && last->at > l->at)
		return json_line_bad(&l->at_line,
				     "CPU %u is at 0x%llx here, but at 0x%llx in line %zu already",
				     l->cpu, (unsigned long long)l->at,
				     (unsigned long long)last->at, runs->line[runs->count - 1]);
	runs->line[runs->count] = l->at_line.number;
	runs->run[runs->count++] = run;
	return CLI_OK;
}

static int add_line(struct cli *cli, const char *text, size_t len, size_t number)
{
	struct run_line l = { .at_line = {
				      .cli = cli, .file = cli_side(cli)->file, .number = number } };
	json_t *o;
	int err;

	if (strspn(text, " \t\r\n") == len)
		return CLI_OK;
	o = json_line_parse(&l.at_line, text, len);
	if (!o)
		return CLI_FAILED;
	err = take_members(&l, o);
	if (!err)
		err = add_run(cli, &l);
	json_decref(o);
	return err;
}

static int read_lines(struct cli *cli, FILE *f)
{
	char *text = malloc(JSON_LINE_ROOM);
	size_t len, number = 0;
	int err = text ? CLI_OK : cli_no_memory(cli);

	errno = 0;
	while (!err && (len = cli_getline(text, JSON_LINE_ROOM, f)) > 0)
		err = add_line(cli, text, len, ++number);
	free(text);
	if (!err && ferror(f)) {
		cli_error(cli, "%s: %s", cli_side(cli)->file, strerror(errno));
		err = CLI_FAILED;
	}
	return err;
}

/* ---- streams ---- */

/* Room for the results of a CPU's runs. */
static bool make_report(struct cli_runs *runs)
{
	runs->report.effects = calloc(runs->count, sizeof(*runs->report.effects));
	return runs->report.effects;
}

/* A single file without a CPU belongs to the one CPU of a record. */
static int choose_runs(struct cli *cli)
{
	struct cli_side_record *r = cli_side(cli)->record;
	size_t i, k;

	r->of_stream = calloc(cli->streams, sizeof(*r->of_stream));
	if (!r->of_stream)
		return cli_no_memory(cli);
	for (i = 0; i < cli->streams; i++) {
		int cpu = cli->stream[i]->cpu;

		if (cpu < 0 && r->cpus > 1)
			return cli_usage(cli,
					 "%s: the side record has %zu CPUs; give this trace's "
					 "with FILE@CPU",
					 cli->file[0], r->cpus);
		for (k = 0; k < r->cpus; k++)
			if (cpu < 0 || r->runs[k].cpu == (u32)cpu)
				r->of_stream[i] = &r->runs[k];
		if (r->of_stream[i] && !make_report(r->of_stream[i]))
			return cli_no_memory(cli);
		if (!r->of_stream[i])
			cli_warn(
				cli,
				"%s: it has no line for CPU %d: all of its trace is taken for the host's",
				cli_side(cli)->file, cpu);
	}
	return CLI_OK;
}

int cli_side_record_open(struct cli *cli)
{
	const char *file = cli_side(cli)->file;
	struct cli_side_record *r = calloc(1, sizeof(*r));
	FILE *f;
	int err;

	cli_side(cli)->record = r;
	if (r)
		r->by_cpu = calloc(CPU_MAX + 1, sizeof(*r->by_cpu));
	if (!r || !r->by_cpu)
		return cli_no_memory(cli);
	/* Also correct without a seed, but names could be chosen to collide. */
	if (getrandom(&r->seed, sizeof(r->seed), GRND_NONBLOCK) < 0)
		r->seed = 0;
	f = fopen(file, "re");
	if (!f) {
		cli_error(cli, "%s: %s", file, strerror(errno));
		return CLI_FAILED;
	}
	err = read_lines(cli, f);
	fclose(f);
	if (!err && !r->cpus) {
		cli_error(cli, "%s: it has no records", file);
		err = CLI_FAILED;
	}
	return err ? err : choose_runs(cli);
}

void cli_side_record_close(struct cli *cli)
{
	struct cli_side_record *r = cli_side(cli) ? cli_side(cli)->record : NULL;
	size_t i;

	if (!r)
		return;
	for (i = 0; i < r->vcpus; i++) {
		free(r->vcpu[i].vm);
		free(r->vcpu[i].file);
	}
	for (i = 0; i < r->cpus; i++) {
		free(r->runs[i].run);
		free(r->runs[i].line);
		free(r->runs[i].report.effects);
	}
	free(r->vcpu);
	vmpt_hash_free(&r->by_name);
	free(r->by_cpu);
	free(r->runs);
	free(r->of_stream);
	free(r);
}

const struct cli_vcpu *cli_side_record_vcpu(const struct cli *cli, const struct vmpt_owner *owner)
{
	const struct cli_side_record *r = cli_side(cli)->record;

	if (!r || owner->kind != VMPT_OWNER_VM || !owner->vmcs || owner->vmcs > r->vcpus)
		return NULL;
	return &r->vcpu[owner->vmcs - 1];
}
