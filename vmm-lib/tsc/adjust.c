// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Rewrite TSC packets in a guest's output (SDM 3 33.5.2.3): the path from where the last call ended
 * to the current position, through the guest's ToPA or its single range (33.2.7.1, 33.2.7.2). The
 * guest may change all of it at any time: each entry is read once and checked, and the whole path
 * is searched before a byte is written.
 */
#include "vmm-lib/vmpt.h"
#include "vmm-lib/tsc/scan.h"

#define PAGE 4096ULL
/* Size of a piece to read and to write back: 512 bytes of stack. */
#define CHUNK 256
/* Pages mapped at a time: 256 bytes of stack. */
#define VIEW 32

/* Not an enum vmpt_error: there is no path from here to there. */
#define NO_WAY 1

/* The least budget: it must suffice for an entry and some bytes. */
#define BUDGET_MIN 4096

struct tsc_place {
	u64 base;
	u32 index, offset; /* index: of a ToPA entry, 0 in a single range */
};

struct tsc_walk {
	struct vmpt_vcpu *vcpu;
	const struct vmpt_tsc_change *change; /* NULL: only search the path */
	struct tsc_place at, to;
	u64 entries;
	u64 traced;    /* the path may be that long */
	u64 budget;    /* what is left of it */
	size_t window; /* of lanes that go over pages */
};

/* ---- bytes ---- */

/* Forget all but the last @n bytes of the cut packet: the others are of no PSB. */
static void trim_cut(struct vmpt_vcpu *vcpu, unsigned int n)
{
	unsigned int more = vcpu->cut_len[0] + vcpu->cut_len[1] - n;

	if (more >= vcpu->cut_len[0]) {
		more -= vcpu->cut_len[0];
		vcpu->cut_gpa[0] = vcpu->cut_gpa[1];
		vcpu->cut_len[0] = vcpu->cut_len[1];
		vcpu->cut_len[1] = 0;
	}
	vcpu->cut_gpa[0] += more;
	vcpu->cut_len[0] = (u8)(vcpu->cut_len[0] - more);
}

/*
 * Note where the bytes of the cut packet, or of a PSB that is searched for, are, after a piece of
 * @len bytes at @gpa.
 */
static void note_cut(struct vmpt_vcpu *vcpu, u64 gpa, size_t len)
{
	struct vmpt_tsc_scan *scan = &vcpu->scan;
	unsigned int cut = scan->cut_size, last;

	if (cut <= len) {
		vcpu->cut_gpa[0] = gpa + len - cut;
		vcpu->cut_len[0] = (u8)cut;
		vcpu->cut_len[1] = 0;
		return;
	}
	if (cut - len < vcpu->cut_len[0] + vcpu->cut_len[1])
		trim_cut(vcpu, cut - (unsigned int)len);
	last = vcpu->cut_len[1] ? 1 : 0;
	/* A piece shorter than a packet: it follows the last one, or is in the next region. */
	if (vcpu->cut_len[last] && vcpu->cut_gpa[last] + vcpu->cut_len[last] != gpa) {
		if (last) {
			/* Regions are longer than packets: the guest changed its table. */
			scan->lost = 1;
			scan->errors++;
			scan->cut_size = scan->block = 0;
			vcpu->cut_len[0] = vcpu->cut_len[1] = 0;
			return;
		}
		last = 1;
	}
	if (!vcpu->cut_len[last])
		vcpu->cut_gpa[last] = gpa;
	vcpu->cut_len[last] = (u8)(vcpu->cut_len[last] + len);
}

/* Write the first bytes of a packet that was cut back to the earlier pieces. */
static int patch_cut(struct vmpt_vcpu *vcpu)
{
	const struct vmpt_tsc_scan *scan = &vcpu->scan;
	unsigned int first = vcpu->cut_len[0];
	int err;

	if (!scan->patched || scan->patched != first + vcpu->cut_len[1])
		return 0;
	err = vcpu->ops->guest_write(vcpu->opaque, vcpu->cut_gpa[0], scan->patch, first);
	if (!err && vcpu->cut_len[1])
		err = vcpu->ops->guest_write(vcpu->opaque, vcpu->cut_gpa[1], scan->patch + first,
					     vcpu->cut_len[1]);
	return err;
}

