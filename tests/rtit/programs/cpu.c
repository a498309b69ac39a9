// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rtit/programs/cpu.h"
#include "util/array.h"

#define BASE 0x40000000ULL /* of the circular buffer */

/* ---- what a decoder has to find ---- */

void cpu_retired(struct rtit_cpu *cpu, u64 ip)
{
	struct rtit_execution *done = cpu->done;

	if (cpu->overflow || cpu->lost || !rtit_enables_packet(&cpu->enables))
		return;
	if (vmpt_grow(&done->insn, done->insns))
		ck_abort_msg("no memory");
	done->insn[done->insns++] = ip;
}

void cpu_confirm(struct rtit_cpu *cpu)
{
	if (cpu->overflow)
		return;
	cpu->confirmed = cpu->done->insns;
	cpu->doubt = false;
}

/* After a loss it is uncertain that packets are still enabled. */
void cpu_found(struct rtit_cpu *cpu)
{
	cpu_confirm(cpu);
	if (cpu->overflow || !cpu->lost)
		return;
	cpu->lost = false;
	cpu->doubt = true;
}

static struct rtit_truth_event *log_event(struct rtit_cpu *cpu, unsigned int kind)
{
	struct rtit_execution *done = cpu->done;
	struct rtit_truth_event *e;

	if (vmpt_grow(&done->event, done->events))
		ck_abort_msg("no memory");
	e = &done->event[done->events++];
	*e = (struct rtit_truth_event){
		.kind = (u8)kind,
		.at = done->insns,
		.sure = cpu->doubt ? cpu->confirmed : done->insns,
		.quiets = done->quiets,
		.passes = kind == RTIT_FLOW_STOP,
	};
	return e;
}

/* FUPs confirm what was executed; so does an enable. */
void cpu_log(struct rtit_cpu *cpu, unsigned int kind, u64 from, u64 to)
{
	struct rtit_truth_event *e;
	bool lost = cpu->lost;

	if (cpu->overflow)
		return;
	cpu->lost = false;
	/* Packets disabled there were not known to be enabled. */
	if (lost && kind == RTIT_FLOW_DISABLED)
		return;
	if (kind == RTIT_FLOW_FAR || kind == RTIT_FLOW_DISABLED)
		cpu_confirm(cpu);
	e = log_event(cpu, kind);
	if (kind != RTIT_FLOW_ENABLED)
		e->from = from;
	if (kind != RTIT_FLOW_DISABLED)
		e->to = to;
	if (kind == RTIT_FLOW_ENABLED)
		cpu_confirm(cpu);
}

void cpu_slack(struct rtit_cpu *cpu, unsigned int slack)
{
	if (!cpu->overflow)
		cpu->done->event[cpu->done->events - 1].slack = (u8)slack;
}

void cpu_log_cr3(struct rtit_cpu *cpu)
{
	struct rtit_truth_event *e;

	if (cpu->overflow)
		return;
	e = log_event(cpu, RTIT_FLOW_PAGING);
	e->cr3 = cpu->m.cr3;
	e->passes = cpu->doubt;
	if (rtit_enables_packet(&cpu->enables) && !cpu->doubt)
		cpu_confirm(cpu);
}

/* If no packet showed them enabled, the decoder need not report them as disabled. */
static struct rtit_truth_quiet *log_quiet(struct rtit_cpu *cpu, u64 from)
{
	struct rtit_execution *done = cpu->done;
	struct rtit_truth_quiet *q;

	if (vmpt_grow(&done->quiet, done->quiets))
		ck_abort_msg("no memory");
	q = &done->quiet[done->quiets++];
	*q = (struct rtit_truth_quiet){
		.unsure = cpu->doubt || cpu->lost,
		.at = done->insns,
		.from = from,
	};
	return q;
}

void cpu_quiet(struct rtit_cpu *cpu, u64 from)
{
	if (!cpu->overflow)
		log_quiet(cpu, from);
}

/* ---- enables ---- */

bool cpu_decide(struct rtit_cpu *cpu, bool taken, u64 ip)
{
	struct rtit_context now = {
		.cpl = cpu->m.cpl, .cr3 = cpu->m.cr3, .smm = cpu->smm, .root = cpu->root
	};

	return rtit_enables_decide(&cpu->enables, cpu->set, &now, taken, ip);
}

