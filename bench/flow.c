// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt-bench-flow: the flow decoder beside libipt's block decoder, on real traces with their code.
 * Both run in turn in each round; times are CPU time of one thread, medians of the rounds. Beside
 * them the command vmpt coverage as a whole: from its start to the file that it wrote. With two
 * threads time is that of the clock on the wall, beside one thread's: the machine must be idle.
 */
#include <getopt.h>
#include <intel-pt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "decoder/vmpt-flow.h"

enum { ROUNDS_MAX = 100, WARM = 64 };

struct input {
	const char *name;
	char dump[512];
	struct vmpt_trace *trace;
	const struct vmpt_stream *once;
	struct vmpt_stream many; /* WARM times the same */
	struct vmpt_image *image;
	struct vmpt_code *code;
	u64 *addr;
	size_t pages;
};

static const char help[] =
	"usage: vmpt-bench-flow [options]\n"
	"Measure the flow decoder beside libipt's block decoder on real traces with their code.\n"
	"\n"
	"  --rounds N   rounds, of which the median counts, 1 to 100 (default 7)\n"
	"  --vmpt FILE  the command vmpt (default: that of the build folder)\n"
	"  --data DIR   traces, .addr and .dump (default: ../shared/data/real)\n"
	"  --help       this text\n"
	"\n"
	"Exit: 0 done, 1 something failed, 2 wrong usage.\n";

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *fail(const char *what)
{
	fprintf(stderr, "vmpt-bench-flow: %s\n", what);
	exit(1);
}

/* ---- inputs ---- */

static void read_addr(struct input *in, const char *path)
{
	FILE *f = fopen(path, "rb");

	in->addr = malloc(1u << 20);
	if (!f || !in->addr)
		fail(path);
	in->pages = fread(in->addr, 8, (1u << 20) / 8, f);
	fclose(f);
}

static bool open_input(struct input *in, const char *dir, const char *name)
{
	struct vmpt_diag diag;
	char path[512];
	u8 *bytes;
	int i;

	in->name = name;
	snprintf(path, sizeof(path), "%s/%s.pt", dir, name);
	if (vmpt_trace_open_raw(&in->trace, path, -1, &diag))
		return false;
	in->once = vmpt_trace_stream(in->trace, 0);
	snprintf(in->dump, sizeof(in->dump), "%s/%s.dump", dir, name);
	snprintf(path, sizeof(path), "%s/%s.addr", dir, name);
	if (vmpt_image_open(&in->image, path, NULL, &diag))
		fail(diag.text);
	read_addr(in, path);
	if (vmpt_code_new(&in->code) || vmpt_code_add(in->code, NULL, NULL, in->image))
		fail("out of memory");
	bytes = malloc(WARM * in->once->size);
	if (!bytes)
		fail("out of memory");
	for (i = 0; i < WARM; i++)
		memcpy(bytes + (u64)i * in->once->size, in->once->data, in->once->size);
	in->many = *in->once;
	in->many.data = bytes;
	in->many.size *= WARM;
	in->many.extent_count = 0;
	return true;
}

/* ---- runs: seconds and instructions ---- */

struct result {
	double seconds, wall;
	u64 instructions, hash, blocks;
	size_t memory; /* at the end */
};

