// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * arch/pt-packet-print.c: packets and errors as text, bounded; the names of
 * values of Tables 33-45, 33-47, 33-50 and 33-51 row by row.
 */
#include <stdio.h>

#include "tests/arch/pt-cases.h"
#include "tests/support/support.h"

START_TEST(every_case_prints_as_written_here)
{
	const struct pt_case *c;
	struct vmpt_pt_packet p;
	char buf[200];

	for (c = pt_cases; c < pt_cases + pt_case_count; c++) {
		if (!c->text)
			continue;
		ck_assert_int_eq(vmpt_pt_decode(&p, c->wire, c->size, c->block), 0);
		ck_assert_uint_eq(vmpt_pt_print(&p, buf, sizeof(buf)), strlen(c->text));
		ck_assert_str_eq(buf, c->text);
	}
}
END_TEST

START_TEST(a_text_of_every_kind)
{
	bool seen[VMPT_PT_KINDS] = { false };
	size_t i;

	for (i = 0; i < pt_case_count; i++)
		if (pt_cases[i].text)
			seen[pt_cases[i].kind] = true;
	for (i = 0; i < VMPT_PT_KINDS; i++)
		ck_assert_msg(seen[i], "no text of %s", vmpt_pt_name((unsigned int)i));
}
END_TEST

/* @full truncated to @len bytes: its beginning, a NUL, and nothing after it. */
static void check_cut(const char *buf, size_t len, const char *full, size_t need)
{
	size_t n = strlen(full), i;

	ck_assert_uint_eq(need, n);
	if (len) {
		if (n > len - 1)
			n = len - 1;
		ck_assert_mem_eq(buf, full, n);
		ck_assert_int_eq(buf[n], 0);
	}
	for (i = len; i < 200; i++)
		ck_assert_int_eq(buf[i], '#');
}

START_TEST(print_never_leaves_its_buffer)
{
	static const u8 wire[] = { 0x02, 0x13, 0x9f, 0xff };
	static const char full[] = "CFE ip type=0x1f vector=0xff [reserved value]";
	struct vmpt_pt_packet p;
	char buf[200];
	size_t len;

	ck_assert_int_eq(vmpt_pt_decode(&p, wire, sizeof(wire), 0), 0);
	for (len = 0; len < sizeof(full) + 3; len++) {
		memset(buf, '#', sizeof(buf));
		check_cut(buf, len, full, vmpt_pt_print(&p, buf, len));
	}
	ck_assert_uint_eq(vmpt_pt_print(&p, NULL, 0), sizeof(full) - 1);
}
END_TEST

START_TEST(print_error_never_leaves_its_buffer)
{
	static const u8 bytes[] = { 0xad, 0x11 };
	static const char full[] = "reserved IPBytes 101b in ad (TIP)";
	char buf[200];
	size_t len;

	for (len = 0; len < sizeof(full) + 3; len++) {
		memset(buf, '#', sizeof(buf));
		check_cut(buf, len, full, vmpt_pt_print_error(-VMPT_E_IPBYTES, bytes, 2, buf, len));
	}
}
END_TEST

START_TEST(a_kind_that_is_none_prints_a_question_mark)
{
	struct vmpt_pt_packet p = { .kind = VMPT_PT_KINDS };
	char buf[8];

	ck_assert_uint_eq(vmpt_pt_print(&p, buf, sizeof(buf)), 1);
	ck_assert_str_eq(buf, "?");
	ck_assert_str_eq(vmpt_pt_name(VMPT_PT_KINDS), "?");
	ck_assert_str_eq(vmpt_pt_name(~0u), "?");
}
END_TEST

/* ---- errors ---- */

