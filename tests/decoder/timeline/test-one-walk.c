// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * decoder/timeline/: a timeline decodes a stream once. Its spans are what a splitter and a decoder
 * with times, each with a walk of its own, say about the same stream: generated, damaged, with
 * gaps, in chunks so small that most doubts are open at the end of one.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/decoder/streams.h"
#include "tests/decoder/timeline-machine.h"
#include "util/array.h"

/* An item of the walk with times. */
struct timed {
	u64 offset;
	struct vmpt_time time;
	u64 payload;
	u8 kind, aux;
	bool in_psb;
};

static struct timed *item;
static size_t items;
static struct vmpt_slice *slice;
static size_t slices;
static struct vmpt_span *span;
static size_t spans;

/* ---- three walks ---- */

static void add_items(const struct vmpt_timed_batch *b, size_t *room)
{
	bool in_psb = items && item[items - 1].in_psb;
	size_t i;

	ck_assert_int_eq(vmpt_reserve(&item, room, items + b->batch.count), 0);
	for (i = 0; i < b->batch.count; i++) {
		const struct vmpt_item *from = &b->batch.items[i];

		if (from->kind == VMPT_PT_PSB)
			in_psb = true;
		else if (from->kind == VMPT_PT_PSBEND || from->kind == VMPT_PT_OVF ||
			 from->kind == VMPT_ITEM_LOSS)
			in_psb = false;
		item[items++] = (struct timed){ b->batch.base + from->offset,
						b->time[i],
						from->payload,
						from->kind,
						from->aux,
						in_psb };
	}
}

static void walk(const struct vmpt_stream *stream, const struct vmpt_options *options)
{
	struct vmpt_clocks_options co = { .decode = *options, .rates = tl_rates() };
	struct vmpt_timeline_options to = { .decode = *options };
	struct vmpt_splitter *split;
	struct vmpt_timeline *line;
	struct vmpt_timed_batch b;
	struct vmpt_clocks *clocks;
	struct vmpt_timed *timed;
	size_t room = 0, slice_room = 0, span_room = 0;
	int ret;

	items = slices = spans = 0;
	ck_assert_int_eq(vmpt_clocks_open(&clocks, &stream, 1, &co), 0);
	ck_assert_int_eq(vmpt_timed_open(&timed, clocks, 0, options), 0);
	while ((ret = vmpt_timed_next(timed, &b)) > 0)
		add_items(&b, &room);
	ck_assert_int_eq(ret, 0);
	vmpt_timed_close(timed);
	ck_assert_int_eq(vmpt_splitter_open(&split, stream, options), 0);
	do {
		ck_assert_int_eq(vmpt_reserve(&slice, &slice_room, slices + 1), 0);
		ret = vmpt_split_next(split, &slice[slices]);
		slices += ret > 0;
	} while (ret > 0);
	ck_assert_int_eq(ret, 0);
	vmpt_splitter_close(split);
	ck_assert_int_eq(vmpt_timeline_open(&line, clocks, &stream, 1, &to), 0);
	do {
		ck_assert_int_eq(vmpt_reserve(&span, &span_room, spans + 1), 0);
		ret = vmpt_timeline_next(line, &span[spans]);
		spans += ret > 0;
	} while (ret > 0);
	ck_assert_int_eq(ret, 0);
	vmpt_timeline_close(line);
	vmpt_clocks_close(clocks);
}

static void forget(void)
{
	free(item);
	free(slice);
	free(span);
	item = NULL;
	slice = NULL;
	span = NULL;
}

/* ---- what they must agree on ---- */

/* The losses from slice @k on that @s is. Returns the slice after them. */
static size_t check_loss(const struct vmpt_span *s, size_t k)
{
	const struct vmpt_slice *first = &slice[k];
	u64 size = 0;
	u32 losses = 0;

	for (; k < slices && slice[k].begin == VMPT_BEGIN_LOSS; k++, losses++)
		size += slice[k].size;
	must(losses == s->losses && size == s->size && first->offset == s->offset &&
		     first->size == s->loss_size && first->loss == s->loss,
	     "losses at %llx", (unsigned long long)s->offset);
	return k;
}

