// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A machine of trace units; see clock-machine.h. */
#include <stdlib.h>

#include "tests/decoder/clock-machine.h"
#include "tests/support/support.h"

#define HOST_CR3  0x1000
#define HOST_IP	  0xffffffff81000000ULL
#define GUEST_IP  0xffffffff80000000ULL
#define CTL	  (VMPT_CTL_OS | VMPT_CTL_USER | VMPT_CTL_BRANCH_EN | VMPT_CTL_DIS_RETC)
#define MSR_WRITE 0xffffffff80ff0000ULL

struct machine {
	unsigned int cpus;
	u64 ctl, tsc;
	bool guest_only;
	struct test_rng rng;
	struct unit_cpu cpu[MACHINE_CPUS];
};

static void push(struct machine *m, struct unit_cpu *c, u64 tsc)
{
	unit_cpu_pass(c, tsc, (unsigned int)(m->ctl >> VMPT_CTL_MTC_FREQ_SHIFT & 0xf));
}

static struct vmpt_mode mode_of(u64 cr3)
{
	return (struct vmpt_mode){ .cr3 = cr3, .cs_l = true };
}

static void start(struct machine *m, struct unit_cpu *c)
{
	unit_cpu_init(c, HOST_CR3, m->tsc);
	if (!m->guest_only)
		ck_assert_int_eq(vmpt_unit_wrmsr(&c->unit, VMPT_MSR_RTIT_CTL,
						 m->ctl | VMPT_CTL_TRACE_EN, MSR_WRITE, HOST_IP),
				 0);
}

struct machine *machine_new(unsigned int cpus, u64 ctl, bool guest_only, u64 tsc)
{
	struct machine *m = calloc(1, sizeof(*m));
	unsigned int i;

	ck_assert_ptr_nonnull(m);
	ck_assert_uint_le(cpus, MACHINE_CPUS);
	m->cpus = cpus;
	m->ctl = CTL | ctl;
	m->guest_only = guest_only;
	m->tsc = tsc;
	m->rng.state = tsc;
	for (i = 0; i < cpus; i++)
		start(m, &m->cpu[i]);
	return m;
}

void machine_free(struct machine *m)
{
	unsigned int i;

	for (i = 0; i < m->cpus; i++)
		unit_cpu_free(&m->cpu[i]);
	free(m);
}

/* @jumps to addresses near @base, over @ticks. */
static void jumps_over(struct machine *m, struct unit_cpu *c, u64 base, u64 ticks,
		       unsigned int jumps)
{
	unsigned int i;

	for (i = 1; i <= jumps; i++) {
		push(m, c, m->tsc + ticks * i / (jumps + 1));
		vmpt_unit_jmp_indirect(&c->unit, base + (test_random(&m->rng) & 0xffffff));
	}
	m->tsc += ticks;
	push(m, c, m->tsc);
}

void machine_host(struct machine *m, unsigned int cpu, u64 ticks, unsigned int jumps)
{
	jumps_over(m, &m->cpu[cpu], HOST_IP, ticks, jumps);
}

void machine_run(struct machine *m, unsigned int cpu, const struct machine_guest *guest, u64 host,
		 u64 ticks, unsigned int jumps)
{
	struct unit_cpu *c = &m->cpu[cpu];
	struct vmpt_unit_entry entry = {
		.vmx = { .on = true,
			 .vmcs = guest->vmcs,
			 .tsc_offset = guest->map.offset,
			 .tsc_multiplier = guest->map.multiplier },
		.load_ctl = m->guest_only,
		.ctl = m->ctl | VMPT_CTL_TRACE_EN,
		.ip = HOST_IP + 0x100,
		.target = GUEST_IP,
		.mode = mode_of(guest->vmcs << 8),
	};
	struct vmpt_unit_exit exit = {
		.clear_ctl = m->guest_only,
		.reason = 1,
		.ip = GUEST_IP + 0x200,
		.target = HOST_IP + 0x300,
		.mode = mode_of(HOST_CR3),
	};

	machine_host(m, cpu, host, 4);
	/* VMPTRLD makes no packet while TraceEn is 0: request a PSB+, as a VMM must. */
	if (unit_cpu_load(c, guest->vmcs) && m->guest_only)
		ck_assert_int_eq(vmpt_unit_wrmsr(&c->unit, VMPT_MSR_RTIT_STATUS,
						 c->unit.regs.status & ~VMPT_STATUS_BYTES, 0, 0),
				 0);
	vmpt_unit_vmentry(&c->unit, &entry);
	jumps_over(m, c, GUEST_IP, ticks, jumps);
	vmpt_unit_vmexit(&c->unit, &exit);
	vmpt_unit_jmp_indirect(&c->unit, HOST_IP);
}

u64 machine_now(const struct machine *m)
{
	return m->tsc;
}

const struct vmpt_stream *machine_stream(struct machine *m, unsigned int cpu)
{
	return unit_cpu_stream(&m->cpu[cpu], cpu);
}

struct vmpt_rates machine_rates(u64 ctl)
{
	return (struct vmpt_rates){
		.tsc_num = 2 * UNIT_CPU_P,
		.tsc_den = 2,
		.nominal = UNIT_CPU_NOMINAL,
		.mtc_freq = (u8)(ctl >> VMPT_CTL_MTC_FREQ_SHIFT & 0xf),
		.has_mtc_freq = ctl & VMPT_CTL_MTC_EN,
	};
}