static const struct {
	u8 len, bytes[16];
	const char *text;
} errors[] = {
	{ 2, { 0x02, 0x7f }, "unknown opcode 02 7f" },
	{ 4, { 0x05, 0x01, 0x02, 0x03 }, "unknown opcode 05" },
	{ 4, { 0x39, 0x01, 0x02, 0x03 }, "unknown opcode 39" },
	{ 4, { 0x02, 0xc3, 0x87, 0x01 }, "unknown opcode 02 c3 87" },
	{ 3, { 0xad, 0x01, 0x02 }, "reserved IPBytes 101b in ad (TIP)" },
	{ 1, { 0xed }, "reserved IPBytes 111b in ed (TIP)" },
	{ 1, { 0xb1 }, "reserved IPBytes 101b in b1 (TIP.PGE)" },
	{ 1, { 0xe1 }, "reserved IPBytes 111b in e1 (TIP.PGD)" },
	{ 1, { 0xbd }, "reserved IPBytes 101b in bd (FUP)" },
	{ 3, { 0x02, 0x52, 0 }, "reserved PTW PayloadBytes 10b in 02 52" },
	{ 3, { 0x02, 0xf2, 0 }, "reserved PTW PayloadBytes 11b in 02 f2" },
	{ 2, { 0x99, 0x40 }, "unknown MODE leaf 2 in 99 40" },
	{ 2, { 0x99, 0xff }, "unknown MODE leaf 7 in 99 ff" },
	{ 4, { 0x02, 0x82, 0x02, 0x83 }, "broken PSB pattern in 02 82 02 83" },
	{ 16,
	  { 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x80 },
	  "broken PSB pattern in 02 82 02 82 02 82 02 82 02 82 02 82 02 82 02 80" },
	{ 12,
	  { 0x07, 1, 1, 1, 1, 1, 1, 1, 1, 0x10, 0xaa, 0xbb },
	  "CYC count over 64 bits in 07 01 01 01 01 01 01 01 01 10" },
	{ 3, { 0x19, 1, 2 }, "packet cut by the end of the trace in 19 01 02" },
	{ 1, { 0x02 }, "packet cut by the end of the trace in 02" },
};

START_TEST(errors_name_the_bytes)
{
	struct vmpt_pt_packet p;
	char buf[200];
	int err = vmpt_pt_decode(&p, errors[_i].bytes, errors[_i].len, 0);

	ck_assert_int_lt(err, 0);
	ck_assert_uint_eq(
		vmpt_pt_print_error(err, errors[_i].bytes, errors[_i].len, buf, sizeof(buf)),
		strlen(errors[_i].text));
	ck_assert_str_eq(buf, errors[_i].text);
}
END_TEST

/* The next error code after @err; two ranges, VMPT_E_VMM_END after the last. */
static int next_error(int err)
{
	return err + 1 == VMPT_E_NR ? VMPT_E_VMM : err + 1;
}

START_TEST(print_error_reads_no_byte_that_is_not_there)
{
	char buf[200];
	int err;

	for (err = 1; err < VMPT_E_VMM_END; err = next_error(err)) {
		ck_assert_uint_gt(vmpt_pt_print_error(-err, NULL, 0, buf, sizeof(buf)), 0);
		ck_assert_ptr_nonnull(strstr(buf, vmpt_strerror(err)));
	}
}
END_TEST

START_TEST(every_error_has_a_sentence)
{
	static const int none[] = { VMPT_E_NR,	    100,	4095,
				    VMPT_E_VMM_END, 0x7fffffff, -0x7fffffff - 1 };
	int err, other;
	size_t i;

	for (err = 0; err < VMPT_E_VMM_END; err = next_error(err)) {
		ck_assert_ptr_nonnull(vmpt_strerror(err));
		ck_assert_str_eq(vmpt_strerror(err), vmpt_strerror(-err));
		ck_assert_str_ne(vmpt_strerror(err), vmpt_strerror(VMPT_E_NR));
		for (other = 0; other < err; other = next_error(other))
			ck_assert_str_ne(vmpt_strerror(err), vmpt_strerror(other));
	}
	for (i = 0; i < VMPT_ARRAY_SIZE(none); i++)
		ck_assert_str_eq(vmpt_strerror(none[i]), "unknown error");
}
END_TEST

/*
 * No errno (1 to 4095, as a kernel has them) is one of vmm-lib's codes; the decoder packs those
 * that can cause a loss into six bits.
 */
