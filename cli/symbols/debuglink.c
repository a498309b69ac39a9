// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Debugging information in a file of its own, which a program names in .gnu_debuglink. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "cli/symbols/file.h"
#include "cli/symbols/names.h"

/* The section: a name, zeros up to a multiple of 4, the file's CRC. The name is copied. */
static char *read_link(Elf *elf, u32 *crc)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((section = elf_nextscn(elf, section)) != NULL) {
		const char *name = gelf_getshdr(section, &header)
					   ? elf_strptr(elf, names, header.sh_name)
					   : NULL;
		Elf_Data *data;
		size_t n;

		if (!name || strcmp(name, ".gnu_debuglink"))
			continue;
		data = header.sh_type == SHT_PROGBITS ? elf_rawdata(section, NULL) : NULL;
		n = data && data->d_buf ? strnlen(data->d_buf, data->d_size) : 0;
		if (!n || (n + 4) / 4 * 4 + 4 > data->d_size || memchr(data->d_buf, '/', n))
			return NULL;
		memcpy(crc, (const u8 *)data->d_buf + (n + 4) / 4 * 4, 4);
		return strndup(data->d_buf, n);
	}
	return NULL;
}

static bool crc_is(int fd, u32 want)
{
	u8 bytes[1 << 16];
	uLong crc = crc32(0, NULL, 0);
	ssize_t n;
	off_t at = 0;

	while ((n = pread(fd, bytes, sizeof(bytes), at)) > 0) {
		crc = crc32(crc, bytes, (uInt)n);
		at += n;
	}
	return !n && crc == want;
}

/* @folder/@dir/@name, if it is that file; -1. */
static int try(const char *folder, const char *dir, const char *name, u32 crc)
{
	char *path;
	int fd;

	if (asprintf(&path, "%s/%s/%s", folder, dir, name) < 0)
		return -1;
	fd = names_open_regular(path);
	free(path);
	if (fd >= 0 && !crc_is(fd, crc)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

int names_debuglink_open(const struct code_names *n, const char *path, int fd)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	char *name = NULL;
	u32 crc = 0;
	int found = -1;
	size_t i;

	if (dir && elf)
		name = read_link(elf, &crc);
	elf_end(elf);
	/* As gdb does. */
	if (name)
		found = try(dir, ".", name, crc);
	if (name && found < 0)
		found = try(dir, ".debug", name, crc);
	for (i = 0; name && found < 0 && i < n->given->count; i++) {
		found = try(n->given->s[i], dir, name, crc);
		if (found < 0)
			found = try(n->given->s[i], ".", name, crc);
	}
	free(name);
	free(dir);
	return found;
}
