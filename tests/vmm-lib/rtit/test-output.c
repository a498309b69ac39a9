// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/rtit/output.c: where a guest's packets go (2.3): its own memory if contiguous, or a
 * buffer in host memory that is copied out, that wraps, and that need not fit a guest's mask.
 */
#include "tests/vmm-lib/rtit/rig.h"

static struct rig rig;

static void start(enum vmpt_rtit_output output, u32 bounce)
{
	rig_init(&rig, output, bounce);
}

static void teardown(void)
{
	rig_free(&rig);
}

static void load(void)
{
	ck_assert_int_eq(vmpt_rtit_vcpu_load(&rig.v), 0);
}

static void sync(void)
{
	ck_assert_int_eq(vmpt_rtit_vcpu_sync(&rig.v), 0);
}

/* @n TIPs of 3 bytes whose LIP counts up: "b4 LL LL"; they begin at @first. */
static void tips(u32 first, u32 n)
{
	u32 i;

	rig_enter(&rig, 0x8000);
	for (i = first; i < first + n; i++)
		vmpt_rtit_unit_jmp_indirect(&rig.unit, 0x8002, i & 0xffff);
	rig_exit(&rig, 0x8000);
}

/* ---- in one piece ---- */

/*
 * The buffer's size is a power of 2, and host memory is contiguous and aligned to it: 2.3 with BASE
 * AND NOT MASK.
 */
START_TEST(direct)
{
	start(VMPT_RTIT_CONTIGUOUS, 0);
	rig_program(&rig, 0x10000, 0xffff, RIG_ON);
	load();
	ck_assert_uint_eq(rig.v.path, VMPT_RTIT_PATH_DIRECT);
	ck_assert_uint_eq(rig.unit.regs.base_addr, GUEST_HPA + 0x10000);
	ck_assert_uint_eq(rig.unit.regs.limit_mask, 0xffff);
	/* Bits of BASE under MASK count as 0. */
	rig_wr(&rig, 0x770, 0x23fc0);
	ck_assert_uint_eq(rig.v.path, VMPT_RTIT_PATH_DIRECT);
	ck_assert_uint_eq(rig.unit.regs.base_addr, GUEST_HPA + 0x20000);
	ck_assert_uint_eq(rig_rd(&rig, 0x770), 0x23fc0);
	ck_assert_uint_eq(rig.pins[0x10], 0);
	ck_assert_uint_eq(rig.pins[0x2f], 1);
	/* Stopped: what was pinned is released when the place changes. */
	rig_wr(&rig, 0x768, RIG_CTL);
	rig_wr(&rig, 0x771, 0x3f);
	ck_assert_uint_eq(rig.pins[0x2f], 0);
	ck_assert_uint_eq(rig.v.path, VMPT_RTIT_PATH_NONE);
}
END_TEST

/* 64 bytes and 4 MiB, and frames in order but not at a multiple of the size. */
START_TEST(alignment)
{
	u32 i;

	start(VMPT_RTIT_CONTIGUOUS, 4096);
	rig_program(&rig, 0x12340, 0x3f, RIG_ON);
	load();
	ck_assert_uint_eq(rig.v.path, VMPT_RTIT_PATH_DIRECT);
	ck_assert_uint_eq(rig.unit.regs.base_addr, GUEST_HPA + 0x12340);
	rig_wr(&rig, 0x771, 0x3fffff);
	ck_assert_uint_eq(rig.v.path, VMPT_RTIT_PATH_DIRECT);
	ck_assert_uint_eq(rig.unit.regs.base_addr, GUEST_HPA);
	ck_assert_int_eq(vmpt_rtit_vcpu_unload(&rig.v), 0);
	/* The frames shifted by one page: contiguous, but not aligned to more than a page. */
	for (i = 0; i < RIG_PAGES; i++)
		rig.guest.frame[i] = (i + 1) % RIG_PAGES;
	load();
	ck_assert_uint_eq(rig.v.path, VMPT_RTIT_PATH_BOUNCE);
	rig_wr(&rig, 0x768, RIG_CTL);
	rig_wr(&rig, 0x771, 0xfff);
	rig_wr(&rig, 0x768, RIG_ON);
	ck_assert_uint_eq(rig.v.path, VMPT_RTIT_PATH_DIRECT);
	ck_assert_uint_eq(rig.unit.regs.base_addr, GUEST_HPA + 0x13000);
}
END_TEST

