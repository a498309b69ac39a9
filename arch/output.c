// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Where the next byte of trace goes (SDM 3 33.2.7). All position is in the MSRs, at any
 * time between two calls: the entry behind a region is read before the region's last byte
 * is stored, so a callback that fails leaves a position from which to go on.
 */
#include "arch/output.h"

#define PAGE 4096ULL

/* A position in a ToPA table, and what its entry says. */
struct place {
	u64 base, entry;
	u32 index, offset;
	enum vmpt_output_error why;
};

void vmpt_output_init(struct vmpt_output *out, const struct vmpt_pt_rules *rules,
		      struct vmpt_pt_regs *regs, const struct vmpt_output_memory *memory)
{
	memset(out, 0, sizeof(*out));
	out->rules = rules;
	out->regs = regs;
	out->memory = memory;
}

/* After STOP or an error there is no output (33.2.6.2). */
static bool active(const struct vmpt_output *out)
{
	return !(out->regs->status & (VMPT_STATUS_ERROR | VMPT_STATUS_STOPPED));
}

static bool is_topa(const struct vmpt_output *out)
{
	return out->regs->ctl & VMPT_CTL_TOPA;
}

/* Set Error or Stopped: TriggerEn goes, the region is none of ours any more. */
static void halt(struct vmpt_output *out, u64 bit, u32 event)
{
	out->regs->status = (out->regs->status | bit) & ~VMPT_STATUS_TRIGGER_EN;
	out->events |= event;
	out->loaded = false;
}

static void fail(struct vmpt_output *out, enum vmpt_output_error why)
{
	out->why = (u8)why;
	halt(out, VMPT_STATUS_ERROR, VMPT_OUTPUT_ERROR);
}

/* Read the entry of @place once and check it. 0 with place->why, or negative. */
static int fetch(struct vmpt_output *out, struct place *place)
{
	u64 pa = place->base + 8ULL * place->index;
	int err;

	/* A table may not reach beyond the physical address space either. */
	if (pa & ~vmpt_mask64(out->rules->maxphyaddr)) {
		place->why = VMPT_OUTPUT_PHYSADDR;
		return 0;
	}
	out->reads++;
	err = out->memory->read_entry(out->memory->opaque, pa, &place->entry);
	if (err < 0)
		return err;
	if (err)
		place->why = VMPT_OUTPUT_TABLE_MEMORY;
	else
		place->why = vmpt_topa_check(out->rules, place->entry, place->index, place->base);
	return 0;
}

/* The same, going through an END entry. One at the most: entry 0 is never END (rule 4b). */
static int settle(struct vmpt_output *out, struct place *place)
{
	int err = fetch(out, place);

	if (err || place->why || !(place->entry & VMPT_TOPA_END))
		return err;
	place->base = vmpt_topa_base(place->entry);
	place->index = 0;
	place->offset = 0;
	return fetch(out, place);
}

/* Make @place the current one; what is wrong with it is signalled now. */
static void move_to(struct vmpt_output *out, const struct place *place)
{
	out->regs->output_base = place->base;
	out->regs->output_mask_ptrs = vmpt_pt_mask_ptrs(place->index, place->offset);
	if (place->why) {
		fail(out, place->why);
		return;
	}
	out->entry = place->entry;
	out->region = vmpt_topa_base(place->entry);
	out->size = vmpt_topa_size(place->entry);
	if (place->offset >= out->size) {
		fail(out, VMPT_OUTPUT_OFFSET);
		return;
	}
	out->loaded = true;
}

static void load_single_range(struct vmpt_output *out)
{
	enum vmpt_output_error why = vmpt_single_range_check(out->regs);
	u64 mask = (u32)out->regs->output_mask_ptrs | VMPT_LOWER_MASK;

	if (!why && out->regs->output_base & ~vmpt_mask64(out->rules->maxphyaddr))
		why = VMPT_OUTPUT_PHYSADDR;
	if (why) {
		fail(out, why);
		return;
	}
	out->entry = 0;
	out->region = out->regs->output_base;
	out->size = mask + 1;
	out->loaded = true;
}

