// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The records of a perf.data other than the trace: context switches, threads, and KVM's tracepoints
 * with their formats as in Linux 6.12 (arch/x86/kvm/trace.h), which perf copies from tracefs
 * (tools/perf/util/trace-event-info.c).
 */
#include <linux/perf_event.h>

#include "tests/decoder/perf-writer.h"

#define COMMON                                                                         \
	"format:\n"                                                                    \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"         \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"         \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

static const char entry_format[] =
	"name: kvm_entry\nID: 1901\n" COMMON
	"\tfield:unsigned int vcpu_id;\toffset:8;\tsize:4;\tsigned:0;\n"
	"\tfield:unsigned long rip;\toffset:16;\tsize:8;\tsigned:0;\n"
	"\tfield:bool immediate_exit;\toffset:24;\tsize:1;\tsigned:0;\n"
	"\nprint fmt: \"vcpu %u, rip 0x%lx%s\", REC->vcpu_id, REC->rip\n";

static const char exit_format[] =
	"name: kvm_exit\nID: 1902\n" COMMON
	"\tfield:unsigned int exit_reason;\toffset:8;\tsize:4;\tsigned:0;\n"
	"\tfield:unsigned long guest_rip;\toffset:16;\tsize:8;\tsigned:0;\n"
	"\tfield:u32 isa;\toffset:24;\tsize:4;\tsigned:0;\n"
	"\tfield:u64 info1;\toffset:32;\tsize:8;\tsigned:0;\n"
	"\tfield:u64 info2;\toffset:40;\tsize:8;\tsigned:0;\n"
	"\tfield:u32 intr_info;\toffset:48;\tsize:4;\tsigned:0;\n"
	"\tfield:u32 error_code;\toffset:52;\tsize:4;\tsigned:0;\n"
	"\tfield:unsigned int vcpu_id;\toffset:56;\tsize:4;\tsigned:0;\n"
	"\nprint fmt: \"vcpu %u reason %s\", REC->vcpu_id\n";

static const char msr_format[] = "name: kvm_msr\nID: 1903\n" COMMON
				 "\tfield:unsigned write;\toffset:8;\tsize:4;\tsigned:0;\n"
				 "\tfield:u32 ecx;\toffset:12;\tsize:4;\tsigned:0;\n"
				 "\tfield:u64 data;\toffset:16;\tsize:8;\tsigned:0;\n"
				 "\tfield:u8 exception;\toffset:24;\tsize:1;\tsigned:0;\n"
				 "\nprint fmt: \"msr_%s %x\", REC->ecx\n";

static const char fault_format[] =
	"name: kvm_page_fault\nID: 1904\n" COMMON
	"\tfield:unsigned int vcpu_id;\toffset:8;\tsize:4;\tsigned:0;\n"
	"\tfield:unsigned long guest_rip;\toffset:16;\tsize:8;\tsigned:0;\n"
	"\tfield:u64 fault_address;\toffset:24;\tsize:8;\tsigned:0;\n"
	"\tfield:u64 error_code;\toffset:32;\tsize:8;\tsigned:0;\n"
	"\nprint fmt: \"vcpu %u\", REC->vcpu_id\n";

/* Has an id of its own, and fields of the same names: it is of another system. */
static const char other_format[] = "name: kvm_exit\nID: 1902\n" COMMON
				   "\tfield:int vcpu_id;\toffset:12;\tsize:4;\tsigned:1;\n";

static size_t put(struct perf_writer *w, const void *bytes, size_t n)
{
	if (w)
		writer_bytes(w, bytes, n);
	return n;
}

/* u64 size, then the text without its zero */
static size_t put_text(struct perf_writer *w, const char *text)
{
	u64 size = strlen(text);

	return put(w, &size, 8) + put(w, text, size);
}

size_t writer_tracing(struct perf_writer *w)
{
	static const u8 magic[] = "\x17\x08\x44tracing0.6";
	static const u8 machine[] = { 0, 8, 0, 0x10, 0, 0 }; /* little-endian, long, page */
	static const u32 zero, one = 1, two = 2, four = 4;
	u64 none = 0;
	size_t n = put(w, magic, sizeof(magic)) + put(w, machine, sizeof(machine));

	n += put(w, "header_page", 12) + put_text(w, "\tfield: u64 timestamp;\n");
	n += put(w, "header_event", 13) + put_text(w, "# compressed entry header\n");
	n += put(w, &one, 4) + put_text(w, "name: function\nID: 1\n");
	n += put(w, &two, 4); /* systems */
	n += put(w, "kvm", 4) + put(w, &four, 4);
	n += put_text(w, entry_format) + put_text(w, exit_format);
	n += put_text(w, msr_format) + put_text(w, fault_format);
	n += put(w, "other", 6) + put(w, &one, 4) + put_text(w, other_format);
	n += put(w, &zero, 4) + put(w, &zero, 4) + put(w, &none, 8); /* kallsyms, printk, names */
	return n + put(w, &none, -n & 7);
}

void writer_tracing_record(struct perf_writer *w)
{
	u32 size = (u32)writer_tracing(NULL);

	writer_record(w, 66, &size, 4);
	writer_tracing(w);
}

