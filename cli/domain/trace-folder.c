// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt domain trace: its folder before and while domains run. With --force an earlier trace
 * is only set aside until the new domains run: if they do not start it is put back.
 *
 * Nothing is moved or removed but files of a trace that the plugin wrote. The earlier trace is in
 * one of these folders, whose name says what is to be done with it if the process is killed:
 *
 *	MOVING	move it back: what is not in there is still in its place
 *	EARLIER	the new trace is not worth keeping: remove it, then as MOVING
 *	DROPPED	the new domains run: remove the earlier one
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/domain/trace.h"

#define MOVING	".vmpt-moving"
#define EARLIER ".vmpt-earlier"
#define DROPPED ".vmpt-dropped"

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

/* ---- what the plugin wrote ---- */

int trace_open_file(int dir, const char *file)
{
	int fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || (!fstat(fd, &st) && S_ISREG(st.st_mode)))
		return fd;
	close(fd);
	errno = EINVAL;
	return -1;
}

/* Whether it is a regular file that begins with @mark. */
static bool is_marked(int dir, const char *file, const char *mark)
{
	int fd = trace_open_file(dir, file);
	char head[16];
	ssize_t n = fd < 0 ? -1 : read(fd, head, strlen(mark));

	if (fd >= 0)
		close(fd);
	return n == (ssize_t)strlen(mark) && !memcmp(head, mark, (size_t)n);
}

/* Of the host CPUs of a trace, in any version of the plugin (qemu-plugin/host/state.c). */
#define STATE_MARK "VMPTCP"

static bool has_state(int dir, int cpu)
{
	char state[32];

	snprintf(state, sizeof(state), "cpu%d.state", cpu);
	return is_marked(dir, state, STATE_MARK);
}

/* util/code-stream.h, in any version */
#define CODE_MARK "VMPTCOD"
/* qemu-plugin/host/tasks-file.c */
#define TASKS_MARK   "{\"tsc\":\"0x"
#define SYMBOLS_MARK "766d707473796d73"

/* "vm0.code" and so on: by @form, TRACE_CODE. */
static bool is_of_vm(const char *file, const char *form)
{
	const char *end = strchr(file, '.');
	size_t n = end ? (size_t)(end - file) : 0;

	return n > 2 && n < 8 && !strncmp(file, "vm", 2) &&
	       2 + strspn(file + 2, "0123456789") == n && !strcmp(end, strchr(form, '.'));
}

/* How a file begins; NULL: it has no name of a trace. */
static const char *mark_of(const char *file)
{
	static const struct {
		const char *name, *mark;
	} known[] = { { TRACE_RECORD, "{\"" },
		      { CLI_FOLDER_HEAD, "{\n" },
		      { "." CLI_FOLDER_HEAD ".vmpt-new", "{\n" },
		      { "perf.data", "PERFILE2" },
		      { "host.bin", "\xe8" } };
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(known); i++)
		if (!strcmp(file, known[i].name))
			return known[i].mark;
	if (trace_cpu_of(file, ".state") >= 0)
		return STATE_MARK;
	if (is_of_vm(file, TRACE_CODE))
		return CODE_MARK;
	if (is_of_vm(file, TRACE_TASKS))
		return TASKS_MARK;
	if (is_of_vm(file, TRACE_SYMBOLS))
		return SYMBOLS_MARK;
	return trace_stream_of(file) >= 0 ? "" : NULL;
}

