// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * decoder/trace/perf-events.c, perf-formats.c: events of perf.data files written here, and of a
 * real one, with which the perf tool must agree.
 */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>

#include "decoder/trace/trace.h"
#include "decoder/vmpt-events.h"
#include "tests/decoder/perf-writer.h"
#include "tests/support/support.h"

static struct perf_writer w;
static struct vmpt_trace *trace;
static const struct vmpt_event *events;
static size_t count;
static u8 bytes[64] = { 2, 0x82, 1 };

static void teardown(void)
{
	vmpt_trace_close(trace);
	trace = NULL;
	writer_free(&w);
}

static void begin(bool pipe)
{
	writer_start_kvm(&w, pipe);
	writer_info(&w, false, WRITER_PRIVS);
}

static void open_written(void)
{
	struct vmpt_diag diag;

	writer_auxtrace(&w, 0, 1, 0, bytes, sizeof(bytes));
	writer_finish(&w);
	ck_assert_msg(!vmpt_trace_open_perf_memory(&trace, w.buf, w.size, &diag), "%s", diag.text);
	ck_assert_str_eq(diag.text, "");
	ck_assert_int_eq(vmpt_trace_events(trace, &events, &count), 0);
}

static void check_who(size_t i, enum vmpt_event_kind kind, int pid, int tid, int cpu, u64 time)
{
	ck_assert_uint_lt(i, count);
	ck_assert_uint_eq(events[i].kind, kind);
	ck_assert_int_eq(events[i].pid, pid);
	ck_assert_int_eq(events[i].tid, tid);
	ck_assert_int_eq(events[i].cpu, cpu);
	ck_assert_uint_eq(events[i].time, time);
}

/* File and pipe form, plain and compressed, with one event of each kind, the last ones first. */
static void write_all(bool packed)
{
	static const struct writer_exit exit = { 3, 0x80000021, 1, 0xfff0, 0x11, 0x22 };
	struct writer_at vcpu = { 70, 71, 2, 4000 }, other = { 80, 80, 1, 1000 };

	if (packed)
		writer_pack(&w);
	writer_switch(&w, false, false, &vcpu);
	vcpu.time = 5000;
	writer_kvm_entry(&w, 3, 0xffffffff81001234, &vcpu);
	vcpu.time = 6000;
	writer_kvm_exit(&w, &exit, &vcpu);
	vcpu.time = 7000;
	writer_switch(&w, true, true, &vcpu);
	writer_comm(&w, true, "qemu-system-x86", 80, 80, &other);
	other.time = 2000;
	writer_task(&w, PERF_RECORD_FORK, 80, 81, &other);
	other.time = 3000;
	writer_task(&w, PERF_RECORD_EXIT, 80, 81, &other);
	other.time = 3500;
	writer_kernel_record(&w, PERF_RECORD_ITRACE_START, 0, (u32[]){ 90, 91 }, 8, &other);
	other.time = 8000;
	writer_kernel_record(&w, PERF_RECORD_LOST, 0, (u64[]){ 100, 17 }, 16, &other);
	other.time = 9000;
	writer_kernel_record(&w, PERF_RECORD_LOST_SAMPLES, 0, (u64[]){ 5 }, 8, &other);
	other.time = 9500;
	writer_kernel_record(&w, PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT, "", 0, &other);
	if (packed)
		writer_flush(&w, 50, !w.pipe);
}

START_TEST(all_kinds)
{
	begin(_i & 1);
	write_all(_i & 2);
	open_written();
	ck_assert_uint_eq(count, 11);
	check_who(0, VMPT_EVENT_COMM, 80, 80, 1, 1000);
	ck_assert_str_eq(events[0].text, "qemu-system-x86");
	ck_assert(events[0].flag);
	check_who(1, VMPT_EVENT_FORK, 80, 81, 1, 2000);
	check_who(2, VMPT_EVENT_THREAD_END, 80, 81, 1, 3000);
	check_who(3, VMPT_EVENT_ITRACE_START, 90, 91, 1, 3500);
	check_who(4, VMPT_EVENT_SWITCH_IN, 70, 71, 2, 4000);
	ck_assert(!events[4].flag);
	check_who(5, VMPT_EVENT_KVM_ENTRY, 70, 71, 2, 5000);
	ck_assert_uint_eq(events[5].vcpu, 3);
	ck_assert_uint_eq(events[5].ip, 0xffffffff81001234);
	check_who(6, VMPT_EVENT_KVM_EXIT, 70, 71, 2, 6000);
	ck_assert_uint_eq(events[6].vcpu, 3);
	ck_assert_uint_eq(events[6].ip, 0xfff0);
	ck_assert_uint_eq(events[6].reason, 0x21);
	ck_assert(events[6].flag);
	ck_assert_uint_eq(events[6].info1, 0x11);
	ck_assert_uint_eq(events[6].info2, 0x22);
	check_who(7, VMPT_EVENT_SWITCH_OUT, 70, 71, 2, 7000);
	ck_assert(events[7].flag);
	check_who(8, VMPT_EVENT_LOST_EVENTS, 80, 80, 1, 8000);
	ck_assert_uint_eq(events[8].info1, 17);
	check_who(9, VMPT_EVENT_LOST_EVENTS, 80, 80, 1, 9000);
	ck_assert_uint_eq(events[9].info1, 5);
	check_who(10, VMPT_EVENT_SWITCH_OUT, 80, 80, 1, 9500);
	ck_assert(!events[10].flag);
}
END_TEST

