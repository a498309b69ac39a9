// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A tiny processor: executes a program, drives the RTIT unit, and records what a decoder must
 * find, by its own rules of when packets are enabled (enables.c) and of Tables 1 and 19.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rtit/programs/cpu.h"

/* ---- near branches ---- */

/* E5 looks like a following TIP to where tracing resumed: avoid such a TIP. */
static u64 not_resumed(struct rtit_cpu *cpu, u64 target)
{
	while (cpu->doubt && target == cpu->resumed)
		target = machine_address(&cpu->m);
	return target;
}

/* TraceStop comes with a FUP.PGD where packets were enabled (4.2.8). */
static bool stop_has_pgd(const struct rtit_cpu *cpu)
{
	return cpu->set->options.pgd_at_stop;
}

/* TraceStop strikes at @ip; @was: packets were enabled, and still are by the context. */
static void stops(struct rtit_cpu *cpu, bool was, u64 ip)
{
	if (was && !stop_has_pgd(cpu))
		cpu_quiet(cpu, ip);
	cpu_stop(cpu);
}

/* The instruction, a near branch or another one, ends at @ip. */
static void ends(struct rtit_cpu *cpu, bool taken, u64 next, u64 ip)
{
	bool was = rtit_enables_packet(&cpu->enables);
	bool stop = cpu_decide(cpu, taken, ip);
	bool is = rtit_enables_packet(&cpu->enables);

	if (was && (stop ? stop_has_pgd(cpu) : !is))
		cpu_log(cpu, RTIT_FLOW_DISABLED, next, 0);
	if (!was && is && !stop)
		cpu_log(cpu, RTIT_FLOW_ENABLED, 0, ip);
	if (stop)
		stops(cpu, was, ip);
	cpu->m.ip = ip;
}

static void jump(struct rtit_cpu *cpu, u64 next, u64 target, bool packet)
{
	if (packet && rtit_enables_packet(&cpu->enables))
		cpu_found(cpu);
	ends(cpu, true, next, target);
}

static void conditional(struct rtit_cpu *cpu, u64 next, u64 target, bool taken)
{
	/* Half of the programs use the inline function. */
	if (cpu->set->steps % 2)
		vmpt_rtit_unit_jcc_fast(&cpu->unit, taken, next, target);
	else
		vmpt_rtit_unit_jcc(&cpu->unit, taken, next, target);
	if (rtit_enables_packet(&cpu->enables))
		cpu_confirm(cpu);
	ends(cpu, taken, next, taken ? target : next);
}

static void direct(struct rtit_cpu *cpu, const struct program_insn *insn, u64 next)
{
	if (insn->kind == TG_CALL) {
		machine_push(&cpu->m, next);
		vmpt_rtit_unit_call(&cpu->unit, next, insn->target);
	} else if (cpu->set->steps % 2) {
		vmpt_rtit_unit_jmp_fast(&cpu->unit, next, insn->target);
	} else {
		vmpt_rtit_unit_jmp(&cpu->unit, next, insn->target);
	}
	jump(cpu, next, insn->target, false);
}

static void near_branch(struct rtit_cpu *cpu, const struct program_insn *insn, u64 next)
{
	u64 to;

	switch (insn->kind) {
	case TG_JCC:
	case TG_LOOP:
		conditional(cpu, next, insn->target,
			    below(cpu->m.rng, 256) < ((insn->ip * 37) & 0xff));
		return;
	case TG_JMP:
	case TG_CALL:
		direct(cpu, insn, next);
		return;
	case TG_ICALL:
		to = once_in(cpu->m.rng, 8) ? next : machine_address(&cpu->m);
		to = not_resumed(cpu, to);
		machine_push(&cpu->m, next);
		vmpt_rtit_unit_call_indirect(&cpu->unit, next, to);
		break;
	case TG_IJMP:
		to = not_resumed(cpu, machine_address(&cpu->m));
		vmpt_rtit_unit_jmp_indirect(&cpu->unit, next, to);
		break;
	default: /* TG_RET */
		to = not_resumed(cpu, machine_pop(&cpu->m));
		vmpt_rtit_unit_ret(&cpu->unit, next, to);
	}
	jump(cpu, next, to, true);
}

/* ---- far transfers ---- */

static struct vmpt_rtit_mode mode_of(const struct rtit_cpu *cpu)
{
	return (struct vmpt_rtit_mode){ .cr3 = cpu->m.cr3, .cpl = (u8)cpu->m.cpl, .paging = true };
}

