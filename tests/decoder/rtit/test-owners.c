// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owners of an RTIT stream by a side record, packet by packet against the truth: guests on one unit
 * of the model enter and leave their filter and write CR3 there. A byte belongs to the guest on the
 * processor when the unit made it.
 */
#include <stdlib.h>

#include "decoder/vmpt-decode.h"
#include "model/vmpt-rtit.h"
#include "tests/decoder/streams.h"
#include "tests/support/support.h"

#define SIZE_MAX_ (1u << 20)
#define ROUNDS	  1000
#define GUESTS	  3
#define INSIDE	  0x400000
#define OUTSIDE	  0x800000

/* Behaviour of VMM and guests; each alone and combined. */
enum how {
	BY_TIME = 1,
	LESS = 2,  /* LESS_PKTS */
	SWAP = 4,  /* TraceActive off and on between two guests: a PSB */
	CYCLE = 8, /* cycle counts */
	LATE = 16, /* the record's offset was read before the exit's packets were drained */
	HOWS = 32,
};

struct rig {
	struct test_rng rng;
	unsigned int how;
	struct vmpt_rtit_unit unit;
	struct vmpt_rtit_sink sink;
	u8 *bytes, *truth; /* truth: guest + 1 by byte */
	size_t size, given;
	struct vmpt_run runs[ROUNDS + 1];
	size_t run_count;
	u8 guest; /* + 1 */
	bool inside;
	u64 cr3;
	struct vmpt_rtit_clocks now;
};

static int take(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	struct rig *r = opaque;

	(void)pa;
	must(r->size + len <= SIZE_MAX_, "too much");
	memcpy(r->bytes + r->size, bytes, len);
	r->size += len;
	return 0;
}

/* All bytes made since the last call are the guest's, drained or not. */
static void tell(struct rig *r)
{
	size_t made = r->size + r->unit.used;

	memset(r->truth + r->given, r->guest, made - r->given);
	r->given = made;
}

static void settle(struct rig *r)
{
	tell(r);
	must(!vmpt_rtit_unit_drain(&r->unit), "drain");
	must(r->size == r->given, "0x%zx, given 0x%zx", r->size, r->given);
}

static void pass(struct rig *r)
{
	u64 n = 1 + test_random(&r->rng) % 3000;

	r->now.tsc += n;
	r->now.cycles += n;
	vmpt_rtit_unit_time(&r->unit, &r->now);
	settle(r);
}

static void set(struct rig *r, u32 msr, u64 value)
{
	must(!vmpt_rtit_unit_wrmsr(&r->unit, msr, value, 0x1000), "WRMSR %x", msr);
}

static void enable(struct rig *r)
{
	u64 ctl = VMPT_RTIT_CTL_TRACE_EN | VMPT_RTIT_CTL_OS | VMPT_RTIT_CTL_USER |
		  VMPT_RTIT_CTL_DEST | VMPT_RTIT_CTL_STS_ON_CR3 | VMPT_RTIT_CTL_STS_EN;

	if (r->how & LESS)
		ctl |= VMPT_RTIT_CTL_LESS_PKTS;
	if (r->how & CYCLE)
		ctl |= VMPT_RTIT_CTL_CYCLE_ACC;
	set(r, VMPT_RTIT_MSR_CTL, ctl);
	set(r, VMPT_RTIT_MSR_CTL, ctl | VMPT_RTIT_CTL_TRACE_ACTIVE);
}

/* A guest enters the processor, and the record has it. */
static void come(struct rig *r)
{
	u8 guest = (u8)(1 + test_random(&r->rng) % GUESTS);
	struct vmpt_run *run = &r->runs[r->run_count++];

	run->by_tsc = r->how & BY_TIME;
	run->at = run->by_tsc ? r->now.tsc : r->size;
	run->owner = (struct vmpt_owner){ .kind = VMPT_OWNER_VM, .vmcs = guest };
	r->guest = guest;
	if (r->how & SWAP) {
		set(r, VMPT_RTIT_MSR_CTL, r->unit.regs.ctl & ~VMPT_RTIT_CTL_TRACE_ACTIVE);
		enable(r);
	}
	/* The next one comes at another time. */
	if (r->how & BY_TIME)
		r->now.tsc++;
}

