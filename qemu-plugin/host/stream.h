/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stream of one host CPU. The threads of its vCPUs execute at the same time; here their runs
 * are put one after the other. A vCPU makes the packets of a run by itself, without a lock. Those
 * of the host CPU (the VM entry with a PSB+ before it, the VM exit after it) are made when the run
 * is appended.
 */
#ifndef VMPT_QEMU_PLUGIN_HOST_STREAM_H
#define VMPT_QEMU_PLUGIN_HOST_STREAM_H

#include "qemu-plugin/flow/flow.h"
#include "qemu-plugin/host/state.h"
#include "vmm-lib/rtit.h"

struct host_perf;

/* Room before and after a run's own bytes. */
#define HOST_ROOM_HEAD 4096
#define HOST_ROOM_BODY (1280U << 10)
#define HOST_ROOM_TAIL 4096
#define HOST_ROOM      (HOST_ROOM_HEAD + HOST_ROOM_BODY + HOST_ROOM_TAIL)
/* A run of this size ends at the next tick. */
#define HOST_RUN_MAX (1U << 20)

struct host_run {
	u8 *room; /* of HOST_ROOM bytes; the run's own begin at HOST_ROOM_HEAD */
	size_t used;
	bool discard; /* the unit's packets are not part of the run */
	struct vmpt_unit *unit;
	struct vmpt_unit_entry entry;
	struct vmpt_unit_exit exit;
	struct vmpt_now begin, end;
	u64 since_stream; /* the stream's bytes since its PSB, when the run began */
	u64 since_begin;  /* the same for the unit, after its VM entry */
	/* with isa=rtit: which vCPU runs, and the side record's file */
	struct vmpt_rtit_record who;
	int record;
};

struct host_stream_settings {
	const struct options *options;
	const struct vmpt_unit_config *config;
	const char *vm;
	struct host_perf *perf; /* NULL: DIR/cpuN.pt */
	bool fresh;		/* the perf.data is new, and so are its streams */
};

struct host_stream {
	const struct host_stream_settings *settings;
	u32 cpu;
	int fd; /* of cpuN.pt; -1: perf.data */
	struct host_state state;
	u64 runs, bytes; /* appended by this process */
	u64 moved;	 /* runs that were moved in time */
	u64 lost_runs, lost_bytes;
	int why;	      /* errno of the last loss … */
	struct host_run lost; /* … and the run, without its bytes */
	bool unmarked;	      /* the stream ends without an OVF for the last loss */
	/* where the stream's unit writes to */
	u8 *piece;
	size_t piece_used, piece_room;
	struct vmpt_sink sink;
	struct vmpt_unit kept; /* the unit before the current append */
	struct host_stream *next;
};

/* @settings must outlive the stream. NULL: printed why. */
struct host_stream *host_stream_open(const struct host_stream_settings *settings, u32 cpu);
/* Append @run. If it cannot be written, it is lost and counted. */
void host_stream_append(struct host_stream *stream, struct host_run *run);
/* Bytes since the last PSB, without a lock, as a hint for the PSBs inside a run. */
u64 host_stream_since(const struct host_stream *stream);
/* Prints how much was written and lost. */
void host_stream_close(struct host_stream *stream);

#endif
