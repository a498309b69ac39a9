// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * One workload of a program that links the libraries, timed: built with the static and with the
 * shared ones, which bench/shared compares. It prints the CPU seconds. Only public functions are
 * called, as such a program would call them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/synth.h"
#include "decoder/vmpt-parts.h"
#include "model/fast.h"
#include "model/vmpt-model.h"
#include "arch/topa.h"
#include "vmm-lib/vmpt.h"

#define TRACE_BYTES (32u << 20)

static struct vmpt_stream stream = { .size = TRACE_BYTES, .cpu = -1, .tid = -1 };
static u64 sum; /* so that nothing is left out */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int make_trace(void)
{
	struct synth_options o = { .seed = 1 };
	struct synth_counts counts;
	u8 *data = malloc(TRACE_BYTES);

	stream.data = data;
	return !data || synth_generate(data, TRACE_BYTES, &o, &counts) ? -1 : 0;
}

/* ---- the decoder ---- */

static int take_batches(struct vmpt_decoder *dec)
{
	struct vmpt_batch batch;
	int ret;

	while ((ret = vmpt_batch_next(dec, &batch)) == 1)
		sum += batch.count;
	return ret;
}

static int items(void)
{
	struct vmpt_decoder *dec;
	int ret = vmpt_decoder_open(&dec, &stream, NULL);

	if (!ret) {
		ret = take_batches(dec);
		vmpt_decoder_close(dec);
	}
	return ret;
}

static int slices(void)
{
	struct vmpt_splitter *split;
	struct vmpt_slice slice;
	int ret = vmpt_splitter_open(&split, &stream, NULL);

	if (ret)
		return ret;
	while ((ret = vmpt_split_next(split, &slice)) == 1)
		sum += slice.size;
	vmpt_splitter_close(split);
	return ret;
}

/* Parts of a page, as a reader of a file that grows may have them. */
static int parts(void)
{
	struct vmpt_decoder *dec;
	u64 at;
	int ret = vmpt_decoder_open_parts(&dec, NULL);

	if (ret)
		return ret;
	for (at = 0; !ret && at < stream.size / 4; at += 4096) {
		ret = vmpt_decoder_add(dec, stream.data + at, 4096);
		if (!ret)
			ret = take_batches(dec);
	}
	vmpt_decoder_close(dec);
	return ret;
}

/* ---- the trace unit ---- */

static int forget(void *opaque, const u8 *bytes, size_t len)
{
	(void)opaque, (void)bytes;
	sum += len;
	return 0;
}

static int start_unit(struct vmpt_unit *unit)
{
	static struct vmpt_sink sink = { .write = forget };
	struct vmpt_unit_config config = { .sink = &sink };

	config.cpuid = (struct vmpt_pt_cpuid){ .present = 1, .maxphyaddr = 46, .linear_bits = 48 };
	vmpt_pt_cap_set(&config.cpuid, VMPT_CAP_SINGLE_RANGE, 1);
	return vmpt_unit_init(unit, &config) ||
	       vmpt_unit_wrmsr(unit, VMPT_MSR_RTIT_CTL,
			       VMPT_CTL_TRACE_EN | VMPT_CTL_OS | VMPT_CTL_USER | VMPT_CTL_BRANCH_EN,
			       0, 0x400000);
}

/* Seven conditional branches and an indirect jump, in turn: each by a call, or as an emulator does
 * it. */
static int model_calls(void)
{
	static struct vmpt_unit unit;
	u32 i;

	if (start_unit(&unit))
		return -1;
	for (i = 0; i < 4000000; i++) {
		if (i & 7)
			vmpt_unit_jcc(&unit, i & 64, 0x400000 + 16 * (i & 0xff));
		else
			vmpt_unit_jmp_indirect(&unit, 0x400000 + 16 * (i & 0xfff));
	}
	return vmpt_unit_flush(&unit);
}

static int model(void)
{
	static struct vmpt_unit unit;
	u32 i;

	if (start_unit(&unit))
		return -1;
	for (i = 0; i < 8000000; i++) {
		if (i & 7)
			vmpt_unit_jcc_fast(&unit, i & 64, 0x400000 + 16 * (i & 0xff));
		else
			vmpt_unit_jmp_indirect(&unit, 0x400000 + 16 * (i & 0xfff));
	}
	return vmpt_unit_flush(&unit);
}

/* ---- the VMM: its processor's MSRs and its guest's memory are arrays ---- */

static u64 hw[0x30];
static u8 memory[1 << 16];

static int guest_read(void *opaque, u64 gpa, void *buf, size_t len)
{
	(void)opaque;
	if (gpa >= sizeof(memory) || len > sizeof(memory) - gpa)
		return VMPT_MEM_UNBACKED;
	memcpy(buf, memory + gpa, len);
	return 0;
}

static int guest_write(void *opaque, u64 gpa, const void *buf, size_t len)
{
	(void)opaque;
	if (gpa >= sizeof(memory) || len > sizeof(memory) - gpa)
		return VMPT_MEM_UNBACKED;
	memcpy(memory + gpa, buf, len);
	return 0;
}

static void inject_pmi(void *opaque)
{
	(void)opaque;
}

static int hw_rdmsr(void *opaque, u32 msr, u64 *value)
{
	(void)opaque;
	*value = msr - 0x560 < VMPT_ARRAY_SIZE(hw) ? hw[msr - 0x560] : 0;
	return 0;
}