static double wall(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t allocated(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static struct result run_flow(const struct input *in, const struct vmpt_stream *stream,
			      const struct vmpt_flow_options *options)
{
	size_t before = allocated();
	struct result r = { .seconds = now(), .wall = wall() };
	struct vmpt_flow_counts counts;
	struct vmpt_flow_batch batch;
	struct vmpt_flow *flow;
	int ret;

	if (vmpt_flow_open(&flow, stream, in->code, options))
		fail("cannot open a flow");
	while ((ret = vmpt_flow_next(flow, &batch)) > 0)
		r.blocks += batch.count;
	vmpt_flow_total(flow, &counts, &r.hash);
	r.memory = allocated() - before;
	vmpt_flow_close(flow);
	if (ret)
		fail(vmpt_strerror(ret));
	r.instructions = counts.instructions;
	r.seconds = now() - r.seconds;
	r.wall = wall() - r.wall;
	return r;
}

/* libipt is slow where sections are mapped again and again, and where there are many. */
static struct pt_image *ipt_image(const struct input *in, struct pt_image_section_cache *cache)
{
	struct pt_image *image = pt_image_alloc("pages");
	size_t i, n;

	pt_iscache_set_limit(cache, 1ULL << 30);
	for (i = 0; i < in->pages; i += n) {
		for (n = 1; i + n < in->pages && in->addr[i + n] == in->addr[i] + n * VMPT_PAGE;)
			n++;
		pt_image_add_cached(image, cache,
				    pt_iscache_add_file(cache, in->dump, i * VMPT_PAGE,
							n * VMPT_PAGE, in->addr[i]),
				    NULL);
	}
	return image;
}

static struct result run_libipt(const struct input *in)
{
	struct pt_image_section_cache *cache = pt_iscache_alloc(NULL);
	struct pt_image *image = ipt_image(in, cache);
	struct result r = { .seconds = now() };
	struct pt_block_decoder *decoder;
	struct pt_config config;
	struct pt_event event;
	struct pt_block block;
	int status;

	pt_config_init(&config);
	config.begin = (u8 *)in->once->data;
	config.end = config.begin + in->once->size;
	decoder = pt_blk_alloc_decoder(&config);
	if (!decoder || pt_blk_set_image(decoder, image) < 0)
		fail("cannot make a block decoder of libipt");
	while (pt_blk_sync_forward(decoder) >= 0) {
		for (status = 0; status >= 0;) {
			while (status >= 0 && status & pts_event_pending)
				status = pt_blk_event(decoder, &event, sizeof(event));
			if (status < 0)
				break;
			block.ninsn = 0;
			status = pt_blk_next(decoder, &block, sizeof(block));
			r.instructions += block.ninsn;
		}
		if (status == -pte_eos)
			break;
	}
	pt_blk_free_decoder(decoder);
	r.seconds = now() - r.seconds;
	pt_image_free(image);
	pt_iscache_free(cache);
	return r;
}

/* ---- vmpt coverage ---- */

static const char *vmpt = VMPT_DEFAULT;

/* Seconds of CPU time of all that ended. */
static double children(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* Of @trace, in the folder @dir, with @option: its CPU time. */
static double run_coverage(const struct input *in, const char *dir, const char *trace,
			   const char *option)
{
	char code[600], file[64], drcov[80];
	double before = children();
	int status;
	pid_t pid;

	snprintf(code, sizeof(code), "--code=%.*saddr", (int)strlen(in->dump) - 4, in->dump);
	snprintf(file, sizeof(file), "%s/%s", dir, trace);
	snprintf(drcov, sizeof(drcov), "--drcov=%s/drcov", dir);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (!freopen("/dev/null", "w", stdout))
			_exit(127);
		execl(vmpt, "vmpt", "coverage", "-q", "-j1", option, drcov, code, file,
		      (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status))
		fail("vmpt coverage failed");
	return children() - before;
}

static void write_trace(const char *dir, const char *name, const struct vmpt_stream *stream)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "wb");
	if (!f || fwrite(stream->data, 1, stream->size, f) != stream->size || fclose(f))
		fail("cannot write a trace to /tmp");
}

static double median(double *list, int n);

/* The sum of blocks costs nothing extra; edges are walked. */
static void measure_coverage(const struct input *in, int rounds)
{
	static const char *const names[] = { "vmpt coverage --drcov", "the same with --edges" };
	static const char *const option[] = { "--blocks", "--edges" };
	static double cold[2][ROUNDS_MAX], warm[2][ROUNDS_MAX], ipt[ROUNDS_MAX];
	double mb = (double)in->once->size * 1e-6, base, c, w;
	char dir[] = "/tmp/vmpt-bench-XXXXXX", path[64];
	static const char *const files[] = { "once", "many", "drcov" };
	int k, i;

	if (access(vmpt, X_OK) || !mkdtemp(dir)) {
		printf("  %-24s not measured: no %s\n", names[0], vmpt);
		return;
	}
	write_trace(dir, "once", in->once);
	write_trace(dir, "many", &in->many);
	for (k = 0; k < rounds; k++) {
		ipt[k] = run_libipt(in).seconds;
		for (i = 0; i < 2; i++) {
			cold[i][k] = run_coverage(in, dir, "once", option[i]);
			warm[i][k] = (run_coverage(in, dir, "many", option[i]) - cold[i][k]) /
				     (WARM - 1);
		}
	}
	base = median(ipt, rounds);
	for (i = 0; i < 2; i++) {
		c = median(cold[i], rounds);
		w = median(warm[i], rounds);
		printf("  %-24s %10.0f %6.1f %12.0f %6.1f\n", names[i], mb / c, base / c, mb / w,
		       base / w);
	}
	for (i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		unlink(path);
	}
	rmdir(dir);
}

/* ---- rows ---- */

static const struct row {
	const char *name;
	struct vmpt_flow_options options;
} rows[] = {
	{ "counts", { 0 } },
	{ "counts, ordered hash", { .hash = true } },
	{ "blocks", { .blocks = true } },
	{ "counts, RETs followed", { .returns = VMPT_FLOW_RETURNS_FOLLOW } },
	{ "counts, no raw memos", { .off = VMPT_FLOW_NO_RAW_MEMO } },
};

#define ROWS VMPT_ARRAY_SIZE(rows)

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *list, int n)
{
	qsort(list, (size_t)n, sizeof(*list), by_value);
	return list[n / 2];
}

