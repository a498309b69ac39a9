// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A walk over the host's instructions around VM entries: in each window a performance-monitoring
 * interrupt comes one instruction later than in the window before, until a window ends before it is
 * * due. So each place where an NMI can hit a hypervisor's hand-over of PT is hit once.
 *
 * A window begins at a VM exit of a given reason, or where the host clears TraceEn, and ends at
 * the next VM entry or where TraceEn is set again. The cause of the interrupt is in *
 * IA32_PERF_GLOBAL_STATUS: bits of counters that software asked for; bit 55, if TraceEn is 1 when
 * it comes (a region of the host's was filled); or bit 55 since the window's begin (a region was
 * filled by the last bytes of the guest, or of the host, and the interrupt is late). Bit 55 is
 * never set for an owner that did not trace.
 */
#include "pc.h"

#define TOPA_PMI (1ULL << 55)
/* This many consecutive windows that end too soon end the walk. */
#define MISSES 8

static bool traces(const struct pc_cpu *pc)
{
	return pc->unit.regs.ctl & VMPT_CTL_TRACE_EN;
}

static void tell(struct pc_cpu *pc, const char *how)
{
	const struct pc_walk *w = &pc->walk;

	pc_log("walk cpu %u %s at %u windows %u interrupts %u idle %u masked %u", pc->id, how,
	       w->at, w->windows, w->interrupts, w->idle, w->masked);
}

void pc_walk_set(struct pc_cpu *pc, const u32 *words)
{
	struct pc_walk *w = &pc->walk;

	pc_walk_end(pc);
	*w = {};
	w->begin = words[0];
	w->at = words[1];
	w->stride = words[2];
	w->flags = words[3];
	w->status = words[4] | (u64)words[5] << 32;
	w->on = w->stride;
	pc_watch(pc);
}

void pc_walk_end(struct pc_cpu *pc)
{
	if (pc->walk.on)
		tell(pc, "stopped");
	pc->walk.on = pc->walk.inside = false;
}

/* @traced: the previous owner of PT traced. */
static void begin(struct pc_cpu *pc, bool traced)
{
	struct pc_walk *w = &pc->walk;

	w->windows++;
	w->count = 0;
	w->inside = true;
	w->late = w->flags & PC_WALK_LATE && traced;
	if (w->late)
		pc->global_status |= TOPA_PMI;
	pc_watch(pc);
}

static void leave(struct pc_cpu *pc, bool counts)
{
	struct pc_walk *w = &pc->walk;

	w->inside = false;
	/* The late one is not skipped: it comes now. */
	if (w->late)
		pc->cpu->lapic->perfmon_interrupt();
	w->late = false;
	if (counts && ++w->misses == MISSES) {
		w->on = false;
		tell(pc, "done");
	}
	pc_watch(pc);
}

static void interrupt(struct pc_cpu *pc)
{
	struct pc_walk *w = &pc->walk;
	u64 status = w->status;

	w->inside = false;
	w->misses = 0;
	w->at += w->stride;
	if (w->flags & PC_WALK_PMI && traces(pc))
		status |= TOPA_PMI;
	if (!status && !w->late) {
		w->idle++;
	} else {
		pc->global_status |= status;
		w->interrupts++;
		pc->cpu->lapic->perfmon_interrupt();
		/* The entry may be masked: then nothing comes. */
		w->masked += !pc->cpu->is_pending(BX_EVENT_NMI);
	}
	w->late = false;
	pc_watch(pc);
}

void pc_walk_insn(struct pc_cpu *pc)
{
	struct pc_walk *w = &pc->walk;

	if (w->inside && w->count++ == w->at)
		interrupt(pc);
}

void pc_walk_exit_begin(struct pc_cpu *pc)
{
	pc->walk.guest_traced = traces(pc);
}

void pc_walk_exit(struct pc_cpu *pc)
{
	struct pc_walk *w = &pc->walk;

	if (w->on && !pc->exit_late && w->begin == (u16)pc->exit.reason)
		begin(pc, w->guest_traced);
}

void pc_walk_entry(struct pc_cpu *pc)
{
	if (pc->walk.inside)
		leave(pc, true);
}

void pc_walk_ctl(struct pc_cpu *pc, u64 old)
{
	struct pc_walk *w = &pc->walk;

	if (!w->on || w->begin != PC_WALK_STOP || pc->cpu->in_vmx_guest)
		return;
	if (old & VMPT_CTL_TRACE_EN && !traces(pc))
		begin(pc, true);
	else if (!(old & VMPT_CTL_TRACE_EN) && traces(pc) && w->inside)
		leave(pc, false);
}
