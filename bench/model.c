// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* libvmpt-model alone: events from a list, packets to a sink that forgets them. */
#include <stdio.h>
#include <time.h>

#include "bench/vmm.h"
#include "model/vmpt-model.h"

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

double model_branches(bool mix)
{
	static struct rig rig;
	double start;
	u32 i;

	(mix ? fill_mix : fill_jcc)(rig.events);
	if (rig_init(&rig)) {
		fprintf(stderr, "vmpt-bench-vmm: the model does not start to trace\n");
		return -1;
	}
	start = now();
	for (i = 0; i < LOOPS; i++)
		play(&rig.unit, rig.events);
	start = now() - start;
	vmpt_unit_flush(&rig.unit);
	/* 6 conditional branches a byte */
	if (rig.unit.bytes < EVENTS * (u64)LOOPS / 8) {
		fprintf(stderr, "vmpt-bench-vmm: the model makes no packets\n");
		return -1;
	}
	return EVENTS * (double)LOOPS / start * 1e-6;
}
