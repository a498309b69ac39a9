// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Decoding of I/O instructions, and of loads of RSP: opcodes and prefixes from SDM 2, encoded by
 * hand.
 */
#include "qemu-plugin/flow/insn.h"
#include "tests/support/support.h"

/* The port is 0 where it is in DX. */
static const struct row {
	const char *what;
	u8 size, bytes[4];
	unsigned int bits;
	struct insn_io io;
} rows[] = {
	{ "out %al,$0x80", 2, { 0xe6, 0x80 }, 32, { 1, false, false, false, true, 0x80 } },
	{ "out %al,$0x80", 2, { 0xe6, 0x80 }, 16, { 1, false, false, false, true, 0x80 } },
	{ "in $0xff,%al", 2, { 0xe4, 0xff }, 64, { 1, true, false, false, true, 0xff } },
	{ "in $0x71,%ax", 2, { 0xe5, 0x71 }, 16, { 2, true, false, false, true, 0x71 } },
	{ "in $0x71,%eax", 2, { 0xe5, 0x71 }, 32, { 4, true, false, false, true, 0x71 } },
	{ "in $0x71,%eax", 3, { 0x66, 0xe5, 0x71 }, 16, { 4, true, false, false, true, 0x71 } },
	{ "out %eax,$0x10", 2, { 0xe7, 0x10 }, 64, { 4, false, false, false, true, 0x10 } },
	{ "out %al,%dx", 1, { 0xee }, 32, { 1, false, false, false, false, 0 } },
	{ "out %ax,%dx", 2, { 0x66, 0xef }, 32, { 2, false, false, false, false, 0 } },
	{ "out %ax,%dx", 1, { 0xef }, 16, { 2, false, false, false, false, 0 } },
	{ "out %eax,%dx", 2, { 0x48, 0xef }, 64, { 4, false, false, false, false, 0 } },
	{ "in %dx,%al", 1, { 0xec }, 64, { 1, true, false, false, false, 0 } },
	{ "in %dx,%ax", 2, { 0x66, 0xed }, 64, { 2, true, false, false, false, 0 } },
	{ "insb", 1, { 0x6c }, 32, { 1, true, true, false, false, 0 } },
	{ "rep insl", 2, { 0xf3, 0x6d }, 32, { 4, true, true, true, false, 0 } },
	{ "rep insw", 3, { 0xf3, 0x66, 0x6d }, 64, { 2, true, true, true, false, 0 } },
	{ "outsb", 1, { 0x6e }, 16, { 1, false, true, false, false, 0 } },
	{ "rep outsw", 2, { 0xf3, 0x6f }, 16, { 2, false, true, true, false, 0 } },
	{ "rep outsl", 3, { 0xf3, 0x48, 0x6f }, 64, { 4, false, true, true, false, 0 } },
};

START_TEST(io)
{
	const struct row *row = &rows[_i];
	struct insn_io io;

	ck_assert(insn_io(&io, row->bytes, row->size, row->bits));
#define SAME(field)                                                                       \
	ck_assert_msg(io.field == row->io.field, "%s, %u bits: " #field " %u", row->what, \
		      row->bits, io.field)
	SAME(width);
	SAME(in);
	SAME(string);
	SAME(rep);
	SAME(immediate);
	SAME(port);
}
END_TEST

START_TEST(no_io)
{
	static const u8 nop[] = { 0x90 }, hlt[] = { 0xf4 }, in_cut[] = { 0xe4 };
	struct insn_io io;

	ck_assert(!insn_io(&io, nop, sizeof(nop), 64));
	ck_assert(!insn_io(&io, hlt, sizeof(hlt), 32));
	ck_assert(!insn_io(&io, in_cut, sizeof(in_cut), 16));
}
END_TEST

/* What sets RSP, and what only moves it by pushes, pops and constants. */
START_TEST(loads_sp)
{
	static const struct {
		bool loads;
		u8 size, bytes[8];
	} codes[] = {
		{ true, 3, { 0x48, 0x89, 0xc4 } },		     /* mov %rax,%rsp */
		{ true, 7, { 0x48, 0x8b, 0xa6, 0x10, 0x10, 0, 0 } }, /* mov 0x1010(%rsi),%rsp */
		{ true, 5, { 0xbc, 0x00, 0x7c, 0, 0 } },	     /* mov $0x7c00,%esp */
		{ true, 3, { 0xbc, 0x00, 0x7c } },		     /* mov $0x7c00,%sp */
		{ true, 1, { 0x5c } },				     /* pop %rsp */
		{ true, 1, { 0xc9 } },				     /* leave */
		{ true, 4, { 0xc8, 0x10, 0, 0 } },		     /* enter $16,$0 */
		{ true, 2, { 0x48, 0x94 } },			     /* xchg %rax,%rsp */
		{ true, 4, { 0x48, 0x8d, 0x65, 0xf0 } },	     /* lea -16(%rbp),%rsp */
		{ false, 4, { 0x48, 0x83, 0xec, 0x10 } },	     /* sub $16,%rsp */
		{ false, 3, { 0x48, 0x89, 0xe5 } },		     /* mov %rsp,%rbp */
		{ false, 1, { 0x55 } },				     /* push %rbp */
		{ false, 1, { 0x58 } },				     /* pop %rax */
		{ false, 3, { 0x48, 0x87, 0xd8 } },		     /* xchg %rbx,%rax */
		{ false, 2, { 0x48, 0x0f } },			     /* cut */
	};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		ck_assert_msg(insn_loads_sp(codes[i].bytes, codes[i].size) == codes[i].loads,
			      "code %zu", i);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("qemu-plugin/insn");
	TCase *tcase = tcase_create("insn");

	tcase_add_loop_test(tcase, io, 0, (int)(sizeof(rows) / sizeof(rows[0])));
	tcase_add_test(tcase, no_io);
	tcase_add_test(tcase, loads_sp);
	suite_add_tcase(suite, tcase);
	return suite;
}
