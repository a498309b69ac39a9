/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * For clock/test-model.c: a processor with the trace unit of model/, which runs random programs of
 * a host and two guests and records the host's TSC at which each byte of its trace was made.
 */
#ifndef VMPT_TESTS_CLOCK_CPU_H
#define VMPT_TESTS_CLOCK_CPU_H

#include "decoder/vmpt-clock.h"
#include "model/vmpt-model.h"
#include "tests/support/support.h"

#define BYTES  (1u << 22)
#define EVENTS 2500
#define STEPS  (1u << 20)
#define GUESTS 2

/* Without a message to Check each time */
#define must(what)                           \
	do {                                 \
		if (!(what))                 \
			ck_abort_msg(#what); \
	} while (0)

/* Bytes up to @end were made at tick @tsc. */
struct step {
	size_t end;
	u64 tsc;
};

struct program {
	bool cycs, sleeps, overflows, off, guests, writes, psbs;
	bool mapped;
	unsigned int thresh;
};

static struct cpu {
	struct test_rng rng;
	struct vmpt_unit unit;
	struct vmpt_sink sink;
	struct program program;
	u64 num, den, freq, nominal; /* P, MTCFreq */
	u64 shift;		     /* ticks by which the TSC is ahead of the crystal clock's */
	u64 line;		     /* ticks since the crystal clock began */
	u64 part, cycles, cbr;
	u64 changed; /* .line when cbr changed last */
	struct vmpt_tsc_map map[GUESTS];
	size_t size, steps, writes;
	u64 written[64]; /* offsets at which the TSC was written */
	u8 bytes[BYTES];
	struct step step[STEPS];
} cpu;

static u64 below(u64 n)
{
	return test_random(&cpu.rng) % n;
}

static int take(void *opaque, const u8 *bytes, size_t len)
{
	(void)opaque;
	must(cpu.size + len <= BYTES);
	memcpy(cpu.bytes + cpu.size, bytes, len);
	cpu.size += len;
	return 0;
}

/* Bytes that the unit has made since were made now. */
static void note(void)
{
	must(!vmpt_unit_flush(&cpu.unit));
	if (cpu.size == (cpu.steps ? cpu.step[cpu.steps - 1].end : 0))
		return;
	must(cpu.steps < STEPS);
	cpu.step[cpu.steps++] = (struct step){ cpu.size, cpu.line + cpu.shift };
}

/* The tick at which the crystal clock becomes @art: TSC = ART * P (33.8.3.1), rounded up. */
static u64 edge_of(u64 art)
{
	return (u64)(((unsigned __int128)art * cpu.num + cpu.den - 1) / cpu.den);
}

static u64 art_now(void)
{
	return (u64)((unsigned __int128)cpu.line * cpu.den / cpu.num);
}

static struct vmpt_now clocks(void)
{
	struct vmpt_now now = { .tsc = cpu.line + cpu.shift,
				.art = art_now(),
				.cycles = cpu.cycles,
				.cbr = (u8)cpu.cbr };

	now.fast = (u32)(cpu.line - edge_of(now.art));
	return now;
}

static void push(void)
{
	struct vmpt_now now = clocks();

	vmpt_unit_time(&cpu.unit, &now);
	note();
}

/* Cycles until tick @line is reached. */
static u64 cycles_to(u64 line)
{
	u64 parts = (line - cpu.line) * cpu.cbr - cpu.part;

	return line <= cpu.line ? 0 : (parts + cpu.nominal - 1) / cpu.nominal;
}

static void pass(u64 cycles)
{
	u64 parts = cpu.part + cycles * cpu.nominal;

	cpu.cycles += cycles;
	cpu.line += parts / cpu.cbr;
	cpu.part = parts % cpu.cbr;
}

/* Each MTC is pushed in the cycle in which it is due. */
static void run(u64 cycles)
{
	u64 due, n;

	while (cycles) {
		due = edge_of(((art_now() >> cpu.freq) + 1) << cpu.freq);
		n = cycles_to(due);
		if (!n)
			n = 1;
		if (n > cycles)
			n = cycles;
		pass(n);
		cycles -= n;
		push();
	}
}

static void frequency(void)
{
	/* Some ms apart, in MTCs: the cycle's length before a CBR is not known (33.4.2.10). */
	if (cpu.line - cpu.changed < edge_of(100ULL << cpu.freq) && cpu.changed)
		return;
	cpu.changed = cpu.line;
	cpu.cbr = 4 + below(40);
	cpu.part = 0;
	vmpt_unit_frequency(&cpu.unit, (u8)cpu.cbr);
	note();
}

static void tick_on(u64 ticks)
{
	cpu.line += ticks;
	cpu.part = 0;
}

/* Clocks stop; TSC and crystal clock do not. */
static void doze(void)
{
	bool given = below(2);
	struct vmpt_now now;

	if (given)
		vmpt_unit_mwait(&cpu.unit, 0x400000, 0x20, 0, 2, 0);
	note();
	tick_on(below(1ULL << (8 + below(22))));
	now = clocks();
	cpu.unit.now = now;
	if (given)
		vmpt_unit_wake(&cpu.unit, 2, 2, 1);
	else
		vmpt_unit_clock_resumed(&cpu.unit);
	note();
}

static void overflow(void)
{
	u64 step = edge_of(1ULL << cpu.freq), mtcs = below(below(4) ? 3 : 250);
	u64 end = cpu.line + mtcs * step;

	vmpt_unit_overflow(&cpu.unit);
	note();
	/* Few cycles, to keep the test short. */
	if (mtcs * step > 4000000)
		end = cpu.line + step / 3;
	while (cpu.line < end)
		run(1 + below(cycles_to(end) + 2));
	run(1 + below(50));
	vmpt_unit_overflow_resolve(&cpu.unit, 0x400000);
	note();
}

static void off_and_on(void)
{
	u64 ctl = cpu.unit.regs.ctl;
	struct vmpt_now now;

	ck_assert_int_eq(vmpt_unit_wrmsr(&cpu.unit, VMPT_MSR_RTIT_CTL, ctl & ~VMPT_CTL_TRACE_EN,
					 0x400000, 0x400002),
			 0);
	note();
	tick_on(below(1ULL << (8 + below(20))));
	now = clocks();
	vmpt_unit_time(&cpu.unit, &now);
	ck_assert_int_eq(vmpt_unit_wrmsr(&cpu.unit, VMPT_MSR_RTIT_CTL, ctl, 0x400000, 0x400002), 0);
	note();
}

static void write_tsc(void)
{
	if (cpu.unit.vmx.nonroot || cpu.writes == VMPT_ARRAY_SIZE(cpu.written))
		return;
	cpu.written[cpu.writes++] = cpu.size;
	cpu.shift = below(1ULL << 44);
}

static void enter_or_exit(void)
{
	if (!cpu.unit.vmx.nonroot) {
		unsigned int g = (unsigned int)below(GUESTS);
		struct vmpt_unit_entry entry = { .vmx = cpu.unit.vmx,
						 .ip = 0x500000,
						 .target = 0x600000,
						 .mode = cpu.unit.mode };

		/* A PIP right before would look like one of the entry (docs/vm-tracking.md). */
		vmpt_unit_jmp_indirect(&cpu.unit, 0x4ff000);
		note();
		vmpt_unit_vmptrld(&cpu.unit, (g + 1) << 12);
		entry.vmx.vmcs = (g + 1) << 12;
		entry.vmx.tsc_offset = cpu.map[g].offset;
		entry.vmx.tsc_multiplier = cpu.map[g].multiplier;
		vmpt_unit_vmentry(&cpu.unit, &entry);
	} else {
		struct vmpt_unit_exit exit = { .ip = 0x600010,
					       .target = 0x500010,
					       .mode = cpu.unit.mode };

		vmpt_unit_vmexit(&cpu.unit, &exit);
	}
	note();
}

static void branch(void)
{
	struct vmpt_mode mode = cpu.unit.mode;

	switch (below(8)) {
	case 0:
	case 1:
		vmpt_unit_jmp_indirect(&cpu.unit, 0x400000 + below(0x100000));
		break;
	case 2:
		mode.cr3 = below(0x100) << 12;
		vmpt_unit_mov_cr3(&cpu.unit, 0x400000, &mode);
		break;
	default:
		vmpt_unit_jcc(&cpu.unit, below(2), 0x400000);
	}
	note();
}

static void event(void)
{
	const struct program *p = &cpu.program;
	u64 what = below(600);

	run(1 + below(1ULL << below(12)));
	if (what < 560)
		branch();
	else if (what < 564)
		frequency();
	else if (what < 568 && p->sleeps)
		doze();
	else if (what < 570 && p->overflows)
		overflow();
	else if (what < 572 && p->off)
		off_and_on();
	else if (what < 596 && p->guests)
		enter_or_exit();
	else if (what == 599 && p->writes)
		write_tsc();
}

static void wr(u32 msr, u64 value)
{
	ck_assert_int_eq(vmpt_unit_wrmsr(&cpu.unit, msr, value, 0x400000, 0x400002), 0);
}

static void capabilities(struct vmpt_pt_cpuid *cpuid)
{
	unsigned int cap;

	cpuid->present = 1;
	cpuid->maxphyaddr = 46;
	cpuid->linear_bits = 48;
	for (cap = 0; cap < VMPT_CAPS; cap++)
		vmpt_pt_cap_set(cpuid, cap, ~0u);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_MAX_SUBLEAF, 1);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_RANGES, 4);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_FABRIC, 0);
}

