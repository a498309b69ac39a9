// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/shadow/position.c: where the processor starts and what its MSRs mean to the guest. The
 * processor's values are set by hand.
 */
#include "tests/support/support.h"
#include "tests/vmm-lib/shadow-rig.h"

#define SIZE(n)	 ((u64)(n) << VMPT_TOPA_SIZE_SHIFT)
#define END	 VMPT_TOPA_END
#define INT	 VMPT_TOPA_INT
#define STOP	 VMPT_TOPA_STOP
#define TABLE	 0x1000ULL
#define OTHER	 0x2000ULL
#define STOPPED	 VMPT_STATUS_STOPPED
#define ERROR	 VMPT_STATUS_ERROR
#define PEND_PMI VMPT_STATUS_PEND_PMI

static struct rig rig;
static struct vmpt_vcpu *const vcpu = &rig.vcpu;
static u64 status;
static bool pmi;

static void setup(void)
{
	rig_init(&rig, 1024, 3);
	rig_at(&rig, TABLE, 0, 0);
	status = 0;
	pmi = false;
}

static void teardown(void)
{
	rig_free(&rig);
}

/* 64 KiB at 20000H in five parts, at 0, 4000H, 5000H, 7000H and 8000H. */
static void scatter_64k(void)
{
	u32 i;

	for (i = 0; i < 16; i++)
		rig.guest.frame[32 + i] = (i < 4 ? 100 : i < 8 ? 105 - 4 : 112 - 8) + i;
}

static void long_table(u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		rig_entry(&rig, TABLE, i, 0x100000 + (u64)i % 256 * 0x1000);
	rig_entry(&rig, TABLE, n, TABLE | END);
}

static int back(u32 page, u32 index, u32 offset)
{
	return vmpt_shadow_take_back(vcpu, RIG_PAGE_HPA(page), vmpt_pt_mask_ptrs(index, offset),
				     &status, &pmi);
}

static void guest_at(u64 base, u32 index, u32 offset)
{
	ck_assert_msg(vcpu->regs.output_base == base &&
			      vcpu->regs.output_mask_ptrs == vmpt_pt_mask_ptrs(index, offset),
		      "guest at %#llx %#llx", (unsigned long long)vcpu->regs.output_base,
		      (unsigned long long)vcpu->regs.output_mask_ptrs);
}

static void hw_at(u32 page, u32 index, u32 offset)
{
	u64 base, mask_ptrs;
	bool topa;

	vmpt_shadow_regs(vcpu, &base, &mask_ptrs, &topa);
	ck_assert(topa);
	ck_assert_msg(base == RIG_PAGE_HPA(page) && mask_ptrs == vmpt_pt_mask_ptrs(index, offset),
		      "processor at %#llx %#llx", (unsigned long long)base,
		      (unsigned long long)mask_ptrs);
}

/* The guest's OutputOffset, and entry and offset of the processor. */
struct place_row {
	u32 at, slot, offset;
};

static const struct place_row place_rows[] = {
	{ 0, 0, 0 },	      { 1, 0, 1 },	{ 0x3fff, 0, 0x3fff }, { 0x4000, 1, 0 },
	{ 0x4fff, 1, 0xfff }, { 0x5000, 2, 0 }, { 0x6fff, 2, 0x1fff }, { 0x7000, 3, 0 },
	{ 0x7fff, 3, 0xfff }, { 0x8000, 4, 0 }, { 0x8001, 4, 1 },      { 0xffff, 4, 0x7fff },
};

static void places(u64 table, u32 index)
{
	u32 i;

	ck_assert_int_eq(vmpt_shadow_build(vcpu), 0);
	ck_assert_int_eq(vcpu->shadow.end, VMPT_SHADOW_RING);
	for (i = 0; i < VMPT_ARRAY_SIZE(place_rows); i++) {
		const struct place_row *row = &place_rows[i];

		ck_assert_int_eq(back(0, row->slot, row->offset), 0);
		if (vcpu->regs.ctl & VMPT_CTL_TOPA)
			guest_at(table, index, row->at);
		else
			ck_assert_uint_eq(vcpu->regs.output_mask_ptrs >> 32, row->at);
		ck_assert(!vcpu->shadow.stale);
		hw_at(0, row->slot, row->offset);
		/* the same from a new build */
		ck_assert_int_eq(vmpt_shadow_build(vcpu), 0);
		hw_at(0, row->slot, row->offset);
	}
}

