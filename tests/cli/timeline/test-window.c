// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt timeline: windows, owners, guesses by code, and traces without times or with a loss. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cli/cli-run.h"
#include "tests/cli/timeline/files.h"

/* Text of a line that is not JSON is repeated in its warning. */
START_TEST(hostile_lines)
{
	static const char text[] = "{\"vm\":\"web\",\"vcpu\":0,\"vmcs\":\"0x1000\"}\n"
				   "{\"vm\" \"\xc2\x9b\xe2\x80\xae\"}\n"
				   "\033]0;title\007\n";
	static const char *const line[] = { "timeline", "exits", "clocks", "vms" };
	size_t i;

	write_file("bad.jsonl", text, strlen(text));
	for (i = 0; i < VMPT_ARRAY_SIZE(line); i++) {
		const struct run *r = vmpt("%s --side-record=bad.jsonl " RATES " " FILES, line[i]);

		ck_has(r->err, "bad.jsonl: line 2: ");
		ck_has(r->err, "\\u202e");
		ck_has(r->err, "bad.jsonl: line 3: ");
		ck_lacks(r->err, "\033");
		ck_lacks(r->err, "\xc2\x9b");
		ck_lacks(r->err, "\xe2\x80\xae");
	}
}
END_TEST

/* Two VMs are two, also where their names look the same when they are shown. */
START_TEST(names_that_look_the_same)
{
	size_t i, given = 0, like = 0;
	json_t *doc, *o;
	char text[256];

	snprintf(text, sizeof(text),
		 "{\"vm\":\"a\\u202eb\",\"vcpu\":0,\"vmcs\":\"0x%llx\"}\n"
		 "{\"vm\":\"a\\\\u202eb\",\"vcpu\":0,\"vmcs\":\"0x%llx\"}\n",
		 (unsigned long long)tl_vmcs(0), (unsigned long long)tl_vmcs(1));
	write_file("two.jsonl", text, strlen(text));
	doc = run_json(
		vmpt("timeline --json -q --summary --side-record=two.jsonl " RATES " " FILES));
	json_array_foreach(json_at(doc, "vms"), i, o)
	{
		given += !strcmp(json_vm(o), "a\xe2\x80\xae"
					     "b");
		like += !strcmp(json_vm(o), "a\\u202eb");
	}
	ck_assert_uint_eq(given, 1);
	ck_assert_uint_eq(like, 1);
	json_decref(doc);
}
END_TEST

/* The span of the whole trace that @o is, or is a part of. */
static json_t *whole_of(json_t *spans, json_t *o)
{
	json_t *s;
	size_t i;

	json_array_foreach(spans, i,
			   s) if (json_u64(s, "cpu") == json_u64(o, "cpu") &&
				  json_u64(s, "offset") == json_u64(o, "offset")) return s;
	ck_abort_msg("no span at %llu", (unsigned long long)json_u64(o, "offset"));
}

/* A cut end says so; another one is as in the whole. */
START_TEST(cut_by_a_window)
{
	json_t *doc = run_spans(vmpt("timeline --json -q " RATES " " FILES));
	json_t *part =
		run_spans(vmpt("timeline --json -q --from=100000 --to=200000 " RATES " " FILES));
	json_t *all = json_at(doc, "spans"), *list = json_at(part, "spans"), *o;
	size_t i, began = 0, ended = 0;

	json_array_foreach(list, i, o)
	{
		json_t *whole = whole_of(all, o);
		double start = json_number(whole, "start_ticks"),
		       end = start + json_number(whole, "length_ticks");
		bool before = start<100000, past = end> 200000;

		ck_assert_str_eq(json_text(o, "began"), before ? "cut" : json_text(whole, "began"));
		ck_assert_str_eq(json_text(o, "ended"), past ? "cut" : json_text(whole, "ended"));
		began += before;
		ended += past;
	}
	/* Each CPU's first and last */
	ck_assert_uint_eq(began, 3);
	ck_assert_uint_eq(ended, 3);
	json_decref(doc);
	json_decref(part);
}
END_TEST

START_TEST(a_window)
{
	json_t *doc =
		run_spans(vmpt("timeline --json -q --from=100000 --to=200000 " RATES " " FILES));
	json_t *list = json_at(doc, "spans"), *o;
	double sum[3] = { 0 };
	size_t i;

	json_array_foreach(list, i, o)
	{
		double start = json_number(o, "start_ticks"),
		       length = json_number(o, "length_ticks");

		ck_assert(start >= 100000 && start + length <= 200000);
		sum[json_u64(o, "cpu")] += length;
	}
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq((u64)sum[i], 100000);
	json_decref(doc);
	doc = run_spans(vmpt("timeline --json -q --owner=%llx " RATES " " FILES,
			     (unsigned long long)tl_vmcs(3)));
	json_array_foreach(json_at(doc, "spans"), i, o)
		ck_assert_uint_eq(strtoull(json_text(o, "vmcs"), NULL, 16), tl_vmcs(3));
	ck_assert_uint_gt(i, 100);
	json_decref(doc);
}
END_TEST

/* ---- guesses by code ---- */

/* CPUID at a place that is known, in this program. */
__asm__(".text\n.globl test_cpuid_here\ntest_cpuid_here:\n\tcpuid\n\tret\n");
extern const char test_cpuid_here[];
extern const char __ehdr_start[];

