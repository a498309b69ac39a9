// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Opening the clocks of a trace; see clock-open.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/sideinfo/clock-open.h"
#include "cli/sideinfo/clock-options.h"
#include "cli/base/base.h"
#include "util/array.h"
#include "util/search.h"

#define VCPUS_MAX 65536

/* A parsed line of the side record. */
struct vmcs_line {
	struct json_line at;
	const char *vm;
	u64 vcpu, vmcs, offset, multiplier, since;
	bool has_map;
};

/* 0 where it is not. */
static int take_if_there(struct vmcs_line *l, const json_t *o, const char *key, u64 *value)
{
	*value = 0;
	return json_object_get(o, key) ? json_line_u64(&l->at, o, key, ~0ULL, value) : CLI_OK;
}

static int take_line(struct vmcs_line *l, const json_t *o)
{
	int err;

	if (json_object_get(o, "rtit"))
		return json_line_bad(&l->at, "this is the side record of an RTIT trace");
	l->vm = json_string_value(json_object_get(o, "vm"));
	if (!l->vm || !l->vm[0])
		return json_line_bad(&l->at, "\"vm\" is not a name");
	err = json_line_u64(&l->at, o, "vcpu", 0xffffffff, &l->vcpu);
	if (!err)
		err = json_line_u64(&l->at, o, "vmcs", ~0ULL, &l->vmcs);
	if (!err)
		err = take_if_there(l, o, "tsc_offset", &l->offset);
	if (!err)
		err = take_if_there(l, o, "tsc_multiplier", &l->multiplier);
	if (!err)
		err = take_if_there(l, o, "since", &l->since);
	l->has_map = json_object_get(o, "tsc_offset");
	return err;
}

static int add_given(struct cli *cli, struct cli_clocks *c, const struct vmpt_given *given)
{
	struct vmpt_given *more;

	if (vmpt_grow(&c->given, c->given_count))
		return cli_no_memory(cli);
	more = &c->given[c->given_count++];
	*more = *given;
	/* The processor does not scale. */
	if (!more->map.multiplier)
		more->map.multiplier = VMPT_TSC_UNSCALED;
	return CLI_OK;
}

static int add_line(struct cli *cli, struct cli_clocks *c, struct vmcs_line *l)
{
	struct vmpt_given given = {
		.vmcs = l->vmcs,
		.map = { .multiplier = l->multiplier, .offset = l->offset },
		.from = l->since,
		.source = VMPT_MAP_RECORD,
	};
	struct cli_clock_vcpu *more;

	if (c->vcpus == VCPUS_MAX)
		return json_line_bad(&l->at, "more than %d records", VCPUS_MAX);
	if (vmpt_grow(&c->vcpu, c->vcpus))
		return cli_no_memory(cli);
	more = &c->vcpu[c->vcpus];
	*more = (struct cli_clock_vcpu){ l->vmcs, l->since, strdup(l->vm), (u32)l->vcpu };
	if (!more->vm)
		return cli_no_memory(cli);
	c->vcpus++;
	return l->has_map ? add_given(cli, c, &given) : CLI_OK;
}

static int read_line(struct cli *cli, struct cli_clocks *c, const char *text, size_t n,
		     struct vmcs_line *l)
{
	json_t *o;
	int err;

	o = json_line_parse(&l->at, text, n);
	if (!o)
		return JSON_LINE_SKIPPED;
	err = take_line(l, o);
	if (!err)
		err = add_line(cli, c, l);
	json_decref(o);
	return err;
}

static int by_vmcs(const void *a, const void *b)
{
	const struct cli_clock_vcpu *x = a, *y = b;

	if (x->vmcs != y->vmcs)
		return x->vmcs < y->vmcs ? -1 : 1;
	return x->since < y->since ? -1 : x->since > y->since;
}

/* Whether a line without a newline is truncated: a VMM that dies leaves one. */
static bool is_cut(const char *text, size_t n)
{
	json_error_t error;
	json_t *o;

	if (!n || n > JSON_LINE_BYTES || text[n - 1] == '\n')
		return false;
	o = json_line_load(text, n, &error);
	json_decref(o);
	return !o;
}

