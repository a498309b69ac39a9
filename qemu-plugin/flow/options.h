/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the user asked for. All rooms read it; options.c at the top parses it.
 */
#ifndef VMPT_QEMU_PLUGIN_FLOW_OPTIONS_H
#define VMPT_QEMU_PLUGIN_FLOW_OPTIONS_H

#include "arch/types.h"

#define OPTION_CPUS 256

/* Values as given, with their syntax checked. Strings are never freed. */
struct options {
	bool help;
	bool rtit;  /* isa=rtit */
	u64 errata; /* that the processor has, of RTIT's Appendix E: bits 1 to 7 */

	/* host view */
	const char *host_view; /* folder of the streams; NULL: that view is off */
	const char *perf_data; /* in place of cpuN.pt; NULL: none */
	const char *vm;	       /* name in the side record */
	u64 vmcs;	       /* of vCPU 0, the others' follow page by page; 0: derived */
	u32 cpus[OPTION_CPUS]; /* host CPU of each vCPU … */
	u32 cpu_count;	       /* … given; further vCPUs count on from the last */
	bool synthetic;	       /* host=synthetic */
	u64 slice_us;	       /* longest run */
	u64 tsc_offset, tsc_multiplier;
	u64 ctl;	     /* IA32_RTIT_CTL, or RTIT_CTL, of the host's trace */
	const char *code;    /* the code stream's file; NULL: none */
	u64 code_limit;	     /* its largest size in MiB */
	const char *tasks;   /* file of the guest's processes; NULL: none */
	const char *symbols; /* and of its kernel's functions; NULL: none */

	/* guest view */
	bool guest_view;
	const char *cpu;       /* capabilities offered: a baseline's name */
	const char *signature; /* with RTIT: model and stepping */
	bool rdtsc_qemu;       /* RDTSC is left to QEMU */
	bool counters;	       /* performance counters count */

	const char *truth; /* prefix of the truth files; NULL: none */

	u64 mode; /* permissions of all files that are made */
};

#endif
