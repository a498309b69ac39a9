// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Where the time out of the guest went: what vmpt timeline --summary and vmpt exits say, beside
 * what the machine did (tests/decoder/timeline-machine.h). By the rule of docs/timeline.md: of the
 * CPU that a vCPU exited on, until its next entry; a halt is halted as a whole.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli/cli-run.h"
#include "tests/cli/timeline/files.h"

static const char *const part[] = { "host", "wait", "halted", "untraced" };

enum { HOST, WAIT, HALTED, UNTRACED };

static u64 distance(u64 a, u64 b)
{
	return a > b ? a - b : b - a;
}

/* The time in [@from, @to) at which others than @guest ran on @cpu. */
static u64 others_ran(unsigned int cpu, unsigned int guest, u64 from, u64 to)
{
	u64 sum = 0;
	size_t i;

	for (i = 0; i < runs; i++) {
		u64 start = run[i].entry > from ? run[i].entry : from;
		u64 end = run[i].exit < to ? run[i].exit : to;

		if (run[i].cpu == cpu && run[i].guest != guest && start < end)
			sum += end - start;
	}
	return sum;
}

/* The run of its guest after run number @i, or NULL. */
static const struct tl_run *next_run(size_t i)
{
	const struct tl_run *next = NULL;
	size_t k;

	for (k = 0; k < runs; k++)
		if (run[k].guest == run[i].guest && run[k].entry > run[i].entry &&
		    (!next || run[k].entry < next->entry))
			next = &run[k];
	return next;
}

#define ANY 0xffff

/* Of @guest's exits for @reason. */
static void add_truth(unsigned int guest, u16 reason, u64 sum[4])
{
	const struct tl_run *next;
	size_t i;

	for (i = 0; i < runs; i++) {
		u64 out, others;

		if (run[i].guest != guest || (reason != ANY && run[i].reason != reason))
			continue;
		next = next_run(i);
		if (!next)
			continue;
		out = next->entry - run[i].exit;
		others = others_ran(run[i].cpu, guest, run[i].exit, next->entry);
		if (run[i].reason == 12) {
			sum[HALTED] += out;
			continue;
		}
		sum[HOST] += out - others;
		sum[WAIT] += others;
	}
}

/* Each part within its bound, and that no wider than @most. */
static void check_parts(json_t *o, const u64 want[4], bool nested, u64 most)
{
	char key[64];
	size_t p;

	for (p = 0; p < 4; p++) {
		u64 got, error;

		snprintf(key, sizeof(key), nested ? "parts/%s/total_ticks" : "%s_ticks", part[p]);
		got = json_u64(o, key);
		snprintf(key, sizeof(key), nested ? "parts/%s/total_error_ticks" : "%s_error_ticks",
			 part[p]);
		error = json_u64(o, key);
		ck_assert_msg(distance(got, want[p]) <= error, "%s: %llu, not %llu +- %llu",
			      part[p], (unsigned long long)got, (unsigned long long)want[p],
			      (unsigned long long)error);
		ck_assert_msg(error <= most, "%s: +-%llu", part[p], (unsigned long long)error);
	}
}

static unsigned int guest_of(const char *vmcs)
{
	unsigned int g;

	for (g = 0; g < TL_GUESTS; g++)
		if (tl_vmcs(g) == strtoull(vmcs, NULL, 16))
			return g;
	ck_abort_msg("%s", vmcs);
}

static void check_summary(const char *args, u64 most, u64 all[4])
{
	json_t *doc = run_json(vmpt("timeline --json --summary -q " RATES " %s", args)), *o;
	size_t i, p;

	ck_assert_uint_gt(json_array_size(json_at(doc, "vms")), 0);
	json_array_foreach(json_at(doc, "vms"), i, o)
	{
		u64 want[4] = { 0 };

		add_truth(guest_of(json_text(o, "vcpus/0/vmcs")), ANY, want);
		check_parts(o, want, false, most);
		for (p = 0; p < 4; p++)
			all[p] += want[p];
	}
	json_decref(doc);
}

