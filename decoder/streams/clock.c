// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * TSC packets on one clock: the host's, or that of each stream's owner. A TSC of the source is
 * converted to host time by its owner's map, and from there to the TSC of the stream it goes to.
 */
#include <stdlib.h>

#include "decoder/clock/clock.h"
#include "decoder/streams/internal.h"

#define TSC_MASK ((1ULL << 56) - 1)
/* Items of a PSB+ that are searched for its TSC. */
#define PSB_ITEMS 64

struct extract_clock {
	const struct vmpt_clocks *clocks;
	bool guest; /* streams are on their owner's clock */
	struct vmpt_clock clock;
	struct vmpt_time *times; /* of the batch's items */
	size_t count, room;
	const struct vmpt_item *items; /* of the batch */
	size_t at;		       /* the item */
	struct vmpt_time now;	       /* host time of the item */
	bool known;		       /* .host is the host time of the TSC that was read last */
	u64 host;
};

int vmpt_extract_clock_open(struct extract *x)
{
	const struct vmpt_extract_options *o = x->options;
	struct vmpt_clock_options options;
	struct extract_clock *c;

	if (o->clock == VMPT_EXTRACT_CLOCK_AS_IS)
		return 0;
	if (!o->clocks || o->clock > VMPT_EXTRACT_CLOCK_GUEST ||
	    vmpt_clocks_stream(o->clocks, o->clock_stream) != x->stream)
		return -VMPT_E_INVAL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -VMPT_E_NOMEM;
	c->clocks = o->clocks;
	c->guest = o->clock == VMPT_EXTRACT_CLOCK_GUEST;
	c->now.tsc = VMPT_TIME_NONE;
	vmpt_clocks_clock_options(o->clocks, o->clock_stream, &options);
	vmpt_clock_init(&c->clock, &options);
	x->clock = c;
	return 0;
}

void vmpt_extract_clock_close(struct extract *x)
{
	if (!x->clock)
		return;
	free(x->clock->times);
	free(x->clock);
	x->clock = NULL;
}

int vmpt_extract_clock_batch(struct extract *x, const struct vmpt_batch *batch)
{
	struct extract_clock *c = x->clock;

	if (!c)
		return 0;
	if (batch->count > c->room) {
		free(c->times);
		c->room = 0;
		c->times = calloc(batch->count, sizeof(*c->times));
		if (!c->times)
			return -VMPT_E_NOMEM;
		c->room = batch->count;
	}
	c->count = batch->count;
	c->items = batch->items;
	vmpt_clock_batch(&c->clock, x->stream, batch, c->times, NULL);
	return 0;
}

void vmpt_extract_clock_item(struct extract *x, size_t i)
{
	struct extract_clock *c = x->clock;

	if (c && i < c->count) {
		c->now = c->times[i];
		c->at = i;
	}
}

/*
 * Start time of the slice that begins with the item. A PSB+ begins with the time of the packet
 * before it, possibly long ago; its TSC has the new one.
 */
static const struct vmpt_time *slice_time(const struct extract_clock *c)
{
	size_t i = c->at, end = c->count - i < PSB_ITEMS ? c->count : i + PSB_ITEMS;

	if (!c->count || c->items[i].kind != VMPT_PT_PSB)
		return &c->now;
	for (i++; i < end && c->items[i].kind != VMPT_PT_PSBEND; i++)
		if (c->times[i].early != VMPT_TIME_OPEN && c->times[i].late != VMPT_TIME_OPEN)
			return &c->times[i];
	return &c->now;
}

bool vmpt_extract_clock_who(const struct extract *x, const struct vmpt_owner *owner, u64 *who)
{
	const struct vmpt_extract_options *o = x->options;
	const struct vmpt_time *time;

	*who = 0;
	if (!x->clock || !o->who || owner->kind != VMPT_OWNER_VM)
		return true;
	time = slice_time(x->clock);
	if (time->tsc == VMPT_TIME_NONE)
		return false;
	*who = o->who(o->who_opaque, owner->vmcs, time);
	return true;
}

