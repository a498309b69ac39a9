// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * perf.data: its records. Most are skipped; kept are the places of the trace
 * buffers, the AUX records' information about them, and what is needed to
 * interpret their clock.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "decoder/trace/perf.h"
#include "util/array.h"

#define INFOS_MAX 64 /* perf writes one */

/* AUXTRACE_INFO.priv[] of Intel PT. Older files have fewer; missing ones are 0. */
enum {
	PRIV_PMU_TYPE,
	PRIV_TIME_SHIFT,
	PRIV_TIME_MULT,
	PRIV_TIME_ZERO,
	PRIV_CAP_USER_TIME_ZERO,
	PRIV_TSC_BIT,
	PRIV_NORETCOMP_BIT,
	PRIV_HAVE_SCHED_SWITCH,
	PRIV_SNAPSHOT_MODE,
	PRIV_PER_CPU_MMAPS,
	PRIV_MTC_BIT,
	PRIV_MTC_FREQ_BITS,
	PRIV_TSC_CTC_N,
	PRIV_TSC_CTC_D,
	PRIV_CYC_BIT,
	PRIV_MAX_NONTURBO_RATIO,
	PRIV_COUNT,
};

/* Ignore an invalid conversion: a shift of 64 is undefined. */
static void set_time_conv(struct vmpt_trace_info *info, u64 shift, u64 mult, u64 zero)
{
	if (!mult || mult > UINT32_MAX || shift > 63)
		return;
	info->has_time_conv = true;
	info->time_shift = (u16)shift;
	info->time_mult = (u32)mult;
	info->time_zero = zero;
}

/* u32 type, u32 reserved, u64 priv[]. After each the attr of intel_pt is searched again. */
static int take_auxtrace_info(struct perf_reader *r, const u8 *rec, u32 size, u64 offset)
{
	struct vmpt_trace_info *info = r->info;
	u64 priv[PRIV_COUNT] = { 0 };
	unsigned int i;

	if (size < 16)
		return vmpt_perf_stop(r, offset, "AUXTRACE_INFO record of %u bytes", size);
	if (r->infos == INFOS_MAX)
		return vmpt_perf_stop(r, offset, "more than %d AUXTRACE_INFO records", INFOS_MAX);
	r->infos++;
	r->has_info = true;
	r->aux_type = vmpt_load32(rec + 8);
	if (r->aux_type != PERF_AUXTRACE_INTEL_PT)
		return 0;
	for (i = 0; i < PRIV_COUNT && 16 + 8 * (i + 1) <= size; i++)
		priv[i] = vmpt_load64(rec + 16 + 8 * i);
	r->has_pt_info = true;
	r->pmu_type = (u32)priv[PRIV_PMU_TYPE];
	r->trace->pmu_type = r->pmu_type;
	r->pt_attr = SIZE_MAX;
	if (priv[PRIV_CAP_USER_TIME_ZERO])
		set_time_conv(info, priv[PRIV_TIME_SHIFT], priv[PRIV_TIME_MULT],
			      priv[PRIV_TIME_ZERO]);
	info->snapshot = priv[PRIV_SNAPSHOT_MODE];
	if (priv[PRIV_MTC_FREQ_BITS])
		info->mtc_freq_bits_shift = (u32)__builtin_ctzll(priv[PRIV_MTC_FREQ_BITS]);
	info->tsc_ctc_numerator = (u32)priv[PRIV_TSC_CTC_N];
	info->tsc_ctc_denominator = (u32)priv[PRIV_TSC_CTC_D];
	info->max_nonturbo_ratio = (u32)priv[PRIV_MAX_NONTURBO_RATIO];
	return 0;
}

/*
 * u64 time_shift, time_mult, time_zero; since Linux 5.10 also time_cycles, time_mask,
 * u8 cap_user_time_zero, cap_user_time_short. The last is not for x86.
 */
static int take_time_conv(struct perf_reader *r, const u8 *rec, u32 size, u64 offset)
{
	if (size < 32)
		return vmpt_perf_stop(r, offset, "TIME_CONV record of %u bytes", size);
	if (r->info->has_time_conv || (size >= 56 && (!rec[48] || rec[49])))
		return 0;
	set_time_conv(r->info, vmpt_load64(rec + 8), vmpt_load64(rec + 16), vmpt_load64(rec + 24));
	return 0;
}