#define CODE_AT 0x800000 /* of the guests' exits: a MiB for each */

/* File "code": NOPs, and HLT where a run ended so. */
static void write_code(void)
{
	u8 *code = malloc(TL_GUESTS << 20);
	size_t i;

	ck_assert_ptr_nonnull(code);
	memset(code, 0x90, TL_GUESTS << 20);
	for (i = 0; i < runs; i++) {
		ck_assert_uint_lt(run[i].ip - CODE_AT, TL_GUESTS << 20);
		if (run[i].reason == 12)
			code[run[i].ip - CODE_AT] = 0xf4;
	}
	write_file("code", code, TL_GUESTS << 20);
	free(code);
}

/* Two CPUs, and vCPUs enough to have to wait for them. */
static const struct tl_options crowd = {
	.cpus = 2, .guests = 6, .runs = 900, .seed = 81, .evd = true, .halts = true
};

START_TEST(b2_parts_of_vms)
{
	u64 all[4] = { 0 };

	tl_free(m);
	write_machine(&crowd);
	/* An edge is known to one MTC: 800 ticks, here for some hundred edges. */
	check_summary("a.cpu0.pt a.cpu1.pt", 900 * 2 * 800, all);
	ck_assert_uint_gt(all[HOST], 0);
	ck_assert_uint_gt(all[WAIT], 0);
	ck_assert_uint_gt(all[HALTED], 0);
}
END_TEST

START_TEST(b2_parts_of_exits)
{
	json_t *doc, *o;
	size_t i, n = 0;

	tl_free(m);
	write_machine(&crowd);
	doc = run_json(vmpt("exits --json -q " RATES " a.cpu0.pt a.cpu1.pt"));
	json_array_foreach(json_at(doc, "exits"), i, o)
	{
		u64 want[4] = { 0 };

		if (!json_object_get(o, "parts"))
			continue;
		add_truth(guest_of(json_vm(o)), (u16)json_u64(o, "reason"), want);
		check_parts(o, want, true, 900 * 2 * 800);
		n++;
	}
	ck_assert_uint_gt(n, 12);
	json_decref(doc);
}
END_TEST

/* Without reasons, but with the code: only an exit at HLT may have been a halt. */
START_TEST(b1_code_that_does_not_halt)
{
	struct tl_options o = crowd;
	u64 all[4] = { 0 };
	const struct run *r;

	o.evd = false;
	tl_free(m);
	write_machine(&o);
	write_code();
	check_summary("--code=code@0x800000 a.cpu0.pt a.cpu1.pt", ~0ULL, all);
	ck_assert_uint_gt(all[HALTED], 0);
	/* No HLT at all: nothing is in doubt but the reasons. */
	o.halts = false;
	o.cpus = 1;
	tl_free(m);
	write_machine(&o);
	write_code();
	check_summary("--code=code@0x800000 a.cpu0.pt", 900 * 2 * 800, all);
	r = vmpt("timeline --summary -q " RATES " --code=code@0x800000 a.cpu0.pt");
	ck_lacks(r->out, "? ±");
	/* Nothing is known of code that is not there. */
	ck_has(vmpt("timeline --summary -q " RATES " --code=code@0x80000000 a.cpu0.pt")->out,
	       "? ±");
}
END_TEST

/* The parts of all vCPUs, and their runs, from @from to @to. */
static void add_window(const char *files, u64 from, u64 to, u64 sum[TL_GUESTS][5])
{
	json_t *doc, *o;
	char key[32];
	size_t i, p;

	doc = run_json(vmpt("timeline --json --summary -q " RATES " --from=%llu --to=%llu %s",
			    (unsigned long long)from, (unsigned long long)to, files));
	json_array_foreach(json_at(doc, "vms"), i, o)
	{
		u64 *of = sum[guest_of(json_text(o, "vcpus/0/vmcs"))];

		for (p = 0; p < 4; p++) {
			snprintf(key, sizeof(key), "%s_ticks", part[p]);
			of[p] += json_u64(o, key);
		}
		of[4] += json_u64(o, "running_ticks");
	}
	json_decref(doc);
}

