// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * RETs that do not return to their CALLs, and compressed RETs after them: the checker follows them
 * by the manual's text (33.4.2.2), where libipt alone goes wrong, and rejects a processor whose
 * stack differs.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model/truth-format.h"
#include "tests/flow/flow.h"
#include "tests/model/rig.h"

/* A walk: each instruction is fed to the model and written as a block of its own. */
static struct {
	u32 words[1 << 20];
	size_t n;
	u64 ip;	     /* of the next instruction */
	bool shared; /* the stack, with another owner */
	struct flow_counts counts;
} walk;

static void put(u32 word)
{
	ck_assert_uint_lt(walk.n, VMPT_ARRAY_SIZE(walk.words));
	walk.words[walk.n++] = word;
}

static void put64(u64 v)
{
	put((u32)v);
	put((u32)(v >> 32));
}

/* Execute instruction @code at walk.ip; returns the IP after it. */
static u64 execute(const u8 *code, u8 length)
{
	u8 bytes[16] = { length };
	u32 w;
	int i;

	memcpy(bytes + 1, code, length);
	put(TRUTH_DEFINE);
	put(0);
	put64(walk.ip);
	put(1);
	put(length);
	for (i = 0; i < (1 + length + 3) / 4; i++) {
		memcpy(&w, bytes + 4 * i, 4);
		put(w);
	}
	put(0);
	return walk.ip + length;
}

/* From the first instruction at @ip; modes differ only in @l and @d of CS. */
static void start(u64 ip, bool l, bool d)
{
	walk.n = 0;
	walk.shared = false;
	put(0x54504d56); /* "VMPT" */
	put(0x31555254); /* "TRU1" */
	rig.unit.mode.cs_l = l;
	rig.unit.mode.cs_d = d;
	rig_on(CTL);
	put(TRUTH_BEGIN);
	walk.ip = ON_NEXT;
	put64(walk.ip);
	execute((const u8[]){ 0xff, 0xe0 }, 2); /* JMP RAX */
	vmpt_unit_jmp_indirect(&rig.unit, ip);
	walk.ip = ip;
}

/* The checker's result for the walk. */
static bool is_equal(void)
{
	int fd = memfd_create("truth", 0);
	const struct flow_options options = { .shared_returns = walk.shared };
	struct truth_reader reader;
	char path[64];
	bool equal;

	rig_off(walk.ip);
	put(TRUTH_END);
	put64(walk.ip);
	ck_assert_int_eq(write(fd, walk.words, 4 * walk.n), (ssize_t)(4 * walk.n));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ck_assert_msg(truth_reader_open(&reader, path), "%s", reader.error);
	equal = flow_check(&reader, rig.bytes, rig.size, &options, &walk.counts);
	truth_reader_close(&reader);
	close(fd);
	return equal;
}

/* ---- instructions; those with an address go there ---- */

static void nop(void)
{
	walk.ip = execute((const u8[]){ 0x90 }, 1);
}

/* JNZ with a displacement of 8 bits */
static void jnz(bool taken)
{
	walk.ip = execute((const u8[]){ 0x75, 0x10 }, 2) + 0x10 * taken;
	vmpt_unit_jcc(&rig.unit, taken, walk.ip);
}

/* CALL RAX; returns the target of its RET. */
static u64 call(u64 to)
{
	u64 next = execute((const u8[]){ 0xff, 0xd0 }, 2);

	vmpt_unit_call_indirect(&rig.unit, next, to);
	walk.ip = to;
	return next;
}

/* CALL with a displacement of 32 bits */
static u64 call_direct(s32 displacement)
{
	u8 code[5] = { 0xe8 };
	u64 next;

	memcpy(code + 1, &displacement, 4);
	next = execute(code, 5);
	walk.ip = next + (u64)(s64)displacement;
	vmpt_unit_call(&rig.unit, next, walk.ip);
	return next;
}

static void ret(u64 to)
{
	execute((const u8[]){ 0xc3 }, 1);
	vmpt_unit_ret(&rig.unit, to);
	walk.ip = to;
}

/* An interrupt, and IRETQ. */
static void interrupt(u64 handler)
{
	struct vmpt_far far = far_to(VMPT_FAR_INTERRUPT, walk.ip, handler);
	u64 back = walk.ip;

	put(TRUTH_EVENT);
	put64(back);
	put64(handler);
	rig_far(&far);
	walk.ip = handler;
	execute((const u8[]){ 0x48, 0xcf }, 2);
	far = far_to(VMPT_FAR_IRET, handler, back);
	rig_far(&far);
	walk.ip = back;
}

/* ---- tests ---- */

/* Modes and places. */
static const struct {
	bool l, d;
	u64 first, second, third;
} places[] = {
	{ true, false, 0x500000, 0x501000, 0x700000 },
	/* A jump does not reach from one to the other; from the top to the bottom of the halves. */
	{ true, false, 0x555555554000, 0x7ffff7a00000, 0x400000 },
	{ true, false, 0xffffffff81000000, 0xffff888000000000, 0xffffffffff600000 },
	{ false, true, 0x1000, 0xfffff000, 0x80000000 },
	{ false, false, 0x8000, 0xfff0, 0x20000 },
};

