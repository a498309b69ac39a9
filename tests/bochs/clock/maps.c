// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Compares the guests' offsets and multipliers that the clocks find with those in force. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "judge.h"

#define MAX_EPOCHS 64
#define PAIRS	   3   /* TSC packets of the guest that an epoch needs in order to be found */
#define MANY	   100 /* the multiplier is judged from that many entries and exits on */

/* An offset and a multiplier that were in force for a while. */
struct in_force {
	u64 vmcs;
	struct vmpt_tsc_map map;
	u64 from, to;	 /* host ticks: first entry, last exit */
	u64 first, last; /* TSC packets of the guest */
	u32 moves, pairs;
};

struct truth {
	struct in_force epochs[MAX_EPOCHS];
	size_t count;
};

static struct in_force *latest(struct truth *truth, u64 vmcs)
{
	for (size_t i = truth->count; i--;)
		if (truth->epochs[i].vmcs == vmcs)
			return &truth->epochs[i];
	return NULL;
}

static int by_tsc(const void *a, const void *b)
{
	const struct move *x = *(const struct move *const *)a, *y = *(const struct move *const *)b;

	return x->tsc < y->tsc ? -1 : x->tsc > y->tsc;
}

static void add_move(struct judge *judge, struct truth *truth, const struct move *move)
{
	struct in_force *last = latest(truth, move->vmcs);

	if (!move->traced)
		return;
	if (!last || last->map.offset != move->offset || last->map.multiplier != move->multiplier) {
		if (truth->count == MAX_EPOCHS) {
			judge_fails(judge, "more than %d epochs", MAX_EPOCHS);
			return;
		}
		last = &truth->epochs[truth->count++];
		*last = (struct in_force){ .vmcs = move->vmcs,
					   .map = { move->multiplier, move->offset },
					   .from = move->tsc };
	}
	last->to = move->tsc;
	last->moves++;
}

static void add_pair(struct truth *truth, u64 vmcs, u64 tsc)
{
	for (size_t i = 0; i < truth->count; i++) {
		struct in_force *epoch = &truth->epochs[i];

		if (epoch->vmcs != vmcs || tsc < epoch->from || tsc > epoch->to)
			continue;
		if (!epoch->pairs++ || tsc < epoch->first)
			epoch->first = tsc;
		if (tsc > epoch->last)
			epoch->last = tsc;
	}
}

static void find_truth(struct judge *judge, struct truth *truth)
{
	const struct move **moves;
	size_t n = 0, room = 1;

	for (size_t i = 0; i < judge->n; i++)
		room += judge->cpus[i].times.move_count;
	moves = calloc(room, sizeof(*moves));
	if (!moves)
		abort();
	for (size_t i = 0; i < judge->n; i++)
		for (size_t k = 0; k < judge->cpus[i].times.move_count; k++)
			moves[n++] = &judge->cpus[i].times.moves[k];
	qsort(moves, n, sizeof(*moves), by_tsc);
	for (size_t i = 0; i < n; i++)
		add_move(judge, truth, moves[i]);
	free(moves);
	for (size_t i = 0; i < judge->n; i++)
		for (size_t k = 0; k < judge->cpus[i].guest_tsc_count; k++)
			add_pair(truth, judge->cpus[i].guest_tscs[k].vmcs,
				 judge->cpus[i].guest_tscs[k].tsc);
}

/* The difference of the maps at host tick @at, in guest ticks. */
static u64 apart(const struct vmpt_tsc_map *x, const struct vmpt_tsc_map *y, u64 at)
{
	u64 d = vmpt_tsc_to_guest(x, at) - vmpt_tsc_to_guest(y, at);

	return d >> 63 ? 0 - d : d;
}

/* The next one of the same VMCS, if it has a TSC packet. */
static const struct in_force *next_of(const struct truth *truth, const struct in_force *epoch)
{
	const struct in_force *end = truth->epochs + truth->count, *next;

	for (next = epoch + 1; next < end; next++)
		if (next->vmcs == epoch->vmcs && next->pairs)
			return next;
	return NULL;
}