static void stopped(struct rtit_cpu *cpu)
{
	cpu->stop_filter = cpu->enables.filter;
	cpu->enables.active = false;
	cpu->enables.filter = false;
	cpu->done->stops++;
	log_event(cpu, RTIT_FLOW_STOP);
}

/* By E4 in an overflow, if there is room; if the overflow never ends this looks like an end. */
static void stop_packet(struct rtit_cpu *cpu)
{
	log_event(cpu, RTIT_FLOW_STOP)->optional = cpu->set->refusals != 0;
	log_quiet(cpu, 0)->unsure = true;
}

/* An overflow delays TraceStop (4.2.5); by E4 only its packet comes, once. */
void cpu_stop(struct rtit_cpu *cpu)
{
	if (!cpu->overflow)
		stopped(cpu);
	else if (!(cpu->set->options.errata & VMPT_RTIT_ERRATUM(4)))
		cpu->stop_pending = true;
	else if (!cpu->stop_tried)
		stop_packet(cpu);
	cpu->stop_tried |= cpu->overflow;
}

static void wrmsr(struct rtit_cpu *cpu, u32 msr, u64 value, u64 next)
{
	int ret = vmpt_rtit_unit_wrmsr(&cpu->unit, msr, value, next);

	if (ret)
		ck_abort_msg("WRMSR of %#x, %#llx: %d", msr, (unsigned long long)value, ret);
}

static u64 rdmsr(struct rtit_cpu *cpu, u32 msr)
{
	u64 value = 0;

	ck_assert_int_eq(vmpt_rtit_unit_rdmsr(&cpu->unit, msr, &value), 0);
	return value;
}

/* Read what tracing left in TNT_BUFF, as 4.2.2 requires. */
static void read_tnt(struct rtit_cpu *cpu)
{
	struct rtit_execution *done = cpu->done;
	u64 value = rdmsr(cpu, VMPT_RTIT_MSR_TNT_BUFF);

	if (value <= 1)
		return;
	if (vmpt_grow(&done->tnt, done->tnts))
		ck_abort_msg("no memory");
	done->tnt[done->tnts++] =
		(struct rtit_flow_tnt){ .offset = cpu->unit.bytes + cpu->unit.used,
					.value = (u8)value };
}

void cpu_trace_on(struct rtit_cpu *cpu, u64 next)
{
	bool stop;

	if (cpu->set->reset_tnt) { /* Appendix B 4.2.1 */
		read_tnt(cpu);
		wrmsr(cpu, VMPT_RTIT_MSR_STATUS, 0, next);
		wrmsr(cpu, VMPT_RTIT_MSR_TNT_BUFF, 1, next);
		wrmsr(cpu, VMPT_RTIT_MSR_CNTP, 0, next);
		wrmsr(cpu, VMPT_RTIT_MSR_LAST_LIP, 0, next);
		wrmsr(cpu, VMPT_RTIT_MSR_LAST_CALL_NLIP, 0, next);
	}
	if (!cpu->enables.trace_en)
		wrmsr(cpu, VMPT_RTIT_MSR_CTL, cpu->set->ctl & ~VMPT_RTIT_CTL_TRACE_ACTIVE, next);
	wrmsr(cpu, VMPT_RTIT_MSR_CTL, cpu->set->ctl, next);
	/* No packet shows its value before tracing begins: the last write decides. */
	if (cpu->set->reset_tnt)
		cpu->enables.filter = false;
	cpu->enables.trace_en = cpu->enables.active = true;
	stop = cpu_decide(cpu, false, next);
	if (rtit_enables_packet(&cpu->enables) && !stop)
		cpu_log(cpu, RTIT_FLOW_ENABLED, 0, next);
	if (stop)
		cpu_stop(cpu);
}

