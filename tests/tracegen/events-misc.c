// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Events other than control flow: time, tracing switched on and off, filters, TSX
 * (Table 33-10), PTWRITE and power (the tables 33-57 and 33-58), blocks.
 */
#include "tests/tracegen/internal.h"

/* So that a typo does not fill the memory with MTCs. */
#define TICKS_MAX (1ULL << 32)

static void psb(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	(void)n;
	tg_settle(g, p);
	if (tg_trigger_en(p))
		tg_psb_plus(g, p, tg_packet_en(g, p));
	else
		p->psb_pending = true;
}

static void tsc(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	(void)n;
	tg_emit1(g, p, VMPT_PT_TSC, tg_clock(p, p->cur) & vmpt_mask64(56));
	if (g->set.mtc)
		tg_emit2(g, p, VMPT_PT_TMA, p->now / g->set.tsc_ratio & 0xffff,
			 p->now % g->set.tsc_ratio);
}

static void mtc(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	(void)n;
	tg_emit1(g, p, VMPT_PT_MTC, p->now / g->set.tsc_ratio >> g->set.mtc_freq & 0xff);
}

static void cyc(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	u64 cycles = tg_next_number(g, n, 1);

	if (cycles > TICKS_MAX) {
		tg_fail(g, "at most 2^32 ticks at once");
		return;
	}
	tg_advance(g, p, cycles);
	tg_emit1(g, p, VMPT_PT_CYC, cycles);
}

static void cbr(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	p->cbr = tg_next_number(g, n, p->cbr);
	tg_emit1(g, p, VMPT_PT_CBR, p->cbr);
}

static void advance(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	u64 ticks = tg_next_number(g, n, 0);

	if (ticks > TICKS_MAX)
		tg_fail(g, "at most 2^32 ticks at once");
	else
		tg_advance(g, p, ticks);
}

/* Bring all CPUs' clocks to the latest one. */
static void sync_clocks(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	u64 now = p->now;
	size_t i;

	(void)n;
	for (i = 0; i < TRACEGEN_CPUS; i++)
		if (g->cpu[i] && g->cpu[i]->now > now)
			now = g->cpu[i]->now;
	for (i = 0; i < TRACEGEN_CPUS; i++)
		if (g->cpu[i])
			tg_advance(g, g->cpu[i], now - g->cpu[i]->now);
}

static void pad(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	u64 count = tg_next_number(g, n, 1);

	for (; count && !g->failed; count--)
		tg_emit0(g, p, VMPT_PT_PAD);
}

static void mnt(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	tg_emit1(g, p, VMPT_PT_MNT, tg_next_number(g, n, 0));
}

/* ---- enables ---- */

/* WRMSR that sets or clears TraceEn (Table 33-56 cases 1 to 3). */
static void trace(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	bool on = tg_word(n, "on"), off = tg_word(n, "off");
	struct tg_insn i;

	if (on == off) {
		tg_fail(g, "trace is on or off");
		return;
	}
	if (on == tg_trigger_en(p)) {
		if (p->started || on)
			tg_fail(g, "trace is %s already", on ? "on" : "off");
		return;
	}
	i = tg_fetch(g, p, TG_WRMSR);
	if (off) {
		/* The FUP binds before the WRMSR: a decoder does not see it executed. */
		if (tg_packet_en(g, p)) {
			tg_emit_ip(g, p, VMPT_PT_FUP, i.ip);
			tg_emit_no_ip(g, p, VMPT_PT_TIP_PGD);
		}
		tg_tnt_flush(g, p);
		tg_forget_calls(p);
		p->trace_en = false;
	}
	p->cur->ip = i.ip + i.len;
	if (on) {
		p->stopped = false;
		tg_trace_enable(g, p, false);
	}
}

