// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Scripts with errors: the generator reports where and what. */
#include "tests/support/support.h"
#include "tests/tracegen/tracegen.h"

#define HOST  "host cr3=0x1000 ip=0x100000\n"
#define A     "vm A vmcs=0x7000 cr3=0x5000 ip=0x400000\n"
#define PTRLD HOST A "vmptrld A\n"

static const struct {
	const char *script, *error;
} wrong[] = {
	{ "run 5\nfly", "test:2: no event is called \"fly\"" },
	{ "run x", "test:1: \"x\": not a number" },
	{ "run 5 6", "test:1: run: unexpected \"6\"" },
	{ "repeat 3 {\nrun 5", "test:1: this block is not closed" },
	{ "run 5\n}", "test:2: one closing brace too many" },
	{ "repeat 3", "test:1: repeat needs a block in braces" },
	{ "run 3 {\n}", "test:1: run takes no block" },
	{ "{\n}", "test:1: a block needs a word before its brace" },
	{ "enter B", "test:1: no VM is called \"B\"" },
	{ A "enter A", "test:2: the VMCS of A is not current: vmptrld it first" },
	{ A "exit", "test:2: no VM runs on this CPU" },
	{ PTRLD "enter A\nenter A", "test:5: enter: VM A runs on this CPU" },
	{ PTRLD "enter A\ncpu 1\nvmptrld A\nenter A", "test:7: VM A runs on CPU 0" },
	{ PTRLD "enter A\nexit nowhere", "test:5: no exit reason is called \"nowhere\"" },
	{ "iret", "test:1: host has nothing to return to" },
	{ "pop", "test:1: host has no call to drop" },
	{ "run 1\nset os=0", "test:2: set: CPU 0 is tracing" },
	{ "set tnt=7", "test:1: tnt is 8 or 64" },
	{ "cond TX", "test:1: cond needs a word of T and N" },
	{ "host cpl=4", "test:1: cpl is 0 to 3" },
	{ "mode 17", "test:1: the mode is 16, 32 or 64" },
	{ "raw host 0g", "test:1: \"0g\": not hex bytes" },
	{ "raw she 00", "test:1: no owner is called \"she\"" },
	{ "cpu 99", "test:1: a CPU is 0 to 15" },
	{ "vm A vmcs=0x7001", "test:1: a VMCS is a page below 2^52" },
	{ "vm A\"", "test:1: \"A\"\" cannot be a VM's name" },
	{ "host ip=0", "test:1: no code begins at 0x0 in 64-bit mode" },
	{ "vm A mode=16 ip=0x400000", "test:1: no code begins at 0x400000 in 16-bit mode" },
	{ "advance 0x100000001", "test:1: at most 2^32 ticks at once" },
	{ "vm A\nvm A", "test:2: there is a VM A already" },
	{ "cbr 300", "test:1: CBR: a value does not fit" },
	{ "trace on\ntrace on", "test:2: trace is on already" },
	{ "vmxoff", "test:1: vmxoff: the CPU is not in VMX operation" },
	{ "tsx end", "test:1: no transaction is open: tsx begin" },
	{ "mode 16\nrepeat 300 {\ncall\n}",
	  "test:3: host: its code in 16-bit mode outgrew 61440 bytes: use loop instead of repeat" },
};

START_TEST(wrong_scripts)
{
	struct tracegen *g = tracegen_run("test", wrong[_i].script, NULL);

	ck_assert_ptr_nonnull(g);
	ck_assert_msg(tracegen_error(g) != NULL, "%s", wrong[_i].script);
	ck_assert_str_eq(tracegen_error(g), wrong[_i].error);
	tracegen_free(g);
}
END_TEST

START_TEST(no_file)
{
	struct tracegen *g = tracegen_run_file("/nowhere/at/all.trace", NULL);

	ck_assert_ptr_nonnull(g);
	ck_assert_str_eq(tracegen_error(g), "/nowhere/at/all.trace: No such file or directory");
	tracegen_free(g);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("errors");
	TCase *tc = tcase_create("errors");

	tcase_add_loop_test(tc, wrong_scripts, 0, (int)VMPT_ARRAY_SIZE(wrong));
	tcase_add_test(tc, no_file);
	suite_add_tcase(suite, tc);
	return suite;
}
