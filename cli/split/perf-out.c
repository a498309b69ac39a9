// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * perf.data files; see perf.data-file-format.txt of Linux. Before the trace: header, ids,
 * one attr, AUXTRACE_INFO, the process's name, its code, and that it runs from the start.
 * After it: the features, among them the index that perf needs to find its buffers.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "cli/split/perf-out.h"

#define PMU_TYPE    8 /* any that is no generic event's */
#define HEADER_SIZE 104
#define ID	    1
#define ATTR_SIZE   PERF_ATTR_SIZE_VER5
#define ATTRS_AT    (HEADER_SIZE + 8)
#define PSB_SIZE    16
#define RECORDS_AT  (ATTRS_AT + ATTR_SIZE + 16)

/* IA32_RTIT_CTL as intel_pt's format directory has it. */
enum {
	CFG_PT = 1 << 0, /* the rest is the user's choice, not perf's */
	CFG_CYC = 1 << 1,
	CFG_MTC = 1 << 9,
	CFG_TSC = 1 << 10,
	CFG_NORETCOMP = 1 << 11,
	CFG_BRANCH = 1 << 13,
	CFG_MTC_PERIOD = 0xf << 14,
};

/* Records of perf itself. */
enum {
	RECORD_AUXTRACE_INFO = 70,
	RECORD_AUXTRACE = 71,
};

enum {
	FEATURE_EVENT_DESC = 12,
	FEATURE_AUXTRACE = 18,
};

/* All but IP is in the sample_id of records too; without IP perf script prints none. */
#define SAMPLE_TYPE                                                              \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | \
	 PERF_SAMPLE_IDENTIFIER)

/* The sample_id after the kernel's records. */
struct sample_id {
	u32 pid, tid;
	u64 time; /* 0: before all others */
	u32 cpu, reserved;
	u64 id;
};

struct auxtrace {
	struct perf_event_header header;
	u64 size, offset, reference;
	u32 idx, tid, cpu, reserved;
};

static void put(FILE *f, const void *bytes, size_t n)
{
	fwrite(bytes, 1, n, f);
}

static void put32(FILE *f, u32 v)
{
	put(f, &v, sizeof(v));
}

static void put64(FILE *f, u64 v)
{
	put(f, &v, sizeof(v));
}

/* With the NUL and up to a multiple of 8. */
static size_t string_size(const char *s)
{
	return (strlen(s) + 8) & ~(size_t)7;
}

static void put_string(FILE *f, const char *s)
{
	static const char zeros[8];

	put(f, s, strlen(s));
	put(f, zeros, string_size(s) - strlen(s));
}

static void put_header(FILE *f, u32 type, u16 misc, size_t size)
{
	struct perf_event_header h = { .type = type, .misc = misc, .size = (u16)size };

	put(f, &h, sizeof(h));
}

/* ---- who ---- */

static u32 pid_of(const struct perf_out *out)
{
	return out->tid >= 0 && !out->thread ? (u32)out->tid : PERF_OUT_PID;
}

static u32 tid_of(const struct perf_out *out)
{
	return out->thread ? out->thread : pid_of(out);
}

/* A CPU that is not known is called 0: perf needs one. */
static u32 cpu_of(const struct perf_out *out)
{
	return out->cpu >= 0 ? (u32)out->cpu : 0;
}

static void put_sample_id(const struct perf_out *out, FILE *f)
{
	struct sample_id s = {
		.pid = pid_of(out), .tid = tid_of(out), .cpu = cpu_of(out), .id = ID
	};

	put(f, &s, sizeof(s));
}

/* ---- header and attr ---- */

void perf_out_rates(struct vmpt_trace_info *info, const struct vmpt_rates *rates)
{
	unsigned int shift = (unsigned int)__builtin_ctzll(CFG_MTC_PERIOD);

	if (info->has_config || !rates->tsc_num || !rates->tsc_den || !rates->has_mtc_freq)
		return;
	info->has_config = true;
	info->config = CFG_PT | CFG_BRANCH | CFG_MTC | (u64)rates->mtc_freq << shift;
	info->mtc_freq_bits_shift = shift;
	info->tsc_ctc_numerator = rates->tsc_num;
	info->tsc_ctc_denominator = rates->tsc_den;
	info->max_nonturbo_ratio = rates->nominal;
}

