/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Two packet decoders side by side: ours (a source of decoder/pt/source.h) and libipt's, 2.0, 2.1
 * or 2.2. Every packet must be the same in offset, kind, size and payload, every error must be one
 * for both; packets that only one of the two knows are excepted by name.
 */
#ifndef VMPT_TESTS_DECODER_LIBIPT_WALK_H
#define VMPT_TESTS_DECODER_LIBIPT_WALK_H

#include "decoder/vmpt-decode.h"

/* Counts of a walk; summed over walks. */
struct libipt_walk {
	u64 packets;
	u64 kind[VMPT_PT_KINDS];
	u64 losses[VMPT_E_NR]; /* by cause */
	u64 excepted;
};

/* Walk over @data; the test fails at the first difference, naming @what. */
void libipt_walk(struct libipt_walk *sum, const u8 *data, u64 size,
		 const struct vmpt_options *options, const char *what);

#endif
