// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt wait on machines of which it is known what ran when (tests/decoder/timeline-machine.h), and
 * on a host where two vCPUs fight for one CPU.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli/cli-run.h"
#include "tests/cli/timeline/files.h"

static const struct tl_options crowd = {
	.cpus = 2, .guests = 6, .runs = 900, .seed = 83, .evd = true, .halts = true
};

/*
 * The time that @whom ran on the CPU that @guest exited on, until @guest's next entry, after exits
 * that are no halts; @times: of how many of them.
 */
static u64 ran_meanwhile(unsigned int guest, unsigned int whom, u64 *times)
{
	u64 sum = 0, one;
	size_t i, k;

	for (i = 0; i < runs; i++) {
		const struct tl_run *next = NULL;

		if (run[i].guest != guest || run[i].reason == 12)
			continue;
		for (k = 0; k < runs; k++)
			if (run[k].guest == guest && run[k].entry > run[i].entry &&
			    (!next || run[k].entry < next->entry))
				next = &run[k];
		for (k = 0, one = 0; next && k < runs; k++) {
			u64 from = run[k].entry > run[i].exit ? run[k].entry : run[i].exit;
			u64 to = run[k].exit < next->entry ? run[k].exit : next->entry;

			if (run[k].guest == whom && run[k].cpu == run[i].cpu && from < to)
				one += to - from;
		}
		sum += one;
		*times += one > 0;
	}
	return sum;
}

static unsigned int guest_of(json_t *o, const char *key)
{
	unsigned int g;

	for (g = 0; g < TL_GUESTS; g++)
		if (tl_vmcs(g) == strtoull(json_text(o, key), NULL, 16))
			return g;
	ck_abort_msg("%s", json_text(o, key));
}

static u64 distance(u64 a, u64 b)
{
	return a > b ? a - b : b - a;
}

/* Each pair: the time in the guest is what was, within the bound. */
START_TEST(pairs)
{
	json_t *doc, *o, *wait;
	size_t i, k, n = 0;

	tl_free(m);
	write_machine(&crowd);
	doc = run_json(vmpt("wait --json -q --top=0 " RATES " a.cpu0.pt a.cpu1.pt"));
	ck_assert_uint_eq(json_array_size(json_at(doc, "vcpus")), 6);
	json_array_foreach(json_at(doc, "vcpus"), i, o)
	{
		json_array_foreach(json_at(o, "waits"), k, wait)
		{
			u64 want, times = 0, error = json_u64(wait, "time_error_ticks");

			ck_assert_str_ne(json_text(wait, "kind"), "others");
			if (strcmp(json_text(wait, "kind"), "vcpu") != 0)
				continue;
			want = ran_meanwhile(guest_of(o, "vmcs"), guest_of(wait, "for_vmcs"),
					     &times);
			ck_assert_uint_le(distance(json_u64(wait, "time_ticks"), want), error);
			ck_assert_uint_lt(error, want);
			ck_assert_uint_le(distance(json_u64(wait, "times"), times), times / 10 + 1);
			n++;
		}
	}
	/* Nearly everyone waited for everyone. */
	ck_assert_uint_gt(n, 24);
	json_decref(doc);
}
END_TEST

/* The rows of a vCPU are all of its time out of the guest. */
START_TEST(rows_add_up)
{
	json_t *doc = run_json(vmpt("wait --json -q --top=0 " RATES " " FILES)), *o, *wait;
	json_t *sums = run_json(vmpt("timeline --summary --json -q " RATES " " FILES));
	size_t i, k;

	json_array_foreach(json_at(doc, "vcpus"), i, o)
	{
		u64 sum = 0, last = ~0ULL, out = 0;
		json_t *vm;
		size_t v;

		json_array_foreach(json_at(o, "waits"), k, wait)
		{
			sum += json_u64(wait, "time_ticks");
			if (!strcmp(json_text(wait, "kind"), "halted"))
				continue;
			ck_assert_uint_le(json_u64(wait, "time_ticks"), last);
			last = json_u64(wait, "time_ticks");
		}
		json_array_foreach(
			json_at(sums, "vms"), v,
			vm) if (!strcmp(json_text(vm, "vcpus/0/vmcs"), json_text(o, "vmcs"))) out =
			json_u64(vm, "host_ticks") + json_u64(vm, "wait_ticks") +
			json_u64(vm, "halted_ticks") + json_u64(vm, "untraced_ticks");
		ck_assert_uint_eq(sum, out);
	}
	json_decref(doc);
	json_decref(sums);
}
END_TEST

