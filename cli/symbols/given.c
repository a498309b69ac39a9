// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The files with the guests' code; see given.h. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/symbols/file.h"
#include "cli/symbols/names.h"
#include "util/array.h"

int code_take(struct cli *cli, void *to, const char *arg)
{
	(void)to;
	if (*arg)
		return 0;
	cli_usage(cli, "--code: no file given, like vmlinux");
	return -1;
}

int code_take_kernel(struct cli *cli, void *to, const char *arg)
{
	(void)arg;
	if (!*(const char **)to)
		return 0;
	cli_usage(cli, "--kernel: a guest has only one");
	return -1;
}

bool code_is_for(const struct code_given *given, const char *vm)
{
	return !given->vm || (vm && !strcmp(given->vm, vm));
}

/* ---- names ---- */

/*
 * "[VM:]FILE[@ADDR]" into @g. An existing file may itself be named so; @name: in a folder, where
 * all are, it is where the parts begin.
 */
static int parse(struct cli *cli, const char *arg, const char *name, struct code_given *g)
{
	bool whole = !name && !access(arg, F_OK);
	const char *start = name ? name : arg;
	const char *colon = whole ? NULL : strchr(start, ':'), *at;

	/* Without a VM, or if the file is only named so. */
	if (colon && !name && memchr(arg, '/', (size_t)(colon - arg)))
		colon = NULL;
	g->path = strdup(colon && !name ? colon + 1 : arg);
	g->vm = colon ? strndup(start, (size_t)(colon - start)) : NULL;
	if (!g->path || (colon && !g->vm))
		return cli_no_memory(cli);
	at = whole || (!name && !access(g->path, F_OK)) ? NULL
							: strrchr(name ? start : g->path, '@');
	if (!at)
		return CLI_OK;
	g->has_address = true;
	if (cli_parse_u64(cli, g->option ? g->option : arg, at + 1, &g->address))
		return CLI_USAGE;
	if (!name)
		g->path[at - g->path] = '\0';
	return CLI_OK;
}

/* ---- kinds ---- */

/* "ffffffff81000000 T name" */
static bool is_symbol(const char *line)
{
	size_t n = strspn(line, "0123456789abcdefABCDEF");

	return n && n <= 16 && line[n] == ' ' && isalpha((unsigned char)line[n + 1]) &&
	       line[n + 2] == ' ';
}

/* An error of an option; one of the recording is a warning: JSON_LINE_SKIPPED. */
static int refuse(const struct cli *cli, const struct code_given *g, const char *why)
{
	if (g->option) {
		cli_error(cli, "%s: %s", g->path, why);
		return CLI_FAILED;
	}
	cli_warn(cli, "%s: %s: it is not used", g->path, why);
	return JSON_LINE_SKIPPED;
}

static int find_elf_kind(struct cli *cli, struct code_given *g)
{
	struct elf_file f;
	int code = elf_file_open_named(cli, g, &f);

	if (!code && (g->kind == CODE_IMAGE && !g->only_names && elf_file_text(&f, &g->text)))
		g->kind = CODE_KERNEL;
	if (!code && !g->option && g->kind == CODE_IMAGE && f.header.e_type == ET_DYN &&
	    !g->has_address)
		code = refuse(
			cli, g,
			"is position independent, and has no @ADDR of its first page in its name");
	elf_file_close(&f);
	return code;
}

