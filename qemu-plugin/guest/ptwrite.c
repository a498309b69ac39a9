// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * PTWRITE (SDM 2, PTWRITE; SDM 3 33.2.2), which QEMU does not know: Zydis decodes it, its operand
 * is read and passed to the unit. QEMU raises #UD if the guest's processor does not have PTWRITE.
 *
 * If the operand cannot be read, the instruction must fault as a read of it does (SDM 2, PTWRITE),
 * which a plugin cannot raise. But the opcode is 0F AE, and AE alone is SCASB, which reads a byte
 * at ES:RDI and then changes RDI and flags: execution continues there with the operand's address in
 * RDI. QEMU raises the fault; when it is delivered, RDI is restored and the pushed RIP becomes the
 * PTWRITE's. If there is none, because another vCPU has mapped the page, the next instruction in
 * the block, which is made of what follows AE, has a callback that restores RDI and tries again;
 * the arithmetic flags, which a plugin cannot write, are SCASB's then.
 */
#include <Zydis/Zydis.h>

#include "qemu-plugin/guest/internal.h"

#define INSN_MAX 15

/* All general-purpose registers, for any form of address. */
static void read_context(struct vcpu *vcpu, ZydisRegisterContext *context)
{
	static const struct {
		u8 reg;
		ZydisRegister zydis;
	} names[] = {
		{ QREG_RAX, ZYDIS_REGISTER_RAX }, { QREG_RCX, ZYDIS_REGISTER_RCX },
		{ QREG_RDX, ZYDIS_REGISTER_RDX }, { QREG_RBX, ZYDIS_REGISTER_RBX },
		{ QREG_RSP, ZYDIS_REGISTER_RSP }, { QREG_RBP, ZYDIS_REGISTER_RBP },
		{ QREG_RSI, ZYDIS_REGISTER_RSI }, { QREG_RDI, ZYDIS_REGISTER_RDI },
		{ QREG_R8, ZYDIS_REGISTER_R8 },	  { QREG_R9, ZYDIS_REGISTER_R9 },
		{ QREG_R10, ZYDIS_REGISTER_R10 }, { QREG_R11, ZYDIS_REGISTER_R11 },
		{ QREG_R12, ZYDIS_REGISTER_R12 }, { QREG_R13, ZYDIS_REGISTER_R13 },
		{ QREG_R14, ZYDIS_REGISTER_R14 }, { QREG_R15, ZYDIS_REGISTER_R15 },
	};

	for (size_t i = 0; i < VMPT_ARRAY_SIZE(names); i++) {
		u64 value = qemu_read_reg(vcpu->regs, names[i].reg);

		context->values[names[i].zydis] = value;
		/* Zydis looks parts of registers up by their own names. */
		context->values[ZYDIS_REGISTER_EAX + (names[i].zydis - ZYDIS_REGISTER_RAX)] =
			LOW32(value);
		context->values[ZYDIS_REGISTER_AX + (names[i].zydis - ZYDIS_REGISTER_RAX)] =
			value & 0xffff;
	}
}

static u64 segment_base(struct vcpu *vcpu, ZydisRegister segment)
{
	switch (segment) {
	case ZYDIS_REGISTER_FS:
		return qemu_read_reg(vcpu->regs, QREG_FS_BASE);
	case ZYDIS_REGISTER_GS:
		return qemu_read_reg(vcpu->regs, QREG_GS_BASE);
	case ZYDIS_REGISTER_CS:
		return vcpu->cpu.cs_base;
	default:
		/* DS, ES and SS: QEMU does not expose their bases. Assume flat segments. */
		return 0;
	}
}

/* Reads the whole instruction: QEMU may have stopped where it found it to be unknown. */
static bool decode(struct vcpu *vcpu, u64 ip, ZydisDecodedInstruction *insn,
		   ZydisDecodedOperand *operands)
{
	u8 bytes[INSN_MAX];
	size_t len = INSN_MAX, page = 4096 - ip % 4096;
	ZydisDecoder decoder;

	/* The next page may not be present. */
	if (!qemu_read_linear(vcpu->regs, ip, bytes, len)) {
		len = page < len ? page : len;
		if (!qemu_read_linear(vcpu->regs, ip, bytes, len))
			return false;
	}
	if (vcpu->mode.cs_l)
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	else if (vcpu->mode.cs_d)
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32);
	else
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LEGACY_16, ZYDIS_STACK_WIDTH_16);
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, len, insn, operands)) &&
	       insn->mnemonic == ZYDIS_MNEMONIC_PTWRITE;
}

