// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Whose code on the host: its kernel and processes as a perf.data has them. Functions of the kernel
 * are those of the list that perf kept of it when it recorded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/sideinfo/sideinfo.h"
#include "cli/symbols/file.h"
#include "cli/symbols/names.h"
#include "util/array.h"
#include "util/search.h"

/* A file of another kernel gives wrong names: refused if it was given for the host. */
static int check_kernels(struct cli *cli, struct code_names *n)
{
	const struct vmpt_host_kernel *k = &n->host_kernel;
	char want[2 * 64 + 1], has[2 * 64 + 1];
	size_t i;

	for (i = 0; i < n->files.count; i++) {
		struct code_given *g = &n->files.given[i];

		if (g->kind != CODE_KERNEL || !code_is_for(g, "host") ||
		    !names_other_id(cli, g, k->build_id, k->build_id_size, has))
			continue;
		g->not_host = true;
		if (!g->vm)
			continue;
		names_hex(k->build_id, k->build_id_size, want);
		cli_error(cli,
			  "%s: is of another kernel than the host's: its build id is %s, not %s",
			  g->path, has, want);
		return CLI_FAILED;
	}
	return CLI_OK;
}

/* ---- the kernel's list ---- */

/* As a file of --symbols=host:, at the end of the list. */
static int add_list(struct cli *cli, struct code_names *n, char *path)
{
	struct code_given *g;
	int code;

	if (vmpt_grow(&n->files.given, n->files.count)) {
		free(path);
		return cli_no_memory(cli);
	}
	g = &n->files.given[n->files.count];
	*g = (struct code_given){ .vm = strdup("host"), .path = path, .kind = CODE_SYMBOLS };
	n->files.count++;
	if (!g->vm)
		return cli_no_memory(cli);
	code = elf_symbols_add(cli, &n->symbols, g);
	elf_symbols_sort(&n->symbols);
	return code;
}

/* The list in perf's cache of build ids @folder, or in one below: NULL, it has none. */
static char *in_cache(const struct vmpt_host_kernel *k, const char *folder, const char *below)
{
	char id[2 * 64 + 1], *path;
	int fd;

	names_hex(k->build_id, k->build_id_size, id);
	if (asprintf(&path, "%s%s/[kernel.kallsyms]/%s/kallsyms", folder, below, id) < 0)
		return NULL;
	fd = names_open_regular(path);
	if (fd >= 0) {
		close(fd);
		return path;
	}
	free(path);
	return NULL;
}

/* Beside a perf.data of perf record --kcore, which is a folder. */
static char *beside(const char *file)
{
	const char *slash = strrchr(file, '/');
	char *path;
	int fd;

	if (asprintf(&path, "%.*skcore_dir/kallsyms", slash ? (int)(slash + 1 - file) : 0, file) <
	    0)
		return NULL;
	fd = names_open_regular(path);
	if (fd >= 0) {
		close(fd);
		return path;
	}
	free(path);
	return NULL;
}

static int add_kernel(struct cli *cli, struct code_names *n)
{
	const struct vmpt_host_kernel *k = &n->host_kernel;
	const char *home = getenv("HOME");
	char *path = cli->files ? beside(cli->file[0]) : NULL;
	size_t i;

	for (i = 0; k->build_id && !path && i < n->given->count; i++)
		path = in_cache(k, n->given->s[i], "");
	if (k->build_id && !path && home)
		path = in_cache(k, home, "/.debug");
	return path ? add_list(cli, n, path) : CLI_OK;
}

/* ---- opening ---- */

/* A compiler maps the jitdump that it writes, so that perf has its name. */
static int add_jits(struct cli *cli, struct code_names *n)
{
	const struct vmpt_host_process *p;
	int code = CLI_OK;
	u32 i;

	for (i = 0; !code && (p = vmpt_host_process(n->host, i)) != NULL; i++) {
		const struct vmpt_guest_map *map;
		size_t k, count;

		if (vmpt_host_maps(n->host, p, &map, &count))
			return cli_no_memory(cli);
		for (k = 0; k < count && !code; k++)
			if (names_is_path(map[k].file))
				code = names_jit_add(cli, n, map[k].file, SIZE_MAX);
	}
	return code;
}

