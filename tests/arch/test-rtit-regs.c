// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * arch/rtit-regs.c: every register of 3.3 of the RTIT Programming Reference bit by bit, against a
 * table typed from its tables 4 to 16; CTL must be read first (3.3.1); restore.
 */
#include "arch/rtit-regs.h"
#include "tests/support/support.h"

/* The effect of a write on a bit that the manual names; all others are reserved as 0. */
enum kind {
	RW,
	RO,  /* read-only: "no effect …, will not cause a #GP" (3.3.3) */
	EXT, /* LIP_SIGN_EXT: "writes to it have no effect" (Table 8) */
	ONE, /* reserved as 1 */
};

static const struct {
	u32 msr;
	u8 high, low, kind;
	const char *name;
} fields[] = {
	/* Table 8 */
	{ 0x760, 47, 0, RW, "LIPN_ADDR" },
	{ 0x760, 63, 48, EXT, "LIP_SIGN_EXT" },
	{ 0x761, 47, 0, RW, "LIPN_ADDR" },
	{ 0x761, 63, 48, EXT, "LIP_SIGN_EXT" },
	{ 0x762, 47, 0, RW, "LIPN_ADDR" },
	{ 0x762, 63, 48, EXT, "LIP_SIGN_EXT" },
	{ 0x763, 47, 0, RW, "LIPN_ADDR" },
	{ 0x763, 63, 48, EXT, "LIP_SIGN_EXT" },
	/* Table 4 */
	{ 0x768, 0, 0, RW, "Trace_En" },
	{ 0x768, 1, 1, RW, "Cycle_Acc" },
	{ 0x768, 2, 2, RW, "OS" },
	{ 0x768, 3, 3, RW, "User" },
	{ 0x768, 4, 4, RW, "STS_on_CR3" },
	{ 0x768, 7, 7, RW, "CR3En" },
	{ 0x768, 8, 8, RW, "Dest" },
	{ 0x768, 9, 9, RW, "MTC_En" },
	{ 0x768, 10, 10, RW, "STS_En" },
	{ 0x768, 11, 11, RW, "Cmprs_Ret" },
	{ 0x768, 12, 12, RW, "Less_Pkts" },
	{ 0x768, 13, 13, RW, "TraceActive" },
	{ 0x768, 15, 14, RW, "MTC_Range" },
	/* 3.3.3 */
	{ 0x769, 0, 0, RW, "FilterEn" },
	{ 0x769, 1, 1, RO, "ContextEn" },
	{ 0x769, 2, 2, RO, "TriggerEn" },
	{ 0x769, 3, 3, RW, "Buffer_Overflow" },
	/* Table 5 */
	{ 0x76b, 21, 0, RW, "CNTP" },
	/* Table 6 */
	{ 0x76c, 2, 0, RW, "Filter_Event_ID" },
	{ 0x76c, 5, 3, RW, "TraceStop_Event_ID" },
	/* Table 9 */
	{ 0x76e, 15, 0, RW, "CMPRS_LIP_LOW" },
	{ 0x76e, 31, 16, RW, "CMPRS_LIP_HIGH" },
	{ 0x76e, 32, 32, RW, "CMPRS_LIP_Valid" },
	/* Table 16 */
	{ 0x76f, 31, 0, RW, "Call_NLIP[31:0]" },
	{ 0x76f, 47, 32, RW, "Call_NLIP[47:32]" },
	{ 0x76f, 48, 48, RW, "NLIP_Valid" },
	/* Table 12 */
	{ 0x770, 35, 6, RW, "Base_Phys_Addr" },
	/* Table 13 */
	{ 0x771, 5, 0, ONE, "Rsvd_as_1" },
	{ 0x771, 21, 6, RW, "Mask_Value" },
	/* Table 14 */
	{ 0x772, 21, 0, RW, "Offset" },
	/* Table 10 */
	{ 0x777, 35, 5, RW, "CR3[35:5]" },
	/* Table 11 */
	{ 0x77c, 13, 0, RW, "Pkt_Cnt" },
	{ 0x77c, 17, 16, RW, "Pkt_Mask" },
	/* Table 15 */
	{ 0x77d, 6, 0, RW, "TNT" },
};

