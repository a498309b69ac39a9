// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The synthetic trace: a loop that draws events by weight and writes each one's packets in the
 * order of the manual's examples (SDM 3 33.7). synth.h describes and explains the mix.
 */
#include "bench/synth-put.h"

#define BASES  4
#define WORLDS 4
#define HOST   0

/* One of the four that run; their facts are in worlds[]. */
struct world {
	u64 base[BASES]; /* program, library, kernel, module */
	u64 cr3, vmcs;
	u8 cs_l, cs_d;
};

static const struct world worlds[WORLDS] = {
	{ { 0x55d04c2b1000, 0x7f3a91c00000, 0xffffffff81000000, 0xffffffffc0400000 },
	  0x10a2c4000,
	  0,
	  1,
	  0 },
	{ { 0x000000400000, 0x7fd2b8e00000, 0xffffffff9a000000, 0xffffffffc0180000 },
	  0x01628b000,
	  0x48d020000,
	  1,
	  0 },
	{ { 0x00a4555500400000, 0x00a47f77c2200000, 0xff11000081000000, 0xff110000c0180000 },
	  0x1048c91000,
	  0x3b56ee000,
	  1,
	  0 },
	{ { 0x08048000, 0xb7400000, 0xc1000000, 0xf8000000 }, 0x000feffc000, 0x2ac5b9000, 0, 1 },
};

/* A packet of a kind that libipt does not know: left out of its stream. */
static void put_event(struct synth *s, enum vmpt_pt_kind kind, u64 a, u64 b, u64 c)
{
	if (!s->libipt_kinds)
		put_values(s, kind, a, b, c);
}

/* ---- parts of events ---- */

/* Where the code continues: mostly nearby, seldom in another module. */
static u64 target(struct synth *s)
{
	const struct world *w = &worlds[s->now];
	unsigned int luck = below(s, 100);
	u64 r = draw(s);

	if (luck < 45)
		return (s->last_ip & ~0xffffULL) | (r & 0xffff);
	if (luck < 80)
		return w->base[(s->last_ip >> 20) & 1] + (r & 0x1fffff);
	return w->base[below(s, BASES)] + (r & 0x3fffff);
}

static u64 kernel_target(struct synth *s)
{
	return worlds[s->now].base[2] + (draw(s) & 0xffffff);
}

static u64 cr3_now(const struct synth *s)
{
	return worlds[s->now].cr3 + ((u64)s->process << 13);
}

static void put_pip(struct synth *s)
{
	put_values(s, VMPT_PT_PIP, cr3_now(s), s->now != HOST, 0);
}

static void put_vmcs(struct synth *s)
{
	put_values(s, VMPT_PT_VMCS, worlds[s->guest].vmcs, 0, 0);
}

static void put_mode(struct synth *s, bool interrupts)
{
	put_values(s, VMPT_PT_MODE_EXEC, worlds[s->now].cs_l, worlds[s->now].cs_d, interrupts);
}

/* 1 to 4 bytes: 5, 12, 19 or 26 bits. */
static void put_cyc(struct synth *s)
{
	unsigned int luck = below(s, 100);

	put_cycles(s, luck < 60 ? 5 : luck < 88 ? 12 : luck < 97 ? 19 : 26);
}

static void put_time(struct synth *s)
{
	s->tsc += 1000 + below(s, 5000);
	put_values(s, VMPT_PT_TSC, s->tsc & vmpt_mask64(56), 0, 0);
	put_values(s, VMPT_PT_TMA, (s->tsc >> 7) & 0xffff, s->tsc & 0x1ff, 0);
}

/* ---- events ---- */

/* Conditional branches, then perhaps an indirect one: the bulk of any trace. */
static void branches(struct synth *s)
{
	unsigned int n = 1 + below(s, 3);

	if (chance(s, 30))
		n += below(s, 7);
	if (chance(s, 35))
		put_cyc(s);
	while (n--) {
		put_tnt(s, VMPT_PT_TNT_8, chance(s, 85) ? 6 : 1 + below(s, 5));
		if (chance(s, 3))
			put_cyc(s);
	}
	if (chance(s, 4))
		put_tnt(s, VMPT_PT_TNT_64, chance(s, 90) ? 47 : 1 + below(s, 47));
	if (!chance(s, 75))
		return;
	if (chance(s, 30))
		put_cyc(s);
	put_ip(s, VMPT_PT_TIP, target(s));
}

static void padding(struct synth *s)
{
	unsigned int n = 1 + below(s, 7);

	while (n--)
		put_kind(s, VMPT_PT_PAD);
}

static void wall_clock(struct synth *s)
{
	s->tsc += 4096;
	put_values(s, VMPT_PT_MTC, (s->tsc >> 12) & 0xff, 0, 0);
}

