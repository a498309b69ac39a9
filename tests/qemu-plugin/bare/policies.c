// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Checks of the plugin's own behaviour, which the conformance suite does not cover: output to
 * non-RAM addresses, delivery of a PMI, the TSC and its packets, PTWRITE, the PMU that systems
 * expect. Expected values are the manual's; each check prints a line.
 */
#include "bare-io.h"
#include "bare.h"

#include "arch/pt-packet.h"
#include "arch/topa.h"
#include "vmm-lib/conformance.h"

#define TABLE	0x810000ULL
#define REGION	0x820000ULL
#define RAM_END 0x4000000ULL /* -m 64 */
#define DEVICE	0x3000000ULL /* in the upper half of RAM */
#define TRACE	(VMPT_CTL_TRACE_EN | VMPT_CTL_OS | VMPT_CTL_TOPA)
#define MSR_TSC 0x10
#define MASKED	0x10000
#define NMI	0x400

#define MSR_APIC_BASE 0x1b

static void check(const char *what, u64 want, u64 got)
{
	print(want == got ? "policy: ok " : "policy: FAILED ");
	print(what);
	print("\n");
	if (want == got)
		return;
	print_number("  want ", want);
	print_number("  got ", got);
}

static u64 read_msr(u32 msr)
{
	u64 value = 0;

	return subject_rdmsr(msr, &value) ? ~0ULL : value;
}

static u64 volatile *at(u64 address)
{
	return (u64 volatile *)address;
}

/* Trace a few packets at a position; the rest of STATUS must not change. */
static u64 trace(u64 base, u64 mask_ptrs, u64 ctl, u32 rounds)
{
	(void)subject_wrmsr(VMPT_MSR_RTIT_STATUS, 0);
	(void)subject_wrmsr(VMPT_MSR_RTIT_OUTPUT_BASE, base);
	(void)subject_wrmsr(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, mask_ptrs);
	(void)subject_wrmsr(VMPT_MSR_RTIT_CTL, ctl);
	subject_run(rounds);
	(void)subject_wrmsr(VMPT_MSR_RTIT_CTL, 0);
	return read_msr(VMPT_MSR_RTIT_STATUS) & (VMPT_STATUS_ERROR | VMPT_STATUS_STOPPED);
}

static u64 trace_to(u64 region, u64 flags, u64 ctl, u32 rounds)
{
	*at(TABLE) = region | flags;
	*at(TABLE + 8) = TABLE | VMPT_TOPA_END;
	return trace(TABLE, 0, TRACE | ctl, rounds);
}

/* ---- output ---- */

/* Addresses without RAM, a page each: the trace ends with Error, and no device is affected. */
static void not_ram(void)
{
	static const struct {
		const char *name;
		u64 gpa;
	} row[] = { { "VGA memory", 0xa0000 },
		    { "ROM below 1 MiB", 0xf0000 },
		    { "first page after RAM", RAM_END },
		    { "I/O APIC", 0xfec00000 },
		    { "HPET", 0xfed00000 },
		    { "APIC page", 0xfee00000 },
		    { "firmware", 0xfffff000 },
		    { "after 4 GiB", 0x100000000 },
		    { "highest page", 0xfffffff000 } };
	u64 config = *at(0xfed00010), comparator = *at(0xfed00108);
	u32 select = *(u32 volatile *)0xfec00000;

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		check(row[i].name, VMPT_STATUS_ERROR, trace_to(row[i].gpa, 0, 0, 64));
		/* Also as a table, and as a single range. */
		check(row[i].name, VMPT_STATUS_ERROR, trace(row[i].gpa, 0, TRACE, 64));
		check(row[i].name, VMPT_STATUS_ERROR,
		      trace(row[i].gpa, 0xfff, TRACE & ~VMPT_CTL_TOPA, 64));
	}
	check("HPET is unchanged", config, *at(0xfed00010));
	check("HPET is unchanged", comparator, *at(0xfed00108));
	check("I/O APIC is unchanged", select, *(u32 volatile *)0xfec00000);
	check("last page of RAM", 0, trace_to(RAM_END - 4096, 0, 0, 64));
	/* A region of 8 KiB whose second half is not RAM cannot be aligned; one of VGA's can. */
	check("page before VGA memory", 0, trace_to(0x9f000, 0, 0, 64));
	check("region that ends in VGA memory", VMPT_STATUS_ERROR,
	      trace_to(0x80000, 6ULL << VMPT_TOPA_SIZE_SHIFT, VMPT_CTL_BRANCH_EN, 60000));
}

