// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A trace that comes in parts gives the packets and owners of the whole one, however it is cut:
 * real traces, generated ones, damaged copies, random bytes. Memory is bounded.
 *
 * VMPT_SOAK=seconds runs the random part for that time.
 */
#include <malloc.h>
#include <stdlib.h>
#include <time.h>

#include "bench/synth.h"
#include "decoder/vmpt-parts.h"
#include "tests/decoder/streams.h"
#include "util/array.h"

/* How to cut: parts of 1 to .most bytes; .every: take batches only after that many parts. */
struct cut {
	size_t most;
	unsigned int every;
};

struct walk {
	const u8 *data;
	u64 size;
	struct vmpt_options options;
	struct vmpt_decoder *whole, *parts;
	struct vmpt_cursor whole_at, parts_at;
	u64 packets;
};

static void same(struct walk *w, const struct vmpt_packet *got)
{
	struct vmpt_packet want;

	must(vmpt_packet_next(w->whole, &w->whole_at, &want) == 1,
	     "a packet at 0x%llx, kind %u, after the last", (unsigned long long)got->offset,
	     got->kind);
	must(want.offset == got->offset && want.kind == got->kind && want.size == got->size &&
		     want.payload == got->payload && want.aux == got->aux,
	     "kind %u at 0x%llx size %u payload 0x%llx, want kind %u at 0x%llx size %u payload "
	     "0x%llx",
	     got->kind, (unsigned long long)got->offset, got->size,
	     (unsigned long long)got->payload, want.kind, (unsigned long long)want.offset,
	     want.size, (unsigned long long)want.payload);
	must(vmpt_owner_same(&want.owner, &got->owner) && want.owner.sure == got->owner.sure &&
		     want.owner.concealed == got->owner.concealed,
	     "at 0x%llx kind %u: owner %u %llx sure %u, want %u %llx sure %u",
	     (unsigned long long)got->offset, got->kind, got->owner.kind,
	     (unsigned long long)got->owner.vmcs, got->owner.sure, want.owner.kind,
	     (unsigned long long)want.owner.vmcs, want.owner.sure);
	w->packets++;
}

static void take(struct walk *w)
{
	struct vmpt_packet pkt;
	int ret;

	while ((ret = vmpt_packet_next(w->parts, &w->parts_at, &pkt)) == 1)
		same(w, &pkt);
	ck_assert_int_eq(ret, 0);
}

/* Each part is a copy, so that reading the next one's bytes is an error to the sanitizers. */
static void add(struct walk *w, u64 at, size_t n)
{
	u8 *copy = malloc(n ? n : 1);

	must(copy, "no memory");
	memcpy(copy, w->data + at, n);
	ck_assert_int_eq(vmpt_decoder_add(w->parts, copy, n), 0);
	free(copy);
}

static void compare(const u8 *data, u64 size, const struct vmpt_options *options,
		    const struct cut *cut, struct test_rng *rng)
{
	struct vmpt_stream stream = { .data = data, .size = size, .cpu = -1, .tid = -1 };
	struct walk w = { .data = data, .size = size, .options = *options };
	struct vmpt_packet pkt;
	unsigned int parts = 0;
	u64 at = 0;
	size_t n;

	w.options.scalar = true;
	ck_assert_int_eq(vmpt_decoder_open(&w.whole, &stream, &w.options), 0);
	ck_assert_int_eq(vmpt_decoder_open_parts(&w.parts, options), 0);
	for (; at < size; at += n) {
		n = 1 + test_random(rng) % cut->most;
		if (n > size - at)
			n = size - at;
		add(&w, at, n);
		if (++parts % cut->every == 0)
			take(&w);
	}
	ck_assert_int_eq(vmpt_decoder_end(w.parts), 0);
	ck_assert_int_eq(vmpt_decoder_end(w.parts), -VMPT_E_STATE);
	ck_assert_int_eq(vmpt_decoder_add(w.parts, data, 0), -VMPT_E_STATE);
	take(&w);
	must(!vmpt_packet_next(w.whole, &w.whole_at, &pkt), "a packet is missing: 0x%llx, kind %u",
	     (unsigned long long)pkt.offset, pkt.kind);
	vmpt_decoder_close(w.whole);
	vmpt_decoder_close(w.parts);
}

