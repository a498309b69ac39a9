// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A performance monitoring unit of version 2 (SDM 3 19.2). Translated code counts instructions and
 * branches of each privilege level, and calls when the first counter that raises a PMI may have
 * overflowed. The counters are brought up to date then and at each access.
 *
 * With counters=still nothing counts, and the registers only keep what is written: systems use the
 * PMI only if there is a PMU, and those that always have a counter running pay for what they do not
 * need. With counters=count each instruction takes CYCLES cycles, about what QEMU needs at the
 * clock's nominal frequency, and only indirect JMPs and CALLs are predicted wrongly, but always.
 */
#include "qemu-plugin/guest/internal.h"

#define MSR_PMC0	  0xc1
#define MSR_PERFEVTSEL0	  0x186
#define MSR_FIXED_CTR0	  0x309
#define MSR_FIXED_CTRL	  0x38d
#define MSR_GLOBAL_STATUS VMPT_MSR_PERF_GLOBAL_STATUS
#define MSR_GLOBAL_CTRL	  0x38f
#define MSR_GLOBAL_RESET  VMPT_MSR_PERF_GLOBAL_RESET

#define WIDTH	     48
#define COUNTER_MASK ((1ULL << WIDTH) - 1)
#define COUNTERS_ALL ((1ULL << PMU_COUNTERS) - 1)
#define FIXED_ALL    (((1ULL << PMU_FIXED) - 1) << 32)
/* Bits of PERFEVTSELn, of FIXED_CTR_CTRL, of GLOBAL_STATUS's reset (figures 19-6 to 19-9) */
#define SELECT_MASK 0xffdfffffULL
#define FIXED_MASK  0xbbbULL
#define RESET_MASK  (COUNTERS_ALL | FIXED_ALL | VMPT_GLOBAL_TOPA_PMI | 3ULL << 62)
#define CYCLES	    8 /* of an instruction */
#define CR4_PCE	    0x100ULL
#define RDPMC_FIXED 0x40000000U

/* Bits of PERFEVTSELn (figure 19-6), and of the four of a fixed counter (figure 19-7) */
#define SELECT_USR  (1ULL << 16)
#define SELECT_OS   (1ULL << 17)
#define SELECT_EDGE (1ULL << 18)
#define SELECT_INT  (1ULL << 20)
#define SELECT_EN   (1ULL << 22)
#define SELECT_HOW  (0xff000000ULL | 1ULL << 23 | SELECT_EDGE) /* counter mask, INV, edge */
#define FIXED_OS    1
#define FIXED_USR   2
#define FIXED_PMI   8
/* Architectural events without a source, in leaf 0AH's EBX: LLC references and misses */
#define LACKING (1U << 3 | 1U << 4)
/* Instructions until the next look whether the LVT entry is unmasked, if a PMI is pending */
#define POLL 1024

enum source { SOURCE_NONE, SOURCE_INSNS, SOURCE_CYCLES, SOURCE_BRANCHES, SOURCE_INDIRECT };

/* What a counter counts now. */
struct counting {
	u64 *value;
	u64 status;    /* its bit of GLOBAL_STATUS */
	u8 source;     /* enum source; SOURCE_NONE: it does not run */
	bool level[2]; /* CPL 0; CPL 1 to 3 */
	bool pmi;
};

/* Architectural events (SDM 3 table 19-1). Those without a source are marked in leaf 0AH. */
static enum source source_of(u64 select)
{
	if (select & SELECT_HOW)
		return SOURCE_NONE;
	switch (select & 0xffff) {
	case 0x003c: /* core cycles */
	case 0x013c: /* reference cycles */
		return SOURCE_CYCLES;
	case 0x00c0: /* instructions retired */
		return SOURCE_INSNS;
	case 0x00c4: /* branches retired */
		return SOURCE_BRANCHES;
	case 0x00c5: /* branches retired that were predicted wrongly */
		return SOURCE_INDIRECT;
	default:
		return SOURCE_NONE;
	}
}

/* Counter @i: the general ones, then the fixed ones. */
static struct counting counter(struct guest_pmu *pmu, unsigned int i)
{
	unsigned int fixed = i - PMU_COUNTERS, bits;
	struct counting c = { .source = SOURCE_NONE };

