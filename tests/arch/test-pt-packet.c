// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* arch/pt-packet.c: encode and decode. */
#include "arch/pt-packet.h"
#include "tests/support/support.h"

START_TEST(pip_bits_stand_where_table_33_24_puts_them)
{
	static const u8 wire[8] = { 0x02, 0x43, 0x01, 0x00, 0x01, 0x00, 0x00, 0x00 };
	struct vmpt_pt_packet p;

	ck_assert_int_eq(vmpt_pt_decode(&p, wire, sizeof(wire), 0), 0);
	ck_assert_uint_eq(p.kind, VMPT_PT_PIP);
	ck_assert_uint_eq(p.size, 8);
	ck_assert_uint_eq(p.pip.nr, 1);
	ck_assert_uint_eq(p.pip.cr3, 0x100000);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("arch/pt-packet");
	TCase *t = tcase_create("table");

	tcase_add_test(t, pip_bits_stand_where_table_33_24_puts_them);
	suite_add_tcase(s, t);
	return test_main(s);
}
