// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * --host-only and --guest-only: traces without VMs, and traces of guests that were stopped and
 * started, in each command.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cli/cli-run.h"
#include "tests/decoder/notation.h"
#include "tests/decoder/perf-writer.h"
#include "tests/support/support.h"

/* User space only: no PIP. The end is in doubt without --host-only. */
#define USER "psb exec:64 tsc:1000 cbr:8 psbend pge:4000 tnt:TN pgd:- cbr:8 pge:4004 tnt:T pgd:- "
#define HOST "psb exec:64 pip:1000 tsc:1000 cbr:8 psbend pge:f000 tnt:T pgd:- "
/* kAFL: guests only, stopped and started without a PSB. */
#define RESTART "fup:8008 pgd:- cbr:8 exec:64 pge:8100 tnt:TT "
#define KAFL	"psb exec:64 pip:2000:nr vmcs:a000 cbr:8 psbend pge:8000 " RESTART RESTART RESTART

#define SAID "no packet of a VM in it"

static size_t write_words(const char *name, const char *text)
{
	static struct notation n;

	notation_read(&n, text);
	write_file(name, n.bytes, n.size);
	return n.size;
}

static unsigned int times(const char *text, const char *word)
{
	unsigned int n = 0;

	for (; (text = strstr(text, word)) != NULL; text++)
		n++;
	return n;
}

static u64 size_of(const char *name)
{
	size_t n;

	free(test_read_file(name, &n));
	return n;
}

static const char *const commands[] = { "vms",	  "stat", "timeline",	    "exits",
					"clocks", "dump", "split -f -o out" };

/* The commands agree, with and without threads: one line, no loss, nothing without an owner. */
START_TEST(a4_a_trace_without_vms_is_the_hosts)
{
	static const char *const trace[] = { USER, HOST };
	size_t i, k, size;

	for (k = 0; k < VMPT_ARRAY_SIZE(trace); k++) {
		size = write_words("a.pt", trace[k]);
		for (i = 0; i < 2 * VMPT_ARRAY_SIZE(commands); i++) {
			const char *command = commands[i / 2];
			const struct run *r = vmpt("%s -j %d a.pt", command, i % 2 ? 4 : 1);

			ck_assert_msg(r->code == 0, "%s: %d: %s", command, r->code, r->err);
			ck_assert_msg(times(r->err, SAID) == 1, "%s: %s", command, r->err);
			ck_lacks(r->out, "unknown");
		}
		ck_assert_uint_eq(size_of("out/host.pt"), size);
		ck_assert_str_eq(vmpt("vms -q a.pt")->err, "");
	}
}
END_TEST

START_TEST(a4_documents_say_it)
{
	u64 size = write_words("a.pt", USER);
	json_t *doc = run_json(vmpt("vms --json a.pt"));

	check_members("vms", doc, "host_only=true|owners/0/owner='host'");
	ck_assert_uint_eq(json_u64(doc, "owners/0/bytes"), size);
	json_decref(doc);
	doc = run_json(vmpt("split --json -o out a.pt"));
	check_members("split", doc, "host_only=true|left_out_bytes=0|streams/0/owner='host'");
	json_decref(doc);
	doc = run_json(vmpt("stat --json a.pt"));
	check_members("stat", doc, "host_only=true|total/lost_bytes=0");
	json_decref(doc);
	doc = run_json(vmpt("timeline --json a.pt"));
	check_members("timeline", doc, "host_only=true");
	json_decref(doc);
	doc = run_json(vmpt("stat --json --host-only=no a.pt"));
	check_members("stat", doc, "host_only=false");
	json_decref(doc);
	write_mixed("x.pt");
	doc = run_json(vmpt("vms --json x.pt"));
	check_members("vms", doc, "host_only=false");
	json_decref(doc);
	ck_assert_str_eq(vmpt("vms x.pt")->err, "");
}
END_TEST

/* One CPU with VMs: none is the host's alone, also if that CPU is left out. */
START_TEST(a4_all_cpus_decide)
{
	const struct run *r;

	write_words("a.cpu0.pt", USER);
	write_words("a.cpu1.pt", HOST);
	ck_has(vmpt("vms a.cpu0.pt a.cpu1.pt")->err, SAID);
	write_mixed("a.cpu2.pt");
	r = vmpt("vms --cpu 0 a.cpu0.pt a.cpu1.pt a.cpu2.pt");
	ck_lacks(r->err, SAID);
	ck_has(r->out, "unknown");
	/* Nothing is written, and that is said. */
	r = vmpt("split --cpu 0 -o out a.cpu0.pt a.cpu1.pt a.cpu2.pt");
	ck_assert_int_eq(r->code, 3);
	ck_has(r->err, "no stream was written");
	ck_has(r->err, "--host-only=yes");
	ck_assert_str_eq(vmpt("split -f --cpu 0,2 -o out a.cpu0.pt a.cpu1.pt a.cpu2.pt")->err, "");
}
END_TEST

