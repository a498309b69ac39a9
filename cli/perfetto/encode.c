// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The file of vmpt perfetto, by protobuf-c and trace.proto: one sequence of packets with a clock of
 * its own, whose timestamps are steps from the packet before, and names that are given once, with
 * the first event that uses them. Counters are a second one.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/perfetto/perfetto.h"
#include "trace.pb-c.h"
#include "util/array.h"

enum { SLICES = 1, COUNTERS };		 /* sequences */
enum { BOOTTIME = 6, STEPS = 64 };	 /* clocks */
enum { NEEDS_STATE = 2, FIRST = 1 | 2 }; /* .sequence_flags */
enum { INSTRUCTIONS = 1, FOLDED, IP, CUT, ANNOTATIONS };

static char *const annotation[] = { [INSTRUCTIONS] = "instructions",
				    [FOLDED] = PERFETTO_MARKS,
				    [IP] = "ip",
				    [CUT] = "not seen whole" };
/* PERFETTO_CALL has none: most slices are calls. */
static char *const category[PERFETTO_CATEGORIES] = {
	[PERFETTO_RUN] = "run",
	[PERFETTO_EXIT] = "exit",
	[PERFETTO_HALT] = "halt",
	[PERFETTO_LOST] = "lost",
	[PERFETTO_SYSTEM] = "system call",
	[PERFETTO_INTERRUPT] = "interrupt",
	[PERFETTO_SIGNAL] = "signal",
	[PERFETTO_UNKNOWN] = "unknown",
};

struct encoder {
	const struct perfetto_log *log;
	const struct perfetto_facts *facts;
	u8 *bytes;
	size_t room;
	u64 last;    /* ns, of the last packet of the sequence */
	u8 *named;   /* names that are given */
	bool failed; /* no memory */
};

/* ---- packets ---- */

#define HEAD  11  /* bytes before a packet, at most: tag and size */
#define PLAIN 512 /* bytes of one without names, at most */

/* A packet of at most @room bytes. */
static void put_sized(struct encoder *e, const struct Perfetto__TracePacket *p, size_t room)
{
	size_t size, head, left, n;

	if (vmpt_reserve(&e->bytes, &e->room, HEAD + room)) {
		e->failed = true;
		return;
	}
	size = perfetto__trace_packet__pack(p, e->bytes + HEAD);
	for (n = 1, left = size; left > 0x7f; left >>= 7)
		n++;
	head = HEAD - 1 - n;
	e->bytes[head] = 1 << 3 | 2; /* field 1 of Trace, bytes */
	for (n = head + 1, left = size; left > 0x7f; left >>= 7)
		e->bytes[n++] = (u8)(left | 0x80);
	e->bytes[n] = (u8)left;
	fwrite_unlocked(e->bytes + head, 1, HEAD - head + size, e->facts->out);
}

static void put_packet(struct encoder *e, const struct Perfetto__TracePacket *p)
{
	put_sized(e, p, perfetto__trace_packet__get_packed_size(p));
}

static struct Perfetto__TracePacket new_packet(u32 sequence, u32 flags)
{
	struct Perfetto__TracePacket p = PERFETTO__TRACE_PACKET__INIT;

	p.has_trusted_packet_sequence_id = true;
	p.trusted_packet_sequence_id = sequence;
	p.has_sequence_flags = true;
	p.sequence_flags = flags;
	return p;
}

static u64 ns_of(const struct encoder *e, u64 ticks)
{
	if (!(e->facts->hz > 0))
		return ticks;
	return (u64)((long double)ticks * 1e9L / (long double)e->facts->hz);
}

static void set_time(struct encoder *e, struct Perfetto__TracePacket *p, u64 ticks)
{
	const u64 ns = ns_of(e, ticks);

	p->has_timestamp = true;
	p->timestamp = ns - e->last;
	e->last = ns;
}

/* The first one: its clock, which all others of the sequence use. */
static void put_first(struct encoder *e, u32 sequence)
{
	struct Perfetto__TracePacket p = new_packet(sequence, FIRST);
	struct Perfetto__TracePacketDefaults defaults = PERFETTO__TRACE_PACKET_DEFAULTS__INIT;
	struct Perfetto__ClockSnapshot snapshot = PERFETTO__CLOCK_SNAPSHOT__INIT;
	struct Perfetto__ClockSnapshot__Clock clock[2] = { PERFETTO__CLOCK_SNAPSHOT__CLOCK__INIT,
							   PERFETTO__CLOCK_SNAPSHOT__CLOCK__INIT };
	struct Perfetto__ClockSnapshot__Clock *clocks[2] = { &clock[0], &clock[1] };
	int i;

	for (i = 0; i < 2; i++) {
		clock[i].has_clock_id = clock[i].has_timestamp = true;
		clock[i].clock_id = i ? STEPS : BOOTTIME;
		clock[i].timestamp = e->facts->start_ns;
	}
	clock[1].has_is_incremental = clock[1].is_incremental = true;
	snapshot.n_clocks = 2;
	snapshot.clocks = clocks;
	p.clock_snapshot = &snapshot;
	defaults.has_timestamp_clock_id = true;
	defaults.timestamp_clock_id = STEPS;
	p.trace_packet_defaults = &defaults;
	put_packet(e, &p);
	e->last = 0;
}

