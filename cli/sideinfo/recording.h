/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A recording (docs/record.md): from recording.json the host's clocks; from the side record of vmpt
 * record which threads are vCPUs of which VM, their TSC offsets and multipliers over time.
 */
#ifndef VMPT_CLI_SIDEINFO_RECORDING_H
#define VMPT_CLI_SIDEINFO_RECORDING_H

#include "cli/base/base.h"
#include "decoder/vmpt-clock.h"
#include "decoder/vmpt-events.h"

/* One reading of a vCPU. */
struct cli_recording_look {
	size_t vcpu;
	u64 before, after; /* host TSC around the reading; 0: not known */
	bool has_map;	   /* of a vCPU that ran */
	struct vmpt_tsc_map map;
};

struct cli_recording_vcpu {
	char *vm;     /* libvirt's domain, else the VMM's guest name, else "COMM/PID"; not NULL */
	char *uuid;   /* NULL: not known */
	int pid, tid; /* tid -1: not known */
	int vcpu;
	u64 from, to;  /* host TSC, first and last time it was seen */
	bool replaced; /* while the file is read: a later one has the same names and thread */
};

/* The host's clocks, read at one time. */
struct cli_clock_pair {
	u64 tsc;
	u64 mono_raw_ns; /* CLOCK_MONOTONIC_RAW */
	u64 real_ns;	 /* CLOCK_REALTIME, since 1970; 0: unknown */
};

struct cli_recording {
	struct cli_recording_vcpu *vcpu;
	size_t vcpus;
	struct cli_recording_look *look; /* as in the file: by time */
	size_t looks;
	/* The host; 0: not known */
	u32 tsc_num, tsc_den; /* CPUID.15H EBX, EAX */
	u32 nominal;	      /* maximum non-turbo ratio */
	u32 family, model, stepping;
	u32 cpus; /* online when the recording began */
	u64 tsc_khz;
	u32 mtc_freq; /* IA32_RTIT_CTL.MTCFreq */
	bool has_mtc_freq;
	/* By .tsc, each later than the one before; none if the trace contradicts them */
	struct cli_clock_pair *pair;
	size_t pairs;
	/*
	 * CPUs that share no clock: how far apart they were at most, in ns. Those of the QEMU
	 * plugin are ahead of the clock where VMs share them (docs/qemu-plugin/host-view.md); .pair
	 * has the one that is ahead most.
	 */
	u64 spread_ns;
};

/* Read @side. 0, or the exit code after a message with the line's number. */
int cli_recording_read(struct cli *cli, const char *side, struct cli_recording **rec);
void cli_recording_free(struct cli_recording *rec);

/*
 * The recording of the open trace: recording.json, and the side record if vmpt record wrote it:
 * --side-record, or that of the recording. @rec is NULL if there is neither.
 */
int cli_recording_open(struct cli *cli, struct cli_recording **rec);
/*
 * Names of the VMCSs of the open trace, by its events and @rec (NULL: none). Walks all streams
 * once. @names is NULL if the trace has no events with times.
 */
int cli_recording_names(struct cli *cli, const struct cli_recording *rec,
			const struct vmpt_clocks *clocks, struct vmpt_names **names);
/* A host TSC of the open trace, by its events: vmpt_clocks_options' near_tsc. 0: none; RTIT. */
u64 cli_recording_near_tsc(struct cli *cli);

/*
 * Add what recording.json has, if there is one; @rec may be NULL before and after. It warns of what
 * it cannot use, and of clocks that were set during the recording.
 */
int cli_recording_head(struct cli *cli, struct cli_recording **rec);
/* The first known host TSC of the trace: a recording of another time loses its pairs. */
void cli_recording_check(struct cli *cli, struct cli_recording *rec, u64 first_tsc);

/* What is known before the trace is read. */
void cli_recording_rates(const struct cli_recording *rec, struct vmpt_rates *rates);
/* For vmpt_names_open(); free() the array, @rec owns its names. 0, or an exit code. */
int cli_recording_threads(const struct cli *cli, const struct cli_recording *rec,
			  struct vmpt_given_thread **threads, size_t *count);
/* Its maps of VMCSs, whose names are known by now: VMPT_MAP_KVM. free() it. */
int cli_recording_given(const struct cli *cli, const struct cli_recording *rec,
			const struct vmpt_names *names, struct vmpt_given **given, size_t *count);

#endif
