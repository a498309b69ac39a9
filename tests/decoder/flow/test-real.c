// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The flow of real traces with their code against libipt 2.0.5's instruction decoder, whose results
 * are below. Every option that changes the speed alone gives the same.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/decoder/flow-run.h"
#include "tests/support/support.h"

static const struct known {
	const char *name;
	u64 instructions, hash;
} traces[] = {
	{ "guest-two-vmcs", 9635736, 0xbfd6c01afdb7358bULL },
	{ "guest-mruby", 6334131, 0xf8b2dded398c0812ULL },
	{ "guest-unzip", 149576, 0xec6cd6452ff6ef34ULL },
};

START_TEST(is_libipts)
{
	const struct known *k = &traces[_i];
	struct vmpt_flow_options options = { .hash = true };
	struct flow_real real;
	struct flow_run run;

	if (!flow_real_open(&real, k->name))
		return;
	flow_run(&run, &real.stream, real.code, &options);
	ck_assert_uint_eq(run.total.instructions, k->instructions);
	ck_assert_uint_eq(run.hash, k->hash);
	/* No code is missing, and nothing is impossible. */
	ck_assert_uint_eq(run.gap_count, run.total.gaps[VMPT_FLOW_OVERFLOW]);
	flow_run_free(&run);
	flow_real_close(&real);
}
END_TEST

/* A TNT-64 of the last @count of @bits (SDM 3 33.4.2.1) */
static u8 *put_long_tnt(u8 *to, u64 bits, unsigned int count)
{
	u64 packet = (1ULL << count | bits) << 16 | 0xa302;

	if (count) {
		memcpy(to, &packet, sizeof(packet));
		to += sizeof(packet);
	}
	return to;
}

/* All TNT-8 in a row as TNT-64 of up to 47 bits, and no PADs between them. */
static void make_long(struct flow_real *real)
{
	u8 *bytes = malloc(8 * real->stream.size), *to = bytes;
	const u8 *from = real->bytes, *end = from + real->stream.size;
	unsigned int count = 0, block = 0;
	struct vmpt_pt_packet pkt;
	u64 bits = 0;

	ck_assert_ptr_nonnull(bytes);
	for (; from < end; from += pkt.size) {
		ck_assert_int_eq(vmpt_pt_decode(&pkt, from, (u64)(end - from), block), 0);
		block = vmpt_pt_block_after(&pkt, block);
		if (pkt.kind == VMPT_PT_PAD && count)
			continue;
		if (pkt.kind != VMPT_PT_TNT_8 || count + (unsigned int)pkt.tnt.count > 47) {
			to = put_long_tnt(to, bits, count);
			bits = count = 0;
		}
		if (pkt.kind == VMPT_PT_TNT_8) {
			bits = bits << pkt.tnt.count | pkt.tnt.bits;
			count += (unsigned int)pkt.tnt.count;
		} else {
			memcpy(to, from, pkt.size);
			to += pkt.size;
		}
	}
	to = put_long_tnt(to, bits, count);
	free(real->bytes);
	real->bytes = bytes;
	real->stream.data = bytes;
	real->stream.size = (u64)(to - bytes);
}

static const struct vmpt_options two_threads = { .threads = 2, .chunk = 1 << 16 };

static const struct vmpt_flow_options long_tnt[] = {
	{ .hash = true },
	{ .hash = true, .off = VMPT_FLOW_NO_RAW_MEMO },
	{ .hash = true, .blocks = true, .trace = &two_threads },
	{ .hash = true, .returns = VMPT_FLOW_RETURNS_FOLLOW },
};

START_TEST(is_libipts_with_long_tnt)
{
	struct flow_real real;
	struct flow_run run;

	if (!flow_real_open(&real, traces[1].name))
		return;
	make_long(&real);
	flow_run(&run, &real.stream, real.code, &long_tnt[_i]);
	ck_assert_uint_eq(run.total.instructions, traces[1].instructions);
	ck_assert_uint_eq(run.hash, traces[1].hash);
	ck_assert_uint_eq(run.gap_count, run.total.gaps[VMPT_FLOW_OVERFLOW]);
	flow_run_free(&run);
	flow_real_close(&real);
}
END_TEST

#define NO_MEMOS (VMPT_FLOW_NO_MEMO | VMPT_FLOW_NO_RAW_MEMO | VMPT_FLOW_NO_PSB_MEMO)