/* struct perf_event_attr, u64 ids[] */
static int take_header_attr(struct perf_reader *r, const u8 *rec, u32 size, u64 offset)
{
	u32 attr_size;

	if (size < PERF_RECORD_HEADER + PERF_ATTR_SIZE_VER0)
		return vmpt_perf_stop(r, offset, "HEADER_ATTR record of %u bytes", size);
	attr_size = vmpt_load32(rec + PERF_RECORD_HEADER + 4);
	if (!attr_size)
		attr_size = PERF_ATTR_SIZE_VER0;
	if (attr_size > size - PERF_RECORD_HEADER)
		return vmpt_perf_stop(r, offset,
				      "HEADER_ATTR record of %u bytes with an attr of %u", size,
				      attr_size);
	return vmpt_perf_take_attr(r, rec + PERF_RECORD_HEADER, attr_size,
				   rec + PERF_RECORD_HEADER + attr_size,
				   size - PERF_RECORD_HEADER - attr_size);
}

/* The attr of the intel_pt event; the first attr if none has its type. NULL: no attr at all. */
static const struct perf_attr *pt_attr(struct perf_reader *r)
{
	size_t i;

	if (!r->attr_count)
		return NULL;
	if (r->pt_attr < r->attr_count)
		return &r->attrs[r->pt_attr];
	for (i = 0; r->has_pt_info && i < r->attr_count; i++) {
		if (r->attrs[i].type == r->pmu_type) {
			r->pt_attr = i;
			return &r->attrs[i];
		}
	}
	if (r->has_pt_info)
		r->pt_attr = 0;
	return &r->attrs[0];
}

/*
 * CPU and thread of a kernel's record, from the sample_id after its @fixed bytes:
 * those of pid and tid, time, id, stream id, cpu, identifier that sample_type has.
 */
static void sample_owner(struct perf_reader *r, const u8 *rec, u32 size, u32 fixed,
			 struct perf_mark *mark)
{
	const struct perf_attr *attr = pt_attr(r);
	u64 has = attr && attr->sample_id_all ? attr->sample_type : 0;
	u32 at = fixed, need;

	has &= PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
	       PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
	need = 8 * (u32)__builtin_popcountll(has);
	if (size < fixed + need)
		return;
	if (has & PERF_SAMPLE_TID)
		mark->tid = (int)vmpt_load32(rec + at + 4);
	at += 8 * (u32)__builtin_popcountll(has & (PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
						   PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID));
	if (has & PERF_SAMPLE_CPU)
		mark->cpu = (int)vmpt_load32(rec + at);
}

static int add_mark(struct perf_reader *r, const struct perf_mark *mark)
{
	if (vmpt_grow(&r->marks, r->mark_count))
		return vmpt_perf_no_memory(r);
	r->marks[r->mark_count++] = *mark;
	return 0;
}

/*
 * u64 aux_offset, aux_size, flags, sample_id. A truncated record: the buffer was
 * full at its end, and the bytes after it are lost. A partial one or a collision lost
 * bytes at an unknown place inside: neither its start nor its end is trusted.
 * In overwrite mode (snapshots) the offset is that of the end, and the flag alone
 * adds nothing to what the buffers show.
 */