void cpu_trace_off(struct rtit_cpu *cpu, u64 next)
{
	if (rtit_enables_packet(&cpu->enables) && cpu->set->options.pgd_at_disable)
		cpu_log(cpu, RTIT_FLOW_DISABLED, next, 0);
	else if (rtit_enables_packet(&cpu->enables))
		cpu_quiet(cpu, next);
	wrmsr(cpu, VMPT_RTIT_MSR_CTL, cpu->set->ctl & ~VMPT_RTIT_CTL_TRACE_ACTIVE, next);
	cpu->enables.active = false;
	cpu_decide(cpu, false, next);
	if (cpu->set->clear_trace_en) {
		wrmsr(cpu, VMPT_RTIT_MSR_CTL, cpu->set->ctl & ~VMPT_RTIT_CTL_TRIGGER, next);
		cpu->enables.trace_en = false;
	}
}

/* ---- time ---- */

void cpu_pass_time(struct rtit_cpu *cpu)
{
	struct test_rng *rng = cpu->m.rng;
	u64 ticks = below(rng, 8);

	if (once_in(rng, 500))
		ticks += below(rng, 5000);
	if (once_in(rng, 3000))
		ticks += VMPT_RTIT_CNTP_MSB; /* causes a FUP.PCC */
	cpu->clocks.cycles += ticks;
	cpu->clocks.tsc += ticks;
	vmpt_rtit_unit_time(&cpu->unit, &cpu->clocks);
	if (once_in(rng, 1000))
		vmpt_rtit_unit_frequency(&cpu->unit, (u8)below(rng, 64), (u8)below(rng, 64));
	if (once_in(rng, 1000)) {
		cpu->clocks.tsc += below(rng, 1000000); /* slept */
		vmpt_rtit_unit_wake(&cpu->unit, &cpu->clocks);
	}
}

/* ---- overflows ---- */

/* The LIP of a FUP.BuffOvf, by Table 1 or 4.2.5. */
static u64 resumes(const struct rtit_cpu *cpu)
{
	return cpu->set->overflow_nlip ? cpu->nlip : cpu->m.ip;
}

static void overflow_ended(struct rtit_cpu *cpu)
{
	struct rtit_execution *done = cpu->done;
	struct rtit_truth_event *e;

	cpu->overflow = false;
	cpu->stop_tried = false;
	e = log_event(cpu, RTIT_FLOW_OVERFLOW);
	e->sure = cpu->confirmed;
	e->to = resumes(cpu);
	cpu->confirmed = done->insns;
	cpu->doubt = true;
	cpu->lost = cpu->set->overflow_nlip;
	cpu->resumed = e->to;
	done->overflows++;
	if (cpu->stop_pending) {
		cpu_quiet(cpu, e->to);
		stopped(cpu);
	}
	cpu->stop_pending = false;
}

void cpu_overflows(struct rtit_cpu *cpu)
{
	u64 before = cpu->unit.overflows;

	if (cpu->overflow && once_in(cpu->m.rng, 30)) {
		vmpt_rtit_unit_overflow_resolve(&cpu->unit, resumes(cpu));
		if (cpu->unit.overflows != before)
			overflow_ended(cpu);
	} else if (!cpu->overflow && cpu->enables.trace_en && cpu->enables.active &&
		   once_in(cpu->m.rng, cpu->set->overflows)) {
		vmpt_rtit_unit_overflow(&cpu->unit);
		cpu->overflow = true;
	}
}

void cpu_begin(struct rtit_cpu *cpu)
{
	cpu->begin_events = cpu->done->events;
	cpu->begin_quiets = cpu->done->quiets;
	cpu->begin_confirmed = cpu->confirmed;
	cpu->begin_stops = cpu->done->stops;
}

/* TraceStop struck after the packet that overflowed: it is the last one of a step. */
static void late_stop(struct rtit_cpu *cpu)
{
	cpu->enables.active = true;
	cpu->enables.filter = cpu->stop_filter;
	cpu->done->stops--;
	cpu->done->events--;
	cpu_stop(cpu);
}

/* An overflow that began in this step: the step's packets may be lost, or some of them. */
void cpu_watch(struct rtit_cpu *cpu)
{
	struct rtit_execution *done = cpu->done;
	size_t i;

	if (cpu->overflow || !(cpu->unit.regs.status & VMPT_RTIT_STATUS_OVERFLOW))
		return;
	cpu->overflow = true;
	cpu->confirmed = cpu->begin_confirmed;
	if (done->stops != cpu->begin_stops)
		late_stop(cpu);
	for (i = cpu->begin_events; i < done->events; i++) {
		done->event[i].optional = true;
		done->event[i].sure = cpu->confirmed;
	}
	for (i = cpu->begin_quiets; i < done->quiets; i++)
		done->quiet[i].unsure = true;
}

