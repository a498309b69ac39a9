// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Packets of a guest's RTIT trace that a VMM makes or changes: the PIP and STS of a CR3 or CR0.PG
 * that it wrote (4.2.10), the STS of a sleep that it emulated (4.2.13), and the clocks in STS and
 * MTC (4.2.12, 4.2.13).
 */
#include "vmm-lib/rtit/internal.h"

/* ---- missing packets ---- */

/* TNT with its cycle count, PIP, STS, and a PSB after each. */
#define EMIT_MAX 64

struct emit {
	struct vmpt_rtit_regs regs;
	u8 buf[EMIT_MAX];
	u32 len;
};

static void append(struct emit *e, struct vmpt_rtit_packet *pkt)
{
	int size = vmpt_rtit_encode(pkt, e->buf + e->len, sizeof(e->buf) - e->len);

	if (size > 0)
		e->len += (u32)size;
}

/* Pkt_Cnt, and the PSB when the bit that Pkt_Mask selects changes to 1 (3.3.9). */
static void count(struct emit *e, u32 n)
{
	struct vmpt_rtit_packet psb = { .kind = VMPT_RTIT_PSB };
	u64 bytes = (e->regs.pkt_cnt & VMPT_RTIT_PKT_CNT_MASK) + n;
	u64 mask = e->regs.pkt_cnt & ~VMPT_RTIT_PKT_CNT_MASK;

	if (bytes & vmpt_rtit_psb_period(&e->regs)) {
		append(e, &psb);
		bytes = VMPT_RTIT_PSB_SIZE;
		e->regs.last_lip = 0;
		e->regs.last_call_nlip = 0;
	}
	e->regs.pkt_cnt = mask | (bytes & VMPT_RTIT_PKT_CNT_MASK);
}

/* @cycled: a packet that has a cycle count in cycle accurate mode: the first one gets CNTP. */
static void emit(struct emit *e, struct vmpt_rtit_packet *pkt, bool cycled)
{
	u32 at = e->len;

	if (cycled && e->regs.ctl & VMPT_RTIT_CTL_CYCLE_ACC) {
		pkt->flags = VMPT_RTIT_CYCLES;
		pkt->cycles = (u32)(e->regs.cntp & VMPT_RTIT_CNTP_MASK);
		e->regs.cntp = 0;
	}
	append(e, pkt);
	count(e, e->len - at);
}

static void emit_tnt(struct emit *e)
{
	struct vmpt_rtit_packet pkt = { .kind = VMPT_RTIT_TNT };
	u64 buff = e->regs.tnt_buff & 0x7f, top;

	if (buff <= 1)
		return;
	top = 63 - (u64)__builtin_clzll(buff);
	pkt.tnt.count = top;
	pkt.tnt.bits = buff & vmpt_mask64((unsigned int)top);
	e->regs.tnt_buff = VMPT_RTIT_RESET_TNT_BUFF;
	emit(e, &pkt, top == VMPT_RTIT_TNT_FULL);
}

static void emit_pip(struct emit *e, const struct vmpt_rtit_cr_write *w)
{
	struct vmpt_rtit_packet pkt = {
		.kind = VMPT_RTIT_PIP,
		.pip = { .pg = w->new_paging, .cr3 = w->new_cr3 & vmpt_mask64(40) },
	};

	emit_tnt(e);
	emit(e, &pkt, true);
}

static void emit_sts(struct emit *e, const struct vmpt_rtit_vcpu *vcpu)
{
	struct vmpt_rtit_packet pkt = { .kind = VMPT_RTIT_STS };
	u8 acbr = 0, ecbr = 0;
	u64 tsc = 0;

	vcpu->config.ops->clock(vcpu->config.opaque, &tsc, &acbr, &ecbr);
	if (vcpu->config.rewrite_clock)
		tsc += vcpu->tsc_offset + vcpu->core_offset;
	pkt.sts.acbr = acbr & 0x3f;
	pkt.sts.ecbr = ecbr & 0x3f;
	pkt.sts.tsc = tsc & vmpt_mask64(40);
	emit(e, &pkt, true);
}

/* MOV to a control register executes at CPL 0. */
static bool context_en(const struct vmpt_rtit_vcpu *vcpu, u64 cr3)
{
	return !vcpu->held && vmpt_rtit_context_en(&vcpu->regs, 0, cr3);
}

