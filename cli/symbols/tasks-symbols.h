/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The functions of a guest's kernel, as the QEMU plugin wrote them: see tasks.h. */
#ifndef VMPT_CLI_SYMBOLS_TASKS_SYMBOLS_H
#define VMPT_CLI_SYMBOLS_TASKS_SYMBOLS_H

#include "cli/base/base.h"
#include "decoder/vmpt-guest.h"

struct tasks_symbols {
	char *text;			  /* the file, names end with a 0 */
	struct vmpt_guest_symbol *symbol; /* by address; .name NULL: an end */
	size_t count;
};

/* What is no such line is left out. 0, or an exit code after a message; free it in either case. */
int tasks_symbols_read(struct cli *cli, struct tasks_symbols *s, const char *path, FILE *f);
void tasks_symbols_free(struct tasks_symbols *s);
bool tasks_symbols_find(const struct tasks_symbols *s, u64 ip, struct vmpt_guest_symbol *symbol);

#endif
