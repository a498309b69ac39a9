// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* decoder/pt/vms.c: whether packets say that there are VMs, in traces written out by hand. */
#include <stdlib.h>

#include "tests/decoder/notation.h"
#include "tests/support/support.h"

#define USER "psb exec:64 cbr:8 psbend pge:4000 tnt:TN pgd:- pge:4004 tnt:T "
#define HOST "psb exec:64 pip:1000 cbr:8 psbend pge:f000 tnt:T pip:5000 tip:f100 "

static const struct {
	const char *trace;
	enum vmpt_vms vms;
	u8 kind;
} rows[] = {
	{ "", VMPT_VMS_NO_PACKETS, 0 },
	{ "tnt:T pip:2000:nr tip:8000", VMPT_VMS_NO_PACKETS, 0 }, /* before the first PSB: a loss */
	{ USER, VMPT_VMS_UNSAID, 0 },
	{ USER "ovf fup:4000 cfe:INTR:ip fup:4004 cfe:IRET evd:PFA:1234 tsc:5", VMPT_VMS_UNSAID,
	  0 },
	{ HOST, VMPT_VMS_NONE, 0 },
	{ HOST USER "cfe:INTR:ip fup:4004 cfe:SMI cfe:RSM evd:PFA:1", VMPT_VMS_NONE, 0 },
	{ USER HOST "pip:2000:nr tip:8000", VMPT_VMS_SEEN, VMPT_PT_PIP },
	{ HOST "psb pip:2000:nr psbend", VMPT_VMS_SEEN, VMPT_PT_PIP },
	{ HOST "vmcs:a000 tnt:T", VMPT_VMS_SEEN, VMPT_PT_VMCS },
	{ HOST "psb pip:1000 vmcs:none psbend", VMPT_VMS_SEEN, VMPT_PT_VMCS },
	{ USER "cfe:VMENTRY:ip fup:4004", VMPT_VMS_SEEN, VMPT_PT_CFE },
	{ USER "cfe:VMEXIT", VMPT_VMS_SEEN, VMPT_PT_CFE },
	{ USER "cfe:VMEXIT_INTR", VMPT_VMS_SEEN, VMPT_PT_CFE },
	{ USER "evd:VMXQ:0", VMPT_VMS_SEEN, VMPT_PT_EVD },
	{ USER "evd:VMXR:1", VMPT_VMS_SEEN, VMPT_PT_EVD },
	{ USER "raw:05 tnt:T pip:2000:nr " HOST, VMPT_VMS_NONE, 0 }, /* in lost bytes */
};

START_TEST(a4_packets_that_say_that_there_are_vms)
{
	static const struct vmpt_options options[] = { { 0 },
						       { .scalar = true },
						       { .threads = 3, .chunk = 16 },
						       { .lanes = 1, .chunk = 64 } };
	static struct notation n;
	const struct vmpt_stream *stream = &n.stream;
	struct vmpt_vms_found found;
	struct vmpt_pt_packet pkt;
	size_t i;

	notation_read(&n, rows[_i].trace);
	for (i = 0; i < VMPT_ARRAY_SIZE(options); i++) {
		ck_assert_int_eq(vmpt_vms_find(&stream, 1, &options[i], &found), 0);
		ck_assert_msg(found.vms == rows[_i].vms, "%s: %d", rows[_i].trace, found.vms);
		if (found.vms != VMPT_VMS_SEEN)
			continue;
		ck_assert_uint_eq(found.kind, rows[_i].kind);
		ck_assert_int_eq(
			vmpt_pt_decode(&pkt, n.bytes + found.offset, n.size - found.offset, 0), 0);
		ck_assert_uint_eq(pkt.kind, rows[_i].kind);
	}
}
END_TEST

START_TEST(a4_from_the_first_byte)
{
	struct vmpt_options headless = { .headless = true };
	static struct notation n;
	const struct vmpt_stream *stream = &n.stream;
	struct vmpt_vms_found found;

	notation_read(&n, "tnt:T pip:2000:nr tip:8000");
	ck_assert_int_eq(vmpt_vms_find(&stream, 1, &headless, &found), 0);
	ck_assert_int_eq(found.vms, VMPT_VMS_SEEN);
	ck_assert_uint_eq(found.offset, 1);
	notation_read(&n, "tnt:T pip:2000 tip:8000");
	ck_assert_int_eq(vmpt_vms_find(&stream, 1, &headless, &found), 0);
	ck_assert_int_eq(found.vms, VMPT_VMS_NONE);
}
END_TEST

#define MANY (3u << 20)

/* Two CPUs: @first packets repeated over MANY bytes, then @end; the second CPU is @second. */
static struct vmpt_vms_found find_in_two(const char *first, const char *end, const char *second,
					 unsigned int threads)
{
	static struct notation n, last, other;
	struct vmpt_options options = { .threads = threads };
	struct vmpt_stream stream[2];
	const struct vmpt_stream *both[2] = { &stream[0], &stream[1] };
	struct vmpt_gap gap = { .offset = 2u << 20 };
	struct vmpt_vms_found found;
	u8 *bytes = malloc(MANY + sizeof(last.bytes));
	size_t at;

	notation_read(&n, first);
	notation_read(&last, end);
	notation_read(&other, second);
	for (at = 0; at + n.size <= MANY; at += n.size)
		memcpy(bytes + at, n.bytes, n.size);
	memcpy(bytes + at, last.bytes, last.size);
	stream[0] = n.stream;
	stream[0].data = bytes;
	stream[0].size = at + last.size;
	gap.offset = (2u << 20) / n.size * n.size;
	stream[0].gaps = &gap;
	stream[0].gap_count = 1;
	stream[1] = other.stream;
	ck_assert_int_eq(vmpt_vms_find(both, 2, &options, &found), 0);
	free(bytes);
	return found;
}

