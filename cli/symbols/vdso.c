// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The vdso, a small ELF image that the kernel maps into each process. A guest's is read from its
 * memory; the host's is this machine's if it has the recorded build id. Both become files in
 * memory, which are read as any other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/symbols/file.h"
#include "cli/symbols/names.h"
#include "util/array.h"

#define VDSO_MAX  (64u << 10) /* Linux's has two pages */
#define VDSOS_MAX 64
#define VDSO_PAGE 4096u

/* One that was read. */
struct names_vdso {
	int fd;
	u8 *bytes;
	size_t size;
	struct elf_symbols symbols;
	u64 base; /* of its first segment */
};

void names_vdso_free(struct code_names *n)
{
	while (n->vdsos) {
		struct names_vdso *v = n->vdso[--n->vdsos];

		elf_symbols_free(&v->symbols);
		if (v->fd >= 0)
			close(v->fd);
		free(v->bytes);
		free(v);
	}
	free(n->vdso);
}

/* Its symbols; what is damaged has none. */
static void read_symbols(struct cli *cli, struct names_vdso *v)
{
	char path[32];
	const struct code_given given = { .path = path, .kind = CODE_IMAGE };
	struct elf_file f;
	GElf_Phdr segment;
	size_t i;
	Elf *elf;

	v->fd = memfd_create("vdso", MFD_CLOEXEC);
	if (v->fd < 0 || write(v->fd, v->bytes, v->size) != (ssize_t)v->size)
		return;
	/* What is none gives no message: it is a guest's. */
	elf_version(EV_CURRENT);
	elf = elf_begin(v->fd, ELF_C_READ, NULL);
	i = elf && gelf_getclass(elf) != ELFCLASSNONE;
	elf_end(elf);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", v->fd);
	if (!i || elf_file_open_named(cli, &given, &f))
		return;
	for (i = 0; i < f.segments; i++)
		if (elf_file_loaded(&f, i, &segment)) {
			v->base = segment.p_vaddr - segment.p_offset;
			break;
		}
	elf_file_close(&f);
	if (!elf_symbols_add(cli, &v->symbols, &given))
		elf_symbols_sort(&v->symbols);
}

/* That with these bytes; it is read once. NULL: none, or no memory. */
static struct names_vdso *take(struct cli *cli, const struct code_names *names, const u8 *bytes,
			       size_t size)
{
	/* Callers have it constant as what they know does not change. */
	struct code_names *n = (struct code_names *)(uintptr_t)names;
	struct names_vdso *v;
	size_t i;

	for (i = 0; i < n->vdsos; i++)
		if (n->vdso[i]->size == size && !memcmp(n->vdso[i]->bytes, bytes, size))
			return n->vdso[i];
	if (size < SELFMAG || memcmp(bytes, ELFMAG, SELFMAG) || n->vdsos == VDSOS_MAX ||
	    vmpt_grow(&n->vdso, n->vdsos))
		return NULL;
	v = calloc(1, sizeof(*v));
	if (v)
		v->bytes = malloc(size);
	if (!v || !v->bytes) {
		free(v);
		return NULL;
	}
	memcpy(v->bytes, bytes, size);
	v->size = size;
	n->vdso[n->vdsos++] = v;
	read_symbols(cli, v);
	return v;
}

static struct names_vdso *of_guest(struct cli *cli, const struct code_names *n,
				   const struct names_space *space, const struct vmpt_guest_map *m)
{
	const u64 size = m->end - m->start;
	u8 *bytes = size <= VDSO_MAX ? malloc(size) : NULL;
	struct names_vdso *v = NULL;
	u64 at;

	/* A page that is not there has nothing. */
	for (at = 0; bytes && at < size; at += VDSO_PAGE)
		if (!vmpt_guest_read(space->guest->guest, space->task->cr3, m->start + at,
				     bytes + at, VDSO_PAGE))
			memset(bytes + at, 0, VDSO_PAGE);
	if (bytes)
		v = take(cli, n, bytes, size);
	free(bytes);
	return v;
}

/* This machine's, as it is in our own memory. */
static struct names_vdso *of_host(struct cli *cli, const struct code_names *n,
				  const struct vmpt_guest_map *m)
{
	const u8 *own = (const u8 *)getauxval(AT_SYSINFO_EHDR);
	const u64 size = m->end - m->start;
	struct names_vdso *v = own && size <= 2 * VDSO_PAGE ? take(cli, n, own, size) : NULL;
	size_t has = 0;
	u8 id[64];
	Elf *elf;

	if (!v || !m->build_id)
		return NULL;
	elf = elf_begin(v->fd, ELF_C_READ, NULL);
	if (elf)
		has = names_build_id(elf, id);
	elf_end(elf);
	return has == m->build_id_size && !memcmp(id, m->build_id, has) ? v : NULL;
}

const char *names_vdso_find(struct cli *cli, const struct code_names *n,
			    const struct names_space *space, const struct vmpt_guest_map *map,
			    u64 ip, u64 *into)
{
	struct names_vdso *v = space->host		     ? of_host(cli, n, map)
			       : space->guest && space->task ? of_guest(cli, n, space, map)
							     : NULL;

	return v ? elf_symbols_find(&v->symbols, 0, ip - map->start + v->base, into) : NULL;
}
