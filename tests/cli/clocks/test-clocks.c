// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt clocks and vmpt split --clock, on a trace of tests/tracegen whose script says each VM's
 * offset and multiplier: web has -0x4000000, db -0x1800000 and 0.75.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/cli/cli-run.h"
#include "tests/support/support.h"

#define RATES	   "--tsc-ratio=84 --mtc-freq=3 "
#define WEB	   "0x12f7a4000"
#define DB	   "0x13b2c9000"
#define WEB_OFFSET (-0x4000000)
#define DB_OFFSET  (-0x1800000)

static void make_trace(const char *edit)
{
	char line[512];

	snprintf(line, sizeof(line),
		 "sed 's/^loop 100/loop 40/; %s' \"$SCRIPTS/demo.trace\" >d.trace && \"$TRACEGEN\" "
		 "-o d.pt --truth d.json --no-packets d.trace",
		 edit);
	ck_assert_int_eq(system(line), 0);
}

/* Made once in a process. */
static void setup(void)
{
	static const char *const name[] = { "d.cpu0.pt", "d.cpu1.pt" };
	static u8 *bytes[2];
	static size_t size[2];
	size_t i;

	cli_setup();
	if (!bytes[0])
		make_trace("");
	for (i = 0; i < 2; i++) {
		if (!bytes[i])
			bytes[i] = test_read_file(name[i], &size[i]);
		write_file(name[i], bytes[i], size[i]);
	}
}

static void write_text(const char *name, const char *text)
{
	write_file(name, text, strlen(text));
}

/* The first epoch of VMCS number @i of the document. */
static json_t *epoch(json_t *doc, unsigned int i)
{
	char path[64];

	snprintf(path, sizeof(path), "vmcss/%u/epochs/0", i);
	return json_at(doc, path);
}

START_TEST(found_in_the_trace)
{
	json_t *doc = run_json(vmpt("clocks --json " RATES "d.cpu0.pt d.cpu1.pt")), *e;

	ck_assert_str_eq(json_text(doc, "base"), "host");
	ck_assert_str_eq(json_text(doc, "vmcss/0/vmcs"), WEB);
	ck_assert_str_eq(json_text(doc, "vmcss/1/vmcs"), DB);
	ck_assert_uint_eq(json_array_size(json_at(doc, "vmcss")), 2);
	ck_assert_uint_eq(json_u64(doc, "rates/tsc_numerator"), 84);
	ck_assert_uint_gt(json_u64(doc, "streams/0/mtcs"), 1000);
	e = epoch(doc, 0);
	ck_assert_int_le(llabs(atoll(json_text(e, "tsc_offset")) - WEB_OFFSET), 4);
	ck_assert_uint_le(json_u64(e, "tsc_offset_error"), 8);
	ck_assert_str_eq(json_text(e, "multiplier"), "0x1000000000000");
	ck_assert_str_eq(json_text(e, "source"), "trace");
	ck_assert(json_is_false(json_at(e, "scaled")));
	ck_assert_uint_gt(json_u64(e, "pairs"), 10);
	e = epoch(doc, 1);
	ck_assert(json_is_true(json_at(e, "scaled")));
	ck_assert(json_real_value(json_at(e, "ratio")) > 0.75 * 0.99999);
	ck_assert(json_real_value(json_at(e, "ratio")) < 0.75 * 1.00001);
	ck_assert(json_real_value(json_at(e, "multiplier_ppm")) < 10);
	ck_assert_uint_eq(json_array_size(json_at(doc, "vmcss/1/epochs")), 1);
	json_decref(doc);
}
END_TEST

START_TEST(as_a_table)
{
	const struct run *r = vmpt("clocks " RATES "d.cpu0.pt d.cpu1.pt");

	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "time line: the host's TSC\n");
	ck_has(r->out, "84/1 TSC ticks; an MTC every 8 (MTCFreq 3)");
	ck_has(r->out, "\n12f7a4000 ");
	ck_has(r->out, "\n13b2c9000 ");
	ck_has(r->out, " trace ");
	ck_assert_str_eq(r->err, "");
	/* One CPU alone, and the rates found. */
	r = vmpt("clocks d.cpu1.pt");
	ck_has(r->out, "84/1 TSC ticks, found in the trace; an MTC every 8 (MTCFreq 3)");
	ck_has(r->out, " 0.750000");
	ck_lacks(r->out, "12f7a4000");
}
END_TEST

