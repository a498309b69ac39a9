// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* decoder/names/names.c: artificial runs of guests, with events that show which thread ran. */
#include <stdlib.h>

#include "decoder/vmpt-events.h"
#include "tests/support/support.h"

#define EVENTS 4096
/* A long-running host: bits 63:56 of its TSC are not 0, and it crosses a wrap of 56 bits */
#define BASE 0x02fffffffff00000ULL

static struct vmpt_event events[EVENTS];
static size_t event_count;
static struct vmpt_names *names;
static u64 now;

static void setup(void)
{
	event_count = 0;
	now = BASE;
}

static void teardown(void)
{
	vmpt_names_close(names);
	names = NULL;
}

static struct vmpt_event *event(enum vmpt_event_kind kind, int cpu, int pid, int tid)
{
	ck_assert_uint_lt(event_count, EVENTS);
	now += 1000;
	events[event_count] = (struct vmpt_event){
		.time = now,
		.tsc = now,
		.cpu = cpu,
		.pid = pid,
		.tid = tid,
		.vcpu = VMPT_EVENT_NO_VCPU,
		.kind = (u8)kind,
	};
	return &events[event_count++];
}

static void comm(int pid, int tid, const char *text)
{
	struct vmpt_event *e = event(VMPT_EVENT_COMM, 0, pid, tid);

	/* as perf reports threads that existed before */
	e->time = e->tsc = 0;
	e->text = text;
}

static void open_names(const struct vmpt_given_thread *given, size_t count)
{
	const struct vmpt_names_options options = { events, event_count, given, count };

	ck_assert_int_eq(vmpt_names_open(&names, &options), 0);
}

/* A run that starts @after ticks after event @i, @length long, known to ±@bound ticks. */
static void run_bound(u64 vmcs, int cpu, size_t i, u64 after, u64 length, u32 bound)
{
	struct vmpt_time start = { events[i].tsc + after, bound, bound };
	struct vmpt_time end = { start.tsc + length, bound, bound };

	/* As in TSC packets */
	start.tsc &= vmpt_mask64(56);
	end.tsc &= vmpt_mask64(56);
	ck_assert_int_eq(vmpt_names_run(names, vmcs, cpu, &start, &end), 0);
}

static void run(u64 vmcs, int cpu, size_t i)
{
	run_bound(vmcs, cpu, i, 100, 500, 20);
}

static const struct vmpt_vm_name *name(size_t i, size_t count)
{
	const struct vmpt_vm_name *list;
	size_t n;

	list = vmpt_names_list(names, &n);
	ck_assert_uint_eq(n, count);
	return &list[i];
}

static void check_name(const struct vmpt_vm_name *n, u64 vmcs, const char *vm, int tid, int vcpu,
		       u32 runs, u32 against)
{
	ck_assert_ptr_nonnull(n);
	ck_assert_uint_eq(n->vmcs, vmcs);
	ck_assert_str_eq(n->vm, vm);
	ck_assert_int_eq(n->tid, tid);
	ck_assert_int_eq(n->vcpu, vcpu);
	ck_assert_uint_eq(n->runs, runs);
	ck_assert_uint_eq(n->against, against);
}

/* Thread @tid enters its guest. Returns the event's index. */
static size_t entry(int cpu, int pid, int tid, u16 vcpu)
{
	event(VMPT_EVENT_KVM_ENTRY, cpu, pid, tid)->vcpu = vcpu;
	return event_count - 1;
}

static const struct vmpt_given_thread given[] = {
	{ 10, 11, 0, "web", BASE, BASE + 1 },
	{ 20, 21, 1, "db", BASE, BASE + 1 },
};