/* @s is in slice @k, and its first span if @first. */
static void check_owner(const struct vmpt_span *s, const struct vmpt_slice *k, bool first)
{
	unsigned long long at = s->offset;

	must(k->begin != VMPT_BEGIN_LOSS && s->offset >= k->offset &&
		     s->offset + s->size <= k->offset + k->size,
	     "%llx is not in its slice", at);
	must(s->kind == VMPT_SPAN_OFF ||
		     (s->owner.kind == k->owner.kind && s->owner.vmcs == k->owner.vmcs &&
		      s->owner.sure == k->owner.sure && s->owner.concealed == k->owner.concealed),
	     "owner at %llx", at);
	must(s->failed_entries == (first ? k->failed_entries : 0), "failed entries at %llx", at);
	must(s->unproven == (first && vmpt_slice_unproven(k) ? k->size : 0), "unproven at %llx",
	     at);
}

/* Whether the slice's time is simply that of its first item. */
static bool is_plain(const struct vmpt_slice *k)
{
	return k->begin != VMPT_BEGIN_START && k->begin != VMPT_BEGIN_LOSS && !k->by_group;
}

/* Items [@i, @end) are the span's. */
static void check_items(const struct vmpt_span *s, size_t i, size_t end, bool plain)
{
	unsigned long long at = s->offset;
	/* Tracing stops with a packet. */
	bool has_fup = false, found = s->kind == VMPT_SPAN_OFF;
	const struct timed *first = &item[i];
	u64 fup = 0;
	u32 ovfs = 0;

	for (; i < end; i++) {
		const struct timed *t = &item[i];

		found |= t->time.tsc == s->start.tsc && t->time.late == s->start.late;
		ovfs += t->kind == VMPT_PT_OVF;
		if (t->kind == VMPT_PT_FUP && !t->in_psb) {
			has_fup = t->aux != 0;
			fup = t->payload;
		}
		if (t->kind == VMPT_ITEM_RUN || t->kind == VMPT_PT_TNT_64 ||
		    t->kind == VMPT_PT_TIP || t->kind == VMPT_PT_TIP_PGE || t->kind == VMPT_PT_OVF)
			has_fup = false;
	}
	must(found, "no item at %llx has its time", at);
	must(ovfs == s->overflows, "overflows at %llx", at);
	if (plain && first->kind != VMPT_PT_PSB && first->time.tsc != VMPT_TIME_NONE)
		must(!memcmp(&first->time, &s->start, sizeof(s->start)), "time at %llx", at);
	if (s->kind == VMPT_SPAN_GUEST && s->ended == VMPT_EDGE_EXIT)
		must(s->exit.has_ip == has_fup && s->exit.ip == (has_fup ? fup : 0), "IP at %llx",
		     at);
}

static void check(const struct vmpt_stream *stream)
{
	size_t i, k = 0, from = 0, to, off = slices;
	u64 at = 0;

	for (i = 0; i < spans; i++) {
		const struct vmpt_span *s = &span[i];

		must(s->offset == at, "span %zu at %llx", i, (unsigned long long)at);
		at += s->size;
		for (; k < slices && slice[k].offset + slice[k].size <= s->offset &&
		       (slice[k].begin != VMPT_BEGIN_LOSS || s->kind != VMPT_SPAN_LOST ||
			slice[k].offset < s->offset);
		     k++)
			;
		if (s->kind == VMPT_SPAN_LOST) {
			k = check_loss(s, k);
		} else {
			must(k < slices, "no slice for span %zu", i);
			check_owner(s, &slice[k], off != k);
		}
		for (; from < items && item[from].offset < s->offset; from++)
			;
		for (to = from; to < items && item[to].offset < at; to++)
			;
		if (s->kind != VMPT_SPAN_LOST && s->size)
			check_items(s, from, to,
				    off != k && s->kind != VMPT_SPAN_OFF && is_plain(&slice[k]) &&
					    !(k && slice[k - 1].begin == VMPT_BEGIN_LOSS));
		off = k;
	}
	must(at == stream->size, "the spans end at %llx", (unsigned long long)at);
	forget();
}

