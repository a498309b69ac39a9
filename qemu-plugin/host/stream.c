// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Appending a run. The host CPU's unit makes the VM entry, becomes a copy of the run's unit, as if
 * it had made the run itself, and makes the VM exit. All of it is one write.
 */
#include "qemu-plugin/host/stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qemu-plugin/flow/flow.h"
#include "qemu-plugin/host/loop.h"
#include "qemu-plugin/host/move.h"
#include "qemu-plugin/host/perf.h"
#include "qemu-plugin/host/record.h"
#include "qemu-plugin/host/rtit.h"

/* ---- the unit of the host CPU ---- */

static int take(void *opaque, const u8 *bytes, size_t len)
{
	struct host_stream *stream = opaque;

	if (stream->piece_used + len > stream->piece_room)
		return -ENOSPC;
	memcpy(stream->piece + stream->piece_used, bytes, len);
	stream->piece_used += len;
	return 0;
}

static void collect(struct host_stream *stream, u8 *piece, size_t room)
{
	stream->piece = piece;
	stream->piece_used = 0;
	stream->piece_room = room;
}

static void adopt(struct host_stream *stream, struct vmpt_unit *unit)
{
	unit->config = *stream->settings->config;
	unit->config.sink = &stream->sink;
}

/* Start a new stream, or one whose last writer was killed in the middle of an append. */
static void start(struct host_stream *stream)
{
	struct host_shared *shared = stream->state.shared;
	struct vmpt_unit_config config = *stream->settings->config;

	config.sink = &stream->sink;
	vmpt_unit_init(&shared->unit, &config);
	vmpt_unit_vmxon(&shared->unit, true, 0);
	shared->unit.mode = host_loop_mode();
	shared->host_ip = host_loop_begin_ip();
	shared->lost = shared->started;
	shared->started = true;
	shared->busy = false;
}

/* At once if the unit is tracing; else PacketByteCnt = 0 makes it at the enable (33.2.8.2). */
static void force_psb(struct vmpt_unit *unit, bool tracing)
{
	if (tracing)
		unit->psb_due = true;
	else
		vmpt_unit_wrmsr(unit, VMPT_MSR_RTIT_STATUS, unit->regs.status & ~VMPT_STATUS_BYTES,
				0, 0);
}

/* ---- time ---- */

static unsigned int mtc_freq(u64 ctl)
{
	return (unsigned int)(ctl >> VMPT_CTL_MTC_FREQ_SHIFT) & 0xf;
}

/* Crystal ticks by which @run has to be moved so that the stream's time does not go back. */
static u64 find_move(const struct host_shared *shared, const struct host_run *run)
{
	u64 period = 1ULL << mtc_freq(shared->ctl), gap;

	if (run->begin.art > shared->end.art ||
	    (run->begin.art == shared->end.art && run->begin.tsc >= shared->end.tsc))
		return 0;
	gap = shared->end.art + 1 - run->begin.art;
	return (gap + period - 1) / period * period;
}

static void move_clocks(struct vmpt_now *clocks, u64 ticks)
{
	u64 tsc = ticks * CLOCK_NUMERATOR / CLOCK_DENOMINATOR;

	clocks->art += ticks;
	clocks->tsc += tsc;
	clocks->cycles += tsc;
}

static u64 scaled(const struct host_run *run, u64 tsc)
{
	return (u64)((unsigned __int128)tsc * run->entry.vmx.tsc_multiplier >> 48);
}

static void move_run(struct host_run *run, u64 ctl, u64 ticks)
{
	struct host_move move = { .ticks = ticks, .mtc_freq = mtc_freq(ctl) };
	u64 tsc = run->begin.tsc;

	move_clocks(&run->begin, ticks);
	move_clocks(&run->end, ticks);
	move_clocks(&run->unit->now, ticks);
	run->unit->mtc_at += ticks >> move.mtc_freq;
	run->unit->cyc_at += run->begin.tsc - tsc;
	move.tsc = scaled(run, run->begin.tsc) - scaled(run, tsc);
	host_move_packets(&move, run->room + HOST_ROOM_HEAD, run->used);
}

