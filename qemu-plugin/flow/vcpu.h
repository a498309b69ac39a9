/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The plugin as a whole, and one vCPU of it. plugin.c wires QEMU's callbacks to the flow
 * (flow.c: blocks to events), the flow feeds the trace units of the views.
 *
 * Threads: a struct vcpu is its vCPU's thread's. struct plugin is not written once vCPUs run,
 * but for the list of blocks, under its lock.
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
#include "qemu-plugin/flow/truth.h"
#include "qemu-plugin/flow/views.h"
#include "qemu-plugin/qemu/qemu.h"

/* Highest number of vCPUs. */
#define VCPUS 256U

struct host_view;
struct host_vcpu;
struct guest_view;
struct guest_vcpu;

/* What translated code writes or asks by itself, without a callback; QEMU's memory. */
struct hot {
	u64 armed;    /* 1: the last instruction of the block has begun, and it is a branch */
	u64 progress; /* instructions of the block that have begun; with a truth file */
	u64 on;	      /* block callbacks are wanted */
};

/* CS and paging, as they decide about modes and addresses. */
struct cpu_mode {
	u64 cr0, cr4, efer;
	u64 gdt; /* linear base; as LGDT last loaded it */
	u64 ldt; /* the same of LLDT; 0: none */
	u32 cs;
	/* what was loaded with CS, and what it means now */
	u64 hidden_base, cs_base;
	bool hidden_l, hidden_d, cs_l, cs_d;
	bool switched; /* the last far transfer or event brought another CR3 */
	u32 seen[4];   /* selectors of 64-bit segments; 0: none */
};

#define VCPU_UNITS 2
#define VCPU_RETS  64

struct vcpu {
	struct plugin *plugin;
	unsigned int index;
	pthread_t thread;
	bool gone; /* unplugged: its thread is no more */
	struct hot *hot;
	struct qemu_regs *regs;

	/* where it is */
	const struct block *block;    /* that began last; NULL: none */
	struct block kept;	      /* a copy of it when QEMU dropped all blocks */
	u64 delta;		      /* its run-time address - its vaddr */
	u64 arrive;		      /* where an event said it goes on … */
	bool arrived;		      /* … if one did */
	const struct block *known_in; /* a block that has come … */
	u64 known;		      /* … to here at the least: behind I/O, behind HLT */
	bool lost;		      /* delta is not known: tracing was off */
	bool undone;		      /* the last branch is told as not executed: a reset */
	bool watched;		      /* guest_ops.block() is wanted */
	bool running;		      /* host view: a run is open */
	bool busy;		      /* in a callback; see flow_stop() */
	u64 rets[VCPU_RETS];	      /* where RETs will probably go, to save reads of RIP */
	u8 ret_top;

	struct cpu_mode cpu;
	struct idt idt;
	struct vmpt_mode mode; /* as the units take it */

	/* what is traced */
	struct vmpt_unit *unit[VCPU_UNITS];
	unsigned int units;			 /* those of them that get events now */
	struct vmpt_rtit_unit *rtit[VCPU_UNITS]; /* the same of RTIT (rtit.c) */
	unsigned int rtits;
	u64 walked;	       /* to where steps in the block are told */
	u64 slept, slept_from; /* ticks of the TSC; since when, while asleep */
	u64 looked;	       /* when RTIT's clocks were read last; 0: never */
	bool asleep;
	u32 tick; /* blocks until attend(); 1: at the next one */
	struct host_vcpu *host;
	struct guest_vcpu *guest;
	struct truth *truth;
	u64 astray;    /* blocks that began where nothing led */
	u64 misplaced; /* blocks that were not where the flow put them; with a truth file */
};

struct plugin {
	u64 id; /* QEMU's name for it */
	const struct qemu_events *callbacks;
	struct qemu_machine machine;
	struct options options;
	struct clock clock;
	struct vcpu *vcpu[VCPUS];
	struct truth *truth[VCPUS]; /* files of those that are to come */
	struct host_view *host;	    /* NULL: that view is off */
	struct guest_view *guest;   /* NULL: that view is off */
	const struct host_ops *host_ops;
	const struct guest_ops *guest_ops;
	bool always;	  /* block callbacks are always wanted */
	bool rtit;	  /* isa=rtit: RTIT in place of Intel PT */
	bool events;	  /* vectors, CR2 and RFLAGS.IF are traced (EventEn) */
	bool whole;	  /* blocks are translated with all that the flow needs */
	bool whole_asked; /* atomic: that is under way */
	bool ending;	  /* atomic: callbacks do nothing any more */

	struct qemu_slots *slots; /* of struct hot */

	pthread_mutex_t lock; /* for what follows */
	struct block *blocks;
	u64 translated;
};

#endif