/* ---- names ---- */

static struct Perfetto__InternedName new_name(u64 iid, char *name)
{
	struct Perfetto__InternedName n = PERFETTO__INTERNED_NAME__INIT;

	n.has_iid = true;
	n.iid = iid;
	n.name = name;
	return n;
}

/* Those of categories and annotations. */
static void put_fixed_names(struct encoder *e)
{
	struct Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	struct Perfetto__InternedName c[PERFETTO_CATEGORIES], a[ANNOTATIONS];
	struct Perfetto__InternedName *cs[PERFETTO_CATEGORIES], *as[ANNOTATIONS];
	struct Perfetto__TracePacket p = new_packet(SLICES, NEEDS_STATE);
	unsigned int i;

	for (i = 1; i < PERFETTO_CATEGORIES; i++) {
		c[i] = new_name(i, category[i]);
		cs[data.n_event_categories++] = &c[i];
	}
	for (i = 1; i < ANNOTATIONS; i++) {
		a[i] = new_name(i, annotation[i]);
		as[data.n_debug_annotation_names++] = &a[i];
	}
	data.event_categories = cs;
	data.debug_annotation_names = as;
	p.interned_data = &data;
	put_packet(e, &p);
}

static void put_track(struct encoder *e, u32 i)
{
	const struct perfetto_track *t = &e->log->track[i];
	struct Perfetto__TrackDescriptor d = PERFETTO__TRACK_DESCRIPTOR__INIT;
	struct Perfetto__ProcessDescriptor process = PERFETTO__PROCESS_DESCRIPTOR__INIT;
	struct Perfetto__ThreadDescriptor thread = PERFETTO__THREAD_DESCRIPTOR__INIT;
	struct Perfetto__CounterDescriptor counter = PERFETTO__COUNTER_DESCRIPTOR__INIT;
	struct Perfetto__TracePacket p = new_packet(SLICES, NEEDS_STATE);

	d.has_uuid = true;
	d.uuid = i + 1;
	if (t->kind == PERFETTO_PROCESS) {
		process.has_pid = true;
		process.pid = (int32_t)(i + 1);
		process.process_name = t->name;
		d.process = &process;
	} else if (t->kind == PERFETTO_THREAD) {
		thread.has_pid = thread.has_tid = true;
		thread.pid = (int32_t)(t->process + 1);
		thread.tid = (int32_t)(i + 1);
		thread.thread_name = t->name;
		d.thread = &thread;
	} else {
		d.has_parent_uuid = true;
		d.parent_uuid = t->process + 1;
		d.name = t->name;
		d.counter = &counter;
	}
	p.track_descriptor = &d;
	put_packet(e, &p);
}

/* ---- events ---- */

struct annotations {
	struct Perfetto__DebugAnnotation a[ANNOTATIONS], *at[ANNOTATIONS];
	size_t count;
};

static void annotate(struct annotations *to, u32 name, u64 value)
{
	struct Perfetto__DebugAnnotation *a = &to->a[to->count];

	*a = (struct Perfetto__DebugAnnotation)PERFETTO__DEBUG_ANNOTATION__INIT;
	a->has_name_iid = true;
	a->name_iid = name;
	if (name == IP) {
		a->has_pointer_value = true;
		a->pointer_value = value;
	} else {
		a->has_uint_value = true;
		a->uint_value = value;
	}
	to->at[to->count++] = a;
}

static struct Perfetto__TrackEvent new_event(u32 type, u32 track)
{
	struct Perfetto__TrackEvent ev = PERFETTO__TRACK_EVENT__INIT;

	ev.has_type = true;
	ev.type = (Perfetto__TrackEvent__Type)type;
	ev.has_track_uuid = true;
	ev.track_uuid = track + 1;
	return ev;
}

