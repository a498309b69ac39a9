// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Build the shadow ToPA: a window of the guest's walk as a table of host-physical regions; and
 * invalidate it when guest memory moves (SDM 3 33.2.7.2).
 */
#include "vmm-lib/shadow-topa.h"

#include "vmm-lib/shadow/walk.h"

#define PAGE_MASK_LOW 4095ULL
/* Malformed for every processor, at any index of a table (rule 4a). */
#define POISON_ENTRY (VMPT_TOPA_END | VMPT_TOPA_INT)
/* No slot is left; distinct from the results of a step of the walk. */
#define FULL 3

struct builder {
	struct vmpt_vcpu *vcpu;
	struct vmpt_shadow *shadow;
	struct vmpt_walk walk;
	u32 room;   /* number of slots */
	u64 offset; /* of the next part in the walk's region */
	bool whole; /* the shadow has the first region from its start */
	u64 table;  /* the first region */
	u32 index;
};

static void widen(struct vmpt_shadow *shadow, u64 from, u64 to)
{
	if (from < shadow->low)
		shadow->low = from;
	if (to > shadow->high)
		shadow->high = to;
}

/* The whole pages of guest memory that hold the entry of @origin and an END after it. */
static void entry_pages(const struct vmpt_shadow_origin *origin, u64 *from, u64 *to)
{
	u64 at = origin->table + 8ULL * origin->index;

	*from = at & ~PAGE_MASK_LOW;
	*to = ((at + 15) | PAGE_MASK_LOW) + 1;
}

/* Append @entry for the walk's position. There is room. */
static void put(struct builder *b, u64 entry, u64 gpa)
{
	struct vmpt_shadow *shadow = b->shadow;
	const struct vmpt_shadow_memory *memory = shadow->memory;
	u32 slot = shadow->used++, page = slot / VMPT_SHADOW_OUTPUTS;
	struct vmpt_shadow_origin *origin = &memory->origin[slot];
	u64 from, to;

	if (page && !(slot % VMPT_SHADOW_OUTPUTS))
		memory->page[page - 1][VMPT_SHADOW_OUTPUTS] =
			memory->page_hpa[page] | VMPT_TOPA_END;
	*vmpt_shadow_entry(shadow, slot) = entry;
	origin->table = b->walk.table;
	origin->index = b->walk.index;
	origin->offset = (u32)b->offset;
	origin->gpa = gpa;
	if (shadow->topa) {
		entry_pages(origin, &from, &to);
		widen(shadow, from, to);
	}
}

/* Add the part at b->offset; *size is its size. 0, FULL, or a result of the walk. */
static int put_part(struct builder *b, u64 *size)
{
	struct vmpt_walk *walk = &b->walk;
	u64 hpa, entry, gpa = walk->region + b->offset;
	int err;

	if (b->shadow->used == b->room)
		return FULL;
	err = vmpt_walk_part(walk, b->offset, &hpa, size);
	if (err)
		return err;
	entry = hpa | (u64)(__builtin_ctzll(*size) - 12) << VMPT_TOPA_SIZE_SHIFT;
	if (b->offset + *size == walk->size)
		entry |= walk->entry & (VMPT_TOPA_INT | VMPT_TOPA_STOP);
	put(b, entry, gpa);
	widen(b->shadow, gpa, gpa + *size);
	return 0;
}

/* Add the walk's region from b->offset on. */
static int put_region(struct builder *b)
{
	u64 size;
	int err;

	for (; b->offset < b->walk.size; b->offset += size) {
		err = put_part(b, &size);
		if (err)
			return err;
	}
	return 0;
}

/*
 * Add the parts of the first region before the one that holds @at, so that a walk which comes back
 * to it can be closed into a ring; not if they take half of the room, or are not all available.
 */
static void put_lead(struct builder *b, u64 at)
{
	struct vmpt_shadow *shadow = b->shadow;
	u64 hpa, size;

	for (b->offset = 0;; b->offset += size) {
		if (shadow->used > b->room / 2 || vmpt_walk_part(&b->walk, b->offset, &hpa, &size))
			break;
		if (at < b->offset + size) {
			b->whole = true;
			shadow->slot = shadow->used;
			shadow->offset = (u32)(at - b->offset);
			return;
		}
		if (shadow->used == b->room || put_part(b, &size))
			break;
	}
	b->offset = at & ~PAGE_MASK_LOW;
	shadow->used = 0;
	shadow->slot = 0;
	shadow->offset = (u32)(at & PAGE_MASK_LOW);
}

