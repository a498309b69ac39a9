// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Does the flow in a trace equal what was executed?
 *
 *	flow-check [--allow-overflow] [--shared-returns] [--tail=N] [--traced] TRACE TRUTH
 *
 * TRACE: the packets of one vCPU, a file. TRUTH: what was executed (model/truth-format.h), a file,
 * a FIFO, or - for stdin. --traced: the truth is limited to what was executed with TraceEn = 1 and
 * OS or User as in IA32_RTIT_CTL (its STATE records). --shared-returns: CALLs and RETs of another
 * owner may have shifted the processor's return stack; such compressed RETs are counted. Exit code
 * 0: equal, 1: not, 2: usage.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/flow/flow.h"

static int usage(void)
{
	fprintf(stderr, "usage: flow-check [--allow-overflow] [--shared-returns] [--tail=N] "
			"[--traced] TRACE TRUTH\n");
	return 2;
}

static const u8 *map(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *bytes;

	if (fd < 0 || fstat(fd, &st) < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return NULL;
	}
	*size = (size_t)st.st_size;
	if (!*size) {
		fprintf(stderr, "%s: is empty\n", path);
		return NULL;
	}
	bytes = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return NULL;
	}
	close(fd);
	return bytes;
}

static void report(const struct flow_counts *n, size_t size, double seconds)
{
	printf("%llu instructions, %llu blocks (%llu defined), %llu events and %llu astray, %llu runs, "
	       "%zu bytes\n",
	       (unsigned long long)n->insns, (unsigned long long)n->blocks,
	       (unsigned long long)n->definitions, (unsigned long long)n->events,
	       (unsigned long long)n->astray, (unsigned long long)n->runs, size);
	printf("left out: %llu REP iterations, %llu emulated, %llu jumps to themselves, "
	       "%llu software interrupts, %llu at the end\n",
	       (unsigned long long)n->merged, (unsigned long long)n->emulated,
	       (unsigned long long)n->silent, (unsigned long long)n->soft_ints,
	       (unsigned long long)n->tail);
	if (n->compressed)
		printf("%llu RETs compressed, %llu of them to where libipt would not have gone\n",
		       (unsigned long long)n->compressed, (unsigned long long)n->led);
	if (n->shared)
		printf("%llu compressed RETs where other owners had shifted the stack\n",
		       (unsigned long long)n->shared);
	if (n->entries)
		printf("%llu VM entries that the trace shows by their FUP alone\n",
		       (unsigned long long)n->entries);
	if (n->disables)
		printf("%llu WRMSRs that end the trace before them\n",
		       (unsigned long long)n->disables);
	if (n->overflows)
		printf("%llu overflows, %llu instructions lost, %llu searches\n",
		       (unsigned long long)n->overflows, (unsigned long long)n->lost,
		       (unsigned long long)n->searches);
	printf("%.1f s, %.1f M instructions/s\n", seconds, (double)n->insns / 1e6 / seconds);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int check(const char *trace_path, const char *truth_path, bool traced,
		 const struct flow_options *options)
{
	struct truth_reader reader;
	struct flow_counts counts;
	double start = now();
	const u8 *trace;
	size_t size;
	bool equal;

	trace = map(trace_path, &size);
	if (!trace)
		return EXIT_FAILURE;
	if (!truth_reader_open(&reader, truth_path)) {
		fprintf(stderr, "%s: %s\n", truth_path, reader.error);
		truth_reader_close(&reader);
		return EXIT_FAILURE;
	}
	reader.traced_only = traced;
	equal = flow_check(&reader, trace, size, options, &counts);
	report(&counts, size, now() - start);
	truth_reader_close(&reader);
	munmap((void *)trace, size);
	return equal ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = { { "allow-overflow", no_argument, NULL, 'o' },
					       { "shared-returns", no_argument, NULL, 's' },
					       { "tail", required_argument, NULL, 't' },
					       { "traced", no_argument, NULL, 'r' },
					       { NULL, 0, NULL, 0 } };
	struct flow_options options = { 0 };
	bool traced = false;
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 'o':
			options.allow_overflow = true;
			break;
		case 'r':
			traced = true;
			break;
		case 's':
			options.shared_returns = true;
			break;
		case 't':
			options.tail = strtoull(optarg, NULL, 0);
			break;
		default:
			return usage();
		}
	}
	return argc - optind == 2 ? check(argv[optind], argv[optind + 1], traced, &options)
				  : usage();
}
