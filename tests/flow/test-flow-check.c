// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The checker itself: a program of a few bytes, fed to the model and written as a truth, is equal;
 * with one bit, block or byte changed it is not.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/model/rig.h"
#include "tests/flow/cursor.h"
#include "tests/flow/flow.h"
#include "tests/flow/program.h"

static struct flow_options options;
static struct flow_counts counts;

/* Variations of a turn of the program. */
enum fault {
	NO_FAULT,
	WRONG_TNT,
	MISSING_BLOCK,
	MORE_BLOCK,
	WRONG_CODE,
	WRONG_LENGTH,
	MISSING_EVENT,
	WRONG_FROM,
	WRONG_TO,
	WRONG_PART,
	WRONG_END,
	LISTED_INT,
	OVERFLOW,
};

static void far(unsigned int kind, u64 from, u64 to)
{
	struct vmpt_far f = far_to(kind, from, to);

	rig_far(&f);
}

/* start (not taken), function, rep, an interrupt in it, jump, INT, back */
static void turn_trace(enum fault fault)
{
	struct vmpt_unit *unit = &rig.unit;

	vmpt_unit_jcc(unit, fault == WRONG_TNT, CALL_IP);
	vmpt_unit_call(unit, REP_IP, FUNCTION_IP);
	vmpt_unit_ret(unit, REP_IP);
	far(VMPT_FAR_INTERRUPT, REP_IP, HANDLER_IP);
	if (fault == OVERFLOW)
		vmpt_unit_overflow(unit);
	far(VMPT_FAR_IRET, HANDLER_IP, REP_IP);
	vmpt_unit_jmp_indirect(unit, INT_IP);
	if (fault == OVERFLOW)
		vmpt_unit_overflow_resolve(unit, INT_IP);
	far(VMPT_FAR_SOFT_INT, INT_IP, HANDLER_IP);
	far(VMPT_FAR_IRET, HANDLER_IP, BACK_IP);
	vmpt_unit_jmp(unit, START_IP);
}

static void turn_truth(enum fault fault)
{
	struct code wrong;

	if (fault == WRONG_CODE) {
		wrong = blocks[CALL];
		wrong.bytes[2]++; /* one byte off */
		define(CALL, &wrong);
	}
	if (fault == WRONG_LENGTH) {
		wrong = blocks[START];
		wrong.bytes[0] = 2;
		wrong.bytes[1] = 1;
		define(START, &wrong);
	}
	put(START);
	put(CALL);
	if (fault != MISSING_BLOCK)
		put(FUNCTION);
	if (fault == MORE_BLOCK)
		put(FUNCTION);
	put(REP); /* two turns of REP, cut by an interrupt */
	put(REP);
	if (fault != MISSING_EVENT)
		event(REP_IP + (fault == WRONG_FROM), HANDLER_IP + 2 * (fault == WRONG_TO));
	put(HANDLER);
	put(REP);
	put(REP);
	put(REP);
	put(JUMP);
	if (fault == LISTED_INT) {
		put(INT);
	} else {
		put(TRUTH_PART);
		put(INT);
		put(0);
	}
	event(INT_IP, HANDLER_IP);
	put(HANDLER);
	put(BACK);
}

/* Begin of the last turn: two instructions, one of which retired. */
static void finish(enum fault fault)
{
	rig_off(START_IP + 1);
	put(TRUTH_PART);
	put(START);
	put(fault == WRONG_PART ? 0 : 1);
	place(TRUTH_END, fault == WRONG_END ? START_IP : START_IP + 1);
}

static bool check_fd(int fd)
{
	struct truth_reader reader;
	char path[64];
	bool equal;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ck_assert_msg(truth_reader_open(&reader, path), "%s", reader.error);
	equal = flow_check(&reader, rig.bytes, rig.size, &options, &counts);
	truth_reader_close(&reader);
	close(fd);
	return equal;
}

