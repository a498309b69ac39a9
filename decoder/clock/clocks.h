/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside the decoder: a whole trace's clocks. pairs.c walks a stream and collects pairs, fit.c
 * makes epochs of them, given.c weighs them against given maps, epoch.c keeps them for lookups, and
 * clocks.c calls these in turn.
 */
#ifndef VMPT_DECODER_CLOCKS_H
#define VMPT_DECODER_CLOCKS_H

#include "decoder/clock/fit.h"
#include "decoder/clock/state.h"
#include "util/hash.h"

/* Maximum number of VMCSs in a stream and in total: others are ignored. */
#define VMPT_CLOCKS_VMCSS 4096

/* Pairs kept of one stream while it is walked. */
#define VMPT_CLOCKS_PAIRS (1u << 17)

/* ---- pairs.c ---- */

/* TSC packets of one VMCS in a stream. */
struct vmpt_vmcs_tscs {
	u64 vmcs, tscs;
};

/* Results of a walk over a stream. */
struct vmpt_pairs {
	struct vmpt_fit_pair *at;
	size_t count, room;
	struct vmpt_vmcs_tscs *vmcs; /* in no order */
	size_t vmcss;
	struct vmpt_clock_counts counts;
};

/*
 * Walk @stream, which is PT. @options: of the clock; its pair callback is not used. @limit, at
 * least 64: with more pairs they are thinned out. 0 or a negative error; free @pairs in either
 * case.
 */
int vmpt_pairs_collect(struct vmpt_pairs *pairs, const struct vmpt_stream *stream, u32 index,
		       const struct vmpt_options *decode, const struct vmpt_clock_options *options,
		       size_t limit);
void vmpt_pairs_free(struct vmpt_pairs *pairs);

/* ---- epoch.c ---- */

/* What is known about a VMCS. */
struct vmpt_vmcs_map {
	u64 vmcs;
	u64 tscs;
	struct vmpt_epoch *epochs;
	size_t count;
};

struct vmpt_epoch_table {
	struct vmpt_vmcs_map *map; /* by VMCS */
	size_t count;
	struct vmpt_hash by_vmcs; /* of map[] */
};

/*
 * The VMCS's entry, created if missing: only before vmpt_epoch_table_index(). NULL: no memory, or
 * too many.
 */
struct vmpt_vmcs_map *vmpt_epoch_table_add(struct vmpt_epoch_table *table, u64 vmcs);
/* All entries are added: make the hash. 0 or -VMPT_E_NOMEM. */
int vmpt_epoch_table_index(struct vmpt_epoch_table *table);
void vmpt_epoch_table_free(struct vmpt_epoch_table *table);
/* NULL: not found. Needs the hash. */
struct vmpt_vmcs_map *vmpt_epoch_table_find(const struct vmpt_epoch_table *table, u64 vmcs);
/* The nearest epoch with a map. */
const struct vmpt_epoch *vmpt_epoch_table_at(const struct vmpt_epoch_table *table, u64 vmcs,
					     u64 at);

/* ---- given.c ---- */

struct vmpt_given_list {
	struct vmpt_given_wrong *at;
	size_t count;
};

/* A copy of @given in the order that vmpt_given_weigh() needs; free() it, also after an error. 0 or
 * -VMPT_E_NOMEM. */
int vmpt_given_sort(const struct vmpt_given *given, size_t count, struct vmpt_given **sorted);
/*
 * Weigh the epochs found for a VMCS (from @pairs, sorted) against all that is given for it, which
 * is found in the @given_count sorted maps of all. 0 or -VMPT_E_NOMEM.
 */
int vmpt_given_weigh(struct vmpt_vmcs_map *map, const struct vmpt_given *given, size_t given_count,
		     const struct vmpt_fit_pair *pairs, size_t n, struct vmpt_given_list *wrong);

#endif
