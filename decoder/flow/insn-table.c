// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Fills the table of insn.h by Zydis: for each key all that the key leaves open is tried, ModRM's
 * mod and rm, SIB bytes of each kind, REX's other bits, a segment prefix. If results differ, or if
 * one is no instruction, the key's entry is VMPT_INSN_ASK.
 */
#include "decoder/flow/insn.h"

struct key {
	unsigned int prefix, w, map, opcode, low;
};

/* One that uses no SIB byte tells nothing of others: base and index plain, no base, no index. */
static const u8 sibs[] = { 0x08, 0x0d, 0x25 };

/* What is not an opcode that stands for itself, or has bits elsewhere that decide. */
static bool always_ask(const struct key *k)
{
	if (k->map) /* 0F38 and 0F3A have maps of their own; MOV CR and DR: REX.R counts */
		return k->opcode == 0x38 || k->opcode == 0x3a ||
		       (k->opcode >= 0x20 && k->opcode <= 0x23);
	switch (k->opcode) {
	case 0x0f:
	case 0x26: /* prefixes */
	case 0x2e:
	case 0x36:
	case 0x3e:
	case 0x40 ... 0x4f:
	case 0x64 ... 0x67:
	case 0xf0:
	case 0xf2:
	case 0xf3:
	case 0x62: /* EVEX, XOP, VEX, REX2 */
	case 0x8f:
	case 0xc4:
	case 0xc5:
	case 0xd5:
		return true;
	default:
		return false;
	}
}

static size_t put(u8 *bytes, const struct key *k, unsigned int segment, unsigned int rex,
		  unsigned int modrm, unsigned int sib)
{
	static const u8 prefixes[] = { 0, 0x66, 0xf2, 0xf3 };
	size_t n = 0;

	memset(bytes, 0, VMPT_INSN_SIZE_MAX);
	if (segment)
		bytes[n++] = (u8)segment;
	if (k->prefix)
		bytes[n++] = prefixes[k->prefix];
	if (k->w || rex)
		bytes[n++] = (u8)(0x40 | k->w << 3 | rex);
	if (k->map)
		bytes[n++] = 0x0f;
	bytes[n++] = (u8)k->opcode;
	bytes[n] = (u8)modrm;
	bytes[n + 1] = (u8)sib;
	return n;
}

/* Bytes of opcode and immediate if a ModRM byte follows the opcode, or not. -1: it does not fit. */
static int entry_of(const struct vmpt_insn *insn, size_t opcode_end, const struct key *k, bool has,
		    unsigned int modrm, unsigned int sib)
{
	int rest = insn->size - (int)opcode_end;

	if (has)
		rest -= 1 + (int)vmpt_insn_address(modrm, sib);
	if (rest < 0)
		return -1;
	return rest + 1 + (int)k->map;
}

struct tries {
	int plain,
		modrm; /* the entry's bytes if it has no ModRM byte, and if it has; -1: neither */
	int class;     /* -1: none yet; -2: they differ */
};

static void try_one(struct tries *t, const struct key *k, unsigned int segment, unsigned int rex,
		    unsigned int modrm, unsigned int sib)
{
	u8 bytes[VMPT_INSN_SIZE_MAX];
	size_t end = put(bytes, k, segment, rex, modrm, sib);
	struct vmpt_insn insn;
	int plain, with;

	if (t->class == -2)
		return;
	if (vmpt_insn_ask(&insn, bytes, sizeof(bytes), 0, 64) != VMPT_INSN_OK) {
		t->class = -2;
		return;
	}
	plain = entry_of(&insn, end, k, false, modrm, sib);
	with = entry_of(&insn, end, k, true, modrm, sib);
	if (t->class == -1) {
		t->class = insn.class;
		t->plain = plain;
		t->modrm = with;
	}
	if (t->class != insn.class)
		t->class = -2;
	if (t->plain != plain)
		t->plain = -1;
	if (t->modrm != with)
		t->modrm = -1;
}

static void try_modrm(struct tries *t, const struct key *k, unsigned int segment, unsigned int rex,
		      unsigned int modrm)
{
	unsigned int i;

	if (modrm >= 0xc0 || (modrm & 7) != 4) {
		try_one(t, k, segment, rex, modrm, 0);
		return;
	}
	for (i = 0; i < sizeof(sibs); i++)
		try_one(t, k, segment, rex, modrm, sibs[i]);
}

static u16 entry(const struct key *k)
{
	unsigned int mod, rm, from = k->low & 8 ? 3 : 0, to = k->low & 8 ? 3 : 2;
	unsigned int reg = (k->low & 7) << 3;
	struct tries t = { .class = -1 };

	if (always_ask(k))
		return VMPT_INSN_ASK;
	for (mod = from; mod <= to; mod++)
		for (rm = 0; rm < 8; rm++) {
			unsigned int modrm = mod << 6 | reg | rm;

			try_modrm(&t, k, 0, 0, modrm);
			try_modrm(&t, k, 0, 7, modrm);
			if (rm == 1)
				try_modrm(&t, k, 0x64, 5, modrm);
			if (rm == 1)
				try_modrm(&t, k, 0x2e, 0, modrm);
		}
	if (t.class < 0 || (t.plain < 0 && t.modrm < 0))
		return VMPT_INSN_ASK;
	/* 66H before a near branch depends on the mode and on who made the processor. */
	if (k->prefix == 1 && t.class != VMPT_INSN_OTHER)
		return VMPT_INSN_ASK;
	/* With mod 3 both may fit, and give the same length. Direct branches have no ModRM byte. */
	if (t.plain >= 0)
		return (u16)(t.plain | t.class << 8);
	return (u16)(VMPT_INSN_MODRM | t.modrm | t.class << 8);
}

void vmpt_insn_table_init(u16 *table)
{
	struct key k;

	for (k.prefix = 0; k.prefix < 4; k.prefix++)
		for (k.w = 0; k.w < 2; k.w++)
			for (k.map = 0; k.map < 2; k.map++)
				for (k.opcode = 0; k.opcode < 256; k.opcode++)
					for (k.low = 0; k.low < 16; k.low++)
						table[vmpt_insn_key(k.prefix, k.w, k.map, k.opcode,
								    (k.low & 8 ? 0xc0 : 0) |
									    (k.low & 7) << 3)] =
							entry(&k);
}
