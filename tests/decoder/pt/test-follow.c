// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A reader that walks all packets by itself and reports those of decoder/pt/follow.h has the same
 * owner and losses at each byte as the splitter: on random packets, whole and damaged, with gaps.
 */
#include <stdio.h>
#include <stdlib.h>

#include "decoder/pt/follow.h"
#include "decoder/pt/heads.h"
#include "tests/decoder/notation.h"
#include "tests/decoder/streams.h"

/* Adjacent bytes of one owner, or a loss. */
struct part {
	u64 offset, size;
	struct vmpt_owner owner;
	int loss;
};

struct parts {
	struct part *list;
	size_t count, room;
};

static void add_part(struct parts *p, const struct vmpt_slice *s, u64 from, u64 to)
{
	int loss = s->begin == VMPT_BEGIN_LOSS ? (int)s->loss : 0;
	struct part *last = p->count ? &p->list[p->count - 1] : NULL;

	if (!loss && from == to)
		return;
	if (last && !loss && !last->loss && vmpt_owner_same(&last->owner, &s->owner)) {
		last->size += to - from;
		return;
	}
	if (p->count == p->room) {
		p->room = 2 * p->room + 16;
		p->list = realloc(p->list, p->room * sizeof(*p->list));
		must(p->list, "no memory");
	}
	p->list[p->count++] = (struct part){ from, to - from, s->owner, loss };
}

static void split(struct parts *p, const struct vmpt_stream *stream, const struct vmpt_options *o)
{
	struct vmpt_splitter *splitter;
	struct vmpt_slice slice;

	ck_assert_int_eq(vmpt_splitter_open(&splitter, stream, o), 0);
	while (vmpt_split_next(splitter, &slice) > 0)
		add_part(p, &slice, slice.offset, slice.offset + slice.size);
	vmpt_splitter_close(splitter);
}

/* One packet at @at: where the slice ends. */
static u64 report(struct vmpt_follow *f, const struct vmpt_stream *s, u64 at, u64 stop,
		  struct vmpt_pt_packet *pkt, unsigned int *block, const struct vmpt_owner **owner)
{
	int err = vmpt_pt_decode(pkt, s->data + at, s->size - at, *block);
	unsigned int after;

	if (!err && vmpt_psb_inside(s->data, at, pkt->size, s->size))
		err = -VMPT_E_CUT;
	if (err)
		return vmpt_follow_error(f, at, err);
	after = vmpt_pt_block_after(pkt, *block);
	if (VMPT_FOLLOW_KINDS >> pkt->kind & 1 &&
	    (pkt->kind != VMPT_PT_TIP_PGD || !pkt->ip.ipbytes))
		stop = vmpt_follow_packet(f, at, pkt->kind, pkt->size, after, owner);
	if (stop > at)
		*block = after;
	return stop;
}

static void follow(struct parts *p, const struct vmpt_stream *stream, const struct vmpt_options *o)
{
	struct vmpt_pt_packet pkt;
	const struct vmpt_owner *owner;
	struct vmpt_follow *f;
	struct vmpt_slice slice;
	unsigned int block = 0;
	u64 at = 0, from, stop;

	ck_assert_int_eq(vmpt_follow_open(&f, stream, o), 0);
	while (vmpt_follow_next(f, at, &slice) > 0) {
		must(slice.offset == at, "a slice at %llu, not at %llu",
		     (unsigned long long)slice.offset, (unsigned long long)at);
		from = at;
		stop = slice.offset + slice.size;
		if (slice.begin == VMPT_BEGIN_LOSS) {
			at = stop;
			block = 0;
		}
		while (at < stop) {
			owner = NULL;
			stop = report(f, stream, at, stop, &pkt, &block, &owner);
			if (owner) {
				add_part(p, &slice, from, at);
				from = at;
				slice.owner = *owner;
			}
			if (at < stop)
				at += pkt.size;
		}
		must(at == stop, "a slice ends at %llu in a packet", (unsigned long long)stop);
		add_part(p, &slice, from, at);
	}
	must(at == stream->size, "it ends at %llu", (unsigned long long)at);
	vmpt_follow_close(f);
}

