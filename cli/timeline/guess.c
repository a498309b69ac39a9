// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The basic exit reason that an instruction causes. Whether it does depends on unknown VM-execution
 * controls, so all of this is guessed; but the resume IP shows whether the instruction was
 * emulated, and an interrupt can come anywhere.
 */
#include <Zydis/Zydis.h>

#include "cli/timeline/code.h"

/* SDM 3, Table C-1. */
enum {
	EXTERNAL_INTERRUPT = 1,
	EPT_VIOLATION = 48,
};

static const struct {
	u16 mnemonic;
	u16 reason;
} causes[] = {
	{ ZYDIS_MNEMONIC_CPUID, 10 },	  { ZYDIS_MNEMONIC_GETSEC, 11 },
	{ ZYDIS_MNEMONIC_HLT, 12 },	  { ZYDIS_MNEMONIC_INVD, 13 },
	{ ZYDIS_MNEMONIC_INVLPG, 14 },	  { ZYDIS_MNEMONIC_RDPMC, 15 },
	{ ZYDIS_MNEMONIC_RDTSC, 16 },	  { ZYDIS_MNEMONIC_RSM, 17 },
	{ ZYDIS_MNEMONIC_VMCALL, 18 },	  { ZYDIS_MNEMONIC_VMCLEAR, 19 },
	{ ZYDIS_MNEMONIC_VMLAUNCH, 20 },  { ZYDIS_MNEMONIC_VMPTRLD, 21 },
	{ ZYDIS_MNEMONIC_VMPTRST, 22 },	  { ZYDIS_MNEMONIC_VMREAD, 23 },
	{ ZYDIS_MNEMONIC_VMRESUME, 24 },  { ZYDIS_MNEMONIC_VMWRITE, 25 },
	{ ZYDIS_MNEMONIC_VMXOFF, 26 },	  { ZYDIS_MNEMONIC_VMXON, 27 },
	{ ZYDIS_MNEMONIC_CLTS, 28 },	  { ZYDIS_MNEMONIC_LMSW, 28 },
	{ ZYDIS_MNEMONIC_IN, 30 },	  { ZYDIS_MNEMONIC_OUT, 30 },
	{ ZYDIS_MNEMONIC_INSB, 30 },	  { ZYDIS_MNEMONIC_INSW, 30 },
	{ ZYDIS_MNEMONIC_INSD, 30 },	  { ZYDIS_MNEMONIC_OUTSB, 30 },
	{ ZYDIS_MNEMONIC_OUTSW, 30 },	  { ZYDIS_MNEMONIC_OUTSD, 30 },
	{ ZYDIS_MNEMONIC_RDMSR, 31 },	  { ZYDIS_MNEMONIC_WRMSR, 32 },
	{ ZYDIS_MNEMONIC_MWAIT, 36 },	  { ZYDIS_MNEMONIC_MONITOR, 39 },
	{ ZYDIS_MNEMONIC_PAUSE, 40 },	  { ZYDIS_MNEMONIC_LGDT, 46 },
	{ ZYDIS_MNEMONIC_LIDT, 46 },	  { ZYDIS_MNEMONIC_SGDT, 46 },
	{ ZYDIS_MNEMONIC_SIDT, 46 },	  { ZYDIS_MNEMONIC_LLDT, 47 },
	{ ZYDIS_MNEMONIC_LTR, 47 },	  { ZYDIS_MNEMONIC_SLDT, 47 },
	{ ZYDIS_MNEMONIC_STR, 47 },	  { ZYDIS_MNEMONIC_INVEPT, 50 },
	{ ZYDIS_MNEMONIC_RDTSCP, 51 },	  { ZYDIS_MNEMONIC_INVVPID, 53 },
	{ ZYDIS_MNEMONIC_WBINVD, 54 },	  { ZYDIS_MNEMONIC_XSETBV, 55 },
	{ ZYDIS_MNEMONIC_RDRAND, 57 },	  { ZYDIS_MNEMONIC_INVPCID, 58 },
	{ ZYDIS_MNEMONIC_VMFUNC, 59 },	  { ZYDIS_MNEMONIC_ENCLS, 60 },
	{ ZYDIS_MNEMONIC_RDSEED, 61 },	  { ZYDIS_MNEMONIC_XSAVES, 63 },
	{ ZYDIS_MNEMONIC_XSAVES64, 63 },  { ZYDIS_MNEMONIC_XRSTORS, 64 },
	{ ZYDIS_MNEMONIC_XRSTORS64, 64 }, { ZYDIS_MNEMONIC_PCONFIG, 65 },
	{ ZYDIS_MNEMONIC_UMWAIT, 67 },	  { ZYDIS_MNEMONIC_TPAUSE, 68 },
	{ ZYDIS_MNEMONIC_ENCLV, 70 },
};

/* MOV to and from control and debug registers. */
static u16 register_reason(const ZydisDecodedOperand *op, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (op[i].type != ZYDIS_OPERAND_TYPE_REGISTER)
			continue;
		if (ZydisRegisterGetClass(op[i].reg.value) == ZYDIS_REGCLASS_CONTROL)
			return 28;
		if (ZydisRegisterGetClass(op[i].reg.value) == ZYDIS_REGCLASS_DEBUG)
			return 29;
	}
	return VMPT_REASON_UNKNOWN;
}

static bool touches_memory(const ZydisDecodedOperand *op, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (op[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    op[i].mem.type == ZYDIS_MEMOP_TYPE_MEM)
			return true;
	return false;
}

static u16 cause_of(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *op)
{
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(causes); i++)
		if (causes[i].mnemonic == insn->mnemonic)
			return causes[i].reason;
	if (insn->mnemonic == ZYDIS_MNEMONIC_MOV)
		return register_reason(op, insn->operand_count);
	return VMPT_REASON_UNKNOWN;
}

/*
 * HLT, MWAIT, UMWAIT and TPAUSE exit at their own IP, and are encoded alike in all modes, so a
 * guest in another mode than the decoder's is not taken wrong here.
 */
static bool may_halt(const ZydisDecodedInstruction *insn)
{
	return insn->mnemonic == ZYDIS_MNEMONIC_HLT || insn->mnemonic == ZYDIS_MNEMONIC_MWAIT ||
	       insn->mnemonic == ZYDIS_MNEMONIC_UMWAIT || insn->mnemonic == ZYDIS_MNEMONIC_TPAUSE;
}

u16 timeline_guess(const struct vmpt_exit_place *place, const u8 *bytes, size_t n, bool *no_halt)
{
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction insn;
	ZydisDecoder decoder;
	u16 reason;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!n || !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, n, &insn, op)))
		return VMPT_REASON_UNKNOWN;
	*no_halt = !may_halt(&insn);
	reason = cause_of(&insn, op);
	/* It was emulated: the guest resumes after it. */
	if (place->has_next && place->next == place->ip + insn.length) {
		if (reason == VMPT_REASON_UNKNOWN && touches_memory(op, insn.operand_count))
			return EPT_VIOLATION;
		return reason;
	}
	/* It is retried, or an event came before it. */
	if (place->has_next && place->next == place->ip) {
		if (reason == 30 && insn.attributes & ZYDIS_ATTRIB_HAS_REP)
			return reason;
		if (touches_memory(op, insn.operand_count))
			return VMPT_REASON_UNKNOWN;
		return EXTERNAL_INTERRUPT;
	}
	return reason;
}
