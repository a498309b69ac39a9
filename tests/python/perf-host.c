// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Makes a perf.data of raw traces and events, for the tests of the Python module, which read the
 * raw traces for what it has to contain.
 *
 *	perf-host OUT <EVENTS
 *
 * A line is an event: "comm PID NAME TIME", "switch OUT PID CPU TIME", "entry VCPU RIP PID CPU
 *TIME", "exit VCPU RIP REASON PID CPU TIME"; or "trace CPU FILE". Times are perf's, ns.
 */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/decoder/perf-writer.h"

static void put_trace(struct perf_writer *w, int cpu, const char *name)
{
	FILE *f = fopen(name, "rb");
	long size;
	u8 *data;

	if (!f || fseek(f, 0, SEEK_END) || (size = ftell(f)) < 0)
		abort();
	rewind(f);
	data = malloc((size_t)size + 1);
	if (!data || fread(data, 1, (size_t)size, f) != (size_t)size)
		abort();
	fclose(f);
	writer_aux(w, cpu, -1, 0, (u64)size, 0);
	writer_auxtrace(w, cpu, -1, 0, data, (size_t)size);
	free(data);
}

static void put_line(struct perf_writer *w, const char *line)
{
	struct writer_exit exit = { .isa = 1 };
	struct writer_at at = { 0 };
	char name[4096];
	u32 out, vcpu;
	u64 rip;
	int cpu;

	if (sscanf(line, "comm %u %15s %" SCNu64, &at.pid, name, &at.time) == 3)
		writer_comm(w, true, name, at.pid, at.pid, &at);
	else if (sscanf(line, "switch %u %u %u %" SCNu64, &out, &at.pid, &at.cpu, &at.time) == 4)
		at.tid = at.pid, writer_switch(w, out, false, &at);
	else if (sscanf(line, "entry %u %" SCNu64 " %u %u %" SCNu64, &vcpu, &rip, &at.pid, &at.cpu,
			&at.time) == 5)
		at.tid = at.pid, writer_kvm_entry(w, vcpu, rip, &at);
	else if (sscanf(line, "exit %u %" SCNu64 " %u %u %u %" SCNu64, &exit.vcpu, &exit.rip,
			&exit.reason, &at.pid, &at.cpu, &at.time) == 6)
		at.tid = at.pid, writer_kvm_exit(w, &exit, &at);
	else if (sscanf(line, "trace %d %4095s", &cpu, name) == 2)
		put_trace(w, cpu, name);
	else
		abort();
}

int main(int argc, char **argv)
{
	struct perf_writer w;
	char line[8192];
	FILE *f;

	if (argc != 2)
		return 2;
	writer_start_kvm(&w, false);
	writer_info(&w, false, WRITER_PRIVS);
	while (fgets(line, sizeof(line), stdin))
		put_line(&w, line);
	writer_finish(&w);
	f = fopen(argv[1], "wb");
	if (!f || fwrite(w.buf, 1, w.size, f) != w.size || fclose(f))
		return 1;
	writer_free(&w);
	return 0;
}