static void check_same(const struct vmpt_stream *stream, const struct vmpt_options *options)
{
	struct parts want = { 0 }, got = { 0 };
	const struct part *a, *b;
	size_t i;

	split(&want, stream, options);
	follow(&got, stream, options);
	for (i = 0; i < want.count && i < got.count; i++) {
		a = &want.list[i];
		b = &got.list[i];
		must(a->offset == b->offset && a->size == b->size && a->loss == b->loss &&
			     (a->loss || vmpt_owner_same(&a->owner, &b->owner)),
		     "part %zu: %llu + %llu loss %d, not %llu + %llu loss %d", i,
		     (unsigned long long)b->offset, (unsigned long long)b->size, b->loss,
		     (unsigned long long)a->offset, (unsigned long long)a->size, a->loss);
	}
	ck_assert_uint_eq(got.count, want.count);
	free(want.list);
	free(got.list);
}

static void check_all_options(const struct vmpt_stream *stream)
{
	static const struct vmpt_options options[] = {
		{ 0 },
		{ .headless = true },
		{ .guest_only = VMPT_GUEST_ONLY_YES },
		{ .guest_only = VMPT_GUEST_ONLY_NO },
		{ .host_only = true },
	};
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(options); i++)
		check_same(stream, &options[i]);
}

START_TEST(random_packets)
{
	struct test_rng rng = { (u64)_i + 1 };
	struct vmpt_gap gaps[GAPS_MAX];
	struct vmpt_stream stream = { 0 };
	struct builder b = { 0 };

	build_mix(&b, &rng, 1 + test_random(&rng) % 20000, test_random(&rng) % 4 * 400);
	if (_i % 3)
		damage_bytes(b.buf, b.size, &rng);
	stream.data = b.buf;
	stream.size = b.size;
	if (_i % 4 == 0) {
		stream.gap_count = random_gaps(gaps, b.size, &rng);
		stream.gaps = gaps;
	}
	check_all_options(&stream);
	free(b.buf);
}
END_TEST

/* Packets that make doubts and settle them, in any order. */
START_TEST(random_owners)
{
	static const char *const words[] = {
		"psb exec:64 pip:1000 vmcs:a000 cbr:8 psbend ",
		"psb exec:64 pip:2000:nr vmcs:a000 cbr:8 psbend pad*20 ",
		"psb exec:64 pip:2000:nr vmcs:a000 cbr:8 psbend ",
		"psb vmcs:b000 psbend pad*3 ",
		"psb psbend ",
		"pip:2000:nr tip:8000 ",
		"pip:1000 tip:f000 ",
		"pip:3000:nr ",
		"vmcs:b000 ",
		"pgd:- ",
		"pge:8000 ",
		"pgd:8000 ",
		"cbr:8 ",
		"tsc:100 ",
		"ovf ",
		"fup:8000 ",
		"exec:64 ",
		"tnt:T ",
		"cfe:VMENTRY:ip fup:f004 ",
		"cfe:VMEXIT:ip fup:8004 pgd:- ",
		"tnt:T tnt:T tnt:T tnt:T tnt:T tnt:T tnt:T tnt:T tnt:T tnt:T tnt:T tnt:T tnt:T ",
		"raw:05 ",
	};
	static struct notation n;
	struct test_rng rng = { (u64)_i + 1 };
	char text[4096];
	unsigned int i, damage = test_random(&rng) % 2;
	size_t used = 0;

	/* A doubt may be too long to be settled ahead. */
	for (i = 0; i < 60; i++)
		used += (size_t)snprintf(
			text + used, sizeof(text) - used, "%s%s",
			words[test_random(&rng) % (VMPT_ARRAY_SIZE(words) - !damage)],
			i == 30 && _i % 3 == 0 ? "pad*4500 " : "");
	notation_read(&n, text);
	check_all_options(&n.stream);
}
END_TEST

static void check_real(const char *name)
{
	const char *path = test_data(name);
	struct vmpt_stream stream = { 0 };
	size_t size;
	u8 *bytes;

	if (!path)
		return;
	bytes = test_read_file(path, &size);
	stream.data = bytes;
	stream.size = size;
	check_all_options(&stream);
	free(bytes);
}

START_TEST(real_traces)
{
	check_real("guest-two-vmcs.pt");
	check_real("guest-mruby.pt");
	check_real("guest-unzip.pt");
	check_real("host-lldb.pt");
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/follow");
	TCase *t = test_long_case(s);
	int rounds = test_rounds(3000, 200);

	tcase_add_loop_test(t, random_packets, 0, rounds);
	tcase_add_loop_test(t, random_owners, 0, 3 * rounds);
	tcase_add_test(t, real_traces);
	return s;
}