START_TEST(there_and_back)
{
	scatter_64k();
	rig_entry(&rig, TABLE, 0, 0x20000 | SIZE(4));
	rig_entry(&rig, TABLE, 1, TABLE | END);
	places(TABLE, 0);
}
END_TEST

START_TEST(there_and_back_range)
{
	scatter_64k();
	rig_range(&rig, 0x20000, 0xffff, 0);
	places(0x20000, 0);
	ck_assert_uint_eq(vcpu->regs.output_base, 0x20000);
	ck_assert_uint_eq((u32)vcpu->regs.output_mask_ptrs, 0xffff);
	/* full: at its base again; also through the END after the last part */
	ck_assert_int_eq(back(0, 4, 0x8000), 0);
	ck_assert_uint_eq(vcpu->regs.output_mask_ptrs, 0xffff);
	ck_assert_int_eq(back(0, 5, 0), 0);
	ck_assert_uint_eq(vcpu->regs.output_mask_ptrs, 0xffff);
	hw_at(0, 0, 0);
}
END_TEST

/* The end of a full part is the start of the next one. */
START_TEST(full_parts)
{
	scatter_64k();
	rig_entry(&rig, TABLE, 0, 0x20000 | SIZE(4));
	rig_entry(&rig, TABLE, 1, 0x30000 | INT);
	rig_entry(&rig, TABLE, 2, TABLE | END);
	ck_assert_int_eq(vmpt_shadow_build(vcpu), 0);
	ck_assert_int_eq(back(0, 0, 0x4000), 0);
	guest_at(TABLE, 0, 0x4000);
	ck_assert_int_eq(back(0, 4, 0x8000), 0);
	guest_at(TABLE, 1, 0);
	hw_at(0, 5, 0);
	ck_assert_int_eq(back(0, 5, 0x1000), 0);
	guest_at(TABLE, 0, 0);
	hw_at(0, 0, 0);
	/* a PMI of a ring is the guest's */
	pmi = true;
	status = PEND_PMI;
	ck_assert_int_eq(back(0, 0, 1), 0);
	ck_assert(pmi && status == PEND_PMI);
}
END_TEST

/* The links between the pages, and entries on both sides of them. */
START_TEST(links)
{
	long_table(3 * 511);
	ck_assert_int_eq(vmpt_shadow_build(vcpu), 0);
	ck_assert_int_eq(back(0, 510, 0xfff), 0);
	guest_at(TABLE, 510, 0xfff);
	ck_assert_int_eq(back(0, 510, 0x1000), 0);
	guest_at(TABLE, 511, 0);
	hw_at(1, 0, 0);
	ck_assert_int_eq(back(0, 511, 0), 0);
	guest_at(TABLE, 511, 0);
	hw_at(1, 0, 0);
	ck_assert_int_eq(back(1, 1, 7), 0);
	guest_at(TABLE, 512, 7);
	ck_assert_int_eq(back(2, 511, 0), 0);
	guest_at(TABLE, 0, 0);
}
END_TEST

