// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * libipt reads whole buffers before and after vmpt_tsc_rewrite: the same packets, except TSC and
 * TMA as changed; the synthetic trace, and real ones with TSCs inserted.
 */
#include <intel-pt.h>
#include <stdlib.h>

#include "bench/synth.h"
#include "tests/support/support.h"
#include "vmm-lib/tsc.h"

#define SIZE (4u << 20)

/* × 3/4, later by 2^40 + 5 */
static const struct vmpt_tsc_change change = { .multiplier = 3ULL << 46,
					       .offset = (1ULL << 40) + 5 };

static struct pt_packet_decoder *open_decoder(u8 *buf, size_t size)
{
	struct pt_packet_decoder *decoder;
	struct pt_config config;

	pt_config_init(&config);
	config.begin = buf;
	config.end = buf + size;
	decoder = pt_pkt_alloc_decoder(&config);
	ck_assert_ptr_nonnull(decoder);
	ck_assert_int_ge(pt_pkt_sync_forward(decoder), 0);
	return decoder;
}

/* The expected result for @a; TSCs here are below 2^54: × 3 fits 64 bits. */
static void expect(struct pt_packet *a)
{
	if (a->type == ppt_tsc)
		a->payload.tsc.tsc = (a->payload.tsc.tsc * 3 / 4 + change.offset) & vmpt_mask64(56);
	else if (a->type == ppt_tma)
		a->payload.tma.fc = (u16)(a->payload.tma.fc * 3 / 4);
}

static bool same(const struct pt_packet *a, const struct pt_packet *b)
{
	if (a->type != b->type || a->size != b->size)
		return false;
	if (a->type == ppt_tsc)
		return a->payload.tsc.tsc == b->payload.tsc.tsc;
	if (a->type == ppt_tma)
		return a->payload.tma.ctc == b->payload.tma.ctc &&
		       a->payload.tma.fc == b->payload.tma.fc;
	return true;
}

/* Both buffers packet by packet; bytes of all others must be the same. */
static void compare(u8 *in, u8 *out, size_t size, u64 *tscs, u64 *tmas)
{
	struct pt_packet_decoder *a = open_decoder(in, size), *b = open_decoder(out, size);
	struct pt_packet x = { 0 }, y = { 0 };
	int ret, other;
	u64 at = 0;

	for (;;) {
		pt_pkt_get_offset(a, &at);
		ret = pt_pkt_next(a, &x, sizeof(x));
		other = pt_pkt_next(b, &y, sizeof(y));
		if (ret != other)
			ck_abort_msg("at %llu: %d and %d", (unsigned long long)at, ret, other);
		if (ret < 0)
			break;
		expect(&x);
		if (!same(&x, &y))
			ck_abort_msg("at %llu: not as expected", (unsigned long long)at);
		*tscs += x.type == ppt_tsc;
		*tmas += x.type == ppt_tma;
		if (x.type != ppt_tsc && x.type != ppt_tma && memcmp(in + at, out + at, x.size))
			ck_abort_msg("at %llu: bytes changed", (unsigned long long)at);
	}
	ck_assert_int_eq(ret, -pte_eos);
	pt_pkt_free_decoder(a);
	pt_pkt_free_decoder(b);
}

START_TEST(synth_streams)
{
	static const size_t pieces[] = { 100, 4096, SIZE };
	struct synth_options options = { .seed = 5, .libipt_kinds = true };
	struct vmpt_tsc_scan scan = { 0 };
	u8 *in = malloc(SIZE), *out = malloc(SIZE);
	struct synth_counts counts;
	u64 tscs = 0, tmas = 0;
	size_t at, n;

	ck_assert(in && out);
	ck_assert_int_eq(synth_generate(in, SIZE, &options, &counts), 0);
	memcpy(out, in, SIZE);
	for (at = 0; at < SIZE; at += n) {
		n = pieces[_i] < SIZE - at ? pieces[_i] : SIZE - at;
		vmpt_tsc_rewrite(&scan, &change, out + at, n);
		memcpy(out + at - scan.patched, scan.patch, scan.patched);
	}
	compare(in, out, SIZE, &tscs, &tmas);
	ck_assert_uint_eq(tscs, counts.kind[VMPT_PT_TSC]);
	ck_assert_uint_eq(tmas, counts.kind[VMPT_PT_TMA]);
	ck_assert_uint_eq(scan.tscs, tscs);
	ck_assert_uint_eq(scan.tmas, tmas);
	ck_assert_uint_eq(scan.packets, counts.packets);
	ck_assert_uint_eq(scan.errors, 0);
	free(in);
	free(out);
}
END_TEST

/* A real guest's trace has no TSCs: insert one after each PSB. */
START_TEST(real_traces)
{
	static const u8 psb[16] = { 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
				    2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82 };
	static const u8 time[15] = { 0x19, 1,	 2, 3, 4, 5,   6, 7, /* TSC */
				     0x02, 0x73, 9, 9, 0, 200, 1 };
	static const char *const names[] = { "guest-mruby.pt", "guest-two-vmcs.pt" };
	const char *path = test_data(names[_i]);
	struct vmpt_tsc_scan scan = { 0 };
	u64 tscs = 0, tmas = 0, put = 0;
	size_t size, i, n = 0;
	u8 *file, *in, *out;

	if (!path)
		return;
	file = test_read_file(path, &size);
	in = malloc(2 * size);
	out = malloc(2 * size);
	ck_assert(in && out);
	for (i = 0; i < size; i++) {
		in[n++] = file[i];
		if (i >= 15 && !memcmp(file + i - 15, psb, 16)) {
			memcpy(in + n, time, sizeof(time));
			n += sizeof(time);
			put++;
		}
	}
	memcpy(out, in, n);
	vmpt_tsc_rewrite(&scan, &change, out, n);
	compare(in, out, n, &tscs, &tmas);
	ck_assert_uint_eq(scan.errors, 0);
	ck_assert_uint_gt(put, 300);
	ck_assert_uint_eq(tscs, put);
	ck_assert_uint_eq(tmas, put);
	free(file);
	free(in);
	free(out);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("tsc-libipt");
	TCase *tc = tcase_create("tsc-libipt");

	tcase_add_loop_test(tc, synth_streams, 0, 3);
	tcase_add_loop_test(tc, real_traces, 0, 2);
	suite_add_tcase(suite, tc);
	return suite;
}
