// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Does the clock of RTIT have the true times of a trace of the QEMU plugin?
 *
 *	rtit-clock-check [--ratio=N] [--bounded=PERCENT] [--sts] TRACE
 *
 * The trace is cycle accurate. Its STSs are exact, and its MTCs come at the tick at which they
 * change: these are marks, computed here without the clock. The clock's bound for a mark must
 * contain it, and its time for any other packet must be between the marks before and after it; with
 * --sts only STSs are marks. --ratio: TSC ticks per bus clock, given to the clock. Exit code 0:
 * this holds, and PERCENT of the packets have a bound; 1: it does not, 2: usage.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "decoder/vmpt-decode.h"
#include "decoder/vmpt-rtit-clock.h"
#include "util/array.h"

struct bound {
	u64 offset, lo, hi;
};

static struct check {
	struct vmpt_rtit_clock clock;
	u64 mark;	     /* the last */
	bool any;	     /* there was one */
	bool run;	     /* an STS came in this run: MTCs follow one another */
	bool sts;	     /* MTCs are no marks */
	bool was_bounded;    /* the packet before this item */
	struct bound *bound; /* of packets since */
	size_t count, room;
	u64 packets, bounded, exact, wrong;
} check;

static void complain(const struct bound *b, u64 from, u64 to)
{
	if (check.wrong++ < 10)
		printf("%llx: from %llx to %llx; it is from %llx to %llx\n",
		       (unsigned long long)b->offset, (unsigned long long)b->lo,
		       (unsigned long long)b->hi, (unsigned long long)from, (unsigned long long)to);
}

/* Packets since the last mark came before this one. */
static void end_segment(u64 mark)
{
	size_t i;

	for (i = 0; i < check.count; i++) {
		const struct bound *b = &check.bound[i];

		if (b->lo > mark || b->hi < check.mark)
			complain(b, check.mark, mark);
	}
	check.count = 0;
	check.mark = mark;
	check.any = true;
}

/* The tick of an STS or MTC, or 0: other packets, or not known. */
static u64 mark_of(const struct vmpt_packet *pkt)
{
	unsigned int shift = 7 + 2 * (pkt->payload >> 8 & 3);
	u64 tick, sts = pkt->payload & vmpt_mask64(40);

	if (pkt->kind == VMPT_ITEM_RTIT + VMPT_RTIT_STS) {
		tick = (check.mark & ~vmpt_mask64(40)) | sts;
		return tick + (1ULL << 39) < check.mark ? tick + (1ULL << 40) : tick;
	}
	if (pkt->kind != VMPT_ITEM_RTIT + VMPT_RTIT_MTC || !check.run || check.sts)
		return 0;
	tick = check.mark >> shift;
	return (tick + 1 + ((pkt->payload - tick - 1) & 0xff)) << shift;
}

/* A packet's CYC adds to what is known of the packet. */
static void count(const struct vmpt_packet *pkt)
{
	bool bounded = check.clock.error != ~0ULL;

	if (pkt->kind != VMPT_ITEM_RTIT_CYC)
		check.packets++;
	else
		check.bounded -= check.was_bounded;
	check.was_bounded = bounded;
	check.bounded += bounded;
}

static void note(const struct vmpt_packet *pkt, u64 mark)
{
	struct bound b = { .offset = pkt->offset };

	if (check.clock.error == ~0ULL)
		return;
	check.exact += !check.clock.error;
	b.lo = check.clock.tsc - check.clock.error;
	b.hi = check.clock.tsc + check.clock.error;
	if (mark) {
		if (b.lo > mark || b.hi < mark)
			complain(&b, mark, mark);
		return;
	}
	if (vmpt_grow(&check.bound, check.count))
		exit(2);
	check.bound[check.count++] = b;
}

static int walk(struct vmpt_decoder *dec)
{
	struct vmpt_cursor cursor = { 0 };
	struct vmpt_packet pkt;
	u64 mark = 0;
	int ret;

	while ((ret = vmpt_packet_next(dec, &cursor, &pkt)) > 0) {
		/* A CYC belongs to the packet before it. */
		if (pkt.kind != VMPT_ITEM_RTIT_CYC) {
			mark = mark_of(&pkt);
			if (mark)
				end_segment(mark);
			check.run |= pkt.kind == VMPT_ITEM_RTIT + VMPT_RTIT_STS;
			check.run &= pkt.kind != VMPT_ITEM_RTIT + VMPT_RTIT_PGD;
		}
		vmpt_rtit_clock_feed(&check.clock, &pkt);
		count(&pkt);
		note(&pkt, mark);
	}
	return ret;
}

static int check_trace(const char *path, u32 ratio)
{
	struct vmpt_options options = { .cycle_acc = VMPT_CYCLE_ACC_YES };
	struct vmpt_decoder *dec = NULL;
	struct vmpt_trace *trace = NULL;
	struct vmpt_diag diag;
	int ret;

	vmpt_rtit_clock_init(&check.clock, ratio);
	ret = vmpt_trace_open_rtit(&trace, path, -1, &diag);
	if (ret) {
		fprintf(stderr, "%s: %s\n", path, diag.text);
		return ret;
	}
	ret = vmpt_decoder_open(&dec, vmpt_trace_stream(trace, 0), &options);
	if (!ret)
		ret = walk(dec);
	vmpt_decoder_close(dec);
	vmpt_trace_close(trace);
	return ret;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "ratio", required_argument, NULL, 'r' },
		{ "bounded", required_argument, NULL, 'b' },
		{ "sts", no_argument, NULL, 's' },
		{ 0 },
	};
	u64 bounded = 0;
	u32 ratio = 0;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'r')
			ratio = (u32)strtoul(optarg, NULL, 0);
		else if (c == 'b')
			bounded = strtoul(optarg, NULL, 0);
		else if (c == 's')
			check.sts = true;
		else
			return 2;
	}
	if (optind + 1 != argc || check_trace(argv[optind], ratio))
		return 2;
	printf("%llu packets, %llu bounded, %llu exact, %llu wrong; %llu contradictions, ratio %u\n",
	       (unsigned long long)check.packets, (unsigned long long)check.bounded,
	       (unsigned long long)check.exact, (unsigned long long)check.wrong,
	       (unsigned long long)check.clock.contradictions, check.clock.bus_ratio);
	free(check.bound);
	return check.wrong || !check.any || check.bounded * 100 < check.packets * bounded;
}