START_TEST(a4_the_option)
{
	const struct run *r;

	write_words("a.pt", USER);
	r = vmpt("split --host-only=no -o out a.pt");
	ck_assert_int_eq(r->code, 3);
	ck_has(r->err, "no stream was written");
	ck_lacks(r->err, SAID);
	r = vmpt("split --host-only=yes -f -o out a.pt");
	ck_assert_int_eq(r->code, 0);
	ck_assert_str_eq(r->err, "");
	ck_assert_int_eq(access("out/host.pt", F_OK), 0);
	/* Given, and contradicted: the entry at 36 is an entry. */
	write_mixed("x.pt");
	r = vmpt("vms --host-only=yes x.pt");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->err, "--host-only=yes, but there is a VMCS packet of a VM at 0x");
	ck_has(r->out, "a000");
	/* A trace of guests has no line about hosts. */
	r = vmpt("vms --guest-only=yes a.pt");
	ck_assert_str_eq(r->err, "");
	ck_has(r->out, "vm?");
	/* No packet: nothing is claimed. */
	write_file("n.pt", "nothing", 7);
	r = vmpt("vms n.pt");
	ck_lacks(r->err, SAID);
	ck_assert_int_eq(r->code, 3);
}
END_TEST

START_TEST(a4_a_pipe)
{
	write_words("a.pt", USER);
	vmpt_stdin = "a.pt";
	ck_has(vmpt("vms -")->err, SAID);
	ck_assert_int_eq(vmpt("split -o out -")->code, 0);
	ck_assert_int_eq(access("out/host.pt", F_OK), 0);
	vmpt_stdin = "/dev/null";
}
END_TEST

/* A perf.data of user space whose events say that a VM ran, or not; also through a pipe. */
static void write_perf(bool pipe, bool entry)
{
	struct writer_at at = { .pid = 7, .tid = 7, .cpu = 0, .time = 1000 };
	struct perf_writer w;
	static struct notation n;

	notation_read(&n, USER);
	writer_start_kvm(&w, pipe);
	writer_info(&w, false, WRITER_PRIVS);
	if (entry)
		writer_kvm_entry(&w, 0, 0x8000, &at);
	writer_auxtrace(&w, 0, -1, 0, n.bytes, n.size);
	writer_finish(&w);
	write_file("p.data", w.buf, w.size);
	writer_free(&w);
}

START_TEST(a4_the_recorder_knows_of_vms)
{
	const struct run *r;
	int pipe;

	for (pipe = 0; pipe < 2; pipe++) {
		write_perf(pipe, false);
		vmpt_stdin = "p.data";
		r = vmpt("vms %s", pipe ? "-" : "p.data");
		ck_has(r->err, SAID);
		ck_has(r->out, "host");
		write_perf(pipe, true);
		r = vmpt("vms %s", pipe ? "-" : "p.data");
		ck_lacks(r->err, SAID);
		ck_has(r->err, "by perf's events VMs did");
		ck_has(r->out, "unknown");
		vmpt_stdin = "/dev/null";
	}
}
END_TEST

/* What the trace generator's processor makes of a host with VMs, of user space and of a host alone.
 */
START_TEST(a4_generated_traces)
{
	static const struct {
		const char *script, *owner;
		bool none;
	} want[] = {
		{ "one-owner", "host", true },	       { "kinds", "vm", false },
		{ "guest-only-no-pip", "host", true }, { "guest-only", "vm", false },
		{ "os0", "unknown", false },	       { "cfe-only", "vm_any", false },
	};
	char line[4096];
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(want); i++) {
		snprintf(line, sizeof(line),
			 "\"$TRACEGEN\" -o g.pt --no-packets \"$SCRIPTS/%s.trace\" >g.txt",
			 want[i].script);
		ck_assert_int_eq(system(line), 0);
		ck_assert_msg(times(vmpt("vms g.pt")->err, SAID) == want[i].none, "%s",
			      want[i].script);
		ck_has(vmpt("vms --json g.pt")->out, want[i].owner);
	}
}
END_TEST

START_TEST(a3_restarts_are_whole)
{
	u64 size = write_words("k.pt", KAFL);
	const struct run *r = vmpt("vms k.pt");
	json_t *doc;

	ck_assert_int_eq(r->code, 3);
	ck_has(r->err, "have no proven owner");
	ck_has(r->err, "--guest-only=yes");
	r = vmpt("vms --guest-only=yes k.pt");
	ck_assert_int_eq(r->code, 0);
	ck_assert_str_eq(r->err, "");
	doc = run_json(vmpt("vms --json --guest-only=yes k.pt"));
	ck_assert_str_eq(json_text(doc, "owners/0/vmcs"), "0xa000");
	ck_assert_uint_eq(json_u64(doc, "owners/0/bytes"), size);
	json_decref(doc);
	ck_assert_int_eq(vmpt("split --guest-only=yes -o out k.pt")->code, 0);
	ck_assert_uint_eq(size_of("out/vmcs-a000.pt"), size);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("cli host-only");
	TCase *t = tcase_create("host-only");

	tcase_add_checked_fixture(t, cli_setup, cli_clean);
	tcase_add_test(t, a4_a_trace_without_vms_is_the_hosts);
	tcase_add_test(t, a4_documents_say_it);
	tcase_add_test(t, a4_all_cpus_decide);
	tcase_add_test(t, a4_the_option);
	tcase_add_test(t, a4_a_pipe);
	tcase_add_test(t, a4_the_recorder_knows_of_vms);
	tcase_add_test(t, a4_generated_traces);
	tcase_add_test(t, a3_restarts_are_whole);
	suite_add_tcase(s, t);
	return s;
}
