// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owners and errata of an RTIT stream: owners come from the side record, and change where the guest
 * before has made its last packet; the errata whose workarounds apply follow from the tokens.
 */
#include "decoder/rtit/rtit.h"

/*
 * Minimum of RTIT_PKT_CNT.Pkt_Mask: a PSB comes when the bytes since the last reach it (Table 11).
 */
#define PKT_CNT_LIMIT 2048ULL

bool vmpt_rtit_by_time(const struct vmpt_options *options)
{
	size_t i;

	for (i = 0; options->runs && i < options->run_count; i++)
		if (options->runs[i].by_tsc)
			return true;
	return false;
}

static void report_start(struct vmpt_rtit_tracker *t, struct vmpt_run_report *report)
{
	struct vmpt_run_effect *effects = report->effects;
	size_t i;

	*report = (struct vmpt_run_report){ .effects = effects, .never = t->run_count };
	for (i = 0; effects && i < t->run_count; i++)
		effects[i] = (struct vmpt_run_effect){ .offset = ~0ULL };
	t->report = report;
}

/* The next run has begun, with the packet at @offset. */
static void take_run(struct vmpt_rtit_tracker *t, u64 offset, enum vmpt_run_fate fate)
{
	struct vmpt_run_effect *effects = t->report ? t->report->effects : NULL;

	if (effects) {
		if (t->run && effects[t->run - 1].offset == offset)
			effects[t->run - 1].fate = VMPT_RUN_COVERED;
		effects[t->run] = (struct vmpt_run_effect){ offset, (u8)fate };
	}
	if (t->report)
		t->report->never--;
	t->run++;
}

static void set_owner(struct vmpt_rtit_tracker *t)
{
	t->owner = (struct vmpt_owner){ .kind = VMPT_OWNER_HOST, .sure = VMPT_ASSUMED };
	if (t->run)
		t->owner = t->runs[t->run - 1].owner;
	if (t->assumed && t->owner.sure < VMPT_ASSUMED)
		t->owner.sure = VMPT_ASSUMED;
}

void vmpt_rtit_tracker_init(struct vmpt_rtit_tracker *t, const u8 *data, bool cycle_acc,
			    const struct vmpt_options *options)
{
	memset(t, 0, sizeof(*t));
	t->data = data;
	t->cycle_acc = cycle_acc;
	t->runs = options->runs;
	t->run_count = options->runs ? options->run_count : 0;
	t->by_time = vmpt_rtit_by_time(options);
	if (t->by_time)
		vmpt_rtit_clock_init(&t->clock, 0);
	t->fresh = true;
	t->mark = t->begun = ~0ULL;
	if (options->run_report)
		report_start(t, options->run_report);
	if (t->run_count && !t->runs[0].by_tsc && !t->runs[0].at)
		take_run(t, 0, VMPT_RUN_TAKEN);
	set_owner(t);
}

/* ---- owners ---- */

/* Feed all items of the piece before @end to the clock, with their marks. */
static void feed(struct vmpt_rtit_tracker *t, const struct vmpt_rtit_piece *piece, size_t end)
{
	const struct vmpt_item *item;
	struct vmpt_packet pkt = { 0 };

	if (!t->by_time)
		return;
	for (; t->fed < end; t->fed++) {
		item = &piece->items[t->fed];
		if (item->kind == VMPT_ITEM_RTIT_RUN)
			continue;
		pkt.offset = piece->start + item->offset;
		pkt.payload = item->payload;
		pkt.size = item->size;
		pkt.kind = item->kind;
		pkt.aux = item->aux;
		vmpt_rtit_clock_feed(&t->clock, &pkt);
	}
}

/*
 * STS has 40 bits: the first known time is extended to the value nearest to the next run. Returns a
 * time of the clock in 64 bits.
 */
static u64 whole_time(struct vmpt_rtit_tracker *t, u64 time)
{
	u64 at;

	if (t->aligned)
		return time + t->clock_base;
	at = t->runs[t->run].at;
	/* Times are never negative. */
	t->clock_base =
		at + (1ULL << 39) < time ? 0 : (at - time + (1ULL << 39)) & ~vmpt_mask64(40);
	t->aligned = true;
	time += t->clock_base;
	if (t->report) {
		t->report->aligned = true;
		t->report->tsc = time;
		t->report->apart = time > at ? time - at : at - time;
	}
	return time;
}

