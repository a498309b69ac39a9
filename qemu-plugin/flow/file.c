// SPDX-License-Identifier: GPL-2.0-or-later
/* Opens the files that the plugin writes, without following links or waiting for a FIFO. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qemu-plugin/flow/file.h"

#define MARK_MAX 16

/* An empty file has just been made, or lost its contents; the umask does not count. */
static const char *check(int fd, u64 mode, const char *mark)
{
	char head[MARK_MAX];
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st))
		return strerror(errno);
	if (!S_ISREG(st.st_mode))
		return "not a regular file";
	if (st.st_nlink != 1)
		return "has another name: a hard link";
	if (!st.st_size)
		return st.st_uid != geteuid() || !fchmod(fd, (mode_t)mode) ? NULL : strerror(errno);
	n = mark ? pread(fd, head, strlen(mark), 0) : 0;
	if (n < 0)
		return strerror(errno);
	return !mark || !memcmp(head, mark, (size_t)n) ? NULL : FILE_FOREIGN;
}

int file_open(const char *path, u64 mode, const char *mark, const char **why)
{
	/* The owner can always read and write it. */
	mode |= 0600;
	/* Without O_NONBLOCK a device or a lease might make it wait. */
	int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
		      (mode_t)mode);

	if (fd < 0) {
		*why = errno == ELOOP ? "a symbolic link, which is not followed" : strerror(errno);
		return -1;
	}
	*why = check(fd, mode, mark);
	if (!*why)
		return fd;
	close(fd);
	return -1;
}