static int hw_wrmsr(void *opaque, u32 msr, u64 value)
{
	(void)opaque;
	if (msr - 0x560 < VMPT_ARRAY_SIZE(hw))
		hw[msr - 0x560] = value;
	return 0;
}

static int set_guest_ctl(void *opaque, u64 ctl)
{
	(void)opaque;
	sum += ctl;
	return 0;
}

static const struct vmpt_ops ops = { .guest_read = guest_read,
				     .guest_write = guest_write,
				     .inject_pmi = inject_pmi,
				     .hw_rdmsr = hw_rdmsr,
				     .hw_wrmsr = hw_wrmsr,
				     .set_guest_ctl = set_guest_ctl };

static int make_vcpu(struct vmpt_vcpu *vcpu)
{
	struct vmpt_caps host = { .vmx = VMPT_VMX_PT | VMPT_VMX_EPT | VMPT_VMX_USE_GPA |
					 VMPT_VMX_CLEAR_CTL | VMPT_VMX_LOAD_CTL |
					 VMPT_VMX_CONCEAL_EXEC | VMPT_VMX_CONCEAL_EXIT |
					 VMPT_VMX_CONCEAL_ENTRY },
			 guest;
	struct vmpt_vmx_plan plan;
	struct vmpt_config config = { .host = &host, .guest = &guest, .plan = &plan, .ops = &ops };
	const u64 table[] = { 0x8000, 0x4000 | VMPT_TOPA_END };

	host.cpuid = (struct vmpt_pt_cpuid){ .present = 1, .maxphyaddr = 46, .linear_bits = 48 };
	host.cpuid.leaf14[0] = (struct vmpt_cpuid_regs){ .eax = 1, .ebx = 0x1ff, .ecx = 7 };
	host.cpuid.leaf14[1] = (struct vmpt_cpuid_regs){ .eax = 0xffff0002, .ebx = 0xffffffff };
	memcpy(memory + 0x4000, table, sizeof(table));
	return vmpt_caps_offer(&host, &vmpt_policy_all, &guest, NULL) ||
	       vmpt_vmx_plan(&plan, &host, VMPT_USE_GUEST, NULL) ||
	       vmpt_vcpu_init(vcpu, &config, NULL);
}

/* What a guest's driver writes for a stop and a start; exits as a VMM handles them. */
static const struct {
	u32 msr;
	u64 value;
} driver[] = {
	{ VMPT_MSR_RTIT_CTL, 0 },
	{ VMPT_MSR_RTIT_STATUS, 0 },
	{ VMPT_MSR_RTIT_OUTPUT_BASE, 0x4000 },
	{ VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, VMPT_LOWER_MASK },
	{ VMPT_MSR_RTIT_ADDR0_A, 0x401000 },
	{ VMPT_MSR_RTIT_ADDR0_A + 1, 0x402000 },
	{ VMPT_MSR_RTIT_CTL,
	  VMPT_CTL_TRACE_EN | VMPT_CTL_OS | VMPT_CTL_TOPA | VMPT_CTL_BRANCH_EN | 1ULL << 32 },
};

static int write_msrs(u32 n, bool exits)
{
	static struct vmpt_vcpu vcpu;
	int ret = make_vcpu(&vcpu);
	u32 i, at = 0;

	for (i = 0; !ret && i < n; i++) {
		ret = vmpt_vcpu_wrmsr(&vcpu, driver[at].msr, driver[at].value);
		at = at + 1 < VMPT_ARRAY_SIZE(driver) ? at + 1 : 0;
		if (ret || !exits)
			continue;
		sum += vmpt_vcpu_intercepts(&vcpu, VMPT_MSR_RTIT_STATUS);
		ret = vmpt_vcpu_enter(&vcpu);
		hw[VMPT_MSR_RTIT_CTL - 0x560] = 0; /* the exit clears it */
		if (!ret)
			ret = vmpt_vcpu_exit(&vcpu, VMPT_EXIT_NORMAL);
	}
	return ret;
}

static int wrmsr_exit(void)
{
	return write_msrs(2000000, true);
}

static int wrmsr_call(void)
{
	return write_msrs(6000000, false);
}

/* The last two are nothing but calls of a few ns: what a call by the procedure linkage table costs.
 */
static const struct workload {
	const char *name;
	int (*run)(void);
	unsigned int times;
	bool trace;
} workloads[] = {
	{ "items", items, 5, true },
	{ "slices", slices, 15, true },
	{ "parts", parts, 2, true },
	{ "model", model, 3, false },
	{ "wrmsr-exit", wrmsr_exit, 3, false },
	{ "call-model", model_calls, 3, false },
	{ "call-wrmsr", wrmsr_call, 1, false },
};

int main(int argc, char **argv)
{
	const struct workload *w = workloads, *end = w + VMPT_ARRAY_SIZE(workloads);
	unsigned int i;
	double start;

	if (argc < 2) { /* their names */
		for (; w < end; w++)
			printf("%s\n", w->name);
		return 0;
	}
	while (w < end && strcmp(w->name, argv[1]))
		w++;
	if (w == end || (w->trace && make_trace()))
		return 2;
	w->run(); /* pages, symbols and caches */
	start = now();
	for (i = getenv("VMPT_BENCH_QUICK") ? w->times : 0; i < w->times; i++)
		if (w->run())
			return 1;
	printf("%.6f\n", now() - start);
	fprintf(stderr, "%llx\n", (unsigned long long)sum);
	return 0;
}
