// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The fast source equals the plain one, token by token and item by item: on real traces, damaged
 * copies, random bytes and streams of every kind of packet, for any number of lanes and threads,
 * any chunk size, headless or not, with gaps. All streams end at the end of a page, and the next
 * page faults.
 *
 * VMPT_SOAK=seconds runs the random part for that time.
 */
#include <stdlib.h>
#include <time.h>

#include "decoder/pt/source.h"
#include "tests/decoder/streams.h"
#include "util/array.h"

/* ---- a source's results ---- */

struct record {
	u64 offset, size, payload;
	u8 kind, aux;
};

/* All tokens, and all items with adjacent runs merged. */
struct result {
	u64 *tokens;
	struct record *records;
	size_t tokens_n, records_n;
};

static void result_item(struct result *r, const struct vmpt_item *item, u64 base)
{
	struct record *last = r->records_n ? &r->records[r->records_n - 1] : NULL;
	u64 at = base + item->offset;

	if (item->kind == VMPT_ITEM_RUN && last && last->kind == VMPT_ITEM_RUN &&
	    last->offset + last->size == at) {
		last->size += item->size;
		return;
	}
	must(!vmpt_grow(&r->records, r->records_n), "no memory");
	r->records[r->records_n++] = (struct record){ .offset = at,
						      .size = item->size,
						      .payload = item->payload,
						      .kind = item->kind,
						      .aux = item->aux };
}

static void collect(struct result *r, const struct vmpt_stream *stream,
		    const struct vmpt_options *options, bool items, bool time_only)
{
	struct vmpt_source *src;
	struct vmpt_piece p;
	u64 at = 0;
	size_t i;
	int ret;

	memset(r, 0, sizeof(*r));
	must(!vmpt_source_open(&src, stream, options, items), "cannot open");
	if (time_only)
		vmpt_source_time_only(src);
	while ((ret = vmpt_source_next(src, &p)) == 1) {
		must(p.start == at, "a piece starts at 0x%llx, the last ended at 0x%llx",
		     (unsigned long long)p.start, (unsigned long long)at);
		at = p.end;
		must(at <= p.region_end, "a piece ends past its region");
		must(items == !!p.items, "items are there when not asked for, or not");
		for (i = 0; i < p.token_count; i++) {
			must(!vmpt_grow(&r->tokens, r->tokens_n), "no memory");
			r->tokens[r->tokens_n++] = p.tokens[i];
		}
		for (i = 0; items && i < p.item_count; i++)
			result_item(r, &p.items[i], p.start);
	}
	ck_assert_int_eq(ret, 0);
	ck_assert_uint_eq(at, stream->size);
	vmpt_source_close(src);
}

static void result_free(struct result *r)
{
	free(r->tokens);
	free(r->records);
}

static void compare(const struct result *want, const struct vmpt_stream *stream,
		    const struct vmpt_options *o, bool items)
{
	const struct record *a, *b;
	struct result got;
	size_t i;

	collect(&got, stream, o, items, false);
	for (i = 0; i < want->tokens_n && i < got.tokens_n; i++)
		must(want->tokens[i] == got.tokens[i],
		     "token %zu: 0x%llx, want 0x%llx (lanes %u chunk %zu threads %u items %d)", i,
		     (unsigned long long)got.tokens[i], (unsigned long long)want->tokens[i],
		     o->lanes, o->chunk, o->threads, items);
	ck_assert_uint_eq(got.tokens_n, want->tokens_n);
	for (i = 0; items && i < want->records_n && i < got.records_n; i++) {
		a = &want->records[i];
		b = &got.records[i];
		must(a->offset == b->offset && a->size == b->size && a->kind == b->kind &&
			     a->payload == b->payload && a->aux == b->aux,
		     "item %zu: kind %u at 0x%llx size %llu payload 0x%llx aux %u, want kind %u "
		     "at 0x%llx size %llu payload 0x%llx aux %u (lanes %u chunk %zu threads %u)",
		     i, b->kind, (unsigned long long)b->offset, (unsigned long long)b->size,
		     (unsigned long long)b->payload, b->aux, a->kind, (unsigned long long)a->offset,
		     (unsigned long long)a->size, (unsigned long long)a->payload, a->aux, o->lanes,
		     o->chunk, o->threads);
	}
	if (items)
		ck_assert_uint_eq(got.records_n, want->records_n);
	result_free(&got);
}