/* ---- the parts of a run ---- */

/*
 * Runs were lost, as if by an overflow in which TraceEn was cleared, so that only an OVF is left of
 * them (33.3.8).
 */
static void mark_loss(struct host_stream *stream, struct vmpt_unit *unit,
		      const struct host_run *run)
{
	struct vmpt_unit_exit exit = run->exit;

	if (stream->settings->options->synthetic) {
		vmpt_unit_overflow(unit);
		force_psb(unit, true); /* after an OVF a decoder does not know the VMCS */
		vmpt_unit_overflow_resolve(unit, stream->state.shared->host_ip);
		return;
	}
	exit.clear_ctl = true;
	vmpt_unit_vmentry(unit, &run->entry);
	vmpt_unit_flush(unit);
	collect(stream, stream->piece, stream->piece_room);
	vmpt_unit_overflow(unit);
	vmpt_unit_vmexit(unit, &exit);
}

/* Whether a PSB is due before @run, because others have written to the stream since it began. */
static bool psb_is_late(const struct vmpt_unit *unit, const struct host_run *run)
{
	u64 since = run->unit->since_psb;

	if (unit->since_psb == run->since_stream)
		return false;
	if (since != run->since_begin + run->used) /* it has one */
		return true;
	return unit->since_psb + run->used > vmpt_pt_psb_period(&run->unit->regs);
}

/* Start tracing a synthetic host, unless it is traced already. */
static void trace_host(struct host_shared *shared)
{
	if (!(shared->unit.regs.ctl & VMPT_CTL_TRACE_EN))
		vmpt_unit_wrmsr(&shared->unit, VMPT_MSR_RTIT_CTL, shared->ctl | VMPT_CTL_TRACE_EN,
				0, shared->host_ip);
}

static void synthetic_entry(struct host_stream *stream, struct vmpt_unit *unit,
			    struct host_run *run)
{
	struct host_shared *shared = stream->state.shared;

	trace_host(shared);
	if (shared->lost)
		mark_loss(stream, unit, run);
	if (psb_is_late(unit, run))
		force_psb(unit, true);
	host_loop_to_entry(unit, run->entry.vmx.vmcs);
	run->entry.load_ctl = false;
	run->entry.ip = host_loop_entry_ip();
	vmpt_unit_vmentry(unit, &run->entry);
}

static void guest_only_entry(struct host_stream *stream, struct vmpt_unit *unit,
			     struct host_run *run)
{
	struct host_shared *shared = stream->state.shared;
	u64 vmcs = run->entry.vmx.vmcs;

	if (shared->lost)
		mark_loss(stream, unit, run);
	/* VMPTRLD makes no packet while TraceEn is 0: the VMCS is in a PSB+ (33.4.2.15). */
	if (shared->lost || unit->vmx.vmcs != vmcs || psb_is_late(unit, run))
		force_psb(unit, false);
	vmpt_unit_vmptrld(unit, vmcs);
	vmpt_unit_vmentry(unit, &run->entry);
}

static size_t make_head(struct host_stream *stream, struct host_run *run, u8 *head)
{
	struct host_shared *shared = stream->state.shared;
	struct vmpt_unit *unit = &shared->unit;

	collect(stream, head, HOST_ROOM_HEAD / 2);
	vmpt_unit_time(unit, &run->begin);
	if (shared->synthetic)
		synthetic_entry(stream, unit, run);
	else
		guest_only_entry(stream, unit, run);
	vmpt_unit_flush(unit);
	return stream->piece_used;
}

/* The stream's unit becomes what it would be if it had made the run. */
static void take_over(struct host_stream *stream, struct host_run *run)
{
	struct vmpt_unit *unit = &stream->state.shared->unit;
	u64 since = unit->since_psb + run->used;

	if (run->unit->since_psb != run->since_begin + run->used)
		since = run->unit->since_psb;
	*unit = *run->unit;
	adopt(stream, unit);
	unit->since_psb = since;
	unit->regs.status &= ~VMPT_STATUS_BYTES;
	unit->regs.status |= since << VMPT_STATUS_BYTES_SHIFT & VMPT_STATUS_BYTES;
}

