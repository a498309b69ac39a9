// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Of which file code is: the kernel and its modules and what processes have mapped, by the image of
 * a guest's memory; ELF files of --code and --symbols; else a part of an address space.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/coverage/coverage.h"
#include "util/array.h"
#include "util/search.h"

/* Where nothing is known: offsets in a module have 32 bits. */
#define PART (1ULL << 32)

static struct coverage_module *add_module(struct coverage *d, const char *name)
{
	struct coverage_module *m;

	if (vmpt_grow(&d->module, d->modules))
		return NULL;
	m = &d->module[d->modules];
	*m = (struct coverage_module){ .name = strdup(name), .space = COVERAGE_NONE };
	if (!m->name)
		return NULL;
	d->modules++;
	return m;
}

/* ---- files of the command line ---- */

static bool is_elf(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char magic[SELFMAG];
	bool is = fd >= 0 && pread(fd, magic, SELFMAG, 0) == SELFMAG &&
		  !memcmp(magic, ELFMAG, SELFMAG);

	if (fd >= 0)
		close(fd);
	return is;
}

static bool range_of(struct cli *cli, const struct code_given *given, u64 *base, u64 *end)
{
	struct elf_file f;
	GElf_Phdr segment;
	u64 shift = 0;
	size_t i;
	bool found = false;

	if (!elf_file_open_named(cli, given, &f) &&
	    (f.header.e_type == ET_EXEC || f.header.e_type == ET_DYN)) {
		for (i = 0; i < f.segments; i++) {
			if (!elf_file_loaded(&f, i, &segment))
				continue;
			if (!found)
				*base = segment.p_vaddr & ~(VMPT_PAGE - 1ULL);
			if (!found && given->has_address)
				shift = given->address - *base;
			*end = segment.p_vaddr + segment.p_memsz;
			found = true;
		}
	}
	elf_file_close(&f);
	*base += shift;
	*end += shift;
	return found && *end > *base && *end - *base < PART;
}

static int add_file(struct cli *cli, const struct code_given *given)
{
	struct coverage *d = cli->data;
	const char *name = given->path;
	const size_t folder = cli->folder ? strlen(cli->folder->path) : 0;
	struct coverage_module *m;
	u64 base = 0, end = 0;

	/* A file of the recording has the name that it has in others. */
	if (!given->option && folder && !strncmp(name, cli->folder->path, folder) &&
	    name[folder] == '/')
		name += folder + 1;
	if (!is_elf(given->path) || !range_of(cli, given, &base, &end))
		return CLI_OK;
	m = add_module(d, name);
	if (!m)
		return cli_no_memory(cli);
	m->vm = given->vm;
	m->base = base;
	m->end = end;
	d->files = d->modules;
	return CLI_OK;
}

int coverage_modules_open(struct cli *cli)
{
	struct coverage *d = cli->data;
	int code = CLI_OK;
	size_t i;

	for (i = 0; i < d->t.images && !code; i++)
		code = add_file(cli, d->t.image[i].given);
	/* A kernel without an address runs where KASLR put it: its image says where. */
	for (i = 0; i < d->t.names.files.count && !code; i++)
		if (d->t.names.files.given[i].kind == CODE_IMAGE)
			code = add_file(cli, &d->t.names.files.given[i]);
	return code;
}

/* ---- what is at an address ---- */

const struct names_space *coverage_names(struct coverage *d, u32 space)
{
	struct coverage_space *s = &d->space[space];

	if (!s->named)
		traced_names(&d->t, &s->id, &s->names);
	s->named = true;
	return &s->names;
}

/* The same file of one VM is one module, wherever its processes have it. */
static struct coverage_module *named(struct coverage *d, const char *name, const char *vm)
{
	struct coverage_module *m;
	size_t i;

	for (i = d->files; i < d->modules; i++) {
		m = &d->module[i];
		if (m->space == COVERAGE_NONE && !strcmp(m->name, name) &&
		    (m->vm == vm || (m->vm && vm && !strcmp(m->vm, vm))))
			return m;
	}
	m = add_module(d, name);
	if (m)
		m->vm = vm;
	return m;
}

static bool find_kernel(const struct names_space *n, u64 ip, const char **name, u64 *base, u64 *end)
{
	const struct vmpt_guest_kernel *k = &n->guest->kernel;
	const struct vmpt_guest_module *m;
	u32 i;

	if (ip >= k->start && ip < k->end) {
		*name = "vmlinux";
		*base = k->start;
		*end = k->end;
		return true;
	}
	for (i = 0; (m = vmpt_guest_module(n->guest->guest, i)) != NULL; i++) {
		if (ip - m->text >= m->text_size)
			continue;
		*name = m->name;
		*base = m->text;
		*end = m->text + m->text_size;
		return true;
	}
	return false;
}

/* A file's first page, or where that would be. */
static bool find_map(const struct names_space *n, u64 ip, const char **name, u64 *base, u64 *end)
{
	size_t i = vmpt_search(k, 0, n->maps, n->map[k].end <= ip), last = i;
	const struct vmpt_guest_map *m = &n->map[i];

	if (i == n->maps || m->start > ip || !m->file)
		return false;
	*name = m->file;
	while (i && n->map[i - 1].file && !strcmp(n->map[i - 1].file, m->file))
		i--;
	while (last + 1 < n->maps && n->map[last + 1].file &&
	       !strcmp(n->map[last + 1].file, m->file))
		last++;
	*base = n->map[i].start;
	*end = n->map[last].end;
	return true;
}

static struct coverage_module *find_file(struct coverage *d, u32 space, u64 ip)
{
	size_t i;

	for (i = 0; i < d->files; i++)
		if (ip - d->module[i].base < d->module[i].end - d->module[i].base &&
		    (!d->module[i].vm ||
		     (d->space[space].vm && !strcmp(d->module[i].vm, d->space[space].vm))))
			return &d->module[i];
	return NULL;
}

static struct coverage_module *part_of(struct coverage *d, u32 space, u64 ip)
{
	const struct coverage_space *s = &d->space[space];
	u64 base = ip & ~(PART - 1);
	struct coverage_module *m;
	char who[CLI_WHO], name[CLI_WHO + 64];
	size_t i;

	for (i = d->files; i < d->modules; i++)
		if (d->module[i].space == space && d->module[i].base == base)
			return &d->module[i];
	coverage_vm(s, who);
	if (s->id.no_cr3)
		snprintf(name, sizeof(name), "%s", who);
	else
		snprintf(name, sizeof(name), "%s cr3 %llx", who, (unsigned long long)s->id.cr3);
	m = add_module(d, name);
	if (!m)
		return NULL;
	m->space = space;
	m->base = base;
	m->end = base + PART - 1;
	return m;
}

const struct coverage_module *coverage_module_at(struct coverage *d, u32 space, u64 ip)
{
	const struct names_space *n = coverage_names(d, space);
	struct coverage_module *m = find_file(d, space, ip);
	const char *name;
	u64 base, end;

	if (m)
		return m;
	if (!n->guest || !(ip >> 63 ? find_kernel(n, ip, &name, &base, &end)
				    : find_map(n, ip, &name, &base, &end)))
		return part_of(d, space, ip);
	m = named(d, name, d->space[space].vm);
	/* Of other processes it may be elsewhere: offsets are the same. */
	if (m) {
		m->base = base;
		m->end = end;
	}
	return m;
}
