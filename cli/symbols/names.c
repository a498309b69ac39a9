// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Functions and processes by address; see names.h. */
#include <stdlib.h>
#include <string.h>

#include "cli/symbols/file.h"
#include "cli/symbols/names.h"
#include "util/array.h"
#include "util/search.h"

/* ---- files that were given ---- */

int code_names_open(struct cli *cli, const struct cli_strings *list, struct code_names *n)
{
	int code = code_symbols_open(cli, list, &n->files);
	struct stat st;
	char *images;
	size_t i;

	n->given = list;
	if (!code && n->ask)
		code = names_debuginfod_open(cli, n);
	/* Programs are found by other than folders, too. */
	if (!code)
		code = names_programs_here(cli, n);
	for (i = 0; i < n->files.count && !code; i++) {
		const struct code_given *g = &n->files.given[i];

		code = elf_symbols_add(cli, &n->symbols, g);
		if (!code && g->kind == CODE_JIT)
			code = names_jit_add(cli, n, g->path, i);
	}
	for (i = 0; i < list->count && !code; i++)
		if (!stat(list->s[i], &st) && S_ISDIR(st.st_mode))
			code = names_programs_add(cli, n, list->s[i]);
	/* A recording has its programs beside their code. */
	if (!code && cli->folder &&
	    asprintf(&images, "%s/" CLI_FOLDER_IMAGES, cli->folder->path) > 0) {
		if (!stat(images, &st) && S_ISDIR(st.st_mode))
			code = names_programs_add(cli, n, images);
		free(images);
	}
	if (!code) {
		elf_symbols_sort(&n->symbols);
		names_programs_sort(n);
		code = code_tasks_open(cli, &n->tasks);
	}
	return code;
}

void code_names_close(struct code_names *n)
{
	while (n->guests)
		vmpt_guest_close(n->guest[--n->guests].guest);
	vmpt_host_close(n->host);
	free(n->guest);
	elf_symbols_free(&n->symbols);
	names_lines_close(n);
	names_match_free(n);
	names_programs_free(n);
	names_jit_free(n);
	names_demangler_free(n);
	names_debuginfod_close(n);
	names_vdso_free(n);
	code_tasks_close(n->tasks);
	code_files_close(&n->files);
	memset(n, 0, sizeof(*n));
}

bool code_names_any(const struct code_names *n)
{
	return n->guests || n->symbols.count || n->jits || n->tasks || n->match ||
	       n->host_kernel.processes || n->host_kernel.symbols;
}

/* ---- guests ---- */

