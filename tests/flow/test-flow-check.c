// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The checker itself: a program of a few bytes, fed to the model and written as a truth, is equal;
 * with one bit, block or byte changed it is not.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/truth-format.h"
#include "tests/model/rig.h"
#include "tests/flow/cursor.h"
#include "tests/flow/flow.h"

/*
 *	401000	90		start: nop
 *	401001	75 0d		jne int
 *	401003	e8 f8 00 00 00	call function
 *	401008	f3 a4		rep: rep movsb
 *	40100a	ff e0		jmp *%rax, to int
 *	401010	cd 80		int: int $0x80
 *	401012	eb ec		back: jmp start
 *	401100	31 c0		function: xor %eax,%eax
 *	401102	c3		ret
 *	402000	48 cf		handler: iretq
 */
enum { START, CALL, REP, JUMP, INT, BACK, FUNCTION, HANDLER, OTHER, BLOCKS };

#define START_IP    0x401000u
#define CALL_IP	    0x401003u
#define REP_IP	    0x401008u
#define JUMP_IP	    0x40100au
#define INT_IP	    0x401010u
#define BACK_IP	    0x401012u
#define FUNCTION_IP 0x401100u
#define HANDLER_IP  0x402000u

struct code {
	u64 ip;
	u32 insns, size;
	u8 bytes[24]; /* lengths, then code */
};

static const struct code blocks[BLOCKS] = {
	[START] = { START_IP, 2, 3, { 1, 2, 0x90, 0x75, 0x0d } },
	[CALL] = { CALL_IP, 1, 5, { 5, 0xe8, 0xf8, 0, 0, 0 } },
	[REP] = { REP_IP, 1, 2, { 2, 0xf3, 0xa4 } },
	[JUMP] = { JUMP_IP, 1, 2, { 2, 0xff, 0xe0 } },
	[INT] = { INT_IP, 1, 2, { 2, 0xcd, 0x80 } },
	[BACK] = { BACK_IP, 1, 2, { 2, 0xeb, 0xec } },
	[FUNCTION] = { FUNCTION_IP, 2, 3, { 2, 1, 0x31, 0xc0, 0xc3 } },
	[HANDLER] = { HANDLER_IP, 1, 2, { 2, 0x48, 0xcf } },
	/* Later in place of BACK: two NOPs and a jump to handler. */
	[OTHER] = { BACK_IP, 3, 7, { 1, 1, 5, 0x90, 0x90, 0xe9, 0xe7, 0x0f, 0, 0 } },
};

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

static struct {
	u32 words[1 << 16];
	size_t n;
	struct flow_options options;
	struct flow_counts counts;
} truth;

static void put(u32 word)
{
	ck_assert_uint_lt(truth.n, VMPT_ARRAY_SIZE(truth.words));
	truth.words[truth.n++] = word;
}

static void put64(u64 v)
{
	put((u32)v);
	put((u32)(v >> 32));
}

static void define(u32 id, const struct code *code)
{
	u32 i, n = (code->insns + code->size + 3) / 4, w;

	put(TRUTH_DEFINE);
	put(id);
	put64(code->ip);
	put(code->insns);
	put(code->size);
	for (i = 0; i < n; i++) {
		memcpy(&w, code->bytes + 4 * i, 4);
		put(w);
	}
}

static void event(u64 from, u64 to)
{
	put(TRUTH_EVENT);
	put64(from);
	put64(to);
}

static void place(u32 what, u64 ip)
{
	put(what);
	put64(ip);
}

static void start(void)
{
	u32 id;

	truth.n = 0;
	put(0x54504d56); /* "VMPT" */
	put(0x31555254); /* "TRU1" */
	for (id = 0; id < OTHER; id++)
		define(id, &blocks[id]);
}

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
	equal = flow_check(&reader, rig.bytes, rig.size, &truth.options, &truth.counts);
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
	ck_assert_uint_eq(truth.counts.insns, 10 * TURN + 1);
	ck_assert_uint_eq(truth.counts.events, 20);
	ck_assert_uint_eq(truth.counts.runs, 1);
	ck_assert_uint_eq(truth.counts.merged, 40);
	ck_assert_uint_eq(truth.counts.blocks, 10 * 13 + 1);
	ck_assert_uint_eq(truth.counts.soft_ints, 0);
	ck_assert_uint_eq(truth.counts.tail, 0);
	ck_assert_uint_eq(truth.counts.definitions, OTHER);
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
	ck_assert_uint_eq(truth.counts.insns, faults[_i].insns);
}
END_TEST

