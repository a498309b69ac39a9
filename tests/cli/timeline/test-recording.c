// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Folders of recordings: with recording.json each command needs no option; what is wrong with one,
 * and with the code in it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/sideinfo/recording.h"
#include "tests/cli/cli-run.h"
#include "tests/cli/timeline/files.h"

#define TRACES                                                                     \
	"\"traces\":[{\"file\":\"a.pt\",\"cpu\":1},{\"file\":\"b.pt\",\"cpu\":0}," \
	"{\"file\":\"c.pt\",\"cpu\":2}]"
#define SIDE ",\"side_record\":\"vms.jsonl\""
#define KHZ_2                                                                                  \
	",\"rates\":{\"tsc_khz\":2000000,\"tsc_art_numerator\":100,\"tsc_art_denominator\":1," \
	"\"mtc_freq\":3,\"tsc_source\":\"processor\"}"

static void put_text(const char *name, const char *text)
{
	write_file(name, text, strlen(text));
}

/* rec/ with the three traces under names that say no CPU, and their side record. */
static void setup(void)
{
	timeline_setup();
	ck_assert_int_eq(mkdir("rec", 0700), 0);
	ck_assert_int_eq(rename("a.cpu1.pt", "rec/a.pt") | rename("a.cpu0.pt", "rec/b.pt") |
				 rename("a.cpu2.pt", "rec/c.pt") |
				 rename("vms.jsonl", "rec/vms.jsonl"),
			 0);
}

static void teardown(void)
{
	ck_assert_int_eq(system("rm -rf rec"), 0);
	timeline_teardown();
}

static void put_head(const char *members)
{
	FILE *f = fopen("rec/recording.json", "w");

	ck_assert_ptr_nonnull(f);
	fprintf(f, "{\"format\":1%s%s}", *members ? "," : "", members);
	fclose(f);
}

/* Clocks of @n pairs, 1 s apart from @tsc on, of a TSC of 2 GHz; the clock is set by @by in pair 2.
 */
static void put_clocks_of(u64 tsc, int n, long long by, unsigned int khz, const char *source)
{
	char text[4096];
	int i, at = snprintf(text, sizeof(text),
			     TRACES SIDE
			     ",\"rates\":{\"tsc_khz\":%u,\"tsc_source\":\"%s\"},\"clocks\":[",
			     khz, source);

	for (i = 0; i < n; i++)
		at += snprintf(text + at, sizeof(text) - (size_t)at,
			       "%s{\"tsc\":\"0x%llx\",\"monotonic_raw_ns\":%llu,"
			       "\"realtime_ns\":\"0x%llx\"}",
			       i ? "," : "", (unsigned long long)tsc + (u64)i * 2000000000,
			       7 + i * 1000000000ULL,
			       (unsigned long long)(1790000000000000000LL + i * 1000000000LL +
						    (i >= 2 ? by : 0)));
	snprintf(text + at, sizeof(text) - (size_t)at, "]");
	put_head(text);
}

static void put_clocks(u64 tsc, int n, long long by, unsigned int khz)
{
	put_clocks_of(tsc, n, by, khz, "processor");
}

/* ---- what needs no option ---- */

START_TEST(b11_a_folder_needs_no_option)
{
	static const char *const input[] = { "rec", "rec/", "./rec//" };
	static const char *const command[] = { "vms",	"stat", "clocks",	  "timeline",
					       "exits", "wait", "split -f -o out" };
	char *want = NULL;
	const struct run *r;
	size_t i;

	put_head(TRACES SIDE KHZ_2);
	/* The same as with all options. */
	r = vmpt("timeline -q " RATES " " KHZ
		 " --side-record=rec/vms.jsonl rec/b.pt@0 rec/a.pt@1 rec/c.pt@2");
	ck_assert_int_eq(r->code, 0);
	want = strdup(r->out);
	ck_has(want, "web vcpu 1");
	for (i = 0; i < VMPT_ARRAY_SIZE(input); i++) {
		r = vmpt("timeline %s", input[i]);
		ck_assert_int_eq(r->code, 0);
		ck_assert_str_eq(r->err, "");
		ck_assert_str_eq(r->out, want);
	}
	free(want);
	for (i = 0; i < VMPT_ARRAY_SIZE(command); i++)
		ck_assert_msg(!vmpt("%s rec", command[i])->code, "%s: %s", command[i],
			      vmpt("%s rec", command[i])->err);
	ck_assert_int_eq(vmpt("dump --head 3 --cpu 2 rec")->code, 0);
	ck_has(vmpt("vms rec")->out, "db vcpu 0");
}
END_TEST

