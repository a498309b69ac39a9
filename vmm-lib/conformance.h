/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A conformance suite for authors of VMMs: it acts as a guest (and, if the VMM allows it, as the
 * VMM's user) and reports what is wrong with the guest's Processor Trace. It does not depend on
 * libvmpt: a VMM with its own implementation can run it too.
 *
 * The suite takes the manual's rules from arch/ and what the guest is shown from the VMM's CPUID.
 * Freestanding: results go to a callback.
 */
#ifndef VMPT_VMM_CONFORMANCE_H
#define VMPT_VMM_CONFORMANCE_H

#include "arch/pt-regs.h"
#include "vmm-lib/caps.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/*
 * The operations that the VMM provides. All calls act on one vCPU in 64-bit mode at CPL 0, stopped
 * between two instructions. 0, VMPT_GP where the guest would see #GP(0), or a negative error: the
 * VMM cannot go on, the run ends. Those marked optional may be NULL: the scenarios that need them
 * are reported as skipped.
 */
struct vmpt_conformance_ops {
	/* A cold RESET of the vCPU; its PT state is as after power-on. Memory may be kept. */
	int (*power_on)(void *opaque);
	/* The guest executes the instruction, through the VMM's own exit handlers. */
	int (*cpuid)(void *opaque, u32 leaf, u32 subleaf, struct vmpt_cpuid_regs *regs);
	int (*rdmsr)(void *opaque, u32 msr, u64 *value);
	int (*wrmsr)(void *opaque, u32 msr, u64 value);
	/* Guest-physical memory as another vCPU would see it. */
	int (*mem_read)(void *opaque, u64 gpa, void *buf, size_t len);
	int (*mem_write)(void *opaque, u64 gpa, const void *buf, size_t len);

	/*
	 * Optional: the guest runs traced code until at least @bytes of trace have left the
	 * processor, or STOP or an error has ended tracing. Returns after the code.
	 */
	int (*run)(void *opaque, u32 bytes);
	/* Optional: the guest executes MOV CR3 and the VMM carries it out (an exit, emulation). */
	int (*mov_cr3)(void *opaque, u64 cr3);
	/* Optional: number of PMIs that the guest's LVT received since power_on. */
	int (*pmis)(void *opaque, u64 *count);

	/* Optional: events. */
	int (*warm_reset)(void *opaque);
	int (*init)(void *opaque);
	int (*smi)(void *opaque);
	int (*rsm)(void *opaque); /* optional; VMPT_SHUTDOWN if the vCPU shuts down */
	/* Optional: the guest executes the instruction. */
	int (*vmxon)(void *opaque);
	int (*vmxoff)(void *opaque);

	/* Optional: save the vCPU, make a new one, restore it there; memory moves with it. */
	int (*migrate)(void *opaque);
	/* Optional: a write by the VMM's user, as in a restore (KVM_SET_MSRS). */
	int (*set_msr)(void *opaque, u32 msr, u64 value);

	/*
	 * Optional: the guest executes XSAVES or XRSTORS of component 8 alone, with IA32_XSS[8] =
	 * 1; @area: the component's 128 bytes. Only asked for where CPUID shows the component.
	 */
	int (*xsaves)(void *opaque, u8 area[128]);
	int (*xrstors)(void *opaque, const u8 area[128]);

	/*
	 * Optional: the host's own tracer, which was idle, starts on the processor that ran the
	 * vCPU last (run it for a moment if it was not entered yet), traces some KiB of the host to
	 * the host's own buffer, and stops. The vCPU does not run meanwhile.
	 */
	int (*host_traces)(void *opaque);

	/* RAM that the suite may use: 64-KiB aligned, at least 128 KiB, below 4 GiB. */
	u64 ram_gpa, ram_size;
	/* A page that no memory backs, 4-KiB aligned; 0: none is known, skip what needs one. */
	u64 hole_gpa;
};

/* How a scenario ended. */
enum vmpt_verdict { VMPT_PASSED, VMPT_FAILED, VMPT_SKIPPED };

/* What a scenario found: the first error. */
struct vmpt_conformance_result {
	const char *scenario; /* "ctl-bits" */
	const char *section;  /* of SDM 3 */
	u8 verdict;	      /* enum vmpt_verdict */
	const char *wrong;    /* a sentence, or the reason for skipping; NULL if passed */
	const char *at_name; /* "MSR", "CPUID leaf", "GPA", "packet at GPA"; NULL: @at is not set */
	u64 at;
	bool values; /* want and got are set */
	u64 want, got;
};

/* How many scenarios ended how. */
struct vmpt_conformance_summary {
	unsigned int passed, failed, skipped;
};

/* Called for each scenario, in order; the result is valid during the call. */
typedef void vmpt_conformance_report(void *opaque, const struct vmpt_conformance_result *result);

/* The number that the call below compares with the library's: see VMPT_ABI_VERSION. */
#define VMPT_CONFORMANCE_ABI                                                   \
	VMPT_ABI4(struct vmpt_conformance_ops, struct vmpt_conformance_result, \
		  struct vmpt_conformance_summary, struct vmpt_caps)

/*
 * Run all scenarios; @opaque is passed to all callbacks. 0 even if scenarios failed, see @summary;
 * -VMPT_E_INVAL: @ops is NULL, a callback is missing or RAM is too small; -VMPT_E_VERSION; other
 * negative values: that of a callback, which ended the run. @report and @summary may be NULL.
 */
int vmpt_conformance_run_abi(const struct vmpt_conformance_ops *ops, void *opaque,
			     vmpt_conformance_report *report,
			     struct vmpt_conformance_summary *summary, u64 abi);
#define vmpt_conformance_run(ops, opaque, report, summary) \
	vmpt_conformance_run_abi(ops, opaque, report, summary, VMPT_CONFORMANCE_ABI)

/*
 * A result as one line without a newline, NUL-terminated and cut at @len:
 * "FAILED ctl-bits (33.2.8.2): reserved bit accepted, MSR 0x570, want 0x0, got 0x40000".
 * Returns the length it needs without the NUL.
 */
size_t vmpt_conformance_print(const struct vmpt_conformance_result *result, char *buf, size_t len);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