static bool check_words(size_t bytes)
{
	int fd = memfd_create("truth", 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, truth.words, bytes), (ssize_t)bytes);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	return check_fd(fd);
}

/* Ten turns, the fifth with @fault. Returns whether the flow is found equal. */
static bool check_with(enum fault fault)
{
	unsigned int i;

	start();
	rig_on(CTL);
	place(TRUTH_BEGIN, START_IP);
	for (i = 0; i < 10; i++) {
		turn_trace(i == 4 ? fault : NO_FAULT);
		turn_truth(i == 4 ? fault : NO_FAULT);
	}
	finish(fault);
	return check_words(4 * truth.n);
}

/* start 2, call, function 2, handler, rep, jump, handler, back */
#define TURN 10u

START_TEST(equal_flow)
{
	ck_assert(check_with(NO_FAULT));
	ck_assert_uint_eq(counts.insns, 10 * TURN + 1);
	ck_assert_uint_eq(counts.events, 20);
	ck_assert_uint_eq(counts.runs, 1);
	ck_assert_uint_eq(counts.merged, 40);
	ck_assert_uint_eq(counts.blocks, 10 * 13 + 1);
	ck_assert_uint_eq(counts.soft_ints, 0);
	ck_assert_uint_eq(counts.tail, 0);
	ck_assert_uint_eq(counts.definitions, OTHER);
}
END_TEST

/* A difference is found at its place: in the fifth turn. */
START_TEST(one_difference)
{
	static const struct {
		enum fault fault;
		unsigned int insns;
	} faults[] = {
		{ WRONG_TNT, 4 * TURN + 2 },  { MISSING_BLOCK, 4 * TURN + 3 },
		{ MORE_BLOCK, 4 * TURN + 5 }, { WRONG_CODE, 4 * TURN + 3 },
		{ WRONG_LENGTH, 4 * TURN },   { MISSING_EVENT, 4 * TURN + 5 },
		{ WRONG_FROM, 4 * TURN + 5 }, { WRONG_TO, 4 * TURN + 5 },
		{ WRONG_PART, 10 * TURN },    { WRONG_END, 10 * TURN + 1 },
	};

	ck_assert(!check_with(faults[_i].fault));
	ck_assert_uint_eq(counts.insns, faults[_i].insns);
}
END_TEST

START_TEST(int_that_the_truth_lists)
{
	ck_assert(check_with(LISTED_INT));
	ck_assert_uint_eq(counts.soft_ints, 1);
	ck_assert_uint_eq(counts.insns, 10 * TURN + 1);
}
END_TEST

/* The turn's second half is lost: handler, rep, jump; the INT's event is there. */
START_TEST(overflow)
{
	ck_assert(!check_with(OVERFLOW));
	rig_setup();
	options.allow_overflow = true;
	ck_assert(check_with(OVERFLOW));
	ck_assert_uint_eq(counts.overflows, 1);
	ck_assert_uint_eq(counts.insns + counts.lost, 10 * TURN + 1);
	ck_assert_uint_ge(counts.lost, 3);
}
END_TEST

/* A block's code changes between two turns, in the truth under another ID or the same. */
START_TEST(self_modified_code)
{
	u32 id = _i ? BACK : OTHER;

	start();
	rig_on(CTL);
	place(TRUTH_BEGIN, START_IP);
	turn_trace(NO_FAULT);
	turn_truth(NO_FAULT);
	vmpt_unit_jcc(&rig.unit, true, INT_IP);
	far(VMPT_FAR_SOFT_INT, INT_IP, HANDLER_IP);
	far(VMPT_FAR_IRET, HANDLER_IP, BACK_IP);
	vmpt_unit_jmp(&rig.unit, HANDLER_IP);
	far(VMPT_FAR_IRET, HANDLER_IP, START_IP);
	put(START);
	event(INT_IP, HANDLER_IP);
	put(HANDLER);
	define(id, &blocks[OTHER]);
	put(id);
	put(HANDLER);
	finish(NO_FAULT);
	ck_assert(check_words(4 * truth.n));
	ck_assert_uint_eq(counts.insns, TURN + 2 + 1 + 3 + 1 + 1);
}
END_TEST