static const struct reg {
	u32 msr;
	const char *name;
	u64 reset;
} regs[] = {
	{ 0x760, "RTIT_LIP0", 0 },
	{ 0x761, "RTIT_LIP1", 0 },
	{ 0x762, "RTIT_LIP2", 0 },
	{ 0x763, "RTIT_LIP3", 0 },
	{ 0x768, "RTIT_CTL", 0 },
	{ 0x769, "RTIT_STATUS", 0 },
	{ 0x76b, "RTIT_CNTP", 0 },
	{ 0x76c, "RTIT_EVENTS", 0 },
	{ 0x76e, "RTIT_LAST_LIP", 0 },
	{ 0x76f, "RTIT_LAST_CALL_NLIP", 0 },
	{ 0x770, "RTIT_BASE_ADDR", 0xfdc00000 },
	{ 0x771, "RTIT_LIMIT_MASK", 0x7f },
	{ 0x772, "RTIT_OFFSET", 0 },
	{ 0x777, "RTIT_CR3_MATCH", 0 },
	{ 0x77c, "RTIT_PKT_CNT", 0x00020000 },
	{ 0x77d, "RTIT_TNT_BUFF", 1 },
};

#define REGS	 VMPT_ARRAY_SIZE(regs)
#define CTL	 0x768
#define STATUS	 0x769
#define TNT_BUFF 0x77d

static const struct vmpt_rtit_rules plain, extended = { .lip_sign_extended = true };

/* The kind of bit @bit, -1 if it is reserved as 0. */
static int kind_of(u32 msr, unsigned int bit)
{
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(fields); i++)
		if (fields[i].msr == msr && fields[i].low <= bit && bit <= fields[i].high)
			return fields[i].kind;
	return -1;
}

/* All bits of @msr of kind @kind. */
static u64 bits_of(u32 msr, int kind)
{
	u64 bits = 0;
	unsigned int bit;

	for (bit = 0; bit < 64; bit++)
		if (kind_of(msr, bit) == kind)
			bits |= 1ULL << bit;
	return bits;
}

/* After RESET, with CTL read. */
static struct vmpt_rtit_regs fresh(void)
{
	struct vmpt_rtit_regs r;
	u64 value = 1;

	memset(&r, 0xff, sizeof(r));
	vmpt_rtit_reset(&r);
	ck_assert_int_eq(vmpt_rtit_rdmsr(&plain, &r, CTL, &value, NULL), 0);
	ck_assert_uint_eq(value, 0);
	return r;
}

static u64 get(struct vmpt_rtit_regs *r, u32 msr)
{
	u64 value = 0xdead;

	if (vmpt_rtit_rdmsr(&plain, r, msr, &value, NULL))
		ck_abort_msg("%x: #GP", msr);
	return value;
}

static void set(struct vmpt_rtit_regs *r, u32 msr, u64 value)
{
	enum vmpt_gp_reason why = VMPT_GP_REASONS;

	if (vmpt_rtit_check_wrmsr(r, msr, value, &why) ||
	    vmpt_rtit_wrmsr(&plain, r, msr, value, &why))
		ck_abort_msg("%x, %llx: #GP, reason %d", msr, (unsigned long long)value, why);
}

/* Nothing is stored; ctl_read is the last member, all before are u64. */
static void refused(const struct vmpt_rtit_regs *r, u32 msr, u64 value, enum vmpt_gp_reason reason)
{
	struct vmpt_rtit_regs copy = *r;
	enum vmpt_gp_reason why = VMPT_GP_NONE, checked = VMPT_GP_NONE;

	if (vmpt_rtit_wrmsr(&plain, &copy, msr, value, &why) != VMPT_GP)
		ck_abort_msg("%x, %llx: no #GP", msr, (unsigned long long)value);
	if (vmpt_rtit_check_wrmsr(r, msr, value, &checked) != VMPT_GP || checked != why)
		ck_abort_msg("%x, %llx: the check alone differs", msr, (unsigned long long)value);
	if (why != reason)
		ck_abort_msg("%x, %llx: reason %d", msr, (unsigned long long)value, why);
	if (vmpt_rtit_wrmsr(&plain, &copy, msr, value, NULL) != VMPT_GP ||
	    memcmp((const u8 *)&copy, (const u8 *)r, offsetof(struct vmpt_rtit_regs, ctl_read)) ||
	    copy.ctl_read != r->ctl_read)
		ck_abort_msg("%x, %llx: #GP, but something changed", msr,
			     (unsigned long long)value);
}

