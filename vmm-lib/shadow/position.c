// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Positions in the shadow ToPA: where the processor must start, and what its OUTPUT MSRs mean to
 * the guest after an exit (SDM 3 33.2.7.2, 33.2.8.7, 33.2.8.8).
 */
#include "vmm-lib/shadow-topa.h"

#include "vmm-lib/shadow/walk.h"

/* A place in the shadow. */
struct shadow_place {
	u32 slot, offset;
};

static u64 part_size(const struct vmpt_shadow *shadow, u32 slot)
{
	return vmpt_topa_size(*vmpt_shadow_entry(shadow, slot));
}

/*
 * The vCPU's position in the shadow. It has not moved or, if a packet was inserted, is a little
 * further in the same region.
 */
static bool locate(const struct vmpt_vcpu *vcpu, struct shadow_place *place)
{
	const struct vmpt_shadow *shadow = &vcpu->shadow;
	const struct vmpt_pt_regs *regs = &vcpu->regs;
	u32 at = vmpt_pt_output_offset(regs), slot, index = 0;

	place->slot = shadow->slot;
	place->offset = shadow->offset;
	if (regs->output_base == shadow->base && regs->output_mask_ptrs == shadow->mask_ptrs)
		return true;
	if (shadow->end == VMPT_SHADOW_DIRECT) {
		place->offset = at;
		return regs->output_base == shadow->base && at <= (u32)shadow->mask_ptrs &&
		       (u32)regs->output_mask_ptrs == (u32)shadow->mask_ptrs;
	}
	if (shadow->topa)
		index = vmpt_pt_topa_index(regs);
	else if ((u32)regs->output_mask_ptrs != (u32)shadow->mask_ptrs)
		return false;
	for (slot = shadow->slot; slot < shadow->used; slot++) {
		const struct vmpt_shadow_origin *origin = &shadow->memory->origin[slot];

		if (origin->table != regs->output_base || origin->index != index ||
		    vmpt_shadow_poisoned(shadow, slot))
			return false;
		place->slot = slot;
		place->offset = at - origin->offset;
		if (at >= origin->offset && place->offset < part_size(shadow, slot))
			return true;
	}
	return false;
}

int vmpt_shadow_ready(struct vmpt_vcpu *vcpu)
{
	struct vmpt_shadow *shadow = &vcpu->shadow;
	struct shadow_place place;

	if (shadow->stale || shadow->end == VMPT_SHADOW_NONE ||
	    shadow->topa != !!(vcpu->regs.ctl & VMPT_CTL_TOPA))
		return vmpt_shadow_build(vcpu);
	if (shadow->frozen) {
		if (vcpu->regs.status & (VMPT_STATUS_STOPPED | VMPT_STATUS_ERROR))
			return 0;
		return vmpt_shadow_build(vcpu);
	}
	/* After our own INT at the half, nothing would announce the end. */
	if (!locate(vcpu, &place) || place.slot > shadow->half)
		return vmpt_shadow_build(vcpu);
	shadow->slot = place.slot;
	shadow->offset = place.offset;
	shadow->base = vcpu->regs.output_base;
	shadow->mask_ptrs = vcpu->regs.output_mask_ptrs;
	return 0;
}

void vmpt_shadow_regs(const struct vmpt_vcpu *vcpu, u64 *base, u64 *mask_ptrs, bool *topa)
{
	const struct vmpt_shadow *shadow = &vcpu->shadow;
	struct shadow_place place = { .slot = 0, .offset = ~0U };

	*topa = true;
	*base = shadow->memory ? shadow->memory->page_hpa[0] : 0;
	/* Not built: OutputOffset is above every region's size, an error by rule 3. */
	*mask_ptrs = vmpt_pt_mask_ptrs(0, ~0U);
	if (shadow->end == VMPT_SHADOW_NONE)
		return;
	if (shadow->frozen) {
		*mask_ptrs = vmpt_pt_mask_ptrs(0, 0);
		return;
	}
	locate(vcpu, &place);
	if (shadow->end == VMPT_SHADOW_DIRECT) {
		*topa = false;
		*base = shadow->direct_base;
		*mask_ptrs = (u64)place.offset << VMPT_OFFSET_SHIFT | (u32)shadow->mask_ptrs |
			     VMPT_LOWER_MASK;
		return;
	}
	*base = shadow->memory->page_hpa[place.slot / VMPT_SHADOW_OUTPUTS];
	*mask_ptrs = vmpt_pt_mask_ptrs(place.slot % VMPT_SHADOW_OUTPUTS, place.offset);
}

