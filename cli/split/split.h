/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* vmpt split: the files it writes and their index. */
#ifndef VMPT_CLI_SPLIT_H
#define VMPT_CLI_SPLIT_H

#include "cli/split/perf-out.h"
#include "cli/split/slices.h"
#include "cli/sideinfo/sideinfo.h"
#include "decoder/vmpt-extract.h"

/* Files kept open at once; the least recently used one makes room. */
#define SPLIT_OPEN_MAX 64

/* Bytes of a file name; names of a side record have up to 160. */
#define SPLIT_NAME 224

/* Who a VMCS was for a time. */
struct split_who {
	const char *vm; /* owned by the clocks; NULL: unknown */
	s64 vcpu;	/* -1: not known */
};

/* VMCSs whose last result is cached. */
#define SPLIT_LAST 256

struct split_last {
	u64 vmcs;
	struct split_who who;
	u64 number; /* 0: none */
};

/* One stream that is written. */
struct split_out {
	char name[SPLIT_NAME]; /* of the file in the directory */
	struct vmpt_owner owner;
	size_t stream; /* index in cli->stream */
	size_t who;    /* index in split.who plus 1; 0: not known. For .per_vm */
	u64 slices, source_bytes, bytes;
	FILE *file; /* NULL: not open now */
	u64 used;   /* when last, by split.clock */
	struct perf_out perf;
	u64 owner_number; /* of the index, if .owner_known */
	bool owner_known;
	bool joined;   /* with --per-vm: .name is the VM's file, in which it is .perf_part */
	u32 perf_part; /* from 0 on, in the order of the file's CPUs */
};

/* A file that an index lists. */
struct split_file {
	char *name;
	s64 size;
	bool sized;
};

struct split_files {
	struct split_file *file; /* sorted by name */
	size_t count;
};

struct split {
	const char *dir;
	bool conceal, force;
	u8 on_clock;		  /* enum vmpt_extract_clock */
	struct cli_clocks clocks; /* of .on_clock and .names */
	struct cli_vm_names names;
	bool perf;   /* streams are perf.data */
	bool per_vm; /* and joined by VM */
	bool clock_given;
	struct code_options wanted;
	struct code_files files;
	struct perf_code code;	     /* of all of them */
	struct vmpt_trace_info info; /* for .perf: the info on the trace for perf */

	int dir_fd, new_fd; /* the directory, locked; the folder in it for a new split */
	dev_t dev;
	bool made;		/* the directory, by this command */
	struct split_files old; /* of the earlier split */
	struct split_out *out;
	size_t outs;
	size_t first;  /* output of the current CPU */
	size_t stream; /* the current CPU, index in cli->stream */
	unsigned int open;
	u64 clock;
	bool again; /* the directory has the index of an earlier split, which may be replaced */
	u64 removed;
	struct cli_filter_walk *walk; /* of the current CPU */
	bool unwanted;		      /* the current slice */
	u64 filtered;		      /* bytes that filters left out */
	u64 unmapped;		      /* TSC packets left out */
	u64 slices, left_out;	      /* bytes not written, losses included */
	bool no_index;
	struct slices *index;
	json_t *owners, *errors;  /* as in index.json */
	struct vmpt_owner *owner; /* of .owners */
	u8 error[VMPT_E_NR];	  /* numbers in .errors, plus 1 */
	struct split_vms *vms;	  /* of .per_vm */
	struct split_who *who;
	size_t whos;
	struct split_last last[SPLIT_LAST];
};

/* ---- out.c: each 0, or 1 after a message ---- */

int split_add(struct cli *cli, const struct vmpt_owner *owner);
int split_write(struct cli *cli, struct split_out *out, const u8 *bytes, size_t n);
/* The current CPU is done: finish and close its streams, or only close them. */
int split_finish_all(struct cli *cli);
int split_close_all(struct cli *cli);
/* A new file of the split; its name is checked. */
FILE *split_create(struct cli *cli, const char *name);

/* ---- dir.c: likewise ---- */

/*
 * The name of a stream's file: "vmcs-3b56ee000.cpu2.pt", as a perf.data
 * "vmcs-3b56ee000.cpu2.perf.data", of RTIT "vm-web-vcpu0.cpu2.rtit"; the @nth of its VMCS and CPU
 * from the second on "vmcs-3b56ee000-2.cpu2.perf.data". The CPU is read from all but perf.data's
 * again.
 */
void split_name(const struct cli *cli, const struct vmpt_owner *owner,
		const struct vmpt_stream *stream, unsigned int nth, char name[SPLIT_NAME]);
/* Create, open and lock the directory. What an interrupted split left is completed or removed. */
int split_open_dir(struct cli *cli);
/* Whether the split may have a file @name: there is none, or an earlier split wrote it. */
int split_check_name(struct cli *cli, const char *name);
/* All is written: replace the earlier split by the new one. */
int split_commit(struct cli *cli);
/* Move @made from the folder of the new split into the directory, and its index. */
int split_move(struct cli *cli, const struct split_files *made);
/* Discard what was not moved. */
void split_close_dir(struct cli *cli);
void split_files_free(struct split_files *list);
/* Report the error of a file of the directory, by errno. */
int split_io_failed(struct cli *cli, const char *name);

/* ---- vm.c: likewise; nothing without --per-vm ---- */

/* The owner of a VMCS: with --per-vm each gets its own stream (struct vmpt_extract_options). */
u64 split_vm_who(void *cli, u64 vmcs, const struct vmpt_time *at);
/* Join the streams, all of them finished. */
int split_vms_write(struct cli *cli);
void split_vms_close(struct split *s);
void split_vms_print(const struct split *s);
json_t *split_json_vms(struct cli *cli);
/* The file of VM @i, or NULL: there are no more. */
const char *split_vm_name(const struct split *s, size_t i);

/* ---- index.c: likewise ---- */

int split_index_start(struct cli *cli);
int split_index_slice(struct cli *cli, const struct vmpt_extracted *slice);
int split_index_finish(struct cli *cli);
/* The "streams" of the index. */
json_t *split_json_streams(struct cli *cli);

#endif
