/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Traces of a machine with a side record, for tests of vmpt timeline and vmpt exits. */
#ifndef VMPT_TESTS_TIMELINE_FILES_H
#define VMPT_TESTS_TIMELINE_FILES_H

#include "tests/decoder/timeline-machine.h"

#define RATES "--tsc-ratio=100 --mtc-freq=3"
#define KHZ   "--tsc-khz=2000000"
#define FILES "a.cpu0.pt a.cpu1.pt a.cpu2.pt"

extern struct tl_machine *m;
extern size_t runs;
extern const struct tl_run *run;

/* a.cpuN.pt of a machine, and vms.jsonl: guests 0 and 1 are vCPUs of web, 2 is db's. */
void write_machine(const struct tl_options *o);
/* The fixture: 3 CPUs, 5 guests; all times are exact, all reasons from EVD. */
void timeline_setup(void);
void timeline_teardown(void);

/* Columns of the longest line. */
size_t widest(const char *text);

#endif