/* The place that the processor's MSRs name; for an END link, the place it leads to. */
static bool find_place(const struct vmpt_shadow *shadow, u64 base, u64 mask_ptrs,
		       struct shadow_place *place)
{
	u32 index = (u32)mask_ptrs >> 7, page = 0;
	bool link;

	place->offset = (u32)(mask_ptrs >> VMPT_OFFSET_SHIFT);
	while (page < shadow->memory->pages && shadow->memory->page_hpa[page] != base)
		page++;
	if (page == shadow->memory->pages || index > VMPT_SHADOW_OUTPUTS)
		return false;
	/* The slot number of the link at a page's end is that of the entry it leads to. */
	place->slot = page * VMPT_SHADOW_OUTPUTS + index;
	link = index == VMPT_SHADOW_OUTPUTS;
	if (place->slot == shadow->used && shadow->end == VMPT_SHADOW_RING) {
		place->slot = 0;
		link = true;
	}
	if (place->slot >= shadow->used || (link && place->offset))
		return false;
	/* A window is walked only once. */
	if (shadow->end != VMPT_SHADOW_RING && place->slot < shadow->slot)
		return false;
	return vmpt_shadow_poisoned(shadow, place->slot) ||
	       place->offset <= part_size(shadow, place->slot);
}

/* Whether a TraceStop range may have stopped the trace (33.2.5.3). */
static bool may_trace_stop(const struct vmpt_pt_regs *regs)
{
	int n;

	for (n = 0; n < VMPT_PT_RANGES_MAX; n++)
		if ((regs->ctl >> VMPT_CTL_ADDR_SHIFT(n) & 0xf) == VMPT_ADDR_TRACESTOP)
			return true;
	return false;
}

/*
 * Whether @place is the end of the window. For a ToPA STOP the manual says both that OutputOffset
 * is the size minus one and that it points after the region; processors are known to report the
 * size. Both are accepted, unless it may be a TraceStop before the last byte.
 */
static bool at_window_end(const struct vmpt_vcpu *vcpu, const struct shadow_place *place,
			  u64 status)
{
	const struct vmpt_shadow *shadow = &vcpu->shadow;
	u64 size = part_size(shadow, place->slot);

	if (shadow->end != VMPT_SHADOW_WINDOW || place->slot + 1 != shadow->used)
		return false;
	return place->offset == size ||
	       (place->offset + 1 == size && status & VMPT_STATUS_STOPPED &&
		!may_trace_stop(&vcpu->regs));
}

/* Whether the processor passed an INT of the guest in a window; our own do not count. */
static bool guest_int(const struct vmpt_vcpu *vcpu, const struct shadow_place *place)
{
	const struct vmpt_shadow *shadow = &vcpu->shadow;
	u32 slot = shadow->slot, last = shadow->used - 1, end = place->slot;

	if (place->offset == part_size(shadow, end))
		end++;
	/* A processor with one entry signals its INT before the end. */
	if (!vcpu->host_rules.topa_multi)
		end = shadow->used;
	for (; slot < end; slot++) {
		bool ours = (slot == shadow->half && shadow->half_ours) ||
			    (slot == last && shadow->last_ours);

		if (!ours && *vmpt_shadow_entry(shadow, slot) & VMPT_TOPA_INT)
			return true;
	}
	return false;
}

/* Set the guest's position, and note that the shadow has it. */
static void set_position(struct vmpt_vcpu *vcpu, const struct vmpt_shadow_origin *origin,
			 u32 offset)
{
	struct vmpt_shadow *shadow = &vcpu->shadow;
	struct vmpt_pt_regs *regs = &vcpu->regs;

	if (shadow->topa) {
		regs->output_base = origin->table;
		regs->output_mask_ptrs = vmpt_pt_mask_ptrs(origin->index, offset);
	} else {
		regs->output_mask_ptrs =
			(u64)offset << VMPT_OFFSET_SHIFT | (u32)regs->output_mask_ptrs;
	}
	shadow->base = regs->output_base;
	shadow->mask_ptrs = regs->output_mask_ptrs;
}

/* Our own STOP: bytes may be lost, and a packet may be cut; a PSB lets a decoder resume. */
static void take_stop(struct vmpt_vcpu *vcpu, u64 *status)
{
	if (!(*status & VMPT_STATUS_STOPPED))
		return;
	*status &= ~VMPT_STATUS_STOPPED;
	if (vcpu->regs.ctl & VMPT_CTL_TRACE_EN && !(*status & VMPT_STATUS_ERROR))
		*status |= VMPT_STATUS_TRIGGER_EN;
	vcpu->events |= VMPT_EVENT_LOST;
	vcpu->force_psb = true;
}

