// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A guest's RTIT output (2.3): the guest sees it at (BASE AND NOT MASK) + (OFFSET AND MASK) of its
 * own physical memory. The processor writes either to that memory, if it is contiguous and aligned
 * to its size, or to a buffer in host memory, from which the bytes are copied.
 */
#include "vmm-lib/rtit/internal.h"

#define PAGE 4096u
/* Most pieces in which guest_translate() may return a buffer: the pages of 4 MiB, plus one. */
#define PIECES_MAX 1025

/*
 * Size of the range that OFFSET counts through: MASK's run of ones from bit 0. Ones above a zero of
 * the mask select a part of memory and are never counted into, because the AND removes the carry.
 */
static u64 run_size(u64 mask)
{
	return (mask + 1) & ~mask;
}

static bool to_port(const struct vmpt_rtit_regs *regs)
{
	return !(regs->ctl & VMPT_RTIT_CTL_DEST);
}

static void count_lost(struct vmpt_rtit_vcpu *vcpu, u64 bytes)
{
	if (bytes)
		vcpu->events |= VMPT_RTIT_EVENT_LOST;
	vcpu->lost += bytes;
}

/* ---- guest memory ---- */

static u8 policy_for(const struct vmpt_rtit_vcpu *vcpu, int kind)
{
	const struct vmpt_rtit_config *config = &vcpu->config;

	switch (kind) {
	case VMPT_MEM_UNBACKED:
		return config->on_unbacked;
	case VMPT_MEM_MMIO:
		return config->on_mmio;
	case VMPT_MEM_APIC:
		return config->on_apic;
	case VMPT_MEM_RESTRICTED:
		return config->on_restricted;
	default:
		return VMPT_ON_MEM_DROP;
	}
}

/* @len bytes that lie in one page and one run. */
static int put_piece(struct vmpt_rtit_vcpu *vcpu, u64 gpa, const u8 *bytes, size_t len, u64 *lost)
{
	const struct vmpt_rtit_ops *ops = vcpu->config.ops;
	int kind;

	if (to_port(&vcpu->regs)) {
		if (ops->debug_port)
			ops->debug_port(vcpu->config.opaque, gpa, bytes, len);
		return 0;
	}
	kind = ops->guest_write(vcpu->config.opaque, gpa, bytes, len);
	if (kind <= 0)
		return kind;
	if (policy_for(vcpu, kind) == VMPT_ON_MEM_RETRY)
		return -VMPT_E_RETRY;
	*lost += len;
	return 0;
}