START_TEST(int_that_the_truth_lists)
{
	ck_assert(check_with(LISTED_INT));
	ck_assert_uint_eq(truth.counts.soft_ints, 1);
	ck_assert_uint_eq(truth.counts.insns, 10 * TURN + 1);
}
END_TEST

/* The turn's second half is lost: handler, rep, jump; the INT's event is there. */
START_TEST(overflow)
{
	ck_assert(!check_with(OVERFLOW));
	rig_setup();
	truth.options.allow_overflow = true;
	ck_assert(check_with(OVERFLOW));
	ck_assert_uint_eq(truth.counts.overflows, 1);
	ck_assert_uint_eq(truth.counts.insns + truth.counts.lost, 10 * TURN + 1);
	ck_assert_uint_ge(truth.counts.lost, 3);
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
	ck_assert_uint_eq(truth.counts.insns, TURN + 2 + 1 + 3 + 1 + 1);
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
	ck_assert_uint_eq(truth.counts.runs, 2);
	ck_assert_uint_eq(truth.counts.insns, 7);
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
	ck_assert_uint_eq(truth.counts.entries, 1);
	ck_assert_uint_eq(truth.counts.insns, 3);
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
	truth.options.tail = 2 * TURN;
	ck_assert(check_words(4 * truth.n));
	ck_assert_uint_eq(truth.counts.tail, 2 * TURN);
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
	ck_assert_uint_eq(truth.counts.insns, 10 * TURN + 1);
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
}

static void state(u32 flags, u64 ip, u64 ctl)
{
	put(TRUTH_STATE);
	put(flags);
	put64(ip);
	put64(ctl);
	put64(0x5000); /* CR3 */
	put64(0x6000); /* EPT pointer */
}

/* The items of the current truth as letters: block's ID, Begin, End, eVent; with IPs. */
static void items(bool traced_only, char *text, size_t size)
{
	static const char *const letters[] = {
		[TRUTH_RUN_EVENT] = "V", [TRUTH_RUN_BEGIN] = "B", [TRUTH_RUN_END] = "E"
	};
	int fd = memfd_create("truth", 0);
	struct truth_reader reader;
	struct truth_item item;
	size_t at = 0;
	char path[64];

	ck_assert_int_eq(write(fd, truth.words, 4 * truth.n), (ssize_t)(4 * truth.n));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ck_assert(truth_reader_open(&reader, path));
	reader.traced_only = traced_only;
	text[0] = '\0';
	for (;;) {
		ck_assert_msg(truth_reader_next(&reader, &item), "%s", reader.error);
		if (item.kind == TRUTH_END_OF_FILE)
			break;
		at += (size_t)snprintf(text + at, size - at, "%s%llx ",
				       item.kind == TRUTH_RUN_BLOCK ? "" : letters[item.kind],
				       (unsigned long long)(item.kind == TRUTH_RUN_BLOCK
								    ? item.block->ip
								    : item.from));
	}
	ck_assert_uint_eq(reader.now.cr3, 0x5000);
	ck_assert_uint_eq(reader.now.eptp, 0x6000);
	truth_reader_close(&reader);
	close(fd);
}