static size_t make_tail(struct host_stream *stream, struct host_run *run)
{
	struct host_shared *shared = stream->state.shared;
	struct vmpt_unit *unit = &shared->unit;

	collect(stream, run->room + HOST_ROOM_HEAD + run->used, HOST_ROOM_TAIL - 8);
	run->exit.clear_ctl = !shared->synthetic;
	run->exit.target = host_loop_exit_ip();
	run->exit.mode = host_loop_mode();
	vmpt_unit_vmexit(unit, &run->exit);
	if (shared->synthetic)
		shared->host_ip = host_loop_after_exit(unit, run->exit.reason);
	vmpt_unit_flush(unit);
	return stream->piece_used;
}

/* ---- writing ---- */

/*
 * All or nothing: a partial write on a full disk is cut off again. The caller updates shared->size:
 * if it is killed before that, the next process cuts the bytes off.
 */
static int write_raw(struct host_stream *stream, const u8 *bytes, size_t n)
{
	u64 size = stream->state.shared->size;
	size_t done = 0;
	ssize_t more;
	int err;

	/* One write; if it is short, the next one returns the reason. */
	while (done < n) {
		more = pwrite(stream->fd, bytes + done, n - done, (off_t)(size + done));
		if (more <= 0 && errno != EINTR)
			break;
		done += more > 0 ? (size_t)more : 0;
	}
	if (done == n)
		return 0;
	err = -errno;
	if (ftruncate(stream->fd, (off_t)size))
		err = -errno;
	return err;
}

/* Write to the stream's file. Records of perf.data are multiples of 8 bytes: PADs are added. */
static int put(struct host_stream *stream, u8 *bytes, size_t *n)
{
	struct host_shared *shared = stream->state.shared;
	size_t padding = -*n & 7;
	int err;

	if (stream->fd >= 0) {
		err = write_raw(stream, bytes, *n);
		shared->size += err ? 0 : *n;
		return err;
	}
	memset(bytes + *n, 0, padding);
	*n += padding;
	return host_perf_append(stream->settings->perf, stream->cpu, shared->bytes, bytes, *n);
}

static void finish(struct host_stream *stream, const struct host_run *run, size_t n, int err)
{
	struct host_shared *shared = stream->state.shared;

	if (err) {
		shared->unit = stream->kept;
		shared->lost = true;
		stream->why = -err;
		stream->lost = *run;
		stream->lost_runs++;
		stream->lost_bytes += n;
		return;
	}
	shared->lost = false;
	shared->bytes += n;
	shared->end = run->end;
	stream->runs++;
	stream->bytes += n;
}

static void append(struct host_stream *stream, struct host_run *run)
{
	struct host_shared *shared = stream->state.shared;
	u8 head[HOST_ROOM_HEAD], *bytes;
	u64 ticks, host_ip;
	size_t n;
	int err;

	if (shared->busy && stream->fd >= 0 && ftruncate(stream->fd, (off_t)shared->size))
		stream->why = errno;
	if (shared->busy || !shared->started)
		start(stream);
	/* First of all: a process that finds it set does not rely on the rest. */
	__atomic_store_n(&shared->busy, true, __ATOMIC_SEQ_CST);
	adopt(stream, &shared->unit);
	stream->kept = shared->unit;
	host_ip = shared->host_ip;
	ticks = find_move(shared, run);
	if (ticks) {
		move_run(run, shared->ctl, ticks);
		stream->moved++;
	}
	n = make_head(stream, run, head);
	bytes = run->room + HOST_ROOM_HEAD - n;
	memcpy(bytes, head, n);
	take_over(stream, run);
	n += run->used;
	n += make_tail(stream, run);
	err = put(stream, bytes, &n);
	if (err)
		shared->host_ip = host_ip;
	finish(stream, run, n, err);
	__atomic_store_n(&shared->busy, false, __ATOMIC_RELEASE);
}

/* ---- RTIT: a run is complete and does not depend on others ---- */

static int take_rtit(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	(void)pa;
	return take(opaque, bytes, len);
}

