// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt_tsc_rewrite: rows by hand at every split, the step table against arch's decoder,
 * random streams in random pieces against a rewrite of the whole, and what makes lanes
 * give up.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/support/support.h"
#include "tests/vmm-lib/tsc-oracle.h"
#include "vmm-lib/tsc/scan.h"

#define ONE  (1ULL << 48)
#define HALF (1ULL << 47)

/* ---- rows ---- */

#define ROW_BYTES 48 /* at most */
#define PSB	  "02820282028202820282028202820282"

static const struct row {
	const char *name;
	u64 multiplier, offset;
	u8 high, tscs, tmas, errors;
	const char *in, *out; /* hexadecimal digits; @out NULL: unchanged */
} rows[] = {
	{ "offset", ONE, 0x10, 0, 1, 0, 0, "19 f8ff0000000000", "19 08000100000000" },
	{ "a negative offset", ONE, -0x100ULL, 0, 1, 0, 0, "19 34120000000000",
	  "19 34110000000000" },
	{ "the result is mod 2^56", ONE, 2, 0xff, 1, 0, 0, "19 ffffffffffffff",
	  "19 01000000000000" },
	{ "double: 101010H becomes 202020H", 2 * ONE, 0, 0, 1, 0, 0, "19 10101000000000",
	  "19 20202000000000" },
	{ "half, rounded down", HALF, 0, 0, 1, 0, 0, "19 07000000000000", "19 03000000000000" },
	/* 0300000000000000H / 2 = 0180000000000000H */
	{ "half: bits 63:56 come down", HALF, 0, 3, 1, 0, 0, "19 00000000000000",
	  "19 00000000000080" },
	/* FFFFFFFFFFFFF0H, then 10H: 0100000000000010H / 2 = 80000000000008H */
	{ "half: the 56 bits wrap", HALF, 0, 0, 2, 0, 0, "19 f0ffffffffffff 19 10000000000000",
	  "19 f8ffffffffff7f 19 08000000000080" },
	{ "half: back by 2^55 is no wrap", HALF, 0, 0, 2, 0, 0,
	  "19 00000000000080 19 00000000000000", "19 00000000000040 19 00000000000000" },
	/* CTC 1234H is kept, 100 × 2 = 200; reserved bits are kept */
	{ "TMA", 2 * ONE, 77, 0, 0, 1, 0, "0273 3412 aa 64 fe", "0273 3412 aa c8 fe" },
	{ "TMA: nine bits", 2 * ONE, 0, 0, 0, 1, 0, "0273 0102 00 81 00", "0273 0102 00 02 01" },
	{ "TMA: 511 × 1/2 = 255", HALF, 0, 0, 0, 1, 0, "0273 0102 00 ff 55", "0273 0102 00 ff 54" },
	{ "TMA saturates", 2 * ONE, 0, 0, 0, 1, 0, "0273 0102 00 00 01", "0273 0102 00 ff 01" },
	{ "TMA saturates beyond 2^16", ~0ULL, 0, 0, 0, 1, 0, "0273 0102 00 ff 01", NULL },
	{ "TSC bytes in PTW of 8", ONE, 1, 0, 0, 0, 0, "0232 1900000000000019", NULL },
	{ "in PTW of 4", ONE, 1, 0, 0, 0, 0, "0212 19000019 00 00 00 00 00 00 00", NULL },
	{ "in TIP", ONE, 1, 0, 0, 0, 0, "cd 1919191919191919 00", NULL },
	{ "in MTC and FUP", ONE, 1, 0, 0, 0, 0, "5919 3d 1919 00 00 00 00 00", NULL },
	{ "in CYC", ONE, 1, 0, 0, 0, 0, "07191918 00 00 00 00 00 00", NULL },
	{ "in MNT", ONE, 1, 0, 0, 0, 0, "02c388 1900000000000273", NULL },
	{ "in TSC", ONE, 1, 0, 1, 0, 0, "19 19191919191919", "19 1a191919191919" },
	{ "in PIP, VMCS, TNT-64", ONE, 1, 0, 0, 0, 0,
	  "0243 190000000000 02c8 1900000002 02a3 190000000073", NULL },
	/* BBP of 8-byte items, BIP 0 looks like TNT; TSC in the block; BEP */
	{ "in a block", ONE, 1, 0, 2, 0, 0,
	  "026301 04 1900000000000019 19 09000000000000 0c 1900000000000002 0233 04 19 00000000000000",
	  "026301 04 1900000000000019 19 0a000000000000 0c 1900000000000002 0233 04 19 01000000000000" },
	{ "in a block of 4-byte items", ONE, 1, 0, 1, 0, 0,
	  "026381 0c 19000000 14 02730000 19 01000000000000",
	  "026381 0c 19000000 14 02730000 19 02000000000000" },
	/* OVF ends the block: 04H is a TNT again (33.4.1.1) */
	{ "OVF in a block", ONE, 1, 0, 1, 0, 0, "026301 02f3 04 19 07000000000000",
	  "026301 02f3 04 19 08000000000000" },
	/* TRIG of three and of five bytes: a TSC's header in it, and a TSC after it */
	{ "A2: TRIG", ONE, 1, 0, 2, 0, 0, "d90019 19 05000000000000 d9401919 02 19 06000000000000",
	  "d90019 19 06000000000000 d9401919 02 19 07000000000000" },
	{ "A2: no packet: PAD up to the next PSB", ONE, 1, 0, 2, 0, 1,
	  "19 01000000000000 05 19 01000000000000" PSB "19 05000000000000",
	  "19 02000000000000 fd 00 00000000000000" PSB "19 06000000000000" },
	/* 02 82 four times, then no more: the PSB begins after it */
	{ "A2: a broken PSB before a PSB", ONE, 1, 0, 1, 0, 1, "0282028202" PSB "19 05000000000000",
	  "fd00000000" PSB "19 06000000000000" },
	{ "A2: half a PSB in what is lost", ONE, 1, 0, 1, 0, 1,
	  "05 02820282028202 82 19" PSB "19 05000000000000",
	  "fd 00000000000000 00 00" PSB "19 06000000000000" },
	{ "A2: what may begin a PSB stays", ONE, 1, 0, 0, 0, 1, "05 8219 0282028202",
	  "fd 0000 0282028202" },
	{ "A2: a block that an error ends", ONE, 1, 0, 1, 0, 1,
	  "026301 027f" PSB "04 19 05000000000000", "026301 fd00" PSB "04 19 06000000000000" },
	/* Its first bytes alone would be a valid CYC, its header alone a MODE.Exec. */
	{ "A2: a CYC over 64 bits", ONE, 1, 0, 1, 0, 1,
	  "ff ff19ffffffffffffff 10" PSB "19 05000000000000",
	  "fd 000000000000000000 00"
	  "" PSB "19 06000000000000" },
	{ "A2: a MODE leaf", ONE, 1, 0, 0, 0, 1, "9940 19 01000000000000",
	  "fd00 00 00000000000000" },
	{ "a cut TSC at the end stays", ONE, 1, 0, 0, 0, 0, "00 19 050000000000", NULL },
};