/* What is decoded for clocks has the same tokens, losses among them, and the same loss items. */
static void compare_times(const struct result *want, const struct vmpt_stream *stream,
			  const struct vmpt_options *o)
{
	const struct record *b;
	struct result got;
	size_t i, k;

	collect(&got, stream, o, true, true);
	ck_assert_uint_eq(got.tokens_n, want->tokens_n);
	if (got.tokens_n)
		ck_assert_mem_eq(got.tokens, want->tokens, got.tokens_n * sizeof(*got.tokens));
	for (i = k = 0; i < want->records_n; i++) {
		if (want->records[i].kind != VMPT_ITEM_LOSS)
			continue;
		while (k < got.records_n && got.records[k].kind != VMPT_ITEM_LOSS)
			k++;
		must(k < got.records_n, "loss item %zu is missing", i);
		b = &got.records[k++];
		must(b->offset == want->records[i].offset && b->payload == want->records[i].payload,
		     "a loss of %llu at 0x%llx, want %llu at 0x%llx",
		     (unsigned long long)b->payload, (unsigned long long)b->offset,
		     (unsigned long long)want->records[i].payload,
		     (unsigned long long)want->records[i].offset);
	}
	for (; k < got.records_n; k++)
		must(got.records[k].kind != VMPT_ITEM_LOSS, "a loss too many");
	result_free(&got);
}

/* The two sources agree on @stream, under @n random options. */
static void agree(const struct vmpt_stream *stream, struct test_rng *rng, bool headless,
		  unsigned int n)
{
	static const size_t chunks[] = { 0, 16, 64, 100, 700, 4096, 30000, 1 << 20 };
	struct vmpt_options o = { .headless = headless, .scalar = true };
	struct result want;

	collect(&want, stream, &o, true, false);
	o.scalar = false;
	while (n--) {
		o.lanes = (unsigned int)(test_random(rng) % 9);
		o.chunk = chunks[test_random(rng) % VMPT_ARRAY_SIZE(chunks)];
		o.threads = (unsigned int)(test_random(rng) % 4);
		compare(&want, stream, &o, true);
		compare(&want, stream, &o, false);
		compare_times(&want, stream, &o);
	}
	result_free(&want);
}

static void agree_bytes(const u8 *bytes, size_t size, struct test_rng *rng, unsigned int n)
{
	struct vmpt_stream stream = { .size = size, .cpu = -1, .tid = -1 };
	struct room room;

	room_copy(&room, bytes, size);
	stream.data = room.data;
	agree(&stream, rng, false, n);
	agree(&stream, rng, true, n);
	room_close(&room);
}

/* ---- tokens written out ---- */

START_TEST(losses_written_out)
{
	/* 3 bytes, PSB, OVF, an unknown opcode and 5 bytes, PSB, PSBEND, a bad PSB to the end */
	static const u8 tail[] = { 0x02, 0x82, 0x02, 0x83 };
	static const u64 want[] = {
		VMPT_TOKEN(0, VMPT_TOKEN_LOSS),
		3 << 6 | VMPT_E_SYNC,
		VMPT_TOKEN(3, VMPT_PT_PSB),
		VMPT_TOKEN(19, VMPT_PT_OVF),
		VMPT_TOKEN(21, VMPT_TOKEN_LOSS),
		6 << 6 | VMPT_E_OPCODE,
		VMPT_TOKEN(27, VMPT_PT_PSB),
		VMPT_TOKEN(45, VMPT_TOKEN_LOSS),
		104 << 6 | VMPT_E_PSB,
		VMPT_TOKEN(149, VMPT_TOKEN_LOSS),
		0 << 6 | VMPT_E_GAP,
		VMPT_TOKEN(149, VMPT_TOKEN_LOSS),
		1 << 6 | VMPT_E_SYNC,
		VMPT_TOKEN(150, VMPT_PT_PSB),
		VMPT_TOKEN(166, VMPT_TOKEN_LOSS),
		2 << 6 | VMPT_E_TRUNCATED,
	};
	struct vmpt_gap gap = { .offset = 149 };
	struct vmpt_stream stream = { .gaps = &gap, .gap_count = 1 };
	struct vmpt_options o = { 0 };
	struct builder b = { 0 };
	struct result got;
	struct room room;
	u8 pad[100] = { 0 };
	int items;

	build_bytes(&b, "\x80\x80\x80", 3);
	build_kind(&b, VMPT_PT_PSB);
	build_kind(&b, VMPT_PT_OVF);
	build_bytes(&b, "\x02\x7f\x80\x80\x80\x80", 6);
	build_kind(&b, VMPT_PT_PSB);
	build_kind(&b, VMPT_PT_PSBEND);
	build_bytes(&b, tail, sizeof(tail));
	build_bytes(&b, pad, sizeof(pad));
	build_bytes(&b, "\x80", 1);
	build_kind(&b, VMPT_PT_PSB);
	build_bytes(&b, "\x19\x01", 2);
	room_copy(&room, b.buf, b.size);
	stream.data = room.data;
	stream.size = room.size;
	for (items = 0; items < 2; items++) {
		for (o.scalar = 0;; o.scalar = 1) {
			collect(&got, &stream, &o, items, false);
			ck_assert_uint_eq(got.tokens_n, VMPT_ARRAY_SIZE(want));
			ck_assert_mem_eq(got.tokens, want, sizeof(want));
			result_free(&got);
			if (o.scalar)
				break;
		}
	}
	room_close(&room);
	free(b.buf);
}
END_TEST

