/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A VMM around the hand-over for its tests: a machine, a guest that traces to a ring of four
 * regions, and a host tracer like perf's, whose NMI handler runs at any step. At each step
 * everything is checked: whose values the MSRs hold, TraceEn, and the owner.
 */
#ifndef VMPT_TESTS_HANDOVER_RIG_H
#define VMPT_TESTS_HANDOVER_RIG_H

#include "tests/support/support.h"
#include "tests/vmm-lib/machine.h"

/* The guest's memory: its table, and its regions one after the other. */
#define RIG_PAGES   128u
#define RIG_TABLE   0x1000u
#define RIG_REGIONS 0x10000u
#define RIG_CTL	    (VMPT_CTL_OS | VMPT_CTL_USER | VMPT_CTL_TOPA | VMPT_CTL_BRANCH_EN)
#define RIG_STEPS   64
/* Not concealed: a use on each of the processors below. */
#define RIG_SHOWN (VMPT_USE_GUEST | VMPT_USE_SHOW_HOST_VMCS)

/*
 * How the VMM hands over, from VMPT_HANDOVER in the environment: with config.restore_host (the
 * default), without, or without and with host_ctl. Then the MSRs of an idle host are the guest's,
 * and the tracer sets all that it uses, as docs/vmm-guide.md asks.
 */
enum rig_mode { RIG_RESTORE, RIG_LEAN, RIG_LEAN_CTL };
enum rig_mode rig_mode(void);

struct rig;

/* The host's tracer. */
struct rig_tracer {
	bool wants; /* an event is active */
	bool rude;  /* its handler does not check who owns the MSRs */
	u64 ctl;
	bool moved; /* wants a position other than it had */
	u64 mask_ptrs;
	u64 pmis, nmis;
	u64 asked;		/* calls of host_state */
	struct vmpt_pt_regs at; /* where it goes on, as it noted when it was last stopped */
	/* called by the NMI handler if it may touch the MSRs, and if it may not */
	void (*hands_on)(struct rig *rig);
	void (*hands_off)(struct rig *rig);
};

struct rig {
	struct guest guest;
	struct machine m;
	struct vmpt_caps host, caps;
	struct vmpt_vmx_plan plan;
	struct vmpt_vcpu v;
	struct vmpt_ops ops;
	struct vmpt_config config;
	struct rig_tracer host_tracer;
	struct vmpt_shadow_memory shadow;
	u64 *shadow_page;
	struct vmpt_shadow_origin *origin;

	u32 regions; /* of the guest's ring, or of a line that ends with STOP */
	bool line;

	u8 steps[RIG_STEPS], owners[RIG_STEPS]; /* since rig_forget() */
	u32 stepped;
	u32 nmi_steps; /* bit n: an NMI comes at step n */
	u32 host_runs; /* bytes that a tracing host makes at each step */
	bool is_verified;
	bool unchecked;		      /* the state is wrong on purpose */
	struct vmpt_pt_regs verified; /* what the MSRs held when the host had stopped */
	u64 set_ctl;		      /* last set_guest_ctl */
	u64 seed;		      /* for failure messages */
	bool fail_set_ctl, fail_host_state, stop_by_host_pmi;
	u64 stored_ctl;
};

/* For rig_init(): processors. */
#define RIG_FULL   0x1ffu /* all controls */
#define RIG_NO_GPA 0x1dfu /* shadow */
#define RIG_LISTS  0x009u /* PT and conceal at exit only: lists and shadow */

/* A vCPU on a processor with VMPT_VMX_… @vmx; the host's tracer is set up and does not trace. */
void rig_init(struct rig *rig, u32 vmx, unsigned int use);
/* The same with capabilities that the caller has put into rig->host and rig->caps. */
void rig_init_caps(struct rig *rig, unsigned int use);
void rig_free(struct rig *rig);

/* The guest programs PT and sets TraceEn, with additional CTL bits @more. */
void rig_guest_on(struct rig *rig, u64 more);
/* Clears it. */
void rig_guest_off(struct rig *rig);
/* The guest's handler acknowledges its PMI. */
void rig_guest_ack(struct rig *rig);

/* The host starts or stops its event; the owner must be the host. */
void rig_host_on(struct rig *rig);
void rig_host_off(struct rig *rig);
/* For a host_state: set what is unknown as the tracer noted it. */
void rig_host_keeps(struct rig *rig, struct vmpt_pt_regs *regs);

void rig_forget(struct rig *rig);
/* Enter, run @n, exit. The result of the first call that failed. */
int rig_round(struct rig *rig, u32 n);
/* An NMI now. */
void rig_nmi(struct rig *rig);

/* Both streams are complete and in their memories; nothing is left in the MSRs. */
void rig_check_streams(struct rig *rig);
/* The MSRs are the host's, as it wants them. */
void rig_check_host(struct rig *rig);

#endif
