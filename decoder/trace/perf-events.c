// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * perf.data: its records other than the trace, as events by time: context switches, KVM's entries
 * and exits, threads' names. They cost nothing unless requested: the records are read a second time
 * for them, and the trace buffers between are skipped.
 */
#include <stdlib.h>
#include <sys/random.h>

#include "decoder/trace/perf.h"
#include "decoder/vmpt-events.h"
#include "util/array.h"
#include "util/hash.h"

#define TEXT_MAX   63 /* a thread's name has 15 */
#define TEXT_CHUNK (16u << 10)

/* The kernel appends these to each of its records if attr.sample_id_all is set */
#define SAMPLE_ID_FIELDS                                                               \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

struct id {
	u64 id;
	size_t attr;
};

struct chunk {
	struct chunk *next;
	size_t fill;
	char text[TEXT_CHUNK];
};

struct perf_events {
	struct vmpt_event *events;
	size_t count, limit;
	struct chunk *chunks;
	/* While they are read */
	struct id *ids;
	size_t id_count;
	struct vmpt_hash by_id;
	u64 seed;
	struct perf_tracepoint tps[PERF_TPS];
};

/* An event's place: by time, then as in the file. */
struct event_place {
	u64 time;
	size_t index;
};

static int by_place(const void *x, const void *y)
{
	const struct event_place *a = x, *b = y;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

/* The place of @id among the ids; VMPT_HASH_NONE: it is not. */
static u32 find_id(const struct perf_events *e, u64 id)
{
	return vmpt_hash_find(&e->by_id, vmpt_mix64(id ^ e->seed), i, e->ids[i].id == id);
}

int vmpt_perf_events_ids(struct perf_reader *r, const u8 *ids, u64 size)
{
	struct perf_events *e = r->events;

	for (; size >= 8; ids += 8, size -= 8) {
		u64 id = vmpt_load64(ids);

		/* Several attrs may claim the same bytes: limit ids to what fits into the file */
		if (e->id_count > r->size / 8)
			break;
		/* The first attr that has it */
		if (find_id(e, id) != VMPT_HASH_NONE)
			continue;
		if (vmpt_grow(&e->ids, e->id_count) ||
		    vmpt_hash_add(&e->by_id, vmpt_mix64(id ^ e->seed), (u32)e->id_count))
			return vmpt_perf_no_memory(r);
		e->ids[e->id_count++] = (struct id){ id, r->attr_count - 1 };
	}
	return 0;
}

static const struct perf_attr *attr_of(struct perf_reader *r, u64 id)
{
	u32 found = find_id(r->events, id);

	return found == VMPT_HASH_NONE ? NULL : &r->attrs[r->events->ids[found].attr];
}

static u32 fields_size(u64 fields)
{
	return 8 * (u32)__builtin_popcountll(fields);
}

/*
 * The attr of a record. This requires that all attrs of a file have the id at the same place:
 * IDENTIFIER exists for this, ID is used if all attrs have the same fields.
 */
static const struct perf_attr *record_attr(struct perf_reader *r, const u8 *rec, u32 size,
					   bool sample)
{
	const struct perf_attr *first = r->attrs, *attr;
	u64 before, after;
	u32 at;

	if (!r->attr_count)
		return NULL;
	if (r->attr_count == 1)
		return first;
	before = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;
	after = PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU;
	if (first->sample_type & PERF_SAMPLE_IDENTIFIER)
		before = after = 0;
	else if (!(first->sample_type & PERF_SAMPLE_ID))
		return first;
	if (sample)
		at = PERF_RECORD_HEADER + fields_size(first->sample_type & before);
	else
		at = size - fields_size(first->sample_type & after) - 8;
	if (at < PERF_RECORD_HEADER || at > size - 8)
		return NULL;
	attr = attr_of(r, vmpt_load64(rec + at));
	/* perf's own records of threads that existed before have id 0 */
	return attr || sample ? attr : first;
}

/* Add @event, if there is room. */
static int add(struct perf_reader *r, const struct vmpt_event *event)
{
	struct perf_events *e = r->events;

	if (e->count >= e->limit)
		return 0;
	if (vmpt_grow(&e->events, e->count))
		return vmpt_perf_no_memory(r);
	e->events[e->count++] = *event;
	return 0;
}

static const char *keep_text(struct perf_events *e, const u8 *text, size_t max)
{
	size_t n = strnlen((const char *)text, max < TEXT_MAX ? max : TEXT_MAX);
	struct chunk *chunk = e->chunks;
	char *kept;

	if (!chunk || TEXT_CHUNK - chunk->fill <= n) {
		chunk = malloc(sizeof(*chunk));
		if (!chunk)
			return NULL;
		chunk->next = e->chunks;
		chunk->fill = 0;
		e->chunks = chunk;
	}
	kept = chunk->text + chunk->fill;
	memcpy(kept, text, n);
	kept[n] = 0;
	chunk->fill += n + 1;
	return kept;
}

/* Time, CPU and thread from the sample_id at @rec's end. Returns the bytes before it. */
static u32 read_sample_id(struct perf_reader *r, const u8 *rec, u32 size, struct vmpt_event *event)
{
	const struct perf_attr *attr = record_attr(r, rec, size, false);
	u64 has = attr && attr->sample_id_all ? attr->sample_type & SAMPLE_ID_FIELDS : 0;
	u32 at = size - fields_size(has);

	if (!has || at > size || at < PERF_RECORD_HEADER)
		return size;
	if (has & PERF_SAMPLE_TID) {
		event->pid = (int)vmpt_load32(rec + at);
		event->tid = (int)vmpt_load32(rec + at + 4);
		at += 8;
	}
	if (has & PERF_SAMPLE_TIME) {
		event->time = vmpt_load64(rec + at);
		at += 8;
	}
	at += fields_size(has & (PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID));
	if (has & PERF_SAMPLE_CPU)
		event->cpu = (int)vmpt_load32(rec + at);
	return size - fields_size(has);
}

/* u32 pid, ppid, tid, ptid, u64 time; ITRACE_START and COMM: u32 pid, tid */
static int take_task(struct perf_reader *r, const u8 *rec, u32 end, u32 type,
		     struct vmpt_event *event)
{
	bool fork = type == PERF_RECORD_FORK || type == PERF_RECORD_EXIT;
	u32 fixed = fork ? 32 : 16;

	if (end < fixed)
		return 0;
	event->pid = (int)vmpt_load32(rec + 8);
	event->tid = (int)vmpt_load32(rec + (fork ? 16 : 12));
	if (fork && !event->time)
		event->time = vmpt_load64(rec + 24);
	switch (type) {
	case PERF_RECORD_FORK:
		event->kind = VMPT_EVENT_FORK;
		break;
	case PERF_RECORD_EXIT:
		event->kind = VMPT_EVENT_THREAD_END;
		break;
	case PERF_RECORD_ITRACE_START:
		event->kind = VMPT_EVENT_ITRACE_START;
		break;
	default:
		event->kind = VMPT_EVENT_COMM;
		event->flag = vmpt_load16(rec + 4) & PERF_RECORD_MISC_COMM_EXEC;
		/* As many names as events at most, or a long list of names would exceed the limit
		 */
		if (r->events->count >= r->events->limit)
			return 0;
		event->text = keep_text(r->events, rec + fixed, end - fixed);
		if (!event->text)
			return vmpt_perf_no_memory(r);
	}
	return add(r, event);
}

/* Size of the PERF_SAMPLE_READ fields, which depend on attr.read_format. */
static u64 read_size(const struct perf_attr *attr, const u8 *rec, u32 size, u64 at)
{
	u64 f = attr->read_format;
	u64 times = !!(f & PERF_FORMAT_TOTAL_TIME_ENABLED) + !!(f & PERF_FORMAT_TOTAL_TIME_RUNNING);
	/* PERF_FORMAT_LOST is newer than the headers that this may be built with */
	u64 each = 1 + !!(f & PERF_FORMAT_ID) + !!(f & 1u << 4);
	u64 n;

	if (!(f & PERF_FORMAT_GROUP))
		return 8 * (times + each);
	if (at > size || size - at < 8)
		return size;
	n = vmpt_load64(rec + at);
	return n > size ? size : 8 * (1 + times + n * each);
}

/*
 * Fields of a SAMPLE before its raw data, in the order of the manual page perf_event_open(2).
 * Returns the offset of the raw data's size; 0: no raw data, or the record is too short.
 */
static u32 read_sample(const struct perf_attr *attr, const u8 *rec, u32 size,
		       struct vmpt_event *event)
{
	u64 has = attr->sample_type, at = PERF_RECORD_HEADER;

	at += fields_size(has & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP));
	if (!(has & PERF_SAMPLE_RAW) ||
	    size < at + fields_size(has & (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
					   PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
					   PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)))
		return 0;
	if (has & PERF_SAMPLE_TID) {
		event->pid = (int)vmpt_load32(rec + at);
		event->tid = (int)vmpt_load32(rec + at + 4);
		at += 8;
	}
	if (has & PERF_SAMPLE_TIME) {
		event->time = vmpt_load64(rec + at);
		at += 8;
	}
	at += fields_size(has & (PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID));
	if (has & PERF_SAMPLE_CPU) {
		event->cpu = (int)vmpt_load32(rec + at);
		at += 8;
	}
	at += fields_size(has & PERF_SAMPLE_PERIOD);
	if (has & PERF_SAMPLE_READ)
		at += read_size(attr, rec, size, at);
	if (has & PERF_SAMPLE_CALLCHAIN) {
		u64 n = at <= size && size - at >= 8 ? vmpt_load64(rec + at) : size;

		at += n >= size ? size : 8 * (1 + n);
	}
	return at <= size && size - at >= 4 ? (u32)at : 0;
}

