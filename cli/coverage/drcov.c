// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt coverage --drcov: the format of DynamoRIO's drcov, version 2, that Lighthouse and other
 * plugins of disassemblers read: a table of modules as text, then the basic blocks, binary.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/coverage/coverage.h"
#include "util/array.h"

/* A block in the file, little-endian. */
#define ENTRY_BYTES 8
#define SIZE_MAX_16 0xffffu

struct entry {
	u32 offset;
	u16 size, module;
};

struct entries {
	struct entry *entry;
	size_t count;
	u64 left_out;
};

/* A block larger than an entry can say is several. */
static int add(struct entries *all, size_t module, u64 offset, u64 size)
{
	for (; size;
	     size -= all->entry[all->count - 1].size, offset += all->entry[all->count - 1].size) {
		if (module > SIZE_MAX_16 || offset > 0xffffffff) {
			all->left_out++;
			return 0;
		}
		if (vmpt_grow(&all->entry, all->count))
			return -VMPT_E_NOMEM;
		all->entry[all->count++] = (struct entry){
			.offset = (u32)offset,
			.size = (u16)(size < SIZE_MAX_16 ? size : SIZE_MAX_16),
			.module = (u16)module,
		};
	}
	return 0;
}

static int collect(struct coverage *d, struct entries *all)
{
	size_t i;
	int ret = 0;

	for (i = 0; i < d->block_count && !ret; i++) {
		const struct coverage_block *b = &d->block[i];
		const struct coverage_module *m = coverage_module_at(d, b->space, b->ip);

		if (!m)
			return -VMPT_E_NOMEM;
		ret = add(all, (size_t)(m - d->module), b->ip - m->base, b->size);
	}
	return ret;
}

static int by_place(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;

	if (a->module != b->module)
		return a->module < b->module ? -1 : 1;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return a->size < b->size ? -1 : a->size > b->size;
}

/* Kernel code is in all address spaces, and a file in many processes: each block once. */
static void make_unique(struct entries *all)
{
	size_t i, n = 0;

	if (all->count)
		qsort(all->entry, all->count, sizeof(*all->entry), by_place);
	for (i = 0; i < all->count; i++)
		if (!n || by_place(&all->entry[n - 1], &all->entry[i]))
			all->entry[n++] = all->entry[i];
	all->count = n;
}

/* Readers cut a line at ", ". */
static void put_path(const char *name, FILE *f)
{
	for (; *name; name++)
		fputc(iscntrl((unsigned char)*name) || *name == ',' ? '_' : *name, f);
	fputc('\n', f);
}

static void write_all(const struct coverage *d, const struct entries *all, FILE *f)
{
	size_t i;

	fprintf(f, "DRCOV VERSION: 2\nDRCOV FLAVOR: drcov\n");
	fprintf(f, "Module Table: version 2, count %zu\n", d->modules);
	fprintf(f, "Columns: id, base, end, entry, path\n");
	for (i = 0; i < d->modules; i++) {
		fprintf(f, "%3zu, 0x%016llx, 0x%016llx, 0x%016llx, ", i,
			(unsigned long long)d->module[i].base, (unsigned long long)d->module[i].end,
			0ULL);
		put_path(d->module[i].name, f);
	}
	fprintf(f, "BB Table: %zu bbs\n", all->count);
	for (i = 0; i < all->count; i++) {
		const struct entry *e = &all->entry[i];
		const u8 bytes[ENTRY_BYTES] = {
			(u8)e->offset,	       (u8)(e->offset >> 8), (u8)(e->offset >> 16),
			(u8)(e->offset >> 24), (u8)e->size,	     (u8)(e->size >> 8),
			(u8)e->module,	       (u8)(e->module >> 8),
		};

		fwrite(bytes, 1, sizeof(bytes), f);
	}
}

int coverage_drcov(struct cli *cli)
{
	struct coverage *d = cli->data;
	struct entries all = { 0 };
	struct cli_file file;
	int code = cli_file_create(cli, d->drcov, "DRCOV VERSION: 2", &file);

	if (code)
		return code;
	if (collect(d, &all)) {
		code = cli_no_memory(cli);
		cli_file_drop(&file);
	} else {
		make_unique(&all);
		write_all(d, &all, file.f);
		code = cli_file_commit(cli, &file);
	}
	if (all.left_out)
		cli_warn(cli,
			 "%s: blocks that the format cannot have are left out: %llu (more than "
			 "65,536 modules, or 4 GiB into one)",
			 d->drcov, (unsigned long long)all.left_out);
	free(all.entry);
	return code;
}
