// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The shapes of bench/shapes.h: whole and legal packets that libipt reads too, what their names
 * promise, and shares of packets like those of a real trace, where there is one.
 */
#include <stdlib.h>

#include "bench/shapes.h"
#include "decoder/vmpt-decode.h"
#include "tests/bench/libipt-count.h"
#include "tests/support/support.h"

#define SIZE (2u << 20)

#define BIT(kind) (1ULL << VMPT_PT_##kind)
#define ALL	  (~0ULL)

/* A packet, as vmpt_pt_decode() finds it. */
struct seen {
	u8 kind, size;
};

struct stream {
	struct seen *p;
	size_t n;
};

static struct stream decode(const u8 *data, size_t size)
{
	struct stream s = { .p = calloc(size, sizeof(*s.p)) };
	struct vmpt_pt_packet pkt;
	size_t at;

	/* No assertion per packet here and below: each writes to a pipe. */
	ck_assert_ptr_nonnull(s.p);
	for (at = 0; at < size; at += pkt.size) {
		if (vmpt_pt_decode(&pkt, data + at, size - at, 0) || pkt.flags & VMPT_PT_RESERVED)
			ck_abort_msg("bad packet at %zu", at);
		s.p[s.n++] = (struct seen){ pkt.kind, (u8)pkt.size };
	}
	return s;
}

static u8 *bytes(enum shape shape, u64 seed, struct synth_counts *counts)
{
	u8 *data = malloc(SIZE);

	ck_assert_ptr_nonnull(data);
	ck_assert_int_eq(shape_generate(data, SIZE, shape, seed, counts), 0);
	return data;
}

static struct stream generated(enum shape shape)
{
	struct synth_counts counts;
	u8 *data = bytes(shape, 4, &counts);
	struct stream s = decode(data, SIZE);

	free(data);
	/* The end is filled up. */
	while (s.p[s.n - 1].kind == VMPT_PT_PAD)
		s.n--;
	return s;
}

START_TEST(test_decodes_to_its_counts)
{
	struct synth_counts counts, found = { 0 };
	u8 *data = bytes(_i, 7, &counts);
	struct stream s = decode(data, SIZE);
	size_t i;

	for (i = 0; i < s.n; i++) {
		found.kind[s.p[i].kind]++;
		if (s.p[i].kind == VMPT_PT_CYC)
			found.cyc_size[s.p[i].size]++;
	}
	ck_assert_uint_eq(counts.packets, s.n);
	ck_assert_int_eq(memcmp(counts.kind, found.kind, sizeof(found.kind)), 0);
	ck_assert_int_eq(memcmp(counts.cyc_size, found.cyc_size, sizeof(found.cyc_size)), 0);
	free(s.p);
	free(data);
}
END_TEST

START_TEST(test_same_seed_same_bytes)
{
	struct synth_counts counts;
	u8 *a = bytes(_i, 5, &counts), *b = bytes(_i, 5, &counts), *c = bytes(_i, 6, &counts);

	ck_assert_int_eq(memcmp(a, b, SIZE), 0);
	ck_assert_int_ne(memcmp(a, c, SIZE), 0);
	free(a);
	free(b);
	free(c);
}
END_TEST

START_TEST(test_libipt_reads_it)
{
	struct synth_counts counts;
	u8 *data = bytes(_i, 2, &counts);

	ck_assert_uint_eq(libipt_count(data, SIZE), counts.packets);
	free(data);
}
END_TEST

START_TEST(test_too_small)
{
	static u8 buf[SHAPE_SIZE_MIN];
	struct synth_counts counts;

	ck_assert_int_eq(shape_generate(buf, sizeof(buf) - 1, _i, 1, &counts), -VMPT_E_SPACE);
	ck_assert_int_eq(shape_generate(buf, sizeof(buf), _i, 1, &counts), 0);
}
END_TEST

/* ---- what the names promise ---- */

/* Each TNT and TIP after a CYC of @least to @most bytes. */
static void check_cyc(enum shape shape, unsigned int least, unsigned int most)
{
	struct stream s = generated(shape);
	size_t i, branches = 0, after_cyc = 0;

	for (i = 1; i < s.n; i++) {
		if (!((BIT(TNT_8) | BIT(TIP)) >> s.p[i].kind & 1))
			continue;
		branches++;
		after_cyc += s.p[i - 1].kind == VMPT_PT_CYC && s.p[i - 1].size >= least &&
			     s.p[i - 1].size <= most;
	}
	ck_assert_uint_gt(branches, 100000);
	ck_assert_uint_eq(branches, after_cyc);
	free(s.p);
}

START_TEST(a5_cyc_with_each_tnt_and_tip)
{
	check_cyc(SHAPE_CYC, 1, 2);
	check_cyc(SHAPE_CYC_3, 3, 3);
}
END_TEST

