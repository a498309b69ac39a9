// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * libvmpt-model alone, PT's unit and RTIT's: events from a list, packets to a sink that drops them.
 */
#include <stdio.h>
#include <time.h>

#include "bench/vmm.h"
#include "model/vmpt-model.h"
#include "model/vmpt-rtit.h"

#define EVENTS 4096u
#define LOOPS  2000u

enum kind { JCC, CALL, RET, JMP, ICALL, IJMP };

struct event {
	u8 kind; /* enum kind */
	bool taken;
	u64 next, target;
};

struct rig {
	struct vmpt_unit unit;
	struct vmpt_sink sink;
	struct vmpt_rtit_unit rtit;
	struct vmpt_rtit_sink rtit_sink;
	struct event events[EVENTS];
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int forget(void *opaque, const u8 *bytes, size_t len)
{
	(void)opaque;
	(void)bytes;
	(void)len;
	return 0;
}

static u32 next_random(u32 *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* Of 32 branches: 21 conditional, 3 direct jumps, 3 calls and their RETs, 2 indirect. */
static void fill_mix(struct event *events)
{
	static const u8 kinds[32] = {
		JCC, JCC, CALL, JCC, JCC, JMP, JCC, RET, JCC,  JCC, JCC, CALL,	JCC, JCC, RET, JCC,
		JMP, JCC, JCC,	JCC, JCC, JCC, JCC, JMP, IJMP, JCC, JCC, ICALL, JCC, RET, JCC, JCC,
	};
	u64 back = 0;
	u32 i, seed = 1;

	for (i = 0; i < EVENTS; i++) {
		struct event *e = &events[i];

		e->kind = kinds[i % 32];
		e->taken = next_random(&seed) % 3;
		e->next = 0x400000 + 16 * (next_random(&seed) & 0xfff);
		e->target = 0x400000 + 16 * (next_random(&seed) & 0xfff);
		if (e->kind == CALL || e->kind == ICALL)
			back = e->next;
		if (e->kind == RET)
			e->target = back;
	}
}

static void fill_jcc(struct event *events)
{
	u32 i, seed = 1;

	for (i = 0; i < EVENTS; i++) {
		events[i].kind = JCC;
		events[i].taken = next_random(&seed) & 1;
		events[i].next = 0x400000 + i;
		events[i].target = 0x400000 + i;
	}
}

static void play(struct vmpt_unit *unit, const struct event *events)
{
	const struct event *e;

	for (e = events; e < events + EVENTS; e++) {
		switch (e->kind) {
		case JCC:
			vmpt_unit_jcc(unit, e->taken, e->target);
			break;
		case CALL:
			vmpt_unit_call(unit, e->next, e->target);
			break;
		case RET:
			vmpt_unit_ret(unit, e->target);
			break;
		case JMP:
			vmpt_unit_jmp(unit, e->target);
			break;
		case ICALL:
			vmpt_unit_call_indirect(unit, e->next, e->target);
			break;
		default:
			vmpt_unit_jmp_indirect(unit, e->target);
		}
	}
}

static int rig_init(struct rig *rig)
{
	struct vmpt_unit_config config = { .sink = &rig->sink };

	rig->sink = (struct vmpt_sink){ .write = forget };
	config.cpuid.present = 1;
	config.cpuid.maxphyaddr = 46;
	config.cpuid.linear_bits = 48;
	vmpt_pt_cap_set(&config.cpuid, VMPT_CAP_SINGLE_RANGE, 1);
	if (vmpt_unit_init(&rig->unit, &config))
		return -1;
	rig->unit.mode.cs_l = true;
	return vmpt_unit_wrmsr(&rig->unit, VMPT_MSR_RTIT_CTL,
			       VMPT_CTL_TRACE_EN | VMPT_CTL_OS | VMPT_CTL_USER |
				       VMPT_CTL_BRANCH_EN | VMPT_CTL_TSC_EN,
			       0, 0x400000);
}

/* ---- RTIT ---- */

static int forget_at(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	(void)pa;
	return forget(opaque, bytes, len);
}

static void play_rtit(struct vmpt_rtit_unit *unit, const struct event *events)
{
	const struct event *e;

	for (e = events; e < events + EVENTS; e++) {
		switch (e->kind) {
		case JCC:
			vmpt_rtit_unit_jcc(unit, e->taken, e->next, e->target);
			break;
		case CALL:
			vmpt_rtit_unit_call(unit, e->next, e->target);
			break;
		case RET:
			vmpt_rtit_unit_ret(unit, e->next, e->target);
			break;
		case JMP:
			vmpt_rtit_unit_jmp(unit, e->next, e->target);
			break;
		case ICALL:
			vmpt_rtit_unit_call_indirect(unit, e->next, e->target);
			break;
		default:
			vmpt_rtit_unit_jmp_indirect(unit, e->next, e->target);
		}
	}
}

/* By ranges: RANGE0 has all of the code, RANGE1 is elsewhere. */
static int write_filter(struct vmpt_rtit_unit *unit, bool ranges)
{
	const u64 lip[4] = { 0x400000, 0x800000, 0x420000, 0x900000 };
	u64 filter = ranges ? VMPT_RTIT_EVENT_RANGES : VMPT_RTIT_EVENT_ON;
	u32 n;

	for (n = 0; n < 4; n++)
		if (vmpt_rtit_unit_wrmsr(unit, VMPT_RTIT_MSR_LIP0 + n, lip[n], 0x500000))
			return -1;
	return vmpt_rtit_unit_wrmsr(unit, VMPT_RTIT_MSR_EVENTS,
				    filter | VMPT_RTIT_EVENT_OFF << VMPT_RTIT_EVENTS_STOP_SHIFT,
				    0x500000);
}

static int rig_init_rtit(struct rig *rig, bool ranges)
{
	struct vmpt_rtit_unit_config config = { .sink = &rig->rtit_sink };
	u64 ctl;

	rig->rtit_sink = (struct vmpt_rtit_sink){ .write = forget_at };
	if (vmpt_rtit_unit_init(&rig->rtit, &config) ||
	    vmpt_rtit_unit_rdmsr(&rig->rtit, VMPT_RTIT_MSR_CTL, &ctl) ||
	    vmpt_rtit_unit_wrmsr(&rig->rtit, VMPT_RTIT_MSR_LIMIT_MASK, 0x3fffff, 0x400000) ||
	    write_filter(&rig->rtit, ranges))
		return -1;
	ctl = VMPT_RTIT_CTL_TRACE_EN | VMPT_RTIT_CTL_OS | VMPT_RTIT_CTL_USER | VMPT_RTIT_CTL_DEST |
	      VMPT_RTIT_CTL_CMPRS_RET;
	if (vmpt_rtit_unit_wrmsr(&rig->rtit, VMPT_RTIT_MSR_CTL, ctl, 0x400000))
		return -1;
	return vmpt_rtit_unit_wrmsr(&rig->rtit, VMPT_RTIT_MSR_CTL, ctl | VMPT_RTIT_CTL_TRACE_ACTIVE,
				    0x400000);
}

/* ---- both ---- */

static double model_fails(const char *what)
{
	fprintf(stderr, "vmpt-bench-vmm: the model %s\n", what);
	return -1;
}

double model_branches(enum model_kind kind, bool mix)
{
	static struct rig rig;
	bool rtit = kind != MODEL_PT;
	double start;
	u64 bytes;
	u32 i;

	(mix ? fill_mix : fill_jcc)(rig.events);
	if (rtit ? rig_init_rtit(&rig, kind == MODEL_RTIT_RANGES) : rig_init(&rig))
		return model_fails("does not start to trace");
	start = now();
	for (i = 0; i < LOOPS; i++) {
		if (rtit)
			play_rtit(&rig.rtit, rig.events);
		else
			play(&rig.unit, rig.events);
	}
	start = now() - start;
	if (rtit)
		vmpt_rtit_unit_drain(&rig.rtit);
	else
		vmpt_unit_flush(&rig.unit);
	bytes = rtit ? rig.rtit.bytes : rig.unit.bytes;
	/* 6 conditional branches per byte */
	if (bytes < EVENTS * (u64)LOOPS / 8)
		return model_fails("makes no packets");
	return EVENTS * (double)LOOPS / start * 1e-6;
}
