// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* cli/sideinfo/recording.c: which lines of a record.jsonl are of one vCPU, and what reading costs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/sideinfo/recording.h"
#include "tests/cli/cli-run.h"
#include "tests/support/support.h"

#define LINES 3000
#define MANY  65536

static struct cli cli = { .quiet = true };
static struct cli_recording *rec;

static void teardown(void)
{
	cli_recording_free(rec);
	rec = NULL;
	cli_clean();
}

/* A reading of a vCPU; tid -1: none. */
static void put(FILE *f, const char *vm, int number, int pid, int tid, int vcpu, u64 tsc)
{
	fprintf(f,
		"{\"kind\":\"vcpu\",\"vm\":\"%s%d\",\"pid\":%d,\"vcpu\":%d,\"tsc_before\":%llu,"
		"\"tsc_after\":%llu",
		vm, number, pid, vcpu, (unsigned long long)tsc, (unsigned long long)tsc);
	if (tid >= 0)
		fprintf(f, ",\"tid\":%d", tid);
	fputs("}\n", f);
}

/* What the lines mean, by the plainest search: the last vCPU that fits. */
static struct {
	int vm, pid, tid, vcpu;
	u64 from, to;
} want[LINES];
static size_t wanted, want_look[LINES];

static void expect(size_t line, int vm, int pid, int tid, int vcpu, u64 tsc)
{
	size_t i;

	for (i = wanted; i-- > 0;)
		if (want[i].vm == vm && want[i].pid == pid && want[i].vcpu == vcpu &&
		    (want[i].tid == tid || want[i].tid < 0))
			break;
	if (i == SIZE_MAX) {
		i = wanted++;
		want[i].vm = vm;
		want[i].pid = pid;
		want[i].vcpu = vcpu;
		want[i].from = tsc;
	}
	want[i].tid = tid;
	want[i].to = tsc;
	want_look[line] = i;
}

START_TEST(g8_a_vcpu_is_the_last_that_fits)
{
	struct test_rng rng = { 2026 };
	FILE *f = fopen("record.jsonl", "w");
	char name[8];
	size_t i;

	ck_assert_ptr_nonnull(f);
	wanted = 0;
	for (i = 0; i < LINES; i++) {
		u64 r = test_random(&rng);
		int vm = r & 1, pid = 7 + (r >> 1 & 1), vcpu = r >> 2 & 1;
		/* Rare ones late, so that a thread becomes known after others of its vCPU */
		int tid = (int)(r >> 8 & 0xff) % 40 + (int)(i / 1000) * 3;

		if (!(r >> 40 & 7))
			tid = -1;
		put(f, "vm", vm, pid, tid, vcpu, 1 + i);
		expect(i, vm, pid, tid, vcpu, 1 + i);
	}
	fclose(f);
	ck_assert_int_eq(cli_recording_read(&cli, "record.jsonl", &rec), 0);
	ck_assert_uint_eq(rec->vcpus, wanted);
	ck_assert_uint_gt(wanted, 100);
	for (i = 0; i < wanted; i++) {
		snprintf(name, sizeof(name), "vm%d", want[i].vm);
		ck_assert_str_eq(rec->vcpu[i].vm, name);
		ck_assert_int_eq(rec->vcpu[i].pid, want[i].pid);
		ck_assert_int_eq(rec->vcpu[i].vcpu, want[i].vcpu);
		ck_assert_int_eq(rec->vcpu[i].tid, want[i].tid);
		ck_assert_uint_eq(rec->vcpu[i].from, want[i].from);
		ck_assert_uint_eq(rec->vcpu[i].to, want[i].to);
	}
	ck_assert_uint_eq(rec->looks, LINES);
	for (i = 0; i < LINES; i++)
		ck_assert_uint_eq(rec->look[i].vcpu, want_look[i]);
}
END_TEST