static void choose_rates(int seed)
{
	/* Of real leaf 15H, and some where FastCounter saturates */
	static const u32 ratio[][2] = { { 84, 2 },   { 176, 2 }, { 216, 2 }, { 250, 3 }, { 151, 1 },
					{ 1250, 2 }, { 334, 3 }, { 7, 3 },   { 1500, 7 } };
	size_t i = (size_t)seed % VMPT_ARRAY_SIZE(ratio), g;

	cpu.num = ratio[i][0];
	cpu.den = ratio[i][1];
	cpu.freq = (u64)seed % 16;
	cpu.nominal = 10 + below(30);
	cpu.cbr = 4 + below(40);
	cpu.line = below(1ULL << 44);
	cpu.shift = below(2) ? 0 : below(1ULL << 45);
	/* Past the end of the 56 bits of a TSC packet */
	if (seed % 5 == 0 && !cpu.program.writes)
		cpu.shift = (1ULL << 56) - 500000 - cpu.line;
	cpu.cycles = below(1u << 30);
	for (g = 0; g < GUESTS; g++) {
		cpu.map[g].offset = test_random(&cpu.rng);
		cpu.map[g].multiplier = VMPT_TSC_UNSCALED;
		if (below(2))
			cpu.map[g].multiplier += below(VMPT_TSC_UNSCALED) - (VMPT_TSC_UNSCALED / 2);
	}
}