/* The bytes of a row's hexadecimal digits; returns how many. */
static size_t row_bytes(u8 out[ROW_BYTES], const char *digits)
{
	size_t n = 0;
	int used;

	for (; sscanf(digits, "%2hhx%n", &out[n], &used) == 1; digits += used)
		ck_assert_uint_lt(++n, ROW_BYTES);
	return n;
}

/* A stream rewritten piece by piece; patches are applied. */
struct given {
	struct vmpt_tsc_scan scan;
	u8 *out;
	size_t at;
};

static void give(struct given *g, const struct vmpt_tsc_change *change, size_t n)
{
	unsigned int cut = g->scan.cut_size;

	vmpt_tsc_rewrite(&g->scan, change, g->out + g->at, n);
	if (g->scan.patched) {
		if (g->scan.patched != cut || g->at < cut)
			ck_abort_msg("patch of %u bytes, %u were cut", g->scan.patched, cut);
		memcpy(g->out + g->at - cut, g->scan.patch, cut);
	}
	g->at += n;
}

START_TEST(all_rows)
{
	const struct row *r = &rows[_i];
	const struct vmpt_tsc_change change = { r->multiplier, r->offset, r->high };
	u8 in[ROW_BYTES], want[ROW_BYTES], out[ROW_BYTES];
	size_t len = row_bytes(in, r->in), a, b;

	ck_assert_uint_eq(row_bytes(want, r->out ? r->out : r->in), len);
	for (a = 0; a <= len; a++)
		for (b = a; b <= len; b++) {
			struct given g = { .out = out };

			memcpy(out, in, len);
			give(&g, &change, a);
			give(&g, &change, b - a);
			give(&g, &change, len - b);
			if (memcmp(out, want, len) || g.scan.tscs != r->tscs ||
			    g.scan.tmas != r->tmas || g.scan.errors != r->errors)
				ck_abort_msg("%s, cut at %zu and %zu", r->name, a, b);
		}
}
END_TEST

