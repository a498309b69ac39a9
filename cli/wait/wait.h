/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Inside vmpt wait: who had the CPU while a vCPU was out of the guest (count.c), shown by wait.c.
 */
#ifndef VMPT_CLI_WAIT_H
#define VMPT_CLI_WAIT_H

#include "cli/timeline/timeline.h"
#include "util/hash.h"

/* At most this many pairs of vCPUs; further time is others'. */
#define WAIT_PAIRS_MAX 65536
/* vCPUs that are out at once, of a CPU, and others that one of them waits for; likewise. */
#define WAIT_OUT_MAX 64
#define WAIT_FOR_MAX 64

/* What the time is spent on, beside enum timeline_part. */
enum wait_kind {
	WAIT_HOST = TIMELINE_HOST,
	WAIT_VCPU = TIMELINE_WAIT,
	WAIT_HALTED = TIMELINE_HALTED,
	WAIT_UNTRACED = TIMELINE_UNTRACED,
	WAIT_OTHERS = TIMELINE_PARTS, /* vCPUs beyond the limits */
	WAIT_KINDS,
};

/* How long a vCPU was out while its CPU did one thing. */
struct wait_row {
	u32 vcpu; /* that was out */
	u32 whom; /* WAIT_VCPU: that ran */
	u8 kind;
	u64 times; /* times out of the guest in which it happened, and the longest of them */
	struct timeline_longest longest;
	struct timeline_part_time time;
	/* WAIT_VCPU: the host's between two runs of .whom, which is in WAIT_HOST's .time */
	u64 host;
};

struct wait_out;

struct wait {
	struct wait_row *row; /* pairs; after wait_finish() all rows, as shown */
	size_t rows;
	struct vmpt_hash pairs;
	struct wait_out *out; /* by vCPU */
	size_t outs;
	struct wait_cpu *cpu; /* by stream */
};

/* All 0 to start. All return 0, or an exit code after a message. */
int wait_span(struct wait *w, const struct timeline *t, const struct timeline_span *s);
/* All spans were added: rows by vCPU, which are by the time that they waited for others. */
int wait_finish(struct wait *w, const struct timeline *t);
void wait_free(struct wait *w);

/* "db vcpu 0", "host", "halted", "not traced", "others". */
const char *wait_whom(const struct timeline *t, const struct wait_row *row);

/* ---- json.c ---- */

void wait_json(const struct wait *w, const struct timeline *t, u64 top);

#endif
