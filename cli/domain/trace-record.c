// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt domain trace: recording.json of its folder. The processor's TSC is the plugin's: ns of the
 * host's CLOCK_MONOTONIC, and ahead of it on a CPU that VMs share, since the plugin moves their
 * runs one after the other (docs/qemu-plugin/host-view.md). How far, a stream's state says, so the
 * pairs give the time at which a part of the trace was really executed.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "cli/domain/trace.h"

/* qemu-plugin/host/state.h: struct host_shared */
#define STATE_MAGIC "VMPTCP2"
#define STATE_END   88
/* qemu-plugin/flow/clock.h */
#define TSC_KHZ 1000000
#define TSC_NUM 40
#define TSC_DEN 1
/* qemu-plugin/host/loop.h */
#define HOST_CODE    "host.bin"
#define HOST_ADDRESS 0xffffffffa0000000ULL

/* The end of CPU number @i's stream, by its clock; 0: it has none yet. */
static u64 end_of(struct trace *t, size_t i)
{
	char name[32], magic[sizeof(STATE_MAGIC)];
	u64 end;

	if (t->state[i] < 0) {
		snprintf(name, sizeof(name), "cpu%u.state", t->cpu[i]);
		t->state[i] = trace_open_file(t->dir_fd, name);
	}
	if (t->state[i] < 0 ||
	    pread(t->state[i], magic, sizeof(magic), 0) != (ssize_t)sizeof(magic) ||
	    memcmp(magic, STATE_MAGIC, sizeof(magic)) != 0 ||
	    pread(t->state[i], &end, sizeof(end), STATE_END) != (ssize_t)sizeof(end))
		return 0;
	return end;
}

static u64 tsc(void *opaque, u64 *spread)
{
	struct trace *t = opaque;
	u64 now, at, least = ~0ULL, most;
	struct timespec clock;
	size_t i;

	clock_gettime(CLOCK_MONOTONIC, &clock);
	most = now = (u64)clock.tv_sec * 1000000000 + (u64)clock.tv_nsec;
	for (i = 0; i < t->cpus; i++) {
		at = end_of(t, i);
		at = at > now ? at : now;
		most = at > most ? at : most;
		least = at < least ? at : least;
	}
	*spread = t->cpus ? most - least : 0;
	return most;
}

static bool is_used(const struct trace *t, unsigned int cpu)
{
	size_t i;

	for (i = 0; i < t->vcpus; i++)
		if (t->vcpu[i].cpu == cpu)
			return true;
	return false;
}

/* The guests' code, and that of a synthetic host. */
static json_t *code(struct cli *cli, const struct domain_run *run)
{
	const struct domain_options *o = cli->data;
	json_t *list = json_array(), *one;
	char name[32];
	size_t i;

	for (i = 0; !o->no_code && i < run->domains; i++) {
		one = json_object();
		snprintf(name, sizeof(name), TRACE_CODE, i);
		cli_json_string(cli, one, "file", name);
		cli_json_string(cli, one, "vm", run->domain[i].name);
		cli_json_add(cli, list, one);
	}
	if (o->host && !strcmp(o->host, "synthetic")) {
		one = json_object();
		cli_json_string(cli, one, "file", HOST_CODE);
		cli_json_set(cli, one, "vm", json_null());
		cli_json_hex(cli, one, "address", HOST_ADDRESS);
		cli_json_add(cli, list, one);
	}
	return list;
}

bool trace_has_tasks(const struct domain_options *o)
{
	return !o->no_tasks && (!o->isa || strcmp(o->isa, "rtit") != 0);
}

/* The guests' processes and their kernels' functions. */
static json_t *tasks(struct cli *cli, const struct domain_run *run)
{
	json_t *list = json_array(), *one;
	char name[32];
	size_t i;

	for (i = 0; i < run->domains; i++) {
		one = json_object();
		snprintf(name, sizeof(name), TRACE_TASKS, i);
		cli_json_string(cli, one, "file", name);
		snprintf(name, sizeof(name), TRACE_SYMBOLS, i);
		cli_json_string(cli, one, "symbols", name);
		cli_json_string(cli, one, "vm", run->domain[i].name);
		cli_json_add(cli, list, one);
	}
	return list;
}

int trace_record(struct cli *cli, const struct domain_run *run, struct trace *t)
{
	const struct domain_options *o = cli->data;
	bool rtit = o->isa && !strcmp(o->isa, "rtit");
	json_t *head = json_object(), *host = json_object(), *rates = json_object();
	struct utsname system;
	char name[32];
	size_t i;

	for (i = 0; i < TRACE_CPUS; i++)
		t->state[i] = -1;
	t->recorder.tsc = tsc;
	t->recorder.opaque = t;
	cli_json_string(cli, head, "recorder", "vmpt domain trace");
	if (!uname(&system))
		cli_json_string(cli, host, "kernel", system.release);
	cli_json_string(cli, rates, "tsc_source", "CLOCK_MONOTONIC");
	cli_json_number(cli, rates, "tsc_khz", TSC_KHZ);
	if (!rtit) {
		cli_json_number(cli, rates, "tsc_art_numerator", TSC_NUM);
		cli_json_number(cli, rates, "tsc_art_denominator", TSC_DEN);
	}
	cli_json_set(cli, head, "host", host);
	cli_json_set(cli, head, "rates", rates);
	if (o->perf_data)
		cli_recorder_trace(cli, head, CLI_FOLDER_PERF, -1);
	for (i = 0; !o->perf_data && i < t->cpus; i++) {
		if (!is_used(t, t->cpu[i]))
			continue;
		snprintf(name, sizeof(name), "cpu%u.%s", t->cpu[i], rtit ? "rtit" : "pt");
		cli_recorder_trace(cli, head, name, (int)t->cpu[i]);
	}
	cli_json_string(cli, head, "side_record", TRACE_RECORD);
	cli_json_set(cli, head, "code", code(cli, run));
	if (trace_has_tasks(o))
		cli_json_set(cli, head, "tasks", tasks(cli, run));
	return cli_recorder_open(&t->recorder, cli, t->dir, head);
}

int trace_record_end(struct trace *t, bool stopped)
{
	json_t *end = json_object();
	size_t i;
	int code;

	json_object_set_new(end, "stopped", json_boolean(stopped));
	code = cli_recorder_close(&t->recorder, end);
	for (i = 0; i < TRACE_CPUS; i++)
		if (t->state[i] >= 0)
			close(t->state[i]);
	return code;
}