/* ---- which there are ---- */

START_TEST(msr_numbers)
{
	struct vmpt_rtit_regs r = fresh();
	u64 value = 5, *seen[REGS];
	size_t n = 0, i;
	u32 msr;

	ck_assert_uint_eq(REGS, 16);
	ck_assert_uint_eq(VMPT_RTIT_MSRS, 16);
	for (msr = 0; msr < 0x2000; msr++) {
		bool is = n < REGS && regs[n].msr == msr;
		u64 *reg = vmpt_rtit_reg(&r, msr);

		ck_assert_msg(vmpt_rtit_is_msr(msr) == is, "%x", msr);
		ck_assert_msg(!reg == !is, "%x", msr);
		if (is) {
			for (i = 0; i < n; i++)
				ck_assert_ptr_ne(seen[i], reg);
			ck_assert_uint_eq(vmpt_rtit_reg_table[n].msr, msr);
			ck_assert_str_eq(vmpt_rtit_reg_table[n].name, regs[n].name);
			seen[n++] = reg;
			continue;
		}
		ck_assert_int_eq(vmpt_rtit_rdmsr(&plain, &r, msr, &value, NULL), -VMPT_E_INVAL);
		ck_assert_int_eq(vmpt_rtit_wrmsr(&plain, &r, msr, 0, NULL), -VMPT_E_INVAL);
		ck_assert_int_eq(vmpt_rtit_check_wrmsr(&r, msr, 0, NULL), -VMPT_E_INVAL);
		ck_assert_int_eq(vmpt_rtit_restore_msr(&plain, &r, msr, 0, NULL), -VMPT_E_INVAL);
	}
	ck_assert_uint_eq(n, REGS);
	ck_assert_uint_eq(value, 5);
}
END_TEST

START_TEST(reset_value)
{
	struct vmpt_rtit_regs r = fresh();

	ck_assert_uint_eq(get(&r, regs[_i].msr), regs[_i].reset);
	ck_assert_uint_eq(vmpt_rtit_reg_table[_i].reset, regs[_i].reset);
}
END_TEST

/* ---- 3.3.1: "until the RTIT_CTL MSR has been read" ---- */

START_TEST(ctl_first)
{
	const struct reg *reg = &regs[_i];
	struct vmpt_rtit_regs r, before;
	enum vmpt_gp_reason why = VMPT_GP_NONE;
	u64 value = 0xdead;

	memset(&r, 0xff, sizeof(r));
	vmpt_rtit_reset(&r);
	before = r;
	refused(&r, reg->msr, reg->reset, VMPT_GP_CTL_UNREAD);
	refused(&r, reg->msr, ~0ULL, VMPT_GP_CTL_UNREAD);
	if (reg->msr != CTL) {
		ck_assert_int_eq(vmpt_rtit_rdmsr(&plain, &r, reg->msr, &value, &why), VMPT_GP);
		ck_assert_int_eq(why, VMPT_GP_CTL_UNREAD);
		ck_assert_uint_eq(value, 0xdead);
		ck_assert_int_eq(vmpt_rtit_rdmsr(&plain, &r, reg->msr, &value, NULL), VMPT_GP);
		ck_assert_mem_eq(&r, &before, sizeof(r));
	}
	/* A read of another MSR does not count … */
	ck_assert_int_eq(vmpt_rtit_rdmsr(&plain, &r, 0x767, &value, NULL), -VMPT_E_INVAL);
	refused(&r, reg->msr, reg->reset, VMPT_GP_CTL_UNREAD);
	/* … the read of CTL does, until RESET. */
	get(&r, CTL);
	set(&r, reg->msr, reg->reset);
	ck_assert_uint_eq(get(&r, reg->msr), reg->reset);
	set(&r, CTL, 0x200c);
	set(&r, reg->msr, reg->reset);
	vmpt_rtit_reset(&r);
	refused(&r, reg->msr, reg->reset, VMPT_GP_CTL_UNREAD);
}
END_TEST