START_TEST(given_by_the_user)
{
	json_t *doc, *e;
	const struct run *r;

	doc = run_json(vmpt("clocks --json " RATES "--guest-tsc=12f7a4000:-67108864 "
			    "--guest-tsc=13b2c9000:-0x1800000,0xc00000000000 d.cpu0.pt"));
	e = epoch(doc, 0);
	ck_assert_str_eq(json_text(e, "source"), "user");
	ck_assert_str_eq(json_text(e, "tsc_offset"), "-67108864");
	ck_assert_uint_eq(json_u64(e, "tsc_offset_error"), 0);
	e = epoch(doc, 1);
	ck_assert_str_eq(json_text(e, "source"), "user");
	ck_assert_str_eq(json_text(e, "multiplier"), "0xc00000000000");
	ck_assert_uint_eq(json_array_size(json_at(doc, "given_contradicted")), 0);
	json_decref(doc);
	/* What the trace cannot tell anything of */
	r = vmpt("clocks " RATES "--guest-tsc=c000:7 --guest-tsc=12f7a4000:-67108864 d.cpu0.pt");
	ck_assert_str_eq(
		r->err,
		"vmpt clocks: warning: --guest-tsc: the trace has no TSC packet of VMCS c000\n");
	r = vmpt("dump --time -n 3 " RATES "--guest-tsc=c000:7 --guest-tsc=12f7a4000:7 d.cpu0.pt");
	ck_has(r->err, "--guest-tsc: the trace has no TSC packet of VMCS c000\n");
	ck_has(r->err, "VMCS 12f7a4000: --guest-tsc says TSC offset 7, ");
	/* Not so: the trace wins. */
	r = vmpt("clocks --json " RATES "--guest-tsc=12f7a4000:1000 d.cpu0.pt");
	ck_has(r->err, "VMCS 12f7a4000: --guest-tsc says TSC offset 1000");
	doc = run_json(r);
	ck_assert_str_eq(json_text(epoch(doc, 0), "source"), "trace");
	ck_assert_str_eq(json_text(doc, "given_contradicted/0/vmcs"), WEB);
	ck_assert_str_eq(json_text(doc, "given_contradicted/0/given/tsc_offset"), "1000");
	ck_assert_str_eq(json_text(doc, "given_contradicted/0/source"), "user");
	json_decref(doc);
}
END_TEST

/* The trace wins, every command says so, and a correct map causes no warning. */
START_TEST(given_rates_that_are_not_so)
{
#define GIVEN \
	"--guest-tsc=12f7a4000:-67108864 --guest-tsc=13b2c9000:-0x1800000,0xc00000000000 d.cpu0.pt"
	static const char *const ratio =
		"warning: --tsc-ratio 83/1: the given value contradicts the trace: 84/1 is used\n";
	static const char *const freq =
		"warning: --mtc-freq 0: the given value contradicts the trace: 3 is used\n";
	const struct run *r;
	json_t *doc;

	r = vmpt("clocks --json --tsc-ratio=83 --mtc-freq=0 " GIVEN);
	ck_has(r->err, ratio);
	ck_has(r->err, freq);
	ck_lacks(r->err, "--guest-tsc");
	doc = run_json(r);
	check_members("clocks", doc,
		      "rates/tsc_numerator=84|rates/mtc_freq=3|rates/found=true|"
		      "rates/given_wrong/tsc_numerator=83|rates/given_wrong/tsc_denominator=1|"
		      "rates/given_wrong/mtc_freq=0");
	ck_assert_str_eq(json_text(epoch(doc, 1), "source"), "user");
	ck_assert_uint_eq(json_array_size(json_at(doc, "given_contradicted")), 0);
	ck_assert_uint_eq(json_u64(doc, "streams/0/contradictions"), 0);
	json_decref(doc);
	r = vmpt("clocks --tsc-ratio=4294967295/1 --mtc-freq=3 d.cpu0.pt");
	ck_has(r->err, "--tsc-ratio 4294967295/1: the given value contradicts the trace: 84/1");
	ck_has(r->out, "84/1 TSC ticks, found in the trace; an MTC every 8 (MTCFreq 3)");
	ck_has(r->out, "\ngiven, but contradicted by the trace: 4294967295/1 TSC ticks\n");
	ck_lacks(r->err, "MTCFreq");
	r = vmpt("clocks --tsc-ratio=84 --mtc-freq=15 d.cpu0.pt");
	ck_has(r->out, "\ngiven, but contradicted by the trace: MTCFreq 15\n");
	ck_has(vmpt("dump --time -n 3 --tsc-ratio=83 --mtc-freq=0 d.cpu0.pt")->err, ratio);
	r = vmpt("split --clock=host -o wrong --tsc-ratio=83 --mtc-freq=0 d.cpu0.pt");
	ck_has(r->err, ratio);
	ck_has(r->err, freq);
	doc = run_json(vmpt("clocks --json " RATES "d.cpu0.pt"));
	ck_assert(json_is_null(json_at(doc, "rates/given_wrong")));
	json_decref(doc);
#undef GIVEN
}
END_TEST