/* The host time of a TSC packet of the current slice; false: not known. */
static bool read_tsc(struct extract_clock *c, const struct vmpt_owner *owner, u64 tsc, u64 *host)
{
	static const struct vmpt_epoch same = { .map.multiplier = VMPT_TSC_UNSCALED };
	u64 near = c->now.tsc == VMPT_TIME_NONE ? c->clock.options.near_tsc : c->now.tsc;
	const struct vmpt_epoch *e = NULL;

	if (owner->kind == VMPT_OWNER_HOST)
		e = &same;
	else if (owner->kind == VMPT_OWNER_VM)
		e = vmpt_clocks_at(c->clocks, owner->vmcs, c->now.tsc);
	if (!e)
		return false;
	*host = vmpt_tsc_to_host(&e->map, tsc, near);
	return true;
}

void vmpt_extract_clock_read(struct extract *x, const struct vmpt_item *item)
{
	struct extract_clock *c = x->clock;

	if (c && item->kind == VMPT_PT_TSC)
		c->known = read_tsc(c, &x->done.slice.owner, item->payload, &c->host);
}

/* @out's TSC for host time @host; false: not known. */
static bool tsc_for(const struct extract_clock *c, const struct out_stream *out, u64 host, u64 *tsc)
{
	const struct vmpt_epoch *e;

	if (!c->guest || out->owner.kind == VMPT_OWNER_HOST) {
		*tsc = host & TSC_MASK;
		return true;
	}
	if (out->owner.kind != VMPT_OWNER_VM)
		return false;
	e = vmpt_clocks_at(c->clocks, out->owner.vmcs, host);
	if (!e)
		return false;
	*tsc = vmpt_tsc_to_guest(&e->map, host) & TSC_MASK;
	return true;
}

static void note_tsc(struct out_stream *out, u64 tsc)
{
	if (!out->has_tsc)
		out->first_tsc = tsc;
	out->has_tsc = true;
}

bool vmpt_extract_clock_other(struct extract *x, struct out_stream *out,
			      const struct vmpt_item *item, u8 wire[VMPT_PT_SIZE_MAX])
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_TSC };
	const struct extract_clock *c = x->clock;

	if (!c)
		return false;
	if (item->kind == VMPT_PT_TMA) {
		pkt.kind = VMPT_PT_TMA;
		pkt.tma.ctc = item->payload & 0xffff;
		pkt.tma.fast_counter = item->payload >> 24 & 0x1ff;
	} else {
		out->lacks_tsc = !c->known || !tsc_for(c, out, c->host, &pkt.tsc.tsc);
	}
	if (out->lacks_tsc || vmpt_pt_encode(&pkt, wire, VMPT_PT_SIZE_MAX, 0) != item->size)
		return false;
	if (item->kind == VMPT_PT_TSC)
		note_tsc(out, pkt.tsc.tsc);
	return true;
}

/* With GUEST the owner's stream has its own clock already. */
int vmpt_extract_clock_own(struct extract *x, u64 at, const struct vmpt_item *item)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_TSC };
	const struct extract_clock *c = x->clock;
	struct out_stream *out = x->out;
	u64 tsc = item->payload;

	if (!out)
		return 0;
	if (c && !c->guest && item->kind == VMPT_PT_TSC)
		out->lacks_tsc = !c->known || !tsc_for(c, out, c->host, &tsc);
	else if (item->kind == VMPT_PT_TSC)
		out->lacks_tsc = false;
	if (out->lacks_tsc) {
		x->done.tscs_unmapped += item->kind == VMPT_PT_TSC;
		return vmpt_extract_flush(x);
	}
	if (item->kind == VMPT_PT_TSC)
		note_tsc(out, tsc);
	if (item->kind == VMPT_PT_TMA || tsc == item->payload)
		return vmpt_extract_copy(x, at, item->size);
	x->done.tscs_rewritten++;
	pkt.tsc.tsc = tsc;
	return vmpt_extract_put(x, out, &pkt);
}

int vmpt_extract_clock_head(struct extract *x, struct out_stream *out)
{
	struct vmpt_pt_packet pkt = { .kind = VMPT_PT_TSC };
	const struct extract_clock *c = x->clock;

	if (!c || c->now.tsc == VMPT_TIME_NONE || !tsc_for(c, out, c->now.tsc, &pkt.tsc.tsc))
		return 0;
	note_tsc(out, pkt.tsc.tsc);
	return vmpt_extract_put(x, out, &pkt);
}
