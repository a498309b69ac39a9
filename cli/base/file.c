// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A file that a command writes: a temporary name, then its own. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "cli/base/file.h"

#define MARKS_WITHIN 4096

static int failed(const struct cli *cli, const char *what, const char *path)
{
	cli_error(cli, "cannot %s %s: %s", what, path, strerror(errno ? errno : EIO));
	return CLI_FAILED;
}

static int refuse(const struct cli *cli, const char *path, const char *why)
{
	cli_error(cli, "%s %s", path, why);
	fprintf(stderr, "  give another name, or remove it\n");
	return CLI_FAILED;
}

/* Whether vmpt wrote the file @name, by its first bytes. */
static bool is_marked(const struct cli_file *file, const char *name)
{
	int fd = openat(file->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char head[MARKS_WITHIN];
	ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof(head));

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return !n;
	return file->own ? file->own(head, (size_t)n)
			 : memmem(head, (size_t)n, file->marks, strlen(file->marks)) != NULL;
}

/* Whether the file @file->name may be replaced, or is not there. */
static int check_old(struct cli *cli, const struct cli_file *file)
{
	struct stat st;

	if (!fstatat(file->folder, file->name, &st, 0) && cli_is_input(cli, &st))
		return cli_usage(cli, "%s is an input: it would be overwritten", file->path);
	if (fstatat(file->folder, file->name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? CLI_OK : failed(cli, "create", file->path);
	if (S_ISLNK(st.st_mode))
		return refuse(cli, file->path, "is a symbolic link, which vmpt does not follow");
	if (!S_ISREG(st.st_mode))
		return refuse(cli, file->path, "exists and is not a regular file");
	if (!is_marked(file, file->name))
		return refuse(cli, file->path, "exists, and vmpt did not write it");
	return CLI_OK;
}

/* A device, a pipe or what /dev/fd/N is: there is nothing to lose in it. */
static bool is_stream(const char *path, struct stat *st)
{
	return !stat(path, st) && (S_ISCHR(st->st_mode) || S_ISFIFO(st->st_mode));
}

static int open_stream(struct cli *cli, struct cli_file *file)
{
	/* Without O_NONBLOCK a FIFO that nobody reads would wait for ever. */
	int fd = open(file->path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 && errno == ENXIO)
		return refuse(cli, file->path, "is a FIFO that no process reads");
	if (fd < 0 || fcntl(fd, F_SETFL, O_WRONLY) < 0 || !(file->f = fdopen(fd, "w"))) {
		if (fd >= 0)
			close(fd);
		return failed(cli, "open", file->path);
	}
	return CLI_OK;
}

/* Whether what has the temporary name may be overwritten: a new file, or what a killed vmpt left.
 */
static int check_temporary(struct cli *cli, const struct cli_file *file, const struct stat *st)
{
	if (cli_is_input(cli, st))
		return cli_usage(cli, "%s is an input: it would be overwritten", file->temporary);
	/* Whoever made it could read, and a hard link is a file that has another name. */
	if (!S_ISREG(st->st_mode) || st->st_nlink != 1 || st->st_uid != geteuid() ||
	    !is_marked(file, file->temporary))
		return refuse(cli, file->temporary, "exists, and vmpt did not write it");
	return CLI_OK;
}

/*
 * The lock shows that a process still writes it; without one it is a leftover, and is replaced.
 * Whoever gets the lock of a file that has lost its name meanwhile tries again.
 */
static int open_temporary(struct cli *cli, struct cli_file *file)
{
	struct stat at, named;
	unsigned int tries;
	int fd = -1, ret;

	for (tries = 0; tries < 100; tries++) {
		fd = openat(file->folder, file->temporary,
			    O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
		if (fd < 0)
			return failed(cli, "create", file->path);
		if (flock(fd, LOCK_EX | LOCK_NB)) {
			close(fd);
			return refuse(cli, file->path, "is being written by another vmpt");
		}
		if (!fstat(fd, &at) &&
		    !fstatat(file->folder, file->temporary, &named, AT_SYMLINK_NOFOLLOW) &&
		    at.st_ino == named.st_ino && at.st_dev == named.st_dev)
			break;
		close(fd);
		fd = -1;
	}
	if (fd < 0) {
		errno = EEXIST;
		return failed(cli, "create", file->temporary);
	}
	ret = check_temporary(cli, file, &at);
	if (ret) {
		close(fd);
		return ret;
	}
	if (fchmod(fd, cli->mode) || ftruncate(fd, 0) || !(file->f = fdopen(fd, "w"))) {
		close(fd);
		return failed(cli, "create", file->path);
	}
	return CLI_OK;
}

static int open_folder(struct cli *cli, struct cli_file *file)
{
	char *folder = strndup(file->path, (size_t)(file->name - file->path));

	if (!folder)
		return cli_no_memory(cli);
	file->folder = open(*folder ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(folder);
	return file->folder < 0 ? failed(cli, "create", file->path) : CLI_OK;
}

static int create(struct cli *cli, struct cli_file *file)
{
	const char *path = file->path;
	const char *slash = strrchr(path, '/');
	struct stat st;
	int ret;

	file->name = slash ? slash + 1 : path;
	file->folder = -1;
	if (!strcmp(path, "-")) {
		file->f = stdout;
		return CLI_OK;
	}
	if (is_stream(path, &st)) {
		ret = cli_is_input(cli, &st) ? cli_usage(cli, "%s is an input", path)
					     : open_stream(cli, file);
	} else {
		ret = open_folder(cli, file);
		if (!ret)
			ret = check_old(cli, file);
		if (!ret && asprintf(&file->temporary, ".%s.vmpt-new", file->name) < 0) {
			file->temporary = NULL;
			ret = cli_no_memory(cli);
		}
		if (!ret)
			ret = open_temporary(cli, file);
	}
	if (!ret)
		setvbuf(file->f, NULL, _IOFBF, 1 << 18);
	else
		cli_file_drop(file);
	return ret;
}

int cli_file_create(struct cli *cli, const char *path, const char *marks, struct cli_file *file)
{
	*file = (struct cli_file){ .path = path, .marks = marks };
	return create(cli, file);
}

int cli_file_create_own(struct cli *cli, const char *path,
			bool (*own)(const char *head, size_t size), struct cli_file *file)
{
	*file = (struct cli_file){ .path = path, .own = own };
	return create(cli, file);
}

/* The rename comes before the close, which gives the lock back. */
int cli_file_commit(struct cli *cli, struct cli_file *file)
{
	int ret = CLI_OK;

	/* cli_finish() checks that the standard output was written. */
	if (file->f == stdout) {
		ret = cli_output_failed(cli) ? CLI_FAILED : CLI_OK;
		file->f = NULL;
		return ret;
	}
	/* After an earlier error, its reason again. */
	if (ferror(file->f)) {
		clearerr(file->f);
		putc('\n', file->f);
	}
	errno = 0;
	if (fflush(file->f))
		ret = failed(cli, "write", file->path);
	/* Of an input that became shorter this is not the output. */
	if (!ret && file->temporary && !cli_inputs_whole(cli))
		ret = CLI_FAILED;
	if (!ret && file->temporary)
		ret = check_old(cli, file);
	if (!ret && file->temporary) {
		if (renameat(file->folder, file->temporary, file->folder, file->name)) {
			ret = failed(cli, "rename", file->path);
		} else {
			free(file->temporary);
			file->temporary = NULL;
		}
	}
	cli_file_drop(file);
	return ret;
}

void cli_file_drop(struct cli_file *file)
{
	/* While it is locked: nobody else's file has the name. */
	if (file->temporary && file->f)
		unlinkat(file->folder, file->temporary, 0);
	if (file->f && file->f != stdout)
		fclose(file->f);
	if (file->folder >= 0)
		close(file->folder);
	free(file->temporary);
	*file = (struct cli_file){ .folder = -1 };
}