START_TEST(b11_a_file_of_a_recording)
{
	json_t *doc;
	const struct run *r;

	put_head(TRACES SIDE KHZ_2);
	doc = run_json(vmpt("timeline --json --head=1 rec/c.pt"));
	ck_assert_uint_eq(json_u64(doc, "spans/0/cpu"), 2);
	json_decref(doc);
	ck_has(vmpt("vms rec/c.pt rec/a.pt")->out, "web vcpu 1");
	/* In its folder. */
	ck_assert_int_eq(chdir("rec"), 0);
	r = vmpt("timeline --summary c.pt");
	ck_assert_int_eq(chdir(".."), 0);
	ck_has(r->out, "\nweb ");
	ck_has(r->out, " ms on 1 CPU");
	/* An option goes first. */
	doc = run_json(vmpt("timeline --json --head=1 rec/c.pt@7"));
	ck_assert_uint_eq(json_u64(doc, "spans/0/cpu"), 7);
	json_decref(doc);
	ck_has(vmpt("timeline --summary --tsc-khz=1000000 rec")->out, " ms on 3 CPUs");
}
END_TEST

/* A file of a recording that is no trace, a broken recording, a folder without a trace. */
START_TEST(b11_says_what_to_give)
{
	static const char *const part[] = { "recording.json", "vms.jsonl" };
	const struct run *r;
	size_t i;

	put_head(TRACES SIDE KHZ_2);
	for (i = 0; i < VMPT_ARRAY_SIZE(part); i++) {
		r = vmpt("vms rec/%s", part[i]);
		ck_assert_int_eq(r->code, 2);
		ck_has(r->err, "is a part of a recording, and no trace: give the folder, rec\n");
	}
	ck_assert_int_eq(mkdir("none", 0700) | mkdir("broken", 0700), 0);
	r = vmpt("vms none");
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "none: there is no trace in this folder: no recording.json");
	ck_assert_int_eq(link("rec/a.pt", "broken/cpu0.pt"), 0);
	put_text("broken/recording.json", "{");
	r = vmpt("vms broken");
	ck_assert_int_eq(r->code, 1);
	ck_has(r->err, "\n  give its traces: broken/cpu0.pt\n");
}
END_TEST

/* Folders of the plugin before there was recording.json, and a file of them. */
START_TEST(b11_older_folders)
{
	ck_assert_int_eq(rename("rec/a.pt", "rec/cpu10.pt") | rename("rec/b.pt", "rec/cpu9.pt") |
				 unlink("rec/c.pt"),
			 0);
	ck_has(vmpt("vms rec")->out, "web vcpu 1");
	ck_has(vmpt("vms rec/cpu9.pt")->out, "web vcpu 1");
	ck_has(vmpt("timeline --summary rec")->out, "on 2 CPUs");
	ck_assert_int_eq(vmpt("vms --cpu 10 rec")->code, 0);
	/* The option goes first. */
	put_text("other.jsonl", "{\"vm\":\"other\",\"vcpu\":0,\"vmcs\":\"0x1\"}\n");
	ck_lacks(vmpt("vms --side-record=other.jsonl rec")->out, "web");
}
END_TEST

/* ---- what is wrong ---- */

