// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Machines with their truth; see timeline-machine.h. */
#include <stdlib.h>

#include "tests/decoder/timeline-machine.h"

#define HOST_CR3  0x1000
#define OTHER_CR3 0x7000000
#define HOST_IP	  0xffffffff81000000ULL
#define CTL                                                                                       \
	(VMPT_CTL_OS | VMPT_CTL_USER | VMPT_CTL_BRANCH_EN | VMPT_CTL_DIS_RETC | VMPT_CTL_TSC_EN | \
	 VMPT_CTL_MTC_EN | (u64)TL_FREQ << VMPT_CTL_MTC_FREQ_SHIFT)
#define RUNS_MAX 20000

struct tl_guest {
	struct vmpt_tsc_map map;
	u64 free_at; /* it is busy up to here */
	u64 ip;
};

struct tl_machine {
	struct tl_options options;
	struct test_rng rng;
	u64 ctl;
	struct unit_cpu cpu[TL_CPUS];
	struct tl_guest guest[TL_GUESTS];
	struct tl_run run[RUNS_MAX];
	size_t runs;
};

static u64 below(struct tl_machine *m, u64 n)
{
	return test_random(&m->rng) % n;
}

static void pass(struct unit_cpu *c, u64 ticks)
{
	unit_cpu_pass(c, unit_cpu_now(c) + ticks, TL_FREQ);
}

static void set_ctl(struct unit_cpu *c, u64 ctl)
{
	ck_assert_int_eq(vmpt_unit_wrmsr(&c->unit, VMPT_MSR_RTIT_CTL, ctl, HOST_IP + 0x8000,
					 HOST_IP + 0x8002),
			 0);
}

static void start(struct tl_machine *m, struct unit_cpu *c)
{
	unit_cpu_init(c, HOST_CR3, TL_START - 1000);
	pass(c, 1000 + below(m, 500));
	set_ctl(c, m->ctl | VMPT_CTL_TRACE_EN);
}

struct tl_machine *tl_new(const struct tl_options *options)
{
	struct tl_machine *m = calloc(1, sizeof(*m));
	unsigned int i;

	ck_assert_ptr_nonnull(m);
	ck_assert_uint_le(options->cpus, TL_CPUS);
	ck_assert_uint_le(options->guests, TL_GUESTS);
	ck_assert_uint_le(options->runs, RUNS_MAX);
	m->options = *options;
	m->rng.state = options->seed;
	m->ctl =
		CTL | (options->cyc ? VMPT_CTL_CYC_EN : 0) | (options->evd ? VMPT_CTL_EVENT_EN : 0);
	for (i = 0; i < options->guests; i++) {
		m->guest[i].ip = 0x400000 + 0x1000 * i;
		m->guest[i].map.offset = -(u64)(TL_START - 5000 * i);
		m->guest[i].map.multiplier = VMPT_TSC_UNSCALED / 4 * (3 + i % 3);
	}
	for (i = 0; i < options->cpus; i++)
		start(m, &m->cpu[i]);
	return m;
}

void tl_free(struct tl_machine *m)
{
	unsigned int i;

	for (i = 0; i < TL_CPUS; i++)
		unit_cpu_free(&m->cpu[i]);
	free(m);
}

static void jumps(struct tl_machine *m, struct unit_cpu *c, u64 base, unsigned int n, u64 ticks)
{
	while (n--) {
		pass(c, 1 + below(m, ticks));
		vmpt_unit_jmp_indirect(&c->unit, base + below(m, 0x10000));
	}
	pass(c, 1 + below(m, ticks));
}

static void enter(struct tl_machine *m, struct unit_cpu *c, unsigned int g)
{
	struct vmpt_unit_entry entry = {
		.vmx = { .on = true,
			 .vmcs = tl_vmcs(g),
			 .tsc_offset = m->guest[g].map.offset,
			 .tsc_multiplier = m->guest[g].map.multiplier },
		.ip = HOST_IP + 0x100,
		.target = m->guest[g].ip,
		.mode = { .cr3 = 0x100000 + 0x1000 * g, .cs_l = true },
	};

	vmpt_unit_jmp_indirect(&c->unit, HOST_IP + 0x80);
	unit_cpu_load(c, tl_vmcs(g));
	pass(c, 20);
	vmpt_unit_vmentry(&c->unit, &entry);
}

static const struct {
	u16 reason;
	u8 length; /* length of the instruction emulated for the guest; 0: an event */
} kinds[] = { { 1, 0 }, { 10, 2 }, { 30, 2 }, { 48, 0 }, { 52, 0 }, { 31, 2 }, { 18, 3 } };

