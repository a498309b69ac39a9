// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Folders with a recording; see folder.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/base.h"

#define HEAD_BYTES (1 << 20)
#define CPU_MAX	   65535
#define FILES_MAX  4096

static char *join(const char *folder, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

static bool is_kind(const char *path, mode_t kind)
{
	struct stat st;

	return !lstat(path, &st) && (st.st_mode & S_IFMT) == kind;
}

/* ---- recording.json ---- */

/* It is an error of a folder that was given, and a warning next to a trace that was. */
__attribute__((format(printf, 3, 4))) static int
bad(const struct cli *cli, const struct cli_folder *f, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (f->whole)
		cli_error(cli, "%s: %s", f->head, text);
	else
		cli_warn(cli, "%s: %s: it is not used", f->head, text);
	return CLI_FAILED;
}

/* Its bytes; NULL after a message. */
static char *read_head(const struct cli *cli, const struct cli_folder *f, size_t *size)
{
	int fd = open(f->head, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), err = errno;
	char *text = malloc(HEAD_BYTES + 1);
	struct stat st;
	ssize_t n = -1;

	*size = 0;
	if (!text)
		cli_no_memory(cli);
	else if (fd < 0)
		bad(cli, f, "%s",
		    err == ELOOP ? "is a symbolic link, which vmpt does not follow"
				 : strerror(err));
	else if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		bad(cli, f, "is not a regular file");
	else
		while (*size <= HEAD_BYTES &&
		       (n = read(fd, text + *size, HEAD_BYTES + 1 - *size)) > 0)
			*size += (size_t)n;
	if (n > 0)
		bad(cli, f, "is longer than %d bytes", HEAD_BYTES);
	if (fd >= 0)
		close(fd);
	if (!n)
		return text;
	free(text);
	return NULL;
}

static int load_head(struct cli *cli, struct cli_folder *f)
{
	json_error_t error;
	const json_t *format;
	size_t n;
	char *text = read_head(cli, f, &n);

	if (!text)
		return CLI_FAILED;
	f->doc = json_text_load(text, n, HEAD_BYTES, &error);
	free(text);
	format = json_object_get(f->doc, "format");
	if (!f->doc)
		return bad(cli, f, "not JSON: line %d: %s", error.line, error.text);
	if (!json_is_object(f->doc) || !json_is_integer(format))
		return bad(cli, f, "no recording: it has no number \"format\"");
	if (json_integer_value(format) != CLI_FOLDER_FORMAT)
		return bad(cli, f, "is of format %lld; this vmpt reads format %d",
			   (long long)json_integer_value(format), CLI_FOLDER_FORMAT);
	return cli_note_input(cli, f->head);
}

/* A name in the folder: not a path. NULL after a message. */
static const char *name_of(const struct cli *cli, const struct cli_folder *f, const json_t *o,
			   const char *what)
{
	const char *name = json_string_value(o);
	char safe[CLI_WHO];

	if (name && *name && !strchr(name, '/') && strcmp(name, ".") && strcmp(name, ".."))
		return name;
	cli_safe_name(name ? name : "", safe);
	bad(cli, f, "%s '%s' is not the name of a file in its folder", what, safe);
	return NULL;
}

static bool has_cpu(const struct cli_folder *f, int cpu)
{
	int i;

	for (i = 0; i < f->files; i++)
		if (f->cpu[i] == cpu)
			return true;
	return false;
}

/* A member of "traces": its name, and its CPU, -1 for null. NULL after a message. */
static const char *trace_of(const struct cli *cli, const struct cli_folder *f, const json_t *o,
			    int *cpu)
{
	const json_t *number = json_object_get(o, "cpu");
	const char *name = name_of(cli, f, json_object_get(o, "file"), "the trace");
	json_int_t n = json_integer_value(number);
	char safe[CLI_WHO];

	*cpu = -1;
	if (!name || !number || json_is_null(number))
		return name;
	if (!json_is_integer(number) || n < 0 || n > CPU_MAX) {
		cli_safe_name(name, safe);
		bad(cli, f, "the trace '%s': \"cpu\" is not a number up to %d", safe, CPU_MAX);
		return NULL;
	}
	*cpu = (int)n;
	return name;
}

/* False after a message; a missing one is only warned of. */
static bool add_trace(struct cli *cli, struct cli_folder *f, const char *name, int cpu)
{
	char *path = join(f->path, name);
	bool is_perf = !strcmp(name, CLI_FOLDER_PERF);

	if (!path)
		return cli_no_memory(cli), false;
	if (access(path, F_OK) && errno == ENOENT && !is_kind(path, S_IFLNK)) {
		cli_warn(cli, "%s: is missing, but " CLI_FOLDER_HEAD " lists it", path);
		cli->lost_events = true;
		free(path);
		return true;
	}
	/* perf record --kcore makes a folder. */
	if (!is_kind(path, S_IFREG) && !(is_perf && is_kind(path, S_IFDIR))) {
		cli_error(cli, "%s: is not a regular file", path);
		free(path);
		return false;
	}
	if (cpu >= 0 && has_cpu(f, cpu)) {
		bad(cli, f, "two traces are of CPU %d", cpu);
		free(path);
		return false;
	}
	f->cpu[f->files] = cpu;
	f->file[f->files++] = path;
	return true;
}

/* All traces of the recording. */
static int take_traces(struct cli *cli, struct cli_folder *f)
{
	const json_t *list = json_object_get(f->doc, "traces");
	size_t i, n = json_array_size(list);
	const char *name;
	int cpu;

	if (!json_is_array(list) || !n || n > FILES_MAX)
		return bad(cli, f, "\"traces\" is no list of 1 to %d files", FILES_MAX);
	f->file = calloc(n, sizeof(*f->file));
	f->cpu = calloc(n, sizeof(*f->cpu));
	if (!f->file || !f->cpu)
		return cli_no_memory(cli);
	for (i = 0; i < n; i++) {
		name = trace_of(cli, f, json_array_get(list, i), &cpu);
		if (!name || !add_trace(cli, f, name, cpu))
			return CLI_FAILED;
	}
	return f->files ? CLI_OK : bad(cli, f, "none of its traces is in the folder");
}

static int take_side(struct cli *cli, struct cli_folder *f)
{
	const json_t *o = json_object_get(f->doc, "side_record");
	const char *name;

	if (!o || json_is_null(o))
		return CLI_OK;
	name = name_of(cli, f, o, "the side record");
	f->side = name ? join(f->path, name) : NULL;
	if (!f->side)
		return name ? cli_no_memory(cli) : CLI_FAILED;
	if (is_kind(f->side, S_IFREG))
		return CLI_OK;
	cli_warn(cli,
		 "%s: is missing or not a regular file, but " CLI_FOLDER_HEAD
		 " lists it: VMs have no names",
		 f->side);
	free(f->side);
	f->side = NULL;
	return CLI_OK;
}

/* Whether the recording lists the file @name; its CPU. */
static bool lists(const struct cli_folder *f, const char *name, int *cpu)
{
	const json_t *list = json_object_get(f->doc, "traces"), *number;
	size_t i;

	for (i = 0; i < json_array_size(list); i++) {
		const json_t *o = json_array_get(list, i);
		const char *file = json_string_value(json_object_get(o, "file"));

		number = json_object_get(o, "cpu");
		if (!file || strcmp(file, name))
			continue;
		/* The command line goes first. */
		if (*cpu < 0 && json_is_integer(number) && json_integer_value(number) >= 0 &&
		    json_integer_value(number) <= CPU_MAX)
			*cpu = (int)json_integer_value(number);
		return true;
	}
	return false;
}

/* ---- folders without one ---- */

/* The number of "cpu3.pt" or "cpu3.rtit", or -1. */
static int cpu_of(const char *name)
{
	int cpu = -1, end = 0;

	if (sscanf(name, "cpu%5d%n", &cpu, &end) != 1 || cpu < 0 ||
	    (strcmp(name + end, ".pt") && strcmp(name + end, ".rtit")))
		return -1;
	return cpu;
}

static int by_cpu(const struct dirent **a, const struct dirent **b)
{
	return cpu_of((*a)->d_name) - cpu_of((*b)->d_name);
}

static int is_stream(const struct dirent *e)
{
	return cpu_of(e->d_name) >= 0;
}

/* Streams that the plugin wrote before there was a recording.json. */
static int take_streams(struct cli *cli, struct cli_folder *f)
{
	struct dirent **e = NULL;
	int i, n = scandir(f->path, &e, is_stream, by_cpu), code = CLI_OK;

	if (n > 0 && n <= FILES_MAX) {
		f->file = calloc((size_t)n, sizeof(*f->file));
		f->cpu = calloc((size_t)n, sizeof(*f->cpu));
		code = f->file && f->cpu ? CLI_OK : cli_no_memory(cli);
	}
	for (i = 0; i < n; i++) {
		if (!code && f->file && !add_trace(cli, f, e[i]->d_name, cpu_of(e[i]->d_name)))
			code = CLI_FAILED;
		free(e[i]);
	}
	free(e);
	return code;
}

static int find_side(struct cli *cli, struct cli_folder *f, const char *name)
{
	struct stat st;

	f->side = join(f->path, name);
	if (!f->side)
		return cli_no_memory(cli);
	if (!stat(f->side, &st) && S_ISREG(st.st_mode))
		return CLI_OK;
	free(f->side);
	f->side = NULL;
	return CLI_OK;
}

/* ---- the command line ---- */

static int start(struct cli *cli, const char *path, size_t n)
{
	struct cli_folder *f = calloc(1, sizeof(*f));

	if (!f)
		return cli_no_memory(cli);
	cli->folder = f;
	while (n > 1 && path[n - 1] == '/')
		n--;
	f->path = n ? strndup(path, n) : strdup(".");
	f->head = f->path ? join(f->path, CLI_FOLDER_HEAD) : NULL;
	return f->head ? CLI_OK : cli_no_memory(cli);
}

static bool has_head(const struct cli_folder *f)
{
	struct stat st;

	return !lstat(f->head, &st);
}

/* After the error of a recording.json: the traces next to it can be read without it. */
static void advise_traces(const struct cli_folder *f)
{
	struct dirent **e = NULL;
	int i, n = scandir(f->path, &e, is_stream, by_cpu);
	char *perf = join(f->path, CLI_FOLDER_PERF);

	if (perf && !access(perf, F_OK))
		fprintf(stderr, "  give its trace: %s\n", perf);
	else if (n > 0)
		fprintf(stderr, "  give its traces: %s/%s%s\n", f->path, e[0]->d_name,
			n > 1 ? " ..." : "");
	free(perf);
	for (i = 0; i < n; i++)
		free(e[i]);
	free(e);
}

static int open_folder(struct cli *cli, const char *path)
{
	int code = start(cli, path, strlen(path));
	struct cli_folder *f = cli->folder;
	bool has_perf;
	char *perf;

	if (code)
		return code;
	f->whole = true;
	if (has_head(f)) {
		code = load_head(cli, f);
		if (!code)
			code = take_traces(cli, f);
		if (code == CLI_FAILED)
			advise_traces(f);
		return code ? code : take_side(cli, f);
	}
	perf = join(f->path, CLI_FOLDER_PERF);
	has_perf = perf && !access(perf, F_OK);
	free(perf);
	/* The reader finds perf's own file by itself. */
	if (!has_perf)
		code = take_streams(cli, f);
	perf = join(f->path, "data");
	if (!code && !has_perf && !f->files && perf && access(perf, F_OK)) {
		cli_error(cli,
			  "%s: there is no trace in this folder: no " CLI_FOLDER_HEAD
			  ", " CLI_FOLDER_PERF ", data, cpuN.pt or cpuN.rtit",
			  f->path);
		code = CLI_FAILED;
	}
	free(perf);
	if (!code)
		code = find_side(cli, f, CLI_FOLDER_SIDE);
	return code || f->side ? code : find_side(cli, f, CLI_FOLDER_OLD_SIDE);
}

/* Whether all files are in the folder of the first, whose name ends at @n. */
static bool is_one_folder(const struct cli *cli, size_t n)
{
	int i;

	for (i = 0; i < cli->files; i++)
		if (strncmp(cli->path[i], cli->path[0], n) || strchr(cli->path[i] + n, '/'))
			return false;
	return true;
}

/* recording.json itself and the side record are no traces. */
static int refuse_parts(const struct cli *cli, const struct cli_folder *f, size_t n)
{
	const char *side = json_string_value(json_object_get(f->doc, "side_record"));
	int i, cpu = -1;

	for (i = 0; i < cli->files; i++) {
		const char *name = cli->path[i] + n;

		if ((!strcmp(name, CLI_FOLDER_HEAD) || (side && !strcmp(name, side))) &&
		    !lists(f, name, &cpu))
			return cli_usage(cli,
					 "%s: is a part of a recording, and no trace: give "
					 "the folder, %s",
					 cli->path[i], f->path);
	}
	return CLI_OK;
}

/* The traces stay those of the command line, and what is wrong with the recording is a warning. */
static int open_around(struct cli *cli, int *cpu)
{
	const char *slash = strrchr(cli->path[0], '/'), *name;
	size_t n = slash ? (size_t)(slash - cli->path[0]) + 1 : 0;
	int i, code = is_one_folder(cli, n) ? start(cli, cli->path[0], n) : CLI_OK;
	struct cli_folder *f = cli->folder;
	bool known;

	if (code || !f)
		return code;
	known = has_head(f) && !load_head(cli, f);
	if (known && refuse_parts(cli, f, n))
		return CLI_USAGE;
	for (i = 0; known && i < cli->files; i++)
		known = lists(f, cli->path[i] + n, &cpu[i]);
	if (known)
		return take_side(cli, f) == CLI_USAGE ? CLI_USAGE : CLI_OK;
	json_decref(f->doc);
	f->doc = NULL;
	name = cli->path[0] + n;
	if (!strcmp(name, CLI_FOLDER_PERF))
		code = find_side(cli, f, CLI_FOLDER_OLD_SIDE);
	if (!code && !f->side && (!strcmp(name, CLI_FOLDER_PERF) || cpu_of(name) >= 0))
		code = find_side(cli, f, CLI_FOLDER_SIDE);
	return code;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

int cli_folder_open(struct cli *cli, int *cpu)
{
	int i, code;

	for (i = 0; i < cli->files; i++) {
		if (!strcmp(cli->path[i], "-"))
			return CLI_OK;
		if (!is_folder(cli->path[i]))
			continue;
		if (cli->files > 1)
			return cli_usage(cli, "%s: is a folder: give it alone", cli->file[i]);
		code = open_folder(cli, cli->path[0]);
		if (!code && cli->folder->side)
			code = cli_note_input(cli, cli->folder->side);
		return code;
	}
	code = open_around(cli, cpu);
	if (!code && cli->folder && cli->folder->side)
		code = cli_note_input(cli, cli->folder->side);
	return code;
}

void cli_folder_close(struct cli *cli)
{
	struct cli_folder *f = cli->folder;

	if (!f)
		return;
	while (f->files)
		free(f->file[--f->files]);
	free(f->file);
	free(f->cpu);
	free(f->side);
	free(f->head);
	free(f->path);
	json_decref(f->doc);
	free(f);
	cli->folder = NULL;
}

/* ---- the guests' code ---- */

static int is_visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

int cli_folder_list(struct cli *cli, const char *name, char ***file, size_t *count)
{
	char *path = cli->folder ? join(cli->folder->path, name) : NULL;
	struct dirent **e = NULL;
	int i, n = path && is_kind(path, S_IFDIR) ? scandir(path, &e, is_visible, alphasort) : 0;

	*count = 0;
	*file = calloc(n > 0 ? (size_t)n : 1, sizeof(**file));
	for (i = 0; i < n; i++) {
		char *one = *file ? join(path, e[i]->d_name) : NULL;

		free(e[i]);
		if (one && is_kind(one, S_IFREG)) {
			(*file)[(*count)++] = one;
			continue;
		}
		/* A subfolder has something else, like the host's symbols. */
		if (one && !is_kind(one, S_IFDIR))
			cli_warn(cli, "%s: is not a regular file, and not used", one);
		free(one);
	}
	free(e);
	free(path);
	return *file ? CLI_OK : cli_no_memory(cli);
}
