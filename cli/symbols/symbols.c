// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Names of functions: from ELF files, and from texts like /proc/kallsyms and System.map. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/symbols/file.h"
#include "util/array.h"
#include "util/search.h"

#define SYMBOLS_MAX 4000000
#define LINE_BYTES  4096 /* the rest of a longer line is part of a name that is cut anyway */

struct adder {
	struct cli *cli;
	struct elf_symbols *symbols;
	u64 shift;
	int code;
};

static int add(struct adder *a, const char *name, u64 address, u64 size)
{
	struct elf_symbols *s = a->symbols;
	char safe[CLI_WHO];

	if (s->count == SYMBOLS_MAX) {
		cli_error(a->cli, "--symbols: more than %d functions", SYMBOLS_MAX);
		return a->code = CLI_FAILED;
	}
	if (vmpt_grow(&s->symbol, s->count))
		return a->code = cli_no_memory(a->cli);
	cli_safe_name(name, safe);
	s->symbol[s->count] = (struct elf_symbol){
		.address = address,
		.size = size,
		.name = strdup(safe),
		.file = s->files,
	};
	if (!s->symbol[s->count].name)
		return a->code = cli_no_memory(a->cli);
	s->count++;
	return 0;
}

static int take_symbol(void *opaque, const char *name, const GElf_Sym *symbol)
{
	struct adder *a = opaque;
	unsigned int type = GELF_ST_TYPE(symbol->st_info);

	/* Assembly's functions often have no type. */
	if (type != STT_FUNC && (type != STT_NOTYPE || symbol->st_shndx >= SHN_LORESERVE))
		return 0;
	return add(a, name, symbol->st_value + a->shift, symbol->st_size);
}

static int add_elf(struct adder *a, struct elf_file *f)
{
	size_t before = a->symbols->count;
	int ret = elf_file_open_named(a->cli, f);

	if (!ret && f->has_address)
		ret = f->header.e_type == ET_DYN ? elf_file_image_shift(a->cli, f, &a->shift)
						 : elf_file_kernel_shift(a->cli, f, &a->shift);
	if (ret)
		return ret;
	elf_file_symbols(f, SHT_SYMTAB, take_symbol, a);
	if (a->symbols->count == before && !a->code)
		elf_file_symbols(f, SHT_DYNSYM, take_symbol, a);
	if (!a->code && a->symbols->count == before) {
		if (!cli_inputs_whole(a->cli))
			return CLI_FAILED;
		cli_error(a->cli, "%s: has no symbols: use a file that is not stripped", f->path);
		return CLI_FAILED;
	}
	return a->code;
}

/* "ffffffff81000000 T _text", perhaps followed by a module. */
static int add_text(struct adder *a, const struct elf_file *f, FILE *file)
{
	size_t before = a->symbols->count, number = 0;
	char line[LINE_BYTES], *end, *name;
	bool zeros = true;

	while (!a->code && cli_getline(line, sizeof(line), file) > 0) {
		u64 address = strtoull(line, &end, 16);

		number++;
		if (end == line || end[0] != ' ' || !end[1] || end[2] != ' ') {
			cli_error(a->cli, "%s: line %zu: not like \"ffffffff81000000 T name\"",
				  f->path, number);
			a->code = CLI_FAILED;
			break;
		}
		name = end + 3;
		name[strcspn(name, " \t\r\n")] = '\0';
		zeros &= !address;
		if (*name && strchr("tTwW", end[1]))
			add(a, name, address + a->shift, 0);
	}
	if (a->code)
		return a->code;
	if (a->symbols->count == before || zeros) {
		cli_error(a->cli, "%s: %s", f->path,
			  zeros && number ? "all addresses are 0: it was read without the right to"
					  : "has no functions");
		return CLI_FAILED;
	}
	return CLI_OK;
}

int elf_symbols_add(struct cli *cli, struct elf_symbols *symbols, const char *arg)
{
	struct adder a = { .cli = cli, .symbols = symbols };
	struct elf_file f;
	char magic[4] = "";
	FILE *file;
	int ret = elf_file_name(cli, "--symbols", arg, &f);

	if (!ret)
		ret = cli_note_input(cli, f.path);
	if (ret) {
		elf_file_close(&f);
		return ret;
	}
	file = fopen(f.path, "re");
	if (!file) {
		cli_error(cli, "cannot open %s: %s", f.path, strerror(errno));
		ret = CLI_FAILED;
	} else if (fread(magic, 1, 4, file) == 4 && !memcmp(magic, ELFMAG, 4)) {
		ret = add_elf(&a, &f);
	} else {
		rewind(file);
		a.shift = f.has_address ? f.address : 0;
		ret = add_text(&a, &f, file);
	}
	if (file)
		fclose(file);
	elf_file_close(&f);
	symbols->files++;
	return ret;
}

static int by_address(const void *a, const void *b)
{
	const struct elf_symbol *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	/* Prefer one with a size. */
	return x->size > y->size ? 1 : x->size < y->size ? -1 : -strcmp(x->name, y->name);
}

void elf_symbols_sort(struct elf_symbols *symbols)
{
	if (symbols->count)
		qsort(symbols->symbol, symbols->count, sizeof(*symbols->symbol), by_address);
}

void elf_symbols_free(struct elf_symbols *symbols)
{
	size_t i;

	for (i = 0; i < symbols->count; i++)
		free(symbols->symbol[i].name);
	free(symbols->symbol);
	memset(symbols, 0, sizeof(*symbols));
}

const char *elf_symbols_find(const struct elf_symbols *symbols, u32 file, u64 ip, u64 *into)
{
	const struct elf_symbol *s = symbols->symbol;
	size_t n = vmpt_search(i, 0, symbols->count,
			       s[i].file < file || (s[i].file == file && s[i].address <= ip));

	if (!n || s[n - 1].file != file)
		return NULL;
	*into = ip - s[n - 1].address;
	if (s[n - 1].size && *into >= s[n - 1].size)
		return NULL;
	return s[n - 1].name;
}
