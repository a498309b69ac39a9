// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The tracker's short cuts to payloads and PSB+, against the packet table and a plain scan. */
#include <stdio.h>

#include "decoder/pt/payload.h"
#include "decoder/pt/tracker.h"
#include "tests/decoder/notation.h"
#include "tests/support/support.h"

#define HOST_PSB "psb exec:64 pip:1000 vmcs:a000 cbr:8 psbend "
#define A_PSB	 "psb exec:64 pip:2000:nr vmcs:a000 cbr:8 psbend "
#define B_PSB	 "psb exec:64 pip:3000:nr vmcs:b000 cbr:8 psbend "

START_TEST(payloads_are_those_of_the_table)
{
	struct test_rng rng = { 33 };
	static const u8 kind[] = { VMPT_PT_PIP, VMPT_PT_VMCS, VMPT_PT_TSC };
	struct vmpt_pt_packet p;
	u8 wire[8];
	u64 r;
	int i;

	for (i = 0; i < 3000; i++) {
		r = test_random(&rng);
		memcpy(wire, &r, sizeof(wire));
		memcpy(wire, vmpt_pt_table[kind[i % 3]].header,
		       vmpt_pt_table[kind[i % 3]].header_size);
		ck_assert_int_eq(vmpt_pt_decode(&p, wire, sizeof(wire), 0), 0);
		if (p.kind == VMPT_PT_PIP) {
			ck_assert_uint_eq(vmpt_pip_cr3(wire), p.pip.cr3);
			ck_assert_uint_eq(vmpt_pip_nr(wire), p.pip.nr);
		} else if (p.kind == VMPT_PT_VMCS) {
			ck_assert_uint_eq(vmpt_vmcs_pointer(wire), p.vmcs.pointer);
		} else {
			ck_assert_uint_eq(vmpt_tsc_value(wire), p.tsc.tsc);
		}
	}
}
END_TEST

/* A PSB+ read by its shape equals a scanned one. */
START_TEST(shapes_read_as_scans_do)
{
	static const char *const text[] = {
		HOST_PSB,
		A_PSB,
		"psb psbend",
		"psb fup:8000 exec:64 pip:2000:nr vmcs:a000 psbend",
		"psb fup:ffff800000001000 pip:1000 psbend",
		"psb tsc:99 tma:1:2 cbr:7 psbend",
		"psb tsc:1 tsc:2 psbend",
		"psb cyc:3 pip:5000 psbend",
		"psb mtc:1 tsx:0 mnt:5 psbend",
		"psb pip:1000 ovf",
		"psb pip:1000 tnt:T",
		"psb pip:2000:nr pip:1000 psbend",
	};
	struct vmpt_psb_shapes shapes = { 0 };
	static struct notation n;
	struct test_rng rng = { 4 };
	struct vmpt_psb_plus a, b;
	char with_tail[400];
	int i;

	for (i = 0; i < 400; i++) {
		snprintf(with_tail, sizeof(with_tail), "%s pad*%u tnt:T",
			 text[test_random(&rng) % VMPT_ARRAY_SIZE(text)],
			 1 + (unsigned int)(test_random(&rng) % 80));
		notation_read(&n, with_tail);
		memset(&a, 0, sizeof(a));
		vmpt_psb_plus_scan(n.bytes, 0, n.size, &a);
		vmpt_psb_plus_read(&shapes, n.bytes, 0, n.size, &b);
		ck_assert_uint_eq(a.end, b.end);
		ck_assert_uint_eq(a.complete, b.complete);
		ck_assert_uint_eq(a.has_fup, b.has_fup);
		ck_assert_uint_eq(a.has_pip, b.has_pip);
		ck_assert_uint_eq(a.has_vmcs, b.has_vmcs);
		ck_assert_uint_eq(a.tsc.any, b.tsc.any);
		if (a.has_pip) {
			ck_assert_uint_eq(a.nr, b.nr);
			ck_assert_uint_eq(a.cr3, b.cr3);
		}
		if (a.has_vmcs)
			ck_assert_uint_eq(a.vmcs, b.vmcs);
		if (a.tsc.any) {
			ck_assert_uint_eq(a.tsc.first, b.tsc.first);
			ck_assert_uint_eq(a.tsc.last, b.tsc.last);
		}
	}
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/units");
	TCase *t = tcase_create("units");

	tcase_add_test(t, payloads_are_those_of_the_table);
	tcase_add_test(t, shapes_read_as_scans_do);
	suite_add_tcase(s, t);
	return s;
}