/* ---- bit by bit ---- */

/* Write @before with bit @bit inverted. */
static void flip(const struct reg *reg, u64 before, unsigned int bit)
{
	struct vmpt_rtit_regs r = fresh();
	u64 value = before ^ 1ULL << bit;
	int kind = kind_of(reg->msr, bit);

	set(&r, reg->msr, before);
	ck_assert_uint_eq(get(&r, reg->msr), before);
	if (reg->msr == TNT_BUFF && !value) {
		refused(&r, reg->msr, value, VMPT_GP_TNT_ZERO);
	} else if (kind < 0 || kind == ONE) {
		refused(&r, reg->msr, value, VMPT_GP_RESERVED);
	} else if (kind == RW) {
		set(&r, reg->msr, value);
		/* Other registers' bits do not move; TriggerEn follows CTL. */
		for (size_t i = 0; i < REGS; i++)
			if (regs[i].msr != reg->msr && regs[i].msr != STATUS &&
			    get(&r, regs[i].msr) != regs[i].reset)
				ck_abort_msg("%x changes with %x", regs[i].msr, reg->msr);
		ck_assert_uint_eq(get(&r, reg->msr), value);
	} else {
		set(&r, reg->msr, value);
		ck_assert_uint_eq(get(&r, reg->msr), before);
	}
}

START_TEST(each_bit)
{
	const struct reg *reg = &regs[_i];
	u64 ones = bits_of(reg->msr, ONE), all = bits_of(reg->msr, RW) | ones;
	unsigned int bit;

	for (bit = 0; bit < 64; bit++) {
		flip(reg, reg->reset, bit);
		flip(reg, all, bit);
		if (reg->msr != TNT_BUFF)
			flip(reg, ones, bit);
	}
}
END_TEST

/* The public table says the same. */
START_TEST(described)
{
	const struct vmpt_rtit_reg_desc *d = &vmpt_rtit_reg_table[_i];
	u32 msr = regs[_i].msr;

	ck_assert_uint_eq(d->fields, bits_of(msr, RW));
	ck_assert_uint_eq(d->ignored, bits_of(msr, RO) | bits_of(msr, EXT));
	ck_assert_uint_eq(d->ones, bits_of(msr, ONE));
}
END_TEST

START_TEST(random_values)
{
	struct vmpt_rtit_regs r = fresh();
	struct test_rng rng = { 760 };
	u64 bits[REGS][4];
	unsigned int n, i;

	for (i = 0; i < REGS; i++) {
		bits[i][RW] = bits_of(regs[i].msr, RW);
		bits[i][RO] = bits_of(regs[i].msr, RO);
		bits[i][ONE] = bits_of(regs[i].msr, ONE);
		bits[i][EXT] = bits_of(regs[i].msr, EXT);
	}
	for (n = 0; n < 10000; n++) {
		u64 value = test_random(&rng) >> (test_random(&rng) % 64), was, stored;
		u64 rw, ones, free;
		u32 msr;

		i = (unsigned int)(test_random(&rng) % REGS);
		msr = regs[i].msr;
		rw = bits[i][RW];
		ones = bits[i][ONE];
		free = bits[i][RO] | bits[i][EXT];

		if (n & 1)
			value = (value & (rw | free)) | ones;
		was = get(&r, msr);
		stored = (value & (rw | ones)) | (was & bits[i][RO]);
		if (msr == TNT_BUFF && !value) {
			refused(&r, msr, value, VMPT_GP_TNT_ZERO);
		} else if ((value & ~(rw | free | ones)) || (~value & ones)) {
			refused(&r, msr, value, VMPT_GP_RESERVED);
		} else {
			set(&r, msr, value);
			was = stored;
		}
		if (get(&r, msr) != was)
			ck_abort_msg("%x, %llx: reads %llx", msr, (unsigned long long)value,
				     (unsigned long long)get(&r, msr));
	}
}
END_TEST

/* ---- single registers ---- */