void names_hex(const u8 *bytes, size_t size, char text[2 * 64 + 1])
{
	size_t i;

	*text = '\0';
	for (i = 0; i < size && i < 64; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

bool names_other_id(struct cli *cli, const struct code_given *given, const u8 *id, size_t size,
		    char has[2 * 64 + 1])
{
	struct elf_file f;
	u8 own[64];
	size_t n = 0;

	if (!elf_file_open_named(cli, given, &f))
		n = names_build_id(f.elf, own);
	elf_file_close(&f);
	names_hex(own, n, has);
	return n && size && (n != size || memcmp(own, id, n));
}

/* A kernel's file for this VM must be that of its image. Exit code. */
static int check_kernel(struct cli *cli, const struct names_guest *g,
			const struct code_given *given)
{
	const struct vmpt_guest_kernel *k = &g->kernel;
	char want[2 * 64 + 1], has[2 * 64 + 1];

	if (!names_other_id(cli, given, k->build_id, k->build_id_size, has))
		return CLI_OK;
	names_hex(k->build_id, k->build_id_size, want);
	cli_error(cli, "%s: is of another kernel than the one in %s: its build id is %s, not %s",
		  given->path, g->given->path, has, want);
	return CLI_FAILED;
}

/* Which of the files is for the same VM as the image @g. */
static bool same_vm(const struct names_guest *g, const struct code_given *given)
{
	return !given->vm || !g->given->vm || !strcmp(given->vm, g->given->vm);
}

static int check_kernels(struct cli *cli, const struct code_names *n, const struct names_guest *g)
{
	int code = CLI_OK;
	size_t i;

	for (i = 0; i < n->files.count && !code; i++)
		if (n->files.given[i].kind == CODE_KERNEL && same_vm(g, &n->files.given[i]))
			code = check_kernel(cli, g, &n->files.given[i]);
	return code;
}

int code_names_add_image(struct cli *cli, struct code_names *n, const struct code_given *given,
			 struct vmpt_image *image)
{
	struct names_guest *g;

	if (vmpt_grow(&n->guest, n->guests))
		return cli_no_memory(cli);
	g = &n->guest[n->guests];
	*g = (struct names_guest){ .given = given };
	if (vmpt_guest_open(&g->guest, image, NULL))
		return CLI_OK;
	n->guests++;
	vmpt_guest_kernel(g->guest, &g->kernel);
	return check_kernels(cli, n, g);
}

/* Of the recording at the time of @space, else of the image. */
static void find_process(struct names_space *space)
{
	struct code_tasks_found found = { .to = ~0ULL };
	bool cut;

	space->map = NULL;
	space->maps = 0;
	space->task = NULL;
	if (space->has_cr3 &&
	    code_tasks_find(space->tasks, space->vm, space->cr3, space->tsc, &found)) {
		space->task = found.task;
		space->map = found.map;
		space->maps = found.maps;
	}
	space->from = found.from;
	space->to = found.to;
	if (!space->guest || !space->has_cr3 || space->task)
		return;
	space->task = vmpt_guest_task_at(space->guest->guest, space->cr3);
	if (space->task &&
	    vmpt_guest_maps(space->guest->guest, space->task, &space->map, &space->maps, &cut))
		space->maps = 0;
}

void code_names_space(const struct code_names *n, const char *vm, bool has_cr3, u64 cr3,
		      struct names_space *space)
{
	size_t i;

	*space = (struct names_space){ .vm = vm, .tsc = VMPT_TIME_NONE };
	if (n->host && vm && !strcmp(vm, "host")) {
		names_host_space(n, has_cr3, cr3, space);
		return;
	}
	for (i = 0; i < n->guests && !space->guest; i++)
		if (code_is_for(n->guest[i].given, vm))
			space->guest = &n->guest[i];
	space->tasks = n->tasks;
	space->has_cr3 = has_cr3;
	space->cr3 = cr3;
	find_process(space);
}

bool names_tasks_at(struct names_space *space, u64 tsc)
{
	const struct vmpt_guest_task *was = space->task;

	space->tsc = tsc;
	if (!space->tasks || (tsc >= space->from && tsc < space->to))
		return false;
	find_process(space);
	return space->task != was;
}

/* ---- names ---- */

u64 names_moved(const struct names_space *space, const struct code_given *given, u64 ip)
{
	if (given->kind != CODE_KERNEL || given->has_address)
		return ip;
	if (space->guest)
		return ip - space->guest->kernel.offset;
	return space->kernel_text && given->text ? ip - (space->kernel_text - given->text) : ip;
}

static bool find_given(const struct code_names *n, const struct names_space *space, u64 ip,
		       struct names_found *found)
{
	u32 i;

	for (i = 0; i < n->symbols.files; i++) {
		const struct code_given *g = &n->files.given[i];

		if (!code_is_for(g, space->vm) || (space->host && g->not_host))
			continue;
		found->name =
			elf_symbols_find(&n->symbols, i, names_moved(space, g, ip), &found->offset);
		if (found->name)
			return true;
	}
	return false;
}

static bool find_kernel(const struct names_space *space, u64 ip, struct names_found *found)
{
	struct vmpt_guest_symbol s;

	if (space->guest ? !vmpt_guest_symbol_at(space->guest->guest, ip, &s)
			 : !code_tasks_symbol(space->tasks, space->vm, ip, &s))
		return false;
	cli_safe_name(s.name, found->safe);
	found->name = found->safe;
	found->module = s.module;
	found->offset = ip - s.address;
	return true;
}

bool names_is_path(const char *path)
{
	return path[0] == '/' && path[1] != '/';
}

bool names_file_at(const struct code_names *n, const struct names_space *space, u64 ip,
		   struct names_file *file)
{
	size_t i = vmpt_search(k, 0, space->maps, space->map[k].end <= ip);
	const struct vmpt_guest_map *m = &space->map[i];

	(void)n;
	if (i == space->maps || m->start > ip || !m->file)
		return false;
	*file = (struct names_file){
		m->file, m->build_id, m->build_id_size, ip - m->start + m->offset, m, space->host
	};
	return true;
}

static bool find_program(struct cli *cli, const struct code_names *n,
			 const struct names_space *space, u64 ip, struct names_found *found)
{
	struct names_file f = { 0 };
	const bool file = names_file_at(n, space, ip, &f);

	/* Code that was made at run time is in no file, or in one that is none: "//anon". */
	if ((!file || !names_is_path(f.path)) && names_jit_find(n, space, ip, found))
		return true;
	if (!file)
		return false;
	found->module = f.path;
	found->offset = f.offset;
	found->name = names_programs_find(cli, n, &f, &found->offset);
	if (!found->name && !strcmp(f.path, "[vdso]"))
		found->name = names_vdso_find(cli, n, space, f.map, ip, &found->offset);
	return true;
}

/* By the code itself, if no build id says whose it is. */
static bool find_code(struct cli *cli, const struct code_names *n, const struct names_space *space,
		      u64 ip, struct names_found *found)
{
	struct names_file f = { 0 };
	u64 address;
	size_t i;

	if ((!(ip >> 63) && names_file_at(n, space, ip, &f) && f.build_id) ||
	    !names_match_find(cli, n, space, ip, &i, &address))
		return false;
	found->module = f.path && names_is_path(f.path) ? f.path : names_program_path(n, i);
	found->offset = address;
	found->name = names_program_symbol(cli, n, i, address, &found->offset);
	return true;
}

static bool find(struct cli *cli, const struct code_names *n, const struct names_space *space,
		 u64 ip, struct names_found *found)
{
	struct names_found by_code;

	if (find_given(n, space, ip, found))
		return true;
	if (!(ip >> 63)) {
		const bool file = find_program(cli, n, space, ip, found);

		if (found->name || !find_code(cli, n, space, ip, &by_code))
			return file;
		found->name = by_code.name;
		found->module = by_code.module;
		found->offset = by_code.offset;
		return true;
	}
	if (space->host)
		return names_host_find(n, space, ip, found);
	if (space->guest)
		return find_kernel(space, ip, found);
	if (space->tasks && find_kernel(space, ip, found))
		return true;
	return find_code(cli, n, space, ip, found);
}

bool code_names_find(struct cli *cli, const struct code_names *n, const struct names_space *space,
		     u64 ip, struct names_found *found)
{
	found->name = found->module = NULL;
	found->offset = 0;
	if (!find(cli, n, space, ip, found))
		return false;
	if (found->name)
		found->name = names_demangle(cli, n, found->name);
	return true;
}