/* A run ends in a function, the next begins there: its RET is not compressed. */
START_TEST(runs)
{
	start();
	rig_on(CTL);
	place(TRUTH_BEGIN, START_IP);
	vmpt_unit_jcc(&rig.unit, false, CALL_IP);
	vmpt_unit_call(&rig.unit, REP_IP, FUNCTION_IP);
	put(START);
	put(CALL);
	rig_off(FUNCTION_IP + 2);
	put(TRUTH_PART);
	put(FUNCTION);
	put(1);
	place(TRUTH_END, FUNCTION_IP + 2);
	place(TRUTH_BEGIN, FUNCTION_IP + 2);
	ck_assert_int_eq(vmpt_unit_wrmsr(&rig.unit, VMPT_MSR_RTIT_CTL, CTL | VMPT_CTL_TRACE_EN, 0,
					 FUNCTION_IP + 2),
			 0);
	vmpt_unit_ret(&rig.unit, REP_IP);
	define(BLOCKS, &(struct code){ FUNCTION_IP + 2, 1, 1, { 1, 0xc3 } });
	put(BLOCKS);
	put(REP);
	vmpt_unit_jmp_indirect(&rig.unit, INT_IP);
	put(REP);
	put(JUMP);
	rig_off(INT_IP);
	place(TRUTH_END, INT_IP);
	ck_assert(check_words(4 * truth.n));
	ck_assert_uint_eq(counts.runs, 2);
	ck_assert_uint_eq(counts.insns, 7);
}
END_TEST

/* A VM entry to a CPL that is not traced: FUP with its IP, TIP.PGD(). @_i: or another END. */
START_TEST(entry)
{
	static const struct code vmresume = { BACK_IP, 1, 3, { 3, 0x0f, 0x01, 0xc3 } };

	start();
	rig_on(CTL);
	place(TRUTH_BEGIN, START_IP);
	vmpt_unit_jcc(&rig.unit, true, INT_IP);
	far(VMPT_FAR_SOFT_INT, INT_IP, HANDLER_IP);
	far(VMPT_FAR_IRET, HANDLER_IP, BACK_IP);
	put(START);
	event(INT_IP, HANDLER_IP);
	put(HANDLER);
	define(BACK, &vmresume);
	put(BACK);
	rig_off(BACK_IP);
	place(TRUTH_END, _i ? START_IP : 0);
	ck_assert(check_words(4 * truth.n) == !_i);
	ck_assert_uint_eq(counts.entries, 1);
	ck_assert_uint_eq(counts.insns, 3);
}
END_TEST

/* The last turns are not in the trace. */
START_TEST(tail)
{
	unsigned int i;

	start();
	rig_on(CTL);
	for (i = 0; i < 3; i++) {
		if (!i)
			turn_trace(NO_FAULT);
		turn_truth(NO_FAULT);
	}
	rig_off(START_IP);
	ck_assert(!check_words(4 * truth.n));
	options.tail = 2 * TURN;
	ck_assert(check_words(4 * truth.n));
	ck_assert_uint_eq(counts.tail, 2 * TURN);
}
END_TEST

/* A truncated truth is not equal. */
START_TEST(cut_truth)
{
	size_t bytes, all;

	ck_assert(check_with(NO_FAULT));
	all = 4 * truth.n;
	for (bytes = 8; bytes <= all; bytes++)
		ck_assert_msg(check_words(bytes) == (bytes == all), "%zu", bytes);
}
END_TEST