/*
 * Add region after region until the walk ends; returns how it ended. 0: a STOP or a ring. Each
 * region takes a slot and at most two reads, which gives the bound VMPT_SHADOW_READS.
 */
static int put_regions(struct builder *b)
{
	struct vmpt_shadow *shadow = b->shadow;
	int err;

	for (;;) {
		err = put_region(b);
		if (err)
			return err;
		if (b->walk.entry & VMPT_TOPA_STOP) {
			shadow->end = VMPT_SHADOW_STOP;
			return 0;
		}
		b->offset = 0;
		err = vmpt_walk_next(&b->walk);
		if (err)
			return err;
		if (b->whole && b->walk.table == b->table && b->walk.index == b->index) {
			shadow->end = VMPT_SHADOW_RING;
			return 0;
		}
	}
}

/* Our own STOP at the end, and our own INT there and halfway. */
static void end_window(struct builder *b)
{
	struct vmpt_shadow *shadow = b->shadow;
	u32 last = shadow->used - 1;
	u64 *last_entry = vmpt_shadow_entry(shadow, last), *half_entry;

	shadow->end = VMPT_SHADOW_WINDOW;
	shadow->half = shadow->slot + (last - shadow->slot) / 2;
	half_entry = vmpt_shadow_entry(shadow, shadow->half);
	shadow->half_ours = !(*half_entry & VMPT_TOPA_INT);
	shadow->last_ours = !(*last_entry & VMPT_TOPA_INT);
	*half_entry |= VMPT_TOPA_INT;
	/* INT here too: tracing stops until the next exit. */
	*last_entry |= VMPT_TOPA_INT | VMPT_TOPA_STOP;
	shadow->next = (struct vmpt_shadow_origin){ .table = b->walk.table,
						    .index = b->walk.index,
						    .offset = (u32)b->offset };
}

/*
 * END after the last entry, to the first page: a ring's way back. Otherwise it is not reached, but
 * a processor that reads ahead must not find entries of an older shadow.
 */
static void put_link(const struct vmpt_shadow *shadow)
{
	u32 last = shadow->used - 1;

	shadow->memory->page[last / VMPT_SHADOW_OUTPUTS][last % VMPT_SHADOW_OUTPUTS + 1] =
		shadow->memory->page_hpa[0] | VMPT_TOPA_END;
}

static void put_poison(struct builder *b, enum vmpt_output_error why)
{
	put(b, POISON_ENTRY, 0);
	b->shadow->end = VMPT_SHADOW_POISON;
	b->shadow->why = (u8)why;
}

/* Build from the region in the walk and the position @at in it. */
static int build_parts(struct builder *b, u64 at)
{
	struct vmpt_shadow *shadow = b->shadow;
	int err;

	b->table = b->walk.table;
	b->index = b->walk.index;
	put_lead(b, at);
	err = put_regions(b);
	if (!err)
		return 0;
	if (err == VMPT_WALK_POISON && shadow->used < b->room)
		put_poison(b, b->walk.why);
	else if (err > 0 || shadow->used > shadow->slot)
		end_window(b);
	else
		return err;
	/* Output at the position itself is not possible: the error stays there. */
	if (vmpt_shadow_poisoned(shadow, shadow->slot)) {
		shadow->memory->origin[shadow->slot].offset = (u32)at;
		shadow->offset = 0;
	}
	return 0;
}

/* A single range as a single range. 0, or VMPT_WALK_PARTS: it must become a table. */
static int build_direct(struct builder *b)
{
	struct vmpt_shadow *shadow = b->shadow;
	int err;

	if (!b->vcpu->host_rules.single_range) {
		b->walk.why = VMPT_OUTPUT_MEMORY;
		return b->walk.size > PAGE_MASK_LOW ? VMPT_WALK_PARTS : VMPT_WALK_POISON;
	}
	err = vmpt_walk_direct(&b->walk, &shadow->direct_base);
	if (err)
		return err;
	shadow->end = VMPT_SHADOW_DIRECT;
	shadow->offset = vmpt_pt_output_offset(&b->vcpu->regs);
	widen(shadow, b->walk.region, b->walk.region + b->walk.size);
	return 0;
}