static u32 pci_config(u32 function, u32 offset)
{
	out32(0xcf8, 0x80000000 | function << 8 | offset);
	return in32(0xcfc);
}

static void pci_configure(u32 function, u32 offset, u32 value)
{
	out32(0xcf8, 0x80000000 | function << 8 | offset);
	out32(0xcfc, value);
}

/*
 * A device (QEMU's "edu") below what would be RAM's end, if all of it were below 4 GiB: its
 * registers from 80H on accept 8-byte writes, like those of a trace.
 */
static void device(void)
{
	u32 function = 0;

	while (function < 256 && pci_config(function, 0) != 0x11e81234)
		function++;
	if (function == 256)
		return;
	pci_configure(function, 0x10, DEVICE);
	pci_configure(function, 4, 2);
	*at(DEVICE + 0x80) = 0x1234;
	check("the device is present", 0x1234, *at(DEVICE + 0x80));
	for (u64 gpa = DEVICE; gpa < DEVICE + 2 * 4096; gpa += 4096) {
		check("device: a region", VMPT_STATUS_ERROR,
		      trace_to(gpa, 0, VMPT_CTL_BRANCH_EN, 200));
		check("device: a table", VMPT_STATUS_ERROR, trace(gpa, 0, TRACE, 64));
		check("device: a single range", VMPT_STATUS_ERROR,
		      trace(gpa, 0xfff, (TRACE | VMPT_CTL_BRANCH_EN) & ~VMPT_CTL_TOPA, 200));
	}
	check("the device is unchanged", 0x1234, *at(DEVICE + 0x80));
	check("last page below the devices", 0, trace_to(RAM_END / 2 - 4096, 0, 0, 64));
	check("first page above 4 GiB", 0, trace_to(0x100000000, 0, 0, 64));
	check("last page above 4 GiB", 0, trace_to(0x100000000 + RAM_END / 2 - 4096, 0, 0, 64));
	check("page after it", VMPT_STATUS_ERROR, trace_to(0x100000000 + RAM_END / 2, 0, 0, 64));
}

/* ---- PMI ---- */

static u32 fill_region(void)
{
	u32 before = mailbox.pmis;

	(void)trace_to(REGION, VMPT_TOPA_INT | VMPT_TOPA_STOP, VMPT_CTL_BRANCH_EN, 8192);
	return mailbox.pmis - before;
}

static void acknowledge(void)
{
	(void)read_msr(VMPT_MSR_PERF_GLOBAL_STATUS);
	(void)subject_wrmsr(VMPT_MSR_PERF_GLOBAL_RESET, VMPT_GLOBAL_TOPA_PMI);
}

static void pmi_ways(const char *how)
{
	static const u32 ways[] = { NMI, PMI_VECTOR };
	u32 before;

	print(how);
	for (unsigned int i = 0; i < 2; i++) {
		acknowledge();
		subject_lvt(ways[i]);
		check("a PMI is taken", 1, fill_region());
		acknowledge();
		/* Delivery has set the mask; this handler does not clear it. */
		mailbox.lvt = 0;
		check("one more", 1, fill_region());
		acknowledge();
		check("none while masked", 0, fill_region());
		before = mailbox.pmis;
		subject_lvt(ways[i]);
		subject_run(1000);
		check("it comes when unmasked", 1, mailbox.pmis - before);
	}
	acknowledge();
}

/* IA32_APIC_BASE: QEMU does not move the page, and no device is mistaken for it. */
static void moved(void)
{
	u64 base = read_msr(MSR_APIC_BASE), config = *at(0xfed00010);

	subject_lvt(NMI);
	check("the APIC's base can be set to the HPET's", 0,
	      (u64)subject_wrmsr(MSR_APIC_BASE, 0xfed00000 | (base & 0xfff)));
	check("a PMI is taken nevertheless", 1, fill_region());
	check("HPET is unchanged", config, *at(0xfed00010));
	(void)subject_wrmsr(MSR_APIC_BASE, base);
	acknowledge();
	check("x2APIC mode of a disabled APIC is #GP", VMPT_GP,
	      (u64)subject_wrmsr(MSR_APIC_BASE, (base & ~0x800ULL) | 0x400));
	check("and PMIs are delivered as before", 1, fill_region());
	acknowledge();
}