/* high is that of the range's start; a wrap counts until the caller passes another value. */
START_TEST(high_bits)
{
	static const struct {
		u8 high, in, out; /* TSC bits 55:0 are all @in's; @out: bits 55:48 */
	} calls[] = {
		{ 0, 0xff, 0x7f }, { 0, 0, 0x80 }, { 0, 0, 0x80 },
		{ 1, 0, 0x80 }, /* The caller knows of the wrap: it is not counted twice. */
		{ 4, 0, 0 },
	};
	struct vmpt_tsc_scan scan = { 0 };
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(calls); i++) {
		const struct vmpt_tsc_change change = { HALF, 0, calls[i].high };
		u8 buf[8];

		memset(buf, calls[i].in, 8);
		buf[0] = 0x19;
		vmpt_tsc_rewrite(&scan, &change, buf, 8);
		ck_assert_msg(buf[7] == calls[i].out, "call %zu: %02x", i, buf[7]);
	}
}
END_TEST

/* ---- the step table ---- */

static bool must_look(const struct vmpt_pt_packet *pkt)
{
	return pkt->kind == VMPT_PT_TSC || pkt->kind == VMPT_PT_TMA || pkt->kind == VMPT_PT_BBP;
}

/* Bytes and packets that arch's decoder consumes at @p; 0: it must be decoded. */
static unsigned int plain_packet(const u8 *p, size_t len)
{
	struct vmpt_pt_packet pkt;

	return vmpt_pt_decode(&pkt, p, len, 0) || must_look(&pkt) ? 0 : pkt.size;
}

/* Whatever follows the two bytes, a nonzero entry is right. */
static void check_entry(u8 b0, u8 b1, u8 rest)
{
	unsigned int entry = vmpt_tsc_step[vmpt_tsc_row[b0] + b1], size = entry & VMPT_TSC_SIZE;
	unsigned int first, second = 0;
	u8 p[32];

	memset(p, rest, sizeof(p));
	p[0] = b0;
	p[1] = b1;
	first = plain_packet(p, sizeof(p));
	if (entry / VMPT_TSC_PACKET == 2)
		second = plain_packet(p + first, sizeof(p) - first);
	if (!entry != !(entry / VMPT_TSC_PACKET) || entry / VMPT_TSC_PACKET > 2 ||
	    (entry &&
	     (!first || (entry / VMPT_TSC_PACKET == 2 && !second) || size != first + second)))
		ck_abort_msg("%02x %02x: entry %02x, sizes %u and %u", b0, b1, entry, first,
			     second);
	/* No common packet is slow. */
	if (!entry && first && first < 11 && !(b0 == 0x02 && b1 == 0x82) &&
	    !((b0 & 7) == 7 && b1 & 1))
		ck_abort_msg("%02x %02x: no step, but a packet of %u bytes", b0, b1, first);
}

START_TEST(step_table)
{
	unsigned int i;

	for (i = 0; i < 65536; i++) {
		check_entry((u8)i, (u8)(i >> 8), 0x00);
		check_entry((u8)i, (u8)(i >> 8), 0xff);
		check_entry((u8)i, (u8)(i >> 8), 0x82);
	}
}
END_TEST

/* ---- random streams ---- */