/* 3.3.3: ContextEn and TriggerEn are kept, whatever is written. */
START_TEST(status_read_only)
{
	u64 held, value;

	for (held = 0; held < 4; held++) {
		for (value = 0; value < 16; value++) {
			struct vmpt_rtit_regs r = fresh();
			u64 read_only = (held & 1) << 1 | (held & 2) << 1;

			set(&r, CTL, held & 2 ? 0x2001 : 0);
			r.status = (r.status & ~2ULL) | (held & 1) << 1;
			set(&r, STATUS, value);
			ck_assert_uint_eq(get(&r, STATUS), (value & 9) | read_only);
		}
	}
}
END_TEST

/* 2.1.1 */
START_TEST(trigger_en)
{
	static const struct {
		u64 ctl, status;
	} rows[] = { { 0x0000, 0 }, { 0x0001, 0 }, { 0x2000, 0 }, { 0x2001, 4 },
		     { 0xdf9e, 0 }, { 0xdf9f, 0 }, { 0xff9e, 0 }, { 0xff9f, 4 } };
	struct vmpt_rtit_regs r = fresh();
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(rows); i++) {
		set(&r, CTL, rows[i].ctl);
		ck_assert_uint_eq(get(&r, STATUS), rows[i].status);
		ck_assert(vmpt_rtit_trigger_en(&r) == (rows[i].status != 0));
	}
}
END_TEST

/* 3.3.13, 3.3.11 */
START_TEST(tnt_buff_limit_mask)
{
	struct vmpt_rtit_regs r = fresh();
	u64 value;

	refused(&r, TNT_BUFF, 0, VMPT_GP_TNT_ZERO);
	for (value = 1; value < 0x80; value++) {
		set(&r, TNT_BUFF, value);
		ck_assert_uint_eq(get(&r, TNT_BUFF), value);
		refused(&r, TNT_BUFF, 0, VMPT_GP_TNT_ZERO);
	}
	refused(&r, TNT_BUFF, 0x80, VMPT_GP_RESERVED);
	/* Any bits of 5:0 at 0 are refused; the buffer is 64 bytes to 4 MiB. */
	for (value = 0; value < 0x3f; value++)
		refused(&r, 0x771, 0x3fffc0 | value, VMPT_GP_RESERVED);
	set(&r, 0x771, 0x3f);
	ck_assert_uint_eq(vmpt_rtit_output_size(&r), 64);
	set(&r, 0x771, 0x3fffff);
	ck_assert_uint_eq(vmpt_rtit_output_size(&r), 4 << 20);
	refused(&r, 0x771, 0x7fffff, VMPT_GP_RESERVED);
}
END_TEST

/* Table 8, and the note below it that says the opposite. */
START_TEST(lip_sign_extension)
{
	static const struct {
		u64 written, note, table;
	} rows[] = {
		{ 0x00007fffffffffff, 0x00007fffffffffff, 0x00007fffffffffff },
		{ 0x0000800000000000, 0x0000800000000000, 0xffff800000000000 },
		{ 0xffff800000000000, 0x0000800000000000, 0xffff800000000000 },
		{ 0xffff7fffffffffff, 0x00007fffffffffff, 0x00007fffffffffff },
		{ 0x1234ffff00001111, 0x0000ffff00001111, 0xffffffff00001111 },
		{ 0xffff000000000000, 0, 0 },
	};
	struct vmpt_rtit_regs r = fresh();
	u32 msr = 0x760 + (u32)_i;
	u64 value;
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(rows); i++) {
		set(&r, msr, rows[i].written);
		ck_assert_uint_eq(get(&r, msr), rows[i].note);
		ck_assert_int_eq(vmpt_rtit_rdmsr(&extended, &r, msr, &value, NULL), 0);
		ck_assert_uint_eq(value, rows[i].table);
		ck_assert_int_eq(vmpt_rtit_wrmsr(&extended, &r, msr, rows[i].written, NULL), 0);
		ck_assert_int_eq(vmpt_rtit_rdmsr(&extended, &r, msr, &value, NULL), 0);
		ck_assert_uint_eq(value, rows[i].table);
		/* What was read can be written back and changes nothing. */
		ck_assert_int_eq(vmpt_rtit_wrmsr(&extended, &r, msr, value, NULL), 0);
		ck_assert_uint_eq(get(&r, msr), rows[i].note);
	}
	/* No other register is extended. */
	set(&r, 0x76f, 0x1800000000000);
	ck_assert_int_eq(vmpt_rtit_rdmsr(&extended, &r, 0x76f, &value, NULL), 0);
	ck_assert_uint_eq(value, 0x1800000000000);
}
END_TEST

