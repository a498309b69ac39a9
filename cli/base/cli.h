/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Shared by the subcommands of vmpt: options, opening traces, messages,
 * tables, colour, progress, JSON and exit codes. A subcommand is one struct
 * cli_command with tables of its options.
 */
#ifndef VMPT_CLI_H
#define VMPT_CLI_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "decoder/vmpt-decode.h"

enum cli_exit {
	CLI_OK = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2,
	CLI_LOSSES = 3, /* finished, but bytes of the trace were lost */
};

struct cli;
struct cli_folder;

enum cli_kind {
	CLI_FLAG,   /* bool: true if given */
	CLI_NUMBER, /* an integer from .min to .max; .max 0: no limit */
	CLI_STRING, /* const char *; a struct cli_strings takes several */
	CLI_FILE,   /* likewise, the name of a file that is read: never overwritten */
	CLI_OUTPUT, /* likewise, that is written; "-": the standard output */
	CLI_DIR,    /* likewise, of a folder; not empty */
	CLI_WORD,   /* one of .words: its index, in a const char * itself */
	CLI_LIST,   /* .take for each word between commas */
	CLI_OTHER,  /* .take for all of it */
};

#define CLI_STRINGS 64

/* An option that may be repeated. */
struct cli_strings {
	const char *s[CLI_STRINGS];
	size_t count;
};

/*
 * An option of the command line. Parsing, --help, the man page and shell completion are derived
 * from it.
 */
struct cli_option {
	const char *name; /* the long one, without dashes; NULL ends a table */
	char letter;	  /* 0: none */
	enum cli_kind kind;
	const char *arg;     /* what --help calls its value; NULL: CLI_FLAG */
	const char *help;    /* .words, .initial and "may be repeated" are added */
	const char *initial; /* its value if it is not given; NULL: all 0 */
	const char *words;   /* separated by ", "; only for completion unless CLI_WORD */
	const char *(*word)(unsigned int i); /* more of them, up to NULL */
	const char *without;		     /* its value if it has none; NULL: it needs one */
	bool rtit;			     /* only for RTIT: in vmpt help rtit */
	u64 min, max;
	size_t at, size; /* CLI_AT(): where the value goes */
	size_t given;	 /* CLI_GIVEN(): the bool to set; 0: none */
	/*
	 * Stores the value or, for CLI_STRING to CLI_DIR, checks it before it is stored.
	 * @to: by .at. 0, or -1 after a message.
	 */
	int (*take)(struct cli *cli, void *to, const char *arg);
};

/* A field of the struct that holds the values of a table. */
#define CLI_AT(type, field) .at = offsetof(type, field), .size = sizeof(((type *)0)->field)
/* A bool of it, not the first field. */
#define CLI_GIVEN(type, field) .given = offsetof(type, field)

/* Options that belong together, for the commands that list them. */
struct cli_group {
	const char *title; /* above them in --help; NULL: "Options of vmpt COMMAND" */
	const struct cli_option *option;
	bool common; /* in vmpt help common; a command's own --help has only the names */
	bool in_cli; /* the values go into struct cli; else, without .size, into the command's */
	size_t size; /* of a struct for them: cli_values() */
	int (*open)(struct cli *cli); /* the trace is open: 0, or an exit code after a message */
	void (*close)(struct cli *cli);
	void (*document)(struct cli *cli, json_t *doc); /* adds to the head of a JSON document */
};

#define CLI_GROUPS 12

/*
 * --csv: the table of a command, made of its JSON. A row is an object of the document's @list, or
 * of each of them one of its @each (an array, or an object whose keys are then the column "key").
 */
struct cli_csv {
	const char *list, *each; /* .each may be NULL */
	/* Up to NULL: a key, of what is in an object "exit/ip"; "out_*": _ns or _ticks. */
	const char *const *column;
};

struct cli_command {
	const char *name;
	const char *title;    /* for the list of commands */
	const char *about;    /* for --help */
	const char *examples; /* for --help, whole lines */
	const char *args;     /* what --help calls its arguments; NULL: the files of a trace */
	const char *lacking;  /* the message if there are none; NULL: none are needed */
	/* Besides cli_common_group, which all have */
	const struct cli_group *group[CLI_GROUPS + 1];
	const struct cli_csv *csv;   /* up to one without .list, the default first; NULL: none */
	size_t data_size;	     /* of the command's struct, cli->data */
	int (*run)(struct cli *cli); /* returns enum cli_exit */
};

/* Of the commands that read a trace; --json; of all commands. */
extern const struct cli_group cli_input_group, cli_output_group, cli_common_group;
/* --mode, of the commands that write files. */
extern const struct cli_group cli_mode_group;

#define CLI_CPU_RANGES 64