static const struct tsc_mix mixes[] = {
	{ .psb = 2, .tsc = 5, .block = 10 },
	{ .psb = 2, .tsc = 5, .block = 10, .tsc_bytes = true },
	{ .psb = 20, .tsc = 2 },
	{ .psb = 5, .tsc = 300, .block = 2, .tsc_bytes = true },
	{ .psb = 5, .tsc = 20, .block = 20, .error = 1 },
	{ .psb = 1, .tsc = 20, .error = 20, .tsc_bytes = true },
	{ .tsc = 2, .block = 1 }, /* no PSB at all */
};

static const u64 multipliers[] = { ONE, 3 * HALF, ONE - 1, ~0ULL, 0, 12345678901234567ULL };

static u64 draw(struct test_rng *rng, u64 n)
{
	return test_random(rng) % n;
}

struct buffers {
	size_t len;
	u8 *in, *want, *out;
};

static void buffers_make(struct buffers *b, size_t len)
{
	b->len = len;
	b->in = malloc(len);
	b->want = malloc(len);
	b->out = malloc(len);
	ck_assert(b->in && b->want && b->out);
}

static void buffers_free(struct buffers *b)
{
	free(b->in);
	free(b->want);
	free(b->out);
}

/* Pieces of up to @piece bytes; equal to the oracle's rewrite of the whole. */
static void check_stream(struct buffers *b, struct test_rng *rng, size_t piece, u64 seed)
{
	struct vmpt_tsc_change change = {
		.multiplier = multipliers[draw(rng, VMPT_ARRAY_SIZE(multipliers))],
		.offset = test_random(rng),
		.high = (u8)test_random(rng),
	};
	struct given g = { .out = b->out };
	struct tsc_oracle sum = { 0 };
	size_t i, n;

	memcpy(b->want, b->in, b->len);
	memcpy(b->out, b->in, b->len);
	tsc_oracle(&sum, &change, b->in, b->want, 0, b->len);
	while (g.at < b->len) {
		n = 1 + draw(rng, piece);
		give(&g, &change, n < b->len - g.at ? n : b->len - g.at);
	}
	for (i = 0; i < b->len; i++)
		if (b->out[i] != b->want[i])
			ck_abort_msg("seed %llu, pieces to %zu: byte %zu of %zu",
				     (unsigned long long)seed, piece, i, b->len);
	if (g.scan.packets != sum.packets || g.scan.tscs != sum.tscs || g.scan.tmas != sum.tmas ||
	    g.scan.errors != sum.errors || g.scan.lost_bytes != sum.lost_bytes)
		ck_abort_msg("seed %llu, pieces to %zu: counts", (unsigned long long)seed, piece);
}

static void random_round(u64 seed)
{
	static const size_t pieces[] = { 1, 3, 20, 300, 5000, 70000, 1 << 20 };
	struct test_rng rng = { seed };
	u64 stream_rng = test_random(&rng) | 1;
	struct buffers b;
	size_t i;

	buffers_make(&b, 1 + draw(&rng, draw(&rng, 4) ? 20000 : 600000));
	tsc_stream(b.in, b.len, &mixes[draw(&rng, VMPT_ARRAY_SIZE(mixes))], &stream_rng);
	for (i = 0; i < VMPT_ARRAY_SIZE(pieces); i++)
		check_stream(&b, &rng, pieces[i], seed);
	buffers_free(&b);
}

/* Meaningless bytes, half of them with PSBs in between. */
static void garbage_round(u64 seed)
{
	struct test_rng rng = { seed };
	struct buffers b;
	size_t i, j, step = 16 + draw(&rng, 3000);

	buffers_make(&b, 1 + draw(&rng, 100000));
	for (i = 0; i < b.len; i++)
		b.in[i] = (u8)test_random(&rng);
	for (i = 0; seed & 1 && i + 16 <= b.len; i += step)
		for (j = 0; j < 16; j++)
			b.in[i + j] = j & 1 ? 0x82 : 0x02;
	check_stream(&b, &rng, 50, seed);
	check_stream(&b, &rng, 1 << 20, seed);
	buffers_free(&b);
}

START_TEST(random_streams)
{
	const char *soak = getenv("VMPT_SOAK");
	time_t end = time(NULL) + (soak ? atoi(soak) : 0);
	u64 seed;

	for (seed = 0; seed < 60 || time(NULL) < end; seed++) {
		random_round(seed);
		garbage_round(seed);
	}
}
END_TEST

static const u8 psb[16] = {
	2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82
};