#define WINDOWS 7

/* What --from and --to cut is in the windows on both sides, and no window has a hole. */
START_TEST(b2_windows_add_up)
{
	static const char files[] = "a.cpu0.pt a.cpu1.pt";
	u64 whole[TL_GUESTS][5] = { { 0 } }, sum[TL_GUESTS][5] = { { 0 } }, length, from, to;
	size_t g, p, k, full = 0;
	json_t *doc;

	tl_free(m);
	write_machine(&crowd);
	doc = run_json(vmpt("timeline --json --summary -q " RATES " %s", files));
	length = json_u64(doc, "length_ticks");
	json_decref(doc);
	add_window(files, 0, length + 1, whole);
	for (k = 0; k < WINDOWS; k++) {
		u64 one[TL_GUESTS][5] = { { 0 } };

		from = length * k / WINDOWS;
		to = k + 1 < WINDOWS ? length * (k + 1) / WINDOWS : length + 1;
		add_window(files, from, to, one);
		for (g = 0; g < crowd.guests; g++) {
			u64 all = 0;

			for (p = 0; p < 5; p++) {
				sum[g][p] += one[g][p];
				all += one[g][p];
			}
			/* In the middle all of them run or are out at each time. */
			if (k == WINDOWS / 2)
				ck_assert_uint_eq(all, to - from);
			full += all == to - from;
		}
	}
	ck_assert_uint_ge(full, crowd.guests);
	for (g = 0; g < crowd.guests; g++)
		for (p = 0; p < 5; p++)
			ck_assert_msg(sum[g][p] == whole[g][p], "%zu %s: %llu, not %llu", g,
				      p < 4 ? part[p] : "running", (unsigned long long)sum[g][p],
				      (unsigned long long)whole[g][p]);
}
END_TEST

/* No reason is known: halts are guessed, so the bounds have to cover other reasons. */
START_TEST(b1_guesses_are_in_the_bounds)
{
	struct tl_options o = crowd;
	const struct run *r;
	u64 all[4] = { 0 };
	json_t *doc;
	size_t i;

	o.evd = false;
	for (i = 0; i < 3; i++) {
		o.seed = 90 + i;
		tl_free(m);
		write_machine(&o);
		check_summary("a.cpu0.pt a.cpu1.pt", ~0ULL, all);
	}
	doc = run_json(vmpt("timeline --json --summary -q " RATES " a.cpu0.pt a.cpu1.pt"));
	ck_assert(json_is_true(json_at(doc, "vms/0/halted_guessed")));
	ck_assert_uint_ge(json_u64(doc, "vms/0/halted_error_ticks"),
			  json_u64(doc, "vms/0/halted_ticks"));
	json_decref(doc);
	r = vmpt("timeline --summary -q " RATES " a.cpu0.pt a.cpu1.pt");
	ck_has(r->out, "? ±");
	ck_has(r->out, "?: by guessed or unknown reasons, ± covers them");
	/* With reasons from the processor nothing is in doubt: on one CPU, which is always traced.
	 */
	o.evd = true;
	o.cpus = 1;
	tl_free(m);
	write_machine(&o);
	ck_lacks(vmpt("timeline --summary -q " RATES " a.cpu0.pt")->out, "guess");
}
END_TEST

/*
 * Tracing is off between an exit and the next entry: part of the time is untraced, and whether the
 * vCPU was idle in it is in doubt.
 */