/* Reserved event IDs are not reserved bits. */
START_TEST(event_ids)
{
	struct vmpt_rtit_regs r = fresh();
	u64 value;

	for (value = 0; value < 64; value++) {
		set(&r, 0x76c, value);
		ck_assert_uint_eq(get(&r, 0x76c), value);
	}
	refused(&r, 0x76c, 64, VMPT_GP_RESERVED);
}
END_TEST

/* ---- restore ---- */

START_TEST(restore)
{
	const struct reg *reg = &regs[_i];
	u64 rw = bits_of(reg->msr, RW), ones = bits_of(reg->msr, ONE);
	enum vmpt_gp_reason why = VMPT_GP_NONE;
	struct vmpt_rtit_regs r, before;
	unsigned int bit;

	memset(&r, 0xff, sizeof(r));
	vmpt_rtit_reset(&r);
	/* CTL need not have been read, and that is kept. */
	ck_assert_int_eq(vmpt_rtit_restore_msr(&plain, &r, reg->msr, rw | ones, &why), 0);
	ck_assert_uint_eq(*vmpt_rtit_reg(&r, reg->msr), rw | ones);
	refused(&r, reg->msr, reg->reset, VMPT_GP_CTL_UNREAD);
	before = r;
	for (bit = 0; bit < 64; bit++) {
		if (kind_of(reg->msr, bit) >= 0 && kind_of(reg->msr, bit) != ONE)
			continue;
		ck_assert_int_eq(vmpt_rtit_restore_msr(&plain, &r, reg->msr,
						       (rw | ones) ^ 1ULL << bit, &why),
				 VMPT_GP);
		ck_assert_int_eq(why, VMPT_GP_RESERVED);
		ck_assert_mem_eq(&r, &before, sizeof(r));
	}
}
END_TEST

START_TEST(restore_whole)
{
	enum vmpt_gp_reason why = VMPT_GP_NONE;
	struct vmpt_rtit_regs r;

	vmpt_rtit_reset(&r);
	ck_assert_int_eq(vmpt_rtit_restore_msr(&plain, &r, TNT_BUFF, 0, &why), VMPT_GP);
	ck_assert_int_eq(why, VMPT_GP_TNT_ZERO);
	/* ContextEn is restored; TriggerEn follows CTL. */
	ck_assert_int_eq(vmpt_rtit_restore_msr(&plain, &r, STATUS, 0xf, NULL), 0);
	get(&r, CTL);
	ck_assert_uint_eq(get(&r, STATUS), 0xb);
	ck_assert_int_eq(vmpt_rtit_restore_msr(&plain, &r, CTL, 0x2001, NULL), 0);
	ck_assert_uint_eq(get(&r, STATUS), 0xf);
	ck_assert_int_eq(vmpt_rtit_restore_msr(&plain, &r, STATUS, 0, NULL), 0);
	ck_assert_uint_eq(get(&r, STATUS), 4);
	ck_assert_int_eq(vmpt_rtit_restore_msr(&plain, &r, 0x760, 0xffff800000000000, NULL), 0);
	ck_assert_uint_eq(get(&r, 0x760), 0x800000000000);
}
END_TEST

TEST_SUITE()
{
	const TTest *const every_reg[] = { reset_value, ctl_first, each_bit, described, restore };
	const TTest *const once[] = { msr_numbers, random_values, status_read_only,   trigger_en,
				      event_ids,   restore_whole, tnt_buff_limit_mask };
	Suite *suite = suite_create("rtit-regs");
	TCase *tc = tcase_create("rtit-regs");
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(every_reg); i++)
		tcase_add_loop_test(tc, every_reg[i], 0, REGS);
	for (i = 0; i < VMPT_ARRAY_SIZE(once); i++)
		tcase_add_test(tc, once[i]);
	tcase_add_loop_test(tc, lip_sign_extension, 0, 4);
	suite_add_tcase(suite, tc);
	return suite;
}
