// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The files of the command line: find the CPU of each, open them as one
 * trace, and select the streams of --cpu.
 */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/base.h"
#include "util/array.h"

#define CPU_MAX 65535

/* The number that is all of [@s, @end), or -1. */
static int cpu_number(const char *s, const char *end)
{
	int n = 0;

	if (s == end || end - s > 5)
		return -1;
	for (; s < end; s++) {
		if (*s < '0' || *s > '9')
			return -1;
		n = n * 10 + (*s - '0');
	}
	return n <= CPU_MAX ? n : -1;
}

/* Its length without ".pt" or ".rtit". */
static size_t stem(const char *path)
{
	static const char *const suffix[] = { ".pt", ".rtit" };
	size_t len = strlen(path), n, i;

	for (i = 0; i < VMPT_ARRAY_SIZE(suffix); i++) {
		n = strlen(suffix[i]);
		if (len > n && !strcmp(path + len - n, suffix[i]))
			return len - n;
	}
	return len;
}

/*
 * The CPU in the end of a name: "x.cpu3", "x.cpu3.pt", or the whole name "cpu3.pt"; also with
 * ".rtit".
 */
static int cpu_of_name(const char *path)
{
	const char *base = strrchr(path, '/'), *end, *s = path;
	size_t len = stem(path);
	int cpu = -1;

	end = path + len;
	base = base ? base + 1 : path;
	if (!strncmp(base, "cpu", 3) && *end)
		cpu = cpu_number(base + 3, end);
	while ((s = strstr(s, ".cpu")) != NULL && s < end) {
		s += 4;
		cpu = cpu_number(s, end);
	}
	return cpu;
}

/* File number @i: its path, and its CPU, -1: not given. */
static int parse_input(struct cli *cli, int i, int *cpu)
{
	/* The name of a file may itself look like this. */
	const char *arg = cli->file[i], *at = access(arg, F_OK) ? strrchr(arg, '@') : NULL;

	cli->path[i] = strdup(arg);
	if (!cli->path[i])
		return cli_no_memory(cli);
	*cpu = at && at > arg ? cpu_number(at + 1, arg + strlen(arg)) : -1;
	if (*cpu >= 0)
		cli->path[i][at - arg] = '\0';
	else
		*cpu = cpu_of_name(arg);
	return CLI_OK;
}

/* A folder stands for the traces that its recording lists: @cpu becomes that of those. */
static int take_folder(struct cli *cli, int **cpu)
{
	struct cli_folder *f;
	int code = cli_folder_open(cli, *cpu);

	f = cli->folder;
	if (code || !f || !f->files)
		return code;
	free(cli->path[0]);
	free(cli->path);
	free(*cpu);
	cli->path = f->file;
	cli->files = f->files;
	*cpu = f->cpu;
	f->file = NULL;
	f->cpu = NULL;
	f->files = 0;
	cli->file = cli->path;
	return CLI_OK;
}

static bool cpu_taken(const int *cpus, int n, int cpu)
{
	while (n--)
		if (cpus[n] == cpu)
			return true;
	return false;
}

/* Several files: each gets a CPU, and no two the same. */
static int number_inputs(struct cli *cli, int *cpu)
{
	int i, next = 0;

	for (i = 0; i < cli->files; i++)
		if (cpu[i] >= 0 && cpu_taken(cpu, i, cpu[i]))
			return cli_usage(cli,
					 "%s: another file already has CPU %d; give the CPU "
					 "with FILE@CPU",
					 cli->file[i], cpu[i]);
	for (i = 0; i < cli->files && cli->files > 1; i++) {
		if (cpu[i] >= 0)
			continue;
		while (cpu_taken(cpu, cli->files, next))
			next++;
		cpu[i] = next;
	}
	return CLI_OK;
}

/* perf.data by its magic; pipes are not examined. */
static bool is_perf_file(const char *path)
{
	char magic[8];
	struct stat st;
	bool is = false;
	int fd;

	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (read(fd, magic, sizeof(magic)) == sizeof(magic))
		is = !memcmp(magic, "PERFILE2", 8) || !memcmp(magic, "2ELIFREP", 8);
	close(fd);
	return is;
}

