// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Instructions decoded by Zydis, reduced to what tracing needs.
 */
#include <string.h>

#include <Zydis/Zydis.h>

#include "qemu-plugin/flow/insn.h"

static bool decode(ZydisMachineMode mode, ZydisStackWidth width, const u8 *bytes, size_t size,
		   ZydisDecodedInstruction *out)
{
	ZydisDecoder decoder;

	return ZYAN_SUCCESS(ZydisDecoderInit(&decoder, mode, width)) &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, size, out)) &&
	       out->length == size;
}

static u8 near_or_far(const ZydisDecodedInstruction *i, u8 direct, u8 indirect)
{
	if (i->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		return INSN_FAR;
	return i->raw.imm[0].is_relative ? direct : indirect;
}

static u8 kind_of_mov(const ZydisDecodedInstruction *i)
{
	if (i->opcode_map != ZYDIS_OPCODE_MAP_0F || i->opcode != 0x22)
		return INSN_PLAIN;
	return (i->raw.modrm.reg & 7) == 3 ? INSN_MOV_CR3 : INSN_MODE;
}

static u8 kind_of(const ZydisDecodedInstruction *i)
{
	switch (i->mnemonic) {
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
		return INSN_IRET;
	case ZYDIS_MNEMONIC_RSM:
		return INSN_RSM;
	case ZYDIS_MNEMONIC_SYSCALL:
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_SYSENTER:
	case ZYDIS_MNEMONIC_SYSEXIT:
		return INSN_FAR;
	case ZYDIS_MNEMONIC_INT:
	case ZYDIS_MNEMONIC_INT1:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_INTO:
		return INSN_SOFT_INT;
	case ZYDIS_MNEMONIC_MOV:
		return kind_of_mov(i);
	case ZYDIS_MNEMONIC_LMSW:
	case ZYDIS_MNEMONIC_CLTS:
	case ZYDIS_MNEMONIC_WRMSR:
		return INSN_MODE;
	default:
		break;
	}
	switch (i->meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
		return INSN_JCC;
	case ZYDIS_CATEGORY_UNCOND_BR:
		return near_or_far(i, INSN_JMP, INSN_JMP_IND);
	case ZYDIS_CATEGORY_CALL:
		return near_or_far(i, INSN_CALL, INSN_CALL_IND);
	case ZYDIS_CATEGORY_RET:
		return i->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR ? INSN_FAR : INSN_RET;
	default:
		break;
	}
	if (i->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE))
		return INSN_REP;
	return INSN_PLAIN;
}

static u8 hook_of(const ZydisDecodedInstruction *i)
{
	switch (i->mnemonic) {
	case ZYDIS_MNEMONIC_IN:
	case ZYDIS_MNEMONIC_INSB:
	case ZYDIS_MNEMONIC_INSW:
	case ZYDIS_MNEMONIC_INSD:
	case ZYDIS_MNEMONIC_OUT:
	case ZYDIS_MNEMONIC_OUTSB:
	case ZYDIS_MNEMONIC_OUTSW:
	case ZYDIS_MNEMONIC_OUTSD:
		return HOOK_IO;
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_MWAIT:
		return HOOK_HLT;
	case ZYDIS_MNEMONIC_LGDT:
		return HOOK_LGDT;
	case ZYDIS_MNEMONIC_LIDT:
		return HOOK_LIDT;
	case ZYDIS_MNEMONIC_LLDT:
		return HOOK_LLDT;
	case ZYDIS_MNEMONIC_STI:
	case ZYDIS_MNEMONIC_CLI:
	case ZYDIS_MNEMONIC_POPF:
	case ZYDIS_MNEMONIC_POPFD:
	case ZYDIS_MNEMONIC_POPFQ:
		return HOOK_IF;
	case ZYDIS_MNEMONIC_CPUID:
		return HOOK_CPUID;
	case ZYDIS_MNEMONIC_RDMSR:
		return HOOK_RDMSR;
	case ZYDIS_MNEMONIC_WRMSR:
		return HOOK_WRMSR;
	case ZYDIS_MNEMONIC_RDTSC:
	case ZYDIS_MNEMONIC_RDTSCP:
		return HOOK_RDTSC;
	case ZYDIS_MNEMONIC_RDPMC:
		return HOOK_RDPMC;
	case ZYDIS_MNEMONIC_PTWRITE:
		return HOOK_PTWRITE;
	default:
		return HOOK_NONE;
	}
}

