// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The program tracegen: a script to trace files, truth and code (docs/tracegen.md). */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>

#include "tests/tracegen/tracegen.h"

static const char usage[] =
	"usage: tracegen [-o OUT.pt] [--truth OUT.json] [--no-packets] [--code DIR] SCRIPT\n"
	"Turn a script of events into traces of Intel PT with their truth.\n"
	"  -o OUT.pt       the trace; with several CPUs one file each, OUT.cpuN.pt\n"
	"  --truth FILE    the truth as JSON lines\n"
	"  --no-packets    leave the packets out of the truth\n"
	"  --code DIR      the code that was executed, pages and their index\n";

struct arguments {
	const char *out, *truth, *code, *script;
	bool no_packets;
};

/* 0: go on, else the exit code + 1 */
static int arguments(struct arguments *a, int argc, char **argv)
{
	static const struct option options[] = {
		{ "truth", required_argument, NULL, 't' },
		{ "code", required_argument, NULL, 'c' },
		{ "no-packets", no_argument, NULL, 'n' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "o:h", options, NULL)) != -1) {
		switch (c) {
		case 'o':
			a->out = optarg;
			break;
		case 't':
			a->truth = optarg;
			break;
		case 'c':
			a->code = optarg;
			break;
		case 'n':
			a->no_packets = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 1;
		default:
			fputs(usage, stderr);
			return 3;
		}
	}
	if (optind + 1 != argc) {
		fputs(usage, stderr);
		return 3;
	}
	a->script = argv[optind];
	return 0;
}

static bool complain(const char *path)
{
	fprintf(stderr, "tracegen: %s: %s\n", path, strerror(errno));
	return false;
}

static bool write_stream(const char *path, const struct tracegen_stream *s)
{
	FILE *f = fopen(path, "wb");

	if (!f)
		return complain(path);
	if (fwrite(s->data, 1, s->size, f) != s->size) {
		complain(path);
		fclose(f);
		return false;
	}
	return fclose(f) ? complain(path) : true;
}

/* OUT.pt for one CPU, else OUT.cpuN.pt. */
static bool write_streams(const char *out, const struct tracegen *gen)
{
	size_t i, n = tracegen_streams(gen), stem = strlen(out);
	char path[4096];

	if (n == 1)
		return write_stream(out, tracegen_stream(gen, 0));
	if (stem > 3 && !strcmp(out + stem - 3, ".pt"))
		stem -= 3;
	for (i = 0; i < n; i++) {
		const struct tracegen_stream *s = tracegen_stream(gen, i);

		if ((size_t)snprintf(path, sizeof(path), "%.*s.cpu%d.pt", (int)stem, out, s->cpu) >=
		    sizeof(path)) {
			errno = ENAMETOOLONG;
			return complain(out);
		}
		if (!write_stream(path, s))
			return false;
	}
	return true;
}

static bool write_truth(const char *path, const struct tracegen *gen)
{
	FILE *f = fopen(path, "w");
	int err;

	if (!f)
		return complain(path);
	err = tracegen_write_truth(gen, f);
	return fclose(f) || err ? complain(path) : true;
}

static bool write_all(const struct arguments *a, const struct tracegen *gen)
{
	if (a->out && !write_streams(a->out, gen))
		return false;
	if (a->truth && !write_truth(a->truth, gen))
		return false;
	if (a->code && tracegen_write_code(gen, a->code))
		return complain(a->code);
	return true;
}

int main(int argc, char **argv)
{
	struct arguments a = { 0 };
	struct tracegen_options options = { 0 };
	struct tracegen *gen;
	int ret = arguments(&a, argc, argv);

	if (ret)
		return ret - 1;
	options.packets = a.truth && !a.no_packets;
	gen = tracegen_run_file(a.script, &options);
	if (!gen) {
		fputs("tracegen: out of memory\n", stderr);
		return EXIT_FAILURE;
	}
	if (tracegen_error(gen)) {
		fprintf(stderr, "%s\n", tracegen_error(gen));
		ret = EXIT_FAILURE;
	} else if (!write_all(&a, gen)) {
		ret = EXIT_FAILURE;
	}
	tracegen_free(gen);
	return ret;
}
