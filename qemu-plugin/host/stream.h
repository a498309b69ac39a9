/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stream of one host CPU. Runs of its vCPUs execute at once in real time, as their threads
 * do; here they come one after the other. A run is made by its vCPU alone, without a lock; what
 * is the host CPU's own (the entry before it with a PSB+, the exit behind it) is made when the
 * run is appended.
 */
#ifndef VMPT_QEMU_PLUGIN_HOST_STREAM_H
#define VMPT_QEMU_PLUGIN_HOST_STREAM_H

#include "qemu-plugin/flow/flow.h"
#include "qemu-plugin/host/state.h"
#include "vmm-lib/rtit.h"

struct host_perf;

/* Room before and behind a run's own bytes. */
#define HOST_ROOM_HEAD 4096
#define HOST_ROOM_BODY (1280U << 10)
#define HOST_ROOM_TAIL 4096
#define HOST_ROOM      (HOST_ROOM_HEAD + HOST_ROOM_BODY + HOST_ROOM_TAIL)
/* A run of that many bytes ends at the next occasion. */
#define HOST_RUN_MAX (1U << 20)

struct host_run {
	u8 *room; /* of HOST_ROOM bytes; the run's own begin at HOST_ROOM_HEAD */
	size_t used;
	bool discard; /* what the unit gives is not the run's */
	struct vmpt_unit *unit;
	struct vmpt_unit_entry entry;
	struct vmpt_unit_exit exit;
	struct vmpt_now begin, end;
	u64 since_stream; /* the stream's bytes since its PSB, when the run began */
	u64 since_begin;  /* the unit's own */
	/* with isa=rtit: who runs, and the side record's file */
	struct vmpt_rtit_record who;
	int record;
};

struct host_stream_settings {
	const struct options *options;
	const struct vmpt_unit_config *config;
	const char *vm;
	struct host_perf *perf; /* NULL: DIR/cpuN.pt */
	bool fresh;		/* it is new: so are its streams */
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
	bool unmarked;	      /* the stream ends as if nothing were missing */
	/* where the stream's unit writes now */
	u8 *piece;
	size_t piece_used, piece_room;
	struct vmpt_sink sink;
	struct vmpt_unit kept; /* before the append under way */
	struct host_stream *next;
};

/* @settings stay the caller's. NULL: printed why. */
struct host_stream *host_stream_open(const struct host_stream_settings *settings, u32 cpu);
/* Append @run; what cannot be written is lost. */
void host_stream_append(struct host_stream *stream, struct host_run *run);
/* Bytes since its last PSB, without a lock: for PSBs inside a run that begins. */
u64 host_stream_since(const struct host_stream *stream);
/* Print what it got and what was lost. */
void host_stream_close(struct host_stream *stream);

#endif