static int take_aux(struct perf_reader *r, const u8 *rec, u32 size, u64 offset)
{
	struct perf_mark mark = { .cpu = -1, .tid = -1 };
	u64 flags, aux_size;
	int ret = 0;

	if (size < 32)
		return vmpt_perf_stop(r, offset, "AUX record of %u bytes", size);
	flags = vmpt_load64(rec + 24);
	if (flags & PERF_AUX_FLAG_TRUNCATED) {
		mark.flags |= VMPT_GAP_TRUNCATED;
		r->info->truncated_buffers++;
	}
	if (flags & PERF_AUX_FLAG_PARTIAL)
		mark.flags |= VMPT_GAP_PARTIAL;
	if (flags & PERF_AUX_FLAG_COLLISION)
		mark.flags |= VMPT_GAP_COLLISION;
	if (!mark.flags)
		return 0;
	sample_owner(r, rec, size, 32, &mark);
	mark.aux_offset = vmpt_load64(rec + 8);
	aux_size = flags & PERF_AUX_FLAG_OVERWRITE ? 0 : vmpt_load64(rec + 16);
	if (mark.aux_offset + aux_size < mark.aux_offset)
		return vmpt_perf_stop(r, offset, "AUX record of %" PRIu64 " bytes at %" PRIu64,
				      aux_size, mark.aux_offset);
	if (aux_size && (mark.flags & (VMPT_GAP_PARTIAL | VMPT_GAP_COLLISION))) {
		struct perf_mark start = mark;

		start.flags &= ~(u32)VMPT_GAP_TRUNCATED;
		ret = add_mark(r, &start);
	}
	mark.aux_offset += aux_size;
	return ret ? ret : add_mark(r, &mark);
}

/* u64 id, lost; LOST_SAMPLES: u64 lost */
static int take_lost(struct perf_reader *r, const u8 *rec, u32 size, u32 at, u64 offset)
{
	if (size < at + 8)
		return vmpt_perf_stop(r, offset, "LOST record of %u bytes", size);
	r->info->lost_events += vmpt_load64(rec + at);
	return 0;
}

static int take_compressed(struct perf_reader *r, const u8 *rec, u32 size, u32 type, u64 offset)
{
	u64 data_size = size - PERF_RECORD_HEADER;
	u32 at = PERF_RECORD_HEADER;

	r->info->compressed = true;
	if (type == PERF_USER_COMPRESSED2) {
		/* u64 data_size, data, padding */
		at += 8;
		data_size = size >= at ? vmpt_load64(rec + PERF_RECORD_HEADER) : 0;
		if (size < at || data_size > size - at)
			return vmpt_perf_stop(r, offset,
					      "COMPRESSED2 record of %u bytes with %" PRIu64
					      " bytes of data",
					      size, data_size);
	}
	return vmpt_perf_inflate_records(r, rec + at, data_size, offset);
}

int vmpt_perf_take_record(struct perf_reader *r, const u8 *rec, u32 size, u64 offset)
{
	u32 type = vmpt_load32(rec);

	if (r->record && type < PERF_USER_HEADER_ATTR)
		return vmpt_perf_kernel_record(r, rec, size);
	if (r->events && type < PERF_USER_HEADER_ATTR)
		return vmpt_perf_events_record(r, rec, size);
	switch (type) {
	case PERF_RECORD_AUX:
		return take_aux(r, rec, size, offset);
	case PERF_RECORD_LOST:
		return take_lost(r, rec, size, 16, offset);
	case PERF_RECORD_LOST_SAMPLES:
		return take_lost(r, rec, size, 8, offset);
	case PERF_USER_HEADER_ATTR:
		return take_header_attr(r, rec, size, offset);
	case PERF_USER_AUXTRACE_INFO:
		return take_auxtrace_info(r, rec, size, offset);
	case PERF_USER_ID_INDEX:
		return r->events ? vmpt_perf_events_id_index(r, rec, size) : 0;
	case PERF_USER_BUILD_ID:
		return r->record ? vmpt_perf_build_ids(r, rec, size) : 0;
	case PERF_USER_TIME_CONV:
		return take_time_conv(r, rec, size, offset);
	case PERF_USER_HEADER_FEATURE:
		if (size < 16)
			return vmpt_perf_stop(r, offset, "HEADER_FEATURE record of %u bytes", size);
		return vmpt_perf_take_feature(r, vmpt_load64(rec + 8), rec + 16, size - 16, offset);
	case PERF_USER_COMPRESSED:
	case PERF_USER_COMPRESSED2:
		return take_compressed(r, rec, size, type, offset);
	default:
		return 0;
	}
}

/*
 * u64 size, offset, reference, u32 idx, tid, cpu, reserved; then size bytes of
 * trace. @at is after the record and moves after the trace.
 */
