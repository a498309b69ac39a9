// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A guest that traces itself while it is unloaded, moved between processors and hosts, and its CR3
 * is written by the VMM, at random places. Next to it a processor executes the same events
 * undisturbed. Both streams are read packet by packet and must show what was executed: the guest's
 * has, in addition, a FUP.PGD and FUP.PGE at each VM exit and entry, more PSBs, and after them
 * whole LIPs and RETs that are not compressed. Time and cycles are the same in both.
 * VMPT_SOAK=seconds continues with other seeds for that long.
 */
#include <stdlib.h>
#include <time.h>

#include "tests/vmm-lib/rtit/rig.h"

#define BASE	0x40000u
#define MASK	0xffffu
#define STREAM	(4u << 20)
#define TOKENS	400000u
#define EVENTS	4000u
#define REGIONS 4u

enum token_kind { BIT, TIP, RET, FAR, PGE, PGD, PIP };

/* What a stream must show, in order. */
struct token {
	u8 kind;
	bool compressed; /* a RET that RET compression may compress */
	u64 value;
};

struct tokens {
	struct token *list;
	u32 n;
};

/* The times in a stream. */
struct timing {
	u64 *list;
	u32 n;
	u64 cycles;
};

struct pair {
	struct rig rig;		     /* the guest */
	struct vmpt_rtit_unit alone; /* the undisturbed processor */
	struct vmpt_rtit_sink alone_sink;
	u8 *stream[2]; /* the guest's, the undisturbed one */
	size_t len[2];
	struct tokens want[2];
	struct timing timing[2];
	struct test_rng rng;
	u64 ctl, seen, last_call;
	bool inside; /* the guest executes */
	u64 ip;
	u64 seed;
	u32 swaps, moves, writes;
};

static u64 pick(struct pair *p, u64 n)
{
	return test_random(&p->rng) % n;
}

/* Addresses near each other and far away. */
static u64 address(struct pair *p)
{
	static const u64 regions[REGIONS] = { 0, 0x401000, 0x7f1234560000, 0xffff81000000 };

	return regions[pick(p, REGIONS)] + pick(p, 0x400);
}

static void want(struct pair *p, int which, u8 kind, u64 value, bool compressed)
{
	struct tokens *t = &p->want[which];

	ck_assert(t->n < TOKENS);
	t->list[t->n++] = (struct token){ kind, compressed, value };
}

static void want_both(struct pair *p, u8 kind, u64 value)
{
	want(p, 0, kind, value, false);
	want(p, 1, kind, value, false);
}

/* ---- the guest's stream, as its own software reads it ---- */

static void collect(struct pair *p)
{
	u64 now = p->rig.v.loaded ? rig_rd(&p->rig, VMPT_RTIT_MSR_OFFSET) : p->rig.v.regs.offset;
	u64 n = (now - p->seen) & MASK, first = MASK + 1 - (p->seen & MASK);

	ck_assert(p->len[0] + n < STREAM);
	if (first > n)
		first = n;
	rig_get(&p->rig, BASE + p->seen, p->stream[0] + p->len[0], first);
	rig_get(&p->rig, BASE, p->stream[0] + p->len[0] + first, n - first);
	p->len[0] += n;
	p->seen = now & MASK;
}

static int alone_store(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	struct pair *p = opaque;

	(void)pa;
	ck_assert(p->len[1] + len < STREAM);
	memcpy(p->stream[1] + p->len[1], bytes, len);
	p->len[1] += len;
	return 0;
}

/* ---- the VMM ---- */

static void leave(struct pair *p, u64 ip)
{
	ck_assert(p->inside);
	rig_exit(&p->rig, ip);
	want(p, 0, PGD, ip, false);
	p->inside = false;
}

static void enter(struct pair *p, u64 ip)
{
	rig_enter(&p->rig, ip);
	want(p, 0, PGE, ip, false);
	p->inside = true;
}

static void load(struct pair *p)
{
	int ret = vmpt_rtit_vcpu_load(&p->rig.v);

	ck_assert_msg(!ret, "load: %d, seed %u", ret, (u32)p->seed);
}