static const struct variant {
	const char *what;
	struct vmpt_flow_options options;
} variants[] = {
	{ "blocks", { .hash = true, .blocks = true } },
	{ "no memo", { .hash = true, .off = VMPT_FLOW_NO_MEMO } },
	{ "no raw memo", { .hash = true, .off = VMPT_FLOW_NO_RAW_MEMO } },
	{ "no PSB memo", { .hash = true, .off = VMPT_FLOW_NO_PSB_MEMO } },
	{ "nothing kept", { .hash = true, .off = NO_MEMOS } },
	{ "a stack", { .hash = true, .returns = VMPT_FLOW_RETURNS_FOLLOW } },
	{ "a stack and blocks",
	  { .hash = true, .blocks = true, .returns = VMPT_FLOW_RETURNS_FOLLOW } },
	{ "little memory", { .hash = true, .memory = 1 } },
	{ "little memory and blocks", { .hash = true, .memory = 1, .blocks = true } },
	{ "by packet", { .hash = true, .blocks = true, .by_packet = true } },
	{ "events and times",
	  { .hash = true, .blocks = true, .events = true, .switches = true, .times = true } },
};

/* Other rules for RETs: the same without memos as with them, and as AUTO where no RET has a bit. */
static const struct variant rules[] = {
	{ "no RETs", { .hash = true, .returns = VMPT_FLOW_RETURNS_NONE } },
	{ "no RETs, no memo",
	  { .hash = true, .blocks = true, .returns = VMPT_FLOW_RETURNS_NONE, .off = NO_MEMOS } },
	{ "libipt's RETs", { .hash = true, .returns = VMPT_FLOW_RETURNS_LIBIPT } },
	{ "libipt's RETs, no memo",
	  { .hash = true, .blocks = true, .returns = VMPT_FLOW_RETURNS_LIBIPT, .off = NO_MEMOS } },
};

/* @whole: a damaged trace may have bits where RETs are. */
static void compare_variants(const struct vmpt_stream *stream, struct vmpt_code *code, bool whole)
{
	struct vmpt_flow_options options = { .hash = true };
	struct flow_run plain, other, same;
	size_t i;

	flow_run(&plain, stream, code, &options);
	for (i = 0; i < VMPT_ARRAY_SIZE(variants); i++) {
		flow_run(&other, stream, code, &variants[i].options);
		flow_run_same(&plain, &other, variants[i].what);
		flow_run_free(&other);
	}
	for (i = 0; i < VMPT_ARRAY_SIZE(rules); i += 2) {
		flow_run(&other, stream, code, &rules[i].options);
		flow_run(&same, stream, code, &rules[i + 1].options);
		flow_run_same(&other, &same, rules[i + 1].what);
		if (whole)
			flow_run_same(&plain, &other, rules[i].what);
		flow_run_free(&other);
		flow_run_free(&same);
	}
	flow_run_free(&plain);
}

START_TEST(variants_are_the_same)
{
	struct flow_real real;

	if (!flow_real_open(&real, traces[_i].name))
		return;
	compare_variants(&real.stream, real.code, true);
	flow_real_close(&real);
}
END_TEST

/* Bytes are changed, in places and ways that the seed chooses. */
START_TEST(damaged_variants_are_the_same)
{
	struct test_rng rng = { (u64)_i + 1 };
	struct flow_real real;
	size_t i, n = 1 + test_random(&rng) % 60;

	if (!flow_real_open(&real, traces[_i % 3].name))
		return;
	for (i = 0; i < n; i++) {
		u8 byte = (u8)test_random(&rng);

		real.bytes[test_random(&rng) % real.stream.size] = byte;
	}
	if (_i % 3 == 0)
		real.stream.size /= 4;
	compare_variants(&real.stream, real.code, false);
	flow_real_close(&real);
}
END_TEST

static int by_value(const void *a, const void *b)
{
	s64 d = *(const s64 *)a - *(const s64 *)b;

	return (d > 0) - (d < 0);
}

/* How many instructions of each block ran, by its address. */
struct ran {
	u64 ip, count;
};

static int by_ip(const void *a, const void *b)
{
	const struct ran *x = a, *y = b;

	return (x->ip > y->ip) - (x->ip < y->ip);
}