/* All of @b's tokens by each source, with and without items. */
static void expect_tokens(const struct builder *b, const u64 *want, size_t n)
{
	struct vmpt_stream stream = { .size = b->size };
	struct vmpt_options o = { 0 };
	struct result got;
	struct room room;
	int way;

	room_copy(&room, b->buf, b->size);
	stream.data = room.data;
	for (way = 0; way < 4; way++) {
		o.scalar = way & 1;
		collect(&got, &stream, &o, way & 2, false);
		ck_assert_uint_eq(got.tokens_n, n);
		ck_assert_mem_eq(got.tokens, want, n * sizeof(*want));
		result_free(&got);
	}
	room_close(&room);
}

/* A packet's first bytes, and a PSB: what the packet takes of the PSB is no loss of what follows.
 */
START_TEST(a1_psb_cuts_a_packet)
{
	static const struct {
		const char *bytes;
		unsigned int size;
	} cut[] = {
		{ "\x19\x11\x22\x33", 4 },	       /* TSC: takes four bytes */
		{ "\x19\x11\x22\x33\x44", 5 },	       /* three: 82H remains, a TNT */
		{ "\xcd\x11", 2 },		       /* TIP of nine: seven */
		{ "\x02\x43\x11\x22\x33\x44\x55", 7 }, /* PIP: one */
		{ "\x02\xc3\x88", 3 },		       /* MNT: eight */
		{ "\x02\x53\x01", 3 },		       /* EVD: eight */
		{ "\x07\x07", 2 },		       /* CYC: one */
		{ "\x02\x82", 2 },		       /* PSB: two, and 14 */
		{ "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82", 14 },
	};
	u64 at = 18, psb = at + cut[_i].size, next = psb + 18;
	struct builder b = { 0 };

	build_kind(&b, VMPT_PT_PSB);
	build_kind(&b, VMPT_PT_PSBEND);
	build_bytes(&b, cut[_i].bytes, cut[_i].size);
	build_kind(&b, VMPT_PT_PSB);
	build_kind(&b, VMPT_PT_OVF);
	build_kind(&b, VMPT_PT_PSB);
	expect_tokens(&b,
		      (u64[]){ VMPT_TOKEN(0, VMPT_PT_PSB), VMPT_TOKEN(at, VMPT_TOKEN_LOSS),
			       (u64)cut[_i].size << 6 | VMPT_E_CUT, VMPT_TOKEN(psb, VMPT_PT_PSB),
			       VMPT_TOKEN(psb + 16, VMPT_PT_OVF), VMPT_TOKEN(next, VMPT_PT_PSB) },
		      6);
	free(b.buf);
}
END_TEST