/* Two vCPUs take turns on one CPU, and one migrates: kvm_entry is enough. */
START_TEST(by_entries)
{
	size_t at[40], i;

	for (i = 0; i < 40; i++) {
		at[i] = i & 1 ? entry(3, 20, 21, 1) : entry(i < 20 ? 3 : 4, 10, 11, 0);
		event(VMPT_EVENT_KVM_EXIT, i & 1 || i < 20 ? 3 : 4, i & 1 ? 20 : 10,
		      i & 1 ? 21 : 11);
	}
	open_names(given, 2);
	/* Out of order is fine */
	for (i = 40; i-- > 0;)
		run(i & 1 ? 0x2000 : 0x1000, i & 1 || i < 20 ? 3 : 4, at[i]);
	ck_assert_int_eq(vmpt_names_finish(names), 0);
	check_name(name(0, 2), 0x1000, "web", 11, 0, 20, 0);
	check_name(name(1, 2), 0x2000, "db", 21, 1, 20, 0);
	ck_assert_int_eq(name(0, 2)->pid, 10);
	ck_assert_uint_eq(name(0, 2)->from, 0);
	ck_assert_uint_eq(name(0, 2)->to, ~0ULL);
	ck_assert_ptr_eq(vmpt_names_at(names, 0x2000, BASE), name(1, 2));
	ck_assert_ptr_eq(vmpt_names_at(names, 0x2000, (BASE + 500) & vmpt_mask64(56)), name(1, 2));
	ck_assert_ptr_null(vmpt_names_at(names, 0x3000, BASE));
	ck_assert_int_eq(vmpt_names_finish(names), -VMPT_E_INVAL);
}
END_TEST

/*
 * Without the tracepoints, by context switches: given threads, or QEMU's thread names, show which
 * threads are vCPU threads. Other threads are never used, whatever ran on their CPU.
 */
START_TEST(by_switches)
{
	size_t web, db, other;

	comm(10, 10, "qemu-system-x86");
	comm(10, 11, "CPU 0/KVM");
	comm(30, 30, "cat");
	web = event_count;
	event(VMPT_EVENT_SWITCH_IN, 0, 10, 11);
	event(VMPT_EVENT_SWITCH_OUT, 0, 10, 11);
	other = event_count;
	event(VMPT_EVENT_SWITCH_IN, 0, 30, 30);
	event(VMPT_EVENT_SWITCH_OUT, 0, 30, 30);
	db = event_count;
	event(VMPT_EVENT_SWITCH_IN, 0, 20, 21);
	event(VMPT_EVENT_SWITCH_OUT, 0, 20, 21);
	open_names(&given[1], 1);
	run(0x1000, 0, web);
	run(0x2000, 0, db);
	run(0x3000, 0, other);
	run(0x1000, 0, db + 1); /* no thread was switched in */
	run(0x1000, 1, web);	/* a CPU without events */
	ck_assert_int_eq(vmpt_names_finish(names), 0);
	check_name(name(0, 2), 0x1000, "qemu-system-x86/10", 11, 0, 1, 0);
	check_name(name(1, 2), 0x2000, "db", 21, 1, 1, 0);
}
END_TEST

/* No vCPU threads are known: use the thread on the CPU, unless it is the idle one. */
START_TEST(by_switches_only)
{
	comm(50, 50, "myvmm");
	event(VMPT_EVENT_SWITCH_IN, 0, 50, 51);
	event(VMPT_EVENT_SWITCH_OUT, 0, 50, 51);
	event(VMPT_EVENT_SWITCH_IN, 0, 0, 0);
	open_names(NULL, 0);
	run(0x1000, 0, 1);
	run(0x2000, 0, 3);
	ck_assert_int_eq(vmpt_names_finish(names), 0);
	check_name(name(0, 1), 0x1000, "myvmm/50", 51, -1, 1, 0);
}
END_TEST

/* A page that is freed and reused: another name from the other thread's first run on. */
START_TEST(used_again)
{
	size_t at[60], i, second;

	for (i = 0; i < 30; i++)
		at[i] = entry(0, 10, 11, 0);
	event(VMPT_EVENT_THREAD_END, 0, 10, 11);
	for (; i < 60; i++)
		at[i] = entry(1, 20, 21, 1);
	open_names(given, 2);
	for (i = 0; i < 60; i++)
		run(0x1000, i < 30 ? 0 : 1, at[i]);
	ck_assert_int_eq(vmpt_names_finish(names), 0);
	second = at[30];
	check_name(name(0, 2), 0x1000, "web", 11, 0, 30, 0);
	check_name(name(1, 2), 0x1000, "db", 21, 1, 30, 0);
	ck_assert_uint_eq(name(0, 2)->to, events[second].tsc + 100);
	ck_assert_uint_eq(name(1, 2)->from, events[second].tsc + 100);
	ck_assert_ptr_eq(vmpt_names_at(names, 0x1000, events[second].tsc + 99), name(0, 2));
	ck_assert_ptr_eq(vmpt_names_at(names, 0x1000, events[second].tsc + 100), name(1, 2));
}
END_TEST