/* A position outside the shadow: nothing changes. */
START_TEST(not_ours)
{
	static const struct {
		u64 base;
		u32 index, offset;
	} rows[] = {
		{ RIG_PAGE_HPA(0) + 8, 0, 0 },	{ TABLE, 0, 0 },
		{ RIG_PAGE_HPA(0), 512, 0 },	{ RIG_PAGE_HPA(0), 0x1ffffff, 0 },
		{ RIG_PAGE_HPA(0), 5, 0x1001 }, { RIG_PAGE_HPA(0), 511, 1 },
		{ RIG_PAGE_HPA(1), 89, 0 },	{ RIG_PAGE_HPA(1), 90, 0 },
		{ RIG_PAGE_HPA(2), 0, 0 },	{ RIG_PAGE_HPA(3), 0, 0 },
		{ RIG_PAGE_HPA(0), 3, 0 },
	};
	struct vmpt_pt_regs before;

	long_table(600);
	rig_entry(&rig, TABLE, 599, 0x30000 | STOP);
	rig_at(&rig, TABLE, 0, 0);
	ck_assert_int_eq(vmpt_shadow_build(vcpu), 0);
	ck_assert_int_eq(back(0, 4, 0), 0);
	before = vcpu->regs;
	status = STOPPED;
	ck_assert_int_eq(vmpt_shadow_take_back(vcpu, rows[_i].base,
					       vmpt_pt_mask_ptrs(rows[_i].index, rows[_i].offset),
					       &status, &pmi),
			 -VMPT_E_HARDWARE);
	ck_assert(!memcmp(&before, &vcpu->regs, sizeof(before)));
	ck_assert_uint_eq(status, STOPPED);
	ck_assert(!vcpu->shadow.stale);
	hw_at(0, 4, 0);
}
END_TEST

/* STOP of the guest: the processor's OutputOffset, either value, is the guest's. */
START_TEST(guest_stop)
{
	const u32 less = (u32)_i;

	scatter_64k();
	rig_entry(&rig, TABLE, 0, 0x20000 | SIZE(4) | STOP | INT);
	ck_assert_int_eq(vmpt_shadow_build(vcpu), 0);
	status = STOPPED;
	pmi = true;
	ck_assert_int_eq(back(0, 4, 0x8000 - less), 0);
	guest_at(TABLE, 0, 0x10000 - less);
	ck_assert_uint_eq(status, STOPPED);
	ck_assert(pmi && !vcpu->shadow.stale && !vcpu->events && !vcpu->force_psb);
	vcpu->regs.status = status;
	/* entered again unchanged: nothing to build */
	ck_assert_int_eq(vmpt_shadow_ready(vcpu), 0);
	hw_at(0, 4, 0x8000 - less);
	/* after STOP there is nothing, not even the END that follows */
	ck_assert_int_eq(back(0, 5, 0), -VMPT_E_HARDWARE);
	/* memory moves: the position is kept */
	ck_assert(vmpt_shadow_invalidate(vcpu, 0x20000, 1));
	ck_assert_int_eq(vmpt_shadow_ready(vcpu), 0);
	ck_assert(vcpu->shadow.frozen);
	hw_at(0, 0, 0);
	status = STOPPED | ERROR; /* the processor did not like the entry */
	ck_assert_int_eq(back(0, 0, 0), 0);
	guest_at(TABLE, 0, 0x10000 - less);
	ck_assert_uint_eq(status, STOPPED);
	ck_assert(!pmi);
	ck_assert_int_eq(back(1, 0, 0), -VMPT_E_HARDWARE);
	ck_assert_int_eq(vmpt_shadow_ready(vcpu), 0);
	/* the guest continues */
	vcpu->regs.status = 0;
	rig_at(&rig, TABLE, 0, 0x8004);
	ck_assert_int_eq(vmpt_shadow_ready(vcpu), 0);
	ck_assert(!vcpu->shadow.frozen);
	hw_at(0, 4, 4);
}
END_TEST

/* The end of the window, in slot 511 * 3 - 1, as processors may report it. */
struct end_row {
	u64 status;
	u32 offset;
	bool trace_stop;
	u64 want; /* STATUS */
	bool end, lost;
};

static const struct end_row end_rows[] = {
	{ STOPPED, 0x1000, false, VMPT_STATUS_TRIGGER_EN, true, true },
	{ STOPPED, 0xfff, false, VMPT_STATUS_TRIGGER_EN, true, true },
	{ STOPPED | ERROR, 0x1000, false, ERROR, true, true },
	{ 0, 0x1000, false, 0, true, false },
	{ 0, 0xfff, false, 0, false, false },
	/* a TraceStop before the last byte is the guest's */
	{ STOPPED, 0xfff, true, STOPPED, false, false },
	{ STOPPED, 0x1000, true, VMPT_STATUS_TRIGGER_EN, true, true },
	{ STOPPED, 0x800, false, STOPPED, false, false },
};