/*
 * Two vCPUs on CPU 0, each out while the other runs; a third one alone on CPU 1. "noisy" runs five
 * times as long as "quiet".
 */
static const char fight[] =
	"set tsc=1 mtc=1 event_en=1 psb_every=4K ticks=12 seed=5\n"
	"host cr3=0x6c10000 ip=0xffffffff81000000\n"
	"vm quiet vmcs=0x1000 cr3=0x1a2000 ip=0x401000\n"
	"vm noisy vmcs=0x2000 cr3=0x1a3000 ip=0x501000\n"
	"vm alone vmcs=0x3000 cr3=0x1a4000 ip=0x601000\n"
	"loop 40 {\n"
	"cpu 0\nvmptrld quiet\nrun 20\nenter quiet\nrun 400\nexit interrupt vector=0x20\nrun 20\n"
	"vmptrld noisy\nenter noisy\nrun 1000\nexit io\nrun 20\nenter noisy\nrun 1000\n"
	"exit interrupt vector=0x20\nrun 20\n"
	"cpu 1\nvmptrld alone\nrun 20\nenter alone\nrun 1500\nexit timer\nrun 10\n"
	"sync\n}\n";

static const char fighters[] = "{\"vm\":\"quiet\",\"vcpu\":0,\"vmcs\":\"0x1000\"}\n"
			       "{\"vm\":\"noisy\",\"vcpu\":0,\"vmcs\":\"0x2000\"}\n"
			       "{\"vm\":\"alone\",\"vcpu\":0,\"vmcs\":\"0x3000\"}\n";

#define FIGHT "--side-record=f.jsonl --tsc-ratio=84 --mtc-freq=3 " KHZ " f.cpu0.pt f.cpu1.pt"

static void write_fight(void)
{
	char command[4200];

	write_file("f.trace", fight, sizeof(fight) - 1);
	write_file("f.jsonl", fighters, sizeof(fighters) - 1);
	snprintf(command, sizeof(command), "'%s' -o f.pt f.trace", getenv("TRACEGEN"));
	ck_assert_int_eq(system(command), 0);
}

START_TEST(the_right_one)
{
	const struct run *r;
	json_t *doc;

	write_fight();
	doc = run_json(vmpt("wait --json -q " FIGHT));
	/* It waits most, and for the other one; "alone" for no one. */
	ck_assert_str_eq(json_text(doc, "vcpus/0/vm"), "quiet");
	ck_assert_str_eq(json_text(doc, "vcpus/0/waits/0/for_vm"), "noisy");
	ck_assert_str_eq(json_text(doc, "vcpus/0/waits/0/kind"), "vcpu");
	ck_assert_str_eq(json_text(doc, "vcpus/1/vm"), "noisy");
	ck_assert_str_eq(json_text(doc, "vcpus/1/waits/0/for_vm"), "quiet");
	ck_assert_str_eq(json_text(doc, "vcpus/2/vm"), "alone");
	ck_assert_uint_eq(json_array_size(json_at(doc, "vcpus/2/waits")), 1);
	ck_assert_str_eq(json_text(doc, "vcpus/2/waits/0/kind"), "host");
	/* The host's work between its two runs is the host's, and shown. */
	ck_assert_uint_gt(json_u64(doc, "vcpus/0/waits/0/host_between_ns"), 0);
	ck_assert_uint_eq(json_u64(doc, "vcpus/1/waits/0/host_between_ns"), 0);
	/* 2000 blocks to 400. */
	ck_assert_uint_gt(json_u64(doc, "vcpus/0/waits/0/time_ns"),
			  3 * json_u64(doc, "vcpus/1/waits/0/time_ns"));
	json_decref(doc);

	r = vmpt("wait -q " FIGHT);
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "\nquiet vcpu 0  noisy vcpu 0 ");
	ck_has(r->out, "\nnoisy vcpu 0  quiet vcpu 0 ");
	ck_assert_uint_le(widest(r->out), 100);
	setenv("LC_ALL", "C", 1);
	ck_has(vmpt("wait -q " FIGHT)->out, "\n+-: worst-case error");
	setenv("LC_ALL", "C.UTF-8", 1);
	r = vmpt("wait -q --owner=quiet --top=1 " FIGHT);
	ck_has(r->out, "\nquiet vcpu 0  noisy vcpu 0 ");
	ck_lacks(r->out, "\nnoisy");
	ck_lacks(r->out, "host");
	ck_has(vmpt("timeline --summary -q " FIGHT)->out, "\nalone ");
	/* A part is as long as it is, wherever it begins. */
	ck_has(vmpt("timeline --summary -q --from=20us --to=30us " FIGHT)->out, "10.0 ");
	doc = run_json(vmpt("timeline --summary --json -q --from=20us --to=30us " FIGHT));
	ck_assert_uint_eq(json_u64(doc, "length_ns"), 10000);
	json_decref(doc);
}
END_TEST