/* The runs up to offset @at and @time have begun. */
static void take_runs(struct vmpt_rtit_tracker *t, const struct vmpt_rtit_token *token, u64 at,
		      u64 time)
{
	bool lost = token->kind == VMPT_RTIT_TOKEN_LOSS;

	while (t->run < t->run_count && t->runs[t->run].at <= (t->runs[t->run].by_tsc ? time : at))
		take_run(t, token->at + (lost ? token->size : 0),
			 lost ? VMPT_RUN_LOST : VMPT_RUN_TAKEN);
}

static bool reached(const struct vmpt_rtit_tracker *t, u64 at, u64 time)
{
	return t->run < t->run_count && t->runs[t->run].at <= (t->runs[t->run].by_tsc ? time : at);
}

/*
 * The owner of the token, by who can have sent its packet. In VMX root operation ContextEn is 0:
 * with packets disabled the guest before has sent its last one, and a FUP.PGE always belongs to the
 * new owner. Where PGEs and PGDs may be lost, the owner is an assumption up to the next one.
 */
static void by_offset(struct vmpt_rtit_tracker *t, const struct vmpt_rtit_token *token)
{
	if (token->kind == VMPT_RTIT_PGE || t->packets == VMPT_RTIT_DISABLED) {
		t->assumed &= token->kind != VMPT_RTIT_PGE && !reached(t, token->at, 0);
		take_runs(t, token, token->at, 0);
	} else if (t->packets == VMPT_RTIT_UNSURE) {
		t->assumed |= reached(t, token->at, 0);
	}
}

/* Whether the next run may have begun before the token, by these bounds only. */
static bool may_be_next(struct vmpt_rtit_tracker *t, const struct vmpt_rtit_token *token,
			const struct vmpt_rtit_times *times)
{
	if (t->run == t->run_count)
		return false;
	return times->before == ~0ULL || reached(t, token->at, whole_time(t, times->before));
}

/* A FUP.PGE belongs to the last run that began before it: the record's time is before the entry. */
static void enable_by_time(struct vmpt_rtit_tracker *t, const struct vmpt_rtit_token *token,
			   const struct vmpt_rtit_times *times)
{
	bool sure = times->latest != ~0ULL;

	if (sure || times->known)
		take_runs(t, token, token->at, whole_time(t, sure ? times->latest : times->about));
	t->assumed = !sure && may_be_next(t, token, times);
}

/*
 * Any other token, with PacketEn 0 or not known. An enable between two guests belongs to the next
 * one. Packets that a guest sends outside its filter may belong to both if they came between two
 * known times. MTC and STS have times themselves.
 */
static void other_by_time(struct vmpt_rtit_tracker *t, const struct vmpt_rtit_token *token,
			  const struct vmpt_rtit_times *times)
{
	bool off = t->packets == VMPT_RTIT_DISABLED, sure = times->latest != ~0ULL;
	u64 now = times->known ? whole_time(t, times->earliest) : 0;

	take_runs(t, token, token->at, now);
	if (off && t->run && t->runs[t->run - 1].at <= now)
		t->assumed = false;
	if (!may_be_next(t, token, times))
		return;
	if (off && (token->kind == VMPT_RTIT_MTC || token->kind == VMPT_RTIT_STS))
		return;
	if (!off || !sure || token->kind != VMPT_RTIT_PSB || !t->enable)
		t->assumed = true;
	if (off && sure)
		take_runs(t, token, token->at, whole_time(t, times->latest));
}

static void by_time(struct vmpt_rtit_tracker *t, const struct vmpt_rtit_piece *piece,
		    const struct vmpt_rtit_token *token)
{
	struct vmpt_rtit_times times;

	if (token->kind != VMPT_RTIT_PGE && t->packets == VMPT_RTIT_ENABLED)
		return;
	if (t->run == t->run_count) {
		t->assumed &= token->kind != VMPT_RTIT_PGE;
		return;
	}
	vmpt_rtit_times(t, piece, token, &times);
	if (token->kind == VMPT_RTIT_PGE)
		enable_by_time(t, token, &times);
	else
		other_by_time(t, token, &times);
}