/* An interrupt or a page fault, and the IRET from it (Table 33-57). */
static void interrupt(struct synth *s)
{
	bool fault = chance(s, 30);
	u64 from = target(s);

	if (fault)
		put_event(s, VMPT_PT_EVD, VMPT_EVD_PFA, from ^ 0x5a5a5a58, 0);
	put_event(s, VMPT_PT_CFE, 1, VMPT_CFE_INTR, fault ? 14 : 0x20 + below(s, 0xd0));
	put_ip(s, VMPT_PT_FUP, from);
	if (chance(s, 20))
		put_mode(s, false);
	put_ip(s, VMPT_PT_TIP, kernel_target(s));
	branches(s);
	put_event(s, VMPT_PT_CFE, 1, VMPT_CFE_IRET, 0);
	if (!s->libipt_kinds)
		put_ip(s, VMPT_PT_FUP, kernel_target(s));
	if (chance(s, 20))
		put_mode(s, true);
	put_ip(s, VMPT_PT_TIP, from);
}

/* Out of a traced region of an IP filter and back, sometimes through TraceStop. */
static void filter(struct synth *s)
{
	if (chance(s, 4)) {
		put_ip(s, VMPT_PT_FUP, target(s));
		put_kind(s, VMPT_PT_TIP_PGD); /* IPBytes 000b: the target is not sent */
	} else {
		put_ip(s, VMPT_PT_TIP_PGD, target(s));
	}
	if (chance(s, 15)) {
		put_kind(s, VMPT_PT_TRACESTOP);
		padding(s);
	} else if (chance(s, 30)) {
		wall_clock(s);
	}
	if (chance(s, 20)) {
		put_mode(s, true);
		put_pip(s);
	}
	put_ip(s, VMPT_PT_TIP_PGE, target(s));
}

/* MOV CR3 to another process: only a PIP. */
static void cr3_write(struct synth *s)
{
	s->process = below(s, 8);
	put_pip(s);
}

/* XBEGIN, XEND or an abort (Table 33-27). */
static void transaction(struct synth *s)
{
	unsigned int what = below(s, 3);

	put_values(s, VMPT_PT_MODE_TSX, what == 0, what == 2, 0);
	put_ip(s, VMPT_PT_FUP, target(s));
	if (what == 2)
		put_ip(s, VMPT_PT_TIP, target(s));
}

static void ptwrite(struct synth *s)
{
	bool wide = chance(s, 50), with_ip = chance(s, 50);

	put_values(s, VMPT_PT_PTW, wide, with_ip, draw(s) & vmpt_mask64(wide ? 64 : 32));
	if (with_ip)
		put_ip(s, VMPT_PT_FUP, target(s));
}

/* A PEBS record through PT: registers, what was sampled, perhaps LBRs (33.4.2.26). */
static void sample(struct synth *s)
{
	bool narrow = chance(s, 20);
	unsigned int i, n;
	u64 mask = vmpt_mask64(narrow ? 32 : 64);

	if (s->libipt_kinds)
		return;
	put_values(s, VMPT_PT_BBP, narrow, 0x04, 0); /* PEBS Basic */
	for (i = 0; i < 3; i++)
		put_values(s, VMPT_PT_BIP, i, draw(s) & mask, 0);
	if (chance(s, 50))
		put_cyc(s);
	put_values(s, VMPT_PT_BBP, narrow, 0x01, 0); /* registers */
	n = chance(s, 50) ? 18 : 2 + below(s, 8);
	for (i = 0; i < n; i++)
		put_values(s, VMPT_PT_BIP, i, draw(s) & mask, 0);
	n = chance(s, 50);
	put_values(s, VMPT_PT_BEP, n, 0, 0);
	if (n)
		put_ip(s, VMPT_PT_FUP, target(s));
}

/* MWAIT in the host: sleep, wake, a new frequency (Table 33-55). */
static void idle(struct synth *s)
{
	if (s->now != HOST)
		return;
	put_values(s, VMPT_PT_MWAIT, 0x20, 1, 0);
	put_values(s, VMPT_PT_PWRE, 0, 2, 0);
	put_values(s, VMPT_PT_EXSTOP, 1, 0, 0);
	put_ip(s, VMPT_PT_FUP, kernel_target(s));
	put_values(s, VMPT_PT_PWRX, 2, 2, 1);
	s->ratio = (u8)(8 + below(s, 40));
	put_time(s);
	put_values(s, VMPT_PT_CBR, s->ratio, 0, 0);
}

static void frequency(struct synth *s)
{
	s->ratio = (u8)(8 + below(s, 40));
	put_values(s, VMPT_PT_CBR, s->ratio, 0, 0);
	if (chance(s, 20)) {
		put_values(s, VMPT_PT_EXSTOP, 0, 0, 0);
		put_time(s);
	}
}

static void maintenance(struct synth *s)
{
	put_values(s, VMPT_PT_MNT, draw(s), 0, 0);
}

/* A trigger fired: at the FUP, or some instructions after the last IP. */
static void trigger(struct synth *s)
{
	bool counted = chance(s, 50), with_ip = chance(s, 50);
	u64 icnt = draw(s) & (counted ? 0xffff : 0);

	if (s->libipt_kinds)
		return;
	put(s, (struct vmpt_pt_packet){ .kind = VMPT_PT_TRIG,
					.trig = { with_ip, counted, 0, 1 << below(s, 4), icnt } });
	if (with_ip)
		put_ip(s, VMPT_PT_FUP, target(s));
}