/* Raw streams have no mark of their own: the plugin makes a stream's state before it. */
static bool is_of_trace(int dir, const char *file)
{
	const char *mark = mark_of(file);
	struct stat st;

	if (!mark || fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return false;
	return !st.st_size ||
	       (*mark ? is_marked(dir, file, mark) : has_state(dir, trace_stream_of(file)));
}

/* ---- files of a trace, all of a folder ---- */

static int move(int from, int to, const char *file)
{
	if (!renameat2(from, file, to, file, RENAME_NOREPLACE))
		return 0;
	/* Not all file systems know that. */
	if (errno != EINVAL)
		return -1;
	if (faccessat(to, file, F_OK, AT_SYMLINK_NOFOLLOW))
		return renameat(from, file, to, file);
	errno = EEXIST;
	return -1;
}

/*
 * Move the files of a trace from @from to @to, or remove them if that is < 0. The states last: the
 * streams are known by them. @known: all are, by being in @from. errno, or 0.
 */
static int each_file(int from, int to, bool known)
{
	struct dirent *entry;
	int pass, err = 0;

	for (pass = 0; pass < 2 && !err; pass++) {
		int fd = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		DIR *dir = fd < 0 ? NULL : fdopendir(fd);

		if (!dir)
			return errno;
		while ((entry = readdir(dir)) != NULL) {
			const char *file = entry->d_name;

			if (pass != (trace_cpu_of(file, ".state") >= 0) ||
			    !(known ? mark_of(file) != NULL : is_of_trace(from, file)))
				continue;
			if (to < 0 ? unlinkat(from, file, 0) : move(from, to, file))
				err = errno;
		}
		closedir(dir);
	}
	return err;
}

/* ---- the earlier trace ---- */

static int open_folder(int dir, const char *name)
{
	return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Empty the folder @name into @to, or remove its files if that is < 0. errno, or 0. */
static int empty_out(int dir, const char *name, int to)
{
	int fd = open_folder(dir, name), err;

	if (fd < 0)
		return errno == ENOENT ? 0 : errno;
	err = each_file(fd, to, true);
	close(fd);
	return err || !unlinkat(dir, name, AT_REMOVEDIR) ? err : errno;
}

/* Remove the new trace, put the earlier one back, if there is one. errno, or 0. */
static int put_back(int dir)
{
	int err = each_file(dir, -1, false);

	if (!err && renameat(dir, EARLIER, dir, MOVING) && errno != ENOENT)
		err = errno;
	return err ? err : empty_out(dir, MOVING, dir);
}

static int drop(int dir)
{
	if (renameat(dir, EARLIER, dir, DROPPED) && errno != ENOENT)
		return errno;
	return empty_out(dir, DROPPED, -1);
}

/* What a killed command has left. errno, or 0. */
static int recover(int dir)
{
	int err = empty_out(dir, DROPPED, -1);

	if (!err)
		err = empty_out(dir, MOVING, dir);
	if (!err && !faccessat(dir, EARLIER, F_OK, AT_SYMLINK_NOFOLLOW))
		err = put_back(dir);
	return err;
}

static int set_aside(int dir)
{
	int moving, err;

	if (mkdirat(dir, MOVING, 0700))
		return errno;
	moving = open_folder(dir, MOVING);
	if (moving < 0)
		return errno;
	err = each_file(dir, moving, false);
	close(moving);
	if (!err && !renameat(dir, MOVING, dir, EARLIER))
		return 0;
	err = err ? err : errno;
	empty_out(dir, MOVING, dir);
	return err;
}

/* ---- the folder ---- */

/* Whether a QEMU, of a command that was killed, still writes to a stream of @dir. */
static bool is_written(int dir, const char *file)
{
	/* qemu-plugin/host/state.c */
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	int fd = trace_cpu_of(file, ".state") < 0 ? -1 : trace_open_file(dir, file);
	bool locked = fd >= 0 && !fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;

	if (fd >= 0)
		close(fd);
	return locked;
}

static int refuse(const struct cli *cli, const struct trace *t, const char *file)
{
	const struct domain_options *o = cli->data;
	char name[CLI_WHO];

	cli_safe_name(file, name);
	if (is_written(t->dir_fd, file)) {
		cli_error(cli, "%s: a QEMU still writes to it: %s", t->dir, name);
		return CLI_FAILED;
	}
	cli_error(cli, "%s is not empty: it has %s", t->dir, name);
	fprintf(stderr, "%s\n",
		o->force ? "  --force only removes files of a trace, which the plugin wrote"
			 : "  give another with --output=DIR, or --force to remove"
			   " an earlier trace");
	return CLI_FAILED;
}

static bool is_code(int dir, const char *file)
{
	struct stat st;

	return (!strcmp(file, CLI_FOLDER_SYMBOLS) || !strcmp(file, CLI_FOLDER_IMAGES)) &&
	       !fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode);
}

/* Remove nothing unless all of it may be removed. */
static int check_folder(const struct cli *cli, const struct trace *t, DIR *dir)
{
	const struct domain_options *o = cli->data;
	struct dirent *entry;

	while ((entry = readdir(dir)) != NULL) {
		const char *file = entry->d_name;

		/* The guests' code is the user's, and stays. */
		if (!strcmp(file, ".") || !strcmp(file, "..") || is_code(t->dir_fd, file))
			continue;
		if (!o->force || !is_of_trace(t->dir_fd, file) || is_written(t->dir_fd, file))
			return refuse(cli, t, file);
	}
	return CLI_OK;
}

static int empty(const struct cli *cli, struct trace *t)
{
	const struct domain_options *o = cli->data;
	int err = o->force ? recover(t->dir_fd) : 0, code = CLI_OK;
	DIR *dir = err ? NULL : opendir(t->dir);

	if (dir) {
		code = check_folder(cli, t, dir);
		closedir(dir);
	} else if (!err) {
		err = errno;
	}
	if (!code && !err && o->force)
		err = set_aside(t->dir_fd);
	if (err) {
		cli_error(cli, "%s: %s", t->dir, strerror(err));
		code = CLI_FAILED;
	}
	t->prepared = !code;
	return code;
}

int trace_folder(const struct cli *cli, const struct domain_link *link, struct trace *t)
{
	const struct domain_options *o = cli->data;
	bool made;

	t->given = o->output;
	/* Who may read the files may enter it. */
	made = !mkdir(t->given, cli->mode | (cli->mode & 0444) >> 2);
	if (!made && errno != EEXIST) {
		cli_error(cli, "%s: %m", t->given);
		return CLI_FAILED;
	}
	t->dir = realpath(t->given, NULL);
	t->dir_fd = t->dir ? open(t->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (t->dir_fd < 0 || (made && link->uid && fchown(t->dir_fd, link->uid, link->gid))) {
		cli_error(cli, "%s: %m", t->given);
		return CLI_FAILED;
	}
	/* Until the command ends, also if it is killed. */
	if (flock(t->dir_fd, LOCK_EX | LOCK_NB)) {
		cli_error(cli, "%s: another vmpt domain trace writes to it", t->dir);
		return CLI_FAILED;
	}
	return empty(cli, t);
}

void trace_folder_settle(const struct cli *cli, struct trace *t, bool ran)
{
	int err;

	if (!t->prepared)
		return;
	t->prepared = false;
	err = ran ? drop(t->dir_fd) : put_back(t->dir_fd);
	if (err)
		cli_warn(cli, "%s: the earlier trace: %s", t->dir, strerror(err));
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