static bool pip_is_due(const struct vmpt_rtit_vcpu *vcpu, u64 cr3)
{
	return !(vcpu->regs.ctl & VMPT_RTIT_CTL_CR3_EN) && context_en(vcpu, cr3);
}

/* "if STS packets are sent out in the current mode" (Table 17) */
static bool sts_is_sent(const struct vmpt_rtit_vcpu *vcpu, bool in_context)
{
	const struct vmpt_rtit_regs *regs = &vcpu->regs;

	if (!vcpu->config.ops->clock || !(regs->ctl & VMPT_RTIT_CTL_STS_EN))
		return false;
	if (!(regs->ctl & VMPT_RTIT_CTL_LESS_PKTS))
		return true;
	return regs->status & VMPT_RTIT_STATUS_FILTER_EN && in_context;
}

/* ContextEn as after the write. */
static bool sts_is_due(const struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_cr_write *w)
{
	return w->was_mov_cr3 && vcpu->regs.ctl & VMPT_RTIT_CTL_STS_ON_CR3 &&
	       sts_is_sent(vcpu, context_en(vcpu, w->new_cr3));
}

/* The missing packets: those of @cr or (NULL) of a wakeup with the given ContextEn. */
struct missing {
	const struct vmpt_rtit_cr_write *cr;
	bool in_context;
};

static void emit_missing(struct emit *e, const struct vmpt_rtit_vcpu *vcpu, const struct missing *m)
{
	if (!m->cr && sts_is_sent(vcpu, m->in_context))
		emit_sts(e, vcpu);
	if (m->cr && pip_is_due(vcpu, m->cr->new_cr3))
		emit_pip(e, m->cr);
	if (m->cr && sts_is_due(vcpu, m->cr)) {
		/* Rows 40 and 44 of Table 19, if no PIP included it. */
		emit_tnt(e);
		emit_sts(e, vcpu);
	}
}

/* Write the registers that the packets changed to the processor. */
static int put_back(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_regs *old)
{
	static const u32 msrs[] = {
		VMPT_RTIT_MSR_OFFSET,	      VMPT_RTIT_MSR_CNTP,    VMPT_RTIT_MSR_LAST_LIP,
		VMPT_RTIT_MSR_LAST_CALL_NLIP, VMPT_RTIT_MSR_PKT_CNT, VMPT_RTIT_MSR_TNT_BUFF,
	};
	struct vmpt_rtit_regs was = *old;
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(msrs); i++) {
		u64 value = *vmpt_rtit_reg(&vcpu->regs, msrs[i]);

		/* With a bounce buffer the processor's OFFSET is its own. */
		if (!i && vcpu->path != VMPT_RTIT_PATH_DIRECT)
			continue;
		if (value != *vmpt_rtit_reg(&was, msrs[i]) &&
		    vmpt_rtit_hw_write(vcpu, msrs[i], value))
			return -VMPT_E_HARDWARE;
	}
	return 0;
}

/* All earlier output is in memory, and vcpu->regs is up to date. 1, 0 or an error. */
static int append_packets(struct vmpt_rtit_vcpu *vcpu, const struct missing *m)
{
	struct vmpt_rtit_position at = { .offset = vcpu->regs.offset };
	struct emit e = { .regs = vcpu->regs };
	int err;

	/* 4.2.5: no such packet is made. */
	if (vcpu->regs.status & VMPT_RTIT_STATUS_OVERFLOW)
		return 0;
	emit_missing(&e, vcpu, m);
	if (!e.len)
		return 0;
	err = vmpt_rtit_put(vcpu, &at, e.buf, e.len);
	if (err)
		return err;
	vcpu->regs = e.regs;
	vmpt_rtit_put_done(vcpu, &at);
	return 1;
}

static int append_loaded(struct vmpt_rtit_vcpu *vcpu, const struct missing *m)
{
	struct vmpt_rtit_regs old;
	int err, ret;

	err = vmpt_rtit_freeze(vcpu);
	if (err)
		return err;
	ret = vmpt_rtit_collect(vcpu);
	if (!ret)
		ret = vmpt_rtit_hw_fetch(vcpu);
	old = vcpu->regs;
	if (!ret)
		ret = append_packets(vcpu, m);
	if (ret > 0)
		err = put_back(vcpu, &old);
	if (vmpt_rtit_thaw(vcpu))
		err = -VMPT_E_HARDWARE;
	return err ? err : ret;
}

