// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The command as such: usage, exit codes, messages, what becomes of its output. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli/cli-run.h"
#include "tests/support/support.h"

static const char *const commands[] = { "dump", "stat", "vms", "split", "clocks" };

#define ck_has(text, word)   ck_assert_msg(strstr(text, word) != NULL, "no '%s' in: %s", word, text)
#define ck_lacks(text, word) ck_assert_msg(!strstr(text, word), "'%s' in: %s", word, text)

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

/* B3: combining characters have no column, wide ones have two: the next column stays in line. */
START_TEST(b3_columns_of_names)
{
	static const char record[] = "{\"vm\":\"%s\",\"vcpu\":0,\"vmcs\":\"0x%s000\"}\n";
	/* e and a combining acute: 4 columns; two wide characters: 4. */
	static const char *const name[] = { "cafe\u0301", "\u6771\u4eac" };
	char text[256];
	const char *out;
	int n;

	n = snprintf(text, sizeof(text), record, name[0], "a");
	n += snprintf(text + n, sizeof(text) - (size_t)n, record, name[1], "b");
	write_mixed("x.pt");
	write_file("vms.jsonl", text, (size_t)n);
	out = vmpt("vms --side-record=vms.jsonl x.pt")->out;
	ck_has(out, "  cafe\u0301 vcpu 0  –  ");
	ck_has(out, "  \u6771\u4eac vcpu 0  –  ");
}
END_TEST

/* B3: 18 VMs that differ in one character have 18 labels on a terminal, and whole names in a pipe.
 */
START_TEST(b3_names_stay_different)
{
	static const char psb_plus[] =
		"\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82";
	char record[4096], label[18][64], bytes[18 * 33], *line;
	size_t used = 0, seen = 0, i, k;
	const struct run *r;
	int n = 0;

	for (i = 0; i < 18; i++) {
		/* PSB, PIP 2000 NR=1, VMCS (i + 1) << 12, PSBEND */
		/* NOLINTBEGIN(bugprone-not-null-terminated-result): bytes */
		memcpy(bytes + used, psb_plus, 16);
		memcpy(bytes + used + 16, "\x02\x43\x01\x02\0\0\0\0", 8);
		memcpy(bytes + used + 24, "\x02\xc8\x01\0\0\0\0", 7);
		bytes[used + 26] = (char)(i + 1);
		memcpy(bytes + used + 31, "\x02\x23", 2);
		/* NOLINTEND(bugprone-not-null-terminated-result) */
		used += 33;
		n += snprintf(
			record + n, sizeof(record) - (size_t)n,
			"{\"vm\":\"production-%c-europe-west-frontend-of-the-shop-with-a-very-long-"
			"name-that-no-terminal-has-room-for\",\"vcpu\":0,\"vmcs\":\"0x%x000\"}\n",
			'a' + (int)i, (unsigned int)i + 1);
	}
	write_file("x.pt", bytes, used);
	write_file("vms.jsonl", record, (size_t)n);
	r = vmpt("vms --headless --side-record=vms.jsonl x.pt");
	ck_has(r->out,
	       "production-c-europe-west-frontend-of-the-shop-with-a-very-long-name-that-no-");
	r = vmpt_terminal("vms -q --color=never --side-record=vms.jsonl x.pt");
	for (line = strtok(r->out, "\r\n"); line; line = strtok(NULL, "\r\n")) {
		char *vm = strstr(line, "prod");

		if (!vm)
			continue;
		ck_assert_uint_lt(seen, 18);
		snprintf(label[seen], sizeof(label[seen]), "%.*s", (int)strcspn(vm, " "), vm);
		for (k = 0; k < seen; k++)
			ck_assert_str_ne(label[k], label[seen]);
		seen++;
	}
	ck_assert_uint_eq(seen, 18);
}
END_TEST

START_TEST(a_file_that_cannot_be_read_is_1)
{
	size_t i;

	ck_assert_int_eq(mkdir("folder", 0700), 0);
	write_file("empty.pt", "", 0);
	write_mixed("x.pt");
	for (i = 0; i < VMPT_ARRAY_SIZE(commands); i++) {
		const char *o = i == 3 ? "-o out" : "";
		const struct run *r = vmpt("%s %s missing.pt", commands[i], o);

		ck_assert_int_eq(r->code, 1);
		ck_has(r->err, "missing.pt");
		ck_has(r->err, "No such file");
		r = vmpt("%s %s folder", commands[i], o);
		ck_assert_int_eq(r->code, 1);
		ck_has(r->err, "folder");
		r = vmpt("%s %s empty.pt", commands[i], o);
		ck_assert_int_eq(r->code, 1);
		ck_has(r->err, "empty.pt");
		r = vmpt("%s %s x.pt missing.pt", commands[i], o);
		ck_assert_int_eq(r->code, 1);
		ck_has(r->err, "missing.pt");
	}
}
END_TEST

