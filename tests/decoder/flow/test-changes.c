// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Code that changes while it runs: the flow must be what the machine executed, by every variant of
 * the decoder.
 */
#include "tests/decoder/flow-run.h"
#include "tests/decoder/flow/machine.h"
#include "tests/support/support.h"
#include "util/array.h"

static const struct vmpt_options two_threads = { .threads = 2, .chunk = 400 };
static const struct vmpt_options many_threads = { .threads = 5, .chunk = 16 };

static const struct variant {
	const char *what;
	struct vmpt_flow_options options;
} variants[] = {
	{ "by packet", { .hash = true, .blocks = true, .by_packet = true } },
	{ "blocks", { .hash = true, .blocks = true } },
	{ "counts", { .hash = true } },
	{ "no memo", { .hash = true, .off = VMPT_FLOW_NO_MEMO } },
	{ "no raw memo", { .hash = true, .off = VMPT_FLOW_NO_RAW_MEMO } },
	{ "nothing kept",
	  { .hash = true,
	    .blocks = true,
	    .off = VMPT_FLOW_NO_MEMO | VMPT_FLOW_NO_RAW_MEMO | VMPT_FLOW_NO_PSB_MEMO } },
	{ "a stack", { .hash = true, .returns = VMPT_FLOW_RETURNS_FOLLOW } },
	{ "a stack and blocks",
	  { .hash = true, .blocks = true, .returns = VMPT_FLOW_RETURNS_FOLLOW } },
	{ "little memory", { .hash = true, .memory = 1 } },
	{ "little memory and blocks", { .hash = true, .memory = 1, .blocks = true } },
	{ "events and times",
	  { .hash = true, .blocks = true, .events = true, .switches = true, .times = true } },
	{ "threads, events and times",
	  { .hash = true,
	    .blocks = true,
	    .events = true,
	    .switches = true,
	    .times = true,
	    .trace = &many_threads } },
	{ "threads", { .hash = true, .trace = &two_threads } },
	{ "threads and blocks", { .hash = true, .trace = &many_threads, .blocks = true } },
	{ "threads and a stack",
	  { .hash = true, .trace = &many_threads, .returns = VMPT_FLOW_RETURNS_FOLLOW } },
};

static void check(const struct flow_run *run, const char *what)
{
	size_t i;

	ck_assert_msg(!run->gap_count, "%s: %zu gaps, the first is %u at %#llx", what,
		      run->gap_count, run->gap_count ? run->gaps[0].reason : 0,
		      run->gap_count ? (unsigned long long)run->gaps[0].ip : 0ULL);
	for (i = 0; i < run->count; i++)
		if (i >= machine.executed || run->ips[i] != machine.truth[i])
			ck_abort_msg("%s: instruction %zu is at %#llx, not %#llx", what, i,
				     (unsigned long long)run->ips[i],
				     i < machine.executed ? (unsigned long long)machine.truth[i]
							  : 0ULL);
	ck_assert_uint_eq(run->total.instructions, machine.executed);
	/* Each address space comes once. */
	ck_assert_uint_eq(run->space_count, machine.spaces);
}

static void run_variants(struct vmpt_code *codes)
{
	struct vmpt_stream stream = {
		.data = machine.trace, .size = machine.size, .cpu = -1, .tid = -1
	};
	struct flow_run first, other;
	size_t i;

	flow_run(&first, &stream, codes, &variants[0].options);
	check(&first, variants[0].what);
	for (i = 1; i < VMPT_ARRAY_SIZE(variants); i++) {
		flow_run(&other, &stream, codes, &variants[i].options);
		check(&other, variants[i].what);
		flow_run_same(&first, &other, variants[i].what);
		flow_run_free(&other);
	}
	flow_run_free(&first);
	free(machine.truth);
	free(machine.trace);
}

static struct vmpt_image *open_memory(const char *name)
{
	struct vmpt_image_options o = { .kind = VMPT_IMAGE_BYTES,
					.has_address = true,
					.address = FIRST };
	struct vmpt_image *image;

	ck_assert(!vmpt_image_open(
		&image, test_dir_file(name, machine.memory, 2 * sizeof(machine.memory[0])), &o,
		NULL));
	return image;
}

static struct vmpt_image *open_code(void)
{
	struct vmpt_image_options o = { .kind = VMPT_IMAGE_CODE };
	struct vmpt_image *image;