START_TEST(b11_hostile_recordings)
{
	static const struct {
		const char *head, *why;
	} cases[] = {
		{ "no JSON", "not JSON: line 1" },
		{ "[]", "it has no number \"format\"" },
		{ "{}", "it has no number \"format\"" },
		{ "{\"format\":\"1\"}", "it has no number \"format\"" },
		{ "{\"format\":2," TRACES "}", "is of format 2; this vmpt reads format 1" },
		{ "{\"format\":1,\"format\":1," TRACES "}", "not JSON: line 1: duplicate" },
		{ "[[[[[[[[[1]]]]]]]]]", "nested more than 8 deep" },
		{ "{\"format\":1}", "\"traces\" is no list" },
		{ "{\"format\":1,\"traces\":{}}", "\"traces\" is no list" },
		{ "{\"format\":1,\"traces\":[]}", "\"traces\" is no list" },
		{ "{\"format\":1,\"traces\":[7]}", "the trace '' is not the name of a file" },
		{ "{\"format\":1,\"traces\":[{\"file\":\"../x\"}]}",
		  "the trace '../x' is not the name of a file in its folder" },
		{ "{\"format\":1,\"traces\":[{\"file\":\"/etc/passwd\"}]}",
		  "'/etc/passwd' is not" },
		{ "{\"format\":1,\"traces\":[{\"file\":\"..\"}]}", "'..' is not" },
		{ "{\"format\":1,\"traces\":[{\"file\":\"\"}]}", "'' is not" },
		{ "{\"format\":1,\"traces\":[{\"file\":\"a\\u001b[2J/\"}]}",
		  "'a\\u001b[2J/' is not" },
		{ "{\"format\":1,\"traces\":[{\"file\":\"link.pt\"}]}", "is not a regular file" },
		{ "{\"format\":1,\"traces\":[{\"file\":\"sub\"}]}", "is not a regular file" },
		{ "{\"format\":1,\"traces\":[{\"file\":\"a.pt\",\"cpu\":-1}]}",
		  "\"cpu\" is not a" },
		{ "{\"format\":1,\"traces\":[{\"file\":\"a.pt\",\"cpu\":65536}]}",
		  "\"cpu\" is not a" },
		{ "{\"format\":1,\"traces\":[{\"file\":\"a.pt\",\"cpu\":\"0\"}]}",
		  "\"cpu\" is not a" },
		{ "{\"format\":1,\"traces\":[{\"file\":\"a.pt\",\"cpu\":0},"
		  "{\"file\":\"b.pt\",\"cpu\":0}]}",
		  "two traces are of CPU 0" },
		{ "{\"format\":1,\"traces\":[{\"file\":\"gone.pt\"}]}", "none of its traces" },
		{ "{\"format\":1," TRACES ",\"side_record\":\"../vms.jsonl\"}",
		  "the side record '../vms.jsonl' is not" },
		{ "{\"format\":1," TRACES ",\"side_record\":3}", "the side record '' is not" },
	};
	const struct run *r;
	size_t i;

	ck_assert_int_eq(symlink("a.pt", "rec/link.pt") | mkdir("rec/sub", 0700), 0);
	for (i = 0; i < VMPT_ARRAY_SIZE(cases); i++) {
		put_text("rec/recording.json", cases[i].head);
		r = vmpt("vms rec");
		ck_assert_msg(r->code == 1, "%s: %d: %s", cases[i].head, r->code, r->err);
		ck_has(r->err, "error: rec/");
		ck_has(r->err, cases[i].why);
		/* The trace itself can be read. */
		r = vmpt("vms rec/a.pt");
		ck_assert_msg(!r->code, "%s: %s", cases[i].head, r->err);
	}
}
END_TEST