START_TEST(errors_and_errno_are_apart)
{
	static const int vmm[] = { VMPT_E_CAPS,	    VMPT_E_CONTROLS,  VMPT_E_HOST_TRACING,
				   VMPT_E_HARDWARE, VMPT_E_GUEST_MEM, VMPT_E_STATE,
				   VMPT_E_LIMIT,    VMPT_E_RETRY };
	size_t i;

	ck_assert_int_eq(VMPT_E_VMM_END - VMPT_E_VMM, VMPT_ARRAY_SIZE(vmm));
	for (i = 0; i < VMPT_ARRAY_SIZE(vmm); i++)
		ck_assert_int_gt(vmm[i], 4095);
	ck_assert_int_lt(VMPT_E_NR, 63);
	ck_assert_int_lt(VMPT_E_SYNC, VMPT_E_NR);
	ck_assert_int_lt(VMPT_E_GAP, VMPT_E_NR);
}
END_TEST

/* ---- names of values ---- */

static void check_name(const struct vmpt_pt_packet *p, unsigned int bbp_type, const char *want)
{
	const char *name = vmpt_pt_value_name(p, bbp_type);

	if (want ? !name || strcmp(name, want) : name != NULL)
		ck_abort_msg("%s %llx in type %x: \"%s\", not \"%s\"", vmpt_pt_name(p->kind),
			     (unsigned long long)p->val[0], bbp_type, name ? name : "(none)",
			     want ? want : "(none)");
}

START_TEST(names_of_table_33_50)
{
	static const char *const name[32] = {
		[1] = "INTR",	     [2] = "IRET",	 [3] = "SMI",	  [4] = "RSM",
		[5] = "SIPI",	     [6] = "INIT",	 [7] = "VMENTRY", [8] = "VMEXIT",
		[9] = "VMEXIT_INTR", [0xa] = "SHUTDOWN", [0xc] = "UINTR", [0xd] = "UIRET",
	};
	struct vmpt_pt_packet p = { .kind = VMPT_PT_CFE };

	for (p.cfe.type = 0; p.cfe.type < 32; p.cfe.type++)
		check_name(&p, 0, name[p.cfe.type]);
	check_name(&p, 0, NULL);
}
END_TEST

START_TEST(names_of_table_33_51)
{
	static const char *const name[64] = { "PFA", "VMXQ", "VMXR" };
	struct vmpt_pt_packet p = { .kind = VMPT_PT_EVD };

	for (p.evd.type = 0; p.evd.type < 64; p.evd.type++)
		check_name(&p, 0, name[p.evd.type]);
	check_name(&p, 0, NULL);
}
END_TEST

START_TEST(names_of_table_33_45)
{
	static const char *const name[32] = {
		[0x01] = "General-Purpose Registers",
		[0x04] = "PEBS Basic",
		[0x05] = "PEBS Memory",
		[0x08] = "LBR Block 0",
		[0x09] = "LBR Block 1",
		[0x0a] = "LBR Block 2",
		[0x10] = "XMM Registers",
	};
	struct vmpt_pt_packet p = { .kind = VMPT_PT_BBP };

	for (p.bbp.type = 0; p.bbp.type < 32; p.bbp.type++)
		check_name(&p, 0, name[p.bbp.type]);
	check_name(&p, 0, NULL);
}
END_TEST

static void check_items(unsigned int bbp_type, const char *const *names, u64 count)
{
	struct vmpt_pt_packet p = { .kind = VMPT_PT_BIP };

	for (p.bip.id = 0; p.bip.id < 33; p.bip.id++)
		check_name(&p, bbp_type, p.bip.id < count ? names[p.bip.id] : NULL);
}

START_TEST(names_of_table_33_47)
{
	static const char *const gpr[] = {
		"R/EFLAGS", "R/EIP", "R/EAX", "R/ECX", "R/EDX", "R/EBX", "R/ESP", "R/EBP", "R/ESI",
		"R/EDI",    "R8",    "R9",    "R10",   "R11",	"R12",	 "R13",	  "R14",   "R15",
	};
	static const char *const basic[] = { "Instruction Pointer", "Applicable Counters",
					     "Timestamp" };
	static const char *const memory[] = { "MemAccessAddress", "MemAuxInfo", "MemAccessLatency",
					      "TSXAuxInfo" };
	unsigned int type;

	check_items(0x01, gpr, 18);
	check_items(0x04, basic, 3);
	check_items(0x05, memory, 4);
	for (type = 0; type < 34; type++)
		if (type != 1 && type != 4 && type != 5 && (type < 8 || type > 10) && type != 0x10)
			check_items(type, NULL, 0);
}
END_TEST