/* What to do about an error on opening. */
static const char *advice(int err)
{
	switch (err) {
	case -VMPT_E_NO_PT:
		return "record it with Intel PT: perf record -e intel_pt//k -a";
	case -VMPT_E_UNSUPPORTED:
		return "record it with another version of perf, or extract the raw trace";
	case -VMPT_E_FORMAT:
		return "was it copied whole? perf report -D shows how far perf can read it";
	default:
		return NULL;
	}
}

static int open_failed(struct cli *cli, const char *path, int err, const struct vmpt_diag *diag)
{
	const char *text = diag->text[0] ? diag->text : vmpt_strerror(err);
	char where[48] = "";

	if (diag->offset)
		snprintf(where, sizeof(where),
			 "at offset 0x%llx: ", (unsigned long long)diag->offset);
	cli_error(cli, "%s: %s%s", path, where, text);
	if (advice(err))
		fprintf(stderr, "  %s\n", advice(err));
	return CLI_FAILED;
}

bool cli_is_rtit(const struct cli *cli)
{
	return vmpt_trace_info(cli->trace)->isa == VMPT_ISA_RTIT;
}

/* --format, where it was given. */
static int take_format(struct cli *cli, const char *path)
{
	if (cli->format == CLI_FORMAT_AUTO ||
	    !vmpt_trace_set_isa(cli->trace,
				cli->format == CLI_FORMAT_PT ? VMPT_ISA_PT : VMPT_ISA_RTIT))
		return CLI_OK;
	return cli_usage(cli, "%s: a perf.data holds Intel PT; --format=rtit is for raw files",
			 path);
}

/* An option that does not apply to this trace is an error. */
static int check_options(struct cli *cli)
{
	const char *path = cli->file[0];

	if (!cli_is_rtit(cli) && cli->options.cycle_acc != VMPT_CYCLE_ACC_AUTO)
		return cli_usage(cli,
				 "--cycle-acc is for RTIT, but %s is taken for Intel PT; "
				 "--format=rtit overrides that",
				 path);
	if (cli_is_rtit(cli) && cli->options.guest_only != VMPT_GUEST_ONLY_AUTO)
		return cli_usage(cli,
				 "--guest-only is for Intel PT, but %s is taken for RTIT; "
				 "--format=pt overrides that",
				 path);
	if (cli_is_rtit(cli) && cli->host_only != CLI_AUTO)
		return cli_usage(cli,
				 "--host-only is for Intel PT, but %s is taken for RTIT; "
				 "--format=pt overrides that",
				 path);
	if (cli->host_only == CLI_YES && cli->options.guest_only == VMPT_GUEST_ONLY_YES)
		return cli_usage(cli, "--host-only=yes and --guest-only=yes exclude each other");
	return CLI_OK;
}

static int open_inputs(struct cli *cli, const int *cpu)
{
	char *const *path = cli->path;
	struct vmpt_diag diag = { 0 };
	bool perf;
	int i, ret;

	ret = vmpt_trace_open(&cli->trace, path[0], cpu[0], &diag);
	if (ret) {
		cli->trace = NULL;
		return open_failed(cli, path[0], ret, &diag);
	}
	/* Opened, but not all of it could be read. */
	if (diag.text[0]) {
		cli_warn(cli, "%s: at offset 0x%llx: %s", path[0], (unsigned long long)diag.offset,
			 diag.text);
		cli->lost_events = true;
	}
	ret = take_format(cli, path[0]);
	if (ret)
		return ret;
	perf = vmpt_trace_info(cli->trace)->format == VMPT_TRACE_PERF;
	for (i = 1; i < cli->files; i++) {
		if (perf || is_perf_file(path[i])) {
			cli_error(cli, "%s: a perf.data holds all its CPUs: give it alone",
				  perf ? path[0] : path[i]);
			return CLI_FAILED;
		}
		memset(&diag, 0, sizeof(diag));
		ret = vmpt_trace_add_raw(cli->trace, path[i], cpu[i], &diag);
		if (ret)
			return open_failed(cli, path[i], ret, &diag);
	}
	return check_options(cli);
}

int cli_note_input(struct cli *cli, const char *path)
{
	struct stat st;
	char *name;

	if (strcmp(path, "-") ? stat(path, &st) : fstat(STDIN_FILENO, &st))
		return CLI_OK;
	if (vmpt_grow(&cli->input, cli->inputs))
		return cli_no_memory(cli);
	name = strdup(strcmp(path, "-") ? path : "/dev/stdin");
	if (!name)
		return cli_no_memory(cli);
	cli->input[cli->inputs++] = (struct cli_file_id){
		.dev = st.st_dev,
		.ino = st.st_ino,
		.mode = st.st_mode,
		.size = st.st_size,
		.path = name,
	};
	return CLI_OK;
}