static void put_begin(struct encoder *e, const struct perfetto_slice *s, u64 time)
{
	const bool exit = s->category == PERFETTO_EXIT || s->category == PERFETTO_HALT;
	struct Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	struct Perfetto__InternedName name = new_name(s->name + 1ULL, e->log->name[s->name]);
	struct Perfetto__InternedName *names = &name;
	struct Perfetto__TrackEvent ev =
		new_event(PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN, s->track);
	struct Perfetto__TracePacket p = new_packet(SLICES, NEEDS_STATE);
	struct annotations a = { .count = 0 };
	uint64_t of = s->category, flow = s->flow;

	ev.has_name_iid = true;
	ev.name_iid = s->name + 1ULL;
	if (!e->named[s->name]) {
		e->named[s->name] = 1;
		data.n_event_names = 1;
		data.event_names = &names;
		p.interned_data = &data;
	}
	if (of != PERFETTO_CALL) {
		ev.n_category_iids = 1;
		ev.category_iids = &of;
	}
	if (flow) {
		ev.n_flow_ids = 1;
		ev.flow_ids = &flow;
	}
	if (exit && s->has_value)
		annotate(&a, IP, s->value);
	if (s->cut)
		annotate(&a, CUT, 1);
	ev.n_debug_annotations = a.count;
	ev.debug_annotations = a.at;
	p.track_event = &ev;
	set_time(e, &p, time);
	if (p.interned_data)
		put_packet(e, &p);
	else
		put_sized(e, &p, PLAIN);
}

static void put_end(struct encoder *e, const struct perfetto_slice *s, u64 time)
{
	struct Perfetto__TrackEvent ev =
		new_event(PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_END, s->track);
	struct Perfetto__TracePacket p = new_packet(SLICES, NEEDS_STATE);
	struct annotations a = { .count = 0 };

	if (s->has_value && s->category != PERFETTO_EXIT && s->category != PERFETTO_HALT)
		annotate(&a, INSTRUCTIONS, s->value);
	if (s->folded)
		annotate(&a, FOLDED, s->folded);
	ev.n_debug_annotations = a.count;
	ev.debug_annotations = a.at;
	p.track_event = &ev;
	set_time(e, &p, time);
	put_sized(e, &p, PLAIN);
}

/* What is not shown, on a track of its own. */
static void put_note(struct encoder *e)
{
	const struct perfetto_log *log = e->log;
	struct Perfetto__TrackDescriptor d = PERFETTO__TRACK_DESCRIPTOR__INIT;
	const u32 track = (u32)log->tracks;
	struct Perfetto__TrackEvent ev =
		new_event(PERFETTO__TRACK_EVENT__TYPE__TYPE_INSTANT, track);
	struct Perfetto__TracePacket p = new_packet(SLICES, NEEDS_STATE);
	char note[256], name[64];

	if (!log->folded && !log->gaps)
		return;
	snprintf(name, sizeof(name), "%s", e->facts->writer);
	snprintf(note, sizeof(note),
		 "folded into their callers: %llu slices, those shorter than %llu ns or more than "
		 "%u deep; the flow was lost %llu times",
		 (unsigned long long)log->folded, (unsigned long long)ns_of(e, log->shortest),
		 log->depth_max, (unsigned long long)log->gaps);
	d.has_uuid = true;
	d.uuid = track + 1ULL;
	d.name = name;
	p.track_descriptor = &d;
	put_packet(e, &p);
	p = new_packet(SLICES, NEEDS_STATE);
	ev.name = note;
	p.track_event = &ev;
	set_time(e, &p, log->marks ? log->mark[0].time : 0);
	put_packet(e, &p);
}

/* The value of a bucket at its start, where it changes. */
static void put_counters(struct encoder *e, const struct perfetto_rates *rates)
{
	const double ticks = (double)rates->width;
	size_t i;
	u32 k;

	put_first(e, COUNTERS);
	for (k = 0; k < PERFETTO_BUCKETS; k++) {
		for (i = 0; i < rates->count; i++) {
			const struct perfetto_rate *r = &rates->rate[i];
			struct Perfetto__TrackEvent ev =
				new_event(PERFETTO__TRACK_EVENT__TYPE__TYPE_COUNTER, r->track);
			struct Perfetto__TracePacket p = new_packet(COUNTERS, NEEDS_STATE);

			if (k ? r->bucket[k] == r->bucket[k - 1] : !r->bucket[k])
				continue;
			ev.has_double_counter_value = true;
			ev.double_counter_value = (double)r->bucket[k] * r->scale / ticks;
			p.track_event = &ev;
			set_time(e, &p, k * rates->width);
			put_packet(e, &p);
		}
	}
}

int perfetto_encode(const struct perfetto_log *log, const struct perfetto_rates *rates,
		    const struct perfetto_facts *facts)
{
	struct encoder e = { .log = log, .facts = facts };
	size_t i;

	e.named = calloc(log->names + 1, 1);
	if (!e.named)
		return -1;
	put_first(&e, SLICES);
	put_fixed_names(&e);
	for (i = 0; i < log->tracks; i++)
		put_track(&e, (u32)i);
	put_note(&e);
	for (i = 0; i < log->marks && !e.failed; i++) {
		const struct perfetto_mark *m = &log->mark[i];

		(m->end ? put_end : put_begin)(&e, &log->slice[m->slice], m->time);
		if (!(i & 0xfff) && ferror(facts->out))
			break;
	}
	if (rates->count)
		put_counters(&e, rates);
	free(e.named);
	free(e.bytes);
	return e.failed ? -1 : 0;
}
