// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * decoder/flow/insn.c: classes, lengths and targets worked out from the Intel SDM, volume 2; the
 * table against Zydis on every key with all ModRM and SIB bytes, and on random bytes.
 */
#include <stdio.h>

#include "decoder/flow/insn.h"
#include "tests/support/support.h"

#define IP 0x401000ULL

struct row {
	const char *bytes; /* hex */
	u8 exec, size, class;
	u64 target;
};

static const struct row rows[] = {
	{ "90", 64, 1, VMPT_INSN_OTHER, 0 },
	{ "488b4510", 64, 4, VMPT_INSN_OTHER, 0 },
	{ "48b81122334455667788", 64, 10, VMPT_INSN_OTHER, 0 },
	{ "66b81122", 64, 4, VMPT_INSN_OTHER, 0 },
	{ "b811223344", 64, 5, VMPT_INSN_OTHER, 0 },
	{ "b81122", 16, 3, VMPT_INSN_OTHER, 0 },
	{ "c5f877", 64, 3, VMPT_INSN_OTHER, 0 },	 /* VZEROUPPER */
	{ "62f17c48280424", 64, 7, VMPT_INSN_OTHER, 0 }, /* VMOVAPS zmm0, [rsp] */
	{ "666666662e0f1f840000000000", 64, 13, VMPT_INSN_OTHER, 0 },
	{ "f30f1efa", 64, 4, VMPT_INSN_OTHER, 0 },     /* ENDBR64 */
	{ "f4", 64, 1, VMPT_INSN_OTHER, 0 },	       /* HLT */
	{ "0f0b", 64, 2, VMPT_INSN_OTHER, 0 },	       /* UD2 */
	{ "c7f800000000", 64, 6, VMPT_INSN_OTHER, 0 }, /* XBEGIN */
	{ "0f01d5", 64, 3, VMPT_INSN_OTHER, 0 },       /* XEND */
	{ "c6f801", 64, 3, VMPT_INSN_OTHER, 0 },       /* XABORT */
	{ "0faa", 64, 2, VMPT_INSN_OTHER, 0 },	       /* RSM */
	{ "7402", 64, 2, VMPT_INSN_COND, IP + 4 },
	{ "74fe", 64, 2, VMPT_INSN_COND, IP },
	{ "2e7402", 64, 3, VMPT_INSN_COND, IP + 5 }, /* a branch hint */
	{ "0f8500010000", 64, 6, VMPT_INSN_COND, IP + 0x106 },
	{ "0f850001", 16, 4, VMPT_INSN_COND, IP + 0x104 },
	{ "e0fe", 64, 2, VMPT_INSN_COND, IP },	     /* LOOPNE */
	{ "e302", 64, 2, VMPT_INSN_COND, IP + 4 },   /* JRCXZ */
	{ "67e302", 64, 3, VMPT_INSN_COND, IP + 5 }, /* JECXZ */
	{ "eb10", 64, 2, VMPT_INSN_JMP, IP + 0x12 },
	{ "e9fbffffff", 64, 5, VMPT_INSN_JMP, IP },
	{ "f2e900000000", 64, 6, VMPT_INSN_JMP, IP + 6 }, /* BND */
	{ "66e90000", 32, 4, VMPT_INSN_JMP, 0x1004 },	  /* a 16-bit IP */
	{ "e900000080", 32, 5, VMPT_INSN_JMP, 0x80401005 },
	{ "e800000000", 64, 5, VMPT_INSN_CALL, IP + 5 },
	{ "e81000", 16, 3, VMPT_INSN_CALL, IP + 0x13 },
	{ "ffe0", 64, 2, VMPT_INSN_JMP_IND, 0 },
	{ "3effe0", 64, 3, VMPT_INSN_JMP_IND, 0 }, /* NOTRACK */
	{ "ff2500000000", 64, 6, VMPT_INSN_JMP_IND, 0 },
	{ "41ff24c5f0000000", 64, 8, VMPT_INSN_JMP_IND, 0 },
	{ "ffd0", 64, 2, VMPT_INSN_CALL_IND, 0 },
	{ "ff542408", 64, 4, VMPT_INSN_CALL_IND, 0 },
	{ "c3", 64, 1, VMPT_INSN_RET, 0 },
	{ "f3c3", 64, 2, VMPT_INSN_RET, 0 },
	{ "c20800", 64, 3, VMPT_INSN_RET, 0 },
	{ "cb", 64, 1, VMPT_INSN_FAR, 0 },
	{ "48cf", 64, 2, VMPT_INSN_FAR, 0 }, /* IRETQ */
	{ "cc", 64, 1, VMPT_INSN_FAR, 0 },
	{ "cd80", 64, 2, VMPT_INSN_FAR, 0 },
	{ "f1", 64, 1, VMPT_INSN_FAR, 0 },
	{ "ce", 32, 1, VMPT_INSN_FAR, 0 }, /* INTO */
	{ "0f05", 64, 2, VMPT_INSN_FAR, 0 },
	{ "480f07", 64, 3, VMPT_INSN_FAR, 0 },
	{ "0f34", 64, 2, VMPT_INSN_FAR, 0 },
	{ "0f35", 64, 2, VMPT_INSN_FAR, 0 },
	{ "0f01c1", 64, 3, VMPT_INSN_FAR, 0 }, /* VMCALL, VMLAUNCH, VMRESUME */
	{ "0f01c2", 64, 3, VMPT_INSN_FAR, 0 },
	{ "0f01c3", 64, 3, VMPT_INSN_FAR, 0 },
	{ "0f01c4", 64, 3, VMPT_INSN_OTHER, 0 }, /* VMXOFF */
	{ "f30f01ec", 64, 4, VMPT_INSN_FAR, 0 }, /* UIRET */
	{ "f20f01ca", 64, 4, VMPT_INSN_FAR, 0 }, /* ERETS, ERETU */
	{ "f30f01ca", 64, 4, VMPT_INSN_FAR, 0 },
	{ "ff2c24", 64, 3, VMPT_INSN_FAR, 0 }, /* JMP far, CALL far */
	{ "48ff1c24", 64, 4, VMPT_INSN_FAR, 0 },
	{ "ea000000000800", 32, 7, VMPT_INSN_FAR, 0 },
	{ "9a000000000800", 32, 7, VMPT_INSN_FAR, 0 },
	{ "0f22d8", 64, 3, VMPT_INSN_MOV_CR3, 0 },
	{ "410f22df", 64, 4, VMPT_INSN_MOV_CR3, 0 },
	{ "0f22e0", 64, 3, VMPT_INSN_OTHER, 0 }, /* CR4 */
	{ "0f20d8", 64, 3, VMPT_INSN_OTHER, 0 }, /* MOV from CR3 */
};