START_TEST(b2_untraced)
{
	static const char script[] =
		"set tsc=1 mtc=1 event_en=1 psb_every=4K ticks=12 seed=5\n"
		"host cr3=0x6c10000 ip=0xffffffff81000000\n"
		"vm a vmcs=0x1000 cr3=0x1a2000 ip=0x401000\n"
		"loop 10 {\nvmptrld a\nrun 20\nenter a\nrun 400\nexit io\nrun 20\n"
		"trace off\nrun 500\ntrace on\nrun 20\nenter a\nrun 400\nexit hlt\nrun 20\n}\n";
	json_t *doc;
	u64 off, out, halted;

	write_file("off.trace", script, sizeof(script) - 1);
	ck_assert_int_eq(system("\"$TRACEGEN\" -o off.pt off.trace"), 0);
	doc = run_json(vmpt("timeline --json --summary -q --tsc-ratio=84 --mtc-freq=3 off.pt"));
	off = json_u64(doc, "vms/0/untraced_ticks");
	out = json_u64(doc, "vms/0/exited_ticks");
	halted = json_u64(doc, "vms/0/halted_ticks");
	/* 500 of the 540 blocks between, ten times; the other exits are halts, traced all along. */
	ck_assert_uint_gt(off, out / 2);
	ck_assert_uint_lt(off, out);
	ck_assert_uint_eq(off + json_u64(doc, "vms/0/host_ticks"), out);
	ck_assert_uint_ge(json_u64(doc, "vms/0/halted_error_ticks"), out);
	ck_assert(json_is_true(json_at(doc, "vms/0/halted_guessed")));
	ck_assert_uint_gt(halted, 0);
	json_decref(doc);
	doc = run_json(vmpt("wait --json -q --tsc-ratio=84 --mtc-freq=3 off.pt"));
	ck_assert_str_eq(json_text(doc, "vcpus/0/waits/0/kind"), "untraced");
	ck_assert_uint_eq(json_u64(doc, "vcpus/0/waits/0/time_ticks"), off);
	json_decref(doc);
}
END_TEST

/* ---- exits by another key, in another order ---- */

static json_t *exits_by(const char *args)
{
	return run_json(vmpt("exits --json -q %s " RATES " --side-record=vms.jsonl " FILES, args));
}

static size_t count_if(bool (*is)(const struct tl_run *r, u64 value), u64 value)
{
	size_t i, n = 0;

	for (i = 0; i < runs; i++)
		n += is(&run[i], value);
	return n;
}

static bool is_of_cpu(const struct tl_run *r, u64 value)
{
	return r->cpu == value;
}

static bool is_at(const struct tl_run *r, u64 value)
{
	return r->ip == value;
}

static bool is_reason(const struct tl_run *r, u64 value)
{
	return r->reason == value;
}

START_TEST(b14_by_cpu_and_ip)
{
	json_t *doc = exits_by("--by=cpu"), *o;
	size_t i;

	ck_assert_uint_eq(json_u64(doc, "total/count"), runs);
	ck_assert_uint_eq(json_array_size(json_at(doc, "all_vms")), 3);
	json_array_foreach(json_at(doc, "all_vms"), i, o)
		ck_assert_uint_eq(json_u64(o, "count"), count_if(is_of_cpu, json_u64(o, "cpu")));
	json_decref(doc);

	doc = exits_by("--by=ip --sort=count");
	ck_assert_uint_gt(json_array_size(json_at(doc, "exits")), 100);
	json_array_foreach(json_at(doc, "exits"), i, o)
	{
		u64 ip = strtoull(json_text(o, "ip"), NULL, 16);

		ck_assert_uint_eq(json_u64(o, "count"), count_if(is_at, ip));
		if (i)
			ck_assert_uint_le(
				json_u64(o, "count"),
				json_u64(json_array_get(json_at(doc, "exits"), i - 1), "count"));
	}
	json_decref(doc);
}
END_TEST