static struct ran *ran_of(const struct flow_real *real, size_t *n)
{
	struct vmpt_flow_options options = { 0 };
	struct vmpt_flow_block block;
	struct vmpt_flow_batch batch;
	struct vmpt_flow *flow;
	u64 whole, part;
	struct ran *ran;
	size_t i;

	ck_assert_int_eq(vmpt_flow_open(&flow, &real->stream, real->code, &options), 0);
	for (i = 0; vmpt_flow_next(flow, &batch) > 0; i++)
		ck_assert_int_eq(batch.kind, VMPT_FLOW_GAP);
	*n = vmpt_flow_blocks(flow);
	ran = calloc(*n + 1, sizeof(*ran));
	for (i = 0; i < *n; i++) {
		vmpt_flow_block(flow, (u32)i, &block);
		vmpt_flow_executed(flow, (u32)i, &whole, &part);
		ran[i] = (struct ran){ block.ip, whole * block.instructions + part };
	}
	vmpt_flow_close(flow);
	qsort(ran, *n, sizeof(*ran), by_ip);
	return ran;
}

/* Instructions of blocks that ran less often than in truth, and those of blocks that ran more. */
static void count_wrong(const struct ran *truth, size_t n, const struct ran *found, size_t m,
			s64 *less, s64 *more)
{
	size_t i = 0, k = 0;
	s64 want, have;
	u64 ip;

	*less = *more = 0;
	while (i < n || k < m) {
		ip = i < n && (k == m || truth[i].ip <= found[k].ip) ? truth[i].ip : found[k].ip;
		for (want = 0; i < n && truth[i].ip == ip; i++)
			want += (s64)truth[i].count;
		for (have = 0; k < m && found[k].ip == ip; k++)
			have += (s64)found[k].count;
		*(have < want ? less : more) += have < want ? want - have : have - want;
	}
}

#define SEEDS 15

/*
 * Fifty bytes changed cost less than one instruction in a thousand, and make less than one in two
 * thousand that was not executed. One seed costs a little more: it changes the upper half of Last
 * IP, which stays wrong up to the next PSB.
 */
START_TEST(little_is_lost)
{
	s64 less[SEEDS], more[SEEDS], want = (s64)traces[1].instructions;
	struct ran *truth, *found;
	struct flow_real real;
	size_t n, m;
	int i, seed;

	if (!flow_real_open(&real, traces[1].name))
		return;
	truth = ran_of(&real, &n);
	flow_real_close(&real);
	for (seed = 0; seed < SEEDS; seed++) {
		struct test_rng rng = { 50 + (u64)seed };

		flow_real_open(&real, traces[1].name);
		for (i = 0; i < 50; i++) {
			size_t at = test_random(&rng) % real.stream.size;

			real.bytes[at] = (u8)test_random(&rng);
		}
		found = ran_of(&real, &m);
		count_wrong(truth, n, found, m, &less[seed], &more[seed]);
		free(found);
		flow_real_close(&real);
	}
	free(truth);
	qsort(less, SEEDS, sizeof(*less), by_value);
	qsort(more, SEEDS, sizeof(*more), by_value);
	ck_assert_int_lt(less[SEEDS / 2], want / 2000);
	ck_assert_int_lt(less[SEEDS - 2], want / 1000);
	ck_assert_int_lt(less[SEEDS - 1], want / 800);
	ck_assert_int_lt(more[SEEDS - 1], want / 2000);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("decoder/flow/real");
	TCase *tcase = tcase_create("libipt");

	tcase_add_loop_test(tcase, is_libipts, 0, 3);
	tcase_add_loop_test(tcase, is_libipts_with_long_tnt, 0, (int)VMPT_ARRAY_SIZE(long_tnt));
	suite_add_tcase(suite, tcase);
	tcase = test_long_case(suite);
	/* The sanitizers see all paths in the smallest trace, and in damaged ones. */
	tcase_add_loop_test(tcase, variants_are_the_same, getenv("VMPT_SANITIZED") ? 2 : 0, 3);
	tcase_add_loop_test(tcase, damaged_variants_are_the_same, 0, test_rounds(60, 5));
	if (!getenv("VMPT_SANITIZED"))
		tcase_add_test(tcase, little_is_lost);
	return suite;
}