static void judge_epoch(struct judge *judge, const struct truth *all, const struct in_force *truth)
{
	const struct in_force *next = next_of(all, truth);
	const struct vmpt_epoch *found = vmpt_clocks_at(
		judge->clocks, truth->vmcs, truth->first + (truth->last - truth->first) / 2);
	u64 far, far_last, period;
	double ppm;

	if (!found) {
		judge_fails(judge, "the TSC of %llx is unknown", (unsigned long long)truth->vmcs);
		return;
	}
	far = apart(&found->map, &truth->map, truth->first);
	far_last = apart(&found->map, &truth->map, truth->last);
	if (far_last > far)
		far = far_last;
	ppm = fabs((double)found->map.multiplier / (double)truth->map.multiplier - 1) * 1e6;
	period = (u64)((double)judge->period * (double)truth->map.multiplier /
		       (double)VMPT_TSC_UNSCALED) +
		 1;
	printf("%llx from %llu to %llu, %u entries and exits, %u TSCs: offset %lld, multiplier %.9f; "
	       "error of the guest's TSC: %llu ticks (stated: %lld), of the multiplier: "
	       "%.3f ppm (stated: %.3f)\n",
	       (unsigned long long)truth->vmcs, (unsigned long long)truth->from,
	       (unsigned long long)truth->to, truth->moves, truth->pairs,
	       (long long)truth->map.offset,
	       (double)truth->map.multiplier / (double)VMPT_TSC_UNSCALED, (unsigned long long)far,
	       (long long)found->offset_error, ppm, found->multiplier_ppm);
	printf("found %llx offset %#llx multiplier %.9f\n", (unsigned long long)truth->vmcs,
	       (unsigned long long)found->map.offset,
	       (double)found->map.multiplier / (double)VMPT_TSC_UNSCALED);
	if (judge->period && far > period)
		judge_fails(judge, "the error is more than an MTC period, %llu",
			    (unsigned long long)period);
	if (truth->moves >= MANY && ppm > 10)
		judge_fails(judge, "the error is more than 10 ppm");
	/* The change is found with the first packet that shows it: after the entry that made it.
	 */
	if (found->from + judge->period < truth->from || found->from > truth->first + judge->period)
		judge_fails(judge, "found from %llu on; its first TSC packet is at %llu",
			    (unsigned long long)found->from, (unsigned long long)truth->first);
	if (next && found->to > next->first + judge->period)
		judge_fails(judge, "found to hold until %llu; another has a TSC packet at %llu",
			    (unsigned long long)found->to, (unsigned long long)next->first);
}

/* There must be no more epochs than were in force. */
static void judge_counts(struct judge *judge, const struct truth *truth)
{
	for (size_t i = 0; i < vmpt_clocks_vmcs_count(judge->clocks); i++) {
		u64 vmcs = vmpt_clocks_vmcs(judge->clocks, i);
		size_t found, at_least = 0, at_most = 0;

		(void)vmpt_clocks_epochs(judge->clocks, i, &found);
		for (size_t k = 0; k < truth->count; k++) {
			if (truth->epochs[k].vmcs != vmcs)
				continue;
			at_least += truth->epochs[k].pairs >= PAIRS;
			at_most += truth->epochs[k].pairs > 0;
		}
		if (found < at_least || found > at_most)
			judge_fails(judge, "%llx: %zu epochs found, expected %zu to %zu",
				    (unsigned long long)vmcs, found, at_least, at_most);
	}
}

void judge_maps(struct judge *judge)
{
	struct truth truth = { 0 };
	size_t n = 0;

	find_truth(judge, &truth);
	for (size_t i = 0; i < truth.count; i++) {
		if (truth.epochs[i].pairs < PAIRS) {
			printf("%llx: %u TSCs of the guest at offset %lld: too few\n",
			       (unsigned long long)truth.epochs[i].vmcs, truth.epochs[i].pairs,
			       (long long)truth.epochs[i].map.offset);
			continue;
		}
		judge_epoch(judge, &truth, &truth.epochs[i]);
		n++;
	}
	judge_counts(judge, &truth);
	printf("maps: %zu, %u wrong\n", n, judge->failures);
}

/* ---- given values ---- */

/* How many of the @count given values are reported as wrong; -1: no clocks. */
static int wrong_with(struct judge *judge, const struct vmpt_given *given, size_t count)
{
	struct vmpt_clocks *clocks;
	size_t n = 0;

	if (judge_clocks(judge, given, count, &clocks))
		return -1;
	(void)vmpt_clocks_wrong(clocks, &n);
	vmpt_clocks_close(clocks);
	return (int)n;
}

/* Puts all that was in force for VMCS @vmcs into @given. */
static size_t tell(const struct truth *truth, u64 vmcs, struct vmpt_given *given)
{
	size_t n = 0;

	for (size_t i = 0; i < truth->count; i++) {
		if (truth->epochs[i].vmcs != vmcs)
			continue;
		given[n] = (struct vmpt_given){ .vmcs = vmcs,
						.map = truth->epochs[i].map,
						.from = n ? truth->epochs[i].from : 0,
						.source = VMPT_MAP_USER };
		n++;
	}
	return n;
}

/* For each VMCS: the right values, and then with a first offset that is wrong by ten MTCs. */
void judge_given(struct judge *judge)
{
	struct vmpt_given given[MAX_EPOCHS];
	struct truth truth = { 0 };

	find_truth(judge, &truth);
	for (size_t i = 0; i < truth.count; i++) {
		const struct in_force *epoch = &truth.epochs[i];
		int right, wrong;
		size_t n = tell(&truth, epoch->vmcs, given);

		if (epoch->pairs < PAIRS || epoch->map.offset != given[0].map.offset)
			continue;
		right = wrong_with(judge, given, n);
		given[0].map.offset += 10 * judge->period + 1000;
		wrong = wrong_with(judge, given, n);
		printf("given %zu offsets of %llx: %d contradicted; with a wrong one: %d\n", n,
		       (unsigned long long)epoch->vmcs, right, wrong);
		if (right || wrong < 1)
			judge_fails(judge, "the given values are judged wrongly");
	}
}