START_TEST(b11_not_a_file)
{
	const struct run *r;

	ck_assert_int_eq(symlink("/dev/zero", "rec/recording.json"), 0);
	ck_has(vmpt("vms rec")->err, "is a symbolic link, which vmpt does not follow");
	ck_assert_int_eq(unlink("rec/recording.json") | mkfifo("rec/recording.json", 0600), 0);
	ck_has(vmpt("vms rec")->err, "is not a regular file");
	ck_assert_int_eq(unlink("rec/recording.json"), 0);
	put_head(TRACES);
	ck_assert_int_eq(truncate("rec/recording.json", 400 << 20), 0);
	r = vmpt("vms rec");
	ck_has(r->err, "is longer than 1048576 bytes");
	ck_assert_int_eq(r->code, 1);
	ck_assert_int_lt(r->memory, 100 << 10);
	ck_has(vmpt("vms rec rec")->err, "is a folder: give it alone");
	ck_assert_int_eq(vmpt("vms rec rec/a.pt")->code, 2);
}
END_TEST

START_TEST(b11_a_missing_file)
{
	const struct run *r;

	put_head(TRACES SIDE KHZ_2);
	ck_assert_int_eq(unlink("rec/c.pt"), 0);
	r = vmpt("vms rec");
	ck_assert_int_eq(r->code, 3);
	ck_has(r->err, "warning: rec/c.pt: is missing, but recording.json lists it");
	ck_has(r->out, "web vcpu 1");
	ck_assert_int_eq(unlink("rec/vms.jsonl"), 0);
	r = vmpt("vms rec");
	ck_has(r->err, "rec/vms.jsonl: is missing or not a regular file");
	ck_has(r->err, "VMs have no names");
	ck_lacks(r->out, "web");
}
END_TEST

/* ---- clocks ---- */

static struct cli_recording *read_head(const char *text, json_t **warnings)
{
	struct cli_folder folder = { .head = (char *)"rec/recording.json" };
	struct cli cli = { .quiet = true, .warnings = json_array(), .folder = &folder };
	struct cli_recording *rec = NULL;

	folder.doc = json_loads(text, 0, NULL);
	ck_assert_ptr_nonnull(folder.doc);
	ck_assert_int_eq(cli_recording_head(&cli, &rec), 0);
	json_decref(folder.doc);
	*warnings = cli.warnings;
	return rec;
}

START_TEST(b6_the_clocks_of_a_recording)
{
	json_t *warnings;
	struct cli_recording *rec = read_head(
		"{\"host\":{\"family\":6,\"model\":140,\"stepping\":1,\"cpus\":8},"
		"\"rates\":{\"tsc_art_numerator\":84,\"tsc_art_denominator\":2,"
		"\"max_nonturbo_ratio\":24,\"mtc_freq\":5,\"tsc_source\":\"processor\"},"
		"\"clocks\":[{\"tsc\":\"0x10\",\"monotonic_raw_ns\":100,\"realtime_ns\":\"0x18e0a1f3c5b7d900\"},"
		"{\"tsc\":\"0x1dcd6510\",\"monotonic_raw_ns\":1000000100,\"cpu_spread_ns\":77}]}",
		&warnings);

	ck_assert_uint_eq(json_array_size(warnings), 0);
	ck_assert_uint_eq(rec->family, 6);
	ck_assert_uint_eq(rec->cpus, 8);
	ck_assert_uint_eq(rec->tsc_num, 84);
	ck_assert_uint_eq(rec->tsc_den, 2);
	ck_assert_uint_eq(rec->nominal, 24);
	ck_assert(rec->has_mtc_freq && rec->mtc_freq == 5);
	ck_assert_uint_eq(rec->pairs, 2);
	ck_assert_uint_eq(rec->pair[0].tsc, 16);
	ck_assert_uint_eq(rec->pair[0].mono_raw_ns, 100);
	ck_assert_uint_eq(rec->pair[0].real_ns, 0x18e0a1f3c5b7d900ULL);
	ck_assert_uint_eq(rec->pair[1].real_ns, 0);
	ck_assert_uint_eq(rec->spread_ns, 77);
	/* 500,000,000 ticks in a second. */
	ck_assert_uint_eq(rec->tsc_khz, 500000);
	cli_recording_free(rec);
	json_decref(warnings);
}
END_TEST