START_TEST(a_broken_perf_data_is_1)
{
	u8 head[104] = "PERFILE2";

	write_file("perf.data", head, sizeof(head));
	ck_assert_int_eq(vmpt("vms perf.data")->code, 1);
	ck_has(vmpt("vms perf.data")->err, "perf.data: ");
	write_file("perf.data", head, 20);
	ck_assert_int_eq(vmpt("stat perf.data")->code, 1);
	write_mixed("x.pt");
	ck_assert_int_eq(vmpt("stat x.pt perf.data")->code, 1);
	ck_has(vmpt("stat x.pt perf.data")->err, "alone");
}
END_TEST

/* No PSB at all: everything is lost, and reported as lost. */
START_TEST(no_psb_is_3)
{
	struct test_rng rng = { 1 };
	u8 noise[4096];
	size_t i;

	for (i = 0; i < sizeof(noise); i++)
		noise[i] = (u8)test_random(&rng) | 1;
	write_file("noise.pt", noise, sizeof(noise));
	for (i = 0; i < VMPT_ARRAY_SIZE(commands); i++) {
		const char *o = i == 3 ? "-f -o out" : "";
		const struct run *r = vmpt("%s %s noise.pt", commands[i], o);

		ck_assert_msg(r->code == 3, "%s: %d, %s", commands[i], r->code, r->err);
		ck_has(r->err, "lost 4,096 bytes in 1 place");
		ck_has(r->err, "--headless");
		r = vmpt("%s %s --quiet noise.pt", commands[i], o);
		ck_assert_int_eq(r->code, 3);
		ck_assert_str_eq(r->err, "");
	}
}
END_TEST

/* A closed pipe is not an error, a full disk is. */
START_TEST(closed_pipe_and_full_disk)
{
	static const char *const line[] = {
		"dump",	      "dump --json",	 "stat",  "stat --json", "vms",
		"vms --json", "split -f -o out", "--help"
	};
	char args[64];
	size_t i;

	write_mixed_times("x.pt", 10000, 0);
	for (i = 0; i < VMPT_ARRAY_SIZE(line); i++) {
		const struct run *r;
		int fd[2];

		ck_assert_int_eq(pipe(fd), 0);
		close(fd[0]);
		snprintf(args, sizeof(args), "%s x.pt", line[i]);
		r = vmpt_to(fd[1], args);
		ck_assert_msg(r->code == 0, "%s: exit code %d", args, r->code);
		ck_assert_str_eq(r->err, "");
		fd[1] = open("/dev/full", O_WRONLY);
		ck_assert_int_ge(fd[1], 0);
		r = vmpt_to(fd[1], args);
		ck_assert_msg(r->code == 1, "%s: exit code %d", args, r->code);
		ck_has(r->err, "No space left");
	}
}
END_TEST

START_TEST(split_tells_which_file_it_cannot_write)
{
	const struct run *r;

	write_mixed("x.pt");
	r = vmpt("split -o x.pt x.pt");
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "x.pt: Not a directory");
	r = vmpt("split -o no/such x.pt");
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "no/such: No such file");
}
END_TEST

/* G10: a limit on the size of files is an error with the file's name, and nothing is left. */
START_TEST(g10_split_without_room)
{
	const struct rlimit small = { 50000, RLIM_INFINITY };
	const struct run *r;
	struct rlimit was;

	write_mixed_times("x.pt", 3000, 0);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &was), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	r = vmpt("split -o out x.pt");
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &was), 0);
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, ": File too large");
	ck_assert_int_ne(access("out", F_OK), 0);
}
END_TEST

START_TEST(color_on_a_terminal_only)
{
	write_mixed("x.pt");
	ck_lacks(vmpt("vms x.pt")->out, "\033");
	ck_lacks(vmpt("dump x.pt")->out, "\033");
	ck_has(vmpt("dump --color=always x.pt")->out, "\033[");
	ck_lacks(vmpt("dump --color=always --json x.pt")->out, "\033");
	ck_has(vmpt_terminal("vms x.pt")->out, "\033[");
	ck_lacks(vmpt_terminal("vms --color=never x.pt")->out, "\033");
	setenv("TERM", "dumb", 1);
	ck_lacks(vmpt_terminal("vms x.pt")->out, "\033");
	setenv("TERM", "xterm", 1);
	setenv("NO_COLOR", "1", 1);
	ck_lacks(vmpt_terminal("vms x.pt")->out, "\033");
	ck_has(vmpt_terminal("vms --color=always x.pt")->out, "\033[");
}
END_TEST