/* ---- beginning and end ---- */

static int take(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	struct rtit_cpu *cpu = opaque;
	struct rtit_execution *done = cpu->done;

	if (!cpu->refuse && !cpu->willing && once_in(cpu->m.rng, cpu->set->refusals))
		cpu->refuse = 1 + (unsigned int)below(cpu->m.rng, 60);
	if (cpu->refuse) {
		cpu->refuse--;
		return -1;
	}
	if (vmpt_reserve(&done->trace, &done->max, done->size + len))
		ck_abort_msg("no memory");
	memcpy(done->trace + done->size, bytes, len);
	done->size += len;
	ck_assert_uint_ge(pa, BASE);
	ck_assert_uint_le(pa - BASE + len, cpu->set->limit_mask + 1);
	memcpy(done->memory + (pa - BASE), bytes, len);
	return 0;
}

void cpu_start(struct rtit_cpu *cpu)
{
	const struct rtit_settings *set = cpu->set;
	struct vmpt_rtit_unit_config config = { .options = set->options, .sink = &cpu->sink };
	unsigned int n;

	cpu->sink = (struct vmpt_rtit_sink){ .write = take, .opaque = cpu };
	cpu->done->memory = calloc(1, set->limit_mask + 1);
	ck_assert_ptr_nonnull(cpu->done->memory);
	ck_assert_int_eq(vmpt_rtit_unit_init(&cpu->unit, &config), 0);
	cpu->m.ip = cpu->m.program->region[PROGRAM_KERNEL].base;
	cpu->m.cr3 = 0x1000;
	cpu->clocks.tsc = below(cpu->m.rng, 1ULL << 40);
	cpu_pass_time(cpu);
	cpu->unit.mode = (struct vmpt_rtit_mode){ .cr3 = cpu->m.cr3, .paging = true };
	rdmsr(cpu, VMPT_RTIT_MSR_CTL);
	for (n = 0; n < 4; n++)
		wrmsr(cpu, VMPT_RTIT_MSR_LIP0 + n, set->lip[n], 0);
	wrmsr(cpu, VMPT_RTIT_MSR_EVENTS, set->events, 0);
	wrmsr(cpu, VMPT_RTIT_MSR_CR3_MATCH, set->cr3_match, 0);
	wrmsr(cpu, VMPT_RTIT_MSR_BASE_ADDR, BASE, 0);
	wrmsr(cpu, VMPT_RTIT_MSR_LIMIT_MASK, set->limit_mask, 0);
	wrmsr(cpu, VMPT_RTIT_MSR_PKT_CNT, set->pkt_mask << VMPT_RTIT_PKT_MASK_SHIFT, 0);
	cpu_trace_on(cpu, cpu->m.ip);
}

void cpu_finish(struct rtit_cpu *cpu)
{
	struct rtit_execution *done = cpu->done;
	u64 before = cpu->unit.overflows;

	cpu->refuse = 0;
	cpu->willing = true;
	vmpt_rtit_unit_overflow_resolve(&cpu->unit, resumes(cpu));
	if (cpu->unit.overflows != before)
		overflow_ended(cpu);
	if (cpu->enables.trace_en && cpu->enables.active)
		cpu_trace_off(cpu, cpu->m.ip);
	ck_assert_int_eq(vmpt_rtit_unit_drain(&cpu->unit), 0);
	read_tnt(cpu);
	done->sure = cpu->confirmed;
	ck_assert_uint_eq(done->size, cpu->unit.bytes);
	ck_assert_uint_eq(rdmsr(cpu, VMPT_RTIT_MSR_OFFSET), done->size & cpu->set->limit_mask);
}

void rtit_execution_free(struct rtit_execution *done)
{
	free(done->insn);
	free(done->event);
	free(done->quiet);
	free(done->trace);
	free(done->memory);
	free(done->tnt);
}
