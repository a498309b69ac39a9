// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * RTIT Programming Reference: trace output, 2.3, with RTIT_BASE_ADDR, RTIT_LIMIT_MASK and
 * RTIT_OFFSET, 3.3.10 to 3.3.12. The rig's sink compares each byte's address with 2.3's formula.
 */
#include "tests/model/rtit/rig.h"

/* 3 bytes each: "b4 00 50" */
static void tips(unsigned int n)
{
	while (n--)
		jmp_ind(0x401002, 0x5000);
}

START_TEST(from_the_base)
{
	wr(BASE_ADDR, 0x123456780);
	wr(LIMIT_MASK, 0x7f);
	on(BOTH);
	ck_assert_uint_eq(rig.pa[0], 0x123456780);
	ck_assert_uint_eq(rig.bytes[0], 0xc0);
	ck_assert_uint_eq(rd(OFFSET), 14);
	tips(1);
	ck_assert_uint_eq(rd(OFFSET), 17);
	ck_assert_uint_eq(rig.pa[14], 0x12345678e);
}
END_TEST

/* "once the offset value reaches the mask value, writes will wrap around and write at offset 0" */
START_TEST(wraps)
{
	wr(LIMIT_MASK, 0x3f);
	wr(OFFSET, 0x3e);
	on(BOTH);
	ck_assert_uint_eq(rig.pa[0], 0x1000003e);
	ck_assert_uint_eq(rig.pa[1], 0x1000003f);
	ck_assert_uint_eq(rig.pa[2], 0x10000000);
	ck_assert_uint_eq(rd(OFFSET), 12);
	/* Many times around */
	tips(1000);
	ck_assert_uint_eq(rd(OFFSET), (12 + 3000) % 64);
	ck_assert_uint_eq(rig.unit.bytes, 14 + 3000);
	ck_assert_uint_eq(rig.size, 14 + 3000);
}
END_TEST

/* The last byte exactly at the mask: the next is at 0. */
START_TEST(wraps_exactly)
{
	wr(LIMIT_MASK, 0xfff);
	wr(OFFSET, 0x1000 - 14);
	on(BOTH);
	ck_assert_uint_eq(rig.pa[13], 0x10000fff);
	ck_assert_uint_eq(rd(OFFSET), 0);
	tips(1);
	vmpt_rtit_unit_drain(&rig.unit);
	ck_assert_uint_eq(rig.pa[14], 0x10000000);
}
END_TEST

START_TEST(four_megabytes)
{
	wr(BASE_ADDR, 0xfffc00000);
	wr(LIMIT_MASK, 0x3fffff);
	wr(OFFSET, 0x3ffffe);
	on(BOTH);
	ck_assert_uint_eq(rig.pa[1], 0xfffffffff);
	ck_assert_uint_eq(rig.pa[2], 0xfffc00000);
	ck_assert_uint_eq(rd(OFFSET), 12);
}
END_TEST

/* 3.3.10: bits in both: "as if the base MSR value was 0" there */
START_TEST(base_bits_in_the_mask)
{
	wr(BASE_ADDR, 0x10000fc0);
	wr(LIMIT_MASK, 0xfff);
	on(BOTH);
	ck_assert_uint_eq(rig.pa[0], 0x10000000);
	ck_assert_uint_eq(rd(BASE_ADDR), 0x10000fc0);
}
END_TEST

/* An offset beyond the mask is cut when it is used. */
START_TEST(offset_beyond_the_mask)
{
	wr(LIMIT_MASK, 0x7f);
	wr(OFFSET, 0x12345);
	on(BOTH);
	ck_assert_uint_eq(rig.pa[0], 0x10000045);
}
END_TEST

/* A mask with holes: each byte's address is still the formula's. */
START_TEST(mask_with_holes)
{
	wr(LIMIT_MASK, 0x5bf);
	on(BOTH);
	tips(2000);
	ck_assert_uint_eq(rd(OFFSET), rig.offset);
	ck_assert_uint_eq(rig.size, 14 + 6000);
}
END_TEST