struct cli_cpu_range {
	int first, last;
};

/* Why bytes have no owner. */
enum cli_lost {
	CLI_LOST,     /* not packets */
	CLI_UNPROVEN, /* an OVF or TIP.PGD() before them, and nothing proved the owner */
	CLI_TOO_MANY, /* split: too many VMCSs */
	CLI_LOSTS
};

/* Losses, for the summary and the exit code. */
struct cli_loss {
	u64 count, bytes;
	const struct vmpt_stream *stream; /* where the first one was */
	u64 offset, size;
	int err;   /* CLI_LOST: enum vmpt_error */
	u64 ccnts; /* of the count those of VMPT_E_CCNT */
};

struct cli_progress {
	u64 total, shown_at; /* bytes */
	u64 before;	     /* bytes of the streams that are done */
	u64 ahead, behind;   /* offsets in the current stream, of the first walk and the second */
	unsigned int walks;  /* over the same bytes: 1 or 2 */
	double after, every; /* seconds */
	const char *what;    /* is done, shown at the end of the line; "" */
	struct timespec start, shown;
	bool on, drawn;
};

enum cli_format { CLI_FORMAT_AUTO, CLI_FORMAT_PT, CLI_FORMAT_RTIT };

/* --host-only */
enum cli_when { CLI_AUTO, CLI_YES, CLI_NO };

enum cli_color { CLI_COLOR_AUTO, CLI_COLOR_ALWAYS, CLI_COLOR_NEVER };

/* Identity of a file, independent of its name. */
struct cli_file_id {
	dev_t dev;
	ino_t ino;
	mode_t mode;
	off_t size; /* when it was noted, before it is read */
	char *path;
};

/* One run of a command. */
struct cli {
	const struct cli_command *cmd;
	void *data;		  /* the command's struct */
	void *values[CLI_GROUPS]; /* cli_values() */

	/* Options of the groups here */
	bool json, quiet, help, version;
	/* .json as well: see struct cli_csv; of the list that is being printed: */
	bool csv, csv_ns;
	const struct cli_csv *csv_table;
	enum cli_color color;
	enum cli_format format;
	enum cli_when host_only; /* as given; options.host_only is what was decided */
	struct cli_cpu_range cpu[CLI_CPU_RANGES];
	size_t cpus; /* 0: all */
	struct vmpt_options options;

	char **argv; /* the command line, options before files */
	int options_end;

	char **file; /* as given */
	char **path; /* without @CPU */
	int files;
	struct cli_folder *folder; /* the recording of the files; NULL: none */

	unsigned int mode; /* --mode: permissions of the files that are written */

	struct cli_file_id *input; /* of the files that stat() could read */
	size_t inputs;

	struct vmpt_trace *trace;
	const struct vmpt_stream **stream; /* the selected ones */
	size_t streams;

	bool stdout_tty;
	bool wide; /* --wide */
	bool paint_out, paint_err;
	bool out_of_memory; /* while building a JSON document or a table */
	bool lost_events;   /* perf says that it lost some */
	bool packets_only;  /* bytes without a proven owner are reported, but no loss */
	int write_errno;    /* why stdout cannot be written, 0: it can */
	struct cli_loss loss[CLI_LOSTS];
	struct cli_progress progress;
	json_t *warnings; /* all of cli_warn(), also with -q; NULL: not wanted */
};

/* ---- run.c ---- */

/* Run @cmd; @argv[0] is the word before its options. Returns enum cli_exit. */
int cli_run(const struct cli_command *cmd, int argc, char **argv);

/*
 * Open the trace @path as the command's own would be with the same options, for a comparison. 0, or
 * an exit code after a message; @path stays. cli_other_close(), which returns the exit code that
 * its losses ask for, in either case.
 */
int cli_other_open(struct cli *cli, const char *path, struct cli *other);
int cli_other_close(struct cli *other, int code);

/* ---- options.c ---- */

/* Read the command line. -1: go on; else the exit code (help was shown, usage is wrong). */
int cli_options(struct cli *cli, int argc, char **argv);
/* The struct of @group's values. NULL: it is not among the command's groups. */
void *cli_values(const struct cli *cli, const struct cli_group *group);
/* Group number @i of @cmd's options, those of all commands last; then NULL. */
const struct cli_group *cli_group(const struct cli_command *cmd, size_t i);
/* A number, decimal or 0x…; @what names it in the message. */
int cli_parse_u64(struct cli *cli, const char *what, const char *arg, u64 *value);

/* --cpu, of cli/sideinfo/filter.h: the .take of its option. */
int cli_take_cpu(struct cli *cli, void *to, const char *arg);

/* ---- help.c ---- */