START_TEST(given_by_the_side_record)
{
	const struct run *r;
	json_t *doc, *e;

	write_text("vms.jsonl",
		   "{\"vm\":\"web\",\"vcpu\":0,\"vmcs\":\"" WEB
		   "\",\"tsc_offset\":\"0xfffffffffc000000\",\"tsc_multiplier\":\"0x0\","
		   "\"since\":\"0x0\"}\n\n"
		   "{\"vm\":\"db\\u001b[2J\",\"vcpu\":3,\"vmcs\":\"" DB
		   "\",\"tsc_offset\":\"0x5\"}\n");
	r = vmpt("clocks --json " RATES "--side-record=vms.jsonl d.cpu0.pt d.cpu1.pt");
	ck_has(r->err, "VMCS 13b2c9000: the side record says TSC offset 5");
	doc = run_json(r);
	e = epoch(doc, 0);
	ck_assert_str_eq(json_text(e, "source"), "record");
	ck_assert_str_eq(json_text(e, "vm"), "web");
	ck_assert_str_eq(json_text(e, "tsc_offset"), "-67108864");
	ck_assert_str_eq(json_text(epoch(doc, 1), "source"), "trace");
	json_decref(doc);
	/* --guest-tsc comes after it, and is also checked against the trace. */
	r = vmpt("clocks --json " RATES
		 "--side-record=vms.jsonl --guest-tsc=12f7a4000:12345 d.cpu0.pt");
	ck_has(r->err,
	       "VMCS 12f7a4000: --guest-tsc says TSC offset 12345, multiplier 0x1000000000000; "
	       "the trace has another from host TSC 0x");
	ck_has(r->err, "; the side record says -67108864, 0x1000000000000, which is used\n");
	doc = run_json(r);
	ck_assert_str_eq(json_text(epoch(doc, 0), "source"), "record");
	ck_assert_str_eq(json_text(doc, "given_contradicted/0/source"), "user");
	ck_assert_str_eq(json_text(doc, "given_contradicted/0/by"), "record");
	json_decref(doc);
	r = vmpt("clocks " RATES "--side-record=vms.jsonl d.cpu0.pt d.cpu1.pt");
	ck_has(r->out, "web vcpu 0");
	ck_has(r->out, "db\\u001b[2J vcpu 3");
}
END_TEST