/* ---- packets that no one knows yet ---- */

/* Bytes that begin no packet, and all that makes them so. */
static const struct {
	u8 len, bytes[10];
} unknown[] = {
	{ 1, { 0x05 } },
	{ 1, { 0x39 } },
	{ 1, { 0xf9 } },
	{ 1, { 0xad } },
	{ 1, { 0xfd } },
	{ 2, { 0x02, 0x00 } },
	{ 2, { 0x02, 0x7f } },
	{ 2, { 0x02, 0xd2 } },
	{ 2, { 0x99, 0x40 } },
	{ 3, { 0x02, 0xc3, 0x19 } },
	{ 7, { 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x19 } },
	{ 10, { 0xff, 0xc1, 0xc3, 0xe5, 0xf7, 0xa9, 0xff, 0xff, 0xff, 0x10 } },
};

/* All TSCs are this one, the host's; no other byte is C4H. */
static const u8 host_tsc[8] = { 0x19, 0xc4, 0xc4, 0xc4, 0xc4, 0xc4, 0xc4, 0xc4 };

/* TSCs among packets known and unknown, the latter with up to 20 bytes of payload. */
static void unknown_stream(struct buffers *b, struct test_rng *rng, unsigned int share)
{
	static const u8 ptw[10] = { 0x02, 0x32, 1, 2, 3, 4, 5, 6, 7, 8 };
	static const u8 trig[5] = { 0xd9, 0x40, 0x01, 0x19, 0x02 };
	static const u8 tnt[3] = { 0x06, 0x00, 0x0e };
	const u8 *from;
	size_t at = 0, n;

	while (at < b->len) {
		u8 other[30];
		u64 luck = draw(rng, 1000), i;

		from = other;
		if (luck < share) {
			i = draw(rng, VMPT_ARRAY_SIZE(unknown));
			n = unknown[i].len + draw(rng, 21);
			memcpy(other, unknown[i].bytes, unknown[i].len);
			for (i = unknown[i].len; i < n; i++)
				other[i] = (u8)test_random(rng) & 0xfb;
		} else if (luck < 100) {
			from = psb;
			n = sizeof(psb);
		} else if (luck < 400) {
			from = host_tsc;
			n = sizeof(host_tsc);
		} else if (luck < 500) {
			from = ptw;
			n = sizeof(ptw);
		} else if (luck < 600) {
			from = trig;
			n = sizeof(trig);
		} else {
			from = tnt;
			n = sizeof(tnt);
		}
		n = n < b->len - at ? n : b->len - at;
		memcpy(b->in + at, from, n);
		at += n;
	}
}

/* What a guest's decoder finds: an error for each loss, and no time of the host. */
static void check_guest(const struct given *g, const u8 *out, size_t len, u64 seed)
{
	struct vmpt_pt_packet pkt;
	u64 errors = 0, tscs = 0;
	size_t at = 0;
	const u8 *next;
	int err;

	ck_assert_ptr_null(memchr(out, 0xc4, len - (g->scan.lost ? 0 : g->scan.cut_size)));
	while (at < len) {
		err = vmpt_pt_decode(&pkt, out + at, len - at, 0);
		if (err == -VMPT_E_TRUNCATED)
			break;
		if (err) {
			errors++;
			next = memmem(out + at, len - at, psb, sizeof(psb));
			at = next ? (size_t)(next - out) : len;
			continue;
		}
		tscs += pkt.kind == VMPT_PT_TSC;
		at += pkt.size;
	}
	if (errors != g->scan.errors || tscs != g->scan.tscs || !errors)
		ck_abort_msg("seed %llu: the guest sees %llu errors of %llu, %llu TSCs of %llu",
			     (unsigned long long)seed, (unsigned long long)errors,
			     (unsigned long long)g->scan.errors, (unsigned long long)tscs,
			     (unsigned long long)g->scan.tscs);
}

