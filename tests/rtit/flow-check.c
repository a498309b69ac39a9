// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Is the flow in an RTIT trace what was executed, instruction for instruction?
 *
 *	rtit-flow-check [OPTION]... TRACE TRUTH
 *
 * TRACE: the packets of one vCPU, a file; decoded from its first PSB on. TRUTH: what was executed
 * (model/truth-format.h), a file, a FIFO, or - for stdin. Options:
 *
 *	--cycle-acc cycle counts follow packets (RTIT_CTL.Cycle_Acc)
 *	--traced		cut the truth to what its STATE records say was executed with
 *				TriggerEn = 1 and OS or User as RTIT_CTL had it
 *	--ctl=BITS		and with these bits of RTIT_CTL 1, for one of several traces
 *	--cr3=CR3		and, while RTIT_CTL.CR3En is 1, with this CR3
 *	--range0=FROM,TO	the filter is RANGE0, [FROM, TO): shows jumps out of it; nothing in
 *				it may be missing, all else may. Other filters count as unknown
 *	--unfiltered		there is no IP filter and no TraceStop: no jump leaves
 *	--skip=N		N instructions of the truth in total may be missing where
 *				packets were disabled (IP filters); 0
 *	--tail=N		and N at the end; 0
 *	--allow-overflow	resume after a FUP.BuffOvf where the truth has its LIP next
 *	--bits=16|32|64		of all code; default: as in STATE, or as lengths fit, 64 first
 *
 * On stdout: what was compared. Exit code 0: equal, 1: not, 2: usage.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rtit/flow-truth.h"
#include "util/array.h"

static int usage(void)
{
	fprintf(stderr,
		"usage: rtit-flow-check [--cycle-acc] [--traced] [--ctl=BITS] [--cr3=CR3]\n"
		"                       [--range0=FROM,TO | --unfiltered] [--skip=N] [--tail=N]\n"
		"                       [--allow-overflow] [--bits=N] TRACE TRUTH\n");
	return 2;
}

static u8 *read_trace(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	size_t room = 0, n = 1;
	bool ok = f;
	u8 *bytes = NULL;

	for (*size = 0; ok && n; *size += n) {
		ok = !vmpt_reserve(&bytes, &room, *size + 65536);
		n = ok ? fread(bytes + *size, 1, room - *size, f) : 0;
	}
	if (!ok || ferror(f)) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		free(bytes);
		bytes = NULL;
	}
	if (f)
		fclose(f);
	return bytes;
}

static void report(const struct rtit_check_counts *n, size_t size)
{
	const u64 *events = n->flow.events;

	printf("%llu instructions, %llu blocks, %llu events and %llu astray, %llu far transfers, "
	       "%llu enables, %llu disables, %llu bytes, %llu packets\n",
	       (unsigned long long)n->flow.insns, (unsigned long long)n->blocks,
	       (unsigned long long)n->events, (unsigned long long)n->astray,
	       (unsigned long long)events[RTIT_FLOW_FAR],
	       (unsigned long long)events[RTIT_FLOW_ENABLED],
	       (unsigned long long)events[RTIT_FLOW_DISABLED], (unsigned long long)size,
	       (unsigned long long)n->flow.packets);
	printf("left out: %llu where packets were disabled, %llu REP iterations, %llu emulated, "
	       "%llu software interrupts, %llu jumps to themselves, %llu at the end\n",
	       (unsigned long long)n->skipped, (unsigned long long)n->merged,
	       (unsigned long long)n->emulated, (unsigned long long)n->soft_ints,
	       (unsigned long long)n->repeated, (unsigned long long)n->tail);
	if (events[RTIT_FLOW_OVERFLOW])
		printf("%llu overflows, %llu instructions lost, %llu searches\n",
		       (unsigned long long)events[RTIT_FLOW_OVERFLOW], (unsigned long long)n->lost,
		       (unsigned long long)n->searches);
	if (events[RTIT_FLOW_ERRATUM])
		printf("an erratum's workaround applied %llu times\n",
		       (unsigned long long)events[RTIT_FLOW_ERRATUM]);
}

struct arguments {
	struct rtit_check_options options;
	struct vmpt_rtit_regs regs;
	bool traced;
	u64 ctl, cr3;
};

static int check(const struct arguments *a, const char *trace_path, const char *truth_path)
{
	struct rtit_check_counts counts;
	struct truth_reader reader;
	bool equal = false;
	size_t size;
	u8 *trace = read_trace(trace_path, &size);

	if (!trace)
		return EXIT_FAILURE;
	if (truth_reader_open(&reader, truth_path)) {
		reader.traced_only = a->traced;
		reader.trace_en = VMPT_RTIT_CTL_TRIGGER | a->ctl;
		reader.cr3_match = a->cr3;
		equal = rtit_flow_check(&reader, trace, size, &a->options, &counts);
		report(&counts, size);
	} else {
		fprintf(stderr, "%s: %s\n", truth_path, reader.error);
	}
	truth_reader_close(&reader);
	free(trace);
	return equal ? EXIT_SUCCESS : EXIT_FAILURE;
}

static bool range(struct arguments *a, const char *text)
{
	char *end;

	a->regs.lip[0] = strtoull(text, &end, 0) & VMPT_RTIT_LIP_MASK;
	if (*end++ != ',')
		return false;
	a->regs.lip[2] = strtoull(end, &end, 0) & VMPT_RTIT_LIP_MASK;
	a->regs.events = VMPT_RTIT_EVENT_RANGE0 | VMPT_RTIT_EVENT_OFF
							  << VMPT_RTIT_EVENTS_STOP_SHIFT;
	a->options.flow.regs = &a->regs;
	return !*end;
}

static bool option(struct arguments *a, int c, const char *value)
{
	switch (c) {
	case 'c':
		a->options.flow.cycle_acc = true;
		return true;
	case 'r':
		a->traced = true;
		return true;
	case 'l':
		a->ctl = strtoull(value, NULL, 0);
		return true;
	case '3':
		a->cr3 = strtoull(value, NULL, 0);
		return true;
	case '0':
		return range(a, value);
	case 'u':
		a->regs.events = VMPT_RTIT_EVENT_ON | VMPT_RTIT_EVENT_OFF
							      << VMPT_RTIT_EVENTS_STOP_SHIFT;
		a->options.flow.regs = &a->regs;
		return true;
	case 's':
		a->options.skip = strtoull(value, NULL, 0);
		return true;
	case 't':
		a->options.tail = strtoull(value, NULL, 0);
		return true;
	case 'o':
		a->options.allow_overflow = true;
		return true;
	case 'b':
		a->options.bits = (unsigned int)strtoul(value, NULL, 0);
		return true;
	default:
		return false;
	}
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "cycle-acc", no_argument, NULL, 'c' },
		{ "traced", no_argument, NULL, 'r' },
		{ "ctl", required_argument, NULL, 'l' },
		{ "cr3", required_argument, NULL, '3' },
		{ "range0", required_argument, NULL, '0' },
		{ "unfiltered", no_argument, NULL, 'u' },
		{ "skip", required_argument, NULL, 's' },
		{ "tail", required_argument, NULL, 't' },
		{ "allow-overflow", no_argument, NULL, 'o' },
		{ "bits", required_argument, NULL, 'b' },
		{ NULL, 0, NULL, 0 },
	};
	struct arguments a = { 0 };
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1)
		if (!option(&a, c, optarg))
			return usage();
	return argc - optind == 2 ? check(&a, argv[optind], argv[optind + 1]) : usage();
}