static int append_missing(struct vmpt_rtit_vcpu *vcpu, const struct missing *m)
{
	int err;

	if (vcpu->loaded && vcpu->path == VMPT_RTIT_PATH_PARKED) {
		vcpu->events |= VMPT_RTIT_EVENT_LOST;
		return 0;
	}
	if (!vcpu->loaded) {
		err = vmpt_rtit_copy_out(vcpu, true);
		return err ? err : append_packets(vcpu, m);
	}
	err = vmpt_rtit_hw_refresh(vcpu);
	if (err || !vmpt_rtit_trigger_en(&vcpu->regs))
		return err;
	return append_loaded(vcpu, m);
}

/*
 * Conditions that need no MSR of the processor are checked first: they rule out most of the guest's
 * writes and sleeps.
 */

int vmpt_rtit_vcpu_cr_write(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_cr_write *write)
{
	const struct vmpt_rtit_regs *regs = &vcpu->regs;
	struct missing m = { .cr = write };

	if (!vmpt_rtit_trigger_en(regs) ||
	    (!pip_is_due(vcpu, write->new_cr3) && !(regs->ctl & VMPT_RTIT_CTL_STS_ON_CR3)))
		return 0;
	return append_missing(vcpu, &m);
}

int vmpt_rtit_vcpu_wake(struct vmpt_rtit_vcpu *vcpu, bool context_en)
{
	const struct vmpt_rtit_regs *regs = &vcpu->regs;
	struct missing m = { .in_context = context_en && !vcpu->held };

	if (!vmpt_rtit_trigger_en(regs) || !vcpu->config.ops->clock ||
	    !(regs->ctl & VMPT_RTIT_CTL_STS_EN))
		return 0;
	return append_missing(vcpu, &m);
}

/* ---- clocks ---- */

#define STS_BITS 40

static void rewrite_sts(u8 *p, u64 offset)
{
	u64 tsc = vmpt_load32(p + 2) | (u64)p[6] << 32;
	unsigned int i;

	tsc += offset;
	for (i = 0; i < STS_BITS / 8; i++)
		p[2 + i] = (u8)(tsc >> 8 * i);
}

static void rewrite_mtc(u8 *p, u64 offset)
{
	unsigned int range = p[0] & 3;

	if (vmpt_rtit_mtc_fits(offset, range))
		p[1] = (u8)(p[1] + (offset >> (7 + 2 * range)));
}

/* The first PSB, or the possible head of one. */
static size_t find_psb(const u8 *buf, size_t len)
{
	unsigned int n;
	size_t i;

	for (i = 0; i < len; i++) {
		n = 0;
		while (n < VMPT_RTIT_PSB_SIZE && i + n < len && vmpt_rtit_is_psb(n, buf[i + n]))
			n++;
		if (n == VMPT_RTIT_PSB_SIZE || i + n == len)
			break;
	}
	return i;
}

static void overwrite(struct vmpt_rtit_rewrite *state, u8 *p, size_t n)
{
	memset(p, VMPT_RTIT_LOST_MARK, n);
	state->bytes += n;
}

size_t vmpt_rtit_clock_rewrite(struct vmpt_rtit_rewrite *state, u8 *buf, size_t len, bool cycle_acc,
			       u64 offset)
{
	struct vmpt_rtit_packet pkt;
	size_t at = 0, n;
	int err;

	while (at < len) {
		if (state->lost) {
			n = find_psb(buf + at, len - at);
			overwrite(state, buf + at, n);
			at += n;
			if (len - at < VMPT_RTIT_PSB_SIZE)
				return at;
			state->lost = false;
		}
		err = vmpt_rtit_decode(&pkt, buf + at, len - at, cycle_acc);
		if (err == -VMPT_E_TRUNCATED)
			return at;
		if (err) {
			state->lost = true;
			overwrite(state, buf + at++, 1);
			continue;
		}
		if (pkt.kind == VMPT_RTIT_STS)
			rewrite_sts(buf + at, offset);
		else if (pkt.kind == VMPT_RTIT_MTC)
			rewrite_mtc(buf + at, offset);
		at += pkt.size;
	}
	return at;
}
