/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* How the PC's clocks relate; their values in CPUID and PLATFORM_INFO. */
#ifndef VMPT_BOCHS_CLOCK_H
#define VMPT_BOCHS_CLOCK_H

#include "pc.h"
#include "param_names.h"

/* CPUID.15H: EBX/EAX */
#define PC_TSC_PER_CRYSTAL 100u

/* Bochs's instructions per second ("ips"). */
u64 pc_tsc_hz(void);
/* The maximum non-turbo ratio of the 100 MHz bus, and the ratio in CBR: 1 to 255. */
u32 pc_bus_ratio(void);

#endif