/*
 * guest_translate() in pieces of a page: 1,024 of them are one buffer; one that does not fit is
 * detected.
 */
static u32 pieces, odd_piece;

static int translate_pages(void *opaque, u64 gpa, u64 *hpa, u64 *size)
{
	(void)opaque, (void)size;
	pieces++;
	*hpa = GUEST_HPA + gpa + (pieces == odd_piece ? 0x1000 : 0);
	*size = 4096 - gpa % 4096;
	return 0;
}

START_TEST(many_pieces)
{
	start(VMPT_RTIT_CONTIGUOUS, 4096);
	rig.ops.guest_translate = translate_pages;
	rig.ops.guest_release = NULL;
	rig_again(&rig);
	rig_program(&rig, 0, 0x3fffff, RIG_ON);
	rig.pins[0] = 1; /* for the PSB */
	odd_piece = 0;
	load();
	ck_assert_uint_eq(rig.v.path, VMPT_RTIT_PATH_DIRECT);
	ck_assert_uint_eq(pieces, 1024);
	ck_assert_int_eq(vmpt_rtit_vcpu_unload(&rig.v), 0);
	pieces = 0;
	odd_piece = 1000;
	load();
	ck_assert_uint_eq(rig.v.path, VMPT_RTIT_PATH_BOUNCE);
	ck_assert_uint_eq(pieces, 1000);
	rig.pins[0] = 0;
}
END_TEST

/* A VMM whose pieces have no size, are not at a page or above 64 GiB: not accepted. */
static u64 odd_hpa, odd_size;

static int translate_odd(void *opaque, u64 gpa, u64 *hpa, u64 *size)
{
	(void)opaque, (void)gpa;
	pieces++;
	*hpa = odd_hpa;
	*size = odd_size;
	return 0;
}

START_TEST(odd_translations)
{
	static const u64 rows[][2] = {
		{ GUEST_HPA, 0 },
		{ GUEST_HPA + 64, 0x10000 },
		/* Aligned to half its size: BASE AND NOT MASK is below it (3.3.10). */
		{ GUEST_HPA + 0x8000, 0x10000 },
		{ 1ULL << 36, 0x10000 },
		{ 1ULL << 63, 0x10000 },
	};
	size_t i;

	start(VMPT_RTIT_CONTIGUOUS, 4096);
	rig.ops.guest_translate = translate_odd;
	rig.ops.guest_release = NULL;
	rig_again(&rig);
	rig_program(&rig, 0x10000, 0xffff, RIG_ON);
	for (i = 0; i < VMPT_ARRAY_SIZE(rows); i++) {
		odd_hpa = rows[i][0];
		odd_size = rows[i][1];
		pieces = 0;
		load();
		ck_assert_uint_eq(pieces, 1);
		ck_assert_uint_eq(rig.v.path, VMPT_RTIT_PATH_BOUNCE);
		ck_assert_int_eq(vmpt_rtit_vcpu_unload(&rig.v), 0);
	}
}
END_TEST

/* A write of OFFSET while it traces: the next byte goes there. */
START_TEST(direct_offset)
{
	u8 buf[3];

	start(VMPT_RTIT_CONTIGUOUS, 0);
	rig_program(&rig, 0x10000, 0xffff, RIG_ON);
	load();
	rig_wr(&rig, 0x772, 0x3ffff0);
	ck_assert_uint_eq(rig_rd(&rig, 0x772), 0x3ffff0);
	rig_enter(&rig, 0x4321);
	rig_exit(&rig, 0x4321);
	sync();
	rig_get(&rig, 0x1fff0, buf, 3);
	ck_assert(buf[0] == 0x84 && buf[1] == 0x21 && buf[2] == 0x43);
}
END_TEST