/* Software moves the region between drains. */
START_TEST(moved)
{
	on(BOTH);
	tips(5);
	wr(OFFSET, 0x800);
	tips(5);
	wr(BASE_ADDR, 0x30000000);
	tips(5);
	wr(LIMIT_MASK, 0xff);
	tips(100);
	ck_assert_uint_eq(rd(OFFSET), (0x800 + 15 + 15 + 300) & 0xff);
}
END_TEST

/* Bytes that the sink refuses wait, and are sent later, complete and in order. */
START_TEST(refused)
{
	on(BOTH);
	rig.refuse = -VMPT_E_IO;
	tips(3);
	ck_assert_int_eq(vmpt_rtit_unit_drain(&rig.unit), -VMPT_E_IO);
	ck_assert_uint_eq(rig.unit.used, 9);
	tips(1);
	ck_assert_int_eq(vmpt_rtit_unit_drain(&rig.unit), -VMPT_E_IO);
	rig.refuse = 0;
	expect("TIP 5000, TIP 5000, TIP 5000, TIP 5000");
	ck_assert_uint_eq(rig.unit.used, 0);
	ck_assert_uint_eq(rd(OFFSET), 14 + 12);
}
END_TEST

/* Refused in the middle of a packet, after the wrap: the rest of it comes first. */
START_TEST(refused_at_the_wrap)
{
	wr(LIMIT_MASK, 0x3f);
	on(BOTH);
	wr(OFFSET, 0x3e);
	tips(2);
	rig.refuse = -VMPT_E_IO;
	rig.takes = 1;
	ck_assert_int_eq(vmpt_rtit_unit_drain(&rig.unit), -VMPT_E_IO);
	ck_assert_uint_eq(rig.size, 14 + 2);
	ck_assert_uint_eq(rig.unit.used, 4);
	ck_assert_uint_eq(rig.unit.bytes, 14 + 2);
	rig.refuse = 0;
	expect("TIP 5000, TIP 5000");
	ck_assert_uint_eq(rd(OFFSET), 4);
}
END_TEST

/* The internal buffer fills up: a buffer overflow like others (4.2.5); no packet is cut. */
START_TEST(refused_for_long)
{
	const char *text;
	size_t len;

	on(BOTH);
	rig.refuse = -VMPT_E_IO;
	tips(VMPT_RTIT_UNIT_BUFFER);
	ck_assert_uint_le(rig.unit.used, VMPT_RTIT_UNIT_BUFFER);
	ck_assert_uint_eq(rig.unit.regs.status & BUFFER_OVERFLOW, BUFFER_OVERFLOW);
	rig.refuse = 0;
	vmpt_rtit_unit_drain(&rig.unit);
	vmpt_rtit_unit_overflow_resolve(&rig.unit, 0x401234);
	tips(1);
	text = rig_text();
	len = strlen(text);
	ck_assert_str_eq(text + len - strlen("TIP 5000, FUP.BuffOvf 401234, TIP 5000"),
			 "TIP 5000, FUP.BuffOvf 401234, TIP 5000");
}
END_TEST

/* TNT_BUFF is not drained. */
START_TEST(drain)
{
	on(BOTH);
	jccs("TN");
	tips(1);
	jccs("T");
	ck_assert_int_eq(vmpt_rtit_unit_drain(&rig.unit), 0);
	ck_assert_uint_eq(rig.size, 14 + 1 + 3);
	expect_tnt(3);
	ck_assert_int_eq(vmpt_rtit_unit_drain(&rig.unit), 0);
	ck_assert_uint_eq(rig.size, 14 + 1 + 3);
}
END_TEST

RIG_SUITE("output", from_the_base, wraps, wraps_exactly, four_megabytes, base_bits_in_the_mask,
	  offset_beyond_the_mask, mask_with_holes, moved, refused, refused_at_the_wrap,
	  refused_for_long, drain)
