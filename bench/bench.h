/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The benchmark's parts: inputs (inputs.c), contestants that run over one input (contest-*.c),
 * their memory use (memory.c), rounds and goals (rounds.c), and the output (report.c, machine.c).
 */
#ifndef VMPT_BENCH_H
#define VMPT_BENCH_H

#include "decoder/vmpt-decode.h"

/* ---- inputs ---- */

/* A trace in memory: a memfd, mapped shared, so that its pages do not count as the decoder's. */
struct bench_bytes {
	u8 *data;
	size_t size;
	u64 packets; /* by the generator, 0: not known */
};

/* What goals apply; a mask. */
enum bench_class {
	BENCH_FIRST = 1, /* the synthetic stream, and real traces */
	BENCH_RTIT = 2,
	BENCH_COMMON = 4, /* shapes, by how hard they are: docs/performance.md */
	BENCH_CYCLES = 8,
	BENCH_HARD = 16,
	BENCH_ANY = 31
};

struct bench_input {
	const char *name;
	char about[200];
	struct bench_bytes vmpt;
	struct bench_bytes
		ipt; /* libipt's own stream if it does not know all kinds; else the same */
	bool same;   /* both get the same bytes: their counts must agree */
	enum bench_class class;
	enum vmpt_isa isa;	 /* RTIT has no other decoder: ipt is empty */
	struct bench_bytes runs; /* RTIT: the side record, struct vmpt_run */
	size_t run_count;
};

enum { BENCH_INPUTS = 15 };

/* The name of input @i; inputs are run in this order. */
const char *bench_input_name(unsigned int i);
/* Whether it is one of bench/shapes.h, which need fewer bytes. */
bool bench_input_is_shape(unsigned int i);
/*
 * Make input @i. @size: bytes of the synthetic ones; real traces get their number of
 * copies, divided by @divide.
 * 1: done, 0: missing (reported on stdout), negative: an error (reported on stderr).
 */
int bench_input_open(struct bench_input *in, unsigned int i, size_t size, unsigned int divide);
/* Free the bytes; sizes and names are kept for the JSON. */
void bench_input_close(struct bench_input *in);

/* ---- contestants ---- */

/* Results of a contestant. */
struct bench_count {
	u64 packets; /* runs counted by their packets; 0: it does not decode packets */
	u64 items;   /* items, slices or PSBs */
	u64 losses;
	u64 sum; /* of the consumed values, so that nothing is optimized away */
};

enum bench_contest_id {
	BENCH_LIBIPT,
	BENCH_SPLIT,
	BENCH_BATCH,
	BENCH_TIMED,
	BENCH_TIMELINE,
	BENCH_PACKET,
	BENCH_EXTRACT,
	BENCH_SPLIT_2,
	BENCH_BATCH_2,
	BENCH_MEMMEM,
	BENCH_READ,
	BENCH_CONTESTS
};

struct bench_contest {
	const char *name;  /* in the JSON */
	const char *title; /* in the table */
	unsigned int threads;
	bool rtit; /* also for inputs of RTIT */
	/* 0 or -1 after a message on stderr; @tick is called from time to time, may be NULL */
	int (*run)(const struct bench_input *in, const struct bench_contest *c,
		   struct bench_count *out, void (*tick)(void));
};

extern const struct bench_contest bench_contests[BENCH_CONTESTS];

int bench_run_libipt(const struct bench_input *in, const struct bench_contest *c,
		     struct bench_count *out, void (*tick)(void));
/* "2.0.5", of the library at run time. */
const char *bench_libipt_version(void);

/* ---- rounds ---- */

struct bench_time {
	double wall, cpu; /* seconds, minimum of all rounds; cpu is that of all threads */
	unsigned int runs;
	struct bench_count count;
};

struct bench_result {
	struct bench_input input;
	bool done;
	struct bench_time time[BENCH_CONTESTS];
	u64 rss;	    /* peak anonymous memory of a process that splits and iterates */
	unsigned int goals; /* percentage of each goal that it is judged by */
	u64 common_packets; /* vmpt's count in libipt's own stream, if there is one */
};

/*
 * The seconds that contestant @id is judged by: CPU time with one thread, so that other load on the
 * machine does not count, wall time with two.
 */
double bench_seconds(const struct bench_result *r, unsigned int id);

/* Whether contestant @id applies to the input. */
bool bench_contest_applies(const struct bench_result *r, unsigned int id);

enum { BENCH_GOALS = 15 };

struct bench_goal {
	const char *name;
	double want;
	enum bench_class inputs; /* that it applies to */
	enum {
		BENCH_RATIO, /* MB/s of a contestant divided by another's */
		BENCH_GAIN,  /* the same by wall time */
		BENCH_SPEED, /* MB/s */
		BENCH_MEMORY /* MiB, at most; all others at least */
	} measure;
	enum bench_contest_id of, to;
};

extern const struct bench_goal bench_goals[BENCH_GOALS];

/* What goal @i asks of it. */
double bench_goal_want(const struct bench_result *r, unsigned int i);
/* Value of goal @i; negative: it was not measured. */
double bench_goal_value(const struct bench_result *r, unsigned int i);
/* Whether it applies to the input. */
bool bench_goal_applies(const struct bench_result *r, unsigned int i);
bool bench_goal_met(const struct bench_result *r, unsigned int i);

/*
 * Run all contestants in turn, @rounds times, except those that need more than @cores. 0, or -1
 * after a message.
 */
int bench_rounds(struct bench_result *r, unsigned int rounds, unsigned int cores);

/* Peak of RssAnon in a child process that runs contest @c; 0 if it failed, with a message. */
u64 bench_memory(const struct bench_input *in, const struct bench_contest *c);

/* ---- the machine ---- */

struct bench_machine {
	char cpu[128], kernel[128], compiler[64];
	unsigned int cores; /* that this process may use */
	bool pinned;	    /* the single-threaded contestants stayed on one core */
	bool sanitized;
};

void bench_machine_facts(struct bench_machine *m);
/* Pin to one core, and undo it; both are cheap. 0 or -1. */
int bench_pin(void);
int bench_unpin(void);

/* ---- the report ---- */

void bench_report_input(const struct bench_result *r);
void bench_report_machine(const struct bench_machine *m, unsigned int rounds);
/* 0, or -1 after a message. */
int bench_report_json(const char *path, const struct bench_machine *m, unsigned int rounds,
		      const struct bench_result *results, unsigned int n);

#endif
