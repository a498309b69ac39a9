// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt domain trace: its folder before and while domains run. With --force an earlier trace
 * is only set aside until the new domains run: if they do not start it is put back.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/domain/trace.h"

#define ASIDE ".earlier" /* a folder in it */

int trace_cpu_of(const char *file, const char *suffix)
{
	int cpu = -1, end = 0;

	if (sscanf(file, "cpu%5d%n", &cpu, &end) != 1 || strcmp(file + end, suffix))
		return -1;
	return cpu;
}

int trace_stream_of(const char *file)
{
	int cpu = trace_cpu_of(file, ".pt");

	return cpu >= 0 ? cpu : trace_cpu_of(file, ".rtit");
}

/* Only files of an earlier trace. */
static bool is_of_trace(const char *file)
{
	static const char *const names[] = { TRACE_RECORD, "perf.data", "host.bin" };
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(names); i++)
		if (!strcmp(file, names[i]))
			return true;
	return trace_stream_of(file) >= 0 || trace_cpu_of(file, ".state") >= 0;
}

static bool is_dot(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* Remove nothing unless all of it may be removed. */
static int check_folder(const struct cli *cli, const struct trace *t, DIR *dir)
{
	const struct domain_options *o = cli->own;
	struct dirent *entry;

	while ((entry = readdir(dir)) != NULL) {
		if (is_dot(entry->d_name) ||
		    (o->force && (is_of_trace(entry->d_name) || !strcmp(entry->d_name, ASIDE))))
			continue;
		cli_error(cli, "%s is not empty: it has %s", t->dir, entry->d_name);
		fprintf(stderr, "%s\n",
			o->force ? "  --force only removes files of a trace"
				 : "  give another with --output=DIR, or --force to remove"
				   " an earlier trace");
		return CLI_FAILED;
	}
	return CLI_OK;
}

/* ---- files of a trace, all of a folder ---- */

/* Move them from @from to @to, or remove them if that is < 0. errno, or 0. */
static int each_file(int from, int to)
{
	int fd = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir)
		return errno;
	while ((entry = readdir(dir)) != NULL) {
		const char *name = entry->d_name;

		if (!is_of_trace(name))
			continue;
		if (to < 0 ? unlinkat(from, name, 0) : renameat(from, name, to, name))
			err = errno;
	}
	closedir(dir);
	return err;
}

/* Remove the new trace, put the earlier one back. errno, or 0. */
static int put_back(int dir, int aside)
{
	int err = each_file(dir, -1);

	if (aside < 0)
		return err;
	err = err ? err : each_file(aside, dir);
	if (!err && unlinkat(dir, ASIDE, AT_REMOVEDIR))
		err = errno;
	return err;
}

static int open_aside(int dir)
{
	return openat(dir, ASIDE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int set_aside(int dir)
{
	int aside = open_aside(dir), err = 0;

	/* A killed command has left one, which takes precedence over the files in the folder. */
	if (aside >= 0) {
		err = put_back(dir, aside);
		close(aside);
	}
	if (err || mkdirat(dir, ASIDE, 0700))
		return err ? err : errno;
	aside = open_aside(dir);
	if (aside < 0)
		return errno;
	err = each_file(dir, aside);
	if (err)
		each_file(aside, dir);
	close(aside);
	return err;
}

static int empty(const struct cli *cli, struct trace *t)
{
	const struct domain_options *o = cli->own;
	DIR *dir = opendir(t->dir);
	int code, err = 0;

	if (!dir) {
		cli_error(cli, "%s: %m", t->dir);
		return CLI_FAILED;
	}
	code = check_folder(cli, t, dir);
	if (!code && o->force)
		err = set_aside(dirfd(dir));
	closedir(dir);
	if (err) {
		cli_error(cli, "%s: %s", t->dir, strerror(err));
		code = CLI_FAILED;
	}
	t->prepared = !code;
	return code;
}

int trace_folder(const struct cli *cli, struct trace *t)
{
	const struct domain_options *o = cli->own;
	const char *dir = o->output;

	t->given = dir;
	if (mkdir(dir, 0777) && errno != EEXIST) {
		cli_error(cli, "%s: %m", dir);
		return CLI_FAILED;
	}
	t->dir = realpath(dir, NULL);
	if (!t->dir) {
		cli_error(cli, "%s: %m", dir);
		return CLI_FAILED;
	}
	return empty(cli, t);
}

void trace_folder_settle(const struct cli *cli, struct trace *t, bool ran)
{
	int dir, aside, err;

	if (!t->prepared)
		return;
	t->prepared = false;
	dir = open(t->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return;
	aside = open_aside(dir);
	if (!ran)
		err = put_back(dir, aside);
	else if (aside < 0)
		err = 0;
	else
		err = each_file(aside, -1) || unlinkat(dir, ASIDE, AT_REMOVEDIR) ? errno : 0;
	if (err)
		cli_warn(cli, "%s/" ASIDE ": %s", t->dir, strerror(err));
	if (aside >= 0)
		close(aside);
	close(dir);
}

u64 trace_bytes(const struct trace *t)
{
	DIR *dir = opendir(t->dir);
	struct dirent *entry;
	struct stat st;
	u64 bytes = 0;

	while (dir && (entry = readdir(dir)) != NULL)
		if ((trace_stream_of(entry->d_name) >= 0 || !strcmp(entry->d_name, "perf.data")) &&
		    !fstatat(dirfd(dir), entry->d_name, &st, 0))
			bytes += (u64)st.st_size;
	if (dir)
		closedir(dir);
	return bytes;
}