START_TEST(a4_all_cpus_decide)
{
	unsigned int threads;

	for (threads = 1; threads <= 4; threads += 3) {
		struct vmpt_vms_found f = find_in_two(USER, HOST, USER, threads);

		ck_assert_int_eq(f.vms, VMPT_VMS_NONE);
		/* At the very end of one CPU. */
		f = find_in_two(HOST, "psb vmcs:a000 psbend", USER, threads);
		ck_assert_int_eq(f.vms, VMPT_VMS_SEEN);
		ck_assert_uint_eq(f.stream, 0);
		ck_assert_uint_eq(f.kind, VMPT_PT_VMCS);
		ck_assert_uint_gt(f.offset, MANY - 200);
		/* The heads of all come first. */
		f = find_in_two(HOST, "psb vmcs:a000 psbend", HOST "pip:2000:nr tip:8000", threads);
		ck_assert_uint_eq(f.stream, 1);
		ck_assert_uint_eq(f.kind, VMPT_PT_PIP);
	}
}
END_TEST

struct reached {
	u64 last;
	unsigned int calls;
};

static void on_progress(void *opaque, u64 bytes)
{
	struct reached *r = opaque;

	ck_assert_uint_ge(bytes, r->last);
	r->last = bytes;
	r->calls++;
}

/* Progress counts the bytes of all CPUs, and a scan ends at the first proof. */
START_TEST(a4_progress_over_all_cpus)
{
	static const char *const first[] = { "psb psbend", "psb vmcs:a000 psbend" };
	struct reached r[2] = { 0 };
	u8 *bytes = calloc(2, MANY);
	struct notation *n = calloc(1, sizeof(*n));
	int i;

	for (i = 0; i < 2; i++) {
		struct vmpt_options options = { .progress = on_progress,
						.progress_opaque = &r[i],
						.threads = 2 };
		struct vmpt_stream stream[2];
		const struct vmpt_stream *both[2] = { &stream[0], &stream[1] };
		struct vmpt_vms_found found;

		/* PADs, and at 2 MiB the packets */
		notation_read(n, "psb psbend");
		memcpy(bytes, n->bytes, n->size);
		notation_read(n, first[i]);
		memcpy(bytes + (2 << 20), n->bytes, n->size);
		stream[0] = n->stream;
		stream[0].data = bytes;
		stream[0].size = 2 * MANY;
		stream[1] = stream[0];
		stream[1].size = 1 << 20;
		ck_assert_int_eq(vmpt_vms_find(both, 2, &options, &found), 0);
		ck_assert_int_eq(found.vms, i ? VMPT_VMS_SEEN : VMPT_VMS_UNSAID);
		ck_assert_uint_gt(r[i].calls, 1);
	}
	ck_assert_uint_eq(r[0].last, 2 * MANY);
	ck_assert_uint_lt(r[1].last, 3 << 20);
	free(n);
	free(bytes);
}
END_TEST

/* A stream of RTIT has bytes like those of a PIP; they say nothing. */
START_TEST(a4_rtit_says_nothing)
{
	static struct notation n;
	const struct vmpt_stream *stream = &n.stream;
	struct vmpt_vms_found found;

	notation_read(&n, HOST "pip:2000:nr tip:8000");
	n.stream.isa = VMPT_ISA_RTIT;
	ck_assert_int_eq(vmpt_vms_find(&stream, 1, NULL, &found), 0);
	ck_assert_int_eq(found.vms, VMPT_VMS_NO_PACKETS);
}
END_TEST

/* By what recorded them: guests under KVM, a program and a debugger on hosts without VMs. */
static const struct {
	const char *file;
	enum vmpt_vms vms;
} real[] = {
	{ "guest-mruby.pt", VMPT_VMS_SEEN },	     { "guest-two-vmcs.pt", VMPT_VMS_SEEN },
	{ "guest-unzip.pt", VMPT_VMS_SEEN },	     { "host-lldb.pt", VMPT_VMS_UNSAID },
	{ "host-loopy.perf.data", VMPT_VMS_UNSAID },
};

START_TEST(a4_real_traces)
{
	const char *path = test_data(real[_i].file);
	const struct vmpt_stream *stream;
	struct vmpt_vms_found found;
	struct vmpt_trace *t;

	if (!path)
		return;
	ck_assert_int_eq(vmpt_trace_open(&t, path, -1, NULL), 0);
	stream = vmpt_trace_stream(t, 0);
	ck_assert_int_eq(vmpt_vms_find(&stream, 1, NULL, &found), 0);
	ck_assert_int_eq(found.vms, real[_i].vms);
	vmpt_trace_close(t);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/vms");
	TCase *t = tcase_create("vms");

	tcase_add_loop_test(t, a4_packets_that_say_that_there_are_vms, 0, VMPT_ARRAY_SIZE(rows));
	tcase_add_test(t, a4_from_the_first_byte);
	tcase_add_test(t, a4_all_cpus_decide);
	tcase_add_test(t, a4_progress_over_all_cpus);
	tcase_add_test(t, a4_rtit_says_nothing);
	tcase_add_loop_test(t, a4_real_traces, 0, VMPT_ARRAY_SIZE(real));
	suite_add_tcase(s, t);
	return s;
}
