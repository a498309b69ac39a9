// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Options shared by vmpt timeline and vmpt exits, and the files given with them.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/timeline/options.h"

/* "[VM:]FILE[@ADDR]": an existing file may itself be named so. */
static int take_symbols(struct cli *cli, void *to, const char *arg)
{
	struct timeline_given *given = cli->data;
	size_t n = ((struct cli_strings *)to)->count;
	const char *colon = strchr(arg, ':');

	if (n == CLI_STRINGS)
		return 0;
	if (colon && !access(arg, F_OK))
		colon = NULL;
	given->symbol_file[n] = colon ? colon + 1 : arg;
	given->symbol_vm[n] = colon ? strndup(arg, (size_t)(colon - arg)) : NULL;
	return 0;
}

static const struct cli_option code_options[] = {
	{ "symbols", 0, CLI_FILE, "[VM:]FILE",
	  "names of the guest's functions: an ELF file, followed by @ADDR if it was moved there, "
	  "or a text like /proc/kallsyms; VM: for this one only",
	  CLI_AT(struct timeline_given, symbol), .take = take_symbols },
	{ "kernel", 0, CLI_FILE, "FILE[@ADDR]",
	  "the guests' kernel, vmlinux, to guess exit reasons; ADDR: where its _text is, if it "
	  "was moved",
	  CLI_AT(struct timeline_given, code.kernel), .take = elf_take_kernel },
	{ "image", 0, CLI_FILE, "FILE[@ADDR]",
	  "a program or library of theirs; ADDR: where its first page is, if it is position "
	  "independent",
	  CLI_AT(struct timeline_given, code.image) },
	{ 0 },
};

const struct cli_group timeline_code_group = { .title = "Options for the guests' code",
					       .option = code_options };

/* --symbols for a VM that did not run */
static void tell_symbols(void *opaque, const struct timeline *t)
{
	const struct timeline_given *given = opaque;
	size_t i, k;

	for (i = 0; i < given->symbol.count; i++) {
		if (!given->symbol_vm[i])
			continue;
		for (k = 0; k < t->vms && strcmp(t->vm[k].name, given->symbol_vm[i]); k++)
			;
		if (k == t->vms)
			cli_warn(t->cli, "--symbols: no VM '%s' in the trace%s: %s is not used",
				 given->symbol_vm[i],
				 cli_filter(t->cli)->from || cli_filter(t->cli)->to
					 ? " at that time"
					 : "",
				 given->symbol_file[i]);
	}
}

int timeline_given_open(struct cli *cli, struct timeline_given *given)
{
	int ret = CLI_OK;
	size_t i;

	given->wants.tell = tell_symbols;
	given->wants.tell_opaque = given;

	for (i = 0; i < given->symbol.count && !ret; i++)
		ret = elf_symbols_add(cli, &given->symbols, given->symbol_file[i]);
	elf_symbols_sort(&given->symbols);
	return ret ? ret : timeline_code_open(cli, &given->code, &given->opened, &given->wants);
}

void timeline_given_close(struct timeline_given *given)
{
	size_t i;

	timeline_code_close(given->opened);
	elf_symbols_free(&given->symbols);
	for (i = 0; i < given->symbol.count; i++)
		free(given->symbol_vm[i]);
}

bool timeline_symbol(const struct timeline_given *given, const char *vm, u64 ip, char *buf,
		     size_t len)
{
	const char *name;
	u64 into;
	u32 i;

	for (i = 0; i < given->symbol.count; i++) {
		if (given->symbol_vm[i] && strcmp(given->symbol_vm[i], vm))
			continue;
		name = elf_symbols_find(&given->symbols, i, ip, &into);
		if (!name)
			continue;
		if (into)
			snprintf(buf, len, "%s+0x%llx", name, (unsigned long long)into);
		else
			snprintf(buf, len, "%s", name);
		return true;
	}
	return false;
}