START_TEST(a5_pauses)
{
	struct stream s = generated(SHAPE_PAUSES);
	size_t i = 0, mtc, cyc, runs[2] = { 0 };

	while (i < s.n) {
		mtc = cyc = 0;
		if (s.p[i++].kind != VMPT_PT_TIP_PGD)
			continue;
		for (; i < s.n && s.p[i].kind != VMPT_PT_TIP_PGE; i++) {
			mtc += s.p[i].kind == VMPT_PT_MTC;
			cyc += s.p[i].kind == VMPT_PT_CYC;
		}
		ck_assert_uint_ge(mtc, 20);
		ck_assert_uint_le(mtc, 400);
		ck_assert(!cyc || cyc == mtc);
		runs[!cyc]++;
	}
	ck_assert_uint_gt(runs[0], 100);
	ck_assert_uint_gt(runs[1], 100);
	free(s.p);
}
END_TEST

START_TEST(a5_restarts)
{
	struct stream s = generated(SHAPE_RESTARTS);
	size_t i, pgds = 0, restarts = 0;

	for (i = 0; i + 3 < s.n; i++) {
		if (s.p[i].kind != VMPT_PT_TIP_PGD || s.p[i + 1].kind == VMPT_PT_PSB)
			continue;
		pgds++;
		restarts += s.p[i + 1].kind == VMPT_PT_CBR &&
			    s.p[i + 2].kind == VMPT_PT_MODE_EXEC &&
			    s.p[i + 3].kind == VMPT_PT_TIP_PGE;
	}
	ck_assert_uint_gt(pgds, 10000);
	ck_assert_uint_eq(pgds, restarts);
	free(s.p);
}
END_TEST

START_TEST(a5_dense_psb)
{
	struct stream s = generated(SHAPE_DENSE_PSB);
	size_t i, at = 0, last = 0, n = 0, within = 0;

	for (i = 0; i < s.n; at += s.p[i++].size) {
		if (s.p[i].kind != VMPT_PT_PSB || !at)
			continue;
		n++;
		within += at - last >= 80 && at - last <= 200;
		last = at;
	}
	ck_assert_uint_gt(n, 10000);
	ck_assert_uint_ge(within * 100, n * 98);
	free(s.p);
}
END_TEST

static u64 count(const struct stream *s, u64 kinds)
{
	u64 n = 0;
	size_t i;

	for (i = 0; i < s->n; i++)
		n += kinds >> s->p[i].kind & 1;
	return n;
}

/* No real trace has PTW: a quarter of all packets. */
START_TEST(a5_ptwrite)
{
	struct stream s = generated(SHAPE_PTWRITE);

	ck_assert_uint_ge(count(&s, BIT(PTW)) * 5, s.n);
	ck_assert_uint_ge(count(&s, BIT(FUP)) * 10, s.n);
	free(s.p);
}
END_TEST

/* None has a host and a VM: all kinds of events that are more than branches. */
START_TEST(a5_system_wide)
{
	struct stream s = generated(SHAPE_SYSTEM_WIDE);

	ck_assert_uint_ge(count(&s, BIT(MTC)) * 50, s.n);
	ck_assert_uint_ge(count(&s, BIT(FUP)) * 100, s.n);
	ck_assert_uint_ge(count(&s, BIT(PIP)) * 100, s.n);
	ck_assert_uint_ge(count(&s, BIT(MODE_EXEC)) * 1000, s.n);
	ck_assert_uint_eq(count(&s, BIT(VMCS)), count(&s, BIT(PSB)));
	ck_assert_uint_eq(count(&s, BIT(TIP_PGD)), 0);
	free(s.p);
}
END_TEST

/* ---- real traces ---- */

/*
 * The part of a real trace that has the shape: stretches from one packet of kind @cut to the next
 * whose bytes and packets other than PAD are in the ranges. Of all packets @of in it, and of those
 * in the whole generated stream, the shares of the kinds @same differ by at most @points, in
 * percent, and their mean size by at most @size percent.
 */