/* A whole packet that ends like the start of a PSB, and a PSB: nothing is missing. */
START_TEST(a1_payload_like_a_psb_is_whole)
{
	struct vmpt_pt_packet ptw = { .kind = VMPT_PT_PTW, .ptw = { .payload_bytes = 1 } };
	struct builder b = { 0 };
	int psbs = 1 + _i / 9, bytes = _i % 9, i;
	u64 want[4];

	/* The first bytes of a PSB, up to eight, end the payload. */
	ptw.ptw.payload = 0x8202820282028202 << 4 * (8 - bytes) << 4 * (8 - bytes);
	build_kind(&b, VMPT_PT_PSB);
	build(&b, &ptw);
	if (bytes & 1)
		build_bytes(&b, "\x82", 1); /* a TNT continues it */
	want[0] = VMPT_TOKEN(0, VMPT_PT_PSB);
	for (i = 1; i <= psbs; i++) {
		want[i] = VMPT_TOKEN(b.size, VMPT_PT_PSB);
		build_kind(&b, VMPT_PT_PSB);
	}
	build_kind(&b, VMPT_PT_OVF);
	want[i] = VMPT_TOKEN(b.size - 2, VMPT_PT_OVF);
	expect_tokens(&b, want, (size_t)psbs + 2);
	free(b.buf);
}
END_TEST

START_TEST(nothing_at_all)
{
	struct test_rng rng = { 3 };
	struct builder b = { 0 };
	size_t n;

	agree_bytes(NULL, 0, &rng, 2);
	build_kind(&b, VMPT_PT_PSB);
	build_kind(&b, VMPT_PT_PSBEND);
	for (n = 1; n <= b.size; n++)
		agree_bytes(b.buf, n, &rng, 1);
	free(b.buf);
}
END_TEST

/* ---- places where chunks are hard to split ---- */

START_TEST(psb_inside_payloads)
{
	/* A payload that ends like the start of a PSB, and then a PSB: the first match is wrong. */
	static const u8 evil[8] = { 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82 };
	struct vmpt_pt_packet ptw = { .kind = VMPT_PT_PTW, .ptw = { .payload_bytes = 1 } };
	struct vmpt_pt_packet evd = { .kind = VMPT_PT_EVD };
	struct vmpt_pt_packet tsc = { .kind = VMPT_PT_TSC };
	struct test_rng rng = { 4 };
	struct builder b = { 0 };
	int i;

	ptw.ptw.payload = evd.evd.payload = vmpt_load64(evil);
	tsc.tsc.tsc = vmpt_load64(evil) >> 8;
	build_kind(&b, VMPT_PT_PSB);
	for (i = 0; i < 600; i++) {
		build_mix(&b, &rng, test_random(&rng) % 200, 0);
		/* A block must not swallow them. */
		build_kind(&b, VMPT_PT_OVF);
		build(&b, i % 3 == 0 ? &ptw : i % 3 == 1 ? &evd : &tsc);
		if (i & 8)
			build_kind(&b, VMPT_PT_PSB);
		else if (i & 16)
			build_bytes(&b, evil, sizeof(evil)); /* a PSB cuts the packet */
		if (i & 32)
			build_bytes(&b, evil, 2 * (i % 5)); /* and a PSB itself */
	}
	agree_bytes(b.buf, b.size, &rng, 12);
	free(b.buf);
}
END_TEST

START_TEST(blocks_across_chunks)
{
	struct vmpt_pt_packet bbp = { .kind = VMPT_PT_BBP };
	struct test_rng rng = { 5 };
	struct builder b = { 0 };
	int i, n;

	for (i = 0; i < 200; i++) {
		if (i % 3)
			build_kind(&b, VMPT_PT_PSB);
		bbp.bbp.sz = i & 1;
		build(&b, &bbp);
		for (n = i % 50; n; n--) {
			build_random(&b, &rng, VMPT_PT_BIP);
			if (!(n % 7))
				build_kind(&b, VMPT_PT_PAD);
			if (!(n % 9))
				build_random(&b, &rng, VMPT_PT_TSC);
		}
		if (i & 4)
			build_random(&b, &rng, VMPT_PT_BEP);
	}
	/* One block longer than any chunk, without a PSB and without an end. */
	build(&b, &bbp);
	for (i = 0; i < 150000; i++)
		build_random(&b, &rng, VMPT_PT_BIP);
	agree_bytes(b.buf, b.size, &rng, 6);
	free(b.buf);
}
END_TEST