static int take_auxtrace(struct perf_reader *r, const u8 *rec, u32 size, u64 *at)
{
	struct perf_part part = { .file_offset = *at, .damage = r->damage };
	u64 left = r->records_end - *at;
	int ret = 0;

	if (size < 44) {
		*at -= size;
		return vmpt_perf_stop(r, *at, "AUXTRACE record of %u bytes", size);
	}
	part.size = vmpt_load64(rec + 8);
	part.aux_offset = vmpt_load64(rec + 16);
	part.cpu = (int)vmpt_load32(rec + 40);
	part.tid = (int)vmpt_load32(rec + 36);
	r->info->threads |= part.tid >= 0;
	if (part.cpu < 0)
		part.cpu = -1;
	else
		part.tid = -1;
	if (part.size > left) {
		ret = vmpt_perf_stop(r, r->records_end,
				     "the trace buffer at %" PRIu64 " is cut: %" PRIu64
				     " of %" PRIu64 " bytes",
				     *at, left, part.size);
		part.size = left;
	}
	*at += part.size;
	if (!part.size || r->events || r->record)
		return ret;
	if (vmpt_grow(&r->parts, r->part_count))
		return vmpt_perf_no_memory(r);
	r->parts[r->part_count++] = part;
	return ret;
}

/*
 * Read the record at @at, which moves after the record and its data: 0, 1 after
 * vmpt_perf_stop(), or an error. If @at has not moved, the start of the next record is
 * not known.
 */
static int next_record(struct perf_reader *r, u64 *at)
{
	const u8 *rec = r->file + *at;
	u64 left = r->records_end - *at, extra;
	u32 type, size;

	if (left < PERF_RECORD_HEADER)
		return vmpt_perf_stop(r, *at, "the records end inside a record's header");
	type = vmpt_load32(rec);
	size = vmpt_load16(rec + 6);
	if (size < PERF_RECORD_HEADER)
		return vmpt_perf_stop(r, *at, "record of %u bytes", size);
	if (size > left)
		return vmpt_perf_stop(r, *at, "record of %u bytes where %" PRIu64 " are left", size,
				      left);
	if (type == PERF_USER_TRACING_DATA) {
		/* u32 size, then size bytes */
		extra = size >= 12 ? vmpt_load32(rec + 8) : 0;
		if (extra > left - size)
			return vmpt_perf_stop(r, *at, "tracing data of %" PRIu64 " bytes are cut",
					      extra);
		if (r->events)
			vmpt_perf_events_formats(r, rec + size, extra);
		*at += size + extra;
		return 0;
	}
	*at += size;
	if (type == PERF_USER_AUXTRACE)
		return take_auxtrace(r, rec, size, at);
	return vmpt_perf_take_record(r, rec, size, *at - size);
}

/* The next AUXTRACE record after @at that is in the index; the end if there is none. */
static u64 resume(struct perf_reader *r, u64 at)
{
	while (r->index_next < r->index_count) {
		u64 to = vmpt_load64(r->index + PERF_INDEX_ENTRY * r->index_next++);

		if (to <= at || to >= r->records_end || r->records_end - to < PERF_RECORD_HEADER ||
		    vmpt_load32(r->file + to) != PERF_USER_AUXTRACE)
			continue;
		r->damage++;
		/* Compressed records are one stream; a piece of it may be missing now. */
		r->inflate_broken = r->info->compressed;
		return to;
	}
	return r->records_end;
}

int vmpt_perf_read_records(struct perf_reader *r)
{
	const struct perf_attr *attr;
	u64 at = r->records, before;
	int ret;

	while (at < r->records_end) {
		before = at;
		ret = next_record(r, &at);
		if (ret < 0)
			return ret;
		if (at == before)
			at = resume(r, at);
	}
	if (vmpt_perf_inflate_rest(r))
		vmpt_perf_stop(r, r->records_end, "the compressed records end inside a record");
	r->pt_attr = SIZE_MAX;
	attr = pt_attr(r);
	if (attr && r->has_pt_info && attr->type == r->pmu_type) {
		r->info->has_config = true;
		r->info->config = attr->config;
	}
	return 0;
}