START_TEST(b6_bad_clocks)
{
	static const char *const cases[][2] = {
		{ "{\"clocks\":{}}", "\"clocks\" is no list" },
		{ "{\"clocks\":[1]}", "\"tsc\" is not a number" },
		{ "{\"clocks\":[{\"tsc\":1}]}", "\"monotonic_raw_ns\" is not a number" },
		{ "{\"clocks\":[{\"tsc\":-1,\"monotonic_raw_ns\":1}]}", "\"tsc\" is not" },
		{ "{\"clocks\":[{\"tsc\":1,\"monotonic_raw_ns\":\"0xffffffffffffffff\"}]}",
		  "\"monotonic_raw_ns\" is larger" },
		{ "{\"clocks\":[{\"tsc\":1,\"monotonic_raw_ns\":1,\"realtime_ns\":\"x\"}]}",
		  "\"realtime_ns\" is not" },
		{ "{\"clocks\":[{\"tsc\":5,\"monotonic_raw_ns\":1},{\"tsc\":5,\"monotonic_raw_ns\":2}]}",
		  "the clocks of pair 2 are not after those before it" },
		{ "{\"clocks\":[{\"tsc\":5,\"monotonic_raw_ns\":2},{\"tsc\":6,\"monotonic_raw_ns\":1}]}",
		  "the clocks of pair 2" },
		{ "{\"host\":{\"family\":\"six\"}}", "\"family\" is not a number" },
		{ "{\"rates\":{\"mtc_freq\":16}}", "\"mtc_freq\" is larger than 15" },
		{ "{\"rates\":{\"tsc_khz\":1000000000}}", "\"tsc_khz\" is larger" },
	};
	struct cli_recording *rec;
	json_t *warnings;
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(cases); i++) {
		rec = read_head(cases[i][0], &warnings);
		ck_assert_uint_eq(rec->pairs, 0);
		ck_assert_uint_eq(json_array_size(warnings), 1);
		ck_has(json_string_value(json_array_get(warnings, 0)), cases[i][1]);
		ck_lacks(json_string_value(json_array_get(warnings, 0)), "line 0");
		cli_recording_free(rec);
		json_decref(warnings);
	}
}
END_TEST

/* The host's clock was set while it recorded; the recording is of another run. */
START_TEST(b6_contradictions)
{
	const struct run *r;

	put_clocks(TL_START - 2000, 5, 0, 2000000);
	r = vmpt("timeline --summary rec");
	ck_assert_int_eq(r->code, 0);
	ck_assert_str_eq(r->err, "");
	put_clocks(TL_START - 2000, 5, -3500000000LL, 2000000);
	/* The second reading was the last one before. */
	ck_assert_int_eq(setenv("TZ", "UTC-1", 1), 0);
	r = vmpt("timeline --summary rec");
	ck_assert_int_eq(unsetenv("TZ"), 0);
	ck_assert_int_eq(r->code, 0);
	ck_has(r->err, "the host's clock was set during the recording, by -3.500 s after "
		       "2026-09-21T15:13:21: ");
	put_clocks(TL_START + 1000000000, 5, 0, 2000000);
	ck_has(vmpt("timeline --summary rec")->err,
	       "its clocks are of another time than the trace, which begins at TSC 0x12345");
	put_clocks(TL_START - 2000000000000, 5, 0, 2000000);
	ck_has(vmpt("timeline --summary rec")->err, "its clocks are of another time");
	put_clocks(TL_START - 2000, 5, 0, 1000000);
	r = vmpt("timeline --summary rec");
	ck_has(r->err, "\"tsc_khz\" is 1000000, but its clocks show 2000000, which is used");
	put_head(TRACES SIDE ",\"rates\":{\"tsc_khz\":2000000,\"tsc_art_numerator\":3,"
			     "\"tsc_art_denominator\":1,\"mtc_freq\":9}");
	r = vmpt("timeline --summary rec");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->err,
	       "the recording's TSC ratio 3/1: the given value contradicts the trace: 100/1");
}
END_TEST

