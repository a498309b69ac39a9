// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* See hostile.h. Expected values are taken from the manual, none of them from the model. */
#include "tests/model/rtit/hostile.h"

#define MSRS 16

/* 3.3: the bits that exist, those that a write may set without effect, those that must be 1 */
static const struct {
	u32 msr;
	u64 bits, ignored, ones;
} msrs[MSRS] = {
	{ 0x768, 0xff9f, 0, 0 },
	{ 0x769, 0x9, 0x6, 0 },
	{ 0x76b, 0x3fffff, 0, 0 },
	{ 0x76c, 0x3f, 0, 0 },
	{ 0x76e, 0x1ffffffff, 0, 0 },
	{ 0x76f, 0x1ffffffffffff, 0, 0 },
	{ 0x770, 0xfffffffc0, 0, 0 },
	{ 0x771, 0x3fffc0, 0, 0x3f },
	{ 0x772, 0x3fffff, 0, 0 },
	{ 0x777, 0xfffffffe0, 0, 0 },
	{ 0x77c, 0x33fff, 0, 0 },
	{ 0x77d, 0x7f, 0, 0 },
	{ 0x760, 0xffffffffffff, 0xffff000000000000, 0 },
	{ 0x761, 0xffffffffffff, 0xffff000000000000, 0 },
	{ 0x762, 0xffffffffffff, 0xffff000000000000, 0 },
	{ 0x763, 0xffffffffffff, 0xffff000000000000, 0 },
};

#define CTL	 0
#define STATUS	 1
#define EVENTS	 3
#define LAST_LIP 4
#define BASE	 6
#define MASK	 7
#define OFFSET	 8
#define CR3	 9
#define PKT_CNT	 10
#define TNT	 11
#define LIP	 12

#define ERRATUM(w, n) ((w)->config.options.errata >> (n)&1)
#define QUIET_IP      3 /* no range begins or ends here */

#define CALLS_MAX 100000 /* of the sink in one step */

struct walk {
	struct hostile *h;
	struct vmpt_rtit_unit unit;
	struct vmpt_rtit_unit_config config;
	struct vmpt_rtit_sink sink;
	struct vmpt_rtit_mode mode;
	bool refuse, ctl_read, cycle_acc;
	bool moving;   /* a WRMSR moves the output … */
	size_t before; /* … and this many bytes belong to the old place */
	u64 base, mask, offset;
	u64 bytes;	  /* that the sink took */
	u32 calls, takes; /* takes: before it refuses */
	u64 pkt_cnt;	  /* as 3.3.9 counts, in 14 bits */
	bool last_lip;	  /* there is one to compress against */
	bool came;	  /* a packet came in this step */
	u8 stream[1 << 16];
	size_t used;
};

static void check(struct walk *w, bool ok, const char *what)
{
	if (!ok && !w->h->wrong)
		w->h->wrong = what;
}

/* 2.3, 3.3.10, Table 13 */
static int take(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	struct walk *w = opaque;
	size_t i;

	check(w, ++w->calls <= CALLS_MAX, "too many calls of the sink");
	if (w->refuse && !w->takes--) {
		w->takes = 0;
		return -VMPT_E_IO;
	}
	check(w, len && len <= VMPT_RTIT_UNIT_BUFFER, "a wrong length");
	for (i = 0; i < len; i++) {
		check(w,
		      (w->moving && !w->before) ||
			      pa + i == (w->base & ~w->mask) + (w->offset & w->mask),
		      "a wrong output address");
		if (w->moving && w->before)
			w->before--;
		w->offset = ((w->offset & w->mask) + 1) & w->mask;
		if (w->used < sizeof(w->stream))
			w->stream[w->used++] = bytes[i];
	}
	w->bytes += len;
	return 0;
}

/* ---- the packets ---- */

static void count(struct walk *w, const struct vmpt_rtit_packet *p)
{
	bool late = w->config.options.psb_clears_late || ERRATUM(w, 3);

	w->h->kinds[p->kind]++;
	w->came = true;
	w->pkt_cnt = p->kind == VMPT_RTIT_PSB ? VMPT_RTIT_PSB_SIZE : w->pkt_cnt + p->size;
	if (p->kind == VMPT_RTIT_PSB && !late)
		w->last_lip = false;
	if (!(vmpt_rtit_table[p->kind].classes & VMPT_RTIT_HAS_LIP))
		return;
	if (p->ip.cnt < 2 && !p->ip.zext)
		check(w, w->last_lip, "a LIP compressed against an invalid one");
	w->last_lip = p->kind != VMPT_RTIT_BUFF_OVF;
}

