// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Compares the times of packets, and the times that packets contain, with the truth. */
#include <stdio.h>
#include <stdlib.h>

#include "judge.h"
#include "util/array.h"

#define TSC_MASK ((1ULL << 56) - 1)

/* The last entry or exit before byte @at. */
static const struct move *move_before(const struct times *times, u64 at, size_t *hint)
{
	while (*hint < times->move_count && times->moves[*hint].at <= at)
		++*hint;
	return *hint ? &times->moves[*hint - 1] : NULL;
}

struct align {
	struct judge *judge;
	struct judge_stream *cpu;
	size_t hint, move;
	u64 hosts, guests, mtcs;
};

static void align_tsc(struct align *a, const struct vmpt_packet *packet, u64 tsc)
{
	const struct move *move = move_before(&a->cpu->times, packet->offset, &a->move);
	struct judge_stream *cpu = a->cpu;
	struct vmpt_tsc_map map;

	if (move && move->entry) {
		map.multiplier = move->multiplier;
		map.offset = move->offset;
		a->guests++;
		if (vmpt_grow(&cpu->guest_tscs, cpu->guest_tsc_count))
			abort();
		cpu->guest_tscs[cpu->guest_tsc_count].vmcs = move->vmcs;
		cpu->guest_tscs[cpu->guest_tsc_count++].tsc = tsc;
		tsc = (u64)((unsigned __int128)tsc * map.multiplier >> 48) + map.offset;
	} else {
		a->hosts++;
	}
	if (packet->payload != (tsc & TSC_MASK))
		judge_fails(a->judge, "cpu %d offset %llx: TSC %llx, by the truth %llx",
			    cpu->stream->cpu, (unsigned long long)packet->offset,
			    (unsigned long long)packet->payload,
			    (unsigned long long)(tsc & TSC_MASK));
}

static void align_mtc(struct align *a, const struct vmpt_packet *packet, u64 tsc)
{
	struct judge_stream *cpu = a->cpu;

	a->mtcs++;
	if (vmpt_grow(&cpu->mtcs, cpu->mtc_count))
		abort();
	cpu->mtcs[cpu->mtc_count++] = tsc;
	if (tsc % a->judge->period || (tsc / a->judge->period & 0xff) != packet->payload)
		judge_fails(a->judge, "cpu %d offset %llx: MTC %02llx at TSC %llx",
			    cpu->stream->cpu, (unsigned long long)packet->offset,
			    (unsigned long long)packet->payload, (unsigned long long)tsc);
}

static void align(struct judge *judge, struct judge_stream *cpu)
{
	struct align a = { .judge = judge, .cpu = cpu };
	struct vmpt_options options = { 0 };
	struct vmpt_cursor cursor = { 0 };
	struct vmpt_packet packet;
	struct vmpt_decoder *dec;
	int ret;

	/* perf pads to a multiple of 8 bytes. */
	if (cpu->stream->size > cpu->times.size + 7)
		judge_fails(judge, "cpu %d: %llu bytes, %llu were made", cpu->stream->cpu,
			    (unsigned long long)cpu->stream->size,
			    (unsigned long long)cpu->times.size);
	ret = vmpt_decoder_open(&dec, cpu->stream, &options);
	while (!ret && (ret = vmpt_packet_next(dec, &cursor, &packet)) > 0) {
		u64 tsc = times_at(&cpu->times, packet.offset, &a.hint);

		ret = 0;
		if (packet.kind == VMPT_PT_TSC)
			align_tsc(&a, &packet, tsc);
		else if (packet.kind == VMPT_PT_MTC)
			align_mtc(&a, &packet, tsc);
	}
	vmpt_decoder_close(dec);
	if (ret < 0 || !a.hosts)
		judge_fails(judge, "cpu %d: error %d, %llu TSC packets", cpu->stream->cpu, ret,
			    (unsigned long long)a.hosts);
	printf("cpu %d: %llu bytes; TSCs of the host %llu, of guests %llu, MTCs %llu: all as in the "
	       "truth\n",
	       cpu->stream->cpu, (unsigned long long)cpu->stream->size, (unsigned long long)a.hosts,
	       (unsigned long long)a.guests, (unsigned long long)a.mtcs);
}

