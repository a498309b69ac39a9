// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Splitter and stream writer against the truth of generated traces (tests/tracegen): the splitter's
 * owners did execute, and each owner's stream follows its code, instruction by instruction, as it
 * was executed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/decoder/check-streams.h"
#include "tests/support/support.h"
#include "tests/tracegen/flow.h"

static struct tracegen *generate(const char *name, bool insns)
{
	struct tracegen_options options = { .insns = insns };
	struct tracegen *g;
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s.trace", test_source("tests/tracegen/scripts"), name);
	g = tracegen_run_file(path, &options);
	ck_assert_ptr_nonnull(g);
	ck_assert_msg(!tracegen_error(g), "%s", tracegen_error(g));
	return g;
}

static struct vmpt_stream stream_of(const struct tracegen_stream *s)
{
	return (struct vmpt_stream){ .data = s->data, .size = s->size, .cpu = s->cpu, .tid = -1 };
}

/* ---- owners ---- */

enum exactness {
	ALL,	/* every byte has its owner */
	PARTLY, /* unknown is allowed, a wrong owner is not: lost or doubtful stretches */
};

static const struct script {
	const char *name;
	enum exactness exact;
} scripts[] = {
	{ "branch-en0", ALL },
	{ "clocks", ALL },
	{ "cpus", ALL },
	{ "demo", ALL },
	{ "event-en-only", ALL },
	{ "events", PARTLY },
	{ "example", PARTLY },
	{ "failed-entry", ALL },
	{ "failed-entry-events", ALL },
	{ "group-orders", PARTLY },
	{ "host-only", ALL },
	{ "host-unbalanced", ALL },
	{ "ip-filter", PARTLY },
	{ "kinds", PARTLY },
	{ "mode-while-out", ALL },
	{ "nested-calls", ALL },
	{ "one-owner", ALL },
	{ "ovf-same", ALL },
	{ "psb-fup", ALL },
	{ "psb-moves-owner", ALL },
	{ "ret-compressed", ALL },
	{ "ret-other-owner", ALL },
	{ "timing", ALL },
	{ "vmptrld-alone", ALL },
	{ "vmptrld-enter", ALL },
	{ "cfe-only", PARTLY },
	{ "context", PARTLY },
	{ "damage", PARTLY },
	{ "guest-only", PARTLY },
	{ "os0", PARTLY },
	{ "ovf-disabled", PARTLY },
	{ "pgd-then-psb", PARTLY },
	{ "start", PARTLY },
};

/* Whether @range's owner is the slice's. */
static bool owner_is(const struct tracegen *g, int owner, const struct vmpt_owner *o)
{
	if (owner == TRACEGEN_HOST)
		return o->kind == VMPT_OWNER_HOST;
	if (owner < 0)
		return o->kind == VMPT_OWNER_UNKNOWN;
	return o->kind == VMPT_OWNER_VM_ANY ||
	       (o->kind == VMPT_OWNER_VM && o->vmcs == tracegen_vm(g, (size_t)owner)->vmcs);
}

/*
 * Cases of docs/vm-tracking.md in which a splitter cannot or does not determine the owner: a
 * VMPTRLD right before an entry is in its group; an assumed VMCS may be wrong; an OVF belongs to
 * the owner before it, whoever ran when it resolved.
 */
static bool is_named_exception(const struct tracegen_stream *s, const struct vmpt_slice *slice,
			       u64 at)
{
	struct vmpt_pt_packet p;

	if (slice->owner.sure == VMPT_ASSUMED)
		return true;
	if (vmpt_pt_decode(&p, s->data + at, s->size - at, 0))
		return false;
	if (p.kind == VMPT_PT_OVF)
		return at + p.size == slice->offset + slice->size;
	return p.kind == VMPT_PT_VMCS && slice->by_group && at == slice->offset;
}

static void check_owners(const struct script *script, const struct tracegen *g,
			 const struct tracegen_stream *s)
{
	struct vmpt_stream stream = stream_of(s);
	struct vmpt_splitter *split;
	struct vmpt_slice slice;
	size_t i = 0;
	u64 at = 0, end;
	int ret;

	ck_assert_int_eq(vmpt_splitter_open(&split, &stream, NULL), 0);
	while ((ret = vmpt_split_next(split, &slice)) > 0) {
		end = slice.offset + slice.size;
		while (at < end) {
			while (s->ranges[i].offset + s->ranges[i].size <= at)
				i++;
			if (slice.owner.kind == VMPT_OWNER_UNKNOWN) {
				if (script->exact == ALL)
					ck_abort_msg("%s: no owner at %#llx", script->name,
						     (unsigned long long)at);
			} else if (!owner_is(g, s->ranges[i].owner, &slice.owner) &&
				   !is_named_exception(s, &slice, at)) {
				ck_abort_msg("%s: wrong owner (kind %u) at %#llx of [%#llx, %#llx)",
					     script->name, slice.owner.kind, (unsigned long long)at,
					     (unsigned long long)slice.offset,
					     (unsigned long long)end);
			}
			at = s->ranges[i].offset + s->ranges[i].size;
			if (at > end)
				at = end;
		}
	}
	ck_assert_int_eq(ret, 0);
	ck_assert_uint_eq(at, s->size);
	vmpt_splitter_close(split);
}