static void start(struct rig *r)
{
	struct vmpt_rtit_unit_config config = { .sink = &r->sink };
	u64 value;

	config.options.errata = r->how & SWAP ? VMPT_RTIT_ERRATUM(2) : 0;
	r->sink = (struct vmpt_rtit_sink){ take, r };
	must(!vmpt_rtit_unit_init(&r->unit, &config), "init");
	vmpt_rtit_unit_rdmsr(&r->unit, VMPT_RTIT_MSR_CTL, &value);
	set(r, VMPT_RTIT_MSR_BASE_ADDR, 0);
	set(r, VMPT_RTIT_MSR_LIMIT_MASK, 0xfff);
	set(r, VMPT_RTIT_MSR_LIP0, INSIDE);
	set(r, VMPT_RTIT_MSR_LIP0 + 1, INSIDE + 0x1000);
	set(r, VMPT_RTIT_MSR_LIP0 + 2, INSIDE + 0x1000);
	set(r, VMPT_RTIT_MSR_EVENTS,
	    VMPT_RTIT_EVENT_RANGE0 | VMPT_RTIT_EVENT_OFF << VMPT_RTIT_EVENTS_STOP_SHIFT);
	set(r, VMPT_RTIT_MSR_TNT_BUFF, 1);
	vmpt_rtit_unit_vmxon(&r->unit, 0x1000);
	r->now = (struct vmpt_rtit_clocks){ 0x5000000000 + (test_random(&r->rng) & 0xffffff), 0 };
	vmpt_rtit_unit_time(&r->unit, &r->now);
	come(r);
	if (!(r->how & SWAP))
		enable(r);
	settle(r);
}

static void jump(struct rig *r, u64 to)
{
	u64 from = r->inside ? INSIDE + 0x10 : OUTSIDE;

	r->inside = to >= INSIDE && to < INSIDE + 0x1000;
	vmpt_rtit_unit_jmp_indirect(&r->unit, from + 2, to);
}

static void act(struct rig *r)
{
	switch (test_random(&r->rng) % 5) {
	case 0:
		jump(r, OUTSIDE + (test_random(&r->rng) & 0xff0));
		break;
	case 1:
		jump(r, INSIDE + (test_random(&r->rng) & 0xff0));
		break;
	case 2:
		r->cr3 = (test_random(&r->rng) & 0xff) << 12;
		vmpt_rtit_unit_mov_cr3(&r->unit, (r->inside ? INSIDE : OUTSIDE) + 3, r->cr3);
		break;
	default:
		if (r->inside)
			vmpt_rtit_unit_jcc(&r->unit, test_random(&r->rng) & 1, INSIDE + 2,
					   INSIDE + 0x20);
	}
	settle(r);
}

/* One stay in a guest, from entry to exit. */
static void stay(struct rig *r)
{
	struct vmpt_rtit_mode guest = { .paging = true, .cr3 = r->cr3 }, host = { .paging = true };
	u64 n = test_random(&r->rng) % 8, to;

	r->inside = test_random(&r->rng) & 1;
	to = r->inside ? INSIDE + 0x40 : OUTSIDE;
	vmpt_rtit_unit_vmentry(&r->unit, to, &guest);
	settle(r);
	/* As on the processor: an STS after a wakeup, here at each entry. PSB, FUP.PGE, STS. */
	if (r->unit.packet_en)
		vmpt_rtit_unit_wake(&r->unit, &r->now);
	settle(r);
	while (n--) {
		if (!r->inside)
			vmpt_rtit_unit_mov_cr3(&r->unit, OUTSIDE + 3, r->cr3 += 0x1000);
		pass(r);
		act(r);
		if (!r->inside && test_random(&r->rng) & 1)
			jump(r, INSIDE);
		if (!r->inside)
			continue;
		settle(r);
		vmpt_rtit_unit_wake(&r->unit, &r->now);
		settle(r);
	}
	pass(r);
	n = r->unit.packet_en;
	vmpt_rtit_unit_vmexit(&r->unit, to, &host);
	tell(r);
	if (!(r->how & LATE) || !n)
		settle(r);
}

