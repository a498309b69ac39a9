/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A processor's PT MSRs and VMX as far as the hand-over needs them, for tests: #GP rules, VM entry
 * and exit with their controls and lists, output to guest-physical or host-physical memory,
 * GLOBAL_STATUS[55] and its interrupt as an NMI. It does not use vmm-lib.
 */
#ifndef VMPT_TESTS_MACHINE_H
#define VMPT_TESTS_MACHINE_H

#include "tests/vmm-lib/guest.h"

/* The host's tracer: a ToPA table of one page, followed by regions of 4 KiB. */
#define MACHINE_HPA	0x200000000ULL
#define MACHINE_REGIONS 4u
#define MACHINE_RING	(MACHINE_REGIONS * GUEST_PAGE)
/* No address that any processor is known to have. */
#define MACHINE_TRIGGER 0x4000f500u
/* The CR3 that a PIP of a VM exit would leak. */
#define MACHINE_HOST_CR3 0x1234567000ULL

enum machine_who { BY_HOST, BY_GUEST };

struct machine {
	/* the processor */
	struct vmpt_pt_rules rules;
	struct vmpt_pt_regs regs;
	u64 global_status;
	u64 trigger[VMPT_TRIGGERS_MAX]; /* IA32_RTIT_TRIGGERx_CFG at MACHINE_TRIGGER + x */
	bool nmi;			/* pending: the PMI's LVT entry is set to NMI */
	bool in_guest;

	/* the VMCS */
	u32 secondary, exit, entry;
	u64 guest_ctl; /* field 2814H */
	struct vmpt_msr_lists lists;

	/* memory */
	struct guest *guest;
	const struct vmpt_shadow_memory *shadow;
	u8 host[(MACHINE_REGIONS + 1) * GUEST_PAGE];

	/* who traces now: the host's own stream, or the guest's */
	u8 *log; /* the guest's bytes, as the processor made them */
	size_t logged, log_size;
	u64 host_bytes; /* byte n of the host's stream is n & 0xff */
	u8 queue[128];	/* made but not stored yet: after an EPT violation */
	u32 queued;
	bool violation;
	u64 violation_gpa;

	/* injected failures */
	bool fail_early, fail_late, no_pmi;
	int fail_access; /* this many MSR accesses work, then one does not; -1: all work */
	bool fail_on;	 /* nor do the following ones */
	u64 failed;

	/* what happened */
	u64 reads, writes, faults;
	u64 global; /* of the reads: 38EH */
	u64 leaks;  /* bytes of the host stored in the guest's memory, or the reverse, or nowhere */
	u64 pended[2], entries;
	u8 pmi_of; /* enum machine_who of the bit in global_status */
	u64 mixed; /* the bit was pended by both */
};

/* @host's processor after a cold reset; the host's ToPA table is made. */
void machine_init(struct machine *m, const struct vmpt_caps *host, struct guest *guest);
void machine_free(struct machine *m);

/* Instructions of the host. Non-zero: #GP. */
int machine_rdmsr(struct machine *m, u32 msr, u64 *value);
int machine_wrmsr(struct machine *m, u32 msr, u64 value);

/* VMRESUME. VMPT_EXIT_NORMAL: the guest runs. */
enum vmpt_exit_kind machine_enter(struct machine *m);
/* The VM exit. */
void machine_exit(struct machine *m);

/* The one that traces makes packets: @n times 8 bytes in the guest, @n bytes in the host. */
void machine_run(struct machine *m, u32 n);

/* Whether the last bytes of both streams are in the right memories. */
bool machine_host_stream_ok(const struct machine *m);

#endif
