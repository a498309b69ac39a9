/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Writes kdump-compressed dumps, as makedumpfile and QEMU do. */
#ifndef VMPT_TESTS_KDUMP_WRITER_H
#define VMPT_TESTS_KDUMP_WRITER_H

#include "tests/decoder/image/dump-writer.h"

/*
 * The pages of @ram, @size bytes, for which @has(opaque, physical) holds: those that become smaller
 * by zlib are compressed.
 */
void kdump_write(struct dump *d, const u8 *ram, u64 size, bool (*has)(const void *, u64),
		 const void *opaque);
/* The same file in pieces of up to @most bytes, in the random order that @seed gives. */
void kdump_flatten(struct dump *d, const struct dump *file, size_t most, u64 seed);

#endif