/* @insn: the instruction, NULL for an event; @from: as Table 1 has it. */
static void far_transfer(struct rtit_cpu *cpu, const struct program_insn *insn, u64 from,
			 u64 target, unsigned int cpl)
{
	struct vmpt_rtit_far far = { .ip = from, .target = target };
	bool was = rtit_enables_packet(&cpu->enables), stop, is;

	if (insn) {
		far.is_insn = true;
		far.insn = insn->ip;
		far.prefixes = insn->prefixes;
	}
	cpu->m.cpl = cpl;
	far.mode = mode_of(cpu);
	vmpt_rtit_unit_far(&cpu->unit, &far);
	stop = cpu_decide(cpu, true, target);
	is = rtit_enables_packet(&cpu->enables);
	if (was && cpu->enables.context && (stop ? !stop_has_pgd(cpu) : is)) {
		cpu_log(cpu, RTIT_FLOW_FAR, from, target);
		/* E1: an address in the instruction */
		if (insn && cpu->set->options.errata & VMPT_RTIT_ERRATUM(1) && insn->prefixes > 3)
			cpu_slack(cpu, insn->len - 1u);
	} else if (was) {
		cpu_log(cpu, RTIT_FLOW_DISABLED, from, 0);
		if (cpu->enables.context)
			cpu_log(cpu, RTIT_FLOW_LEFT, 0, target);
	} else if (is && !stop) {
		cpu_log(cpu, RTIT_FLOW_ENABLED, 0, target);
	}
	if (stop)
		stops(cpu, was && cpu->enables.context, target);
	cpu->m.ip = target;
}

/* Enter the kernel; @back: where IRET goes. */
static void enter_kernel(struct rtit_cpu *cpu, const struct program_insn *insn, u64 from, u64 back)
{
	machine_push_frame(&cpu->m, back);
	far_transfer(cpu, insn, from, machine_kernel_entry(&cpu->m), 0);
}

static void far_branch(struct rtit_cpu *cpu, const struct program_insn *insn, u64 next)
{
	struct machine_frame f;

	switch (insn->kind) {
	case TG_SYSCALL:
	case TG_INT:
		enter_kernel(cpu, insn, next, next);
		return;
	case TG_FAR:
		far_transfer(cpu, insn, next, machine_address(&cpu->m), 0);
		return;
	default:
		f = machine_pop_frame(&cpu->m, insn->kind == TG_IRET);
		far_transfer(cpu, insn, next, f.ip, f.cpl);
	}
}

/* ---- SMM and VMX ---- */

/* Out at @ip: SMI, VM exit. */
static void out(struct rtit_cpu *cpu, bool smi)
{
	struct vmpt_rtit_mode host = { .cr3 = 0x9000, .paging = true };
	bool was = rtit_enables_packet(&cpu->enables);

	if (smi)
		vmpt_rtit_unit_smi(&cpu->unit, cpu->m.ip);
	else
		vmpt_rtit_unit_vmexit(&cpu->unit, cpu->m.ip, &host);
	cpu->smm = smi;
	cpu->root = !smi;
	cpu->enables.context = false;
	if (was)
		cpu_log(cpu, RTIT_FLOW_DISABLED, cpu->m.ip, 0);
}

/* And back in, mostly to where it was: RSM, VM entry. */
static void in(struct rtit_cpu *cpu)
{
	struct vmpt_rtit_mode mode;
	bool stop;

	if (once_in(cpu->m.rng, 4))
		cpu->m.ip = machine_address(&cpu->m);
	if (once_in(cpu->m.rng, 4))
		cpu->m.cr3 = 0x1000 * (1 + below(cpu->m.rng, 3));
	mode = mode_of(cpu);
	if (cpu->smm)
		vmpt_rtit_unit_rsm(&cpu->unit, cpu->m.ip, &mode);
	else
		vmpt_rtit_unit_vmentry(&cpu->unit, cpu->m.ip, &mode);
	cpu->smm = cpu->root = false;
	stop = cpu_decide(cpu, true, cpu->m.ip);
	if (rtit_enables_packet(&cpu->enables) && !stop)
		cpu_log(cpu, RTIT_FLOW_ENABLED, 0, cpu->m.ip);
	if (stop)
		cpu_stop(cpu);
}

/* What an SMM handler or a VMM executes is never traced. */
static void elsewhere(struct rtit_cpu *cpu, bool smi)
{
	u64 ip = cpu->m.ip;

	out(cpu, smi);
	cpu_pass_time(cpu);
	vmpt_rtit_unit_jcc(&cpu->unit, true, ip + 2, ip);
	vmpt_rtit_unit_call_indirect(&cpu->unit, ip + 2, ip);
	vmpt_rtit_unit_ret(&cpu->unit, ip + 1, ip + 2);
	in(cpu);
}