/* PMI preservation: the entry was an enable and pended it, whatever was written (33.2.7.2). */
static bool pended_by_enable(const struct vmpt_vcpu *vcpu)
{
	return vcpu->regs.ctl & VMPT_CTL_INJECT && vcpu->loaded_status & VMPT_STATUS_PEND_PMI;
}

/* Our own INT is not the guest's, and neither is the PendTopaPMI that came with it. */
static void take_pmi(const struct vmpt_vcpu *vcpu, const struct shadow_place *place, u64 *status,
		     bool *pmi)
{
	if (pended_by_enable(vcpu))
		return;
	if (vcpu->shadow.end != VMPT_SHADOW_WINDOW || guest_int(vcpu, place))
		return;
	*pmi = false;
	if (!(vcpu->loaded_status & VMPT_STATUS_PEND_PMI))
		*status &= ~VMPT_STATUS_PEND_PMI;
}

/* Nothing was written; whether the processor read the table does not matter. */
static int take_frozen(const struct vmpt_vcpu *vcpu, u64 base, u64 *status, bool *pmi)
{
	if (base != vcpu->shadow.memory->page_hpa[0])
		return -VMPT_E_HARDWARE;
	*status &= ~VMPT_STATUS_ERROR;
	*status |= vcpu->regs.status & VMPT_STATUS_ERROR;
	*pmi &= pended_by_enable(vcpu);
	return 0;
}

static int take_direct(struct vmpt_vcpu *vcpu, u64 base, u64 mask_ptrs, bool *pmi)
{
	struct vmpt_shadow *shadow = &vcpu->shadow;
	u32 mask = (u32)(shadow->mask_ptrs | VMPT_LOWER_MASK);
	u32 offset = (u32)(mask_ptrs >> VMPT_OFFSET_SHIFT);

	if (base != shadow->direct_base || (u32)(mask_ptrs | VMPT_LOWER_MASK) != mask ||
	    offset > mask)
		return -VMPT_E_HARDWARE;
	shadow->offset = offset;
	set_position(vcpu, NULL, offset);
	*pmi &= pended_by_enable(vcpu); /* a single range has no INT */
	return 0;
}

/* Where the guest is, if that is inside the shadow. */
static void take_place(struct vmpt_vcpu *vcpu, const struct shadow_place *at, u64 status)
{
	struct vmpt_shadow *shadow = &vcpu->shadow;
	const struct vmpt_shadow_origin *origin;
	struct shadow_place place = *at;

	/* Full: with STOP the position stays, otherwise the next entry is current. */
	if (!vmpt_shadow_poisoned(shadow, place.slot) &&
	    place.offset == part_size(shadow, place.slot) &&
	    !(*vmpt_shadow_entry(shadow, place.slot) & VMPT_TOPA_STOP)) {
		place.slot = place.slot + 1 == shadow->used ? 0 : place.slot + 1;
		place.offset = 0;
	}
	if (vmpt_shadow_poisoned(shadow, place.slot)) {
		place.offset = 0;
		if (status & VMPT_STATUS_ERROR)
			vcpu->output_why = shadow->why;
	}
	shadow->slot = place.slot;
	shadow->offset = place.offset;
	origin = &shadow->memory->origin[place.slot];
	set_position(vcpu, origin, origin->offset + place.offset);
	if (place.slot > shadow->half) /* of a window; else there is no half */
		shadow->stale = true;
}

int vmpt_shadow_take_back(struct vmpt_vcpu *vcpu, u64 base, u64 mask_ptrs, u64 *status, bool *pmi)
{
	struct vmpt_shadow *shadow = &vcpu->shadow;
	struct shadow_place place;

	if (shadow->end == VMPT_SHADOW_NONE)
		return -VMPT_E_HARDWARE;
	if (shadow->frozen)
		return take_frozen(vcpu, base, status, pmi);
	if (shadow->end == VMPT_SHADOW_DIRECT)
		return take_direct(vcpu, base, mask_ptrs, pmi);
	if (!find_place(shadow, base, mask_ptrs, &place))
		return -VMPT_E_HARDWARE;
	take_pmi(vcpu, &place, status, pmi);
	if (at_window_end(vcpu, &place, *status)) {
		take_stop(vcpu, status);
		shadow->stale = true;
		set_position(vcpu, &shadow->next, shadow->next.offset);
		return 0;
	}
	take_place(vcpu, &place, *status);
	return 0;
}
