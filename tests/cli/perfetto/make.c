// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Make a Perfetto trace of made-up calls: perfetto-make FILE SLICES DEPTH <EVENTS. An event is a
 * line: "b TRACK TIME NAME", "e TRACK TIME INSTRUCTIONS", "f FLOW" (of the slice that begins next).
 * Prints the ticks below which slices were folded, and how many were.
 */
#include <stdlib.h>

#include "cli/perfetto/perfetto.h"

#define TRACKS 8

static int take(struct perfetto_log *log, const u32 *track, const char *line)
{
	static u32 flow;
	unsigned long long time, value;
	struct perfetto_slice *s;
	unsigned int at;
	char name[64];
	int err = 0;

	if (sscanf(line, "f %u", &at) == 1) {
		flow = at;
		if (flow > log->flows)
			log->flows = flow;
	} else if (sscanf(line, "b %u %llu %63s", &at, &time, name) == 3 && at < TRACKS) {
		s = perfetto_begin(log, track[at], time, perfetto_name(log, name), PERFETTO_CALL,
				   &err);
		if (s)
			s->flow = flow;
		flow = 0;
	} else if (sscanf(line, "e %u %llu %llu", &at, &time, &value) == 3 && at < TRACKS) {
		s = perfetto_end(log, track[at], time, &err);
		if (s) {
			s->has_value = true;
			s->value = value;
		}
	} else {
		return -1;
	}
	return err;
}

int main(int argc, char **argv)
{
	struct perfetto_facts facts = { .start_ns = 5000, .writer = "test" };
	struct perfetto_rates rates = { 0 };
	struct perfetto_log log = { 0 };
	u32 track[TRACKS], process, rate, i;
	char line[128];
	int err = 0;

	if (argc != 4)
		return 2;
	perfetto_log_open(&log, strtoull(argv[2], NULL, 0), (u32)strtoul(argv[3], NULL, 0));
	process = perfetto_process(&log, "web");
	for (i = 0; i < TRACKS; i++) {
		snprintf(line, sizeof(line), "task %u", i);
		track[i] = perfetto_track(&log, PERFETTO_THREAD, process, line);
	}
	rate = perfetto_rate(&rates, &log, process, "events/tick", 1);
	while (!err && fgets(line, sizeof(line), stdin)) {
		err = take(&log, track, line);
		perfetto_rate_add(&rates, rate, log.marks ? log.mark[log.marks - 1].time : 0, 1);
	}
	facts.out = fopen(argv[1], "w");
	if (err || !facts.out || perfetto_log_finish(&log, 0) ||
	    perfetto_encode(&log, &rates, &facts) || ferror(facts.out))
		return 1;
	fclose(facts.out);
	printf("%llu %llu\n", (unsigned long long)log.shortest, (unsigned long long)log.folded);
	perfetto_log_close(&log);
	perfetto_rates_close(&rates);
	return 0;
}
