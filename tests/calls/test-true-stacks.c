// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The stacks that follow from a truth with RSP: calls, jumps out of them, events, switches. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/calls/true-stacks.h"
#include "tests/flow/program.h"

/* Functions of the kernel, and a program at U. Each block has one instruction. */
#define A 0xffffffff81000000u
#define B 0xffffffff81001000u
#define C 0xffffffff81002000u
#define I 0xffffffff81003000u /* an interrupt's handler */
#define S 0xffffffff81004000u /* switches tasks */
#define T 0xffffffff81005000u /* a thunk */
#define Y 0xffffffff81006000u /* system calls */
#define U 0x401000u

#define STACK_1 0xffffc90000004000u
#define STACK_2 0xffffc90000010000u

static struct symbol list[] = {
	{ A, A, "A", VMPT_ROLE_PLAIN },	 { B, B, "B", VMPT_ROLE_PLAIN },
	{ C, C, "C", VMPT_ROLE_PLAIN },	 { I, I, "I", VMPT_ROLE_PLAIN },
	{ S, S, "S", VMPT_ROLE_SWITCH }, { T, T, "T", VMPT_ROLE_THUNK },
	{ Y, Y, "Y", VMPT_ROLE_PLAIN },	 { Y + 0x1000, Y + 0x1000, "end", VMPT_ROLE_PLAIN },
};
static const struct symbols symbols = { list, VMPT_ARRAY_SIZE(list) };
static u32 ids;

static void begin(void)
{
	truth.n = 0;
	put(0x54504d56); /* "VMPT" */
	put(0x31555254); /* "TRU1" */
	put(TRUTH_TIME);
	put(TRUTH_LONG | TRUTH_CS_L);
	put64(1);
	put64(0x5000);
	ids = 0;
}

static void sp(u64 value)
{
	put(TRUTH_SP);
	put64(value);
}

static void run(u64 ip, u8 size, u32 code)
{
	struct code b = { ip, 1, size, { size } };

	memcpy(b.bytes + 1, &code, 4);
	define(++ids, &b);
	put(ids);
}

static void nop(u64 ip)
{
	run(ip, 1, 0x90);
}

static void call(u64 ip)
{
	run(ip, 5, 0x100e8);
}

static void ret(u64 ip)
{
	run(ip, 1, 0xc3);
}

/* The stack of each state, the topmost frame first: "1:A 2:BA ". */
static void check_states(const char *want)
{
	int fd = memfd_create("truth", 0);
	char path[64], *paths[] = { path }, text[512] = "";
	struct true_stacks t;
	size_t at = 0;

	ck_assert_int_eq(write(fd, truth.words, 4 * truth.n), (ssize_t)(4 * truth.n));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ck_assert(true_open(&t, &symbols, paths, 1));
	ck_assert(true_until(&t, 0, 1000));
	for (size_t i = 0; i < t.cpu[0].states; i++) {
		const struct true_state *s = &t.cpu[0].state[i];

		at += (size_t)snprintf(text + at, sizeof(text) - at, "%u/%u:", (u32)s->pos,
				       s->task);
		for (u32 n = s->node; n; n = t.node[n].parent) {
			const struct symbol *fn = symbols_find(&symbols, t.node[n].now);
			bool end = t.node[n].kind == VMPT_CALL_ROOT;

			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s",
					       fn ? fn->name : "-", end ? "." : "");
		}
		at += (size_t)snprintf(text + at, sizeof(text) - at, " ");
	}
	ck_assert_uint_eq(t.strange, 0);
	true_close(&t);
	close(fd);
	ck_assert_str_eq(text, want);
}

/* Calls, a tail call, a return over the heads of others. */
START_TEST(calls)
{
	begin();
	sp(STACK_1 - 0x100);
	call(A);
	sp(STACK_1 - 0x108);
	call(B);
	sp(STACK_1 - 0x110);
	nop(C);
	nop(I);			 /* C jumps to it */
	run(I + 1, 3, 0xc48948); /* mov %rax,%rsp: longjmp() */
	sp(STACK_1 - 0x108);
	run(B + 5, 2, 0xe0ff);
	ret(B + 7);
	sp(STACK_1 - 0x100);
	nop(A + 5);
	check_states("0/0:A. 1/0:BA. 2/0:CBA. 3/0:IBA. 5/0:BA. 7/0:A. ");
}
END_TEST

/* A retpoline: a call, the thunk's own call, a RET to where the register says. */
START_TEST(thunks)
{
	begin();
	sp(STACK_1 - 0x100);
	call(A);
	sp(STACK_1 - 0x108);
	call(T);
	sp(STACK_1 - 0x110);
	ret(T + 16);
	sp(STACK_1 - 0x108);
	ret(B);
	sp(STACK_1 - 0x100);
	nop(A + 5);
	check_states("0/0:A. 3/0:BA. 4/0:A. ");
}
END_TEST

/* An interrupt right after a CALL, and its IRET. */
START_TEST(events)
{
	begin();
	sp(STACK_1 - 0x100);
	call(A);
	sp(STACK_1 - 0x108);
	event(B, I);
	sp(STACK_1 - 0x138);
	run(I, 2, 0xcf48);
	sp(STACK_1 - 0x108);
	ret(B);
	sp(STACK_1 - 0x100);
	nop(A + 5);
	check_states("0/0:A. 1/0:IBA. 2/0:BA. 3/0:A. ");
}
END_TEST

/* Task 0 switches to a new one, which begins at C; that one back. */
START_TEST(switches)
{
	begin();
	sp(STACK_1 - 0x100);
	call(A);
	sp(STACK_1 - 0x108);
	run(S, 3, 0xc48948);
	sp(STACK_2 - 0xb0);
	ret(S + 3);
	sp(STACK_2 - 0xa8);
	call(C);
	sp(STACK_2 - 0xb0);
	run(S, 3, 0xc48948);
	sp(STACK_1 - 0x108);
	ret(S + 3);
	sp(STACK_1 - 0x100);
	nop(A + 5);
	check_states("0/0:A. 1/0:SA. 2/1:S. 3/1:C. 4/1:SC. 5/0:SA. 6/0:A. ");
}
END_TEST

/* A program's system call, from which a signal handler is entered; it asks to end. */
START_TEST(signals)
{
	begin();
	sp(STACK_1 - 0x100);
	run(A, 2, 0xcf48);
	sp(0x7000);
	call(U);
	sp(0x6ff8);
	run(U + 0x100, 2, 0x050f); /* syscall */
	sp(0x6ff8);
	run(Y, 3, 0x070f48); /* sysret */
	sp(0x6e00);
	ret(U + 0x200);
	sp(0x6e08);
	run(U + 0x300, 2, 0x050f);
	sp(0x6e08);
	run(Y, 3, 0x070f48);
	sp(0x6ff8);
	ret(U + 0x102);
	sp(0x7000);
	nop(U + 5);
	check_states("0/0:A. 1/0:-. 2/0:--. 3/0:Y--. 4/0:---. 6/0:Y---. 7/0:--. 8/0:-. ");
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("calls/true-stacks");
	TCase *tc = tcase_create("true-stacks");

	tcase_add_test(tc, calls);
	tcase_add_test(tc, thunks);
	tcase_add_test(tc, events);
	tcase_add_test(tc, switches);
	tcase_add_test(tc, signals);
	suite_add_tcase(suite, tc);
	return suite;
}