	if (i < PMU_COUNTERS) {
		u64 select = pmu->select[i];

		c.value = &pmu->counter[i];
		c.status = 1ULL << i;
		c.level[0] = select & SELECT_OS;
		c.level[1] = select & SELECT_USR;
		c.pmi = select & SELECT_INT;
		if (select & SELECT_EN)
			c.source = source_of(select);
	} else {
		bits = pmu->fixed_ctrl >> (4 * fixed) & 0xf;
		c.value = &pmu->fixed[fixed];
		c.status = 1ULL << (32 + fixed);
		c.level[0] = bits & FIXED_OS;
		c.level[1] = bits & FIXED_USR;
		c.pmi = bits & FIXED_PMI;
		/* Instructions, core cycles, reference cycles */
		c.source = fixed ? SOURCE_CYCLES : SOURCE_INSNS;
	}
	if (!(pmu->global_ctrl & c.status) || (!c.level[0] && !c.level[1]))
		c.source = SOURCE_NONE;
	return c;
}

#define COUNTERS (PMU_COUNTERS + PMU_FIXED)

/* How many of its events have happened since pmu->from. */
static u64 happened(const struct guest_pmu *pmu, const struct hot *hot, const struct counting *c)
{
	u64 n = 0;

	for (unsigned int i = 0; i < 2; i++) {
		const struct hot_counts *now = &hot->counts[i], *from = &pmu->from[i];

		if (!c->level[i])
			continue;
		n += c->source == SOURCE_INSNS	    ? now->insns - from->insns
		     : c->source == SOURCE_CYCLES   ? CYCLES * (now->insns - from->insns)
		     : c->source == SOURCE_BRANCHES ? now->branches - from->branches
						    : now->indirect - from->indirect;
	}
	return n;
}

/*
 * Instructions of each level until a counter with a PMI can overflow. One that counts both levels
 * has half of what is left in each: several calls come closer and closer.
 */
static void plan(struct guest_vcpu *guest)
{
	struct guest_pmu *pmu = &guest->pmu;
	struct hot *hot = guest->vcpu->hot;
	u64 until[2] = { COUNTED / 2, COUNTED / 2 };

	if (!guest->vcpu->plugin->options.counters)
		return;

	for (unsigned int n = 0; n < COUNTERS; n++) {
		struct counting c = counter(pmu, n);
		u64 left = COUNTER_MASK + 1 - *c.value;

		if (c.source == SOURCE_NONE || !c.pmi)
			continue;
		if (c.source == SOURCE_CYCLES)
			left = (left + CYCLES - 1) / CYCLES;
		if (c.level[0] && c.level[1])
			left = (left + 1) / 2;
		for (unsigned int i = 0; i < 2; i++) {
			if (c.level[i] && left < until[i])
				until[i] = left;
		}
	}
	for (unsigned int i = 0; i < 2; i++) {
		if (guest->apic.waiting && until[i] > POLL)
			until[i] = POLL;
		hot->counts[i].insns = COUNTED - until[i];
		pmu->from[i] = hot->counts[i];
	}
}

void guest_pmu_count(struct guest_vcpu *guest)
{
	struct guest_pmu *pmu = &guest->pmu;
	bool pmi = false;

	if (!guest->vcpu->plugin->options.counters)
		return;
	for (unsigned int n = 0; n < COUNTERS; n++) {
		struct counting c = counter(pmu, n);

		if (c.source == SOURCE_NONE)
			continue;
		*c.value += happened(pmu, guest->vcpu->hot, &c);
		if (*c.value <= COUNTER_MASK)
			continue;
		*c.value &= COUNTER_MASK;
		pmu->global_status |= c.status;
		pmi |= c.pmi;
	}
	if (pmi)
		guest_inject_pmi(guest);
	else if (guest->apic.waiting)
		guest_apic_poll(guest);
	plan(guest);
}

void guest_pmu_reset(struct guest_vcpu *guest)
{
	guest->pmu = (struct guest_pmu){ .global_ctrl = COUNTERS_ALL };
	plan(guest);
}

/* Leaf 0AH. Where nothing counts no event is missing either: systems want some of them. */
void guest_pmu_cpuid(const struct guest_vcpu *guest, struct vmpt_cpuid_regs *regs)
{
	*regs = (struct vmpt_cpuid_regs){
		.eax = 2 | PMU_COUNTERS << 8 | WIDTH << 16 | 7 << 24,
		.ebx = guest->vcpu->plugin->options.counters ? LACKING : 0,
		.edx = PMU_FIXED | WIDTH << 5,
	};
}