/* A window inside of a wait: the vCPU is out all the time, and its neighbour is named. */
START_TEST(b2_wait_longer_than_the_window)
{
	json_t *doc, *o;
	u64 at;

	write_fight();
	doc = run_json(vmpt("wait --json -q " FIGHT));
	o = json_at(doc, "vcpus/0/waits/0/longest");
	ck_assert_uint_gt(json_u64(o, "length_ns"), 8000);
	at = json_u64(o, "at_ns") + 4000;
	json_decref(doc);
	doc = run_json(vmpt("wait --json -q --from=%lluns --to=%lluns " FIGHT,
			    (unsigned long long)at, (unsigned long long)at + 1000));
	ck_assert_str_eq(json_text(doc, "vcpus/0/vm"), "quiet");
	ck_assert_str_eq(json_text(doc, "vcpus/0/waits/0/for_vm"), "noisy");
	ck_assert_uint_eq(json_u64(doc, "vcpus/0/waits/0/time_ns"), 1000);
	ck_assert_uint_eq(json_u64(doc, "vcpus/0/waits/0/time_error_ns"), 0);
	ck_assert_uint_eq(json_u64(doc, "vcpus/0/waits/0/longest/at_ns"), at);
	json_decref(doc);
	/* A part of --owner; exits has whole lengths only. */
	doc = run_json(vmpt("wait --json -q --owner=noisy --from=%lluns --to=%lluns " FIGHT,
			    (unsigned long long)at, (unsigned long long)at + 1000));
	ck_assert_uint_eq(json_array_size(json_at(doc, "vcpus")), 0);
	json_decref(doc);
	doc = run_json(vmpt("exits --json -q --from=%lluns --to=%lluns " FIGHT,
			    (unsigned long long)at, (unsigned long long)at + 1000));
	ck_assert_uint_eq(json_array_size(json_at(doc, "exits")), 0);
	json_decref(doc);
}
END_TEST

/* When the longest wait began: the exit there is of that vCPU, and the neighbour ran next. */
START_TEST(b6_when_it_waited_longest)
{
	json_t *doc, *o, *spans, *s;
	const struct run *r;
	u64 offset, cpu;
	char at[32];
	size_t i, found = 0;

	write_fight();
	doc = run_json(vmpt("wait --json -q " FIGHT));
	o = json_at(doc, "vcpus/0/waits/0/longest");
	ck_assert_str_eq(json_text(doc, "clock"), "start");
	ck_assert_str_eq(json_text(o, "vm"), "quiet");
	ck_assert_uint_gt(json_u64(o, "length_ns"), 0);
	offset = json_u64(o, "offset");
	cpu = json_u64(o, "cpu");
	spans = run_json(vmpt("timeline --json -q " FIGHT));
	json_array_foreach(json_at(spans, "spans"), i, s)
	{
		if (strcmp(json_text(s, "kind"), "guest") != 0 || json_u64(s, "cpu") != cpu)
			continue;
		if (json_u64(s, "offset") + json_u64(s, "bytes") == offset) {
			ck_assert_str_eq(json_text(s, "vm"), "quiet");
			ck_assert_uint_le(json_u64(s, "start_ns"), json_u64(o, "at_ns"));
			found = 1;
		} else if (found) {
			ck_assert_str_eq(json_text(s, "vm"), "noisy");
			ck_assert_uint_ge(json_u64(s, "start_ns"), json_u64(o, "at_ns"));
			break;
		}
	}
	ck_assert(found);
	snprintf(at, sizeof(at), "  %llu.%09llu  ",
		 (unsigned long long)(json_u64(o, "at_ns") / 1000000000),
		 (unsigned long long)(json_u64(o, "at_ns") % 1000000000));
	r = vmpt("wait -q " FIGHT);
	ck_has(strstr(r->out, "OFFSET"), at);
	ck_has(vmpt("wait --time=wall " FIGHT)->err, "--time=wall: the wall clock of");
	ck_assert_int_eq(vmpt("wait --time=perf " FIGHT)->code, 2);
	json_decref(spans);
	json_decref(doc);
}
END_TEST

