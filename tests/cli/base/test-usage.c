// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The command line: options, their values, help, and the exit code of wrong usage. */
#include <stdlib.h>

#include "tests/cli/cli-run.h"
#include "tests/support/support.h"

static const char *const commands[] = { "dump", "stat", "vms", "split", "clocks" };

START_TEST(wrong_usage_is_2)
{
	static const char *const line[] = {
		"",
		"nonsense",
		"--nonsense",
		"help nonsense",
		"stat",
		"stat --nonsense x.pt",
		"vms --cpu x.pt",
		"vms --cpu=3-1 x.pt",
		"vms --cpu=1, x.pt",
		"vms --cpu= x.pt",
		"vms --cpu=99999 x.pt",
		"vms -j many x.pt",
		"vms -j -1 x.pt",
		"vms -j 257 x.pt",
		"vms --guest-only=perhaps x.pt",
		"vms --format=perf x.pt",
		"vms --cycle-acc=perhaps x.pt",
		"vms --cycle-acc=yes x.pt",
		"vms --format=rtit --guest-only=yes x.pt",
		"vms --host-only=perhaps x.pt",
		"vms --host-only=yes --guest-only=yes x.pt",
		"vms --format=rtit --host-only=yes x.pt",
		"vms --color=blue x.pt",
		"dump --start=here x.pt",
		"dump --start=10 --end=10 x.pt",
		"dump --end=0 x.pt",
		"dump --head=0 x.pt",
		"dump --kinds=psb,nonsense x.pt",
		"dump --owner=nonsense x.pt",
		"dump --no-pad --expand-pad x.pt",
		"dump --mtc-freq=3 x.pt", /* without --time */
		"dump --time --mtc-freq=16 x.pt",
		"dump --time --tsc-ratio=176/0 x.pt",
		"dump --time --tsc-ratio=1/2/3 x.pt",
		"dump --time --nominal-ratio=0 x.pt",
		"dump --time --skz84=perhaps x.pt",
		"dump --time --guest-tsc=1000 x.pt",
		"dump --time --guest-tsc=1000:-5,0 x.pt",
		"dump --time=noon x.pt",
		"timeline --time=tsc x.pt",
		"timeline --time x.pt",
		"stat --time=perf x.pt",
		"vms --vm= x.pt",
		"vms --vm=1000:-5 x.pt", /* --guest-tsc */
		"vms --vm=nonsense x.pt",
		"stat --vcpu=one x.pt",
		"stat --vcpu=3-1 x.pt",
		"stat --vcpu= x.pt",
		"stat --cr3=here x.pt",
		"stat --cr3= x.pt",
		"clocks --cr3=1000 x.pt",
		"clocks --from=1s x.pt",
		"clocks --to=1s x.pt",
		"clocks --owner=host x.pt",
		"timeline --summary --cr3=1000 x.pt",
		"split -o out --owner=nonsense x.pt",
		"exits --owner= x.pt",
		"vms --from=yesterday x.pt",
		"vms --from=-1 x.pt",
		"vms --from=1e3 x.pt",
		"vms --from=1h x.pt",
		"vms --from=1.s x.pt",
		"vms --from=25:00:00 x.pt",
		"vms --from=2026-13-01T00:00:00Z x.pt",
		"vms --from=perf: x.pt",
		"vms --from=tsc:x x.pt",
		"timeline --tsc-khz=0 x.pt",
		"split x.pt",
		"split -o",
		"stat x.pt@1 x.pt@1",
		"stat a.cpu2.pt b.cpu2",
	};
	size_t i;

	write_mixed("x.pt");
	for (i = 0; i < VMPT_ARRAY_SIZE(line); i++) {
		const struct run *r = vmpt("%s", line[i]);

		ck_assert_msg(r->code == 2, "vmpt %s: exit code %d", line[i], r->code);
		ck_has(r->err, "Try 'vmpt ");
		ck_assert_str_eq(r->out, "");
	}
}
END_TEST