/*
 * Write back only what changed: the guest may be writing next to it. Returns the result of
 * guest_write; everything before *done is written.
 */
static int write_changed(struct vmpt_vcpu *vcpu, u64 gpa, const u8 *old, const u8 *new, size_t len,
			 size_t *done)
{
	size_t i, j, end;
	int err;

	for (i = 0; i < len; i = end) {
		end = i + 1;
		if (old[i] == new[i])
			continue;
		for (j = end; j < len && j < i + sizeof(u64); j++)
			if (old[j] != new[j])
				end = j + 1;
		*done = i;
		err = vcpu->ops->guest_write(vcpu->opaque, gpa + i, new + i, end - i);
		if (err)
			return err;
	}
	*done = len;
	return 0;
}

/*
 * Through a copy. 0, negative or an enum vmpt_guest_mem, and *len is set to the bytes done. If
 * writing stopped, the packet at that place is treated as cut.
 */
static int adjust_copy(struct tsc_walk *w, u64 gpa, size_t *len)
{
	struct vmpt_vcpu *vcpu = w->vcpu;
	struct vmpt_tsc_scan before = vcpu->scan;
	size_t all = *len;
	u8 old[CHUNK], new[CHUNK];
	int err;

	*len = 0;
	err = vcpu->ops->guest_read(vcpu->opaque, gpa, old, all);
	if (err)
		return err;
	memcpy(new, old, all);
	vmpt_tsc_rewrite(&vcpu->scan, w->change, new, all);
	err = patch_cut(vcpu);
	if (!err)
		err = write_changed(vcpu, gpa, old, new, all, len);
	if (err) {
		vcpu->scan = before;
		vmpt_tsc_rewrite(&vcpu->scan, w->change, old, *len);
	}
	if (*len)
		note_cut(vcpu, gpa, *len);
	return err;
}

/*
 * Map up to @pages pages of the @len bytes at @gpa, of which @size are at @host. Returns the number
 * of pages, or a negative result of guest_map: then nothing was done, and the next call starts here
 * again.
 */
static int map_pages(struct tsc_walk *w, u64 gpa, u64 len, u8 *host, size_t size, u8 **page,
		     unsigned int pages)
{
	struct vmpt_vcpu *vcpu = w->vcpu;
	size_t before = (size_t)(gpa % PAGE);
	unsigned int n = 0;
	int err;

	/* From the first page's start; the bytes before @gpa are not touched. */
	host -= before;
	size += before;
	len += before;
	gpa -= before;
	for (;;) {
		/* A whole page, or as much of the last one as is needed. */
		for (; n < pages && len && (size >= PAGE || size >= len); n++) {
			page[n] = host;
			host += PAGE;
			gpa += PAGE;
			size -= size < PAGE ? size : (size_t)PAGE;
			len -= len < PAGE ? len : PAGE;
		}
		if (n == pages || !len || size)
			return (int)n;
		size = (size_t)len;
		err = vcpu->ops->guest_map(vcpu->opaque, gpa, &host, &size);
		if (err)
			return err < 0 ? err : (int)n;
		if (!size)
			return (int)n;
	}
}

/*
 * In pages that guest_map returns one by one, the first of @size bytes at @host. *len: bytes done,
 * 0 if lanes do not help.
 */
static int adjust_pages(struct tsc_walk *w, u64 gpa, size_t *len, u8 *host, size_t size)
{
	struct vmpt_vcpu *vcpu = w->vcpu;
	u8 *page[VIEW];
	const struct vmpt_tsc_view view = { page, 12 };
	size_t all = *len, before = (size_t)(gpa % PAGE), end;
	unsigned int pages = (unsigned int)(w->window / PAGE) + 1;
	int n;

	*len = 0;
	n = map_pages(w, gpa, all, host, size, page, pages < VIEW ? pages : VIEW);
	if (n < 0)
		return n;
	end = (size_t)n * (size_t)PAGE;
	end = end < before + all ? end : before + all;
	if (n > 1)
		*len = vmpt_tsc_rewrite_view(&vcpu->scan, w->change, &view, before, end,
					     &w->window) -
		       before;
	if (*len)
		note_cut(vcpu, gpa, *len);
	return 0;
}

