// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Options shared by vmpt timeline and vmpt exits, and the files given with them.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/timeline/code.h"
#include "cli/timeline/options.h"

static const struct cli_option part_options[] = {
	{ "from", 0, CLI_STRING, "TIME", "start at this time, in seconds from the start",
	  CLI_AT(struct timeline_given, wants.from) },
	{ "to", 0, CLI_STRING, "TIME", "stop at this time",
	  CLI_AT(struct timeline_given, wants.to) },
	{ "owner", 0, CLI_STRING, "NAME",
	  "only this VM or vCPU, by name or VMCS; or host, vm, unknown",
	  .words = "host, vm, unknown", CLI_AT(struct timeline_given, wants.vm) },
	{ "tsc-khz", 0, CLI_NUMBER, "N", "the TSC's frequency; default: the recording's", .min = 1,
	  .max = 999999999, CLI_AT(struct timeline_given, wants.tsc_khz) },
	{ 0 },
};

static const struct cli_option code_options[] = {
	CODE_OPTIONS(struct timeline_given, code, ""),
	{ "symbols", 0, CLI_FILE, "[VM:]FILE[@ADDR]", "older name of --code, for names alone",
	  CLI_AT(struct timeline_given, code.symbols) },
	{ 0 },
};

const struct cli_group timeline_part_group = { .title = "Options for a part of the trace",
					       .option = part_options };
const struct cli_group timeline_code_group = { .title = "Options for the guests' code",
					       .option = code_options };

/* Code of a VM that did not run; a recording may have more of them. */
static void tell_code(void *opaque, const struct timeline *t)
{
	const struct timeline_given *given = opaque;
	size_t i, k;

	for (i = 0; i < given->files.count; i++) {
		const struct code_given *g = &given->files.given[i];

		if (!g->vm || !g->option)
			continue;
		for (k = 0; k < t->vms && strcmp(t->vm[k].name, g->vm); k++)
			;
		if (k == t->vms)
			cli_warn(t->cli, "%s: no VM '%s' in the trace%s: %s is not used", g->option,
				 g->vm, given->wants.from || given->wants.to ? " at that time" : "",
				 g->path);
	}
}

int timeline_given_open(struct cli *cli, struct timeline_given *given)
{
	int ret = code_files_open(cli, &given->code, &given->files);
	size_t i;

	given->wants.tell = tell_code;
	given->wants.tell_opaque = given;
	for (i = 0; i < given->files.count && !ret; i++)
		ret = elf_symbols_add(cli, &given->symbols, &given->files.given[i]);
	elf_symbols_sort(&given->symbols);
	return ret ? ret : timeline_code_open(cli, &given->files, &given->opened, &given->wants);
}

void timeline_given_close(struct timeline_given *given)
{
	timeline_code_close(given->opened);
	elf_symbols_free(&given->symbols);
	code_files_close(&given->files);
}

bool timeline_symbol(const struct timeline_given *given, const char *vm, u64 ip, char *buf,
		     size_t len)
{
	const char *name;
	u64 into;
	u32 i;

	for (i = 0; i < given->files.count; i++) {
		if (!code_is_for(&given->files.given[i], vm))
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