START_TEST(bad_side_records)
{
	static const char *const bad[][2] = {
		{ "", "no record in it" },
		{ "{\"vm\":\"a\",\"vcpu\":0}\n", "line 1: \"vmcs\" is not a number" },
		{ "\n{\"vm\":\"a\",\"vcpu\":-1,\"vmcs\":1}\n", "line 2: \"vcpu\" is not a number" },
		{ "{\"vm\":\"\",\"vcpu\":0,\"vmcs\":1}\n", "line 1: \"vm\" is not a name" },
		{ "{\"vcpu\":0,\"vmcs\":1}\n", "line 1: \"vm\" is not a name" },
		{ "{\"vm\":\"a\",\"vcpu\":4294967296,\"vmcs\":1}", "is larger than 4294967295" },
		{ "{\"vm\":\"a\",\"vcpu\":0,\"vmcs\":\"0x11112222333344445\"}", "more than 64" },
		{ "{\"rtit\":1,\"vm\":\"a\",\"vcpu\":0}", "side record of an RTIT trace" },
		{ "[1]", "line 1: not a JSON object" },
		{ "nonsense", "line 1: " },
	};
	const struct run *r;
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(bad); i++) {
		write_text("bad.jsonl", bad[i][0]);
		r = vmpt("clocks --side-record=bad.jsonl d.cpu0.pt");
		ck_assert_msg(r->code == 1, "%s: %d", bad[i][0], r->code);
		ck_has(r->err, "bad.jsonl: ");
		ck_has(r->err, bad[i][1]);
	}
	/* The lines before a truncated last line are used. */
	write_text("bad.jsonl",
		   "{\"vm\":\"web\",\"vcpu\":0,\"vmcs\":\"" WEB "\"}\n{\"vm\":\"db\",\"vc");
	r = vmpt("clocks " RATES "--side-record=bad.jsonl d.cpu0.pt");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->err, "warning: bad.jsonl: line 2 is truncated; skipped");
	ck_has(r->out, "web vcpu 0");
	/* Nor is anything else lost with one in the middle. */
	write_text("mid.jsonl", "{\"vm\":\"web\",\"vcpu\":0,\"vmcs\":\"" WEB "\"}\n"
				"{\"vm\":\"lost\",\"vcpu\":0,\"vm\n"
				"[]\n{\"vm\":\"lost\",\"vcpu\":0}\n"
				"{\"vm\":\"db\",\"vcpu\":3,\"vmcs\":\"" DB "\"}\n");
	r = vmpt("clocks " RATES "--side-record=mid.jsonl d.cpu0.pt");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->err, "warning: mid.jsonl: line 2: ");
	ck_has(r->err, "warning: mid.jsonl: line 3: not a JSON object; skipped\n");
	ck_has(r->err, "warning: mid.jsonl: line 4: \"vmcs\" is not a number, like 3 or \"0x1f\"; "
		       "skipped\n");
	ck_lacks(r->err, "more");
	ck_has(r->out, "web vcpu 0");
	ck_has(r->out, "db vcpu 3");
	ck_lacks(r->out, "lost");
	write_text("many.jsonl", "{}\n{}\n{}\n{}\n{}\n{}\n{}\n"
				 "{\"vm\":\"web\",\"vcpu\":0,\"vmcs\":\"" WEB "\"}\n");
	r = vmpt("clocks " RATES "--side-record=many.jsonl d.cpu0.pt");
	ck_has(r->err, "many.jsonl: line 5: ");
	ck_lacks(r->err, "many.jsonl: line 6: ");
	ck_has(r->err, "warning: many.jsonl: 2 more lines are skipped\n");
	ck_has(r->out, "web vcpu 0");
	r = vmpt("clocks --side-record=none.jsonl d.cpu0.pt");
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "none.jsonl: No such file");
}
END_TEST

/* Whether @doc has a warning like "warning: TEXT" of stderr. */
static void check_warned(json_t *doc, const char *err)
{
	json_t *list = json_at(doc, "warnings"), *text;
	bool found = false;
	size_t i;

	json_array_foreach(list, i, text) found |=
		strstr(json_string_value(text), err + strlen("warning: ")) != NULL;
	ck_assert_msg(found, "no '%s' in the JSON", err);
	json_decref(doc);
}

