// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <Zydis/Zydis.h>

#include "tests/rtit/insn.h"

static const char *const names[RTIT_INSN_KINDS] = {
	[RTIT_INSN_OTHER] = "no branch",
	[RTIT_INSN_JCC] = "Jcc",
	[RTIT_INSN_JMP] = "JMP",
	[RTIT_INSN_CALL] = "CALL",
	[RTIT_INSN_JMP_INDIRECT] = "indirect JMP",
	[RTIT_INSN_CALL_INDIRECT] = "indirect CALL",
	[RTIT_INSN_RET] = "RET",
	[RTIT_INSN_FAR] = "far transfer",
	[RTIT_INSN_PAGING] = "MOV to CR0 or CR3",
	[RTIT_INSN_WRMSR] = "WRMSR",
};

const char *rtit_insn_name(unsigned int kind)
{
	return kind < RTIT_INSN_KINDS ? names[kind] : "?";
}

static bool decode(ZydisDecodedInstruction *i, const u8 *bytes, size_t size, unsigned int bits)
{
	static const struct {
		unsigned int bits;
		ZydisMachineMode mode;
		ZydisStackWidth width;
	} modes[] = {
		{ 64, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64 },
		{ 32, ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32 },
		{ 16, ZYDIS_MACHINE_MODE_LEGACY_16, ZYDIS_STACK_WIDTH_16 },
	};
	ZydisDecoder decoder;
	unsigned int m;

	for (m = 0; m < VMPT_ARRAY_SIZE(modes); m++)
		if (modes[m].bits == bits)
			break;
	return m < VMPT_ARRAY_SIZE(modes) &&
	       ZYAN_SUCCESS(ZydisDecoderInit(&decoder, modes[m].mode, modes[m].width)) &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, size, i));
}

static u8 near_branch(const ZydisDecodedInstruction *i, u8 direct, u8 indirect)
{
	if (i->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		return RTIT_INSN_FAR;
	return i->raw.imm[0].is_relative ? direct : indirect;
}

static bool changes_paging(const ZydisDecodedInstruction *i)
{
	unsigned int cr = i->raw.modrm.reg | (unsigned int)i->raw.rex.R << 3;

	if (i->mnemonic == ZYDIS_MNEMONIC_LMSW)
		return true;
	return i->opcode_map == ZYDIS_OPCODE_MAP_0F && i->opcode == 0x22 && (cr == 0 || cr == 3);
}

static u8 kind_of(const ZydisDecodedInstruction *i)
{
	switch (i->mnemonic) {
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_INT:
	case ZYDIS_MNEMONIC_INT1:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_SYSCALL:
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_SYSENTER:
	case ZYDIS_MNEMONIC_SYSEXIT:
		return RTIT_INSN_FAR;
	case ZYDIS_MNEMONIC_WRMSR:
		return RTIT_INSN_WRMSR;
	default:
		break;
	}
	switch (i->meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
		return RTIT_INSN_JCC;
	case ZYDIS_CATEGORY_UNCOND_BR:
		return near_branch(i, RTIT_INSN_JMP, RTIT_INSN_JMP_INDIRECT);
	case ZYDIS_CATEGORY_CALL:
		return near_branch(i, RTIT_INSN_CALL, RTIT_INSN_CALL_INDIRECT);
	case ZYDIS_CATEGORY_RET:
		return i->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR ? RTIT_INSN_FAR : RTIT_INSN_RET;
	default:
		return changes_paging(i) ? RTIT_INSN_PAGING : RTIT_INSN_OTHER;
	}
}

bool rtit_insn_decode(struct rtit_insn *insn, u64 ip, const u8 *bytes, size_t size,
		      unsigned int bits)
{
	ZydisDecodedInstruction i;

	if (!decode(&i, bytes, size, bits))
		return false;
	*insn = (struct rtit_insn){ .kind = kind_of(&i), .len = i.length };
	if (!i.raw.imm[0].is_relative)
		return true;
	insn->target = ip + i.length + (u64)i.raw.imm[0].value.s;
	/* A 16-bit operand size in 32-bit code truncates EIP. 16-bit code may have a base. */
	if (bits != 64)
		insn->target &= bits == 32 && i.operand_width == 16 ? 0xffffu : 0xffffffffu;
	return true;
}