static int learn(struct cli *cli, struct code_names *n, const struct vmpt_clocks *clocks)
{
	size_t i;
	int ret = 0;

	for (i = 0; i < cli->streams && !ret; i++) {
		struct vmpt_options options = cli_stream_options(cli, i);

		options.progress = NULL;
		ret = vmpt_host_stream(n->host, clocks, i, cli->stream[i]->cpu, cli->stream[i]->tid,
				       &options);
	}
	return ret == -VMPT_E_NOMEM ? cli_no_memory(cli) : CLI_OK;
}

int code_names_add_host(struct cli *cli, struct code_names *n, const struct vmpt_clocks *clocks)
{
	int code;

	if (!cli->trace || cli_is_rtit(cli))
		return CLI_OK;
	if (vmpt_trace_info(cli->trace)->format != VMPT_TRACE_PERF)
		return CLI_OK;
	if (vmpt_host_open(&n->host, cli->trace))
		return cli_no_memory(cli);
	vmpt_host_kernel(n->host, &n->host_kernel);
	code = add_jits(cli, n);
	if (!code)
		code = check_kernels(cli, n);
	if (!code)
		code = add_kernel(cli, n);
	if (!code && clocks && vmpt_clocks_base(clocks) != VMPT_BASE_NONE)
		code = learn(cli, n, clocks);
	return code;
}

/* ---- spaces ---- */

static void set_process(const struct code_names *n, struct names_space *space,
			const struct vmpt_host_process *p)
{
	space->process = p;
	space->task = p ? &p->task : NULL;
	if (!p || vmpt_host_maps(n->host, p, &space->map, &space->maps))
		space->maps = 0;
}

void names_host_space(const struct code_names *n, bool has_cr3, u64 cr3, struct names_space *space)
{
	space->host = true;
	space->kernel_text = n->host_kernel.text;
	set_process(n, space, has_cr3 ? vmpt_host_cr3(n->host, cr3) : NULL);
	space->sure = space->process != NULL;
}

bool code_names_at(const struct code_names *n, struct names_space *space,
		   const struct vmpt_stream *stream, u64 tsc)
{
	const struct vmpt_host_process *p;
	const struct vmpt_space in = space->in;

	/* Its page tables may be another process's by now. */
	if (!space->host && space->known && tsc != VMPT_TIME_NONE &&
	    (tsc < space->from || tsc >= space->to)) {
		code_names_space_at(n, space->vm, !in.no_cr3, in.cr3, tsc, space);
		code_names_in(space, &in);
		space->tsc = tsc;
		return true;
	}
	space->tsc = tsc;
	if (!space->host || space->sure || (tsc == VMPT_TIME_NONE && stream->cpu >= 0))
		return false;
	p = vmpt_host_running(n->host, stream->cpu, stream->tid, tsc);
	if (p == space->process)
		return false;
	set_process(n, space, p);
	return true;
}

/* ---- names ---- */

bool names_host_find(const struct code_names *n, const struct names_space *space, u64 ip,
		     struct names_found *found)
{
	const struct vmpt_guest_map *map;
	struct vmpt_guest_symbol s;
	size_t i, count;

	if (vmpt_host_symbol_at(n->host, ip, space->tsc, &s)) {
		cli_safe_name(s.name, found->safe);
		found->name = found->safe;
		found->module = s.module;
		found->offset = ip - s.address;
		return true;
	}
	if (vmpt_host_maps(n->host, NULL, &map, &count))
		return false;
	i = vmpt_search(k, 0, count, map[k].end <= ip);
	if (i == count || map[i].start > ip)
		return false;
	found->module = map[i].file;
	found->offset = ip - map[i].start;
	return true;
}