/* ---- no place ---- */

/*
 * Without a bounce buffer a guest whose memory is not contiguous is not traced: its MSRs are as it
 * wrote them, nothing is stored, and the VMM is informed.
 */
START_TEST(parked)
{
	u64 value;

	start(VMPT_RTIT_CONTIGUOUS, 0);
	rig.guest.frame[0x11] = 0x20;
	rig.guest.frame[0x20] = 0x11;
	rig_program(&rig, 0x10000, 0x1fff, RIG_ON);
	load();
	ck_assert_uint_eq(rig.v.path, VMPT_RTIT_PATH_PARKED);
	ck_assert_uint_eq(rig.v.events, VMPT_RTIT_EVENT_PARKED | VMPT_RTIT_EVENT_LOST);
	tips(0, 10);
	sync();
	ck_assert_uint_eq(rig.unit.bytes, 0);
	ck_assert_uint_eq(rig_rd(&rig, 0x768), RIG_ON);
	ck_assert_int_eq(vmpt_rtit_vcpu_rdmsr(&rig.v, 0x769, true, &value), 0);
	ck_assert_uint_eq(value, 7);
	/* The guest moves elsewhere. */
	rig_wr(&rig, 0x770, 0x30000);
	ck_assert_uint_eq(rig.v.path, VMPT_RTIT_PATH_DIRECT);
	tips(0, 1);
	ck_assert_uint_eq(rig_rd(&rig, 0x772), 9 + 3 + 3 + 3);
}
END_TEST

START_TEST(no_memory)
{
	start(VMPT_RTIT_CONTIGUOUS, 0);
	rig.config.on_mmio = VMPT_ON_MEM_RETRY;
	rig_again(&rig);
	guest_set_kind(&rig.guest, 0x1f, 1, VMPT_MEM_MMIO);
	guest_set_kind(&rig.guest, 0x2f, 1, VMPT_MEM_APIC);
	rig_program(&rig, 0x10000, 0xffff, RIG_ON | VMPT_RTIT_CTL_MTC_EN);
	ck_assert_int_eq(vmpt_rtit_vcpu_load(&rig.v), -VMPT_E_RETRY);
	ck_assert(!rig.v.loaded && !rig.pins[0x10]);
	ck_assert_uint_eq(rig.unit.regs.ctl_read, 0); /* no access to the processor */
	rig_wr(&rig, 0x770, 0x20000);
	load();
	ck_assert_uint_eq(rig.v.path, VMPT_RTIT_PATH_PARKED);
	/* In a WRMSR: nothing has changed, the guest executes it again. */
	ck_assert_int_eq(vmpt_rtit_vcpu_wrmsr(&rig.v, 0x770, 0x10000), -VMPT_E_RETRY);
	ck_assert_uint_eq(rig_rd(&rig, 0x770), 0x20000);
	guest_set_kind(&rig.guest, 0x1f, 1, VMPT_MEM_OK);
	rig_wr(&rig, 0x770, 0x10000);
	ck_assert_uint_eq(rig.v.path, VMPT_RTIT_PATH_DIRECT);
	/* An error of the callback itself is returned unchanged. */
	rig.guest.retry = true;
	ck_assert_int_eq(vmpt_rtit_vcpu_wrmsr(&rig.v, 0x770, 0x7fff0000), -VMPT_E_RETRY);
	ck_assert_uint_eq(rig.v.path, VMPT_RTIT_PATH_DIRECT);
	/* And tracing continues as before: LESS_PKTS is not left set. */
	ck_assert_uint_eq(rig.unit.regs.ctl, RIG_ON | VMPT_RTIT_CTL_MTC_EN);
}
END_TEST

