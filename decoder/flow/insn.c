// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Reading an instruction of 64-bit code by the table; see insn.h. */
#include "decoder/flow/insn.h"

/* What the first bytes of an instruction can be, besides its opcode. */
enum { OPCODE, SEGMENT, PREFIX, REX, MAP };

static const u8 first_byte[256] = {
	[0x26] = SEGMENT, [0x2e] = SEGMENT, [0x36] = SEGMENT,	   [0x3e] = SEGMENT,
	[0x64] = SEGMENT, [0x65] = SEGMENT, [0x66] = PREFIX,	   [0xf2] = PREFIX,
	[0xf3] = PREFIX,  [0x0f] = MAP,	    [0x40 ... 0x4f] = REX,
};

static unsigned int prefix_index(u8 byte)
{
	return byte == 0x66 ? 1 : byte - 0xf0u; /* F2H: 2, F3H: 3 */
}

/* The displacement of a direct branch is its immediate, at its end: 8 or 32 bits. */
static u64 target_of(const u8 *end, unsigned int bytes, u64 next)
{
	return next + (bytes >= 4 ? (u64)(s64)(s32)vmpt_load32(end - 4) : (u64)(s64)(s8)end[-1]);
}

/* At most one of 66H, F2H and F3H, one segment, then REX; anything else is left to Zydis. */
static int read_by_table(struct vmpt_insn *insn, const u8 *bytes, u64 ip)
{
	unsigned int prefix = 0, w = 0, map = 0, size, entry;
	const u8 *p = bytes;

	if (first_byte[*p] == SEGMENT)
		p++;
	if (first_byte[*p] == PREFIX)
		prefix = prefix_index(*p++);
	if (first_byte[*p] == REX)
		w = *p++ >> 3 & 1;
	if (first_byte[*p] == MAP) {
		map = 1;
		p++;
	}
	entry = vmpt_insn_table[vmpt_insn_key(prefix, w, map, p[0], p[1])];
	if (entry == VMPT_INSN_ASK)
		return 0;
	size = (unsigned int)(p - bytes) - map + (entry & VMPT_INSN_BYTES);
	if (entry & VMPT_INSN_MODRM)
		size += 1 + vmpt_insn_address(p[1], p[2]);
	insn->size = (u8)size;
	insn->class = (u8)(entry >> 8);
	insn->target = 0;
	if (insn->class >= VMPT_INSN_COND && insn->class <= VMPT_INSN_CALL)
		insn->target =
			target_of(bytes + size, (entry & VMPT_INSN_BYTES) - map - 1, ip + size);
	return 1;
}

int vmpt_insn_read(struct vmpt_insn *insn, const u8 *bytes, size_t n, u64 ip, unsigned int exec)
{
	if (exec == 64 && n > VMPT_INSN_SIZE_MAX && read_by_table(insn, bytes, ip))
		return VMPT_INSN_OK;
	return vmpt_insn_ask(insn, bytes, n, ip, exec);
}
