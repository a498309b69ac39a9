// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Debugging information from the servers of $DEBUGINFOD_URLS, only with --debuginfod: by
 * libdebuginfod of elfutils, which keeps what it gets in a cache of the user. It is loaded when it
 * is needed, so vmpt does not depend on it, and its functions are declared here as its header has
 * them.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/symbols/file.h"
#include "cli/symbols/names.h"

#define LIBRARY "libdebuginfod.so.1"

/* Where the user has no other limits: s, bytes. */
#define MAX_TIME "600"
#define MAX_SIZE "8589934592"

struct names_debuginfod {
	void *(*begin)(void);
	void (*end)(void *client);
	int (*find)(void *client, const unsigned char *id, int size, char **path);
	void *client;
};

static bool load(struct names_debuginfod *lib)
{
	/* It stays loaded: libcurl below it cannot be unloaded. */
	void *module = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!module)
		return false;
	*(void **)&lib->begin = dlsym(module, "debuginfod_begin");
	*(void **)&lib->end = dlsym(module, "debuginfod_end");
	*(void **)&lib->find = dlsym(module, "debuginfod_find_debuginfo");
	if (!lib->begin || !lib->end || !lib->find)
		return false;
	setenv("DEBUGINFOD_MAXTIME", MAX_TIME, 0);
	setenv("DEBUGINFOD_MAXSIZE", MAX_SIZE, 0);
	lib->client = lib->begin();
	return lib->client != NULL;
}

int names_debuginfod_open(struct cli *cli, struct code_names *n)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	if (!urls || !*urls) {
		cli_error(cli, "--debuginfod: DEBUGINFOD_URLS is not set to any server");
		return CLI_USAGE;
	}
	n->server = calloc(1, sizeof(*n->server));
	if (!n->server)
		return cli_no_memory(cli);
	if (!load(n->server)) {
		cli_error(cli, "--debuginfod: %s (elfutils) is not installed", LIBRARY);
		return CLI_FAILED;
	}
	return CLI_OK;
}

void names_debuginfod_close(struct code_names *n)
{
	if (n->server && n->server->client)
		n->server->end(n->server->client);
	free(n->server);
}

/* A server may answer with whatever it likes. */
static bool has_id(int fd, const u8 *id, size_t size)
{
	u8 own[64];
	Elf *elf;
	size_t n;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	n = elf ? names_build_id(elf, own) : 0;
	elf_end(elf);
	return n == size && !memcmp(own, id, size);
}

char *names_debuginfod_find(struct cli *cli, const struct code_names *n, const u8 *id, size_t size)
{
	char *path = NULL, text[2 * 64 + 1];
	int fd;

	if (!n->server || size < 8 || size > 64)
		return NULL;
	fd = n->server->find(n->server->client, id, (int)size, &path);
	if (fd < 0)
		return NULL;
	if (!has_id(fd, id, size)) {
		names_hex(id, size, text);
		cli_warn(cli, "debuginfod: the answer for build id %s has another: it is not used",
			 text);
		free(path);
		path = NULL;
	}
	close(fd);
	return path;
}