/* Field @f of the @n bytes at @raw, unsigned; @missing if there is no such field. */
static u64 field(const u8 *raw, u32 n, const struct perf_field *f, u64 missing)
{
	u64 v = 0;

	if (!f->size || f->offset > n || n - f->offset < f->size)
		return missing;
	memcpy(&v, raw + f->offset, f->size);
	return v;
}

static int take_sample(struct perf_reader *r, const u8 *rec, u32 size, struct vmpt_event *event)
{
	const struct perf_attr *attr = record_attr(r, rec, size, true);
	static const u8 kinds[PERF_TPS] = {
		[PERF_TP_KVM_ENTRY] = VMPT_EVENT_KVM_ENTRY,
		[PERF_TP_KVM_EXIT] = VMPT_EVENT_KVM_EXIT,
		[PERF_TP_KVM_MSR] = VMPT_EVENT_KVM_MSR,
		[PERF_TP_KVM_PAGE_FAULT] = VMPT_EVENT_KVM_GPA,
		[PERF_TP_KVM_MMIO] = VMPT_EVENT_KVM_GPA,
		[PERF_TP_KVM_FAST_MMIO] = VMPT_EVENT_KVM_GPA,
	};
	const struct perf_tracepoint *tps = r->events->tps, *tp = NULL;
	unsigned int i;
	u32 at, n;

	if (!attr || attr->type != PERF_TYPE_TRACEPOINT)
		return 0;
	for (i = 0; i < PERF_TPS; i++)
		if (tps[i].known && tps[i].id == attr->config)
			tp = &tps[i];
	at = tp ? read_sample(attr, rec, size, event) : 0;
	if (!at)
		return 0;
	n = vmpt_load32(rec + at);
	at += 4;
	if (n > size - at)
		return 0;
	rec += at;
	event->kind = kinds[tp - tps];
	event->vcpu = (u16)field(rec, n, &tp->vcpu_id, VMPT_EVENT_NO_VCPU);
	event->ip = field(rec, n, &tp->rip, 0);
	event->info1 = field(rec, n, &tp->info1, 0);
	event->info2 = field(rec, n, &tp->info2, 0);
	if (event->kind == VMPT_EVENT_KVM_EXIT) {
		u64 reason = field(rec, n, &tp->exit_reason, VMPT_EVENT_NO_REASON);

		/* AMD's exit reasons are different. */
		if (field(rec, n, &tp->isa, VMPT_EVENT_ISA_VMX) != VMPT_EVENT_ISA_VMX)
			reason = VMPT_EVENT_NO_REASON;
		event->reason = (u16)reason;
		event->flag = reason >> 31 & 1;
	}
	return add(r, event);
}