/* All bytes so far must be whole packets. */
static void decode(struct walk *w)
{
	struct vmpt_rtit_packet p;
	size_t at;

	if (vmpt_rtit_unit_drain(&w->unit)) {
		check(w, w->refuse, "a drain that fails");
		return;
	}
	check(w, !w->unit.used, "bytes pending after a drain");
	check(w, w->used < sizeof(w->stream), "a step without end");
	for (at = 0; at < w->used; at += p.size) {
		if (vmpt_rtit_decode(&p, w->stream + at, w->used - at, w->cycle_acc)) {
			check(w, false, "bytes that are not packets");
			break;
		}
		count(w, &p);
	}
	w->used = 0;
}

/* ---- MSRs ---- */

static u64 get(struct walk *w, unsigned int i)
{
	u64 value = 0;
	int ret = vmpt_rtit_unit_rdmsr(&w->unit, msrs[i].msr, &value);

	if (i == CTL)
		w->ctl_read = true;
	check(w, ret == (w->ctl_read ? 0 : VMPT_GP), "RDMSR");
	check(w, !(value & ~(msrs[i].bits | msrs[i].ignored | msrs[i].ones)), "a reserved bit");
	return value;
}

/* Few addresses, so that they recur, of every length. */
static u64 address(u64 value)
{
	static const u64 pools[] = { 0x1000,	     0x12340,	     0x400000,	    0x400100,
				     0x7fff12340000, 0xffffa0000000, 0xffffffff0000 };

	if ((value & 0xf) == 0xf)
		return value >> 8 & ~3ULL;
	return pools[value % VMPT_ARRAY_SIZE(pools)] + (value >> 8 & 0x3f) * 4;
}

/* Values to write more often than chance would: legal bits, an enable, a small buffer. */
static u64 wanted(unsigned int i, u8 how, u64 value)
{
	if ((how & 0xc0) == 0x80)
		return value;
	if (i == CTL && how & 0x40)
		value |= 0x210d; /* TraceActive, Dest, User, OS, Trace_En */
	if (i >= LIP)
		value = address(value);
	if (i == CR3 && how & 0x40)
		value = 0x1000;
	value = (value & (msrs[i].bits | msrs[i].ignored)) | msrs[i].ones;
	if (i == MASK && how & 0x40)
		value = 0x3f | 0xfff >> (value >> 6 & 7);
	return value;
}

static bool legal(struct walk *w, unsigned int i, u64 value)
{
	return w->ctl_read && !(value & ~(msrs[i].bits | msrs[i].ignored | msrs[i].ones)) &&
	       !(~value & msrs[i].ones) && !(i == TNT && !value);
}

/* The form of packets of the write itself is undefined: tracing ends before. */
static void change_cycle_acc(struct walk *w, u64 value)
{
	if (w->cycle_acc == (value >> 1 & 1))
		return;
	check(w, !vmpt_rtit_unit_wrmsr(&w->unit, msrs[CTL].msr, get(w, CTL) & ~0x2001ULL, QUIET_IP),
	      "a WRMSR that ends tracing");
	decode(w);
	w->cycle_acc = value >> 1 & 1;
}

/* The WRMSR's own packets may come before or after its effect: track the values that change. */
static void follow(struct walk *w, unsigned int i, u64 value)
{
	u64 now = get(w, i);

	switch (i) {
	case BASE:
	case MASK:
	case OFFSET:
		w->base = get(w, BASE);
		w->mask = get(w, MASK);
		w->offset = get(w, OFFSET);
		check(w, w->came || now == value, "an output register reads differently");
		break;
	case PKT_CNT:
		check(w, w->came || now == value, "PKT_CNT reads differently");
		w->pkt_cnt = now & 0x3fff;
		break;
	case LAST_LIP:
		check(w, w->came || now == value, "LAST_LIP reads differently");
		w->last_lip = (w->came && w->last_lip) || now >> 32;
		break;
	case CTL:
		check(w, (now | 0x2000) == (value | 0x2000), "CTL reads differently");
		break;
	case CR3:
	case EVENTS:
	case LIP ... LIP + 3:
		check(w, (now & msrs[i].bits) == (value & msrs[i].bits),
		      "a register reads differently");
	}
}

