// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * From marks to slices: maximal runs of bytes of one owner. A stretch of doubt
 * (after an OVF or a TIP.PGD()) is held back until something proves the owner: if it
 * is the same one it gets the stretch, otherwise nobody does. Memory is constant: one
 * slice and one doubt.
 */
#include <stdlib.h>

#include "decoder/pt/slicer.h"

struct pt_splitter {
	struct vmpt_splitter base;
	struct vmpt_source *source;
	struct vmpt_piece piece;
	size_t token;
	bool done;
	struct vmpt_slicer slicer;
	struct vmpt_tracker tracker;
};

/* ---- from marks to slices ---- */

void vmpt_slicer_init(struct vmpt_slicer *s, const struct vmpt_stream *stream,
		      const struct vmpt_owner *owner)
{
	memset(s, 0, sizeof(*s));
	s->stream = stream;
	s->slice.owner = *owner;
	s->slice.begin = VMPT_BEGIN_START;
}

static void emit(struct vmpt_slicer *s, const struct vmpt_slice *slice, u64 end)
{
	struct vmpt_slice *r;

	/* An empty stretch has no owner; an empty loss is a gap to be reported. */
	if (end == slice->offset && slice->begin != VMPT_BEGIN_LOSS)
		return;
	/* Both users stop at the first that is ready: a token finishes at most five. */
	r = &s->ready[(s->ready_first + s->ready_count++) % VMPT_SLICER_READY];
	*r = *slice;
	r->size = end - slice->offset;
}

static void begin(struct vmpt_slice *slice, const struct vmpt_mark *m, enum vmpt_begin cause)
{
	memset(slice, 0, sizeof(*slice));
	slice->offset = m->offset;
	slice->owner = m->owner;
	slice->begin = (u8)cause;
	slice->by_group = m->by_group;
}

/* The stretch in doubt belongs to the slice after all. */
static void give_doubt(struct vmpt_slice *slice, const struct vmpt_slice *doubt)
{
	u32 i;

	for (i = 0; i < doubt->cr3_count && i < VMPT_SLICE_CR3S; i++)
		slice_add_cr3(slice, doubt->cr3[i]);
	if (doubt->cr3_count > VMPT_SLICE_CR3S)
		slice->cr3_count = VMPT_SLICE_CR3S + 1;
	if (doubt->has_tsc) {
		slice_add_tsc(slice, doubt->first_tsc);
		slice_add_tsc(slice, doubt->last_tsc);
	}
	slice->overflows += doubt->overflows;
	slice->failed_entries += doubt->failed_entries;
	slice->doubts++;
}

/* Whose bytes in doubt are that nothing proved: nobody's; if NR is given, a VM's. */
static struct vmpt_owner owner_in_doubt(const struct vmpt_slicer *s)
{
	if (s->given)
		return (struct vmpt_owner){ .kind = VMPT_OWNER_VM_ANY, .sure = VMPT_KNOWN };
	return (struct vmpt_owner){ .sure = VMPT_UNKNOWN };
}

/* The doubt ends at @at without proof. */
static void drop_doubt(struct vmpt_slicer *s, u64 at)
{
	emit(s, &s->slice, s->doubt.offset);
	s->doubt.owner = owner_in_doubt(s);
	emit(s, &s->doubt, at);
	s->doubting = false;
}

static void close_slice(struct vmpt_slicer *s, u64 at)
{
	if (s->doubting)
		drop_doubt(s, at);
	else
		emit(s, &s->slice, at);
}

static void on_owner(struct vmpt_slicer *s, const struct vmpt_mark *m)
{
	bool same = vmpt_owner_same(&m->owner, &s->slice.owner);

	if (m->owner.sure == VMPT_UNCERTAIN) {
		s->doubting = true;
		begin(&s->doubt, m, VMPT_BEGIN_DOUBT);
		return;
	}
	if (s->doubting && s->given && m->owner.kind == VMPT_OWNER_VM_ANY) {
		/* The same owner as that of the doubt. */
		emit(s, &s->slice, s->doubt.offset);
		s->slice = s->doubt;
		s->slice.owner = m->owner;
		s->doubting = false;
		return;
	}
	if (!same || m->cause == VMPT_BEGIN_START) {
		close_slice(s, m->offset);
		begin(&s->slice, m, m->cause);
		return;
	}
	if (s->doubting)
		give_doubt(&s->slice, &s->doubt);
	s->doubting = false;
	if (m->owner.sure > s->slice.owner.sure)
		s->slice.owner.sure = m->owner.sure;
	s->slice.owner.concealed |= m->owner.concealed;
}

