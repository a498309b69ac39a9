/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Capabilities: what a host has, what a guest is offered, whether a host can support a guest's
 * CPUID, and the common set of a pool of hosts (SDM 3 33.3.1, 33.5.1).
 */
#ifndef VMPT_VMM_CAPS_H
#define VMPT_VMM_CAPS_H

#include "arch/error.h"
#include "arch/pt-cpuid.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* What the processor's VMX can do for PT. */
#define VMPT_VMX_PT	       0x001 /* IA32_VMX_MISC[14]: PT may trace in VMX operation */
#define VMPT_VMX_EPT	       0x002 /* secondary control 1 */
#define VMPT_VMX_CONCEAL_EXEC  0x004 /* secondary control 19 */
#define VMPT_VMX_CONCEAL_EXIT  0x008 /* VM-exit control 24 */
#define VMPT_VMX_CONCEAL_ENTRY 0x010 /* VM-entry control 17 */
#define VMPT_VMX_USE_GPA       0x020 /* secondary control 24 */
#define VMPT_VMX_CLEAR_CTL     0x040 /* VM-exit control 25 */
#define VMPT_VMX_LOAD_CTL      0x080 /* VM-entry control 18 */
#define VMPT_VMX_TSC_SCALING   0x100 /* secondary control 25; for the VMM, no rule depends on it */
/* Family and model of 33.3.1.2: PT and LBRs exclude each other. */
#define VMPT_VMX_NO_LBR 0x200

/* Of a host, or what a guest is shown (then vmx is 0: PT is not offered to L2 guests). */
struct vmpt_caps {
	struct vmpt_pt_cpuid cpuid;
	u32 vmx; /* VMPT_VMX_… */
};

/* How vmpt_caps_read() reads a processor. 0 or a negative errno or enum vmpt_error. */
struct vmpt_cpu_reader {
	int (*cpuid)(void *opaque, u32 leaf, u32 subleaf, struct vmpt_cpuid_regs *regs);
	/* NULL: no MSR can be read, and every VMX control counts as missing */
	int (*rdmsr)(void *opaque, u32 msr, u64 *value);
	void *opaque;
};

/*
 * Why a guest's CPUID was refused, or a field of a saved state: names the field.
 */
struct vmpt_refusal {
	const char *field; /* "CPUID.14H.1:EAX[2:0] RANGECNT"; static memory */
	const char *rule;  /* "more than the host has"; static memory */
	u64 guest, host;   /* the two values */
};

/*
 * Which of the host's PT features a guest may get. vmpt_policy_note() says what a policy cannot
 * enforce on a host, and what it shows of the host.
 */
struct vmpt_policy {
	u32 hide;      /* bit n: enum vmpt_pt_cap n is not offered, whatever the host has */
	u8 ranges_max; /* most address ranges, 0 to 4 */
	bool no_pt;    /* no PT at all */
};

/*
 * Everything that the host has and this library virtualizes: also power events (33.4.2.22 to
 * 33.4.2.25), which show the guest in which C-states the host's core was.
 */
extern const struct vmpt_policy vmpt_policy_all;

/*
 * What whoever chooses @policy for guests of @host should know: a sentence, static memory; @index
 * counts from 0, NULL after the last. Hiding PTWRITE hides it in CPUID and CTL only: there is no
 * control that makes the instruction #UD. Power events are the host's, not the virtual processor's.
 */
const char *vmpt_policy_note(const struct vmpt_caps *host, const struct vmpt_policy *policy,
			     unsigned int index);

/* The number that the call below compares with the library's: see VMPT_ABI_VERSION. */
#define VMPT_CAPS_ABI                                                                        \
	VMPT_ABI_ADD(VMPT_ABI4(struct vmpt_caps, struct vmpt_cpu_reader, struct vmpt_policy, \
			       struct vmpt_baseline),                                        \
		     struct vmpt_refusal)

