/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The processor of execute.c: its trace unit, time, overflows, and the truth that it records. */
#ifndef VMPT_TESTS_RTIT_CPU_H
#define VMPT_TESTS_RTIT_CPU_H

#include "model/rtit-fast.h"
#include "tests/rtit/programs/program.h"

struct rtit_cpu {
	struct machine m;
	const struct rtit_settings *set;
	struct rtit_execution *done;
	struct vmpt_rtit_unit unit;
	struct vmpt_rtit_sink sink;
	unsigned int refuse; /* writes that the sink still refuses */
	bool willing;	     /* the sink refuses no more */
	struct vmpt_rtit_clocks clocks;

	struct rtit_enables enables;
	bool smm, root;
	bool overflow;
	bool stop_pending; /* TraceStop in an overflow */
	bool stop_tried;   /* E4's TraceSTOP came in this one */
	bool doubt;	   /* a FUP.BuffOvf, and no packet of the flow since */
	bool lost;	   /* its LIP may never be executed, and no other LIP came since */
	u64 nlip;	   /* after the last instruction */
	u64 resumed;	   /* its LIP */
	size_t confirmed;  /* number of instructions that packets confirm */
	size_t begin_events, begin_quiets, begin_confirmed; /* when the step began */
	u64 begin_stops;
	bool stop_filter; /* FilterEn before TraceStop cleared it */
};

/* ---- what a decoder has to find; nothing in an overflow ---- */

/* The instruction at @ip retires. */
void cpu_retired(struct rtit_cpu *cpu, u64 ip);
/* A packet confirms all that was executed until now. */
void cpu_confirm(struct rtit_cpu *cpu);
/* A TIP does, and gives the IP where execution goes on. */
void cpu_found(struct rtit_cpu *cpu);
void cpu_log(struct rtit_cpu *cpu, unsigned int kind, u64 from, u64 to);
/* The last event's from may be up to @slack bytes less. */
void cpu_slack(struct rtit_cpu *cpu, unsigned int slack);
void cpu_log_cr3(struct rtit_cpu *cpu);
/* Packets are disabled at @from without one. */
void cpu_quiet(struct rtit_cpu *cpu, u64 from);

/* ---- enables ---- */

/* True: TraceStop strikes. */
bool cpu_decide(struct rtit_cpu *cpu, bool taken, u64 ip);
void cpu_stop(struct rtit_cpu *cpu);
/* By WRMSR, which ends at @next. */
void cpu_trace_on(struct rtit_cpu *cpu, u64 next);
void cpu_trace_off(struct rtit_cpu *cpu, u64 next);

/* ---- around a step ---- */

void cpu_pass_time(struct rtit_cpu *cpu);
/* Overflows begin and end here, or with a sink that refuses: */
void cpu_overflows(struct rtit_cpu *cpu);
void cpu_begin(struct rtit_cpu *cpu);
void cpu_watch(struct rtit_cpu *cpu);

void cpu_start(struct rtit_cpu *cpu);
void cpu_finish(struct rtit_cpu *cpu);

#endif