int vmpt_perf_events_record(struct perf_reader *r, const u8 *rec, u32 size)
{
	struct vmpt_event event = { .cpu = -1, .pid = -1, .tid = -1, .vcpu = VMPT_EVENT_NO_VCPU };
	u32 type = vmpt_load32(rec), misc = vmpt_load16(rec + 4), end;

	if (type == PERF_RECORD_SAMPLE)
		return take_sample(r, rec, size, &event);
	switch (type) {
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		read_sample_id(r, rec, size, &event);
		event.kind = misc & PERF_RECORD_MISC_SWITCH_OUT ? VMPT_EVENT_SWITCH_OUT
								: VMPT_EVENT_SWITCH_IN;
		event.flag = event.kind == VMPT_EVENT_SWITCH_OUT &&
			     misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
		return add(r, &event);
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_ITRACE_START:
		end = read_sample_id(r, rec, size, &event);
		return take_task(r, rec, end, type, &event);
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		end = read_sample_id(r, rec, size, &event);
		event.kind = VMPT_EVENT_LOST_EVENTS;
		misc = type == PERF_RECORD_LOST ? 16 : 8;
		if (end < misc + 8)
			return 0;
		event.info1 = vmpt_load64(rec + misc);
		return add(r, &event);
	default:
		return 0;
	}
}