static u64 config_of(const struct perf_out *out)
{
	/* Not known: what every decoder needs; returns may be compressed. */
	u64 config = out->info->has_config ? out->info->config : CFG_PT | CFG_BRANCH;

	/* perf also decodes without TSC, if the config says so. */
	return out->has_tsc ? config | CFG_TSC : config & ~(u64)CFG_TSC;
}

static struct perf_event_attr attr_of(const struct perf_out *out)
{
	return (struct perf_event_attr){
		.type = PMU_TYPE,
		.size = ATTR_SIZE,
		.config = config_of(out),
		.sample_period = 1,
		.sample_type = SAMPLE_TYPE,
		.read_format = PERF_FORMAT_ID,
		.sample_id_all = 1,
		.exclude_guest = 1, /* as perf record has it; the owner is no guest any more */
	};
}

/* @data_size and @features are known at the end. */
static void put_file_header(const struct perf_out *out, FILE *f, u64 data_size, u64 features)
{
	struct perf_event_attr attr = attr_of(out);
	unsigned int i;

	put(f, "PERFILE2", 8);
	put64(f, HEADER_SIZE);
	put64(f, ATTR_SIZE + 16);
	put64(f, ATTRS_AT);
	put64(f, ATTR_SIZE + 16);
	put64(f, RECORDS_AT);
	put64(f, data_size);
	put64(f, 0); /* event types: no longer used */
	put64(f, 0);
	put64(f, features);
	for (i = 0; i < 3; i++)
		put64(f, 0);
	put64(f, ID);
	put(f, &attr, ATTR_SIZE);
	put64(f, HEADER_SIZE); /* the ids of the attr */
	put64(f, 8);
}

/* ---- records ---- */

static void put_info(const struct perf_out *out, FILE *f)
{
	const struct vmpt_trace_info *info = out->info;
	bool conv = info->has_time_conv;
	u64 period =
		info->mtc_freq_bits_shift ? 0xfULL << info->mtc_freq_bits_shift : CFG_MTC_PERIOD;
	u64 priv[] = {
		PMU_TYPE,
		conv ? info->time_shift : 0,
		conv ? info->time_mult : 1,
		conv ? info->time_zero : 0,
		1, /* the conversion is valid */
		CFG_TSC,
		CFG_NORETCOMP,
		0, /* no sched_switch events */
		0, /* no snapshots: they are one trace now */
		out->tid < 0 && !out->thread,
		CFG_MTC,
		period,
		info->tsc_ctc_numerator,
		info->tsc_ctc_denominator,
		CFG_CYC,
		info->max_nonturbo_ratio,
		0, /* no filter */
	};

	put_header(f, RECORD_AUXTRACE_INFO, 0, 16 + sizeof(priv));
	put32(f, 1); /* Intel PT */
	put32(f, 0);
	put(f, priv, sizeof(priv));
}

static void put_comm(const struct perf_out *out, FILE *f)
{
	put_header(f, PERF_RECORD_COMM, 0, 16 + string_size(out->comm) + sizeof(struct sample_id));
	put32(f, pid_of(out));
	put32(f, tid_of(out));
	put_string(f, out->comm);
	put_sample_id(out, f);
}

static void put_kernel(const struct perf_out *out, FILE *f, const struct perf_map *map)
{
	static const char name[] = "[kernel.kallsyms]_text";

	put_header(f, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL,
		   40 + string_size(name) + sizeof(struct sample_id));
	put32(f, UINT32_MAX);
	put32(f, 0);
	put64(f, map->start);
	put64(f, map->size);
	put64(f, map->offset);
	put_string(f, name);
	put_sample_id(out, f);
}

