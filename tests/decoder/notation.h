/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Traces written as text, for tests. Words, separated by blanks:
 *
 *   psb psbend ovf pad pad*9 tracestop
 *   pip:CR3 pip:CR3:nr vmcs:PTR vmcs:none exec:64|32|16[if] tsx:0|1|2
 *   tip:IP pge:IP pgd:IP fup:IP, with - for a suppressed IP
 *   tnt:TNT cbr:N tsc:X tma:CTC:FC mtc:N cyc:N
 *   cfe:NAME[:ip] (VMENTRY VMEXIT VMEXIT_INTR INTR …), evd:NAME:X
 *   ptw:X[:ip] trig:BITS[:ip] bbp:TYPE:SZ bip:ID:X bep[:ip] mwait:X exstop[:ip] mnt:X raw:HEX
 *
 * Numbers are hexadecimal. IPs are compressed against Last IP as a processor
 * would; read back they are full. A word that starts with | is no packet but says
 * who owns what follows: |host |vm:PTR |vm |unknown |loss
 */
#ifndef VMPT_TESTS_NOTATION_H
#define VMPT_TESTS_NOTATION_H

#include "decoder/pt/tracker.h"

#define NOTATION_SLICES 64

struct notation_slice {
	u64 offset;
	struct vmpt_owner owner;
	bool loss;
};

struct notation {
	u8 bytes[16384];
	size_t size;
	struct notation_slice slices[NOTATION_SLICES]; /* as the | words say */
	size_t slice_count;
	struct vmpt_stream stream; /* over bytes */
};

/* The test fails on a word that is none. */
void notation_read(struct notation *n, const char *text);

/* The packets of @bytes in words, PADs left out; static memory. */
const char *notation_write(const u8 *bytes, size_t size);

/* The splitter's slices are those that the | words of @text say. */
void notation_check_slices(const char *text, const struct vmpt_options *options);

#endif