/* All in one process, as by a VMM that runs many VMs: 8 s when each line was searched. */
START_TEST(g8_many_vcpus_are_read_in_a_second)
{
	u64 limit = 1000, took;
	FILE *f = fopen("record.jsonl", "w");
	clock_t start;
	int i;

	ck_assert_ptr_nonnull(f);
	for (i = 0; i < MANY; i++)
		put(f, "a-virtual-machine-of-a-large-cluster-", i, 1000, 10 + i, 0, 1);
	put(f, "a-virtual-machine-of-a-large-cluster-", 77, 1000, 10 + 77, 0, 2);
	fclose(f);
	start = clock();
	ck_assert_int_eq(cli_recording_read(&cli, "record.jsonl", &rec), 0);
	took = (u64)(clock() - start) * 1000 / CLOCKS_PER_SEC;
	ck_assert_uint_eq(rec->vcpus, MANY);
	ck_assert_uint_eq(rec->vcpu[77].to, 2);
	ck_assert_msg(took < limit, "%llu ms of CPU time", (unsigned long long)took);
}
END_TEST

/* Offsets of one VMCS, the latest first: each was moved past all before it, 4 s. */
START_TEST(g8_many_offsets_are_used_in_a_second)
{
	long limit = 1000;
	FILE *f = fopen("vmm.jsonl", "w");
	const struct run *r;
	int i;

	ck_assert_ptr_nonnull(f);
	for (i = 0; i < MANY; i++)
		fprintf(f,
			"{\"vm\":\"web\",\"vcpu\":0,\"vmcs\":\"0xa000\",\"tsc_offset\":%d,"
			"\"since\":%d}\n",
			i * 64, 10000000 - i);
	fclose(f);
	write_mixed("in.pt");
	r = vmpt("clocks --side-record=vmm.jsonl in.pt");
	ck_assert_int_eq(r->code, 0);
	ck_assert_msg(r->cpu_ms < limit, "%ld ms of CPU time", r->cpu_ms);
}
END_TEST

static void put_bytes(FILE *f, const void *bytes, size_t n)
{
	ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
}

/* VMs of one run each, all with names: 6 s when each new one was compared with all before. */
START_TEST(g8_many_vms_are_lines_in_a_second)
{
	static const char *const line[] = { "timeline --summary", "exits" };
	long limit = 1500;
	FILE *trace = fopen("in.pt", "w"), *record = fopen("vmm.jsonl", "w");
	u8 vmcs[] = { 0x02, 0xc8, 0, 0, 0, 0, 0 };
	u32 i;

	ck_assert(trace && record);
	/* PSB, TSC 1000, PIP NR=0, VMCS a000, PSBEND */
	for (i = 0; i < 8; i++)
		put_bytes(trace, "\x02\x82", 2);
	put_bytes(trace, "\x19\xe8\x03\0\0\0\0\0\x02\x43\0\x01\0\0\0\0", 16);
	put_bytes(trace, "\x02\xc8\x0a\0\0\0\0\x02\x23", 9);
	for (i = 0; i < 40000; i++) {
		u32 page = 0x100 + i, tsc = 2000 + 1000 * i;

		/* VMCS, PIP NR=1, TIP 401000; TNT-8, TSC; PIP NR=0, TIP ffffffff81000000 */
		memcpy(vmcs + 2, &page, 4);
		put_bytes(trace, vmcs, sizeof(vmcs));
		put_bytes(trace, "\x02\x43\x01\x02\0\0\0\0\x6d\x00\x10\x40\0\0\0\x06\x19", 17);
		put_bytes(trace, &tsc, 4);
		put_bytes(trace, "\0\0\0\x02\x43\0\x01\0\0\0\0\x6d\0\0\0\x81\xff\xff", 18);
		fprintf(record,
			"{\"vm\":\"a-virtual-machine-of-a-large-cluster-%u\",\"vcpu\":0,"
			"\"vmcs\":\"0x%x000\"}\n",
			i, page);
	}
	fclose(trace);
	fclose(record);
	for (i = 0; i < VMPT_ARRAY_SIZE(line); i++) {
		const struct run *r = vmpt("%s --side-record=vmm.jsonl in.pt", line[i]);

		ck_assert_int_eq(r->code, 0);
		ck_assert_ptr_nonnull(strstr(r->out, "others"));
		ck_assert_msg(r->cpu_ms < limit, "%s: %ld ms of CPU time", line[i], r->cpu_ms);
	}
}
END_TEST

