// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The shapes: a loop that writes a stretch of branches, what else happens in it, and what follows
 * its end. A row of shapes[] is the chances and lengths of one shape; shapes.h has the shares of
 * packets that result.
 */
#include "bench/shapes.h"
#include "bench/synth-put.h"

#define PROGRAM 0x000055d04c2b1000ULL
#define LIBRARY 0x00007f3a91c00000ULL
#define KERNEL	0xffffffff81000000ULL
#define CR3	0x01628b000ULL
#define VMCS	0x48d020000ULL

/* Ranges are least and most; numbers without a unit are chances in percent, per stretch. */
struct row {
	const char *name, *about;
	unsigned int psb[2];	  /* bytes from one PSB to the next, give or take a stretch */
	unsigned int branches[2]; /* TNT-8 and TIPs of a stretch */
	unsigned int tip;	  /* of each branch: a TIP */
	bool guest;		  /* NR = 1 and a VMCS in PSB+, no time; else TSC and TMA */
	bool pads;		  /* PADs as in guest-two-vmcs.pt */
	unsigned int cyc;	  /* bits of a CYC before each TNT and TIP; 0: none */
	unsigned int cyc_2;	  /* of these: 2 bytes */
	unsigned int off;	  /* TIP.PGD at the end, TIP.PGE before the next */
	unsigned int target;	  /* TIP.PGD has an IP */
	unsigned int mtc[2];	  /* MTCs at the end, after TIP.PGD */
	unsigned int mtc_cyc;	  /* CYC before each of them */
	unsigned int restart;	  /* CBR and MODE.Exec before TIP.PGE */
	unsigned int ptw, pip, interrupt, vm;
};

static const struct row shapes[SHAPES] = {
	[SHAPE_PERF_DEFAULT] = {
		.name = "perf-default",
		.about = "perf's default: user space, MTC, a TIP.PGD every few packets; like "
			 "host-loopy.perf.data",
		.psb = { 16384, 16384 }, .branches = { 0, 6 }, .tip = 25,
		.off = 100, .mtc = { 0, 4 },
	},
	[SHAPE_DENSE_PSB] = {
		.name = "dense-psb",
		.about = "a PSB+ every 80 to 200 bytes; like parts of guest-two-vmcs.pt",
		.psb = { 65, 120 }, .branches = { 0, 12 }, .tip = 22, .guest = true, .pads = true,
		.off = 50, .target = 75, .pip = 100,
	},
	[SHAPE_PTWRITE] = {
		.name = "ptwrite",
		.about = "a PTWRITE every few branches, half with a FUP; no real trace",
		.psb = { 16384, 16384 }, .branches = { 0, 4 }, .tip = 30, .ptw = 100,
		.mtc = { 0, 1 },
	},
	[SHAPE_SYSTEM_WIDE] = {
		.name = "system-wide",
		.about = "all that one processor runs: user space, kernel, interrupts, processes, "
			 "a VM; no real trace",
		.psb = { 16384, 16384 }, .branches = { 1, 30 }, .tip = 25, .mtc = { 0, 2 },
		.pip = 25, .interrupt = 30, .vm = 4,
	},
	[SHAPE_CYC] = {
		.name = "cyc",
		.about = "a CYC of 1 or 2 bytes before each TNT and TIP; no real trace",
		.psb = { 16384, 16384 }, .branches = { 1, 30 }, .tip = 25, .cyc = 5, .cyc_2 = 25,
		.mtc = { 0, 1 }, .mtc_cyc = 100,
	},
	[SHAPE_PAUSES] = {
		.name = "pauses",
		.about = "TIP.PGD, 20 to 400 MTC or CYC and MTC, TIP.PGE; like the end of "
			 "host-loopy.perf.data",
		.psb = { 16384, 16384 }, .branches = { 0, 8 }, .tip = 25, .off = 100,
		.mtc = { 20, 400 }, .mtc_cyc = 50,
	},
	[SHAPE_TIGHT] = {
		.name = "tight",
		.about = "TIP.PGE, few branches, TIP.PGD; like parts of guest-unzip.pt without PAD",
		.psb = { 4096, 4096 }, .branches = { 0, 4 }, .tip = 30, .guest = true, .off = 100,
		.target = 99,
	},
	[SHAPE_CYC_3] = {
		.name = "cyc-3",
		.about = "a CYC of 3 bytes before each TNT and TIP; no real trace",
		.psb = { 16384, 16384 }, .branches = { 1, 30 }, .tip = 25, .cyc = 19,
	},
	[SHAPE_RESTARTS] = {
		.name = "restarts",
		.about = "TIP.PGD, CBR, MODE.Exec, TIP.PGE as kAFL stops and starts a guest's "
			 "trace; no real trace",
		.psb = { 65536, 65536 }, .branches = { 0, 11 }, .tip = 40, .guest = true,
		.off = 100, .restart = 100, .target = 100,
	},
};

