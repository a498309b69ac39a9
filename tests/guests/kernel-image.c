// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Makes a vmlinux with a running guest's code: a kernel changes its own code at boot (alternatives,
 * static keys, returns, tracing), so it differs from its file; and the file in Debian's package has
 * no symbols.
 *
 *	kernel-image VMLINUX				where .text is in memory: "ADDRESS SIZE"
 *	kernel-image VMLINUX MEMORY SYSTEM.MAP OUT	write OUT
 *
 * MEMORY is the output of QEMU's pmemsave for those addresses, or "-" for the code of VMLINUX. OUT
 * has the code and the symbols and nothing else. Code that is freed after boot (.init.text) is that
 * of VMLINUX. All is one section with holes: perf 6.1 reads no code of a kernel's other sections.
 */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/array.h"

#define SECTIONS_MAX 16
#define PAGE	     4096

/* A section with code. */
struct code {
	u64 address, size;
	u8 *bytes;
};

struct kernel {
	struct code code[SECTIONS_MAX];
	size_t count;
	u64 size;     /* from the first one's start to the last one's end */
	u64 physical; /* of .text, which is code[0] */
	Elf64_Sym *symbol;
	size_t symbols;
	char *names;
	size_t names_size, names_room;
};

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "kernel-image: %s: %s\n", what, why);
	exit(1);
}

static void need(bool memory)
{
	if (!memory)
		fail("memory", strerror(errno));
}

/* ---- reading ---- */

static void take_section(struct kernel *k, Elf_Scn *section, const GElf_Shdr *header,
			 const char *name)
{
	Elf_Data *data = elf_rawdata(section, NULL);
	struct code *code = &k->code[k->count];

	if (k->count == SECTIONS_MAX || !data || data->d_size != header->sh_size)
		fail(name, "too many sections with code, or an empty one");
	code->address = header->sh_addr;
	code->size = header->sh_size;
	code->bytes = malloc(code->size);
	need(code->bytes != NULL);
	memcpy(code->bytes, data->d_buf, code->size);
	if (!k->count++ && strcmp(name, ".text"))
		fail(name, "is the first section with code, not .text");
	if (code->address < k->code[0].address)
		fail(name, "lies before .text");
	if (code->address + code->size - k->code[0].address > k->size)
		k->size = code->address + code->size - k->code[0].address;
}

static void find_physical(struct kernel *k, Elf *elf, size_t segments)
{
	GElf_Phdr p;
	size_t i;

	for (i = 0; i < segments; i++) {
		u64 address = k->code[0].address;

		if (!gelf_getphdr(elf, (int)i, &p) || p.p_type != PT_LOAD || address < p.p_vaddr ||
		    address - p.p_vaddr >= p.p_filesz)
			continue;
		k->physical = p.p_paddr + (address - p.p_vaddr);
		return;
	}
	fail(".text", "is not in a segment");
}

static void read_kernel(struct kernel *k, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf_Scn *section = NULL;
	size_t names, segments;
	GElf_Shdr header;
	Elf *elf;

	if (fd < 0)
		fail(path, strerror(errno));
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf || gelf_getclass(elf) != ELFCLASS64 || elf_getshdrstrndx(elf, &names) ||
	    elf_getphdrnum(elf, &segments))
		fail(path, "not an ELF file of 64 bits");
	while ((section = elf_nextscn(elf, section)) != NULL)
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_PROGBITS &&
		    header.sh_flags & SHF_EXECINSTR)
			take_section(k, section, &header, elf_strptr(elf, names, header.sh_name));
	if (!k->count)
		fail(path, "has no code");
	find_physical(k, elf, segments);
	elf_end(elf);
	close(fd);
}

static void read_memory(struct kernel *k, const char *path)
{
	FILE *f = fopen(path, "rb");

	if (!f)
		fail(path, strerror(errno));
	if (fread(k->code[0].bytes, 1, k->code[0].size, f) != k->code[0].size || getc(f) != EOF)
		fail(path, "does not have the size of .text");
	fclose(f);
}

static void add_symbol(struct kernel *k, u64 address, char type, const char *name)
{
	size_t i, length = strlen(name) + 1;

	for (i = 0; i < k->count; i++)
		if (address - k->code[i].address < k->code[i].size)
			break;
	if (i == k->count)
		return;
	need(!vmpt_grow(&k->symbol, k->symbols) &&
	     !vmpt_reserve(&k->names, &k->names_room, k->names_size + length));
	k->symbol[k->symbols++] = (Elf64_Sym){
		.st_name = (Elf64_Word)k->names_size,
		.st_info = ELF64_ST_INFO(type == 'T' ? STB_GLOBAL : STB_LOCAL, STT_FUNC),
		.st_shndx = 1,
		.st_value = address,
	};
	memcpy(k->names + k->names_size, name, length);
	k->names_size += length;
}