START_TEST(owners_are_the_truth)
{
	struct tracegen *g = generate(scripts[_i].name, false);
	size_t i;

	for (i = 0; i < tracegen_streams(g); i++)
		check_owners(&scripts[_i], g, tracegen_stream(g, i));
	tracegen_free(g);
}
END_TEST

START_TEST(streams_keep_the_packets)
{
	struct tracegen *g = generate(scripts[_i].name, false);
	struct vmpt_stream stream;
	struct extracted e;
	size_t i;

	for (i = 0; i < tracegen_streams(g); i++) {
		stream = stream_of(tracegen_stream(g, i));
		extract_to_memory(&e, &stream, NULL);
		check_streams(&stream, &e);
		extracted_free(&e);
	}
	tracegen_free(g);
}
END_TEST

/* Entries and exits shown by packets are those that slices begin with. */
START_TEST(entries_and_exits_are_counted)
{
	static const char *const name[] = { "demo",	    "vmptrld-alone", "events",
					    "failed-entry", "branch-en0",    "ret-compressed" };
	struct tracegen *g = generate(name[_i], false);
	const struct tracegen_stream *s;
	u64 entries, exits, want_entries, want_exits;
	struct vmpt_splitter *split;
	struct vmpt_stream stream;
	struct vmpt_slice slice;
	size_t i, j;

	for (i = 0; i < tracegen_streams(g); i++) {
		s = tracegen_stream(g, i);
		stream = stream_of(s);
		entries = exits = want_entries = want_exits = 0;
		for (j = 0; j < tracegen_vms(g); j++) {
			want_entries += s->vms[j].seen_entries;
			want_exits += s->vms[j].seen_exits;
		}
		ck_assert_int_eq(vmpt_splitter_open(&split, &stream, NULL), 0);
		while (vmpt_split_next(split, &slice) > 0) {
			entries += slice.begin == VMPT_BEGIN_ENTRY;
			exits += slice.begin == VMPT_BEGIN_EXIT;
		}
		vmpt_splitter_close(split);
		ck_assert_uint_eq(entries, want_entries);
		ck_assert_uint_eq(exits, want_exits);
	}
	tracegen_free(g);
}
END_TEST

/* ---- flow ---- */

static int owner_index(const struct tracegen *g, const struct vmpt_owner *o)
{
	size_t i;

	if (o->kind == VMPT_OWNER_HOST)
		return TRACEGEN_HOST;
	for (i = 0; i < tracegen_vms(g); i++)
		if (tracegen_vm(g, i)->vmcs == o->vmcs)
			return (int)i;
	ck_abort_msg("no VM has VMCS %#llx", (unsigned long long)o->vmcs);
	return TRACEGEN_NONE;
}

/* Not those that switch tracing off and on: bytes after it without a proof have no owner. */
static const char *const flows[] = {
	"ret-compressed", "host-unbalanced", "mode-while-out", "vmptrld-alone", "timing", "clocks",
	"cpus",		  "one-owner",	     "nested-calls",   "host-only",	"demo",
};

static void check_flows(const char *name, bool conceal)
{
	struct vmpt_extract_options options = { .conceal = conceal };
	struct tracegen *g = generate(name, true);
	const struct tracegen_stream *s;
	const struct extracted_stream *out;
	struct vmpt_stream stream;
	struct extracted e;
	size_t i;

	for (i = 0; i < tracegen_streams(g); i++) {
		s = tracegen_stream(g, i);
		stream = stream_of(s);
		extract_to_memory(&e, &stream, &options);
		for (out = e.streams; out < e.streams + e.count; out++)
			flow_check(name, g, s, owner_index(g, &out->owner), out->bytes, out->size);
		extracted_free(&e);
	}
	tracegen_free(g);
}

START_TEST(streams_flow_as_executed)
{
	check_flows(flows[_i], false);
}
END_TEST

START_TEST(concealed_streams_flow_as_executed)
{
	check_flows(flows[_i], true);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("decoder/truth");
	TCase *t = tcase_create("owners");

	tcase_add_loop_test(t, owners_are_the_truth, 0, VMPT_ARRAY_SIZE(scripts));
	tcase_add_loop_test(t, streams_keep_the_packets, 0, VMPT_ARRAY_SIZE(scripts));
	tcase_add_loop_test(t, entries_and_exits_are_counted, 0, 6);
	suite_add_tcase(suite, t);
	t = tcase_create("flow");
	tcase_add_loop_test(t, streams_flow_as_executed, 0, VMPT_ARRAY_SIZE(flows));
	tcase_add_loop_test(t, concealed_streams_flow_as_executed, 0, VMPT_ARRAY_SIZE(flows));
	suite_add_tcase(suite, t);
	return suite;
}
