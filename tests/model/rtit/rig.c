// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* See rig.h. */
#include <stdio.h>

#include "tests/model/rtit/rig.h"

struct rig rig;

/* 2.3: BASE + (OFFSET & MASK); 3.3.10: (BASE AND ~MASK). */
static u64 address(u64 offset)
{
	return (rig.base & ~rig.mask) + (offset & rig.mask);
}

static int take(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	size_t i;

	ck_assert_ptr_eq(opaque, &rig);
	ck_assert_uint_gt(len, 0);
	ck_assert_uint_le(rig.size + len, sizeof(rig.bytes));
	ck_assert_uint_eq(pa, address(rig.offset));
	if (rig.refuse && !rig.takes)
		return rig.refuse;
	rig.takes -= rig.refuse != 0;
	for (i = 0; i < len; i++) {
		ck_assert_uint_eq(pa + i, address(rig.offset));
		/* Table 13: "ANDed with RTIT write pointer offset" */
		rig.offset = ((rig.offset & rig.mask) + 1) & rig.mask;
		rig.pa[rig.size] = pa + i;
		rig.bytes[rig.size++] = bytes[i];
	}
	return 0;
}

void rig_init(void)
{
	rig.size = 0;
	rig.shown = 0;
	rig.text[0] = 0;
	rig.cycle_acc = false;
	memset(&rig.state, 0, sizeof(rig.state));
	rig.state.keep = rig.config.options.psb_clears_late;
	ck_assert_int_eq(vmpt_rtit_unit_init(&rig.unit, &rig.config), 0);
	ck_assert_uint_eq(rd(CTL), 0);
	rig.unit.mode = (struct vmpt_rtit_mode){ .cr3 = 0x1000, .paging = true };
	rig.unit.acbr = 20;
	rig.unit.ecbr = 10;
	wr(EVENTS, EVENT(ALWAYS, NEVER));
	wr(BASE_ADDR, 0x10000000);
	wr(LIMIT_MASK, 0xfff);
	wr(OFFSET, 0);
}

void rig_erratum(unsigned int n)
{
	rig.config.options.errata = VMPT_RTIT_ERRATUM(n);
	rig_init();
}

void rig_setup(void)
{
	memset(&rig, 0, sizeof(rig));
	rig.sink.write = take;
	rig.sink.opaque = &rig;
	rig.config.sink = &rig.sink;
	rig_init();
}

/* Convert sent packets to text, before something changes how to decode them. */
static void pick_up(void)
{
	vmpt_rtit_unit_drain(&rig.unit);
	rtit_text(&rig.state, rig.bytes + rig.shown, rig.size - rig.shown, rig.cycle_acc, rig.text,
		  sizeof(rig.text));
	rig.shown = rig.size;
}

/* ---- MSRs ---- */

void wr_at(u32 msr, u64 value, u64 next_ip)
{
	size_t made = rig.size + rig.unit.used;

	if (msr == CTL) {
		if (rig.cycle_acc != !!(value & CYCLE_ACC))
			pick_up();
		rig.cycle_acc = value & CYCLE_ACC;
	}
	ck_assert_msg(!vmpt_rtit_unit_wrmsr(&rig.unit, msr, value, next_ip), "WRMSR %x, %llx", msr,
		      (unsigned long long)value);
	switch (msr) {
	case BASE_ADDR:
		rig.base = value;
		break;
	case LIMIT_MASK:
		rig.mask = value;
		break;
	case OFFSET:
		rig.offset = value;
		break;
	default:
		return;
	}
	/* Earlier packets went to the old place. */
	if (!rig.refuse)
		ck_assert_uint_ge(rig.size, made);
}

void wr(u32 msr, u64 value)
{
	wr_at(msr, value, NEXT);
}

u64 rd(u32 msr)
{
	u64 value = 0;

	vmpt_rtit_unit_drain(&rig.unit);
	ck_assert_msg(!vmpt_rtit_unit_rdmsr(&rig.unit, msr, &value), "RDMSR %x", msr);
	return value;
}

void ctl_set(u64 bits)
{
	wr(CTL, rd(CTL) | bits);
}

void ctl_clear(u64 bits)
{
	wr(CTL, rd(CTL) & ~bits);
}

u64 status(void)
{
	return rd(STATUS);
}

void range0(u64 base, u64 limit)
{
	wr(LIP0, base);
	wr(LIP2, limit);
}

void range1(u64 base, u64 limit)
{
	wr(LIP1, base);
	wr(LIP3, limit);
}

void on_shown(u64 ctl)
{
	wr(CTL, ctl | DEST | TRACE_EN);
	wr(CTL, ctl | DEST | TRACE_EN | TRACE_ACTIVE);
}

void on(u64 ctl)
{
	on_shown(ctl);
	rig_skip();
}

void off(void)
{
	ctl_clear(TRACE_ACTIVE);
	ctl_clear(TRACE_EN);
}

void rig_outside(u64 ctl)
{
	range0(RIG_IN, RIG_LIMIT);
	wr(EVENTS, EVENT(RANGE0, NEVER));
	wr_at(CTL, ctl | DEST | TRACE_EN, RIG_OUT);
	wr_at(CTL, ctl | DEST | TRACE_EN | TRACE_ACTIVE, RIG_OUT);
	rig_skip();
	ck_assert(!rig.unit.packet_en);
}

void rig_inside(u64 ctl)
{
	rig_outside(ctl);
	jmp(RIG_OUT + 5, RIG_IN + 0x80);
	rig_skip();
	ck_assert(rig.unit.packet_en);
	expect_tnt(1);
}