START_TEST(cpus_of_files)
{
	static const struct {
		const char *files, *cpus; /* -: not known */
	} line[] = {
		{ "x.pt", "-" },
		{ "x.pt@7", "7" },
		{ "x.cpu3.pt", "3" },
		{ "x.cpu12", "12" },
		{ "x.cpu3.pt@4", "4" },
		{ "x.cpus.pt", "-" },
		{ "x.pt x.cpu12", "0 12" },
		{ "x.pt x.pt x.pt", "0 1 2" },
		{ "x.pt@1 x.pt x.pt x.pt@0", "0 1 2 3" },
		/* Names with an @ of their own */
		{ "y@1", "-" },
		{ "y@1@3", "3" },
		{ "y@1 x.pt@1", "0 1" },
		{ "x@2.cpu7.pt", "7" },
		/* The names of vmpt domain trace */
		{ "cpu2.pt", "2" },
		{ "./cpu10.pt x.pt ./cpu2.pt", "0 2 10" },
		{ "cpu2", "-" },
		{ "acpu2.pt", "-" },
	};
	size_t i, k;

	write_mixed("x.pt");
	write_mixed("x.cpu3.pt");
	write_mixed("x.cpu12");
	write_mixed("x.cpus.pt");
	write_mixed("cpu2.pt");
	write_mixed("cpu10.pt");
	write_mixed("cpu2");
	write_mixed("acpu2.pt");
	write_mixed("y@1");
	write_mixed("x@2.cpu7.pt");
	for (i = 0; i < VMPT_ARRAY_SIZE(line); i++) {
		json_t *doc = run_json(vmpt("stat --json %s", line[i].files));
		json_t *streams = json_at(doc, "streams");
		char cpus[64] = "";

		for (k = 0; k < json_array_size(streams); k++) {
			json_t *cpu = json_at(json_array_get(streams, k), "cpu");
			char *end = cpus + strlen(cpus);

			if (json_is_null(cpu))
				strcpy(end, k ? " -" : "-");
			else
				sprintf(end, "%s%d", k ? " " : "", (int)json_integer_value(cpu));
		}
		ck_assert_str_eq(cpus, line[i].cpus);
		json_decref(doc);
	}
}
END_TEST

START_TEST(standard_input)
{
	json_t *doc;

	write_mixed("x.pt");
	vmpt_stdin = "x.pt";
	doc = run_json(vmpt("stat --json -"));
	ck_assert_uint_eq(json_u64(doc, "total/bytes"), MIXED_SIZE);
	json_decref(doc);
	doc = run_json(vmpt("stat --json -- -@3"));
	ck_assert_uint_eq(json_u64(doc, "streams/0/cpu"), 3);
	json_decref(doc);
	vmpt_stdin = "/dev/null";
	ck_assert_int_eq(vmpt("stat -")->code, 1);
}
END_TEST

START_TEST(cpu_list_chooses)
{
	json_t *doc;

	write_mixed("x.pt");
	doc = run_json(vmpt("stat --json --cpu=0,2-3 x.pt x.pt x.pt@9 x.pt@3"));
	ck_assert_uint_eq(json_array_size(json_at(doc, "streams")), 2);
	ck_assert_uint_eq(json_u64(doc, "streams/1/cpu"), 3);
	ck_assert_uint_eq(json_u64(doc, "total/bytes"), 2 * MIXED_SIZE);
	json_decref(doc);
	ck_assert_int_eq(vmpt("stat --cpu=5 x.pt x.pt")->code, 2);
	ck_has(vmpt("stat --cpu=5 x.pt x.pt")->err, "between 0 and 1");
	ck_assert_int_eq(vmpt("stat --cpu=0 x.pt")->code, 2);
}
END_TEST

/* The percentages shown, which only grow: how many there are. */
static unsigned int progress_steps(const char *out, const char *line)
{
	unsigned int n = 0, percent, before = 0;
	double done, all;

	while ((out = strchr(out, '\r')) != NULL) {
		if (sscanf(++out, "%u %% %lf of %lf MB", &percent, &done, &all) != 3)
			continue;
		ck_assert_msg(percent >= before && percent <= 100, "%s: %u %% after %u", line,
			      percent, before);
		n += !n || percent > before;
		before = percent;
	}
	return n;
}