static void write_msr(struct walk *w, unsigned int i, u8 how, u64 value, u64 next_ip)
{
	bool ok;
	int ret;

	w->refuse = false;
	w->moving = i >= BASE && i <= OFFSET;
	w->before = w->unit.used;
	/* The unit itself drains when the output moves. */
	if (!w->moving)
		decode(w);
	w->came = w->moving && w->before;
	value = wanted(i, how, value);
	ok = legal(w, i, value);
	if (ok && i == CTL)
		change_cycle_acc(w, value);
	if (i >= LAST_LIP && i <= OFFSET)
		next_ip = QUIET_IP;
	ret = vmpt_rtit_unit_wrmsr(&w->unit, msrs[i].msr, value, next_ip);
	check(w, !ok || !w->moving || !w->before, "earlier packets go to the new place");
	decode(w);
	w->moving = false;
	check(w, ret == (ok ? 0 : VMPT_GP), "WRMSR");
	w->h->legal += ok;
	w->h->faults += !ok;
	if (ok)
		follow(w, i, value);
}

/* ---- events ---- */

static struct vmpt_rtit_mode mode_of(u64 value)
{
	struct vmpt_rtit_mode mode = { .cr3 = 0x1000 + (value >> 40 & 1) * 0x4000,
				       .cpl = value >> 42 & 3,
				       .paging = value >> 44 & 1 };

	return mode;
}

static void near_branch(struct walk *w, u8 what, u8 how, u64 next_ip, u64 target)
{
	struct vmpt_rtit_unit *u = &w->unit;

	switch (what) {
	case 5:
		vmpt_rtit_unit_step(u, next_ip);
		break;
	case 6:
		vmpt_rtit_unit_jcc(u, how & 1, next_ip, target);
		break;
	case 7:
		(how & 1 ? vmpt_rtit_unit_jmp : vmpt_rtit_unit_call)(u, next_ip, target);
		break;
	case 8:
		(how & 1 ? vmpt_rtit_unit_jmp_indirect : vmpt_rtit_unit_call_indirect)(u, next_ip,
										       target);
		break;
	default:
		vmpt_rtit_unit_ret(u, next_ip,
				   how & 1 ? target : u->regs.last_call_nlip & 0xffffffffffff);
	}
}

static void far(struct walk *w, u8 how, u64 value)
{
	struct vmpt_rtit_far f = { .ip = address(value),
				   .target = address(value >> 16),
				   .mode = mode_of(value) };

	if (how & 1) {
		f.is_insn = true;
		f.prefixes = how >> 1 & 7;
		f.insn = f.ip - 2 - f.prefixes;
	}
	w->mode = f.mode;
	vmpt_rtit_unit_far(&w->unit, &f);
}

static void paging(struct walk *w, u8 how, u64 value)
{
	struct vmpt_rtit_mode mode = mode_of(value);

	if (how & 1) {
		w->mode.cr3 = how & 2 ? mode.cr3 : value;
		vmpt_rtit_unit_mov_cr3(&w->unit, address(value), w->mode.cr3);
	} else {
		w->mode.paging = mode.paging;
		vmpt_rtit_unit_mov_cr0(&w->unit, address(value), mode.paging);
	}
}

/* In any order, even one that no processor executes. */
static void system_mode(struct walk *w, u8 how, u64 value)
{
	const struct vmpt_rtit_mode mode = mode_of(value);
	struct vmpt_rtit_unit *u = &w->unit;
	u64 ip = address(value);

	switch (how & 7) {
	case 0:
		vmpt_rtit_unit_smi(u, ip);
		check(w, u->smm, "SMI");
		break;
	case 1:
	case 2:
		vmpt_rtit_unit_rsm(u, ip, &mode);
		check(w, !u->smm, "RSM");
		w->mode = u->mode;
		break;
	case 3:
		vmpt_rtit_unit_vmxon(u, ip);
		check(w, u->vmx_root, "VMXON");
		break;
	case 4:
		vmpt_rtit_unit_vmxoff(u, ip);
		check(w, !u->vmx_root, "VMXOFF");
		break;
	case 5:
	case 6:
		vmpt_rtit_unit_vmentry(u, ip, &mode);
		check(w, !u->vmx_root, "VM entry");
		w->mode = mode;
		break;
	default:
		vmpt_rtit_unit_vmexit(u, ip, &mode);
		check(w, u->vmx_root, "VM exit");
		w->mode = mode;
	}
}

