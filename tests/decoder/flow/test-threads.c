// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The flow by several threads is that by one, in segments of any size: blocks in their order, gaps,
 * counts of blocks and address spaces, and the ordered hash.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/decoder/flow-run.h"
#include "tests/decoder/notation.h"
#include "tests/support/support.h"
#include "tests/tracegen/tracegen.h"
#include "util/array.h"
#include "util/hash.h"

/* All that a flow said, each in a hash of its own. */
struct digest {
	struct vmpt_flow_counts total;
	u64 hash;
	u64 order;  /* of blocks, with how many of their instructions were executed */
	u64 gaps;   /* in their order */
	u64 marks;  /* the same of events */
	u64 when;   /* the last time packet before each block */
	u64 counts; /* of blocks and address spaces, in any order */
	u64 ids;    /* which block and space has which number */
	u64 blocks;
};

static u64 mix(u64 a, u64 b)
{
	return vmpt_mix64(a ^ vmpt_mix64(b + 1));
}

/* A block by what it is. */
static u64 what_block(struct vmpt_flow *flow, u32 id)
{
	struct vmpt_flow_block b;
	struct vmpt_space s;
	u8 code[2 * VMPT_PAGE];
	int size = vmpt_flow_code(flow, id, code, sizeof(code));

	vmpt_flow_block(flow, id, &b);
	vmpt_flow_space(flow, b.space, &s, NULL);
	ck_assert_int_ge(size, 0);
	return mix(mix(mix(b.ip, b.next), mix(b.end_ip, b.target)),
		   mix(mix(s.cr3, s.owner.vmcs), s.exec)) ^
	       vmpt_fnv1a(b.instructions, code, (size_t)size);
}

/* The same of all blocks, as they become known. */
struct known {
	u64 *list;
	size_t count, room;
};

static u64 known_block(struct known *k, struct vmpt_flow *flow, u32 id)
{
	if (id >= k->count) {
		ck_assert_int_eq(vmpt_reserve(&k->list, &k->room, id + (size_t)1), 0);
		for (; k->count <= id; k->count++)
			k->list[k->count] = what_block(flow, (u32)k->count);
	}
	return k->list[id];
}

static u64 what_mark(struct vmpt_flow *flow, const struct vmpt_flow_batch *batch)
{
	struct vmpt_space s;

	vmpt_flow_space(flow, batch->space, &s, NULL);
	return mix(mix(mix(batch->offset, batch->ip), batch->kind),
		   mix(mix(s.cr3, s.owner.vmcs), s.owner.kind));
}

static void take_batch(struct digest *d, struct known *k, struct vmpt_flow *flow,
		       const struct vmpt_flow_batch *batch, size_t time)
{
	struct vmpt_flow_block b;
	size_t i;

	if (batch->kind == VMPT_FLOW_GAP)
		d->gaps = mix(d->gaps, mix(mix(batch->offset, batch->ip), batch->reason));
	else if (batch->kind != VMPT_FLOW_BLOCKS)
		d->marks = mix(d->marks ^ d->order, what_mark(flow, batch));
	for (i = 0; i < batch->count; i++) {
		u64 n = 0;

		if (i + 1 == batch->count) {
			vmpt_flow_block(flow, batch->blocks[i], &b);
			n = b.instructions - batch->last;
		}
		d->order = (d->order ^ known_block(k, flow, batch->blocks[i]) ^ n) *
			   0x9e3779b97f4a7c15ULL;
		d->when = (d->when ^ time) * 0x9e3779b97f4a7c15ULL;
	}
	d->blocks += batch->count;
}

static void take_totals(struct digest *d, struct known *k, struct vmpt_flow *flow)
{
	struct vmpt_flow_counts counts;
	struct vmpt_space s;
	u64 whole, part;
	u32 i;

	vmpt_flow_total(flow, &d->total, &d->hash);
	for (i = 0; i < vmpt_flow_blocks(flow); i++) {
		u64 block = known_block(k, flow, i);

		d->ids = mix(d->ids, block);
		vmpt_flow_executed(flow, i, &whole, &part);
		if (whole || part)
			d->counts += mix(block, mix(whole, part));
	}
	for (i = 0; i < vmpt_flow_spaces(flow); i++) {
		u64 space;

		vmpt_flow_space(flow, i, &s, &counts);
		space = mix(mix(s.cr3, s.owner.vmcs), s.owner.kind);
		d->ids = mix(d->ids, space);
		if (counts.instructions)
			d->counts += vmpt_fnv1a(space, &counts, sizeof(counts));
	}
}

