// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt domain trace: start domains with the plugin's host view, as the host that
 * they share would trace them, and keep the trace when they have ended.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/domain/trace.h"

#define CPU_MAX 65535

/* ---- host CPUs ---- */

int domain_parse_cpus(struct cli *cli, const char *list, unsigned int *cpu, size_t *cpus)
{
	const char *s = list;

	for (*cpus = 0;;) {
		unsigned long first, last;
		char *end;

		first = last = strtoul(s, &end, 10);
		if (end != s && *s >= '0' && *s <= '9' && *end == '-') {
			s = end + 1;
			last = strtoul(s, &end, 10);
		}
		if (end == s || *s < '0' || *s > '9' || last < first || last > CPU_MAX ||
		    (*end && *end != ',')) {
			cli_usage(cli, "--cpus: '%s' is not a list like 0,2-5", list);
			return -1;
		}
		for (; first <= last; first++) {
			if (*cpus == TRACE_CPUS) {
				cli_usage(cli, "--cpus: more than %d", TRACE_CPUS);
				return -1;
			}
			cpu[(*cpus)++] = (unsigned int)first;
		}
		if (!*end)
			return 0;
		s = end + 1;
	}
}

static unsigned int vcpus_of(const struct domain *d)
{
	char *text = domain_xml_value(d->doc, "vcpu");
	long n = text ? strtol(text, NULL, 10) : 1;

	free(text);
	return n < 1 || n > TRACE_CPUS ? 1 : (unsigned int)n;
}

/* Assign the CPUs to the vCPUs round-robin over all domains. */
static int assign(const struct domain_run *run, struct trace *t)
{
	const struct domain_options *o = run->cli->data;
	unsigned int most = 0, v;
	size_t i, at = 0;

	for (i = 0; i < run->domains; i++) {
		v = vcpus_of(&run->domain[i]);
		t->vcpus += v;
		most = v > most ? v : most;
	}
	if (o->cpus && domain_parse_cpus(run->cli, o->cpus, t->cpu, &t->cpus))
		return CLI_USAGE;
	/* By default the VMs share as many host CPUs as the largest has vCPUs. */
	for (v = 0; !o->cpus && v < most; v++)
		t->cpu[t->cpus++] = v;
	t->vcpu = calloc(t->vcpus, sizeof(*t->vcpu));
	if (!t->vcpu)
		return cli_no_memory(run->cli);
	for (i = 0; i < run->domains; i++) {
		unsigned int n = vcpus_of(&run->domain[i]);

		for (v = 0; v < n; v++, at++)
			t->vcpu[at] = (struct trace_vcpu){ .vm = run->domain[i].name,
							   .domain = i,
							   .vcpu = v,
							   .cpu = t->cpu[at % t->cpus] };
	}
	return CLI_OK;
}

/* ---- the plugin ---- */

/* "cpus=0:1", the host CPUs of domain @i's vCPUs. */
static char *cpus_option(const struct trace *t, size_t i)
{
	char *text = NULL;
	const char *between = "cpus=";
	size_t size, at;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (at = 0; at < t->vcpus; at++) {
		if (t->vcpu[at].domain != i)
			continue;
		fprintf(out, "%s%u", between, t->vcpu[at].cpu);
		between = ":";
	}
	return fclose(out) ? NULL : text;
}

static char *option(const char *name, const char *value, const char *more)
{
	char *text = NULL;

	return asprintf(&text, "%s=%s%s", name, value, more) < 0 ? NULL : text;
}

static int add_plugin(const struct domain_run *run, const struct trace *t, size_t i,
		      const char *file)
{
	const struct domain_options *o = run->cli->data;
	const struct domain *d = &run->domain[i];
	struct domain_plugin plugin = { .file = file };
	char *text[10], mode[8], name[32];
	size_t n = 0, k;
	int code = CLI_OK;

	text[n++] = option("host-view", t->dir, "");
	text[n++] = option("vm", d->name, "");
	text[n++] = cpus_option(t, i);
	if (o->isa)
		text[n++] = option("isa", o->isa, "");
	if (o->host)
		text[n++] = option("host", o->host, "");
	snprintf(mode, sizeof(mode), "%o", run->cli->mode);
	text[n++] = option("mode", mode, "");
	if (o->perf_data)
		text[n++] = option("perf-data", t->dir, "/perf.data");
	snprintf(name, sizeof(name), "/" TRACE_CODE, i);
	if (!o->no_code)
		text[n++] = option("code", t->dir, name);
	if (trace_has_tasks(o)) {
		snprintf(name, sizeof(name), "/" TRACE_TASKS, i);
		text[n++] = option("tasks", t->dir, name);
		snprintf(name, sizeof(name), "/" TRACE_SYMBOLS, i);
		text[n++] = option("symbols", t->dir, name);
	}
	for (k = 0; k < n; k++) {
		plugin.option[plugin.options++] = text[k];
		if (!text[k])
			code = cli_no_memory(run->cli);
	}
	if (!code)
		code = domain_xml_plugin(run->cli, d->doc, d->shown, &plugin);
	for (k = 0; k < n; k++)
		free(text[k]);
	return code;
}

