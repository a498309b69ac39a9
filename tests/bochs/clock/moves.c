// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * VM entries and exits of all processors: each must be found at its place, and in the right order.
 */
#include <stdio.h>
#include <stdlib.h>

#include "judge.h"

/* The same one by the truth and by the decoder. */
struct both {
	const struct move *truth;
	const struct found_move *found;
};

static bool same(const struct judge_stream *cpu, const struct move *truth,
		 const struct found_move *found, size_t *hint)
{
	return truth->entry == found->entry && truth->vmcs == found->vmcs &&
	       found->at >= truth->at && times_at(&cpu->times, found->at, hint) == truth->tsc;
}

/* Collects those of one processor in @both; returns how many. */
static size_t match(struct judge *judge, const struct judge_stream *cpu, struct both *both)
{
	const struct times *times = &cpu->times;
	size_t n = 0, hint = 0;

	for (size_t i = 0; i < times->move_count; i++) {
		const struct move *truth = &times->moves[i];

		if (!truth->traced || truth->at >= cpu->stream->size)
			continue;
		if (n == cpu->found_count || !same(cpu, truth, &cpu->found[n], &hint)) {
			judge_fails(judge,
				    "cpu %u: the %s of %llx at offset %llx, tick %llu is not found",
				    truth->cpu, truth->entry ? "entry" : "exit",
				    (unsigned long long)truth->vmcs, (unsigned long long)truth->at,
				    (unsigned long long)truth->tsc);
			return n;
		}
		both[n].truth = truth;
		both[n].found = &cpu->found[n];
		n++;
	}
	if (n != cpu->found_count)
		judge_fails(judge, "cpu %d: %zu entries and exits, %zu found", cpu->stream->cpu, n,
			    cpu->found_count);
	return n;
}

static int by_truth(const void *a, const void *b)
{
	const struct move *x = ((const struct both *)a)->truth,
			  *y = ((const struct both *)b)->truth;

	if (x->tsc != y->tsc)
		return x->tsc < y->tsc ? -1 : 1;
	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* The bounds of @x end before those of @y begin. */
static bool before(const struct vmpt_time *x, const struct vmpt_time *y)
{
	return x->late != VMPT_TIME_OPEN && y->early != VMPT_TIME_OPEN &&
	       x->tsc + x->late < y->tsc - y->early;
}

/* Neighbours in time of different processors. */
static void order(struct judge *judge, const struct both *both, size_t n)
{
	u64 pairs = 0, right = 0, apart = 0;

	for (size_t i = 0; i + 1 < n; i++) {
		const struct both *x = &both[i], *y = &both[i + 1];

		if (x->truth->cpu == y->truth->cpu || x->truth->tsc == y->truth->tsc)
			continue;
		pairs++;
		right += x->found->time.tsc <= y->found->time.tsc;
		apart += before(&x->found->time, &y->found->time);
		if (before(&y->found->time, &x->found->time))
			judge_fails(judge, "ticks %llu and %llu are reported in the wrong order",
				    (unsigned long long)x->truth->tsc,
				    (unsigned long long)y->truth->tsc);
	}
	printf("order: %zu entries and exits; %llu neighbours on different processors, %llu in the "
	       "right order, %llu of them beyond doubt\n",
	       n, (unsigned long long)pairs, (unsigned long long)right, (unsigned long long)apart);
	if (judge->cyc && right != pairs)
		judge_fails(judge, "with CYC all should be in the right order");
}

void judge_moves(struct judge *judge)
{
	size_t room = 0, n = 0;
	struct both *both;

	for (size_t i = 0; i < judge->n; i++)
		room += judge->cpus[i].found_count;
	both = calloc(room + 1, sizeof(*both));
	if (!both)
		abort();
	for (size_t i = 0; i < judge->n; i++)
		n += match(judge, &judge->cpus[i], both + n);
	qsort(both, n, sizeof(*both), by_truth);
	order(judge, both, n);
	free(both);
}
