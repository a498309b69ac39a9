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
	u64 count, sum, min, max;
};

/* False: no memory. */
bool histogram_add(struct histogram *h, u64 value);
/* The value that @permille of all do not exceed, at most 0.8 % too large, never above the max. */
u64 histogram_at(const struct histogram *h, unsigned int permille);
u64 histogram_mean(const struct histogram *h);
void histogram_free(struct histogram *h);

/* ---- exits-count.c ---- */

/* At most this many rows; further exits are in one row, "others". */
#define EXITS_ROWS_MAX 4096
/* At most this many IPs are counted, of all VMs. */
#define EXITS_IPS_MAX 262144

/* --by */
enum exits_by {
	EXITS_BY_REASON,
	EXITS_BY_IP,
	EXITS_BY_VCPU,
	EXITS_BY_CPU,
	EXITS_BY_PORT, /* I/O instructions only */
	EXITS_BY_MSR,  /* RDMSR and WRMSR only */
	EXITS_BY_GPA,  /* EPT violations and misconfigurations only */
	EXITS_BY_CR3,
};

/* What a row is of, beside its VM. */
struct exits_key {
	u16 reason; /* by reason, VMPT_REASON_UNKNOWN: unknown; by port, MSR, GPA: the exit's */
	bool halted, guessed;
	bool known; /* .value: the IP, the vCPU's index, the stream's, the port, ... */
	bool in;    /* by port: IN */
	u64 value;
};

enum exits_kind {
	EXITS_OF_VM,
	EXITS_OTHERS, /* beyond EXITS_ROWS_MAX; of no VM */
	EXITS_OF_ALL, /* all VMs' with that key; of no VM */
	EXITS_TOTAL,  /* all exits; of no VM */
};

/* The whole time out of the guest, beside its parts. */
#define EXITS_OUT   TIMELINE_PARTS
#define EXITS_TIMES (TIMELINE_PARTS + 1)

struct exits_time {
	struct histogram each;
	struct timeline_longest longest;
	struct timeline_part_time sum; /* .ticks is .each.sum */
	u64 one_error;		       /* the widest bound of one exit, either side */
};

struct exits_row {
	u32 vm; /* or TIMELINE_NONE */
	u8 kind;
	struct exits_key key;
	u64 exits;
	bool hidden; /* by IP: beyond --top */
	u64 unsure;  /* of them those whose return was not seen, or may belong to another exit */
	struct exits_time time[EXITS_TIMES];
};

enum exits_sort {
	EXITS_SORT_TOTAL,
	EXITS_SORT_COUNT,
	EXITS_SORT_MIN,
	EXITS_SORT_MEAN,
	EXITS_SORT_P50,
	EXITS_SORT_P95,
	EXITS_SORT_P99,
	EXITS_SORT_MAX,
	EXITS_SORT_HOST, /* from here on, as enum timeline_part */
	EXITS_SORT_WAIT,
	EXITS_SORT_HALTED,
	EXITS_SORT_UNTRACED,
	EXITS_SORT_KEY,
};

struct exits_ip {
	u64 ip, count;
	struct timeline_longest longest;
	u32 row;
};

/* "do_idle+0x1f" of @ip in @row's VM, or "". */
typedef const char *exits_symbol(void *opaque, const struct timeline *t,
				 const struct exits_row *row, u64 ip, char *buf, size_t len);

struct exits {
	/* Set by the command */
	unsigned int by;   /* enum exits_by */
	unsigned int sort; /* enum exits_sort */
	bool sorted;	   /* --sort is given: rows of all VMs in one order */
	unsigned int time; /* --part: which of a row's times */
	u64 top;	   /* IPs of a row; by IP: rows of a VM */
	exits_symbol *symbol;
	void *opaque; /* for .symbol */

	struct exits_row *row;
	size_t rows;
	size_t vm_rows; /* after exits_sort(): the first ones, of VMs and "others" */
	size_t row_others;
	struct vmpt_hash by_key;
	struct exits_ip *ip;
	size_t ips;
	struct vmpt_hash by_ip; /* and by row */
	u64 seed;
	u64 ips_left_out;
	u64 no_exits;	 /* runs that ended otherwise, with a time until the next one */
	u64 left_out;	 /* exits that have no such key: not I/O, for example */
	u64 rows_hidden; /* after exits_sort(): rows of VMs, beyond --top */
};

/* Count a span. 0, or an exit code after a message. */
int exits_span(struct exits *e, const struct timeline *t, const struct timeline_span *s);
/* Rows of VMs first, then those of all, IPs by row and count: as shown; hide what is not. */
void exits_sort(struct exits *e);
void exits_free(struct exits *e);
/* The exits of @row's VM, or of all: what its percentage is of. */
u64 exits_of(const struct exits *e, const struct exits_row *row);
/* The IPs of row number @row after exits_sort(): the first and how many. */
const struct exits_ip *exits_ips(const struct exits *e, size_t row, size_t *count);

/* ---- exits-words.c ---- */

const char *exits_row_vm(const struct timeline *t, const struct exits_row *row);
/* The key's title in tables and name in JSON. */
const char *exits_by_title(unsigned int by);
const char *exits_by_name(unsigned int by);
/* The row's key as text, "EPT violation", "out 80": cut to @columns. */
const char *exits_row_name(const struct exits *e, const struct timeline *t,
			   const struct exits_row *row, char *buf, size_t len, size_t columns);
/* The row's exit, for functions that take one. */
struct vmpt_exit exits_row_exit(const struct exits_row *row);
/* Ticks that the rows are sorted by, or a count. */
u64 exits_sort_value(const struct exits *e, const struct exits_row *row);

/* ---- exits-json.c ---- */

void exits_json(const struct timeline *t, const struct exits *e);

#endif