/* A byte of the operand that cannot be read, or its first if all can by now. */
static u64 unreadable(struct vcpu *vcpu, u64 address, size_t size)
{
	u8 byte;

	/* The second of two pages begins at a multiple of 4 KiB. */
	return qemu_read_linear(vcpu->regs, address, &byte, 1) ? (address + size - 1) & ~0xfffULL
							       : address;
}

/* false: the byte at *unread cannot be read. */
static bool read_operand(struct vcpu *vcpu, const ZydisDecodedInstruction *insn,
			 const ZydisDecodedOperand *operand, u64 ip, u64 *value, u64 *unread)
{
	ZydisRegisterContext context;
	u64 address;
	u64 rip = linear_to_rip(vcpu, ip);

	read_context(vcpu, &context);
	*value = 0;
	*unread = 0;
	if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER) {
		*value = context.values[operand->reg.value];
		return true;
	}
	if (!ZYAN_SUCCESS(ZydisCalcAbsoluteAddressEx(insn, operand, rip, &context, &address)))
		return false;
	address += segment_base(vcpu, operand->mem.segment);
	if (!vcpu->mode.cs_l)
		address = LOW32(address);
	if (qemu_read_linear(vcpu->regs, address, value, operand->size / 8))
		return true;
	*unread = unreadable(vcpu, address, operand->size / 8);
	return false;
}

/*
 * Does not return unless the opcode is at the end of its page: the callback needs two instructions
 * in a block.
 */
static void probe(struct guest_vcpu *guest, u64 ip, const ZydisDecodedInstruction *insn,
		  u64 address)
{
	struct vcpu *vcpu = guest->vcpu;
	u64 at = ip + insn->raw.modrm.offset - 1;

	if (at % 4096 == 4095)
		return;
	guest->probe.pending = true;
	guest->probe.ip = ip;
	guest->probe.at = at;
	guest->probe.rdi = qemu_read_reg(vcpu->regs, QREG_RDI);
	qemu_write_reg(vcpu->regs, QREG_RDI, address);
	flow_go_to(vcpu, at);
}

/* In long mode an event pushes [error code,] RIP, CS (SDM 3 7.14.2). */
static void move_frame(struct vcpu *vcpu, u64 from, u64 to)
{
	u64 rsp = qemu_read_reg(vcpu->regs, QREG_RSP), word, physical;

	for (u64 at = rsp; at <= rsp + 8; at += 8) {
		if (!qemu_read_linear(vcpu->regs, at, &word, 8) || word != from)
			continue;
		if (qemu_translate(at, &physical))
			qemu_write_physical(vcpu->regs, physical, &to, 8);
		return;
	}
}

u64 guest_probe_faulted(struct guest_vcpu *guest, u64 from)
{
	struct vcpu *vcpu = guest->vcpu;

	guest->probe.pending = false;
	qemu_write_reg(vcpu->regs, QREG_RDI, guest->probe.rdi);
	if (from != guest->probe.at)
		return from;
	move_frame(vcpu, linear_to_rip(vcpu, from), linear_to_rip(vcpu, guest->probe.ip));
	return guest->probe.ip;
}

void guest_probe_passed(struct guest_vcpu *guest, const struct site *site)
{
	if (!guest->probe.pending || site_ip(guest->vcpu, site) != guest->probe.at + 1)
		return;
	guest->probe.pending = false;
	qemu_write_reg(guest->vcpu->regs, QREG_RDI, guest->probe.rdi);
	flow_go_to(guest->vcpu, guest->probe.ip);
}

bool guest_probes(const struct plugin *plugin, u64 linear)
{
	for (unsigned int i = 0; i < VCPUS; i++) {
		const struct vcpu *vcpu = plugin->vcpu[i];

		if (vcpu && vcpu->guest && pthread_equal(vcpu->thread, pthread_self()))
			return vcpu->guest->probe.pending && vcpu->guest->probe.at == linear;
	}
	return false;
}

void guest_ptwrite(struct guest_vcpu *guest, const struct site *site)
{
	struct vcpu *vcpu = guest->vcpu;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction insn;
	u64 ip = site_ip(vcpu, site), value, unread;

	if (!decode(vcpu, ip, &insn, operands))
		return;
	if (!read_operand(vcpu, &insn, &operands[0], ip, &value, &unread)) {
		if (vcpu->mode.cs_l)
			probe(guest, ip, &insn, unread);
		return;
	}
	vmpt_unit_ptwrite(&guest->unit, ip, value, operands[0].size / 8);
	flow_go_to(vcpu, ip + insn.length);
}