/* ---- streams ---- */

static const unsigned int chunks[] = { 0, 16, 100, 512, 4096 };

static struct vmpt_options options_for(struct test_rng *rng)
{
	return (struct vmpt_options){
		.threads = 1 + test_random(rng) % 2,
		.chunk = chunks[test_random(rng) % VMPT_ARRAY_SIZE(chunks)],
		.guest_only = (enum vmpt_guest_only)(test_random(rng) % 3),
		.scalar = !(test_random(rng) % 6),
	};
}

/* Packets of all kinds in any order. */
START_TEST(a5_any_packets)
{
	struct test_rng rng = { .state = 500 + (u64)_i };
	struct vmpt_options options = options_for(&rng);
	struct builder b = { 0 };
	struct vmpt_gap gaps[GAPS_MAX];
	struct vmpt_stream s = { .cpu = 0, .tid = -1, .gaps = gaps };

	build_kind(&b, VMPT_PT_PSB);
	build_mix(&b, &rng, 1000 + test_random(&rng) % 60000, 40 << test_random(&rng) % 8);
	if (_i % 2)
		damage_bytes(b.buf, b.size, &rng);
	s.data = b.buf;
	s.size = b.size;
	s.gap_count = random_gaps(gaps, b.size, &rng);
	walk(&s, &options);
	check(&s);
	free(b.buf);
}
END_TEST

/* Spans are the same in chunks of any size: also where the time goes back many times. */
START_TEST(a5_any_chunks)
{
	struct vmpt_options options = { .threads = 1 };
	struct test_rng rng = { .state = 700 + (u64)_i };
	struct builder b = { 0 };
	struct vmpt_stream s = { .cpu = 0, .tid = -1 };
	struct vmpt_span *whole;
	size_t count, i, k;

	build_kind(&b, VMPT_PT_PSB);
	build_mix(&b, &rng, 40000, 400);
	s.data = b.buf;
	s.size = b.size;
	walk(&s, &options);
	whole = span;
	count = spans;
	span = NULL;
	for (i = 0; i < VMPT_ARRAY_SIZE(chunks); i++) {
		forget();
		options.chunk = chunks[i];
		walk(&s, &options);
		ck_assert_uint_eq(spans, count);
		for (k = 0; k < count; k++)
			ck_assert_mem_eq(&span[k], &whole[k], sizeof(*span));
	}
	forget();
	free(whole);
	free(b.buf);
}
END_TEST

/* A host with guests, damaged. */
START_TEST(a5_machines)
{
	struct tl_options o = {
		.cpus = 1,
		.guests = 3,
		.runs = 300,
		.cyc = _i & 1,
		.evd = _i & 2,
		.halts = _i & 4,
		.seed = 70 + (u64)_i,
	};
	struct test_rng rng = { .state = 900 + (u64)_i };
	struct vmpt_options options = options_for(&rng);
	struct tl_machine *m = tl_new(&o);
	struct vmpt_gap gaps[GAPS_MAX];
	struct vmpt_stream s;
	u64 from, to;
	u8 *bytes;

	options.guest_only = VMPT_GUEST_ONLY_AUTO;
	tl_go(m);
	tl_off(m, 0, 10000, &from, &to);
	tl_go(m);
	s = *tl_stream(m, 0);
	bytes = malloc(s.size);
	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, s.data, s.size);
	if (_i > 7)
		damage_bytes(bytes, s.size, &rng);
	s.data = bytes;
	s.gaps = gaps;
	s.gap_count = random_gaps(gaps, s.size, &rng);
	walk(&s, &options);
	check(&s);
	free(bytes);
	tl_free(m);
}
END_TEST

