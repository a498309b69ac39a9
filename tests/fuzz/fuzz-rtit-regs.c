// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * arch/rtit-regs.c: accesses to RTIT's MSRs in any sequence, compared with the values that Tables 4
 * to 16 of the manual allow. An access is 10 bytes: operation, register, value.
 */
#include <string.h>

#include "arch/rtit-regs.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

/* Bits that may be 1, typed from the tables; @any: those with any value in a write. */
static const struct row {
	u32 msr;
	u64 holds, any;
} rows[] = {
	{ 0x760, 0xffffffffffff, ~0ULL },    { 0x761, 0xffffffffffff, ~0ULL },
	{ 0x762, 0xffffffffffff, ~0ULL },    { 0x763, 0xffffffffffff, ~0ULL },
	{ 0x768, 0xff9f, 0xff9f },	     { 0x769, 0xf, 0xf },
	{ 0x76b, 0x3fffff, 0x3fffff },	     { 0x76c, 0x3f, 0x3f },
	{ 0x76e, 0x1ffffffff, 0x1ffffffff }, { 0x76f, 0x1ffffffffffff, 0x1ffffffffffff },
	{ 0x770, 0xfffffffc0, 0xfffffffc0 }, { 0x771, 0x3fffff, 0x3fffff },
	{ 0x772, 0x3fffff, 0x3fffff },	     { 0x777, 0xfffffffe0, 0xfffffffe0 },
	{ 0x77c, 0x33fff, 0x33fff },	     { 0x77d, 0x7f, 0x7f },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void must(bool ok)
{
	if (!ok)
		__builtin_trap();
}

static bool legal(const struct row *row, u64 value)
{
	if (value & ~row->any)
		return false;
	if (row->msr == 0x771)
		return (value & 0x3f) == 0x3f;
	return row->msr != 0x77d || value;
}

/* A register's value after a legal write. */
static u64 stored(const struct row *row, u64 value, u64 before)
{
	if (row->msr == 0x769)
		return (value & 9) | (before & 2);
	return value & row->holds;
}

static void read_one(const struct vmpt_rtit_rules *rules, struct vmpt_rtit_regs *regs,
		     const struct row *row, bool known)
{
	u64 value = 0, want;
	int ret = vmpt_rtit_rdmsr(rules, regs, row->msr, &value, NULL);

	must(ret == (known || row->msr == 0x768 ? 0 : VMPT_GP));
	if (ret)
		return;
	want = *vmpt_rtit_reg(regs, row->msr);
	if (row->msr <= 0x763 && rules->lip_sign_extended && want >> 47)
		want |= 0xffffULL << 48;
	must(value == want);
	if (row->msr == 0x769)
		must(!!(value & 4) == ((regs->ctl & 0x2001) == 0x2001));
}

static void write_one(const struct vmpt_rtit_rules *rules, struct vmpt_rtit_regs *regs,
		      const struct row *row, u64 value, bool known)
{
	struct vmpt_rtit_regs before = *regs;
	u64 want = stored(row, value, *vmpt_rtit_reg(regs, row->msr));
	int ret = vmpt_rtit_wrmsr(rules, regs, row->msr, value, NULL);

	must(ret == (known && legal(row, value) ? 0 : VMPT_GP));
	if (ret) {
		must(!memcmp(&before, regs, sizeof(before)));
		return;
	}
	must((*vmpt_rtit_reg(regs, row->msr) & ~(row->msr == 0x769 ? 4ULL : 0)) == want);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct vmpt_rtit_rules rules = { .lip_sign_extended = size & 1 };
	struct vmpt_rtit_regs regs = { 0 };
	const struct row *row;
	bool known;
	u64 value;
	unsigned int i;

	vmpt_rtit_reset(&regs);
	for (; size >= 10; data += 10, size -= 10) {
		row = &rows[data[1] % ROWS];
		known = regs.ctl_read;
		memcpy(&value, data + 2, sizeof(value));
		if (data[0] & 0x40)
			value &= row->any;
		if (data[0] & 0x80)
			vmpt_rtit_reset(&regs);
		else if (data[0] & 1)
			read_one(&rules, &regs, row, known);
		else
			write_one(&rules, &regs, row, value, known);
		for (i = 0; i < ROWS; i++)
			must(!(*vmpt_rtit_reg(&regs, rows[i].msr) & ~rows[i].holds));
		must(regs.tnt_buff && (regs.limit_mask & 0x3f) == 0x3f);
	}
	return 0;
}
