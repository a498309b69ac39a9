// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Options that vmpt timeline and vmpt exits share, and the files that they name.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/timeline-options.h"

/* "[VM:]FILE[@ADDR]": a file that is there may be called so itself. */
static int set_symbols(struct cli *cli, const char *arg)
{
	struct timeline_told *told = cli->own;
	const char *colon = strchr(arg, ':');

	if (told->symbol_files == TIMELINE_SYMBOL_FILES) {
		cli_usage(cli, "--symbols: more than %d", TIMELINE_SYMBOL_FILES);
		return -1;
	}
	if (colon && !access(arg, F_OK))
		colon = NULL;
	told->symbol_file[told->symbol_files] = strdup(colon ? colon + 1 : arg);
	if (colon)
		told->symbol_vm[told->symbol_files] = strndup(arg, (size_t)(colon - arg));
	told->symbol_files++;
	return 0;
}

static int set_from(struct cli *cli, const char *arg)
{
	struct timeline_told *told = cli->own;

	told->wants.from = arg;
	return 0;
}

static int set_to(struct cli *cli, const char *arg)
{
	struct timeline_told *told = cli->own;

	told->wants.to = arg;
	return 0;
}

static int set_owner(struct cli *cli, const char *arg)
{
	struct timeline_told *told = cli->own;

	told->wants.vm = arg;
	return 0;
}

static int set_khz(struct cli *cli, const char *arg)
{
	struct timeline_told *told = cli->own;

	return timeline_parse_khz(cli, arg, &told->wants);
}

static int set_kernel(struct cli *cli, const char *arg)
{
	struct timeline_told *told = cli->own;

	return timeline_code_set_kernel(cli, &told->code, arg);
}

static int set_image(struct cli *cli, const char *arg)
{
	struct timeline_told *told = cli->own;

	return timeline_code_set_image(cli, &told->code, arg);
}

const struct cli_option timeline_options[] = {
	{ "symbols", 0, "[VM:]FILE",
	  "names of the guest's functions: an ELF file, with\n"
	  "@ADDR behind it where it was moved to, or a text like\n"
	  "/proc/kallsyms; VM: of this one only; repeatable",
	  set_symbols },
	{ "from", 0, "TIME", "from this time on, in seconds from the start", set_from },
	{ "to", 0, "TIME", "up to this time", set_to },
	{ "owner", 0, "NAME",
	  "only this VM or vCPU, by name or VMCS; or host, vm,\n"
	  "unknown",
	  set_owner },
	{ "tsc-khz", 0, "N", "the TSC's frequency; else a perf.data tells it", set_khz },
	{ "kernel", 0, "FILE[@ADDR]",
	  "the guests' kernel, vmlinux, for guesses why they\n"
	  "exit; ADDR: where its _text is, if it was moved",
	  set_kernel },
	{ "image", 0, "FILE[@ADDR]",
	  "a program or library of theirs; ADDR: where its first\n"
	  "page is, if it is position independent; repeatable",
	  set_image },
	{ 0 },
};

/* --symbols of a VM that did not run */
static void tell_symbols(void *opaque, const struct timeline *t)
{
	const struct timeline_told *told = opaque;
	size_t i, k;

	for (i = 0; i < told->symbol_files; i++) {
		if (!told->symbol_vm[i])
			continue;
		for (k = 0; k < t->vms && strcmp(t->vm[k].name, told->symbol_vm[i]); k++)
			;
		if (k == t->vms)
			cli_warn(t->cli, "--symbols: no VM '%s' in the trace%s: %s is not used",
				 told->symbol_vm[i],
				 told->wants.from || told->wants.to ? " at that time" : "",
				 told->symbol_file[i]);
	}
}

int timeline_told_open(struct cli *cli, struct timeline_told *told)
{
	int ret = CLI_OK;
	size_t i;

	told->wants.tell = tell_symbols;
	told->wants.tell_opaque = told;

	for (i = 0; i < told->symbol_files && !ret; i++) {
		if (!told->symbol_file[i])
			ret = cli_no_memory(cli);
		else
			ret = elf_symbols_add(cli, &told->symbols, told->symbol_file[i]);
	}
	elf_symbols_sort(&told->symbols);
	return ret ? ret : timeline_code_open(cli, &told->code, &told->opened, &told->wants);
}

void timeline_told_close(struct timeline_told *told)
{
	size_t i;

	timeline_code_close(told->opened);
	elf_symbols_free(&told->symbols);
	for (i = 0; i < told->symbol_files; i++) {
		free(told->symbol_file[i]);
		free((char *)told->symbol_vm[i]);
	}
}

bool timeline_symbol(const struct timeline_told *told, const char *vm, u64 ip, char *buf,
		     size_t len)
{
	const char *name;
	u64 into;
	u32 i;

	for (i = 0; i < told->symbol_files; i++) {
		if (told->symbol_vm[i] && strcmp(told->symbol_vm[i], vm))
			continue;
		name = elf_symbols_find(&told->symbols, i, ip, &into);
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
