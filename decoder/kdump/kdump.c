// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Pages of kdump-compressed dumps by libkdumpfile; see kdump.h. */
#include <errno.h>
#include <fcntl.h>
#include <libkdumpfile/kdumpfile.h>
#include <stdlib.h>
#include <unistd.h>

#include "decoder/kdump/kdump.h"

struct dump {
	kdump_ctx_t *ctx;
	int fd;
};

static int read_page(void *opaque, u64 physical, u8 bytes[VMPT_PAGE])
{
	struct dump *d = opaque;
	size_t n = VMPT_PAGE;

	/* Pages that were left out, and damaged ones. */
	return kdump_read(d->ctx, KDUMP_MACHPHYSADDR, physical, bytes, &n) == KDUMP_OK &&
	       n == VMPT_PAGE;
}

/* kdump_free() of 0.5.1, Debian 12's, writes to memory that it freed: the context is left alone. */
static void close_dump(void *opaque)
{
	struct dump *d = opaque;

	if (d->fd >= 0)
		close(d->fd);
	free(d);
}

static u8 find_paging(kdump_ctx_t *ctx, int fd)
{
	u8 paging = kdump_qemu_paging(fd);
	const char *arch, *l5;

	if (paging != VMPT_PAGING_AUTO)
		return paging;
	if (kdump_get_string_attr(ctx, KDUMP_ATTR_ARCH_NAME, &arch) == KDUMP_OK &&
	    !strcmp(arch, KDUMP_ARCH_IA32))
		return VMPT_PAGING_PAE;
	if (kdump_get_string_attr(ctx, "linux.vmcoreinfo.lines.NUMBER(pgtable_l5_enabled)", &l5) !=
	    KDUMP_OK)
		return VMPT_PAGING_AUTO;
	return !strcmp(l5, "1") ? VMPT_PAGING_5 : VMPT_PAGING_4;
}

static int open_file(struct dump *d, const char *path, struct vmpt_diag *diag)
{
	u8 head[16] = { 0 };
	int flat;

	d->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (d->fd < 0)
		return kdump_fail(diag, VMPT_E_IO, 0, "cannot open: %s", strerror(errno));
	if (pread(d->fd, head, sizeof(head), 0) != sizeof(head) || memcmp(head, "makedump", 8))
		return 0;
	flat = d->fd;
	d->fd = kdump_unflatten(flat, diag);
	close(flat);
	return d->fd < 0 ? d->fd : 0;
}

int vmpt_kdump_open(const char *path, struct vmpt_image_source *source, struct vmpt_diag *diag)
{
	struct dump *d = calloc(1, sizeof(*d));
	int ret;

	if (!d)
		return kdump_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	ret = open_file(d, path, diag);
	if (!ret)
		d->ctx = kdump_new();
	if (!ret && !d->ctx)
		ret = kdump_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	if (!ret && kdump_open_fd(d->ctx, d->fd) != KDUMP_OK)
		ret = kdump_fail(diag, VMPT_E_FORMAT, 0, "libkdumpfile: %s", kdump_get_err(d->ctx));
	if (ret) {
		close_dump(d);
		return ret;
	}
	*source = (struct vmpt_image_source){ .physical = read_page,
					      .close = close_dump,
					      .opaque = d,
					      .paging = find_paging(d->ctx, d->fd) };
	return 0;
}