/* Only what is executed while TraceEn and the level's bit are 1. */
START_TEST(cut_by_state)
{
	char text[256];

	start();
	state(0, START_IP, 0);
	place(TRUTH_BEGIN, START_IP);
	put(START);
	state(0, CALL_IP, 0xd); /* TraceEn, OS, User */
	put(CALL);
	put(FUNCTION);
	event(REP_IP, HANDLER_IP);
	place(TRUTH_END, HANDLER_IP);
	/* Code executed meanwhile is not traced. */
	state(0, HANDLER_IP, 0x8);
	place(TRUTH_BEGIN, HANDLER_IP);
	event(HANDLER_IP, HANDLER_IP);
	put(HANDLER);
	place(TRUTH_END, REP_IP);
	state(0, REP_IP, 0x5); /* TraceEn, OS */
	place(TRUTH_BEGIN, REP_IP);
	put(REP);
	state(3, JUMP_IP, 0x5); /* to user mode */
	put(JUMP);
	state(3, INT_IP, 0x9);
	put(INT);
	state(3, BACK_IP, 0x8);
	put(BACK);
	items(true, text, sizeof(text));
	ck_assert_str_eq(text, "B401003 401003 401100 V401008 E402000 B401008 401008 E40100a "
			       "B401010 401010 E401012 ");
	items(false, text, sizeof(text));
	ck_assert_str_eq(text,
			 "B401000 401000 401003 401100 V401008 E402000 B402000 V402000 402000 "
			 "E401008 B401008 401008 40100a 401010 401012 ");
}
END_TEST

/* A branch into the IP filter begins, one out of it ends; one to a TraceStop range ends for good.
 */
START_TEST(h3_cut_by_ranges)
{
	const u64 filter = 1ULL << 32, stop = 2ULL << 32;
	char text[256];

	start();
	put(TRUTH_RANGE);
	put(0);
	put64(FUNCTION_IP);
	put64(FUNCTION_IP + 0xff);
	state(0, START_IP, 0xd | filter);
	place(TRUTH_BEGIN, START_IP);
	put(START);
	put(CALL);
	put(FUNCTION);
	put(REP);
	put(FUNCTION);
	/* Its handler is outside: no event in the trace, but an end where it came from. */
	event(REP_IP, HANDLER_IP);
	put(HANDLER);
	state(0, START_IP, 0);
	put(START);
	state(0, CALL_IP, 0xd | stop);
	put(CALL);
	put(FUNCTION);
	put(REP);
	/* TraceEn is cleared and set: Stopped is 0 again. */
	state(0, START_IP, 0);
	put(START);
	state(0, CALL_IP, 0xd | stop);
	put(CALL);
	items(true, text, sizeof(text));
	ck_assert_str_eq(text,
			 "B401100 401100 E401008 B401100 401100 E401008 B401003 401003 E401100 "
			 "B401003 401003 ");
}
END_TEST

/* An event that changes the level leads out: the trace ends at the instruction that it interrupted.
 */
START_TEST(h3_cut_at_events)
{
	char text[256];

	start();
	state(3, START_IP, 0x9); /* TraceEn, User */
	place(TRUTH_BEGIN, START_IP);
	put(START);
	event(CALL_IP, HANDLER_IP);
	state(0, HANDLER_IP, 0x9);
	put(HANDLER);
	state(3, CALL_IP, 0x9);
	put(CALL);
	items(true, text, sizeof(text));
	ck_assert_str_eq(text, "B401000 401000 E401003 B401003 401003 ");
}
END_TEST

/* A branch leads into the filter, and an interrupt comes before its target: a part without code. */
START_TEST(h3_cut_to_nothing)
{
	char text[256];

	start();
	put(TRUTH_RANGE);
	put(0);
	put64(FUNCTION_IP);
	put64(FUNCTION_IP + 0xff);
	state(0, START_IP, 0xd | 1ULL << 32);
	place(TRUTH_BEGIN, START_IP);
	put(START);
	put(CALL);
	event(FUNCTION_IP, HANDLER_IP);
	put(HANDLER);
	put(FUNCTION);
	items(true, text, sizeof(text));
	ck_assert_str_eq(text, "B401100 E401100 B401100 401100 ");
}
END_TEST

TEST_SUITE()
{
	const TTest *const once[] = { equal_flow,
				      int_that_the_truth_lists,
				      overflow,
				      runs,
				      tail,
				      cut_truth,
				      bad_truth,
				      pipe_in_pieces,
				      cut_by_state,
				      rep_or_not,
				      h3_cut_by_ranges,
				      h3_cut_at_events,
				      h3_cut_to_nothing };
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