static const struct like {
	enum shape shape;
	const char *file;
	unsigned int cut;
	size_t bytes[2], packets[2], stretches;
	u64 of, same;
	double points, size;
} likes[] = {
	/*
	 * 5 stretches of 23 packets. Its branches are not compared: the program has 40 instructions
	 * and waits between them, so that most of its MTCs are in pauses.
	 */
	{ SHAPE_PERF_DEFAULT,
	  "host-loopy.perf.data",
	  VMPT_PT_TIP_PGE,
	  { 0, 100 },
	  { 1, 8 },
	  5,
	  ALL & ~BIT(PAD),
	  BIT(TIP_PGE) | BIT(TIP_PGD) | BIT(MTC),
	  10,
	  25 },
	/* all kinds, also PAD, which is two thirds of them */
	{ SHAPE_DENSE_PSB,
	  "guest-two-vmcs.pt",
	  VMPT_PT_PSB,
	  { 80, 200 },
	  { 1, SIZE },
	  217,
	  ALL,
	  ALL,
	  2,
	  10 },
	/* without CYC, which that trace has not: the pauses of 20 and of 337 MTCs */
	{ SHAPE_PAUSES,
	  "host-loopy.perf.data",
	  VMPT_PT_TIP_PGD,
	  { 0, SIZE },
	  { 20, SIZE },
	  2,
	  BIT(MTC) | BIT(TSC) | BIT(TMA) | BIT(CBR),
	  ALL,
	  2,
	  5 },
	/* without PAD, which is four fifths of the packets there */
	{ SHAPE_TIGHT,
	  "guest-unzip.pt",
	  VMPT_PT_TIP_PGD,
	  { 0, 64 },
	  { 1, 64 },
	  103,
	  ALL & ~BIT(PAD),
	  ALL,
	  2,
	  5 },
	/* without CBR and MODE.Exec, which no trace here has between TIP.PGD and TIP.PGE */
	{ SHAPE_RESTARTS,
	  "guest-mruby.pt",
	  VMPT_PT_TIP_PGD,
	  { 0, 64 },
	  { 1, 64 },
	  13501,
	  BIT(TNT_8) | BIT(TIP) | BIT(TIP_PGE) | BIT(TIP_PGD),
	  ALL,
	  2,
	  5 },
};

struct shares {
	u64 n[VMPT_PT_KINDS], all, bytes;
	size_t stretches;
};

static void add(struct shares *shares, const struct seen *p, size_t n, u64 of)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (!(of >> p[i].kind & 1))
			continue;
		shares->n[p[i].kind]++;
		shares->all++;
		shares->bytes += p[i].size;
	}
	shares->stretches++;
}

static bool in(size_t n, const size_t range[2])
{
	return n >= range[0] && n <= range[1];
}

static struct shares real_shares(const struct stream *s, const struct like *l)
{
	struct shares shares = { 0 };
	size_t i = 0, from, size, packets;

	while (i < s->n && s->p[i].kind != l->cut)
		i++;
	while (i < s->n) {
		from = i;
		size = packets = 0;
		do {
			size += s->p[i].size;
			packets += s->p[i].kind != VMPT_PT_PAD;
		} while (++i < s->n && s->p[i].kind != l->cut);
		if (in(size, l->bytes) && in(packets, l->packets))
			add(&shares, s->p + from, i - from, l->of);
	}
	return shares;
}

START_TEST(a5_like_a_real_trace)
{
	const struct like *l = &likes[_i];
	const char *path = test_data(l->file);
	const struct vmpt_stream *stream;
	struct shares want, got = { 0 };
	struct vmpt_trace *trace;
	struct vmpt_diag diag;
	struct stream s;
	double a, b;
	unsigned int k;

	if (!path)
		return;
	ck_assert_int_eq(vmpt_trace_open(&trace, path, -1, &diag), 0);
	stream = vmpt_trace_stream(trace, 0);
	s = decode(stream->data, stream->size);
	want = real_shares(&s, l);
	ck_assert_uint_eq(want.stretches, l->stretches);
	free(s.p);
	vmpt_trace_close(trace);

	s = generated(l->shape);
	add(&got, s.p, s.n, l->of);
	free(s.p);
	for (k = 0; k < VMPT_PT_KINDS; k++) {
		a = 100.0 * (double)want.n[k] / (double)want.all;
		b = 100.0 * (double)got.n[k] / (double)got.all;
		if (l->same >> k & 1)
			ck_assert_msg(a - b <= l->points && b - a <= l->points,
				      "%s, %s: %.2f %%, real %.2f %%", shape_name(l->shape),
				      vmpt_pt_name(k), b, a);
	}
	a = (double)want.bytes / (double)want.all;
	b = (double)got.bytes / (double)got.all;
	ck_assert_msg(b >= a * (1 - l->size / 100) && b <= a * (1 + l->size / 100),
		      "%s: %.2f bytes a packet, real %.2f", shape_name(l->shape), b, a);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("bench/shapes");
	TCase *t = tcase_create("stream");

	tcase_add_loop_test(t, test_decodes_to_its_counts, 0, SHAPES);
	tcase_add_loop_test(t, test_same_seed_same_bytes, 0, SHAPES);
	tcase_add_loop_test(t, test_libipt_reads_it, 0, SHAPES);
	tcase_add_loop_test(t, test_too_small, 0, SHAPES);
	suite_add_tcase(s, t);

	t = tcase_create("shape");
	tcase_add_test(t, a5_cyc_with_each_tnt_and_tip);
	tcase_add_test(t, a5_pauses);
	tcase_add_test(t, a5_restarts);
	tcase_add_test(t, a5_dense_psb);
	tcase_add_test(t, a5_ptwrite);
	tcase_add_test(t, a5_system_wide);
	tcase_add_loop_test(t, a5_like_a_real_trace, 0, VMPT_ARRAY_SIZE(likes));
	suite_add_tcase(s, t);
	return s;
}