static void measure(const struct input *in, int rounds)
{
	static double cold[ROWS][ROUNDS_MAX], warm[ROWS][ROUNDS_MAX], ipt[ROUNDS_MAX];
	double mb = (double)in->once->size * 1e-6, base, c, w;
	struct result one = { 0 }, all, other = { 0 };
	size_t i;
	int k;

	for (k = 0; k < rounds; k++) {
		other = run_libipt(in);
		ipt[k] = other.seconds;
		for (i = 0; i < ROWS; i++) {
			one = run_flow(in, in->once, &rows[i].options);
			all = run_flow(in, &in->many, &rows[i].options);
			cold[i][k] = one.seconds;
			warm[i][k] = (all.seconds - one.seconds) / (WARM - 1);
			if (all.instructions != one.instructions * WARM)
				fail("passes differ");
		}
	}
	base = median(ipt, rounds);
	printf("%s: %.2f MB, %llu instructions; libipt's block decoder: %llu, %.1f MB/s\n",
	       in->name, mb, (unsigned long long)one.instructions,
	       (unsigned long long)other.instructions, mb / base);
	printf("  %-24s %10s %6s %12s %6s %12s\n", "", "cold MB/s", "x", "warm MB/s", "x",
	       "warm Ginsn/s");
	for (i = 0; i < ROWS; i++) {
		c = median(cold[i], rounds);
		w = median(warm[i], rounds);
		printf("  %-24s %10.0f %6.1f %12.0f %6.1f %12.2f\n", rows[i].name, mb / c, base / c,
		       mb / w, base / w, (double)one.instructions / w * 1e-9);
	}
}

/* ---- two threads ---- */

static const struct row thread_rows[] = {
	{ "counts", { 0 } },
	{ "counts, ordered hash", { .hash = true } },
	{ "blocks", { .blocks = true } },
};

#define THREAD_ROWS VMPT_ARRAY_SIZE(thread_rows)

static struct result run_threads(const struct input *in, const struct row *row, unsigned int n)
{
	const struct vmpt_options trace = { .threads = n };
	struct vmpt_flow_options options = row->options;

	options.trace = &trace;
	return run_flow(in, &in->many, &options);
}

static void measure_threads(const struct input *in, int rounds)
{
	static double one[ROUNDS_MAX], two[ROUNDS_MAX], ratio[ROUNDS_MAX], cpu[ROUNDS_MAX];
	double mb = (double)in->many.size * 1e-6;
	struct result a = { 0 }, b = { 0 };
	size_t i;
	int k;

	printf("  %-24s %10s %10s %6s %10s %12s\n", "x 64, by the wall's clock", "1: MB/s",
	       "2: MB/s", "x", "CPU x", "MiB a thread");
	for (i = 0; i < THREAD_ROWS; i++) {
		for (k = 0; k < rounds; k++) {
			a = run_threads(in, &thread_rows[i], 1);
			b = run_threads(in, &thread_rows[i], 2);
			if (a.instructions != b.instructions || a.hash != b.hash)
				fail("two threads differ from one");
			one[k] = a.wall;
			two[k] = b.wall;
			ratio[k] = a.wall / b.wall;
			cpu[k] = b.seconds / a.seconds;
		}
		printf("  %-24s %10.0f %10.0f %6.2f %10.2f %12.1f\n", thread_rows[i].name,
		       mb / median(one, rounds), mb / median(two, rounds), median(ratio, rounds),
		       median(cpu, rounds), (double)b.memory / 2 / (1 << 20));
	}
}

static void close_input(struct input *in)
{
	free((void *)in->many.data);
	free(in->addr);
	vmpt_code_free(in->code);
	vmpt_image_close(in->image);
	vmpt_trace_close(in->trace);
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "rounds", required_argument, NULL, 'r' },
						 { "data", required_argument, NULL, 'd' },
						 { "vmpt", required_argument, NULL, 'v' },
						 { "help", no_argument, NULL, 'h' },
						 { 0 } };
	static const char *const names[] = { "guest-two-vmcs", "guest-mruby" };
	const char *dir = getenv("VMPT_DATA") ? getenv("VMPT_DATA") : VMPT_DATA_DEFAULT;
	int opt, rounds = 7;
	size_t i;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'r':
			rounds = atoi(optarg);
			if (rounds >= 1 && rounds <= ROUNDS_MAX)
				break;
			fputs(help, stderr);
			return 2;
		case 'd':
			dir = optarg;
			break;
		case 'v':
			vmpt = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			fputs(help, stderr);
			return 2;
		}
	}
	for (i = 0; i < VMPT_ARRAY_SIZE(names); i++) {
		struct input in = { 0 };

		if (!open_input(&in, dir, names[i])) {
			printf("%s: no such trace in %s\n", names[i], dir);
			continue;
		}
		measure(&in, rounds);
		measure_coverage(&in, rounds);
		measure_threads(&in, rounds);
		close_input(&in);
	}
	return 0;
}