/* Counters of the open are not counted again, and a second call returns the same. */
/* u64 nr, then u64 id, idx, cpu, tid: of the dummy event (id 100) and of intel_pt (101), here. */
static void write_index(u64 cut)
{
	static const u64 index[] = { 5, 100,   0,   7, ~0ULL, 101,   0,	  0, ~0ULL, 101, 1,
				     3, ~0ULL, 100, 1, 8,     ~0ULL, 101, 2, ~0ULL, 77 };

	writer_record(&w, 69, index, sizeof(index) - cut);
}

/* The CPUs of the intel_pt event, and no others; a CPU of -1 is a thread's. */
START_TEST(recorded_cpus)
{
	size_t i, n = 0;

	writer_start_kvm(&w, _i & 1);
	if (_i & 2)
		write_index(0);
	writer_info(&w, false, WRITER_PRIVS);
	if (!(_i & 2))
		write_index(0);
	/* The last complete one is of CPU 8, and the dummy's. */
	write_index(33);
	write_index(sizeof(u64[21]));
	open_written();
	for (i = 0; i < count; i++) {
		ck_assert_int_eq(events[i].kind, VMPT_EVENT_RECORDED);
		ck_assert_int_eq(events[i].cpu, n & 1 ? 3 : 0);
		ck_assert_uint_eq(events[i].time, 0);
		n++;
	}
	ck_assert_uint_eq(n, 4);
}
END_TEST

START_TEST(asked_twice)
{
	const struct vmpt_event *again;
	size_t n;

	begin(false);
	write_all(false);
	open_written();
	ck_assert_uint_eq(vmpt_trace_info(trace)->lost_events, 22);
	ck_assert_int_eq(vmpt_trace_events(trace, &again, &n), 0);
	ck_assert_ptr_eq(again, events);
	ck_assert_uint_eq(n, count);
	ck_assert_uint_eq(vmpt_trace_streams(trace), 1);
}
END_TEST

/* Two of the same time stay in file order; one without a time stays after the one before it. */
START_TEST(order)
{
	struct writer_at at = { 1, 1, 0, 500 };
	static const u32 tids[] = { 4, 5, 1, 2, 3 };
	size_t i;

	begin(false);
	writer_switch(&w, true, false, &at);
	at.tid = 2;
	at.time = 0;
	writer_switch(&w, true, false, &at);
	at.tid = 3;
	at.time = 500;
	writer_switch(&w, true, false, &at);
	at.tid = 4;
	at.time = 400;
	writer_switch(&w, true, false, &at);
	at.tid = 5;
	writer_switch(&w, true, false, &at);
	open_written();
	ck_assert_uint_eq(count, VMPT_ARRAY_SIZE(tids));
	for (i = 0; i < count; i++)
		ck_assert_int_eq(events[i].tid, (int)tids[i]);
	ck_assert_uint_eq(events[3].tsc, 0);
	ck_assert_uint_ne(events[2].tsc, 0);
}
END_TEST

/* AMD's exits have other reasons, and an unknown reason is not one of VMX. */
START_TEST(other_isa)
{
	static const struct writer_exit exit = { 0, 0x400, 2, 0x1000, 1, 2 };
	static const struct writer_at at = { 1, 2, 0, 10 };

	begin(true);
	writer_kvm_exit(&w, &exit, &at);
	open_written();
	ck_assert_uint_eq(count, 1);
	ck_assert_uint_eq(events[0].reason, VMPT_EVENT_NO_REASON);
	ck_assert_uint_eq(events[0].ip, 0x1000);
}
END_TEST

/*
 * Raw data that is cut: fields after its end are not known. Without formats, in a file with the
 * attrs of the tracepoints, samples are no events.
 */