/* Each kind of option, its limits and values beyond them. */
START_TEST(values_are_checked)
{
	static const struct {
		const char *args, *err; /* NULL: it is right */
	} cases[] = {
		{ "stat -j 256 x.pt", NULL },
		{ "stat -j 0x10 x.pt", NULL },
		{ "stat -j 0 x.pt", NULL },
		{ "stat -j 257 x.pt", "--threads: '257' is not a number from 0 to 256" },
		{ "stat -j +1 x.pt", "--threads: '+1' is not a number" },
		{ "stat -j 1x x.pt", "--threads: '1x' is not a number" },
		{ "stat --threads= x.pt", "--threads: '' is not a number" },
		{ "dump -n 1 --end=0xffffffffffffffff x.pt", NULL },
		{ "dump --end=0x10000000000000000 x.pt", "--end: '0x10000000000000000' is not" },
		{ "dump --end=0 x.pt", "--end: '0' is not a number of at least 1" },
		{ "dump -n 1 --time --nominal-ratio=255 x.pt", NULL },
		{ "dump -n 1 --time --nominal-ratio=256 x.pt", "is not a number from 1 to 255" },
		{ "stat --guest-only=no x.pt", NULL },
		{ "stat --guest-only=n x.pt", "'n' is not one of auto, yes, no" },
		{ "stat --guest-only=no, x.pt", "'no,' is not one of auto, yes, no" },
		{ "stat --guest-only= x.pt", "'' is not one of auto, yes, no" },
		{ "dump --kinds=psb,,tip x.pt", "no packet is called ''" },
		{ "split -o out --perf --kernel=a --kernel=b x.pt",
		  "--kernel: a guest has only one" },
		{ "split --output= x.pt", "--output: no folder given" },
	};
	size_t i;

	write_mixed("x.pt");
	for (i = 0; i < VMPT_ARRAY_SIZE(cases); i++) {
		const struct run *r = vmpt("%s", cases[i].args);

		if (cases[i].err) {
			ck_assert_msg(r->code == 2, "vmpt %s: exit code %d", cases[i].args,
				      r->code);
			ck_has(r->err, cases[i].err);
		} else {
			ck_assert_msg(r->code != 2, "vmpt %s: %s", cases[i].args, r->err);
		}
	}
}
END_TEST

/* 64 files fit, one more does not; what is given last counts elsewhere. */
START_TEST(options_are_repeated)
{
	char args[2048], *at = stpcpy(args, "timeline");
	size_t i;

	write_mixed("x.pt");
	for (i = 0; i < 64; i++)
		at = stpcpy(at, " --image=none");
	strcpy(at, " x.pt");
	ck_assert_int_eq(vmpt("%s", args)->code, 1);
	strcpy(at, " --image=none x.pt");
	ck_assert_int_eq(vmpt("%s", args)->code, 2);
	ck_has(vmpt("%s", args)->err, "--image: more than 64");
	strcpy(args, vmpt("dump -n 1 x.pt")->out);
	ck_assert_str_eq(vmpt("dump -n 3 --color=always -n 1 --color=never x.pt")->out, args);
	ck_assert_str_ne(vmpt("dump -n 1 -n 3 x.pt")->out, args);
}
END_TEST

START_TEST(help_and_version)
{
	size_t i;

	ck_assert_int_eq(vmpt("--version")->code, 0);
	ck_assert_int_eq(strncmp(vmpt("--version")->out, "vmpt ", 5), 0);
	for (i = 0; i < VMPT_ARRAY_SIZE(commands); i++) {
		char *first;
		const struct run *r = vmpt("%s --help", commands[i]);

		ck_assert_int_eq(r->code, 0);
		ck_has(r->out, "Examples:\n  vmpt ");
		ck_has(r->out, "\nvmpt help common: ");
		ck_has(r->out, " --guest-only");
		ck_lacks(r->out, "--guest-only=WHEN");
		first = strdup(r->out);
		ck_assert_str_eq(vmpt("help %s", commands[i])->out, first);
		free(first);
		ck_has(vmpt("--help")->out, commands[i]);
		ck_assert_int_eq(vmpt("%s --version", commands[i])->code, 0);
	}
	ck_has(vmpt("--help")->out, "\n  domain ");
}
END_TEST

