/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What QEMU processes that share a host CPU have in common: its trace unit, and how much of its
 * stream is complete. It is in a file that all of them map, DIR/cpuN.state, under a lock.
 */
#ifndef VMPT_QEMU_PLUGIN_HOST_STATE_H
#define VMPT_QEMU_PLUGIN_HOST_STATE_H

#include <pthread.h>

#include "model/vmpt-model.h"

struct options;

/* Contents of the file. All processes must have the same plugin, which magic and layout show. */
struct host_shared {
	char magic[8]; /* with a version */
	u64 layout;    /* sizeof of this */
	char boot[40];
	/* options that all of them must have in common */
	u64 ctl;
	u8 synthetic, perf; /* rtit too, below */

	u8 busy;    /* a run is being appended; if a process finds this set, another was killed */
	u8 started; /* TraceEn has been 1 */
	u8 lost;    /* bytes were lost: an OVF is due */
	u8 rtit;    /* isa=rtit */
	u64 size;   /* bytes of complete runs in cpuN.pt … */
	u64 bytes;  /* … and in this stream, whatever file it goes to */
	struct vmpt_now end; /* .tsc at HOST_SHARED_END, where vmpt domain trace reads it */
	u64 host_ip;	     /* where a synthetic host is */
	struct vmpt_unit unit;
	u64 owner; /* with isa=rtit: host_record_key() of the last run's vCPU; 0: none */
};

#define HOST_SHARED_END 88

struct host_state {
	int fd;
	pthread_mutex_t mutex; /* threads; flock() is for processes */
	struct host_shared *shared;
};

struct host_state_settings {
	u64 ctl;
	bool synthetic, perf, rtit;
};

/*
 * Opens DIR/cpuN.state, and creates it if it is missing. If no other process writes the stream now,
 * it may continue with other settings. 0, or -1: printed why.
 */
int host_state_open(struct host_state *state, const struct options *options, u32 cpu,
		    const struct host_state_settings *settings);
void host_state_close(struct host_state *state);

void host_state_lock(struct host_state *state);
void host_state_unlock(struct host_state *state);

#endif