/* A calls B, B calls C, and C returns elsewhere: B's address is popped, and A's is on top. */
START_TEST(wrong_ret)
{
	u64 a, b;

	start(places[_i].first, places[_i].l, places[_i].d);
	a = call(places[_i].second);
	b = call(places[_i].third);
	ck_assert_uint_ne(a, b);
	ret(places[_i].third + 0x100);
	nop();
	ret(a);
	nop();
	jnz(true);
	ck_assert(is_equal());
	ck_assert_uint_eq(walk.counts.compressed, 1);
	ck_assert_uint_eq(walk.counts.led, 1);
}
END_TEST

/* An event at the target of the compressed RET, before an instruction there. */
START_TEST(event_at_target)
{
	u64 a;

	start(places[0].first, true, false);
	a = call(0x600000);
	call(0x700000);
	ret(0x700100);
	ret(a);
	interrupt(0x800000);
	nop();
	ck_assert(is_equal());
	ck_assert_uint_eq(walk.counts.led, 1);
	ck_assert_uint_eq(walk.counts.events, 1);
}
END_TEST

/* CALLs that do not use the stack: to the next instruction, with and without prefixes. */
START_TEST(zero_length)
{
	static const struct {
		u8 length, code[7];
		bool d;
	} calls[] = { { 5, { 0xe8 }, true },
		      { 4, { 0x66, 0xe8 }, true },
		      { 3, { 0xe8 }, false },
		      { 6, { 0x66, 0xe8 }, false },
		      { 6, { 0x2e, 0xe8 }, true } };
	u64 a;

	start(0x8000, false, calls[_i].d);
	a = call(0x9000);
	call(0xa000);
	ret(0xa010);
	walk.ip = execute(calls[_i].code, calls[_i].length);
	vmpt_unit_call(&rig.unit, walk.ip, walk.ip);
	ret(a);
	nop();
	ck_assert(is_equal());
	ck_assert_uint_eq(walk.counts.compressed, 1);
	ck_assert_uint_eq(walk.counts.led, 1);
}
END_TEST

/* The maximum number of addresses, one of them after one that was popped. */
START_TEST(deep)
{
	u64 next[64];
	int i;

	start(places[0].first, true, false);
	for (i = 0; i < 64; i++)
		next[i] = call(0x600000 + 0x1000 * (u64)i);
	ret(0x800000);
	next[63] = call(0x900000);
	for (i = 64; i-- > 0;)
		ret(next[i]);
	nop();
	ck_assert(is_equal());
	ck_assert_uint_eq(walk.counts.compressed, 64);
	ck_assert_uint_eq(walk.counts.led, 63);
}
END_TEST

/* The processor that libipt assumes: an uncompressed RET pops nothing. */
START_TEST(libipts_processor)
{
	u64 a, b;

	start(places[0].first, true, false);
	a = call(0x600000);
	b = call(0x700000);
	ret(0x700100);
	rig.unit.ret_top++;
	rig.unit.ret_depth++;
	ret(b);
	if (_i)
		ret(a);
	nop();
	ck_assert(!is_equal());
}
END_TEST

/* A compressed RET whose CALL's address was popped. */
START_TEST(no_call)
{
	u64 a;

	start(places[0].first, true, false);
	a = call(0x600000);
	ret(0x600100);
	rig.unit.ret_top++;
	rig.unit.ret_depth++;
	ret(a);
	nop();
	ck_assert(!is_equal());
	ck_assert_uint_eq(walk.counts.compressed, 1);
}
END_TEST

/* A compressed RET whose target differs in the truth. */
START_TEST(other_target)
{
	u64 a;

	start(places[0].first, true, false);
	a = call(0x600000);
	call(0x700000);
	ret(0x700100);
	ret(a);
	walk.ip++;
	nop();
	ck_assert(!is_equal());
}
END_TEST

/* ---- two owners, one stack ---- */

/*
 * Another owner runs, makes @calls more CALLs than RETs, and this one resumes where it was. A run
 * ends and the next begins; the stack is kept, as while PacketEn stays 1.
 */
static void another(int calls)
{
	int top = rig.unit.ret_top, depth = rig.unit.ret_depth, i;
	u64 back = walk.ip;

	rig_off(walk.ip);
	put(TRUTH_END);
	put64(walk.ip);
	rig_on(CTL);
	put(TRUTH_BEGIN);
	walk.ip = ON_NEXT;
	put64(walk.ip);
	execute((const u8[]){ 0xff, 0xe0 }, 2); /* JMP RAX */
	vmpt_unit_jmp_indirect(&rig.unit, back);
	walk.ip = back;
	rig.unit.ret_top = (u8)((top + calls) & (VMPT_RET_STACK - 1));
	rig.unit.ret_depth = (u8)(depth + calls);
	for (i = 1; i <= calls; i++)
		rig.unit.ret_stack[(top + i) & (VMPT_RET_STACK - 1)] = 0x123400 + (u64)i;
}