static void unload(struct pair *p)
{
	int ret = vmpt_rtit_vcpu_unload(&p->rig.v);

	ck_assert_msg(!ret, "unload: %d, seed %u", ret, (u32)p->seed);
	p->swaps++;
}

/* Another host: its memory, its processor, its kind of output; only the bytes move. */
static void move(struct pair *p)
{
	struct rig *r = &p->rig;
	u8 state[VMPT_RTIT_STATE_MAX];
	int n;

	unload(p);
	collect(p);
	n = vmpt_rtit_vcpu_save(&r->v, state, sizeof(state));
	ck_assert_int_gt(n, 0);
	if (pick(p, 2))
		guest_shuffle(&r->guest, test_random(&p->rng));
	memset(r->bounce, (int)pick(p, 256), RIG_BOUNCE_MAX);
	r->config.output = (u8)(pick(p, 2) ? VMPT_RTIT_BOUNCE : VMPT_RTIT_CONTIGUOUS);
	r->config.bounce.size = 4096u << pick(p, 5);
	rig_new_processor(r);
	if (pick(p, 2))
		rig_host_on(r, RIG_ON | (p->ctl & VMPT_RTIT_CTL_MTC_EN));
	ck_assert_int_eq(vmpt_rtit_vcpu_init(&r->v, &r->config), 0);
	ck_assert_int_eq(vmpt_rtit_vcpu_restore(&r->v, state, (size_t)n, NULL), 0);
	load(p);
	p->moves++;
}

/* Another guest runs here meanwhile. */
static void swap(struct pair *p)
{
	struct vmpt_rtit_mode in = p->rig.in;

	unload(p);
	collect(p);
	rig_enter(&p->rig, 0x666);
	vmpt_rtit_unit_call_indirect(&p->rig.unit, 0x668, 0x123456789abc);
	rig_exit(&p->rig, 0x668);
	p->rig.in = in;
	load(p);
}

static void handle_exit(struct pair *p)
{
	struct rig *r = &p->rig;

	switch (pick(p, 8)) {
	case 0:
		swap(p);
		break;
	case 1:
		move(p);
		break;
	case 2:
		ck_assert_int_eq(vmpt_rtit_vcpu_quiet(&r->v, true), 0);
		if (pick(p, 2))
			swap(p);
		ck_assert_int_eq(vmpt_rtit_vcpu_quiet(&r->v, false), 0);
		break;
	case 3:
		rig_wr(r, VMPT_RTIT_MSR_CTL, p->ctl);
		break;
	case 4:
		rig_wr(r, VMPT_RTIT_MSR_EVENTS, rig_rd(r, VMPT_RTIT_MSR_EVENTS));
		ck_assert_uint_eq(rig_rd(r, VMPT_RTIT_MSR_CTL), p->ctl);
		break;
	default:
		break;
	}
}

static void exit_and_entry(struct pair *p)
{
	leave(p, p->ip);
	handle_exit(p);
	collect(p);
	enter(p, p->ip);
}

/* ---- what the guest executes ---- */

static void jcc(struct pair *p)
{
	bool taken = pick(p, 2);
	u64 target = address(p);

	vmpt_rtit_unit_jcc(&p->alone, taken, p->ip + 2, target);
	vmpt_rtit_unit_jcc(&p->rig.unit, taken, p->ip + 2, target);
	want_both(p, BIT, taken);
	p->ip = taken ? target : p->ip + 2;
}

static void jmp_indirect(struct pair *p)
{
	u64 target = address(p);

	vmpt_rtit_unit_jmp_indirect(&p->alone, p->ip + 2, target);
	vmpt_rtit_unit_jmp_indirect(&p->rig.unit, p->ip + 2, target);
	want_both(p, TIP, target);
	p->ip = target;
}

static void call(struct pair *p)
{
	u64 target = address(p);

	vmpt_rtit_unit_call(&p->alone, p->ip + 5, target);
	vmpt_rtit_unit_call(&p->rig.unit, p->ip + 5, target);
	p->last_call = p->ip + 5;
	p->ip = target;
}

