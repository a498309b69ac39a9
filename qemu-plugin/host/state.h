/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What QEMU processes that share a host CPU must agree on: its trace unit, and how much of its
 * stream is whole. It lives in a file that all of them map, DIR/cpuN.state, under a lock.
 */
#ifndef VMPT_QEMU_PLUGIN_HOST_STATE_H
#define VMPT_QEMU_PLUGIN_HOST_STATE_H

#include <pthread.h>

#include "model/vmpt-model.h"

/* The file's contents. All processes have the same plugin: "magic" and "layout" say so. */
struct host_shared {
	char magic[8]; /* with a version */
	u64 layout;    /* sizeof of this */
	char boot[40];
	/* what all that share it must have asked for */
	u64 ctl;
	u8 synthetic, perf; /* rtit too, below */

	u8 busy;    /* a run is being appended: whoever finds it set was left alone by a kill */
	u8 started; /* TraceEn was 1 once */
	u8 lost;    /* bytes were lost: an OVF is due */
	u8 rtit;    /* isa=rtit */
	u64 size;   /* bytes of whole runs in cpuN.pt … */
	u64 bytes;  /* … and in this stream, wherever it goes */
	struct vmpt_now end;
	u64 host_ip; /* of a synthetic host, where it stands */
	struct vmpt_unit unit;
	u64 owner; /* with isa=rtit, of host_record_key(): whose run is the last one; 0: nobody's */
};

struct host_state {
	int fd;
	pthread_mutex_t mutex; /* threads; flock() is for processes */
	struct host_shared *shared;
};

struct host_state_wants {
	u64 ctl;
	bool synthetic, perf, rtit;
};

/*
 * DIR/cpuN.state, made if it is missing. A stream that nobody writes now may be gone on with
 * under other settings. 0 or -1: printed why.
 */
int host_state_open(struct host_state *state, const char *dir, u32 cpu,
		    const struct host_state_wants *wants);
void host_state_close(struct host_state *state);

void host_state_lock(struct host_state *state);
void host_state_unlock(struct host_state *state);

#endif