START_TEST(window_end)
{
	const struct end_row *row = &end_rows[_i];

	long_table(2000);
	ck_assert_int_eq(vmpt_shadow_build(vcpu), 0);
	if (row->trace_stop)
		vcpu->regs.ctl |= (u64)VMPT_ADDR_TRACESTOP << VMPT_CTL_ADDR_SHIFT(3);
	else
		vcpu->regs.ctl |= (u64)VMPT_ADDR_FILTER << VMPT_CTL_ADDR_SHIFT(0);
	status = row->status;
	pmi = true;
	ck_assert_int_eq(back(2, 510, row->offset), 0);
	ck_assert_uint_eq(status, row->want);
	ck_assert(!pmi);
	if (row->end)
		guest_at(TABLE, 3 * 511, 0);
	else
		guest_at(TABLE, 3 * 511 - 1, row->offset);
	ck_assert(vcpu->shadow.stale);
	ck_assert(vcpu->force_psb == row->lost);
	ck_assert(vcpu->events == (row->lost ? VMPT_EVENT_LOST : 0));
	if (row->status)
		return;
	ck_assert_int_eq(vmpt_shadow_ready(vcpu), 0);
	hw_at(0, 0, row->offset & 0xfff);
}
END_TEST

/* Single range: the window ends inside it, or with it. */
START_TEST(range_window)
{
	u32 i;

	rig_free(&rig);
	rig_init(&rig, 1024, 1);
	for (i = 0; i < 512; i++)
		rig.guest.frame[512 + i] = 1023 - i;
	rig_range(&rig, 0x200000, 0x1fffff, 0x1000);
	ck_assert_int_eq(vmpt_shadow_build(vcpu), 0);
	ck_assert_int_eq(vcpu->shadow.end, VMPT_SHADOW_WINDOW);
	status = STOPPED;
	ck_assert_int_eq(back(0, 510, 0x1000), 0);
	ck_assert_uint_eq(vcpu->regs.output_mask_ptrs, 0x1ff000001fffffULL);
	ck_assert_int_eq(vmpt_shadow_ready(vcpu), 0);
	hw_at(0, 0, 0);
	ck_assert_int_eq(back(0, 0, 0x1000), 0);
	ck_assert_uint_eq(vcpu->regs.output_mask_ptrs, 0x1fffff);
}
END_TEST

/* Who owns the PMI, in a window of 511 with its own INT in 255 and 510. */
struct pmi_row {
	u32 guest_int; /* an entry of the guest with INT; 600: none */
	u32 from, to, offset;
	u64 loaded, status;
	bool guest;
	u64 want;
	bool stale;
};

static const struct pmi_row pmi_rows[] = {
	{ 600, 0, 256, 0, 0, 0, false, 0, true },
	{ 600, 0, 255, 0xfff, 0, 0, false, 0, false },
	{ 600, 0, 255, 0x1000, 0, 0, false, 0, true },
	{ 600, 0, 256, 0, 0, PEND_PMI, false, 0, true },
	{ 600, 0, 256, 0, PEND_PMI, PEND_PMI, false, PEND_PMI, true },
	{ 600, 0, 510, 0x1000, 0, PEND_PMI, false, 0, true },
	{ 10, 0, 11, 0, 0, PEND_PMI, true, PEND_PMI, false },
	{ 10, 0, 10, 0xfff, 0, 0, false, 0, false },
	{ 10, 0, 10, 0x1000, 0, 0, true, 0, false },
	{ 10, 0, 300, 0, 0, PEND_PMI, true, PEND_PMI, true },
	{ 10, 11, 300, 0, 0, PEND_PMI, false, 0, true },
	{ 255, 0, 256, 0, 0, 0, true, 0, true },
	{ 255, 0, 255, 0, 0, 0, false, 0, false },
	{ 510, 0, 510, 0x1000, 0, 0, true, 0, true },
	{ 510, 0, 510, 0, 0, 0, false, 0, true },
};

