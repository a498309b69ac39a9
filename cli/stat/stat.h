/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* vmpt stat: the counts; for RTIT more than packets (rtit.c). */
#ifndef VMPT_CLI_STAT_H
#define VMPT_CLI_STAT_H

#include "cli/sideinfo/sideinfo.h"

/* Room for the kinds of both. */
#define STAT_KINDS ((unsigned int)VMPT_PT_KINDS)
#define STAT_CR3S  64

_Static_assert((unsigned int)VMPT_RTIT_KINDS <= STAT_KINDS, "no room for RTIT's kinds");

struct stat_tally {
	u64 count, bytes;
};

/* How an RTIT stream was recorded. */
struct stat_rtit {
	struct stat_tally cycles; /* counts after packets, not packets themselves */
	/* Between PSBs with no loss in between */
	u64 psbs, psb_sum, psb_min, psb_max;
	u64 errata[VMPT_RTIT_ERRATA + 1];
	u32 mtc_ranges; /* bits */
	/* Of a stream: STSs, and ticks by MTCs where none of them is lost. */
	bool has_tsc;
	u64 first_tsc, last_tsc, mtc_ticks;
	u64 cr3[STAT_CR3S];
	u32 cr3s;
	bool more_cr3s;
	enum vmpt_cycle_acc found; /* by the bytes; AUTO: unknown */
	bool is_total;		   /* perhaps of streams with and without cycle counts */
};

struct stat_counts {
	struct stat_tally kind[STAT_KINDS];
	struct stat_tally loss[VMPT_E_NR]; /* by cause; count: how many losses */
	u64 size;			   /* of the stream(s), what filters leave out aside */
	struct stat_rtit rtit;
};

/* The current stream. */
struct stat_walk {
	struct cli *cli;
	const struct vmpt_stream *stream;
	struct stat_counts *c;
	struct cli_filter_walk *walk; /* Intel PT; NULL: all is wanted */
	int err;
	/* RTIT: */
	u64 psb;
	bool psb_known;
	u64 mtc; /* the last one's payload */
	bool mtc_known;
};

/* What differs between Intel PT and RTIT; all members but the first two may be NULL. */
struct stat_ops {
	const char *(*kind_name)(unsigned int kind);
	void (*count)(struct stat_walk *w, const struct vmpt_batch *b);
	void (*start)(struct stat_walk *w); /* of a stream */
	void (*print)(const struct cli *cli, const struct stat_rtit *c);
	void (*json)(struct cli *cli, json_t *o, const struct stat_rtit *c);
};

extern const struct stat_ops stat_rtit_ops;

/* ---- stat.c ---- */

void stat_count_loss(const struct stat_walk *w, u64 at, const struct vmpt_item *item);
json_t *stat_json_tally(struct cli *cli, const char *what, const struct stat_tally *n);

/* ---- rtit.c ---- */

void stat_rtit_add(struct stat_rtit *to, const struct stat_rtit *from);

#endif