/* The fields of sample_type as perf-writer.c sets it, with @id. */
static void sample_id(u8 *to, const struct writer_at *at, u64 id)
{
	const u32 task[2] = { at->pid, at->tid }, cpu[2] = { at->cpu, 0 };

	memcpy(to, task, 8);
	memcpy(to + 8, &at->time, 8);
	memcpy(to + 16, cpu, 8);
	memcpy(to + 24, &id, 8);
}

/* writer_record() and the header's misc. */
static void put_record(struct perf_writer *w, u32 type, u16 misc, const void *payload, size_t n)
{
	u8 *header;

	writer_record(w, type, payload, n);
	header = w->zstd ? w->plain + w->plain_size : w->buf + w->size;
	memcpy(header - n - 8 + 4, &misc, 2);
}

void writer_kernel_record(struct perf_writer *w, u32 type, u16 misc, const void *payload, size_t n,
			  const struct writer_at *at)
{
	u8 record[256];

	memcpy(record, payload, n);
	sample_id(record + n, at, 100);
	put_record(w, type, misc, record, n + 32);
}

void writer_switch(struct perf_writer *w, bool out, bool preempted, const struct writer_at *at)
{
	u32 next_prev[2] = { 0, 0 };
	u16 misc = (u16)((out ? PERF_RECORD_MISC_SWITCH_OUT : 0) |
			 (preempted ? PERF_RECORD_MISC_SWITCH_OUT_PREEMPT : 0));

	writer_kernel_record(w, PERF_RECORD_SWITCH_CPU_WIDE, misc, next_prev, 8, at);
}

void writer_task(struct perf_writer *w, u32 type, u32 pid, u32 tid, const struct writer_at *at)
{
	struct {
		u32 pid, ppid, tid, ptid;
		u64 time;
	} payload = { pid, 1, tid, 1, at->time };

	writer_kernel_record(w, type, 0, &payload, sizeof(payload), at);
}

void writer_comm(struct perf_writer *w, bool exec, const char *name, u32 pid, u32 tid,
		 const struct writer_at *at)
{
	struct {
		u32 pid, tid;
		char name[16];
	} payload = { pid, tid, { 0 } };

	memcpy(payload.name, name, strnlen(name, 15));
	writer_kernel_record(w, PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0, &payload,
			     8 + (strnlen(name, 15) + 8) / 8 * 8, at);
}

/* IDENTIFIER, IP, TID, TIME, CPU, PERIOD, u32 size, raw */
static void sample(struct perf_writer *w, u64 id, const void *raw, u32 raw_size,
		   const struct writer_at *at)
{
	u64 ip = 0xffffffff81000000, period = 1;
	u8 record[256];

	sample_id(record + 16, at, period);
	memcpy(record, &id, 8);
	memcpy(record + 8, &ip, 8);
	memcpy(record + 48, &raw_size, 4);
	memcpy(record + 52, raw, raw_size);
	writer_record(w, PERF_RECORD_SAMPLE, record, 52 + raw_size);
}

void writer_kvm_entry(struct perf_writer *w, u32 vcpu, u64 rip, const struct writer_at *at)
{
	struct {
		u16 type;
		u8 flags, preempt;
		u32 pid, vcpu, hole;
		u64 rip, immediate;
		u32 end;
	} __attribute__((packed)) raw = { WRITER_ENTRY_ID, 0, 0, at->tid, vcpu, 0, rip, 0, 0 };

	sample(w, 102, &raw, sizeof(raw), at);
}

void writer_kvm_exit(struct perf_writer *w, const struct writer_exit *exit,
		     const struct writer_at *at)
{
	struct {
		u16 type;
		u8 flags, preempt;
		u32 pid, reason, hole;
		u64 rip;
		u32 isa, hole2;
		u64 info1, info2;
		u32 intr_info, error_code, vcpu;
	} __attribute__((packed)) raw = {
		WRITER_EXIT_ID, 0,	     0, at->tid, exit->reason, 0, exit->rip, exit->isa, 0,
		exit->info1,	exit->info2, 0, 0,	 exit->vcpu,
	};

	sample(w, 103, &raw, sizeof(raw), at);
}

void writer_kvm_msr(struct perf_writer *w, u32 write, u32 msr, const struct writer_at *at)
{
	struct {
		u16 type;
		u8 flags, preempt;
		u32 pid, write, ecx;
		u64 data;
		u32 exception;
	} __attribute__((packed)) raw = { WRITER_MSR_ID, 0, 0, at->tid, write, msr, 77, 0 };

	sample(w, 104, &raw, sizeof(raw), at);
}

void writer_kvm_page_fault(struct perf_writer *w, u64 gpa, const struct writer_at *at)
{
	struct {
		u16 type;
		u8 flags, preempt;
		u32 pid, vcpu, hole;
		u64 rip, address, error;
		u32 end;
	} __attribute__((packed)) raw = { WRITER_FAULT_ID, 0, 0, at->tid, 0, 0, 0, gpa, 0, 0 };

	sample(w, 105, &raw, sizeof(raw), at);
}
