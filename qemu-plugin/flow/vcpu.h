/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One vCPU, and the plugin as a whole. plugin.c connects QEMU's callbacks with the flow, which
 * turns blocks into events and feeds the views' trace units.
 *
 * Threads: only the vCPU's own thread uses its struct vcpu. struct plugin does not change once
 * vCPUs run, except the list of blocks, which has a lock.
 */
#ifndef VMPT_QEMU_PLUGIN_FLOW_VCPU_H
#define VMPT_QEMU_PLUGIN_FLOW_VCPU_H

#include <pthread.h>

#include "model/vmpt-model.h"
#include "model/vmpt-rtit.h"
#include "qemu-plugin/flow/block.h"
#include "qemu-plugin/flow/clock.h"
#include "qemu-plugin/flow/idt.h"
#include "qemu-plugin/flow/options.h"
#include "qemu-plugin/flow/ram.h"
#include "qemu-plugin/flow/truth.h"
#include "qemu-plugin/flow/views.h"
#include "qemu-plugin/qemu/qemu.h"

/* Maximum number of vCPUs. */
#define VCPUS 256U

struct code;
struct code_vcpu;
struct host_view;
struct host_vcpu;
struct guest_view;
struct guest_vcpu;

/* What translated code writes and tests without a callback. In memory of QEMU's. */
struct hot {
	u64 armed;    /* 1: the last instruction of the block has begun, and it is a branch */
	u64 progress; /* instructions of the block that have begun; with a truth file */
	u64 on;	      /* block callbacks are wanted */
	/* What has executed with CPL 0 and with CPL 1 to 3; see guest/pmu.c. */
	struct hot_counts {
		u64 insns;    /* guest_ops.counted() is called when it reaches COUNTED */
		u64 branches; /* instructions that end blocks as branches */
		u64 indirect; /* those of them that are indirect JMPs and CALLs */
	} counts[2];
};

#define COUNTED (1ULL << 63)

/* CS and paging, from which modes and addresses follow. */
struct cpu_mode {
	u64 cr0, cr4, efer;
	u64 gdt; /* linear base that LGDT loaded last */
	u64 ldt; /* the same for LLDT; 0: none */
	u32 cs;
	/* as loaded with CS, and as in effect now */
	u64 hidden_base, cs_base;
	bool hidden_l, hidden_d, cs_l, cs_d;
	bool switched; /* the last far transfer or event changed CR3 */
	u32 seen[4];   /* selectors of 64-bit segments; 0: none */
};

#define VCPU_UNITS 2
#define VCPU_RETS  64

struct vcpu {
	struct plugin *plugin;
	unsigned int index;
	pthread_t thread;
	bool gone; /* unplugged: its thread has ended */
	struct hot *hot;
	struct qemu_regs *regs;

	/* where execution is */
	const struct block *block;	/* the one that began last; NULL: none */
	struct block kept;		/* a copy of it, after QEMU dropped all blocks */
	u64 delta;			/* its address now - its address at translation */
	u64 arrive;			/* where it continues after an event … */
	bool arrived;			/* … if there was one */
	const struct block *reached_in; /* a block that has executed … */
	u64 reached;			/* … at least up to here: after I/O, after HLT */
	bool lost;			/* delta is not known: tracing was off */
	bool undone;			/* a reset: the last branch was reported as not executed */
	bool watched;			/* guest_ops.block() is wanted */
	bool running;			/* host view: a run is open */
	bool busy;			/* in a callback; see flow_stop() */
	u64 rets[VCPU_RETS];		/* where RETs will probably go, to avoid reading RIP */
	u8 ret_top;

	struct cpu_mode cpu;
	struct idt idt;
	struct vmpt_mode mode; /* for the trace units */

	/* tracing */
	struct vmpt_unit *unit[VCPU_UNITS];
	unsigned int units;			 /* how many are attached */
	struct vmpt_rtit_unit *rtit[VCPU_UNITS]; /* the same for RTIT */
	unsigned int rtits;
	u64 walked;	       /* steps in the block are reported up to here */
	u64 slept, slept_from; /* ticks of the TSC; if asleep, since when */
	u64 last_clock;	       /* when RTIT's clocks were read last; 0: never */
	bool asleep;
	u32 tick; /* blocks until attend(); 1: in the next one */
	struct host_vcpu *host;
	struct guest_vcpu *guest;
	struct truth *truth;
	struct code_vcpu *code; /* NULL: there is no code stream */
	u64 astray;		/* blocks that began where no branch or event led */
	u64 misplaced;		/* with a truth file: blocks at another address than the flow's */
};

struct plugin {
	u64 id; /* in QEMU's interface */
	const struct qemu_events *callbacks;
	struct qemu_machine machine;
	struct options options;
	struct clock clock;
	struct vcpu *vcpu[VCPUS];
	struct truth *truth[VCPUS]; /* of vCPUs that do not run yet */
	struct code *code;	    /* NULL: there is no code stream */
	struct host_view *host;	    /* NULL: that view is off */
	struct guest_view *guest;   /* NULL: that view is off */
	const struct host_ops *host_ops;
	const struct guest_ops *guest_ops;
	bool always;	   /* block callbacks are always wanted */
	bool rtit;	   /* isa=rtit: RTIT in place of Intel PT */
	bool events;	   /* vectors, CR2 and RFLAGS.IF are followed (EventEn) */
	bool whole;	   /* blocks are translated with everything the flow needs */
	bool whole_asked;  /* atomic: this has been requested */
	bool counts;	   /* blocks count their instructions and branches */
	bool counts_asked; /* atomic: this has been requested */
	bool ending;	   /* atomic: callbacks do nothing from now on */
	u64 code_changes;  /* atomic: how often known code has changed */
	u64 watch_cr3;	   /* host_ops.tick() is wanted where these bits change; 0: never */
	struct ram ram;

	struct qemu_slots *slots; /* of struct hot */

	pthread_mutex_t lock; /* for what follows */
	struct block *blocks;
	u64 translated;
};

#endif
