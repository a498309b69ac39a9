/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The filters of all commands that read a trace (docs/filters.md): --cpu --vm --vcpu --cr3 --owner
 * --from --to. What fits all filters that are given is wanted; of one filter's values any fits. A
 * command lists cli_filter_group, calls cli_filter_open() once its clocks are open, and then asks
 * about owners, times, or the bytes of a stream.
 */
#ifndef VMPT_CLI_SIDEINFO_FILTER_H
#define VMPT_CLI_SIDEINFO_FILTER_H

#include "cli/sideinfo/when.h"

#define CLI_FILTER_CR3S	 64
#define CLI_FILTER_VCPUS 64

struct cli_filter {
	/* As given */
	struct cli_strings vm, owner;
	struct cli_cpu_range vcpu[CLI_FILTER_VCPUS]; /* numbers of vCPUs */
	size_t vcpus;
	u64 cr3[CLI_FILTER_CR3S];
	size_t cr3s;
	const char *from, *to;				      /* NULL: not given */
	char *vm_word[CLI_STRINGS], *owner_word[CLI_STRINGS]; /* owned */
	bool exact[CLI_STRINGS]; /* a VM has all of it as its name: no vCPU's number */

	/* cli_filter_open() */
	const struct cli_clocks *clocks; /* NULL: none are open */
	u64 from_tsc, to_tsc;		 /* 0, ~0: not given */
	bool seen;			 /* something was wanted */

	/* The last answer, by owner */
	struct vmpt_owner last;
	const char *last_vm;
	s64 last_vcpu;
	bool last_wanted, has_last;
};

extern const struct cli_group cli_filter_group;

static inline struct cli_filter *cli_filter(const struct cli *cli)
{
	return cli_values(cli, &cli_filter_group);
}

/* What a command cannot do. */
#define CLI_FILTER_CR3	  1 /* --cr3 */
#define CLI_FILTER_TIME	  2 /* --from, --to */
#define CLI_FILTER_OTHERS 4 /* --owner with host or unknown: it is about VMs only */

/*
 * Before anything else: filters that the trace or the command does not have. @not: CLI_FILTER_...;
 * @why: the end of the message, "clocks are those of VMs". 0, or an exit code after a message.
 */
int cli_filter_check(struct cli *cli, unsigned int not, const char *why);
/* Whether there are any, --cpu aside. */
bool cli_filter_any(const struct cli *cli);
/* Whether owners are filtered. */
bool cli_filter_owners(const struct cli *cli);
/* Whether they need clocks: for times, or for names of VMs. Never for RTIT. */
bool cli_filter_clocks(const struct cli *cli);
/*
 * @clocks: open, and open as long as the filters are used; NULL: cli_filter_clocks() is false.
 * @when: the times of the trace, or NULL likewise. Checks names and times. 0, or an exit code.
 */
int cli_filter_open(struct cli *cli, const struct cli_clocks *clocks, const struct cli_times *when);
/* The same for a command that needs clocks for nothing else: opens @clocks if the filters do. */
int cli_filter_open_clocks(struct cli *cli, struct cli_clocks *clocks);

/* Whether an owner is wanted at host tick @tsc (VMPT_TIME_NONE: not known), times aside. */
bool cli_filter_owner(struct cli *cli, const struct vmpt_owner *owner, u64 tsc);
/* The same of a VM whose names are known: @vm NULL: it has none; @vcpu -1: not known. */
bool cli_filter_who(struct cli *cli, const struct vmpt_owner *owner, const char *vm, s64 vcpu);
/*
 * For commands that know a VMCS as a whole, not at one time: whether any of its names is wanted, or
 * the owner is.
 */
bool cli_filter_vmcs(struct cli *cli, const struct vmpt_owner *owner);
/* Whether a time is wanted; one that is not known is if --from is not given. */
bool cli_filter_time(const struct cli *cli, u64 tsc);
/* Whether CR3 is one of --cr3. */
bool cli_filter_cr3(const struct cli *cli, bool known, u64 cr3);

/* ---- the wanted bytes of a stream of Intel PT ---- */

/* Consecutive packets of one owner that are wanted. */
struct cli_filter_part {
	struct vmpt_slice slice; /* .offset, .size, TSCs, CR3s and counts of these bytes only */
	u64 start, end;		 /* host ticks of its first packet and of the first one after it */
};

struct cli_filter_walk;

/*
 * Walk stream number @i. @owners: false: all owners are wanted. 0 or a negative error; *@walk is
 * NULL if there is nothing to leave out.
 */
int cli_filter_walk_open(struct cli *cli, size_t i, bool owners, struct cli_filter_walk **walk);
void cli_filter_walk_close(struct cli_filter_walk *walk);
/*
 * Whether the bytes at @offset, which never goes back, are wanted. *@end: up to where the answer is
 * the same. 1, 0, or a negative error. @walk NULL: all are.
 */
int cli_filter_at(struct cli_filter_walk *walk, u64 offset, u64 *end);
/* The part that begins at or before @offset and ends after it, else the next one; NULL: none. */
const struct cli_filter_part *cli_filter_part(struct cli_filter_walk *walk, u64 offset, int *err);

/*
 * Cut @slice, of the library's splitter, to what @walk and the owners want: its bytes, TSCs, CR3s
 * and counts. *@begins, *@ends: its first and last byte are wanted. 1, 0: nothing of it is wanted,
 * or a negative error.
 */
int cli_filter_slice(struct cli *cli, struct cli_filter_walk *walk, struct vmpt_slice *slice,
		     bool *begins, bool *ends);

/* At the end: warn if nothing was wanted. */
void cli_filter_warn(const struct cli *cli);

#endif