static int read_record(struct cli *cli, struct cli_clocks *c)
{
	FILE *f = fopen(cli_side(cli)->file, "re");
	struct vmcs_line l = {
		.at = { .cli = cli, .file = cli_side(cli)->file, .left_out = true },
	};
	char *text = malloc(JSON_LINE_ROOM);
	int err = text ? CLI_OK : cli_no_memory(cli);
	size_t n;

	if (!f) {
		cli_error(cli, "%s: %s", cli_side(cli)->file, strerror(errno));
		free(text);
		return CLI_FAILED;
	}
	errno = 0;
	while (!err && (n = cli_getline(text, JSON_LINE_ROOM, f)) > 0) {
		l.at.number++;
		if (c->vcpus && is_cut(text, n))
			cli_warn(cli, "%s: line %zu is truncated; skipped", cli_side(cli)->file,
				 l.at.number);
		else if (strspn(text, " \t\r\n") < n)
			err = read_line(cli, c, text, n, &l);
		if (err == JSON_LINE_SKIPPED)
			err = CLI_OK;
	}
	cli_warn_lines(cli, cli_side(cli)->file, l.at.skipped);
	if (!err && ferror(f)) {
		cli_error(cli, "%s: %s", cli_side(cli)->file, strerror(errno));
		err = CLI_FAILED;
	}
	if (!err && !c->vcpus) {
		cli_error(cli, "%s: no record in it%s", cli_side(cli)->file,
			  l.at.skipped ? " can be read" : "");
		err = CLI_FAILED;
	}
	free(text);
	fclose(f);
	if (c->vcpus)
		qsort(c->vcpu, c->vcpus, sizeof(*c->vcpu), by_vmcs);
	return err;
}

/* All given maps that can be read without a clock. */
static int take_given(struct cli *cli, struct cli_clocks *c,
		      const struct vmpt_clocks_options *settings)
{
	int err;
	size_t i;

	err = cli_recording_open(cli, &c->rec);
	if (cli_is_rtit(cli))
		return err;
	if (!err && cli_side(cli)->file && !cli_side_is_recording(cli))
		err = read_record(cli, c);
	for (i = 0; !err && i < settings->given_count; i++)
		err = add_given(cli, c, &settings->given[i]);
	return err;
}

static int open_clocks(struct cli *cli, struct cli_clocks *c, struct vmpt_clocks_options *options)
{
	int err;

	options->given = c->given;
	options->given_count = c->given_count;
	err = vmpt_clocks_open(&c->clocks, cli->stream, cli->streams, options);
	if (!err)
		return CLI_OK;
	cli_error(cli, "%s: %s", cli->file[0], vmpt_strerror(err));
	return CLI_FAILED;
}

/* KVM's maps, now that the owners of the VMCSs are known. @more: there are some. */
static int take_kvm(struct cli *cli, struct cli_clocks *c, bool *more)
{
	struct vmpt_given *given = NULL;
	size_t i, n = 0;
	int err = cli_recording_names(cli, c->rec, c->clocks, &c->names);

	if (!err && c->names && c->rec)
		err = cli_recording_given(cli, c->rec, c->names, &given, &n);
	for (i = 0; !err && i < n; i++)
		err = add_given(cli, c, &given[i]);
	free(given);
	*more = n;
	return err;
}

/* Of stream number @i; VMPT_TIME_NONE: none. */
static u64 first_time(const struct cli *cli, const struct vmpt_clocks *clocks, size_t i)
{
	struct vmpt_options options = cli_stream_options(cli, i);
	struct vmpt_timed_batch timed;
	struct vmpt_timed *decoder;
	u64 first = VMPT_TIME_NONE;

	options.progress = NULL;
	if (vmpt_timed_open(&decoder, clocks, i, &options))
		return first;
	while (first == VMPT_TIME_NONE && vmpt_timed_next(decoder, &timed) > 0)
		if (timed.batch.count)
			first = timed.time[timed.batch.count - 1].tsc;
	vmpt_timed_close(decoder);
	return first;
}