START_TEST(no_fields)
{
	static const struct writer_at at = { 1, 2, 0, 10 };
	u8 record[80] = { 103 };
	u32 size = 12;

	writer_start_kvm(&w, false);
	w.kvm = _i == 0;
	writer_info(&w, false, WRITER_PRIVS);
	record[40] = 1;
	memcpy(record + 24, &at.time, 8);
	memcpy(record + 48, &size, 4);
	record[60] = 12; /* exit_reason */
	writer_record(&w, PERF_RECORD_SAMPLE, record, 52 + 12);
	size = 4000; /* more than the record has */
	memcpy(record + 48, &size, 4);
	writer_record(&w, PERF_RECORD_SAMPLE, record, 52 + 12);
	open_written();
	ck_assert_uint_eq(count, _i == 0);
	if (!count)
		return;
	ck_assert_uint_eq(events[0].reason, 12);
	ck_assert_uint_eq(events[0].vcpu, VMPT_EVENT_NO_VCPU);
	ck_assert_uint_eq(events[0].ip, 0);
}
END_TEST

/* A raw trace has no events. */
START_TEST(raw_trace)
{
	char path[WRITER_PATH];

	w = (struct perf_writer){ 0 };
	writer_bytes(&w, bytes, sizeof(bytes));
	writer_save(&w, path);
	ck_assert_int_eq(vmpt_trace_open_raw(&trace, path, 0, NULL), 0);
	remove(path);
	events = (const struct vmpt_event *)&w;
	ck_assert_int_eq(vmpt_trace_events(trace, &events, &count), 0);
	ck_assert_uint_eq(count, 0);
	ck_assert_ptr_null(events);
}
END_TEST

/*
 * Any byte of the file changed, or the file cut anywhere: an error, or plausible events. Reads
 * outside of the file are left to the sanitizer.
 */
START_TEST(hostile)
{
	struct test_rng rng = { 11 + (u64)_i };
	const struct vmpt_event *e;
	struct vmpt_trace *t;
	size_t i, k, n, size;
	u8 *file, *copy;

	begin(_i & 1);
	write_all(_i & 2);
	writer_auxtrace(&w, 0, 1, 0, bytes, sizeof(bytes));
	writer_finish(&w);
	file = w.buf;
	for (i = 0; i < 3000; i++) {
		size = i % 3 ? w.size : test_random(&rng) % w.size;
		copy = malloc(size + 1);
		ck_assert_ptr_nonnull(copy);
		memcpy(copy, file, size);
		for (k = test_random(&rng) % 4; k && size; k--)
			copy[test_random(&rng) % size] = (u8)test_random(&rng);
		if (!vmpt_trace_open_perf_memory(&t, copy, size, NULL)) {
			if (!vmpt_trace_events(t, &e, &n)) {
				for (k = 0; k < n; k++) {
					ck_assert_uint_le(e[k].kind, VMPT_EVENT_KVM_GPA);
					ck_assert_int_eq(!e[k].text, e[k].kind != VMPT_EVENT_COMM);
				}
			}
			vmpt_trace_close(t);
		}
		free(copy);
	}
}
END_TEST

/* perf's formula (tools/perf/util/tsc.c), worked out by hand for a few, then there and back. */
START_TEST(times)
{
	/* Shift 31 and multiplier 2^30: half a nanosecond a tick */
	struct vmpt_trace_info info = {
		.has_time_conv = true, .time_shift = 31, .time_mult = 1u << 30, .time_zero = 1000
	};
	struct test_rng rng = { 5 };
	size_t i;

	ck_assert_uint_eq(vmpt_perf_time_to_tsc(&info, 1000), 0);
	ck_assert_uint_eq(vmpt_perf_time_to_tsc(&info, 1001), 2);
	ck_assert_uint_eq(vmpt_perf_time_to_tsc(&info, 1000 + (1ULL << 60)), 1ULL << 61);
	/* time_zero of a TSC that did not start at 0 is "negative" */
	info.time_zero = -500ULL;
	ck_assert_uint_eq(vmpt_perf_time_to_tsc(&info, 500), 2000);
	/* A TSC above its 56th bit */
	info.time_zero = 0;
	ck_assert_uint_eq(vmpt_perf_time_to_tsc(&info, 1ULL << 56), 1ULL << 57);
	info.time_mult = WRITER_MULT;
	info.time_zero = WRITER_ZERO;
	for (i = 0; i < 10000; i++) {
		u64 tsc = test_random(&rng) >> (8 + i % 40);
		u64 ns = vmpt_tsc_to_perf_time(&info, tsc);
		u64 back = vmpt_perf_time_to_tsc(&info, ns);

		/* 0.313 ns a tick: four ticks of one nanosecond are the same */
		ck_assert_msg(back <= tsc + 1 && tsc - back + 1 <= 5,
			      "TSC %" PRIu64 " is %" PRIu64 " ns is TSC %" PRIu64, tsc, ns, back);
	}
}
END_TEST

