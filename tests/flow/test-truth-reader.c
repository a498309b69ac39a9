// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A truth of all that was executed, cut to what a trace has: by state, ranges and events. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/flow/program.h"
#include "tests/flow/truth-reader.h"

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

static void sp(u64 value)
{
	put(TRUTH_SP);
	put64(value);
}

/* RSP comes with the item after it; other items have none. */
START_TEST(stack_pointers)
{
	static const struct {
		enum truth_kind kind;
		u64 sp;
	} want[] = {
		{ TRUTH_RUN_BLOCK, 0x7ff0 },  { TRUTH_RUN_BLOCK, 0 },
		{ TRUTH_RUN_BLOCK, 0x7fe8 },  { TRUTH_RUN_EVENT, 0 },
		{ TRUTH_RUN_BLOCK, 0xe0000 }, { TRUTH_RUN_BLOCK, 0x7fe8 },
	};
	int fd = memfd_create("truth", 0);
	struct truth_reader reader;
	struct truth_item item;
	char path[64];

	start();
	sp(0x7ff0);
	put(START);
	put(CALL);
	sp(0x7fe8);
	put(FUNCTION);
	event(REP_IP, HANDLER_IP);
	sp(0x123);
	sp(0xe0000);
	put(HANDLER);
	sp(0x7fe8);
	put(REP);
	ck_assert_int_eq(write(fd, truth.words, 4 * truth.n), (ssize_t)(4 * truth.n));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ck_assert(truth_reader_open(&reader, path));
	for (size_t i = 0; i < VMPT_ARRAY_SIZE(want); i++) {
		ck_assert_msg(truth_reader_next(&reader, &item), "%s", reader.error);
		ck_assert_int_eq(item.kind, want[i].kind);
		ck_assert(item.has_sp == !!want[i].sp);
		if (item.has_sp)
			ck_assert_uint_eq(item.sp, want[i].sp);
	}
	truth_reader_close(&reader);
	close(fd);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("flow/truth-reader");
	TCase *tc = tcase_create("truth-reader");

	tcase_add_test(tc, cut_by_state);
	tcase_add_test(tc, h3_cut_by_ranges);
	tcase_add_test(tc, h3_cut_at_events);
	tcase_add_test(tc, h3_cut_to_nothing);
	tcase_add_test(tc, stack_pointers);
	suite_add_tcase(suite, tc);
	return suite;
}