static struct vmpt_rtit_clocks later(const struct walk *w, u8 how, u64 value)
{
	struct vmpt_rtit_clocks now = w->unit.now;

	if (how == 0xff) { /* software writes the TSC, or time stands still for long */
		now.tsc = value;
		now.cycles += value >> 20;
	} else {
		now.tsc += (value & 0xffff) >> (how & 15);
		now.cycles += (value >> 16 & 0xffffff) >> (how >> 4) * 2;
	}
	return now;
}

static void sleep_passes(struct walk *w, u8 how, u64 value)
{
	const struct vmpt_rtit_clocks now = later(w, how, value);
	u64 mtcs;

	decode(w);
	mtcs = w->h->kinds[VMPT_RTIT_MTC];
	vmpt_rtit_unit_wake(&w->unit, &now);
	decode(w);
	/* Appendix B 4.1 */
	check(w, w->refuse || mtcs == w->h->kinds[VMPT_RTIT_MTC], "an MTC during a sleep");
}

static void time_passes(struct walk *w, u8 how, u64 value)
{
	const struct vmpt_rtit_clocks now = later(w, how, value);

	vmpt_rtit_unit_time(&w->unit, &now);
}

static void trouble(struct walk *w, u8 how, u64 value)
{
	switch (how & 7) {
	case 0:
		vmpt_rtit_unit_frequency(&w->unit, value & 0x3f, value >> 8 & 0x3f);
		break;
	case 1:
		sleep_passes(w, how, value >> 8);
		break;
	case 2:
		vmpt_rtit_unit_overflow(&w->unit);
		break;
	case 3:
		w->refuse = how & 8;
		w->takes = how >> 4 & 3;
		break;
	default:
		vmpt_rtit_unit_overflow_resolve(&w->unit, address(value));
	}
}

/* RESET, now and then */
static void reset(struct walk *w)
{
	w->refuse = false;
	decode(w);
	vmpt_rtit_unit_reset(&w->unit);
	w->bytes = w->unit.bytes;
	w->ctl_read = false;
	w->cycle_acc = false;
	w->last_lip = false;
	w->base = 0xfdc00000;
	w->mask = 0x7f;
	w->offset = 0;
	w->pkt_cnt = 0;
	w->mode = w->unit.mode;
}

static void event(struct walk *w, u8 what, u8 how, u64 value)
{
	switch (what) {
	case 4:
		get(w, how % MSRS);
		break;
	case 5 ... 9:
		near_branch(w, what, how, address(value), address(value >> 16));
		break;
	case 10:
		far(w, how, value);
		break;
	case 11:
		paging(w, how, value);
		break;
	case 12:
		system_mode(w, how, value);
		break;
	case 13:
		time_passes(w, how, value);
		break;
	case 14:
		trouble(w, how, value);
		break;
	default:
		if (how == 0x5a)
			reset(w);
		else
			decode(w);
	}
}

/* ---- invariants ---- */

/* 2.1.2 */
static bool context_en(struct walk *w)
{
	u64 ctl = w->unit.regs.ctl, match = w->unit.regs.cr3_match;

	return !((!(ctl & 4) && !w->mode.cpl) || (!(ctl & 8) && w->mode.cpl) ||
		 (ctl & 0x80 && (match ^ w->mode.cr3) & 0xfffffffe0) || w->unit.smm ||
		 w->unit.vmx_root);
}