START_TEST(pmis)
{
	const struct pmi_row *row = &pmi_rows[_i];

	rig.memory.pages = 1;
	long_table(600);
	if (row->guest_int < 600)
		rig_entry(&rig, TABLE, row->guest_int, 0x30000 | INT);
	ck_assert_int_eq(vmpt_shadow_build(vcpu), 0);
	ck_assert_int_eq(back(0, row->from, 0), 0);
	ck_assert_int_eq(vmpt_shadow_ready(vcpu), 0);
	ck_assert_uint_eq(vcpu->shadow.slot, row->from);
	vcpu->loaded_status = row->loaded;
	status = row->status;
	pmi = true;
	ck_assert_int_eq(back(0, row->to, row->offset), 0);
	ck_assert(pmi == row->guest);
	ck_assert_uint_eq(status, row->want);
	ck_assert(vcpu->shadow.stale == row->stale);
	rig.memory.pages = 3;
}
END_TEST

/* PendTopaPMI was loaded under InjectPsbPmiOnEnable: the entry pended the guest's PMI. */
START_TEST(pended_by_enable)
{
	bool inject = _i;
	int n;

	long_table(2000);
	vcpu->regs.ctl |= inject ? VMPT_CTL_INJECT : 0;
	vcpu->loaded_status = PEND_PMI;
	for (n = 0; n < 3; n++) {
		if (n == 1)
			rig_range(&rig, GUEST_PAGE, 0xfff, 0);
		vcpu->regs.status = n == 2 ? STOPPED : 0;
		ck_assert_int_eq(vmpt_shadow_build(vcpu), 0);
		pmi = true;
		status = PEND_PMI | vcpu->regs.status;
		if (n == 1)
			ck_assert_int_eq(vmpt_shadow_take_back(vcpu, GUEST_HPA + GUEST_PAGE, 0xfff,
							       &status, &pmi),
					 0);
		else
			ck_assert_int_eq(back(0, 0, 0), 0);
		ck_assert_msg(pmi == inject, "shadow %d", n);
		ck_assert_uint_eq(status, PEND_PMI | vcpu->regs.status);
		pmi = false;
	}
}
END_TEST

/* One output entry: its INT comes before the region is full (33.2.7.2). */
START_TEST(early_int)
{
	bool guest = _i;

	vcpu->host_rules.topa_multi = 0;
	rig_entry(&rig, TABLE, 0, 0x20000 | SIZE(1) | (guest ? INT : 0));
	rig_entry(&rig, TABLE, 1, 0x30000);
	ck_assert_int_eq(vmpt_shadow_build(vcpu), 0);
	ck_assert_int_eq(vcpu->shadow.end, VMPT_SHADOW_WINDOW);
	pmi = true;
	ck_assert_int_eq(back(0, 0, 0x1fc0), 0);
	ck_assert(pmi == guest);
	status = STOPPED;
	ck_assert_int_eq(back(0, 0, 0x2000), 0);
	guest_at(TABLE, 1, 0);
	ck_assert_int_eq(back(0, 1, 0), -VMPT_E_HARDWARE);
}
END_TEST

START_TEST(poison)
{
	rig_entry(&rig, TABLE, 0, 0x20000);
	rig_entry(&rig, TABLE, 1, 0x30000 | 2);
	ck_assert_int_eq(vmpt_shadow_build(vcpu), 0);
	ck_assert_int_eq(back(0, 0, 0x1000), 0);
	guest_at(TABLE, 1, 0);
	ck_assert_int_eq(vcpu->output_why, 0);
	status = ERROR;
	ck_assert_int_eq(back(0, 1, 0), 0);
	guest_at(TABLE, 1, 0);
	ck_assert_uint_eq(status, ERROR);
	ck_assert_int_eq(vcpu->output_why, VMPT_OUTPUT_RESERVED);
	ck_assert_int_eq(back(0, 2, 0), -VMPT_E_HARDWARE);
	/* an offset that is too large is kept */
	rig_at(&rig, TABLE, 0, 0x5678);
	ck_assert_int_eq(vmpt_shadow_build(vcpu), 0);
	hw_at(0, 0, 0);
	ck_assert_int_eq(back(0, 0, 0), 0);
	guest_at(TABLE, 0, 0x5678);
	ck_assert_int_eq(vcpu->output_why, VMPT_OUTPUT_OFFSET);
}
END_TEST