static size_t from_hex(u8 *bytes, const char *hex)
{
	unsigned int byte;
	size_t n = 0;

	for (; *hex; hex += 2) {
		ck_assert_int_eq(sscanf(hex, "%2x", &byte), 1);
		bytes[n++] = (u8)byte;
	}
	return n;
}

START_TEST(table_of_the_manual)
{
	const struct row *r = &rows[_i];
	struct vmpt_insn insn;
	u8 bytes[32] = { 0 };
	size_t n = from_hex(bytes, r->bytes), room;

	ck_assert_uint_eq(n, r->size);
	/* With more bytes after it, and at the end of what is known. */
	for (room = n; room <= sizeof(bytes); room++) {
		ck_assert_int_eq(vmpt_insn_read(&insn, bytes, room, IP, r->exec), VMPT_INSN_OK);
		ck_assert_msg(insn.size == r->size && insn.class == r->class &&
				      insn.target == r->target,
			      "%s: size %u, class %u, target %#llx", r->bytes, insn.size,
			      insn.class, (unsigned long long)insn.target);
	}
	for (room = 0; room < n; room++)
		ck_assert_int_eq(vmpt_insn_read(&insn, bytes, room, IP, r->exec), VMPT_INSN_MORE);
}
END_TEST

START_TEST(invalid)
{
	static const char *const invalid[] = { "06", "ea", "d6", "0f04", "c5f8ff" };
	struct vmpt_insn insn;
	u8 bytes[32] = { 0 };

	from_hex(bytes, invalid[_i]);
	ck_assert_int_eq(vmpt_insn_read(&insn, bytes, sizeof(bytes), IP, 64), VMPT_INSN_INVALID);
}
END_TEST