START_TEST(guesses)
{
	static const struct tl_options o = { .cpus = 1, .guests = 1, .runs = 300, .seed = 8 };
	u64 offset = (u64)(test_cpuid_here - __ehdr_start);
	char self[4096];
	const struct run *r;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char want[64];
	size_t i;

	ck_assert_int_gt((int)n, 0);
	self[n] = '\0';
	ck_assert_int_eq(symlink(self, "self"), 0); /* a name without a space */
	tl_free(m);
	write_machine(&o);
	for (i = 0; i + 1 < runs && run[i].reason != 10; i++)
		;
	ck_assert_uint_lt(i + 1, runs);
	snprintf(want, sizeof(want), "  CPUID? %llx\n", (unsigned long long)run[i].ip);
	r = vmpt("timeline -q " RATES " --image=self@0x%llx a.cpu0.pt",
		 (unsigned long long)(run[i].ip - offset));
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, want);
	r = vmpt("timeline -q " RATES " a.cpu0.pt");
	ck_lacks(r->out, "CPUID");
	r = vmpt("timeline -q --image=a.cpu0.pt@0x1000 a.cpu0.pt");
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "not a readable ELF file");
}
END_TEST

/* No packet has a time: no output may say 0, which is one. */
START_TEST(no_times)
{
	const struct run *r;
	json_t *doc, *o;
	size_t i;

	write_mixed("mixed.pt");
	r = vmpt("timeline mixed.pt");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "\n            –    –  ");
	ck_lacks(r->out, "\n            0 ");
	ck_has(r->err, "vmpt record");
	ck_lacks(r->err, "frequency");
	r = vmpt("timeline --summary mixed.pt");
	ck_has(r->out, "the trace has no times");
	ck_lacks(r->out, "±0");
	ck_lacks(r->out, "0 ticks");
	ck_lacks(r->err, "frequency");
	doc = run_spans(vmpt("timeline --json -q mixed.pt"));
	ck_assert(json_is_null(json_at(doc, "start_tsc")));
	json_array_foreach(json_at(doc, "spans"), i, o)
	{
		ck_assert(json_is_null(json_object_get(o, "start_ticks")));
		ck_assert(json_is_null(json_object_get(o, "length_ticks")));
		if (json_object_get(o, "out_ticks"))
			ck_assert(json_is_null(json_object_get(o, "out_ticks")));
	}
	ck_assert_uint_gt(i, 2);
	json_decref(doc);
	doc = run_json(vmpt("timeline --json --summary -q mixed.pt"));
	ck_assert(json_is_null(json_at(doc, "length_ticks")));
	ck_assert(json_is_null(json_at(doc, "vms/0/running_ticks")));
	ck_assert(json_is_null(json_at(doc, "vms/0/running_error_ticks")));
	ck_assert(json_is_null(json_at(doc, "cpus/0/lost_ticks")));
	json_decref(doc);
	r = vmpt("exits mixed.pt");
	ck_lacks(r->out, " 0  0  0");
	ck_lacks(r->err, "frequency");
	/* Without times there is nothing to draw. */
	r = vmpt("timeline --chrome=t.json mixed.pt");
	ck_has(r->err, "left out");
	doc = json_load_file("t.json", 0, NULL);
	json_array_foreach(json_at(doc, "traceEvents"), i, o)
		ck_assert_str_eq(json_text(o, "ph"), "M");
	json_decref(doc);
}
END_TEST

/* Bytes are gone from the middle: a row says so, and the exit code does. */
START_TEST(a_loss)
{
	const struct vmpt_stream *s = tl_stream(m, 0);
	u8 *bytes = malloc(s->size);
	const struct run *r;
	json_t *doc;

	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, s->data, s->size);
	memset(bytes + s->size / 2, 0xff, 64);
	write_file("a.cpu0.pt", bytes, s->size);
	free(bytes);
	r = vmpt("timeline " RATES " " KHZ " " FILES);
	ck_assert_int_eq(r->code, 3);
	ck_has(r->out, "  0  lost  ");
	ck_has(r->err, "lost");
	ck_assert_uint_le(widest(r->out), 100);
	r = vmpt("timeline --json --summary -q " RATES " " FILES);
	ck_assert_int_eq(r->code, 3);
	doc = json_loads(r->out, 0, NULL);
	ck_assert_uint_eq(json_u64(doc, "cpus/0/loss_count"), 1);
	ck_assert_uint_eq(json_u64(doc, "cpus/1/loss_count"), 0);
	json_decref(doc);
	r = vmpt("timeline -q --chrome=t.json " RATES " " FILES);
	ck_assert_int_eq(r->code, 3);
	doc = json_load_file("t.json", 0, NULL);
	ck_assert_ptr_nonnull(doc);
	json_decref(doc);
	r = vmpt("exits -q " RATES " " FILES);
	ck_assert_int_eq(r->code, 3);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("cli timeline window");
	TCase *tc = tcase_create("timeline window");

	tcase_add_checked_fixture(tc, timeline_setup, timeline_teardown);
	tcase_add_test(tc, hostile_lines);
	tcase_add_test(tc, names_that_look_the_same);
	tcase_add_test(tc, cut_by_a_window);
	tcase_add_test(tc, a_window);
	tcase_add_test(tc, guesses);
	tcase_add_test(tc, no_times);
	tcase_add_test(tc, a_loss);
	suite_add_tcase(suite, tc);
	return suite;
}