const char *shape_name(enum shape shape)
{
	return shapes[shape].name;
}

const char *shape_about(enum shape shape)
{
	return shapes[shape].about;
}

static unsigned int between(struct synth *s, const unsigned int range[2])
{
	return range[0] + below(s, range[1] - range[0] + 1);
}

static void put_pads(struct synth *s, const struct row *row, unsigned int n)
{
	while (row->pads && n--)
		put_kind(s, VMPT_PT_PAD);
}

/* Near the last IP, else in the program or in a library. */
static u64 target(struct synth *s)
{
	u64 r = draw(s);

	if (chance(s, 57))
		return (s->last_ip & ~0xffffULL) | (r & 0xffff);
	return (s->last_ip >> 32 ? s->last_ip & ~0xffffffffULL : PROGRAM) | (r & 0x1ffffff);
}

static void put_pip(struct synth *s)
{
	put_values(s, VMPT_PT_PIP, CR3 + (s->process << 13), s->now, 0);
}

static void put_vmcs(struct synth *s)
{
	put_values(s, VMPT_PT_VMCS, VMCS, 0, 0);
}

/* The crystal clock ticks every 512 ticks of the TSC. */
static void put_time(struct synth *s)
{
	s->tsc += 1000 + below(s, 5000);
	put_values(s, VMPT_PT_TSC, s->tsc & vmpt_mask64(56), 0, 0);
	put_values(s, VMPT_PT_TMA, (s->tsc >> 9) & 0xffff, s->tsc & 0x1ff, 0);
}

/* In silicon's order; FUP and MODE.Exec only while it traces. */
static void psb_plus(struct synth *s, const struct row *row, bool on)
{
	u64 ip = s->last_ip;

	s->psb_at = s->at;
	put_kind(s, VMPT_PT_PSB);
	s->last_ip = 0;
	if (!row->guest)
		put_time(s);
	put_kind(s, VMPT_PT_MODE_TSX);
	if (on) {
		put_values(s, VMPT_PT_MODE_EXEC, 1, 0, 0);
		put_ip(s, VMPT_PT_FUP, ip);
	}
	if (row->guest || row->pip) {
		put_pads(s, row, on ? 8 : 4);
		put_pip(s);
	}
	if (row->guest || row->vm) {
		put_pads(s, row, 8);
		put_vmcs(s);
		put_pads(s, row, 3);
	}
	put_values(s, VMPT_PT_CBR, s->ratio, 0, 0);
	put_kind(s, VMPT_PT_PSBEND);
	put_pads(s, row, on ? 1 : 8);
}

static void branches(struct synth *s, const struct row *row)
{
	unsigned int n = between(s, row->branches);

	while (n--) {
		if (row->cyc)
			put_cycles(s, chance(s, row->cyc_2) ? 7 : row->cyc);
		if (chance(s, row->tip))
			put_ip(s, VMPT_PT_TIP, target(s));
		else
			put_tnt(s, VMPT_PT_TNT_8, chance(s, 85) ? 6 : 1 + below(s, 5));
		put_pads(s, row, chance(s, 50));
	}
}