START_TEST(megabytes_without_psb)
{
	struct test_rng rng = { 6 };
	struct builder b = { 0 };
	u8 pads[200000] = { 0 };

	build_kind(&b, VMPT_PT_PSB);
	build_mix(&b, &rng, 1200000, 0);
	build_kind(&b, VMPT_PT_OVF);
	build_bytes(&b, pads, sizeof(pads));
	build_mix(&b, &rng, 1300000, 0);
	build_kind(&b, VMPT_PT_PSB);
	build_mix(&b, &rng, 20000, 4096);
	/* Between PSBs a run longer than an item can have. */
	build_kind(&b, VMPT_PT_PSB);
	build_bytes(&b, pads, sizeof(pads));
	build_kind(&b, VMPT_PT_PSB);
	/* A loss with no PSB for a long time after it. */
	build_bytes(&b, "\x02\x7f", 2);
	build_mix(&b, &rng, 1500000, 0);
	build_kind(&b, VMPT_PT_PSB);
	build_mix(&b, &rng, 20000, 0);
	agree_bytes(b.buf, b.size, &rng, 3);
	free(b.buf);
}
END_TEST

/* More tokens, items and losses than a chunk has room for. */
START_TEST(no_room)
{
	static const u8 dense[] = { 0x01, 0x1d, 0x03, 0x0d, 0x04, 0x01 };
	struct test_rng rng = { 7 };
	struct builder b = { 0 };
	int i;

	build_kind(&b, VMPT_PT_PSB);
	for (i = 0; i < 300000; i++)
		build_bytes(&b, &dense[test_random(&rng) % (i & 0x10000 ? 6 : 1)], 1);
	for (i = 0; i < 20000; i++) {
		build_kind(&b, VMPT_PT_PSB);
		build_bytes(&b, "\x02\x7f", 2);
	}
	agree_bytes(b.buf, b.size, &rng, 4);
	free(b.buf);
}
END_TEST

/* ---- streams of all kinds ---- */

START_TEST(every_kind)
{
	static const size_t psb[] = { 60, 200, 4096, 30000 };
	struct test_rng rng = { 8 };
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(psb); i++) {
		struct builder b = { 0 };

		build_mix(&b, &rng, 600000, psb[i]);
		agree_bytes(b.buf, b.size, &rng, 3);
		free(b.buf);
	}
}
END_TEST

/* Every number of lanes and of threads. */
START_TEST(lanes_and_threads)
{
	struct vmpt_stream stream = { 0 };
	struct vmpt_options o = { .scalar = true };
	struct test_rng rng = { 9 };
	struct builder b = { 0 };
	struct result want;
	struct room room;

	/* 24 times, which sanitizers make slow */
	build_mix(&b, &rng, getenv("VMPT_SANITIZED") ? 150000 : 700000, 1000);
	room_copy(&room, b.buf, b.size);
	stream.data = room.data;
	stream.size = room.size;
	collect(&want, &stream, &o, true, false);
	o.scalar = false;
	o.chunk = 3000;
	for (o.lanes = 1; o.lanes <= 8; o.lanes++)
		for (o.threads = 1; o.threads <= 3; o.threads++) {
			compare(&want, &stream, &o, true);
			compare(&want, &stream, &o, false);
		}
	result_free(&want);
	room_close(&room);
	free(b.buf);
}
END_TEST

/* A source is closed while its threads still decode. */
START_TEST(close_in_the_middle)
{
	struct vmpt_stream stream = { 0 };
	struct vmpt_options o = { .threads = 3, .chunk = 2000 };
	struct test_rng rng = { 10 };
	struct builder b = { 0 };
	struct vmpt_source *src;
	struct vmpt_piece piece;
	int i, n;

	build_mix(&b, &rng, 500000, 500);
	stream.data = b.buf;
	stream.size = b.size;
	for (i = 0; i < 40; i++) {
		must(!vmpt_source_open(&src, &stream, &o, i & 1), "cannot open");
		for (n = i / 2; n; n--)
			must(vmpt_source_next(src, &piece) == 1, "no piece %d", n);
		vmpt_source_close(src);
	}
	free(b.buf);
}
END_TEST

static const char *const traces[] = { "guest-mruby.pt", "guest-two-vmcs.pt", "guest-unzip.pt",
				      "host-lldb.pt", "host-loopy.perf.data" };

START_TEST(real_traces)
{
	const char *path = test_data(traces[_i]);
	struct test_rng rng = { 11 + (u64)_i };
	size_t size;
	u8 *bytes;

	if (!path)
		return;
	bytes = test_read_file(path, &size);
	agree_bytes(bytes, size, &rng, 3);
	free(bytes);
}
END_TEST