static void pmi(void)
{
	pmi_ways("xAPIC mode\n");
	moved();
	subject_lvt(PMI_VECTOR);
	subject_to_x2apic();
	check("x2APIC: the entry kept its value", PMI_VECTOR, read_msr(0x834));
	pmi_ways("x2APIC mode\n");
	subject_init_itself();
	check("x2APIC: an INIT has masked the entry", MASKED, read_msr(0x834));
}

/* ---- time ---- */

/* The TSC of the first TSC packet in the region. */
static u64 traced_tsc(void)
{
	const u8 *bytes = (const u8 *)REGION;
	struct vmpt_pt_packet packet;

	for (size_t i = 0; i < 64; i += packet.size) {
		if (vmpt_pt_decode(&packet, bytes + i, 64 - i, 0))
			break;
		if (packet.kind == VMPT_PT_TSC)
			return packet.tsc.tsc;
	}
	return 0;
}

static void time(void)
{
	u64 before, after, packet, second = 1000000000;
	u32 aux;

	(void)subject_wrmsr(0xc0000103, 0x1234);
	before = subject_tsc(false, &aux);
	(void)trace_to(REGION, 0, VMPT_CTL_TSC_EN, 1);
	after = subject_tsc(true, &aux);
	packet = traced_tsc();
	check("RDTSCP gives IA32_TSC_AUX", 0x1234, aux);
	check("a TSC packet is not before RDTSC", 1, packet >= before);
	check("a TSC packet is not after RDTSCP", 1, packet <= after);
	check("the TSC can be read as an MSR", 1, read_msr(MSR_TSC) >= after);
	check("IA32_TSC_ADJUST is 0 at first", 0, read_msr(0x3b));
	(void)subject_wrmsr(MSR_TSC, 1000 * second);
	before = subject_tsc(false, &aux);
	check("a written TSC continues", 1, before >= 1000 * second && before < 1060 * second);
	check("and so did IA32_TSC_ADJUST", 1, read_msr(0x3b) != 0);
	(void)trace_to(REGION, 0, VMPT_CTL_TSC_EN, 1);
	packet = traced_tsc();
	check("and its packets", 1, packet >= before && packet < 1060 * second);
	(void)subject_wrmsr(0x3b, 0);
	check("IA32_TSC_ADJUST takes it back", 1, subject_tsc(false, &aux) >= after);
}

/* ---- the rest ---- */

static void ptwrites(bool offered)
{
	static const u64 want[] = { 0x1122334455667788, 0x55667788, 0x99aabbccddeeff00,
				    0xddeeff00 };
	const u8 *bytes = (const u8 *)REGION;
	struct vmpt_pt_packet packet;
	unsigned int n = 0;

	if (!offered) {
		check("PTWRITE is #UD where it is not offered", 1,
		      (u64)subject_ptwrite(want[0], want[2]));
		return;
	}
	for (size_t i = 0; i < 4096; i++)
		((u8 *)REGION)[i] = 0;
	*at(TABLE) = REGION;
	*at(TABLE + 8) = TABLE | VMPT_TOPA_END;
	(void)subject_wrmsr(VMPT_MSR_RTIT_STATUS, 0);
	(void)subject_wrmsr(VMPT_MSR_RTIT_OUTPUT_BASE, TABLE);
	(void)subject_wrmsr(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0);
	(void)subject_wrmsr(VMPT_MSR_RTIT_CTL, TRACE | VMPT_CTL_PTW_EN);
	check("PTWRITE is no #UD", 0, (u64)subject_ptwrite(want[0], want[2]));
	(void)subject_wrmsr(VMPT_MSR_RTIT_CTL, 0);
	for (size_t i = 0; i < 4000; i += packet.size) {
		if (vmpt_pt_decode(&packet, bytes + i, 4096 - i, 0))
			break;
		if (packet.kind == VMPT_PT_PTW && n < 4)
			check("PTWRITE's payload", want[n++], packet.ptw.payload);
	}
	check("PTWRITEs", 4, n);
}