static void read_symbols(struct kernel *k, const char *path)
{
	FILE *f = fopen(path, "r");
	unsigned long long address;
	char line[1024], name[512], type;

	if (!f)
		fail(path, strerror(errno));
	need(!vmpt_reserve(&k->names, &k->names_room, 1));
	k->names[0] = '\0';
	k->names_size = 1;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx %c %511s", &address, &type, name) == 3 &&
		    strchr("tTwW", type))
			add_symbol(k, address, type, name);
	fclose(f);
	if (!k->symbols)
		fail(path, "has no symbols of that kernel's code");
}

/* ---- writing ---- */

/* Locals first, as ELF requires; then by address. */
static int compare(const void *a, const void *b)
{
	const Elf64_Sym *x = a, *y = b;
	int local = ELF64_ST_BIND(x->st_info) - ELF64_ST_BIND(y->st_info);

	if (local)
		return local;
	return x->st_value < y->st_value ? -1 : x->st_value > y->st_value;
}

static void put_at(FILE *f, u64 at, const void *bytes, size_t n)
{
	if (fseek(f, (long)at, SEEK_SET) || fwrite(bytes, 1, n, f) != n)
		fail("cannot write", strerror(errno));
}

enum { NONE, TEXT, SYMTAB, STRTAB, SHSTRTAB, HEADERS };

/* Writes the sections and their headers. Returns the headers' offset. */
static u64 write_sections(const struct kernel *k, FILE *f, Elf64_Phdr *segment)
{
	static const char names[] = "\0.text\0.symtab\0.strtab\0.shstrtab";
	u64 start = k->code[0].address, at = PAGE;
	Elf64_Shdr header[HEADERS] = { 0 };
	size_t i, locals = 1;
	Elf64_Sym none = { 0 };

	*segment = (Elf64_Phdr){ PT_LOAD, PF_R | PF_X, at, start, start, k->size, k->size, PAGE };
	header[TEXT] = (Elf64_Shdr){
		1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, start, at, k->size, 0, 0, PAGE, 0
	};
	for (i = 0; i < k->count; i++)
		put_at(f, at + (k->code[i].address - start), k->code[i].bytes, k->code[i].size);
	at += (k->size + 7) & ~7ULL;
	for (i = 0; i < k->symbols; i++)
		locals += ELF64_ST_BIND(k->symbol[i].st_info) == STB_LOCAL;
	header[SYMTAB] = (Elf64_Shdr){
		7,	SHT_SYMTAB,	    0, 0,	    at, (k->symbols + 1) * sizeof(none),
		STRTAB, (Elf64_Word)locals, 8, sizeof(none)
	};
	put_at(f, at, &none, sizeof(none));
	put_at(f, at + sizeof(none), k->symbol, k->symbols * sizeof(none));
	at += header[SYMTAB].sh_size;
	header[STRTAB] = (Elf64_Shdr){ 15, SHT_STRTAB, 0, 0, at, k->names_size, 0, 0, 1, 0 };
	put_at(f, at, k->names, k->names_size);
	at += k->names_size;
	header[SHSTRTAB] = (Elf64_Shdr){ 23, SHT_STRTAB, 0, 0, at, sizeof(names), 0, 0, 1, 0 };
	put_at(f, at, names, sizeof(names));
	at = (at + sizeof(names) + 7) & ~7ULL;
	put_at(f, at, header, sizeof(header));
	return at;
}

static void write_kernel(const struct kernel *k, const char *path)
{
	Elf64_Phdr segment;
	FILE *f = fopen(path, "wb");
	Elf64_Ehdr header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					   ELFDATA2LSB, EV_CURRENT },
			      .e_type = ET_EXEC,
			      .e_machine = EM_X86_64,
			      .e_version = EV_CURRENT,
			      .e_phoff = sizeof(header),
			      .e_ehsize = sizeof(header),
			      .e_phentsize = sizeof(segment),
			      .e_phnum = 1,
			      .e_shentsize = sizeof(Elf64_Shdr),
			      .e_shnum = HEADERS,
			      .e_shstrndx = SHSTRTAB };

	if (!f)
		fail(path, strerror(errno));
	header.e_shoff = write_sections(k, f, &segment);
	put_at(f, 0, &header, sizeof(header));
	put_at(f, sizeof(header), &segment, sizeof(segment));
	if (fclose(f))
		fail(path, strerror(errno));
}

int main(int argc, char **argv)
{
	struct kernel k = { 0 };

	if (argc != 2 && argc != 5) {
		fprintf(stderr, "usage: kernel-image VMLINUX [MEMORY SYSTEM.MAP OUT]\n");
		return 2;
	}
	read_kernel(&k, argv[1]);
	if (argc == 2) {
		printf("0x%llx %llu\n", (unsigned long long)k.physical,
		       (unsigned long long)k.code[0].size);
		return 0;
	}
	if (strcmp(argv[2], "-"))
		read_memory(&k, argv[2]);
	read_symbols(&k, argv[3]);
	qsort(k.symbol, k.symbols, sizeof(*k.symbol), compare);
	write_kernel(&k, argv[4]);
	return 0;
}