/*
 * One run of a page's new owner at the trace's end is a name if the old owner's thread had ended;
 * otherwise it is counted against the old one. So is one in the middle, always.
 */
START_TEST(strays)
{
	size_t at[41], i;
	bool ends = _i;

	for (i = 0; i < 40; i++)
		at[i] = i == 20 ? entry(0, 20, 21, 1) : entry(0, 10, 11, 0);
	if (ends)
		event(VMPT_EVENT_THREAD_END, 0, 10, 11);
	at[40] = entry(0, 20, 21, 1);
	open_names(given, 2);
	for (i = 0; i < 41; i++)
		run(0x1000, 0, at[i]);
	ck_assert_int_eq(vmpt_names_finish(names), 0);
	check_name(name(0, ends ? 2 : 1), 0x1000, "web", 11, 0, 39, ends ? 1 : 2);
	if (ends)
		check_name(name(1, 2), 0x1000, "db", 21, 1, 1, 0);
}
END_TEST

/* A thread id is reused by another VMM: the given time shows which of the two is meant. */
START_TEST(tid_used_again)
{
	struct vmpt_given_thread late = { 60, 11, 7, "late", 0, 0 };
	struct vmpt_given_thread both[2];
	size_t at[20], i;

	for (i = 0; i < 10; i++)
		at[i] = entry(0, 10, 11, 0);
	event(VMPT_EVENT_THREAD_END, 0, 10, 11);
	event(VMPT_EVENT_SWITCH_OUT, 0, 10, 11);
	event(VMPT_EVENT_FORK, 0, 60, 11);
	for (; i < 20; i++)
		at[i] = entry(0, 60, 11, 7);
	late.from = late.to = events[at[15]].tsc;
	both[_i] = given[0];
	both[!_i] = late;
	open_names(both, 2);
	for (i = 0; i < 20; i++)
		run(0x1000, 0, at[i]);
	ck_assert_int_eq(vmpt_names_finish(names), 0);
	check_name(name(0, 2), 0x1000, "web", 11, 0, 10, 0);
	check_name(name(1, 2), 0x1000, "late", 11, 7, 10, 0);
}
END_TEST

/*
 * Uncertain times: a run counts only if no other thread can have been on the CPU. Here one thread
 * follows the other after 1000 ticks.
 */
START_TEST(bounds)
{
	size_t web = entry(0, 10, 11, 0), db = entry(0, 20, 21, 1);
	struct vmpt_time none = { VMPT_TIME_NONE, 0, 0 }, open, end;

	entry(0, 20, 21, 1);
	entry(0, 20, 21, 1);
	open_names(given, 2);
	run_bound(0x1000, 0, web, 400, 100, 300); /* within: 100 to 800 */
	run_bound(0x2000, 0, web, 400, 100, 500); /* perhaps before, or partly db's */
	run_bound(0x3000, 0, web, 900, 900, 200); /* its middle is certainly db's */
	run_bound(0x4000, 0, web, 200, 1800, 10); /* across both: it cannot be */
	open = (struct vmpt_time){ events[db].tsc + 100, 0, VMPT_TIME_OPEN };
	end = (struct vmpt_time){ events[db].tsc + 500, VMPT_TIME_OPEN, VMPT_TIME_OPEN };
	ck_assert_int_eq(vmpt_names_run(names, 0x5000, 0, &open, &end), 0);
	ck_assert_int_eq(vmpt_names_run(names, 0x5000, 0, &none, &end), 0);
	ck_assert_int_eq(vmpt_names_run(names, 0x5000, -1, &end, &end), 0);
	ck_assert_int_eq(vmpt_names_finish(names), 0);
	check_name(name(0, 2), 0x1000, "web", 11, 0, 1, 0);
	check_name(name(1, 2), 0x3000, "db", 21, 1, 1, 0);
}
END_TEST