#define TIMES 1500 /* of 16 bytes at most, with the CYCs of a round: 64 KiB in all */

/*
 * H1: the time of a PTWRITE's packet, by the TSC packet at the start and the cycles since (one
 * cycle is one tick here), against the TSC that the guest read just before and wrote.
 */
static void times(void)
{
	const u8 *bytes = (const u8 *)REGION;
	struct vmpt_pt_packet packet;
	u64 now = 0, early = 0, late = 0, n = 0;

	for (size_t i = 0; i < 65536; i++)
		((u8 *)REGION)[i] = 0;
	*at(TABLE) = REGION | 4ULL << VMPT_TOPA_SIZE_SHIFT;
	*at(TABLE + 8) = TABLE | VMPT_TOPA_END;
	(void)subject_wrmsr(VMPT_MSR_RTIT_STATUS, 0);
	(void)subject_wrmsr(VMPT_MSR_RTIT_OUTPUT_BASE, TABLE);
	(void)subject_wrmsr(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0);
	(void)subject_wrmsr(VMPT_MSR_RTIT_CTL,
			    TRACE | VMPT_CTL_PTW_EN | VMPT_CTL_TSC_EN | VMPT_CTL_CYC_EN);
	subject_times(TIMES / 3);
	(void)subject_wrmsr(VMPT_MSR_RTIT_CTL, 0);
	for (size_t i = 0; i < 65000; i += packet.size) {
		if (vmpt_pt_decode(&packet, bytes + i, 65536 - i, 0))
			break;
		if (packet.kind == VMPT_PT_TSC && !now)
			now = packet.tsc.tsc;
		if (packet.kind == VMPT_PT_CYC)
			now += packet.cyc.cycles;
		if (packet.kind != VMPT_PT_PTW)
			continue;
		n++;
		early += now < packet.ptw.payload;
		late += now > packet.ptw.payload + 1000;
	}
	check("H1: a packet for each time", TIMES, n);
	check("H1: no time before what was read", 0, early);
	check("H1: 99 % within 1 us", 1, late * 100 <= n);
}

/* Single-stepping sees no difference between instructions executed by QEMU and by the plugin. */
static void step(void)
{
	u64 places = 1 << 2 | 1 << 5 | 1 << 10 | 1 << 12 | 1 << 14 | 1 << 17 | 1 << 22 | 1 << 24 |
		     1 << 26 | 1 << 28;
	u32 leaf_14;

	check("a step after each instruction", places, subject_step(&leaf_14) & 0x1fffffff);
	check("and CPUID is the plugin's nevertheless", 1, leaf_14);
}

/* TraceStop where the traced code is, with an address that is not mapped on either side. */
static void trace_stop(void)
{
	u64 code = LOAD;

	(void)subject_wrmsr(0x580, code);
	(void)subject_wrmsr(0x581, code + 0xffff);
	check("TraceStop stops", VMPT_STATUS_STOPPED,
	      trace_to(REGION, 0, VMPT_CTL_BRANCH_EN | 2ULL << VMPT_CTL_ADDR_SHIFT(0), 64));
	(void)subject_wrmsr(0x580, 0x300000);
	(void)subject_wrmsr(0x581, 0x300fff);
	check("TraceStop elsewhere does not", 0,
	      trace_to(REGION, 0, VMPT_CTL_BRANCH_EN | 2ULL << VMPT_CTL_ADDR_SHIFT(0), 64));
}

/* What Linux requires of a PMU of version 2 (SDM 3 19.2): registers keep written values. */
static void pmu(void)
{
	check("IA32_PERF_GLOBAL_CTRL after reset", 0xf, read_msr(0x38f));
	check("GLOBAL_STATUS cannot be written", VMPT_GP, (u64)subject_wrmsr(0x38e, 0));
	check("a counter takes 32 bits, signed", 0,
	      (u64)subject_wrmsr(0xc1, 0xffffffff) | (read_msr(0xc1) ^ 0xffffffffffff));
	check("a fixed counter takes 48", 0,
	      (u64)subject_wrmsr(0x309, 0x8000ffff1234) | (read_msr(0x309) ^ 0x8000ffff1234));
	check("and not 49", VMPT_GP, (u64)subject_wrmsr(0x309, 1ULL << 48));
	check("an event can be selected", 0,
	      (u64)subject_wrmsr(0x186, 0x5300c0) | (read_msr(0x186) ^ 0x5300c0));
	check("bit 55 of GLOBAL_STATUS_RESET", 0, (u64)subject_wrmsr(0x390, 1ULL << 55));
	check("a reserved one", VMPT_GP, (u64)subject_wrmsr(0x390, 1ULL << 54));
}

