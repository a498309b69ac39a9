/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A processor with RTIT for the tests of vmm-lib/rtit/: the model's trace unit in VMX operation
 * that the MSR callbacks reach, with a guest's memory, a bounce buffer and a buffer of the host's
 * own tracing. Each write of an MSR is checked against the order of 3.3.2, each byte the processor
 * stores against the memory that was given to it.
 */
#ifndef VMPT_TESTS_RTIT_RIG_H
#define VMPT_TESTS_RTIT_RIG_H

#include "model/vmpt-rtit.h"
#include "tests/support/support.h"
#include "tests/vmm-lib/guest.h"
#include "vmm-lib/rtit.h"

#define RIG_PAGES      1200u
#define RIG_BOUNCE_HPA 0x200000000ULL
#define RIG_HOST_HPA   0x300000000ULL
#define RIG_HOST_SIZE  0x10000u
#define RIG_BOUNCE_MAX 0x400000u
#define RIG_LOG	       64

/* CTL: everything that executes, to memory */
#define RIG_CTL (VMPT_RTIT_CTL_OS | VMPT_RTIT_CTL_USER | VMPT_RTIT_CTL_DEST)
#define RIG_ON	(RIG_CTL | VMPT_RTIT_CTL_TRIGGER)

struct rig {
	struct guest guest;
	struct vmpt_rtit_unit unit; /* the processor */
	struct vmpt_rtit_vcpu v;
	struct vmpt_rtit_ops ops;
	struct vmpt_rtit_config config;
	struct vmpt_rtit_sink sink;
	u8 *bounce, *host;
	u32 pins[RIG_PAGES];	  /* guest_translate() minus guest_release() */
	u8 stored[RIG_PAGES];	  /* the processor stored something there */
	struct vmpt_rtit_mode in; /* of the guest */
	u64 sts_tsc;		  /* for clock() */
	u8 port[256];		  /* what went to the debug port */
	u32 port_len;
	u64 port_pa;

	/* WRMSRs of the processor since rig_forget(), and all accesses */
	struct {
		u32 msr;
		u64 value;
	} log[RIG_LOG];
	u32 logged, accesses;
	u32 fail_at;	 /* the access that fails, counted from 1; 0: none */
	u32 fail_msr;	 /* accesses to this one fail */
	u32 fail_write;	 /* writes of this one fail */
	u32 fake_msr;	 /* this one reads … */
	u64 fake_value;	 /* … so … */
	u32 fake_from;	 /* … from this access on */
	bool host_again; /* an NMI handler sets Trace_En whenever it was cleared */
	bool unchecked;	 /* the order is wrong on purpose: a failing processor */
};

/* A vCPU with @output and a bounce buffer of @size, 0: none; the processor after RESET, in root
 * operation. */
void rig_init(struct rig *rig, enum vmpt_rtit_output output, u32 size);
/* rig->config changed: a new vCPU. */
void rig_again(struct rig *rig);
void rig_free(struct rig *rig);
void rig_forget(struct rig *rig);

/* The guest's RDMSR and WRMSR, which must not fault; it has read CTL. */
u64 rig_rd(struct rig *rig, u32 msr);
void rig_wr(struct rig *rig, u32 msr, u64 value);
/*
 * Filter always on, output of @mask + 1 bytes at @base, then CTL's bits @ctl in the guest's own
 * order.
 */
void rig_program(struct rig *rig, u64 base, u64 mask, u64 ctl);

/* The processor between guest and VMM; both at @ip. */
void rig_enter(struct rig *rig, u64 ip);
void rig_exit(struct rig *rig, u64 ip);
/* Time passes: TSC and cycles. */
void rig_time(struct rig *rig, u64 ticks);
/* Another processor after RESET, in root operation at the same time. */
void rig_new_processor(struct rig *rig);

/* The host traces its guests to its own buffer, from now on. */
void rig_host_on(struct rig *rig, u64 ctl);

/* Nothing was changed between a copy and this, including padding. */
static inline bool rig_same(const void *a, const void *b, size_t len)
{
	return !memcmp(a, b, len);
}

/* Bytes of the guest's memory. */
void rig_get(struct rig *rig, u64 gpa, u8 *buf, size_t len);
/* They are "c0 00 …", at most 64. */
void rig_expect(struct rig *rig, u64 gpa, const char *hex);

#endif