bool cli_is_input(const struct cli *cli, const struct stat *st)
{
	size_t i;

	for (i = 0; i < cli->inputs; i++)
		if (cli->input[i].dev == st->st_dev && cli->input[i].ino == st->st_ino)
			return true;
	return false;
}

/* Of the folder of vmpt record or of perf record --kcore: what perf made. */
static bool perf_made(const char *name)
{
	return !strcmp(name, "data") || !strcmp(name, "perf.data") || !strncmp(name, "data.", 5) ||
	       !strncmp(name, "kcore_dir", 9);
}

#define FOLDER_DEPTH 3 /* perf.data/kcore_dir/kallsyms */

/* The files that perf made in folder @path are inputs, too, whether or not they are read. */
static int note_folder(struct cli *cli, char *path)
{
	char *const paths[] = { path, NULL };
	FTS *fts = fts_open(paths, FTS_COMFOLLOW | FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	int code = CLI_OK;
	FTSENT *e;

	if (!fts)
		return cli_no_memory(cli);
	while (!code && (e = fts_read(fts)) != NULL) {
		bool outer = e->fts_level == 1 ||
			     (e->fts_level == 2 && !strcmp(e->fts_parent->fts_name, "perf.data"));

		if (e->fts_level > FOLDER_DEPTH || (outer && !perf_made(e->fts_name)))
			fts_set(fts, e, FTS_SKIP);
		else if (e->fts_level && e->fts_info != FTS_D && e->fts_info != FTS_DP)
			code = cli_note_input(cli, e->fts_path);
	}
	fts_close(fts);
	return code;
}

/* One trace under two names counts as two CPUs. */
static int note_traces(struct cli *cli)
{
	size_t first = cli->inputs, now, k;
	int i, code;

	for (i = 0; i < cli->files; i++) {
		now = cli->inputs;
		code = cli_note_input(cli, cli->path[i]);
		if (!code && now != cli->inputs && S_ISDIR(cli->input[now].mode))
			code = note_folder(cli, cli->path[i]);
		if (code)
			return code;
		if (now == cli->inputs || !S_ISREG(cli->input[now].mode))
			continue;
		for (k = first; k < now; k++)
			if (cli->input[k].dev == cli->input[now].dev &&
			    cli->input[k].ino == cli->input[now].ino)
				break;
		if (k < now)
			cli_warn(cli, "%s is the same file as %s: its trace counts as two CPUs'",
				 cli->file[i], cli->input[k].path);
	}
	return CLI_OK;
}

size_t cli_getline(char *line, size_t room, FILE *f)
{
	size_t n = 0;
	int c = 0;

	while (c != '\n' && (c = getc_unlocked(f)) != EOF) {
		if (n < room - 1)
			line[n] = (char)c;
		n++;
	}
	line[n < room - 1 ? n : room - 1] = '\0';
	return n;
}

static bool cpu_wanted(const struct cli *cli, int cpu)
{
	size_t i;

	for (i = 0; i < cli->cpus; i++)
		if (cpu >= cli->cpu[i].first && cpu <= cli->cpu[i].last)
			return true;
	return !cli->cpus;
}

bool cli_chosen(const struct cli *cli, const struct vmpt_stream *stream)
{
	return cpu_wanted(cli, stream->cpu);
}

/* "CPU 0", "CPU 0 to 3", … for the message that --cpu chose nothing. */
static int nothing_chosen(struct cli *cli)
{
	size_t i, n = vmpt_trace_streams(cli->trace);
	int low = -1, high = -1;

	for (i = 0; i < n; i++) {
		int cpu = vmpt_trace_stream(cli->trace, i)->cpu;

		if (cpu < 0)
			continue;
		low = low < 0 || cpu < low ? cpu : low;
		high = cpu > high ? cpu : high;
	}
	if (low < 0 && vmpt_trace_stream(cli->trace, 0)->tid >= 0)
		cli_usage(cli, "--cpu: the trace is of threads, not of CPUs");
	else if (low < 0)
		cli_usage(cli, "--cpu: the trace does not say its CPU; name it with FILE@CPU");
	else if (low == high)
		cli_usage(cli, "--cpu: no such CPU in the trace; it has CPU %d only", low);
	else
		cli_usage(cli, "--cpu: no such CPU in the trace; it has CPUs between %d and %d",
			  low, high);
	return CLI_USAGE;
}

/* By CPU, those that do not say it first; then by thread. One CPU has one stream. */
static int by_cpu(const void *a, const void *b)
{
	const struct vmpt_stream *x = *(const struct vmpt_stream *const *)a,
				 *y = *(const struct vmpt_stream *const *)b;

	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static int choose_streams(struct cli *cli)
{
	size_t i, n = vmpt_trace_streams(cli->trace);
	u64 bytes = 0;

	for (i = 0; i < n; i++)
		bytes += vmpt_trace_stream(cli->trace, i)->size;
	if (!bytes) {
		cli_error(cli, "%s: it has no trace bytes: nothing was recorded", cli->file[0]);
		return CLI_FAILED;
	}
	cli->stream = calloc(n, sizeof(*cli->stream));
	if (!cli->stream)
		return cli_no_memory(cli);
	for (i = 0; i < n; i++) {
		const struct vmpt_stream *s = vmpt_trace_stream(cli->trace, i);

		if (cpu_wanted(cli, s->cpu))
			cli->stream[cli->streams++] = s;
	}
	qsort(cli->stream, cli->streams, sizeof(*cli->stream), by_cpu);
	return cli->streams ? CLI_OK : nothing_chosen(cli);
}

static void warn_perf_losses(struct cli *cli)
{
	const struct vmpt_trace_info *info = vmpt_trace_info(cli->trace);

	if (info->truncated_buffers)
		cli_warn(cli,
			 "%s: perf had no room for all of the trace %llu times; a larger "
			 "buffer helps: perf record -m ,64M",
			 cli->file[0], (unsigned long long)info->truncated_buffers);
	if (info->lost_events)
		cli_warn(cli, "%s: perf lost %llu events", cli->file[0],
			 (unsigned long long)info->lost_events);
	cli->lost_events |= info->truncated_buffers || info->lost_events;
}

int cli_open(struct cli *cli)
{
	int *cpu = calloc((size_t)cli->files, sizeof(*cpu));
	const struct cli_group *group;
	int i, code = CLI_OK;
	size_t k;

	cli->path = calloc((size_t)cli->files, sizeof(*cli->path));
	if (!cpu || !cli->path)
		code = cli_no_memory(cli);
	for (i = 0; i < cli->files && !code; i++)
		code = parse_input(cli, i, &cpu[i]);
	if (!code)
		code = take_folder(cli, &cpu);
	if (!code)
		code = number_inputs(cli, cpu);
	if (!code)
		code = note_traces(cli);
	if (!code)
		code = open_inputs(cli, cpu);
	if (!code)
		code = choose_streams(cli);
	for (k = 0; !code && (group = cli_group(cli->cmd, k)) != NULL; k++)
		if (group->open)
			code = group->open(cli);
	if (!code)
		warn_perf_losses(cli);
	free(cpu);
	return code;
}

void cli_close(struct cli *cli)
{
	const struct cli_group *group;
	size_t k;
	int i;

	if (cli->trace)
		vmpt_trace_close(cli->trace);
	for (k = 0; (group = cli_group(cli->cmd, k)) != NULL; k++)
		if (group->close)
			group->close(cli);
	for (i = 0; cli->path && i < cli->files; i++)
		free(cli->path[i]);
	free(cli->path);
	free(cli->stream);
	cli_folder_close(cli);
	while (cli->inputs)
		free(cli->input[--cli->inputs].path);
	free(cli->input);
}

const char *cli_stream_name(const struct vmpt_stream *stream, char buf[32])
{
	if (stream->tid >= 0)
		snprintf(buf, 32, "thread %d", stream->tid);
	else if (stream->cpu >= 0)
		snprintf(buf, 32, "CPU %d", stream->cpu);
	else
		snprintf(buf, 32, "trace");
	return buf;
}

const char *cli_stream_cpu(const struct vmpt_stream *stream, char buf[32])
{
	if (stream->tid >= 0)
		snprintf(buf, 32, "tid %d", stream->tid);
	else if (stream->cpu >= 0)
		snprintf(buf, 32, "%d", stream->cpu);
	else
		snprintf(buf, 32, "–");
	return buf;
}