static int build(struct builder *b)
{
	const struct vmpt_pt_regs *regs = &b->vcpu->regs;
	u64 at = vmpt_pt_output_offset(regs);
	int err = vmpt_walk_start(&b->walk, b->vcpu);

	if (b->walk.index != vmpt_pt_topa_index(regs) && b->walk.topa)
		at = 0; /* an END was followed */
	if (!err && !b->walk.topa)
		err = build_direct(b);
	else if (!err)
		err = at < b->walk.size ? VMPT_WALK_PARTS : VMPT_WALK_POISON;
	if (err == VMPT_WALK_PARTS)
		return build_parts(b, at);
	if (err != VMPT_WALK_POISON)
		return err;
	b->offset = at;
	put_poison(b, b->walk.why ? b->walk.why : VMPT_OUTPUT_OFFSET);
	return 0;
}

/* While Stopped or Error is set nothing is output, so no guest memory is needed. */
static void build_frozen(struct builder *b)
{
	b->shadow->frozen = true;
	put_poison(b, VMPT_OUTPUT_OK);
}

static void clear(struct vmpt_shadow *shadow, const struct vmpt_pt_regs *regs)
{
	const struct vmpt_shadow_memory *memory = shadow->memory;

	memset(shadow, 0, sizeof(*shadow));
	shadow->memory = memory;
	shadow->half = ~0U;
	shadow->low = ~0ULL;
	shadow->stale = true;
	shadow->topa = regs->ctl & VMPT_CTL_TOPA;
	shadow->base = regs->output_base;
	shadow->mask_ptrs = regs->output_mask_ptrs;
}

int vmpt_shadow_build(struct vmpt_vcpu *vcpu)
{
	struct vmpt_shadow *shadow = &vcpu->shadow;
	const struct vmpt_shadow_memory *memory = shadow->memory;
	struct builder b = { .vcpu = vcpu, .shadow = shadow };
	int err = 0;

	if (!memory || !memory->pages || memory->pages > VMPT_SHADOW_PAGES_MAX)
		return -VMPT_E_STATE;
	clear(shadow, &vcpu->regs);
	/* A processor with single-entry tables: one part at a time, followed by END. */
	b.room = vcpu->host_rules.topa_multi ? memory->pages * VMPT_SHADOW_OUTPUTS : 1;
	if (vcpu->regs.status & (VMPT_STATUS_STOPPED | VMPT_STATUS_ERROR))
		build_frozen(&b);
	else
		err = build(&b);
	shadow->reads = b.walk.reads;
	shadow->translations = b.walk.translations;
	if (err) {
		shadow->end = VMPT_SHADOW_NONE;
		return err;
	}
	if (shadow->used)
		put_link(shadow);
	shadow->stale = false;
	return 0;
}

static bool overlap(u64 from, u64 to, u64 gpa, u64 last)
{
	return from <= last && gpa < to;
}

/* Whether a part or a table of the shadow is in [gpa, last]. */
static bool in_use(const struct vmpt_shadow *shadow, u64 gpa, u64 last)
{
	u32 slot;

	for (slot = 0; slot < shadow->used; slot++) {
		const struct vmpt_shadow_origin *origin = &shadow->memory->origin[slot];
		u64 from, to, size = vmpt_topa_size(*vmpt_shadow_entry(shadow, slot));

		if (!vmpt_shadow_poisoned(shadow, slot) &&
		    overlap(origin->gpa, origin->gpa + size, gpa, last))
			return true;
		entry_pages(origin, &from, &to);
		if (shadow->topa && overlap(from, to, gpa, last))
			return true;
	}
	return false;
}

bool vmpt_shadow_invalidate(struct vmpt_vcpu *vcpu, u64 gpa, u64 size)
{
	struct vmpt_shadow *shadow = &vcpu->shadow;
	u64 last = size - 1 > ~gpa ? ~0ULL : gpa + (size - 1);

	if (!size || shadow->end == VMPT_SHADOW_NONE || shadow->frozen)
		return false;
	if (!overlap(shadow->low, shadow->high, gpa, last))
		return false;
	if (shadow->end != VMPT_SHADOW_DIRECT && !in_use(shadow, gpa, last))
		return false;
	shadow->stale = true;
	return true;
}