void judge_align(struct judge *judge)
{
	for (size_t i = 0; i < judge->n; i++)
		align(judge, &judge->cpus[i]);
}

/* ---- times ---- */

struct error {
	u64 packets, before; /* before: the first TSC */
	u64 open, outside;   /* no bound; the truth is outside of the bounds */
	u64 percent, period; /* within 1 % of the MTCs' distance, within one MTC period */
	u64 exact, worst, backs;
	u64 widest; /* bounds */
	double sum;
};

struct timing {
	struct judge *judge;
	struct judge_stream *cpu;
	struct error error;
	size_t hint, mtc, move;
	u64 last, last_offset;
	bool gone_back;
};

/* From the MTC before TSC @tsc to the one after it. */
static u64 mtc_distance(struct timing *t, u64 tsc)
{
	const struct judge_stream *cpu = t->cpu;

	while (t->mtc < cpu->mtc_count && cpu->mtcs[t->mtc] <= tsc)
		t->mtc++;
	return t->mtc && t->mtc < cpu->mtc_count ? cpu->mtcs[t->mtc] - cpu->mtcs[t->mtc - 1]
						 : t->judge->period;
}

static void judge_bounds(struct timing *t, u64 at, unsigned int kind, const struct vmpt_time *time,
			 u64 tsc)
{
	struct error *e = &t->error;

	if (time->early == VMPT_TIME_OPEN || time->late == VMPT_TIME_OPEN)
		e->open++;
	else if ((u64)time->early + time->late > e->widest)
		e->widest = (u64)time->early + time->late;
	if ((time->early != VMPT_TIME_OPEN && tsc + time->early < time->tsc) ||
	    (time->late != VMPT_TIME_OPEN && tsc > time->tsc + time->late)) {
		e->outside++;
		judge_fails(
			t->judge, "cpu %d offset %llx kind %u: made at %llu, reported %llu -%u +%u",
			t->cpu->stream->cpu, (unsigned long long)at, kind, (unsigned long long)tsc,
			(unsigned long long)time->tsc, time->early, time->late);
	}
}

static void judge_time(struct timing *t, u64 at, unsigned int kind, const struct vmpt_time *time)
{
	struct error *e = &t->error;
	u64 tsc, error;

	if (at >= t->cpu->times.size)
		return;
	tsc = times_at(&t->cpu->times, at, &t->hint);
	e->packets++;
	if (time->tsc == VMPT_TIME_NONE) {
		e->before++;
		return;
	}
	judge_bounds(t, at, kind, time, tsc);
	if (time->tsc < t->last) {
		e->backs++;
		if (!t->gone_back)
			judge_fails(t->judge, "cpu %d offset %llx: back from %llu to %llu",
				    t->cpu->stream->cpu, (unsigned long long)at,
				    (unsigned long long)t->last, (unsigned long long)time->tsc);
	}
	t->last = time->tsc;
	error = time->tsc > tsc ? time->tsc - tsc : tsc - time->tsc;
	e->exact += !error;
	e->percent += error * 100 <= mtc_distance(t, tsc);
	/* Without a bound no time is claimed; such packets are counted. */
	e->period += error <= t->judge->period || time->early == VMPT_TIME_OPEN ||
		     time->late == VMPT_TIME_OPEN;
	e->sum += (double)error;
	if (error > e->worst) {
		e->worst = error;
		if (t->judge->verbose)
			printf("cpu %d offset %llx kind %u: off by %llu, made at %llu\n",
			       t->cpu->stream->cpu, (unsigned long long)at, kind,
			       (unsigned long long)error, (unsigned long long)tsc);
	}
}

/* A slice begins with the item at its offset. */
static void note_move(struct timing *t, u64 at, const struct vmpt_time *time)
{
	struct judge_stream *cpu = t->cpu;

	for (; t->move < cpu->found_count && cpu->found[t->move].at <= at; t->move++)
		cpu->found[t->move].time = *time;
}

