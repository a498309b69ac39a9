// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owners and errata of an RTIT stream: who runs says the side record, and takes effect with a
 * FUP.PGE; which errata's workarounds apply follows from the packets that are tokens.
 */
#include "decoder/rtit.h"
#include "decoder/vm-tracker.h"

bool vmpt_rtit_by_time(const struct vmpt_options *options)
{
	size_t i;

	for (i = 0; i < options->run_count; i++)
		if (options->runs[i].by_tsc)
			return true;
	return false;
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
	t->fresh = true;
	t->mark = ~0ULL;
	if (t->run_count && !t->runs[0].by_tsc && !t->runs[0].at)
		t->owner = t->runs[t->run++].owner;
}

void vmpt_rtit_tracker_piece(struct vmpt_rtit_tracker *t, struct vmpt_rtit_piece *piece)
{
	(void)piece;
	t->cycles = 0;
	t->fed = 0;
}

/* The owner of @now on; true if it is another one. */
static bool become(struct vmpt_rtit_tracker *t, const struct vmpt_owner *now)
{
	bool same = vmpt_owner_same(&t->owner, now) && t->owner.sure == now->sure;

	t->owner = *now;
	return !same;
}

static bool on_loss(struct vmpt_rtit_tracker *t)
{
	t->packets = TRACKER_UNSURE;
	return false;
}

static bool on_enable(struct vmpt_rtit_tracker *t, u64 at)
{
	bool changed = false;

	t->packets = TRACKER_ENABLED;
	while (t->run < t->run_count && !t->runs[t->run].by_tsc && t->runs[t->run].at <= at)
		changed = become(t, &t->runs[t->run++].owner) || changed;
	return changed;
}

bool vmpt_rtit_tracker_take(struct vmpt_rtit_tracker *t, struct vmpt_rtit_piece *piece,
			    const struct vmpt_rtit_token *token)
{
	(void)piece;
	t->errata[6] += token->cycles - t->cycles;
	t->cycles = token->cycles;
	switch (token->kind) {
	case VMPT_RTIT_TOKEN_LOSS:
		return on_loss(t);
	case VMPT_RTIT_PGE:
		return on_enable(t, token->at);
	default:
		return false;
	}
}

void vmpt_rtit_tracker_end(struct vmpt_rtit_tracker *t, struct vmpt_rtit_piece *piece)
{
	t->errata[6] += piece->cycles - t->cycles;
	t->cycles = piece->cycles;
}