/* ---- the debug port (2.3.1) ---- */

START_TEST(port)
{
	static const u8 psb[9] = { 0xc0 };
	u32 i;

	start(VMPT_RTIT_CONTIGUOUS, 4096);
	rig_program(&rig, 0xfdc00000, 0x7f, RIG_ON & ~VMPT_RTIT_CTL_DEST);
	load();
	ck_assert_uint_eq(rig.v.path, VMPT_RTIT_PATH_BOUNCE);
	sync();
	ck_assert_uint_eq(rig.port_len, 9);
	ck_assert_uint_eq(rig.port_pa, 0xfdc00000);
	ck_assert(!memcmp(rig.port, psb, 9));
	ck_assert_uint_eq(rig_rd(&rig, 0x772), 9);
	ck_assert_uint_eq(rig_rd(&rig, 0x768), RIG_ON & ~VMPT_RTIT_CTL_DEST);
	/* From memory to the port while it traces */
	rig_wr(&rig, 0x768, RIG_CTL);
	rig_wr(&rig, 0x770, 0x10000);
	rig_wr(&rig, 0x768, RIG_ON);
	ck_assert_uint_eq(rig.v.path, VMPT_RTIT_PATH_DIRECT);
	rig.port_len = 0;
	rig_wr(&rig, 0x768, RIG_ON & ~VMPT_RTIT_CTL_DEST);
	ck_assert_uint_eq(rig.v.path, VMPT_RTIT_PATH_BOUNCE);
	tips(0, 1);
	sync();
	ck_assert_uint_eq(rig.port_len, 9 + 9);
	for (i = 0; i < RIG_PAGES; i++)
		ck_assert(i == 0x10 || !rig.stored[i]);
	/* No port: nothing is lost that anyone wanted. */
	rig.ops.debug_port = NULL;
	tips(0, 1);
	sync();
	ck_assert_uint_eq(rig.v.lost, 0);
}
END_TEST

START_TEST(port_without_bounce)
{
	start(VMPT_RTIT_CONTIGUOUS, 0);
	rig_program(&rig, 0x10000, 0xffff, RIG_ON & ~VMPT_RTIT_CTL_DEST);
	load();
	ck_assert_uint_eq(rig.v.path, VMPT_RTIT_PATH_PARKED);
}
END_TEST

/* ---- through the bounce buffer ---- */

/* 2.3 byte by byte: the byte at (BASE AND NOT MASK) + (OFFSET AND MASK). */
static u8 guest_byte(u64 base, u64 mask, u64 offset)
{
	u8 byte;

	rig_get(&rig, (base & ~mask) + (offset & mask), &byte, 1);
	return byte;
}

