// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Writing recording.json; see recorder.h. */
#include <stdlib.h>

#include "cli/base/base.h"
#include "cli/base/recorder.h"

#define NS	  1000000000ULL
#define FIRST	  (NS / 2)
#define PAIRS_MAX 2048
#define READINGS  5

static u64 now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (u64)t.tv_sec * NS + (u64)t.tv_nsec;
}

/* Of some readings the one that took the shortest time: nothing came in between. */
static void add_clocks(struct cli_recorder *r)
{
	u64 tsc = 0, raw = 0, real = 0, spread = 0, least = ~0ULL, from, raw_now, real_now, to;
	json_t *pair = json_object();
	int i;

	for (i = 0; i < READINGS; i++) {
		from = r->tsc(r->opaque, &spread);
		raw_now = now(CLOCK_MONOTONIC_RAW);
		real_now = now(CLOCK_REALTIME);
		to = r->tsc(r->opaque, &spread);
		if (to - from >= least)
			continue;
		least = to - from;
		tsc = from + least / 2;
		raw = raw_now;
		real = real_now;
	}
	r->next = raw + r->every;
	/* The plugin's stands still while its stream is ahead of the clock. */
	if (tsc <= r->last_tsc && r->first_raw) {
		json_decref(pair);
		return;
	}
	r->last_tsc = tsc;
	if (!r->first_raw) {
		r->first_tsc = tsc;
		r->first_raw = raw;
	} else if (r->constant && raw - r->first_raw >= NS) {
		cli_json_number(
			r->cli, json_object_get(r->doc, "rates"), "tsc_khz",
			(u64)((double)(tsc - r->first_tsc) * 1e6 / (double)(raw - r->first_raw) +
			      0.5));
	}
	r->next = raw + r->every;
	cli_json_hex(r->cli, pair, "tsc", tsc);
	cli_json_number(r->cli, pair, "monotonic_raw_ns", raw);
	cli_json_number(r->cli, pair, "realtime_ns", real);
	if (spread)
		cli_json_number(r->cli, pair, "cpu_spread_ns", spread);
	cli_json_add(r->cli, r->clocks, pair);
}

/* A long recording has half of them at twice the distance. */
static void thin_out(struct cli_recorder *r)
{
	size_t i;

	for (i = 1; i < json_array_size(r->clocks); i++)
		json_array_remove(r->clocks, i);
	r->every *= 2;
}

int cli_recorder_put(struct cli_recorder *r)
{
	struct cli_file file;
	int code = cli_file_create(r->cli, r->path, "\"format\"", &file);

	if (code)
		return code;
	code = cli_json_print(r->cli, json_incref(r->doc), file.f, false);
	if (!code)
		return cli_file_commit(r->cli, &file);
	cli_file_drop(&file);
	return code;
}

void cli_recorder_trace(struct cli *cli, json_t *doc, const char *file, int cpu)
{
	json_t *list = json_object_get(doc, "traces"), *o = json_object();

	if (!list) {
		list = json_array();
		cli_json_set(cli, doc, "traces", list);
	}
	cli_json_string(cli, o, "file", file);
	cli_json_set(cli, o, "cpu", cpu < 0 ? json_null() : json_integer(cpu));
	cli_json_add(cli, list, o);
}

int cli_recorder_open(struct cli_recorder *r, struct cli *cli, const char *folder, json_t *doc)
{
	json_t *head = json_object();

	r->cli = cli;
	r->every = FIRST;
	cli_json_number(cli, head, "format", CLI_FOLDER_FORMAT);
	cli_json_string(cli, head, "vmpt", VMPT_VERSION);
	if (json_object_update(head, doc))
		cli->out_of_memory = true;
	json_decref(doc);
	r->doc = head;
	r->clocks = json_array();
	cli_json_set(cli, head, "clocks", r->clocks);
	if (asprintf(&r->path, "%s/" CLI_FOLDER_HEAD, folder) < 0)
		r->path = NULL;
	if (!r->path || !r->clocks || cli->out_of_memory)
		return cli_no_memory(cli);
	add_clocks(r);
	return cli_recorder_put(r);
}

void cli_recorder_tick(struct cli_recorder *r)
{
	if (!r->path || r->failed || now(CLOCK_MONOTONIC_RAW) < r->next)
		return;
	add_clocks(r);
	if (json_array_size(r->clocks) >= PAIRS_MAX)
		thin_out(r);
	r->failed = cli_recorder_put(r);
}

int cli_recorder_close(struct cli_recorder *r, json_t *end)
{
	int code = CLI_OK;

	if (r->path && json_array_size(r->clocks)) {
		add_clocks(r);
		cli_json_set(r->cli, r->doc, "end", end);
		code = cli_recorder_put(r);
	} else {
		json_decref(end);
	}
	json_decref(r->doc);
	free(r->path);
	r->doc = r->clocks = NULL;
	r->path = NULL;
	return code;
}