static void on_loss(struct vmpt_slicer *s, const struct vmpt_mark *m)
{
	struct vmpt_slice loss;

	close_slice(s, m->offset);
	begin(&loss, m, VMPT_BEGIN_LOSS);
	loss.owner.sure = VMPT_UNKNOWN;
	loss.loss = m->cause;
	emit(s, &loss, m->offset + m->value);
	/* The next mark begins the next slice; this one is empty. */
	begin(&s->slice, m, VMPT_BEGIN_START);
	s->slice.offset = m->offset + m->value;
}

void vmpt_slicer_take(struct vmpt_slicer *s, const struct vmpt_mark *m, bool given)
{
	struct vmpt_slice *here = s->doubting ? &s->doubt : &s->slice;

	s->given = given;
	switch (m->kind) {
	case VMPT_MARK_OWNER:
		on_owner(s, m);
		break;
	case VMPT_MARK_LOSS:
		on_loss(s, m);
		break;
	case VMPT_MARK_TSC:
		slice_add_tsc(here, m->value);
		break;
	case VMPT_MARK_CR3:
		slice_add_cr3(here, m->value);
		break;
	case VMPT_MARK_OVERFLOW:
		here->overflows++;
		break;
	case VMPT_MARK_FAILED_ENTRY:
		here->failed_entries++;
		break;
	}
}

/* Bytes that are only padding prove no owner and are no loss. */
static bool all_zero(const u8 *p, u64 n)
{
	while (n && !*p)
		p++, n--;
	return !n;
}

void vmpt_slicer_finish(struct vmpt_slicer *s, bool given)
{
	u64 end = s->stream->size;

	s->given = given;
	if (s->doubting && all_zero(s->stream->data + s->doubt.offset, end - s->doubt.offset))
		s->doubting = false;
	close_slice(s, end);
}

bool vmpt_slicer_next(struct vmpt_slicer *s, struct vmpt_slice *slice)
{
	if (!s->ready_count)
		return false;
	*slice = s->ready[s->ready_first];
	s->ready_first = (s->ready_first + 1) % VMPT_SLICER_READY;
	s->ready_count--;
	return true;
}

/* ---- the splitter ---- */

static int open_splitter(struct vmpt_splitter **split, const struct vmpt_stream *stream,
			 const struct vmpt_options *options)
{
	struct pt_splitter *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -VMPT_E_NOMEM;
	err = vmpt_source_open(&s->source, stream, options, false);
	if (err) {
		free(s);
		return err;
	}
	vmpt_tracker_init(&s->tracker, stream->data, options, false);
	vmpt_slicer_init(&s->slicer, stream, &s->tracker.owner);
	*split = &s->base;
	return 0;
}

static void close_splitter(struct vmpt_splitter *split)
{
	struct pt_splitter *s = (struct pt_splitter *)split;

	vmpt_source_close(s->source);
	free(s);
}

static void take_tokens(struct pt_splitter *s)
{
	const struct vmpt_slice *here;
	unsigned int i;

	while (!s->slicer.ready_count && vmpt_tracker_take(&s->tracker, &s->piece, &s->token)) {
		for (i = 0; i < s->tracker.mark_count; i++)
			vmpt_slicer_take(&s->slicer, &s->tracker.marks[i], s->tracker.given);
		/* Until the next mark, CR3s are this slice's. */
		here = s->slicer.doubting ? &s->slicer.doubt : &s->slicer.slice;
		s->tracker.no_cr3s = here->cr3_count > VMPT_SLICE_CR3S;
	}
}

static int next_slice(struct vmpt_splitter *split, struct vmpt_slice *slice)
{
	struct pt_splitter *s = (struct pt_splitter *)split;
	int ret;

	while (!vmpt_slicer_next(&s->slicer, slice)) {
		if (s->done)
			return 0;
		take_tokens(s);
		if (s->slicer.ready_count)
			continue;
		ret = vmpt_source_next(s->source, &s->piece);
		if (ret < 0)
			return ret;
		s->token = 0;
		if (!ret) {
			s->done = true;
			vmpt_slicer_finish(&s->slicer, s->tracker.given);
		}
	}
	return 1;
}

const struct vmpt_splitter_ops vmpt_pt_splitter_ops = {
	.open = open_splitter,
	.next = next_slice,
	.close = close_splitter,
};
