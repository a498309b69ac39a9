// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The guests' code, from the files of --code and of the recording. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/symbols/symbols.h"
#include "cli/timeline/code.h"

#define INSN_MAX 15

struct timeline_code {
	struct elf_code code;
	const struct cli_clocks *clocks; /* who a VMCS is */
};

static u16 guess(void *opaque, const struct vmpt_exit_place *place, bool *no_halt)
{
	const struct timeline_code *code = opaque;
	u8 bytes[INSN_MAX];
	const char *vm = NULL;
	s64 vcpu;
	size_t n;

	/* By its last name: a place has no time. */
	if (code->code.by_vm && code->clocks && place->owner.kind == VMPT_OWNER_VM &&
	    !cli_clocks_who(code->clocks, place->owner.vmcs, VMPT_TIME_NONE - 1, &vm, &vcpu))
		vm = NULL;
	n = elf_code_read(&code->code, vm, place->ip, bytes, sizeof(bytes));
	return timeline_guess(place, bytes, n, no_halt);
}

static void take_clocks(void *opaque, const struct cli_clocks *clocks)
{
	struct timeline_code *code = opaque;

	code->clocks = clocks;
}

int timeline_code_open(struct cli *cli, const struct code_files *files, struct timeline_code **code,
		       struct timeline_wants *to)
{
	struct timeline_code *c;
	size_t i;
	int ret = CLI_OK;

	c = calloc(1, sizeof(*c));
	if (!c)
		return cli_no_memory(cli);
	*code = c;
	for (i = 0; i < files->count && !ret; i++)
		ret = elf_code_add(cli, &c->code, &files->given[i]);
	if (ret || !c->code.count)
		return ret;
	to->guess = guess;
	to->guess_opaque = c;
	to->guess_clocks = take_clocks;
	return ret;
}

void timeline_code_close(struct timeline_code *code)
{
	if (!code)
		return;
	elf_code_free(&code->code);
	free(code);
}