/* B12: what all commands have is in one place, what is RTIT's in another. */
START_TEST(b12_help_by_topic)
{
	const struct run *r = vmpt("help common");
	size_t i;

	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "--guest-only=WHEN");
	ck_has(r->out, "-j, --threads=N");
	ck_has(r->out, "12 are used");
	ck_lacks(r->out, "--cycle-acc");
	/* Each heading is there once. */
	ck_has(r->out, "\nCommon options:\n");
	ck_lacks(strstr(r->out, "\nCommon options:\n") + 1, "\nCommon options:\n");
	ck_has(r->out, "\nOptions for the trace:\n");
	ck_lacks(strstr(r->out, "\nOptions for the trace:\n") + 1, "\nOptions for the trace:\n");
	/* The words of an option, too. */
	r = vmpt("exits --help");
	ck_has(r->out, "halted, untraced, all");
	ck_lacks(strstr(r->out, "halted, untraced, all") + 1, "halted, untraced");
	r = vmpt("help rtit");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "--cycle-acc=WHEN");
	ck_lacks(r->out, "--guest-only");
	ck_assert_int_eq(vmpt("help nonsense")->code, 2);
	for (i = 0; i < VMPT_ARRAY_SIZE(commands); i++)
		ck_lacks(vmpt("%s --help", commands[i])->out, "--cycle-acc=");
}
END_TEST

/* B12: in other locales than those of UTF-8 all is ASCII, text and messages. */
START_TEST(b12_ascii_without_utf8)
{
	static const char *const line[] = {
		"dump x.pt",
		"dump --time x.pt",
		"stat x.pt",
		"vms x.pt",
		"split -f -o o x.pt",
		"clocks x.pt",
		"timeline x.pt",
		"timeline --summary x.pt",
		"exits x.pt",
		"help common",
		"help rtit",
		"dump --help",
		"clocks --help",
		"timeline --help",
		"exits --help",
		"record --help",
		"split --help",
		"stat --json x.pt",
		"help",
		"vms --side-record=vms.jsonl x.pt",
		"timeline --side-record=vms.jsonl x.pt",
		"dump b\u00fcro.pt",
	};
	static const char record[] = "{\"vm\":\"b\u00fcro\",\"vcpu\":0,\"vmcs\":\"0xa000\"}\n";
	size_t i, k;

	write_mixed("x.pt");
	write_file("vms.jsonl", record, strlen(record));
	for (i = 0; i < VMPT_ARRAY_SIZE(line); i++) {
		const struct run *r;

		setenv("LC_ALL", "C", 1);
		r = vmpt("%s", line[i]);
		for (k = 0; r->out[k]; k++)
			ck_assert_msg(!(r->out[k] & 0x80), "%s: %.60s", line[i], r->out + k);
		for (k = 0; r->err[k]; k++)
			ck_assert_msg(!(r->err[k] & 0x80), "%s: %.60s", line[i], r->err + k);
	}
	ck_has(vmpt("vms --side-record=vms.jsonl x.pt")->out, "b\\u00fcro vcpu 0");
	ck_has(vmpt("dump -n 1 x.pt")->out, "02 82 x8 ");
	setenv("LC_ALL", "C.UTF-8", 1);
	ck_has(vmpt("vms --side-record=vms.jsonl x.pt")->out, "büro vcpu 0");
	ck_has(vmpt("dump -n 1 x.pt")->out, "02 82 ×8 ");
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("cli usage");
	TCase *tc = tcase_create("usage");

	tcase_add_checked_fixture(tc, cli_setup, cli_clean);
	tcase_add_test(tc, wrong_usage_is_2);
	tcase_add_test(tc, values_are_checked);
	tcase_add_test(tc, options_are_repeated);
	tcase_add_test(tc, help_and_version);
	tcase_add_test(tc, b12_help_by_topic);
	tcase_add_test(tc, b12_ascii_without_utf8);
	suite_add_tcase(suite, tc);
	return suite;
}
