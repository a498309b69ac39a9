/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What commands that follow the flow of a trace share (insn, coverage and others): its clocks, VMs
 * and filters, the images of its code, the names of that code, where the flow was lost, and what of
 * it all does not fit. traced.c opens, closes and warns, traced-show.c is for output.
 *
 * A command embeds a struct traced and lists TRACED_OPTIONS() and cli_filter_group,
 * cli_clock_group, cli_input_group, cli_side_group; it calls traced_open(), then for each stream
 * vmpt_flow_open() with .code and, at the flow's end, traced_note(); at the end traced_warn() and
 * cli_filter_warn().
 */
#ifndef VMPT_CLI_SYMBOLS_TRACED_H
#define VMPT_CLI_SYMBOLS_TRACED_H

#include "cli/sideinfo/sideinfo.h"
#include "cli/symbols/image.h"
#include "cli/symbols/names.h"
#include "decoder/vmpt-flow.h"

/* A SOURCE of --code. */
struct traced_image {
	struct vmpt_image *image;
	const struct code_given *given;
	bool used;		  /* its VM has a name here, or it is of all */
	bool traced;		  /* one of .owner is in the trace */
	struct vmpt_owner *owner; /* of which it is; none: of all */
	size_t owners;
};

/* The first gap of a reason. */
struct traced_gap {
	bool seen;
	size_t stream;
	u64 offset, ip;
	struct vmpt_space space;
};

/* Values of TRACED_OPTIONS(). */
struct traced_options {
	struct cli_strings source, symbols;
	u8 paging;  /* enum vmpt_paging */
	bool lines; /* CODE_LINES_OPTION(), of the commands that have it */
};

struct traced {
	struct traced_options o;
	bool no_times; /* of the command: clocks are opened only if filters or names need them */
	bool little;   /* of the command: names must not need the whole trace first */
	struct cli_clocks clocks;
	struct cli_times when;
	bool timed; /* the trace has times */
	struct code_files files;
	struct traced_image *image; /* files.count */
	size_t images;
	struct vmpt_code *code;	 /* of all images, for vmpt_flow_open() */
	struct code_names names; /* traced_names_open() */
	struct traced_gap gap[VMPT_FLOW_REASONS];
};

/* NOLINTBEGIN(bugprone-macro-parentheses): a type, a member */
#define TRACED_OPTIONS(type, field)                                                               \
	{ "code",                                                                                 \
	  0,                                                                                      \
	  CLI_FILE,                                                                               \
	  "[VM:]SOURCE[@ADDR]",                                                                   \
	  "the code: x.addr and x.dump, a set of pages; an ELF file or dump, with ADDR moved "    \
	  "to there; raw memory (x.ranges: with holes), or with ADDR raw bytes; VM: of this one " \
	  "only, by name or VMCS, or host; default: the images of a recording",                   \
	  CLI_AT(type, field.source),                                                             \
	  .take = code_take },                                                                    \
		CODE_SYMBOLS_OPTION(type, field.symbols), CODE_PAGING(type, field.paging)
/* NOLINTEND(bugprone-macro-parentheses) */

/* ---- traced.c ---- */

/*
 * Open clocks, filters and images, those for their VMs; a trace of RTIT is refused. @t is all 0 but
 * for .o, .no_times and .little. 0, or an exit code after a message; traced_close() in either case.
 */
int traced_open(struct cli *cli, struct traced *t);
/* Open the names of the code, of images and --symbols: .names. 0, or an exit code. */
int traced_names_open(struct cli *cli, struct traced *t);
void traced_close(struct traced *t);
/* Note which images' owners are in @flow, at its end. */
void traced_note(struct traced *t, struct vmpt_flow *flow);
/* The same of one owner. */
void traced_note_owner(struct traced *t, const struct vmpt_owner *owner);
/* Note the gap @b of stream number @i. */
void traced_note_gap(struct traced *t, struct vmpt_flow *flow, const struct vmpt_flow_batch *b,
		     size_t i);
/* A stream with losses: how many bytes, and why, for the command's last line and exit code. 0 or a
 * negative error. */
int traced_losses(struct cli *cli, size_t i);

/* The time of each packet of a stream. */
struct traced_time {
	struct vmpt_timed *timed; /* NULL: no times */
	struct vmpt_timed_batch batch;
	size_t item;
	bool ended;
	u64 tsc; /* of the last packet; VMPT_TIME_NONE */
};

/* Open those of stream number @i: none if the trace has none. 0 or a negative error; close it. */
int traced_time_open(struct cli *cli, const struct traced *t, size_t i, struct traced_time *time);
/* .tsc becomes that of the packet at @offset, which never goes back. 0 or a negative error. */
int traced_time_to(struct traced_time *time, u64 offset);
void traced_time_close(struct traced_time *time);

/* At the end: warn of images and code that do not fit the trace, of which @counts are the sum. */
void traced_warn(struct cli *cli, const struct traced *t, const struct vmpt_flow_counts *counts);
/* Whether the filters, times aside, want the instructions of @space; if so something fits them. */
bool traced_wanted(struct cli *cli, const struct vmpt_space *space);
void traced_add_counts(struct vmpt_flow_counts *to, const struct vmpt_flow_counts *from);

/* ---- traced-show.c ---- */

/* In the order of enum vmpt_flow_reason: words for people, and for JSON. */
extern const char *const traced_reason_text[VMPT_FLOW_REASONS];
extern const char *const traced_reason_key[VMPT_FLOW_REASONS];

/* The name of an owner's VM as files have it, not safe to show, or "host"; NULL: not known. @vcpu
 * (may be NULL): -1 if it is not known. */
const char *traced_vm(const struct traced *t, const struct vmpt_owner *owner, s64 *vcpu);
/* An owner's name: that of a VM with its vCPU, else its VMCS. Safe for a terminal. */
const char *traced_who(const struct traced *t, const struct vmpt_owner *owner, char buf[CLI_WHO]);
/* Begin to look for names in @space: its process, and what code_names_find() needs. */
void traced_names(const struct traced *t, const struct vmpt_space *space,
		  struct names_space *names);
/* For qsort(): VMs first, as vmpt vms has them, then by CR3 and mode. */
int traced_compare(const struct vmpt_space *a, const struct vmpt_space *b);
bool traced_same(const struct vmpt_space *a, const struct vmpt_space *b);
u64 traced_hash(const struct vmpt_space *space);
u64 traced_gaps(const struct vmpt_flow_counts *counts);
/* A table of gaps by reason after an empty line; nothing if there are none. */
void traced_print_gaps(struct cli *cli, const struct traced *t,
		       const struct vmpt_flow_counts *counts);
/* The members of an address space: whose it is, its CR3 and mode. */
void traced_json_space(struct cli *cli, const struct traced *t, json_t *o,
		       const struct vmpt_space *space);
/* "gaps": by reason. */
void traced_json_gaps(struct cli *cli, json_t *o, const struct vmpt_flow_counts *counts);
/* "images" of a document: the lookups of pages in each, by their results. */
json_t *traced_json_images(struct cli *cli, const struct traced *t);

#endif
