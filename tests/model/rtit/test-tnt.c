// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* RTIT Programming Reference: TNT packets, 4.2.2, and RTIT_TNT_BUFF, 3.3.13. */
#include <stdio.h>

#include "tests/model/rtit/rig.h"

/* "As TNT bits shift in from the right, the valid bit … is also left shifted." */
START_TEST(shifts)
{
	on(BOTH);
	expect_tnt(1);
	jccs("T");
	expect_tnt(0x03);
	jccs("N");
	expect_tnt(0x06);
	jccs("T");
	expect_tnt(0x0d);
	jccs("T");
	expect_tnt(0x1b);
	jccs("N");
	expect_tnt(0x36);
	expect_nothing;
	/* "… this MSR is reset back to '1'" */
	jccs("T");
	expect_tnt(1);
	expect_bytes("6d");
}
END_TEST

/* All 64 full ones: "the lower byte is sent out" */
START_TEST(every_full_one)
{
	unsigned int n, i;

	on(BOTH);
	for (n = 0; n < 64; n++) {
		for (i = 6; i--;)
			jcc(n >> i & 1, 0x401002, 0x401040);
		vmpt_rtit_unit_drain(&rig.unit);
		ck_assert_uint_eq(rig.bytes[rig.size - 1], 0x40 | n);
		expect_tnt(1);
	}
}
END_TEST

/* 1 to 5 bits before whatever forces them out: FUP, TIP, PIP (4.2.2) */
START_TEST(partial)
{
	static const char *const bits[] = { "T", "TN", "NTT", "NNNT", "TNTNT" };
	char want[80];
	size_t i;

	on(BOTH);
	for (i = 0; i < VMPT_ARRAY_SIZE(bits); i++) {
		jccs(bits[i]);
		jmp_ind(0x401002, 0x5000);
		snprintf(want, sizeof(want), "TNT %s, TIP 5000", bits[i]);
		expect(want);
		expect_tnt(1);
		jccs(bits[i]);
		far(0x401002, 0x5000);
		snprintf(want, sizeof(want), "TNT %s, FUP.Far 401002, TIP 5000", bits[i]);
		expect(want);
		expect_tnt(1);
		jccs(bits[i]);
		mov_cr3(0x401003, 0x5000);
		snprintf(want, sizeof(want), "TNT %s, PIP 5000 PG", bits[i]);
		expect(want);
		expect_tnt(1);
	}
}
END_TEST

/* "4 direct branches followed by an indirect" */
START_TEST(example)
{
	on(BOTH);
	jccs("TNNT");
	jmp_ind(0x401002, 0x5000);
	expect_bytes("19 b4 00 50");
}
END_TEST

/* "we first send a partial TNT Packet, then a Flow Update Packet and finally a Target IP" */
START_TEST(interrupt)
{
	on(BOTH);
	jccs("TN");
	far_cpl(0x5002, 0x6000, 0);
	expect_bytes("06 bc 02 50 b4 00 60");
}
END_TEST

/* A full one has a cycle count, a partial one none (4.2.15). */
START_TEST(cycle_counts)
{
	on(BOTH | CYCLE_ACC);
	jccs("TTTTT");
	cycles(9);
	jccs("N");
	expect("TNT TTTTTN +9");
	ck_assert_uint_eq(rd(CNTP), 0);
	cycles(3);
	jccs("TN");
	jmp_ind(0x401002, 0x5000);
	expect_bytes("06 b4 00 50 0d");
}
END_TEST

/* Software may write bits there: a context switch. */
START_TEST(written)
{
	on(BOTH);
	wr(TNT_BUFF, 0x0a); /* NTN */
	jccs("T");
	expect_tnt(0x15);
	jmp_ind(0x401002, 0x5000);
	expect("TNT NTNT, TIP 5000");
	wr(TNT_BUFF, 0x3f);
	jccs("N");
	expect("TNT TTTTTN");
	wr(TNT_BUFF, 0x3f);
	wr(TNT_BUFF, 1);
	jmp_ind(0x401002, 0x5000);
	expect("TIP 5000");
}
END_TEST

/* "Once the valid bit is in bit position 6, a full TNT packet exists (… soon sent out)." */
START_TEST(written_full)
{
	on(BOTH);
	wr(TNT_BUFF, 0x6a);
	step(0x401004);
	jmp_ind(0x401006, 0x5000);
	expect("TNT TNTNTN, TIP 5000");
	expect_tnt(1);
	wr(TNT_BUFF, 0x55);
	jcc(true, 0x401006, 0x401010);
	jmp_ind(0x401012, 0x5000);
	expect("TNT NTNTNT, TNT T, TIP 5000");
}
END_TEST

/* Events that make no packet leave the bits in the buffer, and so does a drain. */
START_TEST(kept_by_quiet_events)
{
	on(BOTH);
	jccs("TN");
	step(0x401004);
	jmp(0x401009, 0x401020);
	call(0x401025, 0x401040);
	cycles(100);
	tsc(0x10000);
	vmpt_rtit_unit_drain(&rig.unit);
	expect_nothing;
	expect_tnt(6);
}
END_TEST

/* A PSB does not force a partial TNT out. */
START_TEST(psb_leaves_them)
{
	on(BOTH);
	jccs("TN");
	wr(PKT_CNT, 0x800);
	jccs("T");
	jmp_ind(0x401002, 0x5000);
	expect("PSB, TNT TNT, TIP 5000");
}
END_TEST

/* Nor do MTC and STS: the list in 4.2.2 has FUP, TIP and PIP. */
START_TEST(timing_leaves_them)
{
	on(BOTH | MTC_EN | STS_EN);
	jccs("TN");
	tsc(0x80);
	vmpt_rtit_unit_wake(&rig.unit, &rig.unit.now);
	expect("MTC 0:01, STS 20/10 80");
	expect_tnt(6);
	jccs("TTTT");
	expect("TNT TNTTTT");
}
END_TEST

RIG_SUITE("tnt", shifts, every_full_one, partial, example, interrupt, cycle_counts, written,
	  written_full, kept_by_quiet_events, psb_leaves_them, timing_leaves_them)
