// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* ELF files of the command line, through libelf. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/symbols/file.h"

#define PAGE	     4096ULL
#define SEGMENTS_MAX 64 /* of code; programs have one or two */

int elf_file_open_named(struct cli *cli, const struct code_given *given, struct elf_file *f)
{
	struct stat st;

	*f = (struct elf_file){
		.path = given->path,
		.has_address = given->has_address,
		.address = given->address,
	};
	f->fd = open(f->path, O_RDONLY | O_CLOEXEC);
	if (f->fd < 0) {
		cli_error(cli, "cannot open %s: %s", f->path, strerror(errno));
		return CLI_FAILED;
	}
	elf_version(EV_CURRENT);
	/* Not mapped: the file may become shorter while it is read. */
	f->elf = elf_begin(f->fd, ELF_C_READ, NULL);
	if (!f->elf || elf_kind(f->elf) != ELF_K_ELF || !gelf_getehdr(f->elf, &f->header) ||
	    elf_getphdrnum(f->elf, &f->segments)) {
		cli_error(cli, "%s: not a readable ELF file", f->path);
		return CLI_FAILED;
	}
	if (fstat(f->fd, &st)) {
		cli_error(cli, "%s: %s", f->path, strerror(errno));
		return CLI_FAILED;
	}
	f->size = (u64)st.st_size;
	if (f->header.e_machine != EM_X86_64 && f->header.e_machine != EM_386) {
		cli_error(cli, "%s: is not for x86", f->path);
		return CLI_FAILED;
	}
	return CLI_OK;
}

bool elf_file_loaded(const struct elf_file *f, size_t i, GElf_Phdr *segment)
{
	return gelf_getphdr(f->elf, (int)i, segment) && segment->p_type == PT_LOAD &&
	       segment->p_memsz;
}

/* Each segment of code is copied, and searched for each instruction. */
static int check_code(struct cli *cli, const struct elf_file *f)
{
	size_t i, segments = 0;
	GElf_Phdr segment;
	u64 bytes = 0;

	for (i = 0; i < f->segments; i++) {
		if (!elf_file_loaded(f, i, &segment) || !(segment.p_flags & PF_X))
			continue;
		segments++;
		if (segment.p_filesz > f->size - bytes) {
			cli_error(cli, "%s: truncated: its code is beyond its end", f->path);
			return CLI_FAILED;
		}
		bytes += segment.p_filesz;
		if (segments > SEGMENTS_MAX) {
			cli_error(cli, "%s: more than %d segments of code", f->path, SEGMENTS_MAX);
			return CLI_FAILED;
		}
	}
	return CLI_OK;
}

int elf_file_open(struct cli *cli, const struct code_given *given, struct elf_file *f)
{
	int ret = elf_file_open_named(cli, given, f);

	if (!ret && f->header.e_type != ET_EXEC && f->header.e_type != ET_DYN) {
		cli_error(cli, "%s: neither a program nor a library", f->path);
		ret = CLI_FAILED;
	}
	return ret ? ret : check_code(cli, f);
}

void elf_file_close(struct elf_file *f)
{
	elf_end(f->elf);
	if (f->fd >= 0)
		close(f->fd);
}

/* The section of names, which must end with one's end; NULL: it does not. */
static const char *names_of(const struct elf_file *f, const GElf_Shdr *header, size_t *size)
{
	Elf_Scn *section = elf_getscn(f->elf, header->sh_link);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	const char *names = data ? data->d_buf : NULL;

	*size = names ? data->d_size : 0;
	return *size && !names[*size - 1] ? names : NULL;
}

static int symbols_of(const struct elf_file *f, Elf_Scn *section, const GElf_Shdr *header,
		      int (*take)(void *opaque, const char *name, const GElf_Sym *symbol),
		      void *opaque)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t i, n = header->sh_entsize ? header->sh_size / header->sh_entsize : 0, size;
	const char *names = names_of(f, header, &size);
	GElf_Sym symbol;
	int ret = 0;

	for (i = 0; data && names && i < n && !ret && gelf_getsym(data, (int)i, &symbol); i++) {
		const char *name = symbol.st_name < size ? names + symbol.st_name : "";

		if (*name && symbol.st_shndx != SHN_UNDEF)
			ret = take(opaque, name, &symbol);
	}
	return ret;
}

/* A file has one section of a type; more of them could all be the same bytes. */
int elf_file_symbols(const struct elf_file *f, unsigned int section_type,
		     int (*take)(void *opaque, const char *name, const GElf_Sym *symbol),
		     void *opaque)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(f->elf, section)) != NULL)
		if (gelf_getshdr(section, &header) && header.sh_type == section_type)
			return symbols_of(f, section, &header, take, opaque);
	return 0;
}

static int take_text(void *opaque, const char *name, const GElf_Sym *symbol)
{
	u64 *address = opaque;

	if (strcmp(name, "_text"))
		return 0;
	*address = symbol->st_value;
	return 1;
}

bool elf_file_text(const struct elf_file *f, u64 *address)
{
	return elf_file_symbols(f, SHT_SYMTAB, take_text, address);
}

int elf_file_kernel_shift(struct cli *cli, const struct elf_file *f, u64 *shift)
{
	u64 text = 0;

	if (!f->has_address)
		return CLI_OK;
	if (!elf_file_text(f, &text)) {
		cli_error(cli, "%s: no symbol _text, to which its @ADDR refers", f->path);
		return CLI_FAILED;
	}
	*shift = f->address - text;
	return CLI_OK;
}

int elf_file_image_shift(struct cli *cli, const struct elf_file *f, u64 *shift)
{
	GElf_Phdr segment;
	size_t i;

	if (f->header.e_type == ET_EXEC && f->has_address) {
		cli_error(cli, "%s: has fixed addresses: give it without @ADDR", f->path);
		return CLI_FAILED;
	}
	if (f->header.e_type == ET_DYN && !f->has_address) {
		cli_error(
			cli,
			"%s: is position independent: give the address of its first page with @ADDR",
			f->path);
		return CLI_FAILED;
	}
	for (i = 0; f->has_address && i < f->segments; i++) {
		if (!elf_file_loaded(f, i, &segment))
			continue;
		*shift = f->address - (segment.p_vaddr & ~(PAGE - 1));
		return CLI_OK;
	}
	return CLI_OK;
}