/* In the memory itself, at most *len bytes; *len is set to the bytes done. */
static int adjust_mapped(struct tsc_walk *w, u64 gpa, size_t *len)
{
	struct vmpt_vcpu *vcpu = w->vcpu;
	size_t all = *len, size = all;
	u8 *host;
	int err;

	*len = 0;
	err = vcpu->ops->guest_map(vcpu->opaque, gpa, &host, &size);
	if (err)
		return err;
	if (!size)
		return -VMPT_E_GUEST_MEM;
	if (size < all && size < VIEW * PAGE) {
		*len = all;
		err = adjust_pages(w, gpa, len, host, size);
		if (err || *len)
			return err;
	}
	*len = size < all ? size : all;
	vmpt_tsc_rewrite(&vcpu->scan, w->change, host, *len);
	note_cut(vcpu, gpa, *len);
	return 0;
}

/* There is no memory for the next bytes: packets resume at a PSB after them. */
static int skip(struct vmpt_vcpu *vcpu, int kind)
{
	if (kind < VMPT_MEMS && vcpu->on_mem[kind] == VMPT_ON_MEM_RETRY)
		return -VMPT_E_RETRY;
	vcpu->scan.lost = 1;
	vcpu->force_psb = true;
	vcpu->scan.errors++;
	vcpu->scan.cut_size = vcpu->scan.block = 0;
	vcpu->cut_len[0] = vcpu->cut_len[1] = 0;
	return 0;
}

/* Some of the @len bytes at @gpa; *done of them, also after an error. */
static int adjust_some(struct tsc_walk *w, u64 gpa, u64 len, size_t *done)
{
	struct vmpt_vcpu *vcpu = w->vcpu;
	bool cut = vcpu->scan.cut_size;
	size_t in_page = (size_t)(PAGE - gpa % PAGE);
	int err;

	/* Before memory is changed in place, finish what may fail: a cut packet. */
	if (vcpu->ops->guest_map && !cut) {
		*done = (size_t)len;
		err = adjust_mapped(w, gpa, done);
	} else {
		*done = cut ? VMPT_PT_SIZE_MAX : CHUNK;
		*done = *done < len ? *done : (size_t)len;
		*done = *done < in_page ? *done : in_page;
		err = adjust_copy(w, gpa, done);
	}
	if (err <= 0)
		return err;
	err = skip(vcpu, err);
	if (!err)
		*done = len < in_page ? (size_t)len : in_page;
	return err;
}

/*
 * @len bytes from w->at on, which are at @gpa. Advances w->at by the bytes done. VMPT_MORE: the
 * budget is used up.
 */
static int adjust(struct tsc_walk *w, u64 gpa, u64 len)
{
	struct vmpt_vcpu *vcpu = w->vcpu;
	u64 lost = vcpu->scan.lost_bytes;
	int err = 0;
	size_t n;

	while (len && !err) {
		if (!w->budget) {
			err = VMPT_MORE;
			break;
		}
		err = adjust_some(w, gpa, len < w->budget ? len : w->budget, &n);
		gpa += n;
		len -= n;
		w->at.offset += (u32)n;
		w->traced -= n;
		w->budget -= n;
	}
	if (vcpu->scan.lost_bytes != lost)
		vcpu->events |= VMPT_EVENT_LOST;
	/* The next PSB ends the loss. */
	if (vcpu->scan.lost)
		vcpu->force_psb = true;
	return err;
}

/* ---- the path ---- */

static bool same_entry(const struct tsc_place *a, const struct tsc_place *b)
{
	return a->base == b->base && a->index == b->index;
}