int vmpt_output_load(struct vmpt_output *out)
{
	struct vmpt_pt_regs *regs = out->regs;
	struct place place = {
		.base = regs->output_base,
		.index = vmpt_pt_topa_index(regs),
		.offset = vmpt_pt_output_offset(regs),
	};
	int err;

	out->loaded = false;
	if (!active(out))
		return 0;
	if (regs->ctl & VMPT_CTL_FABRIC_EN) {
		fail(out, VMPT_OUTPUT_FABRIC);
		return 0;
	}
	if (!is_topa(out)) {
		load_single_range(out);
		return 0;
	}
	place.why = vmpt_topa_check_base(out->rules, place.base);
	if (!place.why) {
		err = settle(out, &place);
		if (err)
			return err;
	}
	move_to(out, &place);
	return 0;
}

/* INT of the current entry, @before and @after bytes being left of the region. */
static void signal_int(struct vmpt_output *out, u64 before, u64 after)
{
	/* With one entry there is no other region to write to in the meantime (33.2.7.2). */
	u64 when = out->rules->topa_multi ? 0 : VMPT_OUTPUT_EARLY;

	if (out->entry & VMPT_TOPA_INT && before > when && after <= when) {
		out->events |= VMPT_OUTPUT_INT;
		out->ints++;
	}
}

static void set_offset(struct vmpt_output *out, u64 offset)
{
	u64 low = (u32)out->regs->output_mask_ptrs | VMPT_LOWER_MASK;

	out->regs->output_mask_ptrs = offset << VMPT_OFFSET_SHIFT | low;
}

/* The region is full: STOP, else the next place; a single range goes on at its base. */
static void leave(struct vmpt_output *out, const struct place *next)
{
	if (!is_topa(out)) {
		set_offset(out, 0);
		out->events |= VMPT_OUTPUT_WRAPPED;
	} else if (out->entry & VMPT_TOPA_STOP) {
		set_offset(out, out->size);
		halt(out, VMPT_STATUS_STOPPED, VMPT_OUTPUT_STOP);
	} else {
		move_to(out, next);
	}
}

/* The place behind the current entry: where output goes on when its region is full. */
static int next_place(struct vmpt_output *out, struct place *next)
{
	/* A table without END goes on at its start (bits 27:3 of the offset wrap). */
	next->index = (vmpt_pt_topa_index(out->regs) + 1) % VMPT_TOPA_ENTRIES_MAX;
	return settle(out, next);
}

/*
 * Store up to the end of the region and of the page: *stored bytes of @len, 0 with
 * STATUS.Error set. By pages, for memory may end there while the region goes on.
 */
static int store(struct vmpt_output *out, const u8 *bytes, size_t len, size_t *stored)
{
	u64 offset = vmpt_pt_output_offset(out->regs);
	u64 room = out->size - offset;
	u64 page = PAGE - (out->region + offset) % PAGE;
	u64 most = room < page ? room : page;
	size_t n = len < most ? len : (size_t)most;
	struct place next = { .base = out->regs->output_base };
	int err;

	*stored = 0;
	if (n == room && is_topa(out) && !(out->entry & VMPT_TOPA_STOP)) {
		err = next_place(out, &next);
		if (err)
			return err;
	}
	err = out->memory->write(out->memory->opaque, out->region + offset, bytes, n);
	if (err < 0)
		return err;
	if (err == VMPT_OUTPUT_DROPPED) {
		out->dropped += n;
	} else if (err) {
		fail(out, VMPT_OUTPUT_MEMORY);
		return 0;
	}
	*stored = n;
	signal_int(out, room, room - n);
	if (n == room)
		leave(out, &next);
	else
		set_offset(out, offset + n);
	return 0;
}

int vmpt_output_next(struct vmpt_output *out, u64 *pa)
{
	u64 behind = ((out->region + vmpt_pt_output_offset(out->regs)) | (PAGE - 1)) + 1;
	struct place next = { .base = out->regs->output_base };
	int err;

	if (!out->loaded)
		return 1;
	*pa = behind < out->region + out->size ? behind : out->region;
	if (*pa == behind || !is_topa(out))
		return 0;
	if (out->entry & VMPT_TOPA_STOP)
		return 1;
	err = next_place(out, &next);
	if (err)
		return err;
	*pa = vmpt_topa_base(next.entry);
	return next.why ? 1 : 0;
}

int vmpt_output_write(struct vmpt_output *out, const u8 *bytes, size_t len, size_t *done)
{
	size_t n;
	int err;

	*done = 0;
	while (*done < len) {
		if (!active(out)) {
			out->lost += len - *done;
			*done = len;
			break;
		}
		if (!out->loaded) {
			err = vmpt_output_load(out);
			if (err)
				return err;
			continue;
		}
		err = store(out, bytes + *done, len - *done, &n);
		if (err)
			return err;
		*done += n;
	}
	return 0;
}
