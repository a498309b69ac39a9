// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The files that vmpt timeline writes, --chrome and --html: "-" is the standard output; two outputs
 * are never one file, and none is an input.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/timeline/options.h"

static bool is_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

static bool same_inode(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The folder of @path and the name in it. */
static bool folder_of(const char *path, struct stat *st, const char **name)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	bool ok = folder && !stat(folder, st);

	free(folder);
	*name = slash ? slash + 1 : path;
	return ok;
}

/* Whether both are one file, made or not. */
static bool is_same(const char *a, const char *b)
{
	struct stat x, y;
	const char *p, *q;
	int made = !stat(a, &x) + !stat(b, &y);

	if (!strcmp(a, b))
		return true;
	if (made)
		return made == 2 && same_inode(&x, &y);
	return folder_of(a, &x, &p) && folder_of(b, &y, &q) && same_inode(&x, &y) && !strcmp(p, q);
}

/* @file may end in "@ADDR". */
static bool is_named(const char *file, const struct stat *st)
{
	struct stat other;
	const char *at;
	char *cut;
	bool same;

	if (!file)
		return false;
	if (!stat(file, &other))
		return same_inode(&other, st);
	at = strrchr(file, '@');
	cut = at ? strndup(file, (size_t)(at - file)) : NULL;
	same = cut && !stat(cut, &other) && same_inode(&other, st);
	free(cut);
	return same;
}

static int check_input(const struct cli *cli, const struct timeline_given *given,
		       const char *option, const char *path)
{
	struct stat st;
	bool input;
	size_t i;

	if (!path || is_stdout(path) || stat(path, &st))
		return CLI_OK;
	if (cli_is_input(cli, &st))
		return cli_usage(cli, "%s: %s is the trace itself, or part of it", option, path);
	input = is_named(cli_side(cli)->file, &st) || is_named(given->code.kernel, &st);
	for (i = 0; i < given->code.image.count; i++)
		input |= is_named(given->code.image.s[i], &st);
	for (i = 0; i < given->symbol.count; i++)
		input |= is_named(given->symbol_file[i], &st);
	if (input)
		return cli_usage(cli, "%s: %s is an input: it would be overwritten", option, path);
	return CLI_OK;
}

int timeline_out_check(const struct cli *cli, const struct timeline_given *given,
		       const char *chrome, const char *html, bool prints)
{
	int code;

	if (chrome && html && is_same(chrome, html))
		return cli_usage(cli, "--chrome and --html: both are %s", chrome);
	if (prints && (is_stdout(chrome) || is_stdout(html)))
		return cli_usage(cli,
				 "%s: - is the standard output, which --json or --summary needs",
				 is_stdout(chrome) ? "--chrome" : "--html");
	code = check_input(cli, given, "--chrome", chrome);
	return code ? code : check_input(cli, given, "--html", html);
}

static int failed(const struct cli *cli, const char *what, const char *path)
{
	cli_error(cli, "cannot %s %s: %s", what, path, strerror(errno ? errno : EIO));
	return CLI_FAILED;
}

int timeline_out_open(const struct cli *cli, const char *path, FILE **file)
{
	if (is_stdout(path)) {
		*file = stdout;
		return CLI_OK;
	}
	*file = fopen(path, "we");
	if (!*file)
		return failed(cli, "create", path);
	setvbuf(*file, NULL, _IOFBF, 1 << 18);
	return CLI_OK;
}

int timeline_out_close(struct cli *cli, const char *path, FILE *file)
{
	int ret;

	/* cli_finish() checks that the standard output was written. */
	if (file == stdout)
		return cli_output_failed(cli) ? CLI_FAILED : CLI_OK;
	ret = ferror(file);
	errno = 0;
	ret |= fclose(file);
	return ret ? failed(cli, "write", path) : CLI_OK;
}
