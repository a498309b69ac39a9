/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * VMX controls for PT (SDM 3 33.5.1, 33.5.2, Table 33-52): which ones a use of PT needs on a given
 * processor, MSR load/store lists if controls are missing, and which guest accesses must be
 * intercepted.
 */
#ifndef VMPT_VMM_VMX_H
#define VMPT_VMM_VMX_H

#include "vmm-lib/caps.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The VMX controls of PT: bits of the secondary processor-based, exit and entry controls (33.5.1).
 */
#define VMPT_SECONDARY_EPT	  (1u << 1)
#define VMPT_SECONDARY_CONCEAL	  (1u << 19)
#define VMPT_SECONDARY_PT_USE_GPA (1u << 24)
#define VMPT_EXIT_CONCEAL	  (1u << 24)
#define VMPT_EXIT_CLEAR_RTIT_CTL  (1u << 25)
#define VMPT_ENTRY_CONCEAL	  (1u << 17)
#define VMPT_ENTRY_LOAD_RTIT_CTL  (1u << 18)

/* For the VMM's set_guest_ctl and get_guest_ctl: the VMCS field of the guest's CTL. */
#define VMPT_VMCS_GUEST_RTIT_CTL 0x2814

/* Who traces on a processor that runs a guest, and whom (33.5.2). */
enum vmpt_use {
	VMPT_USE_NONE,	 /* no one traces; the guest is shown no PT */
	VMPT_USE_GUEST,	 /* the guest traces itself; VMX is concealed: its trace looks like that
			    of a physical machine */
	VMPT_USE_SYSTEM, /* the host traces host and guest; the guest is shown no PT */
	VMPT_USE_HOST,	 /* the host traces only itself; the guest is shown no PT */
	VMPT_USES
};

/*
 * With VMPT_USE_GUEST: do not conceal VMX. **The guest reads in its own trace the host-physical
 * addresses of its VMCSs**, in the VMCS packet of each PSB+ (33.4.2.15, 33.5.1), and NR = 1.
 * Only for a guest that may know them, for example to debug the VMM, or on a processor without the
 * three conceal controls, where VMPT_USE_GUEST is refused.
 */
#define VMPT_USE_SHOW_HOST_VMCS 0x100

/* Which bits of a control field belong to this library, and their values. */
struct vmpt_control {
	u32 mask, value;
};

/* An entry of an MSR load or store area. */
struct vmpt_msr_entry {
	u32 msr;
	u64 value; /* in a store list: filled in by the processor */
};

/* Most entries that PT needs in one of the areas. */
#define VMPT_LIST_MAX 4

/* The three MSR areas of a VMCS, as far as PT needs them. @value is what the VMM writes there. */
struct vmpt_msr_lists {
	struct vmpt_msr_entry entry_load[VMPT_LIST_MAX];
	struct vmpt_msr_entry exit_store[VMPT_LIST_MAX];
	struct vmpt_msr_entry exit_load[VMPT_LIST_MAX];
	u8 entry_loads, exit_stores, exit_loads;
};

/* How PT is virtualized on a processor for one use. Made once per VM. */
struct vmpt_vmx_plan {
	u8 use;		/* enum vmpt_use */
	bool guest_pt;	/* the guest has PT */
	bool lists;	/* no load/clear controls: TraceEn goes through MSR lists */
	bool shadow;	/* no GPA control: output goes through a shadow ToPA */
	bool conceal;	/* NR = 0, no VMCS packets in the guest; not with SHOW_HOST_VMCS */
	bool no_lbr;	/* do not offer LBRs together with PT (33.3.1.2) */
	bool stop_host; /* the host's tracing is stopped before each entry */
	struct vmpt_control secondary, exit, entry;
};

/*
 * Plan @use on @host: an enum vmpt_use, VMPT_USE_GUEST possibly with VMPT_USE_SHOW_HOST_VMCS.
 * -VMPT_E_CONTROLS with @why (may be NULL) if the processor cannot do it safely, -VMPT_E_INVAL: no
 * such use. The guest's own PT needs VMX_MISC[14].
 */
int vmpt_vmx_plan(struct vmpt_vmx_plan *plan, const struct vmpt_caps *host, unsigned int use,
		  struct vmpt_refusal *why);

/*
 * Check the rules between the controls, for a VMM (or a test) that sets the fields itself: "PT uses
 * guest physical addresses" without EPT, load and clear; a control that the processor lacks;
 * conceal without VMX_MISC[14]; for a guest with PT, load or clear without the other; what the use
 * needs. 0 or -VMPT_E_CONTROLS with @why (may be NULL).
 */
int vmpt_vmx_check(const struct vmpt_vmx_plan *plan, const struct vmpt_caps *host, u32 secondary,
		   u32 exit, u32 entry, struct vmpt_refusal *why);

/*
 * The MSR lists for the next entry of a plan with @lists: CTL last in the entry list, the guest's
 * CTL in the store list, 0 for CTL last in the exit load list, whatever the host's value: the
 * OUTPUT MSRs still hold the guest's values then, and vmpt_vcpu_exit() writes the host's CTL after
 * them. For other plans all three are empty.
 */
void vmpt_vmx_lists(const struct vmpt_vmx_plan *plan, u64 guest_ctl, struct vmpt_msr_lists *lists);

/* Which guest accesses to an MSR must exit. */
#define VMPT_INTERCEPT_READ  0x1
#define VMPT_INTERCEPT_WRITE 0x2

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