/* QEMU does not know PTWRITE and stops reading at its ModRM byte: the rest may be missing. */
static bool is_cut_ptwrite(const u8 *bytes, size_t size)
{
	u8 padded[ZYDIS_MAX_INSTRUCTION_LENGTH] = { 0 };
	ZydisDecodedInstruction i;
	ZydisDecoder decoder;

	memcpy(padded, bytes, size < sizeof(padded) ? size : sizeof(padded));
	return ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64,
					     ZYDIS_STACK_WIDTH_64)) &&
	       ZYAN_SUCCESS(
		       ZydisDecoderDecodeInstruction(&decoder, NULL, padded, sizeof(padded), &i)) &&
	       i.mnemonic == ZYDIS_MNEMONIC_PTWRITE;
}

void insn_classify(struct insn *insn, const u8 *bytes, size_t size)
{
	ZydisDecodedInstruction i;

	*insn = (struct insn){ .kind = INSN_PLAIN, .size = (u8)size };
	if (!decode(ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64, bytes, size, &i) &&
	    !decode(ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32, bytes, size, &i) &&
	    !decode(ZYDIS_MACHINE_MODE_LEGACY_16, ZYDIS_STACK_WIDTH_16, bytes, size, &i)) {
		if (is_cut_ptwrite(bytes, size))
			insn->hook = HOOK_PTWRITE;
		return;
	}
	insn->kind = kind_of(&i);
	insn->hook = hook_of(&i);
	if (i.raw.imm[0].is_relative)
		insn->relative = i.raw.imm[0].value.s;
}

static bool is_sp(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
	       (op->reg.value == ZYDIS_REGISTER_RSP || op->reg.value == ZYDIS_REGISTER_ESP ||
		op->reg.value == ZYDIS_REGISTER_SP);
}

static bool decode_full(ZydisMachineMode mode, ZydisStackWidth width, const u8 *bytes, size_t size,
			ZydisDecodedInstruction *out, ZydisDecodedOperand *operands)
{
	ZydisDecoder decoder;

	return ZYAN_SUCCESS(ZydisDecoderInit(&decoder, mode, width)) &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, size, out, operands)) &&
	       out->length == size;
}

bool insn_loads_sp(const u8 *bytes, size_t size)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction i;

	if (!decode_full(ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64, bytes, size, &i,
			 operands) &&
	    !decode_full(ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32, bytes, size, &i,
			 operands) &&
	    !decode_full(ZYDIS_MACHINE_MODE_LEGACY_16, ZYDIS_STACK_WIDTH_16, bytes, size, &i,
			 operands))
		return false;
	switch (i.mnemonic) {
	case ZYDIS_MNEMONIC_LEAVE:
	case ZYDIS_MNEMONIC_ENTER:
		return true;
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_LEA:
		return is_sp(&operands[0]);
	case ZYDIS_MNEMONIC_XCHG:
		return is_sp(&operands[0]) || is_sp(&operands[1]);
	default:
		return false;
	}
}

static bool decode_bits(const u8 *bytes, size_t size, unsigned int bits,
			ZydisDecodedInstruction *out)
{
	if (bits == 64)
		return decode(ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64, bytes, size, out);
	if (bits == 32)
		return decode(ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32, bytes, size, out);
	return decode(ZYDIS_MACHINE_MODE_LEGACY_16, ZYDIS_STACK_WIDTH_16, bytes, size, out);
}

bool insn_io(struct insn_io *io, const u8 *bytes, size_t size, unsigned int bits)
{
	ZydisDecodedInstruction i;

	/* Even opcodes access bytes; bit 1 is the direction (SDM 2, IN, INS, OUT, OUTS). */
	if (!decode_bits(bytes, size, bits, &i) || hook_of(&i) != HOOK_IO)
		return false;
	*io = (struct insn_io){
		.width = !(i.opcode & 1)	 ? 1
			 : i.operand_width == 16 ? 2
						 : 4,
		.in = !(i.opcode & 2),
		.string = i.opcode < 0x70,
		.immediate = i.opcode >= 0xe0 && i.opcode < 0xe8,
	};
	io->rep = io->string && i.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE |
						ZYDIS_ATTRIB_HAS_REPNE);
	if (io->immediate)
		io->port = (u8)i.raw.imm[0].value.u;
	return true;
}