static int add_plugins(const struct domain_run *run, const struct trace *t)
{
	const struct domain_options *o = run->cli->data;
	char *file = NULL;
	int code = CLI_OK;
	size_t i;

	if (o->plugin) {
		file = realpath(o->plugin, NULL);
		if (!file) {
			cli_error(run->cli, "--plugin: %s: %m", o->plugin);
			return CLI_FAILED;
		}
	}
	for (i = 0; i < run->domains && !code; i++)
		code = add_plugin(run, t, i, file);
	free(file);
	return code;
}

/* ---- the action ---- */

/* The clocks; on a terminal seconds, bytes and domains. */
static void tick(struct domain_run *run, double seconds)
{
	struct cli *cli = run->cli;
	struct trace *t = run->tick_arg;

	cli_recorder_tick(&t->recorder);
	if (!t->shows || seconds < cli->progress.after)
		return;
	cli->progress.drawn = true;
	fprintf(stderr, "\r%.0f s  %.1f MB  %zu of %zu domains run\033[K", seconds,
		(double)trace_bytes(t) / 1e6, domain_run_alive(run), run->domains);
}

static void start_ticks(struct domain_run *run, struct trace *t)
{
	const char *after = getenv("VMPT_PROGRESS_AFTER");

	t->shows = !run->cli->quiet && isatty(STDERR_FILENO);
	run->cli->progress.after = after ? strtod(after, NULL) : 1;
	run->tick = tick;
	run->tick_arg = t;
}

static int run_all(struct domain_run *run, struct trace *t)
{
	const struct domain_options *o = run->cli->data;
	int code, stopped;

	code = domain_run_create(run, domain_run_mortal(run));
	if (!code)
		code = domain_run_resume(run);
	if (!code)
		trace_folder_settle(run->cli, t, true);
	if (!code && !run->cli->quiet)
		fprintf(stderr, "tracing %zu domain%s; Ctrl-C ends it\n", run->domains,
			run->domains == 1 ? "" : "s");
	start_ticks(run, t);
	if (!code)
		code = domain_run_wait(run, o->seconds);
	cli_progress_end(run->cli);
	stopped = domain_run_stop(run);
	return code ? code : stopped;
}

/* The result: the trace and the domains. */
static int tell(struct cli *cli, const struct domain_run *run, struct trace *t)
{
	int shown = trace_show(cli, run, t), code = domain_run_ends(run);
	bool lost = false;
	size_t i;

	fflush(stdout);
	for (i = 0; i < run->domains; i++)
		lost |= domain_log_losses(cli, run->link, &run->domain[i]);
	code = code ? code : shown;
	return code || !lost ? code : CLI_LOSSES;
}

static int trace(struct cli *cli, struct domain_link *link, struct trace *t)
{
	struct domain_run run;
	int code = domain_run_load(&run, cli, link), ended = CLI_OK;

	run.edited = true;
	if (!code)
		code = assign(&run, t);
	if (!code)
		code = trace_folder(cli, link, t);
	if (!code)
		code = add_plugins(&run, t);
	if (!code) {
		code = trace_record(cli, &run, t);
		if (!code)
			code = run_all(&run, t);
		/* Whether the clocks of the end could be written or not, there is a trace. */
		ended = trace_record_end(t, domain_signal());
	}
	trace_folder_settle(cli, t, false);
	if (!code)
		code = tell(cli, &run, t);
	domain_run_free(&run);
	return code ? code : ended;
}

int domain_trace(struct cli *cli)
{
	struct trace t = { .dir_fd = -1 };
	struct domain_link link;
	int code;

	code = domain_catch_signals(cli);
	if (code)
		return code;
	code = domain_connect(cli, &link);
	if (!code)
		code = trace(cli, &link, &t);
	domain_disconnect(&link);
	free(t.vcpu);
	free(t.dir);
	if (t.dir_fd >= 0)
		close(t.dir_fd);
	return code;
}
