// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Names of functions: from ELF files, and from texts like /proc/kallsyms and System.map. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/symbols/file.h"
#include "util/array.h"
#include "util/search.h"

/* A function whose size is not known ends where the next one begins, or here, bytes. */
#define SYMBOL_MAX (1u << 20)

#define SYMBOLS_MAX 4000000
#define LINE_BYTES  4096 /* the rest of a longer line is part of a name that is cut anyway */

struct adder {
	struct cli *cli;
	const struct elf_file *f;
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

static bool is_code(const struct elf_file *f, const GElf_Sym *symbol)
{
	Elf_Scn *section = elf_getscn(f->elf, symbol->st_shndx);
	GElf_Shdr header;

	return section && gelf_getshdr(section, &header) && header.sh_flags & SHF_EXECINSTR;
}

static int take_symbol(void *opaque, const char *name, const GElf_Sym *symbol)
{
	struct adder *a = opaque;
	unsigned int type = GELF_ST_TYPE(symbol->st_info);

	/* Assembly's functions often have no type. */
	if (type != STT_FUNC &&
	    (type != STT_NOTYPE || symbol->st_shndx >= SHN_LORESERVE || !is_code(a->f, symbol)))
		return 0;
	return add(a, name, symbol->st_value + a->shift, symbol->st_size);
}

/* A symbol without a size ends with its segment; a program is not all of the memory after it. */
static int add_ends(struct adder *a)
{
	GElf_Phdr segment;
	size_t i;

	for (i = 0; !a->code && i < a->f->segments; i++)
		if (elf_file_loaded(a->f, i, &segment))
			add(a, "", segment.p_vaddr + segment.p_memsz + a->shift, 0);
	return a->code;
}

static int add_elf(struct adder *a, const struct code_given *given, struct elf_file *f)
{
	size_t before = a->symbols->count;
	int ret = elf_file_open_named(a->cli, given, f);

	if (!ret && f->has_address)
		ret = given->kind != CODE_KERNEL && f->header.e_type == ET_DYN
			      ? elf_file_image_shift(a->cli, f, &a->shift)
			      : elf_file_kernel_shift(a->cli, f, &a->shift);
	if (ret)
		return ret;
	a->f = f;
	elf_file_symbols(f, SHT_SYMTAB, take_symbol, a);
	if (a->symbols->count == before && !a->code)
		elf_file_symbols(f, SHT_DYNSYM, take_symbol, a);
	if (!a->code && a->symbols->count == before && given->only_names) {
		if (!cli_inputs_whole(a->cli))
			return CLI_FAILED;
		cli_error(a->cli, "%s: has no symbols: use a file that is not stripped", f->path);
		return CLI_FAILED;
	}
	return a->code || a->symbols->count == before ? a->code : add_ends(a);
}

/* "ffffffff81000000 T _text", perhaps followed by a module. */
static int add_text(struct adder *a, const struct code_given *given, FILE *file)
{
	size_t before = a->symbols->count, number = 0;
	char line[LINE_BYTES], *end, *name;
	bool zeros = true;

	while (!a->code && cli_getline(line, sizeof(line), file) > 0) {
		u64 address = strtoull(line, &end, 16);

		number++;
		if (end == line || end[0] != ' ' || !end[1] || end[2] != ' ') {
			cli_error(a->cli, "%s: line %zu: not like \"ffffffff81000000 T name\"",
				  given->path, number);
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
		cli_error(a->cli, "%s: %s", given->path,
			  zeros && number ? "all addresses are 0: it was read without the right to"
					  : "has no functions");
		return CLI_FAILED;
	}
	return CLI_OK;
}

int elf_symbols_add(struct cli *cli, struct elf_symbols *symbols, const struct code_given *given)
{
	struct adder a = { .cli = cli, .symbols = symbols };
	struct elf_file f = { .fd = -1 };
	char magic[SELFMAG] = "";
	bool is_elf =
		given->kind == CODE_KERNEL || (given->kind == CODE_IMAGE && !given->only_names);
	int ret = CLI_OK;
	FILE *file = NULL;

	/* Those have times and processes: jit.c. */
	if (given->kind == CODE_JIT) {
		symbols->files++;
		return CLI_OK;
	}
	if (given->kind != CODE_RAW)
		file = fopen(given->path, "re");
	if (!file && given->kind != CODE_RAW) {
		cli_error(cli, "cannot open %s: %s", given->path, strerror(errno));
		ret = CLI_FAILED;
	} else if (file && (is_elf || (fread(magic, 1, SELFMAG, file) == SELFMAG &&
				       !memcmp(magic, ELFMAG, SELFMAG)))) {
		ret = add_elf(&a, given, &f);
		elf_file_close(&f);
	} else if (file) {
		rewind(file);
		a.shift = given->has_address ? given->address : 0;
		ret = add_text(&a, given, file);
	}
	if (file)
		fclose(file);
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
	if (*into >= (s[n - 1].size ? s[n - 1].size : SYMBOL_MAX))
		return NULL;
	return *s[n - 1].name ? s[n - 1].name : NULL;
}