int vmpt_rtit_put(struct vmpt_rtit_vcpu *vcpu, struct vmpt_rtit_position *at, const u8 *bytes,
		  size_t len)
{
	u64 mask = vcpu->regs.limit_mask, base = vcpu->regs.base_addr & ~mask;
	u64 run = run_size(mask), offset, gpa, n;
	int err;

	while (len) {
		offset = at->offset & mask;
		gpa = base + offset;
		n = run - (offset & (run - 1));
		if (n > PAGE - (gpa & (PAGE - 1)))
			n = PAGE - (gpa & (PAGE - 1));
		if (n > len)
			n = len;
		err = put_piece(vcpu, gpa, bytes, (size_t)n, &at->lost);
		if (err)
			return err;
		at->offset = (offset + n) & mask;
		at->done += n;
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

void vmpt_rtit_put_done(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_position *at)
{
	vcpu->regs.offset = at->offset;
	count_lost(vcpu, at->lost);
}

/* ---- where output goes ---- */

static void release(struct vmpt_rtit_vcpu *vcpu, u64 gpa, u64 size)
{
	if (size && vcpu->config.ops->guest_release)
		vcpu->config.ops->guest_release(vcpu->config.opaque, gpa, size);
}

/*
 * The guest's whole buffer at one host-physical address, aligned to its size, because the hardware
 * uses BASE AND NOT MASK. 0: it is in @plan. 1: not possible, *@kind if there is no memory.
 * Negative: the result of a callback.
 */
static int translate(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_regs *regs,
		     struct vmpt_rtit_plan *plan, int *kind)
{
	const struct vmpt_rtit_ops *ops = vcpu->config.ops;
	u64 mask = regs->limit_mask, size = mask + 1, gpa = regs->base_addr & ~mask, done = 0;
	bool fits = run_size(mask) == size;
	unsigned int i;
	u64 hpa, n;
	int ret = 0;

	for (i = 0; i < PIECES_MAX && fits && done < size; i++) {
		n = size - done;
		ret = ops->guest_translate(vcpu->config.opaque, gpa + done, &hpa, &n);
		if (ret)
			break;
		if (!done)
			plan->hpa = hpa;
		if (n > size - done)
			n = size - done;
		fits = n && hpa == plan->hpa + done && !(plan->hpa & mask) &&
		       plan->hpa < VMPT_RTIT_PHYS_END;
		done += n;
	}
	if (!ret && fits && done == size) {
		plan->gpa = gpa;
		plan->size = size;
		return 0;
	}
	release(vcpu, gpa, done);
	if (ret > 0)
		*kind = ret;
	return ret < 0 ? ret : 1;
}

int vmpt_rtit_plan_output(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_regs *regs,
			  struct vmpt_rtit_plan *plan)
{
	int ret = 1, kind = VMPT_MEM_OK;

	*plan = (struct vmpt_rtit_plan){ .path = VMPT_RTIT_PATH_NONE };
	if (!vmpt_rtit_trigger_en(regs))
		return 0;
	if (vcpu->config.output == VMPT_RTIT_CONTIGUOUS && !to_port(regs))
		ret = translate(vcpu, regs, plan, &kind);
	if (ret < 0)
		return ret;
	if (!ret)
		plan->path = VMPT_RTIT_PATH_DIRECT;
	else if (vcpu->config.bounce.bytes)
		plan->path = VMPT_RTIT_PATH_BOUNCE;
	else if (kind && policy_for(vcpu, kind) == VMPT_ON_MEM_RETRY)
		return -VMPT_E_RETRY;
	else
		plan->path = VMPT_RTIT_PATH_PARKED;
	return 0;
}

void vmpt_rtit_plan_drop(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_plan *plan)
{
	release(vcpu, plan->gpa, plan->size);
}

void vmpt_rtit_output_end(struct vmpt_rtit_vcpu *vcpu)
{
	release(vcpu, vcpu->direct_gpa, vcpu->direct_size);
	vcpu->direct_gpa = vcpu->direct_size = 0;
	vcpu->path = VMPT_RTIT_PATH_NONE;
}

/* ---- the bounce buffer ---- */

/*
 * A wrap of the processor is detected by a pattern just before the position where it starts. No
 * legal trace contains it: that many bytes must include a header (a packet has at most
 * VMPT_RTIT_SIZE_MAX), and FFH is none.
 */
#define MARK_SIZE 16u
#define MARK	  0xff

static u8 *byte_at(const struct vmpt_rtit_vcpu *vcpu, u32 at)
{
	return vcpu->config.bounce.bytes + (at & (vcpu->config.bounce.size - 1));
}

static void set_mark(struct vmpt_rtit_vcpu *vcpu)
{
	u32 i;

	vcpu->mark = vcpu->pos;
	vcpu->over = false;
	for (i = 1; i <= MARK_SIZE; i++)
		*byte_at(vcpu, vcpu->mark - i) = MARK;
}

/* Number of unchanged bytes before the mark's end. */
static u32 mark_left(const struct vmpt_rtit_vcpu *vcpu)
{
	u32 i = 0;

	while (i < MARK_SIZE && *byte_at(vcpu, vcpu->mark - i - 1) == MARK)
		i++;
	return i;
}

/* Whether there is a whole PSB @skip bytes after @end, which is also the end of the newest byte. */
static bool psb_at(const struct vmpt_rtit_vcpu *vcpu, u32 end, u32 skip)
{
	u32 i = 0;

	while (i < VMPT_RTIT_PSB_SIZE && vmpt_rtit_is_psb(i, *byte_at(vcpu, end + skip + i)))
		i++;
	return i == VMPT_RTIT_PSB_SIZE && skip + i <= vcpu->config.bounce.size;
}

/*
 * Bytes from pos to @end after a wrap: @passed, or one buffer size more if otherwise the waiting
 * bytes, or the overwritten bytes of the mark, would be beyond it. Further laps cannot be detected.
 */
static u32 since_pos(const struct vmpt_rtit_vcpu *vcpu, u32 passed)
{
	u32 size = vcpu->config.bounce.size, over = vcpu->mark - mark_left(vcpu);

	if (passed < vcpu->used ||
	    (!vcpu->over && passed < ((over - vcpu->pos - 1) & (size - 1)) + 1))
		passed += size;
	return passed;
}

/* The packets of the @n bytes at @at are unknown: the host's TSC may be in them. */
static void overwrite(struct vmpt_rtit_vcpu *vcpu, u32 at, u32 n)
{
	while (n--)
		*byte_at(vcpu, at++) = VMPT_RTIT_LOST_MARK;
}

/*
 * It wrapped at least once and ends at @end; @passed bytes modulo its size since pos. If the
 * guest's own buffer is not larger, it would have wrapped too and hold only the newest bytes:
 * nothing is lost, because a decoder begins at the first PSB. Otherwise packets resume there. If
 * waiting bytes were rewritten before the wrap, none are kept: some would be rewritten twice.
 */
static void wrapped(struct vmpt_rtit_vcpu *vcpu, u32 end, u32 passed)
{
	u32 size = vcpu->config.bounce.size, left = mark_left(vcpu), skip = 0, psb, n;
	u64 mask = vcpu->regs.limit_mask, run = run_size(mask), low;
	bool again = vcpu->config.rewrite_clock && vcpu->used > vcpu->unseen;
	bool keep = run <= size && !to_port(&vcpu->regs) && !again;

	/* Not written yet: as far as the pattern reaches after the end. */
	if (((vcpu->mark - end) & (size - 1)) <= left)
		skip = (vcpu->mark - end) & (size - 1);
	psb = skip;
	if (!keep || vcpu->config.rewrite_clock)
		while (psb < size && (again || !psb_at(vcpu, end, psb)))
			psb++;
	if (keep) {
		low = (vcpu->regs.offset + passed + skip) & (run - 1);
		vcpu->regs.offset = (vcpu->regs.offset & mask & ~(run - 1)) | low;
		if (vcpu->config.rewrite_clock)
			overwrite(vcpu, end + skip, psb - skip);
	} else {
		skip = psb;
		vcpu->events |= VMPT_RTIT_EVENT_LOST;
		n = since_pos(vcpu, passed);
		vcpu->lost += n > size - skip ? n - (size - skip) : 0;
	}
	vcpu->rewrite.lost = psb == size;
	vcpu->pos = (end + skip) & (size - 1);
	vcpu->used = size - skip;
	vcpu->unseen = size - psb;
	vcpu->over = true;
	vcpu->end = end;
}

/*
 * OFFSET is lower than before and nothing was overwritten: no processor does so itself. Whoever
 * changed it (a sleep of the machine, a hypervisor below) may have changed more: the waiting bytes
 * are not trusted, and the next bytes may not continue anything.
 */
static void backwards(struct vmpt_rtit_vcpu *vcpu, u32 end)
{
	vcpu->events |= VMPT_RTIT_EVENT_HARDWARE | VMPT_RTIT_EVENT_LOST;
	vcpu->lost += vcpu->used;
	vcpu->pos = end;
	vcpu->used = vcpu->unseen = 0;
	vcpu->rewrite.lost = true;
}

/* Rewrite the clocks in the part of the buffer not seen yet: one piece, or two across its end. */
static void rewrite(struct vmpt_rtit_vcpu *vcpu)
{
	u32 size = vcpu->config.bounce.size, at, n, i, tail;
	bool cycle_acc = vcpu->regs.ctl & VMPT_RTIT_CTL_CYCLE_ACC;
	u64 offset = vcpu->tsc_offset + vcpu->core_offset;
	u8 cut[2 * VMPT_RTIT_SIZE_MAX];

	if (!vcpu->config.rewrite_clock) {
		vcpu->unseen = 0;
		return;
	}
	for (;;) {
		at = (vcpu->pos + vcpu->used - vcpu->unseen) & (size - 1);
		n = vcpu->unseen < size - at ? vcpu->unseen : size - at;
		n = (u32)vmpt_rtit_clock_rewrite(&vcpu->rewrite, vcpu->config.bounce.bytes + at, n,
						 cycle_acc, offset);
		vcpu->unseen -= n;
		tail = size - at - n;
		if (!vcpu->unseen || tail >= vcpu->unseen)
			return;
		/* A packet's head at the end of the buffer, its rest at the beginning */
		at += n;
		n = vcpu->unseen < sizeof(cut) ? vcpu->unseen : (u32)sizeof(cut);
		for (i = 0; i < n; i++)
			cut[i] = *byte_at(vcpu, at + i);
		n = (u32)vmpt_rtit_clock_rewrite(&vcpu->rewrite, cut, n, cycle_acc, offset);
		for (i = 0; i < n; i++)
			*byte_at(vcpu, at + i) = cut[i];
		vcpu->unseen -= n;
		if (n <= tail)
			return;
	}
}

/* The processor is at @end, and all bytes before it are in memory. */
static void take(struct vmpt_rtit_vcpu *vcpu, u32 end)
{
	u32 size = vcpu->config.bounce.size, passed = (end - vcpu->pos) & (size - 1);

	/* Waiting since the last time, and there is no room for another mark. */
	if (vcpu->over && vcpu->end == end)
		return;
	if (mark_left(vcpu) < MARK_SIZE) {
		wrapped(vcpu, end, passed);
	} else if (passed < vcpu->used) {
		backwards(vcpu, end);
	} else {
		vcpu->unseen += passed - vcpu->used;
		vcpu->used = passed;
	}
	rewrite(vcpu);
	count_lost(vcpu, vcpu->rewrite.bytes);
	vcpu->rewrite.bytes = 0;
}

int vmpt_rtit_copy_out(struct vmpt_rtit_vcpu *vcpu, bool all)
{
	struct vmpt_rtit_position at = { .offset = vcpu->regs.offset };
	u64 mask = vcpu->regs.limit_mask, run = run_size(mask);
	u32 size = vcpu->config.bounce.size, n, piece;
	int err = 0;

	if (all && vcpu->unseen) {
		/* The head of a packet whose rest does not come */
		overwrite(vcpu, vcpu->pos + vcpu->used - vcpu->unseen, vcpu->unseen);
		count_lost(vcpu, vcpu->unseen);
		vcpu->unseen = 0;
	}
	n = vcpu->used - vcpu->unseen;
	/* Do not copy what the guest's buffer would not keep. */
	if (n > run && !to_port(&vcpu->regs)) {
		piece = n - (u32)run;
		at.offset = (at.offset & mask & ~(run - 1)) | ((at.offset + piece) & (run - 1));
		vcpu->pos = (vcpu->pos + piece) & (size - 1);
		vcpu->used -= piece;
		n -= piece;
	}
	while (n && !err) {
		piece = n < size - vcpu->pos ? n : size - vcpu->pos;
		at.done = 0;
		err = vmpt_rtit_put(vcpu, &at, vcpu->config.bounce.bytes + vcpu->pos, piece);
		vcpu->pos = (vcpu->pos + (u32)at.done) & (size - 1);
		vcpu->used -= (u32)at.done;
		n -= piece;
	}
	if (vcpu->unseen > vcpu->used)
		vcpu->unseen = vcpu->used;
	vmpt_rtit_put_done(vcpu, &at);
	return err;
}

/* ---- the processor's side ---- */

int vmpt_rtit_plan_apply(struct vmpt_rtit_vcpu *vcpu, const struct vmpt_rtit_regs *regs,
			 const struct vmpt_rtit_plan *plan)
{
	u64 base = plan->hpa, mask = regs->limit_mask, offset = regs->offset;
	int err;

	vmpt_rtit_output_end(vcpu);
	vcpu->path = plan->path;
	vcpu->direct_gpa = plan->gpa;
	vcpu->direct_size = plan->size;
	if (plan->path == VMPT_RTIT_PATH_PARKED)
		vcpu->events |= VMPT_RTIT_EVENT_PARKED | VMPT_RTIT_EVENT_LOST;
	if (plan->path == VMPT_RTIT_PATH_PARKED || plan->path == VMPT_RTIT_PATH_NONE)
		return 0;
	if (plan->path == VMPT_RTIT_PATH_BOUNCE) {
		base = vcpu->config.bounce.hpa;
		mask = vcpu->config.bounce.size - 1;
		offset = (vcpu->pos + vcpu->used) & mask;
		vcpu->rewrite.lost = false;
		set_mark(vcpu);
	}
	err = vmpt_rtit_hw_write(vcpu, VMPT_RTIT_MSR_BASE_ADDR, base);
	if (!err)
		err = vmpt_rtit_hw_write(vcpu, VMPT_RTIT_MSR_LIMIT_MASK, mask);
	if (!err)
		err = vmpt_rtit_hw_write(vcpu, VMPT_RTIT_MSR_OFFSET, offset);
	if (err) {
		/* Whatever the processor's MSRs hold, nothing may be written there. */
		vmpt_rtit_output_end(vcpu);
		vcpu->path = VMPT_RTIT_PATH_PARKED;
	}
	return err;
}

int vmpt_rtit_collect(struct vmpt_rtit_vcpu *vcpu)
{
	u64 offset;
	int err;

	if (vcpu->path != VMPT_RTIT_PATH_DIRECT && vcpu->path != VMPT_RTIT_PATH_BOUNCE)
		return 0;
	if (vmpt_rtit_hw_read(vcpu, VMPT_RTIT_MSR_OFFSET, &offset))
		return -VMPT_E_HARDWARE;
	if (vcpu->path == VMPT_RTIT_PATH_DIRECT) {
		vcpu->regs.offset = offset;
		return 0;
	}
	take(vcpu, (u32)offset & (vcpu->config.bounce.size - 1));
	err = vmpt_rtit_copy_out(vcpu, false);
	if (!vcpu->used)
		set_mark(vcpu);
	return err;
}
