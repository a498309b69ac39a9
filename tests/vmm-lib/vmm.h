/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A small VMM on libvmpt, for tests: exit handlers for one vCPU, a guest that "runs" by filling its
 * buffer with TNT packets as the processor would, SMM, RESET, migration. It can be given a bug, to
 * check that the conformance suite finds it.
 */
#ifndef VMPT_TESTS_VMM_H
#define VMPT_TESTS_VMM_H

#include "tests/vmm-lib/guest.h"
#include "vmm-lib/conformance.h"

/* Bugs of the VMM. The D-numbers are those of docs/kvm-faults.md. */
enum vmm_bug {
	BUG_NONE,
	BUG_RESERVED_BITS,   /* CTL is stored as the guest wrote it */
	BUG_FABRIC,	     /* leaf 14H as the host has it, FabricEn too (D11) */
	BUG_TRIGGERS,	     /* leaf 14H shows the host's Trigger Tracing (A2) */
	BUG_EVENT_REFUSED,   /* Event Trace shown but refused (D10) */
	BUG_NO_PT_USABLE,    /* MSRs usable without PT in CPUID (D9) */
	BUG_CR3_MATCH,	     /* CR3_MATCH[4:0] unchecked (D6) */
	BUG_MAXPHYADDR,	     /* OUTPUT_BASE unchecked (D7) */
	BUG_LOWER_MASK,	     /* low bits of MASK_PTRS as written (D15) */
	BUG_STATUS_PEND,     /* STATUS bits 6, 7 refused (D14) */
	BUG_STOP_AND_CHANGE, /* clearing TraceEn may not change other bits (6.12) */
	BUG_RESTORE_ORDER,   /* restores obey TraceEn (D13) */
	BUG_INIT_CLEARS,     /* INIT taken for RESET (D20) */
	BUG_SMI_IGNORED,     /* SMI leaves TraceEn alone (D21) */
	BUG_VMXON_IGNORED,   /* (D5) */
	BUG_NO_PIP,	     /* (D22) */
	BUG_TWO_PIPS,
	BUG_PIP_WITHOUT_OS,
	BUG_NO_PMI, /* (D16) */
	BUG_PMI_TWICE,
	BUG_PMI_BIT,	   /* GLOBAL_STATUS[55] never shown (D27) */
	BUG_NO_RATIO,	   /* PLATFORM_INFO 0 (D24) */
	BUG_SUBLEAF,	   /* subleaf 2 repeats subleaf 1 */
	BUG_COMPONENT_8,   /* listed, but not described */
	BUG_MIGRATE_LOSES, /* ADDRn not saved */
	BUG_NO_ERROR,	   /* ToPA errors are not detected */
	BUG_HOLE_TO_RAM,   /* output without memory goes to a page of RAM */
	BUG_OFFSET,	   /* OutputOffset does not advance */
	BUG_WRITES_WHILE_TRACING,
	BUG_ENCODINGS, /* any MTCFreq is accepted */
	BUG_CANONICAL,
	BUG_NOT_RESET,
	BUG_RANGE_LEFT,	     /* a single range's mask is taken for a larger one */
	BUG_END_SAME,	     /* END leads back to its own table */
	BUG_PMI_LOST,	     /* PendTopaPMI is not checked */
	BUG_PMI_ALWAYS,	     /* it is checked without InjectPsbPmiOnEnable */
	BUG_FILTER_IGNORED,  /* a PIP in any process */
	BUG_FILTER_NO_PIP,   /* none under CR3Filter */
	BUG_XSAVES_KEEPS,    /* XSAVES leaves TraceEn set */
	BUG_XSAVES_LAYOUT,   /* wrong order in the area */
	BUG_XRSTORS_TRACING, /* XRSTORS works with TraceEn = 1 */
	BUG_XRSTORS_NOTHING, /* it changes nothing */
	BUG_HOST_BELIEVES,   /* the host's tracer loads CTL only, without restore_host */
	BUGS
};

struct vmm {
	struct guest mem; /* first: passed to the memory callbacks */
	struct vmpt_caps host, guest;
	struct vmpt_vmx_plan plan;
	struct vmpt_config config;
	struct vmpt_vcpu vcpu;
	u64 cr3;
	struct vmpt_pt_regs hw; /* the processor's MSRs, for host_traces */
	u8 bug;			/* enum vmm_bug */
};

/* A VMM with 1 MiB of RAM whose guest gets what @policy allows of @host. */
void vmm_init(struct vmm *vmm, const struct vmpt_caps *host, const struct vmpt_policy *policy);
void vmm_free(struct vmm *vmm);

/* All callbacks; opaque is the struct vmm. */
extern const struct vmpt_conformance_ops vmm_conformance_ops;

#endif
