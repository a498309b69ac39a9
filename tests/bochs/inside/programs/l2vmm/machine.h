/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One VM of l2vmm with its vCPU, its thread, and its counters.
 */
#ifndef MACHINE_H
#define MACHINE_H

#include <pthread.h>

#include "guest.h"

#define MAX_MACHINES 16

struct machine_options {
	unsigned int rounds;
	unsigned int spin;
	u32 flags; /* of the guest */
	bool irqchip;
	bool no_pt;
	bool has_tsc_offset;
	u64 tsc_offset;
	u32 tsc_khz; /* 0: the host's */
	const char *save;
	const char *image;
};

/* Exits to user space. */
enum machine_exit { EXIT_OUT, EXIT_IN, EXIT_READ, EXIT_WRITE, EXIT_HLT, EXIT_WINDOW, EXIT_KINDS };

struct machine {
	unsigned int id;
	enum guest_mode mode;
	const struct machine_options *options;
	struct vm vm;
	struct vcpu vcpu;
	struct guest_head *head;
	pthread_t thread;
	u32 round;    /* current round, from 1 */
	u32 state;    /* after the previous round, by our own calculation */
	u32 injected; /* interrupts */
	bool irq_wanted;
	bool done;
	unsigned int failures;
	u64 exits[EXIT_KINDS];
};

/* Make the VM and start its thread. */
void machine_start(struct machine *m, unsigned int id, enum guest_mode mode,
		   const struct machine_options *options);

/* Wait for its end and print a line on it. Returns 0 if all was right, else 1. */
int machine_finish(struct machine *m);

#endif