static void check_registers(struct walk *w)
{
	struct vmpt_rtit_unit *u = &w->unit;
	u64 status = u->regs.status;
	unsigned int i;

	for (i = 0; i < MSRS; i++) {
		u64 value = *vmpt_rtit_reg(&u->regs, msrs[i].msr);

		check(w, !(value & ~(msrs[i].bits | (i == STATUS ? 6 : 0) | msrs[i].ones)),
		      "a reserved bit is set");
		check(w, !(~value & msrs[i].ones), "a reserved bit is clear");
	}
	check(w, u->regs.tnt_buff, "TNT_BUFF is 0");
	check(w, !(status >> 2 & 1) == !((u->regs.ctl & 0x2001) == 0x2001), "TriggerEn");
	check(w, !(status >> 1 & 1) == !context_en(w), "ContextEn");
	check(w, (u->regs.ctl & 1) || !(u->regs.ctl >> 13 & 1) || !(status >> 2 & 1), "Trace_En");
	check(w,
	      u->trigger_en == (status >> 2 & 1) && u->context_en == (status >> 1 & 1) &&
		      u->filter_en == (status & 1) && u->packet_en == ((status & 7) == 7),
	      "STATUS and the enables differ");
	check(w,
	      u->mode.cr3 == w->mode.cr3 && u->mode.cpl == w->mode.cpl &&
		      u->mode.paging == w->mode.paging,
	      "a wrong mode");
}

static void step(struct walk *w, const u8 *data)
{
	u64 status = w->unit.regs.status, made = w->unit.bytes + w->unit.used;
	u64 ctl = w->unit.regs.ctl;
	u64 value = vmpt_load64(data + 2);
	u8 what = data[0] % 16;
	bool quiet, frozen;

	w->calls = 0;
	if (what < 4)
		write_msr(w, data[1] % MSRS, data[1], value, address(value >> 48));
	else
		event(w, what, data[1], value);
	/* 2.1.1: "When TriggerEn is clear, … no packets are generated"; 4.2.5 a) */
	quiet = !((status | w->unit.regs.status) & 4) ||
		(status & w->unit.regs.status & 8 && !ERRATUM(w, 4));
	if (quiet && !(what < 4 && data[1] % MSRS == CTL) && what != 15)
		check(w, made == w->unit.bytes + w->unit.used, "packets where none may come");
	/* 2.1.3: "frozen when either Trace_En or ContextEn are 0" */
	frozen = !((status | w->unit.regs.status) & 2) || !((ctl | w->unit.regs.ctl) & 1);
	if (frozen && !(what < 4 && data[1] % MSRS == STATUS) && what != 15)
		check(w, !((status ^ w->unit.regs.status) & 1), "FilterEn is not frozen");
	decode(w);
	check_registers(w);
	if (w->refuse)
		return;
	check(w, w->bytes == w->unit.bytes, "bytes");
	check(w, w->offset == w->unit.regs.offset, "OFFSET and the bytes differ");
	check(w, ERRATUM(w, 3) || !((w->pkt_cnt ^ w->unit.regs.pkt_cnt) & 0x3fff),
	      "Pkt_Cnt and the bytes differ");
	w->h->traced += w->unit.packet_en;
}

void hostile_walk(struct hostile *h, const u8 *data, size_t size)
{
	static struct walk walk;
	struct walk *w = &walk;

	h->wrong = NULL;
	h->step = 0;
	if (size < HOSTILE_HEAD)
		return;
	memset(w, 0, sizeof(*w));
	w->h = h;
	w->sink.write = take;
	w->sink.opaque = w;
	w->config.sink = &w->sink;
	w->config.options.errata = (data[0] & 0x80 ? data[0] & 0x7fu : 0) << 1;
	w->config.options.psb_clears_late = data[1] & 8 ? (data[1] & 7) % 5 : 0;
	w->config.options.pgd_at_disable = data[1] >> 4 & 1;
	w->config.options.pgd_at_stop = data[1] >> 6 & 1;
	w->config.options.cycle_rows_exchanged = data[1] >> 6 & 1;
	w->config.options.tnt_before_all = data[1] >> 7;
	w->config.options.rules.lip_sign_extended = data[1] >> 5 & 1;
	if (vmpt_rtit_unit_init(&w->unit, &w->config)) {
		h->wrong = "init";
		return;
	}
	reset(w);
	for (data += HOSTILE_HEAD, size -= HOSTILE_HEAD; size >= HOSTILE_STEP && !h->wrong;
	     data += HOSTILE_STEP, size -= HOSTILE_STEP) {
		step(w, data);
		if (!h->wrong)
			h->step++;
	}
}