/* The stretch of the current region up to @end. */
static int stretch(struct tsc_walk *w, u64 region, u64 size, u64 end)
{
	u64 len;

	if (w->at.offset > end || end > size)
		return NO_WAY;
	len = end - w->at.offset;
	if (len > w->traced)
		return NO_WAY;
	if (w->change)
		return adjust(w, region + w->at.offset, len);
	w->traced -= len;
	w->at.offset = (u32)end;
	return 0;
}

/*
 * Read the current ToPA entry. 0, NO_WAY, negative, or VMPT_MORE: the budget is used up (the search
 * goes on without: it has a bound of its own).
 */
static int fetch(struct tsc_walk *w, u64 *entry)
{
	const struct vmpt_vcpu *vcpu = w->vcpu;
	u64 gpa = w->at.base + 8ULL * w->at.index;
	int err;

	if (w->change && !w->budget)
		return VMPT_MORE;
	w->budget -= w->budget < VMPT_ADJUST_ENTRY ? w->budget : VMPT_ADJUST_ENTRY;
	/* A table may not reach beyond the physical address space either. */
	if (++w->entries > VMPT_ADJUST_ENTRIES || vmpt_topa_check_base(&vcpu->rules, w->at.base) ||
	    gpa & ~vmpt_mask64(vcpu->rules.maxphyaddr))
		return NO_WAY;
	err = vcpu->ops->guest_read(vcpu->opaque, gpa, entry, sizeof(*entry));
	if (err)
		return err < 0 ? err : NO_WAY;
	return vmpt_topa_check(&vcpu->rules, *entry, w->at.index, w->at.base) ? NO_WAY : 0;
}

static int walk_topa(struct tsc_walk *w)
{
	u64 entry, size;
	bool last;
	int err;

	/* The target may be an END entry: then it is not followed. */
	while (!same_entry(&w->at, &w->to) || w->at.offset != w->to.offset) {
		err = fetch(w, &entry);
		if (err)
			return err;
		if (entry & VMPT_TOPA_END) {
			w->at = (struct tsc_place){ .base = vmpt_topa_base(entry) };
			continue;
		}
		size = vmpt_topa_size(entry);
		last = same_entry(&w->at, &w->to) && w->to.offset >= w->at.offset;
		err = stretch(w, vmpt_topa_base(entry), size, last ? w->to.offset : size);
		if (err || last)
			return err;
		w->at.offset = 0;
		/* A table of the largest size without END wraps (33.2.7.2). */
		if (++w->at.index == VMPT_TOPA_ENTRIES_MAX)
			w->at.index = 0;
	}
	return 0;
}

static int walk_range(struct tsc_walk *w, u64 mask)
{
	int err;

	if (w->at.base != w->to.base)
		return NO_WAY;
	if (w->to.offset < w->at.offset) {
		err = stretch(w, w->at.base, mask + 1, mask + 1);
		if (err)
			return err;
		w->at.offset = 0;
	}
	return stretch(w, w->at.base, mask + 1, w->to.offset);
}

static struct tsc_place place_of(u64 output_base, u64 mask_ptrs, bool topa)
{
	return (struct tsc_place){
		.base = output_base,
		.index = topa ? (u32)mask_ptrs >> 7 : 0,
		.offset = (u32)(mask_ptrs >> VMPT_OFFSET_SHIFT),
	};
}

static int walk(struct tsc_walk *w, const struct vmpt_position *to,
		const struct vmpt_tsc_change *change)
{
	struct vmpt_vcpu *vcpu = w->vcpu;
	bool topa = vcpu->regs.ctl & VMPT_CTL_TOPA;
	struct vmpt_pt_regs range = { .output_base = to->output_base,
				      .output_mask_ptrs = to->output_mask_ptrs };

	w->change = change;
	w->entries = 0;
	w->traced = vcpu->traced;
	w->at = place_of(vcpu->scan_base, vcpu->scan_mask_ptrs, topa);
	w->to = place_of(to->output_base, to->output_mask_ptrs, topa);
	if (topa)
		return walk_topa(w);
	if ((u32)vcpu->scan_mask_ptrs != (u32)to->output_mask_ptrs ||
	    vmpt_single_range_check(&range) ||
	    to->output_base & ~vmpt_mask64(vcpu->rules.maxphyaddr))
		return NO_WAY;
	return walk_range(w, (u32)to->output_mask_ptrs | VMPT_LOWER_MASK);
}

