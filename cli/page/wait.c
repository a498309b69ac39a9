// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What a CPU did while a vCPU that had left its guest there was out: who else ran, and what is not
 * known. Each CPU has a list of its guests' runs; a vCPU notes where it stood when it left, and
 * goes through the rest when it comes back. Runs of one vCPU in one bucket of the grid are one
 * entry, and the list keeps only the last ones. How long the vCPU waited is given (span.h).
 */
#include <string.h>

#include "cli/page/parts.h"
#include "util/array.h"

#define RUNS_MAX 32768u

int page_cpu_add(struct page_cpu *cpu, u64 width, u32 who, u64 start, u64 end)
{
	struct page_run *last = cpu->runs ? &cpu->run[cpu->runs - 1] : NULL;

	if (start == end)
		return 0;
	if (last && last->who == who && width && last->start / width == end / width &&
	    start >= last->end) {
		last->end = end;
		last->ticks += end - start;
		return 0;
	}
	if (cpu->runs == RUNS_MAX) {
		cpu->runs /= 2;
		cpu->first += RUNS_MAX - cpu->runs;
		memmove(cpu->run, cpu->run + RUNS_MAX - cpu->runs, cpu->runs * sizeof(*cpu->run));
	}
	if (vmpt_reserve(&cpu->run, &cpu->room, cpu->runs + 1))
		return -1;
	cpu->run[cpu->runs++] = (struct page_run){ start, end, end - start, who };
	return 0;
}

u64 page_cpu_next(const struct page_cpu *cpu, u64 *next, u64 until, struct page_run *run)
{
	u64 past;

	if (*next < cpu->first)
		*next = cpu->first;
	if (*next == cpu->first + cpu->runs)
		return 0;
	*run = cpu->run[(*next)++ - cpu->first];
	/* Only the last one can still run when the vCPU is elsewhere again. */
	past = run->end > until ? run->end - until : 0;
	if (past >= run->ticks)
		return 0;
	run->end -= past;
	run->ticks -= past;
	return run->ticks;
}