/* Packets that mark a loss before @ip, into @bytes; returns their size. */
static size_t mark_rtit(struct host_stream *stream, u64 ip, u8 *bytes)
{
	const struct vmpt_rtit_sink sink = { take_rtit, stream };

	collect(stream, bytes, HOST_ROOM_HEAD);
	host_rtit_lost(stream->settings->options, &sink, ip);
	return stream->piece_used;
}

static void move_rtit(struct host_stream *stream, struct host_run *run)
{
	struct host_shared *shared = stream->state.shared;
	u64 ticks;

	if (run->begin.tsc > shared->end.tsc)
		return;
	ticks = host_rtit_move_by(shared->ctl, shared->end.tsc + 1 - run->begin.tsc);
	host_rtit_move(shared->ctl, ticks, run->room + HOST_ROOM_HEAD, run->used);
	run->end.tsc += ticks;
	stream->moved++;
}

/*
 * Write the run of @n bytes, and a line of the side record if another vCPU ran last. Without its
 * line the run would count as the other vCPU's, so shared->size is updated after both.
 */
static int put_rtit(struct host_stream *stream, struct host_run *run, const u8 *bytes, size_t n)
{
	struct host_shared *shared = stream->state.shared;
	u64 key = host_record_key(&run->who);
	int err = write_raw(stream, bytes, n);

	if (err)
		return err;
	if (shared->owner != key) {
		run->who.offset = shared->size;
		err = host_record_run(run->record, &run->who);
	}
	if (err) {
		if (ftruncate(stream->fd, (off_t)shared->size))
			err = -errno;
		return err;
	}
	shared->owner = key;
	shared->size += n;
	return 0;
}

static void append_rtit(struct host_stream *stream, struct host_run *run)
{
	struct host_shared *shared = stream->state.shared;
	u8 *bytes = run->room + HOST_ROOM_HEAD, mark[HOST_ROOM_HEAD];
	size_t n = 0;

	if (shared->busy && ftruncate(stream->fd, (off_t)shared->size))
		stream->why = errno;
	if (shared->busy || !shared->started) {
		shared->lost = shared->started;
		shared->started = true;
		shared->owner = 0;
	}
	__atomic_store_n(&shared->busy, true, __ATOMIC_SEQ_CST);
	move_rtit(stream, run);
	if (shared->lost) {
		n = mark_rtit(stream, run->entry.target, mark);
		bytes -= n;
		memcpy(bytes, mark, n);
	}
	n += run->used;
	finish(stream, run, n, put_rtit(stream, run, bytes, n));
	__atomic_store_n(&shared->busy, false, __ATOMIC_RELEASE);
}

void host_stream_append(struct host_stream *stream, struct host_run *run)
{
	host_state_lock(&stream->state);
	if (stream->state.shared->rtit)
		append_rtit(stream, run);
	else
		append(stream, run);
	host_state_unlock(&stream->state);
}

u64 host_stream_since(const struct host_stream *stream)
{
	return __atomic_load_n(&stream->state.shared->unit.since_psb, __ATOMIC_RELAXED);
}

/* ---- beginning and end ---- */

/*
 * The state knows how much of the file is ours; if it knows nothing, another program's bytes are
 * there. If busy, at most a run of a killed QEMU may follow, which is cut off. More or less: the
 * file was replaced, and is appended to.
 */
static const char *find_end(struct host_stream *stream)
{
	struct host_shared *shared = stream->state.shared;
	struct stat st;
	u64 size;

	if (fstat(stream->fd, &st))
		return strerror(errno);
	size = (u64)st.st_size;
	if (size == shared->size ||
	    (shared->busy && size > shared->size && size - shared->size <= HOST_ROOM))
		return NULL;
	if (!shared->size)
		return FILE_FOREIGN;
	shared->size = size;
	shared->started = false;
	return NULL;
}

