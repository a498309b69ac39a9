/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A small writer of perf.data files for the tests: Intel PT traces as written by perf record, in
 * file or pipe form, in memory. Every function aborts on wrong use and when memory runs out.
 */
#ifndef VMPT_TESTS_PERF_WRITER_H
#define VMPT_TESTS_PERF_WRITER_H

#include "arch/types.h"

#define WRITER_PMU_TYPE 8
#define WRITER_CONFIG	0x300e601
#define WRITER_SHIFT	31
#define WRITER_MULT	672770566
#define WRITER_ZERO	0x1234567890ULL
#define WRITER_PRIVS	17
#define WRITER_ENTRY_ID 1901
#define WRITER_EXIT_ID	1902
#define WRITER_MSR_ID	1903
#define WRITER_FAULT_ID 1904

struct perf_writer {
	u8 *buf;
	size_t size, room;
	bool pipe;
	size_t records; /* where they start */
	u64 index[256]; /* of AUXTRACE records */
	size_t index_count;
	/* Compression */
	void *zstd;
	u8 *plain;
	size_t plain_size, plain_room;
	bool compressed;
	bool kvm; /* has the tracepoints kvm:kvm_entry and kvm:kvm_exit */
};

/* Write header and attrs: an intel_pt event and a dummy one before it. */
void writer_start(struct perf_writer *w, bool pipe);
/* With this config of the intel_pt event; its bits are those of IA32_RTIT_CTL. */
void writer_start_config(struct perf_writer *w, bool pipe, u64 config);
/* With two more attrs, the tracepoints of KVM, and their formats. */
void writer_start_kvm(struct perf_writer *w, bool pipe);
/* With kvm:kvm_msr and kvm:kvm_page_fault as well. */
void writer_start_kvm_more(struct perf_writer *w, bool pipe);
void writer_bytes(struct perf_writer *w, const void *bytes, size_t n);
/* A record with its header. Between writer_pack() and writer_flush() it is held back. */
void writer_record(struct perf_writer *w, u32 type, const void *payload, size_t n);
/* AUXTRACE_INFO with the first @privs fields. */
void writer_info(struct perf_writer *w, bool snapshot, unsigned int privs);
/* AUXTRACE and its data, padded to 8 bytes as by perf. Returns the data's place. */
size_t writer_auxtrace(struct perf_writer *w, int cpu, int tid, u64 aux_offset, const u8 *data,
		       size_t n);
/* AUX with its sample_id. */
void writer_aux(struct perf_writer *w, int cpu, int tid, u64 aux_offset, u64 n, u64 flags);
void writer_lost(struct perf_writer *w, u64 lost);

/* ---- events (perf-writer-events.c) ---- */

/* CPU, thread and time for sample_id. */
struct writer_at {
	u32 pid, tid, cpu;
	u64 time;
};

/* tracefs's description of the two tracepoints, as perf copies it; its size. @w may be NULL. */
size_t writer_tracing(struct perf_writer *w);
/* The same as a record of the pipe form. */
void writer_tracing_record(struct perf_writer *w);
/* Any record of the kernel's: @n bytes, then sample_id. */
void writer_kernel_record(struct perf_writer *w, u32 type, u16 misc, const void *payload, size_t n,
			  const struct writer_at *at);
void writer_switch(struct perf_writer *w, bool out, bool preempted, const struct writer_at *at);
/* type: PERF_RECORD_FORK or PERF_RECORD_EXIT */
void writer_task(struct perf_writer *w, u32 type, u32 pid, u32 tid, const struct writer_at *at);
void writer_comm(struct perf_writer *w, bool exec, const char *name, u32 pid, u32 tid,
		 const struct writer_at *at);
void writer_kvm_entry(struct perf_writer *w, u32 vcpu, u64 rip, const struct writer_at *at);
struct writer_exit {
	u32 vcpu, reason, isa;
	u64 rip, info1, info2;
};
void writer_kvm_exit(struct perf_writer *w, const struct writer_exit *exit,
		     const struct writer_at *at);

/* kvm:kvm_msr and kvm:kvm_page_fault; after writer_start_kvm_more(). */
void writer_kvm_msr(struct perf_writer *w, u32 write, u32 msr, const struct writer_at *at);
void writer_kvm_page_fault(struct perf_writer *w, u64 gpa, const struct writer_at *at);

/* Hold back records, then write them compressed, at most @piece bytes per record. */
void writer_pack(struct perf_writer *w);
void writer_flush(struct perf_writer *w, size_t piece, bool type2);

/*
 * Begin a file of CPUs 0 and 1, with alternating buffers: of CPU 1 bytes 0 to 135 of @bytes, of CPU
 * 0 1000 to 1127, with a gap at 80. Other records are compressed @compressed bytes at a time; 0:
 * not compressed.
 */
void writer_two_cpus(struct perf_writer *w, const u8 *bytes, bool pipe, size_t compressed);

/* Write sizes and features; nothing can be added after it. */
void writer_finish(struct perf_writer *w);
void writer_free(struct perf_writer *w);
#define WRITER_PATH 4096
/* Write it to a temporary file, whose name is put in @path of WRITER_PATH bytes. */
void writer_save(const struct perf_writer *w, char *path);

#endif