/*
 * Guest @g on CPU @k, from the host's work before it to its exit, and perhaps a process after it.
 */
static void one_run(struct tl_machine *m, unsigned int k, unsigned int g)
{
	struct unit_cpu *c = &m->cpu[k];
	struct tl_run *run = &m->run[m->runs++];
	size_t kind = below(m, VMPT_ARRAY_SIZE(kinds));
	bool halt = m->options.halts && !below(m, 3);
	struct vmpt_unit_exit exit = {
		.reason = halt ? 12 : kinds[kind].reason,
		.qualification = 0x40 + g,
		.target = HOST_IP + 0x300,
		.mode = { .cr3 = HOST_CR3, .cs_l = true },
	};
	struct vmpt_mode other = { .cr3 = OTHER_CR3, .cs_l = true };

	jumps(m, c, HOST_IP, 1 + (unsigned int)below(m, 5), 400);
	enter(m, c, g);
	*run = (struct tl_run){ k, g, .entry = unit_cpu_now(c), .entry_ip = m->guest[g].ip };
	jumps(m, c, 0x400000 + 0x100000 * g, 1 + (unsigned int)below(m, 12), 3000);
	exit.ip = 0x800000 + 0x100000 * g + below(m, 0x1000);
	pass(c, 20);
	vmpt_unit_vmexit(&c->unit, &exit);
	run->exit = unit_cpu_now(c);
	run->ip = exit.ip;
	run->reason = (u16)exit.reason;
	m->guest[g].ip = exit.ip + (halt ? 1 : kinds[kind].length);
	/* A halted one stays where it is not run for long. */
	m->guest[g].free_at = unit_cpu_now(c) + (halt ? 100000 : 500);
	jumps(m, c, HOST_IP, 1, 200);
	if (!halt)
		return;
	run->idle = true;
	vmpt_unit_mov_cr3(&c->unit, HOST_IP + 0x400, &other);
	jumps(m, c, HOST_IP, 2, 2000);
	vmpt_unit_mov_cr3(&c->unit, HOST_IP + 0x400, &exit.mode);
}

/* The CPU whose time is earliest continues: all times of the machine are close together. */
static unsigned int next_cpu(const struct tl_machine *m)
{
	unsigned int i, k = 0;

	for (i = 1; i < m->options.cpus; i++)
		if (unit_cpu_now(&m->cpu[i]) < unit_cpu_now(&m->cpu[k]))
			k = i;
	return k;
}

void tl_go(struct tl_machine *m)
{
	size_t end = m->runs + m->options.runs;

	while (m->runs < end) {
		unsigned int k = next_cpu(m), g = (unsigned int)below(m, m->options.guests);

		if (m->guest[g].free_at < unit_cpu_now(&m->cpu[k]))
			one_run(m, k, g);
		else
			jumps(m, &m->cpu[k], HOST_IP, 2, 500);
	}
}

void tl_off(struct tl_machine *m, unsigned int cpu, u64 ticks, u64 *from, u64 *to)
{
	struct unit_cpu *c = &m->cpu[cpu];

	set_ctl(c, m->ctl);
	*from = unit_cpu_now(c);
	unit_cpu_skip(c, *from + ticks);
	set_ctl(c, m->ctl | VMPT_CTL_TRACE_EN);
	*to = unit_cpu_now(c);
}

const struct vmpt_stream *tl_stream(struct tl_machine *m, unsigned int cpu)
{
	return unit_cpu_stream(&m->cpu[cpu], cpu);
}

const struct tl_run *tl_runs(const struct tl_machine *m, size_t *count)
{
	*count = m->runs;
	return m->run;
}

const struct tl_run *tl_run_of(const struct tl_machine *m, unsigned int cpu, size_t i)
{
	size_t k;

	for (k = 0; k < m->runs; k++)
		if (m->run[k].cpu == cpu && !i--)
			return &m->run[k];
	return NULL;
}

u64 tl_vmcs(unsigned int guest)
{
	return 0x100000000ULL + 0x1000 * guest;
}

struct vmpt_rates tl_rates(void)
{
	return (struct vmpt_rates){ .tsc_num = UNIT_CPU_P,
				    .tsc_den = 1,
				    .nominal = UNIT_CPU_NOMINAL,
				    .mtc_freq = TL_FREQ,
				    .has_mtc_freq = true };
}

struct vmpt_given tl_given(const struct tl_machine *m, unsigned int guest)
{
	return (struct vmpt_given){ .vmcs = tl_vmcs(guest),
				    .map = m->guest[guest].map,
				    .source = VMPT_MAP_USER };
}