/* The owner from the token on. True if the owner or its certainty changes. */
static bool decide(struct vmpt_rtit_tracker *t, const struct vmpt_rtit_piece *piece,
		   const struct vmpt_rtit_token *token)
{
	struct vmpt_owner was = t->owner;

	if (!t->run_count)
		return false;
	if (t->by_time)
		by_time(t, piece, token);
	else
		by_offset(t, token);
	set_owner(t);
	return !vmpt_owner_same(&t->owner, &was) || t->owner.sure != was.sure;
}

/* ---- errata ---- */

static void mark_item(struct vmpt_rtit_piece *piece, size_t item, u8 aux)
{
	if (piece->items)
		piece->items[item].aux |= aux;
}

static void apply(struct vmpt_rtit_tracker *t, struct vmpt_rtit_piece *piece, size_t item,
		  unsigned int erratum, u8 flags)
{
	t->errata[erratum]++;
	mark_item(piece, item, (u8)(VMPT_RTIT_AUX_BY(erratum) | flags));
}

/* E5's TIP, if it is in this piece: shortly after item @i. */
static void mark_tip(struct vmpt_rtit_tracker *t, struct vmpt_rtit_piece *piece, size_t i)
{
	if (!piece->items || t->mark >= piece->end)
		return;
	while (i < piece->item_count && piece->items[i].offset < t->mark - piece->start)
		i++;
	if (i < piece->item_count)
		mark_item(piece, i, VMPT_RTIT_AUX_BY(5) | VMPT_RTIT_AUX_IGNORE);
	t->mark = ~0ULL;
}

/*
 * E5: a TIP directly after a FUP.BuffOvf, with the same LIP. PSBs may be between: the overflow's
 * own bytes can have caused one (4.2.5).
 */
static void on_overflow(struct vmpt_rtit_tracker *t, struct vmpt_rtit_piece *piece,
			const struct vmpt_rtit_token *token)
{
	struct vmpt_rtit_last_lip last = { 0 };
	struct vmpt_rtit_packet pkt;
	u64 at = token->at, lip, target, psb;

	if (t->stopped)
		apply(t, piece, token->item, 4, 0);
	t->stopped = false;
	/* PGEs and PGDs may have been lost. */
	t->packets = VMPT_RTIT_UNSURE;
	t->overflowed = true;
	if (vmpt_rtit_decode(&pkt, t->data + at, piece->region_end - at, t->cycle_acc) ||
	    !vmpt_rtit_lip_expand(&last, &pkt, &lip))
		return;
	do {
		at += pkt.size;
		if (vmpt_rtit_packet_at(&pkt, t->data, at, piece->region_end, t->cycle_acc, &psb))
			return;
	} while (pkt.kind == VMPT_RTIT_PSB);
	if (pkt.kind != VMPT_RTIT_TIP || !vmpt_rtit_lip_expand(&last, &pkt, &target) ||
	    target != lip)
		return;
	t->errata[5]++;
	t->mark = at;
	mark_tip(t, piece, token->item);
}

/*
 * PacketEn was 0 when a PSB came with an enable. If this follows only from the bytes before it, a
 * packet that needs PacketEn refutes it. If a FUP.BuffOvf comes before it the enable's FUP.PGE may
 * be lost.
 */
static void begin_disabled(struct vmpt_rtit_tracker *t, const struct vmpt_rtit_token *token)
{
	if (t->overflowed && !t->stopped)
		return;
	if (!t->stopped && t->packets != VMPT_RTIT_DISABLED)
		t->begun = token->at + VMPT_RTIT_PSB_SIZE;
	/* A stream cut at a PSB begins so, too. */
	t->start = t->packets == VMPT_RTIT_UNSURE && !t->psb_known;
	t->packets = VMPT_RTIT_DISABLED;
	t->overflowed = false;
}

/* Whether tokens have been contiguous since that PSB. */
static void follow_begun(struct vmpt_rtit_tracker *t, const struct vmpt_rtit_piece *piece,
			 const struct vmpt_rtit_token *token)
{
	struct vmpt_rtit_packet pkt;

	if (t->begun == ~0ULL)
		return;
	if (token->at != t->begun)
		t->packets = VMPT_RTIT_ENABLED;
	if (token->at != t->begun || token->kind == VMPT_RTIT_TOKEN_LOSS ||
	    token->kind == VMPT_RTIT_PGE || token->kind == VMPT_RTIT_PGD ||
	    vmpt_rtit_decode(&pkt, t->data + token->at, piece->region_end - token->at,
			     t->cycle_acc))
		t->begun = ~0ULL;
	else
		t->begun += pkt.size;
}