	ck_assert(!vmpt_image_open(
		&image, test_dir_file("code", machine_code.file, machine_code.size), &o, NULL));
	return image;
}

/* Changes are rarer from one seed to the next. */
static void check_executed(u64 seed)
{
	struct vmpt_image *image;
	struct vmpt_code *codes;

	test_dir_make();
	flow_machine_run(seed, 20001, 100u << (seed - 1) % 6);
	ck_assert_uint_gt(machine.executed, 15000);
	image = machine.fixed ? open_memory("memory") : open_code();
	ck_assert(!vmpt_code_new(&codes));
	ck_assert(!vmpt_code_add(codes, NULL, NULL, image));
	run_variants(codes);
	vmpt_code_free(codes);
	vmpt_image_close(image);
	test_dir_remove();
	memset(&machine, 0, sizeof(machine));
}

START_TEST(executed)
{
	check_executed((u64)_i + 1);
}
END_TEST

START_TEST(executed_32)
{
	machine.exec = 32;
	check_executed((u64)_i + 1);
}
END_TEST

START_TEST(executed_with_long_tnt)
{
	machine.long_tnt = true;
	machine.exec = _i % 4 == 3 ? 32 : 64;
	check_executed((u64)_i + 1);
}
END_TEST

/*
 * Where images have several versions of a page, one that fits goes before a deferred TIP: so these
 * are for code that does not change.
 */
START_TEST(executed_with_deferred_tips)
{
	machine.long_tnt = machine.fixed = true;
	machine.exec = _i % 4 == 3 ? 32 : 64;
	check_executed((u64)_i + 1);
}
END_TEST

/*
 * Bytes of the trace are changed: all variants find the same, also where code changes while the
 * flow is searched.
 */
START_TEST(damaged)
{
	struct vmpt_stream stream = { .cpu = -1, .tid = -1 };
	struct flow_run first, other;
	struct vmpt_image *image;
	struct vmpt_code *codes;
	size_t i, n;

	test_dir_make();
	machine.long_tnt = _i % 3 == 2;
	flow_machine_run((u64)_i + 1, 20001, 100u << _i % 6);
	for (n = 1 + flow_machine_below(60); n; n--)
		machine.trace[flow_machine_below((u32)machine.size)] = (u8)flow_machine_below(256);
	stream.data = machine.trace;
	stream.size = machine.size;
	image = open_code();
	ck_assert(!vmpt_code_new(&codes));
	ck_assert(!vmpt_code_add(codes, NULL, NULL, image));
	flow_run(&first, &stream, codes, &variants[1].options);
	for (i = 2; i < VMPT_ARRAY_SIZE(variants); i++) {
		flow_run(&other, &stream, codes, &variants[i].options);
		flow_run_same(&first, &other, variants[i].what);
		flow_run_free(&other);
	}
	flow_run_free(&first);
	vmpt_code_free(codes);
	vmpt_image_close(image);
	free(machine.truth);
	free(machine.trace);
	memset(&machine, 0, sizeof(machine));
	test_dir_remove();
}
END_TEST

/* ---- two dumps without times ---- */

static struct vmpt_image *open_keys(const char *name, bool on)
{
	struct vmpt_image_options o = { .kind = VMPT_IMAGE_BYTES,
					.has_address = true,
					.address = FIRST };
	static u8 pages[VMPT_PAGE];
	struct vmpt_image *image;

	flow_machine_keys(pages, on);
	ck_assert(!vmpt_image_open(&image, test_dir_file(name, pages, sizeof(pages)), &o, NULL));
	return image;
}

START_TEST(two_dumps)
{
	struct vmpt_image *before, *after;
	struct vmpt_code *codes;

	test_dir_make();
	flow_machine_run_keys((u64)_i + 1, 4000);
	before = open_keys("before", false);
	after = open_keys("after", true);
	ck_assert(!vmpt_code_new(&codes));
	ck_assert(!vmpt_code_add(codes, NULL, NULL, _i % 2 ? before : after));
	ck_assert(!vmpt_code_add(codes, NULL, NULL, _i % 2 ? after : before));
	machine.spaces = 1;
	run_variants(codes);
	vmpt_code_free(codes);
	vmpt_image_close(before);
	vmpt_image_close(after);
	test_dir_remove();
}
END_TEST

/* ---- dumps that do not have all that ran ---- */

