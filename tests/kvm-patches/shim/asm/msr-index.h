/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The names of <asm/msr-index.h> that pt_core.c uses; test-constants.sh compares the values with
 * those of a kernel's source.
 */
#ifndef VMPT_SHIM_MSR_INDEX_H
#define VMPT_SHIM_MSR_INDEX_H

#include "shim.h"

#define MSR_IA32_RTIT_OUTPUT_BASE  0x00000560
#define MSR_IA32_RTIT_OUTPUT_MASK  0x00000561
#define MSR_IA32_RTIT_CTL	   0x00000570
#define MSR_IA32_RTIT_STATUS	   0x00000571
#define MSR_IA32_RTIT_CR3_MATCH	   0x00000572
#define MSR_IA32_RTIT_ADDR0_A	   0x00000580
#define MSR_IA32_RTIT_ADDR3_B	   0x00000587
#define RTIT_CTL_TRACEEN	   BIT(0)
#define RTIT_CTL_CYCLEACC	   BIT(1)
#define RTIT_CTL_OS		   BIT(2)
#define RTIT_CTL_USR		   BIT(3)
#define RTIT_CTL_PWR_EVT_EN	   BIT(4)
#define RTIT_CTL_FUP_ON_PTW	   BIT(5)
#define RTIT_CTL_FABRIC_EN	   BIT(6)
#define RTIT_CTL_CR3EN		   BIT(7)
#define RTIT_CTL_TOPA		   BIT(8)
#define RTIT_CTL_MTC_EN		   BIT(9)
#define RTIT_CTL_TSC_EN		   BIT(10)
#define RTIT_CTL_DISRETC	   BIT(11)
#define RTIT_CTL_PTW_EN		   BIT(12)
#define RTIT_CTL_BRANCH_EN	   BIT(13)
#define RTIT_CTL_MTC_RANGE_OFFSET  14
#define RTIT_CTL_MTC_RANGE	   (0xfull << RTIT_CTL_MTC_RANGE_OFFSET)
#define RTIT_CTL_CYC_THRESH_OFFSET 19
#define RTIT_CTL_CYC_THRESH	   (0xfull << RTIT_CTL_CYC_THRESH_OFFSET)
#define RTIT_CTL_PSB_FREQ_OFFSET   24
#define RTIT_CTL_PSB_FREQ	   (0xfull << RTIT_CTL_PSB_FREQ_OFFSET)
#define RTIT_CTL_EVENT_EN	   BIT(31)
#define RTIT_CTL_NOTNT		   BIT_ULL(55)
#define RTIT_STATUS_FILTEREN	   BIT(0)
#define RTIT_STATUS_CONTEXTEN	   BIT(1)
#define RTIT_STATUS_TRIGGEREN	   BIT(2)
#define RTIT_STATUS_ERROR	   BIT(4)
#define RTIT_STATUS_STOPPED	   BIT(5)
#define RTIT_STATUS_BYTECNT_OFFSET 32
#define RTIT_STATUS_BYTECNT	   (0x1ffffull << RTIT_STATUS_BYTECNT_OFFSET)

#endif
