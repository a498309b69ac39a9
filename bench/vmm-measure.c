// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* One round of each measure. */
#include <stdio.h>
#include <time.h>

#include "bench/vmm-guest.h"
#include "vmm-lib/internal.h"
#include "vmm-lib/shadow/shadow.h"

#define TABLE  0x1000ULL
#define OUTPUT 0x100000ULL

/* Enough calls to take some milliseconds. */
#define CALLS	    2000000u
#define WRITES	    1000000u
#define PIPS	    500000u
#define BUILDS	    300u
#define FULL_BUILDS 30u

/* TraceEn, OS, User, ToPA, BranchEn, TSCEn */
#define CTL 0x250dULL

/* CPU time: other load on the machine does not count. */
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- calls ---- */

static int callee(struct vmpt_vcpu *vcpu, u32 msr, u64 value)
{
	__asm__ volatile("" : : "r"(vcpu), "r"(msr), "r"(value));
	return 0;
}

double vmm_indirect_call(struct vmm *vmm)
{
	int (*volatile call)(struct vmpt_vcpu *, u32, u64) = callee;
	double start = now();
	u32 i;
	int sum = 0;

	for (i = 0; i < CALLS; i++)
		sum += call(&vmm->vcpu, i, i);
	return sum ? -1 : (now() - start) * 1e9 / CALLS;
}

/* ---- MSR writes ---- */

/* Regions of 4 KiB << @size, repeated over 4 MiB. */
static int fill_regions(struct vmm *vmm, unsigned int regions, unsigned int size)
{
	unsigned int i;

	for (i = 0; i < regions; i++)
		vmm_put64(vmm, TABLE + 8ULL * i,
			  (OUTPUT + (4096ULL * i << size) % (4u << 20)) |
				  (u64)size << VMPT_TOPA_SIZE_SHIFT);
	vmm_put64(vmm, TABLE + 8ULL * regions, TABLE | VMPT_TOPA_END);
	return vmm_wrmsr(vmm, VMPT_MSR_RTIT_CTL, 0) || vmm_wrmsr(vmm, VMPT_MSR_RTIT_STATUS, 0) ||
			       vmm_wrmsr(vmm, VMPT_MSR_RTIT_OUTPUT_BASE, TABLE) ||
			       vmm_wrmsr(vmm, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, VMPT_LOWER_MASK)
		       ? -1
		       : 0;
}

static int fill_table(struct vmm *vmm, unsigned int regions)
{
	return fill_regions(vmm, regions, 0);
}

/* Every kind of PT MSR once; valid values, a different one each time. */
double vmm_wrmsr_mix(struct vmm *vmm)
{
	static const struct {
		u32 msr;
		u64 value, step;
	} mix[] = {
		{ VMPT_MSR_RTIT_OUTPUT_BASE, TABLE, 0x1000 },
		{ VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0x7f, 0x80 },
		{ VMPT_MSR_RTIT_CTL, CTL & ~VMPT_CTL_TRACE_EN, 1ULL << VMPT_CTL_MTC_FREQ_SHIFT },
		{ VMPT_MSR_RTIT_STATUS, 0, 1ULL << VMPT_STATUS_BYTES_SHIFT },
		{ VMPT_MSR_RTIT_CR3_MATCH, 0x1000, 0x20 },
		{ VMPT_MSR_RTIT_ADDR0_A, 0xffffffff81000000, 0x10 },
		{ VMPT_MSR_RTIT_ADDR3_B, 0x7f0000000000, 0x10 },
	};
	u32 i, n = 0, bad = 0;
	double start;

	if (fill_table(vmm, 16))
		return -1;
	start = now();
	for (i = 0; i < WRITES; i++) {
		bad |= vmpt_vcpu_wrmsr(&vmm->vcpu, mix[n].msr,
				       mix[n].value + (i & 7) * mix[n].step) != 0;
		n = n + 1 < VMPT_ARRAY_SIZE(mix) ? n + 1 : 0;
	}
	start = (now() - start) * 1e9 / WRITES;
	if (bad)
		fprintf(stderr, "vmpt-bench-vmm: a WRMSR of the mix failed\n");
	return bad ? -1 : start;
}

/* TraceEn on and off: a write that starts tracing is the most expensive one. */
double vmm_wrmsr_ctl(struct vmm *vmm)
{
	u32 i, bad = 0;
	double start;

	if (fill_table(vmm, 16))
		return -1;
	start = now();
	for (i = 0; i < WRITES; i++)
		bad |= vmpt_vcpu_wrmsr(&vmm->vcpu, VMPT_MSR_RTIT_CTL, i & 1 ? 0 : CTL) != 0;
	start = (now() - start) * 1e9 / WRITES;
	if (bad || vmm->vcpu.regs.status & VMPT_STATUS_ERROR)
		fprintf(stderr, "vmpt-bench-vmm: tracing does not start\n");
	return bad ? -1 : start;
}

/* ---- PIPs ---- */

