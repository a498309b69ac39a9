/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A file that a command writes. It is made under a temporary name in its folder and gets its own
 * name when it is complete, so that a run that is killed leaves the file of before, or a leftover
 * that the next run replaces. A file that vmpt did not write is never overwritten.
 */
#ifndef VMPT_CLI_FILE_H
#define VMPT_CLI_FILE_H

#include "cli/base/cli.h"

struct cli_file {
	FILE *f;	   /* to write to; NULL: not open */
	const char *path;  /* as given; the caller's */
	const char *name;  /* in the folder: part of @path */
	char *temporary;   /* ".NAME.vmpt-new"; NULL: .f is @path itself, a device or a FIFO */
	const char *marks; /* in the first bytes of all files of this kind */
	bool (*own)(const char *head, size_t size); /* or what looks at those; NULL */
	int folder;
};

/*
 * Create @path. @marks: what the first 4,096 bytes of a file contain that vmpt may overwrite; an
 * empty file always may be. Refused are inputs, links to files, folders, and a FIFO without a
 * reader. "-": the standard output. 0, or CLI_FAILED or CLI_USAGE after a message.
 */
int cli_file_create(struct cli *cli, const char *path, const char *marks, struct cli_file *file);
/* The same where @own says whether these @size first bytes are of a file that vmpt may overwrite.
 */
int cli_file_create_own(struct cli *cli, const char *path,
			bool (*own)(const char *head, size_t size), struct cli_file *file);
/* It is complete. 0, or CLI_FAILED after a message; @file is closed either way. */
int cli_file_commit(struct cli *cli, struct cli_file *file);
/* Discard what was written, unless it was committed. */
void cli_file_drop(struct cli_file *file);

#endif
