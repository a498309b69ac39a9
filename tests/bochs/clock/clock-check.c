// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Judges the times that libvmpt-decode gives to a trace from the Bochs PC by the truth of its times
 * (docs/bochs/truth.md): see usage(). Exits with 1 if something contradicts docs/time.md.
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/pt-regs.h"
#include "judge.h"

static void usage(void)
{
	printf("clock-check [--no-order|--no-maps|--verbose|--spoil=TICKS] TRACE PREFIX: judge a perf.data by "
	       "PREFIX.times.CPU\n");
}

void judge_fails(struct judge *judge, const char *format, ...)
{
	va_list args;

	judge->failures++;
	if (judge->failures > 40)
		return;
	printf("FAILS: ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

int judge_clocks(struct judge *judge, const struct vmpt_given *given, size_t count,
		 struct vmpt_clocks **clocks)
{
	struct vmpt_clocks_options options = { .given = given, .given_count = count };

	vmpt_rates_from_info(&options.rates, vmpt_trace_info(judge->trace));
	return vmpt_clocks_open(clocks, judge->streams, judge->n, &options);
}

static bool open_streams(struct judge *judge, const char *prefix)
{
	size_t n = vmpt_trace_streams(judge->trace);

	for (size_t i = 0; i < n; i++) {
		const struct vmpt_stream *stream = vmpt_trace_stream(judge->trace, i);
		struct judge_stream *cpu = &judge->cpus[judge->n];
		const char *wrong;
		char path[512];

		if (!stream->size)
			continue;
		if (judge->n == JUDGE_CPUS)
			return false;
		snprintf(path, sizeof(path), "%s.times.%d", prefix, stream->cpu);
		wrong = times_read(&cpu->times, path, (unsigned int)stream->cpu);
		if (wrong) {
			fprintf(stderr, "clock-check: %s: %s\n", path, wrong);
			return false;
		}
		cpu->stream = judge->streams[judge->n] = stream;
		judge->n++;
	}
	return judge->n;
}

static bool open_all(struct judge *judge, const char *path, const char *prefix)
{
	const struct vmpt_trace_info *info;
	struct vmpt_diag diag;
	int ret;

	ret = vmpt_trace_open_perf(&judge->trace, path, &diag);
	if (ret) {
		fprintf(stderr, "clock-check: %s: %s\n", path, diag.text);
		return false;
	}
	if (!open_streams(judge, prefix))
		return false;
	info = vmpt_trace_info(judge->trace);
	if (!info->tsc_ctc_denominator) {
		fprintf(stderr, "clock-check: %s: no ratio of the clocks\n", path);
		return false;
	}
	if (judge->cpus[0].times.ctl & VMPT_CTL_MTC_EN)
		judge->period = (u64)info->tsc_ctc_numerator / info->tsc_ctc_denominator
				<< (judge->cpus[0].times.ctl >> VMPT_CTL_MTC_FREQ_SHIFT & 0xf);
	judge->cyc = judge->cpus[0].times.ctl & VMPT_CTL_CYC_EN;
	ret = judge_clocks(judge, NULL, 0, &judge->clocks);
	if (ret)
		fprintf(stderr, "clock-check: %s: error %d from vmpt_clocks_open()\n", path, ret);
	return !ret;
}

static void close_all(struct judge *judge)
{
	vmpt_clocks_close(judge->clocks);
	for (size_t i = 0; i < judge->n; i++) {
		times_free(&judge->cpus[i].times);
		free(judge->cpus[i].found);
		free(judge->cpus[i].mtcs);
		free(judge->cpus[i].guest_tscs);
	}
	vmpt_trace_close(judge->trace);
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "no-order", no_argument, NULL, 'o' },
						 { "no-maps", no_argument, NULL, 'm' },
						 { "verbose", no_argument, NULL, 'v' },
						 { "spoil", required_argument, NULL, 's' },
						 { NULL, 0, NULL, 0 } };
	struct judge judge = { 0 };
	bool order = true, maps = true;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		order = order && c != 'o';
		maps = maps && c != 'm';
		judge.verbose = judge.verbose || c == 'v';
		if (c == 's')
			judge.spoil = strtoull(optarg, NULL, 0);
		if (c == '?')
			return 2;
	}
	if (argc - optind != 2) {
		usage();
		return 2;
	}
	if (!open_all(&judge, argv[optind], argv[optind + 1])) {
		close_all(&judge);
		return 2;
	}
	judge_align(&judge);
	if (!judge.failures)
		judge_packets(&judge);
	if (order)
		judge_moves(&judge);
	if (maps) {
		judge_maps(&judge);
		judge_given(&judge);
	}
	close_all(&judge);
	return judge.failures != 0;
}
