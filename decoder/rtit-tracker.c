// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owners and errata of an RTIT stream: who runs says the side record, and takes effect with a
 * FUP.PGE; which errata's workarounds apply follows from the packets that are tokens.
 */
#include "decoder/rtit.h"
#include "decoder/vm-tracker.h"

/* The least of RTIT_PKT_CNT.Pkt_Mask: a PSB when the bytes since the last reach it (Table 11). */
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
	t->owner = t->runs[t->run++].owner;
}

void vmpt_rtit_tracker_init(struct vmpt_rtit_tracker *t, const u8 *data, bool cycle_acc,
			    const struct vmpt_options *options)
{
	memset(t, 0, sizeof(*t));
	t->data = data;
	t->cycle_acc = cycle_acc;
	t->runs = options->runs;
	t->run_count = options->runs ? options->run_count : 0;
	t->owner = (struct vmpt_owner){ .kind = VMPT_OWNER_HOST, .sure = VMPT_ASSUMED };
	t->by_time = vmpt_rtit_by_time(options);
	if (t->by_time)
		vmpt_rtit_clock_init(&t->clock, 0);
	t->fresh = true;
	t->mark = ~0ULL;
	if (options->run_report)
		report_start(t, options->run_report);
	if (t->run_count && !t->runs[0].by_tsc && !t->runs[0].at)
		take_run(t, 0, VMPT_RUN_TAKEN);
}

/* ---- owners ---- */

/* All items of the piece before @end to the clock, marks and all. */
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

static void align(struct vmpt_rtit_tracker *t, u64 time)
{
	u64 at = t->runs[t->run].at;

	t->clock_base = (at - time + (1ULL << 39)) & ~vmpt_mask64(40);
	t->aligned = true;
	if (!t->report)
		return;
	time += t->clock_base;
	t->report->aligned = true;
	t->report->tsc = time;
	t->report->apart = time > at ? time - at : at - time;
}

/*
 * The hardware TSC of the PGE fed last, as late as it can be: the side record's time is one of
 * before the VM entry that sent it. STS has 40 bits, so the first is taken for the one that is
 * nearest to the next run. 0: not known.
 */
static u64 time_of_enable(struct vmpt_rtit_tracker *t)
{
	u64 time = t->clock.tsc + (t->clock.error == ~0ULL ? 0 : t->clock.error);

	if (!t->clock.known || t->run == t->run_count)
		return 0;
	if (!t->aligned)
		align(t, time);
	return time + t->clock_base;
}

/* The runs up to offset @at and @time have begun. True if the owner is another than before. */
static bool take_runs(struct vmpt_rtit_tracker *t, const struct vmpt_rtit_token *token, u64 at,
		      u64 time)
{
	bool lost = token->kind == VMPT_RTIT_TOKEN_LOSS;
	struct vmpt_owner was = t->owner;

	while (t->run < t->run_count && t->runs[t->run].at <= (t->runs[t->run].by_tsc ? time : at))
		take_run(t, token->at + (lost ? token->size : 0),
			 lost ? VMPT_RUN_LOST : VMPT_RUN_TAKEN);
	return !vmpt_owner_same(&t->owner, &was) || t->owner.sure != was.sure;
}

static bool on_enable(struct vmpt_rtit_tracker *t, const struct vmpt_rtit_piece *piece,
		      const struct vmpt_rtit_token *token)
{
	size_t behind = token->item + 1;
	u64 time = 0;

	t->packets = VMPT_RTIT_ENABLED;
	if (t->by_time) {
		/* Its cycle count is a part of it. */
		behind += behind < piece->item_count &&
			  piece->items[behind].kind == VMPT_ITEM_RTIT_CYC;
		feed(t, piece, behind);
		time = time_of_enable(t);
	}
	return take_runs(t, token, token->at, time);
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

/* E5's TIP, if it stands in this piece: not far behind item @i. */
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
 * E5: a TIP directly behind a FUP.BuffOvf, with the same LIP. PSBs may stand between: its own
 * bytes can have called for one (4.2.5).
 */
static void on_overflow(struct vmpt_rtit_tracker *t, struct vmpt_rtit_piece *piece,
			const struct vmpt_rtit_token *token)
{
	struct vmpt_rtit_last_lip last = { 0 };
	struct vmpt_rtit_packet pkt;
	u64 at = token->at, lip, target;

	if (t->stopped)
		apply(t, piece, token->item, 4, 0);
	t->stopped = false;
	/* PGEs and PGDs may have been lost. */
	t->packets = VMPT_RTIT_UNSURE;
	if (vmpt_rtit_decode(&pkt, t->data + at, piece->region_end - at, t->cycle_acc) ||
	    !vmpt_rtit_lip_expand(&last, &pkt, &lip))
		return;
	do {
		at += pkt.size;
		if (vmpt_rtit_decode(&pkt, t->data + at, piece->region_end - at, t->cycle_acc))
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
 * One that comes because of the bytes since the last one comes when they reach 2 KiB << Pkt_Mask,
 * one packet later by E3. Whatever else it is: what it begins is taken for a new enable.
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
	if (t->stopped || (t->psb_known && !periodic) || (t->fresh && !token->at))
		t->want_mtc = true;
	t->stopped = false;
	t->psb = token->at;
	t->psb_known = true;
}

static void on_disable(struct vmpt_rtit_tracker *t, struct vmpt_rtit_piece *piece,
		       const struct vmpt_rtit_token *token)
{
	t->ignored = t->packets == VMPT_RTIT_DISABLED;
	if (t->ignored)
		apply(t, piece, token->item, 2, VMPT_RTIT_AUX_IGNORE);
	t->packets = VMPT_RTIT_DISABLED;
}

static void on_mtc(struct vmpt_rtit_tracker *t, struct vmpt_rtit_piece *piece,
		   const struct vmpt_rtit_token *token)
{
	if (t->want_mtc)
		apply(t, piece, token->item, 7, VMPT_RTIT_AUX_IGNORE);
	t->want_mtc = false;
}

/* What came before says nothing of what comes. Runs whose PGE may be lost have begun, we say. */
static bool on_loss(struct vmpt_rtit_tracker *t, const struct vmpt_rtit_token *token)
{
	u64 end = token->at + token->size;
	bool changed = end && take_runs(t, token, end - 1, 0);

	if (changed && t->owner.sure < VMPT_ASSUMED)
		t->owner.sure = VMPT_ASSUMED;
	t->packets = VMPT_RTIT_UNSURE;
	t->psb_known = t->fresh = t->stopped = t->want_mtc = false;
	return changed;
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
	t->errata[6] += token->cycles - t->cycles;
	t->cycles = token->cycles;
	t->ignored = false;
	feed(t, piece, token->item);
	switch (token->kind) {
	case VMPT_RTIT_TOKEN_LOSS:
		return on_loss(t, token);
	case VMPT_RTIT_PGE:
		return on_enable(t, piece, token);
	case VMPT_RTIT_PGD:
		on_disable(t, piece, token);
		break;
	case VMPT_RTIT_BUFF_OVF:
		on_overflow(t, piece, token);
		break;
	case VMPT_RTIT_PSB:
		on_psb(t, piece, token);
		break;
	case VMPT_RTIT_TRACESTOP:
		t->stopped = true;
		break;
	case VMPT_RTIT_MTC:
		on_mtc(t, piece, token);
		break;
	}
	return false;
}

void vmpt_rtit_tracker_end(struct vmpt_rtit_tracker *t, const struct vmpt_rtit_piece *piece)
{
	t->errata[6] += piece->cycles - t->cycles;
	t->cycles = piece->cycles;
	feed(t, piece, piece->item_count);
}