static void ret(struct pair *p)
{
	u64 target = pick(p, 4) ? p->last_call : address(p);
	bool may = p->ctl & VMPT_RTIT_CTL_CMPRS_RET && target == p->last_call;

	vmpt_rtit_unit_ret(&p->alone, p->ip + 1, target);
	vmpt_rtit_unit_ret(&p->rig.unit, p->ip + 1, target);
	want(p, 0, RET, target, may);
	want(p, 1, RET, target, may);
	p->ip = target;
}

static void far(struct pair *p)
{
	struct vmpt_rtit_far f = { .ip = p->ip, .target = address(p), .mode = p->alone.mode };

	f.mode.cpl = (u8)pick(p, 4);
	vmpt_rtit_unit_far(&p->alone, &f);
	vmpt_rtit_unit_far(&p->rig.unit, &f);
	want_both(p, FAR, f.ip);
	want_both(p, TIP, f.target);
	p->ip = f.target;
}

/* By the processor, or by the VMM: an exit at it, and the entry after it. */
static void mov_cr(struct pair *p)
{
	bool cr0 = !pick(p, 4), paging = cr0 ? !p->alone.mode.paging : p->alone.mode.paging;
	struct vmpt_rtit_cr_write w = { cr0 ? p->alone.mode.cr3 : pick(p, 1ULL << 40), paging,
					!cr0 };
	u64 value = (w.new_cr3 & vmpt_mask64(40)) << 1 | paging;
	bool due = !(p->ctl & VMPT_RTIT_CTL_CR3_EN), by_vmm = pick(p, 2);

	if (p->ctl & VMPT_RTIT_CTL_CR3_EN)
		w.new_cr3 = p->alone.mode.cr3; /* stays in the context */
	if (cr0)
		vmpt_rtit_unit_mov_cr0(&p->alone, p->ip + 3, paging);
	else
		vmpt_rtit_unit_mov_cr3(&p->alone, p->ip + 3, w.new_cr3);
	if (by_vmm) {
		leave(p, p->ip);
		if (pick(p, 2))
			handle_exit(p);
		ck_assert_int_ge(vmpt_rtit_vcpu_cr_write(&p->rig.v, &w), 0);
		if (pick(p, 2))
			handle_exit(p);
		p->rig.in = p->alone.mode;
		p->writes++;
	} else if (cr0) {
		vmpt_rtit_unit_mov_cr0(&p->rig.unit, p->ip + 3, paging);
	} else {
		vmpt_rtit_unit_mov_cr3(&p->rig.unit, p->ip + 3, w.new_cr3);
	}
	if (due)
		want_both(p, PIP, value);
	p->ip += 3;
	if (by_vmm)
		enter(p, p->ip);
}

static void time_passes(struct pair *p)
{
	struct vmpt_rtit_clocks now = p->alone.now;

	now.tsc += pick(p, 600);
	now.cycles += pick(p, 3000);
	vmpt_rtit_unit_time(&p->alone, &now);
	vmpt_rtit_unit_time(&p->rig.unit, &now);
	if (!pick(p, 8)) {
		vmpt_rtit_unit_wake(&p->alone, &p->alone.now);
		vmpt_rtit_unit_wake(&p->rig.unit, &p->rig.unit.now);
	}
}

/* ---- reading a stream ---- */

struct reading {
	struct pair *p;
	int which;
	u32 at; /* token */
	struct vmpt_rtit_last_lip last;
};

static void expect(struct reading *r, u8 kind, u64 value)
{
	const struct tokens *t = &r->p->want[r->which];
	const struct token *next = &t->list[r->at];

	ck_assert_msg(r->at < t->n, "seed %u: more than was executed", (u32)r->p->seed);
	if ((next->kind == RET && kind == BIT && value && next->compressed) ||
	    (next->kind == RET && kind == TIP && next->value == value) ||
	    (next->kind == kind && next->value == value))
		r->at++;
	else
		ck_abort_msg("seed %u, stream %d, token %u: %u %llx, not %u %llx", (u32)r->p->seed,
			     r->which, r->at, next->kind, (unsigned long long)next->value, kind,
			     (unsigned long long)value);
}

