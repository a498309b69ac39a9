// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The files of an image: mapped, or read by their descriptors page by page; see image.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "decoder/image/image.h"

/* Of a file that is read by its descriptor this is kept: header and notes of an ELF file. */
#define HEAD (64u << 10)

static bool is_in_proc(const char *path)
{
	struct statfs fs;
	struct stat st;

	return !statfs(path, &fs) && fs.f_type == PROC_SUPER_MAGIC && !stat(path, &st) &&
	       S_ISREG(st.st_mode) && st.st_size;
}

/* Up to @n bytes at @offset: how many. */
static size_t read_at(int fd, u8 *to, size_t n, u64 offset)
{
	size_t done = 0;

	while (done < n) {
		ssize_t now = pread(fd, to + done, n - done, (off_t)(offset + done));

		if (now < 0 && errno == EINTR)
			continue;
		if (now <= 0)
			break;
		done += (size_t)now;
	}
	return done;
}

static int open_live(struct image_file *f, const char *path, struct vmpt_diag *diag)
{
	struct stat st;

	f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (f->fd < 0 || fstat(f->fd, &st))
		return vmpt_diag_fail(diag, VMPT_E_IO, 0, "cannot open: %s", strerror(errno));
	f->head = malloc(HEAD);
	if (!f->head)
		return vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	f->map.data = f->head;
	f->map.size = read_at(f->fd, f->head, HEAD, 0);
	/* The kernel's end of /proc/kcore may be short of its last segment. */
	f->size = is_in_proc(path) ? INT64_MAX : (u64)st.st_size;
	return 0;
}

void vmpt_image_file_close(struct image_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	free(f->head);
	if (f->map.addr)
		vmpt_map_close(&f->map);
}

int vmpt_image_take_file(struct vmpt_image *image, struct image_file *f, struct vmpt_diag *diag)
{
	if (vmpt_grow(&image->files, image->file_count)) {
		vmpt_image_file_close(f);
		return vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	}
	image->files[image->file_count] = *f;
	return (int)image->file_count++;
}

int vmpt_image_add_file(struct vmpt_image *image, const char *path, bool live,
			struct vmpt_diag *diag)
{
	struct image_file f = { .fd = -1 };
	struct stat st;
	int ret;

	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return vmpt_diag_fail(diag, VMPT_E_IO, 0, "is a directory, not a memory image");
	if (live || is_in_proc(path)) {
		ret = open_live(&f, path, diag);
	} else {
		ret = vmpt_map_open(&f.map, path, diag);
		f.size = f.map.size;
	}
	if (!ret)
		return vmpt_image_take_file(image, &f, diag);
	vmpt_image_file_close(&f);
	return ret;
}

size_t vmpt_image_file_read(const struct image_file *f, u64 offset, u8 *to, size_t n)
{
	if (f->fd >= 0)
		return read_at(f->fd, to, n, offset);
	memcpy(to, f->map.data + offset, n);
	return n;
}
