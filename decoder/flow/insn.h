/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside the flow decoder: what it needs to know of an instruction: its length, whether it changes
 * the flow, and where a direct branch goes. 64-bit code is read by a table that Zydis fills at
 * build time (insn-table.c); what the table does not say, and 16-bit and 32-bit code, is left to
 * Zydis.
 */
#ifndef VMPT_DECODER_FLOW_INSN_H
#define VMPT_DECODER_FLOW_INSN_H

#include "arch/types.h"

/*
 * Classes by what the processor sends (SDM 3 33.2.1, 33.4.2.2 to 33.4.2.5, 33.4.2.7): COND a TNT
 * bit; JMP and CALL nothing; *_IND a TIP; RET a TIP, or a TNT bit if it is compressed; FAR a TIP,
 * and a FUP before it where it is an event (INT n). MOV CR3 a PIP, or TIP.PGE or TIP.PGD where it
 * changes ContextEn.
 */
enum vmpt_insn_class {
	VMPT_INSN_OTHER,
	VMPT_INSN_COND,
	VMPT_INSN_JMP,
	VMPT_INSN_CALL,
	VMPT_INSN_JMP_IND,
	VMPT_INSN_CALL_IND,
	VMPT_INSN_RET,
	VMPT_INSN_FAR,
	VMPT_INSN_MOV_CR3,
	VMPT_INSN_CLASSES
};

#define VMPT_INSN_SIZE_MAX 15

struct vmpt_insn {
	u64 target; /* COND, JMP, CALL */
	u8 size;
	u8 class; /* enum vmpt_insn_class */
};

/* Results of vmpt_insn_read() */
#define VMPT_INSN_OK	  1
#define VMPT_INSN_MORE	  0    /* the bytes end before the instruction does */
#define VMPT_INSN_INVALID (-1) /* no instruction of this mode */

/*
 * Read the instruction at @bytes, of which @n may be read and the first is at @ip. @exec: 16, 32 or
 * 64. Returns one of the above; @insn is filled with VMPT_INSN_OK only.
 */
int vmpt_insn_read(struct vmpt_insn *insn, const u8 *bytes, size_t n, u64 ip, unsigned int exec);

/* The same by Zydis alone: the reference, and what the table is filled by. (insn-zydis.c) */
int vmpt_insn_ask(struct vmpt_insn *insn, const u8 *bytes, size_t n, u64 ip, unsigned int exec);

/*
 * ---- the table ----
 *
 * By prefix (none, 66H, F2H, F3H), REX.W, map (one byte, or 0FH and one), opcode, and of the ModRM
 * byte whether mod is 3, and reg. An entry: bits 3:0 the bytes of opcode and immediate, bit 4 a
 * ModRM byte follows the opcode, bits 11:8 the class; or VMPT_INSN_ASK, if the other bits of the
 * instruction make a difference.
 */
#define VMPT_INSN_KEYS	(4u * 2 * 2 * 256 * 16)
#define VMPT_INSN_BYTES 0x0f
#define VMPT_INSN_MODRM 0x10
#define VMPT_INSN_ASK	0xffff

static inline unsigned int vmpt_insn_key(unsigned int prefix, unsigned int w, unsigned int map,
					 unsigned int opcode, unsigned int modrm)
{
	unsigned int low = (modrm >= 0xc0) << 3 | (modrm >> 3 & 7);

	return ((prefix << 2 | w << 1 | map) << 8 | opcode) << 4 | low;
}

/* Bytes of SIB and displacement after @modrm, with 64-bit addressing; @sib is the byte after it. */
static inline unsigned int vmpt_insn_address(unsigned int modrm, unsigned int sib)
{
	unsigned int mod = modrm >> 6, rm = modrm & 7;
	unsigned int n = mod != 3 && rm == 4;

	if (mod == 1)
		n += 1;
	else if (mod == 2 || (!mod && (rm == 5 || (rm == 4 && (sib & 7) == 5))))
		n += 4;
	return n;
}

extern const u16 vmpt_insn_table[VMPT_INSN_KEYS];

/* What the first bytes of an instruction can be, besides its opcode (0). */
enum { VMPT_INSN_SEGMENT = 1, VMPT_INSN_PREFIX, VMPT_INSN_REX, VMPT_INSN_MAP };
extern const u8 vmpt_insn_first[256];

/*
 * Read an instruction of 64-bit code by the table: VMPT_INSN_SIZE_MAX + 1 bytes may be read. False:
 * ask. It takes one segment, one of 66H, F2H and F3H, then REX, each at most once.
 */
static inline bool vmpt_insn_by_table(struct vmpt_insn *insn, const u8 *bytes, u64 ip)
{
	unsigned int prefix = 0, w = 0, map = 0, size, bytes_after, entry;
	const u8 *p = bytes;
	unsigned int kind = vmpt_insn_first[*p];

	if (kind) {
		if (kind == VMPT_INSN_SEGMENT)
			kind = vmpt_insn_first[*++p];
		if (kind == VMPT_INSN_PREFIX) {
			prefix = *p == 0x66 ? 1 : *p - 0xf0u; /* F2H: 2, F3H: 3 */
			kind = vmpt_insn_first[*++p];
		}
		if (kind == VMPT_INSN_REX) {
			w = *p >> 3 & 1;
			kind = vmpt_insn_first[*++p];
		}
		map = kind == VMPT_INSN_MAP;
		p += map;
	}
	entry = vmpt_insn_table[vmpt_insn_key(prefix, w, map, p[0], p[1])];
	if (entry == VMPT_INSN_ASK)
		return false;
	size = (unsigned int)(p - bytes) - map + (entry & VMPT_INSN_BYTES);
	if (entry & VMPT_INSN_MODRM)
		size += 1 + vmpt_insn_address(p[1], p[2]);
	insn->size = (u8)size;
	insn->class = (u8)(entry >> 8);
	insn->target = 0;
	if (insn->class < VMPT_INSN_COND || insn->class > VMPT_INSN_CALL)
		return true;
	/* The displacement of a direct branch is its immediate, at its end: 8 or 32 bits. */
	bytes_after = (entry & VMPT_INSN_BYTES) - map - 1;
	p = bytes + size;
	insn->target = ip + size +
		       (bytes_after >= 4 ? (u64)(s64)(s32)vmpt_load32(p - 4) : (u64)(s64)(s8)p[-1]);
	return true;
}

/* Fill the table. For insn-table-gen.c only. */
void vmpt_insn_table_init(u16 *table);

#endif