static void bits(struct reading *r, u64 value, u64 count)
{
	while (count--)
		expect(r, BIT, value >> count & 1);
}

static void lip(struct reading *r, const struct vmpt_rtit_packet *pkt, u8 kind)
{
	u64 value;

	ck_assert_msg(vmpt_rtit_lip_expand(&r->last, pkt, &value),
		      "seed %u: a LIP without the last", (u32)r->p->seed);
	expect(r, kind, value);
}

static void packet(struct reading *r, const struct vmpt_rtit_packet *pkt, struct timing *t)
{
	if (pkt->flags & VMPT_RTIT_CYCLES)
		t->cycles += pkt->cycles;
	switch (pkt->kind) {
	case VMPT_RTIT_PSB:
		r->last.valid = false;
		break;
	case VMPT_RTIT_TNT:
		bits(r, pkt->tnt.bits, pkt->tnt.count);
		break;
	case VMPT_RTIT_PGE:
		lip(r, pkt, PGE);
		break;
	case VMPT_RTIT_PGD:
		lip(r, pkt, PGD);
		break;
	case VMPT_RTIT_FAR:
		lip(r, pkt, FAR);
		break;
	case VMPT_RTIT_TIP:
		lip(r, pkt, TIP);
		break;
	case VMPT_RTIT_PIP:
		expect(r, PIP, pkt->pip.cr3 << 1 | pkt->pip.pg);
		break;
	case VMPT_RTIT_MTC:
		t->list[t->n++] = pkt->mtc.tsc << 2 | pkt->mtc.rng;
		break;
	case VMPT_RTIT_STS:
		t->list[t->n++] =
			1ULL << 60 | pkt->sts.acbr << 52 | pkt->sts.ecbr << 44 | pkt->sts.tsc;
		break;
	default:
		ck_abort_msg("seed %u: %s", (u32)r->p->seed, vmpt_rtit_name(pkt->kind));
	}
}

static void read_stream(struct pair *p, int which, const struct vmpt_rtit_regs *regs)
{
	struct reading r = { .p = p, .which = which };
	bool cycle_acc = p->ctl & VMPT_RTIT_CTL_CYCLE_ACC;
	u64 tnt = regs->tnt_buff, top = 63 - (u64)__builtin_clzll(tnt);
	struct vmpt_rtit_packet pkt;
	size_t at = 0;

	while (at < p->len[which]) {
		int err = vmpt_rtit_decode(&pkt, p->stream[which] + at, p->len[which] - at,
					   cycle_acc);

		ck_assert_msg(!err, "seed %u, stream %d: %d at %zx", (u32)p->seed, which, err, at);
		packet(&r, &pkt, &p->timing[which]);
		at += pkt.size;
	}
	bits(&r, tnt & vmpt_mask64((unsigned int)top), top);
	ck_assert_msg(r.at == p->want[which].n, "seed %u, stream %d: %u of %u tokens", (u32)p->seed,
		      which, r.at, p->want[which].n);
	p->timing[which].cycles += regs->cntp;
}

/* ---- a run ---- */

static void start_alone(struct pair *p)
{
	struct vmpt_rtit_unit_config config = { .sink = &p->alone_sink };
	struct vmpt_rtit_unit *unit = &p->alone;
	u64 value;

	ck_assert_int_eq(vmpt_rtit_unit_init(unit, &config), 0);
	unit->acbr = p->rig.unit.acbr;
	unit->ecbr = p->rig.unit.ecbr;
	unit->mode = p->rig.in;
	vmpt_rtit_unit_rdmsr(unit, VMPT_RTIT_MSR_CTL, &value);
	vmpt_rtit_unit_wrmsr(unit, VMPT_RTIT_MSR_EVENTS, 0x37, p->ip);
	vmpt_rtit_unit_wrmsr(unit, VMPT_RTIT_MSR_CR3_MATCH, p->rig.in.cr3, p->ip);
	vmpt_rtit_unit_wrmsr(unit, VMPT_RTIT_MSR_CTL, p->ctl & ~VMPT_RTIT_CTL_TRACE_ACTIVE, p->ip);
	vmpt_rtit_unit_wrmsr(unit, VMPT_RTIT_MSR_CTL, p->ctl, p->ip);
	want(p, 1, PGE, p->ip, false);
}

