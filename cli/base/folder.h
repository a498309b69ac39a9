/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A folder with a recording (docs/record.md): recording.json, the traces that it lists, the side
 * record, and the guests' code in symbols/ and images/. It may come from anywhere, so no name in it
 * leaves the folder, and no link is followed.
 */
#ifndef VMPT_CLI_FOLDER_H
#define VMPT_CLI_FOLDER_H

#include "cli/base/cli.h"

#define CLI_FOLDER_HEAD	  "recording.json"
#define CLI_FOLDER_FORMAT 1
#define CLI_FOLDER_SIDE	  "vms.jsonl"
#define CLI_FOLDER_PERF	  "perf.data"
/* Of vmpt record before it wrote recording.json */
#define CLI_FOLDER_OLD_SIDE "record.jsonl"
/* Their files are named as --code names them: [VM:]NAME[@ADDR]. */
#define CLI_FOLDER_SYMBOLS "symbols"
#define CLI_FOLDER_IMAGES  "images"

struct cli_folder {
	char *path; /* of the folder */
	char *head; /* of recording.json */
	json_t *doc;
	bool whole;  /* the folder was given, not files in it */
	char *side;  /* of the side record; NULL: none */
	char **file; /* of the traces, instead of the command line's; NULL: those */
	int *cpu;    /* of each; -1: not given */
	int files;
};

/*
 * Look for a recording in or around the files of the command line, cli->path. cli->folder stays
 * NULL if there is none; .doc is NULL without recording.json. @cpu: of each file, -1: not given;
 * the recording fills in what it knows. 0, or an exit code after a message.
 */
int cli_folder_open(struct cli *cli, int *cpu);
void cli_folder_close(struct cli *cli);

/*
 * The files of the subfolder @name in the order of their names, without links and other things,
 * which it warns of. free() each and the array.
 */
int cli_folder_list(struct cli *cli, const char *name, char ***file, size_t *count);

#endif
