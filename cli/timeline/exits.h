/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* vmpt exits: its counts (exits-count.c, exits-histogram.c). */
#ifndef VMPT_CLI_EXITS_H
#define VMPT_CLI_EXITS_H

#include "cli/timeline/internal.h"
#include "util/hash.h"

/* ---- exits-histogram.c: lengths in buckets of under 1 % ---- */

#define HISTOGRAM_SUB 128 /* buckets per octave */

struct histogram {
	u64 *octave[64]; /* HISTOGRAM_SUB counts each; NULL: none */
	u64 count, sum, max;
};

/* False: no memory. */
bool histogram_add(struct histogram *h, u64 value);
/* The value that @permille of all do not exceed, at most 0.8 % too large, never above the max. */
u64 histogram_at(const struct histogram *h, unsigned int permille);
void histogram_free(struct histogram *h);

/* ---- exits-count.c ---- */

/* At most this many rows of VMs and reasons; further exits are in one row per VM, "others". */
#define EXITS_ROWS_MAX 4096
/* At most this many IPs are counted, of all VMs. */
#define EXITS_IPS_MAX 262144

struct exits_row {
	u32 vm;
	u16 reason; /* VMPT_REASON_UNKNOWN: unknown */
	bool others, halted, guessed;
	u64 exits;
	u64 unsure; /* of them those whose return was not seen, or may belong to another exit */
	struct histogram out;
	/* Of those in .out: all bounds added up, and the widest of one, either side. */
	struct timeline_bounds bounds;
	u64 one_error;
};

struct exits_ip {
	u64 ip, count;
	u32 row;
};

struct exits {
	struct exits_row *row;
	size_t rows;
	struct exits_ip *ip;
	size_t ips;
	struct vmpt_hash by_ip; /* and by row */
	u64 seed;
	u64 ips_left_out;
};

/* Count a span. 0, or an exit code after a message. */
int exits_span(struct exits *e, const struct timeline *t, const struct timeline_span *s);
/* Rows by VM and total time, IPs by row and count: what is shown. */
void exits_sort(struct exits *e);
void exits_free(struct exits *e);
/* The IPs of row number @row after exits_sort(): the first and how many. */
const struct exits_ip *exits_ips(const struct exits *e, size_t row, size_t *count);

#endif