static void start(struct pair *p, u64 seed)
{
	u64 options = VMPT_RTIT_CTL_CYCLE_ACC | VMPT_RTIT_CTL_STS_ON_CR3 | VMPT_RTIT_CTL_MTC_EN |
		      VMPT_RTIT_CTL_STS_EN | VMPT_RTIT_CTL_CMPRS_RET | VMPT_RTIT_CTL_LESS_PKTS |
		      VMPT_RTIT_CTL_MTC_RANGE;
	int i;

	memset(p, 0, sizeof(*p));
	p->seed = seed;
	p->rng.state = seed;
	for (i = 0; i < 2; i++) {
		p->stream[i] = malloc(STREAM);
		p->want[i].list = calloc(TOKENS, sizeof(struct token));
		p->timing[i].list = calloc(TOKENS, sizeof(u64));
		ck_assert(p->stream[i] && p->want[i].list && p->timing[i].list);
	}
	p->alone_sink = (struct vmpt_rtit_sink){ alone_store, p };
	p->ctl = RIG_ON | (test_random(&p->rng) & options);
	if (!pick(p, 4))
		p->ctl |= VMPT_RTIT_CTL_CR3_EN;
	p->ip = address(p);
	rig_init(&p->rig, pick(p, 2) ? VMPT_RTIT_BOUNCE : VMPT_RTIT_CONTIGUOUS, 0x8000);
	start_alone(p);
	rig_program(&p->rig, BASE, MASK, p->ctl);
	rig_wr(&p->rig, VMPT_RTIT_MSR_CR3_MATCH, p->rig.in.cr3);
	load(p);
	enter(p, p->ip);
}

static void finish(struct pair *p)
{
	int i;

	leave(p, p->ip);
	unload(p);
	collect(p);
	vmpt_rtit_unit_drain(&p->alone);
	read_stream(p, 0, &p->rig.v.regs);
	read_stream(p, 1, &p->alone.regs);
	ck_assert_uint_eq(p->rig.v.lost, 0);
	ck_assert_msg(
		p->timing[0].n == p->timing[1].n &&
			!memcmp(p->timing[0].list, p->timing[1].list, p->timing[0].n * sizeof(u64)),
		"seed %u: %u and %u clocks", (u32)p->seed, p->timing[0].n, p->timing[1].n);
	ck_assert_uint_eq(p->timing[0].cycles, p->timing[1].cycles);
	rig_free(&p->rig);
	for (i = 0; i < 2; i++) {
		free(p->stream[i]);
		free(p->want[i].list);
		free(p->timing[i].list);
	}
}

static void run(u64 seed)
{
	static void (*const events[])(struct pair *) = {
		jcc, jcc, jcc, jcc, jcc, jmp_indirect, call, ret, far, time_passes, mov_cr,
	};
	static struct pair p;
	u32 n, disturb;

	start(&p, seed);
	disturb = (u32)pick(&p, 60) + 3;
	for (n = 0; n < EVENTS; n++) {
		events[pick(&p, VMPT_ARRAY_SIZE(events))](&p);
		/* The bounce buffer holds at least 4 KiB. */
		if (!pick(&p, disturb) || !(n % 128))
			exit_and_entry(&p);
	}
	ck_assert(p.swaps > 3 && p.writes > 50);
	finish(&p);
}

START_TEST(as_undisturbed)
{
	run((u64)_i + 1);
}
END_TEST

START_TEST(soak)
{
	const char *seconds = getenv("VMPT_SOAK");
	time_t end = time(NULL) + (seconds ? atoi(seconds) : 0);
	u64 seed = 1000;

	while (time(NULL) < end)
		run(seed++);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("rtit-migrate");
	TCase *tc = test_random_case(suite);

	tcase_add_loop_test(tc, as_undisturbed, 0, test_rounds(100, 8));
	tc = test_random_case(suite);
	tcase_add_test(tc, soak);
	return suite;
}