START_TEST(by_ip_has_symbols_and_top)
{
	json_t *all = exits_by("--by=ip"), *last[2], *doc, *o;
	const char *ip = json_text(all, "exits/0/ip");
	size_t i, rows = json_array_size(json_at(all, "exits"));
	char symbols[64], want[64], *at;

	ck_assert_uint_eq(json_u64(all, "rows_left_out"), 0);
	snprintf(symbols, sizeof(symbols), "%016llx T the_code\n", strtoull(ip, NULL, 16));
	write_file("ip.syms", symbols, strlen(symbols));

	doc = exits_by("--by=ip --top=2 --symbols=ip.syms");
	ck_assert_str_eq(json_text(doc, "exits/0/ip"), ip);
	ck_assert_str_eq(json_text(doc, "exits/0/symbol"), "the_code");
	json_array_foreach(json_at(doc, "exits"), i, o)
	{
		if (i >= 2)
			ck_assert(!json_equal(json_object_get(o, "vm"), last[i % 2]));
		last[i % 2] = json_object_get(o, "vm");
	}
	ck_assert_uint_gt(i, 0);
	ck_assert_uint_eq(json_u64(doc, "rows_left_out") + i, rows);
	ck_assert_uint_eq(json_u64(doc, "total/count"), runs);
	json_decref(doc);

	at = vmpt("exits -q --by=ip --top=2 --symbols=ip.syms " RATES
		  " --side-record=vms.jsonl " FILES)
		     ->out;
	ck_has(at, "SYMBOL");
	snprintf(want, sizeof(want), "%s  the_code ", ip + 2);
	ck_has(at, want);
	ck_has(at, "rows of VMs are left out: --top=N shows more");
	json_decref(all);
}
END_TEST

START_TEST(b14_of_all_vms)
{
	json_t *doc = exits_by(""), *o;
	u64 sum = 0, total = 0;
	size_t i;

	json_array_foreach(json_at(doc, "all_vms"), i, o)
	{
		ck_assert_uint_eq(json_u64(o, "count"), count_if(is_reason, json_u64(o, "reason")));
		sum += json_u64(o, "count");
		total += json_u64(o, "total_ticks");
		ck_assert_uint_le(json_u64(o, "min_ticks"), json_u64(o, "mean_ticks"));
		ck_assert_uint_le(json_u64(o, "mean_ticks"), json_u64(o, "max_ticks"));
	}
	ck_assert_uint_eq(sum, runs);
	ck_assert_uint_eq(json_u64(doc, "total/count"), runs);
	ck_assert_uint_eq(json_u64(doc, "total/total_ticks"), total);
	json_decref(doc);
}
END_TEST

START_TEST(b14_order)
{
	static const char *const key[] = { "total", "min", "mean", "p50", "p95", "p99", "max" };
	char args[64], name[32];
	size_t i, k;

	for (k = 0; k < VMPT_ARRAY_SIZE(key); k++) {
		json_t *doc, *o;
		u64 last = ~0ULL;

		snprintf(args, sizeof(args), "--by=vcpu --sort=%s", key[k]);
		snprintf(name, sizeof(name), "%s_ticks", key[k]);
		doc = exits_by(args);
		ck_assert_uint_eq(json_array_size(json_at(doc, "exits")), 5);
		json_array_foreach(json_at(doc, "exits"), i, o)
		{
			ck_assert_uint_le(json_u64(o, name), last);
			last = json_u64(o, name);
		}
		json_decref(doc);
	}
	ck_assert_int_eq(vmpt("exits --by=colour " FILES)->code, 2);
	ck_assert_int_eq(vmpt("exits --sort=colour " FILES)->code, 2);
	ck_assert_int_eq(vmpt("exits --part=colour " FILES)->code, 2);
}
END_TEST

/* The longest exit of each guest: when, where, and how long, by what the machine did. */
START_TEST(b2_the_longest_exit)
{
	json_t *doc = exits_by("--by=vcpu --top=1 " KHZ), *o;
	u64 zero = strtoull(json_text(doc, "start_tsc"), NULL, 16);
	size_t i, k, n;

	ck_assert_str_eq(json_text(doc, "clock"), "start");
	json_array_foreach(json_at(doc, "exits"), i, o)
	{
		u64 tsc = strtoull(json_text(o, "longest/tsc"), NULL, 16), best = 0;
		u64 cpu = json_u64(o, "longest/cpu"), out, at = 0;
		u64 vmcs = strtoull(json_text(o, "vmcs"), NULL, 16);

		ck_assert_uint_eq(json_u64(o, "longest/length_ns"), json_u64(o, "max_ns"));
		ck_assert_uint_le(json_u64(o, "longest/at_ns") - (tsc - zero) / 2, 1);
		for (k = 0; k < runs; k++) {
			const struct tl_run *next = NULL;

			if (tl_vmcs(run[k].guest) != vmcs)
				continue;
			for (n = 0; n < runs; n++)
				if (run[n].guest == run[k].guest && run[n].entry > run[k].entry &&
				    (!next || run[n].entry < next->entry))
					next = &run[n];
			out = next ? next->entry - run[k].exit : 0;
			if (out > best)
				best = out;
			/* The exit that it names. */
			if (next && run[k].cpu == cpu && llabs((s64)(run[k].exit - tsc)) <= 700)
				at = out;
		}
		ck_assert_uint_ne(at, 0);
		/* Off by the bounds of two edges, at most. */
		ck_assert_uint_le(best, at + 2 * json_u64(o, "one_error_ns") * 2 + 4);
	}
	json_decref(doc);
}
END_TEST