/* Packets were lost; PacketEn is 1 again: OVF, then a FUP with a full IP (33.3.8). */
static void overflow(struct synth *s)
{
	u64 ip = target(s);
	unsigned int ipbytes = vmpt_pt_ip_full(ip);

	put_kind(s, VMPT_PT_OVF);
	put_values(s, VMPT_PT_FUP, ipbytes, vmpt_pt_ip_payload(ip, ipbytes), 0);
	s->last_ip = ip;
	/* The owner is unknown from here on, up to a PSB+ or the next PIP. */
	if (chance(s, 50))
		put_pip(s);
}

/* A TIP whose target is out of context: a far jump to code that is not traced. */
static void blind_tip(struct synth *s)
{
	put_kind(s, VMPT_PT_TIP);
}

static void vm_entry(struct synth *s)
{
	if (chance(s, 40)) {
		s->guest = 1 + below(s, WORLDS - 1);
		put_vmcs(s); /* VMPTRLD */
		put_tnt(s, VMPT_PT_TNT_8, 4);
	}
	s->now = s->guest;
	s->process = below(s, 8);
	put_event(s, VMPT_PT_CFE, 0, VMPT_CFE_VMENTRY, 0);
	put_mode(s, true);
	put_pip(s);
	if (chance(s, 20))
		put_cyc(s);
	put_ip(s, VMPT_PT_TIP, target(s));
	s->counts->entries++;
}

static void vm_exit(struct synth *s)
{
	u64 from = target(s);

	if (chance(s, 50)) {
		put_event(s, VMPT_PT_EVD, VMPT_EVD_VMXQ, draw(s) & 0xfff, 0);
		put_event(s, VMPT_PT_EVD, VMPT_EVD_VMXR, below(s, 64), 0);
	}
	put_event(s, VMPT_PT_CFE, 1, VMPT_CFE_VMEXIT, 0);
	put_ip(s, VMPT_PT_FUP, from);
	s->now = HOST;
	s->process = 0;
	put_mode(s, false);
	put_pip(s);
	put_ip(s, VMPT_PT_TIP, kernel_target(s));
	s->counts->exits++;
}

static void vm_switch(struct synth *s)
{
	if (s->now == HOST)
		vm_entry(s);
	else
		vm_exit(s);
}

static void psb_plus(struct synth *s)
{
	u64 ip = s->last_ip;

	s->psb_at = s->at;
	put_kind(s, VMPT_PT_PSB);
	s->last_ip = 0;
	put_time(s);
	put_mode(s, true);
	put_kind(s, VMPT_PT_MODE_TSX);
	put_pip(s);
	put_vmcs(s);
	put_values(s, VMPT_PT_CBR, s->ratio, 0, 0);
	put_ip(s, VMPT_PT_FUP, ip);
	put_kind(s, VMPT_PT_PSBEND);
}

/* ---- the mix ---- */

static const struct {
	void (*write)(struct synth *);
	unsigned int weight;
} events[] = {
	{ branches, 7000 }, { padding, 620 },	{ wall_clock, 760 }, { interrupt, 60 },
	{ filter, 400 },    { vm_switch, 115 }, { cr3_write, 120 },  { transaction, 160 },
	{ ptwrite, 300 },   { sample, 70 },	{ idle, 80 },	     { frequency, 80 },
	{ overflow, 8 },    { blind_tip, 60 },	{ maintenance, 8 },  { trigger, 8 },
};

/* One event by weight; @sum is that of all weights. */
static void draw_event(struct synth *s, unsigned int sum)
{
	unsigned int i, n = below(s, sum);

	for (i = 0; n >= events[i].weight; i++)
		n -= events[i].weight;
	events[i].write(s);
}

int synth_generate(u8 *buf, size_t size, const struct synth_options *options,
		   struct synth_counts *counts)
{
	struct synth s = {
		.out = buf,
		.size = size,
		.rng = options->seed * 2 + 1,
		.libipt_kinds = options->libipt_kinds,
		.counts = counts,
		.last_ip = worlds[HOST].base[2],
		.tsc = 0x1234567890ULL,
		.ratio = 38,
		.now = HOST,
		.guest = 1,
	};
	unsigned int i, sum = 0;

	if (size < SYNTH_EVENT_MAX)
		return -VMPT_E_SPACE;
	memset(counts, 0, sizeof(*counts));
	for (i = 0; i < VMPT_ARRAY_SIZE(events); i++)
		sum += events[i].weight;
	psb_plus(&s);
	while (!s.err && s.size - s.at >= SYNTH_EVENT_MAX) {
		if (s.at - s.psb_at >= SYNTH_PSB_DISTANCE)
			psb_plus(&s);
		else
			draw_event(&s, sum);
	}
	while (!s.err && s.at < s.size)
		put_kind(&s, VMPT_PT_PAD);
	return s.err;
}