static void begin(int seed, const struct program *program)
{
	struct vmpt_unit_config config = { .sink = &cpu.sink };
	struct vmpt_now now;
	u64 ctl = VMPT_CTL_TRACE_EN | VMPT_CTL_OS | VMPT_CTL_USER | VMPT_CTL_MTC_EN |
		  VMPT_CTL_TSC_EN | VMPT_CTL_BRANCH_EN | VMPT_CTL_PWR_EVT_EN;

	memset(&cpu, 0, offsetof(struct cpu, bytes));
	cpu.program = *program;
	cpu.rng.state = (u64)seed * 1000003 + 29;
	cpu.sink.write = take;
	choose_rates(seed);
	capabilities(&config.cpuid);
	ck_assert_int_eq(vmpt_unit_init(&cpu.unit, &config), 0);
	cpu.unit.mode = (struct vmpt_mode){ .cs_l = true, .cr3 = 0x1000 };
	now = clocks();
	vmpt_unit_time(&cpu.unit, &now);
	vmpt_unit_vmxon(&cpu.unit, true, 0x400000);
	ctl |= cpu.freq << VMPT_CTL_MTC_FREQ_SHIFT;
	if (program->cycs)
		ctl |= VMPT_CTL_CYC_EN | (u64)program->thresh << VMPT_CTL_CYC_THRESH_SHIFT;
	if (!program->psbs)
		ctl |= 5ULL << VMPT_CTL_PSB_FREQ_SHIFT;
	wr(VMPT_MSR_RTIT_CTL, ctl);
	note();
	frequency();
}

static void go(int seed, const struct program *program, unsigned int events)
{
	unsigned int i;

	begin(seed, program);
	for (i = 0; i < events; i++)
		event();
}

#endif