static const struct vmpt_options kinds[] = {
	{ 0 },
	{ .headless = true },
	{ .guest_only = VMPT_GUEST_ONLY_YES },
	{ .guest_only = VMPT_GUEST_ONLY_NO },
	{ .host_only = true },
};

static void compare_all(const u8 *data, u64 size, struct test_rng *rng)
{
	static const struct cut cuts[] = {
		{ 3, 1 }, { 40, 1 }, { 700, 3 }, { 50000, 1 }, { 5000, 7 }
	};
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(kinds); i++)
		compare(data, size, &kinds[i], &cuts[test_random(rng) % VMPT_ARRAY_SIZE(cuts)],
			rng);
}

START_TEST(real_traces)
{
	static const char *const names[] = { "guest-two-vmcs.pt", "guest-mruby.pt" };
	const char *path = test_data(names[_i]);
	struct test_rng rng = { 7 };
	size_t size;
	u8 *data;

	if (!path)
		return;
	data = test_read_file(path, &size);
	if (size > (size_t)test_rounds(200000, 50000))
		size = (size_t)test_rounds(200000, 50000);
	compare_all(data, size, &rng);
	free(data);
}
END_TEST

START_TEST(all_kinds)
{
	struct synth_options o = { .seed = 9 };
	struct synth_counts counts;
	struct test_rng rng = { 9 };
	size_t size = (size_t)test_rounds(60000, 20000);
	u8 *data = malloc(size);
	int i;

	must(data && !synth_generate(data, size, &o, &counts), "cannot generate");
	compare_all(data, size, &rng);
	for (i = 0; i < test_rounds(8, 4); i++) {
		damage_bytes(data, size, &rng);
		compare_all(data, size, &rng);
	}
	free(data);
}
END_TEST

/*
 * What owners depend on, drawn out: PSB+, groups, CFEs and pauses with up to hundreds of PADs and
 * MTCs in them, flow between, and packets that a PSB cuts.
 */
static void build_units(struct builder *b, struct test_rng *rng, size_t size)
{
	static const u8 kinds_of[] = {
		VMPT_PT_PIP,	   VMPT_PT_PIP,	    VMPT_PT_PIP,    VMPT_PT_VMCS,
		VMPT_PT_MODE_EXEC, VMPT_PT_PSB,	    VMPT_PT_PSBEND, VMPT_PT_CFE,
		VMPT_PT_CFE,	   VMPT_PT_FUP,	    VMPT_PT_TIP,    VMPT_PT_TIP,
		VMPT_PT_TIP_PGE,   VMPT_PT_TIP_PGD, VMPT_PT_OVF,    VMPT_PT_TIP_PGE,
		VMPT_PT_TIP_PGD,   VMPT_PT_TSC,	    VMPT_PT_CBR,    VMPT_PT_EXSTOP,
	};
	u8 fill[400];
	size_t n;

	build_kind(b, VMPT_PT_PSB);
	while (b->size < size) {
		unsigned int kind = kinds_of[test_random(rng) % sizeof(kinds_of)];

		if (kind == VMPT_PT_TIP_PGD)
			build_kind(b, kind); /* without IP */
		else if (kind == VMPT_PT_PSB && test_random(rng) % 2)
			build_bytes(b, "\x19\x11\x22", test_random(rng) % 4); /* cut */
		if (kind != VMPT_PT_TIP_PGD)
			build_random(b, rng, kind);
		if (test_random(rng) % 3)
			continue;
		n = test_random(rng) % (test_random(rng) % 3 ? 20 : sizeof(fill));
		memset(fill, test_random(rng) % 2 ? 0x00 : 0x06, n);
		if (test_random(rng) % 2)
			memset(fill, 0x59, n &= ~(size_t)1); /* MTC 59H */
		build_bytes(b, fill, n);
	}
}

START_TEST(units)
{
	struct test_rng rng = { 13 };
	struct builder b = { 0 };
	int i;

	for (i = 0; i < test_rounds(1000, 30); i++) {
		b.size = 0;
		build_units(&b, &rng, 100 + test_random(&rng) % 6000);
		compare_all(b.buf, b.size, &rng);
	}
	free(b.buf);
}
END_TEST