/* The trace takes precedence over a recording that contradicts it. */
static void check_recording(struct cli *cli, const struct cli_clocks *c)
{
	double hz = 0, khz = c->rec ? (double)c->rec->tsc_khz : 0;
	u64 first = VMPT_TIME_NONE, at;
	size_t i;

	hz = cli_clocks_hertz(cli, NULL);
	if (khz > 0 && hz > 0 && (khz * 1e3 < hz * 0.99 || khz * 1e3 > hz * 1.01))
		cli_warn(cli,
			 "the recording says that the TSC has %.0f kHz; the trace has %.0f kHz, "
			 "which is used",
			 khz, hz / 1e3);
	if (!c->rec || !c->rec->pairs || vmpt_clocks_base(c->clocks) != VMPT_BASE_HOST)
		return;
	for (i = 0; i < cli->streams; i++) {
		at = first_time(cli, c->clocks, i);
		first = at < first ? at : first;
	}
	if (first != VMPT_TIME_NONE)
		cli_recording_check(cli, c->rec, first);
}

int cli_clocks_open(struct cli *cli, struct cli_clocks *c)
{
	struct vmpt_clocks_options options;
	bool more = false;
	int err;

	*c = (struct cli_clocks){ 0 };
	cli_clock_settings(cli, &options);
	options.decode.progress = NULL;
	err = take_given(cli, c, &options);
	if (!err && c->rec)
		cli_recording_rates(c->rec, &options.rates);
	if (!err)
		options.near_tsc = cli_recording_near_tsc(cli);
	if (!err)
		err = open_clocks(cli, c, &options);
	if (!err)
		err = take_kvm(cli, c, &more);
	if (!err && more) {
		vmpt_clocks_close(c->clocks);
		c->clocks = NULL;
		err = open_clocks(cli, c, &options);
	}
	if (!err) {
		cli_clock_warn(cli, c->clocks);
		check_recording(cli, c);
	}
	return err;
}

void cli_clocks_close(struct cli_clocks *c)
{
	size_t i;

	vmpt_clocks_close(c->clocks);
	for (i = 0; i < c->vcpus; i++)
		free(c->vcpu[i].vm);
	free(c->vcpu);
	free(c->given);
	vmpt_names_close(c->names);
	cli_recording_free(c->rec);
	*c = (struct cli_clocks){ 0 };
}

static const struct cli_clock_vcpu *recorded(const struct cli_clocks *c, u64 vmcs, u64 at)
{
	const struct cli_clock_vcpu *v = c->vcpu;
	size_t n = vmpt_search(i, 0, c->vcpus,
			       v[i].vmcs < vmcs || (v[i].vmcs == vmcs && v[i].since <= at));

	/* The last one from then or before. */
	if (n && v[n - 1].vmcs == vmcs)
		return &v[n - 1];
	/* Before its first record it had the same owner. */
	return n < c->vcpus && v[n].vmcs == vmcs ? &v[n] : NULL;
}

bool cli_clocks_who(const struct cli_clocks *c, u64 vmcs, u64 at, const char **vm, s64 *vcpu)
{
	const struct cli_clock_vcpu *v = recorded(c, vmcs, at);
	const struct vmpt_vm_name *name;

	if (v) {
		*vm = v->vm;
		*vcpu = v->vcpu;
		return true;
	}
	name = c->names ? vmpt_names_at(c->names, vmcs, at) : NULL;
	if (!name || !name->vm)
		return false;
	*vm = name->vm;
	*vcpu = name->vcpu;
	return true;
}

double cli_clocks_hertz(const struct cli *cli, const struct cli_recording *rec)
{
	const struct vmpt_trace_info *info = vmpt_trace_info(cli->trace);

	if (!info->has_time_conv || !info->time_mult || info->time_shift > 63)
		return rec ? (double)rec->tsc_khz * 1e3 : 0;
	return 1e9 / ((double)info->time_mult / (double)(1ULL << info->time_shift));
}