/* Any mask: each byte is where 2.3 says, none is elsewhere. */
START_TEST(any_mask)
{
	static const u64 masks[] = { 0x3f,   0x7f,   0xfff, 0x1fff,   0x103f, 0x1fbf,
				     0x2fff, 0xf03f, 0x3ff, 0x3ff03f, 0x2007f };
	static u8 memory[RIG_PAGES * 4096];
	u64 mask = masks[_i], base = 0x41000, run = (mask + 1) & ~mask, first, i;
	u8 want[165];

	start(VMPT_RTIT_BOUNCE, 1024);
	rig_program(&rig, base, mask, RIG_ON);
	first = 0x2abcd & mask;
	rig_wr(&rig, 0x772, 0x2abcd);
	load();
	tips(0x100, 50);
	ck_assert_uint_eq(rig_rd(&rig, 0x772),
			  (first & ~(run - 1)) | ((first + 9 + 3 + 150 + 3) & (run - 1)));
	/* What it wrote: the newest bytes, one run of them */
	memset(want, 0, sizeof(want));
	want[0] = 0xc0;
	memcpy(want + 9, (u8[]){ 0x84, 0x00, 0x80 }, 3);
	for (i = 0; i < 50; i++)
		memcpy(want + 12 + 3 * i, (u8[]){ 0xb4, (u8)i, 1 }, 3);
	memcpy(want + 162, (u8[]){ 0x8c, 0x00, 0x80 }, 3);
	for (i = run < 165 ? 165 - run : 0; i < 165; i++)
		ck_assert_msg(
			guest_byte(base, mask, (first & ~(run - 1)) | ((first + i) & (run - 1))) ==
				want[i],
			"byte %u", (u32)i);
	/* Everything else is unchanged: 0. */
	for (i = 0; i < 165; i++) {
		u64 offset = (first & ~(run - 1)) | ((first + i) & (run - 1)), gpa;
		u8 zero = 0;

		gpa = (base & ~mask) + (offset & mask);
		guest_put(&rig.guest, gpa, &zero, 1);
	}
	rig_get(&rig, 0, memory, sizeof(memory));
	for (i = 0; i < sizeof(memory) && !memory[i]; i++)
		;
	ck_assert_uint_eq(i, sizeof(memory));
	for (i = 0; i < RIG_PAGES; i++)
		ck_assert(!rig.stored[i]);
}
END_TEST

/* "any changes to RTIT_CTL are visible in memory by the time the MSR write completes" (3.3.2) */
START_TEST(ctl_drains)
{
	u8 byte;

	start(VMPT_RTIT_BOUNCE, 256);
	rig_program(&rig, 0x10000, 0xfff, RIG_CTL);
	load();
	rig_wr(&rig, 0x768, RIG_ON);
	rig_get(&rig, 0x10000, &byte, 1);
	ck_assert_uint_eq(byte, 0xc0);
	tips(0, 1);
	rig_wr(&rig, 0x768, RIG_CTL);
	rig_get(&rig, 0x10009, &byte, 1);
	ck_assert_uint_eq(byte, 0x84);
}
END_TEST

/* The buffer wraps many times; OFFSET and memory agree at each RDMSR of OFFSET. */
START_TEST(around)
{
	u32 i, next = 0;
	u64 seen = 0;
	u8 last[3];

	start(VMPT_RTIT_BOUNCE, 256);
	rig_program(&rig, 0x10000, 0xfff, RIG_ON);
	load();
	for (i = 0; i < 1000; i++) {
		u64 offset;

		rig_wr(&rig, 0x77c, 0x30000); /* no PSB */
		tips(next, i % 60 + 1);
		next += i % 60 + 1;
		offset = rig_rd(&rig, 0x772);
		ck_assert_uint_eq(offset, rig.unit.bytes & 0xfff);
		last[0] = guest_byte(0x10000, 0xfff, offset - 6);
		last[1] = guest_byte(0x10000, 0xfff, offset - 5);
		last[2] = guest_byte(0x10000, 0xfff, offset - 4);
		ck_assert(last[0] == 0xb4 && last[1] == (u8)(next - 1) &&
			  last[2] == (u8)((next - 1) >> 8));
		seen += i % 60 + 1;
	}
	ck_assert_uint_eq(rig.v.lost, 0);
	ck_assert_uint_gt(seen, 25000);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("rtit-output");
	TCase *tc = tcase_create("output");

	tcase_add_checked_fixture(tc, NULL, teardown);
	tcase_add_test(tc, direct);
	tcase_add_test(tc, alignment);
	tcase_add_test(tc, many_pieces);
	tcase_add_test(tc, odd_translations);
	tcase_add_test(tc, direct_offset);
	tcase_add_test(tc, parked);
	tcase_add_test(tc, no_memory);
	tcase_add_test(tc, port);
	tcase_add_test(tc, port_without_bounce);
	tcase_add_loop_test(tc, any_mask, 0, 11);
	tcase_add_test(tc, ctl_drains);
	tcase_add_test(tc, around);
	suite_add_tcase(suite, tc);
	return suite;
}