/* u64 nr, then for each event: u64 id, idx, cpu, tid. It comes before AUXTRACE_INFO. */
int vmpt_perf_events_id_index(struct perf_reader *r, const u8 *rec, u32 size)
{
	struct vmpt_event event = {
		.kind = VMPT_EVENT_RECORDED, .pid = -1, .tid = -1, .vcpu = VMPT_EVENT_NO_VCPU
	};
	const struct perf_attr *attr;
	u32 at;
	int ret = 0;
	u64 cpu;

	for (at = PERF_RECORD_HEADER + 8; !ret && at + 32 <= size; at += 32) {
		attr = attr_of(r, vmpt_load64(rec + at));
		cpu = vmpt_load64(rec + at + 16);
		if (!attr || !r->trace->pmu_type || attr->type != r->trace->pmu_type ||
		    cpu > INT32_MAX)
			continue;
		event.cpu = (int)cpu;
		ret = add(r, &event);
	}
	return ret;
}

void vmpt_perf_events_formats(struct perf_reader *r, const u8 *data, u64 size)
{
	vmpt_perf_formats_read(r->events->tps, data, size);
}

u64 vmpt_perf_time_to_tsc(const struct vmpt_trace_info *info, u64 ns)
{
	/* time_zero wraps at 2^64: it is before boot if the TSC did not start at 0 */
	u64 t = ns - info->time_zero;
	u64 quotient = t / info->time_mult, remainder = t % info->time_mult;

	return (quotient << info->time_shift) +
	       (u64)(((unsigned __int128)remainder << info->time_shift) / info->time_mult);
}

/* Sort by time. An event without a time has that of the one before it in the file. */
static int sort(struct perf_events *e, const struct vmpt_trace_info *info)
{
	struct vmpt_event *sorted;
	struct event_place *places;
	u64 time = 0;
	size_t i;

	if (!e->count)
		return 0;
	places = calloc(e->count, sizeof(*places));
	sorted = calloc(e->count, sizeof(*sorted));
	if (!places || !sorted) {
		free(places);
		free(sorted);
		return -VMPT_E_NOMEM;
	}
	for (i = 0; i < e->count; i++) {
		time = e->events[i].time ? e->events[i].time : time;
		places[i] = (struct event_place){ time, i };
	}
	qsort(places, e->count, sizeof(*places), by_place);
	for (i = 0; i < e->count; i++) {
		sorted[i] = e->events[places[i].index];
		if (sorted[i].time && info->has_time_conv)
			sorted[i].tsc = vmpt_perf_time_to_tsc(info, sorted[i].time);
	}
	free(places);
	free(e->events);
	e->events = sorted;
	return 0;
}