static void ptwrite(struct synth *s)
{
	bool wide = chance(s, 50), with_ip = chance(s, 50);

	put_values(s, VMPT_PT_PTW, wide, with_ip, draw(s) & vmpt_mask64(wide ? 64 : 32));
	if (with_ip)
		put_ip(s, VMPT_PT_FUP, target(s));
}

/* Into the kernel and back. */
static void interrupt(struct synth *s, const struct row *row)
{
	u64 from = target(s);

	put_ip(s, VMPT_PT_FUP, from);
	put_ip(s, VMPT_PT_TIP, KERNEL + (draw(s) & 0xffffff));
	branches(s, row);
	put_ip(s, VMPT_PT_TIP, from);
}

/* A VM entry or exit; the VMCS is in PSB+. */
static void vm_switch(struct synth *s)
{
	if (s->now)
		put_ip(s, VMPT_PT_FUP, target(s));
	s->now = !s->now;
	put_values(s, VMPT_PT_MODE_EXEC, 1, 0, 0);
	put_pip(s);
	put_ip(s, VMPT_PT_TIP, s->now ? target(s) : KERNEL + (draw(s) & 0xffffff));
}

/* An MTC every 4096 ticks; a long run is cut where the processor slept and the time is sent anew.
 */
static void wall_clock(struct synth *s, const struct row *row)
{
	unsigned int n = between(s, row->mtc);
	bool cyc = chance(s, row->mtc_cyc);

	while (n--) {
		if (cyc)
			put_cycles(s, row->cyc ? row->cyc : 12);
		s->tsc = (s->tsc | 4095) + 1;
		put_values(s, VMPT_PT_MTC, (s->tsc >> 12) & 0xff, 0, 0);
		if (row->mtc[0] && chance(s, 3)) {
			put_time(s);
			put_values(s, VMPT_PT_CBR, s->ratio, 0, 0);
		}
	}
}

static void stretch(struct synth *s, const struct row *row, bool *on)
{
	if (!*on) {
		put_pads(s, row, 4);
		if (chance(s, row->restart)) {
			put_values(s, VMPT_PT_CBR, s->ratio, 0, 0);
			put_values(s, VMPT_PT_MODE_EXEC, 1, 0, 0);
		}
		put_ip(s, VMPT_PT_TIP_PGE, PROGRAM + (draw(s) & 0x1ffffff));
		put_pads(s, row, 2);
		*on = true;
	}
	branches(s, row);
	if (chance(s, row->ptw))
		ptwrite(s);
	if (chance(s, row->interrupt))
		interrupt(s, row);
	if (chance(s, row->vm))
		vm_switch(s);
	if (chance(s, row->pip)) {
		s->process = below(s, 8);
		put_pads(s, row, 8);
		put_pip(s);
	}
	if (chance(s, row->off)) {
		if (chance(s, row->target))
			put_ip(s, VMPT_PT_TIP_PGD, LIBRARY + (draw(s) & 0x1ffffff));
		else
			put_kind(s, VMPT_PT_TIP_PGD); /* IPBytes 000b */
		put_pads(s, row, 2);
		*on = false;
	}
	wall_clock(s, row);
}

int shape_generate(u8 *buf, size_t size, enum shape shape, u64 seed, struct synth_counts *counts)
{
	const struct row *row = &shapes[shape];
	struct synth s = {
		.out = buf,
		.size = size,
		.rng = seed * 2 + 1,
		.counts = counts,
		.last_ip = PROGRAM,
		.tsc = 0x1234567890ULL,
		.ratio = 24, /* cycles are ticks: the TSC's ratio in contests.c */
		.now = row->guest,
	};
	unsigned int psb = 0;
	bool on = !row->off;

	if (size < SHAPE_SIZE_MIN)
		return -VMPT_E_SPACE;
	memset(counts, 0, sizeof(*counts));
	while (!s.err && s.size - s.at >= SHAPE_SIZE_MIN) {
		if (!s.at || s.at - s.psb_at >= psb) {
			psb_plus(&s, row, on);
			psb = between(&s, row->psb);
		}
		stretch(&s, row, &on);
	}
	while (!s.err && s.at < s.size)
		put_kind(&s, VMPT_PT_PAD);
	return s.err;
}
