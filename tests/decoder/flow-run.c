// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "decoder/flow/insn.h"
#include "tests/decoder/flow-run.h"
#include "tests/support/support.h"
#include "tests/tracegen/tracegen.h"
#include "util/array.h"
#include "util/hash.h"
#include "util/search.h"

/* ---- running ---- */

static void add_ip(struct flow_run *run, u64 ip, u32 space)
{
	if (vmpt_grow(&run->ips, run->count) || vmpt_grow(&run->spaces, run->count))
		ck_abort_msg("out of memory");
	run->ips[run->count] = ip;
	run->spaces[run->count++] = space;
}

static void add_block(struct flow_run *run, struct vmpt_flow *flow, u32 id, u32 count)
{
	struct vmpt_flow_block block;
	struct vmpt_space space;
	struct vmpt_insn insn;
	u8 code[8192];
	u64 ip;
	int n;

	vmpt_flow_block(flow, id, &block);
	vmpt_flow_space(flow, block.space, &space, NULL);
	n = vmpt_flow_code(flow, id, code, sizeof(code));
	if (count > block.instructions)
		ck_abort_msg("more instructions than the block has");
	for (ip = block.ip; count; count--) {
		if ((s64)(ip - block.ip) >= n ||
		    vmpt_insn_ask(&insn, code + (ip - block.ip), (size_t)n - (ip - block.ip), ip,
				  space.exec) != VMPT_INSN_OK)
			ck_abort_msg("no code at %#llx", (unsigned long long)ip);
		add_ip(run, ip, block.space);
		ip += insn.size;
	}
}

static void add_mark(struct flow_run *run, struct vmpt_flow *flow,
		     const struct vmpt_flow_batch *batch)
{
	struct vmpt_space space = { 0 };

	ck_assert_uint_eq(batch->offset, batch->end);
	ck_assert_uint_eq(batch->count, 0);
	if (vmpt_grow(&run->marks, run->mark_count))
		ck_abort_msg("out of memory");
	vmpt_flow_space(flow, batch->space, &space, NULL);
	run->marks[run->mark_count++] =
		(struct flow_mark){ batch->offset, batch->ip,	space.cr3,
				    run->count,	   batch->kind, batch->off };
}

static void add_batch(struct flow_run *run, struct vmpt_flow *flow,
		      const struct vmpt_flow_batch *batch, bool list)
{
	size_t i;

	if (batch->kind == VMPT_FLOW_GAP) {
		if (vmpt_grow(&run->gaps, run->gap_count))
			ck_abort_msg("out of memory");
		run->gaps[run->gap_count++] =
			(struct flow_gap){ batch->offset, batch->ip, batch->reason };
		return;
	}
	if (batch->kind != VMPT_FLOW_BLOCKS) {
		add_mark(run, flow, batch);
		return;
	}
	ck_assert_uint_gt(batch->count, 0);
	ck_assert_uint_gt(batch->last, 0);
	run->blocks += batch->count;
	for (i = 0; i < batch->count && list; i++) {
		struct vmpt_flow_block block;

		vmpt_flow_block(flow, batch->blocks[i], &block);
		add_block(run, flow, batch->blocks[i],
			  i + 1 == batch->count ? batch->last : block.instructions);
	}
}

/* The ordered hash of flow.md, from the list. */
static u64 hash_of(const struct flow_run *run)
{
	u64 hash = 0;
	size_t i;

	for (i = 0; i < run->count; i++)
		hash = hash * 0x9e3779b97f4a7c15ULL + vmpt_mix64(run->ips[i]);
	return hash;
}

static void add_totals(struct flow_run *run, struct vmpt_flow *flow)
{
	struct vmpt_flow_block block;
	u64 sum = 0, whole, part, all = 0;
	u32 i;

	vmpt_flow_total(flow, &run->total, &run->hash);
	run->space_count = vmpt_flow_spaces(flow);
	run->space = calloc(run->space_count + 1, sizeof(*run->space));
	run->space_counts = calloc(run->space_count + 1, sizeof(*run->space_counts));
	for (i = 0; i < run->space_count; i++) {
		vmpt_flow_space(flow, i, &run->space[i], &run->space_counts[i]);
		sum += run->space_counts[i].instructions;
	}
	ck_assert_uint_eq(sum, run->total.instructions);
	for (i = 0; i < vmpt_flow_blocks(flow); i++) {
		vmpt_flow_block(flow, i, &block);
		vmpt_flow_executed(flow, i, &whole, &part);
		all += whole * block.instructions + part;
		/* Those that never ran depend on how far ahead nodes were made. */
		if (whole || part)
			run->executed += vmpt_mix64(block.ip ^ whole * 3 ^ part * 5 ^
						    run->space[block.space].cr3 * 7);
	}
	ck_assert_uint_eq(all, run->total.instructions);
}