static void put_image(const struct perf_out *out, FILE *f, const struct perf_map *map)
{
	put_header(f, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER,
		   72 + string_size(map->file) + sizeof(struct sample_id));
	put32(f, pid_of(out));
	put32(f, tid_of(out));
	put64(f, map->start);
	put64(f, map->size);
	put64(f, map->offset);
	put64(f, 0); /* device, inode and its generation: not known in the guest */
	put64(f, 0);
	put64(f, 0);
	put32(f, 5); /* PROT_READ | PROT_EXEC */
	put32(f, 2); /* MAP_PRIVATE */
	put_string(f, map->file);
	put_sample_id(out, f);
}

static void put_running(const struct perf_out *out, FILE *f)
{
	put_header(f, PERF_RECORD_ITRACE_START, 0, 16 + sizeof(struct sample_id));
	put32(f, pid_of(out));
	put32(f, tid_of(out));
	put_sample_id(out, f);
}

/* perf treats 0 as no time. */
static u64 first_tsc(const struct perf_out *out)
{
	return out->first_tsc ? out->first_tsc : 1;
}

static void put_auxtrace(const struct perf_out *out, FILE *f, u64 size)
{
	bool threads = out->tid >= 0 || out->thread;
	struct auxtrace a = {
		.header = { .type = RECORD_AUXTRACE, .size = sizeof(a) },
		.size = size,
		/* A nearby TSC: perf takes bits 63:56 from it; 0 means no time. */
		.reference = first_tsc(out),
		.idx = out->idx,
		.tid = threads ? tid_of(out) : UINT32_MAX,
		/* perf takes both: a thread's stream of one CPU. */
		.cpu = out->tid < 0 ? cpu_of(out) : UINT32_MAX,
	};

	put(f, &a, sizeof(a));
}

static void put_code(const struct perf_out *out, FILE *f)
{
	size_t i;

	for (i = 0; out->code && i < out->code->count; i++) {
		const struct perf_map *map = &out->code->map[i];

		if (!code_is_for(map->given, out->vm))
			continue;
		if (map->kernel)
			put_kernel(out, f, map);
		else
			put_image(out, f, map);
	}
}

int perf_out_start(struct perf_out *out, FILE *f)
{
	off_t at;

	put_file_header(out, f, 0, 0);
	put_info(out, f);
	put_comm(out, f);
	put_code(out, f);
	put_running(out, f);
	at = ftello(f);
	if (at < 0)
		return -1;
	out->aux_at = (u64)at;
	put_auxtrace(out, f, 0);
	return ferror(f) ? -1 : 0;
}

int perf_out_write(struct perf_out *out, FILE *f, const u8 *bytes, size_t n)
{
	static const u8 pads[PERF_OUT_ADDED];
	size_t left = out->written < PSB_SIZE ? PSB_SIZE - out->written : 0;

	if (left && n >= left) {
		put(f, bytes, left);
		put(f, pads, sizeof(pads));
		out->written += left;
		bytes += left;
		n -= left;
	}
	put(f, bytes, n);
	out->written += n;
	return ferror(f) ? -1 : 0;
}

/* ---- after the trace ---- */

static const char event_name[] = "intel_pt//";

static u64 event_desc_size(void)
{
	return 4 + 4 + ATTR_SIZE + 4 + 4 + string_size(event_name) + 8;
}

static void put_event_desc(const struct perf_out *out, FILE *f)
{
	struct perf_event_attr attr = attr_of(out);

	put32(f, 1);
	put32(f, ATTR_SIZE);
	put(f, &attr, ATTR_SIZE);
	put32(f, 1);
	put32(f, (u32)string_size(event_name));
	put_string(f, event_name);
	put64(f, ID);
}

/* Where the stream is in the file. */
static u64 stream_at(const struct perf_out *out)
{
	return out->aux_at + sizeof(struct auxtrace);
}