/*
 * Read a processor: CPUID 1, 7, 14H.0 and 14H.1, 15H, 80000008H; IA32_VMX_MISC and the VMX
 * capability MSRs (SDM 3 33.3.1, 33.5.1). Subleaves of 14H above 1 are not read: this manual
 * defines none, so the library virtualizes none of them and no guest is shown one. A control counts
 * only if both it and those it depends on are present. 0; the result of the reader's cpuid
 * callback, with @caps undefined; -VMPT_E_INVAL: @caps, @reader or its cpuid callback is NULL;
 * -VMPT_E_VERSION. An MSR whose rdmsr fails counts as missing.
 */
int vmpt_caps_read_abi(struct vmpt_caps *caps, const struct vmpt_cpu_reader *reader, u64 abi);
#define vmpt_caps_read(caps, reader) vmpt_caps_read_abi(caps, reader, VMPT_CAPS_ABI)

/*
 * The most a guest can be shown on @host under @policy: never FabricEn, never what the library does
 * not virtualize (subleaves above 1, unknown bits), RANGECNT at most 4, no field whose parent field
 * is 0. @guest->cpuid.present = 0 if nothing can be offered. 0 or -VMPT_E_CAPS with @why (may be
 * NULL): the host has PT, but not as a guest needs it, or @policy hides what cannot be hidden (LIP;
 * EBX[1] of a host without PSB frequency 0). An offer always passes vmpt_caps_check() on @host.
 */
int vmpt_caps_offer(const struct vmpt_caps *host, const struct vmpt_policy *policy,
		    struct vmpt_caps *guest, struct vmpt_refusal *why);

/*
 * Whether @host can support a guest that is shown @guest, which may come from anyone (a user of
 * KVM_SET_CPUID2, a migration's source). 0 or -VMPT_E_CAPS with @why (may be NULL). The bits of
 * Trigger Tracing (VMPT_TRIGGER_0_EBX and others) pass where the host has them, so that a host's
 * own leaf passes, but no vCPU shows them: vmpt_vcpu_init() drops them.
 */
int vmpt_caps_check(const struct vmpt_caps *host, const struct vmpt_caps *guest,
		    struct vmpt_refusal *why);

/* A named set that several hosts can support. */
struct vmpt_baseline {
	char name[32];
	struct vmpt_caps guest;
};

/*
 * The common set of @n hosts under @policy, named @name (truncated to fit): the most that all of
 * them can support, with the smallest of their address widths. A TSC ratio that is not the same on
 * all hosts is not enumerated. -VMPT_E_INVAL: @n is 0. -VMPT_E_CAPS if there is none (no PT, LIP on
 * some and RIP on others, EBX[1] lost to a host that needs it), with @why (may be NULL) and in
 * *which (may be NULL) the index of the host that does not fit. A baseline passes vmpt_caps_check()
 * on each of @hosts.
 */
int vmpt_baseline_make(struct vmpt_baseline *baseline, const char *name,
		       const struct vmpt_caps *hosts, size_t n, const struct vmpt_policy *policy,
		       struct vmpt_refusal *why, size_t *which);

/* The baselines that come with the library; @index counts from 0, NULL after the last. */
const struct vmpt_baseline *vmpt_baseline_builtin(size_t index);

/* The baseline called @name among those that come with the library, or NULL. */
const struct vmpt_baseline *vmpt_baseline_find(const char *name);

/*
 * A guest's TSC rate under scaling: CPUID.15H and MSR_PLATFORM_INFO[15:8] (33.5.2.4). @multiplier:
 * of the VMCS, 48 bits of fraction; 1ULL << 48 is no scaling. The ratio EBX/EAX of the guest is the
 * host's × multiplier / 2^48, exact if it fits 32 bits, else the nearest fraction that does.
 * -VMPT_E_INVAL: one of the three is 0, or the ratio is not between 2^-32 and 2^32.
 */
int vmpt_tsc_ratio(u32 host_numerator, u32 host_denominator, u64 multiplier, u32 *numerator,
		   u32 *denominator);

/*
 * MSR_PLATFORM_INFO for a guest: the host's value with the scaled, rounded maximum non-turbo ratio
 * in bits 15:8 (1 to 255; 0, which means unknown, stays 0), all other bits unchanged. @multiplier
 * 0: no scaling.
 */
u64 vmpt_platform_info(u64 host_value, u64 multiplier);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
