/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Around the engines of a flow: the plan cuts the stream into segments (plan.c), a job decodes one
 * (job.c), a book has the blocks of an engine in the numbering that users see (book.c), order.c
 * takes the jobs in order, and flow.c returns what they found.
 */
#ifndef VMPT_DECODER_FLOW_FLOW_H
#define VMPT_DECODER_FLOW_FLOW_H

#include <stdatomic.h>

#include "decoder/flow/engine.h"
#include "decoder/parallel/parallel.h"

/* ---- plan.c ---- */

struct segment {
	u64 at;	   /* the PSB of a cut; or 0 */
	u64 entry; /* the end of its PSB+; or 0 */
	u64 end;   /* the end of the PSB+ of the next cut, or the stream's */
	bool cut;  /* .end is that of a PSB+ */
};

struct plan {
	const u8 *data;
	u64 end;
	u64 size; /* approximate, of a segment; 0: the stream is not cut */
	bool timed;
	bool pips, vmcss; /* PSB+ have PIPs, VMCSs */
	u64 at, entry;	  /* where the next segment begins, as there */
	bool done;
};

void vmpt_flow_plan_start(struct plan *p);
/* The next segment; false: there is none. */
bool vmpt_flow_plan_next(struct plan *p, struct segment *s);

/* ---- book.c ---- */

/* Units of a list. */
struct span {
	u32 at, count;
};

/*
 * What was new in an engine's tables, in the order in which it became so: for another thread. The
 * first .results results of the job are of these tables.
 */
struct news {
	size_t results;
	bool reset; /* nodes, paths and lists were thrown away before */
	struct vmpt_space *space;
	struct block *block;
	u8 *code; /* of the blocks, one after the other */
	struct span *node, *path;
	u32 *list;
	size_t spaces, blocks, nodes, paths, lists;
};

/* What a book has of an engine's tables, or what was sent of them. */
struct extent_of_tables {
	size_t spaces, blocks, nodes, paths, lists;
};

struct book {
	struct engine *direct; /* its tables are used as they are, and ids are its own; or NULL */
	struct extent_of_tables has;
	u32 *space, *block; /* ids of the flow, by those of the engine */
	size_t space_room, block_room;
	struct span *node, *path;
	u32 *list; /* of nodes: ids of the flow */
	size_t node_room, path_room, list_room;
	/* Paths that were expanded: their blocks */
	struct span *flat; /* by path; count 0: not */
	size_t flat_of, flat_room;
	u32 *flats;
	size_t flats_count, flats_room, flats_max;
};

/* An engine, and what is known of it outside. */
struct maker {
	struct engine e;
	bool opened;
	bool reset; /* of the next news */
	struct extent_of_tables sent;
	atomic_bool held; /* by a job that is not done */
	/* Of the caller's thread only */
	void (*progress)(void *opaque, u64 offset);
	void *progress_opaque;
	struct book book;
};

/* Blocks and address spaces of all engines, in the order in which one engine would find them. */
struct names {
	struct block *block;
	size_t block_count;
	struct vmpt_hash block_index;
	u8 *code; /* of the blocks, whose .code is an offset in it */
	size_t code_count, code_room;
	struct vmpt_space *space;
	size_t space_count;
	struct vmpt_hash space_index;
	u64 seed;
};

/* Append what is new in the engine's tables. 0 or -VMPT_E_NOMEM. */
int vmpt_flow_news_add(struct maker *m, struct news *news, size_t results);
void vmpt_flow_news_free(struct news *news);
int vmpt_flow_news_take(struct book *b, struct names *names, const struct news *news);
/* The engine threw its tables away. */
void vmpt_flow_book_reset(struct book *b);
void vmpt_flow_book_free(struct book *b);
void vmpt_flow_names_free(struct names *names);
struct blocks {
	u32 *id;
	size_t count, room;
};
/* The blocks of @units, appended to those of @out, until it has @enough. How many units were taken,
 * or -VMPT_E_NOMEM. */
