/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The functions of a guest's kernel, from a System.map: where they begin, and which of them are
 * thunks or switch tasks. Nothing of the decoder is used.
 */
#ifndef VMPT_TESTS_CALLS_SYMBOLS_H
#define VMPT_TESTS_CALLS_SYMBOLS_H

#include "decoder/vmpt-calls.h"

struct symbol {
	u64 at;
	u64 start; /* of its function: another address than .at for a .cold part */
	char *name;
	u8 role; /* enum vmpt_call_role */
};

struct symbols {
	struct symbol *list; /* sorted */
	size_t count;
};

/* false: printed why. */
bool symbols_open(struct symbols *s, const char *path);
void symbols_close(struct symbols *s);
/* The function that has @ip; NULL: not known. */
const struct symbol *symbols_find(const struct symbols *s, u64 ip);
/* For messages: "name", or the address in a static buffer. */
const char *symbols_name(const struct symbols *s, u64 ip);

#endif