/* Parts of a mix put end to end at any byte, each beginning with a PSB. */
static void build_joins(struct builder *b, struct test_rng *rng, size_t size)
{
	struct builder part = { 0 };

	while (b->size < size) {
		part.size = part.block = 0;
		build_kind(&part, VMPT_PT_PSB);
		build_mix(&part, rng, 1 + test_random(rng) % 200, 0);
		build_bytes(b, part.buf, part.size - test_random(rng) % 17);
	}
	free(part.buf);
}

/* Chunk ends, lanes' ends and the ends of what is decoded again fall on joins. */
START_TEST(a1_joins)
{
	struct test_rng rng = { 30 + (u64)_i };
	struct builder b = { 0 };

	build_joins(&b, &rng, _i & 1 ? 3000 : 150000);
	agree_bytes(b.buf, b.size, &rng, _i & 1 ? 40 : 4);
	free(b.buf);
}
END_TEST

/* Random bytes, many of them first bytes of packets. */
static void build_noise(struct builder *b, struct test_rng *rng, size_t size)
{
	u8 bytes[2];

	while (b->size < size) {
		bytes[0] = (u8)test_random(rng);
		bytes[1] = (u8)(test_random(rng) & 1 ? test_random(rng) : 0x82);
		if (!(test_random(rng) % 200))
			build_kind(b, VMPT_PT_PSB);
		else if (test_random(rng) & 1)
			build_bytes(b, bytes, 1);
		else
			bytes[0] = 0x02, build_bytes(b, bytes, 2);
	}
}

/* One random stream: a mix, noise or a part of a real trace, damaged, with gaps. */
static void random_stream(struct test_rng *rng, const u8 *real, size_t real_size)
{
	size_t size = 1 + test_random(rng) % (test_random(rng) & 7 ? 20000 : 200000);
	struct vmpt_gap gaps[GAPS_MAX];
	struct vmpt_stream stream = { .gaps = gaps };
	struct builder b = { 0 };
	struct room room;
	size_t from;

	switch (test_random(rng) % 5) {
	case 0:
		build_noise(&b, rng, size);
		break;
	case 4:
		build_joins(&b, rng, size);
		break;
	case 1:
		if (real_size > size) {
			from = test_random(rng) % (real_size - size);
			build_bytes(&b, real + from, size);
			break;
		}
		/* fall through */
	default:
		build_mix(&b, rng, size, 1 + test_random(rng) % 2000);
	}
	room_copy(&room, b.buf, size);
	if (test_random(rng) & 3)
		damage_bytes(room.data, size, rng);
	stream.data = room.data;
	stream.size = size;
	stream.gap_count = random_gaps(gaps, size, rng);
	agree(&stream, rng, test_random(rng) & 1, 2);
	room_close(&room);
	free(b.buf);
}

START_TEST(random_streams)
{
	const char *soak = getenv("VMPT_SOAK");
	/* Each trace has its share. */
	time_t end = soak ? time(NULL) + atoi(soak) / (int)VMPT_ARRAY_SIZE(traces) : 0;
	struct test_rng rng = { 20 + (u64)_i };
	const char *path = test_data(traces[_i]);
	size_t size = 0;
	u8 *bytes = path ? test_read_file(path, &size) : NULL;
	int i, rounds = test_rounds(60, 15);

	for (i = 0; i < rounds || time(NULL) < end; i++)
		random_stream(&rng, bytes, size);
	free(bytes);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/source");
	TCase *t = tcase_create("threads");

	tcase_add_test(t, lanes_and_threads);
	tcase_add_test(t, close_in_the_middle);
	suite_add_tcase(s, t);

	t = tcase_create("source");
	tcase_add_test(t, losses_written_out);
	tcase_add_loop_test(t, a1_psb_cuts_a_packet, 0, 9);
	tcase_add_loop_test(t, a1_payload_like_a_psb_is_whole, 0, 18);
	tcase_add_loop_test(t, a1_joins, 0, test_rounds(16, 6));
	tcase_add_test(t, nothing_at_all);
	tcase_add_test(t, psb_inside_payloads);
	tcase_add_test(t, blocks_across_chunks);
	tcase_add_test(t, megabytes_without_psb);
	tcase_add_test(t, no_room);
	tcase_add_test(t, every_kind);
	tcase_add_loop_test(t, real_traces, 0, (int)VMPT_ARRAY_SIZE(traces));
	tcase_add_loop_test(test_random_case(s), random_streams, 0, (int)VMPT_ARRAY_SIZE(traces));
	suite_add_tcase(s, t);
	return s;
}