/* Read the file once more. */
static int read_again(struct perf_reader *r, struct perf_events *e)
{
	int ret;

	r->pt_attr = SIZE_MAX;
	r->events = e;
	/*
	 * An event takes at least 24 bytes of the file; with compression, at least one on
	 * average. Only a file made to exhaust memory has more.
	 */
	e->limit = r->size;
	/* Ids must not be chosen to collide. */
	if (getrandom(&e->seed, sizeof(e->seed), GRND_NONBLOCK) < 0)
		e->seed = 0;
	ret = vmpt_perf_read_file(r);
	vmpt_perf_inflate_free(r);
	free(r->attrs);
	free(r->parts);
	free(r->marks);
	free(e->ids);
	e->ids = NULL;
	vmpt_hash_free(&e->by_id);
	return ret;
}

static int read_events(struct vmpt_trace *trace, struct perf_events *e)
{
	struct vmpt_trace_info info = trace->info; /* a copy: this pass counts again */
	struct perf_reader r = {
		.trace = trace,
		.info = &info,
		.file = trace->maps[0].data,
		.size = trace->maps[0].size,
	};
	int ret = read_again(&r, e);

	return ret ? ret : sort(e, &trace->info);
}

int vmpt_perf_kernel_record(struct perf_reader *r, const u8 *rec, u32 size)
{
	struct vmpt_event event = { 0 };
	struct vmpt_perf_record record = { .rec = rec,
					   .size = read_sample_id(r, rec, size, &event) };

	record.time = event.time;
	return r->record(r->opaque, &record);
}

int vmpt_perf_build_ids(struct perf_reader *r, const u8 *data, u64 size)
{
	struct vmpt_perf_record record = { .build_id = true };
	int ret = 0;

	for (; !ret && size >= PERF_RECORD_HEADER; data += record.size, size -= record.size) {
		record.rec = data;
		record.size = vmpt_load16(data + 6);
		if (record.size < PERF_RECORD_HEADER || record.size > size)
			break;
		ret = r->record(r->opaque, &record);
	}
	return ret;
}

int vmpt_perf_read_kernel(const u8 *file, u64 size,
			  int (*record)(void *opaque, const struct vmpt_perf_record *record),
			  void *opaque, struct vmpt_trace_info *info, struct vmpt_diag *diag)
{
	struct perf_events *e = calloc(1, sizeof(*e));
	struct vmpt_trace trace = { 0 };
	struct perf_reader r = {
		.trace = &trace,
		.info = &trace.info,
		.diag = diag,
		.file = file,
		.size = size,
		.record = record,
		.opaque = opaque,
	};
	int ret = e ? read_again(&r, e) : -VMPT_E_NOMEM;

	vmpt_perf_events_free(e);
	*info = trace.info;
	return ret;
}

int vmpt_trace_events(struct vmpt_trace *trace, const struct vmpt_event **events, size_t *count)
{
	struct perf_events *e = trace->events;
	int ret;

	*events = NULL;
	*count = 0;
	if (trace->info.format != VMPT_TRACE_PERF || !trace->map_count)
		return 0;
	if (!e) {
		e = calloc(1, sizeof(*e));
		if (!e)
			return -VMPT_E_NOMEM;
		ret = read_events(trace, e);
		if (ret) {
			vmpt_perf_events_free(e);
			return ret;
		}
		trace->events = e;
	}
	*events = e->events;
	*count = e->count;
	return 0;
}

void vmpt_perf_events_free(struct perf_events *events)
{
	struct chunk *chunk, *next;

	if (!events)
		return;
	for (chunk = events->chunks; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	free(events->events);
	free(events->ids);
	free(events);
}