/* After lost events no thread is known, up to the next event. */
START_TEST(lost)
{
	size_t web = entry(0, 10, 11, 0), gone, again;

	gone = event_count;
	event(VMPT_EVENT_LOST_EVENTS, 0, -1, -1);
	again = entry(0, 10, 11, 0);
	open_names(given, 2);
	run(0x1000, 0, web);
	run(0x2000, 0, gone);
	run(0x3000, 0, again);
	ck_assert_int_eq(vmpt_names_finish(names), 0);
	ck_assert_uint_eq(name(0, 2)->vmcs, 0x1000);
	ck_assert_uint_eq(name(1, 2)->vmcs, 0x3000);
}
END_TEST

/* No events at all, or none with a TSC. */
START_TEST(nothing)
{
	struct vmpt_time t = { BASE, 0, 0 };

	if (_i)
		event(VMPT_EVENT_SWITCH_IN, 0, 10, 11)->tsc = 0;
	open_names(_i ? given : NULL, _i ? 2 : 0);
	ck_assert_int_eq(vmpt_names_run(names, 0x1000, 0, &t, &t), 0);
	ck_assert_int_eq(vmpt_names_finish(names), 0);
	name(0, 0);
	ck_assert_ptr_null(vmpt_names_at(names, 0x1000, BASE));
}
END_TEST

/* A program of another version: nothing is read, nothing is written. */
START_TEST(other_version)
{
	struct vmpt_names *names = (void *)&names, *before = names;
	const struct vmpt_names_options *unreadable = (void *)16;

	ck_assert_int_eq(vmpt_names_open_abi(&names, unreadable, VMPT_NAMES_ABI + 1),
			 -VMPT_E_VERSION);
	ck_assert_ptr_eq(names, before);
}
END_TEST

/*
 * Random VMs on random CPUs: each of 8 pages belongs to one thread at a time and changes hands
 * after at least 40 runs; 2 % of the runs say a wrong page. Every page has the right name at every
 * run.
 */
START_TEST(random_owners)
{
	struct test_rng rng = { 100 + (u64)_i };
	struct {
		int tid;
		u32 left;
	} page[8] = { 0 };
	struct {
		u64 vmcs;
		size_t event;
		int tid;
	} truth[3000];
	size_t i, k, wrong = 0;
	int tid = 100;

	for (i = 0; i < VMPT_ARRAY_SIZE(truth); i++) {
		k = test_random(&rng) % 8;
		if (!page[k].left--) {
			page[k].tid = ++tid;
			page[k].left = 40 + (u32)test_random(&rng) % 100;
		}
		truth[i].vmcs = 0x1000 * (k + 1);
		truth[i].tid = page[k].tid;
		truth[i].event = entry((int)(test_random(&rng) % 4), 7, page[k].tid, 0);
	}
	open_names(NULL, 0);
	for (i = 0; i < VMPT_ARRAY_SIZE(truth); i++) {
		u64 vmcs = test_random(&rng) % 50 ? truth[i].vmcs
						  : 0x1000 * (test_random(&rng) % 8 + 1);

		run(vmcs, events[truth[i].event].cpu, truth[i].event);
	}
	ck_assert_int_eq(vmpt_names_finish(names), 0);
	for (i = 0; i < VMPT_ARRAY_SIZE(truth); i++) {
		const struct vmpt_vm_name *n =
			vmpt_names_at(names, truth[i].vmcs, events[truth[i].event].tsc + 100);

		ck_assert_ptr_nonnull(n);
		wrong += n->tid != truth[i].tid;
	}
	ck_assert_msg(wrong <= 10, "seed %d: %zu runs have a wrong name", 100 + _i, wrong);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("vm-names");
	TCase *tc = tcase_create("names");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, by_entries);
	tcase_add_test(tc, by_switches);
	tcase_add_test(tc, by_switches_only);
	tcase_add_test(tc, used_again);
	tcase_add_loop_test(tc, strays, 0, 2);
	tcase_add_loop_test(tc, tid_used_again, 0, 2);
	tcase_add_test(tc, bounds);
	tcase_add_test(tc, lost);
	tcase_add_loop_test(tc, nothing, 0, 2);
	tcase_add_test(tc, other_version);
	tcase_add_loop_test(tc, random_owners, 0, 8);
	suite_add_tcase(suite, tc);
	return suite;
}