static int find_kind(struct cli *cli, struct code_given *g, bool given)
{
	char head[80] = "";
	int fd, code = cli_note_input(cli, g->path);
	ssize_t n;

	/* What the option says, reading it checks. */
	if (code || given)
		return code;
	fd = open(g->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, head, sizeof(head) - 1);
	if (n < 0)
		cli_error(cli, "cannot open %s: %s", g->path, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (n < 0)
		return CLI_FAILED;
	g->kind = CODE_IMAGE;
	if (!strncmp(head, ELFMAG, SELFMAG))
		return find_elf_kind(cli, g);
	if ((g->only_names || !g->option) && names_is_jit(g->path, head, (size_t)n)) {
		g->kind = CODE_JIT;
		return CLI_OK;
	}
	g->kind = is_symbol(head) || g->only_names ? CODE_SYMBOLS : CODE_RAW;
	if (g->kind == CODE_RAW && !g->has_address)
		return refuse(cli, g,
			      "neither an ELF file nor a list of symbols; raw bytes need their "
			      "address, FILE@ADDR");
	return CLI_OK;
}

/* ---- all ---- */

static void drop(struct code_given *g)
{
	free(g->vm);
	free(g->path);
}

/* Add one; @kind is what the option says it is, CODE_RAW: nothing, CODE_SOURCE: nobody looks. */
static int add(struct cli *cli, struct code_files *files, const char *option, const char *arg,
	       const char *name, enum code_kind kind)
{
	struct code_given g = { .option = option, .kind = kind };
	int code;

	g.only_names = option && !strcmp(option, "--symbols");
	code = parse(cli, arg, name, &g);
	if (!code && kind == CODE_SOURCE)
		code = cli_note_input(cli, g.path);
	else if (!code)
		code = find_kind(cli, &g, kind == CODE_KERNEL || kind == CODE_IMAGE);
	if (!code && vmpt_grow(&files->given, files->count))
		code = cli_no_memory(cli);
	if (!code)
		files->given[files->count++] = g;
	else
		drop(&g);
	return code == JSON_LINE_SKIPPED ? CLI_OK : code;
}

static int add_all(struct cli *cli, struct code_files *files, const char *option,
		   const struct cli_strings *list, enum code_kind kind)
{
	int code = CLI_OK;
	size_t i;

	for (i = 0; i < list->count && !code; i++)
		code = add(cli, files, option, list->s[i], NULL, kind);
	return code;
}

static int add_folder(struct cli *cli, struct code_files *files, const char *name,
		      enum code_kind kind)
{
	char **file;
	size_t i, n;
	int code = cli_folder_list(cli, name, &file, &n);

	for (i = 0; i < n; i++) {
		if (!code)
			code = add(cli, files, NULL, file[i], strrchr(file[i], '/') + 1, kind);
		free(file[i]);
	}
	free(file);
	return code;
}

int code_files_open(struct cli *cli, const struct code_options *o, struct code_files *files)
{
	int code = add_all(cli, files, "--code", &o->code, CODE_RAW);

	if (!code)
		code = add_all(cli, files, "--symbols", &o->symbols, CODE_RAW);
	if (!code && o->kernel)
		code = add(cli, files, "--kernel", o->kernel, NULL, CODE_KERNEL);
	if (!code)
		code = add_all(cli, files, "--image", &o->image, CODE_IMAGE);
	if (!code)
		code = add_folder(cli, files, CLI_FOLDER_IMAGES, CODE_RAW);
	return code ? code : add_folder(cli, files, CLI_FOLDER_SYMBOLS, CODE_RAW);
}

/*
 * @o: a member of @key in recording.json, a file in @folder of it ("": itself); "vm" null: the
 * host's code.
 */
static int add_recorded(struct cli *cli, struct code_files *files, const json_t *o, const char *key,
			const char *folder)
{
	const char *name = json_string_value(json_object_get(o, "file"));
	const char *vm = json_string_value(json_object_get(o, "vm"));
	const char *address = json_string_value(json_object_get(o, "address"));
	struct code_given g = { .kind = CODE_SOURCE, .has_address = address != NULL };
	struct stat st;
	int code = CLI_OK;

	if (!name || strchr(name, '/') ||
	    asprintf(&g.path, "%s/%s%s", cli->folder->path, folder, name) < 0) {
		cli_warn(cli, "%s: \"%s\" has no name of a file in its folder: it is not used",
			 cli->folder->head, key);
		return CLI_OK;
	}
	if (lstat(g.path, &st) || !S_ISREG(st.st_mode)) {
		cli_warn(cli,
			 "%s: is missing or not a regular file, but " CLI_FOLDER_HEAD " lists it",
			 g.path);
		free(g.path);
		return CLI_OK;
	}
	/* What wrote it was killed before it wrote anything. */
	if (!st.st_size) {
		cli_warn(cli, "%s: is empty: it is not used", g.path);
		free(g.path);
		return CLI_OK;
	}
	g.address = address ? strtoull(address, NULL, 16) : 0;
	g.vm = strdup(vm ? vm : "host");
	code = g.vm && !vmpt_grow(&files->given, files->count) ? cli_note_input(cli, g.path)
							       : cli_no_memory(cli);
	if (code)
		drop(&g);
	else
		files->given[files->count++] = g;
	return code;
}

/* The last one first: a dump at the end has more than one at the start. */
static int add_list(struct cli *cli, struct code_files *files, const char *key, const char *folder)
{
	const json_t *all = cli->folder ? json_object_get(cli->folder->doc, key) : NULL;
	size_t i = json_array_size(all);
	int code = CLI_OK;

	while (i-- && !code)
		code = add_recorded(cli, files, json_array_get(all, i), key, folder);
	return code;
}

/* Of a kernel's file it is known, so that it is compared with the kernel of an image. */
static int add_symbols(struct cli *cli, struct code_files *files, const char *arg)
{
	size_t before = files->count;
	int code = add(cli, files, "--symbols", arg, NULL, CODE_RAW);
	struct code_given *g = &files->given[before];

	if (code || files->count == before || g->kind != CODE_IMAGE)
		return code;
	g->only_names = false;
	return find_elf_kind(cli, g);
}

int code_symbols_open(struct cli *cli, const struct cli_strings *list, struct code_files *files)
{
	struct stat st;
	int code = CLI_OK;
	size_t i;

	for (i = 0; i < list->count && !code; i++)
		if (stat(list->s[i], &st) || !S_ISDIR(st.st_mode))
			code = add_symbols(cli, files, list->s[i]);
	return code ? code : add_folder(cli, files, CLI_FOLDER_SYMBOLS, CODE_RAW);
}

int code_images_open(struct cli *cli, const struct cli_strings *list, struct code_files *files)
{
	int code = add_all(cli, files, NULL, list, CODE_SOURCE);

	if (!code)
		code = add_list(cli, files, "memory", CODE_MEMORY "/");
	return code ? code : add_folder(cli, files, CLI_FOLDER_IMAGES, CODE_SOURCE);
}

int code_sources_open(struct cli *cli, const struct cli_strings *list, struct code_files *files)
{
	int code = add_all(cli, files, "--code", list, CODE_SOURCE);

	/* What ran, as it was at the time, before what may have been changed since. */
	if (!code)
		code = add_list(cli, files, "code", "");
	if (!code)
		code = add_list(cli, files, "memory", CODE_MEMORY "/");
	if (!code)
		code = add_folder(cli, files, CLI_FOLDER_IMAGES, CODE_SOURCE);
	return code;
}

void code_files_close(struct code_files *files)
{
	while (files->count)
		drop(&files->given[--files->count]);
	free(files->given);
	files->given = NULL;
}