/* The plugin's TSC may be ahead of the clock, which makes lengths differ, but not slower. */
START_TEST(b6_the_speed_of_the_plugins_clock)
{
	static const char *const command[] = { "timeline --summary", "exits", "wait" };
	static const char warning[] =
		"the trace's clock ran 2.0 times as fast as the host's: lengths are";
	const struct run *r;
	size_t i;

	/* The clocks show 2 GHz. */
	put_clocks_of(TL_START - 2000, 5, 0, 1000000, "CLOCK_MONOTONIC");
	for (i = 0; i < 3; i++) {
		r = vmpt("%s rec", command[i]);
		ck_assert_int_eq(r->code, 0);
		ck_has(r->err, warning);
		ck_lacks(strstr(r->err, warning) + strlen(warning), "times as fast");
		ck_lacks(r->err, "tsc_khz");
	}
	put_clocks_of(TL_START - 2000, 5, 0, 4000000, "CLOCK_MONOTONIC");
	r = vmpt("wait rec");
	ck_has(r->err, "\"tsc_khz\" is 4000000, but its clocks show 2000000, which is used");
	ck_lacks(r->err, "times as fast");
	put_clocks_of(TL_START - 2000, 5, 0, 2000000, "CLOCK_MONOTONIC");
	ck_assert_str_eq(vmpt("wait rec")->err, "");
}
END_TEST

/* The 18 characters before @end in @out: "20:53:21.250000000". */
static const char *clock_before(const char *end, char text[19])
{
	while (end[-1] == ' ')
		end--;
	snprintf(text, 19, "%s", end - 18);
	return text;
}

/* Of TSC @tsc, by the clocks of put_clocks() without a step: 2 GHz. */
static void utc_of(u64 tsc, char text[32])
{
	u64 ns = 1790000000000000000ULL + (tsc - (TL_START - 2000)) / 2;
	time_t s = (time_t)(ns / 1000000000);
	struct tm tm;

	gmtime_r(&s, &tm);
	strftime(text, 32, "%H:%M:%S", &tm);
	snprintf(text + 8, 24, ".%09llu", (unsigned long long)(ns % 1000000000));
}

/* Printed wall clock times are the recording's, and --from and --to take them. */
START_TEST(b5_wall_clock_there_and_back)
{
	char line[19], at[19], want[32], *out;
	const struct run *r;
	json_t *doc, *o;
	const char *row;
	u64 tsc, ns;

	ck_assert_int_eq(setenv("TZ", "UTC", 1), 0);
	put_clocks(TL_START - 2000, 5, 0, 2000000);
	/* The 40th line of the time line, pasted: the first of what follows. */
	r = vmpt("timeline --time=wall -q -n 40 rec");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "TIME (UTC)");
	row = strrchr(r->out, '\n');
	while (row[-1] != '\n')
		row--;
	while (*row == ' ')
		row++;
	snprintf(line, sizeof(line), "%s", row);
	out = strdup(row);
	out[strcspn(out, "\n")] = '\0';
	r = vmpt("timeline --time=wall -q --from=%s rec", line);
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, out);
	free(out);
	ck_lacks(vmpt("timeline --time=wall -q --to=%s rec", line)->out, line);

	/* The longest exit: its TSC and its time are one. */
	doc = run_json(vmpt("exits --json -q --time=wall --sort=max rec"));
	o = json_at(doc, "exits/0/longest");
	ck_assert_str_eq(json_text(doc, "clock"), "wall");
	tsc = strtoull(json_text(o, "tsc"), NULL, 16);
	ns = strtoull(json_text(o, "at_ns"), NULL, 10);
	ck_assert_uint_le(ns - (1790000000000000000ULL + (tsc - (TL_START - 2000)) / 2), 1);
	utc_of(tsc, want);
	r = vmpt("exits -q --time=wall --sort=max rec");
	row = strchr(strstr(r->out, "LONGEST"), '\n') + 1;
	row = strstr(row, ":");
	ck_assert_ptr_nonnull(row);
	clock_before(row + 16, at);
	ck_assert_msg(!strncmp(at, want, 17), "%s is not %s", at, want);
	/* From there on: the first span is the host's that follows the exit. */
	r = vmpt("timeline --csv --time=wall -q -n 6 --from=%s rec", at);
	ck_assert_int_eq(r->code, 0);
	snprintf(want, sizeof(want), ",%llu,", (unsigned long long)json_u64(o, "offset"));
	ck_has(r->out, want);
	r = vmpt("wait -q --time=wall rec");
	ck_has(r->out, "TIME (UTC)");
	json_decref(doc);
	ck_assert_int_eq(unsetenv("TZ"), 0);
}
END_TEST