static void run_all(struct rig *r)
{
	int i;

	r->bytes = calloc(1, SIZE_MAX_);
	r->truth = calloc(1, SIZE_MAX_);
	must(r->bytes && r->truth, "no memory");
	start(r);
	for (i = 0; i < ROUNDS; i++) {
		if (i && test_random(&r->rng) & 1)
			come(r);
		stay(r);
		settle(r);
		if (!(r->how & LATE))
			pass(r);
	}
}

/* Packets that a guest sends outside its filter, or an enable: by time two owners are possible. */
static bool may_be_of_two(u8 kind, u8 aux)
{
	/* E2's FUP.PGD */
	if (aux & VMPT_RTIT_AUX_IGNORE)
		return true;
	return kind == VMPT_ITEM_RTIT + VMPT_RTIT_PIP || kind == VMPT_ITEM_RTIT + VMPT_RTIT_PSB ||
	       kind == VMPT_ITEM_RTIT_CYC;
}

/* Every owner is right, and known unless two are possible. */
static void compare(const struct rig *r, const struct vmpt_options *o)
{
	struct vmpt_stream stream = { .data = r->bytes, .size = r->size, .isa = VMPT_ISA_RTIT };
	size_t n = 0, right = 0;
	struct vmpt_cursor at = { 0 };
	struct vmpt_decoder *dec;
	struct vmpt_packet pkt;
	bool same;

	must(!vmpt_decoder_open(&dec, &stream, o), "open");
	for (; vmpt_packet_next(dec, &at, &pkt) == 1; n++) {
		must(pkt.kind != VMPT_ITEM_LOSS, "a loss at 0x%llx",
		     (unsigned long long)pkt.offset);
		same = pkt.owner.vmcs == r->truth[pkt.offset];
		must(same || pkt.owner.sure != VMPT_KNOWN,
		     "kind %u at 0x%llx: of %llu, is of %u (how %u)", pkt.kind - VMPT_ITEM_RTIT,
		     (unsigned long long)pkt.offset, (unsigned long long)pkt.owner.vmcs,
		     r->truth[pkt.offset], r->how);
		right += same;
		must(pkt.owner.sure == VMPT_KNOWN ||
			     (r->how & BY_TIME && may_be_of_two(pkt.kind, pkt.aux)),
		     "kind %u at 0x%llx: not known (how %u)", pkt.kind - VMPT_ITEM_RTIT,
		     (unsigned long long)pkt.offset, r->how);
	}
	must(n > 1000, "%zu packets", n);
	must(right * 100 >= n * 97, "%zu of %zu are right (how %u)", right, n, r->how);
	vmpt_decoder_close(dec);
}

/* The slices agree, byte by byte. */
static void compare_slices(const struct rig *r, const struct vmpt_options *o)
{
	struct vmpt_stream stream = { .data = r->bytes, .size = r->size, .isa = VMPT_ISA_RTIT };
	struct vmpt_splitter *split;
	struct vmpt_slice s;
	u64 i;

	must(!vmpt_splitter_open(&split, &stream, o), "open");
	while (vmpt_split_next(split, &s) == 1)
		for (i = s.offset; s.owner.sure == VMPT_KNOWN && i < s.offset + s.size; i++)
			must(s.owner.vmcs == r->truth[i], "a slice at 0x%llx (how %u)",
			     (unsigned long long)s.offset, r->how);
	vmpt_splitter_close(split);
}

START_TEST(truth)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct vmpt_run_effect effects[ROUNDS + 1];
	struct vmpt_run_report report = { .effects = effects };
	struct vmpt_options o = { .run_report = &report };

	must(r, "no memory");
	r->how = (unsigned int)_i;
	r->rng.state = 77 + (u64)_i;
	run_all(r);
	o.cycle_acc = _i & CYCLE ? VMPT_CYCLE_ACC_YES : VMPT_CYCLE_ACC_NO;
	o.runs = r->runs;
	o.run_count = r->run_count;
	compare(r, &o);
	ck_assert_uint_eq(report.aligned, _i & BY_TIME);
	compare_slices(r, &o);
	free(r->bytes);
	free(r->truth);
	free(r);
}
END_TEST

/* ---- by hand ---- */

