// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Memory that a contestant needs beyond its input: it runs in a child process, which reads its own
 * RssAnon after every MiB of the trace. The input is a shared mapping of a memfd and does not count
 * as anonymous; everything else of the child (stack, libraries' data) does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"

/* Shared with the child, in which tick() runs. */
static u64 *peak;

static void tick(void)
{
	char line[256];
	unsigned long long kib;
	FILE *f = fopen("/proc/self/status", "r");

	if (!f)
		return;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %llu kB", &kib) == 1 && kib * 1024 > *peak)
			*peak = kib * 1024;
	fclose(f);
}

u64 bench_memory(const struct bench_input *in, const struct bench_contest *c)
{
	struct bench_count count = { 0 };
	int status = 1;
	u64 found;
	pid_t pid;

	peak = mmap(NULL, sizeof(*peak), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (peak == MAP_FAILED) {
		perror("vmpt-bench: mmap");
		return 0;
	}
	*peak = 0;
	fflush(NULL);
	pid = fork();
	if (!pid)
		_exit(c->run(in, c, &count, tick) ? 1 : 0);
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || status)
		fprintf(stderr, "vmpt-bench: the child that measures memory failed\n");
	found = status ? 0 : *peak;
	if (!status && !found)
		fprintf(stderr, "vmpt-bench: no RssAnon in /proc/self/status\n");
	munmap(peak, sizeof(*peak));
	return found;
}