/* One slice, 11 MB in the file's hole: the line moves all the same. */
START_TEST(progress_inside_a_slice)
{
	static const char *const line[] = { "stat x.pt", "vms x.pt", "dump x.pt",
					    "split -f -o out x.pt", "split -f -o out x.pt y.pt" };
	/* stat alone under the sanitizers */
	size_t lines = getenv("VMPT_SANITIZED") ? 1 : VMPT_ARRAY_SIZE(line);
	size_t i, n;
	u8 *psb;

	write_mixed("x.pt");
	psb = test_read_file("x.pt", &n);
	write_file("x.pt", psb, 33);
	write_file("y.pt", psb, 33);
	free(psb);
	ck_assert_int_eq(truncate("x.pt", 11000000) | truncate("y.pt", 11000000), 0);
	for (i = 0; i < lines; i++) {
		const struct run *r;

		setenv("VMPT_PROGRESS_AFTER", "0", 1);
		r = vmpt_terminal_err(line[i]);
		ck_assert_int_eq(r->code, 0);
		ck_assert_msg(progress_steps(r->out, line[i]) >= 10, "%s: %s", line[i], r->out);
		ck_has(r->out, " of ");
		ck_assert_msg(!strcmp(strrchr(r->out, '\r'), "\r\033[K"), "%s: %s", line[i],
			      r->out);
		ck_lacks(vmpt("%s", line[i])->err, "MB/s");
		/* Long before so much time is over. */
		setenv("VMPT_PROGRESS_AFTER", "1000", 1);
		ck_assert_str_eq(vmpt_terminal_err(line[i])->out, "");
	}
	unsetenv("VMPT_PROGRESS_AFTER");
}
END_TEST

/* Bytes of a host without VMs: "psb exec:64 pip:1000 psbend" and PADs (SDM 3 33.4.2). */
static void write_without_vms(const char *path, off_t size)
{
	static const u8 head[] = "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"
				 "\x99\x01\x02\x43\x80\x00\x00\x00\x00\x00\x02\x23";

	write_file(path, head, sizeof(head) - 1);
	ck_assert_int_eq(truncate(path, size), 0);
}

/* A4: the scan for VMs has a progress line of its own; its percentages grow over all CPUs. */
START_TEST(a4_scan_shows_progress)
{
	static const char *const line[] = { "stat x.pt y.pt", "stat --cpu=1 x.pt y.pt",
					    "timeline x.pt y.pt" };
	size_t i;

	write_without_vms("x.pt", 11000000);
	write_without_vms("y.pt", 5000000);
	setenv("VMPT_PROGRESS_AFTER", "0", 1);
	for (i = 0; i < VMPT_ARRAY_SIZE(line); i++) {
		const struct run *r = vmpt_terminal_err(line[i]);
		char *end, scan[1 << 16];

		ck_assert_int_eq(r->code, 0);
		ck_assert_uint_lt(strlen(r->out), sizeof(scan));
		strcpy(scan, r->out);
		end = strstr(scan, "\r\033[K");
		ck_assert_ptr_nonnull(end);
		*end = 0;
		ck_assert_msg(progress_steps(scan, line[i]) >= 10, "%s: %s", line[i], scan);
		ck_has(scan, " of 16.0 MB ");
		ck_has(scan, "looking for VMs\033[K");
		ck_lacks(r->out + (end - scan), "looking for VMs");
		ck_has(r->out + (end - scan), "no packet of a VM");
	}
	/* Nothing is scanned. */
	ck_lacks(vmpt_terminal_err("stat --host-only=no x.pt y.pt")->out, "looking");
	unsetenv("VMPT_PROGRESS_AFTER");
}
END_TEST

/* G10: one trace given twice counts as two CPUs: a sentence, whatever its names are. */
START_TEST(g10_one_trace_given_twice)
{
	static const char *const twice[] = { "x.pt ./x.pt", "x.pt@3 link.pt", "x.pt y.pt hard.pt" };
	size_t i;

	write_mixed("x.pt");
	write_mixed("y.pt");
	ck_assert_int_eq(symlink("x.pt", "link.pt") | link("x.pt", "hard.pt"), 0);
	for (i = 0; i < VMPT_ARRAY_SIZE(twice); i++)
		ck_has(vmpt("stat %s", twice[i])->err,
		       "is the same file as x.pt: its trace counts as");
	ck_lacks(vmpt("stat x.pt y.pt")->err, "same file");
	ck_lacks(vmpt("stat /dev/null x.pt /dev/null")->err, "same file");
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
	tcase_add_test(tc, b3_columns_of_names);
	tcase_add_test(tc, b3_names_stay_different);
	tcase_add_test(tc, a_file_that_cannot_be_read_is_1);
	tcase_add_test(tc, a_broken_perf_data_is_1);
	tcase_add_test(tc, no_psb_is_3);
	tcase_add_test(tc, closed_pipe_and_full_disk);
	tcase_add_test(tc, split_tells_which_file_it_cannot_write);
	tcase_add_test(tc, g10_split_without_room);
	tcase_add_test(tc, color_on_a_terminal_only);
	tcase_add_test(tc, cpus_of_files);
	tcase_add_test(tc, standard_input);
	tcase_add_test(tc, cpu_list_chooses);
	tcase_add_test(tc, progress_inside_a_slice);
	tcase_add_test(tc, a4_scan_shows_progress);
	tcase_add_test(tc, g10_one_trace_given_twice);
	suite_add_tcase(suite, tc);
	return suite;
}