int vmpt_flow_expand(struct book *b, const u32 *units, u32 count, size_t enough,
		     struct blocks *out);
u32 vmpt_flow_node_count(const struct book *b, u32 node);

/* ---- job.c ---- */

/* Where the flow is after a PSB+ at which it was cut. */
struct state {
	struct cursor c; /* without what is the engine's */
	u64 ip;		 /* of the node */
	struct vmpt_owner owner;
	struct vmpt_follow follow;
	bool followed;
};

bool vmpt_flow_state_same(const struct state *a, const struct state *b);

/* A segment that is decoded. */
struct job {
	struct segment segment;
	bool in_turn; /* only once all before it is done */
	/* Where it begins: at .resume, or, NULL, at the stream's begin or the segment's PSB+. */
	const struct state *resume;
	struct vmpt_follow_habit habit;
	u8 exec;    /* the mode, if the PSB+ does not have it */
	u64 weight; /* of engine.weight */

	struct maker *maker; /* NULL: not started */
	bool done;
	bool stuck; /* it stopped where it has to be in turn */
	bool rests; /* it is not done and holds its worker's engine */
	int error;
	bool entered;
	u64 lost_end; /* bytes up to here are lost, but for packets that are found in them */

	struct state entry, exit;
	struct result *results;
	size_t result_count, result_room;
	u32 *log;
	size_t log_count, log_room;
	struct news *news;
	size_t news_count;
	struct hashes h; /* of all, once it is done */
};

int vmpt_flow_maker_open(struct maker *m, const struct vmpt_stream *stream, struct vmpt_code *code,
			 const struct vmpt_flow_options *options, const struct vmpt_options *trace);
void vmpt_flow_maker_close(struct maker *m);

/* Begin it with @m, also when it was begun before. */
void vmpt_flow_job_start(struct job *j, struct maker *m);
/* Decode until there is something to return, or with @all until there is much; sets .done. */
void vmpt_flow_job_run(struct job *j, bool all);
/* Results were returned, or are not wanted. */
void vmpt_flow_job_drop(struct job *j);
void vmpt_flow_job_free(struct job *j);

/* ---- order.c ---- */

struct space_gaps {
	u64 count[VMPT_FLOW_REASONS];
};

struct vmpt_flow {
	const struct vmpt_stream *stream;
	struct vmpt_code *code;
	struct vmpt_flow_options options;
	struct vmpt_options trace;
	struct plan plan;
	struct vmpt_pool *pool;
	struct job *jobs; /* the ring */
	unsigned int workers, slots;
	/* That for what is decoded in turn, when results are wanted; and one a worker. */
	struct maker own;
	struct maker *makers;
	/* What is being returned. */
	struct job *job;
	size_t result, news;
	u32 unit;
	struct blocks blocks;
	struct state exit; /* of the segment before */
	struct vmpt_follow_habit habit;
	u8 exec;
	u32 jobs_done, misses; /* misses: jobs that were begun wrongly */
	bool first_only;       /* others are planned once it is done */
	bool done;
	int error;
	/* Totals */
	struct names names;
	struct hashes h;
	u64 gaps[VMPT_FLOW_REASONS];
	struct space_gaps *space_gaps;
	size_t space_gaps_room;
	bool counted; /* counts of blocks and .counts are of all that was decoded */
	struct vmpt_flow_counts *counts; /* by space */
	size_t counts_room;
	struct left_list left; /* of all engines, of ids of the flow */
};

/* One engine: its tables are used as they are. */
static inline bool vmpt_flow_direct(const struct vmpt_flow *f)
{
	return f->own.book.direct;
}

vmpt_pool_run vmpt_flow_run_job;
/* Tables have what the result that comes next needs. */
int vmpt_flow_take_news(struct vmpt_flow *f, bool all);
/* Until there are more results: 1, 0 at the end, or a negative error. */
int vmpt_flow_more(struct vmpt_flow *f);

#endif
