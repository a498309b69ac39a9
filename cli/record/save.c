// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt record: the other files in the folder of perf.data. Only the user who recorded may read
 * them: the kernel's symbols, and guests' memory, are not for everyone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/record/record.h"

void rec_write(struct recorder *r, json_t *line)
{
	/* A check before the recording has no file. */
	if (!r->side) {
		json_decref(line);
		return;
	}
	errno = 0;
	if ((cli_json_print(r->cli, line, r->side, true) || fflush(r->side)) && !r->side_errno)
		r->side_errno = errno ? errno : EIO;
}

/* Copy a file of unknown size. 0 or errno. */
static int copy(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC), out, err = 0;
	char buf[64 << 10];
	ssize_t n, m;

	if (in < 0)
		return errno;
	out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (out < 0)
		err = errno;
	while (!err && (n = read(in, buf, sizeof(buf))) != 0) {
		for (m = 0; n > 0 && m < n;) {
			ssize_t put = write(out, buf + m, (size_t)(n - m));

			if (put < 0)
				n = -1;
			else
				m += put;
		}
		if (n < 0)
			err = errno;
	}
	close(in);
	if (out >= 0 && close(out) && !err)
		err = errno;
	/* A part would be taken for the whole. */
	if (out >= 0 && err)
		unlink(to);
	return err;
}

/* The system's file @from as @to in the folder. */
static void save(struct recorder *r, const char *from, const char *to)
{
	char source[REC_PATH], target[REC_PATH];
	int err, n = snprintf(target, sizeof(target), "%s/%s", r->o->out, to);

	if (n < 0 || n >= REC_PATH || !rec_path(r, source, "%s", from))
		return;
	err = copy(source, target);
	/* A kernel without modules has no list of them; a process may be gone. */
	if (err && err != ENOENT)
		cli_warn(r->cli, "%s is not saved: %s", from, strerror(err));
}

void rec_save(struct recorder *r)
{
	save(r, "/proc/kallsyms", REC_HOST "/kallsyms");
	save(r, "/proc/modules", REC_HOST "/modules");
	save(r, "/proc/cpuinfo", "cpuinfo");
}

void rec_save_cmdline(struct recorder *r, int pid)
{
	char path[REC_PATH], from[64], to[64];
	int n = snprintf(path, sizeof(path), "%s/cmdline", r->o->out);

	if (!r->side || n < 0 || n >= REC_PATH)
		return;
	mkdir(path, 0700);
	snprintf(from, sizeof(from), "/proc/%d/cmdline", pid);
	snprintf(to, sizeof(to), "cmdline/%d", pid);
	save(r, from, to);
}