/* All that make use of times say it, on stderr and in their JSON, and go on. */
/* Of each command both warnings. */
static void check_doubts(const char *args, const char *err, const char *err2)
{
	static const char *const command[] = {
		"timeline",	    "timeline --summary",	"exits",
		"dump --time -n 3", "split --clock=host -fo o", "split --per-vm --perf -fo p"
	};
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(command); i++) {
		const struct run *r = vmpt("%s %s", command[i], args);
		int code = r->code;

		ck_assert_msg(code == 0 || code == 3, "%s: %d", command[i], code);
		ck_has(r->err, err);
		ck_has(r->err, err2);
		r = vmpt("%s -q %s", command[i], args);
		ck_assert_int_eq(r->code, code);
		ck_lacks(r->err, err);
		/* vmpt dump prints one object per line. */
		if (i != 3)
			check_warned(run_json(vmpt("%s --json -q %s", command[i], args)), err);
	}
	check_warned(json_load_file("o/index.json", 0, NULL), err);
}

static void check_doubt(const char *args, const char *err)
{
	check_doubts(args, err, err);
}

START_TEST(nothing_tells_the_time)
{
	make_trace("s/tsc=1 mtc=1/tsc=0 mtc=0/");
	ck_has(vmpt("clocks d.cpu0.pt")->out, "time line: none, as there is no TSC packet\n");
	check_doubt("d.cpu0.pt", "warning: d.cpu0.pt: no TSC packets: ");
}
END_TEST

/* Its head alone: too few packets to find rates by. */
START_TEST(nothing_tells_the_rates)
{
	char head[400], *out;
	json_t *doc;
	FILE *f = fopen("d.cpu0.pt", "re");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fread(head, 1, sizeof(head), f), sizeof(head));
	fclose(f);
	write_file("short.cpu0.pt", head, sizeof(head));
	check_doubt("short.cpu0.pt",
		    "warning: the rates of the clocks (CPUID leaf 15H, MTCFreq) are neither "
		    "in the file nor found");
	ck_lacks(vmpt("timeline " RATES "short.cpu0.pt")->err, "leaf 15H");
	/* So no exit's time has a bound. */
	out = vmpt("exits -q short.cpu0.pt")->out;
	ck_has(out, " ±?  ");
	ck_has(out, "; ±?: unbounded");
	ck_lacks(out, "MIN to MAX");
	doc = run_json(vmpt("exits -q --json short.cpu0.pt"));
	ck_assert(json_is_null(json_at(doc, "exits/0/total_error_ticks")));
	ck_assert(json_is_null(json_at(doc, "exits/0/one_error_ticks")));
	json_decref(doc);
}
END_TEST

/* A TSC of the host that is 6,000 ticks too low: MTCs are 672 apart. */
START_TEST(clocks_that_contradict_themselves)
{
	static const char *const contradiction =
		"warning: CPU 0: TSC and MTC packets contradict each other ";
	static const char *const back = "warning: CPU 0: the time steps back once";
	static u8 bytes[100000]; /* a part is enough */
	size_t n, at;
	FILE *f;
	json_t *o;
	u64 tsc = 0;

	o = run_packets(vmpt("dump --kinds=TSC --owner=host --json -n 20 d.cpu0.pt"));
	at = json_u64(o, "4/offset");
	json_decref(o);
	f = fopen("d.cpu0.pt", "re");
	ck_assert_ptr_nonnull(f);
	n = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	write_file("part.cpu0.pt", bytes, n);
	ck_assert_uint_eq(bytes[at], 0x19);
	memcpy(&tsc, bytes + at + 1, 7);
	tsc -= 6000;
	memcpy(bytes + at + 1, &tsc, 7);
	write_file("bad.cpu0.pt", bytes, n);
	check_doubts(RATES "bad.cpu0.pt", contradiction, back);
	/* Contradicted given values are not only reported on stderr. */
	check_doubt(RATES "--guest-tsc=12f7a4000:1000 part.cpu0.pt",
		    "warning: VMCS 12f7a4000: --guest-tsc says TSC offset 1000");
	check_doubt("--tsc-ratio=83 --mtc-freq=3 part.cpu0.pt",
		    "warning: --tsc-ratio 83/1: the given value contradicts the trace: 84/1");
	ck_lacks(vmpt("timeline " RATES "part.cpu0.pt")->err, "CPU 0: ");
}
END_TEST