static void run(struct digest *d, const struct vmpt_stream *stream, struct vmpt_code *code,
		const struct vmpt_flow_options *options)
{
	struct vmpt_flow_batch batch;
	struct flow_times times = { 0 };
	struct vmpt_flow *flow;
	struct known known = { 0 };
	u64 at = 0;
	int ret;

	memset(d, 0, sizeof(*d));
	if (options->times || options->by_packet)
		flow_times(&times, stream);
	ck_assert_int_eq(vmpt_flow_open(&flow, stream, code, options), 0);
	while ((ret = vmpt_flow_next(flow, &batch)) > 0) {
		ck_assert_uint_le(at, batch.offset);
		ck_assert_uint_le(batch.offset, batch.end);
		at = batch.offset;
		take_batch(d, &known, flow, &batch,
			   flow_times_check(&times, &batch, options->times));
	}
	free(times.at);
	ck_assert_int_eq(ret, 0);
	take_totals(d, &known, flow);
	vmpt_flow_close(flow);
	free(known.list);
}

/* @ids: blocks have the same numbers. Where a segment was begun wrongly there may be more. */
static void same(const struct digest *a, const struct digest *b, bool ids, const char *what)
{
	ck_assert_msg(a->total.instructions == b->total.instructions, "%s: %llu instructions, %llu",
		      what, (unsigned long long)a->total.instructions,
		      (unsigned long long)b->total.instructions);
	ck_assert_msg(a->hash == b->hash, "%s: ordered hash", what);
	ck_assert_msg(!memcmp(&a->total, &b->total, sizeof(a->total)), "%s: totals", what);
	ck_assert_msg(a->gaps == b->gaps, "%s: gaps", what);
	ck_assert_msg(a->blocks == b->blocks && a->order == b->order, "%s: blocks", what);
	ck_assert_msg(a->counts == b->counts, "%s: counts", what);
	ck_assert_msg(!ids || a->ids == b->ids, "%s: numbers of blocks", what);
}

static const struct vmpt_flow_options ways[] = {
	{ .hash = true, .blocks = true },
	{ .hash = true },
	{ .hash = true, .blocks = true, .returns = VMPT_FLOW_RETURNS_FOLLOW },
	{ .hash = true, .blocks = true, .memory = 1 },
	{ .hash = true, .memory = 1, .off = VMPT_FLOW_NO_RAW_MEMO },
	{ .blocks = true, .by_packet = true },
	{ .hash = true, .blocks = true, .events = true, .switches = true, .times = true },
	{ .events = true, .switches = true },
};

/* One way to decode, with segments of about @size bytes. */
static void compare(const struct vmpt_stream *stream, struct vmpt_code *code, size_t way,
		    size_t size, bool ids)
{
	struct vmpt_flow_options options = ways[way];
	struct vmpt_options trace = { .threads = 1 };
	struct digest one, many;
	char what[100];

	options.trace = &trace;
	run(&one, stream, code, &options);
	trace.threads = 2 + (unsigned int)(size + way) % 7;
	trace.chunk = size;
	snprintf(what, sizeof(what), "way %zu, %u threads, segments of %zu", way, trace.threads,
		 size);
	run(&many, stream, code, &options);
	same(&one, &many, ids, what);
	ck_assert_msg(one.marks == many.marks, "%s: events", what);
	ck_assert_msg(!options.times || one.when == many.when, "%s: times", what);
}

/* The options that add batches change nothing else; nor do memos change what they add. */
static void compare_marks(const struct vmpt_stream *stream, struct vmpt_code *code)
{
	struct vmpt_flow_options options = { .hash = true, .blocks = true };
	struct digest plain, marked, walked;

	run(&plain, stream, code, &options);
	options.events = options.switches = options.times = true;
	run(&marked, stream, code, &options);
	same(&plain, &marked, false, "events and times");
	options.times = false;
	options.by_packet = true;
	options.off = VMPT_FLOW_NO_MEMO | VMPT_FLOW_NO_RAW_MEMO | VMPT_FLOW_NO_PSB_MEMO;
	run(&walked, stream, code, &options);
	same(&plain, &walked, false, "events by packet");
	ck_assert_msg(marked.marks == walked.marks, "events and memos");
	ck_assert_msg(marked.when == walked.when, "times by packet");
}

static const char *const traces[] = { "guest-unzip", "guest-mruby", "guest-two-vmcs" };

/* In this many segments. */
static const size_t parts[] = { 100000, 40, 8, 5, 4, 3, 2 };

static void compare_real(int trace, size_t way, size_t in)
{
	struct flow_real real;

	if (!flow_real_open(&real, traces[trace]))
		return;
	compare(&real.stream, real.code, way, real.stream.size / parts[in] + 1, true);
	flow_real_close(&real);
}

START_TEST(real_in_few)
{
	compare_real(_i % 3, 0, 1 + (size_t)_i);
}
END_TEST

#define COMBINATIONS (3 * VMPT_ARRAY_SIZE(parts) * VMPT_ARRAY_SIZE(ways))

START_TEST(real_in_all)
{
	/* All of them, whose first few are of all kinds. */
	size_t n = VMPT_ARRAY_SIZE(parts), i = (size_t)_i * 37 % COMBINATIONS;

	compare_real((int)(i % 3), i / 3 / n, i / 3 % n);
}
END_TEST