/* ---- what the kernel does ---- */

static void mov_cr3(struct rtit_cpu *cpu, u64 next)
{
	bool was = rtit_enables_packet(&cpu->enables), stop;

	/* No filter compares bits 4:3. */
	cpu->m.cr3 = 0x1000 * (1 + below(cpu->m.rng, 3)) | below(cpu->m.rng, 2) << 3;
	vmpt_rtit_unit_mov_cr3(&cpu->unit, next, cpu->m.cr3);
	if (cpu->enables.context && cpu->enables.trace_en && cpu->enables.active &&
	    !(cpu->set->ctl & VMPT_RTIT_CTL_CR3_EN))
		cpu_log_cr3(cpu);
	stop = cpu_decide(cpu, false, next);
	if (stop ? was && stop_has_pgd(cpu) : was != rtit_enables_packet(&cpu->enables))
		cpu_log(cpu, was ? RTIT_FLOW_DISABLED : RTIT_FLOW_ENABLED, next, next);
	if (stop)
		stops(cpu, was, next);
	cpu->m.ip = next;
}

/*
 * Where packets are enabled always switch tracing off, since no packet need show which WRMSR does
 * it. Elsewhere switch it off or on now and then.
 */
static void write_msr(struct rtit_cpu *cpu, u64 next)
{
	bool on = cpu->enables.trace_en && cpu->enables.active;

	if (!on && !cpu->overflow) {
		cpu_trace_on(cpu, next);
	} else if (!cpu->overflow &&
		   (rtit_enables_packet(&cpu->enables) || once_in(cpu->m.rng, 2))) {
		cpu_trace_off(cpu, next);
	} else {
		vmpt_rtit_unit_step(&cpu->unit, next);
		ends(cpu, false, next, next);
	}
	cpu->m.ip = next;
}

/* ---- a step ---- */

static void step_over(struct rtit_cpu *cpu, u64 next)
{
	if (!cpu->set->edges || (cpu->unit.walk && rtit_enables_edge(cpu->set, next)))
		vmpt_rtit_unit_step(&cpu->unit, next);
	ends(cpu, false, next, next);
}

static void execute(struct rtit_cpu *cpu, const struct program_insn *insn)
{
	u64 next = insn->ip + insn->len;

	cpu->nlip = next;
	cpu_retired(cpu, insn->ip);
	switch (insn->kind) {
	case TG_SYSCALL:
	case TG_INT:
	case TG_FAR:
	case TG_IRET:
	case TG_SYSRET:
		far_branch(cpu, insn, next);
		return;
	case TG_MOV_CR3:
		mov_cr3(cpu, next);
		return;
	case TG_WRMSR:
		write_msr(cpu, next);
		return;
	case TG_PUSH:
		machine_push(&cpu->m, machine_address(&cpu->m));
		break;
	case TG_POP:
		machine_pop(&cpu->m);
		break;
	case TG_NOP:
	case TG_PTWRITE4:
	case TG_PTWRITE8:
		break;
	default:
		near_branch(cpu, insn, next);
		return;
	}
	step_over(cpu, next);
}

static void step(struct rtit_cpu *cpu)
{
	const struct program_region *r = machine_here(&cpu->m);
	const struct rtit_settings *set = cpu->set;
	struct test_rng *rng = cpu->m.rng;

	cpu->nlip = cpu->m.ip;		   /* no instruction's */
	if (once_in(rng, set->interrupts)) /* or a fault: the same IP */
		enter_kernel(cpu, NULL, cpu->m.ip, cpu->m.ip);
	else if (once_in(rng, set->smis))
		elsewhere(cpu, true);
	else if (once_in(rng, set->exits))
		elsewhere(cpu, false);
	else
		execute(cpu, &r->insn[r->at[cpu->m.ip - r->base]]);
}

void rtit_execute(struct rtit_execution *done, const struct program *program,
		  const struct rtit_settings *settings, struct test_rng *rng)
{
	struct rtit_cpu *cpu = calloc(1, sizeof(*cpu));
	unsigned int i;

	ck_assert_ptr_nonnull(cpu);
	memset(done, 0, sizeof(*done));
	cpu->m.program = program;
	cpu->m.rng = rng;
	cpu->set = settings;
	cpu->done = done;
	cpu_start(cpu);
	for (i = 0; i < settings->steps; i++) {
		cpu_pass_time(cpu);
		cpu_overflows(cpu);
		cpu_begin(cpu);
		step(cpu);
		cpu_watch(cpu);
	}
	cpu_finish(cpu);
	free(cpu);
}