void flow_run(struct flow_run *run, const struct vmpt_stream *stream, struct vmpt_code *code,
	      const struct vmpt_flow_options *options)
{
	struct vmpt_flow_batch batch;
	struct flow_times times = { 0 };
	struct vmpt_flow *flow;
	u64 at = 0;
	int ret;

	memset(run, 0, sizeof(*run));
	if (options && options->times)
		flow_times(&times, stream);
	ck_assert_int_eq(vmpt_flow_open(&flow, stream, code, options), 0);
	while ((ret = vmpt_flow_next(flow, &batch)) > 0) {
		ck_assert_uint_le(at, batch.offset);
		ck_assert_uint_le(batch.offset, batch.end);
		at = batch.offset;
		flow_times_check(&times, &batch, true);
		add_batch(run, flow, &batch, true);
	}
	free(times.at);
	ck_assert_int_eq(ret, 0);
	add_totals(run, flow);
	if (options && options->blocks) {
		ck_assert_uint_eq(run->count, run->total.instructions);
		if (options->hash)
			ck_assert_uint_eq(run->hash, hash_of(run));
	}
	vmpt_flow_close(flow);
}

void flow_run_free(struct flow_run *run)
{
	free(run->ips);
	free(run->spaces);
	free(run->gaps);
	free(run->marks);
	free(run->space);
	free(run->space_counts);
}

void flow_run_same(const struct flow_run *a, const struct flow_run *b, const char *what)
{
	size_t i;

	ck_assert_msg(a->total.instructions == b->total.instructions, "%s: %llu instructions, %llu",
		      what, (unsigned long long)a->total.instructions,
		      (unsigned long long)b->total.instructions);
	ck_assert_msg(a->hash == b->hash, "%s: hash %#llx, %#llx", what,
		      (unsigned long long)a->hash, (unsigned long long)b->hash);
	ck_assert_msg(!memcmp(&a->total, &b->total, sizeof(a->total)), "%s: totals", what);
	ck_assert_msg(a->executed == b->executed, "%s: counts of blocks", what);
	ck_assert_msg(a->gap_count == b->gap_count, "%s: %zu gaps, %zu", what, a->gap_count,
		      b->gap_count);
	for (i = 0; i < a->gap_count; i++)
		if (a->gaps[i].offset != b->gaps[i].offset || a->gaps[i].ip != b->gaps[i].ip ||
		    a->gaps[i].reason != b->gaps[i].reason)
			ck_abort_msg("%s: gap %zu differs", what, i);
	for (i = 0; i < a->mark_count && i < b->mark_count; i++) {
		const struct flow_mark *x = &a->marks[i], *y = &b->marks[i];

		if (x->offset != y->offset || x->ip != y->ip || x->cr3 != y->cr3 ||
		    x->kind != y->kind || x->off != y->off ||
		    (a->count && b->count && x->at != y->at))
			ck_abort_msg("%s: mark %zu differs", what, i);
	}
	if (a->mark_count && b->mark_count)
		ck_assert_uint_eq(a->mark_count, b->mark_count);
}

/* ---- times ---- */

void flow_times(struct flow_times *times, const struct vmpt_stream *stream)
{
	struct vmpt_cursor at = { 0 };
	struct vmpt_decoder *decoder;
	struct vmpt_packet pkt;

	*times = (struct flow_times){ 0 };
	ck_assert_int_eq(vmpt_decoder_open(&decoder, stream, NULL), 0);
	while (vmpt_packet_next(decoder, &at, &pkt) > 0) {
		if (pkt.kind != VMPT_PT_TSC && pkt.kind != VMPT_PT_TMA && pkt.kind != VMPT_PT_MTC &&
		    pkt.kind != VMPT_PT_CYC)
			continue;
		ck_assert_int_eq(vmpt_grow(&times->at, times->count), 0);
		times->at[times->count++] = pkt.offset;
	}
	vmpt_decoder_close(decoder);
}

