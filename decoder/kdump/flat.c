// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * makedumpfile's flattened format, which QEMU writes, too: a header of 4 KiB, then pieces of the
 * file with their places, in any order. libkdumpfile reads it from version 0.5.4 on, Debian 12 has
 * 0.5.1.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "decoder/kdump/kdump.h"

#define HEADER 4096
#define CHUNK  (1u << 16)
/* No dump is longer; the pieces of a file that claims to be may lie anywhere below. */
#define SIZE_MAX_FILE (1ULL << 48)

int kdump_fail(struct vmpt_diag *diag, enum vmpt_error err, u64 offset, const char *fmt, ...)
{
	va_list args;

	if (diag) {
		diag->offset = offset;
		va_start(args, fmt);
		vsnprintf(diag->text, sizeof(diag->text), fmt, args);
		va_end(args);
	}
	return -(int)err;
}

static int make_temp(struct vmpt_diag *diag)
{
	const char *dir = getenv("TMPDIR");
	char path[4096];
	int fd = -1;

	if (snprintf(path, sizeof(path), "%s/vmpt-XXXXXX", dir && *dir ? dir : "/var/tmp") <
	    (int)sizeof(path))
		fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return kdump_fail(diag, VMPT_E_IO, 0,
				  "cannot make a temporary file: %s (TMPDIR "
				  "names another folder)",
				  strerror(errno));
	unlink(path);
	return fd;
}

/* Read, or if @out write, all @n bytes at @offset. */
static bool transfer(int fd, u8 *bytes, size_t n, u64 offset, bool out)
{
	while (n) {
		ssize_t now = out ? pwrite(fd, bytes, n, (off_t)offset)
				  : pread(fd, bytes, n, (off_t)offset);

		if (now < 0 && errno == EINTR)
			continue;
		if (now <= 0)
			return false;
		bytes += now;
		offset += (u64)now;
		n -= (size_t)now;
	}
	return true;
}

/* @size bytes at @from to @to of the new file. */
static int copy(int in, int out, u64 from, u64 to, u64 size, u8 *buf, struct vmpt_diag *diag)
{
	while (size) {
		size_t n = size < CHUNK ? size : CHUNK;

		if (!transfer(in, buf, n, from, false))
			return kdump_fail(diag, VMPT_E_TRUNCATED, from,
					  "the flattened dump ends inside a piece");
		if (!transfer(out, buf, n, to, true))
			return kdump_fail(diag, VMPT_E_IO, from,
					  "cannot write to a temporary file: %s",
					  strerror(errno ? errno : ENOSPC));
		from += n;
		to += n;
		size -= n;
	}
	return 0;
}

static u64 big_endian(const u8 *p)
{
	return __builtin_bswap64(vmpt_load64(p));
}

/* s64 offset, size, both -1 at the end; big-endian. */
static int copy_pieces(int in, int out, u8 *buf, struct vmpt_diag *diag)
{
	u64 at = HEADER;

	for (;;) {
		u64 to, size;
		u8 head[16];
		int ret;

		if (!transfer(in, head, sizeof(head), at, false))
			return kdump_fail(diag, VMPT_E_TRUNCATED, at,
					  "the flattened dump has no end: it was cut");
		to = big_endian(head);
		size = big_endian(head + 8);
		if (to == ~0ULL)
			return 0;
		if (to > SIZE_MAX_FILE || size > SIZE_MAX_FILE)
			return kdump_fail(diag, VMPT_E_FORMAT, at,
					  "a piece of the flattened dump has %llu bytes at %llu",
					  (unsigned long long)size, (unsigned long long)to);
		at += sizeof(head);
		ret = copy(in, out, at, to, size, buf, diag);
		if (ret)
			return ret;
		at += size;
	}
}

int kdump_unflatten(int fd, struct vmpt_diag *diag)
{
	u8 *buf = malloc(CHUNK), head[32];
	int out, ret;

	if (!buf)
		return kdump_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	out = make_temp(diag);
	if (out < 0) {
		free(buf);
		return out;
	}
	/* char signature[16], s64 type, version: 1 and 1 */
	if (!transfer(fd, head, sizeof(head), 0, false) || big_endian(head + 16) != 1 ||
	    big_endian(head + 24) != 1)
		ret = kdump_fail(diag, VMPT_E_UNSUPPORTED, 16,
				 "a flattened dump of another version than 1");
	else
		ret = copy_pieces(fd, out, buf, diag);
	free(buf);
	if (!ret)
		return out;
	close(out);
	return ret;
}
