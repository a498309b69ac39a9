// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the last instruction of a block did, as the address of the next one shows, in events for
 * the trace units.
 */
#include "qemu-plugin/flow/end.h"

#include "qemu-plugin/flow/mode.h"
#include "qemu-plugin/flow/units.h"

void end_report_far(struct vcpu *vcpu, unsigned int kind, u64 from, u64 to)
{
	struct vmpt_far far = { .kind = (u8)kind, .ip = from, .target = to, .mode = vcpu->mode };

	if (vcpu->cpu.switched && (kind == VMPT_FAR_BRANCH || kind == VMPT_FAR_IRET)) {
		far.kind = VMPT_FAR_TASK;
		far.cr3_written = true;
	}
	vcpu->cpu.switched = false;
	units_far(vcpu, &far);
}

void end_report(struct vcpu *vcpu, const struct block *done, u64 ip)
{
	u64 next = done->end + vcpu->delta;

	switch (done->kind) {
	case INSN_JCC:
		units_jcc(vcpu, done, ip);
		break;
	case INSN_JMP:
		units_jmp(vcpu, done, ip);
		break;
	case INSN_CALL:
		units_call(vcpu, done, ip);
		break;
	case INSN_JMP_IND:
		FOR_UNITS (vcpu, u)
			vmpt_unit_jmp_indirect(vcpu->unit[u], ip);
		units_rtit_end(vcpu, done, ip);
		break;
	case INSN_CALL_IND:
		FOR_UNITS (vcpu, u)
			vmpt_unit_call_indirect(vcpu->unit[u], next, ip);
		units_rtit_end(vcpu, done, ip);
		break;
	case INSN_RET:
		units_ret(vcpu, done, ip);
		break;
	case INSN_FAR:
		end_report_far(vcpu, VMPT_FAR_BRANCH, done->last + vcpu->delta, ip);
		break;
	case INSN_IRET:
		end_report_far(vcpu, VMPT_FAR_IRET, done->last + vcpu->delta, ip);
		break;
	case INSN_RSM:
		/* The SMI was an interrupt that left TraceEn set; no decoder follows RSM. */
		end_report_far(vcpu, VMPT_FAR_INTERRUPT, next, ip);
		break;
	case INSN_MOV_CR3:
		FOR_UNITS (vcpu, u)
			vmpt_unit_mov_cr3(vcpu->unit[u], next, &vcpu->mode);
		units_rtit_end(vcpu, done, ip);
		break;
	case INSN_MODE:
		units_rtit_end(vcpu, done, ip);
		break;
	default:
		break;
	}
}

void end_take_mode(struct vcpu *vcpu, unsigned int kind)
{
	u64 cr3;

	switch (kind) {
	case INSN_FAR:
	case INSN_IRET:
		mode_far(vcpu);
		break;
	case INSN_RSM:
		mode_control(vcpu);
		mode_far(vcpu);
		vcpu->cpu.switched = false;
		break;
	case INSN_MOV_CR3:
	case INSN_MODE:
		cr3 = vcpu->mode.cr3;
		mode_control(vcpu);
		if ((cr3 ^ vcpu->mode.cr3) & vcpu->plugin->watch_cr3)
			vcpu->tick = 1;
		break;
	default:
		break;
	}
}

bool end_follows(const struct vcpu *vcpu, const struct block *done, u64 ip)
{
	u64 start = done->start + vcpu->delta, end = done->end + vcpu->delta;

	/* A string instruction that repeats; a block that was left halfway. */
	return ip - start <= end - start;
}

bool end_shown(const struct vcpu *vcpu, const struct block *done, u64 ip)
{
	return done->shows && ip - vcpu->delta - done->start > done->last - done->start;
}

/* Whether @ip is where the code at @vaddr is now. IP wraps at 16 and 32 bits. */
static bool is_at(const struct vcpu *vcpu, u64 ip, u64 vaddr)
{
	u64 differ = ip ^ (vaddr + vcpu->delta);

	if (!vcpu->cpu.cs_l && !vcpu->cpu.cs_d && !(vcpu->cpu.cs_base & 0xffff))
		differ &= 0xffff;
	return !(vcpu->cpu.cs_l ? differ : differ & 0xffffffff);
}

bool end_leads(const struct vcpu *vcpu, const struct block *done, const struct block *block, u64 ip)
{
	switch (done->kind) {
	case INSN_JCC:
		return is_at(vcpu, ip, done->target) || is_at(vcpu, ip, done->end);
	case INSN_JMP:
	case INSN_CALL:
		return is_at(vcpu, ip, done->target);
	case INSN_JMP_IND:
	case INSN_CALL_IND:
	case INSN_RET:
		return block->start != RESET_VECTOR;
	default:
		return true;
	}
}

u64 end_lost(struct vcpu *vcpu, const struct block *done)
{
	u64 ip;

	switch (done->kind) {
	case INSN_JCC:
		ip = done->end + vcpu->delta;
		break;
	case INSN_JMP:
	case INSN_CALL:
		ip = done->target + vcpu->delta;
		break;
	default:
		vcpu->undone = true;
		return done->last + vcpu->delta;
	}
	end_report(vcpu, done, ip);
	return ip;
}