/* From a PSB on the same is found without what comes before it. */
static void check_tail(const struct flow_run *whole, struct vmpt_code *codes, size_t from,
		       const struct vmpt_flow_options *options)
{
	struct vmpt_stream stream = {
		.data = machine.trace + from, .size = machine.size - from, .cpu = -1, .tid = -1
	};
	struct flow_run tail;

	flow_run(&tail, &stream, codes, options);
	ck_assert_uint_le(tail.count, whole->count);
	ck_assert_mem_eq(tail.ips, whole->ips + whole->count - tail.count,
			 tail.count * sizeof(u64));
	flow_run_free(&tail);
}

/* Random code and its trace, with images of the memory before it ran and after. */
struct two_times {
	struct vmpt_image *before, *after;
	struct vmpt_stream stream;
	struct vmpt_code *codes; /* .before only */
};

static void two_times_open(struct two_times *t, u64 seed)
{
	test_dir_make();
	machine.no_maps = true;
	flow_machine_make(seed + 1);
	t->before = open_memory("before");
	machine.no_maps = true;
	flow_machine_run(seed + 1, 10001, 200u << seed % 6);
	t->after = open_memory("after");
	t->stream = (struct vmpt_stream){
		.data = machine.trace, .size = machine.size, .cpu = -1, .tid = -1
	};
	ck_assert(!vmpt_code_new(&t->codes));
	ck_assert(!vmpt_code_add(t->codes, NULL, NULL, t->before));
}

static void two_times_close(struct two_times *t)
{
	vmpt_code_free(t->codes);
	vmpt_image_close(t->before);
	vmpt_image_close(t->after);
	free(machine.truth);
	free(machine.trace);
	test_dir_remove();
}

/*
 * What is found need not be what was executed: the code was patched between the dumps, too. But all
 * variants find the same, from each PSB on. (By packet, a gap at a PSB has an offset before that of
 * the batch before it: a known fault, docs/flow.md.)
 */
START_TEST(dumps_of_other_times)
{
	struct flow_run first, other;
	struct two_times t;
	size_t i;

	two_times_open(&t, (u64)_i);
	ck_assert(!vmpt_code_add(t.codes, NULL, NULL, t.after));
	flow_run(&first, &t.stream, t.codes, &variants[1].options);
	for (i = 2; i < VMPT_ARRAY_SIZE(variants); i++) {
		flow_run(&other, &t.stream, t.codes, &variants[i].options);
		flow_run_same(&first, &other, variants[i].what);
		flow_run_free(&other);
	}
	for (i = 0; i < machine.psbs; i++)
		if (i % 4 == 0)
			check_tail(&first, t.codes, machine.psb[i], &variants[1].options);
	flow_run_free(&first);
	two_times_close(&t);
}
END_TEST

/* Another version helps: rarely one that is not right fits for a while, and costs more gaps. */
START_TEST(another_version_helps)
{
	size_t one = 0, both = 0;
	struct flow_run run;
	struct two_times t;
	int i;

	for (i = 0; i < test_rounds(60, 6); i++) {
		two_times_open(&t, (u64)i);
		flow_run(&run, &t.stream, t.codes, &variants[1].options);
		one += run.gap_count;
		flow_run_free(&run);
		ck_assert(!vmpt_code_add(t.codes, NULL, NULL, t.after));
		flow_run(&run, &t.stream, t.codes, &variants[1].options);
		both += run.gap_count;
		flow_run_free(&run);
		two_times_close(&t);
	}
	ck_assert_msg(4 * both < 3 * one, "gaps: %zu by one image, %zu by both", one, both);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("decoder/flow/changes");
	TCase *tcase = test_long_case(suite);

	tcase_add_loop_test(tcase, executed, 0, test_rounds(600, 4));
	tcase_add_loop_test(tcase, executed_32, 0, test_rounds(60, 2));
	tcase_add_loop_test(tcase, executed_with_long_tnt, 0, test_rounds(200, 3));
	tcase_add_loop_test(tcase, executed_with_deferred_tips, 0, test_rounds(200, 3));
	tcase_add_loop_test(tcase, damaged, 0, test_rounds(400, 4));
	tcase_add_loop_test(tcase, dumps_of_other_times, 0, test_rounds(200, 4));
	tcase_add_test(tcase, another_version_helps);
	tcase_add_loop_test(tcase, two_dumps, 0, test_rounds(200, 4));
	suite_add_tcase(suite, tcase);
	return suite;
}