START_TEST(bad_truth)
{
	static const struct code no_length = { 0x1000, 1, 1, { 0, 0x90 } };
	static const struct code other_length = { 0x1000, 1, 3, { 2, 0x90, 0x90, 0x90 } };
	struct truth_reader reader;

	ck_assert(!truth_reader_open(&reader, "/dev/null"));
	ck_assert_str_eq(reader.error, "truth: at byte 0: is not a truth file");
	truth_reader_close(&reader);
	ck_assert(!truth_reader_open(&reader, "/nowhere/truth"));
	truth_reader_close(&reader);
	rig_on(CTL);
	rig_off(START_IP);
	start();
	put(BLOCKS); /* not defined */
	ck_assert(!check_words(4 * truth.n));
	truth.n--;
	put(0xf0000006);
	ck_assert(!check_words(4 * truth.n));
	truth.n--;
	put(TRUTH_PART);
	put(START);
	put(3);
	ck_assert(!check_words(4 * truth.n));
	truth.n -= 3;
	define(1, &no_length);
	ck_assert(!check_words(4 * truth.n));
	start();
	define(1, &other_length);
	ck_assert(!check_words(4 * truth.n));
}
END_TEST

/* Through a pipe that returns a few bytes at a time. */
START_TEST(pipe_in_pieces)
{
	const u8 *bytes = (const u8 *)truth.words;
	size_t at, n;
	int fds[2], status;
	pid_t pid;

	ck_assert(check_with(NO_FAULT));
	ck_assert_int_eq(pipe(fds), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		close(fds[0]);
		for (at = 0; at < 4 * truth.n; at += n) {
			n = 1 + at % 13;
			n = n < 4 * truth.n - at ? n : 4 * truth.n - at;
			if (write(fds[1], bytes + at, n) != (ssize_t)n)
				_exit(1);
			usleep(at % 7 ? 0 : 100);
		}
		_exit(0);
	}
	close(fds[1]);
	ck_assert(check_fd(fds[0]));
	ck_assert_uint_eq(counts.insns, 10 * TURN + 1);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(rep_or_not)
{
	static const struct {
		u8 length, code[4];
		bool rep;
	} insns[] = {
		{ 2, { 0xf3, 0xa4 }, true },	    { 3, { 0x66, 0xf3, 0xa5 }, true },
		{ 3, { 0xf3, 0x67, 0xab }, true },  { 3, { 0x2e, 0xf3, 0xac }, true },
		{ 2, { 0xf2, 0xae }, true },	    { 2, { 0xf3, 0x6e }, true },
		{ 3, { 0xf3, 0x48, 0xa5 }, true },  { 1, { 0xa4 }, false },
		{ 2, { 0x66, 0xa5 }, false },	    { 2, { 0xf3, 0x90 }, false },
		{ 2, { 0xeb, 0xa4 }, false },	    { 2, { 0x75, 0xa6 }, false },
		{ 3, { 0x66, 0xb8, 0xa4 }, false }, { 4, { 0xf3, 0x0f, 0x10, 0xaf }, false },
	};
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(insns); i++)
		ck_assert_msg(cursor_is_rep(insns[i].code, insns[i].length) == insns[i].rep, "%zu",
			      i);
}
END_TEST

static void setup(void)
{
	rig_setup();
	memset(&truth, 0, sizeof(truth));
	memset(&options, 0, sizeof(options));
	memset(&counts, 0, sizeof(counts));
}

TEST_SUITE()
{
	const TTest *const once[] = {
		equal_flow, int_that_the_truth_lists, overflow,	 runs, tail, cut_truth,
		bad_truth,  pipe_in_pieces,	      rep_or_not
	};
	Suite *suite = suite_create("flow/flow-check");
	TCase *tc = tcase_create("flow-check");
	size_t i;

	tcase_add_checked_fixture(tc, setup, NULL);
	for (i = 0; i < VMPT_ARRAY_SIZE(once); i++)
		tcase_add_test(tc, once[i]);
	tcase_add_loop_test(tc, one_difference, 0, 10);
	tcase_add_loop_test(tc, self_modified_code, 0, 2);
	tcase_add_loop_test(tc, entry, 0, 2);
	suite_add_tcase(suite, tc);
	return suite;
}