/* A direct jump out of the traced range, and into it. */
static void ip_filter(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	bool leave = tg_word(n, "leave"), back = tg_word(n, "return");
	struct tg_insn i;

	if (leave == back || leave != p->filter_en) {
		tg_fail(g, leave == back ? "ip-filter is leave or return"
			   : leave	 ? "the IP is outside the filter's range"
					 : "the IP is inside the filter's range");
		return;
	}
	i = tg_fetch(g, p, TG_JMP);
	tg_retire(g, p, &i, i.target);
	if (leave) {
		if (tg_packet_en(g, p)) {
			tg_emit_ip(g, p, VMPT_PT_TIP_PGD, i.target);
			tg_forget_calls(p);
		}
		p->filter_en = false;
		return;
	}
	p->filter_en = true;
	if (!tg_packet_en(g, p))
		return;
	if (tg_mode_changed(g, p))
		tg_mode_exec(g, p);
	tg_emit_ip(g, p, VMPT_PT_TIP_PGE, i.target);
}

/*
 * A branch into a TraceStop range (33.2.5.3). It is a far one: a TIP.PGD without IP
 * binds to the next branch that would have made a packet, for libipt a far one.
 */
static void tracestop(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	struct tg_insn i = tg_fetch(g, p, TG_FAR);

	(void)n;
	tg_retire(g, p, &i, tg_target(g, p->cur, i.ip, 0, p->cur->mode));
	if (tg_packet_en(g, p)) {
		tg_emit_no_ip(g, p, VMPT_PT_TIP_PGD);
		tg_forget_calls(p);
	}
	if (tg_cpu_context_en(g, p))
		tg_emit0(g, p, VMPT_PT_TRACESTOP);
	p->stopped = true;
}

/* STI and CLI (Table 33-59 case 22). */
static void set_if(struct tracegen *g, struct tg_cpu *p, bool on)
{
	u64 ip = tg_execute(g, p, on ? TG_STI : TG_CLI);

	if (p->cur->rflags_if == on)
		return;
	p->cur->rflags_if = on;
	if (!g->set.event_en || !tg_cpu_context_en(g, p) || !p->filter_en)
		return;
	tg_mode_exec(g, p);
	tg_emit_ip(g, p, VMPT_PT_FUP, ip);
}

static void sti(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	(void)n;
	set_if(g, p, true);
}

static void cli(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	(void)n;
	set_if(g, p, false);
}

/* ---- TSX ---- */

static void tsx_packets(struct tracegen *g, struct tg_cpu *p, bool aborted, u64 ip)
{
	if (!g->set.branch_en || !tg_cpu_context_en(g, p))
		return;
	tg_emit2(g, p, VMPT_PT_MODE_TSX, p->cur->intx, aborted);
	if (tg_packet_en(g, p))
		tg_emit_ip(g, p, VMPT_PT_FUP, ip);
}

static void tsx(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	bool begin = tg_word(n, "begin"), end = tg_word(n, "end"), abort = tg_word(n, "abort");
	struct tg_ctx *c = p->cur;
	struct tg_insn i;

	if (begin + end + abort != 1 || begin == c->intx) {
		tg_fail(g, c->intx ? "in a transaction: tsx end or abort"
				   : "no transaction is open: tsx begin");
		return;
	}
	i = tg_fetch(g, p, begin ? TG_XBEGIN : end ? TG_XEND : TG_XABORT);
	c->intx = begin;
	tsx_packets(g, p, abort, i.ip);
	if (begin)
		c->tx_fallback = i.target;
	if (!abort) {
		tg_retire(g, p, &i, i.ip + i.len);
		return;
	}
	/* The abort comes before the instruction. */
	c->ip = c->tx_fallback;
	if (tg_packet_en(g, p))
		tg_emit_ip(g, p, VMPT_PT_TIP, c->ip);
}

/* ---- PTWRITE, power, blocks ---- */

static void ptwrite(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	bool with_ip = tg_word(n, "ip") || g->set.fuponptw, wide = !tg_word(n, "32");
	u64 v = tg_next_number(g, n, 0x1234);
	u64 ip = tg_execute(g, p, wide ? TG_PTWRITE8 : TG_PTWRITE4);
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_PTW };

	if (!tg_cpu_context_en(g, p) || !p->filter_en)
		return;
	pkt.ptw.payload_bytes = wide;
	pkt.ptw.ip = with_ip;
	pkt.ptw.payload = wide ? v : v & 0xffffffff;
	tg_emit(g, p, &pkt);
	if (with_ip)
		tg_emit_ip(g, p, VMPT_PT_FUP, ip);
}

