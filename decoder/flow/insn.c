// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Reading an instruction; see insn.h. */
#include "decoder/flow/insn.h"

#define SEGMENT VMPT_INSN_SEGMENT
#define PREFIX	VMPT_INSN_PREFIX
#define REX	VMPT_INSN_REX
#define MAP	VMPT_INSN_MAP

const u8 vmpt_insn_first[256] = {
	[0x26] = SEGMENT, [0x2e] = SEGMENT, [0x36] = SEGMENT,	   [0x3e] = SEGMENT,
	[0x64] = SEGMENT, [0x65] = SEGMENT, [0x66] = PREFIX,	   [0xf2] = PREFIX,
	[0xf3] = PREFIX,  [0x0f] = MAP,	    [0x40 ... 0x4f] = REX,
};

int vmpt_insn_read(struct vmpt_insn *insn, const u8 *bytes, size_t n, u64 ip, unsigned int exec)
{
	if (exec == 64 && n > VMPT_INSN_SIZE_MAX && vmpt_insn_by_table(insn, bytes, ip))
		return VMPT_INSN_OK;
	return vmpt_insn_ask(insn, bytes, n, ip, exec);
}