size_t flow_times_check(const struct flow_times *times, const struct vmpt_flow_batch *batch,
			bool whole)
{
	size_t n = vmpt_search(i, 0, times->count, times->at[i] <= batch->offset);

	if (whole && batch->kind == VMPT_FLOW_BLOCKS && n < times->count &&
	    times->at[n] < batch->end)
		ck_abort_msg("a packet of time at %#llx in the batch of %#llx to %#llx",
			     (unsigned long long)times->at[n], (unsigned long long)batch->offset,
			     (unsigned long long)batch->end);
	return n;
}

/* ---- real traces ---- */

bool flow_real_open(struct flow_real *real, const char *name)
{
	struct vmpt_diag diag;
	char file[64];
	const char *path;
	size_t size;

	memset(real, 0, sizeof(*real));
	snprintf(file, sizeof(file), "%s.pt", name);
	path = test_data(file);
	if (!path)
		return false;
	real->bytes = test_read_file(path, &size);
	real->stream =
		(struct vmpt_stream){ .data = real->bytes, .size = size, .cpu = -1, .tid = -1 };
	snprintf(file, sizeof(file), "%s.addr", name);
	path = test_data(file);
	ck_assert_ptr_nonnull(path);
	ck_assert_msg(!vmpt_image_open(&real->image, path, NULL, &diag), "%s", diag.text);
	ck_assert_int_eq(vmpt_code_new(&real->code), 0);
	ck_assert_int_eq(vmpt_code_add(real->code, NULL, NULL, real->image), 0);
	return true;
}

void flow_real_close(struct flow_real *real)
{
	vmpt_code_free(real->code);
	vmpt_image_close(real->image);
	free(real->bytes);
}

/* ---- generated traces ---- */

struct tracegen *flow_script(const char *name)
{
	struct tracegen *gen;
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s.trace", test_source("tests/tracegen/scripts"), name);
	gen = tracegen_run_file(path, NULL);
	ck_assert_ptr_nonnull(gen);
	ck_assert_msg(!tracegen_error(gen), "%s", tracegen_error(gen));
	return gen;
}

void flow_generated_open(struct flow_generated *code, const struct tracegen *gen)
{
	struct vmpt_image_options options = { .kind = VMPT_IMAGE_BYTES, .has_address = true };
	struct tracegen_code page;
	struct vmpt_owner owner;
	struct vmpt_diag diag;
	char name[32];
	size_t i;

	memset(code, 0, sizeof(*code));
	ck_assert_int_eq(vmpt_code_new(&code->code), 0);
	test_dir_make();
	for (i = 0; tracegen_code(gen, i, &page); i++) {
		ck_assert_uint_lt(i, VMPT_ARRAY_SIZE(code->image));
		snprintf(name, sizeof(name), "code-%zu.bin", i);
		options.address = page.base;
		owner = (struct vmpt_owner){ .kind = VMPT_OWNER_HOST };
		if (page.owner >= 0)
			owner = (struct vmpt_owner){
				.kind = VMPT_OWNER_VM,
				.vmcs = tracegen_vm(gen, (size_t)page.owner)->vmcs,
			};
		ck_assert_msg(!vmpt_image_open(&code->image[i],
					       test_dir_file(name, page.bytes, page.size), &options,
					       &diag),
			      "%s", diag.text);
		code->count++;
		ck_assert_int_eq(vmpt_code_add(code->code, &owner, NULL, code->image[i]), 0);
	}
	/* Where the trace does not say whose code it is. */
	for (i = 0; i < code->count; i++)
		ck_assert_int_eq(vmpt_code_add(code->code, NULL, NULL, code->image[i]), 0);
}

void flow_generated_close(struct flow_generated *code)
{
	size_t i;

	vmpt_code_free(code->code);
	for (i = 0; i < code->count; i++)
		vmpt_image_close(code->image[i]);
	test_dir_remove();
}