/* ---- code ---- */

/* An exit by CPUID, which is not before the trace's last. */
static u64 cpuid_exit(void)
{
	static const struct tl_options o = { .cpus = 1, .guests = 1, .runs = 300, .seed = 8 };
	size_t i;

	tl_free(m);
	write_machine(&o);
	ck_assert_int_eq(system("rm rec/* && mv a.cpu0.pt rec/cpu0.pt && mv vms.jsonl rec"), 0);
	for (i = 0; i + 1 < runs && run[i].reason != 10; i++)
		;
	ck_assert_uint_lt(i + 1, runs);
	return run[i].ip;
}

START_TEST(b11_code_by_one_option)
{
	unsigned long long ip = cpuid_exit();
	char want[64], list[64], name[64];
	const struct run *r;

	snprintf(want, sizeof(want), "  CPUID? %llx\n", ip);
	write_file("cpuid", "\x0f\xa2\xc3", 3);
	snprintf(list, sizeof(list), "%016llx T do_cpuid\n", ip);
	put_text("System.map", list);
	ck_lacks(vmpt("timeline " RATES " rec")->out, want);
	ck_has(vmpt("timeline " RATES " --code=cpuid@0x%llx rec", ip)->out, want);
	ck_has(vmpt("timeline " RATES " --code=web:cpuid@0x%llx rec", ip)->out, want);
	r = vmpt("timeline " RATES " --code=nobody:cpuid@0x%llx rec", ip);
	ck_lacks(r->out, want);
	ck_has(r->err, "--code: no VM 'nobody' in the trace: cpuid is not used");
	/* Names, by the older option too, and a list that was moved. */
	ck_has(vmpt("exits --top=300 " RATES " --code=System.map rec")->out, "do_cpuid\n");
	ck_has(vmpt("exits --top=300 " RATES " --symbols=web:System.map rec")->out, "do_cpuid\n");
	ck_lacks(vmpt("exits --top=300 " RATES " --code=System.map@0x100 rec")->out, "do_cpuid\n");
	/* A file of such a name. */
	snprintf(name, sizeof(name), "web:cpuid@0x%llx", ip);
	put_text(name, list);
	ck_has(vmpt("exits --top=300 " RATES " --code=%s rec", name)->out, "do_cpuid\n");
}
END_TEST