/* trig [BITS] [COUNT] [mult] [ip]: at the next instruction, or COUNT after the last IP */
static void trig(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	bool with_ip = tg_word(n, "ip"), mult = tg_word(n, "mult");
	u64 bits = tg_next_number(g, n, 1), count = tg_next_number(g, n, ~0ULL);
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_TRIG };

	if (!tg_cpu_context_en(g, p) || !p->filter_en)
		return;
	pkt.trig.ip = with_ip;
	pkt.trig.mult = mult;
	pkt.trig.icntv = count != ~0ULL;
	pkt.trig.trbv = bits;
	pkt.trig.icnt = pkt.trig.icntv ? count : 0;
	tg_emit(g, p, &pkt);
	if (with_ip)
		tg_emit_ip(g, p, VMPT_PT_FUP, p->cur->ip);
}

static void exstop(struct tracegen *g, struct tg_cpu *p, u64 ip)
{
	bool context = tg_cpu_context_en(g, p);

	tg_emit1(g, p, VMPT_PT_EXSTOP, context);
	if (context)
		tg_emit_ip(g, p, VMPT_PT_FUP, ip);
}

static void mwait(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	u64 hints = tg_next_number(g, n, 0x20), ext = tg_next_number(g, n, 1);
	u64 ip = tg_execute(g, p, TG_MWAIT);

	if (tg_cpu_context_en(g, p))
		tg_emit2(g, p, VMPT_PT_MWAIT, hints, ext);
	tg_emit3(g, p, VMPT_PT_PWRE, 0, ((hints >> 4) + 1) & 0xf, hints & 0xf);
	exstop(g, p, ip);
}

/* Hardware duty cycling (case 6). */
static void hdc(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	(void)n;
	tg_settle(g, p);
	tg_emit3(g, p, VMPT_PT_PWRE, 1, 6, 0);
	exstop(g, p, p->cur->ip);
	tg_timing(g, p);
	tg_emit3(g, p, VMPT_PT_PWRX, 6, 6, 8);
}

static void wake(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	u64 state = tg_next_number(g, n, 3), reason = tg_next_number(g, n, 1);

	tg_timing(g, p);
	tg_emit3(g, p, VMPT_PT_PWRX, state, state, reason);
}

/* block TYPE [ITEMS] [4] [open]: 8-byte items unless 4; open has no BEP */
static void block(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	bool small = tg_word(n, "4-byte"), open = tg_word(n, "open");
	u64 type = tg_next_number(g, n, 4), items = tg_next_number(g, n, 2), i;
	bool context = tg_cpu_context_en(g, p);

	if (!tg_trigger_en(p) || p->overflow)
		return;
	if (items > 32)
		tg_fail(g, "a block has 32 items at most");
	tg_settle(g, p);
	tg_emit2(g, p, VMPT_PT_BBP, small, type);
	for (i = 0; i < items && !g->failed; i++)
		tg_emit2(g, p, VMPT_PT_BIP, i, 0x1000 + i);
	if (open)
		return;
	tg_emit1(g, p, VMPT_PT_BEP, context);
	if (context)
		tg_emit_ip(g, p, VMPT_PT_FUP, p->cur->ip);
}

bool tg_event_misc(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	static const struct tg_event table[] = {
		{ "psb", psb },
		{ "tsc", tsc },
		{ "mtc", mtc },
		{ "cyc", cyc },
		{ "cbr", cbr },
		{ "advance", advance },
		{ "sync", sync_clocks },
		{ "pad", pad },
		{ "mnt", mnt },
		{ "trace", trace },
		{ "ip-filter", ip_filter },
		{ "tracestop", tracestop },
		{ "sti", sti },
		{ "cli", cli },
		{ "tsx", tsx },
		{ "ptwrite", ptwrite },
		{ "trig", trig },
		{ "mwait", mwait },
		{ "wake", wake },
		{ "hdc", hdc },
		{ "block", block },
		{ NULL, NULL },
	};

	return tg_event_run(table, g, p, n);
}