/* An overflow hides the exits: the time after these runs is no exit's, and exits says so. */
START_TEST(b2_runs_without_an_exit)
{
	static const char hidden[] =
		"set tsc=1 mtc=1 cyc=1 event_en=1 ticks=60 seed=3\n"
		"vm A vmcs=0x12345000 cr3=0x5000\nvmptrld A\nrun 2\n"
		"repeat 4 {\nrun 100\nenter A\nrun 120\noverflow {\nrun 10\n}\nrun 3\nexit hlt\n"
		"psb\nrun 100\n}\n";
	static const char rates[] = "-q --tsc-ratio=84 --mtc-freq=3 h.pt";
	char command[4200];
	json_t *doc;

	write_file("h.trace", hidden, sizeof(hidden) - 1);
	snprintf(command, sizeof(command), "'%s' -o h.pt h.trace", getenv("TRACEGEN"));
	ck_assert_int_eq(system(command), 0);
	doc = run_json(vmpt("timeline --summary --json %s", rates));
	ck_assert_uint_gt(json_u64(doc, "vms/0/untraced_ticks"), 0);
	json_decref(doc);
	ck_has(vmpt("exits %s", rates)->out, "\n3 runs ended without an exit: vmpt timeline "
					     "--summary has the time after them\n");
	write_fight();
	ck_lacks(vmpt("exits -q " FIGHT)->out, "without an exit");
}
END_TEST

/* A line a row, with whom it waited for beside who waited. */
START_TEST(b12_csv)
{
	static const char head[] = "owner,vmcs,vm,vcpu,kind,for_owner,for_vmcs,for_vm,for_vcpu,"
				   "time_ns,";
	const struct run *r;
	size_t i, lines = 0;

	write_fight();
	r = vmpt("wait --csv -q --top=0 " FIGHT);
	ck_assert_int_eq(r->code, 0);
	ck_assert_msg(!strncmp(r->out, head, strlen(head)), "%s", r->out);
	ck_has(r->out, "\n,0x1000,quiet,0,vcpu,,0x2000,noisy,0,");
	ck_has(r->out, "\n,0x2000,noisy,0,vcpu,,0x1000,quiet,0,");
	ck_has(r->out, "\n,0x3000,alone,0,host,,,,,");
	for (i = 0; r->out[i]; i++)
		lines += r->out[i] == '\n';
	/* Each of the two for the other and the host, the third for the host. */
	ck_assert_uint_eq(lines, 1 + 2 + 2 + 1);
	ck_assert_int_eq(vmpt("wait --csv --json " FIGHT)->code, 2);
}
END_TEST

/* No VM, no time, a wrong value. */
START_TEST(nothing_to_show)
{
	static const u8 psb[] = { 2,	0x82, 2,    0x82, 2,	0x82, 2,    0x82, 2,
				  0x82, 2,    0x82, 2,	  0x82, 2,    0x82, 2,	  0x23 };
	const struct run *r;
	json_t *doc;

	write_file("none.pt", psb, sizeof(psb));
	r = vmpt("wait -q none.pt");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "The trace has no times.");
	doc = run_json(vmpt("wait -q --json none.pt"));
	ck_assert_uint_eq(json_array_size(json_at(doc, "vcpus")), 0);
	json_decref(doc);
	ck_assert_int_eq(vmpt("wait --top=x none.pt")->code, 2);
	ck_assert_int_eq(vmpt("wait --top=-1 none.pt")->code, 2);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("wait");
	TCase *tc = tcase_create("wait");

	tcase_add_checked_fixture(tc, timeline_setup, timeline_teardown);
	tcase_add_test(tc, pairs);
	tcase_add_test(tc, rows_add_up);
	tcase_add_test(tc, the_right_one);
	tcase_add_test(tc, b2_wait_longer_than_the_window);
	tcase_add_test(tc, b6_when_it_waited_longest);
	tcase_add_test(tc, b2_runs_without_an_exit);
	tcase_add_test(tc, b12_csv);
	tcase_add_test(tc, nothing_to_show);
	suite_add_tcase(s, tc);
	return s;
}
