// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The files that vmpt timeline writes, --chrome and --html: "-" is the standard output; two outputs
 * are never one file.
 */
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

static int check_input(const struct cli *cli, const char *path)
{
	struct stat st;

	if (!path || is_stdout(path) || stat(path, &st) || !cli_is_input(cli, &st))
		return CLI_OK;
	return cli_usage(cli, "%s is an input: it would be overwritten", path);
}

int timeline_out_check(const struct cli *cli, const char *chrome, const char *html, bool prints)
{
	if (chrome && html && is_same(chrome, html))
		return cli_usage(cli, "--chrome and --html: both are %s", chrome);
	if (prints && (is_stdout(chrome) || is_stdout(html)))
		return cli_usage(cli,
				 "%s: - is the standard output, which --json or --summary needs",
				 is_stdout(chrome) ? "--chrome" : "--html");
	return check_input(cli, chrome) ? CLI_USAGE : check_input(cli, html);
}
