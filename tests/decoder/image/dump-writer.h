/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Writes ELF files around a guest's memory, as QEMU's dump-guest-memory and Linux's kcore do. */
#ifndef VMPT_TESTS_DUMP_WRITER_H
#define VMPT_TESTS_DUMP_WRITER_H

#include "arch/types.h"

struct dump_segment {
	u64 linear, physical;
	const u8 *bytes;
	u64 size;
};

/* A file that grows in memory. free() data. */
struct dump {
	u8 *data;
	size_t size, room;
};

/* @type and @machine: ET_* and EM_*; 32-bit files if @narrow; @notes may be NULL. */
void dump_elf(struct dump *d, u16 type, u16 machine, bool narrow, const struct dump_segment *s,
	      size_t n, const struct dump *notes);
/* Append a note. */
void dump_note(struct dump *notes, const char *name, u32 type, const void *bytes, size_t n);
/* QEMU's note of a vCPU, as target/i386/arch_dump.c lays out struct QEMUX86CPUState. */
void dump_qemu_note(struct dump *notes, u64 cr0, u64 cr3, u64 cr4);

#endif