/* ---- what was sent ---- */

const char *rig_text(void)
{
	static char shown[sizeof(rig.text)];

	pick_up();
	memcpy(shown, rig.text, strlen(rig.text) + 1);
	rig.text[0] = 0;
	return shown;
}

void rig_skip(void)
{
	rig_text();
}

void expect_bytes(const char *want)
{
	static char text[3 * sizeof(rig.bytes) + 1];
	size_t i, from = rig.shown;

	pick_up();
	text[0] = 0;
	for (i = from; i < rig.size; i++)
		snprintf(text + 3 * (i - from), 4, i + 1 < rig.size ? "%02x " : "%02x",
			 rig.bytes[i]);
	rig.text[0] = 0;
	ck_assert_str_eq(text, want);
}

/* ---- events ---- */

void far(u64 ip, u64 target)
{
	struct vmpt_rtit_far f = { .ip = ip, .target = target, .mode = rig.unit.mode };

	vmpt_rtit_unit_far(&rig.unit, &f);
}

void far_cpl(u64 ip, u64 target, unsigned int cpl)
{
	struct vmpt_rtit_far f = { .ip = ip, .target = target, .mode = rig.unit.mode };

	f.mode.cpl = (u8)cpl;
	vmpt_rtit_unit_far(&rig.unit, &f);
}

void far_cr3(u64 ip, u64 target, u64 cr3)
{
	struct vmpt_rtit_far f = { .ip = ip, .target = target, .mode = rig.unit.mode };

	f.mode.cr3 = cr3;
	vmpt_rtit_unit_far(&rig.unit, &f);
}

void jcc(bool taken, u64 next, u64 target)
{
	vmpt_rtit_unit_jcc(&rig.unit, taken, next, target);
}

void jccs(const char *which)
{
	for (; *which; which++)
		jcc(*which == 'T', 0x401102, 0x401180);
}

void step(u64 next)
{
	vmpt_rtit_unit_step(&rig.unit, next);
}

void jmp(u64 next, u64 target)
{
	vmpt_rtit_unit_jmp(&rig.unit, next, target);
}

void call(u64 next, u64 target)
{
	vmpt_rtit_unit_call(&rig.unit, next, target);
}

void jmp_ind(u64 next, u64 target)
{
	vmpt_rtit_unit_jmp_indirect(&rig.unit, next, target);
}

void call_ind(u64 next, u64 target)
{
	vmpt_rtit_unit_call_indirect(&rig.unit, next, target);
}

void ret(u64 next, u64 target)
{
	vmpt_rtit_unit_ret(&rig.unit, next, target);
}

void mov_cr3(u64 next, u64 cr3)
{
	vmpt_rtit_unit_mov_cr3(&rig.unit, next, cr3);
}

void cycles(u64 more)
{
	struct vmpt_rtit_clocks now = rig.unit.now;

	now.cycles += more;
	vmpt_rtit_unit_time(&rig.unit, &now);
}

void tsc(u64 value)
{
	struct vmpt_rtit_clocks now = rig.unit.now;

	now.tsc = value;
	vmpt_rtit_unit_time(&rig.unit, &now);
}

int rig_rows(const struct rig_row *rows, size_t n)
{
	int count = 0;

	while (n--)
		count += rows[n].name != NULL;
	return count;
}

static void run_row(const struct rig_row *r, void (*op)(u64 next, u64 target), const char *name,
		    size_t at)
{
	const char *text;

	if (r->cr3_match)
		wr(CR3_MATCH, r->cr3_match);
	if (r->start)
		r->start(r->ctl);
	if (r->set)
		ctl_set(r->set);
	if (r->clear)
		ctl_clear(r->clear);
	if (r->jccs)
		jccs(r->jccs);
	if (r->op || op)
		(r->op ? r->op : op)(r->next, r->target);
	text = rig_text();
	ck_assert_msg(!r->sent || !strcmp(text, r->sent), "row %s, line %zu: '%s', not '%s'", name,
		      at, text, r->sent);
	ck_assert_msg(!r->tnt || rd(TNT_BUFF) == r->tnt, "row %s, line %zu: TNT_BUFF is %llx", name,
		      at, (unsigned long long)rd(TNT_BUFF));
	ck_assert_msg((status() & (r->on | r->off)) == r->on, "row %s, line %zu: STATUS is %llx",
		      name, at, (unsigned long long)status());
	ck_assert_msg(r->packet_en == RIG_ANY || rig.unit.packet_en == (r->packet_en == RIG_ON),
		      "row %s, line %zu: PacketEn is %d", name, at, rig.unit.packet_en);
}

void rig_run(const struct rig_row *rows, size_t n, int which, void (*op)(u64 next, u64 target))
{
	const struct rig_row *first = rows, *r;

	while (!first->name || which--)
		first++;
	for (r = first; r < rows + n && (r == first || !r->name); r++)
		run_row(r, op, first->name, (size_t)(r - first));
}

Suite *rig_table_suite(const char *name, const TTest *row, size_t rows, const TTest *const *tests,
		       size_t n)
{
	Suite *suite = suite_create(name);
	TCase *tc = tcase_create(name);
	size_t i;

	tcase_add_checked_fixture(tc, rig_setup, NULL);
	if (rows)
		tcase_add_loop_test(tc, row, 0, (int)rows);
	for (i = 0; i < n; i++)
		tcase_add_test(tc, tests[i]);
	suite_add_tcase(suite, tc);
	return suite;
}

Suite *rig_suite(const char *name, const TTest *const *tests, size_t n)
{
	return rig_table_suite(name, NULL, 0, tests, n);
}