#define VMM_LINE "{\"vm\":\"web\",\"vcpu\":0,\"vmcs\":\"0xa000\",\"x\":%s%.*s%s}\n"

/* Size and nesting of what is given to jansson; the other lines are used. */
START_TEST(g10_json_lines_have_limits)
{
	static const struct {
		const char *open, *close;
		int size;
		const char *why;
	} line[] = {
		{ "[[[[[[[", "]]]]]]]", 0, NULL },
		{ "[[[[[[[[", "]]]]]]]]", 0, "line 1: not JSON: nested more than 8 deep; skipped" },
		{ "\"[[[[[[[[[\\\"[[[", "\"", 0, NULL },
		{ "\"", "\"", 65000, NULL },
		{ "\"", "\"", 65536, "line 1: longer than 65536 bytes; skipped" },
	};
	static char text[65536];
	size_t i;

	memset(text, 'x', sizeof(text));
	write_mixed("in.pt");
	for (i = 0; i < VMPT_ARRAY_SIZE(line); i++) {
		FILE *f = fopen("vmm.jsonl", "w");
		const struct run *r;

		ck_assert_ptr_nonnull(f);
		fprintf(f, VMM_LINE, line[i].open, line[i].size, text, line[i].close);
		fprintf(f, VMM_LINE, "1", 0, "", "");
		fclose(f);
		r = vmpt("vms --side-record=vmm.jsonl in.pt");
		ck_assert_int_eq(r->code, 0);
		ck_assert_msg(line[i].why ? strstr(r->err, line[i].why) != NULL : !*r->err,
			      "%zu: %s", i, r->err);
		ck_assert_ptr_nonnull(strstr(r->out, "web vcpu 0"));
	}
}
END_TEST

/* 400 MB in the file's hole: each reader of lines has memory for one that is short. */
START_TEST(g10_a_line_without_an_end)
{
	static const char *const reader[] = {
		"clocks --side-record=hole in.pt",
		"stat --format=rtit --side-record=hole in.pt",
		"exits --symbols=hole in.pt",
		"timeline --summary rec",
	};
	size_t i;

	write_mixed("in.pt");
	write_file("hole", "{", 1);
	ck_assert_int_eq(truncate("hole", 400 << 20), 0);
	ck_assert_int_eq(mkdir("rec", 0700), 0);
	ck_assert_int_eq(symlink("../in.pt", "rec/perf.data"), 0);
	ck_assert_int_eq(symlink("../hole", "rec/record.jsonl"), 0);
	for (i = 0; i < VMPT_ARRAY_SIZE(reader); i++) {
		const struct run *r = vmpt("%s", reader[i]);

		ck_assert_int_eq(r->code, 1);
		ck_assert_msg(r->memory < 100 << 10, "%s: %ld KiB", reader[i], r->memory);
	}
	ck_assert_int_eq(unlink("rec/perf.data") | unlink("rec/record.jsonl") | rmdir("rec"), 0);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("cli/recording");
	TCase *t = tcase_create("recording");

	tcase_add_checked_fixture(t, cli_setup, teardown);
	/* What inputs cost, which the sanitizers change. */
	if (!getenv("VMPT_SANITIZED")) {
		tcase_add_test(t, g10_a_line_without_an_end);
		tcase_add_test(t, g8_many_vcpus_are_read_in_a_second);
		tcase_add_test(t, g8_many_offsets_are_used_in_a_second);
		tcase_add_test(t, g8_many_vms_are_lines_in_a_second);
	}
	tcase_add_test(t, g8_a_vcpu_is_the_last_that_fits);
	tcase_add_test(t, g10_json_lines_have_limits);
	suite_add_tcase(s, t);
	return s;
}