#define PSB 0xc0, 0, 0, 0, 0, 0, 0, 0, 0
#define VM(n)                                      \
	{                                          \
		.kind = VMPT_OWNER_VM, .vmcs = (n) \
	}
#define ASSUMED 0x80

/* @want: owner (| ASSUMED) by packet. */
static void check_owners(const u8 *bytes, size_t size, struct vmpt_options o, const u8 *want,
			 size_t n)
{
	struct vmpt_stream stream = { .data = bytes, .size = size, .isa = VMPT_ISA_RTIT };
	struct vmpt_cursor at = { 0 };
	struct vmpt_decoder *dec;
	struct vmpt_packet pkt;
	size_t i;

	o.cycle_acc = VMPT_CYCLE_ACC_NO;
	must(!vmpt_decoder_open(&dec, &stream, &o), "open");
	for (i = 0; vmpt_packet_next(dec, &at, &pkt) == 1; i++)
		must(i < n && pkt.owner.vmcs == (want[i] & 0x7f) &&
			     (pkt.owner.sure == VMPT_ASSUMED) == (want[i] >> 7),
		     "packet %zu at 0x%llx: of %llu, %u", i, (unsigned long long)pkt.offset,
		     (unsigned long long)pkt.owner.vmcs, pkt.owner.sure);
	ck_assert_uint_eq(i, n);
	vmpt_decoder_close(dec);
}

/* After an overflow a FUP.PGE or FUP.PGD may be missing: an assumption up to the next. */
START_TEST(behind_an_overflow)
{
	static const u8 bytes[] = {
		PSB,		     /* 0 */
		0x84, 1, 0,	     /* 9: PGE */
		0x94, 2, 0,	     /* 12: BuffOvf */
		0xc3, 1, 0, 0, 0, 0, /* 15: PIP: of 1, and its FUP.PGD comes; or of 2 */
		0x84, 3, 0,	     /* 21: PGE: 2 */
		0x8c, 3, 0,	     /* 24: PGD */
		0x94, 4, 0,	     /* 27: BuffOvf: 3's */
		0x8c, 5, 0,	     /* 30: PGD */
		0xc3, 2, 0, 0, 0, 0, /* 33: PIP: 4 */
	};
	const struct vmpt_run runs[] = {
		{ .at = 0, .owner = VM(1) },
		{ .at = 15, .owner = VM(2) },
		{ .at = 27, .owner = VM(3) },
		{ .at = 28, .owner = VM(4) },
	};
	static const u8 want[] = { 1, 1, 1, 1 | ASSUMED, 2, 2, 3, 3 | ASSUMED, 4 };
	struct vmpt_options o = { .runs = runs, .run_count = 4 };

	check_owners(bytes, sizeof(bytes), o, want, sizeof(want));
}
END_TEST

/* A FUP.PGE without any time after it may be the next run's, unless a later time excludes it. */
START_TEST(no_time_behind)
{
	static const u8 bytes[] = {
		PSB,			   /* 0 */
		0x84, 1, 0,		   /* 9: PGE */
		0xd0, 0, 0, 0x10, 0, 0, 0, /* 12: STS 1000H */
		0x8c, 1, 0,		   /* 19: PGD */
		0x84, 2, 0,		   /* 22: PGE: before 2000H */
		0x8c, 2, 0,		   /* 25: PGD */
		0x84, 3, 0,		   /* 28: PGE */
		0xd0, 0, 0, 0x20, 0, 0, 0, /* 31: STS 2000H */
		0x8c, 3, 0,		   /* 38: PGD */
		0x84, 4, 0,		   /* 41: PGE: 1 or 2 */
		0x8c, 4, 0,		   /* 44: PGD */
	};
	const struct vmpt_run runs[] = {
		{ .at = 0x800, .by_tsc = true, .owner = VM(1) },
		{ .at = 0x2800, .by_tsc = true, .owner = VM(2) },
	};
	static const u8 want[] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 | ASSUMED, 1 | ASSUMED };
	struct vmpt_options o = { .runs = runs, .run_count = 2 };

	check_owners(bytes, sizeof(bytes), o, want, sizeof(want));
}
END_TEST

/* ---- fates of the runs ---- */