/*
 * The rest of Table 33-47 follows a rule: the LBR blocks hold FROM_IP, TO_IP and INFO of TOS-0 to
 * TOS-31 in a row, 32 items per block; XMM0 to XMM15 come in halves.
 */
START_TEST(names_of_lbr_and_xmm_items)
{
	static const char *const part[] = { "FROM_IP", "TO_IP", "INFO" };
	char text[32][32];
	const char *names[32];
	unsigned int block, id, n;

	for (id = 0; id < 32; id++)
		names[id] = text[id];
	for (block = 0; block < 3; block++) {
		for (id = 0; id < 32; id++) {
			n = 32 * block + id;
			snprintf(text[id], sizeof(text[id]), "LBR[TOS-%u]_%s", n / 3, part[n % 3]);
		}
		check_items(8 + block, names, 32);
	}
	for (id = 0; id < 32; id++)
		snprintf(text[id], sizeof(text[id]), "XMM%u_Q%u", id / 2, id % 2);
	check_items(0x10, names, 32);
}
END_TEST

/* Rows at the boundaries, as in the manual. */
START_TEST(rows_at_the_seams_of_the_lbr_blocks)
{
	static const struct {
		u8 type, id;
		const char *name;
	} rows[] = {
		{ 0x08, 0x00, "LBR[TOS-0]_FROM_IP" },  { 0x08, 0x1f, "LBR[TOS-10]_TO_IP" },
		{ 0x09, 0x00, "LBR[TOS-10]_INFO" },    { 0x09, 0x10, "LBR[TOS-16]_FROM_IP" },
		{ 0x09, 0x1f, "LBR[TOS-21]_FROM_IP" }, { 0x0a, 0x00, "LBR[TOS-21]_TO_IP" },
		{ 0x0a, 0x1f, "LBR[TOS-31]_INFO" },    { 0x10, 0x1f, "XMM15_Q1" },
	};
	struct vmpt_pt_packet p = { .kind = VMPT_PT_BIP };
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(rows); i++) {
		p.bip.id = rows[i].id;
		check_name(&p, rows[i].type, rows[i].name);
	}
}
END_TEST

START_TEST(other_kinds_have_no_named_values)
{
	struct vmpt_pt_packet p = { 0 };

	for (p.kind = 0; p.kind < VMPT_PT_KINDS; p.kind++)
		if (p.kind != VMPT_PT_CFE && p.kind != VMPT_PT_EVD && p.kind != VMPT_PT_BBP &&
		    p.kind != VMPT_PT_BIP)
			check_name(&p, 1, NULL);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("arch/pt-print");
	TCase *t = tcase_create("packets");

	tcase_add_test(t, every_case_prints_as_written_here);
	tcase_add_test(t, a_text_of_every_kind);
	tcase_add_test(t, print_never_leaves_its_buffer);
	tcase_add_test(t, print_error_never_leaves_its_buffer);
	tcase_add_test(t, a_kind_that_is_none_prints_a_question_mark);
	suite_add_tcase(s, t);
	t = tcase_create("errors");
	tcase_add_loop_test(t, errors_name_the_bytes, 0, VMPT_ARRAY_SIZE(errors));
	tcase_add_test(t, print_error_reads_no_byte_that_is_not_there);
	tcase_add_test(t, every_error_has_a_sentence);
	tcase_add_test(t, errors_and_errno_are_apart);
	suite_add_tcase(s, t);
	t = tcase_create("names");
	tcase_add_test(t, names_of_table_33_50);
	tcase_add_test(t, names_of_table_33_51);
	tcase_add_test(t, names_of_table_33_45);
	tcase_add_test(t, names_of_table_33_47);
	tcase_add_test(t, names_of_lbr_and_xmm_items);
	tcase_add_test(t, rows_at_the_seams_of_the_lbr_blocks);
	tcase_add_test(t, other_kinds_have_no_named_values);
	suite_add_tcase(s, t);
	return s;
}