static const int excess[] = { 1, 2, 3, -1, -2 };

/* RETs go where the other owner's CALLs did not lead, or its RETs took what was due. @own: CALLs of
 * its own stand in between. */
static void shifted(int calls, bool own)
{
	u64 next[6];
	int i;

	start(places[0].first, true, false);
	walk.shared = true;
	for (i = 0; i < 6; i++)
		next[i] = call(0x600000 + 0x1000 * (u64)i);
	another(calls);
	for (i = 0; i < calls; i++)
		ret(0x800000 + 0x100 * (u64)i);
	if (own) {
		u64 here = call(0x900000);

		interrupt(0xa00000);
		ret(here);
	}
	for (i = calls < 0 ? 5 + calls : 5; i >= 0; i--) {
		ret(next[i]);
		nop();
	}
	ck_assert(is_equal());
	ck_assert_uint_eq(walk.counts.shared, 1);
	ck_assert_uint_eq(walk.counts.compressed, (u64)(6 + (calls < 0 ? calls : 0) + own));
}

START_TEST(other_owner)
{
	shifted(excess[_i], false);
}
END_TEST

START_TEST(other_owner_and_own_calls)
{
	shifted(excess[_i], true);
}
END_TEST

/* No explanation: no one else ran (0), no other owner was reported (1), an unknown address (2). */
START_TEST(no_other_owner)
{
	u64 a;

	start(places[0].first, true, false);
	walk.shared = _i != 1;
	a = call(0x600000);
	call(0x700000);
	if (_i)
		another(-1);
	else
		rig.unit.ret_top--;
	if (_i == 2) {
		a = 0x600666;
		rig.unit.ret_stack[rig.unit.ret_top] = a;
	}
	ret(a);
	nop();
	ck_assert(!is_equal());
	ck_assert_uint_eq(walk.counts.shared, 0);
	ck_assert_uint_eq(walk.counts.compressed, 1);
}
END_TEST

/* ---- any walk ---- */

/* Addresses on the software's stack, any number of them. */
struct software {
	u64 ip[1000];
	unsigned int depth;
};

static void step(struct software *s, struct test_rng *rng)
{
	u64 place = 0x10000000 + (test_random(rng) & 0x3ffffff0);

	switch (test_random(rng) % 16) {
	case 0:
	case 1:
	case 2:
		s->ip[s->depth++] = call_direct((s32)(place & 0xfffffff) - 0x8000000);
		break;
	case 3:
		s->ip[s->depth++] = call(place | (test_random(rng) & 0x7ffe00000000));
		break;
	case 4:
	case 5:
	case 6:
	case 7:
		if (s->depth)
			ret(s->ip[--s->depth]);
		break;
	case 8:
		/* It unwinds, or switches stacks. */
		if (s->depth)
			s->depth -= 1 + (unsigned int)(test_random(rng) % s->depth);
		ret(test_random(rng) % 2 ? s->ip[s->depth] : place);
		break;
	case 9:
		interrupt(place);
		break;
	case 10:
		rig.unit.psb_due = test_random(rng) % 8 == 0;
		break;
	case 11:
		nop();
		break;
	default:
		jnz(test_random(rng) % 2);
	}
}

START_TEST(random_walk)
{
	struct test_rng rng = { .state = (u64)_i };
	struct software software = { .depth = 0 };
	unsigned int i;

	rig.unit.config.options.careful_retc = _i % 4 == 3;
	start(places[0].first, true, false);
	for (i = 0; i < 5000 && software.depth < 990; i++)
		step(&software, &rng);
	ck_assert_msg(is_equal(), "walk %d", _i);
	ck_assert_uint_gt(walk.counts.compressed, 100);
	if (_i % 4 == 3)
		ck_assert_uint_eq(walk.counts.led, 0);
	else
		ck_assert_uint_gt(walk.counts.led, 5);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("flow/returns");
	TCase *tc = tcase_create("returns");

	tcase_add_checked_fixture(tc, rig_setup, NULL);
	tcase_add_loop_test(tc, wrong_ret, 0, VMPT_ARRAY_SIZE(places));
	tcase_add_test(tc, event_at_target);
	tcase_add_loop_test(tc, zero_length, 0, 5);
	tcase_add_loop_test(tc, libipts_processor, 0, 2);
	tcase_add_test(tc, deep);
	tcase_add_test(tc, no_call);
	tcase_add_test(tc, other_target);
	tcase_add_loop_test(tc, other_owner, 0, VMPT_ARRAY_SIZE(excess));
	tcase_add_loop_test(tc, other_owner_and_own_calls, 0, VMPT_ARRAY_SIZE(excess));
	tcase_add_loop_test(tc, no_other_owner, 0, 3);
	suite_add_tcase(suite, tc);
	tc = test_long_case(suite);
	tcase_add_checked_fixture(tc, rig_setup, NULL);
	tcase_add_loop_test(tc, random_walk, 0, test_rounds(40, 10));
	return suite;
}