/* The register of @msr, and which of its bits may be 1. */
static u64 *find(struct guest_pmu *pmu, u32 msr, u64 *mask)
{
	*mask = COUNTER_MASK;
	if (msr - MSR_PMC0 < PMU_COUNTERS)
		return &pmu->counter[msr - MSR_PMC0];
	if (msr - MSR_FIXED_CTR0 < PMU_FIXED)
		return &pmu->fixed[msr - MSR_FIXED_CTR0];
	*mask = SELECT_MASK;
	if (msr - MSR_PERFEVTSEL0 < PMU_COUNTERS)
		return &pmu->select[msr - MSR_PERFEVTSEL0];
	switch (msr) {
	case MSR_FIXED_CTRL:
		*mask = FIXED_MASK;
		return &pmu->fixed_ctrl;
	case MSR_GLOBAL_CTRL:
		*mask = COUNTERS_ALL | FIXED_ALL;
		return &pmu->global_ctrl;
	case MSR_GLOBAL_STATUS:
		*mask = 0;
		return &pmu->global_status;
	default:
		return NULL;
	}
}

bool guest_pmu_read(struct guest_vcpu *guest, u32 msr, u64 *value)
{
	u64 mask, *reg = find(&guest->pmu, msr, &mask);

	if (reg)
		guest_pmu_count(guest);
	*value = reg ? *reg : 0;
	return reg || msr == MSR_GLOBAL_RESET;
}

/* Without full-width writes a counter takes 32 bits, sign-extended (19.2.2). */
static u64 extended(u32 msr, u64 value)
{
	return msr - MSR_PMC0 < PMU_COUNTERS ? (u64)(s64)(s32)value & COUNTER_MASK : value;
}

bool guest_pmu_starts(const struct guest_vcpu *guest, u32 msr, u64 value)
{
	struct guest_pmu after = guest->pmu;
	u64 mask, *reg = find(&after, msr, &mask);

	if (!reg || !guest->vcpu->plugin->options.counters)
		return false;
	*reg = extended(msr, value);
	for (unsigned int n = 0; n < COUNTERS; n++) {
		if (counter(&after, n).source != SOURCE_NONE)
			return true;
	}
	return false;
}

bool guest_pmu_write(struct guest_vcpu *guest, u32 msr, u64 value, bool *gp)
{
	struct guest_pmu *pmu = &guest->pmu;
	u64 mask, *reg = find(pmu, msr, &mask);

	*gp = false;
	if (!reg && msr != MSR_GLOBAL_RESET)
		return false;
	guest_pmu_count(guest);
	if (msr == MSR_GLOBAL_RESET) {
		*gp = value & ~RESET_MASK;
		if (!*gp)
			pmu->global_status &= ~value;
		return true;
	}
	value = extended(msr, value);
	*gp = value & ~mask || msr == MSR_GLOBAL_STATUS;
	if (!*gp)
		*reg = value;
	plan(guest);
	return true;
}

void guest_rdpmc(struct guest_vcpu *guest, const struct site *site)
{
	struct vcpu *vcpu = guest->vcpu;
	u32 index = (u32)qemu_read_reg(vcpu->regs, QREG_RCX), n = index & ~RDPMC_FIXED;
	bool fixed = index & RDPMC_FIXED;
	u64 value;

	/* QEMU has no RDPMC: let it raise the fault. At CPL 0 it should be #GP, but is #UD. */
	if ((vcpu->mode.cpl && !(vcpu->cpu.cr4 & CR4_PCE)) ||
	    n >= (fixed ? PMU_FIXED : PMU_COUNTERS))
		return;
	guest_pmu_count(guest);
	value = fixed ? guest->pmu.fixed[n] : guest->pmu.counter[n];
	qemu_write_reg(vcpu->regs, QREG_RAX, LOW32(value));
	qemu_write_reg(vcpu->regs, QREG_RDX, value >> 32);
	/* Even if the guest steps: QEMU would raise #UD. */
	flow_go_to(vcpu, guest_next(guest, site));
}
