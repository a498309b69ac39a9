// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Time in packets (SDM 3 33.3.6, 33.8.3): sleep counts in the TSC but not in MTCs or cycles; MTCs
 * continue, one for each tick of the crystal, whatever is written to the TSC.
 */
#include "arch/pt-packet.h"
#include "scenarios.h"
#include "trace.h"

#define MSR_TSC	       0x10
#define MSR_TSC_ADJUST 0x3b
#define TIME	       (VMPT_CTL_TSC_EN | VMPT_CTL_MTC_EN | VMPT_CTL_CYC_EN)
#define ALARM	       20000 /* ticks */
#define AWAKE	       4000  /* more than the instructions of a trace here */

void traced_hlt(u64 ctl);
void jump_about(u64 rounds);

struct times {
	u64 cycles, tscs, first, last, mtcs, asleep, skipped;
};

/* Collected from the trace: TSCs, cycles, MTCs between EXSTOP and PWRX, MTCs that skip values. */
static void look(struct times *t)
{
	size_t size = trace_size();
	struct vmpt_pt_packet packet;
	bool sleeps = false;
	u64 ctc = 0;

	memset(t, 0, sizeof(*t));
	for (size_t i = 0; i < size; i += packet.size) {
		if (vmpt_pt_decode(&packet, (const u8 *)OUT + i, size - i, 0)) {
			wrong("no packet at %x", (u64)i);
			return;
		}
		if (packet.kind == VMPT_PT_CYC)
			t->cycles += packet.cyc.cycles;
		if (packet.kind == VMPT_PT_TSC) {
			t->last = packet.tsc.tsc;
			t->first = t->tscs++ ? t->first : t->last;
		}
		if (packet.kind == VMPT_PT_EXSTOP || packet.kind == VMPT_PT_PWRX)
			sleeps = packet.kind == VMPT_PT_EXSTOP;
		if (packet.kind != VMPT_PT_MTC)
			continue;
		t->asleep += sleeps;
		t->skipped += t->mtcs++ && packet.mtc.ctc != ((ctc + 1) & 0xff);
		ctc = packet.mtc.ctc;
	}
}

static void asleep(void)
{
	u64 before, after;
	struct times t;

	trace_prepare();
	apic_write(0x3e0, 0xb);
	apic_write(0x320, IPI_VECTOR);
	apic_write(0x380, ALARM);
	before = rdtsc();
	traced_hlt(CTL_ON | VMPT_CTL_PWR_EVT_EN | TIME);
	after = rdtsc();
	look(&t);
	want("TSC packets", 2, t.tscs);
	if (t.first < before || t.last > after || t.last - t.first < ALARM - AWAKE)
		wrong("TSC: %x to %x, the packets have %x to %x", before, after, t.first, t.last);
	if (!t.cycles || t.cycles > AWAKE)
		wrong("cycles: %x", t.cycles);
	want("MTCs in HLT", 0, t.asleep);
}

/* @msr = @value makes the TSC @least; then there is one TSC packet between two RDTSCs. */
static void bracket(const char *what, u32 msr, u64 value, u64 least)
{
	u64 before, after;
	struct times t;

	trace_prepare();
	msr_write(msr, value);
	before = rdtsc();
	msr_write(VMPT_MSR_RTIT_CTL, CTL_ON | VMPT_CTL_TSC_EN);
	msr_write(VMPT_MSR_RTIT_CTL, CTL_BASE);
	after = rdtsc();
	look(&t);
	want("TSC packets", 1, t.tscs);
	if (before < least || before > least + AWAKE || t.first < before || t.first > after)
		wrong("%s: TSC %x to %x, the packet has %x", what, before, after, t.first);
}

static void written(void)
{
	u64 adjust;

	bracket("TSC ahead", MSR_TSC, 1ULL << 40, 1ULL << 40);
	bracket("TSC back", MSR_TSC, 1000, 1000);
	/* IA32_TSC_ADJUST changes by the same amount as the TSC. */
	adjust = msr_read(MSR_TSC_ADJUST);
	msr_write(MSR_TSC, rdtsc() + (1ULL << 30));
	if (msr_read(MSR_TSC_ADJUST) - adjust - (1ULL << 30) + AWAKE > AWAKE)
		wrong("TSC_ADJUST: %x, then %x", adjust, msr_read(MSR_TSC_ADJUST));
	adjust = rdtsc();
	msr_write(MSR_TSC_ADJUST, msr_read(MSR_TSC_ADJUST) + (1ULL << 41));
	if (rdtsc() - adjust - (1ULL << 41) > AWAKE)
		wrong("TSC: %x, then %x", adjust, rdtsc());
}

static void goes_on(void)
{
	struct times t;

	trace_prepare();
	msr_write(VMPT_MSR_RTIT_CTL, CTL_ON | TIME);
	jump_about(1000);
	msr_write(MSR_TSC, 1ULL << 50);
	jump_about(1000);
	msr_write(MSR_TSC, 1);
	jump_about(1000);
	msr_write(VMPT_MSR_RTIT_CTL, CTL_BASE);
	look(&t);
	/* 12000 instructions; the crystal ticks every 100 */
	if (t.mtcs < 115 || t.mtcs > 130)
		wrong("MTCs: %x", t.mtcs);
	want("MTCs left out", 0, t.skipped);
	if (t.cycles < 12000 || t.cycles > 13000)
		wrong("cycles: %x", t.cycles);
}

/* Every instruction takes time: RDTSC never returns the same value twice. */
static void exact(void)
{
	u64 last = rdtsc(), now;

	for (unsigned int i = 0; i < 100; i++) {
		now = rdtsc();
		if (now <= last)
			wrong("RDTSC: %x after %x", now, last);
		last = now;
	}
}

const struct scenario time_scenarios[] = { { "time-asleep", asleep, NEEDS_PT },
					   { "time-written", written, NEEDS_PT },
					   { "time-goes-on", goes_on, NEEDS_PT },
					   { "time-exact", exact, 0 },
					   { 0 } };