static int open_raw(struct host_stream *stream)
{
	const struct options *options = stream->settings->options;
	struct host_shared *shared = stream->state.shared;
	const char *why;
	char path[4096];

	snprintf(path, sizeof(path), "%s/cpu%u.%s", options->host_view, stream->cpu,
		 shared->rtit ? "rtit" : "pt");
	stream->fd = file_open(path, options->mode, NULL, &why);
	if (stream->fd >= 0) {
		/* Under the lock, because others append. */
		host_state_lock(&stream->state);
		why = find_end(stream);
		host_state_unlock(&stream->state);
	}
	if (!why)
		return 0;
	fprintf(stderr, "vmpt: %s: %s\n", path, why);
	return -1;
}

struct host_stream *host_stream_open(const struct host_stream_settings *settings, u32 cpu)
{
	struct host_state_settings state = { .ctl = settings->options->ctl,
					     .synthetic = settings->options->synthetic,
					     .perf = settings->perf,
					     .rtit = settings->options->rtit };
	struct host_stream *stream = calloc(1, sizeof(*stream));

	if (!stream) {
		fputs("vmpt: no memory\n", stderr);
		return NULL;
	}
	stream->settings = settings;
	stream->cpu = cpu;
	stream->fd = -1;
	stream->sink.write = take;
	stream->sink.opaque = stream;
	if (host_state_open(&stream->state, settings->options, cpu, &state) ||
	    (!settings->perf && open_raw(stream))) {
		free(stream);
		return NULL;
	}
	if (settings->fresh)
		stream->state.shared->started = false;
	return stream;
}

/* Packets that mark a loss after which no run comes, into @bytes; returns their size. */
static size_t make_mark(struct host_stream *stream, u8 *bytes)
{
	struct host_shared *shared = stream->state.shared;

	if (shared->rtit)
		return mark_rtit(stream, stream->lost.entry.target, bytes);
	adopt(stream, &shared->unit);
	stream->kept = shared->unit;
	collect(stream, bytes, HOST_ROOM_HEAD);
	if (shared->synthetic)
		trace_host(shared);
	mark_loss(stream, &shared->unit, &stream->lost);
	vmpt_unit_flush(&shared->unit);
	/* A PSB+ at the next VM entry. */
	if (!shared->synthetic)
		force_psb(&shared->unit, false);
	return stream->piece_used;
}

/*
 * No run came after the last loss to begin with an OVF: the stream would end as if nothing were
 * missing. Often there is room for an OVF, in the file's last block, when there is none for a run.
 */
static void mark_end(struct host_stream *stream)
{
	struct host_shared *shared = stream->state.shared;
	u8 bytes[HOST_ROOM_HEAD + 8];
	size_t n;
	int err;

	/* If a process was killed in the middle of an append, the next append marks the loss. */
	if (!shared->lost || shared->busy)
		return;
	__atomic_store_n(&shared->busy, true, __ATOMIC_SEQ_CST);
	n = make_mark(stream, bytes);
	err = shared->rtit ? put_rtit(stream, &stream->lost, bytes, n) : put(stream, bytes, &n);
	if (err) {
		shared->unit = stream->kept;
		stream->unmarked = true;
	} else {
		shared->lost = false;
		shared->bytes += n;
		stream->bytes += n;
	}
	__atomic_store_n(&shared->busy, false, __ATOMIC_RELEASE);
}

static void report(const struct host_stream *stream)
{
	fprintf(stderr, "vmpt: host CPU %u: %llu runs, %llu bytes", stream->cpu,
		(unsigned long long)stream->runs, (unsigned long long)stream->bytes);
	if (stream->moved)
		fprintf(stderr, ", %llu moved in time", (unsigned long long)stream->moved);
	if (stream->lost_runs)
		fprintf(stderr, "; lost %llu runs, %llu bytes: %s",
			(unsigned long long)stream->lost_runs,
			(unsigned long long)stream->lost_bytes, strerror(stream->why));
	if (stream->unmarked)
		fputs("; no room for the OVF that tells so", stderr);
	fputc('\n', stderr);
}

void host_stream_close(struct host_stream *stream)
{
	if (stream->lost_runs) {
		host_state_lock(&stream->state);
		mark_end(stream);
		host_state_unlock(&stream->state);
	}
	if (stream->runs || stream->lost_runs)
		report(stream);
	if (stream->fd >= 0)
		close(stream->fd);
	host_state_close(&stream->state);
	free(stream);
}
