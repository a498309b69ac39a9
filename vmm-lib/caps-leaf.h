/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * CPUID leaf 14H for a guest (SDM 3 33.3.1, Tables 33-11 and 33-12): the most that a host can
 * show it, and whether a host can carry a leaf that somebody made up. Pure functions and no
 * words: caps.h has those that explain.
 */
#ifndef VMPT_VMM_CAPS_LEAF_H
#define VMPT_VMM_CAPS_LEAF_H

#include "arch/pt-cpuid.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Why a leaf cannot be carried. */
enum vmpt_leaf_rule {
	VMPT_LEAF_OK,
	VMPT_LEAF_RESERVED,   /* a reserved bit is set; field: subleaf * 4 + register */
	VMPT_LEAF_FLAG,	      /* the host has not */
	VMPT_LEAF_COUNT,      /* more than the host has */
	VMPT_LEAF_SUBLEAVES,  /* more subleaves than are virtualized */
	VMPT_LEAF_RANGES,     /* more than four address ranges */
	VMPT_LEAF_ENCODING,   /* an encoding that the host has not */
	VMPT_LEAF_NOT_EQUAL,  /* not as the host's packets are */
	VMPT_LEAF_NEVER,      /* never virtualized */
	VMPT_LEAF_BEYOND,     /* its subleaf is beyond the last one */
	VMPT_LEAF_PARENT,     /* the field it belongs to is 0 */
	VMPT_LEAF_NO_VALUE,   /* its feature has no value */
	VMPT_LEAF_NO_SUBLEAF, /* its feature is there, the subleaf is not */
	VMPT_LEAF_PSB_0,      /* cannot be hidden: the host does not list PSB encoding 0 */
	VMPT_LEAF_OUTPUT,     /* neither ToPA nor a single range; no field */
	VMPT_LEAF_RULES
};

/* The first thing that is wrong with a leaf. */
struct vmpt_leaf_fault {
	u8 rule;	 /* enum vmpt_leaf_rule */
	u8 field;	 /* enum vmpt_pt_cap, but for RESERVED */
	u32 guest, host; /* the two values; RESERVED: the register, and the bits it may have */
};

/*
 * Whether a host with @host can carry a guest that is shown @guest's leaf 14H; the address
 * widths are not looked at. VMPT_LEAF_OK, or the first rule that is broken with all of it
 * in *@fault. @guest may be hostile.
 */
enum vmpt_leaf_rule vmpt_leaf_check(const struct vmpt_pt_cpuid *host,
				    const struct vmpt_pt_cpuid *guest,
				    struct vmpt_leaf_fault *fault);

/*
 * @offer's leaf 14H: the most that @host can show a guest, without the fields of @hide (bit n:
 * enum vmpt_pt_cap n) and with @ranges_max address ranges at most. Never FabricEn, never a
 * subleaf beyond 1 or a bit that the tables do not have. VMPT_LEAF_OK, or with *@fault why
 * nothing can be shown: VMPT_LEAF_OUTPUT and VMPT_LEAF_PSB_0. What is offered passes
 * vmpt_leaf_check(), unless VMPT_CAP_LIP is hidden.
 */
enum vmpt_leaf_rule vmpt_leaf_offer(const struct vmpt_pt_cpuid *host, u32 hide,
				    unsigned int ranges_max, struct vmpt_pt_cpuid *offer,
				    struct vmpt_leaf_fault *fault);

/*
 * Take out of leaf 14H what has lost what it rests on: a field whose parent is 0 or whose
 * subleaf is not there, and a feature of subleaf 0 that has no value left in subleaf 1.
 */
void vmpt_leaf_close(struct vmpt_pt_cpuid *pt);

#ifdef __cplusplus
}
#endif

#endif