/* First and last TSC of a stream, by vmpt dump. */
static void times_of(const char *file, u64 *first, u64 *last)
{
	json_t *lines = run_packets(vmpt("dump --kinds=TSC --json %s", file));
	size_t n = json_array_size(lines);

	ck_assert_uint_gt(n, 2);
	*first = strtoull(json_text(json_array_get(lines, 0), "tsc"), NULL, 0);
	*last = strtoull(json_text(json_array_get(lines, n - 1), "tsc"), NULL, 0);
	json_decref(lines);
}

START_TEST(streams_on_one_clock)
{
	static const char *const file[] = { "vmcs-12f7a4000.cpu0.pt", "vmcs-13b2c9000.cpu0.pt",
					    "vmcs-13b2c9000.cpu1.pt" };
	u64 host[2], first, last;
	char path[64];
	json_t *doc;
	size_t i;

	ck_assert_int_eq(vmpt("split --clock=host " RATES "-o out d.cpu0.pt d.cpu1.pt")->code, 0);
	times_of("out/host.cpu0.pt", &host[0], &host[1]);
	for (i = 0; i < VMPT_ARRAY_SIZE(file); i++) {
		snprintf(path, sizeof(path), "out/%s", file[i]);
		times_of(path, &first, &last);
		ck_assert_uint_ge(first + 1000000, host[0]);
		ck_assert_uint_le(last, host[1] + 1000000);
		ck_assert_uint_gt(last, host[1] - 1000000);
	}
	doc = json_load_file("out/index.json", 0, NULL);
	ck_assert_str_eq(json_text(doc, "stream_clock"), "host");
	json_decref(doc);
	/* Each on its own: web's is the host's and its offset. */
	ck_assert_int_eq(vmpt("split --clock=guest -f " RATES "-o out d.cpu0.pt d.cpu1.pt")->code,
			 0);
	times_of("out/vmcs-12f7a4000.cpu0.pt", &first, &last);
	ck_assert_uint_gt(last, host[1] + (u64)WEB_OFFSET - 1000000);
	ck_assert_uint_lt(last, host[1] + (u64)WEB_OFFSET + 1000000);
	times_of("out/vmcs-13b2c9000.cpu1.pt", &first, &last);
	ck_assert_uint_gt(last, host[1] / 4 * 3 + (u64)DB_OFFSET - 1000000);
	ck_assert_uint_lt(last, host[1] / 4 * 3 + (u64)DB_OFFSET + 1000000);
	doc = json_load_file("out/index.json", 0, NULL);
	ck_assert_str_eq(json_text(doc, "stream_clock"), "guest");
	json_decref(doc);
}
END_TEST

START_TEST(wrong_usage)
{
	static const char *const line[] = {
		"split -o out --clock=mine d.cpu0.pt",
		"split -o out --guest-tsc=a000:1 d.cpu0.pt",
		"clocks --guest-tsc=nonsense d.cpu0.pt",
		"clocks --guest-tsc=a000:1 --guest-tsc=0b000:1 --guest-tsc=0a000:2 d.cpu0.pt",
		"clocks --mtc-freq=16 d.cpu0.pt",
	};
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(line); i++) {
		const struct run *r = vmpt("%s", line[i]);

		ck_assert_msg(r->code == 2, "vmpt %s: exit code %d", line[i], r->code);
	}
	ck_assert_int_eq(access("out", F_OK), -1);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("cli clocks");
	TCase *tcase = tcase_create("clocks");

	tcase_add_checked_fixture(tcase, setup, cli_clean);
	tcase_add_test(tcase, found_in_the_trace);
	tcase_add_test(tcase, as_a_table);
	tcase_add_test(tcase, given_by_the_user);
	tcase_add_test(tcase, given_rates_that_are_not_so);
	tcase_add_test(tcase, given_by_the_side_record);
	tcase_add_test(tcase, bad_side_records);
	tcase_add_test(tcase, nothing_tells_the_time);
	tcase_add_test(tcase, nothing_tells_the_rates);
	tcase_add_test(tcase, clocks_that_contradict_themselves);
	tcase_add_test(tcase, streams_on_one_clock);
	tcase_add_test(tcase, wrong_usage);
	suite_add_tcase(suite, tcase);
	return suite;
}