START_TEST(a2_no_tsc_of_the_host_survives)
{
	static const size_t pieces[] = { 1, 5, 40, 3000, 1 << 20 };
	static const struct vmpt_tsc_change change = { .multiplier = ONE,
						       .offset = 0x01010101010101 };
	struct test_rng rng = { 0xa2 };
	struct buffers b;
	size_t i, n;
	u64 seed;

	for (seed = 0; seed < 60; seed++) {
		buffers_make(&b, 20000 + draw(&rng, 60000));
		unknown_stream(&b, &rng, seed % 3 ? 2 : 60);
		for (i = 0; i < VMPT_ARRAY_SIZE(pieces); i++) {
			struct given g = { .out = b.out };

			memcpy(b.out, b.in, b.len);
			while (g.at < b.len) {
				n = 1 + draw(&rng, pieces[i]);
				give(&g, &change, n < b.len - g.at ? n : b.len - g.at);
			}
			check_guest(&g, b.out, b.len, seed);
		}
		buffers_free(&b);
	}
}
END_TEST

/* ---- lanes ---- */

/* Every lane would begin in the payload of two PTWs that look like one PSB. */
START_TEST(false_psb)
{
	/* 02 82 … in the payload, header of the next, 02 82 … */
	static const u8 ptws[20] = { 0x02, 0x32, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82 };
	struct test_rng rng = { 7 };
	struct buffers b;
	size_t at = 0, n;

	buffers_make(&b, 400000);
	while (at < b.len) {
		n = b.len - at < 26 ? b.len - at : 26;
		/* A PTW and then a real PSB: 24 bytes that look alike. */
		memset(b.in + at, 0, n);
		memcpy(b.in + at, ptws, n < 10 ? n : 10);
		if (n == 26)
			memcpy(b.in + at + 10, psb, 16);
		at += n;
		if (at + 8 <= b.len && at % 3 == 0) {
			b.in[at] = 0x19;
			memset(b.in + at + 1, 0x11, 7);
			at += 8;
		}
	}
	check_stream(&b, &rng, 1 << 20, 7);
	check_stream(&b, &rng, 100000, 7);
	buffers_free(&b);
}
END_TEST

/* TSCs directly followed by the PSB of the next lane, TMAs directly after those; more than fit. */
START_TEST(dense)
{
	static const u8 tsc_tma[15] = { 0x19, 1, 2, 3, 4, 5, 6, 7, 0x02, 0x73, 1, 2, 3, 200, 1 };
	struct test_rng rng = { 11 };
	struct buffers b;
	size_t at, i;

	buffers_make(&b, 300000);
	for (at = 0, i = 0; at + 15 <= b.len; i++) {
		size_t n = i % 7 ? 15 : 8;

		memcpy(b.in + at, tsc_tma, n);
		at += n;
		if (i % 5 == 0 && at + 16 <= b.len) {
			memcpy(b.in + at, psb, 16);
			at += 16;
		}
	}
	memset(b.in + at, 0, b.len - at);
	check_stream(&b, &rng, 1 << 20, 11);
	buffers_free(&b);
}
END_TEST

/* One PSB, then a BBP whose block never ends: BIPs up to the window's end and beyond. */
START_TEST(endless_block)
{
	struct test_rng rng = { 13 };
	struct buffers b;
	size_t i;

	buffers_make(&b, 300000);
	memcpy(b.in, psb, 16);
	memcpy(b.in + 16, "\x02\x63\x01", 3);
	/* Outside a block a few of them would be a TNT and a TSC: the lanes must know. */
	for (i = 19; i < b.len; i++) {
		size_t item = (i - 19) / 9, byte = (i - 19) % 9;

		b.in[i] = byte == 0 ? 0x04 : byte == 1 && item % 200 == 0 ? 0x19 : 0;
	}
	check_stream(&b, &rng, 1 << 20, 13);
	check_stream(&b, &rng, 40000, 13);
	buffers_free(&b);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("tsc-rewrite");
	TCase *tc = tcase_create("tsc-rewrite");

	tcase_add_loop_test(tc, all_rows, 0, VMPT_ARRAY_SIZE(rows));
	tcase_add_test(tc, high_bits);
	tcase_add_test(tc, step_table);
	tcase_add_test(test_random_case(suite), random_streams);
	tcase_add_test(tc, a2_no_tsc_of_the_host_survives);
	tcase_add_test(tc, false_psb);
	tcase_add_test(tc, dense);
	tcase_add_test(tc, endless_block);
	suite_add_tcase(suite, tc);
	return suite;
}