/* Each passing check of Check costs a system call: too many for millions. */
static void compare(const u8 *bytes, size_t n)
{
	struct vmpt_insn table = { 0 }, zydis = { 0 };
	int a = vmpt_insn_read(&table, bytes, n, IP, 64);
	int b = vmpt_insn_ask(&zydis, bytes, n, IP, 64);

	if (a == b &&
	    (a != VMPT_INSN_OK || (table.size == zydis.size && table.class == zydis.class &&
				   table.target == zydis.target)))
		return;
	ck_abort_msg("%02x %02x %02x %02x %02x %02x %02x %02x: result %d size %u class %u, Zydis's "
		     "%d %u %u",
		     bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
		     a, table.size, table.class, b, zydis.size, zydis.class);
}

/* Prefix, REX, map, opcode, ModRM, and one SIB byte each, drawn; soak takes all of those. */
START_TEST(all_keys)
{
	static const u8 prefixes[] = { 0, 0x66, 0xf2, 0xf3 };
	struct test_rng rng = { 33 };
	unsigned int key, rex, modrm, round;
	u8 bytes[24];

	for (key = 0; key < 4 * 2 * 256; key++) {
		for (modrm = 0; modrm < 256; modrm++) {
			for (round = 0; round < (unsigned int)test_rounds(34, 2); round++) {
				size_t n = 0;
				u64 random = test_random(&rng);

				rex = round < 17 ? round : (unsigned int)(random >> 40) % 17;
				rex = round == 1 ? (unsigned int)(random >> 40) % 16 : rex;
				memset(bytes, 0, sizeof(bytes));
				if (key >> 9)
					bytes[n++] = prefixes[key >> 9];
				if (round)
					bytes[n++] = (u8)(0x40 + rex % 16);
				if (key & 0x100)
					bytes[n++] = 0x0f;
				bytes[n++] = (u8)key;
				bytes[n++] = (u8)modrm;
				memcpy(bytes + n, &random, sizeof(random));
				compare(bytes, sizeof(bytes));
			}
		}
	}
}
END_TEST

START_TEST(random_bytes)
{
	struct test_rng rng = { 34 };
	u64 words[4];
	int i, k;

	for (i = 0; i < test_rounds(20000000, 500000); i++) {
		for (k = 0; k < 4; k++)
			words[k] = test_random(&rng);
		compare((const u8 *)words, sizeof(words));
	}
}
END_TEST

/* What the table is for: most instructions without Zydis. */
START_TEST(few_asks)
{
	static const char code[] =
		"554889e54883ec10c745fc00000000eb0f8b45fc4898480fb64405d083c0018845fbc9";
	u8 bytes[64] = { 0 };
	size_t n = from_hex(bytes, code);
	size_t i;

	for (i = 0; i < n; i++)
		if (bytes[i] == 0x55 || bytes[i] == 0xeb || bytes[i] == 0xc9)
			ck_assert_uint_ne(vmpt_insn_table[vmpt_insn_key(0, 0, 0, bytes[i], 0)],
					  VMPT_INSN_ASK);
	ck_assert_uint_ne(vmpt_insn_table[vmpt_insn_key(0, 1, 0, 0x89, 0xe5)], VMPT_INSN_ASK);
	ck_assert_uint_ne(vmpt_insn_table[vmpt_insn_key(0, 1, 1, 0xb6, 0x44)], VMPT_INSN_ASK);
	ck_assert_uint_eq(vmpt_insn_table[vmpt_insn_key(1, 0, 0, 0xe9, 0)], VMPT_INSN_ASK);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("decoder/flow/insn");
	TCase *tcase = tcase_create("rows");

	tcase_add_loop_test(tcase, table_of_the_manual, 0, (int)VMPT_ARRAY_SIZE(rows));
	tcase_add_loop_test(tcase, invalid, 0, 5);
	tcase_add_test(tcase, few_asks);
	suite_add_tcase(suite, tcase);
	tcase = test_long_case(suite);
	tcase_add_test(tcase, all_keys);
	tcase_add_test(tcase, random_bytes);
	return suite;
}
