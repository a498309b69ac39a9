// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Instructions by Zydis: class, length and target of any instruction of any mode. */
#include <Zydis/Zydis.h>

#include "decoder/flow/insn.h"

/*
 * Far transfers wait for a TIP. HLT, UD, XBEGIN and RSM do not: what follows them comes with a FUP.
 * UIRET and the returns of FRED are newer than this manual.
 */
static enum vmpt_insn_class far_class(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_INT:
	case ZYDIS_MNEMONIC_INT1:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_INTO:
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_SYSCALL:
	case ZYDIS_MNEMONIC_SYSENTER:
	case ZYDIS_MNEMONIC_SYSEXIT:
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_UIRET:
	case ZYDIS_MNEMONIC_VMCALL:
	case ZYDIS_MNEMONIC_VMLAUNCH:
	case ZYDIS_MNEMONIC_VMRESUME:
		return VMPT_INSN_FAR;
	default:
		return VMPT_INSN_OTHER;
	}
}

/* MOV to CR3: 0F 22 /3. REX.R makes it CR11. */
static bool writes_cr3(const ZydisDecodedInstruction *insn)
{
	return insn->opcode_map == ZYDIS_OPCODE_MAP_0F && insn->opcode == 0x22 &&
	       insn->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY && insn->raw.modrm.reg == 3 &&
	       !insn->raw.rex.R;
}

static enum vmpt_insn_class class_of(const ZydisDecodedInstruction *insn)
{
	bool relative = insn->raw.imm[0].is_relative;

	/* XBEGIN, XEND and XABORT are of such categories, too. */
	switch (insn->meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
		return relative && insn->mnemonic != ZYDIS_MNEMONIC_XBEGIN ? VMPT_INSN_COND
									   : VMPT_INSN_OTHER;
	case ZYDIS_CATEGORY_UNCOND_BR:
		if (insn->mnemonic != ZYDIS_MNEMONIC_JMP)
			return VMPT_INSN_OTHER;
		if (insn->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
			return VMPT_INSN_FAR;
		return relative ? VMPT_INSN_JMP : VMPT_INSN_JMP_IND;
	case ZYDIS_CATEGORY_CALL:
		if (insn->mnemonic != ZYDIS_MNEMONIC_CALL)
			break;
		if (insn->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
			return VMPT_INSN_FAR;
		return relative ? VMPT_INSN_CALL : VMPT_INSN_CALL_IND;
	case ZYDIS_CATEGORY_RET:
		if (insn->mnemonic != ZYDIS_MNEMONIC_RET)
			break;
		return insn->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR ? VMPT_INSN_FAR
								       : VMPT_INSN_RET;
	default:
		break;
	}
	return writes_cr3(insn) ? VMPT_INSN_MOV_CR3 : far_class(insn->mnemonic);
}

/* A 16-bit operand cuts the IP, except in 64-bit mode, where Intel ignores 66H (SDM 2, Jcc). */
static u64 target_of(const ZydisDecodedInstruction *insn, u64 ip, unsigned int exec)
{
	u64 target = ip + insn->length + (u64)insn->raw.imm[0].value.s;

	if (exec == 64)
		return target;
	if (exec == 32 && insn->operand_width == 16)
		return target & 0xffff;
	return target & 0xffffffff;
}

/*
 * ERETS and ERETU (F2 and F3 0F 01 CA) are newer than some versions of Zydis, which take them for
 * CLAC with a prefix that has no meaning.
 */
static bool is_eret(const u8 *bytes, size_t n)
{
	return n >= 4 && (bytes[0] == 0xf2 || bytes[0] == 0xf3) && bytes[1] == 0x0f &&
	       bytes[2] == 0x01 && bytes[3] == 0xca;
}

int vmpt_insn_ask(struct vmpt_insn *insn, const u8 *bytes, size_t n, u64 ip, unsigned int exec)
{
	ZydisDecodedInstruction zydis;
	ZydisDecoder decoder;
	ZyanStatus status;

	if (exec == 64 && is_eret(bytes, n)) {
		*insn = (struct vmpt_insn){ .size = 4, .class = VMPT_INSN_FAR };
		return VMPT_INSN_OK;
	}
	/* It only fills a few fields: there is nothing worth keeping. */
	if (exec == 64)
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	else if (exec == 32)
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32);
	else
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LEGACY_16, ZYDIS_STACK_WIDTH_16);
	status = ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, n, &zydis);
	if (status == ZYDIS_STATUS_NO_MORE_DATA)
		return n < VMPT_INSN_SIZE_MAX ? VMPT_INSN_MORE : VMPT_INSN_INVALID;
	if (ZYAN_FAILED(status))
		return VMPT_INSN_INVALID;
	insn->size = zydis.length;
	insn->class = (u8)class_of(&zydis);
	insn->target = insn->class == VMPT_INSN_COND || insn->class == VMPT_INSN_JMP ||
				       insn->class == VMPT_INSN_CALL
			       ? target_of(&zydis, ip, exec)
			       : 0;
	return VMPT_INSN_OK;
}