double vmm_pip(struct vmm *vmm)
{
	struct vmpt_cr3_write w = { .cause = VMPT_CR3_MOV };
	u32 i, good = 0;
	double start;

	if (fill_table(vmm, 16) || vmm_wrmsr(vmm, VMPT_MSR_RTIT_CTL, CTL))
		return -1;
	start = now();
	for (i = 0; i < PIPS; i++) {
		w.old_cr3 = w.new_cr3;
		w.new_cr3 = 0x1000ULL * (i % 1000 + 1);
		good += vmpt_vcpu_cr3_write(&vmm->vcpu, &w) == 1;
	}
	start = (now() - start) * 1e9 / PIPS;
	if (good != PIPS || vmm->vcpu.regs.status & (VMPT_STATUS_ERROR | VMPT_STATUS_STOPPED)) {
		fprintf(stderr, "vmpt-bench-vmm: %u of %u PIPs were written\n", good, PIPS);
		return -1;
	}
	return start;
}

/* ---- shadow ---- */

/* A table of 512 entries: 511 one-page regions, no two contiguous on the host, and END. */
double vmm_shadow_build(struct vmm *vmm)
{
	double start;
	u32 i;

	if (fill_table(vmm, 511) || vmm_wrmsr(vmm, VMPT_MSR_RTIT_CTL, CTL))
		return -1;
	start = now();
	for (i = 0; i < BUILDS; i++)
		if (vmpt_shadow_build(&vmm->vcpu))
			break;
	start = (now() - start) * 1e6 / BUILDS;
	if (i < BUILDS || vmm->vcpu.shadow.used != 511) {
		fprintf(stderr, "vmpt-bench-vmm: the shadow has %u entries\n",
			vmm->vcpu.shadow.used);
		return -1;
	}
	return start;
}

/*
 * All pages of the shadow in use, since the table is longer: with one-page regions, or with regions
 * of 64 KiB whose pages are scattered on the host.
 */
double vmm_shadow_full(struct vmm *vmm, bool scattered)
{
	unsigned int regions = VMM_SHADOW_PAGES * VMPT_SHADOW_PER_PAGE;
	double start;
	u32 i;

	if (fill_regions(vmm, regions, scattered ? 4 : 0) || vmm_wrmsr(vmm, VMPT_MSR_RTIT_CTL, CTL))
		return -1;
	start = now();
	for (i = 0; i < FULL_BUILDS; i++)
		if (vmpt_shadow_build(&vmm->vcpu))
			break;
	start = (now() - start) * 1e6 / FULL_BUILDS;
	if (i < FULL_BUILDS || vmm->vcpu.shadow.end != VMPT_SHADOW_WINDOW) {
		fprintf(stderr, "vmpt-bench-vmm: the shadow is not full\n");
		return -1;
	}
	return start;
}

/* ---- TSC ---- */

/* Contiguous regions of 4 MiB in guest memory; enough for @size bytes. */
static u64 trace_buffer(struct vmm *vmm, size_t size)
{
	u64 gpa = 4ULL << 20;
	unsigned int i;

	for (i = 0; i <= size >> 22; i++, gpa += 4ULL << 20)
		vmm_put64(vmm, TABLE + 8ULL * i, gpa | 10ULL << VMPT_TOPA_SIZE_SHIFT);
	vmm_put64(vmm, TABLE + 8ULL * i, TABLE | VMPT_TOPA_END);
	return 4ULL << 20;
}

double vmm_tsc_adjust(struct vmm *vmm, const u8 *bytes, size_t size, size_t window, double *copy)
{
	/* Faster by three quarters, and with an offset. */
	struct vmpt_tsc_change change = { .multiplier = 7ULL << 46, .offset = 0x123456789 };
	u8 *buffer = vmm->memory + trace_buffer(vmm, size);
	struct vmpt_vcpu *vcpu = &vmm->vcpu;
	double start, time;
	int err;

	vcpu->regs.ctl = CTL;
	vcpu->regs.output_base = TABLE;
	vcpu->regs.output_mask_ptrs = vmpt_pt_mask_ptrs((u32)(size >> 22), size & 0x3fffff);
	vcpu->scan = (struct vmpt_tsc_scan){ 0 };
	vcpu->scan_base = TABLE;
	vcpu->scan_mask_ptrs = VMPT_LOWER_MASK;
	vcpu->scan_set = true;
	vcpu->traced = size;
	vmm->map_max = window;
	start = now();
	memcpy(buffer, bytes, size);
	time = now() - start;
	*copy = (double)size / time / 1e9;
	start = now();
	do {
		err = vmpt_vcpu_tsc_adjust(vcpu, &change, NULL);
	} while (err == VMPT_MORE);
	time = now() - start;
	if (err || !vcpu->scan.packets) {
		fprintf(stderr, "vmpt-bench-vmm: adjusting failed: %s\n", vmpt_strerror(err));
		return -1;
	}
	return (double)size / time / 1e9;
}