/* The sections of the features of @n streams, by their bits, then the sections. */
static void put_features(const struct perf_out *out, size_t n, FILE *f, u64 at)
{
	size_t i;

	at += 2 * 16;
	put64(f, at);
	put64(f, event_desc_size());
	put64(f, at + event_desc_size());
	put64(f, 8 + 16 * n);
	put_event_desc(out, f);
	put64(f, n);
	for (i = 0; i < n; i++) {
		put64(f, out[i].aux_at);
		put64(f, sizeof(struct auxtrace));
	}
}

/* All after the records of @n streams, which end at @end, and their size in the header. */
static int put_end(const struct perf_out *out, size_t n, FILE *f, u64 end)
{
	put_features(out, n, f, end);
	if (ferror(f) || fseeko(f, 0, SEEK_SET))
		return -1;
	put_file_header(out, f, end - RECORDS_AT,
			1ULL << FEATURE_EVENT_DESC | 1ULL << FEATURE_AUXTRACE);
	return 0;
}

/* The first TSC, where perf_out_write() has made room for it. */
static int put_first_tsc(const struct perf_out *out, FILE *f)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_TSC, .val = { first_tsc(out) } };
	u8 bytes[PERF_OUT_ADDED];

	if (vmpt_pt_encode(&pkt, bytes, sizeof(bytes), 0) != sizeof(bytes))
		return 0;
	if (fseeko(f, (off_t)(stream_at(out) + PSB_SIZE), SEEK_SET))
		return -1;
	put(f, bytes, sizeof(bytes));
	return 0;
}

int perf_out_finish(struct perf_out *out, FILE *f)
{
	u64 bytes = out->written + (out->written < PSB_SIZE ? 0 : PERF_OUT_ADDED);
	static const u8 pads[8];

	out->size = (bytes + 7) & ~7ULL;
	put(f, pads, out->size - bytes);
	if (put_end(out, 1, f, stream_at(out) + out->size) ||
	    fseeko(f, (off_t)out->aux_at, SEEK_SET))
		return -1;
	put_auxtrace(out, f, out->size);
	if (out->has_tsc && put_first_tsc(out, f))
		return -1;
	return ferror(f) ? -1 : 0;
}

/* ---- several streams ---- */

/* @size bytes, or -1 by errno. */
static int copy(FILE *to, FILE *from, u64 size)
{
	static const size_t most = 1 << 16;
	u8 *bytes = malloc(most);
	int ret = bytes ? 0 : -1;

	while (!ret && size) {
		size_t n = size < most ? (size_t)size : most, got = fread(bytes, 1, n, from);

		if (got < n && !ferror(from))
			errno = EIO; /* it was truncated meanwhile */
		if (got < n || fwrite(bytes, 1, n, to) < n)
			ret = -1;
		size -= got;
	}
	free(bytes);
	return ret;
}

/* The stream of the perf.data @from, with its AUXTRACE. */
static int put_stream(struct perf_out *out, FILE *f, FILE *from)
{
	off_t at = ftello(f);

	if (at < 0 || fseeko(from, (off_t)stream_at(out), SEEK_SET))
		return -1;
	out->aux_at = (u64)at;
	put_auxtrace(out, f, out->size);
	return copy(f, from, out->size);
}

int perf_out_join(struct perf_out *out, size_t n, FILE *f, FILE *(*from)(void *opaque, size_t i),
		  void *opaque)
{
	int ret = 0;
	size_t i;

	put_file_header(out, f, 0, 0);
	put_info(out, f);
	for (i = 0; i < n; i++)
		if (!i || out[i].thread != out[i - 1].thread)
			put_comm(&out[i], f);
	put_code(out, f);
	for (i = 0; i < n; i++)
		put_running(&out[i], f);
	for (i = 0; !ret && i < n; i++) {
		FILE *stream = from(opaque, i);

		ret = stream ? put_stream(&out[i], f, stream) : -1;
		if (stream)
			fclose(stream);
	}
	if (ret)
		return ret;
	ret = put_end(out, n, f, stream_at(&out[n - 1]) + out[n - 1].size);
	return ret || ferror(f) ? -1 : 0;
}