START_TEST(b11_code_of_a_recording)
{
	unsigned long long ip = cpuid_exit();
	char want[64], list[64], name[96];
	const struct run *r;

	snprintf(want, sizeof(want), "  CPUID? %llx\n", ip);
	ck_assert_int_eq(mkdir("rec/images", 0700) | mkdir("rec/symbols", 0700) |
				 mkdir("rec/symbols/host", 0700),
			 0);
	snprintf(name, sizeof(name), "rec/images/web:cpuid@0x%llx", ip);
	write_file(name, "\x0f\xa2\xc3", 3);
	snprintf(list, sizeof(list), "%016llx T do_cpuid\n", ip);
	put_text("rec/symbols/System.map", list);
	snprintf(list, sizeof(list), "%016llx T of_the_host\n", ip);
	put_text("rec/symbols/host/kallsyms", list);
	r = vmpt("timeline " RATES " rec");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, want);
	r = vmpt("exits --top=300 " RATES " rec/cpu0.pt");
	ck_has(r->out, "do_cpuid\n");
	ck_lacks(r->out, "of_the_host");
	/* What the command line has goes first. */
	write_file("nop", "\x90\x90\x90", 3);
	ck_lacks(vmpt("timeline " RATES " --code=nop@0x%llx rec", ip)->out, want);
	/* Of another VM. */
	snprintf(list, sizeof(list), "rec/images/db:cpuid@0x%llx", ip);
	ck_assert_int_eq(rename(name, list), 0);
	ck_lacks(vmpt("timeline " RATES " rec")->out, want);
	/* What cannot be used is warned of. */
	put_text("rec/images/README", "to be read\n");
	ck_assert_int_eq(symlink("/etc/passwd", "rec/images/link"), 0);
	r = vmpt("timeline " RATES " rec");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->err, "rec/images/README: neither an ELF file nor a list of symbols");
	ck_has(r->err, "rec/images/link: is not a regular file, and not used");
}
END_TEST

START_TEST(b11_bad_code)
{
	static const struct {
		const char *option;
		int code;
		const char *why;
	} cases[] = {
		{ "--code=", 2, "no file given" },
		{ "--code=none", 1, "cannot open none" },
		{ "--code=raw", 1, "neither an ELF file nor a list of symbols; raw bytes need" },
		{ "--code=raw@x", 2, "'x' is not a number" },
		{ "--code=raw@0x1ffffffffffffffff", 2, "--code" },
		{ "--code=web:none@1", 1, "cannot open none" },
		{ "--code=empty@1", 1, "has no code" },
		{ "--code=/", 1, "Is a directory" },
		{ "--code=elf", 1, "not a readable ELF file" },
		{ "--kernel=raw", 1, "not a readable ELF file" },
		{ "--kernel=raw --kernel=raw", 2, "a guest has only one" },
		{ "--symbols=raw", 1, "line 1: not like" },
	};
	size_t i;

	put_head(TRACES SIDE KHZ_2);
	put_text("raw", "\x0f\xa2 some bytes");
	put_text("empty", "");
	put_text("elf", "\177ELFand no more");
	for (i = 0; i < VMPT_ARRAY_SIZE(cases); i++) {
		const struct run *r = vmpt("exits %s rec", cases[i].option);

		ck_assert_msg(r->code == cases[i].code, "%s: %d: %s", cases[i].option, r->code,
			      r->err);
		ck_has(r->err, cases[i].why);
	}
	ck_has(vmpt("split -o out --code=raw@1 rec")->err, "are for --perf");
	ck_has(vmpt("split -o out --perf --code=raw@1 rec")->err, "perf reads no raw bytes");
	ck_assert_int_eq(access("out", F_OK), -1);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("recording-folder");
	TCase *tc = tcase_create("recording");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, b11_a_folder_needs_no_option);
	tcase_add_test(tc, b11_a_file_of_a_recording);
	tcase_add_test(tc, b11_says_what_to_give);
	tcase_add_test(tc, b11_older_folders);
	tcase_add_test(tc, b11_hostile_recordings);
	tcase_add_test(tc, b11_not_a_file);
	tcase_add_test(tc, b11_a_missing_file);
	tcase_add_test(tc, b6_the_clocks_of_a_recording);
	tcase_add_test(tc, b6_bad_clocks);
	tcase_add_test(tc, b6_contradictions);
	tcase_add_test(tc, b6_the_speed_of_the_plugins_clock);
	tcase_add_test(tc, b5_wall_clock_there_and_back);
	tcase_add_test(tc, b11_code_by_one_option);
	tcase_add_test(tc, b11_code_of_a_recording);
	tcase_add_test(tc, b11_bad_code);
	suite_add_tcase(s, tc);
	return s;
}
