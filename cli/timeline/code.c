// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The guests' code, from the ELF files of --kernel and --image. */
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
};

static u16 guess(void *opaque, const struct vmpt_exit_place *place)
{
	const struct timeline_code *code = opaque;
	u8 bytes[INSN_MAX];
	size_t n = elf_code_read(&code->code, place->ip, bytes, sizeof(bytes));

	return timeline_guess(place, bytes, n);
}

int timeline_code_open(struct cli *cli, const struct timeline_code_wants *wants,
		       struct timeline_code **code, struct timeline_wants *to)
{
	struct timeline_code *c;
	size_t i;
	int ret = CLI_OK;

	if (!wants->kernel && !wants->image.count)
		return CLI_OK;
	c = calloc(1, sizeof(*c));
	if (!c)
		return cli_no_memory(cli);
	*code = c;
	if (wants->kernel)
		ret = elf_code_kernel(cli, &c->code, wants->kernel);
	for (i = 0; i < wants->image.count && !ret; i++)
		ret = elf_code_image(cli, &c->code, wants->image.s[i]);
	to->guess = guess;
	to->guess_opaque = c;
	return ret;
}

void timeline_code_close(struct timeline_code *code)
{
	if (!code)
		return;
	elf_code_free(&code->code);
	free(code);
}