static void batch(struct timing *t, const struct vmpt_timed_batch *b)
{
	for (size_t i = 0; i < b->batch.count; i++) {
		const struct vmpt_item *item = &b->batch.items[i];
		u64 at = b->batch.base + item->offset;

		t->gone_back = b->back && i == b->back_item;
		struct vmpt_time time = b->time[i];

		if (time.tsc != VMPT_TIME_NONE)
			time.tsc += t->judge->spoil;
		judge_time(t, at, item->kind, &time);
		note_move(t, at, &time);
	}
}

/* For the VM entries and exits that the splitter finds. */
static void find_moves(struct judge *judge, struct judge_stream *cpu)
{
	struct vmpt_options options = { 0 };
	struct vmpt_splitter *split;
	struct vmpt_slice slice;
	u64 vmcs = 0;
	int ret = vmpt_splitter_open(&split, cpu->stream, &options);

	while (!ret && (ret = vmpt_split_next(split, &slice)) > 0) {
		struct found_move *move;

		ret = 0;
		if (slice.owner.kind == VMPT_OWNER_VM)
			vmcs = slice.owner.vmcs;
		if (slice.begin != VMPT_BEGIN_ENTRY && slice.begin != VMPT_BEGIN_EXIT)
			continue;
		if (vmpt_grow(&cpu->found, cpu->found_count))
			abort();
		move = &cpu->found[cpu->found_count++];
		*move = (struct found_move){ .at = slice.offset,
					     .vmcs = vmcs,
					     .entry = slice.begin == VMPT_BEGIN_ENTRY };
	}
	vmpt_splitter_close(split);
	if (ret < 0)
		judge_fails(judge, "cpu %d: error %d of the splitter", cpu->stream->cpu, ret);
}

static void report(struct judge *judge, int cpu, const struct error *e)
{
	double timed = (double)(e->packets - e->before);

	printf("cpu %d: %llu packets, %llu before the first TSC; outside their bounds %llu; "
	       "exact %.2f %%, within 1 %% of the MTCs' distance %.3f %%, within an MTC period "
	       "%.3f %%; mean error %.2f ticks, worst %llu; widest bounds %llu, open %llu; back %llu\n",
	       cpu, (unsigned long long)e->packets, (unsigned long long)e->before,
	       (unsigned long long)e->outside, 100 * (double)e->exact / timed,
	       100 * (double)e->percent / timed, 100 * (double)e->period / timed, e->sum / timed,
	       (unsigned long long)e->worst, (unsigned long long)e->widest,
	       (unsigned long long)e->open, (unsigned long long)e->backs);
	if (judge->cyc && judge->period && (double)e->percent < 0.99 * timed)
		judge_fails(judge, "cpu %d: less than 99 %% within 1 %%", cpu);
	if (judge->period && (double)e->period < timed)
		judge_fails(judge, "cpu %d: not all within one MTC period", cpu);
	if (1000 * e->open > e->packets)
		judge_fails(judge, "cpu %d: more than 0.1 %% have no bound", cpu);
	/* A PSB+ begins with PSB, and TSC is the next. */
	if (e->before > 4)
		judge_fails(judge, "cpu %d: %llu packets without a time", cpu,
			    (unsigned long long)e->before);
}

void judge_packets(struct judge *judge)
{
	for (size_t i = 0; i < judge->n; i++) {
		struct timing t = { .judge = judge, .cpu = &judge->cpus[i] };
		struct vmpt_options options = { 0 };
		struct vmpt_timed_batch b;
		struct vmpt_timed *timed;
		int ret;

		find_moves(judge, t.cpu);
		ret = vmpt_timed_open(&timed, judge->clocks, i, &options);
		if (!ret) {
			while ((ret = vmpt_timed_next(timed, &b)) > 0)
				batch(&t, &b);
			vmpt_timed_close(timed);
		}
		if (ret < 0)
			judge_fails(judge, "cpu %d: error %d", t.cpu->stream->cpu, ret);
		report(judge, t.cpu->stream->cpu, &t.error);
	}
}