/* ---- the perf tool ---- */

/* "COMM PID/TID [CPU] SECONDS.NS: PERF_RECORD_SWITCH_CPU_WIDE OUT ..." as an event. */
static bool parse_line(const char *line, struct vmpt_event *event)
{
	const char *bracket = strchr(line, '['), *record = strstr(line, "PERF_RECORD_"), *who;
	u64 s, ns;

	if (!record || !bracket ||
	    sscanf(bracket, "[%d] %" SCNu64 ".%9" SCNu64, &event->cpu, &s, &ns) != 3)
		return false;
	for (who = bracket; who > line && who[-1] == ' '; who--)
		;
	for (; who > line && who[-1] != ' '; who--)
		;
	if (sscanf(who, "%d/%d", &event->pid, &event->tid) != 2)
		return false;
	event->time = s * 1000000000 + ns;
	if (!strncmp(record, "PERF_RECORD_SWITCH_CPU_WIDE ", 28))
		event->kind = record[28] == 'O' ? VMPT_EVENT_SWITCH_OUT : VMPT_EVENT_SWITCH_IN;
	else if (!strncmp(record, "PERF_RECORD_COMM", 16))
		event->kind = VMPT_EVENT_COMM;
	else if (!strncmp(record, "PERF_RECORD_EXIT", 16))
		event->kind = VMPT_EVENT_THREAD_END;
	else
		return false;
	return true;
}

/* host-loopy.perf.data: 228 switches, 2 names, an end and a start of the trace. */
START_TEST(real)
{
	const char *path = test_data("host-loopy.perf.data");
	char command[4200], line[1024];
	size_t i = 0, kinds[VMPT_EVENT_RECORDED + 1] = { 0 };
	FILE *f;

	if (!path)
		return;
	ck_assert_int_eq(vmpt_trace_open(&trace, path, -1, NULL), 0);
	ck_assert_int_eq(vmpt_trace_events(trace, &events, &count), 0);
	for (i = 0; i < count; i++)
		kinds[events[i].kind]++;
	ck_assert_uint_eq(kinds[VMPT_EVENT_SWITCH_IN] + kinds[VMPT_EVENT_SWITCH_OUT], 228);
	ck_assert_uint_eq(kinds[VMPT_EVENT_COMM], 2);
	ck_assert_uint_eq(kinds[VMPT_EVENT_THREAD_END], 1);
	ck_assert_uint_eq(kinds[VMPT_EVENT_ITRACE_START], 1);
	ck_assert_uint_eq(count, 232);
	if (system("perf version >/dev/null 2>&1")) {
		test_skip("no perf tool");
		return;
	}
	snprintf(command, sizeof(command),
		 "perf script -f --no-itrace --ns --show-switch-events --show-task-events "
		 "-F comm,pid,tid,cpu,time -i '%s' 2>/dev/null",
		 path);
	f = popen(command, "r");
	ck_assert_ptr_nonnull(f);
	for (i = 0; fgets(line, sizeof(line), f);) {
		struct vmpt_event said = { 0 };

		if (!parse_line(line, &said))
			continue;
		/* perf does not print these. */
		if (i < count && events[i].kind == VMPT_EVENT_ITRACE_START)
			i++;
		/* Of the first name, which has no time, perf prints 0/0 and CPU 0. */
		if (i)
			check_who(i, said.kind, said.pid, said.tid, said.cpu, said.time);
		i++;
	}
	ck_assert_int_eq(pclose(f), 0);
	ck_assert_uint_eq(i, count);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("perf-events");
	TCase *tc = tcase_create("events");

	tcase_add_checked_fixture(tc, NULL, teardown);
	tcase_add_loop_test(tc, all_kinds, 0, 4);
	tcase_add_loop_test(tc, recorded_cpus, 0, 4);
	tcase_add_test(tc, asked_twice);
	tcase_add_test(tc, order);
	tcase_add_test(tc, other_isa);
	tcase_add_loop_test(tc, no_fields, 0, 2);
	tcase_add_test(tc, raw_trace);
	tcase_add_loop_test(tc, hostile, 0, 4);
	tcase_add_test(tc, times);
	tcase_add_test(tc, real);
	suite_add_tcase(suite, tc);
	return suite;
}