/* Its time fits --from, and its offset dump --start: the span there is the one after the exit. */
START_TEST(b2_the_longest_exit_is_pasted)
{
	json_t *doc = exits_by("--sort=max " KHZ), *o = json_at(doc, "exits/0/longest"), *spans;
	u64 offset = json_u64(o, "offset"), cpu = json_u64(o, "cpu");
	const char *line, *table;
	char at[32], where[32];
	const struct run *r;
	size_t i, found = 0;
	json_t *s;

	ck_assert_str_eq(json_text(json_at(doc, "total"), "longest/tsc"), json_text(o, "tsc"));
	snprintf(at, sizeof(at), "%llu.%09llu",
		 (unsigned long long)(json_u64(o, "at_ns") / 1000000000),
		 (unsigned long long)(json_u64(o, "at_ns") % 1000000000));
	snprintf(where, sizeof(where), "  %llu  0x%llx  ", (unsigned long long)cpu,
		 (unsigned long long)offset);
	r = vmpt("exits -q --sort=max " RATES " " KHZ " --side-record=vms.jsonl " FILES);
	table = strstr(r->out, "LONGEST");
	ck_assert_ptr_nonnull(table);
	line = strchr(table, '\n') + 1;
	ck_assert_ptr_nonnull(strstr(table, "OFFSET  VCPU\n"));
	ck_assert_msg(strstr(line, at) && strstr(line, at) < strchr(line, '\n'), "%s", line);
	ck_assert_uint_le(widest(r->out), 100);
	spans = run_json(vmpt("timeline --json -q " RATES " " KHZ " --from=%s " FILES, at));
	json_array_foreach(json_at(spans, "spans"), i,
			   s) if (json_object_get(s, "offset") && json_u64(s, "cpu") == cpu)
	{
		found = json_u64(s, "offset") == offset;
		if (found || i > 8)
			break;
	}
	ck_assert(found);
	r = vmpt("dump --cpu=%llu --start=%llu -n 1 " FILES, (unsigned long long)cpu,
		 (unsigned long long)offset);
	ck_assert_int_eq(r->code, 0);
	json_decref(spans);
	json_decref(doc);
	r = vmpt("exits -q --csv --sort=max " RATES " " KHZ " " FILES);
	ck_has(r->out, ",max_ns,longest/at_ns,longest/tsc,longest/cpu,longest/offset,");
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("away");
	TCase *tc = tcase_create("away");

	tcase_add_checked_fixture(tc, timeline_setup, timeline_teardown);
	tcase_add_test(tc, b2_parts_of_vms);
	tcase_add_test(tc, b2_the_longest_exit);
	tcase_add_test(tc, b2_the_longest_exit_is_pasted);
	tcase_add_test(tc, b2_parts_of_exits);
	tcase_add_test(tc, b2_windows_add_up);
	tcase_add_test(tc, b1_code_that_does_not_halt);
	tcase_add_test(tc, b1_guesses_are_in_the_bounds);
	tcase_add_test(tc, b2_untraced);
	tcase_add_test(tc, b14_by_cpu_and_ip);
	tcase_add_test(tc, by_ip_has_symbols_and_top);
	tcase_add_test(tc, b14_of_all_vms);
	tcase_add_test(tc, b14_order);
	suite_add_tcase(s, tc);
	return s;
}
