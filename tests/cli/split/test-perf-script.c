// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt split --perf: perf script decodes each VM's stream to the instructions that the trace
 * generator says were executed, each one and in order. Code is linked to ELF files by gcc.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli/perf-demo.h"
#include "tests/decoder/perf-writer.h"

#define DECODE "perf script -f --itrace=i1ie -F ip "

/* The instructions that perf script decodes; each line is an IP or an error. */
static struct count decode(const char *file, const char *kernel)
{
	struct count count = count_none;
	char line[512];
	FILE *f;

	snprintf(line, sizeof(line), DECODE "%s %s -i %s", *kernel ? "-k" : "", kernel, file);
	f = popen(line, "r");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f)) {
		char *end;
		u64 ip = strtoull(line, &end, 16);

		ck_assert_msg(end != line && (*end == '\n' || *end == ' '), "%s: %s", file, line);
		count_one(&count, ip);
	}
	ck_assert_msg(pclose(f) == 0, "%s: perf script failed", file);
	return count;
}

static void ck_decodes(const char *file, const char *kernel, const char *owner, int cpu)
{
	struct count want = truth_of(owner, cpu), got = decode(file, kernel);

	ck_same_count(file, &got, &want);
}

/* One line of output of a shell command. */
static const char *line_of(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static const char *line_of(const char *fmt, ...)
{
	static char line[1024];
	va_list args;
	FILE *f;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	f = popen(line, "r");
	ck_assert_ptr_nonnull(f);
	if (!fgets(line, sizeof(line), f))
		line[0] = '\0';
	pclose(f);
	return line;
}

START_TEST(each_instruction_is_there)
{
	make_traces(10, "");
	make_code();
	ck_assert_int_eq(
		vmpt("split --perf --kernel=db --image=web -o out d.cpu0.pt d.cpu1.pt")->code, 0);
	ck_decodes("out/" WEB ".cpu0.perf.data", "db", "web", 0);
	ck_decodes("out/" DB ".cpu0.perf.data", "db", "db", 0);
	ck_decodes("out/" DB ".cpu1.perf.data", "db", "db", 1);
	/* Name, process, CPU, time (the first TSC, in ns), symbol and file. */
	ck_has(line_of("perf script -f -k db --itrace=i1i -F comm,tid,cpu,time,sym,dso -i out/" DB
		       ".cpu1.perf.data | head -n 1 | tr -s ' '"),
	       DB " 1 [001] ");
	ck_has(line_of("perf script -f -k db --itrace=i1i -F ip,sym,dso -i out/" DB
		       ".cpu1.perf.data | head -n 1"),
	       "ffffffffa0000000 code ");
	/* From a time on, which perf looks for by PSBs. */
	perf_run("perf script -f -k db --itrace=i1i -F time,ip -i out/" DB
		 ".cpu1.perf.data | sed -n "
		 "'s/^ *//; 100000,$p' >all");
	perf_run("perf script -f -k db --itrace=i1ie -F time,ip -i out/" DB ".cpu1.perf.data "
		 "--time \"$(head -n 1 all | cut -d: -f1),\" | sed 's/^ *//' >some");
	perf_run("[ $(tail -n 40000 all | wc -l) = 40000 ]");
	perf_run("tail -n 40000 all >all.end && tail -n 40000 some | cmp - all.end");
	perf_run("[ $(wc -l <some) -lt $(($(wc -l <all) + 60000)) ]");
	/* The code named is no code of the host. */
	ck_assert_str_eq(line_of("perf script -D -i out/host.cpu0.perf.data | grep -c RECORD_MMAP"),
			 "0\n");
}
END_TEST

/* There are no times: perf's config says so. */
START_TEST(without_timing_packets)
{
	make_traces(10, "s/tsc=1 mtc=1/tsc=0 mtc=0/");
	make_code();
	ck_assert_int_eq(vmpt("split --perf --image=web -o out d.cpu0.pt")->code, 0);
	ck_decodes("out/" WEB ".cpu0.perf.data", "", "web", 0);
}
END_TEST

/* Linked for one address, executed at another. */
START_TEST(moved_code)
{
	make_traces(10, "");
	make_elf("db", "db-ffffffffa0000000", "0xffffffff81000000", "-static -no-pie");
	make_elf("web", "web-401000", "0x31000", "-shared -Wl,-Ttext-segment=0x30000");
	ck_assert_int_eq(vmpt("split --perf --kernel=db@" DB_IP " --image=web@0x400000 -o out "
			      "d.cpu0.pt d.cpu1.pt")
				 ->code,
			 0);
	ck_decodes("out/" WEB ".cpu0.perf.data", "db", "web", 0);
	ck_decodes("out/" DB ".cpu1.perf.data", "db", "db", 1);
}
END_TEST

/* How often @a and @b take turns if the instructions that perf decodes are sorted by time. */
static int turns(const char *a, const char *b)
{
	perf_run("perf script -f -k db --itrace=i1ie --ns -F time,ip -i out/%s.perf.data | "
		 "sed 's/$/ a/' >all",
		 a);
	perf_run("perf script -f -k db --itrace=i1ie --ns -F time,ip -i out/%s.perf.data | "
		 "sed 's/$/ b/' >>all",
		 b);
	return atoi(line_of("LC_ALL=C sort -s -n -k1,1 all | "
			    "awk '{ n += $NF != last; last = $NF } END { print n }'"));
}

/*
 * On CPU 0 web and db run by turns, 20 times in all. perf's times order their streams on the
 * host's clock, but for runs that are less than an MTC apart; each on its own they are far apart.
 */
START_TEST(in_order_on_the_hosts_clock)
{
	int n;

	make_traces(10, "");
	make_code();
	ck_assert_int_eq(vmpt("split --perf --clock=host --tsc-ratio=84 --mtc-freq=3 --kernel=db "
			      "--image=web -o out d.cpu0.pt d.cpu1.pt")
				 ->code,
			 0);
	ck_decodes("out/" WEB ".cpu0.perf.data", "db", "web", 0);
	ck_decodes("out/" DB ".cpu0.perf.data", "db", "db", 0);
	ck_decodes("out/" DB ".cpu1.perf.data", "db", "db", 1);
	n = turns(WEB ".cpu0", DB ".cpu0");
	ck_assert_msg(n >= 20 && n <= 24, "%d turns", n);
	ck_assert_int_eq(
		vmpt("split -f --perf --kernel=db --image=web -o out d.cpu0.pt d.cpu1.pt")->code,
		0);
	ck_assert_int_lt(turns(WEB ".cpu0", DB ".cpu0"), 5);
}
END_TEST

/* The clock and settings of a perf.data are kept; a thread's stream remains one. */
START_TEST(of_a_perf_data)
{
	static const char *const kept[] = {
		"Time Shift          31",	   "Time Mult\\?iplier     *672770566",
		"Time Zero           78187493520", "MTC freq bits       0x3c000",
		"TSC:CTC numerator   266",	   "TSC:CTC denominator 2",
		"Max non-turbo ratio 32"
	};
	struct perf_writer w;
	size_t i, n;
	u8 *bytes;

	make_traces(10, "");
	make_code();
	bytes = test_read_file("d.cpu0.pt", &n);
	writer_start(&w, false);
	writer_info(&w, false, WRITER_PRIVS);
	writer_auxtrace(&w, -1, 77, 0, bytes, n);
	writer_finish(&w);
	write_file("in.data", w.buf, w.size);
	writer_free(&w);
	free(bytes);
	ck_assert_int_eq(vmpt("split --perf --image=web -o out in.data")->code, 0);
	perf_run("perf script -D -i out/" WEB ".tid77.perf.data >info");
	for (i = 0; i < VMPT_ARRAY_SIZE(kept); i++)
		perf_run("grep -q '^  %s$' info", kept[i]);
	ck_has(line_of("perf evlist -v -i out/" WEB ".tid77.perf.data"), "config: 0x300e601,");
	ck_has(line_of("perf script -f --itrace=i1i -F comm,tid -i out/" WEB
		       ".tid77.perf.data | head -n 1 | tr -s ' '"),
	       WEB " 77 ");
	ck_decodes("out/" WEB ".tid77.perf.data", "", "web", 0);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("cli perf-script");
	TCase *tc = tcase_create("perf-script");

	if (system("perf --version >/dev/null 2>&1")) {
		test_skip("perf is not there (package linux-perf)");
		return NULL;
	}
	tcase_add_checked_fixture(tc, cli_setup, cli_clean);
	tcase_add_test(tc, without_timing_packets);
	tcase_add_test(tc, of_a_perf_data);
	suite_add_tcase(suite, tc);
	/* perf and the reading of what it prints take nearly all of the time. */
	if (getenv("VMPT_SANITIZED"))
		return suite;
	tcase_add_test(tc, each_instruction_is_there);
	tcase_add_test(tc, moved_code);
	tcase_add_test(tc, in_order_on_the_hosts_clock);
	return suite;
}
