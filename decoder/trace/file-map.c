// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Files as memory. A regular file is mapped directly, however large; everything
 * else goes through an unlinked temporary file, so that memory use is constant.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoder/trace/trace.h"

static const u8 nothing[1];

static int try_temp(const char *dir)
{
	char path[4096];
	int n, fd;

	n = snprintf(path, sizeof(path), "%s/vmpt-XXXXXX", dir);
	if (n < 0 || (size_t)n >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

int vmpt_temp_create(struct vmpt_diag *diag)
{
	const char *dir = getenv("TMPDIR");
	int fd;

	if (dir && *dir) {
		fd = try_temp(dir);
	} else {
		/* /tmp may be memory, /var/tmp is not */
		dir = "/var/tmp";
		fd = try_temp(dir);
		if (fd < 0) {
			dir = "/tmp";
			fd = try_temp(dir);
		}
	}
	if (fd < 0)
		return vmpt_diag_fail(diag, VMPT_E_IO, 0, "cannot make a temporary file in %s: %s",
				      dir, strerror(errno));
	return fd;
}

int vmpt_temp_write(int fd, const u8 *data, u64 size, struct vmpt_diag *diag)
{
	while (size) {
		ssize_t n = write(fd, data, size < (1u << 30) ? size : 1u << 30);

		if (n < 0 && errno == EINTR)
			continue;
		/* @data is of a map: the kernel does not raise SIGBUS for it */
		if (n < 0 && errno == EFAULT)
			return vmpt_diag_fail(diag, VMPT_E_IO, 0,
					      "it became shorter while it was read");
		if (n <= 0)
			return vmpt_diag_fail(
				diag, VMPT_E_IO, 0, "cannot write to a temporary file: %s%s",
				strerror(n ? errno : ENOSPC),
				getenv("TMPDIR") ? "" : " (TMPDIR names another folder)");
		data += n;
		size -= (u64)n;
	}
	return 0;
}

int vmpt_temp_map(struct vmpt_map *map, int fd, u64 size, struct vmpt_diag *diag)
{
	void *addr;

	*map = (struct vmpt_map){ .data = nothing };
	if (!size)
		return 0;
	addr = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (addr == MAP_FAILED)
		return vmpt_diag_fail(diag, errno == ENOMEM ? VMPT_E_NOMEM : VMPT_E_IO, 0,
				      "cannot map it: %s", strerror(errno));
	*map = (struct vmpt_map){ .data = addr, .size = size, .addr = addr };
	return 0;
}

void vmpt_map_close(struct vmpt_map *map)
{
	if (map->addr)
		munmap(map->addr, map->size);
	*map = (struct vmpt_map){ .data = nothing };
}

/* Copy @fd to a temporary file and map that. */
static int map_copy(struct vmpt_map *map, int fd, struct vmpt_diag *diag)
{
	enum { CHUNK = 1 << 16 };
	u8 *buf = malloc(CHUNK);
	u64 size = 0;
	ssize_t n = 0;
	int temp, ret = 0;

	if (!buf)
		return vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	temp = vmpt_temp_create(diag);
	if (temp < 0) {
		free(buf);
		return temp;
	}
	while (!ret && ((n = read(fd, buf, CHUNK)) > 0 || (n < 0 && errno == EINTR))) {
		if (n < 0)
			continue;
		ret = vmpt_temp_write(temp, buf, (u64)n, diag);
		size += (u64)n;
	}
	if (!ret && n < 0)
		ret = vmpt_diag_fail(diag, VMPT_E_IO, size, "cannot read: %s", strerror(errno));
	if (!ret)
		ret = vmpt_temp_map(map, temp, size, diag);
	close(temp);
	free(buf);
	return ret;
}

static int map_fd(struct vmpt_map *map, int fd, struct vmpt_diag *diag)
{
	struct stat st;

	if (fstat(fd, &st))
		return vmpt_diag_fail(diag, VMPT_E_IO, 0, "cannot stat it: %s", strerror(errno));
	if (S_ISDIR(st.st_mode))
		return vmpt_diag_fail(diag, VMPT_E_IO, 0, "is a directory, not a trace");
	/* Files in /proc are regular but have size 0. */
	if (!S_ISREG(st.st_mode) || !st.st_size || lseek(fd, 0, SEEK_CUR))
		return map_copy(map, fd, diag);
	return vmpt_temp_map(map, fd, (u64)st.st_size, diag);
}

int vmpt_map_open(struct vmpt_map *map, const char *path, struct vmpt_diag *diag)
{
	int fd, ret;

	*map = (struct vmpt_map){ .data = nothing };
	if (!strcmp(path, "-"))
		return map_fd(map, STDIN_FILENO, diag);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return vmpt_diag_fail(diag, VMPT_E_IO, 0, "cannot open: %s", strerror(errno));
	ret = map_fd(map, fd, diag);
	close(fd);
	return ret;
}