/* What counter 0 counts of @event from @from on, in rounds of four instructions with two branches.
 */
static u64 counted(u64 event, u64 from, u32 rounds)
{
	(void)subject_wrmsr(0x186, event);
	(void)subject_wrmsr(0xc1, from);
	subject_count(rounds);
	return read_msr(0xc1);
}

/*
 * H4, with counters=count: each architectural event that is not marked as missing (SDM 3 19.2.1.2);
 * an overflow sets its bit and raises a PMI (19.2.2).
 */
static void h4_counters(void)
{
	const u64 on = 1 << 22, os = 1 << 17, usr = 1 << 16, interrupts = 1 << 20;
	u32 eax = 0xa, ebx, ecx = 0, edx, before;
	u64 insns;

	__asm__ volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
	if (!ebx)
		return;
	check("H4: LLC events are missing, no others", 0x18, ebx);
	(void)subject_wrmsr(0x38d, 0);
	(void)subject_wrmsr(0x38f, 0);
	(void)subject_wrmsr(VMPT_MSR_PERF_GLOBAL_RESET, 1);
	/* At least the XOR, at most the WRMSR that stops it, too. */
	insns = counted(on | os | 0xc0, 0, 1000) - 4000;
	check("H4: instructions", 1, insns >= 1 && insns <= 2);
	insns = counted(on | os | usr | 0xc0, 0, 100000) - 400000;
	check("H4: more of them, at any CPL", 1, insns >= 1 && insns <= 2);
	insns = counted(on | os | 0x3c, 0, 1000) - 8 * 4000;
	check("H4: eight cycles for each", 1, insns >= 8 && insns <= 16);
	check("H4: branches", 2000, counted(on | os | 0xc4, 0, 1000));
	check("H4: wrongly predicted", 1000, counted(on | os | 0xc5, 0, 1000));
	check("H4: none at CPL 3", 0, counted(on | usr | 0xc0, 0, 1000));
	check("H4: not enabled", 0, counted(os | 0xc0, 0, 1000));
	check("H4: with a counter mask", 0, counted(on | os | 0xc0 | 1 << 24, 0, 1000));
	check("H4: no such event", 0, counted(on | os | 0x2e, 0, 1000));
	check("H4: nothing overflowed", 0, read_msr(VMPT_MSR_PERF_GLOBAL_STATUS));
	check("H4: an overflow", 1500, counted(on | os | 0xc4, (u32)-500, 1000));
	check("H4: sets its bit", 1, read_msr(VMPT_MSR_PERF_GLOBAL_STATUS));
	(void)subject_wrmsr(VMPT_MSR_PERF_GLOBAL_RESET, 1);
	check("H4: which can be cleared", 0, read_msr(VMPT_MSR_PERF_GLOBAL_STATUS));
	subject_lvt(PMI_VECTOR);
	before = mailbox.pmis;
	(void)counted(on | os | interrupts | 0xc4, (u32)-500, 499 / 2);
	check("H4: no PMI before", 0, mailbox.pmis - before);
	(void)counted(on | os | interrupts | 0xc4, (u32)-500, 1000);
	check("H4: a PMI", 1, mailbox.pmis - before);
	subject_lvt(PMI_VECTOR);
	(void)counted(on | os | usr | interrupts | 0xc0, (u32)-100000, 100000);
	check("H4: one of both levels", 2, mailbox.pmis - before);
	(void)subject_wrmsr(VMPT_MSR_PERF_GLOBAL_RESET, 1);
	(void)subject_wrmsr(0x186, 0);
}

void policies(void)
{
	u64 value;

	(void)power_on(0);
	not_ram();
	device();
	pmu();
	h4_counters();
	time();
	step();
	trace_stop();
	ptwrites(!subject_rdmsr(0x586, &value));
	if (!subject_rdmsr(0x586, &value))
		times();
	pmi();
}