START_TEST(direct)
{
	u64 base, mask_ptrs;
	bool topa;

	rig_range(&rig, 0x20080, 0x7f, 0x12);
	ck_assert_int_eq(vmpt_shadow_build(vcpu), 0);
	vmpt_shadow_regs(vcpu, &base, &mask_ptrs, &topa);
	ck_assert(!topa && base == GUEST_HPA + 0x20080 && mask_ptrs == 0x120000007fULL);
	pmi = true;
	ck_assert_int_eq(vmpt_shadow_take_back(vcpu, base, 0x7f0000007fULL, &status, &pmi), 0);
	ck_assert_uint_eq(vcpu->regs.output_base, 0x20080);
	ck_assert_uint_eq(vcpu->regs.output_mask_ptrs, 0x7f0000007fULL);
	ck_assert(!pmi);
	/* an inserted packet */
	rig_range(&rig, 0x20080, 0x7f, 7);
	ck_assert_int_eq(vmpt_shadow_ready(vcpu), 0);
	vmpt_shadow_regs(vcpu, &base, &mask_ptrs, &topa);
	ck_assert_uint_eq(mask_ptrs, 0x70000007fULL);
	ck_assert_int_eq(vmpt_shadow_take_back(vcpu, base + 128, 0x7f, &status, &pmi),
			 -VMPT_E_HARDWARE);
	ck_assert_int_eq(vmpt_shadow_take_back(vcpu, base, 0xff, &status, &pmi), -VMPT_E_HARDWARE);
	ck_assert_int_eq(vmpt_shadow_take_back(vcpu, base, 0x800000007fULL, &status, &pmi),
			 -VMPT_E_HARDWARE);
	/* another base, another mask: another shadow */
	rig_range(&rig, 0x20100, 0x7f, 7);
	ck_assert_int_eq(vmpt_shadow_ready(vcpu), 0);
	ck_assert_uint_eq(vcpu->shadow.direct_base, GUEST_HPA + 0x20100);
	rig_range(&rig, 0x20100, 0xff, 7);
	ck_assert_int_eq(vmpt_shadow_ready(vcpu), 0);
	ck_assert_uint_eq((u32)vcpu->shadow.mask_ptrs, 0xff);
}
END_TEST