static void split_all(const u8 *bytes, size_t size, struct vmpt_options o)
{
	struct vmpt_stream stream = { .data = bytes, .size = size, .isa = VMPT_ISA_RTIT };
	struct vmpt_splitter *split;
	struct vmpt_slice slice;

	o.cycle_acc = VMPT_CYCLE_ACC_NO;
	must(!vmpt_splitter_open(&split, &stream, &o), "open");
	while (vmpt_split_next(split, &slice) == 1)
		;
	vmpt_splitter_close(split);
}

START_TEST(runs_that_never_came)
{
	static const u8 bytes[] = {
		PSB,  0x84, 1, 0, 0x8c, 1, 0, /* 0, 9, 12 */
		0xff, 0,		      /* 15: lost */
		PSB,  0x84, 2, 0,	      /* 17, 26 */
	};
	const struct vmpt_run runs[] = {
		{ .at = 0, .owner = VM(1) },  { .at = 4, .owner = VM(2) },
		{ .at = 9, .owner = VM(3) },  { .at = 16, .owner = VM(4) },
		{ .at = 18, .owner = VM(5) }, { .at = 0x100000, .owner = VM(6) },
	};
	static const struct vmpt_run_effect want[] = {
		{ 0, VMPT_RUN_TAKEN }, { 9, VMPT_RUN_COVERED }, { 9, VMPT_RUN_TAKEN },
		{ 17, VMPT_RUN_LOST }, { 26, VMPT_RUN_TAKEN },	{ ~0ULL, VMPT_RUN_NEVER },
	};
	struct vmpt_run_effect effects[6] = { 0 };
	struct vmpt_run_report report = { .effects = effects, .aligned = true };
	size_t i;

	split_all(bytes, sizeof(bytes),
		  (struct vmpt_options){ .runs = runs, .run_count = 6, .run_report = &report });
	for (i = 0; i < 6; i++)
		must(effects[i].offset == want[i].offset && effects[i].fate == want[i].fate,
		     "run %zu: %u at 0x%llx", i, effects[i].fate,
		     (unsigned long long)effects[i].offset);
	ck_assert_uint_eq(report.never, 1);
	ck_assert(!report.aligned);
}
END_TEST

/* The time of a trace in 64 bits, and how far it is from the record's. */
START_TEST(runs_far_away)
{
	static const struct {
		u64 at;
		u8 sts; /* bits 39:32 */
		u64 tsc, apart;
		bool never;
	} row[] = {
		{ 0x800, 0, 0x1000, 0x800, false },
		{ 0xfffffffffffff, 0, 0x10000000001000, 0x1001, false },
		{ 0x30000000f00, 0, 0x30000001000, 0x100, false },
		{ 0x7000001000, 0, 0x1000, 0x7000000000, true },
		{ 0x9000001000, 0, 0x10000001000, 0x7000000000, false },
		/* Times are never negative. */
		{ 1, 0xb8, 0xb800001000, 0xb800000fff, false },
	};
	u8 bytes[] = { PSB, 0x84, 1, 0, 0xd0, 0, 0, 0x10, 0, 0, 0, 0x8c, 1, 0 };
	struct vmpt_run run = { .by_tsc = true, .owner = VM(1) };
	struct vmpt_run_report report = { 0 };
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(row); i++) {
		run.at = row[i].at;
		bytes[18] = row[i].sts;
		split_all(bytes, sizeof(bytes),
			  (struct vmpt_options){
				  .runs = &run, .run_count = 1, .run_report = &report });
		ck_assert(report.aligned);
		ck_assert_uint_eq(report.tsc, row[i].tsc);
		ck_assert_uint_eq(report.apart, row[i].apart);
		ck_assert_uint_eq(report.never, row[i].never);
		ck_assert_int_eq(report.apart > VMPT_RUNS_APART, i > 2);
	}
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/rtit-owners");
	TCase *t = tcase_create("truth");

	tcase_add_loop_test(t, truth, 0, HOWS);
	suite_add_tcase(s, t);
	t = tcase_create("hand");
	tcase_add_test(t, behind_an_overflow);
	tcase_add_test(t, no_time_behind);
	tcase_add_test(t, runs_that_never_came);
	tcase_add_test(t, runs_far_away);
	suite_add_tcase(s, t);
	return s;
}