/* Bytes are changed, in places and ways that the seed chooses. */
START_TEST(damaged)
{
	struct test_rng rng = { (u64)_i + 1 };
	struct flow_real real;
	size_t i, n = 1 + test_random(&rng) % 60;

	if (!flow_real_open(&real, traces[_i % 3]))
		return;
	for (i = 0; i < n; i++)
		real.bytes[test_random(&rng) % real.stream.size] = (u8)test_random(&rng);
	if (_i % 3 == 2)
		real.stream.size /= 4;
	for (i = 0; i < VMPT_ARRAY_SIZE(parts); i += 2)
		compare(&real.stream, real.code, (i + (size_t)_i) % VMPT_ARRAY_SIZE(ways),
			real.stream.size / parts[i] + 1, false);
	compare_marks(&real.stream, real.code);
	flow_real_close(&real);
}
END_TEST

/* Scripts of the generator: each of their PSBs is a cut. */
static const char *const scripts[] = {
	"branch-en0",	"clocks",	  "context",	     "cr3-filter",
	"damage",	"demo",		  "events",	     "example",
	"failed-entry", "guest-only",	  "host-only",	     "ip-filter",
	"kinds",	"ovf-same",	  "ovf-other",	     "ovf-disabled",
	"os0",		"pgd-then-psb",	  "psb-fup",	     "start",
	"timing",	"ret-compressed", "ret-other-owner", "psb-moves-owner",
	"nested-calls",
};

START_TEST(generated)
{
	struct flow_generated code;
	struct tracegen *gen = flow_script(scripts[_i]);
	size_t i, way;

	flow_generated_open(&code, gen);
	for (i = 0; i < tracegen_streams(gen); i++) {
		const struct tracegen_stream *s = tracegen_stream(gen, i);
		struct vmpt_stream stream = {
			.data = s->data, .size = s->size, .cpu = -1, .tid = -1
		};

		for (way = 0; way < VMPT_ARRAY_SIZE(ways); way++)
			compare(&stream, code.code, way, 1, false);
		compare_marks(&stream, code.code);
	}
	flow_generated_close(&code);
	tracegen_free(gen);
}
END_TEST

/*
 * Owners in doubt for so long that they are a splitter's, in the first segment or a later one, and
 * segments that begin there.
 */
START_TEST(owners_in_doubt)
{
	static const char *const words[] = {
		"psb exec:64 pip:1000 vmcs:a000 fup:8000 psbend ",
		"psb exec:64 pip:2000:nr vmcs:a000 psbend ",
		"psb exec:64 pip:2000:nr vmcs:b000 fup:9000 psbend ",
		"psb psbend ",
		"pip:2000:nr tip:8000 ",
		"pip:1000 tip:f000 ",
		"vmcs:b000 ",
		"pgd:- ",
		"pge:8000 ",
		"ovf ",
		"tnt:T ",
	};
	static struct notation n;
	struct test_rng rng = { (u64)_i + 1 };
	char text[4096] = "psb exec:64 pip:2000:nr vmcs:a000 fup:8000 psbend pgd:- pad*4200 ";
	size_t used = _i % 2 ? strlen(text) : 0;
	unsigned int i;

	for (i = 0; i < 60; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
					 words[test_random(&rng) % VMPT_ARRAY_SIZE(words)],
					 i % 30 == (u32)_i % 30 ? "pad*4200 " : "");
	notation_read(&n, text);
	compare(&n.stream, NULL, (size_t)_i % VMPT_ARRAY_SIZE(ways), 1, false);
}
END_TEST

/* It may be closed while threads are at work. */
START_TEST(closed_early)
{
	struct vmpt_options trace = { .threads = 4, .chunk = 1000 };
	struct vmpt_flow_options options = { .trace = &trace, .blocks = true };
	struct vmpt_flow_batch batch;
	struct vmpt_flow_counts counts;
	struct flow_real real;
	struct vmpt_flow *flow;
	int i;

	if (!flow_real_open(&real, "guest-mruby"))
		return;
	ck_assert_int_eq(vmpt_flow_open(&flow, &real.stream, real.code, &options), 0);
	for (i = 0; i < 20; i++) {
		ck_assert_int_eq(vmpt_flow_next(flow, &batch), 1);
		vmpt_flow_total(flow, &counts, NULL);
		ck_assert_uint_gt(counts.instructions, 0);
	}
	vmpt_flow_close(flow);
	flow_real_close(&real);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("decoder/flow/threads");
	TCase *tcase = tcase_create("threads");

	tcase_add_loop_test(tcase, real_in_few, 0, 3);
	tcase_add_loop_test(tcase, generated, 0, (int)VMPT_ARRAY_SIZE(scripts));
	tcase_add_loop_test(tcase, owners_in_doubt, 0, 60);
	tcase_add_test(tcase, closed_early);
	suite_add_tcase(suite, tcase);
	tcase = test_long_case(suite);
	tcase_add_loop_test(tcase, real_in_all, 0, test_rounds(COMBINATIONS, 4));
	tcase_add_loop_test(tcase, damaged, 0, test_rounds(60, 2));
	return suite;
}