/* --help */
int cli_help(const struct cli *cli);
/* vmpt help common and vmpt help rtit, of @count commands. False: no such topic. */
bool cli_help_topic(const char *topic, const struct cli_command *const *cmd, size_t count);
/* Print the tables of @count commands as JSON, the input for man pages and completion. */
int cli_describe(const struct cli_command *const *cmd, size_t count);

/* ---- input.c ---- */

/* Open the files, choose the streams. 0, or the exit code after a message. */
int cli_open(struct cli *cli);
void cli_close(struct cli *cli);
/* Before the file @path is read: never overwrite it, and note its size. 0, or an exit code. */
int cli_note_input(struct cli *cli, const char *path);
/* Whether the file of @st is one of the inputs, under any name. */
bool cli_is_input(const struct cli *cli, const struct stat *st);
/* Whether @stream is one that --cpu chooses. */
bool cli_chosen(const struct cli *cli, const struct vmpt_stream *stream);
/* Whether the trace is RTIT. */
bool cli_is_rtit(const struct cli *cli);
/* "CPU 3", "thread 77"; "trace" if neither is known. */
const char *cli_stream_name(const struct vmpt_stream *stream, char buf[32]);
/* "3", "tid 77" or "–", for tables. */
const char *cli_stream_cpu(const struct vmpt_stream *stream, char buf[32]);

/* ---- sigbus.c ---- */

/* A mapped input that becomes shorter ends the command @name with a message and CLI_FAILED. */
void cli_catch_sigbus(const char *name);
/* Whether all inputs are at least as long as when they were noted; false after a message. */
bool cli_inputs_whole(const struct cli *cli);

/*
 * The next line of @f, of which up to @room - 1 bytes go into @line, with a zero after them.
 * Returns the bytes of the whole line with its newline, 0 at the end: memory does not follow a
 * line's length.
 */
size_t cli_getline(char *line, size_t room, FILE *f);

/* ---- output.c ---- */

enum cli_paint {
	CLI_PLAIN,
	CLI_BOLD,
	CLI_DIM,
	CLI_RED,
	CLI_GREEN,
	CLI_YELLOW,
	CLI_BLUE,
	CLI_MAGENTA,
	CLI_CYAN,
	CLI_PAINTS
};

void cli_output_start(struct cli *cli);
/* Columns of the terminal that tables are for; 0: any width will do. */
size_t cli_room(const struct cli *cli);
/* Flush and check stdout, report losses; the command's exit code. */
int cli_finish(struct cli *cli, int code);
/* True once stdout cannot be written: a command stops its work then. */
bool cli_output_failed(struct cli *cli);
/* The escape sequence that starts @paint on stdout, "" without colour. */
const char *cli_paint(const struct cli *cli, enum cli_paint paint);