/* The look over a pause is made at a later packet: its bytes must still be there. */
START_TEST(pause_long_before)
{
	static const struct cut cut = { 300, 1 };
	struct test_rng rng = { 14 };
	struct builder b = { 0 };
	struct vmpt_pt_packet pip = { .kind = VMPT_PT_PIP, .pip = { .cr3 = 0x1000 } };
	size_t n;
	int i;

	build_kind(&b, VMPT_PT_PSB);
	build(&b, &pip);
	build_kind(&b, VMPT_PT_PSBEND);
	for (i = 0; i < test_rounds(200, 24); i++) {
		build_kind(&b, VMPT_PT_TIP_PGD);
		if (i & 1)
			build_random(&b, &rng, VMPT_PT_CBR); /* a stop */
		build_random(&b, &rng, VMPT_PT_TIP_PGE);
		for (n = test_random(&rng) % 20000; n; n--)
			build_bytes(&b, "\x06", 1);
		pip.pip.nr = !pip.pip.nr;
		build(&b, &pip);
		build_kind(&b, i & 2 ? VMPT_PT_TIP_PGD : VMPT_PT_TIP);
	}
	for (i = 0; i < (int)VMPT_ARRAY_SIZE(kinds); i++)
		compare(b.buf, b.size, &kinds[i], &cut, &rng);
	free(b.buf);
}
END_TEST

/* Each cut in two, in three with a part of nothing, and byte by byte. */
START_TEST(every_cut)
{
	static const struct cut bytes = { 1, 1 };
	struct vmpt_options o = { 0 };
	struct test_rng rng = { 11 };
	struct builder b = { 0 };
	struct vmpt_stream stream = { 0 };
	struct walk w;
	struct vmpt_packet pkt;
	size_t n;

	build_mix(&b, &rng, 600, 200);
	compare(b.buf, b.size, &o, &bytes, &rng);
	stream.data = b.buf;
	stream.size = b.size;
	for (n = 0; n <= b.size; n++) {
		memset(&w, 0, sizeof(w));
		w.data = b.buf;
		o.scalar = true;
		ck_assert_int_eq(vmpt_decoder_open(&w.whole, &stream, &o), 0);
		ck_assert_int_eq(vmpt_decoder_open_parts(&w.parts, NULL), 0);
		add(&w, 0, n);
		take(&w);
		add(&w, n, 0);
		take(&w);
		add(&w, n, b.size - n);
		vmpt_decoder_end(w.parts);
		take(&w);
		must(!vmpt_packet_next(w.whole, &w.whole_at, &pkt), "a packet is missing");
		vmpt_decoder_close(w.whole);
		vmpt_decoder_close(w.parts);
	}
	free(b.buf);
}
END_TEST

/* What is returned before the end: all but the last packets, so that a reader sees them soon. */
START_TEST(soon)
{
	struct vmpt_cursor at = { 0 };
	struct vmpt_decoder *dec;
	struct vmpt_packet pkt;
	struct builder b = { 0 };
	u64 end = 0;
	int i;

	build_kind(&b, VMPT_PT_PSB);
	build_kind(&b, VMPT_PT_PSBEND);
	for (i = 0; i < 1000; i++)
		build_bytes(&b, "\x06", 1);
	ck_assert_int_eq(vmpt_decoder_open_parts(&dec, NULL), 0);
	ck_assert_int_eq(vmpt_decoder_add(dec, b.buf, b.size), 0);
	while (vmpt_packet_next(dec, &at, &pkt) == 1)
		end = pkt.offset + pkt.size;
	ck_assert_uint_ge(end, b.size - 64);
	vmpt_decoder_close(dec);
	free(b.buf);
}
END_TEST

