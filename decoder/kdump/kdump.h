/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * kdump-compressed dumps by libkdumpfile, a module of its own that is loaded for such a file only:
 * the library decompresses by four others.
 */
#ifndef VMPT_KDUMP_H
#define VMPT_KDUMP_H

#include "decoder/vmpt-image.h"

/* The file of the module, and its function: */
#define VMPT_KDUMP_MODULE "vmpt-kdump.so"
#define VMPT_KDUMP_OPEN	  "vmpt_kdump_open"

/*
 * Open the dump at @path, of makedumpfile, diskdump or QEMU (dump-guest-memory -z, -l, -s), whole
 * or flattened: then it is put in order in an unlinked file of $TMPDIR, else /var/tmp. Returns 0,
 * and @source is for vmpt_image_make(), or a negative error with @diag filled.
 */
__attribute__((visibility("default"))) int
vmpt_kdump_open(const char *path, struct vmpt_image_source *source, struct vmpt_diag *diag);
typedef int vmpt_kdump_open_fn(const char *path, struct vmpt_image_source *source,
			       struct vmpt_diag *diag);

/* Whether @head, the first bytes of a file, are those of such a dump. */
static inline bool vmpt_kdump_is(const u8 *head, size_t size)
{
	return (size >= 8 && (!memcmp(head, "KDUMP   ", 8) || !memcmp(head, "DISKDUMP", 8))) ||
	       (size >= 16 && !memcmp(head, "makedumpfile\0\0\0\0", 16));
}

/* ---- inside (flat.c, notes.c) ---- */

/*
 * Put the flattened file @fd in order: a new unlinked file's descriptor, or a negative error with
 * @diag filled.
 */
int kdump_unflatten(int fd, struct vmpt_diag *diag);
/* By QEMU's notes in the dump @fd, which is not flattened; VMPT_PAGING_AUTO: it has none. */
u8 kdump_qemu_paging(int fd);
int kdump_fail(struct vmpt_diag *diag, enum vmpt_error err, u64 offset, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