/*
 * A PSB caused by the bytes since the last one comes when they reach 2 KiB << Pkt_Mask, or one
 * packet later by E3. Any other PSB is considered the start of a new enable.
 */
static void on_psb(struct vmpt_rtit_tracker *t, struct vmpt_rtit_piece *piece,
		   const struct vmpt_rtit_token *token)
{
	u64 bytes = token->at - t->psb, limit = PKT_CNT_LIMIT;
	bool periodic;

	while (limit < PKT_CNT_LIMIT << 3 && bytes >= limit << 1)
		limit <<= 1;
	periodic = t->psb_known && !t->stopped && bytes >= limit &&
		   bytes < limit + 2 * VMPT_RTIT_SIZE_MAX;
	if (periodic && token->size && bytes - token->size >= limit)
		apply(t, piece, token->item, 3, 0);
	t->enable = false;
	if (t->stopped || (t->psb_known && !periodic) || (t->fresh && !token->at)) {
		t->want_mtc = t->enable = true;
		begin_disabled(t, token);
	}
	t->stopped = false;
	t->psb = token->at;
	t->psb_known = true;
}

static void on_disable(struct vmpt_rtit_tracker *t, struct vmpt_rtit_piece *piece,
		       const struct vmpt_rtit_token *token)
{
	t->ignored = t->packets == VMPT_RTIT_DISABLED && !t->start;
	if (t->ignored)
		apply(t, piece, token->item, 2, VMPT_RTIT_AUX_IGNORE);
	t->packets = VMPT_RTIT_DISABLED;
	t->overflowed = t->start = false;
}

static void on_mtc(struct vmpt_rtit_tracker *t, struct vmpt_rtit_piece *piece,
		   const struct vmpt_rtit_token *token)
{
	if (t->want_mtc)
		apply(t, piece, token->item, 7, VMPT_RTIT_AUX_IGNORE);
	t->want_mtc = false;
}

/* Nothing before the loss holds after it. Runs whose PGE may be lost are assumed to have begun. */
static bool on_loss(struct vmpt_rtit_tracker *t, const struct vmpt_rtit_token *token)
{
	u64 end = token->at + token->size;
	size_t run = t->run;

	if (end)
		take_runs(t, token, end - 1, 0);
	t->assumed |= t->run != run;
	set_owner(t);
	t->packets = VMPT_RTIT_UNSURE;
	t->psb_known = t->fresh = t->stopped = t->want_mtc = false;
	t->overflowed = t->start = false;
	return t->run != run;
}

/* ---- tokens ---- */

void vmpt_rtit_tracker_piece(struct vmpt_rtit_tracker *t, struct vmpt_rtit_piece *piece)
{
	t->cycles = 0;
	t->fed = 0;
	if (t->mark != ~0ULL)
		mark_tip(t, piece, 0);
}

bool vmpt_rtit_tracker_take(struct vmpt_rtit_tracker *t, struct vmpt_rtit_piece *piece,
			    const struct vmpt_rtit_token *token)
{
	bool changed;

	t->errata[6] += token->cycles - t->cycles;
	t->cycles = token->cycles;
	t->ignored = false;
	feed(t, piece, token->item);
	follow_begun(t, piece, token);
	if (token->kind == VMPT_RTIT_TOKEN_LOSS)
		return on_loss(t, token);
	if (token->kind == VMPT_RTIT_PSB)
		on_psb(t, piece, token);
	changed = decide(t, piece, token);
	switch (token->kind) {
	case VMPT_RTIT_PGE:
		t->packets = VMPT_RTIT_ENABLED;
		t->overflowed = t->start = false;
		break;
	case VMPT_RTIT_PGD:
		on_disable(t, piece, token);
		break;
	case VMPT_RTIT_BUFF_OVF:
		on_overflow(t, piece, token);
		break;
	case VMPT_RTIT_TRACESTOP:
		t->stopped = true;
		break;
	case VMPT_RTIT_MTC:
		on_mtc(t, piece, token);
		break;
	}
	return changed;
}

void vmpt_rtit_tracker_end(struct vmpt_rtit_tracker *t, const struct vmpt_rtit_piece *piece)
{
	t->errata[6] += piece->cycles - t->cycles;
	t->cycles = piece->cycles;
	feed(t, piece, piece->item_count);
}