/* Bytes that never end a PSB+, a group or a loss: memory does not follow the trace. */
START_TEST(memory_is_bounded)
{
	static const struct {
		const char *bytes;
		unsigned int size;
	} what[] = {
		{ "\x02\x43\x00\x30\x12\x00\x00\x00", 8 }, /* PIP */
		{ "\x59\x11\x59\x12\x59\x13\x59\x14", 8 }, /* MTC */
		{ "\x00\x00\x00\x00\x00\x00\x00\x00", 8 }, /* PAD */
		{ "\x06\x06\x06\x06\x06\x06\x06\x06", 8 }, /* TNT */
		{ "\x02\xff\xff\xff\xff\xff\xff\xff", 8 }, /* no packet */
		{ "\x01\x59\x11\x59\x12\x59\x13\x00", 8 }, /* TIP.PGD(), MTC: a pause after it */
	};
	static u8 part[1 << 16];
	struct builder b = { 0 };
	struct vmpt_decoder *dec;
	struct vmpt_batch batch;
	size_t before, most = 0, now;
	unsigned int i;

	for (i = 0; i < sizeof(part); i++)
		part[i] = (u8)what[_i].bytes[i % what[_i].size];
	build_kind(&b, VMPT_PT_PSB);
	before = mallinfo2().uordblks + mallinfo2().hblkhd;
	ck_assert_int_eq(vmpt_decoder_open_parts(&dec, NULL), 0);
	ck_assert_int_eq(vmpt_decoder_add(dec, b.buf, b.size), 0);
	/* The sanitizers' memory is not counted. */
	for (i = 0; i < (getenv("VMPT_SANITIZED") ? 40 : 192); i++) {
		ck_assert_int_eq(vmpt_decoder_add(dec, part, sizeof(part)), 0);
		while (vmpt_batch_next(dec, &batch) == 1)
			;
		now = mallinfo2().uordblks + mallinfo2().hblkhd;
		if (now > before && now - before > most)
			most = now - before;
	}
	must(most < 8 * VMPT_PARTS_HELD, "%zu bytes for a trace of 12 MiB", most);
	vmpt_decoder_close(dec);
	free(b.buf);
}
END_TEST

START_TEST(not_in_parts)
{
	struct vmpt_options both = { .host_only = true, .guest_only = VMPT_GUEST_ONLY_YES };
	struct vmpt_stream stream = { .cpu = -1, .tid = -1 }, rtit = { .isa = VMPT_ISA_RTIT };
	struct vmpt_decoder *dec;

	ck_assert_int_eq(vmpt_decoder_open_parts_abi(&dec, NULL, 0), -VMPT_E_VERSION);
	ck_assert_int_eq(vmpt_decoder_open_parts(&dec, &both), -VMPT_E_INVAL);
	ck_assert_int_eq(vmpt_decoder_open(&dec, &stream, NULL), 0);
	ck_assert_int_eq(vmpt_decoder_add(dec, NULL, 0), -VMPT_E_STATE);
	ck_assert_int_eq(vmpt_decoder_end(dec), -VMPT_E_STATE);
	vmpt_decoder_close(dec);
	ck_assert_int_eq(vmpt_decoder_open(&dec, &rtit, NULL), 0);
	ck_assert_int_eq(vmpt_decoder_add(dec, NULL, 0), -VMPT_E_STATE);
	vmpt_decoder_close(dec);
}
END_TEST

START_TEST(random_bytes)
{
	const char *soak = getenv("VMPT_SOAK");
	time_t end = time(NULL) + (soak ? atoi(soak) : 1);
	struct test_rng rng = { (u64)(soak ? end : 12) };
	struct builder b = { 0 };
	size_t i;

	do {
		b.size = 0;
		build_mix(&b, &rng, 1 + test_random(&rng) % 20000, 20 + test_random(&rng) % 3000);
		compare_all(b.buf, b.size, &rng);
		damage_bytes(b.buf, b.size, &rng);
		compare_all(b.buf, b.size, &rng);
		b.size = 0;
		build_units(&b, &rng, 1 + test_random(&rng) % 20000);
		compare_all(b.buf, b.size, &rng);
		damage_bytes(b.buf, b.size, &rng);
		compare_all(b.buf, b.size, &rng);
		for (i = 0; i < b.size; i++)
			b.buf[i] = (u8)test_random(&rng);
		compare_all(b.buf, b.size, &rng);
	} while (time(NULL) < end);
	free(b.buf);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("decoder/pt/parts");
	TCase *cases = tcase_create("parts"), *random = test_random_case(suite);
	TCase *rounds = test_long_case(suite);

	tcase_set_timeout(cases, 60);
	tcase_set_timeout(rounds, 60);
	tcase_add_loop_test(rounds, real_traces, 0, 2);
	tcase_add_test(rounds, all_kinds);
	tcase_add_test(rounds, units);
	tcase_add_test(rounds, pause_long_before);
	tcase_add_test(cases, every_cut);
	tcase_add_test(cases, soon);
	tcase_add_loop_test(cases, memory_is_bounded, 0, 6);
	tcase_add_test(cases, not_in_parts);
	tcase_add_test(random, random_bytes);
	suite_add_tcase(suite, cases);
	return suite;
}