/* A call that a callback or the budget stopped resumes from here. */
static void keep_place(const struct tsc_walk *w)
{
	struct vmpt_vcpu *vcpu = w->vcpu;

	vcpu->traced = w->traced;
	vcpu->scan_base = w->at.base;
	vcpu->scan_mask_ptrs = (vcpu->scan_mask_ptrs & 0xffffffff) | (u64)w->at.offset
									     << VMPT_OFFSET_SHIFT;
	if (vcpu->regs.ctl & VMPT_CTL_TOPA)
		vcpu->scan_mask_ptrs = vmpt_pt_mask_ptrs(w->at.index, w->at.offset);
}

/* All up to @to is done; @traced: what the guest can have traced since. */
static void set_place(struct vmpt_vcpu *vcpu, const struct vmpt_position *to, u64 traced)
{
	vcpu->scan_base = to->output_base;
	vcpu->scan_mask_ptrs = to->output_mask_ptrs;
	vcpu->scan_set = true;
	if (to->output_base == vcpu->regs.output_base &&
	    to->output_mask_ptrs == vcpu->regs.output_mask_ptrs)
		traced = 0;
	vcpu->traced = traced;
}

/* Whether the last call has found the path to @to and began to rewrite. */
static bool goes_on(const struct vmpt_vcpu *vcpu, const struct vmpt_position *to)
{
	return vcpu->adjust_more && vcpu->adjust_base == to->output_base &&
	       vcpu->adjust_mask_ptrs == to->output_mask_ptrs;
}

static u64 budget(const struct vmpt_vcpu *vcpu)
{
	u64 bytes = vcpu->adjust_budget ? vcpu->adjust_budget : VMPT_ADJUST_BUDGET;

	return bytes < BUDGET_MIN ? BUDGET_MIN : bytes;
}

int vmpt_vcpu_tsc_adjust(struct vmpt_vcpu *vcpu, const struct vmpt_tsc_change *change,
			 const struct vmpt_position *to)
{
	struct vmpt_position now = { vcpu->regs.output_base, vcpu->regs.output_mask_ptrs };
	struct tsc_walk w = { .vcpu = vcpu, .budget = budget(vcpu), .window = VMPT_TSC_WINDOW };
	int err = 0;

	if (!change || !vcpu->ops->guest_read || !vcpu->ops->guest_write)
		return -VMPT_E_INVAL;
	if (vcpu->entered)
		return -VMPT_E_STATE;
	if (!to)
		to = &now;
	/* The place is saved, and a restore checks it by this rule. */
	if (to->output_base & ~vcpu->rules.base_mask)
		return -VMPT_E_INVAL;
	if (!vcpu->scan_set) {
		/* Earlier trace is unknown; the exit flushed whole packets. */
		vcpu->scan = (struct vmpt_tsc_scan){ 0 };
		vcpu->cut_len[0] = vcpu->cut_len[1] = 0;
		set_place(vcpu, to, vcpu->traced);
		return 0;
	}
	if (!goes_on(vcpu, to))
		err = walk(&w, to, NULL);
	vcpu->adjust_more = false;
	if (err < 0)
		return err;
	if (!err)
		err = walk(&w, to, change);
	if (err < 0 || err == VMPT_MORE) {
		keep_place(&w);
		vcpu->adjust_more = err == VMPT_MORE;
		vcpu->adjust_base = to->output_base;
		vcpu->adjust_mask_ptrs = to->output_mask_ptrs;
		return err;
	}
	set_place(vcpu, to, w.traced);
	if (!err)
		return 0;
	skip(vcpu, VMPT_MEMS);
	return -VMPT_E_LIMIT;
}
