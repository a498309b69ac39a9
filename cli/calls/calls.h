/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The calls of a trace with names: what hot, calls, latency and the outputs for viewers share. A
 * command embeds a struct calls_source, lists TRACED_OPTIONS(struct X, source.t.o) and
 * cli_filter_group, cli_clock_group, cli_input_group, cli_side_group; it calls calls_open(), then
 * vmpt_calls_next() of .calls or calls_run() to the end, asks for the tree and its names, and ends
 * with calls_end(). Filters choose streams, times and VMs; what the tree has of others is marked
 * by calls_wanted().
 *
 * open.c opens and ends, role.c says what functions are, names.c whose and which they are.
 */
#ifndef VMPT_CLI_CALLS_H
#define VMPT_CLI_CALLS_H

#include "cli/symbols/symbols.h"
#include "decoder/vmpt-calls.h"

/* A VM, or what else owns streams: numbers of options.vm. */
struct calls_vm {
	char *name;		 /* safe: "web", "host", "20ce5b000", "unknown" */
	const char *vm;		 /* as files have it, not safe; NULL: it has no name */
	struct vmpt_owner owner; /* the first one seen */
	bool wanted; /* by the filters. A VM of which only some vCPUs are wanted is two of these */
};

/* A process, or an address space of which no process is known. */
struct calls_process {
	u32 vm;				    /* of .vm */
	struct vmpt_space space;	    /* the first one seen */
	const struct vmpt_guest_task *task; /* NULL: not known */
	char *name;  /* safe: "89 pipes"; "CR3 1ee4a000"; without a CR3 "kernel" or "unknown" */
	bool wanted; /* by the filters */
};

/* A function, of one name, whatever its address is. */
struct calls_function {
	char *name;   /* safe and bare: "vfs_read", "[unknown]"; "libc.so.6+0x1a20" or "0x41ac60"
			 where only the file or nothing is known */
	char *module; /* safe: "virtio_pci", "libc.so.6"; "": of the kernel, or not known */
	char *text;   /* "virtio_pci:vp_notify", for tables */
	bool named;   /* a symbol has it */
};

struct calls_map; /* names.c */

struct calls_source {
	struct traced t; /* options, clocks, images, names */
	struct vmpt_calls *calls;
	struct calls_vm *vm;
	size_t vms;
	struct calls_process *process;
	size_t processes;
	struct calls_function *function; /* number 0 is [unknown] */
	size_t functions;
	struct calls_map *map;
	struct cli *cli;
};

/* ---- open.c ---- */

/*
 * Open images, names and calls of the open trace. @more: .nodes_max, .stacks_max, .items; may be
 * NULL. @s is all 0 but for options. 0, or an exit code after a message; calls_close() in either
 * case.
 */
int calls_open(struct cli *cli, struct calls_source *s, const struct vmpt_calls_options *more);
/* To the end of the trace, of which only the tree is wanted. 0, or an exit code. */
int calls_run(struct calls_source *s);
/* A message for what vmpt_calls_next() returned; CLI_FAILED. */
int calls_failed(const struct calls_source *s, int err);
/*
 * After the end: losses for the exit code, warnings of what is missing, of images that do not fit,
 * of calls that were folded, of filters that nothing fits. @counts: the sum of all streams; may be
 * NULL. 0, or an exit code.
 */
int calls_end(struct calls_source *s, struct vmpt_flow_counts *counts);
void calls_close(struct calls_source *s);

/* ---- role.c ---- */

/* enum vmpt_call_role of a function of the kernel with this name. */
unsigned int calls_role(const char *name);
/* Of a part of a function ("f.cold", "f.cold.1", "f_after_hwframe") the bytes of "f"; 0: it is
 * none.
 */
size_t calls_part(const char *name);

/* ---- names.c ---- */

/* Where memory is short cli->out_of_memory is set, and they return 0. */

/* options.function and options.vm, with the struct calls_source as @opaque. */
bool calls_find_function(void *opaque, const struct vmpt_space *space, u64 ip,
			 struct vmpt_function *function);
u32 calls_find_vm(void *opaque, const struct vmpt_owner *owner);
/* The function of a node: a number below .functions. */
u32 calls_function(struct calls_source *s, const struct vmpt_call_node *node);
/* The process of an address space, a number of the calls': below .processes. */
u32 calls_process(struct calls_source *s, u32 space);
/* The process of a root, kind VMPT_CALL_ROOT; or "kernel" for the threads of a VM's kernel. */
u32 calls_root_process(struct calls_source *s, const struct vmpt_call_node *root);
/* Whether the filters want what a process did, times aside; if so something fits them. */
bool calls_wanted(struct calls_source *s, u32 process);
void calls_names_close(struct calls_source *s);

#endif