void cli_error(const struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cli_warn(const struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What was decided, for a user to know. */
void cli_note(const struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Warn that a line of a JSON Lines file is skipped; only the first five. @skipped counts them. */
void cli_warn_line(const struct cli *cli, const char *file, size_t number, const char *why,
		   size_t *skipped);
/* At the end of the file: warn how many more. */
void cli_warn_lines(const struct cli *cli, const char *file, size_t skipped);
/* Both return an exit code. */
int cli_usage(const struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int cli_no_memory(const struct cli *cli);

/* Count a loss of @size bytes at @offset; @err: see struct cli_loss. */
void cli_lose(struct cli *cli, enum cli_lost why, const struct vmpt_stream *stream, u64 offset,
	      u64 size, int err);
/* Count the losses of a stream, or of a part of it. */
void cli_lose_all(struct cli *cli, enum cli_lost why, const struct vmpt_stream *stream,
		  const struct vmpt_losses *losses);
/* Count a slice if it is a loss or has no proven owner; false: neither. */
bool cli_lose_slice(struct cli *cli, const struct vmpt_stream *stream,
		    const struct vmpt_slice *slice);
/* Describe the loss at @offset. */
const char *cli_loss_text(const struct vmpt_stream *stream, u64 offset, int err, char *buf,
			  size_t len);

/* "1,206,987" */
const char *cli_number(u64 value, char buf[32]);

/*
 * Show the library's progress. @walks: 2 if it walks over each stream twice, one
 * walk trailing the other. $VMPT_PROGRESS_AFTER is for tests.
 */
void cli_progress_start(struct cli *cli, unsigned int walks);
/* The same for a scan of all CPUs, once, before the command's own work: what it does. */
void cli_progress_scan(struct cli *cli, const char *what);
/* Stream number @i is next. */
void cli_progress_stream(struct cli *cli, size_t i);
void cli_progress_end(struct cli *cli);

/* ---- table.c ---- */

enum cli_align {
	CLI_LEFT,  /* false */
	CLI_RIGHT, /* true */
	CLI_NAMES, /* left; they may be cut where a terminal is too narrow */
	CLI_SPARE, /* as CLI_RIGHT; left out where a terminal is too narrow; never the first */
};

struct cli_column {
	const char *title;
	u8 align; /* enum cli_align */
};

struct cli_table;

struct cli_table *cli_table_new(struct cli *cli, const struct cli_column *column, size_t columns);
/* The next cell, row by row. */
void cli_cell(struct cli_table *table, enum cli_paint paint, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same; @valid false prints "–". */
void cli_cell_number(struct cli_table *table, bool valid, u64 value);
/* Fill the row with empty cells. */
void cli_row_end(struct cli_table *table);
/* Print it, with @indent before each line, and free it. */
void cli_table_print(struct cli_table *table, const char *indent);

/*
 * --csv: the header line, and a row of an object; RFC 4180's quotes, lines end with a newline.
 * @ns: times are in ns, else in ticks.
 */
void cli_csv_header(const struct cli_csv *csv, bool ns, FILE *out);
void cli_csv_rows(const struct cli_csv *csv, const json_t *o, bool ns, FILE *out);

/* ---- json.c ---- */

/* "format" of all documents: raised by a change other than new keys (docs/json.md). */
#define CLI_JSON_FORMAT 1
/* Integers up to here are exact in a double, which many readers use. */
#define CLI_JSON_EXACT (1ULL << 53)

/* obj[key] = value; takes ownership of @value, records a lack of memory in @cli. */
void cli_json_set(struct cli *cli, json_t *obj, const char *key, json_t *value);
void cli_json_add(struct cli *cli, json_t *array, json_t *value);
/* An integer; beyond CLI_JSON_EXACT a string as cli_json_hex(). */
void cli_json_number(struct cli *cli, json_t *obj, const char *key, u64 value);
/* Integer nanoseconds; @key ends in "_ns". */
void cli_json_ns(struct cli *cli, json_t *obj, const char *key, double seconds);
/* "tsc_hz", an integer; null if it is not known (0). */
void cli_json_hertz(struct cli *cli, json_t *obj, double hertz);
/* Addresses and TSC values are strings "0x…": they do not fit a double. */
void cli_json_hex(struct cli *cli, json_t *obj, const char *key, u64 value);
/* A signed number of 64 bits: a decimal string. */
void cli_json_signed(struct cli *cli, json_t *obj, const char *key, s64 value);
void cli_json_string(struct cli *cli, json_t *obj, const char *key, const char *value);
/* "cpu" and "tid", null where not known. */
void cli_json_stream(struct cli *cli, json_t *obj, const struct vmpt_stream *stream);
/* "back", why the time went back there (enum vmpt_back); nothing if it did not. */
void cli_json_back(struct cli *cli, json_t *obj, unsigned int back);
/* A document with "format", the command and the version. */
json_t *cli_json_head(struct cli *cli);
/* The same with the trace's files and their format. */
json_t *cli_json_document(struct cli *cli);
/* obj["warnings"]: all so far, strings; obj["losses"]. */
void cli_json_end(struct cli *cli, json_t *obj);
/* Print it to @out and free it; one line if @line. 0, or an exit code after a message. */
int cli_json_print(struct cli *cli, json_t *doc, FILE *out, bool line);

/* Print @doc with each member on a line, and free it. */
void cli_json_members(struct cli *cli, json_t *doc, FILE *out);

/*
 * Print a document with one array, one object per line, without holding it in memory:
 * @doc's members (ownership passes), then @key; its objects; the end with cli_json_end().
 */
void cli_json_list_open(struct cli *cli, json_t *doc, const char *key, FILE *out);
void cli_json_list_add(struct cli *cli, json_t *o, bool first, FILE *out);
void cli_json_list_close(struct cli *cli, FILE *out);
/* The same without these: they are in @doc. */
void cli_json_list_end(const struct cli *cli, FILE *out);

/* ---- owner.c ---- */

/* Bytes of a name that is shown; longer ones are cut, on a terminal or not. */
#define CLI_WHO 1100

/* "host", "3b56ee000", "vm?" (VMCS unknown), "unknown". */
const char *cli_owner_name(const struct vmpt_owner *owner, char buf[32]);
/* A name from a file, safe to show (safe-text.h); a long one is cut. */
void cli_safe_name(const char *name, char buf[CLI_WHO]);
/* The word for owner->kind in JSON: "host", "vm", "vm_any", "unknown". */
const char *cli_owner_kind(const struct vmpt_owner *owner);
const char *cli_sure_name(unsigned int sure);
enum cli_paint cli_owner_paint(const struct vmpt_owner *owner);

#endif