/* vmpt_shadow_ready(): what it detects, and what needs no build. */
START_TEST(ready)
{
	u64 reads;

	scatter_64k();
	rig_entry(&rig, TABLE, 0, 0x20000 | SIZE(4));
	rig_entry(&rig, TABLE, 1, 0x30000);
	rig_entry(&rig, TABLE, 2, TABLE | END);
	ck_assert_int_eq(vmpt_shadow_ready(vcpu), 0);
	reads = rig.guest.reads;
	ck_assert(reads);
	ck_assert_int_eq(vmpt_shadow_ready(vcpu), 0);
	rig_at(&rig, TABLE, 0, 0x5001); /* further in the region */
	hw_at(0, 2, 1);			/* found even without it */
	ck_assert_int_eq(vmpt_shadow_ready(vcpu), 0);
	hw_at(0, 2, 1);
	ck_assert_uint_eq(rig.guest.reads, reads);
	rig_at(&rig, TABLE, 0, 0x4ff0); /* back */
	ck_assert_int_eq(vmpt_shadow_ready(vcpu), 0);
	hw_at(0, 1, 0xff0);
	ck_assert_uint_gt(rig.guest.reads, reads);
	reads = rig.guest.reads;
	rig_at(&rig, TABLE, 1, 0); /* another region */
	ck_assert_int_eq(vmpt_shadow_ready(vcpu), 0);
	ck_assert_uint_gt(rig.guest.reads, reads);
	rig_at(&rig, TABLE, 1, 0x2000); /* beyond its end */
	ck_assert_int_eq(vmpt_shadow_ready(vcpu), 0);
	ck_assert_int_eq(vcpu->shadow.end, VMPT_SHADOW_POISON);
	rig_range(&rig, 0x20000, 0xffff, 0); /* another scheme */
	ck_assert_int_eq(vmpt_shadow_ready(vcpu), 0);
	ck_assert(!vcpu->shadow.topa);
	rig_range(&rig, 0x20000, 0x7fff, 0); /* another mask */
	ck_assert_int_eq(vmpt_shadow_ready(vcpu), 0);
	ck_assert_uint_eq(vcpu->shadow.high, 0x28000);
	/* only the scheme: the same values mean a table */
	rig_range(&rig, TABLE, 0xff, 0);
	ck_assert_int_eq(vmpt_shadow_ready(vcpu), 0);
	ck_assert_int_eq(vcpu->shadow.end, VMPT_SHADOW_DIRECT);
	vcpu->regs.ctl |= VMPT_CTL_TOPA;
	ck_assert_int_eq(vmpt_shadow_ready(vcpu), 0);
	hw_at(0, 0, 0);
}
END_TEST

/* A packet inserted after our own INT: the window moves, or nothing would announce its end. */
START_TEST(ready_after_the_half)
{
	u32 i;

	rig.memory.pages = 1;
	for (i = 0; i < 512; i++)
		rig.guest.frame[512 + i] = 1023 - i;
	rig_range(&rig, 0x200000, 0x1fffff, 0);
	ck_assert_int_eq(vmpt_shadow_ready(vcpu), 0);
	ck_assert_uint_eq(vcpu->shadow.half, 255);
	rig_range(&rig, 0x200000, 0x1fffff, 0xff008);
	ck_assert_int_eq(vmpt_shadow_ready(vcpu), 0);
	hw_at(0, 255, 8);
	rig_range(&rig, 0x200000, 0x1fffff, 0x100004);
	ck_assert_int_eq(vmpt_shadow_ready(vcpu), 0);
	hw_at(0, 0, 4);
	rig.memory.pages = 3;
}
END_TEST

START_TEST(not_built)
{
	ck_assert_int_eq(back(0, 0, 0), -VMPT_E_HARDWARE);
	/* whatever is in the page, the processor does not write */
	hw_at(0, 0, ~0U);
	rig_entry(&rig, TABLE, 0, 0x8000000);
	vcpu->on_mem[VMPT_MEM_UNBACKED] = VMPT_ON_MEM_RETRY;
	ck_assert_int_eq(vmpt_shadow_ready(vcpu), -VMPT_E_RETRY);
	hw_at(0, 0, ~0U);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("shadow-position");
	TCase *tcase = tcase_create("position");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, there_and_back);
	tcase_add_test(tcase, there_and_back_range);
	tcase_add_test(tcase, full_parts);
	tcase_add_test(tcase, links);
	tcase_add_loop_test(tcase, not_ours, 0, 11);
	tcase_add_loop_test(tcase, guest_stop, 0, 2);
	tcase_add_loop_test(tcase, window_end, 0, VMPT_ARRAY_SIZE(end_rows));
	tcase_add_test(tcase, range_window);
	tcase_add_loop_test(tcase, pmis, 0, VMPT_ARRAY_SIZE(pmi_rows));
	tcase_add_loop_test(tcase, pended_by_enable, 0, 2);
	tcase_add_loop_test(tcase, early_int, 0, 2);
	tcase_add_test(tcase, poison);
	tcase_add_test(tcase, direct);
	tcase_add_test(tcase, ready);
	tcase_add_test(tcase, ready_after_the_half);
	tcase_add_test(tcase, not_built);
	suite_add_tcase(suite, tcase);
	return suite;
}