static void build_pip(struct builder *b, bool nr)
{
	struct vmpt_pt_packet pip = { .kind = VMPT_PT_PIP };

	pip.pip.cr3 = 0x5000;
	pip.pip.nr = nr;
	build(b, &pip);
}

static void build_psb(struct builder *b, bool nr)
{
	struct vmpt_pt_packet vmcs = { .kind = VMPT_PT_VMCS };

	vmcs.vmcs.pointer = 0x12345000;
	build_kind(b, VMPT_PT_PSB);
	build_pip(b, nr);
	/* Root operation of a host without VMX has none. */
	if (nr)
		build(b, &vmcs);
	build_kind(b, VMPT_PT_PSBEND);
}

/* More packets in doubt than are held back; then many short doubts. @_i: what ends them. */
START_TEST(a5_long_doubts)
{
	struct test_rng rng = { .state = 77 };
	struct vmpt_options options = { .threads = 1 };
	struct builder b = { 0 };
	struct vmpt_stream s = { .cpu = 0, .tid = -1 };
	size_t i, k;

	for (i = 0; i < 40; i++) {
		build_psb(&b, i & 1);
		for (k = 0; k < 50; k++)
			build_random(&b, &rng, VMPT_PT_TIP);
		build_kind(&b, VMPT_PT_OVF);
		for (k = 0; k < (i == 20 ? 120000 : 500); k++)
			build_random(&b, &rng, k % 5 ? VMPT_PT_TIP : VMPT_PT_FUP);
		if (_i & 1)
			build_psb(&b, i & 1);
	}
	s.data = b.buf;
	s.size = b.size;
	walk(&s, &options);
	ck_assert_uint_ge(slices, 40);
	check(&s);
	free(b.buf);
}
END_TEST

/* A slice with more stops than the ring has room; what is counted of it comes last. */
START_TEST(a5_long_slices)
{
	struct vmpt_options options = { .threads = 1, .host_only = true };
	struct vmpt_pt_packet pge = { .kind = VMPT_PT_TIP_PGE };
	struct test_rng rng = { .state = 3 };
	struct builder b = { 0 };
	struct vmpt_stream s = { .cpu = 0, .tid = -1 };
	size_t i;

	pge.ip.ipbytes = 6;
	pge.ip.ip = 0x401000;
	build_psb(&b, false);
	for (i = 0; i < 2000; i++) {
		build(&b, &pge);
		build_random(&b, &rng, VMPT_PT_TNT_64);
		build_kind(&b, VMPT_PT_TIP_PGD);
		build_kind(&b, VMPT_PT_CBR);
	}
	/* A VM entry that fails: NR 0, 1, 0 (docs/vm-tracking.md). */
	build(&b, &pge);
	build_pip(&b, true);
	build_pip(&b, false);
	build_random(&b, &rng, VMPT_PT_TIP);
	s.data = b.buf;
	s.size = b.size;
	walk(&s, &options);
	ck_assert_uint_eq(slices, 1);
	ck_assert_uint_eq(slice[0].failed_entries, 1);
	ck_assert_uint_gt(spans, 2000);
	check(&s);
	free(b.buf);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/timeline/one-walk");
	TCase *t = test_long_case(s);

	tcase_add_loop_test(t, a5_any_packets, 0, test_rounds(120, 24));
	tcase_add_loop_test(t, a5_any_chunks, 0, 3);
	tcase_add_loop_test(t, a5_machines, 0, test_rounds(40, 8));
	tcase_add_loop_test(t, a5_long_doubts, 0, 2);
	tcase_add_test(t, a5_long_slices);
	suite_add_tcase(s, t);
	return s;
}
